"""Codex runs a hook only after a person has trusted it, by its hash. Codex itself says which hashes: we ask it.

`codex app-server` speaks JSON-RPC, one message a line; `hooks/list` names every hook with its key, its hash and whether
it is trusted. Writing the hash of a hook into `config.toml` is what its own screen does when somebody agrees.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from kept.entrypoints.install import rpc
from kept.entrypoints.install.agents import MachineFacts
from kept.entrypoints.install.edits import Table
from kept.entrypoints.install.ours import is_ours

SECONDS = 15  # that Codex may take to answer


class CodexHook(Struct, frozen=True):
    """One of our hooks, as Codex sees it."""

    key: str
    hash: str
    is_trusted: bool


def our_hooks(program: str, where: MachineFacts) -> list[CodexHook] | None:
    """The hooks of ours that Codex knows; None if it does not answer."""
    listed = _ask(program, where.project, where.environ)
    if listed is None:
        return None
    hooks = [hook for place in listed.get("data", ()) for hook in place.get("hooks", ())]
    return [
        CodexHook(str(hook["key"]), str(hook["currentHash"]), hook.get("trustStatus") == "trusted")
        for hook in hooks
        if is_ours({"command": hook.get("command")}, where) and hook.get("key") and hook.get("currentHash")
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
        return rpc.ask([program, "app-server"], requests, seconds=SECONDS, environ=environ, cwd=cwd).result
    except OSError:
        return None
