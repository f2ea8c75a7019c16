"""Judge the proposals of a session: one call says which of them later sessions are told.

Rules choose proposals (`kept.proposals`), a judge settles them: the agent that runs anyway, or a person. `next_list`
gives the oldest list that nobody has judged, as numbered statements: the findings of one session, then the stored
memories that they may replace, then its summary. `judge` carries out an answer as one group of the journal, so that one
undo takes it back. Rule: an answer can name numbers of its list alone, and the list is named by a code of its contents:
an answer to a list that has changed, or was judged before, changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2s
from typing import Any

from msgspec import ValidationError, convert, to_builtins

from kept import text, tokens
from kept.errors import InvalidInput
from kept.memory import change, counts, guards, write
from kept.memory.context import Context, Memories, by_uid
from kept.memory.findings import findings_of
from kept.memory.judge_lists import STORED, SUMMARY, mark_of
from kept.memory.judge_lists import Addition as Addition
from kept.memory.judge_lists import Answer as Answer
from kept.memory.judge_lists import JudgeList as JudgeList
from kept.memory.judge_lists import Judgement as Judgement
from kept.memory.receipts import holds_receipts
from kept.memory.session_summary import summary_of
from kept.memory.standing import held_again
from kept.model import Conflict, Draft, Memory, RejectedAs, SessionRecord, Source, replace
from kept.ports import Reader, Storage, Transaction, Where
from kept.proposals import DROPPED, FADE_DAYS, PROPOSAL, SETTLED, Proposal, proposals_in
from kept.text import visible
from kept.writing import admit
from kept.writing import revise as again
from kept.writing.duplicates import Known
from kept.writing.last_word import NO, overrules
from kept.writing.things import things_in

MOST_ASKED = 15  # findings of one session
MOST_RIVALS = 5
MOST_TOKENS = 600  # of the numbered lines; the question before them has about 250
WIDTHS = (300, 240, 200, 160)  # of a statement in a list that is too long, in characters, before one is left out
MOST_ADDED = 8
MOST_ALIKE = 8  # that are compared with a finding
ENOUGH_SHARED = 2  # things that two statements name
RARE = 2  # stored memories that name a thing
SAME_WORDS = 5  # in a row: what an added statement shares with its session
UNVERIFIED = "unverified"  # the tag of an added statement that shares nothing with it
MOST_RECEIPTS = 200  # that are searched for a list


# Lists


def next_list(context: Context, *, besides: str | None = None) -> JudgeList:
    """Return the oldest list that waits for a judge, not that of session `besides`."""
    storage = project_of(context)
    if storage is None:
        return JudgeList()
    with storage.reading() as reader:
        for session in _waiting(context, reader):
            if session.name != besides and (found := _list_of(reader, session)).statements:
                return found
    return JudgeList()


def waiting(context: Context) -> list[tuple[SessionRecord, int]]:
    """Return the sessions that wait for a judge, each with the number of its open findings, the oldest first."""
    storage = project_of(context)
    if storage is None:
        return []
    with storage.reading() as reader:
        found = [(one, len(_open_findings(reader, one))) for one in _waiting(context, reader)]
    return [(one, number) for one, number in found if number]


def project_of(context: Context) -> Storage | None:
    """Return the storage of the project, if there is one. Raises NotAllowed if the actor may not read it."""
    context.readable()
    return context.spaces.project()


def list_of(context: Context, storage: Storage, name: str) -> JudgeList:
    """Return the list of one session."""
    with storage.reading() as reader:
        session = reader.session(name)
        return JudgeList() if session is None else _list_of(reader, session)


def _waiting(context: Context, reader: Reader) -> Iterable[SessionRecord]:
    """Return the sessions that ended lately with proposals that nobody has judged, the oldest first."""
    since = context.now() - timedelta(days=FADE_DAYS)
    where = Where(tags=(PROPOSAL,), since=since)
    waiting = {one.source.session for one in reader.select(where, limit=10_000) if _is_open(one)}
    ended = [one for one in reader.all(SessionRecord) if one.name in waiting and one.finished_at is not None]
    return [one for one in ended if _is_own(context, reader, one)]


def _is_own(context: Context, reader: Reader, session: SessionRecord) -> bool:
    """Return True for a session of this person; where no team shares the project, every session is."""
    if context.person is None:
        return True
    begun = reader.events(subject=session.subject, limit=1)
    return bool(begun) and (begun[0].actor == context.person or begun[0].actor.startswith(f"{context.person} ("))


def _is_open(memory: Memory) -> bool:
    """Return True if no judge has decided about a statement."""
    return SETTLED not in (memory.data or {})


def _open_findings(reader: Reader, session: SessionRecord) -> Memories:
    return [one for one in findings_of(reader, session.name) if _is_open(one) and not one.is_low_trust]


def _list_of(reader: Reader, session: SessionRecord) -> JudgeList:
    """Return the open findings of a session, each with the stored memories that it may replace, then its summary."""
    found = _open_findings(reader, session)
    if not found:
        return JudgeList()
    summary = summary_of(reader, session.name)
    rows = _rows(reader, found, summary if summary is not None and _is_open(summary) else None)
    asked = _fitted(_as_list(session, rows), _worth(rows, found))
    listed = {one.ref for one in asked.statements}
    return replace(asked, left_out=tuple(one.ref for one in found if one.ref not in listed))


def _fitted(asked: JudgeList, worth: Mapping[str, float]) -> JudgeList:
    """Return a list of at most MOST_TOKENS: without memories that are only alike, with cut texts, with fewer findings.

    `worth` has the refs of the statements that it can do without.
    """
    in_order = sorted(worth, key=lambda ref: (worth[ref], ref))
    alike = [ref for ref in in_order if not worth[ref]]
    findings = [ref for ref in in_order if worth[ref]][:-1]
    shorter = [*(partial(_without, ref) for ref in alike), *(partial(_cut, width) for width in WIDTHS)]
    for shorten in (*shorter, *(partial(_without, ref) for ref in findings)):
        if asked.list_tokens <= MOST_TOKENS:
            break
        asked = shorten(asked)
    return asked


def _without(ref: str, asked: JudgeList) -> JudgeList:
    """Return a list without a statement and what stands beside it."""
    return _renumbered([one for one in asked.statements if ref not in (one.ref, one.sort)], asked)


def _cut(width: int, asked: JudgeList) -> JudgeList:
    return replace(asked, most_chars=width)


def _worth(rows: Sequence[Proposal], found: Memories) -> dict[str, float]:
    """Return by ref what each statement is worth that a list may do without.

    Those are findings, which are worth less the longer they are for their importance; and the memories that are only
    like one (0), which go first.
    """
    by_ref = {one.ref: one for one in found}
    stored = [one for one in rows if one.who == STORED]
    alike = {one.ref: 0.0 for one in stored if overrules(by_ref[one.sort].content, one.text) == NO}
    costs = {one.ref: tokens.estimate(one.text) for one in rows if one.ref in by_ref}
    return alike | {ref: max(by_ref[ref].importance, 0.1) / cost for ref, cost in costs.items()}


def _rows(reader: Reader, found: Memories, summary: Memory | None) -> list[Proposal]:
    """Return the statements to ask about, not numbered yet; the `sort` of a stored one is the ref that it is beside."""
    best = sorted(found, key=lambda one: (-one.importance, -one.id))[:MOST_ASKED]
    rivals = _rivals(reader, best)
    rows: list[Proposal] = []
    for one in proposals_in(best):
        rows += [one, *(_beside(other, STORED, sort=one.ref) for other in rivals.get(one.ref, ()))]
    return rows if summary is None else [*rows, _beside(summary, SUMMARY)]


def _as_list(session: SessionRecord, rows: Sequence[Proposal]) -> JudgeList:
    return _renumbered(rows, JudgeList(session=session.name, at=session.started_at))


def _renumbered(rows: Sequence[Proposal], asked: JudgeList) -> JudgeList:
    """Number the statements, and name the list by its contents."""
    numbers = {one.ref: n for n, one in enumerate(rows, 1)}
    listed = [replace(one, n=n, beside=numbers.get(one.sort)) for n, one in enumerate(rows, 1)]
    code = blake2s("\n".join([asked.session, *(f"{one.ref} {one.text}" for one in listed)]).encode(), digest_size=3)
    return replace(asked, code=code.hexdigest(), statements=tuple(listed))


def _rivals(reader: Reader, found: Memories) -> dict[str, Memories]:
    """Return the stored memories that each finding may replace, each once.

    Those that it contradicts come first, then those that it overrules, then the likest.
    """
    pairs: dict[str, tuple[Memory, Memory]] = {}
    for one, other in _likely_rivals(reader, found):
        if other.source.session != one.source.session and not _stands_apart(other):
            pairs.setdefault(other.uid, (one, other))
    rivals: dict[str, Memories] = {}
    for one, other in [*pairs.values()][:MOST_RIVALS]:
        rivals.setdefault(one.ref, []).append(other)
    return rivals


def _likely_rivals(reader: Reader, found: Memories) -> list[tuple[Memory, Memory]]:
    known = Known(reader, found)
    contradicted = [(one, other) for one in found for other in _contradicted_by(reader, one)]
    sure = [(one, other) for one in found for other in known.alike(one) if _may_end(one, other)]
    return [*contradicted, *sure, *((one, other) for one in found for other in _likest(reader, one))]


def _contradicted_by(reader: Reader, one: Memory) -> Memories:
    """Return the live memories with which a finding is in open conflict."""
    unsettled = [conflict for conflict in reader.all(Conflict) if conflict.resolved_at is None]
    sides = [{conflict.left, conflict.right} for conflict in unsettled]
    others = [by_uid(reader, uid) for both in sides if one.uid in both for uid in both - {one.uid}]
    return [other for other in others if other is not None and not other.is_archived]


def _stands_apart(other: Memory) -> bool:
    return other.is_low_trust or other.kind == "summary"


def _may_end(one: Memory, other: Memory) -> bool:
    return overrules(one.content, other.content) != NO


def _likest(reader: Reader, one: Memory) -> Memories:
    """Return the stored memory that names most of the things that a finding names: enough of them.

    That is two; for a user, who may change his mind in a few words, also a rare one.
    """
    things = things_in(one.content)
    hits = reader.search(text.words(" ".join(sorted(things))), limit=MOST_ALIKE) if things else []
    others = [hit.memory for hit in hits if hit.memory.source.session != one.source.session]
    shared = [(things & things_in(other.content), other) for other in others if not _stands_apart(other)]
    most, best = max(shared, key=lambda pair: len(pair[0]), default=(frozenset(), one))
    is_rare = any(sum(thing in named for named, _ in shared) <= RARE for thing in most)
    return [best] if len(most) >= ENOUGH_SHARED or (is_rare and one.trust == "user") else []


def _beside(memory: Memory, who: str, *, sort: str = "") -> Proposal:
    """Return a memory that stands in the list beside the findings."""
    return Proposal(
        n=0, text=memory.content, ref=memory.ref, sort=sort, kind=memory.kind, who=who, said_at=memory.created_at
    )


# Answers


def judge(context: Context, code: str, answer: Answer, *, is_whole: bool = True) -> Judgement:
    """Settle the list of that code; without `is_whole`, statements that the answer does not name wait on.

    Raises InvalidInput for a list that is gone and for a number it does not have.
    """
    storage = project_of(context)
    found = None if storage is None else _with_code(context, storage, code)
    if storage is None or found is None:
        raise InvalidInput(
            f"There is no list {visible(code)[:20]!r} to judge: it has been judged already, or has changed since.",
            hint="Call without a list to get the one that waits, if any.",
        )
    return settle(context, storage, found, answer, is_whole=is_whole)


def settle(context: Context, storage: Storage, asked: JudgeList, answer: Answer, *, is_whole: bool = True) -> Judgement:
    """Carry out the answer to a list, as one group."""
    by_number = {one.n: one for one in asked.statements}
    _check(context, by_number, answer)
    refused: list[str] = []
    with context.together():
        held = _hold_all(context, asked, answer)
        _settle_conflicts(context, storage, {memory.uid for memory in held.values()})
        added = [_add(context, storage, asked, one, by_number, refused) for one in answer.add]
        ended = _drop_all(context, by_number, answer, held)
        left = 0 if is_whole else len(_still_open(context, storage, asked.session))
        left = left or _leave(context, storage, asked)
    spent = 0 if context.is_person else tokens.estimate(str(to_builtins(answer)))
    counts.count(context, Counter({"judged": 1, "judge_tokens": spent}))
    as_said, rewritten = _by_wording(held, answer)
    return Judgement(
        session=asked.session,
        kept=as_said,
        rewritten=rewritten,
        dropped=_refs_of(by_number, ended, is_replaced=False),
        replaced=_refs_of(by_number, ended, is_replaced=True),
        added=_refs(one for one in added if one is not None),
        refused=tuple(refused),
        left=left,
    )


def _by_wording(held: Mapping[int, Memory], answer: Answer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the refs of the statements that are kept as they were said, and of the rewritten ones."""
    rewritten = {n for n in held if str(n) in answer.rewrite}
    as_said = _refs(one for n, one in held.items() if n not in rewritten)
    return as_said, _refs(one for n, one in held.items() if n in rewritten)


