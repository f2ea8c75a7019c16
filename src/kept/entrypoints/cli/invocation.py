"""One run of `kept`: who asks, for which project, where the answer goes, and how the run ends.

Every command gets an Invocation and answers through it. Two rules. Nothing reaches a terminal but through `answer` and
`tell`, which escape whatever could control it; commands hand over plain text and never print. And nothing that is
raised gets past `run`: it becomes a sentence with the next step on standard error, or one JSON document on standard
output, and an exit code: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted, 141 the reader has gone.
"""

import io
import logging
import os
import re
import shutil
import string
import sys
import textwrap
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import tzinfo
from typing import Any, TextIO

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

import kept
from kept import text
from kept.errors import InvalidInput, KeptError, MovedAway, NotAllowed
from kept.ids import is_ref
from kept.memory import Kept, database, opening
from kept.memory.views import SyncReport
from kept.model import Actor, Role
from kept.ports import Clock
from kept.projects import Projects, typed
from kept.projects.registry import is_like
from kept.settings import Settings

FAILED, INTERRUPTED, READER_GONE = 1, 130, 141  # click knows that wrong usage is 2

LIKE = 0.75  # of 1: so similar are a misspelt name and the one that was meant
LATER = "later"  # the option that the space bar takes
FOLLOW = "Follow it with `kept projects link NAME --database URL`, or open that file."
HELP = "help"  # the option of the question mark
_ANSWERS = {"": False, "n": False, "no": False, "y": True, "yes": True}
_EMOJI_STYLE = "\ufe0f"
_CODE = re.compile(r"(\S*`[^`\n]+`\S*\s*)")
_TIED = "\ue000"  # in place of a space at which a line must not break: of a command, of an option with its key

Ask = Callable[[str], bool]
Pick = Callable[[str, Sequence[str]], str]


class Strong(str):
    """Text to be shown bold."""


class CommandLine(Strong):
    """A command line to copy: bold, and without a line break in it."""


class Dim(str):
    """Text to be shown faint."""


class Label(str):
    """The name before a value, faint; the rows below hang under the value."""


class Marked(str):
    """A word that was searched for, where it was found."""


class Bad(str):
    """An error, or a problem."""


class Caution(str):
    """A warning, or a note that asks for attention."""


class Clash(str):
    """A contradiction."""


class Good(str):
    """A check that passed."""


# Colours are for terminals only; every line says the same without them.
_STYLES: Mapping[type[str], Mapping[str, Any]] = {
    Strong: {"bold": True},
    CommandLine: {"bold": True},
    Dim: {"dim": True},
    Label: {"dim": True},
    Marked: {"bold": True, "fg": "yellow"},
    Bad: {"fg": "red"},
    Caution: {"fg": "yellow"},
    Clash: {"fg": "magenta"},
    Good: {"fg": "green"},
}
NOTE = "Note: "

Line = str | tuple[str, ...]


