"""Fold texts to their letters and digits, to compare them whatever markup, encoding or script tricks stand in between.

Used by `quotes` on both sides of a comparison. Rule: folding loses no words. Attributes and link targets, which would
part the words around them, are moved to the end. Linear time, because a tool result can be very long.
"""

import html
import re
import unicodedata
from urllib.parse import unquote

from kept.text import compiled

_TERMINAL = r"\x1b(?:\[[0-?]{0,100}[ -/]{0,9}[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\-_])"
_ESCAPE = r"(?i)(?<!\\)\\++(?:(?P<blank>[nrt])|u(?P<four>[0-9a-f]{4})|x(?P<two>[0-9a-f]{2}))"
_ENTITY = r"(?i)&[a-z][a-z0-9]{1,30};"  # in capitals: a browser may not know it, a model does
_INVISIBLE = r"[\u0300-\u036f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
_HIDDEN = r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
_TAG = r"<(?P<sign>/?)(?P<name>[a-z][\w:.-]{0,60})(?P<more>\s[^<>]{0,2000}|/)?>"
_LINK = r"\]\((?P<target>[^()\s]{0,1000}(?:\s[^()\n]{0,300})?)\)"
_FOOTNOTE = r"\[\d{1,3}\]"
_NUMBERED_LINE = r"(?m)^[ \t]*(?:[^\s:]{1,200}:)?\d{1,6}[ \t]*(?:[:|\t.)→\]-]|$)"
_NO_LETTERS = r"[\W_]+"
# Elements within a word or a line: nothing stands in their place. All others part words.
_INLINE = frozenset(
    "a abbr b big cite code del em font i ins kbd mark q s small span strong sub sup tt u var wbr".split()
)
# Cyrillic and Greek letters, and the Latin ones that they look like, in lower case.
_LOOK_ALIKES = str.maketrans("авекмнорстухіѕјԁһԛԝаβεικνορτυχыı", "abekmhopctyxisjdhqwabeikvoptuxыi")


def folded(text: str) -> str:
    """Return a text in lower case without markup, escapes, accents and invisible characters."""
    text = _decoded(_decoded(text)).casefold()  # twice: an escape may hide another, or be parted by invisible signs
    moved: list[str] = []
    if "<" in text:
        text = compiled(_TAG).sub(lambda tag: _without_tag(tag, moved), text)
    if "](" in text:
        text = compiled(_LINK).sub(lambda link: _without_target(link, moved), text)
    if "[" in text:
        text = compiled(_FOOTNOTE).sub("", text)
    text = compiled(_NUMBERED_LINE).sub("", text)
    return "\n".join((text, *moved))


def unmasked(text: str) -> str:
    """Return a text without invisible characters and with Latin letters in the place of letters that look like them.

    A text that has other Cyrillic or Greek letters is in that language, and keeps its letters.
    """
    if text.isascii():
        return text
    shown = compiled(_HIDDEN).sub("", text)
    shown = "".join(unicodedata.normalize("NFKC", one) if one.isalpha() else one for one in shown)
    others = {one for one in shown.lower() if "\u0370" <= one <= "\u052f"}
    is_foreign = any(ord(one) not in _LOOK_ALIKES for one in others)
    return shown if is_foreign or not others else "".join(map(_latin, shown))


def _latin(letter: str) -> str:
    latin = letter.lower().translate(_LOOK_ALIKES)
    return latin.upper() if letter.isupper() else latin


def letters_in(folded_text: str) -> str:
    """Return the letters and digits of a folded text, with nothing in between."""
    return compiled(_NO_LETTERS).sub("", folded_text)


def letters_of(text: str) -> str:
    """Return the letters and digits of a text."""
    return letters_in(folded(text))


def _decoded(text: str) -> str:
    if "\\" in text:
        text = compiled(_ESCAPE).sub(_unescaped, text)
    if "%" in text:
        text = unquote(text, errors="replace")
    if "&" in text:
        text = html.unescape(text)
        text = compiled(_ENTITY).sub(lambda entity: html.unescape(entity[0].lower()), text)
    if "\x1b" in text:
        text = compiled(_TERMINAL).sub("", text)
    if text.isascii():
        return text
    plain = compiled(_INVISIBLE).sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", plain).casefold().translate(_LOOK_ALIKES)


def _unescaped(escape: re.Match[str]) -> str:
    if escape["blank"]:
        return "\t" if escape["blank"] in "tT" else "\n"
    return chr(int(escape["four"] or escape["two"], 16))


def _without_tag(tag: re.Match[str], moved: list[str]) -> str:
    if tag["more"]:
        moved.append(tag["more"])
    return "" if tag["name"] in _INLINE else " "


def _without_target(link: re.Match[str], moved: list[str]) -> str:
    moved.append(link["target"])
    return "]"
