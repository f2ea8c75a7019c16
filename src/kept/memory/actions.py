"""Lines for a tool call: rules, warnings and decisions that concern the file, symbol or command at hand.

`memory.deliveries.for_action`, for hooks. The anchors (`memory.anchors`) name the memories that have a key in common
with the call; they are ranked by how much that key tells, and by the words that they share with the prompt of the turn.
Those that share only words with the call come from `call_words`.
Rule: a few lines or none. Each is told once at the actions of a session, and not if the prompt of the turn told it.
"""

from collections.abc import Mapping, Sequence
from math import log2

from msgspec import Struct

from kept import text
from kept.anchors import ANY, ToolCall, is_general, keys_of_call, keys_of_memory, words_of_call, words_of_memory
from kept.memory import guards
from kept.memory.anchor_files import Anchors, is_anchored, is_rule, keys_of
from kept.memory.brief import Delivery, ToldText, memory_line, note_delivery
from kept.memory.call_words import held_by_few, sharing_words
from kept.memory.context import Context
from kept.memory.standing import CodeView
from kept.memory.told import Told, told_in
from kept.model import Entry, Memory
from kept.ports import Reader, Storage
from kept.recall.stems import COMMON, WORTHLESS

MOST_LOOKED_AT = 40  # memories, by how much their keys tell
ENOUGH = 2.5  # of a rank: below it a memory is not told
HEAD = "Concerns what you are doing:"

# How much a key in common tells, if no other memory has it. A memory of the file itself comes first.
_WORTH = {"f": 3.5, "b": 3.0, "s": 3.0, "c": 3.0, "d": 2.5, "a": 2.5}
_WORTH_OF_ONE_WORD = {"c": 3.0, "d": 0.8}  # a program without a sub-command, a folder without the one above it
_WORTH_OF_GENERAL = 0.5  # a program that is used for everything
_OF_FILES = 1.0  # more, if the file is one of the memory's files, and not only named in its text
_WORTH_OF_WORD = 0.8  # a telling word that the memory shares with the prompt of the turn
_MOST_WORDS = 4
_PROMPT_CHARS = 4_000  # that are searched for the words of a reason
_WORTH_OF_SURPRISE = 0.25  # of a rank, for words of the call where no key tells more
_SAME_WORDS = 3  # telling words that two memories about the same thing share at least
_SAME_OCCASION_S = 7 * 86_400  # statements of one week belong together

_STANDING = ("preference", "convention", "warning")
_RULE_CHARS = 240  # a longer text is about one thing, and mentions the activity in passing


class ActionText(Struct, frozen=True, kw_only=True):
    """The text for a tool call, and the reason if the call is refused; both are "" if there is nothing to say."""

    text: str = ""
    refusal: str = ""


class Concern(Struct, frozen=True, kw_only=True):
    """A memory that concerns a call, with its rank, its keys, and the words that it shares with the prompt."""

    memory: Memory
    rank: float
    keys: tuple[str, ...]
    words: tuple[str, ...] = ()

    def reason(self, prompt: str) -> str:
        """Name the keys, and the words as they are written in the prompt."""
        named = ", ".join(_spoken(key) for key in self.keys[:2])
        written = dict.fromkeys(text.as_written(word, prompt[:_PROMPT_CHARS]) for word in self.words[:_MOST_WORDS])
        return f"concerns {named}" + (f"; prompt: {', '.join(written)}" if written else "")


def for_action(
    context: Context, call: ToolCall, delivery: Delivery, *, may_refuse: bool = True, may_tell: bool = True
) -> ActionText:
    """Write the lines that concern a tool call, or why a guard refuses it; nothing if none does.

    Some agents can be refused a call only before it, and told lines only after it: then one of the two is wanted.
    """
    if context.is_injection_off(delivery.session):
        return ActionText()
    root = context.place or ""
    keys, words = keys_of_call(call, root), words_of_call(call, root)
    if may_refuse and (refusal := guards.refusal_of(context, call, keys, delivery)):
        return ActionText(refusal=refusal)
    if not may_tell:
        return ActionText()
    told_before = told_in(context, delivery.session)
    chosen = _not_told_yet(context, keys, words, told_before)
    if not chosen:
        return ActionText()
    look = CodeView(context)
    block = text.delivered("\n".join([HEAD, *(memory_line(one.memory, look(one.memory)) for one in chosen)]))
    told = tuple(Entry(memory=one.memory, reason=one.reason(told_before.prompt)) for one in chosen)
    notice = ToldText(kind="action", section="concerns", told=told, more={"call": guards.named(call, root)})
    note_delivery(context, delivery, block, notice)
    return ActionText(text=block)


def _not_told_yet(context: Context, keys: Sequence[str], words: Mapping[str, float], told: Told) -> list[Concern]:
    """Return the nearest memories, without those that were told before.

    A memory that was told before keeps its place among the nearest: the next ones do not move up at the next call.
    """
    silent = told.at("action", since="session") | told.at("prompt", since="turn")
    nearest = [one for one in concerns(context, keys, words, told.prompt) if one.rank >= ENOUGH]
    return [one for one in nearest[: context.settings.action_lines] if one.memory.uid not in silent]


