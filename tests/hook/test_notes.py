"""`kept-hook` has the notes of agents' own memories read, after a turn and when a session starts."""

import subprocess
from pathlib import Path

import pytest

from kept.exchange.importers.hosts import slug_of
from tests.hook.test_program import GENEROUS, Box

HEADER = "thread_id: 019e87c8\nupdated_at: 2026-06-02T10:03:10+00:00\nrollout_path: /x.jsonl\ncwd: {cwd}\n\n"
SUMMARY = HEADER + "# Lint\n\n## Task 1: lint\n\nOutcome: success\n\nPreference signals:\n- {rule}\n"
COMMIT = b"run make lint and commit"
KNOWN = "The office has nine plants."
RULE = "Always run make lint before a commit."


@pytest.fixture
def box(tmp_path: Path) -> Box:
    box = Box(tmp_path)
    subprocess.run(["git", "init", "-q", str(box.project)], check=True)
    with box.open() as memory:
        memory.remember(KNOWN)  # so that there is a home, as after an installation
    return box


def contents(box: Box) -> list[str]:
    with box.open() as memory:
        return sorted(one.content for one in memory.list() if one.content != KNOWN)


def done(box: Box) -> bool:
    """Whether no background process is at work."""
    return not list(box.hook.started.glob("*"))


def after(box: Box, agent: str, event: str) -> list[str]:
    """What is kept once the background process of an event has ended."""
    assert box.fire(agent, event, **GENEROUS).code == 0
    box.wait_until(lambda: done(box))
    return contents(box)


@pytest.mark.parametrize("store", ["memories", "memories_v2"])
def test_the_memory_of_codex_follows_its_files_and_the_next_agent_is_told(box: Box, store: str) -> None:
    folder = box.folder / ".codex" / store / "rollout_summaries"
    folder.mkdir(parents=True)
    (folder / "2026-06-02T10-03-10-aB3x-lint.md").write_text(SUMMARY.format(cwd=box.project, rule=RULE))
    (folder / "2026-06-02T10-03-11-aB3y-else.md").write_text(SUMMARY.format(cwd="/else", rule="Of another project."))
    assert after(box, "codex", "Stop") == [RULE]
    told = box.fire("claude-code", "SessionStart", **GENEROUS).out.decode()
    assert told.count("make lint") == 1
    assert "another project" not in told

    changed = RULE.replace("make lint", "make check")
    (folder / "2026-06-02T10-03-10-aB3x-lint.md").write_text(SUMMARY.format(cwd=box.project, rule=changed))
    assert after(box, "codex", "SessionStart") == [changed]
    with box.open() as memory:
        events = memory.status()["spaces"][0]["events"]
    for _ in range(10):
        assert after(box, "codex", "Stop") == [changed]
    with box.open() as memory:
        assert memory.status()["spaces"][0]["events"] == events
    (folder / "2026-06-02T10-03-10-aB3x-lint.md").unlink()
    assert after(box, "codex", "Stop") == []
    assert box.hook.failures() == []


def test_notes_of_one_agent_are_read_when_another_one_starts(box: Box) -> None:
    folder = box.folder / ".claude" / "projects" / slug_of(box.project) / "memory"
    folder.mkdir(parents=True)
    (folder / "lint.md").write_text(f"---\nname: lint\ndescription: Lint\ntype: feedback\n---\n\n{RULE}\n")
    assert after(box, "gemini", "SessionStart") == [RULE]
    assert b"make lint" in box.fire("codex", "SessionStart", **GENEROUS).out
    assert b"make lint" not in box.fire("claude-code", "SessionStart", **GENEROUS).out, "its own index says it"
    prompt = box.given("claude-code", "UserPromptSubmit").replace(b"how do we deploy the billing service?", COMMIT)
    assert b"make lint" in box.fire("claude-code", "UserPromptSubmit", given=prompt, **GENEROUS).out


def test_a_setting_keeps_the_notes_out(box: Box) -> None:
    folder = box.folder / ".claude" / "projects" / slug_of(box.project) / "memory"
    folder.mkdir(parents=True)
    (folder / "lint.md").write_text(f"{RULE}\n")
    assert box.fire("claude-code", "Stop", KEPT_READ_CLAUDE_NOTES="false", **GENEROUS).code == 0
    box.wait_until(lambda: done(box))
    assert contents(box) == []


def test_notes_about_a_home_directory_are_no_failure(box: Box) -> None:
    folder = box.folder / ".claude" / "projects" / slug_of(box.folder) / "memory"
    folder.mkdir(parents=True)
    (folder / "lint.md").write_text(f"{RULE}\n")
    given = box.given("claude-code", "Stop").replace(str(box.project).encode(), str(box.folder).encode())
    assert box.fire("claude-code", "Stop", given=given, **GENEROUS).code == 0
    box.wait_until(lambda: done(box))
    assert contents(box) == []
    assert [one for one in box.hook.failures() if "notes" in one["failure"]] == []
