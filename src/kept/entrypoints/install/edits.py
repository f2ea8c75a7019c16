"""Entries of a configuration file that can be added and removed: a member, an item of a list, a table, a block.

Each edit is a value with pure functions: `apply` and `strip` from a text to a text, and `holder`, the value that is in
its place now (None: the place is free). A file that does not exist is the empty text. Rule: `strip` removes an entry
if `is_ours` accepts it and nothing else, also from a file that changed since; `base` is the file before us.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from kept.entrypoints.install import jsonc, toml
from kept.errors import InvalidInput

IsOurs = Callable[[Any], bool]


def says_the_same(text: str, other: str, path: Path) -> bool:
    """Return True if two texts of a JSON or TOML file differ only in order and layout."""
    try:
        if path.suffix in (".json", ".jsonc"):
            return bool(jsonc.value_at(text, ()) == jsonc.value_at(other, ()))
        return path.suffix == ".toml" and bool(toml.value_at(text, ()) == toml.value_at(other, ()))
    except InvalidInput:
        return False


class ConfigEdit(Protocol):
    """One change of a text."""

    def apply(self, text: str) -> str: ...

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str: ...

    def holder(self, text: str) -> Any: ...


class Member(Struct, frozen=True):
    """A member of a JSON object: `mcpServers.kept`."""

    path: jsonc.Path
    value: Any
    has_command: bool = True  # False: its value does not say whose it is, so the agent's other entries do

    def apply(self, text: str) -> str:
        return jsonc.with_member(text or "{}\n", self.path, self.value)

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        if (value := self.holder(text)) is None or not is_ours(value):
            return text
        return _emptied(jsonc.without_member(text, self.path), self.path[:-1], base)

    def holder(self, text: str) -> Any:
        return jsonc.value_at(text, self.path) if text.strip() else None


class Item(Struct, frozen=True):
    """An item of a JSON list that runs our hook: `hooks.Stop`."""

    path: jsonc.Path
    value: Any

    def apply(self, text: str) -> str:
        return jsonc.with_item(text or "{}\n", self.path, self.value)

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        if not text.strip():
            return text
        return _emptied(jsonc.without_items(text, self.path, is_ours), self.path, base)

    def holder(self, text: str) -> Any:
        return None  # a list has room for all


class RequiredMember(Struct, frozen=True):
    """A member that the file must have beside our entries: `version`. It is removed when nothing else is left."""

    path: jsonc.Path
    value: Any

    def apply(self, text: str) -> str:
        text = text or "{}\n"
        return text if jsonc.value_at(text, self.path) is not None else jsonc.with_member(text, self.path, self.value)

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        alone = text.strip() and jsonc.value_at(text, ()) == {self.path[0]: self.value}
        return "" if alone and not _has(base, self.path) else text

    def holder(self, text: str) -> Any:
        return None  # any value will do


class Trace(Struct, frozen=True):
    """A member that the agent itself wrote because of us: never added, only removed."""

    path: jsonc.Path
    has_command: bool = True

    def apply(self, text: str) -> str:
        return text

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        value = self.holder(text)
        return jsonc.without_member(text, self.path) if value is not None and is_ours(value) else text

    def holder(self, text: str) -> Any:
        return jsonc.value_at(text, self.path) if text.strip() else None


class Table(Struct, frozen=True):
    """A table of a TOML file: `[mcp_servers.kept]`. Others' comments and order stay."""

    path: toml.Path
    value: Mapping[str, Any]

    def apply(self, text: str) -> str:
        return toml.with_table(text, self.path, self.value)

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        if (value := self.holder(text)) is None or not is_ours(value):
            return text
        end = base[len(base.rstrip()) :] if base.strip() else "\n"
        left = toml.without_table(text, self.path).rstrip()
        return left + end if left else ""

    def holder(self, text: str) -> Any:
        return toml.value_at(text, self.path)


_SECTION = r"^{key}[ \t]*:.*\n((?:[ \t#-].*\n|\r?\n)*)"
_YAML_NAMES = (
    r"^[ \t]+(['\"]?){name}\1[ \t]*:",  # kept:
    r"^[ \t]*(?:-[ \t]+)?(['\"]?)name\1[ \t]*:[ \t]*(['\"]?){name}\2[ \t]*(?:#.*)?\r?$",  # - name: kept
)


