"""The index of a space in PostgreSQL: postings, weights, hot words and handles, as SQL.

`PostgresIndex` answers what storage/ranking.py asks; the functions keep the index in step with the memories, inside the
transaction that changes them. Ranking is done in the client, by the same code for every engine; in SQL it was slower.
Rule: a b-tree on (space, shelf, word, id) answers from the index alone, and every condition on it is leakproof, so that
row-level security does not stand in its way.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kept.model import Memory, replace
from kept.ports import ANYWHERE, Deadline, Prepared, Where
from kept.storage import ranking, weights
from kept.storage.postgres import rows
from kept.storage.postgres.connection import SpaceView, array_of, insert
from kept.storage.ranking import Postings
from kept.storage.shared import damaged, indexes
from kept.storage.weights import ChunkRow, Chunks, Traits, Weights

_CHUNK_COLUMNS = ("stamp", "lengths", "feedbacks", "others", "days")
_CHUNK_SELECT = ", ".join(_CHUNK_COLUMNS)
_EMPTY = (0, 0, 0)


class PostgresIndex:
    """The index as one transaction sees it."""

    def __init__(self, view: SpaceView, known: Weights | None = None) -> None:
        self._view = view
        self.weights = known or Weights()

    @property
    def narrowing(self) -> "PostgresIndex":
        return self

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        return self._view.until(deadline)

    def postings(
        self, words: Sequence[str], where: Where, *, newest: int | None = None, beside: Sequence[str] = ()
    ) -> Postings:
        held: Postings = {word: [] for word in words}
        if not words:
            return held
        for shelf in indexes(where):
            for word, ids in self._postings(shelf, words, where, newest, beside):
                held[word] += rows.decode_json(f"[{ids[1:-1]}]")  # faster than as an array of numbers
        if newest is not None:
            latest = set(sorted({id for ids in held.values() for id in ids}, reverse=True)[:newest])
            return {word: [id for id in ids if id in latest] for word, ids in held.items()}
        return held

    def _postings(
        self, shelf: str, words: Sequence[str], where: Where, newest: int | None, beside: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        # A row of this index stands on this shelf, and the live one has one scope.
        asked = replace(where, shelf="any", scope=None if shelf == "live" else where.scope)
        condition, values = rows.conditions(asked)
        is_filtered = asked != ANYWHERE
        memories = "join memories m on m.space = p.space and m.id = p.id" if is_filtered else ""
        only = f"and {condition}" if is_filtered else ""
        if beside:
            only += """ and p.id in (
                select b.id
                from postings b
                where b.space = %(space)s and b.shelf = %(on)s and b.word = any(%(beside)s)
              )"""
        values |= {"on": rows.SHELVES[shelf], "words": list(words), "beside": list(beside), "newest": newest}
        if newest is None:
            sql = f"""
                select p.word, array_agg(p.id)::text
                from postings p {memories}
                where p.space = %(space)s and p.shelf = %(on)s and p.word = any(%(words)s) {only}
                group by p.word"""
        else:
            sql = f"""
                select w.word, latest.ids
                from unnest(%(words)s::text[]) w (word)
                cross join lateral (
                  select array_agg(found.id)::text as ids
                  from (
                    select p.id
                    from postings p {memories}
                    where p.space = %(space)s and p.shelf = %(on)s and p.word = w.word {only}
                    order by p.id desc
                    limit %(newest)s
                  ) found
                ) latest
                where latest.ids is not null"""
        return self._view.fetch(sql, **values)

    def counts(self, shelf: str) -> tuple[int, int, int]:
        return self._view.counts(rows.SHELVES[shelf])

    def rows_with(self, shelf: str, words: Sequence[str]) -> dict[str, int]:
        sql = """
            select word, count(*)
            from postings
            where space = %(space)s and shelf = %(on)s and word = any(%(words)s)
            group by word"""
        found: list[Any] = self._view.fetch(sql, on=rows.SHELVES[shelf], words=list(words)) if words else []
        return dict(found)

    def hot_words(self, shelf: str, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        sql = """
            select c.counted_at, h.word, h.rows_with
            from corpus c
            left join hot_words h on h.space = c.space and h.shelf = c.shelf and h.word = any(%(words)s)
            where c.space = %(space)s and c.shelf = %(on)s"""
        found = self._view.fetch(sql, on=rows.SHELVES[shelf], words=list(words))
        counted_at = found[0][0] if found else None
        return counted_at or 0, {word: number for _, word, number in found if word is not None}

    def tokens(self, ids: Sequence[int]) -> Iterable[tuple[int, Prepared]]:
        return [(row[0], Prepared(*row[1:])) for row in self._with(f"m.id, {rows.TOKENS_SELECT}", ids)]

    def traits(self, ids: Sequence[int]) -> Iterable[tuple[int, Traits]]:
        columns = ", ".join(f"m.{column}" for column in ("id", *Traits._fields))
        return [(row[0], Traits(*row[1:])) for row in self._with(columns, ids)]

    def _with(self, columns: str, ids: Sequence[int]) -> list[tuple[Any, ...]]:
        sql = f"select {columns} from memories m where m.space = %(space)s and m.id = any(%(ids)s::bigint[])"
        return self._view.fetch(sql, ids=array_of(ids)) if ids else []

    def memories(
        self, ids: Sequence[int], words: Sequence[str] = (), where: Where = ANYWHERE
    ) -> list[tuple[Memory, Prepared]]:
        found = {row[0]: row for row in self._with(rows.MEMORY_SELECT, ids)}
        if words and (len(found) < len(ids) or not {*map(rows.shelf_in, found.values())} <= {*indexes(where)}):
            raise damaged("The search index (it lists a memory that is not there)")
        together = [found[id] for id in ids if id in found]
        return [(rows.to_memory(row, self._view.space), rows.to_prepared(row)) for row in together]

    def terms(self, shelf: str, beginning: str, limit: int) -> list[str]:
        # From one word to the next: each step is one descent of the tree, however many rows hold the word.
        sql = """
            with recursive next (word) as (
              (
                select p.word
                from postings p
                where p.space = %(space)s and p.shelf = %(on)s and p.word >= %(first)s
                order by p.word
                limit 1
              )
              union all
              select (
                select p.word
                from postings p
                where p.space = %(space)s and p.shelf = %(on)s and p.word > next.word
                order by p.word
                limit 1
              )
              from next
              where next.word is not null and starts_with(next.word, %(first)s)
            )
            select word
            from next
            where starts_with(word, %(first)s)
            limit %(limit)s"""
        found = self._view.fetch(sql, on=rows.SHELVES[shelf], first=beginning, limit=limit)
        return [word for (word,) in found]

    def listed(self, handles: Sequence[int], newest: int) -> dict[int, list[int]]:
        if not handles:
            return {}
        sql = """
            select asked.handle, latest.ids
            from unnest(%(handles)s::bigint[]) asked (handle)
            cross join lateral (
              select array_agg(found.id)::text as ids
              from (
                select h.id
                from handles h
                where h.space = %(space)s and h.handle = asked.handle
                order by h.id desc
                limit %(newest)s
              ) found
            ) latest
            where latest.ids is not null"""
        found = self._view.fetch(sql, handles=array_of(handles), newest=newest)
        return {handle: rows.decode_json(f"[{ids[1:-1]}]") for handle, ids in found}

    def last_id(self) -> int:
        return int(self._view.fetch("select max(id) from memories where space = %(space)s")[0][0] or 0)

    def stamps(self) -> list[tuple[int, int]]:
        return self._view.fetch("select chunk, stamp from weights where space = %(space)s order by chunk")

    def chunks(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        sql = f"""
            select chunk, {_CHUNK_SELECT}
            from weights
            where space = %(space)s and chunk = any(%(chunks)s::bigint[])"""
        found: list[Any] = self._view.fetch(sql, chunks=array_of(numbers)) if numbers else []
        return {chunk: tuple(row) for chunk, *row in found}


def tokens_of(prepared: Prepared) -> set[str]:
    """The words under which a memory is found."""
    p = prepared
    return {*f"{p.words} {p.tag_words} {p.file_words} {p.source_words} {p.kind_words}".split()}


class IndexChanges:
    """What a turn to write changes in the index, gathered until its rows are written."""

    def __init__(self) -> None:
        self.corpus: dict[int, list[int]] = {}  # shelf → how many rows, words, tokens more
        self._postings: list[tuple[int, str, int]] = []
        self._handles: list[tuple[int, int]] = []
        self._weighed: list[Memory] = []

    def add(self, memory: Memory, prepared: Prepared) -> None:
        """List a new memory."""
        shelf = rows.shelf_of(memory)
        self._count(shelf, 1, prepared.n_words, prepared.n_tokens)
        if shelf != rows.SHELVES["forgotten"]:
            self._postings += [(shelf, word, memory.id) for word in tokens_of(prepared)]
        self._handles += [(handle, memory.id) for handle in ranking.handles_of(memory)]
        self._weighed.append(memory)

    def move(self, view: SpaceView, old: Memory, was: Prepared, new: Memory, now: Prepared) -> None:
        """List a memory as it is now, and no longer as it was."""
        before, after = rows.shelf_of(old), rows.shelf_of(new)
        if before != after or was != now:
            gone, come = tokens_of(was), tokens_of(now)
            both = gone & come if before == after else set[str]()
            unlist(view, before, new.id, gone - both)
            if after != rows.SHELVES["forgotten"]:
                self._postings += [(after, word, new.id) for word in come - both]
            self._count(before, -1, -was.n_words, -was.n_tokens)
            self._count(after, 1, now.n_words, now.n_tokens)
        handles, wanted = ranking.handles_of(old), ranking.handles_of(new)
        _drop_handles(view, new.id, handles - wanted)
        self._handles += [(handle, new.id) for handle in wanted - handles]
        self._weighed.append(new)

    def drop(self, view: SpaceView, memory: Memory, prepared: Prepared) -> None:
        """List a memory nowhere, and keep no weight of it."""
        shelf = rows.shelf_of(memory)
        self._count(shelf, -1, -prepared.n_words, -prepared.n_tokens)
        unlist(view, shelf, memory.id, tokens_of(prepared))
        _drop_handles(view, memory.id, ranking.handles_of(memory))
        _write_chunks(view, weights.dropped(memory.id, lambda chunk: _read_chunk(view, chunk)))

    def add_message(self, id: int, words: Iterable[str], n_words: int) -> None:
        """List a new message."""
        shelf = rows.SHELVES["messages"]
        self._postings += [(shelf, word, id) for word in set(words)]
        self._count(shelf, 1, n_words, n_words)

    def drop_message(self, view: SpaceView, id: int, words: Iterable[str], n_words: int) -> None:
        """List a message nowhere."""
        unlist(view, rows.SHELVES["messages"], id, set(words))
        self._count(rows.SHELVES["messages"], -1, -n_words, -n_words)

    def __bool__(self) -> bool:
        return bool(self.corpus or self._postings or self._handles or self._weighed)

    def weigh(self, view: SpaceView, known: Chunks) -> None:
        """Write the weights. `known`: the chunk that the last turn wrote, if nobody has written since."""
        weighed, self._weighed = self._weighed, []
        if weighed:
            _write_chunks(view, weights.noted(weighed, known, lambda chunk: _read_chunk(view, chunk)))

    def write(self, view: SpaceView) -> None:
        """Write the rest of what was gathered."""
        insert(view, "postings", ("shelf", "word", "id"), sorted(self._postings))
        insert(view, "handles", ("handle", "id"), sorted(self._handles))
        more = [(shelf, *numbers) for shelf, numbers in self.corpus.items() if any(numbers)]
        insert(
            view,
            "corpus",
            ("shelf", "rows", "words", "tokens"),
            more,
            rest="""on conflict (space, shelf) do update set
              rows = corpus.rows + excluded.rows,
              words = corpus.words + excluded.words,
              tokens = corpus.tokens + excluded.tokens""",
        )
        self.corpus, self._postings, self._handles = {}, [], []

    def _count(self, shelf: int, n_rows: int, n_words: int, n_tokens: int) -> None:
        before = self.corpus.get(shelf, _EMPTY)
        self.corpus[shelf] = [a + b for a, b in zip(before, (n_rows, n_words, n_tokens), strict=True)]


def refresh_hot_words(view: SpaceView) -> None:
    """Count the common words of shelves that have outgrown their last count. Call it inside a turn to write."""
    for shelf, on in rows.SHELVES.items():
        n_rows = view.counts(on)[0]
        if shelf == "forgotten" or n_rows <= ranking.EXACT_UP_TO_ROWS:
            continue
        counted_at = PostgresIndex(view).hot_words(shelf, ())[0]
        if not ranking.has_outgrown(n_rows, counted_at or None):
            continue
        found = ranking.hot_words_of(_sample(view, shelf), n_rows)
        view.run("delete from hot_words where space = %(space)s and shelf = %(on)s", on=on)
        insert(view, "hot_words", ("shelf", "word", "rows_with"), [(on, *counted) for counted in found.items()])
        sql = "update corpus set counted_at = %(n_rows)s where space = %(space)s and shelf = %(on)s"
        view.run(sql, n_rows=n_rows, on=on)


def _sample(view: SpaceView, shelf: str) -> Iterable[Sequence[Any]]:
    """Rows that lie evenly between the oldest and the newest, as their columns of tokens."""
    is_messages = shelf == "messages"
    table, columns = ("messages", "m.words") if is_messages else ("memories", rows.TOKENS_SELECT)
    only = "" if is_messages else "and m.shelf = %(on)s"
    sql = f"select min(m.id), max(m.id) from {table} m where m.space = %(space)s {only}"
    first, last = view.fetch(sql, on=rows.SHELVES[shelf])[0]
    places = sorted({first + (last - first) * number // ranking.SAMPLE for number in range(ranking.SAMPLE)})
    # By id alone, so that no statistics can lead the planner astray; rows of other shelves are left out here.
    sql = f"""
        select {"4" if is_messages else "m.shelf"}, {columns}
        from {table} m
        where m.space = %(space)s and m.id = any(%(places)s::bigint[])"""
    found = view.fetch(sql, places=array_of(places))
    n_columns = 1 if is_messages else 5  # without the lengths
    return (columns[:n_columns] for on, *columns in found if on == rows.SHELVES[shelf])


def unlist(view: SpaceView, shelf: int, id: int, words: set[str]) -> None:
    """Take a row out of the postings of these words."""
    if words:
        sql = """
            delete from postings
            where space = %(space)s and shelf = %(on)s and word = any(%(words)s) and id = %(id)s"""
        view.run(sql, on=shelf, words=sorted(words), id=id)


def _drop_handles(view: SpaceView, id: int, handles: set[int]) -> None:
    if handles:
        sql = "delete from handles where space = %(space)s and handle = any(%(handles)s::bigint[]) and id = %(id)s"
        view.run(sql, handles=array_of(sorted(handles)), id=id)


def _read_chunk(view: SpaceView, chunk: int) -> ChunkRow | None:
    sql = f"select {_CHUNK_SELECT} from weights where space = %(space)s and chunk = %(chunk)s"
    found: list[Any] = view.fetch(sql, chunk=chunk)
    return found[0] if found else None


def _write_chunks(view: SpaceView, changed: Iterable[tuple[int, ChunkRow]]) -> None:
    keeping = ", ".join(f"{column} = excluded.{column}" for column in _CHUNK_COLUMNS)
    insert(
        view,
        "weights",
        ("chunk", *_CHUNK_COLUMNS),
        [(chunk, stamp, *map(bytes, blobs)) for chunk, (stamp, *blobs) in changed],
        rest=f"on conflict (space, chunk) do update set {keeping}",
        at_once=8,
    )
