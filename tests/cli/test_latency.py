"""C15: the recalls of every door are counted, each of which may be a process of its own."""

import json
import subprocess
import sys

from tests.cli.shell import Shell
from tests.mcp.raw import SOURCE, talking

HOOK = "from kept.entrypoints.hook import main; main()"


def hook(shell: Shell, session: str) -> bytes:
    """Give a prompt to the hook of Claude Code, as a process."""
    event = {"session_id": session, "cwd": str(shell.folder / "project"), "prompt": "When does the importer retry?"}
    environ = {name: value for name, value in shell.environment.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-c", HOOK, "claude-code", "UserPromptSubmit"],
        input=json.dumps(event).encode(),
        env={"PYTHONPATH": str(SOURCE), "KEPT_HOOK_LIMIT_MS": "60000", **environ},
        cwd=shell.folder / "project",
        capture_output=True,
        check=True,
    )
    return done.stdout


def test_the_recalls_of_every_door_are_counted(shell: Shell) -> None:
    folder = shell.folder / "project"
    folder.mkdir(exist_ok=True)
    with talking(shell.folder) as client:
        assert client.call("memory_store", content="The importer retries three times when a file is locked")[0] is False
        for _ in range(3):
            assert "importer" in client.call("memory_query", query="importer retries")[1]
    assert b"retries three times" in hook(shell, "s1")
    assert b"retries three times" in hook(shell, "s2")
    for _ in range(2):
        shell("--project", str(folder), "recall", "importer", "retries")
    [space] = [one for one in shell.json("--project", str(folder), "status")["spaces"] if one["space"] != "global"]
    assert space["recalls"]["n"] == 7
