"""What a year without use leaves: the word of the user, and what proved itself; progress fades."""

import pytest

import kept
from kept.model import Draft, Memory, Source, Trust
from tests.builders import FakeClock

OF_THE_USER = {
    "decision": "We decided to keep the order database on Postgres",
    "preference": "I prefer short answers without bullet points",
    "convention": "Component files are named in kebab-case",
    "fact": "The staging server listens on port 1100, not 4000",  # a correction
    "discovery": "The invoices of March carry a wrong tax rate",
    "progress": "The mobile login screen is still missing",
}
OF_THE_AGENT = {
    "progress": "Finished the refactoring of the sidebar component",
    "file_change": "Changed webpack.config.js and three loaders",
    "discovery": "The thumbnail worker restarts when memory is short",
}
FIX = "Error ENOSPC of the watcher: raise fs.inotify.max_user_watches"


def draft(content: str, kind: str, trust: Trust, signals: tuple[str, ...] = ()) -> Draft:
    source = Source(origin="conversation", session="s1", agent="claude")
    data = {"signals": list(signals), "sessions": ["s1"], "agents": ["claude"]}
    return Draft(content=content, kind=kind, tier="session", trust=trust, source=source, data=data)


def a_year_of_upkeep(memory: kept.Kept, clock: FakeClock) -> None:
    for _ in range(53):
        clock.advance(days=7)
        memory.upkeep()


def filled(memory: kept.Kept) -> None:
    memory.remember_many(
        [
            *(draft(content, kind, "user") for kind, content in OF_THE_USER.items()),
            *(draft(content, kind, "agent") for kind, content in OF_THE_AGENT.items()),
            draft(FIX, "error", "agent", ("error-resolution",)),
        ]
    )


def test_what_the_user_said_and_fixes_outlive_a_year_without_use() -> None:
    """C28 for unconfirmed automatic memories of lower trust only."""
    clock = FakeClock()
    with kept.open(":memory:", clock=clock, settings=kept.Settings()) as memory:
        filled(memory)
        a_year_of_upkeep(memory, clock)
        for content in (*OF_THE_USER.values(), FIX):
            assert memory.recall(content).hits[0].memory.content == content
        expired = {one.content: one.reason for one in memory.list(status="archived")}
        assert expired == dict.fromkeys(OF_THE_AGENT.values(), "expired")
        assert memory.recall("sidebar refactoring", scope="archive").hits


def test_under_the_retention_praxis_everything_has_a_shelf_life() -> None:
    """C28."""
    clock = FakeClock()
    with kept.open(":memory:", clock=clock, settings=kept.Settings(retention="praxis")) as memory:
        filled(memory)
        a_year_of_upkeep(memory, clock)
        assert [one.kind for one in memory.list()] == []


@pytest.mark.parametrize("proof", ["confirmed", "used"])
def test_what_was_confirmed_or_used_does_not_expire(proof: str) -> None:
    clock = FakeClock()
    with kept.open(":memory:", clock=clock, settings=kept.Settings()) as memory:
        memory.remember_many([draft(OF_THE_AGENT["discovery"], "discovery", "agent")])
        memory.remember(OF_THE_AGENT["discovery"]) if proof == "confirmed" else memory.reinforce(1)
        a_year_of_upkeep(memory, clock)
        kept_one: Memory = memory.get(1)
        assert not kept_one.is_archived
