"""Fifty projects with a canary each: through no door, by no ref and in no role does one come out of its project.

Every statement holds a canary, which nobody ever asks for, and a handle, by which it could be found. So whatever holds
a canary was read from the store. The last tests plant faults, to show that this would be noticed.
"""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kept
from kept import access
from kept.anchors import ToolCall
from kept.entrypoints import slash
from kept.memory import receipts
from kept.memory.deliver import Listener
from kept.memory.receipts import RecallReceipt
from kept.model import Actor, Briefing, Draft, Event, SessionRecord, Source
from kept.projects import spaces
from kept.recall import Request
from kept.recall.briefing import STYLES
from tests.builders import FakeClock
from tests.builders import memory as made

PROJECTS = 50
IS_LONG = bool(os.environ.get("KEPT_TEST_LONG"))
CANARY = re.compile(r"zq(\d\d)canary")
UID = re.compile(r"[0-9a-f-]{36}")
SCOPES = ("memory", "items", "sessions", "sources", "archive")
STATUSES = (None, "candidate", "confirmed", "pinned", "archived", "forgotten")
SETTINGS = kept.Settings(backup_daily=False)


class Foreign(NamedTuple):
    """What somebody might know of a project that is not theirs: refs, names, and the words to look for."""

    number: int
    space: str
    uids: tuple[str, ...]
    handle: str
    events: int

    @property
    def uid(self) -> str:
        return self.uids[0]


def canary(number: int) -> str:
    return f"zq{number:02}canary"


def opened(home: Path, number: int, actor: Actor | None = None) -> kept.Kept:
    return kept.open(home=home, project=f"p{number:02}", actor=actor, clock=FakeClock(), settings=SETTINGS)


def fill(home: Path, number: int) -> Foreign:
    """One project, with its canary in everything that can hold one."""
    word, handle = canary(number), f"handle{number:02}"
    with opened(home, number) as memory:
        story = Source(origin="user", session="talk", narrative="story", file=f"{word}.py")
        extracted = Source(origin="extraction", file=f"{word}.py")
        memory.remember_many(
            [
                Draft(content=f"harbor {handle} {word}", tags=(word,), files=(f"{word}.py",), source=story, pin=True),
                Draft(content=f"Always use {handle} {word} for the harbor server", kind="decision", topic=word),
                Draft(content=f"Never use {handle} {word} for the harbor server", kind="decision"),
                Draft(content=f"harbor archived {handle} {word}", kind="progress"),
                Draft(content=f"harbor forgotten {handle} {word}"),
                Draft(content=f"harbor item {handle} {word}", scope="items", title=word, source=extracted),
            ]
        )
        memory.reviews.apply(["archive:4"])
        memory.forget(5)
        memory.aliases.add("dock", word)
        session = memory.session("talk", agent=word)
        session.append("user", f"We decided to use {handle} {word} for the harbor, because it is the best there is.")
        session.append("tool_call", name="read", input={"path": word})
        session.finish()
        memory.task("TASK-001", description=word).add_reasoning(f"harbor {handle} {word}", "plan")
        memory.recall("harbor", follow=True)
        memory.briefing("harbor")
        uids = tuple(event.subject for event in memory.history(limit=100) if UID.fullmatch(event.subject))
        return Foreign(number, memory.get(1).space, tuple(dict.fromkeys(uids)), handle, memory.history()[-1].seq)


LISTENER = Listener(session="talk", event="UserPromptSubmit")


def receipt_of(foreign: Foreign) -> RecallReceipt:
    """A receipt that somebody made up, of a question about a foreign project."""
    return RecallReceipt(
        receipt="r1", at=FakeClock()(), question=Request(query=f"{foreign.handle} harbor"), session="talk"
    )


# Every door, by the verb that it goes through. Each is given a foreign project, and returns all that comes out.

