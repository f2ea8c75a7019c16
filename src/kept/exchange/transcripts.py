"""Transcripts of other programs, line by line, as messages.

One parser for each program; each takes the lines of a JSONL file and gives messages in the order of the file. Those
whose records form a tree are in `trees`. Rule: lenient. A line that is torn or unknown is skipped and counted; a host's
next version must not break an import. Only a person's own message has the user's trust: the prompt of a sub-agent has
its writer's, an unknown role none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from kept.exchange.records import (
    ROLES,
    Parser,
    Transcript,
    at_most,
    blocks,
    called,
    flat,
    handed_over,
    moment_of,
    result_text,
    said,
    shell_report,
    spoken,
    text_of,
    without_injected,
)
from kept.exchange.specstory import parse_specstory
from kept.exchange.tables import open_read_only, rows_of
from kept.exchange.trees import claude_code, qwen
from kept.model import TRUSTS, Message, MessageRole, Trust

_HEAD_CHARS = 2_000  # of an output: the exit code stands at its beginning
_GEMINI_FOLDER = re.compile(r"Workspace Directories:\**(?:\\n|\s)+- ([^\n\\]{1,1000})")
# What Codex writes in the user's name: files of the repository, its surroundings, its own notes.
_CODEX_OWN = re.compile(
    r"\s*(?:# AGENTS\.md instructions\b|<(?:INSTRUCTIONS|user_instructions|environment_context|turn_aborted"
    r"|user_shell_command|subagent_notification|skill)>)"
)
# What Copilot puts before and after a prompt: the time, and the text of Kept's hook.
_COPILOT_OWN = re.compile(
    r"(?s)<current_datetime>[^<]{0,80}</current_datetime>"
    r"|\A\s*(?:<current_datetime>[^<]{0,80}</current_datetime>\s*)?(?:<(?:system[_-]reminder|hook_context)>\s*)?"
    r"<kept-memory>.*?</kept-memory>"
)
_EXIT_CODE = re.compile(r"(?mi)^(?:process exited with code|exit code:?) (-?\d{1,5})\b|\"exit_code\": ?(-?\d{1,5})\b")


def codex(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """Codex: {timestamp, type, payload}; what was said is in response_item, who it was in session_meta."""
    read = Transcript(known=known)
    most: Trust = "user"
    own = "line"  # a fork shares messages with its parent, so what it names itself has names of its own
    for number, record in read.records(lines):
        with read.skipping(number):
            payload, kind, at = record.get("payload"), record.get("type"), moment_of(record.get("timestamp"))
            if not isinstance(payload, dict):
                continue
            if kind == "session_meta" and read.session is None:  # a fork repeats that of its parent
                most, own = _codex_session(read, payload)
            elif kind == "compacted":
                read.add(number, [said(f"{own}_{number}", "summary", text_of(payload.get("message")) or "", at)])
            elif kind == "response_item" and not _is_compaction(record.get("metadata")):
                read.add(number, at_most(most, _codex_item(payload, f"{own}_{number}", at)))
    return read


def _codex_session(read: Transcript, payload: dict[str, Any]) -> tuple[Trust, str]:
    """Note whose session it is. Returns whose words its prompts are, and the beginning of the names of its lines."""
    forked_from, started_by = text_of(payload.get("forked_from_id")), text_of(payload.get("parent_thread_id"))
    read.session, read.cwd = text_of(payload.get("id")), text_of(payload.get("cwd"))
    read.parent = forked_from or started_by
    # The prompts of a sub-agent were written by the agent that started it.
    most: Trust = "agent" if payload.get("parent_thread_id") else "user"
    return most, f"{read.session[-12:]}_line" if read.session and payload.get("forked_from_id") else "line"


def gemini(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """Gemini CLI: a line of metadata, then {id, timestamp, type, content, toolCalls}; `$rewindTo` removes messages.

    A message comes again when its tools have answered, and `$set` repeats what was said: neither is said twice.
    """
    read = Transcript(known=known)
    roles: dict[str, MessageRole] = {"user": "user", "gemini": "assistant"}
    for number, record in read.records(lines):
        with read.skipping(number):
            read.session = read.session or text_of(record.get("sessionId"))
            read.cwd = read.cwd or _gemini_folder(record)
            if target := text_of(record.get("$rewindTo")):
                _rewind(read, target)
            role = roles.get(str(record.get("type")))
            if role is not None:
                read.add(number, _gemini_messages(record, role, number))
    return read


def _gemini_folder(record: dict[str, Any]) -> str | None:
    where = _GEMINI_FOLDER.search(flat(record.get("$set")))
    return where[1].strip() if where else None


def _rewind(read: Transcript, target: str) -> None:
    """Remove the messages after that one."""
    end = next((number for number, message in enumerate(read.messages, 1) if message.id == target), None)
    del read.messages[len(read.messages) if end is None else end :]


def _gemini_messages(record: dict[str, Any], role: MessageRole, number: int) -> list[Message]:
    id, at = text_of(record.get("id")) or f"line_{number}", moment_of(record.get("timestamp"))
    found = spoken(id, role, _gemini_text(record.get("content")), at)
    for place, call in enumerate(record.get("toolCalls") or ()):
        if isinstance(call, dict):
            found += _call_and_result(call, f"{id}_{place}", at)
    return found


def openclaw(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """OpenClaw: a header {type: session}, then entries with id and parentId of type message, compaction, …"""
    read = Transcript(known=known)
    roles: dict[str, MessageRole] = {
        "user": "user",
        "assistant": "assistant",
        "toolResult": "tool_result",
        "tool": "tool_result",
    }
    for number, record in read.records(lines):
        with read.skipping(number):
            kind, id = record.get("type"), text_of(record.get("id")) or f"line_{number}"
            at = moment_of(record.get("timestamp"))
            if kind == "session":
                read.session, read.cwd = text_of(record.get("id")), text_of(record.get("cwd"))
                read.parent = text_of(record.get("parentSession"))
            elif kind in ("compaction", "branch_summary"):
                read.add(number, [said(id, "summary", flat(record.get("summary")), at)])
            elif kind in ("message", "custom_message"):
                inner = record.get("message")
                body = inner if isinstance(inner, dict) else record
                role = roles.get(str(body.get("role")))
                is_error = body.get("isError") is True
                found = blocks(id, role or "assistant", body.get("content"), at, is_error=is_error)
                read.add(number, at_most("user" if role and kind == "message" else "unknown", found))
    return read


def copilot(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """Copilot CLI: events {type, data, id, timestamp}; `content` of a user's message is without what hooks added."""
    read = Transcript(known=known)
    for number, record in read.records(lines):
        with read.skipping(number):
            kind, data = record.get("type"), record.get("data")
            if not isinstance(data, dict):
                continue
            id, at = text_of(record.get("id")) or f"line_{number}", moment_of(record.get("timestamp"))
            if kind == "session.start":
                _copilot_start(read, data)
            elif kind == "session.compaction_complete":
                read.add(number, [said(id, "summary", flat(data.get("summaryContent")), at)])
            else:
                # A sub-agent's messages name the call that started it.
                most: Trust = "agent" if data.get("parentToolCallId") or record.get("agentId") else "user"
                read.add(number, at_most(most, _copilot_event(str(kind), data, id, at)))
    return read


