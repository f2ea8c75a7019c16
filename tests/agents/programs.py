"""The real agent programs: which versions are tested, where they are installed, and how.

    python -m tests.agents.programs claude codex      installs these into the cache folder, once
    python -m tests.agents.programs --within 240 claude   the same, but gives up after 240 seconds

They come from the npm registry (OpenHands from PyPI) into `$KEPT_AGENTS_DIR`, by default a folder of the user's cache,
never into the project. Versions are pinned: these programs change weekly. With an old node, npm takes an older version
without a word, so a node of our own is installed first and used for everything. Rule: where that is not possible, one
line says why and the exit code is 1, so that a caller can go on without.
"""

import argparse
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

NODE = "node@24"
PACKAGES = {
    "claude": ("@anthropic-ai/claude-code@2.1.325",),
    "codex": ("@openai/codex@0.166.0",),
    "gemini": ("@google/gemini-cli@0.61.0",),
    "qwen": ("@qwen-code/qwen-code@0.24.4",),
    "copilot": ("@github/copilot@1.0.102",),
    "opencode": ("opencode-ai@1.18.33",),
    "opencode-plugin": ("@opencode-ai/plugin@1.18.33",),
    "goose": ("@aaif/goose@0.20.1",),
    "cn": ("@continuedev/cli@1.5.47",),
    "inspector": ("@modelcontextprotocol/inspector@2.12.0",),  # not an agent: a client of MCP servers
    "server-memory": ("@modelcontextprotocol/server-memory@2026.8.31",),  # the server that `kept mcp --graph` replaces
}
OPENHANDS = "openhands==1.16.0"
NEEDS = {"opencode": ("opencode-plugin",)}  # beside its configuration, or each start without a network takes 70 s
FREE_BYTES = 2 * 10**9  # for one program, what npm keeps of it in its own cache, and some air
LONG_S = 3_600.0
INSIDE = {
    "goose": "node_modules/@aaif/goose-binary-linux-x64/bin/goose",
    "inspector": "node_modules/.bin/mcp-inspector",
    "server-memory": "node_modules/.bin/mcp-server-memory",
}


def folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("KEPT_AGENTS_DIR") or cache / "kept-agents").absolute()


def node() -> Path:
    return folder() / "node" / "node_modules" / ".bin"


def program(name: str) -> Path | None:
    """The program, if it is installed."""
    if name == "openhands":
        found = folder() / name / "bin" / name
    else:
        found = folder() / name / INSIDE.get(name, f"node_modules/.bin/{name}")
    return found if found.exists() else None


def install(names: list[str], within_s: float = LONG_S) -> None:
    """Install what is missing, and see that it runs. Raises SystemExit with one line where that is not possible."""
    end = time.monotonic() + within_s
    wanted = list(dict.fromkeys(part for name in names for part in (name, *NEEDS.get(name, ()))))
    missing = [name for name in wanted if not (folder() / name / ".installed").exists()]
    try:
        if "openhands" in missing:
            _install_openhands(end)
        from_npm = [name for name in missing if name != "openhands"]
        if from_npm:
            _install_from_npm(from_npm, end)
        for name in missing:
            if (path := program(name)) is not None:
                _run([str(path), "--version"], "It does not run on this machine", name, end)
    except OSError as error:
        raise SystemExit(f"Not tried: {', '.join(missing)}. {folder()}: {error.strerror}.") from None


def _install_from_npm(names: list[str], end: float) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(f"Not tried: {', '.join(names)}. npm is needed to install them.")
    folder().mkdir(parents=True, exist_ok=True)
    for name in ["node", *names]:
        if (folder() / name / ".installed").exists():
            continue
        if shutil.disk_usage(folder()).free < FREE_BYTES:
            raise SystemExit(f"Not tried: {name}. {folder()} needs {FREE_BYTES // 10**9} GB of free space.")
        packages = (NODE,) if name == "node" else PACKAGES[name]
        command = [npm, "install", "--silent", "--no-fund", "--no-audit", "--fetch-retries=1", "--prefix"]
        print(f"installing {' '.join(packages)}", flush=True)
        _run([*command, str(folder() / name), *packages], f"npm could not install {' '.join(packages)}", name, end)
        (folder() / name / ".installed").touch()


def _run(command: list[str], failed: str, name: str, end: float) -> None:
    """Run a command until it ends or the time is over, with whatever it started."""
    environ = {**os.environ, "PATH": f"{node()}{os.pathsep}{os.environ['PATH']}"}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environ, stdin=quiet, stdout=quiet, start_new_session=True)
    try:
        code = process.wait(max(1.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise SystemExit(f"Not tried: {name}. {failed} in the time that is set for it.") from None
    if code:
        raise SystemExit(f"Not tried: {name}. {failed}.")


def _install_openhands(end: float) -> None:
    python = shutil.which("python3.12")
    if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        raise SystemExit("Not tried: openhands. It needs Python 3.12.")
    target = folder() / "openhands"
    _run([python, "-m", "venv", str(target)], "It needs Python 3.12 with venv", "openhands", end)
    pip = [str(target / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", OPENHANDS]
    _run(pip, f"pip could not install {OPENHANDS}", "openhands", end)
    (target / ".installed").touch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--within", type=float, default=LONG_S, help="seconds")
    given = parser.parse_args()
    install(given.names, given.within)
