"""Overwrite what SQLite leaves lying about inside its pages.

`secure_delete` overwrites a row where it stands. But when SQLite moves rows from a full page to a new one, their
old copies stay behind in the room between the page's directory and its first row; deleting a row later overwrites
the new copy only. Those gaps hold nothing that SQLite reads, so they are overwritten in place, beneath it. Rule:
only while nothing can be written to the file by anybody else, while its WAL is empty, and on pages that add up and
fit their checksum. Half of a page, as a crash leaves it, would fit none: so a record beside the file says first which
gaps are overwritten, and whoever comes next finishes that.
"""

import struct
from pathlib import Path

import apsw
import msgspec
from msgspec import Struct

from kept.storage.sqlite import pages
from kept.storage.sqlite.connection import connect

_PAGES_AT_ONCE = 256
_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_INTERIOR = 13, 5, 2
_HEADER_BYTES = {2: 12, 5: 12, 10: 8, 13: 8}  # of a b-tree page, by its first byte; no other page begins so
_DIGEST_BYTES = 16
_MOST_BYTES = 65_536  # that SQLite's own VFS writes at a time: of more than 128 kB it says that the disk is full
_NEW_FILE = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


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
    finish(path, vfs)
    with pages.opened(path) as plain, pages.opened(path, vfs or pages.vfs()) as file:
        gaps, n_damaged = _find(plain, file)
    if gaps:
        _note(path, vfs, gaps)
        finish(path, vfs)
    if n_damaged:
        raise apsw.CorruptError(f"{n_damaged} pages do not add up")
    return len(gaps)


def recover(path: Path, vfs: str | None = None) -> None:
    """Finish a sweep that was cut off. Call it in this process's turn to write."""
    connection = connect(path, vfs=vfs, is_verified=False)
    try:
        connection.execute("begin immediate")
        finish(path, vfs)
        connection.execute("rollback")
    finally:
        connection.close()


def finish(path: Path, vfs: str | None = None) -> None:
    """Overwrite what an earlier sweep was about to when it was cut off. The same has to hold as for a sweep."""
    if not pages.is_being_swept(path):
        return
    gaps = _noted(path)
    with pages.opened(path) as plain, pages.opened(path, vfs or pages.vfs()) as file:
        size, usable = _sizes(file)
        for gap in gaps:
            _overwrite(plain, file, gap, size, usable)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    _record_of(path).unlink(missing_ok=True)


def _overwrite(plain: apsw.VFSFile, file: apsw.VFSFile, gap: Gap, size: int, usable: int) -> None:
    start = (gap.page - 1) * size
    before = plain.xRead(size, start)
    clean = before[: gap.first] + bytes(gap.last - gap.first) + before[gap.last :]
    if _digest(clean[:usable]) != gap.digest:
        return  # somebody has written the page since then
    try:
        file.xWrite(clean, start)
    except BaseException:
        plain.xWrite(before, start)  # nobody who reads meanwhile shall find half of each
        raise


