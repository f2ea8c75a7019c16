"""Tell the rules of a project from its facts, and find those that concern a piece of work.

Part of `collect`. `standing` finds the rules that hold for all work, for the start of a session: "ask me
before you change the schema" belongs to an activity, not to a topic, so no prompt has its words. Their kind, their form
and their author tell them from other statements. `concerning` finds those that concern the work of a prompt: how to
word a page is no help in fixing a test. Tables only name sorts of work, never a project's things. Rule: a question gets
only the rules that share its words, or say how to answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from kept import text, worth
from kept.model import Entry, Memory
from kept.ports import Reader, Where
from kept.recall.aliases import expansions
from kept.recall.briefing.situation import Situation, is_worth_telling, out_of_place
from kept.recall.stems import ANSWERS, CODE, COMMON, ON_SCREENS, RUNNING, SCREENS, TEXTS, WORTHLESS

MOST_RULES = 8
NEW_SHARE = 0.3  # of its words: a rule that says less than that beside those before it is left out
FEW = 3  # rules: of so few, none is told apart by a word

RULE_KINDS = ("preference", "convention")
RULE_TAGS = ("correction", "command")  # a correction has the kind of the statement that it corrects
MOST_STANDING = 12
NEWEST_RULES = 50
NEWEST = 100  # memories of any kind: some read like a rule
LEAST_POINTS = 4  # of a standing rule; see _points
LONG_CHARS = 240  # a longer statement explains something

_FOR_ALWAYS = text.pattern(
    r"\b(?:always|never|every|each|whenever|any ?time|from now on|going forward|in (?:the )?future|by default"
    r"|at all times|as you go|no exceptions?|(?:before|after|until|unless|when(?:ever)?|if) (?:you|i|we)\b"
    r"|before (?:any|\w+ing)\b|ask (?:me|first|before)|check with me|tell me|let me know|prefers?"
    r"|(?:i|user|we) (?:likes?|wants?|hates?))\b",
    re.IGNORECASE,
)
_ORDER = text.pattern(
    r"(?:^|[.;:,!?]\s+|\b(?:and|please|but|just)\s+)(?:do not|don['\u2019]?t|avoid|stop|keep|use|write|run|commit"
    r"|make sure|be sure|ensure|remember to|no)\b|\bmust(?: not)?\b|\bshould(?: not|n['\u2019]t)?\b|\binstead of\b",
    re.IGNORECASE,
)
_ACTIVITY = text.pattern(
    r"\b(?:commit|push|merg|rebas|squash|branch|pull|releas|deploy|migrat|schema|delet|tests?\b|testing|lint|format"
    r"|review|changelog|docs?\b|document|readme|plan|ask|answer|explain|repl(?:y|ies)|respon[ds]|summar|language"
    r"|comment|approv|confirm|refactor|install|dependenc|bump|tag|issues?\b|tickets?\b|prs?\b|ci\b|build|emoji"
    r"|bullet|tone|wording|style|english|german|short|concise|wrap|code)\w*",
    re.IGNORECASE,
)
# A report or an offer, which is no rule even where its kind says so.
_REPORT = text.pattern(
    r"^\W*(?:(?:i|we|it|they|you)(?:['\u2019]\w+| (?:have|had|was|were|wasn|am|is|are|think))\b"
    r"|(?:this|that) (?:is|was)\b|(?:added|fixed|implemented|updated|removed|reviewed|done)\b)"
    r"|\bi(?:['\u2019]ll| can| could| will)\b|\b(?:now|already|currently|was|were|has been|have been)\b",
    re.IGNORECASE,
)
_NAME = text.pattern(r"`[^`]+`|\b\w+(?:[_/.]\w+)+|\b[a-z]+[A-Z]\w*|https?:")

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


def for_all_work(readers: Sequence[Reader], situation: Situation) -> list[Entry]:
    """Return the rules that hold for all work, the surest first."""
    newest = [one for reader in readers for one in reader.select(Where(seen_by=situation.seen_by), limit=NEWEST)]
    pool = {memory.uid: memory for memory in (*_newest(readers, situation.seen_by), *newest)}
    here = [one for one in pool.values() if is_worth_telling(one) and not out_of_place(one, situation)]
    return [Entry(memory=memory, why="holds for all work here") for memory in standing(here)]


def for_work(readers: Sequence[Reader], situation: Situation, asked: Set[str]) -> list[Entry]:
    """Return the rules that concern the work of a prompt, the nearest first."""
    found = _newest(readers, situation.seen_by)
    rules = [memory for memory in found if not memory.is_low_trust and not out_of_place(memory, situation)]
    if not rules:
        return []
    return [Entry(memory=memory, why="holds for such work") for memory in concerning(rules, situation.prompt, asked)]


def _newest(readers: Sequence[Reader], seen_by: str | None) -> list[Memory]:
    """Return the newest preferences, conventions, corrections and commands, each once."""
    found: dict[str, Memory] = {}
    for where in (Where(kinds=RULE_KINDS, seen_by=seen_by), Where(tags=RULE_TAGS, seen_by=seen_by)):
        words = [word for name in (*where.kinds, *where.tags) for word in text.words(name)]  # indexed as words
        for reader in readers:
            hits = reader.search(words, where, limit=NEWEST_RULES, newest=True)
            found |= {hit.memory.uid: hit.memory for hit in hits}
    return list(found.values())


def standing(memories: Iterable[Memory]) -> list[Memory]:
    """Return the rules that hold for all work, the surest first; of those that say the same one.

    The order does not depend on the day or on how often they were used, so that a start gets the same bytes each time.
    """
    points = {memory.uid: (_points(memory), memory) for memory in memories if is_told_at_a_start(memory)}
    sure = [(number, memory) for number, memory in points.values() if number >= LEAST_POINTS]
    sure.sort(key=lambda one: (one[1].status == "candidate", -one[0], one[1].space, -one[1].id))
    return _each_says_more((memory for _, memory in sure), MOST_STANDING)


def is_told_at_a_start(memory: Memory) -> bool:
    """Return True unless a statement is of low trust, was demoted, or is a finding that was not promoted."""
    is_finding = memory.status == "candidate" and memory.tier in ("session", "task")
    return not memory.is_low_trust and memory.feedback >= 0 and not is_finding


def _points(memory: Memory) -> float:
    """Return how surely a statement is a standing rule: by its kind, its author, its form and its activity."""
    is_rule = memory.kind in RULE_KINDS or "correction" in memory.tags
    points = 2.0 * is_rule + (memory.trust == "user")
    if _FOR_ALWAYS.search(memory.content):
        points += 2
    elif _ORDER.search(memory.content):
        points += 1
    points += _ACTIVITY.search(memory.content) is not None
    points -= 0.75 * min(2, len(_NAME.findall(memory.content)))
    points -= (len(memory.content) > LONG_CHARS) + 2 * (_REPORT.search(memory.content) is not None)
    return points


def concerning(rules: Sequence[Memory], prompt: str, asked: Set[str]) -> list[Memory]:
    """The rules that concern what a prompt asks for, the nearest first. `asked` are its telling words."""
    concerns = _concerns(prompt, asked)
    held = {rule.uid: frozenset(text.words(rule.content)) for rule in rules}
    telling = _telling(asked, held)

    def rank(rule: Memory) -> tuple[int, bool, float, int]:
        known = rule.importance * worth.feedback_factor(rule.feedback)
        return -len(telling & held[rule.uid]), "correction" not in rule.tags, -known, -rule.id

    here = sorted((rule for rule in rules if _holds_here(held[rule.uid], telling, concerns)), key=rank)
    return _each_says_more(here, MOST_RULES)


def _each_says_more(rules: Iterable[Memory], most: int) -> list[Memory]:
    """Return the first rules, without those that say little beside the ones before them."""
    chosen: list[Memory] = []
    said: set[str] = set()
    for rule in rules:
        own = set(text.words(rule.content)) - WORTHLESS
        if len(own - said) > NEW_SHARE * len(own) and len(chosen) < most:
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
