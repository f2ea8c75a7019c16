"""The record of a session (C9): its summary, its findings, and their place in the project's memory now.

A finding is one memory, however many sessions say it: `Session.findings` names also those that another session was the
first to say. Rule: a record follows the memories. It shows their present state, and nothing that was forgotten.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from kept.errors import NotFound
from kept.memory.context import Context, Memories, by_uid
from kept.memory.findings import findings_of, is_withdrawn, message_id_of, taken_from
from kept.memory.promotion import FROM_UID
from kept.memory.session_summary import ancestors, summary_of
from kept.model import Memory, SessionRecord
from kept.ports import Reader

RECORD_VERSION = 1


def record_of(context: Context, reader: Reader, session: SessionRecord) -> dict[str, Any]:
    """Return a session as its last finish left it, with its findings as they are now, the oldest first."""
    summary = summary_of(reader, session.name) or _finished_with(reader, session)
    found = sorted(_ever_said_in(reader, session), key=lambda one: (one.created_at, one.id))
    context.tell_read([*([] if summary is None else [summary]), *found])
    return {
        "version": RECORD_VERSION,
        "sessionId": session.name,
        "parentSessionId": session.parent,
        "agentId": session.agent,
        "summary": None if summary is None else summary.content,
        "findings": [_finding_line(context, memory) for memory in found],
        "createdAt": session.started_at,
        "finalizedAt": session.finished_at,
    }


def said_in(reader: Reader, session: SessionRecord) -> Memories:
    """Return the live findings of a session, newest first, also those that another session was the first to say."""
    own = findings_of(reader, session.name)
    return _newest_first([*own, *(one for one in _said_before(reader, session, own) if not one.is_archived)])


def inherited_by(reader: Reader, session: SessionRecord) -> Memories:
    """Return the live findings in the messages that a fork shares with the sessions it came from, newest first."""
    found: Memories = []
    upto = session.shared
    for name in ancestors(reader, session.name):
        shared = {message.id for message in reader.messages(name) if message.n <= upto}
        found += [one for one in findings_of(reader, name) if message_id_of(one) in shared]
        parent = reader.session(name)
        upto = min(upto, 0 if parent is None else parent.shared)
    return found


def _ever_said_in(reader: Reader, session: SessionRecord) -> Memories:
    own = taken_from(reader, session.name)
    every = [*own, *_said_before(reader, session, own)]
    return [one for one in every if not one.is_forgotten and not is_withdrawn(one)]


def _said_before(reader: Reader, session: SessionRecord, own: Iterable[Memory]) -> Memories:
    """Return the memories that a session repeated, as its last finish noted them."""
    known = {one.uid for one in own}
    found = (by_uid(reader, uid) for uid in session.findings if uid not in known)
    return [one for one in found if one is not None and one.source.session != session.name]


def _newest_first(found: Memories) -> Memories:
    return sorted(found, key=lambda one: -one.id)


def _finished_with(reader: Reader, session: SessionRecord) -> Memory | None:
    """Return the summary that a session shares with another one, whose words are the same."""
    summary = by_uid(reader, session.summary) if session.summary else None
    return None if summary is None or summary.is_archived else summary


def _finding_line(context: Context, memory: Memory) -> dict[str, Any]:
    entry = _entry_of(context, memory)
    line = {
        "id": memory.ref,
        "fingerprint": memory.fingerprint,
        "content": memory.content,
        "category": memory.kind,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "filePaths": memory.files,
        "tags": memory.tags,
        "status": memory.status,
        "createdAt": memory.created_at,
        "promotedToProjectMemory": entry is not None,
    }
    return line | ({} if entry is None else {"promotedEntryId": entry.ref})


def _entry_of(context: Context, memory: Memory) -> Memory | None:
    """Return the live memory of the project, or of all projects, that a finding became."""
    entry = memory
    while entry.is_archived and entry.superseded_by is not None:
        with suppress(NotFound):
            heir = context.find(entry.superseded_by)[1]
            if (heir.data or {}).get(FROM_UID) == entry.uid:
                entry = heir
                continue
        return None
    return None if entry.is_archived or entry.tier == "session" else entry
