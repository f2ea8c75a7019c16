"""Find what a conversation only quotes: tool results, blocks that programs put in, pasted files and pages.

Used by extraction, to read a speaker's own words, and by sessions, to say how far a sentence taken from a conversation
can be trusted. `own_words_in` is the part of a message that its speaker wrote; `Quotes` holds everything else that was
said so far. A sentence repeats a quotation when most of its words stand there in runs of four, or eight in a row; words
of code are not counted, because naming a command is not quoting it. Rule: a sentence has the least trust of what it
was made from. When unsure, a block is a quotation: that costs a memory, while a miss lets a page speak as the user.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from kept.model import LOW_TRUST, Message, Trust, least
from kept.text import compiled

RUN_WORDS = 4  # shorter runs are shared by chance
QUOTED_RUN_WORDS = 8  # so long a run makes any sentence a quotation
QUOTED_SHARE = 0.6  # of the words of a sentence, in such runs
DOCUMENT_CHARS = 1_800  # a message with more prose than this quotes a document between its first and last paragraph

# Texts that programs put into a conversation in the user's name.
_BOILERPLATE = (
    "this session is being continued from a previous conversation",
    "[request interrupted",
    "caveat: the messages below were generated",
    "your task is to create a detailed summary of the conversation",
    "base directory for this skill",
    "# agents.md instructions",
)
_TAG = r"<(/?)([a-zA-Z][\w-]{1,40})(?:\s[^<>]{0,500})?>"
_BLOCK_TAGS = frozenset({"private", "analysis", "summary", "thinking", "instructions", "context", "document"})
_FENCE = r"\s{0,3}(```|~~~)"
_QUOTED_LINE = r"\s{0,3}>"
_CODE_LINE = r"(?: {4}|\t)(?!\s*(?:[-*+•]|\d{1,3}[.)])\s)"
_ANY_MARK = r"(?m)^(?:\s{0,3}(?:```|~~~|>|\$ )| {4}|\t|diff --git |Subject: )|:\s*$"
_IN_QUOTES = r"(?s)[\"“„«「『](.{40,})[\"”“»」』][.!?]?"
# "The page says:", "Here is the log:" or "README.md:" at the end of a line, the head of a patch or of a mail, or a
# command at a prompt: the rest of the message is what it says.
_INTRODUCTION = (
    r"(?i)\b(?:says?|said|reads|wrote|outputs?|prints?|printed|logged|returned|pasted|copied|quotes?|quoted)\b"
    r"[^.!?\n]{0,30}:\s*$"
    r"|\b(?:here(?:'s|’s| is| are)|this is|i get|got|from|below)\b[^.!?\n]{0,40}\b(?:output|logs?|error|trace|traceback"
    r"|readme|article|page|website|docs|documentation|e-?mail|files?|contents?|transcript|message)\b[^.!?\n]{0,30}:\s*$"
    r"|^\W{0,4}(?:contents? of\b[^\n]{1,90}|[\w./~@-]{1,80}\.[a-z]\w{0,7})\W{0,3}:\W{0,2}$"
    r"|^diff --git |^Subject: |^\s{0,3}\$ \w"
)
# "Implement the following plan:" as the first line: what follows is what the user wants, however long it is.
_HANDOVER = (
    r"(?i)\s*(?:ok(?:ay)?,? |now |please )*(?:(?:implement|execute|follow|apply|build|do|continue with)"
    r" (?:the following|this|the|my|our)|(?:here is|here's|here’s|this is) (?:my|our)) (?:[\w-]+ ){0,2}"
    r"(?:plan|spec|specification|design|requirements?|proposal)\s*[.:]?\s*\n"
)
_SENTENCE_END = r"(?<=[.!?。！？])\s+|\n+"
_CODE_SPAN = r"`[^`\n]{1,200}`"
_WORD = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[\w./:@#+-]*\w)?"


class Split(Struct, frozen=True):
    """A text as its speaker wrote it, and what somebody else wrote in it."""

    own: str
    quoted: str = ""


def own_words_in(message: Message) -> str:
    """The part of a message that its speaker wrote; nothing of a tool's or a stranger's."""
    return "" if message.trust in LOW_TRUST else split(message.content, is_long_pasted=message.role == "user").own


def split(text: str, *, is_long_pasted: bool = False) -> Split:
    """Take the quotations out of a text. `is_long_pasted`: of a very long text, only both ends are the speaker's."""
    if text.lstrip()[:80].lower().startswith(_BOILERPLATE):
        return Split("", text)
    own, quoted = _without_blocks(text)
    if compiled(_ANY_MARK).search(own):
        own = _without_marked_lines(own, quoted, is_long_pasted=is_long_pasted)
    own, more = _without_pasted_paragraphs(own, is_long_pasted=is_long_pasted and not hands_over(text))
    return Split(own, "\n".join((*quoted, *more)))


