"""Transcripts of other programs, line by line, as messages.

One parser for each program; each takes complete lines of a JSONL file and gives messages in the order of the file.
Rule: lenient. A line that is torn or unknown is skipped and counted; a host's next version must not break an import.
Only a person's own message has the user's trust: the prompt of a sub-agent has its writer's, an unknown role none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
from msgspec import Struct

from kept.model import TRUSTS, Message, MessageRole, Trust, least, replace

MAX_MESSAGE_CHARS = 200_000  # a tool result of megabytes is a file, not something said
_HEAD_CHARS = 2_000  # of an output: the exit code stands at its beginning
_EXIT_CODE = re.compile(r"(?mi)^(?:process exited with code|exit code:?) (-?\d{1,5})\b|\"exit_code\": ?(-?\d{1,5})\b")
MAX_DEPTH = 50  # of lists and objects in each other; what is deeper was made to break readers
ROLES: tuple[MessageRole, ...] = get_args(MessageRole)


class Transcript(Struct, kw_only=True):
    """A file that was read: whose session it is, where it ran, its messages, and how many lines were skipped."""

    session: str | None = None
    parent: str | None = None
    cwd: str | None = None
    messages: list[Message] = []
    skipped: int = 0

    def records(self, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a JSONL file with their line numbers, blank lines left out; others are counted as skipped."""
        for number, line in enumerate((line for line in lines if line.strip()), 1):
            try:
                record = msgspec.json.decode(line)
            except (msgspec.MsgspecError, RecursionError):
                record = None
            if isinstance(record, dict) and not (line.count(b"[") + line.count(b"{") > MAX_DEPTH and _is_deep(record)):
                yield number, record
            else:
                self.skipped += 1


Parser = Callable[[Iterable[bytes]], Transcript]


def claude_code(lines: Iterable[bytes]) -> Transcript:
    """Claude Code: a tree of records with uuid and parentUuid; sub-agents have files of their own (isSidechain)."""
    read = Transcript()
    for _, record in read.records(lines):
        read.session = read.session or _text(record.get("sessionId"))
        read.cwd = read.cwd or _text(record.get("cwd"))
        body = record.get("message")
        if record.get("type") not in ("user", "assistant") or record.get("isMeta") or not isinstance(body, dict):
            continue
        uuid, at = _text(record.get("uuid")) or "", _moment(record.get("timestamp"))
        role: MessageRole = "summary" if record.get("isCompactSummary") else record["type"]
        # What a sidechain is asked, another agent wrote.
        most: Trust = "agent" if record.get("isSidechain") else "user"
        read.messages += _at_most(most, _blocks(uuid, role, body.get("content"), at))
    return read


def codex(lines: Iterable[bytes]) -> Transcript:
    """Codex: {timestamp, type, payload}; what was said is in response_item, who it was in session_meta."""
    read = Transcript()
    most: Trust = "user"
    for number, record in read.records(lines):
        payload, kind, at = record.get("payload"), record.get("type"), _moment(record.get("timestamp"))
        if not isinstance(payload, dict):
            continue
        if kind == "session_meta":
            read.session = read.session or _text(payload.get("id"))
            read.cwd = read.cwd or _text(payload.get("cwd"))
            read.parent = _text(payload.get("forked_from_id")) or _text(payload.get("parent_thread_id"))
            if payload.get("parent_thread_id"):  # a sub-agent: the agent that started it wrote its prompts
                most = "agent"
        elif kind == "compacted":
            read.messages.append(_said(f"line_{number}", "summary", _text(payload.get("message")) or "", at))
        elif kind == "response_item":
            read.messages += _at_most(most, _codex_item(payload, f"line_{number}", at))
    return read


def gemini(lines: Iterable[bytes]) -> Transcript:
    """Gemini CLI: a line of metadata, then {id, timestamp, type, content, toolCalls}; `$rewindTo` removes messages."""
    read = Transcript()
    roles: dict[str, MessageRole] = {"user": "user", "gemini": "assistant"}
    for number, record in read.records(lines):
        read.session = read.session or _text(record.get("sessionId"))
        if target := _text(record.get("$rewindTo")):
            kept = [index for index, message in enumerate(read.messages) if message.id == target]
            read.messages = read.messages[: kept[0] + 1] if kept else read.messages
        role = roles.get(str(record.get("type")))
        if role is None:
            continue
        id, at = _text(record.get("id")) or f"line_{number}", _moment(record.get("timestamp"))
        if spoken := _flat(record.get("content")):
            read.messages.append(_said(id, role, spoken, at))
        for call in record.get("toolCalls") or ():
            if isinstance(call, dict):
                read.messages += _call_and_result(call, f"{id}_{len(read.messages)}", at)
    return read


