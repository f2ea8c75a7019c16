"""How a verb is declared: one request, one function, one row.

    class Recall(Struct, frozen=True, kw_only=True): ...      the arguments, with their limits and lines of help
    def recall(context, asked: Recall) -> Recalled: ...       the work
    RECALL = Verb(name="recall", request=Recall, run=recall, ...)

Every door is derived from the row: the method of `Kept`, `kept recall`, the tool `memory_query`, `GET /recall` and the
slash command. A door adds wording and rendering, nothing else. `verbs.perform` is the one way from a request to its
answer.
Rule: a door that lacks a verb says why, in `NotHere`, in words that a user would accept.
"""

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from kept.memory.context import Context

Q = TypeVar("Q", bound=Struct)
A = TypeVar("A")

Effect = Literal["reads", "writes", "destroys"]
Who = Literal["project", "person"]
Door = Literal["python", "cli", "mcp", "http", "slash"]
DOORS: tuple[Door, ...] = ("python", "cli", "mcp", "http", "slash")
WHO: dict[Who, str] = {
    "project": "agents and people of the project, and admins; a change of global memory asks a person first",
    "person": "a person; an agent that calls it has a person asked first",
}


class NotHere(Struct, frozen=True):
    """The reason why a door does not have a verb."""

    reason: str


NO_AGENT = NotHere("An agent must not read or write files outside of its project.")
NO_SERVER = NotHere("A server must not read or write its files for clients; run the command there.")


class Tool(Struct, frozen=True):
    """A tool of the MCP server. `usual`: the arguments it shows by default; without any it is only in `--all-tools`.

    `renamed`: arguments that have another name there. `when`: several verbs share the tool, and this one is meant if
    that argument is given.
    """

    name: str
    usual: tuple[str, ...] = ()
    renamed: dict[str, str] = {}
    when: str = ""


class Returns(Struct, frozen=True):
    """The answer of a verb, for reference pages: a noun, or with `many` a list of them under that name."""

    noun: type | None
    about: str
    many: str = ""


class Verb(Struct, Generic[Q, A], frozen=True, kw_only=True):
    """One row. `python` is the path of its method; `http` a method and a path below the project."""

    name: str
    help: str
    request: type[Q]
    run: Callable[[Context, Q], A]
    effect: Effect
    returns: Returns
    python: str
    cli: str | NotHere
    mcp: Tool | NotHere
    http: str | NotHere
    slash: str | NotHere
    who: Who = "project"
    details: str = ""  # more help, where one line is not enough
    is_repeatable: bool = False  # calling it twice is calling it once
    names_errors: bool = False  # its answer names an error instead of raising it

    def at(self, door: Door) -> "str | Tool | NotHere":
        """Return the name of the verb at a door, or why it is not there."""
        found: str | Tool | NotHere = getattr(self, door)
        return found

    def missing(self) -> "list[tuple[Door, str]]":
        """Return the doors that do not have the verb, each with the reason."""
        return [(door, found.reason) for door in DOORS if isinstance(found := self.at(door), NotHere)]


AnyVerb = Verb[Any, Any]
