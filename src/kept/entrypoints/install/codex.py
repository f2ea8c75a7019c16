"""Trust our hooks in Codex, which runs a hook only after a person has trusted its hash. Codex lists the hashes.

`codex app-server` speaks JSON-RPC, one message a line; `hooks/list` names every hook with its key, its hash and whether
it is trusted. When a person agrees, its own screen writes the hash of a hook into `config.toml`, as we do.
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
    listed = _listed(program, where.project, where.environ)
    if listed is None:
        return None
    lines = {where.command("codex", event) for event in HOOK_FORMATS["codex"].events}
    places = {str(file) for file in files} | {os.path.realpath(file) for file in files}
    return [
        CodexHook(str(hook["key"]), str(hook["currentHash"]), hook.get("trustStatus") == "trusted")
        for hook in listed
        if hook.get("command") in lines and hook.get("currentHash") and _file_of(hook) in places
    ]


def _file_of(hook: Mapping[str, Any]) -> str:
    """Return the file that a hook is in. Its key is `FILE:EVENT:GROUP:NUMBER`."""
    return str(hook.get("key", "")).rsplit(":", 3)[0]


def trusted(hooks: list[CodexHook]) -> list[Table]:
    """Return the tables that make Codex run these hooks."""
    return [Table(("hooks", "state", hook.key), {"trusted_hash": hook.hash}) for hook in hooks if not hook.is_trusted]


def _listed(program: str, cwd: Path, environ: Mapping[str, str]) -> list[Mapping[str, Any]] | None:
    """Return all hooks that Codex would run in this directory; None if it does not answer."""
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "kept", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(cwd)]}},
    ]
    try:
        answer = rpc.ask([program, "app-server"], requests, seconds=SECONDS, environ=environ, cwd=cwd).result
    except OSError:
        return None
    return None if answer is None else [hook for place in answer.get("data", ()) for hook in place.get("hooks", ())]