def concerns(context: Context, keys: Sequence[str], words: Mapping[str, float], prompt: str) -> list[Concern]:
    """Return the memories that concern a call with these keys and words, the nearest first."""
    home, storages = context.spaces.home(), context.readable()
    if home is None:
        return []
    anchors = Anchors(home, [storage.space for storage in storages])
    shared = {key: ids for key in keys if (ids := anchors.ids(key))}
    held = {word: ids for word in words if (ids := anchors.ids(f"w:{word}"))}
    said = frozenset(words_of_memory(prompt))
    found = [one for storage in storages for one in _concerns_in(storage, shared, prompt)]
    found += [
        Concern(memory=one.memory, rank=ENOUGH + _WORTH_OF_SURPRISE * one.surprise, keys=one.keys)
        for storage in storages
        for one in sharing_words(storage, held, words, said)
    ]
    found.sort(key=lambda one: (-one.rank, -one.memory.created_at.timestamp()))
    return _newest_of_same(list({one.memory.uid: one for one in reversed(found)}.values())[::-1])


def _concerns_in(storage: Storage, shared: Mapping[str, Mapping[str, Sequence[int]]], prompt: str) -> list[Concern]:
    """Return the memories of one space that concern a call; `shared` are the ids by key and space."""
    by_key = {key: ids[storage.space] for key, ids in shared.items() if storage.space in ids}
    weights = _weights({key: len(ids) for key, ids in by_key.items()})
    with storage.reading() as reader:
        looked_at = [reader.get(Memory, id) for id in _likeliest(by_key, weights)]
        words = _telling(reader, prompt)
    wanted = [one for one in looked_at if one is not None and is_anchored(one) and one.feedback >= 0]
    found = [_concern(memory, weights, words) for memory in wanted]
    return [one for one in found if one is not None]


def _likeliest(by_key: Mapping[str, Sequence[int]], weights: Mapping[str, float]) -> list[int]:
    """Return the ids of the memories to look at, by the most telling key of each."""
    best: dict[int, float] = {}
    for key, ids in by_key.items():
        best |= {id: max(weights[key], best.get(id, 0.0)) for id in ids}
    return sorted(best, key=lambda id: -best[id])[:MOST_LOOKED_AT]


def _concern(memory: Memory, weights: Mapping[str, float], words: frozenset[str]) -> Concern | None:
    """Return how a memory concerns the call; None if it does not, as where two hashes are alike."""
    worth = _worth_of_keys(memory, weights)
    if not worth:
        return None
    own = sorted(worth, key=lambda key: -worth[key])
    named = {word for key in own for word in text.words(key[2:])}  # counted by their keys
    shared = sorted((words & set(text.words(memory.content))) - named)
    rank = worth[own[0]] + _WORTH_OF_WORD * min(len(shared), _MOST_WORDS)
    return Concern(memory=memory, rank=rank, keys=tuple(own), words=tuple(shared))


def _worth_of_keys(memory: Memory, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the keys that a memory has in common with the call, each with its worth.

    Only a standing rule counts by an activity. A memory that is not about a file of the call must read like a rule.
    """
    files = {key for path in memory.files for key in keys_of_memory("", [path])}
    worth = {key: weights[key] + _OF_FILES * (key in files) for key in keys_of(memory) if key in weights}
    if not _is_standing_rule(memory):
        worth = {key: own for key, own in worth.items() if key[0] != "a"}
    return {} if files.isdisjoint(worth) and not is_rule(memory) else worth


def _is_standing_rule(memory: Memory) -> bool:
    """Return True for a rule that holds whenever something is done, and is not about one thing at length."""
    return (memory.kind in _STANDING or memory.trust == "user") and len(memory.content) <= _RULE_CHARS


def _newest_of_same(found: Sequence[Concern]) -> list[Concern]:
    """Leave out a memory if a newer one, which concerns the same call, is about the same thing."""
    held = {one.memory.uid: _own_words(one.memory) for one in found}

    def is_older(one: Concern, other: Concern) -> bool:
        age_s = (other.memory.created_at - one.memory.created_at).total_seconds()
        is_same = len(held[one.memory.uid] & held[other.memory.uid]) >= _SAME_WORDS
        return age_s > _SAME_OCCASION_S and one.memory.kind == other.memory.kind and is_same

    return [one for one in found if not any(is_older(one, other) for other in found)]


def _own_words(memory: Memory) -> frozenset[str]:
    return frozenset(word for word in text.words(memory.content) if word not in COMMON and word not in WORTHLESS)


def _weights(counts: Mapping[str, int]) -> dict[str, float]:
    """Return how much each key tells: the less, the more memories have it."""
    weights = {}
    for key, count in counts.items():
        if count:
            kind, name = key[0], key[2:]
            is_one = " " not in name and "/" not in name
            worth = _WORTH_OF_ONE_WORD.get(kind, _WORTH[kind]) if is_one else _WORTH[kind]
            worth = _WORTH_OF_GENERAL if kind == "c" and is_general(name) else worth
            # Of many rules for an activity each holds; of many memories with a name, the name tells none apart.
            weights[key] = worth if kind == "a" else worth / (1 + 0.25 * log2(count))
    return weights


def _telling(reader: Reader, prompt: str) -> frozenset[str]:
    """Return the words of a prompt that few memories have."""
    words = [word for word in dict.fromkeys(text.words(prompt)) if word not in COMMON and word not in WORTHLESS]
    return held_by_few(reader.statistics(words)) if words else frozenset()


def _spoken(key: str) -> str:
    return f"{key[2:]}()" if key[0] == "s" and "." not in key else key[2:].removesuffix(ANY)
