"""The context that every verb is given: whose memory it is, what it may reach, and how it changes things.

Held by `Kept`, by its namespaces, and by every open session, task and narrative; never inherited. The functions
beside this module take it as their first argument. Rule: every read and every change goes through `readable`, `find`
and `write`, which ask `access`; one call is one group of events in the journal.
"""

import os
import time
from _contextvars import ContextVar  # as contextvars does, which is one module more
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, cast

from msgspec import Struct, field

from kept import access, ids
from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.memory.signals import Signals
from kept.model import (
    GLOBAL,
    Actor,
    Allowance,
    AnyRef,
    Conflict,
    Event,
    Memory,
    Name,
    Origin,
    Pause,
    Receipt,
    SessionRecord,
    Source,
    TaskRecord,
    Tier,
    replace,
)
from kept.ports import ANYWHERE, Clock, Distant, Embedder, R, Reader, Stamp, Storage, Transaction
from kept.settings import SEED_PROFILES, Settings
from kept.storage.shared import every, random_hex
from kept.tables import PRESETS

if TYPE_CHECKING:
    from kept.memory.judge_lists import JudgeList
    from kept.memory.session_log import SessionLog
    from kept.projects.spaces import Spaces
    from kept.projects.worktree import WorkTree
    from kept.recall import Join, Reranker
    from kept.recall.candidates import Latencies
    from kept.writing.extraction import Summarizer
    from kept.writing.pipeline import WriteRules

BATCH = 500  # changes per transaction when there are many: long enough to be fast, short enough to let others in

MOST_SPEAKING = 8  # sessions of one opened memory that are compared with a memory that names none

NARRATIVE = "narrative"  # the note that names the one under way
ERASING = "erase/files"  # the note of files that are not clean yet after an erasure
SHARED = "team/shared/"  # + uid: the note of a memory shared with teammates, and the change that shared it

Ref = int | str
Confirm = Callable[[str], bool]
Judge = Callable[["JudgeList"], Mapping[str, Any] | None]  # None: the findings stay as they are
# Named here because `list` is one of our verbs: inside those classes the name means something else.
Memories = list[Memory]
Events = list[Event]
Storages = list[Storage]
Receipts = list[Receipt]
Conflicts = list[Conflict]
Sessions = list[SessionRecord]
Tasks = list[TaskRecord]

T = TypeVar("T")


# The stamp of changes that belong together, and the memory they are made in: of this thread or task alone.
_TOGETHER: "ContextVar[tuple[Context, Stamp] | None]" = ContextVar("together", default=None)


class Comparer(NamedTuple):
    """An embedder, the function that joins its finds with those of words, and a note on what it could not do."""

    embedder: Embedder | None = None
    note: str | None = None
    join: "Join | None" = None


