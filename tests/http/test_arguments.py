"""Arguments of the routes: where they stand, the names that are refused, headers, and pages with a cursor."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.http.conftest import Answer, Server
from tests.http.operations import operations

HERE = "/api/v1/projects/here"


def remember(server: Server, content: str, **about: object) -> str:
    answer = server.ask("POST", f"{HERE}/memories", {"content": content, **about})
    assert answer.status == 201, answer
    return str(answer.json["ref"])


def header(answer: Answer, name: str) -> str:
    return {key.lower(): value for key, value in answer.headers.items()}[name]


def test_every_operation_refuses_an_unknown_argument_by_name(server: Server) -> None:
    """In the query and in the body; nothing is done."""
    before = server.get("/history")["events"]
    for one in operations(server):
        if one.name == "events":
            continue
        path = one.path.replace("{project}", "here")
        if one.name != "slash":
            in_query = server.ask(one.method, f"{path}{'&' if '?' in path else '?'}colour=red", one.body)
            assert (in_query.status, "'colour'" in in_query.json["detail"]) == (422, True), (one, in_query)
            assert header(in_query, "content-type") == "application/problem+json"
        in_body = server.ask(one.method, path, {**(one.body or {}), "colour": "red"})
        assert in_body.status == 422, (one, in_body)
        assert one.name == "slash" or "'colour'" in in_body.json["detail"], (one, in_body)
    assert server.get("/history")["events"] == before


def test_an_error_about_an_argument_says_what_is_taken_instead(server: Server) -> None:
    old = server.ask("GET", f"{HERE}/recall?q=build")
    assert old.status == 422
    assert old.json["detail"] == "recall has no argument 'q'."
    assert old.json["hint"].startswith("It takes query, limit, kind")
    missing = server.ask("GET", f"{HERE}/recall")
    assert (missing.status, missing.json["detail"]) == (422, "recall needs the argument query.")
    wrong = server.ask("GET", f"{HERE}/recall?query=build&scope=moon")
    assert (wrong.status, wrong.json["detail"]) == (422, "Unknown scope 'moon'.")


def test_an_argument_in_the_wrong_place_is_refused(server: Server) -> None:
    ref = remember(server, "The lamp of the porch is yellow.")
    asked = [
        server.ask("POST", f"{HERE}/memories?content=Something", {}),
        server.ask("GET", f"{HERE}/recall", {"query": "build"}),
        server.ask("PATCH", f"{HERE}/memories/{ref}", {"ref": "1", "content": "Something else"}),
        server.ask("POST", f"{HERE}/memories/{ref}/pin?ref=1"),
    ]
    assert [one.status for one in asked] == [422, 422, 422, 422]
    assert [one.json["detail"] for one in asked] == [
        "content was given in the address.",
        "query was given in the body.",
        "ref is part of the address.",
        "ref is part of the address.",
    ]
    assert server.get(f"/memories/{ref}")["content"] == "The lamp of the porch is yellow."


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/recall?query={'a' * 10_001}", None),
        ("GET", f"/sessions/{'a' * 501}", None),
        ("POST", "/sessions/long/messages", {"role": "user", "content": "a" * 1_000_001}),
        ("GET", "/memories?limit=501", None),
        ("GET", "/memories?limit=0", None),
        ("GET", "/briefing?shares=%7Bhalf", None),
        ("POST", "/memories", {"content": 7.5}),
        ("POST", "/memories", ["content"]),
    ],
)
def test_a_value_beyond_a_limit_or_of_another_form_is_refused(
    server: Server, method: str, path: str, body: object
) -> None:
    answer = server.ask(method, HERE + path, body)
    assert answer.status == 422, answer
    assert header(answer, "content-type") == "application/problem+json"


def test_several_values_of_an_argument_are_given_by_repeating_its_name(server: Server) -> None:
    refs = {remember(server, f"The {kind} of the orchard is number {n}.", kind=kind) for n, kind in enumerate(KINDS)}
    found = server.get("/memories?" + "&".join(f"kind={kind}" for kind in KINDS))["memories"]
    assert refs <= {one["ref"] for one in found}
    assert {one["kind"] for one in found} == set(KINDS)


KINDS = ("decision", "convention")


def test_an_object_in_a_query_is_json(server: Server) -> None:
    shares = quote(json.dumps({"project": 1, "global": 0}))
    assert server.get(f"/briefing?prompt=build&shares={shares}")["text"]


def test_a_change_names_the_version_that_was_read(server: Server) -> None:
    ref = remember(server, "The boiler is in the cellar.")
    path = f"{HERE}/memories/{ref}"
    etag = header(server.ask("GET", path), "etag")
    changed = server.ask("PATCH", path, {"tags": ["house"]}, headers={"If-Match": etag})
    assert changed.status == 200
    assert header(changed, "etag") == header(server.ask("GET", path), "etag") != etag
    late = server.ask("PATCH", path, {"content": "It is in the attic."}, headers={"If-Match": etag})
    assert late.status == 412
    assert "changed since" in late.json["detail"]
    assert server.ask("PATCH", path, {"tags": ["home"]}, headers={"If-Match": "*"}).status == 200
    assert server.get(f"/memories/{ref}")["content"] == "The boiler is in the cellar."
    gone = server.ask("PATCH", f"{HERE}/memories/99999", {"content": "No."}, headers={"If-Match": etag})
    assert gone.status == 404


def test_the_key_of_a_repetition_is_a_header_or_an_argument(server: Server) -> None:
    body = {"content": "The well is nine metres deep."}
    first = server.ask("POST", f"{HERE}/memories", body, headers={"Idempotency-Key": "well-1"}).json
    again = server.ask("POST", f"{HERE}/memories", {**body, "key": "well-1"}).json
    assert (first["outcome"], again["reason"], again["ref"]) == ("stored", "already_stored", first["ref"])
    both = server.ask("POST", f"{HERE}/memories", {**body, "key": "well-2"}, headers={"Idempotency-Key": "well-1"}).json
    assert both["reason"] != "already_stored", "the argument wins over the header"


def pages(server: Server, path: str, name: str) -> Iterator[list[dict[str, object]]]:
    """Follow the cursor until there is none."""
    after = ""
    while after is not None:
        page = server.get(f"{path}{'&' if '?' in path else '?'}limit=2" + (f"&after={after}" if after else ""))
        yield page[name]
        after = page["next"]


def test_a_cursor_leads_through_sessions_messages_and_memories(server: Server) -> None:
    names = [f"talk-{number}" for number in range(5)]
    for name in names:
        assert server.ask("POST", f"{HERE}/sessions", {"id": name, "agent": "claude"}).status == 201
    for number in range(5):
        said = {"role": "user", "content": f"Line {number}."}
        assert server.ask("POST", f"{HERE}/sessions/talk-0/messages", said).status == 201
        remember(server, f"The beehive {number} stands in row {number}.", kind="architecture", tags=["hives"])
    found = [page for page in pages(server, "/sessions", "sessions") if page]
    listed = [one["name"] for page in found for one in page]
    assert [name for name in listed if name in names] == names[::-1], "newest first, none twice"
    assert max(map(len, found)) == 2
    read = [one["content"] for page in pages(server, "/sessions/talk-0/messages", "messages") for one in page]
    assert read == [f"Line {number}." for number in range(5)]
    kept = [one["ref"] for page in pages(server, "/memories?tag=hives", "memories") for one in page]
    assert len(kept) == len(set(kept)) == 5
    oldest = server.get("/sessions?newest_first=false&limit=500")["sessions"]
    assert [one["name"] for one in oldest] == listed[::-1]
    assert server.get("/sessions?after=nothing-of-that-name")["sessions"] == []
