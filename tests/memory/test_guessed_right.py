"""A program guesses the library right: len, in, iteration, several refs, data, tags of any case, our own errors."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory.documents import Document
from kept.model import Message


@pytest.fixture(params=[":memory:", "memory.db"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    place = request.param if request.param == ":memory:" else tmp_path / request.param
    with kept.open(place, settings=kept.Settings()) as opened:
        yield opened


def stored(memory: kept.Kept, content: str, **about: Any) -> str:
    ref = memory.remember(content, **about).ref
    assert ref is not None
    return ref


def test_a_memory_has_a_length_and_is_iterated_over_whole(memory: kept.Kept) -> None:
    assert len(memory) == 0
    assert memory, "one without memories is there all the same"
    memory.remember_many([f"The locker number {n} belongs to person {n * 7}" for n in range(620)])
    assert len(memory) == 620
    assert [one.id for one in memory] == list(range(620, 0, -1))


def test_a_ref_a_uid_and_a_memory_are_in_a_memory(memory: kept.Kept) -> None:
    ref = stored(memory, "The canary sings in the auth module")
    one = memory.get(ref)
    for there in (ref, int(ref), one.uid, one, f"[id:{ref}]"):
        assert there in memory
    for absent in (99, "99", "not a ref", None, 1.5, object()):
        assert absent not in memory
    memory.forget(ref)
    assert ref not in memory


def test_a_list_says_when_it_stopped(memory: kept.Kept) -> None:
    memory.remember_many([f"The locker number {n} belongs to person {n * 7}" for n in range(5)])
    page = memory.list(limit=3)
    assert (len(page), page.has_more) == (3, True)
    rest = memory.list(limit=3, after=page[-1].ref)
    assert (len(rest), rest.has_more) == (2, False)
    assert not memory.list(limit=5).has_more


def test_forget_restore_and_pin_take_several_and_one_undo_brings_all_back(memory: kept.Kept) -> None:
    refs = [stored(memory, f"The locker number {n} belongs to person {n * 7}") for n in range(3)]
    assert [one.status for one in memory.pin(refs)] == ["pinned"] * 3
    assert [one.reason for one in memory.forget(refs)] == ["forgotten"] * 3
    assert len(memory) == 0
    memory.undo()
    assert len(memory) == 3
    memory.forget(tuple(refs[:2]))
    assert [one.ref for one in memory.restore(refs[:2])] == refs[:2]
    assert memory.forget([]) == []
    with pytest.raises(kept.NotFound):
        memory.forget([refs[0], "99"])
    assert refs[0] in memory, "a ref that names nothing changes nothing"


# Data of the program


def test_data_is_kept_with_a_memory_and_is_a_filter(memory: kept.Kept) -> None:
    for room, seats, is_open in (("a", 4, True), ("b", 1, False), ("b", 9, True)):
        data = {"room": room, "seats": seats, "open": is_open, 'odd "name"': room, "nested": {"x": 1}}
        stored(memory, f"The room {room} has {seats} seats and a window", data=data)
    first = memory.get(1).data
    assert first is not None
    assert (first["room"], first["nested"]) == ("a", {"x": 1})
    assert [one.id for one in memory.list(data={"room": "b"})] == [3, 2]
    assert [one.id for one in memory.list(data={"room": "b", "open": True})] == [3]
    assert [one.id for one in memory.list(data={'odd "name"': "a"})] == [1]
    assert [one.id for one in memory.list(data={"seats": 1})] == [2], "true is not 1"
    assert memory.list(data={"room": 1}) == []
    assert memory.list(data={"roo": "b"}) == []
    assert {hit.ref for hit in memory.recall("room window seats", data={"room": "b"})} == {"2", "3"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"signals": ["explicit-pin"]}, "Kept uses this name"),
        ({"kept_code": {}}, "Kept uses this name"),
        (["x"], "must be a dictionary"),
        ({1: 2}, "must be a dictionary"),
    ],
)
def test_data_cannot_take_the_place_of_the_notes_that_kept_makes(memory: kept.Kept, data: Any, said: str) -> None:
    with pytest.raises(kept.InvalidInput, match=said):
        memory.remember("The canary sings", data=data)
    with pytest.raises(kept.InvalidInput):
        memory.list(data=data)


@pytest.mark.parametrize("handle", ["session", "task", "narrative"])
def test_a_handle_remembers_as_the_memory_does(memory: kept.Kept, handle: str) -> None:
    opened = getattr(memory, handle)("deploys")
    receipt = opened.remember("The canary sings at nine", tags="birds", also=["bird"], data={"room": "a"}, pin=True)
    assert (receipt.memory.tags, receipt.memory.status) == (("birds",), "pinned")
    assert receipt.memory.data["room"] == "a"
    assert getattr(receipt.memory.source, handle) == "deploys"
    for wrong in ({"data": {"kept_code": {}}}, {"source": "me"}, {"tags": {"x": 1}}, {"tier": "for ever"}):
        with pytest.raises(kept.InvalidInput):
            opened.remember("The canary is silent", **wrong)


def test_a_secret_in_data_is_redacted(memory: kept.Kept) -> None:
    one = memory.get(stored(memory, "The canary has an account", data={"password": "hunter2-correct-horse"}))
    assert "hunter2" not in str(one.data)


# Tags, aliases, keys, wrong types


def test_the_case_of_tags_does_not_matter(memory: kept.Kept) -> None:
    stored(memory, "The canary sings in the auth module", tags=["Auth", "ÜBER"])
    stored(memory, "The parrot sings in the billing module", tags=["billing"])
    for tags in (["auth"], ["AUTH"], "aUTH", ["über"], ["Über"]):
        assert [one.id for one in memory.list(tags=tags)] == [1], tags
        assert [hit.ref for hit in memory.recall("sings module", tags=tags)] == ["1"], tags
    assert memory.list(tags=["aut"]) == []


def test_tags_that_programs_use_as_names_stay_exact(memory: kept.Kept) -> None:
    notes = memory.documents("notes")
    for name in ("Ada", "ada"):
        notes.apply([Document(key=name, value={"who": name}, content=f"The canary of {name} sings", tags=(name,))])
    assert [found.key for found in notes.list(tag="Ada")] == ["Ada"]
    assert [found.key for found in notes.search("canary", tag="ada")] == ["ada"]


def test_an_alias_takes_a_list(memory: kept.Kept) -> None:
    assert memory.aliases.add("zebra", ["postgres", "warehouse"]).expands_to == ("postgres", "warehouse")
    assert memory.aliases.add("zebra", "lake", ["archive"]).expands_to[-2:] == ("lake", "archive")


ANNA, BEN = "anna@example.org", "ben@example.org"


def test_a_key_that_is_redacted_is_refused_because_others_would_be_the_same(memory: kept.Kept) -> None:
    for key in (f"welcome:{ANNA}", "auth0|5f7c8ec7c33c6c004bbafe82"):
        with pytest.raises(kept.InvalidInput, match="key has a secret or an e-mail address"):
            memory.remember("Likes tea", key=key)
        with pytest.raises(kept.InvalidInput, match="key has a secret or an e-mail address"):
            memory.remember_many(["Likes ramen", kept.Draft(content="Likes tea", key=key)])
    assert len(memory) == 0


def test_data_that_is_redacted_cannot_be_searched_for(memory: kept.Kept) -> None:
    for user in (ANNA, BEN):
        memory.remember(f"The one called {user[:3]} likes green tea", data={"user": user})
    calls: list[Callable[[], object]] = [
        lambda: memory.list(data={"user": ANNA}),
        lambda: memory.recall("tea", data={"user": ANNA}),
    ]
    for call in calls:
        with pytest.raises(kept.InvalidInput, match="data has a secret or an e-mail address"):
            call()


def test_where_addresses_are_stored_keys_and_data_have_them(tmp_path: Path) -> None:
    with kept.open(tmp_path / "m.db", settings={"redact_email": False}) as memory:
        stored(memory, "Likes green tea", key=ANNA, data={"user": ANNA})
        stored(memory, "Likes ramen with egg", key=BEN, data={"user": BEN})
        assert [one.content for one in memory.list(data={"user": ANNA})] == ["Likes green tea"]


def test_a_key_with_another_text_says_so(memory: kept.Kept) -> None:
    ref = stored(memory, "The canary sings in the auth module", key="k1")
    same = memory.remember("The canary sings in the auth module", key="k1")
    assert (same.outcome, same.reason, same.message) == ("stored", "already_stored", "It was stored before.")
    other = memory.remember("The parrot sleeps", key="k1")
    assert (other.outcome, other.reason, other.ref) == ("refused", "key_taken", ref)
    assert "<Receipt refused 1 (key_taken: Nothing was stored" in repr(other)
    assert "another text" in other.message
    assert len(memory) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"actor": "anna"}, r"actor must be a kept\.Actor, such as .*, not str"),
        ({"origin": "me"}, "Unknown origin 'me'"),
        ({"origin": None}, "Unknown origin 'None'"),
    ],
)
def test_wrong_types_at_opening_are_our_errors(given: dict[str, Any], said: str) -> None:
    with pytest.raises(kept.InvalidInput, match=said):
        kept.open(":memory:", **given)


def test_a_source_of_another_type_is_our_error(memory: kept.Kept) -> None:
    with pytest.raises(kept.InvalidInput, match=r"source must be a kept\.Source, not str"):
        memory.remember("The canary sings", source="anna")  # type: ignore[arg-type]


def test_reprs_are_short(memory: kept.Kept) -> None:
    receipt = memory.remember("The canary sings in the auth module " * 5)
    recalled = memory.recall("canary auth")
    assert repr(memory) == "<kept.Kept: a single store>"
    assert repr(receipt) == "<Receipt stored 1>"
    assert repr(recalled) == "<Recalled: 1 hits>"
    assert repr(memory.get(1)).startswith("<Memory 1 fact: 'The canary sings")
    assert repr(memory.briefing("canary")).startswith("<Briefing: ")
    assert repr(memory.session("s1")) == "<Session 's1'>"
    for shown in (receipt, recalled, recalled[0], memory.get(1), Message(id="", role="user", content="x\x1b[2J" * 99)):
        assert len(repr(shown)) < 120
        assert "\x1b" not in repr(shown)
