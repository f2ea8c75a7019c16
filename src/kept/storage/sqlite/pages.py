"""Database files as bytes: checksums of pages, the frames of a WAL, and the gaps inside pages.

SQLite's own checksum VFS, which apsw brings along, adds 8 bytes to each page that goes into the database and compares
them whenever one is read. (The WAL has checksums of its own.) The header of a file says whether it has them. Another
program that copies a WAL into the database leaves pages whose checksum does not fit; health/recovery.py tells them from
damage. erase.py looks for gaps inside pages, where SQLite leaves old bytes.
Rule: whoever opens a database that may be written, opens it through `vfs()`.
"""

import os
import struct
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import apsw
from msgspec import Struct

BYTES = 8  # at the end of a page: the VFS works on files that reserve exactly that many
PLAIN = "win32" if sys.platform == "win32" else "unix"  # SQLite's own VFS, which takes every page as it is
VERIFYING = "cksmvfs"
_RESERVED_AT = 20  # in the header of a file: how many bytes are kept apart at the end of each page
_SUFFIXES = (".so", ".dylib", ".dll")
_loading = threading.Lock()  # while it is loaded, it is the default of the process for a moment


def vfs() -> str:
    """The VFS to open a database with: the one with checksums, or SQLite's own where apsw came without."""
    if VERIFYING not in apsw.vfs_names():
        with _loading:
            for library in libraries():
                load(library, PLAIN)
    return VERIFYING if VERIFYING in apsw.vfs_names() else PLAIN


def libraries() -> list[Path]:
    """Where the VFS is: one file, or none where apsw came without."""
    folder = Path(apsw.__file__).parent / "sqlite_extra_binaries"
    return [path for suffix in _SUFFIXES if (path := folder / f"cksumvfs{suffix}").is_file()]


def load(library: Path, beneath: str) -> None:
    """Register the VFS of this library, on top of another one."""
    default = apsw.vfs_names()[0]
    scratch = apsw.Connection(":memory:")
    apsw.set_default_vfs(beneath)  # on which it puts itself, and then takes its place
    try:
        with suppress(apsw.Error, AttributeError):  # a SQLite that loads no extensions: then there is no such VFS
            scratch.enable_load_extension(True)
            scratch.load_extension(str(library), "sqlite3_cksumvfs_init")
    finally:
        apsw.set_default_vfs(default)  # others in this process go on as before
        scratch.close()


def make(path: Path) -> None:
    """Give an empty file, which nobody else knows of, a header that says that its pages have checksums.

    A connection sees that when it is opened; one that sees it later has written some pages without.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs())
    try:
        connection.reserve_bytes(reserve=BYTES)
        connection.execute("vacuum")
    finally:
        connection.close()


def is_verified(connection: apsw.Connection) -> bool:
    """Whether this connection compares each page that it reads."""
    return str(connection.pragma("checksum_verification")) == "1"


def read_unverified(connection: apsw.Connection) -> None:
    """Let this connection read pages whatever their checksum; those that it writes get a right one."""
    connection.execute("pragma checksum_verification = off").fetchall()


def reserved_bytes(pages: Sequence[bytes]) -> int:
    """How many bytes are kept apart at the end of each page, told by the first pages of a file."""
    said = pages[0][_RESERVED_AT] if pages and len(pages[0]) > _RESERVED_AT else 0
    return BYTES if header_denies_checksums(pages) else said


def header_denies_checksums(pages: Sequence[bytes]) -> bool:
    """Whether the header denies the checksums that there are: the one byte that the VFS believes without looking."""
    if not pages or len(pages[0]) <= _RESERVED_AT or pages[0][_RESERVED_AT] == BYTES:
        return False
    restored = pages[0][:_RESERVED_AT] + bytes([BYTES]) + pages[0][_RESERVED_AT + 1 :]
    return any(_fits(page) for page in (restored, *pages[1:]))


def _fits(page: bytes) -> bool:
    return len(page) >= 512 and len(page) % 8 == 0 and any(page) and _sum(page[:-BYTES]) == page[-BYTES:]


def _sum(content: bytes) -> bytes:
    """What the VFS computes: two sums, each of which takes in the other."""
    one = other = 0
    for left, right in struct.iter_unpack("<II", content):
        one = (one + left + other) & 0xFFFFFFFF
        other = (other + right + one) & 0xFFFFFFFF
    return struct.pack("<II", one, other)


HEADER_BYTES = 100
_DEFAULT_PAGE_SIZE = 4096
_A_FEW = 5
_WAL_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13  # kinds of b-tree pages: their first byte
_HEADERS = {_INDEX_INTERIOR: 12, _TABLE_INTERIOR: 12, _INDEX_LEAF: 8, _TABLE_LEAF: 8}  # bytes before the pointers


class Frame(Struct, frozen=True):
    """One page in a WAL: where its bytes begin, which page it is, and whether a transaction ends with it."""

    offset: int
    page: int
    ends_transaction: bool


@contextmanager
def opened(path: Path, vfs: str = PLAIN) -> Iterator[apsw.VFSFile]:
    """The database file, through SQLite's own file layer: one that was opened and closed beside it would drop the
    locks that this process holds on it."""
    file = apsw.VFSFile(vfs, str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        yield file
    finally:
        file.xClose()


def header_of(file: apsw.VFSFile) -> bytes:
    """The first bytes of a database; by reading them, a VFS with checksums sees whether the file has any."""
    return file.xRead(HEADER_BYTES, 0)


def page_size(header: bytes) -> int:
    """How long the pages of a database are; what is usual, should its header be damaged."""
    return _size(header[16:18])


def first_pages(path: Path) -> list[bytes]:
    """Some pages from the beginning of a database, as they stand on disk."""
    with opened(path) as file:
        size = page_size(header_of(file))
        n_pages = min(_A_FEW, file.xFileSize() // size)
        return [file.xRead(size, number * size) for number in range(n_pages)]


def bad_pages(path: Path, copied: int = 0) -> list[int]:
    """The pages, counted from 1, that do not fit their checksum; without those of which the WAL has a newer state.

    `copied`: that many frames of the WAL are in the database already.
    """
    found = []
    with opened(path, vfs()) as file:
        size = page_size(header_of(file))
        superseded = {frame.page for frame in wal_frames(wal_of(path), size)[copied:]}
        for number in range(1, file.xFileSize() // size + 1):
            if number not in superseded:
                try:
                    file.xRead(size, (number - 1) * size)
                except apsw.IOError:
                    found.append(number)
    return found


def seal(path: Path, numbers: Collection[int]) -> None:
    """Give these pages the checksum of what they hold. Call it when that has proved to be right, and nobody writes."""
    with opened(path) as plain, opened(path, vfs()) as file:
        size = page_size(header_of(file))
        for number in numbers:
            start = (number - 1) * size
            file.xWrite(plain.xRead(size, start), start)
        file.xSync(apsw.SQLITE_SYNC_FULL)


def add_checksums(path: Path) -> None:
    """Give a file that has none a checksum on each page. Call it while nobody else has it open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs())
    try:
        if is_verified(connection):
            return
        connection.reserve_bytes(reserve=BYTES)
        connection.execute("vacuum")
    finally:
        connection.close()
    # What SQLite wrote before it came to the first page has none yet.
    seal(path, bad_pages(path))


