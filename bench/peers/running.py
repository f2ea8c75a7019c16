"""The process of a peer: started on a folder, given orders as lines of JSON."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.peers.environments import Peer, Unavailable, command


class Running:
    """The process of a peer, opened on a folder."""

    def __init__(self, peer: Peer, cache: Path, folder: Path) -> None:
        program, needed = command(peer, cache)
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [*program, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **needed},
        )
        self._pid = self._read().get("pid") or self._process.pid
        self.opened_ms = (time.perf_counter() - started) * 1000

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def do(self, what: str, *given: Any) -> dict[str, Any]:
        """Give an order; the answer, and what it took."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, "with": given}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable("it ended without a word") from None
        return self._read()

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Unavailable("it does not start, or ended in the middle")
        answer: dict[str, Any] = json.loads(line)
        return answer
