"""The memories that a session was told, and at which moments, by the receipts of its deliveries.

`deliver` and `actions` ask before they tell: a context is told a line once at its start and prompts, and a turn is not
reminded of a memory that its own prompt has just told. A start begins a context, unless the agent resumes a session and
brings back the old one; so does a compaction. A prompt begins a turn. Rule: cheap. It reads the newest receipts of one
session by their index, and nothing else.

For a time when the server of a database cannot be reached, the last text that was told is in one private file in the
home for each project, role and agent (`LastTold`). Each delivery replaces it, or removes it if there was nothing to
say, so it is never older than the last time that the server answered here. An erasure, a pause or a forgotten memory in
this home removes all of them, and a text that was asked for before is not noted after it.
"""

import os
from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kept import text
from kept.memory.context import Context
from kept.memory.receipts import given_in
from kept.projects.files import FILE_MODE, NO_FOLLOW, make_private_directory, read_regular

Moment = Literal["start", "prompt", "action", "failure", "subagent", "compaction", "judge"]
EARLY: tuple[Moment, ...] = ("start", "prompt")  # lines of these moments are not repeated in a context

LAST_FOLDER = "hook/last"  # in the home
LAST_MARK = "hook/last-mark"  # changes when all last texts are removed
PAUSED_HERE = "hook/paused"  # sessions that a person of this home has paused, while their project cannot be asked
LAST_DAYS = 7
MOST_SESSIONS = 100  # that are remembered
MOST_BYTES = 256 * 1024
LAST_NOTE = "(The server cannot be reached. This is the last briefing of this project, of {at:%Y-%m-%d %H:%M} UTC.)"

_Moments = Mapping[str, frozenset[str]]
_Body = Mapping[str, Any]  # of a receipt


class Told(Struct, frozen=True, kw_only=True):
    """Memories by uid, each with the moments at which a session was told it.

    `session` is since the beginning, `context` since the last compaction or start, `turn` since the last prompt.
    `marks` are those of the texts that the present context was told at its start and prompts: `memory_mark` and
    `words_mark` of each memory, and `line_mark` of each task and line of a summary.
    """

    session: _Moments = {}
    context: _Moments = {}
    turn: _Moments = {}
    prompt: str = ""
    marks: frozenset[str] = frozenset()
    is_started: bool = False  # the present context had a start

    def at(self, *moments: Moment, since: Literal["session", "context", "turn"] = "context") -> frozenset[str]:
        """Return the uids of the memories that were told at one of these moments; at any moment if none is named."""
        told: _Moments = getattr(self, since)
        return frozenset(uid for uid, own in told.items() if not moments or not own.isdisjoint(moments))

    @property
    def early(self) -> frozenset[str]:
        """Return the uids of the memories that the present context was told at its start or at a prompt."""
        return self.at(*EARLY)


def told_in(context: Context, session: str) -> Told:
    """Return which memories the session was told, by the receipts of its deliveries."""
    return _told(given_in(context, session))


def _told(newest_first: Iterable[_Body]) -> Told:
    session = [body for body in newest_first if body.get("moment") is not None]
    context = _back_to(begins_context, session)
    turn = _back_to(_is_prompt, context)
    early = [body for body in context if body["moment"] in EARLY]
    return Told(
        session=_moments(session),
        context=_moments(context),
        turn=_moments(turn),
        prompt=next((str(body.get("question", {}).get("query", "")) for body in turn if _is_prompt(body)), ""),
        marks=frozenset(mark for body in early for mark in body.get("marks", ())),
        is_started=any(body["moment"] == "start" for body in early),
    )


def _back_to(begins: Callable[[_Body], bool], newest_first: Sequence[_Body]) -> Sequence[_Body]:
    """Return the receipts since the last one that begins a span, with that one; all of them if none does."""
    first = next((place for place, body in enumerate(newest_first) if begins(body)), len(newest_first))
    return newest_first[: first + 1]


def begins_context(body: _Body) -> bool:
    """Return True for the receipt of a compaction, or of a start that is not a resume."""
    moment = body.get("moment")
    return moment == "compaction" or (moment == "start" and not body.get("is_resumed", False))


