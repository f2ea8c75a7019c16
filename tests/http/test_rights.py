"""Who may call what: every operation, with arguments that it accepts, for each kind of key."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

import kept
from kept.entrypoints.http.keys import Keys
from kept.entrypoints.http.rights import OF_THE_OWNER, SETTINGS_OF_FILES
from kept.memory import deliver
from kept.memory.verbs import all_verbs
from kept.memory.verbs.declare import AnyVerb
from kept.model import Actor
from kept.settings import fields
from tests.http.conftest import KEY, Server, serving
from tests.http.operations import Operation, furnish, operations

HERE = "/api/v1/projects/here"
SECRET_WORDS = (b"heliotrope", b"attic", b"[id:g1]", b'"g1"')


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a project that has one of everything, another project, and a global memory of its owner."""
    with serving(tmp_path_factory.mktemp("rights")) as server:
        owner = Actor(role="admin", name="user")
        with kept.open(project=server.project, home=server.home, actor=owner) as memory:
            memory.remember("I keep the heliotrope deploy diary in the attic on Fridays.", tier="global", pin=True)
        with server.memory() as memory:
            memory.session("talk", agent="claude")
            listener = deliver.Listener(session="talk", event="UserPromptSubmit")
            assert "attic" in memory.deliveries.for_prompt("the deploy diary of Fridays", listener)
            memory.recall("deploy diary Fridays")
        folder = server.home.parent / "other-app"
        (folder / ".git").mkdir(parents=True)
        with kept.open(project=folder, home=server.home) as memory:
            memory.remember("The canary of the other app sings on Fridays.")
        yield server


def token(server: Server, name: str, role: str, *projects: str) -> str:
    """Make a token; a second one of that name replaces the first."""
    keys = Keys(server.home)
    if name in [one.name for one in keys.tokens()]:
        keys.revoke(name)
    return keys.create(name, role=role, projects=projects)  # type: ignore[arg-type]


def each_operation(server: Server) -> list[Operation]:
    """Return every operation but the stream, with things of the project to work on; those that erase some last."""
    found = [one for one in operations(server, furnish(server)) if one.name != "events"]
    return sorted(found, key=lambda one: one.name.startswith("erase"))


def place(one: Operation) -> str:
    return one.path.replace("{project}", "here")


def test_every_operation_accepts_its_arguments_from_the_owner(filled: Server) -> None:
    """Otherwise the walks through all operations would test nothing but the check of arguments."""
    asked = [(one, filled.ask(one.method, place(one), one.body)) for one in each_operation(filled)]
    assert {one.name: (answer.status, answer.body) for one, answer in asked if answer.status >= 300} == {}
    declared = {verb.name for verb in all_verbs() if isinstance(verb.http, str)}
    assert declared <= {one.name for one, _ in asked}


def test_a_project_token_sees_no_global_memory_and_no_path_through_any_operation(filled: Server) -> None:
    secret = token(filled, "emil", "project", "web-app")
    statuses = {}
    for one in each_operation(filled):
        answer = filled.ask(one.method, place(one), one.body, key=secret)
        statuses[one.name] = answer.status
        for word in (*SECRET_WORDS, str(filled.home.parent).encode(), b"canary of the other"):
            assert word not in answer.body, (one, answer)
    asks_a_person = {"promote", "store.allow"}
    assert {name for name, status in statuses.items() if status == 403} == OF_THE_OWNER | asks_a_person
    assert {name: status for name, status in statuses.items() if status >= 300 and status != 403} == {}


def test_no_operation_on_a_global_memory_works_for_a_project_token(filled: Server) -> None:
    secret = token(filled, "emil", "project", "web-app")
    things = dict.fromkeys((name for name in furnish(filled) if name.startswith(("ref", "forgotten", "rival"))), "g1")
    for one in operations(filled, things):
        if "g1" in one.path or "g1" in str(one.body):
            answer = filled.ask(one.method, place(one), one.body, key=secret)
            assert answer.status in (403, 404), (one, answer)
            assert b"attic" not in answer.body
    assert filled.get("/history?tier=global", key=secret)["events"] == []
    owned = filled.ask("GET", f"{HERE}/memories/g1").json
    assert owned["status"] == "pinned", "nothing was changed"


@pytest.mark.parametrize("role", ["project", "admin"])
def test_a_foreign_project_is_not_found_by_any_operation(filled: Server, role: str) -> None:
    secret = token(filled, f"anna-{role}", role, "web-app")
    for one in operations(filled):
        answer = filled.ask(one.method, one.path.replace("{project}", "other-app"), one.body, key=secret)
        assert answer.status == 404, (one, answer)
        assert b"canary" not in answer.body


