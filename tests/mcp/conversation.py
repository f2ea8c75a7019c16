"""The SDK's own client at the other end of a real `kept mcp` process."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

SOURCE = Path(__file__).parent.parent.parent / "src"


def server(folder: Path, *options: str, **environ: str) -> StdioServerParameters:
    """How a client starts `kept mcp` in a project of its own home."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    variables |= {"KEPT_HOME": str(folder / "home"), "HOME": str(folder), "PYTHONPATH": str(SOURCE)}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "kept", "mcp", *options], env=variables | environ, cwd=project
    )


@asynccontextmanager
async def connected(parameters: StdioServerParameters, mode: str = "auto", **about: Any) -> AsyncIterator[Client]:
    """A client that has connected: `auto` speaks the newest spec, `legacy` the handshake of the older ones."""
    async with Client(parameters, mode=mode, read_timeout_seconds=60, **about) as client:
        yield client


def said(result: Any) -> str:
    """The text of a result, which must be all there is."""
    assert isinstance(result, CallToolResult)
    assert result.structured_content is None
    assert [part.type for part in result.content] == ["text"]
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text
