"""The Inspector of the MCP project, a client that we did not write, lists the tools and understands their errors."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents import programs

SOURCE = Path(__file__).parents[2] / "src"
SIX = ["memory_store", "memory_query", "memory_reinforce", "memory_demote", "memory_update", "memory_briefing"]
pytestmark = pytest.mark.skipif(
    "inspector" not in os.environ.get("KEPT_AGENTS", "").split(","), reason="set KEPT_AGENTS, or run make test-agents"
)


def inspect(folder: Path, *options: str) -> dict[str, Any]:
    """Run the Inspector against `kept mcp` in a project of its own home; what it printed."""
    (folder / "project").mkdir(exist_ok=True)
    server = [sys.executable, "-m", "kept", "mcp"]
    path = os.pathsep.join([str(programs.node()), "/usr/bin", "/bin"])
    variables = {"PATH": path, "HOME": str(folder), "PYTHONPATH": str(SOURCE)}
    command = [str(programs.program("inspector")), "--cli", *server, "-e", f"PYTHONPATH={SOURCE}", *options]
    done = subprocess.run(
        command, cwd=folder / "project", env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def call(folder: Path, tool: str, *arguments: str) -> tuple[str, bool]:
    """The text of a result, and whether it is an error."""
    given = [word for one in arguments for word in ("--tool-arg", one)]
    found = inspect(folder, "--method", "tools/call", "--tool-name", tool, *given)
    [part] = found["content"]
    return part["text"], found.get("isError", False)


def test_the_inspector_lists_exactly_six_tools(tmp_path: Path) -> None:
    tools = inspect(tmp_path, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == SIX
    assert all(tool["annotations"] for tool in tools)


def test_the_inspector_stores_and_finds_and_reads_what_is_wrong_with_its_arguments(tmp_path: Path) -> None:
    told, is_error = call(tmp_path, "memory_store", "content=The mail gateway listens on port 2525")
    assert not is_error, told
    told, is_error = call(tmp_path, "memory_query", "query=mail gateway port")
    assert "2525" in told
    assert "[id:1]" in told
    for tool, arguments, expected in [
        ("memory_store", [], "content"),
        ("memory_query", ["query=mail", "limit=-1"], "limit"),
        ("memory_reinforce", ["id=99"], "99"),
    ]:
        told, is_error = call(tmp_path, tool, *arguments)
        assert is_error, told
        assert expected in told
        assert "Traceback" not in told
