"""MEMORY.md: a readable view of memories that people may edit, and what their edits mean.

    parse       the rows of a file: entries (a bullet with a memory) and prose, which is never touched
    find_edits  the lines that people changed, added and deleted since the file was written
    choose      which memories are shown: as many as fit
    weave       the file with the changes of the store worked in

An entry names its memory by an Obsidian block id at its end (` ^k42`). How the file was written is remembered as a
snapshot: the digest of each entry by its mark. Rule: a file is compared with what was written, never with the store:
a line that did not fit is not a deletion. What is no entry survives byte for byte.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from hashlib import blake2b

from msgspec import Struct

from kept.model import Memory

# Where a memory stands, by its kind; and the kind of a line that a person adds there.
SECTIONS: Mapping[str, str] = {
    "Key Decisions": "decision",
    "User Preferences": "preference",
    "Project Context": "fact",
    "Warnings": "warning",
    "Known Errors": "error",
    "Session Summaries": "summary",
}
_SECTION_OF_KIND = {kind: section for section, kind in SECTIONS.items()}
_BY_NAME = {section.casefold(): section for section in SECTIONS}
DATED = "Session Summaries"

FEW_LINES = 5
FEW_SHARE = 0.2  # more lines than both of these at once are not deleted without a question
_HEADING_CHARS = 30  # of a section that has to be added

Snapshot = Mapping[str, str]  # mark → digest of the text

# A repository may bring the file, so no pattern here tries the same characters twice: spaces are cut off by `strip`.
_HEADING = re.compile(r"(#{1,6})[ \t]+")
_BULLET = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_MARK = re.compile(r"[0-9a-z]{1,40}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?=$|[\s:,–—-])", re.ASCII)
_BOX_OR_LINK = re.compile(r"\[[ xX]\](?: .*)?|!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?|\[\[[^\]]*\]\]|<?\w+://\S*")
_MORE = re.compile(r"\*[\d,]+ more (?:memory is|memories are) not shown here\. `kept list` shows all\.\*[ \t]*")


class Row(Struct, frozen=True, kw_only=True):
    """A piece of the file: an entry with its text, or (`text` is None) prose. `raw` is what stands there, with its end.

    `section` is the heading that it stands under: one of ours, or a person's own. An entry may go over several lines.
    `day` is the date before its text, or else of the heading above it.
    """

    raw: str
    text: str | None = None
    mark: str | None = None
    section: str | None = None
    heading: int = 0  # the level of a heading
    day: date | None = None

    @property
    def is_entry(self) -> bool:
        return self.text is not None


class PageLine(Struct, frozen=True, kw_only=True):
    """A memory as it is to be shown. `day` orders summaries."""

    mark: str
    text: str
    section: str
    day: date | None = None


class PageEdits(Struct, frozen=True, kw_only=True):
    """The edits of a file since it was written. Rows are meant by their numbers.

    `marks` has every row that still stands for a memory; `changed` those of them with another text; `foreign` those
    with a mark that was not written.
    """

    marks: dict[int, str]
    changed: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    foreign: tuple[int, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.foreign or self.deleted)


def section_of(kind: str) -> str:
    """The heading under which memories of that kind stand."""
    return _SECTION_OF_KIND.get(kind, "Project Context")


def line_of(memory: Memory) -> str:
    """The text of a memory in one line, which stands behind a bullet of its own."""
    lines = memory.content.replace("\r\n", "\n").strip().removeprefix("- ").split("\n")
    return "<br>".join(" ".join(line.split()) for line in lines)


def content_of(text: str) -> str:
    """The text of an entry as a memory has it."""
    return text.replace("<br>", "\n")


def digest(text: str) -> str:
    """What a snapshot keeps of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def snapshot(rows: Iterable[Row]) -> dict[str, str]:
    """The digests of all entries that have a mark; of two with the same mark, that of the first."""
    found: dict[str, str] = {}
    for row in rows:
        if row.mark is not None and row.text is not None:
            found.setdefault(row.mark, digest(row.text))
    return found


# Reading


def parse(text: str) -> list[Row]:
    """The rows of a file; joined, their `raw` is the file again."""
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    has_front_matter = bool(lines) and lines[0].strip() == "---"
    parsing = _Parsing("---" if has_front_matter else "")
    for number, line in enumerate(lines):
        parsing.add(line, is_first=number == 0)
    parsing.end_entry()
    return parsing.rows


