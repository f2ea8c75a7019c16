"""Find what is worth keeping in a conversation: messages in, drafts out.

First step of the write path for everything that nobody stored on purpose. Rules, no model: decisions, corrections,
preferences, warnings, discoveries and progress by what a sentence says; errors by what made them go away; file changes
by what was written. Rule: one draft is one statement that can be understood alone, in words that its speaker used. What
a tool printed is never a statement. A miss costs little; a memory full of chatter is worth nothing.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from os.path import commonprefix

from msgspec import Struct

from kept import text
from kept.model import Draft, Message, Origin, Source
from kept.settings import IMPORTANCE_BY_KIND, by_kind
from kept.writing.failures import Failures, Resolution, error_signature
from kept.writing.prose import Sentence, sentences

__all__ = ["Extracted", "error_signature", "extract"]

MAX_CHARS = 500
MIN_WORDS = 4
USER_CONFIDENCE = 0.9
AGENT_CONFIDENCE = 0.6
RESOLUTION_CONFIDENCE = 0.7
CHANGE_CONFIDENCE = 0.5  # that a file was written says nothing about its worth
AGENT_SHARE = 0.8  # of the importance that the same words of a user would have
CHANGE_IMPORTANCE = 0.4
MIN_CHANGED_LINES = 12  # below this it is a detail of something that is told elsewhere
MAX_SYMBOLS = 6
MAX_PROGRESS = 4  # sentences of one summary

USER_INTENT = "user-intent"
ERROR_RESOLUTION = "error-resolution"


class Extracted(Struct, frozen=True):
    """A draft, the message it comes from, and the signals that speak for keeping it."""

    draft: Draft
    message_id: str
    signals: tuple[str, ...] = ()


def extract(messages: Sequence[Message]) -> list[Extracted]:
    """C31, A13: what these messages say that is worth keeping, in their order, each statement once."""
    found: dict[str, Extracted] = {}
    for each in _Conversation(messages).read():
        found.setdefault(text.fingerprint(each.draft.content), each)
    return list(found.values())
