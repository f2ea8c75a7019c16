"""Processes for the crash programs: plain forks, each with a pipe, of a program that has no thread and no store open.

The tests run those programs in processes of their own, because a test runner may have threads, and forking does not
go with threads.
"""

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Child:
    """A process that runs `target(pipe, *arguments)`, and our end of its pipe."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self.pipe, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _run(self.pipe, target, theirs, *arguments)
        theirs.close()
        self._exit_code: int | None = None

    def signal(self, number: signal.Signals) -> None:
        if self._exit_code is None:
            os.kill(self.pid, number)

    def stop(self) -> None:
        """SIGSTOP, and wait until all its threads have stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def has_ended(self) -> bool:
        if self._exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code is not None

    def wait(self) -> int:
        """Its exit code: minus nine when it was killed."""
        if self._exit_code is None:
            _, status = os.waitpid(self.pid, 0)
            self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code


def any_runs(children: list[Child]) -> bool:
    """Whether one of them has not ended yet."""
    return not all(child.has_ended() for child in children)


def _run(parents_end: Connection, target: Callable[..., None], *arguments: Any) -> None:
    try:
        parents_end.close()
        target(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def run_program(module: str, *arguments: str) -> str:
    """Run `python -m module` as a person would, and return what it printed. Raises AssertionError if it failed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{module} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout
