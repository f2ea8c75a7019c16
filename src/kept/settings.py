"""Settings: every value that a person can change, with its default, its limits and its help text.

`resolve` merges layers of plain mappings into one frozen `Settings`; `projects.config` reads the layers from files and
the environment. The tables behind them (shelf life by kind, profiles, presets) are in `tables`.
To add a setting: one line in `Settings`, one in `HELP`, then run `make docs`. A setting is here because
two people need different values; any other number is a constant beside its use.
Rule: a `Settings` that exists is valid, and an error names where the wrong value came from.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType, NoneType
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from kept.errors import SettingsError
from kept.model import canonical_kind
from kept.tables import BRIEFING_SHARES, KIND_WEIGHTS, PRESETS, PROFILES, RETENTIONS, SEARCH_PROVIDERS, SHELF_LIFE_DAYS

NUDGES = ("off", "once")


def _is_cron_line(text: str) -> bool:
    return re.fullmatch(r"[\w*/,#?-]+( [\w*/,#?-]+){4}", text, re.ASCII) is not None


def _is_markdown_path(text: str) -> bool:
    # Only .md, and never out of the folder: the file is overwritten, and the database lies beside it.
    return len(text) <= 200 and re.fullmatch(r"(\./)?(\w[\w -]*/)*\w[\w. -]*\.md", text, re.ASCII) is not None


def _is_folder_path(text: str) -> bool:
    return len(text) <= 200 and re.fullmatch(r"(\w[\w -]*/)*\w[\w -]*", text, re.ASCII) is not None


def _is_printable_name(text: str) -> bool:
    return 0 < len(text) <= 200 and text.isprintable()


def _is_model_name(text: str) -> bool:
    return 0 < len(text) <= 1_000 and text.isprintable()


def _choice(names: Iterable[str]) -> Meta:
    return Meta(extra={"choices": tuple(names)})


def _shape(fits: Callable[[str], bool], words: str) -> Meta:
    return Meta(extra={"shape": (fits, words)})


_PrintableName = Annotated[str, _shape(_is_printable_name, "a printable name of at most 200 characters")]
_ModelName = Annotated[str, _shape(_is_model_name, "wordllama, or the absolute path of a folder")]
_CronLine = Annotated[str, _shape(_is_cron_line, "a cron line of five fields, such as 0 4 * * *")]
_MarkdownPath = Annotated[str, _shape(_is_markdown_path, "a relative path that ends in .md and stays in its folder")]
_FolderPath = Annotated[str, _shape(_is_folder_path, "a relative path of a folder, such as sessions")]
_Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
_CountOrZero = Annotated[int, Meta(ge=0, le=1_000_000_000)]
_Days = Annotated[int, Meta(ge=1, le=36_500)]
_Points = Annotated[int, Meta(ge=0, le=100)]
_Percent = Annotated[float, Meta(ge=0.01, le=100)]
_Weight = Annotated[float, Meta(ge=0.01, le=10)]  # never 0: a factor of 0 would hide what it weighs
_WeightOrZero = Annotated[float, Meta(ge=0, le=10)]


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting with its default; `HELP` explains each. A table may be given in part."""

    profile: Annotated[str, _choice(PROFILES)] = "kept"
    search_provider: Annotated[str, _choice(SEARCH_PROVIDERS)] = "fts5"
    vector_model: _ModelName | None = None
    vector_weight: _WeightOrZero = 0.5
    text_weight: _Weight = 0.5
    recall_deadline_ms: Annotated[int, Meta(ge=10, le=60_000)] = 200
    kind_weights: Mapping[str, _Weight] = KIND_WEIGHTS

    reinforce_weight: _Points = 3
    demote_weight: _Points = 1

    auto_memory: bool = True
    preset: Annotated[str, _choice(PRESETS)] = "balanced"
    quarantine_hours: Annotated[int, Meta(ge=0, le=8_760)] = 24
    redact_email: bool = True
    nudge: Annotated[str, _choice(NUDGES)] = "off"

    briefing_max_tokens: _Count = 5_000
    briefing_max_percent: _Percent = 8.0
    briefing_shares: Annotated[Mapping[str, _Points], _choice(BRIEFING_SHARES)] = BRIEFING_SHARES

    session_idle_minutes: Annotated[int, Meta(ge=1, le=525_600)] = 30
    session_retention_days: _Days = 30
    flush_enabled: bool = True
    flush_threshold_tokens: _Count = 80_000
    compaction_threshold_tokens: _Count = 100_000
    compaction_keep_recent: _Count = 10
    tool_result_retention: _CountOrZero = 5
    checkpoint_every_messages: _Count = 10

    retention: Annotated[str, _choice(RETENTIONS)] = "kept"
    max_size_bytes: Annotated[int, Meta(ge=65_536, le=2**60)] = 100_000_000
    max_memories: _Count | None = None
    auto_upkeep: bool = True
    prune_percent: _Percent = 1.0
    prune_schedule: _CronLine = "0 4 * * *"
    shelf_life_days: Mapping[str, _Days] = SHELF_LIFE_DAYS

    memory_path: _MarkdownPath = "MEMORY.md"
    sessions_path: _FolderPath = "sessions"
    max_memory_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 50_000

    user_name: _PrintableName | None = None

    write_wait_s: Annotated[float, Meta(ge=0, le=600)] = 30.0
    backup_daily: bool = True
    backups_kept: Annotated[int, Meta(ge=1, le=365)] = 7

    def __post_init__(self) -> None:
        for field in fields():
            value = getattr(self, field.name)
            if value is not field.default:
                checked = _checked(field, value, "Settings")
                value = _complete(field, checked, "Settings") if field.is_table else checked
                msgspec.structs.force_setattr(self, field.name, value)

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy can't be copied or pickled
        return _from_mapping, (as_mapping(self),)


