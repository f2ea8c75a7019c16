"""Canaries: made-up words that occur nowhere else, and a way to find the least trace of one in a home.

Six bytes of a canary in a row are a trace, wherever they stand: a beginning, an end, a stem. The letters are
chosen so that nothing else makes such bytes: no vowel, none of hexadecimal; rare characters for Chinese.
Sixteen digits of a fingerprint are also a trace: whoever guesses the text could prove it. What is stored compressed, or
as bytes, is known by eight bytes in a row.
"""

import random
import re
from collections.abc import Iterable
from pathlib import Path

from kept import text
from kept.model import Memory, Source
from tests.builders import memory

LETTERS = "ghjkmnpqrtvwxz"
HAN = [chr(number) for number in range(0x3400, 0x4D00)]
WORD_BYTES, PRINT_BYTES, BLOB_BYTES = 6, 16, 8
# As canaries are written: in lower case, or with a capital first. Any mix of cases would also be found in ids and
# other binary values, of which a large file has some that read like a canary.
_WORD = re.compile(rb"[A-Zghjkmnpqrtvwxz][ghjkmnpqrtvwxz]{5,}|(?:[\xe3\xe4][\x80-\xbf]{2}){2,}")
_PRINT = re.compile(rb"[0-9a-f]{16,}")


class Aviary:
    """Makes memories full of canaries, and remembers the words."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._vocabulary = [
            "".join(self._random.choices("aeioubcdfls", k=self._random.randint(3, 9))) for _ in range(30_000)
        ]
        self.words: set[str] = set()
        self.fingerprints: set[str] = set()

    def word(self) -> str:
        """A new canary, one in eight of them Chinese."""
        letters, length = (HAN, 3) if self._random.random() < 1 / 8 else (LETTERS, self._random.randint(9, 14))
        canary = "".join(self._random.choices(letters, k=length))
        self.words.add(canary)
        return canary

    def prose(self, at_most: int = 40) -> str:
        """Ordinary words, a few of them in most texts, most of them in few."""
        count = self._random.randint(5, at_most)
        last = len(self._vocabulary) - 1
        return " ".join(self._vocabulary[min(int(self._random.paretovariate(0.7)), last)] for _ in range(count))

    def canary(self) -> Memory:
        """A memory with a canary in every field that takes a word."""
        begin, end = self.word(), self.word()
        content = f"{begin.capitalize()} {self.prose()} {end}"
        self.fingerprints.add(text.fingerprint(content))
        return memory(
            content,
            kind=self.word() if self._random.random() < 0.1 else "fact",
            tags=(self.word(), "ordinary"),
            files=(f"src/{self.word()}.py",),
            topic=self.word(),
            key=self.word(),
            item_type=self.word(),
            title=self.word(),
            scope=self._random.choice(["memory", "memory", "memory", "items"]),
            data={self.word(): [self.word(), 1]},
            source=Source(
                origin="tool",
                agent=self.word(),
                session=self.word(),
                task=self.word(),
                narrative=self.word(),
                file=self.word(),
            ),
        )

    def traces(self) -> set[bytes]:
        """Every run of six bytes in a canary or in one of its stems, and every 16 digits of a fingerprint."""
        spellings = self.words | {stem for word in self.words for stem in text.words(word)}
        words = {run for spelling in spellings for run in _runs(spelling.encode(), WORD_BYTES)}
        return words | {run for mark in self.fingerprints for run in _runs(mark.encode(), PRINT_BYTES)}


def runs_of(blobs: Iterable[bytes]) -> set[bytes]:
    """By which stored blobs are known."""
    return {run for blob in blobs for run in _runs(blob, BLOB_BYTES)}


def found_in(folder: Path, traces: set[bytes], blobs: set[bytes] = frozenset()) -> dict[str, set[bytes]]:  # type: ignore[assignment]
    """File → the traces it holds. Nothing in this process may have the files open: reading would drop its locks."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            hits = {*_hits(content, traces), *(blobs.intersection(_runs(content, BLOB_BYTES)) if blobs else ())}
            if hits:
                found[str(path.relative_to(folder))] = hits
    return found


def _hits(data: bytes, traces: set[bytes]) -> Iterable[bytes]:
    for pattern, length in ((_WORD, WORD_BYTES), (_PRINT, PRINT_BYTES)):
        for match in pattern.finditer(data):
            yield from (run for run in _runs(match.group().lower(), length) if run in traces)


def _runs(data: bytes, length: int) -> Iterable[bytes]:
    return (data[start : start + length] for start in range(len(data) - length + 1))
