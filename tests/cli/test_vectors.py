"""`kept vectors`: switched on, watched, interrupted, resumed, switched off."""

import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kept.distribution import install_line
from kept.entrypoints.cli.invocation import Invocation
from kept.entrypoints.cli.setup import ON
from kept.entrypoints.cli.wording import progress
from kept.memory import vectors
from kept.memory.vectors import NOT_IN_HOOKS
from kept.recall import minilm
from kept.recall.models import SentenceModel
from tests.builders import memory, stamp
from tests.cli.shell import Shell
from tests.recall.onnx_models import make_model, needs_onnx

CAR = "The automobile of the manager is in the garage"


class Terminal(io.StringIO):
    """A terminal that keeps what was shown."""

    def isatty(self) -> bool:
        return True


def test_the_bar_of_a_second_store_begins_again_and_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = Terminal()
    with progress(Invocation(err=shown), "Making vectors") as tell:
        for done, total in ((0, 72), (40, 72), (72, 72), (0, 5), (5, 5)):
            tell(done, total)
    assert "72/72" in shown.getvalue()
    assert "5/5" in shown.getvalue()
    assert "-" not in re.sub(r"\[.*?\]", "", shown.getvalue())
    assert max(map(len, re.split(r"[\r\n]", click.unstyle(shown.getvalue())))) <= 60


def test_switched_on_car_finds_the_automobile_and_says_why(shell: Shell) -> None:
    """B16, D14: `kept vectors on`, and recall says that it came by its meaning."""
    shell("remember", CAR)
    shell("config", "set", "recall_deadline_ms", "60000")
    assert "No memory has the word car." in shell("recall", "car")
    assert shell("vectors", "status") == "Off: recall compares words only. `kept vectors on` switches it on.\n"
    assert shell("vectors", "on") == (
        "On: recall also compares meanings.\n    This project: 1 vector of the model all-MiniLM-L6-v2-int8.\n"
    )
    said = shell("recall", "car", "--explain")
    assert CAR in said
    assert "similar in meaning" in said
    assert "(words 0 + vectors 0." in said
    assert "(words 0 + vectors 0." in shell("why")
    shell("remember", "The manager prefers tea")
    assert "wait" not in shell("recall", "car"), "a new memory gets its vector by itself"
    assert "    2 vectors of the model all-MiniLM-L6-v2-int8\n" in shell("status")


def test_it_is_switched_on_for_one_project(shell: Shell) -> None:
    shell("remember", CAR)
    shell("remember", CAR, "--project", "phone-app")
    shell("vectors", "on")
    assert CAR in shell("recall", "car")
    assert CAR not in shell("recall", "car", "--project", "phone-app")
    assert shell.json("vectors", "status")["on"] is True
    assert shell.json("vectors", "status", "--project", "phone-app")["on"] is False


@pytest.mark.parametrize("setting", ["search_provider", "profile"])
def test_switched_off_it_is_off_however_it_was_switched_on(shell: Shell, setting: str) -> None:
    shell("remember", CAR)
    shell("config", "set", setting, "hybrid")
    assert CAR in shell("recall", "car")
    assert shell("vectors", "off") == "Off: recall compares words only. The vectors of this project are removed.\n"
    assert "No memory has the word car." in shell("recall", "car")
    [state] = shell.json("vectors", "status")["spaces"].values()
    assert state == {"model": None, "done": 0, "pending": 0}


def test_without_the_extra_it_says_what_to_install_and_changes_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("remember", CAR)
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    assert shell.fails("vectors", "on").endswith(f"Install it: {install_line('vector')}")
    assert install_line("vector") in shell.fails("recall", "car", "--profile", "hybrid")
    assert shell.json("vectors", "status")["on"] is False


@needs_onnx
def test_a_sentence_model_of_ones_own_is_switched_on_by_its_folder(shell: Shell, tmp_path: Path) -> None:
    """Issue 17: `kept vectors on --model DIR`. It stays that model until another one is named."""
    model = make_model(tmp_path / "tiny")
    name = SentenceModel(model).model
    shell("remember", CAR)
    shell("config", "set", "recall_deadline_ms", "60000")
    on = f"{ON}\n    This project: 1 vector of the model {name}.\n{NOT_IN_HOOKS}\n"
    assert shell("vectors", "on", "--model", str(model)) == on
    assert shell("vectors", "status") == on
    said = shell("recall", "vehicle", "--explain")
    assert CAR in said
    assert "similar in meaning" in said
    shell("vectors", "off")
    assert shell("vectors", "on") == on
    assert "all-MiniLM-L6-v2-int8" in shell("vectors", "on", "--model", "all-MiniLM-L6-v2")


@needs_onnx
def test_a_model_that_needs_more_time_than_recall_has_is_told_of(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "pace_ms", lambda embedder, timer: 412.0)
    shell("remember", CAR)
    said = shell("vectors", "on", "--model", str(make_model(tmp_path / "tiny")))
    assert "takes about 410 ms here, and recall has 200: it compares fewer." in said
    assert "`kept config set recall_deadline_ms 820`" in said


@needs_onnx
def test_a_folder_without_a_model_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    shell("remember", CAR)
    assert "There is no folder" in shell.fails("vectors", "on", "--model", str(tmp_path / "nowhere"))
    assert shell.json("vectors", "status")["on"] is False
    model = make_model(tmp_path / "tiny")
    shell("vectors", "on", "--model", str(model))
    (model / "model.onnx").unlink()
    assert "Not used: There is no model.onnx in" in shell("vectors", "status")
    assert CAR in shell("recall", "garage"), "by its words"


def test_long_work_tells_how_far_it_is(shell: Shell) -> None:
    fill(shell, 450)
    result = shell.type("vectors", "on")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [f"Making vectors: {done} of 450" for done in (200, 400, 450)]
    assert "450 vectors" in result.stdout
    assert shell.type("vectors", "on").stderr == "", "what is done at once needs no progress"


# The program as it is, but for a model that stops in the middle of the work, as if it were a slow one.
SLOW = """
import time
from kept.recall.minilm import MiniLM
from kept.entrypoints.cli import main
quick, batches = MiniLM.embed, []
def embed(self, texts):
    batches.append(texts)
    if len(batches) > 3:
        time.sleep(60)
    return quick(self, texts)
MiniLM.embed = embed
main()
"""


def test_an_interrupted_run_can_be_resumed(shell: Shell) -> None:
    """Ctrl-C in the middle: what is done stays done, and the next run goes on from there."""
    fill(shell, 900)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "vectors", "on"],
        env=shell.process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:  # the first one is the check, the others have 200 texts each
        if line == "Making vectors: 400 of 900\n":
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted. `kept vectors on` continues where it stopped." in err
    assert out == ""
    assert "400 vectors of the model all-MiniLM-L6-v2-int8; 500 memories have none yet" in shell("vectors", "status")
    assert "500 memories have no vector yet" in shell("doctor")
    assert "Statement number 899" in shell("recall", "number", "899"), "by its words"
    assert "900 vectors" in shell("vectors", "on")


def fill(shell: Shell, count: int) -> None:
    """Many memories, quickly: beneath the write path."""
    from kept.storage.sqlite import SqliteStorage

    shell("remember", CAR)
    (database,) = shell.home.glob("projects/*/kept.db")
    storage = SqliteStorage(database)
    with storage.writing(stamp()) as tx:
        for number in range(1, count):
            tx.add(memory(f"Statement number {number}", space=storage.space), "remember")
    storage.close()
