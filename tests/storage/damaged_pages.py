"""Damage every page of a store in turn and count what that costs since the last backup.

    python -m tests.storage.damaged_pages

The store has a day of writes that its newest backup does not have. A page whose content can be made again, or proves
right, is repaired in place and costs nothing. Any other page costs whatever is newer than the backup, and nothing else:
after the restore every memory of the backup is there.
"""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from kept.ports import ANYWHERE
from kept.storage.sqlite import SqliteStorage, health, pages, restore
from tests.builders import START, memory, stamp

SPACE = "project/p1"
PAGE = 4096
OLDER, NEWER = 400, 30  # memories in the backup, and of the day since


def run(older: int = OLDER, newer: int = NEWER, *, every: int = 1) -> Counter[str]:
    """Damage every page, or every nth, and count how each trial ended."""
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder) / "space" / "kept.db", Path(folder) / "space" / "kept.db.backups" / "2026-03-01.db"
        copy.parent.mkdir(mode=0o700, parents=True)
        _remember(path, range(older))
        storage = SqliteStorage(path)
        storage.back_up(copy)
        storage.close()
        _remember(path, range(older, older + newer))
        sound = path.read_bytes()
        return Counter(
            _trial(path, copy, sound, number, (older, newer)) for number in range(1, len(sound) // PAGE + 1, every)
        )


def _remember(path: Path, numbers: range) -> None:
    storage = SqliteStorage(path, SPACE)
    rng = random.Random(numbers[0])
    for number in numbers:
        words = " ".join(rng.choices("auth token cache schema worker queue deploy mirror".split(), k=20))
        with storage.writing(stamp()) as tx:
            tx.add(memory(f"Memory {number}: {words}", space=SPACE), "remember")
    with storage.bookkeeping() as notes:
        assert notes is not None
        for number in numbers[::4]:
            notes.save_receipt({"query": "auth", "answer": [number] * 50}, [str(number)], START)
    storage.close()


def _trial(path: Path, copy: Path, sound: bytes, number: int, sizes: tuple[int, int]) -> str:
    content = bytearray(sound)
    content[(number - 1) * PAGE + random.Random(number).randrange(100, PAGE - pages.BYTES)] ^= 0x41
    for beside in path.parent.glob(f"{path.name}[-.]*"):
        if beside.is_file():
            beside.unlink()
    path.write_bytes(content)
    path.chmod(0o600)
    is_repaired = all(finding.level != "problem" for finding in health.repair(path, now=START))
    older, newer = sizes
    if not is_repaired:
        told = " ".join(finding.message for finding in health.examine(path, now=START))
        if f"newest good backup is {copy}" not in told:
            return "failure: the backup is not named"
        if f"{newer} events, {newer} new memories" not in told and "cannot be told" not in told:
            return "failure: the loss is not counted"
        restore.replace_damaged(path, copy, space=SPACE, wait_s=1, now=START)
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        there = len(reader.select(ANYWHERE, limit=older + newer + 1))
    storage.close()
    if there != (older + newer if is_repaired else older):
        return f"failure: {there} memories"
    return "repaired, nothing lost" if is_repaired else f"restored, {newer} memories lost"


def main() -> int:
    outcomes = run()
    total = sum(outcomes.values())
    for outcome, number in outcomes.most_common():
        print(f"{number:6,} of {total:,} pages ({number / total:.0%})  {outcome}")
    return any(outcome.startswith("failure") for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
