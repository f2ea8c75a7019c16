"""Promotion: what speaks for a finding, and who sees it before it is promoted."""

from collections.abc import Callable, Iterator

import pytest

import kept
from kept.model import Draft, Memory, Receipt, Source, Trust
from tests.builders import FakeClock

FINDING = "The importer skips empty lines because the parser expects a header in src/parse.py"
Opened = Callable[[str], kept.Kept]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def under(clock: FakeClock) -> Iterator[Opened]:
    """A memory under a preset."""
    opened: list[kept.Kept] = []

    def open_under(preset: str) -> kept.Kept:
        opened.append(kept.open(":memory:", clock=clock, settings=kept.Settings(preset=preset)))
        return opened[-1]

    yield open_under
    for memory in opened:
        memory.close()


def found(
    memory: kept.Kept, session: str, agent: str = "claude", *, content: str = FINDING, trust: Trust = "agent"
) -> Receipt:
    """A finding, as a session stores it."""
    draft = Draft(
        content=content,
        kind="discovery",
        tier="session",
        trust=trust,
        source=Source(origin="conversation", session=session, agent=agent),
        data={"signals": [], "sessions": [session], "agents": [agent]},
    )
    return memory.remember_many([draft])[0]


def finding(memory: kept.Kept) -> Memory:
    return memory.get(1)


@pytest.mark.parametrize("again", [FINDING, FINDING.replace("The importer", "The importer now")])
def test_the_same_finding_in_sessions_of_several_agents_is_promoted(under: Opened, again: str) -> None:
    """C8: multi-session 2 and multi-agent 1, whichever session ends last, word for word or nearly so."""
    memory = under("balanced")
    found(memory, "s1", "claude")
    found(memory, "s2", "codex", content=again)
    assert (finding(memory).tier, finding(memory).status) == ("project", "candidate")
    assert (finding(memory).data or {})["sessions"] == ["s1", "s2"]
    assert len(memory.list()) == 1


def test_fewer_points_than_the_preset_asks_for_promote_nothing(under: Opened) -> None:
    """C5: conservative asks for 4, and two sessions of two agents are 3."""
    memory = under("conservative")
    found(memory, "s1", "claude")
    found(memory, "s2", "codex")
    assert finding(memory).tier == "session"


def test_a_session_that_repeats_itself_is_no_evidence(under: Opened) -> None:
    memory = under("balanced")
    found(memory, "s1")
    before = finding(memory)
    found(memory, "s1")
    assert finding(memory) == before


def test_text_of_a_tool_never_promotes_itself(under: Opened) -> None:
    memory = under("aggressive")
    for number in range(4):
        found(memory, f"s{number}", f"agent {number}", trust="tool")
    assert finding(memory).tier == "session"


def test_a_pin_speaks_for_a_finding_and_promotes_it(under: Opened) -> None:
    """C8: explicit-pin 5."""
    memory = under("conservative")
    found(memory, "s1")
    pinned = memory.pin(1)
    assert (pinned.tier, pinned.status) == ("project", "pinned")
    assert "explicit-pin" in (pinned.data or {})["signals"]


def test_manual_promotes_nothing_and_confirms_nothing(under: Opened, clock: FakeClock) -> None:
    """C5: only a person does."""
    memory = under("manual")
    for number in range(4):
        found(memory, f"s{number}", f"agent {number}")
    clock.advance(days=2)
    memory.upkeep()
    assert (finding(memory).tier, finding(memory).status) == ("session", "candidate")
    assert finding(memory).use_count > 0
    assert memory.pin(1).status == "pinned"


@pytest.mark.parametrize(
    ("preset", "is_seen"), [("balanced", True), ("aggressive", True), ("conservative", False), ("manual", False)]
)
def test_the_preset_says_whether_others_see_what_is_not_promoted(under: Opened, preset: str, is_seen: bool) -> None:
    """Recall, briefings with a prompt, without one, and for a file; its own session always sees it."""
    memory = under(preset)
    found(memory, "s1")
    draft = Draft(
        content="The exporter writes the header in src/export.py because Excel needs it, as the importer does",
        tier="session",
        files=("src/export.py",),
        source=Source(origin="extraction", session="s1"),
    )
    memory.remember_many([draft])
    query = "importer header"
    seen = ["1", "2"] if is_seen else []
    assert sorted(hit.ref for hit in memory.recall(query)) == seen
    assert sorted(hit.ref for hit in memory.recall(query, session="s2")) == seen
    assert sorted(hit.ref for hit in memory.recall(query, session="s1")) == ["1", "2"]
    for prompt, files in ((query, ()), ("", ()), ("something else entirely", ("src/export.py",))):
        text = str(memory.briefing(prompt, session="s2", files=files))
        assert ("header" in text) == is_seen
        assert ("unconfirmed candidate" in text) == is_seen


def test_what_is_promoted_pinned_or_confirmed_is_seen_under_every_preset(under: Opened) -> None:
    memory = under("conservative")
    memory.remember("The importer is started by cron", tier="session")
    found(memory, "s1")
    memory.promote(2)
    assert len(memory.recall("importer")) == 2
