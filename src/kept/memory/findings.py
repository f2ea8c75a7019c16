"""Findings of a session: the memories that are taken out of what was said, and the one summary of it.

`sessions` calls `take` at a checkpoint, with the newest messages, and at the end, with the whole transcript. Rule: once
a session has ended, its findings depend on its transcript alone. What a checkpoint took from half a conversation and
the whole does not confirm is withdrawn; a finding that stays keeps its id; one that was taken before, or that somebody
has forgotten, is not taken again.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import filterfalse

import msgspec
from msgspec import Struct

from kept.errors import NotFound
from kept.memory import counts, write
from kept.memory.context import Context, Memories, by_uid
from kept.memory.session_summary import summary_in, summary_of, tellable
from kept.memory.window import is_own_summary
from kept.memory.write import grown_by
from kept.model import LOW_TRUST, NOTE_OF, Draft, Memory, Message, Receipt, SessionRecord, Source, Trust, replace
from kept.ports import Reader, Stamp, Storage, Transaction, Where
from kept.proposals import CHANGE, PROPOSAL, SETTLED, is_rejected, told_as
from kept.recall.pipeline import live_side
from kept.tables import PRESETS
from kept.text import fingerprint, sentences, words
from kept.writing import admit, pipeline
from kept.writing.conflicts import find_rivals
from kept.writing.duplicates import Known, supersede
from kept.writing.extraction import OPEN, ExtractedDraft, Summarizer, extract, summarize
from kept.writing.extraction.edits import edits_in
from kept.writing.extraction.open_ends import closed_in
from kept.writing.extraction.summaries import ASKED
from kept.writing.extraction.turn_files import TurnFiles
from kept.writing.last_word import NO, YES, overrules
from kept.writing.over import disproves
from kept.writing.quotes import Quotes
from kept.writing.rejections import claim_of, is_said_in
from kept.writing.things import things_in, values_of

OVERLAP = 6  # messages before the mark that are read again, so that an error and its fix are seen together
MOST_FINDINGS = 10_000
MOST_OPEN_ENDS = 100
MOST_NOTES = 100
MOST_COMPARED = 500  # of the user's statements, newest first, that a new one may overrule
MIN_REPEATED_THINGS = 3  # that a request names: "run the tests" is said in every session
MOST_REPEATS = 10  # messages of other sessions that are compared
SAME_THINGS = 0.8  # of all that two sentences name
MESSAGE_REF = r"(?s)(?P<session>.+)#(?P<n>\d{1,18})"


class FindingsUpdate(Struct, frozen=True, kw_only=True):
    """What was found in the messages of a session up to number `upto`."""

    upto: int = 0
    new: int = 0
    grown: int | None = None  # by how many live memories; None: nothing was changed
    uids: tuple[str, ...] = ()  # of all findings, known ones included
    repeated: tuple[str, ...] = ()  # uids of memories that were there before, and that the session said as well
    summary: Memory | None = None


def take(
    context: Context,
    storage: Storage,
    name: str,
    stamp: Stamp,
    heard: Callable[[], Quotes],
    *,
    is_whole: bool,
    summarizer: Summarizer | None = None,
) -> FindingsUpdate:
    """Store the findings of the newest messages; or, if `is_whole`, make findings and summary those of the transcript.

    `heard` are the words of the session that are not its speakers' own: what repeats them has their trust.
    Findings and mark are one transaction: after a crash the next call continues there.
    """
    with storage.reading() as reader:
        session = reader.session(name)
        if session is None:  # it was opened in a pause, and nothing was said since
            return FindingsUpdate()
        messages = reader.messages(name, after=0 if is_whole else max(0, session.checked - OVERLAP))
    upto = messages[-1].n if messages else session.shared
    if _is_read(session, upto, is_whole=is_whole) or context.is_capture_off(name):
        return FindingsUpdate(upto=upto)
    said = list(filterfalse(is_own_summary, messages))
    reading = _read(context, storage, session, said, heard, is_whole=is_whole, summarizer=summarizer)
    with storage.writing(stamp) as tx:
        receipts, grown = _store(tx, storage, name, reading)
        put, added = _put_end(tx, storage, name, reading, said) if is_whole else (None, 0)
        _mark_read(tx, name, upto)
        uids = tuple(memory.uid for memory in findings_of(tx, name))
        repeated = _repeated(tx, name, reading, receipts)
    counts.count_reasons(context, receipts)
    kept, grown = [receipt for receipt in receipts if receipt.outcome != "refused"], grown + added
    new = sum(receipt.reason != "already_stored" for receipt in kept)
    return FindingsUpdate(
        upto=upto, new=new, grown=grown if kept or grown else None, uids=uids, repeated=repeated, summary=put
    )


def _is_read(session: SessionRecord, upto: int, *, is_whole: bool) -> bool:
    """Return True if nothing was said since the last time, or only in the session that this one was forked from."""
    return upto <= session.shared or (not is_whole and upto <= session.checked)


def _mark_read(tx: Transaction, name: str, upto: int) -> None:
    current = tx.session(name)
    if current is not None and current.checked < upto:
        tx.put(replace(current, checked=upto), "checkpoint")


class _Reading(Struct, frozen=True, kw_only=True):
    """What extraction found in the messages of a session, ready to be stored, or already refused."""

    is_whole: bool
    said: set[str]  # identities of everything that was found
    ready: list[pipeline.Ready | Receipt]
    minor: list[pipeline.Ready]  # worth something only if they change another memory
    summary: pipeline.Ready | Receipt | None


def _read(
    context: Context,
    storage: Storage,
    session: SessionRecord,
    said: Sequence[Message],
    heard: Callable[[], Quotes],
    *,
    is_whole: bool,
    summarizer: Summarizer | None,
) -> _Reading:
    """Extract, check and redact, before the transaction begins."""
    rules = replace(context.rules(), echoes=write.echoes(context))
    found = [*_found_in(said, session, context.settings.extraction)]
    quotes = heard() if found or is_whole else Quotes()
    every = [(each.is_minor, _as_draft(each, message, session, quotes)) for each, message in found]
    drafts, minor = ([draft for is_minor, draft in every if is_minor == wanted] for wanted in (False, True))
    prepared = [pipeline.prepare(draft, rules) for draft in minor]
    summary = None
    if is_whole and (draft := _summarize(context, storage, session, said, summarizer, quotes, drafts)) is not None:
        summary = pipeline.prepare(draft, rules)
    return _Reading(
        is_whole=is_whole,
        said={_key_of(draft) for _, draft in every},
        ready=[pipeline.prepare(draft, rules) for draft in drafts],
        minor=[one for one in prepared if isinstance(one, pipeline.Ready)],
        summary=summary,
    )


def _store(tx: Transaction, storage: Storage, name: str, reading: _Reading) -> tuple[list[Receipt], int]:
    """Store what is new. Returns the receipts, and by how many live memories the space grew."""
    own = {_identity(memory): memory for memory in taken_from(tx, name)}
    withdrawn = _reconcile(tx, own, reading.said) if reading.is_whole else 0
    place = write.place(storage, tx.stamp.at)
    ready = [*reading.ready, *(_changing(tx, name, reading.minor, place) if reading.minor else ())]
    new = [one for one in ready if isinstance(one, Receipt) or not _is_known(tx, one, name, own)]
    receipts = pipeline.store(tx, new, place)
    ended = _end_overruled(tx, name, [one.memory for one in receipts if one.memory is not None])
    _ask_about(tx, receipts)
    return receipts, sum(map(grown_by, receipts)) - withdrawn - ended


def findings_of(reader: Reader, name: str) -> Memories:
    """The live findings of a session, newest first, whether they were promoted or not."""
    found = reader.select(Where(session=name), limit=MOST_FINDINGS)
    return [memory for memory in found if is_finding(memory)]


def find_message(storage: Storage | None, ref: str) -> Message:
    """Return the message that `ID#N` names. Raises NotFound."""
    found = re.fullmatch(MESSAGE_REF, ref)
    if storage is not None and found is not None:
        with storage.reading() as reader:
            for message in reader.messages(found["session"], after=int(found["n"]) - 1, limit=1):
                if message.n == int(found["n"]):
                    return message
    raise NotFound(f"There is no message {ref[:80]}.", hint="`kept session show ID` shows them.")


def message_id_of(memory: Memory) -> str:
    """Return the id of the message that a finding was taken from, by its key; "" for other memories."""
    rest = (memory.key or "").removeprefix(f"{memory.source.session}:")
    return rest.rpartition(":")[0] if memory.source.session and rest != memory.key else ""


def is_finding(memory: Memory) -> bool:
    """Whether a memory was taken out of a conversation, and not stored on purpose."""
    return memory.kind != "summary" and memory.source.origin not in admit.DELIBERATE and memory.key is not None


def _repeated(tx: Transaction, name: str, reading: _Reading, receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """Return the uids of the memories of others that a session said again."""
    known = [one for one in _twins(tx, reading) if name in (one.data or {}).get("sessions", ())]
    known += [one.memory for one in receipts if one.memory is not None and one.outcome == "strengthened"]
    others = [one.uid for one in known if one.source.session != name]
    return tuple(dict.fromkeys([*others, *filter(None, (one.repeats for one in receipts))]))


def _twins(tx: Transaction, reading: _Reading) -> Memories:
    """Return the live memories with the words of something that was found."""
    said = {fingerprint(one.draft.content) for one in reading.ready if isinstance(one, pipeline.Ready)}
    return tx.select(Where(fingerprints=tuple(said), scope=None), limit=MOST_FINDINGS) if said else []


def promote(context: Context, storage: Storage, name: str, stamp: Stamp) -> None:
    """Make the findings that qualify candidates of the project."""
    preset = PRESETS[context.settings.preset]
    with storage.writing(stamp) as tx:
        for memory in findings_of(tx, name):
            if admit.is_worth_promoting(memory, preset):
                tx.put(admit.promoted(memory, tx.stamp.at, session=name), "promote")


def promoted_in(reader: Reader, name: str, uids: Iterable[str]) -> list[str]:
    """Return the uids of those memories that a session promoted, at its end or because it repeated them."""
    found = (by_uid(reader, uid) for uid in uids)
    return [one.uid for one in found if one is not None and (one.data or {}).get(admit.PROMOTED_IN) == name]


def _found_in(
    messages: Sequence[Message], session: SessionRecord, style: str
) -> Iterable[tuple[ExtractedDraft, Message]]:
    """What extraction finds, each with its message. The messages that a fork shares have been read for its parent."""
    by_id, files = {message.id: message for message in messages}, TurnFiles(messages, session.cwd)
    for found in extract(messages, session.cwd, style=style, with_minor=True):
        if (message := by_id[found.message_id]).n > session.shared:
            yield files.given_to(found), message


def _as_draft(found: ExtractedDraft, message: Message, session: SessionRecord, quotes: Quotes) -> Draft:
    source = found.draft.source or Source(origin="extraction")
    is_said = message.role in ("user", "assistant", "summary")
    trust = quotes.trust_of(found.draft.content, message.trust, by=message) if is_said else found.draft.trust
    evidence = {"signals": list(found.signals), "sessions": [session.name], "agents": [session.agent or ""]}
    return msgspec.structs.replace(
        found.draft,
        tier="session",
        source=replace(source, session=session.name, agent=source.agent or session.agent),
        data=(found.draft.data or {}) | evidence,
        key=f"{session.name}:{found.message_id}:{fingerprint(found.draft.content)}",
        created_at=message.at,
        trust=trust,
    )


def _key_of(draft: Draft) -> str:
    return (draft.key or "").rpartition(":")[2]


def _identity(memory: Memory) -> str:
    """What the finding said when it was taken: somebody may have revised it since."""
    return (memory.key or "").rpartition(":")[2]


def _changing(
    tx: Transaction, name: str, minor: Sequence[pipeline.Ready], place: pipeline.Destination
) -> list[pipeline.Ready]:
    """Return the minor drafts that change something stored elsewhere, or that the user says in a second session."""
    memories = [pipeline.to_memory(ready, place) for ready in minor]
    known, said = Known(tx, memories), _left_by_others(tx, name, "user")
    blamed = _left_by_others(tx, name, "agent")
    found = [
        _changes_another(tx, one, known, said)
        or any(disproves(one.content, each.content) for each in blamed)
        or _is_said_again(tx, name, one)
        for one in memories
    ]
    return [one for one, is_wanted in zip(minor, found, strict=True) if is_wanted]


def _is_said_again(tx: Transaction, name: str, memory: Memory) -> bool:
    """Return True if the user has said the same sentence in another session: a task once, a habit twice."""
    things = things_in(memory.content)
    if memory.trust != "user" or len(things) < MIN_REPEATED_THINGS:
        return False
    found = [one.message for one in tx.search_messages(words(memory.content), limit=MOST_REPEATS)]
    elsewhere = [one for one in found if one.session != name and one.role == "user" and one.trust == "user"]
    heard = (things_in(sentence) for message in elsewhere for sentence in sentences(message.content))
    return any(len(things & other) >= SAME_THINGS * len(things | other) for other in heard if other)


def _changes_another(tx: Transaction, memory: Memory, known: Known, said: Memories) -> bool:
    if any(_answer(memory, other) == YES for other in said):
        return True
    others = [other for other in known.alike(memory) if other.source.session != memory.source.session]
    return any(_answer(memory, other) != NO for other in others) or bool(find_rivals(tx, memory, others))


def _answer(later: Memory, earlier: Memory) -> int:
    """Decide if a finding overrules an earlier one; the marks of its sentence have those of its opener."""
    return overrules(later.content, earlier.content, marks={"change"} & set((later.data or {}).get("rules", ())))


def _left_by_others(tx: Transaction, name: str, trust: Trust) -> Memories:
    """Return the newest statements of the user, or findings of agents, that other sessions left."""
    known = tx.select(Where(trusts=(trust,), statuses=("candidate",)), limit=MOST_COMPARED)
    return [one for one in known if is_finding(one) and one.source.session != name]


def _end_overruled(tx: Transaction, name: str, new: Sequence[Memory]) -> int:
    """Archive what other sessions took of the user's words and this one overrules. Returns how many.

    The statement that does so is told in its place. In doubt both stay, the older one as a proposal.
    """
    spoken = [one for one in new if one.trust == "user" and one.source.origin == "conversation"]
    if not spoken:
        return 0
    said, found = _left_by_others(tx, name, "user"), _left_by_others(tx, name, "agent")
    ended = sum(_is_ended(tx, old, [one for one in spoken if one.created_at > old.created_at]) for old in said)
    return ended + sum(_is_disproved(tx, old, spoken) for old in found)


def _is_disproved(tx: Transaction, old: Memory, spoken: Sequence[Memory]) -> bool:
    """Archive an agent's finding about a cause, if the user says later that this was not it."""
    by = next((one for one in spoken if one.created_at > old.created_at and disproves(one.content, old.content)), None)
    if by is not None:
        supersede(tx, old, by, tx.stamp.at)
    return by is not None


