"""Operate a database for `kept store database`: make the schema, let roles in, report its state.

Everything else opens a space and never asks about the database around it. Rule: these are the owner's functions; the
roles that use Kept need none of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept import journal
from kept.ports import ANYWHERE, Storage
from kept.storage import postgres_engine
from kept.storage.checkup import Finding
from kept.storage.shared import every

if TYPE_CHECKING:
    from kept.storage.postgres.schema import DatabaseStatus as DatabaseStatus
    from kept.storage.postgres.schema import SchemaChanges as SchemaChanges


def initialise(url: str, *, sharded: bool = False) -> "SchemaChanges":
    """Make the schema, or bring it up to date. Return how many steps were made, and who was shut out."""
    made: SchemaChanges = postgres_engine().initialise(url, sharded=sharded)
    return made


def status(url: str) -> "DatabaseStatus":
    """How the database is, as the role of this URL sees it. Changes nothing."""
    found: DatabaseStatus = postgres_engine().status(url)
    return found


def grant(url: str, role: str, spaces: Sequence[str] = ()) -> list[str]:
    """Let a role in; with `spaces`, to these and to those it was tied to before, and to no others.

    Return all that it is tied to; an empty list if it is not tied.
    """
    engine = postgres_engine()
    tied: list[str] = engine.grant(url, role, [(engine.number_of(space), space) for space in spaces])
    return tied


def revoke(url: str, role: str, spaces: Sequence[str] = ()) -> list[str]:
    """Take these spaces from a tied role; without any, everything. Return those that it is still tied to."""
    engine = postgres_engine()
    left: list[str] = engine.revoke(url, role, [(engine.number_of(space), space) for space in spaces])
    return left


def known_spaces(url: str, asked: Sequence[str]) -> list[str]:
    """Return the spaces that the owner can name: those asked for that are there, and all that roles are tied to."""
    engine = postgres_engine()
    found: list[str] = engine.known_spaces(url, [(engine.number_of(space), space) for space in asked])
    return found


def examine(storage: Storage) -> list[Finding]:
    """Check a space in a database: its journal and the counts of its index. PostgreSQL itself checks its pages."""
    findings = []
    with storage.reading() as reader:
        broken = journal.broken_links(reader.events())
        findings += [Finding("problem", "journal", f"The journal: {link}.") for link in broken[:10]]
        if not broken:
            findings.append(Finding("ok", "journal", "The chain of events is unbroken."))
        n_rows, n_counted = reader.count(ANYWHERE), reader.statistics((), ANYWHERE).rows
        n_forgotten = sum(memory.is_forgotten for memory in every(reader, ANYWHERE)) if n_rows != n_counted else 0
        if n_rows - n_forgotten != n_counted:
            why = f"{n_rows - n_forgotten} memories are stored, and {n_counted} are counted."
            findings.append(Finding("problem", "index", why, "Move the project to a new place: `kept store move`."))
        else:
            findings.append(Finding("ok", "index", f"The index counts all {n_rows} memories."))
    return findings
