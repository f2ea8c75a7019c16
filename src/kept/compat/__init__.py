"""For code written against agent_engine's memory design: its names, on top of our storages.

    from kept.compat import ContextAssembler, InMemoryBackend, ProjectMemoryStore, TaskMemoryStore

Facade layer. The three stores and the assembler stand on any backend; `backends` has those over our storages. Rule:
thin. Where that design's code fell short of its text, the text holds; docs/projects.md says where.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from kept.compat.backends import ContextItem, InMemoryBackend, MemoryBackend, StorageBackend
from kept.recall.briefing import fitting_shared
from kept.tables import BRIEFING_SHARES
from kept.writing.extraction import signature_of

__all__ = [
    "ContextAssembler",
    "ContextItem",
    "ContextPackage",
    "ContextPolicy",
    "ContextRequest",
    "FailureSignature",
    "GlobalMemoryStore",
    "InMemoryBackend",
    "MemoryBackend",
    "MemoryConfig",
    "ProjectMemoryStore",
    "StorageBackend",
    "Task",
    "TaskMemoryStore",
]

MOST_OUTPUTS = 1_000  # of a stage
MOST_FOUND = 100
TOKENS_AN_ITEM = 10  # assumed, to ask a tier for about as many items as its share can hold
EVICTED_SHARE = 10  # of a store that is too full, one in so many goes


class ContextPolicy(Struct, kw_only=True):
    """How context is selected: so many of the newest and of the oldest items come before all others."""

    head_tail_preserve: int | None = None


class MemoryConfig(Struct, kw_only=True):
    """What an agent's profile says about memory. `shares` are those of task, project and global, in any unit."""

    context_policy: ContextPolicy | None = None
    shares: Mapping[str, int] | None = None


class ContextRequest(Struct, kw_only=True):
    """How many tokens of context are wanted; `shares` goes before those of the profile."""

    budget_tokens: int
    shares: Mapping[str, int] | None = None


class ContextPackage(Struct, kw_only=True):
    """The context of a task: items, and which part of all that was considered they are, by tokens."""

    context_package_id: str
    items: list[ContextItem]
    summary: str | None = None
    compression_ratio: float | None = None


class Task(Struct):
    """A running task; `metadata["project_id"]` says where it belongs."""

    task_id: str
    metadata: dict[str, Any] = field(default_factory=dict)


class FailureSignature(Struct):
    """What went wrong: a code (text, or a member of an enumeration), and the message of the error."""

    code: Any
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """The message without what changes from run to run: two with the same one are the same failure."""
        return signature_of(self.message)

    def dict(self) -> dict[str, Any]:
        """Plain values, as they are kept."""
        return {"code": _code(self), "message": self.message, "signature": self.signature, **self.details}


@dataclasses.dataclass
class TaskMemoryStore:
    """What one running task notes down. Cleared when the task has ended."""

    task_id: str
    backend: MemoryBackend = dataclasses.field(default_factory=InMemoryBackend)

    def add_reasoning(self, text: str, stage_id: str) -> ContextItem:
        """Note what was thought at a stage."""
        return _added(
            self.backend,
            f"reasoning-{stage_id}",
            "reasoning",
            source=f"task/{self.task_id}/{stage_id}",
            tags=["task", stage_id],
            importance=0.5,
            words=text,
            payload={"text": text},
        )

    def add_tool_output(self, tool_id: str, output: Any, stage_id: str | None = None) -> ContextItem:
        """Note what a tool gave back; with a stage, `get_stage_outputs` finds it there."""
        return _added(
            self.backend,
            f"tool-{tool_id}",
            "tool_output",
            source=f"task/{self.task_id}" if stage_id is None else f"task/{self.task_id}/{stage_id}",
            tags=["task", "tool", tool_id, *([] if stage_id is None else [stage_id])],
            importance=0.7,
            words=str(output),
            payload={"tool_id": tool_id, "output": output},
        )

    def get_stage_outputs(self, stage_id: str) -> list[ContextItem]:
        """Everything noted at one stage, newest first."""
        return self.backend.query({"source": f"task/{self.task_id}/{stage_id}"}, limit=MOST_OUTPUTS)

    def clear(self) -> None:
        """Let go of everything."""
        self.backend.clear()


