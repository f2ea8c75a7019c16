"""Every verb of Kept, one file a topic.

To add a verb: write its request, its function and its row in the file of its topic, and a method of `Kept` (or of one
of its namespaces) that calls `perform`. Commands, tools, routes, slash commands and the reference page follow from the
row; `tests/test_verbs.py` says what is missing. Rule: a topic is imported when it is first used, because programs that
start often pay for every module at each start.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from kept import access
from kept.memory.context import Context

if TYPE_CHECKING:
    from kept.memory.verbs import brief as brief
    from kept.memory.verbs import change as change
    from kept.memory.verbs import contradictions as contradictions
    from kept.memory.verbs import erasure as erasure
    from kept.memory.verbs import exchange as exchange
    from kept.memory.verbs import judge as judge
    from kept.memory.verbs import knowledge as knowledge
    from kept.memory.verbs import read as read
    from kept.memory.verbs import recall as recall
    from kept.memory.verbs import remember as remember
    from kept.memory.verbs import sessions as sessions
    from kept.memory.verbs import switches as switches
    from kept.memory.verbs import tasks as tasks
    from kept.memory.verbs import team as team
    from kept.memory.verbs import upkeep as upkeep
    from kept.memory.verbs import views as views
    from kept.memory.verbs.declare import AnyVerb, Verb
else:

    def __getattr__(name):
        """Import a topic when it is first used."""
        if name in TOPICS:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


Q = TypeVar("Q", bound=Struct)
A = TypeVar("A")

TOPICS = (
    "remember",
    "recall",
    "change",
    "brief",
    "read",
    "erasure",
    "contradictions",
    "judge",
    "switches",
    "sessions",
    "tasks",
    "knowledge",
    "views",
    "exchange",
    "team",
    "upkeep",
)


# The topics of the tools that an MCP client sees without asking for more: a server starts with every conversation.
USUAL_TOPICS = ("remember", "recall", "change", "brief", "judge", "tasks")


def all_verbs(topics: Sequence[str] = TOPICS) -> "Iterator[AnyVerb]":
    """Return the rows of all topics, or of these, in their order."""
    for topic in topics:
        yield from getattr(sys.modules[__name__], topic).VERBS


def not_here() -> "list[tuple[AnyVerb, str, str]]":
    """Return every cell of the table that has no door: the verb, the door and the reason."""
    return [(verb, door, reason) for verb in all_verbs() for door, reason in verb.missing()]


def checked(request: Q) -> Q:
    """Return the request if its values fit their types and limits. Raises InvalidInput."""
    values = {name: getattr(request, name) for name in request.__struct_fields__}
    try:
        return msgspec.convert(values, type(request))
    except msgspec.ValidationError as error:
        from kept.memory.verbs.arguments import explained  # uses reflection, and is needed only after a mistake

        raise explained(error, type(request), values) from None


def perform(context: Context, verb: "Verb[Q, A]", request: Q) -> A:
    """Check the actor and the request, do the work, and send each signal of it once.

    Raises NotAllowed for an actor that may call no verb, InvalidInput for a wrong argument.
    """
    if not verb.names_errors:
        access.check_verb(context.actor, reads=verb.effect == "reads")
    asked = checked(request)
    with context.signals.gathered(verb.name):
        return verb.run(context, asked)
