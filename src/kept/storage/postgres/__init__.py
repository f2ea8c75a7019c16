"""PostgreSQL: the spaces of a team in one database. Needs `pip install 'kept[postgres]'`."""

from kept.storage.postgres.storage import PostgresStorage as PostgresStorage
