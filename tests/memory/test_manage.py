"""Contradictions, aliases, pauses, false alarms, scans: what somebody has to decide, through the facade."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import kept
from kept.memory.documents import Document
from kept.model import Actor, Alias, Draft, Message, SessionRecord, Source, TaskRecord
from kept.ports import Stamp
from tests.builders import FakeClock, context_of
from tests.builders import memory as a_memory
from tests.folders import posix_only

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
AUTOMATIC = "The nightly import job reads from the replica because the primary is too busy."


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=FakeClock(), settings=kept.Settings()) as opened:
        yield opened


def automatic(content: str) -> Draft:
    return Draft(content=content, source=Source(origin="extraction"))


def test_a_contradiction_is_raised_and_can_be_resolved(memory: kept.Kept) -> None:
    """C10, C22: both stay until somebody decides; then the other one is archived as superseded."""
    memory.remember("Always use Fastify for the public API server", kind="decision")
    receipt = memory.remember("Never use Fastify for the public API server", kind="decision")
    (conflict,) = receipt.conflicts
    assert conflict.type == "contradictory"
    assert memory.conflicts() == [conflict]
    assert {hit.ref for hit in memory.recall("fastify api")} == {"1", "2"}
    assert memory.recall("fastify api").conflicts == (conflict,)
    settled = memory.resolve(conflict.ref, keep=1)
    assert settled.verified_at is not None
    assert memory.conflicts() == []
    assert [one.ref for one in memory.conflicts(resolved=True)] == [conflict.ref]
    loser = memory.get(2)
    assert (loser.status, loser.reason, loser.superseded_by) == ("archived", "superseded", memory.get(1).uid)
    memory.undo()
    assert memory.get(2).status == "confirmed"
    assert len(memory.conflicts()) == 1


def test_resolving_says_what_is_wrong(memory: kept.Kept) -> None:
    memory.remember("Always use Fastify for the public API server", kind="decision")
    memory.remember("Never use Fastify for the public API server", kind="decision")
    memory.remember("Something else entirely")
    with pytest.raises(kept.NotFound, match="c9"):
        memory.resolve("c9", keep=1)
    with pytest.raises(kept.InvalidInput, match="not part of"):
        memory.resolve("c1", keep=3)
    with pytest.raises(kept.InvalidInput, match="conflict"):
        memory.resolve("nonsense", keep=1)


def test_what_is_gone_cannot_be_kept(memory: kept.Kept) -> None:
    memory.remember("Always use Fastify for the public API server", kind="decision")
    memory.remember("Never use Fastify for the public API server", kind="decision")
    memory.forget(1)
    with pytest.raises(kept.InvalidInput, match=r"Memory 1 is archived \(forgotten\)") as refused:
        memory.resolve("c1", keep=1)
    assert "kept restore 1" in refused.value.hint
    assert memory.get(2).status == "confirmed"
    memory.restore(1)
    assert memory.resolve("c1", keep=1).status == "confirmed"
    with pytest.raises(kept.InvalidInput, match=r"archived \(superseded\). It was replaced by 1"):
        memory.resolve("c1", keep=2)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_to_both_sides_a_settled_conflict_leaves_the_kept_one_alive(
    memory: kept.Kept, seed: int
) -> None:
    """A seeded walk: forget, archive, restore, undo and resolve in any order."""
    random = Random(seed)
    memory.remember("Always use Fastify for the public API server", kind="decision")
    memory.remember("Never use Fastify for the public API server", kind="decision")
    memory.remember("The brochure is printed in Antwerp")
    verbs = {
        "forget": memory.forget,
        "archive": lambda ref: memory.reviews.apply([f"archive:{ref}"]),
        "restore": memory.restore,
        "undo": lambda _: memory.undo(),
    }
    for _ in range(12):
        name, ref = random.choice([*verbs, "resolve", "resolve"]), random.randint(1, 3)
        before = [memory.get(one, forgotten=True) for one in (1, 2, 3)]
        try:
            if name != "resolve":
                verbs[name](ref)
                continue
            assert not memory.resolve("c1", keep=ref).is_archived
        except kept.KeptError:
            assert [memory.get(one, forgotten=True) for one in (1, 2, 3)] == before
        else:
            assert ref != 3
            assert not memory.get(ref, forgotten=True).is_archived


def test_an_alias_of_ones_own(memory: kept.Kept) -> None:
    """C13: shown with and without; one can take it back."""
    memory.remember("Harbor is the name of the staging cluster")
    assert len(memory.recall("playground")) == 0
    memory.aliases.add("playground", "harbor")
    (hit,) = memory.recall("playground")
    assert "alias of" in "".join(hit.matched.values())
    assert memory.aliases.list()["playground"] == ("harbor",)
    assert memory.aliases.add("Playground", "staging").expands_to == ("harbor", "staging")
    assert len(memory.recall("playground", profile="koshi")) == 0
    memory.aliases.remove("playground")
    assert len(memory.recall("playground")) == 0
    with pytest.raises(kept.NotFound):
        memory.aliases.remove("playground")
    with pytest.raises(kept.InvalidInput):
        memory.aliases.add("lonely")
    memory.undo()
    assert "playground" in memory.aliases.list()


def test_a_pause_stops_automatic_capture_and_nothing_else(memory: kept.Kept) -> None:
    """C32 (C-D15): nothing is captured; what is remembered on purpose is."""
    assert not memory.pauses.status()
    memory.pauses.pause()
    memory.pauses.pause()
    assert memory.pauses.status()
    (receipt,) = memory.remember_many([automatic(AUTOMATIC)])
    assert (receipt.outcome, receipt.reason) == ("refused", "paused")
    assert memory.remember("On purpose").outcome == "stored"
    assert memory.pauses.resume()
    assert not memory.pauses.resume()
    assert not memory.pauses.status()
    assert memory.remember_many([automatic(AUTOMATIC)])[0].outcome == "candidate"


def test_a_session_can_be_paused_alone(memory: kept.Kept) -> None:
    memory.pauses.pause("s1")
    assert memory.pauses.status("s1")
    assert not memory.pauses.status("s2")
    assert not memory.pauses.status()
    assert memory.remember_many([automatic(AUTOMATIC)])[0].outcome == "candidate"


def test_a_false_alarm_can_be_allowed_and_only_its_digest_is_kept(memory: kept.Kept) -> None:
    """C24: an allow-list, in the journal, without the value."""
    assert "redacted" in memory.remember(f"The example key is {SECRET}").memory.content  # type: ignore[union-attr]
    context_of(memory).confirm = lambda question: True
    memory.store.allow(SECRET, "from the docs")
    assert SECRET not in repr(memory.history())
    assert SECRET in memory.remember(f"The example key in the docs is {SECRET}").memory.content  # type: ignore[union-attr]
    assert [event.action for event in memory.history()][1] == "allow"
    memory.undo(2)
    assert SECRET not in memory.remember(f"Once more: {SECRET}").memory.content  # type: ignore[union-attr]


def test_a_scan_finds_and_fixes_what_older_rules_let_through(memory: kept.Kept, tmp_path: Path) -> None:
    memory.remember("A harmless line")
    storage = context_of(memory).spaces.ensure_project()
    with storage.writing(Stamp(group="old", at=FakeClock()(), actor="old")) as tx:  # as an older version stored it
        tx.add(a_memory(f"Deploy with {SECRET}", space=storage.space, tags=("deploy",)), "remember")
    (leak,) = memory.store.scan()
    assert (leak.ref, leak.is_fixed) == ("2", False)
    assert SECRET not in repr(leak)
    (fixed,) = memory.store.scan(fix=True)
    assert fixed.is_fixed
    assert memory.store.scan() == []
    cleaned = memory.get(2)
    assert "[redacted:" in cleaned.content
    assert cleaned.tags == ("deploy",)
    assert SECRET not in repr(memory.history()) + repr(memory.history(2))
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_a_scan_looks_at_messages_tasks_and_aliases_as_well(memory: kept.Kept, tmp_path: Path) -> None:
    storage, at = context_of(memory).spaces.ensure_project(), FakeClock()()
    with storage.writing(Stamp(group="old", at=at, actor="old")) as tx:  # as an older version stored it
        tx.add(SessionRecord(name="s1", summary=f"Deployed with {SECRET}.", started_at=at), "session")
        said = [f"Deploy with {SECRET}", "Harmless"]
        tx.append([Message(id=str(n), role="user", session="s1", content=one, at=at) for n, one in enumerate(said)])
        tx.add(TaskRecord(name="T-1", description=f"Use {SECRET}", created_at=at), "task")
        tx.add(Alias(word="token", expands_to=(SECRET, "key")), "alias")
    refs = {"session 1", "s1#1", "task 1", "alias 1"}
    assert {leak.ref for leak in memory.store.scan()} == refs
    fixed = memory.store.scan(fix=True)
    assert {leak.ref for leak in fixed if leak.is_fixed} == refs
    assert SECRET not in repr(fixed)
    assert memory.store.scan() == []
    assert [message.content for message in memory.session("s1").messages()][1] == "Harmless"
    assert memory.task("T-1").info.description.startswith("Use [redacted:")
    assert "key" in memory.aliases.list()["token"]
    assert SECRET not in repr(memory.history(limit=100))
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_what_the_readme_says_is_no_new_memory(tmp_path: Path) -> None:
    """The echo guard: CLAUDE.md, AGENTS.md, README and the like are not remembered again."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "CLAUDE.md").write_text(
        "# Rules\n\nAll database access goes through the repository layer in src/db, never from a handler.\n"
    )
    with kept.open(home=tmp_path / "home", project=project, settings=kept.Settings()) as memory:
        echo = "All database access goes through the repository layer in src/db, never from a handler"
        (receipt,) = memory.remember_many([automatic(echo)])
        assert (receipt.outcome, receipt.reason) == ("refused", "echo")
        new = "The repository layer caches rows for five minutes, which hides updates made by the importer."
        assert memory.remember_many([automatic(new)])[0].outcome == "candidate"
        assert memory.remember(echo).outcome == "stored"


