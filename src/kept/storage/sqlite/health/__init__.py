"""Examine a SQLite space and repair it: the door for `kept doctor` and `kept doctor --fix`.

`examine` runs the checks (check.py, history.py) and changes nothing; of a file that only a backup can bring back, it
also says which backup that is and what is newer (fallback.py). `repair` (recovery.py) corrects in place whatever can be
proved right or made again. Both answer with findings.
"""

from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from kept.storage.checkup import RESTORE, Finding
from kept.storage.sqlite.health.check import DONE_BY_FIX, run_checks
from kept.storage.sqlite.health.fallback import way_back
from kept.storage.sqlite.health.recovery import repair, seal_if_whole

__all__ = ["examine", "repair", "seal_if_whole"]


def examine(path: Path, *, now: datetime, deep: bool = False) -> list[Finding]:
    """What is wrong with the file, what is in order, and the way back if it is damaged. Changes nothing.

    `deep`: check the words of every memory, not of a sample, and compare each record with its whole history.
    """
    findings = run_checks(path, now=now, deep=deep)
    if not any(finding.hint == RESTORE for finding in findings):
        return findings
    # `repair` repairs a file only as a whole.
    findings = [replace(finding, hint=RESTORE) if finding.hint in DONE_BY_FIX else finding for finding in findings]
    return [*findings, *way_back(path)]
