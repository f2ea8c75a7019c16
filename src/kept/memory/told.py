"""The memories that a session was told, and at which moments, by the receipts of its deliveries.

`deliver` and `actions` ask before they tell: a context is told a line once at its start and prompts, and a turn is not
reminded of a memory that its own prompt has just told. A start begins a context, unless the agent resumes a session and
brings back the old one; so does a compaction. A prompt begins a turn. Rule: cheap. It reads the newest receipts of one
session by their index, and nothing else.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from kept.memory.context import Context
from kept.memory.receipts import given_in

Moment = Literal["start", "prompt", "action", "failure", "subagent", "compaction"]
EARLY: tuple[Moment, ...] = ("start", "prompt")  # lines of these moments are not repeated in a context

_Moments = Mapping[str, frozenset[str]]


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


def _told(newest_first: Iterable[Mapping[str, Any]]) -> Told:
    session, context, turn = (defaultdict[str, set[str]](set) for _ in range(3))
    prompt = ""
    marks: set[str] = set()
    is_started = False
    present = [session, context, turn]  # the spans that go back to the receipt at hand
    for body in newest_first:
        moment = body.get("moment")
        if moment is None:
            continue
        for uid in _uids(body):
            for told in present:
                told[uid].add(moment)
        if len(present) > 1 and moment in EARLY:
            marks.update(body.get("marks", ()))
            is_started = is_started or moment == "start"
        if len(present) > 2 and moment == "prompt":
            prompt = str(body.get("question", {}).get("query", ""))
        if begins_context(body):
            present = present[:1]
        elif moment == "prompt":
            present = present[:2]
    return Told(
        session=_frozen(session),
        context=_frozen(context),
        turn=_frozen(turn),
        prompt=prompt,
        marks=frozenset(marks),
        is_started=is_started,
    )


def begins_context(body: Mapping[str, Any]) -> bool:
    """Return True for the receipt of a compaction, or of a start that is not a resume."""
    moment = body.get("moment")
    return moment == "compaction" or (moment == "start" and not body.get("is_resumed", False))


def _uids(body: Mapping[str, Any]) -> list[str]:
    return [entry["uid"] for section in body.get("sections", ()) for entry in section["entries"]]


def _frozen(told: Mapping[str, set[str]]) -> _Moments:
    return {uid: frozenset(moments) for uid, moments in told.items()}
