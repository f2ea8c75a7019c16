"""Memories: everything that contains some words, or a list with filters; and one memory with all that belongs to it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from msgspec import Struct
from msgspec.structs import replace

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.http.shapes import etag_of
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.rows import ShownRow, find, found_in, plain, said_in, scored
from kept.entrypoints.web.shelf import Shelf, top_tags
from kept.entrypoints.web.shell import (
    PAGE,
    address,
    draw_detail,
    draw_page,
    is_drawn_again,
    now_of,
    root_of,
    wants_detail,
)
from kept.errors import KeptError
from kept.memory import Kept
from kept.memory.word_search import marks_of
from kept.model import KINDS, Event, Memory, Recalled
from kept.tables import by_kind

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
Status = Literal["", "candidate", "confirmed", "pinned", "archived", "forgotten"]
TrustName = Literal["", "user", "teammate", "agent", "tool", "unknown"]
OrderName = Literal["", "newest", "oldest", "used", "rated"]
STATUSES = ("confirmed", "candidate", "pinned", "archived", "forgotten")
ORDERS = {"newest": "Newest first", "oldest": "Oldest first", "used": "Most used", "rated": "Best rated"}
Name = Annotated[str, Query(max_length=200)]
FILTER_NAMES = {"trust": "author", "as_of": "as of"}
EVENTS, LINKS, TAGS = 30, 8, 12
ASKED = 5  # hits that an agent gets when it asks


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
    session: Name = "",
    status: Status = "",
    trust: TrustName = "",
    order: OrderName = "",
    ref: Name = "",
    after: Name = "",
    new: bool = False,
    as_of: date | None = None,
    told: bool = False,
) -> Response:
    """Show the memories that contain some words, or all of them, with filters and in an order."""
    root, now = root_of(project), now_of(memory)
    filters = {"kind": kind, "tag": tag, "file": file, "status": status, "trust": trust, "agent": agent}
    filters["session"] = session
    here = {"q": q, **filters, "order": order, "after": after, "as_of": as_of.isoformat() if as_of else ""}
    then = _end_of(as_of, now)
    as_of_said = words.date_said(as_of, now)
    answered = _answered(memory, q, filters, then)
    about: dict[str, Any] = {"back": address(root, "memories", **here, ref=ref), "kinds": KINDS}
    about["all_of_them"] = address(root, "memories", **here)
    about["is_past"] = as_of is not None
    if wants_detail(request):
        detail = _detail(memory, ref, answered.scores.get(ref), now)
        return draw_detail(request, "detail.html", project, memory, detail=detail, **about)
    shelf: Shelf = request.app.state.shelves.of(memory, with_uses=order == "used")
    sought = shelf.seek(q, filters, order, memory, then)
    is_asked = bool(q.strip())
    ordered = _best_first(sought.memories, answered) if is_asked and not order else sought.memories
    shown, following = _page(ordered, after)
    rows = [*_rows(shown, q, answered), *answered.others(sought.memories, is_first=not after)]
    opened = ref or _first_ref(rows)
    rows = _linked(rows, lambda one: address(root, "memories", **here, ref=one), current="" if new else opened)
    is_fruitless = is_asked and not sought.memories and not then
    return draw_page(
        request,
        "memories",
        project,
        memory,
        key,
        q=q,
        **filters,
        order=order,
        orders=({"": "Best first"} | ORDERS) if is_asked else ORDERS,
        rows=rows,
        n_containing=len(shown),
        archived=_archived(shelf, q, filters, memory, root) if is_fruitless else None,
        heading=_heading(len(sought.memories), q),
        usual=_usual_status(shown),
        took=f"{answered.took_ms:.1f} ms" if is_asked else "",
        **_pages(root, here, following),
        chips=_chips(filters, here, root, as_of_said),
        counts=sought.counts,
        statuses=STATUSES,
        status_names={name: words.status(name) for name in STATUSES},
        contested=_contested(memory),
        opened=_opened(request, memory, rows, address(root, "memories", **here, ref=ref)),
        trusts=words.TRUSTS,
        tags=top_tags(shown, limit=TAGS),
        is_chosen=bool(ref),
        is_new=new,
        as_of=as_of,
        as_of_said=as_of_said,
        today=now.astimezone().date(),
        days=_days_since(shelf, now),
        told_then=_told_then(memory, then) if told else None,
        detail=_detail(memory, "" if new else opened, answered.scores.get(opened), now),
        **about,
    )


def _contested(memory: Kept) -> set[str]:
    """Return the uids of the memories that contradict each other."""
    return {uid for one in memory.conflicts(resolved=False) for uid in (one.left, one.right)}


def _opened(request: Request, memory: Kept, rows: Sequence[ShownRow], link: str) -> ShownRow | None:
    """Return the row of the memory that an address opens, if the list does not show it; None for one that is gone."""
    ref = "" if is_drawn_again(request) else request.query_params.get("ref", "")
    one = find(memory, ref) if ref and all(row.ref != ref for row in rows) else None
    if one is None or one.is_archived:
        return None
    return replace(plain(one, one.ref), link=link, is_current=True)


def _linked(rows: Sequence[ShownRow], link: Callable[[str], str], *, current: str) -> list[ShownRow]:
    """Return the rows with their addresses; `current` is the ref of the one that is open."""
    return [replace(row, link=link(row.ref), is_current=row.ref == current) for row in rows]


def _pages(root: str, here: Mapping[str, str], following: str) -> dict[str, str]:
    """Return the addresses of the next and of the first page; "" where there is none."""
    return {
        "next": address(root, "memories", **{**here, "after": following}) if following else "",
        "first": address(root, "memories", **{**here, "after": ""}) if here["after"] else "",
    }


def _best_first(found: Sequence[Memory], answered: "_Answer") -> Sequence[Memory]:
    """Put first what an agent would get, in its order, then the near misses."""
    by_ref = {one.ref: one for one in found}
    first = [by_ref[ref] for ref in (*answered.given, *answered.missed) if ref in by_ref]
    return list({one.ref: one for one in (*first, *found)}.values()) if first else found


def _archived(shelf: Shelf, q: str, filters: Mapping[str, str], memory: Kept, root: str) -> tuple[str, str] | None:
    """Say how many archived memories contain the words, with the address of their list; None if none does."""
    wanted = dict(filters, status="archived")
    number = 0 if filters["status"] else len(shelf.seek(q, wanted, "", memory, None).memories)
    said = words.counted(number, "archived memory contains", "archived memories contain")
    return (said, address(root, "memories", q=q, **wanted)) if number else None


def _first_ref(rows: Sequence[ShownRow]) -> str:
    return rows[0].ref if rows else ""


def _days_since(shelf: Shelf, now: datetime) -> int:
    """Return how many days ago the first memory was written."""
    return (now - (shelf.first_written() or now)).days


class _Answer(Struct, frozen=True, kw_only=True):
    """The answer that an agent would get to the same words: rows with scores by ref, and reasons of near misses."""

    given: Mapping[str, ShownRow] = {}
    missed: Mapping[str, ShownRow] = {}
    took_ms: float = 0.0

    @property
    def scores(self) -> Mapping[str, ShownRow]:
        return {**self.missed, **self.given}

    def others(self, containing: Sequence[Memory], *, is_first: bool) -> list[ShownRow]:
        """Return the rows that an agent would get although they do not contain the words; on the first page."""
        if not is_first:
            return []
        shown = {one.uid for one in containing} if self.given else set()
        return [row for row in self.given.values() if row.memory is None or row.memory.uid not in shown]


_NO_ANSWER = _Answer()


def _end_of(day: date | None, now: datetime) -> datetime | None:
    """Return the last moment of a day by the clock on the wall here, but not one that is to come."""
    if day is None:
        return None
    return min(now, datetime.combine(day, time.max, now.astimezone().tzinfo))


def _told_then(memory: Kept, then: datetime | None) -> str | None:
    """Return the text that a session which began at that moment would have been given."""
    return None if then is None else memory.briefing(style="text", as_of=then).text


def _answered(memory: Kept, q: str, filters: Mapping[str, str], then: datetime | None) -> _Answer:
    """Ask as an agent would, or would have at a moment. Filters that a recall does not have leave out hits."""
    if not q.strip() or filters["status"] in ("archived", "forgotten"):
        return _NO_ANSWER
    found = _recalled(memory, q, filters, then)
    hits = [hit for hit in found.hits if _fits(hit.memory, filters)]
    axis = draw.axis_of([hit.why for hit in (*hits, *(miss.hit for miss in found.misses))])
    return _Answer(
        given={hit.memory.ref: scored(hit, axis) for hit in hits},
        missed={miss.hit.memory.ref: scored(miss.hit, axis, because=miss.reason) for miss in found.misses},
        took_ms=found.took_ms,
    )


def _recalled(memory: Kept, q: str, filters: Mapping[str, str], then: datetime | None) -> Recalled:
    kinds, tags, agent = _given(filters["kind"]), _given(filters["tag"]), filters["agent"] or None
    if then is None:
        return memory.look().search(q, limit=ASKED, kinds=kinds, tags=tags, agent=agent)
    return memory.recall(q, limit=ASKED, kinds=kinds, tags=tags, agent=agent, as_of=then)


def _fits(one: Memory, filters: Mapping[str, str]) -> bool:
    values = {"trust": (one.trust,), "status": (one.status,), "file": one.files, "session": (one.source.session,)}
    return all(not filters[name] or filters[name] in found for name, found in values.items())


def _given(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def _page(found: Sequence[Memory], after: str) -> tuple[Sequence[Memory], str]:
    """Return the memories after a ref, and the ref after which the next page begins; "" on the last one."""
    start = next((at + 1 for at, one in enumerate(found) if one.ref == after), 0) if after else 0
    shown = found[start : start + PAGE]
    return shown, shown[-1].ref if start + PAGE < len(found) else ""


def _rows(shown: Sequence[Memory], q: str, answered: _Answer) -> list[ShownRow]:
    """Return the rows of memories that contain the words, each with the score that an agent's question gives it."""
    marks = marks_of(q)
    rows = []
    for one in shown:
        row = answered.given.get(one.ref) or answered.missed.get(one.ref) or plain(one, one.ref)
        rows.append(replace(row, shown=found_in(one.content, marks), is_given=one.ref in answered.given))
    return rows


