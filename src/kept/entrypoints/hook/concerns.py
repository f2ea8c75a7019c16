"""Find out from the small files of anchors if a memory may concern a tool call, without opening the memory.

`memory.anchor_files` writes the files. Rule: cheap. A hook asks this at every tool call, and mostly the answer is no.
"""

import os

from kept.anchors import (
    FOLDER,
    HEADER_BYTES,
    KEY_FILE,
    MANY_HOLD,
    PLACE_PREFIX,
    ToolCall,
    file_name,
    found_in,
    hashed,
    keys_of_call,
    words_of_call,
)

MOST_FOLDERS_UP = 40


def _read(path: str) -> bytes:
    """Return the content of a file of anchors; b"" if there is none. Without pathlib, which is slow to import."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""
    try:
        return os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)


def place_of(folder: str, key: bytes, cwd: str) -> "tuple[str, str]":
    """Return the root of the project around a folder of the disk, and the file of its space; "" if none is known."""
    here = os.path.realpath(cwd)
    for _ in range(MOST_FOLDERS_UP):
        if name := _read(f"{folder}/{PLACE_PREFIX}{file_name(key, here)}"):
            return here, name.decode("ascii", "replace")
        above = os.path.dirname(here)  # noqa: PTH120 (pathlib is slow to import)
        if above == here:
            break
        here = above
    return "", ""


def concerns(home: str, cwd: str, call: ToolCall) -> bool:
    """Return True if a memory may concern the tool call: only then is it worth opening the memory.

    True also if KEPT_PROJECT chooses the project, because a place on the disk does not tell which one that is.
    """
    folder = f"{home}/{FOLDER}"
    key = _read(f"{folder}/{KEY_FILE}")
    if not key:
        return False
    if os.environ.get("KEPT_PROJECT"):
        return True
    root, own = place_of(folder, key, cwd)
    spaces = [_read(f"{folder}/{name}") for name in (own, file_name(key, "global")) if name]
    if not any(len(data) > HEADER_BYTES for data in spaces):
        return False
    keys = keys_of_call(call, root)
    if any(found_in(data, hashed(key, name)) for data in spaces for name in keys):
        return True
    words = words_of_call(call, root)
    return any(_share_words(data, key, words) for data in spaces)


def _share_words(data: bytes, key: bytes, words: "dict[str, float]") -> bool:
    """Return True if a memory has two of the words, of those that not too many have."""
    seen: set[int] = set()
    for word in words:
        ids = found_in(data, hashed(key, f"w:{word}"))
        if len(ids) <= MANY_HOLD:
            if not seen.isdisjoint(ids):
                return True
            seen.update(ids)
    return False
