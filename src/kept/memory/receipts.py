"""Receipts: what was asked, returned and missed, with the numbers, so that every answer can be explained later.

`save_notes` is the one place that saves receipts, links and uses, for `recall`, `brief` and `share`. Every recall saves
one, so it is short: what all hits have in common is said once, and what follows from the rest not at all; `_explained`
is its inverse. Rule: numbers and refs, never the text of a memory, and no secret of the query.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from math import prod
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, NotFound
from kept.memory.context import Context
from kept.model import GLOBAL, Hit, Memory, Recalled, replace
from kept.ports import Reader, Storage
from kept.recall import Request
from kept.recall.candidates import RING, Latencies
from kept.recall.query import ASKED_FOR
from kept.storage.shared import on_day
from kept.writing.redact import redact

MOST_LINKED = 10  # the best of one answer: a hundred that came together say nothing, and make 5,000 pairs
MOST_OF_SESSION = 200  # receipts: memories of older ones may be told again
SLOW = "is_slow"  # in a receipt: recall was degraded after it
LAST_RECEIPTS = 10  # that are searched for the last recall: a hook has no time for more


class RecallReceipt(Struct, frozen=True, kw_only=True):
    """The receipt of a recall: the question, when it was asked, and what was returned and missed, with the numbers.

    For a briefing also its sections, each with its memories and why they are there, and the memories left out; for a
    shared message also its recipient. For a text that an agent was given without asking (`event`: at which of its
    events, `moment`: start, prompt, action, failure, subagent or judge) also the agent, the session, and the text as it
    was given. At a tool call `call` names the file or the command, and `guard` says if a guard refused the call, or let
    it pass when it was made again. A list to judge is of the session `judged` and has that many `statements`.
    """

    receipt: str
    kind: Literal["recall", "briefing", "share", "known_error", "action", "compaction", "judge"] = "recall"
    at: datetime
    question: Request
    words: tuple[str, ...] = ()
    hits: tuple[dict[str, Any], ...] = ()
    misses: tuple[dict[str, Any], ...] = ()
    pinned: tuple[str, ...] = ()
    sections: tuple[dict[str, Any], ...] = ()
    left_out: tuple[dict[str, Any], ...] = ()
    to: str | None = None
    confidence: float | None = None
    agent: str | None = None
    session: str | None = None
    event: str | None = None
    moment: str | None = None
    block: str = ""
    call: str = ""
    guard: Literal["refused", "passed"] | None = None
    judged: str | None = None
    statements: int = 0
    degraded: str | None = None
    took_ms: float = 0.0


# Saving


def save_notes(
    storages: Sequence[Storage],
    now: datetime,
    *,
    body: dict[str, Any],
    named: Sequence[Memory],
    linked: Sequence[Memory] = (),
    used: Sequence[Memory] = (),
    session: str | None = None,
) -> str | None:
    """Save a receipt and return its name, link the best that came together, count uses. Skipped while others write.

    `named` are the memories that the receipt speaks of; it is erased with any of them. `session` was given a text.
    """
    receipt = None
    if session is not None:
        session = safe_session(session)
        body = body | {"session": session}
    for storage in storages:
        links, uses = _ids_in(storage, linked)[:MOST_LINKED], _ids_in(storage, used)
        if not links and not uses and not holds_receipts(storage):
            continue
        with storage.bookkeeping() as notes:
            if notes is None:
                continue
            notes.link(links, now)
            notes.count_uses(uses, now)
            if holds_receipts(storage):
                uids = list(dict.fromkeys(memory.uid for memory in named))
                receipt = f"r{notes.save_receipt(body, uids, now, session=session)}"
                notes.count(on_day(now, {"recalled": 1}))
    return receipt


def _ids_in(storage: Storage, memories: Sequence[Memory]) -> list[int]:
    return [memory.id for memory in memories if memory.space == storage.space]


def holds_receipts(storage: Storage) -> bool:
    """Whether receipts are kept there: never in global, or one project could read the questions of another."""
    return storage.space != GLOBAL


def body(request: Request, recalled: Recalled) -> dict[str, Any]:
    """The content of a receipt, without what is empty or usual."""
    asked = replace(
        request,
        query=redact(request.query).text,
        kinds=_safe_all(request.kinds),
        tags=_safe_all(request.tags),
        files=_safe_all(request.files),
        seen_by=None if request.seen_by is None else redact(request.seen_by).text,
    )
    # Of a query with a secret, the words are pieces of it.
    words = {word: place for place, word in enumerate(recalled.words)} if asked.query == request.query else {}
    factors = next((tuple(hit.why) for hit in _all_hits(recalled)), ())
    content = {
        "question": _unusual(asked),
        "words": [*words],
        "factors": factors,
        "hits": [_line(hit, words, factors) for hit in recalled.hits],
        "misses": [_line(miss.hit, words, factors, reason=miss.reason) for miss in recalled.misses],
        "pinned": [memory.ref for memory in recalled.pinned],
        "confidence": recalled.confidence,
        "degraded": recalled.degraded,
        "took_ms": round(recalled.took_ms, 3),
    }
    return {name: value for name, value in content.items() if value not in ((), [], None)}


def _unusual(asked: Request) -> dict[str, Any]:
    """Return the fields of a question that differ from their defaults."""
    usual = _usual_question()
    return {name: value for name, value in msgspec.to_builtins(asked).items() if value != usual[name]}


def _safe_all(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(redact(name).text for name in names)


def _all_hits(recalled: Recalled) -> list[Hit]:
    return [*recalled.hits, *(miss.hit for miss in recalled.misses)]


@cache
def _usual_question() -> dict[str, Any]:
    usual = msgspec.to_builtins(Request(query=""))
    return dict(usual, query=None)  # every receipt has one


def _line(hit: Hit, words: Mapping[str, int], factors: Sequence[str], **more: Any) -> list[Any]:
    """Ref, uid, factors, matched words, and the rest by name.

    Factors are numbers in the order of `factors`, if these are theirs; words are places in the query, if all were asked
    for. A score is named unless it is the product of the factors.
    """
    why = [*hit.why.values()] if (*hit.why,) == factors else hit.why
    if hit.score != prod(hit.why.values()):
        more["score"] = hit.score
    if hit.parts:
        more["parts"] = hit.parts
    line = [hit.ref, hit.memory.uid, why, _matched(hit, words)]
    return [*line, more] if more else line


def _matched(hit: Hit, words: Mapping[str, int]) -> Mapping[str, str] | Sequence[int]:
    if not words:
        return {}
    is_asked_for = all(how == ASKED_FOR for how in hit.matched.values())
    return [words[word] for word in hit.matched] if is_asked_for else hit.matched


def slow_mark(context: Context) -> dict[str, bool]:
    """Return a mark for the receipt of a recall after which recall is degraded: the next process starts so."""
    return {SLOW: True} if context.latencies is not None and context.latencies.is_degraded else {}


# Reading


def latencies_of(context: Context, readers: Sequence[Reader] = ()) -> Latencies:
    """Return how long the last recalls of this opened memory took. It begins as the last process ended."""
    if context.latencies is None:
        context.latencies = Latencies(is_degraded=bool(readers) and was_degraded(readers[0]))
    return context.latencies


def was_degraded(reader: Reader) -> bool:
    """Return True if recall was degraded after the last recall, by its receipt."""
    bodies = (body for _, _, body in reader.receipts_of(None, limit=LAST_RECEIPTS))
    return next((bool(body.get(SLOW)) for body in bodies if body.get("took_ms")), False)


def past_latencies(reader: Reader) -> list[float]:
    """Return the times of the last recalls by their receipts, in ms, the newest last."""
    bodies = [body for _, _, body in reader.receipts_of(None, limit=RING)]
    return [body["took_ms"] for body in reversed(bodies) if body.get("took_ms")]


def explain(receipt: str | int | None, storages: Sequence[Storage]) -> RecallReceipt:
    """The receipt of that name; the newest one for None. Raises NotFound."""
    number = None if receipt is None else _receipt_number(receipt)
    for storage in filter(holds_receipts, storages):
        with storage.reading() as reader:
            if found := reader.receipt(number):
                return _explained(*found)
    if receipt is None:
        hint = "`kept recall WORDS` makes one. A project without memories has none."
        raise NotFound("There is no receipt of a recall yet.", hint=hint)
    hint = "Only the newest receipts are kept. `kept why` shows the last recall."
    raise NotFound(f"There is no receipt r{number}.", hint=hint)


def explain_session(session: str | None, storages: Sequence[Storage], *, limit: int) -> list[RecallReceipt]:
    """Return the texts that a session was given without asking, newest first; None: also all that was asked."""
    found: list[RecallReceipt] = []
    name = None if session is None else safe_session(session)
    for storage in filter(holds_receipts, storages):
        with storage.reading() as reader:
            found += [_explained(*note) for note in reader.receipts_of(name, limit=limit)]
    return found


def given_in(context: Context, session: str, *, limit: int = MOST_OF_SESSION) -> list[dict[str, Any]]:
    """Return the contents of the receipts of texts that a session was given without asking, newest first."""
    bodies: list[dict[str, Any]] = []
    for storage in filter(holds_receipts, context.readable()):
        with storage.reading() as reader:
            bodies += [body for _, _, body in reader.receipts_of(safe_session(session), limit=limit)]
    return bodies


def given_at(context: Context, session: str) -> list[tuple[datetime, str]]:
    """Return when a session was given something without asking, and at which moment, newest first."""
    found: list[tuple[datetime, str]] = []
    for storage in filter(holds_receipts, context.readable()):
        with storage.reading() as reader:
            notes = reader.receipts_of(safe_session(session), limit=MOST_OF_SESSION)
            found += [(at, str(body["moment"])) for _, at, body in notes if body.get("moment")]
    return found


def safe_session(session: str) -> str:
    """Return the id under which a session's receipts are kept. It comes from a host, and no other check sees it."""
    return redact(session).text


