"""What is worth keeping: hard filters, points, and who is trusted.

Third step of the write path. Rule: what a person or an agent remembers on purpose is kept and confirmed. What a rule,
a tool or an import brings has to show its worth, and starts as a candidate. Every refusal has a code that is counted.

Not hearing our own voice: text that merely repeats what is already written down is no new memory.

Overlapping runs of words (shingles) of the files a project keeps for its agents, compared with those of a draft.
Rule: a draft is an echo when most of it stands there; a new thought about an old subject is not.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from kept import text
from kept.model import Draft, Origin, Status
from kept.tables import Preset
from kept.writing.patterns import compiled

# What a finding has going for it, when a session ends and something may be promoted into the project.
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
# Brought in by a person's own hand, in bulk: a candidate, but not measured by points, length or importance.
BROUGHT_IN: tuple[Origin, ...] = ("import", "migration")

REASONS: Mapping[str, str] = {
    "too_long": "It is longer than a memory of its tier may be.",
    "too_short": "It is too short to say something by itself.",
    "unimportant": "Its importance is below what the preset asks for.",
    "chatter": "It is talk about the moment, not something to come back to.",
    "echo": "It repeats what Kept, or a file of the project, says already.",
    "only_a_secret": "Nothing but what had to be redacted was in it.",
    "erased": "It was erased before, and an import must not bring it back.",
    "paused": "Kept is paused here; only what is remembered on purpose is kept.",
}

_CHATTER = r"""(?ix) \s* (?:
    (?: ok(?:ay)? | sure | thanks? | thank\ you | great | nice | perfect | yes | no | yep | nope | hmm+ | hi | hello
      | done | sounds\ good | got\ it | cool | right | alright | lgtm | please\ continue | go\ ahead | continue )
      [\s!.,]* $
  | (?: i['’]?(?:ll|m|ve) | let\ me | let['’]s | now\ (?:i|let) | next,?\ i | first,?\ (?:i|let)
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


class Verdict(Struct, frozen=True):
    """Let in with this status, or refused for this reason."""

    status: Status | None = None
    refusal: str | None = None


def admit(draft: Draft, origin: Origin, preset: Preset) -> Verdict:
    """Whether a draft gets in, and as what. `draft` has its importance."""
    if origin in DELIBERATE:
        return Verdict(status="pinned" if draft.pin else "confirmed")
    if origin in BROUGHT_IN or draft.tier == "task":  # what a task notes of its own work is a record, worthy or not
        return Verdict(status="candidate")
    if len(draft.content.strip()) < preset.min_length_chars:
        return Verdict(refusal="too_short")
    if (draft.importance or 0.0) < preset.min_importance:
        return Verdict(refusal="unimportant")
    if is_chatter(draft.content):
        return Verdict(refusal="chatter")
    return Verdict(status="candidate")


def points(signals: Collection[str], importance: float) -> int:
    """What the signals of a finding add up to; a high importance is one of them."""
    counted = set(signals) | ({"high-importance"} if importance >= HIGH_IMPORTANCE else set())
    return sum(POINTS.get(signal, 0) for signal in counted)


def is_promotable(signals: Collection[str], importance: float, length_chars: int, preset: Preset) -> bool:
    """Whether a finding may become a candidate of the project by itself."""
    return (
        preset.min_points is not None
        and length_chars >= preset.min_length_chars
        and importance >= preset.min_importance
        and points(signals, importance) >= preset.min_points
    )


def is_chatter(text: str) -> bool:
    """Whether the text speaks of the moment only: "ok, thanks", "let me look at the file", "running tests…"."""
    return compiled(_CHATTER).match(text[:400]) is not None


def is_instruction_like(text: str) -> bool:
    """Whether a text from a tool or the web talks to the reader as if it could give orders."""
    return compiled(_INSTRUCTION).search(text) is not None


SHINGLE_WORDS = 4
ECHO_SHARE = 0.6
SOURCES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "README.md", "README.rst", "README.txt", "README", "MEMORY.md")


class Echoes(Struct, frozen=True):
    """What has been said before, as shingles."""

    shingles: frozenset[int] = frozenset()

    def repeats(self, content: str) -> bool:
        """Whether most of the text was said before."""
        own = shingles(content)
        if not own or not self.shingles:
            return False
        return len(own & self.shingles) >= ECHO_SHARE * len(own)


def echoes_of(texts: Iterable[str]) -> Echoes:
    """Everything that these texts say."""
    return Echoes(frozenset(shingle for said in texts for shingle in shingles(said)))


def shingles(content: str) -> frozenset[int]:
    """Hashes of the runs of four words; of a shorter text, of the whole."""
    words = text.words(content)
    if len(words) < SHINGLE_WORDS:
        return frozenset({hash(tuple(words))} if words else ())
    return frozenset(hash(tuple(words[i : i + SHINGLE_WORDS])) for i in range(len(words) - SHINGLE_WORDS + 1))
