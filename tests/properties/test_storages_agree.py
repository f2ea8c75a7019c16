"""SQLite, the JSON file and a plain dictionary go through the same life and never differ.

KEPT_TEST_LONG=1 makes the life long.
"""

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.builders import FakeClock

from kept import journal, text
from kept.errors import NotAllowed
from kept.ids import uuid7
from kept.model import Alias, Conflict, Memory, Record, Source, replace
from kept.ports import ANYWHERE, Stamp, Storage, Transaction, Where
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.sqlite import SqliteStorage

IS_LONG = bool(os.environ.get("KEPT_TEST_LONG"))
IN_MEMORY = Path("/dev/shm")  # syncing is what takes the time, and not what is tested here
SPACE = "project/p1"
WORDS = ["alpha", "getUserById", "caching", "cached", "東京都", "C++", "naïve", "x"]
TOKENS = list(dict.fromkeys(token for word in WORDS for token in text.words(word)))
SHELVES = [
    Where(),
    Where(scope="items"),
    Where(shelf="archive", scope=None),
    Where(shelf="forgotten", scope=None),
    Where(shelf="any", scope=None),
]
COUNTERS = {"feedback": (-100, 100), "use_count": (0, 2**63 - 1), "importance": (0, 1)}
CLOCKS = {"updated_at", "last_hit_at", "last_used_at", "verified_at"}


class Oops(Exception):
    """What ends a transaction badly."""


