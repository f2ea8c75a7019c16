"""Kept itself, through its public face: every query also writes its receipt, its links and its uses."""

from pathlib import Path

from orders import serve  # type: ignore[import-not-found]

import kept


class Ours:
    def __init__(self, folder: Path) -> None:
        self._memory = kept.open(folder / "memory.db", settings=kept.Settings())

    def load(self, rows: list[tuple[str, str]]) -> None:
        list(self._memory.remember_many(kept.Draft(content=text, tags=(name,)) for name, text in rows))

    def add(self, name: str, text: str) -> None:
        self._memory.remember(text, tags=[name])

    def query(self, text: str) -> list[str]:
        return [hit.memory.tags[0] for hit in self._memory.recall(text)]


serve(Ours)
