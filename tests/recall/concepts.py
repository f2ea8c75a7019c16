"""An embedder for tests, which knows a few things by several names: fast, exact, and it remembers what it was asked."""

from collections.abc import Callable, Sequence

from kept import text

CONCEPTS = (
    ("car", "automobile", "vehicle"),
    ("dog", "hound", "puppy"),
    ("bill", "invoice", "receipt"),
    ("quick", "fast", "rapid"),
)


class Concepts:
    """One number for each concept, and a few for all other words. `seen` are the texts it was given."""

    def __init__(
        self,
        model: str = "concepts",
        before: Callable[[Sequence[str]], object] = lambda texts: None,
        *,
        is_static: bool = False,
    ) -> None:
        self.model = model
        self.is_static = is_static
        self.unrelated = 0.25
        self.seen: list[str] = []
        self._before = before

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self._before(texts)
        self.seen += texts
        return [self._row(text) for text in texts]

    def _row(self, content: str) -> list[float]:
        stems = [text.words(word)[0] for concept in CONCEPTS for word in concept]
        row = [0.0] * 16
        for word in text.words(content):
            if word in stems:
                row[stems.index(word) // 3] += 3.0
            else:
                row[len(CONCEPTS) + sum(word.encode()) % (16 - len(CONCEPTS))] += 1.0
        return row