class _Parsing:
    """The rows of a file so far, and what the next line may belong to."""

    def __init__(self, closing: str) -> None:
        self.rows: list[Row] = []
        self._section: str | None = None
        self._day: date | None = None
        self._closing = closing  # how the open block ends: front matter, code or a comment
        self._parts: list[str] = []  # the lines of the last row, while it may go on: they are joined once

    def add(self, line: str, *, is_first: bool) -> None:
        bare = line.rstrip("\r\n")
        if self._parts and _continues(bare) and not _opens(bare):
            self._parts.append(line)
            if _marked(bare) or (self._section not in SECTIONS and bare.rstrip().endswith(":")):
                self.end_entry()
            return
        self.end_entry()
        if self._closing:
            if not is_first and _closes(bare, self._closing):
                self._closing = ""
            self.rows.append(Row(raw=line, section=self._section))
        elif opened := _opens(bare):
            self._closing = opened
            self.rows.append(Row(raw=line, section=self._section))
        elif heading := _heading(bare):
            self._section = _section_below(*heading, self._section)
            self._day = _date_before(heading[1])
            self.rows.append(Row(raw=line, section=self._section, heading=heading[0]))
        else:
            self._begin_entry(line)

    def _begin_entry(self, line: str) -> None:
        row = _entry(line, self._section, self._day)
        self.rows.append(row)
        self._parts = [line] if row.is_entry and row.mark is None else []

    def end_entry(self) -> None:
        if len(self._parts) > 1:
            self.rows[-1] = _entry("".join(self._parts), self._section, self._day)
        self._parts = []


def _closes(line: str, closing: str) -> bool:
    return closing in line if closing == "-->" else line.strip().startswith(closing)


def _section_below(level: int, name: str, section: str | None) -> str | None:
    """The section of the lines below a heading: one of ours, the one around a lower heading, or a person's own."""
    known = _BY_NAME.get(name.casefold()) or (section if level > 2 and section in SECTIONS else name)
    return known if level > 1 or known in SECTIONS else None  # the title says nothing about a line


def _heading(line: str) -> tuple[int, str] | None:
    """The level and the text of a heading, without the `#` that may close it."""
    found = _HEADING.match(line)
    return (len(found[1]), line[found.end() :].rstrip(" \t").rstrip("#").rstrip(" \t")) if found else None


def _marked(line: str) -> tuple[str, str] | None:
    """The text and the mark of a line that ends with a mark."""
    before, caret, mark = line.rstrip(" \t").rpartition("^k")
    is_mark = caret and _MARK.fullmatch(mark) and (not before or before.endswith((" ", "\t")))
    return (before.rstrip(" \t"), mark) if is_mark else None


def _continues(line: str) -> bool:
    """Return True if an indented line goes on with the entry above it: it is not a bullet."""
    text = line.lstrip(" \t")
    return line.startswith(("  ", "\t")) and text[:1].strip() != "" and not _BULLET.match(text)


def _opens(line: str) -> str:
    """How the block ends that begins here: code, or a comment; "" if none does."""
    start = line.lstrip(" ")
    if start.startswith(("```", "~~~")) and len(line) - len(start) <= 3:
        return start[:3]
    return "-->" if start.startswith("<!--") and "-->" not in start else ""


def _entry(raw: str, section: str | None, day: date | None) -> Row:
    """The row of a line: an entry if it has a mark, or is a bullet in a section of ours, or one that says something."""
    bare = raw.rstrip("\r\n")
    marked = _marked(bare)
    is_bullet = _BULLET.match(bare) is not None
    text = " ".join(_BULLET.sub("", (marked[0] if marked else bare).lstrip(), count=1).split())
    if not marked and not (is_bullet and text and (section in SECTIONS or _is_statement(text))):
        return Row(raw=raw, section=section)
    mark = marked[1] if marked else None
    return Row(raw=raw, text=text, mark=mark, section=section, day=_date_before(text) or day)


def _date_before(text: str) -> date | None:
    """Return the date that a text begins with."""
    found = _DATE.match(text)
    try:
        return date.fromisoformat(found[0]) if found else None
    except ValueError:  # the 31st of February
        return None


def _is_statement(text: str) -> bool:
    """Whether a bullet says something by itself: not a single word, a box to tick, a link or the head of a list."""
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    return len(words) > 1 and not text.endswith(":") and not _BOX_OR_LINK.fullmatch(text)


