"""kill -9 at any point of append, checkpoint, compact and finish: what was said is in the rows and in the mirror.

    python -m tests.crash.session_kills --kills 300

One process after the other talks in the same session and says after each call what was acknowledged; it is killed at a
random moment. Afterwards every acknowledged message is a row; once the session is opened again, it is a line of the
mirror, in order and whole; and the session has every finding of one that said the same and was never killed.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kept
from kept.model import Message
from kept.writing.extraction.conversation import MAX_PROPOSALS

SETTINGS = {"compaction_threshold_tokens": 1_500, "flush_threshold_tokens": 1_000}
SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def talk(home: str, life: int) -> None:
    """Say things until somebody ends it, and tell on standard output what was acknowledged."""
    with kept.open(home=home, project="p", settings=SETTINGS) as memory:
        session = memory.session("s")
        for number in range(10_000):
            message = Message(id=f"{life}-{number}", role="user", content=sentence(life, number))
            added = session.extend([message])
            print("said", message.id if added else "", flush=True)
            if number % 7 == 3:
                session.checkpoint()
            if number % 11 == 5:
                session.compact()
            if number % 13 == 9:
                session.finish()


def sentence(life: int, number: int) -> str:
    if number % 5 == 0:
        # No two decisions share a word, or the later one would rightly be taken for the last word on the same thing.
        words = ["".join(random.Random(f"{life} {number} {place}").choices(SYLLABLES, k=4)) for place in range(6)]
        return f"We decided to keep {words[0]} {words[1]} in {words[2]} {words[3]} for {words[4]} {words[5]}."
    return f"One moment, I am looking at part {number} of life {life}."


def run(kills: int, seed: int = 1) -> tuple[int, list[str]]:
    """How many messages were acknowledged, and what is wrong."""
    rng = random.Random(seed)
    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for life in range(kills):
            command = [sys.executable, "-m", "tests.crash.session_kills", "--talk", folder, str(life)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as child:
                assert child.stdout is not None
                first = child.stdout.readline()  # it is under way
                time.sleep(rng.random() * 0.4)
                child.kill()
                rest = child.stdout.read()
            lines = (first + rest).splitlines(keepends=True)
            said += [line.split()[1] for line in lines if line.startswith("said ") and line.endswith("\n")]
        return len(said), faults(folder, said)


def faults(folder: str, said: list[str]) -> list[str]:
    """What is missing or wrong after all that."""
    with kept.open(home=folder, project="p", settings=SETTINGS) as memory:
        session = memory.session("s")
        session.finish()
        messages = session.messages()
        findings = {finding.content for finding in session.findings()}
    rows = {message.id: message for message in messages}
    (mirror,) = Path(folder).rglob("sessions/s.jsonl")
    lines = [json.loads(line)["id"] for line in mirror.read_text("utf-8").splitlines()]
    wrong = [f"{id} was acknowledged and is no row" for id in said if id not in rows]
    if lines != [message.id for message in messages]:
        wrong.append(f"the mirror has {len(lines)} lines, the session {len(messages)} messages, or another order")
    if [message.n for message in messages] != list(range(1, len(messages) + 1)):
        wrong.append("the numbers of the messages have gaps")
    expected = undisturbed([message for message in messages if message.role != "summary"])
    decided = [message.content for message in messages if message.content.startswith("We decided")]
    if len([one for one in expected if one.startswith("We decided")]) < min(len(decided), MAX_PROPOSALS):
        wrong.append(f"of {len(decided)} decisions, only {len(expected)} findings came")
    return wrong + [f"no finding: {one}" for one in expected - findings]


def undisturbed(messages: list[Message]) -> set[str]:
    """Return the findings of a session that says the same in one process."""
    with tempfile.TemporaryDirectory() as folder, kept.open(home=folder, project="p") as memory:
        session = memory.session("s")
        session.extend([Message(id=one.id, role=one.role, content=one.content, at=one.at) for one in messages])
        session.finish()
        return {finding.content for finding in session.findings()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--talk"]:
        talk(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    acknowledged, found = run(options.kills, options.seed)
    took = time.monotonic() - started
    print(f"{options.kills} kills, {acknowledged} acknowledged messages, {len(found)} faults, {took:.0f} s")
    print("\n".join(found[:20]))
    sys.exit(bool(found))
