"""Find open ends of earlier sessions that a conversation reports as done.

Used by sessions when one ends. An open end is a memory such as "the Windows job still fails" or "Not finished: …"; it
is over when the user or the agent reports it as done. Rule: the report must name the same things as the open end, and
must not be an open end itself. A missed open end costs a line in a briefing; one that is closed too early is archived.
"""

from collections.abc import Iterator, Mapping, Sequence

from kept.model import Message
from kept.writing.extraction.gist import Gist
from kept.writing.extraction.passages import passages
from kept.writing.extraction.rules import lowered, rules

MIN_WORDS = 3  # of an open end without names from code, that a report must have
SHARE = 0.67  # of its words


def closed_in(messages: Sequence[Message], open_ends: Mapping[str, str]) -> dict[str, Message]:
    """Map the keys of the open ends (key to text) that are reported as done to the reporting message."""
    gists = {key: Gist.of(content) for key, content in open_ends.items()}
    closed: dict[str, Message] = {}
    for message in filter(_may_report, messages):
        said = message.content.lower()
        waiting = {key: gist for key, gist in gists.items() if _may_speak_of(said, gist)}
        for report in _reports(message) if waiting else ():
            closed |= {key: message for key, gist in waiting.items() if _is_about(report, gist)}
    return closed


def _may_report(message: Message) -> bool:
    return message.role == "assistant" or (message.role == "user" and message.trust == "user")


def _reports(message: Message) -> Iterator[Gist]:
    known = rules()
    for passage in passages(message.content, is_long_pasted=message.role == "user"):
        said = lowered(passage.text)
        is_open = any(known[name].fits(said) for name in ("open_end", "guess", "offer"))
        if known["done"].fits(said) and not is_open and not said.endswith("?"):
            yield Gist.of(passage.text)


def _may_speak_of(said: str, gist: Gist) -> bool:
    return any(name in said for name in gist.names) if gist.names else any(word in said for word in gist.words)


def _is_about(report: Gist, open_end: Gist) -> bool:
    if open_end.names:
        return report.corrects(open_end)
    shared = len(report.words & open_end.words)
    return shared >= MIN_WORDS and shared >= SHARE * len(open_end.words)
