"""Transcripts of other programs: whole, once, in order, and without their secrets."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept
from kept.exchange.records import OUR_MARK
from kept.exchange.transcripts import PARSERS, brain, claude_code, codex, copilot, gemini, openclaw, opencode, qwen
from kept.model import CONTEXT
from kept.recall.briefing.render import NOTE
from tests.builders import FakeClock

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def lines(*records: dict[str, Any]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def claude(kind: str, uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "0a1b",
        "cwd": "/src/app",
        "timestamp": "2026-02-10T21:11:52.438Z",
        "message": {"role": kind, "content": content},
        **more,
    }


CLAUDE = (
    {"type": "file-history-snapshot", "messageId": "x"},
    claude("user", "u1", "Fix the login"),
    claude(
        "assistant",
        "a1",
        [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}},
        ],
        parentUuid="u1",
    ),
    claude("user", "u2", [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "code"}]}]),
    claude("user", "u3", "not this", isMeta=True),
    claude("user", "u4", "What happened so far", isCompactSummary=True),
    claude("assistant", "a2", [{"type": "text", "text": "Done."}], parentUuid="u2"),
    {"type": "from-the-future", "payload": [1, 2]},
)


def test_claude_code() -> None:
    parsed = claude_code([*lines(*CLAUDE), b'{"type": "user", "uu'])
    assert (parsed.session, parsed.cwd, parsed.skipped) == ("0a1b", "/src/app", 1)
    assert [(m.id, m.role, m.content) for m in parsed.messages] == [
        ("u1", "user", "Fix the login"),
        ("a1", "assistant", "Looking."),
        ("t1", "tool_call", ""),
        ("t1", "tool_result", "code"),
        ("u3", "tool_result", "not this"),  # put in by the program: a quotation
        ("u4", "summary", "What happened so far"),
        ("a2", "assistant", "Done."),
    ]
    assert parsed.messages[2].input == {"path": "a.py"}
    assert parsed.messages[0].at is not None
    assert parsed.messages[0].at.utcoffset() is not None


def test_codex() -> None:
    item = "response_item"
    parsed = codex(
        lines(
            {"type": "session_meta", "payload": {"id": "c1", "cwd": "/x", "forked_from_id": "c0"}},
            {"type": "turn_context", "payload": {}},
            {
                "type": item,
                "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            },
            {
                "type": item,
                "payload": {"type": "function_call", "call_id": "k", "name": "shell", "arguments": '{"cmd": "ls"}'},
            },
            {"type": item, "payload": {"type": "function_call_output", "call_id": "k", "output": "a b"}},
            {"type": "compacted", "payload": {"message": "So far."}},
        )
    )
    assert (parsed.session, parsed.parent, parsed.cwd) == ("c1", "c0", "/x")
    assert [(m.role, m.content) for m in parsed.messages] == [
        ("user", "Hi"),
        ("tool_call", ""),
        ("tool_result", "a b"),
        ("summary", "So far."),
    ]
    assert parsed.messages[1].input == {"cmd": "ls"}


def test_what_codex_says_in_the_user_s_name_is_not_the_user_s() -> None:
    rules = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>"
    where = "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"

    def spoken(role: str, *texts: str, **more: Any) -> dict[str, Any]:
        parts = [{"type": "input_text", "text": text} for text in texts]
        return {"type": "response_item", "payload": {"type": "message", "role": role, "content": parts}, **more}

    parsed = codex(
        lines(
            {"type": "session_meta", "payload": {"id": "c1", "cwd": "/x"}},
            spoken("user", rules, where),
            spoken("user", where, "Never use tabs in <skill> files."),
            spoken("assistant", "So far.", metadata={"compaction_output": True}),
            {"type": "compacted", "payload": {"message": "So far."}},
        )
    )
    assert [(m.role, m.name, m.content) for m in parsed.messages] == [
        ("tool_result", CONTEXT, f"{rules}\n{where}"),
        ("user", None, "Never use tabs in <skill> files."),
        ("tool_result", CONTEXT, where),
        ("summary", None, "So far."),
    ]


def test_gemini() -> None:
    parsed = gemini(
        lines(
            {"sessionId": "g1", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"},
            {"id": "1", "type": "user", "content": "Hi", "timestamp": "2026-01-01T00:00:00Z"},
            {"id": "2", "type": "gemini", "content": "Wrong way", "toolCalls": [{"id": "k", "name": "ls", "args": {}}]},
            {"$rewindTo": "1"},
            {"id": "3", "type": "gemini", "content": "Hello"},
            {"id": "4", "type": "info", "content": "noise"},
        )
    )
    assert parsed.session == "g1"
    assert [(m.id, m.role, m.content) for m in parsed.messages] == [("1", "user", "Hi"), ("3", "assistant", "Hello")]


def test_openclaw() -> None:
    parsed = openclaw(
        lines(
            {"type": "session", "id": "o1", "cwd": "/x", "parentSession": "o0"},
            {"type": "message", "id": "1", "message": {"role": "user", "content": "Hi"}},
            {
                "type": "message",
                "id": "2",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "Yo"}]},
            },
            {"type": "compaction", "id": "3", "summary": "So far.", "firstKeptEntryId": "2"},
        )
    )
    assert (parsed.session, parsed.parent) == ("o1", "o0")
    assert [(m.role, m.content) for m in parsed.messages] == [
        ("user", "Hi"),
        ("assistant", "Yo"),
        ("summary", "So far."),
    ]


def test_brain() -> None:
    """B3: the form that we write ourselves."""
    parsed = brain(
        lines(
            {"id": "msg_001", "role": "user", "content": "Hello", "timestamp": "2026-02-05T10:00:00Z"},
            {"id": "tool_001", "role": "tool_call", "name": "read", "input": {"path": "README.md"}},
            {"id": "tool_001", "role": "tool_result", "content": "# Project"},
            {"role": "wizard", "content": "?"},
        )
    )
    assert [m.role for m in parsed.messages] == ["user", "tool_call", "tool_result"]
    assert parsed.skipped == 1


def test_a_failed_tool_call_is_imported_as_an_error() -> None:
    """C31: a rejected commit or a failing hook is told from a success in every format."""
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "hook rejected", "is_error": True}
    item = {"type": "function_call_output", "call_id": "k"}
    outputs = ("Exit code: 1\nOutput:\nno", "Exit code: 0\nOutput:\nyes", '{"output":"no","metadata":{"exit_code":2}}')
    claw = {"type": "message", "id": "1", "message": {"role": "toolResult", "content": "no", "isError": True}}
    call = {"id": "k", "name": "sh", "args": {}, "result": "no", "status": "error"}
    parsed = [
        *claude_code(lines(claude("user", "u1", [result]))).messages,
        *codex(
            lines(*({"type": "response_item", "payload": item | {"output": output}} for output in outputs))
        ).messages,
        *openclaw(lines(claw)).messages,
        *gemini(lines({"id": "1", "type": "gemini", "toolCalls": [call]})).messages[1:],
        *brain(lines({"id": "1", "role": "tool_result", "content": "no", "is_error": True})).messages,
    ]
    assert [message.is_error for message in parsed] == [True, True, False, True, True, True, True]


@pytest.mark.parametrize(
    ("report", "output", "has_failed"),
    [
        ("<untrusted_context>\nOutput: boom\nat a.py\nExit Code: 3\n</untrusted_context>", "boom\nat a.py", True),
        ("Output: (empty)\nProcess Group PGID: 12", "", False),
        ("Command: x\nDirectory: (root)\nOutput: a\nError: gone\nExit Code: 1\nSignal: (none)", "a\ngone", True),
        ("Output: fine\nError: (none)\nExit Code: 0\nSignal: (none)", "fine", False),
        ("Output: a line of a log, and no report", "Output: a line of a log, and no report", False),
        ("all is well", "all is well", False),
    ],
)
def test_the_report_of_a_command_is_read_for_its_output_and_its_exit_code(
    report: str, output: str, has_failed: bool
) -> None:
    wrapped = [{"functionResponse": {"id": "c", "response": {"output": report}}}]
    [_, result] = gemini(
        lines({"id": "1", "type": "gemini", "content": "", "toolCalls": [{"id": "c", "name": "sh", "result": wrapped}]})
    ).messages
    assert (result.content, result.is_error) == (output, has_failed)


def test_an_imported_error_is_still_one_when_it_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    record = {"id": "1", "role": "tool_result", "content": "no", "is_error": True}
    file.write_bytes(lines(record)[0] + b"\n")
    with kept.open(home=tmp_path / "home", project="p", clock=FakeClock(), settings=kept.Settings()) as memory:
        memory.import_transcripts("brain", file)
        assert [message.is_error for message in memory.session("s").messages()] == [True]
        (mirror,) = (tmp_path / "home").rglob("sessions/s.jsonl")
        assert json.loads(mirror.read_text())["is_error"] is True


@given(st.lists(st.binary(max_size=80) | st.text(max_size=80).map(str.encode)), st.sampled_from(sorted(PARSERS)))
@settings(deadline=None)
def test_no_file_can_break_a_parser(data: list[bytes], program: str) -> None:
    PARSERS[program](data, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("type", "uuid", "id", "message", "content", "payload", "role", "timestamp", "toolCalls", "input", "summary")


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON), max_size=4), st.sampled_from(sorted(PARSERS)))
@settings(deadline=None)
def test_no_strange_record_can_break_a_parser(records: list[dict[str, Any]], program: str) -> None:
    PARSERS[program](lines(*records), 0)


def test_an_import_is_whole_and_happens_once(tmp_path: Path) -> None:
    """C31: a torn file is taken up to the tear and continued later; sub-agents have sessions of their own."""
    folder = tmp_path / "project"
    (folder / "0a1b" / "subagents").mkdir(parents=True)
    records = [claude("user" if n % 3 else "assistant", f"m{n}", f"Line {n} with {SECRET} in it") for n in range(120)]
    whole = b"".join(line + b"\n" for line in lines(*records))
    (folder / "0a1b.jsonl").write_bytes(whole[: len(whole) // 2])
    (folder / "0a1b" / "subagents" / "agent-x.jsonl").write_bytes(whole[: len(whole) // 4])
    with kept.open(home=tmp_path / "home", project="p", clock=FakeClock(), settings=kept.Settings()) as memory:
        first = memory.import_transcripts("claude-code", folder)
        assert {one.session for one in first} == {"0a1b", "0a1b.agent-x"}
        (folder / "0a1b.jsonl").write_bytes(whole)
        second = memory.import_transcripts("claude-code", folder)
        assert sum(one.added for one in memory.import_transcripts("claude-code", folder)) == 0
        by_session = {one.session: one.added for one in first}
        assert by_session["0a1b"] + sum(one.added for one in second if one.session == "0a1b") == 120
        messages = memory.session("0a1b").messages()
        assert [message.id for message in messages] == [f"m{n}" for n in range(120)]
        assert {session.name: session.parent for session in memory.sessions()} == {"0a1b": None, "0a1b.agent-x": "0a1b"}
    for path in (tmp_path / "home").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


ODD: list[dict[str, Any]] = [
    claude("user", "odd", "Said in the first year", timestamp="0001-01-01T00:00:00+14:00"),
    claude("user", "odd", deep(900)),
    claude("assistant", "odd", [{"type": "tool_use", "id": "t", "name": "x", "input": {"k": deep(900)}}]),
    claude("assistant", "odd", [{"type": "tool_use", "id": "t", "name": "x" * 600, "input": {}}]),
    claude("assistant", "odd", [{"type": "tool_use", "id": "t", "name": "x", "input": {"k": ["v" * 1_000_001]}}]),
    claude("user", "odd" * 300, "An id that is too long"),
]


@pytest.mark.parametrize("odd", ODD, ids=["year 1", "deep", "deep input", "long name", "large input", "long id"])
def test_an_odd_record_is_skipped_and_counted_and_the_import_goes_on(tmp_path: Path, odd: dict[str, Any]) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    for name in ("a", "b"):
        records = [claude("user", "u1", "Before", sessionId=name), odd | {"sessionId": name}]
        records.append(claude("user", "u2", "After", sessionId=name))
        (folder / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines(*records)))
    with kept.open(home=tmp_path / "home", project="p", clock=FakeClock(), settings=kept.Settings()) as memory:
        done = memory.import_transcripts("claude-code", folder)
        assert [(one.added, one.skipped) for one in done] == [(2, 1), (2, 1)]
        assert [message.content for message in memory.session("b").messages()] == ["Before", "After"]
        assert [one.added for one in memory.import_transcripts("claude-code", folder)] == [0, 0]


@pytest.mark.parametrize("name", ["../../etc", "a/b", "x" * 200, "", ".hidden", "ü", "a..b"])
def test_a_session_id_that_is_no_name_does_not_stop_the_import(tmp_path: Path, name: str) -> None:
    (tmp_path / "c..ä d.jsonl").write_bytes(lines(claude("user", "u1", "Hello", sessionId=name))[0] + b"\n")
    with kept.open(home=tmp_path / "home", project="p", clock=FakeClock(), settings=kept.Settings()) as memory:
        (done,) = memory.import_transcripts("claude-code", tmp_path / "c..ä d.jsonl")
        assert (done.session, done.added) == ("c.--d", 1)


def test_an_unknown_program_is_refused(tmp_path: Path) -> None:
    with (
        kept.open(":memory:", settings=kept.Settings()) as memory,
        pytest.raises(kept.InvalidInput, match="claude-code"),
    ):
        memory.import_transcripts("clippy", tmp_path)


def test_qwen() -> None:
    """Records like Claude's with parts like Gemini's; the text of a hook is a part of its own, and is left out."""

    def record(kind: str, uuid: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        about = {"type": kind, "uuid": uuid, "sessionId": "q1", "cwd": "/x", "timestamp": "2026-02-10T21:11:52Z"}
        return {**about, "message": {"parts": list(parts)}, **more}

    hooked = {"text": "<qwen:user-prompt-submit-context>\nKept says so\n</qwen:user-prompt-submit-context>"}
    call = {"functionCall": {"id": "c1", "name": "sh", "args": {"cmd": "ls"}}}
    answer = {"functionResponse": {"id": "c1", "name": "sh", "response": {"output": "no such file"}}}
    summary = {"role": "user", "parts": [{"text": "- No files so far."}]}
    parsed = qwen(
        lines(
            record("user", "u1", {"text": "List the files"}, hooked, provenance="real_user"),
            record("system", "s1"),
            record("assistant", "a1", {"text": "hm", "thought": True}, call),
            record("tool_result", "t1", answer, toolCallResult={"status": "error"}),
            record("assistant", "a2", {"text": "There are none."}),
            record("system", "s2", subtype="chat_compression", systemPayload={"compressedHistory": [summary, {}]}),
            record("system", "s3", subtype="chat_compression", systemPayload={"compressedHistory": [7]}),
        ),
        0,
    )
    assert (parsed.session, parsed.cwd) == ("q1", "/x")
    assert [(m.role, m.content, m.is_error) for m in parsed.messages] == [
        ("user", "List the files", False),
        ("tool_call", "", False),
        ("tool_result", "no such file", True),
        ("assistant", "There are none.", False),
        ("summary", "- No files so far.", False),
    ]


def test_copilot() -> None:
    def event(kind: str, number: int, **data: Any) -> dict[str, Any]:
        return {"type": kind, "id": f"e{number}", "timestamp": "2026-02-10T21:11:52Z", "data": data}

    result = {"content": 'kept\n\nTool "sh" succeeded. Additional guidance from postToolUse hooks:\nKept says so'}
    call = {"toolCallId": "c1", "name": "sh", "arguments": {"cmd": "ls"}}
    parsed = copilot(
        lines(
            event("session.start", 1, sessionId="p1", context={"cwd": "/x"}),
            event(
                "user.message",
                2,
                content="List the files",
                transformedContent="<system_reminder>Kept</system_reminder>",
            ),
            event("assistant.message", 3, content="", toolRequests=[call]),
            event("tool.execution_complete", 4, toolCallId="c1", success=False, result=result),
            event("session.compaction_complete", 5, summaryContent="So far."),
        ),
        0,
    )
    assert (parsed.session, parsed.cwd) == ("p1", "/x")
    assert [(m.role, m.content, m.is_error) for m in parsed.messages] == [
        ("user", "List the files", False),
        ("tool_result", "<system_reminder>Kept</system_reminder>", False),
        ("tool_call", "", False),
        ("tool_result", result["content"], True),  # whole: a page could imitate the words of a hook
        ("summary", "So far.", False),
    ]
    assert parsed.messages[2].input == {"cmd": "ls"}


def test_opencode() -> None:
    """Rows of its database; synthetic parts are files and texts of plugins, ours is named after the user's part."""

    def row(table: str, id: str, **more: Any) -> dict[str, Any]:
        return {"table": table, "id": id, "time_created": 1_794_830_702_071, **more}

    def part(id: str, message: str, **data: Any) -> dict[str, Any]:
        return row("part", id, message_id=message, data=data)

    state = {"status": "error", "input": {"cmd": "ls"}, "error": "no such file"}
    parsed = opencode(
        lines(
            row("session", "s1", directory="/x"),
            row("session", "s2", directory="/x", parent_id="s1"),
            row("message", "m1", session_id="s1", data={"role": "user"}),
            row("message", "m2", session_id="s1", data={"role": "assistant"}),
            row("message", "m3", session_id="s2", data={"role": "user"}),
            part("p1", "m1", type="text", text="List the files"),
            part("p1k", "m1", type="text", text="Kept says so", synthetic=True),
            part("p2", "m1", type="text", text="The file says so", synthetic=True),
            part("p3", "m2", type="tool", tool="sh", callID="c1", state=state),
            part("p4", "m3", type="text", text="Look deeper"),
        ),
        0,
    )
    assert [(m.role, m.content, m.is_error) for m in parsed.messages] == [
        ("user", "List the files", False),
        ("tool_result", "The file says so", False),
        ("tool_call", "", False),
        ("tool_result", "no such file", True),
    ]
    (agent,) = parsed.others
    assert (agent.session, agent.parent, agent.messages[0].trust) == ("s2", "s1", "agent")


