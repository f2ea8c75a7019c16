"""From a memory to the tokens that every storage indexes.

The one place that says which field goes into which column of the index.
"""

from functools import lru_cache

from kept import text
from kept.model import Memory
from kept.ports import Prepared


def prepare(memory: Memory) -> Prepared:
    """The prepared tokens of a memory. Pure: the same memory gives the same tokens on every storage."""
    source = f"{memory.source.origin} {memory.source.agent or ''}"
    return _prepared(text_of(memory), memory.tags, memory.files, source, memory.kind)


def text_of(memory: Memory) -> str:
    """What a memory says: its content, below its title if it has one."""
    return f"{memory.title} {memory.content}" if memory.title else memory.content


@lru_cache(maxsize=16)  # one change asks for the words of a memory several times, and mostly they stay as they were
def _prepared(content: str, tags: tuple[str, ...], files: tuple[str, ...], source: str, kind: str) -> Prepared:
    of_text, n_words = text.words_and_length(content)
    columns = (
        of_text,
        [word for tag in tags for word in _label(tag)],
        [word for path in files for word in _label(path)],
        _label(source),
        _label(kind),
    )
    words, tag_words, file_words, source_words, kind_words = (" ".join(column) for column in columns)
    n_tokens = sum(len(column) for column in columns)
    return Prepared(words, tag_words, file_words, source_words, kind_words, n_words, n_tokens)


@lru_cache(maxsize=1024)
def _label(label: str) -> tuple[str, ...]:
    """The words of a tag, a path, a name or a kind: few of them, and always the same."""
    return tuple(text.words(label))
