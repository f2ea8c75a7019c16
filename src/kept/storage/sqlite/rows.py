"""Records to rows and back: the one place that knows which column holds which field.

SQL that names columns is assembled here, from these constants and nothing else. Rule: every row carries a checksum of
its values, and no record leaves this file unless it still matches: so a repair can tell what was written from what was
not, wherever in a damaged file it finds it.

Which memories are meant, as SQL on `memories m`.

Text comes from the constants here, values are always bound.
"""

import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

import apsw
import msgspec

from kept import journal
from kept.errors import Corrupt
from kept.model import Alias, Allowance, Conflict, Event, Memory, Pause, Record, Session, Source, Task
from kept.ports import Prepared, R, Where
from kept.storage.shared import index_of, prepare

_SOURCE_COLUMNS = ("source", "agent", "session_id", "task_id", "narrative_id", "source_file", "source_line")
_IDENTITY = ("id", "uid", "content", "fingerprint", "kind", "tier", "scope", "status", "reason")
_NUMBERS = ("importance", "confidence", "feedback", "use_count")
_NAMES = ("topic", "key", "item_type", "title", "superseded_by")
_PLAIN = (*_IDENTITY, *_NUMBERS, *_NAMES)
_JSON = ("tags", "files")
_CLOCKS = ("created_at", "updated_at", "last_hit_at", "last_used_at", "verified_at", "archived_at")
PREPARED = ("words", "tag_words", "file_words", "source_words", "kind_words", "n_words", "n_tokens")

MEMORY_COLUMNS = (*_PLAIN, *_JSON, *_SOURCE_COLUMNS, "data", *_CLOCKS)
_STORED = (*MEMORY_COLUMNS, *PREPARED, "shelf", "checksum")
MEMORY_SELECT = ", ".join(f"m.{column}" for column in _STORED)

_SMALL_TABLES: Mapping[type[Record], str] = {
    Conflict: "conflicts",
    Alias: "aliases",
    Session: "sessions",
    Task: "tasks",
    Pause: "pauses",
    Allowance: "allowances",
}
_LISTS = ("expands_to", "acceptance_criteria", "blocked_by")  # fields of small nouns that are lists, hence JSON
_TABLES: Mapping[type[Record], tuple[str, tuple[str, ...]]] = {
    Memory: ("memories", _STORED),
    # The small nouns have a table with a column for each field.
    **{noun: (table, (*noun.__struct_fields__, "checksum")) for noun, table in _SMALL_TABLES.items()},
}
_WRITTEN = {
    noun: tuple(c for c in columns if c != "shelf") for noun, (_, columns) in _TABLES.items()
}  # it is generated
_INSERTS = {
    noun: f"insert into {_TABLES[noun][0]} ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
    for noun, columns in _WRITTEN.items()
}
# The same sums as in the schema, where they were stored with the row: no answer comes from a row that they do not fit.
CORPUS_IS_SEALED = "seal = rows * 1000003 + words * 1009 + tokens"
# Of a strength the sum has only thousandths; but it counts, so it is a whole number.
LINK_IS_SEALED = """seal = memory_id * 1000003 + related_id * 1009 + cast(strength * 1000 as integer)
                    + unixepoch(at) + substr(at, 21, 6) and strength = round(strength)"""
AT_ONCE = 100  # rows that one statement writes
EVENT_COLUMNS = ("seq", '"group"', "at", "actor", "action", "subject", "undoes", "digest", "prev", "hash")

_encode = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_strings = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_changed = msgspec.json.Decoder(dict[str, tuple[Any, Any]]).decode
_astuple = msgspec.structs.astuple
_N_PLAIN, _N_JSON, _N_SOURCE = len(_PLAIN), len(_JSON), len(_SOURCE_COLUMNS)
_CLOCKS_FROM = _N_PLAIN + _N_JSON + _N_SOURCE + 1


def table_of(noun: type[Record]) -> str:
    return _TABLES[noun][0]


