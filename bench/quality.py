"""How well recall finds what was said in conversations.

    python -m bench.quality --data DIR [--vectors] [--model DIR] [--tiny] [--json]
    python -m bench.quality --tiny

DIR is a conversation (`memories.jsonl` and `queries.jsonl`), a folder of such folders, or a pool of sessions with
questions that have a haystack each (`sessions.jsonl` and `questions.jsonl`). Messages are appended as sessions, every
question is asked once for messages and once for sessions, all with the weights that Kept comes with. R@k is the share
of the gold within the first k, any@k whether some of it is there, full@k whether all is; figures in percent, averaged
over questions, with 95 % bootstrap intervals. Questions that nothing answers are left out. `--vectors` measures
everything once more with vectors switched on (extra `vector`), under `vectors`; `--model` with those of the sentence
model in that folder (extra `onnx`), under `model`. `--tiny` without data asks about a conversation that is made up on
the spot.
"""

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

import kept
from bench.measure import options, report, table
from kept.model import Message, Recalled
from kept.recall import minilm

DEPTH = 50  # how far down a first hit counts for MRR
RESAMPLES = 1_000
# Only what was said is measured, all of it, however old; and a busy machine must not make the answers worse.
SETTINGS = {
    "flush_enabled": False,
    "checkpoint_every_messages": 1_000_000,
    "recall_deadline_ms": 60_000,
}
DISCOUNTS = [1 / math.log2(rank + 2) for rank in range(10)]

Place = tuple[str, str]  # session, message id


class Query(Struct, frozen=True):
    """A question, its date, and the messages and sessions that answer it."""

    text: str
    at: datetime
    gold: frozenset[str]
    gold_sessions: frozenset[str]


class Conversation(Struct, frozen=True):
    """Messages that are searched together, and the questions about them."""

    messages: Sequence[Message]
    queries: Sequence[Query]


class Clock:
    """Shows the time of the question that is being asked."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.at


def answers(
    path: Path, conversation: Conversation, settings: Mapping[str, Any] = SETTINGS
) -> Iterator[tuple[Query, list[Place], list[Place]]]:
    """Write the messages into a new memory file; then of each question the messages and the sessions it finds."""
    sessions: dict[str, list[Message]] = {}
    for message in conversation.messages:
        sessions.setdefault(message.session, []).append(message)
    clock = Clock()
    with kept.open(path, settings=settings, clock=clock) as memory:
        for name, said in sessions.items():
            memory.session(name).extend(said)
        for query in conversation.queries:
            clock.at = query.at
            found = {
                by: memory.recall(query.text, scope="sessions", by=by, limit=DEPTH) for by in ("message", "session")
            }
            yield query, _places(found["message"], sessions), _places(found["session"], sessions)


def _places(recalled: Recalled, sessions: Mapping[str, Sequence[Message]]) -> list[Place]:
    """Which messages the hits are: a hit has the session and, as its id, the place in it."""
    names = [(hit.memory.source.session or "", hit.memory.id) for hit in recalled.hits]
    return [(session, sessions[session][n - 1].id) for session, n in names]


def conversations(folder: Path) -> Iterator[Conversation]:
    """The conversations in a folder, in any of the forms above."""
    if (folder / "memories.jsonl").is_file():
        yield _conversation(folder)
    elif (folder / "questions.jsonl").is_file():
        yield from _haystacks(folder)
    else:
        for inner in sorted(folder.iterdir()):
            if inner.is_dir():
                yield from conversations(inner)


def _conversation(folder: Path) -> Conversation:
    messages = [_message(line, line["session"], line.get("timestamp")) for line in _lines(folder / "memories.jsonl")]
    session_of = {message.id: message.session for message in messages}
    last = max((message.at for message in messages if message.at), default=datetime.now(UTC))
    queries = [
        Query(line["query"], last, frozenset(line["gold"]), frozenset(session_of[id] for id in line["gold"]))
        for line in _lines(folder / "queries.jsonl")
        if line["gold"] and line.get("category") != "adversarial"
    ]
    return Conversation(messages, queries)


def _haystacks(folder: Path) -> Iterator[Conversation]:
    # Only the gold sessions have dates in this form, so none is used: a date would give the answer away.
    pool = {
        line["session"]: [_message(turn, line["session"], None) for turn in line["turns"]]
        for line in _lines(folder / "sessions.jsonl")
    }
    for line in _lines(folder / "questions.jsonl"):
        if not line.get("abstention"):
            at = datetime.strptime(line["question_date"][:10], "%Y/%m/%d").replace(tzinfo=UTC)
            query = Query(line["query"], at, frozenset(line["gold_turns"]), frozenset(line["gold_sessions"]))
            yield Conversation([said for name in line["haystack48"] for said in pool[name]], [query])


def _message(line: Mapping[str, Any], session: str, timestamp: str | None) -> Message:
    speaker = line.get("speaker")
    at = None if timestamp is None else datetime.fromisoformat(timestamp)
    return Message(
        id=line["id"],
        session=session,
        role="assistant" if speaker == "assistant" else "user",
        speaker=None if speaker in ("user", "assistant") else speaker,
        content=line["text"],
        at=None if at is None else at if at.tzinfo else at.replace(tzinfo=UTC),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def turn_figures(query: Query, found: Sequence[Place]) -> dict[str, float]:
    """One question, by message."""
    is_gold = [id in query.gold for _, id in found]
    most = sum(DISCOUNTS[: min(10, len(query.gold))])
    return {
        "R@5": sum(is_gold[:5]) / len(query.gold),
        "R@10": sum(is_gold[:10]) / len(query.gold),
        "nDCG@10": sum(discount for discount, hit in zip(DISCOUNTS, is_gold, strict=False) if hit) / most,
        "MRR": next((1 / rank for rank, hit in enumerate(is_gold, start=1) if hit), 0.0),
    }


def session_figures(query: Query, found: Sequence[Place]) -> dict[str, float]:
    """One question, by session."""
    names = [session for session, _ in found]
    shares = {k: len(query.gold_sessions.intersection(names[:k])) / len(query.gold_sessions) for k in (5, 10)}
    return {
        "any@5": float(shares[5] > 0),
        "full@5": float(shares[5] == 1),
        "R@5": shares[5],
        "any@10": float(shares[10] > 0),
        "full@10": float(shares[10] == 1),
    }


def summary(figures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Averages in percent, and between which values 95 % of the averages of resampled questions lie."""
    if not figures:
        return {"n": 0}
    rng = random.Random(7)
    samples = [rng.choices(range(len(figures)), k=len(figures)) for _ in range(RESAMPLES)]
    averages: dict[str, Any] = {}
    intervals = {}
    for name in figures[0]:
        values = [100 * figure[name] for figure in figures]
        resampled = sorted(sum(values[at] for at in sample) / len(values) for sample in samples)
        averages[name] = round(sum(values) / len(values), 1)
        intervals[name] = [round(resampled[int(share * RESAMPLES)], 1) for share in (0.025, 0.975)]
    return {**averages, "n": len(figures), "ci": intervals}


