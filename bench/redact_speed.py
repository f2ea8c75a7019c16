"""How long redaction takes: CPU milliseconds per KB on ordinary text, and CPU seconds for 1 MB of the worst input.

Run it as `python -m bench.redact_speed`. *first* is what the first call of a process pays to compile what it needs.
The worst input is a few characters, repeated: each is the unit that costs some rule the most.
"""

import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from time import process_time

from kept.writing.redact import redact

ROUNDS = 5
MEGABYTE = 1_000_000
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
    "://a:b@c ",
    "sk-",
    "a-",
    "\\n",
    "\u200b",
    "密码是",
    "4111 1111 1111 1111 ",
]


def main() -> None:
    prose = " ".join(inspect.getdoc(getattr(str, name)) or "" for name in dir(str)) + (inspect.getdoc(textwrap) or "")
    code = Path(inspect.__file__).read_text("utf-8")
    corpora = {
        "English prose": prose,
        "Python code": code,
        "German prose": (GOLDEN / "german.txt").read_text("utf-8"),
        "Chinese prose": (GOLDEN / "chinese.txt").read_text("utf-8"),
        "code inside JSON": json.dumps({"stdout": code}),
    }
    print(f"first call of a process: {first_call_ms():.1f} ms of CPU, imports of redaction included")
    for name, corpus in corpora.items():
        print(f"{name:>28}: {best_ms(corpus[:100_000]) / (len(corpus[:100_000]) / 1000):.3f} ms per KB")
    print(f"{'300 characters':>28}: {best_ms(prose[:300]):.3f} ms")
    for unit in WORST:
        print(f"{unit!r:>34}: {seconds(unit * (MEGABYTE // len(unit))):.2f} s per MB")


def first_call_ms() -> float:
    program = (
        "import msgspec, time; start = time.process_time()\n"
        "from kept.writing.redact import redact\n"
        "redact('the staging password is hunter2hunter, see https://internal.test')\n"
        "print((time.process_time() - start) * 1000)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(ROUNDS))


def best_ms(text: str) -> float:
    redact(text)
    return min(seconds(text) for _ in range(ROUNDS)) * 1000


def seconds(text: str) -> float:
    start = process_time()
    redact(text)
    return process_time() - start


if __name__ == "__main__":
    main()
