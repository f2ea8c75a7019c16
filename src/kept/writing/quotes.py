"""Find what a conversation only quotes: tool results, blocks that programs put in, pasted files and pages.

Used by extraction, to read a speaker's own words, and by sessions, to say how far a sentence taken from a conversation
can be trusted. `own_words_in` is the part of a message that its speaker wrote; `Quotes` holds everything else that was
said so far. A sentence repeats a quotation when most of its words stand there in runs of four, or eight in a row; words
of code are not counted, because naming a command is not quoting it. A shorter sentence repeats one that stands whole
there. Runs are compared by their letters, because markup may stand between them. Rule: a sentence has the least trust
of what it was made from. When unsure, a block is a quotation: that costs a memory, while a miss lets a page speak as
the user.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from kept.model import LOW_TRUST, Message, Trust, least, replace
from kept.text import compiled, sentences, without_inlined
from kept.writing.letters import folded, letters_in, letters_of
from kept.writing.speech import (
    CLAUSE_WORDS,
    ELISION,
    goes_on,
    introduces_at_end,
    introductions,
    is_introduced,
    names_reporter,
    paragraph_end,
    quotations,
    quoted_prose,
    sentence_end,
)

RUN_WORDS = 4  # shorter runs are shared by chance
RUN_LETTERS = 12  # at least: "it is in a" is shared by chance; an ideograph counts as three
SHORT_WORDS = 2  # a sentence of one word names a thing
BLOCK_LETTERS = 10  # with BLOCK_STEP: every run of RUN_LETTERS holds a whole block
BLOCK_STEP = 3
QUOTED_RUN_WORDS = 8  # so long a run makes any sentence a quotation
QUOTED_SHARE = 0.6  # of the words of a sentence, in such runs
OWN_CHARS = 40_000  # of a text that is read for what others said in it; no person writes more
CODE_INDENT = 4  # columns: a line that begins so far to the right is code
DOCUMENT_CHARS = 1_800  # a message with more prose than this quotes a document between its first and last paragraph

# Texts that programs put into a conversation in the user's name.
_BOILERPLATE = (
    "this session is being continued from a previous conversation",
    "[request interrupted",
    "caveat: the messages below were generated",
    "your task is to create a detailed summary of the conversation",
    "base directory for this skill",
    "# agents.md instructions",
    "please continue the conversation from where we left it off",
    "another language model started to solve this problem",
    "you are performing a context checkpoint compaction",
    "your context was compacted",
    "provide a detailed prompt for continuing our conversation",
    "continue if you have next steps, or stop and ask",
)
# What a hook says, in the words that hosts put before it.
_BY_HOOK = (
    r"(?i)\s*(?:<system-reminder>\s*)?(?:\w{2,40}(?::[\w|*.-]{1,60})? hook (?:success|feedback|error|blocking error|"
    r"non-blocking|additional context|stopped continuation|cancelled)\b"
    r"|\w{2,40} (?:was )?(?:stopped|blocked|denied|prevented|cancelled) by (?:an? |the )?(?:[\w:]{1,40} )?hook\b"
    r"|additional (?:context|guidance) from [\w:]{1,40} hooks?\b)[^\n:]{0,120}:"
)
# A slash command: its name, and what the user wrote behind it; a template may follow.
_SLASH = (
    r"\s*(?:<command-(?:name|message)>[^<]{0,200}</command-(?:name|message)>\s*){1,3}"
    r"(?:<command-args>(?P<args>.*?)</command-args>)?"
)
# A template of a command or a skill: front matter, or a document with several headings from its first line on.
_TEMPLATE = r"\s*---\n(?:[\w-]{1,40}:[^\n]*\n){1,30}---(?:\n|\Z)"
_HEADING = r"(?m)^#{1,4} +\S"
DOCUMENT_HEADINGS = 2
_TAG = (
    r"(?:<|&lt;|＜)\s?(?P<closes>/)?\s?(?P<name>[^\W\d_][\w:.-]{0,60})"
    r"(?P<more>\s(?:\"[^\"]{0,300}\"|'[^']{0,300}'|[^<>&＞\"']){0,500}|/)?(?:>|&gt;|＞)"
)
_BLOCK_TAGS = frozenset({"private", "analysis", "summary", "thinking", "instructions", "context", "document"})
# Nothing stands in them, and nothing closes them.
_EMPTY_TAGS = frozenset("area base br col embed hr img input link meta source track wbr".split())
# Elements of hosts: not placeholders, whatever follows on their line.
_HOST_TAGS = _BLOCK_TAGS | frozenset(
    """additional_data attached_files bash-input bash-stderr bash-stdout command-args command-contents command-message
    command-name editor_context environment_context hook-context hook_context hook_prompt ide_opened_file ide_selection
    instructions local-command-caveat local-command-stderr local-command-stdout persisted-output project_memory
    session_context state_snapshot subagent_notification system-reminder system_reminder task-notification
    teammate-message tool_result tool_use_error turn_aborted user-memory-input user-prompt-submit-hook
    user_instructions user_shell_command""".split()
)
_JOINTS = ":/.,;()[]=_|-"  # behind a placeholder: "<ticket-id>: text", "<type>(<scope>)"
# Within code and in a line that is marked as quoted, a tag is text.
_CODE_OR_TAG = (
    r"(?m)^[ \t]{0,3}(?P<fence>```|~~~|'{3}|\"{3})|^[ ]{0,3}>[^\n]*|`[^`\n]{1,200}`"
    rf"|(?P<indent>^[ \t]*)?{_TAG}(?P<ends>(?=[ \t]*$))?"
)
_FENCE = r"\s{0,3}(```|~~~|'{3}|\"{3})"
_QUOTED_LINE = r"\s{0,3}(?:>|[\w.@-]{1,30}> )"  # also as chats and prompts show it: "tom> …"
_CODE_LINE = r"(?: {4}|\t)(?!\s*(?:[-*+•]|\d{1,3}[.)])\s)"
_ANY_MARK = r"(?m)^(?:\s{0,3}(?:```|~~~|'{3}|\"{3}|>|[\w.@-]{1,30}> |\$ )| {4}|\t|diff --git |Subject: )|:\s*$"
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
# Not only of a sentence (`text.sentences`), but also of an entry of a list, a cell, or the words behind a label.
_STANDING_END = r"[.!?。！？:;|]+(?:\s+|$)|\n+"
_CODE_SPAN = r"`[^`\n]{1,200}`"
_DENSE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # one letter says as much as a syllable or a word
_WORD = rf"{_DENSE}|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[\w./:@#+-]*[^\W_])?"
# A short sentence of these words alone says how something went, as agents and tools both do.
_STATUS_WORDS = frozenset(
    """a all and are build builds check checks checked clean compiled compiles complete completed created deleted
    deployed done error errors exit fail failed failing fails file files finished fixed found good green installed is it
    lint looks merged no none not nothing now ok okay one pass passed passes passing pushed ran ready removed running
    saved status succeeded success successful successfully suite test tests that the this to type up updated warning
    warnings was were works written yes zero""".split()
)


class Split(Struct, frozen=True):
    """A text as its speaker wrote it, and what others wrote in it.

    `own` is to be read. It may use a quotation ('the footer says "…"') or name a person who said something ("Mara
    says: …"); `vouched` is `own` without those words, None if there are none.
    """

    own: str
    quoted: str = ""
    vouched: str | None = None


def own_words_in(message: Message) -> str:
    """The part of a message that its speaker answers for; nothing of a tool's or a stranger's."""
    if message.trust in LOW_TRUST:
        return ""
    parts = split(message.content, is_long_pasted=message.role == "user")
    return parts.own if parts.vouched is None else parts.vouched


def split(text: str, *, is_long_pasted: bool = False) -> Split:
    """Take the quotations out of a text.

    `is_long_pasted`: a person wrote it, who pastes; of a very long text, only both ends are that person's.
    """
    if text.lstrip()[:80].lower().startswith(_BOILERPLATE) or compiled(_BY_HOOK).match(text[:400]):
        return Split("", text)
    if is_long_pasted and (command := compiled(_SLASH, re.DOTALL).match(text)):
        own = (command["args"] or "").strip()
        return replace(split(own, is_long_pasted=True), quoted=text) if own else Split("", text)
    if is_long_pasted and _is_template(text):
        return Split("", text)
    own, inlined = without_inlined(text) if is_long_pasted else (text, "")
    own, quoted = _without_blocks(own, by_user=is_long_pasted)
    quoted += [inlined] if inlined else []
    if compiled(_ANY_MARK).search(own):
        own = _without_marked_lines(own, quoted, is_long_pasted=is_long_pasted)
    own, more = _without_pasted_paragraphs(own, is_long_pasted=is_long_pasted and not hands_over(text))
    if not is_long_pasted:
        return Split(own, "\n".join((*quoted, *more)))
    own, vouched, spoken = _without_speech(own)
    return Split(own, "\n".join((*quoted, *more, *spoken)), vouched)


def _is_template(text: str) -> bool:
    """Match a document in the user's place: with front matter, or with headings from its first line on."""
    if compiled(_TEMPLATE).match(text):
        return True
    begins = compiled(_HEADING).match(text.lstrip())
    return begins is not None and len(compiled(_HEADING).findall(text[:OWN_CHARS])) >= DOCUMENT_HEADINGS


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
        elif fence or is_introduced or _is_marked(line):
            quoted.append(line)
        else:
            kept.append(line)
            is_introduced = is_long_pasted and _introduces_rest(line)
    return "\n".join(kept)


def _is_marked(line: str) -> bool:
    return bool(compiled(_QUOTED_LINE).match(line) or compiled(_CODE_LINE).match(line))


def _introduces_rest(line: str) -> bool:
    return compiled(_INTRODUCTION).search(line[-120:]) is not None or introduces_at_end(line)


def _without_blocks(text: str, *, by_user: bool) -> tuple[str, list[str]]:
    """Take out elements, such as <private>…</private> or <email from="qa">…</email>, with all that is in them.

    An element runs to the last tag that closes its name, because its text may close and open tags itself. One that is
    never closed runs to the end if it begins a line; a placeholder, as in "feature/<ticket-id>" or "<ticket-id>: text",
    takes nothing with it. A tag that closes nothing shows that a text came from elsewhere: then all of it is quoted.
    In the text of an agent, which writes about HTML, only the elements of programs count.
    """
    tags = [*compiled(_TAG).finditer(text)]
    if not tags:
        return text, []
    blocks = _blocks(text, tags, by_user=by_user)
    if blocks is None:
        return "", [text]
    ends = [0, *(block.end for block in blocks)]
    starts = [*(block.start for block in blocks), len(text)]
    kept = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return "\n".join(kept), [text[block.opens : block.end] for block in blocks]


class _Block(NamedTuple):
    """An element with its tags: where it begins and ends, and where its text begins."""

    start: int
    opens: int
    end: int


def _blocks(text: str, tags: Sequence[re.Match[str]], *, by_user: bool) -> list[_Block] | None:
    """Find the outermost elements; None if the user's text has a tag that closes nothing."""
    last_end = {tag["name"].lower(): tag.end() for tag in tags if tag["closes"]}
    found: list[_Block] = []
    place = 0
    while (tag := compiled(_CODE_OR_TAG).search(text, place)) is not None:
        place = tag.end()
        if tag["fence"]:
            place = _fence_end(text, place, tag["fence"])
        elif not tag["name"] or not (by_user or _is_program_tag(tag["name"].lower())):
            continue
        elif tag["closes"]:
            if by_user and not _is_code_indent(tag["indent"]):
                return None
        elif end := _block_end(tags, tag, last_end, len(text)):
            found.append(_Block(tag.start(), place, end))
            place = end
    return found


def _block_end(tags: Sequence[re.Match[str]], opening: re.Match[str], last_end: dict[str, int], size: int) -> int:
    """Return where the element of a tag ends; 0 if the tag is only a placeholder."""
    if last_end.get(opening["name"].lower(), 0) > opening.end():
        return _element_end(tags, opening, last_end)
    return size if _is_unclosed_element(opening) else 0


def _is_code_indent(indent: str | None) -> bool:
    return len((indent or "").expandtabs(4)) >= CODE_INDENT


def _element_end(tags: Sequence[re.Match[str]], opening: re.Match[str], last_end: dict[str, int]) -> int:
    """Where an element ends: with its last tag, or with that of an element which begins in it and ends later."""
    end = last_end[opening["name"].lower()]
    for tag in tags[bisect_left(tags, opening.end(), key=lambda tag: tag.start()) :]:
        if tag.start() >= end:
            break
        if not tag["closes"]:
            end = max(end, last_end.get(tag["name"].lower(), 0))
    return end


def _is_unclosed_element(tag: re.Match[str]) -> bool:
    """Say whether a tag that nothing closes is an element: it begins a line, or ends one and has attributes."""
    if (tag["more"] or "").endswith("/") or tag["name"].lower() in _EMPTY_TAGS:
        return False
    if tag["indent"] is not None:
        return not _is_code_indent(tag["indent"]) and not _is_placeholder(tag)
    return tag["ends"] is not None and "=" in (tag["more"] or "")


def _is_placeholder(tag: re.Match[str]) -> bool:
    """Match a tag without attributes that is a word of its line; a sentence right behind a tag is an element's text."""
    if tag["more"] or tag["name"].lower() in _HOST_TAGS:
        return False
    behind = tag.string[tag.end() : tag.end() + 2]
    return behind[:1] in tuple(_JOINTS) or (behind[:1] == " " and behind[1:].islower())


def _fence_end(text: str, place: int, fence: str) -> int:
    end = compiled(rf"(?m)^[ \t]{{0,3}}{fence}[^\n]*").search(text, place)
    return end.end() if end else len(text)


def _is_program_tag(name: str) -> bool:
    return name in _BLOCK_TAGS or "-" in name or "_" in name  # no element of HTML has such a name


def _without_pasted_paragraphs(text: str, *, is_long_pasted: bool) -> tuple[str, list[str]]:
    """Without paragraphs in quotation marks and, of a very long text, without all between the first and the last."""
    paragraphs = [part for part in compiled(r"\n[ \t]*\n").split(text) if part.strip()]
    is_document = is_long_pasted and sum(map(len, paragraphs)) > DOCUMENT_CHARS
    last = len(paragraphs) - 1
    own: list[str] = []
    quoted: list[str] = []
    for at, part in enumerate(paragraphs):
        is_pasted = is_document and (0 < at < last or len(part) > DOCUMENT_CHARS // 2)
        is_quoted = is_pasted or compiled(_IN_QUOTES).fullmatch(part.strip()) is not None
        (quoted if is_quoted else own).append(part)
    return ("\n\n".join(own), quoted) if quoted else (text, [])


def _without_speech(text: str) -> tuple[str, str, list[str]]:
    """Take out what others said: what "The page says:" introduces, and statements in quotation marks.

    Returns the text to read, the same without the words of others that remain in it, and those words. What a person is
    named for ("Mara says: …") is read, but not vouched for: the user retells it and may be wrong about it. So is a long
    quotation within a sentence of the user's; one of many lines or sentences is left out.
    """
    text, said = text[:OWN_CHARS], [text[OWN_CHARS:]]
    # A short one stays the user's where it is used, but an agent that says it alone repeats a quotation.
    said += [text[one.opens : one.closes] for one in quoted_prose(text) if one.words_in(text) >= CLAUSE_WORDS]
    cuts: list[tuple[int, int, bool]] = []  # from, to, and whether it is read
    done = 0
    for start, end, is_read in sorted((*_introduced(text), *_quoted_statements(text))):
        if start >= done:
            cuts.append((start, end, is_read))
            said.append(text[start:end])
            done = end
        elif end > done:  # a quotation that goes on behind a paragraph
            cuts.append((done, end, is_read))
            said.append(text[done:end])
            done = end
    own = vouched = ""
    at = 0
    for start, end, is_read in cuts:
        own += text[at:start] + (text[start:end] if is_read else ELISION)
        vouched += text[at:start] + ELISION
        at = end
    return own + text[at:], vouched + text[at:], said


def _introduced(text: str) -> Iterator[tuple[int, int, bool]]:
    """Find what is introduced: up to the last quotation of its paragraph if it begins with one, else all of that."""
    spans = quotations(text)
    done = 0
    for head in introductions(text):
        if head.start < done or any(span.start < head.end <= span.end for span in spans):
            continue
        done = paragraph_end(text, head.end)
        begin = done - len(text[head.end : done].lstrip())
        if any(span.start == begin for span in spans):
            done = max(span.end for span in spans if begin <= span.start < done)
            yield begin, done, False
        elif names_reporter(text[head.start : head.end - 1]):
            end = min(done, sentence_end(text, begin))
            yield head.start, end, True
            yield end, done, False
        else:
            yield head.end, done, False


def _quoted_statements(text: str) -> Iterator[tuple[int, int, bool]]:
    for span in quoted_prose(text):
        words = span.words_in(text)
        if goes_on(text, span) or (words >= CLAUSE_WORDS and is_introduced(text, span)):
            yield span.opens, span.closes, False
        elif words >= QUOTED_RUN_WORDS:
            yield span.opens, span.closes, True


class Quotes:
    """The words of a session that are not its speakers' own, message by message as they come in."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.upto = 0  # the number of the last message that was added
        self._text = "\n"  # letters, parts separated by line breaks
        # Of each part: where it ends, the number of its message, its trust, and its folded text.
        self._ends: list[int] = []
        self._numbers: list[int] = []
        self._trusts: list[Trust] = []
        self._folded: list[str] = []
        self._standing: dict[str, int] = {}  # letters of a short sentence → the first part that it stands in
        self._n_split = 0  # parts whose sentences are in there
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
            self._folded.append(folded(quoted))
            texts.append(f"{letters_in(self._folded[-1])}\n")
            at += len(texts[-1])
            self._ends.append(at)
            self._numbers.append(message.n)
            self._trusts.append(message.trust if is_low else "unknown")
        self._text = "".join(texts)

    def blocks(self) -> frozenset[int]:
        """Return hashes of short stretches of all quotations, to sort out many texts that share none of them."""
        text = self._text
        return frozenset(hash(text[at : at + BLOCK_LETTERS]) for at in range(0, len(text), BLOCK_STEP))

    def trust_of(self, text: str, spoken: Trust, *, by: Message | None = None, known: str = "") -> Trust:
        """The trust of a text that was said with trust `spoken`: that, or less if a sentence of it is a quotation.

        `by` is the message that it was taken from: what came later was not quoted, and a person who writes the same
        words says them as their own. So does who repeats `known`, their own earlier text.
        """
        if spoken in LOW_TRUST or not self._ends:
            return spoken
        n_parts = len(self._ends) if by is None else bisect_right(self._numbers, by.n)
        own = letters_of(own_words_in(by) if by is not None and spoken == "user" else known)
        found = [spoken]
        parts = sentences(text)
        places: dict[str, int] = {}  # of runs, which occur in a sentence and in the whole text
        # The whole text also: a quotation of many short sentences has its runs across them.
        for sentence in parts if len(parts) == 1 else (*parts, text):
            if (part := self._repeated_part(sentence, n_parts, own, places)) is not None:
                found.append(self._trusts[part])
        return least(*found)

    def _repeated_part(self, sentence: str, n_parts: int, own: str, places: dict[str, int]) -> int | None:
        """Which of the first parts a sentence repeats; None if it is not a quotation."""
        words, is_code = _marked_words(sentence)
        runs = [*_runs_of(words)]
        if not runs:
            return self._standing_part(sentence, words, is_code, n_parts, own)
        upto = self._ends[n_parts - 1] if n_parts else 0
        covered = [False] * len(words)
        place = longest = begin = 0
        end = -1  # of the words in a row that stand there
        for start, stop, letters in runs:
            if letters not in places:
                places[letters] = -1 if letters in own else self._text.find(letters, 0, upto)
            if places[letters] < 0:
                end = -1
                continue
            place = places[letters]
            begin = begin if start < end else start
            end = stop
            longest = max(longest, end - begin)
            covered[start:stop] = [True] * (stop - start)
        return bisect_right(self._ends, place) if longest and _is_quoted(longest, covered, is_code) else None

    def _standing_part(
        self, sentence: str, words: Sequence[str], is_code: Sequence[bool], n_parts: int, own: str
    ) -> int | None:
        """Which of the first parts holds a short sentence as a whole one; None if none does, or if it says little."""
        letters = letters_of(sentence)
        is_heading = sentence.rstrip().endswith(":") or sentence.lstrip().startswith("#")
        says_little = is_code.count(False) < SHORT_WORDS or _STATUS_WORDS.issuperset(words)
        if is_heading or says_little or letters in own or letters not in self._text:
            return None
        self._split_standing()
        found = self._standing.get(letters)
        return found if found is not None and found < n_parts else None

    def _split_standing(self) -> None:
        """Split the parts that were added since into their short sentences."""
        for part in range(self._n_split, len(self._folded)):
            for one in compiled(_STANDING_END).split(self._folded[part]):
                self._standing.setdefault(letters_in(one), part)
        self._n_split = len(self._folded)


def _is_quoted(longest: int, covered: Sequence[bool], is_code: Sequence[bool]) -> bool:
    """Return True if so many words in a row, or so large a share of the words, stand in a quotation."""
    prose = [hit for hit, code in zip(covered, is_code, strict=True) if not code]
    counted = prose if len(prose) >= RUN_WORDS else covered
    return longest >= QUOTED_RUN_WORDS or sum(counted) >= QUOTED_SHARE * len(counted)


def shares_letters(text: str, blocks: frozenset[int]) -> bool:
    """Return False if a text has no stretch of letters in common with quotations: then it cannot repeat one."""
    lengths = [len(letters_of(sentence)) for sentence in sentences(text)]
    if any(0 < length < RUN_LETTERS for length in lengths) or compiled(_DENSE).search(text):
        return True
    letters = letters_of(text)
    return any(hash(letters[at : at + BLOCK_LETTERS]) in blocks for at in range(len(letters) - BLOCK_LETTERS + 1))


def _runs_of(words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the runs of words that are long enough to compare: their first word, the end, and their letters."""
    letters = [letters_in(word) for word in words]
    weights = [3 if compiled(_DENSE).match(word) else len(one) for word, one in zip(words, letters, strict=True)]
    for start in range(len(words) - RUN_WORDS + 1):
        stop = start + RUN_WORDS
        while stop < len(words) and sum(weights[start:stop]) < RUN_LETTERS:
            stop += 1
        if sum(weights[start:stop]) >= RUN_LETTERS:
            yield start, stop, "".join(letters[start:stop])


def first_said(text: str, messages: Iterable[Message]) -> Message | None:
    """The first message in which an agent says these words, in its answer or in what it gives to a tool."""
    wanted = letters_of(text)
    own = (one for one in messages if one.trust == "agent" and one.role in ("assistant", "tool_call"))
    told = ((one, letters_of("\n".join((one.content, *_strings_in(one.input))))) for one in own)
    return next((one for one, letters in told if wanted in letters), None)


def _strings_in(value: Any) -> Iterator[str]:
    """The texts in the input of a tool."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if isinstance(value, str):
        yield value
    for one in inner:
        yield from _strings_in(one)


def words_of(text: str) -> list[str]:
    """The words of a text, folded; a path, a name from code and an option are one word each."""
    return compiled(_WORD).findall(folded(text))


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
