"""Read, merge and write the settings in files and in the environment; import those of other programs.

`kept.open` calls `load` once: defaults < user file < project file < environment < arguments. What the settings are and
which values they allow is in `kept.settings`.
Rule: nothing inside a repository is read. Otherwise a cloned repository could decide what your memory keeps, redacts
and deletes. The project file is in the home, beside the project's database.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kept.errors import SettingsError, not_installed
from kept.projects.files import DIRECTORY_MODE, replace_file
from kept.projects.home import default_home, platform_folder
from kept.settings import Resolved, Settings, check_new, field_named, resolve, shown
from kept.storage.files import sync

PREFIX = "KEPT_"
# Variables that other parts of Kept read; every other KEPT_… variable is a setting, or not ours and ignored.
RESERVED_VARIABLES = frozenset(
    PREFIX + name
    for name in (
        "AGENT",
        "CONFIG",
        "DATABASE_URL",
        "DEBUG",
        "HOME",
        "HOOK_LIMIT_MS",
        "PROJECT",
        "ROLE",
        "SESSION",
        "TOKEN",
    )
)
MAX_FILE_BYTES = 256 * 1024  # a larger file is not a settings file
RIGHT_FILE = "Check that this is the right file."
SWITCH_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def user_settings_file(environ: Mapping[str, str]) -> Path:
    """`$KEPT_CONFIG`, else `config.toml` in `$KEPT_HOME` or in the platform's folder for configuration.

    It need not exist. Whoever names a home of their own means one with settings of its own.
    """
    if named := environ.get("KEPT_CONFIG"):
        with suppress(RuntimeError):  # ~nobody/config.toml
            if (path := Path(named).expanduser()).is_absolute():
                return path
        # A relative name would find whatever lies in the repository that a hook happens to run in.
        raise SettingsError(f"KEPT_CONFIG must be an absolute path, not {shown(named)}.", hint="Start it with / or ~.")
    if environ.get("KEPT_HOME"):
        return default_home(environ) / "config.toml"
    return platform_folder("config", environ) / "config.toml"


def load(
    user_file: Path | None = None,
    project_file: Path | None = None,
    environ: Mapping[str, str] = _NOTHING,
    arguments: Mapping[str, Any] = _NOTHING,
) -> Resolved:
    """The settings in force, and where each came from. Files may be missing.

    Raises SettingsError when a file can't be read, and as `resolve` does.
    """
    files = (("user file", user_file), ("project file", project_file))
    layers = [(f"{label} {path}", _read(path)) for label, path in files if path is not None]
    return resolve([*layers, *_environment_layers(environ), ("argument", arguments)])


def _environment_layers(environ: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """One layer per variable, so that origins and errors name it. An empty variable counts as not set."""
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in RESERVED_VARIABLES and environ[variable]:
            name = variable.removeprefix(PREFIX).lower().replace("__", ".", 1)
            if _is_setting(name):
                yield f"environment {variable}", _layer(name, environ[variable])


def _is_setting(name: str) -> bool:
    return name.partition(".")[0] in Settings.__struct_fields__


def _layer(name: str, text: str) -> dict[str, Any]:
    """`shelf_life_days.warning` and `60` as the mapping that a file would give."""
    table, _, row = name.partition(".")
    value = parse_text(table, text)
    return {table: {row: value}} if row else {table: value}


def parse_text(name: str, text: str) -> Any:
    """The value that `text` means for the setting `name`, or the text itself, which `resolve` will refuse."""
    plain = field_named(name).plain_type if _is_setting(name) else str
    if plain is bool:
        return SWITCH_WORDS.get(text.strip().lower(), text)
    try:
        return plain(text)
    except ValueError:
        return text


def _read(file: Path) -> dict[str, Any]:
    text = _read_text(file)
    if not text:
        return {}
    import tomllib  # most people have no file, and hooks start often

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError is a ValueError; so is a number too long for int
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(f"{file} is not valid TOML: {reason}.", hint="Correct the file, or move it away.") from None


def _read_text(file: Path) -> str:
    """The whole file as text; "" when there is none."""
    try:
        if not file.exists():
            return ""
        if not file.is_file():  # a pipe would wait for ever, a device never end
            raise SettingsError(f"{file} is not a regular file.", hint="Settings must be in a TOML file.")
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise SettingsError(f"{file} is larger than {MAX_FILE_BYTES // 1024} KB.", hint=RIGHT_FILE)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8.") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {_reason(error)}.", hint="Check its permissions.") from error


def set_value(file: Path, name: str, text: str) -> None:
    """Write one setting (`profile`, `shelf_life_days.warning`) to a TOML file, keeping its comments.

    Raises SettingsError when the value would be refused, or the file can't be parsed or written; it is unchanged then.
    """
    layer = _layer(name, text)
    resolve([(str(file), layer)])
    check_new(name, text)
    document = _parse_keeping_comments(file)
    [(table, value)] = layer.items()
    if isinstance(value, dict) and isinstance(document.get(table), MutableMapping):
        document[table].update(value)
    else:
        document[table] = value
    resolve([(str(file), {table: document.unwrap()[table]})])  # with the rows that are already in the file
    _write(file, document.as_string())


def unset_value(file: Path, name: str) -> bool:
    """Remove a setting, a row or a whole table from a TOML file; False when it was not there.

    Unknown names are accepted, so that a mistyped setting can be removed.
    """
    document = _parse_keeping_comments(file)
    table, _, row = name.partition(".")
    home = document.get(table) if row else document
    if not isinstance(home, MutableMapping) or (row or table) not in home:
        return False
    del home[row or table]
    if row and not home:
        del document[table]
    _write(file, document.as_string())
    return True


def _parse_keeping_comments(file: Path) -> Any:
    import tomlkit.exceptions  # loading it takes time, and few commands write settings

    _read(file)
    try:
        return tomlkit.parse(_read_text(file))
    except tomlkit.exceptions.TOMLKitError as error:
        raise SettingsError(f"{file} cannot be edited: {error}.", hint="Edit it by hand.") from None


def _write(file: Path, text: str) -> None:
    """Replace the file at once or not at all; readable by its owner alone."""
    try:
        file = file.resolve()  # a link into a folder of dotfiles stays a link
        file.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        replace_file(file, text.encode())
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        raise SettingsError(f"{file} cannot be written: {_reason(error)}.", hint="The file was not changed.") from error
    with suppress(OSError):  # some network file systems can't sync a folder; the new file is in place all the same
        sync(file.parent)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class NotTaken(Struct, frozen=True):
    """A key of a foreign configuration that was not imported, or only in part, and why."""

    key: str
    reason: str


class Imported(Struct, frozen=True):
    """A foreign configuration as a layer for `resolve`, and the keys that were not imported."""

    settings: Mapping[str, Any]
    not_taken: tuple[NotTaken, ...]


# Koshi's `memory:` block, Brain's MemoryConfig, and the metadata of a Praxis store.
FOREIGN_NAMES = {
    "reinforceWeight": "reinforce_weight", "demoteWeight": "demote_weight", "maxSize": "max_size_bytes",
    "pruneSchedule": "prune_schedule", "prunePercent": "prune_percent", "memoryPath": "memory_path",
    "sessionsPath": "sessions_path",
    "maxMemorySize": "max_memory_chars", "sessionRetentionDays": "session_retention_days",
    "compactionThreshold": "compaction_threshold_tokens", "compactionKeepRecent": "compaction_keep_recent",
    "flushEnabled": "flush_enabled", "flushThreshold": "flush_threshold_tokens", "searchProvider": "search_provider",
    "vectorModel": "vector_model", "vectorWeight": "vector_weight", "textWeight": "text_weight",
    "toolResultRetention": "tool_result_retention", "configPreset": "preset", "autoMemoryEnabled": "auto_memory",
}  # fmt: skip

LOST_FOLDERS = {
    "sessionsPath": "Only the last folder was imported: it is always beside the database.",
    "memoryPath": "Only the file name was imported: the file is always in the folder of its space.",
}


def import_config(text: str, format: Literal["yaml", "json"]) -> Imported:
    """Read the camelCase configuration ("yaml" or "json") of Koshi, Brain or Praxis.

    The keys are under `memory:`, in the `metadata` of a Praxis store, or at the top. A key that can't be imported is
    listed with its reason; only a text that can't be parsed raises SettingsError.
    """
    document = _parse_foreign(text, format)
    block = next((name for name in ("memory", "metadata") if isinstance(document.get(name), Mapping)), None)
    not_taken = [NotTaken(_key(key), f"It is outside `{block}`.") for key in document if block and key != block]
    taken: dict[str, Any] = {}
    for key, value in (document[block] if block else document).items():
        settings, reason = _translate(key, value)
        try:
            resolve([(_key(key), settings)])
            taken.update(settings)
        except SettingsError as error:
            reason = str(error)
        if reason:
            not_taken.append(NotTaken(_key(key), reason))
    return Imported(MappingProxyType(taken), tuple(not_taken))


def _translate(key: Any, value: Any) -> tuple[dict[str, Any], str]:
    """The settings that a foreign key stands for, and what is lost of it."""
    name = FOREIGN_NAMES.get(key) if isinstance(key, str) else None
    if name is None:
        return {}, "Kept has no such setting."
    if isinstance(value, str):
        value = parse_text(name, value)
    if key in LOST_FOLDERS and isinstance(value, str) and (last := PureWindowsPath(value).name) != value:
        return {name: last}, LOST_FOLDERS[key]
    if key == "searchProvider" and value == "hybrid":
        return {name: value, "profile": "hybrid"}, ""  # its hybrid search is also how it scores
    return {name: value}, ""


def _key(key: Any) -> str:
    return key if isinstance(key, str) and key.isprintable() and len(key) <= 60 else shown(key)


def _parse_foreign(text: str, language: str) -> Mapping[Any, Any]:
    if len(text) > MAX_FILE_BYTES:
        raise SettingsError(f"The configuration is larger than {MAX_FILE_BYTES // 1024} KB.", hint=RIGHT_FILE)
    if language not in ("json", "yaml"):
        raise SettingsError(f"Unknown format {shown(language)}.", hint="Choose yaml or json.")
    document = _parse_json(text) if language == "json" else _parse_yaml(text)
    if not isinstance(document, Mapping | None):
        raise SettingsError("The configuration must be a table of names and values.", hint=RIGHT_FILE)
    return document or {}


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise SettingsError(f"The configuration is not valid JSON: {error}.", hint="Correct it.") from None


def _parse_yaml(text: str) -> Any:
    try:
        from ruamel.yaml import YAML, YAMLError  # type: ignore[attr-defined]  # an optional package
    except ImportError:
        raise not_installed("Reading YAML needs ruamel.yaml.", "files") from None
    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        # All but the first come through for malformed tagged values. The error itself quotes the text: not shown.
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark else ""
        raise SettingsError(f"The configuration is not valid YAML{place}.", hint="Correct it.") from None
