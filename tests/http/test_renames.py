"""Tokens hold ids of projects: no rename, and no old file of tokens, lets a token read another project."""

import hashlib
import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import kept
from kept.entrypoints.http.keys import FILE, Keys
from kept.memory import deliver
from kept.memory.opening import open_projects
from kept.model import Actor, Role
from tests.conftest import IS_LONG
from tests.http.conftest import KEY, Server, serving
from tests.http.operations import operations
from tests.http.test_keys import VIEWS

NAMES = ("web-app", "beta", "gamma")
CANARIES = {"web-app": "pelican", "beta": "wombat", "gamma": "axolotl"}
GLOBAL_CANARY = "heliotrope"
STEPS = 6 if IS_LONG else 3


class Crowd(NamedTuple):
    """A server with three projects, the ids of these by their first names, and a token for each, by role."""

    server: Server
    ids: dict[str, str]
    tokens: dict[tuple[str, Role], str]

    @property
    def names(self) -> dict[str, str]:
        """The id of the project of each name, today."""
        return {one.name: one.id for one in open_projects(self.server.home).list_projects()}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    with serving(tmp_path_factory.mktemp("renames")) as server:
        for name in NAMES:
            folder = server.home.parent / name
            (folder / ".git").mkdir(parents=True, exist_ok=True)
            with kept.open(project=folder, home=server.home, actor=Actor(role="admin", name="user")) as memory:
                memory.remember(f"The {CANARIES[name]} project deploys on Fridays.")
                if name == "web-app":
                    said = f"I keep the {GLOBAL_CANARY} deploy diary in the attic on Fridays."
                    memory.remember(said, tier="global", kind="preference", pin=True)
        for name in NAMES:
            with kept.open(project=server.home.parent / name, home=server.home, actor=Actor(name="claude")) as memory:
                memory.session("talk", agent="claude")
                for style in ("text", "xml", "markdown", "json"):
                    listener = deliver.Listener(session="talk", event="UserPromptSubmit", style=style)
                    memory.deliveries.for_prompt("the deploy diary of Fridays", listener)
                memory.recall("deploy Fridays diary")
                memory.recall("diary")
        ids = {one.name: one.id for one in open_projects(server.home).list_projects()}
        keys = Keys(server.home)
        roles: tuple[Role, ...] = ("project", "admin")
        tokens = {(n, role): keys.create(f"{n}-{role}", role=role, projects=[n]) for n in NAMES for role in roles}
        yield Crowd(server, ids, tokens)


def addresses(server: Server) -> list[tuple[str, str, object]]:
    """Every operation as method, path and body, with every view, the form, and the address for other programs."""
    things = {"session": "talk", "receipt": "r1"}
    views = [("GET", f"/p/{{project}}/{view}", None) for view in (*VIEWS, "saw?session=talk", "sessions?session=talk")]
    others = [("GET", "/projects/{project}/knowledge", None), ("POST", "/p/{project}/do", b"csrf=x&verb=undo")]
    verbs = [(one.method, one.path, one.body) for one in operations(server, things)]
    return [*verbs, *views, *others, ("GET", "/api/v1/search?q=deploy&project={project}", None)]


def shuffle(crowd: Crowd, rng: random.Random) -> None:
    """Rename the projects as an owner would: one to a fresh name, or two exchange theirs."""
    projects = open_projects(crowd.server.home)
    names = crowd.names
    one, other = rng.sample(sorted(names), 2)
    if rng.random() < 0.3:
        projects.rename(names[one], f"fresh-{rng.randrange(10**6)}")
        return
    projects.rename(names[one], "for-a-moment")
    projects.rename(names[other], one)
    projects.rename(names[one], other)


def leaks(crowd: Crowd, own: str, role: Role, body: bytes) -> list[str]:
    foreign = [canary for name, canary in CANARIES.items() if name != own]
    hidden = [*foreign, *([GLOBAL_CANARY, "attic"] if role == "project" else [])]
    return [word for word in hidden if word.encode() in body]


