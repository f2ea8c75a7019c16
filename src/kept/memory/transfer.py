"""Take a whole store along, and join it with another: Kept's own export, its import, and `kept merge`.

`pieces` reads every record of a store with its history, `join` brings such pieces into the opened memory; both ways a
piece may come from a file (`exchange.portable`) or from another store. `exchange.joining` says what two versions of one
record become. Rule: a batch is one transaction, and what was brought before is known again, so an import that was cut
short is simply run again. Texts are redacted on the way in, what was erased here stays erased, and an agent cannot
bring words in the name of a person.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from msgspec import Struct

from kept.errors import InvalidInput, NotAllowed, NotFound
from kept.exchange import portable
from kept.exchange.exporters import EXPORTERS as EXPORTERS
from kept.exchange.exporters import FOLDERS
from kept.exchange.portable import Piece
from kept.memory.context import Context
from kept.memory.joiner import BATCH, Joined, Joiner
from kept.model import GLOBAL, SMALL_NOUNS, Alias, Allowance, Conflict, Memory, Record, Session
from kept.ports import ANYWHERE, LIVE, Reader, Storage
from kept.projects.files import explained, read_regular, shown
from kept.storage import open_space, space_of
from kept.storage.shared import every, random_hex

EVENT_PAGE = 1000
Progress = Callable[[int, int], None]


class Exported(Struct, frozen=True, kw_only=True):
    """What was written to a file."""

    path: str
    format: str
    memories: int
    records: int


class Bundle(Struct, frozen=True, kw_only=True):
    """Where pieces come from: a name for messages, how many pieces, of which spaces, and the pieces themselves."""

    name: str
    total: int
    spaces: frozenset[str]
    has_allowances: bool
    pieces: Callable[[], Iterator[Piece]]


# ---- out ----


def pieces(context: Context, *, with_forgotten: bool) -> Iterator[Piece]:
    """Every record of the readable spaces, the project's first."""
    for storage in context.readable():
        n_chars = 0
        for piece in pieces_of(storage, with_forgotten=with_forgotten):
            n_chars += len(piece.record.content) if isinstance(piece.record, Memory) else 0
            yield piece
        context.signals.tell_read("memory", [(storage.space, n_chars)])


def pieces_of(storage: Storage, *, with_forgotten: bool) -> Iterator[Piece]:
    """Every record of a space as of one moment. What others refer to comes before them."""
    space, left_out = storage.space, set()
    with storage.reading() as reader:
        for noun in (noun for noun in SMALL_NOUNS if noun not in (Conflict, Session)):
            for record in reader.all(noun):
                yield _piece(space, record, reader)
        yield from _removed(space, reader)
        for session in _parents_first(reader.all(Session)):
            yield _piece(space, session, reader)
            yield from _messages(space, session, reader)
        for memory in every(reader, ANYWHERE):
            if memory.is_forgotten and not with_forgotten:
                left_out.add(memory.uid)
            else:
                yield _piece(space, memory, reader)
        for conflict in reader.all(Conflict):
            if not left_out & {conflict.left, conflict.right}:
                yield _piece(space, conflict, reader)


def _piece(space: str, record: Record, reader: Reader) -> Piece:
    noun, subject = type(record), record.subject
    history = () if noun is Conflict else tuple(reader.events(subject=subject))
    return Piece(space=space, noun=noun, subject=subject, record=record, history=history)


def _removed(space: str, reader: Reader) -> Iterator[Piece]:
    """Small records that are gone, such as a pause that has ended: what their history says still counts."""
    nouns: dict[str, type[Record]] = {noun.noun: noun for noun in SMALL_NOUNS if noun is not Conflict}
    here = {record.subject for noun in nouns.values() for record in reader.all(noun)}
    after = 0
    while page := reader.events(after=after, limit=EVENT_PAGE):
        after = page[-1].seq
        for subject in dict.fromkeys(event.subject for event in page):
            noun = nouns.get(subject.partition(":")[0]) if ":" in subject else None
            if noun is not None and subject not in here:
                here.add(subject)
                yield Piece(space=space, noun=noun, subject=subject, history=tuple(reader.events(subject=subject)))


def _messages(space: str, session: Session, reader: Reader) -> Iterator[Piece]:
    after = session.shared  # what a fork shares with its parent is stored there
    while page := reader.messages(session.name, after=after, limit=portable.MESSAGES_PER_LINE):
        after = page[-1].n
        yield Piece(space=space, session=session.name, messages=tuple(page))


def _parents_first(sessions: list[Session]) -> list[Session]:
    names = {session.name: session for session in sessions}

    def depth(session: Session) -> int:
        seen = {session.name}
        while session.parent in names and session.parent not in seen:
            seen.add(session.parent)
            session = names[session.parent]
        return len(seen)

    return sorted(sessions, key=depth)


def export_to(context: Context, target: Path, *, with_forgotten: bool) -> Exported:
    """Write an export, whole or not at all."""
    counts: Counter[str] = Counter()

    def counted() -> Iterator[bytes]:
        for line in export_lines(context, with_forgotten=with_forgotten):
            counts["memory"] += line.startswith(b'{"noun":"memory"')
            counts["all"] += line.startswith(b'{"noun":')
            yield line

    write_lines(target, counted())
    return Exported(path=str(target), format="kept", memories=counts["memory"], records=counts["all"])


