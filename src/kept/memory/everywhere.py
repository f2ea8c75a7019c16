"""Recall over all projects of a home, for an admin.

The one question that crosses the walls between projects, so `access` is asked about every space. Rule: nothing is
noted of it, neither a receipt nor a link nor a use: a project could otherwise learn what another one knows.
"""

from datetime import datetime

from kept import access
from kept.errors import StorageError
from kept.memory.context import Context, Storages
from kept.memory.past import answer_as_of
from kept.memory.read import answer, well_formed
from kept.model import GLOBAL, Recalled, replace
from kept.recall import WORDS_ONLY, Request
from kept.settings import Settings


def recall(context: Context, request: Request, *, as_of: datetime | None = None) -> Recalled:
    """Answer a question from every project and global memory. Pins and open conflicts belong to their projects.

    `as_of`: from the memory of that moment.

    Raises NotAllowed unless the actor may read all of them. A project that cannot be read is named in `degraded`.
    """
    access.check_everywhere(context.actor)
    storages: Storages = []
    unread: list[str] = []
    for space in context.spaces.everywhere():
        access.check_read(context.actor, space.name)
        try:
            storage = space.open()
        except StorageError as error:
            unread.append(f"{space.name} could not be read: {error.message}")
        else:
            storages.append(storage)
    request = replace(request, query=well_formed(request.query), profile=_profile(request, context.settings))
    if request.scope == "sessions":
        recalled = _messages(context, request, storages, as_of)
    else:
        recalled = _answer(context, request, storages, as_of)
    context.signals.tell_recalled(request.query, recalled.hits, scope=request.scope)
    degraded = " ".join(filter(None, (recalled.degraded, *unread))) or None
    return replace(recalled, pinned=(), conflicts=(), degraded=degraded)


def _answer(context: Context, request: Request, storages: Storages, as_of: datetime | None) -> Recalled:
    if as_of is not None:
        return answer_as_of(context, request, storages, as_of)
    return answer(context, request, storages, context.now())


def _messages(context: Context, request: Request, storages: Storages, as_of: datetime | None) -> Recalled:
    """Conversations are scored within their project; here the best of all come first."""
    each = [_answer(context, request, [storage], as_of) for storage in storages if storage.space != GLOBAL]
    hits = sorted((hit for recalled in each for hit in recalled), key=lambda hit: -hit.score)
    degraded = " ".join(dict.fromkeys(recalled.degraded for recalled in each if recalled.degraded)) or None
    took_ms = sum(recalled.took_ms for recalled in each)
    return Recalled(hits=tuple(hits[: request.limit]), took_ms=took_ms, degraded=degraded)


def _profile(request: Request, settings: Settings) -> str | None:
    # Otherwise the question would make vectors in every project.
    wanted = request.profile or ("hybrid" if settings.search_provider == "hybrid" else settings.profile)
    return WORDS_ONLY if wanted == "hybrid" else request.profile
