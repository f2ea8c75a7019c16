"""No alarm is false: whatever a healthy file has been through, each question has an answer and doctor finds nothing."""

from collections.abc import Callable
from datetime import timedelta, timezone
from pathlib import Path

import pytest

import kept
from kept.model import NOUNS, Actor, Conflict, Memory, SessionRecord, TaskRecord, replace
from kept.ports import ANYWHERE, Where
from kept.storage.sqlite import SqliteStorage, health, restore
from tests.builders import START, memory, stamp

SECRET = "The login is password = hunter2secret for the box"


def new_store(path: Path) -> SqliteStorage:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    (path.parent / f"{path.name}.backups").mkdir(mode=0o700, exist_ok=True)
    return SqliteStorage(path, "project/p1")


def beside(storage: SqliteStorage, name: str) -> Path:
    """Where a backup lies that Kept looks after."""
    return storage.path.with_name(f"{storage.path.name}.backups") / name


def remember(storage: SqliteStorage, content: str) -> Memory:
    with storage.writing(stamp()) as tx:
        return tx.add(memory(content), "remember")


def contradict(storage: SqliteStorage, one: Memory, other: Memory) -> None:
    with storage.writing(stamp()) as tx:
        tx.add(Conflict(left=one.uid, right=other.uid, type="contradictory", detected_at=START), "conflict")


def erase(storage: SqliteStorage, gone: Memory) -> None:
    with storage.writing(stamp()) as tx:
        tx.erase(gone)
    assert storage.scrub().is_done


def redact(storage: SqliteStorage, found: Memory) -> Memory:
    """As `kept secrets scan --fix` does: what it was is erased, and it begins anew under its id and uid."""
    with storage.writing(stamp()) as tx:
        tx.erase(found)
        clean = tx.add(replace(found, content="clean", fingerprint="f" * 32), "redact")
    assert storage.scrub().is_done
    return clean


def two_that_disagree(folder: Path) -> tuple[SqliteStorage, Memory, Memory]:
    storage = new_store(folder / "a" / "kept.db")
    one, other = remember(storage, "One is so"), remember(storage, "Two is so")
    contradict(storage, one, other)
    return storage, one, other


def a_conflict_that_went_with_its_memory_restored_elsewhere(folder: Path) -> SqliteStorage:
    storage, _, other = two_that_disagree(folder)
    erase(storage, other)
    storage.back_up(folder / "out.db")
    storage.close()
    elsewhere = new_store(folder / "b" / "kept.db")
    elsewhere.restore_from(folder / "out.db")
    return elsewhere


def a_backup_that_was_cleaned_restored_elsewhere(folder: Path) -> SqliteStorage:
    storage, _, other = two_that_disagree(folder)
    storage.back_up(beside(storage, "1.db"))
    erase(storage, other)
    storage.close()
    elsewhere = new_store(folder / "b" / "kept.db")
    elsewhere.restore_from(beside(storage, "1.db"))
    return elsewhere


def a_newer_backup_restored_after_an_older_one(folder: Path) -> SqliteStorage:
    storage = new_store(folder / "a" / "kept.db")
    remember(storage, "One is so")
    storage.back_up(beside(storage, "1.db"))
    other = remember(storage, "Two is so")
    storage.back_up(beside(storage, "2.db"))
    erase(storage, other)
    storage.restore_from(beside(storage, "1.db"), overwrite_newer=True)
    storage.restore_from(beside(storage, "2.db"), overwrite_newer=True)
    return storage


def a_backup_from_before_a_redaction(folder: Path) -> SqliteStorage:
    storage, _, other = two_that_disagree(folder)
    storage.back_up(beside(storage, "1.db"))
    redact(storage, other)
    storage.restore_from(beside(storage, "1.db"), overwrite_newer=True)
    return storage


def a_backup_of_what_was_redacted_and_then_erased(folder: Path) -> SqliteStorage:
    storage, _, other = two_that_disagree(folder)
    clean = redact(storage, other)
    storage.back_up(folder / "out.db")
    erase(storage, clean)
    storage.restore_from(folder / "out.db", overwrite_newer=True)
    return storage


