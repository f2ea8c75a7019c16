"""Search for people: every memory that contains the words, also inside other words.

`kept find` and the page use it. Recall answers another question: which few of them an agent would get.
Rule: a match is plain text. No stems, no aliases, no threshold, so that a person can predict it.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from kept.errors import InvalidInput
from kept.memory.context import Context
from kept.memory.read import ListStatus, Page, shelf_of, well_formed
from kept.model import Memory, canonical_kind
from kept.ports import Where
from kept.recall import in_any_case
from kept.storage.shared import pages_of

_PHRASE = re.compile(r'"([^"]+)"|(\S+)')


def parts_of(query: str) -> list[str]:
    """Split a query into words and "exact phrases", in lower case."""
    return [(phrase or word).lower() for phrase, word in _PHRASE.findall(query)]


def marks_of(query: str) -> list[str]:
    """Return the parts of a query that are marked in a text, the longest first."""
    return sorted(filter(str.strip, parts_of(query)), key=len, reverse=True)


def searched_text(memory: Memory) -> str:
    """Return everything of a memory that is searched, in lower case."""
    return " ".join((memory.content, memory.title or "", *memory.tags, *memory.files)).lower()


def find(
    context: Context,
    query: str,
    *,
    kinds: Sequence[str] = (),
    tags: Sequence[str] = (),
    files: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    status: ListStatus | None = None,
    limit: int | None = None,
) -> Page:
    """Return all memories that contain every part of a query and pass the filters, newest first.

    Raises InvalidInput for a query without any word.
    """
    parts = parts_of(well_formed(query))
    if not parts:
        raise InvalidInput("There are no words to find.", hint="Give a word, a part of one, or a phrase in quotes.")
    shelf, statuses = shelf_of(status)
    where = Where(
        shelf=shelf,
        statuses=statuses,
        kinds=tuple(canonical_kind(well_formed(kind)) for kind in kinds),
        tags_of_any_case=in_any_case(tuple(map(well_formed, tags))),
        since=since,
        until=until,
    )
    found = [
        one
        for storage in context.readable()
        for page in pages_of(storage, where)
        for one in page
        if _has_all(one, parts) and _is_about(one, files)
    ]
    found.sort(key=attrgetter("created_at", "id"), reverse=True)
    answer = Page(found if limit is None else found[:limit])
    answer.has_more = len(answer) < len(found)
    context.tell_read(answer)
    return answer


def _has_all(memory: Memory, parts: Sequence[str]) -> bool:
    text = searched_text(memory)
    return all(part in text for part in parts)


def _is_about(memory: Memory, files: Sequence[str]) -> bool:
    """Return True if the memory names one of the files: by its path, its name, or a folder above it."""
    paths = [f"/{path}" for path in memory.files]
    named = [f"/{file.strip('/')}" for file in files]
    return not named or any(path.endswith(name) or f"{name}/" in path for path in paths for name in named)