def export_as(context: Context, target: Path, format: str) -> Exported:
    """Write the live memories, of the project and global ones, in the format of another program."""
    memories: list[Memory] = []
    conflicts: list[Conflict] = []
    aliases: list[Alias] = []
    for reader in context.readers():
        memories += [memory for memory in every(reader, LIVE) if memory.tier in ("project", "global")]
        conflicts += reader.all(Conflict)
        aliases += reader.all(Alias)
    context.tell_read(memories)
    files = EXPORTERS[format](memories, conflicts, aliases)
    with explained("write", target, hint="Check its permissions, or name another place."):
        if format in FOLDERS:
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise InvalidInput(f"{shown(target)} exists and is not an empty folder.", hint="Name a new folder.")
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files:
            file = target / name if format in FOLDERS else target
            write_lines(file, [content.removesuffix("\n").encode("utf-8", "replace")])
    return Exported(path=str(target), format=format, memories=len(memories), records=len(memories))


def export_lines(context: Context, *, with_forgotten: bool) -> Iterator[bytes]:
    """The lines of an export, without their newlines."""
    import kept

    yield from portable.lines(
        pieces(context, with_forgotten=with_forgotten), version=kept.__version__, at=context.now()
    )


def write_lines(target: Path, lines: Iterable[bytes]) -> None:
    """Write lines to a file that only its owner may read; it appears, or is replaced, when it is complete."""
    with explained("write", target, hint="Check its permissions, or name another file."):
        draft = target.with_name(f".{target.name[:100]}.{random_hex(4)}.tmp")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for line in lines:
                    file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


# ---- where pieces come from ----


def from_file(path: Path) -> Bundle:
    """An export. It is read once as a whole first: nothing is imported from half a file. Raises InvalidInput."""
    name = shown(path)

    def read() -> Iterator[Piece]:
        with explained("read the export", path, hint="Check its permissions."), path.open("rb") as lines:
            yield from portable.read(lines, name)

    return _surveyed(name, read)


@contextmanager
def from_anywhere(context: Context, other: Path) -> Iterator[Bundle]:
    """An export, the file of a store, or another home: there the project of the same id or name, and global memory.

    Raises NotFound and InvalidInput.
    """
    with explained("read", other, hint="Check its permissions."):
        if not other.exists():
            raise NotFound(f"{shown(other)} does not exist.", hint="Give an export, a memory file, or another home.")
        if other.is_file() and portable.is_export(read_regular(other, 64)):
            yield from_file(other)
            return
    files = _stores_in_home(context, other) if other.is_dir() else [other]
    with ExitStack() as stack:
        yield from_storages(shown(other), [stack.enter_context(closing(_opened(context, file))) for file in files])


def _stores_in_home(context: Context, other: Path) -> list[Path]:
    from kept.projects import Projects
    from kept.projects.home import Home

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
    if file.suffix != ".json":
        return open_space(file, space_of(file), write_wait_s=context.settings.write_wait_s, now=context.clock)
    return open_space(file, write_wait_s=context.settings.write_wait_s, now=context.clock)


def from_storages(name: str, storages: list[Storage]) -> Bundle:
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


# ---- in ----


def join(context: Context, source: Bundle, *, dry_run: bool = False, progress: Progress | None = None) -> Joined:
    """Bring the pieces into the opened project, and those of global memory into global memory."""
    done = Joined(others={}, refused={}, dry_run=dry_run)
    if GLOBAL in source.spaces and not dry_run:
        question = f"Join the memories for all projects in {source.name} with your global memory?"
        context.agree_for_all(question, to="change global memory")
    may_allow = source.has_allowances and not dry_run and _may_allow(context, source.name)
    number = 0
    joiners: dict[bool, Joiner] = {}
    for batch in _batches(source.pieces()):
        is_global = batch[0].space == GLOBAL
        if is_global not in joiners:
            storage = _target(context, shared=is_global, dry_run=dry_run)
            joiners[is_global] = Joiner(context, storage, done, may_allow=may_allow)
        joiners[is_global].take(batch, dry_run=dry_run)
        number += len(batch)
        if progress is not None:
            progress(number, source.total)
    for joiner in joiners.values():
        joiner.settle_doubles(dry_run=dry_run)
        if not dry_run:
            joiner.finish()
    return done


def _may_allow(context: Context, name: str) -> bool:
    try:
        context.agree_to_allow(f"{name} declares values that look like secrets harmless. Store them as they are?")
    except NotAllowed:
        return False
    return True


def _target(context: Context, *, shared: bool, dry_run: bool) -> Storage:
    context.readable()
    existing = context.spaces.shared() if shared else context.spaces.project()
    if existing is None and dry_run:
        return open_space(":memory:", write_wait_s=1.0, now=context.clock)
    return context.ensure_shared() if shared else context.owned()


def _batches(stream: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces of one space in batches; a session stays with its messages."""
    batch: list[Piece] = []
    for piece in stream:
        is_full = len(batch) >= BATCH and piece.noun is not None
        if batch and (is_full or piece.space != batch[0].space):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch
