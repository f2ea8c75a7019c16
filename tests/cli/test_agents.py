"""`kept protocol`, and `kept mcp` where its package is missing. How it serves is shown in tests/mcp."""

import subprocess
import sys

from kept.distribution import install_line
from kept.entrypoints.mcp.protocol import PROTOCOL
from tests.cli.shell import PROGRAM, Shell


def test_protocol_prints_what_an_mcp_client_is_told(shell: Shell) -> None:
    assert shell("protocol") == PROTOCOL + "\n"
    assert shell.json("protocol") == {"protocol": PROTOCOL}


def test_mcp_without_its_package_names_the_one_line_that_installs_it() -> None:
    program = f"import sys; sys.modules['mcp'] = None; sys.argv = ['kept', 'mcp']; {PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, input="")
    assert done.returncode == 1
    assert install_line("agents") in done.stderr


def test_an_agent_at_the_command_line_does_not_pass_for_the_person_who_made_a_guard(shell: Shell) -> None:
    shell("remember", "Never push to main without asking me", "--kind", "preference")
    shell("guard", "1", "stop")
    agent = {"KEPT_AGENT": "claude", "KEPT_ROLE": "admin"}
    for words, said in (
        (["guard", "1", "tell", "-y"], b"only a person can"),
        (["--as", "admin", "guard", "1", "tell", "-y"], b"only a person can"),
        (["forget", "1"], b"Memory 1 is guarded; only a person can change it"),
        (["edit", "1", "Push at any time"], b"kept guard 1 tell"),
    ):
        done = shell.run(*words, **agent)
        assert done.returncode == 1, done.stdout
        assert said in done.stderr
    assert "Never push" in shell("show", "1")
    shell("guard", "1", "tell")
    assert shell.run("forget", "1", **agent).returncode == 0


def test_history_and_undo_name_the_memory_of_a_guard(shell: Shell) -> None:
    shell("remember", "Never push to main without asking me", "--kind", "preference")
    shell("guard", "1", "stop")
    last = shell("history").splitlines()[0]
    assert "guard [id:1]" in last
    assert f"guard [id:1] (event {last.split()[0]}" in shell("undo", last.split()[0])
