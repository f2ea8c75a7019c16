"""kill -9, a thousand times, at six writers of one file: nothing acknowledged is lost (B21, C30).

    python -m tests.crash.kills [--kills 1000] [--writers 6]

Each writer says through a pipe what it is about to do and, when the call has returned, that it was done; a pipe keeps
what a dead process wrote. From that the oracle knows, for every memory, what must be there and, for the one
operation that was under way, what may be. Half of the writers die at a random moment by the parent's hand, sometimes
all at once; the others carry a countdown into SQLite's file layer and die before, or in the middle of, a certain
write, sync or truncation: inside a commit, a checkpoint, a scrub. Another round kills the making of a new file at every
such moment. In the end the file must be whole (checks.py), every acknowledged change there, every group
whole, and no erased word in any byte.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path

import msgspec

from kept import text
from kept.ports import ANYWHERE
from kept.storage.sqlite import SqliteStorage
from kept.storage.sqlite.encoding import uid_blob
from tests.crash.checks import SPACE, faults_of, looking_at, opened
from tests.crash.processes import Child
from tests.crash.writers import Contents, Said, canary, make, said_of, write

# Between two kills by the parent's hand, at most. Counted and not timed, so that a busy machine is no excuse.
_MESSAGES = 40
_SILENCE_S = 2.0
_LOOK_EVERY = 200  # kills
_MASSACRES = 0.02  # how often all are killed at once


class Oracle:
    """Knows what must be there."""

    def __init__(self) -> None:
        self.actions: Counter[str] = Counter()
        self.acknowledged: Contents = {}
        self._under_way: dict[int, Said] = {}  # by writer
        self._uncertain: list[tuple[Contents, Contents]] = []  # before and after: one of the two

    def hear(self, writer: int, said: Said) -> None:
        if said.is_done:
            self.acknowledged |= said.contents
            self.actions[said.action] += 1
            del self._under_way[writer]
        else:
            self._under_way[writer] = said

    def bury(self, writer: int) -> str:
        """The writer is dead: what it was doing (the answer) may have happened or not."""
        said = self._under_way.pop(writer, None)
        if said is None:
            return "between two operations"
        self._uncertain.append(({uid: self.acknowledged.pop(uid, None) for uid in said.contents}, said.contents))
        return said.action

    def verdict(self, found: Mapping[str, str]) -> list[str]:
        """What is wrong with what was found, a sentence each. Every writer must be dead."""
        wrong = []
        for uid, content in self.acknowledged.items():
            if found.get(uid) != content:
                wrong.append(f"{uid} was acknowledged, and is {'another' if uid in found else 'not there'}")
        for before, after in self._uncertain:
            if {uid: found.get(uid) for uid in after} not in (before, after):
                wrong.append(f"a group is there in part: {', '.join(after)}")
        known = self.acknowledged.keys() | {uid for _, after in self._uncertain for uid in after}
        return wrong + [f"{uid} was written by nobody" for uid in found.keys() - known]

    def erased(self) -> list[str]:
        return [uid for uid, content in self.acknowledged.items() if content is None]


class Herd:
    """The writers of one file, and who kills them."""

    def __init__(self, path: Path, writers: int, seed: int) -> None:
        self.oracle = Oracle()
        self.died: Counter[str] = Counter()  # in the middle of what
        self.countdowns: Counter[str] = Counter()  # of those: before what, in SQLite's file layer
        self._path = path
        self._writers = writers
        self._rng = random.Random(seed)
        self._seed = seed * 1_000_000
        self._alive: dict[Connection, Child] = {}

    def run(self, kills: int) -> None:
        """Kill so many, and leave none alive."""
        goal = self.died.total() + kills
        while self.died.total() < goal:
            while len(self._alive) < self._writers:
                self._seed += 1
                writer = Child(write, self._path, self._seed)
                self._alive[writer.pipe] = writer
            self._listen(self._rng.randint(0, _MESSAGES))
            victims = list(self._alive)
            self._kill(victims if self._rng.random() < _MASSACRES else self._rng.sample(victims, min(1, len(victims))))
        self._kill(list(self._alive))

    def _listen(self, messages: int) -> None:
        while messages > 0 and (ready := wait(list(self._alive), _SILENCE_S)):
            for pipe in ready:
                assert isinstance(pipe, Connection)
                self._hear(pipe)
                messages -= 1

    def _kill(self, pipes: list[Connection]) -> None:
        for pipe in pipes:
            self._alive[pipe].signal(signal.SIGKILL)
        for pipe in pipes:
            while self._hear(pipe):
                pass

    def _hear(self, pipe: Connection) -> bool:
        """Take one message; False when the writer is dead and has said everything."""
        writer = self._alive[pipe]
        try:
            said = msgspec.msgpack.decode(pipe.recv_bytes(), type=Said | str)
        except EOFError:
            self._bury(writer)
            return False
        if isinstance(said, str):
            self.countdowns[said] += 1
        else:
            self.oracle.hear(writer.pid, said)
        return True

    def _bury(self, writer: Child) -> None:
        doing = self.oracle.bury(writer.pid)
        if (code := writer.wait()) != -signal.SIGKILL:
            raise AssertionError(f"a writer ended by itself, {doing}: exit code {code}")
        self.died[doing] += 1
        del self._alive[writer.pipe]
        writer.pipe.close()


class Report(msgspec.Struct):
    """What the kills did."""

    died: Counter[str]
    countdowns: Counter[str]
    makings: int
    acknowledged: Counter[str]
    problems: list[str]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.died.total()} writers killed, in: {_listed(self.died)}",
                f"of these by countdown, before: {_listed(self.countdowns)}",
                f"{self.makings} kills while a new file was being made",
                f"{self.acknowledged.total()} operations were acknowledged: {_listed(self.acknowledged)}",
                f"{len(self.problems)} problems",
                *self.problems[:20],
            ]
        )


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())


def run(folder: Path, *, kills: int, writers: int = 6, seed: int = 1, making_stride: int = 1) -> Report:
    """Kill so many writers of a file in `folder`, and one maker of a new file at every so manyth step of that."""
    path = folder / "kept.db"
    text.words("loaded once")  # and not again by every writer
    herd = Herd(path, writers, seed)
    problems = []
    while (left := kills - herd.died.total()) > 0:
        herd.run(min(left, _LOOK_EVERY))
        problems += faults_of(path) + herd.oracle.verdict(contents_of(path))
    problems += revived(path, herd.oracle.erased()) + unnoticed_loss(path, herd.oracle)
    makings, unmade = kill_while_making(folder, making_stride)
    return Report(herd.died, herd.countdowns, makings, herd.oracle.actions, problems + unmade)


def contents_of(path: Path) -> dict[str, str]:
    """uid → status and content of every memory in the file, and id → content of every message."""
    with opened(path) as (storage, connection), storage.reading() as reader:
        memories = {memory.uid: said_of(memory) for memory in reader.select(ANYWHERE, limit=10**9)}
        return memories | dict(connection.execute("select message_id, content from messages"))


def revived(path: Path, erased: list[str]) -> list[str]:
    """Erased memories of which a byte is left, once whoever opened the file has finished what the dead began."""
    storage = SqliteStorage(path, SPACE)
    is_done = storage.scrub().is_done
    storage.close()
    content = b"".join(part.read_bytes() for part in path.parent.glob("kept.db*") if part.is_file())
    left = [f"{uid} was erased, but its text is still there" for uid in erased if canary(uid).encode() in content]
    return left if is_done else [*left, "the scrub did not come to its end"]


def unnoticed_loss(path: Path, oracle: Oracle) -> list[str]:
    """Plant a lost write in a copy of the file: if the oracle does not name it, its verdicts are worth nothing."""
    copy = path.with_name("planted.db")
    shutil.copy(path, copy)  # nobody has it open, and there is no WAL
    uid = next(uid for uid in contents_of(path) if uid in oracle.acknowledged)
    with looking_at(copy) as connection:
        connection.execute("delete from memories where uid = ?", (uid_blob(uid),))
    reported = [sentence for sentence in oracle.verdict(contents_of(copy)) if uid in sentence]
    return [] if reported else ["the oracle did not notice a lost write"]


def kill_while_making(folder: Path, stride: int) -> tuple[int, list[str]]:
    """Kill the maker of a new file at its first, second, … step: what is left opens as an empty store."""
    problems = []
    for number in range(10_000):
        place = folder / f"making-{number}"
        place.mkdir()
        maker = Child(make, place / "kept.db", 1 + number * stride)
        code = maker.wait()
        maker.pipe.close()
        problems += [f"made up to step {1 + number * stride}: {fault}" for fault in faults_of(place / "kept.db")]
        if (place / "kept.db").stat().st_mode & 0o077:
            problems.append(f"made up to step {1 + number * stride}: others may read it")
        shutil.rmtree(place)
        if code == 0:
            return number, problems
    raise AssertionError("making a file has no end")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument(
        "--making-stride", type=int, default=1, help="kill the making of a file at every so manyth step"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    options = parser.parse_args()
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="kept-kills-"))
    report = run(
        folder,
        kills=options.kills,
        writers=options.writers,
        seed=options.seed,
        making_stride=options.making_stride,
    )
    print(f"kills, seed {options.seed}")
    print(report)
    print(f"{time.monotonic() - started:.0f} s")
    if report.problems:
        print(f"The file is kept in {folder}.")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
