"""Ask an agent that is about to stop which findings of its session hold, if the setting `judge` is `stop`.

The end of the agent's own transcript shows whether there was enough work to ask about. Only attended sessions are
asked: a program that runs an agent gets its last text, which would be the answer to us. Rule: never twice. A file is
made for the session before the request is given; the flag of the host is not enough, because Gemini CLI forgets it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kept.entrypoints.hook.agents import AGENTS, field
from kept.entrypoints.hook.folder import HookFolder
from kept.memory import Kept
from kept.memory.deliver import Listener
from kept.memory.effort import has_worked
from kept.memory.opening import open_projects

TAIL_BYTES = 512 * 1024  # of a transcript; longer work is judged by its end


def request_for(memory: Kept, agent: str, listener: Listener, given: Mapping[str, Any]) -> str:
    """Return the request to an agent that is about to stop; "" almost always."""
    program, transcript = AGENTS[agent].program, field(given, "transcript")
    if not transcript or program is None or field(given, "agent") or not memory.deliveries.is_attended(listener):
        return ""
    folder = HookFolder(open_projects().home.root)
    if folder.was_asked(listener.session) or not has_worked(program, _end(Path(transcript))):
        return ""
    request = memory.deliveries.at_stop(listener)
    return request if request and folder.note_asked(listener.session) else ""


def _end(transcript: Path) -> list[bytes]:
    """Return the last lines of a file."""
    with transcript.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().splitlines()
    return lines if size <= TAIL_BYTES else lines[1:]
