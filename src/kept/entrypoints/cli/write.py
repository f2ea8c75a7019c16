"""`kept remember`, every command that changes a memory, and `kept slash`.

Each change can be undone with `kept undo`, except erase. The commands that only need a ref (reinforce, pin, forget …)
come from one table, `ON_MEMORIES`.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, get_args

import click
import msgspec

from kept.entrypoints.cli.completion import complete_kind, complete_ref, complete_tag
from kept.entrypoints.cli.frame import (
    Command,
    command,
    date_option,
    kind_and_tag_options,
    message_named,
    session_named,
    yes_option,
)
from kept.entrypoints.cli.invocation import FAILED, Dim, Invocation, Line
from kept.entrypoints.cli.wording import (
    ago,
    as_document,
    bracketed,
    counted,
    event_document,
    event_name,
    memories,
    memory_lines,
    name_of,
    what_changed,
)
from kept.errors import InvalidInput, NotFound
from kept.ids import is_ref
from kept.memory import Kept
from kept.memory.read import Shelf
from kept.model import GLOBAL, KINDS, Alias, Event, Memory, Receipt, Tier, canonical_kind

if TYPE_CHECKING:
    from kept.memory.erase import Erasable

MAX_INPUT_BYTES = 1_000_000  # of a text on standard input; beyond this it is a file, not a statement
NONE_OF_THEM = "none"
PREVIEW = 10  # memories that are shown before many are changed
_EDIT_PAGE = """# Memory [id:{m.ref}]. Save and close to change it; leave it as it is to change nothing.
kind: {m.kind}
tags: {tags}
files: {files}
importance: {m.importance:g}
---
{m.content}
"""

P = ParamSpec("P")
T = TypeVar("T")


def given_text(words: tuple[str, ...]) -> str:
    """The text from the arguments, or from standard input when that is `-`.

    The newline that ends the last line of the input is the shell's and is left out; everything else is kept.
    """
    if words == ("-",):
        return _from_standard_input()
    text = " ".join(words)
    for position, character in enumerate(text):
        if "\udc80" <= character <= "\udcff":  # how Python hands over a byte that is not UTF-8
            raise InvalidInput(
                f"The text is not UTF-8: character {position + 1} is the byte 0x{ord(character) - 0xDC00:02x}.",
                hint="Switch the terminal to UTF-8, or convert the text with iconv.",
            )
    return text


def _from_standard_input() -> str:
    if sys.stdin is None:
        raise InvalidInput("There is no standard input to read from.", hint='Give the text itself: kept remember "…".')
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 2)
    if len(data) > MAX_INPUT_BYTES + 1:
        raise InvalidInput(
            f"The text on standard input is longer than {MAX_INPUT_BYTES:,} bytes.",
            hint="Remember one statement at a time; keep whole files as files.",
        )
    try:
        return data.decode("utf-8").removesuffix(os.linesep)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The text on standard input is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}.",
            hint="Convert it first, for example with iconv.",
        ) from None


def given_file(name: str) -> Path:
    """The database file that a person named. Raises InvalidInput for a name that SQLite could not open."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInput("That file name is not UTF-8; SQLite cannot open it.", hint="Give another name.") from None
    if not name or "\0" in name:
        raise InvalidInput("That is not a file name.", hint="Give a path such as backups/web-app.db.")
    return Path(name)


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r:.60} is not a number.", ctx, param) from None


