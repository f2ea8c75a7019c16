"""How the contract gets at each storage."""

from pathlib import Path

from kept.ports import Storage
from kept.storage.inmemory import InMemoryStorage
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.sqlite import SqliteStorage
from tests.postgres.server import emptied, shared_database


class InMemoryBench:
    """Spaces live as long as the bench; reopening gives the same object back."""

    storage_class = InMemoryStorage

    def __init__(self, folder: Path) -> None:
        self._spaces: dict[str, InMemoryStorage] = {}

    def open(self, space: str = "project/p1", *, write_wait_s: float = 30.0) -> Storage:
        if space not in self._spaces:
            self._spaces[space] = self.storage_class(space, write_wait_s=write_wait_s)
        return self._spaces[space]

    def reopen(self, storage: Storage) -> Storage:
        return storage

    def close(self) -> None:
        """Nothing is left."""


class FileBench:
    """One file a space."""

    storage_class: type[JsonFileStorage] | type[SqliteStorage]
    suffix = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, space: str = "project/p1", *, write_wait_s: float = 30.0) -> Storage:
        path = self._folder / (space.replace("/", "-") + self.suffix)
        return self.storage_class(path, space, write_wait_s=write_wait_s)

    def reopen(self, storage: Storage) -> Storage:
        storage.close()
        return self.open(storage.space)

    def close(self) -> None:
        """The folder goes with the test."""


class JsonFileBench(FileBench):
    storage_class = JsonFileStorage
    suffix = ".json"


class SqliteBench(FileBench):
    storage_class = SqliteStorage
    suffix = ".db"


class PostgresBench:
    """One database for all spaces, of which each storage sees its own."""

    def __init__(self, folder: Path) -> None:
        self._url = emptied(shared_database())
        self._opened: list[Storage] = []

    def open(self, space: str = "project/p1", *, write_wait_s: float = 30.0) -> Storage:
        from kept.storage.postgres import PostgresStorage

        self._opened.append(PostgresStorage(self._url, space, write_wait_s=write_wait_s))
        return self._opened[-1]

    def reopen(self, storage: Storage) -> Storage:
        storage.close()
        return self.open(storage.space)

    def close(self) -> None:
        for storage in self._opened:
            storage.close()


BENCHES = {"inmemory": InMemoryBench, "jsonfile": JsonFileBench, "sqlite": SqliteBench, "postgres": PostgresBench}
