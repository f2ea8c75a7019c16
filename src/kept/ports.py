"""Interfaces: a storage, and the few other things that a host may replace.

A storage is opened for one space and never looks beyond it. It keeps rows and an index and
holds no policy: which memory is worth keeping, who may see it, and what a change means are
decided above. tests/contract is the full definition; a class that passes it is a storage.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from msgspec import Struct

from kept.model import Event, Memory, Message, Record, Scope, SessionRecord, Status, Tier, Trust

Shelf = Literal["live", "archive", "forgotten", "any"]
R = TypeVar("R", bound=Record)
T = TypeVar("T")

SavedNote = tuple[int, datetime, dict[str, Any]]  # of a receipt: its number, when, and its content


class EventHead(NamedTuple):
    """An event without its payload and seals: enough to list it."""

    seq: int
    group: str
    at: datetime
    actor: str
    action: str
    subject: str


class Stamp(Struct, frozen=True, kw_only=True):
    """The actor, time and group of a change: the same for every event of one facade call.

    `passes_fence`: it may change a space that was moved away, or is not whole yet; for moves and erasures.
    """

    group: str
    at: datetime
    actor: str
    undoes: str | None = None
    passes_fence: bool = False


class Where(Struct, frozen=True, kw_only=True):
    """A filter for memories. An empty field matches everything; several values in one field mean "any of them".

    `shelf` is live (the default), archive, forgotten, or any. A forgotten memory is only on the shelves
    `forgotten` and `any`. `seen_by` leaves out what other sessions than this one found and nobody promoted: candidates
    of tier session, except summaries.
    """

    shelf: Shelf = "live"
    scope: Scope | None = "memory"
    tiers: tuple[Tier, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tags_of_any_case: tuple[str, ...] = ()  # as `tags`, whether a-z or A-Z
    data: tuple[tuple[str, Any], ...] = ()  # names in the data of a memory, each with its text, number or truth value
    files: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()
    trusts: tuple[Trust, ...] = ()
    ids: tuple[int, ...] = ()
    uid: str | None = None
    fingerprints: tuple[str, ...] = ()
    topic: str | None = None
    key: str | None = None
    agent: str | None = None
    session: str | None = None
    seen_by: str | None = None
    task: str | None = None
    narrative: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Period(Struct, frozen=True, kw_only=True):
    """A time span: from `since` on, and before `until`; None is open. A record without a time is only in `ALWAYS`."""

    since: datetime | None = None
    until: datetime | None = None

    def holds(self, at: datetime | None) -> bool:
        """Whether the period contains that moment."""
        if at is None:
            return self == ALWAYS
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


ALWAYS = Period()
LIVE = Where()
ANYWHERE = Where(shelf="any", scope=None)
ANYTHING = "anything"  # buried with the first erasure: before that, nobody has to look closely
COMMON_HANDLE = 32


class Deadline(Struct, frozen=True):
    """When an answer is due, on the caller's stopwatch. Each storage enforces it in the way its engine allows."""

    timer: Callable[[], float]
    at: float = inf

    @property
    def left_s(self) -> float:
        """The seconds that are left; 0 or less after the deadline."""
        return self.at - self.timer()

    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.timer() >= self.at


class TooLate(Exception):
    """A search was stopped at its deadline. Never leaves the read path."""


class Prepared(Struct, frozen=True, gc=False):
    """The tokens of a memory as they stand in the index: one string for each column.

    `n_words` is the length of the text itself; `n_tokens` counts the tokens of all columns, in which an
    identifier stands whole and in parts.
    """

    words: str
    tag_words: str
    file_words: str
    source_words: str
    kind_words: str
    n_words: int
    n_tokens: int


class Ranking(Struct, frozen=True, kw_only=True):
    """How a search orders its matches: by BM25 times the factors of the memory itself.

    `columns` says what a word counts in each column of `Prepared`. `factors` are names of worth.MEMORY_FACTORS,
    taken at the moment `now`, and "kind", for which `kind_weights` has the numbers. `match` tells how well a memory
    fits all that was asked, of which the words searched for may be a part; None: how well it fits these.
    """

    columns: tuple[float, float, float, float, float] = (1.0, 1.0, 1.0, 1.0, 1.0)
    factors: tuple[str, ...] = ()
    kind_weights: Mapping[str, float] = {}
    now: datetime | None = None
    match: Callable[[Prepared], float] | None = None


