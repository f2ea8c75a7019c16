"""A list of findings in a database: settled and taken back as in a file, and asked only of the person whose it is."""

from pathlib import Path

import pytest

import kept
from kept import InvalidInput, Kept
from kept.memory.deliver import Listener
from tests.postgres.server import emptied, shared_database

SAID = (
    "Amounts are integers in cents, the ledger refuses floats.",
    "For the file names we should take the customer number, not the name.",
    "The carrier bans us after 3 attempts in a row.",
)


@pytest.fixture
def url() -> str:
    return emptied(shared_database())


def talked(memory: Kept, name: str = "s1") -> None:
    session = memory.session(name, agent="claude-code")
    for content in SAID:
        session.append("user", content)
    session.finish()


def test_one_call_settles_a_list_and_one_undo_brings_it_back(url: str, tmp_path: Path) -> None:
    with kept.open(url, project="web-app", home=tmp_path, hosted=True) as memory:
        memory.remember("The carrier bans us after 5 attempts in a row")
        talked(memory)
        asked = memory.proposals()
        by_text = {one.text: one for one in asked.statements}
        attempts, stored = (by_text[said] for said in (SAID[2], "The carrier bans us after 5 attempts in a row"))
        assert stored.beside == attempts.n
        done = memory.judge(asked.code, keep=[attempts.n], drop=[stored.n, by_text[SAID[0]].n])
        assert (done.replaced, memory.get(attempts.ref).status) == ((stored.ref,), "confirmed")
        with pytest.raises(InvalidInput, match="judged already"):
            memory.judge(asked.code, keep=[1])
    with kept.open(url, project="web-app", home=tmp_path / "other", hosted=True) as memory:
        judged = next(one for one in memory.history(limit=200) if one.action == "judge")
        memory.undo(judged.seq)
        assert memory.get(stored.ref).status == "confirmed"
        assert SAID[0] in {one.text for one in memory.proposals(session="s1").statements}


def test_a_list_is_given_with_a_receipt_and_its_tokens_are_counted(url: str, tmp_path: Path) -> None:
    with kept.open(url, project="web-app", home=tmp_path, hosted=True) as memory:
        talked(memory)
        listener = Listener(session="now", event="SessionStart", is_attended=True)
        assert "Kept asks" in memory.deliveries.at_start(listener)
        assert "Kept asks" not in memory.deliveries.at_start(listener)
        asked = memory.proposals()
        memory.judge(asked.code, keep=[1])
        judged = memory.status()["spaces"][0]["judged"]
        assert judged["sessions"] == 1
        assert judged["tokens"] >= asked.tokens


def test_a_dropped_statement_is_not_proposed_by_another_session(url: str, tmp_path: Path) -> None:
    with kept.open(url, project="web-app", home=tmp_path, hosted=True) as memory:
        talked(memory)
        asked = memory.proposals()
        memory.judge(asked.code, drop=[one.n for one in asked.statements if one.text == SAID[0]])
        talked(memory, "s2")
        assert SAID[0] not in {one.content for one in memory.list(limit=100)}


def test_only_the_persons_own_sessions_are_asked_about(url: str, tmp_path: Path) -> None:
    with kept.open(url, project="web-app", home=tmp_path / "ann", hosted=True, person="ann") as ann:
        talked(ann)
        assert ann.proposals().statements
    with kept.open(url, project="web-app", home=tmp_path / "bob", hosted=True, person="bob") as bob:
        assert not bob.proposals().statements