@command
@click.argument("text", nargs=-1)
@click.option(
    "--kind",
    default="fact",
    metavar="KIND",
    shell_complete=complete_kind,
    help=f"The kind: {', '.join(KINDS)}, or a word of your own.",
)
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", shell_complete=complete_tag, help="A tag. May be repeated."
)
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file it is about. May be repeated.")
@click.option("--importance", callback=_number, metavar="NUMBER", help="From 0 to 1; the default depends on the kind.")
@click.option("--pin", is_flag=True, help="Always include it.")
@click.option("--tier", type=click.Choice(get_args(Tier)), help="How long it lives; by default as long as the project.")
@click.option("--global", "is_global", is_flag=True, help="For all projects; the same as --tier global.")
@click.option("--topic", metavar="NAME", help="A topic: this memory replaces the one that has it now.")
@click.option("--task", metavar="ID", help="The task it belongs to; `kept task show ID` lists it.")
@click.option("--key", metavar="KEY", help="A key of your own: a second call with the same key stores nothing.")
@yes_option
def remember_command(
    invocation: Invocation,
    *,
    text: tuple[str, ...],
    tier: Tier | None,
    is_global: bool,
    task: str | None,
    yes: bool,
    **about: Any,
) -> None:
    """TEXT has at most 500 characters (a summary: 4,000). It may be several words; a single dash reads it from standard
    input. A text that is stored already, apart from case and spacing, is not stored twice: the memory becomes more
    important instead.

    \b
      kept remember "Never edit the auth middleware directly" --kind warning --tag auth
      git log -1 --format=%s | kept remember - --kind progress
    """
    if not text:
        raise click.UsageError("There is no text to remember.", ctx=click.get_current_context())
    if is_global and tier not in (None, "global"):
        raise click.UsageError(f"--global and --tier {tier} contradict each other.", ctx=click.get_current_context())
    content = given_text(text)
    with invocation.open(yes=yes) as memory:
        check_kind(invocation, memory, about["kind"], yes=yes)
        tier = "global" if is_global else tier or "project"
        remember = memory.remember if task is None else memory.task(_known_task(memory, task)).remember
        receipt = remember(content, tier=tier, session=invocation.session, **about)
    answer_receipt(invocation, receipt)


def check_kind(invocation: Invocation, memory: Kept, kind: str, *, yes: bool) -> None:
    """Ask about a kind that is nearly one of Kept's. Any other word is a kind of its own, as is one that is in use."""
    word = canonical_kind(kind)
    if word not in KINDS and not memory.list(kinds=[word], limit=1):
        invocation.check_name(word, KINDS, "kind", yes=yes)


def _known_task(memory: Kept, id: str) -> str:
    """The id, if there is such a task: a typing error must not begin one."""
    if id not in {task.name for task in memory.tasks(archived=True)}:
        raise NotFound(f"There is no task {id[:60]!r}.", hint="`kept task list` shows them.")
    return id


def answer_receipt(invocation: Invocation, receipt: Receipt, first: Line | None = None) -> None:
    """Say what became of a draft, with `first` as the sentence for one that was stored; a refusal ends the command."""
    document = msgspec.to_builtins(receipt)
    if receipt.memory is not None:
        document["memory"] = as_document(receipt.memory)
    if receipt.outcome != "refused":
        usual, *more = _outcome(receipt)
        invocation.answer(document, [first or usual, *more])
        return
    if invocation.as_json:
        invocation.answer(document, ())
    else:
        invocation.tell(f"Not kept: {receipt.message}")
    click.get_current_context().exit(FAILED)


def _outcome(receipt: Receipt) -> list[Line]:
    memory = receipt.memory
    assert memory is not None
    if receipt.reason == "already_stored":
        first: Line = ("Already kept under that key: ", name_of(memory), ".")
    elif receipt.outcome == "strengthened":
        first = ("Already kept: ", name_of(memory), f" is more important now ({memory.importance:.2g}).")
    elif receipt.outcome == "candidate":
        first = ("Kept as a candidate: ", name_of(memory), f" ({memory.kind}).")
    else:
        first = ("Kept: ", name_of(memory), f" ({memory.kind}{', pinned' if memory.status == 'pinned' else ''}).")
    lines = [first]
    if receipt.redactions:
        found = ", ".join(f"{redaction.count} × {redaction.kind}" for redaction in receipt.redactions)
        lines.append(f"Redacted before it was stored: {found}.")
    if receipt.superseded:
        lines.append(f"It replaces {_refs(receipt.superseded)}.")
    if receipt.near:
        lines.append(f"Nearly the same as {_refs(receipt.near)}.")
    return lines + _contradicts([conflict.ref for conflict in receipt.conflicts])


def _contradicts(conflicts: Sequence[str], what: str = "It") -> list[Line]:
    if not conflicts:
        return []
    return [f"{what} contradicts a memory that is already kept: {_refs(conflicts)}. `kept conflicts` shows both sides."]