def _ask_about(tx: Transaction, receipts: Sequence[Receipt]) -> None:
    """Make a finding that contradicts a live memory a proposal: a judge decides, and until then the older one holds."""
    for memory in (one.memory for one in receipts if one.memory is not None and _is_doubtful(tx, one)):
        now = by_uid(tx, memory.uid)
        if now is not None and is_finding(now) and not now.is_proposal:
            tx.put(replace(now, tags=(*now.tags, PROPOSAL)), "doubt")


def _is_doubtful(tx: Transaction, receipt: Receipt) -> bool:
    """Return True if a finding contradicts another memory, and both are live."""
    clear = [one for one in receipt.conflicts if one.type != "ambiguous"]
    return any(live_side(one.left, [tx]) and live_side(one.right, [tx]) for one in clear)


def _is_ended(tx: Transaction, old: Memory, spoken: Sequence[Memory]) -> bool:
    """Archive a finding if a later statement overrules it; make it a proposal if that is in doubt."""
    answers = {one.uid: _answer(one, old) for one in spoken}
    by = next((one for one in spoken if answers[one.uid] == YES), None)
    is_told = PROPOSAL not in old.tags
    if by is not None:
        supersede(tx, old, by, tx.stamp.at)
        if is_told:
            tx.put(told_as(by, CHANGE), "promote")
    elif is_told and any(answer != NO for answer in answers.values()):
        tx.put(replace(old, tags=(*old.tags, PROPOSAL)), "doubt")
    return by is not None


