"""Start a program, ask it over JSON-RPC (one message a line on standard input and output), and end it.

Codex and the MCP server both speak it; neither needs more than a few requests and the answer to the last one.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """The result of the last request (None: no answer), and the last line that the program wrote as an error.

    `is_late`: the program was ended because it took too long.
    """

    result: dict[str, Any] | None
    complaint: str
    is_late: bool = False


def ask(
    command: Sequence[str],
    requests: Sequence[Mapping[str, Any]],
    *,
    seconds: float,
    environ: Mapping[str, str],
    cwd: Path | None = None,
) -> Reply:
    """Send the requests and wait for the answer to the last. Raises OSError if the program cannot be started."""
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, cwd=cwd, env=dict(environ), stdin=pipe, stdout=pipe, stderr=errors) as program,
    ):
        late = Event()

        def stop() -> None:
            late.set()
            program.kill()

        timer = Timer(seconds, stop)
        timer.start()
        try:
            result = _last_result(program, requests)
        finally:
            timer.cancel()
            program.kill()
        errors.seek(0)
        return Reply(result, last_line(errors.read()), is_late=result is None and late.is_set())


def _last_result(program: "subprocess.Popen[bytes]", requests: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    assert program.stdin is not None
    assert program.stdout is not None
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n" for request in requests)
    with suppress(BrokenPipeError):  # it has ended; it may still have answered
        program.stdin.write(lines)
        program.stdin.flush()
    for line in program.stdout:
        try:
            answer = json.loads(line)
        except ValueError:
            continue  # a program may print a greeting
        if isinstance(answer, dict) and answer.get("id") == requests[-1]["id"]:
            result = answer.get("result")
            return result if isinstance(result, dict) else None
    return None


def last_line(raw: bytes) -> str:
    """Return the last line of an output, at most 200 characters of it."""
    lines = raw.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""
