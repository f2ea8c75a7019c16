"""A chat that remembers its user: the loop of a program that calls a model itself.

    python examples/chat_loop.py

`answer` stands for a call such as `client.chat.completions.create(model=…, **request)`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import kept


def answer(request: dict[str, Any]) -> str:
    """Answer as a model would: with the first memory in the system text that it was given."""
    system = str(request["messages"][0]["content"])
    return next((line.strip() for line in system.splitlines() if "[id:" in line), "I do not know.")


def chat(memory: kept.Kept, name: str, lines: Iterable[str], model: Callable[[dict[str, Any]], str]) -> list[str]:
    """Let a model answer these lines in the conversation of that name, and keep the conversation."""
    session: kept.Session = memory.session(name, agent="chat")
    replies = []
    for line in lines:
        with session.turn(line) as turn:
            context = turn.context("You are a helpful assistant.", budget_tokens=1_000)
            reply = model(context.messages_for("openai"))
            turn.persist(reply)
        replies.append(reply)
    session.finish()
    return replies


def main() -> None:
    with kept.open(":memory:") as memory:
        memory.remember("The user is allergic to nuts", kind="preference", pin=True)
        for reply in chat(memory, "monday", ["Which snack can I take to work?"], answer):
            print(reply)
        print(memory.sessions()[0].finished_at is not None)


if __name__ == "__main__":
    main()
