"""Postings are packed in blocks of ids: searches find the same, and nothing is lost, doubled or left behind."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from bench import corpora
from psycopg import errors, sql

import kept
from kept.model import Memory, replace
from kept.ports import ANYWHERE, Where
from kept.storage.postgres import PostgresStorage, index, schema
from kept.storage.postgres.index import BLOCK, tokens_of
from kept.storage.shared import prepare
from kept.storage.sqlite import SqliteStorage
from tests.builders import memory, stamp
from tests.postgres.server import as_member, as_owner, emptied, new_database, shared_database
from tests.postgres.test_isolation import everything


@pytest.fixture
def url() -> str:
    return emptied(shared_database())


def stored(url: str) -> list[tuple[int, str, int]]:
    """Shelf, word and id of every posting, of all spaces."""
    with psycopg.connect(as_owner(url)) as root:
        found = root.execute("select shelf, word, block, places from kept.postings").fetchall()
    return sorted(
        (shelf, word, block * index.BLOCK + place) for shelf, word, block, places in found for place in places
    )


def expected(storage: PostgresStorage) -> list[tuple[int, str, int]]:
    """The same, as the memories say."""
    with storage.reading() as reader:
        live, archived = (reader.select(Where(shelf=shelf), limit=9_999) for shelf in ("live", "archive"))
        [(packed,)] = reader.view.fetch("select packed from heads where space = %(space)s")
    shelves = {0: live, 2: archived}
    return sorted(
        (shelf, word, one.id)
        for shelf, memories in shelves.items()
        for one in memories
        if one.id < packed
        for word in tokens_of(prepare(one))
    )


def fill(storage: Any, memories: list[Memory], at_once: int) -> None:
    for start in range(0, len(memories), at_once):
        with storage.writing(stamp(f"g{start}")) as tx:
            for one in memories[start : start + at_once]:
                tx.add(one, "remember")


def changed(storage: Any, seed: int) -> None:
    """Archive, forget, revise and erase some memories, old and new."""
    chance = random.Random(seed)
    with storage.reading() as reader:
        chosen = chance.sample(reader.select(limit=9_999), 40)
    for n, one in enumerate(chosen):
        with storage.writing(stamp(f"{seed} {n}")) as tx:
            if n % 4 == 0:
                tx.put(replace(one, status="archived", reason="expired"), "archive")
            elif n % 4 == 1:
                tx.put(replace(one, status="archived", reason="forgotten"), "forget")
            elif n % 4 == 2:
                tx.put(replace(one, content=f"{one.content} badugoq anew"), "revise")
            else:
                tx.erase(one)


def test_the_top_ten_are_those_of_sqlite_in_200_of_200_questions(url: str, tmp_path: Path) -> None:
    language = corpora.Zipf(1)
    memories = [*language.memories(1_100)]
    sides = (SqliteStorage(tmp_path / "kept.db", corpora.SPACE), PostgresStorage(url, corpora.SPACE))
    for side in sides:
        fill(side, memories, at_once=90)
        changed(side, 1)
    questions = language.questions(100, common=True) + language.questions(100, common=False)
    found = []
    for side in sides:
        with side.reading() as reader:
            found.append(
                [
                    [(hit.traits.id, hit.rank) for hit in reader.search(question.split(), ANYWHERE, limit=10)]
                    for question in questions
                ]
            )
        side.close()
    assert found[0] == found[1]
    assert sum(map(bool, found[0])) > 150


def test_the_newest_memories_have_no_postings_until_their_block_is_full(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    fill(storage, [memory(f"number{n}", space=storage.space) for n in range(BLOCK - 2)], at_once=100)
    assert stored(url) == []
    fill(storage, [memory(f"later{n}", space=storage.space) for n in range(2)], at_once=1)
    assert len({id for *_, id in stored(url)}) == BLOCK - 1  # ids begin at 1
    with storage.reading() as reader:
        for word in ("number0", "later0", "later1"):
            assert len(reader.search([word], limit=5)) == 1, word
        assert reader.vocabulary("later", limit=5) == ["later", "later0", "later1"]
    storage.close()


def test_postings_say_what_memories_say_after_any_change(url: str) -> None:
    storage = PostgresStorage(url, corpora.SPACE)
    fill(storage, [*corpora.Zipf(1).memories(600)], at_once=100)
    changed(storage, 2)
    assert stored(url) == expected(storage)
    assert len(stored(url)) > 15_000
    storage.close()


def test_an_import_of_ids_in_any_order_is_packed_once(url: str) -> None:
    storage = PostgresStorage(url, "project/p1")
    with storage.writing(stamp()) as tx:
        tx.view.reserve_ids({"memory": 10_000_000})
    fill(storage, [memory(f"number{n}", space=storage.space) for n in range(300)], at_once=300)
    assert stored(url) == expected(storage)
    with storage.reading() as reader:
        assert [hit.traits.id for hit in reader.search(["number7"], limit=5)] == [10_000_008]
    storage.close()


def test_writers_at_once_neither_lose_nor_double_postings(url: str) -> None:
    def write(writer: int) -> None:
        storage = PostgresStorage(url, "project/p1")
        own = [memory(f"writer{writer} says number{n} to all", space=storage.space) for n in range(90)]
        fill(storage, own, at_once=7)
        storage.close()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(write, writer) for writer in range(4)]:
            done.result()
    storage = PostgresStorage(url, "project/p1")
    assert stored(url) == expected(storage)
    with storage.reading() as reader:
        assert reader.statistics(["all", "writer2"]).rows_with == {"all": 360, "writer2": 90}
    storage.close()


def test_a_write_from_far_away_packs_as_well(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK", 4)
    monkeypatch.setattr(index, "FIRST_BLOCKS", 2)
    storage = PostgresStorage(url, "project/p1", is_far=True)

    def remember(n: int) -> int:
        with storage.writing(stamp(f"g{n}")) as tx:
            before = len(tx.search(["common"], limit=50))
            tx.add(memory(f"common number{n}", space=storage.space), "remember")
            return before

    def found(word: str) -> list[int]:
        with storage.reading() as reader:
            return [hit.traits.id for hit in reader.search([word], limit=50)]

    for n in range(18):
        assert storage.in_rounds(partial(remember, n)) == n
    assert stored(url) == expected(storage)
    assert {id for *_, id in stored(url)} == {*range(1, 16)}
    assert sorted(storage.in_rounds(lambda: found("common"))) == [*range(1, 19)]
    storage.close()


def test_no_block_holds_a_word_of_an_erased_memory(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK", 4)
    with kept.open(url, project="web-app", home=tmp_path, confirm=lambda _: True) as opened:
        ref = opened.remember("The launch code is swordfish", tags=["xyzzy"]).ref
        for n in range(9):
            opened.remember(f"Bystander number {n} of another launch, with its own story about topic{n}")
        assert any(word == "swordfish" for _, word, _ in stored(url))
        opened.erase(ref)
        assert [hit.memory.ref for hit in opened.recall("bystander launch")]
    left = repr(everything(url, "project/web-app"))
    assert "bystand" in left
    for word in ("swordfish", "xyzzy"):
        assert word not in left, word


def _of_an_owner_without_privileges(url: str) -> str:
    """Give the database to a role that row-level security holds for. Return its URL."""
    role, root = "kept_packing_owner", as_owner(url)
    with psycopg.connect(root, autocommit=True) as connection:
        name = connection.info.dbname
        with suppress(errors.DuplicateObject):
            connection.execute(f"create role {role} login createrole")
        owned = connection.execute("select tablename from pg_tables where schemaname = 'kept'").fetchall()
        for what in (f"database {name}", "schema kept", *(f"table kept.{table}" for (table,) in owned)):
            connection.execute(f"alter {what} owner to {role}")
        connection.execute(f"alter function kept.is_tied owner to {role}")
    return as_member(root, name, role)


def test_a_database_of_before_is_packed_by_its_migration() -> None:
    url = new_database()
    owner = as_owner(url)
    storage = PostgresStorage(url, "project/p1")
    fill(storage, [memory(f"common number{n}", space=storage.space) for n in range(300)], at_once=300)
    with psycopg.connect(owner) as root:  # as schema 2 had it
        root.execute("set search_path = kept")
        before = stored(url)
        first, second, third = schema.migrations()[:3]
        made = first.text[first.text.index("create table postings") :]
        root.execute("drop table postings")
        root.execute(sql.SQL(made[: made.index(";")]))
        [(space,)] = root.execute("select space from heads").fetchall()
        words = [
            (space, 0, word, n + 1) for n in range(300) for word in tokens_of(prepare(memory(f"common number{n}")))
        ]
        root.cursor().executemany("insert into postings values (%s, %s, %s, %s)", words)
        root.execute("alter table heads drop column packed")
        root.execute("delete from migrations where version = 3")
        for forced in ("heads", "postings"):
            root.execute(sql.SQL("alter table {} enable row level security").format(sql.Identifier(forced)))
            root.execute(sql.SQL("alter table {} force row level security").format(sql.Identifier(forced)))
    assert (second.version, third.version) == (2, 3)
    with pytest.raises(kept.errors.KeptError):
        fill(storage, [memory("too early", space=storage.space)], at_once=1)
    assert schema.initialise(_of_an_owner_without_privileges(url)).steps == 1
    fill(storage, [memory(f"later number{n}", space=storage.space) for n in range(300)], at_once=50)
    assert stored(url) == expected(storage)
    assert {*before} < {*stored(url)}
    with storage.reading() as reader:
        assert reader.statistics(["common", "later", "number7"]).rows_with == {
            "common": 300,
            "later": 300,
            "number7": 2,
        }
    storage.close()
