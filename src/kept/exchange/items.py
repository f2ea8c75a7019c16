"""Items: statements that rules take out of the files of a project, each cited by file and line; and items.json.

    markdown_items   Markdown, decision records                    needs markdown-it-py (extra `files`)
    doc_text         reStructuredText, and the text of docstrings and doc comments
    code_items       marked comments (TODO, NOTE, DECISION …) and doc comments of any language, docstrings of Python
    prose_rules      tells which paragraph is a decision, a task, a note, a claim or a definition

Rule: an item says something that can be read alone. Prose that only leads on is left out.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct

from kept.text import sentences

ItemType = Literal["entity", "claim", "task", "decision", "note"]
ITEM_TYPES: tuple[ItemType, ...] = ("entity", "claim", "task", "decision", "note")

MAX_TITLE = 80
MAX_CONTENT = 500
MIN_WORDS = 3
MIN_MARKED_WORDS = 2  # after HACK or TODO: the author marked it on purpose

MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
RST = frozenset({".rst", ".rest"})
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

# The type of an item by the word at its beginning.
MARKED: dict[str, tuple[ItemType, float]] = {
    **dict.fromkeys(("TODO", "FIXME", "XXX", "HACK", "BUG"), ("task", 0.9)),
    **dict.fromkeys(("DECISION", "ADR", "DECIDED"), ("decision", 0.9)),
    **dict.fromkeys(("NOTE", "NB", "IMPORTANT", "WARNING", "CAUTION", "DANGER", "SAFETY", "SECURITY"), ("note", 0.8)),
    **dict.fromkeys(("RULE", "INVARIANT", "ASSUMPTION", "WHY", "REASON"), ("claim", 0.8)),
}
_OWNER = r"(?:\([^)\n]{0,60}\)|\[[^\]\n]{0,60}\])?"  # TODO(ann), TODO[#12]
# In capitals the word is enough; in other letters a colon has to follow, and only the plainest count.
_ANY_CASE = "TODO|FIXME|HACK|NOTE|WARNING|CAUTION|IMPORTANT"
_MARK = re.compile(
    rf"[@\\]?(?:({'|'.join(MARKED)})\b|((?i:{_ANY_CASE}))(?={_OWNER}[ \t]*:)){_OWNER}"
    rf"(?:[ \t]*:+[ \t]*|[ \t]*[/,!–—-]?(?:[ \t]+|$)|/(?=(?:{'|'.join(MARKED)})\b))"
)

_CAMEL = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_WORD = re.compile(r"[A-Za-z]{2,}")
# Words that a summary has beside its name and that say nothing of the thing.
_EMPTY = frozenset(
    "the an of to for and or is are be this that it its in on with by as at from if all any returns return sets set"
    " gets get creates create given value values instance class method function type object new which used use default"
    " specified current whether".split()
)
_LEADS_ON = re.compile(r",? (?:for example|e\.g\.|such as|like this|as follows|like so)[^.!?:]{0,40}:$", re.IGNORECASE)
_ADDRESS = re.compile(r"\w+://\S+")


class CitedItem(Struct, frozen=True, kw_only=True):
    """One statement, the line it begins at, and how sure the rule is."""

    type: ItemType
    title: str
    content: str
    line: int
    confidence: float


def make(
    type: ItemType, content: str, line: int, confidence: float, *, lead: str = "", min_words: int = MIN_WORDS
) -> CitedItem | None:
    """Return an item with its first sentence as title, or None if the text is too short to say something.

    `lead`: a word such as Warning, which only the title repeats.
    """
    content = _LEADS_ON.sub(".", " ".join(content.split()))
    if len(content) > MAX_CONTENT:
        cut = content[:MAX_CONTENT]
        end = max(cut.rfind(". "), cut.rfind("; "))
        content = cut[: end + 1] if end > MAX_CONTENT // 2 else cut[: MAX_CONTENT - 1].rstrip() + "…"
    words = re.findall(r"\w+", _ADDRESS.sub("", content))
    if len(words) < min_words or not re.search(r"[^\W\d_]{2}", content):
        return None
    first = next(iter(sentences(content, is_prose=True)), content)
    title = (f"{lead}: " if lead else "") + first.replace("`", "").strip(" .:*_#")
    if len(title) > MAX_TITLE:
        title = title[: MAX_TITLE - 1].rsplit(" ", 1)[0] + "…"
    return CitedItem(type=type, title=title or content[:MAX_TITLE], content=content, line=line, confidence=confidence)


def new_words(name: str, said: str) -> int:
    """Count the words of an explanation that its name does not have; none if it only leads on."""
    known = {word.lower()[:4] for word in _CAMEL.findall(name.replace("_", " "))}
    words = {word.lower() for word in _WORD.findall(said)} - _EMPTY
    return 0 if said.endswith(":") else len({word for word in words if word[:4] not in known})


def is_marked(text: str) -> bool:
    """Return True if a text begins with a word such as TODO."""
    return _MARK.match(text) is not None


def marked(text: str, line: int) -> CitedItem | None:
    """Return the item of a text that begins with a word such as TODO; None if it begins with none."""
    found = _MARK.match(text)
    if found is None:
        return None
    word = (found[1] or found[2]).upper()
    type, confidence = MARKED[word]
    end = found.end()
    while more := _MARK.match(text, end):
        end = more.end()
    lead = "" if type == "task" else word.capitalize()
    return make(type, text[end:].strip(), line, confidence, lead=lead, min_words=MIN_MARKED_WORDS)


def comment_mark(path: str) -> str | None:
    """How comments begin in this file; None if it is not known as code."""
    pure = PurePosixPath(path.lower())
    return COMMENTS.get(pure.suffix) or NAMES.get(pure.name)


def is_markdown(path: str) -> bool:
    return PurePosixPath(path.lower()).suffix in MARKDOWN


def is_rst(path: str) -> bool:
    return PurePosixPath(path.lower()).suffix in RST


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
