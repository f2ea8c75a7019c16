"""One event of an agent: read its input, work out the answer, and start the background process.

The answer is worked out here, in a thread with a limit. Importing the transcript is left to a background
process, because an agent should not wait for it. Rule: a failure is reported to that process, which logs it and
tries the transcript again later.
"""

import os
import sys
import time
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL
from _thread import allocate_lock

from kept.entrypoints.hook import work
from kept.entrypoints.hook.agents import (
    AGENTS,
    MAY_BE_ASKED,
    answer_of,
    field,
    project_of,
    refusal_of,
    session_of,
    stop_answer_of,
)
from kept.entrypoints.hook.places import MISNAMED, TOLD_LAST, is_agents_own, kept_home
from kept.entrypoints.hook.wire import decoded, encoded

if sys.platform == "win32":
    import subprocess  # elsewhere os.posix_spawn does without it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any, BinaryIO

    from kept.entrypoints.hook.startup import EventMemory

WRITTEN_BY_HOSTS = ("<task-notification>", "<teammate-message>")  # how prompts begin that no person has written
# The work of the background process must not slow down an agent that answers: also its imports come after others.
BACKGROUND = (
    "import os, sys; hasattr(os, 'nice') and os.nice(10); sys.path.append(sys.argv.pop(1)); "
    "from kept.entrypoints.hook.background import main; main()"
)
THIS = f"{os.sep}kept{os.sep}entrypoints{os.sep}hook{os.sep}events.py"
MOST_MISNAMED = 20  # files
MOST_MARKS = 500  # files; see _Mark
STARTED = "/hook/started"  # in the home: a mark for every background process that has not ended well
MOST_CHARS = 100_000  # of a prompt: a longer one is searched for by its beginning
BRIEFED = ("start", "prompt")  # kinds that the last briefing of a database stands in for
OUT_OF_REACH = ("StorageError", "Busy")
ANSWERED_ONLY = ("prompt", "action", "result", "failure", "subagent")  # kinds that start no background process


