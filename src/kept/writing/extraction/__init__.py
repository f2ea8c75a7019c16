"""Find statements worth keeping in a conversation: messages in, drafts out. Call `extract` and `summarize`.

First step of the write path for everything that nobody stored on purpose. Rules, no model: decisions, corrections,
preferences, warnings, discoveries and progress by the words of a sentence (`rules`, `statements`); errors by the run
that ended them (`failures`); file changes by the text that was written (`edits`). Rule: one draft is one statement that
can be understood alone, in its speaker's words; a summary says nothing that nobody said. Tool output is never a
statement. A miss costs little; a memory full of chatter is worth nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from kept import text
from kept.model import Draft, Message, Origin, Source
from kept.tables import IMPORTANCE_BY_KIND, by_kind
from kept.text import compiled
from kept.writing.admit import is_chatter
from kept.writing.extraction.edits import Edits, edits_in
from kept.writing.extraction.failures import Failure, Failures, command_in
from kept.writing.extraction.rules import SentenceRule, Speaker, explains, rule_for
from kept.writing.extraction.statements import (
    Sentence,
    continues,
    finished,
    own_words,
    points_back,
    sentences,
    statement,
)
from kept.writing.quotes import own_words_in

MAX_CHARS = 500
MAX_FILES = 5
MAX_REPORTED = 6  # statements of one closing report; later ones repeat them or add details

# How sure we are that a draft says what was meant, and how much of its kind's importance it gets.
CONFIDENCE: dict[Speaker, float] = {"user": 0.9, "assistant": 0.6}
SHARE: dict[Speaker, float] = {"user": 1.0, "assistant": 0.8}
RESOLUTION_CONFIDENCE = 0.7
CHANGE_CONFIDENCE = 0.5  # that a file was written says nothing about its worth
CHANGE_IMPORTANCE = 0.4
USER_WARNING_IMPORTANCE = 0.8

USER_INTENT = "user-intent"
ERROR_RESOLUTION = "error-resolution"

# `git commit -m "subject"`, also with a here-document, and its answer: `[main 3bb8701] subject`.
_COMMIT = r"git commit\b[^\n]{0,80}? -m (?:\"\$\(cat <<-?'?\w{1,10}'?\n)?[\"']?([^\n\"']{8,200})"
_COMMITTED = r"(?m)^\[[\w./ ()-]{1,80} [0-9a-f]{7,40}\] "


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


class _Conversation:
    """One pass over the messages, and the state that it needs."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._edits = Edits(messages)
        self._failures = Failures()
        self._calls: deque[Message] = deque()  # tool calls whose result has not come yet
        self._has_acted = False  # an assistant that used no tool has observed nothing: it only talks
        self._question = ""  # the last one asked: what "let's not do that" answers

    def read(self) -> Iterator[Extracted]:
        for message, following in zip_longest(self._messages, self._messages[1:]):
            if message.role == "user" and message.trust != "user":
                self._calls.clear()  # the prompt of a sub-agent: its writer is not the user
            elif message.role == "user":
                yield from self._read_user(message)
            elif message.role == "assistant":
                is_final = following is None or following.role == "user"
                yield from self._read_assistant(message, is_final=is_final)
            elif message.role == "tool_call":
                self._read_call(message)
            elif message.role == "tool_result":
                yield from self._read_result(message)
        for change in self._edits.significant():
            importance, confidence = CHANGE_IMPORTANCE, CHANGE_CONFIDENCE
            files = (change.path,)
            yield _extracted(change.message, change.sentence, "file_change", importance, confidence, files=files)

    def _read_user(self, message: Message) -> Iterator[Extracted]:
        self._calls.clear()
        spoken = sentences(message.content, may_be_pasted=True)
        yield from self._statements(message, spoken, "user")
        self._question = _last_question(spoken)

    def _read_assistant(self, message: Message, *, is_final: bool) -> Iterator[Extracted]:
        self._calls.clear()
        spoken = sentences(message.content)
        if self._failures.are_open:
            told = [sentence.text for sentence in spoken if explains(sentence.text)]
            self._failures.said([each for each in told if not points_back(own_words(each))])
        if self._has_acted:
            yield from self._statements(message, spoken, "assistant", is_final=is_final)
        self._question = _last_question(spoken) or self._question

    def _read_call(self, message: Message) -> None:
        self._calls.append(message)
        self._has_acted = True
        for edit in edits_in(message):
            self._failures.changed(self._edits.add(edit, message))

    def _read_result(self, message: Message) -> Iterator[Extracted]:
        command = command_in(self._calls.popleft()) if self._calls else None
        if command is None:
            return
        for failure in self._failures.ran(command, message.content):
            yield self._resolved(failure, message)
        subject = compiled(_COMMIT).search(command) if compiled(_COMMITTED).search(message.content[:500]) else None
        if subject:
            content, kind = finished(f"Committed: {subject[1]}"), "progress"
            yield _extracted(message, content, kind, _importance(kind, "assistant"), CONFIDENCE["assistant"])

    def _statements(
        self, message: Message, spoken: Sequence[Sentence], speaker: Speaker, *, is_final: bool = False
    ) -> Iterator[Extracted]:
        by_user = speaker == "user"
        n_reported = 0
        is_told = False  # the sentence went along with the one before
        for sentence, following in zip_longest(spoken, spoken[1:]):
            rule = None if is_told else rule_for(sentence.text, speaker, is_final=is_final, headings=sentence.headings)
            is_told = False
            content = statement(sentence, self._question if by_user else "", by_user=by_user) if rule else ""
            if rule is None or not content:
                continue
            if rule.is_headed and sentence.topic:
                content = f"{sentence.topic}: {content}"
            if following is not None and continues(sentence, following, by_user=by_user):
                longer = f"{content} {finished(following.text)}"
                is_told = len(longer) <= MAX_CHARS
                content = longer if is_told else content
            n_reported += is_final
            if n_reported <= MAX_REPORTED and len(content) <= MAX_CHARS:
                yield self._stated(message, content, rule, speaker)

    def _stated(self, message: Message, content: str, rule: SentenceRule, speaker: Speaker) -> Extracted:
        return _extracted(
            message,
            content,
            rule.kind,
            _importance(rule.kind, speaker),
            CONFIDENCE[speaker],
            signals=(USER_INTENT,) if rule.is_intent else (),
            files=self._edits.files_named(content),
            tags=(rule.tag,) if rule.tag else (),
        )

    def _resolved(self, failure: Failure, message: Message) -> Extracted:
        """The error, where it was, what made it go away, and the last explanation that was given."""
        changed = failure.changed
        place = self._edits.relative(failure.place) if failure.place else f"`{failure.command}`"
        place = next((path for path in changed if path.endswith(f"/{place}")), place)
        if changed:
            fix = f"changing {', '.join(changed[:3])}" + (" and others" if len(changed) > 3 else "")
        else:
            fix = f"running `{failure.ran[-1]}`"
        content = self._edits.shorten(f"Error {failure.message.rstrip('.')} in {place}: fixed by {fix}.")
        if failure.said and len(content) + len(failure.said[-1]) < MAX_CHARS:
            content += f" {finished(own_words(failure.said[-1]))}"
        files = dict.fromkeys((*changed, place) if failure.place else changed)
        return _extracted(
            message,
            content[:MAX_CHARS],
            "error",
            _importance("error", "user"),
            RESOLUTION_CONFIDENCE,
            signals=(ERROR_RESOLUTION,),
            files=tuple(files)[:MAX_FILES],
            data={"signature": failure.signature},
        )


