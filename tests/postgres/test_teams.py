"""D2, D4: two people's agents share a project through one database, and neither sees the other's preferences."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

import kept
from kept.entrypoints.hook.folder import HookFolder
from kept.errors import InvalidInput, StorageError
from kept.memory import erase, manage
from kept.memory.told import LastTold, drop_last_told, note_pause
from kept.storage.postgres import schema
from tests.postgres.distance import PASSWORD, FarServer
from tests.postgres.server import as_member, as_owner, drop_database, is_cluster, new_database, superuser_url

ROOT = Path(__file__).parents[2]
GENEROUS = "20000"  # ms: the machine that runs the tests is busy with other ones
PROGRAMS = {
    "kept": "from kept.entrypoints.cli import main; main()",
    "kept-hook": "from kept.entrypoints.hook import main; main()",
}
# A block of commands, whose it is, and the block of words that must be in its output, if one follows.
PAGE_BLOCK = re.compile(r"^```(sh|sql) (\w+)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
PLACE = "@db.example.com/kept"


class Person:
    """Somebody with a machine of their own: a home, a clone, and a role in the database."""

    def __init__(self, name: str, folder: Path, database: str) -> None:
        self.name, self.folder = name, folder / name
        self.clone, self.home = self.folder / "web-app", self.folder / "kept"
        self.url = as_member(superuser_url(), database, name)
        self.transcript = self.folder / "session.jsonl"
        self.clone.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.clone)], check=True)
        programs = self.folder / "bin"
        programs.mkdir()
        for program, code in PROGRAMS.items():
            (programs / program).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
            (programs / program).chmod(0o755)
        self.environ = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(self.folder),
            "KEPT_HOME": str(self.home),
            "KEPT_HOOK_LIMIT_MS": GENEROUS,
            "USER": name,
            "LANG": "C.UTF-8",
        }

    def run(self, *words: str, given: str = "", code: int = 0) -> str:
        done = subprocess.run(
            words,
            input=given,
            env=self.environ,
            cwd=self.clone,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def link(self) -> str:
        return self.run("kept", "projects", "link", "--new", "web-app", "--database", self.url)

    def fire(self, event: str, session: str, **more: str) -> str:
        """What an agent is told at an event, by the program that its hooks start."""
        given = {"session_id": session, "cwd": str(self.clone), "hook_event_name": event, **more}
        given["transcript_path"] = str(self.transcript)
        return self.run("kept-hook", "claude-code", event, given=json.dumps(given))

    def say(self, session: str, *texts: str) -> None:
        """Words of this person in the transcript of their agent."""
        with self.transcript.open("a") as file:
            for number, text in enumerate(texts):
                record = {
                    "type": "user",
                    "uuid": f"{session}-{number}",
                    "sessionId": session,
                    "cwd": str(self.clone),
                    "timestamp": f"2026-11-16T12:00:{number:02d}Z",
                    "message": {"role": "user", "content": text},
                }
                file.write(json.dumps(record) + "\n")

    def take_in(self) -> None:
        """Wait for what the detached process does."""
        self.run(sys.executable, "-m", "kept.entrypoints.hook.background", "{}")

    def wait_for(self, words: str) -> None:
        """Wait until the processes that the hooks started have taken these words in."""
        for _ in range(20):
            self.take_in()
            if words in self.run("kept", "list"):
                return
            time.sleep(0.2)
        raise AssertionError(HookFolder(self.home).failures())


@pytest.fixture
def database() -> Iterator[str]:
    url = new_database()
    with psycopg.connect(superuser_url(), autocommit=True) as connection:
        for role in ("ann", "bob"):
            found = connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone()
            if not found:
                connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
    for role in ("ann", "bob"):
        schema.grant(as_owner(url), role)
    yield urlsplit(url).path[1:]
    drop_database(url)


@pytest.fixture
def ann(database: str, tmp_path: Path) -> Person:
    return Person("ann", tmp_path, database)


@pytest.fixture
def bob(database: str, tmp_path: Path) -> Person:
    return Person("bob", tmp_path, database)


def test_what_one_session_decided_is_in_the_briefing_of_a_teammate(ann: Person, bob: Person) -> None:
    for person in (ann, bob):
        assert person.url.split("?")[0] in person.link()
    ann.run("kept", "remember", "Ann prefers answers in Danish", "--kind", "preference", "--tier", "global", "--yes")
    bob.run("kept", "remember", "Bob prefers long answers", "--kind", "preference", "--tier", "global", "--yes")

    own = ann.fire("SessionStart", "a-1", source="startup")
    ann.say("a-1", "We decided to use Fastify for the public API because Express is too slow for us.")
    ann.fire("SessionEnd", "a-1", reason="other")
    ann.wait_for("Fastify")

    told = bob.fire("SessionStart", "b-1", source="startup")
    asked = bob.fire("UserPromptSubmit", "b-1", prompt="which framework do we use for the public API?")
    assert "Fastify" in told
    assert asked == "", "a context is told a line once"
    assert "Danish" in own
    assert "Bob prefers long answers" in told
    assert "Danish" not in told + asked
    assert "Danish" in ann.fire("SessionStart", "a-2", source="startup")
    assert "long answers" not in ann.fire("SessionStart", "a-3", source="startup")

    with kept.open(project=bob.clone, home=bob.home) as memory:
        [found] = [one for one in memory.list() if "Fastify" in one.content and one.kind == "decision"]
        assert found.trust == "user"
        assert memory.history(found.ref)[0].actor == "ann (claude-code)"


def test_the_tools_of_an_agent_in_the_clone_use_the_project_of_the_team(ann: Person, bob: Person) -> None:
    for person in (ann, bob):
        person.link()
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex", "version": "1"}}
    store = {"name": "memory_store", "arguments": {"content": "Backups run at four in the morning"}}
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized", "params": {}},
        {"id": 2, "method": "tools/call", "params": store},
    ]
    with subprocess.Popen(
        ["kept", "mcp"], cwd=ann.clone, env=ann.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
            if "id" in message:
                answer = json.loads(process.stdout.readline())
        process.stdin.close()
    assert answer["result"]["content"][0]["text"].startswith("Kept: [id:1]")
    assert "four in the morning" in bob.run("kept", "list")
    assert "ann (codex) remember" in bob.run("kept", "history", "1")


def test_nothing_of_anybodys_global_memory_gets_into_the_database(ann: Person, database: str) -> None:
    ann.link()
    ann.run("kept", "remember", "The web app is called Heron", "--kind", "decision")
    ann.run("kept", "remember", "Ann prefers answers in Danish", "--kind", "preference", "--tier", "global", "--yes")
    assert "Danish" in ann.fire("SessionStart", "a-1", source="startup")
    assert "not kept: global memory was among them" in ann.run("kept", "why", "--session", "a-1")
    with psycopg.connect(as_owner(ann.url)) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'kept'").fetchall()
        rows = [
            row
            for (table,) in tables
            for (row,) in connection.execute(sql.SQL("select t::text from {} t").format(sql.Identifier("kept", table)))
        ]
    assert [row for row in rows if "Heron" in row]
    assert not [row for row in rows if "Danish" in row or b"Danish".hex() in row]


def test_a_change_carries_the_name_of_its_person_and_undo_takes_back_ones_own(ann: Person, bob: Person) -> None:
    for person in (ann, bob):
        person.link()
    ann.run("kept", "remember", "Deploys run on Fridays")
    bob.run("kept", "config", "set", "user_name", "Bob Ray")
    bob.run("kept", "remember", "Releases are tagged by hand")
    assert "by Bob Ray" in ann.run("kept", "show", "2")
    assert "by ann" in bob.run("kept", "show", "1")
    ann.run("kept", "undo")
    left = bob.run("kept", "list")
    assert "tagged by hand" in left
    assert "Fridays" not in left


def test_the_files_of_two_homes_are_not_taken_for_each_others(ann: Person, bob: Person) -> None:
    """A line that only one of two MEMORY.md shows was not deleted by the owner of the other."""
    bob.run("kept", "remember", "A note that Bob had at home before")
    for person in (ann, bob):
        person.link()
    ann.run("kept", "remember", "Deploys run on Fridays")
    bob.run("kept", "remember", "Releases are tagged by hand")
    ann.run("kept", "remember", "Tests run on every push")
    bob.run("kept", "files", "sync")
    listed = ann.run("kept", "list")
    assert all(words in listed for words in ("Fridays", "tagged by hand", "every push"))
    assert "at home before" not in listed
    [page] = bob.home.glob("projects/*/team-*/MEMORY.md")
    assert "Fridays" in page.read_text()
    bob.run("kept", "projects", "unlink")
    assert "at home before" in bob.run("kept", "list")
    assert "Fridays" not in bob.run("kept", "list")


def test_a_url_with_a_password_is_refused_and_not_repeated(ann: Person) -> None:
    for url in (ann.url.replace("ann@", "ann:hunter2hunter2@"), f"{ann.url}&password=hunter2hunter2"):
        said = ann.run("kept", "projects", "link", "web-app", "--database", url, code=1)
        assert "pgpass" in said
        assert "hunter2" not in said
        assert not list(ann.home.rglob("*.json"))


def test_the_registry_and_its_listing_name_the_database(ann: Person) -> None:
    ann.link()
    assert ann.url in ann.run("kept", "projects", "list")
    assert "you are ann" in ann.run("kept", "status")
    assert (ann.home / "projects.json").stat().st_mode & 0o777 == 0o600


def test_a_second_clone_joins_the_same_project(ann: Person) -> None:
    ann.link()
    ann.run("kept", "remember", "Deploys run on Fridays")
    ann.clone = ann.folder / "again"
    ann.clone.mkdir()
    ann.link()
    assert "Fridays" in ann.run("kept", "list")
    assert len(ann.run("kept", "projects", "list").splitlines()) == 1


def test_while_the_database_cannot_be_reached_hooks_are_silent_and_lose_nothing(ann: Person, tmp_path: Path) -> None:
    ann.link()
    registry = ann.home / "projects.json"
    ann.say("a-1", "We decided to use Fastify for the public API because Express is too slow for us.")
    here = registry.read_text()
    registry.write_text(here.replace(json.dumps(ann.url)[1:-1], f"postgresql://ann@/gone?host={tmp_path}"))
    assert ann.fire("SessionStart", "a-1", source="startup") == ""
    assert ann.fire("UserPromptSubmit", "a-1", prompt="which framework do we use?") == ""
    assert ann.fire("SessionEnd", "a-1", reason="other") == ""
    for _ in range(100):
        if HookFolder(ann.home).pointers():
            break
        time.sleep(0.1)
    ann.take_in()
    assert HookFolder(ann.home).pointers()
    said = ann.run("kept", "list", code=1)
    assert "cannot be reached" in said
    assert len(said.splitlines()) == 1
    with pytest.raises(StorageError), kept.open(project=ann.clone, home=ann.home) as memory:
        memory.list()
    registry.write_text(here)
    ann.wait_for("Fastify")


def last_briefings(person: Person) -> list[Path]:
    return [*(person.home / "hook" / "last").glob("*")]


@contextmanager
def unreachable(person: Person) -> Iterator[None]:
    """Let the server refuse every connection to the database, and the hooks wait for it as long as they do."""
    if is_cluster(superuser_url()):
        pytest.skip("Citus cannot close a database to connections.")
    allow = sql.SQL("alter database {} allow_connections {}")
    name = sql.Identifier(urlsplit(person.url).path[1:])
    person.environ["KEPT_HOOK_LIMIT_MS"] = "2500"
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute(allow.format(name, sql.Literal(False)))
        try:
            yield
        finally:
            root.execute(allow.format(name, sql.Literal(True)))
            person.environ["KEPT_HOOK_LIMIT_MS"] = GENEROUS


@pytest.fixture
def told(ann: Person) -> Person:
    """Ann, whose agent was told a memory of the team."""
    ann.link()
    ann.run("kept", "remember", "We use Fastify for the public API", "--kind", "decision")
    assert "Fastify" in ann.fire("UserPromptSubmit", "a-1", prompt="which framework does the public API use?")
    [file] = last_briefings(ann)
    assert file.stat().st_mode & 0o777 == 0o600
    return ann


def test_without_its_server_a_hook_tells_the_last_briefing_once_with_its_date_and_status_says_so(told: Person) -> None:
    with unreachable(told):
        said = told.fire("SessionStart", "a-2", source="startup")
        assert "Fastify" in said
        assert f"This is the last briefing of this project, of {datetime.now(UTC):%Y-%m-%d}" in said
        assert told.fire("UserPromptSubmit", "a-2", prompt="which framework?") == ""
    told.take_in()
    assert "so an agent was told the last briefing, of 20" in told.run("kept", "status")


def test_the_last_briefing_is_not_told_as_another_role(told: Person, bob: Person) -> None:
    registry = told.home / "projects.json"
    with unreachable(told):
        registry.write_text(registry.read_text().replace("//ann@", "//bob@"))
        assert told.fire("SessionStart", "a-2", source="startup") == ""
        registry.write_text(registry.read_text().replace("//bob@", "//ann@"))
        told.environ["KEPT_ROLE"] = "skill"
        assert told.fire("SessionStart", "a-2", source="startup") == ""


@pytest.mark.parametrize("words", [("pause",), ("erase", "1", "--yes")])
def test_a_pause_and_an_erasure_remove_the_last_briefing(told: Person, words: tuple[str, ...]) -> None:
    told.run("kept", *words)
    assert last_briefings(told) == []


@contextmanager
def as_superuser(change: str, back: str) -> Iterator[None]:
    """Make a change for the time of the block."""
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute(change)
        try:
            yield
        finally:
            root.execute(back)


def test_a_role_that_may_no_longer_log_in_is_not_told_the_last_briefing(told: Person) -> None:
    database = urlsplit(told.url).path[1:]
    changes = [
        ("alter role ann nologin", "alter role ann login"),
        (f"revoke connect on database {database} from public", f"grant connect on database {database} to public"),
    ]
    for number, (change, back) in enumerate(changes):
        assert "Fastify" in told.fire(
            "UserPromptSubmit", f"a-2{number}", prompt="which framework does the public API use?"
        )
        with as_superuser(change, back):
            assert told.fire("SessionStart", f"a-3{number}", source="startup") == ""
            assert last_briefings(told) == []
            assert "refuses this role" in told.run("kept", "list", code=1)


def test_forgetting_a_memory_and_leaving_the_team_remove_the_last_briefing(told: Person) -> None:
    told.run("kept", "forget", "1")
    assert last_briefings(told) == []
    (told.home / "hook" / "last" / "one").write_text("of another agent")
    told.run("kept", "projects", "unlink")
    assert last_briefings(told) == []


def test_the_last_briefing_is_not_told_to_a_paused_session_nor_where_it_is_switched_off(told: Person) -> None:
    told.run("kept", "pause", "--session", "a-7")
    assert "Fastify" in told.fire("UserPromptSubmit", "a-8", prompt="which framework does the public API use?")
    with unreachable(told):
        assert told.fire("SessionStart", "a-7", source="startup") == ""
        assert last_briefings(told)
        told.environ["KEPT_AUTO_BRIEFING"] = "false"
        assert told.fire("SessionStart", "a-9", source="startup") == ""


def test_a_pause_of_a_session_ends_for_the_last_briefing_as_well(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    last = LastTold(tmp_path, "web-app", lambda: now)
    last.note("Use Fastify", "a-1")
    for is_paused in (True, False):
        note_pause(tmp_path, "a-7", is_paused=is_paused)
        assert (last.text_for("a-7") is None) is is_paused


def slowly(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, told: Person) -> None:
    """Have a hook answer while the function is about to commit."""
    keep = getattr(module, name)

    def late(*given: Any) -> Any:
        if not last_briefings(told):
            told.fire("UserPromptSubmit", f"a-{name}", prompt="which framework does the public API use?")
            assert last_briefings(told)
        return keep(*given)

    monkeypatch.setattr(module, name, late)


def test_a_hook_that_answers_during_a_pause_or_an_erasure_leaves_no_last_briefing(
    told: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch, erase, "_carry_out", told)
    slowly(monkeypatch, manage, "_pause", told)
    with kept.open(project=told.clone, home=told.home) as memory:
        for change in (memory.pauses.pause, partial(memory.erase, "1")):
            change()
            assert last_briefings(told) == []
            monkeypatch.undo()
            slowly(monkeypatch, erase, "_carry_out", told)
            memory.pauses.resume()


def test_a_text_that_was_asked_for_before_all_were_removed_is_not_noted(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    first = LastTold(tmp_path, "web-app", lambda: now)
    first.note("Use Fastify", "a-1")
    late = LastTold(tmp_path, "web-app", lambda: now)
    drop_last_told(tmp_path)
    late.note("Use Fastify", "a-1")
    assert late.text_for("a-2") is None
    assert [*(tmp_path / "hook" / "last").iterdir()] == []


def test_a_role_that_may_no_longer_read_the_project_loses_its_last_briefing(told: Person) -> None:
    with psycopg.connect(as_owner(told.url), autocommit=True) as owner:
        owner.execute("insert into kept.ties (role, space) values ('ann', 1)")
    assert told.fire("SessionStart", "a-2", source="startup") == ""
    assert last_briefings(told) == []


def test_only_a_database_that_answers_is_joined(ann: Person, tmp_path: Path) -> None:
    url = f"postgresql://ann@/gone?host={tmp_path}"
    assert "cannot be reached" in ann.run("kept", "projects", "link", "web-app", "--database", url, code=1)
    assert "no projects" in ann.run("kept", "projects", "list")


def test_leaving_a_team_that_one_is_not_in_is_an_error(tmp_path: Path) -> None:
    projects = kept.memory.opening.open_projects(tmp_path / "home")
    projects.add("web-app")
    with pytest.raises(InvalidInput, match="no team's database"):
        projects.leave("web-app")


@pytest.mark.parametrize(
    "is_installed", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["of the wheel", "of this machine"]
)
def test_the_page_for_teams_runs_from_an_empty_server_with_passwords(tmp_path: Path, is_installed: bool) -> None:
    server = FarServer(has_tls=False, is_installed=is_installed, is_empty=True)
    people = {name: Person(name, tmp_path, "kept") for name in ("operator", "ann", "bob")}
    urls = {name: server.url(name, has_password=False) for name in ("owner", "ann", "bob")}
    for person in people.values():
        known = "owner" if person.name == "operator" else person.name
        secret = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        file = person.folder / ".pgpass"
        file.write_text(f"127.0.0.1:{server.distance.port}:kept:{known}:{secret}\n")
        file.chmod(0o600)
    blocks = PAGE_BLOCK.findall((ROOT / "docs" / "teams.md").read_text())
    assert [language for language, *_ in blocks].count("sql") == 2
    assert len(blocks) == 9
    for language, name, commands, expected in blocks:
        if language == "sql":
            as_whom = server.server.url if name == "superuser" else server.url(name)
            commands = re.sub(
                r"^\\password (\w+)$", r"alter role \1 password 'PASSWORD';", commands, flags=re.MULTILINE
            )
            with psycopg.connect(as_whom, autocommit=True) as connection:
                for statement in commands.replace("'PASSWORD'", sql.Literal(PASSWORD).as_string()).split(";"):
                    connection.execute(statement)
            continue
        for role, url in urls.items():
            commands = commands.replace(f"postgresql://{role}{PLACE}", shlex.quote(url))
        said = people[name].run("bash", "-ec", commands)
        for words in expected.splitlines():
            assert words in said, f"{commands}\n{said}"
    assert "Danish" not in people["bob"].fire("SessionStart", "b-2", source="startup")
    server.stop()