def _refs_of(by_number: Mapping[int, Proposal], ended: Mapping[int, bool], *, is_replaced: bool) -> tuple[str, ...]:
    """Return the refs of the statements that were replaced, or that were dropped."""
    return tuple(by_number[n].ref for n, was_replaced in ended.items() if was_replaced is is_replaced)


def _check(context: Context, by_number: Mapping[int, Proposal], answer: Answer) -> None:
    """Raise InvalidInput for an answer that cannot be carried out, before anything is changed."""
    if unknown := sorted(answer.numbers() - by_number.keys()):
        raise InvalidInput(f"The list has no number {unknown[0]}.", hint=f"Its numbers are 1 to {max(by_number)}.")
    if both := {*answer.drop, *answer.wrong} & {*answer.keep, *map(int, answer.rewrite)}:
        raise InvalidInput(f"Number {min(both)} is dropped, and kept or rewritten, too.", hint="Name it once.")
    if len(answer.add) > MOST_ADDED:
        raise InvalidInput(f"At most {MOST_ADDED} statements can be added, got {len(answer.add)}.")
    for n, said in answer.rewrite.items():
        again.revise(context.find_live(by_number[int(n)].ref)[1], {"content": said}, context.rules(), context.now())
    for number in {*answer.drop, *answer.wrong, *(n for one in answer.add for n in one.replaces)}:
        storage, memory = context.find(by_number[number].ref)
        with storage.reading() as reader:
            guards.check_unguarded(context, reader, memory)


