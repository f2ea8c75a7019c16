"""D2–D5: agent_engine's MemoryBackend, over every storage."""

from pathlib import Path

import pytest

from kept.compat import ContextItem, StorageBackend
from kept.errors import InvalidInput
from kept.model import Memory
from tests.builders import FakeClock
from tests.contract.benches import BENCHES


@pytest.fixture(params=sorted(BENCHES))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> StorageBackend:
    return StorageBackend(BENCHES[request.param](tmp_path).open(), clock=FakeClock())


def item(number: int, **fields: object) -> ContextItem:
    return ContextItem(
        context_item_id=f"item-{number}", timestamp=f"2026-01-0{number}T00:00:00", payload={"n": number}, **fields
    )


def ids(items: list[ContextItem]) -> list[str]:
    return [found.context_item_id for found in items]


def test_an_item_comes_back_as_it_went_in(backend: StorageBackend) -> None:
    """D2, D5: add, get, count, list_all."""
    original = ContextItem(
        context_item_id="failure-1",
        kind="failure",
        source="project/x",
        timestamp="2026-01-01T00:00:00",
        tags=["project", "failure"],
        importance=0.85,
        token_cost=3,
        payload={"lesson": "pin the version", "nested": [1, {"a": None}]},
    )
    backend.add(original)
    assert backend.get("failure-1") == original
    assert backend.list_all() == [original]
    assert backend.count() == 1
    assert backend.get("nothing") is None


def test_the_same_id_replaces(backend: StorageBackend) -> None:
    """D2: add is an upsert, as in a dictionary."""
    backend.add(item(1, kind="note"))
    backend.add(item(1, kind="decision"))
    assert [found.kind for found in backend.list_all()] == ["decision"]


def test_delete_says_whether_there_was_one(backend: StorageBackend) -> None:
    """D2: delete → bool; a deleted id may come back."""
    backend.add(item(1))
    assert backend.delete("item-1") is True
    assert backend.delete("item-1") is False
    assert backend.get("item-1") is None
    assert backend.count() == 0
    backend.add(item(1))
    assert backend.count() == 1


def test_clear_leaves_nothing_but_the_journal(backend: StorageBackend) -> None:
    for number in (1, 2, 3):
        backend.add(item(number))
    backend.clear()
    assert backend.list_all() == []
    with backend.storage.reading() as reader:
        assert len(reader.events()) == 6


def test_filters(backend: StorageBackend) -> None:
    """D3: equality, lists mean any-of, operators; what nobody knows fits nothing."""
    backend.add(item(1, kind="code", tags=["bug_fix", "api"], importance=0.5))
    backend.add(item(2, kind="code", tags=["docs"], importance=0.7))
    backend.add(item(3, kind="note", tags=[], importance=0.9))
    assert ids(backend.query({"kind": "code"})) == ["item-2", "item-1"]
    assert ids(backend.query({"tags": ["bug_fix", "nothing"]})) == ["item-1"]
    assert ids(backend.query({"kind": "code", "importance": {"$gte": 0.7}})) == ["item-2"]
    for name, expected in {
        "$eq": ["item-2"],
        "$ne": ["item-3", "item-1"],
        "$gt": ["item-3"],
        "$gte": ["item-3", "item-2"],
        "$lt": ["item-1"],
        "$lte": ["item-2", "item-1"],
        "$near": [],
    }.items():
        assert ids(backend.query({"importance": {name: 0.7}})) == expected, name
    assert backend.query({"kind": ["code"]}) == []
    assert backend.query({"importance": {"$gt": "text"}}) == []
    assert len(backend.query({})) == 3


def test_order(backend: StorageBackend) -> None:
    """D3: plain is newest first, a leading "-" is oldest first; any field will do."""
    for number, importance in ((2, 0.1), (1, 0.3), (3, 0.2)):
        backend.add(item(number, importance=importance))
    assert ids(backend.query({})) == ["item-3", "item-2", "item-1"]
    assert ids(backend.query({}, order_by="-timestamp")) == ["item-1", "item-2", "item-3"]
    assert ids(backend.query({}, order_by="importance", limit=2)) == ["item-1", "item-3"]
    assert ids(backend.query({}, order_by="no_such_field", limit=0)) == []
    with pytest.raises(InvalidInput):
        backend.query({}, limit=-1)


def test_a_payload_that_is_no_json_is_refused_and_loses_nothing(backend: StorageBackend) -> None:
    backend.add(item(1))
    with pytest.raises(InvalidInput, match="item-9"):
        backend.add(ContextItem(context_item_id="item-9", payload={"x": object()}))
    assert backend.count() == 1


def test_items_have_a_journal_and_can_be_searched(backend: StorageBackend) -> None:
    """D13: old-style adds go on working, and their items are memories like any other."""
    backend.add(ContextItem(context_item_id="d1", kind="decision", payload={"decision": "Use Fastify"}))
    with backend.storage.reading() as reader:
        (memory,) = reader.select()
        assert isinstance(memory, Memory)
        assert memory.kind == "decision"
        assert [event.action for event in reader.events()] == ["remember"]


@pytest.mark.parametrize("backend", ["inmemory", "sqlite"], indirect=True)  # the JSON file is for small stores
def test_a_thousand_items(backend: StorageBackend) -> None:
    """D15: 1000+ items are no trouble."""
    for number in range(1_050):
        backend.add(ContextItem(context_item_id=f"i{number}", importance=number / 1_050))
    assert backend.count() == 1_050
    assert len(backend.query({"importance": {"$gte": 0.5}}, limit=1_000)) == 525
