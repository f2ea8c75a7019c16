"""Memories: a search as you type with reasons, or a list with filters; and one memory with all that belongs to it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from msgspec.structs import replace

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.http.shapes import etag_of
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.rows import ShownRow, find, marked, plain, said_in, scored
from kept.entrypoints.web.shell import PAGE, address, also_searched, draw_page, literal, now_of, root_of
from kept.errors import KeptError
from kept.memory import Kept
from kept.model import KINDS, Event, Hit, Memory
from kept.tables import by_kind

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
Status = Literal["", "candidate", "confirmed", "pinned", "archived", "forgotten"]
TrustName = Literal["", "user", "teammate", "agent", "tool", "unknown"]
STATUSES = ("candidate", "confirmed", "pinned", "archived", "forgotten")
Name = Annotated[str, Query(max_length=200)]
FOUND, MISSED, AMONG = 12, 8, 100
EVENTS, LINKS = 30, 8


@router.get("/p/{project}/memories")
def memories(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    q: Annotated[str, Query(max_length=2_000)] = "",
    kind: Name = "",
    tag: Name = "",
    file: Name = "",
    agent: Name = "",
    status: Status = "",
    trust: TrustName = "",
    ref: Name = "",
    after: Name = "",
) -> Response:
    """What it knows: a search with reasons, or everything, newest first."""
    root = root_of(project)
    filters = {"kind": kind, "tag": tag, "file": file, "status": status, "trust": trust, "agent": agent}
    is_search = bool(q.strip()) and status != "forgotten"
    shown = _searched(memory, q, filters) if is_search else _listed(memory, filters, after, root)
    opened = ref or next((row.ref for row in shown["rows"]), "")
    scores = {row.ref: row for row in (*shown["rows"], *shown["missed"]) if row.steps}
    here = {"q": q, **filters, "after": after}
    for name in ("rows", "missed"):
        shown[name] = [
            replace(row, link=address(root, "memories", **here, ref=row.ref), is_current=row.ref == opened)
            for row in shown[name]
        ]
    return draw_page(
        request,
        "memories",
        project,
        memory,
        key,
        q=q,
        **filters,
        chips=_chips(filters, here, root),
        kinds=KINDS,
        statuses=STATUSES,
        trusts=words.TRUSTS,
        agents=request.app.state.activity.actors(memory),
        all_of_them=address(root, "memories", **here),
        is_chosen=bool(ref),
        detail=_detail(memory, opened, scores.get(opened), now_of(memory)) if opened else None,
        back=address(root, "memories", **here, ref=ref),
        **shown,
    )


def _chips(filters: Mapping[str, str], here: Mapping[str, str], root: str) -> list[tuple[str, str, str]]:
    """List the filters in force, each with the address of the view without it."""
    return [
        (name, value, address(root, "memories", **(dict(here) | {name: "", "after": ""})))
        for name, value in filters.items()
        if value
    ]


def _searched(memory: Kept, q: str, filters: Mapping[str, str]) -> dict[str, Any]:
    """Show the best hits and what just missed. Status, trust and file are looked for among the best hundred."""
    narrow = _narrow_filters(filters)
    found = memory.look().search(
        q,
        limit=AMONG if narrow else FOUND,
        kinds=_given(filters["kind"]),
        tags=_given(filters["tag"]),
        agent=filters["agent"] or None,
        scope="archive" if filters["status"] == "archived" else "memory",
    )
    hits = [hit for hit in found.hits if _fits(hit, filters, narrow)][:FOUND]
    misses = [miss for miss in found.misses if _fits(miss.hit, filters, narrow)][:MISSED]
    axis = draw.axis_of([hit.why for hit in (*hits, *(miss.hit for miss in misses))])
    among = f" among the best {AMONG}" if narrow else ""
    return {
        "rows": [scored(hit, axis) for hit in hits],
        "missed": [scored(miss.hit, axis, because=miss.reason) for miss in misses],
        "heading": f"{len(hits)} found{among}, {len(misses)} just missed",
        "took": f"{found.took_ms:.1f} ms",
        "asked": literal(found.words, q),
        "also": also_searched(found.words, q),
        "next": "",
        "ending": "The best matches. Without words, all memories are listed, newest first.",
    }


def _narrow_filters(filters: Mapping[str, str]) -> list[str]:
    """Name the filters that a search cannot take, so that its hits are checked by them. The archive is a scope."""
    is_scope = filters["status"] == "archived"
    return [name for name in ("trust", "file", "status") if filters[name] and not (is_scope and name == "status")]


def _given(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def _fits(hit: Hit, filters: Mapping[str, str], names: list[str]) -> bool:
    one = hit.memory
    values = {"trust": (one.trust,), "status": (one.status,), "file": one.files}
    return all(filters[name] in values[name] for name in names)


def _listed(memory: Kept, filters: Mapping[str, str], after: str, root: str) -> dict[str, Any]:
    listed = memory.list(
        kinds=_given(filters["kind"]),
        tags=_given(filters["tag"]),
        files=_given(filters["file"]),
        trusts=_given(filters["trust"]),  # type: ignore[arg-type]  # checked at the door
        status=filters["status"] or None,  # type: ignore[arg-type]
        agent=filters["agent"] or None,
        limit=PAGE,
        after=after or None,
    )
    rows = [replace(plain(one, one.ref), shown=marked(one.content, ())) for one in listed]
    more = address(root, "memories", **filters, after=rows[-1].ref) if len(rows) == PAGE else ""
    return {
        "rows": rows,
        "missed": [],
        "heading": "Newest first",
        "took": "",
        "asked": (),
        "also": (),
        "next": more,
        "ending": "These are all." if rows else "",
    }


def _detail(memory: Kept, ref: str, row: ShownRow | None, now: datetime) -> dict[str, Any] | None:
    try:
        one = memory.get(ref, forgotten=True)
    except KeptError:
        return None
    heir = find(memory, one.superseded_by) if one.superseded_by else None
    return {
        "memory": one,
        "row": row,
        "etag": etag_of(one),
        "facts": [(name, value) for name, value in _facts(memory, one, now) if value],
        "source": said_in(memory, one),
        "conflicts": _rivals(memory, one),
        "heir": heir,
        "links": _links(memory, one),
        "events": [_event(event) for event in memory.history(ref)[::-1][:EVENTS]],
    }


def _facts(memory: Kept, one: Memory, now: datetime) -> list[tuple[str, str]]:
    days = by_kind(memory.settings.shelf_life_days, one.kind)
    return [
        ("Said by", words.TRUSTS[one.trust]),
        ("Written", words.day(one.created_at)),
        ("Through", one.source.agent or one.source.origin),
        ("Verified", words.day(one.verified_at)),
        ("Status", f"{one.status}, {one.reason}" if one.reason else one.status),
        ("Held", memory.look().standing(one).until),
        ("Last used", words.day(one.last_used_at)),
        ("Tier", one.tier),
        ("Uses", f"{one.use_count:,}" if one.use_count else ""),
        ("Importance", f"{one.importance:g}"),
        ("Feedback", f"{one.feedback:+d}" if one.feedback else ""),
        ("Task", one.source.task or ""),
        ("Shelf life", f"{days} days unused" if one.status == "candidate" else ""),
        ("From", f"{one.source.file}:{one.source.line or 1}" if one.source.file else ""),
    ]


def _rivals(memory: Kept, one: Memory) -> list[dict[str, Any]]:
    found = []
    for conflict in memory.conflicts():
        if one.uid in (conflict.left, conflict.right):
            other = find(memory, conflict.right if conflict.left == one.uid else conflict.left)
            if other is not None:
                found.append({"ref": conflict.ref, "memory": other})
    return found


def _links(memory: Kept, one: Memory) -> list[dict[str, Any]]:
    """Show the memories that were often recalled together with this one, the strongest first."""
    found = memory.look().links(one.ref, limit=2 * LINKS)
    most = max((strength for _, strength in found), default=1.0)
    return [
        {"memory": other, "share": max(4, round(100 * strength / most))}
        for other, strength in found
        if other.status != "archived"
    ][:LINKS]


def _event(event: Event) -> dict[str, Any]:
    changed = event.changed or {}
    shown = [
        f"{name} {before} → {after}"
        for name, (before, after) in changed.items()
        if name in ("status", "feedback", "tier") and before is not None
    ]
    if "content" in changed and changed["content"][0]:
        shown.append(f"before: “{str(changed['content'][0])[:160]}”")
    bad = event.action in ("demote", "forget", "archive", "supersede", "expire", "evict")
    good = event.action in ("reinforce", "pin", "confirm", "restore")
    return {
        "action": words.done(event.action),
        "who": words.who(event.actor),
        "at": event.at,
        "change": ", ".join(shown),
        "mood": "bad" if bad else "up" if good else "",
    }