Door = Callable[[kept.Kept, Foreign], object]
READING: tuple[tuple[str, Door], ...] = (
    ("get", lambda m, f: [_try(lambda u=u: m.get(u, forgotten=True)) for u in f.uids]),
    ("get", lambda m, f: [_try(lambda r=r: m.get(r)) for r in (1, "2", "[id:3]", "g1", f.uid.upper())]),
    ("recall", lambda m, f: [m.recall(q, scope=s) for q in (f.handle, "harbor dock") for s in SCOPES]),  # type: ignore[arg-type]
    ("recall", lambda m, f: [m.recall("harbor", follow=True, profile=p, files=["x.py"]) for p in ("kept", "koshi")]),
    ("recall", lambda m, f: m.recall(f.handle, scope="sessions", by="session")),
    ("proposals", lambda m, f: [m.proposals(), m.proposals("talk")]),
    ("why", lambda m, f: [_try(lambda r=r: m.why(r)) for r in (None, "r1", 2, "r3")]),
    ("store.replay", lambda m, f: m.store.replay()),
    ("briefing", lambda m, f: [m.briefing(f.handle, style=s, session="talk", task="t") for s in STYLES]),
    ("briefing", lambda m, f: m.briefing(files=["x.py"])),
    ("share", lambda m, f: m.share(to="skill", action="look", query=f"{f.handle} harbor")),
    ("list", lambda m, f: [m.list(status=s, limit=100) for s in STATUSES]),  # type: ignore[arg-type]
    ("list", lambda m, f: m.list(after=f.uid)),
    ("find", lambda m, f: [m.find("e", status=s) for s in STATUSES]),  # type: ignore[arg-type]
    ("history", lambda m, f: [m.history(), m.history(tier="global")]),
    ("history", lambda m, f: [_try(lambda u=u: m.history(u)) for u in f.uids]),
    ("store.export", lambda m, f: list(m.store.export(archived=True))),
    ("store.export_lines", lambda m, f: list(m.store.export_lines(with_forgotten=True))),
    ("store.matching", lambda m, f: [m.store.matching(), m.store.matching(shelf="any")]),
    ("conflicts", lambda m, f: m.conflicts(resolved=True)),
    ("aliases.list", lambda m, f: m.aliases.list()),
    ("reviews.list", lambda m, f: m.reviews.list(limit=100)),
    ("store.scan", lambda m, f: m.store.scan()),
    ("status", lambda m, f: m.status()),
    ("sessions", lambda m, f: m.sessions()),
    ("pauses.status", lambda m, f: m.pauses.status("talk")),
    ("narratives", lambda m, f: m.narratives()),
    ("narrative", lambda m, f: m.narrative("story").memories()),
    ("narrative", lambda m, f: [_try(lambda u=u: m.narrative(of=u).memories()) for u in f.uids]),
    ("knowledge.decisions", lambda m, f: m.knowledge.decisions()),
    ("knowledge.failures", lambda m, f: m.knowledge.failures()),
    ("knowledge.preferences", lambda m, f: m.knowledge.preferences()),
    ("tasks", lambda m, f: m.tasks(archived=True)),
    ("vectors.status", lambda m, f: m.vectors.status()),
    ("look", lambda m, f: [_try(lambda u=u: m.look().find(u, forgotten=True)) for u in f.uids]),
    ("look", lambda m, f: [_try(lambda u=u: m.look().links(u, limit=9)) for u in f.uids]),
    ("look", lambda m, f: [m.look().live(), m.look().counts(), m.look().items(limit=9)]),
    ("look", lambda m, f: m.look().searched_files(limit=9)),
    ("look", lambda m, f: [m.look().search(f.handle, scope=s, of_every_session=True) for s in SCOPES]),  # type: ignore[arg-type]
    ("look", lambda m, f: m.look().briefing_now(receipt_of(f))),
    ("look", lambda m, f: [m.look().receipts(), m.look().receipts("talk"), m.look().latencies(limit=9)]),
    ("look", lambda m, f: [m.look().sessions_given(beginning="t"), m.look().last_briefing()]),
    ("look", lambda m, f: [m.look().project(), m.look().last_event(), m.look().event_counts(), m.look().days()]),
    ("look", lambda m, f: [m.look().events(), m.look().events_of_group(None)]),
    ("look", lambda m, f: m.look().overviews([SessionRecord(name="talk", started_at=m.look().now())])),
    ("look", lambda m, f: m.look().session("talk")),
    ("look", lambda m, f: _try(lambda: m.look().message("talk#1"))),
    ("look", lambda m, f: m.look().message_of(made("harbor", source=Source(session="talk")))),
    ("documents", lambda m, f: [list(m.documents("notes").list()), m.documents("notes").search(f.handle)]),
    ("deliveries.for_prompt", lambda m, f: m.deliveries.for_prompt(f"{f.handle} harbor", LISTENER)),
    ("deliveries.for_action", lambda m, f: m.deliveries.for_action(ToolCall(text=f.handle), LISTENER)),
    ("deliveries.for_subagent", lambda m, f: m.deliveries.for_subagent(f"{f.handle} harbor", LISTENER)),
    ("deliveries.for_error", lambda m, f: m.deliveries.for_error(f"ValueError: {f.handle}", LISTENER)),
    ("deliveries.at_start", lambda m, f: m.deliveries.at_start(LISTENER)),
    ("slash", lambda m, f: [_try(lambda line=line: slash.run(m, line)) for line in _lines(f)]),
)
WRITING: tuple[tuple[str, Door], ...] = (
    ("session", lambda m, f: [m.session("talk").messages(), m.session("talk").findings(), m.session("talk").window()]),
    ("session", lambda m, f: m.session("talk").fork(f"fork-{f.number}").messages()),
    ("remember", lambda m, f: m.remember(f"Never use {f.handle} for the harbor server", kind="decision")),
    ("remember_many", lambda m, f: m.remember_many([Draft(content=f"harbor {f.handle} again", topic="t")])),
    ("judge", lambda m, f: m.judge(m.proposals().code or "none", keep=[1])),
    ("reviews.propose", lambda m, f: m.reviews.propose(Draft(content=f"prefers {f.handle}", kind="preference"))),
    ("reinforce", lambda m, f: m.reinforce(f.uid)),
    ("demote", lambda m, f: m.demote(f.uid)),
    ("revise", lambda m, f: m.revise(f.uid, "Mine now")),
    ("pin", lambda m, f: m.pin(f.uids[1])),
    ("unpin", lambda m, f: m.unpin(f.uid)),
    ("forget", lambda m, f: m.forget(f.uid)),
    ("restore", lambda m, f: m.restore(f.uids[3])),
    ("erase", lambda m, f: m.erase(f.uid)),
    ("erase", lambda m, f: m.erase(f.uids)),
    ("resolve", lambda m, f: m.resolve("c1", keep=f.uids[1])),
    ("reviews.apply", lambda m, f: m.reviews.apply([f"archive:{f.uid}"])),
    ("undo", lambda m, f: [_try(lambda e=e: m.undo(e)) for e in (f.events, f"g{f.events}", f.events + 40)]),
    ("aliases.add", lambda m, f: m.aliases.add("wharf", "harbor")),
    ("aliases.remove", lambda m, f: m.aliases.remove("wharf")),
    ("pauses.pause", lambda m, f: m.pauses.pause("other")),
    ("pauses.resume", lambda m, f: m.pauses.resume("other")),
    ("store.configure", lambda m, f: m.store.configure("preset", "manual")),
    ("guard", lambda m, f: m.guard(4, "tell")),
    ("store.allow", lambda m, f: m.store.allow("not-a-secret")),
    ("knowledge.add_decision", lambda m, f: m.knowledge.add_decision(f"Use {f.handle} in the harbor")),
    (
        "knowledge.add_convention",
        lambda m, f: m.knowledge.add_convention(f"{f.handle} comes first in the harbor", "python"),
    ),
    (
        "knowledge.add_failure",
        lambda m, f: m.knowledge.add_failure("ValueError: harbor is closed", f"Ask {f.handle} before"),
    ),
    ("knowledge.add_preference", lambda m, f: m.knowledge.add_preference("Short words", "style")),
    ("knowledge.add_pattern", lambda m, f: m.knowledge.add_pattern("Retry with jitter", "network")),
    ("knowledge.clear_all", lambda m, f: m.knowledge.clear_all()),
    ("promote", lambda m, f: [_try(lambda u=u: m.promote(u, to="global")) for u in f.uids]),
    ("task", lambda m, f: [m.task("TASK-001"), m.task("TASK-001").add_reasoning(f"harbor {f.handle}", "plan")]),
    ("vectors.on", lambda m, f: m.vectors.on()),
    ("vectors.off", lambda m, f: m.vectors.off()),
    ("upkeep", lambda m, f: m.upkeep(dry_run=True)),
    ("store.finish_sessions", lambda m, f: m.store.finish_sessions()),
    ("store.follow_code", lambda m, f: m.store.follow_code()),
    ("store.pack_sessions", lambda m, f: m.store.pack_sessions()),
    ("undo", lambda m, f: m.undo()),
)
NAMESPACES = ("aliases", "deliveries", "knowledge", "pauses", "reviews", "store", "vectors")
# Verbs through which nothing of a store comes out, or which work on a file that a person named.
NO_DOORS = {
    "close",
    "perform",  # the verbs themselves
    "subscribe",
    "together",
    "import_transcripts",
    "deliveries.at_stop",  # the list of `proposals`, of the session itself
    "deliveries.follow",
    "deliveries.is_attended",
    "deliveries.last_told",  # a file of the home, by project, role and agent
    "vectors.keep_up",
    "store.follow_code",
    "deliveries.on_compaction",
    "store.restore",
    "store.backup",
    "store.doctor",
    "store.export_to",  # the same lines, in a file
    "store.merge",
    "store.move",
    "store.moved_away",
    "store.import_",
    "vectors.check",
    "vectors.limits",
}


