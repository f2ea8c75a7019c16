"""One event of an agent: read its input, work out the answer, and start the background process.

The answer is worked out here, in a thread with a limit. Importing the transcript is left to a background
process, because an agent should not wait for it. Rule: a failure is reported to that process, which logs it and
tries the transcript again later.
"""

import json
import os
import sys
import time
from threading import Lock

from kept.entrypoints.hook.agents import AGENTS, MAY_BE_NUDGED, answer_of, field, stop_answer_of

if sys.platform == "win32":
    import subprocess  # elsewhere os.posix_spawn does without it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from kept.entrypoints.hook.startup import EventMemory

WRITTEN_BY_HOSTS = ("<task-notification>", "<teammate-message>")  # how prompts begin that no person has written
BACKGROUND = "import sys; sys.path.append(sys.argv.pop(1)); from kept.entrypoints.hook.background import main; main()"
THIS = f"{os.sep}kept{os.sep}entrypoints{os.sep}hook{os.sep}events.py"
MOST_MARKS = 500  # files; see _Mark
STARTED = "/hook/started"  # in the home: a mark for every background process that has not ended well
MOST_CHARS = 100_000  # of a prompt: a longer one is searched for by its beginning


class Occasion:
    """One event of an agent: its input, and the answer."""

    def __init__(self, agent: str, event: str) -> None:
        self.agent = agent
        self.event = event
        self.kind = AGENTS[agent].events[event]
        self.said = ""
        self.takes_longer = False  # than usual, with good reason
        self._given: Mapping[str, Any] = {}
        self._start = Lock()  # taken by the thread that starts the background process, and never released

    def run(self, source: "BinaryIO") -> None:
        """Read the input and work out the answer. A failure is reported, and leaves the answer empty."""
        try:
            found = json.loads(source.read().decode("utf-8", "surrogateescape") or "{}")
            self._given = found if isinstance(found, dict) else {}
            if self.kind == "stop":
                self._start_once({})
                self.said = stop_answer_of(self.agent, self._wish())
                return
            said = answer_of(self.agent, self.event, self._text())
            if self.kind not in ("prompt", "failure"):
                self._start_once({})
            self.said = said
        except BaseException as error:  # the boundary of this thread: nothing may reach the agent
            self.give_up(_named(error))

    def give_up(self, reason: str) -> None:
        """Have the background process log the reason and import the transcript."""
        if not self._start_once({"failure": reason}):
            # The transcript is being imported already. Only the report is missing, and it has nothing to import.
            about = pointer(self.agent, self.event, self._given)
            start_later(about | {"failure": reason, "transcript": "", "cwd": ""})

    def run_out_of_time(self, reason: str) -> None:
        """Give up, unless there was no answer to wait for: at the end of a turn the background process runs by then."""
        if self.kind != "stop" or self.takes_longer or not self._start.locked():
            self.give_up(reason)

    def _start_once(self, more: "dict[str, Any]") -> bool:
        """Start the background process for this event. Return False if it was started before."""
        if not self._start.acquire(blocking=False):
            return False
        start_later(pointer(self.agent, self.event, self._given) | more)
        return True

    def _wish(self) -> str:
        """Return the request to an agent that is about to stop; "" if there is none."""
        if self.agent not in MAY_BE_NUDGED or self._given.get("stop_hook_active") is not False:
            return ""
        with self._open() as memory:
            self.takes_longer = memory.may_nudge
            return memory.nudge(self._given) if memory.may_nudge else ""

    def _text(self) -> str:
        """Return the text for the model; "" if the event gets none."""
        given, known = self._given, AGENTS[self.agent]
        if self.event not in known.takes:
            return ""
        words = _words(self.kind, given)
        if not words and self.kind != "start":
            return ""
        is_compacted = given.get("source") == "compact" or self.event == "experimental.session.compacting"
        with self._open() as memory:
            self.takes_longer = memory.is_in_database
            return memory.text(self.kind, self.event, words, style=known.style, is_compacted=is_compacted)

    def _open(self) -> "EventMemory":
        from kept.entrypoints.hook.startup import EventMemory  # the expensive part of the start: `startup` says why

        return EventMemory(self.agent, session_of(self._given), project_of(self.agent, self._given))


