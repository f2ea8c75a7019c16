"""A shell in a project of its own."""

from pathlib import Path

import pytest

from tests.builders import FakeClock
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """In the directory `app`, which is a project as soon as something is remembered there."""
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    return Shell(tmp_path, FakeClock())
