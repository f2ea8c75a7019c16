"""Kept: a memory for AI agents that lasts.

import kept

with kept.open(project="web-app") as memory:
    memory.remember("Never edit the auth middleware directly", kind="warning", tags=["auth"])
"""

from kept.errors import (
    Busy,
    Corrupt,
    InvalidInput,
    KeptError,
    NotAllowed,
    NotFound,
    SchemaTooNew,
    SettingsError,
    StorageError,
)
from kept.memory import Kept
from kept.model import Actor, Alias, Conflict, Draft, Event, Memory, Receipt, Signal, Source
from kept.opening import open
from kept.settings import Settings
from kept.writing.redact import redact

__all__ = [
    "Actor",
    "Alias",
    "Busy",
    "Conflict",
    "Corrupt",
    "Draft",
    "Event",
    "InvalidInput",
    "Kept",
    "KeptError",
    "Memory",
    "NotAllowed",
    "NotFound",
    "Receipt",
    "SchemaTooNew",
    "Settings",
    "SettingsError",
    "Signal",
    "Source",
    "StorageError",
    "open",
    "redact",
]
