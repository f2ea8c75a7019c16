"""Erase for good: memories, messages, sessions, tasks and aliases, wherever their text went.

A memory is followed to its copies (the same text in any version, on any shelf, in any readable space), to what it was
promoted from or into, and to every place that quotes it: other memories, messages, summaries of sessions. A message is
followed to its forks and to what was captured from it, a session to everything that it left behind unasked, a task to
its notes and to tasks.json. A quotation becomes `[erased]`; the rest of the text stays. Rule: nothing that was erased
is captured or imported again; marks that only this store can read (tombstones) see to it. What a person says again is
new, and is kept.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from kept import journal, text
from kept.errors import Busy, KeptError, NotAllowed, NotFound, StorageError
from kept.memory import guards, memory_md, views
from kept.memory.context import BATCH, ERASING, SHARED, Context, Memories, Receipts, Ref, as_it_is, global_first
from kept.memory.findings import MESSAGE_REF, find_message
from kept.memory.library import write_items_json
from kept.memory.moved import moved_away
from kept.memory.promotion import FROM_UID
from kept.memory.session_summary import unlabelled
from kept.memory.sessions import Session
from kept.memory.tasks import Task
from kept.memory.told import without_last_told
from kept.model import (
    ERASED,
    GLOBAL,
    REDACT,
    Alias,
    Event,
    Hit,
    Memory,
    Message,
    Receipt,
    Rejection,
    SessionRecord,
    TaskRecord,
    as_ref,
    replace,
)
from kept.ports import ANYTHING, ANYWHERE, Reader, Scrubbed, Stamp, Storage, Transaction
from kept.projects.files import remove_drafts, rewrite_mirror, shown, write_session_index
from kept.storage import scrub
from kept.storage.shared import MOST, pages_of
from kept.writing.admit import DELIBERATE
from kept.writing.passages import SAID, Buried, Passages, Traces, buried_names, count_words, in_strings


class Named(Struct, frozen=True):
    """A session, task or alias by its name."""

    noun: Literal["session", "task", "alias"]
    name: str


Erasable = Ref | Memory | Hit | Message | SessionRecord | Session | TaskRecord | Task | Alias | Named

SENTENCE_WORDS = 4  # a shorter sentence of an erased message is too common to be looked for
_WRITTEN = ("content", "title", "topic", "tags", "files", "data")  # fields of a memory that hold words of a person
# Fields of a receipt that hold none, and those of whose entries the reasons hold none.
_OF_KEPT = ("receipt", "at", "factors", "kind", "event", "moment", "agent", "session", "degraded")
_LEFT_OUT = ("left_out", "misses")
ECHO_WORDS = 6  # the same in sessions that have nothing to do with it


class ErasePlan(Struct):
    """What one call erases in one space, and what it found there."""

    storage: Storage
    is_asked: bool = False  # whether it was named, or is only a place that a copy went to
    memories: dict[str, Memory] = field(default_factory=dict)  # by uid
    quoting: dict[str, Memory] = field(default_factory=dict)  # in which only a part is erased, as they will be
    sessions: dict[str, Passages] = field(default_factory=dict)  # that quote something, and what
    messages: dict[str, set[str]] = field(default_factory=dict)  # session → ids of messages
    whole: list[str] = field(default_factory=list)  # names of sessions
    tasks: dict[str, TaskRecord] = field(default_factory=dict)  # by id
    aliases: dict[str, Alias] = field(default_factory=dict)  # by word
    told: list[str] = field(default_factory=list)  # the contents of the messages to erase
    said: list[str] = field(default_factory=list)  # the sentences of these messages and of the sessions to erase
    near: set[str] = field(default_factory=set)  # sessions that share the messages to erase, or may repeat them
    found: Counter[str] = field(default_factory=Counter)

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.quoting or self.is_talk or self.tasks or self.aliases)

    @property
    def n_live(self) -> int:
        return sum(not memory.is_archived for memory in self.memories.values())

    @property
    def is_talk(self) -> bool:
        return bool(self.sessions or self.messages or self.whole)


class Wanted(Struct, frozen=True, kw_only=True):
    """The memories that were named, and the texts to look for: theirs, and those of the messages to erase."""

    asked: dict[str, Memory]  # by uid
    said: list[str]  # the sentences of the messages and sessions to erase
    fingerprints: set[str]  # of every version of the memories
    uids: set[str]  # of those that they were promoted from
    quotes: Passages
    spoken: Passages
    buried: list[str]  # the marks that keep the texts from being captured again
    traced: tuple[set[str], Traces] | None = None  # names and words that find receipts; None: all go


class Cleaning(Struct):
    """How the cleaning of the files went: what stayed in global memory, and what could not be cleaned."""

    left: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    scrubbed: list[Scrubbed] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)  # old files of merged projects that were deleted
    was_shared: bool = False  # with teammates, through the ref of a repository


def erase(context: Context, targets: Iterable[Erasable]) -> Receipts:
    """Erase all targets in one group, with one cleaning of the files; a receipt each, in order."""
    finish_files(context)
    plans, named, wanted = _plan(context, targets)
    moved = moved_from_here(context)
    with without_last_told(context.spaces.home()):
        cleaning = _carry_out(context, plans, wanted)
    found = sum((plan.found for plan in plans.values()), Counter(backups=sum(one.backups for one in cleaning.scrubbed)))
    hints = [*moved, *_hints(context, plans, wanted, cleaning, found)]
    return [_receipt(name, found, cleaning, hints) for name in named]


def moved_from_here(context: Context) -> list[str]:
    """Say that this is the old copy of a moved project. Raises MovedAway if the home has not followed it yet."""
    if (error := moved_away(context)) is None:
        return []
    if context.spaces.is_where_the_home_points():
        raise error
    return [f"This is the old copy, and the other one still holds it: {error.message}"]


def preview(context: Context, targets: Iterable[Erasable]) -> dict[str, int]:
    """Count the records that `erase` would remove or change, by place. Changes nothing."""
    planned, _, wanted = _plan(context, targets)
    plans = planned.values()
    found = {
        "memories": sum(len(plan.memories) for plan in plans),
        "memories that quote it": sum(len(plan.quoting) for plan in plans),
        "conversations": sum(len({*plan.sessions, *plan.messages, *plan.whole}) for plan in plans),
        "tasks": sum(len(plan.tasks) for plan in plans),
        "receipts": sum(len(_receipts_to_go(plan.storage, wanted)) for plan in plans),
    }
    return {place: number for place, number in found.items() if number}


def quoting(context: Context, targets: Iterable[Erasable]) -> list[str]:
    """Return the refs of the memories that would be erased only in part. Changes nothing."""
    return [memory.ref for plan in _plan(context, targets)[0].values() for memory in plan.quoting.values()]


def _plan(context: Context, targets: Iterable[Erasable]) -> tuple[dict[str, ErasePlan], list[str], Wanted]:
    """Find the targets, their copies and quotations; return the plan of each space, names, and texts."""
    plans = {storage.space: ErasePlan(storage=storage) for storage in context.readable()}
    named = [_plan_target(context, plans, target) for target in targets]
    for plan in plans.values():
        with plan.storage.reading() as reader:
            for memory in plan.memories.values():
                guards.check_unguarded(context, reader, memory)
    wanted = _wanted(plans)
    for plan in plans.values():
        _find_copies(plan, wanted)
        _find_quotations(plan, wanted)
    return plans, named, replace(wanted, traced=_traced(plans))


def _wanted(plans: dict[str, ErasePlan]) -> Wanted:
    """Follow the messages to erase, and collect every text to look for."""
    for plan in plans.values():
        _follow_messages(plan)
    said = [sentence for plan in plans.values() for sentence in plan.said]
    asked = {uid: memory for plan in plans.values() for uid, memory in plan.memories.items()}
    texts, fingerprints, uids = _versions(plans, asked)
    texts |= {one for plan in plans.values() for one in _task_texts(plan)}
    return Wanted(
        asked=asked,
        said=said,
        fingerprints=fingerprints,
        uids=uids,
        quotes=Passages(texts),
        spoken=Passages(said),
        buried=[*buried_names(texts), *buried_names(said, SAID)],
    )


def _carry_out(context: Context, plans: dict[str, ErasePlan], wanted: Wanted) -> Cleaning:
    """Erase in the stores, global memory first, and clean their files."""
    cleaning = Cleaning()
    stamp = replace(context.stamp(shared=GLOBAL in plans and not plans[GLOBAL].is_empty), passes_fence=True)
    # The project's always: there are the questions that were asked about it.
    touched = [one.storage for one in plans.values() if not one.is_empty or one.storage.space != GLOBAL]
    for storage in global_first(touched):
        plan = plans[storage.space]
        try:
            _write(context, plan, wanted, stamp)
        except NotAllowed:
            if plan.is_asked:
                raise
            cleaning.left += [memory.ref for memory in (*plan.memories.values(), *plan.quoting.values())]
            plan.found.clear()
        else:
            _clean(context, plan, wanted, cleaning)
            context.tell_write(storage, -plan.n_live)
    _drop_merged(context, cleaning)
    return cleaning


def _drop_merged(context: Context, cleaning: Cleaning) -> None:
    """Delete the folders of projects that were merged into this one."""
    try:
        cleaning.merged = context.spaces.drop_merged(shutil.rmtree)
    except KeptError as error:
        cleaning.unwritten.append(f"{error.message} It was merged into this project, and may still hold it. Delete it.")


def _clean(context: Context, plan: ErasePlan, wanted: Wanted, cleaning: Cleaning) -> None:
    """Clean the files of one store, which itself has lost the texts: an error would say that nothing was changed."""
    failed = _clean_files(context, plan.storage, _files_of(plan), wanted.quotes.erase, plan.found)
    if failed:
        cleaning.unwritten.append(
            f"{' '.join(failed)} That file may still hold it. When the cause is gone, run `kept files sync`."
        )
    with plan.storage.reading() as reader:
        shared = reader.file_notes(SHARED)
    cleaning.was_shared |= any(f"{SHARED}{uid}" in shared for uid in plan.memories)
    if plan.storage.space == GLOBAL:
        _drop_what_was_given(context, list(plan.memories))
    try:
        cleaning.scrubbed.append(scrub(plan.storage))
    except Busy:  # it is erased; only the cleaning has to wait
        cleaning.scrubbed.append(Scrubbed(is_done=False))


def _hints(
    context: Context, plans: dict[str, ErasePlan], wanted: Wanted, cleaning: Cleaning, found: Counter[str]
) -> list[str]:
    """Say where a person has to look: what may be left, and what was deleted as a whole."""
    hints = []
    if not wanted.said and not found["quoting messages"]:
        sessions = {memory.source.session for memory in wanted.asked.values()} - {None}
        hints += [f"Session {name} may say it in other words." for name in sorted(map(str, sessions))]
    if cleaning.merged:
        hints.append(f"The old files of merged projects could hold it and were deleted: {', '.join(cleaning.merged)}.")
    if GLOBAL not in plans and wanted.asked and context.spaces.shared() is not None:
        hints.append("If it was promoted, a copy is in global memory, which you may not read here.")
    if cleaning.was_shared:
        hints.append(
            "It was shared with the team: `kept team push` takes it out of the ref, but the history of the ref and the "
            "clones of others still hold it."
        )
    if cleaning.left:
        hints.append(f"Copies in global memory stay, because nobody agreed to erase them: {', '.join(cleaning.left)}.")
    return hints


class FilesToClean(Struct, kw_only=True):
    """The files beside a store that may hold what was erased. Noted until they are clean: a kill may come before."""

    sessions: list[str] = []
    ids: list[int] = []  # of memories that MEMORY.md shows
    has_tasks: bool = False


def _files_of(plan: ErasePlan) -> FilesToClean:
    captured = [one for one in plan.quoting.values() if one.source.origin not in DELIBERATE]
    return FilesToClean(
        sessions=sorted({*plan.sessions, *plan.messages, *plan.whole}),
        ids=[memory.id for memory in (*plan.memories.values(), *captured)],
        has_tasks=bool(plan.tasks),
    )


def _note_files(context: Context, tx: Transaction, plan: ErasePlan) -> None:
    """Note the files to clean, together with those of an earlier erasure that could not be cleaned."""
    if context.spaces.project_name() is None:  # a portable store has no files beside it
        return
    before, now = _noted_files(tx) or FilesToClean(), _files_of(plan)
    both = FilesToClean(
        sessions=sorted({*before.sessions, *now.sessions}),
        ids=sorted({*before.ids, *now.ids}),
        has_tasks=before.has_tasks or now.has_tasks,
    )
    tx.note_file(ERASING, msgspec.json.encode(both).decode())


def _noted_files(reader: Reader) -> FilesToClean | None:
    noted = reader.file_notes(ERASING).get(ERASING)
    return None if noted is None else msgspec.json.decode(noted, type=FilesToClean)


def finish_files(context: Context) -> list[str]:
    """Clean the files that an earlier erasure could not, or was killed before. Returns why some still hold it."""
    failed = []
    for storage in context.readable():
        with storage.reading() as reader:
            todo = _noted_files(reader)
        if todo is not None:
            failed += _clean_files(context, storage, todo, Buried(partial(_erased_among, storage)).erase, Counter())
    return failed


def _erased_among(storage: Storage, names: Collection[str]) -> set[str]:
    with storage.reading() as reader:
        return reader.erased_among(names)


def _clean_files(
    context: Context, storage: Storage, todo: FilesToClean, erase: Callable[[str], str], found: Counter[str]
) -> list[str]:
    """Clean each file beside the store, also if another one cannot be. Returns why those still hold something."""
    if context.spaces.project_name() is None:
        return []
    failed: list[str] = []
    steps: list[Callable[[], list[str] | None]] = [
        partial(_write_mirrors, context, storage, todo.sessions, found),
        partial(_write_items, context, storage),
        partial(views.erase_from, context, storage, partial(memory_md.without_erased, ids=todo.ids, erase=erase)),
        partial(_remove_drafts, context, storage),
    ]
    if todo.has_tasks:
        steps.insert(0, partial(views.write_tasks, context))
    with storage.making_room():
        for step in steps:
            try:
                failed += step() or []
            except KeptError as error:
                failed += [error.message] if error.message not in failed else []
        if not failed:
            stamp = replace(context.stamp(), passes_fence=True)
            with suppress(StorageError), storage.writing(stamp) as tx:  # else the next erasure looks again
                tx.note_file(ERASING, None)
    return failed


def _write_items(context: Context, storage: Storage) -> None:
    folder = context.spaces.files_folder()
    if storage.space != GLOBAL and folder is not None and (folder / "items.json").exists():
        write_items_json(context, storage)


def _remove_drafts(context: Context, storage: Storage) -> list[str]:
    """Delete what killed writers left in the folder of a space and in the folders of its sessions and views."""
    folder = context.spaces.files_folder(shared=storage.space == GLOBAL)
    if folder is None:
        return []
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())]
    busy = [path for path in inside if not remove_drafts(path)]
    return [f"Another process is writing a file in {shown(path)}." for path in busy]


def _drop_what_was_given(context: Context, uids: list[str]) -> None:
    """Remove the receipts of all projects that hold the text of a global memory: agents were given it there."""
    for storage in context.spaces.projects():
        with storage.bookkeeping() as notes:
            dropped = 0 if notes is None else notes.drop_receipts(uids)
        if dropped:
            with suppress(Busy):  # it is removed; the next cleaning of that file overwrites it
                scrub(storage)


# What is meant


def _plan_target(context: Context, spaces: dict[str, ErasePlan], target: Erasable) -> str:
    """Note what a target names, in its space. Returns its ref or name. Raises NotFound."""
    named = _named(target)
    if isinstance(named, Named):
        if named.noun == "alias":
            alias = target if isinstance(target, Alias) else Alias(word=named.name, expands_to=())
            return _plan_alias(context, spaces, alias)
        return (_plan_task if named.noun == "task" else _plan_session)(context, spaces, named.name)
    if isinstance(named, str) and (found := re.fullmatch(MESSAGE_REF, named)):
        plan = _of_project(context, spaces)
        plan.messages.setdefault(found["session"], set()).add(find_message(plan.storage, named).id)
        return named
    storage, memory = context.find(named)
    spaces[storage.space].memories[memory.uid] = memory
    spaces[storage.space].is_asked = True
    return memory.ref


def _named(target: Erasable) -> Named | Ref:
    """Return the noun and the name of a target; the ref of a message or memory."""
    match target:
        case Named():
            return target
        case SessionRecord() | Session():
            return Named("session", target.id if isinstance(target, Session) else target.name)
        case TaskRecord() | Task():
            return Named("task", target.id if isinstance(target, Task) else target.name)
        case Alias():
            return Named("alias", target.word)
        case Message():
            return f"{target.session}#{target.n}"
        case ref:
            return as_ref(ref)


def _plan_session(context: Context, spaces: dict[str, ErasePlan], name: str) -> str:
    plan = _of_project(context, spaces)
    with plan.storage.reading() as reader:
        if reader.session(name) is None and not reader.last_number(name):
            raise NotFound(f"There is no session {name[:60]!r}.", hint="`kept session list` shows them.")
    plan.whole.append(name)
    return name


def _plan_task(context: Context, spaces: dict[str, ErasePlan], name: str) -> str:
    """Note a task with its notes. Edits of tasks.json are read first, so that the file cannot bring it back."""
    views.take_edits(context)
    plan = _of_project(context, spaces)
    with plan.storage.reading() as reader:
        task = next((one for one in reader.all(TaskRecord) if one.name == name), None)
    if task is None:
        raise NotFound(f"There is no task {name[:60]!r}.", hint="`kept task list --all` shows them.")
    plan.tasks[name] = task
    for page in pages_of(plan.storage, replace(ANYWHERE, task=name)):
        plan.memories.update({one.uid: one for one in page if one.tier == "task"})
    return task.subject


def _plan_alias(context: Context, spaces: dict[str, ErasePlan], alias: Alias) -> str:
    """Note an alias. One that was removed earlier is erased as well: the journal still has it."""
    plan = _of_project(context, spaces)
    with plan.storage.reading() as reader:
        known = next((one for one in reader.all(Alias) if one.word == alias.word), None)
        if known is None and not reader.events(subject=alias.subject):
            raise NotFound(
                f"There is no alias {alias.word[:60]!r} of this project.", hint="`kept alias list` shows them."
            )
    plan.aliases[alias.word] = known or alias
    return alias.subject


def _task_texts(plan: ErasePlan) -> Iterator[str]:
    """Every sentence that the tasks ever had, if it is long enough to be looked for."""
    with plan.storage.reading() as reader:
        for task in plan.tasks.values():
            said = [task.description, *task.acceptance_criteria]
            for event in reader.events(subject=task.subject):
                for before_and_after in (event.changed or {}).values():
                    said += _strings(list(before_and_after))
            yield from (one for text_ in said for one in text.sentences(text_) if count_words(one) >= SENTENCE_WORDS)


def _of_project(context: Context, spaces: dict[str, ErasePlan]) -> ErasePlan:
    """Return the plan for the opened project, which has the conversations, tasks and aliases."""
    project = context.spaces.project()
    if project is None:
        raise NotFound("This project has no store yet, so there is nothing to erase.", hint="`kept status` shows it.")
    spaces[project.space].is_asked = True
    return spaces[project.space]


def _follow_messages(plan: ErasePlan) -> None:
    """Add what was captured from the erased messages and sessions, the copies in forks, and the sentences they said."""
    if not plan.messages and not plan.whole:
        return
    with plan.storage.reading() as reader:
        said = [*_follow_single(plan, reader), *_follow_whole(plan, reader)]
    for page in pages_of(plan.storage, ANYWHERE):
        plan.memories |= {one.uid: one for one in page if _is_left_by(one, plan.whole) or _is_captured(one, plan)}
    plan.said = _of_words(SENTENCE_WORDS, said)


def _follow_single(plan: ErasePlan, reader: Reader) -> list[str]:
    """Add the copies of single messages in forks. Returns the sentences that they said."""
    sessions = reader.all(SessionRecord)
    for name, ids in list(plan.messages.items()):
        family = _family(sessions, name)
        gone = [message for message in reader.messages(name) if message.id in ids]
        plan.told += [one for message in gone for one in _strings([message.content, message.input])]
        plan.near |= family
        _add_copies(plan, reader, family - {name}, gone)
    return _statements(plan.told)


def _follow_whole(plan: ErasePlan, reader: Reader) -> Iterator[str]:
    """Add the copies of whole sessions in their forks. Returns the sentences that were said in them."""
    sessions = reader.all(SessionRecord)
    for name in plan.whole:
        gone = _own_messages(reader, name)
        yield from _statements(message.content for message in gone)
        _add_copies(plan, reader, _descendants(sessions, name), gone)


def _statements(told: Iterable[str]) -> list[str]:
    """The sentences of these texts, also without the label before a colon: others repeat them without it."""
    said = [one for text_ in told for one in text.sentences(text_)]
    return said + [after for one in said if (after := one.partition(": ")[2].strip())]


def _is_captured(memory: Memory, plan: ErasePlan) -> bool:
    """Whether a memory was captured from one of the messages, by its key or because its words stand in one of them."""
    if memory.kind == "summary" or memory.source.origin in DELIBERATE or memory.source.session not in plan.near:
        return False
    session, _, rest = (memory.key or "").partition(":")
    is_from = rest.rpartition(":")[0] in plan.messages.get(session, ())
    return is_from or (count_words(memory.content) >= SENTENCE_WORDS and _stands_in(memory.content, plan.told))


def _stands_in(said: str, told: Iterable[str]) -> bool:
    wanted = Passages([said])
    return any(wanted.spans(one) for one in told)


def _own_messages(reader: Reader, name: str) -> list[Message]:
    """What was said in a session. What a fork has from its parent is the parent's, and stays there."""
    session = reader.session(name)
    return reader.messages(name, after=0 if session is None else session.shared)


