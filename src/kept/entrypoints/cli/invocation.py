"""One run of `kept`: who asks, for which project, at what time, and where the answer goes.

Every command gets an Invocation and answers through it. Rule: nothing reaches a terminal but through `answer` and
`tell`, which write out whatever could steer it; commands hand over plain text and never print.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, TextIO

import click

import kept
from kept import text
from kept.errors import NotAllowed
from kept.memory import opening
from kept.model import Actor, Role, replace
from kept.ports import Clock
from kept.projects import Projects
from kept.settings import Settings

Ask = Callable[[str], bool]
Pick = Callable[[str, Sequence[str]], str]


class Strong(str):
    """Text to be shown bold."""


class Dim(str):
    """Text to be shown faint."""


Line = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What a command knows of its surroundings. Whatever is None is taken from the process when it is needed."""

    home: str | None = None
    project: str | None = None
    role: Role = "project"
    as_json: bool = False
    clock: Clock = opening.utc_now
    zone: tzinfo | None = None  # None: the machine's
    settings: Settings | None = None
    ask: Ask | None = None
    picks: Pick | None = None
    out: TextIO | None = None
    err: TextIO | None = None

    def open(self, *, yes: bool = False, auto_upkeep: bool = True) -> kept.Kept:
        """The memory that the options name. `yes` answers every question that it may have.

        Without `auto_upkeep` nothing happens by itself.
        """
        settings: Settings | Mapping[str, Any] | None = self.settings
        if not auto_upkeep:
            settings = {"auto_upkeep": False} if self.settings is None else replace(self.settings, auto_upkeep=False)
        return kept.open(
            project=self.project,
            home=self.home,
            actor=self.actor,
            confirm=lambda question: self.agree(question, yes=yes),
            settings=settings,
            clock=self.clock,
            origin="user",
        )

    def settings_in_force(self) -> Settings:
        """What holds for all projects of this person."""
        return opening.settings_in_force(self.settings)

    @property
    def actor(self) -> Actor:
        return Actor(role=self.role, name="user")

    def projects(self) -> Projects:
        """The projects of the home that the options name."""
        return opening.open_projects(self.home, clock=self.clock)

    def agree(self, question: str, *, yes: bool = False) -> bool:
        """True once a person has agreed. Raises NotAllowed when they did not, or when nobody can be asked."""
        if yes:
            return True
        ask = self.ask or (_ask_at_terminal if sys.stdin is not None and sys.stdin.isatty() else None)
        if ask is None:
            raise NotAllowed(
                f"This needs a yes: {question}", hint="Add --yes to agree, or run the command in a terminal."
            )
        if not ask(text.visible(question, keep_newlines=False)):
            raise NotAllowed("The answer was no. Nothing was changed.")
        return True

    def can_pick(self) -> bool:
        """Whether somebody sits there who can be given a choice."""
        terminals = all(stream is not None and stream.isatty() for stream in (sys.stdin, self.out or sys.stdout))
        return not self.as_json and (self.picks is not None or terminals)

    def pick(self, question: str, options: Sequence[str]) -> str:
        """Which of the options a person takes; the first one is what Enter takes. Only where `can_pick`."""
        return (self.picks or _pick_at_terminal)(text.visible(question, keep_newlines=False), options)

    def answer(self, document: object, lines: Iterable[Line]) -> None:
        """Print the result: as one JSON document if that was asked for, else as lines."""
        stream = self.out or sys.stdout
        if stream is None:  # `kept … >&-`: nobody listens
            return
        if self.as_json:
            is_utf8 = (stream.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")
            stream.write(json_text(document, ascii_only=not is_utf8) + "\n")
        else:
            self._print(lines, stream)

    def tell(self, *lines: Line) -> None:
        """Print what is beside the result, and errors, to standard error."""
        stream = self.err or sys.stderr
        if stream is not None:
            self._print(lines, stream)

    def flush(self) -> None:
        """Hand everything over. Raises BrokenPipeError when the reader has gone."""
        for stream in (self.out or sys.stdout, self.err or sys.stderr):
            if stream is not None:
                stream.flush()

    def _print(self, lines: Iterable[Line], stream: TextIO) -> None:
        is_coloured = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        for line in lines:
            parts = (line,) if isinstance(line, str) else line
            shown = "".join(_styled(part) if is_coloured else _safe(part) for part in parts)
            stream.write(shown.rstrip(" ") + "\n")


def json_text(document: object, *, ascii_only: bool = False) -> str:
    """The document as JSON; a character that a terminal would obey, or hide, stands there as an escape."""
    import json

    import msgspec

    written = json.dumps(msgspec.to_builtins(document), ensure_ascii=ascii_only, indent=2)
    unsafe = {character for character in set(written) if character != "\n" and text.visible(character) != character}
    return written.translate({ord(character): _json_escape(character) for character in unsafe})


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _safe(part: str) -> str:
    return text.visible(part, keep_newlines=False)


def _styled(part: str) -> str:
    if isinstance(part, Strong | Dim):
        return click.style(_safe(part), bold=isinstance(part, Strong) or None, dim=isinstance(part, Dim) or None)
    return _safe(part)


def _ask_at_terminal(question: str) -> bool:
    return click.confirm(question, default=False, err=True)


def _pick_at_terminal(question: str, options: Sequence[str]) -> str:
    picked: str = click.prompt(question, type=click.Choice(options), default=options[0], err=True)
    return picked
