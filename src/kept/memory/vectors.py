"""Vectors from the facade's side: which model makes them, and giving memories theirs, some at a time.

Facade layer, below `recalling.py`. A vector is made outside of every transaction and saved with recall's own notes: no
writer waits for it, and a memory that has none yet is found by its words. Rule: whatever interrupts the work, what is
done stays done, and the next one goes on from there.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from kept import vectors
from kept.errors import Busy, SettingsError, StorageError
from kept.model import Memory
from kept.ports import Bookkeeping, Embedder, Storage
from kept.recall.hybrid import MODEL, WordLlama
from kept.settings import Settings

Progress = Callable[[int, int], None]  # memories done, memories in all

BATCH = 200  # memories a turn: some milliseconds
_BUSY_WAIT_S = 0.02
_BUSY_TRIES = 1_500  # hence half a minute, as for any write


def embedder_of(settings: Settings) -> Embedder:
    """The model that the settings name, by default the one that Kept brings along. Raises SettingsError."""
    if settings.vector_model not in (None, MODEL):
        raise SettingsError(
            f"Kept has no model {settings.vector_model!r} for vectors.",
            hint=f"Set vector_model to {MODEL}, or give kept.open your own: embedder=….",
        )
    return WordLlama()


def catch_up(storage: Storage, embedder: Embedder) -> int:
    """Give the first few of those that wait their vector, if nobody is writing. How many still wait."""
    if not _is_chosen(storage, embedder.model):
        with storage.bookkeeping() as notes:
            if notes is not None:
                notes.choose_model(embedder.model)
    with storage.reading() as reader:
        if not reader.vector_state().pending:
            return 0
        waiting = reader.vectorless(limit=BATCH)
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
        _note(storage, lambda notes: notes.choose_model(embedder.model))
    with storage.reading() as reader:
        state = reader.vector_state()
    total, last = state.done + state.pending, 0
    while True:
        with storage.reading() as reader:
            state, waiting = reader.vector_state(), reader.vectorless(limit=BATCH)
        progress(state.done, max(total, state.done + state.pending))
        if not waiting:
            return
        if waiting[0].id == last:
            message = f"Memory {waiting[0].ref} was given a vector, which is not there."
            raise StorageError(message, hint="Is the disk full, or another model chosen elsewhere?")
        last = waiting[0].id
        _note(storage, partial(_save, embedder.model, _made(waiting, embedder)))


def drop_all(storage: Storage) -> None:
    """Keep no vectors, and make none."""
    _note(storage, lambda notes: notes.choose_model(None))


def _save(model: str, made: Sequence[tuple[Memory, vectors.Vector]], notes: Bookkeeping) -> None:
    notes.save_vectors(model, made)


def _is_chosen(storage: Storage, model: str) -> bool:
    with storage.reading() as reader:
        return reader.vector_state().model == model


def _made(memories: Sequence[Memory], embedder: Embedder) -> list[tuple[Memory, vectors.Vector]]:
    rows = vectors.pack(embedder.embed([memory.content for memory in memories]))
    return list(zip(memories, rows, strict=True))


def _note(storage: Storage, act: Callable[[Bookkeeping], None]) -> None:
    """Do it as soon as nobody else is writing: whoever writes goes first."""
    for _ in range(_BUSY_TRIES):
        with storage.bookkeeping() as notes:
            if notes is not None:
                act(notes)
                return
        time.sleep(_BUSY_WAIT_S)
    raise Busy(
        f"Others have been writing to {storage.space} without a pause.", hint="What is done is kept; go on later."
    )
