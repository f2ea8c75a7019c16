"""`kept narrative`: the running story that memories belong to."""

from typing import Any

import click

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import group
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import ago, as_document, memories, memory_lines
from kept.errors import InvalidInput, NotFound
from kept.memory.verbs.tasks import BEGIN_NARRATIVE, END_NARRATIVE, SHOW_NARRATIVE, EndNarrative


@group
def narrative_command() -> None:
    """Between begin and end, everything that is remembered in this project belongs to the story."""


@narrative_command.command("begin")
@options_of(BEGIN_NARRATIVE)
def begin_narrative(invocation: Invocation, **given: Any) -> None:
    """Let everything that is remembered from now on belong to this story."""
    asked = request_of(BEGIN_NARRATIVE, given)
    with invocation.open() as memory:
        id = memory.perform(BEGIN_NARRATIVE, asked)
    invocation.answer({"id": id, "is_under_way": True}, [(Strong(id), " is under way. `kept narrative end` ends it.")])


@narrative_command.command("end")
@click.argument("name", metavar="[NARRATIVE]", required=False)
def end_narrative(invocation: Invocation, *, name: str | None) -> None:
    """End the story under way. What belongs to it stays."""
    with invocation.open() as memory:
        id = memory.look().narrative if name is not None else None
        if id is not None and name != id:
            raise InvalidInput(f"The narrative under way is {id}, not {name}.", hint="`kept narrative end` ends it.")
        id = memory.perform(END_NARRATIVE, EndNarrative())
    said: Line = "No narrative is under way." if id is None else (Strong(id), " has ended.")
    invocation.answer({"id": id, "is_under_way": False}, [said])


@narrative_command.command("list")
def list_all(invocation: Invocation) -> None:
    """List the stories of this project, the last one first."""
    with invocation.open() as memory:
        found = memory.narratives()
    lines: list[Line] = [
        (
            Strong(told.id),
            f" {memories(told.memories)}{', under way' if told.is_under_way else ''}",
            Dim(f"  {ago(told.last, invocation.clock())}"),
        )
        for told in found
    ]
    invocation.answer(
        {"narratives": found}, lines or ["There are no narratives here. `kept narrative begin NAME` begins one."]
    )


@narrative_command.command("show")
@options_of(SHOW_NARRATIVE)
def show_narrative(invocation: Invocation, **given: Any) -> None:
    """Show the memories of a story in the order they were written; without NARRATIVE, of the one under way."""
    asked = request_of(SHOW_NARRATIVE, given)
    with invocation.open() as memory:
        id = asked.id if asked.id is not None or asked.of is not None else memory.look().narrative
        if id is None and asked.of is None:
            raise NotFound("No narrative is under way.", hint="Name one; `kept narrative list` shows them.")
        story = memory.narrative(id, of=asked.of)
        told = story.memories()
    lines: list[Line] = [Strong(story.id), *(line for one in told for line in memory_lines(one, invocation.clock()))]
    if not told:
        lines.append("Nothing belongs to it yet.")
    invocation.answer({"id": story.id, "memories": [as_document(one) for one in told]}, lines)
