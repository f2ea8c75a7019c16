"""`kept show`: one memory, or one message, in full."""

from datetime import datetime
from typing import Any

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, message_named
from kept.entrypoints.cli.invocation import Invocation, Line
from kept.entrypoints.cli.read import heir_of
from kept.entrypoints.cli.wording import ago, as_document, counted, field_lines, local, message_lines, name_of, state
from kept.memory.verbs.read import GET
from kept.model import CHECK, Memory

_RULES = {"names_code": "mentions_code"}  # the stored name of a rule, and a plainer one


@command
@options_of(GET)
def show_command(invocation: Invocation, **given: Any) -> None:
    """REF is 42, g42 for a global memory, [id:42], or ID#12 for a message of a session. Archived memories are shown as
    well; forgotten ones with --forgotten.
    """
    asked = request_of(GET, given)
    with invocation.open() as memory:
        if "#" in str(asked.ref):
            name = message_named(invocation, memory, str(asked.ref))
            message = memory.look().message(name)
            invocation.answer(message, message_lines(message, invocation, name=name))
            return
        found = memory.perform(GET, asked)
        heir, own = heir_of(memory, found.superseded_by), memory.look().standing(found)
    code = {"code": own.note or ("as it was" if own.state == "fresh" else ""), "branch": own.branch}
    invocation.answer(as_document(found), _in_full(found, {"held": own.until, "replaced by": heir, **code}, invocation))


def _reasons(memory: Memory) -> str:
    """The rules that chose it from a conversation: "mentions code, reason", or ""."""
    rules = (memory.data or {}).get("rules")
    words = (_RULES.get(str(rule), str(rule)) for rule in rules) if isinstance(rules, list) else ()
    return ", ".join(word.replace("_", " ") for word in words)


def _in_full(memory: Memory, more: dict[str, str], invocation: Invocation) -> list[Line]:
    return [
        (name_of(memory), f" {memory.kind}"),
        *(("    ", line) for line in memory.content.replace("\r\n", "\n").split("\n")),
        *field_lines({**_fields(memory), **_dates(memory, invocation), **more}),
    ]


def _fields(memory: Memory) -> dict[str, str]:
    return {
        "status": state(memory) or memory.status,
        "trust": memory.trust,
        "tags": ", ".join(memory.tags),
        "check": str((memory.data or {}).get(CHECK, "")),
        "files": ", ".join(memory.files),
        "topic": memory.topic or "",
        "key": memory.key or "",
        "title": memory.title or "",
        "tier": memory.tier if memory.tier != "project" else "",
        "importance": f"{memory.importance:.2g}",
        "feedback": f"{memory.feedback:+d}" if memory.feedback else "",
        "used": counted(memory.use_count, "time") if memory.use_count else "",
        "why kept": _reasons(memory),
    }


def _dates(memory: Memory, invocation: Invocation) -> dict[str, str]:
    now, source = invocation.clock(), memory.source

    def when(at: datetime | None) -> str:
        return "" if at is None else f"{local(at, invocation.zone)}, {ago(at, now)}"

    return {
        "written": f"{when(memory.created_at)}, by {source.agent or source.origin}",
        "found in": f"{source.file}{f':{source.line}' if source.line else ''}" if source.file else "",
        "changed": when(memory.updated_at) if memory.updated_at != memory.created_at else "",
        "archived": when(memory.archived_at),
    }
