"""Kept's own export: everything of a space as lines of JSON, without loss.

The first line names the format, a line `space` begins each space, and the last line says how many there were, so that
a file which was cut off is noticed. Between them every record has one line with its history: who changed what, when,
and in which group. Messages follow their session in batches. Rule: reading what was written gives the same pieces.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput
from kept.model import NOUNS, Event, Memory, Message, Record

FORMAT = "kept/1"
MESSAGES_PER_LINE = 200
_NOUNS: Mapping[str, type[Record]] = {noun.noun: noun for noun in NOUNS}


class Piece(Struct, frozen=True, kw_only=True):
    """One record of a space with its history; or, without a noun, messages of a session.

    A record that is None was removed: only its history is left. `subject` is its name in the journal.
    """

    space: str
    noun: type[Record] | None = None
    subject: str = ""
    record: Record | None = None
    history: tuple[Event, ...] = ()
    session: str = ""
    messages: tuple[Message, ...] = ()


def piece_of(space: str, record: Record, history: Iterable[Event] = ()) -> Piece:
    """The piece of a record."""
    return Piece(space=space, noun=type(record), subject=record.subject, record=record, history=tuple(history))


class ToldEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event as it is written down: without number and seal, which belong to one journal."""

    group: str
    at: datetime
    actor: str
    action: str
    undoes: str | None = None
    changed: dict[str, tuple[Any, Any]] | None = None


class _Line(Struct, kw_only=True):
    """Any line of an export."""

    format: str | None = None
    space: str | None = None
    end: int | None = None
    noun: str | None = None
    subject: str = ""
    record: dict[str, Any] | None = None
    history: list[ToldEvent] = []
    session: str = ""
    messages: list[Message] | None = None


_decode = msgspec.json.Decoder(_Line).decode
_encode = msgspec.json.Encoder().encode


def is_export(beginning: bytes) -> bool:
    """Whether a file that begins like this is an export of Kept, of this version or another."""
    return beginning.lstrip(b"\xef\xbb\xbf \r\n").startswith((b'{"format":"kept/', b'{"format": "kept/'))


def lines(pieces: Iterable[Piece], *, version: str, at: datetime) -> Iterator[bytes]:
    """The lines of an export, without their newlines."""
    yield _encode({"format": FORMAT, "kept": version, "exported_at": at})
    number, space = 1, None
    for piece in pieces:
        if piece.space != space:
            space = piece.space
            number += 1
            yield _encode({"space": space})
        number += 1
        yield _encode(_document(piece))
    yield _encode({"end": number})


def _document(piece: Piece) -> dict[str, Any]:
    if piece.noun is None:
        return {"session": piece.session, "messages": piece.messages}
    ref = {"ref": piece.record.ref} if isinstance(piece.record, Memory) else {}
    history = [
        ToldEvent(
            group=event.group,
            at=event.at,
            actor=event.actor,
            action=event.action,
            undoes=event.undoes,
            changed=event.changed,
        )
        for event in piece.history
    ]
    return {"noun": piece.noun.noun, "subject": piece.subject, **ref, "record": piece.record, "history": history}


def read(source: Iterable[bytes], name: str) -> Iterator[Piece]:
    """The pieces of an export. Raises InvalidInput, naming the line, for what is none or was cut off."""
    number, space, is_complete = 0, "", False
    for number, raw in enumerate(source, 1):
        line = _line(raw, name, number)
        if is_complete:
            raise _unreadable(name, number, "it comes after the end")
        if line.space is not None:
            space = line.space
        elif line.end is not None:
            if line.end != number - 1:
                raise _unreadable(name, number, f"{line.end} lines were written, and {number - 1} are here")
            is_complete = True
        elif line.messages is not None:
            yield Piece(space=space, session=line.session, messages=tuple(line.messages))
        elif number > 1:
            yield _piece(line, space, name, number)
    if not is_complete:
        raise InvalidInput(
            f"{name} was cut off after {number:,} lines: its last line is missing.",
            hint="Wait until it is written, or copy it again. Nothing is imported from half a file.",
        )


def _line(raw: bytes, name: str, number: int) -> _Line:
    """A line of an export; the first one says whether this version can read it."""
    try:
        line = _decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _unreadable(name, number, "it is damaged or was cut off") from error
    if number == 1 and line.format != FORMAT:
        raise InvalidInput(
            f"{name} is not an export that this version of Kept can read (format {str(line.format)[:20]!r}).",
            hint="Upgrade Kept, or make the file with `kept export --format kept FILE`.",
        )
    return line


def _piece(line: _Line, space: str, name: str, number: int) -> Piece:
    noun = _NOUNS.get(line.noun or "")
    if noun is None:
        raise _unreadable(name, number, "Kept does not know what it is")
    try:
        record = None if line.record is None else msgspec.convert(line.record, noun)
    except msgspec.ValidationError as error:
        raise _unreadable(name, number, str(error)) from error
    history = tuple(
        Event(
            seq=0,
            group=change.group,
            at=change.at,
            actor=change.actor,
            action=change.action,
            subject=line.subject,
            undoes=change.undoes,
            digest="",
            prev="",
            hash="",
            changed=change.changed,
        )
        for change in line.history
    )
    subject = record.subject if isinstance(record, Memory) else line.subject
    return Piece(space=space, noun=noun, subject=subject, record=record, history=history)


def _unreadable(name: str, number: int, why: str) -> InvalidInput:
    return InvalidInput(f"Line {number:,} of {name} cannot be read: {why}.", hint="Make the export again.")
