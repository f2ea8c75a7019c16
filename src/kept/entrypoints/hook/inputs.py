"""The session and the project that the input of an event names."""

import os

from kept.entrypoints.hook.agents import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def session_of(given: "Mapping[str, Any]") -> str:
    """Return the name of the session; "unknown" if neither the agent nor KEPT_SESSION names it."""
    return field(given, "session") or os.environ.get("KEPT_SESSION") or "unknown"


def project_of(agent: str, given: "Mapping[str, Any]") -> str:
    """Return the directory of the project that the event belongs to. KEPT_PROJECT overrides it when a memory is opened.

    `./` before a relative path says that it is a directory, also where it reads like a project's name or id.
    """
    claude = os.environ.get("CLAUDE_PROJECT_DIR") if agent == "claude-code" else None
    folder = claude or field(given, "cwd") or os.curdir
    return folder if os.path.isabs(folder) else f"./{folder}"  # noqa: PTH117 (pathlib is slow to import)
