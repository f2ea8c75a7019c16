"""Conflicts, aliases and pauses: what a person decides about a project's memory.

`Aliases` and `Pauses` are the namespaces of `Kept` with those names.
"""

from collections.abc import Sequence

from kept import ids
from kept.errors import InvalidInput, NotFound
from kept.memory import guards, trust
from kept.memory.context import Conflicts, Context, Ref, as_it_is, by_uid
from kept.memory.read import looking
from kept.memory.told import note_pause, without_last_told
from kept.model import OVERRIDES, Alias, Conflict, Memory, Pause, replace
from kept.ports import Reader, Storage, Transaction
from kept.recall.pipeline import live_side
from kept.recall.vocabulary import as_mapping as alias_mapping
from kept.recall.vocabulary import is_default
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.duplicates import supersede
from kept.writing.redact import redact
from kept.writing.rejections import reject

MAX_OTHERS = 50  # words that one word stands for


def conflicts(context: Context, *, resolved: bool) -> Conflicts:
    """List the open contradictions between live memories; with `resolved`, all contradictions."""
    with looking(context.readable()) as readers:
        found = [conflict for reader in readers for conflict in reader.all(Conflict)]
        if resolved:
            return found
        unsettled = [conflict for conflict in found if conflict.resolved_at is None]
        return [one for one in unsettled if all(live_side(uid, readers) for uid in (one.left, one.right))]


def resolve(context: Context, conflict: Ref, keep: Ref) -> Memory:
    """Settle a contradiction: `keep` stays and counts as verified, the other one is archived as superseded.

    Raises InvalidInput if `keep` is forgotten or archived: settling it would leave neither of the two.
    """
    number = ids.parse_conflict_ref(conflict)
    storage, kept = context.find_live(keep)
    storage = _with_conflict(context, number, kept) or storage

    def work(tx: Transaction) -> tuple[Memory, int]:
        found = tx.get(Conflict, number)
        if found is None:
            raise NotFound(f"There is no conflict c{number}.", hint="`kept review conflicts` shows them.")
        if kept.uid not in (found.left, found.right):
            raise InvalidInput(
                f"Memory {kept.ref} is not part of conflict c{number}.",
                hint="`kept review conflicts` shows both sides.",
            )
        at = tx.stamp.at
        other = by_uid(tx, found.right if kept.uid == found.left else found.left)
        current = as_it_is(tx, kept) if kept.space == storage.space else kept
        if current.is_archived:
            raise NotFound(f"Memory {current.ref} was archived in the meantime.", hint="Nothing was changed.")
        if other is not None and not other.is_low_trust:
            trust.check_vouched(context, current, "resolve")
        if context.is_person:
            current = current.vouched_for()
        goes = other is not None and not other.is_archived
        if other is not None and goes:
            guards.check_unguarded(context, tx, other)
            supersede(tx, other, current, at)
            reject(tx, other, "overruled")
        tx.put(replace(found, resolved_at=at), "resolve")
        if kept.space != storage.space:  # a global memory holds in other projects as well: nothing of it changes
            return current, -goes
        if other is None:
            current = _overriding(current, found)
        return tx.put(replace(current, verified_at=at, updated_at=at), "resolve"), -goes

    settled, delta = context.write(storage, work)
    context.tell_write(storage, delta)
    return settled


def _overriding(memory: Memory, conflict: Conflict) -> Memory:
    """Return a memory of the project that holds here instead of a global one, which stays for other projects."""
    known = (memory.data or {}).get(OVERRIDES, [])
    shared = conflict.left if conflict.right == memory.uid else conflict.right
    return replace(memory, data={**(memory.data or {}), OVERRIDES: [*dict.fromkeys((*known, shared))]})


def _with_conflict(context: Context, number: int, kept: Memory) -> Storage | None:
    """Return the storage that holds a conflict of this memory: a project has those with global memory as well."""
    for storage in context.readable():
        with storage.reading() as reader:
            found = reader.get(Conflict, number)
        if found is not None and kept.uid in (found.left, found.right):
            return storage
    return None


