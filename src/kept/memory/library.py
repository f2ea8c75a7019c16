"""The library: items and pieces of the project's files, beside what was remembered.

`extract` reads files by the rules of `exchange` and stores what it finds in the scopes `items` and `sources`, cited by
file and line. A note for each file says which state of it was read, so that only changed files are read again. Rule:
only extraction writes here. Everything is a tool's word: found when asked for, never an instruction. It lives as long
as its file says so, and no longer.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept import ids, text
from kept.distribution import install_line
from kept.errors import InvalidInput, NotFound
from kept.exchange import agents_md, chunks, code_items, doc_text, items, markdown_items
from kept.memory.context import Context, Memories
from kept.model import ITEM, Memory, Scope, Source, canonical_kind, replace
from kept.ports import ANYTHING, Storage, Transaction, Where
from kept.projects.files import read_regular, shown, write_private_file
from kept.projects.sources import files_below, is_vendored
from kept.storage.shared import every
from kept.writing.redact import redact
from kept.writing.rejections import Rejections

MAX_FILE_BYTES = 1_000_000  # a larger file is data
BATCH_ROWS = 300
NOTE = "source/"
AGENT = "extraction"
WRITTEN = ("content", "kind", "title", "tags", "files", "source", "data")  # the fields that extraction writes
MAX_NAME = 500  # characters of a file's name in a citation

Progress = Callable[[int, int], None]


class SkippedFile(Struct, frozen=True):
    """A file that was not read, and why."""

    file: str
    reason: str


class Extraction(Struct, kw_only=True):
    """The result of an extraction. `items` and `chunks` count all that are there now, also of files read before."""

    files: int = 0
    read: int = 0
    copies: int = 0
    vendored: int = 0  # files of others, and built ones, that were left out
    items: int = 0
    chunks: int = 0
    added: int = 0
    changed: int = 0
    expired: int = 0
    skipped: list[SkippedFile] = []


Mark = tuple[str | None, str]  # what tells the records of a file apart: their type and their text


class FileNote(Struct, omit_defaults=True):
    """Which state of a file was read, and which memories came of it. `chunks` is None if it was not cut into pieces.

    `seals`: of each live memory of this file, by id, a mark of what extraction has written.
    """

    mtime: int = 0
    size: int = 0
    hash: str = ""
    items: list[int] = []
    chunks: list[int] | None = None
    is_copy: bool = False
    seals: dict[int, str] = {}


def extract(
    context: Context, paths: Sequence[Path | str], *, sources: bool, progress: Progress | None = None
) -> Extraction:
    """Read the files of the project, or those below `paths`, and store their items and (`sources`) their pieces."""
    _check_markdown()
    storage = context.owned()
    run = _Run(context, storage, sources=sources)
    found = run.find(paths)
    gone = run.gone(paths, found)
    run.hash_all(found, gone)
    for number, (name, path) in enumerate(found.items()):
        run.take(name, path)
        if progress is not None:
            progress(number + 1, len(found))
    run.expire(gone)
    with storage.reading() as reader:
        run.done.items, run.done.chunks = (reader.count(Where(scope=scope)) for scope in ("items", "sources"))
    write_items_json(context, storage)
    context.tell_write(storage, run.done.added - run.done.expired)
    return run.done


def list_items(context: Context, *, type: str | None, source: str | None, limit: int) -> Memories:
    """The items of the project, by file and line."""
    if type is not None and type not in items.ITEM_TYPES:
        raise InvalidInput(f"Unknown item type {type!r}.", hint=f"Choose one of {', '.join(items.ITEM_TYPES)}.")
    storage = context.readable_tier("project")
    if storage is None:
        return []
    with storage.reading() as reader:
        found = [one for one in every(reader, Where(scope="items")) if _is_wanted(one, type, source)]
    found.sort(key=lambda one: (one.source.file or "", one.source.line or 0, one.id))
    context.tell_read(found[:limit])
    return found[:limit]


def _is_wanted(item: Memory, type: str | None, source: str | None) -> bool:
    return type in (None, item.item_type) and (source is None or _is_below(item.source.file or "", source))


def items_in(name: str, said: str) -> list[items.CitedItem]:
    """Return the items of a file, by the rules for its format."""
    if items.is_markdown(name):
        return markdown_items.items_of(name, said)
    return doc_text.items_of(name, said) if items.is_rst(name) else code_items.items_of(name, said)


def as_document(memory: Memory) -> dict[str, Any]:
    """Return an item in Brain's form."""
    return items.to_document(
        id=memory.item_name,
        type=memory.item_type or "note",
        title=memory.title or "",
        content=memory.content,
        file=memory.source.file or "",
        line=memory.source.line or 0,
        confidence=memory.confidence,
        at=memory.created_at if memory.source.origin == "import" else memory.updated_at,
    )


