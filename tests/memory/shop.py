"""A project in a folder, for tests of tool calls: as the agent or the person opens it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory.deliver import Listener
from tests.builders import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@contextmanager
def open_shop(tmp_path: Path, clock: FakeClock, **who: Any) -> Iterator[kept.Kept]:
    """Open the memory of the project `shop`, with settings that no file of the machine changes."""
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    with kept.open(project=folder, home=tmp_path / "home", clock=clock, settings=kept.Settings(), **who) as opened:
        yield opened


def listener(session: str = "s-1", event: str = "PreToolUse") -> Listener:
    return Listener(session=session, event=event)
