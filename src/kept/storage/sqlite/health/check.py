"""Examine a SQLite space and say what is wrong with it, without changing anything.

First the surroundings: permissions, the current writer, disk space, backups. Then the file itself. Rule: every byte
that an answer could come from is checked: pages, rows and events against their checksums, indexes against rows, rows
against the journal (history.py). A check that was not made is reported.
"""

import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec
from msgspec import Struct

from kept import text
from kept.errors import InvalidInput, KeptError, SchemaTooNew, SettingsError
from kept.model import NOUNS, Memory
from kept.storage.checkup import FIX, NAMED, REBUILD, RESTORE, Finding, counted, named, size
from kept.storage.lock import Turns, held
from kept.storage.messages import from_pack
from kept.storage.shared import is_tombstone, prepare
from kept.storage.sqlite import acknowledged, erase, index, messages, pages, reserve, rows, schema, vectors
from kept.storage.sqlite.acknowledged import backups_of
from kept.storage.sqlite.connection import READ_WAIT_MS, check_library, translated
from kept.storage.sqlite.encoding import uid_text
from kept.storage.sqlite.health.history import check_journal, ids_of, sound_row
from kept.storage.sqlite.pages import wal_frames, wal_of
from kept.storage.sqlite.reader import COUNTER
from kept.storage.sqlite.schema import INDEXES

BESIDE = ("", "-wal", "-shm", ".lock", ".reserve")  # what stands beside a database, and the database itself

NO_BACKUP = "Kept makes one a day as you work. `kept store backup FILE` writes one now, with --global of global memory."
_OLD_BACKUP = timedelta(days=3)
_COMFORT = 16  # times the reserve: less room than this is next to none


def look_around(path: Path, now: datetime) -> Iterator[Finding]:
    """Everything that can be said from outside."""
    yield from _library()
    yield from _permissions(path)
    yield from _lock(path)
    yield from _disk(path)
    yield from _backups(path, now)
    for copy in sorted(path.parent.glob(f"{path.name}.damaged-*[0-9]")):
        message = f"{copy.name} is the damaged file that a restore or a repair kept."
        yield Finding("note", "file", message, "Delete it when you no longer need it.")


def _library() -> Iterator[Finding]:
    version = apsw.sqlite_lib_version()
    try:
        check_library(version)
    except KeptError as error:
        yield Finding("problem", "sqlite", error.message, error.hint)
    else:
        yield Finding("ok", "sqlite", f"SQLite {version}.")


def _run(*words: str | Path) -> str:
    """Return a hint with a command that works in any folder."""
    return f"Run `{shlex.join(map(str, words))}`."


def _permissions(path: Path) -> Iterator[Finding]:
    if sys.platform == "win32":
        return
    files = [path.with_name(path.name + suffix) for suffix in BESIDE]
    readable = [file for file in files if file.exists() and file.stat().st_mode & 0o077]
    folder = path.parent
    mode = folder.stat().st_mode if folder.is_dir() else 0
    if readable:
        message = f"Other users of this machine can read {', '.join(file.name for file in readable)}."
        yield Finding("problem", "permissions", message, _run("chmod", "600", *readable))
    if mode & 0o022 and not mode & 0o1000:  # in a folder with the sticky bit only the owner can replace a file
        message = f"Other users of this machine can replace {path.name}."
        yield Finding("problem", "permissions", message, _run("chmod", "go-w", folder))
    elif mode & 0o077 and path.name == "kept.db":  # a home is private; a file that somebody carries about may lie open
        message = f"Other users of this machine can list {folder}."
        yield Finding("note", "permissions", message, _run("chmod", "700", folder))
    elif not readable:
        yield Finding("ok", "permissions", "Only you can read the file.")


def _lock(path: Path) -> Iterator[Finding]:
    lock = path.with_name(path.name + ".lock")
    if not lock.exists():
        return
    turns = Turns(lock)
    try:
        if turns.is_taken():
            yield Finding("note", "lock", f"Process {turns.holder() or '(unknown)'} is writing right now.")
        else:
            yield Finding("ok", "lock", "Nobody is writing.")
    finally:
        turns.close()


