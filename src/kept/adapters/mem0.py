"""mem0's face: code that says `from mem0 import Memory` runs with one changed import, without a key.

    from kept.adapters.mem0 import Memory

`AsyncMemory` is for a loop. Rule: names, arguments and answers are mem0's (2.2); its page in docs lists what differs.
"""

import operator
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Self

from kept.adapters.shared import as_tag, compares, in_thread, opened, said
from kept.memory import Kept
from kept.memory.documents import MOST_FOUND, Document, hidden_ids, storable_id
from kept.memory.stated import trust_of
from kept.model import LOW_TRUST, Trust
from kept.text import fingerprint

COLLECTION = "mem0"
SCOPES = ("user_id", "agent_id", "run_id")
EXPIRES = "expiration_date"
PROMOTED = (*SCOPES, "role", "actor_id", EXPIRES)  # beside the text of a memory; the rest is metadata
OTHER = ("limit", "rerank", "explain", "reference_date")  # `top_k` in older versions, and what is taken and ignored
_EVENTS = {"remember": "ADD", "revise": "UPDATE", "forget": "DELETE", "undo": "UPDATE"}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    **{name: getattr(operator, name.replace("te", "e")) for name in ("eq", "ne", "gt", "gte", "lt", "lte")},
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: wanted in value,
    "icontains": lambda value, wanted: wanted.lower() in value.lower(),
}
_UNSET: Any = object()


class Memory:
    """mem0's `Memory`, in the memory given, or the one that `location` and `project` name; ignores other configs."""

    def __init__(self, config: Any = None, *, memory: Kept | None = None, **where: Any) -> None:
        self.config = config
        self.kept = opened(config if memory is None and isinstance(config, Kept) else memory, **where)
        self._documents = self.kept.documents(COLLECTION)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **where: Any) -> Self:
        """As `Memory()`."""
        return cls(config_dict, **where)

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
        **ignored: Any,
    ) -> dict[str, Any]:
        """Keep what the user states, sentence by sentence; with `infer=False`, each message as it is."""
        scope = _scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        about = _about(metadata, _UNSET if expiration_date is None else expiration_date)
        known = {fingerprint(one.content) for one in self._of(scope)}
        new = [one for one in said(messages, infer=infer) if fingerprint(one.text) not in known]
        documents = [_document(str(uuid.uuid4()), one.text, {**about, **one.about, **scope}, one.trust) for one in new]
        self._documents.apply(documents)
        added = zip(documents, new, strict=True)
        return {"results": [{"id": doc.key, "memory": doc.content, "event": "ADD", **one.about} for doc, one in added]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """The memory with that id, or None."""
        found = self._documents.get(memory_id)
        return None if found is None else _shown(found)

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20, show_expired: bool = False, **scope: Any
    ) -> dict[str, Any]:
        """The memories of a user, an agent or a run, newest first."""
        wanted, named = _filters(filters, scope)
        found = [_shown(one) | named for one in self._of(wanted) if self._is_shown(one, show_expired)]
        return {"results": found[::-1][: scope.get("limit") or top_k]}

    def search(
        self,
        query: str,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        threshold: float | None = 0.1,
        show_expired: bool = False,
        **scope: Any,
    ) -> dict[str, Any]:
        """Return the memories that fit the query, by words and by vectors if they are on; best first, scored 0 to 1."""
        if not query.strip():
            raise ValueError("The query is empty.")
        wanted, named = _filters(filters, scope)
        found = self._documents.search(query, tag=_tag(wanted), limit=MOST_FOUND)
        fitting = [one for one in found if _fits(one.value, wanted) and self._is_shown(one, show_expired)]
        best = max((one.score or 0 for one in fitting), default=1) or 1
        scored = [{**_shown(one), **named, "score": round((one.score or 0) / best, 4)} for one in fitting]
        return {"results": [one for one in scored if one["score"] >= (threshold or 0)][: scope.get("limit") or top_k]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Give a memory another text, more metadata, or another day on which it ends. No trust grows by it."""
        text, more = data if text is None else text, _about(metadata, expiration_date)
        more.pop("actor_id", None)  # who said it stays, as the ids do
        if text is None and metadata is None and expiration_date is _UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")

        def change(get: Callable[[str], Document | None]) -> list[Document]:
            found = _found(get(memory_id), memory_id)
            if text is None:
                return [_document(memory_id, found.content, {**found.value, **more}, found.trust)]
            trust = found.trust if found.trust in LOW_TRUST else trust_of("user", text)
            return [_document(memory_id, text, {**found.value, **more}, trust)]

        self._documents.edit(change)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; `kept undo` brings it back, `kept erase` removes it for good."""
        self._documents.edit(lambda get: [_found(get(memory_id), memory_id).key])
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories of a user, an agent or a run."""
        scope = _scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        self._documents.apply([one.key for one in self._of(scope)])
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What happened to a memory, oldest first."""
        lines: list[dict[str, Any]] = []
        for event in self._documents.history(memory_id):
            before, after = (event.changed or {}).get("content", (None, None))
            deed = _EVENTS.get(event.action, "UPDATE")
            old = lines[-1]["new_memory"] if lines else before
            line = {"id": event.hash[:32], "memory_id": memory_id, "old_memory": old, "event": deed}
            line |= {"new_memory": None if deed == "DELETE" else after or old, "is_deleted": int(deed == "DELETE")}
            lines.append({**line, "created_at": event.at.isoformat(), "updated_at": event.at.isoformat()})
        return lines

    def reset(self) -> None:
        """Forget everything that was added here."""
        self._documents.apply([one.key for one in self._documents.list()])

    def close(self) -> None:
        """Close the files."""
        self.kept.close()

    def _of(self, wanted: Mapping[str, Any]) -> list[Document]:
        return [one for one in self._documents.list(tag=_tag(wanted)) if _fits(one.value, wanted)]

    def _is_shown(self, document: Document, show_expired: bool) -> bool:
        ends = document.value.get(EXPIRES)
        return show_expired or ends is None or ends >= self.kept.look().now().date().isoformat()


def _async(name: str) -> Any:
    async def call(self: "AsyncMemory", *args: Any, **kwargs: Any) -> Any:
        return await in_thread(getattr(self.memory, name), *args, **kwargs)

    call.__name__, call.__doc__ = name, getattr(Memory, name).__doc__
    return call


class AsyncMemory:
    """mem0's `AsyncMemory`: every verb of `Memory` in a thread."""

    def __init__(self, config: Any = None, **where: Any) -> None:
        self.memory = Memory(config, **where)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **where: Any) -> Self:
        return cls(config_dict, **where)

    add, get, get_all, search, update = map(_async, ("add", "get", "get_all", "search", "update"))
    delete, delete_all, history, reset = map(_async, ("delete", "delete_all", "history", "reset"))


