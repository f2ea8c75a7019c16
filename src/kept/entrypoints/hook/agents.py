"""Agents as data: the events at which they run hooks, the names of their fields, and the form of their answers.

No answer fits all of them, so the agent's name is an argument of the program and never guessed. Checked against the
running programs; tests/hook has an input of each. Rule: plain tuples and dictionaries, no library.
"""

import os

from kept.entrypoints.hook.wire import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class AgentFormat:
    """An agent: its events, and the form of the answers to them.

    `events` gives the kind of each event: start, prompt, action (before a tool call), result (after it), failure,
    subagent, stop, compact, end. `takes` are the events with an answer that reaches the model, `form` the form of that
    answer, `style` the style that it reads best, `program` the program whose transcripts `kept import` reads.
    `tells_before`: a text that is given before a tool call reaches the model, with the result; other agents drop it,
    and are told after. `starts_again`: a compaction ends with a new start.
    """

    __slots__ = ("events", "form", "program", "starts_again", "style", "takes", "tells_before")

    def __init__(
        self,
        events: "Mapping[str, str]",
        takes: "tuple[str, ...]",
        form: str,
        style: str,
        program: "str | None" = None,
        *,
        tells_before: bool = False,
        starts_again: bool = False,
    ) -> None:
        self.events = events
        self.takes = takes
        self.form = form
        self.style = style
        self.program = program
        self.tells_before = tells_before
        self.starts_again = starts_again


_COMMON_EVENTS = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "action",
    "Stop": "stop",
    "PreCompact": "compact",
    "PostCompact": "compact",
    "SessionEnd": "end",
}

AGENTS = {
    "claude-code": AgentFormat(
        _COMMON_EVENTS | {"PostToolUseFailure": "failure", "SubagentStart": "subagent"},
        ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure", "SubagentStart"),
        "specific",
        "xml",
        "claude-code",
        tells_before=True,
        starts_again=True,
    ),
    # Codex reports a failing command as any other, and refuses an answer with an unknown key. It tells a sub-agent's
    # task as a prompt.
    "codex": AgentFormat(
        _COMMON_EVENTS | {"PostToolUse": "result"},
        ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
        "specific",
        "text",
        "codex",
        tells_before=True,
        starts_again=True,
    ),
    "gemini": AgentFormat(
        # PreCompress comes before every request to the model, so it is not used.
        {
            "SessionStart": "start",
            "BeforeAgent": "prompt",
            "BeforeTool": "action",
            "AfterTool": "result",
            "AfterAgent": "stop",
            "SessionEnd": "end",
        },
        ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool"),
        "specific",
        "markdown",
        "gemini",
    ),
    # It takes the answer to SubagentStart, and shows it to nobody.
    "qwen": AgentFormat(
        _COMMON_EVENTS | {"PostToolUse": "result", "PostToolUseFailure": "failure"},
        ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
        "specific",
        "markdown",
        "qwen",
    ),
    # With a plugin made for Claude Code it uses Claude's names, but not its answers.
    "copilot": AgentFormat(
        {
            "sessionStart": "start",
            "userPromptSubmitted": "prompt",
            "preToolUse": "action",
            "postToolUse": "result",
            "postToolUseFailure": "failure",
            "agentStop": "stop",
            "preCompact": "compact",
            "sessionEnd": "end",
        }
        | _COMMON_EVENTS
        | {"PostToolUse": "result", "PostToolUseFailure": "failure"},
        (
            *("sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse"),
            *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
        ),
        "top",
        "text",
        "copilot",
        tells_before=True,
    ),
    "openhands": AgentFormat(
        {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "stop", "SessionEnd": "end"},
        ("UserPromptSubmit",),
        "top",
        "text",
    ),
    "cursor": AgentFormat(
        {
            "sessionStart": "start",
            "beforeSubmitPrompt": "prompt",
            "stop": "stop",
            "preCompact": "compact",
            "sessionEnd": "end",
        },
        ("sessionStart",),
        "snake",
        "text",
    ),
    # Its plugin, which Kept installs, runs this program and puts the answer where OpenCode wants it. `session.child` is
    # the first message of a session that another session has started.
    "opencode": AgentFormat(
        {
            "chat.message": "prompt",
            "session.child": "subagent",
            "tool.execute.before": "action",
            "tool.execute.after": "result",
            "session.idle": "stop",
            "experimental.session.compacting": "start",
            "session.compacted": "compact",
            "session.deleted": "end",
        },
        (
            *("chat.message", "session.child", "tool.execute.before", "tool.execute.after"),
            "experimental.session.compacting",
        ),
        "top",
        "text",
        "opencode",
    ),
}

