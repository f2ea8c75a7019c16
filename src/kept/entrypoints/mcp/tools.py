"""The tools of the MCP server: what each takes, and what it answers.

Six by default, which are enough for an agent's whole life with its memory; the others with `--all-tools`. A tool is one
function from a Call to a text. Rule: a memory is written by `memory_line`, so no stored text can pass for another
memory or for a word of the tool.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kept.entrypoints.mcp.arguments import Argument
from kept.entrypoints.mcp.protocol import DESCRIPTIONS, GRAPH_DESCRIPTIONS
from kept.entrypoints.mcp.surroundings import Surroundings
from kept.errors import InvalidInput, NotAllowed
from kept.memory import Kept
from kept.memory.brief import memory_line
from kept.model import KINDS, Draft, Memory, Receipt, Source
from kept.recall.briefing.render import trust_mark
from kept.text import visible

MOST_SAID = 3  # messages, where no memory fits
MOST = 50  # hits or memories in one answer: more of them would push the work out of a context
BRIEFING_TOKENS = 1_500
TITLE_CHARS = 80


class Call(NamedTuple):
    """One call: the opened memory, the checked arguments, and what the call belongs to."""

    memory: Kept
    given: Mapping[str, Any]
    surroundings: Surroundings
    can_ask: bool  # whether the client can put a question to a person


class ToolAnswer(NamedTuple):
    """What a tool answers that has `answers`: the text, and the same as values."""

    text: str
    values: dict[str, Any]


class MemoryTool(NamedTuple):
    """One tool. `reads`: it changes nothing that anybody stored. `repeats`: calling it twice is calling it once.

    `answers`: the values of its answer, where clients expect some. Such a tool leaves out arguments it does not know.
    """

    name: str
    title: str
    run: Callable[[Call], str | ToolAnswer]
    arguments: tuple[Argument, ...]
    is_default: bool = False
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    answers: tuple[Argument, ...] = ()

    @property
    def description(self) -> str:
        return {**DESCRIPTIONS, **GRAPH_DESCRIPTIONS}[self.name]


# The six


def _store(call: Call) -> str:
    given = call.given
    source = Source(origin="agent", agent=call.surroundings.agent, session=call.surroundings.session)
    draft = Draft(
        content=given["content"],
        kind=given["memory_kind"],
        tags=tuple(given["tags"]),
        files=tuple(given["files"]),
        tier=given["tier"],
        source=source,
    )
    note = ""
    try:
        receipt = call.memory.remember_many([draft])[0]
    except NotAllowed:
        if draft.tier != "global" or call.can_ask:
            raise
        receipt = call.memory.reviews.propose(draft)
        note = "Only this project has it so far. A person decides in `kept review` whether all projects get it."
    return "\n".join(filter(None, [*_stored(receipt), note if receipt.outcome != "refused" else ""]))


def _stored(receipt: Receipt) -> list[str]:
    if receipt.outcome == "refused":
        raise InvalidInput(f"Not stored ({receipt.reason}): {receipt.message}")
    first = {
        "stored": f"Stored as [id:{receipt.ref}].",
        "strengthened": f"Already known as [id:{receipt.ref}], which is more important now.",
        "candidate": f"Stored as [id:{receipt.ref}], a candidate until it is used or confirmed.",
    }[receipt.outcome]
    lines = [first]
    if receipt.redactions:
        lines.append(f"Redacted before it was stored: {', '.join(one.kind for one in receipt.redactions)}.")
    if receipt.superseded:
        lines.append(f"It replaces {_ids(receipt.superseded)}.")
    if receipt.near:
        lines.append(f"Similar memories: {_ids(receipt.near)}. Use memory_update if one of them is the same fact.")
    if receipt.conflicts:
        lines.append(
            f"It contradicts what is stored: {', '.join(one.ref for one in receipt.conflicts)}. Tell the user."
        )
    return lines


def _query(call: Call) -> str:
    given = call.given
    recalled = call.memory.recall(
        given["query"], limit=given["limit"], kinds=given["kinds"], tags=given["tags"], files=given["files"]
    )
    lines = [memory_line(hit.memory) for hit in recalled]
    if not lines:
        said = _said(call.memory, given["query"], MOST_SAID)
        nothing = "Nothing fits. Try other key words or synonyms; memory that does not exist cannot be found."
        lines = ["Nothing fits. In earlier sessions:", *said] if said else [nothing]
    pinned = [one for one in recalled.pinned if one.ref not in {hit.ref for hit in recalled}]
    if pinned:
        lines += ["Pinned:", *map(memory_line, pinned)]
    if recalled.conflicts:
        lines.append(f"Some of these contradict each other: {', '.join(one.ref for one in recalled.conflicts)}.")
    if recalled.degraded:
        lines.append(f"Note: {visible(recalled.degraded, keep_newlines=False)}")
    return "\n".join(lines)


def _reinforce(call: Call) -> str:
    memory = call.memory.reinforce(call.given["id"])
    return f"[id:{memory.ref}] now has feedback {memory.feedback:+d}."


def _demote(call: Call) -> str:
    memory = call.memory.demote(call.given["id"])
    return f"[id:{memory.ref}] now has feedback {memory.feedback:+d}."


def _update(call: Call) -> str:
    given = call.given
    memory = call.memory.revise(given["id"], given["content"], given["tags"], session=call.surroundings.session)
    return f"Corrected: {memory_line(memory)}"


def _briefing(call: Call) -> str:
    briefing = call.memory.briefing(
        call.given["prompt"],
        files=call.given["files"],
        budget_tokens=call.given["budget_tokens"],
        session=call.surroundings.session,
        style="text",
    )
    if briefing.error:
        raise InvalidInput(briefing.error)
    return str(briefing) or "Nothing is stored that an agent should know here."


# The rest


def _pin(call: Call) -> str:
    if call.given["pinned"]:
        return f"Pinned: {memory_line(call.memory.pin(call.given['id']))}"
    return f"No longer pinned: {memory_line(call.memory.unpin(call.given['id']))}"


def _forget(call: Call) -> str:
    memory = call.memory.forget(call.given["id"])
    return f"[id:{memory.ref}] is forgotten. `kept restore {memory.ref}` brings it back."


def _list(call: Call) -> str:
    given = call.given
    found = call.memory.list(
        kinds=given["kinds"], tags=given["tags"], status=given["status"], limit=given["limit"], after=given["after"]
    )
    return "\n".join(map(memory_line, found)) or "There is no such memory."


def _get(call: Call) -> str:
    memory = call.memory.get(call.given["id"])
    facts = {
        "status": memory.status + (f" ({memory.reason})" if memory.reason else ""),
        "tags": ", ".join(memory.tags),
        "files": ", ".join(memory.files),
        "source": " ".join(filter(None, (memory.source.origin, memory.source.agent, memory.source.session))),
        "feedback": f"{memory.feedback:+d}",
        "created": f"{memory.created_at:%Y-%m-%d}",
        "verified": f"{memory.verified_at:%Y-%m-%d}" if memory.verified_at else "",
    }
    lines = [f"  {name}: {visible(value, keep_newlines=False)}" for name, value in facts.items() if value]
    return "\n".join([memory_line(memory), *lines])


def _why(call: Call) -> str:
    explained = call.memory.why(call.given["receipt"])
    lines = [f"{explained.receipt}: {explained.kind} on {explained.at:%Y-%m-%d %H:%M} UTC"]
    for hit in explained.hits:
        sign = " + " if "#" in hit["ref"] else " × "  # the score of a message is a sum
        factors = sign.join(f"{name} {number:.3g}" for name, number in hit["why"].items())
        lines.append(f"[id:{hit['ref']}] {hit['score']:.3g} = {factors}")
    lines += [f"missed [id:{miss['ref']}]: {miss['reason']}" for miss in explained.misses]
    return visible("\n".join(lines))


def _conflicts(call: Call) -> str:
    found = call.memory.conflicts()
    lines = []
    for conflict in found:
        sides = [memory_line(call.memory.get(uid)) for uid in (conflict.left, conflict.right)]
        lines += [f"{conflict.ref} ({conflict.type}):", *sides]
    return "\n".join(lines) or "No memories contradict each other."


def _resolve(call: Call) -> str:
    kept = call.memory.resolve(call.given["conflict"], call.given["keep"])
    return f"Settled. This one holds: {memory_line(kept)}"


def _tasks(call: Call) -> str:
    lines = [f"{task.name} ({task.state}): {task.description}" for task in call.memory.tasks() if not task.has_ended]
    return "\n".join(visible(line, keep_newlines=False) for line in lines) or "There is no open task."


def _sessions(call: Call) -> str:
    return "\n".join(_said(call.memory, call.given["query"], call.given["limit"])) or "No session has these words."


def _said(memory: Kept, query: str, limit: int) -> list[str]:
    """What was said about it in sessions, a line for each message."""
    lines = []
    for hit in memory.recall(query, limit=limit, scope="sessions"):
        said = hit.message
        if said is not None:
            when = f"{said.at:%Y-%m-%d %H:%M}" if said.at else "undated"
            words = visible(" ".join(said.content.split()), keep_newlines=False)
            lines.append(f"{visible(said.session)} {when} {said.role}: {words[:500]}")
    return lines


def _search(call: Call) -> str:
    hits = call.memory.recall(call.given["query"], limit=10).hits
    results = [
        {"id": hit.ref, "title": _title(hit.memory), "url": f"memory://memory/{hit.ref}", "trust": hit.memory.trust}
        for hit in hits
    ]
    return json.dumps({"results": results}, ensure_ascii=False)


def _fetch(call: Call) -> str:
    memory = call.memory.get(call.given["id"])
    metadata = {"kind": memory.kind, "status": memory.status, "trust": memory.trust, "tags": ", ".join(memory.tags)}
    document = {
        "id": memory.ref,
        "title": _title(memory),
        "text": trust_mark(memory.trust) + memory.content,
        "url": f"memory://memory/{memory.ref}",
    }
    return json.dumps({**document, "metadata": metadata}, ensure_ascii=False)


def _title(memory: Memory) -> str:
    first = trust_mark(memory.trust) + " ".join(memory.content.split())
    return first if len(first) <= TITLE_CHARS else first[: TITLE_CHARS - 1] + "…"


def _ids(refs: Iterable[str]) -> str:
    return ", ".join(f"[id:{ref}]" for ref in refs)


_ID = Argument("id", "string", "The id of the memory: the N of [id:N].", is_required=True)
_KINDS = Argument("kinds", "strings", f"Only these kinds: {', '.join(KINDS)}.", default=[])
_TAGS = Argument("tags", "strings", "Only memories with one of these tags.", default=[])
_LIMIT = Argument("limit", "integer", "How many at most.", default=5, least=1, most=MOST)
_AT_HAND = Argument("files", "strings", "Files at hand: memories about them rank higher.", default=[])

_ALL: Sequence[MemoryTool] = (
    MemoryTool(
        "memory_store",
        "Store a memory",
        _store,
        (
            Argument(
                "content", "string", "One fact in one or two sentences, at most 500 characters.", is_required=True
            ),
            # OpenHands cannot load a tool that has an argument `kind`.
            Argument("memory_kind", "string", f"What it is: {', '.join(KINDS)}.", default="fact", alias="kind"),
            Argument("tags", "strings", "2-5 short topics.", default=[]),
            Argument("files", "strings", "Paths of the files it is about.", default=[]),
            Argument("tier", "string", "Where it holds.", default="project", choices=("project", "global")),
        ),
        is_default=True,
    ),
    MemoryTool(
        "memory_query",
        "Search memories",
        _query,
        (
            Argument("query", "string", "2-6 key words with synonyms.", is_required=True),
            _LIMIT,
            _KINDS,
            _TAGS,
            _AT_HAND,
        ),
        is_default=True,
        reads=True,
    ),
    MemoryTool("memory_reinforce", "Mark a memory as helpful", _reinforce, (_ID,), is_default=True),
    MemoryTool("memory_demote", "Mark a memory as unhelpful", _demote, (_ID,), is_default=True),
    MemoryTool(
        "memory_update",
        "Correct a memory",
        _update,
        (
            _ID,
            Argument("content", "string", "The whole new text.", is_required=True),
            Argument("tags", "strings", "The new tags; left out, the tags stay."),
        ),
        is_default=True,
        repeats=True,
    ),
    MemoryTool(
        "memory_briefing",
        "Get a briefing",
        _briefing,
        (
            Argument("prompt", "string", "The task ahead, in a few words.", default=""),
            _AT_HAND,
            Argument("budget_tokens", "integer", "Its size at most.", default=BRIEFING_TOKENS, least=100, most=5_000),
        ),
        is_default=True,
        reads=True,
    ),
    MemoryTool(
        "memory_pin",
        "Pin a memory",
        _pin,
        (_ID, Argument("pinned", "boolean", "Pin it, or end the pin.", default=True)),
        repeats=True,
    ),
    MemoryTool("memory_forget", "Forget a memory", _forget, (_ID,), destroys=True, repeats=True),
    MemoryTool(
        "memory_list",
        "List memories",
        _list,
        (
            _KINDS,
            _TAGS,
            Argument("status", "string", "Only this status.", choices=("candidate", "confirmed", "pinned", "archived")),
            Argument("limit", "integer", "How many at most.", default=20, least=1, most=MOST),
            Argument("after", "string", "The last id of the page before."),
        ),
        reads=True,
    ),
    MemoryTool("memory_get", "Show a memory", _get, (_ID,), reads=True),
    MemoryTool(
        "memory_why", "Explain a recall", _why, (Argument("receipt", "string", "A receipt, such as r12."),), reads=True
    ),
    MemoryTool("memory_conflicts", "List conflicts", _conflicts, (), reads=True),
    MemoryTool(
        "memory_resolve",
        "Settle a conflict",
        _resolve,
        (
            Argument("conflict", "string", "The conflict, such as c7.", is_required=True),
            Argument("keep", "string", "The id of the memory that holds.", is_required=True),
        ),
        destroys=True,
    ),
    MemoryTool("memory_tasks", "List open tasks", _tasks, (), reads=True),
    MemoryTool(
        "memory_sessions",
        "Search sessions",
        _sessions,
        (Argument("query", "string", "2-6 key words.", is_required=True), _LIMIT),
        reads=True,
    ),
    MemoryTool("search", "Search", _search, (Argument("query", "string", "Key words.", is_required=True),), reads=True),
    MemoryTool("fetch", "Fetch", _fetch, (_ID,), reads=True),
)


def tools(*, all_tools: bool) -> dict[str, MemoryTool]:
    """The tools by name, always in the same order: clients cache what begins alike."""
    return {tool.name: tool for tool in _ALL if all_tools or tool.is_default}