BY_MATCH = Ranking()


class Found(Struct, frozen=True, gc=False):
    """A memory that matches, with its prepared tokens, so that the exact score can be computed anywhere.

    `traits` has the fields that scores and orders are made of: the memory, or what a storage has read of it so far, of
    which `whole` is the memory. Of hundreds that are scored, only the few that are returned are read whole.
    `rank` is the number that the search ordered it by: near to the exact score, but only comparable within one search.
    `match` is what the ranking's own `match` says of it, if that was asked.
    """

    traits: Any
    prepared: Prepared
    rank: float = 0.0
    match: float | None = None

    @property
    def memory(self) -> Memory:
        return self.traits if isinstance(self.traits, Memory) else cast("Memory", self.traits.whole)


class Statistics(Struct, frozen=True):
    """The statistics of a corpus that BM25 needs. Those of two spaces can be added."""

    rows: int = 0
    words: int = 0
    tokens: int = 0
    rows_with: Mapping[str, int] = {}

    def __add__(self, other: "Statistics") -> "Statistics":
        both = dict(self.rows_with)
        for word, rows in other.rows_with.items():
            both[word] = both.get(word, 0) + rows
        return Statistics(self.rows + other.rows, self.words + other.words, self.tokens + other.tokens, both)


class Scrubbed(Struct, frozen=True, kw_only=True):
    """How far an erasure got. Not done: another program still reads old pages, or the disk is full."""

    is_done: bool = True
    backups: int = 0  # of those in the home: how many were rewritten, or dropped because they could not be
    elsewhere: tuple[str, ...] = ()  # backups that a person asked for and that Kept could not clean


class BackupReport(Struct, frozen=True, kw_only=True):
    """The content of a backup, counted in the backup itself."""

    path: str
    memories: int
    events: int
    bytes: int


class RestoreReport(Struct, frozen=True, kw_only=True):
    """The result of a restore, and the file that keeps the previous state."""

    memories: int
    events: int
    left_out: int = 0  # of the backup's memories: how many were erased since it was made
    replaced: str | None = None


class Foundation(Struct, frozen=True, kw_only=True):
    """What a space stands on, beside its records: for carrying it over to another storage."""

    key: bytes  # of the tombstones
    tombstones: tuple[str, ...] = ()
    last_ids: Mapping[str, int] = {}  # by noun: the last one given
    sessions: tuple[str, ...] = ()  # those that have messages of their own
    packed: tuple[str, ...] = ()  # of these, the packed ones


class FoundMessage(Struct, frozen=True):
    """A message that matches, with its prepared tokens and the length of its text."""

    message: Message
    words: str
    n_words: int


class Messages(Protocol):
    """Reading conversations: messages in their order, and searching them."""

    def session(self, name: str) -> SessionRecord | None:
        """The session of that name, or None."""

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """Messages of a session from number `after` + 1 on, in order; also of a packed session.

        A fork begins with the first `Session.shared` messages of its parent, which are stored only there.
        """

    def last_number(self, session: str) -> int:
        """The number of the newest message of a session; 0 when there is none."""

    def messages_at(self, places: Sequence[tuple[str, int]]) -> list[FoundMessage]:
        """The messages at these places (session, number), as far as they exist and are not packed."""

    def search_messages(
        self,
        words: Sequence[str],
        *,
        limit: int,
        session: str | None = None,
        period: Period = ALWAYS,
        statistics: Statistics | None = None,
        deadline: Deadline | None = None,
    ) -> list[FoundMessage]:
        """Messages that hold at least one of the words, best BM25 first; packed sessions are not looked at.

        `statistics` are those of the words, if the caller has asked for them already.
        """

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        """Rows, words, and rows with each word, of all messages that are not packed."""


class VectorState(Struct, frozen=True):
    """The model of a space's vectors, how many memories have one, and how many do not have one yet."""

    model: str | None = None
    done: int = 0
    pending: int = 0


