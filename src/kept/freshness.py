"""Freshness: whether the code that a memory names is still as it was when the memory was written.

A memory keeps at most five anchors in its data: a file, or a symbol in a file, with the hash of its text. `standing`
compares them with a work tree, and the branch of the memory with the branch that is checked out.

    fresh      every anchor has the text that it had
    changed    a file or symbol reads differently now
    moved      it stands in another file now, unchanged; the anchor has followed it there
    gone       none of the files and symbols is there
    unknown    there is no anchor, no work tree, or another branch is checked out

Pure: a `Tree` reads the files. Rule: only a person's or a judge's word makes a memory fresh again, never a reading.
"""

import re
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from kept import text
from kept.model import CHECK, Memory, replace

CODE = "kept_code"  # in the data of a memory: its branch, its commit, its anchors
MOST_ANCHORS = 5
MOST_NAMES = 12  # paths and symbols of a text that are looked up
HASH_BYTES = 8
State = Literal["fresh", "changed", "moved", "gone", "unknown"]

_INDENTED = ("py", "pyi")
_BRACED = tuple("ts tsx js jsx mjs cjs go rs java kt cs c h cc cpp hpp swift scala php".split())
_PATH = text.pattern(
    r"(?<![\w/.@-])(?:\.{0,2}/)?[\w@+-][\w@.+-]*(?:/[\w@.+-]+)+|(?<![\w/.@-])[\w+-]+\.[A-Za-z]\w{0,9}\b"
)
_CALLED = text.pattern(r"\b([A-Za-z_][\w.]*)\(\)")
_QUOTED = text.pattern(r"`([A-Za-z_][\w.:]*)`")
_SHAPED = text.pattern(r"\b(?:[A-Za-z_]\w*\.)*(?:[A-Za-z]\w*_\w+|_\w+|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b")
_COMMENTS = {True: text.pattern(r"(?m)^[ \t]*#.*$"), False: text.pattern(r"(?m)^[ \t]*//.*$")}  # indented, braced
_LAST_COMMA = text.pattern(r",(?=[)\]}])")
_TRIPLE = text.pattern(r"\"{3}|'{3}")
# Strings and comments, which may hold any sign; then the signs that open and close. Rust has lifetimes such as 'a.
_SIGNS = r'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|//[^\n]*|/\*(?s:.*?)\*/|[{}()\[\];\n]'
_TOKENS = {
    True: text.pattern(r"'(?:\\[^\n]{1,9}?|[^'\\\n])'" + _SIGNS),
    False: text.pattern(r"'(?:\\.|[^'\\\n])*'" + _SIGNS),
}
MOST_BLOCKS = 20  # definitions of one name in one file


class CodeAnchor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file, or a symbol in a file, with the hash of its text; `size` and `mtime` spare the reading of the file.

    `was` is the path that the memory names, if the text stands at another one by now.
    """

    path: str
    hash: str
    symbol: str = ""
    was: str = ""
    size: int = 0
    mtime: int = 0

    @property
    def name(self) -> str:
        return f"{self.symbol} in {self.path}" if self.symbol else self.path


class Code(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The branch and commit that a memory was written on, and its anchors. `branch` is "" for a detached HEAD.

    `is_early`: the branch had no commit yet, so `commit` is the one that it began at, of another branch.
    """

    branch: str = ""
    commit: str = ""
    is_early: bool = False
    is_deleted: bool = False  # the branch was deleted, and nothing of it was merged
    anchors: tuple[CodeAnchor, ...] = ()


class Here(Struct, frozen=True, kw_only=True):
    """The branch and commit that are checked out, the main branch, and the commits known to be part of HEAD."""

    branch: str = ""
    commit: str = ""
    main: str = ""
    ancestors: frozenset[str] = frozenset()


class Standing(NamedTuple):
    """The state of a memory's code, notes on the changes, and the branch it belongs to if that is not merged here.

    `until` says when it stopped being true (`memory.endings`).
    """

    state: State = "unknown"
    notes: tuple[str, ...] = ()
    branch: str = ""
    check: str = ""
    until: str = ""

    @property
    def note(self) -> str:
        """Return the words to tell beside the memory; "" if there are none."""
        return "; ".join((*self.notes, *([f"check: {self.check}"] if self.check and self.notes else ())))


