"""Every page has a checksum: damage is an error, and what another program does to a sound file is none (A3, C30)."""

import random
import re
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import apsw
import pytest

from kept.errors import Busy, Corrupt, KeptError, StorageError
from kept.model import Memory
from kept.ports import ANYWHERE
from kept.storage.lock import Turns
from kept.storage.sqlite import SqliteStorage, acknowledged, backup, health, pages
from kept.storage.sqlite.erase import Gap, _note_gaps, _noted_gaps, sweep
from kept.storage.sqlite.health import recovery
from tests.behind import behind, seal
from tests.builders import START, memory, stamp
from tests.crash.simulated_disk import Happened, Refusal, TappedDisk

SPACE = "project/p1"
PAGE = 4096
HEADER_SAYS_RESERVED = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "space"
    folder.mkdir(mode=0o700)
    return folder / "kept.db"


def filled(path: Path, n_memories: int = 40) -> SqliteStorage:
    storage = SqliteStorage(path, SPACE)
    for number in range(n_memories):
        with storage.writing(stamp()) as tx:
            tx.add(memory(f"Memory {number} about topic {number % 7}: {'words ' * 30}"), "remember")
    return storage


def contents(path: Path) -> list[str]:
    storage = SqliteStorage(path)
    try:
        with storage.reading() as reader:
            return [m.content for m in reader.select(ANYWHERE, oldest_first=True, limit=1000)]
    finally:
        storage.close()


def bad_pages(path: Path) -> list[int]:
    return pages.bad_pages(path)


def by_another_program(path: Path, *statements: str) -> None:
    """Open the file with a SQLite that knows nothing of checksums, do something, and close it."""
    connection = apsw.Connection(str(path), vfs=pages.PLAIN)
    connection.execute("select count(*) from memories").fetchall()
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def killed(path: Path) -> Path:
    """The files of a process that was killed after its last write; half of what it wrote is in the WAL."""
    filled(path, 20).close()
    storage = filled(path, 20)
    copy = copied(storage)
    storage.close()
    return copy


def copied(storage: SqliteStorage) -> Path:
    """The files of a store as a kill would leave them now, in another folder."""
    copy = storage.path.parent.parent / "killed" / "kept.db"
    copy.parent.mkdir(mode=0o700)
    for suffix in ("", "-wal", ".lock"):
        content = storage.path.with_name(storage.path.name + suffix).read_bytes()
        if suffix == ".lock":  # its notes are about a certain file
            content = content.replace(str(storage.path.stat().st_ino).encode(), str(copy.stat().st_ino).encode())
        copy.with_name(copy.name + suffix).write_bytes(content)
        copy.with_name(copy.name + suffix).chmod(0o600)
    return copy


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x41
    path.write_bytes(content)


def problems(path: Path) -> dict[str, str]:
    return {f.check: f.message for f in health.examine(path, now=START, deep=True) if f.level == "problem"}


# Every page --------------------------------------------------------------------------------------


def test_whatever_is_done_to_a_file_its_pages_fit(path: Path) -> None:
    storage = filled(path)
    with storage.in_bulk(), storage.writing(stamp()) as tx:
        for number in range(300):
            tx.add(memory(f"Imported {number} {'text ' * 50}"), "remember")
    with storage.writing(stamp()) as tx:
        for id in range(3, 30, 2):
            gone = tx.get(Memory, id)
            assert gone is not None
            tx.erase(gone)
    assert storage.scrub().is_done
    copy = path.with_name("copy.db")
    storage.back_up(copy)
    with storage.writing(stamp()) as tx:
        tx.add(memory("One more"), "remember")
    storage.restore_from(copy, overwrite_newer=True)
    storage.close()
    for file in (path, copy, *backup.backups_of(path)):
        assert file.read_bytes()[HEADER_SAYS_RESERVED] == pages.BYTES
        assert file.stat().st_size > 50 * PAGE
        assert bad_pages(file) == []


def test_a_backup_of_many_pages_has_checksums_on_all_of_them(path: Path) -> None:
    """SQLite writes some of them before it comes to the first, which says that there are any."""
    storage = filled(path, 3)
    with storage.writing(stamp()) as tx:
        for number in range(1200):
            tx.add(memory(f"Number {number} {'text ' * 1500}"), "remember")
    storage.back_up(path.with_name("copy.db"))
    storage.close()
    assert path.stat().st_size > 2000 * PAGE
    assert bad_pages(path.with_name("copy.db")) == []


