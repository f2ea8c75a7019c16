"""How memories, events, times and progress are put into words for people, and into plain values for `--json`."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kept.distribution import is_own_checkout
from kept.entrypoints.cli.amounts import ago as ago
from kept.entrypoints.cli.amounts import counted as counted
from kept.entrypoints.cli.invocation import LIKE, Dim, Invocation, Label, Line, Marked, Strong, nearest
from kept.freshness import without_code
from kept.model import KINDS, Event, Memory, Message, canonical_kind
from kept.text import query_words

if TYPE_CHECKING:
    from kept.memory.host_notes import HostState

_WORD = re.compile(r"\w+")
_MASS_KINDS = ("architecture", "progress", "reasoning")  # words that cannot be counted
# Fields whose values history shows.
_SHOWN_FIELDS = ("state", "status", "reason", "feedback", "importance", "topic")
AROUND = 3  # lines of a message that was searched for
MOST_OF_A_LINE = 200  # characters of such a line
WIDEST_BAR, ROOM_FOR_NUMBERS = 36, 34  # columns; the numbers may be "  10000/10000  1d 00:00:00"
BEGINNING = 60  # characters of a text where a line only recalls it
RENAMED: Mapping[str, str] = {"reinforce": "rate +", "demote": "rate -", "revise": "edit"}
_HEIR = "superseded_by"
Changes = Mapping[str, tuple[Any, Any]]


def as_document(memory: Memory) -> dict[str, Any]:
    """The memory with all its fields, and its ref."""
    return {"ref": memory.ref, **msgspec.to_builtins(without_code(memory))}


def event_document(event: Event) -> dict[str, Any]:
    """The event with all its fields except the salt."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    del fields["salt"]
    return fields


def counted_kinds(counts: Mapping[str, int]) -> str:
    """ "2 decisions, 1 progress note"; "" for none."""
    return ", ".join(counted(number, *_noun_of_kind(kind)) for kind, number in counts.items() if number)


def _noun_of_kind(kind: str) -> tuple[str, str]:
    noun = kind.replace("_", " ")
    if kind in _MASS_KINDS:
        noun += " note"
    return noun, f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def reader_lines(states: "Sequence[HostState]", now: datetime) -> Iterator[Line]:
    """Yield a line for each agent whose own notes are here, or were read: how many, and when."""
    for one in states:
        if not (one.folders or one.files):
            continue
        if not one.is_on:
            yield f"Notes of {one.title} are not read: {one.setting} is false."
        elif one.read_at is None:
            yield f"Notes of {one.title}: none read yet."
        else:
            files, kept = counted(one.files, "file"), memories(one.memories)
            yield f"Notes of {one.title}: {files} read, {kept}; last change {ago(one.read_at, now)}."
        yield from (Dim(f"    left out: {line}") for line in one.left_out)


def memories(number: int) -> str:
    return counted(number, "memory", "memories")


def local(at: datetime, zone: tzinfo | None) -> str:
    """The time in the person's time zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"


def size(n_bytes: int) -> str:
    """A number of bytes for people."""
    amount, unit = float(n_bytes), "bytes"
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"


def state(memory: Memory) -> str:
    """The status in words; "" for a memory that is simply there."""
    if memory.is_archived:
        return "forgotten" if memory.is_forgotten else f"archived, {memory.reason}"
    return "" if memory.status == "confirmed" else memory.status


def name_of(memory: Memory) -> Strong:
    return Strong(bracketed(memory.ref))


def bracketed(ref: str) -> str:
    """How a ref stands in a line: [id:42]; of a message, session#12, which nobody can take for a memory."""
    return ref if "#" in ref else f"[id:{ref}]"


Mark = Callable[[str], tuple[str, ...]]


def marked_parts(text: str, marks: Sequence[str]) -> tuple[str, ...]:
    """Split a text so that every place of a mark, in any case, is shown as a word that was searched for."""
    if not marks:
        return (text,)
    pattern = re.compile("|".join(map(re.escape, marks)), re.IGNORECASE)
    return _split(text, pattern.finditer(text))


def matched_parts(text: str, stems: Set[str]) -> tuple[str, ...]:
    """Split a text so that every word with one of these stems is shown as a word that was searched for."""
    return _split(text, (found for found in _WORD.finditer(text) if not stems.isdisjoint(query_words(found[0]))))


