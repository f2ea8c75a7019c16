"""D2–D12: agent_engine's names, over every storage: its design's examples, and its seven success criteria."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.compat import (
    ContextAssembler,
    ContextItem,
    ContextPackage,
    ContextPolicy,
    ContextRequest,
    ContextStore,
    FailureSignature,
    GlobalMemoryStore,
    InMemoryBackend,
    MemoryBackend,
    MemoryConfig,
    ProjectMemoryStore,
    StorageBackend,
    Task,
    TaskMemoryStore,
)
from kept.errors import InvalidInput
from kept.model import Memory
from kept.ports import ANYWHERE, Where
from tests.builders import FakeClock, context_of
from tests.contract.benches import BENCHES


@pytest.fixture(params=sorted(BENCHES))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageBackend]:
    storage = BENCHES[request.param](tmp_path).open()
    yield StorageBackend(storage, clock=FakeClock())
    storage.close()


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


def test_secrets_are_taken_out_of_every_field_of_an_item(backend: StorageBackend) -> None:
    """C24: also through this backend; the item keeps its shape, and is found under the id it was given."""
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    backend.add(ContextItem(context_item_id=key, source=key, tags=[key], payload={"text": f"use {key}", key: [key]}))
    with backend.storage.reading() as reader:
        assert key not in repr((reader.select(ANYWHERE), reader.events()))
    assert backend.get(key) is not None
    assert backend.delete(key) is True
    assert backend.count() == 0


def test_items_share_a_space_with_other_memories_and_leave_them_alone(tmp_path: Path) -> None:
    """D1."""
    with kept.open(tmp_path / "m.db", settings=kept.Settings()) as memory:
        memory.remember_many([kept.Draft(content="Not an item", key="k", data={"a": 1})])
        backend = StorageBackend(context_of(memory).spaces.ensure_project())
        backend.add(item(1))
        assert (backend.count(), ids(backend.list_all()), backend.get("k")) == (1, ["item-1"], None)
        backend.clear()
        assert [one.content for one in memory.list()] == ["Not an item"]


# The stores


class FailureCode(Enum):
    TOOL_ERROR = "tool_error"


class DictionaryBackend:
    """What somebody else wrote for the same protocol."""

    def __init__(self) -> None:
        self._items: dict[str, ContextItem] = {}

    def add(self, item: ContextItem) -> None:
        self._items[item.context_item_id] = item

    def query(self, filters: dict[str, Any], limit: int = 100, order_by: str = "timestamp") -> list[ContextItem]:
        fitting = [one for one in self._items.values() if all(getattr(one, k) == v for k, v in filters.items())]
        return fitting[:limit]

    def get(self, item_id: str) -> ContextItem | None:
        return self._items.get(item_id)

    def delete(self, item_id: str) -> bool:
        return self._items.pop(item_id, None) is not None

    def list_all(self) -> list[ContextItem]:
        return list(self._items.values())

    def clear(self) -> None:
        self._items.clear()

    def count(self) -> int:
        return len(self._items)


def described(item: ContextItem | None) -> tuple[str, str, list[str], float | None, int | None, dict[str, Any]]:
    assert item is not None
    return item.kind, item.source, item.tags, item.importance, item.token_cost, item.payload


def test_the_task_store(backend: StorageBackend) -> None:
    """D6: reasoning .5 and tool outputs .7; the design's query missed the latter, here a stage has both."""
    store = TaskMemoryStore(task_id="t1", backend=backend)
    thought = store.add_reasoning("Look at the callers first", "plan")
    output = store.add_tool_output("grep", {"lines": 3})
    staged = store.add_tool_output("pytest", "2 failed", stage_id="plan")
    text = "Look at the callers first"
    assert described(thought) == ("reasoning", "task/t1/plan", ["task", "plan"], 0.5, 5, {"text": text})
    tool = {"tool_id": "grep", "output": {"lines": 3}}
    assert described(output) == ("tool_output", "task/t1", ["task", "tool", "grep"], 0.7, 2, tool)
    assert thought.context_item_id.startswith("reasoning-plan-")
    assert output.context_item_id.startswith("tool-grep-")
    assert {one.context_item_id for one in store.get_stage_outputs("plan")} == {
        thought.context_item_id,
        staged.context_item_id,
    }
    assert store.get_stage_outputs("build") == []
    store.clear()
    assert backend.count() == 0


