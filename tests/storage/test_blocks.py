"""A block made of a generator: what contextlib promises holds here, too."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from kept.storage.shared import block

said: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    said.clear()


@block
def told(name: str) -> Iterator[str]:
    said.append("begun")
    try:
        yield name.upper()
    except KeyError as error:
        raise LookupError("told otherwise") from error
    finally:
        said.append("ended")


@block
def quiet() -> Iterator[None]:
    with suppress(ValueError):
        yield


@block
def twice() -> Iterator[None]:
    with suppress(ValueError):
        yield
    yield


def test_the_block_stands_between_the_halves_of_the_generator() -> None:
    with told("a") as name:
        said.append(name)
    assert said == ["begun", "A", "ended"]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), StopIteration("mine")])
def test_an_error_of_the_block_goes_on_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, told("a"):
        raise error
    assert raised.value is error
    assert said == ["begun", "ended"]


def test_the_generator_may_raise_another_error_instead() -> None:
    with pytest.raises(LookupError, match="told otherwise") as raised, told("a"):
        raise KeyError("a")
    assert isinstance(raised.value.__cause__, KeyError)


def test_the_generator_may_deal_with_an_error() -> None:
    with quiet():
        raise ValueError("not worth it")
    with pytest.raises(TypeError), quiet():
        raise TypeError("worth it")


def test_a_generator_must_yield() -> None:
    empty = block(lambda: iter(()))
    with pytest.raises(RuntimeError, match="did not yield"), empty():
        pass


def test_an_error_says_where_it_was_raised_and_not_where_it_passed_through() -> None:
    with pytest.raises(ValueError, match="mine") as raised, told("a"):
        raise ValueError("mine")
    assert [entry.path.name for entry in raised.traceback if hasattr(entry.path, "name")] == ["test_blocks.py"]


def test_a_second_yield_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="twice"), twice():
        pass
    with pytest.raises(RuntimeError, match="continued after an error"), twice():
        raise ValueError("dealt with, and then?")
