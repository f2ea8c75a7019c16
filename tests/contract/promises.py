"""What a storage promises: one function a promise, each given a `Bench` that can open the storage.

This file is the definition. A class that keeps every promise is a storage; one that breaks a
single one is not, and test_faults.py shows that each promise can be broken.
"""

import contextlib
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from math import prod
from typing import Any, Protocol

import pytest

from kept import bm25, journal, text, vectors, worth
from kept.errors import Busy, InvalidInput, NotFound, StorageError
from kept.model import (
    TRUSTS,
    Alias,
    Allowance,
    CallGuard,
    Conflict,
    Memory,
    Message,
    Pause,
    Rejection,
    SessionRecord,
    Source,
    TaskRecord,
    replace,
)
from kept.ports import (
    ANYWHERE,
    COMMON_HANDLE,
    Deadline,
    Period,
    Prepared,
    Ranking,
    Statistics,
    Storage,
    TooLate,
    VectorState,
    Where,
)
from kept.storage.shared import RECEIPTS_KEPT, prepare
from tests.builders import START, memory, stamp


class Bench(Protocol):
    """How a promise gets at the storage under test."""

    def open(self, space: str = "project/p1", *, write_wait_s: float = 30.0) -> Storage:
        """The storage of that space: the same data each time."""

    def reopen(self, storage: Storage) -> Storage:
        """Close it and open it again, as a new process would (in-memory: the same object)."""


def add(storage: Storage, content: str, **fields: Any) -> Memory:
    with storage.writing(stamp()) as tx:
        return tx.add(memory(content, space=storage.space, **fields), "remember")


def archived(m: Memory, reason: str) -> Memory:
    return replace(m, status="archived", reason=reason, archived_at=START)


def contents(found: list[Memory]) -> list[str]:
    return [m.content for m in found]


def found(storage: Storage, query: str, **where: Any) -> list[str]:
    with storage.reading() as reader:
        return [hit.memory.content for hit in reader.search(text.query_words(query), Where(**where), limit=50)]


class Oops(Exception):
    """What a test throws inside a transaction."""


# Rows ---------------------------------------------------------------------------------------------


def promise_what_is_added_is_there_as_it_was(bench: Bench) -> None:
    """A2, A4, C6: every field of a memory comes back as it went in, also after reopening."""
    original = memory(
        "Use Fastify, not Express",
        kind="decision",
        tier="session",
        scope="items",
        status="pinned",
        importance=0.9,
        confidence=0.75,
        feedback=-3,
        use_count=7,
        tags=("api", "web, mobile"),
        files=("src/a b.py", "docs/Ünïcode.md"),
        topic="framework",
        key="k-1",
        item_type="decision",
        title="Framework",
        superseded_by="018f0000-0000-7000-8000-000000000001",
        source=Source(
            origin="tool", agent="codex", session="s1", task="TASK-1", narrative="n1", file="docs/x.md", line=45
        ),
        data={"stage": "plan", "n": [1, 2.5, None, True], "nested": {"ä": "ö"}},
        last_hit_at=START + timedelta(microseconds=1),
        last_used_at=START + timedelta(days=1),
        verified_at=START + timedelta(days=2),
        archived_at=None,
    )
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        added = tx.add(original, "remember")
    assert added == replace(original, id=added.id)
    assert added.id > 0
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.get(Memory, added.id) == added


def promise_odd_text_comes_back_unchanged(bench: Bench) -> None:
    storage = bench.open()
    odd = [
        "'; drop table memories; --",
        '"quoted" \\ back',
        "名前は太郎です",
        "e\u0301 vs é",
        "\t tab\r\n line \x0b",
        "🧠👩‍💻",
        " pad ",
        "a \0 and \ue000, \ue0000 and \ue0001",
    ]
    ids = [add(storage, content).id for content in odd]
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert [reader.get(Memory, id).content for id in ids] == odd  # type: ignore[union-attr]


def promise_unknown_ids_are_none(bench: Bench) -> None:
    storage = bench.open()
    with storage.reading() as reader:
        assert reader.get(Memory, 1) is None
        assert reader.get(Conflict, 1) is None
        assert reader.select() == []
        assert reader.count() == 0


def promise_small_records_are_kept_too(bench: Bench) -> None:
    """C10, C13: conflicts and aliases are records like memories, each with ids of its own."""
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        conflict = tx.add(Conflict(left="u1", right="u2", type="contradictory", detected_at=START), "conflict")
        alias = tx.add(Alias(word="auth", expands_to=("login", "session")), "alias")
        gone = tx.add(Alias(word="db", expands_to=("database",)), "alias")
        pauses = [tx.add(Pause(session=session, since=START), "pause") for session in (None, "s1")]
        allowed = tx.add(Allowance(digest="ab" * 32, note="a test key"), "allow")
        guard = tx.add(CallGuard(memory="u1", since=START), "guard")
        passed = tx.put(replace(guard, mode="tell", overridden=2), "guard-lapse")
        words = ("deploy", "Fridays")
        rejected = tx.add(Rejection(memory="u1", fingerprint="ab" * 16, words=words, who="Ana", at=START), "forget")
        lifted = tx.add(Rejection(memory="u2", fingerprint="cd" * 16, who="Ana", at=START), "forget")
        tx.remove(lifted, "lift")
        task = tx.add(TaskRecord(name="TASK-001", blocked_by=("a", "b"), priority=1, created_at=START), "task")
        settled = tx.put(replace(conflict, resolved_at=START), "resolve")
        tx.remove(gone, "alias")
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.all(Conflict) == [settled]
        assert reader.all(Alias) == [alias]
        assert reader.all(Pause) == pauses
        assert reader.all(TaskRecord) == [task]
        assert reader.all(Allowance) == [allowed]
        assert reader.all(CallGuard) == [passed]
        assert reader.all(Rejection) == [rejected]
        assert [reader.get(noun, 1) for noun in (Conflict, Alias, Pause, Allowance)] == [
            settled,
            alias,
            pauses[0],
            allowed,
        ]


def promise_ids_are_never_given_twice(bench: Bench) -> None:
    """Agents read and type ids, so an id must never come to mean another memory."""
    storage = bench.open()
    first = add(storage, "first")
    second = add(storage, "second")
    with storage.writing(stamp()) as tx:
        tx.erase(second)
    storage = bench.reopen(storage)
    third = add(storage, "third")
    assert first.id < second.id < third.id


def promise_a_change_to_what_is_not_there_is_refused(bench: Bench) -> None:
    storage = bench.open()
    ghost = replace(memory("ghost"), id=99)
    for attempt in ("put", "erase"):
        with pytest.raises(NotFound), storage.writing(stamp()) as tx:
            getattr(tx, attempt)(ghost, "try")
    with pytest.raises(NotFound), storage.writing(stamp()) as tx:
        tx.remove(Alias(id=5, word="x", expands_to=()), "alias")


# Selecting ----------------------------------------------------------------------------------------


def promise_unpromoted_findings_can_be_left_to_their_own_session(bench: Bench) -> None:
    storage = bench.open()
    of_session = {"tier": "session", "status": "candidate", "source": Source(session="s1")}
    add(storage, "cache finding", **of_session)
    add(storage, "cache summary", **{**of_session, "kind": "summary"})
    add(storage, "cache pinned", **{**of_session, "status": "pinned"})
    add(storage, "cache promoted", **{**of_session, "tier": "project"})
    add(storage, "cache elsewhere", **{**of_session, "source": Source()})
    others = {"cache summary", "cache pinned", "cache promoted"}
    for session, own in (("s1", {"cache finding"}), ("s2", set()), ("", set())):
        with storage.reading() as reader:
            assert set(contents(reader.select(Where(seen_by=session)))) == others | own
        assert set(found(storage, "cache", seen_by=session)) == others | own


NOT_IN_DATA = (("room", "a"), ("seats", "1"), ("seats", True), ("open", 1), ("seat", 1), ("room' or 1=1 --", "b"))


