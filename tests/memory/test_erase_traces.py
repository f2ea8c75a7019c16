"""Traces that an erasure must follow: other messages, captured memories, summaries, files beside the store."""

import json
import os
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kept
from kept.memory.merge import merge
from kept.memory.opening import open_projects
from kept.model import Actor, Alias, Memory, Source
from kept.ports import ANYWHERE
from tests.builders import FakeClock, context_of

PLAIN = kept.Settings(auto_upkeep=False)
FIRST = "The zebrafish paper bucket limits the mailer to forty messages a minute"
SECOND = "The zebrafish bucket is refilled by the night job of the harbour office"
DECISION = "We decided to use the zebrafish queue for outgoing mail, because the old one lost messages."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[kept.Kept]:
    with opened(tmp_path) as one:
        yield one


def opened(folder: Path, **more: object) -> kept.Kept:
    about: dict[str, object] = {"project": "p", "clock": FakeClock(), "settings": PLAIN, "actor": Actor(role="admin")}
    return kept.open(home=folder / "home", **(about | more))  # type: ignore[arg-type]


def places(memory: kept.Kept, folder: Path, word: str = "zebrafish") -> list[str]:
    """Where the word still is: in a file below the home, in a message or in a memory of the opened project."""
    found = [
        str(path.relative_to(folder))
        for path in (folder / "home").rglob("*")
        if path.is_file() and word.encode() in path.read_bytes().lower()
    ]
    told = [message for one in memory.sessions() for message in memory.session(one.name).messages()]
    found += [f"{one.session}#{one.n}" for one in told if word in repr(one).lower()]
    return found + [f"memory {one.ref}" for one in every(memory) if word in repr(one).lower()]


def every(memory: kept.Kept) -> list[Memory]:
    return [one for reader in context_of(memory).readers() for one in reader.select(ANYWHERE, limit=10_000)]


def test_items_json_loses_an_erased_item(tmp_path: Path) -> None:
    project = tmp_path / "work"
    project.mkdir()
    (project / "notes.md").write_text(f"# Notes\n\n- TODO: {FIRST}.\n- TODO: The port is 4711.\n")
    with opened(tmp_path, project=project) as memory:
        memory.files.extract()
        (item,) = [one for one in memory.files.items() if "zebrafish" in one.content]
        assert places(memory, tmp_path)
        memory.erase(item.ref)
        assert places(memory, tmp_path) == []
        (items,) = (tmp_path / "home").rglob("items.json")
        assert "4711" in items.read_text()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_each_sentence_of_a_memory_is_erased_in_the_messages_it_came_from(
    memory: kept.Kept, tmp_path: Path, order: tuple[int, ...]
) -> None:
    said = [f"{FIRST}. {SECOND}.", f"Well: {FIRST}!", f"{SECOND}, as I said."]
    session = memory.session("s1")
    for number in order:
        session.append("user", said[number])
    stored = memory.remember(said[0], source=Source(origin="user", session="s1"))
    memory.erase(stored.ref or "")
    assert places(memory, tmp_path) == []


def test_a_sentence_of_an_erased_message_is_erased_where_others_repeat_it(memory: kept.Kept, tmp_path: Path) -> None:
    session = memory.session("s1")
    session.append("user", f"{FIRST}. And a good morning to you.")
    session.append("assistant", f"I see: {FIRST.upper()}. I keep to that.")
    session.append("tool_call", name="write", input={"text": f"# {FIRST}"})
    memory.session("other").append("assistant", f"By the way, {FIRST}. Nothing else is new.")
    memory.erase("s1#1")
    assert places(memory, tmp_path) == []
    assert "I keep to that" in memory.session("s1").messages()[1].content
    assert "Nothing else is new" in memory.session("other").messages()[0].content


OPENINGS = ("{}", "Remember: {}", "Notes:\n- {}", "For mail: {}", "Ok, {}", "**{}**", "Well then. {}")


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_memory_captured_from_a_message_is_erased_with_it(memory: kept.Kept, tmp_path: Path, opening: str) -> None:
    assert _captured_and_erased(memory, opening.format(DECISION)) > 0
    assert places(memory, tmp_path) == []


@pytest.mark.parametrize(
    "said",
    [
        DECISION.replace(", because", ",\nbecause"),
        "Please always use the zebrafish queue for outgoing mail from now on.",
        "From today we use the zebrafish queue for outgoing mail, not the old one.",
        "The old queue lost messages. So it must go: always use the zebrafish queue instead.",
    ],
)
def test_a_memory_in_other_words_than_its_message_is_erased_with_it(
    memory: kept.Kept, tmp_path: Path, said: str
) -> None:
    assert _captured_and_erased(memory, said) > 0
    assert places(memory, tmp_path) == []


