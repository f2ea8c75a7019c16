"""Sessions: their findings depend on the transcript alone, and a window is one that models' APIs accept."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import START, FakeClock
from tests.conftest import IS_LONG

import kept
from kept.memory import sessions
from kept.memory.window import UPTO, replaceable, window
from kept.model import Message
from kept.projects.files import to_line

USER = (
    "We decided to use PostgreSQL 16 for the billing service because of its exclusion constraints.",
    "From now on always run the linter before you commit anything to this repository.",
    "We decided to write the parser of the import format in Rust, since the old one was too slow.",
    "Never edit the generated client by hand, because the next build overwrites it.",
    "I prefer short answers without an introduction.",
    "The staging server listens on port 1100, not on 4000.",
    "Could you look at the login page? It flickers.",
    "Let's not use Redis for the queue; a table in PostgreSQL is enough for us.",
    "Thanks, that is all.",
)
ASSISTANT = (
    "The flicker came from `useAuth` in src/auth.ts, because it renders before the session is loaded.",
    "I am looking at the file now.",
    "Done. The migration runs after the backup, otherwise the constraint fails on old rows.",
)
FAILS = "Exit code 1\nTraceback (most recent call last):\nValueError: bad port 4000 in config.py"
RUN = {"command": "pytest tests/test_login.py"}


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Some turns: a person, tool calls that fail and then pass, an answer. Every message has an id and a time."""
    said: list[Message] = []

    def say(role: str, content: str = "", **more: object) -> None:
        said.append(Message(id=f"m{len(said)}", role=role, content=content, at=START, **more))  # type: ignore[arg-type]

    for _ in range(draw(st.integers(1, 5))):
        say("user", draw(st.sampled_from(USER)))
        if draw(st.booleans()):
            say("tool_call", name="bash", input=RUN)
            say("tool_result", FAILS, is_error=True)
            for number in range(draw(st.sampled_from((0, 5)))):  # so many that a checkpoint does not see both ends
                say("tool_call", name="read", input={"path": f"src/part{number}.py"})
                say("tool_result", "x = 1")
            edit = {"file_path": "/p/config.py", "old_string": "4000", "new_string": "PORT = 1100\n"}
            say("tool_call", name="edit", input=edit)
            say("tool_result", "ok")
            say("tool_call", name="bash", input=RUN)
            say("tool_result", "3 passed in 0.2s")
        if draw(st.booleans()):
            names = draw(st.permutations(("alpha", "beta", "gamma")))
            new = "".join(f"def {name}(x):\n" + "    x += 1\n" * 5 for name in names)
            say("tool_call", name="write", input={"file_path": "/p/src/harbor.py", "content": new})
            say("tool_result", "written")
        say("assistant", draw(st.sampled_from(ASSISTANT)))
    return said


STEPS = ("append", "import", "checkpoint", "flush", "finish", "fast", "crash", "compact", "silence", "cut finish")
LIMITS = kept.Settings(
    backup_daily=False,
    auto_upkeep=False,
    checkpoint_every_messages=3,
    flush_threshold_tokens=150,
    compaction_threshold_tokens=220,
    compaction_keep_recent=2,
)


