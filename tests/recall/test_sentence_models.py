"""Sentence models in ONNX form that a user points to: what they find, how they rerank, and what can be wrong."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.distribution import install_line
from kept.memory import embedder
from kept.model import Message
from kept.recall import models
from kept.recall.messages import meaning
from kept.recall.minilm import MiniLM
from tests.builders import FakeClock, context_of
from tests.recall.concepts import Concepts
from tests.recall.onnx_models import INPUTS, SENTENCE, TOKENS, make_model, needs_onnx

pytestmark = needs_onnx

CAR = "The automobile of the manager is in the garage"
TEXTS = (CAR, "The puppy sleeps all day", "Use Fastify, not Express", "The API listens on port 3000")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_model(tmp_path / "tiny")


def opened(place: str | Path, model: Path | None, **chosen: Any) -> kept.Kept:
    chosen = {"profile": "hybrid", "vector_model": None if model is None else str(model)} | chosen
    return kept.open(place, settings=kept.Settings(**chosen), clock=FakeClock())


@pytest.fixture
def memory(folder: Path, tmp_path: Path) -> Iterator[kept.Kept]:
    with opened(tmp_path / "memory.db", folder, recall_deadline_ms=60_000) as memory:
        for text in TEXTS:
            memory.remember(text)
        yield memory


def contents(recalled: kept.model.Recalled) -> list[str]:
    return [hit.memory.content for hit in recalled]


# What models look like


@pytest.mark.parametrize("outputs", [TOKENS, SENTENCE, {"pooler_output": 2, **TOKENS}])
@pytest.mark.parametrize(
    "inputs",
    [INPUTS, {"input_ids": "int32"}, {**INPUTS, "token_type_ids": "int64"}],
    ids=["usual", "small numbers", "as BERT"],
)
def test_a_memory_is_found_by_its_meaning(tmp_path: Path, inputs: dict[str, str], outputs: dict[str, int]) -> None:
    """Issue 17: mean of the tokens, or the model's own sentence output; whatever of the usual inputs it takes."""
    folder = make_model(tmp_path / "tiny", inputs=inputs, outputs=outputs)
    with opened(":memory:", folder) as memory:
        for text in TEXTS:
            memory.remember(text)
        recalled = memory.recall("vehicle")
        assert contents(recalled) == [CAR]
        assert recalled.degraded is None
        assert recalled.hits[0].parts["vectors"] > 0


def test_padding_and_company_change_no_vector(folder: Path) -> None:
    model = models.SentenceModel(folder)
    texts = ["car", "garage " * 400, "", "the dog of the manager is at home", *(f"port {n}" for n in range(20))]
    together = model.embed(texts)
    for text, row in zip(texts, together, strict=True):
        assert row.tolist() == pytest.approx(model.embed([text])[0].tolist(), abs=1e-6)


def test_the_tokens_are_averaged_unless_the_model_says_that_the_first_one_counts(folder: Path) -> None:
    mean = models.SentenceModel(folder).embed(["car dog"])[0]
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    models._running.cache_clear()
    first = models.SentenceModel(folder).embed(["car dog"])[0]
    assert set(mean.tolist()) == {-1.0, 0.0, 1.0}
    assert set(first.tolist()) == {-1.0, 1.0}


def test_the_file_may_lie_in_a_folder_onnx(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "tiny", under="onnx")
    assert models.SentenceModel(folder).embed(["car"]).shape == (1, 320)


