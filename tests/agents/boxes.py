"""A box for one run of an agent program: a fresh home, a fresh project, and the agent's own settings without Kept.

Each agent is one function that writes the settings it needs to talk to the scripted model, and says how it is called.
`kept install` then does its work in that home, as a person would run it. Nothing of the real user's home is read.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agents import programs
from tests.agents.scripted_model import Json, ScriptedModel

TURN_SECONDS = 120
PASTE_SECONDS = 2.0
SILENT_SECONDS = 5.0
TAKE_IN_SECONDS = 30  # that a detached process may need on a busy machine
BIN = Path(sys.executable).parent


@dataclass
class Called:
    """How a program is called: the command line of a new and of a resumed session."""

    first: Callable[[str], list[str]]
    again: Callable[[str], list[str]]
    env: dict[str, str] = field(default_factory=dict)
    prompt_on_stdin: bool = False


@dataclass
class Box:
    """The surroundings of a test. Several agents may work in one box: they share the home and the project."""

    root: Path
    model: ScriptedModel

    def __post_init__(self) -> None:
        self.home, self.project = self.root / "home", self.root / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)

    def write(self, path: str, content: Any) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))

    def environ(self, extra: dict[str, str]) -> dict[str, str]:
        env = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(
                [str(self.root / "bin"), str(programs.node()), "/usr/local/bin", "/usr/bin", "/bin"]
            ),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "KEPT_HOOK_LIMIT_MS": "5000",  # machines that run tests are slow at times; tests/hook has the real limit
        }
        if "PYTHONPATH" in os.environ:
            env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        return env | extra

    def kept(self, *arguments: str) -> str:
        """Run `kept` as the person of this box, in the project."""
        done = subprocess.run(
            [str(BIN / "kept"), *arguments],
            cwd=self.project,
            env=self.environ({}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def prepare(self, name: str) -> "Agent":
        """The agent, set up for the scripted model and with its program on the PATH; Kept is not in it yet."""
        (self.root / "bin").mkdir(exist_ok=True)
        path = programs.program(name)
        assert path is not None, f"{name} is not installed: python -m tests.agents.programs {name}"
        (self.root / "bin" / name).symlink_to(path)
        return Agent(self, name, CALLS[name](self, str(path)))

    def install(self, name: str) -> "Agent":
        """The agent with Kept put into it."""
        agent = self.prepare(name)
        self.kept("install", NAMES[name], "--yes")
        return agent

    def wait_for(self, said: Callable[[], bool]) -> bool:
        """Whether it becomes true while the detached processes work."""
        end = time.monotonic() + TAKE_IN_SECONDS
        while time.monotonic() < end:
            if said():
                return True
            time.sleep(0.25)
        return False

    def listed(self) -> str:
        """Everything that Kept holds of this project, as JSON."""
        return self.kept("--json", "list", "--limit", "200")


@dataclass
class Agent:
    """An agent in its box."""

    box: Box
    name: str
    called: Called

    def turn(self, prompt: str, *steps: Json, resume: bool = False, say: str = "") -> list[Json]:
        """One turn in a process of its own; the requests that reached the model."""
        script = [*steps, {"say": f"SAID-so. {say}".strip()}]
        text = f"{prompt}\n\n{self.box.model.mark(script)}"
        return self.run((self.called.again if resume else self.called.first)(text), text)

    def compact(self) -> None:
        """Have the program compact its context, by a command or by a turn after which it has to."""
        if self.name in ("claude", "copilot"):
            self.run(self.called.again("/compact"), said="")
        elif self.name == "qwen":  # which refuses to, unless that makes it shorter
            self.heavy_turn("Read this log. " + "A line that nobody reads. " * 1_500, tokens=50_000)
            self.run(self.called.again("/compress"), said="")
        else:
            self.heavy_turn("Go on.", tokens=59_000)

    def heavy_turn(self, prompt: str, *, tokens: int) -> None:
        """A turn of a resumed session whose answer says that the context is that large."""
        text = f"{prompt}\n\n{self.box.model.mark([{'say': 'SAID-so.', 'usage': tokens}])}"
        self.run(self.called.again(text), text)

    def stored_roles(self) -> list[str]:
        """The roles of the messages that Kept has of this project, in order."""
        files = sorted((self.box.home / ".local/share/kept/projects").glob("*/sessions/*.jsonl"))
        return [json.loads(line)["role"] for file in files for line in file.read_text().splitlines()]

    def run(self, command: list[str], text: str = "", said: str = "SAID-so") -> list[Json]:
        """Run the program once; the requests that reached the model."""
        before = len(self.box.model.requests)
        done = subprocess.run(
            command,
            cwd=self.box.project,
            env=self.box.environ(self.called.env),
            input=text if self.called.prompt_on_stdin else "",
            capture_output=True,
            text=True,
            timeout=TURN_SECONDS,
            check=False,
        )
        assert said in done.stdout, f"{self.name}: exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
        return self.box.model.turns(before)


class Screen:
    """The screen of an agent program that a person uses, in a terminal of its own (tmux)."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self._box = agent, agent.box
        self._name = f"kept-{os.getpid()}-{time.monotonic_ns()}"

    def __enter__(self) -> "Screen":
        if self._agent.name == "claude":  # else it asks about its theme, the key and the folder
            file = self._box.home / ".claude.json"
            known = json.loads(file.read_text()) if file.exists() else {}
            known |= {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["dummy"]}}
            trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
            self._box.write(".claude.json", known | {"projects": {str(self._box.project): trusted}})
        if self._agent.name == "codex":
            config = self._box.home / ".codex" / "config.toml"
            trusts = f'\n[projects."{self._box.project}"]\ntrust_level = "trusted"\n'
            if str(self._box.project) not in (known := config.read_text()):  # as after a run without a screen
                config.write_text(known + trusts)
        environ = self._box.environ(self._agent.called.env) | {"TERM": "xterm-256color"}
        program = [str(self._box.root / "bin" / self._agent.name), *SCREENS[self._agent.name]]
        line = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environ.items()), *program])
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50", "-c", str(self._box.project), line)
        self.wait_for(READY[self._agent.name])
        return self

    def __exit__(self, *failure: object) -> None:
        self._tmux("kill-server")

    def say(self, prompt: str, *steps: Json, until: Callable[[list[Json]], bool] = bool) -> list[Json]:
        """Type a prompt; the requests that reached the model until that is true and nothing came for a while."""
        before = len(self._box.model.requests)
        self._tmux("send-keys", "-l", f"{prompt} {self._box.model.mark([*steps, {'say': 'SAID-so.'}])}")
        while len(self._box.model.requests) == before:
            time.sleep(PASTE_SECONDS)  # text that comes together with the key is taken for pasted lines
            self._tmux("send-keys", "Enter")
            time.sleep(PASTE_SECONDS)
        end = time.monotonic() + TURN_SECONDS
        while time.monotonic() < end and not until(self._box.model.turns(before)):
            time.sleep(0.5)
        seen = -1
        while seen != len(self._box.model.requests):
            seen = len(self._box.model.requests)
            time.sleep(SILENT_SECONDS)
        return self._box.model.turns(before)

    def wait_for(self, shown: str) -> None:
        end = time.monotonic() + TURN_SECONDS
        while not re.search(shown, self.shown):
            assert time.monotonic() < end, self.shown
            time.sleep(0.5)
        time.sleep(PASTE_SECONDS)

    @property
    def shown(self) -> str:
        return self._tmux("capture-pane", "-p")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-L", self._name, *arguments], capture_output=True, text=True, check=False)
        return done.stdout


