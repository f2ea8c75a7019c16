"""`kept status` and `kept why --session` say how often a hook ran out of time, and at which moment."""

from datetime import timedelta

import pytest

import kept
from kept.anchors import ToolCall
from kept.entrypoints.hook.folder import HookFolder
from kept.memory.deliver import Listener
from tests.cli.shell import Shell


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """A machine on which three hooks ran out of time: two at prompts, one at a tool call long ago."""
    shell("remember", "Deploy with make ship")
    hooks = HookFolder(shell.home)
    hooks.prepare()
    for event, session, days in (
        ("UserPromptSubmit", "s-1", 0),
        ("UserPromptSubmit", "s-2", 1),
        ("PreToolUse", "s-1", 9),
    ):
        at = f"{shell.clock() - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        about = {"agent": "claude-code", "event": event, "session": session, "at": at}
        hooks.note_failure(about, "Not done within 300 ms")
    hooks.note_failure({"agent": "claude-code", "event": "Stop"}, "Busy: the transcript waits")
    return shell


def test_status_tells_the_misses_of_the_last_days(busy: Shell) -> None:
    told = busy("status")
    assert "Out of time 2 times in the last 7 days, so an agent was told nothing: 2 at a prompt (last 20" in told
    assert "tool call" not in told
    [missed] = busy.json("status")["misses"]
    assert (missed["moment"], missed["times"]) == ("a prompt", 2)


def test_a_session_is_told_its_own_misses(busy: Shell) -> None:
    told = busy("why", "--session", "s-1")
    assert "Out of time 2 times in this session" in told
    assert "1 at a prompt (last" in told
    assert "1 at a tool call (last" in told


def test_the_receipt_of_a_refused_call_names_the_call(shell: Shell) -> None:
    shell("remember", "Never run deploy/release.sh on a Friday", "--kind", "warning", "--file", "deploy/release.sh")
    shell("guard", "1", "stop")
    with kept.open(project=shell.folder / "app", home=shell.home) as memory:
        listener = Listener(session="s-1", event="PreToolUse")
        assert memory.deliveries.for_action(ToolCall((), ("bash deploy/release.sh",)), listener).refusal
    assert "  bash deploy/release.sh\n" in shell("why", "--session", "s-1")


def test_a_machine_that_is_fast_enough_reads_nothing_of_it(shell: Shell) -> None:
    shell("remember", "Deploy with make ship")
    assert "Out of time" not in shell("status")
    assert shell.json("status")["misses"] == []
