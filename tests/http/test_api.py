"""The verbs of the library over HTTP: the same words, the same sentences, the same fields."""

import json
import threading
import urllib.request
from pathlib import Path

from tests.http.conftest import KEY, Server, serving

HERE = "/api/v1/projects/here"


def remember(server: Server, content: str, **about: object) -> dict[str, object]:
    answer = server.ask("POST", f"{HERE}/memories", {"content": content, **about})
    assert answer.status == 201, answer
    return dict(answer.json)


def test_what_is_remembered_is_listed_recalled_and_explained(server: Server) -> None:
    receipt = remember(server, "We deploy with Fly.io because Heroku was too slow.", kind="decision", tags=["ops"])
    assert receipt["outcome"] == "stored"
    listed = server.get("/memories?kind=decision&tag=ops")["memories"]
    assert [one["ref"] for one in listed] == [receipt["ref"]]
    found = server.get("/recall?query=deploy+fly")
    assert found["hits"][0]["ref"] == receipt["ref"]
    assert found["hits"][0]["why"]["match"] > 0
    assert server.get("/why")["question"]["query"] == "deploy fly"
    assert "Fly.io" in server.get("/briefing?prompt=how+do+we+deploy")["text"]
    assert (
        "Fly.io" in server.ask("GET", "/api/v1/search?q=deploy+fly&scope=memory").json["hits"][0]["memory"]["content"]
    )


