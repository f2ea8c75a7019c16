"""`kept remember`, `revise` and `edit`: the text of a memory. `kept undo` undoes each change."""

from collections.abc import Mapping
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from kept.entrypoints.cli.derived import chosen_tier, given_text, global_option, options_of, request_of
from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import FAILED, Invocation, Line
from kept.entrypoints.cli.wording import as_document, bracketed, name_of
from kept.entrypoints.wording import contradictions, receipt_details, receipt_lines, receipt_sentence, refs
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.memory.verbs.change import REVISE
from kept.memory.verbs.remember import REMEMBER, Remember
from kept.model import KINDS, Memory, Receipt, canonical_kind

EDITABLE = ("content", "kind", "tags", "files", "importance")
BOTH_SIDES = "`kept conflicts` shows both sides."
_EDIT_PAGE = """# Memory [id:{m.ref}]. Save and close to change it; leave it as it is to change nothing.
kind: {m.kind}
tags: {tags}
files: {files}
importance: {m.importance:g}
---
{m.content}
"""


@command
@options_of(REMEMBER)
@global_option("For all projects; the same as --tier global.")
@click.option("--task", metavar="TASK", help="The task it belongs to; `kept task show TASK` lists it.")
@yes_option
def remember_command(invocation: Invocation, *, is_global: bool, task: str | None, yes: bool, **given: Any) -> None:
    """TEXT has at most 500 characters (a summary: 4,000). It may be several words; a single dash reads it from standard
    input. A text that is stored already, apart from case and spacing, is not stored twice: the memory becomes more
    important instead.

    \b
      kept remember "Never edit the auth middleware directly" --kind warning --tag auth
      git log -1 --format=%s | kept remember - --kind progress
    """
    asked = request_of(REMEMBER, chosen_tier(given, is_global=is_global))
    asked = replace(asked, session=asked.session or invocation.session)
    with invocation.open(yes=yes) as memory:
        check_kind(invocation, memory, asked.kind, yes=yes)
        receipt = memory.perform(REMEMBER, asked) if task is None else _remember_for_task(memory, task, asked)
    answer_receipt(invocation, receipt)


def _remember_for_task(memory: Kept, task: str, asked: Remember) -> Receipt:
    source = memory.context.source()
    about = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in ("content", "session")}
    about["source"] = replace(source, session=asked.session or source.session)
    return memory.task(known_task(memory, task)).remember(asked.content, **about)


def check_kind(invocation: Invocation, memory: Kept, kind: str, *, yes: bool) -> None:
    """Ask about a kind that is nearly one of Kept's. Any other word is a kind of its own, as is one that is in use."""
    word = canonical_kind(kind)
    if word not in KINDS and not memory.list(kinds=[word], limit=1):
        invocation.check_name(word, KINDS, "kind", yes=yes)


def known_task(memory: Kept, id: str) -> str:
    """Return the id if there is such a task: a typing error must not begin one. Raises NotFound."""
    if id not in {task.name for task in memory.tasks(archived=True)}:
        raise NotFound(f"There is no task {id[:60]!r}.", hint="`kept task list` shows them.")
    return id


def answer_receipt(invocation: Invocation, receipt: Receipt, first: Line | None = None) -> None:
    """Say what became of a draft, with `first` as the sentence for one that was stored; a refusal ends the command."""
    document = msgspec.to_builtins(receipt)
    if receipt.memory is not None:
        document["memory"] = as_document(receipt.memory)
    if receipt.outcome != "refused":
        invocation.answer(document, [first or _outcome(receipt), *receipt_details(receipt, of_conflicts=BOTH_SIDES)])
        return
    if invocation.as_json:
        invocation.answer(document, ())
    else:
        invocation.tell(*receipt_lines(receipt))
    click.get_current_context().exit(FAILED)


def _outcome(receipt: Receipt) -> Line:
    assert receipt.memory is not None
    before, after = receipt_sentence(receipt)
    return before, name_of(receipt.memory), after


