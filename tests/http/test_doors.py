"""Verbs that programs without Python need: conversations, messages for skills, narratives, aliases, pauses, upkeep."""

import pytest

from kept.entrypoints.http.keys import Keys
from tests.http.conftest import Answer, Server

HERE = "/api/v1/projects/here"


def post(server: Server, path: str, body: object = None) -> Answer:
    return server.ask("POST", HERE + path, body)


def remember(server: Server, content: str, **about: object) -> str:
    return str(post(server, "/memories", {"content": content, **about}).json["ref"])


def test_a_conversation_is_recorded_read_and_finished(server: Server) -> None:
    begun = post(server, "/sessions", {"id": "chat-1", "agent": "kodos"})
    assert (begun.status, begun.json["name"], begun.json["agent"]) == (201, "chat-1", "kodos")
    said = [
        {"role": "user", "content": "We decided to use Postgres 17 for billing, because MySQL lacks row security."},
        {"role": "tool_call", "name": "grep", "input": {"pattern": "mysql"}, "id": "t1"},
        {"role": "tool_result", "content": "no match", "id": "t2", "name": "grep", "is_error": True},
        {"role": "assistant", "content": "Noted.", "id": "m4", "timestamp": "2026-03-01T10:00:00+00:00"},
    ]
    added = [post(server, "/sessions/chat-1/messages", one) for one in said]
    assert [one.status for one in added] == [201] * 4
    assert [one.json["n"] for one in added] == [1, 2, 3, 4]
    again = post(server, "/sessions/chat-1/messages", said[3])
    assert (again.status, again.json) == (200, None), "a known id is not added again"
    read = server.get("/sessions/chat-1/messages")["messages"]
    assert [one["role"] for one in read] == [one["role"] for one in said]
    assert read[1]["input"] == {"pattern": "mysql"}
    window = server.get("/sessions/chat-1/window")
    assert [one["content"] for one in window["messages"]][-1] == "Noted."
    flushed = post(server, "/sessions/chat-1/flush")
    assert flushed.json["findings"] >= 1
    findings = server.get("/sessions/chat-1/findings")["memories"]
    assert any("Postgres 17" in one["content"] for one in findings)
    assert post(server, "/sessions/chat-1/compact", {"force": True}).status == 200
    assert post(server, "/sessions/chat-1/finish", {}).status == 200
    assert server.get("/sessions/chat-1")
    ended = {one["name"]: one["finished_at"] for one in server.get("/sessions")["sessions"]}
    assert ended["chat-1"] is not None


def test_a_conversation_is_forked(server: Server) -> None:
    for number in range(3):
        post(server, "/sessions/trunk/messages", {"role": "user", "content": f"Step {number}."})
    forked = post(server, "/sessions/trunk/fork", {"id": "branch", "agent": "kang", "upto": 2})
    assert (forked.status, forked.json["name"], forked.json["parent"]) == (201, "branch", "trunk")
    post(server, "/sessions/branch/messages", {"role": "user", "content": "Another way."})
    lines = [one["content"] for one in server.get("/sessions/branch/messages")["messages"]]
    assert lines == ["Step 0.", "Step 1.", "Another way."]
    assert len(server.get("/sessions/trunk/messages")["messages"]) == 3


@pytest.mark.parametrize("part", ["", "/messages", "/window", "/findings"])
def test_a_look_at_a_conversation_begins_none(server: Server, part: str) -> None:
    assert server.ask("GET", f"{HERE}/sessions/never{part}").status == 404
    assert "never" not in [one["name"] for one in server.get("/sessions")["sessions"]]


@pytest.mark.parametrize("part", ["flush", "compact", "finish", "fork"])
def test_a_conversation_that_does_not_exist_is_not_changed(server: Server, part: str) -> None:
    assert post(server, f"/sessions/never/{part}", {}).status == 404


