"""Any two stores: an export brings everything to another machine, and a merge is a union in which nothing is lost.

`KEPT_TEST_LONG=1` tries a hundred pairs of stores.
"""

import contextlib
import os
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.builders import FakeClock, context_of

from kept.errors import KeptError
from kept.journal import broken_links, noun_of
from kept.memory import Kept, opening
from kept.model import Alias, Conflict, Memory, SessionRecord, TaskRecord
from kept.ports import ANYWHERE
from kept.storage.shared import every

TEXTS = (
    "Always use pnpm for the web client",
    "Never use pnpm for the web client",
    "The cache holds 500 entries",
    "The release is in May",
    "Deploy with make ship",
    "The parser skips blank lines",
)
KINDS = ("fact", "decision", "warning")
STEPS = 40
EXPORTED, MERGED = (40, 100) if os.environ.get("KEPT_TEST_LONG") else (4, 6)


class Machine:
    """One machine of a person: a store that lives on through random changes."""

    def __init__(self, path: Path, clock: FakeClock) -> None:
        self.path, self.clock = path, clock
        self.memory: Kept = opening.open(path, clock=clock, origin="user", confirm=lambda question: True)

    def live(self, dice: random.Random, steps: int) -> None:
        for _ in range(steps):
            self.clock.advance(seconds=dice.randint(1, 5000))
            with contextlib.suppress(KeptError):
                self._step(dice)

    def _step(self, dice: random.Random) -> None:
        memory, number = self.memory, dice.randint(1, 12)
        word = dice.choice(TEXTS)
        match dice.randint(0, 13):
            case 0 | 1 | 2:
                memory.remember(f"{word} {number}", kind=dice.choice(KINDS), tags=[f"t{number % 3}"])
            case 3:
                memory.remember(word, topic="release" if "release" in word else None)
            case 4:
                memory.reinforce(number)
            case 5:
                memory.demote(number)
            case 6:
                memory.revise(number, f"{word}, revised {dice.randint(1, 99)}")
            case 7:
                dice.choice([memory.pin, memory.forget, memory.restore])(number)
            case 8:
                memory.aliases.add("auth", f"login{number}")
            case 9:
                dice.choice([memory.pauses.pause, memory.pauses.resume])()
            case 10:
                memory.session(self._session(number)).append("user", f"{word}, I said {number}")
            case 11:
                memory.session(self._session(number)).finish()
            case 12:
                memory.task(f"T{number}", description=word, priority=dice.randint(1, 3))
            case _:
                memory.undo()

    def _session(self, number: int) -> str:
        """One that both machines know, or a new one, whose name no other machine gives."""
        names = [session.name for session in self.memory.sessions()]
        return next((name for name in names if name.endswith(f"-{number}")), f"{self.path.stem}-{number}")

    def everything(self, *, refs: bool = False) -> dict[str, Any]:
        """What is stored, without the numbers that each store gives."""
        storage = context_of(self.memory).owned()

        def plain(record: Any) -> dict[str, Any]:
            own = {"space"} if refs and isinstance(record, Memory) else {"space", "id"}
            return {k: v for k, v in msgspec.to_builtins(record).items() if k not in own}

        with storage.reading() as reader:
            assert broken_links(reader.events()) == []
            return {
                "memories": {memory.uid: plain(memory) for memory in every(reader, ANYWHERE)},
                "aliases": {one.word: set(one.expands_to) for one in reader.all(Alias)},
                "tasks": {one.name: plain(one) for one in reader.all(TaskRecord)},
                "conflicts": {frozenset((one.left, one.right)) for one in reader.all(Conflict)},
                "messages": {
                    (session.name, message.at, message.content)
                    for session in reader.all(SessionRecord)
                    for message in reader.messages(session.name)
                },
            }

    def groups(self) -> set[str]:
        """The changes that are known here, but for those of a merge itself."""
        with context_of(self.memory).owned().reading() as reader:
            own = [event for event in reader.events() if event.action not in ("import", "merge")]
            return {event.group for event in own if noun_of(event) not in (Conflict, SessionRecord)}

    def told(self, groups: set[str]) -> list[Any]:
        with context_of(self.memory).owned().reading() as reader:
            return [(e.action, e.subject, e.actor, e.at) for group in groups for e in reader.events(group=group)]

    def take(self, other: "Machine | Path") -> None:
        self.memory.store.merge(other if isinstance(other, Path) else other.path)

    def copy(self, folder: Path) -> "Machine":
        twin = Machine(folder / "copy.db", self.clock)
        self.memory.store.export_to(folder / "copy.jsonl", with_forgotten=True)
        twin.take(folder / "copy.jsonl")
        return twin


