"""Backups: made online, verified, counted, daily; and going back to one."""

import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

import kept
from kept import journal
from kept.errors import Corrupt, InvalidInput, NotAllowed, NotFound, SchemaTooNew, StorageError
from kept.model import Memory, Message, replace
from kept.ports import ANYWHERE, Storage
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.sqlite import SqliteStorage, backup, schema
from tests.behind import behind
from tests.builders import START, FakeClock, memory, stamp


def add(storage: Storage, content: str, **fields: object) -> Memory:
    with storage.writing(stamp()) as tx:
        return tx.add(memory(content, space=storage.space, **fields), "remember")


def contents(storage: Storage) -> set[str]:
    with storage.reading() as reader:
        return {m.content for m in reader.select(ANYWHERE, limit=10_000)}


@pytest.fixture(params=["sqlite", "json"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "json":
        return JsonFileStorage(tmp_path / "store.json", "project/p1")
    return SqliteStorage(tmp_path / "kept.db", "project/p1")


# Making one


def test_a_backup_is_a_counted_copy_that_opens_by_itself(storage: Storage, tmp_path: Path) -> None:
    for number in range(5):
        add(storage, f"number {number}")
    made = storage.back_up(tmp_path / "copy")
    assert (made.memories, made.events, made.bytes) == (5, 5, (tmp_path / "copy").stat().st_size)
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0
    copy = type(storage)(tmp_path / "copy", "project/p1")  # type: ignore[call-arg]
    assert contents(copy) == contents(storage)
    copy.close()
    storage.close()


def test_a_backup_never_overwrites_anything(storage: Storage, tmp_path: Path) -> None:
    add(storage, "something")
    (tmp_path / "precious").write_text("my thesis")
    with pytest.raises(NotAllowed, match="already exists"):
        storage.back_up(tmp_path / "precious")
    assert (tmp_path / "precious").read_text() == "my thesis"
    with pytest.raises(StorageError, match="Cannot write"):
        storage.back_up(tmp_path / "no such folder" / "copy")
    assert not list(tmp_path.glob("*.part*"))
    storage.close()


def test_a_backup_is_of_one_moment_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    storage = SqliteStorage(path)
    add(storage, "the first")
    program = """
import sys
from pathlib import Path
from random import Random
from kept.storage.sqlite import SqliteStorage
from tests.builders import memory, stamp
storage = SqliteStorage(Path(sys.argv[1]))
for number in range(100_000):
    with storage.writing(stamp(f"g{number}")) as tx:
        for half in ("left", "right"):
            tx.add(memory(f"{half} {number}", uid=f"{half}-{number}"), "remember")
    if number == 20:
        print("going", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        made = [storage.back_up(tmp_path / f"copy-{number}.db") for number in range(5)]
        writer.kill()
    storage.close()
    assert made[0].memories < made[-1].memories
    for copy in made:
        assert copy.memories % 2 == 1  # the first, and whole pairs
        assert copy.events == copy.memories
        opened = SqliteStorage(Path(copy.path))
        with opened.reading() as reader:
            assert journal.broken_links(reader.events()) == []
        opened.close()


def test_a_copy_that_turns_out_damaged_does_not_become_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    add(storage, "something")

    def damage(path: Path) -> int:
        data = bytearray(path.read_bytes())
        data[8192:12288] = bytes(4096)
        path.write_bytes(data)
        return 0

    monkeypatch.setattr(backup.erase, "sweep", damage)
    with pytest.raises(Corrupt):
        storage.back_up(tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy.db*"))
    storage.close()


def test_a_store_in_memory_has_no_backup(tmp_path: Path) -> None:
    with kept.open(":memory:") as opened:
        opened.remember("something worth keeping")
        with pytest.raises(NotAllowed):
            opened.store.backup(tmp_path / "copy.db")


# Every day


def test_the_first_write_of_a_day_makes_a_backup(tmp_path: Path) -> None:
    clock = FakeClock()
    for day in range(4):
        for hour in range(2):
            with kept.open(project="p", home=tmp_path, clock=clock, settings={"backups_kept": 2}) as opened:
                opened.remember(f"Statement of day {day} and hour {hour}")
            clock.advance(hours=1)
        clock.advance(hours=22)
    (database,) = tmp_path.glob("projects/*/kept.db")
    # None on the day it was made: there was nothing of yesterday. Of the others the newest two.
    assert [copy.name for copy in backup.backups_of(database)] == ["2026-03-03.db", "2026-03-04.db"]
    assert backup.verify(backup.backups_of(database)[0])[0] == 5
    assert backup.verify(backup.backups_of(database)[1])[0] == 7
    with kept.open(project="p", home=tmp_path, clock=clock) as opened:
        assert opened.status()["spaces"][0]["daily_backup"] == "2026-03-04"


def test_no_daily_backup_is_made_when_it_is_switched_off_or_of_a_portable_file(tmp_path: Path) -> None:
    clock = FakeClock()
    for _ in range(3):
        with kept.open(project="p", home=tmp_path, clock=clock, settings={"backup_daily": False}) as opened:
            opened.remember(f"Statement of {clock()} in the home")
        with kept.open(tmp_path / "memory.db", clock=clock) as opened:
            opened.remember(f"Statement of {clock()} in a file")
        clock.advance(days=1)
    assert not list(tmp_path.rglob("*.backups"))


def test_nobody_waits_for_the_daily_backup_of_a_large_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kept.storage.sqlite.storage.SMALL_BYTES", 0)
    begun, go_on = threading.Event(), threading.Event()
    real = backup.copy_database

    def slow_copy(*arguments: object) -> int:
        begun.set()
        go_on.wait(20)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(backup, "copy_database", slow_copy)
    storage = SqliteStorage(tmp_path / "kept.db", now=lambda: START, daily_backups=7)
    with storage.writing(stamp(at=START + timedelta(days=1))) as tx:
        tx.add(memory("the first write of a day"), "remember")
    assert begun.wait(20)
    add(storage, "written while the backup is under way")
    threading.Timer(0.1, go_on.set).start()
    storage.close()
    assert backup.backups_of(tmp_path / "kept.db") == []  # it was asked to stop
    assert not list(tmp_path.rglob("*.part"))
    storage = SqliteStorage(tmp_path / "kept.db", daily_backups=7)
    with storage.writing(stamp(at=START + timedelta(days=1))) as tx:
        tx.add(memory("written by a process that stays"), "remember")
    deadline = time.monotonic() + 20
    while not backup.backups_of(tmp_path / "kept.db") and time.monotonic() < deadline:
        assert contents(storage)
    assert backup.verify(backup.backups_of(tmp_path / "kept.db")[0])[0] == 3
    storage.close()


def test_a_daily_backup_that_fails_is_reported_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", now=lambda: START, daily_backups=7)
    monkeypatch.setattr("kept.storage.sqlite.backup.free_bytes", lambda path: 1000)
    with storage.writing(stamp(at=START + timedelta(days=1))) as tx:
        tx.add(memory("the first write of a day"), "remember")
    storage.close()
    assert "not enough disk space" in caplog.text
    assert backup.backups_of(tmp_path / "kept.db") == []


@pytest.mark.parametrize("seed", range(40))
def test_closing_at_any_moment_waits_for_the_daily_backup_or_lets_none_begin(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", now=lambda: START, daily_backups=7, synchronous="normal")

    def write() -> None:
        with suppress(StorageError):  # it is closed in the meantime
            for day in range(1, 6):
                with storage.writing(stamp(at=START + timedelta(days=day))) as tx:
                    tx.add(memory(f"the first write of day {day}"), "remember")

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(Random(seed).random() * 0.03)
    storage.close()
    under_way = [thread for thread in threading.enumerate() if thread.name == "kept-backup"]
    writer.join()
    later = [thread for thread in threading.enumerate() if thread.name == "kept-backup"]
    for thread in later:
        thread.join()
    assert (under_way, later, caplog.text) == ([], [], "")


def test_processes_that_write_at_the_same_moment_make_one_backup(tmp_path: Path) -> None:
    storages = [SqliteStorage(tmp_path / "kept.db", now=lambda: START, daily_backups=7) for _ in range(4)]
    for number, storage in enumerate(storages):
        with storage.writing(stamp(at=START + timedelta(days=1))) as tx:
            tx.add(memory(f"number {number}"), "remember")
    for storage in storages:
        storage.close()
    assert [copy.name for copy in backup.backups_of(tmp_path / "kept.db")] == ["2026-03-02.db"]


# Going back


def test_restoring_goes_back_and_keeps_what_was_there(storage: Storage, tmp_path: Path) -> None:
    add(storage, "before")
    storage.back_up(tmp_path / "copy")
    after = add(storage, "after")
    with pytest.raises(NotAllowed, match="changes that"):
        storage.restore_from(tmp_path / "copy")
    assert contents(storage) == {"before", "after"}
    restored = storage.restore_from(tmp_path / "copy", overwrite_newer=True)
    assert (restored.memories, restored.events, restored.left_out) == (1, 1, 0)
    assert contents(storage) == {"before"}
    assert add(storage, "later").id > after.id  # an id is never given twice
    storage.close()
    storage = type(storage)(storage.path, "project/p1")  # type: ignore[attr-defined]
    assert contents(storage) == {"before", "later"}
    assert restored.replaced is not None
    storage.restore_from(Path(restored.replaced), overwrite_newer=True)
    assert contents(storage) == {"before", "after"}
    storage.close()


def test_going_forward_needs_no_permission(storage: Storage, tmp_path: Path) -> None:
    """Everything that the store holds is in the backup, too: nothing can be lost."""
    add(storage, "before")
    storage.back_up(tmp_path / "older")
    add(storage, "after")
    storage.back_up(tmp_path / "newer")
    storage.restore_from(tmp_path / "older", overwrite_newer=True)
    storage.restore_from(tmp_path / "newer")
    assert contents(storage) == {"before", "after"}
    storage.close()


def test_what_was_erased_since_does_not_come_back(storage: Storage, tmp_path: Path) -> None:
    doomed, same_text = add(storage, "swordfish"), add(storage, "tunafish")
    add(storage, "bystander")
    storage.back_up(tmp_path / "copy")
    with storage.writing(stamp("erasing")) as tx:
        tx.erase(doomed)
        tx.erase(same_text)
    storage.scrub()
    restored = storage.restore_from(tmp_path / "copy", overwrite_newer=True)
    assert restored.left_out == 2
    assert contents(storage) == {"bystander"}
    with storage.reading() as reader:
        assert reader.is_erased(doomed.fingerprint)
        events = reader.events()
        assert journal.broken_links(events) == []
        erased = {event.subject for event in events if event.action == "erase"}
        assert erased == {doomed.uid, same_text.uid}
        assert all(event.changed is None for event in events if event.subject in erased and event.action != "erase")
    storage.close()


def test_erased_messages_do_not_come_back(storage: Storage, tmp_path: Path) -> None:
    with storage.writing(stamp()) as tx:
        for number in (1, 2):
            tx.append([Message(session="s", id=f"m{number}", role="user", content=f"number {number}", at=START)])
    add(storage, "so that there is an event")
    storage.back_up(tmp_path / "copy")
    with storage.writing(stamp()) as tx:
        tx.erase_messages("s", ["m1"])
    add(storage, "another")
    storage.scrub()
    storage.restore_from(tmp_path / "copy", overwrite_newer=True)
    with storage.reading() as reader:
        assert "number 1" not in [m.content for m in reader.messages("s")]
        assert "number 2" in [m.content for m in reader.messages("s")]
    storage.close()


def test_a_rewritten_backup_still_restores(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    doomed = add(storage, "swordfish")
    add(storage, "bystander")
    copy = backup.make_folder(tmp_path / "kept.db") / "2026-03-01.db"
    storage.back_up(copy)
    with storage.writing(stamp()) as tx:
        tx.erase(doomed)
    assert storage.scrub().backups == 1
    assert storage.restore_from(copy, overwrite_newer=True).memories == 1
    with storage.reading() as reader:
        assert [event.action for event in reader.events()] == ["remember", "remember", "erase"]
        assert journal.broken_links(reader.events()) == []
    storage.close()


def test_programs_that_have_the_file_open_go_on_in_the_restored_store(tmp_path: Path) -> None:
    storage, other = SqliteStorage(tmp_path / "kept.db"), SqliteStorage(tmp_path / "kept.db")
    add(storage, "before")
    storage.back_up(tmp_path / "copy.db")
    add(other, "after")
    with other.reading() as reader:
        storage.restore_from(tmp_path / "copy.db", overwrite_newer=True)
        assert {m.content for m in reader.select()} == {"before", "after"}  # its look is of one moment
    add(other, "by the other program")
    assert contents(storage) == contents(other) == {"before", "by the other program"}
    storage.close()
    other.close()
    storage = SqliteStorage(tmp_path / "kept.db")
    assert contents(storage) == {"before", "by the other program"}
    storage.close()


def test_programs_notice_when_another_file_was_put_in_the_place_of_theirs(tmp_path: Path) -> None:
    """A write to a file that has lost its name would be acknowledged, and lost."""
    path = tmp_path / "kept.db"
    storage = SqliteStorage(path, "project/p1")
    add(storage, "before")
    storage.back_up(tmp_path / "copy.db")
    add(storage, "after")
    for name in ("kept.db-wal", "kept.db-shm", "kept.db"):
        (tmp_path / name).rename(tmp_path / f"old-{name}")
    with pytest.raises(StorageError, match="disappeared"):
        add(storage, "into the void")
    shutil.copy(tmp_path / "copy.db", path)
    add(storage, "into the new file")
    assert contents(storage) == {"before", "into the new file"}
    storage.close()
    stranger = SqliteStorage(tmp_path / "stranger.db", "project/p2")
    stranger.close()
    storage = SqliteStorage(path, "project/p1")
    (tmp_path / "stranger.db").replace(path)
    with pytest.raises(InvalidInput, match="project/p2"):
        add(storage, "across the wall")
    storage.close()


def test_a_backup_of_another_space_is_refused_unless_the_store_is_new(tmp_path: Path) -> None:
    theirs = SqliteStorage(tmp_path / "theirs.db", "project/p2")
    add(theirs, "theirs")
    theirs.back_up(tmp_path / "copy.db")
    theirs.close()
    ours = SqliteStorage(tmp_path / "ours.db", "project/p1")
    assert ours.restore_from(tmp_path / "copy.db").replaced is None  # as on a new machine
    assert contents(ours) == {"theirs"}
    add(ours, "ours")
    with pytest.raises(NotAllowed):
        ours.restore_from(tmp_path / "copy.db")
    ours.close()
    ours = SqliteStorage(tmp_path / "ours.db", "project/p1")
    assert contents(ours) == {"theirs", "ours"}
    ours.close()


def test_what_is_no_backup_is_not_restored(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db", "project/p1")
    add(storage, "present")
    storage.back_up(tmp_path / "newer.db")
    storage.back_up(tmp_path / "damaged.db")
    newer = behind(tmp_path / "newer.db")
    newer.pragma("user_version", schema.LATEST + 1)
    newer.close()
    data = (tmp_path / "damaged.db").read_bytes()
    (tmp_path / "damaged.db").write_bytes(data[:8192] + bytes(4096) + data[12288:])
    (tmp_path / "text.db").write_text("Dear diary")
    for name, error in (
        ("nothing.db", NotFound),
        ("text.db", Corrupt),
        ("damaged.db", Corrupt),
        ("newer.db", SchemaTooNew),
        ("kept.db", InvalidInput),
    ):
        with pytest.raises(error):
            storage.restore_from(tmp_path / name, overwrite_newer=True)
    assert contents(storage) == {"present"}
    assert not list(tmp_path.rglob("*.part*"))
    storage.close()


def test_the_facade_asks_before_it_loses_changes(tmp_path: Path) -> None:
    questions: list[str] = []

    def confirm(question: str) -> bool:
        questions.append(question)
        return len(questions) > 1

    clock = FakeClock()
    with kept.open(project="p", home=tmp_path / "home", clock=clock, confirm=confirm) as opened:
        opened.remember("Known before the backup was made")
        opened.store.backup(tmp_path / "copy.db")
        opened.remember("Learnt after the backup was made")
        with pytest.raises(NotAllowed):
            opened.store.restore(tmp_path / "copy.db")
        assert len(opened.list()) == 2
        opened.store.restore(tmp_path / "copy.db")
        assert [m.content for m in opened.list()] == ["Known before the backup was made"]
        opened.remember("Learnt after all that")
        opened.store.restore(tmp_path / "copy.db", overwrite_newer=True)
        assert len(questions) == 2
        assert len(opened.list()) == 1


def test_a_damaged_store_is_kept_aside_when_a_backup_takes_its_place(tmp_path: Path) -> None:
    with kept.open(project="p", home=tmp_path / "home") as opened:
        opened.remember("Known before the disaster struck")
        opened.store.backup(tmp_path / "copy.db")
    (database,) = tmp_path.glob("home/projects/*/kept.db")
    database.write_bytes(b"\0" * 5_000)
    with kept.open(project="p", home=tmp_path / "home") as opened, pytest.raises(NotAllowed, match="yes"):
        opened.store.restore(tmp_path / "copy.db")
    with kept.open(project="p", home=tmp_path / "home", confirm=lambda question: True) as opened:
        restored = opened.store.restore(tmp_path / "copy.db")
        assert [m.content for m in opened.list()] == ["Known before the disaster struck"]
        opened.remember("And life goes on from there")
    assert restored.replaced is not None
    assert Path(restored.replaced).read_bytes() == b"\0" * 5_000


def test_a_revised_memory_goes_back_to_the_text_it_had(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    old = add(storage, "the old text")
    storage.back_up(tmp_path / "copy.db")
    with storage.writing(stamp()) as tx:
        tx.put(replace(old, content="the new text"), "revise")
    storage.restore_from(tmp_path / "copy.db", overwrite_newer=True)
    with storage.reading() as reader:
        assert [hit.memory for hit in reader.search(["old"], limit=5)] == [old]
        assert reader.search(["new"], limit=5) == []
    storage.close()
