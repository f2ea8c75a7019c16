"""Walk a wheel as a user would: `python -m tests.wheel dist`, after `make dist`.

Each Python that is at hand gets a clean environment with nothing but the wheel and the extras of README's own pip
lines, in their order; there README's commands and its program run, the MCP server lists its tools, and the page with
sample data answers. The rest of the extras comes last, so that no extra can lean on a package of another one. Nothing
of the checkout is on the path.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("python3.11", "python3.12", "python3.13")
REST = "files,vector"  # of the extras, installed after README's
DEMO_S = 120  # for the first answer of the page, on a busy machine
NEEDED = {".py", ".typed", ".sql", ".html", ".css", ".js", ".svg", ".txt", ".jsonl"}
ASK = """
import asyncio, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams[:2]) as client:
        await client.initialize()
        print(len((await client.list_tools()).tools))
asyncio.run(main())
"""


def surplus(wheel: Path) -> list[str]:
    """Return the files of a wheel that are neither a module nor something that a module reads."""
    names = zipfile.ZipFile(wheel).namelist()
    ours = [name for name in names if ".dist-info/" not in name]
    return [name for name in ours if not name.startswith("kept/") or Path(name).suffix not in NEEDED]


def commands(readme: str) -> Iterator[list[str]]:
    """Yield the calls of `kept` in README's shell blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "kept":
                yield [*words[1:], *(["--yes"] if words[1:] == ["install"] else [])]


def runs(python: str) -> bool:
    """Return True for a Python that runs: a version manager puts names on the path that start nothing."""
    at = shutil.which(python)
    return at is not None and subprocess.run([at, "--version"], capture_output=True, check=False).returncode == 0


def extras_in(readme: str) -> list[str]:
    """Return the extras that README installs, one text for each of its pip lines, in their order."""
    return list(dict.fromkeys(re.findall(r"pip install '\.\[([a-z_,]+)\]'", readme)))


def walk(python: str, wheel: Path) -> str:
    """Install the wheel for one Python, do all that README shows, and return one line about it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _run([python, "-m", "venv", str(folder / "venv")], folder)
        bin_ = folder / "venv" / "bin"
        pip = [str(bin_ / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        readme = (ROOT / "README.md").read_text("utf-8")

        def add(extras: str) -> None:
            _run([*pip, "-c", str(ROOT / "constraints.txt"), f"{wheel}[{extras}]"], folder)

        for extras in extras_in(readme):
            add(extras)
        person = folder / "person"
        (person / ".gemini").mkdir(parents=True)  # an agent for `kept install`
        environ = {"HOME": str(person), "PATH": f"{bin_}:/usr/bin:/bin", "LANG": "C.UTF-8", "NO_COLOR": "1"}
        (project := folder / "project").mkdir()
        called = list(commands(readme))
        for words in called:
            _run([str(bin_ / "kept"), *words], project, environ)
        for block in re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE):
            _run([str(bin_ / "python"), "-c", block], project, environ)
        tools = _run([str(bin_ / "python"), "-c", ASK, str(bin_ / "kept")], project, environ).strip()
        page = demo_page(bin_ / "kept", project, environ)
        assert "Sample data." in page, page[:2000]
        add(REST)
        _run([str(bin_ / "kept"), "vectors", "on"], project, environ)
        status = json.loads(_run([str(bin_ / "kept"), "--json", "status"], project, environ))
        _run([str(bin_ / "kept"), "uninstall", "--yes"], project, environ)
        version = _run([str(bin_ / "kept"), "--version"], project, environ).strip()
        assert status, "status says nothing"
        return f"{python}: {version}, {len(called)} commands, {tools} tools"


def demo_page(program: Path, folder: Path, environ: dict[str, str]) -> str:
    """Return the first page of `kept serve --demo`, signed in as a browser does with the printed address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [str(program), "serve", "--demo", "--no-open", "--port", port]
    more = {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=environ | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        try:
            said, address = "", None
            while address is None:
                line = server.stdout.readline()
                said += line
                assert line, f"kept serve --demo has ended:\n{said[-2000:]}"
                address = re.search(r"http://127\.0\.0\.1:\d+/\S+", line)
            return _answer_of(address[0])
        finally:
            server.terminate()


def _answer_of(address: str) -> str:
    """Ask until the server listens. Return the page."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    until = time.monotonic() + DEMO_S
    while True:
        try:
            with opener.open(address, timeout=DEMO_S) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _run(command: list[str], folder: Path, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environ or dict(os.environ), capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{shlex.join(command)[:300]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", help="a program; by default those of 3.11 to 3.13 that are there")
    chosen = parser.parse_args()
    (wheel,) = chosen.folder.resolve().glob("kept_memory-*.whl")
    if found := surplus(wheel):
        print(f"{wheel.name} has files that nothing reads: {', '.join(found)}", file=sys.stderr)
        return 1
    for python in chosen.python or list(filter(runs, PYTHONS)):
        print(walk(python, wheel), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
