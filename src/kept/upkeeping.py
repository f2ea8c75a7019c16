"""Upkeep, carried out: what time does to a store, journaled, in small turns, and one process at a time.

Facade layer. The decisions are in `upkeep/`. `upkeep()` goes through everything; by itself a little is done at each
opening and at every fiftieth recall. Rule: everything leaves through the archive; each change is decided again inside
the transaction that makes it, so that whatever happened meanwhile counts.
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kept import worth
from kept.errors import Busy, KeptError
from kept.opened import Opened
from kept.ports import Storage
from kept.rounds import PAGE, Done, Round, page_of, pages_of
from kept.tables import RETENTIONS
from kept.upkeep import decisions, progress, room
from kept.upkeep.progress import Progress

EVERY_RECALLS = 50
EVERY_HOURS = 1  # at an opening, a new round is begun
FEW = 20  # changes at one occasion, so that nobody waits for them
MOST_WEIGHED = 5_000  # memories that are weighed against each other at one occasion, when there is no room
LEASE = "upkeep"

log = logging.getLogger("kept")


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
        """End quarantines and shelf lives, make room where a limit is exceeded, pack old sessions. Safe at any moment.

        `dry_run` changes nothing and says exactly what would be done now.
        """
        done: list[Done] = []
        now = self._now()
        for storage in self._tended():
            if dry_run:
                done += self._whole_round(storage, now, is_dry_run=True)
                continue
            with storage.lease(LEASE) as is_ours:
                if not is_ours:
                    return Upkept(done=tuple(done), skipped=True)
                done += self._whole_round(storage, now)
        return Upkept(done=tuple(done), is_dry_run=dry_run)

    def pack_sessions(self) -> list[str]:
        """Compress the sessions in which nothing was said for the days of `session_retention_days`."""
        storage = self._spaces.project()
        if storage is None or storage not in self._tended():
            return []
        rounds = Round(storage, self._now(), self._upkeep_rules())
        rounds.pack(self._spaces.sessions_folder())
        return [one.ref for one in rounds.done]

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
            session_retention_days=settings.session_retention_days,
        )

    def _limits(self) -> room.Limits:
        retention, settings = RETENTIONS[self._settings.retention], self._settings
        return room.Limits(
            max_bytes=settings.max_size_bytes,
            max_memories=retention.max_memories if settings.max_memories is None else settings.max_memories,
            shrink_to_share=retention.shrink_to_share,
            step_percent=settings.prune_percent,
        )

    def _whole_round(self, storage: Storage, now: datetime, *, is_dry_run: bool = False) -> list[Done]:
        came = _progress_of(storage)
        with ExitStack() as bulk:
            rounds = Round(storage, now, self._upkeep_rules(), is_dry_run=is_dry_run, bulk=bulk)
            for page in pages_of(storage):
                rounds.age(page)
            rounds.settle()
            chosen = rounds.chosen_to_go(self._limits(), came.evict_to)
            if chosen and not is_dry_run:
                # Should we be interrupted: the next run goes as far down, although it finds fewer memories.
                came = _note(storage, came, replace(came, evict_to=rounds.load.memories - len(chosen)))
            rounds.evict(chosen)
        if storage is self._spaces.project():
            rounds.pack(self._spaces.sessions_folder())
        if not is_dry_run:
            _note(storage, came, Progress().done(now))
            self._tell_upkept(storage, rounds)
        return rounds.done

    def _tell_upkept(self, storage: Storage, rounds: Round) -> None:
        if rounds.done:
            self._tell_write(storage, -rounds.archived)

    # By itself, a little at a time

    def _after_opening(self) -> None:
        with suppress(KeptError):  # whoever looks will be told what is wrong
            if self._settings.auto_upkeep and self._actor.role != "skill":
                self._tend(self._tended(), self._now(), is_recall=False)

    def _after_recall(self, receipt: str | None) -> None:
        if self._settings.auto_upkeep and receipt is not None and int(receipt[1:]) % EVERY_RECALLS == 0:
            with suppress(KeptError):
                self._tend(self._tended(), self._now(), is_recall=True)

    def _tend(self, storages: Sequence[Storage], now: datetime, *, is_recall: bool) -> None:
        """Go on with the round under way, or begin one. Waits for nobody; a failure is noted, for `status`."""
        for storage in storages:
            came = _progress_of(storage)
            is_fresh = came.finished_at is not None and worth.days_between(came.finished_at, now) * 24 < EVERY_HOURS
            if is_fresh and not came.cursor and not is_recall:
                continue
            try:
                with storage.lease(LEASE) as is_ours:
                    if is_ours:
                        self._go_on(storage, came, now)
            except Busy:
                continue  # somebody writes: next time, then
            except Exception as error:  # somebody wanted something else of us, and got it: this is not their affair
                log.warning("upkeep of %s failed: %s", storage.space, type(error).__name__)
                _note(storage, came, came.failing(error, now))

    def _go_on(self, storage: Storage, came: Progress, now: datetime) -> None:
        rounds = Round(storage, now, self._upkeep_rules(), most=FEW)
        rounds.load = room.Load(came.memories, came.bytes)
        page = page_of(storage, came.cursor)
        visited = rounds.age(page)
        if visited < len(page) or len(page) == PAGE:
            load = rounds.load
            after = replace(came, cursor=page[visited - 1].id, memories=load.memories, bytes=load.bytes)
        else:
            after = self._end_round(storage, rounds, came, now)
        _note(storage, came, after)
        self._tell_upkept(storage, rounds)

    def _end_round(self, storage: Storage, rounds: Round, came: Progress, now: datetime) -> Progress:
        """Every memory was visited: make room, and pack a few sessions. Of a large store, say that it is full."""
        after = Progress().done(now)
        if rounds.load.memories > MOST_WEIGHED:
            return replace(
                after, is_crowded=int(bool(room.surplus(rounds.load, self._limits()))), evict_to=came.evict_to
            )
        chosen = rounds.chosen_to_go(self._limits(), came.evict_to)
        rounds.evict(chosen[: 5 * FEW])
        if len(chosen) > 5 * FEW:
            after = replace(after, evict_to=rounds.load.memories - len(chosen))
        if storage is self._spaces.project():
            rounds.pack(self._spaces.sessions_folder())
        return after


def _progress_of(storage: Storage) -> Progress:
    with storage.reading() as reader:
        return progress.read(reader.counters())


def _note(storage: Storage, before: Progress, after: Progress) -> Progress:
    """Write down how far we have come. Where it cannot be written, the next one begins a little earlier."""
    with suppress(KeptError), storage.bookkeeping() as notes:
        if notes is not None:
            notes.count(progress.steps(before, after))
            return after
    return before
