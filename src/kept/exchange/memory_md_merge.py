"""Join two versions of a MEMORY.md that have a common ancestor, for git's merge driver.

Entries are joined by their marks, prose line by line. Rule: an entry that both sides changed is kept twice, and named,
so that a person decides.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from kept.errors import InvalidInput
from kept.exchange.memory_md import PageEdits, PageLine, Row, digest, find_edits, insert, joined, parse, snapshot

MAX_PROSE = 1500  # lines, between the first and the last change, to merge: 3 s at worst, and 8 times that for twice


def merge(base: str, ours: str, theirs: str) -> tuple[str, list[str]]:
    """Join two versions of a file that have a common ancestor; and what both had changed, of which both are kept.

    Raises InvalidInput if more than MAX_PROSE lines of prose would have to be compared.
    """
    before, other = parse(base), parse(theirs)
    written = snapshot(before)
    page = _Page(written, parse(ours))
    page.take(find_edits(written, other), other)
    rows = page.merged()
    _merge_prose(rows, before, other)  # first: a line may belong below a heading that is new
    insert(rows, [_line_of(row) for row in page.new], "\n")
    return joined(rows, "\n"), page.clashes


def _line_of(row: Row) -> PageLine:
    return PageLine(mark=row.mark or "", text=row.text or "", section=row.section or "Project Context")


class _Page:
    """Our version, and what the changes of the other side do to its entries."""

    def __init__(self, written: dict[str, str], rows: list[Row]) -> None:
        self.clashes: list[str] = []
        self.new: list[Row] = []
        self._rows = rows
        self._edits = find_edits(written, rows)
        self._places = {mark: number for number, mark in self._edits.marks.items()}
        self._said = {digest(row.text) for row in rows if row.text}
        self._replaced: dict[int, list[Row]] = {}

    def take(self, edits: PageEdits, other: Sequence[Row]) -> None:
        for number in edits.changed:
            self._change(edits.marks[number], other[number])
        for mark in edits.deleted:
            self._delete(mark)
        for number in (*edits.added, *edits.foreign):
            row = other[number]
            if digest(row.text or "") not in self._said and row.mark not in self._places:
                self.new.append(row)

    def merged(self) -> list[Row]:
        return [one for number, row in enumerate(self._rows) for one in self._replaced.get(number, [row])]

    def _change(self, mark: str, row: Row) -> None:
        place = self._places.get(mark)
        if place is None:
            self.new.append(row)
            self.clashes.append(f"^k{mark} was deleted on one side and changed on the other")
        elif place not in self._edits.changed:
            self._replaced[place] = [row]
        elif self._rows[place].text != row.text:
            self._replaced[place] = [self._rows[place], Row(raw=f"- {row.text}\n", text=row.text)]
            self.clashes.append(f"^k{mark} was changed on both sides")

    def _delete(self, mark: str) -> None:
        place = self._places.get(mark)
        if place is None:
            return
        if place in self._edits.changed:
            self.clashes.append(f"^k{mark} was deleted on one side and changed on the other")
        else:
            self._replaced[place] = []


def _merge_prose(rows: list[Row], before: Sequence[Row], other: Sequence[Row]) -> None:
    """Do to the prose of `rows` what was done between `before` and `other`."""
    old, new = _prose(before), _prose(other)
    raws = [row.raw for row in new]
    head, tail = _same_ends(old_raws := [row.raw for row in old], raws)
    changed, into = old_raws[head : len(old) - tail], raws[head : len(raws) - tail]
    here = Counter(row.raw for row in _prose(rows))
    present = set(here)
    for action, *span in SequenceMatcher(None, changed, into, autojunk=False).get_opcodes():
        if action != "equal":
            start, stop, new_start, new_stop = (head + number for number in span)
            anchor = _place_of(rows, old_raws[start - 1]) if start else -1
            _remove(rows, [raw for raw in old_raws[start:stop] if raw in present], anchor)
            fresh = [row for row in new[new_start:new_stop] if not row.raw.strip() or not here[row.raw]]
            rows[anchor + 1 : anchor + 1] = fresh
            present.update(row.raw for row in fresh)


def _prose(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row.is_entry]


def _place_of(rows: Sequence[Row], raw: str) -> int:
    """The number of the first row with that text; -1 if there is none."""
    return next((number for number, row in enumerate(rows) if row.raw == raw), -1)


def _same_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end need no comparison. Raises InvalidInput if too many do."""
    head = tail = 0
    if max(len(old), len(new)) > MAX_PROSE:
        head = _same_beginning(old, new)
        tail = _same_beginning(old[head:][::-1], new[head:][::-1])
    if (most := max(len(old), len(new)) - head - tail) > MAX_PROSE:
        raise InvalidInput(
            f"{most:,} lines besides the memories differ between the versions; Kept merges at most {MAX_PROSE:,}.",
            hint="Merge them by hand.",
        )
    return head, tail


def _remove(rows: list[Row], lines: Sequence[str], anchor: int) -> None:
    """Remove these lines of prose, each where it first stands below the anchor."""
    for raw in lines:
        at = next((n for n, row in enumerate(rows) if n > anchor and not row.is_entry and row.raw == raw), None)
        if at is not None:
            del rows[at]


def _same_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the equal lines at the beginning of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (line, twin) in pairs if line != twin), min(len(one), len(other)))
