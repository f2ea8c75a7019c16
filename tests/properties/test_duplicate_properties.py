"""Duplicates: a sentence that differs in one content word is another statement, at every door that judges it.

Otherwise `kept review --apply proposed` would archive facts that nothing else says, and what a session said would be
dropped as an echo of something else.
"""

from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.builders import START
from tests.builders import memory as a_memory

import kept
from kept import text
from kept.model import Draft, Source
from kept.upkeep import review as judging

RULES = judging.ReviewRules(shelf_life_days=kept.Settings().shelf_life_days)

# Words that differ little in their letters, or share a stem, and say different things.
CLOSE = (
    "import important export internal international intern interval past paste build building stage staging custom "
    "customs new news policy police organ organization universal university author authority test testing tested "
    "Monday Tuesday Sunday Friday January June July 8080 8081 80 1 10 0.1 3.11 3.12 v1 v2 -1 50% 50 5ms 5s 5\" 5' "
    "Anna Anne Anderson Andersen Christian Christina Hetzner Hetzler Martin Martina eu-west-1 eu-west-2 getUser "
    "getUsers get_user .env env src/ src/.. src/. --force -f C C++ C# < > <= == != not never no always only all any "
    "some none before after until since from to with without on off in out and or unless if must may can should was is "
    "were has had I you we my your production staging-2 enabled disabled allow deny primary replica left right A B IT "
    "main master true false null ✅ ❌ 不 是 nicht kein jamais"
).split()
content_words = st.one_of(
    st.sampled_from(CLOSE),
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=10),
    st.integers(-(10**6), 10**6).map(str),
    st.from_regex(r"[a-z]{2,6}[_./-][a-z0-9]{1,6}", fullmatch=True),
)
fillers = st.sampled_from("service queue worker nightly deploys region cluster reads writes token invoice".split())
sentences = st.lists(st.one_of(fillers, content_words), min_size=4, max_size=25)
WEIGHTLESS = "a an the of that too also now please".split()


def proposed(left: str, right: str) -> list[judging.ReviewFinding]:
    """The duplicates that a review of these two finds."""
    both = [a_memory(left, id=1), a_memory(right, id=2)]
    found = judging.review(both, [], judging.Talk(), START, RULES)
    return [finding for finding in found if "duplicate" in finding.reasons]


def is_content(word: str) -> bool:
    return word.lower() not in WEIGHTLESS or word == "A"


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two sentences, one of which has a content word replaced, added, removed, or exchanged with another."""
    words = ["Deploy", *draw(sentences)]
    place = draw(st.integers(1, len(words) - 1))
    move = draw(st.sampled_from(["replace", "add", "remove", "swap"]))
    other = list(words)
    if move == "replace":
        other[place] = draw(content_words)
    elif move == "add":
        other.insert(place, draw(content_words))
    elif move == "remove":
        del other[place]
    else:
        second = draw(st.integers(1, len(words) - 1))
        other[place], other[second] = other[second], other[place]
    assume([word.lower() for word in words if is_content(word)] != [word.lower() for word in other if is_content(word)])
    return " ".join(words), " ".join(other)


@given(pairs())
@example(("The import job runs on Monday", "The important job runs on Monday"))
@example(("Deploys run on Mondays for the billing team", "Deploys run on Sundays for the billing team"))
@example(("Anna approves the invoices of the billing team", "Anne approves the invoices of the billing team"))
@example(
    (
        "The cache of the billing service is enabled on staging",
        "The cache of the billing service is not enabled on staging",
    )
)
@example(
    ("Copy the rows of the ledger from Frankfurt to Dublin", "Copy the rows of the ledger from Dublin to Frankfurt")
)
def test_sentences_that_differ_in_a_content_word_are_never_proposed_as_duplicates(pair: tuple[str, str]) -> None:
    assert proposed(*pair) == []


CLOTHES: dict[str, Callable[[str], str]] = {
    "spacing": lambda sentence: "  " + sentence.replace(" ", "  \n"),
    "a stop": lambda sentence: sentence + ".",
    "an exclamation": lambda sentence: sentence + "!",
    "brackets": lambda sentence: f"({sentence})",
    "quotes": lambda sentence: f"“{sentence}”",
    "commas": lambda sentence: sentence.replace(" ", ", ", 2),
    "articles": lambda sentence: sentence.replace(" ", " the ", 1),
    "please": lambda sentence: sentence + ", please",
}


@given(st.lists(fillers, min_size=3, max_size=12), st.sampled_from(sorted(CLOTHES)))
def test_the_same_words_in_other_clothes_are_proposed(words: list[str], clothes: str) -> None:
    sentence = "Deploy " + " ".join(words)
    assert len(proposed(sentence, CLOTHES[clothes](sentence))) == 1
    assert len(proposed(sentence, sentence.capitalize())) == 1


@given(st.text(max_size=80))
def test_every_text_is_a_statement_and_case_and_spacing_do_not_matter(any_text: str) -> None:
    assert text.statement(any_text)
    assert text.statement(f"  {any_text}\n") == text.statement(any_text) or not any_text.strip()


@given(pairs())
@example(
    (
        "Christina owns the billing service and its nightly jobs",
        "Christian owns the billing service and its nightly jobs",
    )
)
@example(
    (
        "The nightly cleanup removes drafts older than a week",
        "The nightly cleanup removes drafts older than a week on staging",
    )
)
def test_an_automatic_statement_that_differs_in_a_content_word_is_no_echo(pair: tuple[str, str]) -> None:
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        memory.remember(pair[1])
        (receipt,) = memory.remember_many([Draft(content=pair[0], source=Source(origin="extraction"))])
        assert receipt.reason != "echo"


@pytest.mark.parametrize("seed", range(3))
def test_applying_every_proposed_duplicate_leaves_each_statement_alive(seed: int) -> None:
    from random import Random

    random = Random(seed)
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        for _ in range(60):
            word, day = random.choice(CLOSE), random.choice(["Monday", "Tuesday", "Sunday"])
            end = random.choice(["", ".", "!"])
            memory.remember(f"The {word} job of the billing service runs on {day} at night{end}")
        before = {text.statement(one.content) for one in memory.list(limit=500)}
        found = memory.reviews.list(limit=500, reasons=["duplicate"])
        memory.reviews.apply([finding.proposed for finding in found])
        assert {text.statement(one.content) for one in memory.list(limit=500)} == before
