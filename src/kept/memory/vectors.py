"""Vectors of memories: switching them on and off, making them, and the model that a question is compared by.

Vectors are made outside of every transaction and saved with
recall's own notes, a few at a time: no writer waits for them, and a memory that has none yet is found by its words.
Rule: an interrupted run keeps what it has done, and the next one continues from there. A question that cannot be
compared by meaning is answered by words, and the answer says so.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from kept import access, vectors
from kept.errors import Busy, SettingsError, StorageError
from kept.memory.context import Context, Storages
from kept.memory.read import Comparer
from kept.model import GLOBAL, Memory
from kept.ports import Bookkeeping, Embedder, Storage
from kept.recall import Request, embedder_failed, hybrid, models

Progress = Callable[[int, int], None]  # memories done, memories in all

VECTOR_BATCH = 200  # memories per turn: some milliseconds
SLOW_BATCH = 8  # of them with each question, where the model takes milliseconds for one
NOT_IN_HOOKS = "Hooks compare words only: they have no time to load this model."
_BUSY_WAIT_S = 0.02
_BUSY_TRIES = 1_500  # hence half a minute, as for any write


def check_model(context: Context, model: str | Path | None = None) -> str | None:
    """Raise SettingsError, which says what to do, unless vectors can be made here; by that model, if one is named.

    A model is `wordllama`, or a folder that holds model.onnx and tokenizer.json. Returns what the setting
    `vector_model` has to be for it to stay.
    """
    name = context.settings.vector_model if model is None else models.full_name(model)
    embedder = context.find_embedder() if model is None else models.model_named(name)
    models.load(embedder)
    embedder.embed([""])
    return name


def turn_on(
    context: Context, *, model: str | Path | None = None, progress: Progress = lambda done, total: None
) -> None:
    """Make a vector for every memory that has none. `progress(done, total)` is called along the way.

    With another `model` than before, every memory gets a new one, and this memory compares by it until it is
    closed; the setting `vector_model` is for good. Writes in small turns and lets others go first. After an
    interruption the next call continues from there.
    """
    if model is not None:
        context.embedder = models.model_named(models.full_name(model))
    for storage in context.readable():
        make_all(storage, context.find_embedder(), progress)


def limits(context: Context, *, measured: bool = False) -> list[str]:
    """What the model cannot do in time, in sentences; with `measured`, also if a conversation takes it too long."""
    try:
        embedder = context.find_embedder()
    except SettingsError as error:
        return [f"Not used: {error.message} {error.hint}"]
    if not models.is_slow(embedder):
        return []
    given = context.settings.recall_deadline_ms
    needed = round(pace_ms(embedder, context.timer), -1) if measured else 0.0
    if needed <= given:
        return [NOT_IN_HOOKS]
    return [
        NOT_IN_HOOKS,
        f"Comparing the best messages of a conversation takes about {needed:.0f} ms here, and recall has {given}: "
        f"it compares fewer. `kept config set recall_deadline_ms {2 * needed:.0f}` gives it the time.",
    ]


def turn_off(context: Context) -> None:
    """Remove the vectors of the project. Those of global memory, which other projects may use, stay."""
    for storage in context.readable():
        if storage.space != GLOBAL:
            access.check_write(context.actor_here(), storage.space)
            drop_all(storage)


def vector_states(context: Context) -> dict[str, dict[str, Any]]:
    """For each readable space: the model of its vectors, how many there are, how many memories have none yet."""
    states = {}
    for storage in context.readable():
        with storage.reading() as reader:
            states[storage.space] = to_builtins(reader.vector_state())
    return states


def pace_ms(embedder: Embedder, timer: Callable[[], float]) -> float:
    """How long it takes to compare the best messages of a conversation with a question."""
    from kept.recall.messages.meaning import usual_texts

    started = timer()
    embedder.embed(usual_texts())
    return (timer() - started) * 1000


# What a question is compared by


def ready_embedder(context: Context, request: Request, storages: Storages) -> Comparer:
    """The embedder, loaded, and a note on what it could not do.

    New memories get their vectors here. Raises SettingsError when the question itself asks for vectors and none can
    be made; when only the settings ask for them, words have to do.
    """
    try:
        embedder = context.find_embedder()
        models.load(embedder)
        waiting = 0 if request.scope == "sessions" else sum(catch_up(storage, embedder) for storage in storages)
    except SettingsError as error:
        if request.profile is not None:
            raise
        return Comparer(note=f"Only words were compared. {error.message} {error.hint}")
    except Exception as error:  # somebody else's embedder: an answer by words is better than none
        return Comparer(note=embedder_failed(error))
    note = f"{waiting} memories have no vector yet and were matched by words only. Run `kept vectors on`."
    return Comparer(embedder, note if waiting else None, hybrid.join)


# Making vectors


def catch_up(storage: Storage, embedder: Embedder) -> int:
    """Make vectors for the first few memories without one, unless somebody is writing. Returns how many are left.

    Global memory keeps the model that it has: two projects with different ones would make its vectors in turns.
    """
    with storage.reading() as reader:
        state = reader.vector_state()
    if state.model != embedder.model:
        if storage.space == GLOBAL and state.model is not None:
            return state.done + state.pending
        with storage.bookkeeping() as notes:
            if notes is not None:
                notes.choose_model(embedder.model)
    with storage.reading() as reader:
        if not reader.vector_state().pending:
            return 0
        waiting = reader.vectorless(limit=SLOW_BATCH if models.is_slow(embedder) else VECTOR_BATCH)
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
    with storage.reading() as reader:
        state = reader.vector_state()
    if state.model != embedder.model:
        with _patient_bookkeeping(storage) as notes:
            notes.choose_model(embedder.model)
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
