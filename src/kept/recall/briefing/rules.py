"""Which rules of a project concern the work that a prompt asks for.

Part of `collect`. Preferences, conventions, corrections and commands hold whatever the work is about, but not for every
sort of work: how to word a page is no help in fixing a test. Tables only name sorts of work, never a project's things.
Rule: a question gets only the rules that speak of what it asks, or of how to answer.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set

from kept import text, worth
from kept.model import Memory
from kept.recall.aliases import expansions
from kept.recall.stems import ANSWERS, CODE, COMMON, ON_SCREENS, RUNNING, SCREENS, TEXTS, WORTHLESS

MOST_RULES = 8
NEW_SHARE = 0.3  # of its words: a rule that says less than that beside those before it is left out
FEW = 3  # rules: of so few, none is told apart by a word

_ASKS = text.pattern(
    r"\s*(?:please\s+|can you\s+|could you\s+)*(?:what|how|why|where|who|which|when|is|are|was|were|do|does|did|should"
    r"|may|explain|describe|review|summari[sz]e|tell|show|list|compare|analy[sz]e)\b|.*\?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_WRITES = text.pattern(
    r"\s*(?:(?:please|now|next|then|let'?s|let us|can you|could you)\s+)*"
    r"(?:write|draft|document|translate|reword|rephrase|proofread|shorten)\b(?!.*\b(?:tests?|code|function|script)\b)",
    re.IGNORECASE | re.DOTALL,
)


def concerning(rules: Sequence[Memory], prompt: str, asked: Set[str]) -> list[Memory]:
    """The rules that concern what a prompt asks for, the nearest first. `asked` are its telling words."""
    concerns = _concerns(prompt, asked)
    held = {rule.uid: frozenset(text.words(rule.content)) for rule in rules}
    telling = _telling(asked, held)

    def rank(rule: Memory) -> tuple[int, bool, float, int]:
        known = rule.importance * worth.feedback_factor(rule.feedback)
        return -len(telling & held[rule.uid]), "correction" not in rule.tags, -known, -rule.id

    chosen: list[Memory] = []
    said: set[str] = set()
    for rule in sorted((rule for rule in rules if _holds_here(held[rule.uid], telling, concerns)), key=rank):
        own = held[rule.uid] - WORTHLESS
        if len(own - said) > NEW_SHARE * len(own) and len(chosen) < MOST_RULES:
            chosen.append(rule)
            said |= own
    return chosen


def _telling(asked: Set[str], held: Mapping[str, Set[str]]) -> Set[str]:
    """Return the words asked for and their aliases that tell one rule from another."""
    n_holding = Counter(word for words in held.values() for word in words)
    everywhere = {word for word, n in n_holding.items() if n > max(FEW, len(held) / 3)}
    near = asked | {other for others in expansions(sorted(asked), ()).values() for other in others}
    return near - COMMON - WORTHLESS - everywhere


def _holds_here(held: Set[str], telling: Set[str], concerns: Set[str]) -> bool:
    """Whether a rule with these words speaks of what the prompt does, or concerns such work and not how to run it."""
    return not held.isdisjoint(telling) or (not held.isdisjoint(concerns) and held.isdisjoint(RUNNING))


def _concerns(prompt: str, asked: Set[str]) -> frozenset[str]:
    """The words of rules that concern the work that a prompt asks for; for a question, how to answer."""
    if _WRITES.match(prompt):
        return ANSWERS | TEXTS
    if _ASKS.match(prompt):
        return ANSWERS
    return ANSWERS | CODE if asked.isdisjoint(ON_SCREENS) else ANSWERS | CODE | SCREENS
