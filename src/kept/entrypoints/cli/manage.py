"""Commands for what somebody has to decide: contradictions, other words, pauses, false alarms."""

import click
import msgspec

import kept
from kept.entrypoints.cli.frame import Command, Group, pass_invocation, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, as_document, counted, name_of
from kept.entrypoints.cli.write import given_text
from kept.errors import NotFound
from kept.model import Conflict


@click.command("conflicts", cls=Command)
@click.option("--all", "resolved", is_flag=True, help="Also those that are settled.")
@pass_invocation
def conflicts_command(invocation: Invocation, *, resolved: bool) -> None:
    """Show memories that contradict each other."""
    lines: list[Line] = []
    documents = []
    with invocation.open() as memory:
        for conflict in memory.conflicts(resolved=resolved):
            sides = [_side(memory, uid) for uid in (conflict.left, conflict.right)]
            documents.append({**msgspec.to_builtins(conflict), "ref": conflict.ref, "sides": [ref for ref, _ in sides]})
            lines += _conflict_lines(conflict, sides, invocation)
    if not documents:
        lines.append("Nothing contradicts anything else.")
    invocation.answer({"conflicts": documents}, lines)


def _side(memory: kept.Kept, uid: str) -> tuple[str, str]:
    try:
        found = memory.get(uid, forgotten=True)
    except NotFound:
        return "?", "(erased)"
    return found.ref, found.content


def _conflict_lines(conflict: Conflict, sides: list[tuple[str, str]], invocation: Invocation) -> list[Line]:
    settled = " · settled" if conflict.resolved_at else ""
    lines: list[Line] = [
        (Strong(conflict.ref), f" {conflict.type}", Dim(f"  {ago(conflict.detected_at, invocation.clock())}{settled}")),
        *((f"    [id:{ref}] ", content.replace("\n", " ")) for ref, content in sides),
    ]
    if not conflict.resolved_at:
        lines.append(Dim(f"    `kept resolve {conflict.ref} --keep {sides[0][0]}` keeps the first one."))
    return lines


@click.command("resolve", cls=Command)
@click.argument("conflict")
@click.option("--keep", required=True, metavar="REF", help="The memory that holds from now on.")
@yes_option
@pass_invocation
def resolve_command(invocation: Invocation, *, conflict: str, keep: str, yes: bool) -> None:
    """Settle a contradiction: one memory stays, the other is archived."""
    with invocation.open(yes=yes) as memory:
        settled = memory.resolve(conflict, keep=keep)
    line = (name_of(settled), f" holds; {conflict} is settled. `kept undo` takes it back.")
    invocation.answer(as_document(settled), [line])


@click.command("alias", cls=Group)
def alias_command() -> None:
    """Teach recall other words for a word.

    Whoever asks for the word is also given what holds one of the others; those count for less, and a hit says so.
    """


@alias_command.command("list")
@pass_invocation
def list_aliases(invocation: Invocation) -> None:
    """Show every word that stands for others, the defaults included."""
    with invocation.open() as memory:
        aliases = memory.aliases.list()
    lines: list[Line] = [(Strong(word), f" → {', '.join(others)}") for word, others in sorted(aliases.items())]
    invocation.answer({"aliases": aliases}, lines)


@alias_command.command("add")
@click.argument("word")
@click.argument("others", nargs=-1, required=True)
@pass_invocation
def add_alias(invocation: Invocation, *, word: str, others: tuple[str, ...]) -> None:
    """From now on WORD also finds OTHERS."""
    with invocation.open() as memory:
        alias = memory.aliases.add(word, *others)
    invocation.answer(alias, [(Strong(alias.word), f" also finds {', '.join(alias.expands_to)}.")])


@alias_command.command("remove")
@click.argument("word")
@pass_invocation
def remove_alias(invocation: Invocation, *, word: str) -> None:
    """Take back what was added for WORD; a default stays."""
    with invocation.open() as memory:
        memory.aliases.remove(word)
    invocation.answer({"removed": word}, [f"{word} stands for itself again."])


@click.command("scan", cls=Command)
@click.option("--fix", is_flag=True, help="Take the secrets out, also of the history.")
@yes_option
@pass_invocation
def scan_command(invocation: Invocation, *, fix: bool, yes: bool) -> None:
    """Look for secrets in what is stored.

    Secrets are redacted before anything is stored; this checks what older rules may have let through.
    """
    if fix and not yes:
        invocation.agree("Take every secret out of what is stored, for good? This cannot be undone.")
    with invocation.open(yes=True) as memory:
        leaks = memory.store.scan(fix=fix)
    lines: list[Line] = [
        (
            Strong(f"[id:{leak.ref}]"),
            f" {', '.join(f'{found.kind} ({found.count})' for found in leak.found)}{': taken out' if fix else ''}",
        )
        for leak in leaks
    ]
    if not leaks:
        lines.append("No secret is stored here.")
    elif not fix:
        lines.append(Dim(f"{counted(len(leaks), 'memory', 'memories')}. `kept scan --fix` takes the secrets out."))
    invocation.answer({"leaks": leaks}, lines)


@click.command("allow", cls=Command)
@click.argument("value")
@click.option("--note", default="", metavar="TEXT", help="Why it is harmless.")
@pass_invocation
def allow_command(invocation: Invocation, *, value: str, note: str) -> None:
    """Say that a value only looks like a secret.

    It is stored as it is from now on. Only a digest of it is kept. A single dash reads it from standard input.
    """
    if value == "-":
        value = given_text((value,)).strip("\n")
    with invocation.open() as memory:
        allowance = memory.store.allow(value, note)
    invocation.answer(allowance, ["It will be stored as it is from now on. `kept undo` takes that back."])


@click.command("off", cls=Command)
@click.option("--session", metavar="ID", help="Only in this session.")
@pass_invocation
def off_command(invocation: Invocation, *, session: str | None) -> None:
    """Pause: capture and inject nothing by itself, in this project.

    What you do on purpose (remember, recall …) goes on working.
    """
    with invocation.open() as memory:
        pause = memory.pauses.pause(session)
    where = f"in session {session}" if session else "in this project"
    invocation.answer(pause, [f"Paused {where}. `kept on{f' --session {session}' if session else ''}` ends it."])


@click.command("on", cls=Command)
@click.option("--session", metavar="ID", help="Only in this session.")
@pass_invocation
def on_command(invocation: Invocation, *, session: str | None) -> None:
    """End a pause."""
    with invocation.open() as memory:
        was_paused = memory.pauses.resume(session)
    sentence = "Kept is on again." if was_paused else "Kept was not paused here."
    invocation.answer({"was_paused": was_paused}, [sentence])
