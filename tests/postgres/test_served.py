"""A project in a database behind `kept serve`: every holder of a token signs with a name of their own."""

from pathlib import Path

import pytest

import kept
from kept.entrypoints.http.doors import Doors
from kept.entrypoints.http.keys import Key
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
