"""The writers that kills.py kills: what they do, what they say about it, and how some of them kill themselves."""

import hashlib
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import msgspec

from kept import ids, text
from kept.model import Memory, Message, replace
from kept.ports import Stamp
from kept.storage.sqlite import SqliteStorage
from tests.crash.checks import SPACE
from tests.crash.simulated_disk import Happened, Refusal, TappedDisk, on_connect

_TOPICS = "auth login token cache index retry queue schema deploy budget parser socket mirror shard vector".split()
_CHECKPOINT_PAGES = 100  # SQLite's 1,000 would be reached by few of these short lives

Contents = dict[str, str | None]  # uid → status and content (of a message: id → content); None: not there


class Said(msgspec.Struct, array_like=True):
    """What a writer says: that it is about to do something, or that it was done."""

    is_done: bool
    action: str
    contents: Contents


def canary(uid: str) -> str:
    """A word that is in no memory but this one, whatever becomes of its text."""
    return "canary" + hashlib.blake2b(uid.encode(), digest_size=10).hexdigest()


class Writer:
    """One writing process, until it is killed."""

    def __init__(self, pipe: Connection, path: Path, seed: int, vfs: str | None) -> None:
        self._pipe = pipe
        self._rng = random.Random(seed)
        self._open = partial(SqliteStorage, path, SPACE, vfs=vfs)
        self._storage = self._open()
        self._mine: dict[str, Memory] = {}

    def run(self) -> NoReturn:
        while True:
            action = self._rng.choices(
                ("add", "revise", "archive", "say", "erase", "note use", "reopen"), (36, 18, 8, 12, 12, 10, 5)
            )[0]
            if action == "add":
                self._write(action, [self._new() for _ in range(self._rng.choice((1, 1, 3)))])
            elif action == "say":
                self._say()
            elif action in ("note use", "reopen"):
                with self._telling(action, {}):
                    self._note_use() if action == "note use" else self._reopen()
            elif self._mine:
                memory = self._rng.choice(list(self._mine.values()))
                if action == "erase":
                    with self._telling(action, {memory.uid: None}):
                        self._erase(memory)
                elif action == "revise":
                    self._write(action, [replace(memory, content=self._text(memory.uid))])
                else:
                    now = datetime.now(UTC)
                    self._write(action, [replace(memory, status="archived", reason="expired", archived_at=now)])

    def _write(self, action: str, memories: list[Memory]) -> None:
        contents: Contents = {memory.uid: said_of(memory) for memory in memories}
        with self._telling(action, contents), self._storage.writing(self._stamp()) as tx:
            put = tx.add if action == "add" else tx.put
            written = [put(memory, action) for memory in memories]
        self._mine |= {memory.uid: memory for memory in written}

    def _say(self) -> None:
        content = " ".join(self._rng.choices(_TOPICS, k=12))
        said = Message(id=self._rng.randbytes(8).hex(), role="user", session=f"talk-{os.getpid()}", content=content)
        with self._telling("say", {said.id: content}), self._storage.writing(self._stamp()) as tx:
            tx.append([said])

    def _erase(self, memory: Memory) -> None:
        with self._storage.writing(self._stamp(), urgent=True) as tx:
            tx.erase(memory)
        self._storage.scrub()
        del self._mine[memory.uid]

    def _note_use(self) -> None:
        used = [memory.id for memory in self._mine.values()][:5]
        with self._storage.bookkeeping() as notes:
            if notes is not None:
                notes.count_uses(used, datetime.now(UTC))
                notes.link(used, datetime.now(UTC))

    def _reopen(self) -> None:
        self._storage.close()
        self._storage = self._open()

    @contextmanager
    def _telling(self, action: str, contents: Contents) -> Iterator[None]:
        self._pipe.send_bytes(msgspec.msgpack.encode(Said(False, action, contents)))
        yield
        self._pipe.send_bytes(msgspec.msgpack.encode(Said(True, action, contents)))

    def _new(self) -> Memory:
        now = datetime.now(UTC)
        uid = ids.uuid7(now, self._rng.randbytes(ids.UID_ENTROPY_BYTES))
        content = self._text(uid)
        return Memory(
            uid=uid,
            space=SPACE,
            content=content,
            fingerprint=text.fingerprint(content),
            trust="agent",
            created_at=now,
            updated_at=now,
        )

    def _text(self, uid: str) -> str:
        return f"{canary(uid)} {' '.join(self._rng.choices(_TOPICS, k=self._rng.choice((4, 8, 60))))}"

    def _stamp(self) -> Stamp:
        return Stamp(group=self._rng.randbytes(8).hex(), at=datetime.now(UTC), actor="writer")


def said_of(memory: Memory) -> str:
    return f"{memory.status}: {memory.content}"


class Countdown:
    """Counts what reaches the disk, and kills the process at a certain moment."""

    def __init__(self, pipe: Connection, steps: int, *, is_torn: bool) -> None:
        self._pipe = pipe
        self._left = steps
        self._is_torn = is_torn

    def __call__(self, happened: Happened) -> Refusal | None:
        self._left -= 1
        if self._left > 0:
            return None
        part = {"-wal": "the WAL", "-journal": "the journal"}.get(happened.name[len("kept.db") :], "the database")
        self._pipe.send_bytes(msgspec.msgpack.encode(f"{happened.kind} of {part}"))
        half = len(happened.data) // 2 if self._is_torn else 0
        return Refusal(_kill_this_process, half)


def _kill_this_process() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def write(pipe: Connection, path: Path, seed: int) -> None:
    """What a writer process does. Odd seeds die by countdown."""
    rng = random.Random(seed)
    countdown = Countdown(pipe, int(2 ** rng.uniform(0, 10)), is_torn=rng.random() < 0.3)
    with on_connect(lambda connection: connection.wal_autocheckpoint(_CHECKPOINT_PAGES)):
        if seed % 2:
            with TappedDisk(countdown) as disk:
                Writer(pipe, path, seed, disk.vfs).run()
        Writer(pipe, path, seed, None).run()


def make(pipe: Connection, path: Path, steps: int) -> None:
    """Make a new file, and die at the given step of that."""
    with TappedDisk(Countdown(pipe, steps, is_torn=bool(steps % 2))) as disk:
        SqliteStorage(path, SPACE, vfs=disk.vfs).close()
