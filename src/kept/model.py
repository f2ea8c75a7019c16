"""The nouns of Kept: frozen values that every layer passes along.

Lowest layer: no storage, no clock, no settings. One word for one idea; docs/architecture.md lists the words. Rule: a
value never changes. `replace(memory, status="pinned")` makes a new one, and only a storage transaction stores it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any, ClassVar, Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr
from msgspec.structs import replace as replace

from kept.errors import InvalidInput

Tier = Literal["task", "session", "project", "global"]
Scope = Literal["memory", "items", "sources"]
Status = Literal["candidate", "confirmed", "pinned", "archived"]
Reason = Literal["expired", "evicted", "superseded", "rejected", "forgotten"]
RejectedAs = Literal["forgotten", "overruled", "wrong"]
Origin = Literal["user", "agent", "conversation", "tool", "import", "migration", "extraction", "narrative"]
Outcome = Literal["stored", "strengthened", "candidate", "refused"]
ConflictType = Literal["contradictory", "superseded", "ambiguous"]
Role = Literal["admin", "project", "skill"]
MessageRole = Literal["user", "assistant", "tool_call", "tool_result", "summary", "system"]
Trust = Literal["unknown", "tool", "agent", "teammate", "user"]  # whose words a text is made of, least first
GuardMode = Literal["stop", "tell"]
TaskState = Literal["pending", "active", "blocked", "done", "failed", "cancelled"]

GLOBAL = "global"
ERASED = "[erased]"  # what stands in the place of an erased message, or of an erased passage
PROPOSED = "proposed-global"  # the tag of what an agent wants in global memory, until a person decides in a review

# Their shelf life, importance and weight are in `tables`.
KINDS = tuple(
    "decision architecture pattern convention warning discovery error preference file_change progress summary fact "
    "reasoning tool_output".split()
)

# Words that other systems use for our kinds. Any other word is a kind of its own: the vocabulary is open.
KIND_ALIASES: Mapping[str, str] = {
    "failure": "error",
    "task_progress": "progress",
    "claim": "fact",
    "note": "fact",
    "entity": "fact",
    "task": "progress",
}

# ---- trust: a text has the least of what it was made from, and only a person's act raises it ----

TRUSTS: tuple[Trust, ...] = get_args(Trust)
LOW_TRUST: tuple[Trust, ...] = ("unknown", "tool")  # never pinned, never confirmed by use, never an instruction
_RANK = {trust: rank for rank, trust in enumerate(TRUSTS)}

# The trust of a text that comes without one, and the most that it can have. A conversation has several speakers.
TRUST_BY_ORIGIN: Mapping[Origin, Trust] = {
    "user": "user",
    "agent": "agent",
    "conversation": "agent",
    "extraction": "agent",
    "narrative": "agent",
    "import": "agent",
    "migration": "agent",
    "tool": "tool",
}
TRUST_BY_ROLE: Mapping[MessageRole, Trust] = {
    "user": "user",
    "assistant": "agent",
    "tool_call": "agent",
    "tool_result": "tool",
    "summary": "agent",
    "system": "agent",
}


def least(*trusts: Trust) -> Trust:
    """The least of these."""
    return min(trusts, key=_RANK.__getitem__)


ALSO = "also"  # in the data of a memory: other words to find it by
PROPOSAL = "proposal"  # the tag of an unjudged finding
REJECTED = "rejected"  # the tag of a candidate that repeats a rejected statement: only a person confirms it
ASKED = "asked"  # the tag of a candidate that may belong to another project: only a person confirms it
NOTE_OF = "note_of"  # in the data of a memory: the agent whose own memory says it in a note
CHECK = "check"  # in the data of a memory: a file, symbol or command that shows whether it still holds
OVERRIDES = "overrides"  # in the data of a memory: uids of global memories that do not hold in its project


SHOWN_CHARS = 60  # of a text in a repr: one line


def _shortened(said: str) -> str:
    return repr(said if len(said) <= SHOWN_CHARS else f"{said[: SHOWN_CHARS - 1]}…")


class Source(Struct, frozen=True, kw_only=True, gc=False):  # holds only names: no cycles to collect
    """Who said it, and where."""

    origin: Origin = "agent"
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    narrative: str | None = None
    file: str | None = None
    line: int | None = None


ITEM = "item"  # in the data of an item: its id in items.json
SOURCE_NAMES = ("agent", "session", "task", "narrative", "file")  # the fields of a source that callers name


class Draft(Struct, frozen=True, kw_only=True):
    """A statement to remember, before any rule has checked it. `created_at`: when it was said, if that was not now."""

    content: str
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    importance: float | None = None
    confidence: float = 1.0
    trust: Trust | None = None  # None: as its source says
    pin: bool = False
    tier: Tier = "project"
    topic: str | None = None
    source: Source | None = None
    key: str | None = None
    scope: Scope = "memory"
    item_type: str | None = None
    title: str | None = None
    data: dict[str, Any] | None = None
    created_at: datetime | None = None


class Record(Struct, frozen=True, kw_only=True):
    """A noun that a storage keeps under an id, with every change in the journal. `id` is 0 until it is stored."""

    noun: ClassVar[str]
    named_by: ClassVar[str]  # the field that names one of its kind

    id: int = 0

    @property
    def subject(self) -> str:
        """The name of this record in the journal."""
        return f"{self.noun}:{getattr(self, self.named_by) or ''}"


class Memory(Record, frozen=True, kw_only=True):
    """One self-contained statement worth keeping.

    `importance`, `confidence`, `feedback` and `use_count` are recorded facts; the worth of a memory is computed from
    them and the clock, and never written back. A memory of low trust is always a candidate.
    """

    noun: ClassVar[str] = "memory"

    uid: str
    space: str
    content: str
    fingerprint: str
    kind: str = "fact"
    tier: Tier = "project"
    scope: Scope = "memory"
    status: Status = "confirmed"
    reason: Reason | None = None
    importance: float = 0.5
    confidence: float = 1.0
    trust: Trust = "unknown"
    feedback: int = 0
    use_count: int = 0
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    topic: str | None = None
    key: str | None = None
    item_type: str | None = None
    title: str | None = None
    superseded_by: str | None = None
    source: Source = Source()
    data: dict[str, Any] | None = None
    created_at: datetime
    updated_at: datetime
    last_hit_at: datetime | None = None
    last_used_at: datetime | None = None
    verified_at: datetime | None = None
    archived_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.trust in LOW_TRUST and self.status in ("confirmed", "pinned"):
            force_setattr(self, "status", "candidate")

    @property
    def subject(self) -> str:
        """The uid: a name that survives export, import and merge."""
        return self.uid

    @property
    def ref(self) -> str:
        """The id that people and agents type: `42`, `g42` in the global space; of a message, `session#12`."""
        return f"g{self.id}" if self.space == GLOBAL else self.uid if "#" in self.uid else str(self.id)

    def __repr__(self) -> str:
        return f"<Memory {self.ref} {self.kind}: {_shortened(self.content)}>"

    @property
    def is_proposal(self) -> bool:
        """Return True if a memory waits for a judge: it is not told to other sessions as a fact."""
        return self.status == "candidate" and PROPOSAL in self.tags

    @property
    def is_rejected(self) -> bool:
        """Return True if no agent is told it, and only a person may confirm it.

        An agent repeats a forgotten or rejected statement in it, or it is a note that may belong to another project.
        """
        return self.status == "candidate" and not {REJECTED, ASKED}.isdisjoint(self.tags)

    def as_draft(self, **changes: Any) -> Draft:
        """The memory as a new draft, with some fields changed."""
        fields = {name: getattr(self, name) for name in Draft.__struct_fields__ if name != "pin"}
        return Draft(**{**fields, "pin": self.status == "pinned", **changes})

    def archived(self, reason: Reason, at: datetime, *, superseded_by: str | None = None) -> "Memory":
        """The memory in the archive, since `at` and for that reason."""
        heir = superseded_by or self.superseded_by
        return replace(self, status="archived", reason=reason, superseded_by=heir, archived_at=at, updated_at=at)

    @property
    def is_low_trust(self) -> bool:
        """Whether a tool or somebody unknown wrote it: it is quoted and labelled, and never an instruction."""
        return self.trust in LOW_TRUST

    def vouched_for(self) -> "Memory":
        """The memory after a person has accepted its text: as if they had said it. Call it for a person's act only."""
        accepted = replace(self, trust="user") if self.is_low_trust else self
        return replace(accepted, tags=tuple(tag for tag in self.tags if tag not in (REJECTED, ASKED)))

    @property
    def is_cited(self) -> bool:
        """Return True if extraction took it from a file, and cites the line: it says what the file says."""
        return self.scope != "memory" and self.source.file is not None

    @property
    def item_name(self) -> str:
        """Return the id of an item in items.json."""
        return str((self.data or {}).get(ITEM) or f"item_{self.uid}")

    @property
    def is_archived(self) -> bool:
        return self.status == "archived"

    @property
    def is_forgotten(self) -> bool:
        return self.reason == "forgotten"


