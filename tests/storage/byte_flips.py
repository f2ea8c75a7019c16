"""Flip random bytes of a store and ask it everything: no wrong answer without an error, and `doctor` knows.

    python -m tests.storage.byte_flips --flips 10000

One trial: a copy of a store that was closed well (its database) or whose process was killed (its WAL), one to three
flipped bytes, all questions. Every answer must be the right one or an error of Kept, and where there is an error
`examine` must report a problem. Links, which nothing proves, may be dropped with a warning when a file is opened whose
pages do not fit. In every tenth damaged trial `repair` is called: then the file is whole again, and whatever is missing
was named, or it says that it could not repair it, and the backup that doctor names brings everything back. Usage
counts, links and receipts are notes that may be lost with the end of a WAL; all else may not. Two thirds of the flips
fall anywhere, one third into the headers and directories of pages, where they do most harm.
"""

import argparse
import logging
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

from msgspec import Struct

from kept.errors import Corrupt, KeptError
from kept.model import (
    SMALL_NOUNS,
    Alias,
    Allowance,
    Conflict,
    Memory,
    Message,
    Pause,
    SessionRecord,
    Source,
    TaskRecord,
    replace,
)
from kept.ports import ANYWHERE, Found, Reader, Where
from kept.storage.sqlite import SqliteStorage, acknowledged, backup, health, restore
from tests.builders import START, memory, stamp

N_MEMORIES = 160
MANY = 10_000
WORDS = [
    f"{stem}{number}" for stem in "auth token cache schema worker queue deploy mirror".split() for number in range(12)
]
SHELVES = (Where(), Where(scope="items"), Where(shelf="archive"), Where(shelf="forgotten"), ANYWHERE)
PAGE, WAL_HEADER, FRAME_HEADER = 4096, 32, 24
REPAIR_EVERY = 10
TELL_EVERY = 250

Question = Callable[[Reader], Any]


class Trial(Struct):
    """What one flip led to."""

    outcome: str
    failures: list[str]


class Stores(Struct):
    """Two stores with the same past: one closed well, one left by a process that was killed, its WAL full."""

    closed: Path
    killed: Path
    backup: Path
    truth: dict[str, Any]
    questions: dict[str, Question]


