"""Ask an agent once in a session to store a fact that rules could not extract: an objection, a long hunt for a bug.

Off unless the setting `nudge` is `once`. The last turn is read from the end of the agent's own transcript. If it has
such a fact, none was extracted and the agent stored none, the agent is kept from stopping and told why.
Rule: never twice. An agent that goes on because of a hook says so in its next event (`stop_hook_active`), and a file is
made for the session before the request is given.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kept import text
from kept.entrypoints.hook.agents import AGENTS, field
from kept.entrypoints.hook.folder import HookFolder
from kept.memory import Kept
from kept.memory.opening import open_projects
from kept.memory.unsaid import reason_to_ask

TAIL_BYTES = 512 * 1024  # of a transcript; a longer turn is judged by its end
REQUEST = (
    "{reason}, and nothing of that has been kept yet. If a later session should know it, store it now with "
    "memory_store: one fact that stands alone, with the reason and the names of files and commands. "
    "If not, end your turn. You are asked this once in a session."
)


def request_for(memory: Kept, agent: str, session: str, given: Mapping[str, Any]) -> str:
    """Return the request to an agent that is about to stop; "" almost always."""
    if memory.settings.nudge != "once" or given.get("stop_hook_active") is not False:
        return ""
    if memory.pauses.status(session):
        return ""
    program, transcript = AGENTS[agent].program, field(given, "transcript")
    if not transcript or program is None or find_spec("mcp") is None:
        return ""
    reason = reason_to_ask(program, _end(Path(transcript)))
    if not reason or not HookFolder(open_projects().home.root).note_nudge(session):
        return ""
    return text.delivered(REQUEST.format(reason=reason))


def _end(transcript: Path) -> list[bytes]:
    """Return the last lines of a file."""
    with transcript.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().splitlines()
    return lines if size <= TAIL_BYTES else lines[1:]
