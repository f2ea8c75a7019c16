"""LangGraph: `KeptStore` is a `BaseStore`, for LangGraph, LangMem and everything else that takes one.

    from kept.adapters.langgraph import KeptStore
    graph = builder.compile(store=KeptStore(project="web-app"))

Each item is a document of the project: its namespace is its tags, its value can be found by its words, and other agents
of the project recall it. Rules: get, put, delete and filters mean what they mean in LangGraph's own stores; only a
search with a query differs, which needs no embeddings and returns what `recall` would. Every namespace and key
has a document of its own; tags only narrow a search down, and the labels of what was found are compared.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kept.adapters.shared import as_tag, compares, framework, in_thread, opened, words_of
from kept.errors import InvalidInput, expect
from kept.memory import Kept
from kept.memory.documents import MOST_FOUND, Document, Get
from kept.model import replace

with framework("langgraph"):
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

COLLECTION = "langgraph"
_BETWEEN, _BEFORE_KEY = ".", "/"
_QUOTED_CHAR = re.compile(r"[%./]")
_ESCAPE = re.compile(r"%(25|2E|2F)")
_TO_QUOTE = re.compile(rf"[./]|{_ESCAPE.pattern}|\A%?\Z")
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
        self._documents = self.memory.documents(COLLECTION)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer these operations: reads see the store as it was before, then all writes are made at once."""
        ops = list(ops)
        results = [self._read(op) for op in ops]
        changes = {_key(op.namespace, op.key): _change(op) for op in ops if isinstance(op, PutOp)}
        if changes:
            names = {(op.namespace, op.key) for op in ops if isinstance(op, PutOp)}
            self._documents.edit(lambda get: (_made_room(names, get) | changes).values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await in_thread(self.batch, ops)

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                found = _at(self._documents.get, op.namespace, op.key)
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
        prefix = tuple(op.namespace_prefix)
        tags = dict.fromkeys((_tag(prefix), *_tags_of_0_2(_BETWEEN.join(prefix)))) if prefix else (None,)
        if op.query:
            # Where others have the tag, any number of their items may come first and is left out again.
            is_exact = not op.filter and len(tags) == 1 and COLLECTION not in tags
            found = self._matches(op.query, tuple(tags), op.offset + op.limit if is_exact else MOST_FOUND)
        else:
            found = [one for tag in tags for one in self._documents.list(tag=tag)]
        fitting = (one for one in found if _is_in(prefix, one) and _fits(one.value, op.filter or {}))
        return list(islice(fitting, op.offset, op.offset + op.limit))

    def _matches(self, query: str, tags: Sequence[str | None], limit: int) -> list[Document]:
        """Return the documents with one of these tags that `recall` would give, best first."""
        found = [one for tag in tags for one in self._documents.search(query, tag=tag, limit=limit, has_floor=True)]
        return found if len(tags) == 1 else sorted(found, key=lambda one: one.score or 0, reverse=True)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {_name(document)[0] for document in self._documents.list()}
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
    expect(isinstance(op.value, Mapping), "value", 'a dictionary, such as {"text": "…"}', op.value)
    return Document(key=key, value=dict(op.value), content=_words(op), tags=_tags(op.namespace), lasts_minutes=op.ttl)


def _made_room(names: Iterable[tuple[Sequence[str], str]], get: Get) -> dict[str, Document | str]:
    """Move the items of Kept 0.2 that are in the way: its keys did not tell a slash in a label from that before a key.

    An item that is put again gets its new key; one of another namespace under the same key moves to its own.
    """
    changes: dict[str, Document | str] = {}
    for namespace, key in names:
        before = _at(get, namespace, key)
        if before is not None and before.key != _key(namespace, key):
            changes[before.key] = before.key
        other = get(_key(namespace, key))
        if other is not None and _name(other) != (tuple(namespace), key):
            own = _name(other)
            changes[_key(*own)] = replace(other, key=_key(*own), tags=_tags(own[0]))
    return changes


def _words(op: PutOp) -> str:
    """The words by which an item is found: of the whole value, or of the fields that `index` names."""
    if op.index is False:
        return ""
    if not op.index:
        return words_of(op.value)
    return "\n".join(text for path in op.index for text in get_text_at_path(op.value, tokenize_path(path)))


def _fields(document: Document) -> dict[str, Any]:
    namespace, key = _name(document)
    times = {"created_at": document.created_at, "updated_at": document.updated_at}
    return {"namespace": namespace, "key": key, "value": document.value, **times}


def _tags(namespace: Sequence[str]) -> tuple[str, ...]:
    return tuple(_tag(namespace[:depth]) for depth in range(1, len(namespace) + 1))


def _tag(namespace: Sequence[str]) -> str:
    return as_tag(_joined(namespace))


def _tags_of_0_2(joined: str) -> set[str]:
    """Return the tags that Kept 0.2 may have given a joined namespace. It quoted none but those with a comma."""
    return {as_tag(joined), joined} if "," not in joined else {as_tag(joined)}


def _key(namespace: Sequence[str], key: str) -> str:
    return f"{_joined(namespace)}{_BEFORE_KEY}{key}"


def _joined(namespace: Sequence[str]) -> str:
    return _BETWEEN.join(map(_quoted, namespace))


def _quoted(label: str) -> str:
    """Return the label without periods and slashes. Most labels stay as they are, as Kept 0.2 stored them."""
    if not _TO_QUOTE.search(label):
        return label
    return _QUOTED_CHAR.sub(lambda found: f"%{ord(found[0]):02X}", label) or "%"


def _unquoted(label: str) -> str:
    return "" if label == "%" else _ESCAPE.sub(lambda found: chr(int(found[1], 16)), label)


def _at(get: Get, namespace: Sequence[str], key: str) -> Document | None:
    """Return the item of that name: under its key, or under the key that Kept 0.2 gave it."""
    for at in dict.fromkeys((_key(namespace, key), f"{_BETWEEN.join(namespace)}{_BEFORE_KEY}{key}")):
        if (found := get(at)) is not None and _name(found) == (tuple(namespace), key):
            return found
    return None


def _name(document: Document) -> tuple[tuple[str, ...], str]:
    """Return the namespace and the key of an item. The tags of one that Kept 0.2 stored say where its key begins."""
    joined, _, own = document.key.partition(_BEFORE_KEY)
    namespace = tuple(map(_unquoted, joined.split(_BETWEEN))) if joined else ()
    if _tag(namespace) in document.tags:
        return namespace, own
    for end in [at.start() for at in re.finditer(_BEFORE_KEY, document.key)][::-1]:
        older = document.key[:end]
        if not _tags_of_0_2(older).isdisjoint(document.tags):
            return tuple(older.split(_BETWEEN)), document.key[end + 1 :]
    return namespace, own


def _is_in(prefix: tuple[str, ...], document: Document) -> bool:
    return _name(document)[0][: len(prefix)] == prefix


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
