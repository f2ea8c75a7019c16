"""Going back to a backup.

The backup is copied beside the database first, brought up to date, and told what was erased meanwhile. Then it is
copied *into* the database in one transaction, through SQLite: a file that is only renamed into place would leave
every process that has the old one open writing to a file without a name. Rule: the state before is kept as a
backup, what was erased stays erased, and an id that was given is never given again.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import apsw

from kept.errors import Corrupt, InvalidInput, NotAllowed
from kept.model import replace
from kept.ports import ANYWHERE, Restored, Stamp
from kept.storage.shared import tombstone
from kept.storage.sqlite import acknowledged, backup, schema, scrub
from kept.storage.sqlite.connection import translated
from kept.storage.sqlite.transaction import SqliteTransaction
from kept.storage.turns import Turns

_KEPT_FACTS = ("scrub", "backups_elsewhere")  # what the database has to remember, whatever a backup says


def space_of(source: Path) -> str:
    """Which space a file is a backup of. Raises NotFound, Corrupt or SchemaTooNew unless it can be restored."""
    backup.verify(source)
    with translated(source), _opened(source, apsw.SQLITE_OPEN_READONLY) as original:
        schema.check_version(original, source)
        return _facts(original, source)["space"]


def restore(connection: apsw.Connection, path: Path, source: Path, *, overwrite_newer: bool, now: datetime) -> Restored:
    """Make the database what the backup holds. Call it in this process's turn to write."""
    with _staged(path, source, now) as staged, translated(path), _opened(staged) as copy:
        has_events = connection.execute("select 1 from events limit 1").fetchone() is not None
        if has_events and not overwrite_newer:
            _check_nothing_is_lost(connection, copy, path, source)
        left_out = _carry_over(connection, copy, path, source, now)
        events = int(copy.execute("select max(seq) from events").get or 0)
        memories = int(copy.execute("select count(*) from memories").get)
        replaced = backup.make_folder(path) / f"replaced-{now:%Y%m%d-%H%M%S-%f}.db"
        if has_events:
            backup.back_up(connection, replaced, backup.no_turn)
        acknowledged.clear(path)  # it would take the restored journal, which may be shorter, for a loss
        with connection.backup("main", copy, "main") as job:
            job.step(-1)
        acknowledged.note(path, path.stat().st_ino, events)
        return Restored(
            memories=memories, events=events, left_out=left_out, replaced=str(replaced) if has_events else None
        )


def replace_damaged(path: Path, source: Path, *, space: str, wait_s: float, now: datetime) -> Restored:
    """Put a backup in the place of a file that cannot be opened any more, which is kept aside as it is."""
    turns = Turns(path.with_name(path.name + ".lock"))
    turns.take(wait_s)
    try:
        with _staged(path, source, now) as staged:
            with translated(source), _opened(staged) as copy:
                _replace_facts(copy, _facts(copy, source) | {"space": space})
            memories, events = backup.verify(staged)
            aside = backup.make_folder(path) / f"damaged-{now:%Y%m%d-%H%M%S-%f}.db"
            os.link(path, aside)
            for suffix in ("-wal", "-shm"):  # of the damaged file; beside the restored one they would damage it, too
                companion = path.with_name(path.name + suffix)
                if companion.exists():
                    companion.rename(aside.with_name(aside.name + suffix))
            acknowledged.clear(path)
            staged.rename(path)
            backup.sync(path.parent)
    finally:
        turns.end()
        turns.close()
    return Restored(memories=memories, events=events, left_out=0, replaced=str(aside))


@contextmanager
def _staged(path: Path, source: Path, now: datetime) -> Iterator[Path]:
    """The backup, checked and brought up to date, in a file of its own beside the database."""
    backup.verify(source)
    if path.exists() and source.samefile(path):
        raise InvalidInput(f"{source} is the database itself.", hint="Give the file that `kept backup` wrote.")
    with backup.under_another_name(backup.make_folder(path) / "restoring.db") as part:
        with translated(source), _opened(source, apsw.SQLITE_OPEN_READONLY) as original:
            version = schema.check_version(original, source)
            backup.copy_database(original, part)
        if version < schema.LATEST:
            with _opened(part) as copy:
                schema.check_checksums(copy, source, schema.migrations())
                schema.migrate(copy, source, schema.migrations(), now)
        yield part


