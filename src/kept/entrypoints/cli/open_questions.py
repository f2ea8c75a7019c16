"""`kept review`: memories that need a decision, contradictions among them, and decisions carried out."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.derived import given_text, options_of, request_of
from kept.entrypoints.cli.edit import edited_lines
from kept.entrypoints.cli.frame import acting_group, yes_option
from kept.entrypoints.cli.invocation import HELP, LATER, Clash, CommandLine, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, as_document, counted, memories, name_of
from kept.errors import InvalidInput, KeptError, NotAllowed, NotFound
from kept.memory import Kept
from kept.memory.reviews import Decision, Review, ReviewFinding, parse_decision
from kept.memory.verbs.contradictions import CONFLICTS, DECIDE, RESOLVE, REVIEW
from kept.model import Conflict, Memory

PROPOSED = "proposed"
QUIT, EDIT, BACK = "quit", "edit", "undo"
_MEANING = {
    "keep": "it stays, and counts as verified",
    "archive": "it is no longer told; `kept restore` brings it back",
    "wrong": "archived, and not stored again unasked",
    "forget": "it is hidden everywhere; `kept restore` brings it back",
    "replace": "the other one holds, this one is archived",
    "or": "this one holds, the other one is archived",
    "both": "both hold: the question is settled",
    "promote": "all projects get it",
    EDIT: "change its text in your editor, now",
    BACK: "go back to the question before, and take its answer back",
    LATER: "ask again in the next review (the space bar does the same)",
    QUIT: "stop here, and carry out the answers so far",
}
_DONE = {
    "keep": "stays, and counts as verified",
    "archive": "is archived",
    "wrong": "is archived as wrong, and is not stored again unasked",
    "forget": "is forgotten",
    "supersede": "is archived, replaced by",
    "promote": "is in global memory now",
}
_REVIEW_NOUNS = ("conflict", "duplicate", "candidate")  # the other reasons are adjectives: 3 stale


@acting_group
@options_of(REVIEW)
@options_of(DECIDE, also={"decisions": "--apply"})
@click.option("--list", "only_list", is_flag=True, help="Only list, without asking.")
@yes_option
def review_command(
    invocation: Invocation, *, decisions: tuple[str, ...], only_list: bool, yes: bool, **given: Any
) -> None:
    """Memories that an agent proposes for all projects, that are stale, unused, duplicates, in conflict, or no
    longer mentioned, and candidates that nobody has confirmed, each with the reason and a proposal. In a terminal you
    are asked about each, and one key is enough: ? explains them, u goes back, e opens the editor, q stops. An agent
    reads --json and answers with --apply. Listing changes nothing.

    A DECISION is keep:3 (it stays, counts as verified, and so does what it contradicts or repeats), archive:3,
    wrong:3 (archived, and not stored again unasked), forget:3, supersede:9=3 (3 stays, and 9 is archived; a global
    memory holds in other projects still), or promote:3 (all projects get it); `proposed` stands for every proposal,
    and a dash reads decisions as JSON. `kept undo` undoes all decisions of one call together, and each promotion by
    itself. Ctrl-C while you are asked changes nothing, and shows the command that carries out your decisions.

    \b
    kept review --apply archive:12 --apply supersede:9=3
    kept review --reason duplicate --apply proposed --yes
    """
    asked = request_of(REVIEW, given)
    with invocation.open(yes=yes) as memory:
        if decisions:
            chosen = _given(decisions)
            if PROPOSED in decisions:
                chosen += _proposed(memory.perform(REVIEW, asked), invocation, yes=yes)
        else:
            review = memory.perform(REVIEW, asked)
            if only_list or not review.findings or not invocation.can_pick():
                findings = [_finding_document(finding) for finding in review]
                invocation.answer(msgspec.to_builtins(review) | {"findings": findings}, _review_lines(review))
                return
            chosen = _asked(review, invocation, memory)
        with _telling_undone(invocation, chosen):
            changed, lines = _applied(memory, chosen)
    _answer_applied(invocation, chosen, changed, lines)


def _applied(memory: Kept, chosen: Sequence[Decision]) -> tuple[Sequence[Memory], list[Line]]:
    """Carry out decisions. Returns the changed memories, and a line for each."""
    before = memory.conflicts()
    changed = memory.reviews.apply(chosen)
    left = {conflict.ref for conflict in memory.conflicts()}
    settled = [conflict for conflict in before if conflict.ref not in left]
    return changed, [
        _applied_line(decision, one, _settled_sides(memory, one, settled))
        for decision, one in zip(chosen, changed, strict=True)
    ]


def _proposed(review: Review, invocation: Invocation, *, yes: bool) -> list[Decision]:
    """Return all proposals of a review, once a person has agreed."""
    proposals = [finding.proposed for finding in review]
    if proposals:
        invocation.agree(f"Carry out {counted(len(proposals), 'proposal')}?", yes=yes)
    return proposals


def _given(decisions: Sequence[str]) -> list[Decision]:
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
            f"The decisions cannot be read: {reason}.",
            hint='Give [{"action": "archive", "ref": "12"}, {"action": "supersede", "ref": "9", "by": "3"}].',
        ) from None


def _asked(review: Review, invocation: Invocation, memory: Kept) -> list[Decision]:
    """Return the decisions of a person, who is asked about one finding after the other.

    An interrupt, also of the editor, names the decisions so far.
    """
    chosen = dict[int, Decision]()
    try:
        _ask_each(list(review), invocation, memory, chosen)
    except (click.Abort, KeyboardInterrupt):
        _tell_undone(invocation, list(chosen.values()))
        raise
    return list(chosen.values())


@contextmanager
def _telling_undone(invocation: Invocation, chosen: Sequence[Decision]) -> Iterator[None]:
    """Name the decisions where the last question, about global memory, is not answered or answered with no."""
    try:
        yield
    except (KeyboardInterrupt, NotAllowed):
        if invocation.can_pick():
            _tell_undone(invocation, chosen)
        raise


def _tell_undone(invocation: Invocation, chosen: Sequence[Decision]) -> None:
    """Name the command that carries out decisions that were not."""
    if chosen:
        again = CommandLine(f"kept review {' '.join(f'--apply {one}' for one in chosen)}")
        invocation.tell("", ("No decision was carried out. This does it: ", again))


def _ask_each(
    findings: Sequence[ReviewFinding], invocation: Invocation, memory: Kept, chosen: dict[int, Decision]
) -> None:
    """Ask about each finding, and note the decision about it."""
    at = 0
    while at < len(findings):
        options = _options(findings[at])
        picked = _pick(invocation, findings, at, [*options, LATER])
        if picked == QUIT:
            break
        if picked == HELP:
            invocation.tell(*_meanings(options))
        elif picked == BACK:
            at -= 1
            chosen.pop(at, None)
        else:
            if picked == EDIT:
                _edit_now(invocation, memory, findings[at].memory)
            elif picked != LATER:
                chosen[at] = options[picked]
            at += 1


def _pick(invocation: Invocation, findings: Sequence[ReviewFinding], at: int, options: Sequence[str]) -> str:
    """Show a finding and return the option that a person picks."""
    invocation.tell("", *_finding_lines(findings[at]))
    more = [EDIT, *([BACK] if at else []), QUIT, HELP]
    return invocation.pick(f"{at + 1} of {len(findings)}", [*options, *more])


def _edit_now(invocation: Invocation, memory: Kept, found: Memory) -> None:
    """Let a person edit a memory. A failure ends the edit, and not the review."""
    try:
        invocation.tell(*edited_lines(invocation, memory, found))
    except KeptError as error:
        invocation.tell(f"{error.message} {error.hint}")


def _meanings(options: Iterable[str]) -> list[Line]:
    """Explain the options of a question, a line each."""
    names = [*options, EDIT, BACK, LATER, QUIT]
    return [(Strong(f"    {name:<18}"), _MEANING[name.split()[0]]) for name in names]


def _options(finding: ReviewFinding) -> dict[str, Decision]:
    """The decisions that a person can take about a finding, by name; the proposal first."""
    ref, options = finding.ref, dict[str, Decision]()
    if finding.beside is not None:
        other = finding.beside.ref
        options[f"replace {ref} by {other}"] = Decision(action="supersede", ref=ref, by=other)
        options[f"or {other} by {ref}"] = Decision(action="supersede", ref=other, by=ref)
        options["both stay"] = Decision(action="keep", ref=ref)
    else:
        options[finding.proposed.action] = finding.proposed
        options["keep"] = Decision(action="keep", ref=ref)
    of_it = f" {ref}" if finding.beside is not None else ""
    options[f"archive{of_it}"] = Decision(action="archive", ref=ref)
    options[f"forget{of_it}"] = Decision(action="forget", ref=ref)
    return options


def _settled_sides(memory: Kept, one: Memory, settled: Sequence[Conflict]) -> list[str]:
    """Return the contradictions of a memory that were settled, each with its other side."""
    own = [conflict for conflict in settled if one.uid in (conflict.left, conflict.right)]
    others = [conflict.right if conflict.left == one.uid else conflict.left for conflict in own]
    return [f"[id:{_side(memory, uid)[0]}] ({conflict.ref})" for conflict, uid in zip(own, others, strict=True)]


def _applied_line(decision: Decision, memory: Memory, settled: Sequence[str]) -> Line:
    """Describe a decision that was carried out. Keeping both sides of a contradiction names the other one."""
    if decision.by and not memory.is_archived:  # a global memory, which a project's overrules there
        return (name_of(memory), f" stays for other projects; in this one [id:{decision.by}] holds.")
    if decision.action == "keep" and settled:
        return (name_of(memory), f" stays, and so does {', '.join(settled)}: that contradiction is settled.")
    return (name_of(memory), f" {_DONE[decision.action]}", f" [id:{decision.by}]." if decision.by else ".")


def _answer_applied(
    invocation: Invocation, chosen: Sequence[Decision], changed: Sequence[Memory], lines: list[Line]
) -> None:
    lines.append("`kept undo` undoes all of it." if changed else "No decision was made. Nothing was changed.")
    applied = [
        {"decision": decision, "memory": as_document(memory)} for decision, memory in zip(chosen, changed, strict=True)
    ]
    invocation.answer({"applied": applied}, lines)


def _finding_document(finding: ReviewFinding) -> dict[str, Any]:
    return {
        "ref": finding.ref,
        "reasons": finding.reasons,
        "detail": finding.detail,
        "proposed": finding.proposed,
        "conflict": finding.conflict,
        "memory": as_document(finding.memory),
        "beside": None if finding.beside is None else as_document(finding.beside),
    }


def _review_lines(review: Review) -> list[Line]:
    lines: list[Line] = [line for finding in review for line in _finding_lines(finding)]
    if not lines:
        return [*_alias_lines(review)] or ["There is nothing to review."]
    total = ", ".join(
        counted(number, reason, "" if reason in _REVIEW_NOUNS else reason)
        for reason, number in review.counts.items()
        if number
    )
    seen = f"{memories(review.memories)} and {counted(review.messages, 'recent message')}"
    lines.append(f"In total: {total}. Checked: {seen}.")
    lines.append(Dim("`kept review --apply DECISION` carries out one, `--apply proposed` all of these."))
    return [*lines, *_alias_lines(review)]


def _alias_lines(review: Review) -> Iterator[Line]:
    for one in review.aliases:
        other = f"'{one.other}'" if " " in one.other else one.other
        yield (
            "Also for ",
            Strong(one.word),
            f": {one.other}? {one.reason}. `kept alias add {one.word} {other}` accepts it.",
        )


def _finding_lines(finding: ReviewFinding) -> list[Line]:
    lines: list[Line] = [
        (name_of(finding.memory), f" {finding.memory.kind}: ", _one_line(finding.memory)),
        ("    ", Strong(", ".join(finding.reasons)), f": {finding.detail}"),
    ]
    if finding.beside is not None:
        lines.append((f"    [id:{finding.beside.ref}] {finding.beside.kind}: ", _one_line(finding.beside)))
    lines.append(Dim(f"    proposed: {_proposal(finding.proposed)}"))
    return lines


def _proposal(proposed: Decision) -> str:
    """Return a proposal as it is typed after --apply; where that has two refs, also in words."""
    return f"{proposed} ({proposed.by} replaces {proposed.ref})" if proposed.by else str(proposed)


def _one_line(memory: Memory) -> str:
    return " ".join(memory.content.split())


# Contradictions


@review_command.command("conflicts")
@options_of(CONFLICTS, also={"resolved": "--all"})
def list_conflicts(invocation: Invocation, **given: Any) -> None:
    """Show memories that contradict each other."""
    asked = request_of(CONFLICTS, given)
    lines: list[Line] = []
    documents = []
    with invocation.open() as memory:
        for conflict in memory.perform(CONFLICTS, asked):
            sides = [_side(memory, uid) for uid in (conflict.left, conflict.right)]
            documents.append({**msgspec.to_builtins(conflict), "ref": conflict.ref, "sides": [ref for ref, _ in sides]})
            lines += _conflict_lines(conflict, sides, invocation)
    if not documents:
        lines.append("No memories contradict each other.")
    invocation.answer({"conflicts": documents}, lines)


def _side(memory: Kept, uid: str) -> tuple[str, str]:
    try:
        found = memory.get(uid, forgotten=True)
    except NotFound:
        return "?", "(erased)"
    return found.ref, "(forgotten)" if found.is_forgotten else found.content


def _conflict_lines(conflict: Conflict, sides: list[tuple[str, str]], invocation: Invocation) -> list[Line]:
    facts = [ago(conflict.detected_at, invocation.clock()), conflict.rule, "settled" if conflict.resolved_at else ""]
    lines: list[Line] = [
        (Clash(conflict.ref), f" {conflict.type}", Dim(f"  {' · '.join(filter(None, facts))}")),
        *((f"    [id:{ref}] ", content.replace("\n", " ")) for ref, content in sides),
    ]
    if not conflict.resolved_at:
        lines.append(Dim(f"    `kept review resolve {conflict.ref} --keep {sides[0][0]}` keeps the first one."))
    return lines


@review_command.command("resolve")
@options_of(RESOLVE)
@yes_option
def resolve_conflict(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Settle a conflict: one memory stays, the other is archived."""
    asked = request_of(RESOLVE, given)
    with invocation.open(yes=yes) as memory:
        settled = memory.perform(RESOLVE, asked)
    line = (name_of(settled), f" stays; {asked.conflict} is settled. `kept undo` undoes it.")
    invocation.answer(as_document(settled), [line])
