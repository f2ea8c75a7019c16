"""The memory tool answers as the SDK's own, keeps its files in the project, and its lines are memories."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("anthropic", reason="needs the Anthropic SDK: `make test-adapters ADAPTERS=anthropic`")
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

import kept
from kept.adapters.anthropic import AsyncKeptMemoryTool, KeptMemoryTool
from tests.adapters.asynchronous import at_once, cancel_when, slow_down, ticks_during
from tests.adapters.model_requests import request_for
from tests.adapters.page import run_page

PATHS = st.sampled_from(["/memories/a.md", "/memories/b.md", "/memories/sub/c.md", "/memories/sub", "/memories/none"])
TEXTS = st.sampled_from(
    ["", "one", "one\ntwo\nthree\n", "- We deploy on Tuesdays\n- The port is 8080", "ä\r\nb\n", "x\n\n"]
)
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS.filter(lambda p: "." in p), "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS.filter(lambda p: "." in p)},
        optional={"view_range": st.tuples(st.integers(1, 4), st.integers(-1, 4)).map(list)},
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": PATHS,
            "old_str": st.sampled_from(["one", "t", "absent", "- We"]),
            "new_str": st.sampled_from(["", "uno", "two\nlines"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": PATHS,
            "insert_line": st.integers(-1, 5),
            "insert_text": st.sampled_from(["new", "new\n", "two\nlines"]),
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


def answer(tool: Any, command: dict[str, Any]) -> str:
    try:
        return str(tool.call(command))
    except ToolError as error:
        return f"error: {error.content}"


@settings(deadline=None, max_examples=60)
@given(st.lists(COMMANDS, max_size=12))
def test_it_answers_word_for_word_as_the_tool_of_the_sdk(commands: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, kept.open(":memory:") as memory:
        ours, theirs = KeptMemoryTool(memory), BetaLocalFilesystemMemoryTool(folder)
        for command in commands:
            if _is_about_an_empty_folder(Path(folder), command):
                continue
            try:
                expected = answer(theirs, command)
            except NotADirectoryError:  # a file below a file: the SDK's own tool does not expect it
                assert answer(ours, command).endswith("already exists")
                return
            assert answer(ours, command) == expected


def _is_about_an_empty_folder(folder: Path, command: dict[str, Any]) -> bool:
    """A folder is there for us while a file is in it; a file system also has empty ones."""
    sub = folder / "memories" / "sub"
    return (sub.is_dir() and not any(sub.iterdir())) or command.get("new_path", "").startswith(
        f"{command.get('old_path')}/"
    )


def test_a_listing_has_files_and_folders_two_levels_deep() -> None:
    tool = KeptMemoryTool(kept.open(":memory:"))
    for path in ("/memories/a.md", "/memories/p/b.md", "/memories/p/q/r/c.md", "/memories/.hidden"):
        tool.call({"command": "create", "path": path, "file_text": "x" * 1536})
    assert tool.call({"command": "view", "path": "/memories"}).splitlines() == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:",
        "6K\t/memories",
        "1.5K\t/memories/a.md",
        "3K\t/memories/p/",
        "1.5K\t/memories/p/b.md",
        "1.5K\t/memories/p/q/",
    ]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/memories/../etc", "/memories/../../x", "/memoriesx/a", "memories/a", ""]
)
def test_no_path_leads_out_of_the_memories(path: str) -> None:
    tool = KeptMemoryTool(kept.open(":memory:"))
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "rename", "old_path": path, "new_path": "/memories/b"},
        {"command": "delete", "path": path},
    ):
        with pytest.raises(ToolError, match="Path"):
            tool.call(command)


def test_each_line_that_states_something_is_a_memory_and_goes_with_its_line() -> None:
    with kept.open(":memory:") as memory:
        tool = KeptMemoryTool(memory)
        lines = "# Project\n\n- We deploy on Tuesdays\n- The API listens on port 8080\n\n```\nnot this line here\n```\n"
        tool.call({"command": "create", "path": "/memories/notes.md", "file_text": lines})
        assert {one.content for one in memory.list()} == {"We deploy on Tuesdays", "The API listens on port 8080"}
        tool.call({"command": "str_replace", "path": "/memories/notes.md", "old_str": "Tuesdays", "new_str": "Fridays"})
        assert {one.content for one in memory.list()} == {"We deploy on Fridays", "The API listens on port 8080"}
        tool.call({"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/old/notes.md"})
        assert memory.recall("deploy day").hits[0].memory.content == "We deploy on Fridays"
        tool.call({"command": "delete", "path": "/memories/old"})
        assert memory.list() == []
        memory.undo()
        assert "We deploy on Fridays" in tool.call({"command": "view", "path": "/memories/old/notes.md"})


def create(tool: AsyncKeptMemoryTool, number: int = 0) -> Any:
    return lambda: tool.call({"command": "create", "path": f"/memories/{number}.md", "file_text": f"file {number}"})


def test_asynchronous_commands_leave_the_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = AsyncKeptMemoryTool(kept.open(":memory:"))
    slow_down(monkeypatch)
    assert ticks_during(create(tool)) > 10


def test_a_cancelled_command_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = AsyncKeptMemoryTool(location=tmp_path / "memory.db")
    cancel_when(slow_down(monkeypatch), create(tool))
    assert "file 0" in KeptMemoryTool(tool.memory).call({"command": "view", "path": "/memories/0.md"})


def test_fifty_edits_at_once_lose_none(tmp_path: Path) -> None:
    tool = AsyncKeptMemoryTool(location=tmp_path / "memory.db")
    at_once([create(tool)])
    insert = {"command": "insert", "path": "/memories/0.md", "insert_line": 0}
    at_once([lambda n=n: tool.call({**insert, "insert_text": f"line {n} of fifty"}) for n in range(50)])
    seen = KeptMemoryTool(tool.memory).call({"command": "view", "path": "/memories/0.md"})
    assert all(f"\tline {n} of fifty\n" in seen for n in range(50))


AGENT = """
import json, sys
import anthropic
import httpx2 as httpx
from kept.adapters.anthropic import KeptMemoryTool