def find_edits(written: Snapshot | None, rows: Sequence[Row]) -> PageEdits:
    """What changed since the file was written like this; None: it is not known how, so nothing counts as deleted.

    A line that lost its mark is recognised by its text. Of a line that was copied with its mark, one keeps it.
    """
    before = written or {}
    marks = _unique_marks(before, rows)
    added = _match_unmarked(before, rows, marks)
    here = {number: mark for number, mark in sorted(marks.items()) if rows[number].text}
    known = [number for number, mark in here.items() if mark in before]
    return PageEdits(
        marks=here,
        changed=tuple(number for number in known if _digest_of(rows[number]) != before[here[number]]),
        added=tuple(added),
        foreign=tuple(number for number, mark in here.items() if mark not in before),
        deleted=tuple(sorted(before.keys() - set(here.values()))),
    )


def _digest_of(row: Row) -> str:
    return digest(row.text or "")


def _match_unmarked(before: Snapshot, rows: Sequence[Row], marks: dict[int, str]) -> list[int]:
    """Give lines that lost their mark the mark of the same text. Returns the entries that are new."""
    lost: dict[str, list[str]] = {}
    for mark in before.keys() - set(marks.values()):
        lost.setdefault(before[mark], []).append(mark)
    added = []
    for number, row in enumerate(rows):
        if row.text and marks.get(number) not in before:
            if same := lost.get(digest(row.text)):
                marks[number] = same.pop()
            elif number not in marks:
                added.append(number)
    return added


def _unique_marks(before: Snapshot, rows: Sequence[Row]) -> dict[int, str]:
    """Which row has which mark: of several with the same one the unchanged one, else the first."""
    numbers: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if row.mark is not None:
            numbers.setdefault(row.mark, []).append(number)
    chosen = {}
    for mark, same in numbers.items():
        unchanged = [number for number in same if digest(rows[number].text or "") == before.get(mark)]
        chosen[(unchanged or same)[0]] = mark
    return chosen


def ancestor(after: Snapshot, before: Snapshot, rows: Sequence[Row]) -> Snapshot:
    """What the rows were made from, where it is not known whether the file was replaced: as it was, or as it became.

    Lines that only one of the two has tell which. If none does, it was not replaced: nothing new counts as deleted.
    """
    here = {(row.mark, digest(row.text)) for row in rows if row.mark is not None and row.text is not None}
    only_after, only_before = after.items() - before.items(), before.items() - after.items()
    new, old = len(here & only_after), len(here & only_before)
    return after if new > old or (new == old == len(only_after)) else before


def is_suspicious(written: Snapshot, edits: PageEdits) -> bool:
    """Whether enough lines are gone to suspect an accident: a file half saved, emptied or replaced."""
    gone = len(edits.deleted)
    return gone > max(FEW_LINES, FEW_SHARE * len(written)) or (gone > 1 and gone == len(written))


# Writing


def start(title: str) -> str:
    """A file in which nothing is shown yet."""
    return f"# {title}\n\nEdit, add, delete or move lines. Kept takes your changes in at its next command.\n"


def choose(rows: Sequence[Row], entries: Sequence[PageLine], max_chars: int) -> list[PageLine]:
    """The entries that fit beside the prose of a file, the first ones first."""
    left = max_chars - sum(len(row.raw) for row in rows if not row.is_entry and not _is_more(row)) - 100
    present = {row.section for row in rows if row.heading}
    shown = []
    for entry in entries:
        cost = len(entry.text) + len(entry.mark) + 6
        cost += _HEADING_CHARS if entry.section not in present or entry.day else 0
        if cost > left:
            continue
        left -= cost
        present.add(entry.section)
        shown.append(entry)
    return shown


def weave(
    rows: Sequence[Row],
    marks: Mapping[int, str],
    entries: Sequence[PageLine],
    *,
    leave: Collection[int] = (),
    more: int = 0,
) -> str:
    """The file with every entry as it should be: kept where it stands, changed, left out, or added to its section.

    `marks` says which row stands for which memory. The rows in `leave` stay as they are.
    """
    end = "\r\n" if sum(row.raw.endswith("\r\n") for row in rows) * 2 > len(rows) else "\n"
    wanted = {entry.mark: entry for entry in entries}
    out: list[Row] = []
    for number, row in enumerate(rows):
        if _is_more(row):
            continue
        entry = wanted.pop(marks.get(number, ""), None)
        if not row.is_entry or number in leave:
            out.append(row)
        elif entry is not None:
            out.append(_shown(row, entry, end))
    insert(out, [entry for entry in entries if entry.mark in wanted], end)
    if more:
        _append_more(out, more, end)
    return joined(out, end)