def test_a_damaged_backup_does_not_stop_an_erasure(path: Path) -> None:
    storage = filled(path)
    copy = backup.make_folder(path) / "2026-03-01.db"
    storage._make_backup(copy, backup.never)
    flip(copy, copy.read_bytes().rindex(b"memori 3 about"))
    with storage.writing(stamp()) as tx:
        gone = tx.get(Memory, 4)
        assert gone is not None
        tx.erase(gone)
    assert storage.scrub().is_done
    storage.close()
    assert len(contents(path)) == 39
    assert not copy.exists()  # what was erased could not be taken out of it


def test_a_changed_byte_on_any_page_is_found_by_whoever_reads_it(path: Path) -> None:
    filled(path, 10).close()
    sound, rng = path.read_bytes(), random.Random(7)
    for number in range(1, len(sound) // PAGE + 1):
        flip(path, (number - 1) * PAGE + rng.randrange(100 if number == 1 else 0, PAGE))
        assert bad_pages(path) == [number]
        connection = behind(path)
        try:
            verdict = connection.execute("pragma integrity_check").get
        except apsw.Error as error:
            verdict = str(error)
        connection.close()
        assert verdict != "ok"
        path.write_bytes(sound)
    assert bad_pages(path) == []


def test_damage_is_an_error_that_says_what_to_do_and_doctor_names_the_page(path: Path) -> None:
    filled(path, 10).close()
    connection = behind(path)
    page: Any = connection.execute("select rootpage from sqlite_schema where name = 'memories'").get
    connection.close()
    flip(path, page * PAGE - 100)
    storage = SqliteStorage(path)
    with pytest.raises(Corrupt, match=r"is damaged.*kept doctor"), storage.writing(stamp()) as tx:
        tx.add(memory("One more"), "remember")
    storage.close()
    assert problems(path)["checksums"] == f"Damaged, or written by another program: page {page} (memories)."


def test_a_header_that_denies_the_checksums_on_a_damaged_page_is_damage(path: Path) -> None:
    filled(path).close()
    flip(path, HEADER_SAYS_RESERVED)
    flip(path, 60)
    flip(path, 2000)
    with pytest.raises(KeptError):
        SqliteStorage(path)


def test_a_header_that_denies_the_checksums_is_damage(path: Path) -> None:
    filled(path).close()
    flip(path, HEADER_SAYS_RESERVED)
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="header"):
        SqliteStorage(path)
    assert path.read_bytes() == before
    assert "schema" in problems(path)
    (finding,) = health.repair(path, now=START)
    assert finding.level == "problem"
    assert re.fullmatch(r"Not repaired: .*schema.*\.", finding.message)
    assert path.read_bytes() == before


