"""Opening: new files, older files, newer files, and files that are not ours."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import apsw
import pytest

from kept import journal, text
from kept.errors import Corrupt, InvalidInput, KeptError, SchemaTooNew, StorageError
from kept.model import Alias, Conflict, Memory
from kept.ports import ANYWHERE, Where
from kept.storage.sqlite import SqliteStorage, backup, health, schema
from tests.behind import behind
from tests.builders import START, memory, stamp
from tests.upgrades import make

NEXT = schema.LATEST + 1
ADDS_A_COLUMN = schema.Migration(NEXT, "mood.sql", "alter table memories add column mood text;", "of the mood")
FAILS_HALFWAY = schema.Migration(NEXT, "bad.sql", f"{ADDS_A_COLUMN.sql} insert into nowhere values (1);", "bad")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A file of the latest schema with one memory."""
    path = tmp_path / "kept.db"
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.add(memory("known before the upgrade"), "remember")
    storage.close()
    return path


def teach(monkeypatch: pytest.MonkeyPatch, step: schema.Migration) -> None:
    """Let this program know one more migration."""
    steps = [*schema.migrations(), step]
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    monkeypatch.setattr(schema, "LATEST", step.version)


def contents(path: Path) -> list[str]:
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        found = [m.content for m in reader.select(ANYWHERE)]
    storage.close()
    return found


def test_the_newest_migration_is_the_latest_schema() -> None:
    assert [step.version for step in schema.migrations()] == list(range(1, schema.LATEST + 1))
    hashes = {step.version: blake2b(step.sql.encode(), digest_size=16).hexdigest() for step in schema.migrations()}
    assert hashes == schema.CHECKSUMS


