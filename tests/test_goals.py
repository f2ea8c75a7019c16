"""What all this is for, end to end: an agent learns from earlier sessions, and a person stays in charge."""

from pathlib import Path

import pytest

import kept
from kept.entrypoints.slash import run
from kept.recall.briefing import STYLES
from tests.builders import FakeClock

WARNING = "Never edit the auth middleware directly; it is generated"


def opened(home: Path, agent: str, clock: FakeClock) -> kept.Kept:
    actor = kept.Actor(name=agent)
    return kept.open(home=home, project="web-app", actor=actor, clock=clock, settings=kept.Settings())


def test_an_agent_learns_from_an_earlier_session_of_another(tmp_path: Path) -> None:
    """C1: what was decided in one session, with one program, is known to all the others in the next."""
    clock = FakeClock()
    with opened(tmp_path, "claude-code", clock) as memory:
        session = memory.session("monday")
        session.append("user", "We decided to use Postgres for billing, because of its exclusion constraints.")
        session.finish()
    clock.advance(days=1)
    for agent, style in (("gemini", "markdown"), ("codex", "text"), ("opencode", "text"), ("claude-code", "xml")):
        with opened(tmp_path, agent, clock) as memory:
            assert "Postgres for billing" in str(memory.briefing("which database for billing", style=style))


def test_a_critical_warning_is_always_visible(tmp_path: Path) -> None:
    """C1, C16: whatever is asked, in every style, and within the smallest sensible budget."""
    clock = FakeClock()
    with opened(tmp_path, "claude-code", clock) as memory:
        run(memory, f"/remember {WARNING}")
        run(memory, "/pin auth middleware")
        for number in range(50):
            memory.remember(f"The weather report number {number} mentions {number * 31} clouds")
        for style in STYLES:
            for prompt in ("weather report clouds", "anything else", ""):
                assert WARNING in str(memory.briefing(prompt, style=style, budget_tokens=200))


def test_a_person_decides_what_is_remembered_and_forgotten(tmp_path: Path) -> None:
    """C1: explicit control."""
    with opened(tmp_path, "claude-code", FakeClock()) as memory:
        run(memory, "/remember The staging cluster is called Harbor")
        run(memory, "/forget harbor")
        assert "Harbor" not in str(memory.briefing("staging cluster"))
        assert len(memory.recall("harbor")) == 0
        memory.undo()
        assert "Harbor" in str(memory.briefing("staging cluster"))
        run(memory, "/memory auto off")
        session = memory.session("s1")
        session.append("user", "We decided to use Postgres for billing, because of its exclusion constraints.")
        session.finish()
        assert len(memory.recall("postgres billing")) == 0
        assert str(memory.briefing("staging cluster")) == ""


@pytest.mark.parametrize("budget", [50, 200, 1000])
def test_the_prompt_is_not_polluted(tmp_path: Path, budget: int) -> None:
    """C1: no more tokens than were given, and nothing that does not belong to the question when nothing does."""
    with opened(tmp_path, "claude-code", FakeClock()) as memory:
        memory.remember("The brochure is printed in Antwerp")
        assert str(memory.briefing("zeppelin maintenance", budget_tokens=budget)) == ""
        for number in range(50):
            memory.remember(f"The harbor rule number {number} concerns the number {number * 31}")
        assert memory.briefing("harbor rule", budget_tokens=budget).tokens <= budget
