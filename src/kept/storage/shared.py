"""Code shared by all storages: shelves, tombstones, prepared tokens, pages, blocks, counters by day.

`prepare` is the one place that says which field goes into which column of the index. `block` makes context managers of
generators for less than `contextlib` does: every read and every write opens some, and the standard way costs 15
microseconds each when the processor has just waited for a disk, a thirtieth of a whole write.
Rule of a block: its generator yields once; an error of the block is raised at its `yield`.
"""

import os
import zlib
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL: 4 ms
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import datetime
from functools import lru_cache, wraps
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar, cast

from msgspec import Struct

from kept import text, worth
from kept.errors import Busy, Corrupt, InvalidInput, MovedAway
from kept.model import ALSO, Event, Memory, Message, Record
from kept.ports import Prepared, Ranking, Reader, Shelf, Stamp, Storage, Where
from kept.tables import by_kind

WRITE_WAIT_S = 30.0  # the promise: no write is refused within this time because somebody else writes

RECEIPTS_KEPT = 500  # of recalls; enough to ask "why?" about the last days
DELIVERIES_KEPT_DAYS = 30  # of texts that an agent was given without asking: at least as long as its transcripts
MOVING = "move"  # a note in the new place until everything is there: how far a move got
MOVED = "moved"  # a note in the old place: since when the space is elsewhere, and where
MOST = 2**31  # of anything that is asked for at once
PAGE = 500  # memories that are read at once when all are wanted
RECEIPTS = "receipts:"  # what all receipts are called among the subjects of erased records
DAY = "day:"  # how the names of counters begin that count for one day: `day:2026-03-01:refused:chatter`


class Contents(Struct, kw_only=True):
    """Everything that a space holds, for a storage in memory that is only read."""

    key: bytes
    tombstones: set[str]
    records: list[Record]
    events: list[Event] = []
    messages: dict[str, tuple[Message, ...]] = {}
    packed: set[str] = set()
    vector_model: str | None = None
    vectors: dict[int, tuple[str, bytes]] = {}  # of a memory, with the fingerprint of its text
    prepared: dict[int, Prepared] = {}  # the tokens that are known already, by the id of the memory


def random_hex(n_bytes: int) -> str:
    """That many random bytes in hex. The same as `secrets.token_hex`, whose module takes 6 ms to import."""
    return os.urandom(n_bytes).hex()


def check_fence(space: str, notes: Mapping[str, str]) -> None:
    """Raise MovedAway in the place that a space was moved away from, and Busy in one that it is not whole in yet.

    `notes` are those whose names begin with MOVING.
    """
    if MOVED in notes:
        since, _, to = notes[MOVED].partition(" ")
        hint = "Nothing was changed. Follow it with `kept projects link NAME --database URL`, or open that file."
        scheme, _, rest = to.rpartition("://")
        place = f"{scheme}://{rest.rpartition('@')[2]}" if scheme else to  # with a role it looks like an address
        error = MovedAway(f"{space} was moved to {place} on {since}, and is written there only.", hint=hint)
        error.space, error.to = space, to
        raise error
    if MOVING in notes:
        raise Busy(
            f"{space} is being moved here, and is not whole yet.",
            hint="If the move was cut off, run it again where the project was.",
        )


def check_open(reader: Reader, stamp: Stamp) -> None:
    """Check the fence of a space, unless the change may pass it."""
    if not stamp.passes_fence:
        check_fence(reader.space, reader.file_notes(MOVING))


def shelf_of(memory: Memory) -> Shelf:
    """Where a memory stands: live, archive or forgotten."""
    if memory.status != "archived":
        return "live"
    return "forgotten" if memory.reason == "forgotten" else "archive"


def indexes(where: Where) -> tuple[str, ...]:
    """Which indexes hold what `where` means. What was forgotten is in none."""
    live = {"memory": ("live",), "items": ("library",), "sources": ("library",), None: ("live", "library")}[where.scope]
    return {"live": live, "archive": ("archive",), "any": (*live, "archive"), "forgotten": ()}[where.shelf]


def index_of(memory: Memory) -> str | None:
    """The index a memory is in, or None once it was forgotten."""
    shelf = shelf_of(memory)
    if shelf == "live":
        return "live" if memory.scope == "memory" else "library"
    return "archive" if shelf == "archive" else None


def weight(memory: Memory, ranking: Ranking) -> float:
    """What the memory brings along to every query, by the factors of the ranking."""
    product = 1.0
    for name in ranking.factors:
        if name == "kind":
            product *= by_kind(ranking.kind_weights, memory.kind)
        elif ranking.now is not None:
            product *= worth.MEMORY_FACTORS[name](memory, ranking.now)
    return product


def tombstone(key: bytes, fingerprint: str) -> str:
    """What is left of an erased memory: a keyed hash, which says "this one" to nobody who lacks the key.

    It ends with a checksum of itself: a mark that changed on the disk would say nothing, and nobody would know.
    """

    mark = blake2b(fingerprint.encode(), key=key, digest_size=16).hexdigest()
    return f"{mark}{zlib.crc32(mark.encode()):08x}"


