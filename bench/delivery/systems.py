"""The memories that are compared: Kept through its hook, peers through their search, notes in a file.

Each gets the same statements. A peer without a hook is asked for the prompt of the user, and the best three texts go
into the prompt. Rule: no peer is tuned, and neither is Kept.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

import kept
from bench.delivery.statements import Statement, Talk, actions
from bench.gold import Case, tokens
from bench.host import Host, lines_of, live_texts, play
from bench.peers.environments import Peer
from bench.peers.running import Running
from kept.model import Source

MOMENTS = ("start", "prompt", "action", "failure")
TOLD_OF_SEARCH = 3
FOUND = 5
KEY_WORDS = 6
SETTINGS = {"auto_upkeep": False}


class Given(Struct, frozen=True):
    """A text that the agent gets at a moment, and the lines of it that hold a memory."""

    text: str = ""
    lines: Sequence[str] = ()


NOTHING = Given()


class System(Protocol):
    """A memory that can be compared."""

    name: str
    stored: Sequence[str]

    def session(self, case: Case) -> dict[str, Given]:
        """Return the texts that the agent gets at each moment of a new session with the case."""

    def prompt(self, text: str) -> Given:
        """Return the text that a prompt gets in a new session."""

    def search(self, text: str) -> Sequence[str]:
        """Return the best five texts for a question."""

    def call(self, tool: str, given: dict[str, Any]) -> Given:
        """Return the text that a tool call gets in a new session."""


class Kept:
    """Kept, through the hook of Claude Code. Each session has a fresh copy of the store."""

    def __init__(
        self,
        name: str,
        folder: Path,
        told: Sequence[Statement],
        played: Sequence[Talk] = (),
        is_worth: Callable[[str], bool] | None = None,
    ) -> None:
        self.name = name
        self._project, self._folder, self._sessions = folder / "project", folder, 0
        self._project.mkdir(parents=True)
        self.stored: Sequence[str] = fill_kept(self._project, folder / "home", [*told, *played], is_worth)

    def session(self, case: Case) -> dict[str, Given]:
        host = self._host()
        given = {"start": shown(host.start()), "prompt": shown(host.prompt(case["prompt"]))}
        acted = [host.call(*call) for call in actions(case)]
        given["action"] = shown("\n".join(filter(None, acted)))
        failed = host.failure([*case["commands"], ""][0], case["error"]) if case["error"] else ""
        return given | {"failure": shown(failed)}

    def prompt(self, text: str) -> Given:
        return shown(self._host().prompt(text))

    def search(self, text: str) -> Sequence[str]:
        with kept.open(project=self._project, home=self._copy(), settings=SETTINGS) as memory:
            return [hit.memory.content for hit in memory.recall(text, limit=FOUND)]

    def call(self, tool: str, given: dict[str, Any]) -> Given:
        return shown(self._host().call(tool, given))

    def _host(self) -> Host:
        return Host(self._project, self._copy(), f"asked-{self._sessions}")

    def _copy(self) -> Path:
        """Copy the store, and remove the copy before."""
        self._sessions += 1
        home = self._folder / f"copy{self._sessions}"
        shutil.copytree(self._folder / "home", home)
        shutil.rmtree(self._folder / f"copy{self._sessions - 1}", ignore_errors=True)
        return home


class PromptOnly:
    """A memory without a hook: it is asked for the prompt, and knows of nothing else."""

    name: str
    stored: Sequence[str]

    def session(self, case: Case) -> dict[str, Given]:
        return dict.fromkeys(MOMENTS, NOTHING) | {"prompt": self.prompt(case["prompt"])}

    def prompt(self, text: str) -> Given:
        return listed(self.search(text)[:TOLD_OF_SEARCH])

    def search(self, text: str) -> Sequence[str]:
        raise NotImplementedError

    def call(self, tool: str, given: dict[str, Any]) -> Given:
        return NOTHING


class Searched(PromptOnly):
    """A peer in its own process: the best three for the prompt."""

    def __init__(self, peer: Peer, running: Running, told: Sequence[Statement]) -> None:
        self.name, self._running = peer.name, running
        self._texts = {one.name: one.text for one in told}
        self.stored = list(self._texts.values())
        running.do("load", list(self._texts.items()))

    def search(self, text: str) -> Sequence[str]:
        return [self._texts[name] for name in self._running.do("query", text)["answer"]]


class Grep(PromptOnly):
    """A file of notes, and grep for the longest words of the prompt: all lines with one of them, in their order."""

    name = "grep over notes"

    def __init__(self, folder: Path, told: Sequence[Statement]) -> None:
        self._notes = folder / "notes.md"
        self.stored = [one.text for one in told]
        self._notes.write_text("".join(f"{text}\n" for text in self.stored), "utf-8")

    def prompt(self, text: str) -> Given:
        return listed(self._lines(text))

    def search(self, text: str) -> Sequence[str]:
        return self._lines(text)[:FOUND]

    def _lines(self, text: str) -> list[str]:
        words = sorted(dict.fromkeys(re.findall(r"\w{4,}", text)), key=len, reverse=True)[:KEY_WORDS]
        command = ["grep", "-i", "-w", *(part for word in words for part in ("-e", word)), str(self._notes)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


class NotesFile:
    """A file such as CLAUDE.md, read whole at the start of each session: the newest notes that fit, or all."""

    def __init__(self, name: str, told: Sequence[Statement], most_tokens: float) -> None:
        self.name = name
        self.stored: Sequence[str] = [one.text for one in told]
        fitting: list[str] = []
        for text in reversed(self.stored):
            if tokens(listed([*fitting, text]).text) > most_tokens:
                break
            fitting.append(text)
        self._given = listed(fitting)

    def session(self, case: Case) -> dict[str, Given]:
        return dict.fromkeys(MOMENTS, NOTHING) | {"start": self._given}

    def prompt(self, text: str) -> Given:
        return NOTHING

    def search(self, text: str) -> Sequence[str]:
        return ()

    def call(self, tool: str, given: dict[str, Any]) -> Given:
        return NOTHING


def shown(text: str) -> Given:
    return Given(text, lines_of(text))


def listed(texts: Sequence[str]) -> Given:
    return Given("\n".join(f"- {text}" for text in texts), texts)


def fill_kept(
    project: Path, home: Path, said: Sequence[Statement | Talk], is_worth: Callable[[str], bool] | None
) -> list[str]:
    """Store statements and play conversations, oldest first. Return the texts of the live memories."""
    clock = [datetime.now().astimezone()]
    with kept.open(project=project, home=home, settings=SETTINGS, clock=lambda: clock[0]) as memory:
        for one in sorted(said, key=lambda each: (each.at, each.name)):
            clock[0] = one.at
            if isinstance(one, Statement):
                source = Source(origin="user" if one.speaker == "user" else "agent")
                memory.remember(one.text, kind=one.kind, files=one.files, source=source)
            else:
                play(memory, one.name, one.messages, clock, is_worth)
        return live_texts(memory)
