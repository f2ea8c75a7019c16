"""Below the budget an answer is exact: FTS5's own ranking, computed beside ours by FTS5 itself."""

import math
import random
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

import kept
from kept import text
from kept.model import Draft
from kept.recall import candidates
from tests.builders import FakeClock, context_of

WORDS = (
    "auth login cache token deploy friday replica queue getUserById node.js HMAC-SHA256 缓存 Größe retry slow".split()
)
KINDS = ("fact", "warning", "decision", "progress")
UNHURRIED = kept.Settings(recall_deadline_ms=60_000)  # exact, however busy the machine is


@pytest.fixture(params=[3, 4])
def lived_in(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, FakeClock, random.Random]:
    """A file with four hundred memories of a hundred days, some of which helped and some did not."""
    chance, clock, path = random.Random(request.param), FakeClock(), tmp_path / "m.db"
    with kept.open(path, clock=clock, settings=kept.Settings()) as memory:
        for number in range(40):
            memory.remember_many(
                Draft(
                    content=" ".join([*chance.choices(WORDS, k=chance.randint(1, 12)), f"n{number}x{place}"]),
                    kind=chance.choice(KINDS),
                    tags=tuple(chance.sample(WORDS, chance.randint(0, 2))),
                    files=("src/auth/login.py",) if chance.random() < 0.2 else (),
                )
                for place in range(10)
            )
            clock.advance(days=2.5)
        for ref in chance.sample(range(1, 401), 80):
            memory.reinforce(ref) if chance.random() < 0.5 else memory.demote(ref)
        clock.advance(hours=7)
    return path, clock, chance


def by_fts5_itself(path: Path, query: str, clock: FakeClock) -> dict[str, float]:
    """Ref → score, as a program without Kept would compute it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    # An index of its own, with the positions that bm25() counts, and that Kept does not store.
    columns = "words, tag_words, file_words, source_words, kind_words"
    connection.execute(f'create virtual table temp.live_fts using fts5({columns}, tokenize = "{text.FTS_TOKENIZE}")')
    connection.execute(f"insert into temp.live_fts (rowid, {columns}) select id, {columns} from live_rows")
    sql = """
        select m.id, -bm25(live_fts, 1.0, 1.0, 0.0, 1.0, 0.0) as relevance, m.feedback,
               (julianday(?) - julianday(coalesce(m.last_hit_at, m.created_at) / 1e6, 'unixepoch')) as days
        from live_fts join memories m on m.id = live_fts.rowid
        where live_fts match ?"""
    match = " OR ".join(f'"{word}"' for word in text.query_words(query))
    scores = {
        str(id): relevance * math.exp(0.2 * feedback) / (1 + 0.01 * days)
        for id, relevance, feedback, days in connection.execute(sql, (clock.at.isoformat(), match))
    }
    connection.close()
    return {ref: score for ref, score in scores.items() if score > 0}


def test_koshi_is_the_ranking_of_fts5_times_its_factors(lived_in: tuple[Path, FakeClock, random.Random]) -> None:
    """A1, A8: rank = bm25 × exp(score × 0.2) × 1/(1 + days × 0.01), with FTS5's own bm25, for every match there is."""
    path, clock, chance = lived_in
    assert candidates.budget(400) > 400
    with kept.open(path, clock=clock, settings=UNHURRIED) as memory:
        context_of(memory).timer = lambda: 0.0  # recall considers less after slow answers, and the machine may be busy
        for _ in range(15):
            query = " ".join(chance.choices(WORDS, k=chance.randint(1, 5)))
            hits = memory.recall(query, profile="koshi", limit=1_000).hits
            expected = by_fts5_itself(path, query, clock)
            assert {hit.ref for hit in hits} == set(expected), query
            for hit in hits:
                assert hit.score == pytest.approx(expected[hit.ref], rel=1e-5), "julianday counts in milliseconds"
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_first_five_of_koshi_are_those_of_fts5(lived_in: tuple[Path, FakeClock, random.Random]) -> None:
    """A8: feedback lifts a memory into the answer from wherever it stood."""
    path, clock, chance = lived_in
    with kept.open(path, clock=clock, settings=UNHURRIED) as memory:
        context_of(memory).timer = lambda: 0.0  # recall considers less after slow answers, and the machine may be busy
        for _ in range(15):
            query = " ".join(chance.choices(WORDS, k=chance.randint(1, 5)))
            expected = by_fts5_itself(path, query, clock)
            best = sorted(expected.values(), reverse=True)[:5]
            found = [expected[hit.ref] for hit in memory.recall(query, profile="koshi", limit=5)]
            assert found == pytest.approx(best, rel=1e-5), query


@pytest.mark.parametrize("n_memories", [600, 1_900])
def test_a_kind_weight_that_a_person_set_lifts_a_memory_from_any_place(tmp_path: Path, n_memories: int) -> None:
    """Candidates are chosen by the weights in force, and not by the defaults."""
    settings = kept.Settings(recall_deadline_ms=60_000, kind_weights={"runbook": 5.0, "other": 1.0})
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=settings) as memory:
        memory.remember_many(
            Draft(content=f"Restart service n{number}x", kind="runbook" if number == 99 else "fact")
            for number in range(n_memories)
        )
        (best, *_) = memory.recall("restart service", limit=2)
    assert (best.memory.content, best.why["kind"]) == ("Restart service n99x", 5.0)


def test_a_factor_that_the_profile_leaves_out_does_not_choose_candidates(tmp_path: Path) -> None:
    """C14: in profile praxis a warning of little importance is a warning like any other."""
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=UNHURRIED) as memory:
        memory.remember_many(
            Draft(
                content=f"Restart service n{number}x",
                kind="warning" if number == 99 else "fact",
                importance=0.1 if number == 99 else 0.9,
            )
            for number in range(600)
        )
        (best, *_) = memory.recall("restart service", limit=2, profile="praxis")
    assert best.memory.content == "Restart service n99x"


def test_days_of_a_memory_count_from_its_last_hit(tmp_path: Path) -> None:
    """A8, A9: reinforced today is as good as written today."""
    clock = FakeClock()
    with kept.open(tmp_path / "m.db", clock=clock, settings=kept.Settings()) as memory:
        memory.remember("The cache is warmed at noon")
        clock.at += timedelta(days=50)
        assert memory.recall("cache", profile="koshi").hits[0].why["recency"] == pytest.approx(1 / 1.5)
        memory.reinforce(1)
        assert memory.recall("cache", profile="koshi").hits[0].why["recency"] == 1.0
