"""`kept review`: what somebody should look at again, and what they decide."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.frame import Command, limit_option, pass_invocation, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import as_document, counted, name_of
from kept.entrypoints.cli.write import given_text
from kept.errors import InvalidInput
from kept.memory.reviews import Review, parse_decision
from kept.model import Memory
from kept.upkeep.review import REASONS, Decision, ReviewFinding, ReviewReason

PROPOSED = "proposed"
LATER, STOP, OTHER = "later", "stop", "the-other"
_DONE = {
    "keep": "stays, and counts as verified",
    "archive": "is archived",
    "forget": "is forgotten",
    "supersede": "is archived; what holds is",
}


@click.command("review", cls=Command)
@limit_option(20, "findings at most")
@click.option("--reason", "reasons", multiple=True, type=click.Choice(REASONS), help="Only these. May be repeated.")
@click.option(
    "--apply",
    "decisions",
    multiple=True,
    metavar="DECISION",
    help="Carry this out. May be repeated. `proposed` takes every proposal; a dash reads decisions as JSON.",
)
@click.option("--list", "only_list", is_flag=True, help="Only list, also in a terminal.")
@yes_option
@pass_invocation
def review_command(
    invocation: Invocation,
    *,
    limit: int,
    reasons: tuple[ReviewReason, ...],
    decisions: tuple[str, ...],
    only_list: bool,
    yes: bool,
) -> None:
    """Show what should be looked at again, and carry out what is decided.

    What is stale, unused, nearly a duplicate, in conflict, or not spoken of lately, each with why and a proposal. In a
    terminal you are asked about each; an agent takes --json and answers with --apply. Looking changes nothing.

    A DECISION is keep:3 (it stays, and counts as verified), archive:3, forget:3, or supersede:9=3 (3 holds, and 9 is
    archived). All decisions of one call are taken back together by `kept undo`.

    \b
    kept review --apply archive:12 --apply supersede:9=3
    kept review --reason duplicate --apply proposed --yes
    """
    with invocation.open(yes=yes) as memory:
        if decisions:
            chosen = _chosen(decisions)
            if PROPOSED in decisions:
                proposals = [finding.proposed for finding in memory.reviews.list(limit=limit, reasons=reasons)]
                chosen += proposals
                if proposals and not yes:
                    invocation.agree(f"Carry out {counted(len(proposals), 'proposal')}?")
        else:
            review = memory.reviews.list(limit=limit, reasons=reasons)
            if only_list or not review.findings or not invocation.can_pick():
                invocation.answer(_document(review), _lines(review))
                return
            chosen = _asked(review, invocation)
        changed = memory.reviews.apply(chosen)
    _answer_applied(invocation, chosen, changed)


def _chosen(decisions: Sequence[str]) -> list[Decision]:
    chosen: list[Decision] = []
    for decision in decisions:
        if decision == "-":
            chosen += _from_json(given_text((decision,)))
        elif decision != PROPOSED:
            chosen.append(parse_decision(decision))
    return chosen


def _from_json(given: str) -> list[Decision]:
    """`[{"action": "archive", "ref": "12"}, …]`, or that under `decisions`."""
    try:
        document = msgspec.json.decode(given)
        return msgspec.convert(document["decisions"] if isinstance(document, dict) else document, list[Decision])
    except (msgspec.MsgspecError, KeyError) as error:
        reason = "it has no `decisions`" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(
            f"These are no decisions: {reason}.",
            hint='Give [{"action": "archive", "ref": "12"}, {"action": "supersede", "ref": "9", "by": "3"}].',
        ) from None


def _asked(review: Review, invocation: Invocation) -> list[Decision]:
    """What a person decides, one finding after the other."""
    chosen: list[Decision] = []
    for number, finding in enumerate(review, 1):
        invocation.tell("", *_finding_lines(finding))
        options = [finding.proposed.action, "keep", "archive", "forget", LATER, STOP]
        if finding.beside is not None:
            options.insert(1, OTHER)
        picked = invocation.pick(f"{number} of {len(review)}", list(dict.fromkeys(options)))
        if picked == STOP:
            break
        if picked == OTHER and finding.beside is not None:
            chosen.append(Decision(action="supersede", ref=finding.beside.ref, by=finding.ref))
        elif picked == finding.proposed.action:
            chosen.append(finding.proposed)
        elif picked in ("keep", "archive", "forget"):
            chosen.append(parse_decision(f"{picked}:{finding.ref}"))
    return chosen


def _answer_applied(invocation: Invocation, chosen: Sequence[Decision], changed: Sequence[Memory]) -> None:
    lines: list[Line] = [
        (name_of(memory), f" {_DONE[decision.action]}", f" [id:{decision.by}]." if decision.by else ".")
        for decision, memory in zip(chosen, changed, strict=True)
    ]
    lines.append("`kept undo` takes it all back." if changed else "Nothing was decided, and nothing was changed.")
    applied = [
        {"decision": decision, "memory": as_document(memory)} for decision, memory in zip(chosen, changed, strict=True)
    ]
    invocation.answer({"applied": applied}, lines)


def _document(review: Review) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(review)
    return document | {"findings": [_finding_document(finding) for finding in review]}


def _finding_document(finding: ReviewFinding) -> dict[str, Any]:
    return {
        "ref": finding.ref,
        "reasons": finding.reasons,
        "why": finding.why,
        "proposed": finding.proposed,
        "conflict": finding.conflict,
        "memory": as_document(finding.memory),
        "beside": None if finding.beside is None else as_document(finding.beside),
    }


def _lines(review: Review) -> list[Line]:
    lines: list[Line] = [line for finding in review for line in _finding_lines(finding)]
    if not lines:
        return ["There is nothing to decide."]
    total = ", ".join(f"{number:,} {reason}" for reason, number in review.counts.items() if number)
    seen = f"{counted(review.memories, 'memory', 'memories')} and {counted(review.messages, 'recent message')}"
    lines.append(f"In all: {total}. Looked at: {seen}.")
    lines.append(Dim("`kept review --apply DECISION` carries one out, `--apply proposed` all of these."))
    return lines


def _finding_lines(finding: ReviewFinding) -> list[Line]:
    lines: list[Line] = [
        (name_of(finding.memory), f" {finding.memory.kind}: ", _one_line(finding.memory)),
        ("    ", Strong(", ".join(finding.reasons)), f": {finding.why}"),
    ]
    if finding.beside is not None:
        lines.append((f"    [id:{finding.beside.ref}] {finding.beside.kind}: ", _one_line(finding.beside)))
    lines.append(Dim(f"    proposed: {finding.proposed}"))
    return lines


def _one_line(memory: Memory) -> str:
    return " ".join(memory.content.split())
