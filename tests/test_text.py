"""What `kept.text` promises: one normal form, tokens that are found again, output that is safe to show."""

import base64
import json
import random
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from kept import text

GOLDEN = json.loads((Path(__file__).parent / "golden" / "words.json").read_text("utf-8"))


@pytest.mark.parametrize(("written", "index", "query", "count"), GOLDEN["read"])
def test_a_text_is_read_as_the_golden_table_says(written: str, index: str, query: str, count: int) -> None:
    assert " ".join(text.words(written)) == index
    assert " ".join(text.query_words(written)) == query
    assert text.count_words(written) == count


@pytest.mark.parametrize(("written", "asked"), GOLDEN["meet"])
def test_what_a_person_types_finds_what_was_written(written: str, asked: str) -> None:
    assert set(text.words(written)) & set(text.query_words(asked))


@pytest.mark.parametrize(("written", "asked"), GOLDEN["apart"])
def test_what_is_something_else_is_not_found(written: str, asked: str) -> None:
    assert not set(text.words(written)) & set(text.query_words(asked))


def test_every_character_there_is_reaches_the_index_unchanged() -> None:
    assigned = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) not in ("Cn", "Co", "Cs")]
    tokens = text.words(" ".join(f"a{character}b" for character in assigned))
    assert len(tokens) > len(assigned)
    assert index_of(" ".join(tokens)) == tokens


def index_of(prepared: str) -> list[str]:
    """What a real FTS5 table makes of prepared words, in their order."""
    db = apsw.Connection(":memory:")
    db.execute(f'create virtual table live using fts5(words, tokenize="{text.FTS_TOKENIZE}")')
    db.execute("create virtual table vocabulary using fts5vocab(live, 'instance')")
    db.execute("insert into live(words) values (?)", (prepared,))
    return [str(term) for (term,) in db.execute("select term from vocabulary order by offset")]


# Fingerprints


def test_a_repeated_memory_has_the_same_fingerprint() -> None:
    """C23: case and white space make no difference, and nothing that is not seen does."""
    said = text.fingerprint("Use Fastify, not Express")
    assert said == text.fingerprint("  use  fastify,\n NOT\texpress ")
    assert said == text.fingerprint("Use Fas\u200btify, not Ex\u00adpress\u202e")
    assert re.fullmatch("[0-9a-f]{32}", said)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use Fastify, not Express", "Use Express, not Fastify"),
        ("keep 10² rows", "keep 102 rows"),
        ("die Maße", "die Masse"),
        ("café", "cafe"),
        ("a b", "ab"),
    ],
)
def test_different_memories_have_different_fingerprints(one: str, other: str) -> None:
    assert text.fingerprint(one) != text.fingerprint(other)


def test_an_accent_written_as_one_character_or_two_is_the_same() -> None:
    assert text.normalise("Cafe\u0301 O\u0308l") == text.normalise("CAFÉ ÖL") == "café öl"


def test_a_lone_surrogate_has_a_fingerprint() -> None:
    assert text.fingerprint("\ud800") != text.fingerprint("")


def test_the_fingerprint_of_praxis_is_reproduced() -> None:
    """C23: lower case, white space collapsed and trimmed, then djb2 from two seeds over UTF-16 units."""
    assert text.djb2_fingerprint("") == "deadbeef41c6ce57"
    assert text.djb2_fingerprint("A") == f"{(0xDEADBEEF * 33 + 97) % 2**32:08x}{(0x41C6CE57 * 33 + 97) % 2**32:08x}"
    assert text.djb2_fingerprint(" Use\u00a0 Fastify\ufeff") == text.djb2_fingerprint("use fastify")
    assert text.djb2_fingerprint("\U0001f680") == text.djb2_fingerprint("\ud83d\ude80")
    assert text.djb2_fingerprint("use fastify") != text.djb2_fingerprint("use express")


# Queries


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("login https://example.com/a?b=c www.example.org/x broken", ["login", "broken"]),
        ("https://example.com/docs", ["examplecomdoc", "examplecom", "exampl", "com", "doc"]),
        ("auth AND (login OR token) NOT x NEAR y", ["auth", "login", "token"]),
        ('"auth* ^login: -token + {a b}"', ["auth", "login", "token"]),
        ("x y", ["x", "y"]),
        ("NOT", ["not"]),
        ("a C R I x", ["c", "r"]),
        ("python 3", ["python", "3"]),
        ("' OR 1=1 --", ["1"]),
        ("… ??? ()", []),
        ("", []),
    ],
)
def test_a_query_is_freed_of_everything_that_is_no_word(asked: str, words: list[str]) -> None:
    """A19."""
    assert text.query_words(asked) == words


def test_a_query_has_at_most_32_words_and_no_word_twice() -> None:
    asked = text.query_words(" ".join(f"word{number} again" for number in range(10_000)))
    assert len(asked) == len(set(asked)) == 32
    assert asked[:3] == ["word0", "word", "0"]
    assert text.query_words("one two three", limit=2) == ["one", "two"]
    assert text.query_words("one two three", limit=0) == text.query_words("get_user", limit=-1) == []


def test_common_words_stay_in_a_query() -> None:
    """A20: no list of stop-words; how common a word is decides its weight later."""
    assert text.query_words("to be or not to be") == ["to", "be", "or", "not"]


# Length and time


def test_an_identifier_counts_as_one_word_however_many_parts_are_indexed() -> None:
    assert text.count_words("call get_user_by_id in src/kept/text.py") == 4
    assert len(text.words("call get_user_by_id in src/kept/text.py")) > 4


