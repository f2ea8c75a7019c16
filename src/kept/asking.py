"""Asking: recall and its reasons, one memory by its ref, and lists of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from kept import ids, recalling
from kept.errors import InvalidInput, NotFound
from kept.model import GLOBAL, Memory, Recalled, several
from kept.opened import Memories, Opened, Ref, Storages
from kept.ports import Shelf, Where
from kept.recalling import Explained, Question, RecallScope
from kept.storage.shared import check_limit

ListStatus = Literal["candidate", "confirmed", "pinned", "archived", "forgotten"]


class Asking(Opened):
    """What reads, and changes nothing but its own notes."""

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
        scope: RecallScope = "memory",
        follow: bool = False,
        by: Literal["message", "session"] = "message",
        packed: bool = False,
    ) -> Recalled:
        """The memories that fit a few key words best, with scores and reasons. No query raises for what it says.

        `files` are the files at hand: memories about them rank higher. `follow` also brings what was recalled
        together with the hits before. `scope` "archive" searches what has left, "sessions" what was said: by message,
        or `by` session, where each comes once. `packed`: also in old sessions, which are compressed; it takes longer.
        Messages have no kinds, tags or files: asked for them, "sessions" raises InvalidInput.
        """
        if not isinstance(query, str):
            raise InvalidInput(f"The query is of type {type(query).__name__}, and not a text.")
        [query] = _well_formed([query])
        question = Question(
            query=query,
            limit=limit,
            profile=profile,
            kinds=_well_formed(kinds),
            tags=_well_formed(tags),
            files=_well_formed(files),
            since=since,
            until=until,
            scope=scope,
            follow=follow,
            by=by,
            packed=packed,
        )
        storages, now = self._readable(), self._now()
        recalled = recalling.note(question, self._answer(question, storages, now), storages, now)
        self._tell_search(query, len(recalled.hits))
        self._after_recall(recalled.receipt)
        return recalled

    def why(self, receipt: Ref | None = None) -> Explained:
        """What a recall returned, what just missed, and the numbers behind it: the last one, or the receipt's."""
        return recalling.explain(receipt, self._readable())

    def replay(self, receipt: Ref | None = None) -> Recalled:
        """Ask a receipt's question again, as of its moment, noting nothing. The same store gives the same answer."""
        explained = self.why(receipt)
        return self._answer(explained.question, self._readable(), explained.at)

    def get(self, ref: Ref, *, forgotten: bool = False) -> Memory:
        """The memory that answers to the ref, archived or not; one that was forgotten only when asked for so.

        Raises NotFound.
        """
        _, memory = self._find(ref)
        if memory.is_forgotten and not forgotten:
            raise NotFound(f"Memory {memory.ref} was forgotten.", hint=f"`kept restore {memory.ref}` brings it back.")
        self._tell_read([memory])
        return memory

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        status: ListStatus | None = None,
        limit: int = 50,
        after: Ref | None = None,
    ) -> Memories:
        """Memories, newest first: the project's, then global ones. `after` is the last ref of the page before.

        `status` None means live; "archived" and "forgotten" show what has left.
        """
        check_limit(limit)
        shelf: Shelf = "live"
        if status in ("archived", "forgotten"):
            shelf = "archive" if status == "archived" else "forgotten"
        elif status is not None and status not in ("candidate", "confirmed", "pinned"):
            raise InvalidInput(
                f"{status!r} is not a status.", hint="Choose candidate, confirmed, pinned, archived or forgotten."
            )
        where = Where(
            shelf=shelf,
            kinds=_well_formed(kinds),
            tags=_well_formed(tags),
            statuses=(status,) if status in ("candidate", "confirmed", "pinned") else (),
        )
        position = None if after is None else self._position(after)
        found: Memories = []
        for storage in self._readable():
            is_global = storage.space == GLOBAL
            if position is not None and position.is_global and not is_global:
                continue
            page_after = position.id if position is not None and position.is_global == is_global else None
            with storage.reading() as reader:
                found += reader.select(where, limit=limit - len(found), after=page_after)
        self._tell_read(found)
        return found

    def _answer(self, question: Question, storages: Storages, now: datetime) -> Recalled:
        return recalling.answer(
            question,
            storages,
            settings=self._settings,
            now=now,
            timer=self._timer,
            latencies=self._latencies,
            reranker=self._reranker,
            find_embedder=self._find_embedder,
        )

    def _position(self, after: Ref) -> ids.Ref:
        """The id where a page ended, also of a memory that is no longer there."""
        position = ids.parse_ref(after)
        return position if position.uid is None else ids.parse_ref(self._find(after)[1].ref)


def _well_formed(words: Sequence[str]) -> tuple[str, ...]:
    """The words as a storage can be asked for them: half of a surrogate pair, which nothing can hold, becomes `?`."""
    return tuple(word.encode("utf-8", "replace").decode() for word in several(words))
