"""Records to rows and back: which column holds which field, and which rows a filter means.

Columns have the names of the nouns' fields. SQL that names columns is assembled here from these constants; values are
always bound. Rule: what is read equals what was written, to the microsecond and to the last odd character.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from kept import journal
from kept.model import Event, Memory, Message, Record, Source
from kept.ports import FoundMessage, Prepared, Where
from kept.storage.filters import LOWERED
from kept.storage.postgres.connection import adapted, plain
from kept.storage.shared import damaged, index_of

SHELVES = {"live": 0, "library": 1, "archive": 2, "forgotten": 3, "messages": 4}
SHELF_NAMES = {number: name for name, number in SHELVES.items()}
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # of PostgreSQL

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode
_decode_changed = msgspec.json.Decoder(dict[str, tuple[Any, Any]]).decode
_astuple = msgspec.structs.astuple

_SOURCE_COLUMNS = ("source", "agent", "session_id", "task_id", "narrative_id", "source_file", "source_line")
_FIELDS = tuple(name for name in Memory.__struct_fields__ if name not in ("space", "source"))
PREPARED = Prepared.__struct_fields__
MEMORY_COLUMNS = (*_FIELDS, *_SOURCE_COLUMNS, *PREPARED, "shelf")
MEMORY_SELECT = ", ".join(f"m.{column}" for column in MEMORY_COLUMNS)
TOKENS_SELECT = ", ".join(f"m.{column}" for column in PREPARED)
MESSAGE_COLUMNS = tuple("session n message_id role content name input at speaker is_error trust words n_words".split())
MESSAGE_SELECT = ", ".join(f"m.{column}" for column in MESSAGE_COLUMNS)
EVENT_COLUMNS = ("seq", '"group"', "at", "actor", "action", "subject", "undoes", "digest", "prev", "hash")
EVENT_SELECT = ", ".join(f"e.{column}" for column in EVENT_COLUMNS)

_field_values = operator.attrgetter(*_FIELDS)
_DECODE: list[tuple[int, Callable[[Any], Any]]] = []  # filled below, when `moment` is known


def json_text(value: object) -> str:
    return encode_json(value).decode()


@lru_cache(maxsize=4096)  # most memories have one moment in two fields
def moment(stored: int | None) -> Any:
    """The moment that PostgreSQL keeps as microseconds since 2000, always in UTC."""
    return None if stored is None else _EPOCH + timedelta(microseconds=stored)


for _at, _name in enumerate(_FIELDS):
    if _name.endswith("_at"):
        _DECODE.append((_at, moment))
    elif _name in ("tags", "files"):
        _DECODE.append((_at, lambda stored: tuple(map(plain, stored))))
    elif _name == "data":
        _DECODE.append((_at, lambda stored: decode_json(plain(stored))))
    elif _name in ("content", "kind", "topic", "key", "item_type", "title", "superseded_by"):
        _DECODE.append((_at, plain))


_CREATED, _UPDATED, _TAGS, _FILES = (_FIELDS.index(name) for name in ("created_at", "updated_at", "tags", "files"))


def shelf_of(memory: Memory) -> int:
    return SHELVES[index_of(memory) or "forgotten"]


def memory_values(memory: Memory, prepared: Prepared) -> tuple[Any, ...]:
    """The values of MEMORY_COLUMNS."""
    values = dict(zip(_FIELDS, _field_values(memory), strict=True))
    values |= {"tags": adapted(memory.tags), "files": adapted(memory.files)}
    if memory.data is not None:
        values["data"] = json_text(memory.data)
    return (*values.values(), *_astuple(memory.source), *_astuple(prepared), shelf_of(memory))


def imagined(id: int, words: Sequence[str], shelf: str) -> tuple[Any, ...]:
    """Return the row of a memory that would fit these words, so that rounds.py sees which questions follow a hit."""
    content = " ".join(words)
    memory = Memory(
        id=id,
        uid=str(id),
        space="",
        content=content,
        fingerprint="",
        trust="user",
        status="confirmed",
        created_at=_EPOCH,
        updated_at=_EPOCH,
    )
    dates = {at: 0 for at, decode in _DECODE if decode is moment and at in (_CREATED, _UPDATED)}
    values = [*memory_values(memory, Prepared(content, "", "", "", "", len(words), len(words)))[:-1], SHELVES[shelf]]
    values[_TAGS], values[_FILES] = [], []
    return tuple(dates.get(at, value) for at, value in enumerate(values))


def to_memory(row: Sequence[Any], space: str) -> Memory:
    """A memory from MEMORY_COLUMNS."""
    values = [*row[: len(_FIELDS)]]
    for at, decode in _DECODE:
        if values[at] is not None:
            values[at] = decode(values[at])
    source = _source(*row[len(_FIELDS) : len(_FIELDS) + len(_SOURCE_COLUMNS)])
    return Memory(space=space, source=source, **dict(zip(_FIELDS, values, strict=True)))


@lru_cache(maxsize=1024)
def _source(*columns: Any) -> Source:
    decoded = [plain(value) if isinstance(value, str) else value for value in columns]
    return Source(**dict(zip(Source.__struct_fields__, decoded, strict=True)))


def to_prepared(row: Sequence[Any]) -> Prepared:
    """The tokens from a row of MEMORY_COLUMNS."""
    return Prepared(*row[-len(PREPARED) - 1 : -1])


def shelf_in(row: Sequence[Any]) -> str:
    """The shelf from a row of MEMORY_COLUMNS."""
    return SHELF_NAMES[row[-1]]


def to_record(noun: type[Any], body: str) -> Any:
    """A record of a small noun from its JSON."""
    return msgspec.json.decode(plain(body), type=noun)


def record_values(record: Record) -> tuple[str, int, str, str]:
    """Noun, id, name and body of a small record."""
    return record.noun, record.id, record.subject, json_text(record)


def message_values(message: Message, words: str, n_words: int) -> tuple[Any, ...]:
    """The values of MESSAGE_COLUMNS."""
    m = message
    told = None if m.input is None else json_text(m.input)
    who = (m.at, m.speaker, m.is_error, m.trust)
    return (m.session, m.n, m.id, m.role, m.content, m.name, told, *who, words, n_words)


def to_message(row: Sequence[Any]) -> FoundMessage:
    """A message from MESSAGE_COLUMNS."""
    session, n, message_id, role, content, name, told, at, speaker, is_error, trust, words, n_words = row
    message = Message(
        id=plain(message_id),
        role=role,
        session=plain(session),
        n=n,
        content=plain(content),
        name=plain(name),
        input=None if told is None else decode_json(plain(told)),
        at=moment(at),
        speaker=plain(speaker),
        is_error=is_error,
        trust=trust,
    )
    return FoundMessage(message, words, n_words)


def event_values(event: Event) -> tuple[Any, ...]:
    """The values of EVENT_COLUMNS."""
    e = event
    return (e.seq, e.group, e.at, e.actor, e.action, e.subject, e.undoes, e.digest, e.prev, e.hash)


def to_event(row: Sequence[Any]) -> Event:
    """An event from EVENT_COLUMNS, salt and changed. Raises Corrupt when it is not what was sealed."""
    seq, group, at, actor, action, subject, undoes, digest, prev, hash, salt, changed = row
    event = Event(
        seq=seq,
        group=plain(group),
        at=moment(at),
        actor=plain(actor),
        action=plain(action),
        subject=plain(subject),
        undoes=plain(undoes),
        digest=digest,
        prev=prev,
        hash=hash,
        salt=salt,
        changed=None if changed is None else _decode_changed(changed),
    )
    if not journal.is_as_sealed(event, changed):
        raise damaged(f"event {seq}")
    return event


_ON_SHELF = {"live": "m.shelf in (0, 1)", "archive": "m.shelf = 2", "forgotten": "m.shelf = 3", "any": "true"}
_SCOPES = {None: "true", "memory": "m.scope = 'memory'", "items": "m.scope = 'items'", "sources": "m.scope = 'sources'"}
_UNPROMOTED = "m.tier = 'session' and m.status = 'candidate' and m.kind <> 'summary'"
# Field of `Where` → the condition; its value is bound under the name of the field.
_CONDITIONS: Mapping[str, str] = {
    "tiers": "m.tier = any(%(tiers)s)",
    "kinds": "m.kind = any(%(kinds)s)",
    "statuses": "m.status = any(%(statuses)s)",
    "trusts": "m.trust = any(%(trusts)s)",
    "tags": "m.tags && %(tags)s",
    "tags_of_any_case": (
        """exists (select 1 from unnest(m.tags) tag where lower(tag collate "C") = any(%(tags_of_any_case)s))"""
    ),
    "data": "m.data::jsonb @> %(data)s::jsonb",
    "files": "m.files && %(files)s",
    "fingerprints": "m.fingerprint = any(%(fingerprints)s)",
    "ids": "m.id = any(%(ids)s)",
    "uid": "m.uid = %(uid)s",
    "topic": "m.topic = %(topic)s",
    "key": "m.key = %(key)s",
    "agent": "m.agent = %(agent)s",
    "session": "m.session_id = %(session)s",
    "seen_by": f"not ({_UNPROMOTED} and m.session_id is distinct from %(seen_by)s)",
    "task": "m.task_id = %(task)s",
    "narrative": "m.narrative_id = %(narrative)s",
    "since": "m.created_at >= %(since)s",
    "until": "m.created_at < %(until)s",
}


def _bound(name: str, wanted: Any) -> Any:
    """Return the value of a field of a filter as it is bound."""
    if name == "data":
        return json_text(dict(wanted))
    if name == "tags_of_any_case":
        return [tag.translate(LOWERED) for tag in wanted]
    return list(wanted) if isinstance(wanted, tuple) else wanted


def conditions(where: Where) -> tuple[str, dict[str, Any]]:
    """What a filter asks of a row `m` of memories, and the values."""
    found, values = [_ON_SHELF[where.shelf], _SCOPES[where.scope]], {}
    for name, condition in _CONDITIONS.items():
        wanted = getattr(where, name)
        if wanted is None or wanted == ():
            continue
        # The planner sees that an index of pinned ones answers only if it is told so.
        found.append("m.status = 'pinned'" if name == "statuses" and wanted == ("pinned",) else condition)
        values[name] = _bound(name, wanted)
    return " and ".join(found), values
