"""Processes for the crash programs: forked from a clean server, so that a new one costs milliseconds.

The server has the modules loaded and no store open; whatever threads and connections the caller has stay with it.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any


def context() -> ForkServerContext:
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tests.crash.kills", "tests.crash.storm"])
    return made


def start(target: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """Run `target(pipe, *arguments)` in a process of its own: the process, and our end of the pipe."""
    ours, theirs = context().Pipe()
    process = context().Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours
