"""What people of a released version have on their disks opens in this one, with everything in it, and goes on."""

import shutil
from pathlib import Path

import pytest

import kept
from kept import journal
from kept.model import Draft, Source
from kept.storage.sqlite import schema
from tests.builders import context_of
from tests.upgrades import release

FOLDER = Path(release.__file__).parent
RELEASED = sorted(path.stem for path in FOLDER.glob("[0-9]*.db"))
# The migrations that people have applied: a change of the schema is a new file from now on.
FROZEN = {1: "6106840697434ffbdee1b8c78be92727"}


def test_there_is_a_database_of_each_release() -> None:
    assert "0.2.0" in RELEASED


@pytest.mark.parametrize("version", RELEASED)
def test_the_database_of_a_release_opens_with_everything_in_it(version: str, tmp_path: Path) -> None:
    expected = release.EXPECTED
    file = shutil.copyfile(FOLDER / f"{version}.db", tmp_path / "kept.db")
    with kept.open(file) as memory:
        live = {one.content for one in memory.list(limit=100)}
        assert expected["live"] <= live  # type: ignore[operator]
        assert {one.content for one in memory.list(status="forgotten")} == expected["forgotten"]
        assert memory.list(status="pinned")[0].content == "Never edit the auth middleware directly"
        assert memory.recall("login middleware").hits[0].memory.status == "pinned"
        assert [task.description for task in memory.tasks()] == [expected["task"]]
        (session,) = memory.sessions()
        assert memory.session(session.name).messages()[0].content == expected["said"]
        assert any("Postgres 17" in content for content in live)
        storage = context_of(memory).owned()
        with storage.reading() as reader:
            assert journal.broken_links(reader.events()) == []
        assert memory.remember("Written by a later version").outcome == "stored"
        memory.undo()
        forgotten = memory.recall("Fastify Express").hits[0].memory
        memory.forget(forgotten.ref)
        extracted = Draft(content=forgotten.content, source=Source(origin="import"))
        assert memory.remember_many([extracted])[0].reason == "rejected"


def test_no_released_migration_was_changed() -> None:
    known = {step.version: step.checksum for step in schema.migrations()}
    assert {version: known[version] for version in FROZEN} == FROZEN, "write a new migration instead"
