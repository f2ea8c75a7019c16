"""Timeline: a year of writes, recalls and reinforcements; two weeks by agent; the journal."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.activity import Counts, by_local_day
from kept.entrypoints.web.rows import find
from kept.entrypoints.web.shell import LAST, PAGE, address, draw_page, now_of, root_of
from kept.memory import Kept
from kept.model import Event

if TYPE_CHECKING:
    from kept.memory.look import SessionOverview

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
WRITES = frozenset(("remember", "revise", "strengthen", "promote", "extract"))
HELPED = frozenset(("reinforce", "pin"))
RAISED = HELPED | {"remember"}
GONE = frozenset(("forget", "archive", "supersede", "expire", "evict", "demote"))
DRAWN = {"write": WRITES, "reinf": HELPED, "forg": GONE}
MARKS = ("sess", "write", "reinf", "forg")
YEAR, SPAN, LANES = 364, 14, 8


@router.get("/p/{project}/timeline")
def timeline(
    request: Request, project: str, memory: Opened, key: Asking, before: Annotated[int, Query(ge=0, le=LAST)] = 0
) -> Response:
    """What changed, by day, by agent and one by one."""
    now, root = now_of(memory), root_of(project)
    counts = request.app.state.activity.of(memory)
    today = now.astimezone().date()
    recalled = Counter({day: numbers.get("recalled", 0) for day, numbers in memory.look().days().items()})
    maps = [
        _map("writes", "Writes", by_local_day(counts, WRITES), today),
        _map("recalls", "Recalls", recalled, today),
        _map("feedback", "Reinforcements", by_local_day(counts, HELPED), today),
    ]
    events, older, newest = _events(memory, before)
    return draw_page(
        request,
        "timeline",
        project,
        memory,
        key,
        maps=maps,
        today=today,
        table=_weeks(maps, today),
        lanes=_lanes(counts, memory, now),
        feed=_feed(memory, events, now),
        first=events[-1].seq if events else 0,
        last=events[0].seq if events else 0,
        older=address(root, "timeline", before=older),
        has_older=older > 0,
        newest=newest,
        back=address(root, "timeline", before=before),
    )


def _map(name: str, label: str, days: Counter[date], today: date) -> dict[str, Any]:
    first = today - timedelta(days=YEAR)
    shown = Counter({day: number for day, number in days.items() if first <= day <= today and number})
    busiest = max(shown, key=lambda day: shown[day], default=None)
    return {
        "name": name,
        "label": label,
        "days": shown,
        "calendar": draw.calendar(shown, first, today),
        "total": shown.total(),
        "busiest": "" if busiest is None else f"{busiest.day} {busiest:%b}",
        "most": shown[busiest] if busiest else 0,
    }


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
        for (hour, actor, action), number in sorted(counts.items()):
            if (mark := _mark_of(action)) and hour >= self.begin:
                about = f"{words.done(action)} {number}, {words.day(hour)}"
                x = self._place(hour + timedelta(minutes=30))
                self._add(actor, hour, number, {"mark": mark, "x": x, "about": about})

    def add_sessions(self, sessions: "Iterable[SessionOverview]") -> None:
        for one in sessions:
            session, start = one.session, one.session.started_at
            x = self._place(start)
            mark = {
                "mark": "sess",
                "x": x,
                "width": max(0.4, round(self._place(one.ended_at) - x, 2)),
                "about": f"session {session.name}, {words.day(start)}",
                "name": session.name,
            }
            self._add(session.agent or "agent", start, 1, mark)

    def drawn(self) -> dict[str, Any]:
        busiest = sorted(self._sums, key=lambda actor: -self._sums[actor].total())[:LANES]
        return {
            "days": [self._day(number) for number in range(SPAN)],
            "width": round(100 / SPAN, 2),
            "rows": [self._row(actor) for actor in busiest],
            "hidden": max(0, len(self._sums) - LANES),
            "now": self._place(self.now),
            "table": [
                {"day": day, "who": words.who(actor), **{name: numbers[name] for name in MARKS}}
                for (day, actor), numbers in sorted(self._daily.items(), reverse=True)
            ],
            "title": f"{self.begin.day} {self.begin:%b} to {self.today.day} {self.today:%b}, by agent",
        }

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


def _lanes(counts: Counts, memory: Kept, now: datetime) -> dict[str, Any]:
    lanes = Lanes(now)
    lanes.add_events(counts)
    lanes.add_sessions(memory.look().overviews([one for one in memory.sessions() if one.started_at >= lanes.begin]))
    return lanes.drawn()


def _mark_of(action: str) -> str:
    """Return the mark of an action in a lane; "" for an action that is not drawn."""
    return next((mark for mark, actions in DRAWN.items() if action in actions), "")


def _about(sums: Counter[str]) -> str:
    said = [words.counted(sums["sess"], "session")] if sums["sess"] else []
    said += [f"{sums[mark]:,} {word}" for mark, word in (("write", "written"), ("reinf", "helped")) if sums[mark]]
    return ", ".join(said) or f"{sums['forg']:,} removed"


def _events(memory: Kept, before: int) -> tuple[list[Event], int, bool]:
    """Return a page of the journal, newest first; the number at which the older ones end; True for the first page."""
    if before:  # numbers have no gaps
        found = memory.look().events(after=max(0, before - 1 - PAGE), limit=min(PAGE, before - 1))[::-1]
    else:
        found = memory.look().events(newest_first=True, limit=PAGE)
    return found, found[-1].seq if found and found[-1].seq > 1 else 0, not before


def _feed(memory: Kept, events: list[Event], now: datetime) -> list[tuple[str, list[dict[str, Any]]]]:
    days: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        days.setdefault(words.heading(event.at, now), []).append(_line(memory, event))
    return list(days.items())


def _line(memory: Kept, event: Event) -> dict[str, Any]:
    noun, _, name = event.subject.partition(":")
    found = find(memory, event.subject) if not name and "-" in event.subject else None
    about = _change(event, "" if found is None else words.cut(found.content, 140))
    return {
        "who": words.who(event.actor),
        "action": words.done(event.action),
        "at": event.at,
        "ref": "" if found is None else found.ref,
        "session": name if noun == "session" else "",
        "about": about or (name if noun in ("task", "conflict", "alias") else ""),
        "mood": "up" if event.action in RAISED else "bad" if event.action in GONE else "",
    }


def _change(event: Event, content: str) -> str:
    """Say how an event changed the text or the feedback of a memory; otherwise return its text."""
    changed = event.changed or {}
    before, after = changed.get("content", (None, None))
    if before and after:
        return f"“{words.cut(str(before), 80)}” → “{words.cut(str(after), 80)}”"
    before, after = changed.get("feedback", (None, None))
    return content if before is None else f"feedback {before} → {after}, {content}"