def test_renaming_projects_lets_no_token_read_another_one(crowd: Crowd) -> None:
    """Operation × role × foreign project × renames, right after each rename: by every name of today and before."""
    server, rng = crowd.server, random.Random(8)
    every = addresses(server)
    assert len(every) > 80
    seen = set(NAMES)
    asked = 0
    for step in range(STEPS):
        shuffle(crowd, rng)
        seen |= set(crowd.names)
        by_id = {id: name for name, id in crowd.names.items()}
        for (own, role), secret in crowd.tokens.items():
            mine = crowd.ids[own]
            listed = server.ask("GET", "/api/v1/projects", key=secret).json["projects"]
            assert [(one["id"], one["name"]) for one in listed] == [(mine, by_id[mine])]
            found = server.ask("GET", f"/api/v1/projects/{by_id[mine]}/memories", key=secret)
            assert CANARIES[own].encode() in found.body, "a token still opens its project under the new name"
            shown = server.ask("GET", "/metrics", key=secret).body.decode()
            assert f'project="{by_id[mine]}"' in shown
            assert not [name for name in seen - {by_id[mine]} if f'"{name}"' in shown], "names of other projects"
            chosen = rng.sample(every, 4) if step < STEPS - 1 else every
            places = [*crowd.names, rng.choice(sorted(seen))] if role == "project" else [*crowd.ids.values()]
            for project in places:
                is_mine = project in (mine, by_id[mine])
                for method, path, body in chosen:
                    if (is_mine and method != "GET") or path.endswith("/events"):
                        continue
                    form = {"Content-Type": "application/x-www-form-urlencoded"} if isinstance(body, bytes) else {}
                    words = "?q=deploy+Fridays" if path.startswith("/p/") and "?" not in path else ""
                    address = path.replace("{project}", project) + words
                    answer = server.ask(method, address, body, key=secret, headers=form)
                    assert answer.status != 422, (method, address, answer)
                    assert is_mine or answer.status == 404, (own, project, method, path, answer)
                    assert leaks(crowd, own, role, answer.body) == [], (own, role, method, address)
                    asked += 1
    assert asked > 150 * STEPS
    untouched = [server.ask("GET", f"/api/v1/projects/{id}/memories").json["memories"] for id in crowd.ids.values()]
    kept_ones = [one for memories in untouched for one in memories if one["tier"] != "global"]
    assert {one["status"] for one in kept_ones} == {"confirmed"}
    assert len(kept_ones) == 4, "nothing was changed"


def test_receipts_show_a_project_token_nothing_of_global_memory(crowd: Crowd) -> None:
    """Neither texts nor refs, uids, counts or numbers of global memories, on every door to receipts."""
    server = crowd.server
    owned = server.ask("GET", f"/api/v1/projects/{crowd.ids['web-app']}/memories").json["memories"]
    secret_uid = next(one["uid"] for one in owned if one["tier"] == "global")
    for name in NAMES:
        base = f"/api/v1/projects/{crowd.ids[name]}"
        given = server.ask("GET", f"{base}/sessions/talk/saw").json["given"]
        assert any("attic" in one["block"] for one in given), "the owner sees it"
        for role in ("project", "admin"):
            secret = crowd.tokens[name, role]  # type: ignore[index]
            paths = [f"{base}/why", f"{base}/sessions/talk/saw"]
            paths += [f"{base}/why?receipt=r{number}" for number in range(1, 8)]
            paths += [f"/p/{crowd.ids[name]}/saw?{more}" for more in ("session=talk", "session=talk&replay=1")]
            paths += [f"/p/{crowd.ids[name]}/saw?receipt=r{number}" for number in range(1, 8)]
            for path in paths:
                answer = server.ask("GET", path, key=secret)
                assert answer.status in (200, 404), (path, answer)
                if role == "admin":
                    continue
                shown = answer.body.decode()
                for word in ("attic", GLOBAL_CANARY, secret_uid, '"g1"', "[id:g1]", ">g1<", "#mg1"):
                    assert word not in shown, (path, word)
        asked = [server.ask("GET", f"{base}/why?receipt=r{n}", key=crowd.tokens[name, "project"]) for n in range(1, 8)]
        (only_global,) = [one.json for one in asked if one.status == 200 and one.json["question"]["query"] == "diary"]
        assert (only_global["hits"], only_global["misses"], only_global["confidence"]) == ([], [], None)


def old_token(name: str, projects: list[str]) -> tuple[str, dict[str, object]]:
    """A secret, and its line in a tokens.json of Kept 0.2.0."""
    secret = f"kept_of-{name}"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    made = {"name": name, "digest": digest, "role": "project", "projects": projects}
    return secret, made | {"created_at": "2026-01-01T00:00:00Z"}


def test_tokens_of_an_older_kept_hold_the_ids_of_today_or_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for folder in ("beta", "one/twin", "two/twin"):
            (server.home.parent / folder / ".git").mkdir(parents=True)
            with kept.open(project=server.home.parent / folder, home=server.home) as memory:
                memory.remember(f"The canary of {folder} sings.")
        wanted = {"good": ["web-app"], "all": [], "gone": ["web-app", "gone-app"], "two": ["twin"], "case": ["Beta"]}
        secrets = {name: old_token(name, projects) for name, projects in wanted.items()}
        (server.home / FILE).write_text(json.dumps([token for _, token in secrets.values()]), "utf-8")
        status = {
            name: server.ask("GET", "/api/v1/projects/web-app/memories", key=secret)
            for name, (secret, _) in secrets.items()
        }
        assert {name: answer.status for name, answer in status.items()} == {
            **{"good": 200, "all": 200},
            **{"gone": 403, "two": 403, "case": 403},
        }
        assert "'gone-app'" in status["gone"].json["detail"]
        assert "kept token create gone" in status["gone"].json["hint"]
        stored = json.loads((server.home / FILE).read_text("utf-8"))
        projects = open_projects(server.home)
        assert stored["tokens"][0]["projects"] == [projects.get("web-app").id]
        projects.rename("web-app", "gone-app")
        projects.rename("beta", "web-app")
        found = server.ask("GET", "/api/v1/projects", key=secrets["good"][0]).json["projects"]
        assert [one["name"] for one in found] == ["gone-app"]
        assert server.ask("GET", "/api/v1/projects", key=secrets["gone"][0]).status == 403, "a name that came back"
        assert (server.home / FILE).stat().st_mode & 0o777 == 0o600