def promise_select_finds_by_every_field(bench: Bench) -> None:
    storage = bench.open()
    wanted = add(
        storage,
        "wanted",
        kind="warning",
        tier="session",
        tags=("auth", "a,b", "ROS-Ü"),
        files=("src/x.py",),
        data={"room": "b", "seats": 1, "open": True, "ratio": 0.5, "it's": '"'},
        topic="t1",
        key="k1",
        source=Source(agent="codex", session="s1", task="T1", narrative="n1"),
        trust="user",
        at=START + timedelta(days=2),
    )
    add(storage, "other", tags=("auth2",), files=("src/x.pyc",))
    item = add(storage, "an item", scope="items")
    with storage.reading() as reader:
        for where in (
            Where(kinds=("warning", "nothing")),
            Where(tiers=("session",)),
            Where(tags=("nope", "auth")),
            Where(tags=("a,b",)),
            Where(tags_of_any_case=("nope", "AuTh")),
            Where(tags_of_any_case=("ros-Ü",)),
            Where(data=(("room", "b"),)),
            Where(data=(("room", "b"), ("seats", 1), ("open", True), ("ratio", 0.5))),
            Where(data=(("it's", '"'),)),
            Where(files=("src/x.py",)),
            Where(uid=wanted.uid),
            Where(ids=(wanted.id, 2**40)),
            Where(fingerprints=(wanted.fingerprint, "unknown")),
            Where(topic="t1"),
            Where(key="k1"),
            Where(session="s1"),
            Where(task="T1"),
            Where(agent="codex"),
            Where(trusts=("user", "tool")),
            Where(narrative="n1"),
            Where(since=START + timedelta(days=2)),
        ):
            assert reader.select(where) == [wanted], where
            assert reader.count(where) == 1, where
        assert contents(reader.select(Where(until=START + timedelta(days=2)))) == ["other"]
        assert len(reader.select(Where(seen_by="s2"))) == 2
        assert reader.select(Where(statuses=("pinned",))) == []
        assert reader.select(Where(scope="items")) == [item]
        assert reader.count(ANYWHERE) == 3
        assert reader.select(Where(tags=("auth' or 1=1 --", '"', "%"))) == []
        for nothing in (
            Where(tags_of_any_case=("ros-ü", "aut", "%")),  # only a to z are the same in every engine
            *(Where(data=((name, value),)) for name, value in NOT_IN_DATA),
        ):
            assert reader.select(nothing) == [], nothing


def promise_every_level_of_trust_is_stored_and_found(bench: Bench) -> None:
    storage = bench.open()
    for trust in TRUSTS:
        add(storage, f"said by {trust}", trust=trust)
    with bench.reopen(storage).reading() as reader:
        for trust in TRUSTS:
            assert [one.trust for one in reader.select(Where(trusts=(trust,)))] == [trust]


