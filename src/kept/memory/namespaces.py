"""The namespaces of `Kept`: small groups of verbs, such as `memory.aliases.add`.

Each method builds the request of its verb and performs it; the rules are in the modules of their topics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kept.memory import moved, verbs
from kept.memory.context import Context, Memories, Ref
from kept.memory.verbs import perform
from kept.model import Alias, Allowance, AnyRef, Draft, Memory, Pause, Recalled, Receipt, Tier, as_refs, several
from kept.settings import Settings

if TYPE_CHECKING:
    from kept.errors import MovedAway
    from kept.memory.bringing import ImportReport
    from kept.memory.files import ViewStatus
    from kept.memory.host_notes import HostState
    from kept.memory.joiner import MergeReport
    from kept.memory.layout import Layout
    from kept.memory.library import Extraction
    from kept.memory.move import MoveReport
    from kept.memory.note_writer import NoteReading
    from kept.memory.reviews import Review
    from kept.memory.store import FileCheck, Leak
    from kept.memory.team import TeamStatus
    from kept.memory.team_state import TeamExchange, TeamMember
    from kept.memory.transfer import ExportReport
    from kept.memory.views import SyncReport
    from kept.ports import BackupReport, RestoreReport, Shelf
    from kept.upkeep.review import Decision, ReviewReason

PathOrName = Path | str
Progress = Callable[[int, int], None]
MOST = 100
MOST_ITEMS = 1_000


class Namespace:
    """A group of verbs of one opened memory."""

    def __init__(self, context: Context) -> None:
        self._context = context


class Aliases(Namespace):
    """Words that stand for others in a recall (`memory.aliases`)."""

    def add(self, word: str, *expands_to: str | Iterable[str]) -> Alias:
        """Let a query for `word` find memories that hold one of the others as well: strings, or a list of them."""
        others = tuple(other for given in expands_to for other in several(given))
        return perform(self._context, verbs.switches.ADD_ALIAS, verbs.switches.AddAlias(word=word, expands_to=others))

    def remove(self, word: str) -> None:
        """Let a query for the word search for no other, also if Kept brings some. Raises NotFound."""
        perform(self._context, verbs.switches.REMOVE_ALIAS, verbs.switches.RemoveAlias(word=word))

    def list(self, word: str | None = None, *, own: bool = False) -> dict[str, tuple[str, ...]]:
        """List every word that a query expands, or this one, with the words that it searches as well.

        `own`: only words that were added here, not those that Kept brings.
        """
        return perform(self._context, verbs.switches.LIST_ALIASES, verbs.switches.ListAliases(word=word, own=own))


class Pauses(Namespace):
    """Automatic capture and injection, off and on (`memory.pauses`). Explicit commands always work."""

    def pause(self, session: str | None = None) -> Pause:
        """Capture and inject nothing automatically, in the project or in one session."""
        return perform(self._context, verbs.switches.PAUSE, verbs.switches.PauseHere(session=session))

    def resume(self, session: str | None = None) -> bool:
        """End a pause. Returns False if there was none."""
        return perform(self._context, verbs.switches.RESUME, verbs.switches.PauseHere(session=session))

    def status(self, session: str | None = None) -> bool:
        """Return True if the project or that session is paused."""
        return perform(self._context, verbs.switches.IS_PAUSED, verbs.switches.PauseHere(session=session))


class Reviews(Namespace):
    """Memories to look at again, and decisions about them (`memory.reviews`)."""

    def list(self, *, limit: int = 20, reasons: "Sequence[ReviewReason]" = ()) -> "Review":
        """List stale, unused, duplicate, contradicted and irrelevant memories, each with a reason and a proposal.

        Only memories that this actor may change. `reasons` filters the list; `counts` covers all. Changes nothing.
        """
        asked = verbs.contradictions.ListReviews(limit=limit, reasons=tuple(reasons))
        return perform(self._context, verbs.contradictions.REVIEW, asked)

    def apply(self, decisions: "Iterable[Decision | str]") -> Memories:
        """Carry out all decisions, or none. Returns the changed memories, in order.

        A decision is a `Decision`, or its text: `keep:3` (it stays, and counts as verified now; so does what it
        contradicts or nearly repeats), `archive:5`, `forget:7`, `supersede:9=3` (3 holds and takes over the tags and
        files of 9, and 9 is archived), or `promote:4`, which moves it into global memory. A promotion is a group of
        its own, and comes first.
        """
        given = (decisions,) if isinstance(decisions, str) else tuple(decisions)
        return perform(self._context, verbs.contradictions.DECIDE, verbs.contradictions.Decide(given=given))

    def propose(self, draft: Draft) -> Receipt:
        """Store a draft for global memory in the project instead, and ask about it in the next review.

        For agents whose host cannot ask a person now.
        """
        return perform(
            self._context,
            verbs.contradictions.PROPOSE,
            verbs.contradictions.Propose(content=draft.content, draft=draft),
        )


class Files(Namespace):
    """The files beside the store that people read and edit, and items of the project's files (`memory.files`)."""

    def sync(self, ask: Callable[[str, Sequence[str]], bool] | None = None) -> "list[SyncReport]":
        """Take in edits of people, and write every file as it should be.

        `ask(question, lines)` decides about edits that need a person: many lines gone at once, and every edit of a
        file in a repository. Without it, the first wait, and the second become candidates of unknown trust. Raises
        an error for an obstacle such as a symbolic link.
        """
        return perform(self._context, verbs.views.SYNC, verbs.views.Sync(ask=ask))

    def agents(self, *, remove: bool = False, ask: Callable[[str, Sequence[str]], bool] | None = None) -> "SyncReport":
        """Write confirmed memories of the project into a block of AGENTS.md, or take the block out.

        `ask(question, lines)` decides about edits that people made inside the block. Without it, they wait.
        """
        return perform(self._context, verbs.views.AGENTS, verbs.views.WriteAgents(remove=remove, ask=ask))

    def take_edits(self) -> "list[SyncReport]":
        """Take in edits that people made since the files were written, where no person can be asked. Never raises."""
        return self._read_edits(is_accompanied=False)

    def accompany(self) -> "list[SyncReport]":
        """Take edits in now, and write the files again on closing if anything was changed until then."""
        return self._read_edits(is_accompanied=True)

    def _read_edits(self, *, is_accompanied: bool) -> "list[SyncReport]":
        from kept.memory import views  # a prompt does without it, and the verbs of files bring more along

        return views.accompany(self._context) if is_accompanied else views.take_edits(self._context)

    def read_notes(
        self, environ: Mapping[str, str], *, agent: str = "", session: str | None = None, only: Sequence[str] = ()
    ) -> "list[NoteReading]":
        """Read the notes that agents keep of this project in their own memories, and write nothing there.

        Of all hosts whose setting is on, or of those in `only`. `agent` and `session` have just worked. The background
        process of the hooks calls it.
        """
        return verbs.views.read_notes(self._context, environ, agent=agent, session=session, only=only)

    def note_readers(self, environ: Mapping[str, str]) -> "list[HostState]":
        """Return for each host whether its notes are read, where they are, and how many were read."""
        return verbs.views.note_readers(self._context, environ)

    def status(self) -> "list[ViewStatus]":
        """Return where each file is, and whether it has edits."""
        return perform(self._context, verbs.views.VIEWS, verbs.views.ListViews())

    def extract(
        self, paths: Sequence[PathOrName] = (), *, sources: bool = True, progress: Progress | None = None
    ) -> "Extraction":
        """Take items out of the project's files, or of those below `paths`: decisions, tasks, notes, claims, entities.

        With `sources`, the files also become searchable as a whole, in pieces (scope `sources`). Only files changed
        since the last time are read; items of deleted files expire.
        """
        asked = verbs.views.Extract(paths=several(paths), sources=sources, progress=progress)
        return perform(self._context, verbs.views.EXTRACT, asked)

    def items(self, *, type: str | None = None, source: str | None = None, limit: int = MOST_ITEMS) -> Memories:
        """List items by file and line: of one type (entity, claim, task, decision, note), of one file or folder."""
        asked = verbs.views.ListItems(type=type, source=source, limit=limit)  # type: ignore[arg-type]
        return perform(self._context, verbs.views.ITEMS, asked)

    def write_brain(self, folder: PathOrName) -> "Layout":
        """Write the memory of this project in Brain's layout, by agent, into a new folder."""
        asked = verbs.exchange.WriteBrain(folder=str(folder))
        return perform(self._context, verbs.exchange.WRITE_BRAIN, asked)