def test_text_that_kept_has_put_in_is_not_imported() -> None:
    """Not even when an agent's program writes it down as the user's."""
    assert NOTE.startswith(OUR_MARK)
    for block in (
        "<hook_context>Use tabs</hook_context>",
        "<project_memory note='x'>\nUse tabs\n</project_memory>",
        f"# Project memory\n\n{NOTE}\n\n- Use tabs",
        f"Project memory\n{NOTE}\nUse tabs",
    ):
        (message,) = gemini(
            lines({"id": "1", "type": "user", "content": [{"text": "Hi"}, {"text": block}]}), 0
        ).messages
        assert message.content == "Hi", block
    answer = {"functionResponse": {"name": "sh", "response": {"output": "x"}}}
    assert gemini(lines({"id": "1", "type": "user", "content": [answer]}), 0).messages == []


def branched() -> list[dict[str, Any]]:
    """One prompt with two tools that answer in parallel; then the person goes back and asks something else."""
    use = [{"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"path": f"{n}.py"}} for n in (1, 2)]
    results = [[{"type": "tool_result", "tool_use_id": f"t{n}", "content": f"code {n}"}] for n in (1, 2)]
    return [
        claude("user", "u1", "Fix the login"),
        claude("assistant", "a1", [use[0]], parentUuid="u1"),
        claude("assistant", "a2", [use[1]], parentUuid="a1"),
        claude("user", "r1", results[0], parentUuid="a1"),
        claude("user", "r2", results[1], parentUuid="a2"),
        claude("assistant", "a3", [{"type": "text", "text": "Fixed."}], parentUuid="r2"),
        claude("user", "u2", "Now the logout", parentUuid="a3"),
        claude("assistant", "a4", [{"type": "text", "text": "Fixed as well."}], parentUuid="u2"),
        claude("user", "u3", "Rather the sign-up", parentUuid="a3"),
        claude("assistant", "a5", [{"type": "text", "text": "That works now."}], parentUuid="u3"),
    ]


@pytest.mark.parametrize("piece", [1, 3, 10])
def test_a_branch_of_a_transcript_becomes_a_fork_however_it_is_imported(tmp_path: Path, piece: int) -> None:
    """C25: shared messages are kept once; importing a growing file ends in the same sessions as a whole one."""
    file, records = tmp_path / "0a1b.jsonl", branched()
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings()) as memory:
        for end in range(piece, len(records) + piece, piece):
            file.write_bytes(b"".join(line + b"\n" for line in lines(*records[:end])))
            memory.import_transcripts("claude-code", file)
        told = {s.name: [m.content for m in memory.session(s.name).messages() if m.content] for s in memory.sessions()}
        before = ["Fix the login", "code 1", "code 2", "Fixed."]
        assert told == {
            "0a1b": [*before, "Now the logout", "Fixed as well."],
            "0a1b.u3": [*before, "Rather the sign-up", "That works now."],
        }
        assert {s.name: s.parent for s in memory.sessions()} == {"0a1b": None, "0a1b.u3": "0a1b"}
        found = [hit.memory.content for hit in memory.recall("login", scope="sessions", limit=20)]
        assert found.count("Fix the login") == 1
        assert sum(one.added for one in memory.import_transcripts("claude-code", file)) == 0


def test_lines_without_an_id_are_told_apart_when_a_file_grows(tmp_path: Path) -> None:
    """Codex names few of its messages; the number of a line in the whole file stands for the id."""
    file = tmp_path / "rollout.jsonl"
    said = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"Line {n}"}]} for n in range(6)
    ]
    meta = {"type": "session_meta", "payload": {"id": "c1", "cwd": "/x"}}
    whole = lines(meta, *({"type": "response_item", "payload": payload} for payload in said))
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings()) as memory:
        for end in (3, 5, 7):
            file.write_bytes(b"".join(line + b"\n" for line in whole[:end]))
            memory.import_transcripts("codex", file)
        assert [m.content for m in memory.session("c1").messages()] == [f"Line {n}" for n in range(6)]
        (session,) = memory.sessions()
        assert session.cwd == "/x"