def _check_nothing_is_lost(store: apsw.Connection, copy: apsw.Connection, path: Path, source: Path) -> None:
    if _facts(copy, source)["space"] != _facts(store, path)["space"]:
        raise NotAllowed(f"{source} is a backup of another space than that in {path}.")
    last = store.execute("select seq, hash from events order by seq desc limit 1").fetchone()
    if last and copy.execute("select 1 from events where seq = ? and hash = ?", last).fetchone() is None:
        raise NotAllowed(
            f"{path} has changes that {source} does not know.",
            hint="Restoring would take them back; the present state would stay beside it as a backup.",
        )


def _carry_over(store: apsw.Connection, copy: apsw.Connection, path: Path, source: Path, now: datetime) -> int:
    """What must not be forgotten by going back: whose store it is, what was erased, which ids were given.

    Returns how many memories of the backup were erased since it was made.
    """
    ours, theirs = _facts(store, path), _facts(copy, source)
    erased = _erased(store, copy, bytes.fromhex(ours["tombstone_key"]))
    stamp = Stamp(group=secrets.token_hex(8), at=now, actor="restore")
    tx = SqliteTransaction(theirs["space"], copy, stamp, secrets.token_hex)
    with copy:
        for uid in erased:
            for memory in tx.select(replace(ANYWHERE, uid=uid), limit=1):
                tx.erase(memory)  # journaled: a payload that is missing without a reason is a fault
        scrub.cover_tracks(copy)
        if theirs["tombstone_key"] != ours["tombstone_key"]:
            copy.execute("delete from tombstones")  # marks can be read with the key they were made with, and no other
        marks = store.execute("select mark from tombstones").fetchall()
        copy.executemany("insert into tombstones (mark) values (?) on conflict do nothing", marks)
        _replace_facts(copy, theirs | {"space": ours["space"], "tombstone_key": ours["tombstone_key"]})
        for name in _KEPT_FACTS:
            copy.execute("delete from meta where name = ?", (name,))
            kept = store.execute("select name, value from meta where name = ?", (name,)).fetchall()
            copy.executemany("insert into meta (name, value) values (?, ?)", kept)
        for table, number in store.execute("select name, seq from sqlite_sequence").fetchall():
            copy.execute("update sqlite_sequence set seq = max(seq, ?) where name = ?", (number, table))
            if not copy.changes():
                copy.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, number))
    return len(erased)


def _erased(store: apsw.Connection, copy: apsw.Connection, key: bytes) -> list[str]:
    """The memories of the copy that the store knew once and has no more, or whose text was erased under another uid."""
    marks = {mark for (mark,) in store.execute("select mark from tombstones")}
    said_again = {fingerprint for (fingerprint,) in store.execute("select fingerprint from memories")}
    was_erased = """
        select not exists (select 1 from memories where uid = ?1)
           and exists (select 1 from events where subject = ?1)"""
    return [
        str(uid)
        for uid, fingerprint in copy.execute("select uid, fingerprint from memories").fetchall()
        if store.execute(was_erased, (uid,)).get
        or (fingerprint not in said_again and tombstone(key, str(fingerprint)) in marks)
    ]


def _replace_facts(copy: apsw.Connection, facts: dict[str, str]) -> None:
    copy.executemany("delete from meta where name = ?", [(name,) for name in (*facts, "seal")])
    schema.settle_facts(copy, facts)


def _facts(connection: apsw.Connection, path: Path) -> dict[str, str]:
    facts = schema.facts_of(connection, path)
    if not facts:
        raise Corrupt(f"{path} does not say which space it holds.", hint="Use another backup.")
    return facts


@contextmanager
def _opened(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path), flags=flags)
    try:
        connection.pragma("secure_delete", True)
        connection.pragma("foreign_keys", True)
        yield connection
    finally:
        connection.close()
