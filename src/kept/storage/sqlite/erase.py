"""Remove every byte of erased text from the database, the WAL and the indexes.

SQLite overwrites deleted rows (`secure_delete`) and FTS5 deleted words, but words remain in four places: in
`<index>_idx`, where FTS5 keeps (the beginnings of) words as separators between its pages; in our own `hot_words`; in
the gaps inside pages, where SQLite leaves old copies of rows that it moved to another page; and in the WAL. The first
two are corrected inside the erasing transaction, the others after it. While many memories go to the archive at once,
their words are only marked as gone, which takes a twentieth of the time, and the index is rebuilt at the end.

Rules: text is reported as erased only when no byte of it is left in the file. While a reader of another process holds
old pages, the answer is "pending", and the next open continues. Gaps are overwritten beneath SQLite, so
only while nobody else can write, while the WAL is empty, and on pages that add up and fit their checksum. A crash
could leave half a page, which fits no checksum: so a record beside the file first says which gaps are overwritten.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import apsw
import msgspec
from msgspec import Struct

from kept.storage.shared import RECEIPTS as RECEIPTS
from kept.storage.sqlite import pages, schema
from kept.storage.sqlite.connection import READ_WAIT_MS, connect, is_damage
from kept.storage.sqlite.encoding import uid_blob
from kept.storage.sqlite.schema import INDEXES

SESSION = "session:"  # what the messages of a session are called among the uids of erased memories
_READERS_WAIT_MS = 500  # long enough for every reader that reads, short when one is paused

_PAGES_AT_ONCE = 256
_DIGEST_BYTES = 16
_MOST_BYTES = 65_536  # that SQLite's own VFS writes at a time: of more than 128 kB it says that the disk is full
_NEW_FILE = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


def cover_tracks(connection: apsw.Connection) -> None:
    """Remove from the indexes every word that no memory holds now. Call it inside the erasing transaction."""
    for shelf in INDEXES:
        replace_stray_separators(connection, shelf)
        _drop_stray_hot_words(connection, shelf)


def begin(connection: apsw.Connection, uids: Sequence[str]) -> None:
    """Note, inside the erasing transaction, whose bytes are to be scrubbed from the files when it is over."""
    cover_tracks(connection)
    schema.set_entry(connection, "scrub", [*schema.pending_scrub(connection), *uids])
    schema.set_entry(connection, "erasures", erasures(connection) + len(uids))


def erasures(connection: apsw.Connection) -> int:
    """How much was ever erased here: a backup that was begun at another number may hold what is gone."""
    return schema.entry(connection, "erasures", int, 0)


def remember_backup(connection: apsw.Connection, target: Path) -> None:
    """Note where a backup was written, and up to which event, so that an erasure can name it.

    Only the path: nothing of what the backup holds.
    """
    last = int(connection.execute("select max(seq) from events").get or 0)
    known = [entry for entry in _elsewhere(connection) if entry[0] != str(target)]
    schema.set_entry(connection, "backups_elsewhere", [*known, (str(target), last)])


def backups_written(connection: apsw.Connection) -> list[Path]:
    """The backups that a person asked for, wherever they are or were."""
    return [Path(path) for path, _ in _elsewhere(connection)]


def backups_elsewhere(connection: apsw.Connection, uids: Sequence[str]) -> tuple[str, ...]:
    """The backups out of our reach that hold one of these memories, as far as they are still there."""
    sql = "select min(seq) from events where subject = ?"
    found = [int(connection.execute(sql, (uid_blob(uid),)).get or 0) for uid in uids if uid != RECEIPTS]
    if not found:
        return ()
    first = min(found)
    return tuple(path for path, last in _elsewhere(connection) if last >= first and _may_be_there(Path(path)))


def finish(connection: apsw.Connection, path: Path, vfs: str | None = None) -> bool:
    """Clean the file itself. Call it in this process's turn to write. False: a reader, or damage, is in the way."""
    seen = connection.pragma("data_version")
    if not empty_the_wal(connection):
        return False
    connection.execute("begin immediate")  # from here on nobody writes, so the WAL stays empty
    try:
        if connection.pragma("data_version") != seen:
            return False
        sweep(path, vfs)
        # Besides noting that it is done, this commit makes every other connection drop what it has read.
        connection.execute("delete from meta where name = 'scrub'")
        connection.execute("commit")
        connection.release_memory()  # its own cache it has to be told about
        return True
    except apsw.Error as error:
        if not is_damage(error):
            raise
        return False  # what a damaged page calls a gap may be none
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def replace_stray_separators(connection: apsw.Connection, shelf: str) -> None:
    """Let no separator of the index be (the beginning of) a word that no memory holds any more.

    A separator says "words from here on are on this page". The next word that is still there says the same; where
    none is left on the page, so does anything behind the last word before it.
    """
    separators = connection.execute(f"select segid, term from {shelf}_fts_idx order by segid, term").fetchall()
    before: tuple[object, bytes] = (None, b"")
    for (segment, term), following in pairwise([*separators, (None, b"")]):
        separator, previous = _blob(term), before[1] if before[0] == segment else b"0"
        heir = b"0" + (first_word_from(connection, shelf, separator[1:]) or b"\xff")  # '0': the index of the words
        if not heir.startswith(separator):
            if heir == b"0\xff" or (following[0] == segment and heir >= _blob(following[1])):
                heir = b"0" + _last_word_between(connection, shelf, previous[1:], separator[1:]) + b"\0"
            connection.execute(
                f"update {shelf}_fts_idx set term = ? where segid = ? and term = ?", (heir, segment, term)
            )
            separator = heir
        before = (segment, separator)


