"""Records to rows and back: the one place that knows which column holds which field.

Columns are derived from the fields of the nouns; encoding.py says how a value is stored. SQL that names columns is
assembled here, from these constants and nothing else; values are always bound. Rule: every row carries a checksum of
its stored values, and no record leaves this module unless it still matches.
"""

import operator
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, cast

import apsw
import msgspec

from kept.model import (
    Alias,
    Allowance,
    CallGuard,
    Conflict,
    Event,
    Memory,
    Pause,
    Record,
    Rejection,
    SessionRecord,
    Source,
    TaskRecord,
)
from kept.ports import Prepared, R, Where
from kept.storage.shared import damaged as damaged
from kept.storage.shared import index_of, prepare
from kept.storage.sqlite import encoding
from kept.storage.sqlite.encoding import clock, hex_blob, hex_text, microseconds, moment, uid_blob, uid_text


def json_text(value: object) -> str:
    return encoding.encode_json(value).decode()


def from_json(text: str) -> Any:
    return encoding.decode_json(text)


# How fields of a memory are stored that are not stored as they are: to the column, and back.
_Code = tuple[Callable[[Any], Any], Callable[[Any], Any] | None]  # None: as it is
_decode_strings = msgspec.json.Decoder(tuple[str, ...]).decode


def _strings(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else _decode_strings(stored)


_STRINGS: _Code = (lambda strings: json_text(strings) if strings else "[]", _strings)
_REAL: _Code = (lambda value: value + 0.0, None)  # as SQLite gives it back, or the checksum would not match: no -0.0
_NUMBER: _Code = (int, None)
_CODES: Mapping[str, _Code] = {
    "uid": (uid_blob, uid_text),
    "fingerprint": (hex_blob, hex_text),
    "importance": _REAL,
    "confidence": _REAL,
    "feedback": _NUMBER,
    "use_count": _NUMBER,
    "tags": _STRINGS,
    "files": _STRINGS,
    "data": (json_text, from_json),
    **{field.name: (microseconds, moment) for field in msgspec.structs.fields(Memory) if field.name.endswith("_at")},
}
_SOURCE_COLUMNS = ("source", "agent", "session_id", "task_id", "narrative_id", "source_file", "source_line")
# A memory's fields in order: where a source begins and ends among the columns. `space` is said once, by the file.
_FIELDS = tuple(name for name in Memory.__struct_fields__ if name not in ("space", "source"))
_field_values = operator.attrgetter(*_FIELDS)
_ENCODERS = [(at, _CODES[name][0]) for at, name in enumerate(_FIELDS) if name in _CODES]
_DECODERS = [(_FIELDS.index(name), decode) for name, (_, decode) in _CODES.items() if decode]
_DECODED = (*_FIELDS, "space", "source")
_CONTENT_AT = _FIELDS.index("content")
_SCORED = ("id", "kind", "status", "importance", "feedback", "use_count", "files", "created_at", "last_hit_at")
_scored = operator.itemgetter(*map(_FIELDS.index, _SCORED))
PREPARED = Prepared.__struct_fields__

MEMORY_COLUMNS = (*_FIELDS, *_SOURCE_COLUMNS)
_STORED = (*MEMORY_COLUMNS, *PREPARED, "shelf", "checksum")
_WORDS_AT = _STORED.index("words")
MEMORY_SELECT = ", ".join(f"m.{column}" for column in _STORED)

_SMALL_TABLES: Mapping[type[Record], str] = {
    Conflict: "conflicts",
    Alias: "aliases",
    SessionRecord: "sessions",
    TaskRecord: "tasks",
    Pause: "pauses",
    Allowance: "allowances",
    CallGuard: "guards",
    Rejection: "rejections",
}
# Fields of small nouns that are lists, hence JSON.
_LISTS = ("expands_to", "acceptance_criteria", "blocked_by", "findings", "promoted", "words")
_TABLES: Mapping[type[Record], tuple[str, tuple[str, ...]]] = {
    Memory: ("memories", _STORED),
    # The small nouns have a table with a column for each field.
    **{noun: (table, (*noun.__struct_fields__, "checksum")) for noun, table in _SMALL_TABLES.items()},
}
_WRITTEN = {
    noun: tuple(c for c in columns if c != "shelf") for noun, (_, columns) in _TABLES.items()
}  # it is generated
_SELECTS = {noun: f"select {', '.join(columns)} from {table}" for noun, (table, columns) in _TABLES.items()}
_INSERTS = {
    noun: f"insert into {_TABLES[noun][0]} ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
    for noun, columns in _WRITTEN.items()
}
AT_ONCE = 100  # rows that one statement writes
EVENT_COLUMNS = ("seq", '"group"', "at", "actor", "action", "subject", "undoes", "digest", "prev", "hash")

_pack = msgspec.msgpack.Encoder().encode
_decode_changed = msgspec.json.Decoder(dict[str, tuple[Any, Any]]).decode
_astuple = msgspec.structs.astuple


def table_of(noun: type[Record]) -> str:
    return _TABLES[noun][0]


def columns_of(noun: type[Record]) -> tuple[str, ...]:
    """Every column that is read, in the order in which `to_record` takes them; the last one is the checksum."""
    return _TABLES[noun][1]


def select_sql(noun: type[Record]) -> str:
    """The beginning of a statement that reads records: the columns in the order in which `to_record` takes them."""
    return _SELECTS[noun]


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
    """A counter as it is stored: with a checksum, so that a page which another program wrote can be proved right."""
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
    """The values of MEMORY_COLUMNS and PREPARED."""
    values = [*_field_values(memory)]
    for at, encode in _ENCODERS:
        if values[at] is not None:
            values[at] = encode(values[at])
    values[_CONTENT_AT] = encoding.content_blob(memory.content, prepared.words)
    return (*values, *_astuple(memory.source), *_astuple(prepared))


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
    return _decoded(row, space)


def _decoded(row: Sequence[Any], space: str) -> Memory:
    values = [*row[: len(_FIELDS)], space, _source(*row[len(_FIELDS) : len(MEMORY_COLUMNS)])]
    for at, decode in _DECODERS:
        if values[at] is not None:
            values[at] = decode(values[at])
    values[_CONTENT_AT] = encoding.content_text(row[_CONTENT_AT], row[_WORDS_AT])
    return Memory(**dict(zip(_DECODED, values, strict=True)))


class Unread:
    """A row that is as it was written, and of which only the fields are decoded that a score is made of."""

    def __init__(self, row: Sequence[Any], space: str) -> None:
        """Raises Corrupt when the row is not what was written."""
        verify(Memory, row)
        self._row, self.space = row, space
        self.id, self.kind, self.status, self.importance, self.feedback, self.use_count, *rest = _scored(row)
        self.files, self.created_at, self.last_hit_at = _strings(rest[0]), moment(rest[1]), moment(rest[2])

    @cached_property
    def whole(self) -> Memory:
        return _decoded(self._row, self.space)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unread) and self.whole == other.whole

    __hash__ = None  # type: ignore[assignment]  # like the values that can be changed


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
    fields |= {name: from_json(fields[name]) for name in _LISTS if name in fields}
    return msgspec.convert(fields, noun)  # which also makes moments of their texts


