"""SqliteStore of LangGraph, with its vector index. Where Python's own SQLite loads no extensions, another stands in."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

if not hasattr(sqlite3.Connection, "enable_load_extension"):
    import pysqlite3  # type: ignore[import-not-found]

    sys.modules["sqlite3"] = pysqlite3

from langgraph.store.base import PutOp  # type: ignore[import-not-found]
from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found]
from orders import embedder, serve  # type: ignore[import-not-found]

NOTES = ("notes",)


class LangGraph:
    def __init__(self, folder: Path) -> None:
        index = {"dims": 256, "embed": embedder(), "fields": ["text"]}
        self._entered = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self._store: Any = self._entered.__enter__()
        self._store.setup()

    def load(self, rows: list[tuple[str, str]]) -> None:
        for start in range(0, len(rows), 100):
            self._store.batch([PutOp(NOTES, name, {"text": text}) for name, text in rows[start : start + 100]])

    def add(self, name: str, text: str) -> None:
        self._store.put(NOTES, name, {"text": text})

    def query(self, text: str) -> list[str]:
        return [str(item.key) for item in self._store.search(NOTES, query=text, limit=5)]


serve(LangGraph)