class YamlBlock(Struct, frozen=True):
    """Lines below a top-level key of a YAML file, between two marks. No line of others is parsed or moved."""

    key: str
    name: str
    lines: tuple[str, ...]
    head: tuple[str, ...] = ()  # of a file that is new

    BEGIN = "# kept: begin"
    END = "# kept: end"

    def apply(self, text: str) -> str:
        text = self._without(text)
        heading = re.search(rf"^{re.escape(self.key)}:[ \t]*(#[^\n]*)?\r?$", text, re.MULTILINE)
        if heading:
            return self._below(text, heading)
        if re.search(rf"^{re.escape(self.key)}[ \t]*:", text, re.MULTILINE):
            raise InvalidInput(f"`{self.key}` is written on one line, so nothing can be added to it.")
        return self._at_the_end(text)

    def _below(self, text: str, heading: re.Match[str]) -> str:
        """Return the text with our lines below the key, indented like the entry that follows."""
        after = re.compile(r"\n([ \t]*)(?=[^\s#])").search(text, heading.end())
        margin = after.group(1) if after and (after.group(1) or text.startswith("- ", after.end())) else "  "
        added = "".join(f"{_line_end(text)}{margin}{line}" for line in (self.BEGIN, *self.lines, self.END))
        place = heading.end() - heading.group().endswith("\r")
        return text[:place] + added + text[place:]

    def _at_the_end(self, text: str) -> str:
        """Return the text with the key and our lines at its end."""
        end = _line_end(text)
        head = self.head if not text.strip() else ()
        block = (self.BEGIN, *head, f"{self.key}:", *(f"  {line}" for line in self.lines), self.END)
        gap = "" if not text or text.endswith("\n") else end
        return text + gap + end.join(block) + end

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        return self._without(text)  # the marks say whose it is

    def holder(self, text: str) -> Any:
        """Return {} if there is an entry of this name outside of our marks, a key or an item of a list; else None."""
        section = re.search(_SECTION.format(key=re.escape(self.key)), self._without(text) + "\n", re.MULTILINE)
        name = re.escape(self.name)
        has_it = section and any(re.search(way.format(name=name), section[1], re.MULTILINE) for way in _YAML_NAMES)
        return {} if has_it else None

    def _without(self, text: str) -> str:
        begin, end = re.escape(self.BEGIN), re.escape(self.END)
        return re.sub(rf"^[ \t]*{begin}\r?\n(?:.*\r?\n)*?[ \t]*{end}(?:\r?\n|\Z)", "", text, flags=re.MULTILINE)


class WholeFile(Struct, frozen=True):
    """A file of our own."""

    content: str

    def apply(self, text: str) -> str:
        return self.content

    def strip(self, text: str, base: str, is_ours: IsOurs) -> str:
        if not is_ours(text):
            return text
        others = _without_hooks(text, is_ours)
        return others if any(_hooks_of(others).values()) else ""

    def holder(self, text: str) -> Any:
        return text if text.strip() else None


def _hooks_of(text: str) -> Mapping[str, Any]:
    """Return the hooks of a JSON file by event; {} for another file."""
    try:
        hooks = jsonc.value_at(text, ("hooks",))
    except InvalidInput:
        return {}
    return hooks if isinstance(hooks, dict) else {}


def _without_hooks(text: str, is_ours: IsOurs) -> str:
    """Return the text of a JSON file without our hooks: others may have added theirs to our file."""
    for event in _hooks_of(text):
        text = jsonc.without_items(text, ("hooks", event), is_ours)
    return text


def _emptied(text: str, path: jsonc.Path, base: str) -> str:
    """Remove the objects and lists on the path that have become empty and were not there before us."""
    while path and jsonc.value_at(text, path) in ({}, []) and not _has(base, path):
        text = jsonc.without_member(text, path)
        path = path[:-1]
    return "" if text.strip() == "{}" and not base.strip() else text


def _has(base: str, path: jsonc.Path) -> bool:
    return bool(base.strip()) and jsonc.value_at(base, path) is not None


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
