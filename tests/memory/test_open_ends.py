"""An open end is progress that is kept; it ends when a later session reports it as done."""

from collections.abc import Iterator

import pytest

import kept
from kept.model import Memory
from tests.builders import FakeClock

OPEN = "The Windows job in `ci.yml` still fails because `libusb` has no wheel there, so it is left open."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(":memory:", clock=clock, settings=kept.Settings(auto_upkeep=False)) as opened:
        yield opened


def work(memory: kept.Kept, clock: FakeClock, name: str, *reports: str) -> None:
    clock.advance(days=1)
    session = memory.session(name)
    session.append("user", "go on with the pipeline")
    session.append("tool_call", name="Bash", input={"command": "ls"})
    session.append("tool_result", "src tests")
    for report in reports:
        session.append("assistant", report)
    session.finish()


def open_ends(memory: kept.Kept) -> list[Memory]:
    return [one for one in memory.list(limit=100) if "open" in one.tags]


def test_a_later_session_that_reports_it_as_done_ends_it(memory: kept.Kept, clock: FakeClock) -> None:
    work(memory, clock, "monday", OPEN)
    (found,) = open_ends(memory)
    work(memory, clock, "tuesday", "Fixed: the Windows job in `ci.yml` installs `libusb` from a wheel of our own now.")
    assert open_ends(memory) == []
    ended = memory.get(found.ref)
    assert (ended.status, ended.reason, (ended.data or {})["closed_in"]) == ("archived", "expired", "tuesday")


@pytest.mark.parametrize(
    "report",
    [
        "The Windows job in `ci.yml` with `libusb` still fails, nothing helped so far.",
        "Fixed the colours of the terminal in `theme.py` because they were unreadable.",
        "The job with `libusb` in `ci.yml` is probably fixed by the next release, I have not looked.",
    ],
)
def test_nothing_else_ends_it(memory: kept.Kept, clock: FakeClock, report: str) -> None:
    work(memory, clock, "monday", OPEN)
    uid = open_ends(memory)[0].uid
    work(memory, clock, "tuesday", report)
    assert uid in [one.uid for one in open_ends(memory)]


def test_it_stays_ended_when_its_own_session_goes_on(memory: kept.Kept, clock: FakeClock) -> None:
    work(memory, clock, "monday", OPEN)
    work(memory, clock, "tuesday", "Fixed: the Windows job in `ci.yml` installs `libusb` from a wheel of our own now.")
    work(memory, clock, "monday", "The report is written.")
    assert open_ends(memory) == []
