"""B5, B20: Brain's layout, written and read; memory by agent; where transcripts are."""

import json
from pathlib import Path

import pytest

import kept
from tests.builders import FakeClock


def opened(folder: Path, name: str, agent: str = "claude-code", **settings: object) -> kept.Kept:
    (folder / name).mkdir(exist_ok=True)
    return kept.open(
        project=folder / name,
        home=folder / "home",
        actor=kept.Actor(name=agent),
        settings={"auto_upkeep": False, **settings},
        clock=FakeClock(),
    )


def test_the_layout_is_written_by_agent_and_read_again(tmp_path: Path) -> None:
    with opened(tmp_path, "app") as memory:
        memory.remember("API uses Fastify, not Express", kind="decision")
        memory.task("TASK-001", description="Implement session locking")
        memory.session("monday").append("user", "Which framework do we use?")
    with opened(tmp_path, "app", agent="codex") as memory:
        memory.remember("Prefers concise responses", kind="preference")
        done = memory.files.write_brain(tmp_path / "brain")
        with pytest.raises(kept.InvalidInput, match="not an empty folder"):
            memory.files.write_brain(tmp_path / "brain")
    assert done.agents == ["claude-code", "codex"]
    brain = tmp_path / "brain"
    assert (brain / "claude-code" / "MEMORY.md").read_text("utf-8") == (
        "# Agent Memory\n\n## Key Decisions\n- 2026-03-01: API uses Fastify, not Express\n"
    )
    assert "## User Preferences\n- Prefers concise responses\n" in (brain / "codex" / "MEMORY.md").read_text("utf-8")
    [line] = (brain / "claude-code" / "sessions" / "monday.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["content"] == "Which framework do we use?"
    index = json.loads((brain / "claude-code" / "sessions" / "sessions.json").read_text("utf-8"))
    assert [one["id"] for one in index["sessions"]] == ["monday"]
    tasks = json.loads((brain / "40_Brain" / ".agent" / "tasks" / "tasks.json").read_text("utf-8"))
    assert [task["id"] for task in tasks["tasks"]] == ["TASK-001"]
    assert json.loads((brain / "items.json").read_text("utf-8")) == []
    with opened(tmp_path, "other") as memory:
        memory.store.import_(brain, "brain")
        brought = {(one.content, one.source.agent) for one in memory.list()}
        assert ("API uses Fastify, not Express", "claude-code") in brought
        assert ("Prefers concise responses", "codex") in brought
        assert [task.name for task in memory.tasks()] == ["TASK-001"]


def test_memory_can_be_asked_for_by_agent(tmp_path: Path) -> None:
    for agent in ("claude-code", "codex"):
        with opened(tmp_path, "app", agent=agent) as memory:
            memory.remember(f"The lighthouse of {agent} is painted in May")
    with opened(tmp_path, "app") as memory:
        assert [one.source.agent for one in memory.list(agent="codex")] == ["codex"]
        assert [hit.memory.source.agent for hit in memory.recall("lighthouse painted", agent="codex")] == ["codex"]
        assert len(memory.recall("lighthouse painted").hits) == 2
        assert memory.list(agent="nobody") == []


def test_transcripts_are_where_the_setting_says(tmp_path: Path) -> None:
    """B19: sessionsPath."""
    with opened(tmp_path, "app", sessions_path="talk/transcripts") as memory:
        memory.session("monday").append("user", "Which framework do we use?")
    [path] = (tmp_path / "home").glob("projects/*/talk/transcripts/monday.jsonl")
    assert "framework" in path.read_text("utf-8")
    with pytest.raises(kept.SettingsError, match="sessions_path must be a relative path"):
        opened(tmp_path, "app", sessions_path="../elsewhere")


def test_an_agent_md_is_read_and_never_written(tmp_path: Path) -> None:
    """B20: it is project context: what repeats it is no new memory, and its rules are items."""
    pytest.importorskip("markdown_it")
    with opened(tmp_path, "app") as memory:
        words = "The billing service must never call the shop directly, it always goes through the queue."
        (tmp_path / "app" / "AGENT.md").write_text(f"# Agent\n\n{words}\n", "utf-8")
        before = (tmp_path / "app" / "AGENT.md").stat()
        echo = memory.remember_many([kept.Draft(content=words, source=kept.Source(origin="conversation"))])[0]
        assert (echo.outcome, echo.reason) == ("refused", "echo")
        memory.files.extract()
        assert [one.source.file for one in memory.files.items(type="claim")] == ["AGENT.md"]
        assert (tmp_path / "app" / "AGENT.md").stat().st_mtime_ns == before.st_mtime_ns
