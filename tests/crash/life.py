"""A busy life for one storage: every kind of operation, chosen by a seed, each with a name and a promise.

Used by the power cuts. `Life.step()` does one operation and says whether what it did must survive from now on.
"""

import contextlib
import random
from datetime import timedelta
from functools import partial
from pathlib import Path

from kept import text
from kept.model import Alias, Conflict, Memory, Message, replace
from kept.ports import ANYWHERE
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, memory, stamp
from tests.crash.checks import SPACE

_TOPICS = "auth login token cache index retry queue schema deploy budget parser socket mirror shard vector".split()
_OPERATIONS = {  # and how often each
    "add": 26,
    "add_many": 8,
    "change": 13,
    "forget": 8,
    "alias": 6,
    "say": 8,
    "pack": 2,
    "erase": 9,
    "back_up": 3,
    "restore": 3,
    "scrub": 3,
    "note_use": 12,
    "fail": 3,
    "pause_reader": 4,
    "reopen": 5,
}
# What these did must survive from the moment they returned; usage counts need not.
_DURABLE = {"add", "add_many", "change", "forget", "alias", "say", "pack", "erase", "restore"}


class Changed(Exception):
    """Thrown inside a transaction, which must then leave nothing."""


class Life:
    """One storage and what happened to it so far."""

    def __init__(self, path: Path, seed: int, *, vfs: str, synchronous: str) -> None:
        self._open = partial(SqliteStorage, path, SPACE, vfs=vfs, synchronous=synchronous, write_wait_s=5)
        self._rng = random.Random(seed)
        self._serial = 0
        self._reader = contextlib.ExitStack()
        self._backup: Path | None = None
        self._erased: set[str] = set()
        self.scrubbed: set[str] = set()  # words of which no byte may be left any more
        self.storage = self._open()

    def step(self) -> tuple[str, bool]:
        """Do something: (what it was, whether it must survive a power cut from now on)."""
        name = self._rng.choices(list(_OPERATIONS), list(_OPERATIONS.values()))[0]
        self._serial += 1
        getattr(self, f"_{name}")()
        return name, name in _DURABLE

    def close(self) -> None:
        self._reader.close()
        self.storage.close()

    def _new(self) -> Memory:
        # A word that is in no other memory, so that its bytes can be looked for once it was erased.
        canary = f"canary{self._rng.getrandbits(48):012x}"
        words = " ".join(self._rng.choices(_TOPICS, k=self._rng.choice((4, 8, 200))))
        content = f"{canary} {words}"
        return memory(content, fingerprint=text.fingerprint(content), tags=(self._rng.choice(_TOPICS),))

    def _some(self) -> Memory | None:
        with self.storage.reading() as reader:
            found = reader.select(ANYWHERE, limit=200)
        return self._rng.choice(found) if found else None

    def _add(self) -> None:
        with self.storage.writing(stamp()) as tx:
            tx.add(self._new(), "remember")

    def _add_many(self) -> None:
        with self.storage.writing(stamp()) as tx:
            first, second = tx.add(self._new(), "remember"), tx.add(self._new(), "remember")
            tx.put(replace(first, status="archived", reason="superseded", archived_at=START), "archive")
            tx.add(Conflict(left=first.uid, right=second.uid, type="superseded", detected_at=START), "conflict")

    def _change(self) -> None:
        if old := self._some():
            fresh = self._new()
            new = replace(old, content=fresh.content, fingerprint=fresh.fingerprint, feedback=old.feedback + 3)
            with self.storage.writing(stamp()) as tx:
                tx.put(replace(new, status="confirmed", reason=None, archived_at=None), "revise")

    def _forget(self) -> None:
        if old := self._some():
            with self.storage.writing(stamp(), urgent=True) as tx:
                tx.put(replace(old, status="archived", reason="forgotten", archived_at=START), "forget")

    def _alias(self) -> None:
        with self.storage.writing(stamp()) as tx:
            if (known := tx.all(Alias)) and self._rng.random() < 0.5:
                tx.remove(known[0], "alias")
            else:
                tx.add(Alias(word=f"word{self._serial}", expands_to=("one", "two")), "alias")

    def _say(self) -> None:
        session = f"session-{self._rng.randint(1, 3)}"
        said = Message(id=f"message-{self._serial}", role="user", session=session, content=self._new().content)
        with self.storage.writing(stamp()) as tx:
            tx.unpack(session)
            tx.append([said, replace(said, role="assistant", content="understood")])

    def _pack(self) -> None:
        with self.storage.writing(stamp()) as tx:
            tx.pack(f"session-{self._rng.randint(1, 3)}")

    def _erase(self) -> None:
        if old := self._some():
            with self.storage.writing(stamp(), urgent=True) as tx:
                told = [event.changed or {} for event in tx.events(subject=old.uid)]
                tx.erase(old)
            for changed in told:
                if content := changed.get("content", (None, None))[1]:
                    self._erased.add(content.split()[0])
            self._scrub()

    def _back_up(self) -> None:
        self._backup = self.storage.path.with_name(f"backup-{self._serial}.db")
        self.storage.back_up(self._backup)

    def _restore(self) -> None:
        if self._backup:
            self.storage.restore_from(self._backup, overwrite_newer=True)

    def _scrub(self) -> None:
        if self.storage.scrub().is_done:
            self.scrubbed |= self._erased

    def _note_use(self) -> None:
        if some := self._some():
            at = START + timedelta(hours=self._serial)
            with self.storage.bookkeeping() as notes:
                assert notes is not None
                notes.count_uses([some.id, 1, 2], at)
                notes.link([some.id, 1, 2], at)

    def _fail(self) -> None:
        with contextlib.suppress(Changed), self.storage.writing(stamp()) as tx:
            tx.add(self._new(), "remember")
            raise Changed

    def _pause_reader(self) -> None:
        """From now on, or no longer, a reader stands on an old moment, and no checkpoint can pass it."""
        if self._rng.random() < 0.5:
            self._reader.close()
        else:
            self._reader.enter_context(self.storage.reading()).count()

    def _reopen(self) -> None:
        self.close()
        self.storage = self._open()
