"""Imports that give back everything that was there: one test for each loss, and the way there and back."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory import Kept, opening
from kept.writing.redact import redact
from tests.builders import FakeClock
from tests.exchange.foreign_files import PRAXIS_SESSION, praxis_entry, praxis_store


@pytest.fixture
def memory(tmp_path: Path) -> Kept:
    return at(tmp_path / "kept.db")


def at(file: Path, **more: Any) -> Kept:
    clock = FakeClock(datetime(2026, 11, 1, tzinfo=UTC))
    return opening.open(file, clock=clock, origin="user", settings={"auto_upkeep": False}, **more)


def project(folder: Path, name: str, agent: str | None = None) -> Kept:
    (folder / name).mkdir(exist_ok=True)
    actor = {"actor": kept.Actor(name=agent)} if agent else {"origin": "user"}
    settings = {"auto_upkeep": False}
    return opening.open(project=folder / name, home=folder / "home", settings=settings, clock=FakeClock(), **actor)


# ---- Brain ----


ITEM = {
    "id": "item_abc123",
    "type": "claim",
    "title": "Use Fastify for API",
    "content": "We chose Fastify over Express for better TypeScript support.",
    "sourceFile": "docs/Architecture.md",
    "lineNumber": 45,
    "confidence": 0.9,
    "extractedAt": "2026-02-05T10:00:00Z",
}


def test_items_of_brain_stay_items_with_type_title_place_and_id(tmp_path: Path) -> None:
    (tmp_path / "items.json").write_text(json.dumps([ITEM]))
    with project(tmp_path, "app") as memory:
        memory.store.import_(tmp_path / "items.json", confirm=True)
        assert memory.list() == []
        [item] = memory.files.items(type="claim")
        assert (item.title, item.trust, item.status) == (ITEM["title"], "tool", "candidate")
        assert memory.get("item_abc123").ref == item.ref
        [mirror] = (tmp_path / "home").glob("projects/*/items.json")
        assert json.loads(mirror.read_text("utf-8")) == [ITEM]
        pytest.importorskip("markdown_it")
        memory.files.extract()
        assert memory.files.items() == [item], "its file is not in this project"
        (tmp_path / "app" / "docs").mkdir()
        (tmp_path / "app" / "docs" / "Architecture.md").write_text("# A\n\nTODO: draw the queue of the API\n")
        memory.files.extract()
        assert [one.content for one in memory.files.items()] == ["draw the queue of the API"], "extraction overwrites"


def test_the_way_to_brain_and_back_keeps_agents_sessions_summaries_and_dates(tmp_path: Path) -> None:
    """B3, B5, B20: as far as its files have a place for it."""
    with project(tmp_path, "app", "claude code") as memory:
        memory.remember("API uses Fastify,\nnot Express", kind="decision")
        memory.remember("Discussed the agent loop", kind="summary")
        memory.session("monday").append("user", "Which framework do we use?")
        memory.files.write_brain(tmp_path / "brain")
    with project(tmp_path, "other") as memory:
        done = memory.store.import_(tmp_path / "brain", "brain")
        assert (done.sessions, done.messages) == (1, 1)
        found = {one.kind: one for one in memory.list()}
        assert found["decision"].content == "API uses Fastify,\nnot Express"
        assert f"{found['decision'].created_at:%Y-%m-%d}" == "2026-03-01"
        assert found["summary"].content == "Discussed the agent loop"
        assert [(one.name, one.agent) for one in memory.sessions()] == [("monday", "claude code")]


def test_a_session_of_brain_without_an_index_belongs_to_its_folder(memory: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "vault" / "writer"
    (folder / "sessions").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Agent Memory\n\n## Session Summaries\n### 2026-02-05\n- Built the loop\n")
    line = {"id": "m1", "role": "user", "content": "Hello", "timestamp": "2026-02-05T10:00:00Z"}
    (folder / "sessions" / "s1.jsonl").write_text(json.dumps(line) + "\n")
    memory.store.import_(tmp_path / "vault")
    assert [one.agent for one in memory.sessions()] == ["writer"]
    assert [(one.kind, f"{one.created_at:%Y-%m-%d}") for one in memory.list()] == [("summary", "2026-02-05")]


# ---- OpenClaw ----

SESSION_NOTE = """# Session: 2026-01-15 10:30:00 UTC

- **Session Key**: agent:main:telegram:direct:42
- **Session ID**: abc-123
- **Source**: telegram

## Conversation Summary

user: Which port does the billing service use?
assistant: It listens on 8443,
behind the gateway.

user: Thanks
"""
NOTES = """# Memory

## Apollo

- **Deploys** run from the `release` branch
> Never restart it
> on Fridays.

| Service | Port |
|---|---|
| api | 8443 |
| web | 8080 |

## Decisions

