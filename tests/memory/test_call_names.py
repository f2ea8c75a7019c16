"""A receipt of a tool call says which call it was, whether a guard refused it, and why each memory was told."""

from pathlib import Path

import pytest

import kept
from kept.anchors import ToolCall
from kept.memory import deliver
from kept.memory.actions import Concern
from kept.memory.guards import NAME_CHARS, named
from kept.model import Actor
from tests.builders import FakeClock
from tests.builders import memory as memory_of
from tests.memory.shop import clock as clock
from tests.memory.shop import open_shop

PERSON = Actor(role="admin", name="user")


def listener(event: str, *files: str) -> deliver.Listener:
    return deliver.Listener(session="s1", event=event, files=files)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (ToolCall(("/code/app/src/vat.py",)), "edit of src/vat.py"),
        (ToolCall(("/elsewhere/vat.py",)), "edit of vat.py"),
        (ToolCall(("a.py", "b.py", "c.py", "d.py")), "edit of a.py, b.py, c.py and 1 more"),
        (ToolCall((), ("./release.sh  --now\nrm -r build",)), "./release.sh --now"),
        (ToolCall((), ("deploy ghp_0123456789abcdefghijABCDEFGHIJ012345",)), "deploy [redacted:github]"),
        (ToolCall((), ("echo " + "x" * 5_000,)), "echo"),
        (ToolCall(), ""),
    ],
)
def test_a_call_is_named_by_its_files_or_the_first_line_of_its_command_without_secrets(
    call: ToolCall, name: str
) -> None:
    assert named(call, "/code/app") == name


def test_the_name_of_a_call_is_short() -> None:
    name = named(ToolCall((), ("run " * 100,)), "")
    assert len(name) == NAME_CHARS
    assert name.endswith("…")


def test_the_receipt_of_a_refused_call_names_the_call_and_that_it_was_made_again() -> None:
    with kept.open(":memory:", origin="user", actor=PERSON) as memory:
        one = memory.remember("Never run deploy/release.sh on a Friday.", kind="warning", files=["deploy/release.sh"])
        memory.guard(one.ref or "", "stop")
        call = ToolCall((), ("bash deploy/release.sh --now",))
        assert memory.deliveries.for_action(call, listener("PreToolUse")).refusal
        assert not memory.deliveries.for_action(call, listener("PreToolUse")).refusal
        again, first = [given for given in memory.look().receipts("s1") if given.guard]
        assert (first.guard, first.call) == ("refused", "bash deploy/release.sh --now")
        assert (again.guard, again.call, again.block) == ("passed", "bash deploy/release.sh --now", "")


def test_the_receipt_of_a_told_call_names_the_call(tmp_path: Path, clock: FakeClock) -> None:
    with open_shop(tmp_path, clock) as memory:
        memory.remember("Advisory locks are retried in src/db.py.", kind="warning", files=["src/db.py"])
        assert memory.deliveries.for_action(ToolCall(("src/db.py",)), listener("PreToolUse")).text
        (given,) = memory.look().receipts("s1")
        assert (given.call, given.guard) == ("edit of src/db.py", None)


def test_a_reason_has_the_words_as_the_prompt_has_them() -> None:
    prompt = "Why does psycopg.errors.DeadlockDetected come with advisory locks, and the table stays empty?"
    words = ("advisori", "deadlockdetect", "psycopgerrorsdeadlockdetect", "empti")
    one = Concern(memory=memory_of("x"), rank=3.0, keys=("f:src/db.py",), words=words)
    said = "concerns src/db.py; prompt: advisory, psycopg.errors.DeadlockDetected, empty"
    assert one.reason(prompt) == said


def test_a_memory_that_is_told_for_a_file_at_hand_says_so() -> None:
    with kept.open(":memory:") as memory:
        memory.remember("The VAT is rounded per line, half up.", kind="decision", files=["src/billing/vat.py"])
        for number in range(30):
            memory.remember(f"The worker number {number} mirrors region {number}.")
        heard = listener("UserPromptSubmit", "src/billing/vat.py")
        assert memory.deliveries.for_prompt("Customers say that the export of last week shows another rounding", heard)
        (given,) = memory.look().receipts("s1")
        (entry,) = next(one for one in given.sections if one["name"] == "retrieval")["entries"]
        assert entry["reason"] == "matches rounding; its file src/billing/vat.py is at hand"


def test_a_memory_that_fits_by_its_words_names_them_alone() -> None:
    with kept.open(":memory:") as memory:
        memory.remember("The VAT is rounded per line, half up.", kind="decision", files=["src/billing/vat.py"])
        assert memory.deliveries.for_prompt("Is the rounding of vat per line right?", listener("UserPromptSubmit"))
        (given,) = memory.look().receipts("s1")
        (entry,) = next(one for one in given.sections if one["name"] == "retrieval")["entries"]
        assert entry["reason"] == "matches rounding, vat, line"
