"""The power goes at every moment of a busy life: nothing acknowledged is lost (B21, C30).

    python -m tests.crash.powercut [--operations 1000] [--outcomes 4] [--synchronous full]

A storage lives on a recording disk (simulated_disk.py says what is modelled and what is not). Then the power is
cut at every boundary of the recording: after each write, truncation, sync, creation and deletion. Each cut gives some
images of the disk; the real storage opens each of them, and what it finds must be exactly the state after some
operation: at least the last one that had returned before the cut, at most the one under way. Anything older is
a lost acknowledgement, anything else is corruption. Words whose erasure was finished must be in no byte of the image.

With `--synchronous normal` the same life does lose acknowledged rows; if it did not, the disk would prove nothing.
"""

import argparse
import hashlib
import multiprocessing
import random
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import apsw
from msgspec import Struct

from kept.errors import KeptError
from tests.crash.checks import faults_of_file, faults_of_records, looking_at, opened, snapshot
from tests.crash.life import Life
from tests.crash.scratch import scratch_folder
from tests.crash.simulated_disk import Happened, Media, RecordingDisk, on_connect, write_image

OPERATIONS_A_LIFE = 50  # small databases, quickly examined; many lives
_CHECKPOINT_PAGES = 40  # SQLite's 1,000 would mean a checkpoint every fifty operations


class Moment(Struct):
    """What holds from one acknowledgement to the next."""

    state: str
    is_durable: bool
    scrubbed: frozenset[str]


class Report(Struct):
    """What the cuts of some lives did."""

    operations: Counter[str] = Counter()
    boundaries: int = 0
    images: int = 0
    distinct: int = 0
    lost: list[str] = []
    corrupt: list[str] = []

    def __add__(self, other: "Report") -> "Report":
        return Report(
            self.operations + other.operations,
            self.boundaries + other.boundaries,
            self.images + other.images,
            self.distinct + other.distinct,
            self.lost + other.lost,
            self.corrupt + other.corrupt,
        )

    def __str__(self) -> str:
        lines = [
            f"{self.operations.total()} operations: {', '.join(f'{n} {name}' for name, n in self.operations.items())}",
            f"{self.boundaries} boundaries, {self.images} images, {self.distinct} of them distinct",
            f"{len(self.lost)} lost an acknowledged change, {len(self.corrupt)} were not whole",
        ]
        return "\n".join(lines + self.lost[:5] + self.corrupt[:10])


def live(
    folder: Path, seed: int, operations: int, synchronous: str
) -> tuple[list[Happened], list[Moment], Counter[str]]:
    """Record one life: the log, in which mark number i means that moments[i] was acknowledged, and what was done."""
    moments: list[Moment] = []
    done: Counter[str] = Counter()
    path = folder / "kept.db"
    with RecordingDisk() as disk, on_connect(lambda connection: connection.wal_autocheckpoint(_CHECKPOINT_PAGES)):

        def acknowledge(is_durable: bool) -> None:
            assert not list(faults_of_records(life.storage))
            with looking_at(path) as connection:
                state = snapshot(connection)
            # An operation that found nothing to do has nothing to lose, either.
            is_change = not moments or moments[-1].state != state
            moments.append(Moment(state, is_durable and is_change, frozenset(life.scrubbed)))
            disk.mark(str(len(moments) - 1))

        life = Life(path, seed, vfs=disk.vfs, synchronous=synchronous)
        acknowledge(True)
        for _ in range(operations):
            name, is_durable = life.step()
            done[name] += 1
            acknowledge(is_durable)
        life.close()
    return disk.log, moments, done