def _add_copies(plan: ErasePlan, reader: Reader, forks: Iterable[str], gone: Sequence[Message]) -> None:
    """Forks begin with the same messages."""
    same = {(message.id, message.role, message.content) for message in gone}
    for fork in forks:
        if ids := {one.id for one in reader.messages(fork) if (one.id, one.role, one.content) in same}:
            plan.messages.setdefault(fork, set()).update(ids)


def _is_left_by(memory: Memory, sessions: Sequence[str]) -> bool:
    """Whether a memory was captured in these sessions and in no other. What was said on purpose stays."""
    witnesses = {memory.source.session, *(memory.data or {}).get("sessions", ())} - {None}
    return bool(witnesses) and witnesses <= set(sessions) and memory.source.origin not in DELIBERATE


def _descendants(sessions: Sequence[SessionRecord], name: str) -> set[str]:
    found: set[str] = set()
    while more := {one.name for one in sessions if one.parent in {name, *found}} - found - {name}:
        found |= more
    return found


def _family(sessions: Sequence[SessionRecord], name: str) -> set[str]:
    """A session with all that it was forked from, and all that was forked from those."""
    parents = {one.name: one.parent for one in sessions}
    first, seen = name, {name}
    while (parent := parents.get(first)) and parent not in seen:
        first = parent
        seen.add(parent)
    return {first, *_descendants(sessions, first)}


