"""The memories that a session was told, and at which moments, by the receipts of its deliveries.

`deliver` and `actions` ask before they tell: a context is told a line once at its start and prompts, and a turn is not
reminded of a memory that its own prompt has just told. A start begins a context, unless the agent resumes a session and
brings back the old one; so does a compaction. A prompt begins a turn. Rule: cheap. It reads the newest receipts of one
session by their index, and nothing else.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from kept.memory.context import Context
from kept.memory.receipts import given_in

Moment = Literal["start", "prompt", "action", "failure", "subagent", "compaction", "judge"]
EARLY: tuple[Moment, ...] = ("start", "prompt")  # lines of these moments are not repeated in a context

_Moments = Mapping[str, frozenset[str]]
_Body = Mapping[str, Any]  # of a receipt


class Told(Struct, frozen=True, kw_only=True):
    """Memories by uid, each with the moments at which a session was told it.

    `session` is since the beginning, `context` since the last compaction or start, `turn` since the last prompt.
    `marks` are those of the texts that the present context was told at its start and prompts: `memory_mark` of each
    memory, and `line_mark` of each task and line of a summary.
    """

    session: _Moments = {}
    context: _Moments = {}
    turn: _Moments = {}
    prompt: str = ""
    marks: frozenset[str] = frozenset()
    is_started: bool = False  # the present context had a start

    def at(self, *moments: Moment, since: Literal["session", "context", "turn"] = "context") -> frozenset[str]:
        """Return the uids of the memories that were told at one of these moments; at any moment if none is named."""
        told: _Moments = getattr(self, since)
        return frozenset(uid for uid, own in told.items() if not moments or not own.isdisjoint(moments))

    @property
    def early(self) -> frozenset[str]:
        """Return the uids of the memories that the present context was told at its start or at a prompt."""
        return self.at(*EARLY)


def told_in(context: Context, session: str) -> Told:
    """Return which memories the session was told, by the receipts of its deliveries."""
    return _told(given_in(context, session))


def _told(newest_first: Iterable[_Body]) -> Told:
    session = [body for body in newest_first if body.get("moment") is not None]
    context = _back_to(begins_context, session)
    turn = _back_to(_is_prompt, context)
    early = [body for body in context if body["moment"] in EARLY]
    return Told(
        session=_moments(session),
        context=_moments(context),
        turn=_moments(turn),
        prompt=next((str(body.get("question", {}).get("query", "")) for body in turn if _is_prompt(body)), ""),
        marks=frozenset(mark for body in early for mark in body.get("marks", ())),
        is_started=any(body["moment"] == "start" for body in early),
    )


def _back_to(begins: Callable[[_Body], bool], newest_first: Sequence[_Body]) -> Sequence[_Body]:
    """Return the receipts since the last one that begins a span, with that one; all of them if none does."""
    first = next((place for place, body in enumerate(newest_first) if begins(body)), len(newest_first))
    return newest_first[: first + 1]


def begins_context(body: _Body) -> bool:
    """Return True for the receipt of a compaction, or of a start that is not a resume."""
    moment = body.get("moment")
    return moment == "compaction" or (moment == "start" and not body.get("is_resumed", False))


def _is_prompt(body: _Body) -> bool:
    return bool(body.get("moment") == "prompt")


def _uids(body: _Body) -> list[str]:
    return [entry["uid"] for section in body.get("sections", ()) for entry in section["entries"]]


def _moments(bodies: Iterable[_Body]) -> _Moments:
    """Return the memories that these receipts name, each with its moments."""
    told: defaultdict[str, set[str]] = defaultdict(set)
    for body in bodies:
        for uid in _uids(body):
            told[uid].add(body["moment"])
    return {uid: frozenset(moments) for uid, moments in told.items()}
