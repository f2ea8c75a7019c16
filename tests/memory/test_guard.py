"""Guards: who makes them, which calls they refuse, how one gets past them, and how they end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kept
from kept.anchors import ToolCall
from kept.entrypoints.hook.concerns import concerns
from kept.errors import InvalidInput, NotAllowed
from kept.model import Actor, CallGuard, Role
from tests.builders import FakeClock, context_of
from tests.memory.shop import clock as clock
from tests.memory.shop import listener, open_shop

PUSH = ToolCall(commands=["git push origin main"])
RULE = "Never push to main without asking me"


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    """The memory as the person at the command line opens it."""
    with open_shop(tmp_path, clock, origin="user") as opened:
        yield opened


def as_agent(memory: kept.Kept, tmp_path: Path) -> kept.Kept:
    return kept.open(project=tmp_path / "shop", home=tmp_path / "home", settings=kept.Settings())


def refusal(memory: kept.Kept, call: ToolCall = PUSH, session: str = "s-1") -> str:
    return memory.deliveries.for_action(call, listener(session)).refusal


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
    said = memory.deliveries.for_action(PUSH, listener())
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


CHANGES: dict[str, Callable[[kept.Kept, str], object]] = {
    "revise": lambda m, ref: m.revise(ref, content="Never eat soup"),
    "forget": lambda m, ref: m.forget(ref),
    "demote": lambda m, ref: m.demote(ref),
    "promote": lambda m, ref: m.promote(ref, to="global"),
    "erase": lambda m, ref: m.erase(ref),
    "review": lambda m, ref: m.reviews.apply([f"forget:{ref}"]),
    "undo": lambda m, ref: m.undo(m.history(ref)[0].seq),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("role", ["project", "admin"])
def test_an_agent_changes_and_hides_no_guarded_memory(
    memory: kept.Kept, ref: str, tmp_path: Path, name: str, role: Role
) -> None:
    """Else it would end the guard, or refuse other calls with words of its own."""
    memory.guard(ref, "stop")
    actor = Actor(role=role, name="claude")
    with (
        kept.open(
            project=tmp_path / "shop", home=tmp_path / "home", actor=actor, confirm=lambda question: True
        ) as agent,
        pytest.raises(NotAllowed, match=f"Memory {ref} is guarded; only a person can change it") as refused,
    ):
        CHANGES[name](agent, ref)
    assert refused.value.hint == f"A person ends the guard with `kept guard {ref} tell`."
    assert RULE in refusal(memory)
    memory.revise(ref, content=f"{RULE}, never")
    assert "never" in refusal(memory, session="s-2"), "a person changes it at any time"


def test_an_agent_replaces_no_guarded_memory_by_a_new_one(memory: kept.Kept, tmp_path: Path) -> None:
    memory.remember("The shop opens at nine")
    with as_agent(memory, tmp_path) as agent:
        ref = agent.remember(RULE, kind="warning", topic="push").ref
        assert ref is not None
        memory.guard(ref, "stop")
        assert agent.remember("Push to main whenever you like", kind="warning", topic="push").superseded == ()
    assert RULE in refusal(memory)
    assert ref in memory.remember("Push to main on Fridays only", kind="warning", topic="push").superseded


def test_neither_a_role_nor_a_yes_of_an_agent_stands_in_for_a_person(
    memory: kept.Kept, ref: str, tmp_path: Path
) -> None:
    memory.guard(ref, "stop")
    with kept.open(
        project=tmp_path / "shop",
        home=tmp_path / "home",
        actor=Actor(role="admin", name="claude"),
        confirm=lambda question: True,
    ) as agent:
        with pytest.raises(NotAllowed, match="change a guard: only a person can"):
            agent.guard(ref, "tell")
        with pytest.raises(NotAllowed, match="change a guard: only a person can"):
            agent.undo(memory.history()[-1].seq)
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


def test_an_agent_changes_no_guarded_memory_by_an_import(memory: kept.Kept, ref: str, tmp_path: Path) -> None:
    memory.remember("The shop opens at nine")
    with kept.open(project="copy", home=tmp_path / "other", origin="user") as copy:
        (tmp_path / "bundle.jsonl").write_bytes(b"\n".join(memory.store.export_lines()))
        copy.store.merge(tmp_path / "bundle.jsonl")
        [rule] = [one for one in copy.list() if one.content == RULE]
        copy.revise(rule.ref, content="Push to main at any time")
        (tmp_path / "changed.jsonl").write_bytes(b"\n".join(copy.store.export_lines()))
    memory.guard(ref, "stop")
    with as_agent(memory, tmp_path) as agent:
        agent.store.merge(tmp_path / "changed.jsonl")
    assert RULE in refusal(memory)


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
