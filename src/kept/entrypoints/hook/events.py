"""What is done at an event of an agent: give it a text, or have its transcript taken in.

Giving happens here, in a thread with a limit; taking in happens in a detached process (`later`), because an agent
should not wait for it. Rule: a failure is reported to that process, which logs it and tries the transcript again later.
"""

import json
import os
import sys
import time
from threading import Lock

from kept.entrypoints.hook.agents import AGENTS, MAY_BE_NUDGED, answer_of, field, stop_answer_of
from kept.entrypoints.hook.lightly import import_lightly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

NOT_A_PERSON = ("<task-notification>", "<teammate-message>")  # how prompts begin that a host has written
LATER = "import sys; sys.path.append(sys.argv.pop(1)); from kept.entrypoints.hook.later import main; main()"
THIS = f"{os.sep}kept{os.sep}entrypoints{os.sep}hook{os.sep}events.py"
MOST_MARKS = 500  # files; see _Mark
STARTED = "/hook/started"  # in the home: a mark for every detached process that has not ended well
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
        self._start = Lock()  # taken by the thread that starts the detached process, and never released

    def run(self, source: "BinaryIO") -> None:
        """Read the input and work out the answer. Whatever fails is reported, and nothing is said."""
        try:
            found = json.loads(source.read().decode("utf-8", "surrogateescape") or "{}")
            self._given = found if isinstance(found, dict) else {}
            if self.kind == "stop":
                self._start_once({})
                self.said = stop_answer_of(self.agent, self._wish())
                return
            said = answer_of(self.agent, self.event, self._block())
            if self.kind not in ("prompt", "failure"):
                self._start_once({})
            self.said = said
        except BaseException as error:  # the boundary of this thread: nothing may reach the agent
            self.give_up(_named(error))

    def give_up(self, reason: str) -> None:
        """Leave it to the detached process to log this, and to take the transcript in."""
        if not self._start_once({"failure": reason}):
            # The transcript is being taken in already. Only the report is missing, and it has nothing to take in.
            start_later(pointer(self.agent, self.event, self._given) | {"failure": reason, "transcript": "", "cwd": ""})

    def run_out_of_time(self, reason: str) -> None:
        """Give up, unless the event had no answer to wait for: at the end of a turn the work is detached by then."""
        if self.kind != "stop" or self.takes_longer or not self._start.locked():
            self.give_up(reason)

    def _start_once(self, more: "dict[str, Any]") -> bool:
        """Start the detached process for this event. Return False if it was started before."""
        if not self._start.acquire(blocking=False):
            return False
        start_later(pointer(self.agent, self.event, self._given) | more)
        return True

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
    """The project that the event belongs to: the one that KEPT_PROJECT names, or a directory.

    `./` before a relative path says that it is a directory, also where it reads like a project's name or id.
    """
    if named := os.environ.get("KEPT_PROJECT"):
        from kept.projects import typed

        return typed(named)
    claude = os.environ.get("CLAUDE_PROJECT_DIR") if agent == "claude-code" else None
    folder = claude or field(given, "cwd") or os.curdir
    return folder if os.path.isabs(folder) else f"./{folder}"  # noqa: PTH117 (pathlib is slow to import)


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
    """Start the detached process. It outlives the agent, and holds none of its pipes.

    -E and -P: it runs in the project's directory, and imports nothing from there, whatever PYTHONPATH says. The folder
    of this package comes last, for an installation that is found by PYTHONPATH alone.
    """
    mark = _Mark(pointer)
    given = json.dumps({**pointer, "mark": [mark.path, mark.token]})
    command = [sys.executable, "-E", "-P", "-c", LATER, __file__.removesuffix(THIS), given]
    if sys.platform == "win32":
        import subprocess

        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        quiet = subprocess.DEVNULL
        mark.add(subprocess.Popen(command, creationflags=flags, stdin=quiet, stdout=quiet, stderr=quiet).pid)
        return
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        mark.add(os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setsid=True))
    except NotImplementedError:  # macOS: a process group of its own has to do
        mark.add(os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setpgroup=0))


class _Mark:
    """A small file that says a detached process was started: token, agent, event and process id, one a line.

    The process removes it when it is done, so `kept doctor` finds those that crashed. A mark that cannot be written is
    left out: it must not keep a transcript from being taken in.
    """

    def __init__(self, pointer: "Mapping[str, Any]") -> None:
        folder = started_folder(os.environ)
        # Where every process crashes, MOST_MARKS files remain. A process removes only a mark that has its token.
        self.path = f"{folder}/{os.getpid() % MOST_MARKS}"
        self.token = f"{time.time_ns()}-{os.getpid()}"
        self._file = -1
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            if folder and not os.access(folder, os.W_OK):
                # A missing home may be a disk that is not mounted: it is not made here. `kept install` makes one.
                for part in (folder.removesuffix("/started"), folder):
                    if not os.access(part, os.W_OK):
                        os.mkdir(part, 0o700)  # noqa: PTH102  (pathlib is not imported for this)
            if folder:
                self._file = os.open(self.path, flags, 0o600)
        except (OSError, ValueError):
            return
        self.add(f"{self.token}\n{pointer['agent']}\n{pointer['event']}")

    def add(self, line: object) -> None:
        if self._file >= 0:
            try:
                os.write(self._file, f"{line}\n".encode())
            except OSError:  # a full disk
                return


def started_folder(environ: "Mapping[str, str]") -> str:
    """Return the folder of the marks in the home that `default_home` finds, without its imports; "" if unsure."""
    user = environ.get("USERPROFILE" if sys.platform == "win32" else "HOME", "").rstrip("/")
    home = environ.get("KEPT_HOME", "")
    if home.startswith("~/"):
        home = f"{user}/{home[2:]}"
    elif not home and sys.platform == "win32":
        home = f"{environ.get('LOCALAPPDATA') or f'{user}/AppData/Local'}/kept"
    elif not home and sys.platform == "darwin":
        home = f"{user}/Library/Application Support/kept"
    elif not home:
        named = environ.get("XDG_DATA_HOME", "")
        home = f"{named if named.startswith('/') else f'{user}/.local/share'}/kept"
    home = os.path.normpath(home.replace("//", "/"))
    is_sure = os.path.isabs(user) and os.path.isabs(home) and home not in ("/", os.path.normpath(user))  # noqa: PTH117
    return home + STARTED if is_sure else ""


def _named(error: BaseException) -> str:
    """What has failed, without any text of a memory or a prompt."""
    message = getattr(error, "message", "")  # of our own errors, which quote nothing
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
