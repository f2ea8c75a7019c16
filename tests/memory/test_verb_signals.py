"""Signals by verb: every verb of the table is called once on a real memory, and its signals say what it did."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import kept
from kept.memory.verbs import all_verbs
from kept.model import Draft, Memory, Message, Source, TaskRecord
from kept.ports import Where
from kept.storage.shared import every
from tests.builders import FakeClock, context_of
from tests.folders import git
from tests.memory.team_clones import Team

SAID = "We decided to deploy the harbor service on Tuesdays, because the registry is quiet then."
EVERYTHING = Where(scope=None)
Act = Callable[[kept.Kept, Path], object]


def transcript(folder: Path) -> Path:
    """A transcript of Claude Code with one message."""
    place = folder / "transcripts"
    place.mkdir()
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "from-elsewhere",
        "cwd": str(folder),
        "timestamp": "2026-11-16T12:00:00Z",
        "message": {"role": "user", "content": "We always use tabs in makefiles of this project."},
    }
    (place / "from-elsewhere.jsonl").write_text(json.dumps(line) + "\n")
    return place


class Lengths:
    """An embedder: the length of a text is its meaning."""

    model = "lengths"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]


def export(memory: kept.Kept, folder: Path) -> Path:
    target = folder / "export.jsonl"
    memory.store.export_to(target)
    return target


# Each verb with a call of it; those that write make a difference. In an order in which every one has something to do.
CALLS: tuple[tuple[str, Act], ...] = (
    ("remember", lambda m, f: m.remember("The harbor cluster has three nodes")),
    ("remember_many", lambda m, f: m.remember_many(["The pier is closed on Mondays", "The ferry takes an hour"])),
    ("recall", lambda m, f: m.recall("harbor")),
    ("why", lambda m, f: m.why()),
    ("replay", lambda m, f: m.store.replay()),
    ("reinforce", lambda m, f: m.reinforce(4)),
    ("demote", lambda m, f: m.demote(4)),
    ("revise", lambda m, f: m.revise(4, "The harbor cluster has four nodes")),
    ("pin", lambda m, f: m.pin(4)),
    ("unpin", lambda m, f: m.unpin(4)),
    ("forget", lambda m, f: m.forget(5)),
    ("restore", lambda m, f: m.restore(5)),
    ("promote", lambda m, f: m.promote(6, "global")),
    ("undo", lambda m, f: m.undo()),
    ("briefing", lambda m, f: m.briefing("harbor")),
    ("share", lambda m, f: m.share(to="skill", action="look", query="harbor")),
    ("get", lambda m, f: m.get(4)),
    ("list", lambda m, f: m.list()),
    ("find", lambda m, f: m.find("harbor")),
    ("history", lambda m, f: m.history()),
    ("status", lambda m, f: m.status()),
    ("reviews.list", lambda m, f: m.reviews.list()),
    ("reviews.propose", lambda m, f: m.reviews.propose(Draft(content="Prefers short answers", kind="preference"))),
    ("reviews.apply", lambda m, f: m.reviews.apply(["archive:5"])),
    ("aliases.add", lambda m, f: m.aliases.add("dock", "harbor")),
    ("aliases.list", lambda m, f: m.aliases.list()),
    ("aliases.remove", lambda m, f: m.aliases.remove("dock")),
    ("pauses.pause", lambda m, f: m.pauses.pause()),
    ("pauses.status", lambda m, f: m.pauses.status()),
    ("pauses.resume", lambda m, f: m.pauses.resume()),
    ("guard", lambda m, f: m.guard(4, "tell")),
    ("store.allow", lambda m, f: m.store.allow("not-a-secret")),
    ("store.configure", lambda m, f: m.store.configure("briefing_max_tokens", "3000")),
    ("session", lambda m, f: m.session("talk")),
    ("session.append", lambda m, f: m.session("talk").append("user", SAID)),
    ("sessions", lambda m, f: m.sessions()),
    ("session.messages", lambda m, f: m.session("talk").messages()),
    ("session.window", lambda m, f: m.session("talk").window()),
    ("session.flush", lambda m, f: m.session("talk").flush()),
    ("session.findings", lambda m, f: m.session("talk").findings()),
    ("session.record", lambda m, f: m.session("talk").record()),
    ("session.compact", lambda m, f: m.session("talk").compact(force=True)),
    ("session.fork", lambda m, f: m.session("talk").fork("fork")),
    ("session.finish", lambda m, f: m.session("talk").finish()),
    ("proposals", lambda m, f: m.proposals()),
    ("judge", lambda m, f: m.judge(m.proposals("talk").code, keep=[1])),
    ("session.given", lambda m, f: m.session("talk").given()),
    ("task", lambda m, f: m.task("T-1", description="Repair the crane")),
    ("tasks", lambda m, f: m.tasks()),
    ("task.show", lambda m, f: m.task("T-1").info),
    ("task.add_reasoning", lambda m, f: m.task("T-1").add_reasoning("The cable is worn out at its end", "look")),
    ("task.add_tool_output", lambda m, f: m.task("T-1").add_tool_output("ruler", "forty millimetres", "look")),
    ("task.memories", lambda m, f: m.task("T-1").memories()),
    ("task.clear", lambda m, f: m.task("T-1").clear()),
    ("task.set_state", lambda m, f: m.task("T-1").set_state("active")),
    ("narrative.begin", lambda m, f: m.narrative("storm").begin()),
    ("narratives", lambda m, f: m.narratives()),
    ("narrative.memories", lambda m, f: m.narrative("storm").memories()),
    ("narrative.end", lambda m, f: m.narrative("storm").end()),
    ("knowledge.add_failure", lambda m, f: m.knowledge.add_failure("ValueError: the harbor is closed", "Open it")),
    ("knowledge.failures", lambda m, f: m.knowledge.failures()),
    ("files.extract", lambda m, f: m.files.extract()),
    ("files.items", lambda m, f: m.files.items()),
    ("files.sync", lambda m, f: m.files.sync()),
    ("files.status", lambda m, f: m.files.status()),
    ("files.agents", lambda m, f: m.files.agents()),
    ("team.share", lambda m, f: m.team.share(4)),
    ("team.push", lambda m, f: m.team.push()),
    ("team.pull", lambda m, f: m.team.pull()),
    ("team.trust", lambda m, f: m.team.trust("ann@example.org")),
    ("team.status", lambda m, f: m.team.status()),
    ("team.unshare", lambda m, f: m.team.unshare(4)),
    ("files.write_brain", lambda m, f: m.files.write_brain(f / "brain")),
    ("store.export", lambda m, f: list(m.store.export())),
    ("store.export_to", export),
    ("store.import_", lambda m, f: m.store.import_(f / "notes.md", "markdown")),
    ("store.merge", lambda m, f: m.store.merge(f / "other.jsonl")),
    ("import_transcripts", lambda m, f: m.import_transcripts("claude-code", transcript(f))),
    ("store.backup", lambda m, f: m.store.backup(f / "backup.db")),
    ("conflicts", lambda m, f: m.conflicts()),
    ("resolve", lambda m, f: m.resolve("c1", keep=1)),
    ("upkeep", lambda m, f: m.upkeep()),
    ("store.finish_sessions", lambda m, f: m.store.finish_sessions()),
    ("store.pack_sessions", lambda m, f: m.store.pack_sessions()),
    ("store.scan", lambda m, f: m.store.scan()),
    ("store.doctor", lambda m, f: m.store.doctor()),
    ("vectors.status", lambda m, f: m.vectors.status()),
    ("vectors.on", lambda m, f: m.vectors.on()),
    ("vectors.off", lambda m, f: m.vectors.off()),
    ("erase", lambda m, f: m.erase(4)),
    ("knowledge.clear_all", lambda m, f: m.knowledge.clear_all()),
    ("store.restore", lambda m, f: m.store.restore(f / "backup.db", overwrite_newer=True)),
    (
        "store.move",
        lambda m, f: m.store.move(str(f / "moved.db")),
    ),  # the last: the old place refuses writers
)
# Verbs that hand out memories, tasks or messages: whoever watches hears that something was loaded.
LOADING = {
    verb.name for verb in all_verbs() if verb.effect == "reads" and verb.returns.noun in (Memory, TaskRecord, Message)
}
LOADING |= {"recall", "briefing", "share", "session.window", "session.record", "reviews.list", "store.export_to"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    team = Team(tmp_path, ["ann"], are_accepted=False)
    team.clones[0].says("The buoy was painted in May")
    team.clones[0].memory.team.push()
    team.close()
    git("init", "-q", "-b", "main", cwd=project)
    git("remote", "add", "origin", team.remote, cwd=project)
    git("config", "user.name", "Bob", cwd=project)
    git("config", "user.email", "bob@example.org", cwd=project)
    (project / "README.md").write_text("# Harbor\n\n- [ ] Paint the crane before winter\n")
    (project / "notes.md").write_text("- The crane is painted red\n- The pilot boat leaves at six\n")
    with kept.open(tmp_path / "other.db", clock=FakeClock()) as other:
        other.remember("The lighthouse was built in 1899")
        other.store.export_to(project / "other.jsonl")
    return project


@pytest.fixture
def memory(folder: Path, tmp_path: Path) -> Iterator[kept.Kept]:
    with kept.open(
        project=folder,
        home=tmp_path / "home",
        clock=FakeClock(),
        settings=kept.Settings(auto_upkeep=False),
        confirm=lambda question: True,
        origin="user",
        embedder=Lengths(),
    ) as opened:
        yield opened


def live(memory: kept.Kept) -> dict[str, int]:
    """How many live memories each space has."""
    counts = {}
    for reader in context_of(memory).readers():
        for one in every(reader, EVERYTHING):
            counts[one.space] = counts.get(one.space, 0) + 1
    return counts


def test_every_verb_is_called() -> None:
    assert sorted(name for name, _ in CALLS) == sorted(verb.name for verb in all_verbs())


def test_every_verb_sends_each_signal_once_with_its_name_and_its_true_delta(memory: kept.Kept, folder: Path) -> None:
    """B18."""
    memory.remember("Always use Fastify for the public API server", kind="decision")
    memory.remember("Never use Fastify for the public API server", kind="decision")
    memory.remember("The crane lifts forty tons", source=Source(narrative="storm"))
    heard: list[kept.Signal] = []
    memory.subscribe(heard.append)
    wrong: list[str] = []
    for name, act in CALLS:
        before = live(memory)
        heard.clear()
        act(memory, folder)
        sent = list(heard)
        after = live(memory)
        wrong += [f"{name}: {one.name} of verb {one.verb!r}" for one in sent if one.verb != name]
        keys = [(one.name, one.scope, one.payload.get("type"), one.payload.get("path")) for one in sent]
        wrong += [f"{name}: {key} sent twice" for key in {key for key in keys if keys.count(key) > 1}]
        deltas = {
            one.payload["path"]: one.payload["delta"]
            for one in sent
            if one.name == "memory:write" and one.payload["type"] == "memory"
        }
        for space in before.keys() | after.keys():
            grown = after.get(space, 0) - before.get(space, 0)
            if deltas.get(space, 0) != grown:
                wrong.append(f"{name}: {space} grew by {grown}, told {deltas.get(space)}")
        if name in LOADING and not any(one.name == "memory:read" for one in sent):
            wrong.append(f"{name}: nothing was read")
    assert wrong == [], "\n".join(wrong)


def test_a_look_at_a_turn_is_one_verb_and_its_searches_differ_by_scope(memory: kept.Kept) -> None:
    memory.remember("The harbor cluster has three nodes")
    heard: list[kept.Signal] = []
    memory.subscribe(heard.append)
    with memory.session("talk").turn("How many nodes does the harbor have?") as turn:
        heard.clear()
        turn.context()
        assert {one.verb for one in heard} == {"session.turn"}
        assert [one.scope for one in heard if one.name == "memory:search"] == ["memory", "items"]
        heard.clear()
        turn.persist("Three.")
    assert [(one.verb, one.payload["delta"]) for one in heard] == [("session.append", 1)]


def test_the_signal_of_a_view_tells_how_many_characters_the_file_has_grown_by(memory: kept.Kept) -> None:
    memory.remember("The harbor cluster has three nodes")
    [written] = memory.files.sync()
    before = len(Path(written.path).expanduser().read_text())
    heard: list[kept.Signal] = []
    memory.subscribe(heard.append)
    memory.remember("The pier is closed on Mondays")
    memory.files.sync()
    [told] = [one for one in heard if one.payload.get("type") == "view"]
    assert told.payload["delta"] == len(Path(written.path).expanduser().read_text()) - before
