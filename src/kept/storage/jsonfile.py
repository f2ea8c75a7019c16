"""A storage in one JSON file with a `.bak` beside it: for small stores that people want to look into.

The in-memory storage, loaded when the file has changed and saved whole at each commit: into a new
file, synced, the old one kept as `.bak`, then renamed over it, all in this process's turn. Opening
checks the file, falls back to `.bak` (and says so), and brings older versions up step by step.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kept.errors import Corrupt, InvalidInput, SchemaTooNew, StorageError
from kept.storage.inmemory import InMemoryStorage, State
from kept.storage.shared import WRITE_WAIT_S
from kept.storage.turns import Turns

CURRENT_VERSION = 1
# version → what makes a store of that version one of the next. Runs in order, one step at a time.
MIGRATIONS: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


class _File(msgspec.Struct):
    """The file: its version, whose it is, the store, and a checksum over the store's bytes."""

    version: int
    space: str
    checksum: str
    store: msgspec.Raw


class JsonFileStorage(InMemoryStorage):
    """One space in one JSON file. Several processes may use it; each takes its turn to write."""

    def __init__(
        self,
        path: Path,
        space: str,
        *,
        write_wait_s: float = WRITE_WAIT_S,
        version: int = CURRENT_VERSION,
        migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = MIGRATIONS,
    ) -> None:
        super().__init__(space, write_wait_s=write_wait_s)
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory, not a memory file.", hint="Give a file name inside it.")
        self.path = path
        self.backup = path.with_name(path.name + ".bak")
        self.warning: str | None = None
        self._version = version
        self._migrations = migrations
        self._turns = Turns(path.with_name(path.name + ".lock"))
        self._seen: tuple[int, int, int] | None = None
        self._refreshed()

    def describe(self) -> dict[str, Any]:
        facts = {
            "storage": "json",
            "place": str(self.path),
            "bytes": self.path.stat().st_size if self.path.exists() else 0,
            "schema": self._version,
        }
        return facts | ({"warning": self.warning} if self.warning else {})

    def close(self) -> None:
        super().close()
        self._turns.close()

    def _refreshed(self) -> State:
        """The state as the file has it now; read again only when the file is another one."""
        seen = self._stat(self.path)
        if seen is None and self._stat(self.backup) is None:
            if self._seen is not None:
                raise Corrupt(
                    f"{self.path} has disappeared while it was open.", hint="Put it back, or restore a backup."
                )
            return self.state
        if seen is None or seen != self._seen:
            self.state = self._load()
            self._prepared.clear()
            self._seen = seen
        return self.state

    def _load(self) -> State:
        try:
            return self._parse(self.path)
        except Corrupt as error:
            try:
                state = self._parse(self.backup)
            except Corrupt:
                raise error from None
            self.warning = f"{error.message} The backup beside it was used; the newest change may be missing."
            return state

    def _parse(self, path: Path) -> State:
        try:
            file = msgspec.json.decode(path.read_bytes(), type=_File)
        except (OSError, msgspec.MsgspecError) as error:
            raise Corrupt(
                f"{path} cannot be read as a memory file ({type(error).__name__}).",
                hint="Nothing was changed. Restore a backup, or move the file away to start anew.",
            ) from error
        if file.version > self._version:
            raise SchemaTooNew(
                f"{path} was written by a newer kept (version {file.version}, this program knows {self._version}).",
                hint="Upgrade kept, or open a backup made by an older one.",
            )
        if _checksum(file.store) != file.checksum:
            raise Corrupt(
                f"{path} was damaged after it was written: its checksum does not fit.",
                hint="Nothing was changed. Restore a backup, or move the file away to start anew.",
            )
        if file.space != self.space:
            raise InvalidInput(f"{path} holds the space {file.space}, not {self.space}.")
        store = msgspec.json.decode(file.store)
        for version in range(file.version, self._version):
            store = self._migrations[version](store)
        return msgspec.convert(store, State, str_keys=True)

    def _commit(self, state: State, *, has_erased: bool = False) -> None:
        store = msgspec.Raw(msgspec.json.encode(state))
        file = _File(version=self._version, space=self.space, checksum=_checksum(store), store=store)
        new = self.path.with_name(self.path.name + ".new")
        try:
            _write_synced(new, msgspec.json.encode(file))
            self._keep_backup()
            new.replace(self.path)
            if has_erased:  # or the backup would still hold what was erased
                self._keep_backup()
            _sync_folder(self.path.parent)
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror}.",
                hint="Nothing was stored. Free some space or fix the permissions, then try again.",
            ) from error
        self.state = state
        self._seen = self._stat(self.path)

    def _keep_backup(self) -> None:
        """Keep the file as it is under its second name, without a moment in which it has none."""
        if not self.path.exists():
            return
        if self.warning:  # the file is damaged: keep it aside for a person, and keep the good backup
            shutil.copy2(self.path, _unused(self.path.with_name(self.path.name + ".damaged")))
            self.warning = None
            return
        spare = self.backup.with_name(self.backup.name + ".new")
        spare.unlink(missing_ok=True)
        try:
            os.link(self.path, spare)
        except OSError:  # a file system without hard links
            shutil.copy2(self.path, spare)
        spare.replace(self.backup)

    def _take_turn(self, wait_s: float) -> None:
        self._turns.take(wait_s)

    def _end_turn(self) -> None:
        self._turns.end()

    @staticmethod
    def _stat(path: Path) -> tuple[int, int, int] | None:
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _checksum(store: msgspec.Raw) -> str:
    return hashlib.blake2b(bytes(store), digest_size=16).hexdigest()


def _write_synced(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _unused(path: Path) -> Path:
    number = 1
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")