- 2026-01-02: Apollo moves to Postgres
"""


def openclaw(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(NOTES)
    (folder / "memory" / "2026-01-15-billing.md").write_text(SESSION_NOTE)
    (folder / "SOUL.md").write_text("Be kind.\n")
    return folder


def test_notes_of_openclaw_have_their_heading_as_subject_and_tag(memory: Kept, tmp_path: Path) -> None:
    memory.store.import_(openclaw(tmp_path), "openclaw")
    found = {one.content: (one.kind, one.tags) for one in memory.list()}
    assert found == {
        "Apollo: Deploys run from the `release` branch": ("fact", ("Apollo",)),
        "Apollo: Never restart it on Fridays.": ("fact", ("Apollo",)),
        "Apollo: Service: api; Port: 8443": ("fact", ("Apollo",)),
        "Apollo: Service: web; Port: 8080": ("fact", ("Apollo",)),
        "Apollo moves to Postgres": ("decision", ()),
    }


def test_a_dialogue_in_a_note_is_a_transcript(memory: Kept, tmp_path: Path) -> None:
    done = memory.store.import_(openclaw(tmp_path), "openclaw")
    assert (done.sessions, done.messages) == (1, 3)
    said = [(one.role, one.content, one.trust) for one in memory.session("abc-123").messages()]
    assert said == [
        ("user", "Which port does the billing service use?", "unknown"),
        ("assistant", "It listens on 8443,\nbehind the gateway.", "unknown"),
        ("user", "Thanks", "unknown"),
    ]
    assert memory.store.import_(tmp_path / "workspace", "openclaw").messages == 0, "once"
    (tmp_path / "note.md").write_text("User: prefers tabs in every file\n")
    assert memory.store.import_(tmp_path / "note.md").stored == 1, "one side alone is a note"


def test_an_import_names_what_it_left_out(memory: Kept, tmp_path: Path) -> None:
    folder = openclaw(tmp_path)
    (folder / "MEMORY.md").write_text(NOTES + "\n- [Index](index.md)\n")
    done = memory.store.import_(folder, "openclaw")
    assert sorted(done.left_out) == [
        "2026-01-15-billing.md: the header of a session",
        "MEMORY.md:18 says nothing by itself",
        "SOUL.md is no memory file",
    ]


def test_the_session_key_of_openclaw_is_no_secret() -> None:
    for line in ("- **Session Key**: agent:main:main", "Session Key: agent:main:telegram:direct:123456789"):
        assert redact(line).text == line


# ---- Praxis ----


def praxis_folder(tmp_path: Path, *, damaged: bool = False) -> Path:
    folder = tmp_path / "praxis" / "memory"
    (folder / "sessions").mkdir(parents=True)
    store = json.loads(praxis_store(praxis_entry(1, status="pinned"), praxis_entry(2)))
    store["metadata"] |= {"autoMemoryEnabled": False, "configPreset": "conservative"}
    (folder / "project.json").write_text(json.dumps(store)[: 200 if damaged else None])
    (folder / "project.json.bak").write_text(json.dumps(store))
    (folder / "sessions" / "sess-7.memory.json").write_text(PRAXIS_SESSION)
    (folder / "audit.json").write_text("[]")
    return folder.parent


def test_a_person_brings_the_pins_ids_and_settings_of_praxis(tmp_path: Path) -> None:
    """C4, C6: also where the same file was imported before without a person's word."""
    folder = praxis_folder(tmp_path)
    with project(tmp_path, "app") as memory:
        first = memory.store.import_(folder, "praxis")
        assert (first.stored, first.files) == (4, 2)
        assert {one.status for one in memory.list()} == {"candidate"}
        assert [one for one in first.left_out if "pin" in one or "setting" in one] == [
            "1 pinned: candidates until you import them with --confirm",
            "the setting auto_memory = false; `kept config set auto_memory false` sets it",
            "the setting preset = conservative; `kept config set preset conservative` sets it",
        ]
        assert "memory/audit.json is no memory file" in first.left_out
        again = memory.store.import_(folder, "praxis", confirm=True)
        assert (again.stored, again.duplicates) == (0, 4)
        pinned = memory.get(praxis_entry(1)["id"])
        assert (pinned.status, pinned.uid) == ("pinned", praxis_entry(1)["id"])
        assert (memory.settings.auto_memory, memory.settings.preset) == (False, "conservative")
    with project(tmp_path, "app") as memory:
        assert memory.settings.preset == "conservative"


def test_a_uid_that_is_taken_is_not_given_again(memory: Kept, tmp_path: Path) -> None:
    entries = [praxis_entry(1), praxis_entry(1, content="Another text under the same id"), praxis_entry(2)]
    (tmp_path / "project.json").write_text(praxis_store(*entries))
    assert memory.store.import_(tmp_path / "project.json").stored == 3
    assert len({one.uid for one in memory.list()}) == 3