def _refs(memories: Iterable[Memory]) -> tuple[str, ...]:
    return tuple(one.ref for one in memories)


def _with_code(context: Context, storage: Storage, code: str) -> JudgeList | None:
    with storage.reading() as reader:
        lists = (_list_of(reader, session) for session in _waiting(context, reader))
        found = next((one for one in lists if one.code == code), None) or _given(storage, reader, code)
        if found is None:  # a person may name a session that waits for nobody
            since = context.now() - timedelta(days=FADE_DAYS)
            recent = (one for one in reversed(reader.all(SessionRecord)) if one.started_at >= since)
            lists = (_list_of(reader, one) for one in recent if _is_own(context, reader, one))
            found = next((one for one in lists if one.code == code), None)
        return found


def _given(storage: Storage, reader: Reader, code: str) -> JudgeList | None:
    """Return a list as an agent was given it, without statements that have changed or were judged since.

    The session of a list may go on while its agent answers, and then has other findings.
    """
    receipts = reader.receipts_of(None, limit=MOST_RECEIPTS) if holds_receipts(storage) else []
    note = next((body["list"] for _, _, body in receipts if body.get("list", {}).get("code") == code), None)
    if note is None:
        return None
    rows = [_row(reader, n, *said) for n, said in enumerate(note["statements"], 1)]
    left = tuple(one for one in rows if one is not None)
    session = reader.session(note["session"])
    if session is None or all(one.who == STORED for one in left):
        return None
    return JudgeList(code=code, session=session.name, at=session.started_at, statements=left)


