"""Write, replace and lock single files, with errors that say what to do; and mirror transcripts to files.

The lowest module of `projects`; the registry, the settings files and the mirrors are written through it.
Rule: a file is on the disk when the call returns, and only its owner may read it. A mirror is a copy in Brain's format
for people and other programs, the store is the truth: a line is written once and never changed, and after a crash a
torn last line is cut off and written again.
"""

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, StorageError
from kept.model import TRUST_BY_ROLE, Message, SessionRecord
from kept.ports import Reader
from kept.storage.files import TOO_MANY_OPEN, sync
from kept.storage.lock import Turns

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
LOOSE_BITS = 0o077  # permissions of everybody but the owner
LOCK_TIMEOUT_S = 30.0  # the promise: no write is refused within 30 s because another process writes
DRAFT_S = 10.0  # a writer needs less between making a draft and renaming it
MIRROR_WAIT_S = 0.5  # a copy is not worth waiting for: the next message brings it up to date
ANOTHER_HOME = "Choose another home with KEPT_HOME or --home."
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def shown(value: object) -> str:
    """`value` as text for a message: a file name that is not UTF-8 must not break the line that reports it."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def warn(message: str, *values: object, with_trace: bool = False) -> None:
    """Log a warning, never with words of a memory; `with_trace`: with the error that is being handled."""
    import logging  # slow to import, and hooks start often

    logging.getLogger("kept").warning(message, *values, exc_info=with_trace)


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
    draft = write_draft(path, data, mode=mode)
    try:
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_draft(path: Path, data: bytes, *, mode: int = FILE_MODE) -> Path:
    """Write a new file beside `path`, durably, to be renamed to it. Returns its path."""
    draft = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def remove_drafts(folder: Path) -> bool:
    """Delete the drafts that writers left here when they were killed. False: one is so new that it may be written."""
    is_done = True
    with explained("look at", folder):
        for draft in folder.glob(".*.tmp"):
            if re.fullmatch(r"\..+\.[0-9a-f]{8}\.tmp", draft.name) and not draft.is_symlink():
                with suppress(FileNotFoundError):
                    if time.time() - draft.stat().st_mtime > DRAFT_S:
                        draft.unlink()
                    else:
                        is_done = False
    return is_done


def read_regular(path: Path, limit: int) -> bytes:
    """The beginning of a regular file; b"" if it is missing, unreadable, or a pipe or device, which could block."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


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
    if error.errno in TOO_MANY_OPEN:
        return StorageError(why, hint="Close memories that are not in use, or open them through kept.Pool.")
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
                warn(f"{shown(path)} is open to other users, and its mode cannot be changed: {error.strerror}")


# ---- mirrors of transcripts: `sessions/<id>.jsonl`, one line a message, and `sessions.json`, their index ----


def check_session_name(name: str) -> str:
    """Return the name if it is a valid file name on every system. Raises InvalidInput."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", name) or ".." in name or name.endswith("."):
        raise InvalidInput(
            f"Invalid session id {name[:40]!r}.",
            hint="Use letters, digits, '.', '_' and '-', at most 128, starting with a letter or digit.",
        )
    return name


def to_line(message: Message) -> dict[str, Any]:
    """A message in Brain's form: {id, role, content, timestamp}, or name and input for a tool call."""
    line: dict[str, Any] = {"id": message.id, "role": message.role}
    if message.role == "tool_call":
        line |= {"name": message.name, "input": message.input or {}}
    else:
        line |= {"content": message.content} | ({} if message.name is None else {"name": message.name})
    if message.speaker is not None:
        line["speaker"] = message.speaker
    if message.is_error:
        line["is_error"] = True
    if message.trust != TRUST_BY_ROLE[message.role]:
        line["trust"] = message.trust
    if message.at is not None:
        line["timestamp"] = message.at.isoformat().replace("+00:00", "Z")
    return line


class Mirrored(NamedTuple):
    """A file as it was left: its whole lines end at byte `end`."""

    inode: int
    end: int
    lines: int


def mirror_session(folder: Path, reader: Reader, session: str, known: Mirrored | None = None) -> Mirrored:
    """Append the messages that the file of a session lacks. Raises Busy when another process is writing for long.

    Only lines written after `known`, the answer of an earlier call, are counted.
    """
    path = folder / f"{check_session_name(session)}.jsonl"
    make_private_directory(folder)
    with explained("write the transcript", path), locked(folder / "sessions.lock", timeout_s=MIRROR_WAIT_S):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_FOLLOW, FILE_MODE)
        try:
            found = _whole_lines(fd, known)
            missing = reader.messages(session, after=found.lines)
            if not missing:
                return found
            lines = b"".join(msgspec.json.encode(to_line(message)) + b"\n" for message in missing)
            if os.write(fd, lines) < len(lines):  # a full disk: the torn tail is for the next call
                return found
            return Mirrored(found.inode, found.end + len(lines), found.lines + len(missing))
        finally:
            os.close(fd)


def write_session_index(folder: Path, reading: Callable[[], AbstractContextManager[Reader]]) -> None:
    """Write the index if it is not as it should be: id, agent, parent and times of each session in the space.

    `reading` opens a reader inside the lock: the last to write has read last.
    """
    make_private_directory(folder)
    path = folder / "sessions.json"
    with locked(folder / "sessions.lock", timeout_s=MIRROR_WAIT_S), reading() as reader:
        document = msgspec.json.encode({"sessions": [index_entry(session) for session in reader.all(SessionRecord)]})
        index = msgspec.json.format(document, indent=2) + b"\n"
        if read_regular(path, len(index) + 1) != index:
            write_private_file(path, index)


def index_entry(session: SessionRecord) -> dict[str, Any]:
    """A session as it stands in a sessions.json."""
    return {
        "id": session.name,
        "agent": session.agent,
        "parent": session.parent,
        "startedAt": session.started_at,
        "finishedAt": session.finished_at,
        "archivedAt": session.packed_at,
    }


def rewrite_mirror(folder: Path, reader: Reader, session: str) -> bool:
    """Write the file of a session again after an erasure, or delete it if nothing is left. False: there was none."""
    path = folder / f"{check_session_name(session)}.jsonl"
    if not path.exists():  # nor, perhaps, the folder with its lock
        return False
    with explained("write the transcript", path), locked(folder / "sessions.lock"):
        if not path.exists():
            return False
        said = reader.messages(session)
        if said:
            write_private_file(path, b"".join(msgspec.json.encode(to_line(message)) + b"\n" for message in said))
        else:
            path.unlink()
            sync(folder)
    return True


def _whole_lines(fd: int, known: Mirrored | None) -> Mirrored:
    """How many lines the file has; a torn tail is cut off first."""
    status = os.fstat(fd)
    size = status.st_size
    is_same = known is not None and known.inode == status.st_ino and known.end <= size
    lines, end = (known.lines, known.end) if known is not None and is_same else (0, 0)
    position = os.lseek(fd, end, os.SEEK_SET)
    while position < size:
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            break
        lines += chunk.count(b"\n")
        if (last := chunk.rfind(b"\n")) >= 0:
            end = position + last + 1
        position += len(chunk)
    if end < size:
        os.ftruncate(fd, end)
    return Mirrored(status.st_ino, end, lines)
