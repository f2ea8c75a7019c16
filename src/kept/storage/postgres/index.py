"""The index of a space in PostgreSQL: postings, weights, hot words and handles, as SQL.

`PostgresIndex` answers what storage/ranking.py asks; the functions keep the index in step with the memories, inside the
transaction that changes them. Ranking is done in the client, by the same code for every engine; in SQL it was slower.
Rule: a b-tree on (space, shelf, word, id) answers from the index alone, and every condition on it is leakproof, so that
row-level security does not stand in its way.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kept.model import Memory, replace
from kept.ports import ANYWHERE, Deadline, Prepared, Where
from kept.storage import ranking, weights
from kept.storage.postgres import rows
from kept.storage.postgres.connection import Rows, SpaceView, insert
from kept.storage.ranking import Postings
from kept.storage.shared import MOST, damaged, indexes
from kept.storage.weights import ChunkRow, Chunks, Traits, Weights

_CHUNK_COLUMNS = ("stamp", "lengths", "feedbacks", "others", "days")
_CHUNK_SELECT = ", ".join(_CHUNK_COLUMNS)
_EMPTY = (0, 0, 0)
FIRST_POSTINGS = 2_001  # of one word, before it is known how common it is
_HELD = """
    select w.word, array(
        select p.id
        from postings p
        where p.space = %(space)s and p.shelf = %(on)s and p.word = w.word
        limit %(most)s
      )
    from unnest(%(words)s::text[]) w (word)"""


class PostgresIndex:
    """The index as one transaction sees it."""

    def __init__(self, view: SpaceView, known: Weights | None = None) -> None:
        self._view = view
        self.weights = known or Weights()
        self._last: tuple[list[str], Postings] = ([], {})

    @property
    def narrowing(self) -> "PostgresIndex":
        return self

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        return self._view.until(deadline)

    def postings(
        self, words: Sequence[str], where: Where, *, newest: int | None = None, beside: Sequence[str] = ()
    ) -> Postings:
        if self._view.is_guessing:
            self._foresee()
        held: Postings = {word: [] for word in words}
        near = self._ids_of(beside, where) if beside else None
        for shelf in indexes(where) if words else ():
            for word, ids in self._postings(shelf, words, where, newest, near):
                held[word] += ids
        if newest is not None:
            latest = set(sorted({id for ids in held.values() for id in ids}, reverse=True)[:newest])
            held = {word: [id for id in ids if id in latest] for word, ids in held.items()}
        self._last = ([*words], held)
        return held

    def _foresee(self) -> None:
        """Ask in the first round for the weights that ranking will need if there are many matches, as far as known."""
        if not self.stamps():
            self.last_id()
            for chunk in {0, self.weights.newest}:
                self._chunk(chunk)

    def _ids_of(self, words: Sequence[str], where: Where) -> list[int]:
        """The rows that hold one of the words. A search asks for what is beside those that it has just listed."""
        asked, held = self._last
        found = held if asked == [*words] else self.postings(words, where)
        return sorted({id for ids in found.values() for id in ids})

    def _postings(
        self, shelf: str, words: Sequence[str], where: Where, newest: int | None, near: list[int] | None
    ) -> list[tuple[Any, ...]]:
        # A row of this index stands on this shelf, and the live one has one scope.
        asked = replace(where, shelf="any", scope=None if shelf == "live" else where.scope)
        condition, values = rows.conditions(asked)
        is_filtered = asked != ANYWHERE
        # An array for each word costs a third less than to group the rows by their words. `offset 0` keeps the planner
        # from reading all memories of the space instead: it has no statistics of words (schema.py).
        of_memories = (
            "join lateral (select * from memories m where m.space = p.space and m.id = p.id offset 0) m on true"
        )
        sql = f"""
            select w.word, array(
                select p.id
                from postings p {of_memories if is_filtered else ""}
                where p.space = %(space)s and p.shelf = %(on)s and p.word = w.word
                  {f"and {condition}" if is_filtered else ""} {"" if near is None else "and p.id = any(%(near)s)"}
                {"" if newest is None else "order by p.id desc limit %(newest)s"}
              )
            from unnest(%(words)s::text[]) w (word)"""
        on = rows.SHELVES[shelf]
        if not self._view.is_guessing or is_filtered or near is not None or newest is not None:
            guess = [(word, [0]) for word in words] if self._view.is_guessing else ()
            return self._view.fetch(sql, guess=guess, on=on, words=list(words), near=near, newest=newest, **values)
        return self._held(on, words)

    def _held(self, on: int, words: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the rows that hold each word, in rounds: the next one may need fewer of the words.

        Which words are common is not known in the first round, so only so many rows of each are read then.
        """
        found = self._first_held(on, words)
        common = [word for word in words if len(found[word]) >= FIRST_POSTINGS]
        if common:
            found |= dict(self._view.fetch(_HELD, on=on, words=common, most=MOST))
        return [*found.items()]

    def _first_held(self, on: int, words: Sequence[str]) -> dict[str, list[int]]:
        groups = self._view.asked_with
        lacking = tuple(word for word in words if (on, word) not in groups)
        groups |= {(on, word): lacking for word in lacking}
        found: dict[str, list[int]] = {}
        for group in dict.fromkeys(groups[on, word] for word in words):
            guess = [(word, [0]) for word in group]
            found |= dict(self._view.fetch(_HELD, guess=guess, on=on, words=[*group], most=FIRST_POSTINGS))
        return {word: found.get(word, []) for word in words}

    def counts(self, shelf: str) -> tuple[int, int, int]:
        return self._view.counts(rows.SHELVES[shelf])

    def rows_with(self, shelf: str, words: Sequence[str]) -> dict[str, int]:
        sql = """
            select word, count(*)
            from postings
            where space = %(space)s and shelf = %(on)s and word = any(%(words)s)
            group by word"""
        counted: dict[str, int] = {}
        if self._view.is_guessing:
            held = self._first_held(rows.SHELVES[shelf], words)
            counted = {word: len(ids) for word, ids in held.items() if len(ids) < FIRST_POSTINGS}
        asked = [word for word in words if word not in counted]
        found: list[Any] = self._view.fetch(sql, on=rows.SHELVES[shelf], words=asked) if asked else []
        return counted | dict(found)

    def hot_words(self, shelf: str, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        *_, counted_at = self._view.corpus().get(rows.SHELVES[shelf], (None,))
        if counted_at is None:
            return 0, {}
        sql = "select word, rows_with from hot_words where space = %(space)s and shelf = %(on)s"
        wanted = set(words)
        found = self._view.once(sql, on=rows.SHELVES[shelf])
        return counted_at, {word: number for word, number in found if word in wanted}

    def tokens(self, ids: Sequence[int]) -> Iterable[tuple[int, Prepared]]:
        return [(row[0], Prepared(*row[1:])) for row in self._with(f"m.id, {rows.TOKENS_SELECT}", ids)]

    def traits(self, ids: Sequence[int]) -> Iterable[tuple[int, Traits]]:
        columns = ", ".join(f"m.{column}" for column in ("id", *Traits._fields))
        return [(row[0], Traits(*row[1:])) for row in self._with(columns, ids)]

    def _with(self, columns: str, ids: Sequence[int], guess: Rows = ()) -> list[tuple[Any, ...]]:
        sql = f"select {columns} from memories m where m.space = %(space)s and m.id = any(%(ids)s)"
        if self._view.is_guessing and [*ids] == [0]:  # of a guess
            return [*guess]
        return self._view.fetch(sql, guess=guess, ids=ids) if ids else []

    def memories(
        self, ids: Sequence[int], words: Sequence[str] = (), where: Where = ANYWHERE
    ) -> list[tuple[Memory, Prepared]]:
        guess = [rows.imagined(id, words, next(iter(indexes(where)))) for id in ids] if self._view.is_guessing else ()
        found = {row[0]: row for row in self._with(rows.MEMORY_SELECT, ids, guess)}
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
        sql = """
            select asked.handle, array(
                select h.id
                from handles h
                where h.space = %(space)s and h.handle = asked.handle
                order by h.id desc
                limit %(newest)s
              )
            from unnest(%(handles)s::bigint[]) asked (handle)"""
        found: list[Any] = self._view.fetch(sql, handles=handles, newest=newest) if handles else []
        return dict(found)

    def last_id(self) -> int:
        sql = "select max(id) from memories where space = %(space)s"
        return int(self._view.fetch(sql, guess=[(0,)])[0][0] or 0)

    def stamps(self) -> list[tuple[int, int]]:
        return self._view.once("select chunk, stamp from weights where space = %(space)s order by chunk")

    def chunks(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        if self._view.is_guessing:  # one by one, because some may be here already
            return {number: row for number in numbers if (row := self._chunk(number)) is not None}
        sql = f"""
            select chunk, {_CHUNK_SELECT}
            from weights
            where space = %(space)s and chunk = any(%(chunks)s)"""
        found: list[Any] = self._view.fetch(sql, chunks=numbers) if numbers else []
        return {chunk: tuple(row) for chunk, *row in found}

    def _chunk(self, number: int) -> ChunkRow | None:
        return _read_chunk(self._view, number)


def tokens_of(prepared: Prepared) -> set[str]:
    """The words under which a memory is found."""
    p = prepared
    return {*f"{p.words} {p.tag_words} {p.file_words} {p.source_words} {p.kind_words}".split()}


class IndexChanges:
    """What a turn to write changes in the index, gathered until its rows are written."""

    def __init__(self) -> None:
        self._corpus: dict[int, list[int]] = {}  # shelf → how many rows, words, tokens more
        self._postings: dict[int, dict[str, list[int]]] = {}  # shelf → word → ids
        self._handles: list[tuple[int, int]] = []
        self._weighed: list[Memory] = []

    def add(self, memory: Memory, prepared: Prepared) -> None:
        """List a new memory."""
        shelf = rows.shelf_of(memory)
        self._count(shelf, 1, prepared.n_words, prepared.n_tokens)
        if shelf != rows.SHELVES["forgotten"]:
            self._list(shelf, tokens_of(prepared), memory.id)
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
                self._list(after, come - both, new.id)
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
        self._list(shelf, set(words), id)
        self._count(shelf, 1, n_words, n_words)

    def drop_message(self, view: SpaceView, id: int, words: Iterable[str], n_words: int) -> None:
        """List a message nowhere."""
        unlist(view, rows.SHELVES["messages"], id, set(words))
        self._count(rows.SHELVES["messages"], -1, -n_words, -n_words)

    def write_lists(self, view: SpaceView) -> None:
        """Write the new postings and handles. In order, so that those of one page of the index follow each other."""
        listed, self._postings = self._postings, {}
        for shelf, held in listed.items():
            found = [(word, id) for word in sorted(held) for id in held[word]]
            insert(view, "postings", ("shelf", "word", "id"), found, same=(shelf,), at_once=1024)
        handles, self._handles = self._handles, []
        insert(view, "handles", ("handle", "id"), sorted(handles), at_once=256)

    def write_sums(self, view: SpaceView, known: Chunks) -> None:
        """Write weights and counts. `known`: the weights that the last turn wrote, if nobody has written since."""
        weighed, self._weighed = self._weighed, []
        if weighed:
            _write_chunks(view, weights.noted(weighed, known, lambda chunk: _read_chunk(view, chunk)))
        counted, self._corpus = self._corpus, {}
        insert(
            view,
            "corpus",
            ("shelf", "rows", "words", "tokens"),
            [(shelf, *numbers) for shelf, numbers in counted.items() if any(numbers)],
            rest="""on conflict (space, shelf) do update set
              rows = corpus.rows + excluded.rows,
              words = corpus.words + excluded.words,
              tokens = corpus.tokens + excluded.tokens""",
        )

    def _list(self, shelf: int, words: Iterable[str], id: int) -> None:
        held = self._postings.setdefault(shelf, defaultdict(list))
        for word in words:
            held[word].append(id)

    def _count(self, shelf: int, n_rows: int, n_words: int, n_tokens: int) -> None:
        before = self._corpus.get(shelf, _EMPTY)
        self._corpus[shelf] = [a + b for a, b in zip(before, (n_rows, n_words, n_tokens), strict=True)]


def refresh_hot_words(view: SpaceView) -> None:
    """Count the common words of shelves that have outgrown their last count. Call it inside a turn to write."""
    for on, (n_rows, *_, counted_at) in view.corpus().items():
        shelf = rows.SHELF_NAMES[on]
        if shelf == "forgotten" or not ranking.has_outgrown(n_rows, counted_at):
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
        where m.space = %(space)s and m.id = any(%(places)s)"""
    found = view.fetch(sql, places=places)
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
        sql = "delete from handles where space = %(space)s and handle = any(%(handles)s) and id = %(id)s"
        view.run(sql, handles=sorted(handles), id=id)


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
    )
