"""`kept mcp` and `kept protocol`: the memory for agents, and how they should use it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from kept.distribution import install_line
from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.invocation import INTERRUPTED, Invocation
from kept.entrypoints.mcp.protocol import PROTOCOL
from kept.errors import SettingsError

AT_A_TERMINAL = (
    "This is the MCP server of Kept. An agent starts it and talks to it on standard input; `kept install` puts it into "
    "yours. Ctrl-C ends it."
)


@command
@click.option("--agent", metavar="NAME", help="The agent that is served; by default what it calls itself.")
@click.option("--all-tools", is_flag=True, help="Offer every tool, instead of the seven that an agent needs.")
@click.option("--graph", is_flag=True, help="Offer the nine tools of the MCP reference server memory instead.")
def mcp_command(invocation: Invocation, *, agent: str | None, all_tools: bool, graph: bool) -> None:
    """An agent starts this; you need not. Its project is --project, else $KEPT_PROJECT, $CLAUDE_PROJECT_DIR, or the
    directory it is started in. Needs the extra `agents`.
    """
    try:
        from kept.entrypoints.mcp.server import ServerOptions, run_stdio  # needs an optional package
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise SettingsError("The MCP server needs the package mcp.", hint=f"Run: {install_line('agents')}") from None
    agent = agent or os.environ.get("KEPT_AGENT")
    with _ending_at_an_interrupt():
        if sys.stdin is not None and sys.stdin.isatty():
            invocation.tell(AT_A_TERMINAL)
        run_stdio(
            ServerOptions(
                invocation.home, invocation.project, agent, role=invocation.role, all_tools=all_tools, graph=graph
            )
        )


@contextmanager
def _ending_at_an_interrupt() -> Iterator[None]:
    """End the process at the first Ctrl-C. A thread waits for a line of standard input, and nothing else ends it.

    Nothing is lost: a call that is under way is one transaction.
    """

    def end(_signal: int, _frame: object) -> None:
        os._exit(INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or not ours to change
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@command
def protocol_command(invocation: Invocation) -> None:
    """Agents that use `kept mcp` are told automatically. For any other agent, put this text into its system prompt."""
    invocation.answer({"protocol": PROTOCOL}, PROTOCOL.split("\n"))
