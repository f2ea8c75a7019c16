"""Timeline: a year of writes, recalls and reinforcements; two weeks by agent; the journal."""

from collections import Counter, defaultdict
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.activity import Counts, by_local_day, noted_days
from kept.entrypoints.web.rows import find
from kept.entrypoints.web.shell import LAST, PAGE, address, draw_page, now_of, root_of
from kept.memory import Kept
from kept.model import Event, Session

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
WRITES = frozenset(("remember", "revise", "strengthen", "promote", "extract"))
HELPED = frozenset(("reinforce", "pin"))
GONE = frozenset(("forget", "archive", "supersede", "expire", "evict", "demote"))
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
    recalled = Counter({day: numbers.get("recalled", 0) for day, numbers in noted_days(memory).items()})
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


def _lanes(counts: Counts, memory: Kept, now: datetime) -> dict[str, Any]:
    """The last two weeks, a lane for each who did something; `x` is in percent."""
    today = now.astimezone().date()
    begin = datetime.combine(today - timedelta(days=SPAN - 1), time(), now.astimezone().tzinfo)

    def place(at: datetime) -> float:
        return round(100 * (at - begin).total_seconds() / (SPAN * 86_400), 2)

    marks: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    daily: defaultdict[tuple[date, str], Counter[str]] = defaultdict(Counter)
    for (hour, actor, action), number in sorted(counts.items()):
        mark = "write" if action in WRITES else "reinf" if action in HELPED else "forg" if action in GONE else ""
        if mark and hour >= begin:
            about = f"{words.done(action)} {number}, {words.day(hour)}"
            marks[actor].append({"mark": mark, "x": place(hour + timedelta(minutes=30)), "about": about})
            sums[actor][mark] += number
            daily[hour.astimezone().date(), actor][mark] += number
    for one, start, end in _sessions_since(memory, begin):
        actor = one.agent or "agent"
        width = max(0.4, round(place(end) - place(start), 2))
        about = f"session {one.name}, {words.day(start)}"
        marks[actor].append({"mark": "sess", "x": place(start), "width": width, "about": about, "name": one.name})
        sums[actor]["sess"] += 1
        daily[start.astimezone().date(), actor]["sess"] += 1
    busiest = sorted(sums, key=lambda actor: -sums[actor].total())[:LANES]
    return {
        "days": [
            {"label": str(day.day), "x": round(100 * (n + 0.5) / SPAN, 2), "start": round(100 * n / SPAN, 2)}
            | {"is_weekend": day.weekday() > 4}
            for n, day in enumerate(today - timedelta(days=SPAN - 1 - n) for n in range(SPAN))
        ],
        "width": round(100 / SPAN, 2),
        "rows": [
            {"who": words.who(actor), "is_person": actor == "user", "about": _about(sums[actor]), "marks": marks[actor]}
            for actor in busiest
        ],
        "hidden": max(0, len(sums) - LANES),
        "now": place(now),
        "table": [
            {
                "day": day,
                "who": words.who(actor),
                **{name: numbers[name] for name in MARKS},
            }
            for (day, actor), numbers in sorted(daily.items(), reverse=True)
        ],
        "title": f"{begin.day} {begin:%b} to {today.day} {today:%b}, by agent",
    }


def _sessions_since(memory: Kept, begin: datetime) -> list[tuple[Session, datetime, datetime]]:
    """The sessions since then, each with its start and its last message: an import finishes a session long after it."""
    storage = memory.context.spaces.project()
    if storage is None:
        return []
    found = []
    with storage.reading() as reader:
        for one in memory.sessions():
            if one.started_at >= begin:
                last = reader.messages(one.name, after=max(0, reader.last_number(one.name) - 1), limit=1)
                end = last[0].at if last and last[0].at else one.finished_at or one.started_at
                found.append((one, one.started_at, max(one.started_at, end)))
    return found


def _about(sums: Counter[str]) -> str:
    said = [words.counted(sums["sess"], "session")] if sums["sess"] else []
    said += [f"{sums[mark]:,} {word}" for mark, word in (("write", "written"), ("reinf", "helped")) if sums[mark]]
    return ", ".join(said) or f"{sums['forg']:,} removed"


def _events(memory: Kept, before: int) -> tuple[list[Event], int, bool]:
    """A page of the journal, newest first; the number at which the older ones end; whether it is the first page."""
    storage = memory.context.spaces.project()
    if storage is None:
        return [], 0, True
    with storage.reading() as reader:
        if before:  # numbers have no gaps
            found = reader.events(after=max(0, before - 1 - PAGE), limit=min(PAGE, before - 1))[::-1]
        else:
            found = reader.events(newest_first=True, limit=PAGE)
    return found, found[-1].seq if found and found[-1].seq > 1 else 0, not before


def _feed(memory: Kept, events: list[Event], now: datetime) -> list[tuple[str, list[dict[str, Any]]]]:
    days: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        days.setdefault(words.heading(event.at, now), []).append(_line(memory, event))
    return list(days.items())


def _line(memory: Kept, event: Event) -> dict[str, Any]:
    noun, _, name = event.subject.partition(":")
    found = find(memory, event.subject) if not name and "-" in event.subject else None
    changed = event.changed or {}
    before, after = changed.get("content", (None, None))
    about = "" if found is None else words.cut(found.content, 140)
    if before and after:
        about = f"“{words.cut(str(before), 80)}” → “{words.cut(str(after), 80)}”"
    elif "feedback" in changed and changed["feedback"][0] is not None:
        about = f"feedback {changed['feedback'][0]} → {changed['feedback'][1]}, {about}"
    mood = "up" if event.action in HELPED | {"remember"} else "bad" if event.action in GONE else ""
    return {
        "who": words.who(event.actor),
        "action": words.done(event.action),
        "at": event.at,
        "ref": "" if found is None else found.ref,
        "session": name if noun == "session" else "",
        "about": about or (name if noun in ("task", "conflict", "alias") else ""),
        "mood": mood,
    }
