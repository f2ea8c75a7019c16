"""Tables: one for each question about a kind, and the rows that profile, preset and retention choose from.

By kind there are SHELF_LIFE_DAYS, IMPORTANCE_BY_KIND, KIND_WEIGHTS and HISTORY_KINDS. To add a kind, name it in
`model.KINDS`, give it a row in each table where it differs from `other`, change the tables that tests/test_settings.py
pins, and run `make docs`. Writing, recall and upkeep read the tables;
`settings` lets a person override rows.
Rule: a table never changes at run time. Values that a person sets are in `Settings`, on top of these rows.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

V = TypeVar("V")

OTHER = "other"  # in a table by kind, the row of every kind without its own


def by_kind(table: Mapping[str, V], kind: str) -> V:
    """The row of `kind`, or the row `other` when it has none."""
    return table.get(kind, table[OTHER])


def _frozen(rows: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(rows)


# After how many days is an unused memory archived?
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
# How important is a new memory, from 0 to 1, if its writer does not say?
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
# By which factor does the kind change the score of a hit?
KIND_WEIGHTS: Mapping[str, float] = _frozen(
    {"warning": 1.2, "decision": 1.15, "preference": 1.1, "error": 1.1, "progress": 0.8, OTHER: 1.0}
)
# Which kinds tell what was done or seen once, so that a later statement does not contradict them?
HISTORY_KINDS = frozenset({"progress", "file_change", "summary", "reasoning", "tool_output", "error"})
# Which kinds tell how things are to be done here, so that one can contradict the other?
SETTLED_KINDS = frozenset({"decision", "convention", "preference", "architecture", "pattern", "fact", "discovery"})


class Profile(Struct, frozen=True, kw_only=True):
    """How hits are scored and chosen (setting `profile`). A score is the product of `factors`."""

    factors: tuple[str, ...]
    columns: Mapping[str, float]  # weight of a word by where it is found; a column without a row is not searched
    filler_weight: float = 1.0  # of a word that only holds a sentence together
    aliases: bool = True
    prefix: bool = True
    fuzzy_share: float = 0.2  # edits allowed, as a share of a word's length; 0: words match exactly
    floor: float = 0.5  # confidence that the best hit needs; below it nothing fits; 0: every match is a hit
    threshold_share: float = 0.3  # hits below this share of the best score are dropped; 0: none
    max_per_session: int | None = 2  # hits from one source session
    reads_file_names: bool = False  # a file that the query names counts as one at hand
    by_form: bool = True  # a word is found in forms of the word asked for only, not in every word of its stem
    by_tokens: bool = False  # a text's length is counted in tokens, as FTS5 does, instead of in its words
    counts_returns: bool = False  # being returned is a use; otherwise only what was acted upon is
    vectors: bool = False  # `match` joins cosine and BM25 by `vector_weight` and `text_weight`


class Preset(Struct, frozen=True, kw_only=True):
    """What an automatic memory needs to be stored and promoted, and who sees it before (setting `preset`)."""

    min_points: int | None  # None: nothing is promoted or confirmed automatically
    min_importance: float
    min_length_chars: int
    is_open: bool  # other sessions see an unpromoted finding, labelled candidate


class Retention(Struct, frozen=True, kw_only=True):
    """Which live memories are archived, and by which worth (setting `retention`)."""

    shelf_life: str  # whose shelf life ends: "automatic", "all" or "none"
    max_memories: int | None = None  # when the setting of that name says nothing
    shrink_to_share: float = 1.0  # above the limit, archive down to this share of it
    worth: tuple[str, ...] = ("decayed_importance", "feedback", "recency")


_KEPT = Profile(
    factors=("match", "favour", "freshness", "kind", "use", "files", "status", "importance", "coverage"),
    columns=_frozen({"content": 2.0, "tags": 1.5, "files": 1.2, "source": 1.0, "kind": 1.0}),
    filler_weight=0.2,
    reads_file_names=True,
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
            floor=0.0,
            threshold_share=0.0,
            max_per_session=None,
            by_form=False,
            by_tokens=True,
        ),
        "praxis": Profile(
            factors=("match", "kind", "recency", "use", "files", "status"),
            columns=_frozen({"content": 2.0, "tags": 1.5, "files": 1.2, "kind": 1.0}),
            floor=0.0,
            by_form=False,
            counts_returns=True,
        ),
        # Its match counts coverage already.
        "hybrid": replace(_KEPT, vectors=True, factors=tuple(name for name in _KEPT.factors if name != "coverage")),
    }
)
PRESETS: Mapping[str, Preset] = _frozen(
    {
        "conservative": Preset(min_points=4, min_importance=0.4, min_length_chars=50, is_open=False),
        "balanced": Preset(min_points=3, min_importance=0.25, min_length_chars=30, is_open=True),
        "aggressive": Preset(min_points=2, min_importance=0.15, min_length_chars=20, is_open=True),
        "manual": Preset(min_points=None, min_importance=0.25, min_length_chars=30, is_open=False),
    }
)
RETENTIONS: Mapping[str, Retention] = _frozen(
    {
        "kept": Retention(shelf_life="automatic"),
        "praxis": Retention(shelf_life="all", max_memories=3000, shrink_to_share=0.9),
        "koshi": Retention(shelf_life="none", worth=("feedback", "recency")),
    }
)
# How much of a profile's floor must a hit reach (setting `floor`)?
FLOORS: Mapping[str, float] = _frozen({"strict": 1.5, "normal": 1.0, "open": 0.5})
SEARCH_PROVIDERS = ("fts5", "hybrid")

# In which ratio do the tiers share the room of a briefing?
BRIEFING_SHARES: Mapping[str, int] = _frozen({"task": 40, "project": 40, "global": 20})
