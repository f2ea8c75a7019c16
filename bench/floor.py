"""When recall says that nothing fits: how often it is right, and the weights by which it decides.

    python -m bench.floor [--longmemeval DIR] [--prompts DIR] [--learn] [--vectors] [--model DIR] [--json]

Questions that have an answer are asked of the store that holds it: a hundred of the golden project, forty paraphrases
about a bicycle shop, twenty about a greenhouse and 34 about a ferry line (held out: never learned from), and those of
LongMemEval over the user's own words, if its folder is given. Questions that nothing answers are asked as well: those
written for the shop, the greenhouse and the ferries, and all questions of one subject asked about another. Reported is
which share of the answers is among the first five with the floor and without it, and which share of the others gets
no hit.

`--prompts` names a folder of prompts for coding agents: `cases.jsonl` (each with `project`, `prompt`, `facts`, and as
`need` the patterns of what must be told), `distractors.jsonl` and `unrelated.json`. Reported is how many prompts are
told all they need in three lines, which share of the lines is needed, and how many unrelated prompts are told anything.

`--learn` fits WEIGHTS of `recall/floor.py`: a logistic regression, where the example of a question is the memory that
answers it, or else the one that comes nearest; both kinds of questions weigh the same. Likeness is not learned: it
suffices alone where it is above that of 98 in 100 texts about something else. The constant is set last, so that nine of
ten of the questions written to have no answer get none. The held-out sets show what that is worth. With `--prompts` it
also sets FIT_WEIGHTS, from the unrelated prompts alone: 39 of 40 stay below the floor by their fit. So no project whose
prompts are judged is learned from.
"""

import argparse
import json
import math
import random
import re
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
from kept.recall.briefing.prompt import BESIDE_BEST, SURER
from kept.recall.floor import FIT_WEIGHTS, WEIGHTS, Evidence, strength
from kept.tables import PROFILES

MOST_HAYSTACKS = 60  # of LongMemEval: about a minute
HELD_OUT = ("greenhouse", "ferries")
REFUSED = 0.905  # the share of unanswerable questions that must get no hit
PULL = 0.02  # towards small weights
ROUNDS = 4  # of choosing examples, and fitting them
STEPS = 1_500
BELOW = 0.975  # the share of unrelated prompts whose fit must not suffice
FLOOR = PROFILES["kept"].floor
LINES = 3  # that a prompt is told
NEEDED = math.log(SURER * FLOOR / (1 - SURER * FLOOR))  # strength of a line that an agent did not ask for
DEPTH = 20  # memories considered for a prompt
ALONE = 0.22  # the likeness that suffices

Features = tuple[float, ...]
Answers = tuple[re.Pattern[str], ...]  # of each thing that must be said, what says it


class Considered(Struct, frozen=True):
    """A memory that was considered: its evidence, its score, and which of the answers it gives."""

    features: Features
    score: float
    answers: frozenset[int]


class Asked(Struct, frozen=True):
    """A question, in which set, and the memories that were considered, in order."""

    group: str
    n_answers: int  # that are wanted; 0: nothing answers
    considered: list[Considered]
    is_found: bool  # an answer is among the hits
    has_hits: bool

    @property
    def is_prompt(self) -> bool:
        return self.group.startswith(PROMPTS)


PROMPTS = "prompts"


class Store(Struct, frozen=True):
    """Memories, questions with what answers them, and questions without an answer; each with the name of its set."""

    name: str
    drafts: list[Draft]
    answerable: list[tuple[str, str, Answers]]
    unanswerable: list[tuple[str, str]]


def beginning(*texts: str) -> Answers:
    """One answer, that any memory with one of these texts gives."""
    return (re.compile("|".join(map(re.escape, texts))),)


def prompts(folder: Path) -> Store:
    """One project with all facts and distractors; prompts that need some of them, and prompts that need none."""
    cases = list(_lines(folder / "cases.jsonl"))
    said = [*_lines(folder / "distractors.jsonl"), *(fact for case in cases for fact in case["facts"])]
    unrelated = json.loads((folder / "unrelated.json").read_text("utf-8"))["prompts"]
    return Store(
        PROMPTS,
        [Draft(content=one["text"], kind=one["kind"]) for one in said],
        [(f"{PROMPTS}, {case['project']}", case["prompt"], tuple(map(_pattern, case["need"]))) for case in cases],
        [(f"{PROMPTS}, unrelated", one["text"]) for one in unrelated],
    )


