"""One actor through all doors: every command, tool and route asks `access` in the role that was named.

The walk over each door is complete: a command, tool or operation that is added and not listed here fails a test.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

import kept
from kept import access
from kept.entrypoints.cli.catalog import COMMANDS
from kept.entrypoints.cli.frame import OUTSIDE_THE_HOME
from kept.entrypoints.http.keys import FILE, Keys
from kept.entrypoints.http.rights import OF_THE_OWNER
from kept.model import Actor, Role
from tests.cli.shell import SOURCES, Shell
from tests.http.conftest import free_port
from tests.mcp.raw import talking

ROLES: tuple[Role, ...] = get_args(Role)
CANARY = "The canary sings in the auth module on Tuesdays."
SHARED = "The heron sleeps in every project at noon."

# What each command is called with here. Each reaches something that is stored, so a skill may use none of them.
CALLS: dict[str, list[list[str]]] = {
    "remember": [["Planted by a role"]],
    "recall": [["canary"], ["canary", "--all-projects"]],
    "why": [[]],
    "briefing": [["canary"]],
    "share": [["canary", "--to", "x", "--action", "y"]],
    "list": [[], ["--json"]],
    "find": [["canary"], ["canary", "--json"]],
    "show": [["1"]],
    "history": [[], ["1"]],
    "status": [[]],
    "replay": [[]],
    "failure": [["add", "Planted error", "by a role"], ["list"]],
    "propose": [["Planted by a role"]],
    "clear-global": [["--yes"]],
    "rate": [["1", "+"], ["1", "-"]],
    "edit": [["1", "Planted by a role"], ["1", "--tag", "planted"]],
    "pin": [["1"]],
    "unpin": [["1"]],
    "forget": [["1"]],
    "restore": [["1"]],
    "erase": [["1", "--yes"]],
    "undo": [[]],
    "task": [["list"], ["add", "planted"], ["show", "TASK-001"], ["clear", "TASK-001"]],
    "promote": [["1", "--yes"]],
    "narrative": [["begin", "planted"], ["list"], ["end"]],
    "alias": [["add", "planted", "x"], ["list"]],
    "secrets": [["scan"], ["allow", "planted-value", "--yes"]],
    "guard": [["1", "tell", "--yes"]],
    "pause": [[]],
    "resume": [[]],
    "review": [[], ["conflicts"], ["resolve", "c1", "--keep", "1"]],
    "judge": [[], ["--list"], ["--keep", "1"]],
    "files": [["status"], ["sync"]],
    "team": [["status"], ["share", "1"], ["push"], ["pull"]],
    "extract": [["."]],
    "items": [[]],
    "session": [["list"], ["search", "canary"], ["show", "x"]],
    "slash": [["/remember planted by a role"], ["/memory search canary"]],
    "import": [["claude-code"]],
    "export": [["out.jsonl", "--yes"]],
    "store": [
        ["backup", "backup.db"],
        ["restore", "backup.db", "--yes"],
        ["merge", "out.jsonl"],
        ["move", "--to", "moved.db"],
        ["database", "status", "postgresql://127.0.0.1:1/none"],
        ["database", "grant", "x", "postgresql://127.0.0.1:1/none"],
    ],
    "upkeep": [[]],
    "doctor": [[], ["--fix"]],
    "install": [["claude-code", "--yes"]],
    "uninstall": [["--data", "--yes"]],
    "token": [["create", "planted"], ["create", "planted", "--admin"], ["list"], ["revoke", "planted"]],
    "vectors": [["status"], ["on"], ["off"]],
    "projects": [
        ["list"],
        ["rename", "app", "planted"],
        ["link", "app", "/usr"],
        ["unlink"],
        ["merge", "app", "other"],
    ],
    "config": [["show"], ["set", "profile", "koshi"], ["set", "profile", "koshi", "--project-only"]],
}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    from tests.builders import FakeClock

    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    shell = Shell(tmp_path, FakeClock())
    shell("remember", CANARY)
    shell("remember", SHARED, "--tier", "global", "--as", "admin")
    return shell


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of every file, without the locks and the logs of readers that SQLite keeps beside a store."""
    kept_files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    passing = (".lock", "-shm", "-wal")
    return {str(path): path.read_bytes() for path in kept_files if not path.name.endswith(passing)}


def test_every_command_is_walked() -> None:
    assert set(CALLS) | set(OUTSIDE_THE_HOME) == set(COMMANDS)


