"""Three people share a project through one bare remote, in any order of edits, pushes and pulls."""

import random
import tempfile
from pathlib import Path

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.builders import context_of
from tests.conftest import IS_LONG
from tests.folders import needs_git
from tests.memory.team_clones import Clone, Team

PEOPLE = ("ann", "bob", "cleo")
STEPS = ("say", "say privately", "share", "revise", "revise", "forget", "unshare", "push", "push", "pull", "pull")

pytestmark = needs_git


def text_of(number: int) -> str:
    """Return a statement that is like no other one."""
    dice = random.Random(number)
    words = ("".join(dice.choices("bcdfghklmnprst", k=3)) + dice.choice("aeiou") + str(number) for _ in range(5))
    return f"Statement {number}: {' '.join(words)}"


class Walk:
    """One random walk, and what must be true in the end."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.said = 0
        self.written: dict[str, Clone] = {}  # text → whose store must have it
        self.replaced: set[str] = set()
        self.private: set[str] = set()  # texts that were never shared
        self.forgotten: dict[str, set[str]] = {name: set() for name in PEOPLE}
        self.withdrawn: set[str] = set()  # texts of statements that somebody took back

    def new_text(self, clone: Clone) -> str:
        self.said += 1
        text = text_of(self.said)
        self.written[text] = clone
        return text

    def step(self, clone: Clone, action: str, choice: int) -> None:
        self.team.clock.advance(seconds=7)
        mine = sorted(clone.memory.list(limit=1_000), key=lambda one: one.id)
        if not mine:
            clone.says(self.new_text(clone))
            return
        one = mine[choice % len(mine)]
        is_shared = one.ref in shared_refs(clone)
        if action == "say":
            clone.says(self.new_text(clone))
        elif action == "say privately":
            text = self.new_text(clone)
            self.private.add(text)
            clone.says(text, shares=False)
        elif action == "share" and not is_shared:
            self.private.discard(one.content)
            clone.memory.team.share(one.ref)
        elif action == "revise":
            text = self.new_text(clone)
            self.replaced.add(one.content)
            if not is_shared:
                self.private.add(text)
            clone.memory.revise(one.ref, text)
        elif action in ("forget", "unshare") and is_shared:
            self.withdrawn.add(one.uid)
            if action == "unshare" and one.source.origin == "user":
                clone.memory.team.unshare(one.ref)
            else:
                self.forgotten[clone.name].add(one.content)  # it stays away from this person, by its words
                clone.memory.forget(one.ref)
        elif action in ("push", "pull"):
            getattr(clone.memory.team, action)()

    def settle(self) -> None:
        """Let everybody push and pull until nothing moves."""
        for _ in range(3):
            for clone in self.team.clones:
                self.team.clock.advance(seconds=7)
                clone.memory.team.push()
        for clone in self.team.clones:
            assert clone.memory.team.push().pushed == []


def shared_refs(clone: Clone) -> set[str]:
    return set(clone.memory.team.status().shared)


def shared_texts(clone: Clone) -> set[str]:
    refs = shared_refs(clone)
    return {one.content for one in clone.memory.list(limit=1_000) if one.ref in refs}


def all_texts(clone: Clone) -> set[str]:
    """Every text in the store, on any shelf, and every text that the journal has of it."""
    [storage] = [one for one in context_of(clone.memory).readable() if one.space != "global"]
    with storage.reading() as reader:
        steps = [(event.changed or {}).get("content", (None, None)) for event in reader.events()]
    return {text for step in steps for text in step if text}


@needs_git
@settings(max_examples=60 if IS_LONG else 3, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(STEPS), st.integers(0, 99)), min_size=12, max_size=40)
)
def test_all_stores_converge_nothing_is_lost_and_nothing_unshared_leaves(steps: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        team = Team(Path(folder), PEOPLE)
        try:
            walk = Walk(team)
            by_name = {clone.name: clone for clone in team.clones}
            for name, action, choice in steps:
                walk.step(by_name[name], action, choice)
            walk.settle()
            shared = set().union(*map(shared_texts, team.clones))
            for clone in team.clones:  # also where another memory of the person says the same
                assert shared - walk.forgotten[clone.name] <= set(clone.texts()), "the stores do not converge"
            for text, clone in walk.written.items():
                assert text in all_texts(clone), "the store of its author has lost a text"
                is_current = text not in walk.replaced and text not in walk.private
                if is_current and not walk.withdrawn:
                    assert text in shared, "a shared text is not live for everybody"
            sent = team.blobs()
            assert not [text for text in walk.private if text in sent], "a private text has left its clone"
        finally:
            team.close()
