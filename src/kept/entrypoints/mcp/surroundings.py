"""Which project, session and agent a call belongs to.

MCP has no sessions: whatever a call belongs to stands in the server's environment, in the `_meta` of the request, or is
the working directory, depending on the client. Rule: the project is never taken from what a model wrote, or a text that
it read could make it search another project.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kept.memory.opening import typed
from kept.text import visible

PROJECT_VARIABLES = ("KEPT_PROJECT", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")
SESSION_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID")
SESSION_META = ("threadId", "sessionId", "agent-session-id")  # Codex: the thread is what its hooks call the session
PROJECT_META = "agent-working-dir"  # goose
# The names by which clients introduce themselves, where Kept's hooks know the same agent by another name.
AGENTS: Mapping[str, str] = {
    "codex-mcp-client": "codex",
    "gemini-cli-mcp-client": "gemini",
    "qwen-code-mcp-client": "qwen",
    "github-copilot-developer": "copilot",
}
MOST_CHARS = 100


class Surroundings(NamedTuple):
    """What a call belongs to. `project` None: that of the working directory."""

    project: str | None
    session: str | None
    agent: str


def surroundings_of(
    *, project: str | None, agent: str | None, client: str | None, meta: Mapping[str, Any], environ: Mapping[str, str]
) -> Surroundings:
    """What a call belongs to: the options of the server first, then its environment, then the request."""
    named = next((environ[name] for name in PROJECT_VARIABLES if environ.get(name)), None)
    named = project if project is not None else None if named is None else typed(named)
    where = named or _folder(meta.get(PROJECT_META))
    session = next((environ[name] for name in SESSION_VARIABLES if environ.get(name)), None)
    session = session or next((value for name in SESSION_META if isinstance(value := meta.get(name), str)), None)
    known = AGENTS.get(client or "", client or "agent")
    return Surroundings(project=where, session=session or None, agent=_name(agent or known))


def _folder(value: Any) -> str | None:
    return value if isinstance(value, str) and (path := Path(value)).is_absolute() and path.is_dir() else None


def _name(name: str) -> str:
    return visible(name[:MOST_CHARS], keep_newlines=False).strip() or "agent"