UNKNOWN = Standing()
Look = Callable[[Memory], Standing]


class FileText(NamedTuple):
    """The text of a file, with its size and time of change."""

    text: str
    size: int
    mtime: int


class Tree(Protocol):
    """A work tree. Paths are relative to its top; a path that leads out of it, or to no file, gives None."""

    def stat(self, path: str) -> tuple[int, int] | None:
        """Return the size of a file and when it was changed."""

    def read(self, path: str) -> FileText | None:
        """Return the text of a file."""

    def inside(self, path: str) -> str | None:
        """Return a path relative to the top."""


# ---- the data of a memory ----


def code_of(memory: Memory) -> Code | None:
    """Return the code of a memory; None if it has none, or none that can be read."""
    data = (memory.data or {}).get(CODE)
    if not isinstance(data, dict):
        return None
    try:
        return msgspec.convert(data, Code)
    except msgspec.ValidationError:
        return None


def with_code(data: Mapping[str, Any] | None, code: Code | None) -> dict[str, Any] | None:
    """Return the data of a memory with this code, or without any."""
    rest = {name: value for name, value in (data or {}).items() if name != CODE}
    return {**rest, CODE: msgspec.to_builtins(code)} if code is not None else rest or None


def without_code(memory: Memory) -> Memory:
    """Return the memory as callers see it: its data without the key of this module."""
    return memory if CODE not in (memory.data or {}) else replace(memory, data=with_code(memory.data, None))


# ---- at a write ----