class Invocation(Struct, frozen=True, kw_only=True):
    """What a command knows of its surroundings. A field that is None is taken from the process when it is needed."""

    home: str | None = None
    project: str | None = None
    database: str | None = None
    role: Role = "project"
    is_role_given: bool = False  # by --as or KEPT_ROLE; else it is the default
    agent: str | None = None  # the agent that types, by its environment; None: a person
    session: str | None = None
    as_json: bool = False
    clock: Clock = opening.utc_now
    zone: tzinfo | None = None  # None: the machine's
    settings: Settings | None = None
    ask: Ask | None = None
    picks: Pick | None = None
    out: TextIO | None = None
    err: TextIO | None = None

    def open(self, *, yes: bool = False, auto_upkeep: bool = True) -> Kept:
        """Open the memory that the options name. `yes` answers every question.

        Without `auto_upkeep` no upkeep runs, and edits of files are not taken in.
        """
        self._check_project_name(yes=yes)
        settings: Settings | Mapping[str, Any] | None = self.settings
        if not auto_upkeep:
            settings = {"auto_upkeep": False} if self.settings is None else replace(self.settings, auto_upkeep=False)
        memory = opening.open(
            self.database,
            project=self.project,
            home=self.home,
            actor=self.actor,
            confirm=lambda question: self.agree(question, yes=yes),
            settings=settings,
            clock=self.clock,
            origin="user" if self.agent is None else "agent",
            hosted=self.agent is not None,
        )
        if auto_upkeep:
            for done in memory.files.accompany():
                self._tell_synced(done)
            self._warn_if_moved(memory)
        return memory

    def _warn_if_moved(self, memory: Kept) -> None:
        """Say at the end that the answer came from where the project was before a move, unless an error says so."""
        command = click.get_current_context(silent=True)
        with suppress(KeptError):
            moved = memory.store.moved_away()
            if moved is not None and command is not None:
                note = f"Note: {self.named(moved)} This is the old copy. {FOLLOW}"
                command.call_on_close(lambda: None if sys.exc_info()[0] else self.tell(note))

    def named(self, moved: MovedAway) -> str:
        """Return the sentence about a move, with the name of the project in place of the number of its space."""
        with suppress(KeptError):
            projects = self.projects().list_projects()
            name = next((one.name for one in projects if one.space == moved.space), None)
            return moved.message if name is None else moved.message.replace(moved.space, f"Project {name}", 1)
        return moved.message

    def _tell_synced(self, done: SyncReport) -> None:
        """Report the edits that were taken in from a file."""
        counts = ((done.added, "added"), (done.changed, "changed"), (done.removed, "forgotten"))
        if said := ", ".join(f"{len(refs)} {what}" for refs, what in counts if refs):
            self.tell(f"Note: took your edits of {done.name} in: {said}.")
        for note in (*done.notes, *((done.waiting,) if done.waiting else ())):
            self.tell(f"Note: {done.name}: {note}")

    @property
    def actor(self) -> Actor:
        return Actor(role=self.role, name=self.agent or "user")

    def in_environment(self, environ: Mapping[str, str]) -> "Invocation":
        """The same, with what KEPT_PROJECT, KEPT_ROLE, KEPT_AGENT and KEPT_SESSION say; options come later and win."""
        return replace(
            self,
            project=self.project or typed(environ.get("KEPT_PROJECT", "")) or None,
            role=opening.role_in(environ, self.role),
            is_role_given=self.is_role_given or bool(environ.get("KEPT_ROLE")),
            agent=self.agent or environ.get("KEPT_AGENT") or None,
            session=self.session or environ.get("KEPT_SESSION") or None,
        )

    def with_option(self, name: str, value: Any) -> "Invocation":
        """Return the same with a global option that was typed. Raises InvalidInput for a URL with a password."""
        if name == "database" and database.is_database(value):
            database.refuse_password(value)
        if name == "as_role":
            return replace(self, role=value, is_role_given=True)
        return replace(self, **{name: typed(value) if name == "project" else value})

    def _check_project_name(self, *, yes: bool) -> None:
        """Ask before a name that looks like a misspelt one becomes a project of its own."""
        if self.project is None:
            return
        projects = self.projects()
        located = projects.locate(self.project)
        if located.project is None and located.name:
            names = [project.name for project in projects.list_projects()]
            if self.database is not None:
                names = database.names_like(self.database, located.name, names, settings=self._settings())
            self.check_name(located.name, names, "project", yes=yes)

    def _settings(self) -> Settings:
        return opening.settings_in_force(self.settings)

    def check_name(self, name: str, names: Sequence[str], what: str, *, yes: bool) -> None:
        """Ask a person about a name that is nearly one of these. Raises InvalidInput where nobody can be asked."""
        meant = None if yes or name in names else _misspelt(name, names)
        if meant is None:
            return
        sentence = f"There is no {what} {text.visible(name, keep_newlines=False)[:60]!r}. Did you mean {meant}?"
        if not self.can_ask():
            raise InvalidInput(sentence, hint=f"Add --yes to make it a {what} of its own.")
        self.agree(f"{sentence} Use {name[:60]!r} anyway?")

    def projects(self, *, may_begin: bool = False) -> Projects:
        """The projects of the home that the options name. `may_begin`: of a new one, if that one is gone."""
        return opening.open_projects(self.home, clock=self.clock, may_begin=may_begin)

    def agree(self, question: str, *, yes: bool = False) -> bool:
        """True once a person has agreed. Raises NotAllowed when they did not, or when nobody can be asked."""
        if yes:
            return True
        ask = self.ask or (_ask_at_terminal if self.can_ask() else None)
        if ask is None:
            raise NotAllowed(
                f"This needs confirmation: {question}", hint="Add --yes to confirm, or run the command in a terminal."
            )
        with _interrupting():
            agreed = ask(text.visible(question, keep_newlines=False))
        if not agreed:
            raise NotAllowed("The answer was no. Nothing was changed.")
        return True

    def can_ask(self) -> bool:
        """Return True if a person can answer yes or no."""
        return self.ask is not None or (sys.stdin is not None and sys.stdin.isatty())

    def width(self) -> int:
        """Return the columns of the terminal to which answers go, or 0 where a program reads them."""
        stream = self.out or sys.stdout
        return 0 if stream is None else _width(stream)

    def can_pick(self) -> bool:
        """Whether there is somebody at a terminal who can be given a choice."""
        terminals = all(stream is not None and stream.isatty() for stream in (sys.stdin, self.out or sys.stdout))
        return not self.as_json and (self.picks is not None or terminals)

    def pick(self, question: str, options: Sequence[str]) -> str:
        """Which of the options a person picks; Enter picks the first one. Only where `can_pick`."""
        with _interrupting():
            return (self.picks or _pick_at_terminal)(text.visible(question, keep_newlines=False), options)

    def answer(self, document: object, lines: Iterable[Line], *, as_is: bool = False) -> None:
        """Print the result: as one JSON document with --json, else as lines; on a terminal that is too small for them,
        page by page. `as_is`: a text that people copy, whose lines are not broken and not coloured.
        """
        stream = self.out or sys.stdout
        if stream is None:  # `kept … >&-`: standard output is closed
            return
        if self.as_json:
            is_utf8 = (stream.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")
            stream.write(json_text(document, ascii_only=not is_utf8) + "\n")
            return
        page = io.StringIO()
        self._print(lines, page, is_coloured=not as_is and _is_coloured(stream), width=0 if as_is else _width(stream))
        if self.out is None and can_page():
            _show(page.getvalue(), stream)
        else:
            stream.write(page.getvalue())

    def tell(self, *lines: Line) -> None:
        """Print notes and errors to standard error."""
        stream = self.err or sys.stderr
        if stream is not None:
            self._print(lines, stream, is_coloured=_is_coloured(stream), width=_width(stream))

    def flush(self) -> None:
        """Write out everything. Raises BrokenPipeError when the reader has gone."""
        for stream in (self.out or sys.stdout, self.err or sys.stderr):
            if stream is not None:
                stream.flush()

    def _print(self, lines: Iterable[Line], stream: TextIO, *, is_coloured: bool, width: int) -> None:
        for line in lines:
            for parts in wrapped(_parts(line), width):
                shown = "".join(_styled(part) if is_coloured else _safe(part) for part in parts)
                stream.write(shown.rstrip(" ") + "\n")


def _is_coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width(stream: TextIO) -> int:
    """The columns of a terminal; 0 where lines are not to be broken, because a program reads them."""
    if not stream.isatty():
        return 0
    try:  # of this stream: the other one may be a pipe
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return 80


def _parts(line: Line) -> tuple[str, ...]:
    """Return a line as its parts; a note begins with a word that has a colour."""
    if not isinstance(line, str):
        return line
    return (Caution(NOTE), line.removeprefix(NOTE)) if type(line) is str and line.startswith(NOTE) else (line,)


def columns(line: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters two, combining ones none."""
    return len(line) if line.isascii() else sum(map(_columns_of, line))


def _columns_of(character: str) -> int:
    if character == _EMOJI_STYLE:  # it makes the symbol before it a wide one
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def wrapped(parts: Sequence[str], width: int) -> list[tuple[str, ...]]:
    """Break a line at words, so that none is wider than the terminal; the rest is indented like its beginning.

    Measured as it is shown: escaped, and in columns. Things to copy have no line break: a CommandLine, text between
    backticks, and a word with a slash, which is a path or a URL. A terminal wraps those that are wider than a row, and
    copies them whole. Any other word that is wider is broken. The styles of the parts change no line break.
    """
    if not width:
        return [tuple(parts)]
    safe = [type(part)(_safe(part)) for part in parts]
    plain = "".join(safe)
    if columns(plain) <= width:
        return [tuple(safe)]
    margin = _margin(safe, plain, width)
    tied = "".join(part.replace(" ", _TIED) if isinstance(part, CommandLine) else part for part in safe)
    rows: list[tuple[int, int]] = []
    start = end = used = 0
    for piece in _pieces(tied, width - len(margin)):
        if used > len(margin) and used + columns(piece.rstrip()) > width:
            rows.append((start, end))
            start, used = end, len(margin)
        end, used = end + len(piece), used + columns(piece)
    first, *others = [*rows, (start, end)]
    return [_slice(safe, *first), *((margin, *_slice(safe, *row)) for row in others)]


def _slice(parts: Sequence[str], start: int, end: int) -> tuple[str, ...]:
    """Return the parts of a row, without the spaces at its end: a space at the edge would wrap as a row."""
    end = start + len("".join(parts)[start:end].rstrip())
    row: list[str] = []
    at = 0
    for part in parts:
        if cut := part[max(0, start - at) : max(0, end - at)]:
            row.append(type(part)(cut))
        at += len(part)
    return tuple(row)


def _margin(parts: Sequence[str], plain: str, width: int) -> str:
    """Return the beginning of the rows below the first one."""
    indent = len(plain) - len(plain.lstrip(" │"))  # a bar in the margin stands beside every row
    indent += 4 * plain.startswith("[id:")
    if isinstance(parts[0], Label):
        indent = columns(parts[0])
    indent = min(indent, width // 2, max(0, width - 2))
    return "".join("│" if character == "│" else " " for character in plain[:indent].ljust(indent))


def tied(text: str, most: int) -> str:
    """Return a text without spaces in code between backticks that a row holds; `untied` brings them back."""
    pieces = _CODE.split(text)
    return "".join(
        f"{piece.rstrip().replace(' ', _TIED)}{piece[len(piece.rstrip()) :]}"
        if _CODE.fullmatch(piece) and columns(piece.rstrip()) <= most
        else piece
        for piece in pieces
    )


def untied(text: str) -> str:
    return text.replace(_TIED, " ")


def _pieces(line: str, most: int) -> Iterator[str]:
    """Yield each word with the space behind it; one that no row holds comes in pieces, if it is nothing to copy."""
    for word in _words(line):
        shown = word.rstrip()
        if columns(shown) <= most or "/" in shown or _TIED in shown or _CODE.fullmatch(word):
            yield word
            continue
        piece, used = "", 0
        for character in word:
            own = _columns_of(character)
            if own and used + own > most:
                yield piece
                piece, used = "", 0
            piece, used = piece + character, used + own
        yield piece


def _words(line: str) -> Iterator[str]:
    """Yield each word with the space behind it; text between backticks is one word."""
    for piece in filter(None, _CODE.split(line)):
        yield from [piece] if _CODE.fullmatch(piece) else re.split(r"(?<=\s)(?=\S)", piece)


def can_page() -> bool:
    """Whether somebody at a terminal can turn pages."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _show(page: str, stream: TextIO) -> None:
    if page.count("\n") < shutil.get_terminal_size().lines:
        stream.write(page)
        return
    os.environ.setdefault("LESS", "FRX")  # colours, and no page for what fits
    click.echo_via_pager(page)


def nearest(name: str, names: Sequence[str], *, cutoff: float = 0.6) -> str | None:
    """Return the name that is most like this one, if one is."""
    from difflib import get_close_matches  # only after a typo

    return next(iter(get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def _misspelt(name: str, names: Sequence[str]) -> str | None:
    """Return the name that was probably meant. web-1 and web-2 differ on purpose."""
    alike = next((other for other in names if is_like(other, name)), None)
    if alike is not None:
        return alike
    meant = nearest(name, names, cutoff=LIKE)
    return meant if meant is not None and _digits(name) == _digits(meant) else None


def _digits(name: str) -> str:
    return "".join(character for character in name if character.isdigit())


def json_text(document: object, *, ascii_only: bool = False) -> str:
    """The document as JSON; a character that a terminal would obey, or hide, is written as an escape."""
    import json  # only for --json: other answers start without it

    written = json.dumps(msgspec.to_builtins(document), ensure_ascii=ascii_only, indent=2)
    unsafe = {character for character in set(written) if character != "\n" and text.visible(character) != character}
    return written.translate({ord(character): _json_escape(character) for character in unsafe})


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _safe(part: str) -> str:
    return text.visible(part.replace("\t", " "), keep_newlines=False)


def _styled(part: str) -> str:
    style = _STYLES.get(type(part))
    return _safe(part) if style is None else click.style(_safe(part), **style)


@contextmanager
def _interrupting() -> Iterator[None]:
    """Raise an answer of Ctrl-C as a KeyboardInterrupt. Click's Abort is a RuntimeError, which the code that asks may
    take for a failure in its own work.
    """
    try:
        yield
    except click.Abort:
        raise KeyboardInterrupt from None


def _ask_at_terminal(question: str) -> bool:
    asked = "\n".join(question_rows(question, _width(sys.stderr) or 80)) + " [y/N]"
    while (answer := click.prompt(asked, default="", show_default=False, err=True).strip().lower()) not in _ANSWERS:
        asked = "Type y for yes or n for no"
    return _ANSWERS[answer]


def question_rows(question: str, columns: int) -> list[str]:
    """Break a question into the rows of a terminal, with room for the answer; a path is not broken at its hyphens."""
    room = max(20, columns - len(" [y/N]: y"))
    return textwrap.wrap(question, room, break_long_words=False, break_on_hyphens=False)


def keys_of(options: Sequence[str]) -> dict[str, str]:
    """A key for each option: its first letter that no option before it has; of a ref, the next letter that is free.

    A key is never a digit: it would look like a ref.
    """
    keys: dict[str, str] = {}
    for option in options:
        own = [] if is_ref(option.removeprefix("id:")) else [letter for letter in option.lower() if letter.isalpha()]
        letters = ["?"] if option == HELP else [*own, *string.ascii_letters]
        keys[next(letter for letter in letters if letter not in keys)] = option
    return keys


def _pick_at_terminal(question: str, options: Sequence[str]) -> str:
    """One key is enough; Enter takes the first option, Escape or Ctrl-C ends the command."""
    keys = keys_of(options)
    shown = "  ".join(f"[{key}] {option}".replace(" ", _TIED) for key, option in keys.items())
    asked, enter = question if question[-1:] in "?:" else f"{question}:", f"(Enter: {options[0]})".replace(" ", _TIED)
    room = max(map(columns, options)) + 2  # behind the question, for the answer
    lines = wrapped((f"{asked} {shown} {enter}",), max(20, (_width(sys.stderr) or 80) - room))
    click.echo("\n".join("".join(line) for line in lines).replace(_TIED, " ") + " ", nl=False, err=True)
    while (picked := _option_of(click.getchar(), keys, options)) is None:
        pass
    click.echo(picked, err=True)
    return picked


def _option_of(key: str, keys: Mapping[str, str], options: Sequence[str]) -> str | None:
    """Return the option of a key, or None if it has none. Raises Abort for Escape, Ctrl-C and Ctrl-D."""
    if key in ("\x1b", "\x03", "\x04"):
        raise click.Abort
    if key in ("\r", "\n"):
        return options[0]
    return LATER if key == " " and LATER in options else keys.get(key, keys.get(key.lower()))


def wants_json(arguments: Sequence[str]) -> bool:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def run(command: click.Group, arguments: list[str], invocation: Invocation) -> int:
    """Run one command; the exit code. Nothing that was raised gets past here."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal with a small character set gets escapes, not an error
                stream.reconfigure(errors="backslashreplace")
        with warnings_told(invocation):
            code = _invoke(command, arguments, invocation.in_environment(os.environ))
        invocation.flush()
        return code
    except BrokenPipeError:
        _silence_output()
        return READER_GONE
    except (KeyboardInterrupt, click.Abort):
        with suppress(OSError):
            invocation.tell("")  # ends the line on which the terminal has printed ^C
        return INTERRUPTED
    except MovedAway as error:
        has_followed = _has_followed(error, invocation.in_environment(os.environ))
        if has_followed:
            return run(command, arguments, invocation)
        return _report(MovedAway(invocation.named(error), hint=error.hint), invocation)
    except Exception as error:  # the boundary: reported to the person, and turned into an exit code
        return _report(error, invocation)


def _has_followed(error: MovedAway, invocation: Invocation) -> bool:
    """Use a project in the database that it was moved to, if a person says yes."""
    projects = invocation.projects()
    project = projects.find(invocation.project)
    url = database.url_for(project, error) if project is not None else ""
    if project is None or not url or invocation.as_json:
        return False
    try:
        invocation.agree(f"{invocation.named(error)} Use it there from now on, as {url}?")
    except NotAllowed:
        return False
    database.follow(projects, project, url, settings=opening.settings_in_force(invocation.settings))
    return True


def _invoke(command: click.Group, arguments: list[str], invocation: Invocation) -> int:
    try:
        with command.make_context("kept", arguments, obj=invocation) as ctx:
            command.invoke(ctx)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return 0


def _report(error: Exception, invocation: Invocation) -> int:
    """Say what went wrong and what to do; the exit code."""
    kind, message, hint, code = type(error).__name__, "", "", FAILED
    if isinstance(error, KeptError):
        message, hint = error.message, error.hint
    elif isinstance(error, click.ClickException):
        message = _usage_message(error)
        kind, message, code = "UsageError", message if message[-1:] in ".?!" else f"{message}.", error.exit_code
        hint = _usage_hint(error)
    elif isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename is not None else ""
        message = f"The operating system reported an error: {(error.strerror or kind).lower()}{place}."
        hint = "Check the file, its permissions, and the free space on the disk."
    else:
        message = f"Kept stopped because of a bug ({kind}). Everything stored before is safe."
        hint = "Run the command again with KEPT_DEBUG=1 and report its output; check it for private text first."
    # A message repeats the input, and the input may be a key in the wrong place.
    message, hint = kept.redact(message).text, kept.redact(hint).text
    if os.environ.get("KEPT_DEBUG"):
        invocation.tell(*"".join(traceback.format_exception(error)).splitlines())
    try:
        if invocation.as_json:
            invocation.answer({"error": {"type": kind, "message": message, "hint": hint}}, ())
        else:
            invocation.tell((Bad(message), f" {hint}".rstrip()))
        invocation.flush()
    except OSError:  # the output goes to a full disk or a closed pipe: there is no other place to report it
        _silence_output()
    return code


def _usage_message(error: click.ClickException) -> str:
    """Return the message of click in one line; of an option that does not exist, with the one that is most like it."""
    if isinstance(error, click.NoSuchOption):
        meant = nearest(error.option_name, list(error.possibilities or ()))
        return f"There is no option {error.option_name}.{f' Did you mean {meant}?' if meant else ''}"
    return " ".join(error.format_message().split())  # click spreads a list of choices over lines


def _usage_hint(error: click.ClickException) -> str:
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "kept"
    hint = f"`{path} --help` shows the usage."
    if isinstance(error, click.NoSuchOption) and path.endswith(("remember", "edit")):
        hint = f'If it is part of the text, put the text after a double dash: {path} -- "…". {hint}'
    return hint


@contextmanager
def warnings_told(invocation: Invocation) -> Iterator[None]:
    """Show every warning that the library logs, as a note for the person."""

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            invocation.tell(f"Note: {record.getMessage()}")

    log, handler = logging.getLogger("kept"), Notes(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _silence_output() -> None:
    """The reader has gone: let the interpreter flush the rest into nothing."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
