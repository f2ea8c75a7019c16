"""Set-up that all tests share."""

import gc
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import hypothesis
import pytest

pytest.register_assert_rewrite("tests.contract.promises")

IS_LONG = bool(os.environ.get("KEPT_TEST_LONG"))
MEMORY = Path("/dev/shm")
ROOM_BYTES = 4_000_000_000  # several times the most that two workers have at once
CHOSEN = ("TMPDIR", "PYTEST_DEBUG_TEMPROOT")  # folders that somebody has chosen


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs under test, put temporary files into memory, and choose the number of examples.

    A shell starts background jobs with SIGINT ignored, and children inherit that. Nearly every test writes and syncs
    stores; on a disk the tests wait for that most of the time.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy: two workers share two cores
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not any(name in os.environ for name in CHOSEN) and _is_usable(MEMORY):
        os.environ.update(dict.fromkeys(CHOSEN, str(MEMORY)))
        tempfile.tempdir = str(MEMORY)
    busy = [hypothesis.HealthCheck.too_slow]  # it measures by the clock, and others may use this machine
    hypothesis.settings.register_profile("kept", max_examples=1_000 if IS_LONG else 60, suppress_health_check=busy)
    hypothesis.settings.load_profile("kept")


def _is_usable(folder: Path) -> bool:
    """Return True if the folder has room and programs in it can be run, as some tests do."""
    try:
        if shutil.disk_usage(folder).free < ROOM_BYTES:
            return False
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            program = Path(scratch) / "program"
            program.write_text("#!/bin/sh\n")
            program.chmod(0o700)
            return subprocess.run([program], check=False).returncode == 0
    except OSError:
        return False


def pytest_collection_finish() -> None:
    """Keep the ten thousand collected tests out of garbage collections, each of which would look through them all."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the long versions to `make test-long`."""
    if not IS_LONG:
        for item in items:
            if item.get_closest_marker("slow") is not None:
                item.add_marker(pytest.mark.skip(reason="a long version; `make test-long` runs it"))
