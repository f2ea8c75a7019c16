"""Block of Kept in AGENTS.md: where it stands, and how a memory is written into it.

`memory.agents_file` decides which memories stand there and takes edits in; lines are parsed as in MEMORY.md. Rule: a
byte outside of the block is never changed, and no memory can end the block, or be more than the text of one line.
"""

import re
from typing import NamedTuple

from kept import text as characters
from kept.errors import InvalidInput

BEGIN = "<!-- kept:begin -->"
END = "<!-- kept:end -->"
TITLE = "Project memory"
NOTE = (
    "<!-- Confirmed memories, written by Kept. Edit, add or delete lines: `kept files agents` asks about each edit. -->"
)
MOST_LINES = 40  # of the block, with its markers: beyond that agents read past it
MAX_CHARS = 12_000  # of the block; Codex reads 32,768 bytes of the file
MAX_LINE_CHARS = 500

_BOM = "\ufeff"
_ESCAPED = r"\\<>#+*`~\[(._=:|)-"  # a backslash before one of these is markup, and is taken away when a line is read
_READ = re.compile(rf"\\([{_ESCAPED}])|<br>")
_BACKSLASH = re.compile(rf"\\(?=[{_ESCAPED}]|$)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[])")
_NUMBER = re.compile(r"(\d{1,9})(?=[.)](?:\s|$))")
_STRUCTURE = re.compile(r"#{1,6}(?:\s|$)|[>\[:]|[-+*](?:\s|$)|`{3}|~{3}|(?:[-_*=] *){2,}$|\|")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\r?\n)*?(?:---|\.\.\.)[ \t]*\r?\n")
_HEADING = re.compile(r"(?:[ \t]*\r?\n)*#[ \t][^\r\n]*\r?\n")


class ManagedBlock(NamedTuple):
    """A file in three parts: `inner` stands between the lines of the markers, which no part has."""

    before: str
    inner: str
    after: str


def find(whole: str) -> ManagedBlock | None:
    """Return the block; None if there is none. Raises InvalidInput if its markers do not stand as they were written."""
    begins, ends = [], []
    at = 0
    for line in re.split(r"(?<=\n)", whole):
        bare = line.removeprefix(_BOM) if at == 0 else line
        if bare.strip() == BEGIN:
            begins.append((at + len(line) - len(bare), at + len(line)))
        elif bare.strip() == END:
            ends.append((at, at + len(line)))
        at += len(line)
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or ends[0][0] < begins[0][1]:
        raise InvalidInput(
            f"AGENTS.md has {len(begins)} lines {BEGIN} and {len(ends)} lines {END}, or they changed places.",
            hint="Leave one of each, in this order, or delete them with the lines between them.",
        )
    return ManagedBlock(whole[: begins[0][0]], whole[begins[0][1] : ends[0][0]], whole[ends[0][1] :])


def newline_of(whole: str) -> str:
    """Return how most lines of a file end."""
    return "\r\n" if whole.count("\r\n") * 2 > whole.count("\n") else "\n"


def start(end: str) -> str:
    """Return a block that shows nothing yet."""
    return f"{NOTE}{end}## {TITLE}{end}"


def put(whole: str, inner: str) -> str:
    """Return the file with this block: where it stands, or else below the title, near the top."""
    end = newline_of(whole)
    block = find(whole)
    before, after = (block.before, block.after) if block else _place(whole)
    inner = inner if not inner or inner.endswith("\n") else inner + end
    return f"{before}{BEGIN}{end}{inner}{END}{end}{after}"


def remove(whole: str) -> str:
    """Return the file without the block."""
    block = find(whole)
    return whole if block is None else block.before + block.after


def _place(whole: str) -> tuple[str, str]:
    at = len(_BOM) if whole.startswith(_BOM) else 0
    if found := _FRONT_MATTER.match(whole, at):
        at = found.end()
    if found := _HEADING.match(whole, at):
        at = found.end()
    return whole[:at], whole[at:]


def without_block(whole: str) -> str:
    """Return a text with blank lines in the place of the block, for readers of the project's own words.

    Broken markers hide nothing.
    """
    try:
        block = find(whole)
    except InvalidInput:
        return whole
    return whole if block is None else block.before + "\n" * (block.inner.count("\n") + 2) + block.after


def plain(whole: str) -> str:
    """Return a text with the lines of the block as they were said: without marks and escapes."""
    try:
        block = find(whole)
    except InvalidInput:
        return whole
    if block is None:
        return whole
    said = [content_of(re.sub(r"[ \t]\^k[0-9a-z]{1,40}[ \t]*$", "", line)) for line in block.inner.splitlines()]
    return "\n".join((block.before, *said, block.after))


# Lines


def line_of(content: str) -> str:
    """Return the text of a memory as one line that is always plain text in Markdown."""
    lines = content.replace("\r\n", "\n").strip().split("\n")
    return "<br>".join(_escaped(" ".join(characters.visible(line, keep_newlines=False).split())) for line in lines)


def _escaped(line: str) -> str:
    line = _BACKSLASH.sub(r"\\\\", line)
    line = _LINK.sub(r"]\\", _TAG.sub(r"\\<", line))
    if found := _NUMBER.match(line):
        return f"{found[1]}\\{line[found.end() :]}"
    return f"\\{line}" if _STRUCTURE.match(line) else line


def content_of(line: str) -> str:
    """Return the text of a line as a memory has it."""
    return _READ.sub(lambda found: found[1] or "\n", line)
