"""MEMORY.md as a view: take people's edits in, and show the memories that are worth most.

`exchange.memory_md` reads and writes the text. A changed line is a revision, a new one a memory in the user's own
words, a deleted one is forgotten. Rule: where the store and a person changed the same line, both texts are kept, and
the answer says so. A line of a file in a repository is the user's only once a person accepted it; else it is a
candidate of unknown trust, and changes nothing that is stored.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from functools import cached_property
from typing import Any

from kept import worth
from kept.errors import InvalidInput
from kept.exchange import agents_md
from kept.exchange import memory_md as page
from kept.memory.change import put_away
from kept.memory.context import BATCH, Context, by_uid
from kept.memory.view import AGENTS_MD, Ask, Outcome, Seen, SyncOptions, SyncReport, ViewPlace, Waiting, person_source
from kept.memory.write import place as destination
from kept.model import ERASED, GLOBAL, Draft, Memory, Receipt, Source, replace
from kept.ports import Transaction, Where
from kept.storage.shared import every
from kept.tables import RETENTIONS
from kept.writing import pipeline, revise
from kept.writing.rejections import Rejections

SHARED_MARK = 8  # characters of a uid: the numbers of one machine mean nothing on another
MOST_EVENTS = 300  # since the file was written: beyond that, all memories are looked at
MOST_ASKED = 20  # lines shown with one question: they fit on a screen
MAX_TAG = 60  # characters of a heading that becomes a tag
SHOWN_TIERS = ("project", "global")


class MemoryFile:
    """The MEMORY.md of one space."""

    command = "kept files sync"  # which shows the edits of a shared file, and asks
    title = ""  # a heading of ours below which a new line has no tag

    def __init__(self, context: Context, place: ViewPlace, terms: SyncOptions) -> None:
        self.place = place
        self._context = context
        self._terms = terms

    @cached_property
    def _rules(self) -> pipeline.WriteRules:
        """Return the rules for typed lines; they are read only if there are edits."""
        return replace(self._context.rules(), source=person_source(self._context))

    def merge(self, tx: Transaction, seen: Seen, note: Mapping[str, Any], done: SyncReport) -> Outcome:
        ids: dict[str, int] = {str(mark): int(id) for mark, id in note.get("ids", {}).items()}
        snapshots = note.get("written") if seen.text is not None else None
        rows = page.parse(self._start() if seen.text is None else seen.text)
        written = page.ancestor(snapshots[0], snapshots[-1], rows) if snapshots else None
        edits = page.find_edits(written, rows)
        accepts = self._check(tx, edits, rows, written or {}, ids)
        work = PageWork(self, tx, rows, written or {}, edits, ids, done, accepts=accepts)
        work.run()
        shown, more = self._shown(tx, rows, work, note.get("seq") if seen.text is not None else None)
        text = page.weave(rows, work.marks, shown, leave=work.left, more=more)
        before = {mark: page.digest(rows[n].text or "") for n, mark in work.marks.items()}
        after = page.snapshot(page.parse(text))
        for number in work.left:  # an edit that could not be taken in is still one
            if (mark := work.marks.get(number)) is not None:
                before[mark] = after[mark] = (written or {}).get(mark, "")
        kept_ids = work.ids if self.place.is_shared else {}
        last = tx.events(newest_first=True, limit=1)
        about = {"ids": kept_ids, "seq": last[0].seq if last else 0}
        return Outcome(text=text, note={"written": [after], **about}, note_before={"written": [after, before], **about})

    def _start(self) -> str:
        return page.start("Memory of all projects" if self.place.storage.space == GLOBAL else "Memory of this project")

    def note_as_written(self, text: str) -> Mapping[str, Any]:
        """Return the note about a file as if Kept had written it as it is."""
        return {"written": [page.snapshot(page.parse(text))], "ids": {}}

    def _check(
        self,
        tx: Transaction,
        edits: page.PageEdits,
        rows: Sequence[page.Row],
        written: page.Snapshot,
        ids: Mapping[str, int],
    ) -> bool:
        """Whether the edits count as the user's own. Raises Waiting when a person has to look at them first."""
        if not edits:
            return True
        named = (self.memory_of(tx, mark, ids) for mark in edits.deleted)
        gone = [memory for memory in named if memory and not memory.is_archived]
        if page.is_suspicious(written, edits) or _is_half_saved(rows, map(self.line_of, gone)):
            self._ask_about_lost(gone, len(edits.deleted), len(written))
        if not self.place.is_shared:
            return True
        lines = [*self._edited(tx, edits, rows, ids), *(f"- {self.line_of(memory)}" for memory in gone)]
        if not self._terms.is_asked_for:
            edited = "1 line was" if len(lines) == 1 else f"{len(lines)} lines were"
            raise Waiting(f"{edited} edited. `{self.command}` shows the edits and asks.")
        return not lines or (self._terms.ask is not None and _accepts_all(self._terms.ask, lines))

    def _ask_about_lost(self, gone: Sequence[Memory], n_gone: int, n_written: int) -> None:
        """Raise Waiting unless a person says that these lines are to be forgotten."""
        question = f"{n_gone} of {n_written} lines are gone from {self.place.name}."
        if self._terms.ask is None:
            raise Waiting(f"{question} `{self.command}` asks whether to forget them.")
        if not self._terms.ask(f"{question} Forget these?", [self.line_of(memory) for memory in gone[:MOST_ASKED]]):
            raise Waiting("The answer was no. Nothing was changed; put the lines back, or delete the file.")

    def _edited(
        self, tx: Transaction, edits: page.PageEdits, rows: Sequence[page.Row], ids: Mapping[str, int]
    ) -> Iterator[str]:
        """The changed and new lines, as a person is shown them: before and after."""
        for n in edits.changed:
            if (before := self.memory_of(tx, edits.marks[n], ids)) is not None:
                yield f"- {self.line_of(before)}"
            yield f"+ {rows[n].text or ''}"
        for n in (*edits.added, *edits.foreign):
            yield f"+ {rows[n].text or ''}"

    # Memories and their marks

    def line_of(self, memory: Memory) -> str:
        """Return the text of a memory in one line."""
        return page.line_of(memory)

    def content_of(self, line: str) -> str:
        """Return the text of a line as a memory has it."""
        return page.content_of(line)

    def mark_of(self, memory: Memory, ids: Mapping[str, int]) -> str:
        """How the file names a memory: by its id; in a repository by a mark that means nothing on its own."""
        if not self.place.is_shared:
            return str(memory.id)
        return next((mark for mark, id in ids.items() if id == memory.id), memory.uid.replace("-", "")[-SHARED_MARK:])

    def memory_of(self, tx: Transaction, mark: str, ids: Mapping[str, int]) -> Memory | None:
        """The memory that a mark names, on whichever shelf it is."""
        id = self._id_of(mark, ids)
        found = tx.get(Memory, id) if id else None
        return found if found is not None and found.scope == "memory" else None

    def _id_of(self, mark: str, ids: Mapping[str, int]) -> int:
        """Return the id that a mark means; 0 if it means none."""
        if self.place.is_shared:
            return ids.get(mark, 0)
        return int(mark) if mark.isascii() and mark.isdigit() and len(mark) < 18 else 0

    def prepare(self, row: page.Row, *, accepts: bool) -> "pipeline.Ready | Receipt":
        """Make an added line a draft that is ready to be stored. A date in it or over it says when it was said."""
        section = row.section
        is_ours = section in (*page.SECTIONS, self.title)
        own = () if is_ours else (" ".join((section or "").casefold().split())[:MAX_TAG],)
        kind, tags = page.SECTIONS.get(section or "", "fact"), tuple(filter(None, own))
        said_at = None if row.day is None else datetime.combine(row.day, time(), UTC)
        content = self.content_of(row.text or "")
        draft = Draft(content=content, kind=kind, tags=tags, tier=self._tier(), created_at=said_at)
        if not accepts:
            draft = replace(draft, trust="unknown", source=Source(origin="import", file=str(self.place.name)))
        return pipeline.prepare(draft, self._rules)

    def revise(self, memory: Memory, text: str, tx: Transaction) -> Memory:
        """The memory with the text of its line."""
        return revise.revise(memory, {"content": self.content_of(text)}, self._rules, tx.stamp.at)

    def store(self, tx: Transaction, ready: "pipeline.Ready") -> Receipt:
        [receipt] = pipeline.store(tx, [ready], destination(self.place.storage, tx.stamp.at))
        return receipt

    def _tier(self) -> Any:
        return GLOBAL if self.place.storage.space == GLOBAL else "project"

    def _shown(
        self, tx: Transaction, rows: Sequence[page.Row], work: "PageWork", seq: int | None
    ) -> tuple[list[page.PageLine], int]:
        """The entries that fit, those worth most first; and how many memories are left out."""
        now, factors = tx.stamp.at, RETENTIONS[self._context.settings.retention].worth
        present = set(work.marks.values())
        by_id = {id: mark for mark, id in work.ids.items()}
        found = []
        for memory in self._considered(tx, work, seq):
            mark = by_id.get(memory.id) or self.mark_of(memory, {})
            if _is_shown(memory, is_there=mark in present):
                rank = (memory.status != "pinned", mark not in work.touched, -worth.worth(memory, now, factors))
                found.append((rank, memory.id, mark, memory))
        found.sort(key=lambda one: one[:2])
        entries = [_entry(memory, mark) for _, _, mark, memory in found]
        shown = page.choose(rows, entries, self._context.settings.max_memory_chars)
        for entry, (_, id, _, _) in zip(entries, found, strict=True):
            work.ids[entry.mark] = id
        return shown, tx.count() - len(shown)

    def _considered(self, tx: Transaction, work: "PageWork", seq: int | None) -> Iterable[Memory]:
        """Return the live memories that may be shown.

        All of them if the file is asked for; else those that it shows, and those that have changed since.
        """
        events = [] if seq is None else tx.events(after=seq, limit=MOST_EVENTS)
        if seq is None or self._terms.is_asked_for or len(events) == MOST_EVENTS:
            return every(tx, Where())
        changed = [by_uid(tx, uid) for uid in {event.subject: None for event in events}]
        found = {one.id: one for one in filter(None, (*self._shown_before(tx, work), *changed))}
        return filter(_is_live_memory, found.values())

    def _shown_before(self, tx: Transaction, work: "PageWork") -> list[Memory]:
        """Return the memories whose marks are in the file."""
        marked = sorted(filter(None, {self._id_of(mark, work.ids) for mark in work.marks.values()}))
        chunks = [tuple(marked[start : start + BATCH]) for start in range(0, len(marked), BATCH)]
        return [one for ids in chunks for one in tx.select(Where(shelf="any", ids=ids), limit=BATCH)]


