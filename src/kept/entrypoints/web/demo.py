"""Sample data for the page: a small project in a scratch home, as two agents and a person would leave it in two months.

What happened is in demo.jsonl, a line for each thing, in order. Rule: nothing of it is ever written into a home that
somebody uses, and every view says that it is made up.
"""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from kept.memory import Kept
from kept.memory.deliver import Listener
from kept.memory.opening import open as open_memory
from kept.model import Actor, Draft

PROJECT = "ledger-api"
LINES = Path(__file__).with_suffix(".jsonl")


class _Clock:
    """A clock that is set by hand, and goes on by a second each time that somebody looks."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def fill(home: Path) -> Path:
    """Make the sample project in that home, and return its folder."""
    folder = home / PROJECT
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    clock = _Clock(today := datetime.now(UTC))

    named: dict[str, str] = {}
    agents: dict[str, Kept] = {}
    with ExitStack() as stack:
        for number, line in enumerate(LINES.read_text("utf-8").splitlines()):
            step = msgspec.json.decode(line)
            at = today.replace(hour=step["hour"], minute=12, second=0) - timedelta(days=step["days"])
            clock.now = min(at, today - timedelta(minutes=100 - number))  # in order, and before now
            if (who := step["who"]) not in agents:
                agents[who] = stack.enter_context(_opened(who, folder, home / "kept", clock))
            _do(agents[who], step, named, folder)
    return folder


def _opened(who: str, folder: Path, home: Path, clock: _Clock) -> Kept:
    return open_memory(
        project=folder,
        home=home,
        settings={"auto_upkeep": False, "backup_daily": False},
        actor=Actor(name=who),
        origin="user" if who == "user" else "agent",
        clock=clock,
    )


def _do(memory: Kept, step: dict[str, Any], named: dict[str, str], folder: Path) -> None:
    """One line: a verb of the library and what it is given. `named` maps the names of lines to refs."""
    match step:
        case {"remember": about}:
            receipt = memory.remember_many([msgspec.convert(about, Draft)])[0]
            named[step.get("name", "")] = receipt.ref or ""
        case {"recall": query}:
            memory.recall(query)
        case {"talk": session, "said": said}:
            _hold(memory, session, step["who"], said)
        case {"task": description}:
            memory.task(description=description, priority=1)
        case {"extract": text}:
            (folder / "NOTES.md").write_text(text, "utf-8")
            memory.files.extract([folder / "NOTES.md"], sources=True)
        case _:
            verb = next(name for name in ("pin", "reinforce", "demote") if name in step)
            getattr(memory, verb)(named[step[verb]])


def _hold(memory: Kept, name: str, agent: str, said: list[tuple[Any, str]]) -> None:
    """A conversation: what it was given, what was said, and its end."""
    session = memory.session(name, agent=agent)
    memory.deliveries.at_start(Listener(session=name, event="SessionStart"))
    for role, text in said:
        if role == "user":
            memory.deliveries.for_prompt(text, Listener(session=name, event="UserPromptSubmit"))
        session.append(role, text)
    session.finish()
