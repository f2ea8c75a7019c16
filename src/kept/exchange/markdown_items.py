"""Items in Markdown: decision records, decisions and tasks in lists, warnings and notes, definitions, firm statements.

Read with markdown-it-py, whose tokens know their lines. Rule: examples in code are not statements.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from kept.exchange.items import CitedItem, distinct, make
from kept.exchange.prose_rules import TextBlock, is_about_others, is_of_decision, item_of, joined_labels

_RECORD_PATH = re.compile(r"(?:^|/)(?:adrs?|decisions?|rfcs?)(?:/|$)", re.IGNORECASE)
_RECORD_NAME = re.compile(r"(?:adr[-_ ]?)?\d{3,4}[-_ ]", re.IGNORECASE)
_NUMBERED = re.compile(r"^(?:adr[-\s]*)?\d{1,4}\s*[.:)\-–—]\s*", re.IGNORECASE)
_STATUS = re.compile(
    r"^(?:[-*\s]*\**status\**\s*[:\-]?\s*)?\W*(accepted|proposed|rejected|deprecated|superseded\b.*)", re.IGNORECASE
)
_ALERT = re.compile(r"^\[!(note|tip|important|warning|caution)\]\s*", re.IGNORECASE)


def items_of(path: str, text: str) -> list[CitedItem]:
    """The items of a Markdown file. Raises ImportError without markdown-it-py."""
    if is_about_others(path):
        return []
    title, blocks = _blocks(text)
    is_record = bool(_RECORD_PATH.search(path) or _RECORD_NAME.match(PurePosixPath(path).name))
    if is_record and title and (record := _record(title, blocks)):
        return distinct([record, *(item_of(block) for block in blocks if not is_of_decision(block))])
    return distinct(map(item_of, joined_labels(blocks)))


def _record(title: str, blocks: Sequence[TextBlock]) -> CitedItem | None:
    """The decision that a decision record is about."""
    body = next(filter(is_of_decision, blocks), None) or next((one for one in blocks if not _status(one)), None)
    if body is None:
        return None
    status = next(filter(None, map(_status, blocks[:6])), "")
    is_over = status.lower().startswith(("rejected", "deprecated", "superseded"))
    content = f"{title}. {body.text}" + (f" ({status.strip().lower()})" if is_over else "")
    return make("decision", _NUMBERED.sub("", content), body.line, 0.5 if is_over else 0.9)


def _status(block: TextBlock) -> str:
    found = _STATUS.match(block.text)
    return found[1] if found else ""


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
            text = _plain(token)
            alert = _ALERT.match(text) if is_quote else None
            text, lead = (text[alert.end() :], alert[1].capitalize()) if alert else (text, "")
            block = TextBlock(text, _line(token), self._names, _term(token), is_entry, is_quote, lead)
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
        yield TextBlock(f"{term}: {'; '.join(one for one in said[1:] if one)}", line, headings, term)


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