def _heading(number: int, q: str) -> str:
    if q.strip():
        return f"{words.counted(number, 'memory contains', 'memories contain')} these words"
    return words.counted(number, "memory", "memories")


def _usual_status(shown: Sequence[Memory]) -> str:
    """Return "candidate" where most are: then the others are the exception, and candidates are not marked."""
    candidates = sum(one.status == "candidate" for one in shown)
    return "candidate" if 2 * candidates > len(shown) else ""


def _chips(
    filters: Mapping[str, str], here: Mapping[str, str], root: str, as_of_said: str
) -> list[tuple[str, str, str]]:
    """List the filters in force, each with the address of the view without it."""
    said = {**filters, "as_of": as_of_said, "status": words.status(filters["status"])}
    return [
        (FILTER_NAMES.get(name, name), value, address(root, "memories", **(dict(here) | {name: "", "after": ""})))
        for name, value in said.items()
        if value
    ]


def _detail(memory: Kept, ref: str, row: ShownRow | None, now: datetime) -> dict[str, Any] | None:
    if not ref:
        return None
    try:
        one = memory.get(ref, forgotten=True)
    except KeptError:
        return None
    heir = find(memory, one.superseded_by) if one.superseded_by else None
    return {
        "memory": one,
        "row": row,
        "etag": etag_of(one),
        "standing": memory.look().standing(one),
        "is_guard": memory.look().is_guarded(one),
        "tags": words.tags(one),
        "facts": [(name, value) for name, value in _facts(memory, one) if value],
        "source": said_in(memory, one),
        "conflicts": _rivals(memory, one),
        "heir": heir,
        "links": _links(memory, one),
        "events": [_event(event) for event in memory.look().history(ref, limit=EVENTS)],
    }