def test_damage_at_opening_leaves_the_wal(path: Path) -> None:
    copy = killed(path)
    wal = pages.wal_of(copy)
    before = wal.read_bytes()
    for number in range(2, copy.stat().st_size // PAGE + 1):
        flip(copy, number * PAGE - 50)
    assert bad_pages(copy)
    with pytest.raises(Corrupt):
        SqliteStorage(copy)
    assert wal.read_bytes() == before


def test_other_connections_of_the_process_go_on_as_before(path: Path) -> None:
    SqliteStorage(path, SPACE).close()
    assert pages.VERIFYING in apsw.vfs_names()
    assert apsw.vfs_names()[0] == pages.PLAIN


# Other programs ----------------------------------------------------------------------------------


def test_another_program_that_closes_the_file_last_does_no_harm(path: Path) -> None:
    """It copies the WAL into the database, without checksums: what is there proves right, so it gets them."""
    copy = killed(path)
    by_another_program(copy)
    assert not pages.wal_of(copy).exists()
    assert bad_pages(copy)
    assert len(contents(copy)) == 40
    assert bad_pages(copy) == []
    assert problems(copy) == {}


def test_it_does_none_either_when_nothing_was_acknowledged(path: Path) -> None:
    """What recall notes, and the making of a file, are in the WAL, too."""
    filled(path).close()
    storage = SqliteStorage(path)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([1, 2, 3], START)
    copy = copied(storage)
    storage.close()
    by_another_program(copy)
    assert bad_pages(copy)
    assert len(contents(copy)) == 40
    assert bad_pages(copy) == []


def test_a_new_file_that_another_program_looks_into_at_once(path: Path) -> None:
    storage = SqliteStorage(path, SPACE)
    copy = copied(storage)
    storage.close()
    by_another_program(copy)
    assert bad_pages(copy)
    assert contents(copy) == []
    assert bad_pages(copy) == []


def test_a_second_one_who_opens_it_meanwhile_is_not_told_of_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = killed(path)
    by_another_program(copy)
    seal_if_whole = recovery.seal_if_whole
    second: list[list[str]] = []

    def let_another_open_it(path: Path, *, now: datetime) -> bool:
        monkeypatch.setattr(recovery, "seal_if_whole", seal_if_whole)
        looking = behind(path)  # as an examination does: the file has a WAL again
        pages.read_unverified(looking)
        looking.execute("select * from memories").fetchall()
        second.append(contents(path))
        looking.close()
        return seal_if_whole(path, now=now)

    monkeypatch.setattr(recovery, "seal_if_whole", let_another_open_it)
    assert len(contents(copy)) == 40
    assert [len(found) for found in second] == [40]
    assert bad_pages(copy) == []


def test_a_file_that_was_closed_well_is_not_looked_at_again(path: Path) -> None:
    filled(path).close()
    assert not acknowledged.is_left_to_others(path)
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.add(memory("One more"), "remember")
    assert not acknowledged.is_left_to_others(path)  # it has a WAL
    storage.close()
    assert not acknowledged.is_left_to_others(path)


def test_damage_beside_what_another_program_has_copied_is_still_damage(path: Path) -> None:
    copy = killed(path)
    by_another_program(copy)
    content = copy.read_bytes()
    flip(copy, content.index(b"memori 7 about") + 3)
    wrong = bad_pages(copy)
    with pytest.raises(Corrupt):
        contents(copy)
    assert bad_pages(copy) == wrong
    assert set(problems(copy)) > {"checksums"}


def test_what_another_program_has_rewritten_is_looked_at_when_opening_meets_it(path: Path) -> None:
    filled(path).close()
    by_another_program(path, "vacuum")
    assert bad_pages(path)
    assert len(contents(path)) == 40
    assert bad_pages(path) == []


@pytest.mark.parametrize("statement", ["vacuum", "reindex", "pragma journal_mode = delete"])
def test_what_another_program_has_rewritten_doctor_puts_right(path: Path, statement: str) -> None:
    filled(path).close()
    by_another_program(path, statement)
    assert set(problems(path)) == ({"checksums"} if bad_pages(path) else set())
    health.repair(path, now=START)
    assert problems(path) == {}
    assert bad_pages(path) == []
    assert len(contents(path)) == 40
    assert not list(path.parent.glob("*.damaged-*"))


def test_an_empty_wal_is_none(path: Path) -> None:
    """As another program leaves it that was killed after it had looked twice."""
    copy = killed(path)
    by_another_program(copy)
    pages.wal_of(copy).touch(mode=0o600)
    assert len(contents(copy)) == 40
    assert bad_pages(copy) == []


def test_a_copy_that_another_program_has_looked_into(path: Path) -> None:
    """A copied file has no notes about it, but opening meets pages that do not fit."""
    copy = killed(path)
    copy.with_name("kept.db.lock").unlink()
    by_another_program(copy)
    assert bad_pages(copy)
    assert len(contents(copy)) == 40
    assert bad_pages(copy) == []


def test_a_file_that_has_to_be_looked_at_while_somebody_writes_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not looked at is not called right."""
    copy = killed(path)
    by_another_program(copy)
    monkeypatch.setattr("kept.storage.sqlite.health.check._TURN_WAIT_S", 0.05)
    turns = Turns(copy.with_name("kept.db.lock"))
    turns.take(1)
    before = bad_pages(copy)
    with pytest.raises(Busy, match="another process keeps writing"):
        SqliteStorage(copy)
    assert bad_pages(copy) == before
    turns.end()
    turns.close()
    assert len(contents(copy)) == 40


def test_a_store_that_is_closed_while_another_program_looks_leaves_it_nothing_to_copy(path: Path) -> None:
    storage = filled(path)
    looking = apsw.Connection(str(path), vfs=pages.PLAIN)
    assert looking.execute("select count(*) from memories").get == 40
    storage.close()
    looking.close()
    assert not pages.wal_of(path).exists()
    assert bad_pages(path) == []


def test_an_empty_file_with_a_wal_is_damage(path: Path) -> None:
    copy = killed(path)
    copy.write_bytes(b"")
    before = pages.wal_of(copy).read_bytes()
    with pytest.raises(Corrupt, match="empty, although it has a WAL"):
        SqliteStorage(copy)
    assert pages.wal_of(copy).read_bytes() == before


def test_damage_at_a_question_leaves_the_wal(path: Path) -> None:
    copy = killed(path)
    before = pages.wal_of(copy).read_bytes()
    storage = SqliteStorage(copy)
    superseded = {frame.page for frame in pages.wal_frames(pages.wal_of(copy))}
    numbers = range(2, copy.stat().st_size // PAGE + 1)
    for number in (n for n in numbers if n not in superseded):
        flip(copy, number * PAGE - 50)
    with pytest.raises(Corrupt), storage.reading() as reader:
        everything(reader)
    storage.close()
    assert pages.wal_of(copy).read_bytes() == before


# Where apsw came without -------------------------------------------------------------------------


def test_without_the_vfs_a_new_file_has_no_checksums_and_doctor_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pages, "vfs", lambda: pages.PLAIN)
        storage = filled(path)
        copy = path.with_name("copy.db")
        storage.back_up(copy)
        storage.close()
        assert path.read_bytes()[HEADER_SAYS_RESERVED] == 0
        assert problems(path) == {}
    [note] = [f for f in health.examine(path, now=START) if f.check == "checksums"]
    assert (note.level, "no checksums" in note.message) == ("note", True)
    assert len(contents(path)) == 40  # and with the VFS it is what it was
    storage = SqliteStorage(path)
    storage.restore_from(copy, overwrite_newer=True)
    storage.close()
    assert path.read_bytes()[HEADER_SAYS_RESERVED] == pages.BYTES
    assert bad_pages(path) == []
    assert len(contents(path)) == 40


def test_without_the_vfs_a_file_with_checksums_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path).close()
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(pages, "vfs", lambda: pages.PLAIN)
        with pytest.raises(StorageError, match=r"this apsw cannot write.*pip install"):
            SqliteStorage(path)
    assert path.read_bytes() == before


def test_a_library_that_cannot_be_loaded_is_as_good_as_none(tmp_path: Path) -> None:
    names = apsw.vfs_names()
    (tmp_path / "cksumvfs.so").write_text("no library")
    pages.load(tmp_path / "cksumvfs.so", pages.PLAIN)
    assert apsw.vfs_names() == names


# Sweeping ----------------------------------------------------------------------------------------


def with_an_erasure_pending(path: Path) -> None:
    storage = filled(path)
    with storage.writing(stamp()) as tx:
        gone = tx.get(Memory, 3)
        assert gone is not None
        tx.erase(gone)
    storage.close()


def cut_off_a_sweep(path: Path) -> int:
    """Leave a page as a power cut in the middle of the sweep does: the first part new, the rest old. Which one."""
    before, trial = path.read_bytes(), path.with_name("trial.db")
    trial.write_bytes(before)
    records: list[bytes] = []

    def look(happened: Happened) -> None:
        if happened.name == trial.name and happened.kind == "write":
            records.append(trial.with_name("trial.db-sweep").read_bytes())

    with TappedDisk(look) as disk:
        sweep(trial, disk.vfs)
    after = trial.read_bytes()
    trial.unlink()
    start = next(at for at in range(0, len(before), PAGE) if before[at : at + PAGE] != after[at : at + PAGE])
    end = start + PAGE - 512
    path.write_bytes(before[:start] + after[start:end] + before[end:])
    path.with_name("kept.db-sweep").write_bytes(records[0])
    return start // PAGE + 1


def test_a_sweep_that_was_cut_off_is_finished_by_the_next_who_opens_the_file(path: Path) -> None:
    with_an_erasure_pending(path)
    page = cut_off_a_sweep(path)
    assert bad_pages(path) == [page]
    assert len(contents(path)) == 39
    assert bad_pages(path) == []
    assert problems(path) == {}
    assert not path.with_name("kept.db-sweep").exists()
    storage = SqliteStorage(path)
    assert "erase" not in storage.describe()
    storage.close()


def test_a_sweep_that_was_cut_off_is_finished_by_the_next_who_writes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_an_erasure_pending(path)
    monkeypatch.setattr(SqliteStorage, "_scrub", lambda self: None)
    storage = SqliteStorage(path)
    cut_off_a_sweep(path)
    assert bad_pages(path)
    with storage.writing(stamp()) as tx:
        tx.add(memory("One more"), "remember")
    assert bad_pages(path) == []
    monkeypatch.undo()
    storage.close()
    assert problems(path) == {}


def test_a_page_that_was_written_since_is_not_put_back(path: Path) -> None:
    with_an_erasure_pending(path)
    cut_off_a_sweep(path)
    record = path.with_name("kept.db-sweep").read_bytes()
    storage = SqliteStorage(path)
    for number in range(60):
        with storage.writing(stamp()) as tx:
            tx.add(memory(f"Later {number} {'text ' * 40}"), "remember")
    storage.close()
    told = contents(path)
    path.with_name("kept.db-sweep").write_bytes(record)
    assert contents(path) == told
    assert problems(path) == {}


def test_a_record_that_was_cut_off_itself_is_no_record(path: Path) -> None:
    with_an_erasure_pending(path)
    before = path.read_bytes()
    cut_off_a_sweep(path)
    path.write_bytes(before)  # for then no page had been touched
    record = path.with_name("kept.db-sweep")
    record.write_bytes(record.read_bytes()[:-3])
    assert len(contents(path)) == 39
    assert problems(path) == {}


def test_a_page_that_is_just_being_swept_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_an_erasure_pending(path)
    monkeypatch.setattr(SqliteStorage, "_scrub", lambda self: None)
    storage = SqliteStorage(path)
    cut_off_a_sweep(path)
    with pytest.raises(Busy, match="erased text was being removed"), storage.reading() as reader:
        everything(reader)
    seal(path)
    with storage.reading() as reader:
        assert len(everything(reader)) == 39
    storage.close()


def everything(reader: Any) -> list[Memory]:
    """Read every page that an answer can come from."""
    reader.view.connection.execute("pragma integrity_check").fetchall()
    found: list[Memory] = reader.select(ANYWHERE, limit=1000)
    return found


def test_a_sweep_that_fails_in_the_middle_of_a_page_puts_it_back(path: Path) -> None:
    with_an_erasure_pending(path)
    before = path.read_bytes()

    def fail() -> NoReturn:
        raise apsw.FullError("full")

    def refuse(happened: Happened) -> Refusal | None:
        is_page = happened.kind == "write" and happened.name == path.name
        return Refusal(fail, let_through=512) if is_page else None

    with TappedDisk(refuse) as disk, pytest.raises(apsw.FullError):
        sweep(path, disk.vfs)
    assert path.read_bytes() == before
    sweep(path)
    assert path.read_bytes() != before
    assert bad_pages(path) == []


def test_the_record_of_a_sweep_may_be_long(path: Path) -> None:
    """SQLite writes no more than 128 kB at a time."""
    path.touch()
    gaps = [Gap(number, 100, 200, bytes(16)) for number in range(1, 20_000)]
    _note_gaps(path, None, gaps)
    assert _noted_gaps(path) == gaps


def test_links_on_pages_in_doubt_are_dropped_not_sealed(path: Path) -> None:
    """Nothing proves a link, so a repair must not give a page with changed ones a fitting checksum."""
    storage = filled(path, 10)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.link([1, 2, 3], START)
        notes.count({"refused:chatter": 7})
    storage.close()
    connection = behind(path)
    root: Any = connection.execute("select rootpage from sqlite_schema where name = 'memory_links'").get
    connection.close()
    at = path.read_bytes().index(b"2026", (root - 1) * PAGE)
    flip(path, at)
    findings = health.repair(path, now=START)
    assert ("note", "Dropped, because they could not be checked: links.") in [(f.level, f.message) for f in findings]
    assert problems(path) == {}
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        assert reader.links(1) == []
        assert reader.counters() == {"refused:chatter": 7}
        assert reader.count() == 10
    storage.close()
