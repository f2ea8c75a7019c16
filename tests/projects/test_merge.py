"""Merging two projects: target first, by uid, so that it can be done again."""

from pathlib import Path

import pytest

import kept
from kept.memory import merge as merge_module
from kept.memory.merge import ProjectMergeReport, merge
from kept.model import Actor, Alias, Allowance, Conflict, Memory, Source, TaskRecord
from kept.ports import ANYWHERE, Storage
from kept.projects import Projects
from kept.projects.home import Home
from kept.projects.registry import Project
from kept.settings import Settings
from kept.storage import open_space
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, FakeClock, stamp
from tests.builders import memory as a_memory

ADMIN = Actor(role="admin", name="user")


class Bench:
    """A home with two projects, `old` and `new`."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.projects = Projects(Home(folder / "home"), environ={"HOME": str(folder)}, now=self.clock)
        self.home = folder / "home"

    def opened(self, project: str) -> kept.Kept:
        return kept.open(project=project, home=self.home, clock=self.clock, settings=Settings())

    def remember(self, project: str, *texts: str, **fields: object) -> None:
        with self.opened(project) as memory:
            for text in texts:
                memory.remember(text, **fields)  # type: ignore[arg-type]

    def storage(self, project: Project) -> Storage:
        path = self.projects.home.prepare(project.folder).database
        return open_space(path, project.space, now=self.clock)

    def merge(self, actor: Actor = ADMIN) -> ProjectMergeReport:
        return merge(self.projects, "old", "new", actor=actor, settings=Settings(), clock=self.clock)

    def contents(self, project: str, **where: object) -> list[str]:
        with self.opened(project) as memory:
            return sorted(one.content for one in memory.list(**where))  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.remember("old", "one", "two", "three")
    bench.remember("new", "four")
    return bench


def test_memories_move_with_all_their_fields(bench: Bench) -> None:
    with bench.opened("old") as memory:
        before = memory.reinforce(1)
    bench.clock.advance(days=2)
    merged = bench.merge()
    assert (merged.moved, merged.duplicates, merged.erased) == (3, 0, 0)
    assert merged.into.name == "new"
    with bench.opened("new") as memory:
        after = memory.get(before.uid)
    assert kept.model.replace(after, id=before.id, space=before.space) == before
    assert bench.contents("new") == ["four", "one", "three", "two"]


def test_archived_and_forgotten_memories_move_as_what_they_are(bench: Bench) -> None:
    with bench.opened("old") as memory:
        memory.forget(2)
    bench.merge()
    assert bench.contents("new", status="forgotten") == ["two"]
    with bench.opened("new") as memory:
        [forgotten] = memory.list(status="forgotten")
        assert memory.restore(forgotten.ref).status == "candidate", "its history stayed behind"


def test_what_both_know_is_counted_and_not_copied(bench: Bench) -> None:
    bench.remember("new", "ONE")
    merged = bench.merge()
    assert (merged.moved, merged.duplicates) == (2, 1)
    assert bench.contents("new") == ["ONE", "four", "three", "two"]


def test_the_same_key_is_the_same_memory(bench: Bench) -> None:
    bench.remember("old", "five", key="k")
    bench.remember("new", "six", key="k")
    assert bench.merge().duplicates == 1
    assert "five" not in bench.contents("new")


def test_what_was_erased_in_the_target_does_not_come_back(bench: Bench) -> None:
    bench.remember("new", "two")
    with bench.opened("new") as memory:
        memory.erase(2)
    assert bench.merge().erased == 1
    assert bench.contents("new") == ["four", "one", "three"]


def test_the_source_is_archived_as_superseded_and_the_target_answers_for_it(bench: Bench) -> None:
    old = bench.projects.get("old")
    bench.merge()
    storage = bench.storage(old)
    with storage.reading() as reader:
        left = reader.select(ANYWHERE)
        events = reader.events()
    storage.close()
    assert {(one.status, one.reason) for one in left} == {("archived", "superseded")}
    assert all(one.superseded_by == one.uid for one in left)
    assert [event.action for event in events][-3:] == ["merge"] * 3
    assert bench.projects.get("old").name == "new"


def test_the_merge_is_journaled_in_the_target(bench: Bench) -> None:
    bench.merge()
    with bench.opened("new") as memory:
        events = memory.history()
    assert [(event.actor, event.action) for event in events] == [("agent", "remember")] + [("user", "merge")] * 3


@pytest.mark.parametrize("fails_at", range(1, 9))
def test_a_merge_that_was_interrupted_goes_on_and_nothing_is_lost_or_doubled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Whichever transaction is the one that fails."""
    monkeypatch.setattr(merge_module, "BATCH", 1)
    begun = 0
    original = SqliteStorage.writing

    def writing(self: SqliteStorage, *args: object, **options: object) -> object:
        nonlocal begun
        begun += 1
        if begun == fails_at:
            raise KeyboardInterrupt
        return original(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStorage, "writing", writing)
    try:
        bench.merge()
    except KeyboardInterrupt:
        old, new = bench.contents("old"), bench.contents("new")
        assert {"one", "two", "three"} <= {*old, *new}
        bench.merge()
    assert bench.contents("new") == ["four", "one", "three", "two"]


