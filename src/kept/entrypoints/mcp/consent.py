"""Asking a person through the client, in the middle of a call (MCP elicitation).

Newer clients (spec 2026-07-28) take the question as the result of the call and make the call again with the answer;
older ones are asked while the call waits. Rule: only "accept" with yes is a yes, and an answer to another question is
none.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes, do this", "default": False}},
    "required": ["yes"],
}


class AskFirst(Exception):
    """The call has to wait for a person's answer to this question."""

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question


def key_of(question: str) -> str:
    """The name under which the answer comes back: an answer to another question is not one to this."""
    return f"confirm-{hashlib.sha256(question.encode()).hexdigest()[:16]}"


def is_yes(answer: Any) -> bool:
    """Whether an answer, as the SDK gives it, is a yes."""
    content = getattr(answer, "content", None)
    return getattr(answer, "action", None) == "accept" and isinstance(content, Mapping) and content.get("yes") is True


def asked_on_retry(answers: Mapping[str, Any]) -> Callable[[str], bool]:
    """`confirm` for clients that call again with the answer."""

    def confirm(question: str) -> bool:
        if (key := key_of(question)) not in answers:
            raise AskFirst(question)
        return is_yes(answers[key])

    return confirm