def test_silent_conversations_are_finished_and_packed_on_request(server: Server) -> None:
    for path in ("/sessions/finish", "/sessions/pack"):
        assert post(server, path).json == {"answer": []}
    assert "finish" not in [one["name"] for one in server.get("/sessions")["sessions"]], "no session of that name"


def test_a_message_for_a_skill_has_what_it_needs(server: Server) -> None:
    remember(server, "Letters to customers are signed by Ms. Abendroth.", kind="convention")
    shared = post(server, "/share", {"to": "writer", "action": "write a letter", "query": "letters customers"})
    assert shared.status == 200
    assert "Abendroth" in shared.body.decode()
    assert post(server, "/share", {"to": "writer"}).status == 422


def test_the_tokens_that_are_left_shorten_a_briefing(server: Server) -> None:
    for number in range(30):
        remember(server, f"The convoy {number} leaves the harbour at {number} o'clock, with cargo {number}.", pin=True)
    long = server.get("/briefing?prompt=convoy")
    short = server.get("/briefing?prompt=convoy&remaining_tokens=2000")
    assert short["tokens"] <= 0.08 * 2_000 < long["tokens"]
    assert server.ask("GET", f"{HERE}/briefing?remaining_tokens=-1").status == 422


def test_memories_belong_to_the_narrative_under_way(server: Server) -> None:
    assert post(server, "/narratives/move/begin").status == 200
    ref = remember(server, "The piano goes to the new house first.")
    assert post(server, "/narratives/end").status == 200
    after = remember(server, "The curtains stay in the old house.")
    told = [one["ref"] for one in server.get("/narrative?id=move")["memories"]]
    assert ref in told
    assert after not in told
    assert [one["ref"] for one in server.get(f"/narrative?of={ref}")["memories"]] == told
    assert "move" in str(server.get("/narratives")["narratives"])


def test_an_alias_finds_and_is_removed(server: Server) -> None:
    ref = remember(server, "The vestibule is painted white.")
    added = post(server, "/aliases", {"word": "foyer", "expands_to": ["vestibule"]})
    assert (added.status, added.json["expands_to"]) == (200, ["vestibule"])
    assert server.get("/aliases")["answer"]["foyer"] == ["vestibule"]
    assert [hit["ref"] for hit in server.get("/recall?query=foyer")["hits"]] == [ref]
    assert server.ask("DELETE", f"{HERE}/aliases/foyer").status == 200
    assert server.get("/recall?query=foyer")["hits"] == []
    assert server.ask("DELETE", f"{HERE}/aliases/foyer").status == 404


def test_a_pause_holds_until_it_is_ended(server: Server) -> None:
    assert server.get("/pause") == {"answer": False}
    assert post(server, "/pause", {"session": "quiet"}).status == 200
    assert server.get("/pause") == {"answer": False}
    assert server.get("/pause?session=quiet") == {"answer": True}
    assert post(server, "/sessions/quiet/messages", {"role": "user", "content": "Off the record."}).json is None
    assert post(server, "/resume", {"session": "quiet"}).json == {"answer": True}
    assert post(server, "/resume", {"session": "quiet"}).json == {"answer": False}
    assert post(server, "/pause").status == 200
    assert server.get("/pause?session=any") == {"answer": True}
    assert post(server, "/resume").json == {"answer": True}


def test_upkeep_shows_what_it_would_do(server: Server) -> None:
    events = server.get("/history")["events"]
    assert post(server, "/upkeep", {"dry_run": True}).status == 200
    assert server.get("/history")["events"] == events
    assert post(server, "/upkeep").status == 200


def test_a_slash_command_is_answered_in_words_and_as_data(server: Server) -> None:
    ref = post(server, "/slash", {"line": "/remember The attic window is stuck."}).json["data"]["ref"]
    found = post(server, "/slash", {"line": "/memory search attic window --limit 1"}).json
    assert (found["command"], found["data"]["hits"][0]["ref"], found["done"]) == ("/memory search", ref, False)
    assert f"[id:{ref}]" in found["text"]
    unknown = post(server, "/slash", {"line": "/memroy list"})
    assert unknown.status == 422
    for body in ({}, {"line": 7}, {"line": "/memory list", "more": 1}):
        assert post(server, "/slash", body).status == 422


