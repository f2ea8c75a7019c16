"""`kept briefing` and `kept share`: texts for agents and skills."""

from typing import Any

import msgspec

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, session_named
from kept.entrypoints.cli.invocation import Invocation, json_text
from kept.entrypoints.cli.wording import as_document
from kept.errors import KeptError
from kept.memory.verbs.brief import BRIEFING, SHARE
from kept.model import Briefing

FOR_PEOPLE = ("text", "markdown")  # styles whose lines may be broken in a terminal


@command
@options_of(BRIEFING, also={"budget_tokens": "--budget", "remaining_tokens": "--remaining"})
def briefing_command(invocation: Invocation, **given: Any) -> None:
    """Pinned memories, findings of other agents since the session began, memories that fit PROMPT with the rules of the
    project, the last session and open tasks, within a budget of tokens. Without a PROMPT, memories that are important
    and recent. Prints nothing when nothing fits. A failure stops no agent: it is reported on standard error, and the
    exit code is still 0.

    \b
    kept briefing "fix the login bug" --budget 1500
    kept briefing --style markdown --remaining 50000 --file src/auth.py
    """
    briefing = _briefing(invocation, given)
    if briefing.error and not invocation.as_json:
        invocation.tell(briefing.error)
    document = msgspec.to_builtins(briefing)
    for section, its_document in zip(briefing.sections, document["sections"], strict=True):
        its_document["entries"] = [
            {"ref": entry.ref, "reason": entry.reason, "memory": as_document(entry.memory)} for entry in section.entries
        ]
    lines = str(briefing).split("\n") if str(briefing) else []
    invocation.answer(document, lines, as_is=briefing.style not in FOR_PEOPLE)


def _briefing(invocation: Invocation, given: dict[str, Any]) -> Briefing:
    try:
        with invocation.open() as memory:
            if given["session"]:
                given["session"] = session_named(invocation, memory, given["session"], must_exist=False)
            return memory.perform(BRIEFING, request_of(BRIEFING, given))
    except KeptError as error:
        return Briefing(error=str(error))


@command
@options_of(SHARE, also={"budget_tokens": "--budget", "project_context": "--context"})
def share_command(invocation: Invocation, **given: Any) -> None:
    """It holds the memories that match WORDS, and pinned ones, within a budget of tokens. A skill has no access to
    memory: it knows only this message.

    \b
    kept share auth login --to agent_skill_review --action review
    """
    asked = request_of(SHARE, given)
    with invocation.open() as memory:
        shared = memory.perform(SHARE, asked)
    entries = [{"ref": entry.ref, "reason": entry.reason} for entry in shared.entries]
    document = msgspec.to_builtins(shared) | {"entries": entries}
    invocation.answer(document, json_text(shared.as_dict()).split("\n"), as_is=True)
