"""Erase for good."""

from typing import Annotated, Any

from msgspec import Struct

from kept.memory import erase
from kept.memory.context import Context, Receipts
from kept.memory.erase import Named
from kept.memory.verbs.declare import NotHere, Returns, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, about
from kept.model import Receipt


class Erase(Struct, frozen=True, kw_only=True):
    """The memories, messages (`SESSION#12`), sessions, tasks and aliases to erase."""

    refs: Annotated[
        tuple[str, ...],
        about("Ids of memories, or of messages (SESSION#12).", one="ref", metavar="REF", is_positional=True),
    ] = ()
    sessions: Annotated[
        tuple[str, ...], about("A whole session, and what was captured from it.", one="session", metavar="SESSION")
    ] = ()
    tasks: Annotated[tuple[str, ...], about("A task with its notes.", one="task", metavar="TASK")] = ()
    aliases: Annotated[
        tuple[str, ...], about("An alias of this project, also one that was removed.", one="alias", metavar="WORD")
    ] = ()
    targets: Annotated[Any, PYTHON_ONLY] = ()


def erase_all(context: Context, asked: Erase) -> Receipts:
    """Erase everything named, in one group; a receipt each, in order."""
    named = [
        *(Named("session", name) for name in asked.sessions),
        *(Named("task", name) for name in asked.tasks),
        *(Named("alias", word) for word in asked.aliases),
    ]
    return erase.erase(context, [*asked.targets, *asked.refs, *named])


ERASE = Verb(
    name="erase",
    help="Remove memories, messages, sessions, tasks or aliases for good. This cannot be undone.",
    request=Erase,
    run=erase_all,
    effect="destroys",
    returns=Returns(Receipt, "What was erased, and where it was found.", many="receipts"),
    python="erase",
    cli="erase",
    mcp=NotHere("Only a person erases for good; an agent has memory_forget."),
    http="POST /erase",
    slash="/memory erase",
)
VERBS = (ERASE,)
