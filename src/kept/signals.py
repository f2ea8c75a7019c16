"""Signals: what subscribers hear of a memory's life.

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
from collections.abc import Callable
from typing import Any

from kept.model import Signal

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
