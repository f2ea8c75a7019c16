"""PostgreSQL: the spaces of a team in one database. Needs the extra `postgres`."""

from kept.storage.postgres.storage import PostgresStorage as PostgresStorage