class Context(Struct, kw_only=True, eq=False, dict=True):
    """What one opened memory works with, on behalf of one actor."""

    spaces: "Spaces"
    actor: Actor
    person: str | None = None  # on whose behalf, by name; known where a team shares the project
    settings: Settings
    clock: Clock
    still: dict[int, datetime] = field(default_factory=dict)  # thread → its time while it reads in rounds
    confirm: Confirm | None = None
    origin: Origin = "agent"
    is_hosted: bool = False  # an agent in a program of its own: what tools say to it comes later, with its transcript
    timer: Callable[[], float] = time.perf_counter
    reranker: "Reranker | None" = None
    embedder: Embedder | None = None
    judge: "Judge | None" = None  # of a program: settles the findings of each session as it ends
    summarizer: "Summarizer | None" = None
    signals: Signals = field(default_factory=Signals)
    seen_views: dict[str, str] = field(default_factory=dict)  # how files were left that people may edit
    followed: set[str] = field(default_factory=set)  # spaces whose anchors know the place of the project
    at_close: list[Callable[[], None]] = field(default_factory=list)
    latencies: "Latencies | None" = None  # how long the last recalls took, once there was one
    tend: "Callable[[Context], None] | None" = None  # a little upkeep after a recall, where that is due
    speaking: "dict[str, SessionLog]" = field(default_factory=dict)  # the last sessions begun or spoken in here

    @cached_property
    def narrative(self) -> str | None:
        """The narrative under way, which everything remembered belongs to. Read once for each opened memory."""
        storage = self.spaces.project()
        if storage is None:
            return None
        with storage.reading() as reader:
            return reader.file_notes(NARRATIVE).get(NARRATIVE)

    @property
    def has_judge(self) -> bool:
        """Whether findings are judged: by the program, or by the agents that work here, if the settings let them."""
        by_agents = self.is_hosted and self.settings.judge != "off"
        return self.settings.profile not in SEED_PROFILES and (self.judge is not None or by_agents)

    @property
    def is_person(self) -> bool:
        """Whether a person acts here, and not an agent on their behalf."""
        return self.origin == "user"

    @property
    def author(self) -> str:
        """Who says what is stored now: the actor; a person by name, where that is known."""
        return self.person if self.person is not None and self.is_person else self.actor.name

    @property
    def signature(self) -> str:
        """Who stands in the journal; an agent in a team's project with its person, so that undo finds one's own."""
        return self.author if self.person is None or self.is_person else f"{self.person} ({self.actor.name})"

    # Who may, and where

    def actor_here(self) -> Actor:
        """The actor; a project's actor that came without a project belongs to the opened one."""
        if self.actor.role == "project" and self.actor.project is None:
            project = self.spaces.project()
            return replace(self.actor, project=project.space if project else None)
        return self.actor

    def readable(self) -> Storages:
        """The storages that exist, the project's first. Raises NotAllowed when the actor may read none at all."""
        found = [storage for storage in (self.spaces.project(), self.spaces.shared()) if storage is not None]
        actor = self.actor_here()
        for storage in found:
            access.check_read(actor, storage.space)
        if actor.role == "skill":
            access.check_read(actor, GLOBAL)
        return found

    def readers(self) -> Iterator[Reader]:
        """A reader of each readable storage, one after the other; each is closed when the next is asked for."""
        for storage in self.readable():
            with storage.reading() as reader:
                yield reader

    def readable_tier(self, tier: Tier) -> Storage | None:
        """The storage of global memory for tier "global", else the project's; None if there is none yet."""
        return next((one for one in self.readable() if (one.space == GLOBAL) == (tier == "global")), None)

    def of_project(self, noun: type[R]) -> list[R]:
        """Every record of that noun in the opened project."""
        self.readable()
        storage = self.spaces.project()
        if storage is None:
            return []
        with storage.reading() as reader:
            return reader.all(noun)

    def owned(self) -> Storage:
        """The opened project's storage, which this actor may change without asking. Raises NotAllowed."""
        if self.actor.role == "skill":
            access.check_own(self.actor, GLOBAL)
        storage = self.spaces.ensure_project()
        access.check_own(self.actor_here(), storage.space)
        return storage

    def ensure_shared(self) -> Storage:
        """The storage of global memory, made if missing, for a change that `write` asks about. Raises NotAllowed."""
        access.check_write(self.actor_here(), GLOBAL)
        return self.spaces.ensure_shared()

    @contextmanager
    def switching(self) -> Iterator[Transaction]:
        """A transaction in the opened project's storage, to change a switch there."""
        storage = self.owned()
        with storage.writing(self.stamp()) as tx:
            yield tx
        self.tell_write(storage, 0)

    # Changing a space

    def write(
        self,
        storage: Storage,
        work: Callable[[Transaction], T],
        *,
        stamp: Stamp | None = None,
        urgent: bool = False,
    ) -> T:
        """Run `work` in a transaction, and return its result. Every change of the facade is made here.

        For a project agent in global memory, `work` is tried first and rolled back, and a person is asked about its
        effects. Raises NotAllowed, and nothing is changed.
        """
        stamp, actor = stamp or self.stamp(shared=storage.space == GLOBAL), self.actor_here()
        access.check_write(actor, storage.space)
        if not access.needs_consent(actor, storage.space):
            with storage.writing(stamp, urgent=urgent) as tx:
                return work(tx)
        from kept.memory import consent  # for project agents that change global memory

        return consent.write(storage, work, stamp, self.agree, urgent=urgent, is_heard=not self.is_hosted)

    def agree(self, question: str, to: str) -> None:
        """Raise NotAllowed unless a person says yes. `to`: what they agree to, without the text of a memory."""
        if self.confirm is None:
            raise NotAllowed(
                f"{access.who(self.actor)} may not {to} without a person's yes, and nobody can be asked.",
                hint="Give `confirm=` to kept.open, add `--yes`, or act `--as admin`.",
            )
        if not self.confirm(question):
            raise NotAllowed(f"{access.who(self.actor)} may not {to}: the answer was no. Nothing was changed.")

    def agree_to_allow(self, question: str) -> None:
        """Raise NotAllowed unless a person, or an admin, lets a value that looks like a secret be stored."""
        if self.actor.role != "admin":
            self.agree(question, to="store a value that looks like a secret")

    def agree_for_all(self, question: str, *, to: str) -> None:
        """Raise NotAllowed unless the actor may change global memory as a whole; a project agent asks a person."""
        actor = self.actor_here()
        access.check_write(actor, GLOBAL)
        if access.needs_consent(actor, GLOBAL):
            self.agree(question, to=to)

    # Finding and changing one memory

    def find(self, ref: Ref) -> tuple[Storage, Memory]:
        """Return the memory and its storage if the actor may read it. Raises NotFound."""
        wanted = ids.parse_ref(ref)
        for storage in self.readable():
            if wanted.id and (storage.space == GLOBAL) != wanted.is_global:
                continue
            with storage.reading() as reader:
                memory = by_ref(reader, wanted)
            if memory is not None:
                return storage, memory
        raise NotFound(f"There is no memory {wanted}.", hint="`kept list` shows what there is.")

    def find_live(self, ref: Ref) -> tuple[Storage, Memory]:
        """As `find`. Raises InvalidInput for an archived memory and names the one that replaced it."""
        storage, memory = self.find(ref)
        if memory.is_archived:
            now = f" It was replaced by {heir}." if (heir := self.heir(memory)) else ""
            raise InvalidInput(
                f"Memory {memory.ref} is archived ({memory.reason}).{now}",
                hint=f"`kept restore {memory.ref}` brings it back.",
            )
        return storage, memory

    def heir(self, memory: Memory) -> str | None:
        """The ref of the memory that replaced this one; None when none did, or when it was erased."""
        if memory.superseded_by is None:
            return None
        with suppress(NotFound):
            return self.find(memory.superseded_by)[1].ref
        return None

    def change(
        self,
        storage: Storage,
        memory: Memory,
        action: str,
        change: Callable[[Memory, datetime], Memory],
        *,
        urgent: bool = False,
    ) -> Memory:
        """Change one memory as it is inside the transaction, not as it was when it was found."""

        def work(tx: Transaction) -> tuple[Memory, Memory]:
            current = as_it_is(tx, memory)
            return current, tx.put(change(current, tx.stamp.at), action)

        current, changed = self.write(storage, work, urgent=urgent)
        self.tell_write(storage, current.is_archived - changed.is_archived)
        return changed

    # What holds now

    def now(self) -> datetime:
        """The clock's time, in UTC. It stands still for a thread that reads in rounds."""
        at = self.still.get(get_ident()) or self.clock()
        if at.tzinfo is None:
            raise InvalidInput("The clock returned a time without a time zone.", hint="Use datetime.now(UTC).")
        return at.astimezone(UTC)

    def in_rounds(self, storages: Storages, work: Callable[[], T]) -> T:
        """Run a function that reads; for a storage that is far away in few round trips, so it may run several times.

        It changes nothing before it has called `settle`. The clock stands still, so that each run asks the same.
        """
        far = next((storage for storage in storages if isinstance(storage, Distant) and storage.is_far), None)
        if far is None or get_ident() in self.still:
            return work()
        self.still[get_ident()] = self.now()
        latencies, knows_narrative = self.latencies, "narrative" in vars(self)

        def run() -> T:
            # Nothing that an earlier run has noted or guessed counts.
            self.latencies = None if latencies is None else latencies.copy()
            if not knows_narrative:
                vars(self).pop("narrative", None)
            return work()

        try:
            return far.in_rounds(run)
        finally:
            del self.still[get_ident()]

    def stamp(self, undoes: str | None = None, *, shared: bool = False) -> Stamp:
        """Who changes something, when, and as which group of the journal. `shared`: also global memory is changed."""
        if undoes is None and (held := self.held) is not None:
            return held
        group, project = random_hex(8), self.spaces.project() if shared else None
        if project is not None:  # so that undo can tell which of two changes, in two journals, was the later one
            with project.reading() as reader:
                last = reader.events(newest_first=True, limit=1)
            group = ids.shared_group(group, project.space, last[0].seq if last else 0)
        return Stamp(group=group, at=self.now(), actor=self.signature, undoes=undoes)

    @contextmanager
    def together(self) -> Iterator[str]:
        """Let all changes inside, of this thread or task, be one group of the journal, which one undo takes back."""
        stamp = self.stamp(shared=True)
        token = _TOGETHER.set((self, stamp))
        try:
            yield stamp.group
        finally:
            _TOGETHER.reset(token)

    @property
    def held(self) -> Stamp | None:
        """Return the stamp of all changes inside `together`; None outside."""
        found = _TOGETHER.get()
        return found[1] if found is not None and found[0] is self else None

    def rules(self, reader: Reader | None = None) -> "WriteRules":
        """The rules for a write right now; the echoes of the project's files are added where they matter.

        `reader`: of the project, if one is at hand.
        """
        from kept.writing.pipeline import WriteRules  # not for a recall or a prompt, which write nothing

        storage = self.spaces.project()
        if reader is None and storage is not None:
            with storage.reading() as reader:
                return self.rules(reader)
        if reader is not None and "narrative" not in vars(self):
            self.narrative = reader.file_notes(NARRATIVE).get(NARRATIVE)  # else `source` opens a second connection
        allow = [allowance.digest for allowance in reader.all(Allowance)] if reader else []
        paused = {pause.session for pause in reader.all(Pause)} if reader else set()
        return WriteRules(
            preset=PRESETS[self.settings.preset],
            source=self.source(),
            redact_email=self.settings.redact_email,
            allow=allow,
            is_paused=None in paused,
            is_capture_off=not self.settings.auto_memory,
            paused_sessions=paused,
        )

    def source(self) -> Source:
        """Return where something comes from that is stored now: who acts. A session is named by the caller alone."""
        return Source(origin=self.origin, agent=self.author, narrative=self.narrative)

    def note_speaking(self, session: "SessionLog") -> None:
        """Note that a session is going on here: a tool result of it does not become an agent's own word."""
        self.speaking.pop(session.id, None)
        self.speaking[session.id] = session
        for oldest in list(self.speaking)[:-MOST_SPEAKING]:  # a copy: threads share it
            self.speaking.pop(oldest, None)

    def seen_by(self, session: str | None) -> str | None:
        """Who sees unpromoted findings, for a `Request`: under an open preset every session, else only their own."""
        return None if PRESETS[self.settings.preset].is_open else session or ""

    def is_capture_off(self, session: str | None = None) -> bool:
        """Return True if nothing is taken from conversations: by `auto_memory`, or by a pause."""
        return not self.settings.auto_memory or self.is_paused(session)

    def is_injection_off(self, session: str | None = None) -> bool:
        """Return True if agents are given nothing without asking: by `auto_briefing`, or by a pause."""
        return not self.settings.auto_briefing or self.is_paused(session)

    def is_paused(self, session: str | None = None) -> bool:
        """Whether the project or that session is paused: then nothing of what is said in it is written."""
        storage = self.spaces.project()
        if storage is None:
            return False
        with storage.reading() as reader:
            return any(pause.session in (None, session) for pause in reader.all(Pause))

    def follow(self, storage: Storage) -> None:
        """Bring the anchors of a space up to date, so that hooks find the memories that concern a tool call."""
        from kept.memory import anchor_files  # not for a recall or a prompt, which change nothing

        is_known = storage.space == GLOBAL or storage.space in self.followed
        anchor_files.follow(self.spaces.home(), storage, None if is_known else self.place)
        self.followed.add(storage.space)

    @cached_property
    def place(self) -> str | None:
        """Return the folder of the project, as the disk names it."""
        folder = self.spaces.folder()
        return None if folder is None else os.path.realpath(folder)

    @cached_property
    def work_tree(self) -> "WorkTree | None":
        """Return the git work tree that was opened; None for any other folder, and for a portable file."""
        return self.spaces.work_tree()

    # Signals, always after the fact

    def tell_read(self, memories: Iterable[Memory]) -> None:
        """Signal that memories were loaded: for each space, how many characters."""
        self.signals.tell_read("memory", ((memory.space, len(memory.content)) for memory in memories))

    def tell_write(self, storage: Storage, delta: int) -> None:
        """Signal that a space has changed, and by how many live memories it has grown.

        Its anchors follow; in a database, where each look costs a round trip, after the turn of an agent.
        """
        if not self.spaces.is_in_database():
            self.follow(storage)
        self.signals.emit("memory:write", type="memory", path=storage.space, delta=delta)


