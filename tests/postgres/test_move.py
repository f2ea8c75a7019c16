"""A space is carried over whole, from a file into PostgreSQL and back (D3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kept
from kept import journal
from kept.errors import NotAllowed
from kept.memory.move import digest_of, move
from kept.model import Message, Session
from kept.ports import ANYWHERE, Storage
from kept.storage.inmemory import InMemoryStorage
from kept.storage.postgres import PostgresStorage
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, FakeClock, memory, stamp
from tests.postgres.server import emptied, shared_database


def lived_in(path: Path) -> SqliteStorage:
    """A store in which a bit of everything has happened."""
    with kept.open(path, clock=FakeClock(), confirm=lambda _: True) as memories:
        for number in range(30):
            memories.remember(
                f"The service number {number} listens on port {8000 + number}", tags=["ports"], key=f"k{number}"
            )
        memories.remember("Always use tabs", kind="convention")
        memories.remember("Never use tabs", kind="convention")
        memories.revise("1", "The service number 0 listens on port 9999")
        memories.reinforce("2")
        memories.forget("3")
        memories.pin("4")
        memories.undo()
        memories.erase("5")
        memories.erase("32")
        memories.aliases.add("svc", "service")
        memories.task("TASK-1", description="Move the store")
        memories.recall("service port 8007")
        memories.recall("service port 8008")
    storage = SqliteStorage(path)
    with storage.writing(stamp("talk")) as tx:
        tx.add(Session(name="s1", started_at=START), "session")
        tx.add(Session(name="s2", parent="s1", shared=1, started_at=START), "session")
        tx.append([Message(id=f"m{n}", role="user", session="s1", content=f"said {n} \0") for n in range(3)])
        tx.append([Message(id="m9", role="user", session="s2", content="said on", at=START)])
        tx.append([Message(id="m1", role="user", session="old", content="long ago")])
        tx.pack("old")
        tx.note_file("view/MEMORY.md", "as it was")
    return storage


@pytest.fixture
def original(tmp_path: Path) -> Iterator[SqliteStorage]:
    storage = lived_in(tmp_path / "original.db")
    yield storage
    storage.close()


@pytest.fixture
def database() -> Iterator[PostgresStorage]:
    storage = PostgresStorage(emptied(shared_database()), "project/moved")
    yield storage
    storage.close()


def told(storage: Storage) -> Any:
    with storage.reading() as reader:
        return digest_of(reader)


def test_from_sqlite_to_postgres_and_back_nothing_is_lost(
    original: SqliteStorage, database: PostgresStorage, tmp_path: Path
) -> None:
    before = told(original)
    assert before.memories > 20
    assert before.messages == 6  # of a fork, those that it shares are counted as well
    moved = move(original, database, at=START)
    again = SqliteStorage(tmp_path / "again.db", original.space)
    assert move(database, again, at=START) == moved == before == told(original)
    with original.reading() as first, database.reading() as second, again.reading() as third:
        assert first.events() == second.events() == third.events()
        assert journal.broken_links(second.events()) == []
        assert first.select(ANYWHERE, limit=99) == third.select(ANYWHERE, limit=99)
        assert first.foundation() == third.foundation()
        assert first.file_notes() == second.file_notes() == third.file_notes()
        assert second.is_erased("") is False
        hits = [
            [hit.memory.id for hit in reader.search(["port", "8007"], limit=5)] for reader in (first, second, third)
        ]
        assert hits[0] == hits[1] == hits[2] != []
        found = [len(reader.search_messages(["said"], limit=9)) for reader in (first, second, third)]
        assert found == [4, 4, 4]
    for storage in (database, again):  # ids go on where they were, and no name is given twice
        with storage.writing(stamp("later")) as tx:
            assert tx.add(memory("afterwards", space=storage.space), "remember").id == 33
    again.close()


def test_what_happened_before_a_move_can_be_undone_after_it(original: SqliteStorage, tmp_path: Path) -> None:
    url = emptied(shared_database())
    target = PostgresStorage(url, "project/web-app")
    move(original, target, at=START)
    target.close()
    with kept.open(url, project="web-app", home=tmp_path / "home", clock=FakeClock()) as memories:
        revised = next(event for event in memories.history("1") if event.action == "revise")
        memories.undo(revised.seq)
        assert memories.get("1").content.endswith("port 8000")
        assert memories.remember("The service number 7 listens on port 8007", key="k7").ref == "8"


def test_a_move_that_was_cut_off_goes_on_where_it_stopped(
    original: SqliteStorage, database: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kept.memory.move.BATCH", 10)
    for most in (1, 2, 3, 4):
        turns = iter(range(most))
        writing = PostgresStorage.writing

        @contextmanager
        def limited(self: Any, *arguments: Any, turns: Any = turns, writing: Any = writing) -> Iterator[Any]:
            if next(turns, None) is None:
                raise RuntimeError("cut off")
            with writing(self, *arguments) as tx:
                yield tx

        with monkeypatch.context() as patched:
            patched.setattr(PostgresStorage, "writing", limited)
            with pytest.raises(RuntimeError):
                move(original, database, at=START)
    assert move(original, database, at=START) == told(original)


def test_a_place_that_is_not_empty_is_refused(original: SqliteStorage, database: PostgresStorage) -> None:
    with database.writing(stamp()) as tx:
        tx.add(memory("somebody else's", space=database.space), "remember")
    with pytest.raises(NotAllowed, match="not empty"):
        move(original, database, at=START)
    with database.reading() as reader:
        assert reader.count(ANYWHERE) == 1


def test_the_original_stays_as_it_was_and_any_engine_will_do(original: SqliteStorage) -> None:
    before = told(original)
    target = InMemoryStorage("project/memory")
    assert move(original, target, at=START) == before == told(original)