def _receipt_number(receipt: str | int) -> int:
    text = str(receipt).strip().lower().removeprefix("r")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        hint = "It looks like r17; every recall returns one."
        raise InvalidInput(f"{str(receipt)[:40]!r} is not a receipt.", hint=hint)
    return int(text)


def _explained(number: int, at: datetime, body: dict[str, Any]) -> RecallReceipt:
    lines: dict[str, Any] = {
        name: [_as_named(line, body) for line in body.get(name, ())] for name in ("hits", "misses")
    }
    lines["sections"] = [_with_reasons(section) for section in body.get("sections", ())]
    lines["guard"] = next((name for name in ("refused", "passed") if name in body), None)
    if listed := body.get("list"):
        lines |= {"judged": listed["session"], "statements": len(listed["statements"])}
    return msgspec.convert(body | lines | {"receipt": f"r{number}", "at": at}, RecallReceipt)


def _with_reasons(section: dict[str, Any]) -> dict[str, Any]:
    """Return a section as `RecallReceipt` has it; before 0.3 an entry had `why` in place of `reason`."""
    entries = [
        {"reason" if name == "why" else name: value for name, value in entry.items()} for entry in section["entries"]
    ]
    return section | {"entries": entries}


def _as_named(line: list[Any] | dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The line as `RecallReceipt` has it; before 0.3 it was saved so."""
    if isinstance(line, dict):
        return line
    ref, uid, why, matched, *rest = line
    more = dict(*rest)
    if not isinstance(why, dict):
        why = dict(zip(body["factors"], why, strict=True))
    if not isinstance(matched, dict):
        matched = {body["words"][place]: ASKED_FOR for place in matched}
    score = more.pop("score", None)
    score = prod(why.values()) if score is None else score
    return {"ref": ref, "uid": uid, "score": score, "why": why, "matched": matched, **more}
