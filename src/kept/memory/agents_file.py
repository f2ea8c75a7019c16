"""Block of Kept in AGENTS.md, for agents that have no hooks: confirmed memories of the project, the best first.

A view like MEMORY.md, inside the markers of `exchange.agents_md`; everything else in the file belongs to people. The
file is committed, so a person's global memory, candidates, and statements of low trust are never in it. Rule: an edit
inside the block is taken in only after a person's yes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from kept import worth
from kept.exchange import agents_md
from kept.exchange import memory_md as page
from kept.memory.context import Context
from kept.memory.memory_md import MemoryFile, PageWork
from kept.memory.view import AGENTS_MD, Outcome, Seen, SyncOptions, SyncReport, ViewPlace, Waiting
from kept.model import Memory
from kept.ports import Reader, Transaction, Where
from kept.storage.shared import every
from kept.tables import RETENTIONS
from kept.writing.redact import redact

MARK_CHARS = 14  # of a line, beside its text: `- ` and a mark
MOMENTARY = ("summary", "progress", "file_change", "tool_output")  # kinds that tell of a moment


def view_of(context: Context, place: ViewPlace, terms: SyncOptions) -> MemoryFile:
    """Return the view of memories at a place: the block of AGENTS.md, or MEMORY.md."""
    return (AgentsFile if place.name == AGENTS_MD else MemoryFile)(context, place, terms)


class AgentsFile(MemoryFile):
    """Block in the AGENTS.md of the project."""

    command = "kept files agents"
    title = agents_md.TITLE

    def __init__(self, context: Context, place: ViewPlace, terms: SyncOptions) -> None:
        super().__init__(context, place, terms)
        self._end = "\n"

    def merge(self, tx: Transaction, seen: Seen, note: Mapping[str, Any], done: SyncReport) -> Outcome:
        whole = seen.text or ""
        self._end = agents_md.newline_of(whole)
        block = agents_md.find(whole)
        if block is None and next(chosen(self._context, tx, (), tx.stamp.at), None) is None:
            raise Waiting("There is nothing to write: no confirmed memory of this project may stand in it.")
        inner = Seen(block.inner if block else None, seen.signature)
        outcome = super().merge(tx, inner, note, done)
        about = {"created": note.get("created", seen.text is None) if block else seen.text is None}
        return Outcome(
            text=agents_md.put(whole, outcome.text),
            note={**outcome.note, **about},
            note_before={**outcome.note_before, **about},
        )

    def note_as_written(self, text: str) -> Mapping[str, Any]:
        block = agents_md.find(text)
        return super().note_as_written(block.inner if block else "")

    def line_of(self, memory: Memory) -> str:
        return agents_md.line_of(memory.content)

    def content_of(self, line: str) -> str:
        return agents_md.content_of(line)

    def _start(self) -> str:
        return agents_md.start(self._end)

    def _check(
        self,
        tx: Transaction,
        edits: page.PageEdits,
        rows: Sequence[page.Row],
        written: page.Snapshot,
        ids: Mapping[str, int],
    ) -> bool:
        if not super()._check(tx, edits, rows, written, ids):
            raise Waiting(
                "A person has to accept the edits of the block first; nothing was changed. "
                "`kept files agents --remove` takes it out together with them."
            )
        return True

    def _shown(
        self, tx: Transaction, rows: Sequence[page.Row], work: PageWork, seq: int | None
    ) -> tuple[list[page.PageLine], int]:
        """Return the entries that fit, the best first. The file does not say how many are left out: it is committed."""
        by_id = {id: mark for mark, id in work.ids.items()}
        shown = []
        for memory in chosen(self._context, tx, rows, tx.stamp.at):
            mark = by_id.get(memory.id) or self.mark_of(memory, {})
            work.ids[mark] = memory.id
            shown.append(page.PageLine(mark=mark, text=self.line_of(memory), section=agents_md.TITLE))
        return shown, 0


def chosen(context: Context, reader: Reader, rows: Iterable[page.Row], now: datetime) -> Iterator[Memory]:
    """Return the memories that stand in the block beside its other rows: pinned ones, then those worth most."""
    others = [row.raw for row in rows if not row.is_entry]
    lines = agents_md.MOST_LINES - 2 - sum(max(1, raw.count("\n")) for raw in others)
    room = agents_md.MAX_CHARS - sum(map(len, others))
    factors = RETENTIONS[context.settings.retention].worth
    fitting = [one for one in every(reader, Where(tiers=("project",))) if _may_be_told(one)]
    fitting.sort(key=lambda one: (one.status != "pinned", -worth.worth(one, now, factors), one.id))
    for memory in fitting:
        size = len(agents_md.line_of(memory.content)) + MARK_CHARS
        if lines and size <= min(agents_md.MAX_LINE_CHARS, room) and not _has_secret(context, memory):
            lines, room = lines - 1, room - size
            yield memory


def _has_secret(context: Context, memory: Memory) -> bool:
    """Return True for a value that looks like a secret, also if a person allowed it in the store."""
    return bool(redact(memory.content, email=context.settings.redact_email).found)


def _may_be_told(memory: Memory) -> bool:
    is_sure = memory.status in ("confirmed", "pinned") and not memory.is_low_trust
    return is_sure and memory.scope == "memory" and memory.kind not in MOMENTARY


def is_outdated(context: Context, reader: Reader, text: str) -> bool | None:
    """Return True if the block is not as it should be; None if the file has none."""
    block = agents_md.find(text)
    if block is None:
        return None
    rows = page.parse(block.inner)
    shown = sorted(row.text or "" for row in rows if row.is_entry)
    return shown != sorted(agents_md.line_of(one.content) for one in chosen(context, reader, rows, context.now()))


def without_block(text: str, note: Mapping[str, Any], terms: SyncOptions) -> str:
    """Return the file without the block. Raises Waiting if a person has to agree, because it was edited."""
    block, written = agents_md.find(text), note.get("written")
    edits = page.find_edits(written[-1], page.parse(block.inner)) if block and written else None
    if edits and not (terms.ask and terms.ask("Remove the block with the edits that were made inside it?", [])):
        raise Waiting("The block was edited. `kept files agents` takes the edits in; with --remove --yes they go.")
    return agents_md.remove(text)
