"""Mirror transcripts to files: `sessions/<id>.jsonl`, one line a message, and `sessions.json`, their index.

Sessions and upkeep call it after each change. The rows in the store are the truth; the files are copies for people and
other programs, in Brain's format.
Rule: a line is written once and never changed. After a crash, a torn last line is cut off and written again.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kept.errors import InvalidInput
from kept.model import Message, Session
from kept.ports import Reader
from kept.projects.files import FILE_MODE, NO_FOLLOW, explained, locked, make_private_directory, write_private_file

_encode = msgspec.json.Encoder().encode


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
    if message.at is not None:
        line["timestamp"] = message.at.isoformat().replace("+00:00", "Z")
    return line


class Mirrored(NamedTuple):
    """A file as it was left: its whole lines end at byte `end`."""

    inode: int
    end: int
    lines: int


def mirror(
    folder: Path, session: str, messages_after: Callable[[int], Sequence[Message]], known: Mirrored | None = None
) -> Mirrored:
    """Bring the file of a session up to date; `messages_after(n)` gives the messages that follow the n-th.

    Only lines written after `known`, the answer of an earlier call, are counted.
    """
    path = folder / f"{check_session_name(session)}.jsonl"
    make_private_directory(folder)
    with explained("write the transcript", path), locked(folder / "sessions.lock"):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_FOLLOW, FILE_MODE)
        try:
            found = _whole_lines(fd, known)
            missing = messages_after(found.lines)
            if not missing:
                return found
            lines = b"".join(_encode(to_line(message)) + b"\n" for message in missing)
            if os.write(fd, lines) < len(lines):  # a full disk: the torn tail is for the next call
                return found
            return Mirrored(found.inode, found.end + len(lines), found.lines + len(missing))
        finally:
            os.close(fd)


def write_index(folder: Path, reader: Reader) -> None:
    """Write the index: id, agent, parent, times and number of messages of each session in the space."""
    entries = [
        {
            "id": session.name,
            "agent": session.agent,
            "parent": session.parent,
            "startedAt": session.started_at,
            "finishedAt": session.finished_at,
            "archivedAt": session.packed_at,
            "messages": reader.last_number(session.name),
        }
        for session in reader.all(Session)
    ]
    make_private_directory(folder)
    write_private_file(folder / "sessions.json", msgspec.json.format(_encode({"sessions": entries}), indent=2) + b"\n")


def remove(folder: Path, session: str) -> None:
    """Delete the file of a session whose rows are packed or erased."""
    (folder / f"{check_session_name(session)}.jsonl").unlink(missing_ok=True)


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
