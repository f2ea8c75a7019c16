"""Store agent_engine's context items in any of our storages.

`StorageBackend` has the seven methods of a `MemoryBackend`, so that code written for it runs unchanged and its items
get a journal and an archive. The other names of that design are in `kept.compat`.
Rule: an item is stored whole, except for its secrets, in the `data` of one memory, with its id as `key`. A deleted item
is forgotten, an evicted one archived.
"""

import hashlib
import math
import operator
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field

from kept import text, vectors
from kept.errors import InvalidInput, expect
from kept.ids import UID_ENTROPY_BYTES, uuid7
from kept.model import Draft, Memory, Reason, Source, canonical_kind, replace
from kept.ports import Clock, Reader, Stamp, Storage, Where
from kept.storage import open_space
from kept.storage.shared import every
from kept.writing.redact import redact, redact_draft

ITEMS = Where(scope=None, narrative="agent_engine")  # items may share their space with other memories

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class ContextItem(Struct, kw_only=True):
    """One piece of context. `token_cost` is counted in words."""

    context_item_id: str
    kind: str = "note"
    source: str = ""
    timestamp: str = ""
    tags: list[str] = field(default_factory=list)
    importance: float | None = None
    token_cost: int | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None


class MemoryBackend(Protocol):
    """The methods that agent_engine needs to store items. Failures are `kept.StorageError`."""

    def add(self, item: ContextItem) -> None:
        """Store the item; one with the same id is replaced."""

    def query(self, filters: dict[str, Any], limit: int = 100, order_by: str = "timestamp") -> list[ContextItem]:
        """Items that match every filter, sorted by `order_by`, greatest first; a leading "-" reverses that."""

    def get(self, item_id: str) -> ContextItem | None:
        """The item, or None."""

    def delete(self, item_id: str) -> bool:
        """Delete the item; False if there was none."""

    def list_all(self) -> list[ContextItem]:
        """Every item, in the order they were added."""

    def clear(self) -> None:
        """Delete every item."""

    def count(self) -> int:
        """How many items there are."""


class _Searched:
    """Queries over all items of the backend that inherits them."""

    def query(
        self: MemoryBackend, filters: dict[str, Any], limit: int = 100, order_by: str = "timestamp"
    ) -> list[ContextItem]:
        """Return the items that match every filter, sorted by `order_by`, greatest first; a leading "-" reverses it."""
        _check_limit(limit)
        found = [item for item in self.list_all() if fits(item, filters)]
        name = order_by.removeprefix("-")
        found.sort(key=lambda item: _sortable(getattr(item, name, None)), reverse=not order_by.startswith("-"))
        return found[:limit]

    def query_semantic(self: MemoryBackend, query_embedding: list[float], limit: int = 10) -> list[ContextItem]:
        """Return the items whose embedding is most similar, best first.

        An embedding of another length comes from another model, so it cannot be compared and is left out.
        """
        _check_limit(limit)
        _check_embedding(query_embedding)
        items = [one for one in self.list_all() if one.embedding and len(one.embedding) == len(query_embedding)]
        asked, *known = vectors.pack([query_embedding, *(item.embedding or [] for item in items)])
        ranked = sorted(zip(vectors.cosines(asked, known), items, strict=True), key=lambda pair: -pair[0])
        return [item for _, item in ranked[:limit]]