HELP: Mapping[str, Mapping[str, str]] = {
    "recall": {
        "profile": "How hits are scored: by all factors (kept), also by vectors (hybrid), or as koshi or praxis did.",
        "search_provider": "How candidates are found: by words (fts5), or by words and vectors (hybrid).",
        "vector_model": "Model that makes vectors: wordllama (none), or the folder of a sentence model in ONNX form.",
        "vector_weight": "Weight of the cosine in the match of profile hybrid.",
        "text_weight": "Weight of BM25 in the match of profile hybrid.",
        "recall_deadline_ms": "Milliseconds after which a recall returns what it has found so far, marked degraded.",
        "kind_weights": "Factor on the score of a memory, by kind; `other` is for kinds without a row.",
    },
    "feedback": {
        "reinforce_weight": "Points that a reinforce adds to a memory's feedback.",
        "demote_weight": "Points that a demote subtracts from a memory's feedback.",
    },
    "writing": {
        "auto_memory": "Whether memories are extracted from conversations automatically.",
        "preset": "How selective automatic memory is; manual: nothing is promoted or confirmed automatically.",
        "quarantine_hours": "Hours until an automatic memory is confirmed, if it was used, or else loses importance.",
        "redact_email": "Whether e-mail addresses are redacted, as secrets always are.",
        "nudge": "Whether an agent is asked, once in a session, to store what rules could not phrase (off or once).",
    },
    "briefing": {
        "briefing_max_tokens": "Maximum tokens of a briefing.",
        "briefing_max_percent": "Maximum share of the remaining context that a briefing takes, in percent.",
        "briefing_shares": "Ratio in which the tiers share the tokens of a briefing.",
    },
    "sessions": {
        "session_idle_minutes": "Minutes of silence after which a session counts as finished.",
        "session_retention_days": "Days until a finished session is compressed; it stays searchable.",
        "flush_enabled": "Whether findings and a summary are stored before a session is compacted.",
        "flush_threshold_tokens": "Tokens in the window at which findings are stored; at compaction at the latest.",
        "compaction_threshold_tokens": "Tokens in the window at which a summary replaces the old messages.",
        "compaction_keep_recent": "Number of newest messages that a compaction leaves unchanged.",
        "tool_result_retention": "Number of newest tool results kept in the window; the transcript keeps all.",
        "checkpoint_every_messages": "Messages after which a session's findings are saved, in case of a crash.",
    },
    "upkeep": {
        "retention": "How archiving decides: by age and size (kept), also by number (praxis), or only by size (koshi).",
        "max_size_bytes": "Size of the live memories and their index above which the least valuable are archived.",
        "max_memories": "Number of live memories above which the least valuable are archived; none: as retention says.",
        "auto_upkeep": "Whether a little upkeep runs automatically, at each opening and at every fiftieth recall.",
        "prune_percent": "Percent of the memories that one step of pruning archives.",
        "prune_schedule": "When a long-running process does its upkeep, in cron syntax.",
        "shelf_life_days": "Days until an unused memory is archived, by kind; `other` is for kinds without a row.",
    },
    "files": {
        "memory_path": "The readable memory file, in the home; with ./ in front, in the project's directory.",
        "sessions_path": "The folder of the transcripts, in the home.",
        "max_memory_chars": "Maximum characters of the readable memory file.",
    },
    "team": {
        "user_name": "Your name beside your changes in a team's project; none: that of your account on this machine.",
    },
    "storage": {
        "write_wait_s": "Seconds that a write waits for its turn before it fails as busy.",
        "backup_daily": "Whether the first write of a day makes a backup.",
        "backups_kept": "Number of daily backups kept; the oldest is deleted.",
    },
}