class Conflict(Record, frozen=True, kw_only=True):
    """Two memories, by uid, that disagree; `left` is the newer one.

    `rule` names how they disagree (`writing.conflicts`).
    """

    noun: ClassVar[str] = "conflict"

    left: str
    right: str
    type: ConflictType
    rule: str = ""
    detected_at: datetime
    resolved_at: datetime | None = None

    @property
    def ref(self) -> str:
        return f"c{self.id}"

    @property
    def subject(self) -> str:
        return self.ref


class Alias(Record, frozen=True, kw_only=True):
    """A word, and the other words that a query for it also searches."""

    noun: ClassVar[str] = "alias"
    named_by: ClassVar[str] = "word"

    word: str
    expands_to: tuple[str, ...]


class SessionRecord(Record, frozen=True, kw_only=True):
    """A conversation. Messages are only added to it; these are its marks.

    `checked` is the number of the last message that was searched for findings, `flushed` of the last message before
    which findings and a summary were stored, `ended` of the last message that a finish took into account. A fork
    begins with the first `shared` messages of its parent, which are stored once. `summary`, `findings` and `promoted`
    are the uids of the memories that the last finish left, repeated or promoted: these hold the statements.
    """

    noun: ClassVar[str] = "session"
    named_by: ClassVar[str] = "name"

    name: str
    agent: str | None = None
    parent: str | None = None
    shared: int = 0
    cwd: str | None = None
    summary: str = ""
    findings: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    checked: int = 0
    flushed: int = 0
    ended: int = 0
    started_at: datetime
    finished_at: datetime | None = None
    packed_at: datetime | None = None


