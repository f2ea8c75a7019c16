"""Browsers that are signed in: the cookie is no key, the address works once, and nothing in an address is believed."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept.entrypoints.http.visits as visits_module
from kept.entrypoints.http.guard import MOST_FAILURES, MOST_FORMS_OF_A_CLIENT
from kept.entrypoints.http.keys import FILE, Keys, digest_of
from kept.entrypoints.http.visits import (
    CODE_LIFE_S,
    MOST_VISITS,
    NOTICE_LIFE_S,
    SEEN_EVERY_S,
    VISIT_LIFE_S,
    SavedVisits,
    Visits,
    sign_out,
)
from kept.entrypoints.http.visits import signed_in as signed_in_as_owner
from tests.http.conftest import KEY, Answer, Server, free_port, serving
from tests.http.test_guard import raw

HERE = "/api/v1/projects/here"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def header(answer: Answer, name: str) -> str:
    return {key.lower(): value for key, value in answer.headers.items()}.get(name, "")


def printed_code(server: Server) -> str:
    """The path of the address that the server printed."""
    (found,) = [re.search(r"http://[^/]+(/\S+)", line) for line in server.printed if "http://" in line]
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A second server on this host, with the same key and another port."""
    with serving(tmp_path_factory.mktemp("other")) as started:
        yield started


