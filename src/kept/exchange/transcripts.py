"""Transcripts of other programs, line by line, as messages.

One parser for each program; each takes complete lines of a JSONL file and gives messages in the order of the file.
Rule: lenient. A line that is torn, unknown or none of our business is passed over and counted; a host's next version
must not break an import.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from kept.model import Message, MessageRole

MAX_MESSAGE_CHARS = 200_000  # a tool result of megabytes is a file, not something said


class Transcript(Struct, frozen=True, kw_only=True):
    """What a file says: whose session it is, where it ran, what was said, and how many lines were passed over."""

    session: str | None = None
    parent: str | None = None
    cwd: str | None = None
    messages: tuple[Message, ...] = ()
    skipped: int = 0


Parser = Callable[[Iterable[bytes]], Transcript]


def claude_code(lines: Iterable[bytes]) -> Transcript:
    """Claude Code: a tree of records with uuid and parentUuid; sub-agents have files of their own (isSidechain)."""
    session = cwd = None
    messages: list[Message] = []
    skipped = 0
    for record in _records(lines):
        if record is None:
            skipped += 1
            continue
        session = session or _text(record.get("sessionId"))
        cwd = cwd or _text(record.get("cwd"))
        body = record.get("message")
        if record.get("type") not in ("user", "assistant") or record.get("isMeta") or not isinstance(body, dict):
            continue
        uuid, at = _text(record.get("uuid")) or "", _moment(record.get("timestamp"))
        role: MessageRole = "user" if record["type"] == "user" else "assistant"
        if record.get("isCompactSummary"):
            role = "summary"
        messages += _blocks(uuid, role, body.get("content"), at)
    return Transcript(session=session, cwd=cwd, messages=tuple(messages), skipped=skipped)


def codex(lines: Iterable[bytes]) -> Transcript:
    """Codex: {timestamp, type, payload}; what was said is in response_item, who it was in session_meta."""
    session = parent = cwd = None
    messages: list[Message] = []
    skipped = 0
    for number, record in enumerate(_records(lines), 1):
        payload = record.get("payload") if record is not None else None
        if record is None or not isinstance(payload, dict):
            skipped += record is None
            continue
        at = _moment(record.get("timestamp"))
        kind = record.get("type")
        if kind == "session_meta":
            session = session or _text(payload.get("id"))
            cwd = cwd or _text(payload.get("cwd"))
            parent = _text(payload.get("forked_from_id")) or _text(payload.get("parent_thread_id"))
        elif kind == "compacted":
            messages.append(_said(f"line_{number}", "summary", _text(payload.get("message")) or "", at))
        elif kind == "response_item":
            messages += _codex_item(payload, f"line_{number}", at)
    return Transcript(session=session, parent=parent, cwd=cwd, messages=tuple(messages), skipped=skipped)


def gemini(lines: Iterable[bytes]) -> Transcript:
    """Gemini CLI: a line of metadata, then {id, timestamp, type, content, toolCalls}; `$rewindTo` takes back."""
    session = None
    messages: list[Message] = []
    skipped = 0
    for number, record in enumerate(_records(lines), 1):
        if record is None:
            skipped += 1
            continue
        session = session or _text(record.get("sessionId"))
        if target := _text(record.get("$rewindTo")):
            kept = [index for index, message in enumerate(messages) if message.id == target]
            messages = messages[: kept[0] + 1] if kept else messages
        roles: dict[str, MessageRole] = {"user": "user", "gemini": "assistant"}
        role = roles.get(str(record.get("type")))
        if role is None:
            continue
        id, at = _text(record.get("id")) or f"line_{number}", _moment(record.get("timestamp"))
        if spoken := _flat(record.get("content")):
            messages.append(_said(id, role, spoken, at))
        for call in record.get("toolCalls") or ():
            if isinstance(call, dict):
                messages += _call_and_result(call, f"{id}_{len(messages)}", at)
    return Transcript(session=session, messages=tuple(messages), skipped=skipped)


def openclaw(lines: Iterable[bytes]) -> Transcript:
    """OpenClaw: a header {type: session}, then entries with id and parentId of type message, compaction, …"""
    session = parent = cwd = None
    messages: list[Message] = []
    skipped = 0
    for number, record in enumerate(_records(lines), 1):
        if record is None:
            skipped += 1
            continue
        kind, id = record.get("type"), _text(record.get("id")) or f"line_{number}"
        at = _moment(record.get("timestamp"))
        if kind == "session":
            session, cwd = _text(record.get("id")), _text(record.get("cwd"))
            parent = _text(record.get("parentSession"))
        elif kind in ("compaction", "branch_summary"):
            messages.append(_said(id, "summary", _flat(record.get("summary")), at))
        elif kind in ("message", "custom_message"):
            inner = record.get("message")
            body = inner if isinstance(inner, dict) else record
            role: MessageRole = "assistant" if body.get("role") == "assistant" else "user"
            if body.get("role") in ("toolResult", "tool"):
                role = "tool_result"
            messages += _blocks(id, role, body.get("content"), at)
    return Transcript(session=session, parent=parent, cwd=cwd, messages=tuple(messages), skipped=skipped)


def brain(lines: Iterable[bytes]) -> Transcript:
    """Brain's own form, which is also ours: {id, role, content, timestamp}, or name and input for a tool call."""
    messages: list[Message] = []
    skipped = 0
    roles: tuple[MessageRole, ...] = ("user", "assistant", "tool_call", "tool_result", "summary")
    for number, record in enumerate(_records(lines), 1):
        role = next((role for role in roles if record is not None and record.get("role") == role), None)
        if record is None or role is None:
            skipped += 1
            continue
        input = record.get("input")
        messages.append(
            Message(
                id=_text(record.get("id")) or f"line_{number}",
                role=role,
                content=_flat(record.get("content")),
                name=_text(record.get("name")),
                input=input if isinstance(input, dict) else None,
                at=_moment(record.get("timestamp")),
                speaker=_text(record.get("speaker")),
            )
        )
    return Transcript(messages=tuple(messages), skipped=skipped)


