"""Change settings of an opened memory at once, and keep them in its settings file.

A project of the home and a user have a settings file. A store in one file has none, and neither has a user in a
database: they are opened with `settings`. Rule: a value that is refused changes nothing.
"""

from collections.abc import Mapping

from kept.errors import SettingsError
from kept.memory.context import Context
from kept.projects.config import parse_text, set_value
from kept.settings import Settings, as_mapping, check_new, resolve


def configure(context: Context, name: str, value: str) -> Settings:
    """Change one setting for this project: at once, and in its settings file, if it has one.

    Raises SettingsError, and changes nothing, when the value is not valid, or for a user in a database.
    """
    storage = context.owned()
    if context.spaces.kind == "one user" and context.spaces.is_in_database():
        raise SettingsError(
            "A user in a database has no settings of their own, so nothing was changed.",
            hint="Open the memory with kept.open(…, user=…, settings={…}), or set it for all users in config.toml of "
            "the home, or in the environment.",
        )
    set_here(context, {name: value})
    context.tell_write(storage, 0)
    return context.settings


def set_here(context: Context, values: Mapping[str, str]) -> None:
    """Set these at once, and in the settings file of the project or user, if there is one."""
    given = {name: parse_text(name, value) for name, value in values.items()}
    changed = resolve([("settings", as_mapping(context.settings)), ("argument", given)]).settings
    for name, value in values.items():
        check_new(name, value)
    file = context.spaces.settings_file()
    if file is not None:
        for name, value in values.items():
            set_value(file, name, value)
    context.settings = changed