def first_word_from(connection: apsw.Connection, shelf: str, separator: bytes) -> bytes | None:
    """The first word of the index that is not before the separator, which may end in the middle of a character."""
    word = separator.decode("utf-8", "ignore")
    while True:
        # The table of instances answers at once; that of words would first count the rows that hold the word.
        row = connection.execute(f"select term from {shelf}_instances where term >= ? limit 1", (word,)).fetchone()
        if row is None:
            return None
        found = str(row[0]).encode()
        if found >= separator:
            return found
        word = f"{row[0]}\0"


def _last_word_between(connection: apsw.Connection, shelf: str, first: bytes, end: bytes) -> bytes:
    """The last word of the index from one separator to the next, or the first of the two when there is none."""
    # Either may end in the middle of a character: ask for a little more, and compare the bytes.
    bounds = (first.decode("utf-8", "ignore"), end.decode("utf-8", "ignore") + "\U0010ffff")
    terms = connection.execute(f"select term from {shelf}_vocabulary where term >= ? and term < ?", bounds)
    words = (str(term).encode() for (term,) in terms)
    return max((word for word in words if first <= word < end), default=first)


def _drop_stray_hot_words(connection: apsw.Connection, shelf: str) -> None:
    for (word,) in connection.execute("select word from hot_words where shelf = ?", (shelf,)).fetchall():
        if first_word_from(connection, shelf, str(word).encode()) != str(word).encode():
            connection.execute("delete from hot_words where shelf = ? and word = ?", (shelf, word))


