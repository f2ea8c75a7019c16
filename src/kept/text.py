"""PLACEHOLDER, to be overwritten by the real tokenizer (same names)."""
import hashlib
import re

FTS_TOKENIZE = "unicode61 remove_diacritics 0"


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def count_words(text: str) -> int:
    return len(words(text))


def query_words(text: str, limit: int = 32) -> list[str]:
    return list(dict.fromkeys(words(text)))[:limit]


def normalise(text: str) -> str:
    return " ".join(text.lower().split())


def fingerprint(text: str) -> str:
    return hashlib.blake2b(normalise(text).encode(), digest_size=16).hexdigest()