class VectorReader(Protocol):
    """Reading vectors: bytes as `kept.vectors` packs them. A storage never makes one."""

    def vector_state(self) -> VectorState:
        """Whether there are vectors, and whether all are there."""

    def vectorless(self, *, limit: int) -> list[Memory]:
        """Memories, oldest first, whose text has no vector of the chosen model yet; none when no model is chosen."""

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these memories, as far as they have one of the chosen model and of their present text."""

    def nearest(self, vector: bytes, where: Where = LIVE, *, limit: int) -> list[Found]:
        """Memories whose vectors point most the same way, best first; `rank` is the cosine. Never `forgotten` ones."""


class Reader(Messages, VectorReader, Protocol):
    """A consistent view of one space: everything read through it is of one moment."""

    space: str

    def get(self, noun: type[R], id: int) -> R | None:
        """The record with that id, archived or not, or None."""

    def all(self, noun: type[R]) -> list[R]:
        """Every record of a small noun (conflicts, aliases), by id. Memories are read through `select`."""

    def select(
        self, where: Where = LIVE, *, limit: int = 50, after: int | None = None, oldest_first: bool = False
    ) -> list[Memory]:
        """Memories by id, newest first; `after` is the last id of the page before."""

    def count(self, where: Where = LIVE) -> int:
        """How many memories `select` would find without a limit."""

    def search(
        self,
        words: Sequence[str],
        where: Where = LIVE,
        *,
        limit: int,
        ranking: Ranking = BY_MATCH,
        also: Sequence[str] = (),
        among: int | None = None,
        newest: bool = False,
        deadline: Deadline | None = None,
    ) -> list[Found]:
        """Memories that hold at least one of the prepared words, best first by `ranking`. Never the shelf `forgotten`.

        `also`: further words of the question; nothing is found by them, but they help to tell the best of what is.
        `among`: only this many of the matches, the newest ones, are ranked at all.
        `newest`: the latest ones first, and none is ranked: cheap for the commonest word.
        `deadline`: a search that is not finished by then ends with TooLate, soon after.
        """

    def alike(self, texts: Sequence[Sequence[str]], scope: Scope, *, limit: int) -> list[list[Memory]]:
        """For each text, given as its prepared words, the live memories that may be about the same thing.

        That is those which share enough of its handles (text.handles, text.enough_handles); most shared handles first,
        of equals the newest. Of a handle that many memories have, the newest COMMON_HANDLE count.
        """

    def prepared(self, ids: Sequence[int]) -> dict[int, Prepared]:
        """Return the prepared tokens of these memories as the index has them, by id."""

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        """Words of the index with this prefix, in order: corrections for a misspelt or unfinished word."""

    def statistics(self, words: Sequence[str], where: Where = LIVE) -> Statistics:
        """Rows, words, tokens, and rows with each word, of the shelf and scope of `where`.

        Its other fields are not looked at. Exact for small spaces; an estimate for the common words of large ones.
        """

    def counters(self) -> dict[str, int]:
        """The counters of bookkeeping, by name."""

    def file_notes(self, beginning: str = "") -> dict[str, str]:
        """What was noted about files outside the store, by name: those whose names begin like this."""

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        """The memories linked to this one, strongest first: (id, strength, last recalled together)."""

    def receipt(self, id: int | None = None) -> SavedNote | None:
        """The receipt of a recall; the newest when no id is given."""

    def receipts_of(self, session: str | None, *, limit: int) -> list[SavedNote]:
        """The receipts of what a session was given without asking, newest first; None: all receipts."""

    def sessions_told(self, *, limit: int) -> list[str]:
        """Return the sessions that were given something without asking, the last one first."""

    def events(
        self,
        *,
        subject: str | None = None,
        group: str | None = None,
        after: int = 0,
        later_than: datetime | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        """Events of the journal in order, with their payloads where these were not erased.

        `later_than`: only events whose time is after this moment, wherever they stand in the journal.
        """

    def event_heads(
        self, *, after: int = 0, later_than: datetime | None = None, limit: int | None = None
    ) -> list[EventHead]:
        """Return events of the journal in order without their payloads, and without comparing them with their seals."""

    def activity(self, *, after: int = 0) -> list[tuple[datetime, str, str, int]]:
        """The events after that number, counted: the hour in which they fell, actor, action, how many."""

    def foundation(self) -> Foundation:
        """What this space stands on, to be laid in another storage."""

    def is_erased(self, fingerprint: str) -> bool:
        """Whether a text with this fingerprint was erased here, or something of this name was buried.

        Whatever is captured or imported must not bring it back.
        """

    def erased_among(self, names: Collection[str]) -> set[str]:
        """Return those of the names for which `is_erased` is true, with one question for all."""


class Transaction(Reader, Protocol):
    """A write transaction. All of it is committed when the block ends, or nothing is.

    Every change also appends its event to the journal; there is no way to change a record without one.
    """

    stamp: Stamp

    def restamp(self, stamp: Stamp) -> None:
        """Let the changes from here on carry another stamp: what happened elsewhere keeps its group, time and actor."""

    def add(self, record: R, action: str) -> R:
        """Store a new record (id 0) and return it with its id. An id is never given twice."""

    def put(self, record: R, action: str) -> R:
        """Replace the stored record that has this id. Raises NotFound if there is none."""

    def put_many(self, memories: Sequence[Memory], action: str) -> None:
        """Call `put` for each of these distinct memories; a batch may be faster."""

    def remove(self, record: Record, action: str) -> None:
        """Remove a small record (an alias). A memory is archived by `put` and removed only by `erase`."""

    def note_file(self, name: str, note: str | None) -> None:
        """Note something that is no record, such as how a file outside was last written; None removes the note.

        It is as durable as the rest of the transaction. There is no event: a file is not a record.
        """

    def append(self, messages: Sequence[Message]) -> list[Message]:
        """Add messages at the end of their sessions and return them with their numbers.

        One whose session, id and role are known already is left out: adding twice adds once. One without an id is new,
        and is given an id that is free. A packed session is unpacked first. A transcript is its own journal, so there
        is no event.
        """

    def pack(self, session: str) -> int:
        """Compress the messages of a session and remove them from the search. Returns how many there were."""

    def unpack(self, session: str) -> int:
        """Make a packed session searchable again. Returns how many messages it has."""

    def erase_messages(self, session: str, ids: Sequence[str] | None = None) -> int:
        """Erase a whole session, or the messages with these ids. Returns how many there were.

        A single message stays in its place as `[erased]`, so that a transcript keeps its numbers. Forks of a whole
        session keep such blanks of their own, and belong to its parent from now on.
        """

    def rewrite(self, messages: Sequence[Message]) -> int:
        """Put these messages, of which a part was erased, in the place of those with their session and number.

        Returns how many there were.
        """

    def erase_receipts(self, numbers: Collection[int] | None = None) -> None:
        """Erase these receipts of recalls, by default all: the words of a question may be those of what is erased."""

    def bury(self, names: Sequence[str]) -> None:
        """Keep keyed marks of these fingerprints, or of other names of what was erased, for `is_erased`."""

    def carry(
        self, *, records: Sequence[Record] = (), events: Sequence[Event] = (), messages: Sequence[Message] = ()
    ) -> None:
        """Take over what another storage of this space held, as it is: ids, numbers, seals and history.

        Nothing is journaled: the events come along. They continue the journal that is here.
        """

    def lay(self, foundation: Foundation) -> None:
        """Stand on the same foundation as another storage of this space. Its packed sessions are packed."""

    def erase(self, record: Record, action: str = "erase") -> None:
        """Erase the record's row, its index entries and every payload of its events; only the fact itself is kept.

        The journal still has the name of the record: the uid of a memory, the name of a session or task.
        """


class Bookkeeping(Protocol):
    """Recall's own notes: cheap, not in the journal, and possibly lost in a power cut."""

    def count_uses(self, ids: Sequence[int], at: datetime) -> None:
        """Count one more use for each memory, now."""

    def link(self, ids: Sequence[int], at: datetime) -> None:
        """Strengthen the link between each two of these memories, which were recalled together."""

    def count(self, counters: Mapping[str, int]) -> None:
        """Add to named counters, such as `refused:chatter`."""

    def choose_model(self, model: str | None) -> None:
        """Keep vectors of this model from now on; every memory needs a new one. None: remove all vectors."""

    def save_vectors(self, model: str, vectors_made: Sequence[tuple[Memory, bytes]]) -> None:
        """Save the vectors of these memories, unless their text or the model has changed since."""

    def save_receipt(
        self, body: dict[str, Any], uids: Sequence[str], at: datetime, *, session: str | None = None
    ) -> int:
        """Save a receipt; `uids` are the memories it names, and it is erased with any of them.

        Only the newest few hundred are kept. `session`: the session was given a text without asking; then it is
        kept for 30 days.
        """

    def drop_receipts(self, uids: Sequence[str]) -> int:
        """Remove the receipts that name one of these memories, which were erased in another space."""


