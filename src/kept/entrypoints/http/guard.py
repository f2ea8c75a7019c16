"""What is refused before any verb runs: foreign hosts and origins, requests without a key, too much, and too slow.

A page of another site must not be able to use the server of the person who looks at it: not by a name that points to
this machine (the host is checked), not by a form (the origin is checked, and the cookie is SameSite=Strict). Rule: this
sees every request first, and its answers say nothing about what is stored.
"""

import asyncio
import logging
import re
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote

from kept.entrypoints.http.keys import FILE, Key, Keys, digest_of
from kept.entrypoints.http.problems import NEEDS_KEY, WRONG_KEY, Draw, answer_problem, is_for_people, problems_as_pages
from kept.entrypoints.http.visits import Visit, Visits
from kept.errors import KeptError, NotAllowed

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ENTER, SIGN_IN = "/enter", "/sign-in"
OPEN_FOLDER, OPEN_FILES = "/static/", ("/favicon.ico",)
FOREIGN_PAGE = "A page of another site may not use this server."
MAX_BODY_BYTES = 2_000_000
TOO_MUCH = f"A request may have at most {MAX_BODY_BYTES:,} bytes."
BODY_WAIT_S = 15.0
MAX_FORM_BYTES, FORM_WAIT_S = 4_000, 5.0  # of the sign-in form, which is read before any key is known
MOST_FORMS, MOST_FORMS_OF_A_CLIENT = 200, 8  # that are read at once
MOST_FAILURES, FAILURE_WINDOW_S = 20, 60.0
MOST_ADDRESSES = 10_000  # whose failures are remembered
COOKIE_LIFE_S = 30 * 86_400  # in a browser; the server forgets a visit that is not used
_A_VIEW = re.compile(r"/p/[A-Za-z0-9._~%-]+/[a-z]+(\?[A-Za-z0-9._~%&=+-]*)?")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",  # with no-referrer, browsers send forms of our own with origin null
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
log = logging.getLogger("kept.http")


