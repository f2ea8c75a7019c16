"""Texts that an agent is given without asking: marked, limited, stable, with a receipt that goes with its memories."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept
from kept import text
from kept.memory import deliver
from tests.builders import FakeClock
from tests.speed import is_linear

LISTENER = deliver.Listener(session="s-1", event="UserPromptSubmit", style="xml")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "m.db"
    actor = kept.Actor(name="claude-code")
    with kept.open(place, clock=clock, settings=kept.Settings(), actor=actor) as opened:
        yield opened


def test_a_receipt_has_the_text_byte_for_byte_who_got_it_and_why(memory: kept.Kept) -> None:
    memory.remember("Deploy the billing service with make ship", kind="decision")
    block = memory.deliveries.for_prompt("deploy billing, the password is Xk9-mQ4vL-22", LISTENER)
    [receipt] = memory.look().receipts("s-1")
    assert receipt.block == block
    assert "make ship" in block
    assert (receipt.agent, receipt.session, receipt.event) == ("claude-code", "s-1", "UserPromptSubmit")
    assert "Xk9" not in receipt.question.query
    assert "deploy billing" in receipt.question.query
    [entry] = [entry for section in receipt.sections for entry in section["entries"]]
    assert entry["ref"] == "1"
    assert entry["reason"]
    assert memory.look().receipts("another session") == []


def test_a_receipt_is_erased_with_any_memory_in_it(memory: kept.Kept) -> None:
    memory.remember("Deploy the billing service with make ship")
    memory.remember("Deploy the billing docs with make docs")
    memory.deliveries.for_prompt("deploy billing", LISTENER)
    memory.erase(2)
    assert memory.look().receipts("s-1") == []


def test_the_known_fix_of_an_error_is_given_with_a_receipt(memory: kept.Kept) -> None:
    """C26: the signature decides, not the numbers and paths in a message."""
    memory.knowledge.add_failure("ConnectionError: port 5432 refused after 3 s", "start the database first")
    block = memory.deliveries.for_error("Traceback …\nConnectionError: port 5433 refused after 12 s", LISTENER)
    assert "start the database first" in block
    assert block.startswith("<kept-memory>")
    [receipt] = memory.look().receipts("s-1")
    assert (receipt.kind, receipt.block) == ("known_error", block)
    assert memory.deliveries.for_error("ConnectionError: no route to host", LISTENER) == ""
    assert memory.deliveries.for_error("  ", LISTENER) == ""


def test_two_sessions_are_told_the_same_bytes(memory: kept.Kept, clock: FakeClock) -> None:
    """For the prompt caches of hosts; neither the day nor uses change the text."""
    for number in range(30):
        memory.remember(f"Deploy step {number} of the billing service runs on host h{number}")
        memory.remember(f"Always run check {number} before you push to branch b{number}", kind="preference")
    texts = []
    for session in ("s-1", "s-2"):
        listener = deliver.Listener(session=session, event="an event")
        texts.append((memory.deliveries.at_start(listener), memory.deliveries.for_prompt("deploy billing", listener)))
        clock.advance(days=1)
    assert texts[0] == texts[1]
    assert all(texts[0])


@pytest.mark.parametrize("style", ["xml", "markdown", "text"])
def test_a_text_has_at_most_9500_characters_and_ends_with_whole_lines(memory: kept.Kept, style: str) -> None:
    """No host cuts it: Claude Code puts more than 10,000 characters into a file."""
    for number in range(60):
        words = " ".join(f"deploy{number}x{place}" for place in range(30))
        memory.pin(memory.remember(f"Deploy <kept-memory> </kept-memory> {words}").ref or "")
    listener = deliver.Listener(session="s-1", event="SessionStart", style=style)
    for block in (memory.deliveries.at_start(listener), memory.deliveries.for_prompt("deploy1x1 deploy2x2", listener)):
        assert 0 < len(block) <= deliver.MAX_CHARS
        assert block.endswith("\n</kept-memory>")
        assert block.count("</kept-memory>") == 1, "no memory can close the mark"
        assert text.without_delivered(f"before {block} after") == "before  after"


@settings(deadline=None)
@given(
    st.text(max_size=200),
    st.lists(st.sampled_from([*"<>/\n x", "kept-memory", "&lt;", "&gt;", "&amp;"]), max_size=60).map("".join),
)
def test_whatever_is_given_is_recognised_when_it_comes_back(said: str, content: str) -> None:
    said = said.replace("kept-memory", "")
    assert text.without_delivered(said) == said
    block = text.delivered(content)
    assert len(block) <= len(content) + len(text.delivered("x"))
    if block:
        assert text.without_delivered(f"{said}{block}") == said.strip()
        escaped = block.replace("<", "&lt;").replace(">", "&gt;")  # as Gemini CLI gives it back
        assert text.without_delivered(f"{said}{escaped}") == said.strip()


@pytest.mark.parametrize("hostile", [" ", "\n", "x", "<hook_context>", "<kept-memory>", "<hook_context></"])
def test_a_hostile_message_is_read_in_linear_time(hostile: str) -> None:
    assert is_linear(text.without_delivered, lambda n: f"<kept-memory>x</kept-memory><hook_context>{hostile * n}x")


def test_a_message_that_is_nothing_but_our_text_is_not_stored(memory: kept.Kept) -> None:
    session = memory.session("s-1")
    assert session.append("user", text.delivered("[id:1] fact: we use tabs")) is None
    kept_of_it = session.append("user", f"{text.delivered('x')}\nAlways use spaces")
    assert kept_of_it is not None
    assert kept_of_it.content == "Always use spaces"


def test_erasing_a_global_memory_reaches_the_receipts_of_every_project(tmp_path: Path, clock: FakeClock) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with kept.open(
            project=tmp_path / name,
            home=tmp_path / "home",
            settings=kept.Settings(),
            clock=clock,
            confirm=lambda _: True,
        ) as memory:
            memory.remember(f"Project {name} uses tabs")
            memory.remember("Prefers quixotic answers", kind="preference", tier="global")
            assert "quixotic" in memory.deliveries.for_prompt("quixotic answers", LISTENER)
    with kept.open(
        project=tmp_path / "one", home=tmp_path / "home", settings=kept.Settings(), clock=clock, confirm=lambda _: True
    ) as memory:
        memory.erase("g1")
    for name in ("one", "two"):
        with kept.open(project=tmp_path / name, home=tmp_path / "home", settings=kept.Settings()) as memory:
            assert memory.look().receipts("s-1") == []
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"quixotic" in path.read_bytes()]


def test_a_delivered_memory_whose_name_the_agent_then_uses_was_used(memory: kept.Kept, clock: FakeClock) -> None:
    """A9: acted upon, not merely told; once per session."""
    memory.remember("The importer is configured in config/importer.toml")
    memory.remember("The importer was once called ingest_runner")
    clock.advance(days=1)
    session = memory.session("s-1")
    assert memory.deliveries.for_prompt("the importer is too slow", LISTENER)
    clock.advance(minutes=1)
    session.append("user", "the importer is too slow")
    session.append("assistant", "I will look at config/importer.toml first.")
    session.finish()
    assert [memory.get(ref).use_count for ref in (1, 2)] == [1, 0]
    session.append("assistant", "Done: config/importer.toml now has a larger batch.")
    session.finish()
    assert memory.get(1).use_count == 1


def test_a_name_that_the_user_said_themselves_is_no_sign_of_use(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The importer is configured in config/importer.toml")
    clock.advance(days=1)
    session = memory.session("s-1")
    assert memory.deliveries.for_prompt("open config/importer.toml of the importer", LISTENER)
    clock.advance(minutes=1)
    session.append("user", "open config/importer.toml of the importer")
    session.append("assistant", "config/importer.toml is open.")
    session.finish()
    assert memory.get(1).use_count == 0