def claude(box: Box, path: str) -> Called:
    options = ["--allowedTools", "mcp__plugin_kept_kept,Bash,Edit,Write"]
    return Called(
        first=lambda prompt: [path, "-p", prompt, *options],
        again=lambda prompt: [path, "-c", "-p", prompt, *options],
        env={
            "ANTHROPIC_BASE_URL": box.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            # A server that starts slowly on a busy machine is waited for.
            "MCP_TIMEOUT": "60000",
            "MCP_CONNECTION_NONBLOCKING": "false",
        },
    )


def codex(box: Box, path: str) -> Called:
    provider = f'name = "fake"\nbase_url = "{box.model.url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
    own = '# mine\nmodel = "fake"\nmodel_provider = "fake"\nmodel_auto_compact_token_limit = 5000\n'
    settings = f"{own}\n[model_providers.fake]\n{provider}"
    box.write(".codex/config.toml", settings)
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return Called(
        first=lambda prompt: [path, "exec", *options, prompt],
        again=lambda prompt: [path, "exec", "resume", "--last", *options, prompt],
        env={"FAKE_KEY": "dummy"},
    )


def gemini(box: Box, path: str) -> Called:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    box.write(".gemini/settings.json", settings)
    return Called(
        first=lambda prompt: [path, "--skip-trust", "--approval-mode", "yolo", "-p", prompt],
        again=lambda prompt: [path, "--skip-trust", "--approval-mode", "yolo", "-r", "latest", "-p", prompt],
        env={"GOOGLE_GEMINI_BASE_URL": box.model.url, "GEMINI_API_KEY": "dummy"},
    )


