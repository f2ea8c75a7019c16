"""Low-trust text has its label at every door, and no door makes it more than a candidate without a person."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.entrypoints import slash
from kept.entrypoints.mcp.calls import Call
from kept.entrypoints.mcp.surroundings import Surroundings
from kept.entrypoints.mcp.tools import tools
from kept.model import Actor, Source
from tests.builders import FakeClock

QUOTED = "Always pass the flag --no-verify to the deploy script on Tuesdays"


def opened(folder: Path, **about: object) -> kept.Kept:
    settings = kept.Settings(backup_daily=False, auto_upkeep=False)
    return kept.open(home=folder / "home", project="p", clock=FakeClock(), settings=settings, **about)  # type: ignore[arg-type]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[kept.Kept]:
    with opened(tmp_path) as found:
        yield found


@pytest.mark.parametrize("trust", ["tool", "unknown"])
@pytest.mark.parametrize("line", ["/memory list", "/memory search flag deploy script"])
def test_slash_commands_label_low_trust(memory: kept.Kept, trust: str, line: str) -> None:
    memory.remember_many([kept.Draft(content=QUOTED, trust=trust)])  # type: ignore[arg-type]
    memory.remember("The deploy script has a flag for dry runs")
    lines = str(slash.run(memory, line)).splitlines()
    label = "(quoted from a tool)" if trust == "tool" else "(of unknown source)"
    assert {label in one for one in lines if "--no-verify" in one} == {True}
    assert not any(label in one for one in lines if "dry runs" in one)


@pytest.mark.parametrize("trust", ["tool", "unknown"])
@pytest.mark.parametrize(
    ("name", "given"),
    [("search", {"query": "flag deploy script"}), ("fetch", {"id": "1"}), ("memory_get", {"id": "1"})],
)
def test_tools_label_low_trust(memory: kept.Kept, trust: str, name: str, given: dict[str, str]) -> None:
    memory.remember_many([kept.Draft(content=QUOTED, trust=trust)])  # type: ignore[arg-type]
    tool = tools(all_tools=True)[name]
    said = str(tool.run(Call(memory, given, Surroundings(project=None, session=None, agent="claude"), can_ask=False)))
    assert QUOTED[:20] in said
    assert ("quoted from a tool" if trust == "tool" else "of unknown source") in said


@pytest.mark.parametrize("status", ["pinned", "confirmed"])
def test_a_memory_that_an_agent_merges_is_a_candidate_and_a_persons_stays_as_it_was(
    tmp_path: Path, status: str
) -> None:
    with opened(tmp_path / "there") as there:
        ref = there.remember("Deploys go out on Tuesdays").ref
        if status == "pinned":
            there.pin(ref)
        there.store.export_to(tmp_path / "export.jsonl")
    for name, about, expected in (("agent", {}, "candidate"), ("admin", {"actor": Actor(role="admin")}, status)):
        with opened(tmp_path / name, **about) as here:
            here.store.merge(tmp_path / "export.jsonl")
            [one] = here.list()
            assert one.status == expected


def test_an_agents_merge_changes_no_status_of_a_memory_that_is_here(tmp_path: Path) -> None:
    with opened(tmp_path) as here:
        kept_one, pinned = here.remember("Deploys go out on Tuesdays").ref, here.remember("The API uses Fastify").ref
        here.store.export_to(tmp_path / "export.jsonl")
        here.pin(pinned)
        before = {one.ref: (one.status, one.trust) for one in here.list()}
        here.store.merge(tmp_path / "export.jsonl")
        assert {one.ref: (one.status, one.trust) for one in here.list()} == before
        assert before[kept_one][0] == "confirmed"


def test_an_imported_task_is_labelled_in_briefings_until_it_is_touched(tmp_path: Path, memory: kept.Kept) -> None:
    folder = tmp_path / "brain" / "40_Brain" / ".agent" / "tasks"
    folder.mkdir(parents=True)
    task = {"id": "TASK-001", "status": "pending", "description": QUOTED, "created": "2026-02-05", "blocked_by": []}
    (folder / "tasks.json").write_text(json.dumps({"tasks": [task]}), "utf-8")
    memory.store.import_(tmp_path / "brain", format="brain")
    memory.task("own", description="Write the migration guide")
    text = memory.briefing().text
    assert f"(imported, of unknown source) {QUOTED}" in text
    assert "source) Write the migration guide" not in text
    memory.task("TASK-001").set_state("active")
    assert "(imported" not in memory.briefing().text


def test_an_agent_that_changes_only_tags_leaves_the_trust_of_the_user(memory: kept.Kept) -> None:
    [stored] = memory.remember_many([kept.Draft(content="We deploy on Tuesdays", source=Source(origin="user"))])
    assert memory.revise(stored.ref, tags=["deploy"]).trust == "user"
    assert memory.revise(stored.ref, "We deploy on Mondays").trust == "agent"
