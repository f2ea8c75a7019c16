"""A tool of the MCP server, a call of it, and its answer."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kept.entrypoints.mcp.protocol import DESCRIPTIONS, GRAPH_DESCRIPTIONS
from kept.entrypoints.mcp.surroundings import Surroundings
from kept.memory import Kept


class Call(NamedTuple):
    """One call: the opened memory, the arguments, and what the call belongs to."""

    memory: Kept
    given: Mapping[str, Any]
    surroundings: Surroundings
    can_ask: bool  # whether the client can put a question to a person


class ToolAnswer(NamedTuple):
    """The answer of a tool that has an `output`: the text, and the same as values."""

    text: str
    values: dict[str, Any]


class MemoryTool(NamedTuple):
    """One tool. `reads`: it changes nothing that is stored. `repeats`: calling it twice is calling it once.

    `output`: the schema of the values of its answer, where clients expect some.
    """

    name: str
    title: str
    run: Callable[[Call], str | ToolAnswer]
    schema: Mapping[str, Any]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    output: Mapping[str, Any] | None = None

    @property
    def description(self) -> str:
        """Return the text that a model reads to decide whether it calls the tool."""
        return {**DESCRIPTIONS, **GRAPH_DESCRIPTIONS}.get(self.name) or self.title
