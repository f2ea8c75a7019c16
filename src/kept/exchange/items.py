"""Items: statements that rules take out of the files of a project, each cited by file and line; and items.json.

    markdown    headings, lists, decision records, warnings, definitions       needs markdown-it-py (extra `files`)
    code        marked comments (TODO, NOTE, DECISION …) of any language, docstrings of Python

Rule: an item says something that can be read alone. Prose that only leads on is left out.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct

ItemType = Literal["entity", "claim", "task", "decision", "note"]
ITEM_TYPES: tuple[ItemType, ...] = ("entity", "claim", "task", "decision", "note")

MAX_TITLE = 80
MAX_CONTENT = 500
MIN_WORDS = 3
MIN_MARKED_WORDS = 2  # after HACK or TODO: the author marked it on purpose

MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
# How a comment begins, by the ending of the file.
_HASH = "py pyi sh bash zsh rb pl r jl yaml yml toml cfg ini conf mk cmake dockerfile tf nix ex exs"
_SLASH = (
    "js jsx ts tsx mjs cjs java kt kts scala c h cc cpp hpp cs go rs swift php dart zig proto groovy gradle css scss"
)
_DASH = "sql lua hs elm adb ads"
COMMENTS = {
    **{f".{ending}": "#" for ending in _HASH.split()},
    **{f".{ending}": "//" for ending in _SLASH.split()},
    **{f".{ending}": "--" for ending in _DASH.split()},
}
NAMES = {"makefile": "#", "dockerfile": "#", "justfile": "#", "rakefile": "#", "gemfile": "#"}

# What the word at the beginning of a comment makes of it.
MARKED: dict[str, tuple[ItemType, float]] = {
    **dict.fromkeys(("TODO", "FIXME", "XXX", "HACK", "BUG"), ("task", 0.9)),
    **dict.fromkeys(("DECISION", "ADR", "DECIDED"), ("decision", 0.9)),
    **dict.fromkeys(("NOTE", "NB", "IMPORTANT", "WARNING", "CAUTION", "DANGER", "SAFETY", "SECURITY"), ("note", 0.8)),
    **dict.fromkeys(("RULE", "INVARIANT", "ASSUMPTION", "WHY", "REASON"), ("claim", 0.8)),
}
_MARKED_WORD = re.compile(
    rf"(?:@)?({'|'.join(MARKED)})(?:\([^)\n]{{0,60}}\))?(?:[ \t]*[:\-–—][ \t]*|[ \t]+(?=[A-Z]))(.*)"
)


class CitedItem(Struct, frozen=True, kw_only=True):
    """One statement, the line it begins at, and how sure the rule is."""

    type: ItemType
    title: str
    content: str
    line: int
    confidence: float


def make(
    type: ItemType, title: str, content: str, line: int, confidence: float, *, min_words: int = MIN_WORDS
) -> CitedItem | None:
    """An item, or None if its text is too short to say something."""
    content = " ".join(content.split())
    if len(content) > MAX_CONTENT:
        cut = content[:MAX_CONTENT]
        end = max(cut.rfind(". "), cut.rfind("; "))
        content = cut[: end + 1] if end > MAX_CONTENT // 2 else cut[: MAX_CONTENT - 1].rstrip() + "…"
    if len(re.findall(r"\w+", content)) < min_words or not re.search(r"[^\W\d_]{2}", content):
        return None
    title = " ".join((title or content).replace("`", "").split()).strip(" .:*_#")
    if len(title) > MAX_TITLE:
        title = title[: MAX_TITLE - 1].rsplit(" ", 1)[0] + "…"
    return CitedItem(type=type, title=title or content[:MAX_TITLE], content=content, line=line, confidence=confidence)


def marked(text: str, line: int) -> CitedItem | None:
    """The item of a text that begins with a word such as TODO; None if it begins with none."""
    found = _MARKED_WORD.match(text)
    if found is None:
        return None
    type, confidence = MARKED[found[1]]
    said = found[2].strip()
    title = said if type == "task" else f"{found[1].capitalize()}: {said}"
    return make(type, title, said, line, confidence, min_words=MIN_MARKED_WORDS)


def comment_mark(path: str) -> str | None:
    """How comments begin in this file; None if it is not known as code."""
    pure = PurePosixPath(path.lower())
    return COMMENTS.get(pure.suffix) or NAMES.get(pure.name)


def is_markdown(path: str) -> bool:
    return PurePosixPath(path.lower()).suffix in MARKDOWN


def item_id(file: str, item: CitedItem) -> str:
    """The name of an item, the same at each extraction as long as it says the same in the same file."""
    said = f"{file}\0{item.type}\0{item.content}"
    return f"item_{blake2b(said.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def to_document(
    id: str, type: str, title: str, content: str, file: str, line: int, confidence: float, at: datetime
) -> dict[str, Any]:
    """An item as it stands in an items.json."""
    return {
        "id": id,
        "type": type,
        "title": title,
        "content": content,
        "sourceFile": file,
        "lineNumber": line,
        "confidence": confidence,
        "extractedAt": at.isoformat().replace("+00:00", "Z"),
    }


def distinct(items: Iterable[CitedItem | None]) -> list[CitedItem]:
    """The items in order, each text once."""
    found: dict[tuple[str, str], CitedItem] = {}
    for item in items:
        if item is not None:
            found.setdefault((item.type, item.content.casefold()), item)
    return sorted(found.values(), key=lambda item: item.line)