def columns_of(noun: type[Record]) -> tuple[str, ...]:
    """Every column that is read, in the order in which `to_record` takes them; the last one is the checksum."""
    return _TABLES[noun][1]


def insert_sql(noun: type[Record]) -> str:
    """The statement that stores a new record, with `to_values` bound."""
    return _INSERTS[noun]


def insert(connection: apsw.Connection, sql: str, values: Sequence[Sequence[Any]]) -> None:
    """Run an insert for many rows, in few statements: one of many rows takes less time than many of one."""
    if len(values) == 1:
        connection.execute(sql, values[0])
        return
    before, _, marks = sql.rpartition(" values ")
    for start in range(0, len(values), AT_ONCE):
        some = values[start : start + AT_ONCE]
        together = f"{before} values {', '.join([marks] * len(some))}"
        connection.execute(together, [value for row in some for value in row])


def checksum(values: Sequence[Any]) -> int:
    """Differs for values that differ by a few bits, surely; for any others, but for one case in four billion."""
    return zlib.crc32(_pack(values))


def sealed_number(name: str, number: int) -> str:
    """A counter as it stands in the file, with a checksum that covers its name, too."""
    return f"{number} {checksum((name, number))}"


def number_of(name: str, sealed: str) -> int:
    """The counter that `sealed_number` wrote. Raises Corrupt for anything else."""
    number = str(sealed).partition(" ")[0]
    if not number.lstrip("-").isdecimal() or sealed != sealed_number(name, int(number)):
        raise damaged("A counter")
    return int(number)


def to_row(record: Record) -> dict[str, Any]:
    """Column → value, for every column that is written."""
    return dict(zip(_WRITTEN[type(record)], to_values(record), strict=True))


def to_values(record: Record, prepared: Prepared | None = None) -> tuple[Any, ...]:
    """What `insert_sql` binds: the values of every column that is written; the last one is the checksum.

    `prepared`: the tokens of a memory, if they are at hand.
    """
    if isinstance(record, Memory):
        values = _memory_values(record, prepared or prepare(record))
        return (*values, checksum((Memory.noun, *values, index_of(record) or "forgotten")))
    values = tuple(_plain(getattr(record, name)) for name in record.__struct_fields__)
    return (*values, checksum((record.noun, *values)))


def _memory_values(memory: Memory, prepared: Prepared) -> tuple[Any, ...]:
    """The values of MEMORY_COLUMNS and PREPARED. Spelled out: to ask for them by name takes twice as long."""
    return (
        memory.id,
        memory.uid,
        memory.content,
        memory.fingerprint,
        memory.kind,
        memory.tier,
        memory.scope,
        memory.status,
        memory.reason,
        # As SQLite will give them back, or the checksum would not match: its reals know no -0.0.
        memory.importance + 0.0,
        memory.confidence + 0.0,
        int(memory.feedback),
        int(memory.use_count),
        memory.topic,
        memory.key,
        memory.item_type,
        memory.title,
        memory.superseded_by,
        _encode(memory.tags).decode(),
        _encode(memory.files).decode(),
        *_astuple(memory.source),
        None if memory.data is None else _encode(memory.data).decode(),
        clock(memory.created_at),
        clock(memory.updated_at),
        clock(memory.last_hit_at),
        clock(memory.last_used_at),
        clock(memory.verified_at),
        clock(memory.archived_at),
        *_astuple(prepared),
    )


def damaged(what: str) -> Corrupt:
    """The error to raise when `what` is not as it was written."""
    return Corrupt(
        f"{what} is damaged: what the file holds is not what was written.",
        hint="Nothing was changed. `kept doctor` says what can be saved.",
    )


def verify(noun: type[Record], row: Sequence[Any]) -> None:
    """Raise Corrupt unless the row, in the order of `columns_of`, is as it was written."""
    if not is_as_written(noun, row):
        raise damaged(f"{noun.noun} {row[0]}")


def is_as_written(noun: type[Record], row: Sequence[Any]) -> bool:
    """Whether the row, in the order of `columns_of`, fits its checksum, which also covers what kind of row it is."""
    return bool(checksum((noun.noun, *row[:-1])) == row[-1])