def a_damaged_file_replaced_by_a_cleaned_backup(folder: Path) -> SqliteStorage:
    storage, _, other = two_that_disagree(folder)
    storage.back_up(beside(storage, "1.db"))
    erase(storage, other)
    storage.close()
    storage.path.write_bytes(b"rubbish" * 1000)
    restore.replace_damaged(storage.path, beside(storage, "1.db"), space="project/p1", wait_s=1, now=START)
    return SqliteStorage(storage.path)


def moments_of_another_time_zone(folder: Path) -> SqliteStorage:
    storage = new_store(folder / "a" / "kept.db")
    at = START.astimezone(timezone(timedelta(hours=2)))
    with storage.writing(stamp(at=at)) as tx:
        tx.add(memory("One is so", at=at), "remember")
        tx.add(TaskRecord(name="TASK-1", created_at=at), "task")
        tx.add(SessionRecord(name="talk", started_at=at), "session")
    return storage


LIVES = (
    a_conflict_that_went_with_its_memory_restored_elsewhere,
    a_backup_that_was_cleaned_restored_elsewhere,
    a_newer_backup_restored_after_an_older_one,
    a_backup_from_before_a_redaction,
    a_backup_of_what_was_redacted_and_then_erased,
    a_damaged_file_replaced_by_a_cleaned_backup,
    moments_of_another_time_zone,
)


@pytest.mark.parametrize("live", LIVES, ids=lambda live: live.__name__)
def test_every_question_has_an_answer(live: Callable[[Path], SqliteStorage], tmp_path: Path) -> None:
    storage = live(tmp_path)
    with storage.reading() as reader:
        events = reader.events()
        assert events == reader.events(newest_first=True)[::-1]
        for subject in {event.subject for event in events}:
            assert reader.events(subject=subject) == [event for event in events if event.subject == subject]
            reader.select(replace(ANYWHERE, uid=subject))
        for group in {event.group for event in events}:
            assert reader.events(group=group) == [event for event in events if event.group == group]
        for noun in NOUNS:
            assert [reader.get(noun, id) for id in range(1, 5) if reader.get(noun, id)] == reader.all(noun)
        assert reader.count(Where(scope=None)) == len(reader.all(Memory))
    storage.close()
    assert [found for found in health.examine(storage.path, now=START, deep=True) if found.level == "problem"] == []


def test_doctor_leaves_a_redacted_memory_alone(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        tx.add(memory(SECRET, space=storage.space), "remember")  # as rules of an earlier time have let it through
    storage.close()
    with kept.open(storage.path, actor=Actor(role="admin")) as opened:
        (leak,) = opened.store.scan(fix=True)
        assert leak.is_fixed
    assert [found for found in health.examine(storage.path, now=START, deep=True) if found.level == "problem"] == []
    health.repair(storage.path, now=START)
    with kept.open(storage.path) as opened:
        assert [m.content for m in opened.list()] == ["The login is password = [redacted:password] for the box"]


def test_a_redacted_secret_does_not_come_back_with_a_backup_that_lay_elsewhere(tmp_path: Path) -> None:
    """Also where the text itself was clean, and only the title had it."""
    storage = new_store(tmp_path / "a" / "kept.db")
    with storage.writing(stamp()) as tx:
        tx.add(memory("One is so", title=SECRET), "remember")
    storage.back_up(tmp_path / "out.db")
    with storage.writing(stamp()) as tx:
        found = tx.get(Memory, 1)
        assert found is not None
        tx.erase(found)
        tx.add(replace(found, title="clean"), "redact")
    storage.scrub()
    restored = storage.restore_from(tmp_path / "out.db", overwrite_newer=True)
    with storage.reading() as reader:
        assert reader.all(Memory) == []
        assert [event.action for event in reader.events()] == ["remember", "erase"]
    assert restored.left_out == 1
    storage.close()


def test_many_conflicts_that_went_with_a_memory_are_explained_at_once(tmp_path: Path) -> None:
    storage = new_store(tmp_path / "a" / "kept.db")
    first, *others = (remember(storage, f"Number {n} is so") for n in range(5))
    for other in others:
        contradict(storage, first, other)
    erase(storage, first)
    asked: list[str] = []
    with storage.reading() as reader:
        reader.view.connection.exec_trace = lambda cursor, sql, bindings: asked.append(sql) or True
        assert sum(event.changed is None for event in reader.events()) == 1 + len(others)
        reader.view.connection.exec_trace = None
    storage.close()
    assert len(asked) <= 5