def hands_over(text: str) -> bool:
    """Whether a message hands over a plan. Quotations in it are still quotations."""
    return compiled(_HANDOVER).match(text) is not None


def _without_marked_lines(text: str, quoted: list[str], *, is_long_pasted: bool) -> str:
    """Without code, lines that are marked as quoted, and what follows "The page says:"; all that goes to `quoted`."""
    kept: list[str] = []
    fence = ""
    is_introduced = False
    for line in text.splitlines():
        mark = compiled(_FENCE).match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif fence or is_introduced or compiled(_QUOTED_LINE).match(line) or compiled(_CODE_LINE).match(line):
            quoted.append(line)
        else:
            kept.append(line)
            is_introduced = is_long_pasted and compiled(_INTRODUCTION).search(line[-120:]) is not None
    return "\n".join(kept)


def _without_blocks(text: str) -> tuple[str, list[str]]:
    """Without blocks in tags such as <private> or <system-reminder>, and those; an unclosed one runs to the end."""
    if "<" not in text:
        return text, []
    tags = [tag for tag in compiled(_TAG).finditer(text) if _is_block(tag[2].lower())]
    ends: dict[str, list[int]] = {}
    for tag in reversed(tags):
        if tag[1]:
            ends.setdefault(tag[2].lower(), []).append(tag.end())  # the last end first, so that pop() gives the next
    kept, quoted, at = [], [], 0
    for tag in tags:
        if tag[1] or tag.start() < at:
            continue
        kept.append(text[at : tag.start()])
        closing = ends.get(tag[2].lower(), [])
        while closing and closing[-1] < tag.end():
            closing.pop()
        at = closing.pop() if closing else len(text)
        quoted.append(text[tag.end() : at])
    return "\n".join((*kept, text[at:])), quoted


def _is_block(tag: str) -> bool:
    return tag in _BLOCK_TAGS or "-" in tag or "_" in tag  # no element of HTML has such a name; those of programs do


