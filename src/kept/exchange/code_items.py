"""Items in code: marked comments of any language, doc comments, and the docstrings of Python.

Comments of Python are found by its tokenizer, so that a `#` in a string is none; of other languages by how they begin.
A doc comment says what a public thing is for: that is an entity, named by the declaration below it. Its other
paragraphs are read by the rules for prose.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from kept.exchange.comment_blocks import CommentBlock, comment_blocks, joined_lines
from kept.exchange.declarations import containers_of, declaration_below
from kept.exchange.doc_text import blocks_of
from kept.exchange.items import CitedItem, comment_mark, distinct, is_marked, make, marked, new_words
from kept.exchange.prose_rules import TextBlock, is_note, item_of

_DIRECTIVE = re.compile(
    r"(?:pragma|noqa|pylint|mypy|fmt|eslint|ruff|nosec|nolint|prettier|biome|deno-lint)\b[: -]|type:|@ts-|go:|#region",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[\w.]+(?:\([^)]*\))?\s*(?::[^=]{1,60})?=[^=]|(?:def|class|import|from|return|const|let|var|func) \w|[\]})]+[;,]?$"
)
_LICENCE = re.compile(r"copyright|licen[cs]ed?\b|spdx-|all rights reserved|redistribution", re.IGNORECASE)
_GENERATED = re.compile(
    r"@generated|\bcode generated (?:by|from)|\b(?:auto-?|automatically )generated\b"
    r"|generated .{0,60}do not (?:edit|modify)",
    re.IGNORECASE,
)
GENERATED_CHARS = 1_000  # at the beginning of a file, where generators leave their mark
MINIFIED_CHARS, MINIFIED_LINE = 5_000, 200  # characters of a file, and of its lines on average
PYTHON = (".py", ".pyi")
LETTERS_IN_QUOTES = (".rs", ".go", ".kt", ".swift")  # no strings in single quotes
MIN_NEW_WORDS, MIN_NEW_WORDS_OF_TYPE = 5, 4  # in a summary, beside those of the name
MAX_COMMENT_LINES = 8
MAX_DOC_LINES = 400
_TESTS = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|spec|specs|testdata|fixtures|e2e|benchmarks?|bench|examples?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*(?:_test|[._-](?:test|spec|bench))\.[a-z]+|[^/]*Tests?\.(?:java|kt|cs))$"
)


class Doc(NamedTuple):
    """The documentation of a thing: its name, its text, and the line where the text begins."""

    name: str
    lines: list[str]
    line: int
    is_public: bool
    is_type: bool  # a class or a module: not a function
    is_module: bool = False


def items_of(path: str, text: str) -> list[CitedItem]:
    """Return the items of a file of code: of tests only tasks and decisions, of generated and minified files none."""
    mark = comment_mark(path)
    if mark is None or _is_made(text):
        return []
    comments, docs = (_of_python if PurePosixPath(path).suffix in PYTHON else _of_other)(path, text, mark)
    found = chain.from_iterable(map(_marked, comments))
    if _TESTS.search(path):
        return distinct(item for item in found if item is not None and item.type in ("task", "decision"))
    return distinct(chain(found, chain.from_iterable(map(_described, docs))))


CodeText = tuple[list[CommentBlock], Iterator[Doc]]


def _of_python(path: str, text: str, _mark: str) -> CodeText:
    return _python_comments(text), _docstrings(path, text)


def _of_other(path: str, text: str, mark: str) -> CodeText:
    suffix = PurePosixPath(path).suffix
    comments = comment_blocks(text, mark, has_lifetimes=suffix in LETTERS_IN_QUOTES)
    return comments, _doc_comments(path, text, comments, suffix)


def _is_made(text: str) -> bool:
    """Return True for a file that a program has written: generated or minified."""
    if _GENERATED.search(text[:GENERATED_CHARS]):
        return True
    return len(text) > MINIFIED_CHARS and len(text) / (text.count("\n") + 1) > MINIFIED_LINE


def _marked(block: CommentBlock) -> Iterator[CitedItem | None]:
    """Yield the marked comments of a block, each with the lines that go on with it."""
    number = 0
    while number < len(block.lines):
        line = block.line + number
        said = [block.lines[number].strip()]
        number += 1
        if not is_marked(said[0]):
            continue
        while number < len(block.lines) and len(said) < MAX_COMMENT_LINES and _goes_on(block.lines[number].strip()):
            said.append(block.lines[number].strip())
            number += 1
        yield marked(" ".join(said), line)


def _goes_on(more: str) -> bool:
    is_other = _DIRECTIVE.match(more) or _CODE.match(more) or more.startswith(("@", "- ", "* ")) or is_marked(more)
    return bool(more) and not is_other


def _python_comments(text: str) -> list[CommentBlock]:
    found: list[CommentBlock] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                said = token.string.lstrip("#: ").rstrip()
                found.append(CommentBlock(line, line, column, "#", [said], not token.line[:column].strip()))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return joined_lines(found) if found else comment_blocks(text, "#")
    return joined_lines(found)


def _docstrings(path: str, text: str) -> Iterator[Doc]:
    """Yield the docstrings of a Python file. A class inside a function is not public."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in the strings of a file
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    waiting: list[tuple[ast.AST, str, bool]] = [(tree, "", True)]
    while waiting:
        node, around, is_public = waiting.pop()
        name = getattr(node, "name", "")
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_public = is_public and not name.startswith("_")
            if said := ast.get_docstring(node, clean=True):
                is_type = isinstance(node, ast.Module | ast.ClassDef)
                line, is_module = node.body[0].lineno, isinstance(node, ast.Module)
                yield Doc(f"{around}{name}" or path, said.split("\n"), line, is_public, is_type, is_module)
            around = f"{name}." if isinstance(node, ast.ClassDef) else ""
            is_public = is_public and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        waiting += [(child, around, is_public) for child in ast.iter_child_nodes(node)]


