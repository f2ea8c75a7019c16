"""Read a store as a stream of pieces: from an export, the file of a store, another home, or the opened memory.

A piece is one record with its history, or messages of a session (`exchange.portable`). `transfer` writes a stream to a
file, `joiner` joins it with another store. Rule: a record comes after those that it refers to, and a file is read once
as a whole before anything is taken from it.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from msgspec import Struct

from kept.errors import InvalidInput, NotFound
from kept.exchange import portable
from kept.exchange.portable import Piece, piece_of
from kept.memory.context import Context
from kept.model import SMALL_NOUNS, Allowance, Conflict, Memory, Record, Rejection, SessionRecord, replace
from kept.ports import ANYWHERE, Reader, Storage
from kept.projects import Projects
from kept.projects.files import explained, read_regular, shown
from kept.projects.home import Home
from kept.storage import open_space, space_of
from kept.storage.shared import every

EVENT_PAGE = 1000


class Bundle(Struct, frozen=True, kw_only=True):
    """Where pieces come from: a name for messages, how many pieces, of which spaces, and the pieces themselves."""

    name: str
    total: int
    spaces: frozenset[str]
    has_allowances: bool
    pieces: Callable[[], Iterator[Piece]]


# ---- a store as pieces ----


def pieces_of(storage: Storage, *, with_forgotten: bool) -> Iterator[Piece]:
    """Every record of a space as of one moment. A record comes after those that it refers to."""
    space = storage.space
    with storage.reading() as reader:
        for noun in (noun for noun in SMALL_NOUNS if noun not in (Conflict, SessionRecord)):
            yield from (_told(space, record, reader, with_forgotten=with_forgotten) for record in reader.all(noun))
        yield from _removed(space, reader, with_forgotten=with_forgotten)
        for session in parents_first(reader.all(SessionRecord)):
            yield _told(space, session, reader)
            yield from message_pieces(space, session, reader)
        yield from _memories(space, reader, with_forgotten=with_forgotten)


def _memories(space: str, reader: Reader, *, with_forgotten: bool) -> Iterator[Piece]:
    """The memories, and the conflicts between them."""
    left_out = set()
    for memory in every(reader, ANYWHERE):
        if memory.is_forgotten and not with_forgotten:
            left_out.add(memory.uid)
        else:
            yield _told(space, memory, reader)
    for conflict in reader.all(Conflict):
        if not left_out & {conflict.left, conflict.right}:
            yield piece_of(space, conflict)


def _told(space: str, record: Record, reader: Reader, *, with_forgotten: bool = True) -> Piece:
    """Return the piece of a record. In an export without forgotten memories, a rejection is only a fingerprint."""
    if isinstance(record, Rejection) and not with_forgotten:
        return piece_of(space, replace(record, words=()))
    return piece_of(space, record, reader.events(subject=record.subject))


def _removed(space: str, reader: Reader, *, with_forgotten: bool) -> Iterator[Piece]:
    """Small records that are gone, such as a pause that has ended: what their history says still counts."""
    nouns: dict[str, type[Record]] = {noun.noun: noun for noun in SMALL_NOUNS if noun is not Conflict}
    if not with_forgotten:
        del nouns[Rejection.noun]
    here = {record.subject for noun in nouns.values() for record in reader.all(noun)}
    for subject in _subjects(reader):
        noun = nouns.get(subject.partition(":")[0]) if ":" in subject else None
        if noun is not None and subject not in here:
            here.add(subject)
            yield Piece(space=space, noun=noun, subject=subject, history=tuple(reader.events(subject=subject)))


def _subjects(reader: Reader) -> Iterator[str]:
    """The subjects of the journal, page by page; one may come again."""
    after = 0
    while page := reader.events(after=after, limit=EVENT_PAGE):
        after = page[-1].seq
        yield from dict.fromkeys(event.subject for event in page)


def message_pieces(space: str, session: SessionRecord, reader: Reader) -> Iterator[Piece]:
    """The messages of a session, without those that a fork shares with its parent: they are stored there."""
    after = session.shared
    while page := reader.messages(session.name, after=after, limit=portable.MESSAGES_PER_LINE):
        after = page[-1].n
        yield Piece(space=space, session=session.name, messages=tuple(page))


def parents_first(sessions: list[SessionRecord]) -> list[SessionRecord]:
    """The sessions in an order in which a fork comes after its parent."""
    names = {session.name: session for session in sessions}

    def depth(session: SessionRecord) -> int:
        seen = {session.name}
        while session.parent in names and session.parent not in seen:
            seen.add(session.parent)
            session = names[session.parent]
        return len(seen)

    return sorted(sessions, key=depth)


def in_batches(stream: Iterable[Piece], size: int) -> Iterator[list[Piece]]:
    """Pieces of one space in batches; a session stays with its messages."""
    batch: list[Piece] = []
    for piece in stream:
        is_full = len(batch) >= size and piece.noun is not None
        if batch and (is_full or piece.space != batch[0].space):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


# ---- where pieces come from ----


def own_pieces(context: Context, *, with_forgotten: bool) -> Iterator[Piece]:
    """Every record of the readable spaces, the project's first."""
    for storage in context.readable():
        n_chars = 0
        for piece in pieces_of(storage, with_forgotten=with_forgotten):
            n_chars += len(piece.record.content) if isinstance(piece.record, Memory) else 0
            yield piece
        context.signals.tell_read("memory", [(storage.space, n_chars)])


