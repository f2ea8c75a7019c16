"""`kept list`, `history`, `status`: reading changes nothing."""

import os
import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from kept.entrypoints.cli.derived import chosen_tier, global_option, options_of, request_of, words_of
from kept.entrypoints.cli.frame import command, session_named
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import (
    ago,
    as_document,
    counted,
    counted_kinds,
    event_document,
    event_name,
    local,
    meant_kinds,
    memories,
    memory_lines,
    name_of,
    nothing_yet,
    reader_lines,
    size,
    vector_line,
    what_changed,
)
from kept.entrypoints.hook.folder import RECENT_DAYS, HookFolder, told_misses
from kept.errors import InvalidInput, NotFound
from kept.journal import noun_of
from kept.memory import Kept
from kept.memory.opening import Project
from kept.memory.verbs.fields import MOST_LISTED
from kept.memory.verbs.read import HISTORY, LIST, History, ListMemories
from kept.model import GLOBAL, CallGuard, Event, Memory, canonical_kind


@command
@options_of(LIST)
def list_command(invocation: Invocation, **given: Any) -> None:
    """The memories of the project come first, then the global ones. Archived and forgotten memories are listed only
    with --status.
    """
    asked = request_of(LIST, given)
    with invocation.open() as memory:
        if asked.session is not None:
            asked = replace(asked, session=session_named(invocation, memory, asked.session, must_exist=False))
        one_more = min(asked.limit + 1, MOST_LISTED)
        kinds = tuple(map(canonical_kind, asked.kinds))
        found = memory.perform(LIST, replace(asked, kinds=kinds, limit=one_more))
    page = found[: asked.limit]
    last = page[-1].ref if page and len(found) > len(page) else None
    now = invocation.clock()
    lines = [line for one in page for line in memory_lines(one, now)]
    if last is not None:
        lines.append(f"More: {_command_line(invocation, 'list', *words_of(LIST, replace(asked, after=last)))}")
    elif not page:
        is_filtered = asked != ListMemories(limit=asked.limit)
        lines.append(f"No memory matches.{meant_kinds(asked.kinds)}" if is_filtered else nothing_yet(invocation))
    invocation.answer({"memories": [as_document(one) for one in page], "next": last}, lines, is_long=True)


def _command_line(invocation: Invocation, *words: str) -> str:
    """A command line that can be copied as it is, for the same home and project."""
    role = None if invocation.role == "project" else invocation.role
    options = (("--home", invocation.home), ("--project", invocation.project), ("--as", role))
    given = [word for option, value in options if value is not None for word in (option, value)]
    return shlex.join(["kept", *words, *given])


@command
@options_of(HISTORY)
@global_option("Global memory, instead of the project's; the same as --tier global.")
def history_command(invocation: Invocation, *, is_global: bool, **given: Any) -> None:
    """The newest event comes last. `kept undo EVENT` undoes one, with everything that was changed together with it."""
    asked = request_of(HISTORY, chosen_tier(given, is_global=is_global))
    with invocation.open() as memory:
        is_global = _is_global(memory, asked)
        events = memory.perform(HISTORY, asked)[-asked.limit :]
        refs = {subject: _ref_of(memory, event) for subject, event in {one.subject: one for one in events}.items()}
        heirs = _heirs(memory, events)
        ended = _ended_line(memory, asked.ref)
    document = [
        {"event": event_name(event, is_global=is_global), "ref": refs[event.subject], **event_document(event)}
        for event in events
    ]
    lines: list[Line] = [
        (
            Strong(f"{event_name(event, is_global=is_global):>5}"),
            f"  {local(event.at, invocation.zone)}  {event.actor} {event.action} ",
            f"[id:{refs[event.subject]}]" if refs[event.subject] else event.subject,
            Dim(f"  {what_changed(event, events, is_global=is_global, heirs=heirs)}"),
        )
        for event in events
    ]
    lines += ended
    if not events:
        where = "global memory" if is_global else "this project"
        lines.append(f'Nothing has been changed in {where} yet. `kept remember "…"` stores the first memory.')
    invocation.answer({"events": document}, lines, is_long=True)


def heir_of(memory: Kept, uid: str | None) -> str:
    """The ref of the memory that replaced another, or ""."""
    if uid is None:
        return ""
    try:
        return f"[id:{memory.get(uid, forgotten=True).ref}]"
    except NotFound:
        return "(erased)"


