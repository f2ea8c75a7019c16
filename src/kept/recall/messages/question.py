"""From a question about conversations to the words to look for, and to what an answer would look like.

First step of recall over conversations, as `query.py` is for memories. There people type a few key words; here mostly a
whole sentence, often in other words than those that were said. A question may also name a time: "in May 2023", "on
7 May", "two weeks ago", "last Saturday"; that is a hint and never a filter. Rule: any string at all is a question.
"""

import re
from calendar import monthrange
from collections.abc import Collection, Iterator, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta

from msgspec import Struct
from msgspec.structs import replace

from kept import text
from kept.ports import Period
from kept.recall.messages.stems import ASIDES, FORMS, KINDS, RELATED
from kept.recall.query import SearchWords
from kept.recall.stems import FILLERS

MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH = "|".join(rf"{month[:3]}(?:{month[3:]})?" for month in MONTHS if month != "may")
# "may" is a month only beside a number, or behind a word that puts it on the calendar.
_MAY = r"may(?= \d)|(?<=\d )may|(?<=(?:th|st|nd|rd|in|of|by) )may|(?<=(?:last|this|next) )may|(?<=since )may"
_MONTH_NAMED = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?)?({_MONTH}|{_MAY})\b(?: (\d{{1,2}})(?:st|nd|rd|th)?\b)?"
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)(?:-(\d\d?))?\b")
_NUMBERS = "one two three four five six seven eight nine ten".split()
_COUNTS = {word: number for number, word in enumerate(_NUMBERS, start=1)} | {"a": 1, "an": 1, "couple": 2, "few": 3}
_UNITS = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_AGO = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_COUNTS)})(?: of)? (day|week|month|year)s? ago\b")
_LAST = re.compile(rf"\b(last|past|this) (day|week|weekend|month|year|{'|'.join(WEEKDAYS)})\b")


Span = tuple[date, date]  # both days belong to it
SPOKEN_OF_DAYS = 21  # for that long after, people speak of what has happened
BEFORE_COUNTS = 3  # a day before it counts as that many after it


class Moments(Struct, frozen=True):
    """The parts of dates that were named, and spans of days counted back from the day of the question."""

    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    spans: tuple[Span, ...] = ()

    def fit(self, at: datetime | None) -> float:
        """How near a time is, from 0 to 1: a day after what was named is nearer than a day before it."""
        if at is None or self == NONE_NAMED:
            return 0.0
        day = at.date()
        around = self.years or (day.year - 1, day.year, day.year + 1)
        away = [_days_away(day, span) for span in (*self.spans, *self._named(around))]
        return max(0.0, 1 - min(away, default=SPOKEN_OF_DAYS) / SPOKEN_OF_DAYS)

    def period(self, now: datetime) -> Period | None:
        """When one speaks of these moments, or None if none was named. A month without a year is the last one."""
        spans = [*self.spans, *self._named(self.years or (now.year - 1, now.year))]
        past = [span for span in spans if span[0] <= now.date()] or spans
        if not self.years and not self.spans:
            past = past[-1:]
        if not past:
            return None
        since = datetime.combine(min(first for first, _ in past), time(), UTC)
        until = datetime.combine(max(last for _, last in past), time(), UTC)
        return Period(since=since, until=until + timedelta(days=SPOKEN_OF_DAYS))

    def _named(self, years: Collection[int]) -> Iterator[Span]:
        """The days, months or years that were named, each as a span, in order."""
        for year in sorted(year for year in years if MINYEAR <= year <= MAXYEAR):
            if not self.months and self.years:
                yield date(year, 1, 1), date(year, 12, 31)
            for month in sorted(self.months):
                last = monthrange(year, month)[1]
                if not self.days:
                    yield date(year, month, 1), date(year, month, last)
                for day in sorted(self.days):
                    if day <= last:
                        yield date(year, month, day), date(year, month, day)


def _days_away(day: date, span: Span) -> int:
    first, last = span
    return (first - day).days * BEFORE_COUNTS if day < first else max(0, (day - last).days)


NONE_NAMED = Moments()


