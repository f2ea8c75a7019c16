"""What is counted of a project beside its journal: refusals by reason, redactions by kind, recalls; in all and by day.

Rule: a count is a name and a number, never what was refused or redacted. Counting never waits: it may be lost.
"""

from collections import Counter
from collections.abc import Sequence

from kept.memory.context import Context
from kept.model import Receipt
from kept.storage.shared import on_day


def count_reasons(context: Context, receipts: Sequence[Receipt]) -> None:
    """Count refusals by reason and redactions by kind, in all and by day, for `status`."""
    found: Counter[str] = Counter()
    for receipt in receipts:
        found.update([f"refused:{receipt.reason}"] if receipt.outcome == "refused" and receipt.reason else [])
        found.update({f"redacted:{one.kind}": one.count for one in receipt.redactions})
    count(context, found)


def count(context: Context, found: Counter[str]) -> None:
    """Add to the counters of the project and to those of the day; skipped while others write."""
    storage = context.spaces.project()
    if found and storage is not None:
        with storage.bookkeeping() as notes:
            if notes is not None:
                notes.count(found + Counter(on_day(context.now(), found)))