def dirty_gaps(run: bytes, is_start: bool, page_bytes: int) -> list[tuple[int, int, int]]:
    """The b-tree pages with something between cell pointers and cells: where page, gap and cells begin."""
    found = []
    zeros = bytes(page_bytes)
    for page in range(0, len(run), page_bytes):  # hot: some 50,000 rounds for 100,000 memories
        header = page + HEADER_BYTES if is_start and page == 0 else page
        kind = run[header]
        if kind in _HEADERS:
            first = header + _HEADERS[kind] + 2 * (run[header + 3] << 8 | run[header + 4])
            last = page + ((run[header + 5] << 8 | run[header + 6]) or 65_536)
            if run[first:last] != zeros[: last - first]:
                found.append((page, first, last))
    return found


def adds_up(page: bytes, header: int) -> bool:
    """Whether cells, free blocks and fragments fill exactly the room behind the gap of a page: then the gap is one.

    `page` without the bytes of its checksum; `header`: where the header of the page begins.
    """
    kind, free_block, n_cells, content, fragments = struct.unpack_from(">BHHHB", page, header)
    try:
        pointers = struct.unpack_from(f">{n_cells}H", page, header + _HEADERS[kind])
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


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    """How long a file is; one that is not there, or no longer, has no length."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def is_being_swept(path: Path) -> bool:
    """Whether a sweep of this file has begun, and has not ended; then a page may be found half written."""
    return os.path.exists(f"{path}-sweep")  # noqa: PTH110 - every write asks, and a Path takes longer


def wal_frames(wal: Path, page_size: int | None = None) -> list[Frame]:
    """The frames of the newest generation of a WAL, in order, whether or not their checksums fit.

    A WAL is written over from its start, generation after generation, each with salts of its own.
    """
    if size_of(wal) < _WAL_HEADER_BYTES:
        return []
    with wal.open("rb") as file:
        header = file.read(_WAL_HEADER_BYTES)
        size = page_size or _size(header[10:12])
        heads: list[tuple[int, bytes]] = []
        offset = _WAL_HEADER_BYTES
        while len(head := file.read(_FRAME_HEADER_BYTES)) == _FRAME_HEADER_BYTES:
            heads.append((offset + _FRAME_HEADER_BYTES, head))
            offset += _FRAME_HEADER_BYTES + size
            file.seek(offset)
    salts = [head[8:16] for _, head in heads]
    # The header's own salts may be what was damaged: then the first two frames that agree name the generation.
    agreed = next((one for one, two in pairwise(salts) if one == two), None)
    current = header[16:24] if header[16:24] in salts[:2] else agreed
    return [
        Frame(start, int.from_bytes(head[:4], "big"), head[4:8] != b"\0\0\0\0")
        for start, head in heads
        if head[8:16] == current
    ]


def _size(two_bytes: bytes) -> int:
    size = int.from_bytes(two_bytes, "big")
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else _DEFAULT_PAGE_SIZE


def _payload_of(page: bytes, at: int, kind: int) -> tuple[int, int]:
    """Of the cell at this place: how long its payload is, and where that begins."""
    length = 0
    if kind in (_TABLE_INTERIOR, _INDEX_INTERIOR):
        at += 4  # the page on its left
    if kind != _TABLE_INTERIOR:
        length, at = _varint(page, at)
    if kind in (_TABLE_INTERIOR, _TABLE_LEAF):
        _, at = _varint(page, at)  # the rowid
    return length, at


def _local_bytes(length: int, kind: int, usable: int) -> int:
    """How much of a payload stands on the page of its cell; the rest is on overflow pages."""
    most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    fitting = least + (length - least) % (usable - 4)
    return fitting if fitting <= most else least


def _cell_bytes(page: bytes, cell: int, kind: int) -> int:
    """How much room a cell takes on its page."""
    length, begin = _payload_of(page, cell, kind)
    local = _local_bytes(length, kind, len(page))
    return max(4, begin - cell + local + (4 if local < length else 0))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's big-endian integer of one to nine bytes, and where it ends."""
    value = 0
    for length in range(8):
        byte = data[at + length]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + length + 1
    return value << 8 | data[at + 8], at + 9
