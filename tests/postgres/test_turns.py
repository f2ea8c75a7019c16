"""What a storage remembers between transactions, and what a turn to write sends and keeps."""

import re
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import kept
from kept.errors import Busy, StorageError
from kept.model import Alias
from kept.ports import ANYWHERE, Deadline, TooLate
from kept.storage.postgres import PostgresStorage, connection
from kept.storage.postgres import storage as storage_module
from kept.storage.postgres.storage import number_of
from tests.builders import FakeClock, memory, stamp
from tests.postgres import chaos
from tests.postgres.chaos import SPACE, new_server
from tests.postgres.server import (
    MEMBER,
    Server,
    as_member,
    as_owner,
    drop_database,
    emptied,
    is_cluster,
    new_database,
    shared_database,
    superuser_url,
)

WAITS = "select pid from pg_locks where not granted and locktype = 'relation' and %s = any(pg_blocking_pids(pid))"


@pytest.fixture
def url() -> str:
    return emptied(shared_database())


def write(storage: PostgresStorage, content: str) -> None:
    with storage.writing(stamp()) as tx:
        tx.add(memory(content, space=storage.space), "remember")


def test_a_reader_sees_what_another_connection_has_written_since(url: str) -> None:
    ours, theirs = PostgresStorage(url, "project/p1"), PostgresStorage(url, "project/p1")
    write(ours, "alpha one")
    for number in (1, 2):
        with ours.reading() as reader:
            assert reader.statistics(["alpha"]).rows == number
            assert len(reader.all(Alias)) == number - 1
        write(theirs, f"alpha and {number}")
        with theirs.writing(stamp()) as tx:
            tx.add(Alias(word=f"a{number}", expands_to=("b",)), "alias")
    ours.close()
    theirs.close()


def test_a_list_is_read_again_only_after_somebody_has_changed_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = PostgresStorage(url, "project/p1"), PostgresStorage(url, "project/p1")
    asked: list[str] = []
    fetch = connection.SpaceView.fetch

    def count(view: connection.SpaceView, sql: str, **values: Any) -> Any:
        asked.append(sql)
        return fetch(view, sql, **values)

    monkeypatch.setattr(connection.SpaceView, "fetch", count)

    def words_in_a_turn(add: str | None = None) -> tuple[list[str], int]:
        asked.clear()
        with ours.writing(stamp()) as tx:
            tx.add(memory(f"after {len(asked)} {add}", space=ours.space), "remember")
            if add:
                tx.add(Alias(word=add, expands_to=("x",)), "alias")
            found = [one.word for one in tx.all(Alias)]
        return found, sum("from records" in sql for sql in asked)

    write(ours, "alpha")
    assert words_in_a_turn() == ([], 1)
    assert words_in_a_turn() == ([], 0)
    assert words_in_a_turn(add="db") == (["db"], 1)
    assert words_in_a_turn() == (["db"], 1)
    assert words_in_a_turn() == (["db"], 0)
    with theirs.writing(stamp()) as tx:
        tx.add(Alias(word="k8s", expands_to=("y",)), "alias")
    assert words_in_a_turn() == (["db", "k8s"], 1)
    ours.close()
    theirs.close()


