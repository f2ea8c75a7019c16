"""docs/privacy.md: Kept talks to nobody."""

import socket
from pathlib import Path
from typing import Any

import pytest

from kept.entrypoints.cli import catalog
from kept.entrypoints.cli.tour import WALK
from tests.cli.shell import Shell

NEVER_ENDING = {"mcp", "serve"}  # they wait for somebody on this machine


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every socket that somebody tried to open."""
    opened: list[Any] = []

    def refuse(*arguments: Any, **named: Any) -> None:
        opened.append(arguments)
        raise AssertionError(f"a socket was opened: {arguments}")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    return opened


def test_no_command_opens_a_socket(shell: Shell, no_sockets: list[Any], tmp_path: Path) -> None:
    assert "steps" in shell("tour", "--all")
    shell("remember", "The port is 4000")
    typed = {step.command.split()[0] for step in WALK} | {"tour", "remember"}
    rest = {
        "export": ["export"],
        "show": ["show", "1"],
        "unpin": ["unpin", "1"],
        "edit": ["edit", "1", "--kind", "decision"],
        "projects": ["projects", "list"],
        "config": ["config", "list"],
        "secrets": ["secrets", "allow", "sk-0123456789abcdef0123", "--yes"],
        "protocol": ["protocol"],
        "install": ["install", "--dry-run"],
        "uninstall": ["uninstall", "--dry-run"],
        "store": ["store", "merge", str(tmp_path / "nowhere")],
    }
    for name in catalog.COMMANDS:
        if name not in typed | NEVER_ENDING:
            shell.type(*rest.get(name, [name, "--help"]))
    assert no_sockets == []


def test_the_pages_name_the_files_of_a_home(shell: Shell) -> None:
    shell("remember", "The port is 4000")
    page = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text()
    for file in shell.home.rglob("*"):
        if file.is_file() and not file.name.endswith((".lock", "-wal", "-shm", "-ack", ".reserve")):
            is_anchor = file.parent.name == "anchors" and "`hook/anchors`" in page
            known = is_anchor or file.name in page or "kept.db" in file.name or file.name == "project.json"
            assert known, f"docs/privacy.md does not name {file.name}"