def promise_pages_cover_everything_once(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        for number in range(7):
            tx.add(memory(f"m{number}"), "remember")
    for oldest_first in (False, True):
        seen: list[str] = []
        after = None
        with storage.reading() as reader:
            while page := reader.select(limit=3, after=after, oldest_first=oldest_first):
                assert len(page) <= 3
                seen += contents(page)
                after = page[-1].id
        expected = [f"m{number}" for number in range(7)]
        assert seen == (expected if oldest_first else expected[::-1])
    with storage.reading() as reader:
        assert reader.select(limit=0) == []


def promise_a_limit_below_zero_is_refused(bench: Bench) -> None:
    storage = bench.open()
    with storage.reading() as reader:
        with pytest.raises(InvalidInput):
            reader.select(limit=-1)
        with pytest.raises(InvalidInput):
            reader.search(["x"], limit=-1)


# Searching ----------------------------------------------------------------------------------------


def promise_search_finds_words_in_every_column_best_first(bench: Bench) -> None:
    """A1, A3: one index over text, tags, files and source, always in step with the rows."""
    storage = bench.open()
    add(storage, "The login form posts to the auth middleware", tags=("security",))
    add(storage, "Auth middleware: never edit the auth middleware directly")
    add(storage, "Deploys run on Fridays", files=("ops/deploy.yml",), source=Source(origin="tool", agent="codex"))
    assert found(storage, "auth middleware") == [
        "Auth middleware: never edit the auth middleware directly",
        "The login form posts to the auth middleware",
    ]
    assert found(storage, "security") == ["The login form posts to the auth middleware"]
    assert found(storage, "deploy.yml") == ["Deploys run on Fridays"]
    assert found(storage, "codex") == ["Deploys run on Fridays"]
    assert found(storage, "kubernetes") == []
    with storage.reading() as reader:
        assert reader.search([], limit=5) == []
        assert len(reader.search(text.query_words("auth"), limit=1)) == 1


def promise_search_gives_the_tokens_that_were_indexed(bench: Bench) -> None:
    storage = bench.open()
    add(storage, "getUserById is slow", tags=("db",))
    with storage.reading() as reader:
        (hit,) = reader.search(text.query_words("slow"), limit=5)
    assert hit.prepared.words.split() == text.words("getUserById is slow")
    assert hit.prepared.tag_words.split() == text.words("db")
    assert hit.prepared.n_words == text.count_words("getUserById is slow")


def promise_search_heeds_the_filter_before_the_limit(bench: Bench) -> None:
    storage = bench.open()
    for number in range(5):
        add(storage, f"cache cache cache {number}")
    add(storage, "the cache is cold on Mondays, remember to warm it up", kind="warning")
    with storage.reading() as reader:
        (hit,) = reader.search(text.query_words("cache"), Where(kinds=("warning",)), limit=1)
    assert hit.memory.kind == "warning"


def promise_a_changed_memory_is_found_by_its_new_words_only(bench: Bench) -> None:
    storage = bench.open()
    old = add(storage, "We use Express", tags=("web",))
    with storage.writing(stamp()) as tx:
        tx.put(replace(old, content="We use Fastify", tags=("server",)), "revise")
    assert found(storage, "express") == found(storage, "web") == []
    assert found(storage, "fastify") == found(storage, "server") == ["We use Fastify"]
    storage = bench.reopen(storage)
    assert found(storage, "express") == []
    assert found(storage, "fastify") == ["We use Fastify"]


def promise_the_archive_is_searched_apart_and_the_forgotten_not_at_all(bench: Bench) -> None:
    """A15: what leaves goes to the archive, still searchable there; what is forgotten is in no search."""
    storage = bench.open()
    expired, gone, live = (add(storage, f"cache note {name}") for name in ("expired", "gone", "live"))
    with storage.writing(stamp()) as tx:
        tx.put(archived(expired, "expired"), "archive")
        tx.put(archived(gone, "forgotten"), "forget")
    storage = bench.reopen(storage)
    assert found(storage, "cache") == ["cache note live"]
    assert found(storage, "cache", shelf="archive") == ["cache note expired"]
    assert sorted(found(storage, "cache", shelf="any")) == ["cache note expired", "cache note live"]
    assert found(storage, "cache", shelf="forgotten") == []
    with storage.reading() as reader:
        assert contents(reader.select(Where(shelf="forgotten"))) == ["cache note gone"]
        assert contents(reader.select(Where(shelf="archive"))) == ["cache note expired"]
        assert reader.select() == [live]
    with storage.writing(stamp()) as tx:
        tx.put(expired, "restore")
        tx.put(gone, "restore")
    assert len(found(storage, "cache")) == 3
    assert found(storage, "cache", shelf="archive") == []


def promise_statistics_add_up_over_two_spaces(bench: Bench) -> None:
    ours, theirs = bench.open("project/p1"), bench.open("global")
    add(ours, "alpha beta beta")
    add(ours, "alpha gamma")
    add(theirs, "alpha delta")
    gone = add(theirs, "alpha forgotten text")
    old = add(theirs, "alpha archived")
    with theirs.writing(stamp()) as tx:
        tx.put(archived(gone, "forgotten"), "forget")
        tx.put(archived(old, "expired"), "archive")
    words = text.query_words("alpha beta delta nowhere")
    with ours.reading() as a, theirs.reading() as b:
        both = a.statistics(words) + b.statistics(words)
        assert b.statistics(words, Where(shelf="archive")).rows == 1
    assert (both.rows, both.words) == (3, 7)
    assert both.tokens >= both.words
    assert both.rows_with == dict(zip(words, (3, 1, 1, 0), strict=True))


def promise_statistics_follow_every_change(bench: Bench) -> None:
    storage = bench.open()
    first = add(storage, "alpha beta")
    second = add(storage, "alpha gamma delta")
    with storage.writing(stamp()) as tx:
        tx.put(replace(first, content="omega"), "revise")
        tx.erase(second)
    words = text.query_words("alpha omega")
    with bench.reopen(storage).reading() as reader:
        now = reader.statistics(words)
        (hit,) = reader.search(words, limit=5)
    assert now == Statistics(1, 1, hit.prepared.n_tokens, dict(zip(words, (0, 1), strict=True)))


def promise_the_newest_matches_can_be_had_without_ranking(bench: Bench) -> None:
    storage = bench.open()
    for number in range(4):
        add(storage, f"cache {'cache ' * (4 - number)}{number}")
    with storage.reading() as reader:
        newest = reader.search(text.query_words("cache"), limit=2, newest=True)
    assert [hit.memory.content[-1] for hit in newest] == ["3", "2"]


def promise_a_search_can_be_kept_to_the_newest_matches(bench: Bench) -> None:
    storage = bench.open()
    for number in range(5):
        add(storage, f"cache {'cache ' * (5 - number)}{number}")
        add(storage, f"something else {number}", kind="warning" if number < 2 else "fact")
    with storage.reading() as reader:
        found = reader.search(text.query_words("cache"), limit=2, among=3)
        kinds = reader.search(text.query_words("else"), Where(kinds=("warning",)), limit=5, among=1)
    assert [hit.memory.content[-1] for hit in found] == ["2", "3"]
    assert [hit.memory.content[-1] for hit in kinds] == ["1"]


def promise_a_search_ranks_by_what_a_memory_brings_along(bench: Bench) -> None:
    """A8, C14: so that the cut falls below the best scores, not below the best matches."""
    storage = bench.open()
    now = START + timedelta(days=200)
    plain = add(storage, "alpha 0")
    others = [
        add(storage, "alpha 1", feedback=3),
        add(storage, "alpha 2", feedback=-5),
        add(storage, "alpha 3", use_count=9),
        add(storage, "alpha 4", status="candidate"),
        add(storage, "alpha 5", status="pinned"),
        add(storage, "alpha 6", importance=0.9),
        add(storage, "alpha 7", kind="warning"),
        add(storage, "alpha 8", at=now - timedelta(days=3)),
        add(storage, "alpha 9", last_hit_at=now - timedelta(days=30)),
        add(storage, "alpha x", at=now + timedelta(days=3)),
    ]
    kind_weights = {"warning": 1.2, "other": 1.0}
    with bench.reopen(storage).reading() as reader:
        for factors in (*((name,) for name in worth.MEMORY_FACTORS), ("kind",), (*worth.MEMORY_FACTORS, "kind")):
            ranking = Ranking(factors=factors, kind_weights=kind_weights, now=now)
            found = reader.search(["alpha"], limit=50, ranking=ranking)
            ranks = {hit.memory.id: hit.rank for hit in found}
            for other in others:
                lift = prod(_weigh(name, other, ranking) / _weigh(name, plain, ranking) for name in factors)
                assert ranks[other.id] / ranks[plain.id] == pytest.approx(lift), (factors, other.content)
            assert list(ranks.values()) == sorted(ranks.values(), reverse=True)
        cut = reader.search(["alpha"], limit=1, ranking=Ranking(factors=("importance",), now=now))
    assert [hit.memory.content for hit in cut] == ["alpha 6"]


def promise_a_factor_lifts_a_memory_above_more_than_500_matches(bench: Bench) -> None:
    """A8, C14: also where an engine chooses among many without reading them all."""
    storage = bench.open()
    now = START + timedelta(days=200)
    brought: dict[str, dict[str, Any]] = {
        "feedback": {"feedback": 3},
        "recency": {"last_hit_at": now},
        "use": {"use_count": 9},
        "status": {"status": "pinned"},
        "importance": {"importance": 0.9},
        "kind": {"kind": "runbook"},
    }
    with storage.writing(stamp()) as tx:
        for name, fields in brought.items():
            tx.add(memory(f"alpha {name}", **fields), "remember")
        for number in range(600):
            tx.add(memory(f"alpha {number}"), "remember")
    with bench.reopen(storage).reading() as reader:
        for name in (*worth.MEMORY_FACTORS, "kind"):
            made_of = {"favour": "feedback", "freshness": "recency"}  # the same fields make both
            lifted = made_of.get(name, name)
            assert lifted in brought, f"Add a memory that the factor {name} lifts to this promise."
            ranking = Ranking(factors=(name,), kind_weights={"runbook": 5.0, "other": 1.0}, now=now)
            (best,) = reader.search(["alpha"], limit=1, ranking=ranking)
            assert best.memory.content == f"alpha {lifted}", f"storage/weights.py does not weigh the factor {name}"


def _weigh(name: str, m: Memory, ranking: Ranking) -> float:
    assert ranking.now is not None
    return ranking.kind_weights.get(m.kind, 1.0) if name == "kind" else worth.MEMORY_FACTORS[name](m, ranking.now)


def promise_a_search_ranks_by_all_that_was_asked(bench: Bench) -> None:
    """The words searched for may be a part of the question; which of the matches are the best, the whole decides."""
    storage = bench.open()
    for number in range(40):
        add(storage, f"alpha {'beta ' if number == 17 else ''}{'gamma ' if number % 2 else ''}{number}")
    with storage.reading() as reader:
        asked = ["alpha", "beta", "gamma"]
        match = bm25.match_of(asked, reader.statistics(asked))
        ranking = Ranking(match=match)
        found = reader.search(["alpha"], limit=3, ranking=ranking, also=["beta", "gamma"])
        assert found[0].memory.content == "alpha beta gamma 17"
        assert [hit.rank for hit in found] == pytest.approx([match(hit.prepared) for hit in found])
        assert not reader.search(["delta"], limit=3, ranking=ranking, also=["beta"]), "nothing is found by the others"


def promise_a_search_weighs_columns(bench: Bench) -> None:
    storage = bench.open()
    add(storage, "nothing here", tags=("alpha",))
    add(storage, "alpha here")
    with storage.reading() as reader:
        for columns, first in (((1.0, 9.0, 1.0, 1.0, 1.0), "nothing here"), ((9.0, 1.0, 1.0, 1.0, 1.0), "alpha here")):
            found = reader.search(["alpha"], limit=5, ranking=Ranking(columns=columns))
            assert found[0].memory.content == first


def promise_a_late_search_is_given_up(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        for number in range(300):
            tx.add(memory(f"common words everywhere {number}"), "remember")
    with storage.reading() as reader:
        with pytest.raises(TooLate):
            reader.search(text.query_words("common words everywhere"), limit=5, deadline=Deadline(lambda: 0.0, 0.0))
        assert reader.search(text.query_words("common"), limit=5, deadline=Deadline(lambda: 0.0))


def promise_what_may_be_about_the_same_thing_is_found_for_many_texts_at_once(bench: Bench) -> None:
    """C22, C23: candidates by shared long words, live ones of the same scope only, in step with every change."""
    storage = bench.open()
    pool = add(storage, "The connection pool closes idle sessions")
    longer = add(storage, "Idle sessions of the connection pool are closed after an hour")
    add(storage, "An item about the connection pool and its idle sessions", scope="items")
    gone = add(storage, "Idle sessions in the connection pool, once more")
    lone = add(storage, "Fastify")

    def alike(*texts: str, limit: int = 8) -> list[list[Memory]]:
        with storage.reading() as reader:
            return reader.alike([text.words(each) for each in texts], "memory", limit=limit)

    with storage.writing(stamp()) as tx:
        tx.put(replace(gone, status="archived", reason="forgotten"), "forget")
    assert alike("Fastify", "Connection pool: idle sessions stay open", "Nothing of the kind", "") == [
        [lone],
        [longer, pool],
        [],
        [],
    ]
    assert alike("Fastify serves every connection") == [[]]  # one of several handles is not enough
    assert alike("The connection pool closes idle sessions", limit=1) == [[pool]]
    with storage.writing(stamp()) as tx:
        revised = tx.put(replace(pool, content="Deploys run on Fridays"), "revise")
        tx.erase(longer)
        again = tx.add(memory("A pool of connections for idle sessions"), "remember")
        assert tx.alike([text.words("idle sessions of the pool")], "memory", limit=8) == [[again]]
    assert alike("idle sessions of the pool", "deploys on Fridays") == [[again], [revised]]
    with storage.writing(stamp()) as tx:
        crowd = [tx.add(memory(f"Caching layer variant{number}"), "remember") for number in range(COMMON_HANDLE + 1)]
    found = alike("caching layer", limit=100)[0]
    assert found == crowd[:0:-1]  # the newest ones of a crowd, and not the oldest


def promise_the_vocabulary_can_be_walked(bench: Bench) -> None:
    """C12: what an unfinished word could have meant."""
    storage = bench.open()
    add(storage, "kubernetes kubectl cluster")
    gone = add(storage, "kubeconfig")
    with storage.writing(stamp()) as tx:
        tx.put(archived(gone, "forgotten"), "forget")
    with storage.reading() as reader:
        words = set(reader.vocabulary("kube", limit=10))
        assert set(text.words("kubernetes kubectl")) <= words
        assert not words & set(text.words("kubeconfig"))
        assert all(word.startswith("kube") for word in words)
        assert len(reader.vocabulary("", limit=2)) == 2


def promise_the_index_gives_the_tokens_of_memories_back(bench: Bench) -> None:
    """C12: the same tokens as the memory has now, of every shelf; of those that exist."""
    storage = bench.open()
    kept_one, gone, changed = (add(storage, content) for content in ("kubectl apply", "kubeconfig", "helm upgrade"))
    with storage.writing(stamp()) as tx:
        gone = tx.put(archived(gone, "forgotten"), "forget")
        changed = tx.put(replace(changed, content="helm rollback", tags=("Deploy",)), "revise")
    with storage.reading() as reader:
        found = reader.prepared([kept_one.id, gone.id, changed.id, 999])
        assert reader.prepared([]) == {}
    assert found == {one.id: prepare(one) for one in (kept_one, gone, changed)}


# Transactions -------------------------------------------------------------------------------------


def promise_a_failed_transaction_leaves_nothing(bench: Bench) -> None:
    storage = bench.open()
    kept = add(storage, "kept words")
    with contextlib.suppress(Oops), storage.writing(stamp()) as tx:
        tx.add(memory("half a thought"), "remember")
        tx.put(replace(kept, content="changed words", status="pinned"), "revise")
        tx.add(Alias(word="a", expands_to=("b",)), "alias")
        raise Oops
    with contextlib.suppress(Oops), storage.writing(stamp()) as tx:
        tx.erase(kept)
        raise Oops
    for _ in range(2):
        with storage.reading() as reader:
            assert reader.select(ANYWHERE) == [kept]
            assert reader.all(Alias) == []
            assert len(reader.events()) == 1
            assert reader.events()[0].changed is not None
            assert reader.statistics(["half"]).rows_with == {"half": 0}
            assert not reader.is_erased(kept.fingerprint)
        assert found(storage, "kept") == ["kept words"]
        assert found(storage, "changed thought") == []
        storage = bench.reopen(storage)


def promise_an_error_inside_does_not_block_the_next_writer(bench: Bench) -> None:
    storage = bench.open(write_wait_s=5)
    with pytest.raises(Oops), storage.writing(stamp()):
        raise Oops
    assert add(storage, "afterwards").id > 0


def promise_a_transaction_sees_its_own_changes(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        one = tx.add(memory("one fish"), "remember")
        assert tx.get(Memory, one.id) == one
        assert tx.select(Where(fingerprints=(one.fingerprint,))) == [one]
        assert [hit.memory for hit in tx.search(text.query_words("fish"), limit=5)] == [one]
        tx.put(replace(one, content="two birds"), "revise")
        assert tx.search(text.query_words("fish"), limit=5) == []
        assert len(tx.events()) == 2


def promise_a_reader_holds_one_moment(bench: Bench) -> None:
    storage = bench.open()
    add(storage, "before")
    with storage.reading() as reader:
        assert reader.count() == 1
        done = threading.Thread(target=add, args=(storage, "meanwhile"))
        done.start()
        done.join(10)
        assert not done.is_alive(), "a reader made a writer wait"
        assert reader.count() == 1
        assert contents(reader.select()) == ["before"]
    with storage.reading() as reader:
        assert reader.count() == 2


def promise_a_reader_sees_nothing_of_an_open_transaction(bench: Bench) -> None:
    storage = bench.open()
    counts: list[int] = []

    def look() -> None:
        with storage.reading() as reader:
            counts.append(reader.count())

    with storage.writing(stamp()) as tx:
        tx.add(memory("not yet"), "remember")
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), "a writer made a reader wait"
    look()
    assert counts == [0, 1]


def promise_writers_take_turns(bench: Bench) -> None:
    storage = bench.open()
    workers = [
        threading.Thread(target=lambda n=n: [add(storage, f"w{n}-{i}") for i in range(5)])  # type: ignore[misc]
        for n in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    with storage.reading() as reader:
        memories = reader.select(limit=100)
        assert len({m.id for m in memories}) == len({m.content for m in memories}) == 20
        assert journal.broken_links(reader.events()) == []


def promise_a_writer_that_waits_too_long_is_told_so(bench: Bench) -> None:
    storage = bench.open(write_wait_s=0.05)
    errors: list[Exception] = []

    def second() -> None:
        try:
            add(storage, "second")
        except Busy as error:
            errors.append(error)

    with storage.writing(stamp()) as tx:
        tx.add(memory("first"), "remember")
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    assert len(errors) == 1
    assert add(storage, "third").id > 0
    with storage.reading() as reader:
        assert sorted(contents(reader.select())) == ["first", "third"]


def promise_a_closed_storage_says_so(bench: Bench) -> None:
    storage = bench.open()
    storage.close()
    storage.close()
    with pytest.raises(StorageError, match="closed"), storage.reading():
        pass
    with pytest.raises(StorageError, match="closed"), storage.writing(stamp()):
        pass


# Isolation ----------------------------------------------------------------------------------------


def promise_spaces_know_nothing_of_each_other(bench: Bench) -> None:
    """D1: nothing is read across the wall between two spaces."""
    ours, theirs = bench.open("project/p1"), bench.open("project/p2")
    mine = add(ours, "canary of the first")
    with theirs.reading() as reader:
        assert reader.space == "project/p2"
        assert reader.select(ANYWHERE) == []
        assert reader.get(Memory, mine.id) is None
        assert reader.events() == []
        assert reader.statistics(text.query_words("canary")).rows == 0
    assert found(theirs, "canary") == []
    yours = add(theirs, "canary of the second")
    with ours.writing(stamp()) as tx:
        tx.erase(mine)
    with theirs.reading() as reader:
        assert reader.select() == [yours]
        assert not reader.is_erased(mine.fingerprint)


# Journal ------------------------------------------------------------------------------------------


def promise_every_change_has_its_event(bench: Bench) -> None:
    """B1, B21, C30: the journal is in step with the rows; who, what, when, and what it was before."""
    storage = bench.open()
    with storage.writing(stamp("g1", actor="user")) as tx:
        m = tx.add(memory("one"), "remember")
        alias = tx.add(Alias(word="a", expands_to=("b",)), "alias")
    with storage.writing(stamp("g2", at=START + timedelta(hours=1))) as tx:
        tx.put(replace(m, content="two", feedback=3), "revise")
        tx.remove(alias, "alias")
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        events = reader.events()
        assert [(e.seq, e.group, e.actor, e.action, e.subject) for e in events] == [
            (1, "g1", "user", "remember", m.uid),
            (2, "g1", "user", "alias", "alias:a"),
            (3, "g2", "agent", "revise", m.uid),
            (4, "g2", "agent", "alias", "alias:a"),
        ]
        assert events[2].changed == {"content": ("one", "two"), "feedback": (0, 3)}
        assert events[0].changed is not None
        assert events[0].changed["content"] == (None, "one")
        assert events[3].changed is not None
        assert events[3].changed["word"] == ("a", None)
        assert events[2].at == START + timedelta(hours=1)
        assert journal.broken_links(events) == []
        assert [e.seq for e in reader.events(subject=m.uid)] == [1, 3]
        assert [e.seq for e in reader.events(group="g1")] == [1, 2]
        assert [e.seq for e in reader.events(after=2)] == [3, 4]
        assert [e.seq for e in reader.events(newest_first=True, limit=2)] == [4, 3]
        heads = reader.event_heads()
        assert heads == [(e.seq, e.group, e.at, e.actor, e.action, e.subject) for e in events]
        assert reader.event_heads(after=1, limit=2) == heads[1:3]
        assert reader.event_heads(later_than=START) == heads[2:]
        first, second = START.replace(minute=0), START.replace(minute=0) + timedelta(hours=1)
        later = [(second, "agent", "alias", 1), (second, "agent", "revise", 1)]
        assert reader.activity() == [(first, "user", "alias", 1), (first, "user", "remember", 1), *later]
        assert reader.activity(after=2) == later


def promise_what_happened_elsewhere_keeps_its_stamp(bench: Bench) -> None:
    """An import brings the changes of another journal under their own group, time and actor, in one transaction."""
    storage = bench.open()
    with storage.writing(stamp("import", at=START + timedelta(days=9), actor="user")) as tx:
        tx.restamp(stamp("g1", actor="agent", undoes="g0"))
        m = tx.add(memory("one"), "remember")
        tx.restamp(stamp("g2", at=START + timedelta(hours=1), actor="other"))
        assert tx.stamp.group == "g2"
        tx.put(replace(m, feedback=3), "reinforce")
    with bench.reopen(storage).reading() as reader:
        events = reader.events()
        assert [(e.group, e.at, e.actor, e.undoes) for e in events] == [
            ("g1", START, "agent", "g0"),
            ("g2", START + timedelta(hours=1), "other", None),
        ]
        assert journal.broken_links(events) == []


def promise_the_chain_notices_a_changed_event(bench: Bench) -> None:
    storage = bench.open()
    for number in range(3):
        add(storage, f"m{number}")
    with storage.reading() as reader:
        events = reader.events()
    assert journal.broken_links(events) == []
    assert journal.broken_links([events[0], replace(events[1], actor="mallory"), events[2]])
    assert journal.broken_links([events[0], events[2]])
    assert journal.broken_links([replace(events[0], changed={"content": (None, "x")}), *events[1:]])


def promise_a_group_can_be_taken_back_from_its_events(bench: Bench) -> None:
    """Undo: the journal holds enough to put every field back."""
    storage = bench.open()
    m = add(storage, "original", feedback=1, tags=("a",), source=Source(session="s1"))
    with storage.writing(stamp("oops")) as tx:
        tx.put(replace(m, content="changed", feedback=4, tags=(), source=Source(), status="pinned"), "revise")
    with bench.reopen(storage).reading() as reader:
        steps = journal.plan_undo(
            reader.events(group="oops"),
            current=lambda event: reader.get(Memory, m.id),
            later=lambda event: reader.events(subject=event.subject, after=event.seq),
            at=START,
        )
    assert [step.record for step in steps] == [m]


def promise_a_group_that_replaced_a_record_gives_the_old_one_back(bench: Bench) -> None:
    """Removed and added again under another id: the new one goes, whatever became of the word in between."""
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        old = tx.add(Alias(word="db", expands_to=("database",)), "alias")
    with storage.writing(stamp("oops")) as tx:
        tx.remove(old, "alias")
        for _ in range(2):
            new = tx.add(Alias(word="db", expands_to=("dashboard",)), "alias")
            tx.remove(new, "alias")
        new = tx.add(Alias(word="db", expands_to=("dashboard",)), "alias")
    with storage.writing(stamp("undo")) as tx:
        steps = journal.plan_undo(
            tx.events(group="oops"),
            current=lambda event: next(iter(tx.all(Alias)), None),
            later=lambda event: tx.events(subject=event.subject, after=event.seq),
            at=START,
        )
        assert [(step.id, step.record, step.is_new) for step in steps] == [(new.id, None, False), (old.id, old, True)]
        tx.remove(new, "undo")
        tx.add(old, "undo")
    with bench.reopen(storage).reading() as reader:
        assert reader.all(Alias) == [old]


def promise_a_space_can_be_carried_over_as_it_is(bench: Bench) -> None:
    """Records with their ids, the journal with its seals, messages, and what was erased: another storage goes on."""
    ours, theirs = bench.open("project/p1"), bench.open("project/p2")
    first, gone = add(ours, "harbor first", use_count=4), add(ours, "harbor gone")
    with ours.writing(stamp("g2", actor="user")) as tx:
        tx.erase(gone)
        alias = tx.add(Alias(word="a", expands_to=("b",)), "alias")
        tx.append([said(1, "harbor talk"), said(1, "old harbor talk", "s2")])
        tx.pack("s2")
    with ours.reading() as reader, theirs.writing(stamp()) as tx:
        tx.carry(records=[first], events=reader.events(limit=2))
        tx.carry(records=[alias], events=reader.events(after=2))
        tx.carry(messages=[*reader.messages("s1"), *reader.messages("s2")])
        tx.lay(reader.foundation())
    theirs = bench.reopen(theirs)
    added = add(theirs, "harbor afterwards")
    with ours.reading() as before, theirs.reading() as after:
        assert after.select() == [added, replace(first, space="project/p2")]
        assert after.events()[:-1] == before.events()
        assert journal.broken_links(after.events()) == []
        assert after.all(Alias) == [alias]
        assert after.is_erased(gone.fingerprint)
        assert added.id > gone.id
        assert after.messages("s2") == before.messages("s2")
        assert [hit.message.session for hit in after.search_messages(["harbor"], limit=5)] == ["s1"]
        assert {hit.memory.id for hit in after.search(["harbor"], limit=5)} == {first.id, added.id}
        assert after.foundation().packed == before.foundation().packed == ("s2",)


# Erasing ------------------------------------------------------------------------------------------


def promise_erasing_leaves_only_the_fact(bench: Bench) -> None:
    storage = bench.open()
    secret = add(storage, "the launch code is swordfish", tags=("xyzzy",))
    bystander = add(storage, "an innocent bystander")
    with storage.writing(stamp()) as tx:
        secret = tx.put(replace(secret, content="the launch code is plugh"), "revise")
        tx.add(Conflict(left=secret.uid, right=bystander.uid, type="ambiguous", detected_at=START), "conflict")
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.link([secret.id, bystander.id], START)
    with storage.writing(stamp("the end")) as tx:
        tx.erase(secret)
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.get(Memory, secret.id) is None
        assert reader.select(ANYWHERE) == [bystander]
        assert reader.all(Conflict) == []
        events = reader.events()
        assert [e.changed is None for e in events] == [True, False, True, True, False]
        assert (events[-1].action, events[-1].subject, events[-1].group) == ("erase", secret.uid, "the end")
        assert journal.broken_links(events) == []
        assert reader.is_erased(secret.fingerprint)
        assert not reader.is_erased(bystander.fingerprint)
        assert reader.statistics(text.query_words("launch swordfish plugh")).rows == 1
        assert reader.links(bystander.id) == []
    for word in ("launch", "swordfish", "plugh", "xyzzy"):
        for shelf in ("live", "archive", "any"):
            assert found(storage, word, shelf=shelf) == []


# Conversations ------------------------------------------------------------------------------------


def said(n: int, content: str, session: str = "s1", **fields: Any) -> Message:
    return Message(id=f"m{n}", role=fields.pop("role", "user"), session=session, content=content, **fields)


def promise_a_transcript_is_what_was_said(bench: Bench) -> None:
    """B3, B21: messages come back as they were said, in order, also after reopening."""
    storage = bench.open()
    call = Message(
        id="t1", role="tool_call", session="s1", name="read", input={"path": "a/b", "n": [1, None]}, at=START
    )
    with storage.writing(stamp()) as tx:
        added = tx.append([said(1, "Hello", at=START, speaker="Ann"), call])
        other = tx.append([said(1, "Elsewhere", "s2")])
        added += tx.append(
            [
                Message(id="t1", role="tool_result", session="s1", content="# Title", is_error=True),
                said(2, "ünïcödé 名前", trust="unknown"),
            ]
        )
    assert [message.n for message in added] == [1, 2, 3, 4]
    assert [message.trust for message in added] == ["user", "agent", "tool", "unknown"]
    assert [message.n for message in other] == [1]
    assert added[1] == replace(call, n=2)
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.messages("s1") == added
        assert reader.messages("s1", after=2, limit=1) == added[2:3]
        assert reader.messages("nowhere") == []
        assert (reader.last_number("s1"), reader.last_number("nowhere")) == (4, 0)
        assert [found.message for found in reader.messages_at([("s1", 2), ("s1", 99), ("s2", 1)])] == [added[1], *other]
        assert reader.events() == []


def promise_a_fork_shares_messages_with_its_parent(bench: Bench) -> None:
    """C25: the first messages of a fork are stored once, also when either is packed; each goes on by itself."""
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        for name, parent, shared in (("s1", None, 0), ("s2", "s1", 2), ("s3", "s2", 3)):
            tx.add(SessionRecord(name=name, parent=parent, shared=shared, started_at=START), "session")
        tx.append([said(1, "harbor one"), said(2, "harbor two"), said(3, "harbor three")])
        assert [one.n for one in tx.append([said(2, "harbor two", "s2"), said(3, "harbor pier", "s2")])] == [3]
        assert [one.n for one in tx.append([said(1, "harbor one", "s3"), said(4, "harbor gate", "s3")])] == [4]
    storage = bench.reopen(storage)

    def told(session: str, **page: int) -> list[str]:
        with storage.reading() as reader:
            assert [one.session for one in reader.messages(session)] == [session] * reader.last_number(session)
            return [one.content.removeprefix("harbor ") for one in reader.messages(session, **page)]

    for _ in ("as rows", "packed"):
        assert told("s1") == ["one", "two", "three"]
        assert told("s2") == ["one", "two", "pier"]
        assert told("s3") == ["one", "two", "pier", "gate"]
        assert (told("s3", after=1, limit=2), told("s3", after=3), told("s3", limit=1)) == (
            ["two", "pier"],
            ["gate"],
            ["one"],
        )
        with storage.reading() as reader:
            found = reader.search_messages(["harbor"], limit=20)
        assert len(found) in (0, 5), "each message is found once"
        with storage.writing(stamp()) as tx:
            for name in ("s1", "s2", "s3"):
                tx.pack(name)
            assert tx.append([said(1, "harbor one", "s3"), said(2, "harbor two", "s2")]) == []
    with storage.writing(stamp()) as tx:
        assert tx.erase_messages("s3", ["m2", "m4"]) == 2
    assert told("s1") == ["one", "[erased]", "three"]
    assert told("s3") == ["one", "[erased]", "pier", "[erased]"]


def promise_a_fork_outlives_its_parent(bench: Bench) -> None:
    """When a session is erased, its forks keep blanks; a later session of that name is no part of them."""
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        for name, parent, shared in (("s1", None, 0), ("s2", "s1", 2), ("s3", "s2", 3), ("s4", "s1", 1)):
            tx.add(SessionRecord(name=name, parent=parent, shared=shared, started_at=START), "session")
        tx.append([said(1, "harbor one"), said(2, "harbor two")])
        tx.append([said(3, "harbor pier", "s2")])
        tx.append([said(4, "harbor gate", "s3")])
        tx.append([said(5, "harbor quay", "s4")])
        tx.pack("s3")
    storage = bench.reopen(storage)

    def erase(session: str) -> None:
        with storage.writing(stamp()) as tx:
            tx.erase_messages(session)
            [record] = [one for one in tx.all(SessionRecord) if one.name == session]
            tx.erase(record)
        with storage.writing(stamp()) as tx:
            tx.add(SessionRecord(name=session, started_at=START), "session")
            tx.append([said(9, "something else", session)])

    def told(session: str) -> list[str]:
        with storage.reading() as reader:
            messages = reader.messages(session)
            assert [one.n for one in messages] == [*range(1, reader.last_number(session) + 1)]
            assert {one.session for one in messages} == {session}
            return [one.content.removeprefix("harbor ") for one in messages]

    erase("s2")
    assert told("s1") == ["one", "two"]
    assert told("s3") == ["one", "two", "[erased]", "gate"]
    erase("s1")
    assert told("s3") == ["[erased]", "[erased]", "[erased]", "gate"]
    assert told("s4") == ["[erased]", "quay"]
    assert (told("s1"), told("s2")) == (["something else"], ["something else"])
    with storage.writing(stamp()) as tx:
        assert tx.append([said(1, "harbor one", "s3"), said(1, "harbor one", "s4")]) == []
        assert [one.n for one in tx.append([said(6, "harbor buoy", "s3")])] == [5]


def promise_a_message_is_added_once(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        tx.append([said(1, "once")])
        assert tx.append([said(1, "once"), said(2, "new")]) == [replace(said(2, "new"), n=2)]
        assert tx.append([said(1, "once", role="assistant")])[0].n == 3


def promise_a_message_without_an_id_is_given_a_free_one(bench: Bench) -> None:
    """B3: such a message is never known already, neither by the ids before it nor by those beside it."""
    storage = bench.open()

    def nameless(content: str, session: str = "s1") -> Message:
        return Message(id="", role="user", session=session, content=content)

    with storage.writing(stamp()) as tx:
        tx.append([said(1, "once")])
        added = tx.append([said(1, "once"), nameless("same"), nameless("same"), nameless("first", "s2")])
        assert [(one.session, one.n, one.id) for one in added] == [
            ("s1", 2, "msg_002"),
            ("s1", 3, "msg_003"),
            ("s2", 1, "msg_001"),
        ]
        taken = replace(nameless("of another's choice"), id="msg_004", role="assistant")
        added = tx.append([nameless("beside it"), taken, nameless("behind it")])
        assert [(one.n, one.id) for one in added] == [(4, "msg_005"), (5, "msg_004"), (6, "msg_006")]
        tx.pack("s1")
    with bench.reopen(storage).writing(stamp()) as tx:
        (late,) = tx.append([nameless("same")])
        assert (late.n, late.id) == (7, "msg_007")
        assert tx.messages("s1")[-1] == late


def promise_messages_are_searched_within_a_period(bench: Bench) -> None:
    """B17: from `since` on, and before `until`; filters come before the limit, and what has no time is in no period."""
    storage = bench.open()
    days = [START + timedelta(days=n) for n in range(5)]
    with storage.writing(stamp()) as tx:
        tx.append([said(n, "harbor", at=at) for n, at in enumerate(days)])
        tx.append([said(8, "harbor"), said(9, "harbor", "s2", at=days[2].astimezone(timezone(timedelta(hours=-9))))])
    words = text.query_words("harbor")

    def within(limit: int = 9, session: str | None = None, **period: datetime) -> set[str]:
        with storage.reading() as reader:
            found = reader.search_messages(words, limit=limit, session=session, period=Period(**period))
        return {hit.message.id for hit in found}

    assert within(since=days[2]) == {"m2", "m3", "m4", "m9"}
    assert within(until=days[2]) == {"m0", "m1"}
    assert within(since=days[1], until=days[3]) == {"m1", "m2", "m9"}
    assert within(since=days[1], until=days[3], session="s1") == {"m1", "m2"}
    assert within(until=days[1], limit=1) == {"m0"}
    assert len(within()) == 7


def promise_messages_are_searched_apart_from_memories(bench: Bench) -> None:
    """B17: the scope `sessions`."""
    storage = bench.open()
    add(storage, "a memory of the harbor")
    with storage.writing(stamp()) as tx:
        tx.append([said(1, "we walked to the harbor, to the harbor"), said(2, "harbor, you say?", "s2"), said(3, "no")])
    words = text.query_words("harbor")
    with bench.reopen(storage).reading() as reader:
        found = reader.search_messages(words, limit=5)
        assert {hit.message.id for hit in found} == {"m1", "m2"}
        assert all("harbor" in hit.words.split() for hit in found)
        assert [hit.message.id for hit in reader.search_messages(words, limit=5, session="s2")] == ["m2"]
        assert reader.search_messages([], limit=5) == []
        statistics = reader.message_statistics(words)
        assert (statistics.rows, statistics.rows_with) == (3, {words[0]: 2})
        assert reader.statistics(words).rows == 1


def promise_messages_are_ranked_by_the_same_rule_everywhere(bench: Bench) -> None:
    """B17: best BM25 first; of equals the latest, then the one in the last session by name, then the last number."""
    storage = bench.open()
    lines = [
        said(1, "harbor", at=START),
        said(2, "a harbor and a lighthouse, far away from the city where nobody has ever seen a ship come home"),
        said(3, "harbor, harbor, harbor"),
        said(4, "harbor", at=START + timedelta(days=1)),
        said(5, "the lighthouse"),
        said(6, "nothing of the kind"),
        *(said(number, "some other words entirely") for number in range(20, 40)),
    ]
    with storage.writing(stamp()) as tx:
        tx.append(lines)
        tx.append([said(7, "harbor", "s2", at=START), said(8, "harbor", "s2", at=START), said(9, "harbor", "s2")])
    words = text.query_words("harbor lighthouse")
    with bench.reopen(storage).reading() as reader:
        found = reader.search_messages(words, limit=20)
        match = bm25.match_of(words, reader.message_statistics(words), by_tokens=True)
        ranks = [match(Prepared(hit.words, "", "", "", "", hit.n_words, hit.n_words)) for hit in found]
        best = reader.search_messages(words, limit=3)
    assert ranks == sorted(ranks, reverse=True)
    assert [hit.message.id for hit in found] == ["m5", "m3", "m4", "m8", "m7", "m1", "m9", "m2"]
    assert best == found[:3]


def promise_many_changes_at_once_are_as_one_after_the_other(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        added = [tx.add(memory(f"the harbor number {n}", importance=n / 300), "remember") for n in range(250)]
    changed = [
        replace(one, status="archived", reason="expired", archived_at=START)
        if one.id % 3
        else replace(one, content=f"the pier number {one.id}", title="renamed" if one.id % 2 else None, feedback=3)
        for one in added
    ]
    with storage.writing(stamp("many")) as tx:
        tx.put_many(changed, "change")
        tx.put_many([], "change")
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert [reader.get(Memory, one.id) for one in added] == changed
        events = reader.events(group="many")
        assert [(event.action, event.subject) for event in events] == [("change", one.uid) for one in added]
        assert journal.broken_links(reader.events()) == []
        assert len(reader.search(["harbor"], limit=300)) == 0
        assert len(reader.search(["pier"], limit=300)) == 83
        assert len(reader.search(["harbor"], Where(shelf="archive"), limit=300)) == 167
    with storage.writing(stamp()) as tx, pytest.raises(NotFound):
        tx.put_many([replace(added[0], id=9_999)], "change")


def promise_a_packed_session_can_be_read_but_is_not_searched(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        kept = tx.append([said(1, "old harbor talk"), said(2, "more talk")])
        assert tx.pack("s1") == 2
        assert tx.pack("nowhere") == 0
    storage = bench.reopen(storage)
    words = text.query_words("harbor")
    with storage.reading() as reader:
        assert reader.messages("s1") == kept
        assert reader.last_number("s1") == 2
        assert reader.search_messages(words, limit=5) == []
        assert reader.message_statistics(words).rows == 0
    with storage.writing(stamp()) as tx:
        assert tx.unpack("s1") == 2
    with storage.reading() as reader:
        assert reader.messages("s1") == kept
        assert len(reader.search_messages(words, limit=5)) == 1


def promise_a_packed_session_that_goes_on_is_unpacked_and_loses_nothing(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        kept = tx.append([said(1, "old harbor talk"), said(2, "more talk")])
        tx.pack("s1")
        assert tx.append([said(1, "old harbor talk")]) == []
    words = text.query_words("harbor")
    with storage.reading() as reader:
        assert reader.search_messages(words, limit=5) == [], "nothing new was said, so it stays packed"
    with storage.writing(stamp()) as tx:
        (added,) = tx.append([said(3, "new harbor talk")])
    storage = bench.reopen(storage)
    with storage.writing(stamp()) as tx:
        assert added.n == 3
        assert tx.messages("s1") == [*kept, added]
        assert len(tx.search_messages(words, limit=5)) == 2
        assert tx.pack("s1") == 3
        assert tx.messages("s1") == [*kept, added]


def promise_messages_can_be_erased(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        tx.append([said(1, "swordfish"), said(2, "harmless"), said(1, "elsewhere", "s2")])
        tx.pack("s2")
    with storage.writing(stamp()) as tx:
        assert tx.erase_messages("s1", ["m1"]) == 1
        assert tx.erase_messages("s2") == 1
    with bench.reopen(storage).reading() as reader:
        assert [(message.id, message.content) for message in reader.messages("s1")] == [
            ("m1", "[erased]"),
            ("m2", "harmless"),
        ]
        assert reader.messages("s2") == []
        assert reader.search_messages(text.query_words("swordfish elsewhere"), limit=5) == []


def promise_a_part_of_a_message_can_be_erased(bench: Bench) -> None:
    """Also in a packed session. The message keeps its place; the words are gone from the index, receipts go."""
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        tx.append([said(1, "swordfish is the word"), said(2, "harmless"), said(1, "swordfish again", "s2")])
        tx.pack("s2")
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.save_receipt({"query": "swordfish"}, ["s1#1"], START)
    with storage.writing(stamp()) as tx:
        changed = [replace(tx.messages(name)[0], content="[erased]!") for name in ("s1", "s2")]
        assert tx.rewrite([*changed, replace(changed[0], n=99)]) == 2
    with bench.reopen(storage).reading() as reader:
        assert [message.content for message in reader.messages("s1")] == ["[erased]!", "harmless"]
        assert [message.content for message in reader.messages("s2")] == ["[erased]!"]
        assert reader.search_messages(["swordfish"], limit=5) == []
        assert reader.search_messages(["harmless"], limit=5)
        assert reader.receipt() is None


def promise_any_record_can_be_erased_with_its_history(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        task = tx.add(TaskRecord(name="T-1", description="swordfish", created_at=START), "task")
        task = tx.put(replace(task, description="swordfish twice"), "task")
        session = tx.add(SessionRecord(name="s1", summary="swordfish", started_at=START), "session")
    with storage.writing(stamp()) as tx:
        tx.erase(task)
        tx.erase(session)
        again = tx.add(replace(task, description="harmless"), "redact")
        with pytest.raises(NotFound):
            tx.erase(session)
    with bench.reopen(storage).reading() as reader:
        assert reader.all(TaskRecord) == [again]
        assert reader.all(SessionRecord) == []
        events = reader.events()
        assert "swordfish" not in repr(events)
        assert journal.broken_links(events) == []


def promise_what_was_buried_is_known_to_be_erased(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        tx.bury(["s1#m1#user", "s1#m1#user"])
    with bench.reopen(storage).reading() as reader:
        assert reader.is_erased("s1#m1#user")
        assert not reader.is_erased("s1#m2#user")


def promise_a_session_is_found_by_its_name(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        added = tx.add(SessionRecord(name="s1", agent="codex", parent="s0", started_at=START), "session")
        changed = tx.put(replace(added, checked=10, summary="What was done."), "checkpoint")
    with bench.reopen(storage).reading() as reader:
        assert reader.session("s1") == changed
        assert reader.session("s2") is None


# Vectors ------------------------------------------------------------------------------------------

DIRECTIONS = ((1.0, 0.0, 0.0, 0.1), (0.9, 0.4, 0.0, 0.1), (0.0, 1.0, 0.2, 0.0), (-1.0, 0.0, 0.0, 0.2))


def direction(*numbers: float) -> bytes:
    """A vector that points this way; repeated, so that its signs fill whole bytes."""
    return vectors.pack([numbers * 4])[0]


def give_vectors(storage: Storage, memories: list[Memory], *, model: str = "m1") -> None:
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.save_vectors(model, [(m, direction(*way)) for m, way in zip(memories, DIRECTIONS, strict=False)])


def choose_model(storage: Storage, model: str | None) -> None:
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.choose_model(model)


def nearest(storage: Storage, *way: float, limit: int = 10, **where: Any) -> list[str]:
    with storage.reading() as reader:
        return [found.memory.content for found in reader.nearest(direction(*way), Where(**where), limit=limit)]


def promise_the_nearest_vectors_come_first(bench: Bench) -> None:
    """B16: by cosine, best first, within what is asked for, also after reopening."""
    storage = bench.open()
    kinds = ("fact", "warning", "fact", "fact")
    memories = [add(storage, f"memory {n}", kind=kind) for n, kind in enumerate(kinds)]
    choose_model(storage, "m1")
    give_vectors(storage, memories)
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        hits = reader.nearest(direction(1.0, 0.1, 0.0, 0.1), limit=3)
        assert [hit.memory for hit in hits] == memories[:3]
        assert [hit.rank for hit in hits] == sorted((hit.rank for hit in hits), reverse=True)
        assert hits[0].rank == pytest.approx(0.995, abs=0.002)
        assert hits[0].prepared.words == " ".join(text.words("memory 0"))
        assert reader.vectors([memories[1].id, 99]) == {memories[1].id: direction(*DIRECTIONS[1])}
        with pytest.raises(InvalidInput):
            reader.nearest(direction(1.0, 0.0, 0.0, 0.0), limit=-1)
    assert nearest(storage, *DIRECTIONS[0], kinds=("warning",), limit=1) == ["memory 1"]


def promise_a_vector_counts_for_the_text_it_was_made_of(bench: Bench) -> None:
    """A revised memory waits for a new vector; taken back, for one again; and one that comes too late is not kept."""
    storage = bench.open()
    first, second = add(storage, "first"), add(storage, "second")
    with storage.reading() as reader:
        assert (reader.vector_state(), reader.vectorless(limit=9)) == (VectorState(), [])
    choose_model(storage, "m1")
    give_vectors(storage, [first])
    with storage.reading() as reader:
        assert reader.vector_state() == VectorState("m1", done=1, pending=1)
        assert reader.vectorless(limit=9) == [second]
    revised = replace(first, content="other words", fingerprint=text.fingerprint("other words"))
    with storage.writing(stamp()) as tx:
        tx.put(revised, "revise")
    give_vectors(storage, [first, second])
    third = add(storage, "third")
    with storage.reading() as reader:
        assert reader.vectorless(limit=9) == [revised, third]
        assert reader.vectorless(limit=1) == [revised]
        assert reader.vectors([first.id]) == {}
    assert nearest(storage, *DIRECTIONS[0]) == ["second"]
    give_vectors(storage, [revised, second, third])
    assert nearest(storage, *DIRECTIONS[0]) == ["other words", "second", "third"]


def promise_vectors_of_two_models_never_meet(bench: Bench) -> None:
    """B16: after a change of the model everything waits; vectors of another model are neither kept nor compared."""
    storage = bench.open()
    memories = [add(storage, f"memory {n}") for n in range(2)]
    choose_model(storage, "m1")
    give_vectors(storage, memories)
    choose_model(storage, "m2")
    give_vectors(storage, memories[:1], model="m1")
    with storage.reading() as reader:
        assert reader.vector_state() == VectorState("m2", done=0, pending=2)
        assert reader.vectors([m.id for m in memories]) == {}
    assert nearest(storage, *DIRECTIONS[0]) == []
    give_vectors(storage, memories[:1], model="m2")
    assert nearest(storage, *DIRECTIONS[0]) == ["memory 0"]
    choose_model(storage, None)
    add(storage, "memory 2")
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.vector_state() == VectorState()
        assert reader.vectorless(limit=9) == []
    assert nearest(storage, *DIRECTIONS[0]) == []


def promise_vectors_follow_their_memory(bench: Bench) -> None:
    """The archive is apart, the forgotten and the erased are not found, and the restored are found again."""
    storage = bench.open()
    memories = [add(storage, f"memory {n}") for n in range(4)]
    choose_model(storage, "m1")
    give_vectors(storage, memories)
    with storage.writing(stamp()) as tx:
        tx.put(archived(memories[0], "expired"), "archive")
        tx.put(archived(memories[1], "forgotten"), "forget")
        tx.erase(memories[2])
    everywhere = [nearest(storage, *DIRECTIONS[0], shelf=shelf) for shelf in ("live", "archive", "forgotten", "any")]
    assert everywhere == [["memory 3"], ["memory 0"], [], ["memory 0", "memory 3"]]
    with storage.writing(stamp()) as tx:
        tx.put(memories[1], "restore")
    assert nearest(storage, *DIRECTIONS[0]) == ["memory 1", "memory 3"]
    with storage.reading() as reader:
        assert reader.vectors([m.id for m in memories]).keys() == {memories[n].id for n in (0, 1, 3)}
        assert reader.vector_state() == VectorState("m1", done=3, pending=0)


# Bookkeeping --------------------------------------------------------------------------------------


def promise_usage_is_noted_outside_the_journal(bench: Bench) -> None:
    """A18: co-recalled memories are linked and the link grows."""
    storage = bench.open()
    a, b, c = (add(storage, name) for name in "abc")
    later = START + timedelta(hours=5)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([a.id, b.id, 999], later)
        notes.link([b.id, a.id], START)
        notes.link([a.id, b.id, c.id], later)
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.get(Memory, a.id) == replace(a, use_count=1, last_used_at=later)
        assert reader.get(Memory, c.id) == c
        assert len(reader.events()) == 3
        assert reader.links(a.id) == [(b.id, 2.0, later), (c.id, 1.0, later)]
        assert reader.links(c.id) == [(a.id, 1.0, later), (b.id, 1.0, later)]


def promise_receipts_are_kept_and_go_with_what_they_speak_of(bench: Bench) -> None:
    storage = bench.open()
    secret, other = add(storage, "secret"), add(storage, "other")
    with storage.reading() as reader:
        assert reader.receipt() is None
    with storage.bookkeeping() as notes:
        assert notes is not None
        first = notes.save_receipt({"query": "swordfish", "hits": [{"ref": "1"}]}, [secret.uid, other.uid], START)
        second = notes.save_receipt({"query": "other"}, [other.uid], START + timedelta(hours=1))
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.receipt(first) == (first, START, {"query": "swordfish", "hits": [{"ref": "1"}]})
        assert reader.receipt() == (second, START + timedelta(hours=1), {"query": "other"})
    with storage.writing(stamp()) as tx:
        tx.erase(secret)
    with storage.reading() as reader:
        assert reader.receipt(first) is None
        assert reader.receipt(second) is not None


def promise_receipts_of_what_a_session_was_given_are_found_by_it_and_kept_for_a_month(bench: Bench) -> None:
    storage = bench.open()
    told = add(storage, "told")
    with storage.bookkeeping() as notes:
        assert notes is not None
        first = notes.save_receipt({"block": "one"}, [told.uid], START, session="s1")
        second = notes.save_receipt({"block": "two"}, [], START, session="s1")
        notes.save_receipt({"block": "other"}, [], START, session="s2")
        plain = notes.save_receipt({"query": "asked"}, [], START)
    for days, left in ((20, [second, first]), (31, [])):
        with storage.bookkeeping() as notes:
            assert notes is not None
            for _ in range(RECEIPTS_KEPT):
                notes.save_receipt({"query": "later"}, [], START + timedelta(days=days))
        storage = bench.reopen(storage)
        with storage.reading() as reader:
            assert [number for number, _, _ in reader.receipts_of("s1", limit=10)] == left
            assert reader.sessions_told(limit=10) == (["s2", "s1"] if left else []), "the last one first"
            assert reader.receipt(plain) is None
    with storage.reading() as reader:
        assert reader.receipts_of("s2", limit=10) == []
        newest, before, *_ = [number for number, _, _ in reader.receipts_of(None, limit=10)]
        assert newest > before, "of all, the newest first"


def promise_receipts_can_be_erased_by_their_numbers(bench: Bench) -> None:
    storage = bench.open()
    with storage.bookkeeping() as notes:
        assert notes is not None
        saved = [notes.save_receipt({"query": word}, [], START) for word in ("swordfish", "other", "tuna")]
    with storage.writing(stamp()) as tx:
        tx.erase_receipts([saved[0], 999])
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert [number for number, _, _ in reader.receipts_of(None, limit=10)] == [saved[2], saved[1]]
    with storage.writing(stamp()) as tx:
        tx.erase_receipts()
    with storage.reading() as reader:
        assert reader.receipt() is None


def promise_receipts_go_with_a_memory_of_another_space(bench: Bench) -> None:
    storage = bench.open()
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.save_receipt({"block": "one"}, ["uid-of-a-global-one"], START, session="s1")
        kept = notes.save_receipt({"block": "two"}, ["another"], START, session="s1")
        assert notes.drop_receipts(["uid-of-a-global-one", "unknown"]) == 1
    with storage.reading() as reader:
        assert [number for number, _, _ in reader.receipts_of("s1", limit=10)] == [kept]


def promise_a_reader_takes_no_notes_while_a_space_is_being_moved_here(bench: Bench) -> None:
    storage = bench.open()
    first = add(storage, "one")
    mover = replace(stamp(), passes_fence=True)
    for is_moving in (True, False):
        with storage.writing(mover) as tx:
            tx.note_file("move", "half" if is_moving else None)
        with storage.bookkeeping() as notes:
            assert (notes is None) is is_moving
        with storage.bookkeeping(passes_fence=True) as notes:
            assert notes is not None
            notes.count_uses([first.id], START)
    with bench.reopen(storage).reading() as reader:
        found = reader.get(Memory, first.id)
        assert found is not None
        assert found.use_count == 2


def promise_counters_add_up(bench: Bench) -> None:
    storage = bench.open()
    for counters in ({"refused:echo": 2, "x": 1}, {"refused:echo": 3}):
        with storage.bookkeeping() as notes:
            assert notes is not None
            notes.count(counters)
    with bench.reopen(storage).reading() as reader:
        assert reader.counters() == {"refused:echo": 5, "x": 1}


def promise_notes_about_files_last_and_leave_no_event(bench: Bench) -> None:
    storage = bench.open()
    with storage.writing(stamp()) as tx:
        tx.note_file("view/MEMORY.md", "first")
        tx.note_file("view/MEMORY.md", "second")
        tx.note_file("source/a.py", "1 2 3")
        tx.note_file("source/ä\U0010ffff.py", "4")
        assert tx.file_notes("view/") == {"view/MEMORY.md": "second"}
    with contextlib.suppress(RuntimeError), storage.writing(stamp()) as tx:
        tx.note_file("view/MEMORY.md", None)
        raise RuntimeError
    storage = bench.reopen(storage)
    with storage.reading() as reader:
        assert reader.file_notes("view/") == {"view/MEMORY.md": "second"}
        assert list(reader.file_notes("source/")) == ["source/a.py", "source/ä\U0010ffff.py"]
        assert reader.events() == []
    with storage.writing(stamp()) as tx:
        tx.note_file("view/MEMORY.md", None)
        tx.note_file("unknown", None)
        assert list(tx.file_notes()) == ["source/a.py", "source/ä\U0010ffff.py"]


def promise_bookkeeping_never_waits(bench: Bench) -> None:
    storage = bench.open()
    seen: list[object] = []

    def note() -> None:
        with storage.bookkeeping() as notes:
            seen.append(notes)

    with storage.writing(stamp()) as tx:
        tx.add(memory("busy"), "remember")
        thread = threading.Thread(target=note)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
    assert seen == [None]


def promise_a_lease_is_one_processs_at_a_time(bench: Bench) -> None:
    storage = bench.open()
    with storage.lease("upkeep") as first, storage.lease("upkeep") as second, storage.lease("other") as other:
        assert (first, second, other) == (True, False, True)
        assert add(storage, "writers are not in its way").id > 0
    with storage.lease("upkeep") as again:
        assert again is True


def promise_a_lease_that_one_thread_took_another_may_give_back(bench: Bench) -> None:
    storage, deeds = bench.open(), []
    lease = storage.lease("session-s1")
    taker = threading.Thread(target=lambda: deeds.append(lease.__enter__()))
    taker.start()
    taker.join()
    assert add(storage, "the thread that gives it back also writes").id > 0
    with storage.lease("session-s1") as other:
        assert (deeds, other) == ([True], False)
    lease.__exit__(None, None, None)
    with storage.lease("session-s1") as again:
        assert again is True


def promise_it_describes_itself(bench: Bench) -> None:
    storage = bench.open()
    add(storage, "something")
    facts = storage.describe()
    assert {"storage", "place", "bytes", "schema"} <= facts.keys()


PROMISES: list[Callable[[Bench], None]] = [
    promise for name, promise in list(globals().items()) if name.startswith("promise_")
]
