"""PostgreSQL, SQLite and the in-memory engine go through the same life and never differ.

KEPT_TEST_LONG=1 makes the life long.
"""

from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize

from kept.storage.postgres import PostgresStorage, index
from tests.postgres.server import emptied, shared_database
from tests.properties.test_storages_agree import IS_LONG, SPACE, Lives


class LivesInPostgres(Lives):
    """The same life, in one place more, where postings are packed after every third memory or so."""

    def __init__(self) -> None:
        super().__init__()
        self.url = emptied(shared_database())
        self.small_blocks = patch.multiple(index, BLOCK=4, FIRST_BLOCKS=2)
        self.small_blocks.start()

    @initialize()
    def open(self) -> None:
        super().open()
        self.storages.append(PostgresStorage(self.url, SPACE))

    def teardown(self) -> None:
        super().teardown()
        self.small_blocks.stop()


TestPostgresAgrees = LivesInPostgres.TestCase
TestPostgresAgrees.settings = settings(
    max_examples=300 if IS_LONG else 8,
    stateful_step_count=60 if IS_LONG else 20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
