"""Every benchmark runs from a fresh clone: at a tiny size, with an empty cache, and without a network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
CACHED = {"briefing", "peers", "recall", "upkeep"}  # they take --cache; an old store there would hide a fault
ARGUMENTS = {"compare": [str(SOURCE), str(SOURCE)]}
NOT_PROGRAMS = {"corpora", "measure", "recall_writer"}
PROGRAMS = sorted(
    path.stem
    for path in (ROOT / "bench").iterdir()
    if (path.suffix == ".py" or (path / "__main__.py").exists())
    and path.stem not in NOT_PROGRAMS
    and not path.name.startswith("_")
)


def run(module: str, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(SOURCE), str(ROOT))),
        "KEPT_HOME": str(cwd / "home"),
        "PIP_NO_INDEX": "1",
    }
    command = [sys.executable, "-m", f"bench.{module}", *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.parametrize("module", PROGRAMS)
def test_a_benchmark_runs_at_a_tiny_size(module: str, tmp_path: Path) -> None:
    cache = ["--cache", str(tmp_path / "cache")] if module in CACHED else []
    done = run(module, *ARGUMENTS.get(module, []), *cache, "--tiny", "--json", cwd=tmp_path)
    assert len(json.loads(done.stdout)) > 1


def test_hooks_answer_on_a_busy_machine(tmp_path: Path) -> None:
    """Four processes want the processors. The long run, `bench.hook --busy 4`, has 100 prompts and 3,000 memories."""
    assert "lost" in json.loads(run("hook", "--busy", "4", "--tiny", "--json", cwd=tmp_path).stdout)
    if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        pytest.skip("the machine is busier than that already")
    arguments = ("--busy", "4", "--rows", "300", "--prompts", "10", "--starts", "4", "--json")
    found = json.loads(run("hook", *arguments, cwd=tmp_path).stdout)
    assert found["lost"] == {"starts": 0, "prompts": 0}


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
    assert report("", bars, {}, Namespace(json=False, tiny=True)) == 0
