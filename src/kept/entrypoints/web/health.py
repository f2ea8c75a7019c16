"""Health: whether everything is in order, how fast it is, how large, what was refused, and what upkeep does."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.hook.folder import RECENT_DAYS, HookFailure
from kept.entrypoints.http.doors import Asking, Doors, Opened, told
from kept.entrypoints.http.keys import Key
from kept.entrypoints.http.rights import check, is_admin
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.activity import Activity, Counts, within
from kept.entrypoints.web.rows import place_of
from kept.entrypoints.web.saw import failures_shown_to
from kept.entrypoints.web.shell import draw_page, now_of, root_of
from kept.journal import UPKEEP
from kept.memory import Kept
from kept.memory.verbs.upkeep import DOCTOR

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
DAYS = 30
NIGHTS = 14
UNKNOWN, WELL = ("unknown", "Nothing is known to be wrong"), ("well", "All is well")
RECALLS, POINTS = 500, 60
LEVELS_MS = (1, 10, 100, 1_000)
FIGURES_S = 10.0  # how old counts and times may be
CHECKUP_S = 600.0  # how long an examination is shown
LOWEST_MS, LIMIT_MS = 0.5, 200.0  # of the plot; the limit is that of a degraded recall


class Checkups:
    """The last examination of each project, for each actor: a look at the page examines nothing."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[float, Sequence[Any]]] = {}
        self._figures: dict[Any, tuple[float, Any]] = {}

    def remembered(self, memory: Kept, name: str, read: Callable[[], Any]) -> Any:
        """Return figures that are at most FIGURES_S old."""
        place = (place_of(memory), name)
        at, found = self._figures.get(place, (-FIGURES_S, None))
        if time.monotonic() - at >= FIGURES_S:
            at, found = self._figures[place] = (time.monotonic(), read())
        return found

    def examine(self, memory: Kept) -> Sequence[Any]:
        """Examine the stores now."""
        found = memory.store.doctor()
        self._known[place_of(memory)] = (time.monotonic(), found)
        return found

    def known(self, memory: Kept) -> Sequence[Any] | None:
        """Return the last examination; None if there is none, or if it is old."""
        at, found = self._known.get(place_of(memory), (0.0, None))
        return found if found is not None and time.monotonic() - at < CHECKUP_S else None


@router.get("/p/{project}/health")
def health(request: Request, project: str, memory: Opened, key: Asking, doctor: bool = False) -> Response:
    """Whether everything is in order."""
    if doctor:
        check(key, DOCTOR, None)  # as the route of the verb does
    checkups: Checkups = request.app.state.checkups
    now = now_of(memory)
    status = checkups.remembered(memory, "status", memory.status) | {"paused": memory.pauses.status()}
    examined = checkups.examine(memory) if doctor else checkups.known(memory)
    activity: Activity = request.app.state.activity
    days = memory.look().days()
    next_upkeep: datetime = request.app.state.schedule.next_at
    doors: Doors = request.app.state.doors
    return draw_page(
        request,
        "health",
        project,
        memory,
        key,
        verdict=_verdict(status, examined, failures_shown_to(key, request.app.state.keys, now)),
        checks=doors.without_paths(key, _checks(examined or ())),
        is_examined=examined is not None,
        may_examine=is_admin(key),
        spaces=[_space(one, now) for one in doors.without_paths(key, status["spaces"])],
        size=_size(memory, status["spaces"]),
        recalls=checkups.remembered(
            memory, "recalls", lambda: drawn_recalls(memory.look().latencies(limit=RECALLS), now)
        ),
        tallies=[
            ("Refused", "drafts that were not worth keeping", _tally(within(days, "refused:", last=DAYS, now=now))),
            ("Redacted", "secrets, never the value", _tally(within(days, "redacted:", last=DAYS, now=now))),
        ],
        days=DAYS,
        helped=checkups.remembered(memory, "helped", lambda: _helped(memory, key, activity.of(memory), now)),
        upkeep=_upkeep(memory, activity.of(memory), status, next_upkeep, now),
        back=f"{root_of(project)}/health",
    )