class TeamMemory(Namespace):
    """Memories shared through a git ref of the repository's remote (`memory.team`)."""

    def share(self, refs: AnyRef | Sequence[AnyRef]) -> Memories:
        """Mark confirmed memories of the project, to be sent to teammates with the next push."""
        given = as_refs(refs, "refs")
        return perform(self._context, verbs.team.SHARE, verbs.team.ShareMemories(refs=given))

    def unshare(self, refs: AnyRef | Sequence[AnyRef]) -> Memories:
        """Take memories back from teammates with the next push; they stay here."""
        given = as_refs(refs, "refs")
        return perform(self._context, verbs.team.UNSHARE, verbs.team.ShareMemories(refs=given))

    def push(self, remote: str | None = None) -> "TeamExchange":
        """Pull, then send the shared memories. Raises StorageError if the remote does not take them."""
        return perform(self._context, verbs.team.PUSH, verbs.team.TeamRemote(remote=remote))

    def pull(self, remote: str | None = None) -> "TeamExchange":
        """Fetch the memories that teammates have shared, and join them with this project."""
        return perform(self._context, verbs.team.PULL, verbs.team.TeamRemote(remote=remote))

    def trust(self, author: str, *, remove: bool = False) -> "TeamMember":
        """Accept an author of shared memories as a teammate, after a person's yes; `remove` ends that."""
        return perform(self._context, verbs.team.TRUST, verbs.team.TrustAuthor(author=author, remove=remove))

    def status(self, remote: str | None = None) -> "TeamStatus":
        """Return which memories are shared, and whose statements wait to be accepted. The remote is not asked."""
        return perform(self._context, verbs.team.STATUS, verbs.team.TeamRemote(remote=remote))


