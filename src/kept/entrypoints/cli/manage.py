"""Commands that manage a memory as a whole.

Decisions that a person makes: `kept conflicts`, `resolve`, `alias`, `scan`, `allow`, `off`, `on` and `review`. Keeping
the store in good order: `kept backup` and `upkeep`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.derived import chosen_tier, given_file, given_text, global_option, options_of, request_of
from kept.entrypoints.cli.frame import command, group, session_named, yes_option
from kept.entrypoints.cli.invocation import LATER, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, as_document, bracketed, counted, memories, name_of, size
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.memory.reviews import Decision, Review, ReviewFinding, parse_decision
from kept.memory.verbs.contradictions import CONFLICTS, DECIDE, RESOLVE, REVIEW
from kept.memory.verbs.switches import ADD_ALIAS, ALLOW, PAUSE, REMOVE_ALIAS, RESUME
from kept.memory.verbs.upkeep import BACKUP, SCAN, UPKEEP
from kept.model import Conflict, Memory

PROPOSED = "proposed"
STOP = "stop"
_DONE = {
    "keep": "stays, and counts as verified",
    "archive": "is archived",
    "wrong": "is archived as wrong, and is not stored again unasked",
    "forget": "is forgotten",
    "supersede": "is archived, replaced by",
    "promote": "is in global memory now",
}
_UPKEEP_DONE = {
    "confirm": ("is confirmed", "would be confirmed"),
    "penalise": ("counts for less", "would count for less"),
    "expire": ("is archived", "would be archived"),
    "evict": ("is archived", "would be archived"),
    "pack": ("is packed", "would be packed"),
}

_REVIEW_NOUNS = ("conflict", "duplicate", "candidate")  # the other reasons are adjectives: 3 stale


@command
@options_of(CONFLICTS, also={"resolved": "--all"})
def conflicts_command(invocation: Invocation, **given: Any) -> None:
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
        (Strong(conflict.ref), f" {conflict.type}", Dim(f"  {' · '.join(filter(None, facts))}")),
        *((f"    [id:{ref}] ", content.replace("\n", " ")) for ref, content in sides),
    ]
    if not conflict.resolved_at:
        lines.append(Dim(f"    `kept resolve {conflict.ref} --keep {sides[0][0]}` keeps the first one."))
    return lines


@command
@options_of(RESOLVE)
@yes_option
def resolve_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    asked = request_of(RESOLVE, given)
    with invocation.open(yes=yes) as memory:
        settled = memory.perform(RESOLVE, asked)
    line = (name_of(settled), f" stays; {asked.conflict} is settled. `kept undo` undoes it.")
    invocation.answer(as_document(settled), [line])


@group
def alias_command() -> None:
    """A query with the word also finds memories with one of the others; those rank lower, and the hit says so."""


@alias_command.command("list")
def list_aliases(invocation: Invocation) -> None:
    """List all aliases, the defaults included."""
    with invocation.open() as memory:
        aliases = memory.aliases.list()
    lines: list[Line] = [(Strong(word), f" → {', '.join(others)}") for word, others in sorted(aliases.items())]
    invocation.answer({"aliases": aliases}, lines)


@alias_command.command("add")
@options_of(ADD_ALIAS)
def add_alias(invocation: Invocation, **given: Any) -> None:
    """Let WORD also find OTHERS from now on."""
    asked = request_of(ADD_ALIAS, given)
    with invocation.open() as memory:
        before = memory.aliases.list()
        alias = memory.perform(ADD_ALIAS, asked)
    same = " Nothing was changed." if before.get(alias.word) == alias.expands_to else ""
    invocation.answer(alias, [(Strong(alias.word), f" also finds {', '.join(alias.expands_to)}.{same}")])


@alias_command.command("remove")
@options_of(REMOVE_ALIAS)
def remove_alias(invocation: Invocation, **given: Any) -> None:
    """Search for no other words than WORD, also if Kept brings some."""
    asked = request_of(REMOVE_ALIAS, given)
    with invocation.open() as memory:
        memory.perform(REMOVE_ALIAS, asked)
    invocation.answer({"removed": asked.word}, [f"The alias for {asked.word} is removed."])


@command
@options_of(SCAN)
@yes_option
def scan_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Secrets are redacted before anything is stored; this finds those that older rules did not know."""
    asked = request_of(SCAN, given)
    if asked.fix and not yes:
        invocation.agree("Remove every secret from all stored memories, for good? This cannot be undone.")
    with invocation.open(yes=True) as memory:
        leaks = memory.perform(SCAN, asked)
    end = ": removed" if asked.fix else ""
    lines: list[Line] = [
        (Strong(bracketed(leak.ref)), f" {', '.join(f'{found.kind} ({found.count})' for found in leak.found)}{end}")
        for leak in leaks
    ]
    if not leaks:
        lines.append("No secrets are stored here.")
    elif not asked.fix:
        lines.append(Dim(f"{memories(len(leaks))}. `kept scan --fix` removes the secrets."))
    invocation.answer({"leaks": leaks}, lines)


@command
@options_of(ALLOW)
@yes_option
def allow_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """It is not redacted from now on. Only a digest of it is stored. A single dash reads it from standard input."""
    asked = request_of(ALLOW, given)
    if asked.value == "-":
        asked = msgspec.structs.replace(asked, value=given_text((asked.value,)).strip("\n"))
    with invocation.open(yes=yes) as memory:
        allowance = memory.perform(ALLOW, asked)
    invocation.answer(allowance, ["It is not redacted from now on. `kept undo` undoes this."])