def _extracted(
    message: Message,
    content: str,
    kind: str,
    importance: float,
    confidence: float,
    *,
    signals: tuple[str, ...] = (),
    **fields: Any,
) -> Extracted:
    """A draft of the session tier, by the message it comes from; `fields` are further fields of the draft."""
    origin: Origin = "conversation" if message.role == "user" else "extraction"
    source = Source(origin=origin, session=message.session or None)
    draft = Draft(
        content=content,
        kind=kind,
        importance=importance,
        confidence=confidence,
        trust=message.trust,
        tier="session",
        source=source,
        **fields,
    )
    return Extracted(draft, message.id, signals)


def _importance(kind: str, speaker: Speaker) -> float:
    if kind == "warning" and speaker == "user":
        return USER_WARNING_IMPORTANCE
    return round(by_kind(IMPORTANCE_BY_KIND, kind) * SHARE[speaker], 3)


def _last_question(spoken: Sequence[Sentence]) -> str:
    return next((each.text for each in reversed(spoken) if each.text.endswith("?")), "")


# ---- the summary: sentences of the conversation, chosen; for prose, plug in a model ----

Summarizer = Callable[[Sequence[Message]], str]

MAX_SUMMARY_CHARS = 1_200
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
    said = [(message, words, _plain_sentences(words)) for message in spoken if (words := own_words_in(message))]
    asked = [
        own[0] if own else " ".join(words.split())[:_LONGEST_SENTENCE]
        for message, words, own in said
        if message.trust == "user"
    ]
    telling = [one for _, _, own in said for one in own if compiled(_TELLING).search(one) and not one.endswith("?")]
    ended = [own[-1] if own else "" for message, _, own in said if message.role == "assistant"][-1:]
    lines: dict[str, str] = {}
    for label, chosen in (("Asked: ", asked[:_ASKED]), ("", _spread(telling, _FOUND)), ("Ended: ", ended)):
        for sentence in chosen:
            if sentence and not is_chatter(sentence):
                lines.setdefault(sentence, f"- {label}{sentence}")
    return _cut("\n".join(lines.values()))


def _plain_sentences(content: str) -> list[str]:
    """The sentences of a text, without decoration, each on one line."""
    parts = compiled(r"(?<=[.!?。！？])\s+|\n+").split(content)
    cleaned = (compiled(r"^[\s>#*\-\d.)]+|[*_`]{1,3}").sub("", part).strip() for part in parts)
    return [part for part in cleaned if 15 <= len(part) <= _LONGEST_SENTENCE]


def _spread(found: list[str], limit: int) -> list[str]:
    """At most `limit` of them, evenly spread: the end matters as much as the beginning."""
    found = list(dict.fromkeys(found))
    if len(found) <= limit:
        return found
    return [found[round(i * (len(found) - 1) / (limit - 1))] for i in range(limit)]


def _cut(summary: str) -> str:
    if len(summary) <= MAX_SUMMARY_CHARS:
        return summary
    lines: list[str] = []
    for line in summary.splitlines():
        if sum(len(kept) + 1 for kept in lines) + len(line) > MAX_SUMMARY_CHARS:
            break
        lines.append(line)
    return "\n".join(lines)
