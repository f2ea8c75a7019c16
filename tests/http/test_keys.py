"""A token opens what it names, in its role, until it is revoked; and the file has no token."""

import json
from pathlib import Path

import pytest

import kept
from kept.entrypoints.http.keys import FILE, Keys
from tests.http.conftest import Server

HERE = "/api/v1/projects/here"


@pytest.fixture(scope="module")
def other(server: Server) -> str:
    """Another project in the same home, with something that nobody else may see."""
    folder = server.home.parent / "other-app"
    (folder / ".git").mkdir(parents=True)
    with kept.open(project=folder, home=server.home) as memory:
        memory.remember("The password hint of the other app is a canary.")
    return "other-app"


def test_a_token_opens_its_project_and_nothing_else(server: Server, other: str) -> None:
    secret = Keys(server.home).create("anna", role="project", projects=["web-app"])
    assert server.ask("GET", "/api/v1/projects", key=secret).json["projects"][0]["name"] == "web-app"
    assert len(server.ask("GET", "/api/v1/projects", key=secret).json["projects"]) == 1
    spec = server.ask("GET", "/api/v1/openapi.json").json
    asked = 0
    for path, verbs in spec["paths"].items():
        for method in verbs:
            if "{project}" not in path or path.endswith("/events"):
                continue
            address = path.replace("{project}", other).replace("{ref}", "1").replace("{session}", "s")
            address = address.replace("{task}", "TASK-001").replace("{verb}", "pin")
            answer = server.ask(method.upper(), address + "?q=canary", {} if method != "get" else None, key=secret)
            assert answer.status in (404, 422), (method, path, answer)
            assert b"canary" not in answer.body
            asked += 1
    assert asked >= 25
    assert server.ask("GET", f"/api/v1/search?q=canary&project={other}", key=secret).status == 404
    assert server.ask("GET", f"/api/v1/projects/{other}/memories").status == 200, "the person sees both"


def test_a_teammate_speaks_as_a_person_with_a_name_and_cannot_change_global_memory(server: Server) -> None:
    secret = Keys(server.home).create("ben", role="project", projects=[])
    said = {"content": "Releases are cut on Thursdays.", "kind": "convention"}
    receipt = server.ask("POST", f"{HERE}/memories", said, key=secret).json
    assert receipt["memory"]["trust"] == "user"
    assert receipt["memory"]["source"]["agent"] == "ben"
    refused = server.ask("POST", f"{HERE}/memories", {**said, "tier": "global", "kind": "preference"}, key=secret)
    assert refused.status == 403


def test_a_revoked_token_opens_nothing_and_the_file_has_none(server: Server) -> None:
    keys = Keys(server.home)
    secret = keys.create("carla", role="admin", projects=[])
    assert server.ask("GET", f"{HERE}/status", key=secret).status == 200
    assert secret not in (server.home / FILE).read_text("utf-8")
    keys.revoke("carla")
    assert server.ask("GET", f"{HERE}/status", key=secret).status == 401


def test_names_are_given_once_and_kept_short(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    keys.create("anna", role="project", projects=[])
    with pytest.raises(kept.InvalidInput, match="already"):
        keys.create("anna", role="project", projects=[])
    with pytest.raises(kept.NotFound, match="no token"):
        keys.revoke("nobody")
    assert json.loads((tmp_path / FILE).read_text("utf-8"))[0]["name"] == "anna"
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