def _is_prompt(body: _Body) -> bool:
    return bool(body.get("moment") == "prompt")


def _uids(body: _Body) -> list[str]:
    return [entry["uid"] for section in body.get("sections", ()) for entry in section["entries"]]


def _moments(bodies: Iterable[_Body]) -> _Moments:
    """Return the memories that these receipts name, each with its moments."""
    told: defaultdict[str, set[str]] = defaultdict(set)
    for body in bodies:
        for uid in _uids(body):
            told[uid].add(body["moment"])
    return {uid: frozenset(moments) for uid, moments in told.items()}


class _LastText(Struct):
    at: datetime
    sessions: list[str]  # that have the text in their context
    text: str


class LastTold:
    """Return the file of one project, role and agent."""

    def __init__(self, home: Path, key: str, now: Callable[[], datetime]) -> None:
        self._now, self._home = now, home
        self._mark = _mark(home)
        self._path = home / LAST_FOLDER / blake2b(key.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def note(self, said: str, session: str) -> None:
        """Replace the text; "" removes it."""
        if said:
            make_private_directory(self._path.parent)
            self._write(_LastText(self._now(), [session], said))
        else:
            self.drop()

    def drop(self) -> None:
        self._path.unlink(missing_ok=True)

    def text_for(self, session: str) -> tuple[str, datetime] | None:
        """Return the text with its date, once for each session; None if there is none, or it is too old."""
        try:
            told = msgspec.json.decode(read_regular(self._path, MOST_BYTES), type=_LastText)
        except (msgspec.DecodeError, UnicodeDecodeError):  # no file, or half of one after a power cut
            return None
        if _mark(self._home) != self._mark or session in told.sessions or session in _paused(self._home):
            return None
        if not timedelta() <= self._now() - told.at <= timedelta(days=LAST_DAYS):
            return None
        told.sessions = [*told.sessions, session][-MOST_SESSIONS:]
        self._write(told)
        first = f"<{text.DELIVERED_TAG}>\n"
        return told.text.replace(first, f"{first}{LAST_NOTE.format(at=told.at)}\n", 1), told.at

    def _write(self, told: _LastText) -> None:
        _replace(self._path, msgspec.json.encode(told))
        if _mark(self._home) != self._mark:  # some of the text may be gone
            self.drop()


def drop_last_told(home: Path | None) -> None:
    """Remove every last text of a home. The mark is changed first, so that no hook under way puts one there again."""
    if home is None or not (home / LAST_FOLDER).is_dir():
        return
    _replace(home / LAST_MARK, os.urandom(8).hex().encode())
    for path in [*(home / LAST_FOLDER).glob("*"), *(home / LAST_FOLDER).glob(".*.tmp")]:
        with suppress(FileNotFoundError):
            path.unlink()


@contextmanager
def without_last_told(home: Path | None) -> Iterator[None]:
    """Remove every last text of a home before and after a change of the memory, also if that fails."""
    drop_last_told(home)
    try:
        yield
    finally:
        drop_last_told(home)


def note_pause(home: Path | None, session: str, *, is_paused: bool) -> None:
    """Note for hooks whether a session is paused, for when its project cannot be asked."""
    if home is None or not (home / LAST_FOLDER).is_dir():
        return
    others = [one for one in _paused(home) if one != session]
    sessions = [*others, session][-MOST_SESSIONS:] if is_paused else others
    _replace(home / PAUSED_HERE, msgspec.json.encode(sessions))


def _paused(home: Path) -> list[str]:
    try:
        return msgspec.json.decode(read_regular(home / PAUSED_HERE, MOST_BYTES), type=list[str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _mark(home: Path) -> bytes:
    return read_regular(home / LAST_MARK, MOST_BYTES)


def _replace(path: Path, content: bytes) -> None:
    """Replace a file, without waiting for the disk: an agent waits."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, FILE_MODE), "wb") as file:
        file.write(content)
    draft.replace(path)
