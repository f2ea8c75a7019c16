"""Open the memory at an event: the modules that a hook imports late, and how they are made cheaper.

An agent starts this program at every prompt and waits for it, so each module counts. Modules are imported in stages
(Python alone has 33 modules and takes 10 ms of CPU, on a machine where a prompt takes 80):

    stage    modules    CPU  imported by              for
    program     + 11   2 ms  the package              every event; enough for the end of a session
    call         + 4   1 ms  events, startup          tool calls; enough for one that no memory concerns
    memory      + 75  25 ms  this module, at its top  events with an answer, and the end of a turn
    answer      + 35  10 ms  EventMemory              the start of a session, a prompt, a call, an error
    judge       + 69  29 ms  EventMemory              the end of a turn, if the setting `judge` is `stop`

`events` imports this module inside a function, because `json`, `re` and `threading` are part of the third stage: a tool
call does without them.

msgspec and pathlib load modules that a hook never uses: ids and decimals as types to be checked for, schemas, links.
They take 7 ms, a third of a bare Python. While the two are imported, empty stand-ins take the places of these modules,
and are removed afterwards: a later import of one of them gets the real module.
Rule: a hook behaves as any other process. If the stand-ins do not fit a version of these libraries, it goes without.
"""

import os
import sys

from kept.entrypoints.hook import work
from kept.entrypoints.hook.agents import AGENTS, field, is_attended, project_of, session_of
from kept.entrypoints.hook.places import kept_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from kept.anchors import ToolCall
    from kept.memory.deliver import Listener

_UNQUOTED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/"


def _quote_from_bytes(path: bytes) -> str:
    """Quote a path for a link, as `urllib.parse.quote_from_bytes` does. pathlib keeps this one."""
    return "".join(chr(byte) if byte in _UNQUOTED else f"%{byte:02X}" for byte in path)


_STAND_INS: "dict[str, dict[str, Any]]" = {
    # msgspec asks of every value whether it is one.
    "uuid": {"UUID": type("UUID", (), {}), "SafeUUID": type("SafeUUID", (), {"unknown": None})},
    "decimal": {"Decimal": type("Decimal", (), {})},
    "msgspec.inspect": {},
    "msgspec._json_schema": {"schema": None, "schema_components": None},
    "msgspec.toml": {},
    "msgspec.yaml": {},
    "urllib.parse": {"quote_from_bytes": _quote_from_bytes},
}


class _StandIns:
    """Stand-ins for the modules that msgspec and pathlib import without need, for the time of a `with` block."""

    def __init__(self) -> None:
        self._placed: list[str] = []

    def __enter__(self) -> None:
        if "msgspec" in sys.modules:
            return
        if "typing_extensions" not in sys.modules:
            # msgspec takes types from here if it can, which costs 12 ms and changes nothing for a hook.
            sys.modules["typing_extensions"] = None  # type: ignore[assignment]
            self._placed.append("typing_extensions")
        for name in _STAND_INS.keys() - sys.modules.keys():
            sys.modules[name] = stand_in = type(sys)(name)
            vars(stand_in).update(_STAND_INS[name])
            self._placed.append(name)

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        """Remove the stand-ins. If the libraries could not be imported with them, let the next import try again."""
        is_misfit = isinstance(error, ImportError | AttributeError)
        if is_misfit:
            for name in [name for name in sys.modules if name.partition(".")[0] in ("msgspec", "pathlib")]:
                del sys.modules[name]
        for name in self._placed:
            sys.modules.pop(name, None)
        return is_misfit


with _StandIns():
    import pathlib  # noqa: F401

    import msgspec  # noqa: F401

# Below the stand-ins, because each of these imports msgspec.
from kept.errors import NotAllowed  # noqa: E402
from kept.memory.opening import open as open_memory  # noqa: E402
from kept.memory.opening import role_in, typed  # noqa: E402
from kept.model import Actor  # noqa: E402


def _has_package(name: str) -> bool:
    """Return True if a package can be imported; importlib.util, which also says so, takes three modules more."""
    return any(finder.find_spec(name, None) is not None for finder in sys.meta_path)