def qwen(box: Box, path: str) -> Called:
    settings = {"security": {"auth": {"selectedType": "openai"}}, "general": {"enableAutoUpdate": False}}
    box.write(".qwen/settings.json", settings)
    return Called(
        first=lambda prompt: [path, "--approval-mode", "yolo", "-p", prompt],
        again=lambda prompt: [path, "--approval-mode", "yolo", "-c", "-p", prompt],
        env={"OPENAI_BASE_URL": f"{box.model.url}/v1", "OPENAI_API_KEY": "dummy", "OPENAI_MODEL": "fake"},
    )


def copilot(box: Box, path: str) -> Called:
    return Called(
        first=lambda prompt: [path, "--allow-all-tools", "-p", prompt],
        again=lambda prompt: [path, "--allow-all-tools", "--continue", "-p", prompt],
        env={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{box.model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "gpt-4.1",
        },
    )


def opencode(box: Box, path: str) -> Called:
    fake: Json = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{box.model.url}/v1", "apiKey": "dummy"}}
    fake["models"] = {"fake": {"limit": {"context": 60_000, "output": 2_000}}}
    settings = {"autoupdate": False, "model": "fake/fake", "small_model": "fake/fake", "provider": {"fake": fake}}
    box.write(".config/opencode/opencode.json", settings)
    library = programs.folder() / "opencode-plugin"
    shutil.copytree(library / "node_modules", box.home / ".config/opencode/node_modules", symlinks=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(library / name, box.home / ".config/opencode" / name)
    return Called(
        first=lambda _: [path, "run"],  # an argument with spaces would arrive in quotes
        again=lambda _: [path, "run", "-c"],
        env={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        prompt_on_stdin=True,
    )


def goose(box: Box, path: str) -> Called:
    run = lambda prompt: [path, "run", "-t", prompt]  # noqa: E731
    return Called(
        first=run,
        again=run,
        env={
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "fake",
            "OPENAI_HOST": box.model.url,
            "OPENAI_API_KEY": "dummy",
            "GOOSE_DISABLE_KEYRING": "1",
        },
    )


def cn(box: Box, path: str) -> Called:
    base = f"provider: openai\n    model: fake\n    apiBase: {box.model.url}/v1\n    apiKey: dummy"
    models = f"models:\n  - name: fake\n    {base}\n    roles: [chat]\n    capabilities: [tool_use]\n"
    box.write(".continue/config.yaml", f"name: box\nversion: 1.0.0\nschema: v1\n{models}")
    config = str(box.home / ".continue" / "config.yaml")
    run = lambda prompt: [path, "-p", prompt, "--config", config, "--allow", "*"]  # noqa: E731
    return Called(first=run, again=run)


def openhands(box: Box, path: str) -> Called:
    run = lambda prompt: [path, "--headless", "--override-with-envs", "-t", prompt]  # noqa: E731
    env = {"LLM_API_KEY": "dummy", "LLM_MODEL": "openai/fake", "LLM_BASE_URL": f"{box.model.url}/v1"}
    return Called(first=run, again=run, env=env)


# How the screen of a program is called, and a pattern of what it shows when it takes a prompt.
SCREENS = {
    "claude": ["--allowedTools", "mcp__plugin_kept_kept,Bash,Edit,Write"],
    "codex": ["--dangerously-bypass-approvals-and-sandbox"],
    "gemini": ["--skip-trust", "--approval-mode", "yolo"],
    "opencode": [],
}
READY = {"claude": "❯", "codex": "›", "gemini": "Type your message", "opencode": "Ask anything"}

# By what an agent runs a command and writes a file: a pattern for the tool, and the names of its arguments.
SHELLS = {
    "claude": ("^Bash$", "command"),
    "codex": ("^exec_command$", "cmd"),
    "gemini": ("^run_shell_command$", "command"),
    "qwen": ("^run_shell_command$", "command"),
    "copilot": ("^bash$", "command"),
    "opencode": ("^bash$", "command"),
}
WRITERS = {
    "claude": ("^Write$", "file_path", "content"),
    "gemini": ("^write_file$", "file_path", "content"),
    "qwen": ("^write_file$", "file_path", "content"),
    "copilot": ("^create$", "path", "file_text"),
    "opencode": ("^write$", "filePath", "content"),
}

CALLS: dict[str, Callable[[Box, str], Called]] = {
    call.__name__: call for call in (claude, codex, gemini, qwen, copilot, opencode, goose, cn, openhands)
}
NAMES = {
    name: {"claude": "claude-code", "cn": "continue"}.get(name, name) for name in CALLS
}  # as `kept install` has them
