"""Change single members of a JSON file by splicing its text: comments, order, spacing and line ends stay as they are.

Configuration files of agents are JSON with comments and trailing commas, written by people and by the agents. A parser
that writes the file again would lose comments and layout, so only the spans of values are read here, and the text
between them is never touched.

Rule: adding and then removing the same member gives back the same text, unless that text ended its list with a comma.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kept.errors import InvalidInput

Path = tuple[str, ...]


class Node(NamedTuple):
    """A value: its span, and for an object or a list its parts with the place where each begins (its key, if any)."""

    start: int
    end: int
    sign: str  # the first character: { [ or another
    parts: tuple[tuple[int, str, "Node"], ...] = ()  # start, key, value


def value_at(text: str, path: Path) -> Any:
    """Return the value at a path, or None."""
    node = _find(_parse(text), path)
    return None if node is None else _plain(text, node)


def with_member(text: str, path: Path, value: Any) -> str:
    """Return the text with this value at the path; missing objects on the way are made."""
    root = _parse(text)
    depth = len(path)
    while depth and _find(root, path[:depth]) is None:
        depth -= 1
    if depth == len(path):
        node = _find(root, path)
        assert node is not None
        if _plain(text, node) == value:
            return text
        return text[: node.start] + _written(text, value, _margin(text, node.start)) + text[node.end :]
    parent = _container(text, root, path[:depth], "{")
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _append(text, parent, value, path[depth])


def with_item(text: str, path: Path, value: Any) -> str:
    """Return the text with this value at the end of the list at the path, unless it is in the list already."""
    node = _find(_parse(text), path)
    if node is None:
        return with_member(text, path, [value])
    parent = _container(text, _parse(text), path, "[")
    if any(_plain(text, item) == value for _, _, item in parent.parts):
        return text
    return _append(text, parent, value, None)


def without_member(text: str, path: Path) -> str:
    """Return the text without the member at the path; objects that become empty stay."""
    parent = _find(_parse(text), path[:-1])
    if parent is None or parent.sign != "{":
        return text
    place = next((place for place, (_, key, _) in enumerate(parent.parts) if key == path[-1]), None)
    return text if place is None else _cut(text, parent, place)


def without_items(text: str, path: Path, is_ours: Callable[[Any], bool]) -> str:
    """Return the text without our items of the list at the path.

    An item may be a group, with a list `hooks` of its parts. From a group only the parts are removed that are ours;
    if all of them are, the whole group.
    """
    while True:
        node = _find(_parse(text), path)
        if node is None or node.sign != "[":
            return text
        cut = next((cut for place in range(len(node.parts)) if (cut := _ours_in(text, node, place, is_ours))), None)
        if cut is None:
            return text
        text = _cut(text, *cut)


def _ours_in(text: str, node: Node, place: int, is_ours: Callable[[Any], bool]) -> tuple[Node, int] | None:
    """Return the list and the place to cut at, if the item at this place is ours or has a part that is."""
    item = node.parts[place][2]
    group = _find(item, ("hooks",))
    if group is None or group.sign != "[" or not group.parts:
        return (node, place) if is_ours(_plain(text, item)) else None
    ours = [number for number, (_, _, part) in enumerate(group.parts) if is_ours(_plain(text, part))]
    if len(ours) == len(group.parts):
        return node, place
    return (group, ours[-1]) if ours else None


# ---- reading ----

_SKIPPED = re.compile(r"(?:\s|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_SCALAR = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[-+.\w]++')


def _parse(text: str) -> Node:
    start = _SKIPPED.match(text, 1 if text.startswith("\ufeff") else 0).end()  # type: ignore[union-attr]
    if start == len(text):
        raise _broken(text, start, "it is empty")
    try:
        node = _node(text, start)
    except RecursionError:
        raise _broken(text, start, "it is nested too deeply") from None
    rest = _SKIPPED.match(text, node.end)
    if rest is None or rest.end() != len(text):
        raise _broken(text, node.end, "something follows the end")
    return node


def _node(text: str, start: int) -> Node:
    sign = text[start : start + 1]
    if sign not in ("{", "["):
        scalar = _SCALAR.match(text, start)
        if not scalar:
            raise _broken(text, start, "a value is missing")
        return Node(start, scalar.end(), sign)
    parts: list[tuple[int, str, Node]] = []
    position = _skip(text, start + 1)
    while text[position : position + 1] != ("}" if sign == "{" else "]"):
        begin = position
        key, position = _key(text, position) if sign == "{" else ("", position)
        value = _node(text, position)
        parts.append((begin, key, value))
        position = _skip(text, value.end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] not in ("}", "]"):
            raise _broken(text, position, "a comma or a bracket is missing")
    return Node(start, position + 1, sign, tuple(parts))


def _key(text: str, position: int) -> tuple[str, int]:
    """Return the key of a member, and the place where its value begins."""
    name = _SCALAR.match(text, position)
    if not name or text[position] != '"':
        raise _broken(text, position, "a key is missing")
    colon = _skip(text, name.end())
    if text[colon : colon + 1] != ":":
        raise _broken(text, colon, "a colon is missing")
    return json.loads(name.group()), _skip(text, colon + 1)


def _skip(text: str, position: int) -> int:
    return _SKIPPED.match(text, position).end()  # type: ignore[union-attr]


def _broken(text: str, position: int, reason: str) -> InvalidInput:
    return InvalidInput(f"The file is not valid JSON: line {text.count(chr(10), 0, position) + 1}: {reason}.")


def _find(node: Node, path: Path) -> Node | None:
    for key in path:
        found = [value for _, name, value in node.parts if name == key] if node.sign == "{" else []
        if not found:
            return None
        node = found[-1]
    return node


def _container(text: str, root: Node, path: Path, sign: str) -> Node:
    node = _find(root, path)
    if node is None or node.sign != sign:
        kind = "an object" if sign == "{" else "a list"
        raise InvalidInput(f"`{'.'.join(path) or 'the file'}` is not {kind}, so nothing can be added to it.")
    return node


def _plain(text: str, node: Node) -> Any:
    if node.sign == "{":
        return {key: _plain(text, value) for _, key, value in node.parts}
    if node.sign == "[":
        return [_plain(text, value) for _, _, value in node.parts]
    try:
        return json.loads(text[node.start : node.end])
    except ValueError:
        raise _broken(text, node.start, f"{text[node.start : node.end][:40]} is not a value") from None


# ---- writing ----


def _append(text: str, parent: Node, value: Any, key: str | None) -> str:
    named = "" if key is None else f"{json.dumps(key)}: "
    close = parent.end - 1
    if not parent.parts:
        margin = _margin(text, parent.start)
        inner = margin + _unit(text)
        comment = text[parent.start + 1 : close].rstrip()
        end = _line_end(text)
        added = f"{comment}{end}{inner}{named}{_written(text, value, inner)}{end}{margin}"
        return text[: parent.start + 1] + added + text[close:]
    last = parent.parts[-1][2]
    comma = _skip(text, last.end)
    has_comma = text[comma] == ","
    before = text[(comma + 1 if has_comma else last.end) : close]
    kept = before.rstrip()
    place = close - len(before) + len(kept)
    first_start = parent.parts[0][0]
    line_start = text.rfind("\n", 0, first_start) + 1
    if line_start > parent.start or _is_open(kept):
        inner = text[line_start:first_start]
        inner = inner if not inner.strip() else _margin(text, parent.start) + _unit(text)
        added = f"{_line_end(text)}{inner}{named}{_written(text, value, inner)}"
    else:
        added = f" {named}{json.dumps(value, ensure_ascii=False)}"
    if has_comma:
        return text[:place] + added + text[place:]
    return text[: last.end] + "," + text[last.end : place] + added + text[place:]


def _cut(text: str, parent: Node, place: int) -> str:
    start, _, value = parent.parts[place]
    after = _skip(text, value.end)
    is_last = place == len(parent.parts) - 1
    if not is_last:
        following = parent.parts[place + 1][0]
        return text[:start] + text[following:]
    if not place:
        comment = text[parent.start + 1 : start].rstrip()
        if _is_open(comment):
            comment += _line_end(text) + _margin(text, parent.start)
        inside = comment + text[value.end : parent.end - 1].lstrip(", \t\r\n")
        return text[: parent.start + 1] + inside + text[parent.end - 1 :]
    end = after + 1 if text[after] == "," else value.end
    before = parent.parts[place - 1][2].end
    comma = _skip(text, before)
    gap = text[comma + 1 : start].rstrip()  # comments of the one before
    if _is_open(gap) and not re.match(r"[ \t]*\r?\n", text[end:]):
        gap += _line_end(text)
    return text[:before] + text[before:comma] + gap + text[end:]


_CLOSED_COMMENT = re.compile(r"//[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/")


def _is_open(gap: str) -> bool:
    """Return True if the text between two values ends inside a `//` comment, which would swallow the next value."""
    return "//" in _CLOSED_COMMENT.sub("", gap)


def _written(text: str, value: Any, margin: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return (_line_end(text) + margin).join(lines)


def _margin(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return one step of indentation, as the file has it."""
    return next(_indents(text), "  ")


def _indents(text: str) -> Iterator[str]:
    for line in re.finditer(r"^([ \t]+)\"", text, re.MULTILINE):
        yield "\t" if line.group(1).startswith("\t") else line.group(1)[:8]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
