"""The model that a question is compared by, and the vectors of new memories that it needs.

Vectors are made outside of every transaction and saved with recall's own notes, a few at a time: no writer waits for
them, and a memory that has none yet is found by its words. Rule: a question that cannot be compared by meaning is
answered by words, and the answer says so.
"""

from collections.abc import Sequence

from kept import vectors
from kept.errors import SettingsError
from kept.memory.context import Comparer, Context, Storages
from kept.model import GLOBAL, Memory
from kept.ports import Embedder, Storage
from kept.recall import Request, embedder_failed, hybrid, models

VECTOR_BATCH = 200  # memories per turn of `kept vectors on`
WITH_A_QUESTION = 8  # memories: a sentence model takes some milliseconds for each


def find_embedder(context: Context) -> Embedder:
    """Return the embedder given to `kept.open`, or the one that the settings name. Raises SettingsError."""
    if context.embedder is None:
        context.embedder = models.model_named(context.settings.vector_model)
    return context.embedder


def ready_embedder(context: Context, request: Request, storages: Storages, *, is_hook: bool = False) -> Comparer:
    """Return the embedder, loaded, and a note on what it could not do.

    New memories get their vectors here, except in a hook, whose agent waits. Raises SettingsError when the question
    itself asks for vectors and none can be made; when only the settings ask for them, words have to do.
    """
    try:
        embedder = find_embedder(context)
        models.load(embedder)
        waiting = 0
        if request.scope != "sessions" and not is_hook:
            most = WITH_A_QUESTION if models.is_slow(embedder) else VECTOR_BATCH
            waiting = sum(catch_up(storage, embedder, most) for storage in storages)
    except SettingsError as error:
        if request.profile is not None:
            raise
        return Comparer(note=f"Only words were compared. {error.message} {error.hint}")
    except Exception as error:  # a program's embedder: an answer by words is better than none
        return Comparer(note=embedder_failed(error))
    note = f"{waiting} memories have no vector yet and were matched by words only. Run `kept vectors on`."
    return Comparer(embedder, note if waiting else None, hybrid.join)


def catch_up(storage: Storage, embedder: Embedder, most: int) -> int:
    """Make vectors for the first `most` memories without one, unless somebody is writing. Returns how many are left.

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
        waiting = reader.vectorless(limit=most)
    made = made_of(waiting, embedder)
    with storage.bookkeeping() as notes:
        if notes is not None:
            notes.save_vectors(embedder.model, made)
    with storage.reading() as reader:
        return reader.vector_state().pending


def made_of(memories: Sequence[Memory], embedder: Embedder) -> list[tuple[Memory, vectors.Vector]]:
    """Make the vectors of these memories."""
    rows = vectors.pack(embedder.embed([memory.content for memory in memories]))
    return list(zip(memories, rows, strict=True))
