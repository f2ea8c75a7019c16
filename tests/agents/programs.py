"""The real agent programs: which versions are tested, where they are installed, and how.

    python -m tests.agents.programs claude codex      installs these into the cache folder, once

They come from the npm registry (OpenHands from PyPI) into `$KEPT_AGENTS_DIR`, by default a folder of the user's cache,
never into the project. Versions are pinned: these programs change weekly. With an old node, npm takes an older version
without a word, so a node of our own is installed first and used for everything.
"""

import os
import shutil
import subprocess
import sys
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
}
OPENHANDS = "openhands==1.16.0"
NEEDS = {"opencode": ("opencode-plugin",)}  # beside its configuration, or each start without a network takes 70 s
INSIDE = {"goose": "node_modules/@aaif/goose-binary-linux-x64/bin/goose"}


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


def install(names: list[str]) -> None:
    """Install what is missing. Raises SystemExit with one line where that is not possible."""
    wanted = list(dict.fromkeys(part for name in names for part in (name, *NEEDS.get(name, ()))))
    missing = [name for name in wanted if not (folder() / name / ".installed").exists()]
    if not missing:
        return
    if "openhands" in missing:
        _install_openhands()
        missing.remove("openhands")
    npm = shutil.which("npm")
    if missing and npm is None:
        raise SystemExit(f"Not tried: {', '.join(missing)}. npm is needed to install them.")
    for name in ["node", *missing]:
        packages = (NODE,) if name == "node" else PACKAGES[name]
        if not (folder() / name / ".installed").exists():
            environ = {**os.environ, "PATH": f"{node()}{os.pathsep}{os.environ['PATH']}"}
            command = [str(npm), "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder() / name)]
            print(f"installing {' '.join(packages)}", flush=True)
            if subprocess.run([*command, *packages], env=environ, check=False).returncode:
                raise SystemExit(f"Not tried: {name}. npm could not install {' '.join(packages)}.")
            (folder() / name / ".installed").touch()


def _install_openhands() -> None:
    python = shutil.which("python3.12")
    if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        raise SystemExit("Not tried: openhands. It needs Python 3.12.")
    target = folder() / "openhands"
    subprocess.run([python, "-m", "venv", str(target)], check=True)
    subprocess.run([str(target / "bin" / "pip"), "install", "--quiet", OPENHANDS], check=True)
    (target / ".installed").touch()


if __name__ == "__main__":
    install(sys.argv[1:])
