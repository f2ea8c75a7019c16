"""`kept.compat` against the classes that the design of agent_engine describes, and its costs as a store grows."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.compat import (
    ContextAssembler,
    ContextItem,
    ContextPolicy,
    ContextRequest,
    InMemoryBackend,
    JSONFileBackend,
    MemoryBackend,
    MemoryConfig,
    MemoryError,
    ProjectMemoryStore,
    SQLiteBackend,
    StorageBackend,
    Task,
    TaskMemoryStore,
    learned_shares,
)

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, target: bool(value == target),
    "$ne": lambda value, target: bool(value != target),
    "$gt": lambda value, target: bool(value > target),
    "$gte": lambda value, target: bool(value >= target),
    "$lt": lambda value, target: bool(value < target),
    "$lte": lambda value, target: bool(value <= target),
}


class Reference:
    """The backend as the design's text describes it: a dictionary, operators, newest first."""

    def __init__(self) -> None:
        self.items: dict[str, ContextItem] = {}

    def add(self, item: ContextItem) -> None:
        self.items[item.context_item_id] = item

    def get(self, item_id: str) -> ContextItem | None:
        return self.items.get(item_id)

    def delete(self, item_id: str) -> bool:
        return self.items.pop(item_id, None) is not None

    def list_all(self) -> list[ContextItem]:
        return list(self.items.values())

    def clear(self) -> None:
        self.items.clear()

    def count(self) -> int:
        return len(self.items)

    def query(self, filters: dict[str, Any], limit: int = 100, order_by: str = "timestamp") -> list[ContextItem]:
        found = [item for item in self.items.values() if all(self._fits(item, *one) for one in filters.items())]
        is_reversed = not order_by.startswith("-")
        found.sort(key=lambda item: getattr(item, order_by.lstrip("-")) or "", reverse=is_reversed)
        return found[:limit]

    def _fits(self, item: ContextItem, name: str, wanted: Any) -> bool:
        value = getattr(item, name, None)
        if isinstance(wanted, dict):
            return all(OPERATORS[sign](value, target) for sign, target in wanted.items())
        if isinstance(wanted, list):
            return any(one in value for one in wanted) if isinstance(value, list) else False
        return bool(value == wanted)


def drawn(draw: random.Random, number: int) -> ContextItem:
    return ContextItem(
        context_item_id=f"item-{number}",
        kind=draw.choice(["decision", "note", "failure"]),
        source=draw.choice(["task/t1", "project/p", "global"]),
        timestamp=f"2026-01-{draw.randint(1, 28):02d}T00:00:{draw.randint(0, 59):02d}.{number:06d}",
        tags=draw.sample(["api", "db", "ui", "ops"], k=2),
        importance=draw.randint(0, 10) / 10,
        token_cost=draw.randint(1, 30),
        payload={"text": f"statement number {number}"},
    )


FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"kind": "decision"},
    {"tags": ["api"]},
    {"importance": {"$gte": 0.5}},
    {"importance": {"$gt": 0.2, "$lt": 0.8}, "kind": "note"},
    {"source": {"$ne": "global"}},
    {"kind": {"$eq": "failure"}, "importance": {"$lte": 0.9}},
)


def make(name: str, folder: Path) -> MemoryBackend:
    if name == "memory":
        return InMemoryBackend()
    if name == "sqlite":
        return SQLiteBackend(folder / "items.db")
    return JSONFileBackend(folder / "items.json") if name == "json" else StorageBackend(str(folder / "other.db"))


@pytest.mark.parametrize("name", ["memory", "sqlite", "json", "path"])
def test_a_backend_does_what_the_designs_own_does(name: str, tmp_path: Path) -> None:
    draw, backend, reference = random.Random(35), make(name, tmp_path), Reference()
    for number in range(160):
        deed = draw.choice(["add", "add", "add", "delete", "replace"])
        target = draw.randint(0, max(0, number - 1))
        if deed == "delete":
            assert backend.delete(f"item-{target}") == reference.delete(f"item-{target}")
        else:
            item = drawn(draw, number if deed == "add" else target)
            if deed == "replace" and reference.get(item.context_item_id) is None:
                continue
            backend.add(item)
            reference.add(item)
        assert backend.count() == reference.count()
        assert backend.get(f"item-{target}") == reference.get(f"item-{target}")
    for filters in FILTERS:
        for order in ("timestamp", "-timestamp"):
            assert backend.query(filters, 12, order) == reference.query(filters, 12, order), filters
    backend.clear()
    assert (backend.count(), backend.list_all()) == (0, [])