def codex_file(path: Path, id: str, said: list[str], *, noise: int = 0, forked_from: str | None = None) -> Path:
    """A rollout; a fork repeats the meta and the messages of its parent, but not what else stood between them."""
    meta = {"type": "session_meta", "payload": {"id": id, "cwd": "/x", "forked_from_id": forked_from}}
    records = [meta] if forked_from is None else [meta, {"type": "session_meta", "payload": {"id": forked_from}}]
    for text in said:
        records += [{"type": "event_msg", "payload": {"type": "token_count"}}] * noise
        payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        records.append({"type": "response_item", "payload": payload, "timestamp": "2026-02-10T21:11:52.438Z"})
    path.write_bytes(b"".join(line + b"\n" for line in lines(*records)))
    return path


def test_the_file_of_a_fork_shares_the_messages_that_it_repeats(tmp_path: Path) -> None:
    """C25: Codex' `forked_from_id`; the lines of both files are numbered differently."""
    before = [f"Before the fork {n} with {SECRET}" for n in range(4)]
    codex_file(tmp_path / "a.jsonl", "parent", [*before, "Went on here"], noise=3)
    codex_file(
        tmp_path / "b.jsonl", "child", [*before, *(f"Went on there {n}" for n in range(9))], forked_from="parent"
    )
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings()) as memory:
        memory.import_transcripts("codex", tmp_path)
        told = {s.name: [m.content for m in memory.session(s.name).messages()] for s in memory.sessions()}
        assert len(told["parent"]) == 5
        assert told["child"][:4] == told["parent"][:4]
        assert told["child"][4:] == [f"Went on there {n}" for n in range(9)]
        (child,) = [s for s in memory.sessions() if s.name == "child"]
        assert (child.parent, child.shared) == ("parent", 4)
        (tmp_path / "b.jsonl").rename(tmp_path / "moved.jsonl")  # its mark is lost: it is read again from the start
        assert sum(one.added for one in memory.import_transcripts("codex", tmp_path)) == 0
        assert len(memory.session("child").messages()) == 13


def test_a_fork_that_names_no_parent_is_known_by_what_it_repeats(tmp_path: Path) -> None:
    """C25: `claude --fork-session` copies the records into a file of another session."""
    shared = [claude("user", "u1", "Fix the login"), claude("assistant", "a1", "Fixed.", parentUuid="u1")]
    for name, more in (("0a1b", "Now the logout"), ("2c3d", "Rather the sign-up")):
        own = claude("user", f"u-{name}", more, parentUuid="a1", timestamp="2026-02-10T22:00:00Z")
        records = [record | {"sessionId": name} for record in (*shared, own)]
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines(*records)))
    with kept.open(tmp_path / "m.db", clock=FakeClock(), settings=kept.Settings()) as memory:
        memory.import_transcripts("claude-code", tmp_path)
        assert {s.name: (s.parent, s.shared) for s in memory.sessions()} == {"0a1b": (None, 0), "2c3d": ("0a1b", 2)}
        told = [message.content for message in memory.session("2c3d").messages()]
        assert told == ["Fix the login", "Fixed.", "Rather the sign-up"]
        found = [hit.message.content for hit in memory.recall("login", scope="sessions", limit=9) if hit.message]
        assert found.count("Fix the login") == 1
