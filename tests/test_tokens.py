"""The token estimate against real tokenizers, and what holds for any text."""

import ast
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept import tokens

GOLDEN = Path(__file__).parent / "golden"
MODULES = (
    "argparse ast calendar configparser csv difflib doctest inspect logging pathlib pickle random shutil statistics "
    "subprocess tarfile textwrap threading typing"
).split()


def sources() -> list[str]:
    specs = [importlib.util.find_spec(name) for name in MODULES]
    return [Path(spec.origin).read_text("utf-8") for spec in specs if spec and spec.origin]


def english() -> list[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for source in sources() for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return [said for node in nodes if (said := ast.get_docstring(node)) and len(said) > 200]


def code() -> list[str]:
    return [source[start : start + 2000] for source in sources() for start in range(0, len(source), 10_000)]


def paragraphs(name: str) -> list[str]:
    return (GOLDEN / name).read_text("utf-8").split("\n\n")


CORPORA: dict[str, Callable[[], list[str]]] = {
    "English": english,
    "code": code,
    "German": lambda: paragraphs("german.txt"),
    "Chinese": lambda: paragraphs("chinese.txt"),
}


@cache
def real_count(vocabulary: str, subject: str) -> int:
    encoding = pytest.importorskip("bpe_openai").get_encoding(vocabulary)
    return len(encoding.encode_ordinary(subject))


@pytest.mark.parametrize("half", [0, 1], ids=["even half", "odd half"])
@pytest.mark.parametrize("language", CORPORA)
def test_the_estimate_is_within_15_percent_and_never_10_below(language: str, half: int) -> None:
    """Against cl100k_base; each half must hold alone, so that no weight is fitted to a single text."""
    subject = "\n\n".join(CORPORA[language]()[half::2])
    assert len(subject) > 1400
    assert 0.90 <= tokens.estimate(subject) / real_count("cl100k_base", subject) <= 1.15


@pytest.mark.parametrize("language", CORPORA)
def test_the_estimate_is_safe_for_a_newer_vocabulary_too(language: str) -> None:
    """o200k_base packs German and Chinese more tightly, so that no number fits both: there we stay above."""
    subject = "\n\n".join(CORPORA[language]())
    share = tokens.estimate(subject) / real_count("o200k_base", subject)
    assert 0.90 <= share <= (1.15 if language in ("English", "code") else 1.60)


@pytest.mark.parametrize("language", CORPORA)
def test_the_pieces_of_a_budget_add_up_as_the_whole_does(language: str) -> None:
    pieces = CORPORA[language]()
    total = sum(tokens.estimate(piece) for piece in pieces)
    assert 0.95 <= total / tokens.estimate("\n".join(pieces)) <= 1.05


@pytest.mark.parametrize(
    ("subject", "least", "most"),
    [
        ("", 0, 0),
        (" ", 1, 1),
        ("\n", 1, 1),
        ("hello", 1, 1),
        ("Never edit the auth middleware directly", 6, 8),
        ("2026-02-05 10:30", 7, 12),
        ("数据库", 3, 4),
        ("🚀", 2, 3),
        ("\ud800", 1, 3),
        ("\x00", 1, 2),
        ("a" * 8000, 700, 1300),
    ],
)
def test_small_texts_are_estimated_sensibly(subject: str, least: int, most: int) -> None:
    assert least <= tokens.estimate(subject) <= most


@given(st.text(st.characters()), st.text(st.characters()))
def test_joining_texts_costs_next_to_nothing(one: str, other: str) -> None:
    assert tokens.estimate(one + other) <= tokens.estimate(one) + tokens.estimate(other) + 3


@given(st.text(st.characters()))
def test_only_the_empty_text_is_free(any_text: str) -> None:
    assert (tokens.estimate(any_text) == 0) == (any_text == "")
    assert tokens.estimate(any_text) <= 4 * len(any_text)
