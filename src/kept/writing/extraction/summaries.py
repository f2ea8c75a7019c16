"""A summary made of sentences from the conversation: the extractive default of the `Summarizer` port.

It takes what the user asked for, what was decided and found, and how it ended. Rule: a summary says nothing that nobody
said; for prose, plug in a model.
"""

from collections.abc import Callable, Sequence

from kept.model import Message
from kept.writing.admit import is_chatter
from kept.writing.patterns import compiled

Summarizer = Callable[[Sequence[Message]], str]

MAX_CHARS = 1_200
_ASKED = 3
_FOUND = 8
_LONGEST_SENTENCE = 280

_TELLING = (
    r"(?i)\b(?:decid\w*|chose|chosen|choose|instead|because|root cause|turns? out|prefer\w*|always|never|don't|careful"
    r"|the (?:bug|problem|issue|fix|cause) (?:is|was)|fixed|solved|implemented|added|removed|renamed|migrated|warning"
    r"|must(?: not)?|works now|passes|failed|broke|deploy\w*|release\w*)\b"
)


def summarize(messages: Sequence[Message]) -> str:
    """What was asked, decided and found, and how it ended: at most 1,200 characters, one sentence a line."""
    spoken = [message for message in messages if message.role in ("user", "assistant") and message.content.strip()]
    asked = [_first(message.content) for message in spoken if message.role == "user"]
    telling = [
        sentence
        for message in spoken
        for sentence in sentences(message.content)
        if compiled(_TELLING).search(sentence) and not sentence.endswith("?")
    ]
    ended = [_last(message.content) for message in spoken if message.role == "assistant"][-1:]
    lines: dict[str, str] = {}
    for label, chosen in (
        ("Asked", asked[:_ASKED]),
        ("", _spread(telling, _FOUND)),
        ("Ended", ended),
    ):
        for sentence in chosen:
            if sentence and not is_chatter(sentence):
                lines.setdefault(sentence, f"- {label + ': ' if label else ''}{sentence}")
    return _cut("\n".join(lines.values()))


def sentences(content: str) -> list[str]:
    """The sentences of a text, without code blocks and decoration, each on one line."""
    prose = compiled(r"(?s)```.*?(?:```|$)").sub(" ", content)
    parts = compiled(r"(?<=[.!?。！？])\s+|\n+").split(prose)
    cleaned = (compiled(r"^[\s>#*\-\d.)]+|[*_`]{1,3}").sub("", part).strip() for part in parts)
    return [part for part in cleaned if 15 <= len(part) <= _LONGEST_SENTENCE]


def _first(content: str) -> str:
    return next(iter(sentences(content)), " ".join(content.split())[:_LONGEST_SENTENCE])


def _last(content: str) -> str:
    found = sentences(content)
    return found[-1] if found else ""


def _spread(found: list[str], limit: int) -> list[str]:
    """At most `limit` of them, evenly spread: the end matters as much as the beginning."""
    found = list(dict.fromkeys(found))
    if len(found) <= limit:
        return found
    return [found[round(i * (len(found) - 1) / (limit - 1))] for i in range(limit)]


def _cut(summary: str) -> str:
    if len(summary) <= MAX_CHARS:
        return summary
    lines: list[str] = []
    for line in summary.splitlines():
        if sum(len(kept) + 1 for kept in lines) + len(line) > MAX_CHARS:
            break
        lines.append(line)
    return "\n".join(lines)
