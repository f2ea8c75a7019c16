"""Export the opened memory to a file, and join an export or another store with it (`kept store merge`).

`pieces` reads records with their history from a store or a file, `joiner` joins them. Rule: a batch is one transaction,
and a record that was joined before is known again, so an import that was cut short is simply run again. Texts are
redacted on the way in, erased texts stay erased, and an agent cannot bring words in the name of a person.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from kept import access
from kept.distribution import VERSION
from kept.errors import InvalidInput, NotAllowed
from kept.exchange import portable
from kept.exchange.exporters import EXPORTERS as EXPORTERS
from kept.exchange.exporters import FOLDERS, SessionFindings, StoreContent
from kept.memory.context import Context, by_uid
from kept.memory.joiner import BATCH, Joiner, JoinOptions, MergeReport
from kept.memory.pieces import Bundle, in_batches, own_pieces
from kept.model import GLOBAL, Alias, Conflict, Memory, SessionRecord
from kept.ports import LIVE, Reader, Storage, Where
from kept.projects.files import explained, shown
from kept.storage import open_space
from kept.storage.shared import every, random_hex

Progress = Callable[[int, int], None]
# Memories that have no place in the formats of other programs.
_UNEXPORTED: Mapping[str, Where] = {
    "candidate": Where(tiers=("session",)),  # found in a session, and not promoted yet
    "note of a task": Where(tiers=("task",)),
    "archived": Where(shelf="archive"),
    "forgotten": Where(shelf="forgotten"),
}


class ExportReport(Struct, frozen=True, kw_only=True):
    """What was written to a file."""

    path: str
    format: str
    memories: int
    records: int
    left_out: dict[str, int] = {}  # memories that are not in the file, by their sort


# ---- out ----


def export_to(context: Context, target: Path, *, with_forgotten: bool) -> ExportReport:
    """Write an export, whole or not at all."""
    counts: Counter[str] = Counter()

    def counted() -> Iterator[bytes]:
        for line in export_lines(context, with_forgotten=with_forgotten):
            counts["memory"] += line.startswith(b'{"noun":"memory"')
            counts["all"] += line.startswith(b'{"noun":')
            yield line

    write_lines(target, counted())
    return ExportReport(
        path=str(target),
        format="kept",
        memories=counts["memory"],
        records=counts["all"],
        left_out={} if with_forgotten else _left_out(context, ("forgotten",)),
    )


def _file_in(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder, whose own folder exists then."""
    file = folder / name
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return file


def export_as(context: Context, target: Path, format: str, *, sessions: bool = False) -> ExportReport:
    """Write the live memories, of the project and global ones, in the format of another program.

    `sessions`: into a folder, with a file for the findings of each session; only Praxis has them.
    """
    if sessions and format != "praxis":
        raise InvalidInput(f"The format {format} has no files for sessions.", hint="Leave --sessions out.")
    content = _content(context, with_sessions=sessions, with_counts=format == "praxis")
    context.tell_read(content.memories)
    is_folder = format in FOLDERS or sessions
    with explained("write", target, hint="Check its permissions, or name another place."):
        if is_folder:
            _check_new_folder(target)
        for name, said in EXPORTERS[format](content):
            file = _file_in(target, name) if is_folder else target
            write_lines(file, [said.removesuffix("\n").encode("utf-8", "replace")])
    number = len(content.memories)
    return ExportReport(
        path=str(target),
        format=format,
        memories=number,
        records=number + len(content.sessions),
        left_out=_left_out(context, [name for name in _UNEXPORTED if not (name == "candidate" and sessions)]),
    )


def _left_out(context: Context, names: Iterable[str]) -> dict[str, int]:
    """Count the memories that an export does not have; zeros are left out."""
    counts: Counter[str] = Counter()
    for reader in context.readers():
        counts.update({name: reader.count(_UNEXPORTED[name]) for name in names})
    return {name: number for name, number in counts.items() if number}


