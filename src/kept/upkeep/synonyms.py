"""Aliases that a store itself suggests: short forms that it spells out, and words that stand for a tag.

Pure, for reviews. A short form is told where a text says "continuous delivery (CD)" or the other way round. A word
stands for a tag if nearly all memories that say it have the tag, and half of the tagged ones say it. Rule: these are
proposals; a query expands only what a person accepted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from kept import text
from kept.model import Memory

FEWEST = 3  # memories that say it: two may be chance
OF_WORD = 0.8  # of the memories with the word, those that have the tag
OF_TAG = 0.5  # of the memories with the tag, those that have the word
MOST_PROPOSED = 5
_SHORTEST = 3  # letters
_SPELT_OUT = r"((?:[A-Za-z][\w-]*[ -]){1,5}[A-Za-z][\w-]*) \(([A-Za-z][\w]{1,5})\)"
_SHORT_FIRST = r"\b([A-Za-z][\w]{1,5}) \(([A-Za-z][\w-]*(?:[ -][A-Za-z][\w-]*){1,5})\)"


class AliasProposal(Struct, frozen=True, kw_only=True):
    """A word, another one that the store uses for the same thing, and what suggests that."""

    word: str
    other: str
    reason: str


def alias_proposals(memories: Sequence[Memory], is_known: Callable[[str, str], bool]) -> list[AliasProposal]:
    """At most a handful, the surest first; none that `is_known` already."""
    found = {(one.word, one.other): one for one in (*_short_forms(memories), *_of_tags(memories))}
    return [one for one in found.values() if not is_known(one.word, one.other)][:MOST_PROPOSED]


def _short_forms(memories: Sequence[Memory]) -> Iterator[AliasProposal]:
    for memory in memories:
        pairs = [(short, words) for words, short in text.compiled(_SPELT_OUT).findall(memory.content)]
        for short, words in (*pairs, *text.compiled(_SHORT_FIRST).findall(memory.content)):
            parts = words.replace("-", " ").split()[-len(short) :]
            if len(parts) == len(short) and all(map(str.startswith, map(str.lower, parts), short.lower())):
                spelt_out = " ".join(parts).lower()
                yield AliasProposal(word=short.lower(), other=spelt_out, reason=f"[id:{memory.ref}] spells it out")


def _of_tags(memories: Sequence[Memory]) -> Iterator[AliasProposal]:
    tagged: dict[str, list[frozenset[str]]] = defaultdict(list)
    held_by: Counter[str] = Counter()
    for memory in memories:
        words = frozenset(text.words(memory.content))
        held_by.update(words)
        for tag in memory.tags:
            tagged[tag].append(words)
    written = _as_written(memories)
    for tag, own in sorted(tagged.items()):
        if len(own) < FEWEST or " " in tag:
            continue
        of_tag = set(text.words(tag))
        for word, number in sorted(Counter(word for words in own for word in words).items()):
            is_close = number >= max(FEWEST, OF_WORD * held_by[word], OF_TAG * len(own))
            if is_close and word not in of_tag and len(written.get(word, "")) >= _SHORTEST:
                why = f"{number} of {len(own)} memories tagged {tag} say it, and hardly any other"
                yield AliasProposal(word=tag, other=written[word], reason=why)


def _as_written(memories: Sequence[Memory]) -> dict[str, str]:
    """Map each token to the first word that was written for it."""
    written: dict[str, str] = {}
    for memory in memories:
        for run in memory.content.split():
            for token in text.words(run)[:1]:
                written.setdefault(token, run.strip("`\"'.,;:!?()").lower())
    return written