def _split(text: str, found: Iterable[re.Match[str]]) -> tuple[str, ...]:
    parts: list[str] = []
    end = 0
    for one in found:
        parts += [text[end : one.start()], Marked(one[0])]
        end = one.end()
    return (*parts, text[end:])


def beginning(content: str, most: int = BEGINNING) -> str:
    """Return the beginning of a text on one line, cut at a word where one ends in time."""
    line = " ".join(content.split())
    if len(line) <= most:
        return line
    cut = line[:most].rpartition(" ")[0]
    return f"{cut if len(cut) > most // 2 else line[: most - 1]}…"


def apart(blocks: Sequence[Sequence[Line]]) -> list[Line]:
    """Join the lines of several memories, with an empty line between two of them."""
    return [line for block in blocks for line in ("", *block)][1:]


def memory_lines(memory: Memory, now: datetime, until: str = "", *, mark: Mark = lambda text: (text,)) -> list[Line]:
    """A memory in a list: its ref and kind, until when it held, its text, and one faint line with the rest."""
    # Every line but the first is indented, so that no text can pass for a memory of its own.
    first, *rest = memory.content.replace("\r\n", "\n").split("\n")
    about = [
        " ".join(f"#{tag}" for tag in memory.tags),
        ", ".join(memory.files) if memory.source.line is None else f"{memory.source.file}:{memory.source.line}",
        ago(memory.created_at, now),
        state(memory),
        f"trust: {memory.trust}" if memory.is_low_trust else "",
        f"feedback {memory.feedback:+d}" if memory.feedback else "",
    ]
    return [
        (name_of(memory), f" {memory.item_type or memory.kind}{f', {until}' if until else ''}: ", *mark(first)),
        *(("    ", *mark(line)) for line in rest),
        Dim("    " + " · ".join(part for part in about if part)),
    ]


def _said_in(message: Message) -> str:
    """Return the text of a message; of a tool call, its input."""
    if message.input is None:
        return message.content
    return f"{message.name} {msgspec.json.encode(message.input).decode()}"


def message_lines(message: Message, invocation: Invocation, *, name: str = "") -> list[Line]:
    """A message: its name, by default its number, who said it and when, and the text."""
    who = message.speaker or message.role
    at = f"  {local(message.at, invocation.zone)}" if message.at else ""
    first, *rest = _said_in(message).split("\n")
    return [
        (Strong(f"{name or f'#{message.n}':>4} {who}"), Dim(at)),
        ("     ", first),
        *(("     ", line) for line in rest),
    ]


def found_lines(message: Message, invocation: Invocation, name: str, stems: Set[str]) -> list[Line]:
    """Show a message that was found: its name, and the lines around the first word that fits, marked."""
    whole = message_lines(message, invocation, name=name)
    texts = [line for line in _said_in(message).split("\n") if line.strip()]
    at = next((n for n, line in enumerate(texts) if len(matched_parts(line, stems)) > 1), 0)
    around = texts[max(0, at - 1) : max(0, at - 1) + AROUND]
    return [whole[0], *(("     ", *matched_parts(_cut(line, stems), stems)) for line in around)]