class TaskRecord(Record, frozen=True, kw_only=True):
    """A piece of work. It ends `done`, `failed` or `cancelled`; `blocked_by` names the tasks it waits for."""

    noun: ClassVar[str] = "task"
    named_by: ClassVar[str] = "name"

    name: str
    description: str = ""
    state: TaskState = "pending"
    milestone: str | None = None
    priority: int | None = None
    acceptance_criteria: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    created_at: datetime
    completed_at: datetime | None = None

    @property
    def has_ended(self) -> bool:
        return self.completed_at is not None


class Pause(Record, frozen=True, kw_only=True):
    """Automatic capture and injection are off: in the whole project, or in one session."""

    noun: ClassVar[str] = "pause"
    named_by: ClassVar[str] = "session"

    session: str | None = None
    since: datetime


class Allowance(Record, frozen=True, kw_only=True):
    """A value that looks like a secret, and that a person declared harmless. Only its digest is stored."""

    noun: ClassVar[str] = "allowance"
    named_by: ClassVar[str] = "digest"

    digest: str
    note: str = ""


class CallGuard(Record, frozen=True, kw_only=True):
    """A person's word on a memory, by uid: a tool call that it concerns is refused once (`stop`), or not (`tell`).

    `overridden` counts how often a refused call was made again all the same, since `mode` was last set.
    """

    noun: ClassVar[str] = "guard"
    named_by: ClassVar[str] = "memory"

    memory: str
    mode: GuardMode = "stop"
    since: datetime
    overridden: int = 0


class Rejection(Record, frozen=True, kw_only=True):
    """A statement that must not come back unasked: the memory that said it, by uid, and how to recognise it.

    `words` is its skeleton (`writing.rejections`). An erased statement has no rejection, only a keyed hash.
    """

    noun: ClassVar[str] = "rejection"
    named_by: ClassVar[str] = "memory"

    memory: str
    fingerprint: str
    words: tuple[str, ...] = ()
    scope: Scope = "memory"
    reason: RejectedAs = "forgotten"
    who: str
    at: datetime


# Every noun but Memory: few enough to read all of them at once.
SMALL_NOUNS: tuple[type[Record], ...] = (
    Conflict,
    Alias,
    SessionRecord,
    TaskRecord,
    Pause,
    Allowance,
    CallGuard,
    Rejection,
)
NOUNS: tuple[type[Record], ...] = (Memory, *SMALL_NOUNS)


REDACT = "redact"  # the action of an event that put a record back without its erased part
IMPORT = "import"  # the action of an event that brought a record from elsewhere; undo does not step behind it


