"""Round trips to a server that is far away, counted by a proxy: with passwords, from the start of the process."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

import kept
from kept.entrypoints.hook.folder import HookFolder
from kept.memory import Kept
from kept.model import Draft
from kept.ports import LIVE
from kept.storage.postgres import PostgresStorage
from kept.storage.postgres.rounds import HastyTurnView
from tests.builders import FakeClock, context_of, memory, stamp
from tests.postgres.distance import PASSWORD, FarServer

ROOT = Path(__file__).parents[2]
AWAY_S = 0.04  # a home office
HOOK_TRIPS = {False: 6, True: 8}  # three to read and to take notes; SCRAM takes three, TLS two more
# PostgreSQL 15 takes one curve only, and OpenSSL offers another one first, which would be one round trip more.
CURVES = """openssl_conf = own
[own]
ssl_conf = ssl
[ssl]
system_default = groups
[groups]
Groups = P-256
"""
UNHURRIED = {"KEPT_HOOK_LIMIT_MS": "20000", "KEPT_RECALL_DEADLINE_MS": "10000"}  # on a busy machine as well
HOOK = "from kept.entrypoints.hook import main; main()"
PROMPT = "Add a route to the public API"


@pytest.fixture(scope="module", params=[False, True], ids=["scram", "tls"])
def far(request: pytest.FixtureRequest) -> Iterator[FarServer]:
    server = FarServer(has_tls=request.param)
    yield server
    server.stop()


@pytest.fixture
def url(far: FarServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = far.let_in("ann")
    yield url
    far.distance.delay_s = 0.0
    with psycopg.connect(far.server.url.replace("/postgres?", "/kept?"), autocommit=True) as root:
        tables = "select tablename from pg_tables where schemaname = 'kept' and tablename not in ('migrations', 'ties')"
        for (table,) in root.execute(tables).fetchall():
            root.execute(f"delete from kept.{table}")


@pytest.fixture
def team(far: FarServer, url: str, tmp_path: Path) -> Iterator[Kept]:
    far.distance.delay_s = AWAY_S
    away = {"project": "web-app", "home": tmp_path / "kept", "clock": FakeClock(datetime.now(UTC))}
    with kept.open(url, settings={"auto_upkeep": False}, **away) as opened:  # type: ignore[arg-type]
        opened.remember("Use Fastify for the public API, Express is too slow", kind="decision")
        opened.remember("Always write a test for a new route", kind="convention")
        opened.remember_many([Draft(content=f"The service number {n} listens on port {8000 + n}") for n in range(30)])
        yield opened


def trips(far: FarServer, work: Callable[[], object]) -> int:
    """How many round trips the work takes at a distance."""
    with far.distance.counting() as counted:
        work()
    return counted()


def test_a_recall_takes_at_most_four_round_trips_and_so_does_a_write(far: FarServer, team: Kept) -> None:
    team.recall("which framework")
    team.recall("which framework for the API")
    # A machine may be busy: of each kind the shortest way counts.
    ports = [f"which port has the service number {n}" for n in (7, 8, 9)]
    assert min(trips(far, lambda asked=asked: team.recall(asked)) for asked in ports) <= 4
    jobs = [f"The nightly job copies the {job} away" for job in ("reports", "invoices")]
    writes = [*jobs, "Deploys run on Fridays at noon"]
    assert min(trips(far, lambda said=said: team.remember(said, kind="decision")) for said in writes) <= 4
    recalled = team.recall("when do deploys run")
    assert recalled.degraded is None
    assert recalled.hits[0].memory.content.startswith("Deploys run")


def test_a_writer_beside_the_server_takes_seven_round_trips_and_reads_no_list_again(far: FarServer, team: Kept) -> None:
    far.distance.delay_s = 0.0
    storage = context_of(team).spaces.project()
    assert isinstance(storage, PostgresStorage)
    storage._is_far = False
    team.remember("Deploys run on Fridays at noon", kind="decision")
    jobs = ("reports", "invoices", "letters")  # a machine may be busy: the shortest way counts
    assert min(trips(far, lambda job=job: team.remember(f"The nightly job copies the {job} away")) for job in jobs) <= 7
    team.aliases.add("db", "database")
    assert "db" in team.aliases.list()


def test_only_a_server_that_is_far_away_is_asked_in_rounds(far: FarServer, url: str) -> None:
    found = {}
    for delay_s in (0.0, 0.01):
        far.distance.delay_s = delay_s
        with closing(PostgresStorage(url, "project/p1")) as storage:
            for _ in range(20 if delay_s else 500):  # a machine may be busy: the shortest round trip counts
                with storage.reading() as reader:
                    reader.count(LIVE)
                if not storage.is_far:
                    break
            found[delay_s] = storage.is_far
    assert found == {0.0: False, 0.01: True}
    for is_far in (False, True):
        with closing(PostgresStorage(url, "project/p1", is_far=is_far)) as storage:
            assert storage.is_far is is_far


def test_a_recall_in_rounds_is_counted_once(team: Kept) -> None:
    for _ in range(3):
        team.recall("which port has the service number 7")
    latencies = context_of(team).latencies
    assert latencies is not None
    assert latencies._n_noted == 3
    [counted] = [one["recalls"]["n"] for one in team.status()["spaces"] if one["space"] == "project/web-app"]
    assert counted == 3


def test_a_process_far_away_starts_degraded_when_the_last_one_ended_so(team: Kept, url: str, tmp_path: Path) -> None:
    ticks = iter(range(100_000))
    settings = {"auto_upkeep": False, "recall_deadline_ms": 60_000}

    def recalled() -> kept.Recalled:
        with kept.open(url, project="web-app", home=tmp_path / "kept", settings=settings) as memory:
            context_of(memory).timer = lambda: next(ticks) * 0.4
            return memory.recall("listens on port", limit=10)

    slow = [recalled() for _ in range(6)]
    assert [len(one) for one in slow] == [10, 10, 10, 10, 10, 5]
    assert "slow lately" in str(slow[-1].degraded)


def run_hook(team: Kept, clone: Path, session: str) -> str:
    given = {"session_id": session, "prompt": PROMPT, "cwd": str(clone)}
    curves = clone.parent / "openssl.cnf"
    curves.write_text(CURVES)
    done = subprocess.run(
        [sys.executable, "-c", HOOK, "claude-code", "UserPromptSubmit"],
        input=json.dumps(given),
        env=os.environ | UNHURRIED | {"KEPT_HOME": str(clone.parent / "kept"), "OPENSSL_CONF": str(curves)},
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_hook_tells_the_same_at_a_distance_in_eight_round_trips(
    far: FarServer, team: Kept, url: str, tmp_path: Path
) -> None:
    clone = tmp_path / "web-app"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    link = [sys.executable, "-m", "kept", "projects", "link", "web-app", "--database", url]
    subprocess.run(link, cwd=clone, env=os.environ | {"KEPT_HOME": str(tmp_path / "kept")}, check=True)
    far.distance.delay_s = 0.0
    near = run_hook(team, clone, "s1")
    assert "Use Fastify" in near, HookFolder(tmp_path / "kept").failures()
    assert "Always write a test" in near
    at_zero_s = least_s(lambda: run_hook(team, clone, f"near-{time.monotonic_ns()}"))
    far.distance.delay_s = AWAY_S
    told: list[str] = []
    n_trips = trips(far, lambda: told.append(run_hook(team, clone, "s2")))
    assert told == [near]
    assert n_trips <= HOOK_TRIPS[far.has_tls]
    # The trips, the connection itself and the end; beyond that it takes no longer than at zero.
    far_s = least_s(lambda: run_hook(team, clone, f"far-{time.monotonic_ns()}"))
    assert far_s < 2 * at_zero_s + (n_trips + 3) * AWAY_S


def least_s(work: Callable[[], object]) -> float:
    """Return the least of three times on the clock: other tests beside this one only add to it."""
    found = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def test_a_server_that_stalls_is_asked_again_in_few_round_trips(far: FarServer, team: Kept, url: str) -> None:
    """A statement that takes longer than the deadline of a recall ends the first round."""
    question = "which port has the service number 7"
    calm = team.recall(question)
    told: list[str] = []
    for _ in range(3):  # on a busy machine the second attempt can come too late as well
        n_most, n_trips, stalled = asked_while_it_stalls(far, team, question)
        assert [hit.ref for hit in stalled] == [hit.ref for hit in calm]
        if n_trips <= n_most and stalled.degraded is None:
            return
        told.append(f"{n_trips} trips, at most {n_most}; degraded: {stalled.degraded}")
    pytest.fail("; ".join(told))


def asked_while_it_stalls(far: FarServer, team: Kept, question: str) -> tuple[int, int, kept.Recalled]:
    """Return the most round trips of a recall while a table is locked, those that it took, and its answer."""
    with psycopg.connect(far.server.url.replace("/postgres?", "/kept?")) as root:
        root.execute("lock table kept.memories in access exclusive mode")
        release = threading.Timer(1.0, root.rollback)
        release.start()
        stalled: list[kept.Recalled] = []
        n_connections = far.distance.connections
        n_trips = trips(far, lambda: stalled.append(team.recall(question)))
        release.join()
    # Two of the first attempt and four of the second, and the notes; a new connection takes some more.
    return 7 + 7 * (far.distance.connections - n_connections), n_trips, stalled[0]


def test_rounds_read_what_single_statements_read(team: Kept) -> None:
    """The same questions, each statement for itself."""
    for query in ("which framework", "service number 7", "listens on port", "route", "no such thing", "the"):
        in_rounds = team.recall(query)
        storage = context_of(team).spaces.project()
        assert isinstance(storage, PostgresStorage)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "in_rounds", lambda work: work())
            alone = team.recall(query)
        assert [(hit.ref, hit.score) for hit in in_rounds] == [(hit.ref, hit.score) for hit in alone]
        assert in_rounds.pinned == alone.pinned


def test_a_write_that_others_overtake_is_judged_again(team: Kept, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another connection writes the same between the judgement and the commit: it is not stored twice."""
    other = PostgresStorage(url, "project/web-app")
    end, overtaken = HastyTurnView.end, []

    def judge(view: HastyTurnView) -> None:
        end(view)
        if not overtaken and view._rounds.connection is not None:
            overtaken.append(True)
            with other.writing(stamp()) as tx:
                tx.add(memory("Deploys run on Fridays", space=other.space), "remember")

    monkeypatch.setattr(HastyTurnView, "end", judge)
    assert team.remember("Deploys run on Fridays").outcome == "strengthened"
    assert overtaken
    assert [one.content for one in team.list(limit=100)].count("Deploys run on Fridays") == 1
    other.close()
