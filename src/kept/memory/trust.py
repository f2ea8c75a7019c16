"""Trust at the facade: drafts that only repeat what a tool said, and who may vouch for such a memory.

Whose words a text is made of, `writing.quotes` finds out. A draft is compared when it is stored, with the messages that
are known by then. An agent's host hands its messages over later, at the end of a turn: then `Overheard` compares them
with everything that was written in the meantime, by any door, as the journal has it. Rule: an agent cannot raise the
trust of a text, by storing it again, by pinning it or by undoing; a person can, by any act that accepts it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kept import journal
from kept.errors import NotAllowed
from kept.model import LOW_TRUST, REJECTED, Draft, Event, Memory, Message, Source, Trust, least, replace
from kept.ports import ANYWHERE, Reader, Stamp, Storage, Transaction, Where
from kept.storage.shared import random_hex
from kept.text import fingerprint
from kept.worth import AUTOMATIC
from kept.writing.pipeline import distrusted
from kept.writing.quotes import Quotes, first_said, shares_letters

if TYPE_CHECKING:
    from kept.memory.context import Context

MOST_ALIKE = 100
DISTRUST = "distrust"  # the journal's word for it
CLOCKS_DIFFER = timedelta(minutes=10)  # of the machine that a host runs on, and of the one that stores
UNDATED = timedelta(days=1)  # how far back the beginning of a transcript without times may reach
MANY = 40  # texts: to compare each with a long session takes milliseconds, and to index the session some hundred
PAGE = 500  # events that are read at once


def as_heard(context: "Context", drafts: Sequence[Draft], reader: Reader | None) -> Iterator[Draft]:
    """Yield the drafts; one that an agent took from a tool result or a pasted text of its session, with that trust.

    A draft that names no session may come from any that is going on here. `reader`: of the project; None when that is
    not stored yet.
    """
    if reader is None:
        yield from drafts
        return
    heard: dict[str, Quotes] = {}
    for draft in drafts:
        trusts = []
        for session in _sessions_of_agent(draft, context):
            if session not in heard:
                heard[session] = _quotes_in(session, context, reader)
            trusts.append(heard[session].trust_of(draft.content, draft.trust or "agent"))
        yield replace(draft, trust=least(*trusts)) if trusts else draft


def _quotes_in(session: str, context: "Context", reader: Reader) -> Quotes:
    """Return the quotations of a session; one that is going on here has read most of them before."""
    speaking = context.speaking.get(session)
    return Quotes(reader.messages(session)) if speaking is None else speaking.heard(reader)


def _sessions_of_agent(draft: Draft, context: "Context") -> Sequence[str]:
    """Return the sessions that an agent may have written a draft in. Nothing of the draft has been checked yet."""
    source = context.source() if draft.source is None else draft.source
    if not isinstance(source, Source) or source.origin != "agent" or draft.trust not in (None, "agent", "user"):
        return ()
    if not isinstance(draft.content, str):
        return ()
    return (source.session,) if isinstance(source.session, str) else tuple(context.speaking)


def of_revised(context: "Context", revised: Memory, session: str | None) -> Trust:
    """The trust of a memory after its revision: an agent may have put in what a tool said, here or in its session."""
    return of_texts(context, [revised.content], revised.trust, session, revised.source.session)[0]


def of_texts(context: "Context", texts: Sequence[str], spoken: Trust, *sessions: str | None) -> list[Trust]:
    """The trust of each text that is written with trust `spoken`: that, or less if an agent repeats in it what a memory
    of low trust says, or what was quoted in these sessions."""
    if context.is_person or spoken in LOW_TRUST:
        return [spoken] * len(texts)
    marks = [fingerprint(one) for one in texts]
    low = _low_trusts(context, marks)
    heard: list[Quotes] = []
    if (project := context.spaces.project()) is not None:
        with project.reading() as reader:
            heard = [Quotes(reader.messages(name)) for name in dict.fromkeys(sessions) if name is not None]
    return [
        least(low.get(mark, spoken), spoken, *(quotes.trust_of(text, spoken) for quotes in heard))
        for text, mark in zip(texts, marks, strict=True)
    ]


def _low_trusts(context: "Context", marks: Sequence[str]) -> dict[str, Trust]:
    """Fingerprint → the least trust of the memories of low trust that say the same."""
    low: dict[str, Trust] = {}
    same = Where(fingerprints=tuple(set(marks)), scope=None, shelf="any")
    for reader in context.readers():
        for one in reader.select(same, limit=MOST_ALIKE * len(marks)):
            if one.is_low_trust:
                low[one.fingerprint] = least(one.trust, low.get(one.fingerprint, one.trust))
    return low


def check_vouched(context: "Context", memory: Memory, verb: str) -> None:
    """Raise NotAllowed unless the memory is somebody's word, or a person acts, who thereby vouches for it."""
    if memory.is_low_trust and not context.is_person:
        origin = "a tool" if memory.trust == "tool" else "an unknown source"
        raise NotAllowed(
            f"Memory {memory.ref} quotes {origin}, so an agent may not {verb} it.",
            hint=f"A person can, with `kept {verb}`.",
        )
    if memory.is_rejected and not context.is_person:
        why = "says was forgotten or rejected here" if REJECTED in memory.tags else "says may belong to another project"
        raise NotAllowed(
            f"What memory {memory.ref} {why}, so an agent may not {verb} it.",
            hint=f"A person can, with `kept {verb}`.",
        )