class Refused(str):
    """What a refusal says."""


def _try(door: Callable[[], object]) -> object:
    """What comes out; of a refusal, what it says."""
    try:
        return door()
    except kept.KeptError as refusal:
        return Refused(refusal)


def _is_closed(came_out: object) -> bool:
    """Whether a door did not open: it refused, or gave an empty briefing that says why, or help."""
    if isinstance(came_out, list):
        return bool(came_out) and all(map(_is_closed, came_out))
    if isinstance(came_out, Briefing):
        return came_out.text == "" and came_out.error is not None
    return isinstance(came_out, Refused) or getattr(came_out, "command", "") == "/memory help"


def _lines(foreign: Foreign) -> Iterator[str]:
    for argument in (foreign.uid, f"{foreign.handle} harbor"):
        yield from (f"/memory search {argument}", f"/forget {argument} nowhere", f"/pin {argument} nowhere")
    yield from (f"/forget {foreign.uid}", f"/pin {foreign.uid}")
    yield from ("/memory status", "/memory list", "/memory list decision", "/memory alias list", "/memory help")


def last_event(home: Path, number: int) -> Event:
    with opened(home, number, Actor(role="admin")) as memory:
        return memory.history(limit=1)[-1]


def leaks(home: Path, projects: list[Foreign], readers: Iterable[int]) -> list[str]:
    """What came out where it must not, through every door and in every role; and what was changed from outside."""
    found: list[str] = []
    for number in readers:
        own, foreign = projects[number], projects[(number + 1) % len(projects)]
        before = {one.number: last_event(home, one.number) for one in (own, foreign)}
        stranger = Actor(role="project", project=foreign.space)
        skill, skill_of_own = Actor(role="skill"), Actor(role="skill", project=own.space)
        for actor, wanted in ((skill, foreign), (skill_of_own, own), (stranger, own), (stranger, foreign)):
            found += _through_all_doors(home, number, actor, wanted, set())
        if last_event(home, number) != before[number]:
            found.append(f"p{number:02}: changed by a skill or by another project's agent")
        for role in ("project", "admin"):
            found += _through_all_doors(home, number, Actor(role=role), foreign, {number})
        if last_event(home, foreign.number) != before[foreign.number]:
            found.append(f"p{foreign.number:02}: changed from p{number:02}")
    return found


