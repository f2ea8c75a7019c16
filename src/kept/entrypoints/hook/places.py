"""Folders that a hook needs to know before it imports anything: the home of Kept, and the homes of agents."""

import os
import sys

LATE = "Not done within"  # how the failure of a hook begins that ran out of time
TOLD_LAST = "told the last briefing, of"  # in the failure of a hook that could not reach a server, before a date
MISNAMED = "hook/misnamed"  # in the home: a file for every agent or event that is not known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The folders where agents run jobs for themselves, such as digesting their own memories: a variable, a folder in the
# user's home, and the folder in it that holds the user's work all the same.
_AGENT_HOMES = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "worktrees"),
    "codex": ("CODEX_HOME", ".codex", "worktrees"),
    "gemini": ("", ".gemini", "worktrees"),
    "qwen": ("", ".qwen", "worktrees"),
    "copilot": ("COPILOT_HOME", ".copilot", "worktrees"),
}


def kept_home(environ: "Mapping[str, str]") -> str:
    """Return the home that `default_home` finds, without its imports; "" if unsure."""
    user = _user_home(environ)
    home = os.path.normpath(_named_home(environ, user).replace("//", "/"))
    is_sure = os.path.isabs(user) and os.path.isabs(home) and home not in ("/", os.path.normpath(user))  # noqa: PTH117
    return home if is_sure else ""


def _user_home(environ: "Mapping[str, str]") -> str:
    return environ.get("USERPROFILE" if sys.platform == "win32" else "HOME", "").rstrip("/")


def _named_home(environ: "Mapping[str, str]", user: str) -> str:
    """Return the home of Kept, in the folder of a user."""
    if named := environ.get("KEPT_HOME", ""):
        return f"{user}/{named[2:]}" if named.startswith("~/") else named
    if sys.platform == "win32":
        return f"{environ.get('LOCALAPPDATA') or f'{user}/AppData/Local'}/kept"
    if sys.platform == "darwin":
        return f"{user}/Library/Application Support/kept"
    data = environ.get("XDG_DATA_HOME", "")
    return f"{data if data.startswith('/') else f'{user}/.local/share'}/kept"


def is_agents_own(agent: str, cwd: str, environ: "Mapping[str, str]") -> bool:
    """Return True if an agent works in its own home: for itself, and not for the user."""
    if agent not in _AGENT_HOMES or not cwd:
        return False
    variable, folder, work = _AGENT_HOMES[agent]
    own = os.path.realpath(environ.get(variable) or f"{_user_home(environ)}/{folder}") + os.sep
    here = os.path.realpath(cwd) + os.sep
    return here.startswith(own) and not here.startswith(f"{own}{work}{os.sep}")
