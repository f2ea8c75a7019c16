"""How long a text of 300 characters takes to read: CPU microseconds, the best of many rounds.

    python -m bench.text_speed [--tiny] [--json]

*cold* is the first text that a process reads, *warm* a text that it has read before. Real use lies between, because
texts are new but their words are not: that is *new text*, measured on unseen texts after as many others.
"""

import argparse
import importlib
import inspect
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import options, report, table
from kept import text, tokens

LENGTH = 300
GOLDEN = Path(__file__).parent.parent / "tests" / "golden"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--texts", type=int, default=80, help="of each language, at most")
    given = options(parser, tiny={"rounds": 1, "texts": 4})
    prose = inspect.cleandoc(" ".join(filter(None, (inspect.getdoc(each) for each in (textwrap, inspect, time, str)))))
    prose += " ".join(inspect.getdoc(getattr(str, name)) or "" for name in dir(str))
    corpora = {
        "English": prose,
        "code": Path(inspect.__file__).read_text("utf-8"),
        "German": (GOLDEN / "german.txt").read_text("utf-8"),
        "Chinese": (GOLDEN / "chinese.txt").read_text("utf-8"),
    }
    samples = [cut(corpus)[: given.texts] for corpus in corpora.values()]
    work: list[Callable[[str], object]] = [
        text.words,
        text.query_words,
        text.count_words,
        text.fingerprint,
        text.visible,
        tokens.estimate,
    ]
    lines: list[list[object]] = [
        [f"{read.__name__}, warm", *(best_time(read, texts, given.rounds) for texts in samples)] for read in work
    ]
    lines.insert(0, ["words, cold", *map(first_time, samples)])
    lines.insert(1, ["words, new text", *map(after_others, samples)])
    title = f"Reading {LENGTH} characters, µs of processor time"
    figures = {str(name): dict(zip(corpora, values, strict=True)) for name, *values in lines}
    return report(table(title, ("", *corpora), lines), [], figures, given)


def cut(corpus: str) -> list[str]:
    return [corpus[start : start + LENGTH] for start in range(0, min(len(corpus), 24_000) - LENGTH, LENGTH)]


def first_time(texts: list[str]) -> float:
    spent = 0.0
    for each in texts:
        forget_everything()
        spent += microseconds(text.words, [each])
    return spent / len(texts)


def forget_everything() -> None:
    """Empty all caches of the module, and load the stemmer again, which is not part of the measurement."""
    importlib.reload(text)
    text.words("warm")


def after_others(texts: list[str]) -> float:
    forget_everything()
    half = len(texts) // 2
    microseconds(text.words, texts[:half])
    return microseconds(text.words, texts[half:]) / (len(texts) - half)


def best_time(read: Callable[[str], object], texts: list[str], rounds: int) -> float:
    return min(microseconds(read, texts) for _ in range(rounds)) / len(texts)


def microseconds(read: Callable[[str], object], texts: list[str]) -> float:
    start = time.thread_time_ns()
    for each in texts:
        read(each)
    return (time.thread_time_ns() - start) / 1000


if __name__ == "__main__":
    sys.exit(main())
