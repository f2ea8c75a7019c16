"""`kept share`: the message for a skill."""

import json

from tests.cli.shell import Shell


def test_the_message_is_printed_as_it_is_sent(shell: Shell) -> None:
    """B15."""
    shell("remember", "The shop sells seeds", "--pin")
    shell("remember", "Headlines of the blog are short")
    printed = json.loads(shell("share", "blog", "headlines", "--to", "agent_skill_seo", "--action", "analyze"))
    assert printed == {
        "from": "user",
        "to": "agent_skill_seo",
        "type": "request",
        "payload": {
            "action": "analyze",
            "context": {
                "memory_snippet": "[id:2] fact, 2026-03-01: Headlines of the blog are short",
                "project_context": "[id:1] fact, 2026-03-01: The shop sells seeds",
            },
        },
    }
    document = shell.json("share", "blog", "headlines", "--to", "agent_skill_seo", "--action", "analyze")
    assert document["message"] == printed
    assert document["tokens"] <= document["budget"] == 1500
    assert [entry["ref"] for entry in document["entries"]] == ["2", "1"]
    assert "shared with agent_skill_seo: [id:2], [id:1]" in shell("why", document["receipt"])


def test_a_skill_shares_nothing(shell: Shell) -> None:
    """B14."""
    shell("remember", "The blog sells seeds")
    sentence = shell.fails("share", "blog", "--to", "x", "--action", "y", "--as", "skill")
    assert sentence.startswith("A skill may not read")


def test_a_bad_share_is_refused_with_a_reason(shell: Shell) -> None:
    assert "more than the budget of 3" in shell.fails("share", "x", "--to", "a", "--action", "b", "--budget", "3")
    assert "--to" in shell.fails("share", "x", "--action", "b", code=2)
