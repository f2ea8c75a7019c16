"""`kept recall`: the answer for a person, with the numbers behind it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from kept import text
from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, session_named
from kept.entrypoints.cli.invocation import Clash, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import (
    apart,
    as_document,
    matched_parts,
    meant_kinds,
    memory_lines,
    name_of,
    nothing_yet,
)
from kept.errors import InvalidInput
from kept.memory import Kept
from kept.memory.verbs.recall import RECALL, Recall
from kept.model import Hit, Memory, Miss, Recalled, texts_of

SHOWN_OF_A_MISS = 100  # characters
SHOWN_WORDS = 6
SHOWN_PINS = 5  # as many as come with every answer
MOST_SAID = 3  # messages that are shown where no memory fits
ASKED_FOR = "asked for"  # the reason of a word that is part of the query


@command
@options_of(RECALL)
@click.option("--explain", is_flag=True, help="Show the factors of every score, and the memories that just missed.")
def recall_command(invocation: Invocation, *, explain: bool, **given: Any) -> None:
    """Give two to six key words, and synonyms if you like; not a sentence."""
    asked = request_of(RECALL, given)
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise InvalidInput("--since is later than --until, so nothing can match.", hint="Swap the two dates.")
    names = _project_names(invocation) if asked.all_projects else None
    with invocation.open() as memory:
        if asked.session is not None:
            asked = replace(asked, session=session_named(invocation, memory, asked.session, must_exist=False))
        recalled = memory.perform(RECALL, asked)
        lines = _lines(recalled, asked.query, invocation.clock(), explain=explain, names=names)
        lines += _hidden_pins(memory, recalled)
        if not recalled.hits:
            lines = [*_nothing_found(memory, invocation, recalled, asked), *lines]
    invocation.answer(_recalled_document(recalled, names), [*lines, *_notes(recalled, asked.query)])


def _project_names(invocation: Invocation) -> dict[str, str]:
    """Space → the name of its project."""
    projects = invocation.projects().list_projects()
    return {project.team.space if project.team else project.space: project.name for project in projects}


def _recalled_document(recalled: Recalled, names: Mapping[str, str] | None) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(recalled)
    document["hits"] = [_hit_document(hit, names) for hit in recalled.hits]
    document["misses"] = [{"hit": _hit_document(miss.hit), "reason": miss.reason} for miss in recalled.misses]
    document["pinned"] = [as_document(memory) for memory in recalled.pinned]
    return document


def _hit_document(hit: Hit, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    document = {"ref": hit.ref, **msgspec.to_builtins(hit), "memory": as_document(hit.memory)}
    return document if names is None else {**document, "project": names.get(hit.memory.space)}


def _lines(
    recalled: Recalled, query: str, now: datetime, *, explain: bool, names: Mapping[str, str] | None
) -> list[Line]:
    lines = apart([_hit_lines(hit, query, now, explain=explain, names=names) for hit in recalled.hits])
    if explain:
        lines += _headed("Just missed:", [line for miss in recalled.misses for line in _miss_lines(miss)])
    pinned = _pinned_beside(recalled)
    lines += _headed("Pinned:", [line for memory in pinned for line in memory_lines(memory, now)])
    if recalled.conflicts:
        named = ", ".join(one.ref for one in recalled.conflicts)
        lines += ["", Clash(f"Some of these contradict each other: {named}. `kept review conflicts` shows them.")]
    return lines


def _headed(heading: str, lines: list[Line]) -> list[Line]:
    return ["", Strong(heading), *lines] if lines else []


def _hit_lines(hit: Hit, query: str, now: datetime, *, explain: bool, names: Mapping[str, str] | None) -> list[Line]:
    stems = hit.matched.keys()
    lines = memory_lines(hit.memory, now, hit.until, mark=lambda text: matched_parts(text, stems))
    if about := "; ".join(filter(None, (hit.branch, hit.note))):
        lines.append(Dim(f"    {about}"))
    if names is not None:
        name = names.get(hit.memory.space)
        lines.append(Dim("    in global memory" if name is None else f"    in project {name}"))
    if reasons := _reasons(hit, query):
        lines.append(Dim(f"    {reasons}"))
    if explain:
        lines.append(Dim(f"    {product(hit.score, hit.why, hit.parts, hit.ref)}"))
    return lines


def _pinned_beside(recalled: Recalled) -> list[Memory]:
    """Return the pinned memories that are not among the hits."""
    found = {hit.memory.uid for hit in recalled.hits}
    return [memory for memory in recalled.pinned if memory.uid not in found]


def _hidden_pins(memory: Kept, recalled: Recalled) -> list[Line]:
    if len(recalled.pinned) < SHOWN_PINS:
        return []
    hidden = len(memory.list(status="pinned", limit=10_000)) - len(recalled.pinned)
    return [f"{hidden:,} more pinned. `kept list --status pinned` shows all."] if hidden > 0 else []


def _notes(recalled: Recalled, query: str) -> list[Line]:
    notes: list[Line] = [f"Note: {recalled.degraded}"] if recalled.degraded else []
    if text.query_words(query) != text.query_words(query, text.MAX_QUERY_WORDS + 1):
        notes.append(f"Note: only the first {text.MAX_QUERY_WORDS} words were searched for. Two to six work best.")
    return notes


def _miss_lines(miss: Miss) -> list[Line]:
    hit = miss.hit
    shown = shortened(hit.memory.content.split("\n", 1)[0])
    return [
        (name_of(hit.memory), f" {shown}"),
        Dim(f"    {product(hit.score, hit.why, hit.parts, hit.ref)}: {miss.reason}"),
    ]


def _reasons(hit: Hit, query: str) -> str:
    """Why the memory was found, in words as the query and the memory write them, not in their stems."""
    reasons = []
    for word, reason in hit.matched.items():
        if reason == ASKED_FOR:
            reasons.append(text.as_written(word, query))
        else:
            how, _, of = reason.rpartition(" ")
            reasons.append(f"{text.as_written(word, *texts_of(hit.memory))} ({how} {text.as_written(of, query)})")
    if not reasons:
        return "similar in meaning" if hit.parts.get("vectors") else ""
    return f"matches {', '.join(dict.fromkeys(reasons))}"


def _nothing_found(memory: Kept, invocation: Invocation, recalled: Recalled, asked: Recall) -> list[Line]:
    """Return advice for a person who asked and got nothing."""
    mistyped: list[Line] = [question.strip()] if (question := meant_kinds(asked.kinds)) else []
    if not memory.list(limit=1):
        return [nothing_yet(invocation), *mistyped]
    words = [text.as_written(word, asked.query) for word in text.query_words(asked.query)]
    if not words:
        advice = "The query has no word to search for. Give two to six key words: `kept recall login token`."
        return [advice, *mistyped]
    said = _said(memory, asked.query) if asked.as_of is None else []
    return [*_missed(_named(words), said, recalled, asked), *mistyped]


def _named(words: list[str]) -> str:
    shown = f"{', '.join(words[:SHOWN_WORDS])}{' …' if len(words) > SHOWN_WORDS else ''}"
    return f"the word {shown}" if len(words) == 1 else f"any of the words {shown}"


def _said(memory: Kept, query: str) -> list[Line]:
    """Return the messages of conversations that fit, where no memory does."""
    look = memory.look()
    hits = look.tellable(look.search(query, scope="sessions", limit=MOST_SAID))
    return [Dim(f"    {hit.ref}: {shortened(text.visible(hit.content, keep_newlines=False))}") for hit in hits]


def _missed(named: str, said: list[Line], recalled: Recalled, asked: Recall) -> list[Line]:
    more = "`kept session search WORDS` shows more"
    if said and recalled.misses:
        offer = f"{more}; `kept why` shows what was held back."
        return ["Nothing fits well. In conversations:", *said, offer, _nearest(recalled.misses[0])]
    if said:
        return [f"No memory has {named}. In conversations:", *said, f"{more}."]
    if recalled.misses:
        advice = "Nothing fits well. Try other words; `kept why` shows what was held back."
        return [advice, _nearest(recalled.misses[0])]
    if asked.scope != "memory" and not _is_filtered(asked):
        return [f"Nothing in scope {asked.scope} has {named}. Try other words for it."]
    if _is_filtered(asked):
        return [f"No memory that passes the filters has {named}. Ask again without them, or try other words."]
    return [f"No memory has {named}. Try other words for it, or `kept list`."]


def _nearest(miss: Miss) -> Line:
    """Say which memory came nearest, and why it is not in the answer."""
    shown = shortened(text.visible(miss.hit.memory.content, keep_newlines=False)).rstrip(".")
    return ("The nearest is ", name_of(miss.hit.memory), f" {shown}: {miss.reason}.")


def _is_filtered(asked: Recall) -> bool:
    filters = (asked.kinds, asked.tags, asked.agent, asked.since, asked.until)
    return any(filters)


def shortened(line: str) -> str:
    """Return the beginning of a text, as it is shown beside numbers."""
    return line if len(line) <= SHOWN_OF_A_MISS else f"{line[: SHOWN_OF_A_MISS - 1]}…"


def product(score: float, why: Mapping[str, float], parts: Mapping[str, float], ref: str) -> str:
    """Return a score and its factors, without those that change nothing; the match with its summands.

    The score of a message is a sum.
    """
    if "#" in ref:
        return f"{score:.3g} = {_summands({name: value for name, value in why.items() if value})}"
    factors = [f"{name} {value:.3g}" for name, value in why.items() if f"{value:.3g}" != "1"]
    if "vectors" in parts:
        factors = [f"{factor} ({_summands(parts)})" if factor.startswith("match ") else factor for factor in factors]
    return f"{score:.3g} = {' × '.join(factors) or '1'}"


def _summands(values: Mapping[str, float]) -> str:
    return " + ".join(f"{name} {value:.3g}" for name, value in values.items())