class PageWork:
    """Taking the edits of one file in."""

    def __init__(
        self,
        view: MemoryFile,
        tx: Transaction,
        rows: Sequence[page.Row],
        written: page.Snapshot,
        edits: page.PageEdits,
        ids: dict[str, int],
        done: SyncReport,
        *,
        accepts: bool,
    ) -> None:
        self.marks = dict(edits.marks)
        self.left: set[int] = set()
        self.touched: set[str] = set()
        self.ids = ids
        self._view, self._tx, self._rows, self._written = view, tx, rows, written
        self._edits, self._done, self._accepts = edits, done, accepts

    def run(self) -> None:
        for number in self._edits.changed:
            self._change(number)
        for number in self._edits.foreign:
            self._adopt(number)
        for number in self._edits.added:
            self._add(number)
        for mark in self._edits.deleted:
            self._remove(mark)

    def _change(self, number: int) -> None:
        mark, text = self.marks[number], self._rows[number].text or ""
        memory = self._memory(mark)
        if memory is None or memory.is_archived:
            self._done.notes.append(f"^k{mark} is no longer live, so your changed line was stored as a new memory.")
            self._add(number)
            return
        stored = self._view.line_of(memory)
        if stored == text:
            return
        if not self._accepts:
            self._add(number)
        elif page.digest(stored) != self._written[mark]:
            self._done.notes.append(f"{memory.ref} was changed in the store and in the file: both texts are kept.")
            self._add(number)
        else:
            try:
                revised, _ = revise.put_revised(self._tx, memory, self._view.revise(memory, text, self._tx))
            except InvalidInput as error:
                self._leave(number, error.message)
                return
            self._done.changed.append(revised.ref)
            self.touched.add(mark)

    def _adopt(self, number: int) -> None:
        """A line with a mark that was not in the file before: pasted back, or of another copy of the file."""
        mark, text = self.marks[number], self._rows[number].text or ""
        memory = self._memory(mark)
        if memory is None or self._view.line_of(memory) != text:
            self._add(number)
        elif memory.is_archived and self._accepts:
            back = replace(
                memory,
                status="candidate" if memory.is_low_trust else "confirmed",
                reason=None,
                archived_at=None,
                superseded_by=None,
                updated_at=self._tx.stamp.at,
            )
            rejections = Rejections(self._tx)
            rejections.lift(self._tx, rejections.of(back))
            self._done.added.append(revise.put_again(self._tx, back, "restore")[0].ref)
            self.touched.add(mark)

    def _add(self, number: int) -> None:
        row = self._rows[number]
        self.marks.pop(number, None)
        try:
            ready = self._view.prepare(row, accepts=self._accepts)
        except InvalidInput as error:
            self._leave(number, error.message)
            return
        receipt = ready if isinstance(ready, Receipt) else self._view.store(self._tx, ready)
        if receipt.memory is None:
            self._leave(number, receipt.message)
            return
        mark = self._view.mark_of(receipt.memory, self.ids)
        if not receipt.is_known:
            self._done.added.append(receipt.memory.ref)
        if self._accepts and receipt.memory.is_low_trust:
            self._tx.put(replace(receipt.memory.vouched_for(), status="confirmed"), "confirm")
        if mark not in self.marks.values():
            self.marks[number] = mark
        self.ids[mark] = receipt.memory.id
        self.touched.add(mark)

    def _remove(self, mark: str) -> None:
        memory = self._memory(mark)
        if memory is None or memory.is_archived or not self._accepts or mark in self.touched:
            return
        if page.digest(self._view.line_of(memory)) != self._written[mark]:
            note = f"{memory.ref} was deleted in the file and changed in the store since: it stays."
            self._done.notes.append(note)
            return
        self._done.removed.append(put_away(self._tx, memory, "forgotten").ref)

    def _memory(self, mark: str) -> Memory | None:
        return self._view.memory_of(self._tx, mark, self.ids)

    def _leave(self, number: int, why: str) -> None:
        """The line stays in the file as it is, and is tried again when the file changes."""
        self.left.add(number)
        self._done.notes.append(f"A line was not taken in: {why}")


