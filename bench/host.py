"""An agent program, as far as Kept can tell: sessions that are played, and events that go to the hook in this process.

Used by `bench.delivery` and `bench.talk`. Rule: no event starts the background process, since there are no
transcripts, and no answer is lost because the machine is busy.
"""

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import kept
from kept.entrypoints.hook import events
from kept.entrypoints.hook.events import Occasion

AGENT = "claude-code"
MARKUP = re.compile(r"<[^>]{1,200}>")
MARK = "[id:"  # of a line that holds a memory
SECONDS_A_MESSAGE = 20
SHORTEST = 12  # characters of a line with more than a mark
FOREIGN = ("KEPT_PROJECT", "KEPT_SESSION", "KEPT_DATABASE_URL", "CLAUDE_PROJECT_DIR")


@contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """Give the hook an empty account in `folder`, whatever the account of this process holds."""
    account = folder / "account"
    account.mkdir(parents=True)
    own = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    own |= {"HOME": str(account), "XDG_CONFIG_HOME": str(account)}
    with patch.dict(os.environ, own, clear=True), patch.object(events, "start_later", lambda pointer: None):
        yield


class Host:
    """One session of an agent in a project."""

    def __init__(self, project: Path, home: Path, session: str) -> None:
        self._project, self._session = project, session
        os.environ["KEPT_HOME"] = str(home)

    def start(self) -> str:
        return self._ask("SessionStart", source="startup")

    def prompt(self, text: str) -> str:
        return self._ask("UserPromptSubmit", prompt=text)

    def call(self, tool: str, given: Mapping[str, Any]) -> str:
        """Announce a tool call. A path of the case is one of the project."""
        paths = {name: str(self._project / value) for name, value in given.items() if name == "file_path"}
        return self._ask("PreToolUse", tool_name=tool, tool_input={**given, **paths})

    def failure(self, command: str, error: str) -> str:
        return self._ask("PostToolUseFailure", tool_name="Bash", tool_input={"command": command}, error=error)

    def _ask(self, event: str, **given: Any) -> str:
        about = {"hook_event_name": event, "session_id": self._session, "cwd": str(self._project), **given}
        about["transcript_path"] = str(self._project / "none.jsonl")
        occasion = Occasion(AGENT, event)
        occasion.run(io.BytesIO(json.dumps(about).encode()))
        if not occasion.said:
            return ""
        said = json.loads(occasion.said).get("hookSpecificOutput", {})
        return "\n".join(filter(None, (said.get("additionalContext"), said.get("permissionDecisionReason"))))


def lines_of(text: str) -> list[str]:
    """Return the lines that hold a memory, and those of summaries."""
    lines = [MARKUP.sub("", line).strip() for line in text.splitlines()]
    return [line for line in lines if (MARK in line and len(line) > SHORTEST) or line.startswith("- ")]


def play(
    memory: kept.Kept,
    name: str,
    messages: Sequence[Mapping[str, Any]],
    clock: list[datetime],
    is_worth: Callable[[str], bool] | None = None,
) -> None:
    """Say the messages of a conversation one by one, and finish its session. `clock` holds the time, and moves on.

    `is_worth` judges the proposals of the session, as the model of the agent would.
    """
    session = memory.session(name, agent=AGENT)
    for message in messages:
        clock[0] += timedelta(seconds=SECONDS_A_MESSAGE)
        more = {name: message[name] for name in ("name", "input", "is_error") if name in message}
        session.append(message["role"], message.get("content", ""), **more)
    clock[0] += timedelta(minutes=1)
    session.finish()
    if is_worth is not None and (proposals := session.propose()):
        kept_ones = [one.n for one in proposals if is_worth(one.text)]
        session.judge({"keep": kept_ones, "drop": [one.n for one in proposals if one.n not in kept_ones]})


def live_texts(memory: kept.Kept) -> list[str]:
    """Return the texts of all live memories but summaries."""
    found = {one.uid: one for one in memory.list(limit=10_000)}
    return [one.content for one in found.values() if one.kind != "summary" and "summary" not in one.tags]
