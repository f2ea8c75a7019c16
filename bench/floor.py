"""When recall says that nothing fits: how often it is right, and the weights by which it decides.

    python -m bench.floor [--longmemeval DIR] [--learn] [--vectors] [--model DIR] [--json]

Questions that have an answer are asked of the store that holds it: a hundred of the golden project, forty paraphrases
about a bicycle shop, twenty about a greenhouse and 34 about a ferry line (held out: never learned from), and those of
LongMemEval over the user's own words, if its folder is given. Questions that nothing answers are asked as well: those
written for the shop, the greenhouse and the ferries, and all questions of one subject asked about another. Reported is
which share of the answers is among the first five with the floor and without it, and which share of the others gets
no hit.

`--learn` fits the weights of `recall/floor.py`: a logistic regression, where the example of a question is the memory
that answers it, or else the one that comes nearest; both kinds of questions weigh the same. Likeness is not
learned: it suffices alone where it is above that of 98 in 100 texts about something else. The constant is set last, so
that nine of ten of the questions written to have no answer get none. The held-out sets show what that is worth.
"""

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.golden import bicycle_shop, ferry_line, greenhouse
from tests.golden.project_memories import PROJECT_MEMORIES
from tests.golden.queries import QUERIES

import kept
from bench.measure import options, report, table
from kept.model import Draft, Hit
from kept.recall import minilm, pipeline
from kept.recall.floor import WEIGHTS, Evidence
from kept.recall.score import tokens_of

MOST_HAYSTACKS = 60  # of LongMemEval: about a minute
HELD_OUT = ("greenhouse", "ferries")
REFUSED = 0.905  # the share of unanswerable questions that must get no hit
PULL = 0.02  # towards small weights
ROUNDS = 4  # of choosing examples, and fitting them
STEPS = 1_500
ALONE = 0.22  # the likeness that suffices

Features = tuple[float, ...]


class Asked(Struct, frozen=True):
    """A question, in which set, and what came: of each memory considered, in order, its evidence and if it answers."""

    group: str
    is_answerable: bool
    considered: list[tuple[Features, bool]]
    is_found: bool  # an answer is among the hits
    has_hits: bool


class Store(Struct, frozen=True):
    """Memories, questions with the beginnings of their answers, and questions without one."""

    name: str
    drafts: list[Draft]
    answerable: list[tuple[str, tuple[str, ...]]]
    unanswerable: list[tuple[str, str]]  # name of the set, question


def own_stores(personal: Sequence[str]) -> list[Store]:
    """The stores that Kept's tests bring; `personal` are questions of LongMemEval, which none of them answers."""
    golden = [
        Draft(content=m["content"], kind=m["kind"], tags=tuple(m["tags"]), files=tuple(m["files"]))
        for m in PROJECT_MEMORIES
    ]
    about_anything = bicycle_shop.UNANSWERABLE[:40]
    third = len(personal) // 3
    return [
        Store(
            "project",
            golden,
            list(QUERIES),
            [("project, written", query) for query in about_anything]
            + [("project, others'", q) for q in personal[:third]],
        ),
        Store(
            "shop",
            [Draft(content=content, kind=kind) for kind, content in bicycle_shop.MEMORIES],
            [(query, (answer,)) for query, answer in bicycle_shop.PARAPHRASES],
            [("shop, written", query) for query in bicycle_shop.UNANSWERABLE]
            + [("shop, others'", query) for query in personal[third : 2 * third]],
        ),
        Store(
            "greenhouse",
            [Draft(content=content, kind=kind) for kind, content in greenhouse.MEMORIES],
            [(query, (answer,)) for query, answer in greenhouse.PARAPHRASES],
            [("greenhouse, written", query) for query in greenhouse.UNANSWERABLE]
            + [("greenhouse, others'", query) for query in personal[2 * third :]],
        ),
        Store(
            "ferries",
            [Draft(content=content, kind=kind) for kind, content in ferry_line.MEMORIES],
            [(query, (answer,)) for query, answer in ferry_line.PARAPHRASES],
            [("ferries, written", query) for query in ferry_line.UNANSWERABLE],
        ),
    ]


def haystacks(folder: Path) -> Iterator[Store]:
    """Of each question its haystack: what the user said in 48 sessions; once with the answer, for questions of work."""
    pool = {
        line["session"]: [turn for turn in line["turns"] if turn["speaker"] == "user"]
        for line in _lines(folder / "sessions.jsonl")
    }
    questions = [line for line in _lines(folder / "questions.jsonl") if not line["abstention"]]
    work = [query for query, _ in (*QUERIES, *bicycle_shop.PARAPHRASES)]
    for number, line in enumerate(random.Random(1).sample(questions, min(MOST_HAYSTACKS, len(questions)))):
        turns = [turn for session in line["haystack48"] for turn in pool[session]]
        gold = tuple(turn["text"][:80] for turn in turns if turn["id"] in line["gold_turns"])
        if gold:
            drafts = [Draft(content=turn["text"][:600]) for turn in turns]
            yield Store("talk", drafts, [(line["query"], gold)], [("talk, others'", work[number % len(work)])])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def ask(store: Store, model: str | None) -> Iterator[Asked]:
    """Write the memories and ask the questions, noting the evidence for each memory that was considered.

    `model` makes vectors; None: words only.
    """
    seen: list[tuple[Hit, Evidence]] = []
    make = pipeline.hit_of

    def noting(words: Any, floor: Any, profile: Any) -> Callable[[Any], Hit]:
        hit_of = make(words, floor, profile)

        def noted(scored: Any) -> Hit:
            hit, prepared = hit_of(scored), scored.found.prepared
            seen.append((hit, floor.evidence(hit.matched, tokens_of(prepared), scored.likeness)))
            return hit

        return noted

    settings: dict[str, Any] = {"recall_deadline_ms": 60_000, "auto_upkeep": False}
    hybrid = {"search_provider": "hybrid", "vector_model": model} if model else {}
    with kept.open(":memory:", settings=settings | hybrid) as memory:
        memory.remember_many(store.drafts)
        if model:
            memory.vectors.on()
        pipeline.hit_of = noting
        try:
            asked = [(store.name, query, answers) for query, answers in store.answerable]
            for group, query, answers in (*asked, *((group, query, ()) for group, query in store.unanswerable)):
                seen.clear()
                hits = memory.recall(query).hits
                ranked = sorted(seen, key=lambda pair: -pair[0].score)
                yield Asked(
                    group,
                    bool(answers),
                    [(evidence.features, _answers(hit, answers)) for hit, evidence in ranked],
                    any(_answers(hit, answers) for hit in hits),
                    bool(hits),
                )
        finally:
            pipeline.hit_of = make