def moments(query: str, now: datetime) -> Moments:
    """The moments that a question names; `now` is when it was asked."""
    asked = " ".join(query.lower().replace(",", " ").split())
    days: set[int] = set()
    months: set[int] = set()
    years = {int(year) for year in _YEAR.findall(asked)}
    for before, name, after in _MONTH_NAMED.findall(asked):
        months.add(next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name[:3])))
        days.update(int(day) for day in (before, after) if day and 1 <= int(day) <= 31)
    for _, month, day in _ISO.findall(asked):
        months.update({int(month)} & {*range(1, 13)})
        days.update([int(day)] if day else [])
    return Moments(frozenset(days), frozenset(months), frozenset(years), tuple(_spans(asked, now)))


def _spans(asked: str, now: datetime) -> Iterator[Span]:
    today = now.date()
    if "yesterday" in asked:
        yield _around(today, 1, 0.5)
    for count, unit in _AGO.findall(asked):
        length = _UNITS[unit]
        yield _around(today, (int(count) if count.isdigit() else _COUNTS[count]) * length, length / 2)
    for which, unit in _LAST.findall(asked):
        if unit in WEEKDAYS:
            back = (today.weekday() - WEEKDAYS.index(unit)) % 7 or (0 if which == "this" else 7)
            yield _around(today, back, 0.5)
        else:
            length = _UNITS[unit]
            yield today - timedelta(days=length if which != "last" else 2 * length), today


def _around(today: date, days_back: int, slack_days: float) -> Span:
    """That day, and what was said of it a little before or after."""
    slack = max(1, round(slack_days))
    try:
        day = today - timedelta(days=days_back)
        return day - timedelta(days=slack), day + timedelta(days=slack)
    except OverflowError:  # 999 years ago
        return date.min, date.min


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
    """A question as it was read: words with weights, `fillers` that hold the sentence together, and the kind of answer.

    `asks_reply`: about what the assistant said, not the user.
    """

    words: SearchWords
    fillers: tuple[str, ...]
    moments: Moments
    asks_when: bool
    asks_how_many: bool
    asks_reply: bool

    @property
    def role_asked(self) -> str:
        """The role of those whose words answer it."""
        return "assistant" if self.asks_reply else "user"

    def without(self, names: Collection[str]) -> "Question":
        """The same question without the names of those who speak, unless nothing would be left."""
        left = {word: weight for word, weight in self.words.weights.items() if word not in names}
        if not any(word not in self.words.reasons for word in left):
            return self
        return replace(self, words=SearchWords(left, self.words.reasons))


def read_question(query: str, now: datetime) -> Question:
    """Read a question; `now` is when it is asked."""
    words = text.query_words(query)
    asked = _weighed([word for word in words if word not in FILLERS] or words)
    lower = query.lower()
    return Question(
        words=_with_other_words(asked, words),
        fillers=tuple(word for word in words if word in FILLERS and word not in asked.weights),
        moments=moments(query, now),
        asks_when=_WHEN.search(lower) is not None,
        asks_how_many=_HOW_MANY.search(lower) is not None,
        asks_reply=_REPLY.search(lower) is not None,
    )


def _weighed(content: Sequence[str]) -> SearchWords:
    """Give less weight to asides, unless there is nothing else."""
    is_all_aside = ASIDES.issuperset(content)
    return SearchWords({word: ASIDE_WEIGHT if word in ASIDES and not is_all_aside else 1.0 for word in content})


def _with_other_words(asked: SearchWords, words: Collection[str]) -> SearchWords:
    """Add other forms of the words, words that may stand for them, and things of the kinds they name."""
    literal = asked.all
    sources = (
        (FORMS, words, FORM_WEIGHT, "form of"),
        (RELATED, literal, RELATED_WEIGHT, "related to"),
        (KINDS, literal, KIND_WEIGHT, "a kind of"),
    )
    for table, of, weight, how in sources:
        brought: dict[str, list[str]] = {}
        room, seen = MOST_BROUGHT_IN - len(asked.reasons), set[str]()
        for word in of:
            others = [
                other
                for other in table.get(word, "").split()
                if other not in words and other not in FILLERS and other not in seen
            ]
            brought[word] = others[: max(0, room - len(seen))]
            seen.update(brought[word])
        asked = asked.with_words(weight, how, brought)
    return asked
