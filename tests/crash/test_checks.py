"""The examination notices: a store with one planted fault each, and each is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kept.model import Alias, Conflict, replace
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, memory, stamp
from tests.crash.checks import SPACE, faults_of, looking_at, snapshot

PLANTED = {
    "a row without its event": "delete from events where seq = 3; delete from event_payloads where seq = 3",
    "an event without its row": "delete from memories where uid = 'm2'",
    "a lost alias": "delete from aliases",
    "a changed payload": "update event_payloads set changed = '{\"id\":[null,1]}' where seq = 1",
    "a broken chain": "update events set actor = 'somebody else' where seq = 2",
    "a word missing in the index": (
        "insert into live_fts (live_fts, rowid, words, tag_words, file_words, source_words, kind_words)"
        " select 'delete', id, words, tag_words, file_words, source_words, kind_words from memories where uid = 'm2'"
    ),
    "a miscounted shelf": "update corpus set rows = rows + 1 where shelf = 'live'",
    "a link to nothing": (
        "insert into memory_links (memory_id, related_id, at) values (1, 99, '2026-03-01T12:00:00.000000Z')"
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    storage = SqliteStorage(tmp_path / "kept.db", SPACE)
    with storage.writing(stamp()) as tx:
        first = tx.add(memory("first of the memories", uid="m1"), "remember")
        tx.add(memory("second of the memories", uid="m2"), "remember")
        tx.add(memory("third of the memories", uid="m3"), "remember")
        tx.put(replace(first, status="archived", reason="expired", archived_at=START), "archive")
        tx.add(Alias(word="auth", expands_to=("login",)), "alias")
        tx.add(Conflict(left="m1", right="m2", type="ambiguous", detected_at=START), "conflict")
        gone = tx.add(memory("one that was erased", uid="m4"), "remember")
        tx.erase(gone)
    storage.close()
    return tmp_path / "kept.db"


def test_a_whole_store_has_no_faults(path: Path) -> None:
    assert faults_of(path) == []


@pytest.mark.parametrize("planted", PLANTED)
def test_the_examination_names(planted: str, path: Path) -> None:
    with looking_at(path) as connection:
        connection.pragma("foreign_keys", False)
        for statement in PLANTED[planted].split("; "):
            connection.execute(statement)
    assert faults_of(path) != []


def test_a_file_that_cannot_be_read_is_a_fault_and_no_crash(path: Path) -> None:
    path.write_bytes(b"no database at all " * 100)
    assert faults_of(path) != []


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: tx.add(memory("one more"), "remember"),
        lambda tx: tx.put(replace(tx.select()[0], feedback=3), "reinforce"),
        lambda tx: tx.remove(tx.all(Alias)[0], "alias"),
    ],
)
def test_every_change_changes_the_snapshot(change: Callable[..., object], path: Path) -> None:
    with looking_at(path) as connection:
        before = snapshot(connection)
    storage = SqliteStorage(path, SPACE)
    with storage.writing(stamp()) as tx:
        change(tx)
    storage.close()
    with looking_at(path) as connection:
        assert snapshot(connection) != before
