"""A conversation with everything that models' APIs are strict about, and the requests that are made of it."""

from typing import Any

import kept
from kept.memory.model_messages import Provider
from kept.model import Message

SAID = (
    Message(id="a0", role="assistant", content="Good morning!"),
    Message(id="u1", role="user", content="Which tests fail, and what is in the log?"),
    Message(id="a1", role="assistant", content="I look at both."),
    Message(id="t 1", role="tool_call", name="run/tests", input={"path": "tests", "deep": {"x": [1, None]}}),
    Message(id="t2", role="tool_call", name="read", input={}),
    Message(id="t2", role="tool_result", name="read", content="nothing", is_error=True),
    Message(id="t 1", role="tool_result", name="run/tests", content="2 failed"),
    Message(id="t3", role="tool_call", name="never_answered", input={"q": "?"}),
    Message(id="u2", role="user", content="  "),
    Message(id="u3", role="user", content="And now?"),
    Message(id="t9", role="tool_result", name="(context)", content="A program put this here"),
    Message(id="s1", role="system", content="It is Tuesday"),
    Message(id="a2", role="assistant", content="Two tests fail. "),
)


def request_for(provider: Provider) -> dict[str, Any]:
    """Return the request of a turn in a session with these messages."""
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        memory.remember("The tests need the database running", kind="convention")
        session = memory.session("s1")
        session.extend(SAID)
        with session.turn("Do the tests need the database?") as turn:
            return turn.context("You are careful.").messages_for(provider)