def _find(plain: apsw.VFSFile, file: apsw.VFSFile) -> tuple[list[Gap], int]:
    """The gaps that are not empty, and how many pages do not add up."""
    gaps: list[Gap] = []
    n_damaged = 0
    size, usable = _sizes(file)
    file_bytes, run_bytes = file.xFileSize(), size * _PAGES_AT_ONCE
    for start in range(0, file_bytes, run_bytes):
        run = plain.xRead(min(run_bytes, file_bytes - start), start)
        for page, first, last in _dirty_gaps(run, start == 0, size):
            is_first = start == page == 0
            if _adds_up(run[page : page + usable], pages.HEADER_BYTES if is_first else 0):
                file.xRead(size, start + page)  # an error, if it does not fit its checksum
                clean = run[page:first] + bytes(last - first) + run[last : page + usable]
                gaps.append(Gap((start + page) // size + 1, first - page, last - page, _digest(clean)))
            else:
                n_damaged += 1
    return gaps, n_damaged


def _sizes(file: apsw.VFSFile) -> tuple[int, int]:
    """How long a page is, and how much of it is SQLite's."""
    header = pages.header_of(file)
    size = pages.page_size(header)
    return size, size - header[20]


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-sweep")


def _note(path: Path, vfs: str | None, gaps: list[Gap]) -> None:
    """Write down what will be overwritten; it is on the disk when this returns."""
    body = msgspec.msgpack.encode(gaps)
    content = _digest(body) + body
    record = apsw.VFSFile(vfs or pages.vfs(), str(_record_of(path)), [_NEW_FILE, 0])
    try:
        record.xTruncate(0)
        for start in range(0, len(content), _MOST_BYTES):
            record.xWrite(content[start : start + _MOST_BYTES], start)
        record.xSync(apsw.SQLITE_SYNC_FULL)  # of its folder, too, as SQLite does with a new journal
    finally:
        record.xClose()


def _noted(path: Path) -> list[Gap]:
    """What was written down; nothing, if even that was cut off, for then no page was touched."""
    try:
        record = _record_of(path).read_bytes()
    except FileNotFoundError:  # somebody else has just finished it
        return []
    digest, body = record[:_DIGEST_BYTES], record[_DIGEST_BYTES:]
    return msgspec.msgpack.decode(body, type=list[Gap]) if digest == _digest(body) else []


def _digest(content: bytes) -> bytes:
    import hashlib  # loads OpenSSL: 3 ms, needed only to erase

    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _dirty_gaps(run: bytes, is_start: bool, page_bytes: int) -> list[tuple[int, int, int]]:
    """The b-tree pages with something between cell pointers and cells: where page, gap and cells begin."""
    found = []
    zeros = bytes(page_bytes)
    for page in range(0, len(run), page_bytes):  # hot: some 50,000 rounds for 100,000 memories
        header = page + 100 if is_start and page == 0 else page  # the first page begins with the file's own header
        kind = run[header]
        if kind in _HEADER_BYTES:
            first = header + _HEADER_BYTES[kind] + 2 * (run[header + 3] << 8 | run[header + 4])
            last = page + ((run[header + 5] << 8 | run[header + 6]) or 65_536)
            if run[first:last] != zeros[: last - first]:
                found.append((page, first, last))
    return found


def _adds_up(page: bytes, header: int) -> bool:
    """Whether cells, free blocks and fragments fill exactly the room behind the gap: then the gap is one."""
    kind, free_block, n_cells, content, fragments = struct.unpack_from(">BHHHB", page, header)
    try:
        pointers = struct.unpack_from(f">{n_cells}H", page, header + _HEADER_BYTES[kind])
        taken = [(pointer, pointer + _cell_bytes(page, pointer, kind)) for pointer in pointers]
        while free_block:
            following, size = struct.unpack_from(">HH", page, free_block)
            taken.append((free_block, free_block + size))
            if 0 < following <= free_block:
                return False
            free_block = following
    except (IndexError, struct.error):
        return False
    end, unaccounted = content or 65_536, 0
    for first, last in sorted(taken):
        if first < end:
            return False
        unaccounted += first - end
        end = last
    return end <= len(page) and unaccounted + len(page) - end == fragments


def _cell_bytes(page: bytes, cell: int, kind: int) -> int:
    """How much room a cell takes on its page. What does not fit there stands on overflow pages."""
    position = cell + 4 if kind in (_TABLE_INTERIOR, _INDEX_INTERIOR) else cell  # the page on its left
    payload, position = _varint(page, position)
    if kind == _TABLE_INTERIOR:
        return position - cell
    if kind == _TABLE_LEAF:
        _, position = _varint(page, position)  # the row id
    usable = len(page)
    most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if payload > most:
        least = (usable - 12) * 32 // 255 - 23
        fitting = least + (payload - least) % (usable - 4)
        payload = (fitting if fitting <= most else least) + 4
    return max(4, position - cell + payload)


def _varint(page: bytes, position: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = page[position]
        position += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, position
    return value << 8 | page[position], position + 1  # the ninth byte counts whole