def taken_from(reader: Reader, name: str) -> Memories:
    """Everything that was ever taken from this session, on whatever shelf it is now."""
    found = reader.select(Where(session=name, shelf="any"), limit=MOST_FINDINGS)
    return [memory for memory in found if is_finding(memory)]


def _reconcile(tx: Transaction, own: dict[str, Memory], wanted: set[str]) -> int:
    """Withdraw what the whole transcript does not say, and bring back what it does. Returns by how many it shrank."""
    shrunk = 0
    for said, memory in own.items():
        if said in wanted and is_withdrawn(memory):
            back = replace(memory, status="candidate", reason=None, archived_at=None, updated_at=tx.stamp.at)
            own[said] = tx.put(back, "restore")
            shrunk -= 1
        elif said not in wanted and _is_untouched(memory):
            own[said] = tx.put(memory.archived("superseded", tx.stamp.at), "withdraw")
            shrunk += 1
    return shrunk


def _close_open_ends(tx: Transaction, name: str, said: Sequence[Message]) -> int:
    """Archive the open ends of earlier sessions that this one reports as done. Returns how many."""
    found = tx.select(Where(kinds=("progress",), tags=(OPEN,)), limit=MOST_OPEN_ENDS)
    waiting = {one.uid: one for one in found if is_finding(one) and one.source.session != name}
    closed = closed_in(said, {uid: one.content for uid, one in waiting.items()}) if waiting else {}
    ended = [waiting[uid] for uid, message in closed.items() if _is_later(message, waiting[uid])]
    for one in ended:
        over = replace(one, data=(one.data or {}) | {"closed_in": name})
        tx.put(over.archived("expired", tx.stamp.at), "close")
    return len(ended)


