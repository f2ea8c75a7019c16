"""`kept list`, `show`, `history`, `status`: looking changes nothing."""

import shlex
from typing import Any, get_args

import click
import msgspec

import kept
from kept.entrypoints.cli.config import vector_line
from kept.entrypoints.cli.frame import Command, limit_option, pass_invocation
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import (
    ago,
    as_document,
    counted,
    event_name,
    local,
    memory_lines,
    name_of,
    size,
    state,
    what_changed,
)
from kept.errors import InvalidInput, NotFound
from kept.journal import noun_of
from kept.memory.read import ListStatus
from kept.model import GLOBAL, Event, Memory, canonical_kind

PAGE = 50


@click.command("list", cls=Command)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind. May be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag. May be repeated.")
@click.option("--status", type=click.Choice(get_args(ListStatus)), help="Only with this status.")
@limit_option(PAGE, "to show at most")
@click.option("--after", metavar="REF", help="Go on after this memory, where the page before ended.")
@pass_invocation
def list_command(
    invocation: Invocation,
    *,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    status: ListStatus | None,
    limit: int,
    after: str | None,
) -> None:
    """Show what is kept, newest first.

    The memories of the project come first, then the global ones. What was archived or forgotten is shown only with
    --status.
    """
    with invocation.open() as memory:
        wanted = tuple(canonical_kind(kind) for kind in kinds)
        found = memory.list(kinds=wanted, tags=tags, status=status, limit=limit + 1, after=after)
    page, has_more = found[:limit], len(found) > limit
    now = invocation.clock()
    lines = [line for one in page for line in memory_lines(one, now)]
    if has_more:
        options = [*_repeated("--kind", kinds), *_repeated("--tag", tags)]
        options += ["--status", status] if status else []
        options += ["--limit", str(limit)] if limit != PAGE else []
        lines.append(f"There are more: {_command(invocation, 'list', *options, '--after', page[-1].ref)}")
    elif not page:
        is_filtered = kinds or tags or status or after
        lines.append("No memory fits." if is_filtered else nothing_yet(invocation))
    document = {"memories": [as_document(one) for one in page], "next": page[-1].ref if has_more else None}
    invocation.answer(document, lines)


