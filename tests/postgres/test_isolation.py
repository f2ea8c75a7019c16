"""D1: nothing crosses from one space to another, for every verb, role and state of the pool."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from kept.errors import NotAllowed, StorageError
from kept.model import Alias, Memory, Message, SessionRecord, replace
from kept.ports import ANYWHERE, Reader, Stamp
from kept.storage.postgres import PostgresStorage, schema
from kept.storage.postgres.storage import number_of
from tests.builders import START, memory, stamp
from tests.postgres.server import as_member, as_owner, emptied, shared_database, superuser_url

CANARY = "parrot"
TABLES = (
    "select tablename from pg_tables where schemaname = 'kept' and tablename not in ('migrations', 'ties') order by 1"
)


@pytest.fixture
def url() -> str:
    return emptied(shared_database())


@pytest.fixture
def filled(url: str) -> Iterator[PostgresStorage]:
    """A space with something in every table."""
    storage = PostgresStorage(url, "project/theirs")
    with storage.writing(stamp()) as tx:
        first, second, gone = (tx.add(memory(f"{CANARY} {n}", space=storage.space, key=f"k{n}"), "x") for n in range(3))
        tx.add(Alias(word=CANARY, expands_to=("bird",)), "alias")
        tx.add(SessionRecord(name=CANARY, started_at=START), "session")
        tx.append([Message(id="m1", role="user", session=CANARY, content=f"the {CANARY} sings")])
        tx.append([Message(id="m1", role="user", session="packed", content=f"the {CANARY} sings")])
        tx.pack("packed")
        tx.erase(gone)
        tx.note_file("f", CANARY)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.choose_model("m1")
        notes.save_vectors("m1", [(first, bytes(32))])
        notes.link([first.id, second.id], START)
        notes.save_receipt({"query": CANARY}, [first.uid], START, session=CANARY)
        notes.count({CANARY: 1})
    yield storage
    storage.close()


@pytest.fixture
def ours(url: str) -> Iterator[PostgresStorage]:
    storage = PostgresStorage(url, "project/ours")
    yield storage
    storage.close()


def after_nothing(storage: PostgresStorage) -> None:
    pass


def after_an_error_in_python(storage: PostgresStorage) -> None:
    with suppress(RuntimeError), storage.writing(stamp()) as tx:
        tx.add(memory("half", space=storage.space), "x")
        raise RuntimeError


def after_an_error_in_sql(storage: PostgresStorage) -> None:
    with pytest.raises(StorageError), storage.reading() as reader:
        reader.view.fetch("select %(space)s / 0")  # type: ignore[attr-defined]


def after_an_error_in_a_write(storage: PostgresStorage) -> None:
    with pytest.raises((StorageError, NotAllowed)), storage.writing(stamp()) as tx:
        tx.view.run("insert into counters (space, name, number) values (%(space)s + 1, 'x', 1)")  # type: ignore


def after_a_lost_connection(storage: PostgresStorage) -> None:
    with storage.reading() as reader:
        pid = reader.view.bare.info.backend_pid  # type: ignore[attr-defined]
    with psycopg.connect(superuser_url(), autocommit=True) as root:
        root.execute("select pg_terminate_backend(%s::integer, 5000)", (pid,))


def after_another_space_used_the_connection(storage: PostgresStorage) -> None:
    with storage.reading() as reader:
        bare = reader.view.bare  # type: ignore[attr-defined]
        bare.execute(f"set kept.space = '{number_of('project/theirs')}'")


POOL_STATES = [
    after_nothing,
    after_an_error_in_python,
    after_an_error_in_sql,
    after_an_error_in_a_write,
    after_a_lost_connection,
    after_another_space_used_the_connection,
]

READS: dict[str, Callable[[Reader], object]] = {
    "get": lambda reader: reader.get(Memory, 1),
    "all": lambda reader: reader.all(Alias),
    "select": lambda reader: reader.select(ANYWHERE),
    "count": lambda reader: reader.count(ANYWHERE),
    "search": lambda reader: reader.search([CANARY], limit=5),
    "newest": lambda reader: reader.search([CANARY], limit=5, newest=True),
    "alike": lambda reader: reader.alike([[CANARY]], "memory", limit=5)[0],
    "vocabulary": lambda reader: reader.vocabulary("par", limit=5),
    "statistics": lambda reader: reader.statistics([CANARY]).rows,
    "events": lambda reader: reader.events(),
    "erased": lambda reader: reader.is_erased(memory(f"{CANARY} 2").fingerprint),
    "counters": lambda reader: reader.counters(),
    "file notes": lambda reader: reader.file_notes(),
    "links": lambda reader: reader.links(1),
    "receipt": lambda reader: reader.receipt(),
    "receipts of a session": lambda reader: reader.receipts_of(CANARY, limit=5),
    "session": lambda reader: reader.session(CANARY),
    "messages": lambda reader: reader.messages(CANARY) or reader.messages("packed"),
    "messages at": lambda reader: reader.messages_at([(CANARY, 1)]),
    "search messages": lambda reader: reader.search_messages([CANARY], limit=5),
    "message statistics": lambda reader: reader.message_statistics([CANARY]).rows,
    "vector state": lambda reader: reader.vector_state().model,
    "vectors": lambda reader: reader.vectors([1]),
    "vectorless": lambda reader: reader.vectorless(limit=5),
    "nearest": lambda reader: reader.nearest(bytes(32), limit=5),
}


@pytest.mark.parametrize("state", POOL_STATES, ids=lambda state: state.__name__)
def test_no_verb_reads_another_space(state: Any, filled: PostgresStorage, ours: PostgresStorage) -> None:
    with filled.reading() as reader:
        assert [name for name, read in READS.items() if not read(reader)] == [], "the canaries are there"
    state(ours)
    with ours.reading() as reader:
        assert [name for name, read in READS.items() if read(reader)] == []
    with ours.writing(stamp()) as tx:
        assert [name for name, read in READS.items() if read(tx)] == []


@pytest.mark.parametrize("state", POOL_STATES, ids=lambda state: state.__name__)
def test_no_verb_changes_another_space(state: Any, filled: PostgresStorage, ours: PostgresStorage, url: str) -> None:
    before = everything(url, "project/theirs")
    state(ours)
    with ours.writing(stamp()) as tx:
        added = tx.add(memory(f"{CANARY} 0", space=ours.space, key="k0"), "x")
        tx.put(replace(added, content="changed"), "x")
        tx.append([Message(id="m1", role="user", session=CANARY, content="ours")])
        tx.pack(CANARY)
        tx.erase_messages("packed")
        tx.erase_receipts()
        tx.note_file("f", None)
        tx.erase(added)
    with ours.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([1, 2], START)
        notes.link([1, 2], START)
        notes.choose_model(None)
        notes.drop_receipts([""])
    assert everything(url, "project/theirs") == before


def everything(url: str, space: str) -> dict[str, list[Any]]:
    with psycopg.connect(as_owner(url)) as root:
        root.execute("set search_path = kept")
        tables = [name for (name,) in root.execute(TABLES).fetchall()]
        asked = {name: f"select t::text from {name} t where space = %s order by 1" for name in tables}
        return {name: root.execute(sql, (number_of(space),)).fetchall() for name, sql in asked.items()}


@pytest.fixture
def raw(url: str) -> Iterator["psycopg.Connection[Any]"]:
    """A connection of the role that owns nothing, without Kept."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set search_path = kept")
        connection.execute("set citus.multi_task_query_log_level = off")  # these statements name no space
        yield connection


