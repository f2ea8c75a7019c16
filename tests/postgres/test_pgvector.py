"""pgvector, where it is there: it chooses candidates on the server, and the answers stay the same."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from kept import vectors
from kept.ports import Where
from kept.storage.postgres import PostgresStorage, schema
from kept.storage.postgres.reader import SHORTLIST
from tests.builders import START, memory, stamp
from tests.contract import promises
from tests.postgres.server import as_owner, drop_database, new_database
from tests.postgres.test_pgbouncer import PooledBench as UrlBench

np = pytest.importorskip("numpy")
MEMORIES, WIDTH = 300, 32


@pytest.fixture
def url() -> Iterator[str]:
    """A database with pgvector that was initialised after it came."""
    made = new_database()
    with psycopg.connect(as_owner(made), autocommit=True) as root:
        if not root.execute("select 1 from pg_available_extensions where name = 'vector'").fetchone():
            pytest.skip("This PostgreSQL has no pgvector: nothing about it was tested.")
        root.execute("create extension vector schema public")
    schema.initialise(as_owner(made))
    yield made
    drop_database(made)


def filled(url: str) -> tuple[PostgresStorage, list[bytes]]:
    storage = PostgresStorage(url, "project/p1")
    with storage.writing(stamp()) as tx:
        kept = [tx.add(memory(f"memory {n}", kind="fact" if n % 3 else "warning"), "remember") for n in range(MEMORIES)]
    made = vectors.pack(np.random.default_rng(7).normal(size=(MEMORIES, WIDTH)))
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.choose_model("m")
        notes.save_vectors("m", [*zip(kept, made, strict=True)])
    return storage, made


def answers(storage: PostgresStorage, asked: list[bytes]) -> list[list[tuple[int, float]]]:
    with storage.reading() as reader:
        return [
            [(found.memory.id, found.rank) for found in reader.nearest(vector, where, limit=7)]
            for vector in asked
            for where in (Where(), Where(kinds=("warning",)))
        ]


def test_the_answers_are_those_of_an_exact_search(url: str) -> None:
    storage, made = filled(url)
    asked = vectors.pack(np.random.default_rng(8).normal(size=(20, WIDTH))) + made[:5]
    proposed = answers(storage, asked)
    assert all(proposed)
    with psycopg.connect(as_owner(url), autocommit=True) as root:
        root.execute("update kept.vectors set near = null where id % 2 = 0")  # as those from before it was there
        assert answers(storage, asked) == proposed
        root.execute("alter table kept.vectors drop column near")
    storage.close()
    exact = PostgresStorage(url, "project/p1")
    assert answers(exact, asked) == proposed
    exact.close()


def test_only_a_few_vectors_leave_the_server(url: str) -> None:
    storage, made = filled(url)
    with storage.reading() as reader:
        fetch, seen = reader.view.fetch, []

        def spy(sql: str, **values: Any) -> list[tuple[Any, ...]]:
            found = fetch(sql, **values)
            seen.append((sql, len(found)))
            return found

        reader.view.fetch = spy  # type: ignore[method-assign]
        reader.nearest(made[0], limit=5)
    ((_, rows),) = [one for one in seen if "<=>" in one[0]]
    assert rows == SHORTLIST * 5
    storage.close()


@pytest.mark.parametrize("promise", [one for one in promises.PROMISES if "vector" in one.__name__])
def test_every_promise_about_vectors_is_kept(url: str, promise: Any) -> None:
    bench = UrlBench(url)
    try:
        promise(bench)
    finally:
        bench.close()


def test_a_vector_is_erased_with_its_memory(url: str) -> None:
    storage, _ = filled(url)
    with storage.writing(stamp(at=START)) as tx:
        tx.erase(tx.select(Where(), limit=1)[0])
    with psycopg.connect(as_owner(url)) as root:
        assert root.execute("select count(*) from kept.vectors").fetchone() == (MEMORIES - 1,)
    storage.close()