def _repeated(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _command(invocation: Invocation, *words: str) -> str:
    """A command line that can be typed as it stands, for the same home and project."""
    options = [
        word
        for option, value in (("--home", invocation.home), ("--project", invocation.project))
        if value is not None
        for word in (option, value)
    ]
    role = ["--as", invocation.role] if invocation.role != "project" else []
    return shlex.join(["kept", *words, *options, *role])


def nothing_yet(invocation: Invocation) -> str:
    """What to say where nothing is kept: why that is, and what to do."""
    located = invocation.projects().locate(invocation.project)
    if located.refusal:
        return f"{located.refusal} Go into a project, or name one with --project NAME."
    if located.name:
        return f"There is no project {located.name!r} yet. `kept projects list` shows those there are."
    return 'Nothing is kept here yet. `kept remember "…"` keeps the first thing.'


@click.command("show", cls=Command)
@click.argument("ref")
@pass_invocation
def show_command(invocation: Invocation, *, ref: str) -> None:
    """Show one memory in full.

    REF is 42, g42 for a global memory, or [id:42]. It is shown also when it was archived; what was
    forgotten is shown by `kept list --status forgotten`.
    """
    with invocation.open() as memory:
        found = memory.get(ref)
        heir = _heir(memory, found)
    invocation.answer(as_document(found), _in_full(found, heir, invocation))


def _heir(memory: kept.Kept, found: Memory) -> str:
    """The ref of what has taken the place of a memory, or ""."""
    if found.superseded_by is None:
        return ""
    try:
        return f"[id:{memory.get(found.superseded_by, forgotten=True).ref}]"
    except NotFound:
        return "(erased)"


def _in_full(memory: Memory, heir: str, invocation: Invocation) -> list[Line]:
    now = invocation.clock()

    def when(field: str) -> str:
        at = getattr(memory, field)
        return "" if at is None else f"{local(at, invocation.zone)}, {ago(at, now)}"

    source = memory.source
    place = f"{source.file}{f':{source.line}' if source.line else ''}" if source.file else ""
    rows = {
        "status": state(memory) or memory.status,
        "tags": ", ".join(memory.tags),
        "files": ", ".join(memory.files),
        "topic": memory.topic or "",
        "key": memory.key or "",
        "title": memory.title or "",
        "tier": memory.tier if memory.tier != "project" else "",
        "importance": f"{memory.importance:.2g}",
        "feedback": f"{memory.feedback:+d}" if memory.feedback else "",
        "used": counted(memory.use_count, "time") if memory.use_count else "",
        "written": f"{when('created_at')}, by {source.agent or source.origin}",
        "found in": place,
        "changed": when("updated_at") if memory.updated_at != memory.created_at else "",
        "archived": when("archived_at"),
        "now kept as": heir,
    }
    return [
        (name_of(memory), f" {memory.kind}"),
        *(("    ", line) for line in memory.content.replace("\r\n", "\n").split("\n")),
        *((Dim(f"{label:<12}"), value) for label, value in rows.items() if value),
    ]


@click.command("history", cls=Command)
@click.argument("ref", required=False)
@click.option("--global", "is_global", is_flag=True, help="Of global memory, instead of the project's.")
@limit_option(PAGE, "events to show at most")
@pass_invocation
def history_command(invocation: Invocation, *, ref: str | None, is_global: bool, limit: int) -> None:
    """Show what happened to a memory, or in the project.

    The newest event stands last. `kept undo EVENT` takes one back, with everything that was done in the same stroke.
    """
    with invocation.open() as memory:
        if ref is None:
            events = memory.history(limit=limit, tier="global" if is_global else "project")
        else:
            is_global = memory.get(ref, forgotten=True).ref.startswith("g")
            events = memory.history(ref)[-limit:]
        refs = {event.subject: _ref_of(memory, event) for event in {event.subject: event for event in events}.values()}
    document = [
        {"event": event_name(event, is_global=is_global), "ref": refs[event.subject], **_without_salt(event)}
        for event in events
    ]
    lines: list[Line] = [
        (
            Strong(f"{event_name(event, is_global=is_global):>5}"),
            f"  {local(event.at, invocation.zone)}  {event.actor} {event.action} ",
            f"[id:{refs[event.subject]}]" if refs[event.subject] else event.subject,
            Dim(f"  {what_changed(event, events, is_global=is_global)}"),
        )
        for event in events
    ]
    if not events:
        where = "global memory" if is_global else "this project"
        lines.append(f'Nothing has happened in {where} yet. `kept remember "…"` keeps the first thing.')
    invocation.answer({"events": document}, lines)


def _ref_of(memory: kept.Kept, event: Event) -> str | None:
    """The ref of what an event is about; None for what was erased, and for what is no memory."""
    try:
        return memory.get(event.subject, forgotten=True).ref if noun_of(event) is Memory else None
    except (NotFound, InvalidInput):  # erased; or the journal itself, which a repair writes about
        return None


def _without_salt(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(event)
    del fields["salt"]
    return fields


@click.command("status", cls=Command)
@pass_invocation
def status_command(invocation: Invocation) -> None:
    """Show which project this is, and how much is kept."""
    projects = invocation.projects()
    located = projects.locate(invocation.project)
    with invocation.open() as memory:
        status = memory.status()
    now = invocation.clock()
    project = located.project
    lines: list[Line] = []
    if project is not None:
        lines.append((Strong(f"Project {project.name}"), Dim(f"  {project.id}  {project.root or 'no directory'}")))
    else:
        lines.append(nothing_yet(invocation))
    for space in status["spaces"]:
        if space["space"] == GLOBAL:
            lines.append(Strong("Global memory, for all projects"))
        lines += _space_lines(space, now)
    lines.append(Dim(f"Home {projects.home.root}; acting as {invocation.role}."))
    about = None if project is None else {"id": project.id, "name": project.name, "root": project.root}
    invocation.answer({"home": str(projects.home.root), "project": about, **status}, lines)


def _space_lines(space: dict[str, Any], now: Any) -> list[Line]:
    counts = space["memories"]
    parts = [counted(counts["live"], "memory", "memories")]
    parts += [f"{counts[name]:,} {name}" for name in ("pinned", "candidates", "archived", "forgotten") if counts[name]]
    lines: list[Line] = [("    ", ", ".join(parts))]
    if space["last_change"] is not None:
        lines.append(("    ", f"{counted(space['events'], 'event')}, the last one {ago(space['last_change'], now)}"))
    if line := vector_line(space["vectors"]):
        lines.append(("    ", line))
    lines.append(Dim(f"    {space['place']}, {size(space['bytes'])}"))
    if space.get("daily_backup"):
        lines.append(("    ", f"last daily backup {space['daily_backup']}"))
    lines += _upkeep_lines(space["upkeep"], now)
    if space.get("erase") == "pending":
        lines.append(("    ", "An erasure is not finished: another program still reads old pages of the file."))
    if space.get("warning"):
        lines.append(("    ", space["warning"]))
    return lines


def _upkeep_lines(upkeep: dict[str, Any], now: Any) -> list[Line]:
    lines: list[Line] = []
    if upkeep["finished_at"] is not None:
        under_way = ", and is under way again" if upkeep["is_under_way"] else ""
        lines.append(("    ", f"upkeep was last through {ago(upkeep['finished_at'], now)}{under_way}"))
    if upkeep["is_crowded"]:
        lines.append(("    ", "There is no room for all that is kept: `kept upkeep` archives the least worth."))
    if upkeep["failed_at"] is not None:
        errors = ", ".join(f"{name} ({counted(n, 'time')})" for name, n in upkeep["errors"].items())
        lines.append(
            ("    ", f"Upkeep failed {ago(upkeep['failed_at'], now)}: {errors}. `kept doctor` looks for the cause.")
        )
    return lines
