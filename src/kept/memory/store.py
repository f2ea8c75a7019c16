"""The store as a whole (`memory.store`), and its numbers: backups, export, a scan for secrets, a check of the files,
and switches.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kept import access, text
from kept.errors import Corrupt, InvalidInput, NotAllowed, NotFound
from kept.memory import change, views
from kept.memory.context import Context
from kept.memory.erase import finish_files
from kept.memory.scan import scan_records
from kept.model import (
    GLOBAL,
    REDACT,
    Allowance,
    Draft,
    Memory,
    Redaction,
    Rejection,
    Tier,
    canonical_kind,
    replace,
    several,
)
from kept.ports import ANYWHERE, BackupReport, RestoreReport, Shelf, Storage, Transaction, Where
from kept.projects.files import shown
from kept.storage import as_file, database, examine, repair, scrub, space_of
from kept.storage.shared import pages_of
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.redact import REDACTED_FIELDS, redact, redact_draft

if TYPE_CHECKING:
    from kept.storage import Finding as Finding


class Leak(Struct, frozen=True, kw_only=True):
    """What a scan found secrets in, by its ref: their kinds and counts, never the secrets.

    Not fixed, although that was asked: the secret is in the name of a task or alias, which the journal keeps.
    """

    ref: str
    found: tuple[Redaction, ...]
    is_fixed: bool = False


class FileCheck(Struct, frozen=True, kw_only=True):
    """What `doctor` did to one file, and found in it. A finding of level `problem` means damage or a loss."""

    space: str
    path: str
    repaired: "list[Finding]"
    findings: "list[Finding]"


def backup(context: Context, target: Path | str, *, tier: Tier = "project") -> BackupReport:
    """Write a verified copy of the project's store (or of the global one) to a new file, while others work."""
    storage = context.readable_tier(tier)
    if storage is None:
        raise NotFound("There is nothing to back up: nothing is kept here yet.")
    return as_file(storage).back_up(Path(target))


def restore_backup(context: Context, source: Path | str, *, overwrite_newer: bool = False) -> RestoreReport:
    """Replace the store with a backup. Asks first when that would lose changes, or is another project's.

    A backup of global memory goes to global memory, any other to the opened project. The store as it was is kept
    beside it, and memories that were erased, forgotten or rejected since the backup was made stay so.
    """
    source = Path(source)
    held = space_of(source)
    is_global = held == GLOBAL
    if is_global:
        question = f"Replace all of global memory with the backup {shown(source)}?"
        context.agree_for_all(question, to="replace all of global memory with a backup")
    try:
        storage = context.spaces.ensure_shared() if is_global else context.spaces.ensure_project()
    except Corrupt as damage:
        question = f"{damage.message} Replace it with {shown(source)}, and keep the damaged file beside it?"
        context.agree(question, to="replace a damaged store")
        restored = context.spaces.replace_damaged(source, shared=is_global)
        views.after_restore(context, context.spaces.ensure_shared() if is_global else context.spaces.ensure_project())
        return restored
    if not is_global:
        access.check_own(context.actor_here(), storage.space)
    if not access.may_read(context.actor_here(), held):
        question = f"{shown(source)} holds the memory of another project ({held}). Replace this project's with it?"
        context.agree(question, to="take over the memory of another project")
        overwrite_newer = True
    views.before_restore(context, storage)
    before = _count_live(storage)
    rejected = _rejections(storage)
    try:
        restored = as_file(storage).restore_from(source, overwrite_newer=overwrite_newer)
    except NotAllowed as refusal:
        context.agree(f"{refusal.message} Restore it anyway?", to=f"restore it ({refusal.message.rstrip('.')})")
        restored = as_file(storage).restore_from(source, overwrite_newer=True)
    if rejected != _rejections(storage):
        context.write(storage, lambda tx: change.reject_again(tx, rejected))
    views.after_restore(context, storage)
    context.tell_write(storage, _count_live(storage) - before)
    return restored


def _rejections(storage: Storage) -> list[Rejection]:
    with storage.reading() as reader:
        return reader.all(Rejection)


def _count_live(storage: Storage) -> int:
    """Return the number of live memories; 0 if the store is damaged."""
    with suppress(Corrupt), storage.reading() as reader:
        return reader.count(Where(scope=None))
    return 0


def export(context: Context, *, archived: bool = False) -> Iterator[Memory]:
    """Every live memory, oldest first, the project's before global ones; with `archived`, then the archive's.

    Forgotten memories are never exported.
    """
    shelves: tuple[Shelf, ...] = ("live", "archive") if archived else ("live",)
    sizes: Counter[str] = Counter()
    try:
        for shelf in shelves:
            for storage in context.readable():
                for page in pages_of(storage, Where(shelf=shelf, scope=None)):
                    sizes[storage.space] += sum(len(memory.content) for memory in page)
                    yield from page
    finally:  # after the verb has returned: its caller takes the memories one by one
        with context.signals.gathered("store.export"):
            context.signals.tell_read("memory", sizes.items())


