"""What a storage remembers between transactions, and what a turn to write sends and keeps."""

import re
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

import kept
from kept.errors import StorageError
from kept.model import Alias
from kept.ports import Deadline, TooLate
from kept.storage.postgres import PostgresStorage, connection
from kept.storage.postgres import storage as storage_module
from tests.builders import FakeClock, memory, stamp
from tests.postgres import chaos
from tests.postgres.chaos import SPACE, new_server
from tests.postgres.server import MEMBER, Server, as_member, emptied, shared_database, superuser_url


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
