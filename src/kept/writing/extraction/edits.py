"""Read the edits of a conversation: the files that it changed, and the new lines.

Used by extraction. An edit is a tool call with a path and new text, under any name, so the editing tools of every agent
are read. Rule: an edit is no memory, because git has it; it shows how an error was fixed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from os.path import commonpath
from typing import Any

from msgspec import Struct

from kept.model import Message
from kept.text import compiled

MAX_FILES = 5
MAX_LINES = 6  # that are told of one edit
MAX_CHARS = 100_000  # of one edit; longer text was generated

_PATH_KEYS = ("file_path", "path", "filePath", "filename", "target_file", "notebook_path")
_NEW_KEYS = ("content", "file_text", "new_string", "new_str", "newText", "new_source", "code_edit", "insert_text")
_OLD_KEYS = ("old_string", "old_str", "oldText")
_PATCH_FILE = r"(?m)^(?:\*\*\* (?:Add|Update) File: |\+\+\+ (?:b/)?)(\S{1,300})"
_NOT_KEPT = (
    r"(?i)(?:^|/)(?:\.claude|\.cursor|\.git|node_modules|dist|build|target|tmp|vendor|__pycache__)/"
    r"|\.(?:lock|snap|min\.js|svg|csv|log)$"
    r"|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|plan\.md|todo\.md)$|(?:^|[/_.-])(?:tests?|specs?)[/_.-]"
)
_TOP_PART = r"/(?:src|lib|apps|packages|services|tests?|assets|cmd|infra)(?=/)"
_NAMED = r"(?<![\w/@.-])(?:[\w@.+-]{1,60}/){0,12}[\w@.+-]{1,60}\.[A-Za-z]{1,6}(?![\w/])"
_CODE_ENDINGS = frozenset(
    "ts tsx js jsx mjs cjs py pyi rb go rs java kt swift c h cc cpp hpp cs php ex exs heex css scss html vue svelte md "
    "mdx json yaml yml toml sql sh bash tf proto graphql gradle xml ini cfg ipynb lua scala dart zig".split()
)


class Edit(Struct, frozen=True):
    """New text for a file; `old` is the text that it replaced, or None when the file was written whole."""

    path: str
    new: str
    old: str | None = None


def edits_in(call: Message) -> Iterator[Edit]:
    """Return the edits that a tool call makes."""
    input = call.input or {}
    patch = _patch_in(input)
    if patch is not None:
        yield from _patched(patch)
        return
    path = _first(input, _PATH_KEYS)
    if path is None:
        return
    pieces = input.get("edits")
    for piece in [input, *(pieces if isinstance(pieces, list) else ())]:
        if isinstance(piece, dict) and (new := _first(piece, _NEW_KEYS)) is not None:
            yield Edit(path, new, _first(piece, _OLD_KEYS))


def _patch_in(input: Mapping[str, Any]) -> str | None:
    texts = chain.from_iterable(value if isinstance(value, list) else [value] for value in input.values())
    return next((text for text in texts if isinstance(text, str) and "*** Begin Patch" in text), None)


def _patched(patch: str) -> Iterator[Edit]:
    starts = compiled(_PATCH_FILE).finditer(patch)
    for start, following in pairwise([*starts, None]):
        if start is None:
            return
        lines = patch[start.end() : following.start() if following else len(patch)].split("\n")
        old, new = ("\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
        yield Edit(start[1], new, None if "Add" in start[0] else old)


def _first(values: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((values[key] for key in keys if isinstance(values.get(key), str) and values[key]), None)


class Edits:
    """The files of one conversation, with paths relative to its folder.

    Without a given folder, it is derived from the paths of the files.
    """

    def __init__(self, messages: Sequence[Message], folder: str | None = None) -> None:
        paths = {path for each in messages if each.input and (path := _first(each.input, _PATH_KEYS))}
        self._root = (folder or "").rstrip("/") or _project_folder(paths)
        self._in_text = re.compile(rf"(?<![\w./~-]){re.escape(self._root)}/(?=[\w.])") if self._root else None
        self._by_name = {path.rsplit("/", 1)[-1]: self.relative(path) for path in sorted(paths) if is_code(path)}

    def add(self, edit: Edit) -> tuple[str, list[str]]:
        """Return the relative path of the edited file, and its new lines."""
        before = set((edit.old or "")[:MAX_CHARS].split("\n"))
        lines = (line.strip() for line in edit.new[:MAX_CHARS].split("\n") if line not in before)
        return self.relative(edit.path), list(islice(filter(None, lines), MAX_LINES))

    def relative(self, path: str) -> str:
        """Return the path relative to the project's folder, if it lies there."""
        return path[len(self._root) + 1 :] if self._root and path.startswith(f"{self._root}/") else path

    def shorten(self, sentence: str) -> str:
        """Remove the project's folder from the paths in a sentence."""
        return self._in_text.sub("", sentence) if self._in_text is not None else sentence

    def files_named(self, sentence: str) -> tuple[str, ...]:
        """Return the files that a sentence names: by a path, or by the name of a file that was opened."""
        named = []
        for found in compiled(_NAMED).findall(self.shorten(sentence)):
            name = found.removeprefix("./")
            if name in self._by_name:
                named.append(self._by_name[name])
            elif "/" in name and is_code(name):
                named.append(self.relative(name))
        return tuple(dict.fromkeys(named))[:MAX_FILES]


def path_in(call: Message) -> str | None:
    """Return the path of the file that a tool call reads or writes, if it names one."""
    return _first(call.input or {}, _PATH_KEYS)


def is_code(path: str) -> bool:
    """Return True for a path with the ending of a file that people write."""
    return path.rsplit(".", 1)[-1] in _CODE_ENDINGS


def _project_folder(paths: Iterable[str]) -> str:
    """Return the folder that holds all the absolute paths, above the first that is a usual part of a project."""
    kept = sorted(path for path in paths if path.startswith("/") and not compiled(_NOT_KEPT).search(path))
    if not kept:
        return ""
    common = commonpath([path.rsplit("/", 1)[0] + "/" for path in kept])
    part = compiled(_TOP_PART).search(f"{common}/")
    folder = common[: part.start()] if part else common
    return folder if folder.count("/") >= 2 else ""
