"""`kept list`, `show`, `history`, `status`: reading changes nothing."""

from datetime import datetime
from typing import Any, get_args

import click

from kept.entrypoints.cli.completion import complete_ref
from kept.entrypoints.cli.frame import command, kind_and_tag_options, limit_option, message_named
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import (
    ago,
    as_document,
    counted,
    counted_kinds,
    event_document,
    event_name,
    field_lines,
    local,
    meant_kinds,
    memories,
    memory_lines,
    name_of,
    nothing_yet,
    size,
    state,
    vector_line,
    what_changed,
)
from kept.errors import InvalidInput, NotFound
from kept.journal import noun_of
from kept.memory import Kept
from kept.memory.read import ListStatus
from kept.model import GLOBAL, Event, Memory, canonical_kind

PAGE = 50


@command
@kind_and_tag_options
@click.option("--status", type=click.Choice(get_args(ListStatus)), help="Only with this status.")
@click.option("--agent", metavar="NAME", help="Only what this agent wrote.")
@limit_option(PAGE, "memories at most")
@click.option("--after", metavar="REF", help="Continue after this memory, the last one of the previous page.")
def list_command(
    invocation: Invocation,
    *,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    status: ListStatus | None,
    agent: str | None,
    limit: int,
    after: str | None,
) -> None:
    """The memories of the project come first, then the global ones. Archived and forgotten memories are listed only
    with --status.
    """
    with invocation.open() as memory:
        wanted = tuple(canonical_kind(kind) for kind in kinds)
        found = memory.list(kinds=wanted, tags=tags, status=status, agent=agent, limit=limit + 1, after=after)
    page, has_more = found[:limit], len(found) > limit
    now = invocation.clock()
    lines = [line for one in page for line in memory_lines(one, now)]
    if has_more:
        options = [*_repeated("--kind", kinds), *_repeated("--tag", tags)]
        options += ["--status", status] if status else []
        options += ["--agent", agent] if agent else []
        options += ["--limit", str(limit)] if limit != PAGE else []
        lines.append(f"More: {_command_line(invocation, 'list', *options, '--after', page[-1].ref)}")
    elif not page:
        is_filtered = kinds or tags or status or agent or after
        lines.append(f"No memory matches.{meant_kinds(kinds)}" if is_filtered else nothing_yet(invocation))
    document = {"memories": [as_document(one) for one in page], "next": page[-1].ref if has_more else None}
    invocation.answer(document, lines, is_long=True)


