"""Learn the weights of recall over conversations, and how well they rank questions they were not learned from.

    python -m bench.learn --data DIR [--model DIR] [--folds 8] [--tiny] [--json]

DIR as in `bench.quality`; `--model`: with vectors of that sentence model, instead of those of the one that Kept
brings. The features are those that recall computes. A weight makes it likely that the gold stands before everything
else (softmax over the candidates of a question, a penalty for large weights); no weight may turn a reason into one
against, except that of `long`. First the weights of words are learned, then, beside the score that they make, those of
vectors; those of sessions in the same way. A feature that the data never has keeps the weight that it has for people.

The figures are of held-out questions: those of one conversation (or, where each question has its own, of one part in
`--folds`) are ranked by the weights learned from all others. Which messages a sentence model compares is decided by
the weights of words that Kept has. The weights printed at the end are learned from all.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from bench.measure import options, report, table
from bench.quality import Clock, Conversation, Query, conversations, made_up, session_figures, summary, turn_figures
from kept.model import Message
from kept.ports import Embedder, Stamp
from kept.recall import Circumstances, Request
from kept.recall.messages import Described, described_candidates, session_features
from kept.recall.messages.weights import PEOPLE, MessageWeights, SessionWeights, WeightTable
from kept.recall.minilm import MiniLM
from kept.recall.models import SentenceModel, is_static
from kept.settings import Settings
from kept.storage.inmemory import InMemoryStorage

STEPS = 150
RATE = 0.03  # of Adam, in standard deviations of a feature
PENALTY = 0.01
START_SCALE = 4.0  # weights begin as they are for people, times this: the softmax decides how sharp it wants them
NEGATIVE = {"long"}
VECTORS = ("meaning", "window")
# Gives every candidate its own vector a chance; which 60 are compared hardly matters.
COMPARING = WeightTable(message=MessageWeights(meaning=1.0))

Numbers = NDArray[np.float64]


class Example(Struct, frozen=True):
    """A question with its candidates; `part` says with which others it is held out."""

    query: Query
    part: int
    described: Described
    ids: list[str]  # of the candidates

    @property
    def sessions(self) -> list[str]:
        return [one.place[0] for one in self.described.candidates]


class Rows(Struct, frozen=True):
    """The features of what is ranked, one row each; `of` says for which question, `gold` what is right."""

    names: list[str]
    values: Numbers
    of: NDArray[np.int64]
    gold: NDArray[np.bool_]
    questions: int

    def chosen(self, questions: NDArray[np.bool_]) -> "Rows":
        keep = questions[self.of]
        return Rows(self.names, self.values[keep], self.of[keep], self.gold[keep], self.questions)


class Remembering(SentenceModel):
    """A sentence model that makes the vector of a text once: questions about one conversation share most of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._known: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= dict(zip(new, super().embed(new), strict=True)) if new else {}
        return np.array([self._known[text] for text in texts])


def examples(folder: Path, folds: int, embedder: Embedder) -> Iterator[Example]:
    """Every question with what recall knows of its candidates."""
    for number, conversation in enumerate(conversations(folder)):
        part = number if len(conversation.queries) > 1 else number % folds
        yield from _asked(conversation, part, embedder)


def _asked(conversation: Conversation, part: int, embedder: Embedder) -> Iterator[Example]:
    storage = InMemoryStorage("project/learn")
    sessions: dict[str, list[Message]] = {}
    for message in conversation.messages:
        sessions.setdefault(message.session, []).append(message)
    with storage.writing(Stamp(group="learn", at=Clock().at, actor="bench")) as tx:
        for said in sessions.values():
            tx.append(said)
    with storage.reading() as reader:
        for query in conversation.queries:
            given = _circumstances(reader, query.at, embedder)
            table = COMPARING if is_static(embedder) else None
            described = described_candidates(Request(query=query.text), given, 0.0, table=table)
            ids = [one.found.message.id for one in described.candidates]
            yield Example(query, part, described, ids)
    storage.close()


def _circumstances(reader: Any, now: datetime, embedder: Embedder) -> Circumstances:
    return Circumstances(readers=[reader], settings=Settings(), now=now, timer=lambda: 0.0, embedder=embedder)


