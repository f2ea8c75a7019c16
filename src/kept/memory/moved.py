"""Where a project is that was moved, asked at its old place. Small, because every command asks."""

from kept.errors import MovedAway
from kept.memory.context import Context
from kept.storage.shared import MOVED, check_fence


def moved_away(context: Context) -> MovedAway | None:
    """Return the error that a write gets where the project was before a move; None where it is."""
    storage = context.spaces.project()
    if storage is None:
        return None
    with storage.reading() as reader:
        notes = reader.file_notes(MOVED)
    try:
        check_fence(storage.space, notes)
    except MovedAway as error:
        return error
    return None
