"""Vectors of memories: switch them on and off, make them all, and report on their model.

`embedder` makes the few that are missing when a question is asked. Rule: an interrupted run keeps the vectors it has
made, and the next one continues from there.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from kept import access
from kept.errors import Busy, SettingsError, StorageError
from kept.memory.context import Context
from kept.memory.embedder import VECTOR_BATCH, catch_up, find_embedder, made_of
from kept.memory.project_settings import set_here
from kept.model import GLOBAL
from kept.ports import Bookkeeping, Embedder, Storage
from kept.recall import models
from kept.recall.messages.meaning import usual_texts

Progress = Callable[[int, int], None]  # memories done, memories in all

NOT_IN_HOOKS = "Hooks compare words only: they have no time to load this model."
_BUSY_WAIT_S = 0.02
_BUSY_TRIES = 1_500  # hence half a minute, as for any write


def check_model(context: Context, model: str | Path | None = None) -> str | None:
    """Raise SettingsError, which says what to do, unless vectors can be made here; by that model, if one is named.

    A model is `all-MiniLM-L6-v2`, or a folder that holds model.onnx and tokenizer.json. Returns what the setting
    `vector_model` has to be for it to stay.
    """
    name = context.settings.vector_model if model is None else models.full_name(model)
    embedder = find_embedder(context) if model is None else models.model_named(name)
    models.check(embedder)
    return name


def turn_on(
    context: Context, *, model: str | Path | None = None, progress: Progress = lambda done, total: None
) -> None:
    """Make a vector for every memory that has none, and compare them from now on.

    `progress(done, total)` is called along the way. With another `model` than before, every memory gets a new one,
    and this memory compares by it until it is closed; the setting `vector_model` is for good. Writes in small turns
    and lets others go first. After an interruption the next call continues from there.
    """
    if model is not None:
        context.embedder = models.model_named(models.full_name(model))
    for storage in context.readable():
        make_all(storage, find_embedder(context), progress)
    if not is_on(context):
        set_here(context, {"search_provider": "hybrid"})


def is_on(context: Context) -> bool:
    """Return True if a recall compares vectors by default."""
    return "hybrid" in (context.settings.search_provider, context.settings.profile)


def keep_up(context: Context) -> None:
    """Make vectors for new memories, where vectors are on: at most one batch. It runs in the background."""
    if not is_on(context):
        return
    with suppress(SettingsError):  # the next recall says so
        embedder = find_embedder(context)
        for storage in context.readable():
            catch_up(storage, embedder, VECTOR_BATCH)


def limits(context: Context, *, measured: bool = False) -> list[str]:
    """What the model cannot do in time, in sentences; with `measured`, also if a conversation takes it too long."""
    try:
        embedder = find_embedder(context)
    except SettingsError as error:
        return [f"Not used: {error.message} {error.hint}"]
    if not models.is_slow(embedder):
        return []
    in_hooks = [] if models.fits_hooks(embedder) else [NOT_IN_HOOKS]
    given = context.settings.recall_deadline_ms
    needed = round(pace_ms(embedder, context.timer), -1) if measured else 0.0
    if needed <= given:
        return in_hooks
    return [
        *in_hooks,
        f"Comparing the best messages of a conversation takes about {needed:.0f} ms here, and recall has {given}: "
        f"it compares fewer. `kept config set recall_deadline_ms {2 * needed:.0f}` gives it the time.",
    ]


def turn_off(context: Context) -> None:
    """Compare words only, and remove the vectors of the project. Those of global memory, which others may use, stay."""
    context.owned()
    values = {"search_provider": "fts5"} if context.settings.search_provider == "hybrid" else {}
    if context.settings.profile == "hybrid":
        values["profile"] = "kept"
    if values:
        set_here(context, values)
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
    started = timer()
    embedder.embed(usual_texts())
    return (timer() - started) * 1000


# Making vectors


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
        made = made_of(waiting, embedder)
        with _patient_bookkeeping(storage) as notes:
            notes.save_vectors(embedder.model, made)


def drop_all(storage: Storage) -> None:
    """Keep no vectors, and make none."""
    with _patient_bookkeeping(storage) as notes:
        notes.choose_model(None)


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