def _facts(memory: Kept, one: Memory) -> list[tuple[str, str | datetime | None]]:
    days = by_kind(memory.settings.shelf_life_days, one.kind)
    return [
        ("Author", words.TRUSTS[one.trust]),
        ("Written", one.created_at),
        ("Agent", "" if words.who(_agent_of(one)) == "you" else _agent_of(one)),
        ("Verified", one.verified_at),
        ("Status", f"{words.status(one.status)}, {one.reason}" if one.reason else words.status(one.status)),
        ("Held", memory.look().standing(one).until),
        ("Last used", one.last_used_at),
        ("Lifetime", words.LIFETIMES[one.tier]),
        ("Uses", f"{one.use_count:,}" if one.use_count else ""),
        ("Importance", f"{one.importance:g}"),
        ("Feedback", f"{one.feedback:+d}" if one.feedback else ""),
        ("Task", one.source.task or ""),
        ("Expires", f"after {days} days unused" if one.status == "candidate" else ""),
        ("From", f"{one.source.file}:{one.source.line or 1}" if one.source.file else ""),
    ]


def _agent_of(one: Memory) -> str:
    return one.source.agent or one.source.origin


def _rivals(memory: Kept, one: Memory) -> list[dict[str, Any]]:
    return [{"ref": conflict.ref, "memory": other} for conflict, other in memory.look().rivals(one)]


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
        f"{name} {words.status(str(before))} → {words.status(str(after))}"
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
