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
from kept.memory.opening import open
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
    Session,
    Signal,
    Source,
    Task,
)
from kept.settings import Settings
from kept.writing.redact import redact

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
    "NotAllowed",
    "NotFound",
    "Recalled",
    "Receipt",
    "SchemaTooNew",
    "Session",
    "Settings",
    "SettingsError",
    "Signal",
    "Source",
    "StorageError",
    "Task",
    "open",
    "redact",
]
