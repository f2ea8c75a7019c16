"""A client of `kept mcp` that writes lines of its own, which the SDK's client would not send."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
ANSWER_S = 30  # long enough on a loaded machine; without an answer a client waits for ever
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class RawClient:
    """Sends requests as bytes and reads the answers."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._last = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def send(self, method: str, params: Any) -> Any:
        """Send a request, with each lone surrogate as an escape, and return its answer."""
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._lines.get(timeout=ANSWER_S))
        assert answer["id"] == self._last
        return answer

    def call(self, tool: str, /, **arguments: Any) -> tuple[bool, str]:
        """Call a tool. Returns whether it failed, and its text."""
        answer = self.send("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]["isError"], answer["result"]["content"][0]["text"]

    def tools(self) -> dict[str, Any]:
        """The tools, each with its JSON schema."""
        return {tool["name"]: tool["inputSchema"] for tool in self.send("tools/list", {})["result"]["tools"]}


@contextmanager
def talking(folder: Path, *options: str) -> Iterator[RawClient]:
    """A client of `kept OPTIONS mcp --all-tools`, in the project `project` of a home in that folder."""
    (folder / "project").mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("KEPT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "kept", *options, "mcp", "--all-tools"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder / "project",
        env=own | {"KEPT_HOME": str(folder / "home"), "PYTHONPATH": str(SOURCE), "HOME": str(folder)},
    )
    try:
        client = RawClient(process)
        client.send("initialize", HELLO)
        yield client
        assert process.poll() is None, "The server has ended."
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
