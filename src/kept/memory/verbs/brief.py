"""Briefings for agents, and messages for skills."""

from typing import Annotated, Literal

from msgspec import Struct

from kept.memory import brief, past
from kept.memory.context import Context
from kept.memory.session_summary import still_told as still_told
from kept.memory.share import SHARE_TOKENS, ShareResult
from kept.memory.share import share as share_with
from kept.memory.verbs.declare import Returns, Tool, Verb
from kept.memory.verbs.fields import AsOf, FilesAtHand, FloorName, about
from kept.model import Briefing

Tokens = Annotated[int, about("Tokens at most.", metavar="TOKENS", least=0)] | None


class Brief(Struct, frozen=True, kw_only=True):
    """The situation of an agent that wants a briefing."""

    prompt: Annotated[str, about("The task ahead, in a few words.", metavar="PROMPT", is_text=True)] = ""
    budget_tokens: Tokens = None
    remaining_tokens: (
        Annotated[
            int,
            about("What is left of the context: take at most 8 % of it.", metavar="TOKENS", least=0),
        ]
        | None
    ) = None
    style: Annotated[Literal["xml", "markdown", "text", "json"], about("How to write it.")] = "xml"
    files: FilesAtHand = ()
    session: Annotated[str, about("Add findings of the other agents of this session.", metavar="SESSION")] | None = None
    task: Annotated[str, about("Add the notes of this task.", metavar="TASK")] | None = None
    shares: (
        Annotated[dict[str, int], about("How task, project and global share the recalled part.", metavar="TIER=NUMBER")]
        | None
    ) = None
    head_tail: Annotated[
        int, about("Put this many of the newest and of the oldest first.", metavar="NUMBER", least=0)
    ] = 0
    max_chars: Annotated[int, about("Its length in characters at most.", metavar="NUMBER", least=0)] | None = None
    floor: FloorName | None = None
    as_of: AsOf = None


class Share(Struct, frozen=True, kw_only=True):
    """A message for a skill."""

    to: Annotated[str, about("The skill that gets the message.", metavar="SKILL", is_named=True)]
    action: Annotated[str, about("What it is to do.", metavar="ACTION", is_named=True)]
    query: Annotated[str, about("Key words of the memories it needs.", metavar="WORDS", is_text=True)]
    project_context: Annotated[str, about("Your own words instead of pins and summaries.", metavar="TEXT")] | None = (
        None
    )
    budget_tokens: (
        Annotated[int, about(f"Tokens at most; by default {SHARE_TOKENS:,}.", metavar="TOKENS", least=0)] | None
    ) = None
    files: FilesAtHand = ()


def briefing(context: Context, asked: Brief) -> Briefing:
    """Write a briefing. Failures are named in its `error`."""
    request = brief.BriefingRequest(
        prompt=asked.prompt,
        budget_tokens=asked.budget_tokens,
        remaining_tokens=asked.remaining_tokens,
        style=asked.style,
        files=asked.files,
        session=asked.session,
        task=asked.task,
        shares=asked.shares,
        head_tail=asked.head_tail,
        max_chars=asked.max_chars,
        floor=asked.floor,
        as_of=asked.as_of,
    )
    return brief.briefing(
        context, request, on_new_session=_finish_the_last, still_told=still_told, back_at=past.back_at
    )


def _finish_the_last(context: Context, session: str) -> None:
    """Finish the last session if it is over and still open, so that its end can be told."""
    from kept.memory import sessions  # extracts findings, which most briefings do without

    sessions.finish_silent(context, besides=session, most=1)


def share(context: Context, asked: Share) -> ShareResult:
    """Write a message for a skill."""
    return share_with(
        context,
        to=asked.to,
        action=asked.action,
        query=asked.query,
        project_context=asked.project_context,
        budget_tokens=asked.budget_tokens,
        files=asked.files,
    )


BRIEFING = Verb(
    name="briefing",
    names_errors=True,
    help="Write what an agent should know before it starts.",
    request=Brief,
    run=briefing,
    effect="reads",
    returns=Returns(Briefing, "The text, and what is in it."),
    python="briefing",
    cli="briefing",
    mcp=Tool("memory_briefing", usual=("prompt", "files", "budget_tokens")),
    http="GET /briefing",
    slash="/memory briefing",
)
SHARE = Verb(
    name="share",
    help="Write a message with everything a skill needs to know.",
    request=Share,
    run=share,
    effect="reads",
    returns=Returns(ShareResult, "The message, its memories, and what was left out."),
    python="share",
    cli="share",
    mcp=Tool("memory_share"),
    http="POST /share",
    slash="/memory share",
)
VERBS = (BRIEFING, SHARE)