def is_tombstone(mark: str) -> bool:
    """Whether the mark is still as `tombstone` made it."""
    return len(mark) == 40 and mark[32:] == f"{zlib.crc32(mark[:32].encode()):08x}"


def check_limit(limit: int) -> None:
    """Raise InvalidInput for a limit that no answer can have."""
    if type(limit) is not int or not 0 <= limit < MOST:
        raise InvalidInput(f"limit must be a whole number from 0 to {MOST - 1:,}, got {limit!r}.")


def damaged(what: str) -> Corrupt:
    """The error to raise when `what` is not as it was written."""
    return Corrupt(
        f"{what} is damaged: the stored bytes have changed since they were written.",
        hint="Nothing was changed. `kept doctor` says what can be saved.",
    )


def prepare(memory: Memory) -> Prepared:
    """The prepared tokens of a memory. Pure: the same memory gives the same tokens on every storage."""
    return _prepared(*_to_prepare(memory))


def has_tokens_of(one: Memory, other: Memory) -> bool:
    """Return True if both memories have the same prepared tokens, without preparing them."""
    return one is other or _to_prepare(one) == _to_prepare(other)


def _to_prepare(memory: Memory) -> tuple[str, tuple[str, ...], tuple[str, ...], str, str]:
    source = f"{memory.source.origin} {memory.source.agent or ''}"
    tags = memory.tags if memory.data is None else (*memory.tags, *memory.data.get(ALSO, ()))
    return text_of(memory), tags, memory.files, source, memory.kind


def text_of(memory: Memory) -> str:
    """What a memory says: its content, below its title if it has one."""
    return f"{memory.title} {memory.content}" if memory.title else memory.content


@lru_cache(maxsize=16)  # one change asks for the words of a memory several times, and mostly they stay as they were
def _prepared(content: str, tags: tuple[str, ...], files: tuple[str, ...], source: str, kind: str) -> Prepared:
    of_text, n_words = text.words_and_length(content)
    columns = (
        of_text,
        [word for tag in tags for word in _label(tag)],
        [word for path in files for word in _label(path)],
        _label(source),
        _label(kind),
    )
    words, tag_words, file_words, source_words, kind_words = (" ".join(column) for column in columns)
    n_tokens = sum(len(column) for column in columns)
    return Prepared(words, tag_words, file_words, source_words, kind_words, n_words, n_tokens)


@lru_cache(maxsize=1024)
def _label(label: str) -> tuple[str, ...]:
    """The words of a tag, a path, a name or a kind: few of them, and always the same."""
    return tuple(text.words(label))


P = ParamSpec("P")
T = TypeVar("T")


class Block(Generic[T]):
    """What `with` opens: a generator that is run up to its `yield`, and to its end when the block ends."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Iterator[T]) -> None:
        self._generator = cast("Generator[T, None, None]", generator)

    def __enter__(self) -> T:
        for value in self._generator:
            return value
        raise RuntimeError("The generator of a block did not yield.")

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> bool | None:
        if error is None:
            for _ in self._generator:
                raise RuntimeError("The generator of a block yielded twice.")
            return None
        try:
            self._generator.throw(error)
        except StopIteration:
            return True  # it has come to its end, and has dealt with the error
        except BaseException as raised:
            # The block's own error goes on as it is; so does a StopIteration, of which Python makes a RuntimeError.
            if raised is error or (isinstance(raised, RuntimeError) and raised.__cause__ is error):
                error.__traceback__ = traceback
                return False
            raise
        raise RuntimeError("The generator of a block continued after an error.")


def block(function: Callable[P, Iterator[T]]) -> Callable[P, Block[T]]:
    """Make `with function(…) as value` of a function that yields the value."""

    @wraps(function)
    def opened(*arguments: P.args, **named: P.kwargs) -> Block[T]:
        return Block(function(*arguments, **named))

    return opened


def every(reader: Reader, where: Where) -> Iterator[Memory]:
    """The memories that are meant, oldest first, all of one moment, read page by page."""
    after = 0
    while page := reader.select(where, limit=PAGE, after=after, oldest_first=True):
        yield from page
        after = page[-1].id


def pages_of(storage: Storage, where: Where, *, after: int = 0, size: int = PAGE) -> Iterator[list[Memory]]:
    """The same in pages, each of a moment of its own, so that others can write in between."""
    while True:
        with storage.reading() as reader:
            page = reader.select(where, limit=size, after=after, oldest_first=True)
        if not page:
            return
        yield page
        after = page[-1].id


def on_day(at: datetime, numbers: Mapping[str, int]) -> dict[str, int]:
    """The same numbers under the names of the counters of that day (UTC)."""
    day = at.date().isoformat()  # a tenth of what formatting takes, at every recall
    return {f"{DAY}{day}:{name}": number for name, number in numbers.items()}


def by_day(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The counters of days: day → name → number."""
    found: dict[str, dict[str, int]] = {}
    for counter, number in counters.items():
        if counter.startswith(DAY):
            day, _, name = counter.removeprefix(DAY).partition(":")
            found.setdefault(day, {})[name] = number
    return found
