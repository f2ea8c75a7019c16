"""Every error that Kept raises on purpose.

    KeptError
    ├── NotFound          no memory, project, event or session answers to that name
    ├── NotAllowed        the actor may not, a person has to say yes, or it cannot be undone
    ├── InvalidInput      a value that can't be stored or asked for; nothing was changed
    ├── SettingsError     a setting is unknown, malformed or out of range
    └── StorageError      the store could not do its work
        ├── Busy          another process holds the store longer than we wait
        ├── Corrupt       what is on disk is not what was written
        └── SchemaTooNew  the file belongs to a newer version of Kept

A message says what happened, with the value; why; and what to do. `hint` is the
"what to do" apart, for surfaces that show it on a line of its own. Messages never
quote the content of a memory: they name its ref.
"""


class KeptError(Exception):
    """The root: `except kept.KeptError` catches everything that Kept raises on purpose."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class NotFound(KeptError):
    """Nothing answers to that ref, name or id."""


class NotAllowed(KeptError):
    """The actor may not do this, or a person has to agree first."""


class InvalidInput(KeptError):
    """The value cannot be stored or asked for. Nothing was changed."""


class SettingsError(KeptError):
    """A setting is unknown, malformed or out of range."""


class StorageError(KeptError):
    """The store could not do its work. Nothing was half-written."""


class Busy(StorageError):
    """Another process has held the store for longer than we wait."""


class Corrupt(StorageError):
    """What is on disk is not what was written. Nothing was repaired or deleted by itself."""


class SchemaTooNew(StorageError):
    """The file was written by a newer Kept than this one."""