@pytest.mark.parametrize("command", CALLS)
def test_a_skill_reaches_nothing_by_any_command(shell: Shell, command: str) -> None:
    before = files(shell.folder)
    for arguments in CALLS[command]:
        for role in (["--as", "skill", command, *arguments], [command, *arguments, "--as", "skill"]):
            done = shell.type(*role)
            assert done.exit_code == 1, (role, done.output)
            assert "A skill may not" in done.output, (role, done.output)
            assert "canary sings" not in done.output
    assert files(shell.folder) == before


def test_the_variable_names_the_role_as_the_option_does(shell: Shell) -> None:
    assert b"A skill may not" in shell.run("list", KEPT_ROLE="skill").stderr
    assert b"canary" in shell.run("list", "--as", "project", KEPT_ROLE="skill").stdout


@pytest.mark.parametrize("role", ROLES)
def test_commands_read_and_write_what_access_says(shell: Shell, role: Role) -> None:
    actor = Actor(role=role, project=shell.json("projects", "list")["projects"][0]["id"])
    own = f"project/{actor.project}"
    actor = Actor(role=role, project=own)
    doors = [
        (["show", "1"], access.may_read(actor, own)),
        (["show", "g1"], access.may_read(actor, "global")),
        (["pin", "1"], access.may_write(actor, own)),
        (["pin", "g1"], access.may_write(actor, "global")),  # nobody is there to be asked
    ]
    assert [shell.type(*arguments, "--as", role).exit_code == 0 for arguments, _ in doors] == [may for _, may in doors]


# MCP

# Enough for a tool to get as far as the memory; a string that is not named here is "1".
ARGUMENTS: dict[str, Any] = {"content": "Planted by a role", "query": "canary", "text": "Planted by a role"}


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    by_type = {"string": "1", "integer": 1, "number": 1, "boolean": True, "array": ["planted"]}
    return {
        name: ARGUMENTS.get(
            name, schema["properties"][name].get("enum", [by_type[schema["properties"][name]["type"]]])[0]
        )
        for name in schema.get("required", ())
    }


@pytest.mark.parametrize("role", ROLES)
def test_every_tool_acts_in_the_role_of_its_server(tmp_path: Path, role: Role) -> None:
    (tmp_path / "project").mkdir()
    with kept.open(project=tmp_path / "project", home=tmp_path / "home") as memory:
        memory.remember(CANARY)
        own = memory.remember("A second one, about tabs.").memory
    assert own is not None
    actor = Actor(role=role, project=own.space)
    before = files(tmp_path / "home")
    with talking(tmp_path, "--as", role) as client:
        for tool, schema in client.tools().items():
            elsewhere = {"session": "another"} if tool == "memory_pause" else {}  # or nothing is told any more
            failed, said = client.call(tool, **_arguments(schema), **elsewhere)
            if not access.may_read(actor, own.space):
                assert failed, (tool, said)
                assert "A skill may not" in said or "canary" not in said, (tool, said)
            assert access.may_read(actor, own.space) or "canary sings" not in said
            assert access.may_read(actor, own.space) == ("A skill may not" not in said), (tool, said)
        for uri in [one["uri"] for one in client.send("resources/list", {})["result"]["resources"]]:
            assert ("result" in client.send("resources/read", {"uri": uri})) == access.may_read(actor, own.space), uri
        for prompt in [one["name"] for one in client.send("prompts/list", {})["result"]["prompts"]]:
            answer = json.dumps(client.send("prompts/get", {"name": prompt, "arguments": {"text": "canary"}}))
            assert access.may_read(actor, own.space) or "canary sings" not in answer
    assert access.may_write(actor, own.space) == (files(tmp_path / "home") != before)


