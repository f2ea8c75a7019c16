"""On a full disk nothing is half-written, reading goes on, and what has to go can go.

Twice: on a small file system of its own (Linux, as root), and always on a simulated one.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

import kept
from kept import journal
from kept.errors import StorageError
from kept.model import Memory
from kept.ports import ANYWHERE, Storage
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.sqlite import SqliteStorage, backup, reserve
from tests.builders import memory, stamp
from tests.crash.simulated_disk import Happened, Refusal, TappedDisk
from tests.storage.canaries import Aviary, found_in

MEGABYTE = 1024 * 1024
CAPACITY = 14 * MEGABYTE
BATCH = 100


class SmallDisk(TappedDisk):
    """A folder whose files may take up so much room together, and whose WAL may not grow beyond that.

    The database may: it grows at checkpoints, whose failure SQLite passes over in silence, but apsw would not.
    """

    def __init__(self, folder: Path, capacity: int) -> None:
        self.folder = folder
        self.capacity = capacity
        super().__init__(self._refuse_growth)

    def free(self) -> int:
        return max(0, self.capacity - sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()))

    def _refuse_growth(self, happened: Happened) -> Refusal | None:
        if happened.kind == "write" and happened.name.endswith("-wal"):
            size = (self.folder / happened.name).stat().st_size
            end = happened.offset + len(happened.data)
            if end > size and end - size > self.free():
                return Refusal(then=_full)
        return None


def _full() -> None:
    raise apsw.FullError("the simulated disk is full")


@contextmanager
def mounted(folder: Path, capacity: int) -> Iterator[None]:
    """A small file system in this folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={capacity}", "tmpfs", str(folder)]
    if os.name != "posix" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by root, on Linux")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(folder: Path) -> Path:
    """Leave no byte free on the file system. Deleting the file that is returned frees it again."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return filler


@pytest.fixture(params=["a small file system", "a simulated disk"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder on a small disk, and the VFS that goes with it."""
    if request.param == "a small file system":
        with mounted(tmp_path / "small", CAPACITY):
            yield tmp_path / "small", ""
        return
    with SmallDisk(tmp_path, CAPACITY) as small:
        monkeypatch.setattr(reserve, "free_bytes", lambda path: small.free())
        yield tmp_path, small.vfs


def fill(storage: Storage, aviary: Aviary) -> tuple[list[Memory], StorageError]:
    """Add memories until the disk is full: what was acknowledged, and the error."""
    stored: list[Memory] = []
    while True:
        try:
            with storage.writing(stamp()) as tx:
                batch = [tx.add(memory(f"{aviary.prose()} {len(stored)}"), "remember") for _ in range(BATCH)]
        except StorageError as error:
            return stored, error
        stored += batch


def open_on(disk: tuple[Path, str]) -> SqliteStorage:
    folder, vfs = disk
    return SqliteStorage(folder / "kept.db", vfs=vfs or None, synchronous="normal")


def test_a_full_disk_refuses_writes_and_nothing_else(disk: tuple[Path, str]) -> None:
    aviary, storage = Aviary(20), open_on(disk)
    with storage.writing(stamp()) as tx:
        canaries = [tx.add(aviary.canary(), "remember") for _ in range(10)]
    storage.back_up(backup.make_folder(disk[0] / "kept.db") / "2026-03-01.db")
    stored, error = fill(storage, aviary)
    assert "full" in error.message
    assert "Nothing was changed" in error.hint
    assert len(stored) > 500

    everything = {m.id for m in [*canaries, *stored]}
    for _ in range(2):
        with storage.reading() as reader:  # what was acknowledged is there, and nothing of what was not
            assert {m.id for m in reader.select(ANYWHERE, limit=10**6)} == everything
            assert journal.broken_links(reader.events()) == []
            assert reader.search(stored[0].content.split()[:3], limit=5)
        with storage.bookkeeping() as notes:  # lost, and no error
            assert notes is not None
            notes.count_uses([m.id for m in stored], stored[0].created_at)
        storage.close()
        storage = open_on(disk)

    for doomed in stored[:30]:
        with storage.writing(stamp(), urgent=True) as tx:
            tx.put(kept.model.replace(doomed, status="archived", reason="forgotten"), "forget")
    for canary in canaries:
        with storage.writing(stamp(), urgent=True) as tx:
            tx.erase(canary)
        assert storage.scrub().is_done
    with storage.reading() as reader:
        assert reader.count(ANYWHERE) == len(stored)
        assert {m.reason for m in reader.select(ANYWHERE, limit=30, oldest_first=True)} == {"forgotten"}
    storage.close()
    assert found_in(disk[0], aviary.traces()) == {}


