"""`kept import` of the notes that agents keep themselves: no index, no orphans, no other project."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept
from kept.exchange.importers.hosts import HOSTS, Host, slug_of
from kept.memory import Kept
from kept.memory.bringing import importer_of

TABS = """---
name: prefers-tabs
description: The user wants tabs in every file
metadata:
  node_type: memory
  type: feedback
  originSessionId: 0f3b2a10-1111-4222-8333-944455556666
  modified: 2026-11-17T08:51:24.014Z
---

Indent with tabs.

**Why:** house style.

**How to apply:** every new file. See [[build-notes]].
"""
PORT = TABS.replace("prefers-tabs", "port").replace("Indent with tabs.", "The gateway listens on port 2525.")
INDEX = "- [Tabs](prefers-tabs.md) — indent with tabs\n- [Port](port.md) — The gateway listens on port 2525\n"


@pytest.fixture
def memory(tmp_path: Path) -> Kept:
    (tmp_path / "app").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "app")], check=True)
    return kept.open(project=tmp_path / "app", home=tmp_path / "kept", settings={"auto_upkeep": False})


def claude_folder(tmp_path: Path, project: str = "app") -> Path:
    folder = tmp_path / ".claude" / "projects" / slug_of(tmp_path / project) / "memory"
    folder.mkdir(parents=True)
    for name, text in (("prefers-tabs.md", TABS), ("port.md", PORT), ("MEMORY.md", INDEX)):
        (folder / name).write_text(text)
    return folder


def codex_folder(tmp_path: Path, cwd: Path, version: str = "memories") -> Path:
    folder = tmp_path / ".codex" / version
    (folder / "rollout_summaries").mkdir(parents=True)
    header = f"thread_id: 019e\nupdated_at: 2026-06-02T10:03:10+00:00\ncwd: {cwd}\n\n"
    (folder / "rollout_summaries" / "2026-06-02T10-03-10-aB3x-queue.md").write_text(
        f"{header}The queue is zebrafish.\n"
    )
    (folder / "MEMORY.md").write_text("# Task Group: queue\n\n- The queue is zebrafish\n")
    (folder / "memory_summary.md").write_text("v1\n## User preferences\n- Made of the summaries.\n")
    return folder


def test_two_notes_of_claude_code_are_two_memories(memory: Kept, tmp_path: Path) -> None:
    done = memory.store.import_(claude_folder(tmp_path))
    assert (done.format, done.stored) == ("claude-memory", 2)
    assert sorted(one.content.partition(".")[0] for one in memory.list()) == [
        "Indent with tabs",
        "The gateway listens on port 2525",
    ]


def test_the_reason_of_a_note_stays_with_its_statement(memory: Kept, tmp_path: Path) -> None:
    memory.store.import_(claude_folder(tmp_path))
    assert all("Why: house style. How to apply: every new file." in one.content for one in memory.list())


def test_a_note_is_as_old_as_its_header_says(memory: Kept, tmp_path: Path) -> None:
    memory.store.import_(claude_folder(tmp_path))
    assert {f"{one.created_at:%Y-%m-%d %H:%M}" for one in memory.list()} == {"2026-11-17 08:51"}


def test_notes_of_another_project_are_left_out_unless_it_is_named(memory: Kept, tmp_path: Path) -> None:
    folder = claude_folder(tmp_path, "other")
    with pytest.raises(kept.InvalidInput, match="Nothing in it is of the project"):
        memory.store.import_(folder)
    assert memory.list() == []
    assert memory.store.import_(folder, from_project=slug_of(tmp_path / "other")).stored == 2


@pytest.mark.parametrize("version", ["memories", "memories_v2"])
def test_the_memory_of_codex_is_not_taken_for_another_program(memory: Kept, tmp_path: Path, version: str) -> None:
    folder = codex_folder(tmp_path, tmp_path / "app", version)
    assert importer_of(folder).name == "codex-memory"
    assert memory.store.import_(folder).stored == 1
    assert [one.content for one in memory.list()] == ["The queue is zebrafish."]


def test_summaries_of_codex_about_another_project_are_left_out(memory: Kept, tmp_path: Path) -> None:
    with pytest.raises(kept.InvalidInput, match="Nothing in it is of the project"):
        memory.store.import_(codex_folder(tmp_path, tmp_path / "other"))
    assert memory.list() == []


def test_a_note_that_was_imported_before_is_not_doubled_by_the_reader(memory: Kept, tmp_path: Path) -> None:
    memory.store.import_(claude_folder(tmp_path))
    [done] = memory.files.read_notes({"HOME": str(tmp_path)})
    assert (done.read, done.added) == (3, 0)
    assert len(memory.list()) == 2


LINES = st.sampled_from(
    "---|name: x|metadata:|  type: user|# T|## Task 1: t|Outcome: success|Preference signals:|- item|thread_id: 1|"
    f"cwd: /x|**Why:** because|```|{'word ' * 200}|{'a' * 700}||[[link]]|https://x".split("|")
)


@pytest.mark.parametrize("host", HOSTS, ids=[host.name for host in HOSTS])
@given(text=st.one_of(st.text(max_size=300), st.lists(LINES, max_size=12).map("\n".join)), name=st.text(max_size=20))
@settings(deadline=None, max_examples=60)
def test_any_text_is_read_as_notes_whose_parts_fit_a_memory(host: Host, text: str, name: str) -> None:
    for file in ("MEMORY.md", f"{name}.md"):
        for note in host.read(file, text):
            assert note.parts
            assert all(part.strip() and len(part) <= 500 for part in note.parts)