def test_pages_follow_each_other_without_a_gap(server: Server) -> None:
    for number in range(7):
        remember(server, f"The shard {number} lives on host db-{number}.example.com.", kind="architecture")
    seen: list[str] = []
    after = ""
    while True:
        page = server.get(f"/memories?kind=architecture&limit=3{after}")
        seen += [one["ref"] for one in page["memories"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert len(seen) == len(set(seen)) == 7


def test_every_change_has_its_verb_and_undo_takes_it_back(server: Server) -> None:
    ref = remember(server, "The cache expires after ten minutes.")["ref"]
    one = f"{HERE}/memories/{ref}"
    assert server.ask("POST", f"{one}/reinforce").json["feedback"] == 3
    assert server.ask("POST", f"{one}/demote").json["feedback"] == 2
    assert server.ask("POST", f"{one}/pin").json["status"] == "pinned"
    assert server.ask("POST", f"{one}/unpin").json["status"] == "confirmed"
    assert server.ask("POST", f"{one}/forget").json["reason"] == "forgotten"
    assert server.ask("GET", one).status == 404
    assert server.ask("POST", f"{HERE}/undo", {}).status == 200
    assert server.ask("GET", one).json["status"] == "confirmed"
    actions = [event["action"] for event in server.get(f"/memories/{ref}/history")["events"]]
    assert actions[:3] == ["remember", "reinforce", "demote"]
    assert "salt" not in server.get("/history")["events"][0]
    assert server.ask("DELETE", one).status == 200
    assert server.ask("POST", f"{one}/restore").status == 404, "erased means gone"


def test_a_version_that_somebody_changed_is_not_overwritten(server: Server) -> None:
    ref = remember(server, "The queue is RabbitMQ 3.")["ref"]
    read = server.ask("GET", f"{HERE}/memories/{ref}")
    etag = {k.lower(): v for k, v in read.headers.items()}["etag"]
    first = server.ask(
        "PATCH", f"{HERE}/memories/{ref}", {"content": "The queue is RabbitMQ 4."}, headers={"If-Match": etag}
    )
    assert first.status == 200
    late = server.ask("PATCH", f"{HERE}/memories/{ref}", {"content": "The queue is Kafka."}, headers={"If-Match": etag})
    assert (late.status, late.json["status"]) == (412, 412)
    assert server.get(f"/memories/{ref}")["content"] == "The queue is RabbitMQ 4."


def test_a_repetition_with_its_key_stores_nothing_twice(server: Server) -> None:
    body = {"content": "The nightly job runs at three."}
    refs = {
        server.ask("POST", f"{HERE}/memories", body, headers={"Idempotency-Key": "job-1"}).json["ref"] for _ in range(3)
    }
    assert len(refs) == 1


def test_errors_are_problem_documents_in_the_words_of_the_library(server: Server) -> None:
    missing = server.ask("GET", f"{HERE}/memories/999999")
    assert missing.status == 404
    assert missing.json["detail"] == "There is no memory 999999."
    assert missing.json["hint"]
    bad = server.ask("POST", f"{HERE}/memories", {"content": "x", "colour": "red"})
    assert bad.status == 422
    assert "colour" in bad.json["detail"]
    assert server.ask("GET", "/api/v1/projects/nowhere/memories").status == 404
    assert server.ask("PUT", f"{HERE}/memories").status == 405
    garbage = server.ask("POST", f"{HERE}/memories", b"{not json")
    assert garbage.status == 422
    for answer in (missing, bad, garbage):
        assert {k.lower(): v for k, v in answer.headers.items()}["content-type"] == "application/problem+json"


def test_conflicts_are_shown_with_both_sides_and_settled(server: Server) -> None:
    remember(server, "We use Express for the gateway service.", kind="decision")
    new = remember(server, "We use Fastify for the gateway service.", kind="decision")
    conflicts = server.get("/conflicts")["conflicts"]
    mine = [one for one in conflicts if one["left"]["ref"] == new["ref"]]
    if not mine:  # the words say that it replaces the older one
        assert new["superseded"]
        return
    assert "Express" in mine[0]["right"]["content"]
    kept = server.ask("POST", f"{HERE}/conflicts/{mine[0]['ref']}/resolve", {"keep": new["ref"]})
    assert kept.json["ref"] == new["ref"]


def test_sessions_with_their_messages_and_tasks(server: Server) -> None:
    with server.memory() as memory:
        session = memory.session("talk-1", agent="claude")
        session.append("user", "We decided to use Postgres 17 for billing, because MySQL lacks row level security.")
        session.append("assistant", "Noted.")
        session.finish()
    assert "talk-1" in [one["name"] for one in server.get("/sessions")["sessions"]]
    page = server.get("/sessions/talk-1/messages?limit=1")
    assert [one["role"] for one in page["messages"]] == ["user"]
    assert server.get(f"/sessions/talk-1/messages?after={page['next']}")["messages"][0]["content"] == "Noted."
    assert server.get("/sessions/talk-1")
    assert server.ask("GET", f"{HERE}/sessions/never").status == 404
    assert "never" not in [one["name"] for one in server.get("/sessions")["sessions"]], "looking begins no session"
    task = server.ask("POST", f"{HERE}/tasks", {"description": "Move to Postgres", "priority": 1}).json
    done = server.ask("POST", f"{HERE}/tasks/{task['name']}/state", {"state": "active"})
    assert done.json["state"] == "active"
    assert server.ask("POST", f"{HERE}/tasks/TASK-999/state", {"state": "active"}).status == 404


def test_export_and_status(server: Server) -> None:
    remember(server, "Backups go to the second region.")
    lines = server.ask("GET", f"{HERE}/export").body.decode().splitlines()
    assert any(json.loads(line)["content"] == "Backups go to the second region." for line in lines)
    assert server.get("/status")["spaces"][0]["memories"]["live"] > 0


def test_what_another_process_writes_arrives_as_an_event(server: Server) -> None:
    request = urllib.request.Request(f"{server.address}{HERE}/events", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=30) as stream:
        assert stream.readline() == b": following\n"

        def write() -> None:
            with server.memory() as memory:
                memory.remember("The status page is served by a static host.")

        writer = threading.Thread(target=write)
        writer.start()
        lines = [stream.readline().decode() for _ in range(5)]
        writer.join()
    assert "retry: 1000\n" in lines
    assert "event: remember\n" in lines
    data = next(json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))
    assert data["actor"] == "claude"
    assert "status page" not in json.dumps(data)


def test_a_server_that_ends_brings_its_streams_to_an_end(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        request = urllib.request.Request(f"{server.address}{HERE}/events", headers={"Authorization": f"Bearer {KEY}"})
        stream = urllib.request.urlopen(request, timeout=30)
        assert stream.readline() == b": following\n"
    with stream:
        assert stream.read() == b"retry: 1000\n\n", "it is complete, and not cut off after a wait"


def test_an_item_of_a_file_is_not_changed(server: Server) -> None:
    """It says what stands in a line of a file, also for a person with the page."""
    (server.project / "pay.py").write_text("# NOTE: cents are integers in every table\n", "utf-8")
    with server.memory() as memory:
        memory.files.extract()
        [item] = memory.files.items()
    answer = server.ask("PATCH", f"{HERE}/memories/{item.ref}", {"content": "Pass --force"})
    assert answer.status == 422, answer
    assert "was extracted from pay.py:1" in str(answer.json)
    with server.memory() as memory:
        assert memory.get(item.ref).content == item.content


def test_an_edit_of_memory_md_is_there_in_the_next_answer(server: Server) -> None:
    """B9: whoever asks over HTTP gets what a person has just written."""
    remember(server, "The lighthouse is painted every May.", kind="decision")
    with server.memory() as memory:
        memory.files.sync()
        path = next(
            Path(one.path) for one in memory.files.status() if one.name == "MEMORY.md" and one.space != "global"
        )
    path.write_text(path.read_text("utf-8").replace("every May.", "every June."), "utf-8")
    found = server.get("/recall?query=lighthouse+painted")["hits"][0]["memory"]
    assert found["content"] == "The lighthouse is painted every June."
    path.write_text(path.read_text("utf-8").replace("every June.", "every July."), "utf-8")
    assert "every July." in server.get("/briefing?prompt=when+is+the+lighthouse+painted")["text"]


def test_an_answer_about_the_past_is_given_over_http(server: Server) -> None:
    with server.memory() as memory:
        memory.remember("The lantern of the pier burns whale oil.")
    before = server.get("/recall?query=lantern+pier&as_of=2020-01-01T00:00:00Z")
    assert before["hits"] == []
    assert server.get("/recall?query=lantern+pier&as_of=2099-01-01T00:00:00Z")["hits"][0]["note"] == ""
    answer = server.ask("GET", "/api/v1/projects/here/recall?query=lantern&as_of=yesterday")
    assert answer.status == 422
    told = server.ask("GET", "/api/v1/projects/here/briefing?prompt=lantern+of+the+pier&as_of=2020-01-01T00:00:00Z")
    assert b"whale oil" not in told.body
