"""Reading a briefing back, style by style, without a line of the renderer: by what docs/briefing.md says of the form.

Strict: a line or a tag that has no business there is an error. That is what a content that got out of its place is.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

SECTIONS = {
    "always": ("pinned", "Pinned"),
    "bridge": ("from_other_agents", "From other agents since this session began"),
    "retrieval": ("relevant", "Relevant now"),
    "summary": ("earlier_sessions", "Last session"),
}
BY_TAG = {tag: name for name, (tag, _) in SECTIONS.items()}
HEAD = re.compile(r"\[id:(g?\d+)\] ([^:]*):(?: (.*))?", re.DOTALL)
WARNING = re.compile(
    r'\[⚠ CONFLICT\] Entry #(g?\d+) says "([^"]*)" but Entry #(g?\d+) says "([^"]*)"\. Verify which is current\.'
)
LEFT_OUT = re.compile(r"There was no room for these ids: (g?\d+(?:, g?\d+)*)(?: and \d+ more)?\.")
PLAIN = {"conflicts": "conflicts", "also pinned": "left_out"}


class Forged(Exception):
    """The text is not a briefing: something got out of its place."""


@dataclass
class Read:
    """One memory, as a reader sees it."""

    ref: str
    content: str
    facts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass
class Parsed:
    """A whole briefing, as a reader sees it."""

    sections: dict[str, list[Read]] = field(default_factory=dict)
    conflicts: list[tuple[str, str, str, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def unescaped(text: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda match: chr(int(match[1], 16)), text)


def parse_xml(text: str) -> Parsed:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise Forged(str(error)) from error
    _require(root.tag == "project_memory" and not root.attrib, "the root")
    parsed = Parsed()
    for part in root:
        _require(not (part.text or "").strip() and not (part.tail or "").strip(), "text between tags")
        for element in part:
            _require(not len(element) and not (element.tail or "").strip(), "a tag within a content")
            if part.tag == "conflicts":
                parsed.conflicts.append(_conflict(element.text or ""))
                continue
            if part.tag == "also_pinned":
                parsed.left_out = _left_out(element.text or "")
                continue
            _require(element.tag == "memory", "a strange tag")
            begin = re.match(r"\[id:(g?\d+)\][ \n]", element.text or "")
            _require(begin, "no id")
            assert begin is not None
            about = {name: unescaped(value) for name, value in element.attrib.items() if name != "files"}
            files = tuple(map(unescaped, filter(None, element.attrib.get("files", "").split(", "))))
            content = unescaped((element.text or "")[begin.end() :])
            parsed.sections.setdefault(BY_TAG[part.tag], []).append(
                Read(begin[1], content, tuple(about.values()), files)
            )
    return parsed


def parse_json(text: str) -> Parsed:
    try:
        document = json.loads(text)["project_memory"]
    except (ValueError, KeyError) as error:
        raise Forged(str(error)) from error
    parsed = Parsed()
    for key, lines in document.items():
        if key == "conflicts":
            parsed.conflicts = [_conflict(line) for line in lines]
        elif key == "also_pinned":
            parsed.left_out = [ref for line in lines for ref in _left_out(line)]
        elif key != "note":
            parsed.sections[BY_TAG[key]] = [
                Read(
                    line["id"].removeprefix("[id:").removesuffix("]"),
                    line["content"],
                    tuple(line[name] for name in ("kind", "status", "by", "date") if name in line),
                    tuple(line.get("files", ())),
                )
                for line in lines
            ]
    return parsed


def parse_markdown(text: str) -> Parsed:
    return _parse_lines(text, title="## Project memory", heading=re.compile(r"### (.*)"), bullet="- ")


def parse_text(text: str) -> Parsed:
    return _parse_lines(text, title="PROJECT MEMORY", heading=re.compile(r"([A-Z ]+):"), bullet="")


def _parse_lines(text: str, *, title: str, heading: re.Pattern[str], bullet: str) -> Parsed:
    lines = text.split("\n")
    _require(lines == text.splitlines(), "a line break that is none of ours")
    _require(lines[0] == title, "the title")
    names = {shown: name for name, (_, heading) in SECTIONS.items() for shown in (heading, heading.upper())}
    parsed = Parsed()
    section = ""
    for line in lines[3 if bullet else 2 :]:
        if found := heading.fullmatch(line):
            section = PLAIN.get(found[1].lower()) or names.get(found[1], "")
            _require(section, f"a heading {line!r}")
        elif line.startswith("  │"):
            parsed.sections[section][-1].content += "\n" + unescaped(line.removeprefix("  │").removeprefix(" "))
        elif line.startswith("  files: "):
            parsed.sections[section][-1].files = tuple(map(unescaped, line.removeprefix("  files: ").split(", ")))
        elif line:
            _require(line.startswith(bullet), f"a strange line {line!r}")
            said = line.removeprefix(bullet)
            if section == "conflicts":
                parsed.conflicts.append(_conflict(said))
                continue
            if section == "left_out":
                parsed.left_out = _left_out(said)
                continue
            head = HEAD.fullmatch(said)
            _require(head and section, f"a strange line {line!r}")
            assert head is not None
            facts = [unescaped(fact) for fact in head[2].split(", ")]
            if section == "bridge":
                facts[-2] = facts[-2].removeprefix("by ")
            parsed.sections.setdefault(section, []).append(Read(head[1], unescaped(head[3] or ""), tuple(facts)))
    for reads in parsed.sections.values():
        for read in reads:
            read.content = read.content.removeprefix("\n")
    return parsed


def _conflict(sentence: str) -> tuple[str, str, str, str]:
    found = WARNING.fullmatch(sentence)
    _require(found, "a sentence about a conflict")
    assert found is not None
    return found[1], unescaped(found[2]), found[3], unescaped(found[4])


def _left_out(sentence: str) -> list[str]:
    found = LEFT_OUT.fullmatch(sentence)
    _require(found, "a sentence about pinned memories")
    assert found is not None
    return found[1].split(", ")


def _require(holds: object, what: str) -> None:
    if not holds:
        raise Forged(what)


PARSERS: Mapping[str, Callable[[str], Parsed]] = {
    "xml": parse_xml,
    "markdown": parse_markdown,
    "text": parse_text,
    "json": parse_json,
}