def measure(folder: Path, model: str | None = None) -> dict[str, Any]:
    """Write, ask and judge everything in the folder; with vectors of a model, if one is named."""
    settings = SETTINGS | ({"search_provider": "hybrid", "vector_model": model} if model else {})
    turns, sessions = [], []
    for conversation in conversations(folder):
        with tempfile.TemporaryDirectory() as place:
            for query, messages_found, sessions_found in answers(Path(place) / "memory.db", conversation, settings):
                if query.gold:
                    turns.append(turn_figures(query, messages_found))
                sessions.append(session_figures(query, sessions_found))
    return {"turn": summary(turns), "session": summary(sessions)}


def made_up(folder: Path) -> Path:
    """Two short conversations, one in each form, only to try whether everything runs."""
    talk, pool = folder / "talk", folder / "pool"
    turns = [
        ("Ann", "The billing service moves to Postgres in March."),
        ("Ben", "My sister adopted a grey parrot called Miro."),
        ("Ann", "The staging cluster is called Harbor."),
        ("Ben", "We will meet at the station at nine."),
    ]
    said = [
        {
            "id": f"m{n}",
            "session": f"s{n // 2}",
            "speaker": who,
            "text": text,
            "timestamp": f"2026-03-0{n + 1}T09:00:00",
        }
        for n, (who, text) in enumerate(turns)
    ]
    _save(talk / "memories.jsonl", said)
    _save(talk / "queries.jsonl", [{"query": "What is the parrot called?", "gold": ["m1"], "category": "single"}])
    _save(pool / "sessions.jsonl", [{"session": line["session"], "turns": [line]} for line in said[::2]])
    question = {
        "query": "Which database does billing use?",
        "question_date": "2026/04/01",
        "gold_turns": ["m0"],
        "gold_sessions": ["s0"],
        "haystack48": ["s0", "s1"],
    }
    _save(pool / "questions.jsonl", [question])
    return folder


def _save(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--vectors", action="store_true", help="measure once more with vectors")
    parser.add_argument("--model", metavar="DIR", help="measure once more with that sentence model")
    given = options(parser, tiny={})
    if not given.data and not given.tiny:
        parser.error("--data DIR is missing: the folder with the conversations.")
    with tempfile.TemporaryDirectory() as folder:
        data: Path = given.data or made_up(Path(folder))
        if not data.is_dir():
            parser.error(f"{data} is not a folder.")
        figures = measure(data)
        if not figures["session"]["n"]:
            parser.error(f"{data} holds no questions of a known form.")
        if given.vectors:
            figures["vectors"] = measure(data, minilm.NAME)
        if given.model:
            figures["model"] = measure(data, given.model)
    kinds = {"vectors": "words and vectors", "model": "words and sentence model"}
    by_kind = {"words": figures} | {kinds[name]: figures[name] for name in kinds if name in figures}
    tables = []
    for kind, measured in by_kind.items():
        for by in ("turn", "session"):
            ci = measured[by]["ci"]
            lines = [(name, measured[by][name], *ci[name]) for name in ci]
            tables.append(table(f"by {by}, {kind}, {measured[by]['n']} questions", ("", "%", "from", "to"), lines))
    return report("\n".join(tables), [], figures, given)


if __name__ == "__main__":
    sys.exit(main())
