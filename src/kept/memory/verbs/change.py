"""Change one memory: its rank, its text, its place; hide it, bring it back, undo."""

from typing import Annotated

from msgspec import Struct

from kept.memory import change, guards, promotion, undo
from kept.memory.context import Context, Events
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import MAX_TEXT_CHARS, Ref, about
from kept.model import CallGuard, Event, GuardMode, Memory, Receipt, Tier

AFTER = Returns(Memory, "The memory after it.")


class One(Struct, frozen=True, kw_only=True):
    """One memory."""

    ref: Ref


class Revise(Struct, frozen=True, kw_only=True):
    """What becomes different in a memory."""

    ref: Ref
    content: (
        Annotated[str, about("The whole new text.", metavar="TEXT", is_text=True, longest=MAX_TEXT_CHARS)] | None
    ) = None
    tags: Annotated[tuple[str, ...], about("The new tags, if they change.", one="tag", metavar="TAG")] | None = None
    kind: Annotated[str, about("The new kind.", metavar="KIND")] | None = None
    files: Annotated[tuple[str, ...], about("The new files.", one="file", metavar="PATH")] | None = None
    importance: Annotated[float, about("From 0 to 1.", metavar="NUMBER")] | None = None
    session: Annotated[str, about("The session of the agent that makes the change.", metavar="SESSION")] | None = None


class Promote(Struct, frozen=True, kw_only=True):
    """A memory and the tier it moves to."""

    ref: Ref
    to: Annotated[Tier, about("The tier: project, or global for all projects.", noun="tier")] = "project"


class MakeGuard(Struct, frozen=True, kw_only=True):
    """A memory, and whether a tool call that it concerns is refused or only told about it."""

    ref: Ref
    mode: Annotated[
        GuardMode, about("stop: refuse the call once; tell: only tell the memory.", noun="mode", is_positional=True)
    ]


class Undo(Struct, frozen=True, kw_only=True):
    """A change to undo."""

    event: (
        Annotated[
            int | str,
            about("An event of `history`; by default your newest change.", metavar="EVENT", is_positional=True),
        ]
        | None
    ) = None


def reinforce(context: Context, asked: One) -> Memory:
    """Raise the feedback and count a use."""
    return change.reinforce(context, asked.ref)


def demote(context: Context, asked: One) -> Memory:
    """Lower the feedback."""
    return change.demote(context, asked.ref)


def revise(context: Context, asked: Revise) -> Memory:
    """Correct a memory in place."""
    given = {name: getattr(asked, name) for name in ("content", "tags", "kind", "files", "importance")}
    wanted = {name: value for name, value in given.items() if value is not None}
    return change.revise(context, asked.ref, wanted, session=asked.session)


def pin(context: Context, asked: One) -> Memory:
    """Put a memory into every briefing."""
    return change.pin(context, asked.ref)


def unpin(context: Context, asked: One) -> Memory:
    """End a pin."""
    return change.unpin(context, asked.ref)


def forget(context: Context, asked: One) -> Memory:
    """Hide a memory everywhere."""
    return change.forget(context, asked.ref)


def restore(context: Context, asked: One) -> Memory:
    """Bring an archived or forgotten memory back."""
    return change.restore(context, asked.ref)


def promote(context: Context, asked: Promote) -> Receipt:
    """Move a memory to a tier that lives longer."""
    return promotion.promote(context, asked.ref, asked.to)


def guard(context: Context, asked: MakeGuard) -> CallGuard:
    """Have tool calls refused that concern a memory, or end that."""
    return guards.guard(context, asked.ref, asked.mode)


def undo_change(context: Context, asked: Undo) -> Events:
    """Undo one call."""
    return undo.undo(context, asked.event)


