"""Statements in a message that another program hands over, and their trust. For adapters.

Rule: a user vouches for words of their own, not for what they quote or paste.
"""

from typing import Any

from kept.model import Trust
from kept.text import fingerprint, sentences
from kept.writing.admit import is_chatter
from kept.writing.quotes import split

TRUST_OF_SPEAKER: dict[str, Trust] = {
    "assistant": "agent",
    **dict.fromkeys(("tool", "tool_result", "function"), "tool"),
}


def stated(content: str) -> list[str]:
    """Return the sentences of a user's message that are no questions and no small talk."""
    found = (one.strip() for one in sentences(content, is_prose=True))
    return [one for one in found if one and not one.endswith("?") and not is_chatter(one, is_users=True)]


def trust_of(role: Any, text: str, *, within: str = "") -> Trust | None:
    """Return whose words a text is made of, as the messages of sessions have it; `within` is the message it is part of.

    A user's text with words of others in it (a quotation, a paste, "the page says:") is of unknown trust. None: as the
    program that hands it over is trusted.
    """
    if role != "user":
        return TRUST_OF_SPEAKER.get(str(role), "unknown")
    parts = split(within or text, is_long_pasted=True)
    if not parts.quoted and parts.vouched is None:
        return None
    vouched = parts.own if parts.vouched is None else parts.vouched
    said = (*sentences(vouched), *sentences(vouched, is_prose=True))
    return None if fingerprint(text) in map(fingerprint, said) else "unknown"