def test_the_list_of_tokens_shows_the_names_of_today(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("alpha", "beta"):
        (tmp_path / name / ".git").mkdir(parents=True)
        with kept.open(project=tmp_path / name, home=home) as memory:
            memory.remember(f"The canary of {name} sings.")
    (home / FILE).write_text(json.dumps([old_token("lost", ["gone-app"])[1], old_token("anna", ["alpha"])[1]]), "utf-8")

    def listed(*more: str) -> str:
        command = [sys.executable, "-m", "kept", "--home", str(home), "token", "list", *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout

    assert "nothing: no single project is named gone-app" in listed()
    projects = open_projects(home)
    projects.rename("alpha", "gamma")
    projects.rename("beta", "alpha")
    assert [(one["name"], one["projects"], one["lost"]) for one in json.loads(listed("--json"))["tokens"]] == [
        ("lost", [], ["gone-app"]),
        ("anna", ["gamma"], []),
    ]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\x00\xff\xfe",
        b"null",
        b"[1]",
        b'{"version": 2}',
        b'{"version": 2, "tokens": [{"name": "anna"}]}',
        b'{"version": 2, "tokens": [], "projects": []}',
        b'{"version": 99, "tokens": []}',
        b'[{"name": "a", "digest": "\xc3\xa4", "created_at": "2026-01-01T00:00:00Z"}]',
        b'[{"name": "a", "digest": "x", "role": "owner", "created_at": "2026-01-01T00:00:00Z"}]',
        None,
    ],
)
def test_a_damaged_file_of_tokens_is_said_clearly_and_opens_nothing(crowd: Crowd, damage: bytes | None) -> None:
    server, file = crowd.server, crowd.server.home / FILE
    secret = crowd.tokens["beta", "project"]
    whole = file.read_bytes()
    try:
        if damage is None:
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(damage)
        for key in (secret, "kept_guess"):
            answer = server.ask("GET", f"/api/v1/projects/{crowd.ids['beta']}/memories", key=key)
            assert answer.status == 503, answer
            assert "tokens.json" in answer.json["detail"]
            assert "kept token list" in answer.json["hint"]
        assert server.ask("GET", "/api/v1/projects", key=None).status == 401
        assert server.ask("GET", "/api/v1/projects").status == 200, "the person who serves needs no token"
        with pytest.raises(kept.KeptError, match=r"tokens\.json") as raised:
            Keys(server.home).tokens()
        assert raised.value.hint
        with pytest.raises(kept.KeptError, match=r"tokens\.json"):
            Keys(server.home).create("new", role="project", projects=[])
    finally:
        if damage is None:
            file.rmdir()
        file.write_bytes(whole)
    assert server.ask("GET", "/api/v1/projects", key=secret).status == 200


def follow(server: Server, project: str, *headers: str) -> socket.socket:
    """A connection that follows the events of a project."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    head = (f"GET /api/v1/projects/{project}/events HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Connection: close")
    line.sendall("\r\n".join((*head, *headers, "", "")).encode())
    began = b""
    while b"following" not in began:
        piece = line.recv(10_000)
        assert piece, began
        began += piece
    return line


def test_the_stream_of_a_revoked_token_ends(crowd: Crowd) -> None:
    server, keys, project = crowd.server, Keys(crowd.server.home), crowd.ids["beta"]
    secret = keys.create("leaving", role="project", projects=[project])
    lines = [
        follow(server, project, f"Authorization: Bearer {secret}"),
        follow(server, project, f"Cookie: {server.sign_in(secret)}"),
    ]
    staying = follow(server, project, f"Authorization: Bearer {KEY}")
    keys.revoke("leaving")
    for line in lines:
        while line.recv(10_000):  # raises TimeoutError after ten seconds without an end
            pass
        line.close()
    with kept.open(project=f"project/{project}", home=server.home) as memory:
        memory.remember("The stream of the owner goes on.")
    assert b"event: remember" in staying.recv(10_000)
    staying.close()