class Storage(Protocol):
    """One space: read it, write it, note usage."""

    space: str

    def reading(self) -> AbstractContextManager[Reader]:
        """Read one consistent state. Waits for no writer."""

    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> AbstractContextManager[Transaction]:
        """Take a turn to write. Raises Busy, naming the holder, if none was free within the time limit.

        `urgent` is a hint: something is to be removed (forget, erase), which should work even on a full disk.
        `wait_s`: wait at most this long, instead of the storage's own limit; 0 does not wait.
        """

    def in_bulk(self) -> AbstractContextManager[None]:
        """A hint that hundreds of memories will be archived: the storage may defer index work to the end."""

    def making_room(self) -> AbstractContextManager[None]:
        """Give the space held in reserve to files beside the store, which must lose erased text on a full disk."""

    def bookkeeping(self, *, passes_fence: bool = False) -> AbstractContextManager[Bookkeeping | None]:
        """Note usage without waiting. None when another writer is active; the caller then skips it.

        None as well in a space that is being moved here, unless it `passes_fence`: notes of readers would differ from
        those that the move carries over.
        """

    def lease(self, name: str, *, wait_s: float = 0.0) -> AbstractContextManager[bool]:
        """A lease on work for one process at a time: True if it is ours, False if another keeps it for `wait_s`.

        A lease does not outlive its holder: if the process dies, it is free again, at once or when it expires.
        """

    def describe(self) -> dict[str, Any]:
        """Facts about this storage for `kept status`: its kind, place, size in bytes, schema version."""

    def close(self) -> None:
        """Close files and connections. Closing twice is allowed."""