class EventMemory:
    """The memory of the project that an event is about, opened for the agent. Use it in a `with` block."""

    def __init__(self, agent: str, event: str, given: "Mapping[str, Any]") -> None:
        self._agent = agent
        self._event = event
        self._given = given
        named = os.environ.get("KEPT_PROJECT")
        actor = Actor(role=role_in(os.environ), name=agent)
        project = typed(named) if named else project_of(agent, given)
        # Agents judge findings by a tool, so they are asked only where the server has its package.
        self._memory = open_memory(
            project=project, actor=actor, settings={"auto_upkeep": False}, hosted=_has_package("mcp")
        )
        self._last = self._memory.deliveries.last_told(os.environ.get("PGUSER", "")) if self.is_in_database else None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *failure: object) -> None:
        self._memory.close()

    @property
    def is_in_database(self) -> bool:
        return self._memory.is_in_database

    @property
    def asks_at_stop(self) -> bool:
        return self._memory.settings.judge == "stop"

    def text(self, kind: str, words: str, command: str = "") -> str:
        """Return the text for the model: at a start, for a prompt, for the task of a sub-agent, or for an error.

        `command` is the one that failed.
        """
        listener = self._listener()
        if listener is None:
            return ""
        deliveries = self._memory.deliveries
        if kind == "prompt":
            return deliveries.for_prompt(words, listener)
        if kind == "subagent":
            return deliveries.for_subagent(words, listener)
        if kind == "failure":
            return deliveries.for_error(words, listener, command)
        return deliveries.at_start(listener)

    def note_told(self, text: str) -> None:
        """Note the text of a database, for a time when it cannot be reached."""
        if self._last is not None:
            self._last.note(text, session_of(self._given))

    def forget_told(self, error: BaseException) -> None:
        """Remove the last text, if the role may no longer read it."""
        if self._last is not None and isinstance(error, NotAllowed):
            self._last.drop()

    def last_text(self) -> "tuple[str, str] | None":
        """Return the last text that this project's agents were told, and its date; None if this session has it."""
        last = self._last if self._memory.settings.auto_briefing else None
        found = last.text_for(session_of(self._given)) if last is not None else None
        return None if found is None else (found[0], f"{found[1]:%Y-%m-%d %H:%M} UTC")

    def said_of_call(
        self, call: "ToolCall | None", error: str, command: str, *, is_before: bool, tells: bool
    ) -> "tuple[str, str]":
        """Return the text for a tool call or its error, and the reason to refuse it; both are "" almost always."""
        listener = self._listener()
        if listener is None:
            return "", ""
        said = None
        if call is not None:
            said = self._memory.deliveries.for_action(call, listener, may_refuse=is_before, may_tell=tells)
        known = self.text("failure", error, command) if error else ""
        return "\n\n".join(filter(None, (known, said.text if said else ""))), said.refusal if said else ""

    def note_compaction(self) -> None:
        """Note that the context of the session was compacted."""
        if (listener := self._listener()) is not None:
            self._memory.deliveries.on_compaction(listener)

    def request_at_stop(self) -> str:
        """Return the request to an agent that is about to stop; "" almost always."""
        from kept.entrypoints.hook import stop  # reads transcripts; most users have it off

        listener = self._listener()
        return stop.request_for(self._memory, self._agent, listener, self._given) if listener else ""

    def _listener(self) -> "Listener | None":
        """Return the session that is told something, which for a sub-agent is its own; None if it is paused."""
        from kept.memory.deliver import Listener  # brings recall along, which the end of a turn does without

        given, session = self._given, session_of(self._given)
        own = session
        if sub_agent := field(given, "agent"):
            if self._memory.pauses.status(session):
                return None
            own = f"{session}.agent-{sub_agent}"  # as its transcript is stored
        source = given.get("source")
        return Listener(
            session=own,
            event=self._event,
            style=AGENTS[self._agent].style,
            files=work.files_of(kept_home(os.environ), session),
            is_compacted=source == "compact" or self._event == "experimental.session.compacting",
            is_resumed=source == "resume",
            is_attended=is_attended(self._agent),
        )