class Field(Struct, frozen=True, kw_only=True):
    """One setting, as the documentation and `kept config` show it."""

    name: str
    type_name: str
    default: Any
    help: str
    group: str
    allowed: str  # the allowed values in words: "a whole number from 0 to 100"
    choices: tuple[str, ...]  # the allowed words; of a table, the allowed rows, where none means any kind
    is_table: bool
    is_optional: bool
    plain_type: type  # bool, int, float or str: of the value, or of one row of the table
    value_type: Any  # the same with its limits
    fits: Callable[[str], bool] | None  # whether a text has the right form


class Resolved(Struct, frozen=True, kw_only=True):
    """Settings, and where each value came from, under the names that `flat` gives them."""

    settings: Settings
    origin: Mapping[str, str]


def fields() -> tuple[Field, ...]:
    """Every setting, group by group, for documentation, for `kept config` and for checking."""
    return tuple(_fields_by_name().values())


@cache
def _fields_by_name() -> Mapping[str, Field]:
    about = {name: (group, line) for group, lines in HELP.items() for name, line in lines.items()}
    defaults = zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True)
    return {name: _field(name, default, *about[name]) for name, default in defaults}


def _field(name: str, default: Any, group: str, line: str) -> Field:
    annotation = Settings.__annotations__[name]
    outer, meta = _unwrapped(annotation)
    is_table = get_origin(outer) is Mapping
    is_optional = NoneType in get_args(outer)
    inner = get_args(outer)[1 if is_table else 0] if is_table or is_optional else annotation
    plain, limits = _unwrapped(inner)
    choices = (meta.extra or {}).get("choices", ())
    fits, allowed = (limits.extra or {}).get("shape", (None, ""))
    if choices and not is_table:
        allowed = f"one of {', '.join(choices)}"
    elif plain is bool:
        allowed = "true or false"
    elif plain is not str:
        is_open = limits.le is None or limits.le >= 10**9  # nobody reaches that limit, so it is not shown
        span = f"of at least {limits.ge}" if is_open else f"from {limits.ge} to {limits.le}"
        allowed = f"a {'whole ' if plain is int else ''}number {span}"
    if name.endswith("_bytes"):
        allowed += ", or a size such as 100MB"
    return Field(
        name=name,
        type_name=f"{'table of ' if is_table else ''}{plain.__name__}{' or none' if is_optional else ''}",
        default=default,
        help=line,
        group=group,
        allowed=f"{allowed}{', or none' if is_optional else ''}",
        choices=choices,
        is_table=is_table,
        is_optional=is_optional,
        plain_type=plain,
        value_type=inner,
        fits=fits,
    )


def _unwrapped(annotation: Any) -> tuple[Any, Meta]:
    """The type inside `Annotated[type, meta]`, and what is said about it."""
    return get_args(annotation)[:2] if get_origin(annotation) is Annotated else (annotation, Meta())


