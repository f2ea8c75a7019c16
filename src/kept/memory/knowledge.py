"""Typed knowledge (`memory.knowledge`): decisions, conventions, failures, preferences and patterns.

The first three belong to the project, the others to the global space. Rule: all of them go down the one write path.
"""

from collections.abc import Sequence

from kept import access
from kept.errors import InvalidInput
from kept.memory import write
from kept.memory.context import BATCH, Context, Memories
from kept.model import GLOBAL, Draft, Receipt, Trust, several
from kept.ports import Stamp, Storage, Where
from kept.writing.check import clean_tags
from kept.writing.extraction.failures import MAX_MESSAGE_CHARS, error_message
from kept.writing.extraction.failures import signature_of as signature_of
from kept.writing.redact import redact

MOST = 100


def add_decision(context: Context, decision: str, tags: Sequence[str] = ()) -> Receipt:
    """Keep a decision of this project."""
    return _keep(context, Draft(content=decision, kind="decision", tags=several(tags)))


def add_convention(context: Context, convention: str, scope: str) -> Receipt:
    """Keep how things are done in this project; `scope` says where it holds: python, tests, commits …"""
    return _keep(context, Draft(content=convention, kind="convention", tags=(scope,)))


def add_failure(
    context: Context, failure: str, lesson: str, *, tags: Sequence[str] = (), files: Sequence[str] = ()
) -> Receipt:
    """Keep an error and its lesson.

    `failure` is the message of an error, or an output that contains it. Numbers, paths and times, which change
    from run to run, are no part of the signature by which `failures` finds it again.
    """
    message = _message_of(context, failure)
    content = f"{message}: {lesson}" if lesson.strip() else lesson
    data = {"signature": signature_of(message), "lesson": lesson}
    # A tool wrote the message; a person who passes it on has read it.
    trust: Trust | None = None if context.is_person else "tool"
    draft = Draft(content=content, kind="error", tags=several(tags), files=several(files), data=data, trust=trust)
    return _keep(context, draft)


def decisions(context: Context, tags: Sequence[str] = (), *, limit: int = MOST) -> Memories:
    """The decisions of this project, newest first; with `tags`, only those that have one of them."""
    return _known(context, Where(kinds=("decision",), tags=clean_tags(several(tags)), tiers=("project",)), limit)


def failures(context: Context, like: str = "", *, limit: int = MOST) -> Memories:
    """The errors of this project, newest first; with `like`, only the same error as in that output."""
    errors = Where(kinds=("error",), tiers=("session", "project"))
    if not like.strip():
        return _known(context, errors, limit)
    wanted = signature_of(_message_of(context, like))
    return [one for one in _known(context, errors, None) if (one.data or {}).get("signature") == wanted][:limit]


def add_preference(context: Context, preference: str, category: str) -> Receipt:
    """Keep what the person wants in all projects. They are asked first; `category` is style, tools, tone …"""
    return _keep(context, Draft(content=preference, kind="preference", tags=(category,), tier="global"))


def add_pattern(context: Context, pattern: str, domain: str) -> Receipt:
    """Keep what has worked and will work in other projects. They are asked only if it may be a tool's text."""
    return _keep(context, Draft(content=pattern, kind="pattern", tags=(domain,), tier="global"))


def preferences(context: Context, category: str | None = None, *, limit: int = MOST) -> Memories:
    """The preferences of the person, newest first; of one category, or of all."""
    tags = () if category is None else clean_tags((category,))
    return _known(context, Where(kinds=("preference",), tags=tags), limit, is_global=True)


def clear_all(context: Context) -> int:
    """Forget all of global memory, once a person has said yes. Returns how many memories. Can be undone."""
    access.check_write(context.actor_here(), GLOBAL)
    storage = context.spaces.shared()
    if storage is None:
        return 0
    with storage.reading() as reader:
        number = sum(reader.count(Where(shelf=shelf, scope=None)) for shelf in write.SHELVES)
    named = f"{number:,} global {'memory' if number == 1 else 'memories'}"
    context.agree(f"DANGER: Forget all {named}, for every project?", to=f"forget all {named}")
    stamp, gone = context.stamp(shared=True), 0
    for shelf in write.SHELVES:
        while batch := _forget_some(storage, Where(shelf=shelf, scope=None), stamp):
            gone += batch
    context.tell_write(storage, -gone)
    return gone


def _keep(context: Context, draft: Draft) -> Receipt:
    return write.remember(context, draft)


def _known(context: Context, where: Where, limit: int | None, *, is_global: bool = False) -> Memories:
    """Memories of the project, or of global memory, newest first. Without a limit, all of them."""
    storage = context.readable_tier("global" if is_global else "project")
    if storage is None:
        return []
    with storage.reading() as reader:
        found = reader.select(where, limit=reader.count(where) if limit is None else limit)
    context.tell_read(found)
    return found


def _message_of(context: Context, failure: str) -> str:
    """The error in a text, in a line; secrets go first, because what is cut in two is no longer recognised."""
    rules = context.rules()
    safe = redact(failure, email=rules.redact_email, allow=rules.allow).text
    message = error_message(safe) or next((line.strip() for line in safe.splitlines() if line.strip()), "")
    if not message:
        raise InvalidInput("The failure is empty.", hint="Give the message of the error.")
    return message[:MAX_MESSAGE_CHARS]


def _forget_some(storage: Storage, where: Where, stamp: Stamp) -> int:
    """Forget a batch of what is meant; how many there were."""
    with storage.writing(stamp, urgent=True) as tx:
        batch = tx.select(where, limit=BATCH)
        for memory in batch:
            tx.put(memory.archived("forgotten", stamp.at), "forget")
    return len(batch)
