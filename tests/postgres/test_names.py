"""Names of projects in a database are exact: nothing is begun, taken or joined by a slip of the keyboard."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.builders import FakeClock
from tests.cli.shell import Shell
from tests.postgres.server import as_owner, drop_database, new_database


@pytest.fixture
def database() -> Iterator[str]:
    url = new_database()
    yield url
    drop_database(url)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, FakeClock())


@pytest.fixture
def cd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that goes into a repository, and makes it first if need be."""

    def go(name: str) -> None:
        folder = tmp_path / name
        if not folder.exists():
            subprocess.run(["git", "init", "-q", str(folder)], check=True)
        monkeypatch.chdir(folder)

    return go


def names(database: str) -> list[str]:
    with psycopg.connect(as_owner(database)) as root:
        return sorted(name for (name,) in root.execute("select name from kept.heads").fetchall())


def test_a_link_that_is_refused_begins_no_project(shell: Shell, cd: Callable[[str], None], database: str) -> None:
    cd("api")
    shell("remember", "Deploys run on Fridays")
    cd("other")
    assert "already exists" in shell.fails("projects", "link", "--new", "API", "--database", database)
    assert names(database) == []


def test_a_name_in_another_case_is_no_project(shell: Shell, cd: Callable[[str], None], database: str) -> None:
    cd("web-app")
    shell("projects", "link", "--new", "web-app", "--database", database)
    shell("remember", "Deploys run on Fridays")
    carl = Shell(shell.folder / "carl", FakeClock())
    cd("carls")
    refused = carl.fails("projects", "link", "Web-App", "--database", database)
    assert "Did you mean 'web-app'?" in refused
    carl("projects", "link", "web-app", "--database", database)
    assert "Fridays" in carl("list")


def test_a_link_takes_no_project_away_from_another_directory(
    shell: Shell, cd: Callable[[str], None], database: str
) -> None:
    cd("api")
    shell("remember", "The API is mine alone")
    cd("other")
    shell("remember", "The other is another project")
    refused = shell.fails("projects", "link", "--new", "api", "--database", database)
    assert "in another directory" in refused
    assert "projects rename" in refused
    assert names(database) == []
    cd("api")
    assert "mine alone" in shell("list")


def test_after_unlink_a_directory_has_what_it_had_before(
    shell: Shell, cd: Callable[[str], None], database: str
) -> None:
    cd("first")
    shell("projects", "link", "--new", "api", "--database", database)
    cd("second")
    shell("remember", "The second had this before")
    shell("projects", "link", "api", "--database", database)
    shell("remember", "The API is versioned in its path")
    shell("projects", "unlink")
    assert "had this before" in shell("list")
    assert "versioned" not in shell("list")
    cd("first")
    assert "project api" in shell("projects", "link", "api", "--database", database)
    assert "versioned" in shell("list")


def test_a_misspelt_name_with_a_url_is_asked_about(shell: Shell, database: str) -> None:
    there = ("--database", database, "--project")
    shell("remember", "Deploys run on Fridays", *there, "web-app")
    assert "Did you mean web-app?" in shell.fails("remember", "Tests run on every push", *there, "web-ap")
    mixed = Shell(shell.folder / "another home", FakeClock())
    assert "Did you mean web-app?" in mixed.fails("remember", "Tests run on every push", *there, "Web-App")
    assert names(database) == ["project/web-app"]
    shell("remember", "Tests run on every push", "--yes", *there, "web-ap")
    assert names(database) == ["project/web-ap", "project/web-app"]