class StorageBackend(_Searched):
    """A MemoryBackend over one of our storages, or over the file of that name (`.json`, anything else is SQLite)."""

    def __init__(
        self,
        storage: Storage | str | PathLike[str],
        *,
        clock: Clock = lambda: datetime.now(UTC),
        actor: str = "agent",
    ) -> None:
        is_place = isinstance(storage, str | PathLike)
        expect(is_place or hasattr(storage, "writing"), "storage", "a path or one of our storages", storage)
        self.storage = open_space(storage) if isinstance(storage, str | PathLike) else storage
        self._clock = clock
        self._actor = actor
        self._counted: tuple[int, int] | None = None  # the last event of the journal, and how many items there were

    def add(self, item: ContextItem) -> None:
        _check_embedding(item.embedding)
        stamp = self._stamp()
        memory = self._to_memory(item, stamp.at)
        with self.storage.writing(stamp) as tx:
            before, known = _last_event(tx), _by_key(tx, memory.key or "")
            if known is None:
                tx.add(memory, "remember")
            else:
                tx.put(replace(memory, id=known.id, uid=known.uid, created_at=known.created_at), "revise")
            counted, after = self._counted, _last_event(tx)
        if counted is not None:
            is_new = known is None or known.is_archived
            self._counted = (after, counted[1] + is_new) if counted[0] == before else None

    def get(self, item_id: str) -> ContextItem | None:
        with self.storage.reading() as reader:
            memory = _by_key(reader, _stored_id(item_id))
        return None if memory is None or memory.is_archived else _to_item(memory)

    def delete(self, item_id: str) -> bool:
        return self._archive([item_id], "forgotten", "forget") == 1

    def delete_all(self, item_ids: Sequence[str]) -> int:
        """Delete these items at once. Returns how many there were."""
        return self._archive(item_ids, "forgotten", "forget")

    def archive(self, item_ids: Sequence[str]) -> int:
        """Evict items: only the archive of the storage still has them. Returns how many there were."""
        return self._archive(item_ids, "evicted", "evict")

    def list_all(self) -> list[ContextItem]:
        with self.storage.reading() as reader:
            return [_to_item(memory) for memory in every(reader, ITEMS)]

    def clear(self) -> None:
        stamp = self._stamp()
        with self.storage.writing(stamp, urgent=True) as tx:
            for memory in list(every(tx, ITEMS)):
                tx.put(memory.archived("forgotten", stamp.at), "forget")

    def count(self) -> int:
        """Return how many items there are; they are counted again only after a change by another program."""
        with self.storage.reading() as reader:
            last = _last_event(reader)
            if self._counted is None or self._counted[0] != last:
                self._counted = (last, reader.count(ITEMS))
            return self._counted[1]

    def _archive(self, item_ids: Sequence[str], reason: Reason, action: str) -> int:
        stamp = self._stamp()
        with self.storage.writing(stamp, urgent=True) as tx:
            found = [_by_key(tx, _stored_id(item_id)) for item_id in item_ids]
            live = [memory for memory in found if memory is not None and not memory.is_archived]
            for memory in live:
                tx.put(memory.archived(reason, stamp.at), action)
        return len(live)

    def _stamp(self) -> Stamp:
        return Stamp(group=secrets.token_hex(8), at=self._clock().astimezone(UTC), actor=self._actor)

    def _to_memory(self, item: ContextItem, at: datetime) -> Memory:
        try:
            data = msgspec.json.decode(msgspec.json.encode(item))
            content = _readable(item.payload)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"The payload of {item.context_item_id} cannot be stored as JSON ({error}).",
                hint="Use dictionaries, lists, text, numbers, true, false and null.",
            ) from error
        draft = Draft(content=content, tags=tuple(item.tags), key=_stored_id(item.context_item_id), data=data)
        safe = redact_draft(draft, email=True).draft
        if safe.data is None or safe.data.keys() != data.keys():
            raise InvalidInput(
                f"Item {safe.key} has secrets that cannot be redacted.", hint="Remove them from the item."
            )
        return Memory(
            uid=uuid7(at, secrets.token_bytes(UID_ENTROPY_BYTES)),
            space=self.storage.space,
            content=safe.content,
            fingerprint=text.fingerprint(f"{safe.key}\n{safe.content}"),
            kind=canonical_kind(item.kind) or "fact",
            trust="agent",
            importance=0.5 if item.importance is None else item.importance,
            tags=safe.tags,
            key=safe.key,
            source=Source(agent=self._actor, narrative=ITEMS.narrative),
            data=safe.data | {"context_item_id": safe.key},
            created_at=at,
            updated_at=at,
        )


class SQLiteBackend(StorageBackend):
    """Items in a SQLite file."""

    def __init__(self, db_path: str | PathLike[str]) -> None:
        if Path(db_path).suffix == ".json":
            raise InvalidInput(f"{db_path} is the name of a JSON file.", hint="Use JSONFileBackend, or another name.")
        super().__init__(db_path)


