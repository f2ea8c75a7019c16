"""Say what fixed an error: the change, the command, or the other way to call the program, and why.

Used by extraction when a command that had failed passes. Rule: in the agent's words. The message of the error is the
tool's, so it is not repeated here; a fix without a reason is kept only if its lines name what the error names.
"""

from msgspec import Struct

from kept.model import Message
from kept.writing.extraction.failures import Failure, is_telling
from kept.writing.extraction.gist import Gist
from kept.writing.extraction.statements import finished, own_words

MAX_LINES = 2  # that are shown of a change
MAX_LINES_CHARS = 200
MAX_CHANGED = 3  # files that are named


class Fix(Struct, frozen=True):
    """What fixed an error, the message in which an agent said why, and whether it names what the error names."""

    content: str
    told_in: Message | None
    names_error: bool


def fix_of(failure: Failure) -> Fix | None:
    """What made the error go away; None if that would say nothing."""
    lines = [f"`{line}`" for new in failure.changed.values() for line in new]
    error = Gist.of(failure.message)
    about = Gist.of(" ".join((failure.message, failure.command, *failure.changed, *lines)))
    told = (each for each in reversed(failure.said) if about.touches(Gist.of(each[0])))
    reason, told_in = next(told, ("", None))
    shown = ", ".join(lines) if len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_LINES_CHARS else ""
    if failure.changed:
        if all(path.rsplit("/", 1)[-1] in failure.words for path in failure.changed):
            return None  # only the test itself was changed: it was still being written
        is_clear = bool(shown) and is_telling(failure.message) and error.touches(Gist.of(shown))
        if not reason and not is_clear:
            return None
        files = ", ".join([*failure.changed][:MAX_CHANGED])
        what = f"`{failure.command}` failed until {files} changed" + (f": {shown}." if shown else ".")
    elif failure.ran:
        what = f"`{failure.command}` failed until `{failure.ran[-1]}` was run."
    else:
        what = f"`{failure.instead}` works, `{failure.command}` does not."
    content = f"{what} {finished(own_words(reason))}" if reason else what
    return Fix(content, told_in, names_error=bool(failure.instead) or error.touches(Gist.of(content)))