def test_the_project_store(backend: StorageBackend) -> None:
    """D7: decision .9, convention .8, failure .85; decisions by tags."""
    store = ProjectMemoryStore(project_id="web", backend=backend)
    decision = store.add_decision("Use Fastify", ["api"])
    store.add_decision("Use Postgres", ["db"])
    convention = store.add_convention("Tests state promises", "tests")
    failure = store.add_failure(FailureSignature(FailureCode.TOOL_ERROR, "exit code 3 in /a/b.py"), "Pin the version")
    tags = ["project", "decision", "api"]
    assert described(decision) == ("decision", "project/web", tags, 0.9, 2, {"decision": "Use Fastify"})
    assert (convention.tags, convention.importance) == (["project", "convention", "tests"], 0.8)
    assert (failure.tags, failure.importance) == (["project", "failure", "tool_error"], 0.85)
    assert failure.payload["failure"]["signature"] == "exit code <n> in <path>"
    assert [one.payload["decision"] for one in store.query_decisions()] == ["Use Postgres", "Use Fastify"]
    assert [one.payload["decision"] for one in store.query_decisions(tags=["api", "x"])] == ["Use Fastify"]
    assert backend.get(failure.context_item_id) == failure


def test_a_full_project_store_archives_its_least_important_tenth(backend: StorageBackend) -> None:
    """D7: above max_items the bottom 10 % by (importance, timestamp); archived, where the design deleted."""
    store = ProjectMemoryStore("web", backend, max_items=20)
    first = store.add_convention("Convention number 0", "tests")
    for number in range(1, 5):
        store.add_convention(f"Convention number {number}", "tests")
    for number in range(15):
        store.add_decision(f"Decision number {number}", [])
    assert backend.count() == 20
    store.add_decision("One too many", [])
    assert backend.count() == 19
    assert backend.get(first.context_item_id) is None
    with backend.storage.reading() as reader:
        gone = reader.select(Where(shelf="archive"))
        assert [(one.reason, one.importance) for one in gone] == [("evicted", 0.8)] * 2


def test_the_stores_work_on_a_backend_that_somebody_else_wrote() -> None:
    """D1, D2: the backend is pluggable; a backend that is not ours can only delete."""
    backend: MemoryBackend = DictionaryBackend()
    store = ProjectMemoryStore("web", backend, max_items=10)
    for number in range(11):
        store.add_decision(f"Decision number {number}", [])
    assert backend.count() == 10


def test_the_global_store_asks_whoever_can_be_asked(backend: StorageBackend) -> None:
    """D8: preferences (.9) and clearing are asked about, patterns (.7) and queries are not; no means None."""
    questions: list[str] = []
    answers = iter([True, False, False, True])
    store = GlobalMemoryStore(backend, confirmation_callback=lambda q: (questions.append(q), next(answers))[1])
    style = store.add_preference("Short answers", "style", require_confirmation=True)
    tags = ["global", "preference", "style"]
    payload = {"preference": "Short answers", "category": "style"}
    assert described(style) == ("preference", "global", tags, 0.9, 2, payload)
    assert store.add_preference("Long answers", "style") is None
    pattern = store.add_pattern("Retry with a backoff", domain="http")
    assert (pattern.tags, pattern.importance) == (["global", "pattern", "http"], 0.7)
    assert [one.payload["preference"] for one in store.query_preferences("style")] == ["Short answers"]
    assert store.query_preferences("tools") == []
    assert len(store.query_preferences()) == 1
    assert store.clear_all() is False
    assert backend.count() == 2
    assert store.clear_all() is True
    assert backend.count() == 0
    assert [question[:6] for question in questions] == ["Add gl", "Add gl", "DANGER", "DANGER"]


def test_a_global_store_with_nobody_to_ask_belongs_to_its_program() -> None:
    """D8: code that never gave a callback keeps running; docs/projects.md says why."""
    store = GlobalMemoryStore(InMemoryBackend())
    assert store.add_preference("Short answers", "style") is not None
    assert store.clear_all() is True


# The assembler


def words(n: int) -> str:
    return " ".join(["word"] * n)


def sources(package: ContextPackage) -> list[str]:
    return [one.source.partition("/")[0] for one in package.items]


def filled(*, n: int = 30, cost: int = 10) -> tuple[ContextAssembler, Task]:
    """An assembler whose three tiers could each fill the budget."""
    built = ContextAssembler()
    task = Task(task_id="t1", metadata={"project_id": "web"})
    built.build_context(task, ContextRequest(budget_tokens=0))
    for _ in range(n):
        built.task_stores["t1"].add_reasoning(words(cost), "plan")
        built.project_stores["web"].add_decision(words(cost), [])
        built.global_store.add_pattern(words(cost), "any")
    return built, task


