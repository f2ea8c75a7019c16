"""Guards: who makes them, which calls they refuse, how one gets past them, and how they end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.anchors import ToolCall
from kept.entrypoints.hook.concerns import concerns
from kept.errors import InvalidInput, NotAllowed
from kept.memory.deliver import Listener
from kept.model import CallGuard
from tests.builders import FakeClock, context_of

PUSH = ToolCall(commands=["git push origin main"])
RULE = "Never push to main without asking me"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    """The memory as the person at the command line opens it."""
    (tmp_path / "shop").mkdir()
    with kept.open(
        project=tmp_path / "shop", home=tmp_path / "home", clock=clock, settings=kept.Settings(), origin="user"
    ) as opened:
        yield opened


def as_agent(memory: kept.Kept, tmp_path: Path) -> kept.Kept:
    return kept.open(project=tmp_path / "shop", home=tmp_path / "home", settings=kept.Settings())


def refusal(memory: kept.Kept, call: ToolCall = PUSH, session: str = "s-1") -> str:
    return memory.deliveries.for_action(call, Listener(session=session, event="PreToolUse")).refusal


def modes(memory: kept.Kept) -> list[str]:
    return [one.mode for one in context_of(memory).of_project(CallGuard)]


@pytest.fixture
def ref(memory: kept.Kept) -> str:
    stored = memory.remember(RULE, kind="preference")
    assert stored.ref is not None
    return stored.ref


def test_a_guarded_call_is_refused_once_with_the_rule_and_the_same_call_again_passes(
    memory: kept.Kept, ref: str
) -> None:
    assert refusal(memory) == ""
    memory.guard(ref, "stop")
    reason = refusal(memory)
    assert RULE in reason
    assert reason.startswith("<kept-memory>")
    assert [refusal(memory), refusal(memory)] == ["", ""]
    assert refusal(memory, ToolCall(commands=["git push --force"])), "another call is refused on its own"
    assert refusal(memory, session="s-2"), "another session has not heard it"


def test_tell_ends_a_guard(memory: kept.Kept, ref: str) -> None:
    memory.guard(ref, "stop")
    assert memory.guard(ref, "tell").mode == "tell"
    said = memory.deliveries.for_action(PUSH, Listener(session="s-1", event="PreToolUse"))
    assert said.refusal == ""
    assert RULE in said.text


def test_a_guard_that_is_passed_three_times_only_tells_and_undo_brings_it_back(memory: kept.Kept, ref: str) -> None:
    memory.guard(ref, "stop")
    for number in range(3):
        assert refusal(memory, session=f"s-{number}")
        assert refusal(memory, session=f"s-{number}") == ""
    assert modes(memory) == ["tell"]
    assert refusal(memory, session="later") == ""
    lapse = memory.history()[-1]
    assert [event.action for event in memory.history()[-3:]] == ["override", "override", "guard-lapse"]
    memory.undo(lapse.seq)
    assert modes(memory) == ["stop"]
    assert refusal(memory, session="later")


@pytest.mark.parametrize(
    ("content", "call", "is_refused"),
    [
        ("src/cart/prices.py is generated, never edit it", ToolCall(["src/cart/prices.py"]), True),
        ("src/cart/prices.py is generated, never edit it", ToolCall(["src/cart/basket.py"]), False),
        ("Never run `terraform apply` here", ToolCall(commands=["cd infra && terraform apply"]), True),
        ("Never run `terraform apply` here", ToolCall(commands=["terraform plan"]), False),
        ("src/cart/prices.py is generated, never edit it", ToolCall(["/tmp/other/src/cart/prices.py"]), False),
        ("src/cart/prices.py is generated, never edit it", ToolCall(commands=["cat src/cart/prices.py"]), False),
        ("src/cart/prices.py is generated, never edit it", ToolCall(commands=["echo > src/cart/prices.py"]), True),
        ("Never run `terraform apply` here", ToolCall(commands=["bash -c 'terraform -chdir=a apply'"]), True),
        ("Use pnpm, not npm", ToolCall(commands=["npm install x"]), True),
        ("Use pnpm, not npm", ToolCall(commands=["pnpm install x"]), False),
        ("Ask before each release", ToolCall(commands=["npm publish"]), True),
        (
            "load_prices in src/cart/ and prices.py must stay",
            ToolCall(["src/cart/new.py"], text="load_prices()"),
            False,
        ),
    ],
)
def test_a_guard_refuses_by_file_command_and_activity_not_by_folder_or_symbol(
    memory: kept.Kept, content: str, call: ToolCall, is_refused: bool
) -> None:
    ref = memory.remember(content, kind="warning").ref
    assert ref is not None
    memory.guard(ref, "stop")
    assert bool(refusal(memory, call)) is is_refused


def test_an_agent_can_neither_make_nor_end_a_guard(memory: kept.Kept, ref: str, tmp_path: Path) -> None:
    with as_agent(memory, tmp_path) as agent:
        with pytest.raises(NotAllowed, match="change a guard"):
            agent.guard(ref, "stop")
        memory.guard(ref, "stop")
        with pytest.raises(NotAllowed, match="change a guard"):
            agent.guard(ref, "tell")
        [event] = [event for event in memory.history() if event.action == "guard"]
        with pytest.raises(NotAllowed, match="change a guard"):
            agent.undo(event.seq)
    assert modes(memory) == ["stop"]


def test_an_agent_imports_no_guard(memory: kept.Kept, ref: str, tmp_path: Path) -> None:
    memory.guard(ref, "stop")
    lines = list(memory.store.export_lines())
    (tmp_path / "bundle.jsonl").write_bytes(b"\n".join(lines))
    for origin, found in (("agent", []), ("user", ["stop"])):
        place = tmp_path / origin
        place.mkdir()
        with kept.open(project=place, home=tmp_path / f"home-{origin}", origin=origin) as other:  # type: ignore[arg-type]
            other.store.merge(tmp_path / "bundle.jsonl")
            assert modes(other) == found
            assert bool(refusal(other)) is bool(found)


def test_a_memory_that_names_nothing_precise_cannot_be_a_guard(memory: kept.Kept) -> None:
    ref = memory.remember("Answers should be short", kind="preference").ref
    assert ref is not None
    with pytest.raises(InvalidInput, match="names no file, command or activity"):
        memory.guard(ref, "stop")


def test_a_guard_of_a_forgotten_or_erased_memory_refuses_nothing(memory: kept.Kept, ref: str) -> None:
    memory.guard(ref, "stop")
    memory.forget(ref)
    assert refusal(memory) == ""
    memory.undo()
    assert refusal(memory)
    memory.erase(ref)
    assert refusal(memory, session="s-2") == ""


def test_a_refusal_that_cannot_be_noted_is_not_made(
    memory: kept.Kept, ref: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the same call would be refused for ever."""
    memory.guard(ref, "stop")
    monkeypatch.setattr("kept.memory.receipts.save_notes", lambda *args, **named: None)
    assert refusal(memory) == ""


def test_a_guarded_call_finds_its_way_through_the_anchors(memory: kept.Kept, ref: str, tmp_path: Path) -> None:
    memory.guard(ref, "stop")
    assert concerns(str(tmp_path / "home"), str(tmp_path / "shop"), PUSH)
