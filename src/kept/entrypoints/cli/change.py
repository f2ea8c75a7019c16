"""Every command that changes memories by their refs, or by filters: rank, pin, forget, restore, erase, undo.

Each change can be undone with `kept undo`, except erase. The commands that only need a ref (pin, forget …)
come from one table, `ON_MEMORIES`.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import click
import msgspec
from msgspec import Struct

from kept.entrypoints.cli.completion import complete_ref
from kept.entrypoints.cli.derived import options_from, options_of, request_of
from kept.entrypoints.cli.frame import Command, command, message_named, session_named, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line
from kept.entrypoints.cli.receipts import disagreements, known_task
from kept.entrypoints.cli.wording import (
    ago,
    as_document,
    beginning,
    event_document,
    event_name,
    memories,
    memory_lines,
    name_of,
    verb_of,
    what_changed,
)
from kept.errors import InvalidInput, NotFound
from kept.ids import is_ref
from kept.journal import IMPORT, noun_of
from kept.memory import Kept
from kept.memory.verbs.change import DEMOTE, FORGET, PIN, REINFORCE, RESTORE, UNDO, UNPIN, One
from kept.memory.verbs.declare import Verb
from kept.memory.verbs.erasure import ERASE, Erase
from kept.memory.verbs.fields import Kinds, Moment, Tags, about
from kept.model import GLOBAL, CallGuard, Event, Memory, Receipt, Rejection
from kept.ports import Shelf

MOST_UNDONE = 3  # memories that are shown after an undo, one by one
PREVIEW = 10  # memories that are shown before many are changed
GONE: tuple[Shelf, ...] = ("archive", "forgotten")


class Filters(Struct, frozen=True, kw_only=True):
    """The filters by which memories are chosen instead of by their refs."""

    kinds: Kinds = ()
    tags: Tags = ()
    before: Annotated[Moment, about("Only memories written before this day.", metavar="DATE")] | None = None
    session: Annotated[str, about("Only memories that this session wrote.", metavar="SESSION")] | None = None

    def __bool__(self) -> bool:
        return self != Filters()

    def memories(self, memory: Kept, shelves: Sequence[Shelf] = ("live",)) -> list[Memory]:
        """Return the memories that pass all filters. Raises NotFound if none does."""
        filters = {name: getattr(self, name) for name in self.__struct_fields__}
        found = [one for shelf in shelves for one in memory.store.matching(**filters, shelf=shelf)]
        if not found:
            raise NotFound("No memory passes the filters.", hint="`kept list` shows what there is.")
        return found


# Bulk changes


class OnMemories(NamedTuple):
    """A command that needs refs and nothing else: its verb, the sentence about a changed memory, and more help."""

    verb: Verb[One, Memory]
    sentence: str  # of the memory `m`
    unchanged: str = " stays as it was."
    help: str = ""


RATINGS = {
    "+": OnMemories(REINFORCE, " has feedback {m.feedback:+d} now."),
    "-": OnMemories(DEMOTE, " has feedback {m.feedback:+d} now."),
}
ON_MEMORIES = (
    OnMemories(PIN, " is pinned.", " is pinned already."),
    OnMemories(UNPIN, " is no longer pinned."),
    OnMemories(
        FORGET,
        " is forgotten. `kept restore {m.ref}` brings it back.",
        " is forgotten already.",
        help="They stay in the store until `kept erase` removes them for good. With filters instead of refs, the "
        "memories are shown first, and you are asked.",
    ),
)


def _chosen(
    invocation: Invocation, memory: Kept, refs: Sequence[str], filters: Filters, verb: str, *, yes: bool
) -> list[str]:
    """Return the refs that are given, or of the memories that pass the filters, which a person agrees to first."""
    if bool(refs) == bool(filters):
        raise click.UsageError("Give one or more refs, or filters such as --kind or --before.")
    if refs:
        return list(dict.fromkeys(refs))
    found = filters.memories(memory, GONE if verb == RESTORE.name else ("live",))
    if not yes:
        _preview(invocation, found)
        invocation.agree(f"{verb.capitalize()} {memories(len(found))}?")
    return [one.ref for one in found]


def _filters(invocation: Invocation, memory: Kept, given: dict[str, Any]) -> Filters:
    session = given.pop("session", None)
    return Filters(**given, session=session and session_named(invocation, memory, session, must_exist=False))


def _preview(invocation: Invocation, found: Sequence[Memory]) -> None:
    for one in found[:PREVIEW]:
        invocation.tell(*memory_lines(one, invocation.clock()))
    if len(found) > PREVIEW:
        invocation.tell(Dim(f"… and {len(found) - PREVIEW:,} more."))


def _change_all(memory: Kept, verb: Verb[One, Memory], refs: Sequence[str]) -> tuple[list[Memory], list[Memory]]:
    """Perform a verb on all memories or none, as one change; returns them before and after."""
    were = [memory.get(ref, forgotten=True) for ref in refs]
    with memory.together():
        return were, [memory.perform(verb, One(ref=ref)) for ref in refs]


def _on_memories(row: OnMemories) -> Command:
    @click.argument("refs", nargs=-1, metavar="REF...", shell_complete=complete_ref)
    @options_from(Filters)
    @yes_option
    def change(invocation: Invocation, *, refs: tuple[str, ...], yes: bool, **given: Any) -> None:
        _change_chosen(invocation, row, refs, given, yes=yes)

    change.__name__, change.__doc__ = row.verb.name, row.help
    return command(change)


def _change_chosen(
    invocation: Invocation, row: OnMemories, refs: Sequence[str], given: dict[str, Any], *, yes: bool
) -> None:
    """Change the memories that refs or filters name as the row says, and answer."""
    with invocation.open(yes=yes) as memory:
        filters = _filters(invocation, memory, given)
        named = _chosen(invocation, memory, refs, filters, row.verb.name, yes=yes)
        were, changed = _change_all(memory, row.verb, named)
    _answer_changed(invocation, were, changed, row.sentence, row.unchanged)


def _answer_changed(
    invocation: Invocation,
    before: Sequence[Memory],
    changed: Sequence[Memory],
    sentence: str,
    unchanged: str,
    more: Sequence[Line] = (),
) -> None:
    """Report the outcome for each memory."""
    is_same = [was == one for was, one in zip(before, changed, strict=True)]
    lines: list[Line] = [
        (name_of(one), (unchanged if same else sentence).format(m=one))
        for one, same in zip(changed, is_same, strict=True)
    ]
    lines += more
    if all(is_same):
        lines.append("Nothing was changed.")
    elif len(changed) > 1:
        lines.append(Dim("`kept undo` undoes all of it."))
    documents = [as_document(one) for one in changed]
    invocation.answer({"memories": documents}, lines)


pin_command, unpin_command, forget_command = map(_on_memories, ON_MEMORIES)


@command
@click.argument("words", nargs=-1, metavar="REF... +|-", shell_complete=complete_ref)
@options_from(Filters)
@yes_option
def rate_command(invocation: Invocation, *, words: tuple[str, ...], yes: bool, **given: Any) -> None:
    """With + the memories rank higher, with - lower. `kept forget` hides a memory that is wrong.

    \b
    kept rate 42 +
    kept rate 42 43 -
    """
    *refs, mark = words or ("",)
    if mark not in RATINGS:
        named = " ".join(word for word in words if any(map(str.isdigit, word))) or "REF"
        raise click.UsageError(f"Say + (helpful) or - (wrong) at the end: kept rate {named} +")
    _change_chosen(invocation, RATINGS[mark], refs, given, yes=yes)


@command
@click.argument("refs", nargs=-1, metavar="REF...", shell_complete=complete_ref)
@options_from(Filters)
@yes_option
def restore_command(invocation: Invocation, *, refs: tuple[str, ...], yes: bool, **given: Any) -> None:
    """`kept store restore FILE` restores the whole store from a backup."""
    if (file := next((ref for ref in refs if not is_ref(ref) and _is_file(ref)), None)) is not None:
        raise InvalidInput(f"{file} is a file, not a ref.", hint=f"`kept store restore {file}` restores a backup.")
    with invocation.open(yes=yes) as memory:
        filters = _filters(invocation, memory, given)
        named = _chosen(invocation, memory, refs, filters, RESTORE.name, yes=yes)
        were, found = _change_all(memory, RESTORE, named)
        back = [one for was, one in zip(were, found, strict=True) if was != one]
        more = [line for one in back for line in disagreements(memory, one)]
    _answer_changed(invocation, were, found, " is back ({m.status}).", " was not archived or forgotten.", more)


def _is_file(word: str) -> bool:
    """Return True for a path, also of a file that is not there."""
    return Path(word).exists() or bool(Path(word).suffix) or "/" in word


# Erase


@command
@options_of(ERASE)
@options_from(Filters, without=("session",))
@click.option("--message", metavar="SESSION#N", help="One message. A REF may be a message as well.")
@yes_option
def erase_command(invocation: Invocation, *, message: str | None, yes: bool, **given: Any) -> None:
    """REF is a memory (42) or a message (ID#12: the session and the number that `kept session show ID` shows). With
    --session, all that was said in one. No byte of it stays in the home: text, index, history, copies, quotations in
    other memories and messages, mirrored files, backups. Only the name of a session, task or alias stays in the
    journal. It is not captured again. `kept forget` only hides a memory.
    """
    filters = Filters(**{name: given.pop(name) for name in ("kinds", "tags", "before")})
    asked = request_of(ERASE, given)
    refs = (*asked.refs, *((message,) if message else ()))
    if sum(map(bool, (refs, filters, asked.sessions, asked.tasks, asked.aliases))) != 1:
        raise click.UsageError("Give REFs or filters such as --kind, or one of --session, --task and --alias.")
    with invocation.open(yes=True) as memory:  # asked below, with the memory in view
        is_named = bool(asked.sessions or asked.tasks or asked.aliases)
        plan = _named_plan(invocation, memory, asked) if is_named else _memories_plan(invocation, memory, refs, filters)
        if not yes:
            where = memory.look().moved_from_here()
            _preview(invocation, plan.shown)
            invocation.agree(" ".join((*where, f"Erase {plan.what} for good? This cannot be undone.")))
        receipts = memory.perform(ERASE, plan.request)
    lines = [line for receipt in receipts for line in _erased_lines(receipt)]
    documents = [{**msgspec.to_builtins(receipt), "outcome": receipt.reason} for receipt in receipts]
    invocation.answer({"erased": documents}, lines)


def _erased_lines(receipt: Receipt) -> list[Line]:
    if receipt.found == {"memories": 1}:
        return [receipt.message]
    places = ", ".join(f"{place} {number}" for place, number in receipt.found.items())
    return [receipt.message, Dim(f"Found and erased: {places}.")]


class ErasureQuestion(NamedTuple):
    """A planned erasure: the request, how a question names it, and the memories to show before."""

    request: Erase
    what: str
    shown: Sequence[Memory] = ()


def _named_plan(invocation: Invocation, memory: Kept, asked: Erase) -> ErasureQuestion:
    sessions = tuple(session_named(invocation, memory, name) for name in asked.sessions)
    tasks = tuple(known_task(memory, name) for name in asked.tasks)
    aliases = tuple(word.strip().lower() for word in asked.aliases)
    names = [
        *(f"session {name} with everything that was captured from it" for name in sessions),
        *(f"task {name} with its notes" for name in tasks),
        *(f"the alias {word}" for word in aliases),
    ]
    return ErasureQuestion(Erase(sessions=sessions, tasks=tasks, aliases=aliases), " and ".join(names))


def _memories_plan(invocation: Invocation, memory: Kept, refs: Sequence[str], filters: Filters) -> ErasureQuestion:
    said = [message_named(invocation, memory, ref) for ref in refs if "#" in ref]
    for ref in said:
        memory.look().message(ref)  # raises NotFound before any question is asked
    if refs:
        found = [memory.get(ref, forgotten=True) for ref in dict.fromkeys(refs) if "#" not in ref]
    else:
        found = filters.memories(memory, ("live", *GONE))
    names = [_counted_or_named(found)] if found else []
    what = " and ".join((*names, *(f"message {ref}" for ref in said)))
    return ErasureQuestion(Erase(refs=(*(one.uid for one in found), *said)), what, found)


def _counted_or_named(found: Sequence[Memory]) -> str:
    return f"memory {found[0].ref}" if len(found) == 1 else memories(len(found))


# Undo


@command
@options_of(UNDO)
@yes_option
def undo_command(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Without EVENT, the newest change that you made and that was not undone yet; `kept history` shows the numbers of
    others. Undoing an undo makes the change again. Nothing is undone where later changes build on it: the error names
    them.
    """
    asked = request_of(UNDO, given)
    with invocation.open(yes=yes) as memory:
        events = _named(memory.look().next_undone(asked.event))
        summary = _summary(memory, events)
        if summary and _is_to_be_asked(invocation, yes=yes):
            invocation.agree(f"Undo {summary}?")
        elif asked.event is None:
            _announce(invocation, memory, events)
        undone = [_undone(memory, one, invocation) for one in _named(memory.perform(UNDO, asked))]
    lines = [line for _, _, its_lines in undone for line in its_lines]
    if len(undone) > MOST_UNDONE and summary:
        lines = [f"Undone: {summary}."]
    lines.append(Dim(f"`kept undo {undone[-1][0]}` makes the change again."))
    invocation.answer({"events": [document for _, document, _ in undone]}, lines)


def _is_to_be_asked(invocation: Invocation, *, yes: bool) -> bool:
    return not (yes or invocation.as_json) and invocation.can_ask()


def _summary(memory: Kept, events: Sequence[Event]) -> str:
    """Name a change of several memories: "the import of 40 memories from e.jsonl". "" for a change of one or none."""
    changed = {one.subject: one for one in events if noun_of(one) is Memory}
    if len(changed) < 2:
        return ""
    actions = ", ".join(dict.fromkeys(verb_of(one.action) for one in changed.values()))
    files = _source_files(memory, changed) if actions in (IMPORT, "remember") else set()
    actions = IMPORT if files else actions
    place = f" from {min(files)}" if len(files) == 1 else ""
    return f"the {actions} of {memories(len(changed))}{place}"


def _source_files(memory: Kept, uids: Iterable[str]) -> set[str]:
    """Return the names of the files that memories come from; none if one of them comes from no file, or was erased."""
    files = set[str]()
    with suppress(NotFound):
        files = {Path(memory.get(uid, forgotten=True).source.file or "").name for uid in uids}
    return files if all(files) else set()


def _announce(invocation: Invocation, memory: Kept, events: Sequence[Event]) -> None:
    """Say which change of this person comes last, before it is undone."""
    what = ", ".join(dict.fromkeys(f"{verb_of(one.action)} {_subject_of(memory, one)}" for one in events[:PREVIEW]))
    more = f" and {len(events) - PREVIEW} more" if len(events) > PREVIEW else ""
    told = f"Your last change, {ago(events[0].at, invocation.clock())}: {what}{more}"
    invocation.tell(Dim(told if told.endswith((".", "!", "?", "…")) else f"{told}."))


def _subject_of(memory: Kept, event: Event) -> str:
    if noun_of(event) is Memory:
        found = memory.get(event.subject, forgotten=True)
        return f"[id:{found.ref}] {beginning(found.content)}"
    return _name_of(memory, event).strip()


def _named(events: list[Event]) -> list[Event]:
    """Leave out rejections, which came with a change of a memory; an undo of nothing else names them."""
    return [one for one in events if noun_of(one) is not Rejection] or events


def _undone(memory: Kept, event: Event, invocation: Invocation) -> tuple[str, dict[str, Any], list[Line]]:
    """Return the name of the event that undid something, its document, and the lines about it."""
    now, document = invocation.clock(), event_document(event)
    found = memory.get(event.subject, forgotten=True) if noun_of(event) is Memory else None
    is_global = found is not None and found.space == GLOBAL
    name = event_name(event, is_global=is_global)
    of = "" if found is not None else _name_of(memory, event)
    sentence = _undone_sentence(_undone_by(memory, event), of, now, is_global=is_global)
    if found is None:
        return name, document, [sentence]
    return name, {"event": name, "ref": found.ref, **document}, [sentence, *memory_lines(found, now)]


def _undone_by(memory: Kept, event: Event) -> list[Event]:
    """Return the changes of the same subject that this event undid."""
    events = memory.look().events_of_group(event.undoes)
    return [one for one in events if one.subject == event.subject]


def _name_of(memory: Kept, event: Event) -> str:
    """Return the name of a record that is no memory, after a space; a guard's is that of its memory."""
    name = event.subject.partition(":")[2] or event.subject
    if noun_of(event) is CallGuard:
        with suppress(NotFound):  # erased
            name = f"[id:{memory.get(name, forgotten=True).ref}]"
    return f" {name}".rstrip(" :")


def _undone_sentence(undone: list[Event], of: str, now: datetime, *, is_global: bool) -> str:
    actions = ", ".join(
        f"{verb_of(one.action)}{of} (event {event_name(one, is_global=is_global)}{_change_of(one) if of else ''})"
        for one in undone
    )
    when = ago(undone[0].at, now) if undone else "just now"
    return f"Undone: {actions}{'' if when == 'just now' else f', {when}'}."


def _change_of(event: Event) -> str:
    changed = what_changed(event)
    return f": {changed}" if changed else ""
