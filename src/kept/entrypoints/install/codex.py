"""Codex runs a hook only after a person has trusted it, by its hash. Codex itself says which hashes: we ask it.

`codex app-server` speaks JSON-RPC, one message a line; `hooks/list` names every hook with its key, its hash and whether
it is trusted. Writing the hash of a hook into `config.toml` is what its own screen does when somebody agrees.
Rule: a hook is ours to trust only if it is in the file that we wrote and its command is exactly a line that we write.
Codex also lists the hooks of the repository it runs in, and those may look like ours.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from kept.entrypoints.hook.agents import AGENTS as HOOK_FORMATS
from kept.entrypoints.install import rpc
from kept.entrypoints.install.agents import MachineFacts
from kept.entrypoints.install.edits import Table

SECONDS = 15  # that Codex may take to answer


class CodexHook(Struct, frozen=True):
    """One of our hooks, as Codex sees it."""

    key: str
    hash: str
    is_trusted: bool


def our_hooks(program: str, where: MachineFacts, files: Collection[Path]) -> list[CodexHook] | None:
    """Return our hooks in these files, as Codex lists them; None if it does not answer."""
    listed = _ask(program, where.project, where.environ)
    if listed is None:
        return None
    lines = {where.command("codex", event) for event in HOOK_FORMATS["codex"].events}
    places = {str(file) for file in files} | {os.path.realpath(file) for file in files}
    hooks = [hook for place in listed.get("data", ()) for hook in place.get("hooks", ())]
    return [
        CodexHook(str(hook["key"]), str(hook["currentHash"]), hook.get("trustStatus") == "trusted")
        for hook in hooks
        if hook.get("command") in lines and hook.get("currentHash") and _file_of(hook) in places
    ]


def _file_of(hook: Mapping[str, Any]) -> str:
    """The file that a hook is in. Its key is `FILE:EVENT:GROUP:NUMBER`."""
    return str(hook.get("key", "")).rsplit(":", 3)[0]


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
