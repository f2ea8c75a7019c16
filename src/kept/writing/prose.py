"""Read what somebody said in a message: plain sentences, without decoration and without what others said.

Used by extraction. Rule: only a speaker's own words are read. Private parts, blocks that a program put in, code,
quotations, tables and pasted documents are dropped before the first sentence is looked at. Linear in the text.
"""

from collections.abc import Iterator

from msgspec import Struct

from kept.writing.patterns import pattern

MAX_CHARS = 20_000  # beyond this nobody speaks any more; it is a file
DOCUMENT_CHARS = 1_800  # a message with more prose than this quotes a document between its first and last paragraph
MIN_SENTENCE_CHARS = 8
MAX_SENTENCE_CHARS = 450
MAX_LABEL_CHARS = 60  # of a line that introduces a list, such as "Decisions:"
WRAPPED_CHARS = 60  # a line that is shorter than this was ended, not broken

# What programs put into a conversation under the name of the user.
_BOILERPLATE = (
    "this session is being continued from a previous conversation",
    "[request interrupted",
    "caveat: the messages below were generated",
    "your task is to create a detailed summary of the conversation",
    "base directory for this skill",
)
_TAG = r"<(/?)([a-zA-Z][\w-]{1,40})(?:\s[^<>]{0,500})?>"
_BLOCK_TAGS = frozenset({"private", "analysis", "summary", "thinking", "instructions", "context", "document"})
_FENCE = r"\s{0,3}(?:```|~~~)"
_HEADING = r"(#{1,6}) +([^#\n]{1,200})"
_MARKER = r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?"
_NOT_PROSE = r"\s*(?:>|\||#{1,6}\s|[-=*_]{3,}\s*$|\$ |@@|[+-]{3} |\{|\}|//|/\*|<)"
_LINK = r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{1,500}\)"
_EMPHASIS = r"\*\*|__(?=\S)|(?<=\S)__|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"
_END = r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[^\W_])|(?<=[。！？])"
_ABBREVIATION = r"(?i)(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl|z\.B|bzw|ca)|\b[A-Z])\.$"
_NOT_LETTERS = r"[\W\d_](?<! )"
_CODE_CHARS = frozenset("{}[]<>=;|\\$~^")


class _Paragraph(Struct, frozen=True):
    text: str
    headings: tuple[str, ...]
    topic: str


class Sentence(Struct, frozen=True):
    """One sentence, the one before it, which may say what "it" is, and the headings that it stands under.

    `topic` is the nearest heading below one that says what kind of thing this is ("Findings", then "How X works").
    """

    text: str
    before: str = ""
    headings: tuple[str, ...] = ()
    topic: str = ""


def sentences(text: str, *, may_be_pasted: bool = False) -> list[Sentence]:
    """The sentences of a message in order. `may_be_pasted`: of a very long text, only both ends are the speaker's."""
    text = text[:MAX_CHARS]
    if text.lstrip().lower().startswith(_BOILERPLATE):
        return []
    paragraphs = list(_paragraphs(_without_blocks(text)))
    if may_be_pasted and sum(len(paragraph.text) for paragraph in paragraphs) > DOCUMENT_CHARS:
        paragraphs = [each for each in (paragraphs[0], paragraphs[-1]) if len(each.text) <= DOCUMENT_CHARS // 2]
    found: list[Sentence] = []
    before = ""
    for paragraph in paragraphs:
        for sentence in _split(paragraph.text):
            if _is_prose(sentence):
                found.append(Sentence(sentence, before, paragraph.headings, paragraph.topic))
            before = sentence
    return found


def _without_blocks(text: str) -> str:
    """The text without what stands between tags such as <private> or <system-reminder>; unclosed, to its end."""
    if "<" not in text:
        return text
    tags = [tag for tag in pattern(_TAG).finditer(text) if _is_block(tag[2].lower())]
    ends: dict[str, list[int]] = {}
    for tag in reversed(tags):
        if tag[1]:
            ends.setdefault(tag[2].lower(), []).append(tag.end())  # the last end first, so that pop() gives the next
    kept, at = [], 0
    for tag in tags:
        if tag[1] or tag.start() < at:
            continue
        kept.append(text[at : tag.start()])
        closing = ends.get(tag[2].lower(), [])
        while closing and closing[-1] < tag.end():
            closing.pop()
        at = closing.pop() if closing else len(text)
    return "\n".join((*kept, text[at:]))


def _is_block(tag: str) -> bool:
    return tag in _BLOCK_TAGS or "-" in tag or "_" in tag  # no element of HTML has such a name; those of programs do


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """Lines that belong together, without Markdown.

    A long line without an end runs on; any other line is a thought of its own, which a newline marks.
    """
    titles = [""] * 6  # of the headings, by their level
    label = ""  # what introduces a list, such as "Decisions:"
    paragraph = previous = ""
    is_code = False
    for line in [*text.splitlines(), ""]:
        is_fence, is_item = bool(pattern(_FENCE).match(line)), bool(pattern(_MARKER).match(line))
        is_code ^= is_fence
        is_quiet = is_code or is_fence or not line.strip() or (line.startswith("    ") and not is_item)
        is_prose = not is_quiet and not pattern(_NOT_PROSE).match(line)
        heading = None if is_quiet else pattern(_HEADING).match(line)
        if paragraph and (is_item or not is_prose):
            above = [title for title in titles if title]
            topic = above[-1] if len(above) > 1 else label if above else ""
            yield _Paragraph(paragraph, (*above, label) if label else tuple(above), topic)
            if not pattern(_MARKER).match(previous):
                label = paragraph[:-1] if paragraph.endswith(":") and len(paragraph) <= MAX_LABEL_CHARS else ""
            paragraph = ""
        if heading:
            level = len(heading[1])
            titles = [*titles[: level - 1], _plain(heading[2]).rstrip(":"), *[""] * (6 - level)]
            label = ""
        elif is_prose:
            runs_on = len(previous) >= WRAPPED_CHARS and previous[-1] not in ".!?:;"
            paragraph += ("" if not paragraph else " " if runs_on else "\n") + _plain(line)
            previous = line.rstrip()


def _plain(line: str) -> str:
    line = pattern(_MARKER).sub("", line, count=1)
    return " ".join(pattern(_EMPHASIS).sub("", pattern(_LINK).sub(r"\1", line)).split())


def _split(paragraph: str) -> list[str]:
    pieces: list[str] = []
    for piece in (piece for line in paragraph.split("\n") for piece in pattern(_END).split(line)):
        if pieces and pattern(_ABBREVIATION).search(pieces[-1][-8:]):
            pieces[-1] += f" {piece}"
        elif piece.strip():
            pieces.append(piece.strip())
    return pieces


def _is_prose(sentence: str) -> bool:
    """Neither a mere word nor too long, made of words, and no line of a program, a log or a table."""
    if not MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
        return False
    odd = pattern(_NOT_LETTERS).findall(sentence)
    return len(odd) <= 0.4 * (len(sentence) - sentence.count(" ")) and sum(map(_CODE_CHARS.__contains__, odd)) <= 4
