"""Agents as data: the events at which they run hooks, the names of their fields, and the form of their answers.

No answer fits all of them, so the agent's name is an argument of the program and never guessed. Checked against the
running programs; tests/hook has an input of each. Rule: plain tuples and dictionaries, no library.
"""

import json
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# An agent: kinds of its events (start, prompt, failure, stop, compact, end), the events whose answer reaches the model,
# the form of that answer, the style that it reads best, and the program whose transcripts `kept import` reads.
AgentFormat = namedtuple("AgentFormat", "events takes form style program")  # typing.NamedTuple would import typing

_CLAUDE_EVENTS = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUseFailure": "failure",
    "Stop": "stop",
    "PreCompact": "compact",
    "PostCompact": "compact",
    "SessionEnd": "end",
}
_COPILOT_EVENTS = {
    "sessionStart": "start",
    "userPromptSubmitted": "prompt",
    "postToolUseFailure": "failure",
    "agentStop": "stop",
    "preCompact": "compact",
    "sessionEnd": "end",
}

AGENTS = {
    "claude-code": AgentFormat(
        _CLAUDE_EVENTS, ("SessionStart", "UserPromptSubmit", "PostToolUseFailure"), "specific", "xml", "claude-code"
    ),
    # Codex reports no failing tools, and refuses an answer with any other key.
    "codex": AgentFormat(_CLAUDE_EVENTS, ("SessionStart", "UserPromptSubmit"), "specific", "text", "codex"),
    "gemini": AgentFormat(
        # PreCompress comes before every request to the model, so it is not used.
        {
            "SessionStart": "start",
            "BeforeAgent": "prompt",
            "AfterTool": "failure",
            "AfterAgent": "stop",
            "SessionEnd": "end",
        },
        ("SessionStart", "BeforeAgent", "AfterTool"),
        "specific",
        "markdown",
        "gemini",
    ),
    "qwen": AgentFormat(
        _CLAUDE_EVENTS, ("SessionStart", "UserPromptSubmit", "PostToolUseFailure"), "specific", "markdown", "qwen"
    ),
    # With a plugin made for Claude Code it uses Claude's names, but not its answers.
    "copilot": AgentFormat(
        _COPILOT_EVENTS | _CLAUDE_EVENTS,
        ("sessionStart", "userPromptSubmitted", "SessionStart", "UserPromptSubmit"),
        "top",
        "text",
        "copilot",
    ),
    "openhands": AgentFormat(
        {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "stop", "SessionEnd": "end"},
        ("UserPromptSubmit",),
        "top",
        "text",
        None,
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
        None,
    ),
    # Its plugin, which Kept installs, runs this program and puts the answer where OpenCode wants it.
    "opencode": AgentFormat(
        {
            "session.created": "start",
            "chat.message": "prompt",
            "tool.execute.after": "failure",
            "session.idle": "stop",
            "experimental.session.compacting": "start",
            "session.compacted": "compact",
            "session.deleted": "end",
        },
        ("session.created", "chat.message", "tool.execute.after", "experimental.session.compacting"),
        "top",
        "text",
        "opencode",
    ),
}

# These agents say whether they go on because of a hook, so they cannot be kept from stopping twice.
MAY_BE_NUDGED = ("claude-code", "codex", "gemini", "qwen", "copilot")

_NAMES = {
    "session": ("session_id", "sessionId", "sessionID", "conversation_id"),
    "cwd": ("cwd", "working_dir", "directory"),
    "transcript": ("transcript_path", "transcriptPath"),
    "prompt": ("prompt", "message"),
    "error": ("error", "tool_error", "toolError"),
}
_PATHS = ("cwd", "transcript")


def field(given: "Mapping[str, Any]", name: str) -> str:
    """Return a field of an event's input, under any name that an agent has for it; "" if there is none."""
    for own in _NAMES[name]:
        if value := _text_of(given.get(own)):
            return value if name in _PATHS else _without_halves(value)
    if name == "cwd":
        return _first_root(given.get("workspace_roots"))
    return _gemini_error(given.get("tool_response")) if name == "error" else ""


def _text_of(value: "Any") -> str:
    if isinstance(value, dict):  # {"message": …, "name": …} of an error
        value = value.get("message")
    return value if isinstance(value, str) else ""


def _without_halves(text: str) -> str:
    """Replace halves of surrogate pairs, which are not characters; in a path they stand for bytes outside of UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _first_root(roots: "Any") -> str:
    """Return the first folder of a workspace, as Cursor lists them."""
    return str(roots[0]) if isinstance(roots, list) and roots else ""


def _gemini_error(response: "Any") -> str:
    """Return the error in Gemini's report of a tool; "" if it has not failed."""
    if not isinstance(response, dict):
        return ""
    shown = response.get("llmContent")
    report = shown if isinstance(shown, str) and _has_failed(shown) else ""
    return _without_halves(_text_of(response.get("error"))) or report


def _has_failed(report: str) -> bool:
    """Return True if Gemini's report of a command ends with an exit code other than 0."""
    _, told, end = report.rpartition("\nExit Code: ")
    return bool(told) and end[:1] in tuple("123456789-")


def answer_of(agent: str, event: str, block: str) -> str:
    """Return the answer that makes this agent show the block to its model; "" if it would not, or for no block."""
    known = AGENTS[agent]
    if not block or event not in known.takes:
        return ""
    if known.form == "specific":
        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": block}})
    return json.dumps({"additional_context" if known.form == "snake" else "additionalContext": block})


def stop_answer_of(agent: str, wish: str) -> str:
    """Return the answer that keeps an agent from stopping, with the reason; "" for no wish."""
    if not wish:
        return ""
    return json.dumps({"decision": "deny" if agent == "gemini" else "block", "reason": wish})
