"""Slash commands: typed into a chat to remember, forget, pin and search.

Facade layer, for hosts: `if is_ours(line): answer = run(memory, line)`. One table (`COMMANDS`), one parser, used by
every chat, plugin and by `kept slash`. Rule: keywords act only on an unambiguous match. If one memory holds all of the
words, it is used; if several do, they are listed, or the host asks; if none does, similar ones are listed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kept import ids, text
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.model import Memory, Receipt, Source, canonical_kind, replace
from kept.recall.briefing.render import trust_mark
from kept.tables import PRESETS

Choose = Callable[[str, Sequence[Memory]], int | str | None]  # which of these? a ref, or None for none of them

MOST_SHOWN = 20
MOST_MATCHES = 50
EXCERPT_CHARS = 160


class Answer(Struct, frozen=True, kw_only=True):
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
    run: Callable[[Kept, str, Choose | None], Answer]


def is_ours(line: str) -> bool:
    """Whether a line is meant for Kept, correct or not; a host has commands of its own."""
    first = next(iter(line.split(None, 1)), "").lower()
    return first in {name.split()[0] for name in COMMANDS}


def parse(line: str) -> tuple[str, str]:
    """The command of the table that a line names, and the text typed after it. `/memory` alone asks for help.

    Raises InvalidInput, with the nearest command, for anything else.
    """
    first, rest = _split(line)
    if first == "/memory":
        word, argument = _split(rest)
        name = f"/memory {word or 'help'}"
        if name in ("/memory alias", "/memory auto"):
            word, argument = _split(argument)
            name = f"{name} {word or ('list' if name.endswith('alias') else '')}".rstrip()
    else:
        name, argument = first, rest
    if name in COMMANDS:
        return name, argument
    raise _unknown(name)


def run(memory: Kept, line: str, *, choose: Choose | None = None) -> Answer:
    """Do what the line says, and answer. `choose(question, memories)` asks which one is meant, where several match.

    Raises KeptError, whose text can be shown as the answer.
    """
    name, argument = parse(line)
    return replace(COMMANDS[name].run(memory, argument, choose), command=name)


def help_text() -> str:
    """Every command with one line of help."""
    width = max(len(command.usage) for command in COMMANDS.values())
    return "\n".join(f"{command.usage:<{width}}  {command.line}" for command in COMMANDS.values())


def _split(line: str) -> tuple[str, str]:
    """The first word in small letters, and the rest as it was typed."""
    first, *rest = [*line.split(None, 1), "", ""][:2]
    return first.lower(), rest[0].strip()


def _unknown(name: str) -> InvalidInput:
    from difflib import get_close_matches

    shown = text.visible(name[:60], keep_newlines=False)
    nearest = get_close_matches(name, list(COMMANDS), n=1)
    guess = f"Did you mean {nearest[0]}? " if nearest else ""
    if not name.startswith("/"):
        return InvalidInput(
            f"{shown!r} is not a command: commands begin with a slash.", hint="/memory help lists them."
        )
    return InvalidInput(f"Unknown command {shown}.", hint=f"{guess}/memory help lists them all.")


def _wanting(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"{name} needs {what}.", hint=f"Usage: {COMMANDS[name].usage}")


# Remember, forget, pin


def _remember(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    if not argument:
        raise _wanting("/remember", "the text")
    # Whatever opened the memory: a slash command is typed by a person.
    said_by = memory.look().person or memory.look().actor.name
    receipt = memory.remember(argument, source=Source(origin="user", agent=said_by))
    if receipt.outcome == "refused":
        raise InvalidInput(f"Not kept: {receipt.message}")
    data = {"outcome": receipt.outcome, "ref": receipt.ref, "redactions": msgspec.to_builtins(receipt.redactions)}
    return Answer(text="\n".join(_kept(receipt)), data=data, done=True)


def _kept(receipt: Receipt) -> list[str]:
    is_known = receipt.outcome == "strengthened"
    lines = [f"Already kept: [id:{receipt.ref}] is more important now." if is_known else f"Kept: [id:{receipt.ref}]."]
    if receipt.redactions:
        lines.append(f"Redacted before it was stored: {', '.join(one.kind for one in receipt.redactions)}.")
    if receipt.near:
        lines.append(f"Similar memories already kept: {', '.join(f'[id:{ref}]' for ref in receipt.near)}.")
    if receipt.conflicts:
        lines.append(f"It contradicts memories already kept: {', '.join(one.ref for one in receipt.conflicts)}.")
    return lines


def _forget(memory: Kept, argument: str, choose: Choose | None) -> Answer:
    found = _the_one(memory, "/forget", argument, choose)
    if isinstance(found, Answer):
        return found
    memory.forget(found.ref)
    sentence = f"Forgotten: {_line(found)}\n`kept restore {found.ref}` brings it back."
    return Answer(text=sentence, data={"ref": found.ref}, done=True)


def _pin(memory: Kept, argument: str, choose: Choose | None) -> Answer:
    found = _the_one(memory, "/pin", argument, choose)
    if isinstance(found, Answer):
        return found
    is_pinned = found.status == "pinned"
    if is_pinned:
        memory.unpin(found.ref)
    else:
        memory.pin(found.ref)
    sentence = f"{'No longer pinned' if is_pinned else 'Pinned'}: {_line(found)}"
    return Answer(text=sentence, data={"ref": found.ref, "pinned": not is_pinned}, done=True)


def _the_one(memory: Kept, name: str, argument: str, choose: Choose | None) -> Memory | Answer:
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
            return Answer(text="Nothing was changed.", data={"matches": _documents(matches)})
        return refs[str(chosen)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        lines = [f"{len(matches)} memories match. Say which one: {name} {matches[0].ref}"]
        return Answer(text=_listed(lines, matches), data={"matches": _documents(matches)})
    asked = memory.look().search(argument, profile="praxis", of_every_session=True)  # the profile without a floor
    near = [hit.memory for hit in asked.hits]
    if not near:
        raise NotFound("No memory has these words.", hint="/memory list shows all memories.")
    lines = [f"No memory has exactly these words. These are similar. Say which one: {name} {near[0].ref}"]
    return Answer(text=_listed(lines, near), data={"near": _documents(near)})


def _holding(memory: Kept, keywords: str) -> list[Memory]:
    """The memories that hold every keyword, as it is written or in another inflection; best first."""
    # The profile without aliases, guesses or threshold. Not `recall`: to be looked for by name is no use of a memory.
    hits = memory.look().search(keywords, limit=MOST_MATCHES, profile="koshi", of_every_session=True).hits
    wanted = set(text.query_words(keywords))
    return [hit.memory for hit in hits if wanted <= hit.matched.keys()]


# /memory …


def _help(_memory: Kept, _argument: str, _choose: Choose | None) -> Answer:
    commands = [{"usage": command.usage, "line": command.line} for command in COMMANDS.values()]
    return Answer(text=help_text(), data={"commands": commands})


def _status(memory: Kept, _argument: str, _choose: Choose | None) -> Answer:
    """C21: entry count, categories, index health, last injected."""
    counts, injected = memory.look().counts(), memory.look().last_briefing()
    is_sound = counts.live == counts.indexed
    is_paused = memory.pauses.status()
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
        "Auto-memory is off." if is_paused else "Auto-memory is on.",
    ]
    data: dict[str, Any] = {
        "memories": counts.live,
        "kinds": counts.by_kind,
        "pinned": counts.pinned,
        "candidates": counts.candidates,
        "index": "in step" if is_sound else "out of step",
        "last_injected": None if injected is None else injected.at,
        "auto": not is_paused,
    }
    return Answer(text="\n".join(lines), data=data)


def _list(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    kinds = (canonical_kind(argument),) if argument else ()
    found = memory.list(kinds=kinds, limit=MOST_SHOWN + 1)
    if not found:
        nothing = f"There is no {kinds[0]} here." if kinds else "Nothing is kept here yet. /remember keeps the first."
        return Answer(text=text.visible(nothing, keep_newlines=False), data={"memories": []})
    shown = found[:MOST_SHOWN]
    lines = [_line(one) for one in shown]
    if len(found) > len(shown):
        lines.append(f"These are the newest {MOST_SHOWN}; /memory search finds others.")
    return Answer(text="\n".join(lines), data={"memories": _documents(shown)})


def _search(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    if not argument:
        raise _wanting("/memory search", "a few words")
    recalled = memory.recall(argument)
    lines = [f"{hit.score:.3g}  {_line(hit.memory)}" for hit in recalled]
    if recalled.conflicts:
        lines.append(
            f"Some of these contradict each other: {', '.join(conflict.ref for conflict in recalled.conflicts)}."
        )
    data = {"hits": [{"score": hit.score, **_document(hit.memory)} for hit in recalled], "receipt": recalled.receipt}
    nothing = "Nothing fits well. Try other words." if recalled.misses else "No memory has these words."
    return Answer(text="\n".join(lines) or nothing, data=data)


def _budget(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    if not argument:
        now = memory.settings.briefing_max_tokens
        return Answer(text=f"A briefing takes at most {now:,} tokens.", data={"tokens": now})
    if not (argument.isascii() and argument.isdigit() and len(argument) <= 9):
        raise InvalidInput(f"{text.visible(argument[:40])!r} is not a number of tokens.", hint="/memory budget 3000")
    before = memory.settings.briefing_max_tokens
    now = memory.store.configure("briefing_max_tokens", argument).briefing_max_tokens
    sentence = f"A briefing takes at most {now:,} tokens from now on (before: {before:,})."
    return Answer(text=sentence, data={"tokens": now, "before": before}, done=True)


def _config(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    before = memory.settings.preset
    if not argument:
        sentence = f"The preset is {before}. Choose one of {', '.join(PRESETS)}."
        return Answer(text=sentence, data={"preset": before, "presets": list(PRESETS)})
    if argument.lower() not in PRESETS:
        shown = text.visible(argument[:40], keep_newlines=False)
        raise InvalidInput(f"Unknown preset {shown!r}.", hint=f"Choose one of {', '.join(PRESETS)}.")
    now = memory.store.configure("preset", argument.lower()).preset
    sentence = f"The preset is {now} from now on (before: {before})."
    return Answer(text=sentence, data={"preset": now, "before": before}, done=True)


def _list_aliases(memory: Kept, _argument: str, _choose: Choose | None) -> Answer:
    aliases = memory.aliases.list()
    lines = [f"{word} → {', '.join(others)}" for word, others in sorted(aliases.items())]
    shown = text.visible("\n".join(lines))
    return Answer(text=shown, data={"aliases": {w: list(o) for w, o in aliases.items()}})


def _add_alias(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    words = argument.replace(",", " ").split()
    if len(words) < 2:
        raise _wanting("/memory alias add", "a word and at least one other word for it")
    alias = memory.aliases.add(*words)
    sentence = text.visible(f"{alias.word} also finds {', '.join(alias.expands_to)}.", keep_newlines=False)
    return Answer(text=sentence, data=msgspec.to_builtins(alias), done=True)


def _remove_alias(memory: Kept, argument: str, _choose: Choose | None) -> Answer:
    if not argument:
        raise _wanting("/memory alias remove", "the word")
    memory.aliases.remove(argument)
    sentence = text.visible(f"The alias for {argument} is removed.", keep_newlines=False)
    return Answer(text=sentence, data={"removed": argument}, done=True)


def _auto_on(memory: Kept, _argument: str, _choose: Choose | None) -> Answer:
    if not memory.settings.auto_memory:
        memory.store.configure("auto_memory", "true")
    memory.pauses.resume()
    return Answer(text="Auto-memory is on.", data={"auto": True}, done=True)


def _auto_off(memory: Kept, _argument: str, _choose: Choose | None) -> Answer:
    memory.pauses.pause()
    sentence = "Auto-memory is off: nothing is captured or injected automatically. Commands still work."
    return Answer(text=sentence, data={"auto": False}, done=True)


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
    "/memory alias list": SlashCommand("/memory alias list", "Show the words that find others.", _list_aliases),
    "/memory alias remove": SlashCommand("/memory alias remove WORD", "Remove an alias.", _remove_alias),
    "/memory auto on": SlashCommand("/memory auto on", "Capture and inject automatically again.", _auto_on),
    "/memory auto off": SlashCommand("/memory auto off", "Capture and inject nothing automatically.", _auto_off),
    "/memory config": SlashCommand(
        "/memory config [PRESET]", f"Show or change the preset: {', '.join(PRESETS)}.", _config
    ),
    "/memory help": SlashCommand("/memory help", "Show this list.", _help),
}
