"""A canary through every writer and every error path: it is in no byte of the home, of the logs, or of the output."""

import json
import logging
from pathlib import Path

import pytest

import kept
from kept.model import Draft, Message, Source
from tests.builders import FakeClock
from tests.cli.shell import Shell

CANARY = "ghp_" + "c4N4ry0000aaaaBBBB1111ccccDDDD2222ee"


def home_holds(home: Path) -> list[str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return [str(path) for path in files if CANARY.encode() in path.read_bytes() or CANARY in path.name]


def test_no_writer_of_the_library_stores_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """C24: redaction is the one choke point under every writer."""
    caplog.set_level(logging.DEBUG)
    home = tmp_path / "home"
    with kept.open(
        home=home, project="p", clock=FakeClock(), settings=kept.Settings(), confirm=lambda question: True
    ) as memory:
        memory.subscribe(lambda signal: (_ for _ in ()).throw(RuntimeError("a bad guest")))
        memory.remember(
            f"Push with {CANARY}",
            tags=[CANARY],
            files=[f"/x/{CANARY}"],
            topic=CANARY,
            source=Source(origin="user", agent=CANARY, session=CANARY, task=CANARY, narrative=CANARY, file=CANARY),
        )
        with pytest.raises(kept.InvalidInput, match="key has a secret"):
            memory.remember("The key of this one is a secret", key=CANARY)
        memory.remember_many([Draft(content=f"token = {CANARY}", title=CANARY, data={"t": [CANARY], CANARY: 1})])
        memory.revise(1, f"Revised with {CANARY}", tags=[CANARY])
        memory.recall(f"what about {CANARY}")
        memory.recall(CANARY, scope="sessions")
        memory.briefing(f"use {CANARY}", files=[CANARY])
        memory.store.allow(CANARY + "x", note=f"not {CANARY}")
        memory.undo()
        session = memory.session("s1", agent=CANARY)
        session.append("user", f"here is {CANARY}", speaker=CANARY)
        session.append("tool_call", name=CANARY, input={"key": CANARY})
        session.extend([Message(id=CANARY, role="assistant", content=CANARY)])
        session.append("user", f"We decided to use {CANARY} for the deployment of the billing service, always.")
        session.flush()
        session.compact(force=True)
        session.fork("s2")
        session.finish()
        task = memory.task("T-1", description=CANARY, milestone=CANARY, acceptance_criteria=[CANARY])
        task.add_reasoning(f"Think of {CANARY}", CANARY)
        task.add_tool_output(CANARY, {"token": CANARY}, "build")
        memory.knowledge.add_failure(f"Error: {CANARY} is wrong", f"Not {CANARY}")
        memory.knowledge.add_decision(f"Use {CANARY}", [CANARY])
        memory.promote(memory.knowledge.add_convention(f"Say {CANARY}", CANARY).ref or "", to="global")
        memory.narrative("story").remember(f"In the story: {CANARY}")
        transcript = tmp_path / "t.jsonl"
        transcript.write_text(json.dumps({"id": CANARY, "role": "user", "content": CANARY}) + "\n")
        memory.import_transcripts("brain", transcript)
        with pytest.raises(kept.KeptError):
            memory.aliases.add(CANARY)
        memory.upkeep()
        memory.store.scan()
        memory.store.pack_sessions()
        assert CANARY not in repr(memory.list(limit=100)) + repr(memory.history(limit=1000)) + repr(memory.status())
        assert CANARY not in repr(session.messages())
    assert home_holds(home) == []
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    "arguments",
    [
        ["remember", "x", "--kind", f"{CANARY}!"],
        ["remember", "x", "--tier", CANARY],
        ["remember", CANARY, "--importance", "7"],
        ["show", CANARY],
        ["recall", CANARY],
        ["recall", "x", "--profile", CANARY],
        ["list", "--status", CANARY],
        ["list", "--after", CANARY],
        ["undo", CANARY],
        ["review", "resolve", CANARY, "--keep", CANARY],
        ["alias", "remove", CANARY],
        ["session", "show", CANARY],
        ["task", "show", CANARY],
        ["task", "add", "x", "--id", CANARY],
        ["task", "add", "x", "--blocked-by", CANARY],
        ["promote", CANARY],
        ["session", "fork", f"../{CANARY}"],
        ["import", "codex", f"/nowhere/{CANARY}"],
        ["config", "set", CANARY, "1"],
        ["config", "set", "profile", CANARY],
        ["why", CANARY],
        ["store", "restore", f"/nowhere/{CANARY}"],
        ["projects", "rename", CANARY, "x"],
        [CANARY],
        ["remember", f"--{CANARY}"],
    ],
    ids=lambda arguments: " ".join(arguments).replace(CANARY, "SECRET"),
)
def test_no_message_repeats_a_secret(shell: Shell, arguments: list[str]) -> None:
    for more in ([], ["--json"]):
        result = shell.type(*arguments, *more)
        assert CANARY not in result.output
        assert CANARY not in (result.stderr or "")
    assert not shell.home.exists() or home_holds(shell.home) == []


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Shell(tmp_path, FakeClock())
