"""A project's directory holds somebody else's files. No process of Kept ever runs one of them.

Modules with the names of those that Kept imports, and programs with the names of those that it starts, are planted in
the project; then everything is run there that agents, git or a person run.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kept.entrypoints.hook.agents import AGENTS
from kept.entrypoints.hook.events import started_folder
from kept.entrypoints.install.agents import MachineFacts
from kept.entrypoints.lookup import use_absolute_path
from kept.projects.home import default_home
from tests.hook.inputs import INPUTS
from tests.hook.test_program import GENEROUS, Box, _messages, box

__all__ = ["box"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are run by a POSIX shell")

IMPORTED = subprocess.run(
    [sys.executable, "-P", "-c", "import sys, kept.entrypoints.hook.background, mcp.server; print(*sys.modules)"],
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
EARLY = {"sitecustomize", "usercustomize", "encodings", "site", "os", "runpy", "zstandard", "psycopg", "watchfiles"}
MODULES = sorted({name.partition(".")[0] for name in IMPORTED if name.isidentifier()} - {"__main__"} | EARLY)
PROGRAMS = (
    "kept",
    "kept-hook",
    "git",
    "zstd",
    "env",
    "python",
    "python3",
    "sh",
    "vi",
    "vim",
    "less",
    "xdg-open",
    "codex",
)
EVENTS = [(agent, event) for agent, inputs in INPUTS.items() for event in inputs]
PATHS = [None, "", ".", "./", ":", ".:/nowhere", "PROJECT", "lib:."]  # of PYTHONPATH; the project itself, absolutely


class Minefield:
    """A project with planted files, and the two programs as pip installs them."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.trace = box.folder / "trace"
        (box.folder / "claude-code.jsonl").symlink_to(box.transcript)
        for name, module in (("kept", "cli"), ("kept-hook", "hook")):
            program = box.folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(
                f"#!{sys.executable}\nimport sys\nfrom kept.entrypoints.{module} import main\nsys.exit(main())\n"
            )
            program.chmod(0o755)
        self.where = MachineFacts(
            user_home=box.folder,
            project=box.project,
            plugin=box.folder / "home" / "agents" / "claude-code",
            environ=os.environ,
            platform=sys.platform,
            kept=str(box.folder / "bin" / "kept"),
            hook=str(box.folder / "bin" / "kept-hook"),
            variables={"KEPT_HOME": str(box.folder / "home")},
        )

    def plant(self, modules: Sequence[str], *, as_packages: bool) -> None:
        for name in modules:
            code = f"open({str(self.trace)!r}, 'a').write({name!r} + chr(10))\n"
            path = self.box.project / (f"{name}/__init__.py" if as_packages else f"{name}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(code)
        for name in PROGRAMS:
            program = self.box.project / name
            if not program.exists():
                program.write_text(f"#!/bin/sh\necho {name} >> {shlex.quote(str(self.trace))}\n")
                program.chmod(0o755)

    def environment(self, python_path: str | None) -> dict[str, str]:
        own = self.box.environment(**GENEROUS)
        own["PATH"] = f".::{own['PATH']}"
        del own["PYTHONPATH"]
        if python_path is not None:
            own["PYTHONPATH"] = python_path.replace("PROJECT", str(self.box.project))
        return own

    def fire(self, agent: str, event: str, python_path: str | None) -> bytes:
        """Run the line that `kept install` writes for this event, as an agent does."""
        done = subprocess.run(
            ["/bin/sh", "-c", self.where.command(agent, event)],
            # A transcript has one program that writes it.
            input=self.box.given(agent, event).replace(b"session.jsonl", f"{agent}.jsonl".encode()),
            env=self.environment(python_path),
            cwd=self.box.project,
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert done.stderr == b""
        return done.stdout

    def list_tools(self, python_path: str | None) -> list[str]:
        """Start the server from its entry in an agent's settings, and ask for its tools."""
        entry = self.where.server("codex")
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        requests: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list", "params": {}},
        ]
        process = subprocess.Popen(
            [entry["command"], *entry["args"]],
            env=self.environment(python_path) | entry["env"],
            cwd=self.box.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in requests))
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for _ in range(2)]
            process.stdin.close()
        return [tool["name"] for tool in answers[-1]["result"]["tools"]]

    def executed(self) -> list[str]:
        return self.trace.read_text().split() if self.trace.exists() else []


@pytest.fixture
def minefield(box: Box) -> Minefield:
    return Minefield(box)


def settled(box: Box) -> None:
    """Wait until every detached process is done: each removes its mark at its end."""
    box.wait_until(lambda: not list(box.hook.started.glob("*")))


@pytest.mark.parametrize("agent", AGENTS)
def test_no_file_of_the_project_runs_at_any_event_of_an_agent(minefield: Minefield, agent: str) -> None:
    """Every name at once: if the project's directory were searched at all, one of them would be found."""
    minefield.plant(MODULES, as_packages=agent in ("codex", "cursor"))
    for python_path, event in zip(PATHS * 2, INPUTS[agent], strict=False):
        minefield.fire(agent, event, python_path)
    settled(minefield.box)
    assert minefield.executed() == []
    assert minefield.box.hook.last_events().keys() == {agent}