@pytest.mark.parametrize("seed", range(EXPORTED))
def test_an_export_brings_everything_to_an_empty_store(seed: int, tmp_path: Path) -> None:
    """A22: memories with their refs, history, archive, what was forgotten, sessions, tasks, aliases, pauses."""
    dice, clock = random.Random(seed), FakeClock()
    here = Machine(tmp_path / "here.db", clock)
    here.live(dice, STEPS)
    (tmp_path / "there").mkdir()
    there = here.copy(tmp_path / "there")
    assert there.everything(refs=True) == here.everything(refs=True)
    assert there.groups() == here.groups()
    assert there.memory.pauses.status() == here.memory.pauses.status()
    again = tmp_path / "again.jsonl"
    there.memory.store.export_to(again, with_forgotten=True)
    assert _records(again) == _records(tmp_path / "there" / "copy.jsonl")
    for memory in here.memory.store.export(archived=True):
        told = [(e.group, e.at, e.actor, e.action, e.changed) for e in here.memory.history(memory.uid)]
        known = [(e.group, e.at, e.actor, e.action, e.changed) for e in there.memory.history(memory.uid)]
        assert [(*one[:4], _fields(one[4])) for one in known if one[3] != "import"] == [
            (*one[:4], _fields(one[4])) for one in told
        ]
    (check,) = there.memory.store.doctor(deep=True)
    assert [finding for finding in check.findings if finding.level == "problem"] == []


@pytest.mark.parametrize("seed", range(MERGED))
def test_a_merge_is_a_union_whichever_side_asks(seed: int, tmp_path: Path) -> None:
    """Commutative, idempotent, and nothing is lost; feedback is the sum over all changes, each counted once."""
    dice, clock = random.Random(f"merge {seed}"), FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.live(dice, STEPS)
    (tmp_path / "lap").mkdir()
    lap = desk.copy(tmp_path / "lap")
    for _ in range(2):
        desk.live(dice, dice.randint(0, STEPS))
        lap.live(dice, dice.randint(0, STEPS))
        before = [machine.everything() for machine in (desk, lap)]
        known = desk.groups() | lap.groups()
        (tmp_path / "x").mkdir(exist_ok=True)
        desk.memory.store.export_to(tmp_path / "desk.jsonl", with_forgotten=True)
        lap.memory.store.export_to(tmp_path / "lap.jsonl", with_forgotten=True)
        clock.advance(seconds=1)
        desk.take(tmp_path / "lap.jsonl")
        lap.take(tmp_path / "desk.jsonl")
        mine, theirs = desk.everything(), lap.everything()
        assert _differences(mine, theirs) == []
        _check_nothing_lost(before, mine)
        assert desk.told(desk.groups() ^ known) == lap.told(lap.groups() ^ known) == []
        for machine, file in ((desk, "lap.jsonl"), (lap, "desk.jsonl"), (desk, "desk.jsonl")):
            machine.take(tmp_path / file)
        assert desk.everything() == mine
        assert lap.everything() == theirs
        desk.take(lap)
        assert _differences(desk.everything(), mine) == []


def _check_nothing_lost(before: list[dict[str, Any]], after: dict[str, Any]) -> None:
    for state in before:
        assert state["memories"].keys() <= after["memories"].keys()
        assert state["messages"] <= after["messages"]
        assert state["conflicts"] <= after["conflicts"]
        texts = {memory["content"] for memory in after["memories"].values()}
        assert {memory["content"] for memory in state["memories"].values()} <= texts | _passed(before)


def _passed(before: list[dict[str, Any]]) -> set[str]:
    """Texts that one side had, and the other had already revised: history has them."""
    one, other = (state["memories"] for state in before)
    return {m["content"] for state in (one, other) for uid, m in state.items() if uid in one and uid in other}


