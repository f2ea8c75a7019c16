"""An opened memory: whose it is, what it may reach, and how it changes things. What all verbs stand on.

Facade layer. `memory.Kept` puts the verbs together from the modules beside this one. Rule: every door goes through
`_readable`, `_find` and `_check_change` here, and they ask access.py; one call is one group of events.

Signals: what subscribers hear of a memory's life.

    memory:read     {type, path, size}            memories or messages were loaded: how many characters, from where
    memory:write    {type, path, delta}           a space or a session has changed: by how many it has grown
    memory:flush    {sessionId}                   findings and a summary were stored, before a compaction
    memory:compact  {sessionId, before, after}    a summary stands in for old messages: tokens before and after
    memory:search   {query, results}              somebody asked: what, and how many hits there were

`type` is `memory` or `session`, `path` the space, of a session with its id behind it. Facade layer. Rule: a signal
tells what has happened, and never what a memory says. A subscriber is a guest: when it fails, that is logged, and
nothing else happens.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from kept import access, ids
from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.memory.vectors import embedder_of
from kept.model import GLOBAL, Actor, Allowance, Draft, Event, Memory, Origin, Pause, Receipt, Signal, Source, replace
from kept.ports import ANYWHERE, Clock, Embedder, Stamp, Storage
from kept.projects.spaces import Spaces
from kept.recall.candidates import Latencies
from kept.recall.select import Reranker
from kept.settings import Settings
from kept.tables import PRESETS
from kept.writing import pipeline
from kept.writing.redact import redact

NAMES = ("memory:read", "memory:write", "memory:flush", "memory:compact", "memory:search")

Subscriber = Callable[[Signal], None]
log = logging.getLogger("kept")


class Signals:
    """The subscribers of one opened memory."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []

    @property
    def are_heard(self) -> bool:
        """Whether anybody listens: what costs something to say need not be said to nobody."""
        return bool(self._subscribers)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """From now on `subscriber` hears every signal. Call what is returned to end that."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def emit(self, name: str, **payload: Any) -> None:
        """Tell everybody. Whatever a subscriber raises ends with it."""
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(Signal(name=name, payload=payload))
            except Exception:  # a guest's failure must not break a write that is already on disk
                log.warning("a subscriber failed on %s", name, exc_info=True)


Ref = int | str
Confirm = Callable[[str], bool]
# Named here, because inside the classes `list` is one of our verbs.
Memories = list[Memory]
Events = list[Event]
Storages = list[Storage]
Receipts = list[Receipt]

BATCH = (
    500  # changes a transaction, when there are many: long enough to be fast, short enough to let others have a turn
)
FEEDBACK = ("reinforce", "demote")


class Opened:
    """A memory that was opened for one project, on behalf of one actor."""

    def __init__(
        self,
        spaces: Spaces,
        *,
        actor: Actor,
        settings: Settings,
        clock: Clock,
        confirm: Confirm | None = None,
        origin: Origin = "agent",
        timer: Callable[[], float] = time.perf_counter,
        reranker: Reranker | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._spaces = spaces
        self._actor = actor
        self._settings = settings
        self._clock = clock
        self._confirm = confirm
        self._origin = origin
        self._signals = Signals()
        self._timer = timer
        self._reranker = reranker
        self._embedder = embedder
        self._latencies = Latencies()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have `subscriber(signal)` called for every signal. Returns what ends that."""
        return self._signals.subscribe(subscriber)

    def close(self) -> None:
        """Close the files. Closing twice is allowed."""
        self._spaces.close()

    # How it is done

    def _rules(self) -> pipeline.WriteRules:
        """What holds for a write right now; the echoes of the project's files are added where they matter."""
        storage = self._spaces.project()
        allow: list[str] = []
        is_paused = False
        if storage is not None:
            with storage.reading() as reader:
                allow = [allowance.digest for allowance in reader.all(Allowance)]
                is_paused = any(pause.session is None for pause in reader.all(Pause))
        return pipeline.WriteRules(
            preset=PRESETS[self._settings.preset],
            source=Source(origin=self._origin, agent=self._actor.name),
            redact_email=self._settings.redact_email,
            allow=allow,
            is_paused=is_paused or not self._settings.auto_memory,
        )

    def _is_off(self, session: str | None = None) -> bool:
        """Whether nothing is captured or injected by itself, in the project or in that session."""
        if not self._settings.auto_memory:
            return True
        storage = self._spaces.project()
        if storage is None:
            return False
        with storage.reading() as reader:
            return any(pause.session in (None, session) for pause in reader.all(Pause))

    def _find_embedder(self) -> Embedder:
        """What makes vectors: as given to `kept.open`, or as the settings say. Raises SettingsError."""
        if self._embedder is None:
            self._embedder = embedder_of(self._settings)
        return self._embedder

    def _new_id(self) -> str:
        return secrets.token_hex(4)

    def _as_actor(self) -> Actor:
        """The actor, with the opened project as its own when it came without one."""
        if self._actor.role == "project" and self._actor.project is None:
            project = self._spaces.project()
            return replace(self._actor, project=project.space if project else None)
        return self._actor

    def _readable(self) -> Storages:
        """The storages there are, the project's first. Raises NotAllowed when the actor may read none at all."""
        found = [storage for storage in (self._spaces.project(), self._spaces.shared()) if storage is not None]
        actor = self._as_actor()
        for storage in found:
            access.check_read(actor, storage.space)
        if actor.role == "skill":
            access.check_read(actor, GLOBAL)
        return found

    def _writable(self, draft: Draft) -> Storage:
        """The storage a draft goes to. Global preferences are asked about first."""
        if self._actor.role == "skill":
            access.check_write(self._actor, GLOBAL)
        if draft.tier != "global":
            storage = self._spaces.ensure_project()
            access.check_write(self._as_actor(), storage.space)
            return storage
        self._check_change(GLOBAL, draft.kind, f"Remember this {draft.kind} in global memory, for all projects?")
        return self._spaces.ensure_shared()

    def _check_change(self, space: str, kind: str, question: str) -> None:
        """Raise NotAllowed unless the actor may change this; into global only patterns go without a person's yes."""
        consent = False
        if space == GLOBAL and self._actor.role == "project":
            consent = kind == "pattern" or (self._confirm is not None and self._confirm(question))
        access.check_write(self._as_actor(), space, consent=consent)

    def _agree(self, question: str) -> None:
        """Raise NotAllowed unless a person says yes."""
        if self._confirm is None or not self._confirm(question):
            raise NotAllowed(f"This needs a yes: {question}", hint="Give `confirm=` to kept.open, or `--yes`.")

    def _find(self, ref: Ref) -> tuple[Storage, Memory]:
        """The memory and its storage, behind the one check."""
        wanted = ids.parse_ref(ref)
        for storage in self._readable():
            if wanted.uid is None and (storage.space == GLOBAL) != wanted.is_global:
                continue
            with storage.reading() as reader:
                if wanted.uid is None:
                    memory = reader.get(Memory, wanted.id)
                else:
                    memory = next(iter(reader.select(replace(ANYWHERE, uid=wanted.uid), limit=1)), None)
            if memory is not None:
                return storage, memory
        raise NotFound(f"There is no memory {wanted}.", hint="`kept list` shows what there is.")

    def _find_live(self, ref: Ref) -> tuple[Storage, Memory]:
        storage, memory = self._find(ref)
        if memory.is_archived:
            now = f" It is {heir} now." if (heir := self._heir(memory)) else ""
            raise InvalidInput(
                f"Memory {memory.ref} is archived ({memory.reason}).{now}",
                hint=f"`kept restore {memory.ref}` brings it back.",
            )
        return storage, memory

    def _heir(self, memory: Memory) -> str | None:
        """The ref of what has taken the place of a memory; None when nothing has, or when that was erased."""
        if memory.superseded_by is None:
            return None
        with suppress(NotFound):
            return self._find(memory.superseded_by)[1].ref
        return None

    def _put(
        self,
        storage: Storage,
        memory: Memory,
        action: str,
        change: Callable[[Memory, datetime], Memory],
        *,
        urgent: bool = False,
    ) -> Memory:
        """Change one memory as it is now, inside the transaction, not as it was when we looked."""
        if action in FEEDBACK:  # says something about a memory, changes nothing of what it says: nobody is asked
            access.check_write(self._as_actor(), storage.space, consent=True)
        else:
            self._check_change(storage.space, memory.kind, f"{action.capitalize()} global memory {memory.ref}?")
        with storage.writing(self._stamp(), urgent=urgent) as tx:
            current = tx.get(Memory, memory.id)
            if current is None:
                raise NotFound(f"Memory {memory.ref} was erased meanwhile.")
            changed = tx.put(change(current, tx.stamp.at), action)
        self._tell_write(storage, current.is_archived - changed.is_archived)
        return changed

    def _stamp(self, undoes: str | None = None) -> Stamp:
        return Stamp(group=secrets.token_hex(8), at=self._now(), actor=self._actor_name(), undoes=undoes)

    def _actor_name(self) -> str:
        return self._actor.name

    def _now(self) -> datetime:
        at = self._clock()
        if at.tzinfo is None:
            raise InvalidInput("The clock returned a time without a time zone.", hint="Use datetime.now(UTC).")
        return at.astimezone(UTC)

    # What subscribers hear of it, always after the fact

    def _tell_read(self, memories: Iterable[Memory]) -> None:
        """That memories were loaded: for each space, how many characters."""
        chars: dict[str, int] = {}
        for memory in memories:
            chars[memory.space] = chars.get(memory.space, 0) + len(memory.content)
        for space, size in chars.items():
            self._signals.emit("memory:read", type="memory", path=space, size=size)

    def _tell_write(self, storage: Storage, delta: int) -> None:
        """That a space has changed, and by how many memories it has grown."""
        self._signals.emit("memory:write", type="memory", path=storage.space, delta=delta)

    def _after_recall(self, receipt: str | None) -> None:
        """Something was asked for, and noted under that receipt: `upkeeping` sees whether it is time for upkeep."""

    def _tell_search(self, query: str, results: int) -> None:
        """What was looked for, without its secrets: subscribers keep logs."""
        if self._signals.are_heard:
            self._signals.emit("memory:search", query=redact(query).text, results=results)