def _words(kind: str, given: "Mapping[str, Any]") -> str:
    """Return the words to search for: a person's prompt, or the error of a tool that the user did not interrupt."""
    if kind == "prompt":
        prompt = field(given, "prompt")[:MOST_CHARS]
        return "" if not prompt.strip() or prompt.lstrip().startswith(WRITTEN_BY_HOSTS) else prompt
    is_error = kind == "failure" and given.get("is_interrupt") is not True
    return field(given, "error") if is_error else ""


def session_of(given: "Mapping[str, Any]") -> str:
    """Return the name of the session; "unknown" if neither the agent nor KEPT_SESSION names it."""
    return field(given, "session") or os.environ.get("KEPT_SESSION") or "unknown"


def project_of(agent: str, given: "Mapping[str, Any]") -> str:
    """Return the directory of the project that the event belongs to. KEPT_PROJECT overrides it when a memory is opened.

    `./` before a relative path says that it is a directory, also where it reads like a project's name or id.
    """
    claude = os.environ.get("CLAUDE_PROJECT_DIR") if agent == "claude-code" else None
    folder = claude or field(given, "cwd") or os.curdir
    return folder if os.path.isabs(folder) else f"./{folder}"  # noqa: PTH117 (pathlib is slow to import)


def pointer(agent: str, event: str, given: "Mapping[str, Any]") -> "dict[str, Any]":
    """Return the facts for the background process. They point at a transcript, and hold no text of it."""
    return {
        "agent": agent,
        "event": event,
        "session": session_of(given),
        "cwd": project_of(agent, given),
        "transcript": field(given, "transcript"),
    }


def start_later(pointer: "Mapping[str, Any]") -> None:
    """Start the background process. It outlives the agent, and holds none of its pipes.

    -E and -P: it runs in the project's directory, and imports nothing from there, even if PYTHONPATH says so. The
    folder of this package comes last, for an installation that is found by PYTHONPATH alone.
    """
    mark = _Mark(pointer)
    given = json.dumps({**pointer, "mark": [mark.path, mark.token]})
    command = [sys.executable, "-E", "-P", "-c", BACKGROUND, __file__.removesuffix(THIS), given]
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        quiet = subprocess.DEVNULL
        mark.add(subprocess.Popen(command, creationflags=flags, stdin=quiet, stdout=quiet, stderr=quiet).pid)
        return
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        mark.add(os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setsid=True))
    except NotImplementedError:  # macOS: a new process group has to do
        mark.add(os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setpgroup=0))


class _Mark:
    """A small file that says a background process was started: token, agent, event and process id, one a line.

    The process removes it when it is done, so `kept doctor` finds crashed processes. A mark that cannot be written is
    left out: it must not keep a transcript from being imported.
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
    home = os.path.normpath(_home(environ, user).replace("//", "/"))
    is_sure = os.path.isabs(user) and os.path.isabs(home) and home not in ("/", os.path.normpath(user))  # noqa: PTH117
    return home + STARTED if is_sure else ""


def _home(environ: "Mapping[str, str]", user: str) -> str:
    """Return the home of Kept, in the folder of a user."""
    if named := environ.get("KEPT_HOME", ""):
        return f"{user}/{named[2:]}" if named.startswith("~/") else named
    if sys.platform == "win32":
        return f"{environ.get('LOCALAPPDATA') or f'{user}/AppData/Local'}/kept"
    if sys.platform == "darwin":
        return f"{user}/Library/Application Support/kept"
    data = environ.get("XDG_DATA_HOME", "")
    return f"{data if data.startswith('/') else f'{user}/.local/share'}/kept"


def _named(error: BaseException) -> str:
    """Describe a failure without any text of a memory or a prompt."""
    message = getattr(error, "message", "")  # of our own errors, which quote nothing
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
