"""`Kept`: the facade, and the only place where the steps (writing, recall, upkeep, exchange, storage) meet.

Every method builds the request of its verb and performs it; `verbs/` declares each verb once, and every other door
(command line, MCP, HTTP, slash commands) is derived from the same rows. Less frequent verbs live in small namespaces:
`aliases`, `deliveries`, `files`, `knowledge`, `pauses`, `reviews`, `store`, `vectors`. Programs that show a memory read
through `look`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from kept.errors import expect
from kept.memory import verbs
from kept.memory.awaited import awaited
from kept.memory.context import Conflicts, Context, Events, Memories, Receipts, Ref, Sessions, Tasks
from kept.memory.signals import Subscriber
from kept.memory.verbs import A, Q, perform
from kept.model import (
    AnyRef,
    Briefing,
    CallGuard,
    Draft,
    GuardMode,
    Hit,
    Memory,
    Name,
    Recalled,
    Receipt,
    Source,
    Tier,
    Trust,
    as_ref,
    as_refs,
    several,
)
from kept.settings import Settings

if TYPE_CHECKING:
    from kept.memory.deliver import Deliveries
    from kept.memory.documents import Documents
    from kept.memory.erase import Erasable
    from kept.memory.imports import ImportedTranscript
    from kept.memory.judging import Addition, JudgeList, Judgement
    from kept.memory.look import Look
    from kept.memory.namespaces import (
        Aliases,
        Files,
        Knowledge,
        Namespaces,
        Pauses,
        Reviews,
        Store,
        TeamMemory,
        Vectors,
    )
    from kept.memory.narratives import ListedNarrative, Narrative
    from kept.memory.read import ListStatus, Page
    from kept.memory.receipts import RecallReceipt
    from kept.memory.sessions import Session
    from kept.memory.share import ShareResult
    from kept.memory.tasks import Task
    from kept.memory.upkeep import UpkeepReport
    from kept.memory.verbs.change import One
    from kept.memory.verbs.declare import Verb
    from kept.recall import RecallScope


class Kept:
    """A memory opened for one project, on behalf of one actor. Made by `kept.open`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kept.Kept: {self._context.spaces.project_name() or self._context.spaces.kind}>"

    def __len__(self) -> int:
        return verbs.read.count(self._context)

    def __bool__(self) -> bool:
        """Return True: a memory without memories is there all the same."""
        return True

    def __iter__(self) -> Iterator[Memory]:
        return verbs.read.every(self._context)

    def __contains__(self, ref: object) -> bool:
        return verbs.read.is_there(self._context, ref)

    def close(self) -> None:
        """Close the files. Closing twice is allowed."""
        while self._context.at_close:
            self._context.at_close.pop()()
        self._context.spaces.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._context.settings

    @property
    def is_in_database(self) -> bool:
        """Return True if the project is in a database, which a team can share. For hooks: loads nothing more."""
        return self._context.spaces.is_in_database()

    def perform(self, verb: "Verb[Q, A]", request: Q) -> A:
        """Perform a verb of `kept.memory.verbs`, for doors that are derived from its row."""
        return perform(self._context, verb, request)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(signal)` for every signal. Returns a function that ends the subscription."""
        expect(callable(subscriber), "subscriber", "a function that takes a signal", subscriber)
        return self._context.signals.subscribe(subscriber)

    def together(self) -> AbstractContextManager[str]:
        """Make all changes in a `with` block one group of the journal, which one `undo` takes back; gives its name."""
        return self._context.together()

    def look(self) -> "Look":
        """Return a read-only view, for programs that show the memory: nothing read through it is noted."""
        from kept.memory.look import Look  # brings recall and briefings along, which most verbs do without

        return Look(self._context)

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
        data: Mapping[str, Any] | None = None,
        session: str | None = None,
        also: Sequence[str] = (),
        replaces: AnyRef | Sequence[AnyRef] = (),
        check: str | None = None,
    ) -> Receipt:
        """Keep one statement. The receipt says whether it was stored, strengthened another, or was refused, and why.

        `also` are other words to find it by, `replaces` the memories that it ends, and `check` a file, symbol
        or command that shows whether it still holds; it is shown, and never run. `session` is one that was begun, else
        NotFound is raised. `data` are values of your program to
        keep with it; `list` and `recall` can filter by them.
        """
        if isinstance(session, str):
            verbs.sessions.check_known(self._context, session)
        asked = verbs.remember.Remember(
            content=content,
            kind=kind,
            tags=several(tags),
            files=several(files),
            also=several(also),
            replaces=as_refs(replaces, "replaces"),
            check=check,
            importance=importance,
            pin=pin,
            tier=tier,
            topic=topic,
            session=session,
            source=source,
            key=key,
            data=data,  # type: ignore[arg-type]  # checked with the request
        )
        return perform(self._context, verbs.remember.REMEMBER, asked)

    def remember_many(self, drafts: Iterable[Draft | str]) -> Receipts:
        """Keep many statements the same way, in batches; one receipt each, in order. A string is a fact."""
        return perform(self._context, verbs.remember.REMEMBER_MANY, verbs.remember.RememberMany(drafts=drafts))

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
        as_of: datetime | None = None,
        scope: "RecallScope" = "memory",
        follow: bool = False,
        by: Literal["message", "session"] = "message",
        packed: bool = False,
        session: str | None = None,
        all_projects: bool = False,
        agent: str | None = None,
        floor: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Recalled:
        """Find the memories that best match a few key words, with scores and reasons. Any text is a valid query.

        `files` are the files at hand: memories about them rank higher. `follow` adds memories that were recalled
        together with the hits before. `scope` "archive" searches archived memories, "sessions" conversations: by
        message, or `by` session, where each comes once. `packed` includes old, compressed sessions and takes longer.
        Messages have no kinds, tags or files: giving them with "sessions" raises InvalidInput. `session` is the one
        that asks: under the presets `conservative` and `manual` only it sees its findings that nobody promoted.
        `agent` searches only memories of this one. `floor` says how sure an answer must be: strict, normal or open.
        `as_of` answers from the memory of that moment, by the journal; erased text stays erased, and nothing is noted.
        `all_projects` asks every project of the home, for an admin; `hit.memory.space` says which one, and nothing is
        noted of it.
        """
        asked = verbs.recall.Recall(
            query=query,
            limit=limit,
            profile=profile,
            kinds=several(kinds),
            tags=several(tags),
            files=several(files),
            since=since,
            until=until,
            as_of=as_of,
            scope=scope,
            follow=bool(follow),
            by=by,
            packed=bool(packed),
            session=session,
            all_projects=bool(all_projects),
            agent=agent,
            floor=floor,
            data=data,  # type: ignore[arg-type]  # checked with the request
        )
        return perform(self._context, verbs.recall.RECALL, asked)

    def why(self, receipt: Ref | None = None) -> "RecallReceipt":
        """Explain a recall, the last one by default: its hits, its nearest misses, and the factors of each score."""
        return perform(self._context, verbs.recall.WHY, verbs.recall.Why(receipt=receipt))

    def get(self, ref: AnyRef, *, forgotten: bool = False) -> Memory:
        """Return the memory with that ref, archived or not; a forgotten one only with `forgotten`. Raises NotFound."""
        return perform(self._context, verbs.read.GET, verbs.read.Get(ref=as_ref(ref), forgotten=forgotten))

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        status: "ListStatus | None" = None,
        limit: int = 50,
        after: AnyRef | None = None,
        agent: str | None = None,
        files: Sequence[str] = (),
        trusts: Sequence[Trust] = (),
        session: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> "Page":
        """List memories, newest first: the project's, then global ones. `after` is the last one of the page before.

        `status` None lists live memories; "archived" and "forgotten" list those. `agent` and `session`: only
        memories that this agent wrote, or that come from this session. `data`: only with these values. The case of
        tags does not matter. `has_more` of the answer says that the limit was reached; `for one in memory` has none.
        """
        asked = verbs.read.ListMemories(
            kinds=several(kinds),
            tags=several(tags),
            files=several(files),
            trusts=several(trusts),  # type: ignore[arg-type]  # checked with the request
            status=status,
            limit=limit,
            after=None if after is None else as_ref(after),
            agent=agent,
            session=session,
            data=data,  # type: ignore[arg-type]  # checked with the request
        )
        return perform(self._context, verbs.read.LIST, asked)

    def find(
        self,
        words: str,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        files: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        status: "ListStatus | None" = None,
        limit: int | None = None,
    ) -> "Page":
        """Return all memories that contain the words, newest first, as a person searches: plain text, also inside
        other words, in content, title, tags and files. A "phrase in quotes" is found as it is written.

        `files` are paths, names of files, or folders. `recall` finds the few memories that fit a question best.
        """
        asked = verbs.read.Find(
            words=words,
            kinds=several(kinds),
            tags=several(tags),
            files=several(files),
            since=since,
            until=until,
            status=status,
            limit=limit,
        )
        return perform(self._context, verbs.read.FIND, asked)

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
        floor: str | None = None,
        as_of: datetime | None = None,
    ) -> Briefing:
        """Write a text for an agent that is about to start; `str(briefing)` is empty when there is nothing to say.

        It takes at most `budget_tokens`, and 8 % of `remaining_tokens`, markup included; and at most `max_chars`.
        `style` is xml, markdown, text or json. `files` are those being worked on; `session` adds findings of its
        other agents, `task` the notes of that task. `shares` says how the tiers task, project and global share the
        recalled part, and `head_tail` puts that many of its newest and of its oldest first. `floor` says how well a
        memory must fit the prompt: strict, normal or open. `as_of` writes it from the memory of that moment.
        Never raises: see `error`. People's edits of MEMORY.md and tasks.json are taken in first.
        """
        asked = verbs.brief.Brief(
            prompt=prompt,
            budget_tokens=budget_tokens,
            remaining_tokens=remaining_tokens,
            style=style,  # type: ignore[arg-type]  # checked with the request
            files=several(files),
            session=session,
            task=task,
            shares=None if shares is None else dict(shares),
            head_tail=head_tail,
            max_chars=max_chars,
            floor=floor,
            as_of=as_of,
        )
        if as_of is None:
            self.files.take_edits()
        return perform(self._context, verbs.brief.BRIEFING, asked)

    def share(
        self,
        *,
        to: str,
        action: str,
        query: str,
        project_context: str | None = None,
        budget_tokens: int | None = None,
        files: Sequence[str] = (),
    ) -> "ShareResult":
        """Write a message for a skill: memories that match `query`, and the project's pins and summaries.

        `project_context` replaces pins and summaries with your own words. The message as JSON takes at most
        `budget_tokens` (1,500 by default). Raises InvalidInput when not even its envelope fits.
        """
        asked = verbs.brief.Share(
            to=to,
            action=action,
            query=query,
            project_context=project_context,
            budget_tokens=budget_tokens,
            files=several(files),
        )
        return perform(self._context, verbs.brief.SHARE, asked)

    def status(self) -> dict[str, Any]:
        """Return `actor`, who is asking; `paused`, each pause with its session (None: the project) and since when;
        `last_session` and what was kept of it; and `spaces`: counts and sizes for each readable space.

        Its keys: `space`, `memories` (live, pinned, candidates, archived, forgotten, proposed), `refused` (drafts by
        reason), `days` (recalled, refused and redacted, by day), `vectors`, `upkeep`, `recalls` (of the last hundred:
        n, p50_ms, p95_ms), `events`, `last_change`, and those of the storage: `storage`, `place`, `bytes` ….
        """
        return perform(self._context, verbs.read.STATUS, verbs.read.Status())

    # Change one memory

    @overload  # a string is one ref, although it is iterable
    def reinforce(self, ref: AnyRef) -> Memory: ...  # type: ignore[overload-overlap]
    @overload
    def reinforce(self, ref: Iterable[AnyRef]) -> Memories: ...
    def reinforce(self, ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """Mark a memory, or several, as helpful: feedback +3, and its recency starts again."""
        return self._each(verbs.change.REINFORCE, ref)

    @overload
    def demote(self, ref: AnyRef) -> Memory: ...  # type: ignore[overload-overlap]
    @overload
    def demote(self, ref: Iterable[AnyRef]) -> Memories: ...
    def demote(self, ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """Mark a memory, or several, as wrong, stale or irrelevant: feedback −1."""
        return self._each(verbs.change.DEMOTE, ref)

    def revise(
        self,
        ref: AnyRef,
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
        asked = verbs.change.Revise(
            ref=as_ref(ref),
            content=content,
            tags=None if tags is None else several(tags),
            kind=kind,
            files=None if files is None else several(files),
            importance=importance,
            session=session,
        )
        return perform(self._context, verbs.change.REVISE, asked)

    @overload  # a string is one ref, although it is iterable
    def pin(self, ref: AnyRef) -> Memory: ...  # type: ignore[overload-overlap]
    @overload  # a string is one ref, although it is iterable
    def pin(self, ref: Iterable[AnyRef]) -> Memories: ...
    def pin(self, ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """Put this memory, or these, into every briefing."""
        return self._each(verbs.change.PIN, ref)

    def guard(self, ref: AnyRef, mode: GuardMode) -> CallGuard:
        """Refuse tool calls that this memory concerns, once each (`stop`), or only tell it there (`tell`)."""
        return perform(self._context, verbs.change.GUARD, verbs.change.MakeGuard(ref=as_ref(ref), mode=mode))

    @overload
    def unpin(self, ref: AnyRef) -> Memory: ...  # type: ignore[overload-overlap]
    @overload
    def unpin(self, ref: Iterable[AnyRef]) -> Memories: ...
    def unpin(self, ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """End a pin, or several. The memory stays confirmed."""
        return self._each(verbs.change.UNPIN, ref)

    @overload
    def forget(self, ref: AnyRef) -> Memory: ...  # type: ignore[overload-overlap]
    @overload
    def forget(self, ref: Iterable[AnyRef]) -> Memories: ...
    def forget(self, ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """Hide a memory, or several, from every search, scope and export. `restore` or `undo` brings all back."""
        return self._each(verbs.change.FORGET, ref)

    @overload
    def restore(self, ref: AnyRef) -> Memory: ...  # type: ignore[overload-overlap]
    @overload
    def restore(self, ref: Iterable[AnyRef]) -> Memories: ...
    def restore(self, ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """Bring an archived or forgotten memory back, or several, with the status they had."""
        return self._each(verbs.change.RESTORE, ref)

    def _each(self, verb: "Verb[One, Memory]", ref: AnyRef | Iterable[AnyRef]) -> Memory | Memories:
        """Change one memory, or several in one group of the journal. A ref that names none changes nothing."""
        if isinstance(ref, int | str | Memory | Hit) or not isinstance(ref, Iterable):
            return perform(self._context, verb, verbs.change.One(ref=as_ref(ref)))
        refs = [str(self._context.find(as_ref(one))[1].ref) for one in ref]
        with self.together():
            return [perform(self._context, verb, verbs.change.One(ref=one)) for one in refs]

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
        is_several = isinstance(ref, Iterable) and not isinstance(ref, str | bytes | Mapping)
        targets = tuple(ref) if is_several else (ref,)  # type: ignore[arg-type]
        receipts = perform(self._context, verbs.erasure.ERASE, verbs.erasure.Erase(targets=targets))
        return receipts if is_several else receipts[0]

    def promote(self, ref: AnyRef, to: Tier = "project") -> Receipt:
        """Move a memory to a tier that lives longer: out of its task or session, or into global memory.

        It keeps its source, and the old ref then names the new memory. A text too long for the tier is refused: revise
        it first. A candidate stays one, unless a person promotes it.
        """
        return perform(self._context, verbs.change.PROMOTE, verbs.change.Promote(ref=as_ref(ref), to=to))

    # Look back, and settle

    def history(self, ref: AnyRef | None = None, *, limit: int = 50, tier: Tier = "project") -> Events:
        """List the events of a memory, oldest first; without a ref, the newest of the project (or of global memory)."""
        asked = verbs.read.History(ref=None if ref is None else as_ref(ref), limit=limit, tier=tier)
        return perform(self._context, verbs.read.HISTORY, asked)

    def undo(self, event: Ref | None = None) -> Events:
        """Undo one call: the actor's newest that is not undone, or the one that `event` belongs to.

        An event is its number in the project's journal, or `g12` in the global one. Returns the events that did it.
        Undoing an undo redoes. Raises NotAllowed when a later change is in the way (it names the events) or when the
        changed memory has been erased.
        """
        return perform(self._context, verbs.change.UNDO, verbs.change.Undo(event=event))

    def conflicts(self, *, resolved: bool = False) -> Conflicts:
        """List the open contradictions; with `resolved`, all of them."""
        return perform(
            self._context, verbs.contradictions.CONFLICTS, verbs.contradictions.ListConflicts(resolved=bool(resolved))
        )

    def resolve(self, conflict: Ref, keep: AnyRef) -> Memory:
        """Settle a contradiction: `keep` stays and counts as verified, the other one is archived as superseded."""
        asked = verbs.contradictions.Resolve(conflict=conflict, keep=as_ref(keep))
        return perform(self._context, verbs.contradictions.RESOLVE, asked)

    def proposals(self, session: str | None = None) -> "JudgeList":
        """Return the numbered statements of a session that wait for a judge: the oldest list, or that of `session`."""
        return perform(self._context, verbs.judge.PROPOSALS, verbs.judge.NextList(session=session))

    def judge(
        self,
        list: str,
        *,
        keep: Sequence[int] = (),
        drop: Sequence[int] = (),
        wrong: Sequence[int] = (),
        rewrite: Mapping[int, str] | None = None,
        add: "Sequence[Addition]" = (),
    ) -> "Judgement":
        """Settle a list of `proposals` by its code: which statements hold, which go, and how they should read.

        `wrong` ones go as well, and are refused if they come back.
        """
        asked = verbs.judge.Judge(
            list=list,
            keep=tuple(keep),
            drop=tuple(drop),
            wrong=tuple(wrong),
            rewrite={str(number): said for number, said in (rewrite or {}).items()},
            add=tuple(add),
        )
        return perform(self._context, verbs.judge.JUDGE, asked)

    # Sessions, tasks, narratives

    def session(self, id: str | None = None, *, agent: str | None = None, parent: str | None = None) -> "Session":
        """Open the session with that id, or begin a new one. `session.remember` names it as the source of a memory."""
        return verbs.sessions.open_for_more(self._context, id, agent=agent, parent=parent)

    def sessions(self, *, limit: int | None = None, after: str | None = None, newest_first: bool = False) -> Sessions:
        """List the sessions of the project, oldest first. `after` is the last session of the previous page."""
        asked = verbs.sessions.ListSessions(limit=limit, after=after, newest_first=bool(newest_first))
        return perform(self._context, verbs.sessions.LIST_SESSIONS, asked)

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
        is_one = isinstance(path, str | Path)
        asked = verbs.exchange.ImportTranscripts(
            program=program,
            path=str(path) if is_one else "",
            paths=None if is_one else path,
            here=here,
            since=since,
            dry_run=dry_run,
            progress=progress,
        )
        return perform(self._context, verbs.exchange.IMPORT_TRANSCRIPTS, asked)

    def task(
        self,
        id: str | None = None,
        *,
        description: str | None = None,
        milestone: str | None = None,
        priority: int | None = None,
        acceptance_criteria: Sequence[str] | None = None,
        blocked_by: Sequence[str] | None = None,
    ) -> "Task":
        """Open the task with that id, or add it as pending; without an id, add a new one (TASK-001 …).

        The fields that are given are set. Priority 1 comes first. `blocked_by` are the ids of tasks that have to end
        before this one can begin.
        """
        asked = verbs.tasks.SetTask(
            id=id,
            description=description,
            milestone=milestone,
            priority=priority,
            acceptance_criteria=None if acceptance_criteria is None else several(acceptance_criteria),
            blocked_by=None if blocked_by is None else several(blocked_by),
        )
        return verbs.tasks.open_with(self._context, asked)

    def tasks(self, *, milestone: str | None = None, archived: bool = False, query: str | None = None) -> Tasks:
        """List the tasks of the project, highest priority first; with `query`, those that match it, best first.

        When all tasks of a milestone have ended, they are archived and listed only with `archived`; a task without a
        milestone is archived when it ends.
        """
        asked = verbs.tasks.ListTasks(milestone=milestone, archived=bool(archived), query=query)
        return perform(self._context, verbs.tasks.LIST_TASKS, asked)

    def narrative(self, id: str | None = None, *, of: AnyRef | None = None) -> "Narrative":
        """Open the narrative with that id, to add to it and read it; or the narrative `of` a memory."""
        return verbs.tasks.open_narrative(self._context, id, None if of is None else as_ref(of))

    def narratives(self) -> "Sequence[ListedNarrative]":
        """List the narratives of the project, with the number of their memories."""
        return perform(self._context, verbs.tasks.LIST_NARRATIVES, verbs.tasks.ListNarratives())

    def upkeep(self, *, dry_run: bool = False) -> "UpkeepReport":
        """Confirm or archive memories that are due, make room where a limit is exceeded, and pack old sessions.

        `dry_run` changes nothing and reports exactly what would be done now.
        """
        return perform(self._context, verbs.upkeep.UPKEEP, verbs.upkeep.Upkeep(dry_run=bool(dry_run)))

    def documents(self, collection: str, *, source: Source | None = None) -> "Documents":
        """Open a collection of documents: values that a program keeps under its own keys. `source`: of new ones."""
        from kept.memory.documents import Documents  # only adapters and the graph use it

        return Documents(self._context, collection, source=source)

    # The same verbs for `async` programs, each in a worker thread

    aremember = awaited(remember)
    aremember_many = awaited(remember_many)
    arecall = awaited(recall)
    awhy = awaited(why)
    aget = awaited(get)
    alist = awaited(list)
    afind = awaited(find)
    abriefing = awaited(briefing)
    ashare = awaited(share)
    astatus = awaited(status)
    areinforce = awaited(reinforce)
    ademote = awaited(demote)
    arevise = awaited(revise)
    apin = awaited(pin)
    aunpin = awaited(unpin)
    aguard = awaited(guard)
    aforget = awaited(forget)
    arestore = awaited(restore)
    aerase = awaited(erase)
    apromote = awaited(promote)
    ahistory = awaited(history)
    aundo = awaited(undo)
    aconflicts = awaited(conflicts)
    aresolve = awaited(resolve)
    aproposals = awaited(proposals)
    ajudge = awaited(judge)
    asession = awaited(session)
    asessions = awaited(sessions)
    aimport_transcripts = awaited(import_transcripts)
    atask = awaited(task)
    atasks = awaited(tasks)
    anarratives = awaited(narratives)
    aupkeep = awaited(upkeep)
    aclose = awaited(close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()

    # Namespaces

    @cached_property
    def _namespaces(self) -> "Namespaces":
        from kept.memory.namespaces import Namespaces  # a prompt uses none of them

        return Namespaces(self._context)

    @property
    def aliases(self) -> "Aliases":
        """Words that stand for others in a recall: add, remove, list."""
        return self._namespaces.aliases

    @property
    def deliveries(self) -> "Deliveries":
        """Texts that an agent is given without asking: at_start, for_prompt, for_error. For hooks."""
        from kept.memory.deliver import Deliveries  # brings recall along, which the end of a turn does without

        return Deliveries(self._context)

    @property
    def files(self) -> "Files":
        """The files beside the store that people read and edit: sync, status, take_edits, accompany."""
        return self._namespaces.files

    @property
    def pauses(self) -> "Pauses":
        """Automatic capture and injection: pause, resume, status."""
        return self._namespaces.pauses

    @property
    def team(self) -> "TeamMemory":
        """Memories shared through a git ref of the repository's remote: share, unshare, push, pull, trust, status."""
        return self._namespaces.team

    @property
    def vectors(self) -> "Vectors":
        """The vectors of profile `hybrid`: on, off, check, limits, status."""
        return self._namespaces.vectors

    @property
    def reviews(self) -> "Reviews":
        """Stale, duplicate and conflicting memories: list, apply."""
        return self._namespaces.reviews

    @property
    def knowledge(self) -> "Knowledge":
        """Typed shortcuts: add_decision, add_convention, add_failure, add_preference, add_pattern, and their lists."""
        return self._namespaces.knowledge

    @property
    def store(self) -> "Store":
        """The store as a whole: backup, restore, export, scan, allow, configure, replay, pack_sessions."""
        return self._namespaces.store