def test_a_choice_between_two_things_is_erased_with_the_message_that_made_it(memory: kept.Kept) -> None:
    memory.session("s1").append("assistant", "Which queue for outgoing mail do you want, zebrafish or cron?")
    _captured_and_erased(memory, "ok zebrafish then")
    assert [one.content for one in every(memory) if "zebrafish" in one.content] == []


def _captured_and_erased(memory: kept.Kept, said: str) -> int:
    session = memory.session("s1")
    message = session.append("user", said)
    session.append("assistant", "Noted.")
    session.finish()
    captured = sum("zebrafish" in one.content for one in memory.list())
    assert message is not None
    memory.erase(message)
    return captured


FORMS: dict[str, Callable[[str], str]] = {
    "bullet": "- {}".format,
    "bold": "**{}**".format,
    "label": "Remember: {}".format,
    "opening word": lambda said: f"Well, {said[0].lower()}{said[1:]}",
    "no full stop": lambda said: said.rstrip("."),
    "goes on": lambda said: f"{said.rstrip('.')}, and it was slow.",
    "wrapped": lambda said: said.replace(", because", ",\nbecause"),
    "dash": lambda said: said.replace(", because", " – because"),
    "code": lambda said: said.replace("zebrafish", "`zebrafish`"),
    "quoted": "He wrote: “{}”".format,
    "capitals": str.upper,
    "invisible": lambda said: said.replace("zebrafish", "zebra\u200bfish").replace("mail", "ma\u00adil"),
    "full width": lambda said: said.replace("queue", "ｑｕｅｕｅ"),
    "entities": lambda said: said.replace(" ", "&nbsp;"),
    "tags": lambda said: said.replace(" ", "</b> <b>"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_erased_comes_back_in_no_wrapping(memory: kept.Kept, tmp_path: Path, form: str) -> None:
    memory.erase(memory.remember(DECISION).ref or "")
    again = memory.session("again")
    again.append("user", f"Good morning, how are you?\n{FORMS[form](DECISION)}")
    again.append("assistant", "Noted.")
    again.finish()
    again.compact(force=True)
    assert [one.content for one in every(memory) if "outgoing" in one.content] == []
    assert not [one for one in again.messages() if one.role == "summary" and "outgoing" in one.content]
    memory.import_transcripts("claude-code", transcript(tmp_path, "imported", [FORMS[form](DECISION)]))
    told = memory.session("imported").messages()
    assert [one.content for one in told if "outgoing" in one.content.lower()] == []


def transcript(folder: Path, session: str, said: list[str], **more: object) -> Path:
    lines = [
        {"type": "user", "uuid": f"u{n}", "sessionId": session, "message": {"role": "user", "content": text}} | more
        for n, text in enumerate(said)
    ]
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_summary_of_a_host_does_not_bring_an_erased_message_back(memory: kept.Kept, tmp_path: Path) -> None:
    session = memory.session("s1")
    message = session.append("user", f"We always keep this: {FIRST}. Ships leave on Mondays.")
    assert message is not None
    memory.erase(message)
    told = f"This session is being continued. Summary:\n- {FIRST}.\n- The port is 4711."
    memory.import_transcripts("claude-code", transcript(tmp_path, "s1", [told], isCompactSummary=True))
    memory.session("s1").finish()
    (tmp_path / "s1.jsonl").unlink()
    assert places(memory, tmp_path) == []
    assert "4711" in memory.session("s1").messages()[-1].content


def test_a_person_may_say_the_sentence_of_an_erased_message_again(memory: kept.Kept) -> None:
    session = memory.session("s1")
    message = session.append("user", f"{FIRST}.")
    assert message is not None
    memory.erase(message)
    session.append("user", f"{FIRST}.")
    assert FIRST in session.messages()[-1].content


def test_a_merge_brings_no_quotation_of_an_erased_memory(memory: kept.Kept, tmp_path: Path) -> None:
    with opened(tmp_path, project="elsewhere") as other:
        other.remember(f"As was said: {FIRST}. So be careful with the port 4711.")
        other.remember("A fact of billing is here", topic=FIRST, tags=["billing"])
        session = other.session("z")
        session.append("user", f"Hello. *{FIRST.upper()}* Bye.")
        session.append("tool_call", name="x", input={"q": FIRST})
        other.store.export_to(tmp_path / "e.jsonl")
    memory.erase(memory.remember(FIRST).ref or "")
    memory.store.merge(tmp_path / "e.jsonl")
    assert [one for one in every(memory) if "zebrafish" in repr(one).lower()] == []
    assert "zebrafish" not in repr(memory.session("z").messages()).lower()
    assert [one for one in every(memory) if "4711" in one.content]
    assert "zebrafish" not in repr(memory.history(limit=1_000)).lower()


@pytest.mark.parametrize("goes_on", ["nothing", "same session", "fork"])
def test_a_summary_leaves_out_what_was_forgotten(memory: kept.Kept, goes_on: str) -> None:
    session = memory.session("s1")
    session.append("user", f"Good morning.\n{DECISION} The port of the API is always 4711.")
    session.append("assistant", "Noted.")
    session.finish()
    (found,) = [one for one in memory.list() if "zebrafish" in one.content and one.kind != "summary"]
    assert [one for one in memory.list() if "zebrafish" in one.content and one.kind == "summary"]
    memory.forget(found.ref)
    if goes_on != "nothing":
        session = session.fork("s2") if goes_on == "fork" else session
        session.append("user", "Thanks a lot. Always use port 4712 for the web server.")
        session.finish()
        session.compact(force=True)
    assert [one.content for one in memory.list() if "zebrafish" in one.content] == []
    assert "zebrafish" not in str(memory.briefing("which queue for outgoing mail"))
    assert not [one for one in session.messages() if one.role == "summary" and "zebrafish" in one.content]


def test_an_undo_of_forgetting_brings_the_line_of_the_summary_back(memory: kept.Kept) -> None:
    session = memory.session("s1")
    session.append("user", DECISION)
    session.finish()
    before = {one.uid: one.content for one in memory.list()}
    (found,) = [one for one in memory.list() if one.kind != "summary"]
    memory.forget(found.ref)
    memory.undo()
    assert {one.uid: one.content for one in memory.list()} == before


def test_erasing_after_a_merge_of_projects_leaves_nothing_in_the_old_one(tmp_path: Path) -> None:
    with opened(tmp_path, project="old") as old:
        old.remember(f"{FIRST}.")
        old.session("s1").append("user", f"Hello. {FIRST}!")
        old.task("t1", description=f"Mend it. {FIRST}.")
        old.aliases.add("mailer", "zebrafish")
        old.files.sync()
    with opened(tmp_path, project="new") as new:
        new.remember("The port is 4711")
    merge(open_projects(tmp_path / "home"), "old", "new", actor=Actor(role="admin"), settings=PLAIN, clock=FakeClock())
    with opened(tmp_path, project="new") as new:
        (found,) = [one for one in new.list() if "zebrafish" in one.content and one.tier == "project"]
        new.erase([found.ref, *new.tasks(archived=True), Alias(word="mailer", expands_to=())])
        assert places(new, tmp_path) == []


@pytest.mark.parametrize("how", ["not UTF-8", "a link", "too large", "a folder"])
def test_a_view_that_cannot_be_read_stops_no_erasure(tmp_path: Path, how: str) -> None:
    with opened(tmp_path) as memory:
        stored = memory.remember(FIRST)
        memory.session("s1").append("user", f"Hello. {FIRST}!")
        memory.files.sync()
        (view,) = (path for path in (tmp_path / "home" / "projects").rglob("MEMORY.md"))
        if how == "not UTF-8":
            view.write_bytes(view.read_bytes() + b"\xff\xfe")
        elif how == "too large":
            view.write_bytes(b"x" * 20_000_001)
        else:
            view.unlink()
            view.mkdir() if how == "a folder" else view.symlink_to(tmp_path / "elsewhere")
        receipt = memory.erase(stored.ref or "")
        assert "MEMORY.md" in receipt.message
        assert "nothing was changed" not in receipt.message.lower()
        left = [place for place in places(memory, tmp_path) if not place.endswith("MEMORY.md")]
        # Kept opens no file beside a link in its home: then the transcript waits as well, and the receipt says so.
        assert left == [] or (how == "a link" and all(place.endswith("s1.jsonl") for place in left))
        assert receipt.reason == "pending"
        view.rmdir() if how == "a folder" else view.unlink()
        memory.files.sync()
        assert places(memory, tmp_path) == []


def test_a_tasks_json_that_cannot_be_read_is_named_in_the_receipt(memory: kept.Kept, tmp_path: Path) -> None:
    memory.task("t1", description=FIRST)
    memory.files.sync()
    (view,) = (tmp_path / "home").rglob("tasks.json")
    view.write_text("{" + view.read_text())
    (task,) = memory.tasks()
    receipt = memory.erase(task)
    assert "tasks.json" in receipt.message
    assert [place for place in places(memory, tmp_path) if not place.endswith("tasks.json")] == []


@pytest.mark.parametrize("next_step", ["open", "erase", "doctor"])
def test_an_erasure_that_was_killed_before_its_files_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_step: str
) -> None:
    class Killed(BaseException):
        pass

    def kill(*given: object) -> None:
        raise Killed

    with opened(tmp_path) as memory:
        memory.session("s1").append("user", f"Hello. {FIRST}!")
        other = memory.remember("The port is 4711")
        stored = memory.remember(FIRST)
        memory.files.sync()
        with monkeypatch.context() as patch:
            patch.setattr("kept.memory.erase._clean_files", kill)
            with pytest.raises(Killed):
                memory.erase(stored.ref or "")
    with opened(tmp_path, settings=kept.Settings() if next_step == "open" else PLAIN) as memory:
        if next_step == "erase":
            memory.erase(other.ref or "")
        elif next_step == "doctor":
            memory.store.doctor(fix=True)
        assert places(memory, tmp_path) == []


FIELDS: dict[str, Callable[[kept.Kept], object]] = {
    "topic": lambda memory: memory.remember("A fact of billing is here", topic=FIRST),
    "tags": lambda memory: memory.remember("A fact of billing is here", tags=[FIRST, "billing"]),
    "files": lambda memory: memory.remember("A fact of billing is here", files=[FIRST, "billing.md"]),
    "speaker": lambda memory: memory.session("q").append("user", "hello", speaker=FIRST),
    "tool": lambda memory: memory.session("q").append("tool_call", name=FIRST, input={}),
    "input key": lambda memory: memory.session("q").append("tool_call", name="x", input={FIRST: [{FIRST: 1}]}),
    "zero-width": lambda memory: memory.session("q").append("user", FIRST.replace("bucket", "buc\u200bket")),
    "soft hyphen": lambda memory: memory.session("q").append("user", FIRST.replace("limits", "lim\u00adits")),
    "entities": lambda memory: memory.session("q").append("user", FIRST.replace(" ", "&nbsp;")),
    "tags of HTML": lambda memory: memory.session("q").append("user", FIRST.replace(" ", "</b> <b>")),
    "line breaks of JSON": lambda memory: memory.session("q").append("user", json.dumps(FIRST.replace(" ", "\n"))),
    "blanks of a URL": lambda memory: memory.session("q").append("user", FIRST.replace(" ", "%20")),
    "full width": lambda memory: memory.session("q").append("user", FIRST.replace("forty", "ｆｏｒｔｙ")),
    "combining": lambda memory: memory.session("q").append("user", unicodedata.normalize("NFD", FIRST)),
}


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_keeps_a_copy(memory: kept.Kept, tmp_path: Path, field: str) -> None:
    FIELDS[field](memory)
    stored = memory.remember(FIRST)
    memory.erase(stored.ref or "")
    assert places(memory, tmp_path) == []
    assert places(memory, tmp_path, "bucket") == []


def test_accents_may_be_composed_or_not(memory: kept.Kept, tmp_path: Path) -> None:
    said = "Der Schlüssel für das Lager der Zebrafische liegt im Büro der Hafenmeisterei"
    memory.session("q").append("user", f"Also: {unicodedata.normalize('NFD', said)}.")
    memory.erase(memory.remember(said).ref or "")
    assert "Lager" not in repr(memory.session("q").messages())


def test_drafts_of_a_killed_writer_go_with_an_erasure(memory: kept.Kept, tmp_path: Path) -> None:
    stored = memory.remember(FIRST)
    memory.session("s1").append("user", f"Hello. {FIRST}!")
    memory.files.sync()
    for view in [*(tmp_path / "home").rglob("MEMORY.md"), *(tmp_path / "home").rglob("s1.jsonl")]:
        draft = view.with_name(f".{view.name}.0a1b2c3d.tmp")
        draft.write_bytes(view.read_bytes())
        os.utime(draft, (1, 1))
    of_user = next((tmp_path / "home").rglob("MEMORY.md")).with_name("my notes.tmp")
    of_user.write_text("mine")
    memory.erase(stored.ref or "")
    assert places(memory, tmp_path) == []
    assert of_user.exists()


def test_files_of_an_earlier_place_are_cleaned(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        stored = memory.remember(FIRST)
        session = memory.session("s1")
        session.append("user", f"Hello. {FIRST}!")
        memory.files.sync()
    moved = kept.Settings(auto_upkeep=False, sessions_path="talks", memory_path="notes/M.md")
    with opened(tmp_path, settings=moved) as memory:
        memory.erase(stored.ref or "")
        assert places(memory, tmp_path) == []
    with opened(tmp_path, settings=kept.Settings(auto_upkeep=False, sessions_path="third")) as memory:
        assert memory.erase(memory.session("s1")).reason == "erased"


def test_a_session_is_erased_where_its_files_were_never_written(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.session("s1").append("user", FIRST)
    with opened(tmp_path, settings=kept.Settings(auto_upkeep=False, sessions_path="talks")) as memory:
        (session,) = memory.sessions()
        assert memory.erase(session).reason == "erased"
        assert [place for place in places(memory, tmp_path) if "kept.db" in place] == []
