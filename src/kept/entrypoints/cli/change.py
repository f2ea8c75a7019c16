"""Commands that change a memory: each can be taken back with `kept undo`, except erase."""

from collections.abc import Callable
from typing import Any

import click
import msgspec

import kept
from kept.entrypoints.cli.frame import Command, pass_invocation, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line
from kept.entrypoints.cli.store import given_file
from kept.entrypoints.cli.wording import as_document, counted, event_name, memory_lines, name_of
from kept.entrypoints.cli.write import given_text
from kept.errors import InvalidInput
from kept.ids import parse_ref
from kept.journal import noun_of
from kept.model import Event, Memory


def _change(
    invocation: Invocation, yes: bool, change: Callable[[kept.Kept], Memory], *sentence: Callable[[Memory], str] | str
) -> None:
    """Make one change and say in one sentence what is so now."""
    with invocation.open(yes=yes) as memory:
        changed = change(memory)
    words = tuple(part if isinstance(part, str) else part(changed) for part in sentence)
    invocation.answer(as_document(changed), [words])


@click.command("reinforce", cls=Command)
@click.argument("ref")
@pass_invocation
def reinforce_command(invocation: Invocation, *, ref: str) -> None:
    """Say that a memory helped: it will rank higher."""
    _change(invocation, False, lambda m: m.reinforce(ref), name_of, lambda m: f" has feedback {m.feedback:+d} now.")


@click.command("demote", cls=Command)
@click.argument("ref")
@pass_invocation
def demote_command(invocation: Invocation, *, ref: str) -> None:
    """Say that a memory was wrong or beside the point: it will rank lower."""
    _change(invocation, False, lambda m: m.demote(ref), name_of, lambda m: f" has feedback {m.feedback:+d} now.")


@click.command("revise", cls=Command)
@click.argument("ref")
@click.argument("text", nargs=-1, required=True)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Replaces the tags it has. May be repeated.")
@yes_option
@pass_invocation
def revise_command(
    invocation: Invocation, *, ref: str, text: tuple[str, ...], tags: tuple[str, ...], yes: bool
) -> None:
    """Correct the text of a memory; its id and feedback stay.

    A single dash as TEXT reads it from standard input.
    """
    content = given_text(text)
    _change(invocation, yes, lambda m: m.revise(ref, content, tags=tags or None), name_of, " is revised.")


@click.command("pin", cls=Command)
@click.argument("ref")
@yes_option
@pass_invocation
def pin_command(invocation: Invocation, *, ref: str, yes: bool) -> None:
    """Always bring this memory along."""
    _change(invocation, yes, lambda m: m.pin(ref), name_of, " is pinned.")


@click.command("unpin", cls=Command)
@click.argument("ref")
@yes_option
@pass_invocation
def unpin_command(invocation: Invocation, *, ref: str, yes: bool) -> None:
    """No longer bring it along by itself."""
    _change(invocation, yes, lambda m: m.unpin(ref), name_of, " is no longer pinned.")


@click.command("forget", cls=Command)
@click.argument("ref")
@yes_option
@pass_invocation
def forget_command(invocation: Invocation, *, ref: str, yes: bool) -> None:
    """Hide a memory everywhere; it can be restored.

    It stays in the store until `kept erase` removes it for good.
    """
    restore = (" is forgotten. `kept restore ", lambda m: m.ref, "` brings it back.")
    _change(invocation, yes, lambda m: m.forget(ref), name_of, *restore)


@click.command("restore", cls=Command)
@click.argument("ref_or_file")
@yes_option
@pass_invocation
def restore_command(invocation: Invocation, *, ref_or_file: str, yes: bool) -> None:
    """Bring back a memory, or the store from a backup file.

    What looks like a ref (42, g42, [id:42]) is a memory that was archived or forgotten; anything else is a file that
    `kept backup` wrote. A file called 42 is ./42. A store that has changed since the backup is replaced only after a
    yes, and stays beside it as a backup of its own. What was erased since then does not come back.
    """
    if _is_ref(ref_or_file):
        _change(invocation, yes, lambda m: m.restore(ref_or_file), name_of, lambda m: f" is back ({m.status}).")
        return
    with invocation.open(yes=yes) as memory:
        restored = memory.store.restore(given_file(ref_or_file))
    lines: list[Line] = [
        f"Restored {counted(restored.memories, 'memory', 'memories')} and {counted(restored.events, 'event')} "
        f"from {ref_or_file}."
    ]
    if restored.left_out:
        lines.append(f"Left out, because erased since then: {counted(restored.left_out, 'memory', 'memories')}.")
    if restored.replaced:
        lines.append(f"The store as it was before is {restored.replaced}.")
    invocation.answer(restored, lines)


def _is_ref(text: str) -> bool:
    try:
        parse_ref(text)
    except InvalidInput:
        return False
    return True


@click.command("erase", cls=Command)
@click.argument("ref")
@yes_option
@pass_invocation
def erase_command(invocation: Invocation, *, ref: str, yes: bool) -> None:
    """Remove a memory for good. This cannot be undone.

    No byte of it stays in the home: text, index, history, backups. `kept forget` only hides it.
    """
    with invocation.open() as memory:
        found = memory.get(ref, forgotten=True)
    if not yes:
        invocation.tell(*memory_lines(found, invocation.clock()))
        invocation.agree(f"Erase memory {found.ref} for good? This cannot be undone.")
    with invocation.open(yes=True) as memory:
        receipt = memory.erase(found.uid)
    invocation.answer(receipt, [receipt.message])


@click.command("undo", cls=Command)
@click.argument("event", required=False)
@yes_option
@pass_invocation
def undo_command(invocation: Invocation, *, event: str | None, yes: bool) -> None:
    """Take back the last change, or a certain one.

    Without EVENT it is the newest change that you made and that still stands; `kept history` shows the numbers of
    others. Undoing an undo makes the change again. Nothing is undone where later changes build on it: it says which.
    """
    with invocation.open(yes=yes) as memory:
        done = memory.undo(event)
        told = [_undone(memory, one, invocation) for one in done]
    redo = told[-1][0]
    lines = [line for _, _, its_lines in told for line in its_lines]
    lines.append(Dim(f"`kept undo {redo}` makes it so again."))
    invocation.answer({"events": [document for _, document, _ in told]}, lines)


def _undone(memory: kept.Kept, event: Event, invocation: Invocation) -> tuple[str, dict[str, Any], list[Line]]:
    """The name of the event that took something back, its document, and what to say about it."""
    document: dict[str, Any] = msgspec.to_builtins(event)
    del document["salt"]
    if noun_of(event) is not Memory:
        return str(event.seq), document, [f"Taken back: a change of {event.subject}."]
    found = memory.get(event.subject, forgotten=True)
    is_global = found.ref.startswith("g")
    undone = [other for other in memory.history(event.subject) if other.group == event.undoes]
    actions = ", ".join(f"{other.action} (event {event_name(other, is_global=is_global)})" for other in undone)
    name = event_name(event, is_global=is_global)
    lines: list[Line] = [f"Taken back: {actions}.", *memory_lines(found, invocation.clock())]
    return name, {"event": name, "ref": found.ref, **document}, lines
