"""The index of a space in PostgreSQL: postings, weights, hot words and handles, as SQL.

`PostgresIndex` answers what storage/ranking.py asks; the functions keep the index in step with the memories, inside the
transaction that changes them. Ranking is done in the client, by the same code for every engine; in SQL it was slower.
A row of `postings` holds one word and the places of its rows in a block of 256 ids, a byte each. The newest memories,
up to 255 of them, have no postings: their words are read from their own rows.
Rule: a b-tree on (space, shelf, word, block) finds them, and every condition on it is leakproof, so that row-level
security does not stand in its way.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice, takewhile
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
BLOCK = 256  # ids that follow each other: the place of one in its block is a byte
FIRST_BLOCKS = 200  # of one word, before it is known how common it is: all, below 51,000 memories
PACK_AT_ONCE = 16 * BLOCK
_HELD = """
    select w.word, p.blocks, p.places
    from unnest(%(words)s::text[]) w (word)
    cross join lateral (
      select array_agg(p.block) as blocks, array_agg(p.places) as places
      from (
        select p.block, p.places
        from postings p
        where p.space = %(space)s and p.shelf = %(on)s and p.word = w.word
        order by p.block desc
        limit %(most)s
      ) p
    ) p"""
_UNPACKED = f"""
    select m.shelf, m.id, {rows.TOKENS_SELECT}
    from memories m
    where m.space = %(space)s and m.id >= (select h.packed from heads h where h.space = %(space)s)"""
_EVERY_PLACE = bytes(range(BLOCK))
_ONE_PLACE = [bytes([place]) for place in range(BLOCK)]
N_TEXTS = 5  # columns of Prepared that hold words; two lengths follow


Blocks = tuple[Sequence[int], Sequence[bytes]]  # of one word: their numbers, and the places in each
_NO_BLOCKS: Blocks = ((), ())


class PostgresIndex:
    """The index as one transaction sees it."""

    def __init__(self, view: SpaceView, known: Weights | None = None) -> None:
        self._view = view
        self.weights = known or Weights()
        self._last: tuple[list[str], Postings] = ([], {})
        self._first: dict[tuple[int, str], Blocks] = {}  # shelf and word → its newest blocks

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
        near = self._places_of(beside, where) if beside else None
        for shelf in indexes(where) if words else ():
            # A row of this index stands on this shelf, and the live one has one scope.
            asked = replace(where, shelf="any", scope=None if shelf == "live" else where.scope)
            for listed in self._on_shelf(shelf, words, asked, newest, near):
                for word in words:
                    held[word] += listed.get(word, ())
        if newest is not None:
            held = _latest(held, newest)
        self._last = ([*words], held)
        return held

    def _on_shelf(
        self, shelf: str, words: Sequence[str], asked: Where, newest: int | None, near: Mapping[int, bytes] | None
    ) -> tuple[Postings, Postings]:
        """Return the rows of a shelf that hold each word: the packed ones, and the newest, which are not packed."""
        if asked == ANYWHERE:
            return self.packed(shelf, words, newest, near), self._unpacked(rows.SHELVES[shelf])
        condition, values = rows.conditions(asked)
        packed = self.packed_of("memories", shelf, words, condition, **values)
        return packed, self._unpacked_of(rows.SHELVES[shelf], condition, **values)

    def _foresee(self) -> None:
        """Ask in the first round for the weights that ranking will need if there are many matches, as far as known."""
        if not self.stamps():
            self.last_id()
            for chunk in {0, self.weights.newest}:
                self._chunk(chunk)

    def _places_of(self, words: Sequence[str], where: Where) -> dict[int, bytes]:
        """Block → the places of rows that hold none of the words. A search asks about those that it has just listed."""
        asked, held = self._last
        found = held if asked == [*words] else self.postings(words, where)
        near: dict[int, bytearray] = defaultdict(bytearray)
        for id in {id for ids in found.values() for id in ids}:
            near[id // BLOCK].append(id % BLOCK)
        return {block: _EVERY_PLACE.translate(None, bytes(places)) for block, places in near.items()}

    def packed(
        self, shelf: str, words: Sequence[str], newest: int | None = None, near: Mapping[int, bytes] | None = None
    ) -> Postings:
        """Return the ids of postings; of the `newest` blocks only, and without the places that `near` has."""
        held: Postings = {word: [] for word in words}
        for word, (blocks, all_places) in self._blocks_of(rows.SHELVES[shelf], words, newest).items():
            listed = held[word]
            for block, places in zip(blocks, all_places, strict=True):
                if near is not None:
                    places = places.translate(None, near.get(block, _EVERY_PLACE))
                first = block * BLOCK
                if len(places) == 1:
                    listed.append(first + places[0])
                else:
                    listed += [first + place for place in places]
        return held

    def _blocks_of(self, on: int, words: Sequence[str], newest: int | None) -> dict[str, Blocks]:
        """Return the blocks of all words, and their places."""
        found = self._first_blocks(on, words)
        common = [word for word in words if len(found[word][0]) >= FIRST_BLOCKS]
        if common:
            found |= self._fetch_blocks(on, common, MOST if newest is None else newest)
        return found

    def _first_blocks(self, on: int, words: Sequence[str]) -> dict[str, Blocks]:
        """Return the newest blocks of each word, which are all unless the word is common.

        A search asks first how many rows hold a word, then for the rows of some: both are answered by one statement.
        """
        if self._view.is_guessing:
            return self._first_in_rounds(on, words)
        if not self._view.is_still:
            self._first.clear()
        known = self._first
        if lacking := [word for word in words if (on, word) not in known]:
            found = self._fetch_blocks(on, lacking, FIRST_BLOCKS)
            known |= {(on, word): blocks for word, blocks in found.items()}
        return {word: known[on, word] for word in words}

    def _first_in_rounds(self, on: int, words: Sequence[str]) -> dict[str, Blocks]:
        groups = self._view.asked_with
        lacking = tuple(word for word in words if (on, word) not in groups)
        groups |= {(on, word): lacking for word in lacking}
        found: dict[str, Blocks] = {}
        for group in dict.fromkeys(groups[on, word] for word in words):
            found |= self._fetch_blocks(on, group, FIRST_BLOCKS)
        return {word: found.get(word, _NO_BLOCKS) for word in words}

    def _fetch_blocks(self, on: int, words: Sequence[str], most: int) -> dict[str, Blocks]:
        guess = [(word, [0], [bytes(1)]) for word in words]
        found = self._view.fetch(_HELD, guess=guess, on=on, words=[*words], most=most)
        return dict.fromkeys(words, _NO_BLOCKS) | {word: (blocks, places) for word, blocks, places in found if blocks}

    def packed_of(self, table: str, shelf: str, words: Sequence[str], condition: str, **values: Any) -> Postings:
        """Return the ids of postings whose row `m` of the table fits a condition."""
        # `offset 0` keeps the planner from reading the whole space instead: it has no statistics of words (schema.py).
        sql = f"""
            select w.word, array(
                select m.id
                from postings p
                cross join generate_series(0, length(p.places) - 1) place
                cross join lateral (
                  select *
                  from {table} m
                  where m.space = %(space)s and m.id = p.block * {BLOCK} + get_byte(p.places, place)
                  offset 0
                ) m
                where p.space = %(space)s and p.shelf = %(on)s and p.word = w.word and {condition}
              )
            from unnest(%(words)s::text[]) w (word)"""
        guess = [(word, [0]) for word in words]
        found: list[Any] = self._view.fetch(sql, guess=guess, on=rows.SHELVES[shelf], words=list(words), **values)
        return dict(found)

    def _unpacked(self, on: int) -> Postings:
        """Return the same of the newest memories of a shelf, which are not packed yet."""
        found: Postings = self._made("unpacked", _by_word).get(on, {})
        return found

    def _unpacked_words(self, on: int) -> list[str]:
        """Return their words in order."""
        made: dict[int, list[str]] = self._made("words", lambda _: {})
        if on not in made:
            made[on] = sorted(self._unpacked(on))
        return made[on]

    def _made(self, name: str, make: Callable[[Rows], dict[int, Any]]) -> dict[int, Any]:
        """Make something of the unpacked rows; remember it as long as the rows themselves."""
        found, known, key = self._view.once(_UNPACKED), self._view.known, (_UNPACKED, name)
        if known.get((_UNPACKED,)) is not found:
            return make(found)
        if key not in known:
            known[key] = [(make(found),)]
        made: dict[int, Any] = known[key][0][0]
        return made

    def _unpacked_of(self, on: int, condition: str, **values: Any) -> Postings:
        return _by_word(self._view.fetch(f"{_UNPACKED} and {condition}", **values)).get(on, {})

    def counts(self, shelf: str) -> tuple[int, int, int]:
        return self._view.counts(rows.SHELVES[shelf])

    def rows_with(self, shelf: str, words: Sequence[str]) -> dict[str, int]:
        sql = """
            select word, sum(length(places))
            from postings
            where space = %(space)s and shelf = %(on)s and word = any(%(words)s)
            group by word"""
        on = rows.SHELVES[shelf]
        first = self._first_blocks(on, words)
        counted = {
            word: sum(map(len, places)) for word, (blocks, places) in first.items() if len(blocks) < FIRST_BLOCKS
        }
        common = [word for word in words if word not in counted]
        found: list[Any] = self._view.fetch(sql, on=on, words=common) if common else []
        unpacked = {} if shelf == "messages" else self._unpacked(on)
        counted |= {word: int(number) for word, number in found}
        return {word: counted.get(word, 0) + len(unpacked.get(word, ())) for word in words}

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
        unpacked = self._unpacked_words(rows.SHELVES[shelf])
        start = bisect_left(unpacked, beginning)
        begun = takewhile(lambda word: word.startswith(beginning), islice(unpacked, start, start + limit))
        return sorted({*begun, *(word for (word,) in found)})[:limit]

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


def _latest(held: Postings, newest: int) -> Postings:
    """Return the postings of only the newest of all rows."""
    latest = set(sorted({id for ids in held.values() for id in ids}, reverse=True)[:newest])
    return {word: [id for id in ids if id in latest] for word, ids in held.items()}


def _by_word(found: Iterable[Sequence[Any]]) -> dict[int, Postings]:
    """Shelf → word → ids, of rows of _UNPACKED."""
    held: dict[int, Postings] = defaultdict(lambda: defaultdict(list))
    for shelf, id, *columns in found:
        listed = held[shelf]
        for word in {*" ".join(columns[:N_TEXTS]).split()}:
            listed[word].append(id)
    return held


class IndexChanges:
    """The changes of one turn to the index, gathered until its rows are written.

    A memory whose id is not below `packed` has no postings yet: searches read its words from its own row. When a block
    of ids is full, the postings of all its memories are written together, which makes half as many rows.
    """

    def __init__(self, packed: int = 0) -> None:
        self.packed = packed
        self._newest = 0  # id of a memory of this turn
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
        self._newest = max(self._newest, memory.id)
        self._handles += [(handle, memory.id) for handle in ranking.handles_of(memory)]
        self._weighed.append(memory)

    def move(self, view: SpaceView, old: Memory, was: Prepared, new: Memory, now: Prepared) -> None:
        """List a memory as it is now, and no longer as it was."""
        before, after = rows.shelf_of(old), rows.shelf_of(new)
        if before != after or was != now:
            gone, come = tokens_of(was), tokens_of(now)
            both = gone & come if before == after else set[str]()
            self._unlist(view, before, new.id, gone - both)
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
        self._unlist(view, shelf, memory.id, tokens_of(prepared))
        _drop_handles(view, memory.id, ranking.handles_of(memory))
        _write_chunks(view, weights.dropped(memory.id, lambda chunk: _read_chunk(view, chunk)))

    def add_message(self, id: int, words: Iterable[str], n_words: int) -> None:
        """List a new message."""
        shelf = rows.SHELVES["messages"]
        self._list(shelf, set(words), id)
        self._count(shelf, 1, n_words, n_words)

    def drop_message(self, view: SpaceView, id: int, words: Iterable[str], n_words: int) -> None:
        """List a message nowhere."""
        self._unlist(view, rows.SHELVES["messages"], id, set(words))
        self._count(rows.SHELVES["messages"], -1, -n_words, -n_words)

    def write_lists(self, view: SpaceView) -> None:
        """Write the new postings and handles."""
        listed, self._postings = self._postings, {}
        for shelf, held in listed.items():
            rest = "on conflict (space, shelf, word, block) do update set places = postings.places || excluded.places"
            _insert_postings(view, shelf, held, rest)
        handles, self._handles = self._handles, []
        insert(view, "handles", ("handle", "id"), sorted(handles), at_once=256)

    def pack(self, view: SpaceView) -> None:
        """Write the postings of blocks of memories that are full by now. Call it when all rows are written."""
        packed, full = self.packed, (self._newest + 1) // BLOCK * BLOCK
        if full <= packed:
            return
        self.packed = full  # first, because rows that are listed from now on are below
        sql = f"""
            select m.shelf, m.id, {rows.TOKENS_SELECT}
            from memories m
            where m.space = %(space)s and m.id >= %(packed)s and m.id < %(full)s
            order by m.id
            limit {PACK_AT_ONCE}"""
        while found := view.fetch(sql, packed=packed, full=full):
            for shelf, held in _by_word(found).items():
                if shelf != rows.SHELVES["forgotten"]:
                    _insert_postings(view, shelf, held)
            packed = found[-1][1] + 1
        view.run("update heads set packed = %(full)s where space = %(space)s", full=full)

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

    def _is_packed(self, shelf: int, id: int) -> bool:
        return id < self.packed or shelf == rows.SHELVES["messages"]

    def _unlist(self, view: SpaceView, shelf: int, id: int, words: set[str]) -> None:
        """Take a row out of the postings of these words, and leave no word behind that none holds any more."""
        if not words or not self._is_packed(shelf, id):
            return
        self.write_lists(view)  # it may be among them
        block, place = divmod(id, BLOCK)
        values = {"on": shelf, "words": sorted(words), "block": block, "place": _ONE_PLACE[place]}
        sql = """
            delete from postings
            where space = %(space)s and shelf = %(on)s and word = any(%(words)s) and block = %(block)s
              and places = %(place)s"""
        view.run(sql, **values)
        sql = """
            update postings
            set places = overlay(places placing ''::bytea from position(%(place)s in places) for 1)
            where space = %(space)s and shelf = %(on)s and word = any(%(words)s) and block = %(block)s
              and position(%(place)s in places) > 0"""
        view.run(sql, **values)

    def _list(self, shelf: int, words: Iterable[str], id: int) -> None:
        if not self._is_packed(shelf, id):
            return
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
    n_columns = 1 if is_messages else N_TEXTS
    return (columns[:n_columns] for on, *columns in found if on == rows.SHELVES[shelf])


def _insert_postings(view: SpaceView, shelf: int, held: Postings, rest: str = "") -> None:
    """Write postings in order, so that those of one page of the index follow each other."""
    found = [(word, *packed) for word in sorted(held) for packed in _in_blocks(held[word])]
    insert(view, "postings", ("shelf", "word", "block", "places"), found, same=(shelf,), rest=rest, at_once=1024)


def _in_blocks(ids: Iterable[int]) -> Iterable[tuple[int, bytes]]:
    """Return each block of the ids with their places in it."""
    places: dict[int, bytearray] = {}
    for id in ids:
        places.setdefault(id // BLOCK, bytearray()).append(id % BLOCK)
    return [(block, bytes(some)) for block, some in places.items()]


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