def test_a_note_of_a_task_does_not_stand_in_for_what_is_to_last(bench: Bench) -> None:
    """D1: the note goes with its task, and memories merged into it would go with it."""
    old, new = bench.projects.get("old"), bench.projects.get("new")
    for project, tier in ((old, "project"), (new, "task")):
        storage = bench.storage(project)
        with storage.writing(stamp()) as tx:
            tx.add(a_memory("Said in both", space=project.space, tier=tier), "remember")
        storage.close()
    bench.merge()
    storage = bench.storage(new)
    with storage.reading() as reader:
        tiers = [one.tier for one in reader.select(limit=100) if one.content == "Said in both"]
    storage.close()
    assert sorted(tiers) == ["project", "task"]


def test_conflicts_aliases_tasks_and_allowances_move_too(bench: Bench) -> None:
    old, new = bench.projects.get("old"), bench.projects.get("new")
    storage = bench.storage(old)
    with storage.writing(stamp()) as tx:
        first, second = tx.get(Memory, 1), tx.get(Memory, 2)
        assert first is not None
        assert second is not None
        tx.add(Conflict(left=first.uid, right=second.uid, type="contradictory", detected_at=START), "conflict")
        tx.add(Alias(word="auth", expands_to=("login",)), "alias")
        tx.add(Alias(word="db", expands_to=("database",)), "alias")
        tx.add(Allowance(digest="d1"), "allow")
        for name in ("TASK-001", "TASK-002"):
            tx.add(TaskRecord(name=name, description="of the old one", created_at=START), "task")
    storage.close()
    storage = bench.storage(new)
    with storage.writing(stamp()) as tx:
        tx.add(Alias(word="auth", expands_to=("session",)), "alias")
        tx.add(Allowance(digest="d2"), "allow")
        tx.add(TaskRecord(name="TASK-001", description="of the new one", created_at=START), "task")
    storage.close()
    bench.merge()
    storage = bench.storage(new)
    with storage.reading() as reader:
        assert [(c.left, c.right) for c in reader.all(Conflict)] == [(first.uid, second.uid)]
        assert {a.word: a.expands_to for a in reader.all(Alias)} == {"auth": ("session", "login"), "db": ("database",)}
        assert {allowance.digest for allowance in reader.all(Allowance)} == {"d1", "d2"}
        tasks = [(task.name, task.description) for task in reader.all(TaskRecord)]
        assert tasks == [("TASK-001", "of the new one"), ("TASK-002", "of the old one")]
    storage.close()


def test_only_who_may_write_both_may_merge(bench: Bench) -> None:
    for actor in (Actor(), Actor(role="skill"), Actor(project=bench.projects.get("new").space)):
        with pytest.raises(kept.NotAllowed):
            bench.merge(actor)
    assert bench.contents("old") == ["one", "three", "two"]


def test_a_project_is_not_merged_into_itself_or_into_nothing(bench: Bench) -> None:
    with pytest.raises(kept.InvalidInput, match="the same project"):
        merge(bench.projects, "old", "old", actor=ADMIN, settings=Settings(), clock=bench.clock)
    with pytest.raises(kept.NotFound):
        merge(bench.projects, "old", "nowhere", actor=ADMIN, settings=Settings(), clock=bench.clock)


def test_a_project_without_memories_can_be_merged(bench: Bench) -> None:
    bench.projects.add("empty")
    merged = merge(bench.projects, "empty", "new", actor=ADMIN, settings=Settings(), clock=bench.clock)
    assert merged.moved == 0
    assert bench.projects.get("empty").name == "new"


def test_sessions_move_too_and_two_of_one_name_stay_two(bench: Bench) -> None:
    """B3: what was said in the old project is found in the new one, with its findings, packed sessions included."""
    with bench.opened("old") as memory:
        memory.session("ancient").append("user", "An old story about the lighthouse")
        bench.clock.advance(days=40)
        assert memory.store.pack_sessions() == ["ancient"]
        shared = memory.session("s1")
        shared.append("user", "We talk about the harbor")
        shared.fork("s2").append("user", "and about the pier")
        memory.remember("Found in a talk", source=Source(session="s1"))
    with bench.opened("new") as memory:
        memory.session("s1").append("user", "Something else in a session of that name")
    old = bench.projects.get("old").id
    assert bench.merge().sessions == 3
    with bench.opened("new") as memory:
        assert {s.name: s.parent for s in memory.sessions()} == {
            "s1": None,
            "ancient": None,
            f"s1-{old}": None,
            "s2": f"s1-{old}",
        }
        assert [m.content for m in memory.session("s2").messages()] == [
            "We talk about the harbor",
            "and about the pier",
        ]
        assert len(memory.session("s1").messages()) == 1
        assert {hit.message and hit.message.session for hit in memory.recall("pier", scope="sessions")} == {"s2"}
        assert memory.recall("lighthouse", scope="sessions").hits == ()
        assert len(memory.recall("lighthouse", scope="sessions", packed=True)) == 1
        [finding] = [m for m in memory.list() if m.content == "Found in a talk"]
        assert finding.source.session == f"s1-{old}"
    files = {path.name for path in bench.home.rglob("sessions/*.jsonl") if "new" in path.parent.parent.name}
    assert files == {"s1.jsonl", f"s1-{old}.jsonl", "s2.jsonl"}


def test_a_merge_that_was_interrupted_moves_each_session_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.opened("old") as memory:
        for name in ("s1", "s2"):
            memory.session(name).append("user", f"What was said in {name}")

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(merge_module, "pages_of", fail)
        with pytest.raises(KeyboardInterrupt):
            bench.merge()
    assert bench.merge().sessions == 0
    with bench.opened("new") as memory:
        assert [session.name for session in memory.sessions()] == ["s1", "s2"]
        assert [m.content for m in memory.session("s2").messages()] == ["What was said in s2"]
