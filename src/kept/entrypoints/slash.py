"""Slash commands: typed into a chat by a person.

For hosts: `if is_ours(line): answer = run(memory, line)`. One parser for every chat, plugin and `kept slash`. A verb
whose row names a slash command is derived from its request: values in order, the others as `--name value`. The commands
of `COMMANDS` are the short ones, with words of their own. Rule: keywords act only on an unambiguous match. If one
memory holds all of the words, it is used; if several do, they are listed, or the host asks; if none does, similar ones
are listed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from kept import ids, text
from kept.entrypoints.answers import answer_lines
from kept.entrypoints.wording import receipt_lines
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept, verbs
from kept.memory.brief import trust_mark
from kept.memory.verbs.arguments import Argument, build, wire_arguments
from kept.memory.verbs.declare import AnyVerb
from kept.model import Memory, Source, canonical_kind, replace
from kept.settings import Settings, hook_limits
from kept.tables import PRESETS

OPTION = re.compile(r'(?:(?<=\s)|^)--(?P<name>[\w-]+)(?:(?:=|\s+)(?P<value>"[^"]*"|(?!--)\S+))?')
ERASE = "erase"  # which a person confirms by the word yes
DEFAULTS = {"/memory alias": "/memory alias list"}
Choose = Callable[[str, Sequence[Memory]], int | str | None]  # which of these? a ref, or None for none of them

SUMMARY = "summary"  # the kind
MOST_SHOWN = 20
MOST_LINES = 200
MAX_USAGE_CHARS = 40
MOST_MATCHES = 50
EXCERPT_CHARS = 160


class SlashAnswer(Struct, frozen=True, kw_only=True):
    """The result of a command: `str(answer)` for the chat, `data` for a program. `done`: something was changed."""

    command: str = ""
    text: str
    data: dict[str, Any] = {}
    done: bool = False

    def __str__(self) -> str:
        return self.text


class SlashCommand(Struct, frozen=True):
    """One command: how it is typed, what it does, and its code."""

    usage: str
    line: str
    run: Callable[[Kept, str, Choose | None], SlashAnswer]


def is_ours(line: str) -> bool:
    """Whether a line is meant for Kept, correct or not; a host has commands of its own."""
    first = next(iter(line.split(None, 1)), "").lower()
    return first in {name.split()[0] for name in COMMANDS}


def parse(line: str) -> tuple[str, str]:
    """Return the command that a line names, and the text typed after it. `/memory` alone asks for help.

    Raises InvalidInput, with the nearest command, for anything else.
    """
    name, argument = _split(line)
    if name == "/memory" and not argument:
        name = "/memory help"
    known = known_commands()
    while name not in known and argument and any(one.startswith(f"{name} ") for one in known):
        word, argument = _split(argument)
        name = f"{name} {word}"
    if name in DEFAULTS:
        name = DEFAULTS[name]
    if name in known:
        return name, argument
    raise _unknown(name)


@cache
def known_commands() -> Mapping[str, SlashCommand]:
    """Return every command by its name: the short ones first, then those derived from verbs."""
    derived = {verb.slash: _derived(verb) for verb in verbs.all_verbs() if isinstance(verb.slash, str)}
    return {**COMMANDS, **{name: command for name, command in derived.items() if name not in COMMANDS}}


def run(memory: Kept, line: str, *, choose: Choose | None = None) -> SlashAnswer:
    """Do what the line says, and answer. `choose(question, memories)` asks which one is meant, where several match.

    Raises KeptError, whose text can be shown as the answer.
    """
    name, argument = parse(line)
    return replace(known_commands()[name].run(memory, argument, choose), command=name)


def help_text(*, is_whole: bool = False) -> str:
    """Return the short commands, or all of them, each with one line of help."""
    commands = (known_commands() if is_whole else COMMANDS).values()
    width = min(MAX_USAGE_CHARS, max(len(command.usage) for command in commands))
    return "\n".join(f"{command.usage:<{width}}  {command.line}" for command in commands)


# From verbs to commands


def _derived(verb: AnyVerb) -> SlashCommand:
    """Derive the command of a verb: required values in order, options by name."""
    arguments = wire_arguments(verb.request)
    positional = " ".join(_placeholder(one) for one in arguments if one.is_positional)
    options = "" if all(one.is_positional for one in arguments) else "[--OPTION VALUE]"

    def run(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
        if verb.name == ERASE:
            words, _, last = argument.rpartition(" ")
            if last.lower() != "yes":
                return SlashAnswer(text=f"This cannot be undone. To do it, type: {verb.slash} {argument} yes")
            argument = words
        given = values_of(arguments, argument)
        asked = build(verb.request, given, verb=str(verb.slash))
        answer = memory.perform(verb, asked)
        data = msgspec.to_builtins(answer, enc_hook=str)
        plain = data if isinstance(data, dict) else {verb.returns.many or "answer": data}
        said = "\n".join(answer_lines(answer)[:MOST_LINES])
        return SlashAnswer(text=said, data=plain, done=verb.effect != "reads")

    return SlashCommand(" ".join(filter(None, (str(verb.slash), positional, options))), verb.help, run)


def _placeholder(argument: Argument) -> str:
    shown = argument.metavar or argument.name.upper()
    return shown if argument.is_required else f"[{shown}]"


def values_of(arguments: Sequence[Argument], typed: str) -> dict[str, Any]:
    """Read the arguments of a verb from the text after a command. Raises InvalidInput for an option it does not have.

    `--limit 3` and `--limit=3` are options wherever they stand; a value may be quoted. The other words are the
    positional values in their order, the last of them as it was typed.
    """
    named = {one.singular.replace("_", "-"): one for one in arguments if not one.is_positional}
    positional = [one for one in arguments if one.is_positional]
    options, rest = _options(named, typed)
    if not any(one.is_text for one in positional):
        _check_options(named, rest)
    return options | _positional(positional, rest)


def _options(named: Mapping[str, Argument], typed: str) -> tuple[dict[str, Any], str]:
    """Return the values of known options, and the text without them."""
    given: dict[str, Any] = {}

    def take(found: re.Match[str]) -> str:
        option = named.get(found["name"])
        if option is None:
            return found[0]
        value = found["value"] or ""
        is_flag = option.form == "boolean" and value.lower() not in ("true", "false")
        taken = True if is_flag else value.strip('"')
        given[option.name] = [*given.get(option.name, ()), taken] if option.is_several else taken
        return f" {value} " if is_flag else " "

    return given, OPTION.sub(take, f" {typed}").strip()


def _check_options(named: Mapping[str, Argument], rest: str) -> None:
    """Raise InvalidInput if an option is left over."""
    unknown = re.search(r"(?:^|\s)--([\w-]+)", rest)
    if unknown is not None:
        hint = f"It takes {', '.join(f'--{name}' for name in named)}." if named else "It takes no options."
        raise InvalidInput(f"There is no option --{unknown[1][:40]}.", hint=hint)


def _positional(arguments: Sequence[Argument], rest: str) -> dict[str, Any]:
    """Return the values that were typed without a name."""
    given: dict[str, Any] = {}
    for argument in arguments:
        if not rest:
            break
        is_last = argument is arguments[-1]
        if argument.is_several and not argument.is_text:
            given[argument.name], rest = rest.replace(",", " ").split(), ""
        elif argument.is_text or is_last:
            given[argument.name], rest = rest, ""
        else:
            given[argument.name], rest = [*rest.split(None, 1), ""][:2]
    if rest:
        raise InvalidInput(f"{text.visible(rest[:40], keep_newlines=False)!r} is one word too many.")
    return given


def _split(line: str) -> tuple[str, str]:
    """The first word in small letters, and the rest as it was typed."""
    first, *rest = [*line.split(None, 1), "", ""][:2]
    return first.lower(), rest[0].strip()


def _unknown(name: str) -> InvalidInput:
    shown = text.visible(name[:60], keep_newlines=False)
    nearest = get_close_matches(name, list(known_commands()), n=1)
    guess = f"Did you mean {nearest[0]}? " if nearest else ""
    if not name.startswith("/"):
        return InvalidInput(
            f"{shown!r} is not a command: commands begin with a slash.", hint="/memory help lists them."
        )
    return InvalidInput(f"Unknown command {shown}.", hint=f"{guess}/memory help lists them all.")


def _wanting(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"{name} needs {what}.", hint=f"Usage: {COMMANDS[name].usage}")


# Remember, forget, pin


def _remember(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    if not argument:
        raise _wanting("/remember", "the text")
    # A slash command is typed by a person, also where an agent opened the memory.
    said_by = memory.look().person or memory.look().actor.name
    asked = build(
        verbs.remember.Remember, values_of(wire_arguments(verbs.remember.Remember), argument), verb="/remember"
    )
    asked = replace(asked, source=Source(origin="user", agent=said_by))
    receipt = memory.perform(verbs.remember.REMEMBER, asked)
    if receipt.outcome == "refused":
        raise InvalidInput(f"Not kept: {receipt.message}")
    data = {"outcome": receipt.outcome, "ref": receipt.ref, "redactions": msgspec.to_builtins(receipt.redactions)}
    return SlashAnswer(text="\n".join(receipt_lines(receipt)), data=data, done=True)


def _forget(memory: Kept, argument: str, choose: Choose | None) -> SlashAnswer:
    found = _the_one(memory, "/forget", argument, choose)
    if isinstance(found, SlashAnswer):
        return found
    memory.forget(found.ref)
    sentence = f"Forgotten: {_line(found)}\n`kept restore {found.ref}` brings it back."
    return SlashAnswer(text=sentence, data={"ref": found.ref}, done=True)


def _pin(memory: Kept, argument: str, choose: Choose | None) -> SlashAnswer:
    found = _the_one(memory, "/pin", argument, choose)
    if isinstance(found, SlashAnswer):
        return found
    is_pinned = found.status == "pinned"
    if is_pinned:
        memory.unpin(found.ref)
    else:
        memory.pin(found.ref)
    sentence = f"{'No longer pinned' if is_pinned else 'Pinned'}: {_line(found)}"
    return SlashAnswer(text=sentence, data={"ref": found.ref, "pinned": not is_pinned}, done=True)


def _the_one(memory: Kept, name: str, argument: str, choose: Choose | None) -> Memory | SlashAnswer:
    """The memory that an id or keywords mean, or the answer that says why there is not one."""
    if not argument:
        raise _wanting(name, "an id or a keyword")
    if ids.is_ref(argument):
        return memory.get(argument)
    matches = _holding(memory, argument)
    if len(matches) > 1 and choose is not None:
        chosen = choose(f"{len(matches)} memories match. Which one do you mean?", matches)
        refs = {one.ref: one for one in matches}
        if chosen is None or str(chosen) not in refs:
            return SlashAnswer(text="Nothing was changed.", data={"matches": _documents(matches)})
        return refs[str(chosen)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        lines = [f"{len(matches)} memories match. Say which one: {name} {matches[0].ref}"]
        return SlashAnswer(text=_listed(lines, matches), data={"matches": _documents(matches)})
    asked = memory.look().search(argument, profile="praxis", of_every_session=True)  # the profile without a floor
    near = [hit.memory for hit in asked.hits if _is_statement(hit.memory)]
    if not near:
        raise NotFound("No memory has these words.", hint="/memory list shows all memories.")
    lines = [f"No memory has exactly these words. These are similar. Say which one: {name} {near[0].ref}"]
    return SlashAnswer(text=_listed(lines, near), data={"near": _documents(near)})


def _holding(memory: Kept, keywords: str) -> list[Memory]:
    """The memories that hold every keyword, as it is written or in another inflection; best first."""
    # The profile without aliases, guesses or threshold. Not `recall`: to be looked for by name is no use of a memory.
    hits = memory.look().search(keywords, limit=MOST_MATCHES, profile="koshi", of_every_session=True).hits
    wanted = set(text.query_words(keywords))
    return [hit.memory for hit in hits if wanted <= hit.matched.keys() and _is_statement(hit.memory)]


def _is_statement(memory: Memory) -> bool:
    """Return False for the summary of a session, which repeats the words of many statements."""
    return memory.kind != SUMMARY


# /memory …


def _help(_memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    is_whole = argument.strip().lower() == "all"
    shown = known_commands() if is_whole else COMMANDS
    commands = [{"usage": command.usage, "line": command.line} for command in shown.values()]
    return SlashAnswer(text=help_text(is_whole=is_whole), data={"commands": commands})


def _status(memory: Kept, _argument: str, _choose: Choose | None) -> SlashAnswer:
    """C21: entry count, categories, index health, last injected."""
    counts, injected = memory.look().counts(), memory.look().last_briefing()
    is_sound = counts.live == counts.indexed
    is_paused = memory.pauses.status()
    is_auto = memory.settings.auto_memory and not is_paused
    told = "Nothing was injected yet."
    if injected is not None:
        told = f"Last injected: {injected.at:%Y-%m-%d %H:%M} UTC, {injected.receipt}."
    lines = [
        f"{counts.live:,} memories, {counts.pinned:,} pinned, {counts.candidates:,} candidates.",
        f"Kinds: {', '.join(f'{kind} {number:,}' for kind, number in sorted(counts.by_kind.items())) or 'none'}.",
        "Index: in step."
        if is_sound
        else f"Index: {counts.indexed:,} of {counts.live:,} memories. `kept doctor --fix` repairs it.",
        told,
        "Auto-memory is on." if is_auto else f"Auto-memory is off{'' if is_paused else ' (setting auto_memory)'}.",
    ]
    data: dict[str, Any] = {
        "memories": counts.live,
        "kinds": counts.by_kind,
        "pinned": counts.pinned,
        "candidates": counts.candidates,
        "index": "in step" if is_sound else "out of step",
        "last_injected": None if injected is None else injected.at,
        "auto": is_auto,
    }
    return SlashAnswer(text="\n".join(lines), data=data)


def _list(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    arguments = wire_arguments(verbs.read.ListMemories)
    kind = Argument(name="kind", form="string", is_positional=True)
    given = {"limit": MOST_SHOWN + 1} | values_of((kind, *arguments), argument)
    if named := given.pop("kind", ""):
        given["kinds"] = [*given.get("kinds", ()), named]
    given["kinds"] = kinds = [canonical_kind(one) for one in given.get("kinds", ())]
    found = memory.perform(verbs.read.LIST, build(verbs.read.ListMemories, given, verb="/memory list"))
    if not found:
        nothing = f"There is no {kinds[0]} here." if kinds else "Nothing is kept here yet. /remember keeps the first."
        return SlashAnswer(text=text.visible(nothing, keep_newlines=False), data={"memories": []})
    shown = found[:MOST_SHOWN]
    lines = [_line(one) for one in shown]
    if len(found) > len(shown):
        lines.append(f"These are the newest {MOST_SHOWN}; /memory search finds others.")
    return SlashAnswer(text="\n".join(lines), data={"memories": _documents(shown)})


def _search(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    if not argument:
        raise _wanting("/memory search", "a few words")
    asked = build(verbs.recall.Recall, values_of(wire_arguments(verbs.recall.Recall), argument), verb="/memory search")
    recalled = memory.perform(verbs.recall.RECALL, asked)
    lines = [f"{hit.score:.3g}  {_line(hit.memory)}{f' ({hit.until})' if hit.until else ''}" for hit in recalled]
    if recalled.conflicts:
        lines.append(
            f"Some of these contradict each other: {', '.join(conflict.ref for conflict in recalled.conflicts)}."
        )
    data = {"hits": [{"score": hit.score, **_document(hit.memory)} for hit in recalled], "receipt": recalled.receipt}
    nothing = "Nothing fits well. Try other words." if recalled.misses else "No memory has these words."
    return SlashAnswer(text="\n".join(lines) or nothing, data=data)


def _budget(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    if not argument:
        now = memory.settings.briefing_max_tokens
        return SlashAnswer(text=f"A briefing takes at most {now:,} tokens.", data={"tokens": now})
    if not (argument.isascii() and argument.isdigit() and len(argument) <= 9):
        raise InvalidInput(f"{text.visible(argument[:40])!r} is not a number of tokens.", hint="/memory budget 3000")
    before = memory.settings.briefing_max_tokens
    now = _configured(memory, "briefing_max_tokens", argument).briefing_max_tokens
    sentence = f"A briefing takes at most {now:,} tokens from now on (before: {before:,})."
    usual = hook_limits(before)
    for name, most in hook_limits(now).items():
        if getattr(memory.settings, name) == usual[name] != most:  # not where people have set their own
            _configured(memory, name, str(most))
    limits = {name: getattr(memory.settings, name) for name in usual}
    if limits != usual:
        start, prompt, action = limits.values()
        sentence += f" Hooks add up to {start:,} tokens at a start, {prompt} lines to a prompt, {action} to an action."
    return SlashAnswer(text=sentence, data={"tokens": now, "before": before, **limits}, done=True)


def _config(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    before = memory.settings.preset
    if not argument:
        sentence = f"The preset is {before}. Choose one of {', '.join(PRESETS)}."
        return SlashAnswer(text=sentence, data={"preset": before, "presets": list(PRESETS)})
    if argument.lower() not in PRESETS:
        shown = text.visible(argument[:40], keep_newlines=False)
        raise InvalidInput(f"Unknown preset {shown!r}.", hint=f"Choose one of {', '.join(PRESETS)}.")
    now = _configured(memory, "preset", argument.lower()).preset
    sentence = f"The preset is {now} from now on (before: {before})."
    return SlashAnswer(text=sentence, data={"preset": now, "before": before}, done=True)


def _configured(memory: Kept, setting: str, value: str) -> Settings:
    """Change a setting by its verb, which a door may limit. Return the settings after it."""
    memory.perform(verbs.switches.CONFIGURE, verbs.switches.Configure(setting=setting, value=value))
    return memory.settings


def _list_aliases(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    given = values_of(wire_arguments(verbs.switches.ListAliases), argument)
    word = given.get("word")
    aliases = memory.aliases.list(word, own=word is None)
    lines = [f"{word} → {', '.join(others)}" for word, others in sorted(aliases.items())]
    if not lines:
        lines = ["No alias was added here." if word is None else f"{word} finds only itself."]
    shown = text.visible("\n".join(lines))
    return SlashAnswer(text=shown, data={"aliases": {w: list(o) for w, o in aliases.items()}})


def _add_alias(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    words = argument.replace(",", " ").split()
    if len(words) < 2:
        raise _wanting("/memory alias add", "a word and at least one other word for it")
    alias = memory.aliases.add(*words)
    sentence = text.visible(f"{alias.word} also finds {', '.join(alias.expands_to)}.", keep_newlines=False)
    return SlashAnswer(text=sentence, data=msgspec.to_builtins(alias), done=True)


def _remove_alias(memory: Kept, argument: str, _choose: Choose | None) -> SlashAnswer:
    if not argument:
        raise _wanting("/memory alias remove", "the word")
    memory.aliases.remove(argument)
    sentence = text.visible(f"The alias for {argument} is removed.", keep_newlines=False)
    return SlashAnswer(text=sentence, data={"removed": argument}, done=True)


def _auto_on(memory: Kept, _argument: str, _choose: Choose | None) -> SlashAnswer:
    if not memory.settings.auto_memory:
        _configured(memory, "auto_memory", "true")
    memory.pauses.resume()
    return SlashAnswer(text="Auto-memory is on.", data={"auto": True}, done=True)


def _auto_off(memory: Kept, _argument: str, _choose: Choose | None) -> SlashAnswer:
    memory.pauses.pause()
    sentence = "Auto-memory is off: nothing is captured or injected automatically. Commands still work."
    return SlashAnswer(text=sentence, data={"auto": False}, done=True)


# How memories are put into words


def _line(memory: Memory) -> str:
    """A memory on one line, so that no text can pass for a memory of its own."""
    words = " ".join(memory.content.split())
    shown = words if len(words) <= EXCERPT_CHARS else f"{words[: EXCERPT_CHARS - 1].rstrip()}…"
    pinned = " (pinned)" if memory.status == "pinned" else ""
    line = f"{memory.kind}{pinned}: {trust_mark(memory.trust)}{shown}"
    return f"[id:{memory.ref}] {text.visible(line, keep_newlines=False)}"


def _listed(lines: list[str], memories: Sequence[Memory]) -> str:
    more = len(memories) - MOST_SHOWN
    shown = [_line(memory) for memory in memories[:MOST_SHOWN]]
    return "\n".join([*lines, *shown, *([f"… and {more} more."] if more > 0 else [])])


def _document(memory: Memory) -> dict[str, Any]:
    return {
        "ref": memory.ref,
        "kind": memory.kind,
        "status": memory.status,
        "trust": memory.trust,
        "content": memory.content,
    }


def _documents(memories: Sequence[Memory]) -> list[dict[str, Any]]:
    return [_document(memory) for memory in memories]


COMMANDS: Mapping[str, SlashCommand] = {
    "/remember": SlashCommand("/remember TEXT", "Store one statement.", _remember),
    "/forget": SlashCommand("/forget ID|KEYWORD", "Hide a memory everywhere; it can be restored.", _forget),
    "/pin": SlashCommand("/pin ID|KEYWORD", "Pin a memory to every briefing, or unpin it.", _pin),
    "/memory status": SlashCommand("/memory status", "Show counts, kinds and the last injection.", _status),
    "/memory list": SlashCommand("/memory list [KIND]", "Show the newest memories.", _list),
    "/memory search": SlashCommand("/memory search WORDS", "Find memories, with their scores.", _search),
    "/memory budget": SlashCommand("/memory budget [TOKENS]", "Limit the tokens of a briefing.", _budget),
    "/memory alias add": SlashCommand("/memory alias add WORD OTHERS", "Let a word also find others.", _add_alias),
    "/memory alias list": SlashCommand("/memory alias list [WORD]", "Show your words that find others.", _list_aliases),
    "/memory alias remove": SlashCommand("/memory alias remove WORD", "Remove an alias.", _remove_alias),
    "/memory auto on": SlashCommand("/memory auto on", "Capture and inject automatically again.", _auto_on),
    "/memory auto off": SlashCommand("/memory auto off", "Capture and inject nothing automatically.", _auto_off),
    "/memory config": SlashCommand(
        "/memory config [PRESET]", f"Show or change the preset: {', '.join(PRESETS)}.", _config
    ),
    "/memory help": SlashCommand("/memory help [all]", "Show this list, or every command.", _help),
}
