"""kill -9, a thousand times, at six writers of one file: nothing acknowledged is lost (B21, C30).

    python -m tests.crash.kills [--kills 1000] [--writers 6]

Each writer says through a pipe what it is about to do and, when the call has returned, that it was done; a pipe keeps
what a dead process wrote. From that the oracle knows, for every memory, what must be there and, for the one
operation that was under way, what may be. Half of the writers die at a random moment by the parent's hand, sometimes
all at once; the others carry a countdown into SQLite's file layer and die before or in the middle of a certain write,
sync or truncation: inside a commit, a checkpoint, the making of the file. In the end the file must be whole
(checks.py), every acknowledged change there, every group whole, and no erased word in any byte.
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from kept import ids, text
from kept.model import Memory, replace
from kept.ports import ANYWHERE, Stamp
from kept.storage.sqlite import SqliteStorage
from tests.crash.checks import SPACE, faults_of
from tests.crash.simulated_disk import Happened, Refusal, TappedDisk

_CANARY = re.compile(rb"canary[0-9a-f]{20}")
_TOPICS = "auth login token cache index retry queue schema deploy budget parser socket mirror shard vector".split()
_LONGEST_LIFE_S = 0.12
_MASSACRE_EVERY = 40  # kills


class Said(msgspec.Struct, array_like=True):
    """What a writer says: that it is about to do something, or that it was done. Content None: erased."""

    is_done: bool
    action: str
    contents: dict[str, str | None]  # uid → content


class Oracle:
    """Knows what must be there."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str | None] = {}
        self._under_way: dict[str, Said] = {}  # by writer
        self._uncertain: list[tuple[dict[str, str | None], dict[str, str | None]]] = []  # before and after, both possible
        self.actions: Counter[str] = Counter()

    def hear(self, writer: str, said: Said) -> None:
        if said.is_done:
            self.acknowledged |= said.contents
            self.actions[said.action] += 1
            self._under_way.pop(writer)
        else:
            self._under_way[writer] = said

    def bury(self, writer: str) -> str:
        """The writer is dead: what it was about to do may have happened or not. Says what that was."""
        said = self._under_way.pop(writer, None)
        if said is None:
            return "nothing"
        before = {uid: self.acknowledged.pop(uid, None) for uid in said.contents}
        self._uncertain.append((before, said.contents))
        return said.action

    def verdict(self, found: Mapping[str, str]) -> list[str]:
        """What is wrong with the memories that were found (uid → content), a sentence each."""
        wrong = []
        known = set(self.acknowledged)
        for uid, content in self.acknowledged.items():
            if found.get(uid) != content:
                wrong.append(f"{uid} was acknowledged, and is {'not there' if uid not in found else 'another'}")
        for before, after in self._uncertain:
            known |= after.keys()
            now = {uid: found.get(uid) for uid in after}
            if now not in (before, after):
                wrong.append(f"a group was applied in part: {sorted(after)}")
        wrong += [f"{uid} was never written by anybody" for uid in found.keys() - known]
        return wrong

    def erased_words(self) -> set[bytes]:
        """The words of acknowledged memories that were erased."""
        return {word.encode() for word in self._words(None)} - {word.encode() for word in self._words("")}

    def _words(self, content: str | None) -> list[str]:
        raise NotImplementedError


def contents_of(path: Path) -> dict[str, str]:
    """uid → content of every memory in the file."""
    storage = SqliteStorage(path, SPACE)
    try:
        with storage.reading() as reader:
            return {memory.uid: memory.content for memory in reader.select(ANYWHERE, limit=10**9)}
    finally:
        storage.close()
