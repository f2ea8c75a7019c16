"""Writers in each other's way: the short version of tests/crash/storm.py, and all scenes of sharing.py."""

import sys

import pytest

from tests.crash.processes import run_program
from tests.crash.sharing import SCENES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are not of this platform")


def test_nobody_is_refused_and_nobody_starves() -> None:
    """B21: eight writers for two seconds; the long version has thirty-two for ten.

    Less is asked of the slowest here: beside other tests, the machine itself is not fair to everybody for two seconds.
    """
    storm = ("--only", "storm", "--writers", "8", "--seconds", "2", "--least-share", "0.2")
    assert "0 refused" in run_program("tests.crash.storm", *storm)


@pytest.mark.parametrize("scene", SCENES)
def test_sharing(scene: str) -> None:
    """B21: each scene is a promise, and its name says which."""
    run_program("tests.crash.storm", "--only", scene)
