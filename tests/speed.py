"""The speed of this machine, for tests that limit processor time.

Machines differ, and one that others share can take twice as long for the same work. Rule: a limit is a multiple of the
time that `reference_ms`, or a shorter text, takes beside it, so that it says the same everywhere.
"""

import gc
import re
import time
from collections.abc import Callable

_WORDS = re.compile(r"\b(?:never|always|use|not|instead|because)\b|[A-Za-z_]+\(\)")
_SAID = "Use module_{n} instead of the other one, because call_{n}() never returned in time."
_TEXT = " ".join(_SAID.format(n=n) for n in range(200))


def reference_ms() -> float:
    """Return the processor time of a fixed piece of work on text: a search, folding, splitting and counting."""
    start = time.thread_time()
    for _ in range(4):
        found = _WORDS.findall(_TEXT)
        words = _TEXT.lower().split()
        counted = {word: words.count(word) for word in words[:100]}
    assert found
    assert counted
    return 1_000 * (time.thread_time() - start)


def is_linear(work: Callable[[str], object], text_of: Callable[[int], str]) -> bool:
    """Return True if a text four times as long takes at most eight times the time, where sixteen is quadratic."""
    short, long = (seconds(work, text_of(repeats)) for repeats in (3_000, 12_000))
    return long < 8 * short + 0.05  # a linear reader is done before the clock can tell


def seconds(work: Callable[[str], object], text: str) -> float:
    """Return the processor time of work on a text, without that for all that other tests have left in the process."""
    gc.disable()
    try:
        start = time.thread_time()
        work(text)
        return time.thread_time() - start
    finally:
        gc.enable()
