"""The names of agent_engine's memory design, on top of our storages, for code written against it.

    from kept.compat import ContextAssembler, InMemoryBackend, ProjectMemoryStore, TaskMemoryStore

The three stores and the assembler work with any backend; `backends` has those over our storages.
Rule: thin. Where that design's code and its text differ, the text counts; docs/projects.md lists where.
"""

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from kept.compat.backends import (
    ContextItem,
    InMemoryBackend,
    JSONFileBackend,
    MemoryBackend,
    SQLiteBackend,
    StorageBackend,
    texts_of,
)
from kept.errors import StorageError as MemoryError
from kept.memory.brief import fitting_shared
from kept.memory.knowledge import signature_of
from kept.tables import BRIEFING_SHARES
from kept.text import words

__all__ = [
    "ContextAssembler",
    "ContextItem",
    "ContextPackage",
    "ContextPolicy",
    "ContextRequest",
    "ContextStore",
    "FailureSignature",
    "GlobalMemoryStore",
    "InMemoryBackend",
    "JSONFileBackend",
    "MemoryBackend",
    "MemoryConfig",
    "MemoryError",
    "ProjectMemoryStore",
    "SQLiteBackend",
    "StorageBackend",
    "Task",
    "TaskMemoryStore",
    "learned_shares",
]

MAX_OUTPUTS = 1_000  # of a stage
MAX_FOUND = 100
TOKENS_PER_ITEM = 10  # assumed, to ask a tier for about as many items as its share can hold
LEAST_SHARE = 10  # of a hundred, for every tier, however little of it was used
USUAL_TOKENS = 2_000  # used ones that the usual shares count for, so that a few items change little
EVICTED_SHARE = 10  # one in ten items of a store that is too full is evicted


class ContextPolicy(Struct, kw_only=True):
    """How context is selected: that many of the newest and of the oldest items come first."""

    head_tail_preserve: int | None = None


class MemoryConfig(Struct, kw_only=True):
    """The memory settings of an agent's profile. `shares` of task, project and global are in any unit.

    `learns_shares`: tiers whose items are used more get a larger share (D14), unless `shares` says otherwise.
    """

    context_policy: ContextPolicy | None = None
    shares: Mapping[str, int] | None = None
    learns_shares: bool = False


class ContextRequest(Struct, kw_only=True):
    """How many tokens of context are wanted; `shares` overrides that of the profile."""

    budget_tokens: int
    shares: Mapping[str, int] | None = None
    query: str = ""  # the topic of the task; by default its `description`. Items that share its words come first
    categories: Sequence[str] = ()  # only global items with one of these tags


class ContextPackage(Struct, kw_only=True):
    """The context of a task. `compression_ratio`: tokens of the items, divided by tokens of all candidates."""

    context_package_id: str
    items: list[ContextItem]
    summary: str | None = None
    compression_ratio: float | None = None


class Task(Struct):
    """A running task of the project `metadata["project_id"]`."""

    task_id: str
    metadata: dict[str, Any] = field(default_factory=dict)


class FailureSignature(Struct):
    """A failure: a code (text, or a member of an enumeration) and the message of the error."""

    code: Any
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """The message without the parts that change from run to run. Equal means the same failure."""
        return signature_of(self.message)

    def dict(self) -> dict[str, Any]:
        """Plain values, as they are stored."""
        return {"code": _code(self), "message": self.message, "signature": self.signature, **self.details}


@dataclasses.dataclass
class TaskMemoryStore:
    """The notes of one running task. Cleared when the task ends."""

    task_id: str
    backend: MemoryBackend = dataclasses.field(default_factory=InMemoryBackend)

    def add_reasoning(self, text: str, stage_id: str) -> ContextItem:
        """Note the reasoning at a stage."""
        tags, prefix = ["task", stage_id], f"reasoning-{stage_id}"
        return _add(self.backend, "reasoning", text, 0.5, self._source(stage_id), tags, {"text": text}, prefix)

    def add_tool_output(self, tool_id: str, output: Any, stage_id: str | None = None) -> ContextItem:
        """Note the output of a tool; with a stage, `get_stage_outputs` finds it there."""
        tags, prefix = ["task", "tool", tool_id, *([] if stage_id is None else [stage_id])], f"tool-{tool_id}"
        payload = {"tool_id": tool_id, "output": output}
        return _add(self.backend, "tool_output", str(output), 0.7, self._source(stage_id), tags, payload, prefix)

    def list_notes(self) -> list[ContextItem]:
        """All notes of this task, in the order they were added."""
        return _own(self.backend, f"task/{self.task_id}")

    def get_stage_outputs(self, stage_id: str) -> list[ContextItem]:
        """Everything noted at one stage, newest first."""
        return self.backend.query({"source": self._source(stage_id)}, limit=MAX_OUTPUTS)

    def clear(self) -> None:
        """Delete all notes of this task."""
        _delete(self.backend, self.list_notes())

    def _source(self, stage_id: str | None) -> str:
        return f"task/{self.task_id}" if stage_id is None else f"task/{self.task_id}/{stage_id}"


