"""Knowledge: tasks, what the project's files state, and which files are searched as a whole."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.web.shell import LAST, PAGE, address, draw_page, root_of
from kept.memory import Kept
from kept.model import Memory

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
ItemTypeName = Literal["", "entity", "claim", "task", "decision", "note"]
TYPES = ("entity", "claim", "task", "decision", "note")
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
) -> Response:
    """Tasks, what the project's files state, and its sources."""
    root = root_of(project)
    items, following = _items(memory, q, type, file, after)
    filters = {"q": q, "type": type, "file": file}
    return draw_page(
        request,
        "knowledge",
        project,
        memory,
        key,
        tasks=memory.tasks(archived=ended),
        ended=ended,
        items=items,
        **filters,
        types=TYPES,
        sources=memory.look().searched_files(limit=PAGE),
        next=address(root, "knowledge", **filters, after=following) if following else "",
        back=address(root, "knowledge", **filters, after=after),
    )


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
