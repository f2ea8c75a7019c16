"""Merge two projects: one takes over what the other has kept, and answers for it from then on.

Facade layer. Rule: the target is written first and the source is archived afterwards, both in batches, and a memory
is known by its uid; so whoever was interrupted starts again and goes on, and nothing is ever in neither.
"""

import secrets
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kept import access
from kept.errors import InvalidInput
from kept.home import Home
from kept.model import Actor, Alias, Allowance, Conflict, Memory, replace
from kept.ports import ANYWHERE, LIVE, Clock, Stamp, Storage, Transaction, Where
from kept.projects import Projects
from kept.registry import Project
from kept.settings import Settings
from kept.spaces import open_file

BATCH = 500  # memories a transaction: others get their turn in between
ACTION = "merge"


class Merged(Struct, frozen=True, kw_only=True):
    """What a merge did. A memory that says what the target says already is a duplicate and was not copied."""

    into: Project
    moved: int
    duplicates: int
    erased: int


def merge(projects: Projects, source: str, into: str, *, actor: Actor, settings: Settings, clock: Clock) -> Merged:
    """Move the memories of project `source` into project `into`, archived and forgotten ones too; then retire it.

    Open conflicts, aliases and allowances come along; whether it is paused does not. Raises NotAllowed unless the
    actor may write both.
    """
    giver, taker = projects.get(source), projects.get(into)
    if giver.id == taker.id:
        raise InvalidInput(
            f"{source!r} and {into!r} are one project: {taker.id}.", hint="`kept projects list` shows names and ids."
        )
    for project in (giver, taker):
        access.check_write(actor, project.space)
    counts = {"moved": 0, "duplicates": 0, "erased": 0}
    if projects.home.files(giver.folder).database.exists():
        stores = _open(projects.home, giver, settings, clock), _open(projects.home, taker, settings, clock)
        try:
            _move(*stores, counts, actor=actor, clock=clock)
        finally:
            for store in stores:
                store.close()
    return Merged(into=projects.retire(giver.id, taker.id), **counts)


def _open(home: Home, project: Project, settings: Settings, clock: Clock) -> Storage:
    return open_file(home.prepare(project.folder).database, project.space, settings, clock)


def _move(giver: Storage, taker: Storage, counts: dict[str, int], *, actor: Actor, clock: Clock) -> None:
    stamp = Stamp(group=secrets.token_hex(8), at=clock(), actor=actor.name)
    for batch in _batches(giver):
        heirs = {}
        with taker.writing(stamp) as tx:
            for memory in batch:
                heir, outcome = _take(tx, memory)
                heirs[memory.uid] = heir
                if outcome:
                    counts[outcome] += 1
        with giver.writing(stamp) as tx:
            for memory in batch:
                _leave(tx, memory, heirs[memory.uid])
    with giver.reading() as reader:
        conflicts, aliases, allowances = reader.all(Conflict), reader.all(Alias), reader.all(Allowance)
    with taker.writing(stamp) as tx:
        _take_conflicts(tx, conflicts)
        _take_aliases(tx, aliases)
        known = {allowance.digest for allowance in tx.all(Allowance)}
        for allowance in allowances:
            if allowance.digest not in known:
                tx.add(replace(allowance, id=0), ACTION)


def _batches(giver: Storage) -> Iterator[list[Memory]]:
    """All memories of the store, oldest first; what others add meanwhile comes last."""
    after = 0
    while True:
        with giver.reading() as reader:
            batch = reader.select(ANYWHERE, limit=BATCH, after=after, oldest_first=True)
        if not batch:
            return
        yield batch
        after = batch[-1].id


def _take(tx: Transaction, memory: Memory) -> tuple[str | None, str]:
    """Store a copy unless it is there already; the uid under which it is found from now on, and what was done."""
    if tx.select(replace(ANYWHERE, uid=memory.uid), limit=1):
        return memory.uid, ""
    if tx.is_erased(memory.fingerprint):
        return None, "erased"
    twins = [] if memory.is_archived else tx.select(_same(memory), limit=1, oldest_first=True)
    if memory.key is not None and not twins:
        twins = tx.select(replace(ANYWHERE, key=memory.key), limit=1)
    if twins:
        return twins[0].uid, "duplicates"
    tx.add(replace(memory, id=0, space=tx.space), ACTION)
    return memory.uid, "moved"


def _same(memory: Memory) -> Where:
    return replace(LIVE, fingerprint=memory.fingerprint, scope=memory.scope)


def _leave(tx: Transaction, memory: Memory, heir: str | None) -> None:
    """Archive what the target has now. What was archived before stays as it was, for its history's sake."""
    current = tx.get(Memory, memory.id)
    if current is not None and not current.is_archived:
        at = tx.stamp.at
        tx.put(
            replace(current, status="archived", reason="superseded", superseded_by=heir, archived_at=at, updated_at=at),
            ACTION,
        )


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
