"""How long redaction takes: CPU milliseconds per KB on ordinary text, and CPU seconds for 1 MB of the worst input.

    python -m bench.redact_speed [--tiny] [--json]

*first* is the first call of a process, which compiles the patterns it needs. The worst input is a few characters,
repeated: each is the unit that costs some rule the most.
"""

import argparse
import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from time import process_time

import kept
from bench.measure import options, report, table

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
WORST = [
    "hunter2 as the password ",
    "pw=a1b2c3d4 ",
    "zip -P ",
    "?key=",
    "sign in with ",
    "auth=(",
    "password is ",
    "password for a b c d e f g h ",
    "authorization: bearer x",
    "curl -u ",
    "curl -u 'a b' ",
    "password: a-b-c-d ",
    "token = a.b.c ",
    "://a:b@c ",
    "sk-",
    "a-",
    "\\n",
    "ghp\\_",
    "the secret between a b c d is ",
    "password changed from ",
    "\u200b",
    "密码是",
    "4111 1111 1111 1111 ",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worst-chars", type=int, default=1_000_000, help="length of the worst input")
    parser.add_argument("--chars", type=int, default=100_000, help="length of ordinary text, at most")
    given = options(parser, tiny={"rounds": 1, "worst_chars": 2_000, "chars": 2_000})
    prose = " ".join(inspect.getdoc(getattr(str, name)) or "" for name in dir(str)) + (inspect.getdoc(textwrap) or "")
    code = Path(inspect.__file__).read_text("utf-8")
    corpora = {
        "English prose": prose,
        "Python code": code,
        "German prose": (GOLDEN / "german.txt").read_text("utf-8"),
        "Chinese prose": (GOLDEN / "chinese.txt").read_text("utf-8"),
        "code inside JSON": json.dumps({"stdout": code}),
    }
    figures: dict[str, float] = {"first call of a process, ms": first_call_ms(given.rounds)}
    for name, corpus in corpora.items():
        cut = corpus[: given.chars]
        figures[f"{name}, ms per KB"] = best_ms(cut, given.rounds) / (len(cut) / 1000)
    figures["300 characters, ms"] = best_ms(prose[:300], given.rounds)
    for unit in WORST:
        repeated = unit * (given.worst_chars // len(unit))
        figures[f"{unit!r}, s per MB"] = seconds(repeated) * 1_000_000 / len(repeated)
    return report(table("Redaction, processor time", ("", ""), figures.items()), [], figures, given)


def first_call_ms(rounds: int) -> float:
    program = (
        "import msgspec, time; start = time.process_time()\n"
        "from kept.writing.redact import redact\n"
        "redact('the staging password is hunter2hunter, see https://internal.test')\n"
        "print((time.process_time() - start) * 1000)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(rounds))


def best_ms(text: str, rounds: int) -> float:
    kept.redact(text)
    return min(seconds(text) for _ in range(rounds)) * 1000


def seconds(text: str) -> float:
    start = process_time()
    kept.redact(text)
    return process_time() - start


if __name__ == "__main__":
    sys.exit(main())
