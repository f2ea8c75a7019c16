"""The memories that are compared after a conversation. Each case begins with an empty store.

Kept captures while the sessions are played: by its rules alone, and with a judge of its proposals. A peer has no
capture without a model, so it stores each message of the user, as its examples do.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct

import kept
from bench.gold import Case
from bench.host import Host, lines_of, live_texts, play
from bench.peers.environments import Peer
from bench.peers.running import Running

TOLD_OF_SEARCH = 3
ASKED_AFTER = timedelta(days=1)


class Told(Struct, frozen=True):
    """A text that a session gets, and the lines of it that hold a memory."""

    text: str = ""
    lines: Sequence[str] = ()


class Aftermath(Struct, frozen=True):
    """The memory after a case: the stored texts, the text at the next start, and one for each prompt."""

    stored: Sequence[str]
    start: Told
    prompts: Sequence[Told]


class System(Protocol):
    """A memory that can be compared."""

    name: str

    def play(self, case: Case, folder: Path) -> Aftermath:
        """Have the sessions of a case, and a day later a new one with its prompts."""


class Kept:
    """Kept: sessions through the session API, the questions through the hook of Claude Code."""

    def __init__(self, name: str = "kept", judge: Callable[[Case, str], bool] | None = None) -> None:
        self.name, self._judge = name, judge

    def play(self, case: Case, folder: Path) -> Aftermath:
        project, home = folder / "project", folder / "home"
        project.mkdir(parents=True)
        late = datetime.now(UTC) - ASKED_AFTER - _at(case["sessions"][-1]["at"])
        clock = [datetime.now(UTC)]
        with kept.open(project=project, home=home, clock=lambda: clock[0]) as memory:
            for number, session in enumerate(case["sessions"]):
                clock[0] = _at(session["at"]) + late
                judge = partial(self._judge, case) if self._judge else None
                play(memory, f"{case['id']}-{number}", session["messages"], clock, judge)
            stored = live_texts(memory)
        start = Host(project, home, "next").start()
        # Each prompt in its own session: a line that the prompt before has told would not be told again.
        prompts = [
            Host(project, home, f"next-{number}").prompt(ask["prompt"]) for number, ask in enumerate(case["asks"])
        ]
        return Aftermath(stored, _told(start), [_told(text) for text in prompts])


class Searched:
    """A peer in its own process, with each message of the user: the best three for a prompt."""

    def __init__(self, peer: Peer, running: Running) -> None:
        self.name, self._running = peer.name, running

    def play(self, case: Case, folder: Path) -> Aftermath:
        texts = messages_of_user(case)
        folder.mkdir(parents=True)
        self._running.do("reopen", str(folder))
        self._running.do("load", [(f"m{number}", text) for number, text in enumerate(texts)])
        prompts = []
        for ask in case["asks"]:
            found = self._running.do("query", ask["prompt"])["answer"][:TOLD_OF_SEARCH]
            lines = [texts[int(name[1:])] for name in found]
            prompts.append(Told("\n".join(f"- {line}" for line in lines), lines))
        return Aftermath(texts, Told(), prompts)


def messages_of_user(case: Case) -> list[str]:
    return [
        " ".join(message["content"].split())
        for session in case["sessions"]
        for message in session["messages"]
        if message["role"] == "user"
    ]


@contextmanager
def opened(peer: Peer, cache: Path, folder: Path) -> Iterator[Searched]:
    folder.mkdir()
    with Running(peer, cache, folder) as running:
        yield Searched(peer, running)


def _told(text: str) -> Told:
    return Told(text, lines_of(text))


def _at(moment: str) -> datetime:
    return datetime.fromisoformat(moment.replace("Z", "+00:00"))
