"""`kept edit`: correct a memory, on the command line or in an editor. `kept undo` undoes it."""

from collections.abc import Mapping
from typing import Any

import click

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, yes_option
from kept.entrypoints.cli.invocation import Invocation, Line
from kept.entrypoints.cli.receipts import check_kind, disagreements
from kept.entrypoints.cli.wording import as_document, name_of, state
from kept.errors import InvalidInput
from kept.memory import Kept
from kept.memory.verbs.change import REVISE
from kept.model import Memory

EDITABLE = ("content", "kind", "tags", "files", "importance")
_EDIT_PAGE = """# Memory [id:{m.ref}]. Save and close to change it; leave it as it is to change nothing.
kind: {m.kind}
tags: {tags}
files: {files}
importance: {m.importance:g}
---
{m.content}
"""


@command
@options_of(REVISE)
@yes_option
def edit_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Its id and feedback stay. Without TEXT and options, the memory is opened in $VISUAL or $EDITOR, with its fields
    above its text. A single dash as TEXT reads it from standard input. Tags and files that are given replace those it
    has.
    """
    asked = request_of(REVISE, given)
    typed = {name: value for name in EDITABLE if (value := getattr(asked, name)) is not None}
    with invocation.open(yes=yes) as memory:
        found = memory.get(asked.ref)
        if not typed and not invocation.can_ask():
            raise InvalidInput("There is no terminal to edit it in.", hint="Give TEXT, or run it in a terminal.")
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
    lines: list[Line] = [(name_of(changed), f" is changed: {names}.")]
    if changed.is_archived:
        lines.append(f"It stays {state(changed)}. `kept restore {changed.ref}` brings it back.")
    return changed, [*lines, *disagreements(memory, changed)]


def edited_lines(invocation: Invocation, memory: Kept, found: Memory) -> list[Line]:
    """Open a memory in the person's editor, change it as it was saved, and return the lines about it."""
    wanted = _differing(_edited(found), found)
    return _revised(invocation, memory, found, wanted, session=None, yes=False)[1]


def _edited(memory: Memory) -> dict[str, Any]:
    """Open a memory in the person's editor; return the fields as they were saved, or none if it was not."""
    page = _EDIT_PAGE.format(m=memory, tags=", ".join(memory.tags), files=", ".join(memory.files))
    try:
        saved = click.edit(page, extension=".md")
    except click.ClickException as error:  # its message names the program, and has no way on
        raise InvalidInput(
            f"The editor did not save the text ({error.message}).",
            hint="Nothing was changed. Set $EDITOR to another program, or use `kept edit REF TEXT`.",
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
