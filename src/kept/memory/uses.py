"""Uses: which of the memories that a session was given it acted upon.

A memory that was only returned or delivered proves nothing (A9). It is used when it is reinforced, said again by
somebody else, or when the agent, after it was told, cites it or uses a name that it holds and that nobody had said in
the session before. Rule: noted like recall's own notes, never waiting, at most once per session.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kept import text, worth
from kept.memory.context import Context, by_uid
from kept.model import Memory, Message
from kept.ports import Reader, Storage

MOST_RECEIPTS = 50  # of one session: more than one that anybody would read again
_NAME = r"(?:\w+[./:-])*\w*(?:[a-z][A-Z]|_|[./]\w|\d)[\w./-]*"  # paths, snake_case, camelCase, versions, flags
_SHORTEST_NAME = 5  # letters: a shorter one turns up by chance


def note_cited(context: Context, session: str) -> None:
    """Count the memories that a session was given without asking and then acted upon."""
    storages, now = context.readable(), context.now()
    given = next(filter(None, (_given_in(storage, session) for storage in storages)), None)
    if given is None:
        return
    for storage in storages:
        with storage.reading() as reader:
            found = [(memory, at) for uid, at in given.told.items() if (memory := by_uid(reader, uid)) is not None]
        used = [
            memory
            for memory, at in found
            if worth.is_use(memory, now, session=session, since=given.since) and is_acted_upon(memory, at, given.said)
        ]
        _count(storage, used, now)


class _Given(NamedTuple):
    """A session that was given memories: since when it goes on, its messages, and uid → when it was told first."""

    since: datetime
    said: Sequence[Message]
    told: dict[str, datetime]


def _given_in(storage: Storage, session: str) -> _Given | None:
    """Return what the session was given, if this storage has the session and its receipts."""
    with storage.reading() as reader:
        told, known = _given(reader, session), reader.session(session)
        return _Given(known.started_at, reader.messages(session), told) if told and known is not None else None


def is_acted_upon(memory: Memory, told_at: datetime, messages: Sequence[Message]) -> bool:
    """Return True if the agent cites the memory after it was told, or uses a name of it that was not said before."""
    before = "\n".join(_said(one) for one in messages if not _is_answer(one, told_at))
    done = [_said(one) for one in messages if _is_answer(one, told_at) and one.role in ("assistant", "tool_call")]
    marks = [f"[id:{memory.ref}]", *(name for name in _names_in(memory.content) if name not in before)]
    return any(mark in said for said in done for mark in marks)


def _is_answer(message: Message, told_at: datetime) -> bool:
    """Return True for what was said after that moment, and not by the user."""
    return message.at is not None and message.at > told_at and message.role != "user"


def _names_in(content: str) -> set[str]:
    """Return the names that are long enough not to turn up by chance."""
    names = {name.rstrip(".:") for name in text.compiled(_NAME).findall(content)}
    return {name for name in names if len(name) >= _SHORTEST_NAME}


def _said(message: Message) -> str:
    return f"{message.content} {message.input or ''}"


def _given(reader: Reader, session: str) -> dict[str, datetime]:
    """Uid → when the session was first told that memory."""
    given: dict[str, datetime] = {}
    for _, at, body in reader.receipts_of(session, limit=MOST_RECEIPTS):  # newest first
        for section in body.get("sections", ()):
            given |= {entry["uid"]: at for entry in section["entries"]}
    return given


def _count(storage: Storage, used: Sequence[Memory], now: datetime) -> None:
    if not used:
        return
    with storage.bookkeeping() as notes:
        if notes is not None:
            notes.count_uses([memory.id for memory in used], now)
