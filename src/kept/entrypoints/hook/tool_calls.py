"""Tool calls in the inputs of events: the files, commands and new texts of a call, and the error of a failed one.

Agents name their tools and fields differently; the names do not collide, so one table of names serves them all.
Rule: a call that only reads is none.
"""

import os

from kept.anchors import ToolCall
from kept.entrypoints.hook.agents import field, text_of, without_halves
from kept.entrypoints.hook.concerns import concerns as concerns
from kept.entrypoints.hook.wire import decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

EDITS = (
    *("Edit", "Write", "MultiEdit", "NotebookEdit"),  # Claude Code
    "apply_patch",  # Codex
    *("replace", "write_file"),  # Gemini CLI
    *("edit", "write", "create", "multiedit", "patch", "str_replace", "insert"),  # Qwen Code, Copilot CLI, OpenCode
)
SHELLS = ("Bash", "run_shell_command", "bash", "shell", "exec_command", "powershell")
DELEGATES = ("Agent", "Task", "spawn_agent", "task", "agent", "invoke_agent")  # these start a sub-agent
_PATH_FIELDS = ("file_path", "notebook_path", "filePath", "path")
_TEXT_FIELDS = ("content", "new_string", "new_source", "newString", "new_str", "file_text", "patchText")
_PATCH_FIELDS = ("command", "input")
_TASK_FIELDS = ("prompt", "message", "task")
_PATCH = "*** Begin Patch"
_PATCHED = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
# A command without a known exit code has failed if its output has one of these, in any case.
_ERROR_WORDS = ("error", "traceback", "exception", "failed", "fatal", "panic", "not found", "denied", "cannot")
_LOOKED_AT = 4_000  # characters, at each end of an output


def call_of(given: "Mapping[str, Any]") -> "ToolCall | None":
    """Return the tool call of an event, if it edits, writes or runs; None for any other."""
    tool, arguments = field(given, "tool"), _arguments(given)
    if tool in SHELLS:
        return _command_call(arguments)
    return _edit_call(arguments) if tool in EDITS else None


def _edit_call(arguments: "Mapping[str, Any]") -> "ToolCall | None":
    """Return the call of an edit: its files and new texts, or those of the patch that it is given."""
    files = [text_of(arguments.get(name)) for name in _PATH_FIELDS]
    new: list[str] = []
    for text in _texts_and_patches(arguments):
        is_patch = _PATCH in text
        files += _patched_files(text) if is_patch else ()
        new.append(_added_lines(text) if is_patch else text)
    found = tuple(dict.fromkeys(_real(file) for file in files if file))
    return ToolCall(found, (), "\n".join(new)) if found else None


def _texts_and_patches(arguments: "Mapping[str, Any]") -> "list[str]":
    """Return the new texts of a call and of its single edits, then the patches."""
    texts = [text for one in (arguments, *_edits(arguments)) for text in _texts(one)]
    patches = [text_of(arguments.get(name)) for name in _PATCH_FIELDS]
    return texts + [patch for patch in patches if _PATCH in patch]


def _real(file: str) -> str:
    """Return a whole path without links: the folder of the project is known by its real one."""
    return os.path.realpath(file) if file.startswith("/") else file


def task_of(given: "Mapping[str, Any]") -> str:
    """Return the task that a tool call gives to a sub-agent; "" for any other call."""
    if field(given, "tool") not in DELEGATES:
        return ""
    arguments = _arguments(given)
    return next((text for name in _TASK_FIELDS if (text := text_of(arguments.get(name)))), "")


def _arguments(given: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return the arguments of a tool call: an object, or one that is written as text."""
    for name in ("tool_input", "toolArgs", "args", "toolInput"):
        value = given.get(name)
        if isinstance(value, str):
            try:
                value = decoded(value)
            except ValueError:
                continue
        if isinstance(value, dict):
            return value
    return {}


def _command_call(arguments: "Mapping[str, Any]") -> "ToolCall | None":
    """Return the call of a shell: its command, or the patch that it applies."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):  # ["bash", "-lc", "…"]
        command = " ".join(text_of(word) for word in command[2:] if word) or " ".join(map(text_of, command))
    command = without_halves(text_of(command))
    if not command.strip():
        return None
    if _PATCH not in command:
        return ToolCall((), (command,))
    rest = command.partition("apply_patch")[0].strip()
    return ToolCall(tuple(_patched_files(command)), (rest,) if rest else (), _added_lines(command))


def _edits(arguments: "Mapping[str, Any]") -> "list[Mapping[str, Any]]":
    edits = arguments.get("edits")
    return [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []


def _texts(arguments: "Mapping[str, Any]") -> "list[str]":
    return [without_halves(text) for name in _TEXT_FIELDS if (text := text_of(arguments.get(name)))]


def _patched_files(patch: str) -> "Iterator[str]":
    for line in patch.splitlines():
        for head in _PATCHED:
            if line.startswith(head):
                yield line[len(head) :].strip()


def _added_lines(patch: str) -> str:
    return "\n".join(line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++"))


def failure_of(agent: str, kind: str, given: "Mapping[str, Any]") -> str:
    """Return the error that an event reports; "" if nothing has failed, or the user has interrupted it."""
    if given.get("is_interrupt") is True:
        return ""
    if kind == "failure" or agent == "opencode":  # whose plugin looks for the error
        return field(given, "error")
    response = given.get("tool_response", given.get("toolResult"))
    if agent == "gemini":
        return _gemini_error(response)
    if agent == "copilot":
        return _copilot_error(response)
    if agent == "codex" and field(given, "tool") in SHELLS and isinstance(response, str):
        return without_halves(response) if _reads_like_an_error(response) else ""
    return ""


def _gemini_error(response: "Any") -> str:
    """Return the error in Gemini's report of a tool; "" if it has not failed."""
    if not isinstance(response, dict):
        return ""
    shown = response.get("llmContent")
    report = shown if isinstance(shown, str) and _is_exit_code(shown.rpartition("\nExit Code: ")) else ""
    return without_halves(text_of(response.get("error"))) or without_halves(report)


def _copilot_error(result: "Any") -> str:
    """Return the output of a command that failed, in the result of Copilot's shell."""
    if not isinstance(result, dict):
        return ""
    shown = text_of(result.get("textResultForLlm"))
    has_failed = result.get("resultType") not in ("success", None)
    return without_halves(shown) if has_failed or _is_exit_code(shown.rpartition(" completed with exit code ")) else ""


def _is_exit_code(parts: "tuple[str, str, str]") -> bool:
    """Return True if a report tells an exit code other than 0."""
    _, told, end = parts
    return bool(told) and end[:1] in tuple("123456789-")


def _reads_like_an_error(output: str) -> bool:
    looked_at = (output[:_LOOKED_AT] + output[-_LOOKED_AT:]).lower()
    return any(word in looked_at for word in _ERROR_WORDS)
