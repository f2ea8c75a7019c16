"""Documents are kept as they are given, found by their words, undone and forgotten like any memory."""

import pytest

import kept
from kept.memory.documents import Document, Documents
from tests.builders import FakeClock, context_of


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> kept.Kept:
    return kept.open(":memory:", clock=clock)


@pytest.fixture
def documents(memory: kept.Kept) -> Documents:
    return memory.documents("notes")


def test_nothing_is_judged_and_twins_stay_two(documents: Documents) -> None:
    documents.apply([Document(key=key, value={"n": key}, content="ok") for key in "ab"])
    assert [one.value for one in documents.list()] == [{"n": "a"}, {"n": "b"}]


def test_a_second_value_takes_the_place_of_the_first_and_undo_brings_it_back(
    documents: Documents, memory: kept.Kept, clock: FakeClock
) -> None:
    documents.apply([Document(key="a", value={"n": 1}, content="one")])
    born = clock()
    clock.advance(hours=1)
    documents.apply([Document(key="a", value={"n": 2}, content="two")])
    now = documents.get("a")
    assert now is not None
    assert (now.value, now.created_at, now.updated_at) == ({"n": 2}, born, clock())
    memory.undo()
    before = documents.get("a")
    assert before is not None
    assert before.value == {"n": 1}


def test_a_forgotten_key_is_free_again_and_begins_anew(documents: Documents, clock: FakeClock) -> None:
    documents.apply([Document(key="a", value={"n": 1})])
    documents.apply(["a", "never there"])
    assert documents.get("a") is None
    assert list(documents.list()) == []
    clock.advance(hours=1)
    documents.apply([Document(key="a", value={"n": 2})])
    again = documents.get("a")
    assert again is not None
    assert (again.value, again.created_at) == ({"n": 2}, clock())


def test_one_call_is_stored_whole_or_not_at_all(documents: Documents) -> None:
    with pytest.raises(kept.InvalidInput, match="NUL"):
        documents.apply([Document(key="a", value={}), Document(key="b", value={}, content="no\0")])
    assert list(documents.list()) == []


def test_two_collections_do_not_see_each_other(documents: Documents, memory: kept.Kept) -> None:
    other = memory.documents("other")
    documents.apply([Document(key="a", value={"mine": True}, content="shared words")])
    other.apply([Document(key="a", value={"mine": False}, content="shared words")])
    assert [one.value for one in documents.search("shared words")] == [{"mine": True}]
    assert [one.value for one in documents.list()] == [{"mine": True}]


def test_the_program_still_has_what_upkeep_archived(documents: Documents, memory: kept.Kept) -> None:
    documents.apply([Document(key="a", value={"n": 1}, content="We deploy on Fridays")])
    (stored,) = memory.list()
    with context_of(memory).owned().writing(context_of(memory).stamp()) as tx:
        tx.put(stored.archived("evicted", tx.stamp.at), "evict")
    assert documents.get("a") is not None


def test_a_key_with_a_secret_is_refused(documents: Documents) -> None:
    with pytest.raises(kept.InvalidInput, match="looks like a secret"):
        documents.apply([Document(key="ghp_" + "a8Kd92LmQz71XvBn45TyRw03EuPo68GhJf2S", value={})])


def test_many_pages_are_listed_in_order(documents: Documents) -> None:
    documents.apply([Document(key=str(n), value={"n": n}, tags=("even",) if n % 2 == 0 else ()) for n in range(1_203)])
    assert [one.value["n"] for one in documents.list()] == list(range(1_203))
    assert [one.value["n"] for one in documents.list(tag="even")] == list(range(0, 1_203, 2))