MAY_BE_ASKED = ("claude-code", "codex", "gemini", "qwen", "copilot")  # before they stop: others could not answer
SILENT_VARIABLE = "KEPT_HOOKS_SILENT"  # set for an agent that Kept runs itself
# Which variable says whether a person is there. No other agent says so to its hooks.
_ATTENDED = {"claude-code": "CLAUDE_CODE_SESSION_ATTENDED"}

_NAMES = {
    "session": ("session_id", "sessionId", "sessionID", "conversation_id"),
    "cwd": ("cwd", "working_dir", "directory"),
    "transcript": ("transcript_path", "transcriptPath"),
    "prompt": ("prompt", "message"),
    "error": ("error", "tool_error", "toolError"),
    "agent": ("agent_id", "agentId"),  # of a sub-agent
    "tool": ("tool_name", "toolName", "tool"),
}
_PATHS = ("cwd", "transcript")


def field(given: "Mapping[str, Any]", name: str) -> str:
    """Return a field of an event's input, under any name that an agent has for it; "" if there is none."""
    for own in _NAMES[name]:
        if value := text_of(given.get(own)):
            return value if name in _PATHS else without_halves(value)
    if name == "cwd":
        return _first_root(given.get("workspace_roots"))
    return ""


def text_of(value: "Any") -> str:
    if isinstance(value, dict):  # {"message": …, "name": …} of an error
        value = value.get("message")
    return value if isinstance(value, str) else ""


def without_halves(text: str) -> str:
    """Replace halves of surrogate pairs, which are not characters; in a path they stand for bytes outside of UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _first_root(roots: "Any") -> str:
    """Return the first folder of a workspace, as Cursor lists them."""
    return str(roots[0]) if isinstance(roots, list) and roots else ""


def session_of(given: "Mapping[str, Any]") -> str:
    """Return the name of the session; "unknown" if neither the agent nor KEPT_SESSION names it."""
    return field(given, "session") or os.environ.get("KEPT_SESSION") or "unknown"


def is_attended(agent: str) -> "bool | None":
    """Return whether a person is there; None if the agent does not say so."""
    return {"1": True, "0": False}.get(os.environ.get(_ATTENDED.get(agent, ""), ""))


def project_of(agent: str, given: "Mapping[str, Any]") -> str:
    """Return the directory of the project that the event belongs to. KEPT_PROJECT overrides it when a memory is opened.

    `./` before a relative path says that it is a directory, also where it reads like a project's name or id.
    """
    claude = os.environ.get("CLAUDE_PROJECT_DIR") if agent == "claude-code" else None
    folder = claude or field(given, "cwd") or os.curdir
    return folder if os.path.isabs(folder) else f"./{folder}"  # noqa: PTH117 (pathlib is slow to import)


def answer_of(agent: str, event: str, block: str) -> str:
    """Return the answer that makes this agent show the block to its model; "" if it would not, or for no block."""
    known = AGENTS[agent]
    if not block or event not in known.takes or (known.events[event] == "action" and not known.tells_before):
        return ""
    if known.form == "specific":
        return encoded({"hookSpecificOutput": {"hookEventName": event, "additionalContext": block}})
    return encoded({"additional_context" if known.form == "snake" else "additionalContext": block})


def refusal_of(agent: str, event: str, reason: str) -> str:
    """Return the answer that keeps an agent from a tool call; "" for no reason. None may be `ask`: Gemini CLI hangs."""
    if not reason:
        return ""
    if agent == "gemini":
        return encoded({"decision": "deny", "reason": reason})
    if agent == "opencode":
        return encoded({"refusal": reason})
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return encoded({"hookSpecificOutput": {"hookEventName": event, **decision}} if agent != "copilot" else decision)


def stop_answer_of(agent: str, wish: str) -> str:
    """Return the answer that keeps an agent from stopping, with the reason; "" for no wish."""
    if not wish:
        return ""
    if agent == "claude-code":  # which shows a `reason` as an error, and tells it twice
        return encoded({"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": wish}})
    return encoded({"decision": "deny" if agent == "gemini" else "block", "reason": wish})
