"""The files that the hooks share, in the home.

    <home>/hook/spool/*.json    pointers to transcripts that wait
    <home>/hook/failures.jsonl  failures, for `kept doctor`
    <home>/hook/seen/AGENT      the agent's last event, and when
    <home>/hook/started/*       a mark for every background process that was started and is not done
    <home>/hook/nudged/*        the sessions whose agent was asked to store something (`nudge`)

A pointer names agent, session, project and path of a transcript, and holds no word of it. `events` writes the marks,
and the background process the rest.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kept.entrypoints.hook.agents import AGENTS
from kept.projects.files import make_private_directory, write_private_file

DIED = "The background process ended before it was done"  # how the failure of such a process begins
RUNS_SECONDS = 86_400  # a process id that is in use after this time is another process's
MOST_SECONDS = 600  # of one background process, so that none can hang for ever
WAIT_S = 60  # for another process: it may have looked into the spool before our pointer was there
KEPT_DAYS = 30  # as long as Claude Code keeps transcripts
LOG_BYTES = 256 * 1024


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

    def note_nudge(self, session: str) -> bool:
        """Note that the agent of a session is asked. Return False if it was asked before."""
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
        """Add a line to the log. If the log is long, drop its older half."""
        at = pointer.get("at") or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        entry = {"at": at, "agent": pointer.get("agent")}
        entry |= {"event": pointer.get("event"), "failure": what[:500]}
        lines = self.log.read_bytes() if self.log.exists() else b""
        if len(lines) > LOG_BYTES:
            lines = lines[len(lines) // 2 :].partition(b"\n")[2]
        write_private_file(self.log, lines + json.dumps(entry).encode() + b"\n")


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
