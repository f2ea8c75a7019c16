"""The floor: recall says when nothing fits, and common words alone never make a hit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations

import pytest

import kept
from kept import text
from kept.model import Draft, Source
from kept.recall.query import expansions
from kept.recall.vocabulary import as_mapping
from tests.builders import FakeClock
from tests.golden import ferry_line
from tests.golden import greenhouse as greenhouse_set
from tests.golden.bicycle_shop import MEMORIES, PARAPHRASES, UNANSWERABLE


@pytest.fixture(scope="module")
def shop() -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings(recall_deadline_ms=60_000)) as memory:
        memory.remember_many([Draft(content=content, kind=kind) for kind, content in MEMORIES])
        yield memory


@pytest.fixture(scope="module")
def greenhouse() -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings(recall_deadline_ms=60_000)) as memory:
        memory.remember_many([Draft(content=content, kind=kind) for kind, content in greenhouse_set.MEMORIES])
        yield memory


@pytest.fixture
def memory() -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings(recall_deadline_ms=60_000)) as memory:
        yield memory


def test_nine_of_ten_questions_that_nothing_answers_get_no_hit(shop: kept.Kept) -> None:
    answered = [query for query in UNANSWERABLE if shop.recall(query).hits]
    assert len(UNANSWERABLE) == 100
    assert len(answered) <= 10, answered


def test_answers_in_other_words_are_among_the_first_five(shop: kept.Kept) -> None:
    assert n_found(shop, PARAPHRASES) >= 31  # of 40
    assert n_ranked(shop, PARAPHRASES) >= 37


def test_so_they_are_in_a_project_that_no_word_was_chosen_for(greenhouse: kept.Kept) -> None:
    assert n_found(greenhouse, greenhouse_set.PARAPHRASES) >= 12  # of 20
    assert n_ranked(greenhouse, greenhouse_set.PARAPHRASES) >= 19
    answered = [query for query in greenhouse_set.UNANSWERABLE if greenhouse.recall(query).hits]
    assert len(answered) <= 2, answered


def test_so_they_are_in_a_project_that_was_asked_about_when_the_floor_was_done(memory: kept.Kept) -> None:
    memory.remember_many([Draft(content=content, kind=kind) for kind, content in ferry_line.MEMORIES])
    assert n_found(memory, ferry_line.PARAPHRASES) >= 15  # of 34
    assert n_ranked(memory, ferry_line.PARAPHRASES) >= 22
    answered = [query for query in ferry_line.UNANSWERABLE if memory.recall(query).hits]
    assert len(answered) <= 3, answered


def n_found(memory: kept.Kept, asked: Sequence[tuple[str, str]]) -> int:
    """How many of the questions have their answer among the hits."""
    return sum(any(hit.memory.content.startswith(answer) for hit in memory.recall(query)) for query, answer in asked)


def n_ranked(memory: kept.Kept, asked: Sequence[tuple[str, str]]) -> int:
    """How many have it among the first five, whatever the floor held back."""
    count = 0
    for query, answer in asked:
        recalled = memory.recall(query)
        best = sorted((*recalled.hits, *(miss.hit for miss in recalled.misses)), key=lambda hit: -hit.score)
        count += any(hit.memory.content.startswith(answer) for hit in best[:5])
    return count


def test_of_two_memories_the_one_that_covers_more_of_the_query_comes_first(memory: kept.Kept) -> None:
    """One word said often is worth less than two words of the query."""
    memory.remember("Release, release, release: the release of the release candidate is a release")
    memory.remember(
        "Every release of the importer needs a changelog that Tomas reads before noon on the day it goes out"
    )
    assert memory.recall("release importer")[0].ref == "2"
    assert memory.recall("release importer")[0].why["coverage"] == pytest.approx(1.0)


def test_a_word_does_not_answer_for_itself_and_for_the_kind_it_belongs_to(memory: kept.Kept) -> None:
    """A push is a kind of notification, but pushing a branch is none."""
    memory.remember("Run the tests before pushing; the suite takes eleven minutes")
    assert not memory.recall("how are push notifications delivered?").hits


def test_two_words_for_one_thing_are_covered_by_either(memory: kept.Kept) -> None:
    memory.remember("Maren wants short answers, the command first")
    assert memory.recall("answers concise short")[0].why["coverage"] == pytest.approx(1.0, abs=0.05)


def test_words_that_are_said_together_are_covered_together(memory: kept.Kept) -> None:
    memory.remember("The login page is slow")
    [hit] = memory.recall("sign in page")
    assert hit.matched["login"] == "alias of sign in"
    memory.remember("Search is served by Meilisearch")
    [hit] = memory.recall("full text")
    assert hit.why["coverage"] > 0.9


def test_a_kind_is_found_by_its_name_alone(memory: kept.Kept) -> None:
    memory.remember("The warehouse listens for stock events", kind="architecture")
    assert memory.recall("architecture warehouse").hits
    assert not memory.recall("who designed the logo?").hits, "design stands for architecture, but only in a text"


def test_where_a_memory_comes_from_is_found_by_its_name_alone(memory: kept.Kept) -> None:
    memory.remember("The panel has tool-tips", source=Source(origin="extraction"))
    assert not memory.recall("export support").hits, "extract stands for export, but only in a text"


def test_common_words_alone_never_make_a_hit(memory: kept.Kept) -> None:
    memory.remember("The name of the person who reviews our migrations is Tomas")
    recalled = memory.recall("what is the phone number of our dentist?")
    assert recalled.hits == ()
    assert 0.0 <= (recalled.confidence or 0.0) < 0.5
    assert not memory.recall("what is it that we do").hits
    assert memory.recall("who reviews migrations").hits


def test_what_was_held_back_stands_in_why(memory: kept.Kept) -> None:
    memory.remember("The shop uses PostgreSQL")
    recalled = memory.recall("which Kubernetes cluster runs the shop?")
    [miss] = recalled.misses
    assert miss.reason.startswith("fits too little: confidence 0.")
    explained = memory.why(recalled.receipt)
    assert explained.hits == ()
    assert explained.confidence == recalled.confidence
    assert explained.misses[0]["ref"] == "1"


@pytest.mark.parametrize("profile", ["koshi", "praxis"])
def test_profiles_of_the_older_designs_have_no_floor(memory: kept.Kept, profile: str) -> None:
    """A8, C14."""
    memory.remember("Our importer retries three times")
    memory.remember("Deploys go out on Tuesdays")
    memory.remember("The API listens on port 3000")
    query = "where is our dentist in Vienna"
    assert memory.recall(query, profile=profile).hits
    assert not memory.recall(query).hits


def test_one_rare_word_is_enough_if_it_is_all_that_was_asked(memory: kept.Kept) -> None:
    memory.remember("Payments go through Mollie")
    assert memory.recall("Mollie").confidence > 0.9  # type: ignore[operator]
    assert memory.recall("what do we use Mollie for?").hits


def test_a_second_memory_about_a_name_does_not_silence_it_in_a_young_store(memory: kept.Kept) -> None:
    memory.remember("We switched from Stripe to Adyen for payments")
    memory.remember("Prices are stored in cents, see src/cart.py")
    memory.remember("Ann prefers small reviews")
    for content in (
        "The key for Stripe is in the vault",
        "Stripe calls us back at /hooks",
        "Stripe wants our VAT number",
    ):
        memory.remember(content)
        assert {"1", "4"} <= {hit.ref for hit in memory.recall("implement refunds with Stripe")}, content
    assert not memory.recall("implement refunds with Klarna").hits


def test_the_verb_of_an_order_counts_little(memory: kept.Kept) -> None:
    memory.remember("Prices are stored in cents, see src/cart.py")
    memory.remember("Staging runs on Fly.io")
    [hit] = memory.recall("add coupon support to the cart")
    assert hit.ref == "1"
    assert hit.confidence is not None
    assert hit.confidence > (memory.recall("colours coupon support to the cart").confidence or 0.0)


def test_half_of_words_that_are_said_together_stands_for_nothing(memory: kept.Kept) -> None:
    """`staging` also searches for "test environment", which "tests" alone is not."""
    memory.remember("Tests run with unittest")
    memory.remember("The test environment is on the old server")
    assert [hit.ref for hit in memory.recall("where is staging")] == ["2"]
    assert "test" not in memory.recall("staging").words


def test_two_rare_words_of_a_long_prompt_do_not_meet_by_chance(memory: kept.Kept) -> None:
    memory.remember_many([Draft(content=content) for _, content in MEMORIES])
    prompt = (
        "Please look at the ticket from yesterday: the accountant complains that the datev export is empty since the "
        "holidays, nobody knows whether somebody touched that machine, and I would rather not wait until Monday. "
    )
    assert memory.recall(prompt)[0].memory.content.startswith("Nightly exports for the accountant")


def test_a_name_is_one_word_however_many_parts_it_has(memory: kept.Kept) -> None:
    memory.remember("The colours of oh-my-posh come from its palette")
    assert not memory.recall("which database does oh-my-posh talk to on Windows servers?").hits
    assert memory.recall("oh-my-posh colours").hits


def test_a_name_is_worth_the_same_however_often_it_is_said(memory: kept.Kept) -> None:
    memory.remember("bot@ci.example answers mails about the build.", kind="decision")
    once, twice, often = (memory.recall("bot@ci.example " * times).confidence for times in (1, 2, 700))
    assert once == twice == often


def test_words_that_many_names_share_do_not_end_the_recall(memory: kept.Kept) -> None:
    memory.remember("bot@ci.example answers mails about the build.", kind="decision")
    names = permutations(("ab", "cd", "ef", "gh", "ij", "kl"))
    assert not memory.recall(" ".join(map("-".join, names))).hits


def test_a_summary_is_a_hit_only_if_it_is_asked_for(memory: kept.Kept) -> None:
    memory.remember("- Asked: move the importer to Celery\n- Tests pass", kind="summary")
    recalled = memory.recall("importer celery")
    assert recalled.hits == ()
    assert recalled.misses[0].reason == "a summary of a session; ask for kind summary"
    assert (recalled.confidence or 0.0) == 0.0, "it speaks for no hit, so it lends no confidence"
    assert memory.recall("importer celery", kinds=["summary"]).hits


def test_one_session_gives_way_to_others_but_leaves_no_place_empty(memory: kept.Kept) -> None:
    for number in range(4):
        memory.remember(f"The importer of zone {number} retries three times", source=Source(session="s1"))
    assert len(memory.recall("importer retries").hits) == 4
    for number in range(4, 8):
        memory.remember(f"The importer of zone {number} retries three times", source=Source(session="s2"))
    sessions = [hit.memory.source.session for hit in memory.recall("importer retries")]
    assert sorted(Counter(sessions).values()) == [2, 3]


def test_the_list_of_aliases_is_what_expands(memory: kept.Kept) -> None:
    """C13: defaults and own lines; what is removed no longer expands."""
    memory.remember("The login page is slow")
    assert memory.recall("signin").hits
    assert "login" in memory.aliases.list()["signin"]
    memory.aliases.remove("signin")
    assert "signin" not in memory.aliases.list()
    assert not memory.recall("signin").hits
    memory.aliases.add("signin", "login")
    assert memory.aliases.list()["signin"] == ("login",)
    assert memory.recall("signin").hits
    memory.aliases.add("auth", "gatekeeper")
    assert {"login", "gatekeeper"} <= set(memory.aliases.list()["auth"])
    memory.aliases.remove("deploy")
    assert not {"deploy", "deploys", "deployment"} & memory.aliases.list().keys(), "all forms that are searched alike"
    with pytest.raises(kept.NotFound, match="There is no alias for 'zebra'"):
        memory.aliases.remove("zebra")


def test_two_words_that_are_said_together_expand_together(memory: kept.Kept) -> None:
    memory.remember("The login page is slow")
    assert memory.recall("sign in").hits
    assert not memory.recall("street sign").hits
    memory.remember("Growers sign in with a magic link")
    assert "Growers sign in with a magic link" in [hit.memory.content for hit in memory.recall("auth")]


def test_every_default_alias_leads_to_another_word() -> None:
    for word, others in as_mapping(()).items():
        assert others, word
        assert word not in others


def test_every_default_alias_of_one_or_two_words_expands() -> None:
    for word, others in as_mapping(()).items():
        if len(word.split()) > 2:
            continue
        asked = [text.words(part)[0] for part in word.split()]
        wanted = {text.words(other)[0] for other in others if " " not in other} - {" ".join(asked)}
        assert wanted <= {*expansions(asked, ()).get(" ".join(asked), ())}, word


def test_a_telling_match_is_found_however_long_the_prompt_is(memory: kept.Kept) -> None:
    memory.remember_many([Draft(content=content) for _, content in MEMORIES])
    memory.remember("metrics.log is append-only: past entries are never rewritten")
    order = "Add the entry for 2026-08-22 to metrics.log"
    around = " and tell me afterwards whether anything else about this looked strange to you, because I am in a hurry"
    assert memory.recall("metrics.log")[0].memory.content.startswith("metrics.log")
    for prompt in (order, order + around, around + order + around):
        assert memory.recall(prompt)[0].memory.content.startswith("metrics.log"), prompt


def test_a_word_that_many_memories_hold_tells_nothing(memory: kept.Kept) -> None:
    """The name of the project is in most of them: a haiku about it is no question."""
    for number in range(12):
        memory.remember(f"The parcel service {number} of depot {number * 7} answers on port {3000 + number}")
    assert not memory.recall("write a haiku about parcels").hits
    assert memory.recall("parcel").hits, "unless nothing else is asked for"


def test_the_floor_can_be_strict_or_open(memory: kept.Kept) -> None:
    memory.remember("The coupon service has no lock")
    memory.remember("Staging runs on Fly.io")
    query = "race condition with vouchers"
    assert not memory.recall(query).hits
    assert memory.recall(query, floor="open")[0].ref == "1"
    assert "fits too little" in memory.recall(query, floor="strict").misses[0].reason
    with pytest.raises(kept.InvalidInput, match="Unknown floor 'lax'"):
        memory.recall(query, floor="lax")
    settings = kept.Settings(floor="open", recall_deadline_ms=60_000)
    with kept.open(":memory:", clock=FakeClock(), settings=settings) as lenient:
        lenient.remember("The coupon service has no lock")
        assert lenient.recall(query).hits
        assert not lenient.recall(query, floor="normal").hits


@pytest.mark.parametrize("named", ["src/lib/render.go", "`render.go:26`", "render.go."])
def test_a_memory_about_a_file_that_the_query_names_passes_the_floor(memory: kept.Kept, named: str) -> None:
    memory.remember("Colours are resolved late", files=["src/lib/render.go"])
    memory.remember("Colours are resolved early", files=["src/lib/early.go"])
    hits = memory.recall(f"please clean up whatever looks odd to you in {named}").hits
    assert [hit.ref for hit in hits] == ["1"]
    assert hits[0].why["files"] == 1.5


def test_a_memory_about_a_file_at_hand_passes_the_floor(memory: kept.Kept) -> None:
    memory.remember("Colours are resolved late", files=["src/lib/render.go"])
    prompt = "why do the segments of the second line flicker when colours change?"
    assert not memory.recall(prompt).hits
    assert memory.recall(prompt, files=["src/lib/render.go"]).hits


def test_the_reason_of_a_miss_names_the_memory_that_set_the_bar(memory: kept.Kept) -> None:
    memory.remember("The importer retries three times when the feed is late")
    memory.remember("The importer is written in Go and the feed in Python, by Ann, in 2024, on a rainy day in Vienna")
    recalled = memory.recall("importer retries feed late")
    assert [hit.ref for hit in recalled.hits][:1] == ["1"]
    for miss in recalled.misses:
        assert "1" in miss.reason
    nothing = memory.recall("which Kubernetes cluster runs the importer of the zoo?")
    assert not nothing.hits
    assert {miss.reason.split(":")[0] for miss in nothing.misses} == {"fits too little"}
