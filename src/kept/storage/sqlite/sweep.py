"""Overwrite what SQLite leaves lying about inside its pages.

`secure_delete` overwrites a row where it stands. But when SQLite moves rows from a full page to a new one, their
old copies stay behind in the room between the page's directory and its first row; deleting a row later overwrites
the new copy only. Those gaps hold nothing that SQLite reads, so they are overwritten in place, beneath it. Rule:
only while nothing can be written to the file by anybody else, while its WAL is empty, and on pages that add up and
fit their checksum. A crash in the middle of a page leaves one that does not; until the erasure is noted as finished,
whoever opens the file looks for such pages (storage.py).
"""

import struct
from pathlib import Path

import apsw

from kept.storage.sqlite import page_checksums, pages

_PAGES_AT_ONCE = 256
_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_INTERIOR = 13, 5, 2
_HEADER_BYTES = {2: 12, 5: 12, 10: 8, 13: 8}  # of a b-tree page, by its first byte; no other page begins so


def sweep(path: Path, vfs: str | None = None) -> int:
    """Fill the gaps of all pages with zeros, and sync. Returns how many pages had something in theirs.

    Raises an error of apsw when a page is damaged, so that what it calls a gap may be none; such pages are left alone.
    """
    swept = damaged = 0
    with pages.opened(path) as plain, pages.opened(path, vfs or page_checksums.vfs()) as file:
        header = pages.header_of(file)
        page_bytes = pages.page_size(header)
        usable_bytes = page_bytes - header[20]
        file_bytes, run_bytes = file.xFileSize(), page_bytes * _PAGES_AT_ONCE
        for start in range(0, file_bytes, run_bytes):
            run = plain.xRead(min(run_bytes, file_bytes - start), start)
            for page, first, last in _dirty_gaps(run, start == 0, page_bytes):
                is_first = start == page == 0
                if _adds_up(run[page : page + usable_bytes], pages.HEADER_BYTES if is_first else 0):
                    file.xRead(page_bytes, start + page)  # an error, if it does not fit its checksum
                    clean = run[page:first] + bytes(last - first) + run[last : page + page_bytes]
                    try:
                        file.xWrite(clean, start + page)
                    except BaseException:
                        plain.xWrite(run[page : page + page_bytes], start + page)  # half of each fits no checksum
                        raise
                    swept += 1
                else:
                    damaged += 1
        if swept:
            file.xSync(apsw.SQLITE_SYNC_FULL)
    if damaged:
        raise apsw.CorruptError(f"{damaged} pages do not add up")
    return swept


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
