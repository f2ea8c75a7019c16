"""Erase thousands of canaries and look at the bytes of the whole home.

`python -m tests.storage.erase_canaries` is the long version: 2,000 canaries among 20,000 other memories, three times:
all at once, with a reader of another process that is paused meanwhile, and (100 of them) one by one; then messages
and sessions.
tests/storage/test_erase.py runs a short one.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import apsw
from msgspec import Struct

import kept
from kept import journal
from kept.model import Alias, Conflict, Memory, replace
from kept.ports import ANYWHERE, Storage, Where
from kept.storage.sqlite import SqliteStorage, encoding
from kept.storage.sqlite.schema import INDEXES
from tests.behind import behind
from tests.builders import START, FakeClock, memory, stamp
from tests.storage.canaries import Aviary, found_in, runs_of


class Report(Struct, kw_only=True):
    """What one run saw."""

    canaries: int
    words: int
    found_before: int
    found_after: dict[str, int]
    erase_s: float
    pending: int
    backups_rewritten: int


def run(
    folder: Path, *, canaries: int, others: int, one_by_one: bool = False, paused_reader: bool = False, seed: int = 1
) -> Report:
    """Fill a home, erase the canaries through the facade, and search every byte of it. Raises when a promise breaks."""
    aviary, clock = Aviary(seed), FakeClock()
    home = folder / "home"
    with kept.open(project="aviary", home=home, clock=clock) as memory_:
        memory_.remember("The first ordinary memory")
    (database,) = home.glob("projects/*/kept.db")
    uids = fill(database, aviary, canaries, others)
    clock.advance(days=1)
    with kept.open(project="aviary", home=home, clock=clock) as memory_:
        memory_.remember("The first write of a day makes a backup")
        assert memory_.reinforce(1).feedback > 0
        undoable = memory_.history(1)[-1].seq
        memory_.store.backup(folder / "elsewhere.db")
    optimize(database)
    before = observe(database, uids)
    traces = aviary.traces()
    blobs, said = stored_compressed(database, uids)
    on_disk = set().union(*found_in(home, traces, blobs).values())
    lost = {trace for trace in (traces | blobs) - on_disk if trace not in said}
    assert not lost, f"{len(lost)} of {len(traces)} traces were not on disk in the first place"

    with kept.open(project="aviary", home=home, clock=clock) as memory_, reader(database, is_there=paused_reader):
        begun = time.perf_counter()
        receipts = [memory_.erase(uid) for uid in uids] if one_by_one else memory_.erase(uids)
        took = time.perf_counter() - begun
        pending = sum(receipt.reason == "pending" for receipt in receipts)
        assert pending == (len(uids) if paused_reader else 0)
        assert str(folder / "elsewhere.db") in receipts[0].message
    with kept.open(project="aviary", home=home, clock=clock) as memory_:  # opening goes on with what was pending
        assert all("erase" not in space for space in memory_.status()["spaces"])
        rewritten = 0 if paused_reader else int("taken out of 1 backup" in receipts[0].message)
        memory_.undo(undoable)
        assert memory_.get(1).feedback == 0
    check_the_rest(database, before)
    return Report(
        canaries=len(uids),
        words=len(aviary.words),
        found_before=len(traces),
        found_after={name: len(hits) for name, hits in found_in(home, traces, blobs).items()},
        erase_s=took,
        pending=pending,
        backups_rewritten=rewritten,
    )


class Talk(Struct, kw_only=True):
    """What `run_talk` saw."""

    words: int
    found_before: int
    found_after: dict[str, int]
    found: dict[str, int]


def run_talk(folder: Path, *, sessions: int = 6, seed: int = 2) -> Talk:
    """Fill a home with conversations, erase sentences, messages and sessions, and search every byte of it.

    Each session has a packed, a forked or an open transcript, a mirrored file, findings, a summary and a backup.
    """
    aviary, clock, home = Aviary(seed), FakeClock(), folder / "home"
    quoted: list[str] = []
    with kept.open(project="aviary", home=home, clock=clock, settings=kept.Settings(auto_upkeep=False)) as memory_:
        memory_.remember("The first ordinary memory")
        for number in range(sessions):
            session = memory_.session(f"s{number}")
            session.append("user", f"Hello {aviary.prose()}. We decided to use {aviary.word()} {aviary.word()} always.")
            quoted.append(f"The {aviary.word()} of {aviary.word()} is {aviary.word()}")
            session.append("user", f"{aviary.prose()}. {quoted[-1]}! {aviary.prose()}")
            session.append("tool_call", name="write", input={"text": f"{aviary.word()} {quoted[-1]}"})
            session.append("tool_result", f"Error: {aviary.word()} {aviary.word()} failed at {aviary.word()}")
            session.fork(f"s{number}-fork").append("assistant", "Innocent words of a fork")
            session.finish()
            memory_.remember(quoted[-1])
            fill_task(memory_, aviary, f"TASK-{number:03}")
            memory_.aliases.add(f"w{number}", aviary.word())
            memory_.aliases.add(f"w{number}", aviary.word())
        memory_.aliases.remove("w0")  # the journal still has it
        memory_.files.sync()
        memory_.store.backup(home / "a backup of the user.db")
    clock.advance(days=400)
    with kept.open(project="aviary", home=home, clock=clock, settings=kept.Settings(auto_upkeep=False)) as memory_:
        memory_.remember("The first write of a day makes a backup")
        memory_.session("s1").append("user", "It goes on")  # and is open again; the others are packed
        memory_.store.pack_sessions()
    traces = aviary.traces()
    before = set().union(*found_in(home, traces).values())
    with kept.open(project="aviary", home=home, clock=clock, settings=kept.Settings(auto_upkeep=False)) as memory_:
        receipts = memory_.erase([one.ref for one in memory_.list(limit=1_000) if one.content in quoted])
        for session_ in [one for one in memory_.sessions() if not one.name.endswith("-fork")]:
            for message in memory_.session(session_.name).messages()[:2]:
                receipts.append(memory_.erase(message))
            receipts.append(memory_.erase(session_))
        receipts += memory_.erase(
            [*memory_.tasks(archived=True), *(Alias(word=f"w{n}", expands_to=()) for n in range(sessions))]
        )
        assert all(receipt.reason == "erased" for receipt in receipts)
        for session_ in memory_.sessions():
            assert memory_.session(session_.name).messages()[-1].content == "Innocent words of a fork"
        assert not [
            one for examined in memory_.store.doctor(deep=True) for one in examined.findings if one.level == "problem"
        ]
    counts: dict[str, int] = {}
    for receipt in receipts:
        counts = {place: counts.get(place, 0) + receipt.found.get(place, 0) for place in {*counts, *receipt.found}}
    after = {name: len(hits) for name, hits in found_in(home, traces).items()}
    return Talk(words=len(aviary.words), found_before=len(before), found_after=after, found=counts)


def fill_task(memory_: kept.Kept, aviary: Aviary, name: str) -> None:
    """Make a task whose every text is a canary, with notes, an earlier description and a task that waits for it."""
    task = memory_.task(name, description=f"Mend the {aviary.word()} of {aviary.word()} in the {aviary.word()}")
    task.add_reasoning(f"It is the {aviary.word()} that breaks the {aviary.word()}", "look")
    memory_.task(name, description=f"Mend {aviary.word()}", acceptance_criteria=[f"{aviary.word()} is green"])
    memory_.task(f"{name}-next", description=f"Ship {aviary.word()}", blocked_by=[name])


def fill(database: Path, aviary: Aviary, canaries: int, others: int) -> list[str]:
    """Canaries and other memories, mixed, on every shelf, with a past, links, conflicts and receipts; the uids."""
    storage = SqliteStorage(database)
    added: list[Memory] = []
    every = max(1, others // canaries)
    for start in range(0, others, 500):
        with storage.writing(stamp()) as tx:
            for number in range(start, min(others, start + 500)):
                tx.add(memory(aviary.prose()), "remember")
                if number % every == 0 and len(added) < canaries:
                    added.append(tx.add(aviary.canary(), "remember"))
    with storage.writing(stamp(at=START + timedelta(hours=1))) as tx:
        for number, canary in enumerate(added):
            if number % 2:
                longer = f"{aviary.word()} {canary.content} {aviary.prose(80)}"
                canary = tx.put(replace(canary, content=longer, tags=(aviary.word(),)), "revise")
            if number % 3 == 0:
                reason = "forgotten" if number % 6 else "expired"
                canary = tx.put(replace(canary, status="archived", reason=reason, archived_at=START), "archive")
            if number % 10 == 0:
                other = added[number - 1].uid
                tx.add(Conflict(left=canary.uid, right=other, type="ambiguous", detected_at=START), "conflict")
    for canary in added[:50]:
        with storage.bookkeeping() as notes:
            assert notes is not None
            notes.count_uses([canary.id], START)
            notes.link([canary.id, 1, 2], START)
            notes.save_receipt({"query": aviary.word()}, [canary.uid], START)
    storage.close()
    return [canary.uid for canary in added]


def optimize(database: Path) -> None:
    """One large segment an index: the layout in which the most words are left behind."""
    connection = behind(database)
    connection.pragma("secure_delete", True)
    for shelf in INDEXES:
        connection.execute(f"insert into {shelf}_fts ({shelf}_fts) values ('optimize')")
    connection.close()


def stored_compressed(database: Path, uids: list[str]) -> tuple[set[bytes], bytes]:
    """Traces of what is not stored as plain text: contents, payloads, fingerprints; and what these say, as text."""
    subjects = [encoding.uid_blob(uid) for uid in uids]
    wanted, others, said = set(), set(), b""
    connection = behind(database)
    sql = "select e.subject, e.at, p.changed from events e join event_payloads p using (seq)"
    for subject, at, changed in connection.execute(sql):
        (wanted if subject in subjects else others).add(changed)
        if subject in subjects:
            name = encoding.uid_text(subject)
            said += encoding.payload_bytes(changed, name, encoding.moment(at)).lower()  # type: ignore[arg-type]
    for uid, content, fingerprint in connection.execute("select uid, content, fingerprint from memories"):
        blobs = {blob for blob in (content, fingerprint) if isinstance(blob, bytes)}
        (wanted if uid in subjects else others).update(blobs)
    connection.close()
    return runs_of(wanted) - runs_of(others), said  # type: ignore[arg-type]


class Observed(Struct):
    """What must not change for the memories that stay."""

    memories: list[Memory]
    hits: dict[str, list[int]]


def observe(database: Path, erased: list[str]) -> Observed:
    storage = SqliteStorage(database)
    gone = set(erased)
    with storage.reading() as look:
        memories = [m for m in look.select(ANYWHERE, limit=10**9) if m.uid not in gone]
    hits = {word: found_by(storage, word, gone) for word in sorted({m.content.split()[0] for m in memories[:300]})}
    storage.close()
    return Observed(memories, hits)


def found_by(storage: Storage, word: str, but: set[str]) -> list[int]:
    with storage.reading() as look:
        found = look.search([word], Where(shelf="any", scope=None), limit=10**6)
        return sorted(hit.memory.id for hit in found if hit.memory.uid not in but)


def check_the_rest(database: Path, before: Observed) -> None:
    """Everything else is there, is found, and can be undone; the journal verifies; SQLite finds the file whole."""
    storage = SqliteStorage(database)
    with storage.reading() as look:
        memories = look.select(ANYWHERE, limit=10**9)
        assert memories[:-1] == before.memories[:-1]  # the very first was changed on purpose
        assert memories[-1].id == before.memories[-1].id
        assert journal.broken_links(look.events()) == []
    for word, ids in before.hits.items():
        assert found_by(storage, word, set()) == ids
    storage.close()
    connection = behind(database)
    assert connection.pragma("integrity_check") == "ok"
    for shelf in INDEXES:
        connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('integrity-check', 1)")
    for shelf in ("live", "library", "archive"):
        assert stray_separators(connection, shelf) == []
    connection.close()


def stray_separators(connection: apsw.Connection, shelf: str) -> list[bytes]:
    """Separators of an index that begin no word of its rows, told from the rows themselves."""
    rows = connection.execute(f"select words, tag_words, file_words, source_words, kind_words from {shelf}_rows")
    words = {word.encode() for row in rows for column in row for word in str(column).split()}
    beginnings = {b""} | {word[:end] for word in words for end in range(len(word) + 1)}
    terms = [bytes(term)[1:].rstrip(b"\0") for (term,) in connection.execute(f"select term from {shelf}_fts_idx")]
    return [term for term in terms if term not in beginnings]


@contextmanager
def reader(database: Path, *, is_there: bool) -> Iterator[None]:
    if not is_there:
        yield
        return
    command = [sys.executable, "-m", "tests.storage.paused_reader", str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        try:
            yield
        finally:
            process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--canaries", type=int, default=2_000)
    parser.add_argument("--others", type=int, default=20_000)
    options = parser.parse_args()
    failed = False
    for name, canaries, how in (
        ("at once", options.canaries, {}),
        ("paused reader", options.canaries, {"paused_reader": True}),
        ("one by one", options.canaries // 20, {"one_by_one": True}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            report = run(Path(folder), canaries=canaries, others=options.others, **how)
        print(
            f"{name}: {report.canaries} canaries, {report.words} words, {report.found_before} traces found before, "
            f"{sum(report.found_after.values())} after; erased in {report.erase_s:.2f} s, {report.pending} pending"
        )
        for file, traces in report.found_after.items():
            failed = True
            print(f"  {file}: {traces}")
    with tempfile.TemporaryDirectory() as folder:
        talk = run_talk(Path(folder), sessions=options.canaries // 40)
    print(f"conversations: {talk.words} words, {talk.found_before} traces found before, {talk.found_after} after")
    sys.exit(failed or bool(talk.found_after))


if __name__ == "__main__":
    main()
