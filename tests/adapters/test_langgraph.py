"""The LangGraph adapter means what LangGraph's own store means, survives the process, and never blocks the loop."""

import asyncio
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langgraph", reason="needs LangGraph: `make test-adapters ADAPTERS=langgraph`")
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import kept
from kept.adapters.langgraph import COLLECTION, KeptStore
from kept.memory.documents import Document
from tests.adapters.page import run_page
from tests.builders import FakeClock

LABELS = st.sampled_from(["users", "anna", "ben", "a,b", " spaced ", "Ünïcode", "100%", "a/b", "a%2Fb"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k1", "k2", "with/slash", "with.dot", ""])
SCALARS = st.one_of(st.integers(-3, 3), st.booleans(), st.none(), st.sampled_from(["red", "green", "x"]))
VALUES = st.dictionaries(
    st.sampled_from(["color", "n", "tags", "deep"]),
    st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from(["n", "y"]), SCALARS)),
    max_size=3,
)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, "2"]))
COMPARISONS = st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), NUMBERS, min_size=1)
FILTERS = st.one_of(
    st.fixed_dictionaries({"color": st.one_of(SCALARS, st.fixed_dictionaries({"$ne": SCALARS}))}),
    st.fixed_dictionaries({"n": COMPARISONS}),
    st.fixed_dictionaries({"deep": st.fixed_dictionaries({"n": COMPARISONS})}),
    st.fixed_dictionaries({"n": COMPARISONS, "color": SCALARS}),
    st.fixed_dictionaries({"deep": st.fixed_dictionaries({"n": SCALARS})}),
    st.fixed_dictionaries({"tags": st.lists(SCALARS, max_size=2)}),
)
PATHS = st.none() | st.lists(LABELS | st.just("*"), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMESPACES, KEYS, VALUES),
        st.tuples(st.just("delete"), NAMESPACES, KEYS),
        st.tuples(st.just("get"), NAMESPACES, KEYS),
        st.tuples(st.just("search"), st.lists(LABELS, max_size=2).map(tuple), st.none() | FILTERS),
        st.tuples(st.just("pages"), st.lists(LABELS, max_size=1).map(tuple), st.none() | FILTERS, st.integers(1, 4)),
        st.tuples(
            st.just("namespaces"), st.none() | st.integers(1, 3), PATHS, PATHS, st.integers(0, 3), st.integers(1, 9)
        ),
        st.tuples(st.just("batch"), st.lists(st.tuples(NAMESPACES, KEYS, st.none() | VALUES), max_size=4)),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=50)
@given(STEPS)
def test_it_means_what_the_store_of_langgraph_means(steps: list[tuple[Any, ...]]) -> None:
    with kept.open(":memory:") as memory:
        ours, theirs = KeptStore(memory), InMemoryStore()
        for step in steps:
            try:
                expected = _done(theirs, step)
            except (TypeError, ValueError):  # of a number with what is none: the next test
                continue
            assert _done(ours, step) == expected


def _done(store: Any, step: tuple[Any, ...]) -> Any:
    """What a step answers. The in-memory store has items in the order of their namespaces, so no order is compared."""
    match step:
        case ("put", namespace, key, value):
            return store.put(namespace, key, value)
        case ("delete", namespace, key):
            return store.delete(namespace, key)
        case ("get", namespace, key):
            return _plain(store.get(namespace, key))
        case ("search", prefix, wanted):
            found = store.search(prefix, filter=wanted, limit=1000)
            return sorted((_plain(item) for item in found), key=repr)
        case ("pages", prefix, wanted, size):
            starts = range(0, 40, size)
            pages = [store.search(prefix, filter=wanted, limit=size, offset=start) for start in starts]
            return [len(page) for page in pages], sorted((_plain(item) for page in pages for item in page), key=repr)
        case ("batch", puts):
            reads = [GetOp(namespace, key) for namespace, key, _ in puts]
            writes = [PutOp(namespace, key, value) for namespace, key, value in puts]
            return [_plain(result) for result in store.batch([*writes, *reads])]
        case ("namespaces", depth, prefix, suffix, offset, limit):
            if isinstance(store, InMemoryStore):  # which also lists what was looked into, or is empty again
                for empty in [one for one, items in store._data.items() if not items]:
                    del store._data[empty]
            where = {"prefix": tuple(prefix) if prefix else None, "suffix": tuple(suffix) if suffix else None}
            return store.list_namespaces(max_depth=depth, offset=offset, limit=limit, **where)
    raise AssertionError(step)