def add_alias(context: Context, word: str, *expands_to: str) -> Alias:
    """From now on, a query for `word` also finds memories that hold one of the others."""
    word = redact(word.strip()).text.lower()
    others = tuple(dict.fromkeys(redact(other.strip()).text.lower() for other in expands_to))
    for part in (word, *others):
        check_text(part, "An alias", MAX_NAME_CHARS)
    _check_others(word, others)
    with context.switching() as tx:
        known = _alias(tx, word)
        if known is None:
            before = alias_mapping(()).get(word, ())  # a line of its own stands in place of the default
            alias = Alias(word=word, expands_to=tuple(dict.fromkeys((*before, *others))))
            return alias if alias.expands_to == before else tx.add(alias, "alias")
        both = tuple(dict.fromkeys((*known.expands_to, *others)))
        if len(both) > MAX_OTHERS:
            raise InvalidInput(f"{word!r} stands for {len(known.expands_to)} words; at most {MAX_OTHERS} are possible.")
        return known if both == known.expands_to else tx.put(replace(known, expands_to=both), "alias")


def _check_others(word: str, others: Sequence[str]) -> None:
    """Raise InvalidInput unless the others can stand for the word."""
    if len(others) > MAX_OTHERS:
        raise InvalidInput(f"An alias can stand for at most {MAX_OTHERS} words, got {len(others)}.")
    if not word or not others or not all(others) or word in others:
        raise InvalidInput(
            "An alias is a word and at least one other word for it.", hint="kept alias add auth login sso"
        )


def remove_alias(context: Context, word: str) -> None:
    """From now on a query for the word searches for no other, also if Kept brings some. Raises NotFound."""
    word = word.strip().lower()
    with context.switching() as tx:
        known = _alias(tx, word)
        if not (known.expands_to if known else is_default(word)):
            raise NotFound(f"There is no alias for {word[:60]!r}.", hint="`kept alias list` shows them.")
        if known is None:
            tx.add(Alias(word=word, expands_to=()), "alias")
        elif is_default(word):
            tx.put(replace(known, expands_to=()), "alias")
        else:
            tx.remove(known, "alias")


def list_aliases(context: Context, word: str | None = None, *, own: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the words that a query expands, with what it searches as well: the defaults, and what was added here.

    `word`: only this one. `own`: without the defaults.
    """
    added = [alias for reader in context.readers() for alias in reader.all(Alias)]
    wanted = {alias.word for alias in added}
    return {
        one: others
        for one, others in alias_mapping(added).items()
        if (not own or one in wanted) and (word is None or one == word.strip().lower())
    }


def pause(context: Context, session: str | None = None) -> Pause:
    """Capture and inject nothing automatically, in the project or in one session."""
    if session is not None:
        check_text(session, "The session", MAX_NAME_CHARS)
        session = redact(session).text
        note_pause(context.spaces.home(), session, is_paused=True)
    with without_last_told(context.spaces.home()), context.switching() as tx:
        return _pause(tx, session) or tx.add(Pause(session=session, since=tx.stamp.at), "pause")


def resume(context: Context, session: str | None = None) -> bool:
    """End a pause. False: there was none."""
    if session is not None:
        note_pause(context.spaces.home(), redact(session).text, is_paused=False)
    with context.switching() as tx:
        known = _pause(tx, session)
        if known is not None:
            tx.remove(known, "resume")
        return known is not None


def is_paused(context: Context, session: str | None = None) -> bool:
    """Whether it is paused, in the project or in that session."""
    context.readable()
    return context.is_paused(session)


def _alias(reader: Reader, word: str) -> Alias | None:
    return next((alias for alias in reader.all(Alias) if alias.word == word), None)


def _pause(reader: Reader, session: str | None) -> Pause | None:
    return next((pause for pause in reader.all(Pause) if pause.session == session), None)
