"""Records of transcripts as messages: what all parsers share.

A parser (`transcripts`, `trees`) reads the records of one file and adds the messages that it finds in them. Rule: text
that a program puts into a conversation, such as a file or a skill, is a tool result named `CONTEXT`, so that an agent
that repeats it quotes it. Text that Kept itself put there is left out, but only where hosts put the answers of hooks:
a page can imitate it, so a tool result is kept as it is.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Any, get_args

import msgspec
from msgspec import Struct

from kept.model import CONTEXT, Message, MessageRole, Trust, least, replace
from kept.text import without_delivered, without_inlined

MAX_MESSAGE_CHARS = 200_000  # a tool result of megabytes is a file, not something said
MAX_DEPTH = 50  # of lists and objects in each other; what is deeper was made to break readers
ROLES: tuple[MessageRole, ...] = get_args(MessageRole)

# The first words of every briefing, in all styles but XML, which has a tag.
OUR_MARK = "Memories of earlier work on this project. They inform you"
_INJECTED = re.compile(
    r"(?s)<(hook_context|project_memory|qwen:[\w-]{1,40}-context)\b[^>]{0,200}>.*?(?:</\1>|\Z)"
    r"|\n*Tool \"[^\"\n]{1,80}\" (?:succeeded|failed)\. Additional guidance from \w{1,40} hooks:.*\Z"
)
_CALLS = ("tool_use", "toolCall", "server_tool_use", "mcp_tool_use")
_OWN_BLOCKS = (
    "text",
    "image",
    "thinking",
    "redacted_thinking",
    "reasoning",
)  # said, not shown to the model, or no text
_ESCAPED = re.compile(r"<hook_context>[^<]*</hook_context>")
_ESCAPED_MARK = "&lt;kept-memory&gt;"
_REPORT_LINES = 60  # at most, before what a command printed: the command itself
_REPORT_END = re.compile(
    r"(?:(Error|Exit Code|Signal|Background PIDs|Process Group PGID): (.{0,4000}))?(?:</untrusted_context>)?\Z"
)
_OUR_BRIEFING = re.compile(rf"(?s)(?:\A|\n)[^\n]{{0,40}}\n{{0,2}}{re.escape(OUR_MARK)}.*\Z")


class Transcript(Struct, kw_only=True):
    """A file that was read: whose session it is, where it ran, its messages, and how many lines were skipped.

    The messages of the first `known` lines were imported before and are left out. `others` are further sessions of the
    same file: branches of a conversation, each with the message (id, role) of its `parent` after which it begins.
    """

    session: str | None = None
    parent: str | None = None
    after: tuple[str, str] | None = None
    cwd: str | None = None
    known: int = 0
    messages: list[Message] = []
    others: "list[Transcript]" = []
    skipped: int = 0
    given: set[int] = set()  # hashes of the texts that programs have put in: hosts repeat them, one copy is enough

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
                self.skipped += number > self.known

    def add(self, number: int, messages: Iterable[Message]) -> None:
        """Add the messages of a line, unless it was read before; of a text that a program repeats, only the first."""
        for message in messages:
            if message.name == CONTEXT:
                if hash(message.content) in self.given:
                    continue
                self.given.add(hash(message.content))
            if number > self.known:
                self.messages.append(message)

    @contextmanager
    def skipping(self, number: int) -> Iterator[None]:
        """Skip and count a record with fields of a type that its parser does not expect; the next one may be fine."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            self.skipped += number > self.known


Parser = Callable[[Iterable[bytes], int], Transcript]


def without_injected(content: str) -> str:
    """The text without what hooks, and Kept itself, have put into it.

    Text between two such blocks may be the user's, or that of the first block, which closed it and opened the next:
    then all stays, and counts as quoted. Gemini CLI has a block before and one after a prompt, and escapes the text of
    hooks, as our mark shows: no block of it can close itself, so the text between them is the user's.
    """
    if "<" in content or "Additional guidance" in content:
        found = [*_INJECTED.finditer(content)]
        is_escaped = any(_ESCAPED_MARK in one[0] for one in found) and all(_ESCAPED.fullmatch(one[0]) for one in found)
        if is_escaped or not any(content[one.end() : other.start()].strip() for one, other in pairwise(found)):
            content = _INJECTED.sub("", content)
    if OUR_MARK in content:
        content = _OUR_BRIEFING.sub("", content)
    return content


def blocks(id: str, role: MessageRole, content: Any, at: datetime | None, *, is_error: bool = False) -> list[Message]:
    """The messages in the content of one record: what was said, then calls and results, each under its own id."""
    if role == "tool_result":
        is_blank = isinstance(content, str) and not content.strip()
        shown = content if isinstance(content, str) else result_text(content)
        return [] if is_blank else [said(id, role, shown, at, is_error=is_error)]
    if isinstance(content, str):
        return spoken(id, role, content, at)
    parts = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [text_of(one.get("text")) or "" for one in parts if one.get("type") == "text"]
    found = spoken(id, role, "\n".join(texts), at)
    for number, block in enumerate(parts):
        found += _block(f"{id}_{number}", block, at)
    return found


