"""A storage in one JSON file with a `.bak` beside it: for small stores that people want to read.

The in-memory storage, loaded when the file has changed and saved whole at each commit: into a new
file, synced, the old one kept as `.bak`, then renamed over it, all in this process's turn. Opening
checks the file, falls back to `.bak`, and brings older versions up step by step; status and doctor say that it fell
back until the damaged file is deleted.
Rule: what was erased is in none of the files that Kept keeps beside the store.
"""

import glob
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kept import journal
from kept.errors import Corrupt, InvalidInput, NotAllowed, NotFound, SchemaTooNew, StorageError
from kept.model import SMALL_NOUNS, Message, Record, SessionRecord, replace
from kept.ports import BackupReport, RestoreReport, Scrubbed, Stamp
from kept.storage.checkup import Finding
from kept.storage.files import give_name, is_read_only, sync, unused, write_synced
from kept.storage.inmemory import InMemoryBookkeeping, InMemoryStorage, InMemoryTransaction, State
from kept.storage.lock import Turns
from kept.storage.shared import WRITE_WAIT_S, tombstone

CURRENT_VERSION = 3
# version → what makes a store of that version one of the next. Runs in order, one step at a time.
MIGRATIONS: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda store: store | {"guards": {}},
    2: lambda store: store | {"rejections": {}},
}


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
        self._dropped = 0
        self._refreshed()

    @contextmanager
    def bookkeeping(self, *, passes_fence: bool = False) -> Iterator[InMemoryBookkeeping | None]:
        if is_read_only(self.path):
            yield None
            return
        with super().bookkeeping(passes_fence=passes_fence) as notes:
            yield notes

    def describe(self) -> dict[str, Any]:
        facts = {
            "storage": "json",
            "place": str(self.path),
            "bytes": self.path.stat().st_size if self.path.exists() else 0,
            "schema": self._version,
        }
        if is_read_only(self.path):
            facts["read_only"] = True
        warning = self.warning or _fell_back(self.path)
        return facts | ({"warning": warning} if warning else {})

    def scrub(self) -> Scrubbed:
        """Nothing is left to do: the erasing commit has rewritten the store and dropped the older copies of it."""
        dropped, self._dropped = self._dropped, 0
        return Scrubbed(backups=dropped)

    def back_up(self, target: Path) -> BackupReport:
        with self._explained(target, "No backup was made."):
            state = self._refreshed()
            data = self._encode(state)
            _write_new(target, data)
        return BackupReport(path=str(target), memories=len(state.memories), events=len(state.events), bytes=len(data))

    def restore_from(self, source: Path, *, overwrite_newer: bool = False) -> RestoreReport:
        if not source.is_file():
            raise NotFound(f"There is no backup {source}.", hint="`kept store backup FILE` writes one.")
        wanted = self._parse(source)
        self._take_turn(self._write_wait_s)
        try:
            present = self._refreshed()
            if present.events and not overwrite_newer and present.events[-1] not in wanted.events:
                raise NotAllowed(
                    f"{self.path} has changes that are not in {source}.",
                    hint="Restoring would discard them. The current state would be kept as a backup.",
                )
            left_out = _carry_over(present, wanted, self.space)
            replaced = unused(self.path.parent, f"{self.path.name}.replaced-{{}}") if present.events else None
            if replaced is not None:
                with self._explained(replaced, "Nothing was restored."):
                    _write_new(replaced, self._encode(present))
            self._commit(wanted)
            return RestoreReport(
                memories=len(wanted.memories),
                events=len(wanted.events),
                left_out=left_out,
                replaced=None if replaced is None else str(replaced),
            )
        finally:
            self._end_turn()

    def close(self) -> None:
        super().close()
        self._turns.close()

    def _refreshed(self) -> State:
        """The state as the file has it now; read again only when the file is another one."""
        seen = self._stat(self.path)
        if seen is None and self._stat(self.backup) is None:
            if self._seen is not None:
                raise Corrupt(f"{self.path} disappeared while it was open.", hint="Put it back, or restore a backup.")
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
        file = _whole(path, self._version)
        if file.space != self.space:
            raise InvalidInput(
                f"{path} holds the space {file.space}, not {self.space}.", hint="Give this project a file of its own."
            )
        store = msgspec.json.decode(file.store)
        for version in range(file.version, self._version):
            store = self._migrations[version](store)
        return msgspec.convert(store, State, str_keys=True)

    def _commit(self, state: State, *, has_erased: bool = False) -> None:
        new = self.path.with_name(self.path.name + ".new")
        with self._explained(self.path, "Nothing was stored."):
            try:
                self._write(new, self._encode(state), is_urgent=has_erased)
                self._keep_backup()
                new.replace(self.path)
            except OSError:
                new.unlink(missing_ok=True)
                raise
        self.state = state
        self._seen = self._stat(self.path)
        with self._explained(self.path, "It was stored, but may not survive a power cut."):
            if has_erased:
                self._drop_older_copies()
            sync(self.path.parent)

    def _write(self, new: Path, data: bytes, *, is_urgent: bool) -> None:
        try:
            write_synced(new, [data])
        except OSError:
            if not is_urgent:
                raise
            # On a full disk what is to be erased makes room itself: the backup would have to go anyway.
            self.backup.unlink(missing_ok=True)
            write_synced(new, [data])

    def _encode(self, state: State) -> bytes:
        store = msgspec.Raw(msgspec.json.encode(state))
        return msgspec.json.encode(_File(self._version, self.space, _checksum(store), store))

    @contextmanager
    def _explained(self, path: Path, outcome: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"Cannot write {path}: {error.strerror}.",
                hint=f"{outcome} Free some space or fix the permissions, then try again.",
            ) from error

    def _drop_older_copies(self) -> None:
        """Let no other file hold what was erased: the backup becomes the store as it is, the rest goes."""
        self._keep_backup()
        for pattern in (".damaged-*", ".replaced-*", ".bak.new", ".*.part"):
            for copy in self.path.parent.glob(self.path.name + pattern):
                copy.unlink(missing_ok=True)
                self._dropped += 1

    def _keep_backup(self) -> None:
        """Keep the file as it is under its second name, without a moment in which it has none."""
        if not self.path.exists():
            return
        if self.warning:  # the file is damaged: keep it aside for a person, and keep the good backup
            shutil.copy2(self.path, unused(self.path.parent, f"{self.path.name}.damaged-{{}}"))
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


