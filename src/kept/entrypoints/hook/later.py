"""The detached process behind the hooks: takes in transcripts, finishes sessions, and logs what has failed.

    <home>/hook/spool/*.json    pointers to transcripts that wait
    <home>/hook/failures.jsonl  what has failed, for `kept doctor`
    <home>/hook/seen/AGENT      the agent's last event, and when
    <home>/hook/started/*       a mark for every process that was started and is not done, written by the hook
    <home>/hook/nudged/*        the sessions whose agent was asked to store something (`nudge`)

Every event that is worth taking in first becomes a pointer in the spool: agent, session, project and path of the
transcript, and no word of it. Then one process at a time works the spool off. Rule: a pointer goes only when its
transcript is stored. Reading the same transcript again adds nothing twice, so whatever is interrupted is done again.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kept.entrypoints.hook.agents import AGENTS
from kept.entrypoints.lookup import use_absolute_path
from kept.errors import Busy, KeptError, SettingsError, StorageError
from kept.memory import views
from kept.memory.imports import ImportedTranscript
from kept.memory.opening import open as open_memory
from kept.memory.opening import open_projects, role_in
from kept.memory.sessions import finish_silent
from kept.model import Actor
from kept.projects.files import locked, make_private_directory, write_private_file

DIED = "The background process ended before it was done"  # how the failure of such a process begins
RUNS_SECONDS = 86_400  # a process id that is in use after this time is another process's
MOST_SECONDS = 600  # of one process, so that none can hang for ever
WAIT_S = 60  # for another one: it may have looked into the spool before our pointer was there
MOST_POINTERS = 1_000
KEPT_DAYS = 30  # as long as Claude Code keeps transcripts
LOG_BYTES = 256 * 1024
NICE = 10
MANY_IN_A_FILE = ("opencode",)  # the conversations of all projects are in one database


class HookFolder:
    """The files of the hooks in a home."""

    def __init__(self, home: Path) -> None:
        self.root = home / "hook"
        self.spool = self.root / "spool"
        self.seen = self.root / "seen"
        self.log = self.root / "failures.jsonl"
        self.nudged = self.root / "nudged"
        self.started = self.root / "started"
        self.lock = self.root / "spool.lock"

    def prepare(self) -> None:
        for folder in (self.root, self.spool, self.seen, self.nudged, self.started):
            make_private_directory(folder)

    def pointers(self) -> list[tuple[Path, dict[str, Any]]]:
        """What waits, oldest first. A file that is not ours, or torn, is left out and removed when it is old."""
        found = []
        for path in sorted(self.spool.glob("*.json")):
            with suppress(OSError, ValueError):
                pointer = json.loads(path.read_bytes())
                if isinstance(pointer, dict) and pointer.get("agent") in AGENTS:
                    found.append((path, pointer))
        return found

    def failures(self) -> list[dict[str, Any]]:
        """What has failed, oldest first."""
        with suppress(OSError):
            lines = self.log.read_text("utf-8", "replace").splitlines()
            return [entry for line in lines if isinstance(entry := _read(line), dict)]
        return []

    def last_events(self) -> dict[str, tuple[str, datetime]]:
        """For each agent its last event, and when it was."""
        found = {}
        for path in sorted(self.seen.glob("*")):
            with suppress(OSError):
                event = path.read_text("utf-8", "replace").strip()
                found[path.name] = (event, datetime.fromtimestamp(path.stat().st_mtime, UTC))
        return found

    def died(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the marks of detached processes that ended before they were done, with agent, event and time."""
        found = []
        for path in sorted(self.started.glob("*")):
            with suppress(OSError, ValueError):
                token, agent, event, *number = path.read_text("utf-8", "replace").splitlines()
                begun_s = int(token.partition("-")[0]) / 1e9
                if not _is_running(int(number[0]) if number else 0, begun_s):
                    at = f"{datetime.fromtimestamp(begun_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
                    found.append((path, {"agent": agent, "event": event, "at": at}))
        return found

    def log_died(self) -> None:
        """Move the marks of processes that ended before they were done to the log, once one that came later is done."""
        for path, about in self.died():
            path.unlink(missing_ok=True)
            self.note_failure(about, DIED)

    def add(self, pointer: Mapping[str, Any]) -> None:
        name = f"{time.time_ns():020d}-{os.getpid()}.json"
        write_private_file(self.spool / name, json.dumps(pointer).encode())

    def note_event(self, agent: str, event: str) -> None:
        write_private_file(self.seen / agent, event.encode())

    def note_nudge(self, session: str) -> bool:
        """Note that the agent of a session is asked. False: it was asked before."""
        self.prepare()
        name = blake2b(session.encode("utf-8", "replace"), digest_size=16).hexdigest()
        try:
            os.close(os.open(self.nudged / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def forget_old_nudges(self) -> None:
        oldest = time.time() - KEPT_DAYS * 86_400
        for path in self.nudged.glob("*"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def note_failure(self, pointer: Mapping[str, Any], what: str) -> None:
        """Add a line to the log; of a long log the older half goes."""
        at = pointer.get("at") or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        entry = {"at": at, "agent": pointer.get("agent")}
        entry |= {"event": pointer.get("event"), "failure": what[:500]}
        lines = self.log.read_bytes() if self.log.exists() else b""
        if len(lines) > LOG_BYTES:
            lines = lines[len(lines) // 2 :].partition(b"\n")[2]
        write_private_file(self.log, lines + json.dumps(entry).encode() + b"\n")


def main() -> None:
    """Take the event of the command line in, and everything that waits."""
    with suppress(OSError):
        os.closerange(3, 256)  # whatever the host left open: it may wait for its end
    if sys.platform != "win32":
        import signal

        signal.alarm(MOST_SECONDS)
        os.nice(NICE)
    use_absolute_path(os.environ)
    found = _read(sys.argv[1]) if len(sys.argv) > 1 else None
    pointer = found if isinstance(found, dict) else {}
    try:
        run(pointer)
    except Exception as error:  # the boundary: only `kept doctor` can say it
        HookFolder(open_projects().home.root).note_failure(pointer, f"{type(error).__name__} in the background process")
    _remove_mark(pointer.get("mark"))


def _remove_mark(mark: Any) -> None:
    """Remove the mark of this process: path and token. If another process has written its own there, leave it."""
    with suppress(OSError, ValueError, TypeError):
        path, token = Path(mark[0]), str(mark[1])
        if path.read_text("utf-8").startswith(f"{token}\n"):
            path.unlink()


def _is_running(number: int, begun_s: float) -> bool:
    """Return True if the detached process may still run. Without a number it is only being started."""
    age_s = time.time() - begun_s
    if not number or sys.platform == "win32":  # there, asking for a process by os.kill would end it
        return age_s < (MOST_SECONDS if number else WAIT_S)
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process has the number now
        return False
    return age_s < RUNS_SECONDS


def run(pointer: Mapping[str, Any]) -> None:
    """Note the event, spool what it points at, and work the spool off."""
    projects = open_projects()
    if projects.is_home_away(pointer.get("cwd")):
        return  # its disk is not mounted: what is written now would be hidden later. `kept status` says so.
    projects.home.prepare_root()
    folder = HookFolder(projects.home.root)
    folder.prepare()
    if pointer.get("agent") in AGENTS:
        folder.note_event(str(pointer["agent"]), str(pointer.get("event")))
        if failure := pointer.get("failure"):
            folder.note_failure(pointer, str(failure))
        if is_worth_taking(pointer):
            folder.add(pointer)
    folder.forget_old_nudges()
    work_off(folder)
    if pointer.get("cwd"):
        _upkeep(str(pointer["agent"]), str(pointer["cwd"]))
    folder.log_died()


def is_worth_taking(pointer: Mapping[str, Any]) -> bool:
    """Whether there is a transcript, and a reader for it."""
    return bool(pointer.get("transcript")) and AGENTS[pointer["agent"]].program is not None


def work_off(folder: HookFolder) -> int:
    """Take in what waits. Returns how many pointers are left: their store was busy or broken."""
    while True:
        try:
            with locked(folder.lock, timeout_s=WAIT_S):
                before = folder.pointers()
                for group in _by_transcript(before):
                    _take_in(folder, group)
                left = folder.pointers()
        except Busy:  # another process works it off for long; what it does not find, the next one does
            return len(folder.pointers())
        if not left or len(left) >= len(before):
            return len(left)


def _by_transcript(pointers: list[tuple[Path, dict[str, Any]]]) -> Iterator[list[tuple[Path, dict[str, Any]]]]:
    groups: dict[tuple[str, str], list[tuple[Path, dict[str, Any]]]] = {}
    for path, pointer in pointers:
        groups.setdefault((str(pointer.get("transcript")), str(pointer.get("cwd"))), []).append((path, pointer))
    yield from groups.values()


def _take_in(folder: HookFolder, group: list[tuple[Path, dict[str, Any]]]) -> None:
    """Store what a transcript has gained, once for all its pointers, and finish the session if it has ended."""
    _, last = group[-1]
    known = AGENTS[last["agent"]]
    try:
        actor, settings = Actor(role=role_in(os.environ), name=last["agent"]), {"auto_upkeep": False}
        with open_memory(project=last["cwd"], actor=actor, settings=settings) as memory:
            if not memory.pauses.status() and Path(last["transcript"]).is_file():
                here = last["agent"] in MANY_IN_A_FILE
                done = [
                    result
                    for file in _with_sub_agents(Path(last["transcript"]))
                    for result in memory.import_transcripts(known.program, file, here=here)
                ]
                _note_unread(folder, last, done)
                kinds = {known.events.get(pointer.get("event")) for _, pointer in group}
                if "end" in kinds:
                    memory.session(last["session"]).finish()
                elif "compact" in kinds:
                    memory.session(last["session"]).flush()
    except (StorageError, SettingsError, OSError) as error:  # busy, full or broken: another time
        folder.note_failure(last, f"{type(error).__name__}: the transcript waits")
        _drop_old(group, folder)
        return
    except KeptError as error:  # no project there, or a transcript that cannot be one: it will not get better
        folder.note_failure(last, f"{type(error).__name__}: {error.message}")
    for path, _ in group:
        path.unlink(missing_ok=True)


def _with_sub_agents(transcript: Path) -> list[Path]:
    """The transcript and, where a host writes them beside it, those of the session's sub-agents."""
    return [transcript, *sorted(transcript.with_suffix("").glob("subagents/**/*.jsonl"))]


def _note_unread(folder: HookFolder, pointer: Mapping[str, Any], done: list[ImportedTranscript]) -> None:
    """Log what could not be read: the session goes on without it."""
    for one in done:
        name = Path(one.path).name[:100]
        if one.failed:
            folder.note_failure(pointer, f"Transcript {name}: {one.failed}")
        elif one.skipped and pointer["agent"] not in MANY_IN_A_FILE:  # a database is read whole each time
            folder.note_failure(pointer, f"Transcript {name}: {one.skipped} unreadable records were left out")


def _drop_old(group: list[tuple[Path, dict[str, Any]]], folder: HookFolder) -> None:
    oldest = (datetime.now(UTC) - timedelta(days=KEPT_DAYS)).timestamp() * 1e9
    too_many = len(folder.pointers()) > MOST_POINTERS
    for path, _ in group[:-1] if too_many else group:
        if too_many or int(path.name.partition("-")[0]) < oldest:
            path.unlink(missing_ok=True)


def _upkeep(agent: str, cwd: str) -> None:
    """Finish the sessions that nobody finished, and do the little upkeep of an opening: a hook has no time for it."""
    actor = Actor(role=role_in(os.environ), name=agent)
    with suppress(KeptError), open_memory(project=cwd, actor=actor) as memory:
        views.take_edits(memory.context)
        finish_silent(memory.context)


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
