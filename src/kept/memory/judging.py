"""Judge the proposals of a session: one call says which of them later sessions are told.

Rules choose proposals (`kept.proposals`), a judge settles them: the agent that runs anyway, or a person. `next_list`
gives the oldest list that nobody has judged, as numbered statements: the findings of one session, then the stored
memories that they may replace, then its summary. `judge` carries out an answer as one group of the journal, so that one
undo takes it back. Rule: an answer can name numbers of its list alone, and the list is named by a code of its contents:
an answer to a list that has changed, or was judged before, changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2s
from typing import Any

from msgspec import ValidationError, convert

from kept import text, tokens
from kept.errors import InvalidInput
from kept.memory import change, counts, write
from kept.memory.context import Context, Memories
from kept.memory.findings import findings_of
from kept.memory.judge_lists import STORED, SUMMARY, line_of, mark_of
from kept.memory.judge_lists import Addition as Addition
from kept.memory.judge_lists import Answer as Answer
from kept.memory.judge_lists import JudgeList as JudgeList
from kept.memory.judge_lists import Judgement as Judgement
from kept.memory.receipts import holds_receipts
from kept.memory.session_summary import summary_of
from kept.model import Draft, Memory, Session, Source, replace
from kept.ports import Reader, Storage, Where
from kept.proposals import FADE_DAYS, PROPOSAL, Proposal, proposals_in
from kept.text import visible
from kept.writing import admit
from kept.writing.duplicates import Known
from kept.writing.last_word import NO, overrules

MOST_ASKED = 15  # findings of one session
MOST_RIVALS = 5
MOST_TOKENS = 600
MOST_ADDED = 8
SETTLED = "judged"  # in `data` of a finding or a summary: what the judge decided
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


def project_of(context: Context) -> Storage | None:
    """Return the storage of the project, if there is one. Raises NotAllowed if the actor may not read it."""
    context.readable()
    return context.spaces.project()


def list_of(context: Context, storage: Storage, name: str) -> JudgeList:
    """Return the list of one session."""
    with storage.reading() as reader:
        session = reader.session(name)
        return JudgeList() if session is None else _list_of(reader, session)


def _waiting(context: Context, reader: Reader) -> Iterable[Session]:
    """Return the sessions that ended lately with proposals that nobody has judged, the oldest first."""
    since = context.now() - timedelta(days=FADE_DAYS)
    where = Where(tags=(PROPOSAL,), since=since)
    waiting = {one.source.session for one in reader.select(where, limit=10_000) if _is_open(one)}
    ended = [one for one in reader.all(Session) if one.name in waiting and one.finished_at is not None]
    return [one for one in ended if _is_own(context, reader, one)]


def _is_own(context: Context, reader: Reader, session: Session) -> bool:
    """Return True for a session of this person; where no team shares the project, every session is."""
    if context.person is None:
        return True
    begun = reader.events(subject=session.subject, limit=1)
    return bool(begun) and (begun[0].actor == context.person or begun[0].actor.startswith(f"{context.person} ("))


def _is_open(memory: Memory) -> bool:
    """Return True if no judge has decided about a statement."""
    return SETTLED not in (memory.data or {})


def _list_of(reader: Reader, session: Session) -> JudgeList:
    found = [one for one in findings_of(reader, session.name) if _is_open(one) and not one.is_low_trust]
    summary = summary_of(reader, session.name)
    wanted = proposals_in(_best(found))
    rivals = _rivals(reader, found, {one.ref for one in wanted})
    if summary is not None and not _is_open(summary):
        summary = None
    listed = _numbered(wanted, rivals, summary)
    code = blake2s("\n".join([session.name, *(f"{one.ref} {one.text}" for one in listed)]).encode(), digest_size=3)
    return JudgeList(
        code=code.hexdigest() if listed else "",
        session=session.name,
        at=session.started_at,
        statements=tuple(listed) if wanted else (),
    )


def _best(found: Memories) -> Memories:
    """Return the findings to ask about: the weightiest, if there are too many."""
    return sorted(found, key=lambda one: (-one.importance, -one.id))[:MOST_ASKED]


def _rivals(reader: Reader, found: Memories, asked: set[str]) -> Memories:
    """Return stored memories that the findings may replace, each once."""
    of_list = [one for one in found if one.ref in asked]
    known = Known(reader, of_list)
    rivals: dict[str, Memory] = {}
    for one in of_list:
        for other in known.alike(one):
            is_other = other.source.session != one.source.session and other.uid not in rivals
            if is_other and not other.is_low_trust and overrules(one.content, other.content) != NO:
                rivals[other.uid] = other
    return list(rivals.values())[:MOST_RIVALS]


def _numbered(wanted: Sequence[Proposal], rivals: Memories, summary: Memory | None) -> list[Proposal]:
    """Number the statements; of those that do not fit MOST_TOKENS together, the longest findings are left out."""
    rows = [*wanted, *(_beside(one, STORED) for one in rivals)]
    if summary is not None:
        rows.append(_beside(summary, SUMMARY))
    costs = {one.ref: tokens.estimate(line_of(one)) for one in rows}
    findings = sorted(wanted, key=lambda one: costs[one.ref])
    while findings and sum(costs.values()) > MOST_TOKENS:
        del costs[findings.pop().ref]
    return [replace(one, n=n) for n, one in enumerate((row for row in rows if row.ref in costs), 1)]


def _beside(memory: Memory, who: str) -> Proposal:
    """Return a memory that stands in the list beside the findings."""
    return Proposal(
        n=0, text=memory.content, ref=memory.ref, sort=who, kind=memory.kind, who=who, said_at=memory.created_at
    )


# Answers


def judge(context: Context, code: str, answer: Answer) -> Judgement:
    """Settle the list of that code. Raises InvalidInput for a list that is gone and for a number it does not have."""
    storage = project_of(context)
    found = None if storage is None else _with_code(context, storage, code)
    if storage is None or found is None:
        raise InvalidInput(
            f"There is no list {visible(code)[:20]!r} to judge: it has been judged already, or has changed since.",
            hint="Call without a list to get the one that waits, if any.",
        )
    return settle(context, storage, found, answer)


def settle(context: Context, storage: Storage, asked: JudgeList, answer: Answer) -> Judgement:
    """Carry out the answer to a list, as one group."""
    by_number = {one.n: one for one in asked.statements}
    if unknown := sorted(answer.numbers() - by_number.keys()):
        raise InvalidInput(
            f"The list has no number {unknown[0]}.", hint=f"Its numbers are 1 to {len(asked.statements)}."
        )
    if len(answer.add) > MOST_ADDED:
        raise InvalidInput(f"At most {MOST_ADDED} statements can be added, got {len(answer.add)}.")
    with context.together():
        rewritten = [_rewrite(context, by_number[int(n)], said, asked.session) for n, said in answer.rewrite.items()]
        gone = [n for n in answer.drop if str(n) not in answer.rewrite]
        added = [_add(context, storage, asked, one, by_number) for one in answer.add]
        kept = [_keep(context, by_number[n]) for n in answer.keep if n not in gone and str(n) not in answer.rewrite]
        dropped = [change.forget(context, by_number[n].ref) for n in dict.fromkeys(gone)]
        left = _leave(context, storage, asked, answer)
    counts.count(context, Counter({"judged": 1, "judge_tokens": asked.tokens}))
    return Judgement(
        session=asked.session,
        kept=_refs(kept),
        rewritten=_refs(rewritten),
        dropped=_refs(dropped),
        added=_refs(added),
        left=left,
    )


def _refs(memories: Iterable[Memory]) -> tuple[str, ...]:
    return tuple(one.ref for one in memories)


def _with_code(context: Context, storage: Storage, code: str) -> JudgeList | None:
    with storage.reading() as reader:
        lists = (_list_of(reader, session) for session in _waiting(context, reader))
        found = next((one for one in lists if one.code == code), None) or _given(storage, reader, code)
        if found is None:  # a person may name a session that waits for nobody
            since = context.now() - timedelta(days=FADE_DAYS)
            recent = (one for one in reversed(reader.all(Session)) if one.started_at >= since)
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


def _settled(decision: str) -> Callable[[Memory, datetime], Memory]:
    """Return a change that confirms a finding: it is told from now on, as a memory of the project."""

    def confirmed(memory: Memory, at: datetime) -> Memory:
        tags = tuple(tag for tag in memory.tags if tag != PROPOSAL)
        data = (memory.data or {}) | {SETTLED: decision}
        kept = replace(memory, tags=tags, data=data, verified_at=at, updated_at=at)
        if kept.kind == "summary":
            return kept
        kept = admit.promoted(kept, at) if kept.tier == "session" else kept
        return replace(kept, status="confirmed") if kept.status == "candidate" else kept

    return confirmed


def _keep(context: Context, one: Proposal) -> Memory:
    storage, memory = context.find_live(one.ref)
    return context.change(storage, memory, "judge", _settled("kept"))


def _rewrite(context: Context, one: Proposal, said: str, session: str) -> Memory:
    if one.text != said:
        change.revise(context, one.ref, {"content": said}, session=session)
    storage, memory = context.find_live(one.ref)
    return context.change(storage, memory, "judge", _settled("rewritten"))


def _add(
    context: Context, storage: Storage, asked: JudgeList, one: Addition, by_number: Mapping[int, Proposal]
) -> Memory:
    """Store a statement of the judge; one that shares nothing with the session stays a candidate."""
    with storage.reading() as reader:
        said = "\n".join(message.content for message in reader.messages(asked.session))
    is_verified = shares_words(one.content, said)
    source = Source(origin="agent", agent=context.actor.name, session=asked.session)
    tags = () if is_verified else (UNVERIFIED,)
    draft = Draft(content=one.content, kind=one.kind, files=one.files, tags=tags, source=source)
    receipt = write.remember_many(context, [draft])[0]
    if receipt.memory is None:
        raise InvalidInput(f"Not kept ({receipt.reason}): {receipt.message}")
    memory = receipt.memory
    if not is_verified and memory.status == "confirmed":
        memory = context.change(storage, memory, "judge", lambda m, at: replace(m, status="candidate", updated_at=at))
    for number in one.replaces:
        write.end(context, by_number[number].ref, memory)
    return memory


def _leave(context: Context, storage: Storage, asked: JudgeList, answer: Answer) -> int:
    """Mark the findings that the answer does not name, so that nobody is asked about them again."""
    left = [one for one in asked.statements if one.n not in answer.numbers() and one.who != STORED]
    for one in left:
        _, memory = context.find(one.ref)
        if not memory.is_archived:
            context.change(storage, memory, "judge", _left)
    return len(left)


def _left(memory: Memory, at: datetime) -> Memory:
    return replace(memory, data=(memory.data or {}) | {SETTLED: "left"}, updated_at=at)


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
    wanted = {name: value for name, value in given.items() if name in Answer.__struct_fields__}
    try:
        answer = convert(wanted, Answer, strict=False)
    except ValidationError as error:
        raise InvalidInput(f"The answer of the judge is malformed: {error}.") from None
    seen = {int(number): str(said) for number, said in given.get("seen", {}).items()}
    return _renumbered(answer, seen, {one.text: one.n for one in asked.statements}) if seen else answer


def _renumbered(answer: Answer, seen: Mapping[int, str], now: Mapping[str, int]) -> Answer:
    """Return the answer with the numbers that its statements have by now; one that is gone is left out."""

    def numbers(given: Iterable[int]) -> tuple[int, ...]:
        return tuple(now[seen[n]] for n in given if seen.get(n) in now)

    return Answer(
        keep=numbers(answer.keep),
        drop=numbers(answer.drop),
        rewrite={str(n): said for old, said in answer.rewrite.items() for n in numbers([int(old)])},
        add=tuple(replace(one, replaces=numbers(one.replaces)) for one in answer.add),
    )
