"""How long a text of 300 characters takes to read: CPU microseconds, the best of many rounds.

Run it as `python -m bench.text_speed`. *cold* is the first time that a process sees a text, *warm* every other time;
real use lies between, because texts are new but their words are not: that is *new text*, measured on unseen texts
after as many others.
"""

import inspect
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from kept import text, tokens

LENGTH = 300
ROUNDS = 20
GOLDEN = Path(__file__).parent.parent / "tests" / "golden"


def main() -> None:
    prose = inspect.cleandoc(" ".join(filter(None, (inspect.getdoc(each) for each in (textwrap, inspect, time, str)))))
    prose += " ".join(inspect.getdoc(getattr(str, name)) or "" for name in dir(str))
    corpora = {
        "English": prose,
        "code": Path(inspect.__file__).read_text("utf-8"),
        "German": (GOLDEN / "german.txt").read_text("utf-8"),
        "Chinese": (GOLDEN / "chinese.txt").read_text("utf-8"),
    }
    work: list[Callable[[str], object]] = [
        text.words,
        text.query_words,
        text.count_words,
        text.fingerprint,
        text.visible,
        tokens.estimate,
    ]
    print(f"CPU µs per text of {LENGTH} characters".ljust(40), *(name.rjust(9) for name in corpora))
    samples = {name: cut(corpus) for name, corpus in corpora.items()}
    text.words("warm")  # loads the stemmer
    print("words, cold".ljust(40), *(f"{first_time(texts):9.1f}" for texts in samples.values()))
    print("words, new text".ljust(40), *(f"{after_others(texts):9.1f}" for texts in samples.values()))
    for read in work:
        print(f"{read.__name__}, warm".ljust(40), *(f"{best_time(read, texts):9.1f}" for texts in samples.values()))


def cut(corpus: str) -> list[str]:
    return [corpus[start : start + LENGTH] for start in range(0, min(len(corpus), 24_000) - LENGTH, LENGTH)]


def first_time(texts: list[str]) -> float:
    spent = 0.0
    for each in texts:
        forget_runs()
        spent += microseconds(text.words, [each])
    return spent / len(texts)


def forget_runs() -> None:
    text._stems.clear()
    text._read_lasting.cache_clear()


def after_others(texts: list[str]) -> float:
    forget_runs()
    half = len(texts) // 2
    microseconds(text.words, texts[:half])
    return microseconds(text.words, texts[half:]) / (len(texts) - half)


def best_time(read: Callable[[str], object], texts: list[str]) -> float:
    return min(microseconds(read, texts) for _ in range(ROUNDS)) / len(texts)


def microseconds(read: Callable[[str], object], texts: list[str]) -> float:
    start = time.thread_time_ns()
    for each in texts:
        read(each)
    return (time.thread_time_ns() - start) / 1000


if __name__ == "__main__":
    main()
