"""Import the memory files of other programs: what they say becomes memories, candidates until a person confirms them.

`exchange.importers` reads the files; here everything goes down the write path, so it is checked, redacted and compared
with what is known. Rule: each statement has a key made of its format, its id there and its text, so importing again
stores only what is new, and what was forgotten here stays forgotten. What cannot be taken in is counted with its
reason.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, KeptError
from kept.exchange import graph, portable
from kept.exchange.importers import BEGINNING, MOST_BYTES, Brought, BroughtStatement, Importer, recognised
from kept.exchange.importers import BY_NAME as BY_NAME
from kept.exchange.specstory import MARK
from kept.memory import write
from kept.memory.context import Context, by_uid
from kept.model import Alias, Conflict, Draft, Memory, Receipt, Source, Task, replace
from kept.ports import ANYWHERE, Stamp, Transaction
from kept.projects.files import check_session_name, explained, read_regular, shown
from kept.writing import pipeline
from kept.writing.redact import redact, redact_draft

BATCH = 500
MOST_NAMED = 8  # projects of another program in an error
# Fields that a record of each program's transcripts has.
_RECORDS = (
    ("claude-code", {"sessionId", "type", "cwd"}),
    ("codex", {"timestamp", "type", "payload"}),
    ("openclaw", {"type", "id", "cwd", "timestamp"}),
    ("brain", {"id", "role", "timestamp"}),
)
Progress = Callable[[int, int], None]


class BroughtIn(Struct, kw_only=True):
    """The result of an import, counted. `unread` names what could not be read, a sentence each."""

    format: str
    files: int = 0
    stored: int = 0
    duplicates: int = 0  # known from an earlier import, or said already
    redacted: int = 0
    refused: dict[str, int] = {}
    tasks: int = 0
    aliases: int = 0
    conflicts: int = 0
    elsewhere: int = 0  # statements of other projects, which are left out
    unread: list[str] = []
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
            hint=f"Name its format first: kept import FORMAT {shown(path)}. Formats: {', '.join(BY_NAME)}.",
        )
    return found


def is_export(path: Path) -> bool:
    """Whether this is a file of `kept export`."""
    return path.is_file() and portable.is_export(read_regular(path, BEGINNING))


def program_of(path: Path) -> str | None:
    """The program whose transcript a file is, told by its first whole record."""
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


def bring_in(
    context: Context,
    importer: Importer,
    path: Path,
    *,
    dry_run: bool = False,
    confirm: bool = False,
    from_project: str | None = None,
    progress: Progress | None = None,
) -> BroughtIn:
    """Import a file, or the files of that format below a folder. `confirm`: a person vouches for all of it.

    Of a file that holds several projects, what belongs to the one with the name of this folder, or `from_project`.
    A file that cannot be read is listed in `failed`, and the others are taken in. Raises InvalidInput when there is
    nothing at all.
    """
    files = importer.files(path)
    done = BroughtIn(format=importer.name, refused={}, unread=[], failed=[], dry_run=dry_run)
    brought = Brought(statements=[], tasks=[], aliases={}, disagreements=[], unread=done.unread)
    for file in files:
        try:
            one = _read(importer, file)
        except InvalidInput as error:
            if file == path:
                raise
            done.failed.append(f"{shown(file)}: {error}")
            continue
        done.files += 1
        brought.statements += one.statements
        brought.tasks += one.tasks
        brought.aliases |= one.aliases
        brought.disagreements += one.disagreements
        done.unread += one.unread
    if not brought and not done.failed and not done.unread:
        raise InvalidInput(
            f"There is nothing to import in {shown(path)}: no text of {importer.program} was found.",
            hint="Check the path, or name the format: kept import FORMAT PATH.",
        )
    brought.statements = sorted(_of_project(context, brought.statements, from_project, done), key=_when)
    _Bringer(context, importer.name, done, confirm=confirm).bring(brought, progress)
    return done


def _of_project(
    context: Context, statements: Sequence[BroughtStatement], name: str | None, done: BroughtIn
) -> list[BroughtStatement]:
    """Those of this project, where the other program keeps several. Raises InvalidInput when there are none."""
    folder = context.spaces.folder()
    name = name or (folder.name if folder is not None else None)
    if name is None:
        return list(statements)
    own = [
        one for one in statements if not one.project or f"{one.project}/".casefold().startswith(f"{name}/".casefold())
    ]
    done.elsewhere = len(statements) - len(own)
    if statements and not own:
        known = Counter(one.project for one in statements).most_common(MOST_NAMED)
        raise InvalidInput(
            f"Nothing in it is of the project {name!r}.",
            hint=f"Name one with --from-project: {', '.join(f'{one} ({number:,})' for one, number in known)}.",
        )
    return own


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

    def __init__(self, context: Context, format: str, done: BroughtIn, *, confirm: bool) -> None:
        self._context = context
        self._format = format
        self._done = done
        self._confirm = confirm
        self._rules = context.rules()
        self._uids: dict[str, str] = {}  # id elsewhere → uid here

    def bring(self, brought: Brought, progress: Progress | None) -> None:
        statements = brought.statements
        stamp = None if self._done.dry_run else self._context.stamp()
        known: set[str] = set()
        for start in range(0, len(statements), BATCH):
            batch = list(self._keyed(statements[start : start + BATCH]))
            if self._done.dry_run:
                self._count_only([draft for _, draft in batch], known)
            else:
                receipts = write.remember_many(self._context, [draft for _, draft in batch], stamp=stamp)
                for (statement, _), receipt in zip(batch, receipts, strict=True):
                    self._count(statement, receipt)
                self._complete([(one, receipt) for (one, _), receipt in zip(batch, receipts, strict=True)], stamp)
            if progress is not None:
                progress(min(start + BATCH, len(statements)), len(statements))
        if self._done.dry_run:
            self._done.tasks, self._done.aliases = len(brought.tasks), len(brought.aliases)
        elif brought.tasks or brought.aliases or brought.disagreements:
            storage = self._context.owned()
            self._context.write(storage, lambda tx: self._bring_others(tx, brought), stamp=stamp)
            self._context.tell_write(storage, 0)

    def _keyed(self, statements: Sequence[BroughtStatement]) -> Iterator[tuple[BroughtStatement, Draft]]:
        """Each statement with its draft, redacted, and with the key by which it is known again."""
        for statement in statements:
            draft = _named(statement.draft)
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
        if receipt.outcome == "refused":
            self._refuse(receipt.reason or "invalid")
        elif receipt.outcome == "strengthened" or receipt.reason == "already_stored":
            self._done.duplicates += 1
        else:
            self._done.stored += 1
            self._done.conflicts += len(receipt.conflicts)

    def _count_only(self, drafts: Sequence[Draft], known: set[str]) -> None:
        storage = self._context.spaces.project()
        keys = [draft.key for draft in drafts]
        stored: set[str | None] = set()
        if storage is not None:
            with storage.reading() as reader:
                stored = {key for key in keys if key is not None and reader.select(replace(ANYWHERE, key=key), limit=1)}
        for draft in drafts:
            ready = pipeline.prepare(draft, self._rules)
            if isinstance(ready, Receipt):
                self._refuse(ready.reason or "invalid")
            elif draft.key in stored or draft.key in known:
                self._done.duplicates += 1
            else:
                self._done.stored += 1
                known.add(draft.key or "")

    def _refuse(self, reason: str) -> None:
        self._done.refused[reason] = self._done.refused.get(reason, 0) + 1

    def _complete(self, stored: Sequence[tuple[BroughtStatement, Receipt]], stamp: Stamp | None) -> None:
        """Add what a draft cannot say: how often it was used elsewhere, and, for a person, that it is confirmed."""
        new = [(one, got.memory) for one, got in stored if got.memory is not None and _is_new(got)]
        changes = [(one, memory) for one, memory in new if one.use_count or one.last_used_at or self._confirm]
        if not changes:
            return
        is_person = self._confirm and self._context.is_person

        def work(tx: Transaction) -> None:
            for one, memory in changes:
                current = tx.get(Memory, memory.id)
                if current is None or current.is_archived:
                    continue
                changed = replace(current, use_count=one.use_count, last_used_at=one.last_used_at)
                if is_person:
                    status = one.status if one.status in ("confirmed", "pinned") else "confirmed"
                    changed = replace(changed.vouched_for(), status=status, verified_at=tx.stamp.at)
                if changed != current:
                    tx.put(changed, "verify" if is_person else "import")

        self._context.write(self._context.owned(), work, stamp=stamp)

    def _bring_others(self, tx: Transaction, brought: Brought) -> None:
        tasks = {task.name for task in tx.all(Task)}
        for task in brought.tasks:
            clean = self._clean_task(task)
            if clean is not None and clean.name not in tasks:
                tx.add(clean, "verify" if self._confirm and self._context.is_person else "import")
                tasks.add(clean.name)
                self._done.tasks += 1
        aliases = {alias.word for alias in tx.all(Alias)}
        for word, others in brought.aliases.items():
            folded = word.strip().lower()
            if folded and folded not in aliases and not redact(f"{word} {others}").found:
                tx.add(Alias(word=folded, expands_to=tuple(other.lower() for other in others)), "import")
                aliases.add(folded)
                self._done.aliases += 1
        self._bring_conflicts(tx, brought)

    def _bring_conflicts(self, tx: Transaction, brought: Brought) -> None:
        pairs = {frozenset((one.left, one.right)) for one in tx.all(Conflict)}
        for one in brought.disagreements:
            left, right = self._uids.get(one.left), self._uids.get(one.right)
            if left is None or right is None or left == right or frozenset((left, right)) in pairs:
                continue
            if by_uid(tx, left) is not None and by_uid(tx, right) is not None:
                at = one.detected_at or tx.stamp.at
                tx.add(
                    Conflict(left=left, right=right, type=one.type, detected_at=at, resolved_at=one.resolved_at),
                    "import",
                )
                pairs.add(frozenset((left, right)))
                self._done.conflicts += one.resolved_at is None

    def _clean_task(self, task: Task) -> Task | None:
        try:
            check_session_name(task.name)
        except InvalidInput:
            self._refuse("invalid")
            return None

        def clean(said: str) -> str:
            return redact(said, email=self._rules.redact_email, allow=self._rules.allow).text

        return replace(
            task,
            description=clean(task.description),
            milestone=None if task.milestone is None else clean(task.milestone),
            acceptance_criteria=tuple(map(clean, task.acceptance_criteria)),
        )


def _named(draft: Draft) -> Draft:
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
