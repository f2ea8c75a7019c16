"""Read the declaration below a doc comment: its name, and whether other code may use it.

By the first line alone, and the same for all languages with braces: words that modify, a word such as `class` or `fn`,
a name. Rule: when the name is not clear, the comment documents nothing.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

_ATTRIBUTE = re.compile(r"@(?!interface)\w|#!?\[|\[\w|//")  # @Override, #[derive(…)], [Obsolete], a comment
_MODIFIER = re.compile(
    r"(?:export|default|declare|public|protected|private|internal|fileprivate|static|final|abstract|async|readonly"
    r"|override|open|sealed|data|inline|const(?=\s+(?:fn|unsafe|enum))|unsafe|extern|virtual|partial|synchronized|native"
    r"|suspend|mut|pub(?:\([^)]{0,40}\))?|@\w+(?:\([^)]{0,200}\))?|\"C\")\s+"
)
_WORD = re.compile(
    r"(class|interface|enum|struct|trait|union|type|function\*?|func|fn|def|fun|object|record|mod|module|macro_rules!"
    r"|namespace|package|let|var|val|const|static|protocol|@interface|accessor|get|set)\s+"
)
_CONTAINER = re.compile(
    r"\s*(?P<modifiers>(?:[a-z]+(?:\([^)]{0,40}\))?\s+){0,5})"
    r"(?:class|interface|enum|struct|trait|object|namespace|mod|record|type|impl(?:<[^>]{0,80}>)?|const)\s+"
    r"(?:[\w:<>, ]{1,80} for )?(?P<name>[A-Za-z_]\w{0,80})"
)
_TYPE = re.compile(r"(?:class|interface|enum|struct|trait|union|type|record|mod|module|namespace|package|protocol)\s")
_PACKAGE = re.compile(r"[\w.]{1,200}")
_RECEIVER = re.compile(r"\(\s*(?:\w+\s+)?\*?(\w{1,60})[^)]{0,60}\)\s*")  # func (c *Command) Execute
_NAME = re.compile(r"#?[A-Za-z_$][\w$]{0,80}")
_CALLED = re.compile(r"([A-Za-z_$][\w$]{0,80})\s*(?:<[^()]{0,80}>)?\(")
_FIELD = re.compile(r"([A-Za-z_$][\w$]{0,80})\??\s*[:=;,]|([A-Za-z_$][\w$]{0,80})\s*$")
_NOT_NAMES = frozenset("if for while switch return catch new throw import from using use else case await yield".split())
_HIDDEN = frozenset(("private", "internal", "fileprivate"))
MAX_ATTRIBUTES = 6
EXPORTED = frozenset((".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"))
_JAVA = (".java", ".cs")
_OUTSIDE = frozenset(("export", "declare", "default"))


class Declaration(NamedTuple):
    """The thing that a doc comment is about."""

    name: str
    is_public: bool
    is_type: bool  # a class, an interface, a package: not a function or a field


class Container(NamedTuple):
    """A class, interface or the like, by the line where it begins."""

    line: int
    indent: int
    name: str
    is_public: bool


def containers_of(lines: Sequence[str], ending: str) -> list[Container | None]:
    """Return for each line the container around it, told by its indentation."""
    around: list[Container] = []
    found: list[Container | None] = []
    for number, line in enumerate(lines, 1):
        said = line[:400].expandtabs(4)
        indent = len(said) - len(said.lstrip())
        if said.strip() and not said.lstrip().startswith(("{", ")", "#")):
            while around and around[-1].indent >= indent:
                around.pop()
        found.append(around[-1] if around else None)
        if opening := _CONTAINER.match(said):
            modifiers = set(opening["modifiers"].split())
            is_public = ending not in EXPORTED or bool(modifiers & _OUTSIDE)
            around.append(Container(number, indent, opening["name"], is_public))
    return found


def declaration_below(
    lines: Sequence[str], last: int, ending: str, container: Container | None = None
) -> Declaration | None:
    """Return the declaration on the line after `last`, below attributes; None if there is none."""
    below = next((line for line in lines[last : last + MAX_ATTRIBUTES] if not _ATTRIBUTE.match(line.strip())), "")
    said = below.strip()[:400]
    modifiers: set[str] = set()
    rest = said
    while found := _MODIFIER.match(rest):
        modifiers.add(found[0].strip())
        rest = rest[found.end() :]
    name = _name(rest)
    if name is None or name in _NOT_NAMES:
        return None
    is_member = container is not None
    is_public = rest.startswith("package ") or _is_public(name, modifiers, ending, is_member=is_member)
    is_type = _TYPE.match(rest) is not None
    if container is None or "." in name:
        return Declaration(name, is_public, is_type)
    return Declaration(f"{container.name}.{name}", is_public and container.is_public, is_type)


def _name(rest: str) -> str | None:
    if word := _WORD.match(rest):
        rest = rest[word.end() :]
        receiver = _RECEIVER.match(rest)
        names = _PACKAGE if word[1] == "package" else _NAME
        name = names.match(rest[receiver.end() :] if receiver else rest)
        if name is None:
            return None
        return f"{receiver[1]}.{name[0]}" if receiver else name[0]
    found = _CALLED.search(rest)
    if found:
        return found[1]
    field = _FIELD.search(rest)
    return (field[1] or field[2]) if field else None


def _is_public(name: str, modifiers: set[str], ending: str, *, is_member: bool) -> bool:
    own = name.rsplit(".", 1)[-1]
    if own.startswith(("_", "#")) or modifiers & _HIDDEN:
        return False
    if ending == ".go":
        return own[0].isupper()
    if ending == ".rs":
        return "pub" in modifiers
    if ending in _JAVA:
        return bool(modifiers & {"public", "protected"})
    if ending in EXPORTED:
        return is_member or bool(modifiers & _OUTSIDE)
    return True
