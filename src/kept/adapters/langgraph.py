"""LangGraph: `KeptStore` is a `BaseStore`, for LangGraph, LangMem and everything else that takes one.

    from kept.adapters.langgraph import KeptStore
    graph = builder.compile(store=KeptStore(project="web-app"))

Each item is a document of the project: its namespace is its tags, its value can be found by its words, and other agents
of the project recall it. Rule: get, put, delete and filters mean what they mean in LangGraph's own stores; only a
search with a query differs, which needs no embeddings and returns what shares words with it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from kept.adapters.shared import as_tag, compares, in_thread, opened, words_of
from kept.errors import InvalidInput
from kept.memory import Kept
from kept.memory.documents import MOST_FOUND, Document, Documents

COLLECTION = "langgraph"
_BETWEEN, _BEFORE_KEY = ".", "/"  # labels have no periods, so that a joined namespace can be taken apart again
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


class KeptStore(BaseStore):
    """A LangGraph store in a Kept memory: the given one, or the one that `location` and `project` name."""

    supports_ttl = True

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self.memory = opened(memory, location, project)
        self.ttl_config = ttl
        self._documents = Documents(self.memory.context, COLLECTION)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer these operations: reads see the store as it was before, then all writes are made at once."""
        ops = list(ops)
        results = [self._read(op) for op in ops]
        changes = {_key(op.namespace, op.key): _change(op) for op in ops if isinstance(op, PutOp)}
        self._documents.apply(changes.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await in_thread(self.batch, ops)

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                found = self._documents.get(_key(op.namespace, op.key))
                self._touch([found] if found is not None and op.refresh_ttl else [])
                return None if found is None else Item(**_fields(found))
            case SearchOp():
                documents = self._search(op)
                self._touch(documents if op.refresh_ttl else [])
                return [SearchItem(**_fields(found), score=found.score) for found in documents]
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise InvalidInput(f"{type(op).__name__} is not an operation of a store.")

    def _search(self, op: SearchOp) -> list[Document]:
        tag = _tag(op.namespace_prefix) if op.namespace_prefix else None
        if op.query:
            limit = MOST_FOUND if op.filter else op.offset + op.limit
            found: Iterable[Document] = self._documents.search(op.query, tag=tag, limit=limit)
        else:
            found = self._documents.list(tag=tag)
        fitting = (one for one in found if _fits(one.value, op.filter or {}))
        return list(islice(fitting, op.offset, op.offset + op.limit))

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {_parts(document.key)[0] for document in self._documents.list()}
        fitting = (one for one in found if all(_matches(condition, one) for condition in op.match_conditions or ()))
        namespaces = sorted({one[: op.max_depth] for one in fitting})
        return namespaces[op.offset : op.offset + op.limit]

    def _touch(self, documents: Sequence[Document]) -> None:
        self._documents.touch([one.key for one in documents if one.lasts_minutes is not None])


def _change(op: PutOp) -> Document | str:
    """The document of a put; for a deletion, the key."""
    key = _key(op.namespace, op.key)
    if op.value is None:
        return key
    tags = tuple(_tag(op.namespace[:depth]) for depth in range(1, len(op.namespace) + 1))
    return Document(key=key, value=dict(op.value), content=_words(op), tags=tags, lasts_minutes=op.ttl)


def _words(op: PutOp) -> str:
    """The words by which an item is found: of the whole value, or of the fields that `index` names."""
    if op.index is False:
        return ""
    if not op.index:
        return words_of(op.value)
    return "\n".join(text for path in op.index for text in get_text_at_path(op.value, tokenize_path(path)))


def _fields(document: Document) -> dict[str, Any]:
    namespace, key = _parts(document.key)
    times = {"created_at": document.created_at, "updated_at": document.updated_at}
    return {"namespace": namespace, "key": key, "value": document.value, **times}


def _tag(namespace: Sequence[str]) -> str:
    return as_tag(_BETWEEN.join(namespace))


def _key(namespace: Sequence[str], key: str) -> str:
    return f"{_BETWEEN.join(namespace)}{_BEFORE_KEY}{key}"


def _parts(key: str) -> tuple[tuple[str, ...], str]:
    namespace, _, own = key.partition(_BEFORE_KEY)
    return tuple(namespace.split(_BETWEEN)), own


def _matches(condition: MatchCondition, namespace: Sequence[str]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=True))


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter wants it: equal, in every part of it, or by comparison."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(compares(_COMPARISONS, name, value, target) for name, target in wanted.items())
        return isinstance(value, dict) and all(_fits(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list | tuple) and len(value) == len(wanted) and all(map(_fits, value, wanted))
    return bool(value == wanted)
