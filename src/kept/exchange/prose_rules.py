"""Rules that make items of paragraphs: decisions, tasks, notes, definitions and firm statements.

Markdown, reStructuredText and doc comments are read into the same blocks, and come here. Rule: a sentence that points
back ("It must …") takes the sentence before it along, or is left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from kept.exchange.items import CitedItem, ItemType, make, marked, new_words
from kept.text import sentences

_DECISION_HEADING = re.compile(
    r"\b(?:key |design |architecture )?decisions?(?: outcome)?\b|^choice$|^outcome$", re.IGNORECASE
)
_CHOSE = re.compile(
    r"\b(?:we|i|they)\s+(?:have\s+)?(?:chose|decided|picked|opted|settled|went with|agreed)\b"
    r"|\b(?:was|were|is|are)\s+chosen (?:because|over|for|since|as|instead)\b|\binstead of\b.{0,60}\bbecause\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“][^\"“”]{1,200}[\"”]")  # a quotation or an example
_LED = re.compile(
    r"^(?:⚠️?\s*)?(note|warning|caution|important|danger|attention|caveat|tip|deprecated|panics|safety|rule|invariant)s?"
    r"\s*[:!–—]\s*",
    re.IGNORECASE,
)
_TERM = re.compile(r"^(.{2,60}?)\s*(?::|[–—]|\s-\s)\s*(\S.*)$", re.DOTALL)
_FIRM = re.compile(
    r"\b(?:must(?: not)?|never|always|only ever|required to|(?:is|are) not (?:allowed|supported|safe)|should not|cannot"
    r"|shouldn't|you can't)\b|^(?:please )?(?:do not|don't)\b",
    re.IGNORECASE,
)
_BACKWARD = re.compile(
    r"(?:it|its|this|these|that|those|they|their|he|she|otherwise|then|also|however|but|and|so|in (?:this|that) case"
    r"|therefore|thus|instead|here|for example|e\.g\.)\b",
    re.IGNORECASE,
)
_CHECKBOX = re.compile(r"^\[([ xX])\]\s+")
_HISTORY = re.compile(
    r"^(?:changelog|changes|history|news|releases?|licen[cs]e|contributors|authors|(?:code[ _-]of[ _-])?conduct"
    r"|thanks|acknowledge?ments|security|governance|sponsors?|backers|support|funding|team|community)\b",
    re.IGNORECASE,
)
_PRAISE = re.compile(r"\b(?:features|benchmarks?|highlights|ecosystem)\b|^why\b", re.IGNORECASE)
_TEMPLATE = re.compile(r"(?:issue|pull_request|merge_request)_template(?:/|\.|$)", re.IGNORECASE)
_POINTER = re.compile(r"(?:see|refer to|cf\.)\s", re.IGNORECASE)  # says nothing by itself
_CLAIMS = ("rule", "invariant")
LABELS = "labels"  # the lead of a block that was joined from labelled ones
MIN_FIRM, MAX_FIRM, MIN_FIRM_WORDS = 25, 300, 5  # characters and words of a sentence that is a claim
BRIEF_WORDS = 7  # a shorter claim needs the heading above it to be understood
MIN_DEFINING_WORDS = 3  # beside the term


class TextBlock(NamedTuple):
    """A paragraph, list entry or table row: its plain text, and the term in front, in bold or code.

    `lead` names the directive or section around it, such as Warning. `subject` is the thing it documents.
    """

    text: str
    line: int
    headings: tuple[str, ...] = ()
    term: str = ""
    is_entry: bool = False
    is_quote: bool = False
    lead: str = ""
    subject: str = ""


Found = Iterator[CitedItem | None]  # nothing: the rule does not fit; None: it fits, and the text says too little


def item_of(block: TextBlock) -> CitedItem | None:
    """Return the item of a block, by the first rule that fits."""
    if any(_HISTORY.match(one) or _PRAISE.search(one) for one in block.headings[1:]):
        return None
    if box := _CHECKBOX.match(block.text):
        return _made("task", block, block.text[box.end() :], 0.9) if box[1] == " " else None
    return next((found for rule in _RULES for found in rule(block)), None)


def is_about_others(path: str) -> bool:
    """Return True for a page that lists versions or people, or a form to fill in."""
    return bool(_HISTORY.match(PurePosixPath(path).stem) or _TEMPLATE.search(path))


def is_note(block: TextBlock) -> bool:
    """Return True if a block says by its first word or its directive that it is a note or a warning."""
    return bool(block.lead or _LED.match(block.text))


def joined_labels(blocks: Sequence[TextBlock]) -> list[TextBlock]:
    """Join blocks that begin with labels, such as Symptom, Reason and Solution, below each heading.

    A term that is explained stands once on a page; a label comes again and again.
    """
    times = Counter(block.term for block in blocks if _meaning(block))
    joined: list[TextBlock] = []
    for block in blocks:
        if times[block.term] < 2 or not _meaning(block):
            joined.append(block)
        elif joined and joined[-1].lead == LABELS and joined[-1].headings == block.headings:
            joined[-1] = joined[-1]._replace(text=f"{_ended(joined[-1].text)} {block.text}")
        else:
            joined.append(block._replace(term="", lead=LABELS))
    return joined


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def is_of_decision(block: TextBlock) -> bool:
    """Return True if a heading over the block, other than the title of the page, says Decision."""
    return any(_DECISION_HEADING.search(heading) for heading in block.headings[1:])


def _made(type: ItemType, block: TextBlock, content: str, confidence: float, lead: str = "") -> CitedItem | None:
    about = f"{block.subject}: " if block.subject else ""
    return make(type, about + content, block.line, confidence, lead=lead)


def _marker(block: TextBlock) -> Found:
    if (found := marked(block.text, block.line)) is not None:
        yield found


def _labels(block: TextBlock) -> Found:
    if block.lead == LABELS:
        yield _made("note", block, block.text, 0.6)


def _note(block: TextBlock) -> Found:
    led = _LED.match(block.text)
    lead = block.lead or (led[1].capitalize() if led else "")
    content = block.text[led.end() :] if led else block.text
    if lead:
        type: ItemType = "claim" if lead.lower() in _CLAIMS else "note"
        yield None if _POINTER.match(content) else _made(type, block, content, 0.8, lead)


def _decision(block: TextBlock) -> Found:
    if chosen := _choice(block.text):
        yield _made("decision", block, chosen, 0.7)
    elif block.is_entry and is_of_decision(block):
        yield _made("decision", block, block.text, 0.8)


def _definition(block: TextBlock) -> Found:
    if meaning := _meaning(block):
        says_more = new_words(block.term, meaning) >= MIN_DEFINING_WORDS
        about = _below_heading(block) if block.is_entry else block  # options in lists are named briefly
        yield _made("entity", about, block.text, 0.6) if says_more else None


def _meaning(block: TextBlock) -> str:
    """Return the text behind the term of a block; "" if none is explained."""
    defined = _TERM.match(block.text) if block.term else None
    return defined[2] if defined and defined[1].strip() == block.term else ""


def _below_heading(block: TextBlock) -> TextBlock:
    """Return the block with the heading above it as subject, unless that is the title of the page."""
    return block._replace(subject=block.subject or block.headings[-1]) if len(block.headings) > 1 else block


def _claim(block: TextBlock) -> Found:
    said = sentences(block.text, is_prose=True)
    at = next((n for n, one in enumerate(said) if _is_firm(one)), None)
    if at is None or block.text.endswith((":", "?")):
        return
    if not _BACKWARD.match(said[at]):
        is_brief = len(said[at].split()) <= BRIEF_WORDS
        yield _made("claim", _below_heading(block) if is_brief else block, said[at], 0.6)
    elif at and not _BACKWARD.match(said[at - 1]):
        yield _made("claim", block, f"{said[at - 1]} {said[at]}", 0.6)


def _is_firm(sentence: str) -> bool:
    if not MIN_FIRM <= len(sentence) <= MAX_FIRM or len(sentence.split()) < MIN_FIRM_WORDS:
        return False
    return bool(_FIRM.search(sentence)) and not sentence.endswith((":", "?"))


# Tried in this order.
_RULES = (_marker, _labels, _note, _decision, _definition, _claim)


def _choice(text: str) -> str:
    """Return the sentence that tells a choice, and those behind it, since the reason follows; "" if there is none."""
    said = sentences(text)
    at = next((n for n, one in enumerate(said) if _CHOSE.search(_QUOTED.sub("", one))), None)
    return "" if at is None else " ".join(said[at:])
