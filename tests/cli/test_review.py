"""`kept review`: what a person or an agent sees, and how they decide."""

import json

import click
import pytest
from click.testing import CliRunner

from kept.entrypoints.cli.frame import root
from kept.entrypoints.cli.invocation import Invocation, keys_of
from tests.cli.shell import Shell
from tests.cli.test_slash import Person

ALWAYS, NEVER = "Always use Fastify for the public API server", "Never use Fastify for the public API server"


@pytest.fixture
def old(shell: Shell) -> Shell:
    """A contradiction, and a memory that is past its time."""
    shell("remember", ALWAYS, "--kind", "decision")
    shell("remember", "The release is planned for May", "--kind", "progress")
    shell.clock.advance(days=20)
    shell("remember", NEVER, "--kind", "decision")
    return shell


def test_a_review_lists_each_memory_with_reason_and_proposal(old: Shell) -> None:
    """B13: each finding with its reason and a proposal in words."""
    assert old("review").splitlines() == [
        f"[id:1] decision: {ALWAYS}",
        "    conflict: contradicts [id:3]",
        f"    [id:3] decision: {NEVER}",
        "    proposed: supersede:1=3 (3 replaces 1)",
        "[id:2] progress: The release is planned for May",
        "    stale: not used or confirmed for 20 days; the shelf life of its kind is 14 days",
        "    proposed: archive:2",
        "In total: 1 conflict, 1 stale. Checked: 3 memories and 0 recent messages.",
        "`kept review --apply DECISION` carries out one, `--apply proposed` all of these.",
    ]
    assert old("review", "--reason", "unused") == "There is nothing to review.\n"


def test_an_agent_reads_json_and_answers_with_decisions(old: Shell) -> None:
    """B13: for an agent to decide."""
    findings = old.json("review")["findings"]
    assert [finding["proposed"] for finding in findings] == [
        {"action": "supersede", "ref": "1", "by": "3"},
        {"action": "archive", "ref": "2", "by": None},
    ]
    given = json.dumps({"decisions": [finding["proposed"] for finding in findings]})
    applied = old.json("review", "--apply", "-", input=given)["applied"]
    assert [one["memory"]["reason"] for one in applied] == ["superseded", "expired"]
    assert old("review") == "There is nothing to review.\n"
    old("undo")
    assert len(old.json("review")["findings"]) == 2


def test_decisions_are_options(old: Shell) -> None:
    said = old("review", "--apply", "keep:2", "--apply", "supersede:1=3")
    assert said.splitlines() == [
        "[id:2] stays, and counts as verified.",
        "[id:1] is archived, replaced by [id:3].",
        "`kept undo` undoes all of it.",
    ]


def test_all_proposals_at_once_need_a_yes(old: Shell) -> None:
    assert "Carry out 2 proposals?" in old.fails("review", "--apply", "proposed")
    assert len(old.json("review", "--apply", "proposed", "--yes")["applied"]) == 2
    assert old("review") == "There is nothing to review.\n"
    assert old("review", "--apply", "proposed") == "No decision was made. Nothing was changed.\n"


def test_in_a_terminal_you_are_asked_about_each(old: Shell) -> None:
    """B13: for a person to decide."""
    person = Person(old, ["or 3 by 1", "later"])
    said = person.type("review")
    assert "[id:3] is archived, replaced by [id:1]." in said
    assert person.asked == [
        (
            "1 of 2",
            ["replace 1 by 3", "or 3 by 1", "both stay", "archive 1", "forget 1", "later", "edit", "quit", "help"],
        ),
        ("2 of 2", ["archive", "keep", "forget", "later", "edit", "undo", "quit", "help"]),
    ]
    assert old.json("show", "3")["superseded_by"] == old.json("show", "1")["uid"]
    old("undo")
    assert "No decision was made" in Person(old, ["quit"]).type("review")
    assert "[id:2] is forgotten." in Person(old, ["later", "forget"]).type("review")
    assert list(keys_of(person.asked[0][1])) == ["r", "o", "b", "a", "f", "l", "e", "q", "?"]
    assert "In total" in Person(old, []).type("review", "--list")


