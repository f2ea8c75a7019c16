"""A disk that can be watched, made to fail, and robbed of its power: an apsw VFS over the real files.

`TappedDisk` passes every call on to SQLite's own VFS (shared memory and locks included, so several connections and
processes behave as always) and asks `before` first, which may refuse. `RecordingDisk` keeps a log, and
`Media` replays such a log: at any boundary it can say what a power cut might have left on the platter.

The model. What was written is in a cache until the file is synced. When the power goes, each unsynced write and
truncation is kept, lost or, sector by sector (512 bytes), torn, independently of all others: the cache has no order.
Names (files made and deleted) live in the directory, which is journaled: they become durable in their order, at the
latest when the directory is synced, which SQLite does at the first sync of a new journal or WAL.

Not modelled: a drive that says "synced" and lies; sectors of the neighbourhood damaged by a torn write (SQLite
trusts the drive not to: powersafe overwrite); a sync that failed once and then succeeds without writing again; bit
rot; names that become durable out of order; the shared-memory file, which nobody needs after a crash.
"""

import contextlib
import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn, Self
from unittest import mock

import apsw
from msgspec import Struct

from kept.storage.sqlite import pages, storage
from kept.storage.sqlite.connection import connect

SECTOR = 512
_RECORDED = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_SYNCS_ITS_FOLDER = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_names = (f"tap{number:04x}" for number in itertools.count())

Kind = Literal["create", "write", "truncate", "sync", "delete", "mark"]


class Happened(Struct):
    """One call that reached the disk, or (`mark`) something that the test wants to find again in the log."""

    kind: Kind
    name: str
    offset: int = 0
    data: bytes = b""
    is_journal: bool = False


class Refusal(Struct):
    """Let only so many bytes of the write through, and then do this instead."""

    then: Callable[[], NoReturn]
    let_through: int = 0


Before = Callable[[Happened], Refusal | None]


class TappedDisk(apsw.VFS):
    """SQLite's own VFS, with a hook before every change, beneath the checksums of pages.

    A context manager: inside, a database can be opened on it by the name `vfs`.
    """

    def __init__(self, before: Before = lambda happened: None) -> None:
        tapped = next(_names)
        self.before = before
        super().__init__(tapped, pages.PLAIN)
        self.vfs = _checksums_on_top_of(tapped)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        apsw.unregister_vfs(self.vfs)
        self.unregister()

    def after(self, happened: Happened) -> None:
        """It was done."""

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if name is None or not flags[0] & _RECORDED:
            return apsw.VFSFile(pages.PLAIN, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        file = TappedFile(self, Path(path).name, name, flags)
        self.opened(file)
        return file

    def opened(self, file: "TappedFile") -> None:
        """A database, journal or WAL was opened."""

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        happened = Happened("delete", Path(filename).name, is_journal=syncdir)
        self.do(happened, lambda data: super(TappedDisk, self).xDelete(filename, syncdir))

    def do(self, happened: Happened, act: Callable[[bytes], object]) -> None:
        refusal = self.before(happened)
        if refusal is not None:
            if refusal.let_through:
                act(happened.data[: refusal.let_through])
            refusal.then()
        act(happened.data)
        self.after(happened)


def _checksums_on_top_of(vfs: str) -> str:
    """The name of a VFS with checksums that stands on this one.

    The library can be registered once, under one name: this is a copy of it with a name as long.
    """
    name = "sum" + vfs[-4:]
    for library in pages.libraries():
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, library.name)
            copy.write_bytes(library.read_bytes().replace(pages.VERIFYING.encode(), name.encode()))
            pages.load(copy, vfs)
    assert name in apsw.vfs_names(), "this apsw came without the checksum VFS"
    return name


