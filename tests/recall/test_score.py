"""The numbers of a score: the designs' own check values, and what makes two users' rankings differ."""

import math
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from kept import text, worth
from kept.memory.receipts import latencies_of
from kept.recall import score
from kept.recall.candidates import Latencies
from kept.recall.score import file_affinity
from kept.recall.select import MOST_MISSES
from kept.storage import weights
from kept.tables import PROFILES
from tests.builders import START, FakeClock, context_of
from tests.builders import memory as a_memory


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings()) as opened:
        yield opened


@pytest.mark.parametrize(("feedback", "factor"), [(3, 1.82), (0, 1.0), (-1, 0.82), (-5, 0.37)])
def test_feedback(feedback: int, factor: float) -> None:
    """A8: exp(score × 0.2)."""
    assert worth.feedback_factor(feedback) == pytest.approx(factor, abs=0.005)


def test_recency() -> None:
    """A8: 1/(1 + days × 0.01), from last_hit_at, else created_at."""
    m = a_memory("x", at=START)
    assert worth.recency_factor(m, START) == 1.0
    assert worth.recency_factor(m, START + timedelta(days=100)) == pytest.approx(0.5)
    hit = a_memory("x", at=START, last_hit_at=START + timedelta(days=90))
    assert worth.recency_factor(hit, START + timedelta(days=100)) == pytest.approx(1 / 1.1)
    assert worth.recency_factor(m, START - timedelta(days=5)) == 1.0


def test_the_factors_of_profile_praxis(memory: kept.Kept, clock: FakeClock) -> None:
    """C14: match × kind × recency × use × files × status."""
    memory.remember("The cache is cold on Mondays", kind="warning", files=["src/cache.py"], pin=True)
    memory.reinforce(1)
    clock.advance(days=10)
    (hit,) = memory.recall("cache", profile="praxis", files=["src/cache.py"])
    assert set(hit.why) == {"match", "kind", "recency", "use", "files", "status"}
    assert hit.why["kind"] == 1.2
    assert hit.why["recency"] == pytest.approx(1 / 1.1)
    assert hit.why["use"] == pytest.approx(1 + 0.1 * math.log(2))
    assert (hit.why["files"], hit.why["status"]) == (1.5, 1.1)
    assert hit.score == pytest.approx(math.prod(hit.why.values()))


def test_every_factor_that_a_profile_names_has_a_function_and_every_function_is_used() -> None:
    """A pure function in worth.MEMORY_FACTORS or score.QUESTION_FACTORS, and its name in tables.PROFILES."""
    named = {name for profile in PROFILES.values() for name in profile.factors}
    assert named == {score.MATCH, score.COVERAGE, *worth.MEMORY_FACTORS, *score.QUESTION_FACTORS}
    assert worth.MEMORY_FACTORS.keys().isdisjoint(score.QUESTION_FACTORS)
    page = Path(__file__).parents[2] / "docs" / "recall.md"
    assert named <= set(re.findall(r"^\| (\w+) \|", page.read_text("utf-8"), re.MULTILINE)), "its formula in the docs"


def test_every_factor_counts_where_a_storage_chooses_candidates() -> None:
    """A factor that storage/weights.py does not know never lifts a memory above the cut, and nothing else would say so.

    `files` depends on the files at hand: it orders the candidates and chooses none.
    """
    unknown = {*worth.MEMORY_FACTORS, *score.QUESTION_FACTORS} - weights.KNOWN
    assert unknown == {"files"}, (
        f"Add {sorted(unknown - {'files'})} to OTHERS in storage/weights.py (and its fields to Traits)."
    )


@pytest.mark.parametrize("profile", ["kept", "koshi", "praxis"])
def test_a_score_is_the_product_of_the_factors_that_its_profile_names(memory: kept.Kept, profile: str) -> None:
    memory.remember("The cache is cold on Mondays", kind="warning", files=["src/cache.py"])
    (hit,) = memory.recall("cache", profile=profile, files=["src/cache.py"])
    assert tuple(hit.why) == PROFILES[profile].factors
    assert hit.score == math.prod(hit.why.values())


@pytest.mark.parametrize("profile", ["kept", "koshi"])
def test_thirty_mere_returns_raise_no_rank(memory: kept.Kept, clock: FakeClock, profile: str) -> None:
    """A9: returned but unused is neutral."""
    memory.remember("The importer retries three times")
    before = memory.recall("importer", profile="kept")[0].score
    for _ in range(30):
        assert memory.recall("importer", profile=profile).hits
        assert memory.briefing("importer").sections
        clock.advance(days=1)
    found = memory.get(1)
    assert (found.use_count, found.last_used_at, found.feedback) == (0, None, 0)
    clock.advance(days=-30)
    assert memory.recall("importer", profile="kept")[0].score == pytest.approx(before)


