"""How large a store is, compared with the text in it.

    python -m bench.size [--rows 10000] [--chars 290] [--tiny] [--json]

The memories are written by `remember_many`, with their journal, index and checksums; the file is measured after it
was closed. The parts are the tables and indexes as SQLite counts their pages.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import apsw

import kept
from bench.corpora import NOW, Zipf
from bench.measure import Bar, options, report, table

MOST_TIMES_TEXT = 5.0


def texts(count: int, n_chars: int) -> list[str]:
    """Statements of exactly that many characters."""
    language = Zipf(31)
    return [language.say(n_chars // 3)[:n_chars] for _ in range(count)]


def parts_of(path: Path) -> dict[str, int]:
    """Table → the bytes of its pages, the largest first; indexes count with their own names."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "select name, sum(pgsize) from dbstat group by name order by 2 desc"
    try:
        found: Any = connection.execute(sql).fetchall()
    except apsw.SQLError:  # this SQLite was built without dbstat
        found = []
    finally:
        connection.close()
    return dict(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--chars", type=int, default=290, help="length of a memory")
    given = options(parser, tiny={"rows": 50})
    written = texts(given.rows, given.chars)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with kept.open(path, settings=kept.Settings(), clock=lambda: NOW) as memory:
            memory.remember_many(kept.Draft(content=text) for text in written)
        n_bytes, parts = path.stat().st_size, parts_of(path)
    n_text = sum(len(text.encode()) for text in written)
    lines: list[list[object]] = [["the text", n_text / 1e6, 1.0], ["the file", n_bytes / 1e6, n_bytes / n_text]]
    lines += [[f"  {name}", size / 1e6, size / n_text] for name, size in list(parts.items())[:12]]
    shown = table(f"{given.rows:,} memories of {given.chars} characters", ("", "MB", "times the text"), lines)
    bars = [Bar("bytes of the file, times the bytes of the text", n_bytes / n_text, MOST_TIMES_TEXT)]
    return report(shown, bars, {"text_bytes": n_text, "file_bytes": n_bytes, "parts": parts}, given)


if __name__ == "__main__":
    sys.exit(main())
