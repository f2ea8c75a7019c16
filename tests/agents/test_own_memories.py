"""Real agents with both memories on: what one of them notes in its own, the others are told once.

Run like tests/agents/test_real_agents.py, by `make test-agents`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kept.exchange.importers.hosts import slug_of
from tests.agents.boxes import Box
from tests.agents.scripted_model import Json, ScriptedModel
from tests.agents.test_real_agents import WANTED, each, prompt_block

TABS = "Indent with tabs in every file of the zebrafish service."
PORT = "The zebrafish gateway listens on port 2525."


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with ScriptedModel() as model:
        yield Box(tmp_path, model)


def folder_of(box: Box) -> Path:
    return box.home / ".claude" / "projects" / slug_of(box.project) / "memory"


def write(file: Path, text: str) -> Json:
    return {"call": "^Write$", "input": {"file_path": str(file), "content": text}}


def noted(box: Box, name: str, said: str, *, type: str = "feedback") -> Json:
    """Return the step by which the model of Claude Code writes a note, as its instructions want it."""
    header = f"---\nname: {name}\ndescription: About {name}\nmetadata:\n  type: {type}\n---\n\n"
    return write(folder_of(box) / f"{name}.md", f"{header}{said}\n\n**Why:** house style.\n**How to apply:** always.\n")


def memories(box: Box) -> list[Json]:
    """Return the memories about the zebrafish, without summaries of sessions."""
    found = json.loads(box.listed())["memories"]
    return [one for one in found if "zebrafish" in one["content"] and one["kind"] != "summary"]


def read_again(box: Box) -> None:
    """Do in the foreground what a session start leaves to the background process."""
    box.kept("import", "claude-memory")


@pytest.mark.parametrize("name", each(("claude",)))
def test_notes_of_claude_code_are_memories_that_codex_is_told(name: str, box: Box) -> None:
    claude = box.install(name)
    other = box.home / ".claude" / "projects" / "-somewhere-else" / "memory" / "plan.md"
    other.parent.mkdir(parents=True)
    other.write_text("The zebrafish plan of another project.\n")
    index = write(folder_of(box) / "MEMORY.md", "- [Tabs](tabs.md) — tabs\n- [Port](port.md) — port of zebrafish\n")
    claude.turn("Hello.", noted(box, "tabs", TABS), noted(box, "port", PORT, type="reference"), index)
    assert box.wait_for(lambda: len(memories(box)) == 2), memories(box)
    tabs = next(one for one in memories(box) if "tabs" in one["content"])
    assert tabs["content"] == f"{TABS} Why: house style. How to apply: always."
    assert "originSessionId" in (folder_of(box) / "tabs.md").read_text(), "the program has added its session"

    changed = TABS.replace("every file", "every new file")
    claude.turn("Hello again.", noted(box, "tabs", changed))
    assert box.wait_for(lambda: any(changed in one["content"] for one in memories(box)))
    assert [one["ref"] for one in memories(box) if "tabs" in one["content"]] == [tabs["ref"]], "a revision"

    for _ in range(10):
        read_again(box)
    assert len(memories(box)) == 2

    (folder_of(box) / "port.md").unlink()
    read_again(box)
    assert len(memories(box)) == 1

    codex = box.install("codex") if "codex" in WANTED else claude
    asked = codex.turn("How do we indent files of the zebrafish service?")
    assert prompt_block(asked[0]).count("every new file of the zebrafish service") == 1
    assert "another project" not in prompt_block(asked[0])


@pytest.mark.parametrize("name", each(("claude",)))
def test_a_decision_that_is_said_and_noted_is_one_memory_and_told_once(name: str, box: Box) -> None:
    claude = box.install(name)
    said = "From now on, always use the zebrafish queue for outgoing mail."
    claude.turn(said, noted(box, "zebrafish-queue", "Use the zebrafish queue for outgoing mail."))
    assert box.wait_for(lambda: any(one["status"] == "confirmed" for one in memories(box)))
    assert len(memories(box)) == 1, memories(box)
    other = box.install("codex") if "codex" in WANTED else claude
    asked = other.turn("Which queue do we use for outgoing mail?")
    assert prompt_block(asked[0]).count("zebrafish queue") == 1


@pytest.mark.parametrize("store", ["memories", "memories_v2"])
@pytest.mark.parametrize("name", each(("codex",)))
def test_the_memory_of_codex_is_read_after_its_turn(name: str, store: str, box: Box) -> None:
    codex = box.install(name)
    summary = box.home / ".codex" / store / "rollout_summaries" / "2026-06-02T10-03-10-aB3x-queue.md"
    summary.parent.mkdir(parents=True)
    header = "thread_id: 019e87c8-a41b-74b1-8766-02a3deb58c69\nupdated_at: 2026-06-02T10:03:10+00:00\n"
    summary.write_text(f"{header}cwd: {box.project}\n\nThe zebrafish queue replaced the old one.\n")
    other = f"{header}cwd: /somewhere/else\n\nThe zebrafish of another project.\n"
    summary.with_name("2026-06-02T10-03-11-aB3y-else.md").write_text(other)
    codex.turn("Hello.")
    assert box.wait_for(lambda: len(memories(box)) == 1), memories(box)
    summary.write_text(summary.read_text().replace("the old one", "the slow one"))
    codex.turn("Hello again.")
    assert box.wait_for(lambda: "the slow one" in memories(box)[0]["content"])
    assert memories(box)[0]["id"] == 1, "a revision"
    asked = codex.turn("Which queue replaced the old zebrafish queue?")
    assert prompt_block(asked[0]).count("replaced the slow one") == 1
    summary.unlink()
    codex.turn("Hello.")
    assert box.wait_for(lambda: not memories(box))