def message_rows(asked: Sequence[Example]) -> Rows:
    names = list(MessageWeights.__struct_fields__)
    values = [[one.get(name, 0.0) for name in names] for example in asked for one in example.described.features]
    of = [at for at, example in enumerate(asked) for _ in example.ids]
    gold = [id in example.query.gold for example in asked for id in example.ids]
    return _rows(names, values, of, gold, len(asked))


def session_rows(asked: Sequence[Example], scores: Sequence[Numbers]) -> tuple[Rows, list[list[str]]]:
    """The rows of sessions, and their names question by question."""
    names = list(SessionWeights.__struct_fields__)
    found = [
        session_features(example.described, list(own), list(np.argsort(-own, kind="stable")))
        for example, own in zip(asked, scores, strict=True)
    ]
    values = [[one[name] for name in names] for sessions in found for one in sessions.values()]
    of = [at for at, sessions in enumerate(found) for _ in sessions]
    gold = [
        session in example.query.gold_sessions
        for example, sessions in zip(asked, found, strict=True)
        for session in sessions
    ]
    return _rows(names, values, of, gold, len(asked)), [list(sessions) for sessions in found]


def _rows(names: list[str], values: Any, of: Any, gold: Any, questions: int) -> Rows:
    table = np.array(values, dtype=np.float64).reshape(-1, len(names))
    return Rows(names, table, np.array(of, dtype=np.int64), np.array(gold, dtype=np.bool_), questions)


def learned(rows: Rows, start: Numbers, free: NDArray[np.bool_]) -> Numbers:
    """Weights that put the gold of each question first. Only those that are `free`, and have data, change."""
    answered = np.bincount(rows.of, rows.gold, rows.questions) > 0
    rows = rows.chosen(answered)
    spread = rows.values.std(axis=0) if len(rows.values) else np.zeros(len(start))
    free = free & (spread > 0)
    unit = np.where(free, spread, 1.0)
    n_gold = np.bincount(rows.of, rows.gold, rows.questions)
    sign = np.array([-1.0 if name in NEGATIVE else 1.0 for name in rows.names])
    weights, mean, square = start.copy(), np.zeros(len(start)), np.zeros(len(start))
    for step in range(1, STEPS + 1):
        gradient = _gradient(rows, weights, n_gold) / max(1, answered.sum())
        gradient = np.where(free, (gradient + PENALTY * weights * spread**2) / unit, 0.0)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        move = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights = np.where(free, sign * np.maximum(0.0, sign * (weights - RATE * move / unit)), weights)
    return weights


def _gradient(rows: Rows, weights: Numbers, n_gold: Numbers) -> Numbers:
    """Of the mean of -log(share of one gold row against all that are not gold), added up over questions."""
    scores = rows.values @ weights
    highest = np.full(rows.questions, -np.inf)
    np.maximum.at(highest, rows.of, scores)
    exp = np.exp(scores - highest[rows.of])
    others = np.bincount(rows.of, np.where(rows.gold, 0.0, exp), rows.questions)[rows.of]
    each = 1 / n_gold[rows.of]
    pull = np.where(rows.gold, others / (exp + others), 0.0)
    against = np.bincount(rows.of, np.where(rows.gold, each / (exp + others), 0.0), rows.questions)[rows.of]
    slope = np.where(rows.gold, -pull * each, exp * against)
    return np.asarray(slope @ rows.values)


def of_words(rows: Rows, start: Numbers) -> Numbers:
    """The weights of everything but vectors, of which the first is 1."""
    is_vector = np.array([name in VECTORS for name in rows.names])
    weights = learned(rows, np.where(is_vector, 0.0, start) * START_SCALE, ~is_vector)
    has_data = rows.values.std(axis=0) > 0
    return np.where(has_data | is_vector, weights / (weights[0] or 1.0), start)


def with_vectors(rows: Rows, weights: Numbers) -> Numbers:
    """The same weights, and those of vectors beside the score that they make."""
    at = [place for place, name in enumerate(rows.names) if name in VECTORS]
    values = np.column_stack([rows.values @ weights, rows.values[:, at]])
    beside = Rows(["words", *(rows.names[place] for place in at)], values, rows.of, rows.gold, rows.questions)
    start = np.array([START_SCALE, *[0.0] * len(at)])
    made = learned(beside, start, np.ones(len(start), dtype=np.bool_))
    weights = weights.copy()
    weights[at] = made[1:] / (made[0] or 1.0)
    return weights


