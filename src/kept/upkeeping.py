"""Upkeep, carried out: what time does to a store, journaled, in small turns, and one process at a time.

Facade layer. The decisions are in `upkeep/decisions.py`. Rule: everything leaves through the archive; each change is
decided again inside the transaction that makes it, so that whatever happened meanwhile counts.
"""

import secrets
from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from kept import journal, worth
from kept.ids import ref_of
from kept.model import Memory
from kept.opened import Opened
from kept.ports import Stamp, Storage, Where
from kept.settings import RETENTIONS
from kept.upkeep import decisions
from kept.upkeep.decisions import Decision, Weighed

PAGE = 500
EVERYTHING_LIVE = Where(scope=None)


class Done(Struct, frozen=True, kw_only=True):
    """One thing that upkeep did, or would do."""

    ref: str
    action: str
    reason: str


class Upkept(Struct, frozen=True, kw_only=True):
    """What a run of upkeep did. `skipped`: another process was at it."""

    done: tuple[Done, ...] = ()
    is_dry_run: bool = False
    skipped: bool = False

    def count(self, action: str) -> int:
        return sum(one.action == action for one in self.done)


class Upkeeping(Opened):
    """What time does."""

    def upkeep(self, *, dry_run: bool = False) -> Upkept:
        """End quarantines and shelf lives, and make room where a limit is exceeded. Safe at any moment.

        `dry_run` changes nothing and says exactly what would be done now.
        """
        done: list[Done] = []
        now = self._now()
        for storage in self._tended():
            if dry_run:
                done += self._plan(storage, now)
                continue
            with storage.lease("upkeep") as is_ours:
                if not is_ours:
                    return Upkept(done=tuple(done), skipped=True)
                done += self._age(storage, now)
                done += self._make_room(storage, now)
        return Upkept(done=tuple(done), is_dry_run=dry_run)

    def _tended(self) -> list[Storage]:
        """The storages this actor keeps in order: its own; an admin's also the global one."""
        readable = self._readable()
        actor = self._as_actor()
        return [storage for storage in readable if actor.role == "admin" or storage.space == actor.project]

    def _upkeep_rules(self) -> decisions.Rules:
        settings = self._settings
        return decisions.Rules(
            retention=RETENTIONS[settings.retention],
            shelf_life_days=settings.shelf_life_days,
            quarantine_hours=settings.quarantine_hours,
            max_size_bytes=settings.max_size_bytes,
            max_memories=settings.max_memories,
        )

    def _plan(self, storage: Storage, now: datetime) -> list[Done]:
        rules = self._upkeep_rules()
        planned = [found for memory in _live(storage) if (found := decisions.decide(memory, now, rules))]
        aged = {found.memory.id: decisions.carried_out(found, now) for found in planned}
        evicted = self._evictions((aged.get(memory.id, memory) for memory in _live(storage)), now, rules)
        return [_told(found) for found in planned] + [
            Done(ref=ref_of(storage.space, id), action="evict", reason=_OVER) for id in evicted
        ]

    def _age(self, storage: Storage, now: datetime) -> list[Done]:
        rules = self._upkeep_rules()
        done: list[Done] = []
        due = [memory.id for memory in _live(storage) if decisions.decide(memory, now, rules)]
        for batch in _batches(due):
            with storage.writing(self._upkeep_stamp(now)) as tx:
                for id in batch:
                    memory = tx.get(Memory, id)
                    found = decisions.decide(memory, now, rules) if memory and not memory.is_archived else None
                    if found is not None:
                        tx.put(decisions.carried_out(found, now), found.action)
                        done.append(_told(found))
        return done

    def _make_room(self, storage: Storage, now: datetime) -> list[Done]:
        rules = self._upkeep_rules()
        done: list[Done] = []
        for batch in _batches(self._evictions(_live(storage), now, rules)):
            with storage.writing(self._upkeep_stamp(now)) as tx:
                for id in batch:
                    memory = tx.get(Memory, id)
                    if memory is not None and not memory.is_archived and memory.status != "pinned":
                        found = Decision(memory=memory, action="evict", reason=_OVER)
                        tx.put(decisions.carried_out(found, now), "evict")
                        done.append(_told(found))
        return done

    def _evictions(self, memories: Iterable[Memory], now: datetime, rules: decisions.Rules) -> list[int]:
        weighed: list[Weighed] = []
        exempt: list[Weighed] = []
        for memory in memories:
            if not memory.is_archived:
                one = decisions.weigh(memory, now, rules.retention)
                (exempt if worth.is_exempt(memory, now) else weighed).append(one)
        return decisions.to_evict(weighed, exempt, rules)

    def _upkeep_stamp(self, now: datetime) -> Stamp:
        return Stamp(group=secrets.token_hex(8), at=now, actor=journal.UPKEEP)


_OVER = "least worth of all, and there is no room"


def _told(found: Decision) -> Done:
    return Done(ref=found.memory.ref, action=found.action, reason=found.reason)


def _live(storage: Storage) -> Iterator[Memory]:
    """Every live memory, page by page, each page of one moment: nobody waits for us meanwhile."""
    after = None
    while True:
        with storage.reading() as reader:
            page = reader.select(EVERYTHING_LIVE, limit=PAGE, after=after, oldest_first=True)
        if not page:
            return
        yield from page
        after = page[-1].id


def _batches(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), PAGE):
        yield ids[start : start + PAGE]
