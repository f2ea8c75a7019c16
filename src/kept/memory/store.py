"""Keeping house: numbers, backups, switches.

Taking memories out, all of them, in a form that outlives us.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from kept import access
from kept.errors import Corrupt, NotAllowed, NotFound
from kept.memory.context import Opened
from kept.memory.vectors import Progress, drop_all, make_all
from kept.model import GLOBAL, Memory, Tier
from kept.ports import BackedUp, Restored, Shelf, Where
from kept.projects.files import shown
from kept.projects.spaces import is_of_global
from kept.upkeep import decisions


class Tending(Opened):
    """What a person does now and then."""

    def status(self) -> dict[str, Any]:
        """Numbers about what is kept: a dictionary for each readable space."""
        spaces = []
        for storage in self._readable():
            with storage.reading() as reader:
                counts = {
                    "live": reader.count(),
                    "pinned": reader.count(Where(statuses=("pinned",))),
                    "candidates": reader.count(Where(statuses=("candidate",))),
                    "archived": reader.count(Where(shelf="archive", scope=None)),
                    "forgotten": reader.count(Where(shelf="forgotten", scope=None)),
                }
                newest = reader.events(newest_first=True, limit=1)
                counters = reader.counters()
                vectors = reader.vector_state()
            spaces.append(
                {
                    "space": storage.space,
                    "memories": counts,
                    "refused": {
                        name.removeprefix("refused:"): number
                        for name, number in sorted(counters.items())
                        if name.startswith("refused:")
                    },
                    "vectors": to_builtins(vectors),
                    "upkeep": _upkeep(counters),
                    "events": newest[0].seq if newest else 0,
                    "last_change": newest[0].at if newest else None,
                    **storage.describe(),
                }
            )
        return {"actor": self._as_actor(), "spaces": spaces}

    def vectors(self) -> dict[str, dict[str, Any]]:
        """For each readable space: of which model it keeps vectors, how many are there, how many memories wait."""
        states = {}
        for storage in self._readable():
            with storage.reading() as reader:
                states[storage.space] = to_builtins(reader.vector_state())
        return states

    def check_vectors(self) -> None:
        """Raise SettingsError, which says what to install, unless vectors can be made here."""
        self._find_embedder().embed([""])

    def make_vectors(self, *, progress: Progress = lambda done, total: None) -> None:
        """Give every memory its vector, of the model that the settings name. `progress(done, total)` is told of it.

        Writes in small turns, and lets others go first. When interrupted, the next call goes on from there.
        """
        for storage in self._readable():
            make_all(storage, self._find_embedder(), progress)

    def drop_vectors(self) -> None:
        """Remove the vectors of the project. Those of global memory, which other projects may use, stay."""
        for storage in self._readable():
            if storage.space != GLOBAL:
                access.check_write(self._as_actor(), storage.space)
                drop_all(storage)

    def backup(self, target: Path | str, *, tier: Tier = "project") -> BackedUp:
        """Write a verified copy of the project's store (or of the global one) to a new file, while others go on."""
        storage = next((one for one in self._readable() if (one.space == GLOBAL) == (tier == "global")), None)
        if storage is None:
            raise NotFound("Nothing is kept here yet, so there is nothing to back up.")
        return storage.back_up(Path(target))

    def restore_backup(self, source: Path | str, *, overwrite_newer: bool = False) -> Restored:
        """Let the store hold what the backup holds. Asks first when that would lose changes, or is another project's.

        The backup says whether it is of global memory; otherwise it is put in the place of the opened project. What
        the store held before is kept beside it, and what was erased since the backup was made stays erased.
        """
        source = Path(source)
        is_global = is_of_global(source)
        if is_global:
            self._check_change(GLOBAL, "", f"Put global memory back as it is in {shown(source)}?")
        try:
            storage = self._spaces.ensure_shared() if is_global else self._spaces.ensure_project()
        except Corrupt as damage:
            self._agree(f"{damage.message} Put {shown(source)} in its place, and keep the damaged file beside it?")
            return self._spaces.replace_damaged(source, shared=is_global)
        if not is_global:
            access.check_write(self._as_actor(), storage.space)
        try:
            restored = storage.restore_from(source, overwrite_newer=overwrite_newer)
        except NotAllowed as refusal:
            self._agree(f"{refusal.message} Restore it all the same?")
            restored = storage.restore_from(source, overwrite_newer=True)
        self._tell_write(storage, 0)
        return restored


def _upkeep(counters: Mapping[str, int]) -> dict[str, Any]:
    """How upkeep is getting on by itself: when it had last been through everything, and what went wrong since."""
    come = decisions.read(counters)
    return {
        "finished_at": come.finished_at,
        "is_under_way": come.cursor > 0 or come.evict_to > 0,
        "is_crowded": bool(come.is_crowded),
        "errors": dict(come.errors),
        "failed_at": come.failed_at,
    }


PAGE = 500


class Exporting(Opened):
    """What leaves, as a copy."""

    def export(self, *, archived: bool = False) -> Iterator[Memory]:
        """Every live memory, oldest first, the project's before global ones; with `archived`, the archive's after them.

        What was forgotten is never among them.
        """
        shelves: tuple[Shelf, ...] = ("live", "archive") if archived else ("live",)
        for shelf in shelves:
            for storage in self._readable():
                after = None
                while True:
                    with storage.reading() as reader:
                        page = reader.select(Where(shelf=shelf, scope=None), limit=PAGE, after=after, oldest_first=True)
                    self._tell_read(page)
                    yield from page
                    if not page:
                        break
                    after = page[-1].id
