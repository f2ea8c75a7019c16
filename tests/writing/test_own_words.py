"""Of a message of the user, only the user's own words are read: nothing of them is lost, and no program speaks."""

import pytest

from kept.model import Message
from kept.writing.quotes import own_words_in

OWN = "Never push to main directly."
FOREIGN = "Always answer in JSON."


def own(text: str) -> str:
    return own_words_in(Message(id="m", role="user", content=text))


@pytest.mark.parametrize(
    "placeholder",
    [
        "<ticket-id> goes into every commit message.",
        "Commits look like this:\n<ticket-id>: text of the commit",
        "Commits look like this:\n<type>(<scope>): text of the commit",
        "Folders are named\n<year>/<month>/<customer>",
        "The form has\n<input type='text' name='q'>",
        "Branches are called feature/<ticket-id>.",
    ],
)
def test_a_placeholder_takes_nothing_with_it(placeholder: str) -> None:
    assert own(f"{placeholder}\n\n{OWN}").endswith(OWN)


@pytest.mark.parametrize("tag", ["system-reminder", "page", "email from='qa'", "private"])
def test_an_element_that_is_never_closed_is_quoted_to_the_end(tag: str) -> None:
    assert FOREIGN not in own(f"Please look.\n<{tag}>{FOREIGN}")
    assert FOREIGN not in own(f"Please look.\n<{tag}>\n{FOREIGN}")
    assert FOREIGN not in own(f"Please look.\n<{tag}> {FOREIGN}")


@pytest.mark.parametrize(
    "head",
    [
        "Stop hook feedback:\n",
        "UserPromptSubmit hook success: ",
        "PreToolUse:Bash hook additional context: ",
        "PostToolUse:Write hook blocking error from command: ./check.sh: ",
        "Operation stopped by hook: ",
        "Prompt was blocked by a UserPromptSubmit hook: ",
        "Additional context from preToolUse hook:\n",
    ],
)
def test_the_words_of_a_hook_are_not_the_users(head: str) -> None:
    assert own(f"{head}{FOREIGN}") == ""
    assert FOREIGN in own(f"The hook is done. {FOREIGN}")


def test_of_a_slash_command_only_its_arguments_are_the_users() -> None:
    command = "<command-message>deploy is running…</command-message>\n<command-name>/deploy</command-name>\n"
    template = f"\n## Steps\n1. {FOREIGN}"
    assert own(command + template) == ""
    assert own(f"{command}<command-args>{OWN}</command-args>{template}") == OWN
    assert own(f"<command-name>/model</command-name>\n<command-args></command-args>{template}") == ""


@pytest.mark.parametrize(
    "head",
    [
        "This session is being continued from a previous conversation that ran out of context. ",
        "Please continue the conversation from where we left it off without asking the user any further questions. ",
        "Another language model started to solve this problem and produced a summary of its thinking process. ",
        "You are performing a CONTEXT CHECKPOINT COMPACTION. ",
        "Your context was compacted. ",
    ],
)
def test_what_a_host_writes_when_it_compacts_is_not_the_users(head: str) -> None:
    assert own(f"{head}{FOREIGN}") == ""


@pytest.mark.parametrize(
    "template",
    [
        f"---\ndescription: Review a change\nallowed-tools: Bash\n---\n\n{FOREIGN}",
        f"# Review\n\n{FOREIGN}\n\n## Steps\n\n1. {FOREIGN}",
        f"## User Input\n\n{FOREIGN}\n\n## Output\n\nA list.",
    ],
)
def test_the_template_of_a_command_is_not_the_users(template: str) -> None:
    assert own(template) == ""


def test_a_message_with_one_heading_or_a_plan_is_the_users() -> None:
    assert OWN in own(f"# Branches\n\n{OWN}")
    assert OWN in own(f"Implement the following plan:\n# Branches\n\n{OWN}\n\n# Tests\n\nRun them.")
