"""What a prompt costs when `kept-hook` looks for what fits: processor time, against importing json and apsw.

    python -m bench.hook [--rows 10000] [--rounds 15] [--tiny] [--json]

Both start an interpreter, in turns, with bytecode at hand. The hook also reads its input, opens the store, writes the
answer and its receipt. docs/benchmarks.md says what is left to save.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import kept
from bench.corpora import docstrings
from bench.measure import Bar, options, p50, report, table

LIMIT = 4.0
SIDES = {
    "import json, apsw": "import json, apsw",
    "kept-hook, a prompt": "from kept.entrypoints.hook import main; main()",
}


def cpu_ms(program: str, given: bytes, env: dict[str, str]) -> tuple[float, bytes]:
    """Milliseconds of processor time of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", program, "claude-code", "UserPromptSubmit"]
    done = subprocess.run(command, input=given, env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = options(parser, tiny={"rows": 30, "rounds": 1})
    taken: dict[str, list[float]] = {name: [] for name in SIDES}
    answers = 0
    with tempfile.TemporaryDirectory() as folder:
        project, home = Path(folder) / "project", Path(folder) / "home"
        project.mkdir()
        with kept.open(project=project, home=home) as memory:
            contents = [one.content[:480] for one in docstrings(given.rows)]
            memory.remember_many([kept.Draft(content=content) for content in contents])
        # An installed program has its bytecode.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env |= {"KEPT_HOME": str(home), "KEPT_HOOK_LIMIT_MS": "20000", "PYTHONPYCACHEPREFIX": str(Path(folder) / "pyc")}
        for number in range(given.rounds + 1):
            words = contents[number * 7 % len(contents)].split()[:12]
            prompt = {"session_id": "bench", "cwd": str(project), "prompt": " ".join(words)}
            for name, program in SIDES.items():
                used, said = cpu_ms(program, json.dumps(prompt).encode(), env)
                if number:  # the first round fills the caches
                    taken[name].append(used)
                    answers += bool(said)
    bare, hook = taken.values()
    ratio = p50([own / base for base, own in zip(bare, hook, strict=True)])
    rows = [[name, p50(values)] for name, values in taken.items()]
    text = table(f"{given.rows:,} memories; {answers} of {given.rounds} prompts answered", ["process", "CPU ms"], rows)
    figures = {"cpu_ms": taken, "ratio": ratio, "answers": answers}
    return report(text, [Bar("a prompt over its libraries", ratio, LIMIT)], figures, given)


if __name__ == "__main__":
    sys.exit(main())
