"""Writers in each other's way: the short versions of tests/crash/storm.py."""

import sys

import pytest

from tests.crash.processes import run_program
from tests.crash.storm import SCENES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are not of this platform")


def test_nobody_is_refused_and_nobody_starves() -> None:
    """B21: eight writers for two seconds; the long version has thirty-two for ten."""
    assert "0 refused" in run_program("tests.crash.storm", "--only", "storm", "--writers", "8", "--seconds", "2")


@pytest.mark.parametrize("scene", SCENES)
def test_sharing(scene: str) -> None:
    """B21: each scene is a promise, and its name says which."""
    run_program("tests.crash.storm", "--only", scene)