def _whole(path: Path, version: int) -> _File:
    """Read a file and check it. Raises Corrupt if it is damaged, SchemaTooNew if it is of a later version."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError) as error:
        raise Corrupt(
            f"{path} cannot be read as a memory file ({type(error).__name__}).",
            hint="Nothing was changed. Restore a backup, or move the file away to start with an empty store.",
        ) from error
    if file.version > version:
        raise SchemaTooNew(
            f"{path} was written by a newer kept (version {file.version}, this program knows {version}).",
            hint="Upgrade kept, or open a backup made by an older one.",
        )
    if _checksum(file.store) != file.checksum:
        raise Corrupt(
            f"{path} is damaged: its checksum does not match.",
            hint="Nothing was changed. Restore a backup, or move the file away to start with an empty store.",
        )
    return file


def examine(path: Path) -> list[Finding]:
    """Check a file and the backup beside it, and report if the backup is used, or was. Changes nothing."""
    backup = path.with_name(path.name + ".bak")
    findings = [_examined(path, "file"), *([_examined(backup, "backup")] if backup.exists() else [])]
    if findings[0].level == "problem" and [one.level for one in findings[1:]] == ["ok"]:
        used = "The backup beside it is used instead. The next change keeps the damaged file aside."
        findings[0] = replace(findings[0], hint=used)
    past = _fell_back(path)
    return [*findings, *([Finding("note", "file", past)] if past else [])]


def _examined(path: Path, check: str) -> Finding:
    try:
        _whole(path, CURRENT_VERSION)
    except (Corrupt, SchemaTooNew) as error:
        return Finding("problem", check, error.message, error.hint)
    return Finding("ok", check, f"{path.name} is whole.")


def _fell_back(path: Path) -> str | None:
    """Say that the file was damaged once and its backup took its place, while the damaged file is still beside it."""
    damaged = sorted(path.parent.glob(f"{glob.escape(path.name)}.damaged-*"))
    if not damaged:
        return None
    name = damaged[-1].name
    return (
        f"{path.name} was damaged, and its backup took its place; the newest change before may be missing. "
        f"The damaged file is kept as {name}: compare it, then delete it."
    )


def _carry_over(present: State, wanted: State, space: str) -> int:
    """Carry erasures and used ids over into the restored state. Returns how many memories were left out."""
    stamp = Stamp(group=secrets.token_hex(8), at=datetime.now(UTC), actor="restore")
    erasing = InMemoryTransaction(space, wanted, {}, stamp, secrets.token_hex)
    known = {event.subject for event in present.events} - {memory.uid for memory in present.memories.values()}
    gone = [memory for memory in wanted.memories.values() if memory.uid in known]
    for memory in gone:
        erasing.erase(memory)
    left = {session: _not_erased(session, messages, present) for session, messages in wanted.messages.items()}
    wanted.messages = {session: messages for session, messages in left.items() if messages}
    if present.tombstones:
        erasing.erase_receipts()
    for record in _erased_records(present, wanted):
        if isinstance(record, SessionRecord):
            erasing.release_forks(record.name)
        erasing.erase(record)
    if wanted.key != present.key:
        wanted.key, wanted.tombstones = present.key, set()
    wanted.tombstones |= present.tombstones
    erasing.rows.reserve_ids(present.last_ids)
    return len(gone)


def _not_erased(session: str, messages: Sequence[Message], present: State) -> tuple[Message, ...]:
    """The messages of a restored session, as they are now if they are still there, and those that came later."""
    ours = {message.n: message for message in present.messages.get(session, ())}
    if not ours and tombstone(present.key, f"{SessionRecord.noun}:{session}") in present.tombstones:
        return ()
    later = [message for message in messages if message.n > max(ours, default=0)]
    return (*(ours[message.n] for message in messages if message.n in ours), *later)


def _erased_records(present: State, wanted: State) -> list[Record]:
    """The small records of the restored state that were erased from the present one."""
    erased = journal.erasures(present.events)
    return [record for noun in SMALL_NOUNS for record in wanted.table(noun).values() if record.subject in erased]


def _checksum(store: msgspec.Raw) -> str:
    return hashlib.blake2b(bytes(store), digest_size=16).hexdigest()


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that was not there, whole or not at all."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        write_synced(part, [data])
        give_name(part, path)
    finally:
        part.unlink(missing_ok=True)