class Model:
    """A space as a few dictionaries, written down from the promises and not from any storage."""

    def __init__(self) -> None:
        self.records: dict[str, dict[int, Any]] = {"memory": {}, "conflict": {}, "alias": {}}
        self.last_ids = {"memory": 0, "conflict": 0, "alias": 0}
        self.events: list[dict[str, Any]] = []
        self.links: dict[tuple[int, int], tuple[float, datetime]] = {}
        self.erased: set[str] = set()
        self.stamp: Stamp

    @property
    def memories(self) -> dict[int, Memory]:
        return self.records["memory"]

    def get(self, noun: type[Record], id: int) -> Any:
        return self.records[noun.noun].get(id)

    def all(self, noun: type[Record]) -> list[Any]:
        return [record for _, record in sorted(self.records[noun.noun].items())]

    def add(self, record: Any, action: str) -> Any:
        id = record.id or self.last_ids[record.noun] + 1
        self.last_ids[record.noun] = max(id, self.last_ids[record.noun])
        added = self.records[record.noun][id] = replace(record, id=id)
        self._log(action, added.subject, {}, wire(added))
        return added

    def put(self, record: Any, action: str) -> Any:
        before = self.records[record.noun][record.id]
        self.records[record.noun][record.id] = record
        self._log(action, record.subject, wire(before), wire(record))
        return record

    def remove(self, record: Any, action: str) -> None:
        self._log(action, record.subject, wire(self.records[record.noun].pop(record.id)), {})

    def erase(self, memory: Memory, action: str = "erase") -> None:
        del self.memories[memory.id]
        rivals = [c for c in self.all(Conflict) if memory.uid in (c.left, c.right)]
        for conflict in rivals:
            del self.records["conflict"][conflict.id]
        for event in self.events:
            if event["subject"] == memory.uid:
                self.erased.update(filter(None, (event["changed"] or {}).get("fingerprint", ())))
            if event["subject"] in {memory.uid, *(conflict.subject for conflict in rivals)}:
                event["changed"] = None
        self.links = {pair: link for pair, link in self.links.items() if memory.id not in pair}
        self._log(action, memory.uid, {}, {})

    def undo(self, group: str) -> None:
        """Raises NotAllowed, changing nothing, unless the group can be taken back."""
        now: dict[str, Any] = {}
        for event in reversed([event for event in self.events if event["group"] == group]):
            changed, subject = event["changed"], event["subject"]
            if changed is None or event["action"] == "erase":
                raise NotAllowed("erased")
            if subject not in now:
                found = [record for table in self.records.values() for record in table.values()]
                now[subject] = next((wire(record) for record in found if record.subject == subject), None)
            now[subject] = self._taken_back(now[subject], changed, subject)
        for subject, fields in now.items():
            noun = Alias if subject.startswith("alias:") else Conflict if subject.startswith("c") else Memory
            there = next((record for record in self.all(noun) if record.subject == subject), None)
            if fields is not None and there is not None and there.id == fields["id"]:
                self.put(msgspec.convert(fields, noun), "undo")
                continue
            if there is not None:
                self.remove(there, "undo")
            if fields is not None:
                self.add(msgspec.convert(fields, noun), "undo")

    def _taken_back(self, now: dict[str, Any] | None, changed: dict[str, Any], subject: str) -> dict[str, Any] | None:
        was_added = "id" in changed and changed["id"][0] is None
        was_removed = "id" in changed and changed["id"][1] is None
        if was_removed:
            if now is not None:
                raise NotAllowed("there is another one")
            return {name: old for name, (old, _) in changed.items()}
        if now is None or (was_added and now["id"] != changed["id"][1]):
            raise NotAllowed("not there")
        at = wire_clock(self.stamp.at)
        if was_added and subject.startswith("alias:"):
            return None
        if was_added and subject.startswith("c"):
            return now | {"resolved_at": at}
        if was_added:
            return now | {"status": "archived", "reason": "forgotten", "archived_at": at, "updated_at": at}
        fields = dict(now)
        for name, (old, new) in changed.items():
            if name in COUNTERS:
                low, high = COUNTERS[name]
                fields[name] = max(low, min(high, round(fields[name] + old - new, 9)))
            elif fields[name] == new:
                fields[name] = old
            elif name not in CLOCKS:
                raise NotAllowed("changed again")
        return fields

    def _log(self, action: str, subject: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        names = before.keys() | after.keys()
        changed = {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
        self.events.append({"group": self.stamp.group, "action": action, "subject": subject, "changed": changed})


def wire(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(msgspec.json.encode(record))
    return fields


def wire_clock(at: datetime) -> str:
    moment: str = json.loads(msgspec.json.encode(at))
    return moment


def is_on(memory: Memory, where: Where) -> bool:
    shelf = "live" if memory.status != "archived" else "forgotten" if memory.reason == "forgotten" else "archive"
    return where.shelf in ("any", shelf) and where.scope in (None, memory.scope)


def tokens(memory: Memory) -> list[str]:
    columns = (
        memory.content,
        *memory.tags,
        *memory.files,
        memory.source.origin,
        memory.source.agent or "",
        memory.kind,
    )
    return [word for column in columns for word in text.words(column)]


Do = Callable[[Any], object]  # something done to a transaction, or to the model in the place of one

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
picks = st.integers(0, 10**6)


class Lives(RuleBasedStateMachine):
    """One life in three places."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
        self.clock = FakeClock()
        self.model = Model()
        self.uids = self.looks = 0
        self.groups: list[str] = []
        self.storages: list[Storage] = []

    @initialize()
    def open(self) -> None:
        for storage in self.storages:
            storage.close()
        self.storages = [
            SqliteStorage(self.folder / "kept.db", SPACE, synchronous="normal"),
            JsonFileStorage(self.folder / "kept.json", SPACE),
        ]

    def teardown(self) -> None:
        for storage in self.storages:
            storage.close()
        shutil.rmtree(self.folder)

    # What happens

    @rule(steps=st.integers(1, 4), data=st.data())
    def write(self, steps: int, data: st.DataObject) -> None:
        """One transaction of a few steps."""
        self.transact(steps, data)

    @rule(steps=st.integers(2, 6), data=st.data())
    def write_much(self, steps: int, data: st.DataObject) -> None:
        self.transact(steps, data)

    @rule(steps=st.integers(1, 3), data=st.data())
    def write_in_vain(self, steps: int, data: st.DataObject) -> None:
        """A transaction that ends with an error leaves nothing."""
        self.transact(steps, data, fails=True)

    def transact(self, steps: int, data: st.DataObject, *, fails: bool = False) -> None:
        trial = copy.deepcopy(self.model)
        trial.stamp = stamp = self.next_stamp()
        does: list[Do] = []
        for _ in range(steps):
            do = self.draw_step(data, trial)
            do(trial)
            does.append(do)
        for storage in self.storages:
            with suppress(Oops), storage.writing(stamp) as tx:
                for do in does:
                    do(tx)
                if fails:
                    raise Oops
        if not fails:
            self.succeed(trial, stamp.group)

    @rule(pick=picks)
    def undo(self, pick: int) -> None:
        if not self.groups:
            return
        group = self.groups[-1 - pick % min(len(self.groups), 4)]
        trial = copy.deepcopy(self.model)
        trial.stamp = stamp = replace(self.next_stamp(), undoes=group)
        is_allowed = True
        try:
            trial.undo(group)
        except NotAllowed:
            is_allowed = False
        for storage in self.storages:
            try:
                with storage.writing(stamp) as tx:
                    take_back(tx, group, stamp.at)
            except NotAllowed:
                assert not is_allowed
            else:
                assert is_allowed
        if is_allowed:
            self.succeed(trial, stamp.group)

    def succeed(self, trial: Model, group: str) -> None:
        self.model = trial
        if any(event["group"] == group for event in trial.events):  # a group without events cannot be undone
            self.groups.append(group)

    @rule(ids=st.lists(st.integers(1, 12), max_size=4))
    def note_usage(self, ids: list[int]) -> None:
        """Outside the journal, and for ids that are perhaps no longer there."""
        at = self.clock()
        for storage in self.storages:
            with storage.bookkeeping() as notes:
                assert notes is not None
                notes.count_uses(ids, at)
                notes.link(ids, at)
        for id in ids:
            if memory := self.model.memories.get(id):
                self.model.memories[id] = replace(memory, use_count=memory.use_count + 1, last_used_at=at)
        there = sorted({id for id in ids if id in self.model.memories})
        for pair in ((a, b) for a in there for b in there if a < b):
            self.model.links[pair] = (self.model.links.get(pair, (0.0, at))[0] + 1.0, at)

    @rule(minutes=st.integers(1, 10**6), reopens=st.booleans())
    def time_passes(self, minutes: int, reopens: bool) -> None:
        self.clock.advance(minutes=minutes)
        if reopens:
            self.open()

    # What must be the same

    @invariant()
    def nothing_differs(self) -> None:
        self.looks += 1
        words = TOKENS[self.looks % 4 :: 4]  # all of them each time would be most of the work
        for storage in self.storages:
            with storage.reading() as reader:
                assert reader.select(ANYWHERE, limit=1_000, oldest_first=True) == self.model.all(Memory)
                assert reader.all(Conflict) == self.model.all(Conflict)
                assert reader.all(Alias) == self.model.all(Alias)
                events = reader.events()
                assert [(e.group, e.action, e.subject, e.changed) for e in events] == [
                    (e["group"], e["action"], e["subject"], e["changed"]) for e in self.model.events
                ]
                assert journal.broken_links(events) == []
                for fingerprint in {text.fingerprint(word) for word in WORDS} | self.model.erased:
                    assert reader.is_erased(fingerprint) == (fingerprint in self.model.erased)
                for where in SHELVES:
                    meant = [m for m in self.model.all(Memory) if is_on(m, where)]
                    assert [m.id for m in reader.select(where, limit=1_000, oldest_first=True)] == [m.id for m in meant]
                    assert reader.count(where) == len(meant)
                    self.check_index(reader, where, [m for m in meant if m.reason != "forgotten"], words)
                for id in self.model.memories:
                    linked = {(a + b - id): link for (a, b), link in self.model.links.items() if id in (a, b)}
                    assert {other: (strength, at) for other, strength, at in reader.links(id)} == linked

    def check_index(self, reader: Any, where: Where, meant: list[Memory], words: list[str]) -> None:
        held = {m.id: set(tokens(m)) for m in meant}
        for word in words:
            found = {hit.memory.id for hit in reader.search([word], where, limit=1_000)}
            assert found == {id for id, own in held.items() if word in own}, (word, where)
        numbers = reader.statistics(words, where)
        assert numbers.rows == len(meant)
        assert numbers.words == sum(text.count_words(m.content) for m in meant)
        assert numbers.tokens == sum(len(tokens(m)) for m in meant)
        assert numbers.rows_with == {word: sum(word in own for own in held.values()) for word in words}

    # How it is drawn

    def next_stamp(self) -> Stamp:
        return Stamp(group=f"g{len(self.groups)}-{self.uids}", at=self.clock(), actor="agent")

    def draw_step(self, data: st.DataObject, trial: Model) -> Do:
        """One thing that can be done now, as a function of a transaction."""
        memories, aliases, conflicts = trial.all(Memory), trial.all(Alias), trial.all(Conflict)
        choices = ["add", "add", "alias"]
        if memories:
            choices += ["revise", "revise", "reinforce", "pin", "archive", "forget", "restore", "erase"]
        if len(memories) > 1:
            choices += ["conflict"]
        choices += ["remove alias"] * bool(aliases) + ["resolve"] * bool(conflicts)
        choice = data.draw(st.sampled_from(choices))
        at = self.clock()
        if choice == "add":
            added = self.draw_memory(data)
            return lambda tx: tx.add(added, "remember")
        if choice == "alias":
            free = [word for word in WORDS[:2] if word not in {alias.word for alias in aliases}]
            if not free:
                return lambda tx: None
            alias = Alias(word=data.draw(st.sampled_from(free)), expands_to=(data.draw(texts),))
            return lambda tx: tx.add(alias, "alias")
        if choice == "remove alias":
            gone = data.draw(st.sampled_from(aliases))
            return lambda tx: tx.remove(gone, "alias")
        if choice == "resolve":
            settled = replace(data.draw(st.sampled_from(conflicts)), resolved_at=at)
            return lambda tx: tx.put(settled, "resolve")
        memory: Memory = data.draw(st.sampled_from(memories))
        if choice == "conflict":
            rival = data.draw(st.sampled_from(memories))
            conflict = Conflict(left=memory.uid, right=rival.uid, type="ambiguous", detected_at=at)
            return lambda tx: tx.add(conflict, "conflict")
        if choice == "erase":
            return lambda tx: tx.erase(memory)
        changed = self.draw_change(data, choice, memory, at)
        return lambda tx: tx.put(changed, choice)

    def draw_memory(self, data: st.DataObject) -> Memory:
        self.uids += 1
        content, at = data.draw(texts), self.clock()
        return Memory(
            uid=uuid7(at, self.uids.to_bytes(10, "big")),
            space=SPACE,
            content=content,
            fingerprint=text.fingerprint(content),
            kind=data.draw(st.sampled_from(["fact", "warning", "alpha"])),
            scope=data.draw(st.sampled_from(["memory", "memory", "items"])),
            trust=data.draw(st.sampled_from(["agent", "agent", "tool"])),
            importance=data.draw(st.sampled_from([0.0, 0.3, 0.9, 1.0])),
            tags=tuple(data.draw(st.lists(st.sampled_from(WORDS), max_size=2))),
            files=tuple(data.draw(st.lists(st.sampled_from(["src/alpha.py", "x.py"]), max_size=1))),
            source=Source(origin="tool", agent=data.draw(st.sampled_from([None, "caching"]))),
            created_at=at,
            updated_at=at,
        )

    def draw_change(self, data: st.DataObject, choice: str, memory: Memory, at: datetime) -> Memory:
        if choice == "revise":
            content = data.draw(texts)
            return replace(
                memory,
                content=content,
                fingerprint=text.fingerprint(content),
                tags=tuple(data.draw(st.lists(st.sampled_from(WORDS), max_size=2))),
                updated_at=at,
                verified_at=at,
            )
        if choice == "reinforce":
            feedback = max(-100, min(100, memory.feedback + data.draw(st.sampled_from([-1, 3, 60]))))
            importance = min(1.0, round(memory.importance + 0.1, 9))
            used = memory.use_count + 1
            return replace(memory, feedback=feedback, importance=importance, use_count=used, last_used_at=at)
        if choice == "pin":
            return replace(memory, status="pinned", reason=None, archived_at=None, updated_at=at)
        if choice == "restore":
            return replace(memory, status="confirmed", reason=None, archived_at=None, updated_at=at)
        reason = "forgotten" if choice == "forget" else data.draw(st.sampled_from(["expired", "evicted", "superseded"]))
        return replace(memory, status="archived", reason=reason, archived_at=at, updated_at=at)


def take_back(tx: Transaction, group: str, at: datetime) -> None:
    """What the facade does to undo a group."""

    def current(event: Any) -> Record | None:
        noun = journal.noun_of(event)
        if noun is Memory:
            return next(iter(tx.select(replace(ANYWHERE, uid=event.subject), limit=1)), None)
        return next((record for record in tx.all(noun) if record.subject == event.subject), None)

    def later(event: Any) -> Sequence[Any]:
        return tx.events(subject=event.subject, after=event.seq)

    for step in journal.plan_undo(tx.events(group=group), current=current, later=later, at=at):
        if step.is_new and step.record is not None:
            tx.add(step.record, "undo")
        elif step.record is not None:
            tx.put(step.record, "undo")
        elif (record := tx.get(step.noun, step.id)) is not None:
            tx.remove(record, "undo")


TestStoragesAgree = Lives.TestCase
TestStoragesAgree.settings = settings(
    max_examples=1_000 if IS_LONG else 25,
    stateful_step_count=60 if IS_LONG else 25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
