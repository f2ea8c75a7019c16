"""Describe the fix of an error: the change, the command, or the other way to call the program, and why.

Used by extraction when a command that had failed passes. Rule: in the agent's words. The message of the error is the
tool's, so it is not repeated here; a fix without a reason is kept only if its lines name what the error names.
"""

from collections.abc import Sequence

from msgspec import Struct

from kept.model import Message
from kept.text import compiled
from kept.writing.extraction.failures import Failure, is_telling
from kept.writing.extraction.gist import Gist
from kept.writing.extraction.statements import finished, own_words

MAX_LINES = 2  # that are shown of a change
MAX_LINES_CHARS = 200
MAX_CHANGED = 3  # files that are named
_CAMEL = r"(?<=[a-z])(?=[A-Z])"  # in `timeZone`, which people call time zone
_COMMENT = ("#", "//", "/*", "*", "--", "<!--")


class Fix(Struct, frozen=True):
    """A sentence about a fix, the message that explains it, and whether it names the same things as the error."""

    content: str
    told_in: Message | None
    names_error: bool


def fix_of(failure: Failure) -> Fix | None:
    """Return the fix of an error; None if its sentence would say nothing."""
    lines = [f"`{line}`" for new in failure.changed.values() for line in new if not line.startswith(_COMMENT)]
    reason, told_in = _reason_for(failure, lines)
    what = _change_sentence(failure, lines, has_reason=bool(reason)) if failure.changed else _command_sentence(failure)
    if what is None:
        return None
    content = f"{what} {finished(own_words(reason))}" if reason else what
    names_error = bool(failure.instead) or Gist.of(failure.message).touches(Gist.of(content))
    return Fix(content, told_in, names_error=names_error)


def _reason_for(failure: Failure, lines: Sequence[str]) -> tuple[str, Message | None]:
    """Return the latest explanation of this error or its change, and its message: not one of the work between."""
    named = " ".join((failure.message, failure.place or "", *lines))
    about = Gist.of(compiled(_CAMEL).sub(" ", named))
    return next((each for each in reversed(failure.said) if about.touches(Gist.of(each[0]))), ("", None))


def _change_sentence(failure: Failure, lines: Sequence[str], *, has_reason: bool) -> str | None:
    """Name the changed files and, if they are few, the new lines. None if the change explains nothing."""
    if all(path.rsplit("/", 1)[-1] in failure.words for path in failure.changed):
        return None  # only the test itself was changed: it was still being written
    shown = ", ".join(lines) if len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_LINES_CHARS else ""
    if not has_reason and not _names_error(shown, failure):
        return None
    files = ", ".join([*failure.changed][:MAX_CHANGED])
    return f"`{failure.command}` failed until {files} changed" + (f": {shown}." if shown else ".")


def _names_error(shown: str, failure: Failure) -> bool:
    return bool(shown) and is_telling(failure.message) and Gist.of(failure.message).touches(Gist.of(shown))


def _command_sentence(failure: Failure) -> str:
    if failure.ran:
        return f"`{failure.command}` failed until `{failure.ran[-1]}` was run."
    return f"`{failure.instead}` works, `{failure.command}` does not."