class Guard:
    """The outermost part of the application. `hosts` are the names, with port, under which the server is reached."""

    def __init__(
        self,
        app: App,
        keys: Keys,
        visits: Visits,
        hosts: Callable[[], frozenset[str]],
        *,
        note: Callable[[str, int, float], None] = lambda route, status, seconds: None,
        draw: Draw | None = None,
    ) -> None:
        self._draw = draw
        self._note = note
        self._app = app
        self._keys = keys
        self._visits = visits
        self._hosts = hosts
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._forms: dict[asyncio.Future[bytes], str] = {}  # the sign-in forms that are being read, oldest first
        self._reported = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":  # the server speaks no other protocol
            return
        began, status = time.perf_counter(), 0

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *((k, v) for k, v in HEADERS.items() if k not in given)]
            await send(message)

        try:
            await self._answer(scope, receive, self._for_reader(scope, send_guarded))
        finally:  # ids and numbers only: a path or a query may quote a memory
            route = getattr(scope.get("route"), "path", "-")
            key = scope.get("state", {}).get("key")
            took = time.perf_counter() - began
            self._note(route, status, took)
            log.info("%s %s %s %d %.0fms", key.name if key else "-", scope["method"], route, status, took * 1000)

    def _for_reader(self, scope: Scope, send: Send) -> Send:
        accept = next((value for name, value in scope["headers"] if name.lower() == b"accept"), b"").decode("latin-1")
        if self._draw is None or not is_for_people(scope["path"], accept):
            return send
        query = scope["query_string"].decode("latin-1")
        address = "/" + quote(scope["path"].lstrip("/")) + (f"?{query}" if query else "")
        return problems_as_pages(send, self._draw, address if scope["method"] == "GET" else "")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if host.lower() not in self._hosts():
            await answer_problem(send, 421, "This server is not reached under that name.")
        elif not _is_own_origin(headers, host, scope["scheme"]):
            await answer_problem(send, 403, FOREIGN_PAGE)
        elif _declared_length(headers) > MAX_BODY_BYTES:
            await answer_problem(send, 413, TOO_MUCH)
        elif scope["path"] in OPEN_FILES or scope["path"].startswith(OPEN_FOLDER):
            await self._app(scope, receive, send)
        else:
            await self._answer_key(scope, headers, receive, send)

    async def _answer_key(self, scope: Scope, headers: Mapping[bytes, str], receive: Receive, send: Send) -> None:
        address = (scope.get("client") or ("",))[0]
        asked = (scope["method"], scope["path"])
        try:
            if asked == ("POST", SIGN_IN):
                await self._sign_in(scope, headers, address, receive, send)
                return
            # A code is worth as much in a browser that has the cookie of an ended or unreadable token.
            if asked == ("GET", ENTER) and not self._is_visit(headers):
                await self._enter(scope, address, send)
                return
            key, digest, visit = self._find_key(headers)
        except NotAllowed as error:
            await answer_problem(send, 403, error.message, hint=error.hint)
            return
        except KeptError as error:
            await self._answer_unreadable(error, send)
            return
        if key is None:
            await self._refuse(address, send, is_wrong=b"authorization" in headers)
        elif visit is not None and _rides_on_the_cookie(scope["method"], headers):
            await answer_problem(send, 403, "A change from a browser must say which page it comes from.")
        elif visit is not None and asked in (("GET", ENTER), ("GET", SIGN_IN)):
            await _redirect(send)
        else:
            state = scope.setdefault("state", {})
            state["key"], state["caller"] = key, visit.id if visit else digest
            state["is_current"] = lambda: self._is_current(key, digest, visit)
            await self._app(scope, *self._limited(receive, send))

    def _is_current(self, key: Key, digest: str, visit: Visit | None) -> bool:
        """Return True as long as the key opens the same, and the visit, if it is one, goes on."""
        try:
            return self._keys.of_digest(digest) == key and (visit is None or self._visits.is_open(visit.id))
        except KeptError:
            return False

    def _find_key(self, headers: Mapping[bytes, str]) -> tuple[Key | None, str, Visit | None]:
        """The key of a request, its digest, and the visit if a cookie named it."""
        scheme, _, secret = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and secret.strip():
            digest = digest_of(secret.strip())
            return self._keys.of_digest(digest), digest, None
        visit = self._visits.find(headers.get(b"cookie", ""))
        if visit is None:
            return None, "", None
        return self._keys.of_digest(visit.key_digest), visit.key_digest, visit

    def _is_visit(self, headers: Mapping[bytes, str]) -> bool:
        """Return True if the cookie names a visit whose key still opens something."""
        try:
            key, _, visit = self._find_key(headers)
        except KeptError:
            return False
        return visit is not None and key is not None

    async def _enter(self, scope: Scope, address: str, send: Send) -> None:
        """Begin a visit with the code in the address, and go to the start page: the address stays in no history."""
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        value = self._visits.exchange(query.get("code", ""))
        if value is None:
            await self._refuse(address, send, is_wrong=True, detail="This address was used already, or is too old.")
        else:
            await _redirect(send, self._cookie(scope, value))

    async def _sign_in(
        self, scope: Scope, headers: Mapping[bytes, str], address: str, receive: Receive, send: Send
    ) -> None:
        """Begin a visit with the key in the form."""
        if b"origin" not in headers:
            await answer_problem(send, 403, FOREIGN_PAGE)
            return
        reading = asyncio.ensure_future(_read_form(receive))
        self._close_oldest_form(address)
        self._forms[reading] = address
        try:
            await asyncio.wait((reading,))
        finally:
            del self._forms[reading]
            reading.cancel()
        if reading.cancelled():
            # The rest of the form never comes: an open connection would count against all clients until it times out.
            closing = {b"connection": b"close"}
            await answer_problem(
                send, 503, "Too many browsers are signing in.", hint="Try again in a moment.", headers=closing
            )
            return
        form = dict(parse_qsl(reading.result().decode("latin-1")))
        given = form.get("key", "").strip()
        if given and self._keys.find(given) is not None:
            cookie = self._cookie(scope, self._visits.begin(digest_of(given)))
            await _redirect(send, cookie, to=form.get("next", ""))
        else:
            await self._refuse(address, send, is_wrong=True, detail=WRONG_KEY)

    def _close_oldest_form(self, address: str) -> None:
        """Make room for one more form. A browser sends its form at once, so only half forms ever wait here."""
        waiting = [form for form in self._forms if not form.done()]
        of_client = [form for form in waiting if self._forms[form] == address]
        if len(of_client) >= MOST_FORMS_OF_A_CLIENT:
            of_client[0].cancel()
        elif len(waiting) >= MOST_FORMS:
            waiting[0].cancel()

    def _cookie(self, scope: Scope, value: str) -> str:
        secure = "; Secure" if scope["scheme"] == "https" else ""
        return f"{self._visits.cookie}={value}; Path=/; Max-Age={COOKIE_LIFE_S}; HttpOnly; SameSite=Strict{secure}"

    async def _refuse(self, address: str, send: Send, *, is_wrong: bool, detail: str = NEEDS_KEY) -> None:
        """Answer 401, or 429 where too many wrong keys came from. A cookie is never a wrong key: other servers on this
        host, and this one before its last start, leave theirs in the same browser.
        """
        if self._has_failed_too_often(address):
            await answer_problem(send, 429, "Too many wrong keys.", hint="Wait a minute.")
            return
        if is_wrong:
            self._failures.setdefault(address, deque(maxlen=MOST_FAILURES)).append(time.monotonic())
            self._failures.move_to_end(address)
            if len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)
        hint = "Open the address that `kept serve` printed, or send `Authorization: Bearer TOKEN`."
        await answer_problem(send, 401, detail, hint=hint, headers={b"www-authenticate": b"Bearer"})

    async def _answer_unreadable(self, error: KeptError, send: Send) -> None:
        """Say that tokens cannot be checked; the whole message, with paths, is for the log of the person who serves."""
        if str(error) != self._reported:
            self._reported = str(error)
            log.error("Tokens cannot be checked: %s", error)
        await answer_problem(
            send,
            503,
            f"The server cannot read {FILE} in its home, so it accepts no token.",
            hint="The person who runs the server: `kept token list` says what is wrong and what to do.",
        )

    def _has_failed_too_often(self, address: str) -> bool:
        failures = self._failures.get(address)
        if failures is None or len(failures) < MOST_FAILURES:
            return False
        return time.monotonic() - failures[0] < FAILURE_WINDOW_S

    def _limited(self, receive: Receive, send: Send) -> tuple[Receive, Send]:
        """The body of a request, of which only so much and so long is waited for; then the answer says so."""
        size, until = 0, time.monotonic() + BODY_WAIT_S
        is_read = False
        refusal: tuple[int, str] | None = None

        async def limited() -> MutableMapping[str, Any]:
            nonlocal size, is_read, refusal
            if is_read:
                return await receive()  # the end of the connection, which may take as long as it likes
            try:
                message = await asyncio.wait_for(receive(), max(0.0, until - time.monotonic()))
            except TimeoutError:
                refusal = (408, f"The body did not arrive within {BODY_WAIT_S:g} seconds.")
                return {"type": "http.disconnect"}
            size += len(message.get("body", b""))
            is_read = not message.get("more_body", False)
            if size > MAX_BODY_BYTES:
                refusal = (413, TOO_MUCH)
            return {"type": "http.disconnect"} if refusal else message

        async def answered(message: MutableMapping[str, Any]) -> None:
            if refusal is None:
                await send(message)
            elif message["type"] == "http.response.start":
                await answer_problem(send, *refusal)

        return limited, answered