def test_a_review_explains_its_keys_goes_back_and_opens_the_editor(old: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.edit", lambda page, extension: page.replace("tags: ", "tags: checked"))
    person = Person(old, ["help", "archive 1", "undo", "both stay", "edit"])
    said = person.type("review")
    assert [question for question, _ in person.asked] == ["1 of 2", "1 of 2", "2 of 2", "1 of 2", "2 of 2"]
    assert "[id:1] stays" in said
    assert "[id:1] is archived" not in said, "the answer before was taken back"
    assert "both hold: the question is settled" in said
    assert old.json("show", "2")["tags"] == ["checked"]


@pytest.mark.parametrize("interrupt", [click.Abort, KeyboardInterrupt])
def test_an_interrupted_review_changes_nothing_and_says_how_to_carry_out_what_was_decided(
    old: Shell, interrupt: type[BaseException]
) -> None:
    picks = ["both stay"]

    def pick(question: str, options: object) -> str:
        if not picks:
            raise interrupt
        return picks.pop()

    invocation = Invocation(clock=old.clock, picks=pick)
    result = CliRunner(env=old.environment).invoke(root, ["review"], obj=invocation)
    assert "No decision was carried out. This does it: kept review --apply keep:1\n" in result.stderr
    assert result.exit_code == 130
    assert len(old.json("review")["findings"]) == 2
    assert old("review", "--apply", "keep:1").startswith("[id:1] stays")


def test_an_interrupt_in_the_editor_names_the_decisions_as_well(old: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(page: str, extension: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("click.edit", interrupted)
    picks = ["edit", "both stay"]
    invocation = Invocation(clock=old.clock, picks=lambda question, options: picks.pop())
    result = CliRunner(env=old.environment).invoke(root, ["review"], obj=invocation)
    assert "No decision was carried out. This does it: kept review --apply keep:1\n" in result.stderr
    assert result.exit_code == 130


@pytest.mark.parametrize("answer", ["interrupt", "no"])
def test_a_promotion_that_is_not_agreed_to_at_the_end_loses_no_decision(old: Shell, answer: str) -> None:
    old("remember", "Write tests first", "--kind", "convention", "--tag", "proposed-global")
    picks = ["promote", "both stay", "quit"]

    def ask(question: str) -> bool:
        if answer == "interrupt":
            raise click.Abort
        return False

    invocation = Invocation(clock=old.clock, picks=lambda question, options: picks.pop(0), ask=ask)
    result = CliRunner(env=old.environment).invoke(root, ["review"], obj=invocation)
    assert "This does it: kept review --apply promote:4 --apply keep:1\n" in result.stderr
    assert result.exit_code == (130 if answer == "interrupt" else 1)


def test_an_interrupted_review_without_decisions_says_nothing(old: Shell) -> None:
    def pick(question: str, options: object) -> str:
        raise click.Abort

    result = CliRunner(env=old.environment).invoke(root, ["review"], obj=Invocation(clock=old.clock, picks=pick))
    assert "carried out" not in result.stderr
    assert result.exit_code == 130


@pytest.mark.parametrize(
    ("arguments", "given", "says"),
    [
        (["--apply", "burn:1"], None, "'burn:1' is not a decision. Write keep:3"),
        (["--apply", "archive:9"], None, "There is no memory 9."),
        (["--apply", "-"], "{}", "The decisions cannot be read: it has no `decisions`."),
        (["--apply", "-"], "[1]", "The decisions cannot be read: Expected"),
        (["--apply", "-"], "nonsense", "The decisions cannot be read:"),
        (["--apply", "-"], '[{"action": "burn", "ref": "1"}]', "The decisions cannot be read: Invalid enum value"),
    ],
)
def test_what_is_no_decision_is_refused(old: Shell, arguments: list[str], given: str | None, says: str) -> None:
    assert old.fails("review", *arguments, input=given).startswith(says)
    assert len(old.json("review")["findings"]) == 2


def test_a_proposal_says_who_decides_about_it(shell: Shell) -> None:
    said = shell("propose", "Write tests first", "--kind", "convention")
    assert said.splitlines() == [
        "Kept: [id:1] (convention).",
        "`kept review --reason global` asks whether all projects get it.",
    ]


def test_status_mentions_what_agents_propose_for_all_projects(shell: Shell) -> None:
    shell("remember", "Prefers short answers", "--kind", "preference", "--tag", "proposed-global")
    assert "1 memory proposed for all projects. `kept review --reason global` asks you." in shell("status")
    assert "proposed: promote:1" in shell("review", "--reason", "global")
    assert shell("review", "--apply", "promote:1", "--yes").startswith("[id:g1] is in global memory now.")


def test_the_counts_of_a_review_are_in_the_plural(shell: Shell) -> None:
    for minutes, room in ((30, "lobby"), (45, "kitchen")):
        shell("remember", f"The light in the {room} goes off after {minutes} minutes")
        shell("remember", f"The light in the {room} goes off after {minutes * 2} minutes")
    count = len(shell.json("review", "conflicts")["conflicts"])
    assert count > 1
    assert f"In total: {count} conflicts" in shell("review", "--list")


def test_applying_the_proposed_duplicates_archives_no_different_fact(shell: Shell) -> None:
    facts = [
        "Deploys of the billing service run on Mondays after the stand-up",
        "Deploys of the billing service run on Sundays after the stand-up",
        "The import job of the billing service writes to the primary ledger",
        "The important job of the billing service writes to the primary ledger",
        "Christian approves the invoices of the northern region before they go out",
        "Christina approves the invoices of the northern region before they go out",
        "The cache of the search cluster is enabled for customers in Europe",
        "The cache of the search cluster is not enabled for customers in Europe",
        "The brochure is printed in Antwerp",
    ]
    for fact in facts:
        shell("remember", fact)
    shell("remember", f"{facts[-1]}!")
    shell("review", "--reason", "duplicate", "--apply", "proposed", "--yes")
    left = {one["content"].rstrip("!") for one in shell.json("list", "--limit", "50")["memories"]}
    assert left == set(facts)
    assert len(shell.json("list", "--limit", "50")["memories"]) == len(facts)


def test_keeping_both_names_the_contradiction_that_it_settles(shell: Shell) -> None:
    shell("remember", "Deploys of the shop happen on Tuesdays")
    shell("remember", "Deploys of the shop happen on Thursdays")
    said = shell("review", "--apply", "keep:1")
    assert "[id:1] stays, and so does [id:2] (c1): that contradiction is settled." in said
    assert shell("review", "conflicts") == "No memories contradict each other.\n"


def test_a_memory_is_archived_as_wrong(shell: Shell) -> None:
    shell("remember", "Deploys of the shop happen on Tuesdays")
    assert "[id:1] is archived as wrong" in shell("review", "--apply", "wrong:1")


def test_a_global_memory_that_gives_way_stays_for_other_projects(shell: Shell) -> None:
    shell("remember", "Indent Python with tabs", "--kind", "preference", "--tier", "global", "--yes")
    shell("remember", "Indent Python with spaces", "--kind", "preference")
    said = shell("review", "--apply", "supersede:g1=1", "--yes")
    assert "[id:g1] stays for other projects; in this one [id:1] holds." in said
    assert "Indent Python with tabs" in shell("list")


def test_a_settled_contradiction_does_not_show_a_forgotten_text(shell: Shell) -> None:
    shell("remember", "Deploys of the shop happen on Tuesdays")
    shell("remember", "Deploys of the shop happen on Thursdays")
    shell("review", "--apply", "keep:1")
    shell("forget", "1", "--yes")
    said = shell("review", "conflicts", "--all")
    assert "Tuesdays" not in said
    assert "[id:1] (forgotten)" in said