class Vectors(Namespace):
    """The vectors that profile `hybrid` compares (`memory.vectors`)."""

    def check(self, model: PathOrName | None = None) -> str | None:
        """Raise SettingsError, which says what to do, unless vectors can be made here; by that model, if one is named.

        A model is `all-MiniLM-L6-v2`, or a folder that holds model.onnx and tokenizer.json. Returns the value that the
        setting `vector_model` has to have for it to stay.
        """
        return verbs.upkeep.check_model(self._context, model)

    def on(self, *, model: PathOrName | None = None, progress: Progress | None = None) -> None:
        """Make a vector for every memory that has none; recall compares them from now on, also when opened again.

        `progress(done, total)` is called along the way. With another `model` than before, every memory gets a new one,
        and this memory compares by it until it is closed; the setting `vector_model` is for good. Writes in small turns
        and lets others go first. After an interruption the next call continues from there.
        """
        asked = verbs.upkeep.VectorsOn(model=None if model is None else str(model), progress=progress)
        perform(self._context, verbs.upkeep.VECTORS_ON, asked)

    def keep_up(self) -> None:
        """Make vectors for new memories, where vectors are on. The background process of the hooks calls it."""
        verbs.upkeep.keep_vectors(self._context)

    def off(self) -> None:
        """Recall by words only, and remove the vectors of the project. Those of global memory stay."""
        perform(self._context, verbs.upkeep.VECTORS_OFF, verbs.upkeep.Nothing())

    def limits(self, *, measured: bool = False) -> list[str]:
        """Return sentences on what the model cannot do in time; `measured` times a conversation as well."""
        return verbs.upkeep.vector_limits(self._context, measured=measured)

    def status(self) -> dict[str, dict[str, Any]]:
        """Return, for each readable space, the model of its vectors, and how many memories have one."""
        return perform(self._context, verbs.upkeep.VECTOR_STATES, verbs.upkeep.Nothing())


