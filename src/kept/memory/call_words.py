"""Memories that share rare words with a tool call: rules that were stored without the files that they concern.

`actions` asks here where no key finds a memory. The words are those of the paths and commands of the call
(`kept.anchors`), with those of the prompt of the turn for half. As at the floor of recall, a word is worth the more the
rarer it is, less the chance to find as many words in some memory. Rule: one word alone says nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from heapq import nlargest
from math import comb, log

from msgspec import Struct

from kept import text
from kept.memory.anchor_files import is_anchored, words_of
from kept.model import Memory
from kept.ports import Reader, Statistics, Storage
from kept.recall.floor import ORDINARY, rarity
from kept.recall.stems import COMMON, WORTHLESS

MOST_LOOKED_AT = 40  # memories
TELLING_SHARE = 0.05  # of the memories: a word that more of them have tells nothing
AT_LEAST = 3  # memories: in a small store no word is rare by its share
LEAST_SHARED = 2  # words of the call: the hook opens the memory for no less
OF_PROMPT = 0.5  # of the worth of a word: the prompt speaks of the whole turn, the call of this step
OF_CHOICE = 0.5  # the words of a path belong together, so finding several of them by chance takes less
LEAST_SURPRISE = 1.0  # with the words of the prompt: less than one memory in e is found by chance


class Shared(Struct, frozen=True):
    """A memory, how far its words lie above the bar, and the words of the call that it has."""

    memory: Memory
    surprise: float
    words: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"w:{word}" for word in self.words)


class _Worths(Struct, frozen=True):
    """Weigh the words of a call and its prompt in one space; words that tell nothing are left out."""

    call: Mapping[str, float]
    prompt: Mapping[str, float]
    n_words: int  # of the call
    rows: float

    def shared_by(self, memory: Memory) -> Shared | None:
        """Return the words that a memory shares: two of the call at least, not only common ones; None if too few."""
        held = set(words_of(memory))
        own = [word for word in self.call if word in held]
        also = [word for word in self.prompt if word in held and word not in own]
        if len(own) < LEAST_SHARED or all(word in COMMON for word in own):
            return None
        worth = sum(self.call[word] for word in own) + OF_PROMPT * sum(self.prompt[word] for word in also)
        surprise = worth - log(self.rows) - OF_CHOICE * log(comb(self.n_words, len(own))) - LEAST_SURPRISE
        return Shared(memory, surprise, tuple(own)) if surprise >= 0 else None


def sharing_words(
    storage: Storage, held: Mapping[str, Mapping[str, Sequence[int]]], words: Mapping[str, float], said: Set[str]
) -> list[Shared]:
    """Return the memories of one space that share enough with a call.

    `words` are those of the call with their weights, `held` the ids by word and space, `said` the words of the prompt.
    """
    ids = {word: own[storage.space] for word, own in held.items() if storage.space in own}
    if not ids:
        return []
    with storage.reading() as reader:
        rarities, rows = _rarities(reader, [*ids, *sorted(said)])
        call = {word: words[word] * rarities[word] for word in ids if word in rarities}
        looked_at = [reader.get(Memory, id) for id in _nearest(ids, call)]
    worths = _Worths(call, {word: own for word, own in rarities.items() if word in said}, len(words), rows)
    wanted = [one for one in looked_at if one is not None and is_anchored(one) and one.feedback >= 0]
    return [shared for one in wanted if (shared := worths.shared_by(one)) is not None]


def _nearest(ids: Mapping[str, Sequence[int]], call: Mapping[str, float]) -> list[int]:
    """Return the ids of the memories whose words of the call are worth most together."""
    worth: defaultdict[int, float] = defaultdict(float)
    for word, own in call.items():
        for id in ids[word]:
            worth[id] += own
    return nlargest(MOST_LOOKED_AT, worth, key=lambda id: (worth[id], id))


def _rarities(reader: Reader, words: Sequence[str]) -> tuple[dict[str, float], float]:
    """Return the worth of each word that few memories have, and how many memories the space is judged to hold."""
    stems = {word: own[0] for word in words if (own := text.words(word)) and own[0] not in WORTHLESS}
    known = reader.statistics(list(dict.fromkeys(stems.values())))
    few = held_by_few(known)
    return {word: rarity((stem,), known) for word, stem in stems.items() if stem in few}, known.rows + ORDINARY


def held_by_few(known: Statistics) -> frozenset[str]:
    """Return the words that few memories of a space have."""
    most = max(AT_LEAST, TELLING_SHARE * known.rows)
    return frozenset(word for word, rows in known.rows_with.items() if 0 < rows <= most)
