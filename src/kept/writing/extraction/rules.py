"""The rules by which a sentence is a decision, a correction, a preference, a plan, a guess, … Data, and how to ask it.

Used by extraction. Each line of a rule is one way to say it: a regular expression over the sentence in lower case,
which begins at a word or at `^`. Rule: precision first. A sentence that only might be a decision is left alone, and an
assistant needs a clearer phrase than a user, because it thinks aloud.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

MIN_HEADED_WORDS = 6

Speaker = Literal["user", "assistant"]

# Shorthands for use in the lines.
_SHORTHANDS = {
    "<well>": r"((no|nope|yes|wrong|ok|okay|well|so|and|but|hey|actually|now|next|then|good|great|please)[,.:!—–-]* )*",
    "<no>": r"(no|nope|wrong|actually|not quite)[,.:!]( actually,?)?",
    "<do not>": r"(never|don'?t|do not)( ever)?",
    "<we will>": r"we('ll| will| won'?t| are going to)( not| only| never| always)?",
    "<i have>": r"(i('ve| have)? )?(also |just )?",
    # Not what one has seen or felt ("never been there"), and no cheering up ("don't give up").
    "<an act>": (
        r"(?!mind|worry|bother|forget|hesitate|know|think|feel|give up|be (afraid|scared|shy)|let (it|any|the)|quit)"
        r"(?!ever quit|miss\b|get\b|lose|limit yourself|happy|good|great|nice|ready|here|there|now|been|seen|saw|had)"
        r"(?!the\b|an?\b|my\b|it\b|at\b|up\b|heard|knew|done|was|were|got|\w+ed\b)\w"
    ),
    "<a thing>": r"(?!it\b|this\b|that\b|them\b)\w",
}


class SentenceRule(Struct, frozen=True):
    """The kind of a sentence that fits one of the lines; without a kind, the rule only helps to judge.

    `is_intent`: the user wants it to be kept or followed. `is_headed`: the lines are about the headings above it.
    """

    lines: str = ""
    kind: str = ""
    tag: str | None = None
    is_intent: bool = False
    is_headed: bool = False

    def fits(self, lowered: str) -> bool:
        return phrases(self.lines).search(lowered) is not None


# A rule is a line `name: kind marks`, and below it the ways to say it.
_TABLE = r"""
remember: fact intent
    ^<well>remember( that\b|:| this:)
    , remember (that|this)\b
    ^(please )?(note|bear in mind|keep in mind)( that\b|:)
    keep in mind that
    for the record
    for future reference
    ^fyi\b
