"""A checksum at the end of every page, so that no changed byte is read as if it had been written.

SQLite's own checksum VFS does the work, which apsw brings along: it adds 8 bytes to each page that goes into the
database, and looks at them whenever one is read. (The WAL has checksums of its own.) The header of a file says
whether it has them. Rule: whoever in Kept opens a database that may be written, opens it through `vfs()`. Another
program that copies a WAL into the database leaves pages whose checksum does not fit; `repair` tells them from damage.
"""

import struct
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import apsw

BYTES = 8  # at the end of a page: the VFS works on files that keep just so many apart
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
    return BYTES if is_disowned(pages) else said


def is_disowned(pages: Sequence[bytes]) -> bool:
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