def openclaw(lines: Iterable[bytes]) -> Transcript:
    """OpenClaw: a header {type: session}, then entries with id and parentId of type message, compaction, …"""
    read = Transcript()
    roles: dict[str, MessageRole] = {
        "user": "user",
        "assistant": "assistant",
        "toolResult": "tool_result",
        "tool": "tool_result",
    }
    for number, record in read.records(lines):
        kind, id = record.get("type"), _text(record.get("id")) or f"line_{number}"
        at = _moment(record.get("timestamp"))
        if kind == "session":
            read.session, read.cwd = _text(record.get("id")), _text(record.get("cwd"))
            read.parent = _text(record.get("parentSession"))
        elif kind in ("compaction", "branch_summary"):
            read.messages.append(_said(id, "summary", _flat(record.get("summary")), at))
        elif kind in ("message", "custom_message"):
            inner = record.get("message")
            body = inner if isinstance(inner, dict) else record
            role = roles.get(str(body.get("role")))
            is_error = body.get("isError") is True
            found = _blocks(id, role or "assistant", body.get("content"), at, is_error=is_error)
            read.messages += _at_most("user" if role and kind == "message" else "unknown", found)
    return read


def brain(lines: Iterable[bytes]) -> Transcript:
    """Brain's own form, which is also ours: {id, role, content, timestamp}, or name and input for a tool call."""
    read = Transcript()
    for number, record in read.records(lines):
        input = record.get("input")
        role = next((known for known in ROLES if known == record.get("role")), None)
        if role is None:
            read.skipped += 1
            continue
        read.messages.append(
            Message(
                id=_text(record.get("id")) or f"line_{number}",
                role=role,
                content=_flat(record.get("content")),
                name=_text(record.get("name")),
                input=input if isinstance(input, dict) else None,
                at=_moment(record.get("timestamp")),
                speaker=_text(record.get("speaker")),
                is_error=record.get("is_error") is True,
                trust=next((known for known in TRUSTS if known == record.get("trust")), "user"),
            )
        )
    return read


PARSERS: Mapping[str, Parser] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "openclaw": openclaw,
    "brain": brain,
}


def _blocks(id: str, role: MessageRole, content: Any, at: datetime | None, *, is_error: bool = False) -> list[Message]:
    """The messages in the content of one record: what was said, then calls and results, each under its own id."""
    if isinstance(content, str):
        return [_said(id, role, content, at, is_error=is_error)] if content.strip() else []
    blocks = [block for block in content or () if isinstance(block, dict)] if isinstance(content, list) else []
    if role == "tool_result":
        return [_said(id, role, _flat(content), at, is_error=is_error)]
    found: list[Message] = []
    spoken = "\n".join(_text(block.get("text")) or "" for block in blocks if block.get("type") == "text")
    if spoken.strip():
        found.append(_said(id, role, spoken, at))
    for number, block in enumerate(blocks):
        if block.get("type") in ("tool_use", "toolCall"):
            input = block.get("input") or block.get("arguments")
            found.append(_called(_text(block.get("id")) or f"{id}_{number}", block.get("name"), input, at))
        elif block.get("type") == "tool_result":
            result_id = _text(block.get("tool_use_id")) or f"{id}_{number}"
            is_error = block.get("is_error") is True
            found.append(_said(result_id, "tool_result", _flat(block.get("content")), at, is_error=is_error))
    return found


def _codex_item(payload: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    kind = payload.get("type")
    if kind == "message" and payload.get("role") in ("user", "assistant"):
        spoken = _flat(payload.get("content"))
        return [_said(_text(payload.get("id")) or id, payload["role"], spoken, at)] if spoken else []
    call = _text(payload.get("call_id")) or id
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        return [_called(call, payload.get("name"), _arguments(payload), at)]
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        return [_said(call, "tool_result", _flat(output), at, is_error=_has_failed(output))]
    return []


def _has_failed(output: Any) -> bool:
    """Whether the output of a Codex tool reports an exit code other than 0, in its text or in its metadata."""
    if isinstance(output, str):
        code = _EXIT_CODE.search(output[:_HEAD_CHARS])
        return code is not None and int(code[1] or code[2]) != 0
    metadata = output.get("metadata") if isinstance(output, dict) else None
    return isinstance(output, dict) and (
        output.get("success") is False or (isinstance(metadata, dict) and metadata.get("exit_code") not in (None, 0))
    )


def _call_and_result(call: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    own = _text(call.get("id")) or id
    found = [_called(own, call.get("name"), call.get("args"), at)]
    if call.get("result") is not None:
        is_error = call.get("status") == "error"
        found.append(_said(own, "tool_result", _flat(call.get("result")), at, is_error=is_error))
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


def _at_most(most: Trust, messages: list[Message]) -> list[Message]:
    if most == "user":
        return messages
    return [replace(message, trust=least(message.trust, most)) for message in messages]


def _said(id: str, role: MessageRole, content: str, at: datetime | None, *, is_error: bool = False) -> Message:
    return Message(id=id, role=role, content=_storable(content[:MAX_MESSAGE_CHARS]), at=at, is_error=is_error)


def _called(id: str, name: Any, input: Any, at: datetime | None) -> Message:
    given = input if isinstance(input, dict) else {}
    input = {name: value[:MAX_MESSAGE_CHARS] if isinstance(value, str) else value for name, value in given.items()}
    return Message(id=id, role="tool_call", name=_text(name), input=input, at=at)


def _is_deep(record: dict[str, Any]) -> bool:
    """Whether lists and objects stand in each other more than MAX_DEPTH deep."""
    level: list[Any] = [record]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def _storable(content: str) -> str:
    """Without the characters that no storage can hold; a transcript may contain anything."""
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