# ---- what was written before its session's messages were known ----


class Written(NamedTuple):
    """A text that a memory was given while a session went on: when, and the text that it had before the session."""

    at: datetime
    before: str


class Writings:
    """The memories whose text was written while a session went on, as the journal of one space has it."""

    def __init__(self) -> None:
        self.found: dict[str, Written] = {}  # by uid
        self._upto: int | None = None  # the last event that was read

    def read(self, reader: Reader, since: datetime, until: datetime) -> None:
        """Add what was written between these moments, and is not known yet."""
        upto = _last_before(reader, since) if self._upto is None else self._upto
        while page := reader.events(after=upto, limit=PAGE):
            wanted = [event for event in page if since <= event.at <= until]
            if not wanted and page[0].at > until:
                break
            for event in wanted:
                self._note(event)
            upto = page[-1].seq
        self._upto = upto

    def _note(self, event: Event) -> None:
        changed = event.changed or {}
        before, after = changed.get("content", (None, None))
        origin = (changed.get("source", (None, None))[1] or {}).get("origin")
        # A finding was compared with the messages before it when it was taken. An imported memory brings its events
        # along, with their times; it was written here when it was imported.
        is_written = after is not None and not (before is None and origin in AUTOMATIC)
        if is_written or event.action == journal.IMPORT:
            known = self.found.get(event.subject)
            self.found[event.subject] = Written(event.at, known.before if known is not None else before or "")


def _last_before(reader: Reader, moment: datetime) -> int:
    """The number of the last event before a moment; 0 if there is none."""
    low, newest = 0, reader.events(newest_first=True, limit=1)
    high = newest[0].seq if newest else 0
    while low < high:
        middle = (low + high) // 2
        [event] = reader.events(after=middle, limit=1)
        if event.at < moment:
            low = event.seq
        else:
            high = middle
    # The numbers grow with time, but for imported events: look whether such ones stand before younger ones.
    while low > 0:
        earlier = reader.events(after=max(0, low - PAGE), limit=min(PAGE, low))
        young = next((event.seq for event in earlier if event.at >= moment), None)
        if young is None:
            break
        low = young - 1
    return low


