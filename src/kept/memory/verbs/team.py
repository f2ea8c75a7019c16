"""Team memory in a git ref of the repository's remote: share, push, pull, and whose statements are accepted."""

from typing import Annotated

from msgspec import Struct

from kept.memory import team
from kept.memory.context import Context, Memories
from kept.memory.team import TeamStatus
from kept.memory.team_state import TeamExchange, TeamMember
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import about
from kept.model import Memory

NO_AGENT_SHARES = NotHere("It sends memories off this machine, or lets others' in: a person runs `kept team`.")
NO_CLONE = NotHere("A server has no clone of the repository; run `kept team` in yours.")

Remote = (
    Annotated[str, about("The remote of the repository; by default origin, or the only one.", metavar="NAME")] | None
)


class ShareMemories(Struct, frozen=True, kw_only=True):
    """Memories of the project."""

    refs: Annotated[tuple[int | str, ...], about("Ids of memories.", one="ref", metavar="REF", is_positional=True)] = ()


class TeamRemote(Struct, frozen=True, kw_only=True):
    """Remote that has the team's ref."""

    remote: Remote = None


class TrustAuthor(Struct, frozen=True, kw_only=True):
    """An author of commits in the ref."""

    author: Annotated[str, about("Their address, as `kept team status` shows it.", metavar="ADDRESS")]
    remove: Annotated[bool, about("Accept them no longer.")] = False


def share(context: Context, asked: ShareMemories) -> Memories:
    """Mark memories for the next push."""
    return team.share(context, asked.refs)


def unshare(context: Context, asked: ShareMemories) -> Memories:
    """Take memories back with the next push."""
    return team.unshare(context, asked.refs)


def push(context: Context, asked: TeamRemote) -> TeamExchange:
    """Pull, then send the shared memories."""
    return team.push(context, asked.remote)


def pull(context: Context, asked: TeamRemote) -> TeamExchange:
    """Join the statements of teammates with the project."""
    return team.pull(context, asked.remote)


def trust(context: Context, asked: TrustAuthor) -> TeamMember:
    """Accept an author as a teammate, or end that."""
    return team.trust(context, asked.author, remove=asked.remove)


def status(context: Context, asked: TeamRemote) -> TeamStatus:
    """Return the state of team memory, without asking the remote."""
    return team.status(context, asked.remote)


SHARE = Verb(
    name="team.share",
    help="Mark confirmed memories of the project, to be sent to teammates with the next push.",
    request=ShareMemories,
    run=share,
    effect="writes",
    returns=Returns(Memory, "The shared memories.", many="memories"),
    python="team.share",
    cli="team share",
    mcp=NO_AGENT_SHARES,
    http=NO_CLONE,
    slash="/memory team share",
    who="person",
    is_repeatable=True,
)
UNSHARE = Verb(
    name="team.unshare",
    help="Take memories back from teammates with the next push; they stay here.",
    request=ShareMemories,
    run=unshare,
    effect="writes",
    returns=Returns(Memory, "The memories.", many="memories"),
    python="team.unshare",
    cli="team unshare",
    mcp=NO_AGENT_SHARES,
    http=NO_CLONE,
    slash="/memory team unshare",
)
PUSH = Verb(
    name="team.push",
    help="Send shared memories to a git ref of the repository's remote, after a pull.",
    request=TeamRemote,
    run=push,
    effect="writes",
    returns=Returns(TeamExchange, "The memories that were sent, and the result of the pull."),
    python="team.push",
    cli="team push",
    mcp=NO_AGENT_SHARES,
    http=NO_CLONE,
    slash="/memory team push",
    who="person",
    is_repeatable=True,
)
PULL = Verb(
    name="team.pull",
    help="Fetch the memories that teammates have shared, and join them with this project.",
    request=TeamRemote,
    run=pull,
    effect="writes",
    returns=Returns(TeamExchange, "How many came, changed, went or wait for a yes."),
    python="team.pull",
    cli="team pull",
    mcp=NO_AGENT_SHARES,
    http=NO_CLONE,
    slash="/memory team pull",
    is_repeatable=True,
)
TRUST = Verb(
    name="team.trust",
    help="Accept an author of shared memories as a teammate.",
    request=TrustAuthor,
    run=trust,
    effect="writes",
    returns=Returns(TeamMember, "The author."),
    python="team.trust",
    cli="team trust",
    mcp=NO_AGENT_SHARES,
    http=NO_CLONE,
    slash="/memory team trust",
    who="person",
    is_repeatable=True,
)
STATUS = Verb(
    name="team.status",
    help="Show which memories are shared, and whose statements wait to be accepted.",
    request=TeamRemote,
    run=status,
    effect="reads",
    returns=Returns(TeamStatus, "The ref, the shared memories and the authors."),
    python="team.status",
    cli="team status",
    mcp=Tool("memory_team"),
    http=NO_CLONE,
    slash="/memory team status",
)
VERBS = (SHARE, UNSHARE, PUSH, PULL, TRUST, STATUS)