def _accepts_all(ask: Ask, lines: Sequence[str]) -> bool:
    """Show every line, a screen at a time, and ask after each. One no is a no to all of them."""
    question = "Accept these changes as your own words?"
    for start in range(0, len(lines), MOST_ASKED):
        shown = lines[start : start + MOST_ASKED]
        place = f" (lines {start + 1} to {start + len(shown)} of {len(lines)})" if len(lines) > MOST_ASKED else ""
        if not ask(question + place, shown):
            return False
    return True


def without_erased(
    place: ViewPlace, text: str, note: Mapping[str, Any], ids: Collection[int], erase: Callable[[str], str]
) -> tuple[str, Mapping[str, Any]]:
    """Return the file and its note without the lines of erased memories, and without quotations of them.

    Of AGENTS.md that is only the block: the rest is not ours to change.
    """
    if place.name == AGENTS_MD:
        block = agents_md.find(text)
        if block is None:
            return text, note
        inner, clean_note = _rows_without_erased(place, block.inner, note, ids, erase)
        return agents_md.put(text, inner), clean_note
    return _rows_without_erased(place, text, note, ids, erase)


def _rows_without_erased(
    place: ViewPlace, text: str, note: Mapping[str, Any], ids: Collection[int], erase: Callable[[str], str]
) -> tuple[str, Mapping[str, Any]]:
    known: Mapping[str, int] = note.get("ids", {})
    gone = {mark for mark, id in known.items() if id in ids} if place.is_shared else {str(id) for id in ids}
    rows = [row for row in page.parse(text) if row.mark not in gone]
    clean = "".join(_line_without(row, erase) for row in rows)
    written = [{mark: one[mark] for mark in one.keys() - gone} for one in note.get("written", ())]
    return clean, {**note, "written": written, "ids": {mark: id for mark, id in known.items() if mark not in gone}}