@given(
    planted=st.sets(st.sampled_from(MODULES), min_size=1, max_size=8),
    as_packages=st.booleans(),
    python_path=st.sampled_from(PATHS),
    others=st.lists(st.sampled_from(EVENTS), max_size=2),
)
@settings(max_examples=8, deadline=None, phases=[Phase.generate])  # shrinking would run processes for minutes
def test_whatever_is_planted_nothing_of_it_runs_and_the_session_is_stored(
    planted: set[str], as_packages: bool, python_path: str | None, others: list[tuple[str, str]], tmp_path_factory: Any
) -> None:
    box = Box(tmp_path_factory.mktemp("box"))
    with box.open() as memory:
        memory.remember("Deploy the billing service with make ship", kind="decision")
    minefield = Minefield(box)
    minefield.plant(sorted(planted), as_packages=as_packages)
    box.say("We decided to use Postgres for the orders")
    for agent, event in others:
        minefield.fire(agent, event, python_path)
    if not any(AGENTS[agent].events[event] == "prompt" for agent, event in others):  # a session is told it once
        assert b"make ship" in minefield.fire("claude-code", "UserPromptSubmit", python_path)
    minefield.fire("claude-code", "Stop", python_path)
    box.wait_until(lambda: _messages(box) == 1 and not box.hook.pointers())
    settled(box)
    assert minefield.executed() == []


@pytest.mark.parametrize("python_path", PATHS)
def test_a_hook_that_is_run_without_its_entry_starts_a_process_that_imports_nothing_from_here(
    minefield: Minefield, python_path: str | None
) -> None:
    """A person or a plugin calls kept-hook by its name. The process behind it is as safe as ever."""
    minefield.plant(["json", "kept", "msgspec", "runpy", "typing"], as_packages=False)
    box = minefield.box
    box.say("We decided to use Postgres for the orders")
    program = f"import sys\nsys.path[:] = {[path for path in sys.path if path]!r}\n"
    program += "from kept.entrypoints.hook import main\nmain()"
    subprocess.run(
        [sys.executable, "-E", "-P", "-c", program, "claude-code", "Stop"],
        input=box.given("claude-code", "Stop"),
        env=minefield.environment(python_path),
        cwd=box.project,
        check=True,
    )
    box.wait_until(lambda: _messages(box) == 1 and not box.hook.pointers())
    assert minefield.executed() == []


@pytest.mark.parametrize("python_path", PATHS)
def test_the_server_of_an_agent_runs_no_file_of_the_project(minefield: Minefield, python_path: str | None) -> None:
    minefield.plant(MODULES, as_packages=python_path == ".")
    assert "memory_query" in minefield.list_tools(python_path)
    assert minefield.executed() == []


def test_commands_run_no_program_and_no_module_of_the_project(minefield: Minefield) -> None:
    minefield.plant(MODULES, as_packages=False)
    environ = minefield.environment(None) | {"EDITOR": "vi"}
    for line in ("doctor", "install --dry-run codex", "knowledge sources .", "recall deploy", "status"):
        subprocess.run(
            [minefield.where.kept, *line.split()],
            env=environ,
            cwd=minefield.box.project,
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert minefield.executed() == []


def test_the_merge_driver_as_the_docs_set_it_up_runs_no_file_of_the_project(minefield: Minefield) -> None:
    project, environ = minefield.box.project, minefield.environment(".")
    docs = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
    [line] = [line for line in docs.splitlines() if "merge.kept.driver" in line]
    usual = environ | {"PATH": f"{minefield.box.folder / 'bin'}:{minefield.box.environment()['PATH']}"}

    def git(*words: str) -> None:
        command = ["/usr/bin/git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        subprocess.run(command, cwd=project, env=environ, check=True, capture_output=True)

    def commit(text: str) -> None:
        (project / "MEMORY.md").write_text(text)
        git("add", "MEMORY.md", ".gitattributes")
        git("commit", "-qm", "x")

    git("init", "-q", "-b", "main")
    subprocess.run(["/bin/sh", "-c", line], cwd=project, env=usual, check=True)
    (project / ".gitattributes").write_text("MEMORY.md merge=kept\n")
    commit("# Memory\n\n## Decisions\n\n- one\n")
    git("checkout", "-qb", "side")
    commit("# Memory\n\n## Decisions\n\n- one\n- of the side\n")
    git("checkout", "-q", "main")
    commit("# Memory\n\n## Decisions\n\n- one\n- of main\n")
    minefield.plant(MODULES, as_packages=False)
    git("merge", "-q", "side", "-m", "merged")
    merged = (project / "MEMORY.md").read_text()
    assert "of the side" in merged
    assert "of main" in merged
    assert minefield.executed() == []


@given(
    st.dictionaries(
        st.sampled_from(["KEPT_HOME", "HOME", "XDG_DATA_HOME", "USERPROFILE"]),
        st.sampled_from(["", ".", "data", "/", "/home/a", "/home/a/", "~/x", "~", "~root/x", "/data/kept", "../up"]),
    )
)
def test_marks_of_processes_are_left_in_the_home_or_nowhere(environ: dict[str, str]) -> None:
    folder = started_folder(environ)
    if folder:
        assert Path(folder) == default_home(environ) / "hook" / "started"
        assert Path(folder).is_absolute()


@given(st.lists(st.sampled_from(["", ".", "bin", "./x", "../y", "/usr/bin", "/bin"])))
def test_programs_are_looked_for_in_absolute_places_only(entries: list[str]) -> None:
    environ = {"PATH": os.pathsep.join(entries)}
    use_absolute_path(environ)
    left = [entry for entry in environ["PATH"].split(os.pathsep) if entry]
    assert left == [entry for entry in entries if entry.startswith("/")]
