"""Serve the MCP tools over HTTP, behind `kept serve`.

Rule: each request is complete in itself. No stream stays open, so a key that has ended can hold none.
"""

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from kept.entrypoints.mcp.server import Opener, ServerOptions, build


def manager_for(opener: Opener) -> StreamableHTTPSessionManager:
    """Return the manager that answers requests; `opener` opens the memory of each call."""
    return StreamableHTTPSessionManager(
        build(ServerOptions(agent="http"), {}, opener=opener), json_response=True, stateless=True
    )
