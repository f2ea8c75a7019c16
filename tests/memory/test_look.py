"""`memory.look()` shows what is there, notes nothing, and asks for access like every verb."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.memory.deliver import Listener
from kept.memory.look import Look
from tests.builders import FakeClock

SETTINGS = kept.Settings(backup_daily=False)
LISTENER = Listener(session="s-1", event="UserPromptSubmit", style="xml")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[kept.Kept]:
    with kept.open(home=tmp_path / "home", project="p", clock=FakeClock(), settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def filled(memory: kept.Kept) -> kept.Kept:
    memory.remember("Use Fastify for the harbor server", kind="decision")
    memory.remember("The harbor server listens on port 5433")
    talk = memory.session("talk", agent="codex")
    talk.append("user", "We decided to use pnpm for the harbor, because npm is slow.")
    talk.append("assistant", "I will.")
    talk.finish()
    return memory


def test_an_empty_project_shows_nothing(memory: kept.Kept) -> None:
    look = memory.look()
    assert (look.live(), look.last_event(), look.project().space) == (0, 0, "")
    assert (look.events(), look.receipts(), look.days(), look.latencies(limit=9)) == ([], [], {}, [])
    assert (look.find(1), look.session("talk"), look.items(limit=9), look.last_briefing()) == (None, None, [], None)
    assert look.event_counts().by_hour == ()
    assert look.searched_files(limit=9).pieces == 0


def test_a_look_leaves_no_trace(filled: kept.Kept) -> None:
    heard: list[kept.Signal] = []
    filled.subscribe(heard.append)
    look = filled.look()
    before = (look.project(), look.receipts(), look.days())
    assert [hit.memory.content for hit in look.search("fastify").hits] == ["Use Fastify for the harbor server"]
    assert look.find(1) is not None
    assert look.counts().live == look.live()
    assert look.session("talk") is not None
    assert heard == []
    assert (look.project(), look.receipts(), look.days()) == before


def test_a_forgotten_memory_is_shown_only_if_asked_for(filled: kept.Kept) -> None:
    filled.forget(2)
    assert filled.look().find(2) is None
    found = filled.look().find(2, forgotten=True)
    assert found is not None
    assert found.is_forgotten
    assert (filled.look().find(99), filled.look().find("no ref")) == (None, None)


def test_counts_are_of_live_memories_by_kind(filled: kept.Kept) -> None:
    filled.remember("A kind of its own", kind="haiku")
    filled.pin(1)
    counts = filled.look().counts()
    assert counts.live == counts.indexed == sum(counts.by_kind.values()) == filled.look().live()
    assert (counts.pinned, counts.by_kind["other"]) == (1, 1)


def test_a_conversation_comes_with_its_findings_and_its_overview(filled: kept.Kept) -> None:
    look = filled.look()
    page = look.session("talk", limit=1)
    assert page is not None
    assert ([one.n for one in page.messages], page.last_number) == ([1], 2)
    assert page.first_said == page.messages[0]
    [finding] = page.findings
    assert "pnpm" in finding.content
    assert look.message_of(finding) == look.message("talk#1") == page.messages[0]
    [overview] = look.overviews(filled.sessions())
    assert (overview.session.name, overview.messages, overview.first_said) == ("talk", 2, page.first_said)
    with pytest.raises(kept.NotFound, match="talk#9"):
        look.message("talk#9")


def test_the_journal_can_be_followed_and_counted(filled: kept.Kept) -> None:
    look = filled.look()
    last = look.last_event()
    filled.pin(1)
    assert [event.action for event in look.events(after=last)] == ["pin"]
    assert look.event_counts(after=last).last_event == look.project().last_event == last + 1
    assert [(action, number) for _, _, action, number in look.event_counts(after=last).by_hour] == [("pin", 1)]
    assert look.event_counts(after=last + 1).by_hour == ()


def test_receipts_say_what_a_session_was_given(filled: kept.Kept) -> None:
    text = filled.deliveries.for_prompt("the harbor server", LISTENER)
    [given] = filled.look().receipts("s-1")
    assert given.block == text
    assert filled.look().last_briefing() == given
    assert filled.look().sessions_given(beginning="s") == ["s-1"]
    assert filled.look().briefing_now(given).text == text


def test_memories_recalled_together_are_linked(filled: kept.Kept) -> None:
    filled.recall("harbor server")
    assert [(other.ref, strength > 0) for other, strength in filled.look().links(1, limit=5)] == [("2", True)]


def test_nobody_looks_into_what_they_may_not_read(filled: kept.Kept, tmp_path: Path) -> None:
    with kept.open(home=tmp_path / "home", project="p", actor=kept.Actor(role="skill"), settings=SETTINGS) as skill:
        look = skill.look()
        for name in ("live", "counts", "project", "last_event", "events", "receipts", "event_counts", "days"):
            with pytest.raises(kept.NotAllowed):
                getattr(look, name)()
        with pytest.raises(kept.NotAllowed):
            look.find(1)


def test_no_storage_or_reader_leaves_a_look() -> None:
    for name, method in inspect.getmembers(Look, inspect.isfunction):
        if not name.startswith("_"):
            answer = str(inspect.signature(method).return_annotation)
            assert not {"Storage", "Reader", "Context"} & set(answer.replace("[", " ").replace("]", " ").split()), name


# Opening for somebody else


def test_changes_made_together_are_undone_together(filled: kept.Kept) -> None:
    with filled.together():
        filled.pin(1)
        filled.forget(2)
    filled.undo()
    assert (filled.get(1).status, filled.get(2).is_forgotten) == ("confirmed", False)


def test_a_person_stands_in_for_the_agent_where_no_database_names_both(tmp_path: Path) -> None:
    actor = kept.Actor(name="claude")
    with kept.open(tmp_path / "m.db", actor=actor, person="Ada", settings=SETTINGS) as memory:
        memory.remember("Ada prefers tabs")
        assert memory.history()[0].actor == "Ada"
        assert (memory.look().person, memory.look().actor.name) == (None, "Ada")


def test_without_global_memory_there_is_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with kept.open(home=home, project="p", actor=kept.Actor(role="admin"), settings=SETTINGS) as memory:
        memory.remember("Prefers tabs", tier="global")
    with kept.open(home=home, project="p", settings=SETTINGS, without_global=True) as memory:
        assert memory.look().find("g1") is None
        assert memory.list() == []
        with pytest.raises(kept.NotAllowed, match="Global memory belongs"):
            memory.remember("For all", tier="global")
        assert memory.remember("For one").outcome == "stored"
    stranger = kept.Actor(role="project", project="project/another")
    bound = kept.open(home=home, project="p", actor=stranger, settings=SETTINGS, without_global=True)
    with bound as memory, pytest.raises(kept.NotAllowed):
        memory.list()
