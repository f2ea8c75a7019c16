"""Memories in the formats of other programs: what they read back, and that stored text stays text."""

import csv
import json
from pathlib import Path

import pytest

import kept
from kept.memory import Kept, opening
from tests.builders import FakeClock

HOSTILE = "=cmd|'/C calc'!A0"


@pytest.fixture
def memory(tmp_path: Path) -> Kept:
    memory = opening.open(tmp_path / "kept.db", clock=FakeClock(), origin="user")
    memory.remember("Always use pnpm for the web client", kind="decision", tags=["web app"], files=["package.json"])
    memory.remember("Never use pnpm for the web client", kind="decision")
    memory.remember(HOSTILE, kind="warning", tags=["=1+1"])
    memory.remember("# Not a heading\n---\n[[../../etc/passwd]] <script>", kind="fact")
    memory.remember("Something to forget")
    memory.forget(5)
    return memory


def test_a_spreadsheet_never_runs_a_stored_text(memory: Kept, tmp_path: Path) -> None:
    memory.store.export_to(tmp_path / "m.csv", format="csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["ref"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[2]["content"] == f"'{HOSTILE}"
    for row in rows:
        assert not any(value.lstrip().startswith(("=", "+", "-", "@")) for value in row.values())


def test_an_obsidian_vault_has_a_note_for_each_memory_with_links(memory: Kept, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    memory.store.export_to(vault, format="obsidian")
    names = {file.name for file in vault.iterdir()}
    assert "Always use pnpm for the web client (1).md" in names
    assert "decision.md" in names
    assert not list(vault.glob("*/*")), "no name leads into or out of a folder"
    note = (vault / "Always use pnpm for the web client (1).md").read_text()
    assert note.startswith('---\nref: "1"\n')
    assert 'tags: ["web-app"]' in note
    assert "- contradicts [[Never use pnpm for the web client (2)]]" in note
    assert "- file [[package.json]]" in note
    hostile = next(file.read_text() for file in vault.iterdir() if file.name.endswith("(4).md"))
    body = hostile.split("---\n", 2)[2]
    assert "\n# Not" not in body
    assert "[[../" not in body
    assert "<script" not in body.replace("\\<script", "")
    with pytest.raises(kept.InvalidInput, match="not an empty folder"):
        memory.store.export_to(vault, format="obsidian")


def test_what_praxis_is_given_comes_back(memory: Kept, tmp_path: Path) -> None:
    """C3, C4: a project.json that the importer of Praxis reads."""
    memory.store.export_to(tmp_path / "project.json", format="praxis")
    store = json.loads((tmp_path / "project.json").read_text())
    assert [entry["status"] for entry in store["entries"]] == ["confirmed"] * 4
    assert len(store["conflicts"]) == 1
    other = opening.open(tmp_path / "other.db", clock=FakeClock(), origin="user")
    assert other.store.import_(tmp_path / "project.json").stored == 4
    assert {one.content for one in other.list()} == {one.content for one in memory.list()}
    assert len(other.conflicts()) >= 1


def test_the_graph_and_the_page_come_back(memory: Kept, tmp_path: Path) -> None:
    memory.store.export_to(tmp_path / "memory.jsonl", format="server-memory")
    lines = [json.loads(line) for line in (tmp_path / "memory.jsonl").read_text().splitlines()]
    assert {line["name"] for line in lines} == {"decision", "warning", "fact", "package.json"}
    memory.store.export_to(tmp_path / "memories.md", format="markdown")
    page = (tmp_path / "memories.md").read_text()
    assert "- 2026-03-01: Always use pnpm for the web client #web-app" in page
    assert "Something to forget" not in page
    other = opening.open(tmp_path / "other.db", clock=FakeClock(), origin="user")
    assert other.store.import_(tmp_path / "memories.md").stored == 4


def test_an_unknown_format_is_refused(memory: Kept, tmp_path: Path) -> None:
    with pytest.raises(kept.InvalidInput, match="Unknown format"):
        memory.store.export_to(tmp_path / "x", format="word")


def test_a_vault_that_comes_back_brings_the_memories_and_nothing_else(tmp_path: Path) -> None:
    """Its index pages and links are for Obsidian."""
    said = {"Always use Fastify for the public API", "Never use Fastify for the public API"}
    with opening.open(tmp_path / "one.db", origin="user") as one:
        for content in said:
            one.remember(content, kind="decision")
        one.store.export_to(tmp_path / "vault", format="obsidian")
    with opening.open(tmp_path / "other.db", origin="user") as other:
        assert other.store.import_(tmp_path / "vault", "markdown").stored == 2
        assert {found.content for found in other.list()} == said


def test_an_export_of_kept_is_not_taken_for_the_file_of_another_program(tmp_path: Path) -> None:
    with opening.open(tmp_path / "one.db", origin="user") as one:
        one.remember("Always use Fastify for the public API", kind="decision")
        one.store.export_to(tmp_path / "export.jsonl", format="kept")
    with opening.open(tmp_path / "other.db", origin="user") as other:
        with pytest.raises(kept.InvalidInput, match=r"is an export of Kept\.") as raised:
            other.store.import_(tmp_path / "export.jsonl")
        assert "memory.store.merge" in raised.value.hint
        assert other.store.merge(tmp_path / "export.jsonl").stored == 1