def reference_selection(items: list[ContextItem], budget: int) -> list[str]:
    chosen, used = [], 0
    for item in sorted(items, key=lambda one: (-(one.importance or 0), one.timestamp or "")):
        if used + (item.token_cost or 0) <= budget:
            chosen.append(item.context_item_id)
            used += item.token_cost or 0
    return chosen


def test_a_package_of_one_tier_is_the_designs_own() -> None:
    draw = random.Random(36)
    for _ in range(30):
        assembler = ContextAssembler(task_stores={"t1": TaskMemoryStore("t1")})
        for number in range(12):
            item = drawn(draw, number)
            item.source = "task/t1"
            assembler.task_stores["t1"].backend.add(item)
        items = assembler.task_stores["t1"].list_notes()
        all_of_it = {
            "task": 1,
            "project": 0,
            "global": 0,
        }  # our shares are hard limits, which the design's code ignored
        package = assembler.build_context(Task("t1"), ContextRequest(budget_tokens=60, shares=all_of_it))
        assert [one.context_item_id for one in package.items] == reference_selection(items, 60)


def milliseconds(work: Callable[[], object], times: int = 15) -> float:
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return sorted(took)[times // 2] * 1_000


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_adds_gets_and_counts_do_not_grow_with_the_store(name: str, tmp_path: Path) -> None:
    backend, draw, number = make(name, tmp_path), random.Random(37), 0
    store = ProjectMemoryStore("p", backend, max_items=10**9)
    costs: dict[int, list[float]] = {}
    for size in (100, 2_000, 10_000) if name == "memory" else (100, 1_000, 4_000):
        while number < size:
            backend.add(drawn(draw, number))
            number += 1
        backend.count()
        costs[size] = [
            milliseconds(lambda: store.add_decision("Use Fastify", ["api"])),
            milliseconds(lambda: backend.get("item-50")),
            milliseconds(backend.count),
        ]
    first, *_, last = costs.values()
    assert all(grown <= 3 * small + 1.0 for small, grown in zip(first, last, strict=True)), costs


def test_cleared_items_are_freed() -> None:
    store = TaskMemoryStore("t1")
    store.add_reasoning("The parser needs a lock per file", "plan")
    store.clear()
    assert isinstance(store.backend, InMemoryBackend)
    assert store.backend.items == {}


def test_items_read_as_text_elsewhere(tmp_path: Path) -> None:
    backend = SQLiteBackend(tmp_path / "items.db")
    ProjectMemoryStore("p", backend).add_decision("Use Fastify for the public API", ["api"])
    backend.storage.close()
    with kept.open(tmp_path / "items.db", settings=kept.Settings()) as memory:
        assert [one.content for one in memory.list()] == ["Use Fastify for the public API"]
        assert [hit.content for hit in memory.recall("fastify")] == ["Use Fastify for the public API"]


def test_the_errors_of_a_backend_are_memory_errors(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(MemoryError):
        SQLiteBackend(tmp_path / "broken.db")
    with pytest.raises(kept.InvalidInput, match="does not end in"):
        JSONFileBackend(tmp_path / "items.db")
    with pytest.raises(kept.InvalidInput, match="JSON file"):
        SQLiteBackend(tmp_path / "items.json")


@pytest.mark.parametrize("name", ["sqlite", "json"])
def test_items_whose_ids_hold_secrets_are_not_mixed_up(name: str, tmp_path: Path) -> None:
    backend, ids = make(name, tmp_path), ["ann@example.org", "bob@example.org", "auth0|5f7c8ec7c33c6c004bbafe82"]
    for item_id in ids:
        backend.add(ContextItem(context_item_id=item_id, payload={"text": item_id[:3]}))
    assert backend.count() == 3
    for item_id in ids:
        item = backend.get(item_id)
        assert item is not None
        assert item.payload == {"text": item_id[:3]}
        assert backend.get(item.context_item_id) == item, "also by the id that it is stored under"
        assert item_id not in repr(backend.list_all())
    assert [backend.delete(item_id) for item_id in ids] == [True] * 3
    assert backend.count() == 0


@pytest.mark.parametrize("name", ["memory", "sqlite", "json"])
@pytest.mark.parametrize("embedding", [[float("nan"), 1.0], [float("inf")], [None, 1.0], ["a", "b"]])
def test_an_embedding_that_is_none_is_refused_and_ends_no_later_query(
    name: str, embedding: Any, tmp_path: Path
) -> None:
    backend: Any = make(name, tmp_path)
    backend.add(ContextItem(context_item_id="1", embedding=[1.0, 0.0]))
    with pytest.raises(kept.InvalidInput, match="finite numbers"):
        backend.add(ContextItem(context_item_id="2", embedding=embedding))
    with pytest.raises(kept.InvalidInput, match="finite numbers"):
        backend.query_semantic(embedding)
    assert [item.context_item_id for item in backend.query_semantic([1, 0])] == ["1"]


def test_backends_take_the_names_of_the_designs_arguments(tmp_path: Path) -> None:
    assert SQLiteBackend(db_path=tmp_path / "items.db").count() == 0
    assert JSONFileBackend(file_path=tmp_path / "items.json").count() == 0


class OwnConfig:
    """An agent's profile with the one field that the design names."""

    context_policy = ContextPolicy(head_tail_preserve=1)


class OwnRequest:
    """A request with the one field that the design names."""

    budget_tokens = 50


def test_requests_tasks_and_profiles_of_other_classes_are_taken() -> None:
    built = assembler_with("Use Fastify", "Use Postgres")
    built.memory_config = OwnConfig()  # type: ignore[assignment]
    package = built.build_context(Task("t1", {"project_id": "p"}), OwnRequest())  # type: ignore[arg-type]
    assert sorted(item.payload["decision"] for item in package.items) == ["Use Fastify", "Use Postgres"]


# D9, D12, D14


def assembler_with(*statements: str, policy: ContextPolicy | None = None) -> ContextAssembler:
    project = ProjectMemoryStore("p", InMemoryBackend())
    for statement in statements:
        project.add_decision(statement, [])
    return ContextAssembler(project_stores={"p": project}, memory_config=MemoryConfig(context_policy=policy))


def told(assembler: ContextAssembler, request: ContextRequest, **metadata: Any) -> list[str]:
    package = assembler.build_context(Task("t1", {"project_id": "p", **metadata}), request)
    return [next(iter(item.payload.values())) for item in package.items]


def test_d9_items_of_the_project_come_by_relevance() -> None:
    facts = ["Payments run on Fridays", *(f"Unrelated statement number {n}" for n in range(40))]
    built = assembler_with(*facts)
    assert "Payments run on Fridays" not in told(built, ContextRequest(budget_tokens=50))
    assert told(built, ContextRequest(budget_tokens=50, query="when do payments run"))[0] == facts[0]
    assert told(built, ContextRequest(budget_tokens=50), description="Fix the payments job")[0] == facts[0]


def test_d9_global_items_come_by_category() -> None:
    built = ContextAssembler()
    built.global_store.add_preference("Short answers", "style")
    built.global_store.add_preference("Metric units", "units")
    assert told(built, ContextRequest(budget_tokens=200, categories=["units"])) == ["Metric units"]
    assert len(told(built, ContextRequest(budget_tokens=200))) == 2


def test_d12_head_and_tail_keep_the_outermost_when_not_all_fit() -> None:
    built = assembler_with(*(f"s{n}" for n in range(8)), policy=ContextPolicy(head_tail_preserve=3))
    assert told(built, ContextRequest(budget_tokens=100, shares={"project": 1, "task": 0, "global": 0}))[:4] == [
        "s7",
        "s0",
        "s6",
        "s1",
    ]


def test_d14_shares_start_at_40_40_20_follow_use_and_reach_a_briefing() -> None:
    assert learned_shares({}) == {"task": 40, "project": 40, "global": 20}
    learned = learned_shares({"project": 50_000})
    assert sum(learned.values()) == 100
    assert learned["project"] > 75
    assert min(learned.values()) >= 10
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        memory.remember("Use Fastify for the public API")
        assert memory.briefing("fastify", shares=learned).error is None


def test_d14_embeddings_of_another_length_are_left_out() -> None:
    backend = InMemoryBackend()
    for number, embedding in enumerate(([1.0, 0.0], [0.0, 1.0], [1.0, 0.0, 0.0], None, [])):
        backend.add(ContextItem(context_item_id=str(number), embedding=embedding))
    assert [item.context_item_id for item in backend.query_semantic([1.0, 0.1])] == ["0", "1"]
