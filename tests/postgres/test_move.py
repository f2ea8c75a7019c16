"""A space is carried over whole, from a file into PostgreSQL and back (D3)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import kept
from kept import journal
from kept.errors import Busy, MovedAway, NotAllowed
from kept.memory.move import digest_of, move
from kept.model import Memory, Message, SessionRecord
from kept.ports import ANYWHERE, Stamp, Storage
from kept.storage.inmemory import InMemoryStorage
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.postgres import PostgresStorage
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, FakeClock, context_of, memory, stamp
from tests.postgres.server import emptied, shared_database

ELSEWHERE = "postgresql://db.example.com/kept"


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
        tx.add(SessionRecord(name="s1", started_at=START), "session")
        tx.add(SessionRecord(name="s2", parent="s1", shared=1, started_at=START), "session")
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
    moved = move(original, database, to=ELSEWHERE, at=START)
    again = SqliteStorage(tmp_path / "again.db", original.space)
    assert move(database, again, to=ELSEWHERE, at=START) == moved == before == told(original)
    with original.reading() as first, database.reading() as second, again.reading() as third:
        assert first.events() == second.events() == third.events()
        assert journal.broken_links(second.events()) == []
        assert first.select(ANYWHERE, limit=99) == third.select(ANYWHERE, limit=99)
        assert first.foundation() == third.foundation()
        assert first.file_notes() == second.file_notes()  # of where they were moved as well
        assert third.file_notes() == {"view/MEMORY.md": "as it was"}
        assert second.is_erased("") is False
        hits = [
            [hit.memory.id for hit in reader.search(["port", "8007"], limit=5)] for reader in (first, second, third)
        ]
        assert hits[0] == hits[1] == hits[2] != []
        found = [len(reader.search_messages(["said"], limit=9)) for reader in (first, second, third)]
        assert found == [4, 4, 4]
    with again.writing(stamp("later")) as tx:  # ids go on where they were, and no name is given twice
        assert tx.add(memory("afterwards", space=again.space), "remember").id == 33
    again.close()


@pytest.mark.parametrize("kind", ["sqlite to postgres", "postgres to sqlite", "postgres to postgres", "memory to json"])
def test_writers_at_the_old_place_are_told_where_it_is_now_and_erasures_pass(
    original: SqliteStorage, tmp_path: Path, kind: str
) -> None:
    url = emptied(shared_database())
    first, second = moving_places(kind, original, url, tmp_path)
    before = told(first)
    move(first, second, to="postgresql://ann@db2.example.com/kept", at=START)
    with pytest.raises(MovedAway, match=r"was moved to postgresql://db2\.example\.com/kept on 2026") as refused:
        write(first)
    assert refused.value.to == "postgresql://ann@db2.example.com/kept"
    assert told(first) == before
    write(second)
    with pytest.raises(MovedAway):
        move(first, InMemoryStorage("project/third"), to=ELSEWHERE, at=START)
    with first.writing(Stamp(group="g", at=START, actor="erase", passes_fence=True)) as tx:
        found = tx.get(Memory, 8)
        assert found is not None
        tx.erase(found)
    for storage in (first, second):
        storage.close()


@pytest.mark.parametrize("is_far", [False, True])
def test_a_reader_at_the_new_place_does_not_spoil_a_move(
    is_far: bool, original: SqliteStorage, database: PostgresStorage, tmp_path: Path
) -> None:
    url = database._database.url
    with kept.open(url, project="moved", home=tmp_path / "home") as opened:

        def recall(part: str, _number: int) -> None:
            if part == "memories":
                storage = context_of(opened).spaces.project()
                assert isinstance(storage, PostgresStorage)
                storage._is_far = is_far
                assert opened.recall("service port 8007").receipt is None

        assert move(original, database, to=ELSEWHERE, at=START, tell=recall).memories > 20
        assert opened.recall("service port 8007").receipt is not None


def moving_places(kind: str, original: SqliteStorage, url: str, folder: Path) -> tuple[Storage, Storage]:
    """A lived-in storage, and an empty one."""
    if kind == "sqlite to postgres":
        return original, PostgresStorage(url, "project/p1")
    if kind == "memory to json":
        source: Storage = InMemoryStorage(original.space)
        target: Storage = JsonFileStorage(folder / "there.json", original.space)
    else:
        source = PostgresStorage(url, "project/p1")
        is_file = kind == "postgres to sqlite"
        target = SqliteStorage(folder / "there.db", "project/p1") if is_file else PostgresStorage(url, "project/p2")
    move(original, source, to=ELSEWHERE, at=START)
    return source, target


def write(storage: Storage) -> None:
    with storage.writing(stamp("later")) as tx:
        tx.add(memory("afterwards", space=storage.space), "remember")


def test_at_no_moment_of_a_move_can_both_places_be_written_and_a_move_cut_off_anywhere_ends_well(
    original: SqliteStorage, database: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before, and after, the old place is closed."""
    writing = PostgresStorage.writing

    @contextmanager
    def limited(self: Any, *arguments: Any) -> Iterator[Any]:
        if next(turns, None) is None:
            raise RuntimeError("cut off")
        with writing(self, *arguments) as tx:
            yield tx

    open_places = [[True, True]]
    while open_places[-1][0] and len(open_places) < 30:
        turns = iter(range(2))  # one to find out how far the last attempt got, and one step further
        with monkeypatch.context() as patched, suppress(RuntimeError):
            patched.setattr(PostgresStorage, "writing", limited)
            move(original, database, to=ELSEWHERE, at=START)
        open_places.append([is_open(storage) for storage in (original, database)])
    assert open_places[1] == [True, False]
    assert open_places[-1] == [False, False]  # closed there, and not yet opened here
    assert [True, True] not in open_places[1:]
    assert move(original, database, to=ELSEWHERE, at=START) == told(original) == told(database)
    assert [is_open(storage) for storage in (original, database)] == [False, True]


def is_open(storage: Storage) -> bool:
    """Return True if the storage takes a write; it is taken back."""
    try:
        with storage.writing(stamp("probe")):
            raise ZeroDivisionError
    except (MovedAway, Busy):
        return False
    except ZeroDivisionError:
        return True


def test_what_happened_before_a_move_can_be_undone_after_it(original: SqliteStorage, tmp_path: Path) -> None:
    url = emptied(shared_database())
    target = PostgresStorage(url, "project/web-app")
    move(original, target, to=ELSEWHERE, at=START)
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
                move(original, database, to=ELSEWHERE, at=START)
    assert move(original, database, to=ELSEWHERE, at=START) == told(original)


def test_a_place_that_is_not_empty_is_refused(original: SqliteStorage, database: PostgresStorage) -> None:
    with database.writing(stamp()) as tx:
        tx.add(memory("somebody else's", space=database.space), "remember")
    with pytest.raises(NotAllowed, match="not empty"):
        move(original, database, to=ELSEWHERE, at=START)
    with database.reading() as reader:
        assert reader.count(ANYWHERE) == 1


def test_the_original_stays_as_it_was_and_any_engine_will_do(original: SqliteStorage) -> None:
    before = told(original)
    target = InMemoryStorage("project/memory")
    assert move(original, target, to=ELSEWHERE, at=START) == before == told(original)
