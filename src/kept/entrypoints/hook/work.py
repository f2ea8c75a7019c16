"""Read from tool calls on which files a session works, and which tasks its sub-agents were given.

    <home>/hook/recent/SESSION        paths, one a line, the last one last
    <home>/hook/recent/SESSION.tasks  tasks that no sub-agent has begun, as JSON, one a line

SESSION is a hash. Rule: a hook writes here before it imports anything, and nothing that fails here may stop it.
"""

import os
import time
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL

from kept.entrypoints.hook import wire

FOLDER = "hook/recent"
MOST_FILES = 20
MOST_BYTES = 16_384  # of a file, before it is shortened
MOST_TASK_CHARS = 2_000
SECRET_CUES = ("password", "passwd", "secret", "token", "api key", "api-key", "api_key", "apikey", "credential")
KEPT_SECONDS = 2 * 86_400


def note_files(home: str, session: str, files: "tuple[str, ...]") -> None:
    """Note the files of a tool call."""
    lines = "".join(f"{file}\n" for file in files if file and "\n" not in file)
    if home and lines:
        _append(_path(home, session), lines)


def files_of(home: str, session: str) -> "tuple[str, ...]":
    """Return the files of the last tool calls of a session, the last one first."""
    last = reversed(_lines(_path(home, session))) if home else ()
    return tuple(dict.fromkeys(last))[:MOST_FILES]


def note_task(home: str, session: str, task: str) -> None:
    """Note a task that a sub-agent is about to be given; only its place in the order, if it may hold a secret."""
    if home and task.strip():
        said = task.lower()
        noted = "" if any(cue in said for cue in SECRET_CUES) else task[:MOST_TASK_CHARS]
        _append(f"{_path(home, session)}.tasks", wire.encoded(noted) + "\n")


def take_task(home: str, session: str) -> str:
    """Return the oldest task that no sub-agent has begun, and remove it; "" if none is known."""
    path = f"{_path(home, session)}.tasks"
    if not home or not (lines := _lines(path)):
        return ""
    first, *rest = lines
    if rest:
        _write(path, "".join(f"{line}\n" for line in rest))
    else:
        _remove(path)
    try:
        task = wire.decoded(first)
    except ValueError:
        return ""
    return task if isinstance(task, str) else ""


def _path(home: str, session: str) -> str:
    name = blake2b(session.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"{home}/{FOLDER}/{name}"


def _append(path: str, lines: str) -> None:
    """Add lines to a file of the folder, which is made if the home is there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        file = _opened(path, flags)
        try:
            size = os.fstat(file).st_size
            os.write(file, lines.encode("utf-8", "surrogateescape"))
        finally:
            os.close(file)
    except (OSError, ValueError):  # a full disk, a path that is none
        return
    if size > MOST_BYTES:
        _write(path, "".join(f"{line}\n" for line in _lines(path)[-MOST_FILES:]))


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        work = os.path.dirname(path)  # noqa: PTH120 (pathlib is slow to import)
        for folder in (os.path.dirname(work), work):  # noqa: PTH120
            if not os.access(folder, os.W_OK):
                os.mkdir(folder, 0o700)  # noqa: PTH102
        return os.open(path, flags, 0o600)


def _write(path: str, lines: str) -> None:
    draft = f"{path}.{os.getpid()}"
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            os.write(file, lines.encode("utf-8", "surrogateescape"))
        finally:
            os.close(file)
        os.replace(draft, path)  # noqa: PTH105
    except OSError:
        return


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108
    except OSError:
        return


def _lines(path: str) -> "list[str]":
    """Return the lines of a file that is not old; none if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError):
        return []
    try:
        about = os.fstat(file)
        if time.time() - about.st_mtime > KEPT_SECONDS:
            return []
        read = os.read(file, about.st_size).decode("utf-8", "surrogateescape")
        return [line for line in read.split("\n") if line]
    finally:
        os.close(file)