def as_it_is(reader: Reader, memory: Memory) -> Memory:
    """The memory as it is now. Raises NotFound when it has been erased since it was found."""
    current = reader.get(Memory, memory.id)
    if current is None:
        raise NotFound(f"Memory {memory.ref} has been erased in the meantime.")
    return current


def global_first(storages: Iterable[Storage]) -> Storages:
    """The storages in the order in which one call changes them: a person's no comes before any change."""
    return sorted(storages, key=lambda storage: storage.space != GLOBAL)


def by_ref(reader: Reader, wanted: ids.Ref) -> Memory | None:
    """Return the memory that a ref names in this space, if there is one."""
    if wanted.uid is not None:
        return by_uid(reader, wanted.uid)
    if wanted.item is None:
        return reader.get(Memory, wanted.id)
    named = (one for one in every(reader, replace(ANYWHERE, scope="items")) if one.item_name == wanted.item)
    return next(iter(sorted(named, key=lambda one: (one.is_archived, -one.id))), None)


def by_uid(reader: Reader, uid: str) -> Memory | None:
    """The memory with that uid, on whichever shelf it is."""
    return next(iter(reader.select(replace(ANYWHERE, uid=uid), limit=1)), None)


class About(TypedDict, total=False):
    """Collect the arguments of `memory.remember` besides the text, for handles that store a statement the same way."""

    kind: str
    tags: Sequence[str]
    files: Sequence[Name]
    importance: float | None
    pin: bool
    tier: Tier
    topic: str | None
    source: Source | None
    key: str | None
    data: Mapping[str, Any] | None
    also: Sequence[str]
    replaces: AnyRef | Sequence[AnyRef]
    check: str | None


class Handle:
    """An open session, task or narrative: its methods are verbs of one opened memory."""

    _context: Context


M = TypeVar("M", bound=Callable[..., Any])


def verb(name: str) -> Callable[[M], M]:
    """Make a method of a handle the verb of that name: its signals carry the name, and nested calls count once."""

    def decorate(method: M) -> M:
        @wraps(method)
        def called(self: Handle, *args: Any, **named: Any) -> Any:
            with self._context.signals.gathered(name):
                return method(self, *args, **named)

        return cast(M, called)

    return decorate


def settle(storages: Storages) -> None:
    """End this run of a function in rounds if it lacks an answer; else it may change something from here on."""
    for storage in storages:
        if isinstance(storage, Distant):
            storage.settle()