def write_items_json(context: Context, storage: Storage) -> None:
    """Write items.json beside the store: a copy, which nobody edits."""
    folder = context.spaces.files_folder()
    if folder is None:
        return
    with storage.reading() as reader:
        found = [as_document(one) for one in every(reader, Where(scope="items"))]
    found.sort(key=lambda one: (one["sourceFile"], one["lineNumber"]))
    write_private_file(folder / "items.json", msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def _check_markdown() -> None:
    if find_spec("markdown_it") is None:
        raise InvalidInput(
            "Reading Markdown needs the package markdown-it-py.", hint=f"Install it with: {install_line('files')}"
        )


def _is_below(file: str, wanted: str) -> bool:
    wanted = wanted.removeprefix("./").rstrip("/")
    return file == wanted or file.startswith(f"{wanted}/") or wanted in ("", ".")


class _Run:
    """One extraction. Rows are written a few hundred at a time, each file's together with its note."""

    def __init__(self, context: Context, storage: Storage, *, sources: bool) -> None:
        self.done = Extraction()
        self._context, self._storage, self._sources = context, storage, sources
        self._root = (context.spaces.folder() or Path()).absolute()
        self._rules = context.rules()
        self._stamp = context.stamp()
        self._hashes: dict[str, tuple[int, int, str]] = {}
        self._owners: dict[str, str] = {}
        self._pending: list[tuple[str, FileNote, list[items.CitedItem], list[chunks.Chunk] | None]] = []
        self._rows = 0
        self._cited: dict[str, list[tuple[int, Scope, str]]] = {}  # by file: what is live of it now, with its seal
        self._extracted: set[str] = set()  # files that gave items; an import may cite others
        with storage.reading() as reader:
            noted = reader.file_notes(NOTE)
            for one in (*every(reader, Where(scope="items")), *every(reader, Where(scope="sources"))):
                if one.is_cited:
                    self._cited.setdefault(one.source.file or "", []).append((one.id, one.scope, _seal(one)))
                    self._extracted |= {one.source.file or ""} if one.source.origin == "extraction" else set()
            self._may_be_erased = reader.is_erased(ANYTHING)  # asked once: each question ends a batch of rows
        self._notes = {name[len(NOTE) :]: _decoded(note) for name, note in noted.items()}

    def find(self, paths: Sequence[Path | str]) -> dict[str, Path]:
        """The files by the name under which they are cited: relative to the project, if they are in it."""
        found: dict[str, Path] = {}
        for given in paths or [self._root]:
            path = Path(given).absolute()
            if path.is_dir():
                below = files_below(path)
                own = [name for name in below if not is_vendored(name)]
                self.done.vendored += len(below) - len(own)
                found.update({self._name(path / name): path / name for name in own})
            elif path.is_file():
                found[self._name(path)] = path
            elif self._name(path) not in self._notes:  # one that is gone expires
                raise NotFound(f"There is no file {shown(path)}.", hint="Check the path.")
        self.done.files = len(found)
        return found

    def _name(self, path: Path) -> str:
        try:
            name = path.relative_to(self._root).as_posix()
        except ValueError:
            name = path.as_posix()
        return name.encode("utf-8", "replace").decode()

    def hash_all(self, found: dict[str, Path], gone: set[str]) -> None:
        """Find out which files changed, and which of equal ones stands for the others."""
        for name, path in found.items():
            try:
                status = path.stat()
            except OSError:
                continue
            known = self._notes.get(name)
            if known is not None and (known.mtime, known.size) == (status.st_mtime_ns, status.st_size):
                self._hashes[name] = (known.mtime, known.size, known.hash)
            elif (safe := redact(name, email=False).text) != name:
                self.done.skipped.append(SkippedFile(safe, "its name contains a secret"))
            elif status.st_size > MAX_FILE_BYTES:
                self.done.skipped.append(SkippedFile(name, "larger than 1 MB"))
            else:
                data = read_regular(path, MAX_FILE_BYTES + 1)
                if b"\0" in data[:8192]:
                    continue  # not text
                digest = blake2b(data, digest_size=16).hexdigest()
                self._hashes[name] = (status.st_mtime_ns, status.st_size, digest)
        elsewhere = self._notes.keys() - found.keys() - gone
        for name in sorted({*elsewhere, *self._hashes}):
            here = self._hashes.get(name)
            self._owners.setdefault(here[2] if here else self._notes[name].hash, name)

    def take(self, name: str, path: Path) -> None:
        """Read a file, unless that was done in this state."""
        if name not in self._hashes:
            if name in self._notes:  # it is no text any more
                self._queue(name, FileNote(), [], None)
            return
        mtime, size, digest = self._hashes[name]
        known = self._notes.get(name)
        note = FileNote(mtime=mtime, size=size, hash=digest, is_copy=self._owners[digest] != name)
        self.done.copies += note.is_copy
        if known is not None and self._is_done(name, known, note):
            self._touch(name, known, note)
        elif note.is_copy:
            self._queue(name, note, [], None)
        else:
            self._read(name, path, note, has_pieces=known is not None and known.chunks is not None)

    def _is_done(self, name: str, known: FileNote, note: FileNote) -> bool:
        """Whether the file was read in this state, and what came of it is as it was written."""
        is_same = known.hash == note.hash and known.is_copy == note.is_copy and self._is_intact(name)
        return is_same and (note.is_copy or known.chunks is not None or not self._sources)

    def _touch(self, name: str, known: FileNote, note: FileNote) -> None:
        """Note the new time of a file that says the same."""
        if (known.mtime, known.size) != (note.mtime, note.size):
            note = msgspec.structs.replace(known, mtime=note.mtime, size=note.size)
            with self._storage.writing(self._stamp) as tx:
                tx.note_file(NOTE + name, _encoded(note))

    def _read(self, name: str, path: Path, note: FileNote, *, has_pieces: bool) -> None:
        said = read_regular(path, MAX_FILE_BYTES + 1).decode("utf-8", "replace").replace("\0", "\ufffd")
        said = agents_md.without_block(said)  # memories come from the store, not back from the file that shows them
        self.done.read += 1
        found = items_in(name, said)
        pieces = list(chunks.chunks_of(said)) if self._sources or has_pieces else None
        self._queue(name, note, found, pieces)

    def _is_intact(self, name: str) -> bool:
        """Return True if everything that cites the file says what extraction has written."""
        seals = self._notes[name].seals
        return all(seals.get(id) == seal for id, _, seal in self._cited.get(name[:MAX_NAME], ()))

    def _queue(
        self, name: str, note: FileNote, found: list[items.CitedItem], pieces: list[chunks.Chunk] | None
    ) -> None:
        self._pending.append((name, note, found, pieces))
        self._rows += len(found) + len(pieces or ()) + 1
        if self._rows >= BATCH_ROWS:
            self.end()

    def end(self) -> None:
        """Write what is queued."""
        if not self._pending:
            return
        with self._storage.writing(self._stamp) as tx:
            for name, note, found, pieces in self._pending:
                self._write(tx, name, note, found, pieces)
        self._pending, self._rows = [], 0

    def gone(self, paths: Sequence[Path | str], found: dict[str, Path]) -> set[str]:
        """Files that were read before, should be among those found, and are not."""
        below = [self._name(Path(path).absolute()) for path in paths]

        def is_expected(name: str) -> bool:
            if Path(name).is_absolute() and not Path(name).exists():
                return True
            return any(_is_below(name, one) for one in below) if paths else not Path(name).is_absolute()

        return {name for name in (self._notes.keys() | self._extracted) - found.keys() if is_expected(name)}

    def expire(self, gone: set[str]) -> None:
        """Let go of what was taken from files that are gone, and write the rest."""
        for name in sorted(gone):
            self._queue(name, FileNote(), [], None)
        self.end()

    def _write(
        self,
        tx: Transaction,
        name: str,
        note: FileNote,
        found: list[items.CitedItem],
        pieces: list[chunks.Chunk] | None,
    ) -> None:
        known = self._notes.get(name) or FileNote()
        is_read_again = bool(note.hash) and known.hash == note.hash
        of_items = [*known.items, *self._cited_ids(name, "items")]
        of_pieces = [*(known.chunks or ()), *self._cited_ids(name, "sources")]
        note.items = self._replace(tx, of_items, [self._item(name, one) for one in found], is_read_again)
        parts = self._replace(tx, of_pieces, [self._piece(name, one) for one in pieces or ()], is_read_again)
        note.chunks = parts if pieces is not None else None
        note.seals = _seals(tx, [*note.items, *parts])
        tx.note_file(NOTE + name, _encoded(note) if note.hash else None)

    def _cited_ids(self, name: str, scope: Scope) -> list[int]:
        return [id for id, of_scope, _ in self._cited.get(name[:MAX_NAME], ()) if of_scope == scope]

    def _replace(
        self, tx: Transaction, old: Iterable[int], drafts: list[Memory | None], is_read_again: bool
    ) -> list[int]:
        """Put new records in the place of those of the last time: what says the same keeps its ref.

        `is_read_again`: the file has not changed, so what was forgotten of it stays so.
        """
        stored = _stored(tx, dict.fromkeys(old))
        before = [one for one in stored if not one.is_archived]
        hidden = {_mark(one): one.id for one in stored if is_read_again and one.is_forgotten}
        same = _by_mark(before)
        kept: list[int] = []
        rejections = Rejections(tx)
        for draft in filter(None, drafts):
            if (known := hidden.get(_mark(draft))) is not None:
                kept.append(known)
            elif not self._is_gone_for_good(tx, draft, rejections):
                kept.append(self._put(tx, draft, same.get(_mark(draft), [])))
        expired = [one for one in before if one.id not in kept]
        tx.put_many([one.archived("expired", tx.stamp.at) for one in expired], "expire")
        self.done.expired += len(expired)
        return kept

    def _is_gone_for_good(self, tx: Transaction, draft: Memory, rejections: Rejections) -> bool:
        """Return True for a text that was erased, and for an item that was forgotten or rejected."""
        if self._may_be_erased and tx.is_erased(draft.fingerprint):
            return True
        return draft.scope == "items" and bool(rejections.of(draft))

    def _put(self, tx: Transaction, draft: Memory, twins: list[Memory]) -> int:
        """Store a record, in the place of the first one that says the same. Returns its id."""
        if not twins:
            self.done.added += 1
            return tx.add(draft, "extract").id
        twin = twins.pop(0)
        moved = replace(twin, **{name: getattr(draft, name) for name in WRITTEN})
        if moved != twin:
            tx.put(replace(moved, updated_at=tx.stamp.at), "extract")
            self.done.changed += 1
        return twin.id

    def _clean(self, said: str) -> str:
        return redact(said, email=self._rules.redact_email, allow=self._rules.allow).text

    def _item(self, name: str, item: items.CitedItem) -> Memory | None:
        return self._memory(
            name,
            item.content,
            item.line,
            scope="items",
            kind=canonical_kind(item.type),
            item_type=item.type,
            title=self._clean(item.title),
            confidence=item.confidence,
            data={ITEM: items.item_id(name, item)},
        )

    def _piece(self, name: str, piece: chunks.Chunk) -> Memory | None:
        return self._memory(name, piece.text, piece.first, scope="sources", data={"last_line": piece.last})

    def _memory(self, name: str, content: str, line: int, **fields: Any) -> Memory | None:
        at: datetime = self._stamp.at
        clean = self._clean(content)
        if not clean.strip():
            return None
        return Memory(
            uid=ids.uuid7(at, os.urandom(ids.UID_ENTROPY_BYTES)),
            space=self._storage.space,
            content=clean,
            fingerprint=text.fingerprint(clean),
            status="candidate",
            trust="tool",
            files=(name,) if len(name) <= MAX_NAME else (),
            source=Source(origin="extraction", agent=AGENT, file=name[:MAX_NAME], line=line),
            created_at=at,
            updated_at=at,
            **fields,
        )


def _decoded(note: str) -> FileNote:
    try:
        return msgspec.json.decode(note, type=FileNote)
    except msgspec.MsgspecError:
        return FileNote()


def _by_mark(memories: Iterable[Memory]) -> dict[Mark, list[Memory]]:
    """The memories by their marks, without those whose text was changed by others."""
    found: dict[Mark, list[Memory]] = {}
    for memory in memories:
        if memory.fingerprint == text.fingerprint(memory.content):
            found.setdefault(_mark(memory), []).append(memory)
    return found


def _mark(memory: Memory) -> Mark:
    return memory.item_type, memory.fingerprint


def _seals(tx: Transaction, ids: Iterable[int]) -> dict[int, str]:
    return {one.id: _seal(one) for one in _stored(tx, ids)}


def _stored(tx: Transaction, ids: Iterable[int]) -> list[Memory]:
    found = (tx.get(Memory, id) for id in ids)
    return [memory for memory in found if memory is not None]


def _seal(memory: Memory) -> str:
    """A mark of what extraction writes of a memory; use and feedback, which others note, are no part of it."""
    said = [getattr(memory, name) for name in WRITTEN]
    return blake2b(msgspec.json.encode(said), digest_size=6).hexdigest()


def _encoded(note: FileNote) -> str:
    return msgspec.json.encode(note).decode()
