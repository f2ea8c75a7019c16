"""Every verb of Kept, one file a topic.

To add a verb: write its request, its function and its row in the file of its topic, and a method of `Kept` (or of one
of its namespaces) that calls `perform`. Commands, tools, routes, slash commands and the reference page follow from the
row; `tests/test_verbs.py` says what is missing. Rule: a topic is imported when it is first used, because programs that
start often pay for every module at each start.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from kept.memory.verbs.declare import DOORS as DOORS
from kept.memory.verbs.declare import AnyVerb, NotHere
from kept.memory.verbs.declare import perform as perform

if TYPE_CHECKING:
    from kept.memory.verbs import brief as brief
    from kept.memory.verbs import change as change
    from kept.memory.verbs import contradictions as contradictions
    from kept.memory.verbs import erasure as erasure
    from kept.memory.verbs import exchange as exchange
    from kept.memory.verbs import knowledge as knowledge
    from kept.memory.verbs import read as read
    from kept.memory.verbs import recall as recall
    from kept.memory.verbs import remember as remember
    from kept.memory.verbs import sessions as sessions
    from kept.memory.verbs import switches as switches
    from kept.memory.verbs import tasks as tasks
    from kept.memory.verbs import upkeep as upkeep
    from kept.memory.verbs import views as views
else:

    def __getattr__(name):
        """Import a topic when it is first used."""
        if name in TOPICS:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TOPICS = (
    "remember",
    "recall",
    "change",
    "brief",
    "read",
    "erasure",
    "contradictions",
    "switches",
    "sessions",
    "tasks",
    "knowledge",
    "views",
    "exchange",
    "upkeep",
)


def all_verbs() -> Iterator[AnyVerb]:
    """Return the rows of all topics, in their order."""
    for topic in TOPICS:
        yield from import_module(f"{__name__}.{topic}").VERBS


def not_here() -> list[tuple[AnyVerb, str, str]]:
    """Return every cell of the table that has no door: the verb, the door and the reason."""
    return [
        (verb, door, found.reason)
        for verb in all_verbs()
        for door in DOORS
        if isinstance(found := verb.at(door), NotHere)
    ]