def test_the_reserve_comes_back_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.db"
    storage = SqliteStorage(path)
    spare = reserve.reserve_of(path)
    assert spare.stat().st_size >= reserve.LEAST_BYTES
    assert spare.stat().st_blocks * 512 >= spare.stat().st_size  # not sparse
    assert spare.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(reserve, "free_bytes", lambda path: 1_000 if spare.exists() else 90_000)
    with storage.writing(stamp(), urgent=True) as tx:
        assert not spare.exists()
        tx.add(memory("x"), "remember")
    assert spare.stat().st_size == 90_000
    monkeypatch.undo()
    with storage.writing(stamp(), urgent=True) as tx:
        tx.add(memory("y"), "remember")
    assert spare.stat().st_size == reserve.wanted_bytes(path)
    storage.close()


def test_the_reserve_grows_with_the_store_up_to_what_a_full_wal_needs(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    storage = SqliteStorage(path)
    spare = reserve.reserve_of(path)
    sizes = [spare.stat().st_size]
    for _ in range(12):
        with storage.writing(stamp()) as tx:
            for n in range(200):
                tx.add(memory(f"{n} {'The zebra service listens here. ' * 60}"), "remember")
        sizes.append(spare.stat().st_size)
    storage.close()
    assert sizes == sorted(sizes)
    assert reserve.LEAST_BYTES <= sizes[0] < sizes[1] < sizes[-1] == reserve.RESERVE_BYTES


@pytest.mark.parametrize("many", [1, 40])
def test_the_reserve_of_a_user_with_few_memories_is_enough_to_erase_one(tmp_path: Path, many: int) -> None:
    with mounted(tmp_path / "small", 12 * MEGABYTE):
        home = tmp_path / "small" / "home"
        with kept.open(user="ada", home=home) as opened:
            for n in range(many):
                opened.remember(f"The zebra number {n} sleeps in stable {n * 7}")
        fill_up(home.parent)
        with kept.open(user="ada", home=home) as opened:
            with suppress(StorageError):
                for n in range(100):
                    opened.remember(f"One more is number {n}")
                    fill_up(home.parent)
            with pytest.raises(StorageError, match="is full"):
                opened.remember("One more after that")
            stored = len(opened.list(limit=200))
            opened.erase(1)
            assert len(opened.list(limit=200)) == stored - 1
        assert not [file for file in home.rglob("*") if file.is_file() and b"zebra number 0" in file.read_bytes()]


def test_a_json_store_on_a_full_disk_refuses_writes_and_still_erases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aviary, path = Aviary(21), tmp_path / "store.json"
    storage = JsonFileStorage(path, "project/p1")
    for _ in range(3):
        with storage.writing(stamp()) as tx:
            canary = tx.add(aviary.canary(), "remember")
    before = path.read_bytes()
    room = sum(file.stat().st_size for file in tmp_path.iterdir()) + 100

    def write_if_it_fits(file: Path, chunks: Iterable[bytes]) -> None:
        data = b"".join(chunks)
        used = sum(other.stat().st_size for other in tmp_path.iterdir())
        if used + len(data) > room:
            file.write_bytes(data[:50])
            raise OSError(28, "No space left on device")
        file.write_bytes(data)

    monkeypatch.setattr("kept.storage.jsonfile.write_synced", write_if_it_fits)
    with pytest.raises(StorageError, match="No space left"), storage.writing(stamp()) as tx:
        tx.add(memory("one too many"), "remember")
    assert path.read_bytes() == before
    assert not path.with_name("store.json.new").exists()
    with storage.reading() as reader:
        assert reader.count(ANYWHERE) == 3
    with storage.writing(stamp(), urgent=True) as tx:
        for doomed in tx.select(ANYWHERE):
            tx.erase(doomed)
    assert canary.id == 3
    storage.close()
    assert found_in(tmp_path, aviary.traces()) == {}


# Without a reserve

LITTLE = 6 * MEGABYTE  # a store that is made here gets no reserve: that would take more than half of it


def test_a_store_without_a_reserve_is_read_on_a_full_disk_and_written_again_later(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", LITTLE):
        path = tmp_path / "small" / "memory.db"
        with kept.open(path) as memory:
            memory.remember("The zebra service listens on port 8080")
        assert not reserve.reserve_of(path).exists()
        filler = fill_up(path.parent)
        with kept.open(path) as memory:
            for _ in range(2):
                assert [hit.ref for hit in memory.recall("zebra port")] == ["1"]
                assert [one.ref for one in memory.list()] == ["1"]
                assert [event.action for event in memory.history()] == ["remember"]
                assert memory.briefing("the zebra service").text
                for write in (lambda: memory.remember("One more"), lambda: memory.forget(1), lambda: memory.erase(1)):
                    with pytest.raises(StorageError, match="is full") as refused:
                        write()
                    assert refused.value.hint == "Nothing was changed. Free some space and try again."
            filler.unlink()
            assert memory.remember("There is room for another statement again").outcome == "stored"
            assert len(memory.list()) == 2
        with kept.open(path) as memory:
            assert len(memory.list()) == 2


def test_a_store_whose_wal_was_left_behind_is_read_on_a_full_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", LITTLE):
        path = tmp_path / "small" / "memory.db"
        program = "import kept, os, sys; kept.open(sys.argv[1]).remember('The zebra waits in the WAL'); os._exit(0)"
        subprocess.run([sys.executable, "-c", program, str(path)], check=True)
        assert path.with_name("memory.db-wal").stat().st_size
        fill_up(path.parent)
        with kept.open(path) as memory:
            assert [hit.ref for hit in memory.recall("zebra")] == ["1"]


@pytest.mark.parametrize("command", [["list"], ["recall", "zebra"], ["show", "1"], ["history"], ["status"], ["review"]])
def test_every_reading_command_works_on_a_full_disk(tmp_path: Path, command: list[str]) -> None:
    with mounted(tmp_path / "small", LITTLE):
        home = tmp_path / "small" / "home"
        with kept.open(project="web", home=home) as memory:
            memory.remember("The zebra service listens on port 8080")
        fill_up(home.parent)
        done = subprocess.run(
            [sys.executable, "-m", "kept", "--home", str(home), "--project", "web", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


# Erasing


def test_erasing_on_a_full_disk_cleans_the_files_as_well(tmp_path: Path) -> None:
    """MEMORY.md takes room of the reserve: it was left with the text, and the error said that nothing had changed."""
    with mounted(tmp_path / "small", CAPACITY):
        home = tmp_path / "small" / "home"
        with kept.open(project="web", home=home) as memory:
            memory.remember("The zebra service listens on port 8080")
            memory.remember("Deploys run on Tuesdays")
            memory.files.sync()
        (mirror,) = home.glob("projects/*/MEMORY.md")
        assert "zebra" in mirror.read_text("utf-8")
        fill_up(home.parent)
        with kept.open(project="web", home=home) as memory:
            assert memory.erase(1).message == "Memory 1 is erased."
            assert [one.ref for one in memory.list()] == ["2"]
        assert [path.name for path in home.rglob("*") if path.is_file() and b"zebra" in path.read_bytes()] == []


def test_an_erasure_that_cannot_clean_a_file_says_so_and_not_that_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept.open(project="web", home=tmp_path) as memory:
        memory.remember("The zebra service listens on port 8080")
        memory.files.sync()
        (mirror,) = tmp_path.glob("projects/*/MEMORY.md")

        def refuse(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("kept.memory.views.write_draft", refuse)
            receipt = memory.erase(1)
        assert receipt.reason == "pending"
        assert "Memory 1 is erased" in receipt.message
        assert "MEMORY.md" in receipt.message
        assert "Nothing was" not in receipt.message
        assert memory.list() == []
        memory.files.sync()
        assert "zebra" not in mirror.read_text("utf-8")
