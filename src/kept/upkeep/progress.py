"""How far upkeep has come by itself, in numbers that recall's bookkeeping keeps: counters of a storage.

A round visits every live memory, a few at each occasion. Rule: these numbers may be lost. What a round has done is in
the memories themselves, and one that begins anew finds nothing left to do there.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import asdict, replace

_PREFIX = "upkeep:"
_ERROR = "upkeep:error:"


class Progress(Struct, frozen=True, kw_only=True):
    """Where the round under way is, when the last one ended, and what went wrong since."""

    cursor: int = 0  # the last memory that was visited; 0: no round is under way
    memories: int = 0  # live ones that this round has met so far, and their size
    bytes: int = 0
    finished: int = 0  # seconds since 1970
    evict_to: int = 0  # making room is under way, down to so many memories; 0: it is not
    is_crowded: int = 0  # 1: a limit is exceeded, and there are too many memories to make room in passing
    failed: int = 0  # seconds since 1970
    errors: Mapping[str, int] = {}

    @property
    def finished_at(self) -> datetime | None:
        """When every memory had last been visited."""
        return _moment(self.finished)

    @property
    def failed_at(self) -> datetime | None:
        """When upkeep last failed, if it did since then."""
        return _moment(self.failed)

    def done(self, now: datetime) -> "Progress":
        """After a whole round."""
        return Progress(finished=int(now.timestamp()), is_crowded=self.is_crowded, evict_to=self.evict_to)

    def failing(self, error: Exception, now: datetime) -> "Progress":
        """After a failure. Of the error only its name is kept: a message may hold what a memory says."""
        name = type(error).__name__
        errors = {**self.errors, name: self.errors.get(name, 0) + 1}
        return replace(self, failed=int(now.timestamp()), errors=errors)


def read(counters: Mapping[str, int]) -> Progress:
    """The progress that a storage has noted."""
    fields = {name: counters.get(_PREFIX + name, 0) for name in Progress.__struct_fields__ if name != "errors"}
    errors = {name.removeprefix(_ERROR): n for name, n in counters.items() if name.startswith(_ERROR) and n}
    return Progress(**fields, errors=errors)


def steps(before: Progress, after: Progress) -> dict[str, int]:
    """What to add to the counters, so that `after` is read from them where `before` was."""
    old, new = _flat(before), _flat(after)
    moved = {name: new.get(name, 0) - old.get(name, 0) for name in old | new}
    return {name: step for name, step in moved.items() if step}


def _flat(progress: Progress) -> dict[str, int]:
    fields = asdict(progress)
    errors = fields.pop("errors")
    return {_PREFIX + name: n for name, n in fields.items()} | {_ERROR + name: n for name, n in errors.items()}


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
