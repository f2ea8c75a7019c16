"""Files of a team's git ref: one for each shared memory, as the set of changes that were made to it.

`memory.team` shares, pushes and pulls; `projects.team_ref` reads and writes the ref. Two versions of a file are merged
by taking the changes of both, so no order of pushes and pulls makes a difference. Rule: anyone who can push to the
repository may have written a file. It has no field for trust, status or space, and unreadable files are None.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

MAX_FILE_BYTES = 256 * 1024
MOST_CHANGES = 1_000  # of one memory
FIELDS = ("content", "kind", "tags", "files")  # that travel; everything else about a memory is private
FILE_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.json")

Name = Annotated[str, Meta(min_length=1, max_length=500)]


class TeamChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of a shared memory. `group` names it in every journal that has it.

    `share` gives the whole statement, `revise` the fields that became different; `forget` and `unshare` take it back,
    and have no text.
    """

    group: Annotated[str, Meta(pattern=r"^[0-9A-Za-z]{1,100}$")]
    at: Annotated[datetime, Meta(tz=True)]
    action: Literal["share", "revise", "forget", "unshare"]
    content: Annotated[str, Meta(min_length=1, max_length=100_000)] | None = None
    kind: Name | None = None
    tags: Annotated[tuple[Name, ...], Meta(max_length=200)] | None = None
    files: Annotated[tuple[Name, ...], Meta(max_length=500)] | None = None
    importance: Annotated[float, Meta(ge=0, le=1)] | None = None
    created_at: Annotated[datetime, Meta(tz=True)] | None = None

    @property
    def takes_back(self) -> bool:
        return self.action in ("forget", "unshare")

    def fields(self) -> dict[str, Any]:
        """Return the fields that the change sets."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


class TeamFile(Struct, frozen=True, kw_only=True):
    """One file of the ref."""

    format: Literal["kept-team/1"] = "kept-team/1"
    uid: str
    changes: Annotated[tuple[TeamChange, ...], Meta(max_length=MOST_CHANGES)] = ()


_decode = msgspec.json.Decoder(TeamFile).decode


def uid_of(name: str) -> str | None:
    """Return the uid that the name of a file has; None for any other name."""
    found = FILE_NAME.fullmatch(name)
    return found[1] if found else None


def read(data: bytes, uid: str) -> TeamFile | None:
    """Return the file of that memory. None if it is damaged, too large, of another format, or about another uid."""
    if len(data) > MAX_FILE_BYTES:
        return None
    try:
        found = _decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    sound = tuple(one for one in found.changes if one.action != "share" or one.content)
    return msgspec.structs.replace(found, changes=sound) if found.uid == uid else None


def write(uid: str, changes: Iterable[TeamChange]) -> bytes:
    """Return the file with these changes. Of a statement that was taken back, no text is left."""
    in_order = ordered(changes)
    kept = [one for one in in_order if one.takes_back] or in_order
    return msgspec.json.format(msgspec.json.encode(TeamFile(uid=uid, changes=tuple(kept))), indent=1) + b"\n"


def identity(change: TeamChange) -> bytes:
    """Return the bytes of a change: with any other value it is another change, which another person may have made."""
    return msgspec.json.encode(change)


def ordered(changes: Iterable[TeamChange]) -> list[TeamChange]:
    """Return each change once, in their order. Of two with one name, the first given one."""
    known: dict[str, TeamChange] = {}
    for one in changes:
        known.setdefault(one.group, one)
    return sorted(known.values(), key=_key)


def withdrawal(changes: Iterable[TeamChange]) -> TeamChange | None:
    """Return the change that took the statement back; that is final."""
    return min((one for one in changes if one.takes_back), key=_key, default=None)


def standing(changes: Iterable[TeamChange]) -> list[TeamChange]:
    """Return the changes that make the statement as it is, its sharing first; [] if it was taken back."""
    in_order = ordered(changes)
    first = next((one for one in in_order if one.action == "share"), None)
    if first is None or withdrawal(in_order) is not None:
        return []
    # A clock that is behind can date a revision before the sharing that it followed.
    return [first, *(one for one in in_order if one is not first)]


def _key(change: TeamChange) -> tuple[datetime, str]:
    return change.at, change.group