class TappedFile(apsw.VFSFile):
    """One open file of a tapped disk."""

    def __init__(self, disk: TappedDisk, name: str, full_name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__(pages.PLAIN, full_name, flags)
        self.name = name
        self.is_journal = bool(flags[0] & _SYNCS_ITS_FOLDER)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        happened = Happened("write", self.name, offset, bytes(data))
        self._disk.do(happened, lambda part: super(TappedFile, self).xWrite(part, offset))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        happened = Happened("truncate", self.name, newsize)
        self._disk.do(happened, lambda data: super(TappedFile, self).xTruncate(newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        happened = Happened("sync", self.name, is_journal=self.is_journal)
        self._disk.do(happened, lambda data: super(TappedFile, self).xSync(flags))


class RecordingDisk(TappedDisk):
    """Keeps a log of everything that was done, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Happened] = []
        self._known: set[str] = set()

    def opened(self, file: TappedFile) -> None:
        if file.name not in self._known:
            self._known.add(file.name)
            self.log.append(Happened("create", file.name))

    def after(self, happened: Happened) -> None:
        if happened.kind == "delete":
            self._known.discard(happened.name)
        self.log.append(happened)

    def mark(self, name: str) -> None:
        """Note a moment of the test in the log."""
        self.log.append(Happened("mark", name))


class _File(Struct):
    durable: bytearray
    cached: list[Happened]
    has_durable_name: bool = False


class Media:
    """What is on the platter and what is only in the cache, after each step of a log."""

    def __init__(self) -> None:
        self._folder: dict[str, _File] = {}  # as it is durable
        self._renames: list[tuple[str, _File | None]] = []  # names made (a file) and deleted (None), not yet durable
        self._live: dict[str, _File] = {}  # as programs see it

    def do(self, happened: Happened) -> None:
        """Let one more thing happen."""
        name = happened.name
        match happened.kind:
            case "create":
                self._live[name] = _File(bytearray(), [])
                self._renames.append((name, self._live[name]))
            case "delete":
                del self._live[name]
                self._renames.append((name, None))
                if happened.is_journal:
                    self._sync_folder()
            case "write" | "truncate":
                self._live[name].cached.append(happened)
            case "sync":
                file = self._live[name]
                for cached in file.cached:
                    _put(file.durable, cached)
                file.cached.clear()
                if happened.is_journal and not file.has_durable_name:
                    self._sync_folder()

    def cut(self, rng: random.Random) -> dict[str, bytes]:
        """What may be found after a power cut now: file name → bytes."""
        folder = dict(self._folder)
        for name, file in self._renames[: rng.randint(0, len(self._renames))]:
            if file is None:
                folder.pop(name, None)
            else:
                folder[name] = file
        # Sometimes all or nothing reached the platter, which pure chance would hardly ever try.
        kept_share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        return {name: self._survives(file, kept_share, rng) for name, file in folder.items()}

    def _survives(self, file: _File, kept_share: float, rng: random.Random) -> bytes:
        content = bytearray(file.durable)
        for cached in file.cached:
            if rng.random() < kept_share:
                _put(content, cached)
            elif cached.kind == "write" and rng.random() < 0.3:
                for piece in _sectors(cached):
                    if rng.random() < 0.5:
                        _put(content, piece)
        return bytes(content)

    def _sync_folder(self) -> None:
        for name, file in self._renames:
            if file is None:
                self._folder.pop(name, None)
            else:
                self._folder[name] = file
                file.has_durable_name = True
        self._renames.clear()


def _put(content: bytearray, cached: Happened) -> None:
    if cached.kind == "truncate":
        del content[cached.offset :]
        content.extend(bytes(cached.offset - len(content)))
    else:
        content.extend(bytes(max(0, cached.offset - len(content))))
        content[cached.offset : cached.offset + len(cached.data)] = cached.data


def _sectors(write: Happened) -> Iterator[Happened]:
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield Happened("write", write.name, start, write.data[start - write.offset : stop - write.offset])
        start = stop


def write_image(image: dict[str, bytes], folder: Path) -> None:
    """Put the files of an image into a folder, in the place of whatever was there."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.is_file():
            old.unlink()
    for name, content in image.items():
        (folder / name).write_bytes(content)


@contextlib.contextmanager
def on_connect(act: Callable[[apsw.Connection], None]) -> Iterator[None]:
    """Inside the block, let `act` see every connection that a SQLite storage opens, once its pragmas are in force."""

    def connect_and_act(path: Path, **options: Any) -> apsw.Connection:
        connection = connect(path, **options)
        act(connection)
        return connection

    with mock.patch.object(storage, "connect", connect_and_act):
        yield