def to_memory(row: Sequence[Any], space: str) -> Memory:
    """A memory from its columns in order. Raises Corrupt when they are not what was written."""
    verify(Memory, row)
    fields = dict(zip(_PLAIN, row, strict=False))
    for offset, column in enumerate(_JSON, _N_PLAIN):
        fields[column] = () if row[offset] == "[]" else _decode_strings(row[offset])
    for offset, column in enumerate(_CLOCKS, _CLOCKS_FROM):
        fields[column] = moment(row[offset])
    data = row[_CLOCKS_FROM - 1]
    source = _source(*row[_N_PLAIN + _N_JSON : _CLOCKS_FROM - 1])
    return Memory(space=space, source=source, data=None if data is None else _decode(data), **fields)


@lru_cache(maxsize=1024)  # a few agents in a few sessions write most memories
def _source(*columns: Any) -> Source:
    return Source(**dict(zip(Source.__struct_fields__, columns, strict=True)))


def to_prepared(row: Sequence[Any]) -> Prepared:
    """The prepared tokens from a row of MEMORY_SELECT."""
    return Prepared(*row[len(MEMORY_COLUMNS) : -2])


def shelf_in(row: Sequence[Any]) -> str:
    """The shelf from a row of MEMORY_SELECT."""
    return str(row[-2])


def to_record(noun: type[R], row: Sequence[Any], space: str) -> R:
    """A record of any noun from its columns in order. Raises Corrupt when they are not what was written."""
    if noun is Memory:
        return cast(R, to_memory(row, space))
    verify(noun, row)
    fields = dict(zip(noun.__struct_fields__, row, strict=False))
    fields |= {name: _decode(fields[name]) for name in _LISTS if name in fields}
    return msgspec.convert(fields, noun)  # which also makes moments of their texts


def _plain(value: Any) -> Any:
    """A field of a small noun as SQLite keeps it."""
    if isinstance(value, datetime):
        return clock(value)
    return _encode(value).decode() if isinstance(value, tuple) else value


def after_use(row: Sequence[Any], uses: int, at: datetime) -> tuple[int, str | None, int]:
    """Use count, last use and checksum of a memory's stored row after so many more uses.

    Raises Corrupt when the row is not what was written.
    """
    verify(Memory, row)
    changes = {"use_count": row[_STORED.index("use_count")] + uses, "last_used_at": clock(at)}
    values = [changes.get(column, value) for column, value in zip(_STORED[:-1], row, strict=False)]
    return changes["use_count"], changes["last_used_at"], checksum((Memory.noun, *values))


def to_event(row: Sequence[Any]) -> Event:
    """An event from EVENT_COLUMNS followed by salt and changed. Raises Corrupt when it is not what was sealed."""
    seq, group, at, actor, action, subject, undoes, digest, prev, hash, salt, changed = row
    with suppress(TypeError, ValueError, AttributeError, msgspec.MsgspecError):  # what damaged values lead to
        event = Event(
            seq=seq,
            group=group,
            at=datetime.fromisoformat(at),
            actor=actor,
            action=action,
            subject=subject,
            undoes=undoes,
            digest=digest,
            prev=prev,
            hash=hash,
            salt=salt,
            changed=None if changed is None else _decode_changed(changed),
        )
        if journal.is_as_sealed(event, None if changed is None else changed.encode()):
            return event
    raise damaged(f"event {seq}")


@lru_cache(maxsize=256)  # all that a turn writes was written at one moment
def clock(at: datetime | None) -> str | None:
    """Text that sorts by time, always in UTC and always of one length."""
    if at is None:
        return None
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"  # instead of +00:00


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def json_text(value: object) -> str:
    return _encode(value).decode()


def from_json(text: str) -> Any:
    return _decode(text)


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
    equals("m.created_at", clock(where.since), ">=")
    equals("m.created_at", clock(where.until), "<")
    return found, values
