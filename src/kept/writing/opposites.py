"""Find opposites: two things in the other order, something that was on and is off.

Used by `last_word`. The words are those of seven languages. Rule: both statements must name the same things.
"""

from functools import lru_cache
from typing import NamedTuple

from kept.text import compiled
from kept.writing.things import things_in

# Two things in an order, and a state that is one of two, in six languages.
_ORDERS = (
    r"(?i)(?P<first>[^.;]+?)(?:,? (?:and |und |et |y |e )?(?:then|dann|danach|puis|ensuite|luego|depois|poi)"
    r"| (?:before|bevor|vor|avant|antes|prima))\b(?P<second>[^.;,]+)",
    r"(?i)(?P<second>[^.;,]+?) (?:after|nachdem|nach|après|después|dopo)\b(?P<first>[^.;,]+)",
)
_FIRST = r"(?i)\b(?:first|zuerst|erst|d'abord|primero|primeiro)\b"
_CONDITION = r"(?i)\b(?:if|when|wenn|falls|si|quand|cuando|se|quando)\b"  # "if it fails, then retry" is no order
_BE = r"(?:is|are|be|stays?|remains?|ist|sind|bleib\w*|est|sont|reste\w*|está|están|é|são|è|sono)\ (?:\w+\ )?"
_DEFAULT = r"\ (?:by\ default|per\ default|par\ défaut|por\ defecto|por\ padrão|di\ default)"
_ON = r"""(?:on|enabled|active|an|aktiv|aktiviert|eingeschaltet|activée?s?|activad[oa]s?|encendid[oa]s?|ativad[oa]s?
    |ligad[oa]s?|attiv[oaie]|acces[oaie])"""
_OFF = r"""(?:off|disabled|inactive|aus|inaktiv|deaktiviert|ausgeschaltet|désactivée?s?|desactivad[oa]s?|apagad[oa]s?
    |desativad[oa]s?|desligad[oa]s?|disattiv\w+|spent[oaie])"""
_STATE = r"(?xi) \b (?: {be} {state} (?: {default} | (?=\W*(?:$|[.;,])) ) | {state} {default} )"


def is_turned(later: str, earlier: str) -> bool:
    """Return True if two statements put the same things in opposite orders: "deploy first, then migrate"."""
    new, old = _order_in(later), _order_in(earlier)
    if new is None or old is None:
        return False
    is_opposite = bool(new[0] & old[1]) and bool(new[1] & old[0])
    return is_opposite and new[0].isdisjoint(old[0]) and new[1].isdisjoint(old[1])


@lru_cache(maxsize=1024)  # each statement is compared with several others
def _order_in(content: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the things that come first and second, if a statement gives an order."""
    for way in _ORDERS if not compiled(_CONDITION).search(content) else ():
        if (found := compiled(way).search(content)) is not None:
            first, second = (compiled(_FIRST).sub(" ", found[name]) for name in ("first", "second"))
            return things_in(first), things_in(second)
    return None


def is_switched(later: str, earlier: str) -> bool:
    """Return True if one of two is on and the other off, and one names nothing that the other does not."""
    new, old = _state_of(later), _state_of(earlier)
    if new is None or old is None or new.is_on == old.is_on or new.things.isdisjoint(old.things):
        return False
    return new.things <= old.things or old.things <= new.things


class _State(NamedTuple):
    """Something that is on or off."""

    is_on: bool
    things: frozenset[str]


@lru_cache(maxsize=1024)
def _state_of(content: str) -> _State | None:
    """Return the things that a statement calls on or off; None if it calls them neither, or some of them both."""
    for is_on, words in ((True, _ON), (False, _OFF)):
        rest, count = compiled(_STATE.format(be=_BE, state=words, default=_DEFAULT)).subn(" ", content)
        if count == 1:
            return _State(is_on, things_in(rest))
    return None
