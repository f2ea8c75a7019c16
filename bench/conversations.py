"""How long one question over many messages takes.

    python -m bench.conversations [--messages 100000] [--questions 300] [--tiny] [--json]

Made-up talk of two people a session: words as frequent as words are (the n-th about 1/n as often as the first), common
English among the commonest, questions of three to six words and their fillers. Only questions are timed, with the
receipt that each leaves.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby, islice
from pathlib import Path

import kept
from bench.measure import Bar, interleaved, options, p50, p95, report
from bench.quality import SETTINGS
from kept.model import Message
from kept.recall.messages import stems

AT = datetime(2026, 3, 1, tzinfo=UTC)
MOST_CPU_MS = 20.0
VOCABULARY = 20_000
A_SESSION = 22  # messages
WARM_UP = 20
SYLLABLES = "ka lo mi ren tas vu sol bek dir fon gar hul".split()
FILLERS = "the i to a and you of it was that my in so for is we have me this with really just".split()


class Talk:
    """A source of sentences and questions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        everyday = sorted({*stems.RELATED, *stems.KINDS, *stems.FORMS})
        made_up = ("".join(self.rng.choices(SYLLABLES, k=self.rng.randint(2, 4))) for _ in iter(int, 1))
        self.rng.shuffle(everyday)
        self.words = [*everyday, *islice(made_up, VOCABULARY - len(everyday))]
        self.shares = list(accumulate(1 / (rank + 30) for rank in range(VOCABULARY)))

    def some_words(self, count: int) -> list[str]:
        return self.rng.choices(self.words, cum_weights=self.shares, k=count)

    def sentence(self) -> str:
        words = self.some_words(self.rng.randint(4, 16))
        said = [word for pair in zip(words, self.rng.choices(FILLERS, k=len(words)), strict=True) for word in pair]
        return " ".join(said).capitalize() + self.rng.choice(".!?.")

    def question(self) -> str:
        first, *rest = self.some_words(self.rng.randint(3, 6))
        return f"When did Ann {first} the {' and '.join(rest)}?"


def messages(talk: Talk, count: int) -> Iterator[Message]:
    for number in range(count):
        session, n = divmod(number, A_SESSION)
        yield Message(
            id=f"m{n}",
            session=f"s{session}",
            role="user",
            speaker=("Ann", "Ben")[n % 2],
            content=talk.sentence(),
            at=AT + timedelta(hours=session),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300)
    given = options(parser, tiny={"messages": 200, "questions": 3})
    talk = Talk(7)
    with (
        tempfile.TemporaryDirectory() as folder,
        kept.open(Path(folder) / "talk.db", settings=SETTINGS, clock=lambda: AT) as memory,
    ):
        for session, said in groupby(messages(talk, given.messages), key=lambda message: message.session):
            memory.session(session).extend(list(said))
        questions = [talk.question() for _ in range(given.questions + WARM_UP)]
        timing = interleaved(
            {"a question": lambda number: memory.recall(questions[number], scope="sessions", limit=10)},
            given.questions,
            warm_up=WARM_UP,
        )["a question"]
    figures = {"cpu_p50_ms": p50(timing.cpu_ms), "cpu_p95_ms": p95(timing.cpu_ms)}
    bar = Bar("CPU of one question, p95, ms", figures["cpu_p95_ms"], MOST_CPU_MS)
    text = f"{given.messages:,} messages: p50 {figures['cpu_p50_ms']:.1f} ms, p95 {figures['cpu_p95_ms']:.1f} ms of CPU"
    return report(text, [bar], figures, given)


if __name__ == "__main__":
    raise SystemExit(main())
