"""`kept` as a process: exit codes, pipes, encodings, signals, and what it does not import."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kept.entrypoints.cli.catalog import COMMANDS
from tests.cli.shell import PROGRAM, Shell
from tests.folders import posix_only

BROKEN = b"caf\xe9 x"  # Latin-1
HEAVY = ("apsw", "rich", "tomlkit", "ruamel", "Stemmer", "rapidfuzz", "re2", "json", "sqlite3", "asyncio", "email")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["lst"]])
def test_help_version_and_a_typing_error_import_next_to_nothing(shell: Shell, arguments: list[str]) -> None:
    heavy = tuple(name for name in HEAVY if name not in ("email", "json") or arguments != ["--version"])
    program = (
        "import sys; from kept.entrypoints.cli import main\n"
        "try: main()\n"
        f"finally: print([n for n in {heavy!r} if n in sys.modules], [n for n in sys.modules if 'cli.' in n])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        env=shell.process_environment(),
        check=False,
        text=True,
    )
    last = result.stdout.splitlines()[-1]
    assert last.startswith("[] ")
    for module in {entry.module for entry in COMMANDS.values()}:
        assert f"cli.{module}'" not in last


# What one recall from a shell can do without, and what each would cost it at every start.
NOT_FOR_A_RECALL = (
    *("secrets", "hashlib", "platformdirs", "tomllib", "tempfile", "importlib.resources", "difflib", "shlex", "json"),
    *(f"kept.memory.{module}" for module in ("brief", "manage", "reviews", "sessions", "slash", "store", "tasks")),
    *(f"kept.{module}" for module in ("exchange", "recall.messages", "recall.briefing", "upkeep.review")),
    *(f"kept.{module}" for module in ("storage.sqlite.health", "writing.extraction", "writing.pipeline")),
)


def test_a_recall_loads_what_it_needs(shell: Shell) -> None:
    shell.run("remember", "Use Fastify")
    program = (
        "import sys; from kept.entrypoints.cli import main\n"
        "try: main()\n"
        f"finally: print([n for n in {NOT_FOR_A_RECALL!r} if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "recall", "fastify"],
        capture_output=True,
        env=shell.process_environment(),
        check=True,
        text=True,
    )
    assert "Use Fastify" in result.stdout
    assert result.stdout.splitlines()[-1] == "[]"


def test_exit_codes(shell: Shell) -> None:
    assert shell.run("remember", "x").returncode == 0
    assert shell.run("show", "9").returncode == 1
    assert shell.run("shwo", "9").returncode == 2


def test_errors_are_on_standard_error_and_results_on_standard_output(shell: Shell) -> None:
    done = shell.run("remember", "x")
    assert (done.stdout, done.stderr) == (b"Kept: [id:1] (fact).\n", b"")
    failed = shell.run("show", "9")
    assert (failed.stdout, failed.stderr) == (b"", b"There is no memory 9. `kept list` shows what there is.\n")


@posix_only
def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    for number in range(30):
        shell("remember", f"{number} " + "long " * 90)
    for arguments in (["list"], ["list", "--json"], ["history"]):
        listing = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=shell.process_environment(),
        )
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        assert listing.stderr.read() == b""
        assert listing.wait() == 141
        listing.stderr.close()


@posix_only
def test_output_that_cannot_be_written_is_reported_and_the_memory_is_kept(shell: Shell) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, "remember", "x"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=shell.process_environment(),
            check=False,
        )
    assert result.returncode == 1
    assert b"no space left on device" in result.stderr
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr
    assert len(shell.json("list")["memories"]) == 1


@posix_only
def test_without_a_standard_output_it_still_works(shell: Shell) -> None:
    command = f'"{sys.executable}" -c "{PROGRAM}" remember x >&-'
    result = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, env=shell.process_environment(), check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert len(shell.json("list")["memories"]) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252", "utf-16"])
def test_any_encoding_of_the_terminal_is_written_to_without_an_error(shell: Shell, encoding: str) -> None:
    shell("remember", "Grüße an 你好 🎉")
    listed = shell.run("list", PYTHONIOENCODING=encoding)
    assert (listed.returncode, listed.stderr) == (0, b"")
    assert "[id:1] fact: Gr" in listed.stdout.decode(encoding)
    document = json.loads(shell.run("list", "--json", PYTHONIOENCODING=encoding).stdout.decode(encoding))
    assert document["memories"][0]["content"] == "Grüße an 你好 🎉"


@posix_only
def test_bytes_that_are_no_text_are_refused(shell: Shell) -> None:
    result = shell.run("remember", b"caf\xe9", PYTHONUTF8="1")
    assert result.returncode == 1
    assert b"The text is not UTF-8: character 4 is the byte 0xe9." in result.stderr
    result = shell.run("remember", "-", input=b"caf\xe9")
    assert b"byte 4 is 0xe9" in result.stderr
    assert shell.json("list")["memories"] == []


def test_text_from_a_pipe_is_kept_byte_for_byte(shell: Shell) -> None:
    text = "  Grüße\t你好 \U0001f389\r\n\nend  "
    assert shell.run("remember", "-", "--tier", "task", input=f"{text}{os.linesep}".encode()).returncode == 0
    assert shell.json("show", "1")["content"] == text


@posix_only
def test_an_interrupt_ends_quietly_with_130(shell: Shell) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "remember", "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**shell.process_environment(), "PYTHONUNBUFFERED": "1"},
    )
    assert waiting.stdin is not None
    waiting.stdin.write(b"x" * 70_000)  # more than a pipe holds: it is being read when this returns
    waiting.stdin.flush()
    waiting.send_signal(signal.SIGINT)
    stdout, stderr = waiting.communicate()
    assert (waiting.returncode, stdout, stderr.strip()) == (130, b"", b"")


def test_debugging_shows_the_stack_trace(shell: Shell) -> None:
    assert b"Traceback" in shell.run("show", "9", KEPT_DEBUG="1").stderr


def test_colours_are_for_terminals(shell: Shell) -> None:
    shell("remember", "x", "--tag", "a")
    assert b"\x1b" not in shell.run("list").stdout


@posix_only
@pytest.mark.parametrize(
    ("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_it_does_not_want_them(
    shell: Shell, environment: dict[str, str], is_coloured: bool
) -> None:
    import pty

    shell("remember", "x", "--tag", "a")
    ours, theirs = pty.openpty()
    own = shell.process_environment(**{"TERM": "xterm", **environment})
    subprocess.run([sys.executable, "-c", PROGRAM, "list"], stdout=theirs, env=own, check=True)
    os.close(theirs)
    assert (b"\x1b[1m[id:1]" in os.read(ours, 10_000)) == is_coloured
    os.close(ours)


@posix_only
def test_a_person_at_a_terminal_is_asked(shell: Shell) -> None:
    import pty

    for answer, code in ((b"n\n", 1), (b"y\n", 0)):
        ours, theirs = pty.openpty()
        asking = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "remember", "x", "--global", "--json"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=shell.process_environment(),
        )
        os.write(ours, answer)
        stdout, stderr = asking.communicate(timeout=60)
        assert asking.returncode == code
        assert b"Add global fact: 'x'? [y/N]" in stderr
        assert ("error" in json.loads(stdout)) == (code == 1)
        os.close(theirs)
        os.close(ours)


def _at_a_terminal(shell: Shell, *arguments: str, until: bytes) -> tuple[bytes, int]:
    """Run a command at a terminal, press Ctrl-C once it has printed `until`; all it printed, and its exit code."""
    import pty

    child, screen = pty.fork()
    if child == 0:  # the terminal of this process sends SIGINT for Ctrl-C
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM, *arguments], shell.process_environment())
    shown, is_interrupted = b"", False
    with suppress(OSError):  # how Linux tells that the terminal was closed
        while piece := os.read(screen, 10_000):
            shown += piece
            if until in shown and not is_interrupted:
                os.write(screen, b"\x03")
                is_interrupted = True
    _, status = os.waitpid(child, 0)
    os.close(screen)
    return shown, os.waitstatus_to_exitcode(status)


@posix_only
def test_the_mcp_server_says_at_a_terminal_what_it_is_and_ends_at_the_first_interrupt(shell: Shell) -> None:
    pytest.importorskip("mcp")
    shown, code = _at_a_terminal(shell, "mcp", until=b"Ctrl-C ends it.")
    assert b"An agent starts it" in b" ".join(shown.split())
    assert b"Traceback" not in shown
    assert code == 130


@posix_only
def test_an_interrupt_at_a_question_is_told_as_nothing_else(shell: Shell, tmp_path: Path) -> None:
    """The question comes from inside the code that reads the file."""
    shell("remember", "Prefers short answers", "--global", "--yes")
    shell("export", str(tmp_path / "all.kept"))
    shown, code = _at_a_terminal(shell, "import", str(tmp_path / "all.kept"), until=b"[y/N]")
    assert b"file name" not in shown
    assert code == 130


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(shell: Shell, shell_name: str) -> None:
    script = shell.run(_KEPT_COMPLETE=f"{shell_name}_source")
    assert script.returncode == 0
    assert b"_KEPT_COMPLETE" in script.stdout

    def completed(words: str, number: int) -> str:
        last = words.split()[-1] if shell_name == "fish" else str(number)
        done = shell.run(_KEPT_COMPLETE=f"{shell_name}_complete", COMP_WORDS=words, COMP_CWORD=last)
        return done.stdout.decode()

    commands = completed("kept re", 1)
    for name in ("remember", "recall", "review", "resume", "restore"):
        assert name in commands
    assert "forget" not in commands
    assert "--status" in completed("kept list --st", 2)


def test_what_one_process_kept_the_next_one_finds_and_can_account_for(shell: Shell) -> None:
    """B1: persistence, retrieval and auditability, each by a process of its own."""
    assert shell.run("remember", "The gateway owns the auth middleware", "--kind", "decision").returncode == 0
    assert shell.run("edit", "1", "The edge gateway owns the auth middleware", KEPT_AGENT="reviewer").returncode == 0
    found = json.loads(shell.run("recall", "auth gateway", "--json").stdout)["hits"]
    assert [hit["memory"]["content"] for hit in found] == ["The edge gateway owns the auth middleware"]
    events = json.loads(shell.run("history", "1", "--json").stdout)["events"]
    assert [(event["actor"].split("/")[-1], event["action"]) for event in events] == [
        ("user", "remember"),
        ("reviewer", "revise"),
    ]
    before, after = events[1]["changed"]["content"]
    assert (before, after) == ("The gateway owns the auth middleware", "The edge gateway owns the auth middleware")
    assert all(event["at"] and event["hash"] for event in events)


@posix_only
@pytest.mark.parametrize(
    "arguments",
    [
        ["remember", BROKEN],
        ["remember", "x", "--tag", BROKEN],
        ["recall", BROKEN],
        ["show", BROKEN],
        ["token", "create", BROKEN],
        ["token", "create", "x", "--for", BROKEN],
        ["store", "move", "--to", BROKEN],
        ["list", "--project", BROKEN],
        ["list", "--database", BROKEN],
        ["projects", "rename", "app", BROKEN],
        ["config", "set", "user_name", BROKEN],
    ],
)
def test_an_argument_that_is_not_utf_8_is_a_clear_answer(shell: Shell, arguments: list[str | bytes]) -> None:
    done = shell.run(*arguments)
    assert done.returncode in (0, 1, 2)
    assert b"because of a bug" not in done.stderr
    assert b"Traceback" not in done.stderr
