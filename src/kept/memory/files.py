"""Files around the store (`memory.files`): those that people edit, and the project's own, where items come from."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from kept.errors import InvalidInput, KeptError
from kept.exchange.memory_md_merge import merge as merge_texts
from kept.memory import views
from kept.memory.context import Context
from kept.memory.erase import finish_files
from kept.memory.library import as_document as item_document
from kept.memory.views import Synced
from kept.projects.files import shown

__all__ = ["ViewStatus", "item_document", "list_views", "merge_texts", "sync"]


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
    finish_files(context)
    found = list(views.places(context))
    if not found:
        raise InvalidInput(
            "There are no files beside this store.", hint="Open a project of the home: kept.open(project=…)."
        )
    return [views.sync(context, place, views.Terms(ask=ask, is_asked_for=True)) for place in found]


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