def _cut(line: str, stems: Set[str]) -> str:
    """Return a long line as the part of it that is around the first word that fits."""
    if len(line) <= MOST_OF_A_LINE:
        return line
    first = len(matched_parts(line, stems)[0])
    start = max(0, min(first, len(line)) - MOST_OF_A_LINE // 2) if first < len(line) else 0
    cut = line[start : start + MOST_OF_A_LINE].strip()
    return f"{'…' * (start > 0)}{cut}{'…' * (start + MOST_OF_A_LINE < len(line))}"


def field_lines(rows: Mapping[str, str]) -> list[Line]:
    """A label and its value in each line; empty values are left out."""
    shown = {label: value for label, value in rows.items() if value}
    width = max([12, *(len(label) + 1 for label in shown)])
    return [(Label(f"{label:<{width}}"), value) for label, value in shown.items()]


def checkout_note(invocation: Invocation) -> list[Line]:
    """Return a note for a person who is in the checkout of Kept, instead of a project of theirs."""
    place = Path(invocation.project) if invocation.project else Path.cwd()
    if not is_own_checkout(place):
        return []
    return ["Note: this is Kept's own checkout, not your project. Go into your project, and run the command there."]


def nothing_yet(invocation: Invocation) -> str:
    """What to say where nothing is stored: why that is, and what to do."""
    located = invocation.projects().locate(invocation.project)
    if located.refusal:
        return f"{located.refusal} Go into a project, or name one with --project NAME."
    if located.name:
        return f"There is no project {located.name!r} yet. `kept projects list` shows all projects."
    return 'Nothing is kept here yet. `kept remember "…"` stores the first memory.'


def meant_kinds(kinds: Sequence[str]) -> str:
    """A question about kinds that may be mistyped; "" if there are none."""
    unknown = [kind for kind in map(canonical_kind, kinds) if kind not in KINDS]
    meant = [near for kind in unknown if (near := nearest(kind, KINDS, cutoff=LIKE))]
    return f" Did you mean --kind {' --kind '.join(meant)}?" if meant else ""


def vector_line(state: Mapping[str, Any]) -> str:
    """How many memories of a space have a vector, in words; "" when it has none."""
    if state["model"] is None:
        return ""
    have = f"{counted(state['done'], 'vector')} of the model {state['model']}"
    pending = state["pending"]
    return f"{have}; {counted(pending, 'memory has', 'memories have')} none yet" if pending else have


def verb_of(action: str) -> str:
    """Return the command that makes a change, as it is called today; the journal keeps the older names."""
    return RENAMED.get(action, action)


def event_name(event: Event, *, is_global: bool) -> str:
    """The name that `kept undo` takes: 12, or g12 for an event of global memory."""
    return f"g{event.seq}" if is_global else str(event.seq)


def what_changed(
    event: Event, events: Sequence[Event] = (), *, is_global: bool = False, heirs: Mapping[str, str] | None = None
) -> str:
    """Return the changes of an event in a few words, without any text of a memory. `heirs`: refs by uid."""
    if event.changed is None:
        return "its details were erased later"
    if event.undoes is not None:
        undone = next((other for other in events if other.group == event.undoes), None)
        return f"undoes {event_name(undone, is_global=is_global)}" if undone else "undoes an earlier event"
    if "id" in event.changed:
        return ""
    return ", ".join([*_shown_changes(event.changed), *_new_heir(event.changed, heirs or {}), *_others(event.changed)])


def _shown_changes(changed: Changes) -> list[str]:
    return [
        f"{field} {_value(before)} → {_value(after)}"
        for field, (before, after) in changed.items()
        if field in _SHOWN_FIELDS
    ]


def _new_heir(changed: Changes, heirs: Mapping[str, str]) -> list[str]:
    if _HEIR not in changed:
        return []
    heir = changed[_HEIR][1]
    return [f"replaced by {heirs.get(heir) or 'another'}" if heir else "no longer replaced"]


def _others(changed: Changes) -> list[str]:
    """Return the names of fields that changed and whose values are not shown."""
    hidden = (*_SHOWN_FIELDS, _HEIR, "fingerprint")
    others = [field for field in changed if field not in hidden and not field.endswith("_at")]
    return ["text" if field == "content" else field.replace("_", " ") for field in others]


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


def _bar_width(label: str) -> int:
    """Return the columns of a bar that leave room for its label and its numbers in a terminal."""
    return max(4, min(WIDEST_BAR, shutil.get_terminal_size().columns - len(label) - ROOM_FOR_NUMBERS))


@contextmanager
def progress(invocation: Invocation, label: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, total): a bar on a terminal, elsewhere a line for each tenth.

    Nothing is shown of work that is done at once.
    """
    stream = invocation.err or sys.stderr
    with ExitStack() as stack:
        bars: list[Any] = []  # click does not export the type of a progress bar
        tenths = {0}

        def show_bar(done: int, total: int) -> None:
            for bar in bars:
                if done < bar.pos:  # the work on another store begins
                    stack.close()
                    bars.clear()
            if not bars and done < total:
                bar = click.progressbar(length=total, label=label, file=stream, show_pos=True, width=_bar_width(label))
                bars.append(stack.enter_context(bar))
            for bar in bars:
                bar.length = total
                bar.update(done - bar.pos)

        def show_lines(done: int, total: int) -> None:
            tenth = 10 * done // total if total else 10
            if tenth not in tenths and (done < total or len(tenths) > 1):
                invocation.tell(Dim(f"{label}: {done:,} of {total:,}"))
            tenths.add(tenth)

        yield show_bar if stream is not None and stream.isatty() else show_lines
