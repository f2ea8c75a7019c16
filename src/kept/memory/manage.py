"""Conflicts, aliases, pauses, vectors and settings: what a person decides about a project's memory.

`Aliases`, `Pauses` and `Vectors` are the namespaces of `Kept` with those names. Vectors are made outside of every
transaction and saved with recall's own notes, a few at a time: no writer waits for them, and a memory that has none
yet is found by its words. Rule: an interrupted run keeps what it has done, and the next one continues from there.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import to_builtins

from kept import access, ids, vectors
from kept.errors import Busy, InvalidInput, NotFound, SettingsError, StorageError
from kept.memory import trust
from kept.memory.context import Conflicts, Context, Ref, as_it_is, by_uid
from kept.model import GLOBAL, Alias, Conflict, Memory, Pause, replace
from kept.ports import Bookkeeping, Embedder, Reader, Storage, Transaction
from kept.recall.aliases import as_mapping as alias_mapping
from kept.recall.aliases import is_default
from kept.recall.hybrid import MODEL, WordLlama
from kept.settings import Settings
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.duplicates import supersede
from kept.writing.redact import redact

Progress = Callable[[int, int], None]  # memories done, memories in all

MAX_OTHERS = 50  # words that one word stands for
VECTOR_BATCH = 200  # memories per turn: some milliseconds
_BUSY_WAIT_S = 0.02
_BUSY_TRIES = 1_500  # hence half a minute, as for any write


def conflicts(context: Context, *, resolved: bool) -> Conflicts:
    """The open contradictions; with `resolved`, all of them."""
    found = (conflict for reader in context.readers() for conflict in reader.all(Conflict))
    return [conflict for conflict in found if resolved or conflict.resolved_at is None]


def resolve(context: Context, conflict: Ref, keep: Ref) -> Memory:
    """Settle a contradiction: `keep` stays and counts as verified, the other one is archived as superseded."""
    number = ids.parse_conflict_ref(conflict)
    storage, kept = context.find(keep)

    def work(tx: Transaction) -> tuple[Memory, int]:
        found = tx.get(Conflict, number)
        if found is None:
            raise NotFound(f"There is no conflict c{number}.", hint="`kept conflicts` shows them.")
        if kept.uid not in (found.left, found.right):
            raise InvalidInput(
                f"Memory {kept.ref} is not part of conflict c{number}.", hint="`kept conflicts` shows both sides."
            )
        at = tx.stamp.at
        other = by_uid(tx, found.right if kept.uid == found.left else found.left)
        current = as_it_is(tx, kept)
        if other is not None and not other.is_low_trust:
            trust.check_vouched(context, current, "resolve")
        if context.is_person:
            current = current.vouched_for()
        goes = other is not None and not other.is_archived
        if other is not None and goes:
            supersede(tx, other, current, at)
        tx.put(replace(found, resolved_at=at), "resolve")
        return tx.put(replace(current, verified_at=at, updated_at=at), "resolve"), -goes

    settled, delta = context.write(storage, work)
    context.tell_write(storage, delta)
    return settled


class Aliases:
    """Words that stand for others in a recall (`memory.aliases`)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def add(self, word: str, *expands_to: str) -> Alias:
        """From now on, a query for `word` also finds memories that hold one of the others."""
        word = redact(word.strip()).text.lower()
        others = tuple(dict.fromkeys(redact(other.strip()).text.lower() for other in expands_to))
        for part in (word, *others):
            check_text(part, "An alias", MAX_NAME_CHARS)
        if len(others) > MAX_OTHERS:
            raise InvalidInput(f"An alias can stand for at most {MAX_OTHERS} words, got {len(others)}.")
        if not word or not others or not all(others) or word in others:
            raise InvalidInput(
                "An alias is a word and at least one other word for it.", hint="kept alias add auth login sso"
            )
        with self._context.switching() as tx:
            known = _alias(tx, word)
            if known is None:
                before = alias_mapping(()).get(word, ())  # a line of its own stands in place of the default
                alias = Alias(word=word, expands_to=tuple(dict.fromkeys((*before, *others))))
                return alias if alias.expands_to == before else tx.add(alias, "alias")
            both = tuple(dict.fromkeys((*known.expands_to, *others)))
            if len(both) > MAX_OTHERS:
                raise InvalidInput(
                    f"{word!r} stands for {len(known.expands_to)} words; at most {MAX_OTHERS} are possible."
                )
            return known if both == known.expands_to else tx.put(replace(known, expands_to=both), "alias")

    def remove(self, word: str) -> None:
        """From now on a query for the word searches for no other, also if Kept brings some. Raises NotFound."""
        word = word.strip().lower()
        with self._context.switching() as tx:
            known = _alias(tx, word)
            if not (known.expands_to if known else is_default(word)):
                raise NotFound(f"There is no alias for {word[:60]!r}.", hint="`kept alias list` shows them.")
            if known is None:
                tx.add(Alias(word=word, expands_to=()), "alias")
            elif is_default(word):
                tx.put(replace(known, expands_to=()), "alias")
            else:
                tx.remove(known, "alias")

    def list(self) -> dict[str, tuple[str, ...]]:
        """Every word that a query expands, with what it searches as well: the defaults, and what was added here."""
        own = [alias for reader in self._context.readers() for alias in reader.all(Alias)]
        return dict(alias_mapping(own))