def test_profile_praxis_counts_what_it_returned_as_its_design_did(memory: kept.Kept, clock: FakeClock) -> None:
    """C14: access counts, once a day."""
    memory.remember("The importer retries three times")
    for _ in range(3):
        clock.advance(days=1)
        memory.recall("importer", profile="praxis")
    assert memory.get(1).use_count == 3


def test_file_affinity() -> None:
    m = a_memory("x", files=("src/auth/login.py",))
    assert file_affinity(m, ["src/auth/login.py"]) == 1.5
    assert file_affinity(m, ["src/auth/other.py"]) == 1.2
    assert file_affinity(m, ["README.md"]) == file_affinity(m, []) == 1.0


def test_two_users_same_memories_different_rankings(tmp_path: Path) -> None:
    """A24: personalisation without personalisation logic."""
    order = []
    for user in (1, 2):
        with kept.open(tmp_path / f"{user}.db", clock=FakeClock(), settings=kept.Settings()) as memory:
            memory.remember("Deploy with the blue script")
            memory.remember("Deploy with the green script")
            memory.reinforce(user)
            order.append([hit.ref for hit in memory.recall("deploy script")])
    assert order == [["1", "2"], ["2", "1"]]


def test_what_was_recalled_together_is_linked_and_followed(memory: kept.Kept, clock: FakeClock) -> None:
    """A18: payment → onboarding → a debugging session: a chain of thought, and it fades."""
    memory.remember("Payment API needs an HMAC signature")
    memory.remember("Onboarding sends the signature guide")
    memory.remember("Onboarding took a day of debugging last spring")
    for _ in range(3):
        memory.recall("signature")
        memory.recall("onboarding")
    assert [hit.ref for hit in memory.recall("payment")] == ["1"]
    followed = memory.recall("payment", follow=True)
    assert [hit.ref for hit in followed] == ["1", "2", "3"]
    assert all(hit.score == pytest.approx(math.prod(hit.why.values())) for hit in followed)
    clock.advance(days=365)
    assert [hit.ref for hit in memory.recall("payment", follow=True)] == ["1"]


def test_a_memory_that_a_link_brought_in_strengthens_no_link(memory: kept.Kept) -> None:
    """A18: otherwise every recall that follows links would make them stronger, whatever was asked."""
    memory.remember("Payment API needs an HMAC signature")
    memory.remember("Onboarding sends the signature guide")
    memory.remember("Payment webhooks are retried")
    memory.recall("signature")

    def strengths() -> list[dict[int, float]]:
        with context_of(memory).readable()[0].reading() as reader:
            return [{id: strength for id, strength, _ in reader.links(ref)} for ref in (1, 2, 3)]

    before = strengths()
    assert before[0].keys() == {2}
    assert [hit.ref for hit in memory.recall("HMAC", follow=True)] == ["1", "2"]
    assert strengths() == before
    assert {hit.ref for hit in memory.recall("payment", follow=True)} == {"1", "2", "3"}
    after = strengths()
    assert after[0].keys() == {2, 3}  # both are hits of the query
    assert after[0][2] == before[0][2]
    assert after[1] == before[1]


def test_only_the_best_of_a_long_answer_are_linked(memory: kept.Kept) -> None:
    """A18: that a hundred came together says nothing of any two."""
    for number in range(30):
        memory.remember(f"cache {'cache ' * (number % 15)}rule {number}")
    best = [hit.memory.id for hit in memory.recall("cache", limit=30)]
    assert len(best) > 20
    with context_of(memory).readable()[0].reading() as reader:
        assert len(reader.links(best[0])) == len(reader.links(best[9])) == 9
        assert not reader.links(best[10])


def test_a_slip_of_the_keyboard_and_an_unfinished_word(memory: kept.Kept) -> None:
    """C12: fuzzy and prefix, only where exact words find too little, and visible."""
    memory.remember("The middleware checks every token")
    for query in ("middelware", "middlew", "mdidleware"):
        (hit,) = memory.recall(query)
        assert any(reason.startswith(("near", "begins")) for reason in hit.matched.values())
        assert len(memory.recall(query, profile="koshi")) == 0


def test_an_everyday_word_is_not_taken_for_a_slip(memory: kept.Kept) -> None:
    memory.remember_many([f"Line {n} of report {n * 37} was moved" for n in range(40)])
    assert len(memory.recall("Where do I live?")) == 0
    assert memory.recall("lixne").hits, "a slip is still one"


def test_a_query_is_cleaned_and_never_fails() -> None:
    """A19, A20: URLs out, hyphens to spaces, operators out, quoted words, OR; no stop-word list."""
    assert text.query_words("https://x.example/a?b=c auth") == ["auth"]
    assert "AND" not in text.query_words("login AND signup NOT logout")
    assert {"the", "of"} <= set(text.query_words("the name of the game"))
    for query in ('"', "a*", "NEAR(", "col:x", "'; drop table memories; --", "-", "()", "^"):
        text.query_words(query)