def _disagreements(memory: Kept, changed: Memory) -> list[Line]:
    """The contradictions that were found when a memory was revised or restored, just now."""
    found = [
        conflict
        for conflict in memory.conflicts(resolved=True)
        if changed.uid in (conflict.left, conflict.right) and conflict.detected_at == changed.updated_at
    ]
    name = bracketed(changed.ref)
    over = [memory.get(one.right, forgotten=True).ref for one in found if one.resolved_at is not None]
    lines: list[Line] = [f"{name} replaces {_refs(over)}."] if over else []
    return lines + _contradicts([one.ref for one in found if one.resolved_at is None], name)


def _refs(refs: Iterable[str]) -> str:
    return ", ".join(ref if ref.startswith("c") else f"[id:{ref}]" for ref in refs)


class OnMemories(NamedTuple):
    """A command that needs refs and nothing else: the sentence about a changed memory, and more help."""

    sentence: str  # of the memory `m`
    unchanged: str = " stays as it was."
    help: str = ""


ON_MEMORIES = {
    "reinforce": OnMemories(" has feedback {m.feedback:+d} now."),
    "demote": OnMemories(" has feedback {m.feedback:+d} now."),
    "pin": OnMemories(" is pinned.", " is pinned already."),
    "unpin": OnMemories(" is no longer pinned."),
    "forget": OnMemories(
        " is forgotten. `kept restore {m.ref}` brings it back.",
        " is forgotten already.",
        help="They stay in the store until `kept erase` removes them for good. With filters instead of refs, the "
        "memories are shown first, and you are asked.",
    ),
}


def filter_options(function: Callable[P, T]) -> Callable[P, T]:
    """`--kind`, `--tag` and `--before`, to change many memories at once."""
    return kind_and_tag_options(date_option("--before", "Only memories written before this day.")(function))


class Chosen(NamedTuple):
    """The filters by which memories are chosen instead of by their refs."""

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    before: datetime | None = None
    session: str | None = None

    def memories(self, memory: Kept, shelves: Sequence[Shelf] = ("live",)) -> list[Memory]:
        """Those that pass all filters."""
        about = self._asdict()
        return [found for shelf in shelves for found in memory.store.matching(**about, shelf=shelf)]


def chosen_memories(
    invocation: Invocation,
    memory: Kept,
    refs: Sequence[str],
    chosen: Chosen,
    verb: str,
    *,
    yes: bool,
    shelves: Sequence[Shelf] = ("live",),
) -> list[str]:
    """The refs that are given, or of what the filters choose, which is shown and agreed to first."""
    if bool(refs) == any(chosen):
        raise click.UsageError("Give one or more refs, or filters such as --kind or --before.")
    if refs:
        return list(dict.fromkeys(refs))
    session = chosen.session and session_named(invocation, memory, chosen.session, must_exist=False)
    found = chosen._replace(session=session).memories(memory, shelves)
    if not found:
        raise NotFound("No memory passes the filters.", hint="`kept list` shows what there is.")
    if not yes:
        for one in found[:PREVIEW]:
            invocation.tell(*memory_lines(one, invocation.clock()))
        if len(found) > PREVIEW:
            invocation.tell(Dim(f"… and {len(found) - PREVIEW:,} more."))
        invocation.agree(f"{verb.capitalize()} {memories(len(found))}?")
    return [one.ref for one in found]


def _on_memories(name: str) -> Command:
    about = ON_MEMORIES[name]

    def change(
        invocation: Invocation,
        *,
        refs: tuple[str, ...],
        kinds: tuple[str, ...],
        tags: tuple[str, ...],
        before: datetime | None,
        session: str | None,
        yes: bool,
    ) -> None:
        with invocation.open(yes=yes) as memory:
            chosen = Chosen(kinds, tags, before, session)
            named = chosen_memories(invocation, memory, refs, chosen, name, yes=yes)
            were = [memory.get(ref, forgotten=True) for ref in named]  # all of them, or none
            with memory.together():
                changed: list[Memory] = [getattr(memory, name)(ref) for ref in named]
        answer_changed(invocation, were, changed, about.sentence, about.unchanged)

    change.__name__, change.__doc__ = name, about.help
    in_session = click.option("--session", metavar="ID", help="Only what this session wrote.")
    return command(
        click.argument("refs", nargs=-1, metavar="REF...", shell_complete=complete_ref)(
            filter_options(in_session(yes_option(change)))
        )
    )


