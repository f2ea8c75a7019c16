"""Text: its normal form, its fingerprint, its tokens for search, and a form that is safe to show.

This is the only tokenizer, for every storage: an index holds `words`, a query asks for `query_words`.
Rule: a token depends only on the run of characters between blanks that it is part of. No language is guessed and no
state is kept, so a text that was indexed years ago is found by today's query.

A run is read as *units*: a word, an identifier, a path, a version, a stretch of Chinese. A unit with parts is indexed
whole, in its parts, and at every level between: `src/app/getUserById.py` is found by `getUserById.py`, by `getuserbyid`
and by `user id`. The whole is written without its separators, so that `node.js` and `nodejs`, `SHA-256` and `sha256`,
`get_user_by_id` and `getUserById` are the same token; only between digits a `_` remains, so that 3.11 is not 311.

SQLite's `unicode61` knows an older Unicode than Python does, and Python versions differ as well. So a token contains
only letters and digits of Unicode 3.2, case-folded, and `_`; a newer letter, a vowel sign or an emoji is written as `u`
and its number in hexadecimal. FTS5 leaves such tokens as they are: the index holds exactly what `words` returned.
"""

import re
import threading
import unicodedata
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL: 4 ms
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import pairwise
from operator import add
from typing import Literal, cast

try:  # as hashlib does, see above
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:  # before Python 3.12
    from _sha256 import sha256  # type: ignore[import-not-found]

TOKEN_CHARS = "_"
"""What a token may contain besides letters and digits."""

FTS_TOKENIZE = f"unicode61 remove_diacritics 0 tokenchars '{TOKEN_CHARS}'"
"""The `tokenize=` of every FTS5 table over prepared words. It contains single quotes: put it in double quotes."""

MAX_TOKEN_CHARS = 64  # a longer one is a blob, not a name; FTS5 would store every byte of it as a key
SHORT_TEXT = 600  # characters of a text whose tokens are cached: a memory, not a document
SHORT_RUN = 16  # characters of a run beyond ASCII whose tokens are cached
STEMS_KEPT = 65_536  # cached stems: about 10 MB, and more words than most people write
HANDLES = 8  # per text: enough for two short texts to share all their words
MAX_QUERY_WORDS = 32  # FTS5 takes seconds for hundreds of words on ten thousand rows
MAX_HUMPS = 10  # a name in camel case with more parts is base64


@cache
def compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled at its first use: the write path knows hundreds, and recall needs none of them."""
    return re.compile(source, flags)


class _Pattern:
    """A pattern that is not compiled yet. Each method is fetched once, and is then as fast as the pattern's own."""

    def __init__(self, source: str, flags: int) -> None:
        self._given = source, flags

    def __getattr__(self, name: str) -> object:
        method = self.__dict__[name] = getattr(compiled(*self._given), name)
        return method


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """The same for a constant of a module: programs that start often do not wait for patterns that they do not use."""
    return cast(re.Pattern[str], _Pattern(source, flags))


_Reading = tuple[tuple[str, ...], tuple[str, ...], int]  # tokens to index, tokens to ask for, words of the text itself

# Scripts written without blanks, and Korean, which glues particles to its words: read by characters and bigrams.
# Each of their characters is marked before the units are found; a regular expression over such classes takes 4 ms.
_UNSPACED = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Burmese
    ("\u1100", "\u11ff"),  # Korean, single letters
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3005", "\u3007"),  # Chinese repetition marks and zero
    ("\u3041", "\u9fff"),  # Japanese, Bopomofo, Chinese
    ("\uac00", "\ud7a3"),  # Korean
    ("\uf900", "\ufaff"),  # Chinese, compatibility
    ("\U00020000", "\U0003ffff"),  # Chinese, rare
)
_HAN = ("\u3400", "\u9fff")
_MARK = "\ue000"  # private use: `_plain` gives no other
_NAME = r"[^\W_]+"
_SEPARATOR = r"(?:_*+(?:::|[/\\]\.?|[-.:@'])_*|_+)"
_UNIT = pattern(rf"(?:{_MARK}.)+|{_NAME}(?:{_SEPARATOR}{_NAME})*")

