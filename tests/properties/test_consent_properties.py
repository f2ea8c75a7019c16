"""Consent as a property: whatever project agents do, without a yes global memory only gains unpinned patterns.

Two agents of two projects, one of whom asks a person who always says no, and one who has nobody to ask, walk through
all verbs at random, over the same global memory; now and then the person changes something there. After every step all
that was in global memory is still there, bit for bit. The last tests plant faults, to show that this would be noticed.
KEPT_TEST_LONG=1 walks 12,000 steps.
"""

import inspect
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.builders import FakeClock
from tests.contract.benches import BENCHES
from tests.two_spaces import TwoSpaces

import kept
from kept import access
from kept.entrypoints import slash
from kept.errors import KeptError
from kept.memory import consent
from kept.memory.context import Context
from kept.model import KINDS, Actor, Conflict, Draft, Memory, Message, Record, Source, replace
from kept.ports import ANYWHERE, Storage

IS_LONG = bool(os.environ.get("KEPT_TEST_LONG"))
STEPS = {"inmemory": 12_000 if IS_LONG else 800, "sqlite": 2_000 if IS_LONG else 150}
STEPS_TO_A_FAULT = 6_000
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

PREFERENCES = (
    "Prefers short answers",
    "Prefers tabs over spaces",
    "Always use Fastify for the public API server",
    "Always write the tests first",
)
TEXTS = (
    *PREFERENCES,
    "prefers SHORT answers",
    "Never use Fastify for the public API server",
    "Never write the tests first",
    "Retry with a backoff",
    "Cache what is slow to compute",
    *(f"Statement number {number} of the agent" for number in range(40)),
)
TOPICS = (None, None, "answers", "indent", "server")
TAGS = ("style", "tools", "http")
NAMESPACES = ("aliases", "knowledge", "pauses", "reviews", "store", "vectors")
NOT_WALKED = {
    "close",
    "subscribe",
    "look",  # reads
    "narratives",  # reads
    "perform",  # the way of every verb below
    "together",  # a group of other verbs
    "documents",  # of the project alone
    "judge",  # of the findings of a project
    "proposals",  # reads
    "import_transcripts",  # adds messages to a project, as `session` does
    "store.doctor",  # examines files
    "store.move",
    "store.moved_away",  # the project alone, into a database
    "store.import_",  # adds candidates to a project
    "vectors.on",  # needs a model
    "vectors.check",
    "vectors.limits",
    "vectors.keep_up",  # makes vectors of what is there
    "store.follow_code",  # of a project that has a work tree
}
NOTED_BY_RECALL = {"use_count": 0, "last_used_at": None}  # recall counts what it returned, without the journal


