"""The schema: migrations, ownership and the facts set when the file was created.

Migrations are numbered SQL files, each applied once, in one transaction, after a backup. Rule: `user_version` is the
number of the last one applied. It is read at the start of every transaction, unless nothing was written since the last
read, so that a running program notices when another one upgrades the file.
"""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec
from msgspec import Struct

from kept import text
from kept.errors import InvalidInput, SchemaTooNew, StorageError
from kept.storage.sqlite.encoding import clock
from kept.storage.sqlite.rows import checksum, damaged

T = TypeVar("T")


class AllOrNothing:
    """All of the block becomes true together when it ends, or nothing of it does; inside another one, with that one.

    Not `with connection`: when SQLite has ended the transaction because a page cannot be read, that raises another
    error, which hides the first. Not a generator: every write goes through it, and that takes four times as long.
    """

    def __init__(self, connection: apsw.Connection, begin: str = "begin immediate") -> None:
        self._connection = connection
        self._begin = begin
        self._process: int | None = None  # None: the outer transaction sees to everything

    def __enter__(self) -> None:
        if not self._connection.in_transaction:
            self._process = os.getpid()
            self._connection.execute(self._begin)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._process is None:
            return
        is_ours = os.getpid() == self._process
        if error is None and not is_ours:
            raise StorageError(
                "This process was forked inside a transaction, which only its parent can finish.",
                hint="Fork before the transaction begins, or after it has ended.",
            )
        try:
            if error is None:
                self._connection.execute("commit")
        finally:
            if is_ours and self._connection.in_transaction:
                with suppress(apsw.Error):  # then the pool does not take the connection back
                    self._connection.execute("rollback")


INDEXES = ("live", "library", "archive", "messages")  # NAME_fts is the full-text index
APPLICATION_ID = 0x4B455054  # "KEPT", in the file's header: says whose database this is


class Migration(Struct, frozen=True):
    """One step of the schema: what it is called, its SQL, and the hash of the SQL, which files made by it note."""

    version: int
    name: str
    sql: str
    checksum: str


def migrations() -> list[Migration]:
    """All steps this program knows, in order."""
    steps = []
    for file in sorted(Path(__file__).with_name("migrations").glob("*.sql")):
        version, sql = int(file.name[:4]), file.read_text("utf-8").replace("$TOKENIZE", f'"{text.FTS_TOKENIZE}"')
        steps.append(Migration(version, file.name, sql, CHECKSUMS[version]))
    return steps


# Tests compare both with the files, so that opening need not read them, nor load OpenSSL for the hashes.
LATEST = 3
CHECKSUMS = {
    1: "6106840697434ffbdee1b8c78be92727",
    2: "cf626942a25b22f0db21445ea3723cb6",
    3: "f9a669b0ff80d6ffd38f3be4ee585c90",
}


def version_of(connection: apsw.Connection) -> int:
    return int(connection.execute("pragma user_version").get)


def check_version(connection: apsw.Connection, path: Path) -> int:
    """The version of the file. Raises SchemaTooNew when it is not for this program."""
    version = version_of(connection)
    if version > LATEST:
        raise SchemaTooNew(
            f"{path} was written by a newer kept (schema {version}, this program knows {LATEST}).",
            hint="Upgrade kept, or open a backup made by an older one.",
        )
    return version


def check_ownership(connection: apsw.Connection, path: Path) -> None:
    """Raise InvalidInput when the file is the database of another program."""
    # In this order: somebody may be making the file, and its tables and whose they are come at once.
    has_tables = connection.execute("select 1 from sqlite_schema limit 1").get
    application = int(connection.execute("pragma application_id").get)
    if application != APPLICATION_ID and (application or has_tables):
        raise InvalidInput(
            f"{path} is a database of another program.", hint="Kept leaves it alone. Give another file name."
        )


def facts_of(connection: apsw.Connection, path: Path) -> dict[str, str]:
    """Read the facts set at creation: space, tombstone_key, created_at. Empty while the file is being created."""
    # Asked first: somebody may be making the file, and settles the facts before anything happens.
    has_events = connection.execute("select 1 from events limit 1").fetchone() is not None
    sql = "select name, value from meta where name in ('space', 'tombstone_key', 'created_at', 'seal')"
    try:
        facts = {str(name): str(value) for name, value in connection.execute(sql)}
    except UnicodeDecodeError as error:
        raise damaged(f"The description of {path}") from error
    is_new = not facts and not has_events
    if not is_new and facts.pop("seal", "") != seal_of(facts):
        raise damaged(f"The description of {path}")
    return facts


def settle_facts(connection: apsw.Connection, facts: dict[str, str]) -> None:
    """Write down, once and together, what `facts_of` reads. Call it in this process's turn to write."""
    with AllOrNothing(connection):
        connection.executemany(
            "insert into meta (name, value) values (?, ?)", (facts | {"seal": seal_of(facts)}).items()
        )


def change_facts(connection: apsw.Connection, changes: dict[str, str]) -> None:
    """Change some of what `facts_of` reads. Call it in a transaction of this process's turn to write."""
    sql = "select name, value from meta where name in ('space', 'tombstone_key', 'created_at')"
    facts = {str(name): str(value) for name, value in connection.execute(sql)} | changes
    sql = "insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value"
    connection.executemany(sql, (facts | {"seal": seal_of(facts)}).items())


def entry(connection: apsw.Connection, name: str, kind: type[T], default: T) -> T:
    """Read a note about the file as a whole. Raises Corrupt when it is not what `set_entry` wrote."""
    row = connection.execute("select value from meta where name = ?", (name,)).fetchone()
    try:
        return default if row is None else msgspec.json.decode(str(row[0]), type=kind)
    except msgspec.DecodeError as error:
        raise damaged(f"The entry {name} of this file") from error


def set_entry(connection: apsw.Connection, name: str, value: object) -> None:
    connection.execute(
        "insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value",
        (name, msgspec.json.encode(value).decode()),
    )


def pending_scrub(connection: apsw.Connection) -> list[str]:
    """The uids of erased memories of which bytes may be left: in this file, or in the backups beside it."""
    return entry(connection, "scrub", list[str], [])


def seal_of(facts: dict[str, str]) -> str:
    """What is stored beside the facts, so that a changed byte in them does not go unnoticed."""
    return str(checksum(sorted(facts.items())))


def migrate(connection: apsw.Connection, path: Path, steps: list[Migration], at: datetime) -> None:
    """Bring the file up to date, one transaction a step. Call it in this process's turn to write."""
    for step in steps:
        with AllOrNothing(connection):
            version = version_of(connection)
            if version < step.version:
                connection.execute(step.sql)
                connection.execute(
                    "insert into migrations (version, checksum, applied_at) values (?, ?, ?)",
                    (step.version, step.checksum, clock(at)),
                )
                connection.execute(f"pragma user_version = {step.version}")
                if version == 0:
                    connection.execute(f"pragma application_id = {APPLICATION_ID}")


def check_steps(connection: apsw.Connection, path: Path) -> None:
    """Raise InvalidInput when the file was built by other steps than the ones this program knows."""
    for version, applied in connection.execute("select version, checksum from migrations"):
        if CHECKSUMS.get(version, applied) != applied:
            raise InvalidInput(
                f"Schema step {version} of {path} differs from this program's: an unreleased kept wrote the file.",
                hint="Open it with that version. This one cannot read it and leaves it as it is.",
            )