def _disk(path: Path) -> Iterator[Finding]:
    if not path.parent.is_dir():
        return
    free = reserve.free_bytes(path)
    if free < reserve.RESERVE_BYTES * _COMFORT:
        hint = "Free some space. Stored memories are safe, but new ones may soon be refused."
        yield Finding("problem", "disk", f"Only {size(free)} of disk space is free.", hint)
    else:
        yield Finding("ok", "disk", f"{size(free)} of disk space is free.")


def _written_elsewhere(path: Path) -> list[Path]:
    """Return the backups that a person had written, as far as they are there; none if the file cannot be read."""
    with suppress(KeptError, apsw.Error), closing(look(path)) as connection:
        return [backup for backup in erase.backups_written(connection) if backup.is_file()]
    return []


def _backups(path: Path, now: datetime) -> Iterator[Finding]:
    backups = [*backups_of(path), *_written_elsewhere(path)]
    made = [datetime.fromtimestamp(backup.stat().st_mtime, UTC) for backup in backups]
    if not made:
        yield Finding("note", "backups", "There is no backup yet.", NO_BACKUP)
        return
    age = now - max(made)
    message = f"Backups: {len(made)}; days since the newest: {max(0, age.days)}."
    yield Finding("note" if age > _OLD_BACKUP else "ok", "backups", message)


SHELVES = ("live", "library", "archive")
SEAL = "Run `kept doctor --fix`. Pages whose content proves right get a new checksum."
KEEP_THE_REST = "Run `kept doctor --fix`. It keeps a copy, and goes on without them."
DONE_BY_FIX = (FIX, REBUILD, SEAL, KEEP_THE_REST)
NOT_CHECKED = "Not checked"  # how a note begins about what is therefore not known
CHECKSUMS = "checksums"  # the check that finds changed pages, also where nothing depends on them
NOTES = "notes"  # the check of receipts and of notes about files, which no memory depends on
WAL = "wal"
DERIVED = frozenset({"index", "statistics", "vectors", "words", NOTES})  # can be made again, or dropped, in the file

_SAMPLE = 200  # memories whose words are prepared again, unless all are asked for
_TURN_WAIT_S = 10.0  # indexes are compared in a turn of our own, so that no writer fails because of it
_LARGE_WAL_BYTES = 128 * 1024 * 1024  # twice what is kept of it


class NoteTable(Struct, frozen=True):
    """A table of notes: the column that names a row, and the columns that its checksum covers."""

    name: str
    key: str
    columns: str


NOTE_TABLES = {
    "receipt": NoteTable("receipts", "id", "at, body, uids, session"),
    "note about a file": NoteTable("file_notes", "name", "name, note"),
}

T = TypeVar("T")


