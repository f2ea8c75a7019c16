"""Repair a SQLite space: rebuild what can be derived, and rescue the rest into a new file.

salvage.py finds what can be saved and writes a new file; this module runs the steps in order. Rule: a damaged file is
never changed, deleted or replaced before a synced copy of it lies beside it. Only sound data is changed in place:
indexes are rebuilt, and pages get the checksum of what they hold.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import apsw

from kept import text
from kept.errors import Busy, Corrupt, SchemaTooNew
from kept.model import Memory
from kept.storage.files import sync, unused, write_synced
from kept.storage.lock import Turns
from kept.storage.shared import WRITE_WAIT_S
from kept.storage.sqlite import acknowledged, erase, index, messages, pages, rows, schema, vectors
from kept.storage.sqlite.connection import connect, translated
from kept.storage.sqlite.health import Finding, named
from kept.storage.sqlite.health.check import BESIDE, CHECKSUMS, NOT_CHECKED, SHELVES, examine, look
from kept.storage.sqlite.health.history import ids_of, sound_row
from kept.storage.sqlite.health.salvage import build, salvage
from kept.storage.sqlite.pages import Image, wal_of
from kept.storage.sqlite.schema import INDEXES, AllOrNothing

log = logging.getLogger("kept")

_COPY_BYTES = 1024 * 1024
_DERIVED = frozenset({"index", "statistics", "vectors", "words"})  # can be rebuilt inside the file
# Notes that no checksum, journal or index proves, and the tables and indexes that hold them.
_NOTES = {
    "links": {"memory_links", "memory_links_back"},
    "vectors": {"vectors", "vector_signs", "vectorless"},
}
_NOTES_GROW_AGAIN = "They are made again as Kept is used. No memory is affected."
_NOT_OURS = frozenset({"sqlite", "disk", "permissions"})  # nothing that another file would cure


def repair(path: Path, *, now: datetime) -> list[Finding]:
    """Correct what `examine` finds, and report what was done and what is lost.

    Raises Busy when the file is in use, SchemaTooNew or InvalidInput when another version of Kept wrote it, and Corrupt
    when nothing could be saved; then it is as it was.
    """
    done = list(_close_to_others(path))
    if pages.is_being_swept(path):
        with _turn(path), translated(path):
            erase.recover_sweep(path)
    problems = _problems(path, now)
    if "schema" in problems and CHECKSUMS not in problems:  # no byte has changed: it is the file of another version
        with suppress(apsw.Error), closing(look(path)) as connection:  # or it is no file of ours at all
            schema.check_steps(connection, path)
    if problems & _DERIVED and problems <= _DERIVED | {CHECKSUMS}:
        with _turn(path):
            done += _rebuild_indexes(path)
        problems = _problems(path, now)
    if problems == {CHECKSUMS} and _is_whole_but_for_checksums(path, now):
        done += _seal(path)
        problems = _problems(path, now)
    if problems:
        with _turn(path), translated(path):
            done += _rebuild(path, now)
    return done or [Finding("ok", "repair", "There is nothing to repair.")]


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
    found = [finding for finding in examine(path, now=now, deep=True) if finding.check not in _NOT_OURS]
    wrong = {finding.check for finding in found if finding.level == "problem"}
    unknown = {finding.check for finding in found if finding.message.startswith(NOT_CHECKED)}
    if wrong <= {CHECKSUMS} and unknown & {CHECKSUMS, "index"}:
        raise Busy(f"{path} could not be checked, because another process keeps writing.", hint="Try again later.")
    return wrong == {CHECKSUMS} and not unknown


def _problems(path: Path, now: datetime) -> set[str]:
    found = examine(path, now=now, deep=True)
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
    try:
        sql = "select distinct s.name from dbstat s join json_each(?) on s.pageno = value"
        in_doubt = {str(name) for (name,) in connection.execute(sql, (rows.json_text([*wrong]),))}
    except apsw.SQLError:  # this SQLite was built without dbstat
        in_doubt = {name for names in _NOTES.values() for name in names} if wrong else set()
    dropped = [what for what, names in _NOTES.items() if in_doubt & names]
    if "links" in dropped:
        connection.execute("delete from memory_links")
    if "vectors" in dropped:
        vectors.make_again(connection)
    return dropped


def _rebuild_indexes(path: Path) -> list[Finding]:
    """Words, indexes and counts from the rows. When that fails, the file needs more than this."""
    connection = connect(path, is_verified=False)
    try:
        with AllOrNothing(connection):
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
    return [Finding("ok", "index", "The search indexes were rebuilt. Nothing is lost.")]


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


def _rebuild(path: Path, now: datetime) -> list[Finding]:
    """Save what can be saved into a new file, and let that take the name."""
    accepted = _frames_that_sqlite_reads(path)
    with _alone_with(path) as file:
        wal = wal_of(path)
        older = (Image(file, wal, frames=frames) for frames in (accepted, 0))
        saved = salvage(Image(file, wal), older)
        if saved.is_empty:
            raise Corrupt(
                f"{path} holds nothing that Kept could recover.",
                hint="The file is unchanged. `kept restore FILE` restores a backup.",
            )
        rebuilt = path.with_name(path.name + ".rebuilt")
        leftovers = [rebuilt.with_name(rebuilt.name + suffix) for suffix in BESIDE]
        try:
            for leftover in leftovers:
                leftover.unlink(missing_ok=True)
            findings = build(rebuilt, saved, acknowledged.noted(path), now)
            if problems := _problems(rebuilt, now):
                raise Corrupt(f"{path} could not be repaired: the new file also has problems ({', '.join(problems)}).")
            sync(rebuilt)
            copy = _copy_aside(path, file)
            wal.unlink(missing_ok=True)
            path.with_name(path.name + "-shm").unlink(missing_ok=True)
            rebuilt.replace(path)
            sync(path.parent)
            # Whoever opened the old file in the meantime, and waits for us, must not take it for the new one.
            file.xWrite(bytes(16), 0)
        finally:
            for leftover in leftovers:
                leftover.unlink(missing_ok=True)
    return [Finding("note", "file", f"The damaged file is kept as {copy.name}."), *findings]


def _frames_that_sqlite_reads(path: Path) -> int:
    """How much of the WAL is beyond doubt. Raises SchemaTooNew for a file that is none of ours to repair."""
    with suppress(apsw.Error):
        connection = look(path)
        try:
            newest = int(connection.execute("select max(version) from migrations").get or 0)
            if newest > schema.LATEST:  # and not only a damaged number in the header
                raise SchemaTooNew(f"{path} was written by a newer kept.", hint="Repair it with that version.")
            return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
        finally:
            connection.close()
    return 0


@contextmanager
def _alone_with(path: Path) -> Iterator[apsw.VFSFile]:
    """The file, while nobody has it open. Raises Busy otherwise."""
    with pages.opened(path) as file:
        try:
            file.xLock(apsw.SQLITE_LOCK_SHARED)
            file.xLock(apsw.SQLITE_LOCK_EXCLUSIVE)
        except apsw.BusyError:
            raise Busy(
                f"{path} is open in another program, so it cannot be replaced.",
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
