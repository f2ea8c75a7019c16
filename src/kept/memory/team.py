"""Team memory without a server (`memory.team`): shared memories in a git ref of the repository's own remote.

`share` marks a memory of the project, `push` writes marked ones to the ref, `pull` joins those of others
(`team_pull`). `exchange.team_files` has the form of a file, `projects.team_ref` the git commands. Rule: nothing leaves
unless a person has shared it, and each statement is searched for secrets once more before it does.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, NotFound, StorageError
from kept.exchange import joining, team_files
from kept.exchange.joining import MERGE
from kept.exchange.team_files import TeamChange
from kept.memory.context import SHARED, Context, Ref, by_uid
from kept.memory.team_pull import join_statements
from kept.memory.team_state import (
    AUTHORS,
    CLAIMED,
    SHARE,
    RefState,
    TeamExchange,
    TeamMember,
    accepted_authors,
    archiving_event,
    has_secret,
    is_shared,
    mark_shared,
    members_of,
    notes_of,
    own_ends,
    read_ref,
    told_fields,
    words_of,
)
from kept.memory.write import place
from kept.model import Event, Memory, replace
from kept.ports import Reader, Storage, Transaction
from kept.projects.team_ref import TeamRef

MOST_RACES = 8  # pushes that another push was faster than


class TeamStatus(Struct, frozen=True, kw_only=True):
    """State of team memory, as far as this clone knows it without asking the remote."""

    ref: str
    remote: str
    shared: list[str] = []  # refs of memories here that are shared
    to_push: int = 0
    waiting: int = 0  # changes of authors who are not accepted
    members: list[TeamMember] = []


def share(context: Context, refs: Sequence[Ref]) -> list[Memory]:
    """Mark memories for the next push. Raises InvalidInput for one that is not confirmed or not of this project."""
    context.readable()
    found = [context.find_live(ref) for ref in refs]
    for _, memory in found:
        _check_shareable(memory)
    storage = context.owned()
    if not context.is_person:
        context.agree(f"Share {len(found)} memories with all who can read the repository?", to="share memories")

    def work(tx: Transaction) -> list[Memory]:
        new_uid = place(storage, tx.stamp.at).new_uid
        return [_shared(tx, memory, new_uid) for _, memory in found]

    return context.write(storage, work)


def _shared(tx: Transaction, memory: Memory, new_uid: Callable[[], str]) -> Memory:
    """Mark a memory as shared. One that was taken back before is shared under a new name: taking back is final."""
    if is_shared(tx, memory.uid):
        return memory
    earlier = [event.group for event in tx.events(subject=memory.uid) if event.action == SHARE]
    if earlier and f"{SHARED}{memory.uid}" in tx.file_notes(SHARED):  # the end of sharing was not sent yet
        tx.note_file(f"{SHARED}{memory.uid}", earlier[-1])
        return memory
    if earlier:
        copy = replace(memory, id=0, uid=new_uid(), key=None, feedback=0, use_count=0)
        tx.put(memory.archived("superseded", tx.stamp.at, superseded_by=copy.uid), "unshare")
        memory = tx.add(replace(copy, updated_at=tx.stamp.at), MERGE)
    mark_shared(tx, memory)
    return memory


def _check_shareable(memory: Memory) -> None:
    if memory.tier != "project" or memory.scope != "memory":
        raise InvalidInput(
            f"Memory {memory.ref} is not a memory of this project (tier {memory.tier}).",
            hint="Only confirmed memories of the project are shared; global memory stays with you.",
        )
    if team_files.uid_of(f"{memory.uid}.json") is None:
        raise InvalidInput(
            f"Memory {memory.ref} has a name that no file can have.", hint="Store it as a new memory, and share that."
        )
    if memory.status == "candidate":
        raise InvalidInput(
            f"Memory {memory.ref} is a candidate.", hint="Confirm it first: `kept review`, or `kept pin` it."
        )


def unshare(context: Context, refs: Sequence[Ref]) -> list[Memory]:
    """Take memories back from the team with the next push; here they stay."""
    found = [context.find(ref) for ref in refs]
    storage = context.owned()

    def work(tx: Transaction) -> None:
        for _, memory in found:
            _check_shared_here(tx, memory)
            tx.put(memory, "unshare")
            tx.note_file(f"{SHARED}{memory.uid}", f"-{tx.stamp.group}")

    context.write(storage, work)
    return [memory for _, memory in found]


def _check_shared_here(reader: Reader, memory: Memory) -> None:
    if not is_shared(reader, memory.uid):
        raise InvalidInput(f"Memory {memory.ref} is not shared.", hint="`kept team status` lists shared ones.")
    begun = [event.actor for event in reader.events(subject=memory.uid) if event.action == SHARE]
    if begun and begun[0].endswith(CLAIMED):
        raise InvalidInput(
            f"Memory {memory.ref} was shared by {begun[0].removesuffix(CLAIMED)}, who can unshare it.",
            hint=f"`kept forget {memory.ref}` and a push take it back for all.",
        )


def trust(context: Context, author: str, *, remove: bool = False) -> TeamMember:
    """Accept an author of the ref as a teammate, or end that. Raises NotFound for an author who is not in the ref."""
    ref, storage = _ref(context, None), context.owned()
    known = {one.author: one for one in members_of(storage, read_ref(ref, ref.tip()))}
    key = author.strip().casefold()
    if remove and key in accepted_authors(storage):  # also if the ref was rewritten without them
        known.setdefault(key, TeamMember(author=key, name=key, changes=0, is_accepted=True))
    if key not in known:
        raise NotFound(f"No statement in {ref.name} is by that author.", hint="`kept team status` lists the authors.")
    member = known[key]
    if not remove:
        context.agree(
            f"Accept {member.name} as a teammate? Statements under this name are told to your agents, and may change "
            "shared ones. Everybody who can push to the repository can use the name.",
            to="accept a teammate",
        )
    accepted = accepted_authors(storage) - {key} | (set() if remove else {key})
    with storage.writing(context.stamp()) as tx:
        tx.note_file(AUTHORS, msgspec.json.encode(sorted(accepted)).decode() if accepted else None)
    join_statements(context, read_ref(ref, ref.tip()), TeamExchange(ref=ref.name, remote=ref.remote))
    return replace(member, is_accepted=not remove)


def _ref(context: Context, remote: str | None) -> TeamRef:
    tree = context.work_tree
    if tree is None:
        raise InvalidInput(
            "Team memory is kept in a git repository, and this project is none.",
            hint="Run it in a clone, or use a database: docs/teams.md.",
        )
    return TeamRef(tree.root, remote)


def pull(context: Context, remote: str | None) -> TeamExchange:
    """Fetch the ref, and join the statements of teammates with the project."""
    ref = _ref(context, remote)
    done = TeamExchange(ref=ref.name, remote=ref.remote)
    context.owned()
    join_statements(context, read_ref(ref, ref.fetch()), done)
    return done


def push(context: Context, remote: str | None) -> TeamExchange:
    """Pull, then write the shared memories to the ref. Raises StorageError if the remote does not take them."""
    ref, storage = _ref(context, remote), context.owned()
    if not context.is_person:
        context.agree(f"Send the shared memories to {ref.remote}?", to="send memories off this machine")
    for _ in range(MOST_RACES):
        done = TeamExchange(ref=ref.name, remote=ref.remote)
        tip = ref.fetch()
        state = read_ref(ref, tip)
        join_statements(context, state, done)
        files = _to_push(context, storage, state, done)
        if not files:
            return done
        commit = ref.commit(tip, {f"{uid}.json": data for uid, data in files.items()}, _message(len(files)))
        if ref.push(commit, tip):
            _forget_withdrawn(context, storage, files)
            return done
    raise StorageError(
        f"Others pushed to {ref.name} {MOST_RACES} times in the meantime.", hint="Run `kept team push` again."
    )


def _message(number: int) -> str:
    return f"Kept: {number} {'memory' if number == 1 else 'memories'}"


def _to_push(context: Context, storage: Storage, state: RefState, done: TeamExchange) -> dict[str, bytes]:
    """Return the files that become different, by uid. One with a secret stays here, and the result says so."""
    rules, accepted = context.rules(), accepted_authors(storage)
    files: dict[str, bytes] = {}
    with storage.reading() as reader:
        for uid, note in notes_of(reader).items():
            memory = by_uid(reader, uid)
            at_tip = _at_tip(state, uid, accepted, reader)
            new = _news(memory, reader.events(subject=uid), note, at_tip)
            if not new:
                continue
            name = uid if memory is None else memory.ref
            if any(has_secret(word, rules) for one in new for word in words_of(one)):
                done.notes.append(
                    f"{name} has a value that looks like a secret, and was not sent. See `kept secrets scan`."
                )
                continue
            data = team_files.write(uid, [*at_tip, *new])
            if uid in state.files and data == team_files.write(uid, state.files[uid]):
                continue
            if team_files.read(data, uid) is None:
                done.notes.append(f"{name} has too many versions to be sent. Store it as a new memory, and share that.")
                continue
            files[uid] = data
            done.pushed.append(name)
    return files


def _at_tip(state: RefState, uid: str, accepted: Collection[str], reader: Reader) -> list[TeamChange]:
    """Return the changes of a file at the tip, but for its end by an author who is not accepted here."""
    own = own_ends(reader.events(subject=uid))
    counting = {one.change.group for one in state.statements.get(uid, ()) if one.author.key in accepted} | own
    return [one for one in state.files.get(uid, ()) if not one.takes_back or one.group in counting]


def _news(memory: Memory | None, events: list[Event], note: str, at_tip: Sequence[TeamChange]) -> list[TeamChange]:
    """Return the changes that were made here and are not in the ref."""
    ended, action = _end_here(memory, events, note)
    if ended:
        return _withdrawal(action, ended[0], events, at_tip)
    if memory is None or memory.is_forgotten or memory.is_low_trust or memory.status == "candidate":
        return []
    return [] if _is_undone(events, note) else _new_changes(memory, events, note, {one.group for one in at_tip})


def _end_here(memory: Memory | None, events: list[Event], note: str) -> tuple[list[Event], str]:
    """Return the events that ended a statement here, and the action that tells others."""
    if memory is None:  # without such an event it has never come
        return [event for event in events if event.action == "erase"], "forget"
    if note.startswith("-"):
        return [event for event in events if event.group == note[1:]], "unshare"
    ended = archiving_event(events) if memory.reason in ("forgotten", "rejected") else None
    return [ended] if ended is not None and ended.action not in (MERGE, "undo") else [], "forget"


def _new_changes(memory: Memory, events: list[Event], group: str, known: Collection[str]) -> list[TeamChange]:
    """Return the sharing of a memory and its revisions since, but for those that are known."""
    begun = next((event for event in events if event.group == group), None)
    if begun is None:
        return []
    later = [event for event in joining.carried(events) if event.seq > begun.seq and event.group != group]
    sharing = [] if group in known else [_sharing(memory, begun)]
    return [*sharing, *_revisions(event for event in later if event.group not in known)]


def _withdrawal(action: Any, ended: Event, events: Sequence[Event], at_tip: Sequence[TeamChange]) -> list[TeamChange]:
    """Return the change that takes a statement back; [] if it is not in the ref, or was taken back before.

    It names the changes of the ref that were here by then: their authors keep all others.
    """
    standing = team_files.standing(at_tip)
    known = {event.group for event in events if event.seq < ended.seq}
    seen = tuple(one.group for one in standing if one.group in known)
    return [TeamChange(group=ended.group, at=ended.at, action=action, seen=seen)] if standing else []


def _is_undone(events: Iterable[Event], group: str) -> bool:
    return any(event.undoes == group for event in events)


def _sharing(memory: Memory, begun: Event) -> TeamChange:
    return TeamChange(
        group=begun.group,
        at=begun.at,
        action="share",
        content=memory.content,
        kind=memory.kind,
        tags=memory.tags,
        files=memory.files,
        importance=memory.importance,
        created_at=memory.created_at,
    )


def _revisions(events: Iterable[Event]) -> list[TeamChange]:
    """Return a change for each group of events that has something to tell."""
    told: dict[str, dict[str, Any]] = {}
    for event in events:
        if fields := told_fields(event):
            lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
            told.setdefault(event.group, {"at": event.at}).update(fields | lists)
    return [TeamChange(group=group, action="revise", **one) for group, one in told.items()]


def _forget_withdrawn(context: Context, storage: Storage, files: Collection[str]) -> None:
    """Drop the notes of statements that were taken back by this push."""
    with storage.writing(context.stamp()) as tx:
        for uid, note in notes_of(tx).items():
            memory = by_uid(tx, uid)
            if uid in files and (note.startswith("-") or memory is None or memory.is_forgotten):
                tx.note_file(f"{SHARED}{uid}", None)


def status(context: Context, remote: str | None) -> TeamStatus:
    """Return the state of team memory. The remote is not asked."""
    ref, storage = _ref(context, remote), context.readable_tier("project")
    if storage is None:
        return TeamStatus(ref=ref.name, remote=ref.remote)
    state, accepted = read_ref(ref, ref.tip()), accepted_authors(storage)
    with storage.reading() as reader:
        notes = notes_of(reader)
        mine = {uid: by_uid(reader, uid) for uid in notes}
        to_push = sum(
            bool(_news(memory, reader.events(subject=uid), notes[uid], _at_tip(state, uid, accepted, reader)))
            for uid, memory in mine.items()
        )
    shared = [one.ref for uid, one in mine.items() if one is not None and not notes[uid].startswith("-")]
    members = members_of(storage, state)
    return TeamStatus(
        ref=ref.name,
        remote=ref.remote,
        shared=shared,
        to_push=to_push,
        waiting=sum(one.changes for one in members if not one.is_accepted),
        members=members,
    )
