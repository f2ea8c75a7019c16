"""The inner context of an opened memory, as far as hooks need it.

Rule: besides `startup`, which has one use because a prompt is not to load this module, no other module of this package
uses `memory.context`.
"""

from kept.memory import Kept, views
from kept.memory.sessions import finish_silent


def is_off(memory: Kept, session: str) -> bool:
    """Return True if automatic capture is off in the project or in this session."""
    return memory.context.is_off(session)


def import_edits(memory: Kept) -> None:
    """Import the changes that people made to the files of the project's memory."""
    views.take_edits(memory.context)


def finish_silent_sessions(memory: Kept) -> None:
    """Finish the sessions that have had no message for a while."""
    finish_silent(memory.context)