# HTTP


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    """The address and the key of `kept OPTIONS serve` in the project `project`."""
    port = free_port()
    command = [sys.executable, "-m", "kept", *options, "serve", "--port", str(port), "--no-open", "--no-demo"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("KEPT_")}
    environment = own | {"KEPT_HOME": str(folder / "home"), "PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=folder / "project", env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = b"".join(process.stdout.readline() for _ in range(3))
        key = re.search(r"with this key:\n(\S+)\n", said.decode())
        assert key is not None
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 60
        while asked("GET", f"{address}/api/v1/openapi.json", key[1])[0] != 200:
            assert time.monotonic() < until
            time.sleep(0.05)
        yield address, key[1]
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


def asked(method: str, address: str, key: str, body: Any = None) -> tuple[int, str]:
    """The status and the text of an answer; 0 while nobody listens."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers, method=method), timeout=60) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


BODY = {
    "content": "Planted by a role", "to": "project", "keep": "1", "decisions": ["forget:1"], "description": "planted",
    "state": "active",
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("by_token", [False, True], ids=["key", "token"])
def test_every_route_acts_in_the_role_of_its_key(tmp_path: Path, role: Role, by_token: bool) -> None:
    (tmp_path / "project/.git").mkdir(parents=True)
    with kept.open(project=tmp_path / "project", home=tmp_path / "home") as memory:
        own = memory.remember(CANARY).memory
    assert own is not None
    token = Keys(tmp_path / "home").create("anna", role=role, projects=[])
    actor = Actor(role=role, project=own.space)
    before = files(tmp_path / "home/projects")
    with served(tmp_path, *([] if by_token else ["--as", role])) as (address, key):
        key = token if by_token else key
        spec = json.loads(asked("GET", f"{address}/api/v1/openapi.json", key)[1])
        for path, operations in spec["paths"].items():
            if "{project}" not in path or (path.endswith("/events") and access.may_read(actor, own.space)):
                continue  # a stream of events has no end
            for method, operation in operations.items():
                if access.may_read(actor, own.space) and method != "get":
                    continue  # that it may is shown by other tests; here it would erase what is looked for
                needed = [
                    one["name"]
                    for one in operation.get("parameters", ())
                    if one["in"] == "query" and one.get("required")
                ]
                where = re.sub(r"\{[^}]+\}", "1", path.replace("{project}", "here"))
                where += "?" + "&".join(f"{name}=canary" for name in needed)
                body = None if "requestBody" not in operation else _only(spec, operation, BODY)
                status, said = asked(method.upper(), address + where, key, body)
                if operation["operationId"] in OF_THE_OWNER and by_token and role == "project":
                    assert (status, "Only an admin" in said) == (403, True), (method, path, said)
                elif access.may_read(actor, own.space):
                    assert status != 403, (method, path, said)
                else:
                    assert (status, "A skill may not" in said) == (403, True), (method, path, said)
                    assert "canary sings" not in said
        status, said = asked("GET", f"{address}/api/v1/projects/here/memories/1", key)
        assert (status == 200) == access.may_read(actor, own.space), said
        status, said = asked("GET", f"{address}/api/v1/search?q=canary", key)
        assert ("canary sings" in said) == access.may_read(actor, own.space)
        for view in ("saw", "memories?q=canary", "inbox", "timeline", "sessions", "knowledge", "health"):
            status, said = asked("GET", f"{address}/p/project/{view}", key)
            assert (status == 200) == access.may_read(actor, own.space), (view, said)
        if access.may_write(actor, own.space):
            assert asked("POST", f"{address}/api/v1/projects/here/memories", key, {"content": "Tabs."})[0] == 201
    assert access.may_write(actor, own.space) == (files(tmp_path / "home/projects") != before)


def _only(spec: dict[str, Any], operation: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    name = operation["requestBody"]["content"]["application/json"]["schema"].get("$ref", "").rpartition("/")[2]
    known = spec["components"]["schemas"].get(name, {}).get("properties", {})
    return {field: value for field, value in values.items() if field in known}


def test_a_token_of_a_skill_is_not_made(shell: Shell) -> None:
    assert "A skill may not" in shell.fails("token", "create", "bob", "--as", "skill")
    assert not (shell.home / FILE).exists()


# Hooks and the library


def test_a_hook_in_the_role_of_a_skill_says_nothing(shell: Shell) -> None:
    given = {
        "session_id": "s1",
        "cwd": str(shell.folder / "app"),
        "prompt": "what about the canary in the auth module?",
    }
    program = (
        "import sys; sys.argv[1:] = ['claude-code', 'UserPromptSubmit']; from kept.entrypoints.hook import main; main()"
    )
    said = {}
    for role in ROLES:
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(given | {"session_id": role}).encode(),
            capture_output=True,
            env=shell.process_environment(KEPT_ROLE=role, KEPT_HOOK_LIMIT_MS="20000"),
            check=True,
            timeout=60,
        )
        said[role] = b"canary" in done.stdout
    assert said == {role: role != "skill" for role in ROLES}
