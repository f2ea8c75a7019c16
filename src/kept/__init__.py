"""Kept: a memory for AI agents that lasts.

import kept

with kept.open(project="web-app") as memory:
    memory.remember("Never edit the auth middleware directly", kind="warning", tags=["auth"])

Rule: importing this package imports nothing else. A public name is fetched from its module when it is first used,
because programs that start often (hooks, the command line) pay for every module at each start.
"""

TYPE_CHECKING = False  # type checkers take it for true; importing it from `typing` costs 2 ms

if TYPE_CHECKING:
    from kept.errors import (
        Busy,
        Corrupt,
        InvalidInput,
        KeptError,
        MovedAway,
        NotAllowed,
        NotFound,
        SchemaTooNew,
        SettingsError,
        StorageError,
    )
    from kept.memory import Kept
    from kept.memory.narratives import Narrative
    from kept.memory.opening import open
    from kept.memory.pool import Pool
    from kept.memory.receipts import RecallReceipt
    from kept.memory.sessions import Session
    from kept.memory.tasks import Task
    from kept.model import (
        Actor,
        Alias,
        Briefing,
        Conflict,
        Draft,
        Event,
        Hit,
        Memory,
        Message,
        Recalled,
        Receipt,
        SessionRecord,
        Signal,
        Source,
        TaskRecord,
    )
    from kept.settings import Settings
    from kept.writing.redact import redact

    __version__: str
else:
    _HOMES = {
        "errors": "Busy Corrupt InvalidInput KeptError MovedAway NotAllowed NotFound SchemaTooNew SettingsError "
        "StorageError",
        "memory": "Kept",
        "memory.narratives": "Narrative",
        "memory.opening": "open",
        "memory.pool": "Pool",
        "memory.receipts": "RecallReceipt",
        "memory.sessions": "Session",
        "memory.tasks": "Task",
        "model": "Actor Alias Briefing Conflict Draft Event Hit Memory Message Recalled Receipt SessionRecord Signal "
        "Source TaskRecord",
        "settings": "Settings",
        "writing.redact": "redact",
    }

    def __getattr__(name):
        """Fetch a public name from its module, and keep it here."""
        from importlib import import_module  # a program that uses no name of ours does without it

        for module, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f"kept.{module}"), name)
                return value
        if name == "__version__":
            return import_module("kept.distribution").VERSION
        if name in ("errors", "model", "ports", "settings"):  # `kept.errors.Busy` works without an import of its own
            return import_module(f"kept.{name}")
        raise AttributeError(f"module 'kept' has no attribute {name!r}")

    def __dir__():
        return [*__all__, *(name for name in globals() if name.startswith("__"))]


del TYPE_CHECKING

__all__ = [
    "Actor",
    "Alias",
    "Briefing",
    "Busy",
    "Conflict",
    "Corrupt",
    "Draft",
    "Event",
    "Hit",
    "InvalidInput",
    "Kept",
    "KeptError",
    "Memory",
    "Message",
    "MovedAway",
    "Narrative",
    "NotAllowed",
    "NotFound",
    "Pool",
    "RecallReceipt",
    "Recalled",
    "Receipt",
    "SchemaTooNew",
    "Session",
    "SessionRecord",
    "Settings",
    "SettingsError",
    "Signal",
    "Source",
    "StorageError",
    "Task",
    "TaskRecord",
    "open",
    "redact",
]
