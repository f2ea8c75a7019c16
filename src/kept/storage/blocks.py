"""Blocks made of generators, as `contextlib.contextmanager` makes them, for less.

Every read and every write opens some. The standard library's way costs 15 microseconds each when the processor has
just done something else, such as waiting for a disk: a thirtieth of a whole write. Rule: a generator yields once; an
error of the block is raised at its `yield`, and what it does with it then holds.
"""

from collections.abc import Callable, Generator, Iterator
from functools import wraps
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar, cast

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
        raise RuntimeError("A block did not begin.")

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> bool | None:
        if error is None:
            for _ in self._generator:
                raise RuntimeError("A block yielded twice.")
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
        raise RuntimeError("A block went on after an error.")


def block(function: Callable[P, Iterator[T]]) -> Callable[P, Block[T]]:
    """Make `with function(…) as value` of a function that yields the value."""

    @wraps(function)
    def opened(*arguments: P.args, **named: P.kwargs) -> Block[T]:
        return Block(function(*arguments, **named))

    return opened