@runtime_checkable
class Distant(Protocol):
    """A storage that may be far away, so that round trips count."""

    @property
    def is_far(self) -> bool:
        """Return True if a round trip takes long enough for `in_rounds` to be worth its work."""

    def in_rounds(self, work: Callable[[], T]) -> T:
        """Run a function that reads this space; it may be run several times, until nothing is missing."""

    def settle(self) -> None:
        """Inside such a function: from here on something may change. Ends the run if an answer is missing."""


@runtime_checkable
class Scrubbing(Storage, Protocol):
    """A storage that may still hold erased text when the transaction is over. `kept.storage.scrub` asks for it."""

    def scrub(self) -> Scrubbed:
        """Finish an erasure in the files of the storage and in its automatic backups."""


@runtime_checkable
class FileStorage(Scrubbing, Protocol):
    """A storage in files of its own, which can be backed up and restored.

    Optional: `kept.storage.as_file` asks for it. A database server has its own ways to do these things.
    """

    def back_up(self, target: Path) -> BackupReport:
        """Write a checked copy of this moment to a new file, while others read and write. Never overwrites one."""

    def restore_from(self, source: Path, *, overwrite_newer: bool = False) -> RestoreReport:
        """Restore a backup. The previous state is kept as a file, and erased memories stay erased.

        Raises NotAllowed when the storage has changed since the backup was made, unless `overwrite_newer`.
        """


class Embedder(Protocol):
    """Turns texts into vectors, such that texts of similar meaning point in similar directions.

    `model` is its name, which is stored with every vector: vectors of two models cannot be compared. A model with
    another vector length needs another name.
    """

    model: str

    def embed(self, texts: Sequence[str]) -> Iterable[Sequence[float]]:
        """One row for each text, all of the same length."""


Clock = Callable[[], datetime]