def _blob(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


def _elsewhere(connection: apsw.Connection) -> list[tuple[str, int]]:
    return schema.entry(connection, "backups_elsewhere", list[tuple[str, int]], [])


def _may_be_there(path: Path) -> bool:
    return path.exists() or not path.parent.exists()  # a drive that is not plugged in


def empty_the_wal(connection: apsw.Connection) -> bool:
    """Bring everything into the database itself and cut the WAL to nothing. False: a reader is in the way."""
    connection.set_busy_timeout(_READERS_WAIT_MS)
    try:
        busy = connection.execute("pragma wal_checkpoint(truncate)").fetchall()[0][0]
    finally:
        connection.set_busy_timeout(READ_WAIT_MS)
    return not busy


LEFT_FOR_ARCHIVE = ("live", "library")  # those that memories leave for the archive
_LEFT = "words_left_behind"  # a fact about the file


@contextmanager
def marking_only(connection: apsw.Connection) -> Iterator[None]:
    """Let rows that leave an index be marked in the block. Call it inside a transaction."""
    connection.execute("insert into meta (name, value) values (?, '1') on conflict do nothing", (_LEFT,))
    try:
        for shelf in LEFT_FOR_ARCHIVE:
            _overwrite(connection, shelf, is_on=False)
        yield
    finally:  # if this fails, the pool does not take the connection back
        for shelf in LEFT_FOR_ARCHIVE:
            _overwrite(connection, shelf, is_on=True)


def settle(connection: apsw.Connection) -> None:
    """Rebuild the indexes in which words were left behind, if there are any. Call it in a transaction."""
    if connection.execute("select 1 from meta where name = ?", (_LEFT,)).fetchone() is not None:
        for shelf in LEFT_FOR_ARCHIVE:
            connection.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('rebuild')")
        connection.execute("delete from meta where name = ?", (_LEFT,))


def _overwrite(connection: apsw.Connection, shelf: str, *, is_on: bool) -> None:
    connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('secure-delete', ?)", (int(is_on),))


class Gap(Struct, frozen=True, array_like=True):
    """What is overwritten on one page, counted from 1, and the digest of the page when that is done."""

    page: int
    first: int
    last: int
    digest: bytes


def sweep(path: Path, vfs: str | None = None) -> int:
    """Fill the gaps of all pages with zeros, and sync. Returns how many pages had something in theirs.

    Raises an error of apsw when a page is damaged, so that what it calls a gap may be none; such pages are left alone.
    """
    finish_sweep(path, vfs)
    with pages.opened(path) as plain, pages.opened(path, vfs or pages.vfs()) as file:
        gaps, n_damaged = _find_gaps(plain, file)
    if gaps:
        _note_gaps(path, vfs, gaps)
        finish_sweep(path, vfs)
    if n_damaged:
        raise apsw.CorruptError(f"{n_damaged} pages are inconsistent")
    return len(gaps)


def recover_sweep(path: Path, vfs: str | None = None) -> None:
    """Finish a sweep that was cut off. Call it in this process's turn to write."""
    connection = connect(path, vfs=vfs, is_verified=False)
    try:
        connection.execute("begin immediate")
        finish_sweep(path, vfs)
        connection.execute("rollback")
    finally:
        connection.close()


def finish_sweep(path: Path, vfs: str | None = None) -> None:
    """Overwrite what an earlier sweep was about to when it was cut off. Call it when `sweep` may be called."""
    if not pages.is_being_swept(path):
        return
    gaps = _noted_gaps(path)
    with pages.opened(path) as plain, pages.opened(path, vfs or pages.vfs()) as file:
        size, usable = _page_sizes(file)
        for gap in gaps:
            _overwrite_gap(plain, file, gap, size, usable)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    _sweep_record(path).unlink(missing_ok=True)


def _overwrite_gap(plain: apsw.VFSFile, file: apsw.VFSFile, gap: Gap, size: int, usable: int) -> None:
    start = (gap.page - 1) * size
    before = plain.xRead(size, start)
    clean = before[: gap.first] + bytes(gap.last - gap.first) + before[gap.last :]
    if _digest(clean[:usable]) != gap.digest:
        return  # somebody has written the page since then
    try:
        file.xWrite(clean, start)
    except BaseException:
        plain.xWrite(before, start)  # nobody who reads now shall find half of each
        raise


def _find_gaps(plain: apsw.VFSFile, file: apsw.VFSFile) -> tuple[list[Gap], int]:
    """The gaps that are not empty, and how many pages do not add up."""
    gaps: list[Gap] = []
    n_damaged = 0
    size, usable = _page_sizes(file)
    file_bytes, run_bytes = file.xFileSize(), size * _PAGES_AT_ONCE
    for start in range(0, file_bytes, run_bytes):
        run = plain.xRead(min(run_bytes, file_bytes - start), start)
        for page, first, last in pages.dirty_gaps(run, start == 0, size):
            is_first = start == page == 0
            if pages.adds_up(run[page : page + usable], pages.HEADER_BYTES if is_first else 0):
                file.xRead(size, start + page)  # an error, if it does not fit its checksum
                clean = run[page:first] + bytes(last - first) + run[last : page + usable]
                gaps.append(Gap((start + page) // size + 1, first - page, last - page, _digest(clean)))
            else:
                n_damaged += 1
    return gaps, n_damaged


def _page_sizes(file: apsw.VFSFile) -> tuple[int, int]:
    """How long a page is, and how much of it is SQLite's."""
    header = pages.header_of(file)
    size = pages.page_size(header)
    return size, size - header[20]


def _sweep_record(path: Path) -> Path:
    return path.with_name(f"{path.name}-sweep")


def _note_gaps(path: Path, vfs: str | None, gaps: list[Gap]) -> None:
    """Write down what will be overwritten; it is on the disk when this returns."""
    body = msgspec.msgpack.encode(gaps)
    content = _digest(body) + body
    record = apsw.VFSFile(vfs or pages.vfs(), str(_sweep_record(path)), [_NEW_FILE, 0])
    try:
        record.xTruncate(0)
        for start in range(0, len(content), _MOST_BYTES):
            record.xWrite(content[start : start + _MOST_BYTES], start)
        record.xSync(apsw.SQLITE_SYNC_FULL)  # also of its folder, as SQLite does with a new journal
    finally:
        record.xClose()


def _noted_gaps(path: Path) -> list[Gap]:
    """What was written down; nothing, if even that was cut off, for then no page was touched."""
    try:
        record = _sweep_record(path).read_bytes()
    except FileNotFoundError:  # somebody else has just finished it
        return []
    digest, body = record[:_DIGEST_BYTES], record[_DIGEST_BYTES:]
    return msgspec.msgpack.decode(body, type=list[Gap]) if digest == _digest(body) else []


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
