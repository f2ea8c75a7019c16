"""`kept recall` and `kept why`."""

import json
import math
from pathlib import Path

import pytest

import kept
from kept.memory import deliver
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


def test_nothing_found_comes_before_what_is_pinned(asked: Shell) -> None:
    asked("pin", "2")
    said = asked("recall", "zebra").splitlines()
    assert said[:3] == ["No memory has the word zebra. Try other words for it, or `kept list`.", "", "Pinned:"]


def test_why_names_no_words_for_a_text_that_was_written_without_a_search(asked: Shell) -> None:
    asked("briefing")
    assert "words:" not in asked("why")
    asked("recall", "auth")
    assert "words: auth" in asked("why")


def test_nothing_found_says_what_to_try(asked: Shell) -> None:
    assert asked("recall", "zebra") == "No memory has the word zebra. Try other words for it, or `kept list`.\n"
    assert "any of the words zebra, Okapi." in asked("recall", "zebra", "Okapi")
    assert "Ask again without them" in asked("recall", "auth", "--kind", "decision")


def test_an_empty_space_says_how_to_begin(shell: Shell) -> None:
    assert "Nothing is kept here yet. `kept remember" in shell("recall", "auth")


def test_a_hit_says_by_which_words_it_came(asked: Shell) -> None:
    """C12, C13: in the words of the query and of the memory, not in their stems."""
    assert "    matches importer, retries\n" in asked("recall", "importer", "retries")
    assert "    matches middleware (near middelware)\n" in asked("recall", "middelware")
    assert "    matches auth (alias of signin)\n" in asked("recall", "signin")


def test_a_note_says_when_a_query_has_too_many_words(asked: Shell) -> None:
    said = asked("recall", "auth middleware directly " + " ".join(f"word{number}" for number in range(10_000)))
    assert said.startswith("[id:1]")
    assert said.endswith("Note: only the first 32 words were searched for. Two to six work best.\n")
    assert "Note" not in asked("recall", "auth")


def test_where_nothing_fits_conversations_are_offered(asked: Shell) -> None:
    query = "who edits the menu of the canteen on Fridays?"
    assert asked("recall", query).startswith("Nothing fits well. Try other words")
    said = {
        "id": "1",
        "role": "user",
        "content": "Did Mirela edit the canteen menu?",
        "timestamp": "2026-02-10T21:11:00Z",
    }
    transcript = asked.folder / "s1.jsonl"
    more = said | {"id": "2", "role": "assistant", "content": "The kitchen prints it at noon"}
    transcript.write_text("".join(json.dumps(one) + "\n" for one in (said, more)), "utf-8")
    asked("import", "brain", str(transcript))
    shown = asked("recall", query)
    assert shown.startswith("Nothing fits well. In conversations:\n    s1#1: Did Mirela edit the canteen menu?\n")
    shown = asked("recall", "kitchen")
    assert shown.startswith(
        "No memory has the word kitchen. In conversations:\n    s1#2: The kitchen prints it at noon\n"
    )
    assert "`kept session search WORDS`" in shown


def test_what_looks_like_sql_is_words(asked: Shell) -> None:
    """A19."""
    assert "No memory has the word 1=1." in asked("recall", "' OR 1=1 --")
    assert asked("list").count("[id:") == 3


def test_what_just_missed_is_explained(asked: Shell) -> None:
    asked("remember", "The importer runs after the deploys")
    said = asked("recall", "importer deploys", "--limit", "1", "--explain")
    missed = said.partition("Just missed:\n")[2]
    assert missed.count("beyond the limit of 1") == 2
    assert "Just missed" not in asked("recall", "importer deploys", "--limit", "1")


def test_days_narrow_what_is_found(asked: Shell) -> None:
    asked.clock.advance(days=2)
    asked("remember", "The importer needs Python 3.12")

    def refs(*options: str) -> list[str]:
        return [hit["ref"] for hit in asked.json("recall", "importer", *options)["hits"]]

    assert refs("--since", "2026-03-02") == refs("--since", "2026-03-03T11:59") == ["4"]
    assert refs("--until", "2026-03-01") == ["3"], "until a day is over"
    assert refs("--until", "2026-03-01T12:00Z") == [], "a moment is what it says"
    assert len(refs("--since", "2026-03-01", "--until", "2026-03-03")) == 2
    for wrong in ("friday", "2026-13-01", "", "0001-01-01T00:00+14:00", "9999-12-31"):
        assert "is not a date. Write a day, 2026-03-01" in asked.fails("recall", "x", "--until", wrong, code=2)
    assert "Swap the two dates" in asked.fails("recall", "x", "--since", "2026-03-03", "--until", "2026-03-01")


def test_conversations_are_narrowed_by_days_and_by_nothing_else(asked: Shell) -> None:
    asked("recall", "harbor", "--scope", "sessions", "--since", "2026-03-01")
    said = asked.fails("recall", "harbor", "--scope", "sessions", "--tag", "auth", "--kind", "fact")
    assert said.startswith("Messages have no kinds and no tags")
    assert "Leave them out" in said


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
    assert "The query has no word to search for." in asked("recall", "???")


