"""Memories over HTTP: list, read, remember, change, recall, brief, explain, undo, settle."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from kept.entrypoints.http.doors import Asking, Opened, shown_to
from kept.entrypoints.http.problems import problem
from kept.entrypoints.http.shapes import answer, document, etag_of, page, returns
from kept.memory import Kept
from kept.memory.receipts import Explained
from kept.model import Briefing, Conflict, Event, Memory, Recalled, Receipt, Tier, Trust
from kept.upkeep.review import ReviewFinding

router = APIRouter(prefix="/projects/{project}")
MOST = 500
Limit = Annotated[int, Query(ge=1, le=MOST)]
Ref = Annotated[str, Path(description="A ref: `42`, or `g42` for global memory.", max_length=100)]
Names = Annotated[list[str], Query()]
Moment = Annotated[datetime | None, Query()]
RecallScope = Literal["memory", "items", "sessions", "sources", "archive"]
Done = Literal["reinforce", "demote", "pin", "unpin", "forget", "restore"]


class Given(BaseModel):
    """A body: fields that it does not know are an error."""

    model_config = ConfigDict(extra="forbid")


class NewMemory(Given):
    """A statement to remember."""

    content: str = Field(max_length=1_000_000)
    kind: str = "fact"
    tags: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    importance: float | None = None
    pin: bool = False
    tier: Tier = "project"
    topic: str | None = None


class Revision(Given):
    """Another text for a memory, and other tags if they are given."""

    content: str = Field(max_length=1_000_000)
    tags: list[str] | None = None


class Keep(Given):
    """Which of two memories stays."""

    keep: str = Field(max_length=100)


class Undo(Given):
    """The event to undo; without one, the newest change of whoever asks."""

    event: str | None = Field(None, max_length=100)


class Decisions(Given):
    """Decisions as `kept review` takes them: keep:42, forget:43, supersede:44=45."""

    decisions: list[str] = Field(max_length=MOST)


class Promotion(Given):
    """The tier to move a memory to."""

    to: Tier = "project"


@router.get("/memories", responses=returns(Memory, "Memories, newest first.", many="memories"))
def list_memories(
    memory: Opened,
    kind: Names = [],  # noqa: B006  FastAPI copies it
    tag: Names = [],  # noqa: B006
    file: Names = [],  # noqa: B006
    trust: Annotated[list[Trust], Query()] = [],  # noqa: B006
    agent: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[Literal["candidate", "confirmed", "pinned", "archived", "forgotten"] | None, Query()] = None,
    limit: Limit = 50,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """List memories. `next` is the `after` of the page that follows."""
    found = memory.list(
        kinds=kind, tags=tag, files=file, trusts=trust, agent=agent, status=status, limit=limit, after=after
    )
    return answer(page("memories", found, limit=limit))


@router.post("/memories", status_code=201, responses=returns(Receipt, "What became of it.", status=201))
def remember(
    memory: Opened,
    given: NewMemory,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Keep one statement. With an `Idempotency-Key`, a repetition stores nothing twice."""
    return answer(memory.remember(**given.model_dump(), key=idempotency_key), status=201)


@router.get("/memories/{ref}", responses=returns(Memory, "The memory; its ETag names this version."))
def get_memory(memory: Opened, ref: Ref) -> Response:
    """Read one memory."""
    return _one(memory.get(ref))


@router.patch("/memories/{ref}", responses=returns(Memory, "The memory with its new text."))
def revise(memory: Opened, ref: Ref, given: Revision, if_match: Annotated[str | None, Header()] = None) -> Response:
    """Correct a memory. With `If-Match`, only if nobody changed it since that version was read."""
    if if_match is not None and if_match not in ("*", etag_of(memory.get(ref))):
        changed = problem(412, f"Memory {ref} has been changed since you read it.", hint="Read it again, then decide.")
        return Response(_json(changed), status_code=412, media_type="application/problem+json")
    return _one(memory.revise(ref, given.content, given.tags))


@router.delete("/memories/{ref}", responses=returns(Receipt, "What was erased, and where it was found."))
def erase(memory: Opened, ref: Ref) -> Response:
    """Remove a memory for good. This cannot be undone; `forget` can."""
    return answer(memory.erase(ref))


@router.post("/memories/{ref}/promote", responses=returns(Receipt, "The memory in its new tier."))
def promote(memory: Opened, ref: Ref, given: Promotion) -> Response:
    """Move a memory to a tier that lives longer."""
    return answer(memory.promote(ref, given.to))


