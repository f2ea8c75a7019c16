"""Timeline: a year of writes, recalls and reinforcements; two weeks by agent; the journal."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.activity import Activity, Counted, Counts, Overviews
from kept.entrypoints.web.journal_lines import CHANGES, Journal, JournalFilter, read
from kept.entrypoints.web.shell import LAST, address, draw_page, draw_part, now_of, root_of
from kept.memory import Kept

if TYPE_CHECKING:
    from kept.memory.look import SessionOverview

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
WRITES = frozenset(("remember", "revise", "strengthen", "promote", "extract"))
HELPED = frozenset(("reinforce", "pin"))
GONE = frozenset(("forget", "archive", "supersede", "expire", "evict", "demote"))
DRAWN = {"write": WRITES, "reinf": HELPED, "forg": GONE}
MARKS = ("sess", "write", "reinf", "forg")
WhatName = Literal["", "written", "helped", "removed", "decided", "sessions"]
MOST_SESSIONS = 100  # that the lanes show
YEAR, SPAN, LANES = 364, 14, 8


@router.get("/p/{project}/timeline")
def timeline(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    before: Annotated[int, Query(ge=0, le=LAST)] = 0,
    who: Annotated[str, Query(max_length=200)] = "",
    what: WhatName = "",
    day: date | None = None,
) -> Response:
    """Show all changes, by day, by agent and one by one."""
    now, root = now_of(memory), root_of(project)
    activity: Activity = request.app.state.activity
    counted = activity.counted(memory)
    today = now.astimezone().date()
    wanted = JournalFilter(who=who, what=what, day=day)
    journal = read(memory, request.app.state.shelves.of(memory), activity, wanted, before)
    filters = {"who": who, "what": what, "day": "" if day is None else day.isoformat()}  # of the address
    is_whole = not before and not any(filters.values())
    maps = _maps(memory, counted, today, root) if is_whole else []
    return draw_page(
        request,
        "timeline",
        project,
        memory,
        key,
        maps=maps,
        today=today,
        table=_weeks(maps, today),
        lanes=_lanes(request, counted.by_hour, memory, now, root) if is_whole else "",
        feed=_feed(journal, now),
        who=who,
        what=what,
        day_chosen=filters["day"],
        whats=tuple(CHANGES),
        actors=activity.actors(memory),
        older=address(root, "timeline", **filters, before=journal.older),
        has_older=journal.older > 0,
        newest=is_whole,
        is_filtered=any(filters.values()),
        back=address(root, "timeline", **filters, before=before),
    )


def _maps(memory: Kept, counted: Counted, today: date, root: str) -> list[dict[str, Any]]:
    recalled = Counter({day: numbers.get("recalled", 0) for day, numbers in memory.look().days().items()})
    return [
        _map("writes", "Writes", counted.days_of(WRITES), today, root),
        _map("recalls", "Recalls", recalled, today, root),
        _map("feedback", "Reinforcements", counted.days_of(HELPED), today, root),
    ]


def _map(name: str, label: str, days: Counter[date], today: date, root: str) -> dict[str, Any]:
    first = today - timedelta(days=YEAR)
    shown = Counter({day: number for day, number in days.items() if first <= day <= today and number})
    busiest = max(shown, key=lambda day: shown[day], default=None)
    return {
        "name": name,
        "label": label,
        "days": shown,
        "drawn": _drawn(tuple(sorted(shown.items())), first, today, root),
        "total": shown.total(),
        "busiest": "" if busiest is None else f"{busiest.day} {busiest:%b}",
        "most": shown[busiest] if busiest else 0,
    }


@lru_cache(maxsize=64)  # most looks at a timeline are at days that have not changed
def _drawn(days: tuple[tuple[date, int], ...], first: date, today: date, root: str) -> Markup:
    """Draw a year, each day with a count as a link."""
    return draw_part("year.html", calendar=draw.calendar(dict(days), first, today), today=today, root=root)


def _weeks(maps: list[dict[str, Any]], today: date) -> list[dict[str, Any]]:
    """The same as a table: a row for each week in which something happened."""
    sums: defaultdict[date, list[int]] = defaultdict(lambda: [0] * len(maps))
    for place, one in enumerate(maps):
        for day, number in one["days"].items():
            sums[day - timedelta(days=day.weekday())][place] += number
    return [{"week": week, "numbers": numbers} for week, numbers in sorted(sums.items(), reverse=True)]


class Lanes:
    """The last two weeks, a lane for each who did something. Places are in percent of the width."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.today = now.astimezone().date()
        self.begin = datetime.combine(self.today - timedelta(days=SPAN - 1), time(), now.astimezone().tzinfo)
        self._marks: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._daily: defaultdict[tuple[date, str], Counter[str]] = defaultdict(Counter)

    def add_events(self, counts: Counts) -> None:
        for (hour, actor, action), number in sorted(one for one in counts.items() if one[0][0] >= self.begin):
            if mark := _mark_of(action):
                about = f"{words.done(action)} {number}, {words.day(hour, self.now)}"
                x = self._place(hour + timedelta(minutes=30))
                day = hour.date().isoformat()
                self._add(actor, hour, number, {"mark": mark, "x": x, "about": about, "day": day, "actor": actor})

    def add_sessions(self, sessions: "Iterable[SessionOverview]") -> None:
        for one in sessions:
            session, start = one.session, one.session.started_at
            x = self._place(start)
            mark = {
                "mark": "sess",
                "x": x,
                "width": max(0.4, round(self._place(one.ended_at) - x, 2)),
                "about": f"session {session.name}, {words.day(start, self.now)}",
                "name": session.name,
            }
            self._add(session.agent or "agent", start, 1, mark)

    def drawn(self) -> dict[str, Any]:
        busiest = sorted(self._sums, key=lambda actor: -self._sums[actor].total())[:LANES]
        return {
            "days": [self._day(number) for number in range(SPAN)],
            "width": round(100 / SPAN, 2),
            "rows": [self._row(actor) for actor in busiest] if self._says_something() else [],
            "hidden": max(0, len(self._sums) - LANES),
            "now": round(self._place(self.now), 1),  # half an hour: until then the same drawing serves
            "table": [
                {"day": day, "who": words.who(actor), **{name: numbers[name] for name in MARKS}}
                for (day, actor), numbers in sorted(self._daily.items(), reverse=True)
            ],
            "title": f"{self.begin.day} {self.begin:%b} to {self.today.day} {self.today:%b}, by agent",
        }

    def _says_something(self) -> bool:
        """Return True if several took part, or sessions were held: one who only writes is in the year above."""
        return len(self._sums) > 1 or any(sums["sess"] for sums in self._sums.values())

    def _add(self, actor: str, at: datetime, number: int, mark: dict[str, Any]) -> None:
        self._marks[actor].append(mark)
        self._sums[actor][mark["mark"]] += number
        self._daily[at.astimezone().date(), actor][mark["mark"]] += number

    def _place(self, at: datetime) -> float:
        return round(100 * (at - self.begin).total_seconds() / (SPAN * 86_400), 2)

    def _day(self, number: int) -> dict[str, Any]:
        day = self.today - timedelta(days=SPAN - 1 - number)
        x, start = round(100 * (number + 0.5) / SPAN, 2), round(100 * number / SPAN, 2)
        return {"label": str(day.day), "x": x, "start": start, "is_weekend": day.weekday() > 4}

    def _row(self, actor: str) -> dict[str, Any]:
        return {
            "who": words.who(actor),
            "is_person": actor == "user",
            "about": _about(self._sums[actor]),
            "marks": self._marks[actor],
        }


