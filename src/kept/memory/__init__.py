"""`Kept`: the facade, and the only place where the steps (writing, recall, upkeep, exchange, storage) meet.

Every verb is a short method that hands the held `Context` to a function of the module of its topic:

    write      remember, change, let go                  sessions   conversations
    read       recall, why, get, list                    tasks      pieces of work
    brief      briefings, messages for skills            knowledge  typed knowledge, promotion
    undo       history, undo                             reviews    memories to look at again
    manage     conflicts, aliases, pauses                upkeep     quarantine, shelf life, limits
    narratives the story of a memory                     store      status, backups; imports: transcripts

Less frequent verbs live in small namespaces: `aliases`, `files`, `knowledge`, `pauses`, `reviews`, `store`, `vectors`.
Rule: a module is imported when a verb first needs it, so that one command from a shell loads little.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from kept.memory.context import Conflicts, Context, Events, Memories, Receipts, Ref, Sessions, Tasks
from kept.memory.signals import Subscriber
from kept.model import Briefing, Draft, Memory, Name, Recalled, Receipt, Source, Tier, Trust, several
from kept.settings import Settings

if TYPE_CHECKING:
    from kept.memory import brief as _brief
    from kept.memory import everywhere as _everywhere
    from kept.memory import files as _files
    from kept.memory import imports as _imports
    from kept.memory import knowledge as _knowledge
    from kept.memory import manage as _manage
    from kept.memory import narratives as _narratives
    from kept.memory import read as _read
    from kept.memory import receipts as _receipts
    from kept.memory import reviews as _reviews
    from kept.memory import sessions as _sessions
    from kept.memory import store as _store
    from kept.memory import tasks as _tasks
    from kept.memory import undo as _undo
    from kept.memory import upkeep as _upkeep
    from kept.memory import vectors as _vectors
    from kept.memory import write as _write
    from kept.memory.brief import Shared
    from kept.memory.erase import Erasable
    from kept.memory.files import ViewFiles
    from kept.memory.imports import ImportedTranscript
    from kept.memory.knowledge import Knowledge
    from kept.memory.manage import Aliases, Pauses
    from kept.memory.narratives import Narrative
    from kept.memory.read import ListStatus
    from kept.memory.receipts import Explained
    from kept.memory.reviews import Reviews
    from kept.memory.sessions import OpenSession
    from kept.memory.store import Store
    from kept.memory.tasks import OpenTask
    from kept.memory.upkeep import Upkept
    from kept.memory.vectors import Vectors
    from kept.recall import RecallScope
else:

    class _Topic:
        """A module of this package, imported when one of its names is first used."""

        def __init__(self, name):
            self._module = f"kept.memory.{name}"

        def __getattr__(self, name):
            return getattr(import_module(self._module), name)

    _brief, _imports, _knowledge, _manage = map(_Topic, ("brief", "imports", "knowledge", "manage"))
    _read, _reviews, _sessions, _store = map(_Topic, ("read", "reviews", "sessions", "store"))
    _tasks, _undo, _upkeep, _write, _narratives = map(_Topic, ("tasks", "undo", "upkeep", "write", "narratives"))
    _everywhere, _files, _receipts, _vectors = map(_Topic, ("everywhere", "files", "receipts", "vectors"))


class Kept:
    """A memory opened for one project, on behalf of one actor. Made by `kept.open`."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. Closing twice is allowed."""
        while self.context.at_close:
            self.context.at_close.pop()()
        self.context.spaces.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.context.settings

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(signal)` for every signal. Returns a function that ends the subscription."""
        return self.context.signals.subscribe(subscriber)

    # Remember

    def remember(
        self,
        content: str,
        *,
        kind: str = "fact",
        tags: Sequence[str] = (),
        files: Sequence[Name] = (),
        importance: float | None = None,
        pin: bool = False,
        tier: Tier = "project",
        topic: str | None = None,
        source: Source | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Keep one statement. The receipt says whether it was stored, strengthened another, or was refused, and why."""
        draft = Draft(
            content=content,
            kind=kind,
            tags=several(tags),
            files=several(files),
            importance=importance,
            pin=pin,
            tier=tier,
            topic=topic,
            source=source,
            key=key,
        )
        return _write.remember_many(self.context, [draft])[0]

    def remember_many(self, drafts: Iterable[Draft | str]) -> Receipts:
        """Keep many statements the same way, in batches; one receipt each, in order. A string is a fact."""
        return _write.remember_many(self.context, drafts)

    # Read

    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        profile: str | None = None,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        files: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        scope: "RecallScope" = "memory",
        follow: bool = False,
        by: Literal["message", "session"] = "message",
        packed: bool = False,
        session: str | None = None,
        all_projects: bool = False,
        agent: str | None = None,
    ) -> Recalled:
        """Find the memories that best match a few key words, with scores and reasons. Any text is a valid query.

        `files` are the files at hand: memories about them rank higher. `follow` adds memories that were recalled
        together with the hits before. `scope` "archive" searches archived memories, "sessions" conversations: by
        message, or `by` session, where each comes once. `packed` includes old, compressed sessions and takes longer.
        Messages have no kinds, tags or files: giving them with "sessions" raises InvalidInput. `session` is the one
        that asks: under the presets `conservative` and `manual` only it sees its findings that nobody promoted.
        `agent` searches only what this one wrote.
        `all_projects` asks every project of the home, for an admin; `hit.memory.space` says which one, and nothing is
        noted of it.
        """
        from kept.recall import Request

        request = Request(
            query=query,
            limit=limit,
            profile=profile,
            kinds=several(kinds),
            tags=several(tags),
            files=several(files),
            since=since,
            until=until,
            scope=scope,
            follow=bool(follow),  # it goes into the receipt
            by=by,
            packed=bool(packed),
            seen_by=self.context.seen_by(session),
            agent=agent,
        )
        return _everywhere.recall(self.context, request) if all_projects else _read.recall(self.context, request)

    def why(self, receipt: Ref | None = None) -> "Explained":
        """Explain a recall, the last one by default: its hits, its nearest misses, and the factors of each score."""
        return _receipts.explain(receipt, self.context.readable())

    def get(self, ref: Ref, *, forgotten: bool = False) -> Memory:
        """Return the memory with that ref, archived or not; a forgotten one only with `forgotten`. Raises NotFound."""
        return _read.get(self.context, ref, forgotten=forgotten)

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        status: "ListStatus | None" = None,
        limit: int = 50,
        after: Ref | None = None,
        agent: str | None = None,
        files: Sequence[str] = (),
        trusts: Sequence[Trust] = (),
    ) -> Memories:
        """List memories, newest first: the project's, then global ones. `after` is the last ref of the previous page.

        `status` None lists live memories; "archived" and "forgotten" list those. `agent`: only what this one wrote.
        """
        named = {"kinds": kinds, "tags": tags, "files": files, "trusts": trusts}
        return _read.list_memories(self.context, named, status=status, agent=agent, limit=limit, after=after)

    def briefing(
        self,
        prompt: str = "",
        *,
        budget_tokens: int | None = None,
        remaining_tokens: int | None = None,
        style: str = "xml",
        files: Sequence[str] = (),
        session: str | None = None,
        task: str | None = None,
        shares: Mapping[str, int] | None = None,
        head_tail: int = 0,
        max_chars: int | None = None,
    ) -> Briefing:
        """Write a text for an agent that is about to start; `str(briefing)` is empty when there is nothing to say.

        It takes at most `budget_tokens`, and 8 % of `remaining_tokens`, markup included; and at most `max_chars`.
        `style` is xml, markdown, text or json. `files` are those being worked on; `session` adds findings of its
        other agents, `task` the notes of that task. `shares` says how the tiers task, project and global share the
        recalled part, and `head_tail` puts that many of its newest and of its oldest first. Never raises: see `error`.
        """
        request = _brief.BriefingRequest(
            prompt=prompt,
            budget_tokens=budget_tokens,
            remaining_tokens=remaining_tokens,
            style=style,
            files=files,
            session=session,
            task=task,
            shares=shares,
            head_tail=head_tail,
            max_chars=max_chars,
        )
        return _brief.briefing(self.context, request)

    def share(
        self,
        *,
        to: str,
        action: str,
        query: str,
        project_context: str | None = None,
        budget_tokens: int | None = None,
        files: Sequence[str] = (),
    ) -> "Shared":
        """Write a message for a skill: memories that match `query`, and the project's pins and summaries.

        `project_context` replaces pins and summaries with your own words. The message as JSON takes at most
        `budget_tokens` (1,500 by default). Raises InvalidInput when not even its envelope fits.
        """
        return _brief.share(
            self.context,
            to=to,
            action=action,
            query=query,
            project_context=project_context,
            budget_tokens=budget_tokens,
            files=files,
        )

    def status(self) -> dict[str, Any]:
        """Return `actor`, who is asking; `paused`, each pause with its session (None: the project) and since when;
        `last_session` and what was kept of it; and `spaces`: counts and sizes for each readable space.

        Its keys: `space`, `memories` (live, pinned, candidates, archived, forgotten, proposed), `refused` (drafts by
        reason), `days` (recalled, refused and redacted, by day), `vectors`, `upkeep`, `recalls` (of the last hundred:
        n, p50_ms, p95_ms), `events`, `last_change`, and those of the storage: `storage`, `place`, `bytes` ….
        """
        return _store.status(self.context)

    # Change one memory

    def reinforce(self, ref: Ref) -> Memory:
        """Mark a memory as helpful: feedback +3, and its recency starts again."""
        return _write.reinforce(self.context, ref)

    def demote(self, ref: Ref) -> Memory:
        """Mark a memory as wrong, stale or irrelevant: feedback −1."""
        return _write.demote(self.context, ref)

    def revise(
        self,
        ref: Ref,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        *,
        kind: str | None = None,
        files: Sequence[Name] | None = None,
        importance: float | None = None,
        session: str | None = None,
    ) -> Memory:
        """Correct a memory in place. It keeps its id and its feedback and counts as verified now.

        `session` is the one in which an agent does so: a text that a tool said there keeps the trust of the tool.
        """
        given = {"content": content, "tags": tags, "kind": kind, "files": files, "importance": importance}
        wanted = {name: value for name, value in given.items() if value is not None}
        return _write.revise(self.context, ref, wanted, session=session)

    def pin(self, ref: Ref) -> Memory:
        """Put this memory into every briefing."""
        return _write.pin(self.context, ref)

    def unpin(self, ref: Ref) -> Memory:
        """End a pin. The memory stays confirmed."""
        return _write.unpin(self.context, ref)

    def forget(self, ref: Ref) -> Memory:
        """Hide a memory from every search, scope and export. `restore` or `undo` brings it back."""
        return _write.forget(self.context, ref)

    def restore(self, ref: Ref) -> Memory:
        """Bring an archived or forgotten memory back, with the status it had."""
        return _write.restore(self.context, ref)

    @overload  # a string is one ref, although it is iterable
    def erase(self, ref: "Erasable") -> Receipt: ...  # type: ignore[overload-overlap]
    @overload
    def erase(self, ref: "Iterable[Erasable]") -> Receipts: ...
    def erase(self, ref: "Erasable | Iterable[Erasable]") -> Receipt | Receipts:
        """Remove a memory, message, session, task or alias for good. This cannot be undone.

        No byte of it stays in the home; the journal keeps only the name of a session, task or alias. A message is
        given as such or by its ref (`session#12`), a session, task or alias as such. Copies, promotions, forks and
        quotations are erased with it, and are not captured again; `receipt.found` counts them by place. Several are
        erased in one group and with one cleaning of the files; the receipts come in their order.
        """
        from kept.memory import erase as _erase

        if isinstance(ref, Iterable) and not isinstance(ref, str | bytes | Mapping):
            return _erase.erase(self.context, ref)
        return _erase.erase(self.context, [ref])[0]  # type: ignore[list-item]  # which is refused if it is nothing of ours

    def promote(self, ref: Ref, to: Tier = "project") -> Receipt:
        """Move a memory to a tier that lives longer: out of its task or session, or into global memory.

        It keeps its source, and the old ref then names the new memory. A text too long for the tier is refused: revise
        it first. A candidate stays one, unless a person promotes it.
        """
        return _knowledge.promote(self.context, ref, to)

    # Look back, and settle

    def history(self, ref: Ref | None = None, *, limit: int = 50, tier: Tier = "project") -> Events:
        """List the events of a memory, oldest first; without a ref, the newest of the project (or of global memory)."""
        return _undo.history(self.context, ref, limit=limit, tier=tier)

    def undo(self, event: Ref | None = None) -> Events:
        """Undo one call: the actor's newest that is not undone, or the one that `event` belongs to.

        An event is its number in the project's journal, or `g12` in the global one. Returns the events that did it.
        Undoing an undo redoes. Raises NotAllowed when a later change is in the way (it names the events) or when the
        changed memory has been erased.
        """
        return _undo.undo(self.context, event)

    def conflicts(self, *, resolved: bool = False) -> Conflicts:
        """List the open contradictions; with `resolved`, all of them."""
        return _manage.conflicts(self.context, resolved=resolved)

    def resolve(self, conflict: Ref, keep: Ref) -> Memory:
        """Settle a contradiction: `keep` stays and counts as verified, the other one is archived as superseded."""
        return _manage.resolve(self.context, conflict, keep)

    # Sessions, tasks, narratives

    def session(self, id: str | None = None, *, agent: str | None = None, parent: str | None = None) -> "OpenSession":
        """Open the session with that id, or begin a new one. What is remembered until its end names it as source."""
        return _sessions.run_session(self.context, id, agent=agent, parent=parent)

    def sessions(self) -> Sessions:
        """List all sessions of the project, oldest first."""
        return _sessions.list_sessions(self.context)

    def import_transcripts(
        self,
        program: str,
        path: Path | str | Sequence[Path],
        *,
        here: bool = False,
        since: datetime | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Sequence[ImportedTranscript]":
        """Import the transcripts in a folder, or in these files, in the order in which their sessions began.

        `here`: only sessions of this project; `since`: only files changed after that; `dry_run`: only count what is
        new. Doing it again adds what is new.
        """
        how = _imports.HowToImport(here=here, since=since, dry_run=dry_run)
        return _imports.import_transcripts(self.context, program, path, how, progress=progress)

    def task(
        self,
        id: str | None = None,
        *,
        description: str | None = None,
        milestone: str | None = None,
        priority: int | None = None,
        acceptance_criteria: Sequence[str] | None = None,
        blocked_by: Sequence[str] | None = None,
    ) -> "OpenTask":
        """Open the task with that id, or add it as pending; without an id, add a new one (TASK-001 …).

        The fields that are given are set. Priority 1 comes first. `blocked_by` are the ids of tasks that have to end
        before this one can begin.
        """
        wanted = {
            "description": description,
            "milestone": milestone,
            "priority": priority,
            "acceptance_criteria": acceptance_criteria,
            "blocked_by": blocked_by,
        }
        return _tasks.open_task(self.context, id, wanted)

    def tasks(self, *, milestone: str | None = None, archived: bool = False, query: str | None = None) -> Tasks:
        """List the tasks of the project, highest priority first; with `query`, those that match it, best first.

        When all tasks of a milestone have ended, they are archived and listed only with `archived`; a task without a
        milestone is archived when it ends.
        """
        return _tasks.list_tasks(self.context, milestone=milestone, archived=archived, query=query)

    def narrative(self, id: str | None = None, *, of: Ref | None = None) -> "Narrative":
        """Open the narrative with that id, to add to it and read it; or the narrative `of` a memory."""
        return _narratives.narrative(self.context, id, of)

    def upkeep(self, *, dry_run: bool = False) -> "Upkept":
        """Confirm or archive memories that are due, make room where a limit is exceeded, and pack old sessions.

        `dry_run` changes nothing and reports exactly what would be done now.
        """
        return _upkeep.run(self.context, dry_run=dry_run)

    # Namespaces

    @property
    def aliases(self) -> "Aliases":
        """Words that stand for others in a recall: add, remove, list."""
        return _manage.Aliases(self.context)

    @property
    def files(self) -> "ViewFiles":
        """The files beside the store that people read and edit: sync, status."""
        return _files.ViewFiles(self.context)

    @property
    def pauses(self) -> "Pauses":
        """Automatic capture and injection: pause, resume, status."""
        return _manage.Pauses(self.context)

    @property
    def vectors(self) -> "Vectors":
        """The vectors of profile `hybrid`: on, off, check, limits, status."""
        return _vectors.Vectors(self.context)

    @property
    def reviews(self) -> "Reviews":
        """Stale, duplicate and conflicting memories: list, apply."""
        return _reviews.Reviews(self.context)

    @property
    def knowledge(self) -> "Knowledge":
        """Typed shortcuts: add_decision, add_convention, add_failure, add_preference, add_pattern, and their lists."""
        return _knowledge.Knowledge(self.context)

    @property
    def store(self) -> "Store":
        """The store as a whole: backup, restore, export, scan, allow, configure, replay, pack_sessions."""
        return _store.Store(self.context)
