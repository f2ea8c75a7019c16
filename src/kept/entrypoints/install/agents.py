"""Agents as data: the signs that one is on this machine, and the entries that it needs in its files.

A table of facts about other programs: their places, the names of their events, the shapes of their entries. Every entry
of ours is called `kept` (`kept-memory` where another program has that name), holds absolute paths (agents start with a
bare PATH), and runs `kept mcp` or `kept-hook`.

Rule: this module only describes. `kept.entrypoints.install` reads and writes files.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from kept.entrypoints.hook.agents import AGENTS as HOOK_FORMATS
from kept.entrypoints.install.edits import (
    ConfigEdit,
    Item,
    Member,
    RequiredMember,
    Table,
    Trace,
    WholeFile,
    YamlBlock,
)
from kept.entrypoints.install.plugin import COMMANDS, OPENCODE, SKILL

Scope = Literal["user", "project"]
NAMES = ("kept", "kept-memory")  # the second where another program has the first
# Both programs are started in a project's directory: an entry such as `.` would let its files be imported as ours.
SAFE = {"PYTHONPATH": ""}


class MachineFacts(Struct, frozen=True, kw_only=True):
    """The surroundings of an installation. All facts about the machine are in here, so tests can set them."""

    user_home: Path
    project: Path
    plugin: Path  # our own folder of files that agents load
    environ: Mapping[str, str]
    platform: str  # as sys.platform
    kept: str  # absolute paths of the two programs
    hook: str
    variables: Mapping[str, str] = {}  # that both programs need: a home that is not the usual one
    with_tools: bool = True  # whether the MCP server can run
    version: str = "0"
    name: str = NAMES[0]  # of our entries

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that every program of ours is started with."""
        return {**SAFE, **self.variables}

    def config(self, name: str) -> Path:
        """Return the folder of an application's settings on this system."""
        if self.platform == "win32":
            return Path(self.environ.get("APPDATA") or self.user_home / "AppData" / "Roaming") / name
        if self.platform == "darwin":
            return self.user_home / "Library" / "Application Support" / name
        return self.xdg / name

    @property
    def xdg(self) -> Path:
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.user_home / ".config")

    def set_by(self, variable: str, default: str) -> Path:
        """Return the folder that a variable names, or a default below the user's home."""
        return Path(self.environ[variable]) if self.environ.get(variable) else self.user_home / default

    def command(self, agent: str, event: str) -> str:
        """Return the hook as one line for a shell."""
        words = [self.hook, agent, event]
        if self.platform == "win32":
            return " ".join(f'"{word}"' if " " in word else word for word in words)
        return shlex.join(["/usr/bin/env", *(f"{name}={value}" for name, value in self.environment.items()), *words])

    def server(self, agent: str, **more: Any) -> dict[str, Any]:
        """Return the MCP server in the shape that most agents share."""
        return {"command": self.kept, "args": ["mcp", "--agent", agent], "env": self.environment} | more


Files = dict[Path, list[ConfigEdit]]


class Agent(Struct, frozen=True, kw_only=True):
    """An agent: its files by scope, the signs that it is here, and the next step for a person."""

    title: str
    programs: tuple[str, ...]
    folder: Callable[[MachineFacts], Path]  # exists once the agent has been used
    files: Callable[[MachineFacts, Scope], Files]
    scopes: tuple[Scope, ...] = ("user", "project")
    next_step: str = "Start a new session."


# ---- hooks in the shape that most agents share ----


def _events(agent: str) -> tuple[str, ...]:
    """Return the events of an agent at which our hook runs, by the agent's own names."""
    names = tuple(HOOK_FORMATS[agent].events)
    return tuple(name for name in names if name[0].islower()) if agent == "copilot" else names


SECONDS = 10  # a hook takes 1 or 2 at most; the rest is for a limit that the user has raised
CALL_SECONDS = 5  # before and after a tool call, which waits for it
SESSION_END_SECONDS = 3