@dataclasses.dataclass
class ProjectMemoryStore:
    """What one project knows. Above `max_items`, the least important tenth is archived, of equals the oldest."""

    project_id: str
    backend: MemoryBackend
    max_items: int = 1000

    def add_decision(self, decision: str, tags: list[str]) -> ContextItem:
        """Keep a decision."""
        return self._add("decision", decision, 0.9, tags, {"decision": decision})

    def add_convention(self, convention: str, scope: str) -> ContextItem:
        """Keep how things are done; `scope` says where."""
        return self._add("convention", convention, 0.8, [scope], {"convention": convention, "scope": scope})

    def add_failure(self, failure: Any, lesson: str) -> ContextItem:
        """Keep what went wrong and what was learned. `failure` is a FailureSignature, or what has its code and dict."""
        return self._add("failure", lesson, 0.85, [_code(failure)], {"failure": failure.dict(), "lesson": lesson})

    def query_decisions(self, tags: list[str] | None = None) -> list[ContextItem]:
        """Decisions, newest first; with `tags`, those that have one of them."""
        filters: dict[str, Any] = {"kind": "decision", "source": f"project/{self.project_id}"}
        return self.backend.query(filters | ({"tags": tags} if tags else {}), limit=MOST_FOUND)

    def _add(self, kind: str, words: str, importance: float, tags: list[str], payload: dict[str, Any]) -> ContextItem:
        source, own = f"project/{self.project_id}", ["project", kind, *tags]
        item = _added(
            self.backend, kind, kind, source=source, tags=own, importance=importance, words=words, payload=payload
        )
        self._maybe_evict()
        return item

    def _maybe_evict(self) -> None:
        if self.backend.count() <= self.max_items:
            return
        least_first = sorted(self.backend.list_all(), key=lambda item: (item.importance or 0, item.timestamp or ""))
        gone = [item.context_item_id for item in least_first[: len(least_first) // EVICTED_SHARE]]
        if isinstance(self.backend, StorageBackend):
            self.backend.archive(gone)
        else:
            for item_id in gone:
                self.backend.delete(item_id)


@dataclasses.dataclass
class GlobalMemoryStore:
    """What holds for all projects. Whoever can be asked is: for each preference, and before everything is cleared."""

    backend: MemoryBackend
    confirmation_callback: Callable[[str], bool] | None = None

    def add_preference(self, preference: str, category: str, require_confirmation: bool = False) -> ContextItem | None:
        """Keep a preference; None when the person said no.

        They are asked whether or not `require_confirmation` says so: a global preference is never kept behind the back
        of a person who can be asked.
        """
        if not self._agrees(f"Add global preference: '{preference}' (category: {category})?"):
            return None
        return self._add("pref", "preference", 0.9, category, {"preference": preference, "category": category})

    def add_pattern(self, pattern: str, domain: str) -> ContextItem:
        """Keep a pattern; nobody is asked."""
        return self._add("pattern", "pattern", 0.7, domain, {"pattern": pattern, "domain": domain})

    def query_preferences(self, category: str | None = None) -> list[ContextItem]:
        """Preferences, newest first; of one category, or of all."""
        filters: dict[str, Any] = {"kind": "preference", "source": "global"}
        return self.backend.query(filters | ({"tags": [category]} if category else {}), limit=MOST_FOUND)

    def clear_all(self) -> bool:
        """Let go of everything; False when the person said no."""
        if not self._agrees("DANGER: Clear ALL global memory?"):
            return False
        self.backend.clear()
        return True

    def _agrees(self, question: str) -> bool:
        return self.confirmation_callback is None or self.confirmation_callback(question)

    def _add(self, prefix: str, kind: str, importance: float, tag: str, payload: dict[str, Any]) -> ContextItem:
        tags = ["global", kind, tag]
        words = payload[kind]
        return _added(
            self.backend, prefix, kind, source="global", tags=tags, importance=importance, words=words, payload=payload
        )


@dataclasses.dataclass
class ContextAssembler:
    """The context of a task, out of all three tiers."""

    task_stores: dict[str, TaskMemoryStore] = dataclasses.field(default_factory=dict)
    project_stores: dict[str, ProjectMemoryStore] = dataclasses.field(default_factory=dict)
    global_store: GlobalMemoryStore = dataclasses.field(default_factory=lambda: GlobalMemoryStore(InMemoryBackend()))
    memory_config: MemoryConfig | None = None

    def build_context(self, task: Task, request: ContextRequest) -> ContextPackage:
        """What fits into the request's budget: of the task everything, of project and global the newest."""
        task_store = self.task_stores.setdefault(task.task_id, TaskMemoryStore(task.task_id))
        project_id = task.metadata.get("project_id", "default")
        if project_id not in self.project_stores:
            self.project_stores[project_id] = ProjectMemoryStore(project_id, InMemoryBackend())
        allocation = self._get_budget_allocation(request)
        considered = [
            *task_store.backend.list_all(),
            *self.project_stores[project_id].backend.query({}, limit=allocation["project"] // TOKENS_AN_ITEM),
            *self.global_store.backend.query({}, limit=allocation["global"] // TOKENS_AN_ITEM),
        ]
        selected = self._select_within_budget(considered, request.budget_tokens, request)
        return ContextPackage(
            context_package_id=f"ctx-{task.task_id}",
            items=selected,
            compression_ratio=_cost(selected) / (_cost(considered) or 1),
        )

    def cleanup_task(self, task_id: str) -> None:
        """The task has ended: let go of what it noted."""
        store = self.task_stores.pop(task_id, None)
        if store is not None:
            store.clear()

    def _shares(self, request: ContextRequest) -> dict[str, int]:
        own = self.memory_config.shares if self.memory_config is not None else None
        return {**BRIEFING_SHARES, **(own or {}), **(request.shares or {})}

    def _get_budget_allocation(self, request: ContextRequest) -> dict[str, int]:
        shares = self._shares(request)
        whole = sum(shares.values()) or 1
        return {tier: request.budget_tokens * share // whole for tier, share in shares.items()}

    def _select_within_budget(
        self, items: Sequence[ContextItem], budget: int, request: ContextRequest
    ) -> list[ContextItem]:
        """The ends first, if so configured, then the most important; each tier within its share, and what one leaves
        is for all. An item that is too big is passed over."""
        policy = self.memory_config.context_policy if self.memory_config is not None else None
        n = (policy.head_tail_preserve if policy is not None else None) or 0
        by_age = sorted(items, key=lambda item: item.timestamp or "")
        ends = {item.context_item_id for item in (*by_age[:n], *by_age[max(n, len(by_age) - n) :])}
        ranked = sorted(
            items, key=lambda item: (item.context_item_id not in ends, -(item.importance or 0), item.timestamp or "")
        )
        costs = [item.token_cost or 0 for item in ranked]
        chosen = fitting_shared(costs, [_tier(item) for item in ranked], budget, self._shares(request))
        return [ranked[place] for place in chosen]


def _added(
    backend: MemoryBackend,
    prefix: str,
    kind: str,
    *,
    source: str,
    tags: list[str],
    importance: float,
    words: str,
    payload: dict[str, Any],
) -> ContextItem:
    """A new item of its own id, as it was given to the backend. What it costs is the words that a reader reads."""
    item = ContextItem(
        context_item_id=f"{prefix}-{uuid4()}",
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
    """Whose share an item takes, by where it came from; what says nothing of that is the project's."""
    tier = item.source.partition("/")[0]
    return tier if tier in BRIEFING_SHARES else "project"


def _cost(items: Iterable[ContextItem]) -> int:
    return sum(item.token_cost or 0 for item in items)