class JSONFileBackend(StorageBackend):
    """Items in one JSON file, whose name ends in `.json`. It is written whole with each change: for small stores."""

    def __init__(self, file_path: str | PathLike[str]) -> None:
        if Path(file_path).suffix != ".json":
            raise InvalidInput(f"{file_path} does not end in .json.", hint="Name it so, or use SQLiteBackend.")
        super().__init__(file_path)


class InMemoryBackend(_Searched):
    """Items in a dictionary of this process: for tests, and for the running task. Nothing of it reaches a disk."""

    def __init__(self, items: Mapping[str, ContextItem] | None = None) -> None:
        self._items = {item.context_item_id: item for item in (items or {}).values()}

    @property
    def items(self) -> dict[str, ContextItem]:
        """The items by their ids: a copy."""
        return dict(self._items)

    def add(self, item: ContextItem) -> None:
        """Keep the item; one with the same id is replaced, in its place."""
        _check_embedding(item.embedding)
        self._items[item.context_item_id] = item

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item, or None."""
        return self._items.get(item_id)

    def delete(self, item_id: str) -> bool:
        """Delete the item; False if there was none."""
        return self._items.pop(item_id, None) is not None

    def list_all(self) -> list[ContextItem]:
        """Return every item, in the order they were added."""
        return [*self._items.values()]

    def clear(self) -> None:
        """Delete every item."""
        self._items.clear()

    def count(self) -> int:
        """Return how many items there are."""
        return len(self._items)


def _readable(payload: Mapping[str, Any]) -> str:
    """Return the payload as a person reads it: its texts, or all of it as JSON if it has none."""
    encoded = msgspec.json.encode(payload).decode()  # raises for a payload that cannot be stored
    return "\n".join(texts_of(payload)) or encoded


def texts_of(payload: object) -> list[str]:
    """Return the texts in a payload; code of others may put anything into one."""
    values = payload.values() if isinstance(payload, Mapping) else ()
    return [value for value in values if isinstance(value, str) and value.strip()]


def _last_event(reader: Reader) -> int:
    """Return the number of the last event of the journal."""
    last = reader.events(newest_first=True, limit=1)
    return last[0].seq if last else 0


def _check_limit(limit: int) -> None:
    if limit < 0:
        raise InvalidInput(f"limit must be 0 or more, got {limit}.")


def _check_embedding(embedding: Sequence[float] | None) -> None:
    """Raise InvalidInput unless all of it are finite numbers: a single other one would end every semantic query."""
    try:
        is_finite = all(map(math.isfinite, embedding or ()))
    except TypeError:
        is_finite = False
    if not is_finite:
        raise InvalidInput("An embedding must be a list of finite numbers.", hint="Leave out an item that has none.")


def _stored_id(item_id: str) -> str:
    """Return the id of an item without its secrets; a digest keeps apart those that differ in nothing else."""
    safe = redact(item_id).text
    return item_id if safe == item_id else f"{safe}-{hashlib.sha256(item_id.encode()).hexdigest()[:16]}"


def fits(item: ContextItem, filters: dict[str, Any]) -> bool:
    """Whether the item matches every filter: an equal value, a list with a common entry, or {"$gte": 0.7}.

    Unknown operators, and comparisons of different types, match nothing.
    """
    return all(_fits(getattr(item, name, None), wanted) for name, wanted in filters.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(_compares(value, name, target) for name, target in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and any(entry in value for entry in wanted)
    return bool(value == wanted)


def _compares(value: Any, name: str, target: Any) -> bool:
    try:
        return name in _OPERATORS and bool(_OPERATORS[name](value, target))
    except TypeError:
        return False


def _sortable(value: Any) -> tuple[int, Any]:
    """A key that sorts missing values first, then numbers, then text."""
    if value is None:
        return (0, "")
    return (1, value) if isinstance(value, int | float) else (2, str(value))


def _by_key(reader: Reader, key: str) -> Memory | None:
    return next(iter(reader.select(replace(ITEMS, shelf="any", key=key), limit=1)), None)


def _to_item(memory: Memory) -> ContextItem:
    """The item as it was added; a missing value is the default, so that one item never makes a backend unreadable."""
    known = ContextItem.__struct_fields__
    given = {name: value for name, value in (memory.data or {}).items() if name in known and value is not None}
    return ContextItem(**given)