def _through_all_doors(home: Path, number: int, actor: Actor, foreign: Foreign, allowed: set[int]) -> list[str]:
    found = []
    with opened(home, number, actor) as memory:
        heard: list[object] = []
        memory.subscribe(heard.append)
        for verb, door in (*READING, *WRITING):
            came_out = _try(lambda door=door: door(memory, foreign))
            seen = {int(one) for one in CANARY.findall(f"{came_out!r} {heard!r}")}
            if seen - allowed:
                found.append(f"{actor.role} in p{number:02}, {verb} of p{foreign.number:02}: sees {seen - allowed}")
            if not allowed and (verb, door) in READING and not _is_closed(came_out):
                found.append(f"{actor.role} in p{number:02}, {verb} of p{foreign.number:02}: is answered")
            heard.clear()
    return found


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Foreign]]:
    home = tmp_path_factory.mktemp("leaks") / "home"
    admin = Actor(role="admin")
    with kept.open(home=home, project="p00", actor=admin, clock=FakeClock(), settings=SETTINGS) as memory:
        memory.remember("Prefers short answers about the harbor", kind="preference", tier="global")
    return home, [fill(home, number) for number in range(PROJECTS)]


def test_no_verb_ref_or_role_leaks_a_canary_of_another_project(house: tuple[Path, list[Foreign]]) -> None:
    """B14: admin and project agent in their own project, a skill, and the agent of another project. None leaks."""
    home, projects = house
    assert leaks(home, projects, range(0, PROJECTS, 1 if IS_LONG else 9)) == []