class Life:
    """One store, and one session in it that things happen to."""

    def __init__(self, folder: Path, said: list[Message]) -> None:
        self.folder = folder
        self.said = said
        self.done = 0
        self.clock = FakeClock()
        self.memory = self._open()

    def _open(self) -> kept.Kept:
        return kept.open(self.folder / "m.db", clock=self.clock, settings=LIMITS)

    def go_on(self, step: str, size: int) -> None:
        session = self.memory.session("s")
        if step in ("append", "import"):
            before, self.done = self.done, min(len(self.said), self.done + size)
            if step == "append":
                session.extend(self.said[before : self.done])
            else:
                self.import_()
        elif step == "checkpoint":
            session.checkpoint()
        elif step == "flush":
            session.flush()
        elif step == "compact":
            session.compact(force=True)
        elif step in ("finish", "fast"):
            session.finish(fast=step == "fast")
        elif step == "crash":  # what was in memory is gone, and nothing was closed
            self.memory = self._open()
        elif step == "silence":
            self.clock.advance(minutes=31)
            self.memory.session(f"other-{self.clock.at:%H%M}-{self.done}")
        elif step == "cut finish":
            self.cut_finish()

    def import_(self) -> None:
        """The whole transcript so far, as another program keeps it."""
        lines = [json.dumps(to_line(message)) + "\n" for message in self.said[: self.done]]
        (self.folder / "s.jsonl").write_text("".join(lines), "utf-8")
        self.memory.import_transcripts("brain", self.folder / "s.jsonl")

    def cut_finish(self) -> None:
        """Die in the middle of a finish, after the findings were stored and before that was noted."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sessions, "promote", _die)
            try:
                self.memory.session("s").finish()
            except KeyboardInterrupt:
                self.memory = self._open()

    def end(self) -> list[tuple[str, str, str]]:
        """Import what is missing, let half an hour pass, begin another session: what the session has left."""
        self.done = len(self.said)
        self.import_()
        self.clock.advance(minutes=31)
        self.memory.session("the-next")
        session = next(one for one in self.memory.sessions() if one.name == "s")
        assert session.finished_at is not None
        assert session.ended == len(self.memory.session("s").messages())
        return self.left()

    def left(self) -> list[tuple[str, str, str]]:
        found = self.memory.session("s").findings()
        assert len({one.content for one in found}) == len(found), "none is doubled"
        assert len(self.memory.list(kinds=["summary"])) <= 1
        return sorted((one.kind, one.content, one.tier) for one in found)


def _die(*_: object) -> int:
    raise KeyboardInterrupt


@given(said=conversations(), steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 9)), max_size=8))
@settings(max_examples=30 if IS_LONG else 12, deadline=None)
def test_a_sessions_findings_depend_on_its_transcript_alone(said: list[Message], steps: list[tuple[str, int]]) -> None:
    """C20, C31: no order or timing of append, crash, flush, finish and import loses or doubles a finding."""
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        at_once = Life(Path(one), said)
        expected = at_once.end()
        life = Life(Path(two), said)
        for step, size in steps:
            life.go_on(step, size)
        assert life.end() == expected
        refs = [one.ref for one in life.memory.session("s").findings()]
        life.memory.session("s").append("user", "One more thing.", id="late")
        life.memory.session("s").finish()
        assert [one.ref for one in life.memory.session("s").findings()][-len(refs) :] == refs or not refs


@given(
    turns=st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=12),
    compactions=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 40)), max_size=4),
    shown=st.integers(0, 5),
)
@settings(max_examples=300 if IS_LONG else 100, deadline=None)
def test_every_tool_result_in_a_window_follows_its_call(
    turns: list[list[int]], compactions: list[tuple[int, int]], shown: int
) -> None:
    """A turn is a list of steps, each with so many calls at once. APIs refuse a result without its call."""
    messages: list[Message] = []

    def say(role: str, id: str, **more: Any) -> None:
        messages.append(Message(session="s", n=len(messages) + 1, id=id, role=role, **more))  # type: ignore[arg-type]

    waiting = dict(compactions)
    for turn, steps in enumerate(turns):
        say("user", f"u{turn}", content="go on")
        for step, calls in enumerate(steps):
            for role in ("tool_call", "tool_result"):
                for call in range(calls):
                    say(role, f"t{turn}-{step}-{call}", content="x")
            for keep in [keep for keep, at in waiting.items() if at <= len(messages)]:
                del waiting[keep]
                if old := replaceable(messages, keep):
                    say("summary", f"s{len(messages)}", content="So far.", input={UPTO: old[-1].n})
        seen: set[str] = set()
        for message in window(messages, shown).messages:
            seen |= {message.id} if message.role == "tool_call" else set()
            assert message.role != "tool_result" or message.id in seen
