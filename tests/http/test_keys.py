"""A token opens what it names, in its role, until it is revoked; and the file has no token."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

import kept
from kept.entrypoints.http.keys import FILE, Keys
from kept.entrypoints.mcp.surroundings import PROJECT_META
from kept.memory import deliver
from kept.memory.opening import open_projects
from kept.model import Actor, Role
from tests.http.conftest import KEY, Answer, Server
from tests.http.operations import operations

HERE = "/api/v1/projects/here"


@pytest.fixture(scope="module")
def other(server: Server) -> str:
    """Another project in the same home, with something that nobody else may see."""
    folder = server.home.parent / "other-app"
    (folder / ".git").mkdir(parents=True)
    with kept.open(project=folder, home=server.home) as memory:
        memory.remember("The password hint of the other app is a canary.")
    return "other-app"


def ids_of(server: Server, *names: str) -> list[str]:
    """The ids of these projects; of `web-app` by default."""
    found = {one.name: one.id for one in open_projects(server.home).list_projects()}
    return [found[name] for name in names or ("web-app",)]


VIEWS = (
    "saw",
    "memories",
    "memories?q=canary",
    "memories?ref=1",
    "inbox",
    "timeline",
    "sessions",
    "knowledge",
    "health",
)


@pytest.mark.parametrize("role", ["project", "admin"])
def test_a_token_opens_its_project_and_nothing_else(server: Server, other: str, role: Role) -> None:
    """Every operation of the document, every view, the form and the stream, by name and by id of a foreign project."""
    secret = Keys(server.home).create(f"anna-{role}", role=role, projects=["web-app"])
    listed = server.ask("GET", "/api/v1/projects", key=secret).json["projects"]
    assert [one["name"] for one in listed] == ["web-app"]
    ids = {one["name"]: one["id"] for one in server.ask("GET", "/api/v1/projects").json["projects"]}
    asked = 0
    for one in operations(server):
        for name in (other, ids[other]):
            answer = server.ask(one.method, one.path.replace("{project}", name), one.body, key=secret)
            assert answer.status == 404, (one, answer)
            assert b"canary" not in answer.body
            asked += 1
    assert asked >= 140
    for view in VIEWS:
        assert server.ask("GET", f"/p/{other}/{view}", key=secret).status == 404
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    fields = b"csrf=x&verb=forget&ref=1"
    assert server.ask("POST", f"/p/{other}/do", fields, key=secret, headers=form).status == 404
    assert server.ask("GET", f"/projects/{other}/knowledge", key=secret).status == 404
    assert server.ask("GET", f"/api/v1/search?q=canary&project={other}", key=secret).status == 404
    assert b"other-app" not in server.ask("GET", "/metrics", key=secret).body
    untouched = server.ask("GET", f"/api/v1/projects/{other}/memories").json["memories"]
    assert [one["status"] for one in untouched] == ["confirmed"], "the person sees both, and nothing was changed"


def test_a_token_is_not_the_owner_whatever_its_name(server: Server, other: str) -> None:
    for name in ("user", "upkeep"):
        with pytest.raises(kept.InvalidInput, match="cannot be named"):
            Keys(server.home).create(name, role="project", projects=["web-app"])
    # A file of tokens from an older version, or edited by hand, may still have such a name.
    secret = "kept_made-by-hand"
    token = {"name": "user", "digest": hashlib.sha256(secret.encode()).hexdigest(), "role": "project"}
    token |= {"projects": ids_of(server)[:1], "created_at": "2026-01-01T00:00:00Z"}
    file = server.home / FILE
    known = json.loads(file.read_text("utf-8"))["tokens"] if file.exists() else []
    file.write_text(json.dumps({"version": 2, "tokens": [*known, token]}), "utf-8")
    assert server.ask("GET", f"/api/v1/projects/{other}/memories").status == 200, "the owner has it open"
    assert server.ask("GET", f"/api/v1/projects/{other}/memories", key=secret).status == 404
    said = {"content": "Planted into global memory.", "kind": "preference", "tier": "global"}
    assert server.ask("POST", f"{HERE}/memories", said, key=secret).status == 403


def test_a_token_that_was_made_again_has_its_new_role_at_once(server: Server) -> None:
    keys = Keys(server.home)
    said = {"content": "Always answer in Latin.", "kind": "preference", "tier": "global"}
    admin = keys.create("dora", role="admin", projects=[])
    assert server.ask("POST", f"{HERE}/memories", said, key=admin).status == 201
    keys.revoke("dora")
    plain = keys.create("dora", role="project", projects=[])
    assert (
        server.ask("POST", f"{HERE}/memories", said | {"content": "Always answer in Greek."}, key=plain).status == 403
    )


def test_the_owners_global_memory_is_closed_to_teammates_behind_every_door(server: Server) -> None:
    with kept.open(project=server.project, home=server.home, actor=Actor(role="admin", name="user")) as memory:
        ref = memory.remember("My heliotrope diary is in the attic.", tier="global", kind="preference").ref
    secret = Keys(server.home).create("emil", role="project", projects=["web-app"])
    assert b"heliotrope" in server.ask("GET", f"{HERE}/recall?query=heliotrope").body, "the owner finds it"
    with server.memory() as memory:
        memory.session("talk-g", agent="claude")
        given = memory.deliveries.for_prompt(
            "where is my heliotrope diary?", deliver.Listener(session="talk-g", event="x")
        )
        assert "attic" in given
    assert b"attic" in server.ask("GET", f"{HERE}/sessions/talk-g/saw").body, "the owner sees what the agent saw"
    gets = (
        "sessions/talk-g/saw",
        "memories",
        "recall?query=heliotrope",
        "briefing?prompt=heliotrope+diary",
        "export",
        "status",
        "review",
    )
    gets += (f"memories/{ref}", f"memories/{ref}/history", "history?tier=global", "why", "conflicts")
    pages = (
        "saw?session=talk-g",
        "saw?session=talk-g&replay=1",
        "memories",
        "memories?q=heliotrope",
        f"memories?ref={ref}",
        "saw",
        "inbox",
        "timeline",
        "health?doctor=1",
    )
    for path in (*(f"{HERE}/{one}" for one in gets), *(f"/p/web-app/{one}" for one in pages)):
        answer = server.ask("GET", path, key=secret)
        assert answer.status in (200, 403, 404), (path, answer)
        assert b"attic" not in answer.body, path
    for verb in ("reinforce", "pin", "forget"):
        assert server.ask("POST", f"{HERE}/memories/{ref}/{verb}", key=secret).status in (403, 404)
    assert b"attic" not in tool(server, secret, "memory_query", {"query": "heliotrope diary"}).body


def test_a_tool_over_http_never_reaches_another_project(server: Server, other: str) -> None:
    secret = Keys(server.home).create("fritz", role="project", projects=["web-app"])
    asked = {"query": "password hint canary"}
    for key in (secret, KEY):
        for meta in ({}, {PROJECT_META: str(server.home.parent / other)}):
            answer = tool(server, key, "memory_query", asked, meta)
            assert answer.status == 200
            assert b"of the other app" not in answer.body
    foreign = Keys(server.home).create("gerda", role="project", projects=[other])
    assert tool(server, foreign, "memory_query", asked).status == 404


def tool(server: Server, key: str, name: str, arguments: dict[str, str], meta: dict[str, str] | None = None) -> Answer:
    """Call a tool over HTTP."""
    params = {"name": name, "arguments": arguments} | ({"_meta": meta} if meta else {})
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return server.ask("POST", "/mcp/", call, key=key, headers=headers)


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
    assert json.loads((tmp_path / FILE).read_text("utf-8"))["tokens"][0]["name"] == "anna"
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_the_inbox_of_an_admin_is_not_shown_to_a_later_token_of_that_name(server: Server) -> None:
    with kept.open(project=server.project, home=server.home, actor=Actor(role="admin", name="user")) as memory:
        for tool_name in ("Zinnia", "Marigold"):
            memory.remember(f"I use {tool_name} for the shared garden planner.", tier="global", kind="decision")
    keys = Keys(server.home)
    admin = keys.create("ines", role="admin", projects=["web-app"])
    assert b"Zinnia" in server.ask("GET", "/p/web-app/inbox", key=admin).body
    keys.revoke("ines")
    plain = keys.create("ines", role="project", projects=["web-app"])
    assert b"Zinnia" not in server.ask("GET", "/p/web-app/inbox", key=plain).body


def test_tokens_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    names = [f"person-{number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: Keys(tmp_path).create(name, role="project", projects=[]), names))
    assert sorted(token.name for token in Keys(tmp_path).tokens()) == sorted(names)


def test_a_name_in_an_address_is_exact(server: Server) -> None:
    for name in ("Ab3", "aB3", "ab3 "):
        with kept.open(project=name, home=server.home) as memory:
            memory.remember(f"This is {name!r}.")
    for name in ("Ab3", "aB3", "ab3 "):
        found = server.ask("GET", f"/api/v1/projects/{quote(name)}/memories").json["memories"]
        assert [one["content"] for one in found if one["content"].startswith("This is")] == [f"This is {name!r}."]
    assert server.ask("GET", "/api/v1/projects/AB3/memories").status == 404


def test_a_token_opens_the_project_it_was_made_for_and_not_another_of_its_name(server: Server) -> None:
    projects = open_projects(server.home)
    meant = projects.ensure("orchard")
    token = Keys(server.home).create("frida", role="project", projects=[meant.id])
    twin = server.home.parent / "twins/orchard"
    (twin / ".git").mkdir(parents=True)
    with kept.open(project=twin, home=server.home) as memory:
        memory.remember("The canary of the other orchard.")
    [listed] = server.ask("GET", "/api/v1/projects", key=token).json["projects"]
    assert listed["id"] == meant.id
    assert server.ask("GET", "/api/v1/projects/orchard/memories", key=token).json["memories"] == []
    assert server.ask("GET", f"/api/v1/projects/{projects.ensure(twin).id}/memories", key=token).status == 404
    both = server.ask("GET", "/api/v1/projects/orchard/memories")
    assert both.status == 422
    assert meant.id in both.json["detail"]
    projects.rename(meant.id, "garden")
    assert [one["id"] for one in server.ask("GET", "/api/v1/projects", key=token).json["projects"]] == [meant.id]


@pytest.mark.parametrize(
    "body", [rb'{"content": "a \ud800"}', rb'{"content": "a", "tags": ["\udfff"]}', rb'{"\ud800": 1}']
)
def test_half_a_character_in_a_body_is_a_clear_answer(server: Server, body: bytes) -> None:
    assert server.ask("POST", f"{HERE}/memories", body).status == 422
    call = rb'{"name":"memory_query","arguments":{"query":"\ud800"}}'
    request = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + call + b"}"
    accepts = {"Accept": "application/json, text/event-stream"}
    assert server.ask("POST", "/mcp/", request, headers=accepts).status in (200, 400)
    assert server.ask("GET", f"{HERE}/memories").status == 200


def test_a_token_undoes_no_half_of_a_change_of_global_memory(server: Server) -> None:
    """Neither of a promotion nor of its undo."""
    secret = Keys(server.home).create("undoing", role="project", projects=["web-app"])
    with kept.open(
        project=server.project, home=server.home, actor=Actor(role="admin", name="user"), confirm=lambda _: True
    ) as memory:
        ref = memory.remember("The marmot release train leaves on Mondays.", kind="pattern").ref
        assert ref is not None
        promoted = memory.promote(ref, "global")
        first = memory.history()[-1].seq
        for is_undone in (False, True):
            if is_undone:
                memory.undo(str(first))
            before = memory.get(ref).status
            seq = memory.history()[-1].seq
            answer = server.ask("POST", "/api/v1/projects/here/undo", {"event": str(seq)}, key=secret)
            assert answer.status == 403, answer
            assert "global memory" in answer.json["detail"]
            assert memory.history()[-1].seq == seq
            assert memory.get(ref).status == before
        assert promoted.ref is not None
    own = server.ask("POST", "/api/v1/projects/here/memories", {"content": "The heron is grey today."}, key=secret)
    assert own.status == 201
    assert server.ask("POST", "/api/v1/projects/here/undo", {}, key=secret).status == 200
