"""Write, replace and lock single files, with errors that say what to do.

The lowest module of `projects`; the registry, the settings files and the transcripts are written through it.
Rule: a file is on the disk when the call returns, and only its owner may read it.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, StorageError
from kept.storage.files import sync
from kept.storage.lock import Turns

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
LOOSE_BITS = 0o077  # permissions of everybody but the owner
LOCK_TIMEOUT_S = 30.0  # the promise: no write is refused within 30 s because another process writes
ANOTHER_HOME = "Choose another home with KEPT_HOME or --home."
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def shown(value: object) -> str:
    """`value` as text for a message: a file name that is not UTF-8 must not break the line that reports it."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def make_private_directory(path: Path) -> None:
    """Make `path` a directory that only its owner may enter, and missing parents likewise."""
    with explained("make", path):
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{shown(path)} is a file; Kept needs a directory there.", hint=ANOTHER_HOME)
        for missing in reversed([step for step in (path, *path.parents) if not step.exists()]):
            missing.mkdir(DIRECTORY_MODE, exist_ok=True)
            sync(missing.parent)  # or a power cut takes the directory, with the durable file in it
    tighten(path)


def write_private_file(path: Path, data: bytes, *, mode: int = FILE_MODE) -> None:
    """Replace the file as a whole: a crash leaves the old bytes or the new ones, and once this returns, the new."""
    with explained("write", path):
        replace_file(path, data, mode=mode)
        sync(path.parent)


def replace_file(path: Path, data: bytes, *, mode: int = FILE_MODE) -> None:
    """Put a new file in the place of `path`, by a rename. Its name is durable only after `sync`."""
    draft = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock file alone, among threads and processes; after `timeout_s` seconds of waiting raise Busy.

    Not reentrant. The file stays: deleting a lock file lets two processes lock two files of one name.
    """
    with closing(Turns(path)) as turns:
        with explained("lock", path):
            if path.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            try:
                turns.take(timeout_s)
            except Busy as error:
                raise Busy(
                    f"Another process has held {shown(path)} for more than {timeout_s:g} s.",
                    hint="Try again. If this persists, end the Kept process that hangs.",
                ) from error
            except StorageError as error:
                raise error.__cause__ or error from None
        try:
            yield
        finally:
            turns.end()


@contextmanager
def explained(doing: str, path: Path | str, hint: str = f"Check its permissions. {ANOTHER_HOME}") -> Iterator[None]:
    """Turn an error of the operating system about `path` into ours; `hint` says what to do if it is not allowed."""
    try:
        yield
    except KeptError:
        raise
    except OSError as error:
        raise _explain(error, f"Kept could not {doing} {shown(path)[:300]}", hint) from error
    except (ValueError, RuntimeError) as error:  # NUL, lone surrogates; a loop of links
        why = f"Kept could not {doing} {shown(path)[:300]!r}: this is not a valid file name."
        raise InvalidInput(why, hint="Check the path.") from error


def _explain(error: OSError, failed: str, hint: str) -> KeptError:
    why = f"{failed}: {(error.strerror or type(error).__name__).lower()}."
    if error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENOENT):
        return InvalidInput(why, hint="Check the path.")
    if error.errno == errno.ELOOP:
        return NotAllowed(why, hint="Kept follows no symbolic links inside its home. Put the file itself there.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(why, hint="Free some space and try again. Nothing was changed.")
    return StorageError(why, hint=hint)


def tighten(path: Path) -> None:
    """Take away all permissions of others, if `path` is ours. If the file system refuses, log a warning."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError):  # SQLite may remove its companion files at any time
        found = path.lstat()
        if found.st_mode & LOOSE_BITS and found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode):
            try:
                path.chmod(stat.S_IMODE(found.st_mode) & ~LOOSE_BITS)
            except OSError as error:
                import logging

                warn = logging.getLogger("kept").warning
                warn("%s is open to other users, and its mode cannot be changed: %s", shown(path), error.strerror)