def _versions(spaces: dict[str, ErasePlan], asked: dict[str, Memory]) -> tuple[set[str], set[str], set[str]]:
    """Every text that the memories ever had, their fingerprints, and the uids of what they were promoted from."""
    texts: set[str] = set()
    fingerprints: set[str] = set()
    for plan in spaces.values():
        with plan.storage.reading() as reader:
            for memory in plan.memories.values():
                events = reader.events(subject=memory.uid)
                texts |= {memory.content, *_earlier_texts(events)}
                fingerprints |= journal.fingerprints(events) | {memory.fingerprint}
    uids = {str(origin) for memory in asked.values() if (origin := (memory.data or {}).get(FROM_UID))}
    return texts, fingerprints, uids


def _earlier_texts(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        yield from (side for side in (event.changed or {}).get("content", ()) if isinstance(side, str))


# Where it went


def _find_copies(plan: ErasePlan, wanted: Wanted) -> None:
    """Find memories that are a copy, or that quote one of the texts."""
    if not wanted.quotes and not wanted.spoken:
        return
    family = {*plan.messages, *plan.whole, *plan.near}
    originals = {*wanted.uids, *plan.memories}
    for page in pages_of(plan.storage, ANYWHERE):
        for memory in page:
            if memory.uid in plan.memories:
                continue
            if _is_copy(memory, wanted, originals):
                plan.memories[memory.uid] = memory
                plan.found["copies"] += 1
            elif (clean := _without_quotations(memory, wanted, family, plan.told)) != memory:
                _add_quoting(plan, memory, clean)


def _traced(plans: dict[str, ErasePlan]) -> tuple[set[str], Traces] | None:
    """Return the names and words that could tell a receipt of the memories to erase; None if more than those go."""
    if any(map(_takes_more, plans.values())):
        return None
    names = {name for plan in plans.values() for name in _names_of(plan)}
    traces = Traces([said for plan in plans.values() for said in _ever_said(plan)])
    for remaining in chain.from_iterable(map(_remaining, plans.values())):
        traces.forgive("\n".join(_strings(_texts_of(remaining))))
    return names, traces


def _takes_more(plan: ErasePlan) -> bool:
    """Return True if a plan erases more than memories."""
    return any((plan.messages, plan.whole, plan.tasks, plan.aliases))


def _names_of(plan: ErasePlan) -> set[str]:
    """Return the refs and uids of the memories to erase and of those that quote them."""
    named = (*plan.memories.values(), *plan.quoting.values())
    return {one.ref for one in named} | {one.uid for one in named}


def _ever_said(plan: ErasePlan) -> list[str]:
    """Return every text that the memories to erase have now, or had before a revision."""
    said: list[str] = []
    with plan.storage.reading() as reader:
        for memory in plan.memories.values():
            before = [one.changed or {} for one in reader.events(subject=memory.uid)]
            said += _strings([_texts_of(memory), [changed.get(name) for changed in before for name in _WRITTEN]])
    return said


def _remaining(plan: ErasePlan) -> Iterator[Memory]:
    """Yield the memories that stay, those that quote an erased one as they will be."""
    every = (memory for page in pages_of(plan.storage, ANYWHERE) for memory in page)
    return (plan.quoting.get(one.uid, one) for one in every if one.uid not in plan.memories)


def _texts_of(memory: Memory) -> list[Any]:
    return [[*part] if isinstance(part, tuple) else part for part in (getattr(memory, name) for name in _WRITTEN)]


def _receipts_to_go(storage: Storage, wanted: Wanted) -> list[int]:
    """Return the numbers of the receipts of a space that go with the memories."""
    if storage.space == GLOBAL:
        return []
    with storage.reading() as reader:
        return receipts_with(reader, *(wanted.traced or (None, None)))


def receipts_with(reader: Reader, names: Collection[str] | None, traces: Traces | None) -> list[int]:
    """Return the numbers of the receipts that name something, or whose words could be taken from it; None: of all."""
    kept = reader.receipts_of(None, limit=MOST)
    if names is None or traces is None:
        return [number for number, _, _ in kept]
    return [
        number
        for number, _, body in kept
        if any(said in names or traces.are_in(said) for said in _asked_or_given(body))
    ]


def _asked_or_given(body: dict[str, Any]) -> Iterator[str]:
    """Every string in a receipt that is not a word of Kept."""
    for name, value in body.items():
        if name not in _OF_KEPT:
            yield from _values(value, without="reason" if name in _LEFT_OUT else "")


def _values(value: Any, without: str) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _values([inner for name, inner in value.items() if name != without], without)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _values(inner, without)


def _is_copy(memory: Memory, wanted: Wanted, originals: set[str]) -> bool:
    promoted_from = (memory.data or {}).get(FROM_UID)
    return memory.fingerprint in wanted.fingerprints or memory.uid in wanted.uids or promoted_from in originals


def _without_quotations(memory: Memory, wanted: Wanted, family: set[str], told: Sequence[str]) -> Memory:
    clean = _clean_memory(memory, wanted.quotes)
    if memory.source.origin in DELIBERATE or memory.source.session not in family:
        return clean
    clean = _clean_memory(clean, wanted.spoken)
    return clean if memory.kind != "summary" else replace(clean, content=_without_lines(clean.content, told))


def _add_quoting(plan: ErasePlan, memory: Memory, clean: Memory) -> None:
    """Keep the rest of a memory that quotes; if no word is left of it, erase it."""
    if count_words(clean.content.replace(ERASED, "")):
        plan.quoting[memory.uid] = clean
    else:
        plan.memories[memory.uid] = memory
    plan.found["quoting memories"] += 1


def _clean_memory(memory: Memory, quotes: Passages | Buried) -> Memory:
    return replace(
        memory,
        content=quotes.erase(memory.content),
        title=None if memory.title is None else quotes.erase(memory.title),
        topic=None if memory.topic is None else quotes.erase(memory.topic),
        tags=tuple(tag for tag in memory.tags if not quotes.spans(tag)),
        files=tuple(file for file in memory.files if not quotes.spans(file)),
        data=None if memory.data is None else quotes.erase_in(memory.data),
    )


def _without_lines(summary: str, told: Sequence[str]) -> str:
    """Blank the lines of a summary whose words stand in one of the texts: it may have dropped opening words."""
    return "\n".join(f"- {ERASED}" if _stands_in(unlabelled(line), told) else line for line in summary.splitlines())


def _find_quotations(plan: ErasePlan, wanted: Wanted) -> None:
    """Find sessions in which a message, or the summary of the session, quotes one of the texts.

    A memory may be put together from several sentences: these are looked for in the session that it came from. The
    sentences of an erased message are looked for in its session, and everywhere if they are long enough.
    """
    if not wanted.quotes and not wanted.spoken:
        return
    with plan.storage.reading() as reader:
        sessions = reader.all(SessionRecord)
    parts = _parts(sessions, wanted.asked.values())
    echoed = _statements(plan.told)
    anywhere = wanted.quotes | Passages(_of_words(ECHO_WORDS, echoed))
    nearby = Passages(_of_words(SENTENCE_WORDS, echoed))
    for session in sessions:
        looked_for = anywhere | Passages(parts.get(session.name, ()))
        if session.name in plan.near:
            looked_for |= nearby
        with plan.storage.reading() as reader:
            said = reader.messages(session.name)
        if looked_for.spans(session.summary) or any(_cleaned(one, looked_for) != one for one in said):
            plan.sessions[session.name] = looked_for


def _parts(sessions: Sequence[SessionRecord], memories: Iterable[Memory]) -> dict[str, set[str]]:
    """Session → the sentences of memories that came from it, or from one of its family."""
    parts: dict[str, set[str]] = {}
    for memory in memories:
        if memory.source.session is not None:
            pieces = _of_words(SENTENCE_WORDS, text.sentences(memory.content))
            for name in _family(sessions, memory.source.session):
                parts.setdefault(name, set()).update(pieces)
    return parts


def _of_words(least: int, sentences: Iterable[str]) -> list[str]:
    return [one for one in sentences if count_words(one) >= least]


def _cleaned(message: Message, quotes: Passages | Buried) -> Message:
    return replace(
        message,
        content=quotes.erase(message.content),
        name=None if message.name is None else quotes.erase(message.name),
        speaker=None if message.speaker is None else quotes.erase(message.speaker),
        input=None if message.input is None else quotes.erase_in(message.input),
    )


# Doing it


def _write(context: Context, plan: ErasePlan, wanted: Wanted, stamp: Stamp) -> None:
    if n_receipts := len(_receipts_to_go(plan.storage, wanted)):
        plan.found["receipts"] += n_receipts
    memories = list(plan.memories.values())
    size = max(1, len(memories)) if plan.storage.space == GLOBAL else BATCH  # a person agrees to all, or to none
    for start in range(0, len(memories), size):
        batch = memories[start : start + size]

        def erase_batch(tx: Transaction, batch: Memories = batch) -> None:
            _erase_memories(batch, tx)
            _note_files(context, tx, plan)

        with _telling(start):
            context.write(plan.storage, erase_batch, stamp=stamp, urgent=True)
    plan.found["memories"] += len(memories)

    def rest(tx: Transaction) -> None:
        tx.bury(wanted.buried)
        _note_files(context, tx, plan)
        for quoting in plan.quoting.values():
            _rewrite_memory(tx, quoting)
        if plan.is_talk:
            _erase_talk(tx, plan, wanted.spoken)
        _erase_tasks(tx, plan)
        for alias in plan.aliases.values():
            tx.erase(alias if alias.id else tx.add(alias, "alias"))
        if plan.storage.space != GLOBAL:
            tx.bury([ANYTHING])
            tx.erase_receipts(None if wanted.traced is None else receipts_with(tx, *wanted.traced))

    with _telling(len(memories)):
        context.write(plan.storage, rest, stamp=stamp, urgent=True)


@contextmanager
def _telling(done: int) -> Iterator[None]:
    """Let an error say how many memories are erased already: the storage only knows that this step changed nothing."""
    try:
        yield
    except StorageError as error:
        if not done:
            raise
        raise type(error)(
            f"{error.message} {done} {'memory is' if done == 1 else 'memories are'} erased already; quotations of "
            f"them in other memories and in sessions are not.",
            hint="When the cause is gone, erase those by their own ids; `kept recall WORDS` finds them.",
        ) from error


def _erase_memories(memories: Memories, tx: Transaction) -> None:
    """Erase memories and their rejections: a keyed hash of each text is left."""
    for memory in memories:
        tx.erase(memory)
    gone = {memory.uid for memory in memories} | {memory.fingerprint for memory in memories}
    for rejection in tx.all(Rejection):
        if gone & {rejection.memory, rejection.fingerprint}:
            tx.erase(rejection)


def _erase_tasks(tx: Transaction, plan: ErasePlan) -> None:
    """Erase the tasks, and no longer let others wait for them."""
    for waiting in tx.all(TaskRecord):
        if waiting.name not in plan.tasks and set(waiting.blocked_by) & plan.tasks.keys():
            others = tuple(name for name in waiting.blocked_by if name not in plan.tasks)
            tx.put(replace(waiting, blocked_by=others), "task")
    for task in plan.tasks.values():
        tx.erase(task)
    plan.found["tasks"] += len(plan.tasks)


def _rewrite_memory(tx: Transaction, clean: Memory) -> None:
    """The memory keeps its ref, and what it said before is erased from its history."""
    current = as_it_is(tx, clean)
    tx.erase(current)
    fingerprint = text.fingerprint(clean.content)
    tx.add(
        replace(
            current,
            content=clean.content,
            title=clean.title,
            topic=clean.topic,
            tags=clean.tags,
            files=clean.files,
            data=clean.data,
            fingerprint=fingerprint,
            updated_at=tx.stamp.at,
        ),
        REDACT,
    )


def _erase_talk(tx: Transaction, plan: ErasePlan, spoken: Passages) -> None:
    names: list[str] = []
    for session in plan.whole:
        _erase_session(tx, plan, session, names)
    for session, ids in plan.messages.items():
        gone = [message for message in tx.messages(session) if message.id in ids]
        names += [name for message in gone for name in _marks(message)]
        plan.found["messages"] += tx.erase_messages(session, sorted(ids))
        summaries = [message for message in tx.messages(session) if message.role == "summary"]
        plan.found["quoting messages"] += _rewrite_messages(tx, summaries, spoken, names)
        _clean_record(tx, session, spoken)
    for session, quotes in plan.sessions.items():
        plan.found["quoting messages"] += _rewrite_messages(tx, tx.messages(session), quotes, names)
        _clean_record(tx, session, quotes)
    tx.bury(list(dict.fromkeys(names)))


def _erase_session(tx: Transaction, plan: ErasePlan, session: str, names: list[str]) -> None:
    """Erase a session with its messages; `names` gets the marks under which they are buried."""
    names += [_marks(message)[0] for message in tx.messages(session)]
    names += [name for message in _own_messages(tx, session) for name in _marks(message)]
    plan.found["messages"] += tx.erase_messages(session)
    plan.found["sessions"] += 1
    if (record := tx.session(session)) is not None:
        tx.erase(record)


def _rewrite_messages(tx: Transaction, messages: Sequence[Message], quotes: Passages, names: list[str]) -> int:
    """Put `[erased]` in the place of quotations; `names` gets the fingerprints of what was there."""
    changed = []
    for message in messages:
        if (clean := _cleaned(message, quotes)) != message:
            changed.append(clean)
            for said in _strings([message.content, message.name, message.speaker, message.input]):
                names += buried_names(said[start:end] for start, end in quotes.spans(said))
                names += [text.fingerprint(one) for one in text.sentences(said) if quotes.spans(one)]
    return tx.rewrite(changed)


def _strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, the keys of objects included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _strings(inner)


def _clean_record(tx: Transaction, name: str, quotes: Passages) -> None:
    """The summary of a session, in its record and in the history of that."""
    record = tx.session(name)
    if record is not None and quotes.spans(record.summary):
        tx.erase(record)
        tx.add(replace(record, summary=quotes.erase(record.summary)), REDACT)


def _marks(message: Message) -> list[str]:
    """The names under which an erased message is buried: by its id, and by what it said under another session's."""
    said = text.fingerprint(message.content)
    return [f"{message.session}#{message.id}#{message.role}", f"#{message.id}#{message.role}#{said}"]


def without_erased(reader: Reader, session: str, messages: Sequence[Message]) -> list[Message]:
    """Messages about to be imported, without those that were erased here, and without passages that were."""
    if not reader.is_erased(ANYTHING):
        return list(messages)
    kept = []
    gone, gone_of_summaries = Buried(reader.erased_among), Buried(reader.erased_among, ("", SAID))
    for message in messages:
        if not any(map(reader.is_erased, _marks(replace(message, session=session)))):
            message = _without_sentences(reader, message)
            kept.append(_cleaned(message, gone_of_summaries if message.role == "summary" else gone))
    return kept


def memory_without_erased(reader: Reader, memory: Memory) -> Memory:
    """A memory about to be merged, with `[erased]` in the place of passages that were erased here."""
    return _clean_memory(memory, Buried(reader.erased_among))


def tells_erased(reader: Reader, texts: Iterable[str]) -> bool:
    """Return True if one of the texts has a passage that was erased here."""
    buried = Buried(reader.erased_among)
    return any(buried.spans(one) for one in texts)


def _without_sentences(reader: Reader, message: Message) -> Message:
    """Blank the sentences of which a part was erased: their fingerprints are buried with it."""

    def blank(said: str) -> str:
        # Kept 0.2 buried a sentence at the beginning of a line without the marks in front of it: "./run" as "/run".
        forms = ((one, form) for one in text.sentences(said) for form in {one, one.lstrip(".!?")})
        names = {text.fingerprint(form): one for one, form in forms}
        for name in reader.erased_among(names):
            said = said.replace(names[name], ERASED)
        return said

    return replace(message, content=blank(message.content), input=in_strings(message.input, blank))


def _write_mirrors(context: Context, storage: Storage, sessions: Sequence[str], found: Counter[str]) -> None:
    """Write the files of the touched sessions again, also where `sessions_path` pointed to before."""
    now = context.spaces.sessions_folder()
    if now is None or storage.space == GLOBAL or not sessions:
        return
    with storage.reading() as reader:
        found["files"] += sum(rewrite_mirror(now, reader, name) for name in sessions)
    if now.is_dir():
        write_session_index(now, storage.reading)
    home = context.spaces.files_folder() or now
    earlier = [path for path in home.rglob("*.jsonl") if path.stem in sessions and path.parent != now]
    with storage.reading() as reader:
        found["files"] += sum(rewrite_mirror(path.parent, reader, path.stem) for path in earlier)


def _receipt(name: str, found: Counter[str], cleaning: Cleaning, hints: Sequence[str]) -> Receipt:
    """Say whether the files are clean, what was found where, and where a person has to look."""
    is_clean = all(one.is_done for one in cleaning.scrubbed)
    counts = dict(+found)
    lines = [*_state_lines(_sort_of(name), cleaning.unwritten, is_clean=is_clean)]
    if also := [f"{number} {_PLACES[place][number > 1]}" for place, number in counts.items() if place in _PLACES]:
        lines.append(f"It was also removed from {', '.join(also)}.")
    lines += hints
    if elsewhere := {path: None for one in cleaning.scrubbed for path in one.elsewhere}:
        lines.append(f"Backups that Kept cannot reach may still hold it: {', '.join(elsewhere)}.")
    reason = "erased" if is_clean and not cleaning.unwritten else "pending"
    return Receipt(outcome="stored", ref=name, reason=reason, message=" ".join(lines), found=counts)


def _state_lines(what: str, unwritten: Sequence[str], *, is_clean: bool) -> Iterator[str]:
    if not is_clean:
        yield f"{what} is erased, but another program still reads old pages, or the disk is full."
        yield "Cleanup is pending and will finish on the next open."
    elif unwritten:
        yield f"{what} is erased in the store, but not in every file beside it."
    else:
        yield f"{what} is erased."
    yield from unwritten


def _sort_of(name: str) -> str:
    """Name an erased thing in a sentence. Only the names of tasks and aliases begin with their noun."""
    for noun in (TaskRecord, Alias):
        if name.startswith(f"{noun.noun}:"):
            return f"{noun.noun.capitalize()} {name.partition(':')[2]}"
    is_memory = re.fullmatch(r"g?\d+", name) is not None
    return f"{'Memory' if is_memory else 'Message' if '#' in name else 'Session'} {name}"


_PLACES = {
    "copies": ("copy", "copies"),
    "quoting memories": ("memory that quoted it", "memories that quoted it"),
    "quoting messages": ("message that quoted it", "messages that quoted it"),
    "receipts": ("receipt of a question", "receipts of questions"),
    "backups": ("backup", "backups"),
}
