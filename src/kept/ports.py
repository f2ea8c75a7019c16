"""What can be plugged in: the shape of a storage, and of the few things a host may replace.

A storage is opened for one space and never looks beyond it. It keeps rows and an index and
holds no policy: which memory is worth keeping, who may see it, and what a change means are
decided above. tests/contract is the full definition; a class that passes it is a storage.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from kept.model import Event, Memory, Message, Record, Scope, Session, Status, Tier

Shelf = Literal["live", "archive", "forgotten", "any"]
R = TypeVar("R", bound=Record)


class Stamp(Struct, frozen=True, kw_only=True):
    """Who does something, when, and as part of what: the same for every event of one facade call."""

    group: str
    at: datetime
    actor: str
    undoes: str | None = None


class Where(Struct, frozen=True, kw_only=True):
    """Which memories are meant. Empty means "don't care"; several words in one field mean "any of them".

    `shelf` is live (the default), archive, forgotten, or any. What was forgotten is in no
    other shelf than its own and `any`.
    """

    shelf: Shelf = "live"
    scope: Scope | None = "memory"
    tiers: tuple[Tier, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()
    uid: str | None = None
    fingerprints: tuple[str, ...] = ()
    topic: str | None = None
    key: str | None = None
    session: str | None = None
    task: str | None = None
    narrative: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Period(Struct, frozen=True, kw_only=True):
    """A stretch of time: from `since` on, and before `until`; None is open. What has no time is in `ALWAYS` alone."""

    since: datetime | None = None
    until: datetime | None = None

    def holds(self, at: datetime | None) -> bool:
        """Whether that moment lies in it."""
        if at is None:
            return self == ALWAYS
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


ALWAYS = Period()
LIVE = Where()
ANYWHERE = Where(shelf="any", scope=None)
COMMON_HANDLE = 32


class Deadline(Struct, frozen=True):
    """When an answer is due, on the stopwatch of whoever asks. Each storage turns it into what its engine offers."""

    timer: Callable[[], float]
    at: float = inf

    @property
    def left_s(self) -> float:
        """The seconds that are left; 0 or less once it is over."""
        return self.at - self.timer()

    def is_over(self) -> bool:
        """Whether the answer is late."""
        return self.timer() >= self.at


class TooLate(Exception):
    """A search was given up because its deadline was over. Never leaves the read path."""


class Prepared(Struct, frozen=True):
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
    """How a search orders what it finds: by BM25 times what a memory brings along to every query.

    `columns` says what a word counts in each column of `Prepared`. `factors` are names of worth.FACTORS, taken at the
    moment `now`, and "kind", for which `kind_weights` has the numbers. `relevance` tells how well a memory fits all
    that was asked, of which the words searched for may be a part; None: how well it fits these.
    """

    columns: tuple[float, float, float, float, float] = (1.0, 1.0, 1.0, 1.0, 1.0)
    factors: tuple[str, ...] = ()
    kind_weights: Mapping[str, float] = {}
    now: datetime | None = None
    relevance: Callable[[Prepared], float] | None = None


BY_MATCH = Ranking()


class Found(Struct, frozen=True):
    """A memory that matches, with its prepared tokens, so that the exact score can be computed anywhere.

    `rank` is the number by which the search ordered it: near to the exact score, but only comparable within one search.
    """

    memory: Memory
    prepared: Prepared
    rank: float = 0.0


class Statistics(Struct, frozen=True):
    """What BM25 needs to know of a corpus. Statistics of two spaces add up to those of their union."""

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
    backups: int = 0  # of the automatic ones: how many were rewritten, or dropped because they could not be
    elsewhere: tuple[str, ...] = ()  # backups that somebody asked for, which are theirs to delete


class BackedUp(Struct, frozen=True, kw_only=True):
    """What a backup holds, counted in the backup itself."""

    path: str
    memories: int
    events: int
    bytes: int


class Restored(Struct, frozen=True, kw_only=True):
    """What is there after going back to a backup, and where the state before it was kept."""

    memories: int
    events: int
    left_out: int = 0  # of the backup's memories: how many were erased since it was made
    replaced: str | None = None


class FoundMessage(Struct, frozen=True):
    """A message that matches, with its prepared tokens and the length of its text."""

    message: Message
    words: str
    n_words: int


class Messages(Protocol):
    """Reading conversations: messages in their order, and searching them."""

    def session(self, name: str) -> Session | None:
        """The session of that name, or None."""

    def messages(self, session: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """Messages of a session from number `after` + 1 on, in order; also of a packed session."""

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
        deadline: Deadline | None = None,
    ) -> list[FoundMessage]:
        """Messages that hold at least one of the words, best BM25 first; packed sessions are not looked at."""

    def message_statistics(self, words: Sequence[str]) -> Statistics:
        """Rows, words, and rows with each word, of all messages that are not packed."""


class VectorState(Struct, frozen=True):
    """Of which model a space keeps vectors, how many memories have theirs, and how many still wait for it."""

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
    """A consistent look at one space: everything read through it is of one moment."""

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

    def vocabulary(self, beginning: str, where: Where = LIVE, *, limit: int) -> list[str]:
        """Words of the index that begin so, in order: what a misspelt or unfinished word could have meant."""

    def statistics(self, words: Sequence[str], where: Where = LIVE) -> Statistics:
        """Rows, words, tokens, and rows with each word, of the shelf and scope of `where`.

        Its other fields are not looked at. Exact for small spaces; an estimate for the common words of large ones.
        """

    def counters(self) -> dict[str, int]:
        """What bookkeeping has counted, by name."""

    def links(self, id: int) -> list[tuple[int, float, datetime]]:
        """The memories linked to this one, strongest first: (id, strength, last recalled together)."""

    def receipt(self, id: int | None = None) -> tuple[int, datetime, dict[str, Any]] | None:
        """What a recall noted about itself: (id, when, body); the newest when no id is given."""

    def events(
        self,
        *,
        subject: str | None = None,
        group: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        """Events of the journal in order, with their payloads where these were not erased."""

    def is_erased(self, fingerprint: str) -> bool:
        """Whether a memory with this fingerprint was erased here, so that an import must not bring it back."""


class Transaction(Reader, Protocol):
    """A turn to write. All of it becomes true together when the block ends, or nothing does.

    Every change appends its event to the journal in the same stroke; there is no way to
    change a record without one.
    """

    stamp: Stamp

    def add(self, record: R, action: str) -> R:
        """Store a new record (id 0) and return it with its id. An id is never given twice."""

    def put(self, record: R, action: str) -> R:
        """Make `record` the truth for its id. Raises NotFound if the id is not there."""

    def put_many(self, memories: Sequence[Memory], action: str) -> None:
        """As `put` does for each of these memories, which differ: only that many at once may be faster."""

    def remove(self, record: Record, action: str) -> None:
        """Take a small record (an alias) away. A memory is archived by `put` and leaves by `erase` only."""

    def append(self, messages: Sequence[Message]) -> list[Message]:
        """Add messages at the end of their sessions and return them with their numbers.

        One whose session, id and role are known already is left out: adding twice adds once. One without an id is new,
        and is given an id that is free. A packed session is unpacked first. A transcript is its own journal, so there
        is no event.
        """

    def pack(self, session: str) -> int:
        """Compress the messages of a session and take them out of the search; how many there were."""

    def unpack(self, session: str) -> int:
        """Make a packed session searchable again; how many messages it has."""

    def erase_messages(self, session: str, ids: Sequence[str] | None = None) -> int:
        """Leave nothing of a session, or nothing but the place of the messages with these ids; how many there were.

        A single message stays in its place as `[erased]`, so that a transcript keeps its numbers.
        """

    def erase(self, memory: Memory, action: str = "erase") -> None:
        """Leave no trace of the memory but the fact that it was erased: row, index, and every payload of its events."""


class Bookkeeping(Protocol):
    """Recall's own notes: cheap, not in the journal, and lost when the machine loses power at the wrong moment."""

    def count_uses(self, ids: Sequence[int], at: datetime) -> None:
        """One more use for each memory, now."""

    def link(self, ids: Sequence[int], at: datetime) -> None:
        """These were recalled together: strengthen the link between each two of them."""

    def count(self, counters: Mapping[str, int]) -> None:
        """Add to named counters, such as `refused:chatter`."""

    def choose_model(self, model: str | None) -> None:
        """Keep vectors of this model from now on: every memory waits for one. None: no vectors, and none is left."""

    def save_vectors(self, model: str, vectors_made: Sequence[tuple[Memory, bytes]]) -> None:
        """Keep the vectors of these memories, unless their text, or the model, is another one by now."""

    def save_receipt(self, body: dict[str, Any], uids: Sequence[str], at: datetime) -> int:
        """Note what was asked and answered; `uids` are the memories it speaks of, with which it will be erased.

        Only the newest some hundred are kept.
        """


