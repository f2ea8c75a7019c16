"""Contradictions between memories, and reviews of memories that need a decision."""

from typing import Annotated, Any

from msgspec import Struct

from kept.memory import manage, reviews
from kept.memory.context import Conflicts, Context, Memories
from kept.memory.reviews import Review
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, Limit, Text, about
from kept.model import Conflict, Draft, Memory, Receipt
from kept.upkeep.review import ReviewFinding, ReviewReason


class ListConflicts(Struct, frozen=True, kw_only=True):
    """Which conflicts to list."""

    resolved: Annotated[bool, about("List settled ones as well.")] = False


class Resolve(Struct, frozen=True, kw_only=True):
    """A conflict, and the memory that stays."""

    conflict: Annotated[int | str, about("The conflict, such as c7.", metavar="CONFLICT")]
    keep: Annotated[int | str, about("The id of the memory that holds.", metavar="ID", is_named=True)]


class ListReviews(Struct, frozen=True, kw_only=True):
    """Which memories to review."""

    limit: Limit = 20
    reasons: Annotated[tuple[ReviewReason, ...], about("Only for this reason.", one="reason")] = ()


class Decide(Struct, frozen=True, kw_only=True):
    """Decisions of a review."""

    decisions: Annotated[
        tuple[str, ...],
        about(
            "keep:42, archive:43, wrong:48, forget:44, supersede:45=46 or promote:47.",
            one="decision",
            metavar="DECISION",
        ),
    ] = ()
    given: Annotated[Any, PYTHON_ONLY] = ()


class Propose(Struct, frozen=True, kw_only=True):
    """A statement for global memory."""

    content: Annotated[Text, about("One fact in one or two sentences.", is_text=True)]
    kind: Annotated[str, about("What it is.", metavar="KIND")] = "fact"
    tags: Annotated[tuple[str, ...], about("2-5 short topics.", one="tag", metavar="TAG")] = ()
    files: Annotated[tuple[str, ...], about("Files it is about.", one="file", metavar="PATH")] = ()
    draft: Annotated[Any, PYTHON_ONLY] = None  # a kept.Draft


def conflicts(context: Context, asked: ListConflicts) -> Conflicts:
    """List open contradictions."""
    return manage.conflicts(context, resolved=asked.resolved)


def resolve(context: Context, asked: Resolve) -> Memory:
    """Settle a contradiction."""
    return manage.resolve(context, asked.conflict, asked.keep)


def list_reviews(context: Context, asked: ListReviews) -> Review:
    """List memories that need a decision."""
    return reviews.list_reviews(context, limit=asked.limit, reasons=asked.reasons)


def decide(context: Context, asked: Decide) -> Memories:
    """Carry out all decisions, or none."""
    return reviews.apply_decisions(context, [*asked.decisions, *asked.given])


def propose(context: Context, asked: Propose) -> Receipt:
    """Ask a person in the next review whether a statement becomes global."""
    draft = asked.draft or Draft(content=asked.content, kind=asked.kind, tags=asked.tags, files=asked.files)
    return reviews.propose(context, draft)


CONFLICTS = Verb(
    name="conflicts",
    help="Show memories that contradict each other.",
    request=ListConflicts,
    run=conflicts,
    effect="reads",
    returns=Returns(Conflict, "Contradictions, each with both memories.", many="conflicts"),
    python="conflicts",
    cli="review conflicts",
    mcp=Tool("memory_conflicts"),
    http="GET /conflicts",
    slash="/memory conflicts",
)
RESOLVE = Verb(
    name="resolve",
    help="Settle a conflict: one memory stays, the other is archived.",
    request=Resolve,
    run=resolve,
    effect="destroys",
    returns=Returns(Memory, "The memory that stays."),
    python="resolve",
    cli="review resolve",
    mcp=Tool("memory_resolve"),
    http="POST /conflicts/{conflict}/resolve",
    slash="/memory resolve",
)
REVIEW = Verb(
    name="reviews.list",
    help="List memories that need a decision.",
    request=ListReviews,
    run=list_reviews,
    effect="reads",
    returns=Returns(
        ReviewFinding, "Findings, most pressing first, each with a reason and a proposal.", many="findings"
    ),
    python="reviews.list",
    cli="review",
    mcp=Tool("memory_review"),
    http="GET /review",
    slash="/memory review",
)
DECIDE = Verb(
    name="reviews.apply",
    help="Carry out decisions of a review, all or none.",
    request=Decide,
    run=decide,
    effect="destroys",
    returns=Returns(Memory, "The memories after it.", many="memories"),
    python="reviews.apply",
    cli="review",
    mcp=NotHere("A person decides; an agent settles single conflicts with memory_resolve."),
    http="POST /review",
    slash="/memory decide",
)
PROPOSE = Verb(
    name="reviews.propose",
    help="Store a statement in the project, and ask in the next review whether all projects get it.",
    request=Propose,
    run=propose,
    effect="writes",
    returns=Returns(Receipt, "What became of it."),
    python="reviews.propose",
    cli="propose",
    mcp=Tool("memory_propose"),
    http="POST /review/proposals",
    slash="/memory propose",
)
VERBS = (CONFLICTS, RESOLVE, REVIEW, DECIDE, PROPOSE)
