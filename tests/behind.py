"""Ways into a file of Kept that go around Kept."""

from pathlib import Path

import apsw

from kept.storage.sqlite import pages


def behind(path: Path) -> apsw.Connection:
    """A connection behind Kept's back. What it writes has the checksums of pages, as if Kept had written it."""
    return apsw.Connection(str(path), vfs=pages.vfs())


def seal(path: Path) -> None:
    """Give every page the checksum of what it holds now, as if Kept had written that."""
    pages.seal(path, pages.bad_pages(path))
