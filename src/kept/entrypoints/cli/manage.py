"""Aliases, secrets, pauses and upkeep: `kept alias`, `secrets`, `pause`, `resume` and `upkeep`."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from kept.entrypoints.cli.derived import given_text, options_of, request_of
from kept.entrypoints.cli.frame import command, group, session_named, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import bracketed, memories
from kept.memory.store import Leak
from kept.memory.upkeep import StepAction
from kept.memory.verbs.switches import ADD_ALIAS, ALLOW, LIST_ALIASES, PAUSE, REMOVE_ALIAS, RESUME
from kept.memory.verbs.upkeep import SCAN, UPKEEP

# The words for each step: made, and in a dry run.
UPKEEP_DONE: Mapping[StepAction, tuple[str, str]] = {
    "confirm": ("is confirmed", "would be confirmed"),
    "penalise": ("counts for less", "would count for less"),
    "expire": ("is archived", "would be archived"),
    "evict": ("is archived", "would be archived"),
    "finish": ("is finished", "would be finished"),
    "pack": ("is packed", "would be packed"),
}
OF_SESSIONS: tuple[StepAction, ...] = ("finish", "pack")


@group
def alias_command() -> None:
    """A query with the word also finds memories with one of the others; those rank lower, and the hit says so."""


@alias_command.command("list")
@options_of(LIST_ALIASES, without=("own",))
@click.option("--all", "is_all", is_flag=True, help="Also the words that Kept brings.")
def list_aliases(invocation: Invocation, *, word: str | None, is_all: bool) -> None:
    """Show the words that find others: those that were added here, or all for one WORD."""
    with invocation.open() as memory:
        aliases = memory.aliases.list(word, own=word is None and not is_all)
    lines: list[Line] = [(Strong(word), f" → {', '.join(others)}") for word, others in sorted(aliases.items())]
    if not lines and word is not None:
        lines.append(f"{word} finds only itself. `kept alias add {word} OTHERS` adds words.")
    elif not is_all and word is None:
        nothing = "" if lines else "No alias was added here. "
        lines.append(Dim(f"{nothing}`kept alias list --all` also shows the words that Kept brings."))
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


@group
def secrets_command() -> None:
    """Secrets are redacted before anything is stored. `scan` finds those that older rules did not know; `allow` is for
    a value that only looks like one.
    """


@secrets_command.command("scan")
@options_of(SCAN)
@yes_option
def scan_for_secrets(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Search memories, messages, tasks and aliases for secrets."""
    asked = request_of(SCAN, given)
    with invocation.open(yes=True) as memory:
        leaks = memory.perform(SCAN, msgspec.structs.replace(asked, fix=False))
        if asked.fix and leaks:
            if not yes:
                invocation.tell(*_leak_lines(leaks, ""))
                invocation.agree(f"Remove the secrets from {memories(len(leaks))} for good? This cannot be undone.")
            leaks = memory.perform(SCAN, asked)
    end = ": removed" if asked.fix else ""
    lines = _leak_lines(leaks, end)
    if not leaks:
        lines.append("No secrets are stored here.")
    elif not asked.fix:
        lines.append(Dim(f"{memories(len(leaks))}. `kept secrets scan --fix` removes the secrets."))
    invocation.answer({"leaks": leaks}, lines)


def _leak_lines(leaks: Sequence[Leak], end: str) -> list[Line]:
    return [
        (Strong(bracketed(leak.ref)), f" {', '.join(f'{found.kind} ({found.count})' for found in leak.found)}{end}")
        for leak in leaks
    ]


@secrets_command.command("allow")
@options_of(ALLOW)
@yes_option
def allow_value(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Declare that a value only looks like a secret.

    It is not redacted from now on. Only a digest of it is stored. A single dash reads it from standard input.
    """
    asked = request_of(ALLOW, given)
    if asked.value == "-":
        asked = msgspec.structs.replace(asked, value=given_text((asked.value,)).strip("\n"))
    with invocation.open(yes=yes) as memory:
        allowance = memory.perform(ALLOW, asked)
    invocation.answer(allowance, ["It is not redacted from now on. `kept undo` undoes this."])


@command
@options_of(PAUSE)
def pause_command(invocation: Invocation, *, session: str | None) -> None:
    """Commands that you run yourself (remember, recall …) still work."""
    with invocation.open() as memory:
        session = session and session_named(invocation, memory, session, must_exist=False)
        was_paused = session in [pause["session"] for pause in memory.status()["paused"]]
        pause = memory.pauses.pause(session)
    where = f"in session {session}" if session else "in this project"
    is_off = f"Kept was paused {where} already. Nothing was changed." if was_paused else f"Paused {where}."
    invocation.answer(pause, [f"{is_off} `kept resume{f' --session {session}' if session else ''}` ends it."])


@command
@options_of(RESUME)
def resume_command(invocation: Invocation, *, session: str | None) -> None:
    with invocation.open() as memory:
        session = session and session_named(invocation, memory, session, must_exist=False)
        was_paused = memory.pauses.resume(session)
    sentence = "Kept is on again." if was_paused else "Kept was not paused here. Nothing was changed."
    invocation.answer({"was_paused": was_paused}, [sentence])


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
            Strong(f"Session {one.ref}" if one.action in OF_SESSIONS else bracketed(one.ref)),
            f" {UPKEEP_DONE[one.action][asked.dry_run]}: {one.reason}.",
        )
        for one in done.done
    ]
    if done.skipped:
        lines.append("Another process is already running upkeep.")
    elif not lines:
        lines.append("There was nothing to do.")
    packed = [one.ref for one in done.done if one.action == "pack"]
    invocation.answer({"done": done.done, "dry_run": asked.dry_run, "skipped": done.skipped, "packed": packed}, lines)