def _answers(hit: Hit, answers: Sequence[str]) -> bool:
    return any(answer in hit.memory.content for answer in answers)


def learn(asked: Sequence[Asked], by_words: Sequence[Asked]) -> Features:
    """The weights, with the constant last, which `by_words` set: most people have no vectors."""
    weights = list(WEIGHTS)
    known = [one for one in asked if one.considered and not one.group.startswith(HELD_OUT)]
    for _ in range(ROUNDS):
        good = [
            _nearest(weights, [f for f, is_answer in one.considered if is_answer]) for one in known if one.is_answerable
        ]
        good = [features for features in good if features]
        bad = [_nearest(weights, [f for f, _ in one.considered]) for one in known if not one.is_answerable]
        weights = _fit(weights, [(f, 1.0, 0.5 / len(good)) for f in good] + [(f, 0.0, 0.5 / len(bad)) for f in bad])
    written = [one for one in by_words if one.group.endswith("written") and not one.group.startswith(HELD_OUT)]
    best = sorted(max((_logit(weights, f) for f, _ in one.considered), default=-math.inf) for one in written)
    weights[-1] -= best[math.ceil(REFUSED * len(best)) - 1] + 1e-3
    weights[2] = -weights[-1] / ALONE
    return tuple(round(weight, 2) for weight in weights)


def _fit(weights: Sequence[float], examples: Sequence[tuple[Features, float, float]]) -> list[float]:
    """Plain gradient steps: smaller ones for surprise, which is in the tens, and none for what is not learned."""
    now = list(weights)
    pace = [8.0, 0.1, 0.0, 8.0]
    for _ in range(STEPS):
        slope = [PULL * 0.01 * weight for weight in now]
        for features, wanted, share in examples:
            miss = share * (1 / (1 + math.exp(-max(-30.0, min(30.0, _logit(now, features))))) - wanted)
            slope = [old + miss * value for old, value in zip(slope, features, strict=True)]
        now = [weight - step * each for weight, step, each in zip(now, pace, slope, strict=True)]
    return now


def _nearest(weights: Sequence[float], candidates: Sequence[Features]) -> Features:
    return max(candidates, key=lambda features: _logit(weights, features), default=())


def _logit(weights: Sequence[float], features: Features) -> float:
    return sum(weight * value for weight, value in zip(weights, features, strict=True))


def figures(asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """For each set: how many questions, and found with and without the floor; or how many got no hit."""
    found: dict[str, dict[str, float]] = {}
    for group in dict.fromkeys(one.group for one in asked):
        own = [one for one in asked if one.group == group]
        if own[0].is_answerable:
            without = sum(any(is_answer for _, is_answer in one.considered[:5]) for one in own)
            found[group] = {"n": len(own), "found": sum(one.is_found for one in own), "without floor": without}
        else:
            found[group] = {"n": len(own), "refused": sum(not one.has_hits for one in own)}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longmemeval", type=Path, metavar="DIR", help="the folder of LongMemEval, for talk")
    parser.add_argument("--learn", action="store_true", help="fit the weights and print them")
    parser.add_argument("--vectors", action="store_true", help="also ask with profile hybrid (extra `vector`)")
    parser.add_argument("--model", metavar="DIR", help="also ask with that sentence model (extra `onnx`)")
    given = options(parser, tiny={})
    personal = [line["query"] for line in _lines(given.longmemeval / "questions.jsonl")] if given.longmemeval else []
    stores = own_stores(personal)
    if given.longmemeval and not given.tiny:
        stores += haystacks(given.longmemeval)
    result: dict[str, Any] = {}
    tables: list[str] = []
    everything: list[Asked] = []
    by_words: list[Asked] = []
    chosen = {
        "words": None,
        "words and vectors": minilm.NAME if given.vectors else "",
        "sentence model": given.model or "",
    }
    for name, model in chosen.items():
        if model == "":
            continue
        asked = [one for store in stores for one in ask(store, model)]
        result[name] = figures(asked)
        rows = [
            (group, row["n"], row.get("found", ""), row.get("without floor", ""), row.get("refused", ""))
            for group, row in result[name].items()
        ]
        tables.append(table(name, ("questions", "n", "found", "without floor", "refused"), rows))
        everything += asked
        by_words = by_words or asked
    if given.learn:
        result["weights"] = learn(everything, by_words)
        tables.append(f"WEIGHTS = {result['weights']}")
    return report("\n".join(tables), [], result, given)


if __name__ == "__main__":
    sys.exit(main())
