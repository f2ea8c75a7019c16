"""Knowledge: tasks, what the project's files state, and which files are searched as a whole."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.web.shell import LAST, PAGE, address, draw_detail, draw_page, root_of, wants_detail
from kept.memory import Kept
from kept.model import Memory, TaskRecord, TaskState

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
ItemTypeName = Literal["", "entity", "claim", "task", "decision", "note"]
TYPES = ("entity", "claim", "task", "decision", "note")
STATES: tuple[str, ...] = get_args(TaskState)
NOTES = 50
LOOKED_AT = 2_000  # items that are read to fill one page of a filtered list


@router.get("/p/{project}/knowledge")
def knowledge(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    q: Annotated[str, Query(max_length=2_000)] = "",
    type: ItemTypeName = "",
    file: Annotated[str, Query(max_length=500)] = "",
    after: Annotated[int, Query(ge=0, le=LAST)] = 0,
    ended: bool = False,
    task: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show tasks, the statements of the project's files, and its sources."""
    root = root_of(project)
    tasks = memory.tasks(archived=ended)
    about: dict[str, Any] = {"all_of_them": address(root, "knowledge", ended=1 if ended else 0), "states": STATES}
    if wants_detail(request):
        back = address(root, "knowledge", task=task)
        opened = _task(memory, tasks, task)
        return draw_detail(request, "task.html", project, memory, opened=opened, back=back, **about)
    opened = _task(memory, tasks, task or next((one.name for one in tasks), ""))
    items, following = _items(memory, q, type, file, after)
    filters = {"q": q, "type": type, "file": file}
    return draw_page(
        request,
        "knowledge",
        project,
        memory,
        key,
        tasks=tasks,
        opened=opened,
        is_chosen=bool(task),
        ended=ended,
        items=items,
        **filters,
        types=TYPES,
        sources=memory.look().searched_files(limit=PAGE),
        next=address(root, "knowledge", **filters, after=following) if following else "",
        back=address(root, "knowledge", **filters, after=after, task=task),
        **about,
    )


def _task(memory: Kept, tasks: Sequence[TaskRecord], name: str) -> dict[str, Any] | None:
    """Return a task with its notes and the memories that came of it; None if there is no such one."""
    found = next((one for one in tasks if one.name == name), None)
    if found is None:
        return None
    opened = memory.task(name)
    return {"task": found, "notes": opened.memories()[-NOTES:], "kept": opened.remembered()[-NOTES:]}


def _items(memory: Kept, q: str, type: str, file: str, after: int) -> tuple[list[Memory], int]:
    """Return a page of items, and the id after which the next one begins; 0 when there is none."""

    def fits(one: Memory) -> bool:
        return (not type or one.item_type == type) and (not file or file in (one.source.file or ""))

    if q.strip():
        found = [hit.memory for hit in memory.look().search(q, scope="items", limit=100).hits]
        return list(filter(fits, found))[:PAGE], 0
    most = LOOKED_AT if type or file else PAGE
    read = memory.look().items(limit=most + 1, after=after)
    shown = list(filter(fits, read[:most]))[:PAGE]
    if not read:
        return [], 0
    last = shown[-1] if len(shown) == PAGE else read[:most][-1]
    return shown, 0 if last is read[-1] else last.id