def _row(reader: Reader, n: int, ref: str, who: str, mark: str) -> Proposal | None:
    """Return a statement of a list that was given; None if it has changed since, or was judged."""
    memory = reader.get(Memory, int(ref))
    is_same = memory is not None and not memory.is_archived and mark_of(memory.content) == mark
    if memory is None or not is_same or not (who == STORED or _is_open(memory)):
        return None
    one = _beside(memory, who) if who in (STORED, SUMMARY) else proposals_in([memory])[0]
    return replace(one, n=n)


def settled(context: Context, decision: str) -> Callable[[Memory, datetime], Memory]:
    """Return a change that confirms a finding: it is told from now on, as a memory of the project.

    One that turned out to repeat a tool stays what it is.
    """

    def confirmed(memory: Memory, at: datetime) -> Memory:
        memory = held_again(context, memory)
        settled = replace(memory, data=(memory.data or {}) | {SETTLED: decision}, updated_at=at)
        if memory.is_low_trust:
            return settled
        kept = replace(settled, tags=tuple(tag for tag in memory.tags if tag != PROPOSAL), verified_at=at)
        if kept.kind == "summary":
            return kept
        kept = admit.promoted(kept, at) if kept.tier == "session" else kept
        return replace(kept, status="confirmed") if kept.status == "candidate" else kept

    return confirmed


