"""`kept recall` and `kept why`: the answer, and the numbers behind it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.frame import Command, limit_option, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import as_document, local, memory_lines
from kept.model import Hit, Recalled
from kept.recalling import SCOPES, RecallScope
from kept.settings import PROFILES


@click.command("recall", cls=Command)
@click.argument("words", nargs=-1, required=True)
@limit_option(5, "hits at most")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind. May be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag. May be repeated.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file at hand: what is about it ranks higher.")
@click.option("--scope", type=click.Choice(SCOPES), default="memory", show_default=True, help="What to search.")
@click.option("--profile", type=click.Choice(tuple(PROFILES)), help="How to score, instead of as the settings say.")
@click.option("--follow", is_flag=True, help="Also bring what was recalled together with the hits before.")
@click.option("--explain", is_flag=True, help="Show the factors of every score; they multiply out.")
@pass_invocation
def recall_command(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    limit: int,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    files: tuple[str, ...],
    scope: RecallScope,
    profile: str | None,
    follow: bool,
    explain: bool,
) -> None:
    """Find the memories that fit a few key words best.

    Give two to six key words, and synonyms if you like; not a sentence.
    """
    with invocation.open() as memory:
        recalled = memory.recall(
            " ".join(words),
            limit=limit,
            kinds=kinds,
            tags=tags,
            files=files,
            scope=scope,
            profile=profile,
            follow=follow,
        )
    invocation.answer(_document(recalled), _lines(recalled, invocation.clock(), explain=explain))


def _document(recalled: Recalled) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(recalled)
    document["hits"] = [_hit_document(hit) for hit in recalled.hits]
    document["misses"] = [{"hit": _hit_document(miss.hit), "reason": miss.reason} for miss in recalled.misses]
    document["pinned"] = [as_document(memory) for memory in recalled.pinned]
    return document


def _hit_document(hit: Hit) -> dict[str, Any]:
    return {"ref": hit.ref, **msgspec.to_builtins(hit), "memory": as_document(hit.memory)}


def _lines(recalled: Recalled, now: datetime, *, explain: bool) -> list[Line]:
    lines: list[Line] = []
    for hit in recalled.hits:
        lines += memory_lines(hit.memory, now)
        if explain:
            lines.append(Dim(f"    {_product(hit.score, hit.why)}"))
    if recalled.pinned:
        lines.append(Strong("Pinned:"))
        lines += [line for memory in recalled.pinned for line in memory_lines(memory, now)]
    if not recalled.hits:
        lines.append("No memory has these words. Try others, or `kept list`.")
    if recalled.conflicts:
        lines.append(f"Some of these disagree: {', '.join(conflict.ref for conflict in recalled.conflicts)}.")
    if recalled.degraded:
        lines.append(f"Note: {recalled.degraded}")
    return lines


def _product(score: float, why: Mapping[str, float]) -> str:
    """A score and the factors that make it, without those that change nothing."""
    factors = [f"{name} {value:.3g}" for name, value in why.items() if f"{value:.3g}" != "1"]
    return f"{score:.3g} = {' × '.join(factors) or '1'}"


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
    lines += [(Strong(f"[id:{hit['ref']}]"), f" {_product(hit['score'], hit['why'])}") for hit in explained.hits]
    if not explained.hits:
        lines.append("Nothing was found.")
    for miss in explained.misses:
        lines.append((f"missed [id:{miss['ref']}]", Dim(f" {_product(miss['score'], miss['why'])}: {miss['reason']}")))
    if explained.pinned:
        lines.append(f"pinned {', '.join(f'[id:{ref}]' for ref in explained.pinned)}")
    if explained.degraded:
        lines.append(f"Note: {explained.degraded}")
    invocation.answer(explained, lines)