def _is_later(message: Message, memory: Memory) -> bool:
    return message.at is None or memory.created_at < message.at


def is_withdrawn(memory: Memory) -> bool:
    """Return True for a finding of a checkpoint that the whole transcript does not confirm."""
    return memory.reason == "superseded" and memory.superseded_by is None


def _is_untouched(memory: Memory) -> bool:
    """Whether nobody has used, judged or confirmed it: then only the extraction speaks for it."""
    return memory.status == "candidate" and not memory.use_count and not memory.feedback


def _is_known(tx: Transaction, ready: pipeline.Ready, name: str, own: dict[str, Memory]) -> bool:
    """Whether this session has said it before: then it is no new evidence, neither for its own memory nor a twin.

    A proposal that a judge has dropped is known as well, whichever session says it.
    """
    if _key_of(ready.draft) in own:
        return True
    twins = tx.select(Where(fingerprints=(fingerprint(ready.draft.content),), shelf="any"), limit=10)
    if PROPOSAL in ready.draft.tags and any(map(is_rejected, twins)):
        return True
    is_repeated = any(name in (twin.data or {}).get("sessions", ()) for twin in twins if not twin.is_archived)
    return is_repeated or _is_noted(tx, name, ready.draft.content)


def _is_noted(tx: Transaction, name: str, content: str) -> bool:
    """Return True if this session has put it into a note of its agent's own memory, which was read before."""
    notes = [one for one in tx.select(Where(session=name), limit=MOST_NOTES) if NOTE_OF in (one.data or {})]
    return any(is_said_in(content, one.content) or is_said_in(claim_of(one.content), content) for one in notes)


