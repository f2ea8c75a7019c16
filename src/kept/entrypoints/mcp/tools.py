"""The tools of the MCP server, derived from the verbs.

A tool is the verb whose row names it (`kept.memory.verbs`); several verbs may share one. Seven by default, which are
enough for an agent's whole life with its memory; with `--all-tools` every verb and every argument. This module adds
what an agent needs besides: arguments that the server knows itself, smaller limits, and the wording of answers. Rule: a
memory is written by `memory_line`, so no stored text can pass for another memory or for a word of the tool.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kept.entrypoints.answers import NO_LIST, answer_lines
from kept.entrypoints.mcp.calls import Call, MemoryTool
from kept.entrypoints.wording import receipt_lines
from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.memory import verbs
from kept.memory.brief import hit_line, memory_line, trust_mark
from kept.memory.judge_lists import JudgeList, Judgement
from kept.memory.reasons import why_nothing
from kept.memory.receipts import RecallReceipt
from kept.memory.verbs.arguments import Argument, build, schema_of, wire_arguments
from kept.memory.verbs.declare import AnyVerb, Tool
from kept.memory.verbs.remember import Remember
from kept.model import CHECK, Briefing, Conflict, Draft, Event, Hit, Memory, Recalled, Receipt, Source, replace
from kept.text import visible

MOST_SAID = 3  # messages, where no memory fits
MOST = 50  # hits or memories in one answer: more of them would push the work out of a context
BRIEFING_TOKENS = 1_500
TITLE_CHARS = 80
SAID_CHARS = 500


# What the server adds to the arguments of a call


def _remembered(call: Call) -> dict[str, Any]:
    return {"source": Source(origin="agent", agent=call.surroundings.agent, session=call.surroundings.session)}


def _in_session(call: Call) -> dict[str, Any]:
    return {"session": call.surroundings.session}


def _as_text(call: Call) -> dict[str, Any]:
    return {"session": call.surroundings.session, "style": "text"}


ADDED: Mapping[str, tuple[tuple[str, ...], Callable[[Call], dict[str, Any]]]] = {
    "remember": (("session",), _remembered),
    "recall": (("session", "all_projects"), _in_session),
    "revise": (("session",), _in_session),
    "briefing": (("session", "style"), _as_text),
}
# OpenHands cannot load a tool that has an argument `kind`; and agents read ids.
RENAMED: Mapping[str, str] = {"kind": "memory_kind", "ref": "id"}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "briefing": {"budget_tokens": BRIEFING_TOKENS},
    "list": {"limit": 20},
    "sessions": {"limit": 20, "newest_first": True},
}


# The wording of answers


def _stored(call: Call, receipt: Receipt) -> str:
    if receipt.outcome == "refused":
        raise InvalidInput(f"Not kept ({receipt.reason}): {receipt.message}")
    return "\n".join(
        receipt_lines(
            receipt, of_near="Use memory_update if one of them is the same fact.", of_conflicts="Tell the user."
        )
    )


def _recalled(call: Call, recalled: Recalled) -> str:
    query, scope = call.given["query"], call.given.get("scope", "memory")
    lines = _said(recalled) if scope == "sessions" else [hit_line(hit) for hit in recalled]
    if not lines and scope == "memory" and call.given.get("as_of") is None:
        found = call.memory.recall(query, limit=MOST_SAID, scope="sessions")
        said = _said(call.memory.look().tellable(found))
        lines = ["Nothing fits. In earlier sessions:", *said] if said else []
    if not lines:
        lines = ["Nothing fits. Try other key words or synonyms; memory that does not exist cannot be found."]
    pinned = [one for one in recalled.pinned if one.ref not in {hit.ref for hit in recalled}]
    if pinned:
        lines += ["Pinned:", *map(memory_line, pinned)]
    if recalled.conflicts:
        lines.append(f"Some of these contradict each other: {', '.join(one.ref for one in recalled.conflicts)}.")
    if recalled.degraded:
        lines.append(f"Note: {visible(recalled.degraded, keep_newlines=False)}")
    return "\n".join(lines)


def _said(recalled: Iterable[Hit]) -> list[str]:
    """Return a line for each message that was found."""
    lines = []
    for hit in recalled:
        said = hit.message
        if said is not None:
            when = f"{said.at:%Y-%m-%d %H:%M}" if said.at else "undated"
            words = visible(" ".join(said.content.split()), keep_newlines=False)
            lines.append(f"{visible(said.session)} {when} {said.role}: {words[:SAID_CHARS]}")
    return lines


def _rated(_call: Call, memory: Memory) -> str:
    return f"[id:{memory.ref}] now has feedback {memory.feedback:+d}."


def _briefed(_call: Call, briefing: Briefing) -> str:
    if briefing.error:
        raise InvalidInput(briefing.error)
    return str(briefing) or "Nothing is stored that an agent should know here."


def _forgotten(_call: Call, memory: Memory) -> str:
    return f"[id:{memory.ref}] is forgotten. `kept restore {memory.ref}` brings it back."


def _shown(call: Call, memory: Memory) -> str:
    standing = call.memory.look().standing(memory)
    facts = {
        "status": memory.status + (f" ({memory.reason})" if memory.reason else ""),
        "tags": ", ".join(memory.tags),
        "files": ", ".join(memory.files),
        "check": str((memory.data or {}).get(CHECK, "")),
        "source": " ".join(filter(None, (memory.source.origin, memory.source.agent, memory.source.session))),
        "feedback": f"{memory.feedback:+d}",
        "created": f"{memory.created_at:%Y-%m-%d}",
        "verified": f"{memory.verified_at:%Y-%m-%d}" if memory.verified_at else "",
    }
    lines = [f"  {name}: {visible(value, keep_newlines=False)}" for name, value in facts.items() if value]
    return "\n".join([memory_line(memory, standing), *lines])


def _history(call: Call, events: Sequence[Event]) -> str:
    lines = answer_lines(events)
    if (ref := call.given.get("id")) is not None:
        found = call.memory.get(ref, forgotten=True)
        standing = call.memory.look().standing(found)
        lines += [memory_line(found, standing)] if standing.until else []
    return "\n".join(lines)


def _explained(_call: Call, explained: RecallReceipt) -> str:
    lines = [f"{explained.receipt}: {explained.kind} on {explained.at:%Y-%m-%d %H:%M} UTC"]
    for hit in explained.hits:
        sign = " + " if "#" in hit["ref"] else " × "  # the score of a message is a sum
        factors = sign.join(f"{name} {number:.3g}" for name, number in hit["why"].items())
        lines.append(f"[id:{hit['ref']}] {hit['score']:.3g} = {factors}")
    if (nothing := why_nothing(explained)) is not None:
        lines.append(f"Nothing was given: {nothing}.")
    lines += [f"missed [id:{miss['ref']}]: {miss['reason']}" for miss in explained.misses]
    return visible("\n".join(lines))


def _conflicting(call: Call, found: Sequence[Conflict]) -> str:
    lines = []
    for conflict in found:
        sides = [_side(call, uid) for uid in (conflict.left, conflict.right)]
        lines += [f"{conflict.ref} ({conflict.type}):", *sides]
    return "\n".join(lines) or "No memories contradict each other."


def _side(call: Call, uid: str) -> str:
    """Return one side of a contradiction; of a settled one it may be forgotten or erased."""
    try:
        return memory_line(call.memory.get(uid))
    except NotFound as error:
        return error.message


def _asked(_call: Call, found: JudgeList) -> str:
    return found.text or NO_LIST


def _judged(_call: Call, settled: Judgement) -> str:
    parts = {"kept": settled.kept, "rewritten": settled.rewritten, "dropped": settled.dropped, "added": settled.added}
    counts = ", ".join(f"{len(refs)} {name}" for name, refs in parts.items() if refs) or "nothing changed"
    return f"Settled: {counts}. A person can undo it. Go on with your work."


def _sentence(before: str) -> Callable[[Call, Memory], str]:
    return lambda _call, memory: f"{before}: {memory_line(memory)}"


ANSWERS: Mapping[str, Callable[[Call, Any], str]] = {
    "remember": _stored,
    "reviews.propose": _stored,
    "recall": _recalled,
    "reinforce": _rated,
    "demote": _rated,
    "revise": _sentence("Corrected"),
    "briefing": _briefed,
    "pin": _sentence("Pinned"),
    "unpin": _sentence("No longer pinned"),
    "forget": _forgotten,
    "restore": _sentence("Restored"),
    "get": _shown,
    "history": _history,
    "why": _explained,
    "proposals": _asked,
    "judge": _judged,
    "conflicts": _conflicting,
    "resolve": _sentence("Settled. This one holds"),
}


# From verbs to tools


class _Row(NamedTuple):
    """One verb of a tool, and the arguments that the tool shows of it, by their names there."""

    verb: AnyVerb
    tool: Tool
    arguments: Mapping[str, Argument]

    def is_meant(self, given: Mapping[str, Any]) -> bool:
        return not self.tool.when or given.get(self.tool.when) is not None


def _row(verb: AnyVerb, tool: Tool, *, is_whole: bool) -> _Row:
    hidden = ADDED.get(verb.name, ((),))[0]
    shown = [
        one for one in wire_arguments(verb.request) if one.name not in hidden and (is_whole or one.name in tool.usual)
    ]
    return _Row(verb, tool, {_shown_name(tool, one.name): _smaller(verb, one) for one in shown})


def _shown_name(tool: Tool, name: str) -> str:
    return tool.renamed.get(name) or RENAMED.get(name, name)


def _smaller(verb: AnyVerb, argument: Argument) -> Argument:
    """Return the argument with the limit and the default that suit the context of a model."""
    default = DEFAULTS.get(verb.name, {}).get(argument.name, argument.default)
    if argument.name == "limit":
        return replace(argument, least=1, most=MOST, default=min(default or MOST, MOST))
    if (verb.name, argument.name) == ("remember", "tier"):
        return replace(argument, choices=("project", "global"), help="Where it holds.")
    return replace(argument, default=default, longest=None)


def _perform(rows: Sequence[_Row], call: Call) -> str:
    """Perform the verb of the tool that is meant, and put its answer into words."""
    row = next(row for row in rows if row.is_meant(call.given))
    given = {_shown_name(row.tool, name): value for name, value in call.given.items()}
    request = build(row.verb.request, given, verb=row.tool.name, known=row.arguments)
    if row.verb.name in ADDED:
        request = replace(request, **ADDED[row.verb.name][1](call))
    try:
        answer = call.memory.perform(row.verb, request)
    except NotAllowed:
        if not isinstance(request, Remember) or request.tier != "global" or call.can_ask:
            raise
        return _proposed(call, request)
    said = ANSWERS.get(row.verb.name)
    return said(call, answer) if said else "\n".join(answer_lines(answer))


def _proposed(call: Call, asked: Remember) -> str:
    """Store in the project what only a person may make global, where the client cannot ask one."""
    draft = Draft(content=asked.content, kind=asked.kind, tags=asked.tags, files=asked.files, source=asked.source)
    note = "Only this project has it so far. A person decides in `kept review` whether all projects get it."
    return f"{_stored(call, call.memory.reviews.propose(draft))}\n{note}"


def _tool(rows: Sequence[_Row]) -> MemoryTool:
    """Make one tool of the verbs that share it; the one that is meant without a special argument comes last."""
    ordered = sorted(rows, key=lambda row: not row.tool.when)
    main = ordered[-1].verb
    known: dict[str, Argument] = {}
    for row in reversed(ordered):
        for name, argument in row.arguments.items():
            is_needed = argument.is_required and all(name in one.arguments for one in ordered)
            known.setdefault(name, replace(argument, name=name, is_required=is_needed))
    return MemoryTool(
        name=ordered[-1].tool.name,
        title=main.help.removesuffix("."),
        run=lambda call: _perform(ordered, call),
        schema=schema_of(tuple(known.values())),
        reads=main.effect == "reads",
        destroys=main.effect == "destroys",
        repeats=main.is_repeatable,
    )


# Two tools that clients for research expect, by name and form


def _search(call: Call) -> str:
    hits = call.memory.recall(_only(call, "query"), limit=10).hits
    results = [
        {"id": hit.ref, "title": _title(hit.memory), "url": f"memory://memory/{hit.ref}", "trust": hit.memory.trust}
        for hit in hits
    ]
    return json.dumps({"results": results}, ensure_ascii=False)


def _fetch(call: Call) -> str:
    memory = call.memory.get(_only(call, "id"))
    metadata = {"kind": memory.kind, "status": memory.status, "trust": memory.trust, "tags": ", ".join(memory.tags)}
    document = {
        "id": memory.ref,
        "title": _title(memory),
        "text": trust_mark(memory.trust) + memory.content,
        "url": f"memory://memory/{memory.ref}",
    }
    return json.dumps({**document, "metadata": metadata}, ensure_ascii=False)


def _only(call: Call, name: str) -> str:
    """Return the one argument of a call. Raises InvalidInput."""
    value = call.given.get(name)
    if value is None or len(call.given) > 1:
        raise InvalidInput(f"This tool takes the argument {name}, and nothing else.")
    return str(value)


def _title(memory: Memory) -> str:
    first = trust_mark(memory.trust) + " ".join(memory.content.split())
    return first if len(first) <= TITLE_CHARS else first[: TITLE_CHARS - 1] + "…"


_QUERY = schema_of((Argument(name="query", form="string", help="Key words.", is_required=True),))
_ID = schema_of((Argument(name="id", form="string", help="The id of a memory.", is_required=True),))
_RESEARCH = (
    MemoryTool("search", "Search", _search, _QUERY, reads=True),
    MemoryTool("fetch", "Fetch", _fetch, _ID, reads=True),
)


def tools(*, all_tools: bool) -> dict[str, MemoryTool]:
    """Return the tools by name, always in the same order: clients cache a beginning that stays the same."""
    rows: dict[str, list[_Row]] = {}
    for verb in verbs.all_verbs(verbs.TOPICS if all_tools else verbs.USUAL_TOPICS):
        if isinstance(verb.mcp, Tool) and (all_tools or verb.mcp.usual):
            rows.setdefault(verb.mcp.name, []).append(_row(verb, verb.mcp, is_whole=all_tools))
    usual_first = sorted(rows.values(), key=lambda found: not any(row.tool.usual for row in found))
    derived = {found[0].tool.name: _tool(found) for found in usual_first}
    return derived | ({tool.name: tool for tool in _RESEARCH} if all_tools else {})
