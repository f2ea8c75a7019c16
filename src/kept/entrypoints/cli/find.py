"""`kept find`: the search for people, with every match."""

import shlex
from collections.abc import Iterator
from typing import Any

import click
from msgspec.structs import replace

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.invocation import Invocation, Line
from kept.entrypoints.cli.wording import (
    apart,
    as_document,
    counted,
    marked_parts,
    meant_kinds,
    memories,
    memory_lines,
    nothing_yet,
)
from kept.memory import Kept
from kept.memory.read import ListStatus
from kept.memory.verbs.read import FIND, Find
from kept.memory.word_search import marks_of

HIDDEN: tuple[ListStatus, ...] = ("archived", "forgotten")  # that are found only where they are asked for


@command
@click.argument("typed", nargs=-1, metavar="WORDS...")
@options_of(FIND, without=("words",))
def find_command(invocation: Invocation, *, typed: tuple[str, ...], **given: Any) -> None:
    """Every memory that contains all of the words, newest first; also inside other words, in text, title, tags and
    files. A word with spaces, in quotes, is found as it is written. `kept recall` shows what an agent would get.

    \b
    kept find timeout
    kept find "session timeout" --since 2026-03-01 --kind decision
    kept find pool --file src/db
    """
    if not typed:
        raise click.UsageError("Give at least one word to find.")
    asked = request_of(FIND, {**given, "words": " ".join(_quoted(word) for word in typed)})
    with invocation.open() as memory:
        found = memory.perform(FIND, asked)
        nothing = [] if found else _nothing_found(memory, invocation, asked, typed)
    marks, now = marks_of(asked.words), invocation.clock()
    lines = apart([memory_lines(one, now, mark=lambda text: marked_parts(text, marks)) for one in found])
    if found.has_more:
        lines.append(f"The newest {memories(len(found))}. Without --limit all are shown.")
    invocation.answer({"memories": [as_document(one) for one in found], "has_more": found.has_more}, [*lines, *nothing])


def _quoted(word: str) -> str:
    """Return a word as it is searched: the shell has taken the quotes of a phrase away."""
    return f'"{word}"' if " " in word and '"' not in word else word


def _nothing_found(memory: Kept, invocation: Invocation, asked: Find, typed: tuple[str, ...]) -> list[Line]:
    words = shlex.join(typed)
    hidden = list(_hidden(memory, asked, words)) if asked.status is None else []
    if not hidden and not memory.list(limit=1):
        return [nothing_yet(invocation)]
    if asked != Find(words=asked.words):
        return [f"No memory that passes the filters contains {words}.{meant_kinds(asked.kinds)}", *hidden]
    if hidden:
        return [f"No memory contains {words}.", *hidden]
    return [f"No memory contains {words}. `kept recall {words}` also finds other forms of the words."]


def _hidden(memory: Kept, asked: Find, words: str) -> Iterator[str]:
    """Say how many archived and forgotten memories would be found; the text of a forgotten one is not shown."""
    for status in HIDDEN:
        if found := len(memory.perform(FIND, replace(asked, status=status, limit=None))):
            verb = "contains" if found == 1 else "contain"
            shows = "shows it" if found == 1 else "shows them"
            of_it = counted(found, f"{status} memory", f"{status} memories")
            yield f"{of_it} {verb} the words. `kept find {words} --status {status}` {shows}."