def table_of(asked: Sequence[Example], train: NDArray[np.bool_]) -> WeightTable:
    """The weights from the questions of `train`."""
    rows = message_rows(asked)
    messages = of_words(rows.chosen(train), np.array(list(asdict(PEOPLE.message).values())))
    by_words, _ = session_rows(asked, scores_of(rows, messages))
    sessions = of_words(by_words.chosen(train), np.array(list(asdict(PEOPLE.session).values())))
    messages = with_vectors(rows.chosen(train), messages)
    by_both, _ = session_rows(asked, scores_of(rows, messages))
    sessions = with_vectors(by_both.chosen(train), sessions)
    return WeightTable(
        message=MessageWeights(**_named(rows.names, messages)),
        session=SessionWeights(**_named(by_both.names, sessions)),
    )


def _named(names: Sequence[str], weights: Numbers) -> dict[str, float]:
    return {name: round(float(value), 2) for name, value in zip(names, weights, strict=True)}


def scores_of(rows: Rows, weights: Numbers) -> list[Numbers]:
    """The scores of the rows, question by question."""
    ends = np.cumsum(np.bincount(rows.of, minlength=rows.questions))
    return np.split(rows.values @ weights, ends[:-1])


def figures(asked: Sequence[Example], made: WeightTable) -> list[tuple[dict[str, float] | None, dict[str, float]]]:
    """Of each question how well it is ranked, by message (if some are gold) and by session."""
    scores = scores_of(message_rows(asked), np.array(list(asdict(made.message).values())))
    of_sessions, names = session_rows(asked, scores)
    session_scores = scores_of(of_sessions, np.array(list(asdict(made.session).values())))
    found = []
    for example, own, sessions, values in zip(asked, scores, names, session_scores, strict=True):
        ranked = [("", example.ids[at]) for at in np.argsort(-own, kind="stable")]
        by_session = [(sessions[at], "") for at in np.argsort(-values, kind="stable")]
        turn = turn_figures(example.query, ranked) if example.query.gold else None
        found.append((turn, session_figures(example.query, by_session)))
    return found


def held_out(asked: Sequence[Example]) -> dict[str, Any]:
    """The figures of each part by the weights that were learned from all others, by words and with vectors."""
    found: dict[str, list[Any]] = {"words": [], "words and vectors": []}
    for part in sorted({example.part for example in asked}):
        made = table_of(asked, np.array([example.part != part for example in asked]))
        test = [example for example in asked if example.part == part]
        found["words"] += figures(test, without_vectors(made))
        found["words and vectors"] += figures(test, made)
    return {
        name: {
            "turn": summary([turn for turn, _ in of if turn is not None]),
            "session": summary([session for _, session in of]),
        }
        for name, of in found.items()
    }


def without_vectors(made: WeightTable) -> WeightTable:
    return WeightTable(
        message=replace(made.message, meaning=0.0, window=0.0), session=replace(made.session, meaning=0.0)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--folds", type=int, default=8, help="parts, where each question has its own conversation")
    parser.add_argument("--model", type=Path, metavar="DIR", help="the folder of a sentence model")
    given = options(parser, tiny={"folds": 2}, arguments=arguments)
    if not given.data and not given.tiny:
        parser.error("--data DIR is missing: the folder with the conversations.")
    with tempfile.TemporaryDirectory() as folder:
        data: Path = given.data or made_up(Path(folder))
        asked = list(examples(data, given.folds, MiniLM() if given.model is None else Remembering(given.model)))
    if not asked:
        parser.error(f"{data} holds no questions of a known form.")
    measured = held_out(asked)
    weights = to_builtins(table_of(asked, np.ones(len(asked), dtype=np.bool_)))
    text = [
        table(
            f"by {by}, {kind}",
            ("", "%", "from", "to"),
            [(name, of[by][name], *ci) for name, ci in of[by]["ci"].items()],
        )
        for kind, of in measured.items()
        for by in ("turn", "session")
    ]
    text += [f"{by}: {weights[by]}" for by in weights]
    return report("\n".join(text), [], {**measured, "weights": weights}, given)


if __name__ == "__main__":
    sys.exit(main())
