"""`kept share`: a message for a skill, which can reach nothing by itself."""

from typing import Any

import click
import msgspec

from kept.entrypoints.cli.frame import Command, pass_invocation
from kept.entrypoints.cli.invocation import Invocation, json_text
from kept.sharing import SHARE_TOKENS, Shared


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
    invocation.answer(_document(shared), json_text(shared.as_dict()).split("\n"))


def _document(shared: Shared) -> dict[str, Any]:
    return {
        "message": shared.as_dict(),
        "budget": shared.budget,
        "tokens": shared.tokens,
        "entries": [{"ref": entry.ref, "why": entry.why} for entry in shared.entries],
        "left_out": msgspec.to_builtins(shared.left_out),
        "receipt": shared.receipt,
    }
