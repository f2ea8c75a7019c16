"""Which peers there are, and how the environment of each is made: in a folder of its own, by pip or npm.

Rule: a peer that cannot be installed is not an error. It gives a row that says why.
"""

import subprocess
import sys
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
