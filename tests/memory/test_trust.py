"""Trust: whose words a text is made of. Every message and every memory says so, and only a person raises it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.exchange.transcripts import brain, claude_code, codex, openclaw
from kept.memory.opening import open as open_memory
from kept.model import TRUSTS, Message, MessageRole, Source, Trust, least
from kept.projects.files import to_line
from tests.builders import START, FakeClock

FACT = "The nightly import of the ledger runs at four o'clock on the reporting host."


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(home=tmp_path / "home", project="p", clock=clock) as opened:
        yield opened


@pytest.fixture
def person(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    """The same project, opened by a person."""
    with open_memory(home=tmp_path / "home", project="p", clock=clock, origin="user") as opened:
        yield opened


# ---- whose words ----


def test_trust_is_ordered() -> None:
    assert TRUSTS == ("unknown", "tool", "agent", "user")
    assert least("user", "tool", "agent") == "tool"
    assert least("user") == "user"


@pytest.mark.parametrize(
    ("role", "trust"),
    [("user", "user"), ("assistant", "agent"), ("tool_call", "agent"), ("tool_result", "tool"), ("summary", "agent")],
)
def test_a_message_has_its_speakers_trust_and_never_more(role: MessageRole, trust: Trust) -> None:
    assert Message(id="1", role=role).trust == trust
    assert Message(id="1", role=role, trust="unknown").trust == "unknown"
    assert Message(id="1", role=role, trust="user").trust == trust


@pytest.mark.parametrize(
    ("origin", "trust"),
    [("user", "user"), ("agent", "agent"), ("conversation", "agent"), ("import", "agent"), ("tool", "tool")],
)
def test_a_memory_has_the_trust_of_its_source(memory: kept.Kept, origin: str, trust: Trust) -> None:
    receipt = memory.remember(FACT, source=Source(origin=origin))  # type: ignore[arg-type]
    assert receipt.memory is not None
    assert receipt.memory.trust == memory.get(receipt.ref or "").trust == trust


def test_the_library_writes_as_agent_and_a_person_as_user(memory: kept.Kept, person: kept.Kept) -> None:
    assert memory.get(memory.remember(FACT).ref or "").trust == "agent"
    assert person.get(person.remember("The person's own words.").ref or "").trust == "user"


def test_a_draft_can_claim_less_than_its_source_and_never_more(memory: kept.Kept) -> None:
    tool = Source(origin="tool")
    less, more = memory.remember_many(
        [
            kept.Draft(content=FACT, trust="unknown"),
            kept.Draft(content="The page says that every deploy needs a ticket.", trust="user", source=tool),
        ]
    )
    assert less.memory is not None
    assert less.memory.trust == "unknown"
    assert more.memory is not None
    assert more.memory.trust == "tool"
    with pytest.raises(kept.InvalidInput, match="Unknown trust 'boss'"):
        memory.remember_many([kept.Draft(content=FACT, trust="boss")])  # type: ignore[arg-type]


def test_messages_keep_their_trust_in_the_store_in_a_pack_and_in_the_mirror(
    memory: kept.Kept, clock: FakeClock, tmp_path: Path
) -> None:
    session = memory.session("s1")
    session.extend([Message(id="1", role="user", content="Do it", trust="agent"), Message(id="2", role="user")])
    assert [message.trust for message in session.messages()] == ["agent", "user"]
    (mirror,) = (tmp_path / "home").rglob("sessions/s1.jsonl")
    lines = mirror.read_bytes().splitlines()
    assert [json.loads(line).get("trust") for line in lines] == ["agent", None]
    assert [message.trust for message in brain(lines).messages] == ["agent", "user"]
    clock.advance(days=40)
    memory.store.pack_sessions()
    assert [message.trust for message in session.messages()] == ["agent", "user"]
    with pytest.raises(kept.InvalidInput, match="Unknown trust"):
        session.extend([Message(id="3", role="user", trust="boss")])  # type: ignore[arg-type]


def test_a_transcript_line_names_trust_only_where_the_role_does_not() -> None:
    said = Message(id="1", role="tool_result", content="ok", at=START)
    assert "trust" not in to_line(said)
    assert to_line(kept.model.replace(said, trust="unknown"))["trust"] == "unknown"


def test_an_export_names_the_trust_of_each_memory(memory: kept.Kept) -> None:
    memory.remember(FACT, source=Source(origin="tool"))
    (exported,) = memory.store.export()
    assert exported.trust == "tool"


# ---- transcripts: only a person's own message is the user's ----


def lines(*records: dict[str, object]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def test_the_prompt_of_a_sidechain_is_an_agents() -> None:
    said = {"type": "user", "uuid": "u1", "message": {"content": "Always use tabs."}}
    (main,) = claude_code(lines(said)).messages
    (side,) = claude_code(lines({**said, "isSidechain": True})).messages
    assert (main.trust, side.trust) == ("user", "agent")


def test_the_prompts_of_a_codex_sub_agent_are_an_agents() -> None:
    item = {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Always use tabs."}}
    started = {"type": "session_meta", "payload": {"id": "a", "parent_thread_id": "b"}}
    forked = {"type": "session_meta", "payload": {"id": "a", "forked_from_id": "b"}}
    assert [codex(lines(meta, item)).messages[0].trust for meta in (started, forked)] == ["agent", "user"]


@pytest.mark.parametrize("role", ["webhook", "extension", "", None, "USER"])
def test_an_unknown_role_is_never_the_user(role: str | None) -> None:
    (message,) = openclaw(lines({"type": "message", "message": {"role": role, "content": "Use tabs."}})).messages
    assert (message.role, message.trust) == ("assistant", "unknown")


def test_what_an_extension_puts_in_is_never_the_users() -> None:
    put_in = {"type": "custom_message", "role": "user", "content": "Always use tabs."}
    (message,) = openclaw(lines(put_in)).messages
    assert message.trust == "unknown"
