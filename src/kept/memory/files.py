"""Files around the store (`memory.files`): those that people edit, and the project's own, where items come from."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kept.errors import InvalidInput, KeptError
from kept.memory import views
from kept.memory.context import Context, Memories
from kept.memory.views import Synced
from kept.model import Memory
from kept.projects.files import shown

if TYPE_CHECKING:
    from kept.memory.layout import Layout
    from kept.memory.library import Extraction


class ViewStatus(Struct, frozen=True, kw_only=True):
    """One file: where it is, whether it exists, and whether it has edits that were not taken in yet."""

    name: str
    path: str
    space: str
    exists: bool
    is_edited: bool
    is_shared: bool
    problem: str = ""


def sync(context: Context, ask: Callable[[str, Sequence[str]], bool] | None = None) -> list[Synced]:
    """Take in what people edited, and write every file as it should be.

    `ask(question, lines)` decides about edits that need a person: many lines gone at once, and every edit of a
    file in a repository. Without it, the first wait, and the second become candidates of unknown trust. Raises
    what stands in the way, such as a symbolic link.
    """
    from kept.memory.erase import finish_files

    finish_files(context)
    found = list(views.places(context))
    if not found:
        raise InvalidInput(
            "There are no files beside this store.", hint="Open a project of the home: kept.open(project=…)."
        )
    return [views.sync(context, place, views.Terms(ask=ask, is_asked_for=True)) for place in found]


def extract(
    context: Context,
    paths: Sequence[Path | str] = (),
    *,
    sources: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> "Extraction":
    """Take items out of the project's files, or of those below `paths`: decisions, tasks, notes, claims, entities.

    With `sources`, the files also become searchable as a whole, in pieces (scope `sources`). Only what changed
    since the last time is read; what was taken from deleted files expires.
    """
    from kept.memory.library import extract

    return extract(context, paths, sources=sources, progress=progress)


def items(context: Context, *, type: str | None = None, source: str | None = None, limit: int = 1_000) -> Memories:
    """List items by file and line: of one type (entity, claim, task, decision, note), of one file or folder."""
    from kept.memory.library import list_items

    return list_items(context, type=type, source=source, limit=limit)


def write_brain(context: Context, folder: Path | str) -> "Layout":
    """Write the memory of this project in Brain's layout, by agent, into a new folder."""
    from kept.memory.layout import write_layout

    return write_layout(context, Path(folder))


def list_views(context: Context) -> list[ViewStatus]:
    """Where each file is, and whether edits wait in it."""
    found = []
    for place in views.places(context):
        problem, exists, is_edited = "", False, False
        try:
            exists = views.read(place).text is not None
            is_edited = views.is_edited(context, place)
        except KeptError as error:
            problem = error.message
        found.append(
            ViewStatus(
                name=place.name,
                path=shown(place.path),
                space=place.storage.space,
                exists=exists,
                is_edited=is_edited,
                is_shared=place.is_shared,
                problem=problem,
            )
        )
    return found


def merge_texts(base: str, ours: str, theirs: str) -> tuple[str, list[str]]:
    """Join two versions of a MEMORY.md that have a common ancestor; and what both sides had changed."""
    from kept.exchange.memory_md_merge import merge

    return merge(base, ours, theirs)


def item_document(memory: Memory) -> dict[str, Any]:
    """An item in the form of Brain's items.json."""
    from kept.memory.library import as_document

    return as_document(memory)
