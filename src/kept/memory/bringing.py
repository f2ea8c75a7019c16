"""Import the memory files of other programs: what they say becomes memories, candidates until a person confirms them.

`exchange.importers` reads the files. Here statements go down the write path, so they are checked, redacted and compared
with what is known; tasks, aliases and conflicts go through the `Joiner`. Rule: each statement has a key made of its
format, its id there and its text, so importing again stores only what is new, and what was forgotten here stays
forgotten. A statement that cannot be taken in is counted with its reason.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, KeptError
from kept.exchange import graph, portable
from kept.exchange.importers import BEGINNING, MOST_BYTES, Importer, recognised
from kept.exchange.importers import BY_NAME as BY_NAME
from kept.exchange.importers.foreign import Brought, BroughtStatement, ForeignConflict
from kept.exchange.importers.hosts import HOSTS
from kept.exchange.portable import piece_of
from kept.exchange.specstory import MARK
from kept.exchange.transcripts import PARSERS
from kept.journal import IMPORT
from kept.memory import imports, knowledge, library, project_settings, write
from kept.memory.context import Context
from kept.memory.host_notes import belongs_here
from kept.memory.joiner import Joiner, JoinOptions
from kept.model import Alias, Conflict, Draft, Memory, Receipt, Record, Source, TaskRecord, replace
from kept.ports import ANYWHERE, Stamp, Transaction
from kept.projects.files import check_session_name, explained, read_regular, shown
from kept.writing import pipeline
from kept.writing.redact import redact, redact_draft

HOST_OF_FORMAT = {host.format: host.name for host in HOSTS}  # agents whose notes are read as they change
BATCH = 500
MOST_LEFT_OUT = 100  # files that are named
MOST_LOOKED_AT = 20  # files of a folder that is given without its format
MOST_NAMED = 8  # projects of another program in an error
# Fields that a record of each program's transcripts has.
_RECORDS = (
    ("claude-code", {"sessionId", "type", "cwd"}),
    ("codex", {"timestamp", "type", "payload"}),
    ("openclaw", {"type", "id", "cwd", "timestamp"}),
    ("gemini", {"sessionId", "projectHash"}),
    ("gemini", {"id", "timestamp", "type", "content"}),
    ("brain", {"id", "role", "timestamp"}),
)
FORMATS = tuple(dict.fromkeys((*BY_NAME, *PARSERS)))  # of memory files, and of transcripts
Progress = Callable[[int, int], None]


class ImportReport(Struct, kw_only=True):
    """The result of an import, counted. `unread` names parts that could not be read, `left_out` those that were not."""

    format: str
    files: int = 0
    stored: int = 0
    duplicates: int = 0  # known from an earlier import, or said already
    redacted: int = 0
    refused: dict[str, int] = {}
    tasks: int = 0
    aliases: int = 0
    conflicts: int = 0
    sessions: int = 0
    messages: int = 0
    elsewhere: int = 0  # statements of other projects, which are left out
    unread: list[str] = []
    left_out: list[str] = []  # on purpose: headers, indexes, files of the program that are no memories
    failed: list[str] = []
    dry_run: bool = False


def importer_of(path: Path, format: str | None = None) -> Importer:
    """The importer of that name, or the one that recognises the path. Raises InvalidInput."""
    if format is not None:
        if format not in BY_NAME:
            raise InvalidInput(f"Unknown format {format!r}.", hint=f"Choose one of {', '.join(BY_NAME)}.")
        return BY_NAME[format]
    with explained("read", path, hint="Check its permissions."):
        if not path.exists():
            raise InvalidInput(f"{shown(path)} does not exist.", hint="Give a file or a folder to import.")
        if is_export(path):
            raise InvalidInput(f"{shown(path)} is an export of Kept.", hint="memory.store.merge(path) brings it in.")
        found = recognised(path, read_regular(path, BEGINNING))
    if found is None:
        raise InvalidInput(
            f"Kept does not know what {shown(path)} is.",
            hint=f"Name its format first: kept import FORMAT {shown(path)}. Formats: {', '.join(FORMATS)}.",
        )
    return found


def is_export(path: Path) -> bool:
    """Whether this is a file of `kept export`."""
    return path.is_file() and portable.is_export(read_regular(path, BEGINNING))


def program_of(path: Path) -> str | None:
    """Name the program that wrote a transcript, or the transcripts of a folder, by the first whole record."""
    if path.is_dir():
        return _program_of_folder(path)
    if path.suffix == ".md" and MARK in read_regular(path, BEGINNING):
        return "specstory"
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    for line in read_regular(path, BEGINNING).splitlines()[:20]:
        with suppress(msgspec.DecodeError):
            record = msgspec.json.decode(line)
            keys = record.keys() if isinstance(record, dict) else set()
            for program, names in _RECORDS:
                if names <= keys:
                    return program
    return None


def _program_of_folder(folder: Path) -> str | None:
    """Return the program whose transcripts are below a folder, by the first files; None if a file is of another."""
    if recognised(folder, b"") is not None:  # memory files, perhaps with transcripts beside them
        return None
    files = islice(folder.rglob("*.jsonl"), MOST_LOOKED_AT)
    programs = {program_of(file) for file in files if not is_export(file)}
    return programs.pop() if len(programs) == 1 else None


def bring_in(
    context: Context,
    importer: Importer,
    path: Path,
    *,
    dry_run: bool = False,
    confirm: bool = False,
    from_project: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import a file, or the files of that format below a folder. `confirm`: a person vouches for all of it.

    Of a file that holds several projects, what belongs to the one with the name of this folder, or `from_project`.
    A file that cannot be read is listed in `failed`, and the others are taken in. Raises InvalidInput when there is
    nothing at all.
    """
    done = ImportReport(format=importer.name, refused={}, unread=[], left_out=[], failed=[], dry_run=dry_run)
    brought = _read_all(importer, path, done)
    if not brought and not done.failed and not done.unread:
        raise InvalidInput(
            f"There is nothing to import in {shown(path)}: no text of {importer.program} was found.",
            hint="Check the path, or name the format: kept import FORMAT PATH.",
        )
    brought.statements = sorted(_of_project(context, brought.statements, from_project, done), key=_when)
    _Bringer(context, importer.name, done, confirm=confirm).bring(brought, progress)
    _bring_sessions(context, importer, path, brought, done)
    if not dry_run and any(one.draft.scope == "items" for one in brought.statements):
        library.write_items_json(context, context.owned())
    return done


