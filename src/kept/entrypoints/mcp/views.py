"""Resources and prompts: what a person attaches to a chat, and the slash commands a person types there.

A prompt runs its slash command when a person picks it and hands the answer to the chat. Rule: what is shown is
rendered as in a tool's answer.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kept.entrypoints import slash
from kept.entrypoints.mcp.surroundings import Surroundings
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.memory.brief import memory_line

PREFIX = "memory://"
ONE = "memory://memory/"
TEMPLATE = ONE + "{id}"
RECENT = 20


class MemoryView(NamedTuple):
    """One resource: its name, what it shows, and how."""

    name: str
    line: str
    show: Callable[[Kept, Surroundings], str]
    mime_type: str = "text/plain"


def _briefing(memory: Kept, around: Surroundings) -> str:
    briefing = memory.briefing(session=around.session, style="text")
    if briefing.error:
        raise InvalidInput(briefing.error)
    return str(briefing)


def _pinned(memory: Kept, _around: Surroundings) -> str:
    return "\n".join(map(memory_line, memory.list(status="pinned", limit=RECENT)))


def _recent(memory: Kept, _around: Surroundings) -> str:
    return "\n".join(map(memory_line, memory.list(limit=RECENT)))


RESOURCES: Mapping[str, MemoryView] = {
    "memory://briefing": MemoryView("briefing", "What an agent should know before it starts.", _briefing),
    "memory://pinned": MemoryView("pinned", "The pinned memories.", _pinned),
    "memory://recent": MemoryView("recent", f"The newest {RECENT} memories.", _recent),
}


def _commands() -> dict[str, tuple[str, str]]:
    """A prompt for each first word: its usage and its line of help."""
    found = {
        name.removeprefix("/"): (command.usage, command.line)
        for name, command in slash.COMMANDS.items()
        if " " not in name
    }
    usages = " · ".join(command.usage for name, command in slash.COMMANDS.items() if " " in name)
    return found | {"memory": (usages, "Search and manage memory: status, list, search, budget, alias, auto, config.")}


COMMANDS: Mapping[str, tuple[str, str]] = _commands()


def read_view(memory: Kept, uri: str, around: Surroundings, views: Mapping[str, MemoryView]) -> str:
    """The text of a resource. Raises NotFound."""
    if view := views.get(uri):
        return view.show(memory, around) or "Nothing is stored there yet."
    if uri.startswith(ONE):
        return memory_line(memory.get(uri.removeprefix(ONE)))
    raise NotFound(f"There is no resource {uri[:100]!r}.")


def run_command(memory: Kept, line: str) -> str:
    """Run a slash command that a person picked. The text for the chat says what was done."""
    answer = slash.run(memory, line)
    done = "Kept has done this" if answer.done else "Kept answered"
    return f"The user ran {line!r}. {done}; show it to the user, there is nothing else to do:\n\n{answer}"