def test_why_shows_what_the_floor_held_back_and_not_the_look_into_conversations(asked: Shell) -> None:
    assert "`kept why` shows what was held back." in asked(
        "recall", "may", "schema", "deploys", "wait", "for", "weekends"
    )
    said = asked("why")
    assert "missed [id:2]" in said
    assert "fits too little" in said
    assert "Nothing was found: the nearest, [id:2], was held back: fits too little" in said


def test_why_shows_the_texts_of_what_it_names_and_a_forgotten_one_by_its_ref_alone(asked: Shell) -> None:
    asked("recall", "auth", "middleware")
    assert "\n    Never edit the auth middleware directly\n" in asked("why")
    asked("recall", "may", "schema", "deploys", "wait", "for", "weekends")
    assert asked("why").count("Deploys go out on Tuesdays") == 1
    asked("forget", "2")
    said = asked("why")
    assert "missed [id:2]" in said
    assert "Deploys go out" not in said


def test_a_recall_without_an_answer_names_the_memory_that_came_nearest(asked: Shell) -> None:
    said = asked("recall", "may", "schema", "deploys", "wait", "for", "weekends")
    assert "The nearest is [id:2] Deploys go out on Tuesdays: fits too little" in said


def test_reasons_are_words_as_they_are_written_and_none_that_only_holds_a_sentence_together(asked: Shell) -> None:
    asked("remember", "The shop is deployed to Fly.io from the branch main")
    assert "    matches Fly.io (alias of hosting)\n" in asked("recall", "the", "hosting")
    assert "    matches importer, retry\n" in asked("recall", "how", "often", "does", "the", "importer", "retry?")


def test_the_origin_of_a_memory_is_no_word_to_find_it_by(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Decisions\n- We decided to drop Internet Explorer support.\n")
    shell("import", "agents-md", str(tmp_path / "CLAUDE.md"))
    shell("remember", "The importer retries five times")
    said = shell("recall", "importer")
    assert "The importer retries five times" in said
    assert "Internet Explorer" not in said
    assert "The importer retries" not in shell("recall", "user")


def test_a_scope_without_an_answer_is_no_filter(asked: Shell) -> None:
    said = asked("recall", "zeppelin", "--scope", "items")
    assert said.startswith("Nothing in scope items has the word zeppelin. Try other words for it.")


def test_reasons_name_words_of_files_and_tags_as_they_are_written(shell: Shell) -> None:
    """The stem of "charge" is charg, and it stands only in the path."""
    shell("remember", "Prices are integers in cents", "--tag", "payments", "--file", "src/payments/charge.py")
    shell("alias", "add", "payments", "charge")
    said = shell("recall", "payments")
    assert "charge.py (alias of payments)" in said
    assert "charg " not in said


def test_why_with_a_session_shows_what_its_agent_was_given(shell: Shell) -> None:
    shell("remember", "Deploy the billing service with make ship")
    assert "No text was given to a session 's-1'." in shell("why", "--session", "s-1")
    with kept.open(home=shell.home, actor=kept.Actor(name="codex"), settings=kept.Settings()) as memory:
        listener = deliver.Listener(session="s-1", event="UserPromptSubmit")
        block = memory.deliveries.for_prompt("deploy billing", listener)
    printed = shell("why", "--session", "s-1")
    assert "codex, UserPromptSubmit" in printed
    assert all(line in printed for line in block.split("\n"))
    assert "[id:1] was in the briefing" in printed
    assert "\n    Deploy the billing service with make ship\n" in printed
    [given] = shell.json("why", "--session", "s-1")["given"]
    assert given["block"] == block
    assert "not both" in shell.fails("why", "r1", "--session", "s-1")


def test_why_takes_the_beginning_of_the_id_of_a_session_that_only_listened(shell: Shell) -> None:
    shell("remember", "Deploy the billing service with make ship")
    with kept.open(home=shell.home, actor=kept.Actor(name="codex"), settings=kept.Settings()) as memory:
        for session in ("8d000000-1111", "8d000000-2222", "9e000000-3333"):
            memory.deliveries.for_prompt("deploy billing", deliver.Listener(session=session, event="UserPromptSubmit"))
    assert "codex, UserPromptSubmit" in shell("why", "--session", "9e000000")
    assert "2 sessions begin with '8d000000'" in shell.fails("why", "--session", "8d000000")
    assert "codex, UserPromptSubmit" in shell("why", "--session", "8d000000-1")
    assert "No text was given to a session '7'." in shell("why", "--session", "7")


def test_why_shows_the_words_as_they_were_asked(asked: Shell) -> None:
    """Stems and what aliases add are for the index, not for a person."""
    asked("recall", "who edited the login middlewares?")
    line = asked("why").splitlines()[1]
    assert "login, middlewares" in line
    assert "middlewar," not in line
    assert " more by alias or spelling" in line
