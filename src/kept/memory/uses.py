"""Uses: which of the memories that a session was given it acted upon.

A memory that was only returned or delivered proves nothing (A9). It is used when it is reinforced, said again by
somebody else, or when the agent, after it was told, cites it or uses a name that it holds and that nobody had said in
the session before. Rule: noted like recall's own notes, never waiting, at most once per session.
"""

from collections.abc import Sequence
from datetime import datetime

from kept import text, worth
from kept.memory.context import Context, by_uid
from kept.model import Memory, Message
from kept.ports import Reader, Storage

MOST_RECEIPTS = 50  # of one session: more than one that anybody would read again
_NAME = r"(?:\w+[./:-])*\w*(?:[a-z][A-Z]|_|[./]\w|\d)[\w./-]*"  # paths, snake_case, camelCase, versions, flags
_SHORTEST_NAME = 5  # letters: a shorter one turns up by chance


def note_cited(context: Context, session: str) -> None:
    """Count the memories that a session was given without asking and then acted upon."""
    storages = context.readable()
    for storage in storages:
        with storage.reading() as reader:
            given = _given(reader, session)
            messages = list(reader.messages(session)) if given else []
            known = reader.session(session)
        if given and known is not None:
            break
    else:
        return
    for storage in storages:
        with storage.reading() as reader:
            found = [(memory, at) for uid, at in given.items() if (memory := by_uid(reader, uid)) is not None]
        used = [
            memory
            for memory, at in found
            if worth.is_use(memory, context.now(), session=session, since=known.started_at)
            and is_acted_upon(memory, at, messages)
        ]
        _count(storage, used, context.now())


def is_acted_upon(memory: Memory, told_at: datetime, messages: Sequence[Message]) -> bool:
    """Whether the agent cites the memory after it was told, or uses a name of it that nobody had said before."""
    names = {name.rstrip(".:") for name in text.compiled(_NAME).findall(memory.content)}
    names = {name for name in names if len(name) >= _SHORTEST_NAME}
    before = [said for said in messages if said.at is None or said.at <= told_at or said.role == "user"]
    names = {name for name in names if not any(name in _said(one) for one in before)}
    done = [said for said in messages if said.role in ("assistant", "tool_call") and said not in before]
    return any(f"[id:{memory.ref}]" in _said(one) or any(name in _said(one) for name in names) for one in done)


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
