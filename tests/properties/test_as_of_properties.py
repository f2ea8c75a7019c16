"""Properties of `as_of`: the journal gives back the memory of any moment."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.builders import FakeClock

import kept

SUBJECTS = "deploy login cache token replica billing queue search".split()
VALUES = "Tuesday Thursday Redis Postgres green staging eleven fifteen".split()
STEPS, MOMENTS = 140, 50
QUESTIONS = ("deploy Tuesday", "cache Redis token", "billing queue")


def statement(random: Random) -> str:
    subject, other = random.sample(SUBJECTS, 2)
    return f"The {subject} job of {other} uses {random.choice(VALUES)} since build {random.randrange(40)}"


class History:
    """A memory with a long random past: one step is one call, or a small conversation."""

    def __init__(self, memory: kept.Kept, clock: FakeClock, random: Random) -> None:
        self.memory, self.clock, self.random, self.n_sessions = memory, clock, random, 0

    def step(self) -> None:
        acts: list[Callable[[], Any]] = [self.remember, self.remember, self.change, self.change, self.restore]
        acts += [self.undo, self.alias, self.settle, self.talk, self.task, self.memory.upkeep]
        with suppress(kept.KeptError):  # it may be archived, undone or settled already
            self.random.choice(acts)()
        self.clock.advance(hours=self.random.randrange(1, 60))

    def remember(self) -> None:
        tier = self.random.choice(("project", "project", "global"))
        pin = self.random.random() < 0.1
        self.memory.remember(statement(self.random), tier=tier, pin=pin, kind=self.random.choice(("decision", "fact")))

    def change(self) -> None:
        live = self.memory.list(limit=500)
        if not live:
            return
        ref = self.random.choice(live).ref
        acts = (
            self.memory.forget,
            self.memory.reinforce,
            self.memory.pin,
            self.memory.demote,
            lambda ref: self.memory.revise(ref, statement(self.random)),
        )
        self.random.choice(acts)(ref)

    def restore(self) -> None:
        gone = self.memory.list(status="forgotten", limit=50)
        if gone:
            self.memory.restore(self.random.choice(gone).ref)

    def undo(self) -> None:
        self.memory.undo()

    def alias(self) -> None:
        word = self.random.choice(SUBJECTS)
        if self.random.random() < 0.5:
            self.memory.aliases.add(word, [self.random.choice(VALUES)])
        else:
            self.memory.aliases.remove(word)

    def settle(self) -> None:
        for conflict in self.memory.conflicts()[:1]:
            self.memory.resolve(conflict.ref, keep=conflict.left)

    def talk(self) -> None:
        self.n_sessions += 1
        session = self.memory.session(f"s{self.n_sessions}")
        session.append("user", f"We decided that {statement(self.random)}, always do it like that.")
        session.append("assistant", "Done.")
        session.finish()

    def task(self) -> None:
        self.memory.task(f"task {self.random.randrange(5)}", description=statement(self.random))


def answers(memory: kept.Kept, as_of: datetime | None = None) -> list[Any]:
    """All that is answered. Which near misses are named last depends on how a storage rounds its ranks."""
    recalled = [memory.recall(each, as_of=as_of) for each in QUESTIONS]
    recalled.append(memory.recall("build deploy", scope="archive", as_of=as_of))
    recalled.append(memory.recall("build deploy", scope="sessions", as_of=as_of))
    told = [
        (
            [(hit.ref, hit.content, hit.score, hit.matched, hit.memory.status) for hit in one.hits],
            [pin.ref for pin in one.pinned],
            one.conflicts,
            one.words,
            one.confidence,
        )
        for one in recalled
    ]
    return [*told, memory.briefing("deploy Tuesday", as_of=as_of).text, memory.briefing(as_of=as_of).text]


@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=1,
    deadline=None,
    phases=[Phase.generate],  # to shrink a seed says nothing
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_an_answer_about_the_past_is_that_of_a_store_that_stopped_then(tmp_path: Path, seed: int) -> None:
    """For 50 random moments of a long random history, recall and briefings as of then are what they were then."""
    random, clock = Random(seed), FakeClock()
    folder = tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    chosen = set(random.sample(range(STEPS), MOMENTS))
    by_hand = kept.Settings(auto_upkeep=False)  # else a recall changes the store after its answer, at the same moment
    with kept.open(project=folder, home=folder / "home", clock=clock, settings=by_hand) as memory:
        history, known = History(memory, clock, random), {}
        history.remember()
        for number in range(STEPS):
            history.step()
            if number in chosen:
                known[clock.at] = answers(memory)
                clock.advance(seconds=1)
        before = len(memory.history(limit=100_000))
        for at, expected in known.items():
            assert answers(memory, as_of=at) == expected, at
        assert len(memory.history(limit=100_000)) == before
