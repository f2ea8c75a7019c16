"""Recall, and why it answered so."""

from typing import Annotated, Literal

from msgspec import Struct

from kept.errors import InvalidInput
from kept.memory import endings, everywhere, past, read, receipts
from kept.memory.context import Context
from kept.memory.receipts import RecallReceipt
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import (
    Agent,
    AsOf,
    FilesAtHand,
    FloorName,
    Kinds,
    Query,
    Since,
    Tags,
    Until,
    WithData,
    about,
    data_filter,
)
from kept.model import Recalled
from kept.recall import MOST_HITS, RecallScope, Request
from kept.tables import PROFILES


class Recall(Struct, frozen=True, kw_only=True):
    """A question."""

    query: Query
    limit: Annotated[int, about("How many at most.", metavar="NUMBER", least=1, most=MOST_HITS)] = 5
    kinds: Kinds = ()
    tags: Tags = ()
    files: FilesAtHand = ()
    since: Since = None
    until: Until = None
    as_of: AsOf = None
    agent: Agent = None
    scope: Annotated[RecallScope, about("Where to search.")] = "memory"
    profile: (
        Annotated[str, about(f"How to score: {', '.join(PROFILES)}. By default as in the settings.", metavar="PROFILE")]
        | None
    ) = None
    floor: FloorName | None = None
    data: WithData = None
    follow: Annotated[bool, about("Add memories recalled together with the hits before.")] = False
    by: Annotated[Literal["message", "session"], about("In scope sessions: each message, or each session once.")] = (
        "message"
    )
    packed: Annotated[bool, about("In scope sessions: search old, compressed ones as well.")] = False
    session: Annotated[str, about("The session that asks: it sees its own findings.", metavar="SESSION")] | None = None
    all_projects: Annotated[bool, about("Ask every project of the home. Only for an admin.")] = False


class Why(Struct, frozen=True, kw_only=True):
    """A receipt to explain."""

    receipt: (
        Annotated[
            int | str, about("A receipt, such as r12; by default the last.", metavar="RECEIPT", is_positional=True)
        ]
        | None
    ) = None


def recall(context: Context, asked: Recall) -> Recalled:
    """Answer a question from the project and global memory, or from every project."""
    request = Request(
        query=asked.query,
        limit=asked.limit,
        profile=asked.profile,
        floor=asked.floor,
        kinds=asked.kinds,
        tags=asked.tags,
        data=data_filter(context, asked.data),
        files=asked.files,
        since=asked.since,
        until=asked.until,
        scope=asked.scope,
        follow=asked.follow,
        by=asked.by,
        packed=asked.packed,
        seen_by=context.seen_by(asked.session),
        agent=asked.agent,
    )
    if asked.as_of is not None and asked.follow:
        raise InvalidInput(
            "as_of and follow cannot be combined: the journal does not say what was recalled together.",
            hint="Leave out one of them.",
        )
    is_past = asked.as_of is not None
    if asked.all_projects:
        recalled = everywhere.recall(context, request, as_of=asked.as_of)
    elif asked.as_of is not None:
        recalled = past.recall(context, request, asked.as_of)
    else:
        recalled = read.recall(context, request)
    return endings.dated(context, recalled, is_past=is_past) if is_past or asked.scope == "archive" else recalled


def why(context: Context, asked: Why) -> RecallReceipt:
    """Explain a recall or a briefing."""
    return receipts.explain(asked.receipt, context.readable())


def replay(context: Context, asked: Why) -> Recalled:
    """Ask a receipt's question again as of its moment."""
    return read.replay(context, asked.receipt)


RECALL = Verb(
    name="recall",
    help="Find the memories that best match a few key words.",
    details="Give two to six key words, and synonyms if you like; not a sentence.",
    request=Recall,
    run=recall,
    effect="reads",
    returns=Returns(Recalled, "Hits with scores and reasons."),
    python="recall",
    cli="recall",
    mcp=Tool("memory_query", usual=("query", "limit", "kinds", "tags", "files", "scope", "follow")),
    http="GET /recall",
    slash="/memory search",
)
WHY = Verb(
    name="why",
    help="Explain the last recall: what was found, what just missed, and why.",
    request=Why,
    run=why,
    effect="reads",
    returns=Returns(RecallReceipt, "The question, its hits, its nearest misses, and every factor."),
    python="why",
    cli="why",
    mcp=Tool("memory_why"),
    http="GET /why",
    slash="/memory why",
)
REPLAY = Verb(
    name="replay",
    help="Ask the question of a receipt again, as of its moment, and note nothing.",
    request=Why,
    run=replay,
    effect="reads",
    returns=Returns(Recalled, "The same answer, if the store is the same."),
    python="store.replay",
    cli="replay",
    mcp=NotHere("An agent asks again with memory_query."),
    http="GET /replay",
    slash="/memory replay",
)
VERBS = (RECALL, WHY, REPLAY)
