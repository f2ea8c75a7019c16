"""Change single tables of a TOML file; comments and order of the others stay as they are. tomlkit does the parsing."""

import re
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from kept.errors import InvalidInput

Path = tuple[str, ...]


def value_at(text: str, path: Path) -> Any:
    """Return the value at a path as plain Python; None if there is none. The empty path is the whole file."""
    value = _parse(text).unwrap()
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def with_table(text: str, path: Path, value: Mapping[str, Any]) -> str:
    """Return the text with this table at the path; tables on the way are made if they are missing."""
    document = _parse(text)
    table = document
    for key in path[:-1]:
        table = table.setdefault(key, _new_table(table))
        if not isinstance(table, dict):
            raise InvalidInput(f"`{key}` is not a table, so nothing can be added to it.")
    if table.get(path[-1]) == dict(value):
        return text
    inner = _new_table(table)
    inner.update(value)
    table[path[-1]] = inner
    return _written(document, text)


def without_table(text: str, path: Path) -> str:
    """Return the text without the table at the path, and without tables around it that become empty."""
    document = _parse(text)
    tables: list[Any] = [document]
    for key in path[:-1]:
        tables.append(tables[-1][key])
    for key, table in zip(reversed(path), reversed(tables), strict=True):
        del table[key]
        if table:
            break
    return _written(document, text)


def _parse(text: str) -> Any:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(f"The file is not valid TOML: {error}.") from None


def _new_table(parent: Any) -> Any:
    """Make a table for the inside of another. A table on one line, `{ }`, can hold only tables of that form."""
    return tomlkit.inline_table() if isinstance(parent, InlineTable) else tomlkit.table()


def _written(document: Any, before: str) -> str:
    text = tomlkit.dumps(document)
    return text if "\r\n" not in before else re.sub(r"\r?\n", "\r\n", text)
