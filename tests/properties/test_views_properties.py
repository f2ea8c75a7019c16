"""B5, B7: whatever people and agents do between two syncs, and wherever a sync stops, nothing is lost.

A model beside the real thing knows which texts must be there. `KEPT_TEST_LONG=1` walks thousands of steps.
"""

import json
import os
import random
from contextlib import suppress
from pathlib import Path

import pytest
from tests.builders import FakeClock

import kept
from kept.exchange import memory_md as page
from kept.memory import views

WALKS, STEPS = (40, 100) if os.environ.get("KEPT_TEST_LONG") else (4, 30)
OWN = ("## Shopping", "## Rules of the house")  # headings of a person, with things that are no statements
PROSE = ("Some words of mine.", "- milk", "- [ ] call her back", "> quoted", "", "<!-- hidden -->", "- two things:")
SECTIONS = ("## Key Decisions", "## User Preferences", "## Project Context")


class Cut(BaseException):
    """The power goes off."""


class Walk:
    """A person with an editor, an agent, and Kept, in one project."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        (folder / "app").mkdir()
        self.clock = FakeClock()
        self.serial = 0
        self.must: dict[str, str] = {}  # what somebody said and nobody deleted or changed: text → who
        self.under: dict[str, str] = {}  # text → the heading of their own that a person put it under
        self.memory = self.open()
        self.memory.remember(self.new("agent"))
        self.memory.files.sync(ask=lambda question, lines: True)
        self.path = next(Path(one.path) for one in self.memory.files.status() if one.name == "MEMORY.md")

    def open(self) -> kept.Kept:
        home, app = self.folder / "home", self.folder / "app"
        settings = kept.Settings(backup_daily=False, auto_upkeep=False)
        return kept.open(project=app, home=home, settings=settings, clock=self.clock)

    def new(self, who: str) -> str:
        self.serial += 1
        words = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "haven")
        text = f"{self.chance.choice(words)}{self.serial} runs {self.chance.choice(words)}{self.serial} before noon"
        self.must[text] = who
        return text

    def drop(self, text: str) -> None:
        self.must.pop(text, None)
        self.under.pop(text, None)

    # An agent

    def agent(self) -> None:
        live = [one for one in self.memory.list(limit=1000) if one.content in self.must]
        deed = self.chance.choice(("remember", "remember", "revise", "forget", "sync"))
        if deed == "remember" or not live:
            self.memory.remember(self.new("agent"), kind=self.chance.choice(("fact", "decision", "preference")))
        elif deed == "sync":
            self.memory.files.take_edits()
        else:
            chosen = self.chance.choice(live)
            if deed == "revise":
                # A text that somebody else changes in the file at the same time is kept beside it.
                self.drop(chosen.content)
                self.memory.revise(chosen.ref, self.new("agent"))
            else:
                self.drop(chosen.content)
                self.memory.forget(chosen.ref)

    # A person

    def person(self) -> None:
        lines = self.path.read_text("utf-8").split("\n") if self.path.exists() else [""]
        for _ in range(self.chance.randint(1, 3)):
            self.edit(lines)
        self.path.write_text("\n".join(lines), "utf-8")

    def edit(self, lines: list[str]) -> None:
        entries = [n for n, line in enumerate(lines) if " ^k" in line]
        headings = [n for n, line in enumerate(lines) if line in SECTIONS]
        deed = self.chance.choice(("add", "add", "own", "change", "delete", "move", "prose", "unmark", "copy"))
        if deed == "add" and headings:
            lines.insert(self.chance.choice(headings) + 1, f"- {self.new('person')}")
        elif deed == "own":
            heading, text = self.chance.choice(OWN), self.new("person")
            self.under[text] = heading.removeprefix("## ")
            if heading not in lines:
                lines[-1:] = ["", heading, *self.chance.sample(PROSE, 3), ""]
            lines.insert(lines.index(heading) + self.chance.randint(1, 2), f"* {text}")
        elif deed == "prose":
            first = next((n for n, line in enumerate(lines) if line.startswith("## ")), 0)
            lines.insert(self.chance.randint(0, first), f"Prose {self.serial} {self.chance.random()}")
        elif not entries:
            return
        else:
            n = self.chance.choice(entries)
            bullet, text, mark = lines[n][:2], *lines[n][2:].rsplit(" ^k", 1)
            if deed == "change":
                heading = self.under.get(text)
                self.drop(text)
                lines[n] = f"{bullet}{(new := self.new('person'))} ^k{mark}"
                self.under |= {new: heading} if heading else {}
            elif deed == "delete":
                self.drop(text)
                del lines[n]
            elif deed == "move":
                self.under.pop(text, None)
                lines.insert(self.chance.choice(entries), lines.pop(n))
            elif deed == "unmark":
                lines[n] = f"{bullet}{text}"
            elif deed == "copy":
                lines.insert(n, lines[n])

    # Kept

    def sync(self) -> None:
        before = self.prose()
        self.memory.files.sync(ask=lambda question, lines: True)
        assert self.prose() == before, "prose is untouched"
        written = self.path.read_bytes()
        again = self.memory.files.sync(ask=lambda question, lines: True)
        assert not any(one.has_edits or one.is_written for one in again), "two syncs in a row change nothing"
        assert self.path.read_bytes() == written
        self.check()

    def crash(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sync that stops somewhere: before its transaction, after it, after the file was replaced."""
        real = {name: getattr(views, name) for name in ("_save", "_draft", "_put", "write_draft", "read")}
        where, countdown = self.chance.choice(tuple(real)), [self.chance.randint(0, 2)]

        def stop(*arguments: object, **named: object) -> object:
            if countdown[0] == 0 and self.chance.random() < 0.5:
                raise Cut
            done = real[where](*arguments, **named)
            if countdown[0] == 0:
                raise Cut
            countdown[0] -= 1
            return done

        with monkeypatch.context() as patched:
            patched.setattr(views, where, stop)
            with suppress(Cut):
                self.memory.files.sync(ask=lambda question, lines: True)
        self.memory.close()
        self.memory = self.open()

    def prose(self) -> list[str]:
        rows = page.parse(self.path.read_text("utf-8") if self.path.exists() else "")
        own = {*SECTIONS, ""}
        lines = [row.raw.strip() for row in rows if not row.is_entry]
        return [line for line in lines if line not in own and "not shown here" not in line]

    def check(self) -> None:
        live = {one.content for one in self.memory.list(limit=1000)}
        missing = self.must.keys() - live
        assert not missing, f"lost: {missing}"
        rows = [row for row in page.parse(self.path.read_text("utf-8")) if row.is_entry]
        assert {row.text for row in rows} == live, "the file shows exactly what is live"
        stands = {(row.text, row.section) for row in rows}
        assert self.under.items() <= stands, "a line stays where the person put it"