def test_the_archive_can_be_asked(memory: kept.Kept) -> None:
    """A15: queryArchive."""
    memory.remember("The release is planned for May", topic="release")
    memory.remember("The release is planned for July, after the audit", topic="release")
    assert [hit.ref for hit in memory.recall("release planned")] == ["2"]
    assert [hit.ref for hit in memory.recall("release planned", scope="archive")] == ["1"]


def test_three_rounds_each_informed_by_the_last(memory: kept.Kept) -> None:
    """A6, A7: nothing is injected; the agent asks again with other words, or goes on without memory."""
    memory.remember("Signatures are HMAC-SHA256 over the raw body")
    rounds = [memory.recall(words) for words in ("webhook verification", "webhook secret check", "hmac signature body")]
    assert [len(recalled) for recalled in rounds] == [0, 0, 1]


def test_latency_decides_how_much_is_looked_at() -> None:
    """C15: the last 100; p95 > 300 ms degrades, < 200 ms heals, fewer than five say nothing."""
    latencies = Latencies()
    for _ in range(4):
        latencies.note(1_000)
    assert latencies.p95_ms() is None
    assert not latencies.is_degraded
    latencies.note(1_000)
    assert latencies.is_degraded
    for _ in range(94):
        latencies.note(250)
    assert latencies.is_degraded, "between 200 and 300 nothing changes"
    for _ in range(100):
        latencies.note(10)
    assert not latencies.is_degraded
    assert latencies.p95_ms() == 10


def test_latencies_are_kept_across_processes_and_stand_in_the_status(tmp_path: Path) -> None:
    """C15: every recall counts, and the next process goes on with the ring."""
    place = tmp_path / "ring.db"
    for _ in range(3):
        with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as memory:
            memory.remember("The importer retries three times")
            for _ in range(4):
                memory.recall("importer")
            [space] = memory.status()["spaces"]
    assert space["recalls"]["n"] == 12
    assert 0 < space["recalls"]["p50_ms"] <= space["recalls"]["p95_ms"]
    assert latencies_of(context_of(memory)).p95_ms() is not None, "four of its own would say nothing"


def test_a_new_process_starts_degraded_when_the_last_one_ended_so(tmp_path: Path) -> None:
    """C15: hooks and commands recall once and end, so each of them would otherwise begin as if all were well."""
    place, ticks = tmp_path / "slow.db", iter(range(10_000))

    def recalled(*, seconds: float) -> kept.Recalled:
        """Recall once in a new process, by a timer on which a recall takes that long."""
        with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as memory:
            context_of(memory).timer = lambda: next(ticks) * seconds
            return memory.recall("harbor", limit=10)

    with kept.open(place, clock=FakeClock(), settings=kept.Settings(recall_deadline_ms=60_000)) as memory:
        memory.remember_many([kept.Draft(content=f"The harbor has pier number {n}") for n in range(40)])
    slow = [recalled(seconds=0.4) for _ in range(6)]
    assert [len(one) for one in slow] == [10, 10, 10, 10, 10, 5]
    assert "slow lately" in str(slow[-1].degraded)
    with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as memory:
        assert memory.status()["spaces"][0]["recalls"]["is_degraded"]
    healed = [len(recalled(seconds=0.0001)) for _ in range(120)]
    assert healed[0] == 5
    assert healed[-1] == 10


def test_what_was_considered_and_not_returned_says_why(memory: kept.Kept) -> None:
    """C12, C15: the best few of it; and where recall has been slow, only the first five may be returned."""
    memory.remember_many([kept.Draft(content=f"The harbor has pier number {n}") for n in range(40)])
    recalled = memory.recall("harbor", limit=10)
    assert len(recalled) == 10
    assert [miss.reason for miss in recalled.misses] == ["beyond the limit of 10"] * MOST_MISSES
    latencies_of(context_of(memory)).is_degraded = True
    recalled = memory.recall("harbor", limit=10)
    assert len(recalled) == 5
    assert [miss.reason for miss in recalled.misses[:2]] == [
        "ranked 6, beyond the first 5",
        "ranked 7, beyond the first 5",
    ]
    assert "slow lately" in str(recalled.degraded)


def test_a_reranker_adds_a_factor_and_may_fail(tmp_path: Path) -> None:
    """C14: the reranker hook; late or failing, our order stands and the answer says so."""

    def upside_down(query: str, hits: object) -> list[float]:
        return [0.1, 1.0]

    def broken(query: str, hits: object) -> list[float]:
        raise RuntimeError("no model")

    for reranker, first, note in (
        (upside_down, "1", None),
        (broken, "2", "failed"),
        (lambda q, h: [1.0], "2", "number"),
    ):
        with kept.open(":memory:", clock=FakeClock(), settings=kept.Settings(), reranker=reranker) as memory:
            memory.remember("deploy on Tuesday by hand")
            memory.remember("deploy deploy script")
            recalled = memory.recall("deploy")
            assert recalled.hits[0].ref == first
            assert (note is None) == (recalled.degraded is None)
            assert note is None or note in (recalled.degraded or "")
