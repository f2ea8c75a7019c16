"""The store as a whole (`memory.store`), and its numbers: backups, export, a scan for secrets, a check of the files,
and switches.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from kept import access, text
from kept.errors import Corrupt, InvalidInput, NotAllowed, NotFound
from kept.memory import views
from kept.memory.context import Context, Ref
from kept.memory.receipts import past_latencies
from kept.model import (
    GLOBAL,
    PROPOSED,
    Allowance,
    Draft,
    Memory,
    Pause,
    Recalled,
    Redaction,
    Session,
    Tier,
    canonical_kind,
    replace,
    several,
)
from kept.ports import ANYWHERE, BackedUp, Restored, Shelf, Storage, Transaction, Where
from kept.projects.config import parse_text, set_value
from kept.projects.files import shown
from kept.recall.candidates import percentile
from kept.settings import Settings, as_mapping, resolve
from kept.storage import as_file, scrub, space_of
from kept.storage.shared import by_day, pages_of
from kept.upkeep import decisions
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.redact import REDACTED_FIELDS, redact, redact_draft

if TYPE_CHECKING:
    from kept.memory.bringing import BroughtIn
    from kept.memory.joiner import Joined
    from kept.memory.move import Moved
    from kept.memory.transfer import Exported
    from kept.storage import Finding as Finding


class Leak(Struct, frozen=True, kw_only=True):
    """What a scan found secrets in, by its ref: their kinds and counts, never the secrets.

    Not fixed, although that was asked: the secret is in the name of a task or alias, which the journal keeps.
    """

    ref: str
    found: tuple[Redaction, ...]
    is_fixed: bool = False


MOST_PROPOSED = 1_000  # that a status counts: more are not decided at once anyway


class Examined(Struct, frozen=True, kw_only=True):
    """What `doctor` did to one file, and found in it. A finding of level `problem` means damage or a loss."""

    space: str
    path: str
    repaired: "list[Finding]"
    findings: "list[Finding]"


class Store:
    """Everything that concerns the store as a whole (`memory.store`)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def backup(self, target: Path | str, *, tier: Tier = "project") -> BackedUp:
        """Write a verified copy of the project's store (or of the global one) to a new file, while others work."""
        storage = self._context.readable_tier(tier)
        if storage is None:
            raise NotFound("There is nothing to back up: nothing is kept here yet.")
        return as_file(storage).back_up(Path(target))

    def restore(self, source: Path | str, *, overwrite_newer: bool = False) -> Restored:
        """Replace the store with a backup. Asks first when that would lose changes, or is another project's.

        A backup of global memory goes to global memory, any other to the opened project. The store as it was is kept
        beside it, and memories erased since the backup was made stay erased.
        """
        context, source = self._context, Path(source)
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
            views.after_restore(
                context, context.spaces.ensure_shared() if is_global else context.spaces.ensure_project()
            )
            return restored
        if not is_global:
            access.check_own(context.actor_here(), storage.space)
        if not access.may_read(context.actor_here(), held):
            question = f"{shown(source)} holds the memory of another project ({held}). Replace this project's with it?"
            context.agree(question, to="take over the memory of another project")
            overwrite_newer = True
        views.before_restore(context, storage)
        try:
            restored = as_file(storage).restore_from(source, overwrite_newer=overwrite_newer)
        except NotAllowed as refusal:
            context.agree(f"{refusal.message} Restore it anyway?", to=f"restore it ({refusal.message.rstrip('.')})")
            restored = as_file(storage).restore_from(source, overwrite_newer=True)
        views.after_restore(context, storage)
        context.tell_write(storage, 0)
        return restored

    def export(self, *, archived: bool = False) -> Iterator[Memory]:
        """Every live memory, oldest first, the project's before global ones; with `archived`, then the archive's.

        Forgotten memories are never exported.
        """
        shelves: tuple[Shelf, ...] = ("live", "archive") if archived else ("live",)
        for shelf in shelves:
            for storage in self._context.readable():
                for page in pages_of(storage, Where(shelf=shelf, scope=None)):
                    self._context.tell_read(page)
                    yield from page

    def matching(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        session: str | None = None,
        before: datetime | None = None,
        shelf: Shelf = "live",
    ) -> list[Memory]:
        """All memories of the project that pass the filters, oldest first, to change them together."""
        storage = self._context.spaces.project()
        if storage is None or storage not in self._context.readable():
            return []
        wanted = tuple(map(canonical_kind, several(kinds)))
        where = Where(shelf=shelf, kinds=wanted, tags=several(tags), session=session, until=before)
        found = [memory for page in pages_of(storage, where) for memory in page]
        self._context.tell_read(found)
        return found

    def export_to(self, target: Path | str, *, format: str = "kept", with_forgotten: bool = False) -> "Exported":
        """Write everything without loss to a file that `merge` and `kept import` read: memories with their history,
        the archive, sessions, tasks, aliases, pauses. Forgotten memories only if asked for. Replaces the file.

        `format` markdown, obsidian (a new folder), praxis, server-memory or csv: the live memories, for other programs.
        """
        from kept.memory import transfer

        if format in transfer.EXPORTERS:
            return transfer.export_as(self._context, Path(target), format)
        if format != "kept":
            known = ", ".join(("kept", *transfer.EXPORTERS))
            raise InvalidInput(f"Unknown format {format!r}.", hint=f"Choose one of {known}.")
        return transfer.export_to(self._context, Path(target), with_forgotten=with_forgotten)

    def export_lines(self, *, with_forgotten: bool = False) -> Iterator[bytes]:
        """The lines of the same export, for a file of your own."""
        from kept.memory import transfer

        return transfer.export_lines(self._context, with_forgotten=with_forgotten)

    def merge(
        self, other: Path | str, *, dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> "Joined":
        """Join an export, another store or another home with this memory; doing it again changes nothing.

        Memories are the same if their uid is. The newer revision counts, feedback adds up, and what disagrees becomes a
        conflict. `dry_run` only counts.
        """
        from kept.memory import pieces, transfer

        with pieces.from_anywhere(self._context, Path(other)) as source:
            return transfer.join(self._context, source, dry_run=dry_run, progress=progress)

    def import_(
        self,
        path: Path | str,
        format: str | None = None,
        *,
        dry_run: bool = False,
        confirm: bool = False,
        from_project: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "BroughtIn":
        """Import the memory files of another program, recognised unless `format` names it; again adds what is new.

        They become candidates with their original dates, and are no more trusted than an agent's words. With `confirm`
        a person vouches for all of them. `from_project`: the name that a program which keeps several projects in one
        file has for this one; by default that of the folder.
        """
        from kept.memory import bringing

        place = Path(path)
        importer = bringing.importer_of(place, format)
        return bringing.bring_in(
            self._context,
            importer,
            place,
            dry_run=dry_run,
            confirm=confirm,
            from_project=from_project,
            progress=progress,
        )

    def move(self, to: str, *, tell: Callable[[str, int], None] = lambda what, number: None) -> "Moved":
        """Carry the project over to another place: a postgresql:// URL, `home`, or a new file. Global memory stays.

        History, ids and undo go along, and both sides are compared in the end. The original is left as it was; a move
        that was cut off goes on where it stopped. `tell` hears how far it got.
        """
        from kept.memory import move

        source = self._context.owned()
        with closing(self._context.spaces.destination(to)) as target:
            if (source.space, source.describe()["place"]) == (target.space, target.describe()["place"]):
                raise InvalidInput("The project is there already.")
            return move.move(source, target, at=self._context.now(), tell=tell)

    def scan(self, *, fix: bool = False) -> list[Leak]:
        """Look for secrets in everything that is stored, as a check on what older rules let through.

        In memories, messages, summaries of sessions, tasks and aliases. `fix` takes them out: what held one keeps its
        ref, and its earlier text is erased from its history.
        """
        from kept.memory.scan import scan_records

        rules = self._context.rules()
        leaks: list[Leak] = []
        for storage in self._context.readable():
            for memory in [memory for page in pages_of(storage, ANYWHERE) for memory in page]:
                redacted = redact_draft(memory.as_draft(), email=rules.redact_email, allow=rules.allow)
                if redacted.redactions:
                    if fix:
                        _replace_redacted(self._context, storage, memory, redacted.draft)
                    leaks.append(Leak(ref=memory.ref, found=redacted.redactions, is_fixed=fix))
            for found in scan_records(self._context, storage, fix=fix):
                leaks.append(Leak(ref=found.ref, found=found.found, is_fixed=found.is_fixed))
            if fix and leaks:
                scrub(storage)
        return leaks

    def allow(self, value: str, note: str = "") -> Allowance:
        """Store this value as it is from now on: it looks like a secret and is none. Only its digest is kept."""
        if len(value) < 4:
            raise InvalidInput("A value must have at least four characters to be taken for a secret.")
        check_text(note, "The note", MAX_NAME_CHARS)
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        note = redact(note).text
        self._context.owned()
        looks_like = ", ".join(dict.fromkeys(one.kind for one in redact(value).found)) or "nothing in particular"
        question = f"Store a value of {len(value)} characters as it is from now on? It looks like: {looks_like}."
        question += f" Note: {text.visible(note, keep_newlines=False)!r}." if note else ""
        self._context.agree_to_allow(question)
        with self._context.switching() as tx:
            known = next((one for one in tx.all(Allowance) if one.digest == digest), None)
            return known or tx.add(Allowance(digest=digest, note=note), "allow")

    def doctor(self, *, deep: bool = False, fix: bool = False) -> list[Examined]:
        """Examine the files of the project and of global memory. `fix` repairs first what can be repaired.

        Opens no store, since a damaged one could not be opened, and changes nothing without `fix`. `deep` compares
        every memory with its journal and its index, and takes longer.
        """
        from kept import storage

        now, actor = self._context.now(), self._context.actor
        if actor.role == "skill":
            access.check_read(actor, GLOBAL)
        examined: list[Examined] = []
        for space, path in self._context.spaces.files():
            if actor.role == "project" and actor.project is None and space != GLOBAL:
                actor = replace(actor, project=space)
            access.check_read(actor, space)
            repaired = storage.repair(path, now=now) if fix else []
            findings = storage.examine(path, now=now, deep=deep)
            examined.append(Examined(space=space, path=str(path), repaired=repaired, findings=findings))
        if fix and not any(finding.level == "problem" for one in examined for finding in one.findings):
            from kept.memory.erase import finish_files

            finish_files(self._context)
        own = self._context.spaces.project() if self._context.spaces.is_in_database() else None
        if own is not None:
            from kept.storage import database

            access.check_read(self._context.actor_here(), own.space)
            place = own.describe()["place"]
            found = database.examine(own)
            examined.insert(0, Examined(space=own.space, path=place, repaired=[], findings=found))
        return examined

    def configure(self, name: str, value: str) -> Settings:
        """Change one setting for this project: at once, and in its settings file, if it has one.

        Raises SettingsError, and changes nothing, when the value is not valid.
        """
        context = self._context
        storage = context.owned()
        layers = [("settings", as_mapping(context.settings)), ("argument", {name: parse_text(name, value)})]
        changed = resolve(layers).settings
        if (file := context.spaces.settings_file()) is not None:
            set_value(file, name, value)
        context.settings = changed
        context.tell_write(storage, 0)
        return changed

    def replay(self, receipt: Ref | None = None) -> Recalled:
        """Ask a receipt's question again as of its moment, and note nothing. The same store gives the same answer."""
        from kept.memory import read

        return read.replay(self._context, receipt)

    def finish_sessions(self) -> list[str]:
        """Finish the sessions in which nothing was said for `session_idle_minutes`. Returns their ids."""
        from kept.memory import upkeep

        return upkeep.finish_sessions(self._context)

    def pack_sessions(self) -> list[str]:
        """Compress the sessions in which nothing was said for `session_retention_days`. Returns their ids."""
        from kept.memory import upkeep

        return upkeep.pack_sessions(self._context)


def status(context: Context) -> dict[str, Any]:
    """Numbers about what is kept, for each readable space."""
    spaces = []
    for storage in context.readable():
        with storage.reading() as reader:
            counts = {
                "live": reader.statistics(()).rows,
                "pinned": reader.count(Where(statuses=("pinned",))),
                "candidates": reader.count(Where(statuses=("candidate",))),
                "archived": reader.count(Where(shelf="archive", scope=None)),
                "forgotten": reader.count(Where(shelf="forgotten", scope=None)),
                "proposed": len(reader.search(text.words(PROPOSED)[:1], Where(tags=(PROPOSED,)), limit=MOST_PROPOSED)),
            }
            newest = reader.events(newest_first=True, limit=1)
            counters = reader.counters()
            vectors = reader.vector_state()
            took_ms = past_latencies(reader)
        spaces.append(
            {
                "space": storage.space,
                "memories": counts,
                "refused": {
                    name.removeprefix("refused:"): number
                    for name, number in sorted(counters.items())
                    if name.startswith("refused:")
                },
                "days": by_day(counters),
                "vectors": to_builtins(vectors),
                "upkeep": _upkeep(counters),
                "recalls": _recalls(took_ms),
                "events": newest[0].seq if newest else 0,
                "last_change": newest[0].at if newest else None,
                **storage.describe(),
            }
        )
    paused = [{"session": pause.session, "since": pause.since} for pause in context.of_project(Pause)]
    return {
        "actor": context.actor_here(),
        "paused": paused,
        "last_session": _last_session(context),
        "spaces": spaces,
    }


def _last_session(context: Context) -> dict[str, Any] | None:
    """The session that began last, and how many memories of which kind were taken out of it."""
    from kept.memory.findings import findings_of

    storage = context.spaces.project()
    if storage is None:
        return None
    with storage.reading() as reader:
        last = max(reader.all(Session), key=lambda session: session.started_at, default=None)
        if last is None:
            return None
        kept = Counter(memory.kind for memory in findings_of(reader, last.name))
    return {"id": last.name, "agent": last.agent, "started_at": last.started_at, "kept": dict(kept.most_common())}


def _recalls(took_ms: Sequence[float]) -> dict[str, Any]:
    """C15: how many of the last hundred recalls are known, and how long they took."""
    if not took_ms:
        return {"n": 0, "p50_ms": None, "p95_ms": None}
    return {"n": len(took_ms), "p50_ms": percentile(took_ms, 0.5), "p95_ms": percentile(took_ms, 0.95)}


def _upkeep(counters: Mapping[str, int]) -> dict[str, Any]:
    """The state of automatic upkeep: when it last finished a round, and what has failed since."""
    come = decisions.read(counters)
    return {
        "finished_at": come.finished_at,
        "is_under_way": come.cursor > 0 or come.evict_to > 0,
        "is_crowded": bool(come.is_crowded),
        "errors": dict(come.errors),
        "failed_at": come.failed_at,
    }


def _replace_redacted(context: Context, storage: Storage, memory: Memory, draft: Draft) -> None:
    def work(tx: Transaction) -> None:
        current = tx.get(Memory, memory.id)
        if current is None:
            return
        tx.erase(current)
        fields = {name: getattr(draft, name) for name in REDACTED_FIELDS}
        clean = replace(current, **fields, fingerprint=text.fingerprint(draft.content), updated_at=tx.stamp.at)
        tx.add(clean, "redact")

    context.write(storage, work, urgent=True)
    context.tell_write(storage, 0)
