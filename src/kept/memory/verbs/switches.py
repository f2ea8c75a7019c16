"""Aliases for words, pauses, and settings."""

from typing import Annotated

from msgspec import Struct

from kept.memory import manage, project_settings, store
from kept.memory.context import Context
from kept.memory.verbs.declare import NotHere, Returns, Tool, Verb
from kept.memory.verbs.fields import about
from kept.model import Alias, Allowance, Pause
from kept.settings import Settings

Word = Annotated[str, about("The word.", metavar="WORD")]


class AddAlias(Struct, frozen=True, kw_only=True):
    """A word, and others that it stands for."""

    word: Word
    expands_to: Annotated[tuple[str, ...], about("Words that it also finds.", one="other", metavar="OTHERS")]


class RemoveAlias(Struct, frozen=True, kw_only=True):
    """A word that stands for no other from now on."""

    word: Word


class ListAliases(Struct, frozen=True, kw_only=True):
    """Which aliases to list."""

    word: Annotated[str, about("Only this word.", metavar="WORD", is_positional=True)] | None = None
    own: Annotated[bool, about("Only words that were added here, not those that Kept brings.")] = False


class PauseHere(Struct, frozen=True, kw_only=True):
    """Where a pause holds."""

    session: Annotated[str, about("Only in this session.", metavar="SESSION")] | None = None


class Allow(Struct, frozen=True, kw_only=True):
    """A value that only looks like a secret."""

    value: Annotated[str, about("The value.", metavar="VALUE")]
    note: Annotated[str, about("Why it may be stored.", metavar="TEXT")] = ""


class Configure(Struct, frozen=True, kw_only=True):
    """A setting of the project."""

    setting: Annotated[str, about("The name of the setting.", metavar="NAME")]
    value: Annotated[str, about("Its value.", metavar="VALUE")]


def add_alias(context: Context, asked: AddAlias) -> Alias:
    """Let a word find others as well."""
    return manage.add_alias(context, asked.word, *asked.expands_to)


def remove_alias(context: Context, asked: RemoveAlias) -> None:
    """Let a word find itself alone."""
    manage.remove_alias(context, asked.word)


def list_aliases(context: Context, asked: ListAliases) -> dict[str, tuple[str, ...]]:
    """List words and what they find as well."""
    return manage.list_aliases(context, asked.word, own=asked.own)


def pause(context: Context, asked: PauseHere) -> Pause:
    """Capture and inject nothing automatically."""
    return manage.pause(context, asked.session)


def resume(context: Context, asked: PauseHere) -> bool:
    """End a pause; False: there was none."""
    return manage.resume(context, asked.session)


def is_paused(context: Context, asked: PauseHere) -> bool:
    """Return True if the project or the session is paused."""
    return manage.is_paused(context, asked.session)


def allow(context: Context, asked: Allow) -> Allowance:
    """Store a value as it is from now on."""
    return store.allow(context, asked.value, asked.note)


def configure(context: Context, asked: Configure) -> Settings:
    """Change one setting of the project."""
    return project_settings.configure(context, asked.setting, asked.value)


ADD_ALIAS = Verb(
    name="aliases.add",
    help="Let a word find other words as well.",
    request=AddAlias,
    run=add_alias,
    effect="writes",
    returns=Returns(Alias, "The word, and everything it finds now."),
    python="aliases.add",
    cli="alias add",
    mcp=Tool("memory_alias_add"),
    http="POST /aliases",
    slash="/memory alias add",
    is_repeatable=True,
)
REMOVE_ALIAS = Verb(
    name="aliases.remove",
    help="Remove an alias.",
    request=RemoveAlias,
    run=remove_alias,
    effect="writes",
    returns=Returns(None, "Nothing."),
    python="aliases.remove",
    cli="alias remove",
    mcp=Tool("memory_alias_remove"),
    http="DELETE /aliases/{word}",
    slash="/memory alias remove",
)
LIST_ALIASES = Verb(
    name="aliases.list",
    help="Show the words that find others.",
    request=ListAliases,
    run=list_aliases,
    effect="reads",
    returns=Returns(None, "Each word with the words it also finds."),
    python="aliases.list",
    cli="alias list",
    mcp=Tool("memory_aliases"),
    http="GET /aliases",
    slash="/memory alias list",
)
PAUSE = Verb(
    name="pauses.pause",
    help="Pause automatic capture and injection in this project, or in one session.",
    request=PauseHere,
    run=pause,
    effect="writes",
    returns=Returns(Pause, "The pause."),
    python="pauses.pause",
    cli="pause",
    mcp=Tool("memory_pause"),
    http="POST /pause",
    slash="/memory auto off",
    is_repeatable=True,
)
RESUME = Verb(
    name="pauses.resume",
    help="End a pause.",
    request=PauseHere,
    run=resume,
    effect="writes",
    returns=Returns(None, "True, or false if there was no pause."),
    python="pauses.resume",
    cli="resume",
    mcp=NotHere("Only a person ends a pause: it is their word that nothing be captured."),
    http="POST /resume",
    slash="/memory auto on",
    is_repeatable=True,
)
IS_PAUSED = Verb(
    name="pauses.status",
    help="Show whether the project or a session is paused.",
    request=PauseHere,
    run=is_paused,
    effect="reads",
    returns=Returns(None, "True or false."),
    python="pauses.status",
    cli=NotHere("`kept status` shows every pause."),
    mcp=Tool("memory_paused"),
    http="GET /pause",
    slash="/memory auto status",
)
ALLOW = Verb(
    name="store.allow",
    who="person",
    help="Declare that a value only looks like a secret.",
    request=Allow,
    run=allow,
    effect="writes",
    returns=Returns(Allowance, "The digest of the value, and the note."),
    python="store.allow",
    cli="secrets allow",
    mcp=NotHere("Only a person says that a value is not a secret."),
    http="POST /allowances",
    slash="/memory allow",
    is_repeatable=True,
)
CONFIGURE = Verb(
    name="store.configure",
    help="Change a setting of this project.",
    request=Configure,
    run=configure,
    effect="writes",
    returns=Returns(None, "The settings in force."),
    python="store.configure",
    cli="config set",
    mcp=NotHere("Settings belong to people; an agent that changes them could switch off its own limits."),
    http="PUT /settings/{setting}",
    slash="/memory set",
    is_repeatable=True,
)
VERBS = (ADD_ALIAS, REMOVE_ALIAS, LIST_ALIASES, PAUSE, RESUME, IS_PAUSED, ALLOW, CONFIGURE)
