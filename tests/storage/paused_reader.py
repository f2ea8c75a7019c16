"""A process that opens a store, looks at it, and then stands still inside its read transaction.

`python -m tests.storage.paused_reader FILE` prints a line when it holds its look, and lets go when its input ends.
"""

import sys
from pathlib import Path

from kept.storage.sqlite import SqliteStorage


def main(path: Path) -> None:
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        print(reader.count(), flush=True)
        sys.stdin.read()
    storage.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