def test_the_tiers_share_the_budget_40_40_20() -> None:
    """D9, D10: task, project, global; adjustable by the request and by the profile."""
    built, task = filled()
    package = built.build_context(task, ContextRequest(budget_tokens=200))
    assert {tier: sources(package).count(tier) for tier in ("task", "project", "global")} == {
        "task": 8,
        "project": 8,
        "global": 4,
    }
    profile: Mapping[str, int] = {"task": 0, "project": 50, "global": 50}
    built.memory_config = MemoryConfig(shares=profile)
    assert sources(built.build_context(task, ContextRequest(budget_tokens=200))).count("task") == 0
    asked = ContextRequest(budget_tokens=200, shares={"task": 100, "project": 0, "global": 0})
    assert set(sources(built.build_context(task, asked))) == {"task"}


def test_what_one_tier_leaves_is_for_the_others_and_too_big_is_passed_over() -> None:
    """D12: greedy, by importance, never over the budget."""
    built = ContextAssembler()
    task = Task("t1")
    built.build_context(task, ContextRequest(budget_tokens=10))
    for cost in (500, 30, 20):
        built.task_stores["t1"].add_reasoning(words(cost), "plan")
    built.task_stores["t1"].add_tool_output("make", words(25))
    package = built.build_context(task, ContextRequest(budget_tokens=60))
    assert [one.token_cost for one in package.items] == [25, 20]
    assert package.context_package_id == "ctx-t1"
    assert package.summary is None
    assert package.compression_ratio == pytest.approx(45 / 575)
    assert list(built.project_stores) == ["default"]


def test_an_empty_assembler_gives_an_empty_package() -> None:
    """D12."""
    package = ContextAssembler().build_context(Task("t1"), ContextRequest(budget_tokens=100))
    assert (package.items, package.compression_ratio) == ([], 0.0)


def test_head_and_tail_are_kept_before_what_is_more_important() -> None:
    """D12: N oldest and N newest; in the design's code that had no effect."""
    built = ContextAssembler(memory_config=MemoryConfig(context_policy=ContextPolicy(head_tail_preserve=1)))
    task = Task("t1")
    built.build_context(task, ContextRequest(budget_tokens=0))
    backend = built.task_stores["t1"].backend
    for number, importance in enumerate((0.1, 0.9, 0.8, 0.2), 1):
        backend.add(item(number, importance=importance, source="task/t1", token_cost=10))
    chosen = built.build_context(task, ContextRequest(budget_tokens=30)).items
    assert ids(chosen) == ["item-4", "item-1", "item-2"]
    built.memory_config = None
    assert ids(built.build_context(task, ContextRequest(budget_tokens=30)).items) == ["item-2", "item-3", "item-4"]


# The seven success criteria of the design


@pytest.fixture(params=sorted(BENCHES))
def backends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], StorageBackend]]:
    bench = BENCHES[request.param](tmp_path)
    opened: list[StorageBackend] = []

    def backend_of(space: str) -> StorageBackend:
        opened.append(StorageBackend(bench.open(space), clock=FakeClock()))
        return opened[-1]

    yield backend_of
    for one in opened:
        one.storage.close()


def three_tiers(backends: Callable[[str], StorageBackend]) -> ContextAssembler:
    return ContextAssembler(
        task_stores={name: TaskMemoryStore(name, backends(f"project/{name}")) for name in ("t1", "t2")},
        project_stores={name: ProjectMemoryStore(name, backends(f"project/{name}")) for name in ("web", "ros")},
        global_store=GlobalMemoryStore(backends("global")),
    )


def test_criterion_1_three_tiers_that_are_isolated(backends: Callable[[str], StorageBackend]) -> None:
    """D15, criterion 1: three memory tiers implemented and isolated."""
    built = three_tiers(backends)
    built.task_stores["t1"].add_reasoning("A thought", "plan")
    built.project_stores["web"].add_decision("A decision", [])
    built.global_store.add_pattern("A pattern", "any")
    stores = (built.task_stores["t1"], built.task_stores["t2"], built.project_stores["web"], built.global_store)
    assert [store.backend.count() for store in stores] == [1, 0, 1, 1]


