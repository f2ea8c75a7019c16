"""What is left of a store when something else has touched its files: emptied, half made, or read-only."""

import shutil
import subprocess
from pathlib import Path

import apsw
import pytest

import kept
from kept.errors import Corrupt, StorageError
from kept.model import Actor
from kept.storage.sqlite import SqliteStorage, health
from tests.builders import START, FakeClock, memory, stamp
from tests.folders import common_user, posix_only

PLAIN = kept.Settings(auto_upkeep=False)
ADMIN = Actor(role="admin")


def store(path: Path) -> None:
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.add(memory("The importer retries three times"), "remember")
    storage.close()


@pytest.mark.parametrize("content", [b"", b"\0"], ids=["0 bytes", "1 byte"])
def test_an_emptied_store_is_not_a_new_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kept.db"
    store(path)
    path.write_bytes(content)
    for _ in range(2):  # and looking at it does not make it one
        with pytest.raises(Corrupt, match="is empty, although memories were stored in it"):
            SqliteStorage(path)
        assert path.read_bytes() == content
    problems = [finding for finding in health.examine(path, now=START) if finding.level == "problem"]
    assert "is empty" in problems[0].message


def test_an_emptied_store_is_known_by_its_backups_alone(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    store(path)
    storage = SqliteStorage(path)
    (tmp_path / "kept.db.backups").mkdir()
    storage.back_up(tmp_path / "kept.db.backups" / "2026-03-01.db")
    storage.close()
    (tmp_path / "kept.db.lock").unlink()
    path.write_bytes(b"")
    with pytest.raises(Corrupt) as caught:
        SqliteStorage(path)
    assert "kept store restore" in caught.value.hint
    assert "2026-03-01.db" in caught.value.hint


def test_an_emptied_project_is_an_error_until_its_backup_is_restored(tmp_path: Path) -> None:
    asked: list[str] = []

    def agree(question: str) -> bool:
        asked.append(question)
        return True

    with kept.open(home=tmp_path / "home", project="p", settings=PLAIN) as opened:
        opened.remember("The importer retries three times")
        opened.store.backup(tmp_path / "copy.db")
    (database,) = (tmp_path / "home").glob("projects/*/kept.db")
    database.write_bytes(b"")
    with kept.open(home=tmp_path / "home", project="p", settings=PLAIN, confirm=agree) as opened:
        for call in (lambda: opened.recall("importer"), lambda: opened.list(), lambda: opened.remember("New")):
            with pytest.raises(Corrupt, match="is empty"):
                call()
        assert "problem" in {finding.level for finding in opened.store.doctor()[0].findings}
        opened.store.restore(tmp_path / "copy.db")
        assert "is empty" in asked[0]
        assert [hit.ref for hit in opened.recall("importer")] == ["1"]


def test_an_empty_file_that_never_was_a_store_becomes_one(tmp_path: Path) -> None:
    (tmp_path / "new.db").touch()
    store(tmp_path / "new.db")


def test_a_store_that_somebody_deleted_can_be_made_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    store(path)
    path.unlink()
    store(path)
    path.write_bytes(b"")
    with pytest.raises(Corrupt):
        SqliteStorage(path)


@pytest.mark.parametrize("left", ["nothing in it", "its first page"])
def test_a_global_store_that_could_not_be_made_stops_no_reading(tmp_path: Path, left: str) -> None:
    """A full disk may leave the beginning of a file: that is no store, in any project."""
    home = tmp_path / "home"
    with kept.open(home=home, project="p", settings=PLAIN) as opened:
        opened.remember("The importer retries three times")
    (home / "global").mkdir(mode=0o700)
    database = home / "global/kept.db"
    database.touch(mode=0o600)
    if left == "its first page":
        connection = apsw.Connection(str(database))
        connection.execute("pragma journal_mode = wal").fetchall()
        connection.close()
        assert database.stat().st_size
    before = database.read_bytes()
    with kept.open(home=home, project="p", settings=PLAIN, actor=ADMIN) as opened:
        assert [hit.ref for hit in opened.recall("importer")] == ["1"]
        assert str(opened.briefing("importer"))
        assert database.read_bytes() == before
        assert "problem" not in {finding.level for one in opened.store.doctor() for finding in one.findings}
        opened.remember("Prefers short answers", kind="preference", tier="global")
        assert opened.get("g1").content == "Prefers short answers"


@posix_only
def test_a_full_disk_while_global_memory_is_made_stops_no_reading(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by root, on Linux")
    try:
        home = small / "home"
        with kept.open(home=home, project="p", settings=PLAIN, actor=ADMIN) as opened:
            opened.remember("The importer retries three times")
            (home / "global").mkdir(mode=0o700)
            filler = small / "filler"
            with filler.open("wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
            with pytest.raises(StorageError):
                opened.remember("Prefers short answers", kind="preference", tier="global")
        with kept.open(home=home, project="p", settings=PLAIN, actor=ADMIN) as opened:
            assert [hit.ref for hit in opened.recall("importer")] == ["1"]
            assert len(opened.list()) == 1
            filler.unlink()
            opened.remember("Prefers short answers", kind="preference", tier="global")
            assert len(opened.list()) == 2
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def make_read_only(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o500 if path.is_dir() else 0o400)


def fill_home(home: Path) -> None:
    with kept.open(home=home, project="p", clock=FakeClock(), actor=ADMIN, settings=kept.Settings()) as opened:
        opened.remember("The importer retries three times", kind="decision")
        opened.remember("Prefers short answers", kind="preference", tier="global")
        opened.session("s1").append("user", "How often does the importer retry?")


def read_home(home: Path) -> tuple[kept.Recalled, bool]:
    """Every way to read, and whether each space says that it is read-only."""
    with kept.open(home=home, project="p", clock=FakeClock(), actor=ADMIN, settings=kept.Settings()) as opened:
        recalled = opened.recall("importer")
        assert [hit.ref for hit in recalled] == ["1"]
        assert {one.ref for one in opened.list()} == {"1", "g1"}
        assert opened.get(1).kind == "decision"
        assert opened.history(1)
        assert "importer" in str(opened.briefing("importer"))
        assert opened.recall("retry", scope="sessions").hits
        assert [message.role for message in opened.session("s1").messages()] == ["user"]
        return recalled, all(space.get("read_only", False) for space in opened.status()["spaces"])


@posix_only
def test_a_read_only_home_can_be_read(tmp_path: Path) -> None:
    fill_home(tmp_path)
    assert read_home(tmp_path)[1] is False  # and Python has loaded what it needs
    with common_user() as own:
        home = own / "home"
        fill_home(home)
        make_read_only(home)
        before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
        recalled, is_read_only = read_home(home)
        assert is_read_only
        assert recalled.receipt is None
        assert "read-only" in (recalled.degraded or "")
        with kept.open(home=home, project="p", clock=FakeClock(), actor=ADMIN, settings=kept.Settings()) as opened:
            for call in (lambda: opened.pin(1), lambda: opened.erase(1), lambda: opened.remember("New")):
                with pytest.raises(StorageError, match=r"read-only|could not"):
                    call()
        assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


@posix_only
@pytest.mark.parametrize("name", ["m.db", "m.json"])
def test_a_read_only_file_can_be_read(tmp_path: Path, name: str) -> None:
    def fill(path: Path) -> None:
        with kept.open(path, settings=PLAIN) as opened:
            opened.remember("The importer retries three times")
            assert opened.recall("importer").receipt

    fill(tmp_path / name)
    with common_user() as own:
        (own / "folder").mkdir()
        fill(own / "folder" / name)
        make_read_only(own / "folder")
        with kept.open(own / "folder" / name, settings=PLAIN) as opened:
            assert [hit.ref for hit in opened.recall("importer")] == ["1"]
            with pytest.raises(StorageError):
                opened.remember("New")


@posix_only
def test_a_read_only_store_with_a_wal_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    """The newest changes may be in the WAL alone; an answer without them would be a wrong one."""
    store(tmp_path / "m.db")
    with common_user() as own:
        (own / "folder").mkdir()
        path = own / "folder/m.db"
        storage = SqliteStorage(path)
        with storage.writing(stamp()) as tx:
            tx.add(memory("The importer retries three times"), "remember")
        copy = own / "copy"
        shutil.copytree(own / "folder", copy)
        storage.close()
        (copy / "m.db-shm").unlink()
        make_read_only(copy)
        with pytest.raises(StorageError, match="its newest changes are in a WAL"):
            SqliteStorage(copy / "m.db")
