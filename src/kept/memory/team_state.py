"""Team memory as it is known here: the shared memories, the accepted authors, and the statements of the ref.

`team` has the verbs, `team_pull` joins the statements of others. Notes in the store say which memories are shared
(`SHARED`) and which authors a person has accepted. Rule: the author of a change is the author of the commit that first
brought exactly this change, so rewriting the words of another person makes them the words of the one who did.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from kept.exchange import team_files
from kept.exchange.team_files import FIELDS, TeamChange
from kept.memory.context import SHARED
from kept.model import Event, Memory
from kept.ports import Reader, Storage, Transaction
from kept.projects.team_ref import Author, FileVersion, TeamRef, TreeFile
from kept.writing.pipeline import WriteRules
from kept.writing.redact import redact

AUTHORS = "team/authors"  # the note of the authors that a person has accepted
SHARE = "share"
NO_AUTHOR = Author("", "")
CLAIMED = " (team)"  # ends the name of an author in the journal, so that it never is the name of a person here


class TeamMember(Struct, frozen=True, kw_only=True):
    """An author in the ref: how many changes there are of theirs, and whether a person has accepted them."""

    author: str
    name: str
    changes: int
    is_accepted: bool


class TeamExchange(Struct, kw_only=True):
    """Result of a push or a pull."""

    ref: str
    remote: str
    pushed: list[str] = []  # refs whose statements, or their end, were sent
    added: int = 0
    changed: int = 0
    removed: list[str] = []  # refs that others have taken back
    known: int = 0
    conflicts: int = 0
    waiting: int = 0
    unaccepted: list[str] = []  # authors to accept, or not
    refused: dict[str, int] = {}
    notes: list[str] = []


class Claimed(NamedTuple):
    """A change, and the author of the commit that brought it."""

    change: TeamChange
    author: Author


class RefState(NamedTuple):
    """Statements of the ref by uid, and how many files could not be used, by reason."""

    statements: Mapping[str, Sequence[Claimed]]
    files: Mapping[str, Sequence[TeamChange]]  # at the tip, as they stand there
    refused: dict[str, int]


def read_ref(ref: TeamRef, tip: str | None) -> RefState:
    """Read every version of every file at a commit, to find the author of each change."""
    if tip is None:
        return RefState({}, {}, {})
    versions = [one for one in ref.versions(tip) if team_files.uid_of(one.name)]
    tree = ref.tree(tip)
    data = ref.contents([*(one.blob for one in versions), *(one.blob for one in tree)], team_files.MAX_FILE_BYTES)
    authors, ends = _origins(versions, data)
    files, unreadable = _files_at_tip(tree, data)
    statements = {
        uid: [
            Claimed(change, authors.get((uid, team_files.identity(change)), NO_AUTHOR))
            for change in team_files.ordered((*changes, *ends.get(uid, ())))
        ]
        for uid, changes in files.items()
    }
    return RefState(statements, files, {"unreadable": unreadable} if unreadable else {})


def _origins(
    versions: Iterable[FileVersion], data: Mapping[str, bytes]
) -> tuple[dict[tuple[str, bytes], Author], dict[str, list[TeamChange]]]:
    """Return the author of each change, and the ends of statements: these stay if a later commit leaves them out."""
    authors: dict[tuple[str, bytes], Author] = {}
    ends: dict[str, list[TeamChange]] = {}
    for one in versions:
        uid = team_files.uid_of(one.name) or ""
        for change in _changes(data.get(one.blob), uid) or ():
            authors.setdefault((uid, team_files.identity(change)), one.author)
            if change.takes_back:
                ends.setdefault(uid, []).append(change)
    return authors, ends


def _files_at_tip(tree: Sequence[TreeFile], data: Mapping[str, bytes]) -> tuple[dict[str, Sequence[TeamChange]], int]:
    """Return the changes in each file by uid, and how many files cannot be read."""
    files: dict[str, Sequence[TeamChange]] = {}
    for entry in tree:
        uid = team_files.uid_of(entry.name.decode("utf-8", "replace"))
        changes = _changes(data.get(entry.blob), uid) if uid and entry.mode == "100644" else None
        if uid and changes is not None:
            files[uid] = changes
    return files, len(tree) - len(files)


def _changes(data: bytes | None, uid: str) -> Sequence[TeamChange] | None:
    found = None if data is None else team_files.read(data, uid)
    return None if found is None else found.changes


def members_of(storage: Storage, state: RefState) -> list[TeamMember]:
    """Return the authors of changes that were not made here."""
    by_author: dict[str, list[Author]] = {}
    accepted = accepted_authors(storage)
    with storage.reading() as reader:
        for uid, claims in state.statements.items():
            own = own_groups(reader, uid)
            for claim in (one for one in claims if one.change.group not in own):
                by_author.setdefault(claim.author.key, []).append(claim.author)
    return [
        TeamMember(author=key, name=str(said[0]), changes=len(said), is_accepted=key in accepted)
        for key, said in sorted(by_author.items())
        if key
    ]


def own_groups(reader: Reader, uid: str) -> set[str]:
    """Return the changes of a memory that were made in this store, and did not come from the ref."""
    return {event.group for event in reader.events(subject=uid) if not event.actor.endswith(CLAIMED)}


def accepted_authors(storage: Storage) -> set[str]:
    with storage.reading() as reader:
        return set(msgspec.json.decode(reader.file_notes(AUTHORS).get(AUTHORS) or "[]"))


def notes_of(reader: Reader) -> dict[str, str]:
    """Return uid → the change that shared it; with a dash, the change that is to take it back."""
    return {name.removeprefix(SHARED): note for name, note in reader.file_notes(SHARED).items()}


def is_shared(reader: Reader, uid: str) -> bool:
    note = reader.file_notes(f"{SHARED}{uid}").get(f"{SHARED}{uid}", "-")
    return not note.startswith("-")


def mark_shared(tx: Transaction, memory: Memory) -> None:
    tx.put(memory, SHARE)
    tx.note_file(f"{SHARED}{memory.uid}", tx.stamp.group)


def words_of(change: TeamChange) -> list[str]:
    return [change.content or "", change.kind or "", *(change.tags or ()), *(change.files or ())]


def has_secret(said: str, rules: WriteRules) -> bool:
    return bool(redact(said, email=rules.redact_email, allow=rules.allow).found)


def archiving_event(events: Sequence[Event]) -> Event | None:
    """Return the event that archived the memory last."""
    ends = [event for event in events if (event.changed or {}).get("status", (None, None))[1] == "archived"]
    return ends[-1] if ends else None


def told_fields(event: Event) -> dict[str, Any]:
    """Return the fields of an event that travel, with their new values."""
    return {name: after for name, (_, after) in (event.changed or {}).items() if name in FIELDS and after is not None}