def _helped(memory: Kept, key: Key, counts: Counts, now: datetime) -> dict[str, int]:
    """Count the lines that agents were told without asking, the praise and the objections, of the last days."""
    since = now - timedelta(days=DAYS)
    given = [one for one in told(memory, key, None, limit=RECALLS) if one.event and one.at >= since]
    refs = [str(entry["ref"]) for one in given for part in one.sections for entry in part.get("entries", ())]
    recent = Counter[str]()
    for (hour, _, action), number in counts.items():
        if hour >= since:
            recent[action] += number
    return {
        "texts": len(given),
        "lines": len(refs),
        "memories": len(set(refs)),
        "helped": recent["reinforce"] + recent["pin"],
        "wrong": recent["demote"] + recent["reject"],
    }


def _verdict(
    status: Mapping[str, Any], examined: Sequence[Any] | None, failed: Sequence[HookFailure]
) -> dict[str, Any]:
    findings = _findings(examined)
    problems = sum(one.level == "problem" for one in findings)
    failures = any(any(one["upkeep"]["errors"].values()) for one in status["spaces"])
    about = _examination(findings, examined)
    if problems:
        return _judged("bad", words.counted(problems, "problem"), about)
    if status["paused"]:
        return _judged("bad", "Paused: nothing is captured or given", "`kept resume` ends it.")
    if failures:
        return _judged("bad", "Upkeep has failed", "The log of the server says where.")
    if failed:
        told = f"{words.counted(len(failed), 'hook call')} failed in {RECENT_DAYS} days. The last: {failed[-1]}."
        return _judged("know", "1 thing to know", f"{told} {about}")
    return _judged(*(UNKNOWN if examined is None else WELL), about)


def _judged(state: str, title: str, about: str) -> dict[str, Any]:
    return {"state": state, "title": title, "about": about}


def _findings(examined: Sequence[Any] | None) -> list[Any]:
    return [finding for one in examined or () for finding in one.findings]


def _examination(findings: Sequence[Any], examined: Sequence[Any] | None) -> str:
    """Say how much was examined, and with how many notes."""
    if examined is None:
        return "Not examined yet; an examination takes a second or two."
    about = f"{words.counted(len(findings), 'check')} of {words.counted(len(examined), 'store')}"
    notes = sum(one.level not in ("ok", "problem") for one in findings)
    return f"{about}, {words.counted(notes, 'note')}" if notes else about


def _checks(examined: Sequence[Any]) -> list[dict[str, Any]]:
    """Every check, exceptions first."""
    found = [
        {"check": finding.check, "message": finding.message, "hint": finding.hint, "level": finding.level}
        | {"space": "global" if one.space == "global" else ""}
        for one in examined
        for finding in one.findings
    ]
    return sorted(found, key=lambda one: ("problem", "note", "ok").index(one["level"]))