class Walk:
    """Two agents, a person, and what global memory held after the last step."""

    def __init__(self, storage: str, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = FakeClock()
        bench = BENCHES[storage](folder)
        shared, own = bench.open("global"), [bench.open("project/p1"), bench.open("project/p2")]
        self.shared: Storage = shared
        self.agents = [self._opened(own[0], Actor(), lambda question: False), self._opened(own[1], Actor(), None)]
        self.person = self._opened(own[0], Actor(role="admin", name="person"), lambda question: True)
        self.folder = folder
        for number, content in enumerate(PREFERENCES):
            topic = TOPICS[1 + number]
            self.person.remember(
                content, kind="preference", tier="global", tags=["style"], topic=topic, pin=number % 2 == 1
            )
        self.person.remember("Retry with a backoff", kind="pattern", tier="global", pin=True)
        self.person.remember("Review in pairs", kind="pattern", tier="global")
        self.held = self.snapshot()

    def _opened(self, project: Storage, actor: Actor, confirm: Callable[[str], bool] | None) -> kept.Kept:
        spaces = TwoSpaces(project, self.shared)
        settings = kept.Settings(auto_upkeep=True)
        return kept.Kept(Context(spaces=spaces, actor=actor, settings=settings, clock=self.clock, confirm=confirm))

    def snapshot(self) -> tuple[dict[str, Memory], dict[str, Conflict], int]:
        with self.shared.reading() as reader:
            memories = {one.uid: replace(one, **NOTED_BY_RECALL) for one in reader.select(ANYWHERE, limit=10_000)}
            conflicts = {one.ref: one for one in reader.all(Conflict)}
            last = reader.events(newest_first=True, limit=1)
        return memories, conflicts, last[0].seq if last else 0

    def step(self) -> str:
        self.clock.advance(minutes=self.random.choice((1, 1, 60, 60 * 24 * 30, -60 * 24)))
        if self.random.random() < 0.02:
            self._persons_turn()
            return "person"
        agent, name = self.random.choice(self.agents), self.random.choice(NAMES)
        with suppress(KeptError):
            VERBS[name](self, agent)
        self.check(name)
        return name

    def _persons_turn(self) -> None:
        name = self.random.choice(("remember", "pin", "unpin", "forget", "restore", "resolve", "undo", "reinforce"))
        with suppress(KeptError):
            VERBS[name](self, self.person)
        self.held = self.snapshot()

    def check(self, name: str) -> None:
        """Nothing that was there has changed; what is new is an unpinned pattern, or a conflict of one."""
        memories, conflicts, last = self.held
        now = self.snapshot()
        assert {uid: now[0].get(uid) for uid in memories} == memories, name
        assert {ref: now[1].get(ref) for ref in conflicts} == conflicts, name
        new = [memory for uid, memory in now[0].items() if uid not in memories]
        assert all(one.kind == "pattern" and one.status in ("candidate", "confirmed") for one in new), name
        if now[2] != last:
            with self.shared.reading() as reader:
                assert {event.action for event in reader.events(after=last)} <= {"remember", "conflict"}, name
        self.held = now

    # Arguments

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def ref(self) -> str:
        """Mostly a memory of global memory: its ref or its uid."""
        memories = self.held[0]
        if self.random.random() < 0.3:
            return str(self.random.randint(1, 30))
        uid = self.random.choice(list(memories))
        return uid if self.random.random() < 0.3 else memories[uid].ref

    def event(self) -> str | None:
        roll = self.random.random()
        if roll < 0.3:
            return None
        return f"g{self.random.randint(1, self.held[2])}" if roll < 0.8 else str(self.random.randint(1, 60))

    def draft(self) -> Draft:
        pick = self.random.choice
        origin = pick(("user", "agent", "agent", "tool", "import", "extraction"))
        return Draft(
            content=self.text(),
            kind=pick(("pattern", "pattern", "preference", *KINDS)),
            tier=pick(("global", "global", "project", "session", "task")),
            tags=tuple(self.random.sample(TAGS, self.random.randint(0, 2))),
            topic=pick(TOPICS),
            pin=self.random.random() < 0.3,
            importance=pick((None, 0.1, 1.0)),
            key=pick((None, None, None, "k1")),
            source=pick((None, Source(origin=origin))),  # type: ignore[arg-type]
            data=pick((None, None, {"promoted_from": pick(list(self.held[0]))})),
        )

    def decision(self) -> str:
        action = self.random.choice(("keep", "archive", "forget", "supersede", "promote"))
        return f"{action}:{self.ref()}" + (f"={self.ref()}" if action == "supersede" else "")

    def remember(self, memory: kept.Kept) -> object:
        draft = self.draft()
        fields = ("kind", "tags", "importance", "pin", "tier", "topic", "source", "key")
        return memory.remember(draft.content, **{name: getattr(draft, name) for name in fields})

    def talk(self, memory: kept.Kept) -> object:
        session = memory.session(f"s{self.random.randint(1, 3)}")
        session.extend([Message(id="", role="user", content=f"From now on, {self.text().lower()}, please.")])
        return session.finish() if self.random.random() < 0.3 else session.checkpoint()

    def back_and_forth(self, memory: kept.Kept, tier: Any) -> object:
        file = self.folder / f"{self.random.randint(0, 10**9)}.db"
        memory.store.backup(file, tier=tier)
        return memory.store.restore(file, overwrite_newer=True)

    def join(self, memory: kept.Kept) -> object:
        """Merge what the person's store holds: another project, and global memory as it is now."""
        file = self.folder / f"{self.random.randint(0, 10**9)}.jsonl"
        self.person.store.export_to(file, with_forgotten=True)
        return memory.store.merge(file)

    def task(self, memory: kept.Kept) -> object:
        task = memory.task(f"TASK-{self.random.randint(1, 3):03}", description=self.text())
        note = task.add_reasoning(self.text(), "plan")
        return memory.promote(str(note.ref), to=self.random.choice(("project", "global")))

    def slash(self, memory: kept.Kept) -> object:
        command = self.random.choice(list(slash.COMMANDS))
        return slash.run(memory, f"{command} {self.random.choice((self.ref(), self.text(), 'short answers'))}")


Verb = Callable[[Walk, kept.Kept], object]
SETTINGS = (("max_memories", "1"), ("max_size_bytes", "1000"), ("retention", "praxis"), ("preset", "aggressive"))
VERBS: dict[str, Verb] = {
    "remember": Walk.remember,
    "remember_many": lambda w, m: m.remember_many([w.draft() for _ in range(w.random.randint(1, 4))]),
    "reinforce": lambda w, m: m.reinforce(w.ref()),
    "demote": lambda w, m: m.demote(w.ref()),
    "revise": lambda w, m: m.revise(w.ref(), w.text(), w.random.choice((None, ["evil"]))),
    "pin": lambda w, m: m.pin(w.ref()),
    "unpin": lambda w, m: m.unpin(w.ref()),
    "forget": lambda w, m: m.forget(w.ref()),
    "restore": lambda w, m: m.restore(w.ref()),
    "erase": lambda w, m: m.erase([w.ref() for _ in range(w.random.randint(1, 3))]),
    "promote": lambda w, m: m.promote(w.ref(), to="global"),
    "resolve": lambda w, m: m.resolve(w.random.choice([*w.held[1], "c1"]), keep=w.ref()),
    "undo": lambda w, m: m.undo(w.event()),
    "recall": lambda w, m: m.recall(w.text(), follow=True),
    "briefing": lambda w, m: m.briefing(w.text()),
    "share": lambda w, m: m.share(to="skill", action="look", query=w.text()),
    "why": lambda w, m: m.why(),
    "get": lambda w, m: m.get(w.ref()),
    "list": lambda w, m: m.list(),
    "history": lambda w, m: m.history(w.ref()),
    "status": lambda w, m: m.status(),
    "conflicts": lambda w, m: m.conflicts(),
    "session": Walk.talk,
    "sessions": lambda w, m: m.sessions(),
    "task": Walk.task,
    "tasks": lambda w, m: m.tasks(),
    "narrative": lambda w, m: m.narrative("n1").remember(w.text(), kind="preference", tier="global"),
    "upkeep": lambda w, m: m.upkeep(),
    "aliases.add": lambda w, m: m.aliases.add("dock", "harbor"),
    "aliases.remove": lambda w, m: m.aliases.remove("dock"),
    "aliases.list": lambda w, m: m.aliases.list(),
    "pauses.pause": lambda w, m: m.pauses.pause(w.random.choice((None, "s1"))),
    "pauses.resume": lambda w, m: (m.pauses.resume(), m.pauses.resume("s1")),
    "pauses.status": lambda w, m: m.pauses.status(),
    "reviews.list": lambda w, m: m.reviews.list(),
    "reviews.propose": lambda w, m: m.reviews.propose(w.draft()),
    "reviews.apply": lambda w, m: m.reviews.apply([w.decision() for _ in range(w.random.randint(1, 2))]),
    "knowledge.add_preference": lambda w, m: m.knowledge.add_preference(w.text(), "style"),
    "knowledge.add_pattern": lambda w, m: m.knowledge.add_pattern(w.text(), "style"),
    "knowledge.add_decision": lambda w, m: m.knowledge.add_decision(w.text()),
    "knowledge.add_convention": lambda w, m: m.knowledge.add_convention(w.text(), "python"),
    "knowledge.add_failure": lambda w, m: m.knowledge.add_failure("ValueError: no", w.text()),
    "knowledge.decisions": lambda w, m: m.knowledge.decisions(),
    "knowledge.failures": lambda w, m: m.knowledge.failures(),
    "knowledge.preferences": lambda w, m: m.knowledge.preferences(),
    "knowledge.clear_all": lambda w, m: m.knowledge.clear_all(),
    "guard": lambda w, m: m.guard(w.ref(), w.random.choice(("stop", "tell"))),
    "store.allow": lambda w, m: (m.store.allow(SECRET), m.remember(SECRET, kind="pattern", tier="global")),
    "store.scan": lambda w, m: m.store.scan(fix=True),
    "store.configure": lambda w, m: m.store.configure(*w.random.choice(SETTINGS)),
    "store.backup": lambda w, m: w.back_and_forth(m, "project"),
    "store.restore": lambda w, m: w.back_and_forth(m, "global"),
    "store.export": lambda w, m: list(m.store.export(archived=True)),
    "store.export_lines": lambda w, m: list(m.store.export_lines(with_forgotten=True)),
    "store.export_to": lambda w, m: m.store.export_to(w.folder / "walk.jsonl"),
    "store.merge": lambda w, m: w.join(m),
    "store.matching": lambda w, m: m.store.matching(shelf="any"),
    "store.replay": lambda w, m: m.store.replay(),
    "find": lambda w, m: m.find("harbor"),
    "store.pack_sessions": lambda w, m: m.store.pack_sessions(),
    "store.finish_sessions": lambda w, m: m.store.finish_sessions(),
    "vectors.off": lambda w, m: m.vectors.off(),
    "vectors.status": lambda w, m: m.vectors.status(),
    "slash": Walk.slash,
}
CHANGING = (
    "remember remember_many reinforce demote revise pin unpin forget restore erase promote resolve undo reviews.apply "
    "task slash".split()
)
NAMES = (*VERBS, *CHANGING * 4)


@pytest.mark.parametrize("storage", STEPS)
@pytest.mark.parametrize("seed", [1])
def test_without_a_yes_global_memory_only_gains_unpinned_patterns(storage: str, seed: int, tmp_path: Path) -> None:
    """B14, D8: no preference and no pin changes, and nothing else that was there before."""
    walk = Walk(storage, tmp_path, seed)
    done = [walk.step() for _ in range(STEPS[storage])]
    if STEPS[storage] > 500:
        assert set(done) >= set(VERBS)
        with walk.shared.reading() as reader:
            assert {event.actor for event in reader.events()} == {"agent", "person"}


def test_every_verb_is_walked() -> None:
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        names = _methods(memory)
        for name in NAMESPACES:
            names |= {f"{name}.{verb}" for verb in _methods(getattr(memory, name))}
    assert names - set(VERBS) == NOT_WALKED
    assert set(VERBS) - names == {"slash"}


def _methods(holder: object) -> set[str]:
    """Return the names of the methods, without the twins to await, which perform the same verbs."""
    found = {name: getattr(holder, name) for name in dir(holder) if not name.startswith("_")}
    return {name for name, one in found.items() if inspect.ismethod(one) and not inspect.iscoroutinefunction(one)}


# Planted faults

Effect = Callable[[Record | None, Record | None, str], bool]
FAULTS: dict[str, Effect] = {
    "added": lambda before, after, action: before is None and action != "promote",
    "promoted": lambda before, after, action: action == "promote",
    "pinned": lambda before, after, action: getattr(after, "status", None) == "pinned",
    "unpinned": lambda before, after, action: action == "unpin",
    "superseded": lambda before, after, action: getattr(after, "reason", None) == "superseded",
    "forgotten": lambda before, after, action: action == "forget",
    "undone": lambda before, after, action: action == "undo",
    "restored": lambda before, after, action: action == "restore",
    "revised": lambda before, after, action: action == "revise",
    "strengthened": lambda before, after, action: action == "strengthen",
    "reinforced or demoted": lambda before, after, action: action in ("reinforce", "demote"),
    "verified": lambda before, after, action: action in ("verify", "resolve"),
    "erased": lambda before, after, action: after is None,
}


def walk_into(storage: str, folder: Path) -> None:
    for seed in (1, 2, 3):
        walk = Walk(storage, folder / str(seed), seed)
        for _ in range(STEPS_TO_A_FAULT // 3):
            walk.step()


@pytest.mark.parametrize("fault", FAULTS)
def test_an_effect_that_is_not_asked_about_is_noticed(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = access.goes_unasked

    def faulty(before: Record | None, after: Record | None, action: str, *, is_heard: bool = True) -> bool:
        return rule(before, after, action, is_heard=is_heard) or FAULTS[fault](before, after, action)

    monkeypatch.setattr(access, "goes_unasked", faulty)
    with pytest.raises(AssertionError):
        walk_into("inmemory", tmp_path)


def test_asking_only_about_the_first_effect_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it once was: the first draft of a call decided for all of it."""
    every = consent.Watched.effects.fget
    assert every is not None

    def first_only(self: consent.Watched) -> list[consent.Effect]:
        first = next(iter(self._effects.values()), None)
        return [one for one in every(self) if one == first]

    monkeypatch.setattr(consent.Watched, "effects", property(first_only))
    with pytest.raises(AssertionError):
        walk_into("inmemory", tmp_path)


def test_a_write_that_goes_past_the_rule_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "needs_consent", lambda actor, space: False)
    monkeypatch.setattr(access, "may_write", lambda actor, space: True)
    with pytest.raises(AssertionError):
        walk_into("inmemory", tmp_path)
