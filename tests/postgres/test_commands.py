"""`kept store database` and `kept store move`, as an operator and a team would type them."""

import json
import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from kept.entrypoints.hook.background import work_off
from kept.entrypoints.hook.folder import HookFolder
from kept.storage.postgres import connection, schema
from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.postgres.server import (
    as_member,
    as_owner,
    drop_database,
    emptied,
    new_database,
    shared_database,
    superuser_url,
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, FakeClock())


def test_migrating_lists_the_roles_that_it_shuts_out(shell: Shell) -> None:
    owner = as_owner(new_database())
    with psycopg.connect(owner, autocommit=True) as root:
        root.execute("drop role if exists kept_test_stranger")
        root.execute("create role kept_test_stranger login")
        root.execute("grant usage on schema kept to kept_test_stranger")
    told = shell("store", "database", "migrate", owner)
    assert "can no longer use it: kept_test_stranger" in told
    assert "kept store database grant ROLE --for PROJECT" in told
    assert shell.json("store", "database", "migrate", owner)["shut_out"] == []
    drop_database(owner)
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute("drop role kept_test_stranger")


def test_a_new_database_is_set_up_and_granted(shell: Shell) -> None:
    name = "kept_test_commands"
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    owner = as_owner(as_member(superuser_url(), name))
    empty_status = shell.type("store", "database", "status", owner)
    assert (empty_status.exit_code, "no: there are no tables yet" in empty_status.stdout) == (1, True)
    shared_database()  # which makes the role
    empty = ("--project", "web-app", "--database", as_member(owner, name))
    assert "no tables of Kept" in shell.fails("list", *empty)
    assert shell.json("store", "database", "init", owner)["steps"] == 3
    assert shell.json("store", "database", "migrate", owner)["steps"] == 0
    shell("store", "database", "grant", "kept_test_ann", owner, "--for", "web-app", "--yes")
    ann = as_member(owner, name, "kept_test_ann")
    told = shell("store", "database", "grant", "kept_test_ann", owner)
    assert "number 1874618340111807925" in told  # there are no rows yet that name it
    assert "stays tied" in told
    assert "every project" not in told
    tied = shell.json("store", "database", "grant", "kept_test_ann", owner, "--for", "billing", "--yes")["projects"]
    assert tied == ["number 1874618340111807925", "billing"]
    assert "every project" in shell("store", "database", "grant", "kept_test_bob", owner)
    shell("remember", "Deploys run on Fridays", "--project", "web-app", "--database", ann)
    assert "may not" in shell.fails("remember", "x y z", "--project", "other", "--database", ann)
    told = shell("store", "database", "status", ann)
    assert "walled off" in told
    assert "yes" in told
    found = shell.json("store", "database", "status", owner)
    assert (found["spaces"], found["crossings"]) == (1, [])
    assert "reach their projects only" in shell("store", "database", "status", owner)
    tied = shell.json("store", "database", "grant", "kept_test_ann", owner)["projects"]
    assert tied[-1] == "web-app"
    drop_database(owner)


