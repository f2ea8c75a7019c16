"""Many writers at once: nobody is refused, nobody starves, and nobody hangs on one that has stopped (B21).

    python -m tests.crash.storm [--writers 32] [--seconds 10] [--only SCENE]

The storm: so many processes write as fast as they can. None may be refused, the slowest must get at least half of the
mean, and the longest wait for a turn must stay below two seconds. After it come the scenes of sharing.py.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tests.builders import memory, stamp
from tests.crash.checks import faults_of
from tests.crash.processes import Child
from tests.crash.sharing import SCENES, names_in, opened

LONGEST_WAIT_S = 2.0
LEAST_SHARE = 0.5


def _write_for(pipe: Connection, path: Path, number: int, seconds: float) -> None:
    longest_s, writes = 0.0, 0
    with opened(path) as storage:
        pipe.send("ready")
        pipe.recv()
        end = time.monotonic() + seconds
        while (asked := time.monotonic()) < end:
            with storage.writing(stamp(f"group {number}-{writes}")) as tx:
                longest_s = max(longest_s, time.monotonic() - asked)
                tx.add(memory(f"writer{number} turn{writes} of the storm", uid=f"{number}-{writes}"), "remember")
            writes += 1
    pipe.send((writes, longest_s))


def storm(folder: Path, writers: int, seconds: float, least_share: float = LEAST_SHARE) -> str:
    """The figures, in a line. Raises AssertionError when one of them is not as promised."""
    path = folder / "storm.db"
    with opened(path):
        pass
    children = [Child(_write_for, path, number, seconds) for number in range(writers)]
    for child in children:
        assert child.pipe.recv() == "ready"
    for child in children:
        child.pipe.send("go")
    results = [child.pipe.recv() for child in children]  # a writer that was refused is dead, and this raises EOFError
    assert [child.wait() for child in children] == [0] * writers
    counts = [count for count, _ in results]
    longest_s = max(wait_s for _, wait_s in results)
    share = min(counts) / statistics.mean(counts)
    assert faults_of(path) == []
    assert len(names_in(path)) == sum(counts)
    figures = (
        f"{writers} writers, {seconds:g} s: {sum(counts)} writes, 0 refused, "
        f"slowest/mean {share:.2f}, longest wait {longest_s:.2f} s"
    )
    assert share >= least_share, figures
    assert longest_s < LONGEST_WAIT_S, figures
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--least-share", type=float, default=LEAST_SHARE, help="of the mean, for the slowest writer")
    parser.add_argument("--only", choices=("storm", *SCENES), action="append")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kept-storm-"))
    memory("loaded once, and not by every process")
    for name in options.only or ("storm", *SCENES):
        started = time.monotonic()
        if name == "storm":
            print(storm(folder, options.writers, options.seconds, options.least_share))
        else:
            SCENES[name](folder)
            print(f"{name.replace('_', ' ')}: {time.monotonic() - started:.1f} s")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
