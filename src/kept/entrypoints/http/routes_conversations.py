"""Sessions, what was injected into them, tasks, knowledge and the whole store over HTTP."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from kept.entrypoints.http.doors import Asking, Opened, told
from kept.entrypoints.http.routes_memories import Given, Limit
from kept.entrypoints.http.shapes import answer, document, returns
from kept.errors import NotFound
from kept.exchange.items import to_document
from kept.memory import Kept
from kept.memory.receipts import Explained
from kept.model import Message, Session, Task, TaskState

router = APIRouter(prefix="/projects/{project}")
Name = Annotated[str, Path(max_length=200)]
ItemType = Literal["entity", "claim", "task", "decision", "note"]
MOST_ITEMS = 10_000


class NewTask(Given):
    """A piece of work."""

    id: str | None = Field(None, max_length=200)
    description: str = Field("", max_length=100_000)
    milestone: str | None = Field(None, max_length=200)
    priority: int | None = Field(None, ge=1, le=1000)
    acceptance_criteria: list[str] = Field(default_factory=list)
    blocked_by: list[str] = Field(default_factory=list)


class TaskChange(Given):
    """The state of a task."""

    state: TaskState


@router.get("/sessions", responses=returns(Session, "Sessions, newest first.", many="sessions"))
def sessions(memory: Opened, limit: Limit = 50, after: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """List conversations. `next` is the `after` of the page that follows."""
    found = memory.sessions()[::-1]
    names = [one.name for one in found]
    if after is not None:
        found = found[names.index(after) + 1 :] if after in names else []
    shown = found[:limit]
    return answer({"sessions": shown, "next": shown[-1].name if len(found) > limit else None})


@router.get("/sessions/{session}", responses=returns(None, "The session, its findings and what was promoted."))
def session(memory: Opened, session: Name) -> Response:
    """Read what a conversation left behind."""
    _check_session(memory, session)
    return answer(memory.session(session).record())


@router.get("/sessions/{session}/messages", responses=returns(Message, "Messages in order.", many="messages"))
def messages(memory: Opened, session: Name, limit: Limit = 100, after: Annotated[int, Query(ge=0)] = 0) -> Response:
    """Read a conversation. `after` is the number of the last message of the page before."""
    _check_session(memory, session)
    found = [one for one in memory.session(session).messages() if one.n > after]
    shown = found[:limit]
    return answer({"messages": shown, "next": str(shown[-1].n) if len(found) > limit else None})


@router.get("/sessions/{session}/saw", responses=returns(Explained, "What was given, newest first.", many="given"))
def saw(memory: Opened, key: Asking, session: Name, limit: Limit = 20) -> Response:
    """What an agent was given in a session without asking, byte for byte, with the reasons."""
    return answer({"given": told(memory, key, session, limit=limit), "next": None})


@router.get("/tasks", responses=returns(Task, "Tasks, highest priority first.", many="tasks"))
def tasks(memory: Opened, milestone: str | None = None, archived: bool = False) -> Response:
    """List pieces of work."""
    return answer({"tasks": memory.tasks(milestone=milestone, archived=archived), "next": None})


@router.post("/tasks", status_code=201, responses=returns(Task, "The task.", status=201))
def add_task(memory: Opened, given: NewTask) -> Response:
    """Add a task, or change the fields of one that is there."""
    fields = given.model_dump(exclude_unset=True)
    return answer(memory.task(fields.pop("id", None), **fields).task, status=201)


@router.post("/tasks/{task}/state", responses=returns(Task, "The task."))
def set_state(memory: Opened, task: Name, given: TaskChange) -> Response:
    """Move a task on."""
    if task not in {one.name for archived in (False, True) for one in memory.tasks(archived=archived)}:
        raise NotFound(f"There is no task {task!r}.", hint="GET …/tasks lists them.")
    return answer(memory.task(task).set_state(given.state))


@router.get("/knowledge", responses=returns(None, "Items with file and line.", many="items"))
def knowledge(memory: Opened, type: ItemType | None = None) -> Response:
    """What the project's own files state: entities, claims, tasks, decisions and notes."""
    return answer(items_of(memory, type))


@router.get("/status", responses=returns(None, "Counts and sizes of each readable space."))
def status(request: Request, memory: Opened, key: Asking) -> Response:
    """How much is stored, and what was refused."""
    return answer(request.app.state.doors.without_paths(key, memory.status()))


@router.get(
    "/export", responses={200: {"description": "One memory on each line.", "content": {"application/jsonl": {}}}}
)
def export(memory: Opened, archived: bool = False) -> Response:
    """All memories, one JSON document on each line."""

    def lines() -> Iterator[bytes]:
        for one in memory.store.export(archived=archived):
            yield msgspec.json.encode(document(one)) + b"\n"

    return StreamingResponse(lines(), media_type="application/jsonl")


def items_of(memory: Kept, type: ItemType | None) -> dict[str, Any]:
    """The items of a project, each with the fields of an items.json."""
    found = memory.files.items(type=type, limit=MOST_ITEMS)
    listed = [
        to_document(
            one.key or one.ref,
            one.item_type or "note",
            one.title or "",
            one.content,
            one.source.file or "",
            one.source.line or 0,
            one.confidence,
            one.created_at,
        )
        for one in found
    ]
    return {"items": listed, "next": None}


def _check_session(memory: Opened, name: str) -> None:
    """Looking at a session must not begin one."""
    if name not in {one.name for one in memory.sessions()}:
        raise NotFound(f"There is no session {name!r}.", hint="GET …/sessions lists them.")