_LEVELS = (pattern(r"[/\\:@]+"), pattern(r"\."), pattern(r"[-_']+"))  # of a path, of a file name, of a name
_SEPARATORS = pattern(r"[-_./\\:@']+")
_BETWEEN_DIGITS = pattern(r"(?<=[0-9])[-_./\\:@']+(?=[0-9])")
_NUMBER = pattern(r"(?<![0-9])[0-9]++(?:[-_./:][0-9]++)+")  # versions, dates, addresses
_HUMP = pattern(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^A-Za-z0-9]+")
_LETTERS = pattern(r"[^\W\d_]+")
_PLURAL_OF_CAPITALS = pattern(r"([A-Z]{2,})s(?![a-z])")  # GPUs; the stemmer does not see a plural there
_NAME_AND_NUMBER = pattern(r"([a-z]{2,})([0-9]+)|([0-9]+)([a-z]{2,})")

_CLITIC = pattern(r"(?<=[A-Za-z])'(?:(?:s|re|ve|ll|d|m)(?![A-Za-z0-9])|(?=t(?![A-Za-z0-9])))", re.IGNORECASE | re.ASCII)
_SCHEME = pattern(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://")
_URL = pattern(r"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|www\.)\S+", re.IGNORECASE | re.ASCII)
_PLUS_PLUS = pattern(r"(?<![A-Za-z0-9])([A-Za-z])\+\+")
_SHARP = pattern(r"(?<![A-Za-z0-9])([A-Za-z])#(?![A-Za-z])")
_DOT_NET = pattern(r"(?<![A-Za-z0-9])\.NET(?![A-Za-z0-9])", re.IGNORECASE | re.ASCII)
_TIME_MARK = pattern(r"(?<=[0-9])(?:T(?=[0-9]{2}:)|Z$)")
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_ONE_LETTER_LANGUAGES = frozenset("cdr")

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Ø": "Oe"})
_UMLAUT = pattern("[äöüøÄÖÜØ]")
# Latin letters that Unicode does not take apart, and the typesetter's hyphen, apostrophe and trade mark.
_PLAIN = dict(
    zip("ßẞøØæÆœŒłŁđĐðÐþÞı\u2010’ʼ™", "ss SS o O ae Ae oe Oe l L d D d D th Th i - ' ' ".split(" "), strict=True)
)
_GERMAN = pattern(r"[a-z]{4,}(?:ung|[hk]eit|schaft|nis|lich|isch)(?:e|er|es|em|s|se)?|[a-z]{5,}en")
_GERMAN_ENDS = frozenset("ng it ft is ch ge te se he er es em gs ts ss hs en".split())  # asked first: it costs a tenth

# What Unicode calls default-ignorable: invisible characters, which could hide something.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = pattern(f"[{_IGNORABLE}]")
_UNSAFE = pattern(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufff9-\ufffb{_IGNORABLE}]")
_MARKS = pattern(r"([^\w\x00-\x7f]{30})(?=[^\w\x00-\x7f])")


def normalise(text: str) -> str:
    """The form in which two texts are the same memory: lower case, single blanks, nothing invisible.

    Composed and decomposed accents are the same (NFC). Not NFKC and not casefold: with them "10² rows" would equal
    "102 rows", and "Maße" would equal "Masse".
    """
    if not text.isascii():
        text = _compose("NFC", _INVISIBLE.sub("", text)).lower()
        text = _INVISIBLE.sub("", _compose("NFC", text))
    return " ".join(text.lower().split())


def fingerprint(text: str) -> str:
    """A strong hash (BLAKE2b, 32 hexadecimal digits) of the normalised text. Equal means duplicate."""
    return blake2b(normalise(text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def digest(value: str) -> str:
    """Hash a value with SHA-256: an allowance recognises it by this, and does not keep it."""
    hashed: str = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return hashed


NUMBER_WORDS = {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_WEIGHTLESS = frozenset("a an the of that too also now please".split())
_OPENING, _CLOSING, _QUOTES, _POINTS = "([{`\"'“‘„«", ")]}`", "\"'”’“»", ".,;:!…"
_BEFORE_A_POINT = f"{_CLOSING}{_QUOTES}%"


def statement(text: str) -> tuple[str, ...]:
    """The words that say something in a text, in order. Two texts with the same ones are the same statement.

    Case, spacing, punctuation around words, articles and a few other weightless words do not count, and `two` is `2`.
    Every other word does: names, numbers, days, a "not", a sign such as `<`. Words are not stemmed: import and
    important, internal and international, customs and custom have one stem each.
    """
    found: list[str] = []
    is_first = True  # of its sentence
    for run in text.split():
        bare = run.rstrip(_POINTS)
        # In quotes or in capitals it is a name: the operator `of`, plan A.
        is_capital = is_first and bare.lower() in _WEIGHTLESS and (len(bare) == 1 or bare[1:].islower())
        if bare not in _WEIGHTLESS and not is_capital:
            word = normalise(_without_punctuation(run)).replace("’", "'")
            found.append(NUMBER_WORDS.get(word, word))
        is_first = run.endswith((".", "!"))
    return tuple(found) or (normalise(text),)


def _without_punctuation(run: str) -> str:
    """The run without brackets, quotes and stops around it; a run of nothing else stays as it is.

    Marks that are part of a value stay: 5" is not 5', and src/.. is not src/.
    """
    start, end = 0, len(run)
    while start < end and run[start] in _OPENING:
        start += 1
    while end > start + 1 and _is_around_a_word(run[end - 1], run[end - 2]):
        end -= 1
    return run[start:end] or run


def _is_around_a_word(last: str, before: str) -> bool:
    """Return True if the last character of a run closes it, and is no part of the value before it."""
    if last in _POINTS:
        return before.isalnum() or before in _BEFORE_A_POINT
    return last in _CLOSING or (last in _QUOTES and not before.isdigit())


_SENTENCE_END = pattern(r"(?<=[.!?。！？])\s+|\n+")
_PROSE_END = pattern(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`]*[^\W_])|(?<=[。！？])")
_ABBREVIATION = pattern(
    r"(?:\b(?i:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl|z\.B|bzw|ca|p\.ej)|\b(?:St|Dr|Mrs?|Prof|Mt)|(?<![\w'’])(?:[A-Z]|\d))\.$"
)


def sentences(text: str, *, is_prose: bool = False) -> list[str]:
    """Split a text after each full stop, question or exclamation mark with a blank behind it, and at each line.

    `is_prose` splits with more care, to read single sentences: not after "e.g." or "1.", not before a sign, without
    closing quotes, and after a Chinese or Japanese mark also if no blank follows. The plain way never joins two
    sentences, so erasing and the search for quotations use it.
    """
    if not is_prose:
        return [sentence for piece in _SENTENCE_END.split(text) if (sentence := piece.strip())]
    found: list[str] = []
    for piece in (piece for line in text.split("\n") for piece in _PROSE_END.split(line)):
        if found and _ABBREVIATION.search(found[-1][-8:]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return found


def djb2_fingerprint(text: str) -> str:
    """C23: the fingerprint of Praxis, for its import format only. Too weak to decide what a duplicate is.

    Bernstein's `hash * 33 + unit`, in unsigned 32 bits, over the UTF-16 units of the text in lower case with white
    space collapsed and trimmed as JavaScript does it; once from each seed, written as 8 + 8 hexadecimal digits.
    """
    blanks = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    units = re.sub(f"[{blanks}]+", " ", text.lower()).strip(" ").encode("utf-16-le", "surrogatepass")
    first, second = 0xDEADBEEF, 0x41C6CE57
    for low, high in zip(units[::2], units[1::2], strict=True):
        unit = low | high << 8
        first = (first * 33 + unit) & 0xFFFFFFFF
        second = (second * 33 + unit) & 0xFFFFFFFF
    return f"{first:08x}{second:08x}"


def words(text: str) -> list[str]:
    """The tokens to index, in the order of the text; joined by blanks, FTS_TOKENIZE gives back exactly these."""
    return list(_read_text(text)[0])


@lru_cache(maxsize=8192)
def phrase(written: str) -> str:
    """Return a word as an index holds it; of words said together (`sign in`, `sign_in`) all, with blanks between."""
    if stem := _stems[written]:  # one plain word, as mostly
        return stem
    return " ".join(token for part in written.replace("_", " ").split() for token in words(part)[:1])


def words_and_length(text: str) -> tuple[tuple[str, ...], int]:
    """`words` and `count_words` in one pass; the newest short texts are cached."""
    return _read_short_text(text) if len(text) <= SHORT_TEXT else _read_text(text)


def _read_text(text: str) -> tuple[tuple[str, ...], int]:
    runs = text.split()
    stems = tuple(map(_stems.__getitem__, runs))
    if all(stems):  # plain words only
        return stems, len(stems)
    tokens: list[str] = []
    length = 0
    for run, stem in zip(runs, stems, strict=True):
        if stem:
            tokens.append(stem)
            length += 1
        else:
            index, _, count = _read_parts(run)
            tokens += index
            length += count
    return tuple(tokens), length


_read_short_text = lru_cache(maxsize=1024)(_read_text)  # the write path needs it twice: to compare, and to index


def handles(words: Iterable[str]) -> list[str]:
    """The few words that two texts about the same thing are likely to share: the longest ones, each once.

    Long words are rarely common. Texts that say nearly the same, or the opposite, share most of them.
    """
    distinct = sorted(set(words))
    distinct.sort(key=len, reverse=True)  # stable: equally long words stay in order
    return distinct[:HANDLES]


def handles_of(text: str) -> tuple[str, ...]:
    """The handles of a text; those of the newest short texts are cached."""
    return _handles_of_short(text) if len(text) <= SHORT_TEXT else _handles_of_any(text)


def _handles_of_any(text: str) -> tuple[str, ...]:
    return tuple(handles(words_and_length(text)[0]))


_handles_of_short = lru_cache(maxsize=1024)(_handles_of_any)  # to compare, and to list


def enough_handles(handles: int) -> int:
    """How many handles another text must share to be a possible duplicate or conflict: a third, at least two."""
    return min(handles, max(2, -(-handles // 3)))


def count_words(text: str) -> int:
    """The length of the text in words: an identifier or a path is one, a Chinese character is one."""
    return _read_text(text)[1]


def query_words(text: str, limit: int = MAX_QUERY_WORDS) -> list[str]:
    """A19: the tokens of a query: at most `limit` distinct ones in the order of the text. Never fails.

    URLs, operators (AND, OR, NOT, NEAR and all punctuation) and single letters are left out, except the names of
    languages. If nothing else is left they are used after all, so only a query without any letter, digit or emoji is
    empty. `words` of the same text contains every token.
    """
    kept: dict[str, None] = {}
    spare: dict[str, None] = {}
    for run in text.split():
        without_url = _URL.sub(" ", run) if "://" in run or "www." in run.lower() else run
        if without_url != run:
            spare |= dict.fromkeys(_read(run)[1])
        for token in _read(without_url)[1]:
            (kept if run not in _OPERATORS and _is_telling(token) else spare)[token] = None
        if len(kept) >= limit:
            break
    return list(kept or spare)[: max(limit, 0)]


def written_forms(text: str) -> dict[str, set[str]]:
    """Map each token that is the stem of a word to the words of the text that it stands for, in lower case."""
    found: dict[str, set[str]] = {}
    for run in text.split():
        if stem := _stems[run]:
            found.setdefault(stem, set()).add(_bare(run).lower())
            continue
        for spelling in dict.fromkeys(_spellings(run)):
            for name in _LETTERS.findall(spelling):
                for form in (name, *(_HUMP.findall(name) if name != name.casefold() else ())):
                    found.setdefault(_stem(form.casefold()), set()).add(form.casefold())
    return found


def as_written(token: str, *texts: str) -> str:
    """The word of the first text that became this token, or of which it is a part (`fli`: Fly.io); else the token.

    Of a path, the part that has it.
    """
    for text in texts:
        runs = [run.strip(".,;:!?()[]{}\"'`") for run in text.split()]
        if found := next((run for n in (1, None) for run in runs if token in words(run)[:n]), None):
            return next((part for part in reversed(found.split("/")) if token in words(part)), found)
    return token


def visible(text: str, *, keep_newlines: bool = True) -> str:
    r"""The text with characters that could deceive a reader or control a terminal escaped, as `\x1b` or `\u202e`.

    These are control, bidi, zero-width and other invisible characters and lone surrogates. Accents stay, and so do the
    joiners inside an emoji. Newlines and tabs are kept or, for output on one line, escaped as well.
    """
    text = text.replace("\r\n", "\n")
    if not keep_newlines:
        text = text.replace("\n", r"\n").replace("\t", r"\t")
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _UNSAFE.sub(_escaped, text)


DELIVERED_TAG = "kept-memory"  # around every text that an agent is given without asking
# Gemini CLI escapes the brackets where it puts the text before a prompt.
_DELIVERED = "|".join(rf"{a}{DELIVERED_TAG}{z}.*?(?:{a}/{DELIVERED_TAG}{z}|\Z)" for a, z in ("<>", ("&lt;", "&gt;")))
# What hosts put around the answer of a hook, once nothing is left in it.
_EMPTY_WRAPPER = r"<(hook_context|system-reminder)>\s*+(?:\w++ hook additional context:\s*+)?</\1>"


def delivered(text: str) -> str:
    """The text in the mark by which it is recognised when it comes back in a transcript; "" stays empty."""
    # Of the same length, so that a limit on characters holds.
    body = compiled(rf"(?:<|&(?=lt;))(?=(?:lt;)?/?{DELIVERED_TAG})").sub("‹", text)
    return f"<{DELIVERED_TAG}>\n{body}\n</{DELIVERED_TAG}>" if text else ""


def without_delivered(text: str) -> str:
    """The text without what Kept itself gave to the agent: that was not said by anybody."""
    if f"<{DELIVERED_TAG}>" not in text and f"&lt;{DELIVERED_TAG}&gt;" not in text:
        return text
    said = compiled(_DELIVERED, re.DOTALL).sub("", text)
    empty = [*compiled(_EMPTY_WRAPPER).finditer(said)]
    # Text between two of them may have closed the first and opened the second: then they still show that it is quoted.
    is_between = any(said[one.end() : other.start()].strip() for one, other in pairwise(empty))
    return (said if is_between else compiled(_EMPTY_WRAPPER).sub("", said)).strip()


# Files, pages and chats that hosts write into the user's message: how such a block begins, and the line that ends it.
_INLINED = (
    # Gemini CLI and Qwen Code: everything after the prompt
    (r"(?m)^--- Content from referenced \w+|^Content from @[^\n]{1,500}:[ \t]*$", None),
    (r"(?m)^--- Context from: [^\n]{1,500}", r"(?m)^--- End of Context from: [^\n]{1,500}$"),
    # Codex in an editor: the request comes last
    (r"\A\s*# (?:Context from my IDE setup|Files mentioned by the user)\b", r"(?m)^## My request for [^\n]{1,40}:"),
    # OpenClaw: mails, web hooks, attachments, pages; and what others wrote in a group
    (
        r"(?:\A\s*SECURITY NOTICE: (?:(?!<<<).){1,4000})?<<<\s?EXTERNAL_UNTRUSTED_CONTENT\b",
        r"<<<\s?END_EXTERNAL_UNTRUSTED_CONTENT\b[^>\n]{0,200}>>>",
    ),
    (r"(?m)^\[Chat messages since your last reply\b", r"(?m)^\[Current message\b[^\n]{0,100}\]"),
)
_INLINED_SIGNS = (
    "ontent from ",
    "--- Context from: ",
    "my IDE setup",
    "mentioned by the user",
    "<<<",
    "[Chat messages ",
)


def without_inlined(text: str) -> tuple[str, str]:
    """Split a user's message into the user's part and the files and pages that a host has put into it.

    A block runs to the last line that can end it, because its text may contain such a line; without one, to the end.
    """
    if not any(sign in text for sign in _INLINED_SIGNS):
        return text, ""
    inlined = []
    for opens, closes in _INLINED:
        if (start := compiled(opens, re.DOTALL).search(text)) is None:
            continue
        ends = [end.end() for end in compiled(closes).finditer(text, start.end())] if closes else []
        end = ends[-1] if ends else len(text)
        inlined.append(text[start.start() : end])
        text = f"{text[: start.start()]}\n{text[end:]}"
    return text, "\n".join(inlined)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    start, end = match.span()
    before, after = match.string[max(start - 1, 0) : start], match.string[end : end + 1]
    if character == "\ufe0f" and (_is_pictograph(before) or after == "\u20e3"):
        return character
    if character == "\u200d" and (_is_pictograph(before) or before == "\ufe0f") and _is_pictograph(after):
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _is_pictograph(character: str) -> bool:
    return "\u2190" <= character <= "\u2bff" or "\U0001f000" <= character <= "\U0001faff"


def _is_unspaced(character: str) -> bool:
    return any(first <= character <= last for first, last in _UNSPACED)


def _is_telling(token: str) -> bool:
    return len(token) > 1 or token.isdigit() or token in _ONE_LETTER_LANGUAGES or _is_unspaced(token)


class _Stems(dict[str, str]):
    """Run → its stem, if it is a plain word, perhaps in brackets or before a full stop; otherwise "".

    A shortcut for `_read_any`, since most runs are plain words. A full cache is cleared: cheaper than tracking age.
    """

    def __missing__(self, run: str) -> str:
        if not _is_cacheable(run):
            return ""
        word = _bare(run)
        is_plain = word.isascii() and word.isalpha() and (word.islower() or word[1:].islower())
        if len(self) >= STEMS_KEPT:
            self.clear()
        stem = self[run] = _stem(word.lower()) if is_plain else ""
        return stem


def _bare(run: str) -> str:
    return run.lstrip("([{\"'`").rstrip(")]}\"'`.,;:!?")


_stems = _Stems()


def _is_cacheable(run: str) -> bool:
    """Whether a run is worth caching: long ones rarely come again, and Chinese has two tokens per character."""
    return len(run) <= (MAX_TOKEN_CHARS if run.isascii() else SHORT_RUN)


def _read(run: str) -> _Reading:
    stem = _stems[run]
    return ((stem,), (stem,), 1) if stem else _read_parts(run)


def _read_parts(run: str) -> _Reading:
    return _read_cached(run) if _is_cacheable(run) else _read_any(run)


def _read_any(run: str) -> _Reading:
    index: list[str] = []
    ask: list[str] = []
    count = 0
    plain, respelled = _spellings(run)
    for unit in _UNIT.findall(plain):
        if unit[0] == _MARK:
            characters = unit[1::2]
            index += (in_turn := _characters_and_bigrams(characters))
            ask += [*_lone_han(characters), *in_turn[1::2]] if len(characters) > 1 else characters
            count += len(characters)
        else:
            tokens = _tokens(unit)
            index += tokens
            ask += [token for token, is_asked in tokens.items() if is_asked]
            count += 1
    if respelled != plain:
        others = _other_tokens(respelled, set(index))
        index += [token for token, _ in others]
        ask += [token for token, is_asked in others if is_asked]
    return tuple(index), tuple(ask), count


def _other_tokens(respelled: str, known: set[str]) -> list[tuple[str, bool]]:
    """Return the tokens of a run in its other spelling that are not known; true for those that a query asks for."""
    units = (unit for unit in _UNIT.findall(respelled) if unit[0] != _MARK)
    return [found for unit in units for found in _tokens(unit).items() if found[0] not in known]


_read_cached = lru_cache(maxsize=32768)(_read_any)  # names come again as well


def _tokens(unit: str) -> dict[str, bool]:
    """The tokens of a unit; true for those that a query asks for.

    A query for 3.11 does not ask for 3 and 11: the single numbers of a version or date mean nothing.
    """
    if unit.isalnum():
        return _name_tokens(unit)
    found: dict[str, bool] = {}
    parts = [unit]
    for level in _LEVELS:
        finer: list[str] = []
        for part in parts:
            pieces = [piece for piece in level.split(part) if piece]
            if len(pieces) > 1:
                found[_joined(part)] = True
            finer += pieces
        parts = finer
    numbers = _NUMBER.findall(unit)
    for number in numbers:
        pieces = _SEPARATORS.split(number)
        for length in (len(pieces), 2, 3):  # 3.11.7 is also 3.11, 2026-02-05 is also 2026-02
            found["_".join(pieces[:length])[:MAX_TOKEN_CHARS]] = True
    for part in parts:
        if part.isdigit() and numbers:
            found.setdefault(part[:MAX_TOKEN_CHARS], False)
        else:
            found |= _name_tokens(part)
    return found


def _joined(part: str) -> str:
    whole = _SEPARATORS.sub("", _BETWEEN_DIGITS.sub(" ", part)).replace(" ", "_").casefold()
    return _stem(whole[-MAX_TOKEN_CHARS:])  # the end of a long path says more than its beginning


def _name_tokens(name: str) -> dict[str, bool]:
    """A run of letters and digits: itself, the humps of camel case, and letters apart from digits (sha256)."""
    if len(name) > MAX_TOKEN_CHARS:
        return _pieces(name)
    whole = name.casefold()
    found = {_stem(whole): True}
    names = [whole]
    if name != whole and len(humps := _HUMP.findall(_PLURAL_OF_CAPITALS.sub(r"\1", name))) <= MAX_HUMPS:
        names += [hump.casefold() for hump in humps]
        found |= {_stem(hump): True for hump in names[1:]}
    for each in names:
        if match := _NAME_AND_NUMBER.fullmatch(each):
            found |= {_stem(piece): True for piece in match.groups() if piece}
    return found


def _pieces(blob: str) -> dict[str, bool]:
    return {blob[at : at + MAX_TOKEN_CHARS].casefold(): True for at in range(0, len(blob), MAX_TOKEN_CHARS)}


def _characters_and_bigrams(run: str) -> list[str]:
    tokens = [""] * (2 * len(run) - 1)
    tokens[::2] = run
    tokens[1::2] = map(add, run, run[1:])
    return tokens


def _lone_han(run: str) -> list[str]:
    """The single Han characters among kana: each is the stem of a word, 食 of 食べる, so a query asks for it."""
    if min(run) >= _HAN[0]:
        return []
    is_han = [False, *(_HAN[0] <= character <= _HAN[1] for character in run), False]
    return [run[at] for at in range(len(run)) if is_han[at : at + 3] == [False, True, False]]


def _stem(word: str) -> str:
    """The Snowball stem of a Latin word; anything else as it is.

    English, unless the word looks German (-ung, -keit, -nis, a long word in -en), so that Datenbank and Datenbanken,
    Entscheidung and Entscheidungen get one stem. The English stem is tested as well, so that strengthen and
    strengthened get one stem.
    """
    if len(word) < 3 or not (word.isalpha() and word.isascii()):
        return word
    if not is_german(word):
        word = _stemmers().english(word)
        if not is_german(word):
            return word
    return _stemmers().german(word)


def is_german(word: str) -> bool:
    """Return True if a word in lower case looks German, so that the German stemmer reads it."""
    return word[-2:] in _GERMAN_ENDS and _GERMAN.fullmatch(word) is not None


class _Stemmers(threading.local):
    """The stemmers of this thread: threads must not share one, and making one costs as much as stemming."""

    english: Callable[[str], str]
    german: Callable[[str], str]

    def __init__(self) -> None:
        from Stemmer import Stemmer  # a C extension, not needed to show or fingerprint text

        self.english = Stemmer("english", 0).stemWord
        self.german = Stemmer("german", 0).stemWord


_stemmers = cache(_Stemmers)


def _spellings(run: str) -> tuple[str, str]:
    """The run in plain letters twice: with ä as a and with ä as ae (the same if it has no umlaut).

    Both are indexed and asked for: Größe is found by Groesse, by Grosse and by Größe, and queue stays as it is.
    """
    if run.isascii():
        plain = _tidy(run)
        return plain, plain
    run = _compose("NFKC" if "\uff9e" in run or "\uff9f" in run else "NFC", run)  # ﾞ and ﾟ join the kana before them
    plain = _tidy("".join(map(_plain, run)))
    if not _UMLAUT.search(run):
        return plain, plain
    spelled = run.translate(_UMLAUTS)
    return plain, _tidy("".join(map(_plain, spelled.upper() if run.isupper() else spelled)))


def _tidy(run: str) -> str:
    """Write punctuation that carries meaning in letters: C++ as cpp, C# as csharp, .NET as dot-net; drop 's and https://."""
    if "'" in run:
        run = _CLITIC.sub("", run)
    if "+" in run or "#" in run:
        run = _SHARP.sub(r"\1sharp", _PLUS_PLUS.sub(r"\1pp", run))
    if ":" in run:
        run = _TIME_MARK.sub(" ", run)
    if ".net" in run.lower():
        run = _DOT_NET.sub("dot-net", run)
    if "://" in run:
        run = _SCHEME.sub("", run)
    return run


@lru_cache(maxsize=8192)
def _plain(character: str) -> str:
    """Return what a character becomes in a token: itself, a plainer one, its number, nothing, or a blank."""
    if character < "\x80":
        return character
    if character in _PLAIN:
        return _PLAIN[character]
    if _INVISIBLE.match(character):
        return ""
    if (simpler := unicodedata.normalize("NFKC", character)) != character:
        return "".join(map(_plain, simpler))
    return _plain_by_category(character, unicodedata.category(character))


def _plain_by_category(character: str, category: str) -> str:
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category[0] in "LN":
        letters = [c for c in unicodedata.normalize("NFKD", character) if unicodedata.combining(c) < 200]
        stored = "".join(map(_storable, unicodedata.normalize("NFC", "".join(letters))))
        return _MARK + stored if len(stored) == 1 and _is_unspaced(stored) else stored
    if category in ("Mn", "Mc"):  # an accent falls away; a vowel sign, which has no combining class, is a letter
        is_sign = unicodedata.combining(character) in (0, 9) and not _is_unspaced(character)
        return f"u{ord(character):x}" if is_sign else ""
    if _is_pictograph(character) and (category == "So" or character > "\uffff"):
        return f" u{ord(character):x} "
    return " "


def _storable(letter: str) -> str:
    if letter < "\x80":
        return letter
    known = [c for c in letter.casefold() if unicodedata.ucd_3_2_0.category(c)[0] in "LN"]
    return "".join(known) if len(known) == len(letter.casefold()) else f"u{ord(letter):x}"


def _compose(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Unicode's normal form in linear time: Python sorts a run of marks by insertion, so no run may be long."""
    return unicodedata.normalize(form, _MARKS.sub("\\1\u034f", text))
