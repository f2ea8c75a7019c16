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
from kept.model import Conflict, Event, Memory, Record
from kept.storage.sqlite import histories, rows


def check_record(connection: apsw.Connection, noun: type[Record], id: int) -> None:
    """No record was found under this number: is it in an index of the table all the same?"""
    table = rows.table_of(noun)
    last: Any = connection.execute("select seq from sqlite_sequence where name = ?", (table,)).get
    # The plus keeps SQLite from the tree that was asked already: it reads the smallest index instead.
    if id <= (last or 0) and connection.execute(f"select 1 from {table} where +id = ?", (id,)).fetchone():
        raise rows.damaged(f"{noun.noun} {id}")


def check_history(connection: apsw.Connection, subject: str, history: Sequence[Event]) -> None:
    """All that was found of what happened to a record: does it lead to the record that is there now?"""
    life = journal.since_erasure(history)
    if any(event.changed is None for event in life) or histories.lost_by_repairs(connection)["events"]:
        return
    told = journal.replay(life)
    noun = journal.noun_of(history[0]) if history else Memory  # of which a uid is asked for
    found = _record(connection, noun, subject, told.get("id"))
    if not histories.is_what_was_told(found, told):
        raise rows.damaged(f"The history of {noun.noun} {told.get('id') or subject}, or what it is about,")


def check_no_history(connection: apsw.Connection, subject: str) -> None:
    """Nothing was found of what happened to a record: is it in the journal all the same? This reads all of it."""
    if connection.execute("select 1 from events not indexed where subject = ?", (subject,)).fetchone():
        raise rows.damaged(f"The history of {subject}")


def check_payloads(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Some events do not say what they changed: has a later one erased that?"""
    sql = "select 1 from events where subject = ? and action = 'erase' and seq > ?"
    silent = [
        event
        for event in events
        if event.changed is None and not connection.execute(sql, (event.subject, event.seq)).fetchone()
    ]
    if silent:
        gone = {event.seq for event in silent if _went_with_a_memory(connection, event)}
        gone |= histories.lost_by_repairs(connection)["payloads"]
        for event in silent:
            if event.seq not in gone:
                raise rows.damaged(f"What event {event.seq} changed")


def check_order(events: Sequence[Event]) -> None:
    """Events in the order of the journal: is each there once?"""
    for before, after in pairwise(events):
        if before.seq >= after.seq:
            raise rows.damaged(f"An index of the journal, which has event {after.seq} twice,")


def check_sequence(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Events that follow each other in the journal: is none missing between them?"""
    for before, after in pairwise(events):
        if after.seq == before.seq + 1 and after.prev == before.hash:
            continue
        lost = histories.lost_by_repairs(connection)["events"]
        if after.seq == before.seq + 1 or not lost.issuperset(range(before.seq + 1, after.seq)):
            raise rows.damaged(f"The journal between event {before.seq} and event {after.seq}")


def check_group(connection: apsw.Connection, group: str, events: Sequence[Event]) -> None:
    """All that was found of one call: are its neighbours in the journal not of the same call?"""
    if not events:
        return
    sql = 'select seq from events where seq between ? and ? and +"group" = ?'
    found = connection.execute(sql, (events[0].seq - 1, events[-1].seq + 1, group)).fetchall()
    if len(found) != len(events):
        raise rows.damaged(f"The journal around event {events[0].seq}")


def check_session(connection: apsw.Connection, name: str) -> None:
    """No session of this name was found by the index: is there one all the same?"""
    if connection.execute("select 1 from sessions not indexed where name = ?", (name,)).fetchone():
        raise rows.damaged(f"The index of sessions, which lacks {name},")


def check_messages(connection: apsw.Connection, session: str, places: Sequence[int]) -> None:
    """Messages were found at these places, all of a session: does the other index know as many?"""
    sql = "select count(*) from messages where session = ? and message_id >= ''"
    if len({*places}) != connection.execute(sql, (session,)).get:
        raise rows.damaged(f"An index of messages, of which some belong to session {session},")


def check_place(connection: apsw.Connection, session: str, place: int) -> None:
    """No message was found at a place that is not behind the last: does the other index lead to one?"""
    sql = "select 1 from messages where session = ? and message_id >= '' and +n = ?"
    if connection.execute(sql, (session, place)).fetchone():
        raise rows.damaged(f"Message {place} of session {session}")


def _went_with_a_memory(connection: apsw.Connection, event: Event) -> bool:
    """A conflict is erased with either of the memories that it names, and then nothing says with which."""
    return (
        journal.noun_of(event) is Conflict
        and int(event.subject[1:]) not in histories.ids_of(connection, Conflict)
        and connection.execute("select 1 from events where action = 'erase'").fetchone() is not None
    )


def _record(connection: apsw.Connection, noun: type[Record], subject: str, id: int | None) -> Record | None:
    column, value = ("uid", subject) if noun is Memory else ("id", id)
    sql = f"select {', '.join(rows.columns_of(noun))} from {rows.table_of(noun)} where {column} = ?"
    row: Any = connection.execute(sql, (value,)).fetchone()
    return None if row is None else rows.to_record(noun, row, "")
