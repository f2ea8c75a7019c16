"""Read in rounds: run a function that only reads until all its statements are answered, each round in one round trip.

A statement that has no answer yet is noted, and the function goes on with none (or a guess), only to find out which
other statements it will ask. Then all of them are sent together, and the function runs again. So the number of round
trips is the depth of the questions and not their number, and a deadline inside the function counts no distance.
Rule: nothing that the function did before its last run counts. It changes nothing before `settle`, which ends a run
that lacks answers by raising Unready.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple, NoReturn, TypeVar

from psycopg import errors

from kept.errors import Busy, KeptError, StorageError
from kept.journal import Salt
from kept.ports import Deadline, Stamp, TooLate
from kept.storage.postgres.connection import (
    CORPUS,
    FEW,
    READ_LIMIT_MS,
    Asked,
    Connection,
    Known,
    Rows,
    SpaceView,
    rows_of,
)
from kept.storage.postgres.writer import Head, TurnView, tables_read, tables_written
from kept.storage.shared import block
from kept.storage.weights import Chunks

T = TypeVar("T")
Key = tuple[str, tuple[tuple[str, Any], ...]]  # a statement and its values
# The errors of code that was given no rows, or guessed ones, where the real ones are missing.
_GUESSED_WRONG = (KeptError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
MOST_ROUNDS = 12  # of one function; the deepest has four


class FirstRound(NamedTuple):
    """A transaction that reads, the rows of its first statements, the rows known of before, and the head's row."""

    connection: Connection
    rows: list[list[tuple[Any, ...]]]
    known: Known
    head: tuple[Any, ...] | None


Begin = Callable[[Sequence[Asked], int], AbstractContextManager[FirstRound]]


class Unready(BaseException):
    """An answer is missing where something would be changed. Never leaves `Rounds.run`."""


class Rounds:
    """The rounds of one function: one transaction, and the rows that it has read so far."""

    def __init__(self, space: str, number: int, begin: Begin, known: Known, *, is_late: bool = False) -> None:
        self.view = RoundsView(space, number, known, is_late=is_late)
        self.is_settled = False
        self._begin = begin
        self._open = ExitStack()
        self.connection: Connection | None = None
        self.head: tuple[Any, ...] | None = None  # as it was read, until notes were refused because it has changed
        self._is_refused = False
        self.is_hasty = True  # to write, the head of the space is not locked first, but compared at the end

    def run(self, work: Callable[[], T]) -> T:
        """Return the answer of the run that lacked nothing."""
        with self._open:
            for _ in range(MOST_ROUNDS):
                self.view.missing.clear()
                result = self._attempt(work)
                if self._is_refused:
                    self._start_again()
                    continue
                if self.is_settled or (self.connection is not None and not self.view.missing):
                    break
                self._send()
            else:
                self.is_settled = True  # and every statement is sent on its own
                result = self._attempt(work)
            answer: T = result[0]
            return answer

    def _attempt(self, work: Callable[[], T]) -> Any:
        """Run the function once; return its result in a list, which is empty if the run lacked an answer."""
        try:
            return [work()]
        except Unready:
            return []
        except _GUESSED_WRONG:
            if self.is_settled or (self.connection is not None and not self.view.missing):
                raise
            return []

    def refuse(self) -> NoReturn:
        """End this run, because the space has changed since it was read; the next run reads it again."""
        self._is_refused = True
        raise Unready

    def _start_again(self) -> None:
        self.view.answers.clear()
        self._open.close()
        self.is_settled, self.connection, self._is_refused, self.is_hasty = False, None, False, False

    def settle(self) -> None:
        """From here on the function may change something. Raises Unready while an answer is missing."""
        if not self.is_settled and (self.connection is None or self.view.missing):
            raise Unready
        self.is_settled = True

    def _send(self) -> None:
        view, wanted = self.view, [*self.view.missing]
        asked: list[Asked] = [(sql, dict(values)) for sql, values in wanted]
        if self.connection is None:
            begun = self._begin(asked, view.limit_ms)
            self.connection, rows, view.known, head = self._open.enter_context(begun)
            self.head = head if self.is_hasty else None
        else:
            with self.connection.pipeline():
                cursors = [self.connection.execute(sql, values, binary=True) for sql, values in asked]
            rows = rows_of(cursors)
        view.answers.update(zip(wanted, rows, strict=True))


