"""Every action that the journal can hold has words on the page."""

import ast
import re
from pathlib import Path

import kept
from kept.entrypoints.web import words
from kept.entrypoints.web.activity import Activity
from kept.entrypoints.web.journal_lines import JournalFilter, read
from kept.entrypoints.web.shelf import Shelf
from kept.model import Actor

SOURCE = Path(kept.__file__).parent
WRITES = frozenset(("add", "put", "put_many", "remove", "erase"))  # of a transaction, with the action at the end
_MAY_WRITE = re.compile(rf"\b(?:tx|transaction)\.(?:{'|'.join(WRITES)})\(")  # parsing every file takes seconds


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts that a module gives a name."""
    return {
        one.targets[0].id: one.value.value
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Constant)
        if isinstance(one.value.value, str)
    }


def _is_write(call: ast.AST) -> bool:
    function = getattr(call, "func", None)
    on = getattr(getattr(function, "value", None), "id", "")
    return isinstance(call, ast.Call) and getattr(function, "attr", "") in WRITES and on in ("tx", "transaction")


def actions() -> set[str]:
    """Return the actions that transactions are given by name in the source."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text("utf-8")
        if not _MAY_WRITE.search(source):
            continue
        tree = ast.parse(source)
        named = _constants(tree)
        for call in filter(_is_write, ast.walk(tree)):
            assert isinstance(call, ast.Call)
            for one in ast.walk(call.args[-1]) if call.args else ():
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and call.args[-1] is one:
                    found.add(one.value)
                elif isinstance(one, ast.Name) and call.args[-1] is one and one.id in named:
                    found.add(named[one.id])
    return found


def test_every_action_of_the_journal_has_words() -> None:
    found = actions()
    assert len(found) > 20
    assert found - words.PAST.keys() == set()


def test_a_line_of_a_guard_names_its_memory_and_says_if_it_began_or_ended() -> None:
    with kept.open(":memory:", origin="user", actor=Actor(role="admin", name="user")) as memory:
        said = "Never run deploy/release.sh on a Friday."
        ref = memory.remember(said, kind="warning", files=["deploy/release.sh"]).ref or ""
        memory.guard(ref, "stop")
        memory.guard(ref, "tell")
        shelf = Shelf().follow(memory)
        ended, begun = read(memory, shelf, Activity(), JournalFilter(what="decided"), 0).lines
    assert (begun["action"], ended["action"]) == ("made a guard of", "ended the guard of")
    assert [one.ref for one in (*begun["objects"], *ended["objects"])] == [ref, ref]
