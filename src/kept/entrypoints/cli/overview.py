"""`kept status`: which project this is, how much is stored, and the open questions."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.sessions import PLACES, unread_sessions
from kept.entrypoints.cli.wording import (
    ago,
    counted,
    counted_kinds,
    local,
    memories,
    nothing_yet,
    reader_lines,
    size,
    vector_line,
)
from kept.entrypoints.hook.folder import RECENT_DAYS, HookFolder, told_again, told_misses
from kept.entrypoints.install.agents import AGENTS
from kept.memory import Kept
from kept.memory.opening import Project
from kept.model import GLOBAL


@command
def status_command(invocation: Invocation) -> None:
    projects = invocation.projects()
    located = projects.locate(invocation.project)
    with invocation.open() as memory:
        status, person = memory.status(), memory.look().person
        readers = memory.files.note_readers(os.environ)
        outdated = outdated_files(memory)
        unread = _unread(memory, bool(located.refusal))
    now = invocation.clock()
    project = located.project
    lines = _new_project_lines(invocation) if project is None else _project_lines(project, person)
    lines += _pause_lines(invocation, status["paused"])
    lines += [OFF_LINES[name] for name in status["switched_off"]]
    lines += [f"The block in {path} is out of date. `kept files agents` writes it." for path in outdated]
    for space in status["spaces"]:
        lines += _lines_of_space(space, status["last_session"], now)
    lines += _unread_lines(unread)
    lines += reader_lines(readers, now)
    hooks, since = HookFolder(projects.home.root), now - timedelta(days=RECENT_DAYS)
    misses, stand_ins = hooks.misses(since), hooks.stand_ins(since)
    lines += told_misses(misses, f"in the last {RECENT_DAYS} days")
    lines += told_again(stand_ins, f"in the last {RECENT_DAYS} days")
    lines.append(Dim(f"Home {projects.home.root}; acting as {invocation.role}."))
    about = None if project is None else {"id": project.id, "name": project.name, "root": project.root}
    document = {
        "home": str(projects.home.root),
        "project": about,
        "misses": [one._asdict() for one in misses],
        "told_again": stand_ins,
        "notes": msgspec.to_builtins(readers),
        "outdated": outdated,
        "unread": unread,
        **status,
    }
    invocation.answer(document, lines)


def _unread(memory: Kept, is_refused: bool) -> dict[str, int]:
    """Count sessions that were not read; none where there can be no project."""
    return {} if is_refused else unread_sessions(memory, list(PLACES))


def _unread_lines(unread: dict[str, int]) -> list[Line]:
    """Return a line for each program that has sessions of this project which were not read."""
    return [
        f"{counted(number, 'session')} of {AGENTS[name].title if name in AGENTS else name} in this project "
        f"{'was' if number == 1 else 'were'} not read yet. `kept import {name}` imports them."
        for name, number in unread.items()
    ]


def outdated_files(memory: Kept) -> list[str]:
    """Return the paths of files whose block does not show the memories that it should."""
    return [one.path for one in memory.files.status() if one.is_outdated]


OFF_LINES = {
    "auto_memory": "The setting auto_memory is off: nothing is taken from conversations.",
    "auto_briefing": "The setting auto_briefing is off: nothing is injected automatically.",
}


def _lines_of_space(space: dict[str, Any], last_session: dict[str, Any] | None, now: datetime) -> list[Line]:
    """Return the lines of global memory, or of the project with its last session and its refusals."""
    if space["space"] == GLOBAL:
        return [Strong("Global memory, for all projects"), *_space_lines(space, now)]
    session: list[Line] = [] if last_session is None else [("    ", _session_line(last_session, now))]
    return [*_space_lines(space, now), *session, *_refused_lines(space["refused"])]


def _new_project_lines(invocation: Invocation) -> list[Line]:
    """Name the project that the first memory would begin."""
    located = invocation.projects().locate(invocation.project)
    root = located.place.directory if located.place is not None else None
    name = located.name or (root.name if root is not None else "")
    named: list[Line] = [(Strong(f"Project {name}"), Dim(f"  new  {root or 'no directory'}"))]
    return [*(named if name and not located.refusal else []), nothing_yet(invocation)]


def _project_lines(project: Project, person: str | None) -> list[Line]:
    lines: list[Line] = [(Strong(f"Project {project.name}"), Dim(f"  {project.id}  {project.root or 'no directory'}"))]
    if project.team is not None:
        lines.append(f"    shared as {project.team.name} in {project.team.database}; you are {person}")
    return lines


def _pause_lines(invocation: Invocation, pauses: Sequence[dict[str, Any]]) -> list[Line]:
    lines: list[Line] = []
    for pause in pauses:
        session = pause["session"]
        what = "The project" if session is None else f"Session {session}"
        end = f"kept resume{'' if session is None else f' --session {session}'}"
        since = f"since {local(pause['since'], invocation.zone)}, until `{end}`"
        lines.append(f"{what} is paused {since}: nothing is captured or injected.")
    return lines


def _session_line(session: dict[str, Any], now: datetime) -> str:
    """Write how much was kept of the last session."""
    by = f" of {session['agent']}" if session["agent"] else ""
    kept = counted_kinds(session["kept"]) or "nothing"
    return f"Last session{by}, begun {ago(session['started_at'], now)}: {kept} kept."


def _refused_lines(refused: dict[str, int]) -> list[Line]:
    """Return a line for each reason for which statements were refused in this project."""
    return [
        ("    ", f"{counted(number, 'statement')} refused so far: {reason.replace('_', ' ')}.")
        for reason, number in refused.items()
    ]


def _space_lines(space: dict[str, Any], now: datetime) -> list[Line]:
    texts = [*_count_texts(space, now), vector_line(space["vectors"])]
    backup = f"last daily backup {space['daily_backup']}" if space.get("daily_backup") else ""
    erasure = "An erasure is pending: another program still reads old pages of the file."
    ends = [erasure if space.get("erase") == "pending" else "", space.get("warning") or ""]
    return [
        *_indented(texts),
        Dim(f"    {space['place']}, {size(space['bytes'])}"),
        *_indented([backup]),
        *_upkeep_lines(space["upkeep"], now),
        *_indented(ends),
    ]


def _indented(texts: Sequence[str]) -> list[Line]:
    return [("    ", line) for line in texts if line]


def _count_texts(space: dict[str, Any], now: datetime) -> list[str]:
    counts, recalls = space["memories"], space["recalls"]
    parts = [
        memories(counts["live"]),
        f"{counts['pinned']:,} pinned" if counts["pinned"] else "",
        counted(counts["candidates"], "candidate") if counts["candidates"] else "",
        *(f"{counts[name]:,} {name}" for name in ("archived", "forgotten") if counts[name]),
    ]
    texts = [", ".join(filter(None, parts))]
    if counts["proposed"]:
        proposed = memories(counts["proposed"])
        texts.append(f"{proposed} proposed for all projects. `kept review --reason global` asks you.")
    if space["last_change"] is not None:
        texts.append(f"{counted(space['events'], 'event')}, the latest {ago(space['last_change'], now)}")
    if (judged := space["judged"])["sessions"]:
        texts.append(f"judged {counted(judged['sessions'], 'session')}, {counted(judged['tokens'], 'token')}")
    if recalls["n"]:
        speed = f"half within {recalls['p50_ms']:.1f} ms, 95 % within {recalls['p95_ms']:.1f} ms"
        slow = "; slow, so fewer candidates are scored" if recalls["is_degraded"] else ""
        texts.append(f"{counted(recalls['n'], 'recall')}: {speed}{slow}")
    return texts


def _upkeep_lines(upkeep: dict[str, Any], now: datetime) -> list[Line]:
    lines: list[Line] = []
    if upkeep["finished_at"] is not None:
        under_way = ", and is running again" if upkeep["is_under_way"] else ""
        lines.append(("    ", f"upkeep last finished {ago(upkeep['finished_at'], now)}{under_way}"))
    if upkeep["is_crowded"]:
        lines.append(("    ", "The store is over its limit. `kept upkeep` archives the least important memories."))
    if upkeep["failed_at"] is not None:
        errors = ", ".join(f"{name} ({counted(n, 'time')})" for name, n in upkeep["errors"].items())
        lines.append(
            ("    ", f"Upkeep failed {ago(upkeep['failed_at'], now)}: {errors}. Run `kept doctor` to find the cause.")
        )
    return lines
