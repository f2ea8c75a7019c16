"""Write files atomically: write, sync, then give the file its name.

Used by every storage that writes files, and by the layers above. Rule: a file gets its name only when its bytes are on
the disk, and a name is durable only when its folder is synced.
"""

import os
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from kept.errors import NotAllowed


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


def is_read_only(path: Path) -> bool:
    """Whether the file is there and can be read at most, or its folder, in which its lock belongs."""
    if not path.exists():
        return False
    is_effective = os.access in os.supports_effective_ids
    return not all(os.access(place, os.W_OK, effective_ids=is_effective) for place in (path, path.parent))


def unused(folder: Path, name: str) -> Path:
    """A name with a number that is not taken yet; `name` says with {} where the number stands."""
    return next(path for number in count(1) if not (path := folder / name.format(number)).exists())
