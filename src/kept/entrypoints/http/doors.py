"""Which project a request is about, opened for the key that asks.

Opening costs more than most verbs, so an opened memory is kept for the next request of the same key. Rule: a project
that the key does not open does not exist for it, in the same words as one that does not exist at all.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Path, Request

from kept.entrypoints.http.keys import Key
from kept.errors import NotFound
from kept.memory import Kept
from kept.memory.opening import open as open_memory
from kept.memory.opening import open_projects
from kept.model import replace
from kept.projects.registry import Project

MOST_OPEN = 32
REMEMBERED_S = 2.0  # how long a found project is not looked up again: a view asks for it several times
HERE = "here"


class Doors:
    """The memories that are open, by project and key. `here` is the project in which the server was started."""

    def __init__(self, home: str | None, here: str | None, opener: Callable[..., Kept] = open_memory) -> None:
        self._home = home
        self._here = here
        self._opener = opener
        self._open: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._names: dict[tuple[str, str], tuple[str, float]] = {}
        self._guard = threading.Lock()

    def projects(self, key: Key) -> list[Project]:
        """The projects that the key opens."""
        return [one for one in open_projects(self._home).list_projects() if key.may_open(one.name)]

    def memory(self, project: str, key: Key) -> Kept:
        """The project, opened for that key. Raises NotFound."""
        name = self.name_of(project, key)
        with self._guard:
            memory = self._open.get((name, key.name))
            if memory is None:
                actor = key.actor()
                memory = self._opener(project=name, home=self._home, actor=actor, origin=key.origin)
                if actor.role == "project":
                    space = memory.context.spaces.ensure_project().space
                    memory.context.actor = replace(actor, project=space)
                self._open[name, key.name] = memory
            self._open.move_to_end((name, key.name))
            gone = self._open.popitem(last=False)[1] if len(self._open) > MOST_OPEN else None
        if gone is not None:
            gone.close()
        return memory

    def close(self) -> None:
        """Close everything that is open."""
        with self._guard:
            for memory in self._open.values():
                memory.close()
            self._open.clear()

    def name_of(self, project: str, key: Key) -> str:
        """The name of a project, of its id, or of `here`. Raises NotFound when the key does not open it."""
        if (known := self._names.get((project, key.name))) is not None and time.monotonic() - known[1] < REMEMBERED_S:
            return known[0]
        name = self._find_name(project, key)
        self._names[project, key.name] = (name, time.monotonic())
        return name

    def _find_name(self, project: str, key: Key) -> str:
        found = open_projects(self._home).find(self._here) if project == HERE else None
        if found is None:
            found = next((one for one in self.projects(key) if project in (one.name, one.id)), None)
        if found is None or not key.may_open(found.name):
            raise NotFound(f"There is no project {project!r} here.", hint="GET /api/v1/projects lists them.")
        return found.name


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