def _without_pasted_paragraphs(text: str, *, is_long_pasted: bool) -> tuple[str, list[str]]:
    """Without paragraphs in quotation marks and, of a very long text, without all between the first and the last."""
    paragraphs = [part for part in compiled(r"\n[ \t]*\n").split(text) if part.strip()]
    is_quoted = [compiled(_IN_QUOTES).fullmatch(part.strip()) is not None for part in paragraphs]
    if is_long_pasted and sum(map(len, paragraphs)) > DOCUMENT_CHARS:
        last = len(paragraphs) - 1
        ends = [0 < at < last or len(part) > DOCUMENT_CHARS // 2 for at, part in enumerate(paragraphs)]
        is_quoted = [quoted or inside for quoted, inside in zip(is_quoted, ends, strict=True)]
    if not any(is_quoted):
        return text, []
    own = [part for part, quoted in zip(paragraphs, is_quoted, strict=True) if not quoted]
    return "\n\n".join(own), [part for part, quoted in zip(paragraphs, is_quoted, strict=True) if quoted]


class Quotes:
    """The words of a session that are not its speakers' own, message by message as they come in."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.upto = 0  # the number of the last message that was added
        self._text = "\n"  # words in lower case, parts separated by line breaks
        # Of each part: where it ends, the number of its message, and its trust.
        self._ends: list[int] = []
        self._numbers: list[int] = []
        self._trusts: list[Trust] = []
        self.add(messages)

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, messages: Iterable[Message]) -> None:
        """Hear what was said next."""
        texts = [self._text]
        at = len(self._text)
        for message in messages:
            self.upto = max(self.upto, message.n)
            is_low = message.trust in LOW_TRUST
            quoted = message.content if is_low else _quoted_by(message)
            if not quoted:
                continue
            texts.append(f" {' '.join(words_of(quoted))} \n")
            at += len(texts[-1])
            self._ends.append(at)
            self._numbers.append(message.n)
            self._trusts.append(message.trust if is_low else "unknown")
        self._text = "".join(texts)

    def runs(self) -> frozenset[int]:
        """The runs of four words of all quotations, by hash: to sort many texts out that share none of them."""
        lines = (line.split() for line in self._text.split("\n"))
        return frozenset(hash(run) for words in lines for run in _runs_of(words))

    def trust_of(self, text: str, spoken: Trust, *, by: Message | None = None, known: str = "") -> Trust:
        """The trust of a text that was said with trust `spoken`: that, or less if a sentence of it is a quotation.

        `by` is the message that it was taken from: what came later was not quoted, and a person who writes the same
        words says them as their own. So does who repeats `known`, their own earlier text.
        """
        if spoken in LOW_TRUST or not self._ends:
            return spoken
        upto = len(self._text)
        if by is not None:
            after = bisect_right(self._numbers, by.n)
            upto = self._ends[after - 1] if after else 0
        own = words_of(own_words_in(by)) if by is not None and spoken == "user" else words_of(known)
        own_text = f" {' '.join(own)} "
        found = [spoken]
        for sentence in compiled(_SENTENCE_END).split(text):
            if (place := self._repeated_at(sentence, upto, own_text)) is not None:
                found.append(self._trusts[bisect_right(self._ends, place)])
        return least(*found)

    def _repeated_at(self, sentence: str, upto: int, own: str) -> int | None:
        """Where a sentence that is a quotation stands among the quotations; None for any other."""
        words, is_code = _marked_words(sentence)
        if len(words) < RUN_WORDS:
            return None
        covered = [False] * len(words)
        place = longest = run = 0
        for start in range(len(words) - RUN_WORDS + 1):
            run_text = f" {' '.join(words[start : start + RUN_WORDS])} "
            at = -1 if run_text in own else self._text.find(run_text, 0, upto)
            run = run + 1 if at >= 0 else 0
            if at >= 0:
                place = at
                longest = max(longest, run + RUN_WORDS - 1)
                covered[start : start + RUN_WORDS] = [True] * RUN_WORDS
        prose = [hit for hit, code in zip(covered, is_code, strict=True) if not code]
        counted = prose if len(prose) >= RUN_WORDS else covered
        is_quoted = longest >= QUOTED_RUN_WORDS or sum(counted) >= QUOTED_SHARE * len(counted)
        return place if is_quoted and longest else None


def shares_a_run(text: str, runs: frozenset[int]) -> bool:
    """Return True if a sentence has four words in a row with a quotation in common: only then can it repeat one."""
    sentences = (_marked_words(sentence)[0] for sentence in compiled(_SENTENCE_END).split(text))
    return any(hash(run) in runs for words in sentences for run in _runs_of(words))


def _runs_of(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(RUN_WORDS)), strict=False)


def first_said(text: str, messages: Iterable[Message]) -> Message | None:
    """The first message in which an agent says these words, in its answer or in what it gives to a tool."""
    wanted = f" {' '.join(words_of(text))} "
    own = (one for one in messages if one.trust == "agent" and one.role in ("assistant", "tool_call"))
    told = ((one, words_of(" ".join((one.content, *_strings_in(one.input))))) for one in own)
    return next((one for one, words in told if wanted in f" {' '.join(words)} "), None)


def _strings_in(value: Any) -> Iterator[str]:
    """The texts in the input of a tool."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if isinstance(value, str):
        yield value
    for one in inner:
        yield from _strings_in(one)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; a path, a name from code and an option are one word each."""
    return compiled(_WORD).findall(text.lower())


def _marked_words(sentence: str) -> tuple[list[str], list[bool]]:
    """The words of a sentence, and whether each is marked as code."""
    words: list[str] = []
    is_code: list[bool] = []
    at = 0
    for span in (*compiled(_CODE_SPAN).finditer(sentence), None):
        for part, code in ((sentence[at : span.start() if span else None], False), (span[0] if span else "", True)):
            found = words_of(part)
            words += found
            is_code += [code] * len(found)
        at = span.end() if span else at
    return words, is_code


def _quoted_by(message: Message) -> str:
    """What a message quotes. The code that an agent writes is its own; what it quotes, a tool has shown to it."""
    return split(message.content, is_long_pasted=True).quoted if message.role == "user" else ""
