"""Restore a backup.

The backup is first copied beside the database, migrated, and cleaned of everything erased since it was made. Then it
is copied *into* the database in one transaction, through SQLite: after a mere rename, every process that has the old
file open would keep writing to a file without a name. Rule: the previous state is kept as a backup, erased memories
stay erased, and an id is never given twice.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import apsw

from kept.errors import Corrupt, InvalidInput, NotAllowed
from kept.ports import RestoreReport
from kept.storage.files import sync, unused
from kept.storage.lock import Turns
from kept.storage.shared import tombstone
from kept.storage.sqlite import acknowledged, backup, pages, schema
from kept.storage.sqlite.connection import translated
from kept.storage.sqlite.encoding import uid_text
from kept.storage.sqlite.erase import RECEIPTS, SESSION
from kept.storage.sqlite.schema import AllOrNothing

# What the store itself has to remember, whatever a backup says: pending and past erasures, and where backups are.
_KEPT_FACTS = ("scrub", "erasures", "backups_elsewhere")


def space_of(source: Path) -> str:
    """Which space a file is a backup of. Raises NotFound, Corrupt or SchemaTooNew unless it can be restored."""
    backup.verify(source)
    with translated(source), backup.opened(source, apsw.SQLITE_OPEN_READONLY) as original:
        schema.check_version(original, source)
        return _facts(original, source)["space"]


class DamagedStore(Exception):
    """The store cannot be read, and the backup can. Never leaves the storage."""


def restore(store: apsw.Connection, path: Path, source: Path, *, overwrite_newer: bool, now: datetime) -> RestoreReport:
    """Replace the content of the store with that of the backup. Call it in this process's turn to write.

    Raises DamagedStore when a page of the store cannot be read: then `replace_damaged` can still replace the file.
    """
    with _staged(path, source, now) as staged, backup.opened(staged) as copy:
        try:
            with translated(path):
                return _restore(store, copy, path, source, overwrite_newer=overwrite_newer, now=now)
        except Corrupt as damage:
            if overwrite_newer:
                raise DamagedStore from damage
            raise NotAllowed(
                f"{damage.message} It may have changes that are not in {source}.",
                hint="Restoring would discard them. The damaged file would be kept beside the restored one.",
            ) from damage


def _restore(
    store: apsw.Connection, copy: apsw.Connection, path: Path, source: Path, *, overwrite_newer: bool, now: datetime
) -> RestoreReport:
    is_empty = acknowledged.position_of(store) == acknowledged.Position()
    if not is_empty and not overwrite_newer:
        _check_nothing_is_lost(store, copy, path, source)
    left_out = _carry_over(store, copy, path, source, now)
    replaced = unused(backup.make_folder(path), f"replaced-{now:%Y-%m-%d}-{{}}.db")
    if not is_empty:
        backup.back_up(store, replaced, backup.no_turn)
    acknowledged.clear(path, durably=True)  # it would take the restored journal, which may be shorter, for a loss
    with store.backup("main", copy, "main") as job:
        job.step(-1)
    position = acknowledged.position_of(copy)
    acknowledged.note(path, path.stat().st_ino, position.event, position.message)
    return RestoreReport(
        memories=int(copy.execute("select count(*) from memories").get),
        events=position.event,
        left_out=left_out,
        replaced=None if is_empty else str(replaced),
    )


def replace_damaged(path: Path, source: Path, *, space: str, wait_s: float, now: datetime) -> RestoreReport:
    """Replace a file that cannot be read with a backup. The damaged file is kept beside it, unchanged."""
    turns = Turns(path.with_name(path.name + ".lock"))
    turns.take(wait_s)
    try:
        with _staged(path, source, now) as staged:
            with translated(source), backup.opened(staged) as copy:
                _replace_facts(copy, _facts(copy, source) | {"space": space})
            memories, events = backup.verify(staged)
            aside = unused(path.parent, f"{path.name}.damaged-{{}}")
            os.link(path, aside)
            for suffix in ("-wal", "-shm"):  # of the damaged file; beside the restored one they would also damage it
                companion = path.with_name(path.name + suffix)
                if companion.exists():
                    companion.rename(aside.with_name(aside.name + suffix))
            sync(staged)
            acknowledged.clear(path)
            staged.rename(path)
            sync(path.parent)
    finally:
        turns.end()
        turns.close()
    return RestoreReport(memories=memories, events=events, replaced=str(aside))


@contextmanager
def _staged(path: Path, source: Path, now: datetime) -> Iterator[Path]:
    """The backup, checked and brought up to date, in a file of its own beside the database."""
    backup.verify(source)
    if path.exists() and source.samefile(path):
        raise InvalidInput(f"{source} is the database itself.", hint="Give the file that `kept store backup` wrote.")
    with backup.under_another_name(backup.make_folder(path) / "restoring.db") as part:
        with translated(source), backup.opened(source, apsw.SQLITE_OPEN_READONLY) as original:
            version = schema.check_version(original, source)
            schema.check_steps(original, source)
            backup.copy_database(original, part)
        if version < schema.LATEST:
            with backup.opened(part) as copy:
                schema.migrate(copy, source, schema.migrations(), now)
        pages.add_checksums(part)
        yield part


def _check_nothing_is_lost(store: apsw.Connection, copy: apsw.Connection, path: Path, source: Path) -> None:
    if _facts(copy, source)["space"] != _facts(store, path)["space"]:
        raise NotAllowed(f"{source} is a backup of another space than the one in {path}.")
    last = store.execute("select seq, hash from events order by seq desc limit 1").fetchone()
    if last and copy.execute("select 1 from events where seq = ? and hash = ?", last).fetchone() is None:
        raise NotAllowed(
            f"{path} has changes that are not in {source}.",
            hint="Restoring would discard them. The current state would be kept as a backup.",
        )


def _carry_over(store: apsw.Connection, copy: apsw.Connection, path: Path, source: Path, now: datetime) -> int:
    """Carry over into the restored copy the space, the erasures and the used ids.

    Returns how many memories of the backup were erased since it was made.
    """
    ours, theirs = _facts(store, path), _facts(copy, source)
    number_of_memories = "select count(*) from memories"
    before = int(copy.execute(number_of_memories).get)
    with AllOrNothing(copy):
        erased = _erased(store, copy, bytes.fromhex(ours["tombstone_key"]))
        backup.erase_in(copy, erased, store, now)
        if theirs["tombstone_key"] != ours["tombstone_key"]:
            copy.execute("delete from tombstones")  # marks can be read with the key they were made with, and no other
        marks = store.execute("select mark from tombstones").fetchall()
        copy.executemany("insert into tombstones (mark) values (?) on conflict do nothing", marks)
        _replace_facts(copy, theirs | {"space": ours["space"], "tombstone_key": ours["tombstone_key"]})
        for name in _KEPT_FACTS:
            kept = store.execute("select name, value from meta where name = ?", (name,)).fetchall()
            copy.execute("delete from meta where name = ?", (name,))
            copy.executemany("insert into meta (name, value) values (?, ?)", kept)
        for table, number in store.execute("select name, seq from sqlite_sequence").fetchall():
            copy.execute("update sqlite_sequence set seq = max(seq, ?) where name = ?", (number, table))
            if not copy.changes():
                copy.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, number))
    return before - int(copy.execute(number_of_memories).get)


def _erased(store: apsw.Connection, copy: apsw.Connection, key: bytes) -> list[str]:
    """What the copy holds, or held before it was rewritten, although it was erased from the store."""
    marks = {mark for (mark,) in store.execute("select mark from tombstones")}
    there = {uid for (uid,) in store.execute("select uid from memories")}
    sql = "select distinct subject from events where typeof(subject) = 'blob'"  # uids, that is
    no_more = {subject for (subject,) in store.execute(sql)} - there
    gone = [uid_text(subject) for (subject,) in copy.execute(sql).fetchall() if subject in no_more]
    sql = "select subject, hash from events where action = 'erase'"
    known = {hash for (hash,) in copy.execute("select hash from events where action = 'erase'")}
    gone += [uid_text(subject) for subject, hash in store.execute(sql) if hash not in known]  # it may live on, redacted
    sql = "select session from messages union select session from packed_sessions"
    sessions = [f"{SESSION}{session}" for (session,) in copy.execute(sql).fetchall()]
    receipts = [RECEIPTS] if marks else []
    return [*dict.fromkeys(gone), *receipts, *(session for session in sessions if tombstone(key, session) in marks)]


def _replace_facts(copy: apsw.Connection, facts: dict[str, str]) -> None:
    copy.executemany("delete from meta where name = ?", [(name,) for name in (*facts, "seal")])
    schema.settle_facts(copy, facts)


def _facts(connection: apsw.Connection, path: Path) -> dict[str, str]:
    facts = schema.facts_of(connection, path)
    if not facts:
        raise Corrupt(f"{path} does not say which space it holds.", hint="Use another backup.")
    return facts
