"""Compare texts by their letters: near duplicates, respelt words and mistyped kinds.

Beside the write path, which asks for it only when there is something to compare with.
"""

from kept.model import KINDS

NEAR_KIND = 75.0  # per cent of the letters that a mistyped kind shares with the one that was meant


def letters_shared(left: str, right: str) -> float:
    """Return how many per cent of the letters two texts share, in order."""
    from rapidfuzz import fuzz  # takes 8 ms to load, and the first memories of a project need no comparison

    return fuzz.ratio(left, right)


def near_kind(kind: str) -> str | None:
    """Return the kind of Kept that a word is a letter or two away from."""
    if kind in KINDS:
        return None
    shared, nearest = max((letters_shared(kind, known), known) for known in KINDS)
    return nearest if shared >= NEAR_KIND else None
