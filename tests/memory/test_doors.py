"""No door into Kept lets a secret through: every field, every name, every receipt, every error. C24."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import kept
from kept.memory import Kept
from kept.memory.deliver import Listener
from kept.model import Actor, Draft

KEY = "ghp_" + "Zq7Wn2Lk9Xb4Vt8Rm3Ys" * 2

LISTENER = Listener(session=KEY, event="UserPromptSubmit")


def _meet_a_known_error(memory: Kept) -> str:
    memory.knowledge.add_failure("GateError: hinge 4 is stuck in the frost", "Oil the hinge before winter")
    return memory.deliveries.for_error("GateError: hinge 4 is stuck in the frost", LISTENER)


DOORS: dict[str, Callable[[Kept], object]] = {
    "kind": lambda memory: memory.remember("The gate opens at nine in summer", kind=KEY),
    "item type": lambda memory: memory.remember_many([Draft(content="The gate opens at nine", item_type=KEY)]),
    "tag": lambda memory: memory.remember("The gate opens at nine in summer", tags=[KEY]),
    "file": lambda memory: memory.remember("The gate opens at nine in summer", files=[f"src/{KEY}.py"]),
    "topic": lambda memory: memory.remember("The gate opens at nine in summer", topic=KEY),
    "key": lambda memory: memory.remember("The gate opens at nine in summer", key=KEY),
    "parent of a session": lambda memory: memory.session("s1", parent=KEY),
    "agent of a session": lambda memory: memory.session("s1", agent=KEY),
    "id of a message": lambda memory: memory.session("s1").append("user", "hello there", id=KEY),
    "recall": lambda memory: memory.recall(f"gate {KEY}"),
    "task": lambda memory: memory.task(KEY),
    "narrative": lambda memory: memory.narrative(KEY).begin(),
    "session of a delivery": lambda memory: memory.deliveries.at_start(Listener(session=KEY, event="SessionStart")),
    "session of a prompt": lambda memory: memory.deliveries.for_prompt("when does the gate open?", LISTENER),
    "session of an error": lambda memory: _meet_a_known_error(memory),
    "session of a briefing": lambda memory: memory.briefing("when does the gate open?", session=KEY),
    "alias": lambda memory: memory.aliases.add("gate", KEY),
    "grouping of a recall": lambda memory: memory.recall("gate", by=KEY),  # type: ignore[arg-type]
    "flag of a recall": lambda memory: memory.recall("gate", follow=KEY, packed=KEY),  # type: ignore[arg-type]
    "flag of a message": lambda memory: memory.session("s1").append("user", "hi", is_error=KEY),  # type: ignore[arg-type]
}


def stored_bytes(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


@pytest.mark.parametrize("door", DOORS)
def test_no_door_lets_a_secret_through(door: str, tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path) as memory:
        memory.remember("The gate opens at nine in summer and at ten in winter", kind="decision")
        with suppress(kept.KeptError):  # refusing is one way to keep it out
            DOORS[door](memory)
    assert KEY.encode() not in stored_bytes(tmp_path)
    assert KEY.lower().encode() not in stored_bytes(tmp_path)


def test_the_name_of_an_actor_is_redacted(tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path, actor=Actor(name=KEY)) as memory:
        memory.remember("The gate opens at nine in summer")
        assert KEY not in str(memory.history())
    assert KEY.encode() not in stored_bytes(tmp_path)


def test_the_name_of_a_project_that_is_a_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(kept.InvalidInput, match="must not contain a secret") as refused:
        kept.open(project=KEY, home=tmp_path).remember("The gate opens at nine in summer")
    assert KEY not in str(refused.value)
    assert KEY.encode() not in stored_bytes(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if KEY[4:12].lower() in path.name.lower()]


def test_a_session_id_that_is_a_secret_is_refused(tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path) as memory:
        with pytest.raises(kept.InvalidInput, match="must not contain a secret"):
            memory.session(KEY)
        assert not memory.sessions()
    assert KEY.encode() not in stored_bytes(tmp_path)


def test_the_name_of_a_narrative_that_is_a_secret_is_refused(tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path) as memory:
        with pytest.raises(kept.InvalidInput, match="must not contain a secret") as refused:
            memory.narrative(KEY).begin()
        assert KEY not in str(refused.value)
        assert memory.look().narrative is None


def test_receipts_of_a_session_with_a_secret_in_its_id_are_found_by_that_id(tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path) as memory:
        memory.remember("The gate opens at nine in summer", kind="decision")
        memory.deliveries.for_prompt("when does the gate open?", LISTENER)
        [receipt] = memory.look().receipts(KEY)
        assert receipt.session == "[redacted:github]"


def test_a_file_whose_name_is_a_secret_is_not_extracted(tmp_path: Path) -> None:
    folder = tmp_path / "yard"
    folder.mkdir()
    for name in ("notes.md", f"{KEY}.md", "anna@example.com.md"):
        (folder / name).write_text(f"# Gate\n\n- [ ] oil the hinge of {name[:5]}\n")
    with kept.open(project=folder, home=tmp_path / "home") as memory:
        done = memory.files.extract()
        assert [(one.file, one.reason) for one in done.skipped] == [("[redacted:github]", "its name contains a secret")]
        assert {one.source.file for one in memory.files.items()} == {"notes.md", "anna@example.com.md"}
    assert KEY.encode() not in stored_bytes(tmp_path / "home")


def test_a_receipt_holds_no_word_of_the_password_that_was_asked_for(tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path) as memory:
        memory.remember("Hunters meet at the gate before nine", kind="decision")
        recalled = memory.recall("gate password is hunters")
        told = str(memory.why(recalled.receipt))
    assert "hunter" not in told.replace("Hunters meet", "")


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.get(KEY),
        lambda memory: memory.forget(KEY),
        lambda memory: memory.recall("gate", scope=KEY),
        lambda memory: memory.promote("1", to=KEY),
        lambda memory: memory.resolve(KEY, keep="1"),
    ],
)
def test_an_error_of_the_library_does_not_repeat_a_secret(call: Callable[[Kept], object], tmp_path: Path) -> None:
    with kept.open(project="yard", home=tmp_path) as memory:
        memory.remember("The gate opens at nine in summer")
        with pytest.raises(kept.KeptError) as raised:
            call(memory)
    assert KEY not in str(raised.value) + repr(raised.value) + raised.value.message + raised.value.hint
