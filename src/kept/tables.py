"""The tables behind the words that a person chooses from: profiles, presets, retentions, and numbers by kind.

Rows of data, not classes of behaviour; the steps of writing, recall and upkeep read them, and `settings` names them.
Rule: a table never changes. What a person sets stands in a `Settings`, over the rows that are here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

V = TypeVar("V")

OTHER = "other"  # the row of a table by kind that holds for every kind without a row of its own


class Profile(Struct, frozen=True, kw_only=True):
    """How hits are scored and chosen. A score is the product of `factors`."""

    factors: tuple[str, ...]
    columns: Mapping[str, float]  # what a word is worth where it is found; a column that is not named is not searched
    aliases: bool = True
    prefix: bool = True
    fuzzy_share: float = 0.2  # edits allowed, as a share of a word's length; 0: words match exactly
    threshold_share: float = 0.3  # hits below this share of the best score are dropped; 0: none
    max_per_session: int | None = 2  # hits from one source session
    by_tokens: bool = False  # a text's length is counted in tokens, as FTS5 does, instead of in its words
    vectors: bool = False  # `match` joins cosine and BM25 by `vector_weight` and `text_weight`


class Preset(Struct, frozen=True, kw_only=True):
    """What an automatic memory must bring to be taken in and promoted."""

    min_points: int | None  # None: nothing is promoted by itself
    min_importance: float
    min_length_chars: int


class Retention(Struct, frozen=True, kw_only=True):
    """What leaves the live memories for the archive, and by which worth."""

    shelf_life: str  # whose shelf life ends: "automatic", "all" or "none"
    max_memories: int | None = None  # when the setting of that name says nothing
    shrink_to_share: float = 1.0  # above the limit, archive down to this share of it
    worth: tuple[str, ...] = ("decayed_importance", "feedback", "recency")


def _frozen(rows: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(rows)


_KEPT = Profile(
    factors=("match", "feedback", "recency", "kind", "use", "files", "status", "importance"),
    columns=_frozen({"content": 2.0, "tags": 1.5, "files": 1.2, "source": 1.0, "kind": 1.0}),
)
PROFILES: Mapping[str, Profile] = _frozen(
    {
        "kept": _KEPT,
        "koshi": Profile(
            factors=("match", "feedback", "recency"),
            columns=_frozen({"content": 1.0, "tags": 1.0, "source": 1.0}),
            aliases=False,
            prefix=False,
            fuzzy_share=0.0,
            threshold_share=0.0,
            max_per_session=None,
            by_tokens=True,
        ),
        "praxis": Profile(
            factors=("match", "kind", "recency", "use", "files", "status"),
            columns=_frozen({"content": 2.0, "tags": 1.5, "files": 1.2, "kind": 1.0}),
        ),
        "hybrid": replace(_KEPT, vectors=True),
    }
)
PRESETS: Mapping[str, Preset] = _frozen(
    {
        "conservative": Preset(min_points=4, min_importance=0.4, min_length_chars=50),
        "balanced": Preset(min_points=3, min_importance=0.25, min_length_chars=30),
        "aggressive": Preset(min_points=2, min_importance=0.15, min_length_chars=20),
        "manual": Preset(min_points=None, min_importance=0.25, min_length_chars=30),
    }
)
RETENTIONS: Mapping[str, Retention] = _frozen(
    {
        "kept": Retention(shelf_life="automatic"),
        "praxis": Retention(shelf_life="all", max_memories=3000, shrink_to_share=0.9),
        "koshi": Retention(shelf_life="none", worth=("feedback", "recency")),
    }
)
SEARCH_PROVIDERS = ("fts5", "hybrid")

SHELF_LIFE_DAYS: Mapping[str, int] = _frozen(
    {
        "progress": 14,
        "discovery": 21,
        "file_change": 21,
        "warning": 30,
        "decision": 90,
        "error": 90,
        "pattern": 180,
        "architecture": 180,
        "preference": 365,
        OTHER: 90,
    }
)
IMPORTANCE_BY_KIND: Mapping[str, float] = _frozen(
    {
        "decision": 0.9,
        "preference": 0.9,
        "error": 0.85,
        "convention": 0.8,
        "pattern": 0.7,
        "tool_output": 0.7,
        OTHER: 0.5,
    }
)
KIND_WEIGHTS: Mapping[str, float] = _frozen(
    {"warning": 1.2, "decision": 1.15, "preference": 1.1, "error": 1.1, "progress": 0.8, OTHER: 1.0}
)
BRIEFING_SHARES: Mapping[str, int] = _frozen({"task": 40, "project": 40, "global": 20})


def by_kind(table: Mapping[str, V], kind: str) -> V:
    """The row of `kind`, or the row `other` when it has none."""
    return table.get(kind, table[OTHER])