def matching(
    context: Context,
    *,
    kinds: Sequence[str] = (),
    tags: Sequence[str] = (),
    session: str | None = None,
    before: datetime | None = None,
    shelf: Shelf = "live",
) -> list[Memory]:
    """All memories of the project that pass the filters, oldest first, to change them together."""
    storage = context.spaces.project()
    if storage is None or storage not in context.readable():
        return []
    wanted = tuple(map(canonical_kind, several(kinds)))
    where = Where(shelf=shelf, kinds=wanted, tags=several(tags), session=session, until=before)
    found = [memory for page in pages_of(storage, where) for memory in page]
    context.tell_read(found)
    return found


def scan(context: Context, *, fix: bool = False) -> list[Leak]:
    """Look for secrets in everything that is stored, as a check on what older rules let through.

    In memories, messages, summaries of sessions, tasks and aliases. `fix` takes them out: what held one keeps its
    ref, and its earlier text is erased from its history.
    """
    rules = context.rules()
    leaks: list[Leak] = []
    for storage in context.readable():
        for memory in [memory for page in pages_of(storage, ANYWHERE) for memory in page]:
            redacted = redact_draft(memory.as_draft(), email=rules.redact_email, allow=rules.allow)
            if redacted.redactions:
                if fix:
                    _replace_redacted(context, storage, memory, redacted.draft)
                leaks.append(Leak(ref=memory.ref, found=redacted.redactions, is_fixed=fix))
        for found in scan_records(context, storage, fix=fix):
            leaks.append(Leak(ref=found.ref, found=found.found, is_fixed=found.is_fixed))
        if fix and leaks:
            scrub(storage)
    return leaks


def allow(context: Context, value: str, note: str = "") -> Allowance:
    """Store this value as it is from now on: it looks like a secret and is none. Only its digest is kept."""
    if len(value) < 4:
        raise InvalidInput("A value must have at least four characters to be taken for a secret.")
    check_text(note, "The note", MAX_NAME_CHARS)
    digest = text.digest(value)
    note = redact(note).text
    context.owned()
    kinds = ", ".join(dict.fromkeys(one.kind for one in redact(value).found))
    looks = f"It looks like: {kinds}." if kinds else "It does not look like a known secret."
    question = f"Store a value of {len(value)} characters as it is from now on? {looks}"
    question += f" Note: {text.visible(note, keep_newlines=False)!r}." if note else ""
    context.agree_to_allow(question)
    with context.switching() as tx:
        known = next((one for one in tx.all(Allowance) if one.digest == digest), None)
        return known or tx.add(Allowance(digest=digest, note=note), "allow")


def doctor(context: Context, *, deep: bool = False, fix: bool = False) -> list[FileCheck]:
    """Examine the files of the project and of global memory. `fix` repairs first what can be repaired.

    Opens no store, since a damaged one could not be opened, and changes nothing without `fix`. `deep` compares
    every memory with its journal and its index, and takes longer.
    """
    now, actor = context.now(), context.actor
    if actor.role == "skill":
        access.check_read(actor, GLOBAL)
    examined: list[FileCheck] = []
    for space, path in context.spaces.files():
        if actor.role == "project" and actor.project is None and space != GLOBAL:
            actor = replace(actor, project=space)
        access.check_read(actor, space)
        repaired = repair(path, now=now) if fix else []
        findings = examine(path, now=now, deep=deep)
        examined.append(FileCheck(space=space, path=str(path), repaired=repaired, findings=findings))
    if fix and not any(map(_has_problem, examined)):
        finish_files(context)
    return [*_examined_database(context), *examined]


def _has_problem(examined: FileCheck) -> bool:
    return any(finding.level == "problem" for finding in examined.findings)


def _examined_database(context: Context) -> list[FileCheck]:
    """Examine the project's database, if it is in one."""
    own = context.spaces.project() if context.spaces.is_in_database() else None
    if own is None:
        return []
    access.check_read(context.actor_here(), own.space)
    return [FileCheck(space=own.space, path=own.describe()["place"], repaired=[], findings=database.examine(own))]


def _replace_redacted(context: Context, storage: Storage, memory: Memory, draft: Draft) -> None:
    def work(tx: Transaction) -> None:
        current = tx.get(Memory, memory.id)
        if current is None:
            return
        tx.erase(current)
        fields = {name: getattr(draft, name) for name in REDACTED_FIELDS}
        clean = replace(current, **fields, fingerprint=text.fingerprint(draft.content), updated_at=tx.stamp.at)
        tx.add(clean, REDACT)

    context.write(storage, work, urgent=True)
    context.tell_write(storage, 0)