@dataclasses.dataclass
class ProjectMemoryStore:
    """The knowledge of one project. Above `max_items`, the least important tenth is archived, the oldest first."""

    project_id: str
    backend: MemoryBackend
    max_items: int = 1000

    def add_decision(self, decision: str, tags: list[str]) -> ContextItem:
        """Store a decision."""
        return self._add("decision", decision, 0.9, tags, {"decision": decision})

    def add_convention(self, convention: str, scope: str) -> ContextItem:
        """Store a convention; `scope` says where it applies."""
        return self._add("convention", convention, 0.8, [scope], {"convention": convention, "scope": scope})

    def add_failure(self, failure: Any, lesson: str) -> ContextItem:
        """Store a failure and its lesson. `failure` is a FailureSignature, or an object with its `code` and `dict`."""
        return self._add("failure", lesson, 0.85, [_code(failure)], {"failure": failure.dict(), "lesson": lesson})

    def add_preference(self, preference: str, category: str) -> ContextItem:
        """Store how the user wants things in this project."""
        return self._add("preference", preference, 0.9, [category], {"preference": preference, "category": category})

    def add_pattern(self, pattern: str, domain: str) -> ContextItem:
        """Store a pattern of this project."""
        return self._add("pattern", pattern, 0.7, [domain], {"pattern": pattern, "domain": domain})

    def query_decisions(self, tags: list[str] | None = None) -> list[ContextItem]:
        """Decisions, newest first; with `tags`, those that have one of them."""
        return self._query("decision", tags)

    def query_preferences(self, category: str | None = None) -> list[ContextItem]:
        """Preferences for this project, newest first; of one category, or of all."""
        return self._query("preference", None if category is None else [category])

    def query_patterns(self, domain: str | None = None) -> list[ContextItem]:
        """Patterns of this project, newest first; of one domain, or of all."""
        return self._query("pattern", None if domain is None else [domain])

    def _query(self, kind: str, tags: list[str] | None) -> list[ContextItem]:
        filters: dict[str, Any] = {"kind": kind, "source": f"project/{self.project_id}"}
        return self.backend.query(filters | ({"tags": tags} if tags else {}), limit=MAX_FOUND)

    def _add(self, kind: str, words: str, importance: float, tags: list[str], payload: dict[str, Any]) -> ContextItem:
        source, own = f"project/{self.project_id}", ["project", kind, *tags]
        item = _add(self.backend, kind, words, importance, source, own, payload)
        if self.backend.count() > self.max_items:
            self._evict()
        return item

    def _evict(self) -> None:
        own = _own(self.backend, f"project/{self.project_id}")
        if len(own) <= self.max_items:  # the others are of other stores
            return
        least_first = sorted(own, key=lambda item: (item.importance or 0, item.timestamp or ""))
        evicted = [item.context_item_id for item in least_first[: len(least_first) // EVICTED_SHARE]]
        if isinstance(self.backend, StorageBackend):
            self.backend.archive(evicted)
        else:
            for item_id in evicted:
                self.backend.delete(item_id)


@dataclasses.dataclass
class GlobalMemoryStore:
    """Knowledge for all projects. `confirmation_callback` is asked before a preference is added or all is cleared."""

    backend: MemoryBackend
    confirmation_callback: Callable[[str], bool] | None = None

    def add_preference(self, preference: str, category: str, require_confirmation: bool = False) -> ContextItem | None:
        """Store a preference; None when the person declined.

        A person who can be asked is always asked, whatever `require_confirmation` says.
        """
        if not self._agrees(f"Add global preference: '{preference}' (category: {category})?"):
            return None
        return self._add("pref", "preference", 0.9, category, {"preference": preference, "category": category})

    def add_pattern(self, pattern: str, domain: str) -> ContextItem:
        """Store a pattern, without confirmation."""
        return self._add("pattern", "pattern", 0.7, domain, {"pattern": pattern, "domain": domain})

    def query_preferences(self, category: str | None = None) -> list[ContextItem]:
        """Preferences, newest first; of one category, or of all."""
        filters: dict[str, Any] = {"kind": "preference", "source": "global"}
        return self.backend.query(filters | ({"tags": [category]} if category else {}), limit=MAX_FOUND)

    def clear_all(self) -> bool:
        """Delete everything; False when the person declined."""
        if not self._agrees("DANGER: Clear ALL global memory?"):
            return False
        _delete(self.backend, _own(self.backend, "global"))
        return True

    def _agrees(self, question: str) -> bool:
        return self.confirmation_callback is None or self.confirmation_callback(question)

    def _add(self, prefix: str, kind: str, importance: float, tag: str, payload: dict[str, Any]) -> ContextItem:
        tags = ["global", kind, tag]
        return _add(self.backend, kind, payload[kind], importance, "global", tags, payload, prefix)


@dataclasses.dataclass
class ContextAssembler:
    """Builds the context of a task from all three tiers."""

    task_stores: dict[str, TaskMemoryStore] = dataclasses.field(default_factory=dict)
    project_stores: dict[str, ProjectMemoryStore] = dataclasses.field(default_factory=dict)
    global_store: GlobalMemoryStore = dataclasses.field(default_factory=lambda: GlobalMemoryStore(InMemoryBackend()))
    memory_config: MemoryConfig | None = None
    used_tokens: dict[str, int] = dataclasses.field(default_factory=dict)  # by tier; a host may keep it between runs

    def add(self, item: ContextItem, project_id: str = "default") -> None:
        """Add an item of the old ContextStore, as its callers did; it belongs to the project."""
        self._project(project_id).backend.add(item)

    def note_used(self, items: Iterable[ContextItem]) -> None:
        """Tell which items of a package were used. With `learns_shares`, later packages follow that (D14)."""
        for item in items:
            self.used_tokens[_tier(item)] = self.used_tokens.get(_tier(item), 0) + (item.token_cost or 0)

    def build_context(self, task: Task, request: ContextRequest) -> ContextPackage:
        """Choose what fits the request's budget: from all notes of the task, the project's items that share words with
        the query (else the newest), and the newest global ones of the categories."""
        task_store = self.task_stores.setdefault(task.task_id, TaskMemoryStore(task.task_id))
        project = self._project(task.metadata.get("project_id", "default"))
        allocation = self._get_budget_allocation(request)
        query = getattr(request, "query", "") or str(task.metadata.get("description", ""))
        wanted = set(getattr(request, "categories", None) or ())
        of_project = _relevant(_newest(project.backend, f"project/{project.project_id}"), query)
        of_all = [
            one for one in _newest(self.global_store.backend, "global") if not wanted or not wanted.isdisjoint(one.tags)
        ]
        considered = [
            *task_store.list_notes(),
            *of_project[: allocation["project"] // TOKENS_PER_ITEM],
            *of_all[: allocation["global"] // TOKENS_PER_ITEM],
        ]
        selected = self._select_within_budget(considered, request.budget_tokens, request, query)
        return ContextPackage(
            context_package_id=f"ctx-{task.task_id}",
            items=selected,
            compression_ratio=_cost(selected) / (_cost(considered) or 1),
        )

    def cleanup_task(self, task_id: str) -> None:
        """The task has ended: delete its notes."""
        if (store := self.task_stores.pop(task_id, None)) is not None:
            store.clear()

    def _project(self, project_id: str) -> ProjectMemoryStore:
        if project_id not in self.project_stores:
            self.project_stores[project_id] = ProjectMemoryStore(project_id, InMemoryBackend())
        return self.project_stores[project_id]

    def _shares(self, request: ContextRequest) -> dict[str, int]:
        learns = getattr(self.memory_config, "learns_shares", False)
        usual = learned_shares(self.used_tokens) if learns else BRIEFING_SHARES
        return {**usual, **_shares_of(self.memory_config), **_shares_of(request)}

    def _get_budget_allocation(self, request: ContextRequest) -> dict[str, int]:
        shares = self._shares(request)
        whole = sum(shares.values()) or 1
        return {tier: request.budget_tokens * share // whole for tier, share in shares.items()}

    def _select_within_budget(
        self, items: Sequence[ContextItem], budget: int, request: ContextRequest, query: str = ""
    ) -> list[ContextItem]:
        """Take the oldest and newest first, if configured, then the relevant and important; each tier within its share.

        Of the ends, the outermost come first. The room that one tier leaves is for all. An item too big is skipped.
        """
        policy = getattr(self.memory_config, "context_policy", None)
        n = getattr(policy, "head_tail_preserve", None) or 0
        by_age = sorted(items, key=lambda item: item.timestamp or "")
        inwards = (by_age[place] for step in range(min(n, len(by_age))) for place in (-1 - step, step))
        ends = {id: place for place, id in enumerate(dict.fromkeys(item.context_item_id for item in inwards))}
        worth = {item.context_item_id: _worth(item, query) for item in items}

        def place(item: ContextItem) -> tuple[int, float, str]:
            return (
                ends.get(item.context_item_id, len(ends)),
                -worth[item.context_item_id],
                item.timestamp or "",
            )

        ranked = sorted(items, key=place)
        costs = [item.token_cost or 0 for item in ranked]
        chosen = fitting_shared(costs, [_tier(item) for item in ranked], budget, self._shares(request))
        return [ranked[position] for position in chosen]


@dataclasses.dataclass
class ContextStore:
    """The store that the three tiers replaced: a dictionary. Its items can be handed to `ContextAssembler.add`."""

    items: dict[str, ContextItem] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        message = "ContextStore is deprecated. Use ContextAssembler, whose `add` takes the same items."
        warnings.warn(message, DeprecationWarning, stacklevel=3)

    def add(self, item: ContextItem) -> None:
        """Store the item; one with the same id is replaced."""
        self.items[item.context_item_id] = item

    def get(self, item_id: str) -> ContextItem | None:
        """The item, or None."""
        return self.items.get(item_id)


def learned_shares(used_tokens: Mapping[str, int]) -> dict[str, int]:
    """Shares of a hundred by what was used: as usual at first, and no tier below LEAST_SHARE."""
    used = {tier: usual * USUAL_TOKENS / 100 + used_tokens.get(tier, 0) for tier, usual in BRIEFING_SHARES.items()}
    shares = {tier: 100 * own / sum(used.values()) for tier, own in used.items()}
    raised = {tier: max(LEAST_SHARE, own) for tier, own in shares.items()}
    spare = {tier: own - LEAST_SHARE for tier, own in raised.items()}
    over = sum(raised.values()) - 100
    return {tier: round(own - over * spare[tier] / (sum(spare.values()) or 1)) for tier, own in raised.items()}


def _own(backend: MemoryBackend, owner: str) -> list[ContextItem]:
    """The items of one store of several on a backend: by their source. One that names no tier is everybody's."""
    return [
        item
        for item in backend.list_all()
        if f"{item.source}/".startswith(f"{owner}/") or item.source.partition("/")[0] not in BRIEFING_SHARES
    ]


def _newest(backend: MemoryBackend, owner: str) -> list[ContextItem]:
    return sorted(_own(backend, owner), key=lambda item: item.timestamp or "", reverse=True)


def _shares_of(named: object) -> Mapping[str, int]:
    """Return the shares that a request or a profile gives; agent_engine's own classes have no such field."""
    return getattr(named, "shares", None) or {}


def _relevance(item: ContextItem, query: str) -> float:
    """Return the share of the query's words that an item has, from 0 to 1."""
    asked = set(words(query))
    own = set(words(" ".join((*item.tags, *texts_of(item.payload)))))
    return len(asked & own) / len(asked) if asked else 0.0


def _relevant(newest: Sequence[ContextItem], query: str) -> list[ContextItem]:
    """Return the items that share words with the query first; without a query, as they are."""
    return sorted(newest, key=lambda item: -_relevance(item, query)) if query else list(newest)


def _worth(item: ContextItem, query: str) -> float:
    """Return the importance of an item; twice as much if it has all words of the query."""
    return (item.importance or 0.0) * (1 + _relevance(item, query))


def _delete(backend: MemoryBackend, items: Sequence[ContextItem]) -> None:
    ids = [item.context_item_id for item in items]
    if isinstance(backend, StorageBackend):
        backend.delete_all(ids)
    else:
        for item_id in ids:
            backend.delete(item_id)


def _add(
    backend: MemoryBackend,
    kind: str,
    words: str,
    importance: float,
    source: str,
    tags: list[str],
    payload: dict[str, Any],
    id_prefix: str = "",
) -> ContextItem:
    """Add a new item to the backend. Its cost is the number of words that a reader reads."""
    item = ContextItem(
        context_item_id=f"{id_prefix or kind}-{uuid4()}",
        kind=kind,
        source=source,
        timestamp=datetime.now(UTC).isoformat(),
        tags=tags,
        importance=importance,
        token_cost=len(words.split()),
        payload=payload,
    )
    backend.add(item)
    return item


def _code(failure: Any) -> str:
    return str(getattr(failure.code, "value", failure.code))


def _tier(item: ContextItem) -> str:
    """The tier whose share an item takes, by its source; the project's if the source names none."""
    tier = item.source.partition("/")[0]
    return tier if tier in BRIEFING_SHARES else "project"


def _cost(items: Iterable[ContextItem]) -> int:
    return sum(item.token_cost or 0 for item in items)