def test_an_older_file_is_upgraded_after_a_backup(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        teach(newer, ADDS_A_COLUMN)
        assert contents(store) == ["known before the upgrade"]
        assert contents(store) == ["known before the upgrade"]  # and once is enough
        connection = behind(store)
        applied = connection.execute("select version, checksum from migrations order by version").fetchall()
        connection.close()
    assert applied == [(step.version, step.checksum) for step in (*schema.migrations(), ADDS_A_COLUMN)]
    assert [copy.name for copy in backup.backups_of(store)] == [f"schema-{schema.LATEST}.db"]
    assert contents(backup.backups_of(store)[0]) == ["known before the upgrade"]


def test_a_migration_that_fails_leaves_the_old_file_whole(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        teach(newer, FAILS_HALFWAY)
        for _ in range(2):
            with pytest.raises(StorageError, match="nowhere"):
                SqliteStorage(store)
    assert contents(store) == ["known before the upgrade"]
    connection = behind(store)
    assert "mood" not in str(connection.execute("select sql from sqlite_schema where name = 'memories'").get)
    assert connection.pragma("user_version") == schema.LATEST
    connection.close()


def test_a_file_built_by_other_steps_is_not_upgraded(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = behind(store)
    connection.execute("update migrations set checksum = 'of a development version'")
    connection.close()
    teach(monkeypatch, ADDS_A_COLUMN)
    with pytest.raises(InvalidInput, match=r"Schema step 1 .* differs"):
        SqliteStorage(store)


def test_a_file_built_by_other_steps_is_refused_everywhere_and_left_alone(store: Path, tmp_path: Path) -> None:
    """Its columns may mean something else: nobody could read what is written there, and a repair would lose all."""
    ours = tmp_path / "ours.db"
    SqliteStorage(ours, "project/p1").close()
    connection = behind(store)
    connection.execute("update migrations set checksum = 'of a development version'")
    connection.close()
    before = store.read_bytes()
    with pytest.raises(InvalidInput, match=r"Schema step 1 .* differs"):
        SqliteStorage(store)
    with pytest.raises(InvalidInput, match=r"Schema step 1 .* differs"):
        health.repair(store, now=START)
    storage = SqliteStorage(ours)
    with pytest.raises(InvalidInput, match=r"Schema step 1 .* differs"):
        storage.restore_from(store)
    storage.close()
    [problem] = [finding for finding in health.examine(store, now=START) if finding.level == "problem"]
    assert "Open it with that version" in problem.hint
    assert store.read_bytes() == before


def test_a_newer_file_is_refused_and_left_alone(store: Path) -> None:
    set_version(store, schema.LATEST + 1)
    before = store.read_bytes()
    with pytest.raises(SchemaTooNew, match=f"schema {schema.LATEST + 1}, this program knows {schema.LATEST}"):
        SqliteStorage(store)
    assert store.read_bytes() == before


def test_a_program_that_has_the_file_open_notices_that_it_was_upgraded(store: Path) -> None:
    storage = SqliteStorage(store)
    with storage.reading() as reader:
        assert reader.count() == 1
    with storage.writing(stamp()) as tx:
        tx.add(memory("after which a turn begins without a look at the file"), "remember")
    set_version(store, schema.LATEST + 1)
    attempts: list[Callable[[], object]] = [
        lambda: storage.reading().__enter__(),
        lambda: storage.writing(stamp()).__enter__(),
        lambda: storage.bookkeeping().__enter__(),
        storage.scrub,
        lambda: storage.back_up(store.with_name("copy.db")),
        lambda: storage.restore_from(store.with_name("copy.db")),
    ]
    for attempt in attempts:
        with pytest.raises(SchemaTooNew):
            attempt()
    set_version(store, schema.LATEST)
    with storage.writing(stamp()) as tx:
        tx.add(memory("and goes on when it was taken back"), "remember")
    storage.close()


def test_many_processes_may_make_a_file_at_the_same_moment(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    program = """
        import sys
        from pathlib import Path
        from kept.storage.sqlite import SqliteStorage
        from tests.builders import memory, stamp
        sys.stdin.read()
        storage = SqliteStorage(Path(sys.argv[1]))
        with storage.writing(stamp(sys.argv[2])) as tx:
            tx.add(memory("written by " + sys.argv[2], uid=sys.argv[2]), "remember")
        storage.close()"""
    run_at_once(8, program, path)
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        assert {m.uid for m in reader.select(ANYWHERE)} == {f"process-{number}" for number in range(8)}
        assert journal.broken_links(reader.events()) == []
    storage.close()


def test_many_processes_may_upgrade_a_file_at_the_same_moment(store: Path) -> None:
    program = f"""
        import sys
        from pathlib import Path
        from kept.storage.sqlite import SqliteStorage, schema
        steps = [*schema.migrations(), schema.Migration({NEXT}, "next.sql", {ADDS_A_COLUMN.sql!r}, "next")]
        schema.migrations, schema.LATEST = lambda: steps, {NEXT}
        sys.stdin.read()
        storage = SqliteStorage(Path(sys.argv[1]))
        with storage.reading() as reader:
            assert reader.count() == 1
        storage.close()"""
    run_at_once(4, program, store)
    connection = behind(store)
    assert connection.pragma("user_version") == NEXT
    assert connection.execute("select count(*) from migrations").get == NEXT
    connection.close()


@pytest.mark.parametrize("version", range(1, schema.LATEST + 1))
def test_a_file_of_another_space_is_refused_before_it_is_upgraded(version: int, tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    shutil.copy(make.FOLDER / f"schema-{version}.db", path)
    with pytest.raises(
        InvalidInput, match=f"holds the space {make.SPACE}, not project/other. It was not changed"
    ) as caught:
        SqliteStorage(path, "project/other")
    assert "kept store merge" in caught.value.hint
    assert backup.backups_of(path) == []
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.pragma("user_version") == version
    connection.close()


@pytest.mark.parametrize("version", range(1, schema.LATEST + 1))
def test_the_stored_database_of_every_schema_can_be_opened(version: int, tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    shutil.copy(make.FOLDER / f"schema-{version}.db", path)
    storage = SqliteStorage(path, make.SPACE)
    with storage.reading() as reader:
        for shelf in ("live", "archive", "forgotten"):
            assert {m.content for m in reader.select(Where(shelf=shelf))} == make.EXPECTED[shelf]  # type: ignore[arg-type]
        (hit,) = reader.search(text.query_words("fastify"), limit=5)
        assert hit.memory.content == "Use Fastify, not Express"
        assert reader.is_erased(memory(str(make.EXPECTED["erased"])).fingerprint)
        assert [event.action for event in reader.events()] == make.EXPECTED["actions"]
        assert journal.broken_links(reader.events()) == []
        assert [m.content for m in reader.messages("s1")] == make.EXPECTED["messages"]
        assert (len(reader.all(Conflict)), len(reader.all(Alias)), len(reader.links(1))) == (1, 1, 1)
        first = reader.get(Memory, 1)
        assert first is not None
        assert (first.feedback, first.tags, first.files, first.key) == (3, ("upgrade", "t0"), ("src/0.py",), "k0")
    with storage.writing(stamp()) as tx:
        tx.add(memory("written after the upgrade"), "remember")
    storage.close()
    connection = behind(path)
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_the_stored_database_was_made_by_the_present_schema() -> None:
    connection = apsw.Connection(str(make.FOLDER / f"schema-{schema.LATEST}.db"), flags=apsw.SQLITE_OPEN_READONLY)
    made_by = dict(connection.execute("select version, checksum from migrations").fetchall())
    connection.close()
    known = {step.version: step.checksum for step in schema.migrations()}
    assert made_by == known, "The schema has changed: run `python -m tests.upgrades.make`, unless it was released."


def other_program(path: Path) -> None:
    connection = behind(path)
    connection.pragma("application_id", 77)
    connection.close()


def nobody_in_particular(path: Path) -> None:
    connection = behind(path)
    connection.execute("create table notes (body text); insert into notes values ('mine')")
    connection.close()


def nobody_in_particular_with_a_wal(path: Path) -> None:
    connection = behind(path)
    connection.pragma("journal_mode", "wal")
    connection.close()
    nobody_in_particular(path)


@pytest.mark.parametrize(
    ("make_file", "error"),
    [
        (other_program, InvalidInput),
        (nobody_in_particular, InvalidInput),
        (nobody_in_particular_with_a_wal, InvalidInput),
        (lambda path: path.write_text("Dear diary,\n" * 200), Corrupt),
        (lambda path: path.write_text("short"), Corrupt),
        (lambda path: path.write_bytes(os.urandom(20_000)), Corrupt),
        (lambda path: path.mkdir(), InvalidInput),
    ],
    ids=["another program", "no name", "no name, WAL", "text", "short text", "encrypted", "directory"],
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    make_file: Callable[[Path], object], error: type[KeptError], tmp_path: Path
) -> None:
    path = tmp_path / "diary.db"
    make_file(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(error) as refusal:
        SqliteStorage(path)
    assert str(path) in refusal.value.message
    assert refusal.value.hint
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["diary.db"]


def test_an_empty_file_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    path.touch()
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.add(memory("something"), "remember")
    storage.close()
    assert contents(path) == ["something"]


def set_version(path: Path, version: int) -> None:
    connection = behind(path)
    connection.pragma("user_version", version)
    connection.close()


def run_at_once(count: int, program: str, path: Path) -> None:
    """Start processes, let them all go at the same moment, and wait. Raises when one fails."""
    lines = program.splitlines()
    code = "\n".join(line[8:] for line in lines)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), f"process-{number}"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for number in range(count)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