@posix_only
@pytest.mark.parametrize("kind", ["a pipe", "a link to standard input", "a link to a device"])
def test_a_readme_that_would_block_is_not_read(tmp_path: Path, kind: str) -> None:
    """A repository cannot hang the agent: only regular files are read."""
    project = tmp_path / "project"
    project.mkdir()
    if kind == "a pipe":
        os.mkfifo(project / "README.md")
    else:
        (project / "README.md").symlink_to("/dev/stdin" if "input" in kind else "/dev/zero")
    script = (
        "import kept\n"
        f"with kept.open(home={str(tmp_path / 'home')!r}, project={str(project)!r}) as memory:\n"
        "    source = kept.Source(origin='extraction')\n"
        f"    (receipt,) = memory.remember_many([kept.Draft(content={AUTOMATIC!r}, kind='decision', source=source)])\n"
        "    print(receipt.outcome)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.wait(timeout=30)  # its standard input stays open
            assert process.stdout.read().decode().strip() == "candidate"
        finally:
            process.kill()


def test_the_doctor_examines_every_file_and_opens_none(tmp_path: Path) -> None:
    with kept.open(home=tmp_path, project="p", actor=Actor(role="admin"), settings=kept.Settings()) as memory:
        memory.remember("The importer retries three times")
        memory.remember("Prefers short answers", kind="preference", tier="global")
    with kept.open(home=tmp_path, project="p", settings=kept.Settings(auto_upkeep=False)) as memory:
        healthy = memory.store.doctor(deep=True)
        assert [one.space.split("/")[0] for one in healthy] == ["project", "global"]
        assert "problem" not in {finding.level for one in healthy for finding in one.findings}
        damaged = Path(healthy[0].path)
        damaged.write_bytes(b"not a database" + damaged.read_bytes()[14:])
        assert "problem" in {finding.level for finding in memory.store.doctor()[0].findings}
        [project, _] = memory.store.doctor(fix=True)
        assert [finding.message for finding in project.repaired] == ["Not repaired: file."]
        assert "problem" in {finding.level for finding in project.findings}
    with kept.open(home=tmp_path, project="p", actor=Actor(role="skill")) as memory, pytest.raises(kept.NotAllowed):
        memory.store.doctor()


@pytest.mark.parametrize(("name", "files"), [(":memory:", 0), ("m.json", 1), ("m.db", 1)])
def test_the_doctor_examines_a_portable_file(tmp_path: Path, name: str, files: int) -> None:
    with kept.open(name if name == ":memory:" else tmp_path / name) as memory:
        memory.remember("The importer retries three times")
        assert len(memory.store.doctor()) == files


def test_status_and_doctor_say_that_a_json_file_fell_back_to_its_backup(tmp_path: Path) -> None:
    """C11: also after the next change has written a whole file again, until the damaged one is deleted."""
    place = tmp_path / "m.json"

    def said() -> tuple[str, list[tuple[str, str]]]:
        with kept.open(place) as memory:
            warning = memory.status()["spaces"][0].get("warning", "")
            [file] = memory.store.doctor()
            return warning, [(finding.level, finding.check) for finding in file.findings]

    with kept.open(place) as memory:
        memory.remember("The importer retries three times")
        memory.remember("The pier opens at six")
    assert said() == ("", [("ok", "file"), ("ok", "backup")])
    place.write_bytes(place.read_bytes()[:-40])
    warning, findings = said()
    assert "The backup beside it was used" in warning
    assert findings == [("problem", "file"), ("ok", "backup")]
    with kept.open(place) as memory:
        memory.remember("The harbor closes at ten")
    warning, findings = said()
    assert "kept as m.json.damaged-1" in warning
    assert findings == [("ok", "file"), ("ok", "backup"), ("note", "file")]
    (tmp_path / "m.json.damaged-1").unlink()
    assert said() == ("", [("ok", "file"), ("ok", "backup")])


def test_a_memory_or_a_hit_stands_for_its_ref_and_several_are_changed_together(memory: kept.Kept) -> None:
    first, second = (memory.remember(text).memory for text in ("The canary sings at dawn", "The parrot sleeps at noon"))
    assert first is not None
    assert second is not None
    [hit] = memory.recall("canary")
    assert memory.get(hit).ref == memory.get(first).ref == first.ref
    assert [one.feedback > 0 for one in memory.reinforce([first, second])] == [True, True]
    assert [one.ref for one in memory.demote([hit, second.ref])] == [first.ref, second.ref]
    memory.pin([first, hit.memory, second])
    assert memory.unpin(hit).status == "confirmed"
    memory.pin(hit)
    assert [one.status for one in memory.unpin([first, second])] == ["confirmed", "confirmed"]
    assert [one.ref for one in memory.list(after=second)] == [first.ref]
    third = memory.remember("The parakeet dances", replaces=[]).memory
    assert third is not None
    fourth = memory.remember("The hamster dances on Tuesdays", replaces=[third]).memory
    assert fourth is not None
    memory.remember("The tortoise rests", replaces=fourth)
    assert memory.get(third).is_archived
    assert memory.get(4).is_archived
    assert memory.forget(hit).is_forgotten
    assert "<Receipt" in repr(memory.erase(second))


def test_a_receipt_names_the_replaced_memory_and_no_conflict_with_it(memory: kept.Kept) -> None:
    old = memory.remember("Deploys go out on Tuesdays").ref
    other = memory.remember("Deploys go out on Fridays").ref
    assert old is not None
    receipt = memory.remember("Deploys go out on Wednesdays", replaces=old)
    assert receipt.superseded == (old,)
    assert old not in receipt.near
    assert receipt.memory is not None
    ended = memory.get(old)
    assert (ended.is_archived, ended.superseded_by) == (True, receipt.memory.uid)
    assert all(ended.uid not in (one.left, one.right) for one in receipt.conflicts)
    open_ones = [one for one in memory.conflicts(resolved=True) if one.resolved_at is None]
    assert all({ended.uid, receipt.memory.uid} != {one.left, one.right} for one in open_ones)
    assert other is not None
    assert not memory.get(other).is_archived


def test_kinds_are_listed_however_they_are_written(memory: kept.Kept) -> None:
    memory.remember("Restart the worker when the queue is full", kind="My Own Kind")
    assert len(memory.list(kinds=["My Own Kind"])) == len(memory.list(kinds=["my_own_kind"])) == 1


def test_memories_are_counted_as_they_are_listed(memory: kept.Kept) -> None:
    memory.remember_many(["The canary sings at dawn", "The parrot sleeps", "The hamster dances"])
    memory.documents("notes", source=None).apply([Document(key="a", value={}, content="A page", scope="sources")])
    assert len(memory) == len(memory.list()) == 3
    memory.forget(1)
    memory.undo()
    memory.forget([2, 3])
    memory.erase(3)
    assert len(memory) == len(memory.list()) == 1
