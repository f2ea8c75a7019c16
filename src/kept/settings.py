"""Settings: every value that a person can change, with its default, its limits and its help text.

`resolve` merges layers of plain mappings into one frozen `Settings`; `projects.config` reads the layers from files and
the environment. The tables behind them (shelf life by kind, profiles, presets) are in `tables`. msgspec converts and
checks each value by its annotation; only values that were set are looked at, because programs open a memory often.
To add a setting: one line in `Settings`, one in `HELP`, then run `make docs`. A setting is here because
two people need different values; any other number is a constant beside its use.
Rule: a `Settings` that exists is valid, and an error names where the wrong value came from.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from types import MappingProxyType, NoneType
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from kept.errors import SettingsError
from kept.model import canonical_kind
from kept.tables import (
    BRIEFING_SHARES,
    FLOORS,
    KIND_WEIGHTS,
    PRESETS,
    PROFILES,
    RETENTIONS,
    SEARCH_PROVIDERS,
    SHELF_LIFE_DAYS,
)

JUDGES = ("next", "stop", "off")
SEED_PROFILES = ("koshi", "praxis")  # they tell findings as their seeds did, without a judge
EXTRACTIONS = ("auto", "coding", "chat")
UNREACHED = 10**9  # out of reach, so it is not shown
MIN_LIKENESS = 0.6  # of a mistyped name and the one that was probably meant


def _is_cron_line(text: str) -> bool:
    return re.fullmatch(r"[\w*/,#?-]+( [\w*/,#?-]+){4}", text, re.ASCII) is not None


def _is_markdown_path(text: str) -> bool:
    # Only .md, and never out of the folder: the file is overwritten, and the database lies beside it.
    return re.fullmatch(r"(\./)?(\w[\w -]*/)*\w[\w. -]*\.md", text, re.ASCII) is not None


def _is_folder_path(text: str) -> bool:
    return re.fullmatch(r"(\w[\w -]*/)*\w[\w -]*", text, re.ASCII) is not None


def _choice(names: Iterable[str]) -> Meta:
    words = tuple(names)
    return Meta(extra={"choices": words, "fits": words.__contains__, "words": f"one of {', '.join(words)}"})


def _text(fits: Callable[[str], bool], words: str, max_length: int = 200) -> Meta:
    # A function, not a pattern of msgspec's: that would be compiled at each start, and most people set no such text.
    return Meta(min_length=1, max_length=max_length, extra={"fits": fits, "words": words})


_PrintableName = Annotated[str, _text(str.isprintable, "a printable name of at most 200 characters")]
VECTOR_MODEL = "all-MiniLM-L6-v2"  # the one that Kept brings along
_ModelName = Annotated[str, _text(str.isprintable, f"{VECTOR_MODEL}, or the absolute path of a folder", 1_000)]
_CronLine = Annotated[str, _text(_is_cron_line, "a cron line of five fields, such as 0 4 * * *")]
_MarkdownPath = Annotated[str, _text(_is_markdown_path, "a relative path that ends in .md and stays in its folder")]
_FolderPath = Annotated[str, _text(_is_folder_path, "a relative path of a folder, such as sessions")]
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
    floor: Annotated[str, _choice(FLOORS)] = "normal"
    vector_model: _ModelName | None = None
    vector_weight: _WeightOrZero = 0.5
    text_weight: _Weight = 0.5
    recall_deadline_ms: Annotated[int, Meta(ge=10, le=60_000)] = 200
    kind_weights: Mapping[str, _Weight] = KIND_WEIGHTS

    reinforce_weight: _Points = 3
    demote_weight: _Points = 1

    auto_memory: bool = True
    extraction: Annotated[str, _choice(EXTRACTIONS)] = "auto"
    preset: Annotated[str, _choice(PRESETS)] = "balanced"
    quarantine_hours: Annotated[int, Meta(ge=0, le=8_760)] = 24
    redact_email: bool = True
    judge: Annotated[str, _choice(JUDGES)] = "next"

    read_claude_notes: bool = True
    read_codex_notes: bool = True
    read_qwen_notes: bool = True
    read_gemini_notes: bool = True

    auto_briefing: bool = True
    briefing_max_tokens: _Count = 5_000
    briefing_max_percent: _Percent = 8.0
    briefing_shares: Mapping[Annotated[str, _choice(BRIEFING_SHARES)], _Points] = BRIEFING_SHARES
    hook_start_tokens: _CountOrZero = 600
    prompt_lines: _CountOrZero = 3
    action_lines: _CountOrZero = 2

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
    agents_block: bool = False
    sessions_path: _FolderPath = "sessions"
    max_memory_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 50_000

    user_name: _PrintableName | None = None

    write_wait_s: Annotated[float, Meta(ge=0, le=600)] = 30.0
    backup_daily: bool = True
    backups_kept: Annotated[int, Meta(ge=1, le=365)] = 7

    def __post_init__(self) -> None:
        for name, default in zip(self.__struct_fields__, self.__struct_defaults__, strict=True):
            value = getattr(self, name)
            if value is not default:
                checked = _checked(name, value, "Settings")
                whole = _complete(name, checked, "Settings") if is_table(name) else checked
                msgspec.structs.force_setattr(self, name, whole)

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy can't be copied or pickled
        return _from_mapping, (as_mapping(self),)


HELP: Mapping[str, Mapping[str, str]] = {
    "recall": {
        "profile": "How hits are scored: by all factors (kept), also by vectors (hybrid), or as koshi or praxis did.",
        "search_provider": "How candidates are found: by words (fts5), or by words and vectors (hybrid).",
        "floor": "How sure recall must be before it answers: strict, normal or open.",
        "vector_model": "Model that makes vectors: all-MiniLM-L6-v2 (none), or the folder of one in ONNX form.",
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
        "extraction": "What conversations are: coding; chat, in which people talk about themselves; auto: by tools.",
        "preset": "How selective automatic memory is; manual: nothing is promoted or confirmed automatically.",
        "quarantine_hours": "Hours until an automatic memory is confirmed, if it was used, or else loses importance.",
        "redact_email": "Whether e-mail addresses are redacted, as secrets always are.",
        "judge": "When an agent is asked which findings hold: as the next session starts, when it stops, or off.",
    },
    "notes": {
        "read_claude_notes": "Whether notes that Claude Code keeps of a project are taken in as they change.",
        "read_codex_notes": "Whether the notes and summaries in the memory of Codex are taken in as they change.",
        "read_qwen_notes": "Whether notes that Qwen Code keeps of a project are taken in as they change.",
        "read_gemini_notes": "Whether notes that Gemini CLI keeps of a project are taken in as they change.",
    },
    "briefing": {
        "auto_briefing": "Whether agents are given memories without asking: at the start, prompts and tool calls.",
        "briefing_max_tokens": "Maximum tokens of a briefing.",
        "briefing_max_percent": "Maximum share of the remaining context that a briefing takes, in percent.",
        "briefing_shares": "Ratio in which the tiers share the tokens of a briefing.",
        "hook_start_tokens": "Maximum tokens that hooks add when a session begins; 0 adds none.",
        "prompt_lines": "Maximum number of memories that hooks add to a prompt because they fit it; 0 adds none.",
        "action_lines": "Maximum number of memories that hooks add to an edit or a command; 0 adds none.",
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
        "agents_block": "Keep a block of confirmed memories in the project's AGENTS.md, for agents without hooks.",
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


_DEFAULTS: Mapping[str, Any] = dict(zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True))


HOOK_LIMITS = ("hook_start_tokens", "prompt_lines", "action_lines")


def hook_limits(budget_tokens: int) -> dict[str, int]:
    """Return the limits of hooks in proportion to a budget of briefings; never less than their defaults."""
    usual = int(_DEFAULTS["briefing_max_tokens"])
    return {name: max(_DEFAULTS[name], _DEFAULTS[name] * budget_tokens // usual) for name in HOOK_LIMITS}


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
    fits: Callable[[str], bool] | None  # whether a text has the right form


class Resolved(Struct, frozen=True, kw_only=True):
    """Settings, and where those came from that were set, under the names that `flat` gives them."""

    settings: Settings
    set_by: Mapping[str, str]

    @property
    def origin(self) -> Mapping[str, str]:
        """Where each value came from."""
        return {name: self.set_by.get(name, "default") for name in flat(self.settings)}


def is_table(name: str) -> bool:
    """Whether a setting has rows."""
    return isinstance(_DEFAULTS[name], Mapping)


def fields() -> tuple[Field, ...]:
    """Every setting, group by group, for documentation and for `kept config`."""
    return tuple(map(field_named, _DEFAULTS))


@cache
def field_named(name: str) -> Field:
    """One setting."""
    group, line = next((group, lines[name]) for group, lines in HELP.items() if name in lines)
    annotation, is_optional = Settings.__annotations__[name], _DEFAULTS[name] is None
    key_type, annotation = get_args(annotation) if is_table(name) else (annotation, annotation)
    plain, limits = _unwrapped(get_args(annotation)[0] if is_optional else annotation)
    choices: tuple[str, ...] = (_unwrapped(key_type)[1].extra or {}).get("choices", ())
    return Field(
        name=name,
        type_name=f"{'table of ' if is_table(name) else ''}{plain.__name__}{' or none' if is_optional else ''}",
        default=_DEFAULTS[name],
        help=line,
        group=group,
        allowed=f"{_in_words(name, plain, limits)}{', or none' if is_optional else ''}",
        choices=choices,
        is_table=is_table(name),
        is_optional=is_optional,
        plain_type=plain,
        fits=(limits.extra or {}).get("fits"),
    )


def _unwrapped(annotation: Any) -> tuple[Any, Meta]:
    """The type inside `Annotated[type, meta]`, and its limits."""
    return get_args(annotation)[:2] if get_origin(annotation) is Annotated else (annotation, Meta())


def _in_words(name: str, plain: type, limits: Meta) -> str:
    """The values that a type and its limits allow."""
    if plain is bool:
        return "true or false"
    if plain is str:
        return str((limits.extra or {})["words"])
    is_open = limits.le is None or limits.le >= UNREACHED
    span = f"of at least {limits.ge}" if is_open else f"from {limits.ge} to {limits.le}"
    size = ", or a size such as 100MB" if name.endswith("_bytes") else ""
    return f"a {'whole ' if plain is int else ''}number {span}{size}"


def resolve(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Resolved:
    """Merge layers, each with the name of where it came from; the later wins, row by row in tables.

    Raises SettingsError at the first unknown name, wrong type or value out of range; nothing is applied then.
    """
    values: dict[str, Any] = {}
    set_by: dict[str, str] = {}
    last: dict[str, str] = {}
    for where, layer in layers:
        for name, value in layer.items():
            if not isinstance(name, str) or name not in _DEFAULTS:
                hint = f"{_guess(name, _DEFAULTS)} `kept config show` lists all settings.".lstrip()
                raise SettingsError(f"{where}: there is no setting {shown(name)}.", hint=hint)
            checked = _checked(name, value, where)
            values[name] = {**values.get(name, {}), **checked} if is_table(name) else checked
            set_by |= dict.fromkeys([f"{name}.{row}" for row in checked] if is_table(name) else [name], where)
            last[name] = where
    for name in filter(is_table, values):  # tables are complete only after the last layer
        values[name] = _complete(name, values[name], last[name])
    return Resolved(settings=Settings(**values), set_by=set_by)


def check_new(name: str, text: str) -> None:
    """Raise SettingsError for a vector model that Kept does not know: a person is setting it now.

    `resolve` accepts it, because a file from an older version must not keep a memory from opening.
    """
    is_path = PurePath(text).is_absolute() or text.startswith("~")
    if name == "vector_model" and text not in ("none", VECTOR_MODEL) and not is_path:
        hint = "The known models are that one, and folders with model.onnx and tokenizer.json."
        raise SettingsError(f"vector_model must be {field_named(name).allowed}, not {shown(text)}.", hint=hint)


def _checked(name: str, value: Any, where: str) -> Any:
    """The value in its own type; of a table, the rows that were given. Raises SettingsError."""
    if not is_table(name):
        return _converted(name, _in_bytes(name, _without_none(name, value)), where, value)
    if not isinstance(value, Mapping):
        raise SettingsError(
            f"{where}: {name} is a table, not {shown(value)}.",
            hint=f"Name the row, as in {name}.{next(iter(_DEFAULTS[name]))}.",
        )
    rows: dict[str, Any] = {}
    for given, entry in value.items():
        row = _row_name(name, given, where)
        if row in rows:
            raise SettingsError(f"{where}: {name} has two rows for {row}.", hint="Remove one of them.")
        rows |= _converted(name, {row: entry}, where, entry)
    return rows


def _converted(name: str, value: Any, where: str, given: Any) -> Any:
    """The value as msgspec converts it. Raises SettingsError, which shows the value as it was given."""
    try:
        converted = msgspec.convert(value, Settings.__annotations__[name])
    except (msgspec.ValidationError, UnicodeEncodeError):
        raise _refusal(name, value, where, given) from None
    fits = field_named(name).fits
    if isinstance(converted, str) and fits is not None and not fits(converted):
        raise _refusal(name, value, where, given)
    return converted


def _refusal(name: str, value: Any, where: str, given: Any) -> SettingsError:
    """An error in our words for a value that msgspec refuses, or for a text of the wrong form."""
    field = field_named(name)
    full_name = f"{name}.{next(iter(value))}" if field.is_table else name
    hint = "" if field.is_table else _guess(given, field.choices)
    return SettingsError(f"{where}: {full_name} must be {field.allowed}, not {shown(given)}.", hint=hint)


def _row_name(name: str, given: Any, where: str) -> str:
    choices = field_named(name).choices
    if choices:
        if given in choices:
            return str(given)
        message = f"{where}: {name} has no row {shown(given)}; its rows are {', '.join(choices)}."
        raise SettingsError(message, hint=_guess(given, choices))
    row = canonical_kind(given) if isinstance(given, str) else ""
    is_word = bool(row) and len(row) <= 64 and f"_{row}".isidentifier()
    if not is_word or canonical_kind(row) != row:
        message = f"{where}: {name} has a row {shown(given)}, which cannot be a kind."
        raise SettingsError(message, hint="A kind consists of letters, digits and underscores.")
    return row


def _complete(name: str, rows: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The rows over their defaults, frozen."""
    table = {**_DEFAULTS[name], **rows}
    if not any(table.values()):
        raise SettingsError(f"{where}: every row of {name} is 0.", hint="Give at least one of them a value above 0.")
    return MappingProxyType(table)