class Storage(Protocol):
    """One space, durably or not, behind one small door."""

    space: str

    def reading(self) -> AbstractContextManager[Reader]:
        """Look at one consistent state. Waits for no writer."""

    def writing(
        self, stamp: Stamp, *, urgent: bool = False, wait_s: float | None = None
    ) -> AbstractContextManager[Transaction]:
        """Take a turn to write. Raises Busy, naming the holder, if none was free within the time limit.

        `urgent` is a hint: something is to be removed (forget, erase), which should work even on a full disk.
        `wait_s`: wait at most this long, instead of as long as the storage was told to; 0 is not at all.
        """

    def in_bulk(self) -> AbstractContextManager[None]:
        """A hint: hundreds of memories are about to be archived. Be quick about each, and tidy up at the end."""

    def bookkeeping(self) -> AbstractContextManager[Bookkeeping | None]:
        """Note usage without waiting: None when somebody else is writing, and then it is skipped."""

    def lease(self, name: str) -> AbstractContextManager[bool]:
        """Work that only one process at a time should do: True while it is ours, False when somebody else has it.

        A lease outlives no holder: one whose process has died is free again, at once or when it expires.
        """

    def describe(self) -> dict[str, Any]:
        """Facts about this storage for `kept status`: its kind, place, size in bytes, schema version."""

    def close(self) -> None:
        """Let go of files and connections. Closing twice is allowed."""


@runtime_checkable
class FileStorage(Storage, Protocol):
    """A storage in files of its own, which it can clean of what was erased, back up and restore.

    Optional: `kept.storage.as_file` asks for it. A database server has its own ways to do these things.
    """

    def scrub(self) -> Scrubbed:
        """Finish what `erase` began, in the files of the storage and in the backups it keeps of them."""

    def back_up(self, target: Path) -> BackedUp:
        """Write a checked copy of this moment to a new file, while others read and write. Never overwrites one."""

    def restore_from(self, source: Path, *, overwrite_newer: bool = False) -> Restored:
        """Go back to what a backup holds. What was there is kept as a file, and what was erased stays erased.

        Raises NotAllowed when the storage has changed since the backup was made, unless `overwrite_newer`.
        """


class Embedder(Protocol):
    """What turns texts into rows of numbers, such that texts which mean nearly the same point nearly the same way.

    `model` is its name, which is kept beside every vector: those of two models cannot be compared, and one that gives
    longer rows, say, is another model.
    """

    model: str

    def embed(self, texts: Sequence[str]) -> Iterable[Sequence[float]]:
        """One row for each text, all of the same length."""


Clock = Callable[[], datetime]
TokenCounter = Callable[[str], int]