def _append_more(rows: list[Row], more: int, end: str) -> None:
    """Say below a blank line how many memories are not shown."""
    if rows and rows[-1].raw.strip():
        rows.append(Row(raw=end))
    are = "memory is" if more == 1 else "memories are"
    rows.append(Row(raw=f"*{more:,} more {are} not shown here. `kept list` shows all.*{end}"))


def _is_more(row: Row) -> bool:
    return not row.is_entry and _MORE.fullmatch(row.raw.rstrip("\r\n")) is not None


def _shown(row: Row, entry: PageLine, end: str) -> Row:
    """The row of a memory: unchanged if it says the same, otherwise rewritten after the same bullet."""
    is_same = row.text == entry.text
    if is_same and row.mark == entry.mark:
        return row
    bare = row.raw.rstrip("\r\n")
    if is_same and row.mark is None:
        raw = f"{bare.rstrip()} ^k{entry.mark}{row.raw[len(bare) :] or end}"
    else:
        indent = re.match(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?", bare)
        raw = f"{(indent and indent[0]) or '- '}{entry.text} ^k{entry.mark}{end}"
    return Row(raw=raw, text=entry.text, mark=entry.mark, section=row.section)


def insert(rows: list[Row], entries: Iterable[PageLine], end: str) -> None:
    """Add entries at the end of their sections; summaries below the heading of their day, the newest day first."""
    blocks: dict[tuple[str, date | None], list[Row]] = {}
    for entry in entries:
        raw = f"- {entry.text} ^k{entry.mark}{end}" if entry.mark else f"- {entry.text}{end}"
        made = Row(raw=raw, text=entry.text, mark=entry.mark or None, section=entry.section)
        blocks.setdefault((entry.section, entry.day), []).append(made)
    for (section, day), block in blocks.items():
        _insert_block(rows, section, day, block, end)


def _insert_block(rows: list[Row], section: str, day: date | None, block: list[Row], end: str) -> None:
    heading = _section_heading(rows, section, end)
    if day is not None:
        heading = _day_heading(rows, heading, day, end)
    place = _after_entries(rows, heading + 1)
    if place == heading + 1 and place < len(rows) and rows[place].heading:
        rows.insert(place, Row(raw=end))
    rows[place:place] = block


def _section_heading(rows: list[Row], section: str, end: str) -> int:
    """Return the row of a section's heading; make a missing one."""
    found = next((number for number, row in enumerate(rows) if row.heading and _names(row) == section), None)
    if found is not None:
        return found
    place = _place_of_new_section(rows, section)
    made = Row(raw=f"## {section}{end}", section=section, heading=2)
    above = [Row(raw=end)] if place and rows[place - 1].raw.strip() else []
    below = [Row(raw=end, section=section)] if place < len(rows) else []
    rows[place:place] = [*above, made, *below]
    return place + len(above)


def _place_of_new_section(rows: Sequence[Row], section: str) -> int:
    """Return the first row of the sections that follow this one in SECTIONS; else the end of the file."""
    names = list(SECTIONS)
    after = names[names.index(section) + 1 :] if section in names else []
    return next((n for n, row in enumerate(rows) if 0 < row.heading <= 2 and _names(row) in after), len(rows))


def _after_entries(rows: Sequence[Row], start: int) -> int:
    """The place after the last entry before the next heading."""
    place = start
    for number in range(start, len(rows)):
        if rows[number].heading:
            break
        if rows[number].is_entry:
            place = number + 1
    return place


def _day_heading(rows: list[Row], section: int, day: date, end: str) -> int:
    """The row of the heading of that day; made if missing, before the older days."""
    name = f"{day:%Y-%m-%d}"
    place = section + 1
    for number in range(section + 1, len(rows)):
        if rows[number].heading and rows[number].heading <= rows[section].heading:
            break
        if rows[number].heading:
            found = (_heading(rows[number].raw.rstrip("\r\n")) or (0, ""))[1]
            if found == name:
                return number
            if found > name:
                place = number + 1
                while place < len(rows) and not rows[place].heading:
                    place += 1
    rows.insert(place, Row(raw=f"### {name}{end}", section=DATED, heading=3))
    return place


def _names(row: Row) -> str | None:
    heading = _heading(row.raw.rstrip("\r\n"))
    return _BY_NAME.get(heading[1].casefold(), heading[1]) if heading else None


def joined(rows: Sequence[Row], end: str) -> str:
    """The text of the rows, each on a line of its own."""
    last = len(rows) - 1
    return "".join(row.raw if n == last or row.raw.endswith("\n") else row.raw + end for n, row in enumerate(rows))
