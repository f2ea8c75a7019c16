"""Everything fails once: each statement, each write, each sync of each operation (B21, C30).

    python -m tests.crash.faults [--stride 1]

For every operation and every k, the k-th SQL statement fails, or is interrupted by Ctrl-C; the k-th write to the disk
fails, or finds the disk full, which then stays full; the k-th sync or truncation fails. Afterwards: if the call
returned, its change is there; if it raised, nothing of it is. The error is one of Kept's, the turn is free, the same
storage object goes on working, and the file is whole, also for somebody who opens it after a kill at that moment.

Two cases in which a call raises although its change is there are known, and told apart. When the sync of a commit
fails, the whole transaction is in the WAL: nobody sees it now, and the next write replaces it, but after a crash it
may be found, whole. And what is done in several transactions (making a file, noting use, scrubbing, backing up)
may stop between two of them.
"""

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

import apsw
from msgspec import Struct

from kept.errors import KeptError
from kept.storage.lock import Turns
from tests.builders import memory, stamp
from tests.crash.checks import faults_of
from tests.crash.operations import OPERATIONS, Bench, Operation, copy_files, make_templates, state_of
from tests.crash.scratch import scratch_folder
from tests.crash.simulated_disk import Happened, Refusal, TappedDisk, on_connect

Kind = Literal["statement", "interrupt", "write", "full disk", "sync", "truncate"]
KINDS: tuple[Kind, ...] = ("statement", "interrupt", "write", "full disk", "sync", "truncate")


