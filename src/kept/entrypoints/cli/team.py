"""`kept team`: memories that are shared through a git ref of the repository's own remote."""

from typing import Any

import click

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import group, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted, memories
from kept.memory.team_state import TeamExchange, TeamMember
from kept.memory.verbs.declare import Verb
from kept.memory.verbs.team import PULL, PUSH, SHARE, STATUS, TRUST, UNSHARE, ShareMemories
from kept.model import Memory

REFUSED = {
    "unreadable": "not readable",
    "secret": "with a value that looks like a secret",
    "not_shared_here": "about a memory that is not shared here",
    "rewritten": "with another text than came under the same name before",
    "dated_ahead": "dated in the future",
    "erased": "about a memory that was erased here",
    "rejected": "about a statement that was rejected here",
    "invalid": "not storable",
}


@group
def team_command() -> None:
    """Shared memories are files in `refs/kept/PROJECT`, beside the branches: no branch, index or work tree is touched.
    All who can read the repository can read them. docs/teams.md explains it.
    """


def _mark(invocation: Invocation, verb: Verb[ShareMemories, list[Memory]], given: Any, said: str, *, yes: bool) -> None:
    asked = request_of(verb, given)
    if not asked.refs:
        raise click.UsageError(f"Name the memories: kept {verb.cli} REF...")
    with invocation.open(yes=yes) as memory:
        done = memory.perform(verb, asked)
    lines: list[Line] = [(Strong(f"[{one.ref}]"), f" {one.content}") for one in done]
    invocation.answer({"memories": done}, [*lines, said.format(memories(len(done)))])


@team_command.command("share")
@yes_option
@options_of(SHARE)
def share_memories(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Mark confirmed memories of the project, to be sent to teammates with the next push."""
    _mark(invocation, SHARE, given, "Marked {}. `kept team push` sends the marked ones.", yes=yes)


@team_command.command("unshare")
@yes_option
@options_of(UNSHARE)
def unshare_memories(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Take memories back from teammates with the next push; they stay here."""
    said = "{} will be taken back by `kept team push`. Clones keep the history of the ref."
    _mark(invocation, UNSHARE, given, said, yes=yes)


@team_command.command("push")
@yes_option
@options_of(PUSH)
def push_memories(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Send shared memories to a git ref of the repository's remote, after a pull.

    Each is searched for secrets once more. If others push at the same time, theirs are joined, and the push is tried
    again.
    """
    with invocation.open(yes=yes) as memory:
        done = memory.perform(PUSH, request_of(PUSH, given))
    sent = f"Sent {memories(len(done.pushed))} to {done.ref} of {done.remote}." if done.pushed else "Nothing to send."
    invocation.answer(done, [sent, *_pulled_lines(done)])


@team_command.command("pull")
@yes_option
@options_of(PULL)
def pull_memories(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Fetch the memories that teammates have shared, and join them with this project."""
    with invocation.open(yes=yes) as memory:
        done = memory.perform(PULL, request_of(PULL, given))
    invocation.answer(done, _pulled_lines(done) or ["Nothing new."])


def _pulled_lines(done: TeamExchange) -> list[Line]:
    counts = ((done.added, "new"), (done.changed, "changed"), (len(done.removed), "taken back"))
    lines: list[Line] = []
    if said := ", ".join(f"{number:,} {what}" for number, what in counts if number):
        lines.append(f"From teammates: {said}.")
    if done.conflicts:
        lines.append(f"{counted(done.conflicts, 'contradiction')}; `kept review conflicts` shows them.")
    if done.waiting:
        lines.append(
            f"{counted(done.waiting, 'change')} by authors you have not accepted: {', '.join(done.unaccepted)}."
        )
        lines.append("Until then they are of unknown trust and change nothing. `kept team trust ADDRESS` accepts one.")
    lines += [
        Dim(f"Left out {counted(number, 'change')}, {REFUSED.get(reason, reason)}.")
        for reason, number in done.refused.items()
    ]
    return [*lines, *done.notes]


@team_command.command("trust")
@yes_option
@options_of(TRUST)
def trust_author(invocation: Invocation, *, yes: bool, **given: Any) -> None:
    """Accept an author of shared memories as a teammate.

    The author of a commit is a claim: all who can push to the repository can write any name there.
    """
    with invocation.open(yes=yes) as memory:
        asked = request_of(TRUST, given)
        if not (yes or asked.remove or invocation.can_ask()):  # the error redacts the address to decide on
            author = asked.author.strip().casefold()
            known = [one for one in memory.perform(STATUS, request_of(STATUS, {})).members if one.author == author]
            invocation.tell(*(f"The author is {one.name}." for one in known))
        member = memory.perform(TRUST, asked)
    state = "is accepted as a teammate" if member.is_accepted else "is no longer accepted"
    invocation.answer(member, [f"{member.name} {state}."])


@team_command.command("status")
@options_of(STATUS)
def show_status(invocation: Invocation, **given: Any) -> None:
    """Show which memories are shared, and whose statements wait to be accepted. The remote is not asked."""
    with invocation.open() as memory:
        found = memory.perform(STATUS, request_of(STATUS, given))
    shared = f"{memories(len(found.shared))} shared"
    lines: list[Line] = [
        (Strong(found.ref), f" of {found.remote}: {shared}, {found.to_push:,} to push."),
        *map(_member_line, found.members),
    ]
    if found.waiting:
        lines.append("`kept team trust ADDRESS` accepts an author.")
    invocation.answer(found, lines)


def _member_line(one: TeamMember) -> Line:
    state = "accepted" if one.is_accepted else "not accepted"
    return f"    {one.name}: {counted(one.changes, 'change')}, {state}"