def _without_none(name: str, value: Any) -> Any:
    """None for the word "none", since TOML has no null and a later layer must be able to take a limit away."""
    is_none = _DEFAULTS[name] is None and isinstance(value, str) and value.lower() == "none"
    return None if is_none else value


def _in_bytes(name: str, value: Any) -> Any:
    """`100MB`, `1.5 GiB` or `4096` as a number, for a setting that counts bytes; anything else as it is."""
    if not (name.endswith("_bytes") and isinstance(value, str)):
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
    if not isinstance(given, str):
        return ""
    likeness, nearest = max(((_likeness(given[:100].lower(), name), name) for name in names), default=(0.0, ""))
    return f"Did you mean {nearest}?" if likeness >= MIN_LIKENESS else ""


def _likeness(one: str, other: str) -> float:
    """The share of the pairs of neighbouring letters that two words have in common, from 0 to 1."""
    pairs = [{word[start : start + 2] for start in range(len(word) - 1)} for word in (one, other)]
    return 2 * len(pairs[0] & pairs[1]) / (len(pairs[0]) + len(pairs[1]) or 1)


def flat(settings: Settings) -> dict[str, Any]:
    """Every value under its own name; the rows of a table as `table.row`."""
    values: dict[str, Any] = {}
    for name, value in as_mapping(settings).items():
        rows = {f"{name}.{row}": entry for row, entry in value.items()} if isinstance(value, dict) else {name: value}
        values.update(rows)
    return values


def as_mapping(settings: Settings) -> dict[str, Any]:
    """The settings as plain dictionaries, for JSON or as a layer."""
    values = {name: getattr(settings, name) for name in settings.__struct_fields__}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _from_mapping(values: Mapping[str, Any]) -> Settings:
    return Settings(**values)
