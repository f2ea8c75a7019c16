"""PostgreSQL, SQLite and the in-memory engine go through the same life and never differ.

KEPT_TEST_LONG=1 makes the life long.
"""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize

from kept.storage.postgres import PostgresStorage
from tests.postgres.server import emptied, shared_database
from tests.properties.test_storages_agree import IS_LONG, SPACE, Lives


class LivesInPostgres(Lives):
    """The same life, in one place more."""

    def __init__(self) -> None:
        super().__init__()
        self.url = emptied(shared_database())

    @initialize()
    def open(self) -> None:
        super().open()
        self.storages.append(PostgresStorage(self.url, SPACE))


TestPostgresAgrees = LivesInPostgres.TestCase
TestPostgresAgrees.settings = settings(
    max_examples=300 if IS_LONG else 8,
    stateful_step_count=60 if IS_LONG else 20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
