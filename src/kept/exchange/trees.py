"""Transcripts that are trees: Claude Code and Qwen Code, whose records name the record before them.

A person who goes back and asks something else starts a branch in the same file. Rule: the first way through the tree is
the session, and every later prompt that leaves it begins a fork, so that importing a file in pieces ends in the same
sessions as importing it whole. Tool results that come back in parallel are no branches.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct

from kept.exchange.records import (
    Transcript,
    at_most,
    blocks,
    called,
    flat,
    handed_over,
    moment_of,
    of_hook,
    result_text,
    said,
    shell_report,
    spoken,
    text_of,
)
from kept.model import Message, MessageRole, Trust

Reader = Callable[[dict[str, Any]], list[Message]]


# What Claude Code says about itself. Attachments of any other kind may hold text of files, programs or servers.
_CLAUDE_OWN = frozenset(
    "agent_listing_delta date deferred_tools_delta deferred_tools_record environment model prompt_snapshot "
    "remote_session_change".split()
)


def claude_code(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """Claude Code: sub-agents have separate files (isSidechain); files and hooks become attachments, not messages."""
    return _read(lines, known, _claude_messages)


def qwen(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """Qwen Code: records like Claude's, with parts like Gemini's; a hook's text is a part of its own."""
    return _read(lines, known, _qwen_messages)


class _Thread(Struct):
    """One way through the tree: the session it becomes, its last prompt, and its last message so far."""

    read: Transcript
    prompt: str = ""
    last: tuple[str, str] | None = None


class _Place(Struct, frozen=True):
    """Where a record stands: its thread, the prompt above it, and the newest message up to it."""

    thread: _Thread
    prompt: str
    message: tuple[str, str] | None


def _read(lines: Iterable[bytes], known: int, messages_of: Reader) -> Transcript:
    tree = _Tree(known)
    for number, record in tree.read.records(lines):
        with tree.read.skipping(number):
            tree.add(number, record, messages_of(record))
    return tree.read


class _Tree:
    """The threads of a file so far, and where each record stands in them."""

    def __init__(self, known: int) -> None:
        self._main = _Thread(Transcript(known=known))
        self.read = self._main.read
        self._places: dict[str, _Place] = {}

    def add(self, number: int, record: dict[str, Any], found: list[Message]) -> None:
        self._note_session(record)
        uuid = text_of(record.get("uuid")) or ""
        above = self._places.get(text_of(record.get("parentUuid")) or "")
        place = above or _Place(self._main, self._main.prompt, self._main.last)
        if any(message.role == "user" for message in found) and not record.get("isSidechain"):
            place = self._asked(place, uuid, is_new_way=above is not None and place.prompt != place.thread.prompt)
        place.thread.read.add(number, found)
        if found:
            last = place.thread.last = (found[-1].id, found[-1].role)
            place = _Place(place.thread, place.prompt, last)
        if uuid:
            self._places[uuid] = place

    def _note_session(self, record: dict[str, Any]) -> None:
        self.read.session = self.read.session or text_of(record.get("sessionId"))
        self.read.cwd = self.read.cwd or text_of(record.get("cwd"))
        self.read.parent = self.read.parent or _forked_from(record)

    def _asked(self, place: _Place, uuid: str, *, is_new_way: bool) -> _Place:
        """The place of a prompt. `is_new_way`: something else was asked after the record above it before."""
        thread = place.thread
        if is_new_way:
            thread = _branch(thread, uuid, place.message, self.read.known)
            self.read.others.append(thread.read)
        thread.prompt = uuid
        return _Place(thread, uuid, place.message)


def _branch(thread: _Thread, uuid: str, after: tuple[str, str] | None, known: int) -> _Thread:
    whole = thread.read
    name = f"{whole.session or 'session'}.{uuid[:8] or 'branch'}"
    return _Thread(Transcript(session=name, parent=whole.session, after=after, cwd=whole.cwd, known=known))


def _forked_from(record: dict[str, Any]) -> str | None:
    origin = record.get("forkedFrom")
    return text_of(origin.get("sessionId")) if isinstance(origin, dict) else None


def _claude_messages(record: dict[str, Any]) -> list[Message]:
    body, kind = record.get("message"), record.get("type")
    uuid, at = text_of(record.get("uuid")) or "", moment_of(record.get("timestamp"))
    if kind == "attachment":
        return _claude_attachment(record.get("attachment"), uuid, at)
    if kind == "system" and record.get("subtype") == "local_command":
        return handed_over(uuid, record.get("content"), at)
    if kind not in ("user", "assistant") or not isinstance(body, dict):
        return []
    if record.get("isMeta"):  # a skill, a command's text, a hook's feedback: in the user's name, but not the user's
        return handed_over(uuid, body.get("content"), at)
    spoken_by: MessageRole = "user" if kind == "user" else "assistant"
    role: MessageRole = "summary" if record.get("isCompactSummary") else spoken_by
    # What a sidechain is asked, another agent wrote.
    most: Trust = "agent" if record.get("isSidechain") else "user"
    return at_most(most, blocks(uuid, role, body.get("content"), at))


def _claude_attachment(attached: Any, uuid: str, at: datetime | None) -> list[Message]:
    kind = attached.get("type") if isinstance(attached, dict) else None
    if not isinstance(kind, str) or kind in _CLAUDE_OWN:
        return []
    if kind.startswith("hook_"):  # what reaches the model; beside it is how the hook ran
        return of_hook(uuid, attached.get("content"), at)
    return handed_over(uuid, attached, at)


def _qwen_messages(record: dict[str, Any]) -> list[Message]:
    body, kind = record.get("message"), record.get("type")
    uuid, at = text_of(record.get("uuid")) or "", moment_of(record.get("timestamp"))
    if record.get("subtype") == "chat_compression":
        summary = said(uuid, "summary", _compressed(record.get("systemPayload")), at)
        return [summary] if summary.content else []
    if kind not in ("user", "assistant", "tool_result") or not isinstance(body, dict):
        return []
    parts = [part for part in body.get("parts") or () if isinstance(part, dict)]
    found: list[Message] = []
    if kind != "tool_result":
        found += spoken(uuid, "user" if kind == "user" else "assistant", _texts(parts), at)
    outcome = record.get("toolCallResult")
    is_error = isinstance(outcome, dict) and outcome.get("status") == "error"
    for number, part in enumerate(parts):
        found += _qwen_part(part, f"{uuid}_{number}", at, is_error=is_error)
    is_person = record.get("provenance") in (None, "real_user")
    return at_most("user" if is_person and not record.get("isSidechain") else "agent", found)


def _qwen_part(part: dict[str, Any], id: str, at: datetime | None, *, is_error: bool) -> Iterator[Message]:
    """The call of a tool, or its answer."""
    call, answer = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        yield called(text_of(call.get("id")) or id, call.get("name"), call.get("args"), at)
    elif isinstance(answer, dict):
        output, has_failed = shell_report(result_text(answer.get("response")))
        yield said(text_of(answer.get("id")) or id, "tool_result", output, at, is_error=is_error or has_failed)


def _compressed(payload: Any) -> str:
    """The summary that stands for what was said: the first message of the history that goes on."""
    history = payload.get("compressedHistory") if isinstance(payload, dict) else None
    first = history[0] if isinstance(history, list) and history else None
    return flat(first.get("parts")) if isinstance(first, dict) else ""


def _texts(parts: Iterable[dict[str, Any]]) -> str:
    return "\n".join(text_of(part.get("text")) or "" for part in parts if not part.get("thought"))
