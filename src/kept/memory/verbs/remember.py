"""Remember: store one statement, or many."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Struct

from kept.errors import InvalidInput
from kept.memory import write
from kept.memory.context import Context, Receipts
from kept.memory.verbs import perform
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import PYTHON_ONLY, Data, Text, about, given_data
from kept.model import Draft, Receipt, Source, Tier, as_refs, replace, several

# Of the kinds that Kept knows, those that people and agents should choose from; extraction writes the others.
TOLD_KINDS = (
    "decision",
    "architecture",
    "pattern",
    "convention",
    "warning",
    "discovery",
    "error",
    "preference",
    "fact",
)


class Remember(Struct, frozen=True, kw_only=True):
    """A statement to remember."""

    content: Annotated[
        Text,
        about(
            "One fact in one or two sentences, at most 500 characters.",
            noun="text to remember",
            metavar="TEXT",
            is_text=True,
        ),
    ]
    kind: Annotated[str, about(f"What it is: {', '.join(TOLD_KINDS)}, or another word.", metavar="KIND")] = "fact"
    tags: Annotated[tuple[str, ...], about("2-5 short topics.", one="tag", metavar="TAG")] = ()
    files: Annotated[tuple[str, ...], about("Files it is about.", one="file", metavar="PATH")] = ()
    also: Annotated[tuple[str, ...], about("3-8 synonyms.", one="also", metavar="WORD")] = ()
    replaces: Annotated[tuple[str, ...], about("Ids it replaces.", one="replaces", metavar="ID")] = ()
    check: Annotated[str, about("File or command that proves it.", metavar="TEXT")] | None = None
    importance: Annotated[float, about("From 0 to 1; by default as its kind.", metavar="NUMBER")] | None = None
    pin: Annotated[bool, about("Put it into every briefing.")] = False
    tier: Annotated[Tier, about("Where it holds and how long it lives.")] = "project"
    topic: Annotated[str, about("A new memory of the same topic replaces it.", metavar="NAME")] | None = None
    session: Annotated[str, about("The session it comes from.", metavar="SESSION")] | None = None
    key: Annotated[str, about("Repeating a call with the same key stores nothing twice.", metavar="KEY")] | None = None
    source: Annotated[Any, PYTHON_ONLY] = None  # a kept.Source
    data: Data = None


class RememberMany(Struct, frozen=True, kw_only=True):
    """Statements to remember."""

    drafts: Annotated[Any, PYTHON_ONLY]


def remember(context: Context, asked: Remember) -> Receipt:
    """Store one statement."""
    source = _checked_source(asked.source)
    if asked.session is not None:
        source = replace(source or context.source(), session=asked.session)
    draft = Draft(
        content=asked.content,
        kind=asked.kind,
        tags=asked.tags,
        files=asked.files,
        importance=asked.importance,
        pin=asked.pin,
        tier=asked.tier,
        topic=asked.topic,
        source=source,
        key=asked.key,
        data=given_data(asked.data),
    )
    _check_keys(context, [draft])
    return write.remember(context, draft, also=asked.also, replaces=asked.replaces, check=asked.check)


def remember_within(context: Context, content: str, about: Mapping[str, Any], **where: str) -> Receipt:
    """Store a statement as `memory.remember` does; `where` names the session, task or narrative that it comes from."""
    given = dict(about)
    source = replace(_checked_source(given.pop("source", None)) or context.source(), **where)
    for name in given.keys() & {"tags", "files", "also"}:
        given[name] = several(given[name])
    given["replaces"] = as_refs(given.get("replaces", ()), "replaces")
    return perform(context, REMEMBER, Remember(content=content, source=source, **given))


def _checked_source(source: object) -> Source | None:
    """Return the source that was given. Raises InvalidInput for anything else."""
    if source is None or isinstance(source, Source):
        return source
    raise InvalidInput(
        f"source must be a kept.Source, not {type(source).__name__}.", hint='Give kept.Source(origin="user", agent=…).'
    )


def remember_many(context: Context, asked: RememberMany) -> Receipts:
    """Store many statements in batches."""
    drafts = write.as_drafts(asked.drafts)
    _check_keys(context, drafts)
    return write.remember_many(context, drafts)


def _check_keys(context: Context, drafts: Sequence[Draft]) -> None:
    """Raise InvalidInput for a key that redaction would change: all such keys would be the same one."""
    keyed = [Draft(content="", key=draft.key) for draft in drafts if isinstance(draft.key, str)]
    rules = context.rules() if keyed else None
    if rules is not None and any(rules.redacted(draft).draft != draft for draft in keyed):
        raise InvalidInput(
            "key has a secret or an e-mail address, which is redacted, so other keys would be the same.",
            hint="Give a digest of it.",
        )


REMEMBER = Verb(
    name="remember",
    help="Store one statement.",
    request=Remember,
    run=remember,
    effect="writes",
    returns=Returns(Receipt, "What became of it: stored, strengthened, candidate or refused, and why."),
    python="remember",
    cli="remember",
    mcp=Tool("memory_store", usual=("content", "kind", "tags", "files", "tier", "also", "replaces", "check")),
    http="POST /memories",
    slash="/remember",
)
REMEMBER_MANY = Verb(
    name="remember_many",
    help="Store many statements in batches; one receipt each, in order.",
    request=RememberMany,
    run=remember_many,
    effect="writes",
    returns=Returns(Receipt, "A receipt for each, in order.", many="receipts"),
    python="remember_many",
    cli=NotHere("`kept import` reads a file with many."),
    mcp=NotHere("An agent stores one fact a call, so that each is worded on purpose."),
    http=NotHere("Send one POST for each, with an idempotency key."),
    slash=NotHere("A chat line holds one statement."),
)
VERBS = (REMEMBER, REMEMBER_MANY)
