"""What all adapters need: an opened memory, a thread to work in, and the words of a value or a file.

Rule: the core is synchronous, so an adapter's `async` methods run it in a thread and never block the loop. A write
that has begun is finished, also when its caller is cancelled.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

from kept.memory import Kept
from kept.memory.opening import open as open_memory
from kept.text import count_words

MIN_WORDS = 3  # of a line that states something
P = ParamSpec("P")
T = TypeVar("T")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?")
_FENCES = ("```", "~~~")


def opened(memory: Kept | None, location: Path | str | None = None, project: Path | str | None = None) -> Kept:
    """The memory that was given, or the one at that location, for that project, as `kept.open` finds them."""
    return memory if memory is not None else open_memory(location, project=project)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, which runs in a thread and to its end, whatever happens to the caller."""
    return await asyncio.shield(asyncio.to_thread(work, *args, **kwargs))


def words_of(value: Any) -> str:
    """The words of a value for a reader and a search: a text as it is, else each field on a line with its name."""
    return "\n".join(f"{name}: {text}" if name and not _is_plain(value) else text for name, text in _texts(value))


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict) or len(value) == 1


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, name)
    elif value is not None and str(value).strip():
        yield name, str(value)


def as_tag(name: str) -> str:
    """The name as a tag, in which a comma, or a space at an end, has no meaning of its own."""
    return quote(name, safe="/:@._-+~ ").replace(" ", "%20") if name != name.strip() or "," in name else name


def statements(content: str) -> Iterator[str]:
    """The lines of a Markdown text that stand alone as a statement: no headings, no tables, no code, no bare words."""
    is_code = False
    for line in content.splitlines():
        if line.lstrip().startswith(_FENCES):
            is_code = not is_code
        stated = _BULLET.sub("", line).strip()
        if is_code or stated.startswith(("#", "|", "<", *_FENCES)):
            continue
        if count_words(stated) >= MIN_WORDS:
            yield stated