def _doc_comments(path: str, text: str, blocks: Sequence[CommentBlock], suffix: str) -> Iterator[Doc]:
    """Yield the doc comments of a file in another language, with the names of the declarations below them."""
    lines = text.split("\n")
    around = containers_of(lines, suffix)
    for block in blocks:
        if not _is_doc(block, suffix):
            continue
        if block.mark.startswith(("//!", "/*!")):  # documents the module around it
            yield Doc(path, block.lines, block.line, True, True, True)
        elif below := declaration_below(lines, block.last, suffix, around[block.line - 1]):
            yield Doc(below.name, block.lines, block.line, below.is_public, below.is_type)


def _is_doc(block: CommentBlock, suffix: str) -> bool:
    """Return True for a doc comment. In Go each comment above a declaration is one."""
    is_doc = block.is_doc or (suffix == ".go" and block.is_alone and block.column == 0)
    return is_doc and len(block.lines) <= MAX_DOC_LINES and not _LICENCE.search(" ".join(block.lines[:12]))


def _described(doc: Doc) -> Iterator[CitedItem | None]:
    """Yield the purpose of a public thing, and the notes and firm statements about any thing."""
    blocks = blocks_of(doc.lines, doc.line, subject="" if doc.is_module else doc.name)
    if not blocks:
        return
    first, *others = blocks
    least = MIN_NEW_WORDS_OF_TYPE if doc.is_type else MIN_NEW_WORDS
    is_purpose = doc.is_public and not (first.is_entry or is_note(first)) and new_words(doc.name, first.text) >= least
    if is_purpose:
        yield make("entity", _with_name(doc.name, first.text), first.line, 0.7)
    yield from map(item_of, map(_unnamed, others if is_purpose else blocks))


def _with_name(name: str, said: str) -> str:
    own = name.rsplit(".", 1)[-1]
    return said if said.startswith((f"{own} ", f"{name} ")) else f"{name}: {said}"


def _unnamed(block: TextBlock) -> TextBlock:
    """Return the block; its subject is left out where the text begins with it."""
    own = block.subject.rsplit(".", 1)[-1]
    return block._replace(subject="") if own and block.text.startswith(f"{own} ") else block