class Event(Struct, frozen=True, kw_only=True):
    """One line of the journal: who did what to which record.

    `changed` maps a field to (before, after), in wire form. It is None once the payload was erased; digest, prev and
    hash stay, so the chain still verifies.
    """

    seq: int
    group: str
    at: datetime
    actor: str
    action: str
    subject: str
    undoes: str | None = None
    digest: str
    prev: str
    hash: str
    salt: str | None = None
    changed: dict[str, tuple[Any, Any]] | None = None


class Actor(Struct, frozen=True, kw_only=True):
    """Who is asking. `project` is the own space of a project agent."""

    role: Role = "project"
    project: str | None = None
    name: str = "agent"

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise InvalidInput(
                f"Unknown role {str(self.role)[:40]!r}.", hint=f"Choose one of {', '.join(get_args(Role))}."
            )


class Redaction(Struct, frozen=True, kw_only=True):
    """How many secrets of a kind were taken out of a draft. Never the secret."""

    kind: str
    count: int


KEY_TAKEN = "key_taken"  # why a draft was refused whose key another text has


class Receipt(Struct, frozen=True, kw_only=True):
    """The result of a write, and why."""

    outcome: Outcome
    ref: str | None = None
    memory: Memory | None = None
    reason: str | None = None
    message: str = ""
    redactions: tuple[Redaction, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    near: tuple[str, ...] = ()  # refs of memories that say nearly the same
    superseded: tuple[str, ...] = ()  # refs of the memories that it replaced
    repeats: str | None = None  # the uid of the memory that says the same, if it was refused as an echo
    found: dict[str, int] = {}  # of an erasure: in which places, and how often in each, the text was found

    @property
    def is_known(self) -> bool:
        """Return True if the statement, or its key, was there before, so that no memory was added."""
        return self.outcome == "strengthened" or self.reason in ("already_stored", KEY_TAKEN)

    def __repr__(self) -> str:
        why = ": ".join(filter(None, (self.reason, self.message)))
        return f"<Receipt {self.outcome}{f' {self.ref}' if self.ref else ''}{f' ({why})' if why else ''}>"


CONTEXT = "(context)"  # the name of a tool result that answers no call: text that a program put into a conversation


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation, as it was said. A tool call has a name and an input, a tool result a content.

    A `summary` replaces the messages before it in a compacted view. `is_error`: the result of a tool call that failed.
    The storage sets `session` and `n`, its number.
    `trust` is that of its speaker, or less: a tool result never has the user's.
    """

    id: str
    role: MessageRole
    session: str = ""
    n: int = 0
    content: str = ""
    name: str | None = None
    input: dict[str, Any] | None = None
    at: datetime | None = None
    speaker: str | None = None
    is_error: bool = False
    trust: Trust = "user"

    def __repr__(self) -> str:
        said = f"{self.name}({self.input})" if self.role == "tool_call" else self.content
        return f"<Message {self.session}#{self.n} {self.role}: {_shortened(said)}>"

    def __post_init__(self) -> None:
        most = TRUST_BY_ROLE.get(self.role, "unknown")
        if self.trust is not most and _RANK.get(self.trust, 0) > _RANK[most]:
            force_setattr(self, "trust", most)


class Hit(Struct, frozen=True, kw_only=True):
    """A memory that answers a query, with its score and why.

    `why` maps each factor to its number; their product is `score` (formulas: `recall/score.py`). `matched` maps each
    word of the query that was found to how it was found, if not literally ("alias of auth", "near middelware").
    """

    memory: Memory
    score: float
    why: dict[str, float]
    matched: dict[str, str] = {}
    parts: dict[str, float] = {}
    message: Message | None = None  # in scope `sessions`, where the parts of `why` add up
    confidence: float | None = None  # how likely it answers, from 0 to 1; None for messages
    note: str = ""  # on its code: "src/x.py has changed since"
    branch: str = ""  # "on branch exp", if it belongs to an unmerged branch that is not checked out
    until: str = ""  # "until 3 Nov (replaced by 42)", if it stopped being true

    def __repr__(self) -> str:
        return f"<Hit {self.ref} score={self.score:.3g}: {_shortened(self.content)}>"

    @property
    def ref(self) -> str:
        """The ref of the memory; for a message, its session and number."""
        return self.memory.ref if self.message is None else self.memory.uid

    @property
    def content(self) -> str:
        """What the memory, or the message, says."""
        return self.memory.content if self.message is None else self.message.content


class Miss(Struct, frozen=True, kw_only=True):
    """A memory that was considered and not returned, and why."""

    hit: Hit
    reason: str


class Recalled(Struct, frozen=True, kw_only=True):
    """The answer to a query: hits (best first), pinned memories, conflicts, and the nearest misses.

    `confidence` is the highest of all memories that were considered. Below the floor of the profile nothing fits, so
    `hits` is empty, and `misses` has what was held back. `degraded` is None, or a sentence that says which part of the
    search was cut short.
    """

    hits: tuple[Hit, ...] = ()
    pinned: tuple[Memory, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    misses: tuple[Miss, ...] = ()
    words: tuple[str, ...] = ()
    confidence: float | None = None
    degraded: str | None = None
    took_ms: float = 0.0
    receipt: str | None = None

    def __repr__(self) -> str:
        return f"<Recalled: {len(self.hits)} hits{f', {self.degraded}' if self.degraded else ''}>"

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]


class Entry(Struct, frozen=True, kw_only=True):
    """A memory in a briefing, and why it is there. `is_unjudged`: it is told before anybody has judged it.

    `note`, `branch` and `until` are as in a `Hit`.
    """

    memory: Memory
    reason: str
    is_unjudged: bool = False
    note: str = ""
    branch: str = ""
    until: str = ""

    @property
    def ref(self) -> str:
        return self.memory.ref


class Omission(Struct, frozen=True, kw_only=True):
    """A memory that could have been in a briefing, and why it is not."""

    ref: str
    reason: str


class Section(Struct, frozen=True, kw_only=True):
    """One part of a briefing, its budget, and the tokens it used; the tokens of all sections add up to the text.

    The parts with memories are always, bridge, retrieval and summary; `tasks` are the open tasks, `frame` is the rest.
    """

    name: str
    budget: int
    tokens: int = 0
    entries: tuple[Entry, ...] = ()


class Briefing(Struct, frozen=True, kw_only=True):
    """Recalled text within a budget and in a style. `str(briefing)` is the text; it may be empty.

    `error` is None, or a sentence that says why the briefing is empty: a briefing never raises.
    """

    text: str = ""
    style: str = "xml"
    budget: int = 0
    tokens: int = 0
    sections: tuple[Section, ...] = ()
    left_out: tuple[Omission, ...] = ()
    error: str | None = None
    receipt: str | None = None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Briefing: {self.tokens} tokens{f', {self.error}' if self.error else ''}>"


class Signal(Struct, frozen=True, kw_only=True):
    """An event for subscribers: memory:read, :write, :flush, :compact or :search, with its payload.

    `verb` is the one that was called, and `scope` says where a search searched.
    """

    name: str
    payload: dict[str, Any]
    verb: str = ""
    scope: str = ""


Name = str | PurePath


AnyRef = int | str | Memory | Hit  # a memory, wherever a ref is taken


def texts_of(memory: Memory) -> tuple[str, ...]:
    """Return the texts that a memory is found by, as they are written; the one that it states comes first."""
    also = (memory.data or {}).get(ALSO, ())
    return (f"{memory.title or ''} {memory.content}", *memory.tags, *also, *memory.files, memory.kind)


def as_ref(named: AnyRef) -> int | str:
    """Return a ref that was given as such, or as the memory or hit that it names."""
    memory = named.memory if isinstance(named, Hit) else named
    return memory.uid if isinstance(memory, Memory) else memory


def as_refs(given: AnyRef | Iterable[AnyRef], name: str) -> tuple[str, ...]:
    """Return one ref or several as a tuple of strings. Raises InvalidInput for anything else."""
    is_one = isinstance(given, int | str | Memory | Hit) and not isinstance(given, bool)
    if not is_one and (isinstance(given, bytes | Mapping) or not isinstance(given, Iterable)):
        raise InvalidInput(
            f"{name} must be a list of refs, not {type(given).__name__}.",
            hint='Give refs like 42 and "g7", or memories.',
        )
    return tuple(str(as_ref(one)) for one in ((given,) if is_one else given))  # type: ignore[union-attr,arg-type]


def several(names: Name | Iterable[Name] | None) -> tuple[str, ...]:
    """Names or paths as a tuple of strings; a single string is one name. Raises InvalidInput for anything else."""
    if names is None:
        return ()
    if isinstance(names, str | PurePath):
        return (str(names),)
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        raise InvalidInput(f"Expected a list of names, got {type(names).__name__}.")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str | PurePath):
            raise InvalidInput(f"Each name must be a string, not {type(name).__name__}.")
    return tuple(map(str, listed))


def canonical_kind(kind: str) -> str:
    """The kind under the name that Kept uses for it: `failure` is `error`, `Task Progress` is `progress`."""
    word = "_".join(kind.lower().replace("-", " ").split())
    return KIND_ALIASES.get(word, word)
