"""Signals: what `memory.subscribe` delivers.

    memory:read     {type, path, size}            something was loaded: how many characters, from where
    memory:write    {type, path, delta}           a space, session or task has changed: how many entries it gained
    memory:flush    {sessionId}                   findings and a summary were stored, before a compaction
    memory:compact  {sessionId, before, after}    a summary replaces old messages: tokens before and after
    memory:search   {query, results}              a search: its query, and the number of hits

`type` is `memory`, `session` or `task`, `path` the space, followed by the id for a session or a task. Rule: a signal is
sent once, after the fact, and never carries the text of a memory.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kept.model import Hit, Signal

NAMES = ("memory:read", "memory:write", "memory:flush", "memory:compact", "memory:search")

Subscriber = Callable[[Signal], None]


class Signals:
    """The subscribers of one opened memory."""

    def __init__(self) -> None:
        self.has_written = False  # whether anything was changed since the memory was opened
        self._subscribers: list[Subscriber] = []

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

    def tell_search(self, query: str, results: int) -> None:
        """Signal a search. The query goes out without its secrets: subscribers keep logs."""
        if self.are_heard:
            from kept.writing.redact import redact

            self.emit("memory:search", query=redact(query).text, results=results)

    def tell_recalled(self, query: str, hits: Sequence[Hit]) -> None:
        """Signal a search, and that its hits were loaded: memories, or messages of sessions."""
        if self.are_heard:
            self.tell_search(query, len(hits))
            said = [
                (f"{hit.memory.space}/sessions", len(hit.message.content)) for hit in hits if hit.message is not None
            ]
            self.tell_read("session", said)
            self.tell_read("memory", ((h.memory.space, len(h.memory.content)) for h in hits if h.message is None))

    def emit(self, name: str, **payload: Any) -> None:
        """Tell every subscriber. An exception that one of them raises is logged and goes no further."""
        self.has_written = self.has_written or name == "memory:write"
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(Signal(name=name, payload=payload))
            except Exception:  # a guest's failure must not break a write that is already on disk
                warn("a subscriber failed on %s", name, with_trace=True)


def warn(message: str, *values: object, with_trace: bool = False) -> None:
    """Log a warning; `with_trace`: with the error that is being handled."""
    import logging  # slow to import, and hooks start often

    logging.getLogger("kept").warning(message, *values, exc_info=with_trace)
