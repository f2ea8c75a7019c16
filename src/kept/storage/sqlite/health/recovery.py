"""Repair a SQLite space in place: make again whatever follows from the rows, and accept whatever proves right.

Indexes, words, counts and vectors are built again; damaged notes are dropped; pages whose content proves right get
their checksum; and when only the end of the WAL is lost, the file goes on without it. Damaged memories, messages and
events are not repaired: a backup is the way back (fallback.py). Rule: nothing is overwritten that cannot be made again,
unless a synced copy of the file lies beside it.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import apsw

from kept import text
from kept.errors import Busy
from kept.model import NOUNS, Memory
from kept.storage.checkup import RESTORE, Finding, counted, named
from kept.storage.files import sync, unused, write_synced
from kept.storage.lock import Turns
from kept.storage.shared import WRITE_WAIT_S
from kept.storage.sqlite import acknowledged, erase, index, messages, pages, rows, schema, vectors
from kept.storage.sqlite.connection import connect, translated
from kept.storage.sqlite.health.check import (
    BESIDE,
    CHECKSUMS,
    DERIVED,
    NOT_CHECKED,
    NOTE_TABLES,
    SHELVES,
    WAL,
    damaged_notes,
    look,
    run_checks,
    tables_on,
)
from kept.storage.sqlite.health.history import ids_of, sound_row
from kept.storage.sqlite.pages import wal_of
from kept.storage.sqlite.schema import INDEXES, AllOrNothing

log = logging.getLogger("kept")

_COPY_BYTES = 1024 * 1024
# Notes that no checksum, journal or index proves, and the tables and indexes that hold them.
_NOTES = {
    "links": {"memory_links", "memory_links_back"},
    "vectors": {"vectors", "vector_signs", "vectorless"},
}
_NOTES_GROW_AGAIN = "They are made again as Kept is used. No memory is affected."
_NOT_OURS = frozenset({"sqlite", "disk", "permissions"})  # nothing that another file would cure


def repair(path: Path, *, now: datetime) -> list[Finding]:
    """Correct in place whatever can be corrected, and report what was done, what is lost, and what is left to restore.

    Raises Busy when the file is in use, and SchemaTooNew or InvalidInput when another version of Kept wrote it.
    """
    done = list(_close_to_others(path))
    if pages.is_being_swept(path):
        with _turn(path), translated(path):
            erase.recover_sweep(path)
    problems = _problems(path, now)
    if "schema" in problems and CHECKSUMS not in problems:
        _check_version(path)
    if problems & DERIVED and problems <= DERIVED | {CHECKSUMS}:
        with _turn(path):
            done += _rebuild_indexes(path)
        problems = _problems(path, now)
    if problems == {CHECKSUMS} and _is_whole_but_for_checksums(path, now):
        done += _seal(path)
        problems = _problems(path, now)
    if problems == {WAL}:
        with _turn(path), translated(path):
            done += _go_on_without_the_lost(path)
        problems = _problems(path, now)
    if problems:
        done.append(Finding("problem", "repair", f"Not repaired: {', '.join(sorted(problems))}.", RESTORE))
    return done or [Finding("ok", "repair", "There is nothing to repair.")]


def _check_version(path: Path) -> None:
    """Raise SchemaTooNew or InvalidInput when no byte has changed, but another version of Kept wrote the file."""
    with suppress(apsw.Error), closing(look(path)) as connection:  # or it is no file of ours at all
        schema.check_version(connection, path)
        schema.check_steps(connection, path)


def seal_if_whole(path: Path, *, now: datetime) -> bool:
    """Another program may have copied our WAL into the database: if all that is there proves right, pages get the
    checksums that they lack. Whether all of them fit now.

    Raises Busy when another process keeps writing, so that not everything could be checked.
    """
    if pages.bad_pages(path) and _is_whole_but_for_checksums(path, now):
        for finding in _seal(path):
            if finding.level == "note":
                log.warning("%s: %s %s", path, finding.message, finding.hint)
    return not pages.bad_pages(path)


def _is_whole_but_for_checksums(path: Path, now: datetime) -> bool:
    """Whether everything was looked at, and nothing is wrong but checksums of pages."""
    found = [finding for finding in run_checks(path, now=now, deep=True) if finding.check not in _NOT_OURS]
    wrong = {finding.check for finding in found if finding.level == "problem"}
    unknown = {finding.check for finding in found if finding.message.startswith(NOT_CHECKED)}
    if wrong <= {CHECKSUMS} and unknown & {CHECKSUMS, "index"}:
        raise Busy(f"{path} could not be checked, because another process keeps writing.", hint="Try again later.")
    return wrong == {CHECKSUMS} and not unknown


def _problems(path: Path, now: datetime) -> set[str]:
    found = run_checks(path, now=now, deep=True)
    return {finding.check for finding in found if finding.level == "problem"} - _NOT_OURS


def _close_to_others(path: Path) -> Iterator[Finding]:
    for suffix in BESIDE:
        file = path.with_name(path.name + suffix)
        if file.exists() and file.stat().st_mode & 0o077:
            with suppress(PermissionError):  # somebody else's file; the finding stays
                file.chmod(0o600)
                yield Finding("ok", "permissions", f"Only you can read {file.name} now.")


def _seal(path: Path) -> list[Finding]:
    """Each row, event and index was compared with what it must be, and found right: so is every page.

    Links and vectors have nothing to be compared with. Those on pages in doubt are dropped first.
    """
    with _turn(path), translated(path):
        connection = connect(path, is_verified=False)
        try:
            with AllOrNothing(connection):
                wrong = pages.bad_pages(path)
                dropped = _drop_notes(connection, wrong)
            connection.execute("begin immediate")  # so that no page goes into the WAL while it is sealed
            pages.seal(path, pages.bad_pages(path))
            connection.execute("rollback")
        finally:
            connection.close()
    if not wrong:
        return []  # somebody else was first
    message = f"The content was right, but the checksum was not. Corrected: {named('page', wrong)}."
    lost = [
        Finding("note", "notes", f"Dropped, because they could not be checked: {what}.", _NOTES_GROW_AGAIN)
        for what in dropped
    ]
    return [Finding("ok", CHECKSUMS, message), *lost]


def _drop_notes(connection: apsw.Connection, wrong: Collection[int]) -> list[str]:
    """Drop the links and the vectors if they have a page among these, and say which."""
    in_doubt = tables_on(connection, wrong)
    if in_doubt is None:
        in_doubt = {name for names in _NOTES.values() for name in names} if wrong else set()
    dropped = [what for what, names in _NOTES.items() if in_doubt & names]
    if "links" in dropped:
        connection.execute("delete from memory_links")
    if "vectors" in dropped:
        vectors.make_again(connection)
    return dropped


def _rebuild_indexes(path: Path) -> list[Finding]:
    """Words, indexes and counts from the rows; damaged notes go. When that fails, the file needs more than this."""
    connection = connect(path, is_verified=False)
    try:
        with AllOrNothing(connection):
            dropped = _drop_damaged_notes(connection)
            _prepare_words_again(connection)
            for shelf in INDEXES:
                connection.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('rebuild')")
            connection.execute("delete from corpus")
            connection.executemany(
                """
                insert into corpus (shelf, rows, words, tokens)
                select ?1, count(*), coalesce(sum(n_words), 0), coalesce(sum(n_tokens), 0)
                from memories
                where shelf = ?1""",
                [(shelf,) for shelf in (*SHELVES, "forgotten")],
            )
            connection.execute("""
                insert into corpus (shelf, rows, words, tokens)
                select 'messages', count(*), coalesce(sum(n_words), 0), coalesce(sum(n_words), 0)
                from messages""")
            connection.execute("delete from hot_words")
            connection.execute("delete from meta where name like 'hot_words_at_%'")
            index.rebuild(connection)
            vectors.rebuild(connection)
    except apsw.Error:
        return []
    finally:
        connection.close()
    return [*dropped, Finding("ok", "index", "The search indexes were rebuilt. No memory is lost.")]


def _drop_damaged_notes(connection: apsw.Connection) -> list[Finding]:
    """Drop the receipts and the notes about files that are not what was written; all of a table with broken text."""
    findings = []
    for noun, table in NOTE_TABLES.items():
        try:
            damaged = damaged_notes(connection, table)
        except UnicodeDecodeError:
            damaged = [key for (key,) in connection.execute(f"select {table.key} from {table.name}")]
        connection.executemany(f"delete from {table.name} where {table.key} = ?", [(key,) for key in damaged])
        if damaged:
            findings.append(Finding("note", "notes", f"Dropped, because damaged: {counted(len(damaged), noun)}."))
    return findings


def _prepare_words_again(connection: apsw.Connection) -> None:
    for id in ids_of(connection, Memory):
        row = sound_row(connection, Memory, id)
        if row is not None:
            fresh = rows.to_row(rows.to_memory(row, ""))
            assignments = ", ".join(f"{column} = ?" for column in fresh)
            connection.execute(f"update memories set {assignments} where id = ?", (*fresh.values(), id))
    sql = f"select id, {', '.join(messages.COLUMNS)} from messages"
    for message_id, *values in connection.execute(sql).fetchall():
        words, n_words = text.words_and_length(str(values[messages.COLUMNS.index("content")]))
        prepared = (*values[:-2], " ".join(words), n_words)
        sql = "update messages set words = ?, n_words = ?, checksum = ? where id = ?"
        connection.execute(sql, (*prepared[-2:], rows.checksum(prepared), message_id))


def _go_on_without_the_lost(path: Path) -> list[Finding]:
    """Go on with what SQLite reads when acknowledged writes are missing at the end; keep the files as they were."""
    with _alone_with(path) as file:
        copy = _copy_aside(path, file)
    noted = acknowledged.noted(path)
    connection = connect(path)
    try:
        found = acknowledged.position_of(connection)
        n_events, n_messages = max(0, noted.event - found.event), max(0, noted.message - found.message)
        with AllOrNothing(connection):
            _give_no_id_again(connection, n_events, n_messages)
        erase.empty_the_wal(connection)
    finally:
        connection.close()
    acknowledged.clear(path, durably=True)
    lost = f"Lost: the last {counted(n_events, 'event')} and {counted(n_messages, 'message')}."
    return [Finding("problem", WAL, lost, f"{copy.name} and its WAL are the files as they were.")]


def _give_no_id_again(connection: apsw.Connection, n_events: int, n_messages: int) -> None:
    """Skip the ids of whatever is lost: an event gives at most one."""
    skipped = {rows.table_of(noun): n_events for noun in NOUNS} | {"messages": n_messages}
    for table, number in skipped.items():
        connection.execute("update sqlite_sequence set seq = seq + ? where name = ?", (number, table))
        if not connection.changes():
            connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, number))


@contextmanager
def _alone_with(path: Path) -> Iterator[apsw.VFSFile]:
    """The file, while nobody has it open. Raises Busy otherwise."""
    with pages.opened(path) as file:
        try:
            file.xLock(apsw.SQLITE_LOCK_SHARED)
            file.xLock(apsw.SQLITE_LOCK_EXCLUSIVE)
        except apsw.BusyError:
            raise Busy(
                f"{path} is open in another program, so it cannot be repaired.",
                hint="Close the program that uses it (an MCP server, an agent, `kept serve`), then try again.",
            ) from None
        try:
            yield file
        finally:
            file.xUnlock(apsw.SQLITE_LOCK_NONE)


def _copy_aside(path: Path, file: apsw.VFSFile) -> Path:
    """A synced copy of the file and its WAL, under a name that is not taken."""
    copy = unused(path.parent, f"{path.name}.damaged-{{}}")
    size = file.xFileSize()
    chunks = (file.xRead(min(_COPY_BYTES, size - start), start) for start in range(0, size, _COPY_BYTES))
    write_synced(copy, chunks, is_new=True)
    if wal_of(path).exists():
        write_synced(wal_of(copy), [wal_of(path).read_bytes()], is_new=True)
    sync(path.parent)
    return copy


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    turns = Turns(path.with_name(path.name + ".lock"))
    try:
        turns.take(WRITE_WAIT_S)
        try:
            yield
        finally:
            turns.end()
    finally:
        turns.close()
