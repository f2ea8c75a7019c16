"""Decide which drafts are worth keeping: hard filters, points, and the echo guard.

Third step of the write path. Rule: what a person or an agent remembers on purpose is kept, and confirmed unless it is
a tool's or a stranger's text. What a rule, a tool or an import brings must show its worth, and starts as a candidate.
Every refusal has a code that is counted.

The echo guard compares overlapping runs of words (shingles) of a draft with those of the files that a project keeps for
its agents. A draft is an echo when most of it is in those files; a new thought about an old subject is not.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from kept import text
from kept.model import KEY_TAKEN, LOW_TRUST, Draft, Memory, Origin, Source, Status, replace
from kept.proposals import COMMAND
from kept.tables import Preset
from kept.text import compiled
from kept.writing.redact import is_only_redacted

PROMOTED_IN = "promoted_in"  # in the data of a finding: the session that promoted it
# Signals that speak for a finding when a session ends and it may be promoted into the project.
POINTS: Mapping[str, int] = {
    "user-intent": 5,
    "explicit-pin": 5,
    "multi-session": 2,
    "error-resolution": 2,
    "multi-agent": 1,
    "high-importance": 1,
}
HIGH_IMPORTANCE = 0.7

DELIBERATE: tuple[Origin, ...] = ("user", "agent")
# Imported by a person in bulk: stored as candidates, without filters for points, length or importance.
BROUGHT_IN: tuple[Origin, ...] = ("import", "migration")

MAX_CHARS = 500
MAX_SUMMARY_CHARS = 4_000
MAX_TRANSIENT_BYTES = 64 * 1024  # in the tiers session and task

REASONS: Mapping[str, str] = {
    "too_long": "It is longer than its tier allows.",
    "too_short": "It is too short to be understood alone.",
    "unimportant": "Its importance is below the minimum of the preset.",
    "chatter": "It is only about the current moment.",
    "echo": "A memory, or a file of the project, already says it.",
    "only_a_secret": "Nothing was left after redaction.",
    "erased": "It was erased before, and is stored again only on purpose.",
    "rejected": "It was forgotten or rejected before, and only a person brings it back.",
    KEY_TAKEN: "Its key is that of a memory with another text.",
    "auto_off": "The setting auto_memory is off, so only what is remembered on purpose is stored.",
    "paused": "Kept is paused here and stores only what is remembered on purpose.",
}

_PLEASANTRY = r"""(?ix) \s*
    (?: ok(?:ay)? | sure | thanks? | thank\ you | great | nice | perfect | yes | no | yep | nope | hmm+ | hi | hello
      | done | sounds\ good | got\ it | cool | right | alright | lgtm | please\ continue | go\ ahead | continue )
      [\s!.,]* $
