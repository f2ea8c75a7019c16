"""The sorts of proposals, and which of them are told without a judge.

Used by extraction. Rule: only what a listener would act on without asking back is told unjudged.
"""

from kept.proposals import ABOUT_SELF, COMMAND, EVIDENT, FINDING, FIX, STANDING_ORDER, STATEMENT
from kept.writing.extraction.said import Statement

__all__ = ["COMMAND", "EVIDENT", "FINDING", "FIX", "kind_of", "sort_of"]

RULE_MARKS = ("standing", "prohibits", "rule", "reason", "decides", "change", "contrasts")
MAX_ORDER_CHARS = 160  # a longer text describes a task


def sort_of(statement: Statement, *, is_doubtful: bool) -> str:
    """Return the sort of a statement of the user."""
    if is_doubtful or statement.needs_context or statement.has("guess", "fleeting"):
        return STATEMENT
    if statement.has("personal"):
        return ABOUT_SELF
    if statement.has("recalls", "warns"):
        return STANDING_ORDER
    if statement.has("answer") and statement.has("option"):
        return STANDING_ORDER
    if statement.has("symptom", "wish", "undo") or len(statement.content) > MAX_ORDER_CHARS:
        return STATEMENT
    if statement.has("orders"):
        is_rule = statement.has("standing", "prohibits", "rule", "reason", "contrasts") and not statement.has("change")
    else:
        is_rule = statement.has(*RULE_MARKS)
    return STANDING_ORDER if is_rule else STATEMENT


def kind_of(statement: Statement) -> str:
    """Return the kind of memory that a statement makes."""
    if statement.has("warns"):
        return "warning"
    if statement.has("decides", "answer"):
        return "decision"
    if statement.has("orders", "prohibits", "standing") and not statement.has("personal"):
        return "preference"
    return "fact"
