"""Rejections and answers about the past in a database, as in a file."""

from pathlib import Path

import pytest

import kept
from kept.model import Draft, Origin, Source
from tests.builders import FakeClock
from tests.postgres.server import emptied, shared_database

SAID = "Deploys of the shop go out on Fridays at noon."
NEIGHBOUR = "Deploys of the warehouse go out on Mondays."


@pytest.fixture
def url() -> str:
    return emptied(shared_database())


def test_a_forgotten_statement_stays_away_and_is_known_for_the_past(url: str, tmp_path: Path) -> None:
    clock = FakeClock()

    def opened(origin: Origin, name: str) -> kept.Kept:
        actor = kept.Actor(name=name)
        return kept.open(url, project="web-app", home=tmp_path, hosted=True, clock=clock, origin=origin, actor=actor)

    with opened("user", "Ana") as person:
        person.remember(NEIGHBOUR)
        person.remember(SAID)
        at = clock.advance(days=1)
        clock.advance(days=1)
        person.forget(2)
    with opened("agent", "codex") as agent:
        tool = Source(origin="extraction", agent="claude")
        [receipt] = agent.remember_many([Draft(content=SAID, source=tool, importance=0.9)])
        assert (receipt.outcome, receipt.reason) == ("refused", "rejected")
        assert agent.remember("On Fridays at noon, deploys of the shop go out.").outcome == "candidate"
        assert [hit.content for hit in agent.recall("deploys shop warehouse noon")] == [NEIGHBOUR]
        assert SAID in [hit.content for hit in agent.recall("deploys shop warehouse noon", as_of=at)]
    with opened("user", "Ana") as person:
        assert person.remember(SAID).outcome == "stored"
        person.undo()
        assert SAID not in [hit.content for hit in person.recall("deploys shop noon")]
        person.erase(2)
        assert SAID not in [hit.content for hit in person.recall("deploys shop warehouse noon", as_of=at)]
