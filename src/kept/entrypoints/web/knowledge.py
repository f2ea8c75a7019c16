"""Knowledge: tasks, what the project's files state, and which files are searched as a whole."""

from collections import Counter
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.web.shell import LAST, PAGE, address, draw_page, root_of, search
from kept.memory import Kept
from kept.model import Memory
from kept.ports import Where

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
        sources=_sources(memory),
        next=address(root, "knowledge", **filters, after=following) if following else "",
        back=address(root, "knowledge", **filters, after=after),
    )


def _items(memory: Kept, q: str, type: str, file: str, after: int) -> tuple[list[Memory], int]:
    """A page of items, and the id after which the next one begins; 0 when there is none."""

    def fits(one: Memory) -> bool:
        return (not type or one.item_type == type) and (not file or file in (one.source.file or ""))

    if q.strip():
        found = [hit.memory for hit in search(memory, q, scope="items", limit=100).hits]
        return [one for one in found if fits(one)][:PAGE], 0
    storage = memory.context.spaces.project()
    if storage is None:
        return [], 0
    shown: list[Memory] = []
    last, looked = after, 0
    with storage.reading() as reader:
        while len(shown) < PAGE and looked < LOOKED_AT:
            read = reader.select(Where(scope="items"), limit=PAGE, after=last or None)
            for one in read:
                last, looked = one.id, looked + 1
                if fits(one):
                    shown.append(one)
                if len(shown) == PAGE:
                    break
            if len(read) < PAGE:
                return shown, last if len(shown) == PAGE and read and last != read[-1].id else 0
    return shown, last


def _sources(memory: Kept) -> dict[str, Any]:
    """How many pieces of how many files are searched as a whole; the first of the files."""
    storage = memory.context.spaces.project()
    if storage is None:
        return {"pieces": 0, "files": []}
    with storage.reading() as reader:
        pieces = reader.count(Where(scope="sources"))
        newest = reader.select(Where(scope="sources"), limit=500) if pieces else []
    files = Counter(one.source.file or "" for one in newest)
    return {"pieces": pieces, "files": files.most_common(PAGE)}
