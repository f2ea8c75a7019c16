"""Say why a receipt holds nothing: one reason, the real one, and the memory that it is about.

For `kept why` and the page, which add the text of that memory. A memory that fitted and was left out comes before one
that fitted too little. Rule: the reason is the one that recall or the briefing noted; nothing is guessed afterwards.
"""

from msgspec import Struct

from kept.memory.receipts import RecallReceipt
from kept.recall.briefing.material import TOLD_BEFORE as TOLD_BEFORE
from kept.recall.score import LEAST_COVERAGE

ANSWERS = frozenset({"recall", "briefing", "share", "known_error", "action"})  # kinds of receipts that hold memories
ASKED_NOTHING = "it has no word to search for"
NOTHING_STORED = "nothing is stored that is told without a question"
NO_MEMORY = "no memory that may be told fits it"
PASSED = "the same call was made again after a refusal, so the guard let it pass"


class EmptyAnswer(Struct, frozen=True, kw_only=True):
    """Why nothing was given or found; `ref` names the memory that came nearest, if one did."""

    reason: str
    ref: str | None = None

    def __str__(self) -> str:
        return self.reason if self.ref is None else f"the nearest, [id:{self.ref}], was held back: {self.reason}"


def why_nothing(given: RecallReceipt) -> EmptyAnswer | None:
    """Return why a receipt holds no memory; None if it holds one."""
    if given.kind not in ANSWERS or _holds_one(given):
        return None
    if given.guard == "passed":
        return EmptyAnswer(reason=PASSED)
    fitting = [one for one in given.left_out if one["ref"] not in given.pinned]  # pins come with every text
    is_question = bool(given.question.query.strip())
    nearest = next(iter((*fitting, *given.misses, *(() if is_question else given.left_out))), None)
    if nearest is not None:
        return EmptyAnswer(ref=str(nearest["ref"]), reason=str(nearest["reason"]))
    if not is_question:
        return EmptyAnswer(reason=NOTHING_STORED)
    return EmptyAnswer(reason=NO_MEMORY if given.words else ASKED_NOTHING)


def _holds_one(given: RecallReceipt) -> bool:
    return bool(given.hits) or any(section.get("entries") for section in given.sections)


def coverage_of(factor: float) -> float:
    """Return the share of the question that a memory covers, by the factor `coverage` of its score."""
    return max(0.0, (factor - LEAST_COVERAGE) / (1 - LEAST_COVERAGE))
