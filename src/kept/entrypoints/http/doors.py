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
from kept.entrypoints.http.keys import OWNER, Key
from kept.errors import Busy, InvalidInput, KeptError, NotAllowed, NotFound
from kept.memory import Kept
from kept.memory.opening import open as open_memory
from kept.memory.opening import open_projects
from kept.memory.receipts import Explained, explain_session
from kept.model import GLOBAL, Actor, replace
from kept.ports import Storage
from kept.projects.registry import Project
from kept.projects.spaces import Spaces

MOST_OPEN = 32
REMEMBERED_S = 2.0  # how long a found project is not looked up again, unless the registry changes
HERE = "here"
log = logging.getLogger("kept.http")
_GLOBAL = re.compile(r"\bg\d+\b")  # the ref of a global memory
_GLOBAL_MARK = re.compile(r"\[id:\s*g\d+\]")  # as a text for an agent names it


class ProjectOnly:
    """The spaces of an opened project without the global one."""

    def __init__(self, spaces: Spaces) -> None:
        self._spaces = spaces

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spaces, name)

    def shared(self) -> None:
        """There is none."""

    def hidden(self) -> Storage | None:
        """The global space."""
        return self._spaces.shared()

    def ensure_shared(self) -> Storage:
        """Raises NotAllowed."""
        raise NotAllowed(
            "Global memory belongs to the person who runs this server.",
            hint="Store it in the project, or ask for a token of an admin.",
        )

    def files(self) -> list[tuple[str, FilePath]]:
        """The files of the project."""
        return [(space, path) for space, path in self._spaces.files() if space != GLOBAL]


class Doors:
    """The memories that are open, by project and key. `here` is the project in which the server was started."""

    def __init__(self, home: str | None, here: str | None, opener: Callable[..., Kept] = open_memory) -> None:
        self._home = home
        self._here = here
        self._opener = opener
        self._open: OrderedDict[tuple[Project, Key], Kept] = OrderedDict()
        self._found: dict[tuple[str, Key], tuple[Project, object]] = {}
        self._guard = threading.Lock()

    def projects(self, key: Key) -> list[Project]:
        """The projects that the key opens. Raises NotAllowed for the key of a skill, before anything is opened."""
        access.check_home(key.actor())
        return [one for one in open_projects(self._home).list_projects() if key.opens(one)]

    def memory(self, project: str, key: Key) -> Kept:
        """The project, opened for that key. Raises NotFound."""
        found = self.find(project, key)  # after a rename or a link it is another key of the cache, and opened again
        with self._guard:
            memory = self._open.get((found, key))
            if memory is None:
                memory = self._opener(project=found.space, home=self._home, actor=key.actor(), origin=key.origin)
                if self.find(project, key) != found:  # linked to another one while it was opened
                    memory.close()
                    raise Busy(f"The project {project!r} was changed just now.", hint="Try again.")
                self._open[found, key] = _enclosed(memory, key)
            self._open.move_to_end((found, key))
            gone = self._open.popitem(last=False)[1] if len(self._open) > MOST_OPEN else None
        if gone is not None:
            gone.close()
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
            actor = key.actor()
            with self._opener(project=project.space, home=self._home, actor=actor, origin=key.origin) as memory:
                return _enclosed(memory, key).status()
        except KeptError as error:
            log.warning("The status of project %s cannot be read: %s", project.id, type(error).__name__)
            return None

    def for_agent(self, key: Key, agent: str, confirm: Callable[[str], bool] | None) -> Kept:
        """The project in which the server was started, opened for an agent with this key. Raises NotFound.

        An agent is a project's agent, also with the key of an admin; with the key of a skill it is a skill.
        """
        space = self.find(HERE, key).space
        actor = Actor(role="project" if key.role == "admin" else key.role, name=agent)
        memory = _enclosed(self._opener(project=space, home=self._home, actor=actor, confirm=confirm), key)
        if key.name != OWNER and memory.context.person is None:
            memory.context.actor = replace(memory.context.actor, name=key.name)
        return memory

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

    def _find(self, project: str, key: Key, here: Project | None) -> Project:
        opened = self.projects(key)
        found = [one for one in opened if one.id == (project if here is None else here.id)]
        found = found or [one for one in opened if here is None and one.name == project]
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


def _enclosed(memory: Kept, key: Key) -> Kept:
    """The memory, closed to what its key does not open, and signed by the holder of the key."""
    if key.name != OWNER and memory.context.person is not None:
        memory.context.person = key.name  # a database names a person: not the one who runs the server
    if key.role != "admin" and not key.is_owner:
        if key.role == "project":
            space = memory.context.spaces.ensure_project().space
            memory.context.actor = replace(memory.context.actor, role="project", project=space)
        memory.context.spaces = ProjectOnly(memory.context.spaces)
    return memory


def shown_to(key: Key, given: Explained) -> Explained:
    """What was asked and given, as this key may see it: only an admin sees what came from global memory.

    Without its global memories a receipt has no numbers that they shaped, and no words but those of the question and of
    the hits that are left.
    """
    if key.role == "admin" or key.is_owner:
        return given
    hits, misses, left_out = (_of_project(lines) for lines in (given.hits, given.misses, given.left_out))
    sections = tuple(dict(one, entries=_of_project(one.get("entries", ()))) for one in given.sections)
    pinned = tuple(ref for ref in given.pinned if not _GLOBAL.fullmatch(ref))
    known = {word for line in (*hits, *misses) for word in line.get("matched") or {}}
    query = given.question.query.lower()
    kept = replace(
        given,
        hits=hits,
        misses=misses,
        left_out=left_out,
        sections=sections,
        pinned=pinned,
        words=tuple(word for word in given.words if word in known or word in query),
    )
    if kept == given and not _GLOBAL_MARK.search(given.block):
        return given
    block = "Not shown: global memory of the person who runs this server was in it." if given.block else ""
    return replace(kept, block=block, confidence=None, sections=tuple(map(_uncounted, sections)))


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


def told(memory: Kept, key: Key, session: str | None, *, limit: int) -> list[Explained]:
    """What a session was given without asking, newest first, as this key may see it; None: everything noted."""
    return [shown_to(key, one) for one in explain_session(session, memory.context.readable(), limit=limit)]


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
    return doors.memory(project, key_of(request))


Opened = Annotated[Kept, Depends(memory_of)]
Asking = Annotated[Key, Depends(key_of)]