@command
@options_of(REVISE)
@yes_option
def revise_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """A single dash as TEXT reads it from standard input. Tags and files that are given replace those it has."""
    asked = request_of(REVISE, given)
    with invocation.open(yes=yes) as memory:
        revised = memory.perform(REVISE, asked)
        found = disagreements(memory, revised)
    invocation.answer(as_document(revised), [(name_of(revised), " is revised."), *found])


def disagreements(memory: Kept, changed: Memory) -> list[Line]:
    """The contradictions that were found when a memory was revised or restored, just now."""
    found = [
        conflict
        for conflict in memory.conflicts(resolved=True)
        if changed.uid in (conflict.left, conflict.right) and conflict.detected_at == changed.updated_at
    ]
    name = bracketed(changed.ref)
    over = [memory.get(one.right, forgotten=True).ref for one in found if one.resolved_at is not None]
    lines: list[Line] = [f"{name} replaces {refs(over)}."] if over else []
    unsettled = [one.ref for one in found if one.resolved_at is None]
    return [*lines, *contradictions(unsettled, name, advice=BOTH_SIDES)]


@command
@options_of(REVISE, without=("content",))
@click.option("--text", metavar="TEXT", help="The new text; a single dash reads it from standard input.")
@yes_option
def edit_command(invocation: Invocation, *, text: str | None, yes: bool, **given: Any) -> None:
    """Without options, the memory is opened in $VISUAL or $EDITOR, with its fields above its text. Tags and files that
    are given replace those it has.
    """
    asked = request_of(REVISE, {**given, "content": None if text is None else given_text((text,))})
    typed = {name: value for name in EDITABLE if (value := getattr(asked, name)) is not None}
    with invocation.open(yes=yes) as memory:
        found = memory.get(asked.ref)
        wanted = _differing(typed or _edited(found), found)
        changed, lines = _revised(invocation, memory, found, wanted, session=asked.session, yes=yes)
    invocation.answer(as_document(changed), lines)


def _revised(
    invocation: Invocation, memory: Kept, found: Memory, wanted: Mapping[str, Any], *, session: str | None, yes: bool
) -> tuple[Memory, list[Line]]:
    """Change these fields of a memory; returns it and the lines about it."""
    if not wanted:
        return found, [(name_of(found), " stays as it was. Nothing was changed.")]
    if "kind" in wanted:
        check_kind(invocation, memory, wanted["kind"], yes=yes)
    changed = memory.revise(found.ref, **wanted, session=session)
    names = ", ".join("text" if name == "content" else name for name in wanted)
    return changed, [(name_of(changed), f" is changed: {names}."), *disagreements(memory, changed)]


def _edited(memory: Memory) -> dict[str, Any]:
    """Open a memory in the person's editor; return the fields as they were saved, or none if it was not."""
    page = _EDIT_PAGE.format(m=memory, tags=", ".join(memory.tags), files=", ".join(memory.files))
    try:
        saved = click.edit(page, extension=".md")
    except click.ClickException as error:  # its message names the program, and has no way on
        raise InvalidInput(
            f"The editor did not save the text ({error.message}).",
            hint="Nothing was changed. Set $EDITOR to another program, or use `kept edit REF --text TEXT`.",
        ) from None
    return {} if saved is None else _parsed(saved.replace("\r\n", "\n"), memory)


def _parsed(page: str, memory: Memory) -> dict[str, Any]:
    head, rule, content = page.partition("\n---\n")
    if not rule:
        raise InvalidInput("The line --- between the fields and the text is gone.", hint="Nothing was changed.")
    fields = dict(line.split(":", 1) for line in head.split("\n") if ":" in line and not line.startswith("#"))
    told = {name.strip(): value.strip() for name, value in fields.items()}
    try:
        importance = float(told.get("importance", memory.importance))
    except ValueError:
        raise InvalidInput("importance is not a number.", hint="Nothing was changed. Use 0 to 1.") from None
    return {
        "content": content.strip("\n"),
        "kind": told.get("kind", memory.kind),
        "tags": _listed(told.get("tags", "")),
        "files": _listed(told.get("files", "")),
        "importance": importance,
    }


def _listed(names: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in names.split(",") if one.strip())


def _differing(wanted: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value != getattr(memory, name)}