def _read_all(importer: Importer, path: Path, done: ImportReport) -> Brought:
    """Everything that the files at a path bring."""
    brought = Brought(statements=[], tasks=[], aliases={}, disagreements=[], dialogues=[], settings={})
    brought.unread, brought.left_out = done.unread, done.left_out
    for file in importer.files(path):
        try:
            one = _read(importer, file)
        except InvalidInput as error:
            if file == path:
                raise
            done.failed.append(f"{shown(file)}: {error}")
            continue
        done.files += bool(one)
        brought.add(one)
    others = importer.left_out(path)
    done.left_out += [f"{name} is no memory file" for name in others[:MOST_LEFT_OUT]]
    done.left_out += [f"{len(others) - MOST_LEFT_OUT:,} more files"] if len(others) > MOST_LEFT_OUT else []
    return brought


def _bring_sessions(context: Context, importer: Importer, path: Path, brought: Brought, done: ImportReport) -> None:
    """Import the dialogues of notes, and the transcripts in Brain's layout, as sessions."""
    transcripts = sorted(path.glob("**/sessions/*.jsonl")) if importer.name == "brain" and path.is_dir() else []
    if done.dry_run:
        done.sessions = len(brought.dialogues) + len(transcripts)
        return
    said = [imports.import_dialogue(context, importer.name, one) for one in brought.dialogues]
    if transcripts:
        said += imports.import_transcripts(context, importer.name, transcripts, imports.HowToImport(), progress=None)
    done.sessions = sum(bool(one.added) for one in said)
    done.messages = sum(one.added for one in said)
    done.unread += [f"{Path(one.path).name}: {one.failed}" for one in said if one.failed]


