"""C11, D4: the JSON file checks itself, falls back to `.bak` and says so, and is brought up step by step."""

import json
from pathlib import Path

import msgspec
import pytest

from kept.errors import Corrupt, InvalidInput, SchemaTooNew
from kept.model import replace
from kept.storage.jsonfile import CURRENT_VERSION, JsonFileStorage
from tests.builders import memory, stamp

SPACE = "project/p1"


def stored(path: Path, *contents: str) -> JsonFileStorage:
    storage = JsonFileStorage(path, SPACE)
    for content in contents:
        with storage.writing(stamp()) as tx:
            tx.add(memory(content), "remember")
    return storage


def contents(path: Path) -> list[str]:
    with JsonFileStorage(path, SPACE).reading() as reader:
        return [found.content for found in reader.select(oldest_first=True)]


def test_a_damaged_file_falls_back_to_its_backup_and_says_so(tmp_path: Path) -> None:
    """C11: integrity first, primary then .bak; the damaged file is kept for a person to look at."""
    path = tmp_path / "m.json"
    stored(path, "one", "two").close()
    path.write_bytes(path.read_bytes().replace(b"two", b"2wo"))
    storage = JsonFileStorage(path, SPACE)
    assert "backup" in (storage.warning or "")
    assert "backup" in storage.describe()["warning"]
    assert contents(path) == ["one"]
    with storage.writing(stamp()) as tx:
        tx.add(memory("three"), "remember")
    assert contents(path) == ["one", "three"]
    assert (tmp_path / "m.json.damaged-1").read_bytes().count(b"2wo") > 0


@pytest.mark.parametrize("damage", [b"", b"{", b"[1, 2]", b"\x00\xff", b'{"version": 1}'])
def test_when_both_are_damaged_nothing_is_replaced(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "m.json"
    stored(path, "one", "two").close()
    for file in (path, path.with_name("m.json.bak")):
        file.write_bytes(damage)
    with pytest.raises(Corrupt, match="Nothing was changed"):
        JsonFileStorage(path, SPACE)
    assert path.read_bytes() == damage


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    stored(path, "one").close()
    document = json.loads(path.read_bytes())
    path.write_bytes(msgspec.json.encode(document | {"version": CURRENT_VERSION + 1}))
    with pytest.raises(SchemaTooNew, match="newer"):
        JsonFileStorage(path, SPACE)


def test_migrations_run_one_after_the_other(tmp_path: Path) -> None:
    """C11: sequential migrations from the version of the file to the current one."""
    path = tmp_path / "m.json"
    stored(path, "one").close()
    first = CURRENT_VERSION
    ran: list[int] = []

    def step(version: int):  # type: ignore[no-untyped-def]
        def migrate(store: dict[str, object]) -> dict[str, object]:
            ran.append(version)
            return store | {"counters": {f"step-{version}": 1}}

        return migrate

    storage = JsonFileStorage(path, SPACE, version=first + 2, migrations={one: step(one) for one in (first, first + 1)})
    assert ran == [first, first + 1]
    with storage.writing(stamp()) as tx:
        (one,) = tx.select()
        tx.put(replace(one, feedback=1), "reinforce")
    assert json.loads(path.read_bytes())["version"] == first + 2
    with storage.reading() as reader:
        assert reader.counters() == {f"step-{first + 1}": 1}


def test_two_processes_see_each_others_changes(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    one, two = stored(path, "first"), JsonFileStorage(path, SPACE)
    with two.writing(stamp()) as tx:
        tx.add(memory("second"), "remember")
    with one.writing(stamp()) as tx:
        tx.add(memory("third"), "remember")
    assert contents(path) == ["first", "second", "third"]


def test_a_directory_and_another_space_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="directory"):
        JsonFileStorage(tmp_path, SPACE)
    stored(tmp_path / "m.json", "one").close()
    with pytest.raises(InvalidInput, match="holds the space"):
        JsonFileStorage(tmp_path / "m.json", "project/other")


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    stored(path, "one", "two").close()
    assert {oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {"0o600"}