def test_the_token_of_a_skill_opens_nothing(filled: Server) -> None:
    secret = token(filled, "helper", "skill", "web-app")
    for one in operations(filled):
        assert filled.ask(one.method, place(one), one.body, key=secret).status == 403, one


def test_an_admin_token_learns_no_path_of_the_server(filled: Server) -> None:
    filled.ask("PUT", f"{HERE}/settings/memory_path", {"value": "./MEMORY.md"})
    secret = token(filled, "berta", "admin", "web-app")
    for one in each_operation(filled):
        if one.name not in OF_THE_OWNER | {"status"}:
            continue
        owned, answer = (filled.ask(one.method, place(one), one.body, key=key) for key in (KEY, secret))
        assert (owned.status, answer.status) == (200, 200), (one, answer)
        assert str(filled.home.parent).encode() not in answer.body, (one, answer)
    paths = [one["path"] for one in filled.get("/files")["files"]]
    assert any(str(filled.project) in path for path in paths), "the owner sees them"


@pytest.mark.parametrize("path", ["do", "judge"])
def test_an_error_of_a_form_tells_a_token_no_path_of_the_server(tmp_path: Path, path: str) -> None:
    with serving(tmp_path) as server:
        secret = token(server, "anna", "project", "web-app")
        html = server.ask("GET", "/p/web-app/health", key=secret).body.decode()
        csrf = html.partition('data-csrf="')[2].partition('"')[0]
        store = next(server.home.glob("projects/*/kept.db"))
        for file in (store, *store.parent.glob("kept.db-*")):
            file.write_bytes(b"damaged" * 1_000)
        fields = {"csrf": csrf, "verb": "pin", "ref": "1", "code": "1", "text": "x"}
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.address}
        sent |= {"Accept": "application/json"}
        answer = server.ask("POST", f"/p/web-app/{path}", urlencode(fields).encode(), key=secret, headers=sent)
        assert answer.json["is_error"]
        assert "kept.db" in answer.json["text"]
        assert str(tmp_path) not in answer.json["text"]


@pytest.mark.parametrize("role", ["project", "admin"])
def test_the_page_examines_the_stores_for_those_who_may_run_the_doctor(filled: Server, role: str) -> None:
    secret = token(filled, f"eva-{role}", role, "web-app")
    asked = filled.ask("POST", f"{HERE}/doctor", {}, key=secret).status
    shown = filled.ask("GET", "/p/web-app/health", key=secret)
    examined = filled.ask("GET", "/p/web-app/health?doctor=1", key=secret)
    assert asked == examined.status == (200 if role == "admin" else 403)
    assert (b"?doctor=1" in shown.body) == (role == "admin")


@pytest.mark.parametrize("role", ["project", "admin"])
@pytest.mark.parametrize("setting", sorted(SETTINGS_OF_FILES))
def test_only_the_owner_changes_a_setting_that_names_files(filled: Server, role: str, setting: str) -> None:
    secret = token(filled, f"carl-{role}", role, "web-app")
    before = filled.ask("POST", f"{HERE}/slash", {"line": "/memory status"}).json
    value = {"vector_model": "/etc", "memory_path": "./other.md", "sessions_path": "elsewhere"}[setting]
    answers = [
        filled.ask("PUT", f"{HERE}/settings/{setting}", {"value": value}, key=secret),
        filled.ask("POST", f"{HERE}/slash", {"line": f"/memory set {setting} {value}"}, key=secret),
    ]
    assert [one.status for one in answers] == [403, 403]
    assert filled.ask("POST", f"{HERE}/slash", {"line": "/memory status"}).json == before
    assert not (filled.project / "other.md").exists()


def test_a_slash_command_is_no_longer_than_a_question(filled: Server) -> None:
    answer = filled.ask("POST", f"{HERE}/slash", {"line": f"/memory search {'deploy ' * 2_000}"})
    assert answer.status == 422
    assert "10,000" in answer.json["detail"]
    assert filled.ask("POST", f"{HERE}/slash", {"line": "/memory search " + "deploy " * 1_400}).status == 200


def test_settings_that_name_files_are_all_known() -> None:
    named = {one.name for one in fields() if one.name.endswith(("_path", "_model", "_folder", "_file", "_url"))}
    assert named == SETTINGS_OF_FILES


