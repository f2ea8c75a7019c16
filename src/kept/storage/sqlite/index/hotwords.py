"""How many rows hold a common word, without counting them each time.

FTS5 counts the rows of a word by walking its postings: 11 ms for one common word among a million rows. So the
words that more than 2 % of the rows hold are counted in advance, on a sample, and looked up from then on, scaled by how
much the shelf has grown since. The sample is of one size, so that no write ever waits for long (0.1 s, once in a while)
however large a shelf is. Small shelves are always counted exactly.
"""

from collections import Counter
from typing import Any

import apsw

from kept.storage.sqlite.index.search import EXACT_UP_TO_ROWS
from kept.storage.sqlite.rows import json_text

SAMPLE = 8_192  # rows: the count of a word that 2 % of them hold is right within 8 %, its weight within 2 %
_HOT_SHARE = 0.02
_GROWTH = 1.5  # count anew when a shelf has grown by half
LOOK_EVERY = 64  # events: whether it has need not be known at once


def refresh_if_grown(connection: apsw.Connection) -> None:
    """Count the common words of shelves that have outgrown their last count. Call it inside a transaction."""
    sql = "select shelf, rows from corpus where rows > ? and shelf <> 'forgotten'"
    grown: list[Any] = connection.execute(sql, (EXACT_UP_TO_ROWS,)).fetchall()
    for shelf, n_rows in grown:
        name = f"hot_words_at_{shelf}"
        row = connection.execute("select value from meta where name = ?", (name,)).fetchone()
        if row is not None and n_rows < int(row[0]) * _GROWTH:
            continue
        connection.execute("delete from hot_words where shelf = ?", (shelf,))
        connection.executemany(
            "insert into hot_words (shelf, word, rows_with) values (?, ?, ?)",
            [(shelf, word, max(1, round(share * n_rows))) for word, share in _common_words(connection, shelf).items()],
        )
        connection.execute(
            "insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value",
            (name, str(n_rows)),
        )


def _common_words(connection: apsw.Connection, shelf: str) -> dict[str, float]:
    """Word → share of the rows that hold it, by rows that lie evenly between the oldest and the newest."""
    first, last = connection.execute(f"select min(id), max(id) from {shelf}_fts_docsize").fetchone() or (0, 0)
    places = [first + (last - first) * number // SAMPLE for number in range(SAMPLE)]
    sql = f"""
        select *
        from {shelf}_fts
        where rowid in (
          select (select id from {shelf}_fts_docsize where id >= place.value order by id limit 1)
          from json_each(?) place
        )"""
    held: Counter[str] = Counter()
    sampled = 0
    for columns in connection.execute(sql, (json_text(places),)):
        sampled += 1
        held.update({word for column in columns for word in str(column).split()})
    return {word: rows / sampled for word, rows in held.items() if rows > _HOT_SHARE * sampled}
