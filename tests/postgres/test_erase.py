"""Erased means gone from every table of the database, and its room is reclaimed."""

from pathlib import Path

import psycopg
import pytest

import kept
from tests.postgres.server import as_owner, emptied, shared_database
from tests.postgres.test_isolation import everything


def test_no_table_holds_a_word_of_what_was_erased(tmp_path: Path) -> None:
    url = emptied(shared_database())
    with kept.open(url, project="web-app", home=tmp_path, confirm=lambda _: True) as memory:
        ref = memory.remember("The launch code is swordfish", tags=["xyzzy"]).ref
        memory.remember("An innocent bystander of the launch")
        memory.revise(ref, "The launch code is plughville")
        memory.recall("launch code swordfish plughville")
        session = memory.session("s1")
        session.append("user", "By the way, the launch code is plughville")
        receipt = memory.erase(ref)
        assert "pending" not in receipt.message
        assert memory.store.doctor()[0].findings[0].level == "ok"
    left = repr(everything(url, "project/web-app"))
    assert "bystander" in left
    for word in ("swordfish", "plughvill", "xyzzy"):
        assert word not in left, word


def test_the_room_of_erased_rows_is_reclaimed(tmp_path: Path) -> None:
    url = emptied(shared_database())
    with psycopg.connect(as_owner(url), autocommit=True) as root:
        if root.info.server_version < 170000:
            pytest.skip("Only an owner may vacuum before PostgreSQL 17.")
        sql = "select vacuum_count from pg_stat_all_tables where schemaname = 'kept' and relname = 'memories'"
        before = root.execute(sql).fetchone()
        with kept.open(url, project="web-app", home=tmp_path, confirm=lambda _: True) as memory:
            memory.erase(memory.remember("The launch code is swordfish").ref)
        root.execute("select pg_stat_clear_snapshot()")
        assert root.execute(sql).fetchone() > before  # type: ignore[operator]
