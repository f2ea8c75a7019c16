"""The files that the hooks share, in the home.

    <home>/hook/spool/*.json    pointers to transcripts that wait
    <home>/hook/failures.jsonl  failures, for `kept doctor`
    <home>/hook/seen/AGENT      the agent's last event, and when
    <home>/hook/started/*       a mark for every background process that was started and is not done
    <home>/hook/asked/*         the sessions whose agent was asked to judge its findings (`stop`)
    <home>/hook/misnamed/*      calls of the program with an agent or an event that it does not know
    <home>/hook/last/*          the last text that a project in a database told, for when it cannot be reached
    <home>/hook/recent/*          files and tasks of the last tool calls of a session (`work`)

A pointer names agent, session, project and path of a transcript, and holds no word of it. `events` writes the marks,
and the background process the rest.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from kept.entrypoints.hook.agents import AGENTS
from kept.entrypoints.hook.places import LATE, MISNAMED, TOLD_LAST
from kept.entrypoints.hook.work import FOLDER as WORK
from kept.entrypoints.hook.work import KEPT_SECONDS as WORK_SECONDS
from kept.memory.told import LAST_DAYS, LAST_FOLDER
from kept.projects.files import make_private_directory, write_private_file

DIED = "The background process ended before it was done"  # how the failure of such a process begins
RUNS_SECONDS = 86_400  # a process id that is in use after this time is another process's
MOST_SECONDS = 600  # of one background process, so that none can hang for ever
WAIT_S = 60  # for another process: it may have looked into the spool before our pointer was there
KEPT_DAYS = 30  # as long as Claude Code keeps transcripts
RECENT_DAYS = 7  # failures older than that are history
LOG_BYTES = 256 * 1024
MOST_SAID = 300  # characters of a failure, for people


MOMENTS = {
    "start": "the start of a session",
    "prompt": "a prompt",
    "action": "a tool call",
    "result": "a tool call",
    "failure": "a failure",
    "subagent": "the start of a sub-agent",
}


class Misses(NamedTuple):
    """Hooks that ran out of time at one moment and told nothing: their number, and the last time."""

    moment: str
    times: int
    last: str


def listed_misses(misses: Sequence[Misses]) -> str:
    return ", ".join(f"{one.times} at {one.moment} (last {one.last})" for one in misses)


def told_misses(misses: Sequence[Misses], during: str) -> list[str]:
    """Return a line that says how often hooks ran out of time; none if they did not."""
    count = sum(one.times for one in misses)
    times = "once" if count == 1 else f"{count} times"
    return [f"Out of time {times} {during}, so an agent was told nothing: {listed_misses(misses)}."] if misses else []


def told_again(stand_ins: Sequence[str], during: str) -> list[str]:
    """Return a line that says how often an old briefing was told, because a server could not be reached."""
    times = "once" if len(stand_ins) == 1 else f"{len(stand_ins)} times"
    why = f"The server could not be reached {times} {during}, so an agent was told the last briefing"
    return [f"{why}, of {stand_ins[-1]}."] if stand_ins else []


class HookFailure(NamedTuple):
    """A hook call that failed: its time, agent and moment, and why."""

    at: datetime
    agent: str
    moment: str
    why: str

    def __str__(self) -> str:
        told = "" if TOLD_LAST in self.why or not self.why.startswith(LATE) else ", so nothing was told"
        return f"{self.agent}, {self.moment}: {self.why[:1].lower()}{self.why[1:]}{told}"


class HookFolder:
    """The files of the hooks in a home."""

    def __init__(self, home: Path) -> None:
        self.root = home / "hook"
        self.spool = self.root / "spool"
        self.seen = self.root / "seen"
        self.log = self.root / "failures.jsonl"
        self.asked = self.root / "asked"
        self.started = self.root / "started"
        self.misnamed = home / MISNAMED
        self.work = home / WORK
        self.last = home / LAST_FOLDER
        self.lock = self.root / "spool.lock"

    def prepare(self) -> None:
        for folder in (self.root, self.spool, self.seen, self.asked, self.started):
            make_private_directory(folder)

    def pointers(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the pointers that wait, oldest first, without files that are torn or not ours."""
        found = []
        for path in sorted(self.spool.glob("*.json")):
            with suppress(OSError, ValueError):
                pointer = json.loads(path.read_bytes())
                if isinstance(pointer, dict) and pointer.get("agent") in AGENTS:
                    found.append((path, pointer))
        return found

    def failures(self) -> list[dict[str, Any]]:
        """Return the logged failures, oldest first."""
        with suppress(OSError):
            lines = self.log.read_text("utf-8", "replace").splitlines()
            return [entry for line in lines if isinstance(entry := parsed(line), dict)]
        return []

    def failures_since(self, since: datetime) -> list[HookFailure]:
        """Return the failures since then, oldest first, in words for people."""
        found = []
        for entry in self.failures():
            with suppress(ValueError):
                at = datetime.fromisoformat(str(entry.get("at")))
                agent, event = str(entry.get("agent")), str(entry.get("event"))
                known = AGENTS.get(agent)
                moment = MOMENTS.get(known.events.get(event, "") if known else "", event)
                if at.tzinfo is not None and at >= since:
                    found.append(HookFailure(at, agent, moment, str(entry.get("failure"))[:MOST_SAID]))
        return found

    def misses(self, since: datetime, session: str | None = None) -> list[Misses]:
        """Return for each moment how often hooks ran out of time since then, in one session or in all of them."""
        found: dict[str, list[str]] = {}
        for entry in self.failures():
            known = AGENTS.get(str(entry.get("agent")))
            moment = MOMENTS.get(known.events.get(str(entry.get("event")), "") if known else "")
            why = str(entry.get("failure"))
            is_late = why.startswith(LATE) and TOLD_LAST not in why and _is_since(entry, since)
            if moment and is_late and session in (None, entry.get("session")):
                found.setdefault(moment, []).append(str(entry.get("at")))
        return [Misses(moment, len(ats), max(ats)) for moment, ats in found.items()]

    def stand_ins(self, since: datetime) -> list[str]:
        """Return the dates of the briefings that were told again since then, because a server was out of reach."""
        told = [str(entry.get("failure")) for entry in self.failures() if _is_since(entry, since)]
        return [why.partition(TOLD_LAST)[2].strip() for why in told if TOLD_LAST in why]

    def misnamed_calls(self) -> list[tuple[str, str, datetime]]:
        """Return the calls of the program with an agent or an event that it does not know, and when they were last."""
        found = []
        for path in sorted(self.misnamed.glob("*")):
            with suppress(OSError, ValueError):
                agent, event = path.read_text("utf-8", "replace").split("\n")[:2]
                found.append((agent, event, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        return found

    def last_events(self) -> dict[str, tuple[str, datetime]]:
        """Return for each agent its last event, and when it was."""
        found = {}
        for path in sorted(self.seen.glob("*")):
            with suppress(OSError):
                event = path.read_text("utf-8", "replace").strip()
                found[path.name] = (event, datetime.fromtimestamp(path.stat().st_mtime, UTC))
        return found

    def died(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the marks of background processes that ended before they were done, with agent, event and time."""
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
        """Move the marks of processes that ended before they were done to the log."""
        for path, about in self.died():
            path.unlink(missing_ok=True)
            self.note_failure(about, DIED)

    def add(self, pointer: Mapping[str, Any]) -> None:
        name = f"{time.time_ns():020d}-{os.getpid()}.json"
        write_private_file(self.spool / name, json.dumps(pointer).encode())

    def note_event(self, agent: str, event: str) -> None:
        write_private_file(self.seen / agent, event.encode())

    def was_asked(self, session: str) -> bool:
        """Return True if the agent of a session was asked to judge its findings."""
        return self._asked_file(session).exists()

    def note_asked(self, session: str) -> bool:
        """Note that the agent of a session is asked. Return False if it was asked before."""
        self.prepare()
        try:
            os.close(os.open(self._asked_file(session), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def _asked_file(self, session: str) -> Path:
        return self.asked / blake2b(session.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def forget_old(self) -> None:
        """Remove old marks: of requests to agents, of misnamed calls, and of the work of sessions."""
        for folder, seconds in (
            (self.asked, KEPT_DAYS * 86_400),
            (self.misnamed, KEPT_DAYS * 86_400),
            (self.work, WORK_SECONDS),
            (self.last, LAST_DAYS * 86_400),
        ):
            for path in folder.glob("*"):
                with suppress(OSError):
                    if path.stat().st_mtime < time.time() - seconds:
                        path.unlink()

    def note_failure(self, pointer: Mapping[str, Any], what: str) -> None:
        """Add a line to the log. If the log is long, drop its older half."""
        at = pointer.get("at") or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        entry = {"at": at, "agent": pointer.get("agent"), "event": pointer.get("event"), "failure": what[:500]}
        if session := pointer.get("session"):
            entry["session"] = session
        lines = self.log.read_bytes() if self.log.exists() else b""
        if len(lines) > LOG_BYTES:
            lines = lines[len(lines) // 2 :].partition(b"\n")[2]
        write_private_file(self.log, lines + json.dumps(entry).encode() + b"\n")


def _is_since(entry: Mapping[str, Any], since: datetime) -> bool:
    return str(entry.get("at")) >= f"{since:%Y-%m-%dT%H:%M:%SZ}"


def _is_running(number: int, begun_s: float) -> bool:
    """Return True if the background process may still run. Without a number it is only being started."""
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


def parsed(line: str) -> Any:
    """Read a line of JSON; None if it is not valid."""
    try:
        return json.loads(line)
    except ValueError:
        return None