class Checkup(Struct, frozen=True):
    """What every check gets: the file, a connection that reads it, and how much to look at."""

    path: Path
    connection: apsw.Connection
    is_deep: bool

    def sample(self, all_of_them: Sequence[T]) -> Sequence[T]:
        """All of them in a deep examination, otherwise some from the beginning to the end."""
        return all_of_them if self.is_deep else all_of_them[:: max(1, len(all_of_them) // _SAMPLE)]


Check = Callable[[Checkup], Iterator[Finding]]
_NONSENSE = (  # what damaged values lead to
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    msgspec.MsgspecError,
)
_FACTS = frozenset(
    "space tombstone_key created_at seal scrub erasures backups_elsewhere words_left_behind vector_model".split()
) | {f"hot_words_at_{shelf}" for shelf in INDEXES}


def run_checks(path: Path, *, now: datetime, deep: bool = False) -> list[Finding]:
    """What is wrong with the file, and what is in order. Changes nothing.

    `deep`: prepare the words of every memory again, not of a sample, and compare each record with its whole history.
    """
    findings = list(look_around(path, now))
    if not path.is_file():
        return [
            *findings,
            Finding(
                "problem",
                "file",
                f"There is no file {path}.",
                "`kept projects list` shows where each project is stored.",
            ),
        ]
    try:
        acknowledged.check_not_emptied(path)
    except KeptError as error:
        return [*findings, Finding("problem", "file", error.message, error.hint)]
    if not acknowledged.is_begun(path):
        message = f"{path.name} is the beginning of a store that could not be made; nothing was ever stored in it."
        return [*findings, Finding("note", "file", message, "The next write makes it. Check the disk space first.")]
    try:
        with translated(path):
            connection = look(path)
    except KeptError as error:
        return [*findings, Finding("problem", "file", error.message, RESTORE)]
    try:
        for name, check in _CHECKS.items():
            found = list(_guarded(name, check, Checkup(path, connection, deep)))
            findings += found
            if name == "schema" and any(finding.level == "problem" for finding in found):
                break  # of other tables nothing further down can be asked
    finally:
        connection.close()
    return findings


def look(path: Path) -> apsw.Connection:
    """A connection that also reads damaged pages, and leaves the WAL as it is, so that nothing which could still be
    saved goes when it closes."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=pages.vfs())
    try:
        pages.read_unverified(connection)
        if pages.size_of(wal_of(path)):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(READ_WAIT_MS)
        connection.execute("pragma query_only = on").fetchall()
        connection.execute("select count(*) from sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _guarded(name: str, check: Check, checkup: Checkup) -> Iterator[Finding]:
    try:
        with translated(checkup.path):
            yield from check(checkup)
    except (InvalidInput, SchemaTooNew) as error:  # another program's file, or another version's
        yield Finding("problem", name, error.message, error.hint)
    except KeptError as error:
        yield Finding("problem", name, error.message, REBUILD if name in DERIVED else RESTORE)
    except _NONSENSE:
        message = f"The data for the check {name!r} cannot be read."
        yield Finding("problem", name, message, REBUILD if name in DERIVED else RESTORE)


def _check_schema(checkup: Checkup) -> Iterator[Finding]:
    """Whose file it is, of which version, and whether tables and triggers are the ones that we made."""
    if checkup.connection.pragma("application_id") != schema.APPLICATION_ID:
        yield Finding("problem", "schema", f"{checkup.path.name} is not marked as a database of Kept.", RESTORE)
        return
    version = schema.check_version(checkup.connection, checkup.path)
    steps = [step for step in schema.migrations() if step.version <= version]
    schema.check_steps(checkup.connection, checkup.path)
    expected = apsw.Connection(":memory:")
    try:
        for step in steps:
            expected.execute(step.sql)
        wrong = _objects(expected) ^ _objects(checkup.connection)
    finally:
        expected.close()
    if wrong or not version:
        names = ", ".join(sorted({name for name, _ in wrong})[:NAMED])
        yield Finding("problem", "schema", f"Tables or triggers differ from the schema ({names}).", RESTORE)
    else:
        yield Finding("ok", "schema", f"Schema {version}.")


def _objects(connection: apsw.Connection) -> set[tuple[str, str]]:
    sql = "select name, coalesce(sql, '') from sqlite_schema where name not like 'sqlite_stat%'"
    return {(str(name), str(definition)) for name, definition in connection.execute(sql)}


def _check_pages(checkup: Checkup) -> Iterator[Finding]:
    """SQLite's own look at its structures: pages, the order of rows, every index against its table."""
    found = [str(verdict) for (verdict,) in checkup.connection.execute(f"pragma integrity_check({NAMED})")]
    verdicts = [verdict for verdict in found if "fts5" not in verdict.lower()]  # of these `_check_index` knows more
    if verdicts in ([], ["ok"]):
        yield Finding("ok", "pages", "SQLite's integrity check passed.")
    else:
        first = verdicts[0].splitlines()[-1][:100]
        yield Finding("problem", "pages", f"SQLite's integrity check failed. First problem: {first}.", RESTORE)


def _check_checksums(checkup: Checkup) -> Iterator[Finding]:
    """Every page against its checksum. Another program that wrote here, if only what the WAL held, leaves none."""
    first_pages = pages.first_pages(checkup.path)
    if pages.header_denies_checksums(first_pages):
        yield Finding("problem", "schema", "The header of the file is damaged.", RESTORE)
        return
    if pages.reserved_bytes(first_pages) != pages.BYTES:
        message = "The pages of this file have no checksums: a changed byte in an index may go unnoticed."
        yield Finding(
            "note", CHECKSUMS, message, "Run `kept store backup FILE`, then `kept store restore FILE`, to add them."
        )
        return
    with held(checkup.path.with_name(f"{checkup.path.name}.lock"), _TURN_WAIT_S) as has_turn:
        if not has_turn:
            yield Finding("note", CHECKSUMS, f"{NOT_CHECKED}, because another process is writing.", "Try again later.")
            return
        _, copied = checkup.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        wrong = pages.bad_pages(checkup.path, copied)
    if wrong:
        tables = tables_on(checkup.connection, wrong)
        where = f" ({', '.join(sorted(tables))})" if tables else ""
        message = f"Damaged, or written by another program: {named('page', wrong)}{where}."
        yield Finding("problem", CHECKSUMS, message, SEAL)
    else:
        yield Finding("ok", CHECKSUMS, "Every page matches its checksum.")


def tables_on(connection: apsw.Connection, pages: Collection[int]) -> set[str] | None:
    """The tables and indexes that these pages belong to; None where SQLite cannot tell.

    Tables of the full-text indexes have names such as live_fts_data.
    """
    sql = "select distinct s.name from dbstat s join json_each(?) on s.pageno = value"
    try:
        return {str(name) for (name,) in connection.execute(sql, (rows.json_text([*pages]),))}
    except (apsw.Error, UnicodeDecodeError):  # built without dbstat, or damaged where the tables are listed
        return None


def _check_facts(checkup: Checkup) -> Iterator[Finding]:
    facts = schema.facts_of(checkup.connection, checkup.path)
    yield Finding("ok", "space", f"The space is {facts.get('space', 'a new one')}.")
    marks = [str(mark) for (mark,) in checkup.connection.execute("select mark from tombstones")]
    if damaged := sum(not is_tombstone(mark) for mark in marks):
        message = f"{damaged} of {len(marks)} marks of erased memories are damaged: an import could bring them back."
        yield Finding("problem", "erase", message, RESTORE)
    for name, value in checkup.connection.execute("select name, value from meta"):
        if str(name).startswith(COUNTER):
            rows.number_of(name, value)
        elif name not in _FACTS:
            yield Finding("problem", "space", f"The file has an unknown entry ({name[:40]!r}).", RESTORE)
    if schema.pending_scrub(checkup.connection):
        yield Finding("note", "erase", "Cleanup after an erase is pending.", "It will finish on the next open.")


def _check_wal(checkup: Checkup) -> Iterator[Finding]:
    """Whether all that was acknowledged is there, and whether the WAL holds what SQLite does not read."""
    wal = wal_of(checkup.path)
    noted = acknowledged.noted(checkup.path)
    ends = [number for number, frame in enumerate(wal_frames(wal), 1) if frame.ends_transaction]
    found = acknowledged.position_of(checkup.connection)
    accepted, _ = checkup.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    unread = sum(number > accepted for number in ends)
    if found.is_behind(noted):
        n_events, n_messages = max(0, noted.event - found.event), max(0, noted.message - found.message)
        message = f"The last {n_events} events and {n_messages} messages that were acknowledged are missing."
        rest = f"The WAL holds {unread} transactions behind damaged bytes." if unread else "The WAL does not hold them."
        yield Finding("problem", WAL, f"{message} {rest}", KEEP_THE_REST)
    elif unread:
        message = f"The WAL holds {unread} transactions that SQLite ignores."
        yield Finding("note", WAL, f"{message} Either a power cut interrupted a write, or the WAL is damaged.")
    else:
        yield Finding("ok", WAL, "No acknowledged write is missing.")
    if (bytes_used := pages.size_of(wal)) > _LARGE_WAL_BYTES:
        hint = "A program has been reading for a long time. End it."
        yield Finding("problem", "disk", f"The WAL has grown to {size(bytes_used)}.", hint)


def _check_records(checkup: Checkup) -> Iterator[Finding]:
    """Every row against its checksum."""
    connection = checkup.connection
    for noun in NOUNS:
        ids = ids_of(connection, noun)
        if damaged := [id for id in ids if sound_row(connection, noun, id) is None]:
            yield Finding("problem", noun.noun, f"Damaged: {named(noun.noun, damaged)}.", RESTORE)
        elif noun is Memory:
            yield Finding("ok", noun.noun, f"All {len(ids)} memories match their checksums.")


def _check_notes(checkup: Checkup) -> Iterator[Finding]:
    """Every receipt and every note about a file against its checksum."""
    for noun, table in NOTE_TABLES.items():
        if n_damaged := len(damaged_notes(checkup.connection, table)):
            yield Finding("problem", NOTES, f"Damaged: {counted(n_damaged, noun)}. No memory depends on them.", FIX)


def damaged_notes(connection: apsw.Connection, table: NoteTable) -> list[Any]:
    """The keys of the rows that are not what was written."""
    sql = f"select {table.key}, {table.columns}, checksum from {table.name}"
    found: Any = connection.execute(sql)
    return [key for key, *values, checksum in found if rows.checksum(values) != checksum]


def _check_conversations(checkup: Checkup) -> Iterator[Finding]:
    """Every message against its checksum, and every packed session."""
    connection = checkup.connection
    sql = f"select {', '.join(messages.COLUMNS)}, checksum from messages where id = ?"
    ids = [int(row[0]) for row in connection.execute("select id from messages order by id")]
    damaged = []
    for id in ids:
        try:
            is_sound = messages.is_as_written(connection.execute(sql, (id,)).fetchall()[0])
        except (UnicodeDecodeError, IndexError, apsw.CorruptError):
            is_sound = False
        if not is_sound:
            damaged.append(id)
    for session, body in connection.execute("select session, body from packed_sessions"):
        from_pack(str(session), body)
    if damaged:
        yield Finding("problem", "messages", f"Damaged: {named('message', damaged)}.", RESTORE)
    else:
        yield Finding("ok", "messages", f"All {len(ids)} messages match their checksums.")


def _check_words(checkup: Checkup) -> Iterator[Finding]:
    """Whether memories and messages are indexed under the words that this version of Kept looks for."""
    connection = checkup.connection
    stale = []
    ids = ids_of(connection, Memory)
    for id in checkup.sample(ids):
        row = sound_row(connection, Memory, id)
        if row is not None and prepare(rows.to_memory(row, "")) != rows.to_prepared(row):
            stale.append(id)
    stale_messages = []
    for id in checkup.sample([int(row[0]) for row in connection.execute("select id from messages order by id")]):
        for content, words in connection.execute("select content, words from messages where id = ?", (id,)):
            if " ".join(text.words(str(content))) != words:
                stale_messages.append(id)
    for noun, wrong in (("memory", stale), ("message", stale_messages)):
        if wrong:
            yield Finding("problem", "words", f"Indexed by another version of Kept: {named(noun, wrong)}.", REBUILD)
    if not stale and not stale_messages:
        message = f"Checked the words of {len(checkup.sample(ids))} of {len(ids)} memories."
        yield Finding("ok", "words", message)


def _check_index(checkup: Checkup) -> Iterator[Finding]:
    """Each full-text index against the rows of its shelf, posting by posting. FTS5 wants a write lock for it."""
    with held(checkup.path.with_name(f"{checkup.path.name}.lock"), _TURN_WAIT_S) as has_turn:
        if not has_turn:
            yield Finding("note", "index", f"{NOT_CHECKED}, because another process is writing.", "Try again later.")
            return
        damaged = [shelf for shelf in INDEXES if not _is_index_whole(checkup.connection, shelf)]
    if damaged:
        message = f"The search index of {' and '.join(damaged)} does not match its rows. Searches may miss results."
        yield Finding("problem", "index", message, REBUILD)
    else:
        yield Finding("ok", "index", "Every search index matches its rows.")


def _is_index_whole(connection: apsw.Connection, shelf: str) -> bool:
    connection.execute("pragma query_only = off").fetchall()
    connection.execute("begin immediate")
    try:
        connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
        connection.execute("pragma query_only = on").fetchall()
    return True


def _check_statistics(checkup: Checkup) -> Iterator[Finding]:
    connection = checkup.connection
    sql = """
        select shelf, count(*), sum(n_words), sum(n_tokens) from memories group by shelf
        union all
        select 'messages', count(*), coalesce(sum(n_words), 0), coalesce(sum(n_words), 0) from messages"""
    counted = {shelf: numbers for shelf, *numbers in connection.execute(sql)}
    sql = "select shelf, rows, words, tokens from corpus"
    noted = {shelf: numbers for shelf, *numbers in connection.execute(sql)}
    wrong = [shelf for shelf in (*INDEXES, "forgotten") if noted.get(shelf) != counted.get(shelf, [0, 0, 0])]
    sql = "select count(*) from hot_words h join corpus c using (shelf) where h.rows_with not between 1 and c.rows"
    if weighed_wrong := index.wrongly_weighed(connection):
        message = f"Wrong ranking data: {named('memory', weighed_wrong)}."
        yield Finding("problem", "statistics", message, REBUILD)
    if wrong or connection.execute(sql).get:
        message = f"The word counts of {' and '.join(wrong)} are wrong, so scores are off."
        yield Finding("problem", "statistics", message if wrong else "The counts of common words are wrong.", REBUILD)
    elif not weighed_wrong:
        yield Finding("ok", "statistics", "Row and word counts are right.")
    if listed_wrong := index.wrongly_listed(connection):
        message = f"Duplicates may go unnoticed: {named('memory', listed_wrong)}."
        yield Finding("problem", "index", message, REBUILD)


def _check_vectors(checkup: Checkup) -> Iterator[Finding]:
    """Vectors against the texts and the model they were made of, and their sketches; none are there unless wanted."""
    connection = checkup.connection
    sql = "select (select count(*) from vectors), (select count(*) from vectorless)"
    total, waiting = connection.execute(sql).fetchall()[0]
    if not total and not waiting:
        return
    try:
        damaged = vectors.wrong(connection)
    except SettingsError as error:
        yield Finding("note", "vectors", f"{NOT_CHECKED}. {error.message}", error.hint)
        return
    if damaged:
        message = f"Missing or damaged vectors: {named('memory', damaged)}."
        yield Finding("problem", "vectors", message, REBUILD)
    elif waiting:
        hint = "They are matched by words only. Run `kept vectors on`."
        wait = "1 memory has no vector yet." if waiting == 1 else f"{waiting} memories have no vector yet."
        yield Finding("note", "vectors", wait, hint)
    else:
        yield Finding("ok", "vectors", f"All {total} vectors match their texts.")


def _check_history(checkup: Checkup) -> Iterator[Finding]:
    return check_journal(checkup.connection, is_deep=checkup.is_deep)


def _check_orphans(checkup: Checkup) -> Iterator[Finding]:
    broken = checkup.connection.execute("pragma foreign_key_check").fetchall()
    if broken:
        tables = ", ".join(sorted({str(table) for table, *_ in broken}))
        message = f"{len(broken)} rows of {tables} refer to rows that do not exist."
        yield Finding("problem", "orphans", message, RESTORE)
    uids = {uid_text(uid) for (uid,) in checkup.connection.execute("select uid from memories")}
    pairs: Any = checkup.connection.execute("select id, left, right from conflicts").fetchall()
    if ids := [id for id, *both in pairs if not uids.issuperset(both)]:
        yield Finding("note", "orphans", f"Refers to a memory that is not in this store: {named('conflict', ids)}.")
    if not broken and not ids:
        yield Finding("ok", "orphans", "There are no broken references.")


_CHECKS: dict[str, Check] = {
    "schema": _check_schema,
    "pages": _check_pages,
    CHECKSUMS: _check_checksums,
    "space": _check_facts,
    WAL: _check_wal,
    "memory": _check_records,
    NOTES: _check_notes,
    "messages": _check_conversations,
    "words": _check_words,
    "index": _check_index,
    "statistics": _check_statistics,
    "vectors": _check_vectors,
    "journal": _check_history,
    "orphans": _check_orphans,
}