def _check_new_folder(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInput(f"{shown(target)} exists and is not an empty folder.", hint="Name a new folder.")


def _content(context: Context, *, with_sessions: bool, with_counts: bool) -> StoreContent:
    """Read the live memories and the rest of the store that an exporter may ask for."""
    memories: list[Memory] = []
    conflicts: list[Conflict] = []
    aliases: list[Alias] = []
    sessions: list[SessionFindings] = []
    counts: Counter[str] = Counter()
    compacted_at = None
    for reader in context.readers():
        memories += [memory for memory in every(reader, LIVE) if memory.tier in ("project", "global")]
        conflicts += reader.all(Conflict)
        aliases += reader.all(Alias)
        sessions += [_findings(reader, one) for one in reader.all(SessionRecord)] if with_sessions else []
        for event in reader.events() if with_counts else ():
            counts[event.action] += 1
            compacted_at = event.at if event.action in ("expire", "evict") else compacted_at
    return StoreContent(
        memories=memories,
        conflicts=conflicts,
        aliases=aliases,
        sessions=sessions,
        counts=counts,
        compacted_at=compacted_at,
        auto_memory=context.settings.auto_memory,
        preset=context.settings.preset,
    )


def _findings(reader: Reader, session: SessionRecord) -> SessionFindings:
    uids = dict.fromkeys((*session.findings, *session.promoted))
    found = [one for uid in uids if (one := by_uid(reader, uid)) is not None and not one.is_archived]
    summary = by_uid(reader, session.summary) if session.summary else None
    is_told = summary is not None and not summary.is_archived
    return SessionFindings(session=session, findings=found, summary=summary.content if summary and is_told else "")


def export_lines(context: Context, *, with_forgotten: bool) -> Iterator[bytes]:
    """The lines of an export, without their newlines."""
    pieces = own_pieces(context, with_forgotten=with_forgotten)
    yield from portable.lines(pieces, version=VERSION, at=context.now())


def write_lines(target: Path, lines: Iterable[bytes]) -> None:
    """Write lines to a file that only its owner may read; it appears, or is replaced, when it is complete."""
    with explained("write", target, hint="Check its permissions, or name another file."):
        draft = target.with_name(f".{target.name[:100]}.{random_hex(4)}.tmp")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for line in lines:
                    file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


# ---- in ----


def join(context: Context, source: Bundle, *, dry_run: bool = False, progress: Progress | None = None) -> MergeReport:
    """Join the pieces with the opened project, and those of global memory with global memory."""
    done = MergeReport(others={}, refused={}, dry_run=dry_run)
    if GLOBAL in source.spaces and not dry_run:
        question = f"Join the memories for all projects in {source.name} with your global memory?"
        context.agree_for_all(question, to="change global memory")
    may_allow = source.has_allowances and not dry_run and _may_allow(context, source.name)
    number = 0
    joiners: dict[bool, Joiner] = {}
    for batch in in_batches(source.pieces(), BATCH):
        is_global = batch[0].space == GLOBAL
        if is_global not in joiners:
            storage = _target(context, shared=is_global, dry_run=dry_run)
            joiners[is_global] = Joiner(storage, _options(context, storage, may_allow, dry_run), done)
        joiner = joiners[is_global]
        if not dry_run:
            access.check_write(context.actor_here(), joiner.storage.space)
        joiner.take(batch)
        number += len(batch)
        if progress is not None:
            progress(number, source.total)
    for joiner in joiners.values():
        _finish(context, joiner, dry_run=dry_run)
    return done


def _options(context: Context, storage: Storage, may_allow: bool, dry_run: bool) -> JoinOptions:
    is_trusted = context.is_person or context.actor.role == "admin"
    return JoinOptions(
        stamp=context.stamp(shared=storage.space == GLOBAL),
        session_stamp=context.stamp(),
        rules=context.rules(),
        most_trust="user" if is_trusted else "agent",
        may_allow=may_allow,
        may_guard=context.is_person,
        dry_run=dry_run,
    )


def _finish(context: Context, joiner: Joiner, *, dry_run: bool) -> None:
    joiner.settle_doubles()
    if dry_run:
        return
    folder = context.spaces.sessions_folder() if joiner.storage.space != GLOBAL else None
    if folder is not None:
        joiner.mirror_sessions(folder)
    context.tell_write(joiner.storage, joiner.grown)


def _may_allow(context: Context, name: str) -> bool:
    try:
        context.agree_to_allow(f"{name} declares values that look like secrets harmless. Store them as they are?")
    except NotAllowed:
        return False
    return True


def _target(context: Context, *, shared: bool, dry_run: bool) -> Storage:
    context.readable()
    existing = context.spaces.shared() if shared else context.spaces.project()
    if existing is None and dry_run:
        return open_space(":memory:", write_wait_s=1.0, now=context.clock)
    return context.ensure_shared() if shared else context.owned()
