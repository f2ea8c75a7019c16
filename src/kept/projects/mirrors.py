"""Transcripts as files: `sessions/<id>.jsonl`, one line a message, and `sessions.json`, the index of them.

Facade layer. The rows are the truth; these files are views for people and other programs, in Brain's format. Rule: a
line is written once and never changed. A tail that a crash tore is cut back to the last whole line and written again.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kept.errors import InvalidInput
from kept.model import Message, Session
from kept.ports import Reader
from kept.projects.files import explained, locked, make_private_directory, write_private_file

MAX_NAME_CHARS = 128
_encode = msgspec.json.Encoder().encode


def check_session_name(name: str) -> str:
    """The name, if it can be a file's name anywhere. Raises InvalidInput."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", name) or ".." in name or name.endswith("."):
        raise InvalidInput(
            f"{name[:40]!r} cannot be the id of a session.",
            hint=f"Use letters, digits, '.', '_' and '-', at most {MAX_NAME_CHARS}, beginning with a letter or digit.",
        )
    return name


def to_line(message: Message) -> dict[str, Any]:
    """A message in Brain's form: {id, role, content, timestamp}, or name and input for a tool call."""
    line: dict[str, Any] = {"id": message.id, "role": message.role}
    if message.role == "tool_call":
        line |= {"name": message.name, "input": message.input or {}}
    else:
        line["content"] = message.content
    if message.role != "tool_call" and message.name is not None:
        line["name"] = message.name
    if message.speaker is not None:
        line["speaker"] = message.speaker
    if message.at is not None:
        line["timestamp"] = message.at.isoformat().replace("+00:00", "Z")
    return line


def mirror(folder: Path, session: str, messages_after: Callable[[int], Sequence[Message]]) -> None:
    """Bring the file of a session up to date; `messages_after(n)` gives the messages that follow the n-th."""
    path = folder / f"{check_session_name(session)}.jsonl"
    make_private_directory(folder)
    with explained("write the transcript", path), locked(folder / "sessions.lock"):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            missing = messages_after(_whole_lines(fd))
            if missing:
                os.write(fd, b"".join(_encode(to_line(message)) + b"\n" for message in missing))
        finally:
            os.close(fd)


def write_index(folder: Path, sessions: Sequence[tuple[Session, int]]) -> None:
    """The index: id, agent, parent, times and number of messages of each session."""
    entries = [
        {
            "id": session.name,
            "agent": session.agent,
            "parent": session.parent,
            "startedAt": session.started_at,
            "finishedAt": session.finished_at,
            "archivedAt": session.packed_at,
            "messages": count,
        }
        for session, count in sessions
    ]
    make_private_directory(folder)
    write_private_file(folder / "sessions.json", msgspec.json.format(_encode({"sessions": entries}), indent=2) + b"\n")


def write_index_of(folder: Path, reader: Reader) -> None:
    """The index of all sessions that a space has."""
    write_index(folder, [(session, reader.last_number(session.name)) for session in reader.all(Session)])


def remove(folder: Path, session: str) -> None:
    """Take the file of a session away; its rows are packed or erased."""
    (folder / f"{check_session_name(session)}.jsonl").unlink(missing_ok=True)


def _whole_lines(fd: int) -> int:
    """How many lines the file has; a torn tail is cut off first."""
    size = os.fstat(fd).st_size
    lines = end = position = os.lseek(fd, 0, os.SEEK_SET)
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
    return lines
