"""The tools for clients that speak MCP over HTTP, inside of another server."""

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from kept.entrypoints.mcp.server import Opener, ServerOptions, build


def manager(opener: Opener) -> StreamableHTTPSessionManager:
    """Return the manager that answers requests, each on its own. `opener` opens the memory of a call."""
    return StreamableHTTPSessionManager(
        build(ServerOptions(agent="http"), {}, opener=opener), json_response=True, stateless=True
    )
