"""Stores to measure, and questions to ask them: made-up words that follow Zipf's law, and real English prose.

A store is built once, through the storage like any other, and cached under a name that says what it holds and for
which schema. Rule: the same name means the same text, on every machine (Zipf) or on this one (docstrings).
"""

import ast
import hashlib
import itertools
import random
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from kept import text
from kept.ids import uuid7
from kept.model import KINDS, Memory
from kept.ports import Stamp
from kept.storage.sqlite import SqliteStorage
from kept.tables import IMPORTANCE_BY_KIND, by_kind

SPACE = "project/bench"
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 12, 31, tzinfo=UTC)  # recall's clock: later than every memory

VOCABULARY = 50_000
_SHIFT = 2.7  # Mandelbrot's: the commonest word stands in most memories, as "the" does
_RARE_RANKS = range(2_000, 30_000)
_BATCH = 10_000
_PAGE = 1_000
_ONE_BY_ONE = 500  # the newest memories are written one at a time: the index of a store in use has many pieces
_LONGEST = 480  # characters of a paragraph that is a memory of its own

_CONSONANTS, _VOWELS = "bdfgklmnprtvz", "aeiou"


def word(rank: int) -> str:
    """A word for each rank, like `badugo`, which no stemmer touches."""
    syllables, number = "", rank + len(_CONSONANTS) * len(_VOWELS)
    while number:
        number, vowel = divmod(number, len(_VOWELS))
        number, consonant = divmod(number, len(_CONSONANTS))
        syllables = _CONSONANTS[consonant] + _VOWELS[vowel] + syllables
    return syllables + "q"


