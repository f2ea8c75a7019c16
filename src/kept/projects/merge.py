"""Merge two projects: the target takes over the memories, sessions and tasks of the source.

Called by `kept projects merge`; afterwards the name, id and directories of the source lead to the target.
Rule: each batch is written to the target first and archived in the source afterwards, and a memory is recognised by its
uid. So an interrupted merge can be run again, and nothing is ever in neither.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path

from msgspec import Struct

from kept import access
from kept.model import Actor, Alias, Allowance, Conflict, Memory, Session, Task, replace
from kept.ports import ANYWHERE, LIVE, Clock, Reader, Stamp, Storage, Transaction, Where
from kept.projects import Projects, refuse_same
from kept.projects.files import mirror_session, write_session_index
from kept.projects.home import Home
from kept.projects.registry import Project
from kept.settings import Settings
from kept.storage import open_space
from kept.storage.shared import pages_of

BATCH = 500  # memories per transaction: others get their turn in between
ACTION = "merge"


class Merged(Struct, frozen=True, kw_only=True):
    """What a merge did. A memory that the target already has is a duplicate and was not copied."""

    into: Project
    moved: int
    duplicates: int
    erased: int
    sessions: int = 0


def merge(projects: Projects, source: str, into: str, *, actor: Actor, settings: Settings, clock: Clock) -> Merged:
    """Move all memories of project `source` into project `into`, also archived and forgotten ones; then retire it.

    Sessions, open conflicts, aliases, tasks and allowances move as well; a pause does not. Raises NotAllowed unless the
    actor may write both.
    """
    giver, taker = projects.get(source), projects.get(into)
    refuse_same(giver, taker, source, into)
    for project in (giver, taker):
        access.check_write(actor, project.space)
    counts = {"moved": 0, "duplicates": 0, "erased": 0, "sessions": 0}
    if projects.home.files(giver.folder).database.exists():
        stores = _open(projects.home, giver, settings, clock), _open(projects.home, taker, settings, clock)
        try:
            _move(*stores, counts, giver.id, actor=actor, clock=clock)
            _mirror(stores[1], projects.home.files(taker.folder).directory / settings.sessions_path)
        finally:
            for store in stores:
                store.close()
    return Merged(into=projects.retire(giver.id, taker.id), **counts)


def _open(home: Home, project: Project, settings: Settings, clock: Clock) -> Storage:
    path = home.prepare(project.folder).database
    return open_space(path, project.space, write_wait_s=settings.write_wait_s, now=clock)


def _move(giver: Storage, taker: Storage, counts: dict[str, int], giver_id: str, *, actor: Actor, clock: Clock) -> None:
    stamp = Stamp(group=secrets.token_hex(8), at=clock().astimezone(UTC), actor=actor.name)
    sessions = _session_names(giver, taker, giver_id)
    counts["sessions"] = _move_sessions(giver, taker, sessions, stamp)
    for batch in pages_of(giver, ANYWHERE, size=BATCH):
        heirs = {}
        with taker.writing(stamp) as tx:
            for memory in batch:
                heir, outcome = _take(tx, _renamed(memory, sessions))
                heirs[memory.uid] = heir
                if outcome:
                    counts[outcome] += 1
        with giver.writing(stamp) as tx:
            for memory in batch:
                _leave(tx, memory, heirs[memory.uid])
    with giver.reading() as reader:
        conflicts, aliases, allowances = reader.all(Conflict), reader.all(Alias), reader.all(Allowance)
        tasks = reader.all(Task)
    with taker.writing(stamp) as tx:
        _take_conflicts(tx, conflicts)
        _take_aliases(tx, aliases)
        names = {task.name for task in tx.all(Task)}
        known = {allowance.digest for allowance in tx.all(Allowance)}
        new_tasks = [task for task in tasks if task.name not in names]
        for record in (*new_tasks, *(allowance for allowance in allowances if allowance.digest not in known)):
            tx.add(replace(record, id=0), ACTION)


def _session_names(giver: Storage, taker: Storage, giver_id: str) -> dict[str, str]:
    """The name of each session at the taker: as before, unless another conversation has it there."""
    names = {}
    with giver.reading() as here, taker.reading() as there:
        for session in here.all(Session):
            is_taken = there.session(session.name) is not None and not _is_moved(here, there, session.name)
            names[session.name] = f"{session.name[:100]}-{giver_id}" if is_taken else session.name
    return names


def _is_moved(here: Reader, there: Reader, name: str) -> bool:
    """Whether all messages of a session are already at the taker. A session moves in one transaction."""
    ours, theirs = ({(m.n, m.id, m.role, m.content) for m in reader.messages(name)} for reader in (here, there))
    return ours <= theirs


def _move_sessions(giver: Storage, taker: Storage, names: Mapping[str, str], stamp: Stamp) -> int:
    moved = 0
    with giver.reading() as reader:
        for session in reader.all(Session):
            name = names[session.name]
            with taker.writing(stamp) as tx:
                if tx.session(name) is not None:
                    continue
                parent = None if session.parent is None else names.get(session.parent, session.parent)
                tx.add(replace(session, id=0, name=name, parent=parent), ACTION)
                tx.append([replace(message, session=name) for message in reader.messages(session.name)])
                if session.packed_at is not None:
                    tx.pack(name)
                moved += 1
    return moved


def _mirror(taker: Storage, folder: Path) -> None:
    """Bring the files of all unpacked sessions up to date, which costs little where nothing is new."""
    with taker.reading() as reader:
        for session in reader.all(Session):
            if session.packed_at is None:
                mirror_session(folder, reader, session.name)
    write_session_index(folder, taker.reading)


def _renamed(memory: Memory, names: Mapping[str, str]) -> Memory:
    """The memory, with the name that its session has at the taker."""
    name = names.get(memory.source.session or "", memory.source.session)
    return memory if name == memory.source.session else replace(memory, source=replace(memory.source, session=name))


def _take(tx: Transaction, memory: Memory) -> tuple[str | None, str]:
    """Store a copy unless it is already there. Returns the uid that it has now, and the name of the count to raise."""
    if tx.select(replace(ANYWHERE, uid=memory.uid), limit=1):
        return memory.uid, ""
    if tx.is_erased(memory.fingerprint):
        return None, "erased"
    twins = [] if memory.is_archived else tx.select(_same(memory), limit=BATCH, oldest_first=True)
    twins = [twin for twin in twins if memory.is_low_trust or not twin.is_low_trust]  # its words count, a tool's do not
    if memory.key is not None and not twins:
        twins = tx.select(replace(ANYWHERE, key=memory.key), limit=1)
    if twins:
        return twins[0].uid, "duplicates"
    tx.add(replace(memory, id=0, space=tx.space), ACTION)
    return memory.uid, "moved"


def _same(memory: Memory) -> Where:
    """Live memories with the same text that live as long; a task's notes are archived when it ends."""
    fingerprints, scope = (memory.fingerprint,), memory.scope
    if memory.tier == "task":
        return replace(LIVE, fingerprints=fingerprints, scope=scope, tiers=("task",), task=memory.source.task)
    return replace(LIVE, fingerprints=fingerprints, scope=scope, tiers=("session", "project", "global"))


def _leave(tx: Transaction, memory: Memory, heir: str | None) -> None:
    """Archive what the target has now. Memories archived earlier stay unchanged, to keep their history."""
    current = tx.get(Memory, memory.id)
    if current is not None and not current.is_archived:
        tx.put(current.archived("superseded", tx.stamp.at, superseded_by=heir), ACTION)


def _take_conflicts(tx: Transaction, conflicts: Sequence[Conflict]) -> None:
    known = {(conflict.left, conflict.right, conflict.type) for conflict in tx.all(Conflict)}
    for conflict in conflicts:
        if conflict.resolved_at is None and (conflict.left, conflict.right, conflict.type) not in known:
            tx.add(replace(conflict, id=0), ACTION)


def _take_aliases(tx: Transaction, aliases: Sequence[Alias]) -> None:
    known = {alias.word: alias for alias in tx.all(Alias)}
    for alias in aliases:
        mine = known.get(alias.word)
        if mine is None:
            tx.add(replace(alias, id=0), ACTION)
        elif not set(alias.expands_to) <= set(mine.expands_to):
            tx.put(replace(mine, expands_to=tuple(dict.fromkeys((*mine.expands_to, *alias.expands_to)))), ACTION)
