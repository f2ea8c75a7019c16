"""When something is not there: whether another place in the file says that it should be.

A row that is found shows by its checksum that it is what was written. One that is not found shows nothing: a changed
byte in a tree or in an index hides it without an error. So a "no" to a direct question (a number, a uid, a history,
what an event changed) is checked against a place that would know better. Rule: nothing here changes or repairs;
what cannot be explained raises Corrupt. What is found by words is not covered (docs/guarantees.md).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import apsw

from kept import journal
from kept.model import Conflict, Event, Memory, Record, Session
from kept.storage.sqlite import histories, rows


def check_record(connection: apsw.Connection, noun: type[Record], id: int) -> None:
    """No record was found under this number: is it in an index of the table all the same?"""
    table = rows.table_of(noun)
    last: Any = connection.execute("select seq from sqlite_sequence where name = ?", (table,)).get
    # The plus keeps SQLite from the tree that was asked already: it reads the smallest index instead.
    if id <= (last or 0) and connection.execute(f"select 1 from {table} where +id = ?", (id,)).fetchone():
        raise rows.damaged(f"{noun.noun} {id}")


def check_events(
    connection: apsw.Connection, found: Sequence[Event], subject: str | None, group: str | None, *, is_all: bool
) -> None:
    """These events were found, in the order of the journal: all of them, or some that follow each other."""
    _check_order(found)
    _check_payloads(connection, found)
    if subject is None and group is None:
        _check_sequence(connection, found)
    elif is_all and subject is None:
        _check_group(connection, found)
    elif is_all and group is None and subject is not None:
        check_history(connection, subject, found)
        if not found:
            _check_no_history(connection, subject)


def check_history(connection: apsw.Connection, subject: str, history: Sequence[Event]) -> None:
    """All that was found of what happened to a record: does it lead to the record that is there now?"""
    told = _told(connection, subject, history)
    if told is None:
        return
    noun = journal.noun_of(history[0]) if history else Memory  # of which a uid is asked for
    found = _record(connection, noun, subject, told.get("id"))
    if not histories.is_what_was_told(found, told):
        raise rows.damaged(f"The history of {noun.noun} {told.get('id') or subject}, or what it is about,")


def check_session(connection: apsw.Connection, name: str, history: Sequence[Event]) -> None:
    """No session of this name was found: does its history lead to one?"""
    if _told(connection, f"{Session.noun}:{name}", history):
        raise rows.damaged(f"The index of sessions, which lacks {name},")


def check_messages(connection: apsw.Connection, session: str, found: int) -> None:
    """So many messages of a session were found, which is all: does the other index know as many?"""
    sql = "select count(*) from messages where session = ? and message_id >= ''"
    if connection.execute(sql, (session,)).get != found:
        raise rows.damaged(f"An index of messages, of which some belong to session {session},")


def check_packed(connection: apsw.Connection, session: str) -> None:
    """No packed messages were found: if the session was packed, are they there all the same, or under nobody's name?"""
    sql = "select 1 from sessions where name = ? and packed_at is not null"
    if connection.execute(sql, (session,)).fetchone():
        sql = "select 1 from packed_sessions where +session = ? or session not in (select name from sessions)"
        if connection.execute(sql, (session,)).fetchone():
            raise rows.damaged(f"The packed session {session}")


def check_place(connection: apsw.Connection, session: str, place: int) -> None:
    """No message was found at a place: if it is not behind the last one, does the other index lead to one?"""
    last: Any = connection.execute("select max(n) from messages where session = ?", (session,)).get
    sql = "select 1 from messages where session = ? and message_id >= '' and +n = ?"
    if isinstance(last, int) and 0 < place <= last and connection.execute(sql, (session, place)).fetchone():
        raise rows.damaged(f"Message {place} of session {session}")


def _check_order(events: Sequence[Event]) -> None:
    for before, after in pairwise(events):
        if before.seq >= after.seq:
            raise rows.damaged(f"An index of the journal, which has event {after.seq} twice,")


def _check_payloads(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Some events do not say what they changed: has a later one erased that?"""
    silent = [event for event in events if event.changed is None]
    if not silent:
        return
    sql = """
        select subject, max(seq) from events
        where action = 'erase' and subject in (select value from json_each(?))
        group by subject"""
    subjects = rows.json_text(sorted({event.subject for event in silent}))
    by_name: Any = connection.execute(sql, (subjects,)).fetchall()
    erased: dict[str, int] = dict(by_name)
    if any(journal.noun_of(event) is Conflict for event in silent):
        # It went with a memory that it named, and its names went with it: any erasure explains it.
        some: Any = connection.execute("select subject, seq from events where action = 'erase' limit 1").fetchall()
        erased = dict(some) | erased
    missing = histories.missing_payloads(silent, histories.ids_of(connection, Conflict), erased)
    if unexplained := set(missing) - histories.lost_by_repairs(connection)["payloads"]:
        raise rows.damaged(f"What event {min(unexplained)} changed")


def _check_sequence(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Is none missing between them?"""
    gaps = [(e, after) for e, after in pairwise(events) if after.seq != e.seq + 1 or after.prev != e.hash]
    lost = histories.lost_by_repairs(connection)["events"] if gaps else set()
    for before, after in gaps:
        if after.seq == before.seq + 1 or not lost.issuperset(range(before.seq + 1, after.seq)):
            raise rows.damaged(f"The journal between event {before.seq} and event {after.seq}")


def _check_group(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """All that was found of one call: are its neighbours in the journal of other calls?"""
    if events:
        sql = 'select count(*) from events where seq between ? and ? and +"group" = ?'
        around = (events[0].seq - 1, events[-1].seq + 1, events[0].group)
        if connection.execute(sql, around).get != len(events):
            raise rows.damaged(f"The journal around event {events[0].seq}")


def _check_no_history(connection: apsw.Connection, subject: str) -> None:
    """Nothing was found of what happened to a record: is it in the journal all the same? This reads all of it."""
    if connection.execute("select 1 from events not indexed where subject = ?", (subject,)).fetchone():
        raise rows.damaged(f"The history of {subject}")


def _told(connection: apsw.Connection, subject: str, history: Sequence[Event]) -> dict[str, Any] | None:
    """The record that a history leads to, in wire form; None if a repair could not save all of it."""
    life = journal.since_erasure(history)
    lost = histories.lost_by_repairs(connection)
    is_incomplete = lost["events"] or subject in lost["records"] or any(event.changed is None for event in life)
    return None if is_incomplete else journal.replay(life)


def _record(connection: apsw.Connection, noun: type[Record], subject: str, id: int | None) -> Record | None:
    column, value = ("uid", subject) if noun is Memory else ("id", id)
    sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} where {column} = ?"
    row: Any = connection.execute(sql, (value,)).fetchone()
    return None if row is None else rows.to_record(noun, row, "")