def test_a_transaction_that_names_no_space_sees_and_changes_nothing(
    filled: PostgresStorage, raw: "psycopg.Connection[Any]", url: str
) -> None:
    before = everything(url, "project/theirs")
    assert all(before[table] for table in before if table not in ("hot_words",)), "something is in every table"
    for (table,) in raw.execute(TABLES).fetchall():
        assert raw.execute(f"select * from {table}").fetchall() == [], table
        assert raw.execute(f"delete from {table}").rowcount == 0, table
        assert raw.execute(f"update {table} set space = space").rowcount == 0, table
    assert everything(url, "project/theirs") == before


def test_rows_of_another_space_cannot_be_written_or_moved(
    filled: PostgresStorage, raw: "psycopg.Connection[Any]"
) -> None:
    own, other = number_of("project/theirs"), number_of("project/ours")
    raw.execute(f"set kept.space = '{own}'")
    for (table,) in raw.execute(TABLES).fetchall():
        if raw.execute(f"select 1 from {table}").fetchone():
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                raw.execute(f"update {table} set space = {other}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw.execute("insert into counters (space, name, number) values (%s, 'x', 1)", (other,))
    with raw.transaction():
        raw.execute(f"set local kept.space = '{other}'")
        assert raw.execute("update memories set content = 'x' where space = %s", (own,)).rowcount == 0


def test_a_role_can_change_neither_the_wall_nor_the_tables(raw: "psycopg.Connection[Any]") -> None:
    for statement in (
        "alter table memories disable row level security",
        "drop policy own_space on memories",
        "create policy mine on memories using (true)",
        "truncate memories",
        "drop table memories",
        "update migrations set version = 9",
        "set role postgres",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(statement)


def test_a_tied_role_reaches_its_own_projects_only(filled: PostgresStorage, url: str) -> None:
    owner = as_owner(url)
    own = number_of("project/ours")
    schema.grant(owner, "kept_test_tied", [(own, "project/ours")])
    tied = as_member(url, url.split("?")[0].rsplit("/", 1)[1], "kept_test_tied")
    theirs = number_of("project/theirs")
    with psycopg.connect(tied, autocommit=True) as raw:
        raw.execute("set search_path = kept")
        with raw.transaction():
            raw.execute(f"set local kept.space = '{theirs}'")
            for (table,) in raw.execute(TABLES).fetchall():
                assert raw.execute(f"select * from {table}").fetchall() == [], table
    with pytest.raises(NotAllowed):
        PostgresStorage(tied, "project/theirs")
    storage = PostgresStorage(tied, "project/ours")
    with storage.writing(Stamp(group="g", at=START, actor="x")) as tx:
        tx.add(memory("ours", space=storage.space), "x")
    storage.close()
    schema.grant(owner, "kept_test_tied", [(theirs, "project/theirs")])
    again = PostgresStorage(tied, "project/theirs")
    with again.reading() as reader:
        assert reader.count() == 2
    again.close()