def _of_project(
    context: Context, statements: Sequence[BroughtStatement], name: str | None, done: ImportReport
) -> list[BroughtStatement]:
    """Those of this project, where the other program keeps several. Raises InvalidInput when there are none."""
    folder = context.spaces.folder()
    name = name or (folder.name if folder is not None else None)
    if name is None:
        return list(statements)
    own = [one for one in statements if _is_own(context, one, name)]
    done.elsewhere = len(statements) - len(own)
    if statements and not own:
        raise _nothing_of(name, statements)
    return own


def _nothing_of(name: str, statements: Sequence[BroughtStatement]) -> InvalidInput:
    known = Counter(one.project or one.belongs for one in statements).most_common(MOST_NAMED)
    return InvalidInput(
        f"Nothing in it is of the project {name!r}.",
        hint=f"Name one with --from-project: {', '.join(f'{one} ({number:,})' for one, number in known)}.",
    )


def _is_own(context: Context, one: BroughtStatement, name: str) -> bool:
    """Return True for a statement of this project, or of the one with that name where it was."""
    if one.belongs:
        return one.belongs == name or belongs_here(context, one.belongs)
    return not one.project or _is_within(one.project, name)


def _is_within(project: str, name: str) -> bool:
    """Whether it is that project or a part of it, by its name."""
    return f"{project}/".casefold().startswith(f"{name}/".casefold())


def _read(importer: Importer, file: Path) -> Brought:
    with explained("read", file, hint="Check its permissions."):
        if not file.is_file():
            what = "is not a file" if file.exists() else "does not exist"
            raise InvalidInput(f"{shown(file)} {what}.", hint="Give a file or a folder to import.")
        if file.stat().st_size > MOST_BYTES and not importer.is_database:
            raise InvalidInput(f"{shown(file)} is larger than {MOST_BYTES // 1024 // 1024} MB.", hint="Split it.")
        data = b"" if importer.is_database else file.read_bytes()
    try:
        return importer.read(file, data)
    except KeptError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise InvalidInput(
            f"{shown(file)} is not in the format {importer.name} ({type(error).__name__}).",
            hint="Check the file and the name of the format.",
        ) from error


def _when(statement: BroughtStatement) -> tuple[bool, Any]:
    """In the order in which things were said; what has no date comes last, as it stands."""
    at = statement.draft.created_at
    return (at is None, at) if at is not None else (True, 0)


