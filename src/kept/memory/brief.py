"""Briefings for agents: memories in one text that fits a budget.

Recall answers the prompt; `recall.briefing` collects the rest and makes the text; the receipt is noted afterwards.
Rule: memory never stops an agent. A failure ends in an empty briefing, and its `error` says why.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from kept import text, tokens
from kept.errors import InvalidInput, KeptError
from kept.freshness import UNKNOWN, Standing
from kept.memory import read, receipts
from kept.memory.context import Comparer, Context, Storages, settle
from kept.memory.read import well_formed
from kept.memory.signals import warn
from kept.memory.standing import CodeView
from kept.memory.told import Moment, Told, told_in
from kept.model import GLOBAL, Actor, Briefing, Entry, Hit, Memory, Recalled, replace
from kept.ports import Reader, Storage
from kept.recall import Request
from kept.recall.briefing import (
    FRAME,
    STYLES,
    Material,
    Order,
    Situation,
    collect,
    compose,
    distrust,
    question_of,
    render_entry,
    total_tokens,
)
from kept.recall.briefing import fitting_shared as fitting_shared
from kept.recall.briefing.material import line_mark, memory_mark, words_mark
from kept.recall.briefing.prompt import FITS, MATCHES
from kept.recall.briefing.render import render_task
from kept.recall.briefing.render import trust_mark as trust_mark
from kept.recall.briefing.situation import MOST_FITTING
from kept.recall.select import MOST_MISSES
from kept.settings import SEED_PROFILES, Settings
from kept.tables import BRIEFING_SHARES
from kept.writing.redact import redact

if TYPE_CHECKING:
    from kept.memory.past import Back

SUBAGENT_LINES = 3
StillTold = Callable[[Storage, Memory], Memory | None]  # a summary without lines that no longer hold
BackAt = Callable[[Context, Storages, datetime], "Back"]
NewSession = Callable[[Context, str], None]  # what to do before a session is briefed that is not known yet

PAUSED = "Kept is paused here, so nothing is injected automatically. `kept resume` ends the pause."
SWITCHED_OFF = (
    "The setting auto_briefing is off, so nothing is injected automatically. "
    "`kept config set auto_briefing true` switches it on."
)


class BriefingRequest(Struct, frozen=True, kw_only=True):
    """The arguments of `Kept.briefing`, not yet checked."""

    prompt: str = ""
    budget_tokens: int | None = None
    remaining_tokens: int | None = None
    style: str = "xml"
    files: Sequence[str] = ()
    session: str | None = None
    task: str | None = None
    shares: Mapping[str, int] | None = None
    head_tail: int = 0
    max_chars: int | None = None
    floor: str | None = None
    as_of: datetime | None = None
    delivery: "Delivery | None" = None
    agent: str | None = None  # who asks, if it is not the actor: a session may be another agent's
    is_turn: bool = False  # for a turn of the library's loop, which has no start and lists the open tasks


class Delivery(Struct, frozen=True, kw_only=True):
    """The session and the event of an agent at which it is given a briefing without asking."""

    session: str
    event: str
    moment: Moment = "prompt"
    is_compacted: bool = False  # the host has just compacted its context, or is about to
    is_resumed: bool = False  # the host brings back the context that the session had


def briefing(
    context: Context,
    request: BriefingRequest,
    *,
    on_new_session: NewSession | None = None,
    still_told: StillTold | None = None,
    back_at: BackAt | None = None,
) -> Briefing:
    """Return the briefing asked for. Failures are named in its `error`; only an invalid argument raises.

    `on_new_session` is called first if the session is not known here. `still_told` checks a summary before it is told.
    `back_at` takes the spaces back to the moment of `as_of`.
    """
    situation, order = _situation(context, request), _order(context, request)
    try:
        if request.as_of is not None and back_at is not None:
            return _brief_as_of(situation, order, back_at(context, context.readable(), request.as_of), still_told)
        return _brief(context, situation, order, request.delivery, still_told, on_new_session)
    except KeptError as error:
        return Briefing(style=request.style, error=str(error))
    except Exception as error:  # an agent works on without its memory
        warn("a briefing failed", with_trace=True)
        kind = type(error).__name__
        return Briefing(style=request.style, error=f"The briefing failed ({kind}). `kept doctor` looks for the cause.")


def write_briefing(context: Context, request: BriefingRequest, still_told: StillTold) -> Briefing:
    """Return the briefing asked for. Raises the error of a failure."""
    return _brief(context, _situation(context, request), _order(context, request), request.delivery, still_told)


def replay(context: Context, given: receipts.RecallReceipt) -> Briefing:
    """What the same agent would be told now for the same prompt. Changes nothing, and nothing is noted."""
    request = BriefingRequest(
        prompt=given.question.query,
        budget_tokens=sum(int(section.get("budget", 0)) for section in given.sections) or None,
        files=given.question.files,
        session=given.session,
    )
    situation = replace(_situation(context, request), agent=given.agent or context.actor.name)
    if given.moment is not None:
        is_few, most = is_brief(context.settings), _most_lines(context.settings, given.moment)
        situation = replace(situation, moment=given.moment, is_brief=is_few, most_fitting=most, is_started=True)
    told = gather(context, situation, context.readable(), context.now())
    briefing = compose(told.material, _order(context, request))
    return briefing if given.event is None else as_delivered(briefing, told)


def _order(context: Context, request: BriefingRequest) -> Order:
    """The budget and the form of the text."""
    settings = context.settings
    if request.style not in STYLES:
        raise InvalidInput(f"Unknown style {request.style!r}.", hint=f"Choose one of {', '.join(STYLES)}.")
    for name in ("budget_tokens", "remaining_tokens", "max_chars", "head_tail"):
        number = getattr(request, name)
        if number is not None and (type(number) is not int or number < 0):
            raise InvalidInput(f"{name} must be a whole number of 0 or more, got {number!r}.")
    return Order(
        total=total_tokens(
            request.budget_tokens,
            request.remaining_tokens,
            most_tokens=settings.briefing_max_tokens,
            most_percent=settings.briefing_max_percent,
        ),
        style=request.style,
        shares={**settings.briefing_shares, **_check_shares(request.shares or {})},
        max_chars=request.max_chars,
        is_best_first=request.delivery is not None and is_brief(settings),
    )


def _situation(context: Context, request: BriefingRequest) -> Situation:
    """The actor, the work at hand, and the place."""
    if not isinstance(request.prompt, str):
        raise InvalidInput(f"prompt must be a string, not {type(request.prompt).__name__}.")
    situation = Situation(
        agent=request.agent or context.actor.name,
        prompt=well_formed(request.prompt),
        files=tuple(map(well_formed, request.files)),
        session=None if request.session is None else well_formed(request.session),
        seen_by=context.seen_by(request.session),
        task=None if request.task is None else well_formed(request.task),
        head_tail=request.head_tail,
        floor=request.floor,
        is_turn=request.is_turn,
        is_judged=context.has_judge,
        look=CodeView(context) if request.as_of is None else lambda _: UNKNOWN,  # the files of then are not here
    )
    return situation if request.delivery is None else _unasked(situation, context, request.delivery)


def is_brief(settings: Settings) -> bool:
    """Return True if hooks give few lines."""
    return settings.profile not in SEED_PROFILES


def _unasked(situation: Situation, context: Context, delivery: Delivery) -> Situation:
    """Add the moment of a delivery: the number of lines, and the marks of everything that its context was told."""
    begins = delivery.moment == "subagent" or (delivery.moment == "start" and not delivery.is_resumed)
    told = Told() if begins else told_in(context, delivery.session)
    return replace(
        situation,
        is_compacted=delivery.is_compacted,
        moment=delivery.moment,
        is_brief=is_brief(context.settings),
        is_started=told.is_started,
        most_fitting=_most_lines(context.settings, delivery.moment),
        told=told.marks,
    )


def _most_lines(settings: Settings, moment: str) -> int:
    """Return how many memories that fit a text are told at a moment."""
    if moment == "subagent":
        return SUBAGENT_LINES
    return settings.prompt_lines if is_brief(settings) else MOST_FITTING


def _brief(
    context: Context,
    situation: Situation,
    order: Order,
    delivery: Delivery | None,
    still_told: StillTold | None,
    on_new_session: NewSession | None = None,
) -> Briefing:
    storages, now = context.readable(), context.now()
    if (refusal := _refusal(context, situation, order)) is not None:
        return refusal
    if on_new_session is not None and _is_new(situation.session, storages):
        on_new_session(context, situation.session or "")
    look = partial(gather, context, situation, storages, now, is_hook=delivery is not None, still_told=still_told)
    told = context.in_rounds(storages, look)
    settle(storages)
    briefing = compose(told.material, order)
    if delivery is not None:
        briefing = as_delivered(briefing, told)
    shown = _shown_in(briefing)
    settled = [memory for memory in shown if memory.status != "candidate"]  # a use would confirm a candidate
    used = read.used_by(context, told.question, settled, now, session=situation.session, since=told.since)
    receipt = None
    with suppress(KeptError):  # a full disk, say: the briefing is delivered all the same
        receipt = _noted(context, told, briefing, delivery, shown, used)
    if situation.prompt:
        context.signals.tell_search(situation.prompt, len(shown))
    context.tell_read(shown)
    read.after_recall(context, receipt)
    return replace(briefing, receipt=receipt)


def _brief_as_of(situation: Situation, order: Order, back: "Back", still_told: StillTold | None) -> Briefing:
    """Write the briefing from the memory of that moment. Nothing is noted."""
    context, then, at = back
    if (refusal := _refusal(context, situation, order)) is not None:
        return refusal
    told = gather(context, situation, then, at, still_told=still_told)
    briefing = compose(told.material, order)
    context.tell_read(_shown_in(briefing))
    return briefing


def _shown_in(briefing: Briefing) -> list[Memory]:
    return [entry.memory for section in briefing.sections for entry in section.entries]


def _refusal(context: Context, situation: Situation, order: Order) -> Briefing | None:
    """Return the empty briefing of a pause; None if agents are given something without asking."""
    if not context.is_injection_off(situation.session):
        return None
    why = PAUSED if context.is_paused(situation.session) else SWITCHED_OFF
    return Briefing(style=order.style, budget=order.total, error=why)


def _noted(
    context: Context,
    told: "Gathered",
    briefing: Briefing,
    delivery: Delivery | None,
    shown: Sequence[Memory],
    used: Sequence[Memory],
) -> str | None:
    """Save the receipt of a briefing and return its name."""
    body = _body(told, shown, briefing, with_misses=delivery is not None) | receipts.slow_mark(context)
    named = _named(told)
    if delivery is not None:
        body |= delivery_note(context, delivery, briefing.text, shown) | _marks_note(told, briefing)
        named += [miss.hit.memory for miss in told.recalled.misses]
    session = None if delivery is None else delivery.session
    return receipts.save_notes(context.readable(), context.now(), body=body, named=named, used=used, session=session)


def _is_new(session: str | None, storages: Storages) -> bool:
    """Return True for a session that no storage knows."""
    if session is None:
        return False
    for storage in storages:
        with storage.reading() as reader:
            if reader.session(session) is not None:
                return False
    return True


def fitting_items(context: Context, question: str, most: int) -> tuple[Entry, ...]:
    """The cited statements of files that fit the question best, if they may be shown unasked."""
    if not question.strip():
        return ()
    recalled = read.recall(context, Request(query=question, limit=most, scope="items"))
    return tuple(Entry(memory=hit.memory, reason=FITS) for hit in recalled if not distrust(hit.memory))


class Gathered(Struct, frozen=True, kw_only=True):
    """A situation, the answer to its prompt, and everything that could be told in it."""

    situation: Situation
    question: Request
    recalled: Recalled
    material: Material

    @property
    def since(self) -> datetime | None:
        return self.situation.since

    def body(self, shown: Sequence[Memory], *, with_misses: bool = False, **more: Any) -> dict[str, Any]:
        """The content of a receipt: as of a recall, with the hits that are shown."""
        uids = {memory.uid for memory in shown}
        hits = tuple(hit for hit in self.recalled.hits if hit.memory.uid in uids)
        misses = self.recalled.misses if with_misses else ()
        return receipts.body(self.question, replace(self.recalled, hits=hits, misses=misses)) | more


def gather(
    context: Context,
    situation: Situation,
    storages: Storages,
    now: datetime,
    *,
    is_hook: bool = False,
    still_told: StillTold | None = None,
) -> Gathered:
    """Ask recall for what fits the prompt, if there is one, and collect the rest."""
    question, recalled = question_of(situation), Recalled()
    embedder = (
        Comparer() if not situation.has_prompt else read.embedder_for(context, question, storages, is_hook=is_hook)
    )
    with read.looking(storages) as readers:
        if situation.has_prompt:
            recalled = read.answer_from(readers, context, question, now, embedder)
        if situation.session is not None:
            situation = _of_session(situation, situation.session, readers)
        material = collect(situation, recalled, readers, context.settings, now)
    if recalled.words and redact(situation.prompt).text != situation.prompt:  # its words are pieces of a secret
        told = [replace(e, reason=FITS) if e.reason.startswith(MATCHES) else e for e in material.retrieval]
        material = replace(material, retrieval=told)
    if material.summary and still_told is not None:
        material = replace(material, summary=_checked_summaries(material.summary, storages, still_told))
    recalled = replace(recalled, misses=recalled.misses[:MOST_MISSES])  # more than that were only looked through
    return Gathered(situation=situation, question=question, recalled=recalled, material=material)


def _checked_summaries(summaries: Sequence[Entry], storages: Storages, still_told: StillTold) -> list[Entry]:
    """Remove lines from summaries that were forgotten or replaced since."""
    by_space = {storage.space: storage for storage in storages}
    left = [(entry, still_told(by_space[entry.memory.space], entry.memory)) for entry in summaries]
    return [replace(entry, memory=memory) for entry, memory in left if memory is not None]


def _of_session(situation: Situation, name: str, readers: Sequence[Reader]) -> Situation:
    """Return the situation with what is known of its session: since when, for which agent, and if it was compacted."""
    session = next(filter(None, (reader.session(name) for reader in readers)), None)
    if session is None:
        return situation
    is_compacted = situation.is_compacted or session.flushed > session.shared  # a flush comes before a compaction
    # Who opened the memory without a name speaks for the session's agent.
    agent = session.agent if session.agent and situation.agent == Actor().name else situation.agent
    return replace(situation, since=session.started_at, is_compacted=is_compacted, agent=agent)


def as_delivered(briefing: Briefing, told: Gathered) -> Briefing:
    """The briefing in the mark of what is given without asking. A prompt that nothing fits is given nothing.

    Pinned memories and the last session were given when the session began; they alone are no reason to speak again.
    """
    if told.question.query.strip() and not _has_reason(briefing, told):
        return replace(briefing, text="", tokens=0, sections=())
    marked = text.delivered(briefing.text)
    total = tokens.estimate(marked)
    sections = [
        replace(one, tokens=one.tokens + total - briefing.tokens) if one.name == FRAME else one
        for one in briefing.sections
    ]
    return replace(briefing, text=marked, tokens=total, sections=tuple(sections))


def _has_reason(briefing: Briefing, told: Gathered) -> bool:
    """Return True if a briefing tells a memory that fits the prompt, or one that another agent has just found."""
    shown = {entry.ref for section in briefing.sections for entry in section.entries}
    fitting = [hit.ref for hit in told.recalled.hits] + [entry.ref for entry in told.material.bridge]
    return not shown.isdisjoint((*fitting, *told.material.at_hand))


def _marks_note(told: Gathered, briefing: Briefing) -> dict[str, Any]:
    """Marks of the texts in a briefing, so that they are not told twice."""
    tasks = [one.name for one in told.material.tasks if render_task(one, briefing.style) in briefing.text]
    entries = [(section.name, entry.memory) for section in briefing.sections for entry in section.entries]
    lines = [line for name, memory in entries if name == "summary" for line in memory.content.split("\n")]
    memories = [memory for name, memory in entries if name != "summary"]
    marks = [*map(memory_mark, memories), *map(words_mark, memories)]
    return {"marks": [*marks, *map(line_mark, (*tasks, *lines))]}


class ToldText(Struct, frozen=True, kw_only=True):
    """The content of a receipt for a text that a briefing did not write: the memories told, each with the reason."""

    kind: str
    section: str
    told: tuple[Entry, ...]
    query: str = ""
    more: Mapping[str, str] = {}


def note_delivery(context: Context, delivery: Delivery, block: str, notice: ToldText) -> bool:
    """Save the receipt of a text. Return False if that was not possible, because of a full disk, say."""
    told = [entry.memory for entry in notice.told]
    entries = [entry_line(one) for one in notice.told] if block else []
    body = receipts.body(Request(query=notice.query, limit=len(told)), Recalled()) | {
        "kind": notice.kind,
        "sections": [{"name": notice.section, "entries": entries}],
        **delivery_note(context, delivery, block, told),
        **notice.more,
    }
    with suppress(KeptError):
        saved = receipts.save_notes(context.readable(), context.now(), body=body, named=told, session=delivery.session)
        return saved is not None
    return False


def delivery_note(context: Context, delivery: Delivery, block: str, told: Sequence[Memory]) -> dict[str, Any]:
    """What the receipt of a delivery has besides that of a briefing: to whom, when, and the text byte for byte.

    A team shares the receipts of its project, so a text that tells of a member's global memory is not kept there.
    """
    if context.person is not None and any(memory.space == GLOBAL for memory in told):
        block = f"{len(block)} characters, not kept: global memory was among them."
    note = {
        "agent": context.actor.name,
        "session": delivery.session,
        "event": delivery.event,
        "moment": delivery.moment,
        "block": block,
    }
    return note | {"is_resumed": True} if delivery.is_resumed else note


def _named(told: Gathered) -> list[Memory]:
    """All memories that the receipt names."""
    material = told.material
    entries = (*material.always, *material.bridge, *material.retrieval, *material.summary)
    out = {one.ref for one in material.left_out}
    return [*(entry.memory for entry in entries), *(hit.memory for hit in told.recalled.hits if hit.ref in out)]


def _body(told: Gathered, shown: Sequence[Memory], briefing: Briefing, *, with_misses: bool) -> dict[str, Any]:
    """The content of the receipt: refs and numbers, never a text."""
    sections = [
        {
            "name": section.name,
            "budget": section.budget,
            "tokens": section.tokens,
            "entries": [entry_line(entry) for entry in section.entries],
        }
        for section in briefing.sections
    ]
    return told.body(
        shown,
        with_misses=with_misses,
        kind="briefing",
        style=briefing.style,
        budget=briefing.budget,
        tokens=briefing.tokens,
        sections=sections,
        left_out=msgspec.to_builtins(briefing.left_out),
    )


def memory_line(memory: Memory, standing: Standing = UNKNOWN) -> str:
    """Return a memory as a briefing in plain text shows it: no content can pass for another memory."""
    entry = Entry(memory=memory, reason="", note=standing.note, branch=standing.branch, until=standing.until)
    return render_entry(entry, "", "text")


def hit_line(hit: Hit) -> str:
    """Return a hit the same way, with the notes on its code and until when it held."""
    entry = Entry(memory=hit.memory, reason="", note=hit.note, branch=hit.branch, until=hit.until)
    return render_entry(entry, "", "text")


def entry_line(entry: Entry) -> dict[str, Any]:
    """An entry in a receipt."""
    return {"ref": entry.ref, "uid": entry.memory.uid, "reason": entry.reason}


def _check_shares(shares: Mapping[str, int]) -> Mapping[str, int]:
    for tier, share in shares.items():
        if tier not in BRIEFING_SHARES:
            raise InvalidInput(f"Unknown tier {tier!r} in shares.", hint=f"Choose from {', '.join(BRIEFING_SHARES)}.")
        if type(share) is not int or share < 0:
            raise InvalidInput(f"The share of {tier} must be 0 or more, got {share!r}.")
    return shares