def _copilot_start(read: Transcript, data: Mapping[str, Any]) -> None:
    """Note the session and its folder."""
    read.session = read.session or text_of(data.get("sessionId"))
    surroundings = data.get("context")
    if isinstance(surroundings, dict):
        read.cwd = read.cwd or text_of(surroundings.get("cwd"))


def opencode(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """OpenCode: rows of its database, each with the name of its table; a session's messages have parts.

    Several sessions may stand in one file; a child (parent_id) is a sub-agent's. A row can come again when it changed.
    """
    rows: dict[str, dict[str, dict[str, Any]]] = {"session": {}, "message": {}, "part": {}}
    read = Transcript(known=known)
    for number, record in read.records(lines):
        with read.skipping(number):
            table, id = str(record.get("table")), text_of(record.get("id"))
            if table in rows and id is not None:
                rows[table][id] = record | {"line": number}
    transcripts = {
        id: Transcript(session=id, parent=text_of(row.get("parent_id")), cwd=text_of(row.get("directory")), known=known)
        for id, row in rows["session"].items()
    }
    parts: dict[str, list[dict[str, Any]]] = {}
    for part in rows["part"].values():
        parts.setdefault(str(part.get("message_id")), []).append(part)
    for id, row in rows["message"].items():
        to = transcripts.setdefault(str(row.get("session_id")), Transcript(known=known))
        line = max(part["line"] for part in (row, *parts.get(id, ())))
        with read.skipping(line):
            to.add(line, at_most("agent" if to.parent else "user", _opencode_message(id, row, parts.get(id, ()))))
    first, *others = transcripts.values() or [read]
    first.others, first.skipped = others, read.skipped
    return first


def database_lines(database: Path) -> Iterator[bytes]:
    """The rows of OpenCode's database, as `opencode` reads them. Opened to read only: OpenCode may be running."""
    with open_read_only(database, "OpenCode") as connection:
        for table in ("session", "message", "part"):
            for row in rows_of(connection, table, "time_created, id"):
                fields = {name: _decoded(value) for name, value in row.items()}
                yield msgspec.json.encode({"table": table} | fields)


def brain(lines: Iterable[bytes], known: int = 0) -> Transcript:
    """Brain's own form, which is also ours: {id, role, content, timestamp}, or name and input for a tool call."""
    read = Transcript(known=known)
    for number, record in read.records(lines):
        with read.skipping(number):
            input = record.get("input")
            role = next((known_role for known_role in ROLES if known_role == record.get("role")), None)
            if role is None:
                read.skipped += number > known
                continue
            content = flat(record.get("content"))
            message = Message(
                id=text_of(record.get("id")) or f"line_{number}",
                role=role,
                content=content if role == "tool_result" else without_injected(content),
                name=text_of(record.get("name")),
                input=input if isinstance(input, dict) else None,
                at=moment_of(record.get("timestamp")),
                speaker=text_of(record.get("speaker")),
                is_error=record.get("is_error") is True,
                trust=next((trust for trust in TRUSTS if trust == record.get("trust")), "user"),
            )
            read.add(number, [message])
    return read


PARSERS: Mapping[str, Parser] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "qwen": qwen,
    "copilot": copilot,
    "opencode": opencode,
    "openclaw": openclaw,
    "brain": brain,
    "specstory": parse_specstory,
}


