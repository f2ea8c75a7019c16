"""Single files and directories: private, replaced as a whole, locked, and with errors that say what to do.

Facade layer, under `home`, `places` and `projects`.
Rule: what is written here is on the disk when the call returns, and only its owner may read it.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, StorageError

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
LOOSE_BITS = 0o077  # what others than the owner may do: nothing
LOCK_TIMEOUT_S = 30.0  # the promise: no write is refused within 30 s because another process writes
ANOTHER_HOME = "Choose another home with KEPT_HOME or --home."
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def shown(value: object) -> str:
    """`value` as text for a message: a file name that is not UTF-8 must not break the line that reports it."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def make_private_directory(path: Path) -> None:
    """`path` is a directory that only its owner may enter; missing parents are made so too."""
    with explained("make", path):
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{shown(path)} is a file; Kept needs a directory there.", hint=ANOTHER_HOME)
        for missing in reversed([step for step in (path, *path.parents) if not step.exists()]):
            missing.mkdir(DIRECTORY_MODE, exist_ok=True)
            sync_directory(missing.parent)  # or a power cut takes the directory, with the durable file in it
    tighten(path)


def write_private_file(path: Path, data: bytes, *, mode: int = FILE_MODE) -> None:
    """Replace the file as a whole: a crash leaves the old bytes or the new ones, and once this returns, the new."""
    draft = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}.tmp")
    with explained("write", path):
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, mode), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory as durable as the files; Windows has no such call."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock file alone, among threads and processes; after `timeout_s` seconds of waiting raise Busy.

    Not reentrant. The file stays: deleting a lock file lets two processes lock two files of one name.
    """
    with explained("lock", path):
        release = _take_turn(path, timeout_s)
    if release is None:
        raise Busy(
            f"Another process has held {shown(path)} for more than {timeout_s:g} s.",
            hint="Try again; if it stays so, end the Kept process that hangs.",
        )
    try:
        yield
    finally:
        release()


if sys.platform == "win32":

    def _take_turn(path: Path, timeout_s: float) -> Callable[[], None] | None:
        from filelock import FileLock, Timeout

        lock = FileLock(path)
        try:
            lock.acquire(timeout=timeout_s)
        except Timeout:
            return None
        return lock.release

else:

    def _take_turn(path: Path, timeout_s: float) -> Callable[[], None] | None:
        """Lock the file and return how to unlock it, or None if that was not possible in time.

        Waiting means blocking in flock, which serves in turn; asking again and again starves. A blocked flock can't
        be called off, so a thread blocks, and if nobody waits for it any more it gives the lock back.
        """
        import fcntl
        import threading

        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, FILE_MODE)
        deciding, is_ours, is_given_up = threading.Lock(), threading.Event(), threading.Event()

        def release() -> None:
            # Unlocked before it is closed: a child forked meanwhile shares the descriptor and would keep the lock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

        def block() -> None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with deciding:
                is_ours.set()
                if is_given_up.is_set():
                    release()

        def stop_waiting() -> bool:
            with deciding:
                is_given_up.set()
                return is_ours.is_set()

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return release
        except BlockingIOError:
            threading.Thread(target=block, name="kept-lock", daemon=True).start()
        except OSError:
            os.close(descriptor)
            raise
        try:
            is_ours.wait(timeout_s)
        except BaseException:  # Ctrl-C
            if stop_waiting():
                release()
            raise
        return release if stop_waiting() else None


@contextmanager
def explained(doing: str, path: Path | str, hint: str = f"Make it yours to write. {ANOTHER_HOME}") -> Iterator[None]:
    """Turn what the operating system says about `path` into an error with a next step.

    `hint` is for what the user is not permitted to do there.
    """
    try:
        yield
    except KeptError:
        raise
    except OSError as error:
        raise _explain(error, f"Kept could not {doing} {shown(path)[:300]}", hint) from error
    except (ValueError, RuntimeError) as error:  # NUL, lone surrogates; a loop of links
        why = f"Kept could not {doing} {shown(path)[:300]!r}: no file can have that name."
        raise InvalidInput(why, hint="Check the path.") from error


def _explain(error: OSError, failed: str, hint: str) -> KeptError:
    why = f"{failed}: {(error.strerror or type(error).__name__).lower()}."
    if error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENOENT):
        return InvalidInput(why, hint="Check the path.")
    if error.errno == errno.ELOOP:
        return NotAllowed(why, hint="Kept follows no symbolic link inside its home; put the file itself there.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(why, hint="Free some space and try again; nothing was changed.")
    return StorageError(why, hint=hint)


def tighten(path: Path) -> None:
    """Take from others what they may do with `path`, if it is ours. If the file system refuses, the log says so."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError):  # SQLite removes its companions when it likes
        found = path.lstat()
        if found.st_mode & LOOSE_BITS and found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode):
            try:
                path.chmod(stat.S_IMODE(found.st_mode) & ~LOOSE_BITS)
            except OSError as error:
                import logging

                warn = logging.getLogger("kept").warning
                warn("%s is open to other users, and its mode can't be changed: %s", shown(path), error.strerror)