class Zipf:
    """A language of 50,000 words, in which the word of rank r is said with a chance of 1 / (r + 2.7)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [word(rank) for rank in range(VOCABULARY)]
        self._weights = list(itertools.accumulate(1 / (rank + 1 + _SHIFT) for rank in range(VOCABULARY)))

    def say(self, n_words: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=n_words))

    def memories(self, count: int) -> Iterator[Memory]:
        """Ten to sixty words each; kinds, tags, ages and feedback are mixed."""
        chance = self._random
        for number in range(count):
            kind = chance.choice(KINDS)
            at = START + timedelta(seconds=number * 300 * 86_400 // count)
            yield _memory(
                self.say(chance.randint(10, 60)),
                uid=uuid7(at, chance.randbytes(10)),
                at=at,
                kind=kind,
                tags=tuple(chance.sample(("auth", "api", "deploy", "test", "ui", "data"), chance.randint(0, 2))),
                files=(f"src/part{chance.randint(1, 40)}/module{chance.randint(1, 9)}.py",)
                if chance.random() < 0.3
                else (),
                feedback=chance.choice((0, 0, 0, 0, 0, 3, -1)),
            )

    def questions(self, count: int, *, common: bool) -> list[str]:
        """Three to eight words: as people talk, or only such as are in few memories."""
        if common:
            return [self.say(self._random.randint(3, 8)) for _ in range(count)]
        return [
            " ".join(self._words[rank] for rank in self._random.sample(_RARE_RANKS, self._random.randint(3, 8)))
            for _ in range(count)
        ]


def docstrings(count: int) -> Iterator[Memory]:
    """Paragraphs of the documentation inside the standard library, and then of the installed packages, mixed."""
    found: set[str] = set()
    for path in _sources():
        found.update(_paragraphs(path))
        if len(found) >= count:
            break  # parsing every package takes minutes
    paragraphs = sorted(found)
    chance = random.Random(5)
    chance.shuffle(paragraphs)
    for number, paragraph in enumerate(paragraphs[:count]):
        at = START + timedelta(minutes=number)
        yield _memory(paragraph, uid=uuid7(at, chance.randbytes(10)), at=at)


def questions_about(path: Path, count: int, *, common: bool) -> dict[str, str]:
    """Question → uid of the memory it is about: some words of a memory, in its order.

    `common`: a third of its words, whichever they are; otherwise its three longest.
    """
    chance = random.Random(11)
    asked = {}
    for memory in chance.sample([one for one in stored(path) if len(one.content.split()) >= 12], count):
        said = memory.content.split()
        if common:
            places = sorted(chance.sample(range(len(said)), min(8, max(4, len(said) // 3))))
        else:
            places = sorted(sorted(range(len(said)), key=lambda place: -len(said[place]))[:3])
        asked[" ".join(said[place] for place in places)] = memory.uid
    return asked


def stored(path: Path) -> Iterator[Memory]:
    """Every live memory of a store, oldest first."""
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        last = None
        while page := reader.select(limit=_PAGE, after=last, oldest_first=True):
            yield from page
            last = page[-1].id
    storage.close()


def zipf_space(rows: int, cache: Path) -> Path:
    """The file of a Zipf corpus with that many memories."""
    return built(f"zipf-{rows}", cache, lambda: Zipf(7).memories(rows))


def docstring_space(rows: int, cache: Path) -> Path:
    """The file of a corpus with at most that many paragraphs."""
    return built(f"docstrings-{rows}", cache, lambda: docstrings(rows))


def built(name: str, cache: Path, memories: Callable[[], Iterator[Memory]]) -> Path:
    """The file of a store with these memories: from the cache, or written now."""
    path = cache / f"kept-bench-{name}-{_schema()}.db"
    done = path.with_suffix(".done")
    if done.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    for part in cache.glob(path.name + "*"):
        part.unlink()
    storage = SqliteStorage(path, SPACE, synchronous="normal")
    waiting: list[Memory] = []
    n_written = 0
    for memory in memories():
        waiting.append(memory)
        if len(waiting) == _BATCH + _ONE_BY_ONE:
            _write(storage, waiting[:_BATCH], n_written)
            del waiting[:_BATCH]
            n_written += _BATCH
            print(f"\r{path.stem}: {n_written:,}", end="", file=sys.stderr, flush=True)
    _write(storage, waiting[:-_ONE_BY_ONE], n_written)
    for number, memory in enumerate(waiting[-_ONE_BY_ONE:], n_written + _BATCH):
        _write(storage, [memory], number)
    storage.close()
    done.touch()
    return path


def _schema() -> str:
    """A short name for the layout of a new store: its tables, and the page size in its header."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        SqliteStorage(path, SPACE).close()
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        layout = repr(connection.execute("select sql from sqlite_schema order by name").fetchall())
        connection.close()
        return hashlib.sha256(layout.encode() + path.read_bytes()[16:24]).hexdigest()[:12]


def _write(storage: SqliteStorage, memories: list[Memory], number: int) -> None:
    if memories:
        with storage.writing(Stamp(group=f"build-{number}", at=START, actor="bench")) as tx:
            for memory in memories:
                tx.add(memory, "remember")


def _memory(
    content: str,
    *,
    uid: str,
    at: datetime,
    kind: str = "fact",
    tags: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    feedback: int = 0,
) -> Memory:
    return Memory(
        uid=uid,
        space=SPACE,
        content=content,
        fingerprint=text.fingerprint(content),
        kind=kind,
        trust="agent",
        tags=tags,
        files=files,
        feedback=feedback,
        importance=by_kind(IMPORTANCE_BY_KIND, kind),
        created_at=at,
        updated_at=at,
    )


def _sources() -> Iterator[Path]:
    """The standard library first, which holds 8,000 paragraphs."""
    paths = sysconfig.get_paths()
    library = sorted(Path(paths["stdlib"]).rglob("*.py"))
    yield from (path for path in library if "site-packages" not in path.parts)
    yield from sorted({path for name in ("purelib", "platlib") for path in Path(paths[name]).rglob("*.py")})


def _paragraphs(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                plain = " ".join(paragraph.split())
                if 60 <= len(plain) <= _LONGEST:
                    yield plain
