"""Every benchmark runs from a fresh clone: at a tiny size, with an empty cache, and without a network."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
# They take --cache; an old store there would hide a fault.
CACHED = {"briefing", "delivery", "peers", "recall", "talk", "upkeep"}
ARGUMENTS = {"compare": [str(SOURCE), str(SOURCE)]}
NOT_PROGRAMS = {"corpora", "gold", "host", "measure", "recall_writer"}
PROGRAMS = sorted(
    path.stem
    for path in (ROOT / "bench").iterdir()
    if (path.suffix == ".py" or (path / "__main__.py").exists())
    and path.stem not in NOT_PROGRAMS
    and not path.name.startswith("_")
)


def run(module: str, *arguments: str, cwd: Path, codes: Sequence[int] = (0,)) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(SOURCE), str(ROOT))),
        "KEPT_HOME": str(cwd / "home"),
        "PIP_NO_INDEX": "1",
    }
    command = [sys.executable, "-m", f"bench.{module}", *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in codes, done.stderr[-3000:]
    return done


@pytest.mark.parametrize("module", PROGRAMS)
def test_a_benchmark_runs_at_a_tiny_size(module: str, tmp_path: Path) -> None:
    cache = ["--cache", str(tmp_path / "cache")] if module in CACHED else []
    done = run(module, *ARGUMENTS.get(module, []), *cache, "--tiny", "--json", cwd=tmp_path)
    assert len(json.loads(done.stdout)) > 1


def test_lost_hooks_are_counted_on_a_busy_machine(tmp_path: Path) -> None:
    assert "lost" in json.loads(run("hook", "--busy", "4", "--tiny", "--json", cwd=tmp_path).stdout)


@pytest.mark.slow  # it is about the clock: where other tests run beside it, it says nothing
def test_hooks_answer_on_a_busy_machine(tmp_path: Path) -> None:
    """Four processes want the processors: no start without an answer, and at most 2 % of the prompts."""
    arguments = ("--busy", "4", "--rows", "300", "--prompts", "50", "--starts", "4", "--json")
    found = json.loads(run("hook", *arguments, cwd=tmp_path, codes=(0, 1)).stdout)
    assert [bar for bar in found["bars"] if not bar["holds"]] == []


def test_no_project_and_no_conversation_is_in_both_halves() -> None:
    from bench.delivery.statements import load
    from bench.gold import REPORTING, TUNING, chosen, read

    for cases, key in ((load().cases, "project"), (read(ROOT / "bench/talk/cases.jsonl"), "id")):
        tuning, reporting = chosen(cases, key, TUNING), chosen(cases, key, REPORTING)
        assert len(tuning) == len(reporting) == 24
        assert {case[key] for case in tuning}.isdisjoint(case[key] for case in reporting)


def test_a_figure_of_the_reporting_half_names_its_date_and_commit() -> None:
    from bench.gold import REPORTING, TUNING, title

    assert title(TUNING, "48 cases") == "tuning half: 48 cases"
    assert re.fullmatch(r"reporting half, 2\d{3}-\d\d-\d\d, commit \w+\+?: 48 cases", title(REPORTING, "48 cases"))


def test_a_conversation_names_only_notes_that_it_has() -> None:
    from bench.gold import read

    for case in read(ROOT / "bench/talk/cases.jsonl"):
        notes = {note["id"] for note in case["keep"]}
        assert {one["by"] for one in case["gone"]} <= notes | {None}, case["id"]
        assert {note for ask in case["asks"] for note in ask["need"]} <= notes, case["id"]
        assert bool(case["nothing"]) == (not notes), case["id"]


def test_the_last_word_is_followed_if_it_is_kept_and_the_old_one_is_gone() -> None:
    from bench.talk.__main__ import outcome
    from bench.talk.systems import Aftermath, Told

    case = {
        "id": "queue",
        "theme": "change",
        "keep": [{"id": "new", "must": [["postgres"]], "importance": 2}],
        "gone": [{"id": "old", "must": [["redis"]], "by": "new", "why": "superseded"}],
        "may": [],
        "nothing": False,
        "asks": [{"prompt": "add a job", "need": ["new"]}],
    }

    def after(*texts: str) -> Aftermath:
        return Aftermath(texts, Told(), [Told("", texts[:1])])

    followed = outcome(case, after("Jobs are in Postgres."))
    assert (followed.kept, followed.followed, followed.told, followed.live) == (2, 1, 1, 0)
    both = outcome(case, after("Jobs are in Postgres.", "Jobs are in Redis."))
    assert (both.kept, both.followed, both.told, both.live) == (2, 0, 1, 1)
    mixed = outcome(case, after("Jobs are in Redis and Postgres."))
    assert (mixed.kept, mixed.right, mixed.told, mixed.told_gone) == (0, 0, 0, 1)


def test_the_writer_beside_recall_runs(tmp_path: Path) -> None:
    from bench.corpora import zipf_space

    path = zipf_space(20, tmp_path)
    assert run("recall_writer", str(path), "3", cwd=tmp_path).stdout == "writing\n"


def test_every_bar_that_fails_is_shown_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    from argparse import Namespace

    from bench.measure import Bar, report

    bars = [Bar("slow", 2.0, 1.0), Bar("quick", 0.5, 1.0)]
    assert report("", bars, {}, Namespace(json=False, tiny=False)) == 1
    assert capsys.readouterr().out.split("\n")[1:3] == ["FAILS: slow 2.00 (at most 1)", "holds: quick 0.50 (at most 1)"]
    assert report("", bars[1:], {}, Namespace(json=False, tiny=False)) == 0
    capsys.readouterr()
    assert report("", bars, {}, Namespace(json=False, tiny=True)) == 0
    assert capsys.readouterr().out.strip() == "Tiny: it runs. The figures mean nothing, and no bar is judged."


def test_peers_that_are_not_measured_are_named() -> None:
    from bench.peers.environments import LEFT_OUT, PEERS, left_out

    assert left_out(only_ours=False) == LEFT_OUT
    assert set(left_out(only_ours=True)) == {one.name for one in PEERS if not one.is_here} | set(LEFT_OUT)
