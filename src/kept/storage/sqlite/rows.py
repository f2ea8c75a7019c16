"""Records to rows and back: the one place that knows which column holds which field.

SQL that names columns is assembled here, from these constants and nothing else.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kept.model import Alias, Conflict, Event, Memory, Record, Source
from kept.ports import Prepared, R

_SOURCE_COLUMNS = {
    "source": "origin",
    "agent": "agent",
    "session_id": "session",
    "task_id": "task",
    "narrative_id": "narrative",
    "source_file": "file",
    "source_line": "line",
}
_PLAIN = (
    "id",
    "uid",
    "content",
    "fingerprint",
    "kind",
    "tier",
    "scope",
    "status",
    "reason",
    "importance",
    "confidence",
    "feedback",
    "use_count",
    "topic",
    "key",
    "item_type",
    "title",
    "superseded_by",
)
_JSON = ("tags", "files")
_CLOCKS = ("created_at", "updated_at", "last_hit_at", "last_used_at", "verified_at", "archived_at")
PREPARED = ("words", "tag_words", "file_words", "source_words", "kind_words", "n_words")

MEMORY_COLUMNS = (*_PLAIN, *_JSON, *_SOURCE_COLUMNS, "data", *_CLOCKS)
MEMORY_SELECT = ", ".join(f"m.{column}" for column in MEMORY_COLUMNS)
FOUND_SELECT = f"{MEMORY_SELECT}, " + ", ".join(f"m.{column}" for column in PREPARED)

_TABLES: Mapping[type[Record], tuple[str, tuple[str, ...]]] = {
    Memory: ("memories", MEMORY_COLUMNS),
    Conflict: ("conflicts", ("id", "left", "right", "type", "detected_at", "resolved_at")),
    Alias: ("aliases", ("id", "word", "expands_to")),
}
EVENT_COLUMNS = ("seq", '"group"', "at", "actor", "action", "subject", "undoes", "digest", "prev", "hash")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_strings = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_changed = msgspec.json.Decoder(dict[str, tuple[Any, Any]]).decode
_N_PLAIN, _N_JSON, _N_SOURCE = len(_PLAIN), len(_JSON), len(_SOURCE_COLUMNS)
_CLOCKS_FROM = _N_PLAIN + _N_JSON + _N_SOURCE + 1


def table_of(noun: type[Record]) -> str:
    return _TABLES[noun][0]


def columns_of(noun: type[Record]) -> tuple[str, ...]:
    return _TABLES[noun][1]


def to_row(record: Record) -> dict[str, Any]:
    """Column → value, for every column of the record's own."""
    if isinstance(record, Memory):
        row: dict[str, Any] = {column: getattr(record, column) for column in _PLAIN}
        row |= {column: _encode(getattr(record, column)).decode() for column in _JSON}
        row |= {column: getattr(record.source, field) for column, field in _SOURCE_COLUMNS.items()}
        row["data"] = None if record.data is None else _encode(record.data).decode()
        row |= {column: clock(getattr(record, column)) for column in _CLOCKS}
        return row
    if isinstance(record, Conflict):
        row = {column: getattr(record, column) for column in columns_of(Conflict)}
        return row | {"detected_at": clock(record.detected_at), "resolved_at": clock(record.resolved_at)}
    assert isinstance(record, Alias)
    return {"id": record.id, "word": record.word, "expands_to": _encode(record.expands_to).decode()}


def to_memory(row: Sequence[Any], space: str) -> Memory:
    """A memory from the columns of MEMORY_COLUMNS, in that order; columns after them are left alone."""
    fields = dict(zip(_PLAIN, row, strict=False))
    for offset, column in enumerate(_JSON, _N_PLAIN):
        fields[column] = _decode_strings(row[offset])
    start = _N_PLAIN + _N_JSON
    source = Source(**dict(zip(_SOURCE_COLUMNS.values(), row[start : start + _N_SOURCE], strict=True)))
    data = row[_CLOCKS_FROM - 1]
    for offset, column in enumerate(_CLOCKS, _CLOCKS_FROM):
        fields[column] = moment(row[offset])
    return Memory(space=space, source=source, data=None if data is None else _decode(data), **fields)


def to_prepared(row: Sequence[Any]) -> Prepared:
    """The prepared tokens from a row of FOUND_SELECT."""
    return Prepared(*row[len(MEMORY_COLUMNS) :])


def to_record(noun: type[R], row: Sequence[Any], space: str) -> R:
    """A record of any noun from its columns in order."""
    if noun is Memory:
        return cast(R, to_memory(row, space))
    fields = dict(zip(columns_of(noun), row, strict=True))
    if noun is Conflict:
        fields |= {"detected_at": moment(fields["detected_at"]), "resolved_at": moment(fields["resolved_at"])}
    else:
        fields["expands_to"] = _decode_strings(fields["expands_to"])
    return noun(**fields)


def to_event(row: Sequence[Any]) -> Event:
    """An event from EVENT_COLUMNS followed by salt and changed."""
    seq, group, at, actor, action, subject, undoes, digest, prev, hash, salt, changed = row
    return Event(
        seq=seq,
        group=group,
        at=cast(datetime, moment(at)),
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


def clock(at: datetime | None) -> str | None:
    """Text that sorts by time, always in UTC and always of one length."""
    if at is None:
        return None
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def json_text(value: object) -> str:
    return _encode(value).decode()