decision: decision intent
    we('ve| have)? (just |already |finally |all )?(decided|agreed|settled on|chose|opted)\b
    (?<!now that )(i|they|team)('ve| have| has)? decided\b
    ^(the )?decision( is)?:
    ^go(ing)? with\b
    (we|i)('re| are|'m| am) going with\b
    we no longer\b
    we('re| are) (dropping|switching|moving|migrating|standardi[sz]ing)\b
    let'?s (go (with|for)|use|stick (with|to)|adopt|settle on) (?!it\b)
    let'?s not (?!worry|forget)\w
    let'?s keep (the|our|an?) \w
    let'?s keep (?!\w+ing\b)\S+ (for|in|on|as|at) \w
    let'?s drop (?!it\b|that\b)\w
    let'?s switch (to|from) (?!the next|another)
    <we will> (use|serve|support|drop|switch|move|host|ship|deploy|store|stay|migrate|adopt|stop|target|require)\b
    <we will> (publish|release|run|charge|no longer|keep (?!it\b|\w+ing\b))\b
warning: warning
    careful (with|when|not|about|if)\b
    watch out\b
    beware\b
    is dangerous\b
    (a|the|main|known|one) (gotcha|pitfall)\b
    must never\b
    breaks (if|when|everything)\b
    (will|would) (break|crash|corrupt|lose|leak)\b.{1,200}\b(if|when|unless)\b
    <do not> (touch|edit|modify|delete|rename|restart)\b.{1,200}\b(because|since|otherwise|or else|without)\b
    <do not> (touch|edit|modify|delete|rename|restart)\b.{1,200}\b(breaks|recreates|drops|loses|corrupts)\b
preference: preference intent
    i('d| would) rather\b
    i (really |strongly |generally |usually |also )?(prefer|hate|dislike)\b
    i (really )?(don'?t|do not) (like|want) (you to|it when|to see|any|your)\b
    i (really )?like (it when|to have|my)\b
    (from now on|going forward|in (the )?future),
    from now on\b
    (whenever|every time|each time) you (add|change|commit|create|deploy|edit|finish|make|push|run|start|touch|write)\b
    ^((and|but|also|please),? )*(always|never) (?!\w+ing\b)<an act>
    please (always|never|stop) \w
    you (should|must) (always|never)\b
    make sure (to|you) always\b
corrected_fact: fact correction intent
    ^that'?s (wrong|incorrect|not (right|true|correct))[:,;] \w
    (is|are|was) (wrong|incorrect|not (right|true|correct))[:;] \w
    ^<no> (the|our|each|every|all|only) (\w+ ){1,5}(is|are|should|must|has|have|needs?|goes)\b
    should be .{1,60}, not\b
correction: preference correction intent
    ^<well>(do not|don'?t|never|stop|avoid) <an act>
    ^<well>(not|no) (?!only|just|doubt|much)[^,]{2,60}, (use|just use|but use|do)\b
    ^<well>use [^,.]{2,80}(, not\b|,? instead of\b|,? rather than\b)
    ^<no> (please )?(use|do|put|keep|call|write|make|it (should|must|has to))\b
    ^<well>(as )?i (said|told you|meant|asked for)\b(?! (that )?i\b)
discovery: discovery
    (it|that) turns out\b
    ^turns out\b
    turned out (that|to be)\b
    root cause\b
    real bug\b
    i('ve| have)? (just )?(found|discovered|noticed|learned|reali[sz]ed)( out)? (that|why)\b
    discovered( (and|&) \w{1,20})?:
    (?<!if )the (real |actual |main )?(problem|issue|culprit|bug|cause) (is|was) (?!clear|simple|fixed|here|now|in\b)
    ^the (problem|issue|cause) is clear( now)? ?[—–:-]
    (fails?|failed|crash(es|ed)|breaks|broke|happens|happened|hangs) (only )?(because|whenever)\b
    (is|was|are|were) caused by\b
    (expects?|has|have|needs?) to be (run|called|built|started|executed|loaded|set|escaped)\b
    is (gitignored|auto-?generated|deprecated|hard-?coded|undocumented|misleading|read-only)\b
    (doesn't|does not|isn't|is not|aren't|are not) actually\b
reasoned_decision: decision
    ^(i'?m |i am |we'?re )?going with\b.{1,300}\b(because|since|so that|as it|to avoid|instead of|rather than|over)\b
    i('ve| have)? (decided|chose|chosen|opted|went with)\b.{1,300}\b(because|since|so that|instead of|rather than)\b
observed_warning: warning
    be careful\b
    beware\b
    watch out\b
    gotcha\b
    must (never|not)\b
    never (edit|touch|delete|commit|call|run|modify)\b
    breaks (if|when)\b
    will (silently )?(break|fail|corrupt|crash)\b.{1,200}\b(if|when|unless)\b
    only works (if|when|with)\b
progress: progress
    ^<i have>(implemented|added|fixed|created|completed|finished|built|refactored|migrated|removed|replaced) <a thing>
    ^<i have>(renamed|rewrote|introduced|enabled|merged|deployed|released|rebuilt|enriched|integrated) <a thing>
    ^<i have>(updated|moved|split) <a thing>
    (is|are) (now )?(done|complete|completed|finished|fixed|implemented|in place|deployed|released|merged|live)\b
    ^(?!now\b|it\b|this\b|that\b|everything\b).{4,100}\bnow ([a-z]+s|[a-z]+e|have|do|can)\b
headed_decision: decision headed
    ^((key|main|design|technical) )?decisions?( made)?$
headed_warning: warning headed
    ^(gotchas?|caveats?|pitfalls?|warnings?)$
headed_convention: convention headed
    ^(\w+ )?conventions?$
headed_discovery: discovery headed
    ^((key|main) )?(findings|discoveries|learnings|lessons( learned)?|root cause)$
condition:
    ^(once|when|if|to)\b
    (ensure|consider|make sure|should|would|until|once the|when the|if the)\b
tells:
    (is|are|was|were|has|have|does|do|will|can|cannot|must|should|not|never|only|\w+n't)\b
    (uses?|used|returns?|raises?|runs?|needs?|requires?|fails?|drops?|stores?|keeps?|holds?|lives?|calls?|reads?)\b
    (writes?|sends?|exists?|follows?|handles?|catches|publishes|supports?|expects?|accepts?|contains?|depends?)\b
plan:
    ^<well>(i'?ll|i will|let me|let us|i'?m (going to|now)|i am going to|i want to)\b
    ^<well>(i need|i should|we need to|we should|need to|should (i|we)|shall|can i|if you)\b
    ^<well>(i could|we could|you could|you can|i can|i think|i believe|i suspect|i'?d (?!rather|prefer))
    ^<well>(continuing|checking|looking|running|starting|here('s| is| are)|below|it (seems|looks)|looks|sounds)\b
    ^(now|next|first|then|finally|also),? (add|update|create|run|fix|check|close|commit|rebuild|let|for|we|sync)\b
    ^let'?s (?!go with|go for|use|stick|adopt|settle|not|keep|drop|switch)
guess:
    (maybe|perhaps|might|possibly|probably|not sure|i wonder|i guess|could be|seems? to|appears? to|what if)\b
quotation:
    (readme|claude\.md|agents\.md|gemini\.md|memory\.md|changelog)\b.{0,40}\b(says?|states?|reads?|mentions?|describes?)\b
    (docs?|documentation|spec|specification|guidelines?)\b.{0,40}\b(says?|states?|reads?|recommends?)\b
    according to\b
    as (stated|described|documented) in\b
fleeting:
    (yet|for now|right now|this time|today|tonight|at the moment|for the moment|until i|anything else|the rest)\b
cause:
    (because|since|missing|instead|without|falls back|wrong|before|only|no longer|so that|must|has to|have to)\b
    (needs?|requires?|expects?|lacks?|fails?|strips?|drops?|ignores?|returns?|means|lives in|problem|issue)\b
    \w+n't\b
    (not|never|cannot|no)\b
success:
    (pass|passes|passed|passing|succeeds?|succeeded|all clear|all clean|works now|clean compile)\b
"""


def _parsed(table: str) -> dict[str, SentenceRule]:
    rules: dict[str, SentenceRule] = {}
    name = ""
    for line in table.strip().split("\n"):
        if line.startswith(" "):
            rules[name] = replace(rules[name], lines=f"{rules[name].lines}{line}\n")
            continue
        name, _, words = line.partition(":")
        kind, *marks = words.split() or [""]
        tag = "correction" if "correction" in marks else None
        is_intent, is_headed = "intent" in marks, "headed" in marks
        rules[name] = SentenceRule(kind=kind, tag=tag, is_intent=is_intent, is_headed=is_headed)
    return rules


RULES = _parsed(_TABLE)


def _named(names: str) -> tuple[SentenceRule, ...]:
    return tuple(RULES[name] for name in names.split())


USER_RULES = _named("remember decision warning preference corrected_fact correction")
ASSISTANT_RULES = _named("discovery reasoned_decision observed_warning")
HEADED_RULES = _named("headed_decision headed_warning headed_convention headed_discovery")  # in a closing report
NOTHING_TO_KEEP = _named("guess quotation plan")
NO_CAUSE = _named("plan guess progress success")


def rule_for(
    sentence: str, speaker: Speaker, *, is_final: bool = False, headings: Sequence[str] = ()
) -> SentenceRule | None:
    """The rule that the sentence fits; None for questions, plans, guesses, quotations and everything else.

    `is_final`: it closes a turn, where an assistant says what was achieved and found, under telling headings.
    """
    lowered = _lowered(sentence)
    if lowered.endswith(("?", ":")) or _first(NOTHING_TO_KEEP, lowered):
        return None
    rule = _first(USER_RULES if speaker == "user" else ASSISTANT_RULES, lowered)
    if rule is None and is_final and speaker == "assistant":
        rule = _headed(lowered, headings)
        if rule is None and RULES["progress"].fits(lowered) and not RULES["condition"].fits(lowered):
            rule = RULES["progress"]
    if rule is not None and rule.kind in ("preference", "warning") and RULES["fleeting"].fits(lowered):
        return None
    return rule


def _first(rules: Sequence[SentenceRule], lowered: str) -> SentenceRule | None:
    return next((rule for rule in rules if rule.fits(lowered)), None)


def _headed(lowered: str, headings: Sequence[str]) -> SentenceRule | None:
    if len(lowered.split()) < MIN_HEADED_WORDS or not RULES["tells"].fits(lowered):
        return None
    return next((rule for rule in HEADED_RULES if any(rule.fits(heading.lower()) for heading in headings)), None)


def explains(sentence: str) -> bool:
    """Whether an assistant's sentence says why something fails, and not what it is about to do or has achieved."""
    lowered = _lowered(sentence)
    if lowered.endswith(("?", ":")) or _first(NO_CAUSE, lowered):
        return False
    return RULES["cause"].fits(lowered) or RULES["discovery"].fits(lowered)


def _lowered(sentence: str) -> str:
    return sentence.lower().replace("’", "'")


@cache
def phrases(lines: str) -> re.Pattern[str]:
    """Any of the lines, each of which is an expression over lower case that begins at a word, or at `^`."""
    for name, meaning in _SHORTHANDS.items():
        lines = lines.replace(name, meaning)
    ways = [line.strip() for line in lines.split("\n") if line.strip()]
    return re.compile("|".join(way if way.startswith("^") else rf"\b{way}" for way in ways))
