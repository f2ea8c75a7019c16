"""The read path: from a question to the few memories that answer it, each with its reasons.

    query        the words to look for, each with its weight                     query.py
    candidates   the few memories worth scoring, of each space                   candidates.py
    score        a product of named factors, which `hit.why` shows               score.py; with vectors hybrid.py
    floor        how likely each answers, and whether any does                   floor.py
    rerank       one more factor from a model of the host, if it gave one        select.py
    select       which of the best are the answer, and why the others are not    select.py
    budget, format   a briefing that fits its tokens, in the style of its reader     briefing/

`pipeline.py` shows the order; `messages/` does the same for conversations. A question is a `Request`; everything else
that an answer depends on is in `Circumstances`. Rule: a query never fails. Anything that could not be done in time is
missing from the answer, and `degraded` says so.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from kept.errors import InvalidInput
from kept.model import Hit, canonical_kind
from kept.ports import Embedder, Reader, Where
from kept.settings import Settings
from kept.tables import FLOORS, PROFILES, Profile

RecallScope = Literal["memory", "items", "sessions", "sources", "archive"]
SCOPES: tuple[RecallScope, ...] = get_args(RecallScope)
MOST_HITS = 1_000
WORDS_ONLY = "kept"  # the profile of a question that no vectors can be compared for

# query, hits in order → one factor (0 or more) for each
Reranker = Callable[[str, Sequence[Hit]], Sequence[float]]
# candidates of words, how to score more of them, floor, request, circumstances → those of words and vectors, a note
Join = Callable[..., tuple[list[Any], str | None]]


class Request(Struct, frozen=True, kw_only=True):
    """A question in the caller's words: enough to ask it again. Receipts store it.

    Raises InvalidInput for a profile, scope or time that cannot be; any query is fine. The verb checks the limit.
    """

    query: str
    limit: int = 5
    exact_top: int | None = None  # that many hits must be exactly the best, whatever it costs; None: all of them
    profile: str | None = None  # None: as the settings say
    floor: str | None = None  # how sure an answer must be (`tables.FLOORS`); None: as the settings say
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    has_exact_tags: bool = False  # tags are names of a program, not words of people
    data: dict[str, Any] | None = None  # only memories with these values in their data
    files: tuple[str, ...] = ()  # the files at hand: memories about them rank higher
    since: datetime | None = None
    until: datetime | None = None
    scope: RecallScope = "memory"
    follow: bool = False  # also bring what was recalled together with the hits before
    by: Literal["message", "session"] = "message"  # in scope `sessions`
    packed: bool = False  # in scope `sessions`: also search old ones, which are compressed
    agent: str | None = None  # only what this one wrote
    seen_by: str | None = None  # leave out unpromoted findings of other sessions than this one; None: leave out none

    def __post_init__(self) -> None:
        if not isinstance(self.query, str):
            raise InvalidInput(f"query must be a string, not {type(self.query).__name__}.")
        if self.profile is not None:
            _check_choice("profile", self.profile, PROFILES)
        if self.floor is not None:
            _check_choice("floor", self.floor, FLOORS)
        _check_choice("scope", self.scope, SCOPES)
        if self.by not in ("message", "session"):
            raise InvalidInput("`by` must be message or session.")
        _check_time("since", self.since)
        _check_time("until", self.until)
        if self.scope == "sessions":
            _check_no_filters(kinds=self.kinds, tags=self.tags, files=self.files)


def _check_choice(name: str, chosen: str, choices: Collection[str]) -> None:
    if chosen not in choices:
        raise InvalidInput(f"Unknown {name} {chosen!r}.", hint=f"Choose one of {', '.join(choices)}.")


def _check_time(side: str, at: object) -> None:
    if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
        raise InvalidInput(f"{side} must be a datetime with a time zone.", hint="Use datetime(…, tzinfo=UTC).")


def _check_no_filters(**given: tuple[str, ...]) -> None:
    if missing := " and ".join(f"no {name}" for name, values in given.items() if values):
        hint = "Leave them out, or use another scope. `since` and `until` work for messages."
        raise InvalidInput(f"Messages have {missing}, so scope `sessions` cannot filter by them.", hint=hint)


class Circumstances(Struct, frozen=True, kw_only=True):
    """Everything an answer depends on besides the question."""

    readers: Sequence[Reader]  # one for each space, the project's first
    settings: Settings
    now: datetime
    timer: Callable[[], float]  # in seconds
    reranker: Reranker | None = None
    embedder: Embedder | None = None  # for profiles with vectors
    join: Join | None = None  # with an embedder: `hybrid.join`, which a process without vectors does not load
    is_degraded: bool = False  # recall has been slow lately: make do with less


def embedder_failed(error: Exception) -> str:
    """The sentence for `degraded`."""
    return f"The embedder failed ({type(error).__name__}), so only words were compared."


def profile_of(request: Request, settings: Settings) -> Profile:
    """How hits are scored and chosen: as the question says, else as the settings say."""
    usual = "hybrid" if settings.search_provider == "hybrid" else settings.profile
    profile = PROFILES[request.profile or usual]
    share = FLOORS[request.floor or settings.floor]
    return profile if share == 1.0 or not profile.floor else replace(profile, floor=profile.floor * share)


def in_any_case(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags as people may have written them; storages see to the letters a to z."""
    return tuple(dict.fromkeys(form for tag in tags for form in (tag, tag.lower(), tag.upper(), tag.title())))


def where_of(request: Request) -> Where:
    """Which memories may answer."""
    return Where(
        shelf="archive" if request.scope == "archive" else "live",
        scope=request.scope if request.scope in ("memory", "items", "sources") else None,
        kinds=tuple(map(canonical_kind, request.kinds)),
        tags=request.tags if request.has_exact_tags else (),
        tags_of_any_case=() if request.has_exact_tags else in_any_case(request.tags),
        data=tuple((request.data or {}).items()),
        since=request.since,
        until=request.until,
        seen_by=request.seen_by,
        agent=request.agent,
    )
