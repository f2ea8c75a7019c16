"""Single files: replaced as a whole or not at all, and locked by one at a time."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kept.errors import Busy, KeptError, StorageError
from kept.projects.files import locked, shown, write_private_file
from tests.folders import posix_only


def test_a_write_replaces_the_whole_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private_file(path, b"a long first text")
    write_private_file(path, b"short")
    assert path.read_bytes() == b"short"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_private_file(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="no space left") as caught:
        write_private_file(path, b"new")
    assert "Nothing was changed" in caught.value.hint
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@posix_only
def test_a_write_replaces_a_link_instead_of_writing_through_it(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "file").symlink_to(tmp_path / "victim")
    write_private_file(tmp_path / "file", b"new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "file").is_symlink()


HOLD = """
import sys
from pathlib import Path
from kept.projects.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another_process(path: Path) -> Iterator[Callable[[], None]]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    try:
        yield process.kill
    finally:
        process.communicate("")


def test_a_lock_that_another_process_holds_makes_busy_in_time_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    too_long = pytest.raises(Busy, match=r"/lock for more than 0\.05 s")
    with held_by_another_process(path), too_long, locked(path, timeout_s=0.05):
        pytest.fail("two processes hold one lock")
    with locked(path, timeout_s=30):  # whoever gave up waiting did not keep it
        pass


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path) as kill:
        kill()
        with locked(path, timeout_s=30):
            pass


def test_who_is_interrupted_while_waiting_does_not_keep_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"

    wait_for = threading.Condition.wait_for

    def interrupted(condition: threading.Condition, *arguments: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return wait_for(condition, *arguments)

    with locked(path), monkeypatch.context() as ctrl_c:
        ctrl_c.setattr(threading.Condition, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), locked(path):
            pass
    with locked(path, timeout_s=30):
        pass


def test_one_thread_at_a_time_holds_a_lock_and_all_get_their_turn(tmp_path: Path) -> None:
    inside, most, turns = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, turns
        for _ in range(20):
            with locked(tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                turns += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, turns) == (1, 160)


def test_an_error_under_the_lock_gives_it_back_and_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
        _ = 1 / 0
    with locked(tmp_path / "lock", timeout_s=0):
        pass


def test_a_lock_in_a_missing_directory_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(KeptError, match="could not lock"), locked(tmp_path / "missing/lock"):
        pass


def test_a_name_that_is_not_unicode_can_still_be_shown() -> None:
    assert shown(Path("/a\udcff")) == "/a\\udcff"
