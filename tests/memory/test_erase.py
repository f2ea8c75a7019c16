"""Erasing memories, messages and sessions: copies, promotions, forks and quotations go with them, and stay away."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.memory import deliver
from kept.model import Actor, Alias, Draft, Memory, Message, Source
from kept.ports import ANYWHERE
from kept.writing.passages import Passages
from tests.builders import FakeClock, context_of

PLAIN = kept.Settings(auto_upkeep=False)
DECISION = "We decided to store the invoices in the Zanzibar warehouse because the audit wants them there"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[kept.Kept]:
    admin = Actor(role="admin")
    with kept.open(home=tmp_path / "home", project="p", clock=FakeClock(), settings=PLAIN, actor=admin) as opened:
        yield opened


@pytest.fixture(params=["inmemory", "json", "sqlite"])
def portable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kept.Kept]:
    place = {"inmemory": ":memory:", "json": tmp_path / "m.json", "sqlite": tmp_path / "m.db"}[request.param]
    with kept.open(place, clock=FakeClock(), settings=PLAIN) as opened:
        yield opened


def every(memory: kept.Kept) -> list[Memory]:
    return [one for reader in context_of(memory).readers() for one in reader.select(ANYWHERE, limit=10_000)]


def files_with(folder: Path, word: str) -> list[str]:
    found = [
        path for path in folder.rglob("*") if path.is_file() and word.lower().encode() in path.read_bytes().lower()
    ]
    return [path.name for path in found]


def talk(memory: kept.Kept, name: str = "s1") -> None:
    session = memory.session(name)
    session.append("user", f"Hello. {DECISION}!\n\nReceipts are kept for a year, please.", id="u1")
    session.append("assistant", "Noted.", id="a1")
    session.append("tool_call", name="write", input={"text": [f"x {DECISION.upper()} y"]}, id="t1")


def test_a_memory_that_came_from_a_session_is_erased_in_its_message_and_the_mirrored_file(
    memory: kept.Kept, tmp_path: Path
) -> None:
    talk(memory)
    memory.session("s1").fork("s2")
    memory.session("s1").finish()
    (found,) = [one for one in memory.list() if "Zanzibar" in one.content and one.kind != "summary"]
    assert files_with(tmp_path / "home", "zanzibar")
    receipt = memory.erase(found.ref)
    assert receipt.reason == "erased"
    assert receipt.found["memories"] >= 1
    assert receipt.found["quoting messages"] >= 2
    assert receipt.found["files"] >= 1
    assert "removed from" in receipt.message
    first = memory.session("s1").messages()[0]
    assert "[erased]" in first.content
    assert "Hello." in first.content
    assert "Receipts are kept for a year" in first.content
    assert not [hit for reader in context_of(memory).readers() for hit in reader.search_messages(["zanzibar"], limit=5)]
    assert "Zanzibar" not in repr(every(memory)) + repr(memory.session("s2").messages()) + repr(memory.history())
    context_of(memory).spaces.close()
    assert files_with(tmp_path / "home", "zanzibar") == []


def test_what_was_erased_is_not_captured_again(memory: kept.Kept) -> None:
    talk(memory)
    memory.session("s1").finish()
    (found,) = [one for one in memory.list() if "Zanzibar" in one.content and one.kind != "summary"]
    memory.erase(found.ref)
    again = memory.session("s3")
    again.append("user", found.content)
    again.finish()
    assert [one.content for one in memory.list() if "Zanzibar" in one.content and one.kind != "summary"] == []
    draft = Draft(content=found.content, kind="decision", source=Source(origin="extraction"))
    (refused,) = memory.remember_many([draft])
    assert (refused.outcome, refused.reason) == ("refused", "erased")
    assert memory.remember(found.content).outcome == "stored"  # on purpose it is a new statement


def transcript(folder: Path, session: str, name: str | None = None) -> Path:
    lines = [
        {
            "type": "user",
            "uuid": "u1",
            "sessionId": session,
            "message": {"role": "user", "content": f"Hi.\n{DECISION}."},
        },
        {
            "type": "user",
            "uuid": "u2",
            "sessionId": session,
            "message": {"role": "user", "content": "The port is 4711."},
        },
    ]
    path = folder / f"{name or session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_an_import_does_not_bring_back_a_sentence_a_message_or_a_session(memory: kept.Kept, tmp_path: Path) -> None:
    memory.import_transcripts("claude-code", transcript(tmp_path, "s1"))
    memory.erase(memory.remember(DECISION).ref or "")
    assert memory.session("s1").messages()[0].content == "Hi.\n[erased]."
    memory.import_transcripts("claude-code", transcript(tmp_path, "s1", "moved"))
    memory.import_transcripts("claude-code", transcript(tmp_path, "forked"))
    assert "Zanzibar" not in repr(memory.session("s1").messages()) + repr(memory.session("forked").messages())
    memory.erase("s1#2")
    assert "4711" not in repr(memory.session("s1").messages())
    memory.import_transcripts("claude-code", transcript(tmp_path, "s1", "again"))
    assert "4711" not in repr(memory.session("s1").messages())
    (session,) = [one for one in memory.sessions() if one.name == "forked"]
    memory.erase(session)
    assert [one.added for one in memory.import_transcripts("claude-code", transcript(tmp_path, "forked", "new"))] == [0]
    assert "forked" not in [one.name for one in memory.sessions()]


def test_what_was_promoted_is_erased_with_its_archived_original(memory: kept.Kept) -> None:
    talk(memory)
    memory.session("s1").finish()
    (found,) = [one for one in memory.list() if "Zanzibar" in one.content and one.kind != "summary"]
    promoted = memory.promote(found.ref, to="global")
    receipt = memory.erase(promoted.ref or "")
    assert receipt.found["copies"] >= 1
    assert not [one for one in every(memory) if "Zanzibar" in one.content]


def test_copies_and_quotations_in_other_memories_go_too(portable: kept.Kept) -> None:
    original = portable.remember(DECISION, kind="decision")
    portable.revise(original.ref or "", f"{DECISION}, since March")
    longer = portable.remember(f"Summary: **{DECISION}**. The port is 4711.", kind="fact")
    other = portable.remember("Zanzibar is an island, and not a decision", kind="fact")
    receipt = portable.erase(original.ref or "")
    assert receipt.found["quoting memories"] == 1
    assert portable.get(longer.ref or "").content == "Summary: **[erased]**. The port is 4711."
    assert portable.get(other.ref or "").content.startswith("Zanzibar")
    assert "warehouse" not in repr(portable.history(limit=1_000)) + repr(every(portable))
    with pytest.raises(kept.NotFound):
        portable.get(original.ref or "")


def test_a_message_is_erased_with_its_forks_and_with_what_was_captured_from_it(portable: kept.Kept) -> None:
    talk(portable)
    session = portable.session("s1")
    session.fork("s2").append("user", "This one goes on.")
    session.finish()
    said = session.messages()[0]
    receipt = portable.erase(said)
    assert receipt.ref == "s1#1"
    assert receipt.found["messages"] >= 1
    for name in ("s1", "s2"):
        first = portable.session(name).messages()[0]
        assert (first.id, first.role, first.content) == ("u1", "user", "[erased]")
    assert portable.session("s2").messages()[-1].content == "This one goes on."
    assert not [one for one in every(portable) if "Zanzibar" in one.content]
    with pytest.raises(kept.NotFound, match="no message s1#99"):
        portable.erase("s1#99")


def test_a_session_is_erased_with_everything_it_left_behind_unasked(portable: kept.Kept) -> None:
    talk(portable)
    session = portable.session("s1")
    session.fork("s2").append("user", "The fork goes on alone.")
    session.finish()
    portable.store.pack_sessions()
    source = Source(origin="user", session="s1")
    on_purpose = portable.remember("Ships leave on Mondays", source=source)
    portable.recall("zanzibar", scope="sessions")
    receipt = portable.erase(portable.session("s1"))
    assert receipt.found["sessions"] == 1
    assert receipt.found["messages"] >= 3
    assert [one.name for one in portable.sessions()] == ["s2"]
    assert not [one for one in every(portable) if "Zanzibar" in one.content]
    assert portable.get(on_purpose.ref or "").content == "Ships leave on Mondays"
    assert portable.session("s2").messages()[-1].content == "The fork goes on alone."
    assert "Zanzibar" not in repr(portable.session("s2").messages()) + repr(portable.history(limit=1_000))
    portable.session("s1").append("user", "A new one of that name.")
    assert len(portable.session("s1").messages()) == 1


def test_a_new_session_of_an_erased_name_is_no_part_of_its_forks(portable: kept.Kept) -> None:
    talk(portable)
    portable.session("s1").fork("s2").append("user", "We decided to ship the harbour plans by rail from now on.")
    portable.session("s2").fork("s3").append("user", "The last one goes on.")
    portable.erase(portable.session("s2"))
    assert [one.name for one in portable.sessions()] == ["s1", "s3"]
    assert "Zanzibar" in portable.session("s1").messages()[0].content  # it is still said there
    told = [one.content for one in portable.session("s3").messages()]
    assert "Zanzibar" in told[0]
    assert told[3:] == ["[erased]", "The last one goes on."]
    portable.erase(portable.session("s1"))
    portable.session("s1").append("user", "A new one of that name.")
    portable.session("s2").append("user", "And another one.")
    told = [one.content for one in portable.session("s3").messages()]
    assert told == [*["[erased]"] * 4, "The last one goes on."]
    assert portable.sessions()[0].parent is None


def test_a_packed_session_is_followed_too(portable: kept.Kept) -> None:
    talk(portable)
    context_of(portable).clock.advance(days=400)  # type: ignore[attr-defined]
    assert portable.store.pack_sessions() == ["s1"]
    portable.erase(portable.remember(DECISION).ref or "")
    assert "Zanzibar" not in repr(portable.session("s1").messages())
    assert "zanzibar" not in repr(portable.session("s1").messages()).lower()


def test_a_copy_in_global_memory_stays_unless_a_person_agrees(tmp_path: Path) -> None:
    answers = [False]
    with kept.open(home=tmp_path, project="p", settings=PLAIN, confirm=lambda _: answers[0]) as opened:
        answers[0] = True
        opened.remember(DECISION, kind="preference", tier="global")
        local = opened.remember(DECISION, kind="decision")
        answers[0] = False
        receipt = opened.erase(local.ref or "")
        assert "Copies in global memory stay, because nobody agreed to erase them: g1." in receipt.message
        assert opened.get("g1").content == DECISION
        with pytest.raises(kept.NotAllowed):
            opened.erase("g1")


def test_a_restored_backup_does_not_bring_a_session_back(tmp_path: Path) -> None:
    for name in ("m.db", "m.json"):
        with kept.open(tmp_path / name, settings=PLAIN) as opened:
            talk(opened)
            opened.session("s1").fork("s2").append("user", "The fork goes on.")
            copy = tmp_path / f"copy-of-{name}"
            opened.store.backup(copy)
            opened.erase(opened.session("s1"))
            opened.store.restore(copy, overwrite_newer=True)
            assert "Zanzibar" not in repr(opened.session("s1").messages())
            opened.session("s1").append("user", "A new one of that name.")
            assert opened.session("s2").messages()[-1].content == "The fork goes on."
            assert "new one" not in repr(opened.session("s2").messages())
            assert opened.store.doctor(deep=True) == [] or not [
                finding
                for one in opened.store.doctor(deep=True)
                for finding in one.findings
                if finding.level == "problem"
            ]


@pytest.mark.parametrize(
    ("wanted", "said", "left"),
    [
        ("Use tabs, never spaces", "so: *use  TABS* never\nspaces.", "so: *[erased]."),
        ("Use tabs, never spaces", "use tabs never space", "use tabs never space"),
        ("MySQL", "We use MySQL here. MySQL!", "We use MySQL here. [erased]!"),
        ("hunter2hunter2hunter2", "the word hunter2hunter2hunter2 is it", "the word [erased] is it"),
        ("端口是四七一一", "好的。端口是四七一一，谢谢", "好的。[erased]，谢谢"),
        ("a b c", "a b a b c c", "a b [erased] c"),
        ("", "nothing", "nothing"),
        ("Die Straße ist gesperrt", "DIE STRASSE IST GESPERRT!", "[erased]!"),
    ],
)
def test_a_quotation_is_found_word_by_word(wanted: str, said: str, left: str) -> None:
    assert Passages([wanted]).erase(said) == left


def test_erasing_is_not_undone_and_says_what_is_not_there(portable: kept.Kept) -> None:
    with pytest.raises(kept.NotFound):
        portable.erase(Message(id="x", role="user", session="nowhere", n=1))
    with pytest.raises(kept.InvalidInput):
        portable.erase(None)  # type: ignore[call-overload]


def test_the_input_of_a_tool_call_does_not_come_back_by_an_import(memory: kept.Kept, tmp_path: Path) -> None:
    def transcript_of(session: str) -> Path:
        use = {"type": "tool_use", "id": "x1", "name": "Write", "input": {"text": [f"# Notes\n{DECISION}.\nThe end."]}}
        said = {"role": "assistant", "content": [use]}
        path = tmp_path / f"{session}.jsonl"
        path.write_text(json.dumps({"type": "assistant", "uuid": "a1", "sessionId": session, "message": said}) + "\n")
        return path

    memory.import_transcripts("claude-code", transcript_of("s1"))
    memory.erase(memory.remember(DECISION).ref or "")
    memory.import_transcripts("claude-code", transcript_of("resumed"))
    (call,) = memory.session("resumed").messages()
    assert call.input == {"text": ["# Notes\n[erased]\nThe end."]}
    context_of(memory).spaces.close()
    assert files_with(tmp_path / "home", "zanzibar") == []


def test_no_question_that_was_asked_before_is_kept(memory: kept.Kept, tmp_path: Path) -> None:
    """A question may quote what is erased, and may have found something else, or nothing."""
    memory.remember("The port of the billing service is 4711")
    memory.recall(f"billing port, and where is it: {DECISION}")
    memory.briefing(DECISION)
    shared = memory.remember(DECISION, kind="preference", tier="global")
    memory.recall("zanzibar warehouse")
    memory.erase(shared.ref or "")
    talk(memory)
    memory.recall("zanzibar harbour", scope="sessions")
    memory.erase(memory.session("s1"))
    context_of(memory).spaces.close()
    assert files_with(tmp_path / "home", "zanzibar") == []


@pytest.mark.parametrize("name", ["m.db", "m.json"])
def test_a_copy_that_a_restore_has_put_aside_is_cleaned_too(tmp_path: Path, name: str) -> None:
    """There the same text is another memory."""
    with kept.open(tmp_path / name, settings=PLAIN) as opened:
        opened.remember("The port of the billing service is 4711")
        opened.store.backup(tmp_path / f"copy-of-{name}")
        opened.remember(DECISION)
        opened.store.restore(tmp_path / f"copy-of-{name}", overwrite_newer=True)
        assert files_with(tmp_path, "zanzibar")
        opened.erase(opened.remember(DECISION).ref or "")
    assert files_with(tmp_path, "zanzibar") == []


def test_a_task_is_erased_with_its_notes_its_history_and_its_line_in_tasks_json(
    memory: kept.Kept, tmp_path: Path
) -> None:
    task = memory.task("TASK-001", description="Move the Zanzibar invoices to the new ledger")
    memory.task("TASK-002", description="Close the old books", blocked_by=["TASK-001"])
    task.add_reasoning("The zanzibar totals differ by one cent", "look")
    memory.remember("Ask Ada before anything ships. Move the Zanzibar invoices to the new ledger.")
    memory.task("TASK-001", description="Renamed")
    memory.files.sync()
    memory.store.backup(tmp_path / "home" / "mine.db")
    memory.store.backup(tmp_path / "elsewhere.db")
    receipt = memory.erase(memory.task("TASK-001"))
    assert receipt.message.startswith("Task TASK-001 is erased.")
    assert receipt.found["tasks"] == 1
    assert str(tmp_path / "elsewhere.db") in receipt.message
    assert "mine.db" not in receipt.message
    assert [one.name for one in memory.tasks(archived=True)] == ["TASK-002"]
    assert memory.task("TASK-002").info.blocked_by == ()
    assert "Ask Ada before" in memory.list(kinds=["fact"])[0].content
    context_of(memory).spaces.close()
    assert files_with(tmp_path / "home", "zanzibar") == []
    assert '"TASK-002"' in next((tmp_path / "home").glob("projects/*/tasks.json")).read_text()


def test_an_alias_is_erased_also_after_it_was_removed(portable: kept.Kept) -> None:
    portable.aliases.add("island", "zanzibar")
    portable.aliases.add("coast", "zanzibar")
    portable.aliases.remove("coast")
    receipts = portable.erase([Alias(word="island", expands_to=()), Alias(word="coast", expands_to=())])
    assert [one.message.split(".")[0] for one in receipts] == ["Alias island is erased", "Alias coast is erased"]
    assert "island" not in portable.aliases.list()
    assert "zanzibar" not in repr(portable.history())
    with pytest.raises(kept.KeptError, match="permanent"):
        portable.undo()
    with pytest.raises(kept.NotFound, match="no alias 'harbor'"):
        portable.erase(Alias(word="harbor", expands_to=()))


def test_an_erased_task_does_not_come_back_by_a_restored_backup(tmp_path: Path) -> None:
    for name in ("m.db", "m.json"):
        with kept.open(tmp_path / name, settings=PLAIN) as opened:
            opened.task("TASK-001", description="Move the Zanzibar invoices").add_reasoning("zanzibar again", "look")
            opened.aliases.add("island", "zanzibar")
            copy = tmp_path / f"copy-of-{name}"
            opened.store.backup(copy)
            opened.erase([opened.task("TASK-001"), Alias(word="island", expands_to=())])
            opened.store.restore(copy, overwrite_newer=True)
            assert opened.tasks(archived=True) == []
            assert "island" not in opened.aliases.list()
            assert "zanzibar" not in repr([*every(opened), *opened.history()]).lower()


def test_an_erasure_leaves_receipts_that_have_nothing_to_do_with_it(memory: kept.Kept) -> None:
    memory.remember("The port of the billing service is 4711")
    memory.recall("billing port on its own")  # small words are in every text
    other = str(memory.why().receipt)
    secret = memory.remember("The flamingo warehouse rotates its pallets on Sunday").ref or ""
    gone = []
    for asked in ("billing or the flamingo", "does it rotate at all", "port of the warehouses", "sunday"):
        memory.recall(asked)
        gone.append(str(memory.why().receipt))
    memory.recall("billing service, once more")
    named = {one["ref"] for one in (*memory.why().hits, *memory.why().misses)}
    last = str(memory.why().receipt)
    left = [other] if secret in named else [other, last]
    number = 4 + (secret in named)
    assert memory.look().erase_preview(secret)["receipts"] == number
    assert memory.erase(secret).found["receipts"] == number
    for receipt in left:
        assert memory.why(receipt).receipt == receipt
    for receipt in gone:
        with pytest.raises(kept.NotFound):
            memory.why(receipt)


def test_neither_words_of_kept_nor_beginnings_of_words_that_stay_take_a_receipt_along(memory: kept.Kept) -> None:
    for said in ("use", "do not use"):
        memory.remember(f"We {said} Kafka for the cache service.", kind="decision")
    listener = deliver.Listener(session="tuesday", event="UserPromptSubmit")
    for prompt in ("which cache service do we use: kafka?", "do we use kafka for the kafka cache service?"):
        memory.deliveries.for_prompt(prompt, listener)
    # "this session was told it before", says the second receipt, and both have the stem of "service".
    assert "told" in repr(memory.why().left_out)
    other = memory.remember("The parcel service is told at noon.").ref or ""
    before = memory.why().receipt
    assert "receipts" not in memory.erase(other).found
    assert memory.why().receipt == before