def _plain(item: Any) -> Any:
    return None if item is None else (item.namespace, item.key, item.value)


@pytest.mark.parametrize("comparison", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
def test_every_comparison_of_every_value_is_that_of_langgraph(comparison: str) -> None:
    values = [-1, 0, 0.5, 1, 2, True, "1", "x", [1], {"n": 1}]
    ours, theirs = KeptStore(kept.open(":memory:")), InMemoryStore()
    for number, value in enumerate(values):
        for store in (ours, theirs):
            store.put(("n", str(number)), "k", {"n": value})
    for number, value in enumerate(values):
        for target in values:
            where: Any = {"filter": {"n": {comparison: target}}}
            found = len(ours.search(("n", str(number)), **where))
            try:
                expected = len(theirs.search(("n", str(number)), **where))
            except (TypeError, ValueError):
                expected = 0
            assert found == expected, (value, comparison, target)


def test_a_comparison_with_a_number_passes_over_values_that_have_none() -> None:
    store = KeptStore(kept.open(":memory:"))
    store.put(("n",), "three", {"n": 3})
    store.put(("n",), "none", {"n": None})
    store.put(("n",), "text", {"n": "many"})
    assert [item.key for item in store.search(("n",), filter={"n": {"$gte": 2, "$lt": 4}})] == ["three"]
    with pytest.raises(ValueError, match=r"'\$near' is not a comparison"):
        store.search(("n",), filter={"n": {"$near": 3}})


def test_pages_follow_the_order_in_which_items_were_stored() -> None:
    store = KeptStore(kept.open(":memory:"))
    for number in range(12):
        store.put(("list",), str(number), {"n": number})
    store.put(("list",), "3", {"n": 33})
    pages = [[item.value["n"] for item in store.search(("list",), limit=5, offset=start)] for start in (0, 5, 10)]
    assert pages == [[0, 1, 2, 33, 4], [5, 6, 7, 8, 9], [10, 11]]


def test_a_query_finds_by_words_with_scores_and_within_the_namespace() -> None:
    store = KeptStore(kept.open(":memory:"))
    store.put(("users", "anna"), "1", {"text": "Anna likes spicy ramen for lunch"})
    store.put(("users", "anna"), "2", {"text": "The office is in Lisbon"})
    store.put(("users", "ben"), "1", {"text": "Ben likes spicy ramen for lunch"})
    store.put(("users", "anna"), "3", {"text": "ramen, but secret"}, index=False)
    store.put(("users", "anna"), "4", {"title": "noodles", "body": "ramen"}, index=["title"])
    found = store.search(("users", "anna"), query="ramen")
    assert [item.key for item in found] == ["1"]
    assert found[0].score is not None
    assert found[0].score > 0


def test_a_search_has_the_floor_of_recall_and_scores_from_0_to_1() -> None:
    store = KeptStore(kept.open(":memory:"))
    store.put(("users", "anna"), "1", {"text": "My sister plays the cello in an orchestra"})
    store.put(("users", "anna"), "2", {"text": "My bicycle is locked with a red chain"})
    store.put(("users", "anna"), "3", {"text": "The dentist has moved to the harbour"})
    assert store.search(("users",), query="What is my salary?") == []
    [found] = store.search(("users",), query="Which lock is on my bicycle?")
    assert (found.key, 0 < (found.score or 0) <= 1) == ("2", True)
    with pytest.raises(kept.InvalidInput, match=r"value must be a dictionary, .* not str"):
        store.put(("users", "anna"), "4", "text")  # type: ignore[arg-type]


def test_what_is_stored_is_a_memory_that_other_agents_recall_and_a_person_can_undo() -> None:
    with kept.open(":memory:") as memory:
        store = KeptStore(memory)
        store.put(("users", "anna"), "food", {"text": "Anna likes spicy ramen for lunch"})
        (hit,) = memory.recall("spicy ramen").hits
        assert hit.memory.content == "Anna likes spicy ramen for lunch"
        memory.undo()
        assert store.get(("users", "anna"), "food") is None


def test_secrets_do_not_reach_the_store() -> None:
    store = KeptStore(kept.open(":memory:"))
    store.put(("keys",), "aws", {"key": "AKIAZQ3DMTW7KX5PVN4R"})
    item = store.get(("keys",), "aws")
    assert item is not None
    assert "AKIAZQ3DMTW7KX5PVN4R" not in str(item.value)


def test_an_item_ends_after_its_time_and_reading_begins_it_again() -> None:
    clock = FakeClock()
    store = KeptStore(kept.open(":memory:", clock=clock))
    store.put(("t",), "short", {"n": 1}, ttl=10)
    clock.advance(minutes=8)
    assert store.get(("t",), "short") is not None
    clock.advance(minutes=8)
    assert store.get(("t",), "short", refresh_ttl=False) is not None, "the first look began its ten minutes again"
    assert len(store.search(("t",), refresh_ttl=False)) == 1
    clock.advance(minutes=8)
    assert store.get(("t",), "short") is None
    assert store.search(("t",)) == []
    assert store.list_namespaces() == []


def test_reads_of_a_batch_see_the_store_before_its_writes() -> None:
    store = KeptStore(kept.open(":memory:"))
    store.put(("b",), "k", {"n": 1})
    got, _, found = store.batch([GetOp(("b",), "k"), PutOp(("b",), "k", {"n": 2}), SearchOp(("b",))])
    assert (got.value, found[0].value) == ({"n": 1}, {"n": 1})
    assert store.get(("b",), "k").value == {"n": 2}


def _slow(store: KeptStore, monkeypatch: pytest.MonkeyPatch, begun: threading.Event) -> None:
    work: Callable[..., Any] = store.batch

    def batch(ops: Any) -> Any:
        begun.set()
        time.sleep(0.3)
        return work(ops)

    monkeypatch.setattr(store, "batch", batch)


def test_the_loop_goes_on_while_a_slow_store_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    store = KeptStore(kept.open(":memory:"))
    _slow(store, monkeypatch, threading.Event())

    async def run() -> int:
        ticks = 0
        put = asyncio.ensure_future(store.aput(("a",), "k", {"n": 1}))
        while not put.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return ticks

    assert asyncio.run(run()) > 10
    assert store.get(("a",), "k") is not None


def test_a_cancelled_put_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store, begun = KeptStore(location=tmp_path / "memory.db"), threading.Event()
    _slow(store, monkeypatch, begun)

    async def run() -> None:
        put = asyncio.ensure_future(store.aput(("a",), "k", {"n": 1}))
        await asyncio.to_thread(begun.wait)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put

    asyncio.run(run())
    monkeypatch.undo()
    assert store.get(("a",), "k").value == {"n": 1}


def test_fifty_at_once_are_all_right(tmp_path: Path) -> None:
    store = KeptStore(location=tmp_path / "memory.db")

    async def run() -> list[Any]:
        await asyncio.gather(*(store.aput(("many",), str(n), {"n": n}) for n in range(50)))
        return await asyncio.gather(*(store.aget(("many",), str(n)) for n in range(50)))

    assert [item.value["n"] for item in asyncio.run(run())] == list(range(50))


AGENT = """
import sys
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from kept.adapters.langgraph import KeptStore

def answer(state: MessagesState, runtime: Runtime):
    said = state["messages"][-1].content
    if said.startswith("remember "):
        runtime.store.put(("users", "anna"), "note", {"text": said.removeprefix("remember ")})
        return {"messages": [("ai", "Noted.")]}
    found = runtime.store.search(("users", "anna"), query=said)
    return {"messages": [("ai", found[0].value["text"] if found else "I do not know.")]}

builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile(store=KeptStore(location=sys.argv[1]))
print(graph.invoke({"messages": [("human", sys.argv[2])]})["messages"][-1].content)
"""


def test_an_agent_stores_in_one_process_and_recalls_in_the_next(tmp_path: Path) -> None:
    def say(words: str) -> str:
        command = [sys.executable, "-c", AGENT, str(tmp_path / "memory.db"), words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    assert say("what is the deploy day?") == "I do not know."
    assert say("remember The deploy day is Tuesday") == "Noted."
    assert say("what is the deploy day?") == "The deploy day is Tuesday"


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("langgraph", tmp_path, monkeypatch)


TRICKY = st.lists(
    st.sampled_from(["a", "b", "/", ".", "%", "%2F", "%2E", "%25", "%2C", "%20", ",", " ", "langgraph"]), max_size=3
).map("".join)
TRICKY_NAMES = st.tuples(st.lists(TRICKY, min_size=1, max_size=3).map(tuple), TRICKY)


@settings(deadline=None)
@given(st.lists(TRICKY_NAMES, min_size=1, max_size=6, unique=True), TRICKY_NAMES)
def test_no_namespace_or_key_is_another_one(names: list[tuple[tuple[str, ...], str]], foreign: Any) -> None:
    """Asked by operations: LangGraph's `get` and `search` check no labels."""
    with kept.open(":memory:") as memory:
        store = KeptStore(memory)
        for number, (namespace, key) in enumerate(names):
            store.batch([PutOp(namespace, key, {"text": f"zebra {number}"})])
        for number, (namespace, key) in enumerate(names):
            [found] = store.batch([GetOp(namespace, key)])
            assert (found.namespace, found.key, found.value) == (namespace, key, {"text": f"zebra {number}"})
        for prefix in {foreign[0], *(one[0] for one in names), *(one[0][:1] for one in names)}:
            wanted = {one for one in names if one[0][: len(prefix)] == prefix}
            for query in (None, "zebra"):
                [items] = store.batch([SearchOp(prefix, query=query, limit=100)])
                assert {(one.namespace, one.key) for one in items} == wanted
        [found] = store.batch([GetOp(*foreign)])
        assert (found is not None) == (foreign in names)
        store.batch([PutOp(*names[0], None)])
        assert [store.batch([GetOp(*one)])[0] is None for one in names] == [True] + [False] * (len(names) - 1)


LABELS_OF_0_2 = st.sampled_from(["users", "alice", "alice/prefs", "a/b/c", "100%", "x,y/z", "50%25", " a"])
NAMES_OF_0_2 = st.tuples(st.lists(LABELS_OF_0_2, min_size=1, max_size=3).map(tuple), st.sampled_from(["k", "b/k"]))


@settings(deadline=None, max_examples=100)
@given(NAMES_OF_0_2, NAMES_OF_0_2, st.booleans())
def test_items_of_kept_0_2_are_found_under_their_own_name_and_no_other(old: Any, other: Any, is_put: bool) -> None:
    """Kept 0.2 joined labels and key with periods and a slash, and left percent signs in tags alone."""

    def tag(labels: tuple[str, ...]) -> str:
        name = ".".join(labels)
        is_quoted = name != name.strip() or "," in name
        return quote(name, safe="/:@._-+~ ").replace(" ", "%20") if is_quoted else name

    namespace, key = old
    with kept.open(":memory:") as memory:
        tags = tuple(tag(namespace[:depth]) for depth in range(1, len(namespace) + 1))
        value = {"text": "old zebra"}
        stored = Document(key=f"{'.'.join(namespace)}/{key}", value=value, content="old zebra", tags=tags)
        memory.documents(COLLECTION).apply([stored])
        store = KeptStore(memory)
        if is_put and other != old:
            store.batch([PutOp(*other, {"text": "new zebra"})])
        for query in (None, "zebra"):
            [items] = store.batch([SearchOp(namespace, query=query, limit=100)])
            assert [one.value for one in items if (one.namespace, one.key) == old] == [value]
            assert all(one.namespace[: len(namespace)] == namespace for one in items)
        [found, foreign] = store.batch([GetOp(*old), GetOp(*other)])
        assert found.value == value
        assert (found.namespace, found.key) == old
        expected = value if other == old else {"text": "new zebra"} if is_put else None
        assert (foreign and foreign.value) == expected
        store.batch([PutOp(*old, {"text": "newer"})])
        assert store.batch([GetOp(*old)])[0].value == {"text": "newer"}
        store.batch([PutOp(*old, None)])
        assert store.batch([GetOp(*old)]) == [None]


def test_the_example_of_an_agent_answers_from_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "langgraph_agent.py"), run_name="__main__")
    assert capsys.readouterr().out == "Anna likes spicy ramen\n"