def test_a_project_agent_reads_and_writes_its_own_and_reads_global(house: tuple[Path, list[Foreign]]) -> None:
    """B14, B9: the walls let through what they should; otherwise the test above would prove nothing."""
    home, projects = house
    own = projects[7]
    with opened(home, 7) as memory:
        assert {one.space for one in memory.list(limit=100)} == {own.space, "global"}
        assert canary(7) in repr([*memory.recall(own.handle, scope="sessions").hits])
        assert canary(7) in str(memory.share(to="skill", action="look", query=own.handle))
        assert memory.remember("A harbor of its own").outcome == "stored"
        with pytest.raises(kept.NotAllowed, match="may not add a global fact"):
            memory.remember("For all harbors", tier="global")
    with opened(home, 7, Actor(role="admin")) as memory:
        assert memory.remember("For all the harbors", tier="global").outcome == "stored"
        assert canary(7) in repr(memory.list())


def _methods(holder: object) -> set[str]:
    """Return the names of the methods, without the twins to await, which perform the same verbs."""
    found = {name: getattr(holder, name) for name in dir(holder) if not name.startswith("_")}
    return {name for name, one in found.items() if inspect.ismethod(one) and not inspect.iscoroutinefunction(one)}


def test_every_verb_is_a_door_that_is_tried() -> None:
    """A verb that is added has to be added above, or named as one through which nothing comes out."""
    with kept.open(":memory:") as memory:
        verbs = _methods(memory)
        for name in NAMESPACES:
            verbs |= {f"{name}.{verb}" for verb in _methods(getattr(memory, name))}
    tried = {verb for verb, _ in (*READING, *WRITING)}
    assert verbs - tried - NO_DOORS == set()
    assert tried - verbs == {"slash"}


def test_a_backup_holds_one_project(house: tuple[Path, list[Foreign]], tmp_path: Path) -> None:
    home, _ = house
    with opened(home, 3) as memory:
        memory.store.backup(tmp_path / "b.db")
    held = {int(one) for one in re.findall(rb"zq(\d\d)canary", (tmp_path / "b.db").read_bytes())}
    assert held == {3}
    with opened(home, 3, Actor(role="skill")) as memory, pytest.raises(kept.NotAllowed):
        memory.store.backup(tmp_path / "c.db")
    assert not (tmp_path / "c.db").exists()


def asked_before_anything_was_kept(home: Path) -> list[str]:
    """Two projects without a memory of their own ask; what each can learn of the other's question."""
    with kept.open(home=home, project="p00", actor=Actor(role="admin"), settings=SETTINGS) as memory:
        memory.remember("Prefers short answers about the harbor", kind="preference", tier="global")
    with kept.open(home=home, project="quiet", settings=SETTINGS) as memory:
        memory.recall("harbor takeover of initech")
        memory.briefing("harbor takeover of initech")
        memory.share(to="skill", action="look", query="harbor takeover of initech")
    found = []
    with kept.open(home=home, project="curious", settings=SETTINGS) as memory:
        for receipt in (None, "r1", "r2", "r3"):
            with suppress(kept.NotFound):
                found.append(memory.why(receipt).question.query)
    return found


def test_what_one_project_asked_is_not_told_to_another(tmp_path: Path) -> None:
    """Receipts are kept in the project alone, never in global; also before it has anything else."""
    assert asked_before_anything_was_kept(tmp_path) == []


# The oracle: each of these faults must be noticed.


@pytest.fixture
def small_house(tmp_path: Path) -> tuple[Path, list[Foreign]]:
    return tmp_path / "home", [fill(tmp_path / "home", number) for number in range(3)]


def test_a_broken_rule_for_reading_is_noticed(
    small_house: tuple[Path, list[Foreign]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "may_read", lambda actor, space: True)
    found = leaks(*small_house, range(1))
    assert {verb for verb, _ in READING} <= _verbs(found)
    assert any("sees {0}" in one for one in found)


def test_a_broken_rule_for_writing_is_noticed(
    small_house: tuple[Path, list[Foreign]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "may_write", lambda actor, space, consent=False: True)
    assert "p00: changed by a skill or by another project's agent" in leaks(*small_house, range(1))


def test_a_hole_in_the_wall_between_two_projects_is_noticed(
    small_house: tuple[Path, list[Foreign]], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, projects = small_house
    whole = spaces.HomeSpaces.project

    def broken(self: spaces.HomeSpaces) -> Any:
        self._located = self._projects.locate("p01")
        return whole(self)

    monkeypatch.setattr(spaces.HomeSpaces, "project", broken)
    assert "get" in _verbs(_through_all_doors(home, 0, Actor(), projects[1], {0}))


def test_receipts_in_global_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "holds_receipts", lambda storage: True)
    assert "harbor takeover of initech" in asked_before_anything_was_kept(tmp_path)


def _verbs(found: list[str]) -> set[str]:
    return {match[1] for one in found if (match := re.search(r", ([\w.]+) of p", one))}
