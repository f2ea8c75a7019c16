"""Every error that Kept raises on purpose.

    KeptError
    ├── NotFound          there is no memory, project, event or session of that name
    ├── NotAllowed        the actor may not do it, a person must agree, or it can't be undone
    │   └── MovedAway     the space was moved to another place, and is written there only
    ├── InvalidInput      the value can't be stored or searched; nothing was changed
    ├── SettingsError     a setting is unknown, malformed or out of range
    └── StorageError      the store failed
        ├── Busy          another process holds the store for longer than we wait
        ├── Corrupt       the file is damaged
        └── SchemaTooNew  the file was written by a newer version of Kept

A message says what happened, with the value; why; and what to do. The last part is `hint`, so that
a surface can show it on its own line. Messages never quote a memory: they name its ref. They do quote values that were
given, and one of these may be a key in the wrong place: `clean_messages_with` brings the rule that takes it out.
"""

from collections.abc import Callable

_clean: Callable[[str], str] = str


def clean_messages_with(rule: Callable[[str], str]) -> None:
    """Send every message through this rule from now on. Opening a memory does it; nouns know no rule about secrets."""
    global _clean
    _clean = rule


def expect(is_right: bool, name: str, wanted: str, given: object, *, hint: str = "") -> None:
    """Raise InvalidInput for an argument of another type than the one that is wanted."""
    if not is_right:
        raise InvalidInput(f"{name} must be {wanted}, not {type(given).__name__}.", hint=hint)


class KeptError(Exception):
    """The root: `except kept.KeptError` catches everything that Kept raises on purpose."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = _clean(message)
        self.hint = _clean(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class NotFound(KeptError):
    """There is nothing with that ref, name or id."""


class NotAllowed(KeptError):
    """The actor may not do this, or a person must agree first."""


class MovedAway(NotAllowed):
    """The space was moved to another place (`to`), and is written there only."""

    space = to = ""


class InvalidInput(KeptError):
    """The value can't be stored or searched. Nothing was changed."""


class SettingsError(KeptError):
    """A setting is unknown, malformed or out of range."""


class StorageError(KeptError):
    """The store failed. Nothing was half-written. `is_away`: its server cannot be reached, so trying later may help."""

    is_away = False


class Busy(StorageError):
    """Another process holds the store for longer than we wait."""


class Corrupt(StorageError):
    """The file is damaged. Nothing was repaired or deleted automatically."""


class SchemaTooNew(StorageError):
    """The file was written by a newer Kept than this one."""


def not_installed(message: str, extra: str) -> SettingsError:
    """Make the error for an optional package that is missing; the hint installs it."""
    from kept.distribution import install_line  # a prompt never gets here

    return SettingsError(message, hint=f"Install it: {install_line(extra)}")
