"""What the server has beside the verbs: items, tools for agents, figures, upkeep by the clock, the sample data."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import kept
from kept.entrypoints.http.doors import Doors
from kept.entrypoints.http.keys import Key, Keys
from kept.entrypoints.http.schedule import Schedule
from kept.entrypoints.http.server import ServeOptions, make_app, run
from kept.entrypoints.web import demo
from kept.settings import Settings
from tests.http.conftest import KEY, Server, serving

GOLDEN = Path(__file__).parent / "openapi.json"


def test_b9_items_are_served_in_their_fields_under_both_addresses(server: Server) -> None:
    (server.project / "notes.md").write_text("# Notes\n\nTODO: rotate the keys of the billing service\n", "utf-8")
    with server.memory() as memory:
        memory.files.extract([server.project / "notes.md"])
    found = server.get("/knowledge?type=task")["items"]
    assert [(one["type"], one["sourceFile"], one["lineNumber"]) for one in found] == [("task", "notes.md", 3)]
    assert set(found[0]) == {
        *("id", "type", "title", "content", "sourceFile", "lineNumber", "confidence", "extractedAt")
    }
    assert server.ask("GET", "/projects/web-app/knowledge?type=task").json["items"] == found
    assert server.ask("GET", "/projects/web-app/knowledge?type=thing").status == 422


def test_agents_reach_the_tools_over_http(server: Server) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    assert server.ask("POST", "/mcp/", call, key=None, headers=headers).status == 401
    answer = server.ask("POST", "/mcp/", call, headers=headers)
    assert answer.status == 200, answer
    names = [tool["name"] for tool in answer.json["result"]["tools"]]
    assert names[0] == "memory_store"
    assert len(names) == 7
    assert server.ask("GET", "/mcp/", headers=headers).status == 405, "no stream that outlives its key"


def test_figures_for_prometheus_name_routes_and_no_content(server: Server) -> None:
    server.get("/recall?query=secretword")
    shown = server.ask("GET", "/metrics").body.decode()
    assert 'kept_requests_total{route="/projects/{project}/recall",status="200"}' in shown
    assert 'kept_memories{project="web-app",shelf="live"}' in shown
    assert "secretword" not in shown


def test_a14_upkeep_is_done_by_the_clock_and_once(tmp_path: Path) -> None:
    project = tmp_path / "web-app"
    (project / ".git").mkdir(parents=True)
    with kept.open(project=project, home=tmp_path / "home") as memory:
        memory.remember("The build runs on Node 22.")
    now = [datetime(2026, 3, 1, 3, 59, tzinfo=UTC)]
    doors = Doors(str(tmp_path / "home"), str(project))
    schedule = Schedule(doors, Settings(prune_schedule="0 4 * * *"), lambda: now[0])
    assert schedule.next_at == datetime(2026, 3, 1, 4, 0, tzinfo=UTC)
    now[0] = datetime(2026, 3, 1, 4, 0, 30, tzinfo=UTC)

    async def run() -> None:
        task = asyncio.create_task(schedule.run())
        while schedule.last_at is None:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert schedule.last_at == now[0]
    assert schedule.next_at == datetime(2026, 3, 2, 4, 0, tzinfo=UTC)
    assert schedule.do_it() == ["web-app"]
    doors.close()


def test_a_port_in_use_is_an_error_before_any_address_is_told(server: Server) -> None:
    told: list[str] = []
    options = ServeOptions(home=str(server.home), port=server.port)
    with pytest.raises(kept.InvalidInput, match=f"cannot listen on 127.0.0.1, port {server.port}"):
        run(options, say=told.append, open_browser=told.append)
    assert told == []


def test_the_sample_data_fills_every_view(tmp_path: Path) -> None:
    folder = demo.fill(tmp_path)
    with kept.open(project=folder, home=tmp_path / "kept") as memory:
        assert len(memory.list(limit=100)) >= 20
        assert {one.reasons[0] for one in memory.reviews.list()} >= {"conflict", "duplicate", "candidate"}
        assert all(memory.look().receipts(one.name, limit=9) for one in memory.sessions())
        assert memory.tasks()
        assert memory.files.items()
        days = memory.status()["spaces"][0]["days"]
        assert sum(day.get("recalled", 0) for day in days.values()) > 10
        assert {name.partition(":")[0] for day in days.values() for name in day} == {"recalled", "refused", "redacted"}


def test_the_document_of_the_interface_is_the_one_that_was_agreed(tmp_path: Path) -> None:
    """After a change on purpose: `python -m tests.http.test_beside` writes it anew."""
    assert document(tmp_path) == json.loads(GOLDEN.read_text("utf-8")), "the interface has changed"


def document(home: Path) -> object:
    guard = make_app(ServeOptions(home=str(home)), Keys(home, KEY))
    made = guard._app.openapi()  # type: ignore[attr-defined]
    made["info"]["version"] = "0"
    return json.loads(json.dumps(made))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as home:
        GOLDEN.write_text(json.dumps(document(Path(home)), indent=1, ensure_ascii=False) + "\n", "utf-8")


@pytest.mark.parametrize(
    "view", ["timeline?before=", "knowledge?after=", "sessions?session=x&after=", "sessions?page="]
)
@pytest.mark.parametrize("number", [2**53, 2**63 - 1, 2**63, 10**20, 10**300])
def test_no_number_in_an_address_is_too_large_for_an_answer(server: Server, view: str, number: int) -> None:
    assert server.ask("GET", f"/p/here/{view}{number}").status < 500


def test_figures_of_many_projects_close_none_and_pass_over_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three", "four"):
        (tmp_path / name / ".git").mkdir(parents=True)
        with kept.open(project=tmp_path / name, home=tmp_path / "home") as memory:
            memory.remember(f"The project {name} deploys on Fridays.")
    monkeypatch.setattr("kept.entrypoints.http.doors.MOST_OPEN", 2)
    doors, owner, other = Doors(str(tmp_path / "home"), None), Key(name="user", is_owner=True), Key(name="ben")
    used = doors.memory("one", owner)
    projects = {one.name: one for one in doors.projects(other)}
    for file in (tmp_path / "home" / "projects" / projects["two"].folder).glob("kept.db*"):
        file.write_bytes(b"damaged" * 1000)
    found = {name: doors.glance(one, other) for name, one in projects.items()}
    assert [name for name, status in found.items() if status is None] == ["two"]
    assert "Fridays" in used.list()[0].content, "still open"
    doors.close()


def test_a_token_learns_no_path_of_the_home(tmp_path: Path) -> None:
    """Neither in the status nor on the page of its health, nor in the error of a damaged store."""
    with serving(tmp_path) as server:
        secret = Keys(server.home).create("anna", role="project", projects=["web-app"])
        paths = ("/api/v1/projects/here/status", "/p/here/health?doctor=1", "/api/v1/projects/here/memories")
        assert str(server.home).encode() in server.ask("GET", paths[0]).body, "the owner sees it"
        assert str(server.home).encode() not in b"".join(server.ask("GET", one, key=secret).body for one in paths)
        for file in (server.home / "projects").glob("*/kept.db*"):
            file.write_bytes(b"damaged" * 1000)
        answers = [server.ask("GET", one, key=secret) for one in paths]
        assert max(one.status for one in answers) >= 500
        assert str(server.home).encode() not in b"".join(one.body for one in answers)