def test_a_token_learns_no_path_of_the_model(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        model = tmp_path / "models" / "onyx"
        model.mkdir(parents=True)
        for setting, value in (("vector_model", str(model)), ("search_provider", "hybrid")):
            assert server.ask("PUT", f"{HERE}/settings/{setting}", {"value": value}).status == 200
        paths = [f"{HERE}/recall?query=build", f"{HERE}/recall?query=build&profile=hybrid", "/api/v1/search?q=build"]
        paths.append(f"{HERE}/why")
        for role in ("project", "admin"):
            answers = [server.ask("GET", path, key=token(server, "anna", role, "web-app")) for path in paths]
            assert [one.status for one in answers] == [200, 422, 200, 200]
            assert all(b"in onyx." in one.body for one in answers), answers
            assert not any(str(tmp_path).encode() in one.body for one in answers), answers
        assert str(model).encode() in server.ask("GET", paths[0]).body, "the owner sees it"


# Slash commands reach every verb that has one: each has the limits of its route.


def is_local(verb: AnyVerb) -> bool:
    """Return True for a verb that has a slash command and no route."""
    return isinstance(verb.slash, str) and not isinstance(verb.http, str)


def test_a_slash_command_makes_the_server_read_or_write_no_file(filled: Server) -> None:
    secret = token(filled, "dora", "project", "web-app")
    target = filled.home.parent / "stolen"
    lines = [
        f"/memory backup {target}",
        f"/memory restore-backup {target}",
        f"/memory vectors on --model {target}",
        f"/memory extract {filled.home.parent}",
        *(f"{verb.slash} {target}" for verb in all_verbs() if is_local(verb)),
    ]
    for line in lines:
        for key in (KEY, secret):
            answer = filled.ask("POST", f"{HERE}/slash", {"line": line}, key=key)
            assert answer.status in (403, 422), (line, answer)
    assert not target.exists()
    for line in lines[:4]:
        assert filled.ask("POST", f"{HERE}/slash", {"line": line}, key=secret).status == 403, line


@pytest.mark.parametrize(
    "line",
    [
        "/memory budget 100",
        "/memory config manual",
        "/memory set preset manual",
        "/memory doctor",
        "/memory scan",
        "/memory files status",
        "/memory files sync",
        "/memory vectors off",
        "/memory vectors status",
        "/memory search deploy --all-projects",
    ],
)
def test_a_slash_command_of_a_project_token_has_the_limits_of_its_route(filled: Server, line: str) -> None:
    secret = token(filled, "dora", "project", "web-app")
    answer = filled.ask("POST", f"{HERE}/slash", {"line": line}, key=secret)
    assert answer.status == 403, answer
    assert filled.ask("POST", f"{HERE}/slash", {"line": line}).status == 200, "the owner may"


@pytest.mark.parametrize(
    "line",
    [
        *("/memory why", "/memory why r1", "/memory why r2", "/memory replay", "/memory session given talk"),
        *("/memory list", "/memory search heliotrope diary", "/memory status", "/memory briefing diary"),
        *("/forget heliotrope", "/pin heliotrope", "/memory show g1", "/memory history --tier global"),
        *("/memory conflicts", "/memory review", "/memory export"),
    ],
)
def test_a_slash_command_shows_a_project_token_nothing_of_global_memory(filled: Server, line: str) -> None:
    secret = token(filled, "dora", "project", "web-app")
    answer = filled.ask("POST", f"{HERE}/slash", {"line": line}, key=secret)
    assert answer.status < 500, answer
    for word in (b"attic", b"[id:g1]", b'"g1"', str(filled.home.parent).encode()):
        assert word not in answer.body, answer


def test_all_projects_are_asked_only_by_a_key_that_opens_all(filled: Server) -> None:
    path = f"{HERE}/recall?query=canary&all_projects=true"
    assert b"of the other app" in filled.ask("GET", path).body
    assert b"of the other app" in filled.ask("GET", path, key=token(filled, "erna", "admin")).body
    for role, projects in (("admin", ("web-app",)), ("project", ("web-app",)), ("project", ())):
        answer = filled.ask("GET", path, key=token(filled, "fred", role, *projects))
        assert answer.status == 403, (role, projects, answer)
        assert b"of the other app" not in answer.body
    line = {"line": "/memory search canary --all-projects"}
    secret = token(filled, "gert", "admin", "web-app")
    assert filled.ask("POST", f"{HERE}/slash", line, key=secret).status == 403


@pytest.mark.parametrize("name", ["../../evil", "..", "a/b", "/etc/passwd", "a\x00b"])
def test_no_name_of_a_session_leaves_its_folder(filled: Server, name: str) -> None:
    for path in ("sessions", "sessions/talk/fork"):
        answer = filled.ask("POST", f"{HERE}/{path}", {"id": name})
        assert answer.status == 422, (path, answer)
