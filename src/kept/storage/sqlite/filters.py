"""Which memories are meant, as SQL on `memories m`.

Text comes from the constants here, values are always bound.
"""

from collections.abc import Sequence
from typing import Any

from kept.ports import Where
from kept.storage.sqlite import rows

# As text, not as bound values: only so can SQLite see that a partial index answers, and need not plan anew each time.
_SHELVES = {
    "live": "m.shelf in ('live', 'library')",
    "archive": "m.shelf = 'archive'",
    "forgotten": "m.shelf = 'forgotten'",
    "any": "true",
}
_SCOPES = {None: "true", "memory": "m.scope = 'memory'", "items": "m.scope = 'items'", "sources": "m.scope = 'sources'"}
_STATUSES = {name: f"m.status = '{name}'" for name in ("candidate", "confirmed", "pinned", "archived")}


def clauses(where: Where) -> tuple[list[str], list[Any]]:
    """The conditions and their values; the first two are `true` if shelf and scope don't matter."""
    found, values = [_SHELVES[where.shelf], _SCOPES[where.scope]], []  # type: tuple[list[str], list[Any]]

    def any_of(column: str, wanted: Sequence[Any]) -> None:
        if wanted:
            found.append(f"{column} in ({', '.join('?' * len(wanted))})")
            values.extend(wanted)

    def equals(column: str, wanted: object, operator: str = "=") -> None:
        if wanted is not None:
            found.append(f"{column} {operator} ?")
            values.append(wanted)

    any_of("m.tier", where.tiers)
    any_of("m.kind", where.kinds)
    if where.statuses:
        found.append(f"({' or '.join(_STATUSES[status] for status in where.statuses)})")
    for column, wanted in (("tags", where.tags), ("files", where.files)):
        if wanted:
            marks = ", ".join("?" * len(wanted))
            found.append(f"exists (select 1 from json_each(m.{column}) where value in ({marks}))")
            values.extend(wanted)
    any_of("m.fingerprint", where.fingerprints)
    equals("m.uid", where.uid)
    equals("m.topic", where.topic)
    equals("m.key", where.key)
    equals("m.session_id", where.session)
    equals("m.task_id", where.task)
    equals("m.narrative_id", where.narrative)
    equals("m.created_at", rows.clock(where.since), ">=")
    equals("m.created_at", rows.clock(where.until), "<")
    return found, values
