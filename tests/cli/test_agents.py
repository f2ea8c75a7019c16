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