def test_criterion_2_nothing_is_promoted_by_itself(backends: Callable[[str], StorageBackend]) -> None:
    """D11, D15, criterion 2: paging policies working, no automatic promotion."""
    built = three_tiers(backends)
    task = Task("t1", {"project_id": "web"})
    built.task_stores["t1"].add_tool_output("make", "a very important discovery")
    for _ in range(5):
        built.build_context(task, ContextRequest(budget_tokens=1_000))
    built.cleanup_task("t1")
    assert built.project_stores["web"].backend.count() == 0
    assert built.global_store.backend.count() == 0


def test_criterion_3_the_assembler_builds_from_all_three_tiers(backends: Callable[[str], StorageBackend]) -> None:
    """D9, D15, criterion 3: ContextAssembler builds from all three tiers."""
    built = three_tiers(backends)
    built.task_stores["t1"].add_reasoning("A thought", "plan")
    built.project_stores["web"].add_decision("A decision", [])
    built.global_store.add_preference("A preference", "style")
    package = built.build_context(Task("t1", {"project_id": "web"}), ContextRequest(budget_tokens=1_000))
    assert sorted(sources(package)) == ["global", "project", "task"]
    assert package.compression_ratio == 1.0


def test_criterion_4_no_project_sees_another(backends: Callable[[str], StorageBackend]) -> None:
    """D1, D15, criterion 4: project isolation enforced."""
    built = three_tiers(backends)
    built.project_stores["web"].add_decision("Of the web app", [])
    package = built.build_context(Task("t2", {"project_id": "ros"}), ContextRequest(budget_tokens=1_000))
    assert package.items == []
    assert built.project_stores["ros"].query_decisions() == []


def test_criterion_5_task_memory_is_cleaned_up(backends: Callable[[str], StorageBackend]) -> None:
    """D6, D12, D15, criterion 5: task memory automatically cleaned up."""
    built = three_tiers(backends)
    store = built.task_stores["t1"]
    store.add_reasoning("A thought", "plan")
    built.cleanup_task("t1")
    built.cleanup_task("t1")
    assert store.backend.count() == 0
    assert list(built.task_stores) == ["t2"]


def test_criterion_6_unit_and_integration_tests_pass(backends: Callable[[str], StorageBackend]) -> None:
    """D15, criterion 6: tests pass. This file is the units; here all of it works together, budget included."""
    built = three_tiers(backends)
    task = Task("t1", {"project_id": "web"})
    for number in range(40):
        built.task_stores["t1"].add_reasoning(f"Thought {number}", "plan")
        built.project_stores["web"].add_decision(f"Decision {number}", ["api"])
        built.global_store.add_pattern(f"Pattern {number}", "any")
    package = built.build_context(task, ContextRequest(budget_tokens=50))
    assert sum(one.token_cost or 0 for one in package.items) <= 50
    assert set(sources(package)) == {"task", "project", "global"}
    assert package.compression_ratio is not None
    assert 0 < package.compression_ratio < 1


def test_criterion_7_existing_code_runs_with_another_import_line() -> None:
    """D13, D15, criterion 7: compatible with existing code via the migration path."""
    old_items = {one.context_item_id: one for one in (item(1, token_cost=1), item(2, token_cost=1))}
    backend = InMemoryBackend(items=old_items)
    assert backend.items == old_items
    code = """
from kept.compat import ContextAssembler, ContextItem, ContextRequest, Task, TaskMemoryStore

assembler = ContextAssembler(task_stores={"t1": TaskMemoryStore(task_id="t1", backend=backend)})
assembler.task_stores["t1"].backend.add(ContextItem(context_item_id="old-style", kind="code", token_cost=1))
package = assembler.build_context(Task(task_id="t1"), ContextRequest(budget_tokens=10))
"""
    names: dict[str, Any] = {"backend": backend}
    exec(compile(code, "existing code", "exec"), names)
    assert sorted(ids(names["package"].items)) == ["item-1", "item-2", "old-style"]


@pytest.mark.parametrize("storage", ["inmemory", "sqlite"])  # the JSON file is for small stores
def test_a_context_out_of_a_thousand_items(storage: str, tmp_path: Path) -> None:
    """D15: large item counts; the store stays within its limit and the context within its budget."""
    backend = StorageBackend(BENCHES[storage](tmp_path).open(), clock=FakeClock())
    store = ProjectMemoryStore("web", backend, max_items=1_000)
    for number in range(990):
        backend.add(ContextItem(context_item_id=f"i{number}", source="project/web", importance=0.5, token_cost=5))
    for number in range(12):
        store.add_decision(f"Decision number {number}", [])
    assert 900 <= backend.count() <= 1_000
    built = ContextAssembler(project_stores={"web": store})
    package = built.build_context(Task("t1", {"project_id": "web"}), ContextRequest(budget_tokens=500))
    assert sum(one.token_cost or 0 for one in package.items) <= 500
    assert len(package.items) == 20