def answer_changed(
    invocation: Invocation,
    before: Sequence[Memory],
    changed: Sequence[Memory],
    sentence: str,
    unchanged: str,
    more: Sequence[Line] = (),
) -> None:
    """Say what became of each memory; a document for one, a list of them for several."""
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
    invocation.answer(documents[0] if len(documents) == 1 else {"memories": documents}, lines)


reinforce_command, demote_command, pin_command, unpin_command, forget_command = map(_on_memories, ON_MEMORIES)


@command
@click.argument("ref", shell_complete=complete_ref)
@click.argument("text", nargs=-1, required=True)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Replaces the tags it has. May be repeated.")
@yes_option
def revise_command(
    invocation: Invocation, *, ref: str, text: tuple[str, ...], tags: tuple[str, ...], yes: bool
) -> None:
    """A single dash as TEXT reads it from standard input."""
    content = given_text(text)
    with invocation.open(yes=yes) as memory:
        revised = memory.revise(ref, content, tags=tags or None)
        disagreements = _disagreements(memory, revised)
    invocation.answer(as_document(revised), [(name_of(revised), " is revised."), *disagreements])


@command
@click.argument("ref", shell_complete=complete_ref)
@click.option("--text", metavar="TEXT", help="The new text; a single dash reads it from standard input.")
@click.option("--kind", metavar="KIND", help="The new kind.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Replaces the tags it has. May be repeated.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Replaces its files. May be repeated.")
@click.option("--importance", callback=_number, metavar="NUMBER", help="From 0 to 1.")
@yes_option
def edit_command(
    invocation: Invocation,
    *,
    ref: str,
    text: str | None,
    kind: str | None,
    tags: tuple[str, ...],
    files: tuple[str, ...],
    importance: float | None,
    yes: bool,
) -> None:
    """Without options, the memory is opened in $VISUAL or $EDITOR, with its fields above its text."""
    given = {"content": given_text((text,)) if text is not None else None, "kind": kind, "importance": importance}
    wanted: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    wanted |= {"tags": tags} if tags else {}
    wanted |= {"files": files} if files else {}
    with invocation.open(yes=yes) as memory:
        found = memory.get(ref)
        wanted = _differing(wanted or _edited(found), found)
        if "kind" in wanted:
            check_kind(invocation, memory, wanted["kind"], yes=yes)
        changed = memory.revise(ref, **wanted) if wanted else found
        disagreements = _disagreements(memory, changed) if wanted else []
    names = ", ".join("text" if name == "content" else name for name in wanted)
    sentence = f" is changed: {names}." if wanted else " stays as it was. Nothing was changed."
    invocation.answer(as_document(changed), [(name_of(changed), sentence), *disagreements])


def _edited(memory: Memory) -> dict[str, Any]:
    """What a person changed in their editor."""
    page = _EDIT_PAGE.format(m=memory, tags=", ".join(memory.tags), files=", ".join(memory.files))
    try:
        saved = click.edit(page, extension=".md")
    except click.ClickException as error:  # its message names the program, and has no way on
        raise InvalidInput(
            f"The editor did not save the text ({error.message}).",
            hint="Nothing was changed. Set $EDITOR to another program, or use `kept edit REF --text TEXT`.",
        ) from None
    if saved is None:
        return {}
    head, rule, content = saved.replace("\r\n", "\n").partition("\n---\n")
    if not rule:
        raise InvalidInput("The line --- between the fields and the text is gone.", hint="Nothing was changed.")
    fields = dict(line.split(":", 1) for line in head.split("\n") if ":" in line and not line.startswith("#"))
    told = {name.strip(): value.strip() for name, value in fields.items()}
    wanted: dict[str, Any] = {"content": content.strip("\n"), "kind": told.get("kind", memory.kind)}
    for name in ("tags", "files"):
        wanted[name] = tuple(one.strip() for one in told.get(name, "").split(",") if one.strip())
    try:
        wanted["importance"] = float(told.get("importance", memory.importance))
    except ValueError:
        raise InvalidInput("importance is not a number.", hint="Nothing was changed. Use 0 to 1.") from None
    return wanted


def _differing(wanted: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value != getattr(memory, name)}


