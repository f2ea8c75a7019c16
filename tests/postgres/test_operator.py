"""The operator's commands: who is let in, who is not, and how an alarm can tell."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

import kept
from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.postgres.server import as_member, as_owner, drop_database, is_cluster, make_database, superuser_url

OWNER, EVE = "kept_test_operator", "kept_test_eve"


@pytest.fixture
def owner() -> Iterator[str]:
    """The URL of a new database as its owner, who is no superuser and may make roles."""
    if is_cluster(superuser_url()):
        pytest.skip("An owner without BYPASSRLS cannot shard a database.")
    name = "kept_test_operated"
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute(sql.SQL("create role {} login createrole").format(sql.Identifier(OWNER)))
    make_database(superuser_url(), name)
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        change = sql.SQL("alter database {} owner to {}")
        root.execute(change.format(sql.Identifier(name), sql.Identifier(OWNER)))
        number = root.execute("select oid from pg_database where datname = %s", (name,)).fetchone()
    url = as_member(superuser_url(), name, OWNER)
    Shell(Path("/nowhere"), FakeClock())("store", "database", "init", url)
    yield url
    drop_database(url)
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        for role in (EVE, f"kept_members_{number[0]}", f"kept_tied_{number[0]}", OWNER):  # type: ignore[index]
            root.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(role)))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, FakeClock())


def as_eve(owner: str) -> str:
    return as_member(superuser_url(), urlsplit(owner).path[1:], EVE)


def remember(owner: str, project: str, folder: Path) -> None:
    with kept.open(owner, project=project, home=folder / "of the owner") as memory:
        memory.remember(f"A memory of {project}")


def test_status_tells_the_wall_from_the_rights_of_the_role_that_looks(shell: Shell, owner: str) -> None:
    for url in (owner, as_owner(owner)):
        found = shell.json("store", "database", "status", url)
        assert found["is_walled"] is True
        assert found["sees_all"] is (url != owner)
    with psycopg.connect(as_owner(owner), autocommit=True) as root:
        root.execute("alter table kept.memories disable row level security")
    for url in (owner, as_owner(owner)):
        result = shell.type("store", "database", "status", url)
        assert result.exit_code == 1
        assert "no: the tables need `kept store database migrate`" in result.stdout


def test_a_grant_for_a_misspelt_project_is_asked_about(shell: Shell, owner: str, tmp_path: Path) -> None:
    remember(owner, "shop", tmp_path)
    grant = ("store", "database", "grant", EVE, owner)
    shell(*grant, "--for", "shop")
    refused = shell.fails(*grant, "--for", "shpo")
    assert "There is no project 'shpo' in this database yet. Did you mean shop?" in refused
    assert "Did you mean shop?" in shell.fails(*grant, "--for", "Shop")
    assert shell.json(*grant)["projects"] == ["shop"]


@pytest.mark.parametrize("name", ["", " ", "pg_read_all_data", "pg_foo"])
def test_a_name_that_no_role_of_a_person_has_is_refused(shell: Shell, owner: str, name: str) -> None:
    assert "cannot be the name of a role" in shell.fails("store", "database", "grant", name, owner)


def test_a_role_is_untied_and_let_out_without_a_superuser(shell: Shell, owner: str, tmp_path: Path) -> None:
    for project in ("shop", "billing"):
        remember(owner, project, tmp_path)
    shell("store", "database", "grant", EVE, owner, "--for", "shop", "--for", "billing")
    revoke = ("store", "database", "revoke", EVE, owner)
    assert shell.json(*revoke, "--for", "billing")["projects"] == ["shop"]
    with kept.open(as_eve(owner), project="shop", home=tmp_path / "eve") as memory:
        assert len(memory.list()) == 1
    with pytest.raises(kept.NotAllowed), kept.open(as_eve(owner), project="billing", home=tmp_path / "eve") as memory:
        memory.remember("A memory of billing")
    assert "may no longer use Kept" in shell(*revoke)
    with pytest.raises(kept.NotAllowed, match="may not use"):
        kept.open(as_eve(owner), project="shop", home=tmp_path / "eve").list()
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(EVE)))
    assert "There is no role" in shell.fails(*revoke)


def test_a_role_that_reaches_every_project_loses_all_or_nothing(shell: Shell, owner: str, tmp_path: Path) -> None:
    remember(owner, "shop", tmp_path)
    shell("store", "database", "grant", EVE, owner)
    assert "is not tied to projects" in shell.fails("store", "database", "revoke", EVE, owner, "--for", "shop")
    with kept.open(as_eve(owner), project="shop", home=tmp_path / "eve") as memory:
        assert len(memory.list()) == 1
    shell("store", "database", "revoke", EVE, owner)
    with pytest.raises(kept.NotAllowed, match="may not use"):
        kept.open(as_eve(owner), project="shop", home=tmp_path / "eve").list()


def test_a_role_whose_membership_was_revoked_is_not_told_that_the_project_is_empty(
    shell: Shell, owner: str, tmp_path: Path
) -> None:
    remember(owner, "shop", tmp_path)
    shell("store", "database", "grant", EVE, owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        revoke = sql.SQL("revoke {} from {}")
        found = connection.execute("select 'kept_members_' || oid from pg_database where datname = current_database()")
        [(members,)] = found.fetchall()
        connection.execute(revoke.format(sql.Identifier(members), sql.Identifier(EVE)))
    refused = shell.fails("list", "--project", "shop", "--database", as_eve(owner))
    assert f"The role {EVE} may not use" in refused


@pytest.mark.parametrize(
    "words",
    [
        ("store", "database", "status", "URL"),
        ("store", "database", "grant", EVE, "URL"),
        ("store", "move", "--to", "URL"),
        ("list", "--project", "shop", "--database", "URL"),
        ("projects", "link", "shop", "--database", "URL"),
    ],
)
def test_no_command_takes_a_url_with_a_password(shell: Shell, words: tuple[str, ...]) -> None:
    """The list of processes and the history of the shell would have it."""
    for url in ("postgresql://ann:hunter2hunter2@db/kept", "postgresql://ann@db/kept?password=hunter2hunter2"):
        said = shell.fails(*(url if word == "URL" else word for word in words))
        assert "pgpass" in said
        assert "hunter2" not in said
