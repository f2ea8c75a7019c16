"""`kept serve`: what a view costs against a recall, how long it takes to start, and many clients at once.

    python -m bench.serve [--memories 100000] [--clients 200] [--seconds 60] [--tiny] [--json]

The server is a process of its own; its processor time is read from the system before and after a row of requests, so
that the client's does not count. A recall of the same questions in one process is the measure.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

import kept
from bench.corpora import Zipf
from bench.measure import Bar, options, p50, p95, report, table
from kept.model import Draft

KEY = "bench"
VIEW_LIMIT, START_LIMIT_S = 3.0, 1.5
VIEWS = ("memories", "memories?trust=user", "saw", "timeline", "sessions", "knowledge", "health")
SERVE = """
import sys
from kept.entrypoints.http.server import ServeOptions, run
home, project, port, key = sys.argv[1:]
run(ServeOptions(home=home, project=project, port=int(port), key=key), say=print, open_browser=None)
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--port", type=int, default=7366)
    tiny = {"memories": 200, "clients": 4, "seconds": 0.5, "requests": 5, "port": 7367}
    given = options(parser, tiny=tiny, arguments=arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shop" / ".git").mkdir(parents=True)
        questions = _fill(folder, given.memories)
        recall_ms = _recalls(folder, questions, given.requests)
        begun = time.perf_counter()
        command = [sys.executable, "-c", SERVE, str(folder / "home"), str(folder / "shop"), str(given.port), KEY]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(given.port)
            start_s = time.perf_counter() - begun
            view_ms = _views(server.pid, given.port, questions, given.requests)
            others = {f"{view}_cpu_ms": _view(server.pid, given.port, view) for view in VIEWS}
            asked = asyncio.run(_crowd(given.port, questions, given.clients, given.seconds))
        finally:
            server.terminate()
            server.wait(10)
    times, errors = asked
    figures = {
        "recall_cpu_ms": recall_ms,
        "view_cpu_ms": view_ms,
        **others,
        "start_s": start_s,
        "requests": len(times),
        "errors": errors,
        "p50_ms": p50(times),
        "p95_ms": p95(times),
    }
    bars = [
        Bar("the memories view against a recall, processor time", view_ms / recall_ms, VIEW_LIMIT),
        Bar("seconds until it answers", start_s, START_LIMIT_S),
        Bar(f"errors of {given.clients} clients", errors, 0),
    ]
    shown = table(f"kept serve at {given.memories:,} memories", ("", "value"), figures.items())
    return report(shown, bars, figures, given)


def _fill(folder: Path, count: int) -> list[str]:
    corpus = Zipf(7)
    with kept.open(project=folder / "shop", home=folder / "home", settings={"auto_upkeep": False}) as memory:
        drafts = (Draft(content=one.content, kind=one.kind, tags=one.tags) for one in corpus.memories(count))
        memory.remember_many(drafts)
    return corpus.questions(50, common=False)


def _recalls(folder: Path, questions: list[str], count: int) -> float:
    with kept.open(project=folder / "shop", home=folder / "home") as memory:
        for question in questions[:5]:
            memory.recall(question, limit=12)
        taken = []
        for number in range(count):
            begun = time.process_time()
            memory.recall(questions[number % len(questions)], limit=12)
            taken.append((time.process_time() - begun) * 1000)
    return p50(taken)


def _wait(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            _get(port, "/api/v1/projects")
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit("The server did not start.")


def _get(port: int, path: str) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())


def _views(pid: int, port: int, questions: list[str], count: int) -> float:
    """Milliseconds of the server's processor time for one view of memories with a search."""
    for question in questions[:5]:
        _get(port, f"/p/here/memories?q={quote(question)}")
    before = _cpu_s(pid)
    for number in range(count):
        _get(port, f"/p/here/memories?q={quote(questions[number % len(questions)])}")
    return (_cpu_s(pid) - before) * 1000 / count


def _view(pid: int, port: int, view: str, times: int = 5) -> float:
    """Milliseconds of the server's processor time for another view, when it was seen before."""
    _get(port, f"/p/here/{view}")
    before = _cpu_s(pid)
    for _ in range(times):
        _get(port, f"/p/here/{view}")
    return (_cpu_s(pid) - before) * 1000 / times


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _crowd(port: int, questions: list[str], clients: int, seconds: float) -> tuple[list[float], int]:
    """Every client asks again and again on its own connection. Milliseconds of each answer, and how many failed."""
    until, times, errors = time.perf_counter() + seconds, [], 0

    async def client(number: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = number
        while time.perf_counter() < until:
            path = f"/api/v1/projects/here/recall?query={quote(questions[turn % len(questions)])}"
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {KEY}\r\n\r\n"
            begun = time.perf_counter()
            writer.write(head.encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in answer.lower().split(b"\r\n") if b"content-length" in line
            )
            await reader.readexactly(length)
            times.append((time.perf_counter() - begun) * 1000)
            errors += not answer.startswith(b"HTTP/1.1 200")
            turn += 1
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return times, errors


if __name__ == "__main__":
    sys.exit(main())