@command
@click.argument("refs_or_file", nargs=-1, metavar="[REF...|FILE]", shell_complete=complete_ref)
@filter_options
@click.option("--session", metavar="ID", help="Only what this session wrote.")
@yes_option
def restore_command(
    invocation: Invocation,
    *,
    refs_or_file: tuple[str, ...],
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    before: datetime | None,
    session: str | None,
    yes: bool,
) -> None:
    """An argument that looks like a ref (42, g42, [id:42]) is a memory that was archived or forgotten; anything else is
    a file that `kept backup` wrote. A file called 42 is ./42. A store that has changed since the backup is replaced
    only after a yes, and is kept beside it as a backup of its own. Memories that were erased since then do not come
    back.
    """
    if len(refs_or_file) != 1 or is_ref(refs_or_file[0]):
        chosen = Chosen(kinds, tags, before, session)
        gone: tuple[Shelf, ...] = ("archive", "forgotten")
        with invocation.open(yes=yes) as memory:
            refs = chosen_memories(invocation, memory, refs_or_file, chosen, "restore", yes=yes, shelves=gone)
            were = [memory.get(ref, forgotten=True) for ref in refs]
            with memory.together():
                found = [memory.restore(ref) for ref in refs]
            back = [one for was, one in zip(were, found, strict=True) if was != one]
            more = [line for one in back for line in _disagreements(memory, one)]
        answer_changed(invocation, were, found, " is back ({m.status}).", " was not archived or forgotten.", more)
        return
    (ref_or_file,) = refs_or_file
    with invocation.open(yes=yes) as memory:
        restored = memory.store.restore(given_file(ref_or_file))
    lines: list[Line] = [
        f"Restored {memories(restored.memories)} and {counted(restored.events, 'event')} from {ref_or_file}."
    ]
    if restored.left_out:
        lines.append(f"Left out, because erased since then: {memories(restored.left_out)}.")
    if restored.replaced:
        lines.append(f"The previous store was kept as {restored.replaced}.")
    invocation.answer(restored, lines)


@command
@click.argument("refs", nargs=-1, metavar="[REF...]", shell_complete=complete_ref)
@filter_options
@click.option("--session", metavar="ID", help="A whole session, and what was captured from it.")
@click.option("--message", metavar="ID#N", help="One message. A REF may be a message as well.")
@click.option("--task", metavar="ID", help="A task with its notes.")
@click.option("--alias", metavar="WORD", help="An alias of this project, also one that was removed.")
@yes_option
def erase_command(
    invocation: Invocation,
    *,
    refs: tuple[str, ...],
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    before: datetime | None,
    session: str | None,
    message: str | None,
    task: str | None,
    alias: str | None,
    yes: bool,
) -> None:
    """REF is a memory (42) or a message (ID#12: the session and the number that `kept session show ID` shows). With
    --session, all that was said in one. No byte of it stays in the home: text, index, history, copies, quotations in
    other memories and messages, mirrored files, backups. Only the name of a session, task or alias stays in the
    journal. It is not captured again. `kept forget` only hides a memory.
    """
    chosen = Chosen(kinds, tags, before)
    if sum((bool(refs), any(chosen), *(one is not None for one in (session, message, task, alias)))) != 1:
        raise click.UsageError("Give REFs or filters such as --kind, or one of --session, --task and --alias.")
    with invocation.open(yes=True) as memory:  # asked below, with the memory in view
        if session is not None:
            session = session_named(invocation, memory, session)
            targets: list[Erasable] = [one for one in memory.sessions() if one.name == session]
            what = f"session {session} with everything that was captured from it"
        elif task is not None:
            targets, what = [memory.task(_known_task(memory, task))], f"task {task} with its notes"
        elif alias is not None:
            targets, what = [Alias(word=alias.strip().lower(), expands_to=())], f"the alias {alias}"
        else:
            targets, what = _named(invocation, memory, (*refs, *((message,) if message else ())), chosen, yes=yes)
        if not yes:
            invocation.agree(f"Erase {what} for good? This cannot be undone.")
        receipts = memory.erase(targets)
    lines: list[Line] = []
    for receipt in receipts:
        lines.append(receipt.message)
        if receipt.found != {"memories": 1}:
            places = ", ".join(f"{place} {number}" for place, number in receipt.found.items())
            lines.append(Dim(f"Found and erased: {places}."))
    invocation.answer(receipts[0] if len(receipts) == 1 else {"erased": receipts}, lines)


