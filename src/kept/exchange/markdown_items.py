"""Items in Markdown: decision records, decisions and tasks in lists, warnings and notes, definitions, firm statements.

Read with markdown-it-py, whose tokens know their lines. Rule: examples in code are not statements.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from kept.exchange.items import CitedItem, ItemType, distinct, make, marked
from kept.text import sentences

_RECORD_PATH = re.compile(r"(?:^|/)(?:adrs?|decisions?|rfcs?)(?:/|$)", re.IGNORECASE)
_RECORD_NAME = re.compile(r"(?:adr[-_ ]?)?\d{3,4}[-_ ]", re.IGNORECASE)
_NUMBERED = re.compile(r"^(?:adr[-\s]*)?\d{1,4}\s*[.:)\-–—]\s*", re.IGNORECASE)
_DECISION_HEADING = re.compile(
    r"\b(?:key |design |architecture )?decisions?(?: outcome)?\b|^choice$|^outcome$", re.IGNORECASE
)
_STATUS = re.compile(
    r"^(?:[-*\s]*\**status\**\s*[:\-]?\s*)?\W*(accepted|proposed|rejected|deprecated|superseded\b.*)", re.IGNORECASE
)
_CHOSE = re.compile(
    r"\b(?:we|i|they)\s+(?:have\s+)?(?:chose|decided|picked|opted|settled|went with|agreed)\b"
    r"|\b(?:was|were|is|are)\s+chosen (?:because|over|for|since|as|instead)\b|\binstead of\b.{0,60}\bbecause\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“][^\"“”]{1,200}[\"”]")  # a quotation or an example
_ALERT = re.compile(r"^\[!(note|tip|important|warning|caution)\]\s*", re.IGNORECASE)
_LED = re.compile(
    r"^(?:⚠️?\s*)?(note|warning|caution|important|danger|attention|caveat|tip)s?\s*[:!–—]\s*", re.IGNORECASE
)
_TERM = re.compile(r"^(.{2,60}?)\s*(?::|[–—]|\s-\s)\s*(\S.*)$", re.DOTALL)
_FIRM = re.compile(
    r"\b(?:must(?: not)?|never|always|only ever|required to|is not allowed|are not allowed)\b", re.IGNORECASE
)
_CHECKBOX = re.compile(r"^\[([ xX])\]\s+")
_HISTORY = re.compile(r"^(?:changelog|changes|history|news|releases?|licen[cs]e|contributors|authors)\b", re.IGNORECASE)


class TextBlock(NamedTuple):
    """A paragraph, list entry or table row: its plain text, and what stands in front in bold or code."""

    text: str
    line: int
    headings: tuple[str, ...]
    term: str
    is_entry: bool
    is_quote: bool


def items_of(path: str, text: str) -> list[CitedItem]:
    """The items of a Markdown file. Raises ImportError without markdown-it-py."""
    if _HISTORY.match(PurePosixPath(path).stem):
        return []
    title, blocks = _blocks(text)
    is_record = bool(_RECORD_PATH.search(path) or _RECORD_NAME.match(PurePosixPath(path).name))
    if is_record and title and (record := _record(title, blocks)):
        return distinct([record, *(_item(block) for block in blocks if not _is_of_decision(block))])
    return distinct(map(_item, blocks))


def _record(title: str, blocks: Sequence[TextBlock]) -> CitedItem | None:
    """The decision that a decision record is about."""
    body = next(filter(_is_of_decision, blocks), None) or next((one for one in blocks if not _status(one)), None)
    if body is None:
        return None
    status = next(filter(None, map(_status, blocks[:6])), "")
    is_over = status.lower().startswith(("rejected", "deprecated", "superseded"))
    content = f"{title}. {body.text}" + (f" ({status.strip().lower()})" if is_over else "")
    return make("decision", _NUMBERED.sub("", title), _NUMBERED.sub("", content), body.line, 0.5 if is_over else 0.9)


def _status(block: TextBlock) -> str:
    found = _STATUS.match(block.text)
    return found[1] if found else ""


def _is_of_decision(block: TextBlock) -> bool:
    return any(_DECISION_HEADING.search(heading) for heading in block.headings[1:])


def _item(block: TextBlock) -> CitedItem | None:
    """What a block is, by the first rule that fits."""
    if any(_HISTORY.match(one) for one in block.headings[1:]):
        return None
    if box := _CHECKBOX.match(block.text):
        return _made("task", block, block.text[box.end() :], 0.9) if box[1] == " " else None
    return next((found for rule in _RULES for found in rule(block)), None)


Found = Iterator[CitedItem | None]  # nothing: the rule does not fit; None: it fits, and the text says too little


def _made(type: ItemType, block: TextBlock, content: str, confidence: float, title: str = "") -> CitedItem | None:
    return make(type, title or content, content, block.line, confidence)


def _marker(block: TextBlock) -> Found:
    if (found := marked(block.text, block.line)) is not None:
        yield found


def _alert(block: TextBlock) -> Found:
    if block.is_quote and (led := _ALERT.match(block.text)):
        yield _led_note(block, led, 0.85)


def _note(block: TextBlock) -> Found:
    if led := _LED.match(block.text):
        yield _led_note(block, led, 0.8)


def _led_note(block: TextBlock, led: re.Match[str], confidence: float) -> CitedItem | None:
    content = block.text[led.end() :]
    return _made("note", block, content, confidence, title=f"{led[1].capitalize()}: {content}")


def _decision(block: TextBlock) -> Found:
    if chosen := _choice(block.text):
        yield _made("decision", block, chosen, 0.7, title=block.headings[-1] if block.headings else "")
    elif block.is_entry and _is_of_decision(block):
        yield _made("decision", block, block.text, 0.8)


def _definition(block: TextBlock) -> Found:
    if block.term and (defined := _TERM.match(block.text)) and defined[1].strip() == block.term:
        yield _made("entity", block, block.text, 0.6, title=block.term)


def _claim(block: TextBlock) -> Found:
    firm = [one for one in sentences(block.text) if _FIRM.search(one) and 20 <= len(one) <= 300]
    if firm and not block.text.endswith((":", "?")):
        yield _made("claim", block, firm[0], 0.6)


# Tried in this order.
_RULES = (_marker, _alert, _note, _decision, _definition, _claim)


def _choice(text: str) -> str:
    """What a text says was chosen, from that sentence on, since the reason follows; "" if nothing was."""
    said = sentences(text)
    at = next((n for n, one in enumerate(said) if _CHOSE.search(_QUOTED.sub("", one))), None)
    return "" if at is None else " ".join(said[at:])


def _blocks(text: str) -> tuple[str, list[TextBlock]]:
    """The first heading, and every block below the headings it stands under."""
    from markdown_it import MarkdownIt  # an optional package

    reading = _Reading()
    for token in MarkdownIt("commonmark").enable("table").parse(_without_front_matter(text)):
        reading.take(token)
    return reading.title, reading.blocks


class _Reading:
    """The blocks so far, and what the next token stands in: a heading, quotes, lists or a row of a table."""

    def __init__(self) -> None:
        self.title = ""
        self.blocks: list[TextBlock] = []
        self._headings: list[tuple[int, str]] = []
        self._level = 0
        self._depths = {"blockquote": 0, "list_item": 0}
        self._row: list[Any] | None = None
        self._row_line = 0

    def take(self, token: Any) -> None:
        name, _, _ = token.type.rpartition("_")
        if token.type == "inline":
            self._take_text(token)
        elif name == "heading":
            self._level = int(token.tag[1]) if token.nesting > 0 else 0
        elif name in self._depths:
            self._depths[name] += token.nesting
        elif token.type == "tr_open":
            self._row, self._row_line = [], _line(token)
        elif token.type == "tr_close":
            self.blocks += _row(self._row or (), self._row_line, self._names)
            self._row = None

    def _take_text(self, token: Any) -> None:
        if self._level:
            said = _plain(token)
            self._headings = [*(one for one in self._headings if one[0] < self._level), (self._level, said)]
            self.title = self.title or said
        elif self._row is not None:
            self._row.append(token)
        else:
            is_entry, is_quote = self._depths["list_item"] > 0, self._depths["blockquote"] > 0
            block = TextBlock(_plain(token), _line(token), self._names, _term(token), is_entry, is_quote)
            self.blocks.append(block)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._headings)


def _line(token: Any) -> int:
    return int((token.map or [0])[0]) + 1


def _row(cells: Sequence[Any], line: int, headings: tuple[str, ...]) -> Iterator[TextBlock]:
    """A row of a table whose first cell is a name in code or bold: a definition."""
    said = [_plain(cell) for cell in cells]
    if len(said) >= 2 and (term := _term(cells[0])) and term == said[0] and said[-1]:
        yield TextBlock(f"{term}: {'; '.join(one for one in said[1:] if one)}", line, headings, term, False, False)


def _plain(token: Any) -> str:
    """The text of a block without its markup."""
    parts = []
    for child in token.children or ():
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join("".join(parts).split())


def _term(token: Any) -> str:
    """What stands in bold or code at the beginning; "" if nothing does."""
    children = [child for child in token.children or () if child.type != "text" or child.content.strip()]
    if not children:
        return ""
    if children[0].type == "code_inline":
        return str(children[0].content).strip()
    if children[0].type == "strong_open" and len(children) > 1:
        return str(children[1].content).strip().rstrip(":").strip()
    return ""


def _without_front_matter(text: str) -> str:
    """The text with blank lines in the place of front matter, so that line numbers stay."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---", 3)
    return text if end < 0 else "\n" * text.count("\n", 0, end + 1) + "\n" + text[end + 4 :].partition("\n")[2]