"""
# An agent that tells what it is about to do. From a user the same words are a wish: "Let's use pnpm".
_PROCESS = r"""(?ix) \s* (?:
    (?: i['’]?(?:ll|m|ve) | let\ me | let['’]s | now\ (?:i|let) | next,?\ i | first,?\ (?:i|let)
      | i\ (?:will|am\ going\ to|can\ see) ) \b
      (?! .{0,80} \b (?: always | never | prefer | decided | because ) \b )
  | (?: running | checking | looking | reading | searching | fetching | installing | building | waiting ) \b
      .{0,120} (?: \.\.\. | … | now ) \s* $
  )"""
_INSTRUCTION = r"""(?ix)
    \b (?: ignore | disregard | forget | override ) \b .{0,40} \b (?: previous | prior | above | earlier | all ) \b
      .{0,40} \b (?: instructions? | prompts? | rules? | messages? | context ) \b
  | \b you \s (?: must | are \s now | have \s to | should \s now ) \b
  | \b (?: system \s prompt | developer \s message | new \s instructions? ) \b
  | \b (?: do \s not | don['’]?t ) \s (?: tell | inform | mention .{0,20} to ) \b
      .{0,30} \b (?: user | human | person | anyone ) \b
  | < /? (?: system | assistant | user | instructions? | tool_result ) \b
  | \b (?: curl | wget ) \b .{0,80} \| \s* (?: ba | z )? sh \b
"""
INSTRUCTION_TAG = "instruction-like"


class Verdict(Struct, frozen=True, kw_only=True):
    """Let in with this status, or refused for this reason, in these words."""

    status: Status | None = None
    refusal: str = ""
    message: str = ""


def admit(draft: Draft, preset: Preset, echoes: "Echoes", *, is_redacted: bool, is_paused: bool) -> Verdict:
    """Decide if a draft gets in, and as what. It has its source and its importance, and its secrets are out."""
    if sentence := too_long(draft):
        return Verdict(refusal="too_long", message=sentence)
    if is_redacted and is_only_redacted(draft.content):
        return _refused("only_a_secret")
    if status := _status_without_filters(draft):
        return Verdict(status=status)
    reason = "paused" if is_paused else _fault(draft, preset, echoes)
    return _refused(reason) if reason else Verdict(status="candidate")


def _status_without_filters(draft: Draft) -> Status | None:
    """Return the status of a draft that need not show its worth; None if it must."""
    origin = (draft.source or Source()).origin
    if origin in DELIBERATE and draft.trust not in LOW_TRUST:
        return "pinned" if draft.pin else "confirmed"
    # A task's notes on its own work are a record, worthy or not.
    return "candidate" if origin in (*DELIBERATE, *BROUGHT_IN) or draft.tier == "task" else None


def _fault(draft: Draft, preset: Preset, echoes: "Echoes") -> str:
    """Return the first reason to refuse an automatic draft, or nothing."""
    is_users = draft.trust == "user"  # a correction of twenty letters is worth more than a report of three hundred
    is_command = (draft.data or {}).get("sort") == COMMAND  # "Lint with `make l`." is all there is to say
    if not (is_users or is_command) and len(draft.content.strip()) < preset.min_length_chars:
        return "too_short"
    if (draft.importance or 0.0) < preset.min_importance:
        return "unimportant"
    if is_chatter(draft.content, is_users=is_users):
        return "chatter"
    return "echo" if echoes.repeats(draft.content) else ""


def _refused(reason: str) -> Verdict:
    return Verdict(refusal=reason, message=REASONS[reason])


def too_long(draft: Draft) -> str:
    """Why the text is too long for its tier, with advice; empty if it is not."""
    size, limit, unit = len(draft.content), MAX_CHARS, "characters"
    if draft.tier in ("session", "task"):
        size, limit, unit = len(draft.content.encode()), MAX_TRANSIENT_BYTES, "bytes"
    elif draft.kind == "summary":
        limit = MAX_SUMMARY_CHARS
    if size <= limit:
        return ""
    return (
        f"{size:,} {unit} are too long for a {draft.kind} of tier {draft.tier}; the limit is {limit:,}. "
        "Say one thing in a sentence or two, or split it."
    )


def points(signals: Collection[str], importance: float) -> int:
    """The points of a finding: the sum of its signals; a high importance is one of them."""
    counted = set(signals) | ({"high-importance"} if importance >= HIGH_IMPORTANCE else set())
    return sum(POINTS.get(signal, 0) for signal in counted)


def is_promotable(signals: Collection[str], importance: float, length_chars: int, preset: Preset) -> bool:
    """Whether a finding may become a candidate of the project without being asked for."""
    return (
        preset.min_points is not None
        and length_chars >= preset.min_length_chars
        and importance >= preset.min_importance
        and points(signals, importance) >= preset.min_points
    )


def signals_of(memory: Memory) -> tuple[str, ...]:
    """The signals that speak for a finding: those of extraction, and repetition by sessions and agents."""
    data = memory.data or {}
    signals = list(data.get("signals", ()))
    if len(set(data.get("sessions", ()))) >= 2:
        signals.append("multi-session")
    if len(set(data.get("agents", ()))) >= 2:
        signals.append("multi-agent")
    return tuple(signals)


def with_signal(data: dict[str, Any] | None, signal: str) -> dict[str, Any]:
    """The data of a finding with one signal more."""
    known = (data or {}).get("signals", ())
    return {**(data or {}), "signals": list(dict.fromkeys((*known, signal)))}


def is_worth_promoting(memory: Memory, preset: Preset) -> bool:
    """Whether a finding of a session may become a candidate of the project without being asked for.

    Text of a tool never promotes itself; the user's own words and commands may be short.
    """
    if memory.tier != "session" or memory.kind == "summary" or memory.is_low_trust:
        return False
    may_be_short = memory.trust == "user" or (memory.data or {}).get("sort") == COMMAND
    length = max(len(memory.content), preset.min_length_chars if may_be_short else 0)
    return is_promotable(signals_of(memory), memory.importance, length, preset)


def promoted(memory: Memory, at: datetime, *, session: str | None = None) -> Memory:
    """Return the finding as a memory of the project. `session` promoted it, at its end or by repeating it."""
    data = memory.data if session is None else {**(memory.data or {}), PROMOTED_IN: session}
    return replace(memory, tier="project", data=data, updated_at=at)


def is_chatter(text: str, *, is_users: bool = False) -> bool:
    """Whether the text is only about the moment: "ok, thanks", "let me look at the file", "running tests…"."""
    beginning = text[:400]
    if compiled(_PLEASANTRY).match(beginning):
        return True
    return not is_users and compiled(_PROCESS).match(beginning) is not None


def is_instruction_like(text: str) -> bool:
    """Whether a text from a tool or the web gives orders to its reader."""
    return compiled(_INSTRUCTION).search(text) is not None


SHINGLE_WORDS = 4
ECHO_SHARE = 0.6
SOURCES = (
    "CLAUDE.md",
    "AGENT.md",
    "AGENTS.md",
    "GEMINI.md",
    "README.md",
    "README.rst",
    "README.txt",
    "README",
    "MEMORY.md",
)


class Echoes(Struct, frozen=True):
    """Texts that were said before, as shingles."""

    shingles: frozenset[int] = frozenset()

    def repeats(self, content: str) -> bool:
        """Whether most of the text was said before."""
        own = shingles(content)
        if not own or not self.shingles:
            return False
        return len(own & self.shingles) >= ECHO_SHARE * len(own)


def echoes_of(texts: Iterable[str]) -> Echoes:
    """The echoes of these texts."""
    return Echoes(frozenset(shingle for said in texts for shingle in shingles(said)))


def shingles(content: str) -> frozenset[int]:
    """Hashes of all runs of four words; of a shorter text, one hash of the whole."""
    words = text.words(content)
    if len(words) < SHINGLE_WORDS:
        return frozenset({hash(tuple(words))} if words else ())
    return frozenset(hash(tuple(words[i : i + SHINGLE_WORDS])) for i in range(len(words) - SHINGLE_WORDS + 1))