def summarized(
    messages: Sequence[Message],
    summarizer: Summarizer | None,
    quotes: Quotes,
    findings: Sequence[Draft] | None = None,
) -> tuple[str, Trust]:
    """A summary and its trust. Ours leaves out what is only quoted; a plugged-in one may quote, and is labelled.

    `findings`: what was kept of these messages, if that is known; ours is made of them.
    """
    said = [message for message in messages if message.role != "summary"]
    text = summarizer(said) if summarizer is not None else summarize(said, findings)
    if summarizer is not None:
        return text, quotes.trust_of(text, "agent")
    lines = [line for line in text.splitlines() if quotes.trust_of(line, "agent") == "agent"]
    return "\n".join(lines), "agent"


def _summarize(
    context: Context,
    storage: Storage,
    session: SessionRecord,
    said: Sequence[Message],
    summarizer: Summarizer | None,
    quotes: Quotes,
    drafts: Sequence[Draft],
) -> Draft | None:
    """Draft the summary of a session; None if there is nothing to tell."""
    trusted = [draft for draft in drafts if draft.trust not in LOW_TRUST]
    told = tellable(storage, session.name, [draft.content for draft in trusted])
    trusted = [draft for draft, left in zip(trusted, told, strict=True) if left]
    text, trust = summarized(said, summarizer, quotes, trusted)
    [content] = tellable(storage, session.name, [text])
    if not content.strip() or (summarizer is None and _is_only_asked(content, said)):
        return None
    return Draft(
        content=content[: admit.MAX_SUMMARY_CHARS],
        kind="summary",
        tier="session",
        key=f"{session.name}:summary",
        source=Source(origin="narrative", agent=session.agent or context.actor.name, session=session.name),
        created_at=said[-1].at,
        trust=trust,
    )


