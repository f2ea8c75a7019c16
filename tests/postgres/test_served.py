"""A project in a database behind `kept serve`: every holder of a token signs with a name of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kept
from kept.entrypoints.http.doors import Doors
from kept.entrypoints.http.keys import Key, Keys
from kept.memory.opening import open_projects
from tests.builders import FakeClock
from tests.cli.shell import Shell
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


def test_a_token_is_made_for_a_project_that_only_the_database_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database()
    with kept.open(url, project="web-app", home=tmp_path / "of a teammate") as memory:
        memory.remember("The API is versioned in its path")
    shell = Shell(tmp_path, FakeClock())
    monkeypatch.setattr(Shell, "environment", {**shell.environment, "KEPT_DATABASE_URL": url})
    monkeypatch.setenv("KEPT_DATABASE_URL", url)
    secret = shell.json("token", "create", "anna", "--for", "web-app")["token"]
    assert "There is no project 'web-ap'" in shell.fails("token", "create", "ben", "--for", "web-ap")
    doors, key = Doors(str(shell.home), None), Keys(shell.home).find(secret)
    try:
        assert key is not None
        assert [one.name for one in doors.projects(key)] == ["web-app"]
        assert doors.memory("web-app", key).recall("API")[0].memory.content == "The API is versioned in its path"
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


def test_a_token_opens_nothing_after_its_project_was_linked_elsewhere(tmp_path: Path) -> None:
    """To another project of the database, to another database, out of the home, and into it; in every order."""
    home, clone, local = tmp_path / "home", tmp_path / "clone", tmp_path / "local"
    urls = new_database(), new_database()
    for folder in (clone, local):
        (folder / ".git").mkdir(parents=True)
        with kept.open(project=folder, home=home) as memory:
            memory.remember(f"The canary {folder.name} of the home sings on Fridays.")
    for url in urls:
        for name in ("web", "payroll"):
            with kept.open(url, project=name, home=tmp_path / "other-home") as memory:
                memory.remember(f"The canary {url} {name} sings on Fridays.")
    projects, keys = open_projects(home), Keys(home)
    doors, owner = Doors(str(home), None), Key(name="user", is_owner=True)
    places = [None, *((name, url) for url in urls for name in ("web", "payroll"))]
    steps = [places[number] for number in (0, 1, 2, 1, 3, 4, 2, 0, 3, 1, 0, 4)]
    made: dict[tuple[str, str] | None, Key] = {}
    try:
        for step, place in enumerate(steps):
            if place is not None:
                mine = projects.join(place[0], clone, place[1])
            else:
                mine = projects.find(clone)
                assert mine is not None
                mine = projects.leave(mine.id) if mine.team else mine
            canary = "canary clone of the home" if place is None else f"canary {place[1]} {place[0]} "
            if place not in made:
                key = keys.find(keys.create(f"token {step}", role="project", projects=[mine.id]))
                assert key is not None
                made[place] = key
            assert canary in doors.memory(mine.id, owner).list()[0].content, "the owner reads where it is linked to"
            for other, key in made.items():
                if other == place:
                    assert canary in doors.memory(mine.id, key).list()[0].content
                    continue
                assert doors.projects(key) == []
                for word in (mine.id, mine.name, "web", "payroll"):
                    with pytest.raises(kept.NotFound):
                        doors.memory(word, key)
        listed = subprocess.run(
            [sys.executable, "-m", "kept", "token", "list"],
            env=os.environ | {"KEPT_HOME": str(home), "COLUMNS": "200"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert listed.stdout.count("linked elsewhere since") == len(made) - 1
    finally:
        doors.close()
        for url in urls:
            drop_database(url)
