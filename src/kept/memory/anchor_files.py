"""The files of anchors: which memory concerns which file, symbol or command, found by hashes (`kept.anchors`).

Derived from the memories, one file for each space in `hook/anchors` of the home. A file says how far it has followed
the journal of its space; `follow` brings it up to the newest event, and starts again where the journal is another one.
`Context.tell_write` calls it after every change, and the start of a session for changes of other machines.
Rule: a file has the anchors of live memories only. Those of an erased memory go at once, and no word is ever in it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kept import text
from kept.anchors import (
    BITMAP_BYTES,
    FOLDER,
    HEADER_BYTES,
    KEY_FILE,
    MAGIC,
    MARK_BYTES,
    MAX_WORDS,
    PLACE_PREFIX,
    RECORD_BYTES,
    bit_of,
    file_name,
    found_in,
    hashed,
    keys_of_memory,
    words_of_memory,
)
from kept.errors import KeptError
from kept.model import Event, Memory, replace
from kept.ports import ANYWHERE, LIVE, Reader, Storage
from kept.projects.files import locked, make_private_directory, read_regular, replace_file, warn
from kept.recall.stems import WORTHLESS
from kept.writing.admit import INSTRUCTION_TAG

KEY_BYTES = 32
WHOLE = -1  # no limit: Kept itself has written these files
MOST_KEYS = 60  # of one memory: a text that names more is a list
PAGE = 500  # memories that are read at once
MOST_EVENTS = 500  # beyond that, reading all memories takes less time than following the journal
MAX_ID = 2**32 - 1
LOCK_S = 1.0
# A text without any of these words is a report of past work, unless a person said it.
_RULES = frozenset(
    "always never must don't dont doesn't isn't won't not no only before after until unless without instead need needs "
    "require requires required should shouldn't cannot can't fail fails failed break breaks missing expect expects "
    "avoid prefer prefers make sure ensure keep leave ask first rather worked works when if whenever every each "
    "rule".split()
)
REPORTS = ("progress", "file_change", "summary", "tool_output", "reasoning")  # kinds of finished work, not of rules


def is_anchored(memory: Memory) -> bool:
    """Return True if the memory may be told at an action: said by an agent or a person, and more than a finding."""
    if memory.is_archived or memory.is_low_trust or memory.is_rejected:
        return False
    if memory.scope != "memory" or memory.kind in REPORTS:
        return False
    if INSTRUCTION_TAG in memory.tags:  # it came along with a text, and gives orders to its reader
        return False
    return memory.status != "candidate" or memory.tier in ("project", "global")


def is_rule(memory: Memory) -> bool:
    """Return True if a person said it, or the text says how something is to be done and not only that it was done."""
    return memory.trust == "user" or not _RULES.isdisjoint(memory.content.lower().replace("\u2019", "'").split())


def words_of(memory: Memory) -> list[str]:
    """Return the words that a rule may share with a call; none for another memory."""
    words = words_of_memory(memory.content) if is_rule(memory) else []
    return [word for word in words if not _is_filler(word)][:MAX_WORDS]


def _is_filler(word: str) -> bool:
    return not WORTHLESS.isdisjoint(text.words(word))


def keys_of(memory: Memory) -> list[str]:
    """Return the keys of a memory, with the signature of an error and without end."""
    keys = keys_of_memory(memory.content, memory.files)
    if signature := (memory.data or {}).get("signature"):
        keys.insert(0, f"e:{signature}")
    return keys[:MOST_KEYS]


def follow(home: Path | None, storage: Storage, place: str | None = None) -> None:
    """Bring the file of a space up to date. `place` is the folder of the project, so that a hook finds the file.

    A file that cannot be written is left as it is: the next change brings it up to date.
    """
    if home is None:
        return
    try:
        with suppress(KeptError):
            _AnchorFile(home, storage.space).follow(storage, place)
    except OSError as error:
        warn("the anchors of %s could not be written: %s", storage.space, type(error).__name__)


class Anchors:
    """The anchors of some spaces, read once, to find memories by keys."""

    def __init__(self, home: Path, spaces: Sequence[str]) -> None:
        folder = str(home / FOLDER)
        self._key = read_regular(Path(f"{folder}/{KEY_FILE}"), WHOLE)
        self._data = {
            space: read_regular(Path(f"{folder}/{file_name(self._key, space)}"), WHOLE) for space in spaces if self._key
        }

    def ids(self, key: str) -> dict[str, list[int]]:
        """Return for each space the ids of the memories that have the key."""
        if not self._key:
            return {}
        mark = hashed(self._key, key)
        return {space: ids for space, data in self._data.items() if (ids := found_in(data, mark))}


class _AnchorFile:
    """The file of one space. A run of records belongs to each memory; the first of them is the hash of its uid."""

    def __init__(self, home: Path, space: str) -> None:
        self._folder = home / FOLDER
        self._space = space
        self._key = b""

    def follow(self, storage: Storage, place: str | None) -> None:
        self._key = read_regular(Path(f"{self._folder}/{KEY_FILE}"), WHOLE) or self._make_key()
        name = file_name(self._key, self._space)
        if place is not None:
            self._note_place(place, name)
        with locked(self._folder / "lock", timeout_s=LOCK_S), storage.reading() as reader:
            self._catch_up(reader, self._folder / name)

    def _make_key(self) -> bytes:
        make_private_directory(self._folder.parent)
        make_private_directory(self._folder)
        with locked(self._folder / "lock", timeout_s=LOCK_S):
            key = read_regular(Path(f"{self._folder}/{KEY_FILE}"), WHOLE)
            if not key:
                replace_file(self._folder / KEY_FILE, key := os.urandom(KEY_BYTES))
            return key

    def _note_place(self, root: str, name: str) -> None:
        """Note which space a folder of the disk belongs to."""
        path = f"{self._folder}/{PLACE_PREFIX}{file_name(self._key, root)}"
        if read_regular(Path(path), WHOLE) != name.encode():
            replace_file(Path(path), name.encode())

    def _catch_up(self, reader: Reader, path: Path) -> None:
        data = read_regular(path, WHOLE)
        data = data[: len(data) - len(data) % RECORD_BYTES]  # a writer that was killed may have left half a record
        events = _events_since(reader, data)
        if events is None:
            newest = reader.events(newest_first=True, limit=1)
            mark = _mark_of(newest[0]) if newest else MAGIC.ljust(MARK_BYTES, b"\0")
            runs = b"".join(self._runs(_all_live(reader)))
            replace_file(path, mark + _bitmap(bytes(BITMAP_BYTES), runs) + runs)
            return
        if not events:
            return
        mark = _mark_of(events[-1])
        changed, added = self._changed(data, _as_they_are(reader, events))
        if changed is not None:
            runs = changed[HEADER_BYTES:] + added
            replace_file(path, mark + _bitmap(bytes(BITMAP_BYTES), runs) + runs)
            return
        with os.fdopen(os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)), "wb", 0) as file:
            if added:  # before the header: a memory that is added twice is noticed, one that is missed is not
                file.seek(len(data))
                file.write(added)
            file.seek(0)
            file.write(mark + _bitmap(data[MARK_BYTES:HEADER_BYTES], added) if added else mark)

    def _changed(self, data: bytes, memories: Mapping[str, Memory | None]) -> tuple[bytes | None, bytes]:
        """Return the file without the runs that no longer hold, None if all of them do, and the runs to add."""
        kept, added = data, b""
        for uid, memory in memories.items():
            run = b"".join(self._runs([memory] if memory is not None else []))
            start, end = self._run_of(kept, uid, memory)
            if kept[start:end] == run:
                continue
            kept = kept[:start] + kept[end:]
            added += run
        return (None if kept == data else kept), added

    def _runs(self, memories: Iterable[Memory]) -> Iterator[bytes]:
        for memory in memories:
            if is_anchored(memory) and memory.id <= MAX_ID and (keys := _all_keys(memory)):
                number = memory.id.to_bytes(4, "little")
                yield b"".join(hashed(self._key, key) + number for key in (f"u:{memory.uid}", *keys))

    def _run_of(self, data: bytes, uid: str, memory: Memory | None) -> tuple[int, int]:
        """Return where the run of a memory begins and ends; both are 0 if it has none."""
        mark = hashed(self._key, f"u:{uid}")
        if memory is not None and memory.id <= MAX_ID:  # surer than the hash alone, if the memory was not erased
            mark += memory.id.to_bytes(4, "little")
        place = data.find(mark, HEADER_BYTES)
        while place >= 0 and place % RECORD_BYTES:
            place = data.find(mark, place + 1)
        if place < 0:
            return 0, 0
        number, end = data[place + 4 : place + RECORD_BYTES], place
        while data[end + 4 : end + RECORD_BYTES] == number:
            end += RECORD_BYTES
        return place, end


def _all_keys(memory: Memory) -> list[str]:
    return [*keys_of(memory), *(f"w:{word}" for word in words_of(memory))]


def _bitmap(known: bytes, runs: bytes) -> bytes:
    """Return the bitmap with the bits of more records."""
    bits = bytearray(known)
    for start in range(0, len(runs), RECORD_BYTES):
        at, bit = bit_of(runs[start : start + 3])
        bits[at] |= bit
    return bytes(bits)


def _as_they_are(reader: Reader, events: Sequence[Event]) -> dict[str, Memory | None]:
    """Return the memories that events speak of, by uid; None for one that is erased. New ones are read at once."""
    about = [event for event in events if ":" not in event.subject]
    new = tuple(number for event in about if (number := (event.changed or {}).get("id", (None, None))[1]))
    found = {one.uid: one for one in reader.select(replace(ANYWHERE, ids=new), limit=len(new))} if new else {}
    for uid in {event.subject for event in about} - found.keys():
        found |= {one.uid: one for one in reader.select(replace(ANYWHERE, uid=uid), limit=1)}
    return {event.subject: found.get(event.subject) for event in about}


def _all_live(reader: Reader) -> Iterator[Memory]:
    after = None
    while page := reader.select(LIVE, limit=PAGE, after=after):
        yield from page
        after = page[-1].id


def _mark_of(event: Event) -> bytes:
    """Return the header of a file that has followed the journal up to this event."""
    return MAGIC + event.seq.to_bytes(8, "little") + event.hash.encode()[:8].ljust(8, b"\0")


def _events_since(reader: Reader, data: bytes) -> list[Event] | None:
    """Return the events that a file has not followed yet; None if it has to be made again."""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        return None
    followed = int.from_bytes(data[8:16], "little")
    events = reader.events(after=followed - 1, limit=MOST_EVENTS + 2)
    if not events or _mark_of(events[0]) != data[:MARK_BYTES] or len(events) > MOST_EVENTS + 1:
        return None
    return events[1:]
