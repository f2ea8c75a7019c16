"""Weights of the features of messages and sessions: a table for talk between people, and one with an assistant.

Last step before ranking. People answer each other in short messages that lean on the ones before, so neighbours and
speakers count. In talk with an assistant a message stands for itself, the user's words count more than long replies,
and vectors help.

PEOPLE was set by hand; weights learned on two people's talk (CC BY-NC data, which may only measure) rank no better.
ASSISTANT was learned by `bench/learn.py`. Rule: numbers come from data that may be used for that, and say which.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kept.ports import Embedder
from kept.recall.models import is_static

ASSISTANT_SHARE = 0.2  # of the messages found: from here on it is talk with an assistant


class MessageWeights(Struct, frozen=True, kw_only=True):
    """The weight of each feature of a message."""

    match: float = 1.0  # BM25 of its own words, as a share of the best candidate's
    before: float = 0.1  # the match of the message before it, and so on
    after: float = 0.15
    two_before: float = 0.2
    reply: float = 0.5  # the match of the question before it
    fillers: float = 0.2  # words that hold the question together
    session: float = 0.5  # the best match in its session
    session_words: float = 0.5  # the share of the question that its session holds
    speaker: float = 0.7  # said by somebody whom the question names
    role: float = 0.7  # said by the user, or by the assistant if the question is about its words
    date: float = 1.0  # said at the time that the question names, or not long after
    when: float = 0.5  # says when, if that is the question
    number: float = 0.25  # says how many, if that is the question
    statement: float = 0.2  # is not a question itself
    names: float = 0.25  # names somebody or something
    first_person: float = 0.1  # speaks of the speaker
    length: float = 0.25  # is not too short to say something
    meaning: float = 0.0  # cosine with the question; where vectors are on
    window: float = 0.0  # instead of it: that of the message together with those next to it, if a model reads sentences
    long: float = -0.35  # the logarithm of how many times too long it is


class SessionWeights(Struct, frozen=True, kw_only=True):
    """The weight of each feature of a session."""

    best: float = 1.0  # the score of its best message
    second: float = 0.2  # that of the next one
    words: float = 0.0  # BM25 of all that the user says in it, as a share of the best session's
    meaning: float = 0.0  # the best cosine of a user's message with the question; where vectors are on


class WeightTable(Struct, frozen=True, kw_only=True):
    """The weights for one kind of talk."""

    message: MessageWeights = MessageWeights()
    session: SessionWeights = SessionWeights()


PEOPLE = WeightTable()

# Learned on 2026-11-16 by bench/learn.py from LongMemEval (MIT), 241 questions. It has neither dates nor names: `date`
# and `speaker` are those of PEOPLE.
ASSISTANT = WeightTable(
    message=MessageWeights(
        match=1.0,
        before=0.0,
        after=0.07,
        two_before=0.0,
        reply=0.0,
        fillers=0.07,
        session=0.39,
        session_words=0.03,
        speaker=0.7,
        role=0.58,
        date=1.0,
        when=0.42,
        number=0.25,
        statement=0.14,
        names=0.08,
        first_person=0.0,
        length=0.09,
        meaning=1.28,
        long=-0.29,
    ),
    session=SessionWeights(best=1.0, second=0.25, words=1.51, meaning=7.89),
)


# For models that read sentences. PEOPLE_READ was set by hand: meaning counts as much as the match of words. The message
# alone, beside it, gains nothing and costs half as much again.
PEOPLE_READ = replace(PEOPLE, message=replace(PEOPLE.message, window=1.0))
# Learned on 2026-11-17 in the same way with all-MiniLM-L6-v2. What is said around a message tells nothing about it.
ASSISTANT_READ = replace(
    ASSISTANT,
    message=replace(ASSISTANT.message, meaning=1.41),
    session=replace(ASSISTANT.session, meaning=6.21),
)


def table_for(roles: Sequence[str], embedder: Embedder | None = None) -> WeightTable:
    """The weights for the talk that messages with these roles come from, and for the model that compares them."""
    from_assistant = len(roles) - roles.count("user")  # its tools and summaries, also
    reads = embedder is not None and not is_static(embedder)
    if from_assistant > ASSISTANT_SHARE * len(roles):
        return ASSISTANT_READ if reads else ASSISTANT
    return PEOPLE_READ if reads else PEOPLE