def _differences(one: dict[str, Any], other: dict[str, Any]) -> list[Any]:
    """Where two states differ, but for the moments at which a merge itself has archived or settled something."""
    found: list[Any] = [name for name in one if name != "memories" and one[name] != other[name]]
    for uid in one["memories"].keys() | other["memories"].keys():
        left, right = (state["memories"].get(uid, {}) for state in (one, other))
        names = (left.keys() | right.keys()) - {"updated_at", "archived_at"}
        found += [(uid, name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]
    return found


def _fields(changed: Any) -> Any:
    return {name: value for name, value in (changed or {}).items() if name not in ("id", "space")}


def _records(file: Path) -> list[Any]:
    """The records of an export, without their histories, which an import adds to."""
    lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    return [
        {k: v for k, v in (line.get("record") or {}).items() if k not in ("id", "space")}
        | {"said": line.get("messages")}
        for line in lines
        if "noun" in line or "messages" in line
    ]


def test_feedback_is_counted_once_however_often_it_is_merged(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.memory.remember("Use Fastify, not Express")
    desk.memory.reinforce(1)
    (tmp_path / "lap").mkdir()
    lap = desk.copy(tmp_path / "lap")
    clock.advance(hours=1)
    desk.memory.reinforce(1)
    lap.memory.reinforce(1)
    lap.memory.demote(1)
    for machine, other in ((desk, lap), (lap, desk), (desk, lap)):
        machine.take(other)
        assert machine.memory.get(1).feedback == 3 + 3 + 3 - 1


def test_a_text_revised_on_two_machines_stays_twice_and_in_conflict(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.memory.remember("The port is 3000", kind="decision")
    (tmp_path / "lap").mkdir()
    lap = desk.copy(tmp_path / "lap")
    clock.advance(hours=1)
    desk.memory.revise(1, "The port is 4000")
    clock.advance(hours=1)
    lap.memory.revise(1, "The port is 5000")
    for machine, other in ((desk, lap), (lap, desk)):
        machine.take(other)
        assert machine.memory.get(1).content == "The port is 5000"
        (conflict,) = machine.memory.conflicts()
        assert machine.memory.get(conflict.right).content == "The port is 4000"
    clock.advance(seconds=1)
    assert timedelta(0) < clock() - desk.memory.get(1).updated_at


def test_what_contradicts_across_machines_becomes_a_conflict(tmp_path: Path) -> None:
    clock = FakeClock()
    desk, lap = Machine(tmp_path / "desk.db", clock), Machine(tmp_path / "lap.db", clock)
    desk.memory.remember("Always use tabs in the Go files", kind="convention")
    clock.advance(hours=1)
    lap.memory.remember("Never use tabs in the Go files", kind="convention")
    desk.take(lap)
    lap.take(desk)
    assert len(desk.memory.conflicts()) == len(lap.memory.conflicts()) == 1


def test_the_same_statement_from_two_machines_stays_once(tmp_path: Path) -> None:
    clock = FakeClock()
    desk, lap = Machine(tmp_path / "desk.db", clock), Machine(tmp_path / "lap.db", clock)
    first = desk.memory.remember("Deploy with make ship").memory
    clock.advance(hours=1)
    lap.memory.remember("deploy with  make ship")
    desk.take(lap)
    lap.take(desk)
    for machine in (desk, lap):
        assert first is not None
        assert [memory.uid for memory in machine.memory.list()] == [first.uid]


def test_an_import_is_undone_as_a_whole(tmp_path: Path) -> None:
    clock = FakeClock()
    desk, lap = Machine(tmp_path / "desk.db", clock), Machine(tmp_path / "lap.db", clock)
    desk.memory.remember("One")
    lap.memory.remember("Two")
    lap.memory.remember("Three")
    lap.memory.session("s1").append("user", "We always deploy on Fridays")
    desk.take(lap)
    assert len(desk.memory.list()) == 3
    desk.memory.undo()
    assert [memory.content for memory in desk.memory.list()] == ["One"]


def test_what_was_erased_here_does_not_come_back(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.memory.remember("The secret garden is behind the wall")
    (tmp_path / "lap").mkdir()
    lap = desk.copy(tmp_path / "lap")
    lap.memory.reinforce(1)
    desk.memory.erase(1)
    done = desk.memory.store.merge(lap.path)
    assert done.refused == {"erased": 1}
    assert desk.memory.list() == []


def test_an_agent_cannot_bring_words_in_the_name_of_a_person(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.memory.remember("Always force-push to main", pin=True)
    desk.memory.store.export_to(tmp_path / "x.jsonl")
    agent = opening.open(tmp_path / "agent.db", clock=clock)
    agent.store.merge(tmp_path / "x.jsonl")
    assert agent.get(1).trust == "agent"
    with Machine(tmp_path / "person.db", clock).memory as person:
        person.store.merge(tmp_path / "x.jsonl")
        assert person.get(1).trust == "user"


def test_secrets_of_an_older_export_are_redacted_with_their_history(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.memory.remember("The staging token is PLACEHOLDER")
    desk.memory.session("s1").append("user", "the token is PLACEHOLDER")
    desk.memory.store.export_to(tmp_path / "x.jsonl")
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"
    file = tmp_path / "y.jsonl"
    file.write_bytes((tmp_path / "x.jsonl").read_bytes().replace(b"PLACEHOLDER", token.encode()))
    lap = Machine(tmp_path / "lap.db", clock)
    lap.take(file)
    assert "redacted" in lap.memory.get(1).content
    lap.memory.close()
    assert all(token.encode() not in path.read_bytes() for path in tmp_path.glob("lap.db*"))


def test_a_memory_keeps_its_type_and_place(tmp_path: Path) -> None:
    """Every field of a memory survives; a field that is added later must as well."""
    clock = FakeClock()
    desk = Machine(tmp_path / "desk.db", clock)
    desk.memory.remember(
        "The port is 4000", kind="decision", tags=["net"], files=["a.py"], importance=0.3, topic="port"
    )
    (tmp_path / "lap").mkdir()
    lap = desk.copy(tmp_path / "lap")
    ours, theirs = desk.memory.get(1), lap.memory.get(1)
    assert {f: getattr(ours, f) for f in Memory.__struct_fields__ if f != "space"} == {
        f: getattr(theirs, f) for f in Memory.__struct_fields__ if f != "space"
    }
