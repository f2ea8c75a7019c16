"""Write the modules of stemmed words, so that no process stems the built-in vocabulary before it can answer.

`python docs/stems.py` writes them; with `--check` it writes nothing and exits with 1 if one of them is out of date.
The words themselves are in `kept.recall.word_lists`, `kept.recall.vocabulary` and `kept.recall.english`.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill

from kept import text
from kept.recall import english, word_lists
from kept.recall.forms import is_same_word
from kept.recall.vocabulary import groups_by_word, others_of

RECALL = Path(__file__).parent.parent / "src" / "kept" / "recall"
WIDTH = 120
NOTICE = "Written by docs/stems.py. Change {sources}, then run `python docs/stems.py`."
READER = """
def _table(entries: str) -> dict[str, str]:
    return dict(entry.split(": ") for entry in entries.strip().replace("\\n", " | ").split(" | "))


"""


def stemmed(words: str) -> frozenset[str]:
    """The words as an index holds them."""
    return frozenset(text.words(words))


def recall_module() -> str:
    """The word lists and the aliases of `kept.recall`."""
    fillers = stemmed(word_lists.FILLERS)
    worthless = fillers | stemmed(word_lists.MORE_FILLERS)
    tables = (english.NUMBERS, english.FORMS, english.RELATED, english.KINDS)
    everyday = " ".join((word_lists.COMMON, english.ASIDES, english.TIMES, *tables))
    lists = {
        "FILLERS": ("The fillers of a question about a conversation", fillers),
        "WORTHLESS": ("Words that never make a hit on their own", worthless),
        "COMMON": ("Words in many memories of any project", stemmed(word_lists.COMMON) - worthless),
        "EVERYDAY": ("Words of daily life: each is a word, and no slip of the keyboard", stemmed(everyday)),
        "ORDERS": ("Verbs that begin a prompt which asks for work on anything", stemmed(word_lists.ORDERS)),
        "ANSWERS": ("Words of rules about every answer", stemmed(word_lists.ANSWERS)),
        "CODE": ("Words of rules about code", stemmed(word_lists.CODE)),
        "RUNNING": ("Words of rules about running it", stemmed(word_lists.RUNNING)),
        "TEXTS": ("Words of rules about texts", stemmed(word_lists.TEXTS)),
        "SCREENS": ("Words of rules about screens", stemmed(word_lists.SCREENS)),
        "ON_SCREENS": ("Words of prompts for work on screens", stemmed(word_lists.ON_SCREENS)),
    }
    return _module(
        "Word lists and aliases in the form that an index holds.",
        "word_lists.py, vocabulary.py or english.py",
        [*(_list(name, *told) for name, told in lists.items()), _table("ALIASES", "words said for it", aliases())],
    )


def english_module() -> str:
    """The tables of `kept.recall.messages`."""
    lists = {
        "ASIDES": ("Words about the asking", stemmed(english.ASIDES)),
        "TIME_WORDS": ("Words that say when", stemmed(english.TIMES)),
        "NUMBER_WORDS": ("Words that say how many", stemmed(english.NUMBERS)),
    }
    tables = {
        "FORMS": ("other forms of it", groups(english.FORMS)),
        "RELATED": ("words that may stand for it", groups(english.RELATED)),
        "KINDS": ("things of that kind", kinds(english.KINDS)),
    }
    return _module(
        "Tables of English in the form that an index holds.",
        "../english.py",
        [
            *(_list(name, *told) for name, told in lists.items()),
            *(_table(name, *told) for name, told in tables.items()),
        ],
    )


def aliases() -> dict[str, str]:
    """Each stemmed word of the vocabulary, and the words to look for as well, in the order of the groups.

    Words of one stem have a line each, or one line together if they are forms of one word. A line begins with its
    words, unless that is the stem alone.
    """
    forms: dict[str, list[list[str]]] = {}
    groups = groups_by_word()
    for word in groups:
        known = forms.setdefault(text.phrase(word), [])
        of_word = next((line for line in known if all(is_same_word(word, other) for other in line)), None)
        if of_word is None:
            known.append([word])
        else:
            of_word.append(word)
    return {key: "; ".join(_line(key, words, groups) for words in lines) for key, lines in forms.items()}


def _line(key: str, words: list[str], groups: Mapping[str, list[tuple[str, ...]]]) -> str:
    others = dict.fromkeys(other for word in words for other in others_of(word, groups[word]) if other not in words)
    shown = ", ".join(_spaced(other) for other in others)
    return shown if words == [key] else f"{', '.join(map(_spaced, words))} > {shown}"


def _spaced(word: str) -> str:
    return word.replace("_", " ")


def groups(table: str) -> dict[str, str]:
    """Each stemmed word of a table of groups, and the others of its groups."""
    found: dict[str, frozenset[str]] = {}
    for line in _entries(table):
        group = stemmed(line)
        for word in group:
            found[word] = found.get(word, frozenset()) | (group - {word})
    return {word: " ".join(sorted(others)) for word, others in found.items()}


def kinds(table: str) -> dict[str, str]:
    """Each stemmed name of a kind, and things of that kind."""
    pairs = (line.split(":") for line in _entries(table))
    return {text.words(kind)[0]: " ".join(sorted(stemmed(things))) for kind, things in pairs}


def _entries(table: str) -> list[str]:
    return table.strip().replace("\n", "|").split("|")


def _module(topic: str, sources: str, parts: Iterable[str]) -> str:
    body = "\n\n".join(parts)
    is_wide = any(len(line) > WIDTH for line in body.splitlines())
    head = f'"""{topic}\n\n{NOTICE.format(sources=sources)}\n"""\n\n' + ("# ruff: noqa: E501\n\n" if is_wide else "")
    return f"{head}{READER}{body}\n"


def _list(name: str, told: str, words: Iterable[str]) -> str:
    lines = fill(" ".join(sorted(words)), width=WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f'# {told}.\n{name} = frozenset(\n    """\n{lines}\n    """.split()\n)'


def _table(name: str, told: str, table: Mapping[str, str]) -> str:
    lines = [""]
    for entry in (f"{word}: {others}" for word, others in sorted(table.items())):
        if lines[-1] and len(lines[-1]) + len(f" | {entry}") <= WIDTH:
            lines[-1] += f" | {entry}"
        else:
            lines.append(entry)
    entries = "\n".join(lines[1:])
    return f'# Word → {told}.\n{name} = _table(\n    """\n{entries}\n"""\n)'


MODULES = {"stems.py": recall_module, "messages/stems.py": english_module}


def stale_modules() -> list[str]:
    """The modules that are missing or no longer match the words."""
    return [
        name
        for name, module in MODULES.items()
        if not (RECALL / name).exists() or (RECALL / name).read_text("utf-8") != module()
    ]


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        for name in (stale := stale_modules()):
            print(f"src/kept/recall/{name} is out of date. Run `python docs/stems.py`.", file=sys.stderr)
        return 1 if stale else 0
    for name, module in MODULES.items():
        (RECALL / name).write_text(module(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
