"""Few round trips to a storage that is far away.

Rule: a function that is run in rounds may be run several times; it changes nothing before it has called `settle`.
"""

from _thread import get_ident
from collections.abc import Callable

from kept.memory.context import Context, Storages
from kept.ports import Distant, T


def in_rounds(context: Context, storages: Storages, work: Callable[[], T]) -> T:
    """Run a function that reads; where a storage is far away in few round trips, for which it may run several times.

    It changes nothing before it has called `settle`. The clock stands still, so that each run asks the same.
    """
    far = next((storage for storage in storages if isinstance(storage, Distant)), None)
    if far is None or get_ident() in context.still:
        return work()
    context.still[get_ident()] = context.now()
    try:
        return far.in_rounds(work)
    finally:
        del context.still[get_ident()]


def settle(storages: Storages) -> None:
    """End this run of such a function if it lacks an answer; else it may change something from here on."""
    for storage in storages:
        if isinstance(storage, Distant):
            storage.settle()
