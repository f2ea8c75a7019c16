"""Which project a request is about, opened for the key that asks.

Opening costs more than most verbs, so an opened memory is kept for the next request of the same key. Rules: a project
that the key does not open does not exist for it, in the same words as one that does not exist at all; names of projects
end here and everything below has ids, because a name can be given to another project at any time; and the global memory
in this home is that of the person who runs the server, so only an admin sees it.
"""

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from kept import access
from kept.entrypoints.http.keys import OWNER, Key, is_in_database
from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, NotFound
from kept.memory import Kept
from kept.memory.opening import Project, open_projects
from kept.memory.opening import open as open_memory
from kept.memory.receipts import RecallReceipt
from kept.model import Actor, replace

MOST_OPEN = 32
REMEMBERED_S = 2.0  # how long a found project is not looked up again, unless the registry changes
HERE = "here"
log = logging.getLogger("kept.http")
_GLOBAL = re.compile(r"\bg\d+\b")  # the ref of a global memory
_GLOBAL_MARK = re.compile(r"\[id:\s*g\d+\]")  # as a text for an agent names it


class Doors:
    """The memories that are open, by project and key. `here` is the project in which the server was started."""

    def __init__(self, home: str | None, here: str | None, opener: Callable[..., Kept] = open_memory) -> None:
        self._home = home
        self._here = here
        self._opener = opener
        self._open: OrderedDict[tuple[Project, Key], Kept] = OrderedDict()
        self._found: dict[tuple[str, Key], tuple[Project, object]] = {}
        self._listed: tuple[list[Project], object] | None = None
        self._guard = threading.Lock()

    def projects(self, key: Key) -> list[Project]:
        """The projects that the key opens. Raises NotAllowed for the key of a skill, before anything is opened."""
        access.check_home(key.actor())
        projects = open_projects(self._home)
        state = (_state_of(projects.home.registry), time.monotonic() // REMEMBERED_S)
        if self._listed is None or self._listed[1] != state:
            self._listed = (projects.list_projects(), state)
        return [one for one in self._listed[0] if key.opens(one)]

    def memory(self, project: str, key: Key) -> Kept:
        """The project, opened for that key. Raises NotFound."""
        found = self.find(project, key)  # after a rename or a link it is another key of the cache, and opened again
        with self._guard:
            memory = self._open.get((found, key))
            if memory is None:
                memory = self._opened(found, key, actor=key.actor(), origin=key.origin)
                if self.find(project, key) != found:  # linked to another one while it was opened
                    memory.close()
                    raise Busy(f"The project {project!r} was changed just now.", hint="Try again.")
                self._open[found, key] = memory
            self._open.move_to_end((found, key))
            gone = self._open.popitem(last=False)[1] if len(self._open) > MOST_OPEN else None
        if gone is not None:
            gone.close()
        return memory

    def add_project(self, name: str, key: Key) -> Project:
        """Make a project. Raises NotAllowed unless the key is one of an admin for all projects."""
        if key.role != "admin" or key.projects:
            raise NotAllowed(
                f"The key of {key.name} may not make projects.",
                hint="Use a token of an admin for all projects: `kept token create NAME --admin`.",
            )
        return open_projects(self._home).add(name)

    def up_to_date(self, project: str, key: Key) -> Kept:
        """As `memory`, with the edits of MEMORY.md and tasks.json that people made since.

        They are files of the person who runs the server, so no other key signs them in a database.
        """
        memory = self.memory(project, key)
        if key.name == OWNER or not is_in_database(self.find(project, key)):
            memory.files.take_edits()
        return memory

    def glance(self, project: Project, key: Key) -> dict[str, Any] | None:
        """Return the status of a project; None if it is gone or cannot be opened. A project that is not open is closed
        again: a look at all projects must not close those that other keys use.
        """
        try:
            with self._guard:
                is_open = (project, key) in self._open
            if is_open:
                return self.memory(project.id, key).status()
            with self._opened(project, key, actor=key.actor(), origin=key.origin) as memory:
                return memory.status()
        except KeptError as error:
            log.warning("The status of project %s cannot be read: %s", project.id, type(error).__name__)
            return None

    def for_agent(self, key: Key, agent: str, confirm: Callable[[str], bool] | None) -> Kept:
        """The project in which the server was started, opened for an agent with this key. Raises NotFound.

        An agent is a project's agent, also with the key of an admin; with the key of a skill it is a skill.
        """
        actor = Actor(role="project" if key.role == "admin" else key.role, name=agent)
        return self._opened(self.find(HERE, key), key, actor=actor, confirm=confirm, hosted=True)

    def close(self) -> None:
        """Close everything that is open."""
        with self._guard:
            for memory in self._open.values():
                memory.close()
            self._open.clear()

    def find(self, project: str, key: Key) -> Project:
        """The project with this exact name or this id, or `here`. Raises NotFound when the key does not open it."""
        projects = open_projects(self._home)
        state = (_state_of(projects.home.registry), time.monotonic() // REMEMBERED_S)
        if (known := self._found.get((project, key))) is not None and known[1] == state:
            return known[0]
        found = self._find(project, key, projects.find(self._here) if project == HERE else None)
        self._found[project, key] = (found, state)
        return found

    def word_for(self, project: Project, key: Key) -> str:
        """The word for a project in an address: its name, or its id where the name could mean another one."""
        same = [one for one in self.projects(key) if one.name == project.name]
        return project.id if len(same) > 1 or project.name == HERE else project.name

    def without_paths(self, key: Key, value: Any) -> Any:
        """Return the text, or the value with its texts, without the path of the home unless the owner asks."""
        if key.is_owner:
            return value
        if isinstance(value, str):
            return value.replace(str(open_projects(self._home).home.root), "$KEPT_HOME")
        if isinstance(value, Mapping):
            return {name: self.without_paths(key, one) for name, one in value.items()}
        return [self.without_paths(key, one) for one in value] if isinstance(value, list | tuple) else value

    def _opened(self, project: Project, key: Key, **how: Any) -> Kept:
        """Open a project, closed to what the key does not open, and signed by the holder of the key."""
        return self._opener(
            project=project.space,
            home=self._home,
            person=None if key.name == OWNER else key.name,
            without_global=not sees_global(key),
            **how,
        )

    def _find(self, project: str, key: Key, here: Project | None) -> Project:
        opened = self.projects(key)
        wanted = project if here is None else here.id
        found = [one for one in opened if one.id == wanted]
        if not found and here is None:
            found = [one for one in opened if one.name == project]
        if not found:
            raise NotFound(f"There is no project {project!r} here.", hint="GET /api/v1/projects lists them.")
        if len(found) > 1:
            ids = ", ".join(one.id for one in found)
            raise InvalidInput(f"{len(found)} projects have the name {project!r}: {ids}.", hint="Give the id instead.")
        return found[0]


def _state_of(file: FilePath) -> tuple[int, int] | None:
    """A value that differs after every change of a file that is replaced as a whole."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def sees_global(key: Key) -> bool:
    """Return True if the key opens global memory, which is that of the person who runs the server."""
    return key.role == "admin" or key.is_owner


def shown_to(key: Key, given: RecallReceipt) -> RecallReceipt:
    """Return what was asked and given, as this key may see it: only an admin sees what came from global memory.

    Without its global memories a receipt has no numbers that they shaped, and no words but those of the question and of
    the hits that are left.
    """
    if sees_global(key):
        return given
    kept = _without_global(given)
    if kept == given and not _GLOBAL_MARK.search(given.block):
        return given
    block = "Not shown: global memory of the person who runs this server was in it." if given.block else ""
    return replace(kept, block=block, confidence=None, sections=tuple(map(_uncounted, kept.sections)))


def refs_shown_to(key: Key, refs: Iterable[str]) -> list[str]:
    """Return the refs that this key may know of."""
    return [ref for ref in refs if sees_global(key) or not _GLOBAL.fullmatch(ref)]


def _without_global(given: RecallReceipt) -> RecallReceipt:
    hits, misses = _of_project(given.hits), _of_project(given.misses)
    known = {word for line in (*hits, *misses) for word in line.get("matched") or {}}
    query = given.question.query.lower()
    return replace(
        given,
        hits=hits,
        misses=misses,
        left_out=_of_project(given.left_out),
        sections=tuple(dict(one, entries=_of_project(one.get("entries", ()))) for one in given.sections),
        pinned=tuple(ref for ref in given.pinned if not _GLOBAL.fullmatch(ref)),
        words=tuple(word for word in given.words if word in known or word in query),
    )


def _of_project(lines: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The lines of a receipt that are about memories of the project; their reasons name no others."""
    return tuple(
        {name: _GLOBAL.sub("a global memory", part) if isinstance(part, str) else part for name, part in line.items()}
        for line in lines
        if not _GLOBAL.fullmatch(str(line.get("ref", "")))
    )


def _uncounted(section: Mapping[str, Any]) -> dict[str, Any]:
    """The section without its tokens, which say how long the removed memories are."""
    return {name: value for name, value in section.items() if name != "tokens"}


def told(memory: Kept, key: Key, session: str | None, *, limit: int) -> list[RecallReceipt]:
    """What a session was given without asking, newest first, as this key may see it; None: everything noted."""
    return [shown_to(key, one) for one in memory.look().receipts(session, limit=limit)]


def key_of(request: Request) -> Key:
    """Who asks; the guard has found out."""
    key: Key = request.state.key
    return key


def memory_of(
    request: Request,
    project: Annotated[
        str, Path(description="A name or an id; `here` is where the server was started.", max_length=200)
    ],
) -> Kept:
    """The project of the path, opened for the key that asks."""
    doors: Doors = request.app.state.doors
    return doors.up_to_date(project, key_of(request))


Opened = Annotated[Kept, Depends(memory_of)]
Asking = Annotated[Key, Depends(key_of)]