def _named(
    invocation: Invocation, memory: Kept, refs: Sequence[str], chosen: Chosen, *, yes: bool
) -> "tuple[list[Erasable], str]":
    """The memories and messages that are to be erased, and what they are called in a question."""
    said = [message_named(invocation, memory, ref) for ref in refs if "#" in ref]
    for ref in said:
        memory.look().message(ref)  # nobody is asked about what is not there
    found = [memory.get(ref, forgotten=True) for ref in dict.fromkeys(refs) if "#" not in ref]
    found = found if refs else chosen.memories(memory, ("live", "archive", "forgotten"))
    if not found and not said:
        raise NotFound("No memory passes the filters.", hint="`kept list` shows what there is.")
    if not yes:
        for one in found[:PREVIEW]:
            invocation.tell(*memory_lines(one, invocation.clock()))
        if len(found) > PREVIEW:
            invocation.tell(Dim(f"… and {len(found) - PREVIEW:,} more."))
    names = [f"memory {found[0].ref}" if len(found) == 1 else memories(len(found))] if found else []
    return [*(one.uid for one in found), *said], " and ".join((*names, *(f"message {ref}" for ref in said)))


@command
@click.argument("event", required=False)
@yes_option
def undo_command(invocation: Invocation, *, event: str | None, yes: bool) -> None:
    """Without EVENT, the newest change that you made and that was not undone yet; `kept history` shows the numbers of
    others. Undoing an undo makes the change again. Nothing is undone where later changes build on it: the error names
    them.
    """
    with invocation.open(yes=yes) as memory:
        undone = [_undone(memory, one, invocation) for one in memory.undo(event)]
    lines = [line for _, _, its_lines in undone for line in its_lines]
    lines.append(Dim(f"`kept undo {undone[-1][0]}` makes the change again."))
    invocation.answer({"events": [document for _, document, _ in undone]}, lines)


def _undone(memory: Kept, event: Event, invocation: Invocation) -> tuple[str, dict[str, Any], list[Line]]:
    """The name of the event that undid something, its document, and the lines about it."""
    from kept.journal import noun_of

    now, document = invocation.clock(), event_document(event)
    found = memory.get(event.subject, forgotten=True) if noun_of(event) is Memory else None
    is_global = found is not None and found.space == GLOBAL
    events = memory.look().events_of_group(event.undoes)
    undone = [one for one in events if one.subject == event.subject]
    of = "" if found is not None else f" {event.subject.partition(':')[2] or event.subject}".rstrip(" :")
    actions = ", ".join(
        f"{one.action}{of} (event {event_name(one, is_global=is_global)}{_change_of(one) if of else ''})"
        for one in undone
    )
    when = ago(undone[0].at, now) if undone else "just now"
    name = event_name(event, is_global=is_global)
    lines: list[Line] = [f"Undone: {actions}{'' if when == 'just now' else f', {when}'}."]
    if found is None:
        return name, document, lines
    return name, {"event": name, "ref": found.ref, **document}, [*lines, *memory_lines(found, now)]


def _change_of(event: Event) -> str:
    changed = what_changed(event)
    return f": {changed}" if changed else ""


@command
@click.argument("line", nargs=-1)
@yes_option
def slash_command(invocation: Invocation, *, line: tuple[str, ...], yes: bool) -> None:
    """Without a LINE, all of them are listed. With key words, a command acts on the one memory that has all the words;
    if several do, they are listed, or you are asked.

    \b
    kept slash /remember Never edit the auth middleware directly
    kept slash /pin auth middleware
    kept slash /memory search auth
    """
    from kept.entrypoints import slash

    def choose(question: str, memories: Sequence[Memory]) -> str | None:
        for memory in memories:
            invocation.tell(*memory_lines(memory, invocation.clock()))
        picked = invocation.pick(question, [NONE_OF_THEM, *(memory.ref for memory in memories)])
        return None if picked == NONE_OF_THEM else picked

    with invocation.open(yes=yes) as memory:
        answer = slash.run(memory, " ".join(line) or "/memory", choose=choose if invocation.can_pick() else None)
    lines: list[Line] = list(answer.text.split("\n"))
    if answer.done and answer.command in ("/forget", "/pin"):
        lines.append(Dim("`kept undo` undoes it."))
    invocation.answer(msgspec.to_builtins(answer), lines)