class Fault:
    """Lets the k-th thing of a kind fail, once it is armed."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.has_struck = False
        self._left = 0

    def arm(self, k: int) -> None:
        self._left = k

    def disarm(self) -> None:
        self._left = 0

    def watch(self, connection: apsw.Connection) -> None:
        """For every connection that the storage opens."""
        connection.exec_trace = self._before_statement

    def before(self, happened: Happened) -> Refusal | None:
        """For everything that reaches the disk."""
        wanted = "write" if self.kind == "full disk" else self.kind
        if happened.kind != wanted or not self._strikes():
            return None
        if self.kind == "full disk":
            self._left = 1  # it stays full
            return Refusal(_fail_with(apsw.FullError("no room")), len(happened.data) // 2)
        return Refusal(_fail_with(apsw.IOError("the disk does not answer")))

    def _before_statement(self, cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        if self.kind in ("statement", "interrupt") and self._strikes():
            raise apsw.SQLError("injected") if self.kind == "statement" else KeyboardInterrupt
        return True

    def _strikes(self) -> bool:
        if not self._left:
            return False
        self._left -= 1
        if self._left:
            return False
        self.has_struck = True
        return True


def _fail_with(error: apsw.Error) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


class Trial:
    """One operation with one fault, and everything that has to be true afterwards."""

    def __init__(self, folder: Path, templates: Path, operation: Operation, kind: Kind) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        copy_files(templates / operation.template, folder)
        self.problems: list[str] = []
        self._path = folder / "kept.db"
        self._operation = operation
        self._fault = Fault(kind)

    def run(self, k: int, expected: str) -> str | None:
        """Let the k-th one fail and say how that ended; None when the operation was over before that."""
        with TappedDisk(self._fault.before) as disk, on_connect(self._fault.watch):
            bench = Bench(self._path, disk.vfs)
            self._operation.prepare(bench)
            # A file that is only now being made or opened is not looked at: that alone would heal it.
            before = state_of(self._path) if self._operation.is_open else expected
            error = self._strike(bench, k)
            if not self._fault.has_struck:
                bench.close()
                return None
            copy_files(self._path.parent, self._path.parent / "killed")
            now = state_of(self._path) if self._operation.is_open else expected
            outcome = self._judge(error, before, now, expected)
            outcome += self._judge_after_a_kill(error, now, expected)
            self._go_on(bench, is_to_do=now == before and now != expected, expected=expected)
        return outcome

    def _strike(self, bench: Bench, k: int) -> BaseException | None:
        self._fault.arm(k)
        try:
            self._operation.act(bench)
        except (Exception, KeyboardInterrupt) as error:
            return error
        finally:
            self._fault.disarm()
        return None

    def _judge(self, error: BaseException | None, before: str, now: str, expected: str) -> str:
        if now not in (before, expected):
            self.problems.append("it is there in part")
        if error is None:
            if now == expected:
                return "returned"
            if not self._operation.may_be_dropped or self._fault.kind != "full disk":
                self.problems.append("it returned, and is not there")
            return "returned, and was dropped"
        if not isinstance(error, KeyboardInterrupt if self._fault.kind == "interrupt" else KeptError):
            self.problems.append(f"not an error of Kept: {error!r}")
        if now != expected or before == expected:
            return "raised"
        if self._operation.is_one_transaction:
            self.problems.append(f"it raised {error!r}, and is there")
        return "raised, and is there"

    def _judge_after_a_kill(self, error: BaseException | None, now: str, expected: str) -> str:
        killed = self._path.parent / "killed" / "kept.db"
        if faults := faults_of(killed):
            self.problems.append(f"after a kill: {faults[0]}")
            return ""
        found = state_of(killed)
        if found == now or (error is not None and found == expected and self._fault.kind == "sync"):
            return "" if found == now else ", and is there after a crash"
        self.problems.append("after a kill it is in another state")
        return ""

    def _go_on(self, bench: Bench, *, is_to_do: bool, expected: str) -> None:
        """The turn is free, the same storage does now what it could not do then, and more, and the file is whole."""
        turns = Turns(self._path.with_name("kept.db.lock"))
        if turns.is_taken():
            self.problems.append("the turn was not ended")
            return
        turns.close()
        try:
            if is_to_do:
                self._operation.act(bench)
                if state_of(self._path) != expected:
                    self.problems.append("the second try did something else")
            with bench.storage.writing(stamp("later")) as tx:
                tx.add(memory("life goes on after a fault", uid="later"), "remember")
            bench.close()
        except KeptError as error:
            self.problems.append(f"the storage cannot go on: {error!r}")
        self.problems += [f"in the end: {fault}" for fault in faults_of(self._path)]


class Report(Struct):
    """What the faults did: how many of each outcome, and what was wrong."""

    outcomes: Counter[tuple[str, Kind, str]]
    problems: list[str]

    def __str__(self) -> str:
        lines = []
        for name in OPERATIONS:
            for kind in KINDS:
                counts = {outcome: n for (op, k, outcome), n in self.outcomes.items() if (op, k) == (name, kind)}
                if counts:
                    told = "; ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
                    lines.append(f"{name:8} {kind:9} {sum(counts.values()):3}: {told}")
        lines.append(f"{self.outcomes.total()} faults, {len(self.problems)} problems")
        return "\n".join(lines + self.problems[:20])


def run(folder: Path, *, stride: int = 1) -> Report:
    """Try every operation with every kind of fault at every `stride`-th place; syncs and truncations, at all."""
    templates = folder / "templates"
    templates.mkdir()
    make_templates(templates)
    report = Report(Counter(), [])
    for name, operation in OPERATIONS.items():
        expected = _state_without_a_fault(folder / "trial", templates, operation)
        for kind in KINDS:
            few = kind in ("sync", "truncate")
            for k in range(1, 10_000, 1 if few else stride):
                trial = Trial(folder / "trial", templates, operation, kind)
                outcome = trial.run(k, expected)
                if outcome is None:
                    break
                report.outcomes[name, kind, outcome] += 1
                report.problems += [f"{name}, {kind} {k}: {problem}" for problem in trial.problems]
    return report


def _state_without_a_fault(folder: Path, templates: Path, operation: Operation) -> str:
    assert Trial(folder, templates, operation, "sync").run(10_000, "") is None
    return state_of(folder / "kept.db")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="try only every so manyth statement and write")
    options = parser.parse_args()
    started = time.monotonic()
    with scratch_folder() as folder:
        report = run(folder, stride=options.stride)
    print(report)
    print(f"{time.monotonic() - started:.0f} s")
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main())
