"""The sorts of proposals, and which of them are told without a judge.

Used by extraction. Rule: only what a listener would act on without asking back is told unjudged.
"""

from kept.proposals import ABOUT_SELF, COMMAND, EVIDENT, FINDING, FIX, STANDING_ORDER, STATEMENT
from kept.text import compiled
from kept.writing.extraction.said import Statement
from kept.writing.things import things_in

__all__ = ["COMMAND", "EVIDENT", "FINDING", "FIX", "STATEMENT", "kind_of", "sort_of"]

EXPLICIT = ("recalls", "warns", "standing", "contrasts", "prohibits", "names_self", "option")
MIN_THINGS = 2  # that a statement must name to be understood alone, unless it is explicit
RULE_MARKS = ("standing", "prohibits", "rule", "reason", "decides", "change", "contrasts")
_STATES = (
    r"(?i)\b(?:is|are|was|were|runs|uses|we (?:use|run|deploy)|has|have|lives?|goes|comes|reads|port|branch)\b|'s\b"
)
MAX_ORDER_CHARS = 160  # a longer text describes a task


def sort_of(statement: Statement, *, is_doubtful: bool) -> str:
    """Return the sort of a statement of the user."""
    if is_doubtful or statement.needs_context or statement.has("guess", "fleeting"):
        return STATEMENT
    if not statement.has(*EXPLICIT) and len(things_in(statement.content)) < MIN_THINGS:
        return STATEMENT
    if statement.has("personal"):
        return ABOUT_SELF
    is_explicit = statement.has("recalls", "warns") or (statement.has("answer") and statement.has("option"))
    return STANDING_ORDER if is_explicit or _is_rule(statement) else STATEMENT


def _is_rule(statement: Statement) -> bool:
    """Return True for a statement that holds beyond the task that it was made for."""
    if statement.has("task") and not statement.has("standing", "prohibits", "contrasts", "decides"):
        return False  # it explains what is asked beside it
    if statement.has("symptom", "wish", "undo") or len(statement.content) > MAX_ORDER_CHARS:
        return False
    if statement.has("orders"):
        return statement.has("standing", "prohibits", "rule", "reason", "contrasts") and not statement.has("change")
    return statement.has(*RULE_MARKS)


def kind_of(statement: Statement) -> str:
    """Return the kind of memory that a statement makes: the first that fits."""
    if statement.has("objects", "contrasts") and (statement.has("orders") or not statement.has("decides")):
        is_fact = compiled(_STATES).search(statement.said) is not None and not statement.has("orders", "prohibits")
        return "fact" if is_fact else "preference"
    return next((kind for kind, marks in _KINDS if statement.has(*marks)), "fact")


_KINDS = (
    ("warning", ("warns",)),
    ("decision", ("decides", "answer")),
    ("preference", ("prefers", "orders", "prohibits", "standing")),
)