@pytest.mark.parametrize("is_missing", [False, True])
def test_the_copy_of_praxis_stands_in_for_a_damaged_store(memory: Kept, tmp_path: Path, is_missing: bool) -> None:
    """C11: as in Praxis itself."""
    folder = praxis_folder(tmp_path, damaged=True)
    if is_missing:
        (folder / "memory" / "project.json").unlink()
    done = memory.store.import_(folder)
    assert (done.format, done.stored, done.failed) == ("praxis", 4, [])
    assert any("project.json.bak was read instead" in one for one in done.unread) is not is_missing


def test_the_way_to_praxis_and_back_keeps_entries_counters_and_settings(tmp_path: Path) -> None:
    """C4: ids, pins, uses, conflicts, aliases, preset; the counters are those of the journal."""
    with project(tmp_path, "one") as one:
        one.remember("Always use pnpm for the web client", kind="decision", tags=["web"])
        one.pin(1)
        one.remember("Never use pnpm for the web client", kind="decision")
        one.reinforce(2)
        one.store.configure("preset", "aggressive")
        one.store.export_to(tmp_path / "first.json", format="praxis")
    with project(tmp_path, "two") as two:
        two.store.import_(tmp_path / "first.json", confirm=True)
        two.store.export_to(tmp_path / "second.json", format="praxis")
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("first", "second"))
    for entry in (*first["entries"], *second["entries"]):
        entry.pop("updatedAt")
    assert first["entries"] == second["entries"]
    assert first["metadata"]["configPreset"] == second["metadata"]["configPreset"] == "aggressive"
    assert first["metadata"]["totalAccesses"] == second["metadata"]["totalAccesses"] == 1
    assert first["conflicts"][0]["entryA"] == second["conflicts"][0]["entryA"]


def test_the_counters_of_praxis_are_those_of_the_journal(tmp_path: Path) -> None:
    clock = FakeClock()
    memory = opening.open(tmp_path / "kept.db", clock=clock, settings={"auto_upkeep": False})
    memory.task("T-1").add_reasoning("The build takes four minutes on the old machine", "plan")
    found = "The integration tests need a running Redis on the machine"
    memory.remember_many([kept.Draft(content=found, kind="discovery", source=kept.Source(origin="tool"))])
    memory.promote(1)
    clock.at += timedelta(days=400)
    memory.upkeep()
    memory.store.export_to(tmp_path / "project.json", format="praxis")
    counters = json.loads((tmp_path / "project.json").read_text())["metadata"]
    assert counters["totalPromotions"] > 0
    assert counters["totalEvictions"] > 0
    assert counters["lastCompactedAt"] == int(clock.at.timestamp() * 1000)


def test_sessions_are_written_for_praxis_on_request(memory: Kept, tmp_path: Path) -> None:
    """C3, C9: sessions/{id}.memory.json, which the importer reads again."""
    session = memory.session("monday")
    session.append("user", "Remember: never deploy on Fridays, because nobody is there on Saturday.")
    session.append("assistant", "We decided to deploy from the release branch, because main is too fast.")
    session.finish()
    memory.store.export_to(tmp_path / "plain.json", format="praxis")
    memory.store.export_to(tmp_path / "folder", format="praxis", sessions=True)
    record = json.loads((tmp_path / "folder" / "sessions" / "monday.memory.json").read_text())
    assert (record["version"], record["sessionId"]) == (1, "monday")
    assert any("Friday" in finding["content"] for finding in record["findings"])
    assert all(set(finding) >= {"id", "fingerprint", "promotedToProjectMemory"} for finding in record["findings"])
    with pytest.raises(kept.InvalidInput, match="has no files for sessions"):
        memory.store.export_to(tmp_path / "other", format="csv", sessions=True)
    other = at(tmp_path / "other.db")
    other.store.import_(tmp_path / "folder", "praxis")
    assert any("Friday" in one.content for one in other.list())


# ---- agent_engine ----


def test_a_failure_of_agent_engine_is_found_by_the_same_error(memory: Kept, tmp_path: Path) -> None:
    """D7: the signature is that of the error, so the lesson is told when it happens again."""
    failure = {"code": "timeout", "message": "ConnectionError: no answer from 10.0.0.7:5432 after 30 s"}
    item = {"context_item_id": "f1", "kind": "failure", "source": "project/web", "tags": ["project", "failure"]}
    payload = {"failure": failure, "lesson": "Start the database before the tests"}
    (tmp_path / "memory.json").write_text(json.dumps([{**item, "importance": 0.85, "payload": payload}]))
    memory.store.import_(tmp_path / "memory.json")
    [found] = memory.knowledge.failures("ConnectionError: no answer from 10.0.0.9:5433 after 31 s")
    assert found.content == f"{failure['message']}: {payload['lesson']}"
    assert found.data is not None
    assert found.data["failure"] == failure