PARSERS: Mapping[str, Parser] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "openclaw": openclaw,
    "brain": brain,
}


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """Each line as an object; None for one that is torn or is something else."""
    for line in lines:
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            record = None
        yield record if isinstance(record, dict) else None


def _blocks(id: str, role: MessageRole, content: Any, at: datetime | None) -> list[Message]:
    """The messages in the content of one record: what was said, then calls and results, each under its own id."""
    if isinstance(content, str):
        return [_said(id, role, content, at)] if content.strip() else []
    blocks = [block for block in content or () if isinstance(block, dict)] if isinstance(content, list) else []
    if role == "tool_result":
        return [_said(id, role, _flat(content), at)]
    found: list[Message] = []
    spoken = "\n".join(_text(block.get("text")) or "" for block in blocks if block.get("type") == "text")
    if spoken.strip():
        found.append(_said(id, role, spoken, at))
    for number, block in enumerate(blocks):
        if block.get("type") in ("tool_use", "toolCall"):
            input = block.get("input") or block.get("arguments")
            found.append(
                Message(
                    id=_text(block.get("id")) or f"{id}_{number}",
                    role="tool_call",
                    name=_text(block.get("name")),
                    input=input if isinstance(input, dict) else {},
                    at=at,
                )
            )
        elif block.get("type") == "tool_result":
            found.append(
                _said(
                    _text(block.get("tool_use_id")) or f"{id}_{number}", "tool_result", _flat(block.get("content")), at
                )
            )
    return found


def _codex_item(payload: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    kind = payload.get("type")
    if kind == "message" and payload.get("role") in ("user", "assistant"):
        spoken = _flat(payload.get("content"))
        return [_said(_text(payload.get("id")) or id, payload["role"], spoken, at)] if spoken else []
    call = _text(payload.get("call_id")) or id
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        return [Message(id=call, role="tool_call", name=_text(payload.get("name")), input=_arguments(payload), at=at)]
    if kind in ("function_call_output", "custom_tool_call_output"):
        return [_said(call, "tool_result", _flat(payload.get("output")), at)]
    return []


def _call_and_result(call: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    name, own = _text(call.get("name")), _text(call.get("id")) or id
    input = call.get("args")
    found = [Message(id=own, role="tool_call", name=name, input=input if isinstance(input, dict) else {}, at=at)]
    if call.get("result") is not None:
        found.append(_said(own, "tool_result", _flat(call.get("result")), at))
    return found


def _arguments(payload: dict[str, Any]) -> dict[str, Any]:
    for name in ("arguments", "input", "action"):
        value = payload.get(name)
        if isinstance(value, dict):
            return value
        if isinstance(value, str):
            try:
                decoded = msgspec.json.decode(value)
            except msgspec.MsgspecError:
                return {name: value}
            return decoded if isinstance(decoded, dict) else {name: value}
    return {}


def _flat(value: Any) -> str:
    """Text, however deep it is wrapped in lists and objects."""
    if isinstance(value, str):
        return value[:MAX_MESSAGE_CHARS]
    if isinstance(value, list):
        return "\n".join(part for entry in value if (part := _flat(entry)))[:MAX_MESSAGE_CHARS]
    if isinstance(value, dict):
        for name in ("text", "content", "output"):
            if name in value:
                return _flat(value[name])
        return msgspec.json.encode(value).decode()[:MAX_MESSAGE_CHARS] if value.get("type") not in ("image",) else ""
    return ""


def _said(id: str, role: MessageRole, content: str, at: datetime | None) -> Message:
    return Message(id=id, role=role, content=_storable(content[:MAX_MESSAGE_CHARS]), at=at)


def _storable(content: str) -> str:
    """Without what no storage can hold; a stranger's transcript may have anything in it."""
    return content.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _text(value: Any) -> str | None:
    return _storable(value) if isinstance(value, str) and value else None


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
