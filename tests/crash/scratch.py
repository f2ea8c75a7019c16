"""A folder for a moment, in memory where that is possible: these suites sync thousands of times and need no disk."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kept-crash-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
