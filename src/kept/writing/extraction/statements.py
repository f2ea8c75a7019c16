"""Turn sentences into statements: texts that can be understood alone, in another session and on another day.

Used by extraction. Rule: the words stay the speaker's. Openings ("No, actually,") are removed, the first person becomes
"the user" where that is easy, "today" becomes a date, and "it" is explained by joining the sentence before. A sentence
whose "it" remains unknown is dropped.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kept import text
from kept.text import compiled
from kept.writing.extraction.rules import lowered, phrases, rule_for

MIN_MEANINGFUL_WORDS = 2
MIN_CONTINUATION_CHARS = 25

_OPENINGS = r"""
    ^(ok|okay|hm+|so|well|also|and|but|btw|by the way|actually|please|hey|uh+|note that|please note that)\b[\s,.:;!—–-]+
    ^(no|nope|yes|yeah|yep|right|sure|great|perfect|good|nice|cool|fine|thanks|thank you|wait|sorry)[,.:;!—–-]+\s+
    ^(yes|yeah|yep|sure|no) (please|and|but)[,.:;!]*\s+(?!\w+$)
    ^(nein|ja|non|oui|sí|doch|en fait|en realidad|bitte)[,.:;!]+\s+
    ^(agreed|alright|all right|important|note|one (last |more )?thing( first)?)[,.:;!—–-]+\s+
    ^that'?s (wrong|incorrect|not (right|true|correct))[,.:;!—–-]+\s+
    ^wrong[,.:;!]\s+
    ^((as|like) )?i('ve| have)? (already )?(said|told you)( (already|before|again|\w+ times))*( that| to)?[,:]*\s+
    ^(remember|keep in mind|bear in mind)( that|:)\s+
    ^(for the record|for future reference|fyi)[,:]?\s+
    ^(it )?turns out( that)?,?\s+
    ^speaking of which,?\s+
    ^you're (absolutely |totally |quite )?(right|correct)\b[^.!?:—–]{0,40}[,.:;!—–-]+\s+
    ^(proposed|suggested|recommended) (change|fix|solution|approach)s?( \([^)]{1,60}\))?:\s+
    ^the (problem|issue|cause) is clear( now)? ?[.—–:-]\s+
    ^i see the (problem|issue|cause)( now)? ?[.—–:-]\s+
    ^i('ve| have)? (just )?(found|discovered|noticed|learned|reali[sz]ed)( out)? that\s+
    ^(go ahead|then|now|first|lastly|finally|next)[,:]?\s+(?=(make|use|ensure|add|let|change|rename|move|be|keep|i)\b)
    """
_PRAISE = (
    r"(?i)(?:good|great|nice|excellent|fair|perfect|thanks|thank you|sorry|right|yes|exactly|done|fixed|all set"
    r"|short answer|you['’]re (?:absolutely |totally |quite )?(?:right|correct)|ah)\b"
    r"[^.!?:—–]{0,40}(?: [—–-]|[!:,—–]) (?=\S+ \S+ \S+)"
)
_ASKED = r"(?i)(?<=\w{3}),? (?:so |and )?(?:can|could|would|will) you\b[^?]*\?$"
_CHOICE = (
    r"(?i)(?:(?:yes|yeah|yep|fine|good|right|alright|all right)[,.!]* )?"
    r"(?:then[,:]? (?P<late>.+)|(?P<early>(?:[^\s,;:]+ ){0,4}[^\s,;:]+?)(?:(?: it is)?,? then| it is)(?=$|[,;:.!]))"
)
_EMPHASIS = (
    r"(?i)(?:and |so |please |pls )*(?:(?:always |do )?(?:remember|note|memori[sz]e|mind)(?: that| this| it)?"
    r"|(?:keep|bear) (?:that|this|it) in mind|(?:don['’]?t|do not|never) (?:ever )?forget(?: that| this| it)?"
    r"|write (?:that|this|it) down|make a note(?: of (?:that|this|it))?)"
    r"(?:,? (?:please|pls|ok(?:ay)?|for later|from now on))?[.!]*"
)
_DONE = r"""
    ^i('ve| have)? (also |just )?(?=([a-z]+ed|built|rewrote|split)\b)
    """
_WISHES = {
    r"^i('d| would) rather\b": "The user would rather",
    r"^i (really |strongly |also |usually |generally )?prefer\b": "The user prefers",
    r"^i (really )?like\b": "The user likes",
    r"^i (really )?hate\b": "The user hates",
    r"^i (really )?dislike\b": "The user dislikes",
    r"^i (really )?(don'?t|do not) like\b": "The user doesn't like",
    r"^i (really )?(don'?t|do not) want\b": "The user doesn't want",
    r"^i (also |really )?want\b": "The user wants",
    r"^i('d| would) (also |really )?like\b": "The user would like",
    r"^i('m| am) (?=on|using|running|working)\b": "The user is ",
}
_POINTS_BACK = r"""
    ^(it|they|he|she|them|both|neither|same)\b(?! turns out)
    ^(this|that|these|those)('s\b|[,.:;!])
    ^(these|those) \w+ (need|should|must|have|are|will)\b
    ^if (so|not)\b
    ^because\b(?![^,]{2,120}, )
    ^(this|that|these|those) (is|was|are|were|has|had|does|did|should|must|will|would|can|could|also|only|still)\b
    ^(this|that|these|those) (needs?|means?|causes?|breaks?|works?|fails?|happens?|makes?|lets?|way|closes)\b
    ^(das|dies|diese|c'est|cela|ça|eso|esto) (ist|sind|war|est|sont|es|son)\b
    """
# Of list items: a verb at the start, a name for another name, or a list that is "already present".
_WITHOUT_SUBJECT = r"""
    ^(opens|closes|falls|reads|writes|loads|saves|stores|keeps|shows|hides|prints) \S
    ^(returns|accepts|takes|handles|supports|uses|sets|runs|calls|sends|produces|creates) \S
    ^(generates|adds|removes|includes|contains|requires|needs|expects|defaults|maps|merges|renders) \S
    ^(starts|stops|checks|validates|warns|ignores|skips|allows|ensures|prevents|avoids|converts) \S
    ^(translates|resolves|emits|parses|respects|preserves|updates|replaces) \S
    ^[`\w./-]+( [`\w./-]+){0,2} ?(→|->|=>) ?\S
    ^[^.:]{2,120} (already|now|also|still) (present|there|included|supported|covered|handled|in place)\.?$
    """
_NAMES_SUBJECT = r"^(tests|uses|runs|calls|reads|writes|needs|checks) (are|is|were|was|of|in|on)\b"
_REQUESTS = r"""
    ^(please|can|could|would|let|now|ok|okay|next|then|also|and|i|thanks|run|fix|add|check|make|look|start|show|go|do|try)\b
    ^(write|create|update|change|use|put|open|read|find|see|give|tell|explain|continue|commit|push|delete|move|test)\b
    """
_POINTERS = frozenset("it that this them those these so one das es dies cela ça eso esto".split())
# An alternative to the subject of the sentence before; and an order for it.
_INSTEAD = r"^(?!.*\?$)(?:please |just |so |then )*[a-z]+ .{2,80} instead[.!]*$"
_ORDER_FOR_IT = r"(?:please |and )*[a-z]+ (?:it|them)\b(?!.*\?$)"
_COUNTED = r"\bone (?!(?:is|are|was|in|on|at|for|with|that|to|of|instead|please|and|or|then|too)\b)(?=[a-z])"
_CONTRAST = r"(?i)^(?:it|they)['’]?(?:s|re)\b .{1,60}, not \w"
_WORDS = r"[^\W_][\w'./@-]*"
_EMPTY = _POINTERS | frozenset(
    "a an the i you we he she they me us my your our his her is are was were be been do does did don't dont doesn't "
    "not no never always to of in on at for with from by as and or but if then than please just also let's lets use "
    "keep make get go going will would can could should must have has had said stop again now there here too".split()
)


def statement(sentence: str, before: str = "", question: str = "", *, by_user: bool = False) -> str:
    """Turn the sentence into a statement that can be understood alone; empty if that is impossible.

    `before` is the sentence before it in the same passage. `question` is the one that the speaker may be answering:
    "let's not do that" is kept only together with it.
    """
    words = own_words(sentence, by_user=by_user)
    meaning = _meaning(words.lower())
    has_name = _has_name(words, meaning)
    if _can_stand_alone(words, meaning, has_name=has_name):
        says_enough = has_name or by_user or len(meaning) >= MIN_MEANINGFUL_WORDS
        return finished(words) if meaning and says_enough else ""
    context = question if before.endswith("?") else before or question
    if not context or points_back(own_words(context)):
        return ""  # "That would help. It also needs a test.": its subject is unknown
    return f"{finished(own_words(context, by_user=by_user))} {finished(words)}"


def _can_stand_alone(words: str, meaning: Sequence[str], *, has_name: bool) -> bool:
    """Match a sentence without pointers to the sentence before, or with enough else: "it's Postgres, not MySQL"."""
    if compiled(_CONTRAST).match(words):
        return True
    is_long = has_name or len(meaning) > MIN_MEANINGFUL_WORDS + 1
    return (is_long or not _has_pointer(words)) and not points_back(words)


def _has_name(words: str, meaning: Sequence[str]) -> bool:
    """Match words with a name from code: marked as code, or with a sign of paths and identifiers."""
    return "`" in words or any(mark in word for word in meaning for mark in "./_")


def _has_pointer(words: str) -> bool:
    uncounted = compiled(_COUNTED).sub("", words.lower())
    return not _POINTERS.isdisjoint(compiled(_WORDS).findall(uncounted))


def chosen(sentence: str, question: str) -> str:
    """Return the choice of "ok, cron then, it is simpler", with the question that it answers; empty if it is none."""
    said = own_words(sentence)
    choice = compiled(_CHOICE).match(said)
    if choice is None:
        return ""
    option = choice["late"] or choice["early"]
    decided = finished(f"Decided: {option}{said[choice.end() :]}")
    return f"{question} {decided}" if things(question) & things(option) else decided


def is_only_emphasis(sentence: str) -> bool:
    """Match a sentence that only stresses the sentence before it: "Remember that."."""
    return compiled(_EMPHASIS).fullmatch(sentence) is not None


def points_back(sentence: str) -> bool:
    """Match a sentence that begins with a word for something named before: "it", "this means"."""
    return phrases(_POINTS_BACK).match(lowered(sentence)) is not None


def lacks_subject(item: str) -> bool:
    """Match a list item whose subject is in the line above: "Opens the log", "width → size", "already there"."""
    said = lowered(item)
    return phrases(_WITHOUT_SUBJECT).search(said) is not None and not phrases(_NAMES_SUBJECT).match(said)


def continues(sentence: str, following: str) -> bool:
    """Match a next sentence that continues: with "it", about the same thing, or with an alternative."""
    said = lowered(following)
    if "instead" in said and compiled(_INSTEAD).match(said):
        return True
    if compiled(_ORDER_FOR_IT).match(said) and chosen(sentence, ""):
        return True
    if said.endswith("?") or len(said) < MIN_CONTINUATION_CHARS:
        return False
    if points_back(said):
        return True
    if phrases(_REQUESTS).match(said) or rule_for(following) is not None:
        return False
    return not things(sentence).isdisjoint(things(following))


def things(sentence: str) -> set[str]:
    """Return the stems of the words that name something."""
    return {stem for word in _meaning(sentence.lower()) if len(word) > 3 for stem in text.words(word)[:1]}


def _meaning(lowered_words: str) -> list[str]:
    return [word for word in compiled(_WORDS).findall(lowered_words) if word not in _EMPTY]


def own_words(sentence: str, *, by_user: bool = False) -> str:
    """Remove the opening words of the sentence, and the first person where that is easy."""
    words = sentence.replace("’", "'")
    if by_user and is_only_emphasis((parts := words.rpartition(", "))[2]):
        words = parts[0] or words
    while opening := phrases(_OPENINGS).match(words.lower()):
        words = words[opening.end() :]
    if not by_user:
        done = phrases(_DONE).match(words.lower())
        return words[done.end() :] if done else words
    for wish, told in _WISHES.items():
        if match := phrases(wish).match(words.lower()):
            return told + words[match.end() :]
    return words


def without_request(sentence: str) -> str:
    """Remove the request from a statement: "we deploy on Thursdays now, can you change the template?"."""
    asked = compiled(_ASKED).search(sentence)
    return sentence[: asked.start()] if asked else sentence


def without_praise(sentence: str) -> str:
    """Remove "Good catch —" and the like, if something follows."""
    praise = compiled(_PRAISE).match(sentence)
    return sentence[praise.end() :] if praise else sentence


def finished(sentence: str) -> str:
    """Add a full stop and, unless the sentence begins with a command or a name from code, a capital."""
    first, *following = sentence.split(" ", 3)[:3]
    first = first.rstrip(",:;")
    is_command = any(compiled(r"--?[a-z]|\./").match(word) for word in following)  # `python -m pip`, `go vet ./...`
    if first.replace("'", "").isalpha() and first.islower() and not is_command:
        sentence = sentence[:1].upper() + sentence[1:]
    sentence = sentence.rstrip(" ,;:-—–")
    return sentence if sentence.endswith((".", "!", "?", "。", "！", "？", '"')) else f"{sentence}."


# Words for a day that mean another one tomorrow, and how far it is from the day on which they were said.
_DAYS: Sequence[tuple[str, int]] = (
    (r"today|tonight|this morning|heute|aujourd'hui|hoy", 0),
    (r"yesterday|gestern|hier soir|ayer", -1),
    (r"tomorrow", 1),
)


def dated(statement: str, at: datetime | None) -> str:
    """Replace "today", "yesterday" and "tomorrow" by dates, if the day of the statement is known."""
    if at is None:
        return statement
    for words, days in _DAYS:
        day = f"{at + timedelta(days=days):%Y-%m-%d}"
        statement = compiled(rf"(?i)\b(as of|by|until|since|from|before|after|for) (?:{words})\b").sub(
            rf"\1 {day}", statement
        )
        statement = compiled(rf"(?i)\b(?:{words})'s\b").sub(day, statement)
        statement = compiled(rf"(?i)^(?:{words})\b").sub(f"On {day}", statement)
        statement = compiled(rf"(?i)\b(?:{words})\b").sub(f"on {day}", statement)
    return statement
