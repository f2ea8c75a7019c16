"""Browsers that are signed in: one-time codes for the first address, cookies, and the notices of the page.

A visit begins with a code from the address that `kept serve` opens, or with a key in the form of the sign-in page, and
is then known by a cookie. Visits outlive the server, so that open tabs and bookmarks do: the home has the digest of
each cookie, in a file for its owner alone. Rules: the cookie holds a random secret, never a key; a visit is worth as
much as its key is at each request, so a revoked token ends it; and a visit of the person who serves is worth the role
with which it began, and opens nothing while the server runs with another one.
"""

import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kept.entrypoints.http.keys import OWNER, change_private_file, digest_of
from kept.errors import KeptError

FILE, LOCK = "visits.json", "visits.lock"
SEEN_EVERY_S = 3_600.0  # how exactly the home knows when a visit was last used
CODE_LIFE_S = 120.0  # long enough to start a browser, or to copy the address into one
VISIT_LIFE_S = 7 * 86_400.0  # without any request
MOST_VISITS = 1_000
NOTICE_LIFE_S = 60.0
MOST_NOTICES = 1_000
BYTES = 32


class Visit(Struct, frozen=True, kw_only=True):
    """A browser that is signed in with the key of that digest. `id` is the digest of its cookie."""

    id: str
    key_digest: str


class Notice(Struct, frozen=True, kw_only=True):
    """The line that a page shows after a change, once, to the one who made it.

    `undo` is the event of the change; `draft` has the fields of a form that was refused, as they were typed.
    """

    text: str
    is_error: bool
    mark: str
    until: float
    undo: str = ""
    is_redo: bool = False
    draft: dict[str, str] = {}


class _Code(Struct, kw_only=True):
    key_digest: str
    until: float
    visit: str = ""  # the visit that it began


class _SavedVisit(Struct, frozen=True, kw_only=True):
    id: str
    key: str  # the digest of a token, or the person who serves with a role
    seen: float


class _Saved(Struct, frozen=True, kw_only=True):
    secret: str
    visits: tuple[_SavedVisit, ...] = ()


