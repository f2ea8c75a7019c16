"""`kept recall` and `kept why`: the answer, and the numbers behind it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
import msgspec

import kept
from kept import text
from kept.entrypoints.cli.frame import Command, date_option, limit_option, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.read import nothing_yet
from kept.entrypoints.cli.wording import as_document, local, memory_lines, name_of
from kept.errors import InvalidInput
from kept.memory.read import SCOPES, Explained, RecallScope
from kept.model import Hit, Miss, Recalled
from kept.recall.query import ASKED_FOR
from kept.tables import PROFILES

SHOWN_OF_A_MISS = 100  # characters
SHOWN_WORDS = 6


@click.command("recall", cls=Command)
@click.argument("words", nargs=-1, required=True)
@limit_option(5, "hits at most")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind. May be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag. May be repeated.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file at hand: what is about it ranks higher.")
@date_option("--since", "Only what was written on this day or later.")
@date_option("--until", "Only what was written on this day or before.", is_end=True)
@click.option("--scope", type=click.Choice(SCOPES), default="memory", show_default=True, help="What to search.")
@click.option("--profile", type=click.Choice(tuple(PROFILES)), help="How to score, instead of as the settings say.")
@click.option("--follow", is_flag=True, help="Also bring what was recalled together with the hits before.")
@click.option("--explain", is_flag=True, help="Show the factors of every score, and what just missed.")
@pass_invocation
def recall_command(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    limit: int,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    files: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    scope: RecallScope,
    profile: str | None,
    follow: bool,
    explain: bool,
) -> None:
    """Find the memories that fit a few key words best.

    Give two to six key words, and synonyms if you like; not a sentence.
    """
    if since is not None and until is not None and since >= until:
        raise InvalidInput("--since is later than --until, so nothing can lie between.", hint="Swap the two dates.")
    query = " ".join(words)
    with invocation.open() as memory:
        recalled = memory.recall(
            query,
            limit=limit,
            kinds=kinds,
            tags=tags,
            files=files,
            since=since,
            until=until,
            scope=scope,
            profile=profile,
            follow=follow,
        )
        lines = _lines(recalled, query, invocation.clock(), explain=explain)
        if not recalled.hits:
            is_filtered = bool(kinds or tags or since or until or scope != "memory")
            lines.append(_nothing_found(memory, invocation, query, is_filtered=is_filtered))
    if recalled.degraded:
        lines.append(f"Note: {recalled.degraded}")
    if text.query_words(query) != text.query_words(query, text.MAX_QUERY_WORDS + 1):
        lines.append(f"Note: only the first {text.MAX_QUERY_WORDS} words were looked for. Two to six do best.")
    invocation.answer(_document(recalled), lines)


def _document(recalled: Recalled) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(recalled)
    document["hits"] = [_hit_document(hit) for hit in recalled.hits]
    document["misses"] = [{"hit": _hit_document(miss.hit), "reason": miss.reason} for miss in recalled.misses]
    document["pinned"] = [as_document(memory) for memory in recalled.pinned]
    return document


def _hit_document(hit: Hit) -> dict[str, Any]:
    return {"ref": hit.ref, **msgspec.to_builtins(hit), "memory": as_document(hit.memory)}


def _lines(recalled: Recalled, query: str, now: datetime, *, explain: bool) -> list[Line]:
    lines: list[Line] = []
    for hit in recalled.hits:
        lines += memory_lines(hit.memory, now)
        if reasons := _reasons(hit, query):
            lines.append(Dim(f"    {reasons}"))
        if explain:
            lines.append(Dim(f"    {_product(hit.score, hit.why, hit.parts)}"))
    if explain and recalled.misses:
        lines.append(Strong("Just missed:"))
        lines += [line for miss in recalled.misses for line in _miss_lines(miss)]
    if recalled.pinned:
        lines.append(Strong("Pinned:"))
        lines += [line for memory in recalled.pinned for line in memory_lines(memory, now)]
    if recalled.conflicts:
        lines.append(f"Some of these disagree: {', '.join(conflict.ref for conflict in recalled.conflicts)}.")
    return lines


def _miss_lines(miss: Miss) -> list[Line]:
    hit = miss.hit
    first = hit.memory.content.split("\n", 1)[0]
    shown = first if len(first) <= SHOWN_OF_A_MISS else f"{first[: SHOWN_OF_A_MISS - 1]}…"
    return [(name_of(hit.memory), f" {shown}"), Dim(f"    {_product(hit.score, hit.why, hit.parts)}: {miss.reason}")]


def _reasons(hit: Hit, query: str) -> str:
    """Why the memory is here, in words that stand in the query and in the memory, not in their stems."""
    told = []
    for word, reason in hit.matched.items():
        if reason == ASKED_FOR:
            told.append(_as_written(word, query))
        else:
            how, _, of = reason.rpartition(" ")
            told.append(f"{_as_written(word, hit.memory.content)} ({how} {_as_written(of, query)})")
    if not told:
        return "near in meaning" if hit.parts.get("vectors") else ""
    return f"matches {', '.join(dict.fromkeys(told))}"


def _as_written(stem: str, written: str) -> str:
    """The word of the text that became this token; the token itself if it is a part of a longer one."""
    for word in written.split():
        if text.words(word)[:1] == [stem]:
            return word.strip(".,;:!?()[]{}\"'`")
    return stem


def _nothing_found(memory: kept.Kept, invocation: Invocation, query: str, *, is_filtered: bool) -> str:
    """What a person can do who asked and got nothing."""
    if not memory.list(limit=1):
        return nothing_yet(invocation)
    words = [_as_written(word, query) for word in text.query_words(query)]
    if not words:
        return "There is no word in this to look for. Give two to six key words: `kept recall login token`."
    told = f"{', '.join(words[:SHOWN_WORDS])}{' …' if len(words) > SHOWN_WORDS else ''}"
    told = f"the word {told}" if len(words) == 1 else f"any of the words {told}"
    if is_filtered:
        return f"No memory that passes the filters has {told}. Ask again without them, or try other words."
    return f"No memory has {told}. Try other words for it, or `kept list`."


def _noted(line: Mapping[str, Any]) -> str:
    """The same of a hit as a receipt has noted it."""
    return _product(line["score"], line["why"], line.get("parts", {}))


def _product(score: float, why: Mapping[str, float], parts: Mapping[str, float]) -> str:
    """A score and the factors that make it, without those that change nothing; the match with what it is the sum of."""
    factors = [f"{name} {value:.3g}" for name, value in why.items() if f"{value:.3g}" != "1"]
    if "vectors" in parts:
        summands = " + ".join(f"{name} {value:.3g}" for name, value in parts.items())
        factors = [f"{factor} ({summands})" if factor.startswith("match ") else factor for factor in factors]
    return f"{score:.3g} = {' × '.join(factors) or '1'}"


def _briefed(explained: Explained) -> list[Line]:
    """What stood in a briefing and why, and what did not fit."""
    entries = [entry for section in explained.sections for entry in section["entries"]]
    lines: list[Line] = [(Strong(f"[id:{entry['ref']}]"), f" was in the briefing: {entry['why']}") for entry in entries]
    if not entries:
        lines.append("The briefing was empty.")
    return lines + [Dim(f"left out [id:{one['ref']}]: {one['reason']}") for one in explained.left_out]


@click.command("why", cls=Command)
@click.argument("receipt", required=False)
@pass_invocation
def why_command(invocation: Invocation, *, receipt: str | None) -> None:
    """Show the last recall again: what was found, what just missed, and why.

    RECEIPT is what an earlier recall gave, such as r17.
    """
    with invocation.open() as memory:
        explained = memory.why(receipt)
    lines: list[Line] = [
        (Strong(explained.receipt), f"  {local(explained.at, invocation.zone)}  {explained.question.query}"),
        Dim(f"    {explained.took_ms:.1f} ms; words: {', '.join(explained.words) or 'not kept'}"),
    ]
    if explained.to is not None:
        shared = ", ".join(f"[id:{entry['ref']}]" for section in explained.sections for entry in section["entries"])
        lines.append(f"shared with {explained.to}: {shared or 'nothing'}")
    elif explained.kind == "briefing":
        lines += _briefed(explained)
    lines += [(Strong(f"[id:{hit['ref']}]"), f" {_noted(hit)}") for hit in explained.hits]
    if not explained.hits and explained.kind == "recall":
        lines.append("Nothing was found.")
    for miss in explained.misses:
        lines.append((f"missed [id:{miss['ref']}]", Dim(f" {_noted(miss)}: {miss['reason']}")))
    if explained.pinned:
        lines.append(f"pinned {', '.join(f'[id:{ref}]' for ref in explained.pinned)}")
    if explained.degraded:
        lines.append(f"Note: {explained.degraded}")
    invocation.answer(explained, lines)