def _space(status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    counts = status["memories"]
    facts = [(name.capitalize(), f"{number:,}") for name, number in counts.items()]
    facts += [("Events", f"{status.get('events', 0):,}"), ("Last change", words.day(status.get("last_change"), now))]
    name = "Global memory" if status["space"] == "global" else "This project"
    place = f"{status.get('storage', '')} {status.get('place', '')}"
    line = f"{counts.get('live', 0):,} memories, {status.get('bytes', 0) / 1e6:.1f} MB, {status.get('storage', '')}"
    return {"name": name, "place": place, "facts": facts, "line": line}


def _size(memory: Kept, spaces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    parts = [
        ("Global memory" if one["space"] == "global" else "This project", int(one.get("bytes", 0))) for one in spaces
    ]
    whole = sum(number for _, number in parts)
    limit = memory.settings.max_size_bytes
    return {
        "megabytes": f"{whole / 1e6:.1f}",
        "limit": f"{limit / 1e6:,.0f} MB",
        "bar": draw.shares(parts, max(whole, limit)),
        "parts": [(name, f"{number / 1e6:.1f} MB") for name, number in parts],
    }


def drawn_recalls(found: Sequence[tuple[datetime, float]], now: datetime) -> dict[str, Any]:
    """Draw how long the last recalls took: in all, and in groups from the oldest to the newest."""
    if not found:
        return {"number": 0}
    times = [took for _, took in found]
    size = max(1, -(-len(found) // POINTS))
    groups = [_group(found[start : start + size], now) for start in range(0, len(found), size)]
    high = max(LIMIT_MS, *times)
    return {
        "number": len(found),
        "p50": _share(times, 0.5),
        "p95": _share(times, 0.95),
        "slowest": max(times),
        "slowest_at": words.day(max(found, key=lambda one: one[1])[0], now),
        "is_single": size == 1,
        "points": {
            "p50": draw.line([one.p50 for one in groups], low=LOWEST_MS, high=high),
            "p95": draw.line([one.p95 for one in groups], low=LOWEST_MS, high=high),
        },
        "ticks": [(f"{level:,} ms", _height(level, high)) for level in LEVELS_MS if level < high],
        "limit": _height(LIMIT_MS, high),
        "limit_ms": LIMIT_MS,
        "since": groups[0].since,
        "table": groups[::-1],
    }


class RecallTimes(NamedTuple):
    """How long some recalls took that followed each other, in milliseconds."""

    since: str
    number: int
    p50: float
    p95: float


def _group(found: Sequence[tuple[datetime, float]], now: datetime) -> RecallTimes:
    times = [took for _, took in found]
    return RecallTimes(words.day(found[0][0], now), len(found), _share(times, 0.5), _share(times, 0.95))


def _share(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _height(value: float, high: float) -> float:
    return float(draw.line([value], low=LOWEST_MS, high=high).partition(",")[2])


def _tally(found: Counter[str]) -> list[tuple[str, int, float]]:
    most = max(found.values(), default=1)
    return [(name.replace("_", " "), number, round(100 * number / most, 1)) for name, number in found.most_common(10)]


def _upkeep(
    memory: Kept, counts: Counts, status: Mapping[str, Any], next_at: datetime, now: datetime
) -> dict[str, Any]:
    nights = [now.astimezone(UTC).date() - timedelta(days=back) for back in range(NIGHTS - 1, -1, -1)]
    work = _work_of_upkeep(counts, since=nights[0])
    ends = [one["upkeep"]["finished_at"] for one in status["spaces"] if one["upkeep"]["finished_at"]]
    return {
        "line": _schedule(memory.settings.prune_schedule),
        "next": words.hour(next_at),
        "next_day": words.heading(next_at, now).replace("Tomorrow", "tomorrow").replace("Today", "today"),
        "finished": words.day(max(ends, default=None), now),
        "nights": [night in work for night in nights],
        "worked": len(work.keys() & set(nights)),
        "done": sum(work.values(), Counter[str]()).most_common(8),
    }


def _schedule(line: str) -> str:
    """Return a daily time as people say it; any other schedule as it is written."""
    minute, hour, *rest = line.split()
    is_daily = rest == ["*", "*", "*"] and minute.isdecimal() and hour.isdecimal()
    return f"every day at {int(hour):02}:{int(minute):02}" if is_daily else line


def _work_of_upkeep(counts: Counts, *, since: date) -> dict[date, Counter[str]]:
    """Count what upkeep did on each day, by action."""
    found: dict[date, Counter[str]] = {}
    for (hour, actor, action), number in counts.items():
        if actor == UPKEEP and hour.date() >= since:
            found.setdefault(hour.date(), Counter())[words.done(action)] += number
    return found
