"""Examine a SQLite space, and repair it: what `kept doctor` and `kept doctor --fix` call.

`examine` (examination.py) looks and changes nothing; `repair` (repair.py) puts right what can be put right, and keeps
the damaged file. Both answer with findings.
"""

from kept.storage.sqlite.health.check import examine
from kept.storage.sqlite.health.findings import Finding
from kept.storage.sqlite.health.repairs import repair

__all__ = ["Finding", "examine", "repair"]
