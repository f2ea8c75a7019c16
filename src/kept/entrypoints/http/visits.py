"""Browsers that are signed in: one-time codes for the first address, cookies, and the notices of the page.

A visit begins with a code from the address that `kept serve` opens, or with a key in the form of the sign-in page, and
is then known by a cookie. Rules: the cookie holds a random secret that means something only to this process, never a
key; a visit is worth as much as its key is at each request, so a revoked token ends it; and nothing here is stored.
"""

import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from msgspec import Struct

from kept.entrypoints.http.keys import digest_of

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
    """The line that a page shows after a change, once, to the one who made it."""

    text: str
    is_error: bool
    mark: str
    until: float


class _Code(Struct, kw_only=True):
    key_digest: str
    until: float
    visit: str = ""  # the visit that it began


class Visits:
    """The visits of one server. `cookie` is the name of their cookie, with the port: other servers on this host share
    the cookies of its name.
    """

    def __init__(self, port: int, now: Callable[[], float] = time.monotonic) -> None:
        self.cookie = f"kept_{port}"
        self._now = now
        self._codes: dict[str, _Code] = {}
        self._visits: OrderedDict[str, tuple[Visit, float]] = OrderedDict()
        self._notices: OrderedDict[str, Notice] = OrderedDict()

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
        self._visits[visit.id] = (visit, self._now())
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
                visit, _ = self._visits[found]
                self._visits[found] = (visit, self._now())
                self._visits.move_to_end(found)
                return visit
        return None

    def is_open(self, id: str) -> bool:
        """Whether the visit of that id has begun and not ended."""
        known = self._visits.get(id)
        if known is not None and self._now() - known[1] > VISIT_LIFE_S:
            self.end(id)
        return id in self._visits

    def end(self, id: str) -> None:
        """End a visit: its cookie opens nothing any more."""
        self._visits.pop(id, None)

    def leave_notice(self, text: str, *, mark: str, is_error: bool) -> str:
        """Keep a line for the next page of the one who has this mark, and return its id."""
        id = secrets.token_urlsafe(12)
        self._notices[id] = Notice(text=text, is_error=is_error, mark=mark, until=self._now() + NOTICE_LIFE_S)
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
