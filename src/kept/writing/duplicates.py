"""Duplicates: strengthen the memory that already says a statement, instead of storing it twice.

`Known` reads, once for a whole batch, the memories that may be about the same things as its drafts. From these
candidates this module picks duplicates and `conflicts` picks contradictions. Rule: only texts that differ in nothing
but case and spacing are the same. Near duplicates are reported and never merged silently; an automatic one is dropped
only if it makes the same statement. With a topic, the writer says explicitly that a new statement replaces the old one.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kept import text
from kept.freshness import code_of, with_code
from kept.model import CallGuard, Memory, Scope, Trust, least
from kept.ports import COMMON_HANDLE, Reader, Transaction, Where
from kept.proposals import corroborated
from kept.worth import AUTOMATIC
from kept.writing.check import MAX_FILES, MAX_TAGS
from kept.writing.clauses import DENIALS, handles_of, keys_of
from kept.writing.likeness import letters_shared

STRENGTHEN_BY = 0.1
NEAR_RATIO = 85.0  # per cent of the letters, in order, that two texts share
EVIDENCE = frozenset({"sessions", "agents", "signals"})  # lists in the data of a memory that grow when it is repeated
MAX_EVIDENCE = 100  # of each list


def strengthen(tx: Transaction, twin: Memory, again: Memory, at: datetime) -> Memory:
    """Raise importance by 0.1 (at most 1.0) and count one more use.

    Said on purpose, it confirms a candidate; said with a pin, it pins; new tags and files are added. What a tool
    repeats adds nothing but its evidence, and nothing at all to the words of a person or an agent; a session that has
    said it before adds nothing.
    """
    if _was_said_in_session(twin, again):
        return twin
    if again.is_low_trust:
        noted = replace(twin, trust=least(twin.trust, again.trust), data=_evidence(twin, again))
        return twin if not twin.is_low_trust or noted == twin else tx.put(noted, "strengthen")
    confirms = again.status == "pinned" or (again.status == "confirmed" and twin.status == "candidate")
    return tx.put(
        _with_evidence(
            twin,
            again,
            importance=min(1.0, round(twin.importance + STRENGTHEN_BY, 9)),
            use_count=twin.use_count + 1,
            status=again.status if confirms else twin.status,
            trust=again.trust if again.trust == "user" else twin.trust,  # an agent's word raises nothing
            tags=tuple(dict.fromkeys((*twin.tags, *again.tags)))[:MAX_TAGS],
            files=tuple(dict.fromkeys((*twin.files, *again.files)))[:MAX_FILES],
            last_used_at=at,
            updated_at=at,
        ),
        "strengthen",
    )


def _was_said_in_session(twin: Memory, again: Memory) -> bool:
    """Return True if a rule finds a statement again in a session that has already said it."""
    session = again.source.session
    if again.source.origin not in AUTOMATIC or session is None:
        return False
    return session == twin.source.session or session in (twin.data or {}).get("sessions", ())


def _with_evidence(twin: Memory, again: Memory, **changes: Any) -> Memory:
    return corroborated(replace(twin, data=_evidence(twin, again), **changes))


def _evidence(twin: Memory, again: Memory) -> dict[str, Any] | None:
    """The data of the twin, with the sessions, agents and signals of both."""
    again_code = code_of(again) if again.source.origin not in AUTOMATIC else None
    known = twin.data if again_code is None else with_code(twin.data, again_code)
    if not again.data or not EVIDENCE & again.data.keys():
        return known
    merged = dict(known or {})
    for name in EVIDENCE & again.data.keys():
        merged[name] = list(dict.fromkeys((*merged.get(name, ()), *again.data[name])))[:MAX_EVIDENCE]
    return merged


def find_near(draft: Memory, alike: Sequence[Memory]) -> list[Memory]:
    """The memories in `alike` that say nearly the same as the draft, nearest first."""
    near = [(letters_shared(draft.content.lower(), other.content.lower()), other) for other in alike]
    return [memory for ratio, memory in sorted(near, key=lambda pair: -pair[0]) if ratio >= NEAR_RATIO]


def says_the_same(draft: Memory, other: Memory) -> bool:
    """Return True if the two make one statement: any other number, name, day or value, or a "not", makes two."""
    return text.statement(draft.content) == text.statement(other.content)


def repeats(draft: Memory, other: Memory) -> bool:
    """Return True if each word of the draft is in the other, or is only spelt differently there.

    Looser than `says_the_same`: trust must not rise because a word was left out or changed a little.
    """
    own, others = keys_of(draft.content), keys_of(other.content)
    return all(any(_is_respelt(word, known) for known in others - own) for word in own - others) and (
        own & DENIALS == others & DENIALS
    )


def _is_respelt(word: str, known: str) -> bool:
    if min(len(word), len(known)) < 5 or word[:2] != known[:2] or not (word + known).isalpha():
        return False
    return letters_shared(word, known) >= NEAR_RATIO


def attest(tx: Transaction, known: Memory, again: Memory) -> Memory:
    """Note that somebody said nearly the same: its sessions, agents and signals also count for the known memory.

    What a tool repeats says nothing for the words of a person or an agent.
    """
    evidence = known.data if again.is_low_trust and not known.is_low_trust else _evidence(known, again)
    return known if evidence == known.data else tx.put(corroborated(replace(known, data=evidence)), "attest")


def find_superseded(reader: Reader, draft: Memory) -> list[Memory]:
    """Find the live memories of the same topic, which the draft replaces; a task's note replaces only its task's notes.

    A tool's text replaces only a tool's text, and only a person's a guarded one. Documents, which their keys file under
    a topic, replace nothing.
    """
    if draft.topic is None or _is_filed(draft, draft.topic):
        return []
    is_note = draft.tier == "task"
    where = Where(topic=draft.topic, scope=draft.scope, task=draft.source.task if is_note else None)
    found = [old for old in reader.select(where, limit=100) if not _is_filed(old, draft.topic)]
    found = [old for old in found if (old.tier == "task") == is_note and (old.is_low_trust or not draft.is_low_trust)]
    return [old for old in found if draft.trust == "user" or not is_guarded(reader, old)]


def is_guarded(reader: Reader, memory: Memory) -> bool:
    """Return True if a person has made a guard of the memory."""
    return any(one.memory == memory.uid and one.mode == "stop" for one in reader.all(CallGuard))


def _is_filed(memory: Memory, topic: str) -> bool:
    return memory.key is not None and memory.key.startswith(f"{topic}:")


def supersede(tx: Transaction, old: Memory, new: Memory, at: datetime) -> Memory:
    """Archive the old memory; its ref leads to the new one from now on."""
    return tx.put(old.archived("superseded", at, superseded_by=new.uid), "supersede")


CANDIDATES = 8
MOST_TWINS = 10_000
Circle = tuple[str | None, ...]


class Known:
    """The memories that may say the same as a draft, or the opposite."""

    def __init__(self, reader: Reader, drafts: Sequence[Memory]) -> None:
        self._handles = {draft.uid: text.handles_of(draft.content) for draft in drafts}
        self._memories: dict[str, Memory] = {}  # by uid, as they are now
        self._twins: dict[tuple[Circle, str], str] = {}
        self._alike: dict[str, list[str]] = {}
        self._low: dict[str, Trust] = {}  # fingerprint → the least trust of a text that a tool or a stranger brought
        # For each scope: handle → uids that this batch has added so far.
        self._brought: dict[Scope, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for scope in dict.fromkeys(draft.scope for draft in drafts):
            self._read(reader, scope, [draft for draft in drafts if draft.scope == scope])

    def twin(self, draft: Memory) -> Memory | None:
        """The live memory that says the same, if there is one."""
        twin = self._memories.get(self._twins.get((_circle(draft), draft.fingerprint), ""))
        return twin if twin is not None and twin.status != "archived" else None

    def alike(self, draft: Memory) -> list[Memory]:
        """Return the live memories that may be about the same thing, those of this batch first; none for a task's note.

        A candidate that repeats a rejected statement is told to no agent, so nothing is compared with it.
        """
        if draft.tier == "task":
            return []
        found = [self._memories[uid] for uid in (*self._alike_in_batch(draft), *self._alike[draft.uid])]
        live = [memory for memory in found if memory.status != "archived" and memory.tier != "task"]
        return [memory for memory in live if not memory.is_rejected]

    def as_heard(self, draft: Memory, alike: Sequence[Memory]) -> Memory:
        """The draft; one in which an agent repeats a memory of low trust, live or not, with the trust of that."""
        twin = self.twin(draft)
        if draft.trust != "agent" or (twin is not None and not twin.is_low_trust):
            return draft
        found = [self._low[draft.fingerprint]] if draft.fingerprint in self._low else []
        low = [other for other in alike if other.is_low_trust]
        found += [near.trust for near in find_near(draft, low) if repeats(draft, near)]
        return replace(draft, trust=least(*found)) if found else draft

    def _alike_in_batch(self, draft: Memory) -> list[str]:
        handles = self._handles[draft.uid]
        of_scope = self._brought[draft.scope]
        brought = [uid for handle in handles if handle in of_scope for uid in of_scope[handle][-COMMON_HANDLE:]]
        if len(handles) > 1 and len(set(brought)) == len(brought):
            return []  # for most drafts nothing shares two handles
        shared = Counter(brought).most_common(CANDIDATES)
        return [uid for uid, times in shared if times >= text.enough_handles(len(handles_of(draft.content)))]

    def now(self, memory: Memory) -> Memory:
        """The memory as this batch has left it so far."""
        return self._memories.get(memory.uid, memory)

    def note(self, memory: Memory) -> Memory:
        """Take note of a memory that was added or changed."""
        if memory.uid in self._handles and memory.uid not in self._memories:
            of_scope = self._brought[memory.scope]
            for handle in self._handles[memory.uid]:
                of_scope[handle].append(memory.uid)
            self._twins[_circle(memory), memory.fingerprint] = memory.uid
        self._note_trust(memory)
        self._memories[memory.uid] = memory
        return memory

    def _read(self, reader: Reader, scope: Scope, drafts: Sequence[Memory]) -> None:
        fingerprints = tuple({draft.fingerprint for draft in drafts})
        same = Where(fingerprints=fingerprints, scope=None, shelf="any")
        for twin in reader.select(same, limit=MOST_TWINS, oldest_first=True):
            self._note_trust(twin)
            if twin.is_archived or twin.scope != scope:
                continue
            self._memories[twin.uid] = twin
            self._twins.setdefault((_circle(twin), twin.fingerprint), twin.uid)
        asked = [words for draft in drafts for words in (self._handles[draft.uid], handles_of(draft.content))]
        found = reader.alike(asked, scope, limit=CANDIDATES)
        for draft, alike, replaced in zip(drafts, found[::2], found[1::2], strict=True):
            self._memories.update((memory.uid, memory) for memory in (*alike, *replaced))
            self._alike[draft.uid] = list(dict.fromkeys(memory.uid for memory in (*alike, *replaced)))

    def _note_trust(self, memory: Memory) -> None:
        if memory.is_low_trust:
            self._low[memory.fingerprint] = least(memory.trust, self._low.get(memory.fingerprint, memory.trust))


def _circle(memory: Memory) -> Circle:
    """Where a memory can have a twin. A task's note records one stage of the task, and goes when the task ends."""
    if memory.tier != "task":
        return (memory.scope,)
    return (memory.scope, memory.kind, memory.source.task, (memory.data or {}).get("stage"))