@contextmanager
def from_anywhere(context: Context, other: Path) -> Iterator[Bundle]:
    """An export, the file of a store, or another home: there the project of the same id or name, and global memory.

    Raises NotFound and InvalidInput.
    """
    with explained("read", other, hint="Check its permissions."):
        if not other.exists():
            raise NotFound(f"{shown(other)} does not exist.", hint="Give an export, a memory file, or another home.")
        if other.is_file() and portable.is_export(read_regular(other, 64)):
            yield _from_file(other)
            return
    files = _stores_in_home(context, other) if other.is_dir() else [other]
    with ExitStack() as stack:
        yield _from_storages(shown(other), [stack.enter_context(closing(_opened(context, file))) for file in files])


def _from_file(path: Path) -> Bundle:
    """An export. Raises InvalidInput."""
    name = shown(path)

    def read() -> Iterator[Piece]:
        with explained("read the export", path, hint="Check its permissions."), path.open("rb") as lines:
            yield from portable.read(lines, name)

    return _surveyed(name, read)


def _from_storages(name: str, storages: list[Storage]) -> Bundle:
    """The spaces of another home, or a single file."""

    def read() -> Iterator[Piece]:
        for storage in storages:
            yield from pieces_of(storage, with_forgotten=True)

    return _surveyed(name, read)


def _surveyed(name: str, read: Callable[[], Iterator[Piece]]) -> Bundle:
    total, has_allowances, spaces = 0, False, set()
    for piece in read():
        total += 1
        spaces.add(piece.space)
        has_allowances = has_allowances or piece.noun is Allowance
    return Bundle(name=name, total=total, spaces=frozenset(spaces), has_allowances=has_allowances, pieces=read)


def _stores_in_home(context: Context, other: Path) -> list[Path]:
    projects = Projects(Home(other), environ=os.environ)
    own = context.spaces.project()
    wanted = {context.spaces.project_name(), own.space.removeprefix("project/") if own is not None else None} - {None}
    same = [one for one in projects.list_projects() if wanted & {one.id, one.name}]
    files = [projects.home.files(one.folder).database for one in same[:1]] + [projects.home.files().database]
    found = [file for file in files if file.exists()]
    if not found:
        names = ", ".join(one.name for one in projects.list_projects()[:10]) or "none at all"
        raise NotFound(
            f"{shown(other)} has no project {context.spaces.project_name()!r} and no global memory.",
            hint=f"Its projects: {names}. Open the one to join with --project NAME.",
        )
    return found


def _opened(context: Context, file: Path) -> Storage:
    own = [path.resolve() for _, path in context.spaces.files()]
    if file.resolve() in own:
        raise InvalidInput(f"{shown(file)} is the store that is open here.", hint="Name the other one.")
    space = [] if file.suffix == ".json" else [space_of(file)]
    return open_space(file, *space, write_wait_s=context.settings.write_wait_s, now=context.clock)
