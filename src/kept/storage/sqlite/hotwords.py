"""How many rows hold a common word, without counting them each time.

FTS5 counts the rows of a word by walking its postings: 27 ms for one common word among a million
rows. So the words that more than 2 % of the rows hold are counted once and looked up from then on,
scaled by how much the shelf has grown since. Small shelves are always counted exactly.
"""

from typing import Any

import apsw

from kept.storage.sqlite.searching import EXACT_UP_TO_ROWS

_HOT_SHARE = 0.02
_GROWTH = 1.5  # count anew when a shelf has grown by half: the work stays proportional to what was written


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
        connection.execute(
            f"""
            insert into hot_words (shelf, word, rows_with)
            select ?, term, doc from {shelf}_vocabulary where doc > ?""",
            (shelf, int(n_rows * _HOT_SHARE)),
        )
        connection.execute(
            "insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value",
            (name, str(n_rows)),
        )
