"""Items in Markdown: decision records, decisions and tasks in lists, warnings and notes, definitions, firm statements.

Read with markdown-it-py, whose tokens know their lines. Rule: examples in code are not statements.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from kept.exchange.items import CitedItem, distinct, make, marked
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
_QUOTED = re.compile(r"[\"“][^\"“”]{1,200}[\"”]")  # somebody else's words, or an example
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
    said = [block for block in blocks if any(_DECISION_HEADING.search(heading) for heading in block.headings[1:])]
    status = next((found[1] for block in blocks[:6] if (found := _STATUS.match(block.text))), "")
    body = said or [block for block in blocks if not _STATUS.match(block.text)]
    if not body:
        return None
    is_over = status.lower().startswith(("rejected", "deprecated", "superseded"))
    content = f"{title}. {body[0].text}" + (f" ({status.strip().lower()})" if is_over else "")
    return make("decision", _NUMBERED.sub("", title), _NUMBERED.sub("", content), body[0].line, 0.5 if is_over else 0.9)


def _is_of_decision(block: TextBlock) -> bool:
    return any(_DECISION_HEADING.search(heading) for heading in block.headings[1:])


def _item(block: TextBlock) -> CitedItem | None:
    """What a block is, by the first rule that fits."""
    text, heading = block.text, block.headings[-1] if block.headings else ""
    if any(_HISTORY.match(one) for one in block.headings[1:]):
        return None
    if box := _CHECKBOX.match(text):
        return make("task", text[box.end() :], text[box.end() :], block.line, 0.9) if box[1] == " " else None
    if (found := marked(text, block.line)) is not None:
        return found
    if alert := _ALERT.match(text) if block.is_quote else None:
        return make("note", f"{alert[1].capitalize()}: {text[alert.end() :]}", text[alert.end() :], block.line, 0.85)
    if led := _LED.match(text):
        return make("note", f"{led[1].capitalize()}: {text[led.end() :]}", text[led.end() :], block.line, 0.8)
    if chosen := _choice(text):
        return make("decision", heading or chosen, chosen, block.line, 0.7)
    if block.is_entry and _is_of_decision(block):
        return make("decision", text, text, block.line, 0.8)
    if block.term and (defined := _TERM.match(text)) and defined[1].strip() == block.term:
        return make("entity", block.term, text, block.line, 0.6)
    firm = [one for one in sentences(text) if _FIRM.search(one) and 20 <= len(one) <= 300]
    if firm and not text.endswith((":", "?")):
        return make("claim", firm[0], firm[0], block.line, 0.6)
    return None


def _choice(text: str) -> str:
    """What a text says was chosen, from that sentence on, since the reason follows; "" if nothing was."""
    said = sentences(text)
    at = next((n for n, one in enumerate(said) if _CHOSE.search(_QUOTED.sub("", one))), None)
    return "" if at is None else " ".join(said[at:])


def _blocks(text: str) -> tuple[str, list[TextBlock]]:
    """The first heading, and every block below the headings it stands under."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(_without_front_matter(text))
    headings: list[tuple[int, str]] = []
    blocks: list[TextBlock] = []
    title, level, quotes, entries, row_line = "", 0, 0, 0, 0
    is_row, row = False, list[Any]()
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "heading_close":
            level = 0
        elif token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type in ("list_item_open", "list_item_close"):
            entries += token.nesting
        elif token.type == "tr_open":
            is_row, row, row_line = True, [], (token.map or [0])[0] + 1
        elif token.type == "tr_close":
            blocks += _row(row, row_line, headings)
            is_row = False
        elif token.type == "inline" and level:
            said = _plain(token)
            headings = [*(one for one in headings if one[0] < level), (level, said)]
            title = title or said
        elif token.type == "inline" and is_row:
            row.append(token)
        elif token.type == "inline":
            names = tuple(name for _, name in headings)
            line = (token.map or [0])[0] + 1
            blocks.append(TextBlock(_plain(token), line, names, _term(token), entries > 0, quotes > 0))
    return title, blocks


def _row(cells: Sequence[Any], line: int, headings: Sequence[tuple[int, str]]) -> Iterator[TextBlock]:
    """A row of a table whose first cell is a name in code or bold: a definition."""
    said = [_plain(cell) for cell in cells]
    if len(said) >= 2 and (term := _term(cells[0])) and term == said[0] and said[-1]:
        names = tuple(name for _, name in headings)
        yield TextBlock(f"{term}: {'; '.join(one for one in said[1:] if one)}", line, names, term, False, False)


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