def cut(
    log: list[Happened], moments: list[Moment], folder: Path, rng: random.Random, outcomes: int, share: float
) -> Report:
    """Cut the power at a share of all boundaries, several times before each sync, and examine what is left."""
    report = Report(lost=[], corrupt=[])
    media = Media()
    acknowledged = -1
    examined: dict[bytes, Found] = {}  # many cuts leave the same bytes, above all when nothing or all was kept
    for number, happened in enumerate(log):
        if happened.kind == "mark":
            acknowledged = int(happened.name)
        else:
            media.do(happened)
        if rng.random() >= share:
            continue
        report.boundaries += 1
        # Before a sync the most is at stake: all that was written since the last one.
        is_before_sync = number + 1 < len(log) and log[number + 1].kind == "sync"
        for _ in range(outcomes if is_before_sync else 1):
            image = media.cut(rng)
            digest = _digest(image)
            if digest not in examined:
                examined[digest] = examine(image, folder / "image")
            report.images += 1
            where = f"cut {number} of {len(log)} ({happened.kind} {happened.name}), acknowledged {acknowledged}"
            lost, broken = judge(image, examined[digest], moments, acknowledged)
            report.lost += [f"{where}: {lost}"] if lost else []
            report.corrupt += [f"{where}: {broken}"] if broken else []
    report.distinct = len(examined)
    return report


class Found(Struct):
    """What the storage makes of an image."""

    fault: str | None = None
    state: str | None = None


def _digest(image: dict[str, bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, content in sorted(image.items()):
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    return digest.digest()


def examine(image: dict[str, bytes], folder: Path) -> Found:
    """Let the real storage open the image, as a program would that starts after the power cut."""
    write_image(image, folder)
    try:
        with opened(folder / "kept.db") as (_, connection):
            faults = list(faults_of_file(connection))
            return Found(faults[0] if faults else None, snapshot(connection))
    except (KeptError, apsw.Error) as error:
        return Found(f"it cannot be opened or read: {error}")


def judge(
    image: dict[str, bytes], found: Found, moments: list[Moment], acknowledged: int
) -> tuple[str | None, str | None]:
    """(what was lost, what is not whole), each None if all is well."""
    for word in moments[acknowledged].scrubbed if acknowledged >= 0 else ():
        if any(word.encode() in content for content in image.values()):
            return None, f"the erased word {word} is there again"
    if found.fault:
        return None, found.fault
    # Equal states need no look at the chain and the records: they were examined when the state was recorded.
    matching = [n for n, moment in enumerate(moments[: max(acknowledged, 0) + 2]) if moment.state == found.state]
    if not matching or (acknowledged < 0 and 0 not in matching):
        return None, "it is in a state in which it never was"
    durable = max((n for n in range(acknowledged + 1) if moments[n].is_durable), default=0)
    return (f"it is as it was after operation {max(matching)}" if max(matching) < durable else None), None


def run(
    folder: Path, *, seed: int, operations: int, synchronous: str = "full", outcomes: int = 4, share: float = 1.0
) -> Report:
    """Live one life in `folder` and cut the power at its boundaries."""
    log, moments, done = live(folder, seed, operations, synchronous)
    report = cut(log, moments, folder, random.Random(seed), outcomes, share)
    return report + Report(operations=done)


def _run_life(seed: int, synchronous: str, outcomes: int) -> Report:
    with scratch_folder() as folder:
        return run(folder, seed=seed, operations=OPERATIONS_A_LIFE, synchronous=synchronous, outcomes=outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1000, help="how many in all")
    parser.add_argument("--outcomes", type=int, default=4, help="images for each boundary before a sync; others: one")
    parser.add_argument("--synchronous", choices=("full", "normal"), default="full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    lives = -(-options.operations // OPERATIONS_A_LIFE)
    job = partial(_run_life, synchronous=options.synchronous, outcomes=options.outcomes)
    total = Report(lost=[], corrupt=[])
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for report in pool.imap_unordered(job, range(options.seed, options.seed + lives)):
            total += report
    print(f"power cuts, synchronous={options.synchronous}, SQLite {apsw.sqlite_lib_version()}")
    print(total)
    is_as_promised = not total.corrupt and bool(total.lost) == (options.synchronous == "normal")
    if options.synchronous == "full":
        control = _run_life(options.seed, "normal", 1)
        print(
            f"the first of these lives with synchronous=normal: {len(control.lost)} of {control.images} images lost it"
        )
        is_as_promised = is_as_promised and bool(control.lost)
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if is_as_promised else 1


if __name__ == "__main__":
    sys.exit(main())
