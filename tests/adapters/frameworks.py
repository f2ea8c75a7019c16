"""The frameworks that adapters are tested with: one virtual environment for each, since they contradict each other.

    python -m tests.adapters.frameworks langgraph openai      installs these, once, and runs their tests
    python -m tests.adapters.frameworks --sizes               prints packages and megabytes of each extra

The environments lie in `$KEPT_ADAPTERS_DIR`, by default a folder of the user's cache. Exact versions are in
`constraints/`, one file for each framework.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ("pytest", "hypothesis")
FRAMEWORKS = (
    "agent_framework",
    "anthropic",
    "google_adk",
    "langchain",
    "langgraph",
    "llama_index",
    "openai",
    "pydantic_ai",
)


def folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("KEPT_ADAPTERS_DIR") or cache / "kept-adapters").absolute()


def constraints(name: str) -> Path:
    return ROOT / "tests" / "adapters" / "constraints" / f"{name}.txt"


def extra_of(name: str) -> str:
    """The extra as the metadata of the package spells it; pip before 23.3 knows no other spelling."""
    return name.replace("_", "-")


def python_of(name: str) -> Path:
    """The interpreter of that framework's environment, which is made where it is missing or out of date."""
    home = folder() / name
    python = home / "bin" / "python"
    wanted = hashlib.sha256(constraints(name).read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    done = home / ".installed"
    if not (done.exists() and done.read_text("utf-8") == f"{wanted} {ROOT}"):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(constraints(name)), "-e", f"{ROOT}[{extra_of(name)}]", *TOOLS], check=True)
        # Without its framework every test would be skipped.
        subprocess.run([str(python), "-c", f"import kept.adapters.{name}"], check=True)
        done.write_text(f"{wanted} {ROOT}", "utf-8")
    return python


def sizes(python: Path, extra: str = "") -> tuple[int, float]:
    """How many packages the extra brings beside those of `kept` alone, and how many megabytes they take.

    Without an extra: those of `kept` alone, beside itself.
    """
    code = (
        "import importlib.metadata as m, json, re, sys\n"
        "from packaging.requirements import Requirement\n"
        "def closure(name, extras, seen):\n"
        "    key = (re.sub('[-_.]+', '-', name.lower()), frozenset(extras))\n"
        "    if key in seen: return\n"
        "    seen.add(key)\n"
        "    for line in m.distribution(name).requires or ():\n"
        "        wanted = Requirement(line)\n"
        "        if any(wanted.marker is None or wanted.marker.evaluate({'extra': one}) for one in (*extras, '')):\n"
        "            closure(wanted.name, wanted.extras, seen)\n"
        "def names(extras):\n"
        "    seen = set(); closure('kept-memory', extras, seen)\n"
        "    return {name for name, _ in seen}\n"
        "def size(name):\n"
        "    files = (f.locate() for f in m.distribution(name).files or () if f.suffix != '.pyc')\n"
        "    return sum(path.stat().st_size for path in files if path.is_file())\n"
        "brought = names(sys.argv[1:]) - names([]) if sys.argv[1:] else names([]) - {'kept-memory'}\n"
        "print(json.dumps([len(brought), sum(map(size, brought))]))"
    )
    done = subprocess.run([python, "-c", code, *([extra] if extra else [])], capture_output=True, check=True)
    packages, size = json.loads(done.stdout)
    return packages, size / 1e6


def main(names: list[str]) -> int:
    if names == ["--sizes"]:
        files = [path for path in (ROOT / "src" / "kept").rglob("*") if path.is_file() and path.suffix != ".pyc"]
        own = sum(path.stat().st_size for path in files)
        here = Path(sys.executable)
        found = {"kept alone": sizes(here), "agents": sizes(here, "agents")}
        found |= {name: sizes(python_of(name), extra_of(name)) for name in FRAMEWORKS}
        for name, (packages, megabytes) in found.items():
            print(f"{name:20} {packages:4} packages {megabytes:7.1f} MB")
        print(f"{'kept itself':20} {own / 1e6:22.1f} MB")
        return 0
    if unknown := [name for name in names if name not in FRAMEWORKS]:
        print(f"There is no adapter for {', '.join(unknown)}. Known: {', '.join(FRAMEWORKS)}.", file=sys.stderr)
        return 2
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        tests = [str(python_of(name)), "-m", "pytest", "-q", f"tests/adapters/test_{name}.py"]
        if subprocess.run(tests, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}.", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