class Knowledge(Namespace):
    """Typed shortcuts (`memory.knowledge`). Each is a `remember` or a list of one kind."""

    def add_decision(self, decision: str, tags: Sequence[str] = ()) -> Receipt:
        """Store a decision of this project."""
        return self._remember(decision, "decision", several(tags))

    def add_convention(self, convention: str, scope: str) -> Receipt:
        """Store how things are done in this project; `scope` says where it holds: python, tests, commits …"""
        return self._remember(convention, "convention", (scope,))

    def add_failure(self, failure: str, lesson: str, *, tags: Sequence[str] = (), files: Sequence[str] = ()) -> Receipt:
        """Store an error and its lesson.

        `failure` is the message of an error, or an output that contains it. Numbers, paths and times, which change
        from run to run, are no part of the signature by which `failures` finds it again.
        """
        asked = verbs.knowledge.AddFailure(failure=failure, lesson=lesson, tags=several(tags), files=several(files))
        return perform(self._context, verbs.knowledge.ADD_FAILURE, asked)

    def decisions(self, tags: Sequence[str] = (), *, limit: int = MOST) -> Memories:
        """List the decisions of this project, newest first; with `tags`, only those that have one of them."""
        return verbs.knowledge.decisions(self._context, tags, limit=limit)

    def failures(self, like: str = "", *, limit: int = MOST) -> Memories:
        """List the errors of this project, newest first; with `like`, only the same error as in that output."""
        asked = verbs.knowledge.ListFailures(like=like, limit=limit)
        return perform(self._context, verbs.knowledge.FAILURES, asked)

    def add_preference(self, preference: str, category: str) -> Receipt:
        """Store a preference of the person, for all projects. They are asked first; `category` is style, tools …"""
        return self._remember(preference, "preference", (category,), "global")

    def add_pattern(self, pattern: str, domain: str) -> Receipt:
        """Store a pattern that will work in other projects. They are asked only if it may be a tool's text."""
        return self._remember(pattern, "pattern", (domain,), "global")

    def preferences(self, category: str | None = None, *, limit: int = MOST) -> Memories:
        """List the preferences of the person, newest first; of one category, or of all."""
        return verbs.knowledge.preferences(self._context, category, limit=limit)

    def clear_all(self) -> int:
        """Forget all of global memory, once a person has said yes. Returns how many memories. Can be undone."""
        return perform(self._context, verbs.knowledge.CLEAR_ALL, verbs.knowledge.ClearAll())

    def _remember(self, content: str, kind: str, tags: tuple[str, ...], tier: Tier = "project") -> Receipt:
        asked = verbs.remember.Remember(content=content, kind=kind, tags=tags, tier=tier)
        return perform(self._context, verbs.remember.REMEMBER, asked)