def build(folder: Path) -> Stores:
    """The stores that are damaged copy by copy, and the right answer to every question."""
    closed, killed = folder / "closed", folder / "killed"
    for place in (closed, killed):
        place.mkdir(mode=0o700, parents=True)
    storage = SqliteStorage(closed / "kept.db", "project/p1")
    _live_a_little(storage, random.Random(1), range(N_MEMORIES // 2))
    storage.close()
    storage = SqliteStorage(closed / "kept.db")
    _live_a_little(storage, random.Random(2), range(N_MEMORIES // 2, N_MEMORIES))
    for suffix in ("", "-wal", ".lock"):
        shutil.copyfile(f"{closed / 'kept.db'}{suffix}", f"{killed / 'kept.db'}{suffix}")
    # What the killed one's note says of its database must also hold for every copy of it: see `_copy`.
    questions = _questions(storage)
    truth, errors = ask(storage, questions)
    assert not errors
    storage.back_up(folder / "backup.db")
    storage.close()
    return Stores(closed, killed, folder / "backup.db", truth, questions)


def _live_a_little(storage: SqliteStorage, rng: random.Random, numbers: range) -> None:
    added: list[Memory] = []
    for number in numbers:
        fields: dict[str, Any] = {
            "tags": tuple(rng.sample(WORDS, rng.randint(0, 2))),
            "files": (f"src/{rng.choice(WORDS)}.py",) if rng.random() < 0.3 else (),
            "source": Source(agent=rng.choice(["codex", "claude"]), session=f"s{number % 7}"),
            "scope": "items" if rng.random() < 0.1 else "memory",
            "data": {"n": number} if rng.random() < 0.2 else None,
        }
        content = f"Memory {number}: {' '.join(rng.choices(WORDS, k=rng.randint(4, 30)))}"
        with storage.writing(stamp()) as tx:
            added.append(tx.add(memory(content, space=storage.space, **fields), "remember"))
            if rng.random() < 0.3:
                added[-1] = tx.put(replace(added[-1], feedback=3, last_hit_at=START), "reinforce")
            if rng.random() < 0.2:
                reason = rng.choice(["evicted", "forgotten"])
                added[-1] = tx.put(replace(added[-1], status="archived", reason=reason, archived_at=START), "archive")
    with storage.writing(stamp()) as tx:
        for left, right in zip(added[10:20:2], added[11:20:2], strict=True):
            tx.add(Conflict(left=left.uid, right=right.uid, type="ambiguous", detected_at=START), "conflict")
        tx.add(Alias(word=f"word{numbers[0]}", expands_to=("token1", "login")), "alias")
        for gone in added[3:6]:
            tx.erase(gone)
    assert storage.scrub().is_done
    for name in (f"talk{numbers[0]}", f"old{numbers[0]}"):
        with storage.writing(stamp()) as tx:
            tx.add(SessionRecord(name=name, agent="codex", started_at=START), "session")
            said = [
                Message(id=f"m{n}", role="user", session=name, content=" ".join(rng.choices(WORDS, k=12)), at=START)
                for n in range(20)
            ]
            tx.append(said)
    with storage.writing(stamp()) as tx:
        tx.pack(old := f"old{numbers[0]}")
        session = tx.session(old)
        assert session is not None
        tx.put(replace(session, packed_at=START), "pack")
        tx.add(Allowance(digest=f"{numbers[0]:064x}"), "allow")
        tx.add(TaskRecord(name=f"TASK-{numbers[0]:03d}", created_at=START), "task")
        tx.add(Pause(session=f"talk{numbers[0]}", since=START), "pause")
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.count_uses([m.id for m in added[20:30]], START)
        notes.link([m.id for m in added[20:25]], START)
        notes.save_receipt({"query": "auth"}, [added[20].uid], START)
        notes.count({"refused:chatter": 3})


def _questions(storage: SqliteStorage) -> dict[str, Question]:
    """Everything a reader can be asked, each question apart."""
    with storage.reading() as reader:
        last = max(m.id for m in reader.select(ANYWHERE, limit=MANY))
        subjects = sorted({event.subject for event in reader.events()})[::3]
    questions: dict[str, Question] = {
        "events": methodcaller("events"),
        "receipt": methodcaller("receipt"),
        "counters": methodcaller("counters"),
        "message statistics": methodcaller("message_statistics", WORDS),
    }
    for noun in SMALL_NOUNS:
        questions[f"all {noun.noun}"] = methodcaller("all", noun)
    for half in (0, N_MEMORIES // 2):
        for name in (f"talk{half}", f"old{half}"):
            questions[f"session {name}"] = methodcaller("session", name)
            questions[f"messages {name}"] = methodcaller("messages", name)
            questions[f"last number {name}"] = methodcaller("last_number", name)
            questions[f"place {name}"] = methodcaller("messages_at", [(name, 3), (name, 99)])
    for word in WORDS[::16]:
        questions[f"messages with {word}"] = methodcaller("search_messages", [word], limit=MANY)
    for id in range(1, last + 2):
        questions[f"get {id}"] = methodcaller("get", Memory, id)
        questions[f"links {id}"] = methodcaller("links", id)
    for where in SHELVES:
        name = f"{where.shelf} {where.scope}"
        questions[f"select {name}"] = methodcaller("select", where, limit=MANY)
        questions[f"count {name}"] = methodcaller("count", where)
        questions[f"statistics {name}"] = methodcaller("statistics", WORDS, where)
        questions[f"vocabulary {name}"] = methodcaller("vocabulary", "", where, limit=MANY)
        for word in (*WORDS[::8], "codex"):
            questions[f"search {word} {name}"] = methodcaller("search", [word], where, limit=MANY)
    for session in range(7):
        questions[f"session {session}"] = methodcaller("select", Where(session=f"s{session}"), limit=MANY)
    for subject in subjects:
        questions[f"history {subject}"] = methodcaller("events", subject=subject)
        questions[f"uid {subject}"] = methodcaller("select", Where(uid=subject, shelf="any", scope=None))
    return questions


def ask(storage: SqliteStorage, questions: dict[str, Question]) -> tuple[dict[str, Any], dict[str, KeptError]]:
    """The answers, and the errors that were given in the place of one."""
    answers: dict[str, Any] = {}
    errors: dict[str, KeptError] = {}
    waiting = list(questions.items())
    while waiting:
        name = "begin"
        try:
            with storage.reading() as reader:
                while waiting:
                    name, question = waiting.pop()
                    answers[name] = question(reader)
        except KeptError as error:
            errors[name] = error
            if name == "begin":
                break  # no question can be asked any more
    return answers, errors


def flip(file: Path, rng: random.Random, *, is_wal: bool) -> list[int]:
    """Change one to three bytes, and say which."""
    content = bytearray(file.read_bytes())
    flipped = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 2 / 3:
            position = rng.randrange(len(content))
        elif is_wal:
            frame = WAL_HEADER + rng.randrange(len(content) // (PAGE + FRAME_HEADER)) * (PAGE + FRAME_HEADER)
            position = rng.choice([rng.randrange(WAL_HEADER), frame + rng.randrange(FRAME_HEADER + 100)])
        else:
            position = rng.randrange(len(content) // PAGE) * PAGE + rng.randrange(100)
        content[position] ^= rng.randint(1, 255)
        flipped.append(position)
    file.write_bytes(content)
    return flipped


def trial(stores: Stores, folder: Path, rng: random.Random, *, is_wal: bool, with_repair: bool) -> Trial:
    """Damage a copy, ask everything, and judge the answers."""
    path = _copy(stores.killed if is_wal else stores.closed, folder)
    target = Path(f"{path}-wal") if is_wal else path
    flip(target, rng, is_wal=is_wal)
    size, damaged_bytes = path.stat().st_size, target.read_bytes()
    failures: list[str] = []
    wrong: list[str] = []
    errors: dict[str, KeptError] = {}
    warnings: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = warnings.append  # type: ignore[method-assign]
    logging.getLogger("kept").addHandler(handler)
    try:
        storage = SqliteStorage(path)
        try:
            answers, errors = ask(storage, stores.questions)
        finally:
            storage.close()
        are_links_dropped = any("Dropped" in str(warning.args) and "links" in str(warning.args) for warning in warnings)
        wrong = [
            name
            for name, answer in answers.items()
            if not _is_right(name, answer, stores.truth[name], is_wal)
            and not (are_links_dropped and name.startswith("links") and answer == [])
        ]
        outcome = "an error at a question" if errors else "no harm"
    except KeptError as error:
        outcome = "an error at opening"
        errors["open"] = error
        if isinstance(error, Corrupt) and target.read_bytes() != damaged_bytes:
            failures.append("what could not be opened was changed")
    finally:
        logging.getLogger("kept").removeHandler(handler)
    if path.stat().st_size < size:
        failures.append("the database has become smaller")
    if wrong:
        failures.append(f"wrong, without an error: {wrong[:5]}")
    if wrong or errors:
        findings = health.examine(path, now=START)
        problems = [finding for finding in findings if finding.level == "problem"]
        if not problems:
            failures.append(f"doctor finds nothing; errors: {errors}")
        if with_repair:
            failures += _judge_repair(path, stores)
    return Trial(outcome, failures)


def _is_right(name: str, answer: Any, truth: Any, is_wal: bool) -> bool:
    """Usage that recall noted in the last transactions is not acknowledged: it may be lost with the end of a WAL."""
    if not is_wal:
        return bool(answer == truth)
    return name.startswith(("links", "receipt", "counters")) or bool(_without_usage(answer) == _without_usage(truth))


def _copy(store: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    for file in store.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
        (folder / file.name).chmod(0o600)
    path = folder / "kept.db"
    lock = folder / "kept.db.lock"
    position = acknowledged_in(lock)
    if position:  # the note names an inode, and the copy has another
        acknowledged.note(path, path.stat().st_ino, *position)
    return path


def acknowledged_in(lock: Path) -> list[int]:
    """The numbers of the last event and message that were acknowledged, of whichever file."""
    return [int(line.split()[0]) for line in re.findall(rb"\d+ \d+", lock.read_bytes()[64:192])]


def _judge_repair(path: Path, stores: Stores) -> list[str]:
    """Whether the store works again, and whether all that it lacks was named; if not repaired, after a restore."""
    damaged = path.read_bytes()
    findings = health.repair(path, now=START)
    failures = []
    if any(finding.message.startswith("Not repaired") for finding in findings):
        findings = []
        failures += _restore_named_backup(path, stores)
    copies = list(path.parent.glob("kept.db.damaged-1"))
    if copies and copies[0].read_bytes() != damaged:
        failures.append("the copy is not the damaged file")
    left = [finding for finding in health.examine(path, now=START, deep=True) if finding.level == "problem"]
    if left:
        failures.append(f"after the repair there are problems: {left}")
    try:
        storage = SqliteStorage(path)
    except KeptError as error:
        return [*failures, f"after the repair it cannot be opened: {error}"]
    try:
        answers, errors = ask(storage, stores.questions)
    finally:
        storage.close()
    if errors:
        failures.append(f"after the repair there are errors: {errors}")
    is_loss_named = any(finding.level == "problem" for finding in findings)
    for name, answer in answers.items():
        is_asked_for = not name.startswith(("links", "receipt", "counters", "events"))
        if is_asked_for and not is_loss_named and _without_usage(answer) != _without_usage(stores.truth[name]):
            failures.append(f"after the repair {name} differs, and nothing was said: {findings}")
            break
    return failures


def _restore_named_backup(path: Path, stores: Stores) -> list[str]:
    """Put a backup beside the damaged file, and restore it if doctor names it."""
    copy = backup.make_folder(path) / "2026-03-01.db"
    copy.write_bytes(stores.backup.read_bytes())
    named = [f"newest good backup is {copy}" in finding.message for finding in health.examine(path, now=START)]
    if not any(named):
        return ["doctor does not name the backup"]
    restore.replace_damaged(path, copy, space="project/p1", wait_s=1, now=START)
    return []


def _without_usage(answer: Any) -> Any:
    match answer:
        case Memory():
            return replace(answer, use_count=0, last_used_at=None)
        case list():
            return [_without_usage(part) for part in answer]
        case Found():
            return (_without_usage(answer.memory), answer.prepared)
    return answer


def run(flips: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Half of the trials in the database, half in the WAL. What they led to, and what must not have happened."""
    # Files in memory, where there are such: thousands of copies need no disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        return _run(flips, seed, Path(folder))


def _run(flips: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    stores = build(folder)
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    damaged = 0
    for number in range(flips):
        is_wal = number % 2 == 1
        with_repair = damaged % REPAIR_EVERY == 0
        done = trial(
            stores, folder / "trial", random.Random(f"{seed}-{number}"), is_wal=is_wal, with_repair=with_repair
        )
        damaged += done.outcome != "no harm"
        outcomes[f"{'wal' if is_wal else 'database'}: {done.outcome}"] += 1
        for failure in done.failures:
            failures.append(f"flip {number} (seed {seed}): {failure}")
            print(failures[-1], file=sys.stderr, flush=True)
        if number % TELL_EVERY == TELL_EVERY - 1:
            print(f"{number + 1:7,} of {flips:,} flips, {len(failures)} failures", file=sys.stderr, flush=True)
    return outcomes, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    outcomes, failures = run(options.flips, options.seed)
    for outcome, number in sorted(outcomes.items()):
        print(f"{number:7,}  {outcome}")
    print(f"{len(failures):7,}  failures (seed {options.seed})")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
