"""The files that a captured statement gets: those that its turn was about."""

from typing import Any

import kept
from kept.model import Message


def call(path: str, **more: Any) -> Message:
    return Message(id="", role="tool_call", name="Edit" if more else "Read", input={"file_path": path, **more})


def said(role: Any, content: str) -> Message:
    return Message(id="", role=role, content=content)


def files_of(*messages: Message) -> tuple[str, ...]:
    """Play a conversation and return the files of the one statement of the user in it."""
    with kept.open(":memory:") as memory:
        session = memory.session("s1")
        for message in messages:
            session.append(message.role, message.content, name=message.name, input=message.input)
        session.finish()
        [found] = [
            one for one in memory.list(session="s1", limit=50) if "cents" in one.content and one.kind != "summary"
        ]
        return found.files


RULE = said("user", "We decided to keep every price in cents from now on.")


def test_a_statement_gets_the_files_that_were_edited_in_its_turn() -> None:
    edit = call("/home/dev/shop/src/prices.py", old_string="a", new_string="b")
    assert files_of(RULE, call("/home/dev/shop/src/cart.py"), edit, said("assistant", "Done.")) == ("src/prices.py",)


def test_files_that_were_only_read_count_if_they_are_few() -> None:
    assert files_of(RULE, call("/home/dev/shop/src/cart.py"), said("assistant", "I see.")) == ("src/cart.py",)
    many = [call(f"/home/dev/shop/src/part{number}.py") for number in range(9)]
    assert files_of(RULE, *many, said("assistant", "I see.")) == ()


def test_without_any_in_its_turn_the_turn_before_counts() -> None:
    seen = (said("user", "Look at the cart."), call("/home/dev/shop/src/cart.py"), said("assistant", "It has floats."))
    assert files_of(*seen, RULE, said("assistant", "Fine.")) == ("src/cart.py",)


def test_a_statement_that_names_a_file_keeps_its_own() -> None:
    named = said("user", "We decided to keep every price in src/tax.py in cents from now on.")
    edit = call("/home/dev/shop/src/prices.py", old_string="a", new_string="b")
    assert files_of(named, edit, said("assistant", "Done.")) == ("src/tax.py",)
