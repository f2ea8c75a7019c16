"""`kept recall` and `kept why`."""

import math

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def asked(shell: Shell) -> Shell:
    shell("remember", "Never edit the auth middleware directly", "--kind", "warning", "--tag", "auth")
    shell("remember", "Deploys go out on Tuesdays", "--kind", "convention")
    shell("remember", "The importer retries three times")
    return shell


def test_key_words_find_the_memory_that_has_them(asked: Shell) -> None:
    said = asked("recall", "auth", "middleware", "login")
    assert said.startswith("[id:1] warning: Never edit the auth middleware directly\n")
    assert "[id:2]" not in said


def test_an_explained_score_multiplies_out(asked: Shell) -> None:
    [hit] = asked.json("recall", "auth middleware")["hits"]
    assert hit["ref"] == hit["memory"]["ref"] == "1"
    assert math.isclose(math.prod(hit["why"].values()), hit["score"])
    assert " = match " in asked("recall", "auth", "--explain")


def test_pinned_memories_come_along(asked: Shell) -> None:
    asked("pin", "2")
    assert "Pinned:\n[id:2] convention: Deploys go out on Tuesdays\n" in asked("recall", "importer")
    assert [memory["ref"] for memory in asked.json("recall", "importer")["pinned"]] == ["2"]


def test_nothing_found_says_what_to_try(asked: Shell) -> None:
    assert asked("recall", "zebra") == "No memory has these words. Try others, or `kept list`.\n"


def test_why_shows_the_last_recall_or_an_earlier_one(asked: Shell) -> None:
    receipt = asked.json("recall", "auth")["receipt"]
    asked("recall", "importer")
    assert "importer" in asked("why").splitlines()[0]
    assert asked("why", receipt).splitlines()[0] == f"{receipt}  2026-03-01 12:00  auth"
    assert asked.json("why", receipt)["hits"][0]["ref"] == "1"
    assert "There is no receipt r99." in asked.fails("why", "r99")
    assert "is not a receipt" in asked.fails("why", "because")


def test_a_recall_needs_words(asked: Shell) -> None:
    assert "Missing argument 'WORDS...'" in asked.fails("recall", code=2)
    assert "No memory has these words" in asked("recall", "???")