def _line_without(row: page.Row, erase: Callable[[str], str]) -> str:
    """Return a line with `[erased]` in the place of quotations; "" if nothing else is left of an entry."""
    raw = erase(row.raw)
    return "" if raw != row.raw and _is_blank(row, raw) else raw


def _is_blank(row: page.Row, raw: str) -> bool:
    """Whether nothing is left of an entry but the place of what was erased."""
    return row.is_entry and not any(map(str.isalnum, raw.replace(ERASED, "").partition(" ^k")[0]))


def _entry(memory: Memory, mark: str) -> page.PageLine:
    section = page.section_of(memory.kind)
    day = memory.created_at.date() if section == page.DATED else None
    return page.PageLine(mark=mark, text=page.line_of(memory), section=section, day=day)


def _is_shown(memory: Memory, *, is_there: bool) -> bool:
    """A line that came from this file stays there; one that Kept wrote goes when its trust is lowered."""
    if memory.is_rejected:
        return False
    if memory.is_low_trust:
        return is_there and memory.source.origin == "import"
    return is_there or _is_of_the_project(memory)


def _is_live_memory(memory: Memory) -> bool:
    return not memory.is_archived and memory.scope == "memory"


def _is_of_the_project(memory: Memory) -> bool:
    return memory.tier in SHOWN_TIERS or memory.kind == "summary"


def _is_half_saved(rows: Sequence[page.Row], gone: Iterable[str]) -> bool:
    """Whether the file ends in the middle of a line that was there: an editor is still writing it."""
    last = rows[-1] if rows else None
    if last is None or not last.text or last.mark is not None or last.raw.endswith("\n"):
        return False
    return any(line.startswith(last.text) for line in gone)