def _lanes(request: Request, counts: Counts, memory: Kept, now: datetime, root: str) -> Markup:
    lanes = Lanes(now)
    lanes.add_events(counts)
    overviews: Overviews = request.app.state.overviews
    recent = memory.sessions(limit=MOST_SESSIONS, newest_first=True)
    lanes.add_sessions(overviews.of(memory, [one for one in recent if one.started_at >= lanes.begin]))
    return _drawn_lanes(msgspec.json.encode(lanes.drawn()), root)


@lru_cache(maxsize=16)
def _drawn_lanes(lanes: bytes, root: str) -> Markup:
    """Draw two weeks by agent."""
    return draw_part("lanes.html", lanes=msgspec.json.decode(lanes), root=root)


def _mark_of(action: str) -> str:
    """Return the mark of an action in a lane; "" for an action that is not drawn."""
    return next((mark for mark, actions in DRAWN.items() if action in actions), "")


def _about(sums: Counter[str]) -> str:
    said = [words.counted(sums["sess"], "session")] if sums["sess"] else []
    said += [f"{sums[mark]:,} {word}" for mark, word in (("write", "written"), ("reinf", "helped")) if sums[mark]]
    return ", ".join(said) or f"{sums['forg']:,} removed"


def _feed(journal: Journal, now: datetime) -> list[tuple[str, list[dict[str, Any]]]]:
    days: dict[str, list[dict[str, Any]]] = {}
    for line in journal.lines:
        days.setdefault(words.heading(line["at"], now), []).append(line)
    return list(days.items())
