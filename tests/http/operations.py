"""Every operation of the OpenAPI document, with arguments that it accepts.

Tests of rights and of renames walk these: an operation with a wrong argument is refused before anything is looked up,
so it would prove nothing. A new verb needs a line in `ARGUMENTS`; `test_rights` asks that every line is accepted.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import kept
from kept.model import Actor
from tests.http.conftest import Server

_numbers = itertools.count(1)
# By the id of the operation: what to put into the address, the query or the body.
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "remember": {"content": "Planted by a key number {n}."},
    "recall": {"query": "deploy Fridays diary canary"},
    "why": {"receipt": "{receipt}"},
    "replay": {"receipt": "{receipt}"},
    "reinforce": {"ref": "{ref}"},
    "demote": {"ref": "{ref}"},
    "revise": {"ref": "{ref}", "content": "Planted by a revision number {n}."},
    "pin": {"ref": "{ref}"},
    "unpin": {"ref": "{ref}"},
    "forget": {"ref": "{ref_to_forget}"},
    "restore": {"ref": "{forgotten}"},
    "promote": {"ref": "{ref_to_promote}", "to": "global"},
    "undo": {},
    "briefing": {"prompt": "deploy Fridays diary canary", "shares": {"project": 3, "global": 1}, "session": "talk"},
    "share": {"to": "writer", "action": "write", "query": "deploy Fridays diary canary"},
    "get": {"ref": "{ref}"},
    "list": {},
    "find": {"words": "canary"},
    "history": {},
    "history.memory": {"ref": "{ref}"},
    "status": {},
    "erase": {"refs": ["{ref_to_erase}"]},
    "erase.memory": {"ref": "{ref_to_delete}"},
    "conflicts": {"resolved": True},
    "resolve": {"conflict": "{conflict}", "keep": "{rival}"},
    "reviews.list": {},
    "reviews.apply": {"decisions": ["forget:{ref_to_review}"]},
    "reviews.propose": {"content": "Planted by a proposal number {n}."},
    "proposals": {},
    "judge": {"list": "{list}", "keep": [1]},
    "aliases.add": {"word": "planted", "expands_to": ["canary"]},
    "aliases.remove": {"word": "{word}"},
    "aliases.list": {},
    "pauses.pause": {"session": "talk"},
    "pauses.resume": {"session": "talk"},
    "pauses.status": {},
    "guard": {"ref": "{ref}", "mode": "tell"},
    "store.allow": {"value": "AKIA0000PLANTED0000{n}"},
    "store.configure": {"setting": "judge", "value": "off"},
    "sessions": {},
    "session": {"id": "planted-{n}"},
    "session.append": {"session": "talk", "role": "user", "content": "Planted by a message number {n}."},
    "session.messages": {"session": "talk"},
    "session.window": {"session": "talk"},
    "session.findings": {"session": "talk"},
    "session.record": {"session": "talk"},
    "session.flush": {"session": "talk"},
    "session.compact": {"session": "talk", "force": True},
    "session.finish": {"session": "{session}"},
    "session.fork": {"session": "talk"},
    "session.given": {"session": "talk"},
    "tasks": {},
    "task": {"description": "Planted by a task."},
    "task.show": {"task": "{task}"},
    "task.set_state": {"task": "{task}", "state": "active"},
    "task.add_reasoning": {"task": "{task}", "text": "Planted by a thought number {n}.", "stage": "exploration"},
    "task.add_tool_output": {"task": "{task}", "tool": "ls", "output": "planted {n}", "stage": "exploration"},
    "task.memories": {"task": "{task}"},
    "task.clear": {"task": "{task}"},
    "narratives": {},
    "narrative.begin": {"id": "story"},
    "narrative.memories": {"id": "story"},
    "narrative.end": {},
    "knowledge.add_failure": {"failure": "Error: planted {n}", "lesson": "Plant nothing."},
    "knowledge.failures": {},
    "files.sync": {},
    "files.status": {},
    "files.items": {},
    "store.export": {},
    "upkeep": {"dry_run": True},
    "store.finish_sessions": {},
    "store.pack_sessions": {},
    "store.scan": {},
    "store.doctor": {},
    "vectors.off": {},
    "vectors.status": {},
    "slash": {"line": "/memory search deploy Fridays diary canary"},
    "events": {},
}


class Operation(NamedTuple):
    """One operation: `path` has the place of the project, and the query."""

    name: str
    method: str
    path: str
    body: Any


def operations(server: Server, things: Mapping[str, str] | None = None) -> Iterator[Operation]:
    """Return every operation about a project. `things`: values for the arguments; by default names of nothing."""
    for path, methods in server.ask("GET", "/api/v1/openapi.json").json["paths"].items():
        for method, operation in methods.items() if "{project}" in path else ():
            name = "events" if path.endswith("/events") else operation["operationId"]
            yield _filled(name, method.upper(), path, operation, _Things(things or {}))


class _Things(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return str(next(_numbers)) if name == "n" else "1"


def _filled(name: str, method: str, path: str, operation: dict[str, Any], things: _Things) -> Operation:
    given = {one: _with(value, things) for one, value in ARGUMENTS[name].items()}
    where = {one["name"]: one["in"] for one in operation.get("parameters", ())}
    for one in [one for one in given if where.get(one) == "path"]:
        path = path.replace(f"{{{one}}}", quote(str(given.pop(one))))
    query = {
        one: json.dumps(value) if isinstance(value, dict | bool) else value
        for one, value in given.items()
        if where.get(one) == "query"
    }
    body = {one: value for one, value in given.items() if where.get(one) is None}
    assert path.count("{") == 1, f"{name} lacks an argument: {path}"
    return Operation(name, method, f"{path}?{urlencode(query)}" if query else path, body or None)


def _with(value: Any, things: _Things) -> Any:
    if isinstance(value, list):
        return [_with(one, things) for one in value]
    return value.format_map(things) if isinstance(value, str) else value


def furnish(server: Server) -> dict[str, str]:
    """Put one of everything into the served project, for operations that need it; return what it is called."""
    n = next(_numbers)
    opened = kept.open(project=server.project, home=server.home, actor=Actor(role="admin", name="user"))
    with opened as memory:
        rooms = ("", "_to_forget", "_to_erase", "_to_delete", "_to_review", "_to_promote")
        things = {f"ref{room}": str(memory.remember(f"Room {n}{room} has a furnace.").ref) for room in rooms}
        gone = str(memory.remember(f"The chimney {n} was swept in year {n}.").ref)
        memory.forget(gone)
        memory.remember(f"The port of gateway {n} is {8000 + n}.")
        rival = memory.remember(f"The port of gateway {n} is {9000 + n}.")
        memory.recall("furnace")
        for session in ("talk", f"talk-{n}"):
            memory.session(session, agent="claude").append("user", f"We decided to paint wall {n} green.")
        judged = memory.session(f"judged-{n}", agent="claude")
        judged.append("user", f"Retries of `job_{n}` are limited, the carrier bans us otherwise.")
        judged.finish()
        memory.aliases.add(f"wort{n}", "word")
        memory.narrative("story").begin()
        return {
            **things,
            "forgotten": gone,
            "conflict": rival.conflicts[0].ref,
            "rival": str(rival.ref),
            "receipt": str(memory.why().receipt),
            "session": f"talk-{n}",
            "list": memory.proposals(f"judged-{n}").code,
            "task": memory.task(description=f"Paint wall {n}").id,
            "word": f"wort{n}",
        }
