"""Arguments of the wrong type or out of range raise an error that says so, whichever method is called."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.compat import StorageBackend


@pytest.fixture(params=["sqlite", "memory"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    with kept.open(":memory:" if request.param == "memory" else tmp_path / "m.db") as opened:
        opened.remember("The importer retries three times", tags=["importer"])
        yield opened


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.recall(None), "query must be a string, not NoneType"),
        (lambda m: m.recall(b"importer"), "query must be a string, not bytes"),
        (lambda m: m.recall("x", tags=[3]), "must be a string, not int"),
        (lambda m: m.recall("x", limit=1.5), "limit must be a whole number from 1 to 1,000, got 1.5"),
        (lambda m: m.recall("x", limit=0), "limit must be a whole number from 1 to 1,000, got 0"),
        (lambda m: m.recall("x", since="2026-01-01"), "since must be a datetime with a time zone"),
        (lambda m: m.recall("x", until=date(2026, 1, 1)), "until must be a datetime with a time zone"),
        (lambda m: m.recall("x", since=datetime(2026, 1, 1)), "since must be a datetime with a time zone"),
        (lambda m: m.list(limit=1.5), "limit must be a whole number from 0 to 2,147,483,647, got 1.5"),
        (lambda m: m.list(limit=True), "got True"),
        (lambda m: m.list(limit=10**30), "limit must be a whole number"),
        (lambda m: m.history(limit=-1), "limit must be a whole number from 0 to 2,147,483,647, got -1"),
        (lambda m: m.history(limit=10**30), "limit must be a whole number"),
        (lambda m: m.subscribe("x"), "subscriber must be a function that takes a signal, not str"),
        (lambda m: m.remember("x", replaces=1.5), "replaces must be a list of refs, not float"),
        (lambda m: m.session("s").append({"role": "user"}), "role must be a string, such as 'user', not dict"),
        (lambda m: m.erase(b"1"), "is not a memory ref"),
        (lambda m: m.erase(None), "is not a memory ref"),
        (lambda m: m.erase(1.5), "is not a memory ref"),
        (lambda m: m.erase({}), "is not a memory ref"),
    ],
)
def test_a_wrong_argument_is_an_error_and_changes_nothing(
    memory: kept.Kept, call: Callable[[Any], object], sentence: str
) -> None:
    with pytest.raises(kept.InvalidInput, match=sentence):
        call(memory)
    assert [m.content for m in memory.list()] == ["The importer retries three times"]


door: Any = kept.open  # as a program without types calls it
actor: Any = kept.Actor
backend: Any = StorageBackend


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: door(":memory:", confirm=True), "confirm must be a function that takes a question .* not bool"),
        (lambda: door(":memory:", embedder="minilm"), "embedder must be an object with a name `model` .* not str"),
        (lambda: door(":memory:", settings="hybrid"), "settings must be a dictionary, .* not str"),
        (lambda: door(5), "location must be a file, .* not int"),
        (lambda: door(kept.open(":memory:")), "location must be a file, .* not Kept"),
        (lambda: door(":memory:", judge="on"), "judge must be a function .* not str"),
        (lambda: actor(role="boss"), "Unknown role 'boss'. Choose one of"),
        (lambda: backend(5), "storage must be a path or one of our storages, not int"),
    ],
)
def test_a_wrong_argument_at_the_door_says_what_is_expected(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(kept.InvalidInput, match=sentence):
        call()


def test_a_session_that_nobody_has_begun_is_not_the_source_of_a_memory(memory: kept.Kept) -> None:
    with pytest.raises(kept.NotFound, match="There is no session 'nope'"):
        memory.remember("The canary sings", session="nope")
    memory.session("monday")
    receipt = memory.remember("The canary sings", session="monday")
    assert receipt.memory is not None
    assert receipt.memory.source.session == "monday"


def test_a_path_may_be_a_string(memory: kept.Kept, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id":"m1","role":"user","content":"hello"}\n')
    (done,) = memory.import_transcripts("brain", str(tmp_path / "t.jsonl"))
    assert done.added == 1


def test_a_backup_may_be_named_by_a_string(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db") as memory:
        memory.remember("The importer retries three times")
        memory.store.backup(str(tmp_path / "backup.db"))
        memory.remember("It gives up after that")
        memory.store.restore(str(tmp_path / "backup.db"), overwrite_newer=True)
        assert len(memory.list()) == 1


def test_hits_can_be_counted_and_taken_by_their_place(memory: kept.Kept) -> None:
    recalled = memory.recall("importer")
    assert recalled[0] is recalled.hits[0]
    assert len(recalled) == 1


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.remember("x", tags=[f"t{n}" for n in range(51)]), "at most 50 tags, got 51"),
        (lambda m: m.remember("x", tags=["t" * 501]), "A tag is 501 bytes long; the limit is 500"),
        (lambda m: m.remember("x", files=[f"f{n}" for n in range(201)]), "at most 200 files, got 201"),
        (lambda m: m.remember("x", files=["f" * 501]), "A file is 501 bytes long"),
        (lambda m: m.remember_many([kept.Draft(content="x", title="t" * 501)]), "title is 501 bytes long"),
        (lambda m: m.remember_many([kept.Draft(content="x", data={"k": "v" * 70_000})]), "data is 70,008 bytes long"),
        (lambda m: m.remember_many([kept.Draft(content="x", data=nested(101))]), "at most 100 deep"),
        (
            lambda m: m.session("s").append("tool_call", name="t", input={"k": "v" * 1_000_001}),
            "the limit is 1,000,000",
        ),
        (lambda m: m.session("s").append("tool_call", name="t", input=nested(900)), "at most 100 deep"),
        (lambda m: m.session("s").append("user", "x", timestamp=datetime(1, 1, 1, tzinfo=UTC)), "is in the year 1"),
        (lambda m: m.remember_many([kept.Draft(content="x", created_at=datetime(1, 1, 1, tzinfo=UTC))]), "the year 1"),
        (lambda m: m.aliases.add("a", *(f"b{n}" for n in range(51))), "at most 50 words, got 51"),
        (lambda m: m.task("T", blocked_by=[f"T-{n}" for n in range(101)]), "at most 100 others"),
    ],
)
def test_every_size_has_a_limit_and_says_so(memory: kept.Kept, call: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(kept.InvalidInput, match=sentence):
        call(memory)


def test_repeating_a_memory_with_other_tags_does_not_make_it_grow_for_ever(memory: kept.Kept) -> None:
    for batch in range(6):
        receipt = memory.remember(
            "The importer retries", tags=[f"t{batch}-{n}" for n in range(20)], files=[f"f{batch}"]
        )
    assert receipt.memory is not None
    assert len(receipt.memory.tags) == 50


def test_a_kind_that_may_be_mistyped_is_stored_and_the_receipt_says_so(memory: kept.Kept) -> None:
    first = memory.remember("We deploy with make ship", kind="decison")
    assert first.outcome == "stored"
    assert first.message == "Stored with the kind 'decison', which is new here. Did you mean 'decision'?"
    again = memory.remember("The tables are copied at night", kind="decison")
    other = memory.remember("Restart the worker when the queue is full", kind="runbook")
    assert (again.message, other.message) == ("", "")