class Occasion:
    """One event of an agent: its input, and the answer."""

    def __init__(self, agent: str, event: str) -> None:
        self.agent = agent
        self.event = event
        self.kind = AGENTS[agent].events[event]
        self.said = ""
        self.takes_longer = False  # than usual, with good reason
        self._memory: EventMemory | None = None  # that a start or a prompt is answered from
        self._given: Mapping[str, Any] = {}
        self._start = allocate_lock()  # taken by the thread that starts the background process, and never released

    def run(self, source: "BinaryIO") -> None:
        """Read the input and work out the answer. A failure is reported, and leaves the answer empty."""
        try:
            found = decoded(source.read().decode("utf-8", "surrogateescape") or "{}")
            self._given = found if isinstance(found, dict) else {}
            if self.kind == "prompt" and field(self._given, "agent"):
                self.kind = "subagent"  # whose task it is: Codex and Copilot CLI tell it as a prompt
            if is_agents_own(self.agent, project_of(self.agent, self._given), os.environ):
                return
            if self.kind == "stop":
                self._start_once({})
                self.said = stop_answer_of(self.agent, self._wish())
                return
            self.said = self._answer()
            if self.kind not in ANSWERED_ONLY:
                self._start_once({})
        except BaseException as error:  # the boundary of this thread: nothing may reach the agent
            try:
                self.said = self.stand_in(_named(error), error)
            except OSError:  # no process can be started, so the failure is not logged; the answer stands
                return

    def give_up(self, reason: str) -> None:
        """Have the background process log the reason and import the transcript."""
        if not self._start_once({"failure": reason}):
            # The transcript is being imported already. Only the report is missing, and it has nothing to import.
            about = pointer(self.agent, self.event, self._given)
            start_later(about | {"failure": reason, "transcript": "", "cwd": ""})

    def run_out_of_time(self, reason: str) -> str:
        """Give up, unless there was no answer to wait for: at the end of a turn the background process runs by then."""
        if self.kind != "stop" or self.takes_longer or not self._start.locked():
            return self.stand_in(reason)
        return ""

    def stand_in(self, reason: str, error: BaseException | None = None) -> str:
        """Give up; return the last briefing of a database that cannot be reached, if there is one."""
        found = None
        if self._memory is not None:
            if error is None or type(error).__name__ in OUT_OF_REACH:
                found = self._memory.last_text()
            else:
                self._memory.forget_told(error)
        self.give_up(f"{reason}; {TOLD_LAST} {found[1]}" if found else reason)
        return answer_of(self.agent, self.event, found[0]) if found else ""

    def _start_once(self, more: "dict[str, Any]") -> bool:
        """Start the background process for this event. Return False if it was started before."""
        if not self._start.acquire(blocking=False):
            return False
        start_later(pointer(self.agent, self.event, self._given) | more)
        return True

    def _wish(self) -> str:
        """Return the request to an agent that is about to stop; "" if there is none."""
        if self.agent not in MAY_BE_ASKED or self._given.get("stop_hook_active") is True:
            return ""
        with self._open() as memory:
            self.takes_longer = memory.asks_at_stop
            return memory.request_at_stop() if memory.asks_at_stop else ""

    def _answer(self) -> str:
        """Return the answer to an event; "" if it gets none."""
        if self.kind == "compact":
            self._note_compaction()
        if self.event not in AGENTS[self.agent].takes:
            return ""
        if self.kind in ("action", "result"):
            return self._answer_to_call()
        words = self._words()
        if not words and self.kind != "start":
            return ""
        return self._briefed(words)

    def _briefed(self, words: str) -> str:
        """Return the text for a start, a prompt, the task of a sub-agent or an error."""
        # OpenCode has no event at the start of a session that may be answered: its first prompt is one as well.
        is_first = self.kind == "prompt" and self._given.get("is_first") is True
        self.takes_longer = is_first
        with self._open() as memory:
            self.takes_longer = is_first or memory.is_in_database
            self._memory = memory if self.kind in BRIEFED else None
            texts = [memory.text("start", "")] if is_first else []
            texts.append(memory.text(self.kind, words, self._command() if self.kind == "failure" else ""))
            said = "\n\n".join(filter(None, texts))
            if self.kind in BRIEFED:
                memory.note_told(said)
            return answer_of(self.agent, self.event, said)

    def _words(self) -> str:
        """Return the words to search for: a person's prompt, the task of a sub-agent, the error of a tool."""
        if self.kind == "subagent":
            return field(self._given, "prompt") or work.take_task(kept_home(os.environ), session_of(self._given))
        if self.kind == "prompt":
            prompt = field(self._given, "prompt")[:MOST_CHARS]
            return "" if not prompt.strip() or prompt.lstrip().startswith(WRITTEN_BY_HOSTS) else prompt
        return str(_tool_calls().failure_of(self.agent, self.kind, self._given))

    def _answer_to_call(self) -> str:
        """Answer before or after a tool call: a refusal, the lines that concern it, the fix of its error.

        Nothing is imported before a small file says that a memory may concern the call.
        """
        calls, is_before = _tool_calls(), self.kind == "action"
        call, tells = calls.call_of(self._given), AGENTS[self.agent].tells_before == is_before
        if is_before:
            self._note_work(call.files if call else ())
        error = "" if is_before else calls.failure_of(self.agent, self.kind, self._given)
        home, project = kept_home(os.environ), project_of(self.agent, self._given)
        if not (home and call and (tells or is_before) and calls.concerns(home, project, call)):
            call = None
        if call is None and not error:
            return ""
        with self._open() as memory:
            self.takes_longer = memory.is_in_database
            said = memory.said_of_call(call, error, self._command(), is_before=is_before, tells=tells)
        return refusal_of(self.agent, self.event, said[1]) or answer_of(self.agent, self.event, said[0])

    def _command(self) -> str:
        """Return the command of the tool call of this event; "" if it has none."""
        call = _tool_calls().call_of(self._given)
        return str(call.commands[0]) if call and call.commands else ""

    def _note_work(self, files: "tuple[str, ...]") -> None:
        """Note the files of a tool call, and the task that it gives to a sub-agent."""
        home, session = kept_home(os.environ), session_of(self._given)
        work.note_task(home, session, _tool_calls().task_of(self._given))
        work.note_files(home, session, files)

    def _note_compaction(self) -> None:
        """Note that the context of the session is lost, if the agent does not say so at a new start."""
        if not AGENTS[self.agent].starts_again and AGENTS[self.agent].program is not None:
            with self._open() as memory:
                memory.note_compaction()

    def _open(self) -> "EventMemory":
        from kept.entrypoints.hook.startup import EventMemory  # the expensive part of the start: `startup` says why

        return EventMemory(self.agent, self.event, self._given)


def _tool_calls() -> "ModuleType":
    from kept.entrypoints.hook import tool_calls  # not for a prompt, which has no call

    return tool_calls


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
    given = encoded({**pointer, "mark": [mark.path, mark.token]})
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


def note_misnamed(agent: str, event: str) -> None:
    """Note that the program was called with an agent or an event that it does not know, for `kept doctor`."""
    home = kept_home(os.environ)
    if home and os.access(home, os.W_OK):
        name = blake2b(f"{agent}\n{event}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        folder = f"{home}/{MISNAMED}"
        for part in (folder.rpartition("/")[0], folder):
            if not os.access(part, os.W_OK):
                os.mkdir(part, 0o700)  # noqa: PTH102  (pathlib is not imported for this)
        if len(known := os.listdir(folder)) < MOST_MISNAMED or name in known:  # noqa: PTH208
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
            file = os.open(f"{folder}/{name}", flags, 0o600)
            os.write(file, f"{_on_one_line(agent)}\n{_on_one_line(event)}\n".encode("utf-8", "replace"))
            os.close(file)


def _on_one_line(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:60]


def started_folder(environ: "Mapping[str, str]") -> str:
    """Return the folder of the marks in the home; "" if it is not sure which one that is."""
    home = kept_home(environ)
    return home + STARTED if home else ""


def _named(error: BaseException) -> str:
    """Describe a failure without any text of a memory or a prompt."""
    message = getattr(error, "message", "")  # of our own errors, which quote nothing
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