def test_a_turn_that_is_taken_back_leaves_nothing_known(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    write(storage, "alpha")
    with suppress(ZeroDivisionError), storage.writing(stamp()) as tx:
        tx.add(Alias(word="db", expands_to=("x",)), "alias")
        assert [one.word for one in tx.all(Alias)] == ["db"]
        raise ZeroDivisionError
    with storage.writing(stamp()) as tx:
        assert tx.all(Alias) == []
    storage.close()


@pytest.mark.parametrize("at", range(3, 7))
def test_a_connection_can_be_used_after_a_far_write_was_overtaken(
    at: int, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver prepares a statement when it is run for the sixth time, and may believe it although that failed."""
    ours, theirs = PostgresStorage(url, "project/p1", is_far=True), PostgresStorage(url, "project/p1")
    write(theirs, "first")
    with ours.lease("x"):  # ends with the statement `rollback`, so the next one is not news to the driver
        pass
    start, overtaken = ours._start, []

    def late(*how: Any) -> None:
        if number == at and not overtaken:
            overtaken.append(number)
            write(theirs, "overtakes")
        start(*how)

    slow = storage_module._IS_SAME.replace("select 1 / count(*)", "select pg_sleep(0.02), 1 / count(*)")
    monkeypatch.setattr(storage_module, "_IS_SAME", slow)  # all statements are sent before it fails
    monkeypatch.setattr(ours, "_start", late)
    for number in range(9):
        monkeypatch.setattr(ours, "_patience", 0)
        ours.in_rounds(partial(write, ours, f"number {number}"))
    with ours.reading() as reader:
        assert reader.count(ANYWHERE) == 11
    assert overtaken == [at]
    ours.close()
    theirs.close()


def lengths(url: str) -> list[int]:
    """How many tokens the weights say that each memory has, after 0 for the id 0."""
    with psycopg.connect(as_owner(url)) as root:
        found = root.execute("select lengths from kept.weights order by chunk").fetchall()
    return [*found[0][0][:4]]


def test_weights_of_a_turn_that_failed_are_not_written_by_the_next_one(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    write(storage, "alpha one")
    with suppress(ZeroDivisionError), storage.writing(stamp()) as tx:
        tx.add(memory("alpha two", space=storage.space), "remember")
        tx.add(memory("alpha three", space=storage.space), "remember")
        tx.search(["alpha"], limit=5)  # a read writes what was gathered
        raise ZeroDivisionError
    write(storage, "alpha two")
    assert [number > 0 for number in lengths(url)] == [False, True, True, False]
    storage.close()


def test_weights_of_a_far_write_that_failed_are_not_written_by_the_next_one(url: str) -> None:
    storage = PostgresStorage(url, "project/p1", is_far=True)

    other = PostgresStorage(url, "project/p1")

    def write_two() -> None:
        with storage.writing(stamp(), wait_s=0.05) as tx:
            tx.add(memory("alpha two", space=storage.space), "remember")
            tx.add(memory("alpha three", space=storage.space), "remember")

    storage.in_rounds(partial(write, storage, "alpha one"))
    with suppress(ZeroDivisionError), other.writing(stamp()):
        with pytest.raises(Busy):
            storage.in_rounds(write_two)
        raise ZeroDivisionError  # which changes nothing
    other.close()
    storage.in_rounds(partial(write, storage, "alpha two"))
    assert [number > 0 for number in lengths(url)] == [False, True, True, False]
    storage.close()


def test_a_far_write_sees_that_a_model_was_chosen_in_between(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = PostgresStorage(url, "project/p1", is_far=True), PostgresStorage(url, "project/p1")
    write(theirs, "first")
    start, chosen = ours._start, []

    def late(*how: Any) -> None:
        if not chosen:
            chosen.append("m1")
            with theirs.bookkeeping() as notes:
                assert notes is not None
                notes.choose_model("m1")
        start(*how)

    monkeypatch.setattr(ours, "_start", late)
    ours.in_rounds(partial(write, ours, "second"))
    with theirs.reading() as reader:
        assert [found.content for found in reader.vectorless(limit=5)] == ["first", "second"]
    ours.close()
    theirs.close()


def test_a_far_write_may_wait_for_its_turn_longer_than_for_a_commit(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "COMMIT_WAIT_S", 0.05)
    ours, theirs = PostgresStorage(url, "project/p1", is_far=True), PostgresStorage(url, "project/p1")
    write(theirs, "first")
    start, waiting = ours._start, threading.Event()

    def late(*how: Any) -> None:
        start(*how)
        waiting.set()

    monkeypatch.setattr(ours, "_start", late)
    with suppress(ZeroDivisionError), theirs.writing(stamp()):
        later = threading.Thread(target=ours.in_rounds, args=[partial(write, ours, "second")])
        later.start()
        assert waiting.wait(10)
        time.sleep(0.3)
        raise ZeroDivisionError  # which changes nothing
    later.join()
    with theirs.reading() as reader:
        assert reader.count(ANYWHERE) == 2
    ours.close()
    theirs.close()


def take_notes(storage: PostgresStorage) -> None:
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count({"recalls": 1})


def erase_all(storage: PostgresStorage) -> None:
    with storage.writing(stamp()) as tx:
        for one in tx.select():
            tx.erase(one)


@pytest.mark.parametrize("is_far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize(
    "work", [partial(write, content="second"), take_notes, erase_all], ids=["write", "notes", "erase"]
)
def test_where_shards_move_a_transaction_that_writes_reads_nothing_before_its_first_change(
    work: Any, is_far: bool, url: str
) -> None:
    """The test holds a lock that lets others read: the writer must wait for it with no other lock than that."""
    storage = PostgresStorage(url, "project/p1", is_far=is_far)
    storage._database.is_sharded = True
    write(storage, "first")
    with psycopg.connect(as_owner(url)) as root:
        root.execute("lock table kept.heads in share mode")
        writer = threading.Thread(target=storage.in_rounds, args=[partial(work, storage)])
        writer.start()
        pid = waiting_for_a_table(root)
        held = "select locktype, relation::regclass::text from pg_locks where pid = %s and granted and "
        own = root.execute(f"{held} locktype in ('relation', 'advisory')", (pid,)).fetchall()
        root.rollback()
    writer.join()
    assert own == []
    storage.close()


def test_where_shards_move_readers_and_a_lease_change_nothing(url: str) -> None:
    """Or a move would wait for as long as they go on, and all writers for the move."""
    storage = PostgresStorage(url, "project/p1")
    storage._database.is_sharded = True
    write(storage, "first")
    with psycopg.connect(as_owner(url)) as root:
        root.execute("lock table kept.heads in share mode")
        with storage.lease("upkeep") as is_held, storage.reading() as reader:
            assert is_held
            assert reader.count(ANYWHERE) == 1
    storage.close()


def test_a_storage_knows_whether_shards_can_move(url: str) -> None:
    PostgresStorage(url, "project/p1").close()
    for is_known in (False, True):
        storage = PostgresStorage(url, "project/p1", is_known=is_known)
        write(storage, f"known {is_known}")
        assert storage._database.is_sharded is is_cluster(superuser_url())
        storage.close()


def waiting_for_a_table(root: "psycopg.Connection[Any]") -> int:
    """Return the backend that waits for a lock that this connection holds."""
    end = time.monotonic() + 10
    while not (found := root.execute(WAITS, (root.info.backend_pid,)).fetchone()):
        assert time.monotonic() < end, "no writer waits"
    return int(found[0])


def test_a_project_whose_head_is_behind_its_rows_is_refused_a_write_and_doctor_is_named(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    write(storage, "first")
    with psycopg.connect(as_owner(url)) as root:
        back = "update kept.heads set last_ids = '{}', last_event = 0 where space = %s"
        root.execute(back, (number_of(storage.space),))
    with pytest.raises(StorageError, match="Nothing was changed") as refused:
        write(storage, "second")
    assert "kept doctor" in str(refused.value.hint)
    storage.close()


class HeldStorage(PostgresStorage):
    """A storage whose thread `older` stops after it has noted the state of the space."""

    def __init__(self, *where: str) -> None:
        self.noted, self.may_go_on = threading.Event(), threading.Event()
        super().__init__(*where)

    @property  # type: ignore[override]
    def _known(self) -> Any:
        return self.__dict__["_known"]

    @_known.setter
    def _known(self, value: Any) -> None:
        self.__dict__["_known"] = value
        if threading.current_thread().name == "older":
            self.noted.set()
            assert self.may_go_on.wait(10)


def test_a_reader_of_an_older_moment_leaves_none_of_its_rows_to_a_newer_one(url: str) -> None:
    ours, theirs = HeldStorage(url, "project/p1"), PostgresStorage(url, "project/p1")
    write(theirs, "alpha one")

    def read() -> int:
        with ours.reading() as reader:
            return len(reader.index.postings(["alpha"], ANYWHERE)["alpha"])

    found: list[int] = []
    older = threading.Thread(target=lambda: found.append(read()), name="older")
    older.start()
    assert ours.noted.wait(10)
    write(theirs, "alpha two")
    newer = read()
    ours.may_go_on.set()
    older.join()
    assert (found, newer, read()) == ([1], 2, 2)
    ours.close()
    theirs.close()


def test_a_first_reader_is_not_confused_by_a_thread_that_checks_in_the_meantime(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = PostgresStorage(url, "project/p1")
    write(before, "alpha one")
    storage = PostgresStorage(url, "project/p1", is_known=True)
    begun = storage._transaction

    @contextmanager
    def checked(**how: Any) -> Any:
        with begun(**how) as found:
            storage._is_checked = True
            yield found

    monkeypatch.setattr(storage, "_transaction", checked)
    with storage.reading() as reader:
        assert reader.count(ANYWHERE) == 1
    before.close()
    storage.close()


def test_a_connection_of_before_a_pooler_was_noticed_prepares_nothing_more(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    write(storage, "alpha one")
    with storage.reading() as reader:
        assert reader.view.bare.prepare_threshold is not None
    storage._database._pooler.set()
    with storage.reading() as reader:
        assert reader.view.bare.prepare_threshold is None
    storage.close()


def test_a_column_that_is_missing_names_the_migration() -> None:
    url = new_database()
    storage = PostgresStorage(url, "project/p1")
    with psycopg.connect(as_owner(url), autocommit=True) as root:
        root.execute("alter table kept.heads drop column packed")
    with pytest.raises(StorageError, match="made by another version of Kept"), storage.reading():
        pass
    storage.close()
    drop_database(url)


def test_a_reader_notices_another_history_of_the_same_length(url: str) -> None:
    """As after a failover to a standby that lacked the last writes."""
    storage = PostgresStorage(url, "project/p1")
    write(storage, "alpha")
    with storage.reading() as reader:
        assert reader.statistics(()).words == 1
    emptied(url)
    after = PostgresStorage(url, "project/p1")
    write(after, "beta gamma delta")
    with storage.reading() as reader:
        assert reader.statistics(()).words == 3
        assert [found.memory.content for found in reader.search(["gamma"], limit=5)] == ["beta gamma delta"]
    storage.close()
    after.close()


def test_a_search_with_a_deadline_loses_nothing_of_its_turn(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    with storage.writing(stamp()) as tx:
        tx.add(memory("alpha one", space=storage.space), "remember")
        assert tx.search(["alpha"], limit=5, deadline=Deadline(lambda: 0.0, 5.0))
        tx.add(memory("alpha two", space=storage.space), "remember")
    with storage.reading() as reader:
        assert len(reader.search(["alpha"], limit=5)) == 2
    storage.close()


def test_a_slow_statement_of_a_large_space_is_cancelled_and_the_reader_goes_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "EXACT_UP_TO_ROWS", 0)
    storage = PostgresStorage(url, "project/p1")
    write(storage, "alpha one")
    with storage.reading() as reader:
        deadline = Deadline(time.monotonic, time.monotonic() + 0.05)
        with pytest.raises(TooLate), reader.view.until(deadline):
            reader.view.fetch("select pg_sleep(20), %(space)s")
        assert time.monotonic() < deadline.at + 10
        assert reader.search(["alpha"], limit=5)
    storage.close()


def test_a_commit_that_no_standby_confirms_ends_with_an_error_and_a_retry_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage_module, "COMMIT_WAIT_S", 0.5)
    superuser_url()  # skips where no server can run
    server, url = new_server("synchronous_standby_names=nobody", "synchronous_commit=local")
    try:
        storage = PostgresStorage(url, SPACE)
        with psycopg.connect(server.url, autocommit=True) as root:
            root.execute(f"alter role {MEMBER} set synchronous_commit = remote_apply")
        storage.close()
        storage = PostgresStorage(url, SPACE)
        for _ in range(2):
            with pytest.raises(StorageError, match="no standby has confirmed"):
                chaos.write(storage, "k1")
        assert chaos.check(url, [("k1", 0.0)]) == 0
        storage.close()
    finally:
        server.stop()


def test_where_nothing_can_be_written_recall_answers_and_takes_no_notes(tmp_path: Path) -> None:
    """As on a standby."""
    superuser_url()
    server, url = new_server("wal_level=replica", "max_wal_senders=4")
    standby = Server((*chaos.DURABLE, "hot_standby=on"))
    try:
        with kept.open(url, project="web-app", home=tmp_path / "ann") as memory:
            memory.remember("The web app is deployed with Terraform")
        arguments = ("-h", server.folder, "-U", "postgres", "-D", standby.data, "-R", "-c", "fast", "-N")
        server.run("pg_basebackup", *arguments)
        standby.start()
        with kept.open(as_member(standby.url, "chaos"), project="web-app", home=tmp_path / "bob") as memory:
            assert memory.recall("deployed terraform").hits
            assert memory.recall("deployed terraform").receipt is None
            with pytest.raises(StorageError, match="is a standby"):
                memory.remember("something")
    finally:
        standby.stop()
        server.stop()


def test_odd_characters_come_back_from_every_column(url: str) -> None:
    odd = "a\0b \ue0000 \\ \" ' {,} %s é 漢"
    storage = PostgresStorage(url, "project/p1")
    with storage.writing(stamp()) as tx:
        stored = tx.add(
            memory(odd, space=storage.space, tags=(odd, ""), files=(odd,), topic=odd, data={odd: [odd]}), "remember"
        )
        tx.note_file(odd, odd)
    with storage.reading() as reader:
        assert reader.get(type(stored), stored.id) == stored
        assert reader.file_notes("a\0") == {odd: odd}
    storage.close()


def test_recall_and_a_batch_take_few_statements(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement costs about 80 microseconds of the client and the server, whatever it does."""
    sent: list[Any] = []
    execute = psycopg.Cursor.execute

    def spy(self: Any, query: Any, *values: Any, **how: Any) -> Any:
        if not re.match("begin|set local|select pg_.*advisory", str(query)):  # they are sent with the first statement
            sent.append(query)
        return execute(self, query, *values, **how)

    monkeypatch.setattr(psycopg.Cursor, "execute", spy)
    with kept.open(url, project="web-app", home=tmp_path, clock=FakeClock()) as web_app:
        drafts = [f"The service {n} of the harbor listens on port {4000 + n}" for n in range(100)]
        web_app.remember_many(drafts)
        sent.clear()
        web_app.remember_many([f"{draft} in test" for draft in drafts])
        in_batch = len(sent)
        web_app.recall("harbor port")
        sent.clear()
        assert web_app.recall("harbor port").hits
        in_recall = len(sent)
    assert in_batch <= 70
    assert in_recall <= 18