def _plain(value: Any) -> Any:
    """A field of a small noun as SQLite keeps it."""
    if isinstance(value, datetime):
        return clock(value)
    return json_text(value) if isinstance(value, tuple) else value


def after_use(row: Sequence[Any], uses: int, at: datetime) -> tuple[int, int | None, int]:
    """Use count, last use and checksum of a memory's stored row after that many more uses.

    Raises Corrupt when the row is not what was written.
    """
    verify(Memory, row)
    changes = {"use_count": row[_STORED.index("use_count")] + uses, "last_used_at": microseconds(at)}
    values = [changes.get(column, value) for column, value in zip(_STORED[:-1], row, strict=False)]
    return changes["use_count"], changes["last_used_at"], checksum((Memory.noun, *values))


def event_values(event: Event) -> tuple[Any, ...]:
    """The values of EVENT_COLUMNS."""
    e = event
    hashes = (hex_blob(e.digest), hex_blob(e.prev), hex_blob(e.hash))
    named = (hex_blob(e.group), microseconds(e.at), e.actor, e.action, uid_blob(e.subject), hex_blob(e.undoes))
    return (e.seq, *named, *hashes)


def payload_values(event: Event, payload: bytes) -> tuple[Any, ...]:
    """What `event_payloads` holds of an event: its number, the salt, and the bytes of its payload."""
    return event.seq, hex_blob(event.salt), encoding.payload_blob(payload, event.subject, event.at)


