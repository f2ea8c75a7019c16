"""B16: the rules of the schema, by which it can be sharded by space, and the plans of the statements that matter."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kept import text
from kept.ports import Where
from kept.storage.postgres import PostgresStorage, connection, schema
from kept.storage.postgres.storage import number_of
from tests.builders import memory, stamp
from tests.postgres.server import as_owner, emptied, shared_database

FOLDER = Path(connection.__file__).parent
COLUMNS = "select column_name from information_schema.columns where table_schema = 'kept' and"
TABLES = """
    select relname, relrowsecurity, relforcerowsecurity
    from pg_class
    where relnamespace = 'kept'::regnamespace and relkind = 'r'"""
# Statements that are about the database and not about rows of a space.
OF_NO_SPACE = re.compile(
    r"begin isolation|set local|savepoint|rollback|commit|pg_(try_|{})?advisory_xact_lock|vacuum|statement_timeout|"
    r"pg_roles|pg_policies|pg_tables|pg_class|pg_database|(from|into) ties|with inherit|to_regclass|"
    r"create schema|create role|create policy|drop policy|"
    r"alter table|grant |migrations|pg_backend_pid|pg_type|clock_timestamp|"
    r"pg_clear_attribute_stats|pg_attribute|pg_auth_members|"
    r"pg_extension|pg_dist_|run_command_on_|create_(reference|distributed)_table|"
    r"^select (count\(\*\)|space, name) from heads( order by space)?$"
)


def strings(tree: ast.AST, constants: dict[str, Any]) -> Iterator[str]:
    """Every string and f-string of a module; of what an f-string inserts, constants are shown, and {} for others."""

    def shown(part: ast.expr) -> str:
        if isinstance(part, ast.Constant):
            return str(part.value)
        inserted = part.value if isinstance(part, ast.FormattedValue) else None
        return str(constants.get(inserted.id, "{}")) if isinstance(inserted, ast.Name) else "{}"

    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(shown, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def statements() -> Iterator[tuple[str, str]]:
    for path in sorted(FOLDER.glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):  # not docstrings
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node):
                node.body = node.body[1:]
        constants = vars(importlib.import_module(f"kept.storage.postgres.{path.stem}"))
        for string in strings(tree, constants):
            if re.match(r"\s*(select|insert into|update|delete from|with recursive|with)\s", string):
                yield path.name, " ".join(string.split())


def test_every_statement_names_its_space() -> None:
    found = [*statements()]
    assert len(found) > 40
    for name, sql in found:
        assert re.search(r"%\(space\)s|\(space,|space = {(?::d)?}", sql) or OF_NO_SPACE.search(sql), f"{name}: {sql}"
        assert not re.search(r"insert into [^;]* select ", sql), f"{name} inserts what it selects: {sql}"
        assert "set_config" not in sql


@pytest.fixture(scope="module")
def catalog() -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(as_owner(shared_database()), autocommit=True) as opened:
        opened.execute("set search_path = kept")
        yield opened


def test_every_key_begins_with_the_space(catalog: "psycopg.Connection[Any]") -> None:
    keys = catalog.execute("select indexdef from pg_indexes where schemaname = 'kept'").fetchall()
    assert len(keys) > 25
    for (key,) in keys:
        assert re.search(r"USING btree \(space\b", key), key


def test_there_is_nothing_that_a_sharded_database_could_not_do(catalog: "psycopg.Connection[Any]") -> None:
    for what, sql in {
        "triggers": "select tgname from pg_trigger where not tgisinternal",
        "sequences": "select relname from pg_class where relkind = 'S' and relnamespace = 'kept'::regnamespace",
        "foreign keys": "select conname from pg_constraint where contype = 'f'",
        "jsonb, or clocks without a zone": f"{COLUMNS} data_type in ('json', 'jsonb', 'timestamp without time zone')",
        "words that sort by a locale": f"{COLUMNS} column_name = 'word' and collation_name is distinct from 'C'",
    }.items():
        assert catalog.execute(sql).fetchall() == [], what


def test_every_table_has_a_forced_wall(catalog: "psycopg.Connection[Any]") -> None:
    tables = catalog.execute(TABLES).fetchall()
    assert len(tables) == 21
    assert [name for name, is_on, is_forced in tables if not (is_on and is_forced)] == []
    sql = "select tablename, qual, with_check from pg_policies where policyname = 'own_space'"
    policies = catalog.execute(sql).fetchall()
    assert {name for name, *_ in policies} == {name for name, *_ in tables}
    for name, seen, written in policies:
        assert name in ("migrations", "ties") or ("kept.space" in seen and "kept.space" in written), name


def test_making_the_schema_again_changes_nothing() -> None:
    assert schema.initialise(as_owner(shared_database())).steps == 0


def plan(storage: PostgresStorage, sql: str, **values: Any) -> str:
    """How the statement would be run, under row-level security, as a writer that has just analysed the tables."""
    with storage.reading() as reader:
        return "\n".join(line for (line,) in reader.view.fetch(f"explain {sql}", **values))


def test_hot_statements_use_an_index() -> None:
    url = emptied(shared_database())
    storage = PostgresStorage(url, "project/p1")
    others = [PostgresStorage(url, f"project/other{n}") for n in range(3)]
    for one in (storage, *others):
        with one.writing(stamp()) as tx:
            for n in range(1_600):
                tx.add(memory(f"common words and number{n} everywhere", space=one.space), "remember")
    with psycopg.connect(as_owner(url), autocommit=True) as opened:
        opened.execute("set synchronous_commit = on")
        opened.execute("select pg_current_xact_id()")  # flushes what others committed: only then it is all visible
        opened.execute("vacuum analyze")
    seen: list[tuple[str, dict[str, Any]]] = []
    with storage.reading() as reader:
        fetch = reader.view.fetch
        reader.view.fetch = lambda sql, **values: seen.append((sql, values)) or fetch(sql, **values)  # type: ignore
        reader.search(text.query_words("common number7 words"), limit=5, also=["everywhere"])
        reader.search(["number7"], Where(kinds=("warning",)), limit=5)
        reader.search(["common"], limit=5, newest=True)
        reader.statistics(text.query_words("common number7"))
        reader.vocabulary("numb", limit=5)
        reader.alike([text.words("common words everywhere")], "memory", limit=5)
        reader.select(Where(fingerprints=("x",)))
        reader.select(Where(statuses=("pinned",)))
        reader.select(Where(session="s1"))
        reader.select(Where(kinds=("fact",)), limit=5)
        reader.events(group="x")
        reader.events(subject="m1")
    plans = {sql: plan(storage, sql, **values) for sql, values in seen}
    assert len(plans) >= 8
    for sql, told in plans.items():
        assert not re.search("Seq Scan on (memories|postings|handles|events|event_payloads)", told), f"{sql}\n{told}"
        assert "::text)::bigint[]" not in told, f"{sql}\n{told}"  # it would be read again for every row
        if "from postings p" in sql:
            assert "postings_pkey" in told, f"{sql}\n{told}"
    for one in (storage, *others):
        one.close()


def test_a_number_of_a_space_is_the_same_everywhere() -> None:
    assert number_of("project/web-app") == 1874618340111807925
    assert number_of("project/a") != number_of("project/b")
    assert all(0 <= number_of(f"project/{n}") < 2**63 for n in range(100))