def test_an_item_without_a_timestamp_or_payload_makes_no_backend_unreadable(backend: StorageBackend) -> None:
    backend.add(ContextItem(context_item_id="bare", timestamp=None, payload=None))  # type: ignore[arg-type]
    backend.add(ContextItem(context_item_id="odd", payload=["a", "list"], timestamp=17))  # type: ignore[arg-type]
    backend.add(ContextItem(context_item_id="whole", timestamp="2026-03-01T12:00:00+00:00", payload={"a": 1}))
    assert {item.context_item_id for item in backend.list_all()} == {"bare", "odd", "whole"}
    assert {item.context_item_id for item in backend.query({})} == {"bare", "odd", "whole"}
    bare = backend.get("bare")
    assert bare is not None
    assert (bare.timestamp, bare.payload) == ("", {})


def test_two_stores_on_one_backend_do_not_see_each_other(backend: StorageBackend) -> None:
    """D5: by task, project and global."""
    first, second = TaskMemoryStore("t1", backend), TaskMemoryStore("t10", backend)
    web, api = ProjectMemoryStore("web", backend, max_items=10), ProjectMemoryStore("api", backend)
    shared = GlobalMemoryStore(backend)
    for store in (first, second):
        store.add_reasoning(f"reasoning of {store.task_id}", "plan")
    for number in range(9):
        api.add_decision(f"decision {number} of api", [])
    web.add_decision("decision of web", [])
    web.add_decision("another of web", [])
    shared.add_pattern("a pattern", "python")
    assert len(api.query_decisions()) == 9
    assert len(web.query_decisions()) == 2, "not evicted for what others stored"
    assembler = ContextAssembler(task_stores={"t1": first}, project_stores={"web": web}, global_store=shared)
    package = assembler.build_context(Task("t1", {"project_id": "web"}), ContextRequest(budget_tokens=1000))
    assert {item.source for item in package.items} == {"task/t1/plan", "project/web", "global"}
    first.clear()
    assert [item.source for item in second.list_notes()] == ["task/t10/plan"]
    assert shared.clear_all()
    assert backend.count() == 1 + 9 + 2


def test_a_project_has_preferences_and_patterns_of_its_own(backend: StorageBackend) -> None:
    """D13, 3.1: what the user wants here, and what is done here again and again."""
    store = ProjectMemoryStore("web", backend)
    store.add_preference("Answer in German", "language")
    store.add_pattern("Every route has a schema", "api")
    assert [item.payload["preference"] for item in store.query_preferences("language")] == ["Answer in German"]
    assert store.query_preferences("style") == []
    assert [item.payload["pattern"] for item in store.query_patterns()] == ["Every route has a schema"]


def test_items_of_the_old_context_store_can_be_added_to_the_assembler() -> None:
    """D13: the old store still works, says that it is deprecated, and its items move over."""
    with pytest.warns(DeprecationWarning, match="Use ContextAssembler"):
        old = ContextStore()
    item = ContextItem(context_item_id="a", kind="note", payload={"text": "one"}, token_cost=5)
    old.add(item)
    assert old.get("a") is old.items["a"] is item
    assembler = ContextAssembler()
    for each in old.items.values():
        assembler.add(each)
    package = assembler.build_context(Task("t1"), ContextRequest(budget_tokens=100))
    assert [one.context_item_id for one in package.items] == ["a"]


def test_the_allocation_is_learned_from_what_was_used_only_if_that_is_switched_on() -> None:
    """D14."""
    used = [ContextItem(context_item_id=str(n), source="global", token_cost=100) for n in range(100)]
    request = ContextRequest(budget_tokens=1000)
    for learns, at_least in ((False, 200), (True, 500)):
        assembler = ContextAssembler(memory_config=MemoryConfig(learns_shares=learns))
        assert assembler._get_budget_allocation(request)["global"] <= 250
        assembler.note_used(used)
        allocation = assembler._get_budget_allocation(request)
        assert allocation["global"] >= at_least
        assert allocation["task"] >= 100, "no tier is starved"
        assert sum(allocation.values()) <= 1000
