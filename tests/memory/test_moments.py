"""The moments of a session: what it is told at its start, at a prompt and for a sub-agent, and what it is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.memory.deliver import Listener
from kept.model import Source
from tests.builders import FakeClock

USER = Source(origin="user")
RULE = "Ask me before you change the schema"
FACT = "The Fastify server is deployed to the staging cluster with make ship"
PROMPT = "How do we deploy the Fastify server to the staging cluster?"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "kept.db"
    with kept.open(place, clock=clock, settings=kept.Settings(auto_upkeep=False)) as memory:
        yield memory


def listener(session: str = "s-1", *, files: tuple[str, ...] = (), is_resumed: bool = False) -> Listener:
    return Listener(session=session, event="an event", files=files, is_resumed=is_resumed)


def start(memory: kept.Kept, session: str = "s-1", *, is_resumed: bool = False) -> str:
    return memory.deliveries.at_start(listener(session, is_resumed=is_resumed))


def prompt(memory: kept.Kept, words: str = PROMPT, session: str = "s-1", *, files: tuple[str, ...] = ()) -> str:
    return memory.deliveries.for_prompt(words, listener(session, files=files))


# The start


@pytest.mark.parametrize(
    "rule",
    [
        RULE,
        "Never push on Fridays",
        "From now on, write commit messages in the imperative",
        "Always run the linter before you commit",
        "The user prefers short answers without bullet points",
        "Make sure that every change has a test",
        "Antworte auf Deutsch und ohne Aufzählungen",
        "回答は短くしてください",
    ],
)
def test_a_start_tells_standing_rules_of_work(memory: kept.Kept, rule: str) -> None:
    memory.remember(rule, kind="preference", source=USER)
    assert rule in start(memory)


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        (FACT, "decision"),
        ("The importer retries three times", "fact"),
        ("I added a test for the parser, and it is green", "preference"),
        ("The parser fails if a line ends with a backslash", "warning"),
    ],
)
def test_a_start_leaves_facts_about_a_topic_to_prompts(memory: kept.Kept, fact: str, kind: str) -> None:
    memory.remember(RULE, kind="preference", source=USER)
    memory.remember(fact, kind=kind)
    told = start(memory)
    assert RULE in told
    assert fact not in told


def test_a_start_tells_pins_open_tasks_and_what_was_left_open(memory: kept.Kept) -> None:
    memory.pin(memory.remember("The billing service belongs to team Harbor").ref or "")
    memory.task("t1", description="Move the importer to Celery")
    told = start(memory)
    assert "team Harbor" in told
    assert "Move the importer to Celery" in told


def test_a_start_tells_no_rule_that_was_demoted_and_no_finding_that_nobody_promoted(memory: kept.Kept) -> None:
    memory.demote(memory.remember(RULE, kind="preference", source=USER).ref or "")
    session = memory.session("s-0")
    session.append("user", "Never push on Fridays, please.")
    session.checkpoint()
    told = start(memory)
    assert "schema" not in told
    found = [one for one in memory.list() if one.tier == "session"]
    assert not [one for one in found if one.content in told]


def test_a_start_is_short_and_the_best_come_first(memory: kept.Kept) -> None:
    for number in range(60):
        memory.remember(f"Use tool{number} to format module{number}", kind="convention", source=USER)
    memory.remember(RULE, kind="preference", source=USER)
    told = start(memory)
    assert len(told) / 4 <= 500
    lines = [line for line in told.splitlines() if "[id:" in line]
    assert RULE in lines[0]


# A context


def test_a_context_is_told_a_line_once(memory: kept.Kept) -> None:
    memory.pin(memory.remember(FACT).ref or "")
    memory.remember("The Fastify server listens on port 8080")
    lines = [
        line
        for text in (
            start(memory),
            prompt(memory),
            *(prompt(memory, "which port has the Fastify server?") for _ in "ab"),
        )
        for line in text.splitlines()
        if "[id:" in line
    ]
    assert len(lines) == len(set(lines)) == 2


def test_open_tasks_are_told_once_in_a_context(memory: kept.Kept) -> None:
    memory.task("t1", description="Move the importer to Celery")
    memory.remember("The importer runs in Celery with four workers")
    assert "Move the importer" in start(memory)
    told = prompt(memory, "how many workers has the importer in Celery?")
    assert "four workers" in told
    assert "Move the importer" not in told


def test_a_resumed_session_is_told_nothing_that_the_host_brings_back(memory: kept.Kept) -> None:
    memory.remember(RULE, kind="preference", source=USER)
    memory.remember(FACT)
    assert start(memory)
    assert prompt(memory)
    assert start(memory, is_resumed=True) == ""
    assert prompt(memory) == ""
    memory.remember("Never push on Fridays", kind="preference", source=USER)
    told = start(memory, is_resumed=True)
    assert "Fridays" in told
    assert "schema" not in told


def test_after_a_compaction_the_lost_lines_are_told_again(memory: kept.Kept) -> None:
    memory.remember(FACT)
    first = prompt(memory)
    assert first
    memory.deliveries.on_compaction(listener())
    assert prompt(memory) == first


def test_a_memory_that_was_revised_is_told_again(memory: kept.Kept) -> None:
    ref = memory.remember(FACT).ref or ""
    assert prompt(memory)
    memory.revise(ref, "The Fastify server is deployed to the staging cluster with make release")
    assert "make release" in prompt(memory)


def test_a_demoted_memory_is_not_told_beside_its_correction(memory: kept.Kept) -> None:
    wrong = memory.remember("The Fastify server is deployed to the staging cluster by hand").ref or ""
    memory.remember(FACT)
    memory.demote(wrong)
    told = prompt(memory)
    assert "make ship" in told
    assert "by hand" not in told


def test_the_users_own_words_are_never_from_other_agents(memory: kept.Kept, clock: FakeClock) -> None:
    memory.session("s-1", agent="claude-code").append("user", "hello")
    clock.advance(minutes=1)
    memory.remember("Backups run at night", source=Source(origin="user", agent="codex", session="s-2"))
    memory.remember("The backups need 40 GB", source=Source(origin="agent", agent="codex", session="s-2"))
    told = memory.briefing("hello", session="s-1")
    [bridge] = [section for section in told.sections if section.name == "bridge"]
    assert [entry.memory.content for entry in bridge.entries] == ["The backups need 40 GB"]


def test_memories_about_the_files_at_hand_come_with_an_order_that_does_not_name_them(memory: kept.Kept) -> None:
    memory.remember("Parsing is bounded to 4 MB on purpose", kind="warning", files=["src/parser.py"])
    assert prompt(memory, "add a guard to this function") == ""
    assert "4 MB" in prompt(memory, "add a guard to this function", files=("src/parser.py",))
    assert prompt(memory, "thank you", session="s-2", files=("src/parser.py",)) == ""


def test_a_prompt_about_something_else_gets_no_line_about_the_files_at_hand(memory: kept.Kept) -> None:
    memory.remember("Parsing in the worker is bounded to 4 MB on purpose", kind="warning", files=["src/parser.py"])
    assert prompt(memory, "What is the weather like in the Azores?", files=("src/parser.py",)) == ""
    assert "4 MB" in prompt(memory, "Why is the worker slow?", session="s-2", files=("src/parser.py",))


def test_a_prompt_gets_at_most_as_many_lines_as_the_setting_says(tmp_path: Path) -> None:
    for lines in (0, 1, 2):
        with kept.open(tmp_path / f"{lines}.db", settings=kept.Settings(prompt_lines=lines)) as memory:
            for number in range(6):
                memory.remember(f"Step {number} of the staging deploy of the Fastify server runs on host h{number}")
            assert prompt(memory).count("[id:") == lines


@pytest.mark.parametrize("profile", ["koshi", "praxis"])
def test_the_profiles_of_the_seeds_keep_their_budgets(tmp_path: Path, profile: str) -> None:
    with kept.open(tmp_path / "kept.db", settings=kept.Settings(profile=profile)) as memory:
        for number in range(12):
            memory.remember(f"Step {number} of the staging deploy of the Fastify server runs on host h{number}")
        assert start(memory).count("[id:") > 3
        assert prompt(memory, session="s-2").count("[id:") > 3


# A sub-agent


def test_a_sub_agent_gets_a_few_lines_for_its_task_and_at_most_two_rules(memory: kept.Kept) -> None:
    for number in range(8):
        memory.remember(f"Step {number} of the staging deploy of the Fastify server runs on host h{number}")
    for rule in ("Commit each change with its test", "Answer in short sentences", "Ask before you merge a branch"):
        memory.remember(rule, kind="preference", source=USER)
    memory.pin(memory.remember("The billing service belongs to team Harbor").ref or "")
    told = memory.deliveries.for_subagent("Fix the staging deploy of the Fastify server", listener())
    assert 3 < told.count("[id:") <= 5
    assert told.count("Step ") == 3
    assert "Harbor" not in told
    assert memory.look().receipts("s-1")[0].moment == "subagent"
    assert memory.deliveries.for_subagent("Write a haiku about the sea", listener()) == ""


# Receipts


def test_a_receipt_says_at_once_what_was_given_at_which_moment_and_why(memory: kept.Kept) -> None:
    memory.remember(RULE, kind="preference", source=USER)
    memory.remember(FACT)
    texts = [start(memory), prompt(memory), prompt(memory)]
    given = memory.look().receipts("s-1")
    assert [one.moment for one in given] == ["prompt", "prompt", "start"]
    assert [one.block for one in reversed(given)] == texts
    reasons = [entry["reason"] for section in given[2].sections for entry in section["entries"]]
    assert reasons == ["holds for all work here"]
    assert [out["reason"] for out in given[0].left_out] == ["this session was told it before"]


def test_a_prompt_that_quotes_an_error_is_told_its_fix(memory: kept.Kept) -> None:
    memory.knowledge.add_failure("sqlite3.OperationalError: database is locked", "Stop the importer first")
    told = prompt(memory, "Since this morning every import fails with sqlite3.OperationalError: database is locked")
    assert "Stop the importer first" in told
    assert not prompt(memory, "It fails with ValueError: bad literal", session="other")


def test_a_quoted_error_brings_its_fix_once(memory: kept.Kept) -> None:
    memory.knowledge.add_failure("sqlite3.OperationalError: database is locked", "Stop the importer first")
    asked = "it fails with sqlite3.OperationalError: database is locked"
    assert [bool(prompt(memory, asked)) for _ in range(3)] == [True, False, False]


def test_a_prompt_without_a_start_has_no_more_lines_than_others(memory: kept.Kept) -> None:
    for number in range(3):
        memory.remember(f"Step {number} of the staging deploy of the Fastify server runs on host h{number}")
    memory.remember(RULE, kind="preference", source=USER)
    assert prompt(memory).count("[id:") == 3


def test_the_files_of_a_session_count_by_their_whole_paths(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    with kept.open(project=project, home=tmp_path / "home") as opened:
        opened.remember("Rows leave the outbox in the order of their ids", kind="decision", files=["src/outbox.py"])
        told = opened.deliveries.for_prompt("fix the bug", listener(files=(str(project / "src" / "outbox.py"),)))
    assert "in the order of their ids" in told