def _marked(decision: str) -> Callable[[Memory, datetime], Memory]:
    """Return a change that notes what a judge decided, and nothing else."""
    return lambda memory, at: replace(memory, data=(memory.data or {}) | {SETTLED: decision}, updated_at=at)


def _hold_all(context: Context, asked: JudgeList, answer: Answer) -> dict[int, Memory]:
    """Confirm the statements that an answer keeps or rewrites, by number.

    Stored memories come first: a finding that is rewritten to contradict one would archive it.
    """
    by_number = {one.n: one for one in asked.statements}
    numbers = sorted({*answer.keep, *map(int, answer.rewrite)}, key=lambda n: (by_number[n].who != STORED, n))
    return {n: _hold(context, by_number[n], answer.rewrite.get(str(n)), asked.session) for n in numbers}


def _settle_conflicts(context: Context, storage: Storage, held: Set[str]) -> None:
    """Settle a contradiction if a judge keeps both sides: both hold."""

    def work(tx: Transaction) -> None:
        for conflict in tx.all(Conflict):
            if conflict.resolved_at is None and {conflict.left, conflict.right} <= held:
                tx.put(replace(conflict, resolved_at=tx.stamp.at), "resolve")

    if len(held) > 1:
        context.write(storage, work)


def _hold(context: Context, one: Proposal, said: str | None, session: str) -> Memory:
    """Confirm a statement, in other words if there are any. A memory that was stored before is kept as it is."""
    if said is not None and said != one.text:
        change.revise(context, one.ref, {"content": said}, session=session)
    storage, memory = context.find_live(one.ref)
    if said is None and one.who == STORED:
        return memory
    return context.change(storage, memory, "judge", settled(context, "kept" if said is None else "rewritten"))


def _drop_all(
    context: Context, by_number: Mapping[int, Proposal], answer: Answer, held: Mapping[int, Memory]
) -> dict[int, bool]:
    """Forget the dropped and the wrong statements; map each number to whether it was replaced instead."""
    ways: dict[int, RejectedAs | None] = {**dict.fromkeys(answer.drop), **dict.fromkeys(answer.wrong, "wrong")}
    return {n: _drop(context, by_number[n], held, rejects) for n, rejects in ways.items()}


def _drop(context: Context, one: Proposal, held: Mapping[int, Memory], rejects: RejectedAs | None) -> bool:
    """Forget a statement, so that no session proposes it again. Return True if it was replaced instead.

    That is a memory stored before whose place the finding above it takes.
    """
    heir = held.get(one.beside or 0)
    if heir is not None and heir.status != "candidate":
        write.end(context, one.ref, heir)
        return True
    storage, memory = context.find(one.ref)
    if not memory.is_archived:
        context.change(storage, memory, "judge", _marked(DROPPED))
    change.forget(context, one.ref, rejects=rejects)
    return False