class Overheard:
    """Compares what was written while a session went on with what tools and pasted texts said in it.

    For one session, and as often as messages come in; each time it reads on where it stopped.
    """

    def __init__(self) -> None:
        self._writings: dict[str, Writings] = {}  # by space
        self._own: set[tuple[str, str]] = set()  # uid and fingerprint of what the agent said before any tool

    def lower(self, context: "Context", heard: "Heard") -> int:
        """Lower the trust of each memory that repeats what it could have been taken from. Returns how many.

        Promoted ones are followed into global memory, where nobody has to agree: a text only loses there.
        """
        storages = [one for one in (context.spaces.project(), context.spaces.shared()) if one is not None]
        lowered: list[Memory] = []
        for storage in storages:
            with storage.reading() as reader:
                found = self._found(reader, storage.space, heard)
            lowered += _lower_in(context, storage, found)
        new = lowered
        while new:
            heirs: list[Memory] = []
            for storage in storages:
                with storage.reading() as reader:
                    found = {heir.uid: one.trust for heir, one in _heirs(reader, new)}
                heirs += _lower_in(context, storage, found)
            lowered, new = lowered + heirs, heirs
        return len(lowered)

    def _found(self, reader: Reader, space: str, heard: "Heard") -> dict[str, Trust]:
        """By uid, the trust of the memories in this space that are quotations."""
        writings = self._writings.setdefault(space, Writings())
        writings.read(reader, heard.since - CLOCKS_DIFFER, heard.last_at + CLOCKS_DIFFER)
        found: dict[str, Trust] = {}
        blocks = heard.quotes().blocks() if len(writings.found) >= MANY else None
        for uid, written in writings.found.items():
            memory = next(iter(reader.select(replace(ANYWHERE, uid=uid), limit=1)), None)
            if memory is None or self._is_settled(memory):
                continue
            if blocks is not None and not shares_letters(memory.content, blocks):
                continue
            if heard.quotes().trust_of(memory.content, "agent") in LOW_TRUST:
                trust = self._trust_of(memory, written, heard)
                found |= {uid: trust} if trust in LOW_TRUST else {}
        if heard.is_live:  # what is said from now on comes after them
            writings.found.clear()
        return found

    def _is_settled(self, memory: Memory) -> bool:
        """Return True if its trust is not an agent's, or if it is known to be the agent's own words."""
        return memory.trust != "agent" or (memory.uid, memory.fingerprint) in self._own

    def _trust_of(self, memory: Memory, written: Written, heard: "Heard") -> Trust:
        """The trust of a text that stands in the session, by what came before it was written."""
        said = heard.said()
        first = first_said(memory.content, said)
        by = first or _last_heard(said, written.at, heard)
        if by is None:
            return "agent"
        trust = heard.quotes().trust_of(memory.content, "agent", by=by, known=written.before)
        if trust == "agent" and first is not None:
            self._own.add((memory.uid, memory.fingerprint))
        return trust


class Heard(NamedTuple):
    """A session so far, from `since` to `last_at`. Its quotations and messages are read when they are needed.

    `undated`: the numbers of messages without a time of their own. They are younger than those that came before them;
    the first ones are younger than `since`, if it `is_live`: opened before they were said.
    """

    quotes: Callable[[], Quotes]
    said: Callable[[], Sequence[Message]]
    since: datetime
    last_at: datetime
    undated: Collection[int] = ()
    is_live: bool = False


def _last_heard(said: Sequence[Message], at: datetime, heard: Heard) -> Message | None:
    """The last message that may have been there at that moment."""
    before = now = heard.since if heard.is_live else None
    last = None
    for message in said:
        if message.at != now:  # undated ones that came together have the same time, at which they came
            before, now = now, message.at
        said_at = before if message.n in heard.undated else message.at
        if said_at is None or said_at <= at:
            last = message
    return last


def _heirs(reader: Reader, lowered: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
    """The memories here that lowered ones were promoted to with the same words, each with its origin."""
    for one in lowered:
        if one.superseded_by is not None:
            for heir in reader.select(replace(ANYWHERE, uid=one.superseded_by), limit=1):
                if heir.fingerprint == one.fingerprint and heir.trust == "agent":
                    yield heir, one


def _lower_in(context: "Context", storage: Storage, found: Mapping[str, Trust]) -> list[Memory]:
    if not found:
        return []
    stamp = Stamp(group=random_hex(8), at=context.now(), actor=journal.UPKEEP)
    lowered = context.write(storage, partial(_lower, found), stamp=stamp)
    context.tell_write(storage, 0)
    return lowered


def _lower(found: Mapping[str, Trust], tx: Transaction) -> list[Memory]:
    current = [(one, trust) for uid, trust in found.items() for one in tx.select(replace(ANYWHERE, uid=uid), limit=1)]
    return [tx.put(distrusted(one, trust, tx.stamp.at), DISTRUST) for one, trust in current if one.trust == "agent"]