def test_an_error_of_the_server_says_what_to_do(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = as_owner(shared_database())
    steps = [*schema.migrations(), schema.SchemaStep(9, "create table kept.newer (x int) with (no_such_option)")]
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    told = shell.fails("store", "database", "migrate", owner)
    assert "InvalidParameterValue (22023)" in told
    assert "kept store database status" in told
    monkeypatch.setattr(connection, "OLDEST_SERVER", 990_000)
    assert "Kept needs 99 or newer" in shell.fails("store", "database", "init", owner)
    url = "postgresql://ann@127.0.0.1:1/kept"
    assert "Check that the server runs" in shell.fails("store", "database", "status", url)
    assert ".pgpass" in connection._help_with("fe_sendauth: no password supplied", url)
    assert ".pgpass" in connection._help_with("FATAL:  SASL authentication failed", url)  # as pgbouncer says it


def test_a_project_is_moved_into_the_database_and_back(shell: Shell) -> None:
    url = emptied(shared_database())
    shell("remember", "Deploys run on Fridays", "--project", "web-app")
    shell("remember", "Tests run on every push", "--project", "web-app")
    shell("forget", "2", "--project", "web-app")
    moved = shell.json("store", "move", "--project", "web-app", "--to", url)
    assert (moved["memories"], moved["events"]) == (2, 4)  # a forget has two: it is rejected as well
    there = ("--project", "web-app", "--database", url)
    assert "is by user" in shell.fails("undo", *there)  # in a database, people have names
    shell("undo", "3", *there)
    assert "Tests run" in shell("list", *there)
    assert "was moved to postgresql://" in shell.fails("store", "move", "--project", "web-app", "--to", url)
    back = shell.json("store", "move", *there, "--to", str(shell.folder / "back.db"))
    assert back["events"] == 6
    old = shell.fails("store", "move", "--project", "web-app", "--database", url, "--to", "home")
    assert "was moved to" in old


def test_who_writes_where_a_project_was_is_asked_to_follow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = emptied(shared_database()), new_database()
    clone = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    monkeypatch.chdir(clone)
    ann = Shell(tmp_path, FakeClock())
    ann("projects", "link", "--new", "web-app", "--database", old)
    ann("remember", "Deploys run on Fridays")
    ann("store", "move", "--to", new)
    assert "was moved to postgresql://" in ann.fails("remember", "Tests run on every push")
    ann.answers = [False]
    assert "was moved to postgresql://" in ann.fails("remember", "Tests run on every push")
    ann.answers = [True]
    ann("remember", "Tests run on every push")
    assert "Tests run on every push" in ann("list")
    assert new in ann("projects", "list")
    asked, ann.answers = len(ann.questions), [True]
    assert "was moved to" in ann.fails(
        "remember", "Linters run first", "--database", old
    )  # following again helps nobody
    assert (len(ann.questions), ann.answers) == (asked, [True])
    there = ("--project", "web-app", "--database", old)
    assert "Tests run" not in ann("list", *there)
    drop_database(new)


@pytest.fixture
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Shell, str]:
    """A clone whose project was moved into a database, from another one, and that does not follow it."""
    new = emptied(shared_database())
    clone = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    monkeypatch.chdir(clone)
    ann = Shell(tmp_path, FakeClock())
    for name, value in ann.process_environment().items():
        monkeypatch.setenv(name, value)
    ann("projects", "link", "--new", "web-app")
    ann("remember", "Deploys run on Fridays")
    said = ann("store", "move", "--to", new)
    assert f"kept projects link web-app --database '{new}'" in said
    return ann, new


def test_what_is_read_where_a_project_was_before_a_move_says_so(left_behind: tuple[Shell, str]) -> None:
    ann, _ = left_behind
    for words in (("list",), ("recall", "deploys"), ("status",)):
        result = ann.type(*words)
        assert result.exit_code == 0
        assert "Project web-app was moved to postgresql://" in result.stderr
        assert "This is the old copy" in result.stderr
    assert ann.type("remember", "Tests run on every push").stderr.count("was moved to") == 1
    checked = ann.type("doctor")
    assert checked.exit_code == 1
    assert "was moved to postgresql://" in checked.stdout
    assert "kept projects link" in checked.stdout


def test_an_edit_of_a_file_beside_the_old_copy_adds_no_second_note(left_behind: tuple[Shell, str]) -> None:
    ann, new = left_behind
    ann("projects", "link", "web-app", "--database", new)
    ann("projects", "unlink")  # so the home points at the old copy, and MEMORY.md is there
    [page] = ann.home.glob("projects/*/MEMORY.md")
    page.write_text(page.read_text() + "- A line of mine\n")
    listed = ann.type("list")
    assert listed.stderr.count("Note:") == 1


def test_a_conversation_after_a_move_waits_until_the_clone_is_linked(
    left_behind: tuple[Shell, str], tmp_path: Path
) -> None:
    ann, new = left_behind
    said = {
        "type": "user",
        "uuid": "u-1",
        "sessionId": "m-1",
        "cwd": str(Path.cwd()),
        "timestamp": "2026-11-16T12:00:00Z",
        "message": {"role": "user", "content": "We decided to use Fastify for the public API, Express is too slow."},
    }
    transcript = tmp_path / "m-1.jsonl"
    transcript.write_text(json.dumps(said) + "\n")
    hooks = HookFolder(ann.home)
    hooks.prepare()
    about = {"agent": "claude-code", "event": "SessionEnd", "session": "m-1", "cwd": str(Path.cwd())}
    hooks.add({**about, "transcript": str(transcript)})
    assert work_off(hooks) == 1
    assert "the transcript waits" in hooks.failures()[-1]["failure"]
    ann("projects", "link", "web-app", "--database", new)
    assert work_off(hooks) == 0
    assert "m-1" in ann("session", "list")