@pytest.mark.parametrize("seed", range(WALKS))
def test_no_edit_and_no_memory_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    walk = Walk(tmp_path, seed)
    for _ in range(STEPS):
        walk.clock.advance(minutes=1)
        for _ in range(walk.chance.randint(1, 4)):
            walk.chance.choice((walk.agent, walk.person))()
        if walk.chance.random() < 0.4:
            walk.crash(monkeypatch)
            if walk.chance.random() < 0.5:
                walk.person()
        if walk.chance.random() < 0.6:
            walk.sync()
    walk.sync()
    walk.memory.close()


class Tasks:
    """The same with tasks.json: what somebody wrote into a field, and nobody changed, is there."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        (folder / "app").mkdir()
        settings = kept.Settings(backup_daily=False, auto_upkeep=False)
        self.open = lambda: kept.open(
            project=folder / "app", home=folder / "home", settings=settings, clock=FakeClock()
        )
        self.memory = self.open()
        self.serial = 0
        self.must: set[str] = set()  # words that stand in some description
        self.memory.task("T0", description=self.word())
        self.sync()
        self.path = next(Path(one.path) for one in self.memory.files.status() if one.name == "tasks.json")

    def word(self) -> str:
        self.serial += 1
        self.must.add(f"word{self.serial}")
        return f"word{self.serial}"

    def sync(self) -> None:
        self.memory.files.sync(ask=lambda question, lines: True)

    def agent(self) -> None:
        names = [task.name for task in self.memory.tasks()]
        if self.chance.random() < 0.5 or not names:
            self.memory.task(f"A{self.serial}", description=self.word())
        else:
            name = self.chance.choice(names)
            description = self.memory.task(name).info.description
            self.memory.task(name, description=f"{description} {self.word()}")

    def person(self) -> None:
        document = json.loads(self.path.read_text("utf-8"))
        tasks = document["tasks"]
        deed = self.chance.choice(("add", "add", "change", "more", "note", "order"))
        if deed == "add":
            tasks.insert(self.chance.randint(0, len(tasks)), {"description": self.word(), "mine": self.serial})
        elif tasks and deed == "change":
            chosen = self.chance.choice(tasks)
            chosen["priority"] = self.chance.randint(0, 9)
            chosen["description"] = f"{chosen['description']} {self.word()}"
        elif tasks and deed == "more":
            self.chance.choice(tasks).setdefault("acceptance_criteria", []).append(self.word())
        elif deed == "note":
            document["note"] = self.serial
        else:
            self.chance.shuffle(tasks)
        self.path.write_text(json.dumps(document), "utf-8")

    def check(self) -> None:
        self.sync()
        written = self.path.read_bytes()
        self.sync()
        assert self.path.read_bytes() == written, "two syncs in a row change nothing"
        said = " ".join(
            " ".join((task.description, *task.acceptance_criteria)) for task in self.memory.tasks(archived=True)
        ).split()
        assert self.must <= set(said), f"lost: {self.must - set(said)}"


@pytest.mark.parametrize("seed", range(WALKS))
def test_no_edit_of_a_task_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    walk = Tasks(tmp_path, seed)
    for _ in range(STEPS):
        for _ in range(walk.chance.randint(1, 4)):
            walk.chance.choice((walk.agent, walk.person))()
        if walk.chance.random() < 0.4:
            where = walk.chance.choice(("_save", "_draft", "_put", "write_draft", "sync_folder"))
            with monkeypatch.context() as patched, suppress(Cut):
                patched.setattr(views, where, lambda *_, **__: (_ for _ in ()).throw(Cut()))
                walk.sync()
            walk.memory.close()
            walk.memory = walk.open()
        if walk.chance.random() < 0.5:
            walk.check()
    walk.check()
    walk.memory.close()