class Pauses:
    """Automatic capture and injection, off and on (`memory.pauses`). Explicit commands always work."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def pause(self, session: str | None = None) -> Pause:
        """Capture and inject nothing automatically, in the project or in one session."""
        if session is not None:
            check_text(session, "The session", MAX_NAME_CHARS)
            session = redact(session).text
        with self._context.switching() as tx:
            return _pause(tx, session) or tx.add(Pause(session=session, since=tx.stamp.at), "pause")

    def resume(self, session: str | None = None) -> bool:
        """End a pause. False: there was none."""
        with self._context.switching() as tx:
            known = _pause(tx, session)
            if known is not None:
                tx.remove(known, "resume")
            return known is not None

    def status(self, session: str | None = None) -> bool:
        """Whether it is paused, in the project or in that session."""
        self._context.readable()
        return self._context.is_off(session)


class Vectors:
    """The vectors that profile `hybrid` compares (`memory.vectors`)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def check(self) -> None:
        """Raise SettingsError, which says what to install, unless vectors can be made here."""
        self._context.find_embedder().embed([""])

    def on(self, *, progress: Progress = lambda done, total: None) -> None:
        """Make a vector for every memory that has none. `progress(done, total)` is called along the way.

        Writes in small turns and lets others go first. After an interruption the next call continues from there.
        """
        for storage in self._context.readable():
            make_all(storage, self._context.find_embedder(), progress)

    def off(self) -> None:
        """Remove the vectors of the project. Those of global memory, which other projects may use, stay."""
        for storage in self._context.readable():
            if storage.space != GLOBAL:
                access.check_write(self._context.actor_here(), storage.space)
                drop_all(storage)

    def status(self) -> dict[str, dict[str, Any]]:
        """For each readable space: the model of its vectors, how many there are, how many memories have none yet."""
        states = {}
        for storage in self._context.readable():
            with storage.reading() as reader:
                states[storage.space] = to_builtins(reader.vector_state())
        return states


def _alias(reader: Reader, word: str) -> Alias | None:
    return next((alias for alias in reader.all(Alias) if alias.word == word), None)


def _pause(reader: Reader, session: str | None) -> Pause | None:
    return next((pause for pause in reader.all(Pause) if pause.session == session), None)


# Making vectors


def embedder_of(settings: Settings) -> Embedder:
    """The model that the settings name; by default the one that Kept includes. Raises SettingsError."""
    if settings.vector_model not in (None, MODEL):
        raise SettingsError(
            f"Unknown vector model {settings.vector_model!r}.",
            hint=f"Set vector_model to {MODEL}, or give kept.open your own: embedder=….",
        )
    return WordLlama()


def catch_up(storage: Storage, embedder: Embedder) -> int:
    """Make vectors for the first few memories without one, unless somebody is writing. Returns how many are left."""
    if not _is_chosen(storage, embedder.model):
        with storage.bookkeeping() as notes:
            if notes is not None:
                notes.choose_model(embedder.model)
    with storage.reading() as reader:
        if not reader.vector_state().pending:
            return 0
        waiting = reader.vectorless(limit=VECTOR_BATCH)
    made = _made(waiting, embedder)
    with storage.bookkeeping() as notes:
        if notes is not None:
            notes.save_vectors(embedder.model, made)
    with storage.reading() as reader:
        return reader.vector_state().pending


def make_all(storage: Storage, embedder: Embedder, progress: Progress) -> None:
    """Give every memory its vector, in small turns. Goes on where an earlier run was interrupted.

    Raises Busy when others write without a pause, StorageError when nothing can be saved.
    """
    if not _is_chosen(storage, embedder.model):
        with _patient_bookkeeping(storage) as notes:
            notes.choose_model(embedder.model)
    with storage.reading() as reader:
        state = reader.vector_state()
    total, last = state.done + state.pending, 0
    while True:
        with storage.reading() as reader:
            state, waiting = reader.vector_state(), reader.vectorless(limit=VECTOR_BATCH)
        progress(state.done, max(total, state.done + state.pending))
        if not waiting:
            return
        if waiting[0].id == last:
            message = f"The vector of memory {waiting[0].ref} was not saved."
            raise StorageError(message, hint="Check for a full disk, or another program that uses a different model.")
        last = waiting[0].id
        made = _made(waiting, embedder)
        with _patient_bookkeeping(storage) as notes:
            notes.save_vectors(embedder.model, made)


def drop_all(storage: Storage) -> None:
    """Keep no vectors, and make none."""
    with _patient_bookkeeping(storage) as notes:
        notes.choose_model(None)


def _is_chosen(storage: Storage, model: str) -> bool:
    with storage.reading() as reader:
        return reader.vector_state().model == model


def _made(memories: Sequence[Memory], embedder: Embedder) -> list[tuple[Memory, vectors.Vector]]:
    rows = vectors.pack(embedder.embed([memory.content for memory in memories]))
    return list(zip(memories, rows, strict=True))


@contextmanager
def _patient_bookkeeping(storage: Storage) -> Iterator[Bookkeeping]:
    """The storage's bookkeeping, once nobody else is writing: writers go first."""
    for _ in range(_BUSY_TRIES):
        with storage.bookkeeping() as notes:
            if notes is not None:
                yield notes
                return
        time.sleep(_BUSY_WAIT_S)
    raise Busy(
        f"Other programs keep writing to {storage.space}.", hint="The vectors made so far are kept. Try again later."
    )
