"""Times, kinds and reasons as a person reads them. Pure."""

from collections.abc import Mapping
from datetime import datetime

from kept.model import Memory

FAMILIES = {
    **dict.fromkeys(("decision", "architecture", "pattern", "convention", "preference"), "rule"),
    **dict.fromkeys(("warning", "error"), "risk"),
    **dict.fromkeys(("discovery", "fact"), "learned"),
    **dict.fromkeys(("summary", "progress", "file_change", "reasoning", "tool_output"), "trace"),
}
SIGNS = frozenset("decision architecture pattern convention warning error discovery preference summary fact".split())
SECTIONS = {
    "always": ("Pinned", "pinned"),
    "pinned": ("Pinned", "pinned"),
    "bridge": ("From other agents", "bridge"),
    "retrieval": ("Relevant now", "relevant"),
    "summary": ("Earlier sessions", "earlier"),
}
_UNITS = (("year", 31_104_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60))


def family(kind: str) -> str:
    """The family of a kind, which gives it its colour."""
    return FAMILIES.get(kind, "learned")


def sign(kind: str) -> str:
    """The sign of a kind; an unknown one has that of a fact."""
    return kind if kind in SIGNS else "tool_output" if kind in ("tool_output", "file_change") else "fact"


def section(name: str) -> tuple[str, str]:
    """The name of a briefing's section for a person, and its colour."""
    return SECTIONS.get(name, (name.capitalize(), "relevant"))


def age(at: datetime | None, now: datetime) -> str:
    """How old something is: "2 months old", "today"."""
    if at is None:
        return ""
    seconds = (now - at).total_seconds()
    if seconds < 86_400:
        return "today"
    unit, size = next((unit, size) for unit, size in _UNITS if seconds >= size)
    number = int(seconds // size)
    return f"{number} {unit}{'s' * (number != 1)} old"


def day(at: datetime | None) -> str:
    """A moment in the person's time zone."""
    return "" if at is None else f"{at.astimezone():%d %b %Y, %H:%M}"


def reason(factor: str, memory: Memory, matched: Mapping[str, str], now: datetime) -> str:
    """Why a factor has its value, in a few words."""
    match factor:
        case "match":
            return ", ".join(word if how in ("", "asked for") else f"{word} ({how})" for word, how in matched.items())
        case "feedback":
            return f"{memory.feedback:+d}" if memory.feedback else "none yet"
        case "recency":
            return age(memory.verified_at or memory.updated_at, now)
        case "use":
            return f"used {memory.use_count} time{'s' * (memory.use_count != 1)}"
        case "kind" | "status" | "trust":
            return str(getattr(memory, factor))
        case "importance":
            return f"{memory.importance:g}"
        case "files":
            return ", ".join(memory.files[:2]) or "none at hand"
        case _:
            return ""
