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
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
    file = apsw.VFSFile(vfs or "", str(path), [flags, 0])
    try:
        page_bytes = int.from_bytes(file.xRead(2, 16), "big")
        page_bytes = 65_536 if page_bytes == 1 else page_bytes
        swept = 0
        for start in range(0, file.xFileSize(), page_bytes * _PAGES_AT_ONCE):
            pages = file.xRead(min(page_bytes * _PAGES_AT_ONCE, file.xFileSize() - start), start)
            for first, last in _gaps(pages, start, page_bytes):
                if pages[first:last].strip(b"\0"):
                    file.xWrite(bytes(last - first), start + first)
                    swept += 1
        if swept:
            file.xSync(apsw.SQLITE_SYNC_FULL)
        return swept
    finally:
        file.xClose()


def _gaps(pages: bytes, start: int, page_bytes: int) -> list[tuple[int, int]]:
    """Where, in each of these b-tree pages, the room between the cell pointers and the first cell begins and ends."""
    gaps = []
    for page in range(0, len(pages), page_bytes):
        header = page + 100 if start + page == 0 else page  # the first page begins with the file's own header
        header_bytes = _HEADER_BYTES.get(pages[header])
        if header_bytes is None:
            continue
        cells = pages[header + 3] << 8 | pages[header + 4]
        content = (pages[header + 5] << 8 | pages[header + 6]) or 65_536
        gaps.append((header + header_bytes + 2 * cells, page + content))
    return gaps
