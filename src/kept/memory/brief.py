"""Briefings: what an agent should know before it starts, in one text that fits a budget and a style.

Asks recall for what fits the prompt; `recall.briefing` collects the rest and makes the text; the receipt is noted
afterwards. Rule: memory never stops an agent. Whatever fails here ends in an empty briefing whose `error` says why.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins

from kept import worth
from kept.errors import InvalidInput, KeptError
from kept.memory import read
from kept.memory.context import Context, Storages
from kept.memory.read import well_formed
from kept.model import Briefing, Entry, Memory, Recalled, replace
from kept.recall import Request
from kept.recall.briefing import STYLES, Material, Order, Situation, collect, compose, question_of, total_tokens
from kept.tables import BRIEFING_SHARES

log = logging.getLogger("kept")


class BriefingRequest(Struct, frozen=True, kw_only=True):
    """The arguments of `Kept.briefing`, not yet checked."""

    prompt: str
    budget_tokens: int | None
    remaining_tokens: int | None
    style: str
    files: Sequence[str]
    session: str | None
    task: str | None
    shares: Mapping[str, int] | None
    head_tail: int
    max_chars: int | None


def briefing(context: Context, request: BriefingRequest) -> Briefing:
    """The briefing asked for. Never raises: what fails is named in its `error`."""
    try:
        return _brief(context, _situation(context, request), _order(context, request))
    except KeptError as error:
        return Briefing(style=request.style, error=str(error))
    except Exception as error:  # an agent works on without its memory, whatever is wrong with that
        log.warning("a briefing failed", exc_info=True)
        kind = type(error).__name__
        return Briefing(style=request.style, error=f"The briefing failed ({kind}). `kept doctor` looks for the cause.")


def _order(context: Context, request: BriefingRequest) -> Order:
    """The budget and the form of the text."""
    settings = context.settings
    return Order(
        total=total_tokens(
            request.budget_tokens,
            request.remaining_tokens,
            most_tokens=settings.briefing_max_tokens,
            most_percent=settings.briefing_max_percent,
        ),
        style=_check_style(request.style),
        shares={**settings.briefing_shares, **_check_shares(request.shares or {})},
        max_chars=None if request.max_chars is None else max(0, request.max_chars),
    )


def _situation(context: Context, request: BriefingRequest) -> Situation:
    """Who is about to do what, and where."""
    return Situation(
        agent=context.actor.name,
        prompt=well_formed(request.prompt),
        files=tuple(map(well_formed, request.files)),
        session=None if request.session is None else well_formed(request.session),
        task=None if request.task is None else well_formed(request.task),
        head_tail=request.head_tail,
    )


def _brief(context: Context, situation: Situation, order: Order) -> Briefing:
    storages, now = context.readable(), context.now()
    if context.is_off(situation.session):
        paused = "Kept is paused here, so nothing is injected automatically. `kept on` ends the pause."
        return Briefing(style=order.style, budget=order.total, error=paused)
    told = gather(context, situation, storages, now)
    briefing = compose(told.material, order)
    shown = [entry.memory for section in briefing.sections for entry in section.entries]
    if situation.prompt:
        context.tell_search(situation.prompt, len(shown))
    context.tell_read(shown)
    # A use would confirm a candidate, and nobody asked for it.
    used = [
        memory
        for memory in shown
        if memory.status != "candidate" and worth.is_use(memory, now, session=situation.session, since=told.since)
    ]
    receipt = None
    with suppress(KeptError):  # a full disk, say: the briefing is delivered all the same
        receipt = read.save_notes(storages, now, body=_body(told, shown, briefing), named=_named(told), used=used)
    read.after_recall(context, receipt)
    return replace(briefing, receipt=receipt)


class Gathered(Struct, frozen=True, kw_only=True):
    """The answer to the prompt, everything that could be told, and when the session began, if it is known here."""

    question: Request
    recalled: Recalled
    material: Material
    since: datetime | None

    def body(self, shown: Sequence[Memory], **more: Any) -> dict[str, Any]:
        """The content of a receipt: as of a recall, with the hits that are shown."""
        uids = {memory.uid for memory in shown}
        hits = tuple(hit for hit in self.recalled.hits if hit.memory.uid in uids)
        return read.body(self.question, replace(self.recalled, hits=hits, misses=())) | more


def gather(context: Context, situation: Situation, storages: Storages, now: datetime) -> Gathered:
    """Ask recall for what fits the prompt, if there is one, and collect the rest."""
    question = question_of(situation)
    recalled = read.answer(context, question, storages, now) if situation.prompt.strip() else Recalled()
    since = None
    with ExitStack() as stack:
        readers = [stack.enter_context(storage.reading()) for storage in storages]
        material = collect(situation, recalled, readers, context.settings, now)
        if situation.session is not None:
            sessions = (reader.session(situation.session) for reader in readers)
            since = next((session.started_at for session in sessions if session), None)
    return Gathered(question=question, recalled=recalled, material=material, since=since)


def _named(told: Gathered) -> list[Memory]:
    """All memories that the receipt names."""
    material = told.material
    entries = (*material.always, *material.bridge, *material.retrieval, *material.summary)
    out = {one.ref for one in material.left_out}
    return [*(entry.memory for entry in entries), *(hit.memory for hit in told.recalled.hits if hit.ref in out)]


def _body(told: Gathered, shown: Sequence[Memory], briefing: Briefing) -> dict[str, Any]:
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
        kind="briefing",
        style=briefing.style,
        budget=briefing.budget,
        tokens=briefing.tokens,
        sections=sections,
        left_out=to_builtins(briefing.left_out),
    )


def entry_line(entry: Entry) -> dict[str, Any]:
    """An entry in a receipt."""
    return {"ref": entry.ref, "uid": entry.memory.uid, "why": entry.why}


def _check_style(style: str) -> str:
    if style not in STYLES:
        raise InvalidInput(f"Unknown style {style!r}.", hint=f"Choose one of {', '.join(STYLES)}.")
    return style


def _check_shares(shares: Mapping[str, int]) -> Mapping[str, int]:
    for tier, share in shares.items():
        if tier not in BRIEFING_SHARES:
            raise InvalidInput(f"Unknown tier {tier!r} in shares.", hint=f"Choose from {', '.join(BRIEFING_SHARES)}.")
        if share < 0:
            raise InvalidInput(f"The share of {tier} must be 0 or more, got {share!r}.")
    return shares
