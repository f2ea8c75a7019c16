"""The input of every agent at every event that Kept takes part in, with just the fields that are used."""

from typing import Any

PROMPT = "how do we deploy the billing service?"
FAILURE = "error: could not connect to database orders_test: connection refused"


def claude_like(event: str, **more: Any) -> dict[str, Any]:
    """The common fields of Claude Code, Codex, Gemini CLI and Qwen Code."""
    return {"session_id": "s-1", "transcript_path": "TRANSCRIPT", "cwd": "PROJECT", "hook_event_name": event, **more}


def copilot(**more: Any) -> dict[str, Any]:
    return {"sessionId": "s-1", "timestamp": 1794830697031, "cwd": "PROJECT", **more}


def openhands(event: str, **more: Any) -> dict[str, Any]:
    return {"event_type": event, "session_id": "s-1", "working_dir": "PROJECT", "message": None, **more}


def cursor(event: str, **more: Any) -> dict[str, Any]:
    return {"conversation_id": "s-1", "workspace_roots": ["PROJECT"], "hook_event_name": event, **more}


def opencode(**more: Any) -> dict[str, Any]:
    return {"sessionID": "s-1", "directory": "PROJECT", **more}


_CLAUDE = {
    "SessionStart": claude_like("SessionStart", source="startup"),
    "UserPromptSubmit": claude_like("UserPromptSubmit", prompt=PROMPT, permission_mode="default"),
    "Stop": claude_like("Stop", stop_hook_active=False, last_assistant_message="Done."),
    "PreCompact": claude_like("PreCompact", trigger="auto", custom_instructions=""),
    "PostCompact": claude_like("PostCompact", trigger="auto"),
    "SessionEnd": claude_like("SessionEnd", reason="other"),
}
_FAILURE = claude_like("PostToolUseFailure", tool_name="Bash", error=FAILURE, is_interrupt=False)

INPUTS: dict[str, dict[str, dict[str, Any]]] = {
    "claude-code": {**_CLAUDE, "PostToolUseFailure": _FAILURE},
    "codex": {**_CLAUDE, "UserPromptSubmit": claude_like("UserPromptSubmit", prompt=PROMPT, turn_id="t", model="m")},
    "gemini": {
        "SessionStart": claude_like("SessionStart", source="startup", timestamp="2026-11-16T12:04:40.472Z"),
        "BeforeAgent": claude_like("BeforeAgent", prompt=f"<hook_context>earlier</hook_context>\n\n{PROMPT}"),
        "AfterTool": claude_like("AfterTool", tool_name="run", tool_response={"error": {"message": FAILURE}}),
        "AfterAgent": claude_like("AfterAgent", prompt=PROMPT, prompt_response="Done."),
        "SessionEnd": claude_like("SessionEnd", reason="exit"),
    },
    "qwen": {**_CLAUDE, "PostToolUseFailure": _FAILURE},
    "copilot": {
        "sessionStart": copilot(source="new", initialPrompt=PROMPT),
        "userPromptSubmitted": copilot(prompt=PROMPT),
        "agentStop": copilot(transcriptPath="TRANSCRIPT", stopReason="end_turn"),
        "preCompact": copilot(transcriptPath="TRANSCRIPT", trigger="manual"),
        "sessionEnd": copilot(reason="complete"),
        # With a plugin that was made for Claude Code:
        "SessionStart": {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": "PROJECT", "source": "new"},
        "UserPromptSubmit": {"session_id": "s-1", "cwd": "PROJECT", "prompt": PROMPT},
        "Stop": {"hook_event_name": "Stop", "session_id": "s-1", "cwd": "PROJECT", "transcript_path": "TRANSCRIPT"},
    },
    "openhands": {
        "SessionStart": openhands("SessionStart"),
        "UserPromptSubmit": openhands("UserPromptSubmit", message=PROMPT),
        "Stop": openhands("Stop"),
        "SessionEnd": openhands("SessionEnd"),
    },
    "cursor": {
        "sessionStart": cursor("sessionStart"),
        "beforeSubmitPrompt": cursor("beforeSubmitPrompt", prompt=PROMPT),
        "stop": cursor("stop"),
        "preCompact": cursor("preCompact"),
    },
    "opencode": {
        "session.created": opencode(),
        "chat.message": opencode(prompt=PROMPT),
        "tool.execute.after": opencode(error=FAILURE),
        "experimental.session.compacting": opencode(),
        "session.idle": opencode(transcript_path="TRANSCRIPT"),
        "session.compacted": opencode(transcript_path="TRANSCRIPT"),
    },
}