def _ended_line(memory: Kept, ref: str | int | None) -> list[Line]:
    """Return a line that says when the memory of a history stopped being true; none if it holds."""
    if ref is None or (until := memory.look().standing(found := memory.get(ref, forgotten=True)).until) == "":
        return []
    return [(name_of(found), f" {until}: ", " ".join(found.content.split()))]


def _heirs(memory: Kept, events: Sequence[Event]) -> dict[str, str]:
    """Return the refs of memories that replaced others in these events, by uid."""
    uids = {(event.changed or {}).get("superseded_by", (None, None))[1] for event in events} - {None}
    return {uid: heir_of(memory, uid) for uid in uids}


def _is_global(memory: Kept, asked: History) -> bool:
    """Return True if the events are of global memory: their names begin with g."""
    return asked.tier == "global" if asked.ref is None else memory.get(asked.ref, forgotten=True).ref.startswith("g")


def _ref_of(memory: Kept, event: Event) -> str | None:
    """Return the ref of the memory of an event, or of the memory that its guard is for; None if there is none."""
    noun = noun_of(event)
    uid = event.subject.partition(":")[2] if noun is CallGuard else event.subject
    try:
        return memory.get(uid, forgotten=True).ref if noun in (Memory, CallGuard) else None
    except (NotFound, InvalidInput):  # erased; or the journal itself, which a repair writes about
        return None


@command
def status_command(invocation: Invocation) -> None:
    projects = invocation.projects()
    located = projects.locate(invocation.project)
    with invocation.open() as memory:
        status, person = memory.status(), memory.look().person
        readers = memory.files.note_readers(os.environ)
        outdated = outdated_files(memory)
    now = invocation.clock()
    project = located.project
    lines = [nothing_yet(invocation)] if project is None else _project_lines(project, person)
    lines += _pause_lines(invocation, status["paused"])
    lines += [OFF_LINES[name] for name in status["switched_off"]]
    lines += [f"The block in {path} is out of date. `kept files agents` writes it." for path in outdated]
    for space in status["spaces"]:
        if space["space"] == GLOBAL:
            lines.append(Strong("Global memory, for all projects"))
        lines += _space_lines(space, now)
        if space["space"] != GLOBAL and status["last_session"] is not None:
            lines.append(("    ", _session_line(status["last_session"], space["refused"], now)))
    lines += reader_lines(readers, now)
    misses = HookFolder(projects.home.root).misses(now - timedelta(days=RECENT_DAYS))
    lines += told_misses(misses, f"in the last {RECENT_DAYS} days")
    lines.append(Dim(f"Home {projects.home.root}; acting as {invocation.role}."))
    about = None if project is None else {"id": project.id, "name": project.name, "root": project.root}
    document = {
        "home": str(projects.home.root),
        "project": about,
        "misses": [one._asdict() for one in misses],
        "notes": msgspec.to_builtins(readers),
        "outdated": outdated,
        **status,
    }
    invocation.answer(document, lines)


def outdated_files(memory: Kept) -> list[str]:
    """Return the paths of files whose block does not show the memories that it should."""
    return [one.path for one in memory.files.status() if one.is_outdated]


OFF_LINES = {
    "auto_memory": "The setting auto_memory is off: nothing is taken from conversations.",
    "auto_briefing": "The setting auto_briefing is off: nothing is injected automatically.",
}


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
        end = f"kept on{'' if session is None else f' --session {session}'}"
        since = f"since {local(pause['since'], invocation.zone)}, until `{end}`"
        lines.append(f"{what} is paused {since}: nothing is captured or injected.")
    return lines


def _session_line(session: dict[str, Any], refused: dict[str, int], now: datetime) -> str:
    """Write how much was kept of the last session, and how much was refused so far, by reason."""
    by = f" of {session['agent']}" if session["agent"] else ""
    kept = counted_kinds(session["kept"]) or "nothing"
    line = f"Last session{by}, begun {ago(session['started_at'], now)}: {kept} kept."
    if refused:
        reasons = ", ".join(f"{reason.replace('_', ' ')} {number:,}" for reason, number in refused.items())
        line += f" Refused in this project so far: {reasons}."
    return line


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