def test_notes_of_a_task_and_known_errors(server: Server) -> None:
    task = post(server, "/tasks", {"description": "Paint the fence", "acceptance_criteria": ["It is green."]}).json
    name = task["name"]
    note = {"text": "The north side needs primer.", "stage": "exploration"}
    assert post(server, f"/tasks/{name}/notes", note).status == 200
    output = {"tool": "ls", "output": "primer.txt", "stage": "exploration"}
    assert post(server, f"/tasks/{name}/outputs", output).status == 200
    assert len(server.get(f"/tasks/{name}/notes?stage=exploration")["memories"]) == 2
    assert server.get(f"/tasks/{name}")["acceptance_criteria"] == ["It is green."]
    assert server.ask("DELETE", f"{HERE}/tasks/{name}/notes").status == 200
    assert server.get(f"/tasks/{name}/notes")["memories"] == []
    failure = {"failure": "ValueError: paint is dry", "lesson": "Stir it first."}
    assert post(server, "/failures", failure).status == 200
    like = server.get("/failures?like=ValueError:+paint+is+dry")["memories"]
    assert ["Stir it first." in one["content"] for one in like] == [True]


def test_erasing_names_what_is_erased(server: Server) -> None:
    ref = remember(server, "The spare key is under the third pot.")
    post(server, "/sessions/gone/messages", {"role": "user", "content": "Under the third pot."})
    receipts = post(server, "/erase", {"refs": [ref], "sessions": ["gone"]}).json["receipts"]
    assert len(receipts) == 2
    assert server.ask("GET", f"{HERE}/memories/{ref}?forgotten=true").status == 404
    assert server.ask("GET", f"{HERE}/sessions/gone").status == 404


def test_settings_and_checks_of_the_owner(server: Server) -> None:
    changed = server.ask("PUT", f"{HERE}/settings/briefing_max_tokens", {"value": "3000"})
    assert (changed.status, changed.json["answer"]["briefing_max_tokens"]) == (200, 3000)
    assert server.ask("PUT", f"{HERE}/settings/briefing_max_tokens", {"value": "many"}).status == 422
    assert server.ask("PUT", f"{HERE}/settings/colour", {"value": "red"}).status == 422
    assert all(one["findings"] is not None for one in post(server, "/doctor").json["files"])
    assert post(server, "/scan").json["leaks"] == []
    assert [one["name"] for one in server.get("/files")["files"]]
    assert server.get("/vectors")
    proposed = post(server, "/review/proposals", {"content": "Always sweep the hall on Saturdays."})
    assert proposed.status == 201
    assert proposed.json["memory"]["tier"] != "global"


def test_a_token_of_an_admin_makes_a_project_and_other_tokens_make_none(server: Server) -> None:
    keys = Keys(server.home)
    admin, agent = keys.create("ann", role="admin", projects=()), keys.create("emil", role="project", projects=())
    made = server.ask("POST", "/api/v1/projects", {"name": "billing"}, key=admin)
    assert (made.status, made.json["name"]) == (201, "billing")
    stored = server.ask("POST", "/api/v1/projects/billing/memories", {"content": "Invoices are in cents"}, key=admin)
    assert stored.status == 201
    assert "billing" in [one["name"] for one in server.ask("GET", "/api/v1/projects", key=admin).json["projects"]]
    assert server.ask("POST", "/api/v1/projects", {"name": "billing"}, key=admin).status == 422
    assert server.ask("POST", "/api/v1/projects", {"title": "x"}, key=admin).status == 422
    assert server.ask("POST", "/api/v1/projects", {"name": "x"}, key=agent).status == 403
