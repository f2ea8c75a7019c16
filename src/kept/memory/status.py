"""The state of the store in numbers, for each readable space."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from kept import text
from kept.memory.context import Context
from kept.memory.receipts import past_latencies, was_degraded
from kept.memory.session_records import said_in
from kept.model import PROPOSED, Pause, SessionRecord
from kept.ports import Where
from kept.recall.candidates import percentile
from kept.storage.shared import by_day
from kept.upkeep import decisions

MOST_PROPOSED = 1_000  # that a status counts: more are not decided at once anyway


def status(context: Context) -> dict[str, Any]:
    """Return the numbers of each readable space."""
    spaces = []
    for storage in context.readable():
        with storage.reading() as reader:
            counts = {
                "live": reader.statistics(()).rows,
                "pinned": reader.count(Where(statuses=("pinned",))),
                "candidates": reader.count(Where(statuses=("candidate",))),
                "archived": reader.count(Where(shelf="archive", scope=None)),
                "forgotten": reader.count(Where(shelf="forgotten", scope=None)),
                "proposed": len(reader.search(text.words(PROPOSED)[:1], Where(tags=(PROPOSED,)), limit=MOST_PROPOSED)),
            }
            newest = reader.events(newest_first=True, limit=1)
            counters = reader.counters()
            vectors = reader.vector_state()
            recalls = {**_recalls(past_latencies(reader)), "is_degraded": was_degraded(reader)}
        spaces.append(
            {
                "space": storage.space,
                "memories": counts,
                "refused": {
                    name.removeprefix("refused:"): number
                    for name, number in sorted(counters.items())
                    if name.startswith("refused:")
                },
                "days": by_day(counters),
                "vectors": to_builtins(vectors),
                "upkeep": _upkeep(counters),
                "recalls": recalls,
                "judged": {"sessions": counters.get("judged", 0), "tokens": counters.get("judge_tokens", 0)},
                "events": newest[0].seq if newest else 0,
                "last_change": newest[0].at if newest else None,
                **storage.describe(),
            }
        )
    paused = [{"session": pause.session, "since": pause.since} for pause in context.of_project(Pause)]
    return {
        "actor": context.actor_here(),
        "paused": paused,
        "switched_off": [name for name in ("auto_memory", "auto_briefing") if not getattr(context.settings, name)],
        "last_session": _last_session(context),
        "spaces": spaces,
    }


def _last_session(context: Context) -> dict[str, Any] | None:
    """The session that began last, and how many memories of which kind were taken out of it."""
    storage = context.spaces.project()
    if storage is None:
        return None
    with storage.reading() as reader:
        last = max(reader.all(SessionRecord), key=lambda session: session.started_at, default=None)
        if last is None:
            return None
        kept = Counter(memory.kind for memory in said_in(reader, last))
    return {"id": last.name, "agent": last.agent, "started_at": last.started_at, "kept": dict(kept.most_common())}


def _recalls(took_ms: Sequence[float]) -> dict[str, Any]:
    """C15: how many of the last hundred recalls are known, and how long they took."""
    if not took_ms:
        return {"n": 0, "p50_ms": None, "p95_ms": None}
    return {"n": len(took_ms), "p50_ms": percentile(took_ms, 0.5), "p95_ms": percentile(took_ms, 0.95)}


def _upkeep(counters: Mapping[str, int]) -> dict[str, Any]:
    """The state of automatic upkeep: when it last finished a round, and the failures since."""
    come = decisions.read(counters)
    return {
        "finished_at": come.finished_at,
        "is_under_way": come.cursor > 0 or come.evict_to > 0,
        "is_crowded": bool(come.is_crowded),
        "errors": dict(come.errors),
        "failed_at": come.failed_at,
    }
