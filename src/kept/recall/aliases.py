"""Other words for the same thing, which people use without thinking.

Some come with Kept (below), some a person adds (`kept alias add`). Rule: an alias only ever adds words, they
weigh less than what was asked for, and a hit says by which alias it came.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from kept import text
from kept.model import Alias

# Each line is a group of words that stand for each other.
_GROUPS = (
    "auth authentication authorization login signin oauth",
    "db database sql",
    "api endpoint rest route",
    "config configuration settings",
    "env environment",
    "repo repository",
    "deps dependencies packages",
    "docs documentation readme",
    "ci pipeline build",
    "deploy deployment release rollout",
    "k8s kubernetes",
    "infra infrastructure",
    "perf performance speed latency",
    "ui frontend interface",
    "backend server",
    "err error exception failure",
    "test tests testing spec",
    "js javascript",
    "ts typescript",
    "py python",
    "pg postgres postgresql",
    "msg message",
    "fn function",
    "dir directory folder",
    "pkg package",
    "perms permissions access",
    "creds credentials",
    "admin administrator",
    "async asynchronous",
    "sync synchronous",
)


def default_aliases() -> dict[str, tuple[str, ...]]:
    """Word → the others of its group."""
    table: dict[str, tuple[str, ...]] = {}
    for line in _GROUPS:
        group = line.split()
        for word in group:
            table[word] = tuple(other for other in group if other != word)
    return table


def expansions(words: Iterable[str], own: Iterable[Alias], *, with_defaults: bool = True) -> dict[str, str]:
    """Prepared word to look for as well → the word of the query that brought it in. What was asked for is not in it."""
    asked = list(words)
    tables = [_prepared((alias.word, alias.expands_to) for alias in own)]
    if with_defaults:
        tables.append(_prepared_defaults())
    found: dict[str, str] = {}
    for word in asked:
        for table in tables:
            for other in table.get(word, ()):
                if other not in asked:
                    found.setdefault(other, word)
    return found


def as_mapping(own: Iterable[Alias]) -> Mapping[str, tuple[str, ...]]:
    """What is in force: the defaults, with a person's own lines in front."""
    return default_aliases() | {alias.word: alias.expands_to for alias in own}


def _prepared(groups: Iterable[tuple[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    """The same table in the words that an index holds."""
    table: dict[str, tuple[str, ...]] = {}
    for word, others in groups:
        tokens = [token for other in others for token in text.words(other)]
        for key in text.words(word):
            table[key] = tuple(dict.fromkeys((*table.get(key, ()), *tokens)))
    return table


@cache
def _prepared_defaults() -> dict[str, tuple[str, ...]]:
    return _prepared(default_aliases().items())
