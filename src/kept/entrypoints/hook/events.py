"""What is done at an event of an agent: give it a text, or have its transcript taken in.

Giving happens here, in a thread with a limit; taking in happens in a detached process (`later`), because an agent
should not wait for it. Rule: a failure is reported to that process, which logs it and tries the transcript again later.
"""

import json
import os
import sys

from kept.entrypoints.hook.agents import AGENTS, MAY_BE_NUDGED, answer_of, field, stop_answer_of
from kept.entrypoints.hook.lightly import import_lightly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

NOT_A_PERSON = ("<task-notification>", "<teammate-message>")  # how prompts begin that a host has written
MOST_CHARS = 100_000  # of a prompt: what was pasted into it beyond that is not searched for


class Occasion:
    """One event of an agent: what it was given, and what is said to it."""

    def __init__(self, agent: str, event: str) -> None:
        self.agent = agent
        self.event = event
        self.kind = AGENTS[agent].events[event]
        self.said = ""
        self.takes_longer = False  # than usual, with good reason
        self._given: Mapping[str, Any] = {}

    def run(self, source: "BinaryIO") -> None:
        """Read the input and work out the answer. Whatever fails is reported, and nothing is said."""
        try:
            found = json.loads(source.read().decode("utf-8", "surrogateescape") or "{}")
            self._given = found if isinstance(found, dict) else {}
            if self.kind == "stop":
                start_later(pointer(self.agent, self.event, self._given))
                self.said = stop_answer_of(self.agent, self._wish())
                return
            said = answer_of(self.agent, self.event, self._block())
            if self.kind not in ("prompt", "failure"):
                start_later(pointer(self.agent, self.event, self._given))
            self.said = said
        except BaseException as error:  # the boundary of this thread: nothing may reach the agent
            self.give_up(_named(error))

    def give_up(self, reason: str) -> None:
        """Leave it to the detached process to log this, and to take the transcript in."""
        start_later(pointer(self.agent, self.event, self._given) | {"failure": reason})

    def _wish(self) -> str:
        """What is asked of an agent that is about to stop."""
        given = self._given
        if self.agent not in MAY_BE_NUDGED or given.get("stop_hook_active") is not False:
            return ""
        from kept.memory.opening import open as open_memory
        from kept.memory.opening import role_in
        from kept.model import Actor

        project, actor = project_of(self.agent, given), Actor(role=role_in(os.environ), name=self.agent)
        with open_memory(project=project, actor=actor, settings={"auto_upkeep": False}) as memory:
            if memory.settings.nudge == "off":
                return ""
            self.takes_longer = True
            from kept.entrypoints.hook import nudge

            return nudge.wish(memory, self.agent, session_of(given), given)

    def _block(self) -> str:
        """The text for the model."""
        given, kind = self._given, self.kind
        if self.event not in AGENTS[self.agent].takes:
            return ""
        prompt, error = field(given, "prompt")[:MOST_CHARS], field(given, "error")
        if kind == "prompt" and (not prompt.strip() or prompt.lstrip().startswith(NOT_A_PERSON)):
            return ""
        if kind == "failure" and (not error or given.get("is_interrupt") is True):
            return ""
        import_lightly()
        from kept.memory import deliver
        from kept.memory.opening import open as open_memory
        from kept.memory.opening import role_in
        from kept.model import Actor

        is_compacted = given.get("source") == "compact" or self.event == "experimental.session.compacting"
        listener = deliver.Listener(
            session=session_of(given), event=self.event, style=AGENTS[self.agent].style, is_compacted=is_compacted
        )
        project, actor = project_of(self.agent, given), Actor(role=role_in(os.environ), name=self.agent)
        with open_memory(project=project, actor=actor, settings={"auto_upkeep": False}) as memory:
            self.takes_longer = memory.context.person is not None
            if kind == "prompt":
                return deliver.for_prompt(memory, prompt, listener)
            if kind == "failure":
                return deliver.for_error(memory, error, listener)
            return deliver.at_start(memory, listener)


def session_of(given: "Mapping[str, Any]") -> str:
    """The name of the session; "unknown" when the agent does not say."""
    return field(given, "session") or os.environ.get("KEPT_SESSION") or "unknown"


def project_of(agent: str, given: "Mapping[str, Any]") -> str:
    """The project that the event belongs to: the one that KEPT_PROJECT names, or a directory, which has a separator."""
    if named := os.environ.get("KEPT_PROJECT"):
        from kept.projects import typed

        return typed(named)
    claude = os.environ.get("CLAUDE_PROJECT_DIR") if agent == "claude-code" else None
    folder = claude or field(given, "cwd") or os.curdir
    return folder if os.sep in folder or "/" in folder else f"./{folder}"


def pointer(agent: str, event: str, given: "Mapping[str, Any]") -> "dict[str, Any]":
    """What the detached process needs to know. It points at a transcript, and holds no text of it."""
    return {
        "agent": agent,
        "event": event,
        "session": session_of(given),
        "cwd": project_of(agent, given),
        "transcript": field(given, "transcript"),
    }


def start_later(pointer: "Mapping[str, Any]") -> None:
    """Start the detached process. It outlives the agent, and holds none of its pipes."""
    command = [sys.executable, "-m", "kept.entrypoints.hook.later", json.dumps(pointer)]
    if sys.platform == "win32":
        import subprocess

        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        quiet = subprocess.DEVNULL
        subprocess.Popen(command, creationflags=flags, stdin=quiet, stdout=quiet, stderr=quiet)
        return
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setsid=True)
    except NotImplementedError:  # macOS: a process group of its own has to do
        os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setpgroup=0)


def _named(error: BaseException) -> str:
    """What has failed, without any text of a memory or a prompt."""
    message = getattr(error, "message", "")  # of our own errors, which quote nothing
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
