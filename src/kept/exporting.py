"""Taking memories out, all of them, in a form that outlives us."""

from collections.abc import Iterator

from kept.model import Memory
from kept.opened import Opened
from kept.ports import Shelf, Where

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
