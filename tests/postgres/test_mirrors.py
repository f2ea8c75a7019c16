"""MEMORY.md of a project in a database: only a person's own edit of this very file changes what the team has."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

import kept
from kept.memory import views
from kept.memory.view import SyncReport
from tests.postgres.server import as_owner, drop_database, is_cluster, new_database, superuser_url

Person = Callable[..., kept.Kept]


@pytest.fixture
def database() -> Iterator[str]:
    url = new_database()
    yield url
    drop_database(url)


@pytest.fixture
def person(database: str, tmp_path: Path) -> Person:
    """Return a function that opens the team's project as a person at a keyboard does, from a home by its name."""

    def opened(name: str, url: str = database) -> kept.Kept:
        memory = kept.open(url, project="shop", home=tmp_path / name, origin="user", person=name)
        memory.files.accompany()
        return memory

    return opened


def another(url: str) -> str:
    """Return another URL of the same database."""
    return f"{url}&application_name=other"


def texts(memory: kept.Kept) -> list[str]:
    return [one.content for one in sorted(memory.list(), key=lambda one: one.id)]


def page_of(memory: kept.Kept) -> Path:
    [one] = [one for one in memory.files.status() if one.name == "MEMORY.md" and "team-" in one.path]
    return Path(one.path.replace("~", str(Path.home())))


def test_one_database_by_two_urls_from_one_home_loses_nothing_of_a_teammate(person: Person, database: str) -> None:
    with person("hal") as hal:
        hal.remember("Alpha stays here")
    with person("ida") as ida:
        ida.remember("Beta is what Ida added")
    with person("hal", another(database)) as hal:
        hal.remember("Gamma comes by the other URL")
    with person("ida") as ida:
        ida.remember("Delta is what Ida added later")
    for url in (database, another(database), database):
        with person("hal", url) as hal:
            assert len(texts(hal)) == 4
    with person("ida") as ida:
        assert [event.action for event in ida.history(limit=50) if event.action != "remember"] == []


def test_a_line_that_a_person_deletes_is_forgotten_by_whichever_url(person: Person, database: str) -> None:
    with person("hal") as hal:
        hal.remember("Alpha stays here")
        hal.remember("Beta is to go")
    for url, n_left in ((another(database), 2), (database, 2)):
        with person("hal", url) as hal:
            hal.files.sync()
            page = page_of(hal)
            assert len(texts(hal)) == n_left
    page.write_text("".join(line for line in page.read_text().splitlines(True) if "Beta" not in line))
    with person("hal") as hal:
        assert texts(hal) == ["Alpha stays here"]
    with person("hal", another(database)) as hal:
        assert texts(hal) == ["Alpha stays here"]


@pytest.fixture
def restored(person: Person, database: str) -> kept.Kept:
    """A memory whose database was restored to before its last changes, which MEMORY.md still shows."""
    with person("hal") as hal:
        hal.remember("Alpha was deleted by mistake")
        hal.remember("Beta stays here")
    name = urlsplit(database).path[1:]
    rename = sql.SQL("alter database {} rename to {}")
    copy = sql.Identifier(f"{name}_copy")
    if is_cluster(superuser_url()):
        pytest.skip("Citus copies no database.")
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s", (name,))
        root.execute(sql.SQL("create database {} template {}").format(copy, sql.Identifier(name)))
    with person("hal") as hal:
        hal.forget("1")
        hal.remember("Gamma came after the backup")
    drop_database(database)
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute(rename.format(copy, sql.Identifier(name)))
    return person("hal")


def test_what_a_restored_database_has_back_is_not_forgotten_by_a_newer_file(restored: kept.Kept) -> None:
    with restored as hal:
        assert texts(hal) == ["Alpha was deleted by mistake", "Beta stays here"]


def test_a_newer_file_waits_until_a_person_says_what_its_lines_are(restored: kept.Kept) -> None:
    with restored as hal:
        [waiting] = by_name(hal.files.sync())
        assert "is not as this database wrote it last" in waiting.waiting
        [done] = by_name(hal.files.sync(ask=lambda question, lines: "Take its lines" in question))
        assert not done.waiting
        assert not done.removed
        assert texts(hal) == [
            "Alpha was deleted by mistake",
            "Beta stays here",
            "Gamma came after the backup",
        ]


def by_name(done: list[SyncReport]) -> list[SyncReport]:
    return [one for one in done if one.name == "MEMORY.md" and "team-" in one.path]


def test_a_newer_file_that_is_deleted_is_written_as_the_restored_database_has_it(restored: kept.Kept) -> None:
    with restored as hal:
        page = page_of(hal)
        page.unlink()
        hal.files.sync()
        assert "Alpha was deleted by mistake" in page.read_text()
        assert "Gamma" not in page.read_text()


def test_a_file_of_an_older_kept_is_followed_on(person: Person, database: str) -> None:
    """0.3.0 noted it under one name for all URLs, with no token."""
    with person("hal") as hal:
        hal.remember("Alpha stays here")
        hal.remember("Beta is to go")
    as_older_kept(database, page_of(person("hal")))
    with person("hal") as hal:
        hal.remember("Gamma is written to the file")
        page = page_of(hal)
    page.write_text("".join(line for line in page.read_text().splitlines(True) if "Beta" not in line))
    with person("hal") as hal:
        assert texts(hal) == ["Alpha stays here", "Gamma is written to the file"]


def test_an_older_note_deletes_nothing_through_another_file(person: Person, database: str) -> None:
    with person("hal") as hal:
        hal.remember("Alpha stays here")
    with person("hal", another(database)) as hal:
        hal.remember("Beta came by the other URL")
        page = page_of(hal)
    as_older_kept(database, page)  # so the note is about the second file
    with person("hal") as hal:
        assert texts(hal) == ["Alpha stays here", "Beta came by the other URL"]


def as_older_kept(database: str, page: Path) -> None:
    """Turn the notes about views into those of Kept 0.3.0."""
    for hidden in page.parents[1].glob("team-*/.*.noted"):
        hidden.unlink()
    folder = page.parent.name
    with psycopg.connect(as_owner(database), autocommit=True) as root:
        others = "delete from kept.file_notes where name like '%%/team-%%' and name not like %s"
        root.execute(others, (f"%/{folder}/%",))
        root.execute(
            "update kept.file_notes set name = replace(name, %s, ''), note = regexp_replace(note, %s, '', 'g')",
            (f"{folder}/", ',"token":"[0-9a-f]+"'),
        )


def test_an_erasure_cleans_the_files_of_every_url(person: Person, database: str) -> None:
    with person("hal") as hal:
        hal.remember("Alpha stays here")
        hal.remember("Beta is to be erased")
        first = page_of(hal)
    with person("hal", another(database)) as hal:
        hal.files.sync()
        second = page_of(hal)
        assert first != second
        assert "Beta" in first.read_text()
        hal.erase("2")
    assert "Beta" not in first.read_text() + second.read_text()


def test_a_file_that_was_not_replaced_in_time_deletes_nothing(
    person: Person, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note is stored, and the program ends before the file takes its new text."""
    with person("hal") as hal:
        hal.remember("Alpha stays here")
        hal.remember("Beta is to go")
        page = page_of(hal)
    before = page.read_text()

    def end(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(views, "_put", end)
        with person("hal") as hal:
            hal.remember("Gamma is in the note and not in the file")
            with pytest.raises(KeyboardInterrupt):
                hal.close()
    assert page.read_text() == before
    page.write_text("".join(line for line in before.splitlines(True) if "Beta" not in line))
    with person("hal") as hal:
        assert texts(hal) == ["Alpha stays here", "Gamma is in the note and not in the file"]
