"""What `kept-hook` costs an agent: processor time of a prompt and of a tool call, and the answers on a busy machine.

    python -m bench.hook [--rows 10000] [--rounds 15] [--tiny] [--json]
    python -m bench.hook --busy 4 [--rows 3000] [--prompts 100] [--starts 20]

All sides start an interpreter, in turns, with bytecode at hand. A prompt is compared with importing json and apsw: it
also reads its input, opens the store, writes the answer and its receipt. A tool call that no memory concerns (a miss)
is compared with an interpreter that does nothing. `--busy` counts the answers that come in time while that many
processes keep the machine busy, with the limits as they are.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kept
from bench.corpora import docstrings
from bench.measure import Bar, options, p50, report, table

PROMPT_LIMIT = 4.0
MISS_LIMIT = 1.5
HOOK = "from kept.entrypoints.hook import main; main()"
LIBRARIES, NOTHING = "import json, apsw", "pass"
RULE = "Never edit ledger.txt by hand, because make ledger writes it"
HABIT = "Always ask me before you change the schema"  # told when a session starts
BUSY = "while True: pass"


class Desk:
    """A project with memories, and the surroundings of an installed hook."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.project, self.home = folder / "project", folder / "home"
        self.project.mkdir()
        with kept.open(project=self.project, home=self.home) as memory:
            self.contents = [one.content[:480] for one in docstrings(rows)]
            memory.remember_many([kept.Draft(content=content) for content in self.contents])
            memory.remember(RULE, kind="warning")
            memory.remember(HABIT, kind="preference")
        # An installed program has its bytecode.
        self.env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.env |= {"KEPT_HOME": str(self.home), "PYTHONPYCACHEPREFIX": str(folder / "pyc")}

    def run(self, event: str, session: str, *, program: str = HOOK, **given: Any) -> bytes:
        """Run the hook, or another program with the same input. Return its answer."""
        about = {"session_id": session, "cwd": str(self.project), "hook_event_name": event, **given}
        command = [sys.executable, "-c", program, "claude-code", event]
        done = subprocess.run(command, input=json.dumps(about).encode(), env=self.env, check=True, capture_output=True)
        return done.stdout

    def prompt(self, number: int) -> str:
        return " ".join(self.contents[number * 7 % len(self.contents)].split()[:12])

    def edit(self, file: str) -> dict[str, Any]:
        place = {"file_path": str(self.project / file), "old_string": "one", "new_string": "two = 2\n" * 20}
        return {"tool_name": "Edit", "tool_input": place}


def cpu_ms(desk: Desk, event: str, session: str, given: dict[str, Any]) -> tuple[float, bytes]:
    """Run a program; return its processor time in milliseconds, and its answer."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = desk.run(event, session, **given)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, said


def measure(given: argparse.Namespace) -> int:
    """Compare a prompt and a tool call, hit and miss, with interpreters that do less."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), given.rows)
        desk.env["KEPT_HOOK_LIMIT_MS"] = "20000"
        taken: dict[str, list[float]] = {}
        answers = {"a prompt": 0, "a tool call, hit": 0, "a tool call, miss": 0}
        for number in range(given.rounds + 1):
            session = f"bench-{number}"
            desk.run("SessionStart", session, source="startup")
            sides: dict[str, tuple[str, dict[str, Any]]] = {
                NOTHING: ("", {"program": NOTHING}),
                LIBRARIES: ("", {"program": LIBRARIES}),
                "a prompt": ("UserPromptSubmit", {"prompt": desk.prompt(number)}),
                "a tool call, hit": ("PreToolUse", desk.edit("ledger.txt")),
                "a tool call, miss": ("PreToolUse", desk.edit("other/place.zz")),
            }
            for name, (event, more) in sides.items():
                used, said = cpu_ms(desk, event, session, more)
                if number:  # the first round fills the caches
                    taken.setdefault(name, []).append(used)
                    answers[name] = answers.get(name, 0) + bool(said)
    prompt = p50([own / base for base, own in zip(taken[LIBRARIES], taken["a prompt"], strict=True)])
    miss = p50([own / base for base, own in zip(taken[NOTHING], taken["a tool call, miss"], strict=True)])
    rows = [[name, p50(values), answers.get(name, 0)] for name, values in taken.items()]
    text = table(f"{given.rows:,} memories, {given.rounds} rounds", ["process", "CPU ms", "answers"], rows)
    bars = [Bar("a prompt over its libraries", prompt, PROMPT_LIMIT), Bar("a miss over nothing", miss, MISS_LIMIT)]
    return report(text, bars, {"cpu_ms": taken, "prompt": prompt, "miss": miss, "answers": answers}, given)


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep the machine busy with this many processes."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(number)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def under_load(given: argparse.Namespace) -> int:
    """Count the prompts and starts that are answered while other processes want the processors."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), given.rows)
        for event, more in (("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": desk.prompt(0)})):
            desk.run(event, "first", **more)  # has the bytecode written
        with busy(given.busy):
            starts = [desk.run("SessionStart", f"start-{number}", source="startup") for number in range(given.starts)]
            prompts = [
                desk.run("UserPromptSubmit", f"prompt-{number}", prompt=desk.prompt(number))
                for number in range(given.prompts)
            ]
    lost = {"starts": sum(not said for said in starts), "prompts": sum(not said for said in prompts)}
    rows = [
        ["starts", len(starts), len(starts) - lost["starts"]],
        ["prompts", len(prompts), len(prompts) - lost["prompts"]],
    ]
    text = table(
        f"{given.rows:,} memories, {given.busy} busy processes on {os.cpu_count()} cores",
        ["", "asked", "answered"],
        rows,
    )
    bars = [
        Bar("starts without an answer", lost["starts"], 0),
        Bar("prompts without an answer", lost["prompts"], given.prompts * 0.02),
    ]
    return report(text, bars, {"lost": lost, "starts": len(starts), "prompts": len(prompts)}, given)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="memories; 10,000, or 3,000 with --busy")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--busy", type=int, default=0, help="processes that keep the machine busy")
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--starts", type=int, default=20)
    given = options(parser, tiny={"rows": 30, "rounds": 1, "prompts": 2, "starts": 1})
    given.rows = given.rows or (3_000 if given.busy else 10_000)
    return under_load(given) if given.busy else measure(given)


if __name__ == "__main__":
    sys.exit(main())