def to_event(row: Sequence[Any]) -> Event:
    """An event from EVENT_COLUMNS followed by salt and changed. Raises Corrupt when it is not what was sealed."""
    from kept import journal  # which a program that only asks does not need

    seq, group, at, actor, action, subject, undoes, digest, prev, hash, salt, changed = row
    with suppress(TypeError, ValueError, AttributeError, OverflowError, msgspec.MsgspecError):  # of damaged values
        name, when = uid_text(subject), moment(at)
        payload = None if changed is None else encoding.payload_bytes(changed, name, when)
        event = Event(
            seq=seq,
            group=hex_text(group),
            at=when,
            actor=actor,
            action=action,
            subject=name,
            undoes=hex_text(undoes),
            digest=hex_text(digest),
            prev=hex_text(prev),
            hash=hex_text(hash),
            salt=hex_text(salt),
            changed=None if payload is None else _decode_changed(payload),
        )
        if journal.is_as_sealed(event, payload):
            return event
    raise damaged(f"event {seq}")


# As text, not as bound values: only so can SQLite see that a partial index answers, and need not plan again each time.
# The index of what is off the shelf answers only a question that has its own condition, word for word.
_OFF = "m.shelf <> 'live' and m.shelf"
_SHELVES = {
    "live": "m.shelf in ('live', 'library')",
    "archive": f"{_OFF} = 'archive'",
    "forgotten": f"{_OFF} = 'forgotten'",
    "any": "true",
}
_LIBRARY = f"{_OFF} = 'library'"
_SCOPES = {None: "true", "memory": "m.scope = 'memory'", "items": "m.scope = 'items'", "sources": "m.scope = 'sources'"}
_STATUSES = {name: f"m.status = '{name}'" for name in ("candidate", "confirmed", "pinned", "archived")}

_UNPROMOTED = "m.tier = 'session' and m.status = 'candidate' and m.kind <> 'summary'"


def clauses(where: Where) -> tuple[list[str], list[Any]]:
    """The conditions and their values; the first two are `true` if shelf and scope don't matter."""
    is_of_files = where.shelf == "live" and where.scope in ("items", "sources")
    shelf = _LIBRARY if is_of_files else _SHELVES[where.shelf]
    found, values = [shelf, _SCOPES[where.scope]], []  # type: tuple[list[str], list[Any]]

    def any_of(column: str, wanted: Sequence[Any]) -> None:
        if wanted:
            found.append(f"{column} in ({', '.join('?' * len(wanted))})")
            values.extend(wanted)

    def equals(column: str, wanted: object, operator: str = "=") -> None:
        if wanted is not None:
            found.append(f"{column} {operator} ?")
            values.append(wanted)

    any_of("m.id", where.ids)
    any_of("m.tier", where.tiers)
    any_of("m.kind", where.kinds)
    any_of("m.trust", where.trusts)
    if where.statuses:
        found.append(f"({' or '.join(_STATUSES[status] for status in where.statuses)})")
    for column, wanted in (("tags", where.tags), ("files", where.files)):
        if wanted:
            marks = ", ".join("?" * len(wanted))
            found.append(f"exists (select 1 from json_each(m.{column}) where value in ({marks}))")
            values.extend(wanted)
    if where.tags_of_any_case:
        marks = ", ".join("?" * len(where.tags_of_any_case))
        found.append(f"exists (select 1 from json_each(m.tags) where value collate nocase in ({marks}))")
        values.extend(where.tags_of_any_case)
    for name, wanted in where.data:
        is_truth = "type in ('true', 'false')" if isinstance(wanted, bool) else "type not in ('true', 'false')"
        found.append(f"exists (select 1 from json_each(m.data) where key = ? and value is ? and {is_truth})")
        values.extend((name, wanted))
    any_of("m.fingerprint", [hex_blob(fingerprint) for fingerprint in where.fingerprints])
    equals("m.uid", None if where.uid is None else uid_blob(where.uid))
    equals("m.topic", where.topic)
    equals("m.key", where.key)
    equals("m.agent", where.agent)
    equals("m.session_id", where.session)
    if where.seen_by is not None:
        found.append(f"not ({_UNPROMOTED} and m.session_id is not ?)")
        values.append(where.seen_by)
    equals("m.task_id", where.task)
    equals("m.narrative_id", where.narrative)
    equals("m.created_at", microseconds(where.since), ">=")
    equals("m.created_at", microseconds(where.until), "<")
    return found, values
