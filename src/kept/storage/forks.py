"""What a fork does to an open store, and how it stays whole.

SQLite keeps books for the whole process: which locks it holds on which file. A child inherits the
books but not the locks; a connection it opens would believe itself protected, and the parent could
take the WAL away under it. So stores let go of everything before a fork. Rule: a child inherits no
connection, or it is told that it cannot use the file.
"""

import functools
import os
import weakref
from pathlib import Path
from typing import Protocol

from kept.errors import StorageError


class Forkable(Protocol):
    """Something that holds what a child process must not share."""

    def before_fork(self) -> None:
        """Let go of what can be let go of. Nothing may change until `after_fork`."""

    def after_fork(self, *, in_child: bool) -> None:
        """Go on; in the child, start anew."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_prepared: list[Forkable] = []
_inherited: list[tuple[Path, object]] = []  # for good: to close such a connection would harm the parent


def watch(store: Forkable) -> None:
    """Tell `store` about every fork of this process, as long as it lives."""
    _watched.add(store)
    _register()


def inherit(path: Path, held: object) -> None:
    """Note that this child process inherited something open on `path`, and keep it untouched."""
    _inherited.append((path, held))


def check(path: Path) -> None:
    """Raise StorageError when this process inherited an open connection to the file."""
    for other, _ in _inherited:
        if other == path or (other.exists() and path.exists() and other.samefile(path)):
            raise StorageError(
                f"This process was forked while its parent was using {path}, so it cannot write there safely.",
                hint="Start it by spawn or forkserver instead of fork, or fork while nothing is being read or written.",
            )


@functools.cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _before() -> None:
    for store in list(_watched):
        store.before_fork()
        _prepared.append(store)


def _after_in_parent() -> None:
    _after(in_child=False)


def _after_in_child() -> None:
    _after(in_child=True)


def _after(*, in_child: bool) -> None:
    while _prepared:
        _prepared.pop().after_fork(in_child=in_child)