class RoundsView(SpaceView):
    """The view of a reader in rounds: answers from rows that were read, and notes missing statements.

    `is_late`: the server did not answer in time before. Now it is waited for, and a large space is not ranked.
    """

    is_guessing = True

    def __init__(self, space: str, number: int, known: Known, *, is_late: bool = False) -> None:
        super().__init__(space, number, None, known)  # type: ignore[arg-type]  # it has no connection
        self._is_late = is_late
        self.answers: dict[Key, list[tuple[Any, ...]]] = {}
        self.missing: dict[Key, None] = {}
        self.asked_with = {}
        self.limit_ms = READ_LIMIT_MS

    def fetch(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        key = self._key(sql, values)
        found = self.answers.get(key)
        if found is None:
            self.missing[key] = None
            return [*guess]
        return found

    def _key(self, sql: str, values: dict[str, Any]) -> Key:
        return sql, tuple(self.bound(values).items())

    def once(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        """Rows of before are used in the first run, before it is known whether the space has changed."""
        asked = (sql, *values.items())
        if (found := self.known.get(asked)) is not None:
            return found
        found = self.fetch(sql, guess=guess, **values)
        if self._key(sql, values) not in self.missing and len(found) <= FEW:
            self.known[asked] = found
        return found

    @block
    def until(self, deadline: Deadline | None) -> Iterator[None]:
        """Let the server work on one statement for the time that is left, without the time on the way."""
        if self._is_late and deadline is not None:
            if self.is_large or self._key(CORPUS, {}) in self.missing:
                raise TooLate
        elif deadline is not None and deadline.left_s < READ_LIMIT_MS / 1_000:
            self.limit_ms = max(1, round(deadline.left_s * 1_000))
        yield


class HastyTurnView(TurnView):
    """The view of a turn to write that has not begun: it reads in rounds, and gathers the statements that write.

    A statement that reads a table which was written in this turn cannot be answered before: then the turn is refused,
    and everything is done again while the head of the space is locked.
    """

    is_guessing = True

    def __init__(self, rounds: Rounds, stamp: Stamp, salt: Salt, head: Head, chunks: Chunks) -> None:
        view = rounds.view
        super().__init__(view.space, view.number, None, stamp, salt, head, chunks, view.known)  # type: ignore[arg-type]
        self._rounds = rounds
        self.asked_with = rounds.view.asked_with
        self._writes: list[tuple[str | bytes, Any]] = []

    def fetch(self, sql: str, *, guess: Rows = (), **values: Any) -> list[tuple[Any, ...]]:
        self.flush()
        if not self.written.isdisjoint(tables_read(sql)):
            self._rounds.refuse()
        return self._rounds.view.fetch(sql, guess=guess, **values)

    once = fetch

    def run(self, sql: str, **values: Any) -> None:
        self._note(sql, self.bound(values))

    def add(self, statement: bytes, values: Sequence[Any]) -> None:
        self._note(statement, [*values])

    def _note(self, statement: str | bytes, values: Any) -> None:
        self.written |= tables_written(statement)
        self._writes.append((statement, values))

    def send(self, connection: Connection) -> None:
        """Run the statements that were gathered."""
        self.bare = connection
        for statement, values in self._writes:
            if isinstance(statement, str):
                connection.execute(statement, values, binary=True)
            else:
                SpaceView.add(self, statement, values)


def gave_up(error: StorageError | Busy) -> bool:
    """Return True if the server did not answer a statement within its limit."""
    return isinstance(error.__cause__, errors.QueryCanceled)