def _document(key: str, text: str, value: Mapping[str, Any], trust: Trust | None) -> Document:
    tags = tuple(f"{name}:{as_tag(str(value[name]))}" for name in SCOPES if value.get(name))
    return Document(key=key, value=dict(value), content=text, tags=tags, trust=trust)


def _about(metadata: Mapping[str, Any] | None, expiration_date: Any) -> dict[str, Any]:
    """What is stored beside a text; the day on which it ends as YYYY-MM-DD. Raises ValueError where it is none."""
    about = {name: value for name, value in (metadata or {}).items() if name not in SCOPES}
    if expiration_date is not _UNSET:
        day = date.fromisoformat(expiration_date) if isinstance(expiration_date, str) else expiration_date
        about[EXPIRES] = None if day is None else day.isoformat()[:10]
    return about


def _shown(document: Document) -> dict[str, Any]:
    promoted = {name: document.value[name] for name in PROMOTED if document.value.get(name)}
    rest = {name: value for name, value in document.value.items() if name not in PROMOTED}
    times = {name: getattr(document, name).isoformat() for name in ("created_at", "updated_at")}
    shown = {"id": document.key, "memory": document.content, "hash": fingerprint(document.content), **times}
    return {**shown, **promoted, "metadata": rest or None}


def _found(document: Document | None, memory_id: str) -> Document:
    if document is None:
        raise ValueError(f"Memory with id {memory_id} not found")
    return document


def _scope(**given: Any) -> dict[str, str]:
    scope = {name: storable_id(id) for name, value in given.items() if value is not None and (id := str(value).strip())}
    if not scope:
        raise ValueError(f"At least one of {', '.join(SCOPES)} must be given: whose memory is it?")
    return scope


def _filters(filters: Mapping[str, Any] | None, scope: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """All filters in one, ids too (beside them in older versions), as stored; and the ids that are stored otherwise."""
    if unknown := [name for name in scope if name not in (*SCOPES, *OTHER)]:
        raise TypeError(f"Unknown argument {unknown[0]!r}.")
    given = {**(filters or {}), **{name: scope[name] for name in SCOPES if name in scope}}
    return given | _scope(**(ids := {name: given.get(name) for name in SCOPES})), hidden_ids(ids)


def _tag(scope: Mapping[str, Any]) -> str:
    return next(f"{name}:{as_tag(scope[name])}" for name in SCOPES if scope.get(name))


def _fits(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_fits_one(value, name, target) for name, target in wanted.items())


def _fits_one(value: Mapping[str, Any], name: str, target: Any) -> bool:
    if name in ("AND", "OR", "NOT"):
        parts = [_fits(value, one) for one in target]
        return all(parts) if name == "AND" else any(parts) if name == "OR" else not any(parts)
    own = value.get(name)
    if isinstance(target, Mapping):
        return all(compares(_COMPARISONS, word, own, inner) for word, inner in target.items())
    return own is not None if target == "*" else own in target if isinstance(target, list) else own == target