def _decoded(value: Any) -> Any:
    """A column; JSON in a text becomes what it holds."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.MsgspecError, RecursionError):
            return value
    return value if isinstance(value, str | int | float) else None


def _gemini_text(content: Any) -> str:
    """What was said: of a list of parts, the texts. Calls and answers of tools are in `toolCalls`."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else None
    if parts is None:
        return flat(content)
    return "\n".join(text_of(part.get("text")) or "" for part in parts)


def _copilot_event(kind: str, data: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    if kind == "user.message":
        own = flat(data.get("content"))
        around = _COPILOT_OWN.sub("", flat(data.get("transformedContent")).replace(own, "\n"))
        return [*spoken(id, "user", own, at), *handed_over(f"{id}_around", around, at)]
    if kind == "skill.invoked":
        return handed_over(id, data.get("content"), at)
    if kind == "assistant.message":
        return [*spoken(id, "assistant", flat(data.get("content")), at), *_copilot_calls(data, id, at)]
    if kind == "tool.execution_complete":
        own, is_error = text_of(data.get("toolCallId")) or id, data.get("success") is False
        outcome = data.get("result") if data.get("result") is not None else data.get("error")
        return [said(own, "tool_result", result_text(outcome), at, is_error=is_error)]
    return []


def _copilot_calls(data: dict[str, Any], id: str, at: datetime | None) -> Iterator[Message]:
    for place, call in enumerate(data.get("toolRequests") or ()):
        if isinstance(call, dict):
            yield called(text_of(call.get("toolCallId")) or f"{id}_{place}", call.get("name"), _arguments(call), at)


def _opencode_message(id: str, row: dict[str, Any], parts: Iterable[dict[str, Any]]) -> list[Message]:
    about, at = row.get("data"), moment_of(row.get("time_created"))
    about = about if isinstance(about, dict) else {}
    by_user = about.get("role") == "user"
    role: MessageRole = "user" if by_user else "summary" if about.get("summary") is True else "assistant"
    texts: list[str] = []
    calls: list[Message] = []
    parts = list(parts)
    ours = {f"{part.get('id')}k" for part in parts}  # the plugin names its part after the user's
    for place, part in enumerate(parts):
        data = part.get("data")
        if not isinstance(data, dict):
            continue
        if data.get("synthetic"):  # put in by the program, such as a file, or by a plugin
            is_ours = part.get("id") in ours
            calls += [] if is_ours else handed_over(f"{id}_{place}_context", data.get("text"), at)
        elif data.get("type") == "text":
            texts.append(text_of(data.get("text")) or "")
        elif data.get("type") == "tool":
            calls += _opencode_tool(data, f"{id}_{place}", at)
    return [*spoken(id, role, "\n".join(filter(None, texts)), at), *calls]


def _opencode_tool(data: dict[str, Any], id: str, at: datetime | None) -> Iterator[Message]:
    """The call of a tool, and its result if there is one yet."""
    state, own = data.get("state"), text_of(data.get("callID")) or id
    if isinstance(state, dict):
        yield called(own, data.get("tool"), state.get("input"), at)
        if (status := state.get("status")) in ("completed", "error"):
            outcome = result_text(state.get("output" if status == "completed" else "error"))
            yield said(own, "tool_result", outcome, at, is_error=status == "error")


def _codex_item(payload: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    kind, call = payload.get("type"), text_of(payload.get("call_id")) or id
    if kind == "message" and payload.get("role") in ("user", "assistant"):
        return _codex_message(payload, text_of(payload.get("id")) or id, at)
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        return [called(call, payload.get("name"), _arguments(payload), at)]
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        return [said(call, "tool_result", result_text(output), at, is_error=_has_failed(output))]
    return []


def _codex_message(payload: dict[str, Any], id: str, at: datetime | None) -> list[Message]:
    """What was said; parts that Codex writes in the user's name are handed over."""
    parts = payload.get("content")
    parts = parts if isinstance(parts, list) else [parts]
    theirs = [part for part in parts if payload["role"] == "user" and _CODEX_OWN.match(flat(part))]
    found = spoken(id, payload["role"], flat([part for part in parts if part not in theirs]), at)
    return found + handed_over(f"{id}_instructions", theirs, at)


def _is_compaction(metadata: Any) -> bool:
    """Whether this is the answer to Codex's own request for a summary, which comes again as `compacted`."""
    return isinstance(metadata, dict) and metadata.get("compaction_output") is True


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
    own = text_of(call.get("id")) or id
    found = [called(own, call.get("name"), call.get("args"), at)]
    if call.get("result") is not None:
        output, has_failed = shell_report(result_text(call.get("result")))
        is_error = has_failed or call.get("status") == "error"
        found.append(said(own, "tool_result", output, at, is_error=is_error))
    return found


def _arguments(payload: dict[str, Any]) -> dict[str, Any]:
    for name in ("arguments", "input", "action"):
        value = payload.get(name)
        if isinstance(value, dict):
            return value
        if isinstance(value, str):
            try:
                decoded = msgspec.json.decode(value)
            except (msgspec.MsgspecError, RecursionError):
                return {name: value}
            return decoded if isinstance(decoded, dict) else {name: value}
    return {}
