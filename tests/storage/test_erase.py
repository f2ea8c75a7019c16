"""What is erased is gone: from the file, its WAL, its indexes, its backups. `erase_canaries.py` is the long version."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import kept
from kept import text
from kept.model import Conflict, Memory, Message, replace
from kept.ports import ANYWHERE
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.sqlite import SqliteStorage, backup, erase, health
from kept.storage.sqlite.encoding import uid_blob
from kept.storage.sqlite.erase import sweep
from kept.storage.sqlite.pages import dirty_gaps
from tests.behind import behind, seal
from tests.builders import START, FakeClock, memory, stamp
from tests.contract.benches import BENCHES
from tests.storage import erase_canaries
from tests.storage.canaries import Aviary, found_in


@pytest.mark.parametrize("paused_reader", [False, True], ids=["alone", "with a paused reader"])
def test_no_byte_of_a_canary_is_left_in_the_home(paused_reader: bool, tmp_path: Path) -> None:
    """A15: text, tags, topic, key, files, title, data and source, in all versions and in the daily backup."""
    report = erase_canaries.run(tmp_path, canaries=60, others=500, paused_reader=paused_reader)
    assert report.found_before > 4_000
    assert report.found_after == {}


def test_no_byte_of_an_erased_conversation_is_left_in_the_home(tmp_path: Path) -> None:
    """Sentences, messages and sessions: packed, forked, mirrored, summarised, and in the daily backup."""
    talk = erase_canaries.run_talk(tmp_path)
    assert talk.found_before > 100
    assert talk.found_after == {}
    assert {"memories", "messages", "sessions", "quoting messages", "files", "backups"} <= talk.found.keys()


@pytest.mark.parametrize("left_out", ["the WAL", "the backups", "the payloads"])
def test_the_search_for_canaries_would_notice(left_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if left_out == "the WAL":
        monkeypatch.setattr(erase, "finish", lambda *_: True)
    elif left_out == "the backups":
        monkeypatch.setattr(backup, "erase_from_backups", lambda *_: 1)
    else:
        erase_only_the_row = "delete from memories where uid = ?"
        monkeypatch.setattr(
            "kept.storage.sqlite.writer.erase_rows", lambda tx, uid: tx.execute(erase_only_the_row, (uid_blob(uid),))
        )
    with pytest.raises(AssertionError):
        assert erase_canaries.run(tmp_path, canaries=20, others=100).found_after == {}


def test_copies_that_sqlite_leaves_in_its_pages_are_swept(tmp_path: Path) -> None:
    """When a page is split, the rows that move away stay readable in it, whatever `secure_delete` says."""
    path, dice = tmp_path / "split.db", random.Random(1)
    database = behind(path)
    database.pragma("synchronous", "off")
    database.pragma("secure_delete", True)
    database.execute("create table t (id integer primary key, body text)")
    ids = dice.sample(range(10_000), 1_000)
    doomed = set(ids[::2])
    name = {id: "canary" if id in doomed else "bystander" for id in ids}
    database.executemany("insert into t values (?, ?)", [(id, name[id] * dice.randint(1, 60)) for id in ids])
    for id in dice.sample(ids, 500):
        database.execute("update t set body = ? where id = ?", (name[id] * dice.randint(60, 200), id))
    database.executemany("delete from t where id = ?", [(id,) for id in doomed])
    rows = database.execute("select * from t").fetchall()
    database.close()
    assert b"canary" in path.read_bytes(), "this SQLite leaves nothing behind: the sweep is no longer needed"
    assert sweep(path) > 0
    assert b"canary" not in path.read_bytes()
    assert sweep(path) == 0
    database = behind(path)
    assert database.pragma("integrity_check") == "ok"
    assert database.execute("select * from t").fetchall() == rows
    database.close()


def test_sweeping_changes_nothing_that_sqlite_can_see(tmp_path: Path) -> None:
    path, dice = tmp_path / "any.db", random.Random(7)
    database = behind(path)
    database.pragma("synchronous", "off")
    database.execute("create table t (k text primary key, body blob) without rowid; create table u (body text)")
    for _ in range(3_000):
        key = str(dice.randrange(500))
        database.execute("insert or replace into t values (?, zeroblob(?))", (key, dice.choice([3, 300, 9_000])))
        database.execute("insert into u values (?)", (key * dice.randrange(100),))
        database.execute("delete from t where k = ?", (str(dice.randrange(500)),))
    before = database.execute("select * from t").fetchall(), database.execute("select * from u").fetchall()
    database.close()
    assert sweep(path) > 0
    database = behind(path)
    assert database.pragma("integrity_check") == "ok"
    assert before == (database.execute("select * from t").fetchall(), database.execute("select * from u").fetchall())
    database.close()


def test_damage_keeps_an_erasure_pending_and_nobody_from_opening(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "m.db", "project/p1")
    with storage.writing(stamp()) as tx:
        gone, stays = (tx.add(memory(content), "remember") for content in ("the launch code", "a bystander"))
    with storage.writing(stamp()) as tx:
        tx.erase(gone)
    storage.close()
    connection = behind(storage.path)
    page: Any = connection.execute("select rootpage from sqlite_schema where name = 'meta'").get
    connection.close()
    content = bytearray(storage.path.read_bytes())
    content[(page - 1) * 4096 + 1] = 0xF8  # where its first free block is: beyond the page
    storage.path.write_bytes(content)
    seal(storage.path)
    storage = SqliteStorage(storage.path)
    assert storage.describe()["erase"] == "pending"
    with storage.reading() as reader:
        assert reader.select(ANYWHERE) == [stays]
    storage.close()
    assert [finding for finding in health.examine(storage.path, now=START) if finding.level == "problem"]


def test_a_damaged_page_is_not_swept(tmp_path: Path) -> None:
    """What it calls a gap may be rows, which could still be saved: nothing but gaps is ever overwritten."""
    path, dice = tmp_path / "damaged.db", random.Random(2)
    database = behind(path)
    database.pragma("synchronous", "off")
    database.execute("create table t (k text primary key, body text)")
    for number in range(600):
        body = f"{number} " * dice.choice([1, 20, 80, 1_200])
        database.execute("insert or replace into t values (?, ?)", (str(dice.randrange(150)), body))
    database.close()
    whole = path.read_bytes()
    gaps = dirty_gaps(whole, True, 4096)
    refused = 0
    for page, first, last in gaps * 3:
        damaged = bytearray(whole)
        damaged[page + (100 if page == 0 else 0) + dice.randrange(20)] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        try:
            sweep(path)
        except apsw.CorruptError:
            refused += 1
        after, end = path.read_bytes(), page + 4096
        assert (after[page:first], after[last:end]) == (bytes(damaged[page:first]), bytes(damaged[last:end]))
    assert refused > len(gaps)


def test_a_memory_added_changed_and_erased_in_one_transaction_leaves_nothing(tmp_path: Path) -> None:
    aviary = Aviary(3)
    storage = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        for _ in range(50):
            added = tx.add(aviary.canary(), "remember")
            added = tx.put(replace(added, content=f"{aviary.word()} {added.content}"), "revise")
            tx.erase(added)
    assert storage.scrub().is_done
    storage.close()
    assert found_in(tmp_path, aviary.traces()) == {}


def test_what_is_written_after_an_erasure_does_not_bring_old_bytes_back(tmp_path: Path) -> None:
    """Every connection forgets the pages it has read before the file was cleaned beneath it."""
    aviary, storage = Aviary(4), SqliteStorage(tmp_path / "kept.db")
    other_process = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        canaries = [tx.add(aviary.canary(), "remember") for _ in range(200)]
        others = [tx.add(memory(aviary.prose()), "remember") for _ in range(200)]
    for place in (storage, other_process):
        with place.writing(stamp()) as tx:
            for number in range(0, 200, 2):
                longer = f"{tx.get(Memory, canaries[number].id).content} {aviary.prose(80)}"  # type: ignore[union-attr]
                canaries[number] = tx.put(replace(canaries[number], content=longer), "revise")
            tx.select(ANYWHERE, limit=1_000)
    with storage.writing(stamp()) as tx:
        for canary in canaries:
            tx.erase(canary)
    assert storage.scrub().is_done
    for place in (storage, other_process):
        with place.writing(stamp()) as tx:
            for other in others:
                tx.put(replace(other, content=f"{other.content} {aviary.prose()}"), "revise")
    shutil.copytree(tmp_path, tmp_path / "copy")  # while the WAL is still there
    traces = aviary.traces()
    storage.close()
    other_process.close()
    assert found_in(tmp_path, traces) == {}


def test_erased_messages_are_gone_also_from_packed_sessions_and_backups(tmp_path: Path) -> None:
    aviary, storage = Aviary(5), SqliteStorage(tmp_path / "kept.db")

    def message(session: str, number: int) -> Message:
        return Message(
            session=session, id=f"m{number}", role="user", content=f"{aviary.word()} {aviary.prose()}", at=START
        )

    with storage.writing(stamp()) as tx:
        tx.append([message(session, number) for session in ("packed", "open", "whole") for number in range(40)])
        tx.append([Message(session="open", id="stays", role="user", content="innocent words", at=START)])
        tx.pack("packed")
    storage.back_up(backup.make_folder(tmp_path / "kept.db") / "2026-03-01.db")
    with storage.writing(stamp(), urgent=True) as tx:
        for session in ("packed", "open"):
            assert tx.erase_messages(session, [f"m{number}" for number in range(40)]) == 40
        tx.erase_messages("whole")
    storage.scrub()
    with storage.reading() as reader:
        assert [m.content for m in reader.messages("open")][-1] == "innocent words"
    storage.close()
    assert backup.verify(backup.backups_of(tmp_path / "kept.db")[0])
    assert found_in(tmp_path, aviary.traces()) == {}


def test_an_erasure_that_had_to_wait_is_finished_by_the_next_scrub(tmp_path: Path) -> None:
    aviary, storage = Aviary(6), SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        canary = tx.add(aviary.canary(), "remember")
    with paused_reader(tmp_path / "kept.db"):
        with storage.writing(stamp(), urgent=True) as tx:
            tx.erase(canary)
        assert not storage.scrub().is_done
        assert storage.describe()["erase"] == "pending"
    assert storage.scrub().is_done
    assert "erase" not in storage.describe()
    storage.close()
    assert found_in(tmp_path, aviary.traces()) == {}


def test_a_separator_may_end_in_the_middle_of_a_character(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        for number in range(400):
            tx.add(memory(f"秘{chr(0x4E00 + number)} {chr(0x5B00 + number)}密"), "remember")
    storage.close()
    connection = behind(tmp_path / "kept.db")
    connection.execute("insert into live_fts (live_fts, rank) values ('pgsz', 64)")
    connection.execute("insert into live_fts (live_fts) values ('rebuild')")
    terms = [bytes(term)[1:] for (term,) in connection.execute("select term from live_fts_idx")]
    assert any(term.decode("utf-8", "ignore").encode() != term for term in terms)
    for term in terms:
        found = erase.first_word_from(connection, "live", term)
        assert found is not None
        assert found.startswith(term)
    connection.close()
    storage = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        for doomed in tx.select(limit=1_000)[::3]:
            tx.erase(doomed)
    storage.close()
    connection = behind(tmp_path / "kept.db")
    assert erase_canaries.stray_separators(connection, "live") == []
    connection.execute("insert into live_fts (live_fts, rank) values ('integrity-check', 1)")
    connection.close()


@pytest.mark.parametrize("seed", range(3))
def test_an_index_whose_pages_run_empty_still_finds_everything(seed: int, tmp_path: Path) -> None:
    """Tiny pages, runs of neighbouring words erased at the beginning, in the middle and at the end of the index."""
    dice = random.Random(seed)
    storage = SqliteStorage(tmp_path / "kept.db")
    words = sorted({f"{dice.choice('aeou秘密')}{dice.randrange(10_000):04}" for _ in range(400)})
    with storage.writing(stamp()) as tx:
        tx.view.connection.execute("insert into live_fts (live_fts, rank) values ('pgsz', 64)")
        for start in range(0, len(words), 100):
            for word in words[start : start + 100]:
                tx.add(memory(word), "remember")
            tx.view.connection.execute("insert into live_fts (live_fts) values ('optimize')")
    while len(words) > 3:
        first = dice.choice([0, dice.randrange(len(words)), len(words) - 40])
        doomed, words = set(words[max(0, first) : first + 60]), words[: max(0, first)] + words[first + 60 :]
        with storage.writing(stamp()) as tx:
            for m in tx.select(limit=1_000):
                if m.content in doomed:
                    tx.erase(m)
        with storage.reading() as reader:
            for word in words:
                assert [hit.memory.content for hit in reader.search(text.words(word)[:1], limit=700)].count(word) == 1
            reader.view.connection.execute("insert into live_fts (live_fts, rank) values ('integrity-check', 1)")
            assert erase_canaries.stray_separators(reader.view.connection, "live") == []
    storage.close()


def test_a_common_word_is_forgotten_when_the_last_memory_with_it_goes(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        doomed = tx.add(memory("zebrafish zebrafish"), "remember")
        tx.add(memory("haddock"), "remember")
        words = [("live", "zebrafish", 500), ("live", "haddock", 500)]
        tx.view.connection.executemany("insert into hot_words (shelf, word, rows_with) values (?, ?, ?)", words)
    with storage.writing(stamp()) as tx:
        tx.erase(doomed)
        left = tx.view.connection.execute("select word from hot_words").fetchall()
    with storage.reading() as reader:
        left = reader.view.connection.execute("select word from hot_words").fetchall()
    assert left == [("haddock",)]
    storage.close()


@pytest.mark.parametrize("kind", BENCHES)
def test_no_version_of_an_erased_memory_can_be_imported_again(kind: str, tmp_path: Path) -> None:
    storage = BENCHES[kind](tmp_path).open()
    with storage.writing(stamp()) as tx:
        first = tx.add(memory("the first version"), "remember")
        second = tx.put(replace(first, content="the second", fingerprint=memory("the second").fingerprint), "revise")
    with storage.writing(stamp()) as tx:
        tx.erase(second)
    with storage.reading() as reader:
        assert reader.is_erased(first.fingerprint)
        assert reader.is_erased(second.fingerprint)
    storage.close()


def test_no_byte_is_left_in_a_json_store(tmp_path: Path) -> None:
    """The store, its `.bak`, and the damaged copies that were kept of it."""
    aviary, path = Aviary(8), tmp_path / "store.json"
    storage = JsonFileStorage(path, "project/p1")
    with storage.writing(stamp()) as tx:
        canaries = [tx.add(aviary.canary(), "remember") for _ in range(20)]
    with storage.writing(stamp()) as tx:
        tx.add(memory("an innocent bystander"), "remember")
    storage.close()
    path.write_bytes(path.read_bytes()[:-50])  # damaged: the next write goes on from the backup and keeps this
    storage = JsonFileStorage(path, "project/p1")
    with storage.writing(stamp()) as tx:
        tx.add(memory("written after the damage"), "remember")
    assert any(".damaged" in name for name in found_in(tmp_path, aviary.traces()))
    with storage.writing(stamp(), urgent=True) as tx:
        for canary in canaries:
            tx.erase(canary)
    assert storage.scrub().is_done
    storage.close()
    assert found_in(tmp_path, aviary.traces()) == {}


def test_a_copy_that_cannot_be_cleaned_is_deleted(tmp_path: Path) -> None:
    """Damaged copies, and backups from before an upgrade: better no copy than one with what was erased."""
    aviary, path = Aviary(9), tmp_path / "kept.db"
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        canary = tx.add(aviary.canary(), "remember")
    folder = backup.make_folder(path)
    for name in ("schema-0.db", "2026-01-01.db", "2026-01-02.db"):
        storage.back_up(folder / name)
    older = behind(folder / "schema-0.db")
    older.pragma("user_version", 0)
    older.close()
    damage(folder / "2026-01-01.db")
    shutil.copy(folder / "2026-01-02.db", tmp_path / "kept.db.damaged-1")
    (folder / "interrupted.db.1234.part").write_bytes((folder / "2026-01-02.db").read_bytes())
    with storage.writing(stamp()) as tx:
        tx.erase(canary)
    assert storage.scrub().backups == 4
    storage.close()
    assert [copy.name for copy in backup.backups_of(path)] == ["2026-01-02.db"]
    assert found_in(tmp_path, aviary.traces()) == {}


def test_a_backup_that_was_begun_before_an_erasure_does_not_keep_what_is_gone(tmp_path: Path) -> None:
    aviary, path = Aviary(10), tmp_path / "kept.db"
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        canary = tx.add(aviary.canary(), "remember")
        tx.add(memory("an innocent bystander"), "remember")
    looks = 0

    def is_stopped() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:  # the copy is made, and not named yet
            with storage.writing(stamp()) as tx:
                tx.erase(canary)
            storage.scrub()
        return False

    (tmp_path / "elsewhere").mkdir()
    storage._make_backup(tmp_path / "elsewhere" / "copy.db", is_stopped)
    assert looks == 2
    assert storage.scrub().is_done
    storage.close()
    assert backup.verify(tmp_path / "elsewhere" / "copy.db")[0] == 1
    assert found_in(tmp_path, aviary.traces()) == {}


def test_backups_that_a_person_wrote_into_the_home_are_cleaned(tmp_path: Path) -> None:
    """Those elsewhere, and those that cannot be changed, are named instead."""
    aviary, home, secret = Aviary(3), tmp_path / "home", "Xkrtpqwzmn ghjkmnpq"
    aviary.words |= set(secret.lower().split())
    with kept.open(project="p", home=home, clock=FakeClock(), confirm=lambda _: True) as memory_:
        made = memory_.remember(f"The {secret} of the project").ref
        shared = memory_.remember(f"I prefer {aviary.word()} everywhere", kind="preference", tier="global").ref
        memory_.recall(f"{secret} everywhere")
        (home / "copies").mkdir()
        damaged = home / "copies" / "damaged.db"
        for target in (home / "mine.db", home / "copies" / "old.db", damaged, tmp_path / "elsewhere.db"):
            memory_.store.backup(target)
        memory_.store.backup(home / "shared.db", tier="global")
        damaged.write_bytes(b"not a database any more")
        memory_.store.backup(tmp_path / "home" / "locked.db")
    locked = apsw.Connection(str(home / "locked.db"))
    locked.execute("begin exclusive")
    before = found_in(home, aviary.traces())
    assert {"mine.db", "copies/old.db", "shared.db"} <= before.keys()
    with kept.open(project="p", home=home, clock=FakeClock(), confirm=lambda _: True) as memory_:
        receipts = memory_.erase([made, shared])
    locked.close()
    (home / "locked.db").unlink()
    message = receipts[0].message
    assert str(tmp_path / "elsewhere.db") in message
    assert str(damaged) in message
    assert "locked.db" in message
    assert "mine.db" not in message
    assert found_in(home, aviary.traces()) == {}
    assert damaged.read_bytes() == b"not a database any more"
    for copy in ("mine.db", "copies/old.db", "shared.db"):
        backup.verify(home / copy)
    with kept.open(project="p", home=home, clock=FakeClock()) as memory_:
        assert memory_.store.restore(home / "mine.db", overwrite_newer=True).memories == 0


def test_the_receipt_names_backups_out_of_reach_that_hold_it(tmp_path: Path) -> None:
    with kept.open(project="p", home=tmp_path / "home", clock=FakeClock()) as memory_:
        early = memory_.remember("known before any backup").memory
        memory_.store.backup(tmp_path / "a.db")
        memory_.store.backup(tmp_path / "b.db")
        late = memory_.remember("learnt after both backups").memory
        assert early is not None
        assert late is not None
        (tmp_path / "b.db").unlink()
        assert "backups" not in memory_.erase(late.ref).message
        receipt = memory_.erase(early.ref)
    assert receipt.reason == "erased"
    assert str(tmp_path / "a.db") in receipt.message
    assert str(tmp_path / "b.db") not in receipt.message
    assert "known" not in receipt.message


def test_many_are_erased_as_one_call(tmp_path: Path) -> None:
    with kept.open(tmp_path / "memory.db", clock=FakeClock()) as memory_:
        refs = [memory_.remember(f"a thing to erase, number {number}").ref or "" for number in range(12)]
        receipts = memory_.erase([*refs[:10], refs[0]])
        assert [receipt.reason for receipt in receipts] == ["erased"] * 11
        assert [receipt.ref for receipt in receipts] == [*refs[:10], refs[0]]
        assert {m.ref for m in memory_.list()} == set(refs[10:])
        groups = {event.group for event in memory_.history(limit=1_000) if event.action == "erase"}
        assert len(groups) == 1
        with pytest.raises(kept.NotFound):
            memory_.erase(refs[0])


def test_a_conflict_goes_with_either_of_its_memories(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    with storage.writing(stamp()) as tx:
        left, right = tx.add(memory("use tabs"), "remember"), tx.add(memory("use spaces"), "remember")
        tx.add(Conflict(left=left.uid, right=right.uid, type="contradictory", detected_at=START), "conflict")
    with storage.writing(stamp()) as tx:
        tx.erase(right)
    with storage.reading() as reader:
        assert reader.all(Conflict) == []
        assert [event.changed is None for event in reader.events()] == [False, True, True, False]
    storage.close()


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))


@contextmanager
def paused_reader(path: Path) -> Iterator[None]:
    with erase_canaries.reader(path, is_there=True):
        yield
