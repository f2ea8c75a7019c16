"""Files around the store (`memory.files`): those that people edit, and the project's own, where items come from."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from kept.errors import InvalidInput, KeptError
from kept.exchange.memory_md_merge import merge as merge_texts
from kept.memory import agents_file, views
from kept.memory.context import Context
from kept.memory.erase import finish_files
from kept.memory.library import as_document as item_document
from kept.memory.view import AGENTS_MD, ViewPlace
from kept.memory.views import SyncReport
from kept.projects.files import shown

__all__ = ["ViewStatus", "agents", "item_document", "list_views", "merge_texts", "sync"]


class ViewStatus(Struct, frozen=True, kw_only=True):
    """One file: where it is, whether it exists, and whether it has edits that were not taken in yet."""

    name: str
    path: str
    space: str
    exists: bool
    is_edited: bool
    is_shared: bool
    is_outdated: bool = False  # AGENTS.md: its block does not show the memories that it should
    problem: str = ""


def sync(context: Context, ask: Callable[[str, Sequence[str]], bool] | None = None) -> list[SyncReport]:
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
    return [views.sync(context, place, views.SyncOptions(ask=ask, is_asked_for=True)) for place in found]


def agents(context: Context, *, remove: bool, ask: views.Ask | None) -> SyncReport:
    """Write the block of confirmed memories in AGENTS.md, or take it out. `ask` decides about edits inside it."""
    terms, place = views.SyncOptions(ask=ask, is_asked_for=True), views.agents_place(context, context.owned())
    if place is None:
        raise InvalidInput("This project has no directory, so it has no AGENTS.md.", hint="Run it in the project.")
    if not remove:
        return views.sync(context, place, terms)
    return views.cut(context, place, lambda text, note: agents_file.without_block(text, note, terms))


def list_views(context: Context) -> list[ViewStatus]:
    """Where each file is, and whether edits wait in it."""
    found = []
    for place in _places_with_agents(context):
        problem, exists, is_edited, is_outdated = "", False, False, None
        try:
            text = views.read(place).text
            exists, is_edited = text is not None, views.is_edited(context, place)
            is_outdated = _is_outdated(context, place, text or "") if place.name == AGENTS_MD else False
        except KeptError as error:
            problem = error.message
        if is_outdated is None and not problem and not context.settings.agents_block:
            continue  # an AGENTS.md without a block is none of our files
        found.append(
            ViewStatus(
                name=place.name,
                path=shown(place.path),
                space=place.storage.space,
                exists=exists,
                is_edited=is_edited,
                is_shared=place.is_shared,
                is_outdated=bool(is_outdated),
                problem=problem,
            )
        )
    return found


def _is_outdated(context: Context, place: ViewPlace, text: str) -> bool | None:
    with place.storage.reading() as reader:
        return agents_file.is_outdated(context, reader, text)


def _places_with_agents(context: Context) -> Iterator[ViewPlace]:
    """Return the places of all files, and AGENTS.md also if it is only written on request."""
    yield from views.places(context)
    storage = None if context.actor.role == "skill" else context.readable_tier("project")
    if storage is not None and not context.settings.agents_block:
        place = views.agents_place(context, storage)
        if place is not None and place.path.is_file():
            yield place