def names_in(content: str, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths and the symbols that a memory names, its files first."""
    paths = [*files, *(found.rstrip(".") for found in _PATH.findall(content))]
    rest = _PATH.sub(lambda found: " " if _is_file(found[0]) else found[0], content)  # x/__init__.py has no __init__
    symbols = [*_CALLED.findall(rest), *_QUOTED.findall(rest), *_SHAPED.findall(rest)]
    written = [name.replace("::", ".").strip(".:") for name in symbols]
    return list(dict.fromkeys(paths))[:MOST_NAMES], list(dict.fromkeys(filter(None, written)))[:MOST_NAMES]


def _is_file(name: str) -> bool:
    """Return True for a path; `Ferry.load` may be a method."""
    suffix = suffix_of(name)
    return "/" in name or suffix in _INDENTED or suffix in _BRACED


def anchors_for(content: str, files: Sequence[str], tree: Tree) -> tuple[CodeAnchor, ...]:
    """Anchor the files that a memory names, each by the symbols in it that it names as well."""
    paths, symbols = names_in(content, files)
    inside = [path for name in paths if (path := tree.inside(name)) is not None]
    found: list[CodeAnchor] = []
    for path in dict.fromkeys(inside):
        file = tree.read(path) if len(found) < MOST_ANCHORS else None
        if file is None:
            continue
        own = [one for symbol in symbols if (one := anchored(path, symbol, file)) is not None]
        whole = anchored(path, "", file)
        found += own or ([whole] if whole is not None else [])
    return tuple(found[:MOST_ANCHORS])


def anchored(path: str, symbol: str, file: FileText) -> CodeAnchor | None:
    """Anchor a file, or a symbol in it; None if the file does not define the symbol."""
    digest = digest_of(file.text, path, symbol)
    if digest is None:
        return None
    return CodeAnchor(path=path, hash=digest, symbol=symbol, size=file.size, mtime=file.mtime)


def renewed(memory: Memory, tree: Tree, now: Code) -> Code:
    """Return the code of a memory that was just confirmed: on the branch of `now`, with the anchors as they are."""
    code = code_of(memory)
    known = code.anchors if code is not None else ()
    again = [one for old in known if (file := tree.read(old.path)) and (one := anchored(old.path, old.symbol, file))]
    anchors = tuple(again) or anchors_for(memory.content, memory.files, tree)
    return msgspec.structs.replace(now, anchors=anchors)


# ---- at a delivery ----


def standing(memory: Memory, here: Here, tree: Tree) -> Standing:
    """Compare the code of a memory with the work tree, if the memory belongs to the branch that is checked out."""
    code = code_of(memory)
    if code is None:
        return UNKNOWN
    if label := _branch_label(code, here):
        deleted = (f"branch {code.branch} was deleted without a merge",) if code.is_deleted else ()
        return Standing("unknown", deleted, label)
    if not code.anchors or not is_comparable(code, here):
        return UNKNOWN
    return _compared(code.anchors, tree, check=str((memory.data or {}).get(CHECK) or ""))


def _compared(anchors: Sequence[CodeAnchor], tree: Tree, check: str) -> Standing:
    """Compare anchors with a work tree: gone if all are gone, changed if one is or some are gone."""
    found = [(anchor, state_of(anchor, tree)) for anchor in anchors]
    notes = tuple(note for anchor, state in found for note in _notes(anchor, state))
    states = {state for _, state in found}
    state = states.pop() if len(states) == 1 else "moved" if states == {"fresh", "moved"} else "changed"
    return Standing(state, notes, check=check)


def is_comparable(code: Code, here: Here) -> bool:
    """Return True if the files of the work tree are later ones of those that the memory was written beside."""
    return not code.commit or code.branch == here.branch or code.commit in (here.commit, *here.ancestors)


def _branch_label(code: Code, here: Here) -> str:
    """Return the name of an unmerged branch that a memory belongs to, if another one is checked out."""
    if not code.commit or (code.branch and not code.is_deleted and code.branch in (here.branch, here.main)):
        return ""
    if not code.is_early and (code.commit == here.commit or code.commit in here.ancestors):
        return ""
    return f"on branch {code.branch}" if code.branch else f"at commit {code.commit[:7]}"


def state_of(anchor: CodeAnchor, tree: Tree) -> State:
    """Return the state of one anchor: by size and time of its file, and only if these differ by its text."""
    seen = tree.stat(anchor.path)
    if seen is None:
        return "gone"
    same: State = "moved" if anchor.was else "fresh"
    if seen == (anchor.size, anchor.mtime):
        return same
    file = tree.read(anchor.path)
    if file is None:  # too large to be compared
        return "changed"
    digest = digest_of(file.text, anchor.path, anchor.symbol)
    return "gone" if digest is None else same if digest == anchor.hash else "changed"


def _notes(anchor: CodeAnchor, state: State) -> list[str]:
    """Return the words to tell about an anchor: where it stands now, and whether it is as it was."""
    if state == "gone":
        return [f"{anchor.name} is gone"]
    moved = f"{anchor.symbol or anchor.was} is {'in ' if anchor.symbol else ''}{anchor.path} now"
    notes = [moved] if anchor.was else []
    return [*notes, f"{anchor.name} has changed since"] if state == "changed" else notes


# ---- the text of a file or a symbol ----


def digest_of(content: str, path: str, symbol: str) -> str | None:
    """Return the hash of a file, or of a symbol in it; None if the file does not define the symbol.

    Of source code, layout, quotation marks, last commas and whole lines of comments do not count.
    """
    suffix = suffix_of(path)
    is_indented = suffix in _INDENTED
    is_code = is_indented or suffix in _BRACED
    if symbol:
        blocks = blocks_of(content, symbol, suffix) if is_code else []
        if not blocks:
            return None
        content = "\n".join(blocks)
    if is_code:
        content = _COMMENTS[is_indented].sub("", content)
        content = _nested(content) if is_indented else "".join(content.split())
        content = _LAST_COMMA.sub("", content.replace("'", '"'))
    else:
        content = "\n".join(line.rstrip() for line in content.splitlines())
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).hexdigest()


def _nested(content: str) -> str:
    """Return Python without its layout: each statement with its depth, however wide the indentation is."""
    widths: list[int] = []
    parts: list[str] = []
    n_open = 0  # brackets; a line inside of them goes on with a statement
    for line in filter(str.strip, content.expandtabs().split("\n")):
        if n_open <= 0:
            width = len(line) - len(line.lstrip())
            widths = [*(one for one in widths if one < width), width]
            parts.append(f"\n{len(widths)} ")
        n_open = max(0, n_open) + sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        parts.append("".join(line.split()))
    return "".join(parts)


def suffix_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def blocks_of(content: str, symbol: str, suffix: str) -> list[str]:
    """Return the definitions of a symbol. `Class.method` is looked for in the class; an outer module is passed over."""
    find = _indented_blocks if suffix in _INDENTED else partial(_braced_blocks, suffix == "rs")
    *outer, name = symbol.split(".")
    for owner in reversed(outer[-1:]):
        if inside := [block for part in find(content, owner) for block in find(part.partition("\n")[2], name)]:
            return inside
        if owner[:1].isupper():  # a class without such a method, not a module
            return []
    return list(islice(find(content, name), MOST_BLOCKS))


def _indented_blocks(content: str, name: str) -> Iterator[str]:
    """Yield the definitions of a name in Python: the lines that are indented more than the first."""
    known = re.escape(name)  # it may come from an import
    starts = text.compiled(
        rf"(?m)^([ \t]*)(?:(?:async[ \t]+)?(?:def|class|type)[ \t]+{known}\b|{known}[ \t]*(?::[^=\n]+)?=(?!=))"
    )
    for found in starts.finditer(content):
        depth = len(found[1].expandtabs())
        lines = content[found.start() :].split("\n")
        is_in_string, end = _opens_string(lines[0]), len(lines)
        for number, line in enumerate(lines[1:], 1):
            rest = line.lstrip()
            is_deeper = len(line.expandtabs()) - len(rest.expandtabs()) > depth or rest[:1] in (")", "]", "}")
            if rest and not is_in_string and not is_deeper:
                end = number
                break
            is_in_string ^= _opens_string(line)
        yield _marks_before(content, found.start()) + "\n".join(lines[:end])


def _opens_string(line: str) -> bool:
    """Return True if a line opens or closes a string of several lines."""
    return len(_TRIPLE.findall(line)) % 2 == 1


def _marks_before(content: str, start: int) -> str:
    """Return the lines of decorators, annotations and attributes that stand above a definition."""
    begin = start
    while begin > 0:
        line = content.rfind("\n", 0, begin - 1) + 1
        if not content[line:begin].lstrip().startswith(("@", "#[")):
            break
        begin = line
    return content[begin:start]


_BRACED_START = (
    r"(?m)^[ \t]*(?:"
    r"(?:[\w@]+(?:\([\w\s]*\))?[ \t]+)*(?:function\*?|class|interface|enum|type|namespace|struct|trait|union|record|mod"
    r"|object|fn|fun|def|macro_rules!|const|let|var|val|static(?:[ \t]+mut)?)[ \t]+{name}\b"
    r"|func[ \t]+(?:\([^)\n]*\)[ \t]*)?{name}\b"
    r"|(?!return\b|new\b|else\b|await\b|throw\b|case\b)(?:[\w<>\[\],.?*&@]+[ \t]+)*{name}[ \t]*(?:<[^>\n]*>)?\("
    r"[^;\n]*(?:\{{|,|\([ \t]*)[ \t]*$"
    r"|{name}[ \t]*=(?!=))"
)


def _braced_blocks(is_rust: bool, content: str, name: str) -> Iterator[str]:
    """Yield the definitions of a name in a language with braces: up to the brace or the line that ends each."""
    end = 0
    for found in text.compiled(_BRACED_START.format(name=re.escape(name))).finditer(content):
        if found.start() >= end:
            end = _end_of_braced(_TOKENS[is_rust], content, found.start())
            yield _marks_before(content, found.start()) + content[found.start() : end]


_DEPTHS = {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}


def _end_of_braced(tokens: re.Pattern[str], content: str, start: int) -> int:
    depth, is_open = 0, False
    for token in tokens.finditer(content, start):
        sign = token[0]
        depth += _DEPTHS.get(sign, 0)
        is_open = is_open or sign == "{"
        if depth < 0:
            return token.start()
        if depth == 0 and _ends(sign, content, token, is_open=is_open):
            return token.end()
    return len(content)


def _ends(sign: str, content: str, token: re.Match[str], *, is_open: bool) -> bool:
    """Return True if a sign outside of all brackets ends a definition."""
    if sign == "\n":
        return not _goes_on(content, token.start(), token.end())
    return sign == ";" or (sign == "}" and is_open)


def _goes_on(content: str, at: int, after: int) -> bool:
    """Return True if a statement goes on behind a line break: the line ends open, or the next one begins so."""
    last, following = content[:at].rstrip(" \t")[-1:], content[after : after + 200].lstrip()[:2]
    return last in ("=", ",", ":", "|", "&", "+", ">", "") or following[:1] in ("{", "|", "&", ".", "?", ":", "=")