class SavedVisits:
    """The visits in a home. `own_digest` is that of the key with which this server was started, and `role` its role."""

    def __init__(self, home: Path, own_digest: str, role: str) -> None:
        self._home, self._file = home, home / FILE
        self._own, self._owner = own_digest, f"{OWNER} {role}"

    def state(self) -> object:
        """Return a value that differs after every change of the file."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def load(self) -> tuple[str, OrderedDict[str, tuple[Visit, float]]]:
        """Return the secret of forms, and the visits that this server may know. A damaged file has none."""
        saved = _read(self._file)
        found = {one.id: (Visit(id=one.id, key_digest=self._digest(one.key)), one.seen) for one in saved.visits}
        return saved.secret, OrderedDict(sorted(found.items(), key=lambda one: one[1][1]))

    def put(self, secret: str, visit: Visit, seen: float, *, is_new: bool) -> bool:
        """Save a visit beside the others, unless it was known and has been ended. Returns False if the home cannot be
        written.
        """
        key = self._owner if visit.key_digest == self._own else visit.key_digest
        made = _SavedVisit(id=visit.id, key=key, seen=seen)

        def put(visits: dict[str, _SavedVisit]) -> None:
            if is_new or visit.id in visits:
                visits[visit.id] = made

        return _change(self._home, secret, put)

    def drop(self, secret: str, id: str) -> bool:
        """Remove a visit. Returns False if the home cannot be written."""
        return _change(self._home, secret, lambda visits: visits.pop(id, None))

    def _digest(self, key: str) -> str:
        return self._own if key == self._owner else key


def signed_in(home: Path) -> int:
    """Count the browsers that are signed in as the person who serves."""
    return sum(one.key.startswith(f"{OWNER} ") for one in _read(home / FILE).visits)


def sign_out(home: Path) -> int:
    """End the visits of the person who serves, also those of a server that runs. Returns how many there were."""
    ended: list[str] = []

    def end_own(visits: dict[str, _SavedVisit]) -> None:
        ended.extend(one.id for one in visits.values() if one.key.startswith(f"{OWNER} "))
        for id in ended:
            del visits[id]

    _change(home, secrets.token_urlsafe(BYTES), end_own)
    return len(ended)


def _change(home: Path, secret: str, change: Callable[[dict[str, _SavedVisit]], object]) -> bool:
    """Change the saved visits. Returns False if the home cannot be written: then it keeps none."""

    def changed() -> bytes:
        saved = _read(home / FILE)
        visits = {one.id: one for one in saved.visits}
        change(visits)
        return msgspec.json.encode(_Saved(secret=saved.secret or secret, visits=tuple(visits.values())))

    try:
        change_private_file(home, FILE, LOCK, changed)
    except (OSError, KeptError):
        return False
    return True


def _read(file: Path) -> _Saved:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Saved)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _Saved(secret="")


class Visits:
    """The visits of one server. `cookie` is the name of their cookie, with the port: other servers on this host share
    the cookies of its name. `saved` keeps them when the server ends.
    """

    def __init__(self, port: int, now: Callable[[], float] = time.time, *, saved: SavedVisits | None = None) -> None:
        self.cookie = f"kept_{port}"
        self.secret = secrets.token_urlsafe(BYTES)  # of the marks of forms
        self._now = now
        self._saved = saved
        self._state: object = None
        self._noted: dict[str, float] = {}  # when each visit was last used, as the home knows it
        self._codes: dict[str, _Code] = {}
        self._visits: OrderedDict[str, tuple[Visit, float]] = OrderedDict()
        self._notices: OrderedDict[str, Notice] = OrderedDict()
        self._follow()

    def _follow(self) -> None:
        """Read the saved visits again if another process has changed them."""
        if self._saved is None or (state := self._saved.state()) is None or state == self._state:
            return
        self._state = state
        secret, saved = self._saved.load()
        self._noted = {id: seen for id, (_, seen) in saved.items()}
        self._visits = OrderedDict(
            (id, (visit, max(seen, self._visits.get(id, (visit, seen))[1]))) for id, (visit, seen) in saved.items()
        )
        self.secret = secret or self.secret

    def _save(self, visit: Visit, *, is_new: bool = False) -> None:
        if self._saved is not None:
            self._wrote(is_saved=self._saved.put(self.secret, visit, self._now(), is_new=is_new))
            self._noted[visit.id] = self._now()

    def _wrote(self, *, is_saved: bool) -> None:
        """Read the file again at the next look, because another process may have ended visits just before. A file that
        could not be written does not know ours, and is left alone until it changes.
        """
        assert self._saved is not None
        self._state = None if is_saved else self._saved.state()

    def new_code(self, key_digest: str) -> str:
        """Make a code that begins one visit with this key, within CODE_LIFE_S."""
        code = secrets.token_urlsafe(BYTES)
        self._codes[digest_of(code)] = _Code(key_digest=key_digest, until=self._now() + CODE_LIFE_S)
        return code

    def exchange(self, code: str) -> str | None:
        """Begin a visit with a code and return the value of its cookie; None for a code that is spent or unknown.

        A code that comes twice was seen by a second program, in the list of processes for example, and which of the two
        came first cannot be told: the visit that it began is ended.
        """
        found = self._codes.get(digest_of(code))
        if found is None or found.until < self._now():
            self._codes.pop(digest_of(code), None)
            return None
        if found.visit:
            self.end(found.visit)
            return None
        value = self.begin(found.key_digest)
        found.visit = digest_of(value)
        return value

    def begin(self, key_digest: str) -> str:
        """Begin a visit with this key and return the value of its cookie."""
        value = secrets.token_urlsafe(BYTES)
        visit = Visit(id=digest_of(value), key_digest=key_digest)
        self._follow()
        self._visits[visit.id] = (visit, self._now())
        self._save(visit, is_new=True)
        if len(self._visits) > MOST_VISITS:  # the oldest of the key that has most: no key ends the visits of others
            keys = Counter(one.key_digest for one, _ in self._visits.values())
            greedy = max(keys, key=keys.__getitem__)
            self.end(next(one.id for one, _ in self._visits.values() if one.key_digest == greedy))
        return value

    def find(self, header: str) -> Visit | None:
        """The visit that a Cookie header names, or None. Cookies of other programs, in any form, do not matter."""
        for part in header.split(";"):
            name, _, value = part.partition("=")
            if name.strip() == self.cookie and self.is_open(found := digest_of(value.strip().strip('"'))):
                visit, seen = self._visits[found]
                self._visits[found] = (visit, self._now())
                self._visits.move_to_end(found)
                if self._now() - self._noted.get(found, seen) > SEEN_EVERY_S:
                    self._save(visit)
                return visit
        return None

    def is_open(self, id: str) -> bool:
        """Whether the visit of that id has begun and not ended."""
        self._follow()
        known = self._visits.get(id)
        if known is not None and self._now() - known[1] > VISIT_LIFE_S:
            self.end(id)
        return id in self._visits

    def end(self, id: str) -> None:
        """End a visit: its cookie opens nothing any more."""
        if self._visits.pop(id, None) is not None and self._saved is not None:
            self._wrote(is_saved=self._saved.drop(self.secret, id))

    def leave_notice(self, text: str, *, mark: str, is_error: bool, **more: Any) -> str:
        """Keep a line for the next page of the one who has this mark, and return its id."""
        id = secrets.token_urlsafe(12)
        until = self._now() + NOTICE_LIFE_S
        self._notices[id] = Notice(text=text, is_error=is_error, mark=mark, until=until, **more)
        if len(self._notices) > MOST_NOTICES:
            self._notices.popitem(last=False)
        return id

    def take_notice(self, id: str, *, mark: str) -> Notice | None:
        """The line of that id, once, if it was left for this mark and is not old."""
        found = self._notices.get(id)
        if found is None or found.mark != mark:
            return None
        self._notices.pop(id, None)
        return found if found.until >= self._now() else None