def resolve(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Resolved:
    """Merge layers, each with the name of where it came from; the later wins, row by row in tables.

    Raises SettingsError at the first unknown name, wrong type or value out of range; nothing is applied then.
    """
    known = _fields_by_name()
    values: dict[str, Any] = {}
    origin = dict.fromkeys(flat(Settings()), "default")
    last: dict[str, str] = {}
    for where, layer in layers:
        for name, value in layer.items():
            if not isinstance(name, str) or name not in known:
                hint = f"{_guess(name, known)} `kept config show` lists all settings.".lstrip()
                raise SettingsError(f"{where}: there is no setting {shown(name)}.", hint=hint)
            checked = _checked(known[name], value, where)
            is_table = known[name].is_table
            values[name] = {**values.get(name, {}), **checked} if is_table else checked
            origin.update(dict.fromkeys([f"{name}.{row}" for row in checked] if is_table else [name], where))
            last[name] = where
    for name in values:  # tables are complete only after the last layer
        if known[name].is_table:
            values[name] = _complete(known[name], values[name], last[name])
    return Resolved(settings=Settings(**values), origin=MappingProxyType(origin))


def _checked(field: Field, value: Any, where: str) -> Any:
    """The value in its own type; of a table, the rows that were given."""
    if not field.is_table:
        return _checked_value(field, field.name, value, where)
    if not isinstance(value, Mapping):
        raise SettingsError(
            f"{where}: {field.name} is a table, not {shown(value)}.",
            hint=f"Name the row, as in {field.name}.{next(iter(field.default))}.",
        )
    rows: dict[str, Any] = {}
    for given, entry in value.items():
        row = _row_name(field, given, where)
        if row in rows:
            raise SettingsError(f"{where}: {field.name} has two rows for {row}.", hint="Remove one of them.")
        rows[row] = _checked_value(field, f"{field.name}.{row}", entry, where)
    return rows


def _row_name(field: Field, given: Any, where: str) -> str:
    if field.choices:
        if given in field.choices:
            return str(given)
        message = f"{where}: {field.name} has no row {shown(given)}; its rows are {', '.join(field.choices)}."
        raise SettingsError(message, hint=_guess(given, field.choices))
    row = canonical_kind(given) if isinstance(given, str) else ""
    is_word = bool(row) and len(row) <= 64 and f"_{row}".isidentifier()
    if not is_word or canonical_kind(row) != row:
        message = f"{where}: {field.name} has a row {shown(given)}, which cannot be a kind."
        raise SettingsError(message, hint="A kind consists of letters, digits and underscores.")
    return row


def _checked_value(field: Field, name: str, value: Any, where: str) -> Any:
    if field.is_optional and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None  # "none", since TOML has no null and a later layer must be able to take a limit away
    try:
        checked = msgspec.convert(_in_bytes(field, value), field.value_type)
    except msgspec.ValidationError:
        is_allowed = False
    else:
        is_allowed = not isinstance(checked, str) or (field.fits(checked) if field.fits else checked in field.choices)
    if not is_allowed:
        hint = "" if field.is_table else _guess(value, field.choices)
        raise SettingsError(f"{where}: {name} must be {field.allowed}, not {shown(value)}.", hint=hint)
    return checked


def _complete(field: Field, rows: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The rows over their defaults, frozen."""
    table = {**field.default, **rows}
    if not any(table.values()):
        raise SettingsError(
            f"{where}: every row of {field.name} is 0.", hint="Give at least one of them a value above 0."
        )
    return MappingProxyType(table)


def _in_bytes(field: Field, value: Any) -> Any:
    """`100MB`, `1.5 GiB` or `4096` as a number, for a setting that counts bytes; anything else as it is."""
    if not (field.name.endswith("_bytes") and isinstance(value, str)):
        return value
    size = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ?([kmgt]?)(i?)b?", value.strip(), re.IGNORECASE | re.ASCII)
    if size is None:
        return value
    number, prefix, binary = size.groups()
    return round(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " "))


def shown(value: Any) -> str:
    """A value for an error message: short, on one line, without control characters."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "…")
    if isinstance(value, bool | float | NoneType) or (isinstance(value, int) and abs(value) < 10**18):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def _guess(given: Any, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # only needed after a typo

    nearest = get_close_matches(given[:100].lower(), list(names), n=1) if isinstance(given, str) else []
    return f"Did you mean {nearest[0]}?" if nearest else ""


def flat(settings: Settings) -> dict[str, Any]:
    """Every value under its own name; the rows of a table as `table.row`."""
    values: dict[str, Any] = {}
    for name, value in as_mapping(settings).items():
        rows = {f"{name}.{row}": entry for row, entry in value.items()} if isinstance(value, dict) else {name: value}
        values.update(rows)
    return values


def as_mapping(settings: Settings) -> dict[str, Any]:
    """The settings as plain dictionaries, for JSON or as a layer."""
    values = {field.name: getattr(settings, field.name) for field in fields()}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _from_mapping(values: Mapping[str, Any]) -> Settings:
    return Settings(**values)
