"""One view: where it is, how it was found, and the result of an edit.

The nouns that `views` shares with `memory_md` and `tasks_json`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from kept.memory.context import Context
from kept.model import Source
from kept.ports import Storage, Transaction

IN_PROJECT = "./"  # how `memory_path` begins when the file is in the project's own directory
PERSON = "user"
AGENTS_MD = "AGENTS.md"  # in the project's own directory; only its block is ours

Signature = tuple[int, int, int]
Ask = Callable[[str, Sequence[str]], bool]  # a question, and the lines it is about


class ViewPlace(Struct, frozen=True, kw_only=True):
    """Where a view is. Below `root` no symbolic link is followed. `is_shared`: others may write it, in a repository."""

    name: str
    path: Path
    root: Path
    storage: Storage
    is_shared: bool = False
    mark: str = ""  # of the home, where several share the storage

    @property
    def key(self) -> str:
        """The name of the notes about this file; another place is another file."""
        return f"{self.mark}{IN_PROJECT if self.is_shared else ''}{self.path.relative_to(self.root).as_posix()}"

    @property
    def older_key(self) -> str:
        """Return the name that Kept 0.3.0 and older gave these notes: one for all URLs of a database."""
        below = self.path.relative_to(self.root)
        return f"{self.mark}{Path(*below.parts[1:]).as_posix()}" if self.tokens_file else self.key

    @property
    def tokens_file(self) -> Path | None:
        """Return the file beside the view that has the tokens of the notes that are about it.

        None where the store is in the same home, and for a file in a repository, whose edits a person accepts.
        """
        return self.path.with_name(f".{self.path.name}.noted") if self.mark and not self.is_shared else None


class Seen(NamedTuple):
    """A file as it was found; None where there is none."""

    text: str | None
    signature: Signature | None


class SyncReport(Struct, kw_only=True):
    """What was done with one view. `waiting` says why nothing was: a person has to look at it."""

    name: str
    path: str
    is_written: bool = False
    added: list[str] = []  # refs of memories, or ids of tasks, as everywhere here
    changed: list[str] = []
    removed: list[str] = []
    notes: list[str] = []
    waiting: str = ""

    @property
    def has_edits(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class Outcome(Struct, kw_only=True):
    """What a view makes of a file: its new text, what to note about it, and before it is replaced."""

    text: str
    note: Mapping[str, Any]
    note_before: Mapping[str, Any]


class Waiting(Exception):
    """A person has to decide first. Never leaves the views."""


class FileView(Protocol):
    """One kind of view: what an edit means, and how the file should look."""

    place: ViewPlace

    def merge(self, tx: Transaction, seen: Seen, note: Mapping[str, Any], done: SyncReport) -> Outcome:
        """Take the edits of the file in, and say how it should look. Raises Waiting; then nothing is changed."""

    def note_as_written(self, text: str) -> Mapping[str, Any]:
        """Return the note about a file as if Kept had written it as it is."""


class SyncOptions(Struct, frozen=True, kw_only=True):
    """On which terms edits are taken in.

    `ask`: a person is there; None: nobody is, and many lines gone at once wait. `is_asked_for`: somebody wants the
    files to be in step now; else the edits of a shared file wait as well.
    """

    ask: Ask | None = None
    is_asked_for: bool = False


def person_source(context: Context) -> Source:
    """Return the source of a text that somebody typed into a view."""
    return Source(origin="user", agent=context.person or PERSON)