class Store(Namespace):
    """The store as a whole (`memory.store`)."""

    def backup(self, target: PathOrName, *, tier: Tier = "project") -> "BackupReport":
        """Write a verified copy of the project's store (or of the global one) to a new file, while others work."""
        return perform(self._context, verbs.upkeep.BACKUP, verbs.upkeep.Backup(target=str(target), tier=tier))

    def restore(self, source: PathOrName, *, overwrite_newer: bool = False) -> "RestoreReport":
        """Replace the store with a backup. Asks first when that would lose changes, or is another project's.

        A backup of global memory goes to global memory, any other to the opened project. The store as it was is kept
        beside it, and memories erased since the backup was made stay erased.
        """
        asked = verbs.upkeep.RestoreBackup(source=str(source), overwrite_newer=overwrite_newer)
        return perform(self._context, verbs.upkeep.RESTORE_BACKUP, asked)

    def moved_away(self) -> "MovedAway | None":
        """Return the error that a write gets where the project was before a move; None where it is."""
        return moved.moved_away(self._context)

    def export(self, *, archived: bool = False) -> Iterator[Memory]:
        """Return every live memory, oldest first, the project's before global ones; with `archived`, also the archive.

        Forgotten memories are never exported.
        """
        return perform(self._context, verbs.exchange.EXPORT, verbs.exchange.Export(archived=archived))

    def export_to(
        self, target: PathOrName, *, format: str = "kept", with_forgotten: bool = False, sessions: bool = False
    ) -> "ExportReport":
        """Write everything without loss to a file that `merge` and `kept import` read: memories with their history,
        the archive, sessions, tasks, aliases, pauses. Forgotten memories only if asked for. Replaces the file.

        `format` markdown, obsidian (a new folder), praxis, server-memory or csv: the live memories, for other programs.
        `sessions`: for praxis, a new folder with the findings of each session as well.
        """
        asked = verbs.exchange.ExportTo(
            target=str(target), format=format, with_forgotten=with_forgotten, sessions=sessions
        )
        return perform(self._context, verbs.exchange.EXPORT_TO, asked)

    def export_lines(self, *, with_forgotten: bool = False) -> Iterator[bytes]:
        """Return the lines of the same export, for a file of your own."""
        return verbs.exchange.export_lines(self._context, with_forgotten=with_forgotten)

    def merge(self, other: PathOrName, *, dry_run: bool = False, progress: Progress | None = None) -> "MergeReport":
        """Join an export, another store or another home with this memory; doing it again changes nothing.

        Memories are the same if their uid is. The newer revision counts, feedback adds up, and disagreements become
        conflicts. `dry_run` only counts.
        """
        asked = verbs.exchange.Merge(other=str(other), dry_run=dry_run, progress=progress)
        return perform(self._context, verbs.exchange.MERGE, asked)

    def import_(
        self,
        path: PathOrName,
        format: str | None = None,
        *,
        dry_run: bool = False,
        confirm: bool = False,
        from_project: str | None = None,
        progress: Progress | None = None,
    ) -> "ImportReport":
        """Import the memory files of another program, recognised unless `format` names it; again adds new ones.

        They become candidates with their original dates, and are no more trusted than an agent's words. With `confirm`
        a person vouches for all of them. `from_project`: the name that a program which keeps several projects in one
        file has for this one; by default that of the folder.
        """
        asked = verbs.exchange.ImportFrom(
            path=str(path),
            format=format,
            dry_run=dry_run,
            confirm=confirm,
            from_project=from_project,
            progress=progress,
        )
        return perform(self._context, verbs.exchange.IMPORT, asked)

    def move(self, to: str, *, tell: Callable[[str, int], None] | None = None) -> "MoveReport":
        """Carry the project over to another place: a postgresql:// URL, `home`, or a new file. Global memory stays.

        History, ids and undo go along, and both sides are compared in the end. The original is left as it was; a move
        that was cut off goes on where it stopped. `tell` is called with the progress.
        """
        return perform(self._context, verbs.exchange.MOVE, verbs.exchange.Move(to=to, tell=tell))

    def scan(self, *, fix: bool = False) -> "list[Leak]":
        """Look for secrets in everything that is stored, as a check on what older rules let through.

        In memories, messages, summaries of sessions, tasks and aliases. `fix` takes them out: the record keeps its
        ref, and its earlier text is erased from its history.
        """
        return perform(self._context, verbs.upkeep.SCAN, verbs.upkeep.Scan(fix=fix))

    def allow(self, value: str, note: str = "") -> Allowance:
        """Store this value as it is from now on: it only looks like a secret. Only its digest is kept."""
        return perform(self._context, verbs.switches.ALLOW, verbs.switches.Allow(value=value, note=note))

    def doctor(self, *, deep: bool = False, fix: bool = False) -> "list[FileCheck]":
        """Examine the files of the project and of global memory. `fix` repairs first what can be repaired.

        Opens no store, since a damaged one could not be opened, and changes nothing without `fix`. `deep` compares
        every memory with its journal and its index, and takes longer.
        """
        return perform(self._context, verbs.upkeep.DOCTOR, verbs.upkeep.Doctor(deep=deep, fix=fix))

    def configure(self, setting: str, value: str) -> Settings:
        """Change one setting for this project or user: at once, and in its settings file.

        A store in one file has none: open it with `settings`. Raises SettingsError, and changes nothing, when the value
        is not valid, or for a user in a database.
        """
        asked = verbs.switches.Configure(setting=setting, value=value)
        return perform(self._context, verbs.switches.CONFIGURE, asked)

    def replay(self, receipt: Ref | None = None) -> Recalled:
        """Ask a receipt's question again as of its moment, and note nothing. The same store gives the same answer."""
        return perform(self._context, verbs.recall.REPLAY, verbs.recall.Why(receipt=receipt))

    def matching(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        session: str | None = None,
        before: datetime | None = None,
        shelf: "Shelf" = "live",
    ) -> list[Memory]:
        """Return all memories of the project that pass the filters, oldest first, to change them together."""
        return verbs.upkeep.matching(self._context, kinds=kinds, tags=tags, session=session, before=before, shelf=shelf)

    def finish_sessions(self) -> list[str]:
        """Finish the sessions in which nothing was said for `session_idle_minutes`. Returns their ids."""
        return perform(self._context, verbs.upkeep.FINISH_SESSIONS, verbs.upkeep.Nothing())

    def follow_code(self) -> None:
        """Find moved files and merged branches of memories. The background process of the hooks calls it."""
        verbs.upkeep.follow_code(self._context)

    def pack_sessions(self) -> list[str]:
        """Compress the sessions in which nothing was said for `session_retention_days`. Returns their ids."""
        return perform(self._context, verbs.upkeep.PACK_SESSIONS, verbs.upkeep.Nothing())


class Namespaces:
    """All namespaces of one opened memory."""

    def __init__(self, context: Context) -> None:
        self.aliases = Aliases(context)
        self.files = Files(context)
        self.pauses = Pauses(context)
        self.team = TeamMemory(context)
        self.vectors = Vectors(context)
        self.reviews = Reviews(context)
        self.knowledge = Knowledge(context)
        self.store = Store(context)
