"""Which peers there are, and how the environment of each is made: in a folder of its own, by pip or npm.

Rule: a peer that cannot be installed is not an error. It gives a row that says why.
"""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from msgspec import Struct

ADAPTERS = Path(__file__).parent / "adapters"


class Unavailable(Exception):
    """The peer cannot run here; the message says why."""


class Peer(Struct, frozen=True, kw_only=True):
    """A memory to compare with: its name, the program that speaks for it, and the packages that it needs."""

    name: str
    adapter: str
    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether it runs in the environment of this program."""
        return not (self.python or self.node)


OURS = Peer(name="kept", adapter="with_kept.py")
PLAIN = Peer(name="plain FTS5", adapter="plain_fts5.py")
MEM0 = Peer(name="mem0, infer off", adapter="with_mem0.py", python=("mem0ai", "wordllama"))
PEERS = (
    OURS,
    PLAIN,
    MEM0,
    Peer(name="Chroma", adapter="with_chroma.py", python=("chromadb", "wordllama")),
    Peer(
        name="LangGraph SqliteStore",
        adapter="with_langgraph.py",
        python=("langgraph-checkpoint-sqlite", "wordllama", "pysqlite3-binary"),
    ),
    Peer(
        name="MCP reference server",
        adapter="with_mcp_memory.mjs",
        node=("@modelcontextprotocol/server-memory", "@modelcontextprotocol/sdk"),
    ),
    Peer(name="MiniSearch", adapter="with_minisearch.mjs", node=("minisearch",)),
)

LEFT_OUT = {"basic-memory": "needs Python 3.12, and the index at hand has not all of its packages"}
DELIVERING = tuple(peer for peer in PEERS if peer is not OURS)  # asked for the facts of a task; Kept has its hook


def left_out(*, only_ours: bool) -> dict[str, str]:
    """Return the peers that are not measured, each with the reason; `only_ours`: also those that must be installed."""
    if not only_ours:
        return dict(LEFT_OUT)
    return {peer.name: "--ours and --tiny install no peer" for peer in PEERS if not peer.is_here} | LEFT_OUT


def command(peer: Peer, cache: Path) -> tuple[list[str], dict[str, str]]:
    """What starts the adapter, and what it needs to find in its environment. Raises Unavailable."""
    adapter = str(ADAPTERS / peer.adapter)
    if peer.is_here:
        return [sys.executable, adapter], {}
    folder = cache / "peers" / peer.adapter.partition(".")[0]
    if peer.python:
        _once(folder, [sys.executable, "-m", "venv", str(folder)], [f"{folder}/bin/pip", "install", *peer.python])
        return [f"{folder}/bin/python", adapter], {}
    _once(folder, ["npm", "init", "--yes"], ["npm", "install", "--no-audit", "--no-fund", *peer.node])
    return ["node", adapter], {"PEER_PACKAGES": str(folder)}


def versions(peer: Peer, cache: Path) -> str:
    """The version of the peer's own package; nothing for what runs here."""
    folder = cache / "peers" / peer.adapter.partition(".")[0]
    if peer.python:
        shown = _run([f"{folder}/bin/pip", "show", peer.python[0]], folder)
        return next(line.split()[1] for line in shown.splitlines() if line.startswith("Version:"))
    if peer.node:
        shown = _run(["node", "-p", f"require('./node_modules/{peer.node[0]}/package.json').version"], folder)
        return shown.strip()
    return ""


def packages(peer: Peer, cache: Path) -> int:
    """Count the packages that the peer brings along, itself included."""
    folder = cache / "peers" / peer.adapter.partition(".")[0]
    if peer.python:
        tools = ("pip-", "setuptools-", "wordllama-", "pysqlite3_binary-")
        return sum(not path.name.startswith(tools) for path in folder.glob("lib/python*/site-packages/*.dist-info"))
    if peer.node:
        top = folder / "node_modules"
        return sum(1 for _ in [*top.glob("[!@.]*/package.json"), *top.glob("@*/*/package.json")])
    return len(_needed("kept-memory")) if peer is OURS else 1


def _needed(name: str) -> set[str]:
    """Return the name of a package and of all that it needs here, without its extras."""
    try:
        needs = distribution(name).requires or []
    except PackageNotFoundError:  # not needed on this machine
        return set()
    plain = [re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need]
    return {name}.union(*(_needed(one) for one in plain))


def _once(folder: Path, *commands: list[str]) -> None:
    done = folder / "made"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for one in commands:
        _run(one, folder)
    done.touch()


def _run(command: list[str], folder: Path) -> str:
    try:
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=900)
        return made.stdout
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable("its packages took more than a quarter of an hour to install") from None
    except subprocess.CalledProcessError:
        raise Unavailable("its packages cannot be installed here") from None