def _is_only_asked(summary: str, said: Iterable[Message]) -> bool:
    """Return True if a session has a request and nothing came of it: no finding, no open end, no change of a file.

    A request with a value is kept, so that a later one with another value is known as a change: "five times".
    """
    if values_of(summary).slots:
        return False
    edits = (edit for call in said if call.role == "tool_call" for edit in edits_in(call))
    return all(line.startswith(ASKED) for line in summary.splitlines()) and next(edits, None) is None


def _put_end(
    tx: Transaction, storage: Storage, name: str, reading: _Reading, said: Sequence[Message]
) -> tuple[Memory | None, int]:
    """Store the summary and close open ends. Returns the summary, and by how many live memories the space grew."""
    put, is_new = _put_summary(tx, name, reading.summary, storage)
    return put, is_new - _close_open_ends(tx, name, said)


def _put_summary(
    tx: Transaction, name: str, ready: pipeline.Ready | Receipt | None, storage: Storage
) -> tuple[Memory | None, int]:
    """Store the summary in the place of an earlier one: a session has one. Returns it, and 1 if it is new."""
    if not isinstance(ready, pipeline.Ready):
        return summary_of(tx, name), 0
    known = summary_in(tx, Where(session=name, kinds=("summary",), shelf="any"))
    if known is None:
        [receipt] = pipeline.store(tx, [ready], write.place(storage, tx.stamp.at))
        return receipt.memory, grown_by(receipt)
    is_emptied = is_withdrawn(known)  # all that it told was forgotten
    if (known.is_archived and not is_emptied) or known.content == ready.draft.content:
        return (None if known.is_archived else known), 0
    fresh = pipeline.to_memory(ready, write.place(storage, tx.stamp.at))
    changed = replace(
        known,
        content=fresh.content,
        fingerprint=fresh.fingerprint,
        trust=fresh.trust,
        created_at=fresh.created_at,
        updated_at=tx.stamp.at,
        data={name: value for name, value in (known.data or {}).items() if name != SETTLED} or None,
    )
    if is_emptied:
        changed = replace(changed, status="candidate", reason=None, archived_at=None)
    return tx.put(changed, "summarize"), int(is_emptied)
