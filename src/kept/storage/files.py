"""Write files atomically: write, sync, then give the file its name.

Used by every storage that writes files, and by the layers above. Rule: a file gets its name only when its bytes are on
the disk, and a name is durable only when its folder is synced.
"""

import errno
import os
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from kept.errors import NotAllowed, StorageError

HANDLES = 4  # of an open store: the database, its WAL, the index of that, and the lock file
TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)


def sync(path: Path) -> None:
    """Return when the bytes of a file, or the names in a folder, are on the disk; Windows cannot sync a folder."""
    if sys.platform == "win32" and path.is_dir():
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_synced(path: Path, chunks: Iterable[bytes], *, is_new: bool = False) -> None:
    """Write a file that only its owner may read, and sync it. `is_new`: raise FileExistsError if it is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_EXCL if is_new else os.O_TRUNC), 0o600)
    with os.fdopen(fd, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(fd)


def give_name(part: Path, target: Path) -> None:
    """Give a complete file its name. Raises NotAllowed when there is already a file of that name."""
    try:
        os.link(part, target)  # unlike a rename, this fails when another process was faster
    except FileExistsError as error:
        raise already_there(target) from error
    except OSError:  # a file system without hard links
        part.rename(target)
    sync(target.parent)


def already_there(target: Path) -> NotAllowed:
    return NotAllowed(f"{target} already exists.", hint="Backups never overwrite a file. Give another name.")


def no_handles_left(path: Path) -> StorageError | None:
    """Return the error for a file that this process cannot open because too many are open; None if that is not so."""
    tried: list[int] = []
    try:
        while len(tried) < HANDLES:  # those of the failed attempt are closed again by now
            tried.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno in TOO_MANY_OPEN:
            return StorageError(
                f"{path} could not be opened: this process has too many open files. Each open memory takes {HANDLES}.",
                hint="Close memories that are not in use, or open them through kept.Pool. `ulimit -n` is the limit.",
            )
    finally:
        for fd in tried:
            os.close(fd)
    return None


def is_read_only(path: Path) -> bool:
    """Whether the file is there and can be read at most, or its folder, in which its lock belongs."""
    if not path.exists():
        return False
    is_effective = os.access in os.supports_effective_ids
    return not all(os.access(place, os.W_OK, effective_ids=is_effective) for place in (path, path.parent))


def unused(folder: Path, name: str) -> Path:
    """A name with a number that is not taken yet; `name` says with {} where the number stands."""
    return next(path for number in count(1) if not (path := folder / name.format(number)).exists())