def test_nothing_of_it_is_loaded_before_it_is_needed(folder: Path) -> None:
    program = f"""
import sys, kept
with kept.open(":memory:", settings={{"vector_model": {str(folder)!r}}}) as memory:
    memory.remember("The car is in the garage")
    assert memory.recall("garage").hits
print({{"numpy", "onnxruntime", "tokenizers"}} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"KEPT_CONFIG": str(folder / "none.toml")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


# One model after another


@pytest.mark.parametrize("place", ["memory.db", "memory.json", ":memory:"])
def test_switched_on_by_a_call_every_memory_gets_a_vector_of_that_model(
    place: str, folder: Path, tmp_path: Path
) -> None:
    with opened(place if place == ":memory:" else tmp_path / place, None) as memory:
        memory.remember(CAR)
        memory.vectors.on()
        assert list(memory.vectors.status().values()) == [{"model": MiniLM.model, "done": 1, "pending": 0}]
        memory.vectors.on(model=folder)
        [state] = memory.vectors.status().values()
        assert state["model"].startswith("tiny-")
        assert (state["done"], state["pending"]) == (1, 0)
        assert memory.recall("puppy automobile").hits[0].parts["vectors"] > 0
        memory.vectors.on(model="all-MiniLM-L6-v2")
        assert list(memory.vectors.status().values()) == [{"model": MiniLM.model, "done": 1, "pending": 0}]


def test_other_weights_in_the_same_folder_are_noticed_and_vectors_made_again(folder: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db", folder) as memory:
        memory.remember(CAR)
        assert contents(memory.recall("vehicle")) == [CAR]
        [before] = memory.vectors.status().values()
    make_model(folder, seed=3)
    with opened(tmp_path / "memory.db", folder) as memory:
        assert memory.recall("vehicle in the garage").hits[0].parts["vectors"] > 0
        [after] = memory.vectors.status().values()
    assert before["model"] != after["model"]
    assert (after["done"], after["pending"]) == (1, 0)


def test_a_copy_of_a_model_is_the_same_model(folder: Path, tmp_path: Path) -> None:
    copy = make_model(tmp_path / "elsewhere" / "tiny")
    assert models.SentenceModel(copy).model == models.SentenceModel(folder).model


def test_a_question_makes_only_a_few_vectors_of_a_slow_model(memory: kept.Kept, monkeypatch: Any) -> None:
    monkeypatch.setattr(embedder, "WITH_A_QUESTION", 3)
    recalled = memory.recall("port")
    assert recalled.degraded == "1 memories have no vector yet and were matched by words only. Run `kept vectors on`."
    assert memory.recall("port").degraded is None


def test_projects_with_different_models_do_not_take_turns_on_global_memory(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with kept.open(home=home, project="a", settings={"search_provider": "hybrid"}) as first:
        first.remember("A pattern: the vehicle waits in the garage", tier="global", kind="pattern")
        first.recall("vehicle")
    settings = {"search_provider": "hybrid", "vector_model": str(folder)}
    with kept.open(home=home, project="b", settings=settings) as second:
        recalled = second.recall("garage")
        assert len(recalled.hits) == 1
        assert "Run `kept vectors on`." in (recalled.degraded or "")
        assert second.vectors.status()["global"]["model"] == MiniLM.model
        second.vectors.on()
        assert second.recall("garage").degraded is None
        assert second.vectors.status()["global"]["model"].startswith("tiny-")


# What can be wrong


def test_each_wrong_folder_has_an_error_that_helps(tmp_path: Path) -> None:
    """Issue 17: a wrong directory, unexpected inputs, a missing file, a corrupt file."""
    without_tokenizer = make_model(tmp_path / "without_tokenizer")
    (without_tokenizer / "tokenizer.json").unlink()
    corrupt = make_model(tmp_path / "corrupt")
    (corrupt / "model.onnx").write_bytes(b"\0 this is no model")
    cut = make_model(tmp_path / "cut")
    (cut / "model.onnx").write_bytes((cut / "model.onnx").read_bytes()[:200])
    no_tokens = make_model(tmp_path / "no_tokens")
    (no_tokens / "tokenizer.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    pictures = make_model(tmp_path / "pictures", inputs={"input_ids": "int64", "pixel_values": "int64"})
    judge = make_model(tmp_path / "judge", outputs={"logits": 2})
    wrong = {
        tmp_path / "nowhere": "There is no folder",
        tmp_path / "empty": "There is no model.onnx in",
        without_tokenizer: "There is no tokenizer.json in",
        corrupt: "corrupt/model.onnx cannot be used: ",
        cut: "cut/model.onnx cannot be used: ",
        no_tokens: "tokenizer.json cannot be used: ",
        pictures: "takes input_ids, pixel_values, and a sentence model",
        judge: "returns logits, and no vectors",
    }
    with opened(":memory:", None) as memory:
        memory.remember(CAR)
        memory.vectors.on()
        before = memory.vectors.status()
        for folder, message in wrong.items():
            with pytest.raises(kept.SettingsError) as raised:
                memory.vectors.check(folder)
            assert message in raised.value.message.replace("\\", "/"), folder
            assert "kept vectors on --model DIR" in raised.value.hint or "feature-extraction" in raised.value.hint
        assert memory.vectors.status() == before


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_the_extra_an_error_names_the_line_to_type(
    folder: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models._running.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with opened(":memory:", folder) as memory:
        memory.remember(CAR)
        with pytest.raises(kept.SettingsError, match=f"needs the package {package}") as raised:
            memory.vectors.check()
        assert raised.value.hint == f"Install it: {install_line('onnx')}"


@pytest.mark.parametrize("scope", ["memory", "sessions"])
def test_a_model_that_is_gone_leaves_an_answer_by_words(scope: Any, folder: Path, tmp_path: Path) -> None:
    with opened(":memory:", tmp_path / "gone", profile="kept", search_provider="hybrid") as memory:
        memory.remember(CAR)
        memory.session("monday").append("user", CAR)
        recalled = memory.recall("garage", scope=scope)
        assert contents(recalled) == [CAR]
        assert (recalled.degraded or "").startswith("Only words were compared. There is no folder")
        assert "coverage" in recalled.hits[0].why or scope == "sessions", "it ranks as without vectors"


def test_a_model_that_fails_in_the_middle_leaves_an_answer_by_words(memory: kept.Kept, monkeypatch: Any) -> None:
    memory.session("monday").append("user", CAR)
    memory.recall("garage")

    def fail(self: object, texts: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(models.SentenceModel, "embed", fail)
    monkeypatch.setattr(models.SentenceModel, "load", lambda self: None)
    for scope in ("memory", "sessions"):
        recalled = memory.recall("garage", scope=scope)
        assert contents(recalled) == [CAR]
        assert recalled.degraded == "The embedder failed (RuntimeError), so only words were compared."


# Conversations


def talk(memory: kept.Kept, role: Any) -> None:
    said = [
        Message(id="1", role=role, content="Which pet does the manager have?"),
        Message(id="2", role="user", content="The manager has a hound"),
        Message(id="3", role="user", content="The manager has a garage"),
        Message(id="4", role=role, content="And what does the manager have at home?"),
    ]
    memory.session("monday").extend(said)


@pytest.mark.parametrize(("role", "part"), [("assistant", "meaning"), ("user", "window")])
def test_a_message_is_compared_by_itself_or_between_people_with_those_around(
    memory: kept.Kept, role: str, part: str
) -> None:
    talk(memory, role)
    plain = {hit.memory.id: hit for hit in memory.recall("dog of the manager", scope="sessions", profile="kept")}
    meant = {hit.memory.id: hit for hit in memory.recall("dog of the manager", scope="sessions")}
    assert meant[2].why[part] > meant[3].why[part]
    if part == "window":
        assert meant[3].why[part] > meant[4].why[part], "the hound stands next to the garage"
    for number, hit in meant.items():
        assert hit.score == pytest.approx(sum(hit.why.values()), rel=1e-12)
        assert {name: value for name, value in hit.why.items() if name != part} == pytest.approx(plain[number].why)


def test_what_is_said_in_passing_counts_in_full(memory: kept.Kept) -> None:
    """A message is as near to the question as its nearest passage."""
    aside = "The manager listens at the port at home. By the way, a hound is my dog, and we like it a lot."
    memory.session("monday").extend(
        [
            Message(id="1", role="assistant", content="The manager listens"),
            Message(id="2", role="user", content=aside),
            Message(id="3", role="user", content="A hound is my dog, and the manager listens at the port at home"),
        ]
    )
    hits = {hit.memory.id: hit.why for hit in memory.recall("which puppy listens", scope="sessions")}
    assert hits[2]["meaning"] > hits[3]["meaning"] > hits[1].get("meaning", 0.0)


def test_only_the_best_twenty_are_compared(tmp_path: Path) -> None:
    embedder, settings = Concepts(), {"profile": "hybrid", "recall_deadline_ms": 60_000}
    with kept.open(":memory:", settings=settings, embedder=embedder, clock=FakeClock()) as memory:
        memory.session("monday").extend(
            [Message(id=str(n), role="user", content=f"The manager said {n}") for n in range(50)]
        )
        recalled = memory.recall("manager", scope="sessions", limit=50)
        compared = [hit for hit in recalled if "window" in hit.why]
        assert len(compared) == meaning.RERANKED == 20
        assert compared == list(recalled.hits[:20]), "who was not compared stays behind"
        assert len(embedder.seen) == 1 + 20


def test_when_time_runs_out_the_rest_keeps_its_order_and_the_answer_says_so(folder: Path) -> None:
    ticks = iter(range(1_000_000))
    with opened(":memory:", folder, recall_deadline_ms=200) as memory:
        memory.session("monday").extend(
            [Message(id=str(n), role="user", content=f"The manager said {n}") for n in range(30)]
        )
        context_of(memory).timer = lambda: next(ticks) * 0.04
        recalled = memory.recall("manager", scope="sessions", limit=30)
        compared = sum("window" in hit.why for hit in recalled)
        assert 0 < compared < 20
        assert len(recalled.hits) == 30
        assert recalled.degraded == f"Time ran out, so {compared} of the best 20 messages were compared by meaning."
