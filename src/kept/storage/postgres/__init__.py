"""PostgreSQL: the spaces of a team in one database. Needs the extra `postgres`."""

import kept.storage.postgres.driver  # noqa: F401 - first: without the driver, it says what to install
from kept.storage.postgres.schema import grant, initialise, known_spaces, revoke, status
from kept.storage.postgres.storage import PostgresStorage, number_of

__all__ = ["PostgresStorage", "grant", "initialise", "known_spaces", "number_of", "revoke", "status"]
