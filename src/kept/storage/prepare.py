"""From a memory to the tokens that every storage indexes.

The one place that says which field goes into which column of the index.
"""

from kept import text
from kept.model import Memory
from kept.ports import Prepared


def prepare(memory: Memory) -> Prepared:
    """The prepared tokens of a memory. Pure: the same memory gives the same tokens on every storage."""
    content = f"{memory.title} {memory.content}" if memory.title else memory.content
    source = memory.source
    return Prepared(
        words=" ".join(text.words(content)),
        tag_words=" ".join(text.words(" ".join(memory.tags))),
        file_words=" ".join(word for path in memory.files for word in text.words(path)),
        source_words=" ".join(text.words(f"{source.origin} {source.agent or ''}")),
        kind_words=" ".join(text.words(memory.kind)),
        n_words=text.count_words(content),
    )