def _add(
    context: Context,
    storage: Storage,
    asked: JudgeList,
    one: Addition,
    by_number: Mapping[int, Proposal],
    refused: list[str],
) -> Memory | None:
    """Store a statement of the judge; one of an agent that shares nothing with the session stays a candidate.

    Why one is not stored is added to `refused`.
    """
    with storage.reading() as reader:
        said = "\n".join(message.content for message in reader.messages(asked.session))
    is_verified = context.is_person or shares_words(one.content, said)
    source = Source(origin=context.origin, agent=context.author, session=asked.session)
    tags = () if is_verified else (UNVERIFIED,)
    draft = Draft(content=one.content, kind=one.kind, files=one.files, tags=tags, source=source)
    receipt = write.remember_many(context, [draft])[0]
    memory = receipt.memory
    if memory is None:
        refused.append(receipt.message)
        return None
    if not is_verified and memory.status == "confirmed" and receipt.outcome == "stored":
        memory = context.change(storage, memory, "judge", lambda m, at: replace(m, status="candidate", updated_at=at))
    for number in one.replaces:
        write.end(context, by_number[number].ref, memory)
    return memory


def _still_open(context: Context, storage: Storage, name: str) -> Memories:
    """Return the findings of a session about which nothing is decided."""
    with storage.reading() as reader:
        session = reader.session(name)
        return [] if session is None else _open_findings(reader, session)


def _leave(context: Context, storage: Storage, asked: JudgeList) -> int:
    """Mark the findings that are still open, so that nobody is asked about them again. Return how many.

    Those for which the list had no room are marked as well: a session is judged once.
    """
    refs = [one.ref for one in asked.statements if one.who != STORED]
    found = [context.find(ref)[1] for ref in (*refs, *asked.left_out)]
    left = [one for one in found if _is_open(one) and not one.is_archived]
    for one in left:
        context.change(storage, one, "judge", _marked("left"))
    return len(left)


def shares_words(statement: str, said: str) -> bool:
    """Return True if a statement shares an identifier or five words in a row with a conversation."""
    words, heard = text.words(statement), f" {' '.join(text.words(said))} "
    runs = (words[at : at + SAME_WORDS] for at in range(len(words) - SAME_WORDS + 1))
    if any(f" {' '.join(run)} " in heard for run in runs):
        return True
    return any(one in said for one in statement.replace("`", " ").split() if _is_identifier(one.strip(".,;:!?()\"'")))


def _is_identifier(word: str) -> bool:
    """Return True for a word that is no plain word: a path, a name with an underscore, camel case, a number in it."""
    inside = word[1:]
    return len(word) > 3 and (any(mark in inside for mark in "._/-:=") or inside.lower() != inside or word.isupper())


def answer_from(given: Mapping[str, Any], asked: JudgeList) -> Answer:
    """Return an answer that a model wrote, as a mapping. Raises InvalidInput.

    `seen` (number → text), if it is given, says which statement a number meant when the model saw the list.
    """
    fields = Answer.__struct_fields__
    if unknown := sorted(given.keys() - {*fields, "seen", "list"}):  # a model may repeat the code of the list
        raise InvalidInput(
            f"The answer of a judge has no field {visible(unknown[0])!r}.", hint=f"Its fields are {', '.join(fields)}."
        )
    wanted = {name: value for name, value in given.items() if name in fields}
    try:
        answer = convert(wanted, Answer, strict=False)
    except ValidationError as error:
        raise InvalidInput(f"The answer of the judge is malformed: {error}.") from None
    seen = {int(number): str(said) for number, said in given.get("seen", {}).items()}
    return _as_numbered(answer, seen, {one.text: one.n for one in asked.statements}) if seen else answer


def _as_numbered(answer: Answer, seen: Mapping[int, str], now: Mapping[str, int]) -> Answer:
    """Return the answer with the numbers that its statements have by now; one that is gone is left out."""

    def numbers(given: Iterable[int]) -> tuple[int, ...]:
        return tuple(now[seen[n]] for n in given if seen.get(n) in now)

    return Answer(
        keep=numbers(answer.keep),
        drop=numbers(answer.drop),
        wrong=numbers(answer.wrong),
        rewrite={str(n): said for old, said in answer.rewrite.items() for n in numbers([int(old)])},
        add=tuple(replace(one, replaces=numbers(one.replaces)) for one in answer.add),
    )
