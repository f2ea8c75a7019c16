"""A database of OpenCode that has no conversation yet is read as what it is."""

from pathlib import Path

import apsw

from kept.exchange.transcripts import database_lines


def test_an_empty_database_has_no_lines(tmp_path: Path) -> None:
    database = tmp_path / "opencode.db"
    connection = apsw.Connection(str(database))
    for table in ("session", "message", "part"):
        connection.execute(f"create table {table} (id text primary key, time_created integer)")
    connection.close()
    assert list(database_lines(database)) == []
