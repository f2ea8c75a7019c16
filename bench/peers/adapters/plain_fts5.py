"""The reference: what one writes by hand in an afternoon. One FTS5 table, the best fifty by bm25."""

import re
from pathlib import Path

import apsw
from orders import serve  # type: ignore[import-not-found]


class Plain:
    def __init__(self, folder: Path) -> None:
        self._connection = apsw.Connection(str(folder / "plain.db"))
        self._connection.execute("pragma journal_mode = wal").fetchall()
        self._connection.execute(
            "create virtual table if not exists notes using fts5(name unindexed, text, tokenize = 'porter')"
        )

    def load(self, rows: list[tuple[str, str]]) -> None:
        with self._connection:
            self._connection.executemany("insert into notes values (?, ?)", rows)

    def add(self, name: str, text: str) -> None:
        self._connection.execute("insert into notes values (?, ?)", (name, text))

    def query(self, text: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        sql = "select name, text from notes where notes match ? order by bm25(notes) limit 50"
        return [str(name) for name, _ in self._connection.execute(sql, (match,)).fetchall()][:5]


serve(Plain)