def _repeated(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _command_line(invocation: Invocation, *words: str) -> str:
    """A command line that can be copied as it is, for the same home and project."""
    import shlex

    role = None if invocation.role == "project" else invocation.role
    options = (("--home", invocation.home), ("--project", invocation.project), ("--as", role))
    given = [word for option, value in options if value is not None for word in (option, value)]
    return shlex.join(["kept", *words, *given])


@command
@click.argument("ref", shell_complete=complete_ref)
def show_command(invocation: Invocation, *, ref: str) -> None:
    """REF is 42, g42 for a global memory, [id:42], or ID#12 for a message of a session. Archived memories are shown as
    well; forgotten ones only by `kept list --status forgotten`.
    """
    with invocation.open() as memory:
        if "#" in ref:
            from kept.entrypoints.cli.sessions import message_lines

            name = message_named(invocation, memory, ref)
            message = memory.look().message(name)
            invocation.answer(message, message_lines(message, invocation, name=name))
            return
        found = memory.get(ref)
        heir = _heir(memory, found.superseded_by)
    invocation.answer(as_document(found), _in_full(found, heir, invocation))


def _heir(memory: Kept, uid: str | None) -> str:
    """The ref of the memory that replaced another, or ""."""
    if uid is None:
        return ""
    try:
        return f"[id:{memory.get(uid, forgotten=True).ref}]"
    except NotFound:
        return "(erased)"


def _reasons(memory: Memory) -> str:
    """The rules that chose it from a conversation: "names code, reason", or ""."""
    rules = (memory.data or {}).get("rules")
    return ", ".join(str(rule).replace("_", " ") for rule in rules) if isinstance(rules, list) else ""


def _in_full(memory: Memory, heir: str, invocation: Invocation) -> list[Line]:
    now = invocation.clock()

    def when(field: str) -> str:
        at = getattr(memory, field)
        return "" if at is None else f"{local(at, invocation.zone)}, {ago(at, now)}"

    source = memory.source
    place = f"{source.file}{f':{source.line}' if source.line else ''}" if source.file else ""
    rows = {
        "status": state(memory) or memory.status,
        "trust": memory.trust,
        "tags": ", ".join(memory.tags),
        "files": ", ".join(memory.files),
        "topic": memory.topic or "",
        "key": memory.key or "",
        "title": memory.title or "",
        "tier": memory.tier if memory.tier != "project" else "",
        "importance": f"{memory.importance:.2g}",
        "feedback": f"{memory.feedback:+d}" if memory.feedback else "",
        "used": counted(memory.use_count, "time") if memory.use_count else "",
        "kept for": _reasons(memory),
        "written": f"{when('created_at')}, by {source.agent or source.origin}",
        "found in": place,
        "changed": when("updated_at") if memory.updated_at != memory.created_at else "",
        "archived": when("archived_at"),
        "replaced by": heir,
    }
    return [
        (name_of(memory), f" {memory.kind}"),
        *(("    ", line) for line in memory.content.replace("\r\n", "\n").split("\n")),
        *field_lines(rows),
    ]


@command
@click.argument("ref", required=False)
@click.option("--global", "is_global", is_flag=True, help="Global memory, instead of the project's.")
@limit_option(PAGE, "events at most")
def history_command(invocation: Invocation, *, ref: str | None, is_global: bool, limit: int) -> None:
    """The newest event comes last. `kept undo EVENT` undoes one, with everything that was changed together with it."""
    with invocation.open() as memory:
        if ref is None:
            events = memory.history(limit=limit, tier="global" if is_global else "project")
        else:
            is_global = memory.get(ref, forgotten=True).ref.startswith("g")
            events = memory.history(ref)[-limit:]
        refs = {event.subject: _ref_of(memory, event) for event in {event.subject: event for event in events}.values()}
        uids = {(event.changed or {}).get("superseded_by", (None, None))[1] for event in events} - {None}
        heirs = {uid: _heir(memory, uid) for uid in uids}
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
    if not events:
        where = "global memory" if is_global else "this project"
        lines.append(f'Nothing has been changed in {where} yet. `kept remember "…"` stores the first memory.')
    invocation.answer({"events": document}, lines, is_long=True)


def _ref_of(memory: Kept, event: Event) -> str | None:
    """The ref of the memory that an event is about; None if it was erased, or is not a memory."""
    try:
        return memory.get(event.subject, forgotten=True).ref if noun_of(event) is Memory else None
    except (NotFound, InvalidInput):  # erased; or the journal itself, which a repair writes about
        return None


@command
def status_command(invocation: Invocation) -> None:
    projects = invocation.projects()
    located = projects.locate(invocation.project)
    with invocation.open() as memory:
        status, person = memory.status(), memory.look().person
    now = invocation.clock()
    project = located.project
    lines: list[Line] = []
    if project is not None:
        lines.append((Strong(f"Project {project.name}"), Dim(f"  {project.id}  {project.root or 'no directory'}")))
        if project.team is not None:
            lines.append(f"    shared as {project.team.name} in {project.team.database}; you are {person}")
    else:
        lines.append(nothing_yet(invocation))
    for pause in status["paused"]:
        session = pause["session"]
        what = "The project" if session is None else f"Session {session}"
        end = f"kept on{'' if session is None else f' --session {session}'}"
        since = f"since {local(pause['since'], invocation.zone)}, until `{end}`"
        lines.append(f"{what} is paused {since}: nothing is captured or injected.")
    for space in status["spaces"]:
        if space["space"] == GLOBAL:
            lines.append(Strong("Global memory, for all projects"))
        lines += _space_lines(space, now)
        if space["space"] != GLOBAL and status["last_session"] is not None:
            lines.append(("    ", _session_line(status["last_session"], space["refused"], now)))
    lines.append(Dim(f"Home {projects.home.root}; acting as {invocation.role}."))
    about = None if project is None else {"id": project.id, "name": project.name, "root": project.root}
    document = {"home": str(projects.home.root), "project": about, **status}
    invocation.answer(document, lines)


def _session_line(session: dict[str, Any], refused: dict[str, int], now: datetime) -> str:
    """What was kept of the last session, and what was refused so far, and why."""
    by = f" of {session['agent']}" if session["agent"] else ""
    kept = counted_kinds(session["kept"]) or "nothing"
    line = f"Last session{by}, begun {ago(session['started_at'], now)}: {kept} kept."
    if refused:
        reasons = ", ".join(f"{reason.replace('_', ' ')} {number:,}" for reason, number in refused.items())
        line += f" Refused in this project so far: {reasons}."
    return line


def _space_lines(space: dict[str, Any], now: datetime) -> list[Line]:
    counts = space["memories"]
    parts = [memories(counts["live"])]
    parts += [f"{counts['pinned']:,} pinned"] if counts["pinned"] else []
    parts += [counted(counts["candidates"], "candidate")] if counts["candidates"] else []
    parts += [f"{counts[name]:,} {name}" for name in ("archived", "forgotten") if counts[name]]
    lines: list[Line] = [("    ", ", ".join(parts))]
    if counts["proposed"]:
        proposed = memories(counts["proposed"])
        lines.append(("    ", f"{proposed} proposed for all projects. `kept review --reason global` asks you."))
    if space["last_change"] is not None:
        lines.append(("    ", f"{counted(space['events'], 'event')}, the latest {ago(space['last_change'], now)}"))
    if recalls := space["recalls"]["n"]:
        p50, p95 = space["recalls"]["p50_ms"], space["recalls"]["p95_ms"]
        lines.append(("    ", f"{counted(recalls, 'recall')}: half within {p50:.1f} ms, 95 % within {p95:.1f} ms"))
    if line := vector_line(space["vectors"]):
        lines.append(("    ", line))
    lines.append(Dim(f"    {space['place']}, {size(space['bytes'])}"))
    if space.get("daily_backup"):
        lines.append(("    ", f"last daily backup {space['daily_backup']}"))
    lines += _upkeep_lines(space["upkeep"], now)
    if space.get("erase") == "pending":
        lines.append(("    ", "An erasure is pending: another program still reads old pages of the file."))
    if space.get("warning"):
        lines.append(("    ", space["warning"]))
    return lines


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
