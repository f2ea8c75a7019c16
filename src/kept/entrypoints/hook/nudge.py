"""Ask an agent once in a session to store a fact that rules could not extract: an objection, a long hunt for a bug.

Off unless the setting `nudge` is `once`. The last turn is read from the end of the agent's own transcript. If it has
such a fact, none was extracted and the agent stored none, the agent is kept from stopping and told why.
Rule: never twice. An agent that goes on because of a hook says so in its next event (`stop_hook_active`), and a file is
made for the session before the request is given.
"""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kept import text
from kept.entrypoints.hook.agents import AGENTS, field
from kept.entrypoints.hook.context import is_off
from kept.entrypoints.hook.folder import HookFolder
from kept.exchange.transcripts import PARSERS
from kept.memory import Kept
from kept.memory.opening import open_projects
from kept.model import CONTEXT, Message
from kept.writing.extraction import extract
from kept.writing.extraction.passages import passages
from kept.writing.extraction.rules import lowered, rules

TAIL_BYTES = 512 * 1024  # of a transcript; a longer turn is judged by its end
MANY_FAILURES = 3  # of commands in one turn: fewer are the usual way of working
STORE_TOOL = "memory_store"
OBJECTION = "The user objected to something in this turn"
HUNT = "In this turn it took several attempts until a problem was solved"
REQUEST = (
    "{reason}, and nothing of that has been kept yet. If a later session should know it, store it now with "
    "memory_store: one fact that stands alone, with the reason and the names of files and commands. "
    "If not, end your turn. You are asked this once in a session."
)


def request_for(memory: Kept, agent: str, session: str, given: Mapping[str, Any]) -> str:
    """Return the request to an agent that is about to stop; "" almost always."""
    if memory.settings.nudge != "once" or given.get("stop_hook_active") is not False or is_off(memory, session):
        return ""
    program, transcript = AGENTS[agent].program, field(given, "transcript")
    if not transcript or program is None or find_spec("mcp") is None:
        return ""
    reason = worth_asking(last_turn(PARSERS[program](_end(Path(transcript)), 0).messages))
    if not reason or not HookFolder(open_projects().home.root).note_nudge(session):
        return ""
    return text.delivered(REQUEST.format(reason=reason))


def last_turn(messages: Sequence[Message]) -> list[Message]:
    """Return the user's last message and all that follow it."""
    asked = [number for number, one in enumerate(messages) if one.role == "user" and one.trust == "user"]
    return list(messages[asked[-1] :]) if asked else []


def worth_asking(turn: Sequence[Message]) -> str:
    """Return the reason to ask: the turn has a fact that only its agent can phrase, and none was stored; else ""."""
    if not turn or _has_stored(turn):
        return ""
    found = extract(turn)
    if _is_objection(turn[0].content) and not any(one.message_id == turn[0].id for one in found):
        return OBJECTION
    if _is_hunt(turn) and not any(one.draft.kind == "error" for one in found):
        return HUNT
    return ""


def _has_stored(turn: Sequence[Message]) -> bool:
    """Return True if the agent has stored a memory itself."""
    return any(STORE_TOOL in f"{one.name} {one.input}" for one in turn if one.role == "tool_call")


def _is_objection(said: str) -> bool:
    """Return True if the first sentence objects to something."""
    read = passages(said, is_long_pasted=True)
    return bool(read and read[0].sentences) and rules()["objection"].fits(lowered(read[0].sentences[0]))


def _is_hunt(turn: Sequence[Message]) -> bool:
    """Return True if many commands failed, and the last one did not."""
    results = [one for one in turn if one.role == "tool_result" and one.name != CONTEXT]
    return sum(one.is_error for one in results) >= MANY_FAILURES and not results[-1].is_error


def _end(transcript: Path) -> list[bytes]:
    """Return the last lines of a file."""
    with transcript.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().splitlines()
    return lines if size <= TAIL_BYTES else lines[1:]
