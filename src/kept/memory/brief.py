"""Briefings: what an agent should know before it starts, in one text that fits a budget and a style.

Facade layer. Gathers what is pinned, what other agents of the session found, what fits the prompt and what earlier
sessions came to; `recall.compose` makes the text. Rule: memory never stops an agent. Whatever fails here ends in an
empty briefing whose `error` says why.
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
from kept.memory.read import Question
from kept.model import Briefing, Memory, Recalled, replace
from kept.ports import Reader
from kept.recall.briefing.compose import Composed, Found, Order, compose, total_tokens
from kept.recall.briefing.render import STYLES
from kept.recall.briefing.situation import MOST_RECALLED, SURE, Situation, what_to_tell
from kept.tables import BRIEFING_SHARES

log = logging.getLogger("kept")


class BriefingRequest(Struct, frozen=True, kw_only=True):
    """What the caller of `Kept.briefing` asked for, not yet checked."""

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
        prompt=_well_formed(request.prompt),
        files=tuple(map(_well_formed, request.files)),
        session=None if request.session is None else _well_formed(request.session),
        task=None if request.task is None else _well_formed(request.task),
        head_tail=request.head_tail,
    )


def _brief(context: Context, situation: Situation, order: Order) -> Briefing:
    storages, now = context.readable(), context.now()
    if context.is_off(situation.session):
        paused = "Kept is paused here, so nothing is injected automatically. `kept on` ends the pause."
        return Briefing(style=order.style, budget=order.total, error=paused)
    question = Question(query=situation.prompt, limit=MOST_RECALLED, sure=SURE, files=situation.files)
    recalled = read.answer(context, question, storages, now) if situation.prompt.strip() else Recalled()
    with ExitStack() as stack:
        readers = [stack.enter_context(storage.reading()) for storage in storages]
        found = what_to_tell(situation, recalled, readers, context.settings, now)
        since = _beginning(situation.session, readers)
    composed = compose(found, order)
    shown = [entry.memory for section in composed.sections for entry in section.entries]
    if situation.prompt:
        context.tell_search(situation.prompt, len(shown))
    context.tell_read(shown)
    used = [memory for memory in shown if _is_use(memory, now, situation.session, since)]
    receipt = None
    with suppress(KeptError):  # a full disk, say: what was found is told all the same
        body = _body(question, _only(recalled, shown), composed, order)
        receipt = _note(body, _spoken_of(found, recalled), used, storages, now)
    read.after_recall(context, receipt)
    return Briefing(
        text=composed.text,
        style=order.style,
        budget=order.total,
        tokens=composed.tokens,
        sections=composed.sections,
        left_out=composed.left_out,
        receipt=receipt,
    )


# What is noted of it


def _beginning(session: str | None, readers: Sequence[Reader]) -> datetime | None:
    """When the session began, if it is known here."""
    if session is None:
        return None
    return next((known.started_at for reader in readers if (known := reader.session(session))), None)


def _is_use(memory: Memory, now: datetime, session: str | None, since: datetime | None) -> bool:
    """Whether being told counts as a use. Not for a candidate, whom a use would confirm: nobody asked for it."""
    return memory.status != "candidate" and worth.is_use(memory, now, session=session, since=since)


def _only(recalled: Recalled, shown: Sequence[Memory]) -> Recalled:
    """What was recalled, of those that are shown; why the others are not is said elsewhere."""
    uids = {memory.uid for memory in shown}
    return replace(recalled, hits=tuple(hit for hit in recalled.hits if hit.memory.uid in uids), misses=())


def _spoken_of(found: Found, recalled: Recalled) -> list[str]:
    """The uids of all memories that the receipt names, with any of which it is erased."""
    entries = (*found.always, *found.bridge, *found.retrieval, *found.summary)
    out = {one.ref for one in found.left_out}
    uids = [*(entry.memory.uid for entry in entries), *(hit.memory.uid for hit in recalled.hits if hit.ref in out)]
    return list(dict.fromkeys(uids))


def _body(question: Question, recalled: Recalled, composed: Composed, order: Order) -> dict[str, Any]:
    """What the receipt holds: as of a recall, and which memories stand where. Refs and numbers, never a text."""
    sections = [
        {
            "name": section.name,
            "budget": section.budget,
            "tokens": section.tokens,
            "entries": [{"ref": entry.ref, "uid": entry.memory.uid, "why": entry.why} for entry in section.entries],
        }
        for section in composed.sections
    ]
    return read.body(question, recalled) | {
        "kind": "briefing",
        "style": order.style,
        "budget": order.total,
        "tokens": composed.tokens,
        "sections": sections,
        "left_out": to_builtins(composed.left_out),
    }


def _note(
    body: dict[str, Any], spoken_of: Sequence[str], used: Sequence[Memory], storages: Storages, now: datetime
) -> str | None:
    """Save the receipt and count the uses. Skipped while others write."""
    receipt = None
    for storage in storages:
        own = [memory.id for memory in used if memory.space == storage.space]
        if not own and not read.holds_receipts(storage):
            continue
        with storage.bookkeeping() as notes:
            if notes is None:
                continue
            notes.count_uses(own, now)
            if read.holds_receipts(storage):
                receipt = f"r{notes.save_receipt(body, spoken_of, now)}"
    return receipt


def _check_style(style: str) -> str:
    if style not in STYLES:
        raise InvalidInput(f"{style!r} is not a style.", hint=f"Choose one of {', '.join(STYLES)}.")
    return style


def _check_shares(shares: Mapping[str, int]) -> Mapping[str, int]:
    for tier, share in shares.items():
        if tier not in BRIEFING_SHARES or share < 0:
            raise InvalidInput(
                f"{tier!r}: {share!r} is not a share.", hint=f"Give {', '.join(BRIEFING_SHARES)} a number from 0 on."
            )
    return shares


def _well_formed(word: str) -> str:
    """The word as a storage can be asked for it: half of a surrogate pair, which nothing can hold, becomes `?`."""
    return word.encode("utf-8", "replace").decode()
