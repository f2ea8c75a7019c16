"""The short versions of chaos.py, each in a process of its own; `make test-long` runs the long ones."""

import subprocess
import sys

import pytest

from tests.crash.processes import ROOT
from tests.postgres.server import superuser_url


@pytest.mark.parametrize(
    "scene",
    [
        ("writers", "--writers", "4", "--seconds", "3", "--longest-wait-s", "10"),
        ("kills", "--kills", "2"),
        pytest.param(("standby", "--seconds", "1"), marks=pytest.mark.slow),  # a second server, and copies of it
    ],
    ids=("writers", "kills", "standby"),
)
def test_scene(scene: tuple[str, ...]) -> None:
    """B14, B21: no acknowledged write is lost or doubled; with a local commit the standby does lose some."""
    superuser_url()  # skips where no server can run
    done = subprocess.run(
        [sys.executable, "-m", "tests.postgres.chaos", *scene],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "0 lost" in done.stdout or "0 of" in done.stdout