def _declared_length(headers: Mapping[bytes, str]) -> int:
    length = headers.get(b"content-length", "0")
    return int(length) if length.isascii() and length.isdigit() else 0


def _is_own_origin(headers: Mapping[bytes, str], host: str, scheme: str) -> bool:
    origin = headers.get(b"origin")
    schemes = ("https",) if scheme == "https" else ("http", "https")  # a proxy may add TLS without saying so
    return origin is None or origin.lower() in [f"{one}://{host.lower()}" for one in schemes]


def _rides_on_the_cookie(method: str, headers: Mapping[bytes, str]) -> bool:
    """Whether a foreign page may have sent it: a change without an origin, or a request that is no click on a link.

    A page on another port of this host is of the same site, so its requests have our cookie.
    """
    if method not in SAFE_METHODS and b"origin" not in headers:
        return True
    is_foreign = headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin")
    return is_foreign and headers.get(b"sec-fetch-mode") != "navigate"


async def _read_form(receive: Receive) -> bytes:
    """The body of a small form; b"" when it is larger or slower than a person's."""
    body, until = b"", time.monotonic() + FORM_WAIT_S
    while len(body) <= MAX_FORM_BYTES:
        try:
            message = await asyncio.wait_for(receive(), max(0.0, until - time.monotonic()))
        except TimeoutError:
            return b""
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body if len(body) <= MAX_FORM_BYTES else b""
    return b""


async def _redirect(send: Send, cookie: str = "", to: str = "") -> None:
    """Go to the view that was asked for, if `to` is the address of one; otherwise to the start page."""
    where = to if _A_VIEW.fullmatch(to) else "/"
    headers = [(b"location", where.encode("latin-1")), (b"content-length", b"0")]
    headers += [(b"set-cookie", cookie.encode())] if cookie else []
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