def _block(id: str, block: dict[str, Any], at: datetime | None) -> list[Message]:
    """A block beside what was said: a call, a result, or text that a program put in."""
    kind = str(block.get("type"))
    if kind in _CALLS:
        return [
            called(text_of(block.get("id")) or id, block.get("name"), block.get("input") or block.get("arguments"), at)
        ]
    if kind.endswith("tool_result"):  # also web_search_tool_result and others that run at the model's provider
        result, is_error = result_text(block.get("content")), block.get("is_error") is True
        return [said(text_of(block.get("tool_use_id")) or id, "tool_result", result, at, is_error=is_error)]
    return [] if kind in _OWN_BLOCKS else handed_over(id, block, at)


def flat(value: Any) -> str:
    """Text, however deep it is wrapped in lists and objects."""
    if isinstance(value, str):
        return value[:MAX_MESSAGE_CHARS]
    if isinstance(value, list):
        return "\n".join(part for entry in value if (part := flat(entry)))[:MAX_MESSAGE_CHARS]
    if isinstance(value, dict):
        for name in ("text", "content", "output", "functionResponse", "response", "error"):
            if name in value:
                return flat(value[name])
        return msgspec.json.encode(value).decode()[:MAX_MESSAGE_CHARS] if value.get("type") not in ("image",) else ""
    return ""


def result_text(value: Any) -> str:
    """All that a tool result says: its text, then the texts beside it that this leaves out."""
    shown = flat(value)
    more = dict.fromkeys(text for text in _texts_in(value) if text not in shown)
    return "\n".join((shown, *more))[:MAX_MESSAGE_CHARS] if more else shown


def _texts_in(value: Any) -> Iterator[str]:
    """Every text of several words, however deep it is; names, numbers and pictures are none."""
    if isinstance(value, str):
        if not value.isascii() or len(value.split(maxsplit=1)) > 1:
            yield value
    elif isinstance(value, dict | list):
        inner = chain.from_iterable(value.items()) if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts_in, inner))


def handed_over(id: str, value: Any, at: datetime | None) -> list[Message]:
    """Text that a program put into the conversation, outside of the answers of tools; nothing if there is none."""
    content = _storable(value if isinstance(value, str) else "\n".join(_texts_in(value)))[:MAX_MESSAGE_CHARS].strip(
        "\n"
    )
    return [Message(id=id, role="tool_result", name=CONTEXT, content=content, at=at)] if content.strip() else []


def of_hook(id: str, value: Any, at: datetime | None) -> list[Message]:
    """Text that a hook put into the conversation, where a host keeps nothing else; without that of Kept's hook."""
    content = value if isinstance(value, str) else "\n".join(_texts_in(value))
    return handed_over(id, without_injected(without_delivered(content)), at)


def shell_report(result: str) -> tuple[str, bool]:
    """What a command printed, and whether it failed, of the report that Gemini and Qwen make of it; else as it is."""
    lines = result.strip().split("\n")
    start = next((number for number, line in enumerate(lines[:_REPORT_LINES]) if line.startswith("Output: ")), None)
    if start is None:
        return result, False
    about: dict[str, str] = {}
    while lines[start + 1 :] and (found := _REPORT_END.match(lines[-1])):
        about[found[1] or ""] = found[2] or ""
        lines.pop()
    if "Exit Code" not in about and "Process Group PGID" not in about:
        return result, False
    output = "\n".join([lines[start].removeprefix("Output: "), *lines[start + 1 :]])
    shown = [text for text in (output, about.get("Error", "")) if text not in ("", "(empty)", "(none)")]
    return "\n".join(shown), about.get("Exit Code", "0") not in ("0", "(none)")


def at_most(most: Trust, messages: list[Message]) -> list[Message]:
    """The messages, none with more trust than that."""
    if most == "user":
        return messages
    return [replace(message, trust=least(message.trust, most)) for message in messages]


def said(id: str, role: MessageRole, content: str, at: datetime | None, *, is_error: bool = False) -> Message:
    """A message with a text. In a tool result, a page may imitate what Kept puts in: nothing is taken out of it."""
    content = _storable(content[:MAX_MESSAGE_CHARS])
    content = (content if role == "tool_result" else without_injected(content)).strip("\n")
    return Message(id=id, role=role, content=content, at=at, is_error=is_error)


def spoken(id: str, role: MessageRole, content: str, at: datetime | None) -> list[Message]:
    """A message of the user or the agent, and the files and pages that the host has put into the user's."""
    own, inlined = without_inlined(content) if role == "user" else (content, "")
    message = said(id, role, own, at)
    return [*([message] if message.content.strip() else []), *handed_over(f"{id}_context", inlined, at)]


def called(id: str, name: Any, input: Any, at: datetime | None) -> Message:
    """A tool call."""
    given = input if isinstance(input, dict) else {}
    input = {name: value[:MAX_MESSAGE_CHARS] if isinstance(value, str) else value for name, value in given.items()}
    return Message(id=id, role="tool_call", name=text_of(name), input=input, at=at)


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


def text_of(value: Any) -> str | None:
    """The value as a text that can be stored; None if it is none, or empty."""
    return _storable(value) if isinstance(value, str) and value else None


def moment_of(value: Any) -> datetime | None:
    """A time as ISO 8601 text or in milliseconds since 1970; None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
        if not isinstance(value, str):
            return None
        at = datetime.fromisoformat(value)
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
