"""The driver for PostgreSQL, which is optional. Imported first: all other modules of the engine need it."""

from kept.distribution import install_line
from kept.errors import StorageError

try:
    import psycopg  # noqa: F401 - only to say what to install
except ImportError as error:
    hint = f"Run: {install_line('postgres')}"
    raise StorageError("PostgreSQL needs a driver that is not installed.", hint=hint) from error
