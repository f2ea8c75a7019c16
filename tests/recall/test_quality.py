"""The quality bench reads every form of data, asks the real recall, and counts right."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench import quality
from bench.quality import Query

AT = datetime(2026, 3, 1, tzinfo=UTC)


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def conversation(folder: Path) -> Path:
    said = [("S1", "Ann", "I adopted a parrot."), ("S1", "Ben", "Lovely!"), ("S2", "Ben", "I fell off a ladder.")]
    write_lines(
        folder / "memories.jsonl",
        [
            {"id": f"D{n}", "session": session, "speaker": speaker, "text": text, "timestamp": "2023-05-08T13:56:00"}
            for n, (session, speaker, text) in enumerate(said, start=1)
        ],
    )
    write_lines(
        folder / "queries.jsonl",
        [
            {"id": "q1", "query": "What did Ann adopt?", "gold": ["D1"], "category": "single-hop"},
            {"id": "q2", "query": "Who saw the volcano?", "gold": ["D3"], "category": "single-hop"},
            {"id": "q3", "query": "What did Ann fall off?", "gold": ["D3"], "category": "adversarial"},
            {"id": "q4", "query": "What is unknown?", "gold": [], "category": "single-hop"},
        ],
    )
    return folder


def haystacks(folder: Path) -> Path:
    write_lines(
        folder / "sessions.jsonl",
        [
            {"session": "a", "turns": [{"id": "a#0", "speaker": "user", "text": "My parrot is called Kiki."}]},
            {"session": "b", "turns": [{"id": "b#0", "speaker": "assistant", "text": "A parrot eats seeds."}]},
            {"session": "c", "turns": [{"id": "c#0", "speaker": "user", "text": "My parrot is called Lola."}]},
        ],
    )
    question = {
        "id": "1",
        "query": "What is my parrot called?",
        "question_date": "2023/05/28 (Sun) 06:47",
        "gold_sessions": ["a"],
        "gold_turns": ["a#0"],
        "haystack48": ["a", "b"],
        "abstention": False,
    }
    write_lines(folder / "questions.jsonl", [question, question | {"id": "2", "abstention": True}])
    return folder


def test_a_conversation_is_measured_without_the_questions_that_have_no_answer(tmp_path: Path) -> None:
    figures = quality.measure(conversation(tmp_path / "one"))
    assert figures["turn"]["n"] == 2
    assert [figures["turn"][name] for name in ("R@5", "R@10", "nDCG@10", "MRR")] == [50.0] * 4
    assert figures["session"]["full@5"] == 50.0
    assert figures["turn"]["ci"]["R@10"] == [0.0, 100.0]


def test_a_folder_of_conversations_is_measured_as_one(tmp_path: Path) -> None:
    conversation(tmp_path / "one")
    conversation(tmp_path / "two")
    assert quality.measure(tmp_path)["turn"]["n"] == 4


def test_each_question_has_its_own_haystack(tmp_path: Path) -> None:
    figures = quality.measure(haystacks(tmp_path))
    assert (figures["turn"]["n"], figures["session"]["n"]) == (1, 1)
    assert figures["turn"]["MRR"] == 100.0  # and Lola, who is not in it, stands in nobody's way
    assert figures["session"]["any@5"] == 100.0


def test_figures_of_one_question_by_hand() -> None:
    query = Query("?", AT, frozenset({"x", "y"}), frozenset({"s", "t"}))
    found = [("s", "a"), ("s", "x"), *[("u", str(n)) for n in range(5)], ("t", "y")]
    figures = quality.turn_figures(query, found)
    assert (figures["R@5"], figures["R@10"], figures["MRR"]) == (0.5, 1.0, 0.5)
    assert figures["nDCG@10"] == pytest.approx((1 / 1.58496 + 1 / 3.16993) / (1 + 1 / 1.58496), abs=1e-4)
    sessions = quality.session_figures(query, [("s", "x"), *[(str(n), "") for n in range(5)], ("t", "y")])
    assert sessions == {"any@5": 1.0, "full@5": 0.0, "R@5": 0.5, "any@10": 1.0, "full@10": 1.0}
