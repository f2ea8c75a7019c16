"""A project and its global space, on any storage: what a home has, without the home."""

from pathlib import Path
from typing import Any

import kept
from kept.memory.context import Context
from kept.model import Actor
from kept.ports import Storage
from kept.projects.spaces import OneSpace
from tests.builders import FakeClock
from tests.contract.benches import BENCHES


class TwoSpaces(OneSpace):
    def __init__(self, project: Storage, shared: Storage) -> None:
        super().__init__(project)
        self._shared = shared

    def shared(self) -> Storage | None:
        return self._shared

    def ensure_shared(self) -> Storage:
        return self._shared


def open_two(storage: str, folder: Path, **about: Any) -> kept.Kept:
    """A memory with both spaces on one kind of storage; `about` as for kept.open."""
    bench = BENCHES[storage](folder)
    usual = {"actor": Actor(), "settings": kept.Settings(), "clock": FakeClock()}
    return kept.Kept(Context(spaces=TwoSpaces(bench.open("project/p1"), bench.open("global")), **(usual | about)))