REINFORCE = Verb(
    name="reinforce",
    help="Mark a memory as helpful: it will rank higher.",
    request=One,
    run=reinforce,
    effect="writes",
    returns=AFTER,
    python="reinforce",
    cli="rate",
    mcp=Tool("memory_reinforce", usual=("ref",)),
    http="POST /memories/{ref}/reinforce",
    slash="/memory reinforce",
)
DEMOTE = Verb(
    name="demote",
    help="Mark a memory as wrong or irrelevant: it will rank lower.",
    request=One,
    run=demote,
    effect="writes",
    returns=AFTER,
    python="demote",
    cli="rate",
    mcp=Tool("memory_demote", usual=("ref",)),
    http="POST /memories/{ref}/demote",
    slash="/memory demote",
)
REVISE = Verb(
    name="revise",
    help="Correct the text of a memory; its id and feedback stay.",
    request=Revise,
    run=revise,
    effect="writes",
    returns=AFTER,
    python="revise",
    cli="edit",
    mcp=Tool("memory_update", usual=("ref", "content", "tags")),
    http="PATCH /memories/{ref}",
    slash="/memory revise",
    is_repeatable=True,
)
PIN = Verb(
    name="pin",
    help="Always include a memory.",
    request=One,
    run=pin,
    effect="writes",
    returns=AFTER,
    python="pin",
    cli="pin",
    mcp=Tool("memory_pin"),
    http="POST /memories/{ref}/pin",
    slash="/pin",
    is_repeatable=True,
)
UNPIN = Verb(
    name="unpin",
    help="Stop always including a memory.",
    request=One,
    run=unpin,
    effect="writes",
    returns=AFTER,
    python="unpin",
    cli="unpin",
    mcp=Tool("memory_unpin"),
    http="POST /memories/{ref}/unpin",
    slash="/memory unpin",
    is_repeatable=True,
)
FORGET = Verb(
    name="forget",
    help="Hide a memory everywhere; it can be restored.",
    request=One,
    run=forget,
    effect="destroys",
    returns=AFTER,
    python="forget",
    cli="forget",
    mcp=Tool("memory_forget"),
    http="POST /memories/{ref}/forget",
    slash="/forget",
    is_repeatable=True,
)
RESTORE = Verb(
    name="restore",
    help="Bring an archived or forgotten memory back.",
    request=One,
    run=restore,
    effect="writes",
    returns=AFTER,
    python="restore",
    cli="restore",
    mcp=Tool("memory_restore"),
    http="POST /memories/{ref}/restore",
    slash="/memory restore",
    is_repeatable=True,
)
PROMOTE = Verb(
    name="promote",
    help="Move a memory to a tier that lives longer.",
    request=Promote,
    run=promote,
    effect="writes",
    returns=Returns(Receipt, "The memory in its new tier."),
    python="promote",
    cli="promote",
    mcp=Tool("memory_promote"),
    http="POST /memories/{ref}/promote",
    slash="/memory promote",
)
GUARD = Verb(
    name="guard",
    who="person",
    help="Refuse tool calls that a memory concerns, once each, or only tell it again.",
    details=(
        "With `stop`, an agent's tool call is refused if it concerns a file, a command or an activity (commit, push, "
        "release …) that the memory names, and the agent is given the memory as the reason. The same call again "
        "passes. A guard that is passed three times only tells from then on."
    ),
    request=MakeGuard,
    run=guard,
    effect="writes",
    returns=Returns(CallGuard, "The guard: its memory by uid, its mode, since when, and how often it was passed."),
    python="guard",
    cli="guard",
    mcp=NotHere("Only a person decides which calls of an agent are refused."),
    http="POST /memories/{ref}/guard",
    slash="/memory guard",
    is_repeatable=True,
)
UNDO = Verb(
    name="undo",
    help="Undo the last change, or a given one.",
    request=Undo,
    run=undo_change,
    effect="writes",
    returns=Returns(Event, "The events that undid it.", many="events"),
    python="undo",
    cli="undo",
    mcp=NotHere("An agent corrects a memory with memory_update; its user undoes."),
    http="POST /undo",
    slash="/memory undo",
)
VERBS = (REINFORCE, DEMOTE, REVISE, PIN, UNPIN, FORGET, RESTORE, PROMOTE, GUARD, UNDO)
