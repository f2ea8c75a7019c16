"""Write a hundred memories a second into a store, until somebody ends it.

python -m bench.recall_writer FILE [COUNT]
"""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench import corpora
from kept.ports import Stamp
from kept.storage.sqlite import SqliteStorage

PER_SECOND = 100

if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    storage = SqliteStorage(Path(sys.argv[1]))
    next_at = time.monotonic()
    for number, memory in enumerate(corpora.Zipf(12).memories(count)):
        with storage.writing(Stamp(group=f"write-{number}", at=datetime.now(UTC), actor="bench")) as tx:
            tx.add(memory, "remember")
        if number == 0:
            print("writing", flush=True)
        next_at += 1 / PER_SECOND
        time.sleep(max(0.0, next_at - time.monotonic()))
    storage.close()