def test_a_person_who_moves_a_project_is_asked_whether_the_clone_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = emptied(shared_database())
    subprocess.run(["git", "init", "-q", str(tmp_path / "checkout")], check=True)
    monkeypatch.chdir(tmp_path / "checkout")
    ann = Shell(tmp_path, FakeClock(), answers=[True])
    ann("remember", "Deploys run on Fridays")
    ann("store", "move", "--to", new)
    assert new in ann("projects", "list")
    assert "unlink" in ann.fails("store", "move", "--to", new)


def test_erasing_where_a_project_was_says_that_it_is_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = emptied(shared_database()), new_database()
    clone = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    monkeypatch.chdir(clone)
    ann = Shell(tmp_path, FakeClock())
    ann("projects", "link", "--new", "web-app", "--database", old)
    ann("remember", "The launch code is xylophone")
    ann("store", "move", "--to", new)
    there, here = ("--project", "web-app", "--database", new), ("--project", "web-app", "--database", old)
    assert "was moved to postgresql://" in ann.fails("erase", "1", "--yes")
    assert "xylophone" in ann("list", *here)
    ann.answers = [True, True]  # to follow, and to erase
    ann("erase", "1")
    assert "xylophone" not in ann("list", *there)
    ann.answers = [False]
    ann.type("erase", "1", *here)
    assert ann.questions[-1].startswith("This is the old copy")
    told = ann("erase", "1", "--yes", *here)
    assert "This is the old copy" in told
    assert "not in every file" not in told
    assert "was moved to postgresql://" in told
    assert "xylophone" not in ann("list", *here)
    drop_database(new)


def test_doctor_looks_at_the_database(shell: Shell) -> None:
    url = emptied(shared_database())
    there = ("--project", "web-app", "--database", url)
    shell("remember", "Deploys run on Fridays", *there)
    assert "ok: journal, index" in shell("doctor", *there)
    with psycopg.connect(as_owner(url), autocommit=True) as root:
        root.execute("update kept.events set actor = 'mallory'")
    result = shell.type("doctor", *there)
    assert result.exit_code == 1
    assert "damaged" in result.output or "was changed" in result.output


def test_two_people_share_the_project_of_their_clones_and_not_their_preferences(tmp_path: Path) -> None:
    """Each has a home and a clone of their own; after the link no command has to name the database."""
    url = emptied(shared_database())
    people = {}
    for name in ("ann", "bob"):
        clone = tmp_path / name / "checkout"
        subprocess.run(["git", "init", "-q", str(clone)], check=True)
        people[name] = shell = Shell(tmp_path / name, FakeClock())
        if name == "ann":
            missing = shell.fails("projects", "link", "web-app", str(clone), "--database", url)
            assert "There is no project 'web-app' in this database." in missing
            assert "no projects" in shell("projects", "list")
        new = ("--new",) if name == "ann" else ()
        told = shell("projects", "link", *new, "web-app", str(clone), "--database", url)
        assert "in the database" in told
    ann, bob = people["ann"], people["bob"]
    ann("remember", "Deploys run on Fridays", "--project", str(tmp_path / "ann" / "checkout"))
    ann("remember", "Ann prefers tabs", "--kind", "preference", "--tier", "global", "--yes")
    there = ("--project", str(tmp_path / "bob" / "checkout"))
    assert "Deploys run on Fridays" in bob("recall", "deploys", *there)
    assert bob.json("recall", "ann prefers tabs", *there)["hits"] == []
    done = bob.run("briefing", "when do deploys run", *there)
    assert b"Deploys run on Fridays" in done.stdout
    assert "password" in bob.fails("projects", "link", "x", str(tmp_path), "--database", "postgresql://a:secret1@h/d")
