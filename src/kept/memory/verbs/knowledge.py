"""Errors with their lessons, and global memory as a whole."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from kept.memory import knowledge
from kept.memory.context import Context, Memories
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import Limit, about
from kept.model import Memory, Receipt


class AddFailure(Struct, frozen=True, kw_only=True):
    """An error and its lesson."""

    failure: Annotated[str, about("The message of the error, or output that contains it.", metavar="MESSAGE")]
    lesson: Annotated[str, about("How to fix or avoid it.", metavar="LESSON", is_text=True)]
    tags: Annotated[tuple[str, ...], about("2-5 short topics.", one="tag", metavar="TAG")] = ()
    files: Annotated[tuple[str, ...], about("Files it is about.", one="file", metavar="PATH")] = ()


class ListFailures(Struct, frozen=True, kw_only=True):
    """Which errors to list."""

    like: Annotated[str, about("Only the same error as in this output.", metavar="OUTPUT", is_text=True)] = ""
    limit: Limit = knowledge.MOST


class ClearAll(Struct, frozen=True, kw_only=True):
    """All of global memory."""


def add_failure(context: Context, asked: AddFailure) -> Receipt:
    """Store an error and its lesson."""
    return knowledge.add_failure(context, asked.failure, asked.lesson, tags=asked.tags, files=asked.files)


def failures(context: Context, asked: ListFailures) -> Memories:
    """List errors, newest first."""
    return knowledge.failures(context, asked.like, limit=asked.limit)


def decisions(context: Context, tags: Sequence[str], *, limit: int) -> Memories:
    """List decisions of the project."""
    return knowledge.decisions(context, tags, limit=limit)


def preferences(context: Context, category: str | None, *, limit: int) -> Memories:
    """List preferences of the person."""
    return knowledge.preferences(context, category, limit=limit)


def clear_all(context: Context, _asked: ClearAll) -> int:
    """Forget all of global memory, once a person has agreed."""
    return knowledge.clear_all(context)


ADD_FAILURE = Verb(
    name="knowledge.add_failure",
    help="Store an error and its lesson; the same error finds it again.",
    request=AddFailure,
    run=add_failure,
    effect="writes",
    returns=Returns(Receipt, "What became of it."),
    python="knowledge.add_failure",
    cli="failure add",
    mcp=Tool("memory_failure_add"),
    http="POST /failures",
    slash="/memory failure add",
)
FAILURES = Verb(
    name="knowledge.failures",
    help="List known errors, newest first, or those like an output.",
    request=ListFailures,
    run=failures,
    effect="reads",
    returns=Returns(Memory, "Errors with their lessons, newest first.", many="memories"),
    python="knowledge.failures",
    cli="failure list",
    mcp=Tool("memory_failures"),
    http="GET /failures",
    slash="/memory failure list",
)
CLEAR_ALL = Verb(
    name="knowledge.clear_all",
    who="person",
    help="Forget all of global memory, for every project. This can be undone.",
    request=ClearAll,
    run=clear_all,
    effect="destroys",
    returns=Returns(None, "How many memories were forgotten."),
    python="knowledge.clear_all",
    cli="clear-global",
    mcp=NotHere("Only a person empties the memory of all projects."),
    http=NotHere("Only the person at the machine empties the memory of all projects."),
    slash="/memory clear-global",
)
VERBS = (ADD_FAILURE, FAILURES, CLEAR_ALL)