def test_the_printed_address_signs_in_once_and_has_no_key(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        path = printed_code(server)
        assert KEY not in path
        assert server.ask("HEAD", path, key=None).status == 401, "a look ahead spends nothing"
        first = server.ask("GET", path, key=None)
        assert (first.status, header(first, "location")) == (303, "/")
        cookie = header(first, "set-cookie")
        assert cookie.startswith(f"kept_{server.port}=")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert KEY not in cookie
        mine = {"Cookie": cookie.partition(";")[0]}
        assert raw(server, "GET", f"{HERE}/status", mine).status == 200
        assert raw(server, "GET", path, mine).status == 303, "who is signed in may load it again"
        # A program that read the list of processes comes second, or came first: then both are out.
        assert server.ask("GET", path, key=None).status == 401
        assert raw(server, "GET", f"{HERE}/status", mine).status == 401
        again = {"Cookie": server.sign_in()}
        assert raw(server, "GET", f"{HERE}/status", again).status == 200, "the key signs in at any time"


def test_codes_visits_and_notices_end_by_the_clock() -> None:
    now = [100.0]
    visits = Visits(7333, lambda: now[0])
    late, code = visits.new_code("d"), visits.new_code("d")
    value = visits.exchange(code)
    assert value is not None
    assert visits.exchange("") is None
    number = visits.leave_notice("Done.", mark="mine", is_error=False)
    old = visits.leave_notice("Done.", mark="mine", is_error=False)
    assert visits.take_notice(number, mark="another") is None
    assert visits.take_notice(number, mark="mine") is not None
    assert visits.take_notice(number, mark="mine") is None
    now[0] += max(CODE_LIFE_S, NOTICE_LIFE_S) + 1
    assert visits.exchange(late) is None
    assert visits.take_notice(old, mark="mine") is None
    assert visits.find(f"kept_7333={value}") is not None
    now[0] += VISIT_LIFE_S - 1
    assert visits.find(f"kept_7333={value}") is not None, "each request counts"
    now[0] += VISIT_LIFE_S + 1
    assert visits.find(f"kept_7333={value}") is None


def test_signing_out_ends_what_a_browser_follows_without_another_request(tmp_path: Path) -> None:
    visits = Visits(7333, saved=SavedVisits(tmp_path, "own", "admin"))
    id = digest_of(visits.begin("own"))
    assert visits.is_open(id), "as a stream asks each second"
    assert sign_out(tmp_path) == 1
    assert not visits.is_open(id)


@pytest.mark.parametrize("act", ["begin", "find", "end"])
def test_a_server_that_writes_at_that_moment_does_not_undo_a_sign_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    now = [100.0]
    visits = Visits(7333, lambda: now[0], saved=SavedVisits(tmp_path, "own", "admin"))
    first, second = visits.begin("own"), visits.begin("own")
    now[0] += SEEN_EVERY_S + 1
    write, ended = visits_module.change_private_file, []

    def delayed(*args: Any) -> None:  # the server has looked at the file, and waits for its lock
        monkeypatch.setattr(visits_module, "change_private_file", write)
        ended.append(sign_out(tmp_path))
        write(*args)

    monkeypatch.setattr(visits_module, "change_private_file", delayed)
    {
        "begin": lambda: visits.begin("own"),
        "find": lambda: visits.find(f"kept_7333={first}"),
        "end": lambda: visits.end(digest_of(second)),
    }[act]()
    assert ended == [2]
    assert visits.find(f"kept_7333={first}") is None
    assert signed_in_as_owner(tmp_path) == (act == "begin")


def test_a_cookie_is_no_key_and_works_only_at_its_server(server: Server, other: Server) -> None:
    name, _, value = server.sign_in().partition("=")
    assert raw(server, "GET", f"{HERE}/status", {"Cookie": f"{name}={value}"}).status == 200
    assert server.ask("GET", f"{HERE}/status", key=value).status == 401, "useless as a token"
    assert digest_of(value) not in (KEY, value)
    for cookie in (f"{name}={value}", f"kept_{other.port}={value}", f"{name}={KEY}", f"kept_key={KEY}"):
        assert raw(other, "GET", f"{HERE}/status", {"Cookie": cookie}).status == 401
    assert raw(server, "GET", f"{HERE}/status", {"Cookie": f"{name}={KEY}"}).status == 401, "nor is the key a cookie"
    assert server.ask("GET", f"/?key={KEY}", key=None).status == 401, "no key in an address"


FOREIGN = ("a[b]=1", "=", ";;;", "kept_key=old", "x={}", 'y="unended', "caf\xe9=1", "z=" + "x" * 4_000, "$Version=1")
_PRINTABLE = st.characters(min_codepoint=33, max_codepoint=255, exclude_categories=["Cc"])
_COOKIES = st.lists(st.one_of(st.sampled_from(FOREIGN), st.text(_PRINTABLE, max_size=30)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(before=_COOKIES, after=_COOKIES, own=st.sampled_from(("", "stale", '"stale"', "x" * 3_000)))
def test_foreign_and_stale_cookies_do_not_lock_the_owner_out(
    server: Server, signed_in: str, before: list[str], after: list[str], own: str
) -> None:
    name = signed_in.partition("=")[0]
    stale = [f"{name}={own}"] if own else []
    sent = "; ".join([*before, *stale, signed_in, *after]).encode("latin-1").decode("latin-1")
    assert raw(server, "GET", f"{HERE}/status", {"Cookie": sent}).status == 200
    without = "; ".join([*before, *stale, *after])
    assert raw(server, "GET", f"{HERE}/status", {"Cookie": without}).status == 401, "and never 429"


@pytest.fixture(scope="module")
def signed_in(server: Server) -> str:
    return server.sign_in()


def test_as_many_cookies_as_a_browser_holds_do_not_lock_the_owner_out(server: Server, signed_in: str) -> None:
    bomb = "; ".join(f"c{number}={'x' * 4_000}" for number in range(180))
    assert raw(server, "GET", f"{HERE}/status", {"Cookie": f"{bomb}; {signed_in}"}).status == 200


def test_a_token_signs_in_until_it_is_revoked_and_a_wrong_one_is_refused(server: Server) -> None:
    keys = Keys(server.home)
    secret = keys.create("anna", role="project", projects=["web-app"])
    cookie = {"Cookie": server.sign_in(secret)}
    assert raw(server, "GET", f"{HERE}/status", cookie).status == 200
    assert raw(server, "GET", "/p/web-app/saw", cookie).status == 200
    keys.revoke("anna")
    assert raw(server, "GET", f"{HERE}/status", cookie).status == 401
    own = {**FORM, "Origin": server.address}
    for body in (b"", b"key=", b"key=wrong", b"key=%ff%fe", b"\xff", b"key=" + b"x" * 10_000, f"keys={KEY}".encode()):
        answer = raw(server, "POST", "/sign-in", own, body)
        assert answer.status == 401, body
        assert not header(answer, "set-cookie")
    form = urlencode({"key": KEY}).encode()
    for origin in ({}, {"Origin": "null"}, {"Origin": "https://evil.example"}):
        assert raw(server, "POST", "/sign-in", {**FORM, **origin}, form).status == 403, "not from a foreign page"


def test_a_page_on_another_port_cannot_use_the_cookie(server: Server, signed_in: str) -> None:
    """Browsers count all ports of a host as one site, and send the cookie along."""
    for site in ("same-site", "cross-site"):
        sent = {"Cookie": signed_in, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert raw(server, "GET", f"{HERE}/recall?query=build", sent).status == 403
    link = {"Cookie": signed_in, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
    assert raw(server, "GET", "/p/web-app/saw", link).status == 200, "a link may lead here"
    own = {"Cookie": signed_in, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert raw(server, "GET", f"{HERE}/status", own).status == 200


PIECES = ["//", "/\\", "\\", "/", "evil.example", "https:", "http://", "%2f", "%5c", "\t", "\n", "\r", "@", "?", "#"]
PIECES += ["/p/web-app", "/p/web-app/", "saw", "..", "/../", "&next=//evil.example", "javascript:", "\x00", ":80"]
AWAY = st.builds("".join, st.lists(st.sampled_from(PIECES), max_size=6))


def lands_elsewhere(location: str) -> bool:
    """Whether a browser leaves the host: it drops tabs and line ends, and takes backslashes for slashes."""
    seen = re.sub(r"[\t\r\n]", "", location).strip().replace("\\", "/")
    return not seen.startswith("/") or seen.startswith("//")


@settings(max_examples=80, deadline=None)
@given(back=AWAY)
def test_no_redirect_leaves_the_host(server: Server, signed_in: str, back: str) -> None:
    own = {"Cookie": signed_in, "Origin": server.address, "Referer": f"http://evil.example/{quote(back)}"}
    page = raw(server, "GET", "/p/web-app/memories", own)
    mark = re.search(rb'name="csrf" value="(\w+)"', page.body)
    fields = {"csrf": mark[1].decode() if mark else "x", "verb": "nothing", "back": back, "next": back}
    answers = [raw(server, "POST", "/p/web-app/do", {**own, **FORM}, urlencode(fields).encode())]
    asked = quote(back, safe="/%?#&=:@")
    for path in (f"/{asked}", f"/enter?code=x&next={asked}", f"/{asked}?key={KEY}", f"/sign-in?next={asked}", "/mcp"):
        if not path.startswith("/") or " " in path:
            continue
        answers.append(raw(server, "GET", path, own))
    form = urlencode({"key": KEY, "next": back, "back": back}).encode()
    answers.append(raw(server, "POST", f"/sign-in?next={asked}", {**own, **FORM}, form))
    for answer in answers:
        location = header(answer, "location").removeprefix(server.address)
        assert not location or not lands_elsewhere(location), (back, location)


def test_nothing_in_an_address_is_shown_as_our_own_words(server: Server, signed_in: str) -> None:
    own = {"Cookie": signed_in}
    planted = "Your+token+has+expired:+send+it+to+evil.example"
    for name in ("said", "notice", "toast", "failed", "error"):
        for view in ("saw", "memories", "inbox", "timeline", "sessions", "knowledge", "health"):
            answer = raw(server, "GET", f"/p/web-app/{view}?{name}={planted}&failed=1", own)
            assert answer.status == 200
            assert b"has expired" not in answer.body
            assert b'class="toast"' not in answer.body
            assert b'class="toast error"' not in answer.body


def test_the_line_after_a_change_is_shown_once_and_only_to_who_made_it(server: Server, signed_in: str) -> None:
    mine, theirs = {"Cookie": signed_in}, {"Cookie": server.sign_in()}
    page = raw(server, "GET", "/p/web-app/memories", mine)
    mark = re.search(rb'name="csrf" value="(\w+)"', page.body)
    assert mark is not None
    fields = urlencode({"csrf": mark[1].decode(), "verb": "forget", "ref": "999"}).encode()
    sent = {**mine, **FORM, "Origin": server.address}
    where = header(raw(server, "POST", "/p/web-app/do", sent, fields), "location")
    assert "999" not in where
    assert b"There is no memory 999" not in raw(server, "GET", where, theirs).body
    assert b"There is no memory 999" in raw(server, "GET", where, mine).body
    assert b"There is no memory 999" not in raw(server, "GET", where, mine).body
    stolen = raw(server, "POST", "/p/web-app/do", {**theirs, **FORM, "Origin": server.address}, fields)
    assert b"from another session" in raw(server, "GET", header(stolen, "location"), theirs).body


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server behind a proxy on this machine, which adds TLS."""
    more = {"names": ["kept.example.com"], "proxies": ["127.0.0.1"]}
    with serving(tmp_path_factory.mktemp("proxied"), **more) as started:
        yield started


def test_behind_tls_the_cookie_is_secure_and_only_https_pages_are_ours(proxied: Server) -> None:
    form = urlencode({"key": KEY}).encode()
    through = {"Host": "kept.example.com", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9", **FORM}
    answer = raw(proxied, "POST", "/sign-in", {**through, "Origin": "https://kept.example.com"}, form)
    assert "Secure" in header(answer, "set-cookie").split("; ")
    assert raw(proxied, "POST", "/sign-in", {**through, "Origin": "http://kept.example.com"}, form).status == 403


def test_only_a_configured_proxy_is_believed(tmp_path: Path, proxied: Server) -> None:
    with serving(tmp_path) as server:
        form = urlencode({"key": KEY}).encode()
        sent = {**FORM, "Origin": server.address, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
        assert "Secure" not in header(raw(server, "POST", "/sign-in", sent, form), "set-cookie")
        for answered, status in ((server, 429), (proxied, 401)):
            for number in range(MOST_FAILURES + 2):
                guess = {"Authorization": "Bearer guess", "X-Forwarded-For": f"203.0.113.{number}"}
                last = raw(answered, "GET", "/api/v1/projects", guess).status
            assert last == status, "a guesser cannot choose the address that is counted"


def test_a_proxy_is_an_address(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kept", "--home", str(tmp_path), "serve", "--no-open", "--proxy", "*"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "'*' is not the address of a proxy" in done.stderr + done.stdout


def test_the_browser_is_started_with_an_address_that_has_no_key(tmp_path: Path) -> None:
    """The list of processes shows the address to every user of the machine."""
    (tmp_path / "proj" / ".git").mkdir(parents=True)
    noted = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {noted}.part && mv {noted}.part {noted}\n', "utf-8")
    browser.chmod(0o755)
    environ = os.environ | {"KEPT_HOME": str(tmp_path / "home"), "BROWSER": str(browser), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "kept", "serve", "--no-demo", "--port", str(free_port())]
    process = subprocess.Popen(command, cwd=tmp_path / "proj", env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        printed = [process.stdout.readline() for _ in range(3)]
        until = time.monotonic() + 30
        while not noted.exists() and time.monotonic() < until:
            time.sleep(0.05)
        (opened,) = noted.read_text("utf-8").split()
        key = printed[1].split()[-1]
        assert key not in opened
        assert opened not in printed[0], "each has another code"
        for address in (opened, printed[0].split()[-1]):
            jar = urllib.request.HTTPCookieProcessor(CookieJar())
            with urllib.request.build_opener(jar).open(address, timeout=30) as response:
                assert response.status == 200
                assert "code" not in response.url
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(address, timeout=30)
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.mark.parametrize("n_tokens", [1, 3, 20])
def test_no_token_ends_the_visits_of_other_keys(n_tokens: int) -> None:
    visits = Visits(1)
    own = [visits.begin("owner") for _ in range(3)]
    for number in range(2 * MOST_VISITS):
        last = visits.begin(f"token {number % n_tokens}")
    for value in (*own, last):
        assert visits.find(f"{visits.cookie}={value}") is not None


def test_half_forms_do_not_keep_the_owner_from_signing_in(server: Server) -> None:
    half = (
        f"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {server.address}\r\n"
        "Content-Length: 100\r\n\r\nk"
    )
    waiting = []
    try:
        for _ in range(3 * MOST_FORMS_OF_A_CLIENT):
            waiting.append(socket.create_connection(("127.0.0.1", server.port)))
            waiting[-1].sendall(half.encode())
        for _ in range(5):
            assert server.sign_in()
        waiting[0].settimeout(5)
        assert b" 503 " in waiting[0].recv(4_000), "the oldest was closed"
    finally:
        for one in waiting:
            one.close()


def test_the_cookie_of_an_ended_or_unreadable_token_keeps_nobody_out(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        keys = Keys(server.home)
        cookies = [server.sign_in(keys.create(name, role="project", projects=["web-app"])) for name in ("anna", "ben")]
        keys.revoke("anna")
        code = server.printed[0].rpartition("=")[2].strip()
        entered = server.ask("GET", f"/enter?code={code}", key=None, headers={"Cookie": cookies[0]})
        assert entered.status == 303
        (server.home / FILE).write_bytes(b"{damaged")
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.address, "Cookie": cookies[1]}
        signed_in = server.ask("POST", "/sign-in", urlencode({"key": KEY}).encode(), key=None, headers=form)
        assert signed_in.status == 303
        assert server.ask("GET", "/api/v1/projects", key=None, headers={"Cookie": cookies[1]}).status == 503
