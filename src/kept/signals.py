"""Signals: what subscribers hear of a memory's life.

Facade layer. Rule: a subscriber is a guest. When it fails, that is logged, and nothing else happens.
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
