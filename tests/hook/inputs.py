"""The input of every agent at every event that Kept takes part in, with just the fields that are used."""

from typing import Any

PROMPT = "how do we deploy the billing service?"
FILE = "PROJECT/src/billing/ship.py"
NEW_TEXT = "RETRIES = 3\n"
COMMAND = "make ship"
TASK = "Find out how we deploy the billing service, and report the steps."
PATCH = f"*** Begin Patch\n*** Update File: src/billing/ship.py\n@@\n-RETRIES = 2\n+{NEW_TEXT}*** End Patch\n"
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
_EDIT = {"file_path": FILE, "old_string": "RETRIES = 2", "new_string": NEW_TEXT}
_FAILURE = claude_like("PostToolUseFailure", tool_name="Bash", error=FAILURE, is_interrupt=False)

INPUTS: dict[str, dict[str, dict[str, Any]]] = {
    "claude-code": {
        **_CLAUDE,
        "PreToolUse": claude_like("PreToolUse", tool_name="Edit", tool_input=_EDIT, tool_use_id="t-1"),
        "PostToolUseFailure": _FAILURE,
        "SubagentStart": claude_like("SubagentStart", agent_id="a1", agent_type="general-purpose"),
    },
    "codex": {
        **_CLAUDE,
        "UserPromptSubmit": claude_like("UserPromptSubmit", prompt=PROMPT, turn_id="t", model="m"),
        "PreToolUse": claude_like("PreToolUse", tool_name="apply_patch", tool_input={"command": PATCH}),
        "PostToolUse": claude_like(
            "PostToolUse", tool_name="Bash", tool_input={"command": COMMAND}, tool_response=FAILURE
        ),
    },
    "gemini": {
        "SessionStart": claude_like("SessionStart", source="startup", timestamp="2026-11-16T12:04:40.472Z"),
        "BeforeAgent": claude_like("BeforeAgent", prompt=f"<hook_context>earlier</hook_context>\n\n{PROMPT}"),
        "BeforeTool": claude_like("BeforeTool", tool_name="replace", tool_input={**_EDIT, "instruction": "x"}),
        "AfterTool": claude_like(
            "AfterTool",
            tool_name="run_shell_command",
            tool_input={"command": "make check"},
            tool_response={"error": {"message": FAILURE}},
        ),
        "AfterAgent": claude_like("AfterAgent", prompt=PROMPT, prompt_response="Done."),
        "SessionEnd": claude_like("SessionEnd", reason="exit"),
    },
    "qwen": {
        **_CLAUDE,
        "PreToolUse": claude_like("PreToolUse", tool_name="edit", tool_input=_EDIT),
        "PostToolUse": claude_like(
            "PostToolUse",
            tool_name="edit",
            tool_input=_EDIT,
            tool_response={"llmContent": "The file has been updated."},
        ),
        "PostToolUseFailure": _FAILURE,
    },
    "copilot": {
        "sessionStart": copilot(source="new", initialPrompt=PROMPT),
        "userPromptSubmitted": copilot(prompt=PROMPT),
        "preToolUse": copilot(toolName="edit", toolArgs={"path": FILE, "old_str": "RETRIES = 2", "new_str": NEW_TEXT}),
        "postToolUse": copilot(
            toolName="bash",
            toolArgs={"command": COMMAND},
            toolResult={
                "resultType": "success",
                "textResultForLlm": f"{FAILURE}\n<shellId: 1 completed with exit code 2>",
            },
        ),
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
        "chat.message": opencode(prompt=PROMPT),
        "session.child": opencode(prompt=TASK),
        "tool.execute.before": opencode(
            tool="edit", args={"filePath": FILE, "oldString": "RETRIES = 2", "newString": NEW_TEXT}
        ),
        "tool.execute.after": opencode(tool="bash", args={"command": COMMAND}, error=FAILURE),
        "experimental.session.compacting": opencode(),
        "session.idle": opencode(transcript_path="TRANSCRIPT"),
        "session.compacted": opencode(transcript_path="TRANSCRIPT"),
    },
}
