"""Merge two projects: the target takes over the memories, sessions and tasks of the source.

Called by `kept projects merge`; afterwards the name, id and directories of the source lead to the target. Records move
as they are, without their history, through the `Joiner`.
Rule: each batch is written to the target first and archived in the source afterwards, and a memory is recognised by its
uid. So an interrupted merge can be run again, and nothing is ever in neither.
"""

import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC

from msgspec import Struct

from kept import access
from kept.exchange.joining import MERGE
from kept.exchange.portable import piece_of
from kept.memory.joiner import Joiner, JoinOptions
from kept.memory.pieces import message_pieces, parents_first
from kept.model import (
    Actor,
    Alias,
    Allowance,
    CallGuard,
    Conflict,
    Memory,
    Record,
    Rejection,
    SessionRecord,
    TaskRecord,
)
from kept.ports import ANYWHERE, Clock, Reader, Stamp, Storage, Transaction
from kept.projects import Projects, refuse_same
from kept.projects.home import Home
from kept.projects.registry import Project
from kept.settings import Settings
from kept.storage import open_space
from kept.storage.shared import pages_of

BATCH = 500  # memories per transaction: others get their turn in between


class ProjectMergeReport(Struct, frozen=True, kw_only=True):
    """What a merge did. A memory that the target already has is a duplicate and was not copied."""

    into: Project
    moved: int = 0
    duplicates: int = 0
    erased: int = 0
    sessions: int = 0


def merge(
    projects: Projects, source: str, into: str, *, actor: Actor, settings: Settings, clock: Clock
) -> ProjectMergeReport:
    """Move all memories of project `source` into project `into`, also archived and forgotten ones; then retire it.

    Sessions, open conflicts, aliases, tasks, allowances, guards and rejections move as well; a pause does not. What was
    rejected in the target stays away. Raises NotAllowed unless the actor may write both.
    """
    giver, taker = projects.get(source), projects.get(into)
    refuse_same(giver, taker, source, into)
    for project in (giver, taker):
        access.check_write(actor, project.space)
    if not projects.home.files(giver.folder).database.exists():
        return ProjectMergeReport(into=projects.retire(giver.id, taker.id))
    stamp = Stamp(group=secrets.token_hex(8), at=clock().astimezone(UTC), actor=actor.name)
    stores = _open(projects.home, giver, settings, clock), _open(projects.home, taker, settings, clock)
    try:
        joiner = _move(*stores, giver.id, stamp)
        joiner.mirror_sessions(projects.home.files(taker.folder).directory / settings.sessions_path)
    finally:
        for store in stores:
            store.close()
    return ProjectMergeReport(
        into=projects.retire(giver.id, taker.id),
        moved=joiner.done.stored,
        duplicates=joiner.done.duplicates,
        erased=joiner.done.refused.get("erased", 0),
        sessions=joiner.done.others.get(SessionRecord.noun, 0),
    )


def _open(home: Home, project: Project, settings: Settings, clock: Clock) -> Storage:
    path = home.prepare(project.folder).database
    return open_space(path, project.space, write_wait_s=settings.write_wait_s, now=clock)


def _move(giver: Storage, taker: Storage, giver_id: str, stamp: Stamp) -> Joiner:
    options = JoinOptions(
        stamp=stamp,
        session_stamp=stamp,
        rules=None,
        action=MERGE,
        known="extend",
        skips_twins=True,
        compares=False,
        session_names=_session_names(giver, taker, giver_id),
    )
    joiner = Joiner(taker, options)
    _move_sessions(giver, joiner)
    for batch in pages_of(giver, ANYWHERE, size=BATCH):
        heirs = joiner.take(piece_of(giver.space, memory) for memory in batch)
        with giver.writing(stamp) as tx:
            for memory in batch:
                _leave(tx, memory, heirs)
    with giver.reading() as reader:
        small = [record for noun in (Alias, TaskRecord, Allowance, CallGuard, Rejection) for record in reader.all(noun)]
        rest = [*_open_conflicts(reader), *small]
    joiner.take(piece_of(giver.space, record) for record in rest)
    return joiner


def _open_conflicts(reader: Reader) -> Iterable[Record]:
    return (conflict for conflict in reader.all(Conflict) if conflict.resolved_at is None)


def _session_names(giver: Storage, taker: Storage, giver_id: str) -> dict[str, str]:
    """The name of each session at the taker: as before, unless another conversation has it there."""
    names = {}
    with giver.reading() as here, taker.reading() as there:
        for session in here.all(SessionRecord):
            is_taken = there.session(session.name) is not None and not _is_moved(here, there, session.name)
            names[session.name] = f"{session.name[:100]}-{giver_id}" if is_taken else session.name
    return names


def _is_moved(here: Reader, there: Reader, name: str) -> bool:
    """Whether all messages of a session are already at the taker. A session moves in one transaction."""
    ours, theirs = ({(m.n, m.id, m.role, m.content) for m in reader.messages(name)} for reader in (here, there))
    return ours <= theirs


def _move_sessions(giver: Storage, joiner: Joiner) -> None:
    with giver.reading() as reader:
        for session in parents_first(reader.all(SessionRecord)):
            joiner.take([piece_of(giver.space, session), *message_pieces(giver.space, session, reader)])


def _leave(tx: Transaction, memory: Memory, heirs: Mapping[str, str | None]) -> None:
    """Archive a memory that the target has now. Memories archived earlier stay unchanged, to keep their history."""
    current = tx.get(Memory, memory.id)
    if memory.uid in heirs and current is not None and not current.is_archived:
        tx.put(current.archived("superseded", tx.stamp.at, superseded_by=heirs[memory.uid]), MERGE)