# The tools at which our hook runs: those that edit, write, run a command, or give a task to a sub-agent. Starting it at
# every file that is read would cost time and find nothing.
MATCHERS: Mapping[tuple[str, str], str] = {
    ("claude-code", "PreToolUse"): "Edit|Write|MultiEdit|NotebookEdit|Bash|Agent|Task",
    ("codex", "PreToolUse"): "^(apply_patch|Bash)$",
    ("codex", "PostToolUse"): "^Bash$",
    ("gemini", "BeforeTool"): "replace|write_file|run_shell_command",
    ("gemini", "AfterTool"): "replace|write_file|run_shell_command",
    ("qwen", "PreToolUse"): "^(edit|write_file|run_shell_command)$",
    ("qwen", "PostToolUse"): "^(edit|write_file|run_shell_command)$",
}


def _group(where: MachineFacts, agent: str, event: str, factor: int = 1) -> dict[str, Any]:
    hook = {"type": "command", "command": where.command(agent, event), "timeout": _seconds(agent, event) * factor}
    matcher = MATCHERS.get((agent, event))
    return {"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}


def _seconds(agent: str, event: str) -> int:
    """Return the time after which an agent may end our hook."""
    if event == "SessionEnd":
        return SESSION_END_SECONDS
    return CALL_SECONDS if HOOK_FORMATS[agent].events[event] in ("action", "result") else SECONDS


def _hooks(where: MachineFacts, agent: str, factor: int = 1) -> list[ConfigEdit]:
    return [Item(("hooks", event), _group(where, agent, event, factor)) for event in _events(agent)]


def _tools(where: MachineFacts, path: tuple[str, ...], entry: Mapping[str, Any]) -> list[ConfigEdit]:
    return [Member(path, dict(entry))] if where.with_tools else []


# ---- the agents ----


def _claude_code(where: MachineFacts, scope: Scope) -> Files:
    folder = where.set_by("CLAUDE_CONFIG_DIR", ".claude")
    settings = folder / "settings.json" if scope == "user" else where.project / ".claude" / "settings.local.json"
    market = {"source": {"source": "directory", "path": str(where.plugin)}}
    plugin = f"{where.name}@{where.name}"
    enabled: list[ConfigEdit] = [
        Member(("extraKnownMarketplaces", where.name), market),
        Member(("enabledPlugins", plugin), True, has_command=False),
    ]
    files: Files = {where.plugin / path: [WholeFile(content)] for path, content in plugin_files(where).items()}
    files[settings] = enabled
    files[folder / "plugins" / "known_marketplaces.json"] = [Trace((where.name,))]
    files[folder / "plugins" / "installed_plugins.json"] = [Trace(("plugins", plugin), has_command=False)]
    return files


def plugin_files(where: MachineFacts) -> dict[str, str]:
    """Return the files of the plugin for Claude Code: hooks, tools, slash commands, a skill, and a marketplace."""
    description = "Long-term memory for this project, shared by all agents on this machine."
    owner = {"name": "Kept"}
    about = {"name": where.name, "version": where.version, "description": description, "author": owner}
    market = {
        "name": where.name,
        "description": description,
        "owner": owner,
        "plugins": [{"name": where.name, "source": "./", "description": description}],
    }
    hooks = {event: [_group(where, "claude-code", event)] for event in _events("claude-code")}
    files: dict[str, Any] = {
        ".claude-plugin/plugin.json": about,
        ".claude-plugin/marketplace.json": market,
        "hooks/hooks.json": {"hooks": hooks},
    }
    if where.with_tools:
        files[".mcp.json"] = {"mcpServers": {where.name: where.server("claude-code", alwaysLoad=True)}}
    written = {path: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for path, content in files.items()}
    written |= {
        f"commands/{name}.md": text.replace("{kept}", shlex.quote(where.kept)) for name, text in COMMANDS.items()
    }
    return written | {"skills/kept-memory/SKILL.md": SKILL}


def _codex(where: MachineFacts, scope: Scope) -> Files:
    folder = where.set_by("CODEX_HOME", ".codex") if scope == "user" else where.project / ".codex"
    server = where.server("codex", default_tools_approval_mode="approve")
    tools: list[ConfigEdit] = [Table(("mcp_servers", where.name), server)] if where.with_tools else []
    return {folder / "config.toml": tools, folder / "hooks.json": _hooks(where, "codex")}


def _gemini(where: MachineFacts, scope: Scope) -> Files:
    root = where.user_home if scope == "user" else where.project
    tools = _tools(where, ("mcpServers", where.name), where.server("gemini", trust=True))
    return {root / ".gemini" / "settings.json": [*tools, *_hooks(where, "gemini", 1000)]}


def _qwen(where: MachineFacts, scope: Scope) -> Files:
    root = where.user_home if scope == "user" else where.project
    tools = _tools(where, ("mcpServers", where.name), where.server("qwen", trust=True))
    return {root / ".qwen" / "settings.json": [*tools, *_hooks(where, "qwen", 1000)]}


def _copilot(where: MachineFacts, scope: Scope) -> Files:
    folder = where.set_by("COPILOT_HOME", ".copilot")
    hooks = {
        event: [{"type": "command", "bash": where.command("copilot", event), "timeoutSec": _seconds("copilot", event)}]
        for event in _events("copilot")
    }
    own = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
    tools = _tools(where, ("mcpServers", where.name), {"type": "local", "tools": ["*"], **where.server("copilot")})
    return {folder / "hooks" / f"{where.name}.json": [WholeFile(own)], folder / "mcp-config.json": tools}


def _opencode(where: MachineFacts, scope: Scope) -> Files:
    folder = where.xdg / "opencode" if scope == "user" else where.project
    plugins = folder / "plugins" if scope == "user" else folder / ".opencode" / "plugins"
    commented = folder / "opencode.jsonc"
    server = {"type": "local", "command": [where.kept, "mcp", "--agent", "opencode"], "enabled": True}
    server["environment"] = where.environment
    program = json.dumps(where.hook)
    variables = json.dumps(where.environment)
    return {
        commented if commented.exists() else folder / "opencode.json": _tools(where, ("mcp", where.name), server),
        plugins / f"{where.name}.js": [
            WholeFile(OPENCODE.replace('"{hook}"', program).replace('"{variables}"', variables))
        ],
    }


def _cursor(where: MachineFacts, scope: Scope) -> Files:
    root = (where.user_home if scope == "user" else where.project) / ".cursor"
    hooks: list[ConfigEdit] = [
        Item(("hooks", event), {"command": where.command("cursor", event)}) for event in _events("cursor")
    ]
    return {
        root / "mcp.json": _tools(where, ("mcpServers", where.name), where.server("cursor")),
        root / "hooks.json": [*hooks, RequiredMember(("version",), 1)],
    }


def _vscode(where: MachineFacts, scope: Scope) -> Files:
    file = where.config("Code") / "User" / "mcp.json" if scope == "user" else where.project / ".vscode" / "mcp.json"
    return {file: _tools(where, ("servers", where.name), {"type": "stdio", **where.server("vscode")})}


def _claude_desktop(where: MachineFacts, scope: Scope) -> Files:
    file = where.config("Claude") / "claude_desktop_config.json"
    return {file: _tools(where, ("mcpServers", where.name), where.server("claude-desktop"))}


def _goose(where: MachineFacts, scope: Scope) -> Files:
    lines = (
        f"{where.name}:",
        "  enabled: true",
        "  type: stdio",
        f"  name: {where.name}",
        f"  cmd: {json.dumps(where.kept)}",
        "  args: [mcp, --agent, goose]",
        f"  envs: {json.dumps(where.environment)}",
        "  timeout: 60",
    )
    tools: list[ConfigEdit] = [YamlBlock("extensions", where.name, lines)] if where.with_tools else []
    return {_goose_config(where) / "config.yaml": tools}


def _goose_config(where: MachineFacts) -> Path:
    if where.platform == "win32":
        return where.config("Block") / "goose" / "config"
    return where.xdg / "goose"


def _openhands(where: MachineFacts, scope: Scope) -> Files:
    folder = where.user_home / ".openhands"
    return {
        folder / "mcp.json": _tools(where, ("mcpServers", where.name), where.server("openhands")),
        folder / "hooks.json": _hooks(where, "openhands"),
    }


def _continue(where: MachineFacts, scope: Scope) -> Files:
    lines = (
        f"- name: {where.name}",
        f"  command: {json.dumps(where.kept)}",
        "  args: [mcp, --agent, continue]",
        f"  env: {json.dumps(where.environment)}",
    )
    head = ("name: Local", "version: 1.0.0", "schema: v1")
    tools: list[ConfigEdit] = [YamlBlock("mcpServers", where.name, lines, head)] if where.with_tools else []
    return {where.user_home / ".continue" / "config.yaml": tools}


AGENTS: Mapping[str, Agent] = {
    "claude-code": Agent(
        title="Claude Code",
        programs=("claude",),
        folder=lambda where: where.set_by("CLAUDE_CONFIG_DIR", ".claude"),
        files=_claude_code,
    ),
    "codex": Agent(
        title="Codex",
        programs=("codex",),
        folder=lambda where: where.set_by("CODEX_HOME", ".codex"),
        files=_codex,
        next_step="Codex runs hooks only once you trust them: start `codex`, type /hooks and trust those of kept-hook.",
    ),
    "gemini": Agent(
        title="Gemini CLI",
        programs=("gemini",),
        folder=lambda where: where.user_home / ".gemini",
        files=_gemini,
        next_step="Start a new session in a folder that you trust; Gemini CLI ignores hooks and tools in others.",
    ),
    "qwen": Agent(
        title="Qwen Code",
        programs=("qwen",),
        folder=lambda where: where.user_home / ".qwen",
        files=_qwen,
    ),
    "copilot": Agent(
        title="Copilot CLI",
        programs=("copilot",),
        folder=lambda where: where.set_by("COPILOT_HOME", ".copilot"),
        files=_copilot,
        scopes=("user",),
    ),
    "opencode": Agent(
        title="OpenCode",
        programs=("opencode",),
        folder=lambda where: where.xdg / "opencode",
        files=_opencode,
    ),
    "cursor": Agent(
        title="Cursor",
        programs=("cursor", "cursor-agent"),
        folder=lambda where: where.user_home / ".cursor",
        files=_cursor,
        next_step="Restart Cursor.",
    ),
    "vscode": Agent(
        title="VS Code",
        programs=("code",),
        folder=lambda where: where.config("Code"),
        files=_vscode,
        next_step="Open the chat in agent mode and start the server of Kept when VS Code asks.",
    ),
    "claude-desktop": Agent(
        title="Claude Desktop",
        programs=(),
        folder=lambda where: where.config("Claude"),
        files=_claude_desktop,
        scopes=("user",),
        next_step="Quit Claude Desktop completely and start it again.",
    ),
    "goose": Agent(
        title="goose",
        programs=("goose",),
        folder=_goose_config,
        files=_goose,
        scopes=("user",),
    ),
    "openhands": Agent(
        title="OpenHands",
        programs=("openhands",),
        folder=lambda where: where.user_home / ".openhands",
        files=_openhands,
        scopes=("user",),
    ),
    "continue": Agent(
        title="Continue",
        programs=("cn",),
        folder=lambda where: where.user_home / ".continue",
        files=_continue,
        scopes=("user",),
    ),
}
