"""The words: kinds, origins, refs, receipts, signals."""

from typing import get_args

import pytest

import kept
from kept import ids
from kept.model import KIND_ALIASES, KINDS, TRUSTS, Memory, Origin, canonical_kind, least
from tests.builders import START, FakeClock, memory


def test_kinds_are_an_open_vocabulary_with_aliases() -> None:
    """C7: the nine categories are kinds; other systems' words lead to ours; any other word is a kind of its own."""
    praxis = "decision architecture pattern warning discovery error preference file_change task_progress".split()
    assert {canonical_kind(kind) for kind in praxis} <= set(KINDS)
    assert canonical_kind("failure") == "error"
    assert canonical_kind("Task Progress") == canonical_kind("task-progress") == "progress"
    assert canonical_kind("claim") == canonical_kind("note") == canonical_kind("entity") == "fact"
    assert canonical_kind("runbook") == "runbook"
    assert set(KIND_ALIASES.values()) <= set(KINDS)


def test_provenance() -> None:
    """A4: where a memory comes from; migration is one of them."""
    assert {"conversation", "agent", "extraction", "narrative", "migration"} <= set(get_args(Origin))


def test_a_memory_has_what_every_design_asks_of_one() -> None:
    """A2, C6: content, source, tags, created_at, last_hit_at, score (feedback), session, narrative, task; and so on."""
    fields = set(Memory.__struct_fields__)
    assert {"content", "tags", "created_at", "last_hit_at", "feedback", "source"} <= fields
    assert {"fingerprint", "kind", "importance", "status", "confidence", "files", "use_count", "updated_at"} <= fields
    assert {"session", "narrative", "task"} <= set(kept.Source.__struct_fields__)


def test_a_text_has_the_least_trust_of_what_it_was_made_from() -> None:
    assert TRUSTS == ("unknown", "tool", "agent", "teammate", "user")
    assert least("user", "teammate") == "teammate"
    assert least("teammate", "agent") == "agent"
    assert not memory("x", trust="teammate").is_low_trust
    assert memory("x", trust="unknown").status == "candidate"


@pytest.mark.parametrize("ref", [42, "42", " 42 ", "[id:42]", "[ID:42]"])
def test_a_ref_can_be_written_in_many_ways(ref: int | str) -> None:
    """A10: agents read `[id:N]` and type it back."""
    assert ids.parse_ref(ref) == ids.Ref(id=42)
    assert str(ids.parse_ref("g7")) == str(ids.parse_ref("[id:g7]")) == "g7"


@pytest.mark.parametrize("ref", [0, -1, True, "", "g", "4 2", "[id:]", "c7", "42; drop table", "9" * 30, "½", "٤٢"])
def test_what_is_no_ref_is_said_so(ref: int | str) -> None:
    with pytest.raises(kept.InvalidInput, match="ref"):
        ids.parse_ref(ref)


def test_a_uid_is_a_ref_too_and_sorts_by_time() -> None:
    early, late = ids.uuid7(START, b"\xff" * 10), ids.uuid7(START.replace(year=2027), b"\x00" * 10)
    assert early < late
    assert ids.parse_ref(early.upper()) == ids.Ref(uid=early)
    assert (early[14], early[19]) == ("7", "b")


def test_refs_say_which_space() -> None:
    assert memory("x", id=3).ref == "3"
    assert memory("x", id=3, space="global").ref == "g3"


def test_subscribers_hear_and_cannot_break_anything() -> None:
    """B18: signals of the five names; a failing subscriber never breaks a write."""
    heard: list[tuple[str, dict[str, object]]] = []

    def fail(signal: kept.Signal) -> None:
        raise RuntimeError("a bad guest")

    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings()) as store:
        store.subscribe(fail)
        stop = store.subscribe(lambda signal: heard.append((signal.name, signal.payload)))
        assert store.remember("Heard").outcome == "stored"
        store.recall("heard")
        store.get(1)
        session = store.session("s1")
        session.append("user", "We decided to use Postgres for billing, because it is the best for it.")
        session.flush()
        session.compact(force=True)
        stop()
        store.remember("Not heard")
    names = [name for name, _ in heard]
    assert names[0] == "memory:write"
    assert {"memory:write", "memory:search", "memory:read", "memory:flush"} <= set(names)
    payloads = dict(heard)
    assert payloads["memory:search"] == {"query": "heard", "results": 1}
    assert set(payloads["memory:read"]) == {"type", "path", "size"}
    assert set(payloads["memory:write"]) == {"type", "path", "delta"}
    assert payloads["memory:flush"] == {"sessionId": "s1"}
