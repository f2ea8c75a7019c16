"""From a question about conversations to the words to look for, and to what an answer would look like.

First step of recall over conversations, as `query.py` is of recall over memories. There a few key words are asked;
here mostly a whole sentence, often in other words than those that were said. Rule: any string at all is a question.
"""

import re
from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from kept import text
from kept.recall import english
from kept.recall.moments import Moments, moments
from kept.recall.query import Asked

ASIDE_WEIGHT = 0.5
FORM_WEIGHT = 0.7
RELATED_WEIGHT = 0.3
KIND_WEIGHT = 0.3
MOST_BROUGHT_IN = 40  # words that were not asked for

_WHEN = re.compile(
    r"^\W*when\b|\b(what|which) (date|day|year|month|time)\b|\bhow long\b|\bhow many (day|week|month|year)s\b"
)
_HOW_MANY = re.compile(r"\bhow (many|much|often|old)\b|\b(what|which) (time|percentage|number|amount)\b")
_REPLY = re.compile(
    r"\bremind me\b|\b(previous|last|earlier) (conversation|chat|discussion|session)\b|\bwe (talked|discussed|spoke)\b"
    r"|\byou (said|told|gave|wrote|(mention|recommend|suggest|provid|list|explain|advis|referr)ed)\b"
    r"|\byou (previously|specifically|had|were|also) \w+(ed|ing)\b"
    r"|\bdid you (say|tell|mention|recommend|suggest|give|provide|list|explain|advise)\b"
)


class Question(Struct, frozen=True, kw_only=True):
    """What is asked: words with weights, `fillers` that hold the sentence together, and the kind of answer.

    `asks_reply`: about what the assistant said, not the user.
    """

    asked: Asked
    fillers: tuple[str, ...]
    moments: Moments
    asks_when: bool
    asks_how_many: bool
    asks_reply: bool

    def without(self, names: Collection[str]) -> "Question":
        """The same question without these words, unless nothing would be left: names of those who speak."""
        left = {word: weight for word, weight in self.asked.weights.items() if word not in names}
        if not any(word not in self.asked.reasons for word in left):
            return self
        return Question(
            asked=Asked(left, self.asked.reasons),
            fillers=self.fillers,
            moments=self.moments,
            asks_when=self.asks_when,
            asks_how_many=self.asks_how_many,
            asks_reply=self.asks_reply,
        )


def understand(query: str, now: datetime) -> Question:
    """Read a question; `now` is when it is asked."""
    words = text.query_words(query)
    fillers = [word for word in words if word in english.fillers()]
    content = [word for word in words if word not in english.fillers()] or words
    is_all_aside = all(word in english.asides() for word in content)
    asked = Asked({word: ASIDE_WEIGHT if word in english.asides() and not is_all_aside else 1.0 for word in content})
    lower = query.lower()
    return Question(
        asked=_with_other_words(asked, words),
        fillers=tuple(word for word in fillers if word not in asked.weights),
        moments=moments(query, now),
        asks_when=_WHEN.search(lower) is not None,
        asks_how_many=_HOW_MANY.search(lower) is not None,
        asks_reply=_REPLY.search(lower) is not None,
    )


def _with_other_words(asked: Asked, words: Collection[str]) -> Asked:
    """Add other forms of the words, words that may stand for them, and things of the kinds they name."""
    literal = asked.words
    sources = (
        (english.forms(), words, FORM_WEIGHT, "form of"),
        (english.related(), literal, RELATED_WEIGHT, "related to"),
        (english.kinds(), literal, KIND_WEIGHT, "a kind of"),
    )
    for table, of, weight, how in sources:
        reasons = {
            other: f"{how} {word}"
            for word in of
            for other in sorted(table.get(word, ()))
            if other not in words and other not in english.fillers()
        }
        room = MOST_BROUGHT_IN - len(asked.reasons)
        asked = asked.with_words(weight, dict(list(reasons.items())[: max(room, 0)]))
    return asked
