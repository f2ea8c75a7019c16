"""A project in a database behind `kept serve`: every holder of a token signs with a name of their own."""

from pathlib import Path

import pytest

import kept
from kept.entrypoints.http.doors import Doors
from kept.entrypoints.http.keys import Key, Keys
from kept.memory.opening import open_projects
from tests.postgres.server import drop_database, new_database


def test_a_token_signs_with_its_own_name_and_takes_back_only_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "web-app"
    (folder / ".git").mkdir(parents=True)
    url = new_database()
    monkeypatch.setenv("KEPT_DATABASE_URL", url)
    monkeypatch.setenv("USER", "ann")
    doors = Doors(str(tmp_path / "home"), str(folder))
    try:
        with kept.open(project=folder, home=tmp_path / "home") as memory:
            memory.remember("The project is registered by its first memory.")
        owner, ben = (doors.memory("web-app", key) for key in (Key(name="user"), Key(name="ben", role="project")))
        own = owner.remember("The build runs on Node 22.").memory
        ben.remember("Releases are cut on Thursdays.")
        agent = doors.for_agent(Key(name="ben", role="project"), "http", None)
        agent.remember("The linter runs in CI only.")
        agent.close()
        assert [event.actor for event in owner.history()][-2:] == ["ben", "ben (http)"]
        assert ben.undo()[0].actor == "ben"
        assert own is not None
        assert owner.get(own.ref).status == "confirmed", "not taken back by somebody else"
    finally:
        doors.close()
        drop_database(url)


def test_a_token_follows_no_name_of_the_database_to_another_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a database a project is its name, so a renamed project is another one there."""
    url = new_database()
    monkeypatch.setenv("KEPT_DATABASE_URL", url)
    monkeypatch.setenv("USER", "ann")
    for name in ("web-app", "other-app"):
        (tmp_path / name / ".git").mkdir(parents=True)
        with kept.open(project=tmp_path / name, home=tmp_path / "home") as memory:
            memory.remember(f"The canary of {name} sings on Fridays.")
    keys, doors = Keys(tmp_path / "home"), Doors(str(tmp_path / "home"), None)
    key = keys.find(keys.create("ben", role="project", projects=["web-app"]))
    assert key is not None
    try:
        assert "web-app" in doors.memory("web-app", key).list()[0].content
        projects = open_projects(tmp_path / "home")
        projects.rename("other-app", "gone")
        mine = projects.rename("web-app", "other-app").id
        for project in ("other-app", mine, "gone", "web-app"):
            with pytest.raises(kept.NotFound):
                doors.memory(project, key)
        assert doors.projects(key) == []
    finally:
        doors.close()
        drop_database(url)
