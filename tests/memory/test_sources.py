"""Pieces of the project's own files, kept beside what was remembered."""

from pathlib import Path

import apsw

import kept
from kept.model import Draft, Source
from tests.builders import FakeClock


def piece(content: str, file: str, line: int) -> Draft:
    return Draft(content=content, scope="sources", source=Source(origin="import", file=file, line=line))


def test_pieces_of_sources_are_indexed_with_their_place_and_kept_once(tmp_path: Path) -> None:
    """B8, B17: one SQLite file holds the index, the chunks, where each came from, and no chunk twice."""
    path = tmp_path / "brain.db"
    with kept.open(path, clock=FakeClock(), settings=kept.Settings()) as memory:
        memory.remember("The ferry is late on Mondays")
        first, second, again = memory.remember_many(
            [
                piece("The ferry leaves from pier seven.", "docs/ferry.md", 12),
                piece("The lighthouse was painted in May.", "docs/lighthouse.md", 3),
                piece("The  ferry leaves from pier SEVEN.", "docs/copy.md", 80),
            ]
        )
        assert (first.outcome, second.outcome, again.outcome) == ("candidate", "candidate", "strengthened")
        (hit,) = memory.recall("ferry pier", scope="sources")
        assert (hit.memory.source.file, hit.memory.source.line) == ("docs/ferry.md", 12)
        assert [hit.memory.content for hit in memory.recall("ferry")] == ["The ferry is late on Mondays"]
    with_plain_sql = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "select source_file, source_line from memories where scope = 'sources' order by id"
    assert with_plain_sql.execute(sql).fetchall() == [("docs/ferry.md", 12), ("docs/lighthouse.md", 3)]
    with_plain_sql.close()
