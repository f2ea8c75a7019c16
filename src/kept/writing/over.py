"""Read the things that a statement ends ("MySQL is gone"), or clears of a blame ("the cache wasn't it").

Used by `last_word`. The words are those of seven languages. Rule: a thing ends only with its clause: "is out" does,
"is out on Friday" does not.
"""

from functools import lru_cache

from kept.text import compiled
from kept.writing.grammar import spelled, tables
from kept.writing.things import stem_of, values_of

# Words behind or before which a statement names the thing that is over.
_OVER = r"""(?xi) \b
    (?: no\ longer | not | isn't | aren't | don't\ use | drop(?:ped)? | forget | scrap | instead\ of | rather\ than
    | without | (?:mov|migrat|switch|chang|port|convert)\w*\ (?:\S+\ ){0,3}from | from(?=\ \S+\ to\b) | removed?
    | stop(?:ped)? | (?:prefer|cho[os]|pick|favou?r)\w*\ (?:\S+\ ){1,4}over | nor | kein\w* | nicht(?:\ mehr)? | statt
    | pas | plus | non | invece\ di | niente | au\ lieu\ de | ne\ sont\ plus
    | n'est\ plus | no | ya\ no | en\ vez\ de | não | já\ não | em\ vez\ de )\s
    (?: (?: use|using|the|a|an|to|in|on|at|with|den|die|das|ist|mehr|von|bei|le|la|les|est|el|los|es|o|os|é|na
        |no )\s ){0,2}
    ( [^\s,;.!?]+ (?:\.\w+)? )"""
_NOT_IT = r"""(?xi) ([^\s,;.!?]+)\ (?: (?: was|is )n't\ (?: it | the\ (?: cause|problem|reason|issue|culprit ) )
    | war\ (?: es|das )\ nicht | n'était\ pas\ (?: ça|cela|la\ cause ) | no\ era\ (?: eso|la\ causa )
    | não\ era\ (?: isso|a\ causa ) | non\ era\ (?: quello|la\ causa ) ) (?! \w)"""
_ENDED = r"""(?xi) ([^\s,;.!?]+)\ (?: (?: is|are )\ no\ longer
    \ (?: used|needed|required|supported|available|valid|there|in\ use )
    | (?: (?: is|are|was|has|ist|sind|est|es|está|é )\s )?
    (?: off\ the\ table | left(?:\ the|\ us)? | any\ ?more | on\ leave | nicht\ mehr | ya\ no
    | já\ não | não\ vale\ mais
    # … at the end of its clause: "is dead slow" and "is out on Friday" end nothing.
    | (?: gone|out|off|history|dead|dropped|weg|raus ) (?= \W*$ | \s?[,.;:!)]
        | \s(?:for\ good|now|since|as\ of|then|anyway|and|but|because|so|und|aber|weil|y|pero|e|mas|et|mais)\b
    ) ) ) \b"""
_BEHIND_PREPOSITION = (
    r"(?i)\b(?:over|of|in|on|at|from|for|with|to|near|von|im|in|auf|für|mit|bei|de|du|des|dans|sur|en|da|do|di)"
    r"(?: (?:the|an?|our|my|dem|den|der|die|das|le|la|les|el|los|las|o|os|il))?\s+$"
)  # "The lights over the stage are off": not the stage
_BLAMES = (
    r"(?i)\b(?:causes?|caused|because|reason|culprit|fault|blame|due to|comes? from|ursache|liegt an|wegen|weil|schuld"
    r"|à cause|parce que|coupable|causas?|porque|culpa|perché|colpa)\b|原因"
)


@lru_cache(maxsize=256)
def over_in(content: str) -> frozenset[str]:
    """Return the things that a statement says are over."""
    said = spelled(content)
    words = compiled(_OVER).findall(said)
    for found in compiled(_ENDED).finditer(said):
        if not compiled(_BEHIND_PREPOSITION).search(said[: found.start()]):
            words.append(found[1])
    return frozenset(
        stem for word in words if (stem := stem_of(word)) and word.lower() not in tables()["function"].single
    )


def disproves(later: str, earlier: str) -> bool:
    """Return True if the later statement says of something that it was not the cause, and the earlier one blames it."""
    blamed = frozenset(map(stem_of, compiled(_NOT_IT).findall(spelled(later))))
    if not blamed or not compiled(_BLAMES).search(earlier):
        return False
    return bool(blamed & values_of(earlier).keys) and is_affirmed(blamed, earlier)


def is_affirmed(over: frozenset[str], earlier: str) -> bool:
    """Return True if the earlier statement does not say itself that these things are over."""
    return not over & over_in(earlier)
