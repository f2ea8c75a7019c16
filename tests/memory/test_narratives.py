"""A5: a memory and the story it was written in, both ways."""

from pathlib import Path

import pytest

import kept
from tests.builders import FakeClock


@pytest.mark.parametrize("kind", ["inmemory", "sqlite"])
def test_a_story_knows_its_memories_and_a_memory_its_story(kind: str, tmp_path: Path) -> None:
    """A5: narrative_id and task_id link a memory to where it comes from, and back."""
    place = ":memory:" if kind == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as memory:
        story = memory.narrative("the-migration")
        first = story.remember("We copy the tables first", kind="decision")
        story.remember("The old server stays for a week", source=kept.Source(origin="user", task="TASK-7"))
        memory.remember("Not part of it")
        assert [m.content for m in story.memories()] == ["We copy the tables first", "The old server stays for a week"]
        assert memory.narrative(of=first.ref or "").id == "the-migration"
        with pytest.raises(kept.NotFound, match="Memory 3 is not part of a narrative"):
            memory.narrative(of=3)
        with pytest.raises(kept.InvalidInput, match="needs its id, or a memory of it"):
            memory.narrative()
        assert memory.get(2).source.task == "TASK-7"
        with pytest.raises(kept.InvalidInput):
            memory.narrative("../elsewhere")


def test_the_story_under_way_is_attached_by_itself_and_seen_by_other_processes(tmp_path: Path) -> None:
    """A5: in one process, in another one that opens the store later, and no longer after its end."""
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings()) as memory:
        with memory.narrative("the-migration"):
            first = memory.remember("We copy the tables first").memory
            with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings()) as other:
                second = other.remember("The old server stays for a week").memory
        after = memory.remember("Something else").memory
    assert first is not None
    assert second is not None
    assert after is not None
    assert [one.source.narrative for one in (first, second, after)] == ["the-migration", "the-migration", None]