@command
@options_of(PAUSE)
def off_command(invocation: Invocation, *, session: str | None) -> None:
    """Commands that you run yourself (remember, recall …) still work."""
    with invocation.open() as memory:
        session = session and session_named(invocation, memory, session, must_exist=False)
        was_paused = session in [pause["session"] for pause in memory.status()["paused"]]
        pause = memory.pauses.pause(session)
    where = f"in session {session}" if session else "in this project"
    is_off = f"Kept was paused {where} already. Nothing was changed." if was_paused else f"Paused {where}."
    invocation.answer(pause, [f"{is_off} `kept on{f' --session {session}' if session else ''}` ends it."])


@command
@options_of(RESUME)
def on_command(invocation: Invocation, *, session: str | None) -> None:
    with invocation.open() as memory:
        session = session and session_named(invocation, memory, session, must_exist=False)
        was_paused = memory.pauses.resume(session)
    sentence = "Kept is on again." if was_paused else "Kept was not paused here. Nothing was changed."
    invocation.answer({"was_paused": was_paused}, [sentence])


@command
@options_of(REVIEW)
@options_of(DECIDE, also={"decisions": "--apply"})
@click.option("--list", "only_list", is_flag=True, help="Only list, without asking.")
@yes_option
def review_command(
    invocation: Invocation, *, decisions: tuple[str, ...], only_list: bool, yes: bool, **given: Any
) -> None:
    """Memories that an agent proposes for all projects, that are stale, unused, duplicates, in conflict, or no
    longer mentioned, and candidates that nobody has confirmed, each with the reason and a proposal. In a terminal you
    are asked about each, and one key is enough; an agent reads --json and answers with --apply. Listing changes
    nothing.

    A DECISION is keep:3 (it stays, counts as verified, and so does what it contradicts or repeats), archive:3,
    wrong:3 (archived, and not stored again unasked), forget:3, supersede:9=3 (3 stays, and 9 is archived; a global
    memory holds in other projects still), or promote:3 (all projects get it); `proposed` stands for every proposal,
    and a dash reads decisions as JSON. `kept undo` undoes all decisions of one call together, and each promotion by
    itself. Ctrl-C while you are asked changes nothing, and shows the command that carries out what you had decided.

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
            chosen = _asked(review, invocation)
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


def _asked(review: Review, invocation: Invocation) -> list[Decision]:
    """The decisions of a person, one finding after the other."""
    chosen: list[Decision] = []
    for number, finding in enumerate(review, 1):
        invocation.tell("", *_finding_lines(finding))
        options = _options(finding)
        try:
            picked = invocation.pick(f"{number} of {len(review)}", [*options, LATER, STOP])
        except (click.Abort, KeyboardInterrupt):
            if chosen:
                again = " ".join(f"--apply {one}" for one in chosen)
                invocation.tell("", f"Nothing was changed. This carries out what you decided: kept review {again}")
            raise
        if picked == STOP:
            break
        if picked != LATER:
            chosen.append(options[picked])
    return chosen


def _options(finding: ReviewFinding) -> dict[str, Decision]:
    """What a person can decide about a finding, by what it is called; the proposal first."""
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
        "why": finding.why,
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
            f": {one.other}? {one.why}. `kept alias add {one.word} {other}` accepts it.",
        )


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


# The store as a whole


@command
@options_of(BACKUP)
@global_option("The same as --tier global.")
def backup_command(invocation: Invocation, *, target: str, is_global: bool, **given: Any) -> None:
    """Other programs may read and write during the backup. FILE must not exist: a backup never overwrites anything.
    `kept restore FILE` restores it. `kept erase` also cleans backups in Kept's home, and names those elsewhere.
    """
    asked = request_of(BACKUP, chosen_tier({**given, "target": str(given_file(target))}, is_global=is_global))
    with invocation.open() as memory:
        made = memory.perform(BACKUP, asked)
    counts = f"{memories(made.memories)}, {counted(made.events, 'event')}, {size(made.bytes)}"
    invocation.answer(made, [f"Backed up to {target}: {counts}. `kept restore {target}` restores it."])


@command
@options_of(UPKEEP)
def upkeep_command(invocation: Invocation, **given: Any) -> None:
    """Memories are archived, not removed: `kept restore` brings them back. Sessions without new messages for a long
    time are packed.
    """
    asked = request_of(UPKEEP, given)
    with invocation.open(auto_upkeep=False) as memory:
        done = memory.perform(UPKEEP, asked)
    lines: list[Line] = [
        (
            Strong(one.ref if one.action == "pack" else f"[id:{one.ref}]"),
            f" {_UPKEEP_DONE[one.action][asked.dry_run]}: {one.reason}.",
        )
        for one in done.done
    ]
    if done.skipped:
        lines.append("Another process is already running upkeep.")
    elif not lines:
        lines.append("There was nothing to do.")
    packed = [one.ref for one in done.done if one.action == "pack"]
    invocation.answer({"done": done.done, "dry_run": asked.dry_run, "skipped": done.skipped, "packed": packed}, lines)
