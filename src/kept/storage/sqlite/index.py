"""The index of a SQLite space: FTS5 tables, weights, hot words and handles, as SQL.

`SqliteIndex` answers what storage/ranking.py asks; the functions keep weights and handles in step with the memories
(triggers do so for FTS5) and serve doctor. FTS5's own ranking looks up the length of every row that it finds and knows
nothing of feedback or age. Here it only lists ids, in a tenth of the time.
Rule: what the index says of a row is checked against the row itself, which carries a checksum.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import apsw

from kept import text
from kept.model import Memory, Scope, replace
from kept.ports import ANYWHERE, Deadline, Prepared, Where
from kept.storage import ranking, weights
from kept.storage.ranking import Postings
from kept.storage.shared import damaged, indexes
from kept.storage.sqlite import rows
from kept.storage.sqlite.connection import View
from kept.storage.sqlite.encoding import moment
from kept.storage.sqlite.schema import INDEXES
from kept.storage.weights import ChunkRow, Chunks, Traits, Weights

_RARE, _ROWS_WITH = "rare", "rows with"  # what was seen of a word: all rows that hold it, if few; how many do
RARE = 256  # rows: listing them costs what counting does, and trying it with a common word next to nothing
_FEWEST_MERGED = 2  # pieces of about one size; FTS5 itself would wait for four
_CHUNK_COLUMNS = "stamp, lengths, feedbacks, others, days"
_REPLACE_CHUNK = f"insert or replace into weights (chunk, {_CHUNK_COLUMNS}) values (?, ?, ?, ?, ?, ?)"
_INSERT_HANDLE = "insert or ignore into handles (handle, id) values (?, ?)"


class SqliteIndex:
    """The index as one view of the file sees it."""

    def __init__(self, view: View, known: Weights | None = None) -> None:
        self._view = view
        self.weights = known or Weights()

    @property
    def narrowing(self) -> "SqliteIndex":
        return self

    def until(self, deadline: Deadline | None) -> AbstractContextManager[None]:
        return self._view.until(deadline)

    def postings(
        self, words: Sequence[str], where: Where, *, newest: int | None = None, beside: Sequence[str] = ()
    ) -> Postings:
        held: Postings = {word: [] for word in words}
        for shelf in indexes(where):
            for word, ids in self._listed(shelf, words, where, newest, beside):
                held[word] += ids
        return held if newest is None else _latest(held, newest)

    def _listed(
        self, shelf: str, words: Sequence[str], where: Where, newest: int | None, beside: Sequence[str]
    ) -> Iterator[tuple[str, list[int]]]:
        """The rows of one shelf that hold each word. Rows of rare words may be known already."""
        conditions, values = _filter(where, shelf)
        is_plain = not conditions and newest is None and not beside
        seen = self._view.seen if is_plain else {}
        rare = {word: seen[_RARE, shelf, word] for word in words if (_RARE, shelf, word) in seen}
        yield from rare.items()
        if asked := [word for word in words if word not in rare]:
            matches = rows.json_text(self._matches(asked, beside))
            listed = self._view.fetch(_listing_sql(shelf, conditions, newest), (*values, matches))
            for word, (ids,) in zip(asked, listed, strict=True):
                yield word, rows.from_json(ids)

    def _matches(self, words: Sequence[str], beside: Sequence[str]) -> list[str]:
        """What to ask FTS5 for each word; with `beside`, for rows that also hold one of those."""
        if not beside:
            return [_query(self._view, word) for word in words]
        also = " OR ".join(f"({_query(self._view, word)})" for word in beside)
        return [f"({_query(self._view, word)}) AND ({also})" for word in words]

    def counts(self, shelf: str) -> tuple[int, int, int]:
        return self._view.once(("counts", shelf), lambda: counts(self._view, shelf))

    def rows_with(self, shelf: str, words: Sequence[str]) -> dict[str, int]:
        if self._view.is_changing:
            return rows_with(self._view, shelf, words)
        # A search asks several times, and counting a common word takes a while.
        seen = self._view.seen
        if new := [word for word in words if (_ROWS_WITH, shelf, word) not in seen]:
            self._list_rare(shelf, [word for word in new if _is_token(word)])
            common = [word for word in new if (_ROWS_WITH, shelf, word) not in seen]
            counted = rows_with(self._view, shelf, common) if common else {}
            seen.update(((_ROWS_WITH, shelf, word), counted.get(word, 0)) for word in common)
        return {word: n for word in words if (n := seen[_ROWS_WITH, shelf, word])}

    def _list_rare(self, shelf: str, words: Sequence[str]) -> None:
        """List the rows of rare words: that takes no longer than to count them, and a search needs them next."""
        sql = f"""
            select (
              select json_group_array(id)
              from (select rowid as id from {shelf}_fts where {shelf}_fts match asked.value limit {RARE + 1})
            )
            from json_each(?) asked"""
        found = self._view.fetch(sql, (rows.json_text([f'"{word}"' for word in words]),)) if words else []
        for word, (listed,) in zip(words, found, strict=True):
            ids = rows.from_json(listed)
            if len(ids) <= RARE:
                self._view.seen[_RARE, shelf, word] = ids
                self._view.seen[_ROWS_WITH, shelf, word] = len(ids)

    def hot_words(self, shelf: str, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        sql = """
            select h.word, h.rows_with
            from json_each(?) asked
            cross join hot_words h on h.shelf = ? and h.word = asked.value"""
        found = dict(self._view.fetch(sql, (rows.json_text(words), shelf)))
        return int(self._view.meta(f"hot_words_at_{shelf}") or 0), found

    def tokens(self, ids: Sequence[int]) -> Iterable[tuple[int, Prepared]]:
        sql = f"""
            select m.id, {", ".join(f"m.{column}" for column in rows.PREPARED)}
            from json_each(?) short
            cross join memories m on m.id = short.value"""
        return [(id, Prepared(*prepared)) for id, *prepared in self._view.fetch(sql, (rows.json_text(ids),))]

    def traits(self, ids: Sequence[int]) -> Iterable[tuple[int, Traits]]:
        sql = f"""
            select m.id, {", ".join(f"m.{column}" for column in Traits._fields)}
            from json_each(?) matches
            cross join memories m on m.id = matches.value"""
        return [(id, Traits(*traits)) for id, *traits in self._view.fetch(sql, (rows.json_text(ids),))]

    def memories(
        self, ids: Sequence[int], words: Sequence[str] = (), where: Where = ANYWHERE
    ) -> list[tuple[rows.Unread, Prepared]]:
        found = self._view.memory_rows(ids)
        shelves = indexes(where)
        if words and len(found) < len(ids):
            raise damaged(f"The search index of {shelves[0]} (it lists a memory that does not exist)")
        hits = []
        for row in found:
            memory, prepared = rows.Unread(row, self._view.space), rows.to_prepared(row)
            if words:
                p = prepared
                held = f"{p.words} {p.tag_words} {p.file_words} {p.source_words} {p.kind_words}"
                if rows.shelf_in(row) not in shelves or not holds_any(self._view, held, words):
                    raise damaged(f"The search index of {shelves[0]} (it wrongly lists memory {memory.id})")
            hits.append((memory, prepared))
        return hits

    def terms(self, shelf: str, beginning: str, limit: int) -> list[str]:
        sql = f"select term from {shelf}_vocabulary where term >= ? and term < ? limit {limit:d}"
        return [str(term) for (term,) in self._view.fetch(sql, (beginning, beginning + "\U0010ffff"))]

    def listed(self, handles: Sequence[int], newest: int) -> dict[int, list[int]]:
        sql = f"""
            select h.value, (
              select json_group_array(id)
              from (select id from handles where handle = h.value order by id desc limit {newest:d})
            )
            from json_each(?) h"""
        found = self._view.fetch(sql, (rows.json_text(handles),))
        return {handle: rows.from_json(ids) for handle, ids in found if ids != "[]"}

    def last_id(self) -> int:
        return int(self._view.fetch("select max(id) from memories")[0][0] or 0)

    def stamps(self) -> list[tuple[int, int]]:
        return self._view.once("stamps", lambda: self._view.fetch("select chunk, stamp from weights"))

    def chunks(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        sql = f"select chunk, {_CHUNK_COLUMNS} from json_each(?) wanted cross join weights on chunk = wanted.value"
        return {chunk: tuple(row) for chunk, *row in self._view.fetch(sql, (rows.json_text(numbers),))}


def counts(view: View, shelf: str) -> tuple[int, int, int]:
    """Rows, words and tokens of a shelf, or of messages."""
    sql = "select rows, words, tokens from corpus where shelf = ?"
    for found in view.fetch(sql, (shelf,)):
        return tuple(found)
    raise damaged(f"The word count of {shelf}")


def rows_with(view: View, shelf: str, words: Sequence[str]) -> dict[str, int]:
    """How many rows of a shelf, or messages, hold each of these words; words that none holds are missing."""
    sql = f"""
        select v.term, v.doc
        from json_each(?) asked
        cross join {shelf}_vocabulary v on v.term = asked.value"""
    return dict(view.fetch(sql, (rows.json_text(words),)))


def holds_any(view: View, tokens_of_row: str, words: Sequence[str]) -> bool:
    """Whether the tokens of a row, which its checksum covers, bear out what the index says of it."""
    held = f" {tokens_of_row} "
    for word in words:
        if word in held and f" {word} " in held:
            return True
    # Not a prepared word, perhaps ("Auth", "a-b"): ask FTS5 how it reads it.
    row_tokens = set(_tokens(view, held, apsw.FTS5_TOKENIZE_DOCUMENT))
    return any(row_tokens.issuperset(_tokens(view, word, apsw.FTS5_TOKENIZE_QUERY)) for word in words)


def _listing_sql(shelf: str, conditions: Sequence[str], newest: int | None) -> str:
    """The statement that lists rows: as one JSON list a word, all at once, five times faster than row by row."""
    return f"""
        select (
          select json_group_array(id)
          from (
            select f.rowid as id
            from {shelf}_fts f
            {"cross join memories m on m.id = f.rowid" if conditions else ""}
            where {" and ".join([f"{shelf}_fts match asked.value", *conditions])}
            {"" if newest is None else f"order by f.rowid desc limit {newest:d}"}
          )
        )
        from json_each(?) asked"""


def _latest(held: Postings, newest: int) -> Postings:
    """Only the newest rows of all words together."""
    latest = set(sorted({id for ids in held.values() for id in ids}, reverse=True)[:newest])
    return {word: [id for id in ids if id in latest] for word, ids in held.items()}


def _query(view: View, word: str) -> str:
    """What to ask an index for. It holds no positions, so that of a word which FTS5 splits all parts must match."""
    if _is_token(word.lower()):
        return f'"{word}"'
    return " AND ".join(f'"{token}"' for token in _tokens(view, word, apsw.FTS5_TOKENIZE_QUERY)) or '""'


def _is_token(word: str) -> bool:
    """Whether FTS5 certainly reads the word as itself."""
    return word.isascii() and word.replace("_", "a").isalnum() and word == word.lower()


def _tokens(view: View, string: str, reason: int) -> list[str]:
    """How FTS5 reads a text."""
    tokenizer, *arguments = text.FTS_TOKENIZE.replace("'", "").split()  # no argument has a space
    tokenize = view.connection.fts5_tokenizer(tokenizer, arguments)
    read = tokenize(string.encode(), reason, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in read]


def _filter(where: Where, shelf: str) -> tuple[list[str], list[Any]]:
    """What is left to ask of a row in the index of a shelf: it stands on that shelf, and the live one has one scope."""
    conditions, values = rows.clauses(replace(where, shelf="any", scope=None if shelf == "live" else where.scope))
    return [condition for condition in conditions if condition != "true"], values


def note(connection: apsw.Connection, memories: Sequence[Memory], known: Chunks) -> None:
    """Weigh new memories, and list them under their handles. Call it inside a transaction.

    `known`: the last chunk of weights that was written, if nobody else has written since; afterwards, the one written
    here.
    """
    _write_chunks(connection, weights.noted(memories, known, partial(_read_chunk, connection)))
    listed = [(handle, memory.id) for memory in memories for handle in ranking.handles_of(memory)]
    rows.insert(connection, _INSERT_HANDLE, sorted(listed))


def move(connection: apsw.Connection, changes: Sequence[tuple[Memory, Memory]], known: Chunks) -> None:
    """Weigh memories as they are now, and list them under their new handles. Call it inside a transaction."""
    after = [memory for _, memory in changes]
    _write_chunks(connection, weights.noted(after, known, partial(_read_chunk, connection)))
    for old, new in changes:
        before, now = ranking.handles_of(old), ranking.handles_of(new)
        _unlist(connection, new.id, before - now)
        rows.insert(connection, _INSERT_HANDLE, [(handle, new.id) for handle in now - before])


def drop(connection: apsw.Connection, id: int, words: Sequence[str], scope: Scope) -> None:
    """Keep no weight of a memory with these words, and list it nowhere. Call it inside a transaction."""
    _write_chunks(connection, weights.dropped(id, partial(_read_chunk, connection)))
    _unlist(connection, id, ranking.handles_of_words(words, scope))


def rebuild(connection: apsw.Connection) -> None:
    """Make weights, hot words and handles again from the memories. Call it inside a transaction."""
    refresh_hot_words(connection)
    connection.execute("delete from weights")
    found: Any = connection.execute(f"select {rows.MEMORY_SELECT} from memories m").fetchall()
    memories = (rows.to_memory(row, "") for row in found)
    _write_chunks(connection, weights.noted(memories, {}, partial(_read_chunk, connection)))
    connection.execute("delete from handles")
    rows.insert(connection, _INSERT_HANDLE, _all_handles(connection))


def refresh_hot_words(connection: apsw.Connection) -> None:
    """Count the common words of shelves that have outgrown their last count. Call it inside a transaction."""
    shelves: Any = connection.execute("select shelf, rows from corpus where shelf <> 'forgotten'").fetchall()
    for shelf, n_rows in shelves:
        name = f"hot_words_at_{shelf}"
        counted_at: Any = connection.execute("select value from meta where name = ?", (name,)).get
        if not ranking.has_outgrown(n_rows, None if counted_at is None else int(counted_at)):
            continue
        found = ranking.hot_words_of(_sample(connection, shelf), n_rows)
        connection.execute("delete from hot_words where shelf = ?", (shelf,))
        connection.executemany(
            "insert into hot_words (shelf, word, rows_with) values (?, ?, ?)",
            [(shelf, word, n_with) for word, n_with in found.items()],
        )
        connection.execute(
            "insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value",
            (name, str(n_rows)),
        )


def merge(connection: apsw.Connection, n_pages: int) -> None:
    """Join the pieces that writes have left of the full-text indexes, by writing about that many pages of them.

    Every write leaves a piece, and a search looks for each word in every piece: in a store of 10,000 with 18 pieces
    that took four times as long as with one. Call it inside a transaction.
    """
    for shelf in INDEXES:
        if connection.execute(f"select v from {shelf}_fts_config where k = 'usermerge'").get != _FEWEST_MERGED:
            connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('usermerge', {_FEWEST_MERGED})")
        connection.execute(f"insert into {shelf}_fts ({shelf}_fts, rank) values ('merge', {n_pages:d})")


def wrongly_weighed(connection: apsw.Connection) -> list[int]:
    """The memories whose weights are not theirs, for doctor."""
    sql = "select id, feedback, coalesce(last_hit_at, created_at) from memories"
    found: Any = connection.execute(sql).fetchall()
    kept = ((id, feedback, moment(at)) for id, feedback, at in found)
    return weights.wrong(SqliteIndex(View("", connection)), kept)


def wrongly_listed(connection: apsw.Connection) -> list[int]:
    """The memories that are listed where they should not be, or not where they should, for doctor."""
    found: Any = connection.execute("select handle, id from handles").fetchall()
    return sorted({id for _, id in set(found) ^ set(_all_handles(connection))})


def _sample(connection: apsw.Connection, shelf: str) -> Iterable[Sequence[Any]]:
    """Rows that lie evenly between the oldest and the newest, as their columns of tokens."""
    first, last = connection.execute(f"select min(id), max(id) from {shelf}_fts_docsize").fetchone() or (0, 0)
    places = [first + (last - first) * number // ranking.SAMPLE for number in range(ranking.SAMPLE)]
    sql = f"""
        select *
        from {shelf}_fts
        where rowid in (
          select (select id from {shelf}_fts_docsize where id >= place.value order by id limit 1)
          from json_each(?) place
        )"""
    return connection.execute(sql, (rows.json_text(places),))


def _read_chunk(connection: apsw.Connection, chunk: int) -> ChunkRow | None:
    found: Any = connection.execute(f"select {_CHUNK_COLUMNS} from weights where chunk = ?", (chunk,)).fetchone()
    return None if found is None else tuple(found)


def _write_chunks(connection: apsw.Connection, changed: Iterable[tuple[int, ChunkRow]]) -> None:
    for chunk, row in changed:
        connection.execute(_REPLACE_CHUNK, (chunk, *row))


def _all_handles(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Handle and id of all memories as they should be listed."""
    sql = "select id, words, scope from memories where shelf in ('live', 'library')"
    found: Any = connection.execute(sql)
    return [(handle, id) for id, words, scope in found for handle in ranking.handles_of_words(words.split(), scope)]


def _unlist(connection: apsw.Connection, id: int, handles: Iterable[int]) -> None:
    connection.executemany("delete from handles where handle = ? and id = ?", [(handle, id) for handle in handles])
