"""Which memories may be about the same thing, answered for a whole batch of new texts in two statements.

A full-text search costs 20 µs a word, which is more than all the rest of remembering. So each live memory is also
listed under a few of its words (text.handles), as numbers. Rule: a number leads to candidates only; whether they
really say the same is decided by their texts, so that two words with one number cost time and change nothing.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from kept import text
from kept.model import Memory, Scope
from kept.ports import COMMON_HANDLE
from kept.storage.shared import index_of, text_of
from kept.storage.sqlite import rows


def note(connection: apsw.Connection, memories: Iterable[Memory]) -> None:
    """List new memories under their handles. Call it inside a transaction."""
    _insert(connection, sorted([(handle, memory.id) for memory in memories for handle in _of(memory)]))


def move(connection: apsw.Connection, before: Memory, after: Memory) -> None:
    """List a memory under the handles that it has now. Call it inside a transaction."""
    old, new = _of(before), _of(after)
    _delete(connection, [(handle, before.id) for handle in old - new])
    _insert(connection, [(handle, after.id) for handle in new - old])


def drop(connection: apsw.Connection, id: int, words: Sequence[str], scope: Scope) -> None:
    """List a memory with these words nowhere any more. Call it inside a transaction."""
    _delete(connection, [(handle, id) for handle in _numbers(text.handles(words), scope)])


def rebuild(connection: apsw.Connection) -> None:
    """List all memories anew. Call it inside a transaction."""
    connection.execute("delete from handles")
    _insert(connection, _listed(connection))


def wrong(connection: apsw.Connection) -> list[int]:
    """The memories that are listed where they should not be, or not where they should, for doctor."""
    found: Any = connection.execute("select handle, id from handles").fetchall()
    return sorted({id for _, id in set(found) ^ set(_listed(connection))})


def alike(connection: apsw.Connection, texts: Sequence[Sequence[str]], scope: Scope, limit: int) -> list[list[int]]:
    """For each text the ids of the memories that share handles with it, most first."""
    wanted = [sorted(_numbers(text.handles(words), scope)) for words in texts]
    sql = f"""
        select h.value, (
          select json_group_array(id)
          from (select id from handles where handle = h.value order by id desc limit {COMMON_HANDLE})
        )
        from json_each(?) h"""
    asked = rows.json_text(sorted({handle for handles in wanted for handle in handles}))
    answered: Any = connection.execute(sql, (asked,)).fetchall()
    listed: dict[int, list[int]] = {handle: rows.from_json(ids) for handle, ids in answered if ids != "[]"}
    return [
        _most_shared([listed[handle] for handle in handles if handle in listed], handles, limit) for handles in wanted
    ]


def _most_shared(lists: Sequence[Sequence[int]], handles: Sequence[int], limit: int) -> list[int]:
    together = [id for ids in lists for id in ids]
    if len(handles) > 1 and len(set(together)) == len(together):
        return []  # as for most texts: nothing shares two
    shared = Counter(together)
    enough = [(-times, -id) for id, times in shared.items() if times >= text.enough_handles(len(handles))]
    return [-id for _, id in sorted(enough)[:limit]]


def _of(memory: Memory) -> set[int]:
    """The numbers under which a memory is listed: none, once it is archived or forgotten."""
    if index_of(memory) not in ("live", "library"):
        return set()
    return _numbers(text.handles_of(text_of(memory)), memory.scope)


def _numbers(handles: Iterable[str], scope: Scope) -> set[int]:
    start = zlib.crc32(scope.encode())
    return {zlib.crc32(handle.encode(), start) for handle in handles}


def _listed(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Handle and id of all memories as they should be listed."""
    sql = "select id, words, scope from memories where shelf in ('live', 'library')"
    listed: Any = connection.execute(sql)
    return [(handle, id) for id, words, scope in listed for handle in _numbers(text.handles(words.split()), scope)]


def _insert(connection: apsw.Connection, listed: Sequence[tuple[int, int]]) -> None:
    rows.insert(connection, "insert or ignore into handles (handle, id) values (?, ?)", listed)


def _delete(connection: apsw.Connection, listed: Sequence[tuple[int, int]]) -> None:
    connection.executemany("delete from handles where handle = ? and id = ?", listed)
