"""Signals: what `memory.subscribe` delivers.

    memory:read     {type, path, size}            something was loaded: how many characters, from where
    memory:write    {type, path, delta}           a space, session or task has changed: how many entries it gained
    memory:flush    {sessionId}                   findings and a summary were stored, before a compaction
    memory:compact  {sessionId, before, after}    a summary replaces old messages: tokens before and after
    memory:search   {query, results}              a search: its query, and the number of hits

`type` is `memory`, `session`, `task` or `view`, `path` the space, followed by the id for a session or a task. Beside
its payload a signal names the verb that was called (`kept.memory.verbs`) and, for a search, the scope. Rule: a verb
sends each signal once for each path, after the fact, and no signal carries the text of a memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from kept.model import Hit, Signal, replace
from kept.projects.files import warn as warn

ADDED_UP = ("size", "delta", "results")  # numbers of a payload
NAMES = ("memory:read", "memory:write", "memory:flush", "memory:compact", "memory:search")

SHORTEST_SECRET = 8  # characters; nothing shorter has a shape that gives a secret away

Subscriber = Callable[[Signal], None]


class _Gathered:
    """The signals of one call of a verb, until it ends; equal ones become one, and their numbers add up."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.signals: dict[tuple[Any, ...], Signal] = {}

    def add(self, signal: Signal) -> None:
        words = {name: value for name, value in signal.payload.items() if name not in ADDED_UP}
        key = (signal.name, signal.scope, *words.items())
        known = self.signals.get(key)
        if known is not None:
            sums = {name: known.payload[name] + signal.payload[name] for name in signal.payload if name in ADDED_UP}
            signal = replace(signal, payload={**signal.payload, **sums})
        self.signals[key] = replace(signal, verb=self.verb)


class Signals:
    """The subscribers of one opened memory."""

    def __init__(self) -> None:
        self.has_written = False  # whether anything was changed since the memory was opened
        self._subscribers: list[Subscriber] = []
        self._gathering: dict[int, _Gathered] = {}  # by thread

    @property
    def are_heard(self) -> bool:
        """Whether anybody listens; if not, a costly signal need not be prepared."""
        return bool(self._subscribers)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every signal from now on. Returns a function that ends the subscription."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def tell_read(self, type: str, sizes: Iterable[tuple[str, int]]) -> None:
        """Signal that something was loaded: for each path, how many characters."""
        chars: dict[str, int] = {}
        for path, size in sizes:
            chars[path] = chars.get(path, 0) + size
        for path, size in chars.items():
            self.emit("memory:read", type=type, path=path, size=size)

    def tell_search(self, query: str, results: int, *, scope: str = "memory") -> None:
        """Signal a search. The query goes out without its secrets: subscribers keep logs."""
        if self.are_heard:
            payload = {"query": without_secrets(query), "results": results}
            self._send(Signal(name="memory:search", payload=payload, scope=scope))

    def tell_recalled(self, query: str, hits: Sequence[Hit], *, scope: str) -> None:
        """Signal a search, and that its hits were loaded: memories, or messages of sessions."""
        if self.are_heard:
            self.tell_search(query, len(hits), scope=scope)
            said = [
                (f"{hit.memory.space}/sessions", len(hit.message.content)) for hit in hits if hit.message is not None
            ]
            self.tell_read("session", said)
            self.tell_read("memory", ((h.memory.space, len(h.memory.content)) for h in hits if h.message is None))

    def emit(self, name: str, **payload: Any) -> None:
        """Send a signal: at the end of the verb that is being called in this thread, else now."""
        self.has_written = self.has_written or name == "memory:write"
        if self._subscribers:
            self._send(Signal(name=name, payload=payload))

    @contextmanager
    def gathered(self, verb: str) -> Iterator[None]:
        """Send the signals of a verb when the block ends. A verb inside of another one belongs to the outer one."""
        thread = get_ident()
        if not self._subscribers or thread in self._gathering:
            yield
            return
        gathered = self._gathering[thread] = _Gathered(verb)
        try:
            yield
        finally:  # also after an error: signals tell what was done until then
            del self._gathering[thread]
            for signal in gathered.signals.values():
                self._deliver(signal)

    def _send(self, signal: Signal) -> None:
        gathering = self._gathering.get(get_ident())
        if gathering is not None:
            gathering.add(signal)
        else:
            self._deliver(signal)

    def _deliver(self, signal: Signal) -> None:
        """Call every subscriber. An exception that one of them raises is logged and goes no further."""
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(signal)
            except Exception:  # a guest's failure must not break a write that is already on disk
                warn("a subscriber failed on %s", signal.name, with_trace=True)


def without_secrets(said: str) -> str:
    """Return the text with its secrets masked."""
    if len(said) < SHORTEST_SECRET:
        return said
    from kept.writing.redact import redact  # compiles many patterns, and most commands have nothing to mask

    return redact(said).text
