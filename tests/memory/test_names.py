"""`kept.open` opens the project that was named, and no other: names are exact, in a home and behind every door."""

from pathlib import Path

import pytest

import kept
from kept.adapters.shared import opened
from tests.folders import make_repository
from tests.projects.test_projects import ALIKE

CANARY = "The canary sings in the auth module on Tuesdays."


@pytest.mark.parametrize("names", ALIKE)
def test_names_that_read_alike_open_different_stores(
    tmp_path: Path, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    for name in names:
        with opened(None, project=name) as memory:
            assert memory.list() == []
            memory.remember(f"{CANARY} {name.encode('unicode_escape')!r}")
    for name in names:
        with kept.open(project=name) as memory:
            [found] = memory.list()
            assert found.content.endswith(repr(name.encode("unicode_escape")))


def test_a_name_opens_neither_a_directory_nor_another_project_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    below = make_repository(tmp_path / "above") / "below"
    below.mkdir()
    with kept.open(project=tmp_path / "above") as memory:
        stored = memory.remember(CANARY).memory
    assert stored is not None
    monkeypatch.chdir(below)
    for name in ("..", stored.space.removeprefix("project/"), "~root", "", " ", "a\x00b", "a\ud800"):
        with pytest.raises(kept.InvalidInput):
            kept.open(project=name)
    for target in (stored.space, "../", Path("..")):
        with kept.open(project=target) as memory:
            assert [found.content for found in memory.list()] == [CANARY]
