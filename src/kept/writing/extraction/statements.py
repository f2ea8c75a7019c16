"""Phrase statements so that they can be understood in another session and on another day.

Used by extraction. Rule: the words stay the speaker's. Openers ("No, actually,") are removed, the first person becomes
"the user" where that is easy, and "today" becomes a date.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kept.text import compiled
from kept.writing.extraction.rules import phrases
from kept.writing.grammar import without_openers

# How an agent begins a finding.
_FOUND = r"""
    ^(proposed|suggested|recommended) (change|fix|solution|approach)s?( \([^)]{1,60}\))?:\s+
    ^the (problem|issue|cause) is clear( now)? ?[.—–:-]\s+
    ^i see the (problem|issue|cause)( now)? ?[.—–:-]\s+
    ^i('ve| have)? (just )?(found|discovered|noticed|learned|reali[sz]ed)( out)? that\s+
    """
_PRAISE = (
    r"(?i)(?:good|great|nice|excellent|fair|perfect|thanks|thank you|sorry|right|yes|exactly|done|fixed|all set"
    r"|short answer|you['’]re (?:absolutely |totally |quite )?(?:right|correct)|ah)\b"
    r"[^.!?:—–]{0,40}(?: [—–-]|[!:,—–]) (?=\S+ \S+ \S+)"
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


def is_only_emphasis(sentence: str) -> bool:
    """Match a sentence that only stresses the sentence before it: "Remember that."."""
    return compiled(_EMPHASIS).fullmatch(sentence) is not None


def own_words(sentence: str, *, by_user: bool = False) -> str:
    """Remove the opening words of the sentence, and the first person where that is easy."""
    words = sentence.replace("’", "'")
    if by_user:
        return _of_the_user(words)
    words = without_openers(words)[0]
    for opening in (_FOUND, _DONE):
        if match := phrases(opening).match(words.lower()):
            words = words[match.end() :]
    return words


def _of_the_user(words: str) -> str:
    if is_only_emphasis((parts := words.rpartition(", "))[2]):
        words = parts[0] or words
    for wish, told in _WISHES.items():
        if match := phrases(wish).match(words.lower()):
            return told + words[match.end() :]
    return words


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
    (r"today|tonight|this morning", 0),
    (r"yesterday", -1),
    (r"tomorrow", 1),
)
_DAYS_ELSEWHERE: Sequence[tuple[str, str, int]] = (  # a date alone takes their place: each language has another "on"
    (r"heute|aujourd'hui|hoy|hoje", "今日", 0),
    (r"gestern|hier soir|ayer|ontem", "昨日", -1),
    (r"demain|amanhã", "明日", 1),
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
    for words, kanji, days in _DAYS_ELSEWHERE:
        day = f"{at + timedelta(days=days):%Y-%m-%d}"
        statement = compiled(rf"(?i)(?:\b(?:{words})\b|{kanji})").sub(day, statement)
    return statement