script = json.loads(sys.argv[2])
asked = []

def model(request):
    asked.append(json.loads(request.content))
    blocks = script[len(asked) - 1]
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": blocks,
            "stop_reason": "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}
    return httpx.Response(200, json=body)

client = anthropic.Anthropic(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(model)))
runner = client.beta.messages.tool_runner(
    model="scripted", max_tokens=100, messages=[{"role": "user", "content": "go on"}],
    tools=[KeptMemoryTool(location=sys.argv[1])],
)
runner.until_done()
print(json.dumps(asked[-1]["messages"][-1]))
"""


def test_claude_stores_in_one_process_and_reads_in_the_next(tmp_path: Path) -> None:
    def run(command: dict[str, Any]) -> str:
        use = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": command}
        script = json.dumps([[use], [{"type": "text", "text": "Done."}]])
        done = subprocess.run(
            [sys.executable, "-c", AGENT, str(tmp_path / "memory.db"), script],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    stored = run({"command": "create", "path": "/memories/days.md", "file_text": "- The deploy day is Tuesday\n"})
    assert "File created successfully" in stored
    assert "The deploy day is Tuesday" in run({"command": "view", "path": "/memories/days.md"})


def test_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("anthropic", tmp_path, monkeypatch)


def test_a_request_for_messages_has_the_types_of_the_sdk() -> None:
    types = pytest.importorskip("anthropic.types")
    pydantic = pytest.importorskip("pydantic")
    request = request_for("anthropic")
    assert "The tests need the database" in request["system"]
    pydantic.TypeAdapter(list[types.MessageParam]).validate_python(request["messages"])
    block = pydantic.TypeAdapter(types.ContentBlockParam)  # those of a message are checked only as they are read
    for message in request["messages"]:
        assert [block.validate_python(one)["type"] for one in message["content"]]
    assert [message["role"] for message in request["messages"]][:2] == ["user", "assistant"]
