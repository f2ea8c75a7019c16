"""D2, D4: two people's agents share a project through one database, and neither sees the other's preferences."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

import kept
from kept.entrypoints.hook.folder import HookFolder
from kept.errors import InvalidInput, StorageError
from kept.storage.postgres import schema
from tests.postgres.server import as_member, as_owner, drop_database, new_database, superuser_url

ROOT = Path(__file__).parents[2]
GENEROUS = "20000"  # ms: the machine that runs the tests is busy with other ones
PROGRAMS = {
    "kept": "from kept.entrypoints.cli import main; main()",
    "kept-hook": "from kept.entrypoints.hook import main; main()",
}
# A block of commands, whose it is, and the block of words that must be in its output, if one follows.
BLOCK = re.compile(r"^```sh (\w+)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
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
        return self.run("kept", "projects", "link", "web-app", "--database", self.url)

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
    assert "Fastify" in asked
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


def test_only_a_database_that_answers_is_joined(ann: Person, tmp_path: Path) -> None:
    url = f"postgresql://ann@/gone?host={tmp_path}"
    assert "cannot be reached" in ann.run("kept", "projects", "link", "web-app", "--database", url, code=1)
    assert "no projects" in ann.run("kept", "projects", "list")


def test_leaving_a_team_that_one_is_not_in_is_an_error(tmp_path: Path) -> None:
    projects = kept.memory.opening.open_projects(tmp_path / "home")
    projects.add("web-app")
    with pytest.raises(InvalidInput, match="no team's database"):
        projects.leave("web-app")


def test_the_page_for_teams_runs(ann: Person, bob: Person, database: str, tmp_path: Path) -> None:
    people = {person.name: person for person in (ann, bob, Person("operator", tmp_path, database))}
    urls = {person.name: person.url for person in people.values()} | {"owner": as_owner(ann.url)}
    blocks = BLOCK.findall((ROOT / "docs" / "teams.md").read_text())
    assert len(blocks) == 7
    for name, commands, expected in blocks:
        for role, url in urls.items():
            commands = commands.replace(f"postgresql://{role}{PLACE}", shlex.quote(url))
        said = people[name].run("bash", "-ec", commands)
        for words in expected.splitlines():
            assert words in said, f"{commands}\n{said}"
    assert "Danish" not in people["bob"].fire("SessionStart", "b-2", source="startup")
