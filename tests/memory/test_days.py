"""What is counted by day: recalls, refusals by reason, redactions by kind. Never what was refused or redacted."""

import kept
from tests.builders import FakeClock


def test_recalls_refusals_and_redactions_are_counted_on_their_day() -> None:
    clock = FakeClock()
    with kept.open(":memory:", clock=clock) as memory:
        first = f"{clock():%Y-%m-%d}"
        memory.remember("The build runs on Node 22.")
        memory.recall("build")
        memory.remember("ok", source=kept.Source(origin="conversation"))
        memory.remember("The mail of the auditor is anna.auditor@example.com today.")
        clock.advance(days=1)
        memory.recall("node")
        memory.recall("node")
        session = memory.session("s1")
        session.append("user", "Ask anna.auditor@example.com and ben.auditor@example.com about it.")
        days = memory.status()["spaces"][0]["days"]
    assert days[first] == {"recalled": 1, "refused:too_short": 1, "redacted:email": 1}
    assert days[f"{clock():%Y-%m-%d}"] == {"recalled": 2, "redacted:email": 2}
