"""Not hearing our own voice: text that merely repeats what is already written down is no new memory.

Overlapping runs of words (shingles) of the files a project keeps for its agents, compared with those of a draft.
Rule: a draft is an echo when most of it stands there; a new thought about an old subject is not.
"""

from collections.abc import Iterable

from msgspec import Struct

from kept import text

SHINGLE_WORDS = 4
ECHO_SHARE = 0.6
SOURCES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "README.md", "README.rst", "README.txt", "README", "MEMORY.md")


class Echoes(Struct, frozen=True):
    """What has been said before, as shingles."""

    shingles: frozenset[int] = frozenset()

    def repeats(self, content: str) -> bool:
        """Whether most of the text was said before."""
        own = shingles(content)
        if not own or not self.shingles:
            return False
        return len(own & self.shingles) >= ECHO_SHARE * len(own)


def echoes_of(texts: Iterable[str]) -> Echoes:
    """Everything that these texts say."""
    return Echoes(frozenset(shingle for said in texts for shingle in shingles(said)))


def shingles(content: str) -> frozenset[int]:
    """Hashes of the runs of four words; of a shorter text, of the whole."""
    words = text.words(content)
    if len(words) < SHINGLE_WORDS:
        return frozenset({hash(tuple(words))} if words else ())
    return frozenset(hash(tuple(words[i : i + SHINGLE_WORDS])) for i in range(len(words) - SHINGLE_WORDS + 1))
