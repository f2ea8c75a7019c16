"""The texts of the cases: who said them, when, and the questions that come later.

All statements of all cases and all distractors are in one project, also when only one half of the cases is asked.
Rule: `check` ends the program if a pattern could not be met, or is met by a text that it does not mean.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.gold import Case, read, said_in

HERE = Path(__file__).parent
LAST_SAID_DAYS = 7  # before the questions are asked


class Statement(Struct, frozen=True):
    """A text that was said once."""

    name: str
    text: str
    kind: str
    speaker: str
    at: datetime
    files: tuple[str, ...] = ()  # edited in its conversation


class Talk(Struct, frozen=True):
    """A conversation, as the messages of it."""

    name: str
    messages: list[dict[str, Any]]
    at: datetime


class Cases(Struct, frozen=True):
    """Everything in the files."""

    cases: list[Case]
    distractors: list[Case]
    prompts: list[str]
    calls: list[Case]


def load() -> Cases:
    unrelated = json.loads((HERE / "unrelated.json").read_text("utf-8"))
    found = Cases(
        cases=read(HERE / "cases.jsonl"),
        distractors=read(HERE / "distractors.jsonl"),
        prompts=unrelated["prompts"],
        calls=unrelated["calls"],
    )
    check(found)
    return found


def check(found: Cases) -> None:
    """Exit if a pattern fits none of the facts that it means, or a distractor, or a fact of the opposite sense."""
    noise = [one["text"] for one in found.distractors]
    for case in found.cases:
        live = [fact["text"] for fact in case["facts"] if not fact["superseded"]]
        old = [fact["text"] for fact in case["facts"] if fact["superseded"]]
        for name, meant, others in (("need", live, noise), ("must_not", old, live + noise)):
            for pattern in case[name]:
                if not said_in(meant, pattern) or said_in(others, pattern):
                    raise SystemExit(f"The case {case['id']} has a pattern in {name!r} that misses its fact: {pattern}")


def statements(found: Cases) -> list[Statement]:
    """Return all facts and distractors, oldest first."""
    facts = [
        (f"{case['id']}.{number}", fact, _edited(case, fact["when"]))
        for case in found.cases
        for number, fact in enumerate(case["facts"])
    ]
    told = [*facts, *((one["id"], one, ()) for one in found.distractors)]
    late = _shift(found)
    made = [
        Statement(name, " ".join(one["text"].split()), one["kind"], one["speaker"], _at(one["when"]) + late, files)
        for name, one, files in told
    ]
    return sorted(made, key=lambda one: (one.at, one.name))


def talks(found: Cases) -> list[Talk]:
    """Return the conversations in which the facts were said, oldest first."""
    late = _shift(found)
    made = [
        Talk(f"{case['id']}-{number}", session["messages"], _at(session["when"]) + late)
        for case in found.cases
        for number, session in enumerate(case["session"])
    ]
    return sorted(made, key=lambda one: (one.at, one.name))


def messages_of_users(found: Cases) -> list[Statement]:
    """Return what users said in the conversations, and the distractors: all that a memory without capture can store."""
    noise = {one["id"] for one in found.distractors}
    said = [
        Statement(f"{talk.name}.{number}", " ".join(message["content"].split()), "fact", "user", talk.at)
        for talk in talks(found)
        for number, message in enumerate(talk.messages)
        if message["role"] == "user"
    ]
    return sorted([*said, *(one for one in statements(found) if one.name in noise)], key=lambda one: (one.at, one.name))


def actions(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tool calls of a case: an edit of each file, then each command."""
    for file in case["files"]:
        yield "Edit", {"file_path": file, "old_string": "", "new_string": ""}
    for command in case["commands"]:
        yield "Bash", {"command": command}


def _edited(case: Case, day: str) -> tuple[str, ...]:
    """Return the files that were edited in the conversation of a day."""
    calls = [
        message["input"]
        for session in case["session"]
        for message in session["messages"]
        if session["when"] == day and message["role"] == "tool_call" and message["name"] in ("Edit", "Write")
    ]
    return tuple(dict.fromkeys(call["file_path"] for call in calls if "file_path" in call))


def _at(day: str) -> datetime:
    return datetime.fromisoformat(day[:10]).replace(hour=12, tzinfo=UTC)


def _shift(found: Cases) -> timedelta:
    """Return how much later everything was said, so that the last word is a week old, whenever this runs."""
    days: Sequence[str] = [session["when"] for case in found.cases for session in case["session"]]
    noise = [one["when"] for one in found.distractors]
    today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return today - timedelta(days=LAST_SAID_DAYS) - max(map(_at, [*days, *noise]))
