"""The programs in examples/ run as they are, and type checkers accept them."""

import runpy
from pathlib import Path

import pytest
from examples.service import make_app
from starlette.testclient import TestClient

EXAMPLES = Path(__file__).parent.parent / "examples"


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_a_chat_loop_is_told_what_is_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    reply, is_finished = printed("chat_loop.py", capsys)
    assert "The user is allergic to nuts" in reply
    assert is_finished == "True"


def test_a_program_for_mem0_runs_with_one_line_changed(capsys: pytest.CaptureFixture[str]) -> None:
    found, events, left = printed("from_mem0.py", capsys)
    assert found == "I am allergic to nuts."
    assert events == "['ADD', 'UPDATE']"
    assert left == "0"


def test_a_service_keeps_a_memory_for_each_user(tmp_path: Path) -> None:
    with TestClient(make_app(home=tmp_path)) as client:
        said = {"text": "I prefer an aisle seat on night trains", "tags": ["travel"]}
        kept = client.post("/users/Ab3/memories", json=said).json()
        assert kept == {"outcome": "stored", "ref": "1"}
        assert client.get("/users/Ab3/memories?query=aisle seat").json() == [said["text"]]
        assert client.get("/users/aB3/memories?query=aisle seat").json() == []
        assert client.delete("/users/Ab3/memories/1").status_code == 200
        assert client.delete("/users/Ab3/memories/99").status_code == 404
        assert client.post("/users/Ab3/memories", json={"text": " "}).status_code == 422