@router.post("/memories/{ref}/{verb}", responses=returns(Memory, "The memory after it."))
def change(memory: Opened, ref: Ref, verb: Done) -> Response:
    """Reinforce, demote, pin, unpin, forget or restore a memory."""
    return _one(getattr(memory, verb)(ref))


@router.get("/memories/{ref}/history", responses=returns(Event, "Its events, oldest first.", many="events"))
def history_of(memory: Opened, ref: Ref) -> Response:
    """What happened to a memory."""
    return answer({"events": memory.history(ref), "next": None})


@router.get("/recall", responses=returns(Recalled, "Hits with scores and reasons."))
def recall(
    memory: Opened,
    q: Annotated[str, Query(max_length=10_000)],
    scope: RecallScope = "memory",
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: Names = [],  # noqa: B006
    tag: Names = [],  # noqa: B006
    file: Names = [],  # noqa: B006
    since: Moment = None,
    until: Moment = None,
    profile: Annotated[str | None, Query(max_length=50)] = None,
) -> Response:
    """Find what best matches a few key words."""
    found = memory.recall(
        q, limit=limit, scope=scope, kinds=kind, tags=tag, files=file, since=since, until=until, profile=profile
    )
    return answer(found)


@router.get("/briefing", responses=returns(Briefing, "The text, and what is in it."))
def briefing(
    memory: Opened,
    prompt: Annotated[str, Query(max_length=100_000)] = "",
    budget_tokens: Annotated[int | None, Query(ge=1, le=100_000)] = None,
    style: Literal["xml", "markdown", "text", "json"] = "xml",
    file: Names = [],  # noqa: B006
    session: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Write what an agent should know before it starts."""
    return answer(memory.briefing(prompt, budget_tokens=budget_tokens, style=style, files=file, session=session))


@router.get("/why", responses=returns(Explained, "The question, its hits, its nearest misses, every factor."))
def why(memory: Opened, key: Asking, receipt: Annotated[str | None, Query(max_length=100)] = None) -> Response:
    """Explain a recall or a briefing, the last one by default."""
    return answer(shown_to(key, memory.why(receipt)))


@router.get("/history", responses=returns(Event, "The newest events, oldest first.", many="events"))
def history(memory: Opened, limit: Limit = 50, tier: Literal["project", "global"] = "project") -> Response:
    """What changed in the project, or in global memory."""
    return answer({"events": memory.history(limit=limit, tier=tier), "next": None})


@router.post("/undo", responses=returns(Event, "The events that undid it.", many="events"))
def undo(memory: Opened, given: Undo) -> Response:
    """Take one change back. Undoing an undo redoes."""
    return answer({"events": memory.undo(given.event), "next": None})


@router.get("/conflicts", responses=returns(Conflict, "Contradictions, each with both memories.", many="conflicts"))
def conflicts(memory: Opened, resolved: bool = False) -> Response:
    """List memories that contradict each other."""
    found = memory.conflicts(resolved=resolved)
    return answer({"conflicts": [_with_both(memory, conflict) for conflict in found], "next": None})


@router.post("/conflicts/{ref}/resolve", responses=returns(Memory, "The memory that stays."))
def resolve(memory: Opened, ref: Ref, given: Keep) -> Response:
    """Settle a contradiction: one memory stays, the other is archived."""
    return _one(memory.resolve(ref, given.keep))


@router.get("/review", responses=returns(ReviewFinding, "What a person should decide.", many="findings"))
def review(memory: Opened, limit: Limit = 20) -> Response:
    """List memories to look at again, each with a reason and a proposal."""
    return answer({"findings": list(memory.reviews.list(limit=limit)), "next": None})


@router.post("/review", responses=returns(Memory, "The memories after it.", many="memories"))
def decide(memory: Opened, given: Decisions) -> Response:
    """Carry decisions out, all or none."""
    return answer({"memories": memory.reviews.apply(given.decisions), "next": None})


def _one(memory: Memory) -> Response:
    return answer(memory, headers={"ETag": etag_of(memory)})


def _with_both(memory: Kept, conflict: Conflict) -> dict[str, Any]:
    both = {side: memory.look().find(getattr(conflict, side), forgotten=True) for side in ("left", "right")}
    return {**document(conflict), **both}


def _json(value: Any) -> bytes:
    return bytes(answer(value).body)
