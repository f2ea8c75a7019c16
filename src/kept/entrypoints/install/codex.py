"""Codex runs a hook only after a person has trusted it, by its hash. Codex itself says which hashes: we ask it.

`codex app-server` speaks JSON-RPC, one message a line; `hooks/list` names every hook with its key, its hash and whether
it is trusted. Writing the hash of a hook into `config.toml` is what its own screen does when somebody agrees.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from typing import Any

from msgspec import Struct

from kept.entrypoints.install.edits import MARK, Table

SECONDS = 15  # that Codex may take to answer


class CodexHook(Struct, frozen=True):
    """One of our hooks, as Codex sees it."""

    key: str
    hash: str
    is_trusted: bool


def our_hooks(program: str, cwd: Path, environ: Mapping[str, str]) -> list[CodexHook] | None:
    """The hooks of ours that Codex knows; None if it does not answer."""
    listed = _ask(program, cwd, environ)
    if listed is None:
        return None
    hooks = [hook for place in listed.get("data", ()) for hook in place.get("hooks", ())]
    return [
        CodexHook(str(hook["key"]), str(hook["currentHash"]), hook.get("trustStatus") == "trusted")
        for hook in hooks
        if MARK in str(hook.get("command")) and hook.get("key") and hook.get("currentHash")
    ]


def trusted(hooks: list[CodexHook]) -> list[Table]:
    """The tables that make these hooks run."""
    return [Table(("hooks", "state", hook.key), {"trusted_hash": hook.hash}) for hook in hooks if not hook.is_trusted]


def _ask(program: str, cwd: Path, environ: Mapping[str, str]) -> dict[str, Any] | None:
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "kept", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(cwd)]}},
    ]
    try:
        with subprocess.Popen(
            [program, "app-server"],
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        ) as server:
            timer = Timer(SECONDS, server.kill)
            timer.start()
            try:
                return _answer(server, requests)
            finally:
                timer.cancel()
                server.kill()
    except (OSError, ValueError):  # it is not there, has gone, or speaks another language
        return None


def _answer(server: "subprocess.Popen[str]", requests: list[dict[str, Any]]) -> dict[str, Any] | None:
    assert server.stdin is not None
    assert server.stdout is not None
    for request in requests:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == requests[-1]["id"]:
            result = answer.get("result")
            return result if isinstance(result, dict) else None
    return None