@pytest.mark.parametrize("blob", ["a" * 10_000_000, base64.b64encode(random.Random(7).randbytes(75_000)).decode()])
def test_a_blob_makes_no_giant_tokens(blob: str) -> None:
    tokens = text.words(blob)
    assert tokens
    assert max(map(len, tokens)) <= text.MAX_TOKEN_CHARS
    assert sum(map(len, tokens)) <= 6 * len(blob)


def test_a_long_path_is_still_found_by_its_file_name() -> None:
    path = "/".join(["deeply"] * 40) + "/settings.toml"
    assert set(text.query_words("settings.toml")) <= set(text.words(path))


HOSTILE = {
    "one letter": "a",
    "digits": "1",
    "dots": "a.",
    "paths": "/a",
    "camel case": "aB",
    "numbers": "1.",
    "underscores": "_",
    "separators": "a__.",
    "apostrophes": "a'",
    "schemes": "ab+://",
    "almost schemes": "ab+:/",
    "addresses": "www.",
    "plus": "a++",
    "marks in the wrong order": "\u0300\u0316",
    "Thai marks in the wrong order": "\u0e48\u0e38",
    "umlauts": "ä",
    "ligatures": "\ufdfa",
    "Chinese": "数据库",
    "emoji": "🚀",
    "zero-width": "\u200d",
    "German endings": "ungen",
    "prose": "Never edit the auth middleware, which isn't ours. ",
}


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("read", [text.words, text.query_words, text.normalise, text.visible, text.statement])
def test_no_text_takes_more_than_linear_time(read: Callable[[str], object], pattern: str) -> None:
    def cpu_seconds(length: int) -> float:
        subject = "a." + (pattern * length)[:length]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            read(subject)
            best = min(best, time.process_time() - start)
        return best

    # Eight times the text: eight times the time if linear, sixty-four times if quadratic.
    assert cpu_seconds(40_000) < 24 * max(cpu_seconds(5_000), 0.001)


def test_threads_may_read_at_once() -> None:
    subjects = [f"word{number} strengthening Entscheidungen getUserById{number}" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(text.words, subjects)) == [text.words(subject) for subject in subjects]


def test_what_is_remembered_of_words_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = "Strengthening (the) cache: entries, getUserById and Größe come again, strengthening the entries."
    read = text.words(subject)
    monkeypatch.setattr(text, "STEMS_KEPT", 3)
    text._stems.clear()
    assert [text.words(subject) for _ in range(3)] == [read] * 3
    assert len(text._stems) <= 3


def test_importing_it_loads_neither_the_stemmer_nor_openssl() -> None:
    program = (
        "import sys; sys.modules['kept'] = type(sys)('kept'); sys.modules['kept'].__path__ = [sys.argv[1]];"
        "import kept.text; print({'Stemmer', '_hashlib'} & set(sys.modules))"
    )
    package = str(Path(text.__file__).parent)
    run = subprocess.run([sys.executable, "-c", program, package], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# Safe to show


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\x00b\x07\x7f\x9b", r"a\x00b\x07\x7f\x9b"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("pass\u200bword\ufeff", r"pass\u200bword\ufeff"),
        ("\ud800", r"\ud800"),
        ("line\u2028line", r"line\u2028line"),
        ("over\rwritten", r"over\x0dwritten"),
        ("hidden\U000e0041\ufe01", r"hidden\U000e0041\ufe01"),
        ("blank\u3164", r"blank\u3164"),
    ],
)
def test_what_could_deceive_is_shown_and_not_sent(hostile: str, shown: str) -> None:
    assert text.visible(hostile) == shown


@pytest.mark.parametrize(
    "harmless",
    [
        "plain",
        "Zoë cafe\u0301",
        "数据库 データ",
        "👩\u200d🚀 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 👍🏽",
        "a\n\tb",
        "עברית",
        "“—”…\u00a0",
    ],
)
def test_ordinary_text_is_shown_as_it_is(harmless: str) -> None:
    assert text.visible(harmless) == harmless


def test_a_joiner_outside_an_emoji_is_shown() -> None:
    assert text.visible("a\u200db\ufe0f") == r"a\u200db\ufe0f"


def test_one_line_of_output_stays_one_line() -> None:
    assert text.visible("one\r\ntwo\n\tthree", keep_newlines=False) == r"one\ntwo\n\tthree"
    assert text.visible("one\r\ntwo") == "one\ntwo"


@pytest.mark.parametrize(
    ("said", "plain", "prose"),
    [
        ("Use uv. Never pip!\nWhy? ", ["Use uv.", "Never pip!", "Why?"], ["Use uv.", "Never pip!", "Why?"]),
        ("Pin it, e.g. Node 22.", ["Pin it, e.g.", "Node 22."], ["Pin it, e.g. Node 22."]),
        ('He said "yes." Then left.', ['He said "yes." Then left.'], ['He said "yes.', "Then left."]),
        ("用 uv。不要用 pip。", ["用 uv。不要用 pip。"], ["用 uv。", "不要用 pip。"]),
        (".env is secret. ./run it", [".env is secret.", "./run it"], [".env is secret. ./run it"]),
        ("", [], []),
    ],
)
def test_a_text_is_split_at_sentences_and_lines(said: str, plain: list[str], prose: list[str]) -> None:
    assert text.sentences(said) == plain
    assert text.sentences(said, is_prose=True) == prose
