"""mem0's face: code that says `from mem0 import Memory` runs with one changed import, without a key.

    from kept.adapters.mem0 import Memory

`AsyncMemory` is the same for a loop. Rule: names, arguments and answers are mem0's (2.2); what it does with a model,
this does by rules, and docs/adapters/mem0.md lists what differs.
"""

import operator
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Self

from kept.adapters.shared import as_tag, in_thread, opened, said
from kept.memory import Kept
from kept.memory.documents import MOST_FOUND, Document, Documents
from kept.text import fingerprint

COLLECTION = "mem0"
SCOPES = ("user_id", "agent_id", "run_id")
OF_MESSAGES = ("role", "actor_id")
EXPIRES = "expiration_date"
_EVENTS = {"remember": "ADD", "revise": "UPDATE", "forget": "DELETE", "undo": "UPDATE"}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: wanted in value,
    "icontains": lambda value, wanted: wanted.lower() in value.lower(),
}
_UNSET: Any = object()


class Memory:
    """mem0's `Memory`, in the given Kept memory, or the one that `location` and `project` name.

    A configuration is taken and not needed: there is no model and no vector store to configure.
    """

    def __init__(
        self,
        config: Any = None,
        *,
        memory: Kept | None = None,
        location: Path | str | None = None,
        project: Path | str | None = None,
    ) -> None:
        self.config = config
        self.kept = opened(memory, location, project)
        self._documents = Documents(self.kept.context, COLLECTION)

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
        about = {key: value for key, value in (metadata or {}).items() if key not in SCOPES}
        scope = _scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if expiration_date is not None:
            about[EXPIRES] = _day(expiration_date)
        known = {fingerprint(one.content) for one in self._of(scope) if _fits(one.value, scope)}
        new = [(text, by) for text, by in said(messages, infer=infer) if fingerprint(text) not in known]
        documents = [_document(str(uuid.uuid4()), text, {**about, **by, **scope}) for text, by in new]
        self._documents.apply(documents)
        return {"results": [{"id": one.key, "memory": one.content, "event": "ADD", **_said(one)} for one in documents]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """The memory with that id, or None."""
        found = self._documents.get(memory_id)
        return None if found is None else _shown(found)

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        limit: int | None = None,
        **scope: Any,
    ) -> dict[str, Any]:
        """The memories of a user, an agent or a run, newest first."""
        wanted = _filters(filters, scope)
        found = [one for one in self._of(wanted) if _fits(one.value, wanted) and self._is_shown(one, show_expired)]
        return {"results": [_shown(one) for one in found[::-1][: top_k if limit is None else limit]]}

    def search(
        self,
        query: str,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        threshold: float | None = None,
        show_expired: bool = False,
        limit: int | None = None,
        rerank: bool = False,
        **scope: Any,
    ) -> dict[str, Any]:
        """The memories that share words with the query, best first, with a score from 0 to 1."""
        if not query.strip():
            raise ValueError("The query is empty.")
        wanted = _filters(filters, scope)
        found = self._documents.search(query, tag=_tag(wanted), limit=MOST_FOUND)
        fitting = [one for one in found if _fits(one.value, wanted) and self._is_shown(one, show_expired)]
        best = max((one.score or 0 for one in fitting), default=1) or 1
        scored = [{**_shown(one), "score": round((one.score or 0) / best, 4)} for one in fitting]
        most = top_k if limit is None else limit
        return {"results": [one for one in scored if one["score"] >= (threshold or 0)][:most]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Give a memory another text, more metadata, or another day on which it ends."""
        text = data if text is None else text
        more = {key: value for key, value in (metadata or {}).items() if key not in SCOPES}
        if expiration_date is not _UNSET:
            more[EXPIRES] = None if expiration_date is None else _day(expiration_date)
        if text is None and metadata is None and expiration_date is _UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")

        def change(get: Callable[[str], Document | None]) -> list[Document]:
            found = _found(get(memory_id), memory_id)
            return [_document(memory_id, found.content if text is None else text, {**found.value, **more})]

        self._documents.edit(change)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; `kept undo` brings it back, `kept erase` removes it for good."""
        _found(self._documents.get(memory_id), memory_id)
        self._documents.apply([memory_id])
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories of a user, an agent or a run."""
        scope = _scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        self._documents.apply([one.key for one in self._of(scope) if _fits(one.value, scope)])
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

    def _of(self, scope: Mapping[str, Any]) -> Iterable[Document]:
        return list(self._documents.list(tag=_tag(scope)))

    def _is_shown(self, document: Document, show_expired: bool) -> bool:
        ends = document.value.get(EXPIRES)
        return show_expired or ends is None or ends >= self.kept.context.now().date().isoformat()


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
        """As `AsyncMemory()`."""
        return cls(config_dict, **where)

    add, get, get_all, search, update = map(_async, ("add", "get", "get_all", "search", "update"))
    delete, delete_all, history, reset = map(_async, ("delete", "delete_all", "history", "reset"))


def _document(key: str, text: str, value: Mapping[str, Any]) -> Document:
    tags = [f"{name}:{as_tag(str(value[name]))}" for name in SCOPES if value.get(name)]
    return Document(key=key, value=dict(value), content=text, tags=tuple(tags))


def _said(document: Document) -> dict[str, Any]:
    return {name: document.value[name] for name in OF_MESSAGES if name in document.value}


def _shown(document: Document) -> dict[str, Any]:
    promoted = {name: document.value[name] for name in (*SCOPES, *OF_MESSAGES, EXPIRES) if document.value.get(name)}
    rest = {name: value for name, value in document.value.items() if name not in (*SCOPES, *OF_MESSAGES, EXPIRES)}
    times = {name: getattr(document, name).isoformat() for name in ("created_at", "updated_at")}
    shown = {"id": document.key, "memory": document.content, "hash": fingerprint(document.content), **times}
    return {**shown, **promoted, "metadata": rest or None}


def _found(document: Document | None, memory_id: str) -> Document:
    if document is None:
        raise ValueError(f"Memory with id {memory_id} not found")
    return document


def _scope(**given: Any) -> dict[str, str]:
    scope = {name: str(value).strip() for name, value in given.items() if value is not None and str(value).strip()}
    if not scope:
        raise ValueError(f"At least one of {', '.join(SCOPES)} must be given: whose memory is it?")
    return scope


def _filters(filters: Mapping[str, Any] | None, scope: Mapping[str, Any]) -> dict[str, Any]:
    """All filters in one; the ids may stand in them, or beside them as in older versions."""
    if unknown := [name for name in scope if name not in SCOPES]:
        raise TypeError(f"Unknown argument {unknown[0]!r}.")
    given = dict(filters or {})
    return given | _scope(**{name: scope.get(name, given.get(name)) for name in SCOPES})


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
        return all(_compares(own, word, inner) for word, inner in target.items())
    if target == "*":
        return own is not None
    return own in target if isinstance(target, list) else own == target


def _compares(own: Any, word: str, target: Any) -> bool:
    if word not in _COMPARISONS:
        raise ValueError(f"{word!r} is not a comparison of a filter. Use one of {', '.join(_COMPARISONS)}.")
    try:
        return bool(_COMPARISONS[word](own, target))
    except (TypeError, AttributeError):  # a missing value, or one of another type
        return False


def _day(given: str | date) -> str:
    """The day as YYYY-MM-DD. Raises ValueError for anything else."""
    return (given if isinstance(given, date) else date.fromisoformat(given)).isoformat()[:10]
