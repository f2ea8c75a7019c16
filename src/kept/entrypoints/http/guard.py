"""What is refused before any verb runs: foreign hosts and origins, requests without a key, too much, and too slow.

A page of somebody else's must not be able to use the server of the person who looks at it: not by a name that points to
this machine (the host is checked), not by a form (the origin is checked, and the cookie is SameSite=Strict). Rule: this
sees every request first, and its answers say nothing about what is stored.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from kept.entrypoints.http.keys import Key, Keys
from kept.entrypoints.http.problems import Draw, answer_problem, is_for_people, problems_as_pages

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "kept_key"
OPEN_PATHS = ("/static/", "/favicon.ico")
MAX_BODY_BYTES = 2_000_000
TOO_MUCH = f"A request may have at most {MAX_BODY_BYTES:,} bytes."
BODY_WAIT_S = 15.0
MOST_FAILURES, FAILURE_WINDOW_S = 20, 60.0
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
        hosts: Callable[[], frozenset[str]],
        *,
        is_secure: bool = False,
        note: Callable[[str, int, float], None] = lambda route, status, seconds: None,
        draw: Draw | None = None,
    ) -> None:
        self._draw = draw
        self._note = note
        self._app = app
        self._keys = keys
        self._hosts = hosts
        self._is_secure = is_secure
        self._failures: dict[str, deque[float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
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
        elif not self._is_own_origin(headers, host):
            await answer_problem(send, 403, "A page of another site may not use this server.")
        elif _declared_length(headers) > MAX_BODY_BYTES:
            await answer_problem(send, 413, TOO_MUCH)
        elif any(scope["path"].startswith(path) for path in OPEN_PATHS):
            await self._app(scope, receive, send)
        else:
            await self._answer_key(scope, headers, receive, send)

    async def _answer_key(self, scope: Scope, headers: Mapping[bytes, str], receive: Receive, send: Send) -> None:
        address = (scope.get("client") or ("",))[0]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if scope["method"] == "GET" and "key" in query and self._keys.find(query["key"]) is not None:
            await self._give_cookie(scope, query, send)
            return
        key, by_cookie = self._find_key(headers)
        if key is None and self._has_failed_too_often(address):
            await answer_problem(send, 429, "Too many wrong keys.", hint="Wait a minute.")
            return
        if key is None:
            if b"authorization" in headers or COOKIE in headers.get(b"cookie", "") or "key" in query:
                self._failures.setdefault(address, deque(maxlen=MOST_FAILURES)).append(time.monotonic())
            hint = "Open the address that `kept serve` printed, or send `Authorization: Bearer TOKEN`."
            await answer_problem(send, 401, "This needs a key.", hint=hint, headers={b"www-authenticate": b"Bearer"})
            return
        if by_cookie and scope["method"] not in SAFE_METHODS and b"origin" not in headers:
            await answer_problem(send, 403, "A change from a browser must say which page it comes from.")
            return
        scope.setdefault("state", {})["key"] = key
        await self._app(scope, *self._limited(receive, send))

    def _is_own_origin(self, headers: Mapping[bytes, str], host: str) -> bool:
        origin = headers.get(b"origin")
        return origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")

    def _find_key(self, headers: Mapping[bytes, str]) -> tuple[Key | None, bool]:
        scheme, _, secret = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and secret.strip():
            return self._keys.find(secret.strip()), False
        try:
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(COOKIE)
        except CookieError:
            return None, True
        return (None if cookie is None else self._keys.find(cookie.value)), True

    async def _give_cookie(self, scope: Scope, query: Mapping[str, str], send: Send) -> None:
        """Put the key of the address into a cookie, and go to the same address without it."""
        rest = urlencode([(name, value) for name, value in query.items() if name != "key"])
        target = "/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else "")
        cookie = f"{COOKIE}={query['key']}; Path=/; HttpOnly; SameSite=Strict" + ("; Secure" * self._is_secure)
        headers = [(b"location", target.encode("ascii", "ignore")), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

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
