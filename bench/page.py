"""Measure the page of `kept serve` at 10,000 memories and 500 sessions: the processor time of each view, in recalls.

    python -m bench.page [--memories 10000] [--sessions 500] [--only saw,inbox]

A view is asked several times of a server in another process, and its figure is the least: others on the machine only
add to it. "first" is its first look after the start, which reads the records that later ones remember. A live write is
one of another process while a tab is open: its stream names the change, and the tab asks for nothing until a person
wants to see it.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import kept
from bench.corpora import Zipf
from bench.measure import Bar, options, p50, report, table
from bench.serve import KEY, SERVE
from kept.memory.deliver import Listener
from kept.model import Draft

VIEW_LIMIT, FIRST_LIMIT_S, LIVE_LIMIT_BYTES = 3.0, 1.0, 1_000
AGENTS = ("claude", "codex", "gemini")
YEAR_DAYS = 300
ANSWERS = ("saw: replay",)  # the same prompt asked again: a whole briefing, on a person's key
PART = "part:"  # the detail alone, as choosing a row asks for it


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--times", type=int, default=10, help="how often each view is asked")
    parser.add_argument("--port", type=int, default=7368)
    parser.add_argument("--only", default="", help="views, with commas between")
    parser.add_argument("--keep", type=Path, help="a folder to fill once and to use again")
    tiny = {"memories": 60, "sessions": 6, "times": 1, "port": 7369}
    given = options(parser, tiny=tiny, arguments=arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        if not (folder / "shop").exists():
            fill(folder, given.memories, given.sessions)
        recall_ms = _recalls(folder, given.times)
        command = [sys.executable, "-c", SERVE, str(folder / "home"), str(folder / "shop"), str(given.port), KEY]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            views = {view: path for view, path in _views(folder).items() if view in (given.only or view).split(",")}
            _wait(server)
            costs = {view: _cost(server.pid, given.port, path, given.times) for view, path in views.items()}
            live = _live_write(folder, given.port)
        finally:
            server.terminate()
            server.wait(10)
    return _report(given, recall_ms, costs, live)


def _report(
    given: argparse.Namespace, recall_ms: float, costs: dict[str, tuple[float, float]], live: tuple[int, int]
) -> int:
    lines = [(view, first * 1000, ms, ms / recall_ms) for view, (first, ms) in costs.items()]
    lines.sort(key=lambda line: -line[3])
    judged = [line for line in lines if line[0] not in ANSWERS]
    dearest, slowest = max(judged, key=lambda line: line[3]), max(lines, key=lambda line: line[1])
    bars = [
        Bar(f"the dearest view ({dearest[0]}) against a recall, processor time", dearest[3], VIEW_LIMIT),
        Bar(f"seconds of the slowest first look ({slowest[0]})", slowest[1] / 1000, FIRST_LIMIT_S),
        Bar("bytes that a live write sends to an open tab", live[1], LIVE_LIMIT_BYTES),
    ]
    title = (
        f"The page at {given.memories:,} memories and {given.sessions:,} sessions; a recall takes {recall_ms:.2f} ms"
    )
    shown = table(title, ("view", "first ms", "ms", "recalls"), lines)
    figures = {"recall_cpu_ms": recall_ms, "live_events": live[0], "live_bytes": live[1]}
    return report(shown, bars, figures | {"views": {name: numbers for name, *numbers in lines}}, given)


class _Clock:
    """A clock that is set by hand, and goes on by a second at each look."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC) - timedelta(days=YEAR_DAYS)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def fill(folder: Path, memories: int, sessions: int) -> None:
    """Write a project of most of a year: memories, conversations with findings, texts that were given, feedback."""
    (folder / "shop" / ".git").mkdir(parents=True)
    corpus, chance, clock = Zipf(7), random.Random(3), _Clock()
    settings = {"auto_upkeep": False, "backup_daily": False}
    with kept.open(project=folder / "shop", home=folder / "home", settings=settings, clock=clock) as memory:
        drafts = [Draft(content=one.content, kind=one.kind, tags=one.tags) for one in corpus.memories(memories)]
        drafts += [Draft(content=said) for said in _contradictions(memories // 200)]
        chance.shuffle(drafts)
        step = max(1, len(drafts) // max(1, sessions))
        refs: list[str] = []
        for number in range(sessions):
            clock.now += timedelta(days=YEAR_DAYS / sessions) - timedelta(minutes=5)
            refs += [
                str(one.ref) for one in memory.remember_many(drafts[number * step : (number + 1) * step]) if one.ref
            ]
            memory.reinforce(chance.choice(refs))
            memory.demote(chance.choice(refs))
            _hold(memory, f"talk-{number}", corpus, chance, is_told=number > sessions - 80)
        for number in range(min(40, sessions)):
            memory.task(description=f"Task number {number}: {corpus.say(5)}")
        (folder / "shop" / "NOTES.md").write_text(_notes(corpus), "utf-8")
        memory.files.extract([folder / "shop" / "NOTES.md"], sources=True)


def _contradictions(number: int) -> Iterable[str]:
    for one in range(number):
        yield f"We use Express for the service number{one}."
        yield f"We use Fastify for the service number{one}."


def _notes(corpus: Zipf) -> str:
    return "\n".join(
        f"# {corpus.say(3)}\n\n- TODO: {corpus.say(8)}\n- We decided to use {corpus.say(6)}." for _ in range(100)
    )


def _hold(memory: kept.Kept, name: str, corpus: Zipf, chance: random.Random, *, is_told: bool) -> None:
    """A conversation of twenty messages with three passages worth keeping; one of the last was given texts."""
    session = memory.session(name, agent=chance.choice(AGENTS))
    said = []
    for turn in range(10):
        prompt = corpus.say(chance.randint(6, 30))
        if turn in (2, 5, 8):
            prompt = f"We decided to use {corpus.say(2)} for the {corpus.say(2)} service, because {corpus.say(5)}."
        if is_told and turn < 4:
            memory.deliveries.for_prompt(prompt, Listener(session=name, event="UserPromptSubmit"))
        said += [{"role": "user", "content": prompt}, {"role": "assistant", "content": corpus.say(80)}]
    session.extend(said)
    session.finish()


def _views(folder: Path) -> dict[str, str]:
    """Return the addresses to measure, by name."""
    words = Zipf(7).questions(1, common=False)[0].split()
    with kept.open(project=folder / "shop", home=folder / "home") as memory:
        last = memory.list(limit=30)[-1].ref
        talk = memory.sessions(limit=1, newest_first=True)[0].name
        then = datetime.now().astimezone().date() - timedelta(days=YEAR_DAYS // 3)
    return {
        "saw": "saw",
        "saw: replay": "saw?replay=1",
        "memories": "memories",
        "memories: common word": "memories?q=aqaq",
        "memories: search": f"memories?q={words[0]}",
        "memories: three words": f"memories?q={'+'.join(words[:3])}",
        "memories: filtered": "memories?kind=decision&order=rated",
        "memories: most used": "memories?order=used",
        "memories: as of": f"memories?as_of={then}",
        "memories: detail": f"{PART}memories?ref={last}",
        "inbox": "inbox",
        "inbox: judge": "inbox?tab=judge",
        "inbox: conflict": "inbox?tab=conflict",
        "inbox: unconfirmed": "inbox?tab=candidate",
        "timeline": "timeline",
        "timeline: written": "timeline?what=written",
        "timeline: a day": f"timeline?day={then}",
        "timeline: by one": "timeline?who=claude",
        "sessions": "sessions",
        "sessions: search": f"sessions?q={words[0]}+{words[1]}",
        "sessions: common word": "sessions?q=deploy+badaq",
        "sessions: detail": f"{PART}sessions?session={talk}",
        "knowledge": "knowledge",
        "knowledge: filtered": "knowledge?type=task",
        "health": "health",
    }


def _recalls(folder: Path, times: int) -> float:
    """Return the milliseconds of processor time of a recall, the median of questions with rare and common words."""
    corpus = Zipf(11)
    questions = corpus.questions(10, common=False) + corpus.questions(10, common=True)
    with kept.open(project=folder / "shop", home=folder / "home") as memory:
        return p50([min(_recall_ms(memory, question) for _ in range(times + 1)) for question in questions])


def _recall_ms(memory: kept.Kept, question: str) -> float:
    begun = time.process_time()
    memory.recall(question, limit=12)
    return (time.process_time() - begun) * 1000


def _wait(server: "subprocess.Popen[str]") -> None:
    assert server.stdout is not None
    while line := server.stdout.readline():
        if line.startswith("Stop it"):
            return
    raise SystemExit("The server did not start.")


def _get(port: int, path: str) -> bytes:
    """Ask for a view, or for a part of it."""
    headers = {"Authorization": f"Bearer {KEY}"} | ({"X-Kept-Part": "detail"} if path.startswith(PART) else {})
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/p/here/{path.removeprefix(PART)}", headers=headers)
    with urllib.request.urlopen(asked, timeout=60) as response:
        return bytes(response.read())


def _cost(pid: int, port: int, path: str, times: int) -> tuple[float, float]:
    """Return the seconds of processor time of the first look, and the milliseconds of a later one."""
    begun = _cpu_s(pid)
    _get(port, path)
    first_s = _cpu_s(pid) - begun
    _settle(pid)
    taken = []
    for _ in range(times):
        before = _cpu_s(pid)
        _get(port, path)
        taken.append((_cpu_s(pid) - before) * 1000)
    return first_s, min(taken)


def _settle(pid: int) -> None:
    """Wait until the server has nothing to do: a review may go on in the background."""
    quiet = 0
    for _ in range(600):
        before = _cpu_s(pid)
        time.sleep(0.05)
        quiet = quiet + 1 if _cpu_s(pid) - before < 0.002 else 0
        if quiet == 5:
            return


def _cpu_s(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) returns it


def _live_write(folder: Path, port: int) -> tuple[int, int]:
    """Return the number of events and of bytes that a write in another process sends to an open tab."""
    headers = {"Authorization": f"Bearer {KEY}"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/projects/here/events", headers=headers)
    with urllib.request.urlopen(asked, timeout=30) as stream:
        assert stream.readline().startswith(b": following")
        stream.readline()
        with kept.open(project=folder / "shop", home=folder / "home") as memory:
            memory.remember(f"A live write at {time.time_ns()}.")
        heard = []
        while not heard or heard[-1] != b"\n":
            heard.append(stream.readline())
    data = [json.loads(line[6:]) for line in heard if line.startswith(b"data: ")]
    return len(data), sum(map(len, heard))


if __name__ == "__main__":
    sys.exit(main())
