"""`kept list` and `kept history`: reading changes nothing."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kept.entrypoints.cli.derived import (
    chosen_tier,
    empty_answer,
    global_option,
    options_of,
    request_of,
    words_of,
)
from kept.entrypoints.cli.frame import command, session_named
from kept.entrypoints.cli.invocation import CommandLine, Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import (
    as_document,
    beginning,
    event_document,
    event_name,
    local,
    meant_kinds,
    memory_lines,
    name_of,
    nothing_yet,
    verb_of,
    what_changed,
)
from kept.errors import InvalidInput, NotFound
from kept.journal import noun_of
from kept.memory import Kept
from kept.memory.verbs.fields import MOST_LISTED
from kept.memory.verbs.read import HISTORY, LIST, History
from kept.model import CallGuard, Event, Memory, Rejection, canonical_kind

SHOWN_IN_HISTORY = 40  # characters of a text


@command
@options_of(LIST)
def list_command(invocation: Invocation, **given: Any) -> None:
    """The memories of the project come first, then the global ones. Archived and forgotten memories are listed only
    with --status.
    """
    asked = request_of(LIST, given)
    with invocation.open() as memory:
        if asked.session is not None:
            asked = replace(asked, session=session_named(invocation, memory, asked.session, must_exist=False))
        one_more = min(asked.limit + 1, MOST_LISTED)
        kinds = tuple(map(canonical_kind, asked.kinds))
        found = memory.perform(LIST, replace(asked, kinds=kinds, limit=one_more))
    page = found[: asked.limit]
    last = page[-1].ref if page and len(found) > len(page) else None
    now = invocation.clock()
    lines: list[Line] = [line for one in page for line in memory_lines(one, now)]
    if last is not None:
        more = _command_line(invocation, "list", *words_of(LIST, replace(asked, after=last)))
        lines.append(("More: ", CommandLine(more)))
    elif not page:
        said = empty_answer(LIST, asked, "memory", nothing_yet(invocation), besides=("limit",))
        lines.append(f"{said}{meant_kinds(asked.kinds)}")
    invocation.answer({"memories": [as_document(one) for one in page], "next": last}, lines)


def _command_line(invocation: Invocation, *words: str) -> str:
    """A command line that can be copied as it is, for the same home and project."""
    role = None if invocation.role == "project" else invocation.role
    options = (("--home", invocation.home), ("--project", invocation.project), ("--as", role))
    given = [word for option, value in options if value is not None for word in (option, value)]
    return shlex.join(["kept", *words, *given])


@command
@options_of(HISTORY)
@global_option("Global memory, instead of the project's; the same as --tier global.")
def history_command(invocation: Invocation, *, is_global: bool, **given: Any) -> None:
    """The newest event comes first. `kept undo EVENT` undoes one, with everything that was changed together with it."""
    asked = request_of(HISTORY, chosen_tier(given, is_global=is_global))
    with invocation.open() as memory:
        is_global = _is_global(memory, asked)
        found = memory.perform(HISTORY, replace(asked, limit=min(asked.limit + 1, MOST_LISTED)))
        events = found[len(found) - min(len(found), asked.limit) :]
        refs = {subject: _ref_of(memory, event) for subject, event in {one.subject: one for one in events}.items()}
        heirs = _heirs(memory, events)
        texts = _texts_of(memory, refs)
        ended = _ended_line(memory, asked.ref)
    document = [
        {"event": event_name(event, is_global=is_global), "ref": refs[event.subject], **event_document(event)}
        for event in events
    ]
    lines: list[Line] = [
        (
            Strong(f"{event_name(event, is_global=is_global):>5}"),
            f"  {local(event.at, invocation.zone)}  {event.actor} {verb_of(event.action)} ",
            f"[id:{refs[event.subject]}]" if refs[event.subject] else _subject_words(event),
            texts.get(event.subject, ""),
            Dim(f"  {what_changed(event, events, is_global=is_global, heirs=heirs)}".rstrip()),
        )
        for event in reversed(events)
    ]
    if len(found) > len(events):
        lines.append(f"More: `--limit {max(1, 2 * asked.limit)}` shows older events.")
    lines += ended
    if not events:
        where = "global memory" if is_global else "this project"
        nothing = f'Nothing has been changed in {where} yet. `kept remember "…"` stores the first memory.'
        lines.append(empty_answer(HISTORY, asked, "event", nothing, besides=("tier", "limit")))
    invocation.answer({"events": document}, lines)


def _subject_words(event: Event) -> str:
    """Name a record that is no memory: "TASK-001" behind the verb task, else "session s1". A rejection has no name."""
    noun, _, name = event.subject.partition(":")
    if noun_of(event) is Rejection:
        return noun
    return name if noun == verb_of(event.action) else f"{noun} {name}".rstrip()


def _texts_of(memory: Kept, refs: Mapping[str, str | None]) -> dict[str, str]:
    """Return the beginning of the text of each subject that is a memory. A forgotten one stays hidden."""
    found = {subject: memory.get(ref, forgotten=True) for subject, ref in refs.items() if ref is not None}
    return {
        subject: f" {beginning(one.content, SHOWN_IN_HISTORY)}"
        for subject, one in found.items()
        if not one.is_forgotten
    }


def heir_of(memory: Kept, uid: str | None) -> str:
    """The ref of the memory that replaced another, or ""."""
    if uid is None:
        return ""
    try:
        return f"[id:{memory.get(uid, forgotten=True).ref}]"
    except NotFound:
        return "(erased)"


def _ended_line(memory: Kept, ref: str | int | None) -> list[Line]:
    """Return a line that says when the memory of a history stopped being true; none if it holds."""
    if ref is None or (until := memory.look().standing(found := memory.get(ref, forgotten=True)).until) == "":
        return []
    return [(name_of(found), f" {until}: ", " ".join(found.content.split()))]


def _heirs(memory: Kept, events: Sequence[Event]) -> dict[str, str]:
    """Return the refs of memories that replaced others in these events, by uid."""
    uids = {(event.changed or {}).get("superseded_by", (None, None))[1] for event in events} - {None}
    return {uid: heir_of(memory, uid) for uid in uids}


def _is_global(memory: Kept, asked: History) -> bool:
    """Return True if the events are of global memory: their names begin with g."""
    return asked.tier == "global" if asked.ref is None else memory.get(asked.ref, forgotten=True).ref.startswith("g")


def _ref_of(memory: Kept, event: Event) -> str | None:
    """Return the ref of the memory of an event, or of the memory that its guard is for; None if there is none."""
    noun = noun_of(event)
    uid = event.subject.partition(":")[2] if noun is CallGuard else event.subject
    try:
        return memory.get(uid, forgotten=True).ref if noun in (Memory, CallGuard) else None
    except (NotFound, InvalidInput):  # erased; or the journal itself, which a repair writes about
        return None
