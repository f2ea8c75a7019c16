"""Overwrite what SQLite leaves lying about inside its pages.

`secure_delete` overwrites a row where it stands. But when SQLite moves rows from a full page to a new one, their
old copies stay behind in the room between the page's directory and its first row; deleting a row later overwrites
the new copy only. Those gaps hold nothing that SQLite reads, so they are overwritten in place, beneath it. Rule:
only while nothing can be written to the file by anybody else, and while its WAL is empty.
"""

from pathlib import Path

import apsw

_PAGES_AT_ONCE = 256
_HEADER_BYTES = {2: 12, 5: 12, 10: 8, 13: 8}  # of a b-tree page, by its first byte; no other page begins so


def sweep(path: Path, vfs: str | None = None) -> int:
    """Fill the gaps of all pages with zeros, and sync. Returns how many pages had something in theirs."""
    # Through SQLite's own file layer: a file opened and closed beside it would drop the locks of this process.
    file = apsw.VFSFile(vfs or "", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        page_bytes = int.from_bytes(file.xRead(2, 16), "big")
        page_bytes = 65_536 if page_bytes == 1 else page_bytes
        file_bytes, run_bytes = file.xFileSize(), page_bytes * _PAGES_AT_ONCE
        swept = 0
        for start in range(0, file_bytes, run_bytes):
            pages = file.xRead(min(run_bytes, file_bytes - start), start)
            for first, last in _dirty_gaps(pages, start == 0, page_bytes):
                file.xWrite(bytes(last - first), start + first)
                swept += 1
        if swept:
            file.xSync(apsw.SQLITE_SYNC_FULL)
        return swept
    finally:
        file.xClose()


def _dirty_gaps(pages: bytes, is_start: bool, page_bytes: int) -> list[tuple[int, int]]:
    """Where, in these b-tree pages, there is something between the cell pointers and the first cell."""
    found = []
    zeros = bytes(page_bytes)
    for page in range(0, len(pages), page_bytes):  # hot: some 50,000 rounds for 100,000 memories
        header = page + 100 if is_start and page == 0 else page  # the first page begins with the file's own header
        kind = pages[header]
        if kind in _HEADER_BYTES:
            first = header + _HEADER_BYTES[kind] + 2 * (pages[header + 3] << 8 | pages[header + 4])
            last = page + ((pages[header + 5] << 8 | pages[header + 6]) or 65_536)
            if pages[first:last] != zeros[: last - first]:
                found.append((first, last))
    return found
