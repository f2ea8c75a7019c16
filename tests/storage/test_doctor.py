"""`kept doctor`: every kind of damage is found and named, with the way back (C11, C30)."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from kept import journal
from kept.errors import Busy, Corrupt, NotAllowed, SchemaTooNew
from kept.model import Alias, Conflict, Memory, Message, replace
from kept.ports import ANYWHERE
from kept.storage.checkup import Finding
from kept.storage.sqlite import SqliteStorage, backup, rows, schema
from kept.storage.sqlite.health import check, examine, repair
from kept.storage.sqlite.pages import wal_of
from kept.storage.sqlite.restore import replace_damaged
from kept.storage.sqlite.writer import insert_events
from tests.behind import behind, seal
from tests.builders import START, memory, stamp
from tests.storage import byte_flips, damaged_pages

SPACE = "project/p1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "space"
    folder.mkdir(mode=0o700)
    return folder / "kept.db"


def remember(path: Path, *contents: str) -> list[Memory]:
    """Store memories and close the file."""
    storage = SqliteStorage(path, SPACE)
    added = []
    for content in contents:
        with storage.writing(stamp()) as tx:
            added.append(tx.add(memory(content, space=SPACE), "remember"))
    storage.close()
    return added


def change(path: Path, write: Callable[[Any], object]) -> None:
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        write(tx)
    storage.close()


def read(path: Path, ask: Callable[[Any], Any]) -> Any:
    storage = SqliteStorage(path)
    try:
        with storage.reading() as reader:
            return ask(reader)
    finally:
        storage.close()


def contents(path: Path) -> list[str]:
    return [m.content for m in read(path, lambda reader: reader.select(ANYWHERE, oldest_first=True, limit=1000))]


def execute(path: Path, *statements: str) -> None:
    """Change the file behind Kept's back, with SQLite's help."""
    connection = behind(path)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def flip(file: Path, pattern: bytes) -> None:
    """Change the last byte of the first place that the pattern finds."""
    content = bytearray(file.read_bytes())
    match = next(re.finditer(pattern, bytes(content), re.DOTALL))
    content[match.end() - 1] ^= 1
    file.write_bytes(content)


def flip_unnoticed(file: Path, pattern: bytes) -> None:
    """The same, by somebody who gives the page the checksum of what it holds now."""
    flip(file, pattern)
    seal(file)


def row_with(content: str) -> bytes:
    return rb".{16}" + re.escape(content.encode())  # the uid stands before it


def payload_with(path: Path, content: str) -> bytes:
    """The stored payload of the event that added this content, but for its end, where a changed bit changes nothing."""
    events = read(path, lambda reader: reader.events())
    (added,) = [event for event in events if (event.changed or {}).get("content") == (None, content)]
    connection = behind(path)
    changed: Any = connection.execute("select changed from event_payloads where seq = ?", (added.seq,)).get
    connection.close()
    return re.escape(changed[:-8])


def problems(path: Path, **options: Any) -> dict[str, str]:
    return {f.check: f.message for f in examine(path, now=START, **options) if f.level == "problem"}


def not_repaired(path: Path) -> None:
    """Assert that a repair leaves the damage to a backup, and the file as it is."""
    before = path.read_bytes()
    (finding,) = [finding for finding in repair(path, now=START) if finding.level == "problem"]
    assert finding.message.startswith("Not repaired: ")
    assert path.read_bytes() == before


def backed_up(path: Path, name: str = "2026-03-01.db") -> Path:
    """Make a daily backup of the file as it is."""
    copy = backup.make_folder(path) / name
    storage = SqliteStorage(path)
    storage.back_up(copy)
    storage.close()
    return copy


def restored(path: Path, copy: Path) -> None:
    storage = SqliteStorage(path)
    storage.restore_from(copy, overwrite_newer=True)
    storage.close()


def levels(findings: list[Finding], level: str) -> list[str]:
    return [finding.message for finding in findings if finding.level == level]


def killed(path: Path, *texts: str) -> None:
    """Leave the files as a process leaves them that was killed after its last write."""
    storage = SqliteStorage(path, SPACE)
    for text in texts:
        with storage.writing(stamp()) as tx:
            tx.add(memory(text, space=SPACE), "remember")
    kept_alive = path.with_name("alive")
    kept_alive.mkdir()
    names = [path.name, f"{path.name}-wal"]
    for name in names:
        shutil.copy2(path.with_name(name), kept_alive / name)
    note = path.with_name(f"{path.name}.lock").read_bytes()
    storage.close()
    for name in names:
        path.with_name(name).write_bytes((kept_alive / name).read_bytes())  # the same inode, which the note names
    path.with_name(f"{path.name}.lock").write_bytes(note)
    shutil.rmtree(kept_alive)


# Healthy files ------------------------------------------------------------------------------------


def test_a_healthy_store_has_no_problem_and_each_thing_was_looked_at(path: Path) -> None:
    remember(path, "Use Fastify", "Never edit the auth middleware")
    findings = examine(path, now=START, deep=True)
    assert levels(findings, "problem") == []
    assert {finding.check for finding in findings} == {
        *("sqlite", "permissions", "lock", "disk", "backups", "schema", "pages", "checksums", "space", "wal"),
        *("memory", "messages", "words", "index", "statistics", "journal", "orphans"),
    }


def test_examining_changes_nothing(path: Path) -> None:
    killed(path, "Use Fastify")
    before = {file.name: file.read_bytes() for file in (path, wal_of(path))}
    examine(path, now=START, deep=True)
    assert {file.name: file.read_bytes() for file in (path, wal_of(path))} == before


def test_a_healthy_store_is_left_alone_by_repair(path: Path) -> None:
    remember(path, "Use Fastify")
    before = path.read_bytes()
    assert [finding.message for finding in repair(path, now=START)] == ["There is nothing to repair."]
    assert path.read_bytes() == before


def test_a_missing_file_is_a_problem_and_not_made(path: Path) -> None:
    assert "There is no file" in problems(path)["file"]
    assert not path.exists()


def test_what_was_erased_is_a_note_that_names_the_event(path: Path) -> None:
    (gone,) = remember(path, "Use Fastify")
    change(path, lambda tx: tx.erase(gone))
    findings = examine(path, now=START)
    assert levels(findings, "problem") == []
    assert "The payload of event 1 was erased by event 2." in levels(findings, "note")


def test_usage_that_recall_counts_is_no_damage(path: Path) -> None:
    first, second = remember(path, "Use Fastify", "Use Postgres")
    storage = SqliteStorage(path)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([first.id, second.id], START)
        notes.link([first.id, second.id], START)
        notes.save_receipt({"query": "use"}, [first.uid], START)
    storage.close()
    assert problems(path, deep=True) == {}
    assert read(path, lambda reader: reader.get(Memory, first.id)).use_count == 1


# Memories -----------------------------------------------------------------------------------------


def test_a_changed_byte_in_a_memory_is_an_error_that_names_it(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres", "Use Redis")
    flip_unnoticed(path, row_with("Use Postgres"))
    for ask in (
        lambda reader: reader.get(Memory, 2),
        lambda reader: reader.select(),
        lambda reader: reader.search(["use"], limit=9),
    ):
        with pytest.raises(Corrupt, match=r"memory 2 is damaged.*kept doctor"):
            read(path, ask)
    assert read(path, lambda reader: reader.get(Memory, 3)).content == "Use Redis"


def test_a_damaged_memory_is_named_and_the_backup_brings_it_back(path: Path) -> None:
    first, second = remember(path, "Use Fastify", "Use Postgres")
    copy = backed_up(path)
    remember(path, "Use Redis")
    change(path, lambda tx: tx.append([Message(id="m1", role="user", session="s1", content="hello")]))
    flip(path, row_with("Use Postgres"))
    damaged = path.read_bytes()
    assert problems(path)["memory"] == "Damaged: memory 2."
    assert re.fullmatch(r"Damaged, or written by another program: page \d+ \(memories\)\.", problems(path)["checksums"])
    assert not any("--fix" in finding.hint for finding in examine(path, now=START))
    [way_back] = [f for f in examine(path, now=START) if f.check == "backups" and "newest good" in f.message]
    assert way_back.message == (
        f"The newest good backup is {copy}. Its last change is of 2026-03-01 12:00 UTC. "
        "Newer, and lost with a restore: 1 event, 1 new memory, 1 message."
    )
    assert f"`kept store restore {copy}`" in way_back.hint
    not_repaired(path)

    restored(path, copy)
    assert path.with_name("kept.db.damaged-1").read_bytes() == damaged
    assert read(path, lambda reader: reader.select(oldest_first=True)) == [first, second]
    assert problems(path, deep=True) == {}


def test_the_newest_backup_that_is_whole_is_the_way_back(path: Path) -> None:
    remember(path, "Use Fastify")
    older = backed_up(path)
    remember(path, "Use Postgres")
    newer = backed_up(path, "2026-03-02.db")
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    notes = levels(examine(path, now=START), "note")
    assert any(f"newest good backup is {newer}." in note and "cannot be told" in note for note in notes)
    newer.write_bytes(newer.read_bytes()[: 4096 * 20])
    assert any(f"newest good backup is {older}." in note for note in levels(examine(path, now=START), "note"))
    older.unlink()
    assert "There is no good backup to go back to." in levels(examine(path, now=START), "note")


def test_the_mirrors_beside_a_damaged_file_are_named(path: Path) -> None:
    remember(path, "Use Fastify")
    path.with_name("MEMORY.md").write_text("- Use Fastify")
    path.with_name("sessions").mkdir()
    for name in ("a", "b"):
        path.with_name("sessions").joinpath(f"{name}.jsonl").write_text("{}")
    assert not any(finding.check == "mirrors" for finding in examine(path, now=START))
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    [mirrors] = [finding for finding in examine(path, now=START) if finding.check == "mirrors"]
    assert re.search(r"MEMORY\.md \(of .* UTC\), sessions/ \(2 sessions, the newest of .* UTC\)", mirrors.message)


def test_a_damaged_payload_is_named(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres")
    flip_unnoticed(path, payload_with(path, "Use Postgres"))
    with pytest.raises(Corrupt, match="event 2 is damaged"):
        read(path, lambda reader: reader.events())
    assert problems(path)["journal"] == "Damaged: event 2."
    not_repaired(path)


def test_after_a_restore_memories_can_be_changed_undone_and_erased(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres")
    copy = backed_up(path)
    flip(path, row_with("Use Postgres"))
    restored(path, copy)
    found = read(path, lambda reader: reader.get(Memory, 2))
    change(path, lambda tx: tx.put(replace(found, feedback=3), "reinforce"))
    change(path, lambda tx: tx.erase(tx.get(Memory, 1)))
    assert problems(path, deep=True) == {}


def test_a_damaged_file_that_is_in_use_can_be_restored(path: Path) -> None:
    """Whoever has the damaged file open must not take the WAL of the new one for its own when it closes."""
    remember(path, "Use Fastify", "Use Postgres")
    copy = backed_up(path)
    flip(path, row_with("Use Postgres"))
    mine, other = SqliteStorage(path), SqliteStorage(path)
    with other.reading() as reader:
        assert len(reader.events()) == 2
    with pytest.raises(NotAllowed, match=r"is damaged.*may have changes"):
        mine.restore_from(copy)
    mine.restore_from(copy, overwrite_newer=True)
    with mine.writing(stamp()) as tx:
        tx.add(memory("Use Redis", space=SPACE), "remember")
    with other.writing(stamp()) as tx:
        tx.add(memory("Use Valkey", space=SPACE), "remember")
    other.close()
    mine.close()
    assert contents(path) == ["Use Fastify", "Use Postgres", "Use Redis", "Use Valkey"]
    assert problems(path, deep=True) == {}


def test_a_second_restore_keeps_a_second_copy(path: Path) -> None:
    for content in ("Use Postgres", "Use Redis"):
        remember(path, content)
        copy = backed_up(path, f"{content}.db")
        flip(path, row_with(content))
        restored(path, copy)
    assert path.with_name("kept.db.damaged-2").exists()
    assert any("kept.db.damaged-1 is the damaged file" in note for note in levels(examine(path, now=START), "note"))


def test_a_file_of_which_nothing_is_left_is_not_touched(path: Path) -> None:
    path.write_bytes(os.urandom(40_000))
    assert "not a SQLite database" in problems(path)["file"]
    not_repaired(path)


def test_a_damaged_header_is_left_to_the_backup(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres")
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    with pytest.raises(Corrupt):
        SqliteStorage(path)
    not_repaired(path)


def test_somebody_elses_database_is_left_alone(path: Path) -> None:
    execute(path, "create table t (x)", "insert into t values (1)")
    path.chmod(0o600)
    assert "is not marked as a database of Kept" in problems(path)["schema"]
    not_repaired(path)


def test_a_file_of_a_newer_kept_is_left_alone(path: Path) -> None:
    remember(path, "Use Fastify")
    version = schema.LATEST + 1
    execute(path, f"pragma user_version = {version}", f"insert into migrations values ({version}, 'x', 'y')")
    assert "newer kept" in problems(path)["schema"]
    with pytest.raises(SchemaTooNew):
        repair(path, now=START)


@pytest.mark.parametrize("last", ["added", "changed"])
def test_a_journal_that_lost_its_end_is_a_problem(path: Path, last: str) -> None:
    first, _ = remember(path, "Use Fastify", "Use Postgres")
    if last == "changed":
        later = replace(first, feedback=3, updated_at=START + timedelta(days=1))
        change(path, lambda tx: tx.put(later, "reinforce"))
    event = 3 if last == "changed" else 2
    execute(path, "pragma foreign_keys = off", f"delete from events where seq = {event}")
    assert problems(path, deep=True)
    not_repaired(path)


def test_a_file_that_is_open_is_not_repaired(path: Path) -> None:
    killed(path, "Use Fastify", "Use Postgres")
    flip(wal_of(path), row_with("Use Postgres"))
    before = path.read_bytes(), wal_of(path).read_bytes()
    connection = behind(path)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("select count(*) from memories").fetchall()
    with pytest.raises(Busy, match="open in another program"):
        repair(path, now=START)
    connection.close()
    assert (path.read_bytes(), wal_of(path).read_bytes()) == before
    assert not path.with_name("kept.db.damaged-1").exists()


# What can be derived ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("delete from live_fts_data where id > 10", "index"),
        ("delete from live_fts_docsize where id = 2", "index"),
        (
            "insert into live_fts (live_fts, rowid, words, tag_words, file_words, source_words, kind_words) "
            "select 'delete', id, words, tag_words, file_words, source_words, kind_words from memories where id = 2",
            "index",
        ),
        ("update corpus set words = words + 7", "statistics"),
        ("delete from corpus where shelf = 'live'", "statistics"),
        ("delete from corpus where shelf = 'messages'", "statistics"),
        ("update weights set feedbacks = zeroblob(1000)", "statistics"),
        ("update weights set days = x'00'", "statistics"),
        ("delete from weights", "statistics"),
        ("delete from handles", "index"),
        ("insert into handles (handle, id) values (1, 1)", "index"),
    ],
)
def test_indexes_and_counts_are_built_anew_inside_the_file(path: Path, damage: str, check: str) -> None:
    remember(path, "Use Fastify", "Use Postgres", "Use Redis")
    right = read(path, lambda reader: (reader.search(["postgr"], limit=9), reader.statistics(["use"])))
    execute(path, damage)
    inode = path.stat().st_ino
    assert check in problems(path)

    findings = repair(path, now=START)
    assert levels(findings, "problem") == []
    assert path.stat().st_ino == inode
    assert not path.with_name("kept.db.damaged-1").exists()
    assert read(path, lambda reader: (reader.search(["postgr"], limit=9), reader.statistics(["use"]))) == right
    assert problems(path, deep=True) == {}


def test_words_of_another_version_are_found_and_prepared_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("kept.text._stem", lambda word: f"{word}x")
        _clear_caches()
        remember(path, "Use Postgres")
        change(path, lambda tx: tx.append([Message(id="m1", role="user", session="s1", content="Use Postgres")]))
    _clear_caches()
    assert "Indexed by another version of Kept" in problems(path)["words"]
    repair(path, now=START)
    assert problems(path, deep=True) == {}
    assert len(read(path, lambda reader: reader.search(["postgr"], limit=9))) == 1
    assert len(read(path, lambda reader: reader.search_messages(["postgr"], limit=9))) == 1


def _clear_caches() -> None:
    from kept import text
    from kept.storage import shared

    text._stems.clear()
    text._read_cached.cache_clear()
    text._read_short_text.cache_clear()
    shared._label.cache_clear()


def test_an_index_that_names_the_wrong_memory_is_an_error(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres")
    execute(
        path,
        "insert into live_fts (rowid, words, tag_words, file_words, source_words, kind_words) "
        "values (1, 'redi', '', '', '', '')",
    )
    with pytest.raises(Corrupt, match=r"search index of live \(it wrongly lists memory 1\) is damaged"):
        read(path, lambda reader: reader.search(["redi"], limit=9))


def test_a_search_for_words_that_are_not_prepared_is_no_false_alarm(path: Path) -> None:
    remember(path, "Use Fastify")
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        for word in ("Fastifi", "FASTIFI", "use-fastifi", "fastifi!"):
            assert len(reader.search([word], limit=9)) == 1
    storage.close()


# The journal and the WAL --------------------------------------------------------------------------


def test_a_lost_event_is_named(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres", "Use Redis")
    execute(path, "pragma foreign_keys = off", "update events set actor = 'mallory' where seq = 2")
    assert "event 2" in problems(path)["journal"]
    not_repaired(path)


def test_an_event_that_kept_0_2_could_not_save_is_a_note(path: Path) -> None:
    """Its repair told in an event of the journal which events were lost."""
    remember(path, "Use Fastify", "Use Postgres", "Use Redis")
    last = read(path, lambda reader: reader.events())[-1]
    told = journal.seal(
        stamp(),
        seq=last.seq + 1,
        action="repair",
        subject="journal",
        changed={"events": (None, [2])},
        prev=last.hash,
        salt="00" * journal.SALT_BYTES,
    )
    connection = behind(path)
    connection.execute("delete from event_payloads where seq = 2")
    connection.execute("delete from events where seq = 2")
    insert_events(connection, [(told, journal.payload(told.changed or {}))])
    connection.close()
    assert problems(path, deep=True) == {}
    assert "A repair could not recover event 2." in levels(examine(path, now=START), "note")


def test_a_memory_without_its_row_or_without_its_history_is_a_problem(path: Path) -> None:
    remember(path, "Use Fastify", "Use Postgres")
    execute(path, "delete from memories where id = 1")
    assert "In the journal, but missing" in problems(path)["journal"]
    execute(path, "delete from event_payloads", "delete from events")
    assert "Not in the journal: memory 2." in problems(path)["journal"]
    not_repaired(path)


def test_a_record_that_is_older_than_its_journal_is_found(path: Path) -> None:
    (added,) = remember(path, "Use Fastify")
    row = rows.to_row(added)
    change(path, lambda tx: tx.put(replace(added, content="Use Express"), "revise"))
    connection = behind(path)  # as a lost write would leave it: whole, but old
    columns = ", ".join(f"{column} = ?" for column in row)
    connection.execute(f"update memories set {columns} where id = {added.id}", tuple(row.values()))
    connection.close()
    assert "differ from the journal" in problems(path, deep=True)["memory"]
    not_repaired(path)


def test_a_byte_in_the_wal_does_not_cost_an_acknowledged_write_without_an_error(path: Path) -> None:
    killed(path, "Use Fastify", "Use Postgres", "Use Redis")
    flip(wal_of(path), row_with("Use Postgres"))
    damaged = wal_of(path).read_bytes()
    with pytest.raises(Corrupt, match=r"ends with event \d .* event 3 .*acknowledged"):
        SqliteStorage(path)
    assert wal_of(path).read_bytes() == damaged
    assert "acknowledged are missing" in problems(path)["wal"]

    findings = repair(path, now=START)
    assert levels(findings, "problem") == ["Lost: the last 2 events and 0 messages."]
    assert wal_of(path.with_name("kept.db.damaged-1")).read_bytes() == damaged
    assert contents(path) == ["Use Fastify"]
    assert problems(path, deep=True) == {}
    assert remember(path, "Use Valkey")[0].id > 3  # the ids of the lost ones are not given again


def test_a_wal_that_somebody_deleted_is_noticed(path: Path) -> None:
    remember(path, "Use Fastify")
    killed(path, "Use Postgres", "Use Redis")
    wal_of(path).unlink()
    with pytest.raises(Corrupt, match="event 3"):
        SqliteStorage(path)
    findings = repair(path, now=START)
    assert levels(findings, "problem") == ["Lost: the last 2 events and 0 messages."]
    assert contents(path) == ["Use Fastify"]
    assert remember(path, "Use Valkey")


def test_messages_at_the_end_of_a_lost_wal_are_noticed_too(path: Path) -> None:
    remember(path, "Use Fastify")
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.append([Message(id=f"m{n}", role="user", session="s1", content="hello") for n in range(3)])
    note = path.with_name("kept.db.lock").read_bytes()
    storage.close()
    execute(path, "delete from messages", "delete from sqlite_sequence where name = 'messages'")
    path.with_name("kept.db.lock").write_bytes(note)
    with pytest.raises(Corrupt, match="message 3 were acknowledged"):
        SqliteStorage(path)


def test_no_alarm_after_a_clean_end_or_when_another_file_was_put_in_its_place(path: Path) -> None:
    remember(path, "Use Fastify")
    older = path.with_name("older.db")
    shutil.copy(path, older)
    remember(path, "Use Postgres")
    shutil.copyfile(older, path)  # after a clean end, whoever does this means it
    assert contents(path) == ["Use Fastify"]

    killed(path, "Use Redis")
    wal_of(path).unlink()
    older.replace(path)  # after a crash: another inode, so another file
    assert contents(path) == ["Use Fastify"]


# Other records ------------------------------------------------------------------------------------


def test_a_damaged_message_is_named(path: Path) -> None:
    remember(path, "Use Fastify")
    said = [Message(id=f"m{n}", role="user", session="s1", content=f"hello number {n}") for n in range(3)]
    change(path, lambda tx: tx.append(said))
    flip_unnoticed(path, rb"m1userhello number")
    with pytest.raises(Corrupt, match="message 2 of session s1"):
        read(path, lambda reader: reader.messages("s1"))
    assert problems(path)["messages"] == "Damaged: message 2."
    not_repaired(path)


def test_a_conflict_about_a_memory_that_is_not_here_is_a_note(path: Path) -> None:
    (first,) = remember(path, "Use Fastify")
    elsewhere = Conflict(
        left=first.uid, right="018f0000-0000-7000-8000-000000000001", type="ambiguous", detected_at=START
    )
    change(path, lambda tx: tx.add(elsewhere, "conflict"))
    findings = examine(path, now=START)
    assert levels(findings, "problem") == []
    assert "Refers to a memory that is not in this store: conflict 1." in levels(findings, "note")


def test_text_that_is_no_text_any_more_is_an_error_of_ours(path: Path) -> None:
    (gone,) = remember(path, "Use Fastify")
    change(path, lambda tx: tx.erase(gone))
    execute(path, "update meta set value = cast(x'5b22ff225d' as text) where name = 'scrub'")
    with pytest.raises(Corrupt, match="is damaged"):
        SqliteStorage(path)
    storage = SqliteStorage(path.with_name("other.db"), SPACE)
    with pytest.raises(UnicodeDecodeError), storage.reading():  # the caller's own mistakes stay the caller's
        b"\xff".decode()
    storage.close()


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("update meta set value = 'project/other' where name = 'space'", "space"),
        ("delete from meta where name = 'tombstone_key'", "space"),
        ("update tombstones set mark = iif(mark like '0%', '1', '0') || substr(mark, 2)", "erase"),
        ("update receipts set body = '{}'", "notes"),
        ("update aliases set word = 'other'", "alias"),
        ("delete from aliases", "alias"),
        ("insert into event_payloads values (99, '00', '{}')", "orphans"),
        ("drop trigger memories_added", "schema"),
        ("drop index memories_by_topic", "schema"),
    ],
)
def test_damage_beside_the_memories_is_found_and_a_backup_brings_it_back(path: Path, damage: str, check: str) -> None:
    first, _, gone = remember(path, "Use Fastify", "Use Postgres", "Use Redis")
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.add(Alias(word="db", expands_to=("database",)), "alias")
        tx.erase(gone)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.link([1, 2], START)
        notes.save_receipt({"query": "use"}, [first.uid], START)
    storage.close()
    copy = backed_up(path)
    execute(path, "pragma foreign_keys = off", "pragma writable_schema = on", damage)
    assert check in problems(path)
    if check == "notes":
        assert "Dropped, because damaged: 1 receipt." in levels(repair(path, now=START), "note")
    else:
        not_repaired(path)
        replace_damaged(path, copy, space=SPACE, wait_s=1, now=START)
    assert problems(path, deep=True) == {}
    assert contents(path) == ["Use Fastify", "Use Postgres"]


@pytest.mark.parametrize("error", [ValueError, TypeError, AttributeError, KeyError, OverflowError])
def test_values_that_make_no_sense_end_one_check_and_not_the_examination(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    remember(path, "Use Fastify")

    def stumble(patient: object) -> Iterator[Finding]:
        raise error
        yield

    monkeypatch.setitem(check._CHECKS, "words", stumble)
    findings = examine(path, now=START)
    assert [f.message for f in findings if f.check == "words"] == ["The data for the check 'words' cannot be read."]
    assert findings[-1].check == "orphans"


# Surroundings -------------------------------------------------------------------------------------


def test_files_that_others_may_read_are_a_problem_that_repair_solves(path: Path) -> None:
    remember(path, "Use Fastify")
    path.chmod(0o644)
    assert "can read kept.db" in problems(path)["permissions"]
    [hint] = [found.hint for found in examine(path, now=START) if found.level == "problem"]
    assert hint == f"Run `chmod 600 {path}`.", "it works in any folder"
    repair(path, now=START)
    assert path.stat().st_mode & 0o777 == 0o600
    path.parent.chmod(0o777)
    assert "can replace kept.db" in problems(path)["permissions"]


def test_who_is_writing_is_a_note(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kept.storage.sqlite.health.check._TURN_WAIT_S", 0.01)
    storage = SqliteStorage(path, SPACE)
    with storage.writing(stamp()):
        notes = levels(examine(path, now=START), "note")
    storage.close()
    assert f"Process {os.getpid()} is writing right now." in notes
    assert "Not checked, because another process is writing." in notes


def test_the_age_of_the_newest_backup_is_told(path: Path) -> None:
    remember(path, "Use Fastify")
    assert "There is no backup yet." in levels(examine(path, now=START), "note")
    folder = path.with_name("kept.db.backups")
    folder.mkdir()
    shutil.copy(path, folder / "20260301-120000.db")
    made = START.timestamp()
    os.utime(folder / "20260301-120000.db", (made, made))
    [finding] = [f for f in examine(path, now=START + timedelta(days=9)) if f.check == "backups"]
    assert finding.message == "Backups: 1; days since the newest: 9."
    assert finding.level == "note"


def test_an_erasure_that_is_not_finished_is_a_note(path: Path) -> None:
    (gone,) = remember(path, "Use Fastify")
    change(path, lambda tx: tx.erase(gone))
    assert "Cleanup after an erase is pending." in levels(examine(path, now=START), "note")


# Any byte -----------------------------------------------------------------------------------------


def test_flipped_bytes_give_no_wrong_answer_without_an_error() -> None:
    """The short version of `python -m tests.storage.byte_flips`."""
    outcomes, failures = byte_flips.run(40, 1)
    assert failures == []
    assert sum(outcomes.values()) == 40


def test_a_damaged_page_costs_nothing_or_what_is_newer_than_the_backup() -> None:
    """The short version of `python -m tests.storage.damaged_pages`."""
    assert damaged_pages.run(40, 5, every=3).keys() == {"repaired, nothing lost", "restored, 5 memories lost"}


def test_the_flips_would_show_a_storage_that_checks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kept.storage.sqlite.rows.is_as_written", lambda noun, row: True)
    monkeypatch.setattr("kept.storage.sqlite.health.check._CHECKS", {})
    _, failures = byte_flips.run(30, 1)
    assert failures