class _Bringer:
    """Stores what was brought."""

    def __init__(self, context: Context, format: str, done: ImportReport, *, confirm: bool) -> None:
        self._context = context
        self._format = format
        self._done = done
        self._confirm = confirm
        self._rules = context.rules()
        self._uids: dict[str, str] = {}  # id elsewhere → uid here

    def bring(self, brought: Brought, progress: Progress | None) -> None:
        stamp = None if self._done.dry_run else self._context.stamp()
        self._bring_statements(brought.statements, stamp, progress)
        if stamp is None:
            self._done.tasks, self._done.aliases = len(brought.tasks), len(brought.aliases)
        elif brought.tasks or brought.aliases or brought.disagreements:
            self._join_others(brought, stamp)
        self._apply_settings(brought.settings)

    def _bring_statements(
        self, statements: Sequence[BroughtStatement], stamp: Stamp | None, progress: Progress | None
    ) -> None:
        """Store statements in batches; without a stamp only count them."""
        known: set[str] = set()
        for start in range(0, len(statements), BATCH):
            batch = list(self._keyed(statements[start : start + BATCH]))
            if stamp is None:
                self._count_only([draft for _, draft in batch], known)
            else:
                self._remember(batch, stamp)
            if progress is not None:
                progress(min(start + BATCH, len(statements)), len(statements))

    def _apply_settings(self, settings: Mapping[str, str]) -> None:
        """Set what the other program had set, if a person vouches for it; else name it."""
        for name, value in settings.items():
            if self._is_vouched_for and not self._done.dry_run:
                project_settings.configure(self._context, name, value)
            else:
                self._done.left_out.append(f"the setting {name} = {value}; `kept config set {name} {value}` sets it")

    def _remember(self, batch: Sequence[tuple[BroughtStatement, Draft]], stamp: Stamp) -> None:
        uids = [statement.uid for statement, _ in batch]
        receipts = write.remember_many(self._context, [draft for _, draft in batch], stamp=stamp, uids=uids)
        pairs = [(statement, receipt) for (statement, _), receipt in zip(batch, receipts, strict=True)]
        for statement, receipt in pairs:
            self._count(statement, receipt)
        self._complete(pairs, stamp)

    def _keyed(self, statements: Sequence[BroughtStatement]) -> Iterator[tuple[BroughtStatement, Draft]]:
        """Each statement with its draft, redacted, and with the key by which it is known again."""
        for statement in statements:
            draft = _with_signature(_with_safe_names(statement.draft))
            try:
                safe = redact_draft(draft, email=self._rules.redact_email, allow=self._rules.allow)
            except InvalidInput:
                self._refuse("invalid")
                continue
            self._done.redacted += bool(safe.redactions)
            ready = graph.keyed(safe.draft)
            words = f"{self._format}\n{statement.id}\n{ready.content}"
            key = f"{self._format}:{hashlib.blake2b(words.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"
            yield statement, ready if ready.key is not None else replace(ready, key=key)

    def _count(self, statement: BroughtStatement, receipt: Receipt) -> None:
        if receipt.memory is not None and statement.id:
            self._uids[statement.id] = receipt.memory.uid
        if receipt.is_known:
            self._done.duplicates += 1
        elif receipt.outcome == "refused":
            self._refuse(receipt.reason or "invalid")
        else:
            self._done.stored += 1
            self._done.conflicts += len(receipt.conflicts)

    def _count_only(self, drafts: Sequence[Draft], known: set[str]) -> None:
        stored = self._stored_keys(drafts)
        for draft in drafts:
            ready = pipeline.prepare(draft, self._rules)
            if isinstance(ready, Receipt):
                self._refuse(ready.reason or "invalid")
            elif draft.key in stored or draft.key in known:
                self._done.duplicates += 1
            else:
                self._done.stored += 1
                known.add(draft.key or "")

    def _stored_keys(self, drafts: Sequence[Draft]) -> set[str]:
        storage = self._context.spaces.project()
        if storage is None:
            return set()
        keys = {draft.key for draft in drafts if draft.key is not None}
        with storage.reading() as reader:
            return {key for key in keys if reader.select(replace(ANYWHERE, key=key), limit=1)}

    def _refuse(self, reason: str, number: int = 1) -> None:
        self._done.refused[reason] = self._done.refused.get(reason, 0) + number

    def _complete(self, stored: Sequence[tuple[BroughtStatement, Receipt]], stamp: Stamp) -> None:
        """Add what a draft cannot say: how often it was used elsewhere, and, for a person, that it is confirmed."""
        kept = [(one, got.memory) for one, got in stored if got.memory is not None and self._is_to_complete(got)]
        self._name_pins([one for one, _ in kept])
        changes = [(one, memory) for one, memory in kept if one.use_count or one.last_used_at or self._confirm]
        if not changes:
            return

        def work(tx: Transaction) -> None:
            for one, memory in changes:
                current = tx.get(Memory, memory.id)
                if current is None or current.is_archived:
                    continue
                changed = self._completed(current, one, tx.stamp.at)
                if changed != current:
                    tx.put(changed, self._action)

        self._context.write(self._context.owned(), work, stamp=stamp)

    def _name_pins(self, statements: Sequence[BroughtStatement]) -> None:
        pins = sum(one.status == "pinned" for one in statements)
        if pins and not self._is_vouched_for:
            self._done.left_out.append(f"{pins} pinned: candidates until you import them with --confirm")

    def _completed(self, memory: Memory, one: BroughtStatement, at: datetime) -> Memory:
        used = max(memory.use_count, one.use_count)
        changed = replace(memory, use_count=used, last_used_at=memory.last_used_at or one.last_used_at)
        if not self._is_vouched_for:
            return changed
        status = one.status if one.status in ("confirmed", "pinned") else "confirmed"
        return replace(changed.vouched_for(), status=status, verified_at=at)

    def _is_to_complete(self, receipt: Receipt) -> bool:
        """Return True for a new memory; and for one of an earlier import that a person vouches for now."""
        is_known = receipt.is_known and receipt.outcome != "strengthened" and self._is_vouched_for
        return (_is_new(receipt) or is_known) and receipt.memory is not None and not receipt.memory.is_cited

    @property
    def _is_vouched_for(self) -> bool:
        return self._confirm and self._context.is_person

    @property
    def _action(self) -> str:
        return "verify" if self._is_vouched_for else IMPORT

    def _join_others(self, brought: Brought, stamp: Stamp) -> None:
        """Add the tasks, aliases and conflicts that are not here; those that are here stay as they are."""
        storage = self._context.owned()
        options = JoinOptions(
            stamp=stamp, session_stamp=stamp, rules=self._rules, action=self._action, known="keep", compares=False
        )
        joiner = Joiner(storage, options)
        joiner.take(piece_of(storage.space, record) for record in self._others(brought, stamp.at))
        self._done.tasks += joiner.done.others.get(TaskRecord.noun, 0)
        self._done.aliases += joiner.done.others.get(Alias.noun, 0)
        self._done.conflicts += joiner.done.conflicts
        for reason, number in joiner.done.refused.items():
            self._refuse(reason, number)
        self._context.tell_write(storage, 0)

    def _others(self, brought: Brought, now: datetime) -> Iterator[Record]:
        """The records of a foreign file that are no statements."""
        for task in brought.tasks:
            try:
                check_session_name(task.name)
                yield task
            except InvalidInput:
                self._refuse("invalid")
        for word, others in brought.aliases.items():
            if word.strip() and not redact(f"{word} {others}").found:
                yield Alias(word=word.strip().lower(), expands_to=tuple(other.lower() for other in others))
        for one in brought.disagreements:
            yield from self._conflict(one, now)

    def _conflict(self, one: ForeignConflict, now: datetime) -> Iterator[Conflict]:
        left, right = self._uids.get(one.left), self._uids.get(one.right)
        if left is not None and right is not None and left != right:
            at = one.detected_at or now
            yield Conflict(left=left, right=right, type=one.type, detected_at=at, resolved_at=one.resolved_at)


def _with_signature(draft: Draft) -> Draft:
    """Return the draft; a failure gets the signature of its error."""
    failure = (draft.data or {}).get("failure")
    message = failure.get("message") if isinstance(failure, dict) else None
    if not isinstance(message, str) or not message.strip():
        return draft
    return replace(draft, data={**(draft.data or {}), "signature": knowledge.signature_of(message)})


def _with_safe_names(draft: Draft) -> Draft:
    """The draft; a session, task or agent whose name no store can hold is left out."""
    source = draft.source or Source(origin="import")
    for field in ("session", "task"):
        value = getattr(source, field)
        try:
            if value is not None:
                check_session_name(value)
        except InvalidInput:
            source = replace(source, **{field: None})
    return replace(draft, source=source)


def _is_new(receipt: Receipt) -> bool:
    return receipt.outcome in ("stored", "candidate") and receipt.reason != "already_stored"
