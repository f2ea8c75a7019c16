"""Items in code: marked comments of any language, and the docstrings of Python.

Comments of Python are found by its tokenizer, so that a `#` in a string is none; of other languages by how they begin.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from kept.exchange.items import CitedItem, ItemType, comment_mark, distinct, make, marked

Comment = tuple[int, int, str]  # the line, the column it begins in, and the text without the mark

_BLOCK = re.compile(r"/\*+(.*?)\*/", re.DOTALL)
_SPHINX = re.compile(r"\.\.[ \t]+(note|warning|caution|important|deprecated|danger)::[ \t]*(.*)", re.IGNORECASE)
_LED = re.compile(r"(Rule|Note|Warning|Caution|Important|Invariant|Caveat)s?:[ \t]+(\S.*)")
_DIRECTIVE = re.compile(r"(?:pragma|noqa|pylint|mypy|fmt|eslint|ruff|nosec)\b[: -]|type:", re.IGNORECASE)
_CODE = re.compile(
    r"[\w.]+(?:\([^)]*\))?\s*(?::[^=]{1,60})?=[^=]|(?:def|class|import|from|return|const|let|var|func) \w|[\]})]+[;,]?$"
)
_POINTER = re.compile(r"(?:see|refer to|cf\.)\s", re.IGNORECASE)  # says nothing by itself
MAX_COMMENT_LINES = 8


def items_of(path: str, text: str) -> list[CitedItem]:
    """The items of a file of code; none if it is not known as code."""
    mark = comment_mark(path)
    if mark is None:
        return []
    if PurePosixPath(path).suffix in (".py", ".pyi"):
        return distinct([*_from_comments(_python_comments(text)), *_from_docstrings(path, text)])
    return distinct(_from_comments(_comments(text, mark)))


def _from_comments(comments: Sequence[Comment]) -> Iterator[CitedItem | None]:
    """Marked comments, each with the lines that go on with it."""
    for number, (line, column, text) in enumerate(comments):
        if marked(text, line) is None:
            continue
        said, last = [text], line
        for next_line, next_column, more in comments[number + 1 : number + MAX_COMMENT_LINES]:
            goes_on = (next_line, next_column) == (last + 1, column) and more.strip()
            if not goes_on or _DIRECTIVE.match(more) or _CODE.match(more) or marked(more, next_line) is not None:
                break
            said.append(more)
            last = next_line
        yield marked(" ".join(said), line)


def _python_comments(text: str) -> list[Comment]:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append((*token.start, token.string.lstrip("#: ").rstrip()))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return found or _comments(text, "#")
    return found


def _comments(text: str, mark: str) -> list[Comment]:
    found = []
    begins = re.compile(rf"(?:^|\s){re.escape(mark)}+[!/]*[ \t]*(.*)")
    for number, line in enumerate(text.split("\n"), 1):
        if (comment := begins.search(line)) and line[: comment.start()].count('"') % 2 == 0:
            found.append((number, line.index(mark, comment.start()), comment[1].rstrip().removesuffix("*/").rstrip()))
    if mark == "//":
        for block in _BLOCK.finditer(text):
            first = text.count("\n", 0, block.start()) + 1
            lines = (line.strip().lstrip("*").strip() for line in block[1].split("\n"))
            found += [(first + offset, -first, line) for offset, line in enumerate(lines)]
    return sorted(found)


def _from_docstrings(path: str, text: str) -> Iterator[CitedItem | None]:
    """What modules and public classes are for, and the rules, notes and warnings in every docstring."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in the strings of a file
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node, clean=True)
            if said:
                line = node.body[0].lineno
                yield from _purpose(path, node, said, line)
                yield from _remarks(said, line)


def _purpose(path: str, node: ast.AST, said: str, line: int) -> Iterator[CitedItem | None]:
    """What a module or a public class is for: the first paragraph of its docstring."""
    name = PurePosixPath(path).as_posix() if isinstance(node, ast.Module) else getattr(node, "name", "_")
    is_wanted = isinstance(node, ast.Module) or (isinstance(node, ast.ClassDef) and not name.startswith("_"))
    paragraph = _first_paragraph(said)
    if is_wanted and re.search(r"\w+\W+\w+", paragraph):
        yield make("entity", name, f"{name}: {paragraph}", line, 0.7)


def _first_paragraph(said: str) -> str:
    return re.split(r"\n[ \t]*\n", said.strip(), maxsplit=1)[0]


def _remarks(said: str, line: int) -> Iterator[CitedItem | None]:
    paragraphs = re.split(r"(\n[ \t]*\n)", said)
    at = line
    for number, paragraph in enumerate(paragraphs):
        first = paragraph.strip()
        if found := _SPHINX.match(first):
            rest = (
                paragraphs[number + 2]
                if first.count("\n") == 0 and not found[2] and number + 2 < len(paragraphs)
                else ""
            )
            content = f"{first[found.end(1) + 2 :]} {rest}".strip()
            if not _POINTER.match(content):
                yield make("note", f"{found[1].capitalize()}: {content}", content, at, 0.7)
        for led in re.finditer(rf"(?:(?<=\n)|(?<=\. )|^){_LED.pattern}", paragraph.strip(), re.DOTALL):
            type: ItemType = "claim" if led[1] in ("Rule", "Invariant") else "note"
            if not _POINTER.match(led[2]):
                yield make(type, f"{led[1]}: {led[2]}", led[2], at + paragraph[: led.start()].count("\n"), 0.7)
            break
        at += paragraph.count("\n")
