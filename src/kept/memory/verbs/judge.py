"""Judge the statements that rules took from a session."""

from types import ModuleType
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from kept.memory.context import Context
from kept.memory.judge_lists import Addition, Answer, JudgeList, Judgement
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import about


class NextList(Struct, frozen=True, kw_only=True):
    """A request for the list of a session."""

    session: Annotated[str, about("Of this session; by default the oldest list.", metavar="SESSION")] | None = None


class Judge(Struct, frozen=True, kw_only=True):
    """An answer to a list."""

    list: Annotated[str, about("The code of the list.", metavar="CODE", is_named=True)]
    keep: Annotated[tuple[int, ...], about("True and worth telling.", metavar="NUMBER")] = ()
    drop: Annotated[tuple[int, ...], about("Done, overruled or of no use.", metavar="NUMBER")] = ()
    wrong: Annotated[tuple[int, ...], about("False: refused if it comes back.", metavar="NUMBER")] = ()
    rewrite: Annotated[dict[str, str], about("Number: a better statement.", metavar="NUMBER=TEXT")] = {}
    add: Annotated[
        tuple[Addition, ...], about("Missing statements: content, kind, files, replaces (numbers).", metavar="JSON")
    ] = ()


def proposals(context: Context, asked: NextList) -> JudgeList:
    """Return the list of statements that waits for a judge."""
    judging = _judging()
    storage = judging.project_of(context)
    if asked.session is not None and storage is not None:
        found: JudgeList = judging.list_of(context, storage, asked.session)
    else:
        found = judging.next_list(context)
    return found


def judge(context: Context, asked: Judge) -> Judgement:
    """Settle a list."""
    answer = Answer(keep=asked.keep, drop=asked.drop, wrong=asked.wrong, rewrite=asked.rewrite, add=asked.add)
    settled: Judgement = _judging().judge(context, asked.list, answer)
    return settled


def judge_in_parts(context: Context, asked: Judge) -> Judgement:
    """Settle what is decided, and leave the rest of the list for later."""
    answer = Answer(keep=asked.keep, drop=asked.drop, wrong=asked.wrong, rewrite=asked.rewrite, add=asked.add)
    settled: Judgement = _judging().judge(context, asked.list, answer, is_whole=False)
    return settled


def _judging() -> ModuleType:
    from kept.memory import judging  # takes sessions apart, which a server does without until it is asked

    return judging


PROPOSALS = Verb(
    name="proposals",
    help="Show the statements of a session that wait for a judge.",
    request=NextList,
    run=proposals,
    effect="reads",
    returns=Returns(JudgeList, "The numbered statements, and the code of the list."),
    python="proposals",
    cli="judge",
    mcp=Tool("memory_judge"),
    http="GET /proposals",
    slash="/memory proposals",
)
JUDGE = Verb(
    name="judge",
    help="Settle the statements that were taken from a session: which are kept, dropped, rewritten or missing.",
    request=Judge,
    run=judge,
    effect="destroys",
    returns=Returns(Judgement, "The memories that were kept, rewritten, dropped and added."),
    python="judge",
    cli="judge",
    mcp=Tool("memory_judge", usual=("list", "keep", "drop", "wrong", "rewrite", "add"), when="list"),
    http="POST /proposals",
    slash=NotHere("Numbers and texts of many statements do not fit a chat line; `kept judge` asks one by one."),
)
JUDGE_IN_PARTS = replace(JUDGE, run=judge_in_parts)  # for the page, where a person decides a few at a time
VERBS = (PROPOSALS, JUDGE)
