"""`kept briefing`: what a host puts before its agent.

`kept share`: a message for a skill, which can reach nothing by itself.
"""

from typing import Any

import click
import msgspec

from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Invocation, json_text
from kept.entrypoints.cli.wording import as_document
from kept.errors import KeptError
from kept.memory.share import SHARE_TOKENS, Shared
from kept.model import Briefing, Section
from kept.recall.briefing.render import STYLES

_NUMBER = click.IntRange(0, 1_000_000_000)


@click.command("briefing", cls=Command)
@click.argument("prompt", nargs=-1)
@click.option("--budget", type=_NUMBER, metavar="TOKENS", help="Most tokens it may take.")
@click.option("--remaining", type=_NUMBER, metavar="TOKENS", help="What is left of the context; it takes 8 % of that.")
@click.option("--style", type=click.Choice(tuple(STYLES)), default="xml", show_default=True, help="How it is written.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file at hand. May be repeated.")
@click.option("--session", metavar="ID", help="The running session: brings what its other agents found.")
@click.option("--task", metavar="ID", help="The task at hand: brings what belongs to it.")
@click.option("--max-chars", type=_NUMBER, metavar="NUMBER", help="Most characters it may take.")
@pass_invocation
def briefing_command(
    invocation: Invocation,
    *,
    prompt: tuple[str, ...],
    budget: int | None,
    remaining: int | None,
    style: str,
    files: tuple[str, ...],
    session: str | None,
    task: str | None,
    max_chars: int | None,
) -> None:
    """Write what an agent should know before it starts.

    What is pinned, what other agents of the session found, what fits PROMPT, and what earlier sessions came to, within
    a budget of tokens. Without a PROMPT, what is important and recent. Prints nothing when there is nothing to tell. A
    failure stops no agent: it is told on standard error, and the exit code is still 0.

    \b
    kept briefing "fix the login bug" --budget 1500
    kept briefing --style markdown --remaining 50000 --file src/auth.py
    """
    try:
        with invocation.open() as memory:
            briefing = memory.briefing(
                " ".join(prompt),
                budget_tokens=budget,
                remaining_tokens=remaining,
                style=style,
                files=files,
                session=session,
                task=task,
                max_chars=max_chars,
            )
    except KeptError as error:
        briefing = Briefing(error=str(error))
    if briefing.error and not invocation.as_json:
        invocation.tell(briefing.error)
    invocation.answer(_document(briefing), str(briefing).split("\n") if str(briefing) else [])


def _document(briefing: Briefing) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(briefing)
    return document | {"sections": [_section_document(section) for section in briefing.sections]}


def _section_document(section: Section) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(section)
    entries = [{"ref": entry.ref, "why": entry.why, "memory": as_document(entry.memory)} for entry in section.entries]
    return document | {"entries": entries}


@click.command("share", cls=Command)
@click.argument("query", nargs=-1, required=True)
@click.option("--to", required=True, metavar="NAME", help="The skill that it is for.")
@click.option("--action", required=True, metavar="TEXT", help="What the skill is to do.")
@click.option("--context", metavar="TEXT", help="The project in your own words, instead of what is pinned.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file at hand. May be repeated.")
@click.option(
    "--budget",
    type=click.IntRange(1, 1_000_000),
    default=SHARE_TOKENS,
    show_default=True,
    metavar="TOKENS",
    help="Most tokens that the message may take.",
)
@pass_invocation
def share_command(
    invocation: Invocation,
    *,
    query: tuple[str, ...],
    to: str,
    action: str,
    context: str | None,
    files: tuple[str, ...],
    budget: int,
) -> None:
    """Write a message with what a skill needs to know.

    It holds the memories that fit QUERY, and what is pinned, within a budget of tokens. A skill reaches no memory: what
    stands in this message is all that it knows.

    \b
    kept share auth login --to agent_skill_review --action review
    """
    with invocation.open() as memory:
        shared = memory.share(
            to=to, action=action, query=" ".join(query), project_context=context, budget_tokens=budget, files=files
        )
    invocation.answer(_document_share(shared), json_text(shared.as_dict()).split("\n"))


def _document_share(shared: Shared) -> dict[str, Any]:
    return {
        "message": shared.as_dict(),
        "budget": shared.budget,
        "tokens": shared.tokens,
        "entries": [{"ref": entry.ref, "why": entry.why} for entry in shared.entries],
        "left_out": msgspec.to_builtins(shared.left_out),
        "receipt": shared.receipt,
    }
