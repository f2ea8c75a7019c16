"""Numbers and ages in words."""

from datetime import datetime

_UNITS = (("year", 31_104_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60))


def ago(at: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits: "just now", "5 minutes ago", "2 months ago"."""
    seconds = (now - at).total_seconds()
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"  # also when the clock of another machine is ahead


def counted(number: int, noun: str, plural: str = "") -> str:
    """ "1 memory", "2 memories"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