def _pattern(groups: Sequence[Sequence[str]]) -> re.Pattern[str]:
    """A text says it if every group has an alternative that occurs in it."""
    return re.compile("".join(f"(?=.*(?:{'|'.join(group)}))" for group in groups), re.IGNORECASE | re.DOTALL)


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
            [("project", query, beginning(*answers)) for query, answers in QUERIES],
            [("project, written", query) for query in about_anything]
            + [("project, others'", q) for q in personal[:third]],
        ),
        Store(
            "shop",
            [Draft(content=content, kind=kind) for kind, content in bicycle_shop.MEMORIES],
            [("shop", query, beginning(answer)) for query, answer in bicycle_shop.PARAPHRASES],
            [("shop, written", query) for query in bicycle_shop.UNANSWERABLE]
            + [("shop, others'", query) for query in personal[third : 2 * third]],
        ),
        Store(
            "greenhouse",
            [Draft(content=content, kind=kind) for kind, content in greenhouse.MEMORIES],
            [("greenhouse", query, beginning(answer)) for query, answer in greenhouse.PARAPHRASES],
            [("greenhouse, written", query) for query in greenhouse.UNANSWERABLE]
            + [("greenhouse, others'", query) for query in personal[2 * third :]],
        ),
        Store(
            "ferries",
            [Draft(content=content, kind=kind) for kind, content in ferry_line.MEMORIES],
            [("ferries", query, beginning(answer)) for query, answer in ferry_line.PARAPHRASES],
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
            yield Store(
                "talk",
                drafts,
                [("talk", line["query"], beginning(*gold))],
                [("talk, others'", work[number % len(work)])],
            )


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
            hit = hit_of(scored)
            seen.append((hit, floor.evidence(hit.matched, scored.found.prepared, scored.likeness)))
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
            for group, query, answers in (*store.answerable, *((*one, ()) for one in store.unanswerable)):
                seen.clear()
                hits = memory.recall(query, limit=DEPTH if group.startswith(PROMPTS) else 5).hits
                ranked = sorted(seen, key=lambda pair: -pair[0].score)
                yield Asked(
                    group,
                    len(answers),
                    [Considered(of.features, hit.score, _answered(hit, answers)) for hit, of in ranked],
                    any(_answered(hit, answers) for hit in hits),
                    bool(hits),
                )
        finally:
            pipeline.hit_of = make


def _answered(hit: Hit, answers: Answers) -> frozenset[int]:
    return frozenset(place for place, one in enumerate(answers) if one.search(hit.memory.content))


def learn(asked: Sequence[Asked], by_words: Sequence[Asked]) -> Features:
    """WEIGHTS, with the constant last, which `by_words` set: most people have no vectors."""
    weights = list(WEIGHTS)
    known = [one for one in asked if one.considered and not one.is_prompt and not one.group.startswith(HELD_OUT)]
    for _ in range(ROUNDS):
        good = [_nearest(weights, [each for each in one.considered if each.answers]) for one in known if one.n_answers]
        good = [features for features in good if features]
        bad = [_nearest(weights, one.considered) for one in known if not one.n_answers]
        weights = _fit(weights, [(f, 1.0, 0.5 / len(good)) for f in good] + [(f, 0.0, 0.5 / len(bad)) for f in bad])
    written = [one for one in by_words if one.group.endswith("written") and not one.group.startswith(HELD_OUT)]
    best = sorted(
        max((_logit(weights, each.features[:4]) for each in one.considered), default=-math.inf) for one in written
    )
    weights[-1] -= best[math.ceil(REFUSED * len(best)) - 1] + 1e-3
    weights[2] = -weights[-1] / ALONE
    return tuple(round(weight, 2) for weight in weights)


def learn_fit(asked: Sequence[Asked]) -> Features:
    """FIT_WEIGHTS: the weight as it is, and the constant by the unrelated prompts."""
    unrelated = [one for one in asked if one.is_prompt and not one.n_answers]
    best = sorted(max((each.features[4] for each in one.considered), default=0.0) for one in unrelated)
    return FIT_WEIGHTS[0], round(-FIT_WEIGHTS[0] * best[math.ceil(BELOW * len(best)) - 1], 2)


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


def _nearest(weights: Sequence[float], considered: Sequence[Considered]) -> Features:
    features = (one.features[:4] for one in considered)
    return max(features, key=lambda own: _logit(weights, own), default=())


def _logit(weights: Sequence[float], features: Features) -> float:
    return sum(weight * value for weight, value in zip(weights, features, strict=True))


def told(one: Asked) -> list[Considered]:
    """Return the lines that a hook would add to a prompt."""
    sure = [each for each in one.considered if strength(each.features) >= NEEDED]
    return [each for each in sure if each.score >= BESIDE_BEST * sure[0].score][:LINES]


def prompt_figures(asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """For the prompts of each project: how many are told all they need, in how many lines, and how many of these."""
    found: dict[str, dict[str, float]] = {}
    for one in asked:
        if not one.is_prompt:
            continue
        lines = told(one)
        row = found.setdefault(one.group, dict.fromkeys(("n", "told", "lines", "needed"), 0))
        row["n"] += 1
        needs = frozenset().union(*(each.answers for each in lines)) if lines else frozenset()
        row["told"] += len(needs) == one.n_answers if one.n_answers else bool(lines)
        row["lines"] += len(lines)
        row["needed"] += sum(bool(each.answers) for each in lines)
    return found


def figures(asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """For each set: how many questions, and found with and without the floor; or how many got no hit."""
    found: dict[str, dict[str, float]] = {}
    for group in dict.fromkeys(one.group for one in asked):
        own = [one for one in asked if one.group == group]
        if own[0].is_prompt:
            continue
        if own[0].n_answers:
            without = sum(any(each.answers for each in one.considered[:5]) for one in own)
            found[group] = {"n": len(own), "found": sum(one.is_found for one in own), "without floor": without}
        else:
            found[group] = {"n": len(own), "refused": sum(not one.has_hits for one in own)}
    return found


def _prompt_table(name: str, of_groups: dict[str, dict[str, float]]) -> str:
    rows = [(group, row["n"], row["told"], row["lines"], row["needed"]) for group, row in of_groups.items()]
    projects = [row for row in rows if not row[0].endswith("unrelated")]
    rows.append(("all projects", *(sum(row[place] for row in projects) for place in range(1, 5))))
    return table(name, ("prompts", "n", "told", "lines", "needed"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longmemeval", type=Path, metavar="DIR", help="the folder of LongMemEval, for talk")
    parser.add_argument("--prompts", type=Path, metavar="DIR", help="the folder of prompts for coding agents")
    parser.add_argument("--learn", action="store_true", help="fit the weights and print them")
    parser.add_argument("--vectors", action="store_true", help="also ask with profile hybrid (extra `vector`)")
    parser.add_argument("--model", metavar="DIR", help="also ask with that sentence model (extra `onnx`)")
    given = options(parser, tiny={})
    personal = [line["query"] for line in _lines(given.longmemeval / "questions.jsonl")] if given.longmemeval else []
    stores = own_stores(personal)
    if given.longmemeval and not given.tiny:
        stores += haystacks(given.longmemeval)
    if given.prompts:
        stores.append(prompts(given.prompts))
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
        if given.prompts:
            result[f"prompts by {name}"] = of_prompts = prompt_figures(asked)
            tables.append(_prompt_table(f"prompts by {name}", of_prompts))
    if given.learn:
        result["weights"] = learn(everything, by_words)
        tables.append(f"WEIGHTS = {result['weights']}")
    if given.learn and given.prompts:
        result["fit weights"] = learn_fit(by_words)
        tables.append(f"FIT_WEIGHTS = {result['fit weights']}")
    return report("\n".join(tables), [], result, given)


if __name__ == "__main__":
    sys.exit(main())
