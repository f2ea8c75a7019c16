"""How long `kept mcp` takes from its start to its list of tools, against a bare server of the SDK.

    python -m bench.mcp_start [--rounds 10] [--tiny] [--json]

Both are started in turns and asked for their tools by the handshake of the older spec; the figures are the processor
time of the whole process and the time on the clock until the answer. A client waits for this before its first turn.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Bar, options, p50, report, table

LIMIT = 1.2
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare", instructions="Seven tools.")
for number in range(7):
    def tool(text: str) -> str:
        return text
    server.tool(name=f"tool_{number}", description="Say it again.")(tool)
server.run("stdio")
"""
KEPT = "import sys; sys.argv = ['kept', 'mcp']; from kept.entrypoints.cli import main; main()"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
REQUESTS = (
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized", "params": {}},
    {"id": 2, "method": "tools/list", "params": {}},
)


def start(program: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of processor time of the whole life of a server, and on the clock until it has listed its tools."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = os.environ | {"KEPT_HOME": str(folder / "home")}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in REQUESTS:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline()) if "id" in request else {}
        taken = time.perf_counter() - begun
        assert len(answer["result"]["tools"]) == 7, answer
        process.stdin.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu * 1000, taken * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    given = options(parser, tiny={"rounds": 1})
    sides = {"bare SDK server": BARE, "kept mcp": KEPT}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    wall: dict[str, list[float]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds + 1):
            for name, program in sides.items():
                used, waited = start(program, Path(folder))
                if number:  # the first round fills the caches
                    cpu[name].append(used)
                    wall[name].append(waited)
    ratio = p50([own / bare for bare, own in zip(cpu["bare SDK server"], cpu["kept mcp"], strict=True)])
    waits = p50([own / bare for bare, own in zip(wall["bare SDK server"], wall["kept mcp"], strict=True)])
    rows = [[name, p50(cpu[name]), p50(wall[name])] for name in sides]
    text = table("From the start to the list of tools", ["server", "CPU ms", "clock ms"], rows)
    bars = [Bar("processor time over a bare server", ratio, LIMIT), Bar("waiting over a bare server", waits, LIMIT)]
    figures = {"cpu_ms": cpu, "wall_ms": wall, "cpu_ratio": ratio, "wall_ratio": waits}
    return report(text, bars, figures, given)


if __name__ == "__main__":
    sys.exit(main())
