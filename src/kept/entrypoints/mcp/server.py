"""The official SDK around Kept's tools, resources and prompts.

The SDK speaks the newest spec and all older ones; Kept answers in threads, because its core is synchronous and a call
may wait for a writer. Rule: nothing that goes wrong ends the server. What a model can correct comes back as the text of
a failed call; anything else says so in one sentence and is logged to standard error.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import is_version_at_least

from kept.distribution import VERSION
from kept.entrypoints.mcp import consent, graph
from kept.entrypoints.mcp.calls import Call, MemoryTool, ToolAnswer
from kept.entrypoints.mcp.mended import MendedStream
from kept.entrypoints.mcp.protocol import GRAPH_PROTOCOL, PROTOCOL
from kept.entrypoints.mcp.surroundings import Surroundings, surroundings_of
from kept.entrypoints.mcp.tools import tools
from kept.entrypoints.mcp.views import COMMANDS, RESOURCES, TEMPLATE, read_view, run_command
from kept.errors import KeptError, NotAllowed, NotFound
from kept.memory import Kept
from kept.memory.opening import open as open_memory
from kept.memory.signals import without_secrets as redacted
from kept.model import Actor, Role
from kept.text import visible

RETRIES_WITH_ANSWERS = "2026-07-28"  # since then a question is the result of a call, which is then made again
ASK_A_PERSON = "Only a person can allow this. Ask them to do it with `kept` in a terminal."

log = logging.getLogger("kept.mcp")
Requested = ServerRequestContext[dict[str, Any]]
T = TypeVar("T")
Opener = Callable[[Surroundings, Callable[[str], bool] | None], Kept]


class ServerOptions(NamedTuple):
    """How the server was started. None: as its environment and its client say."""

    home: str | None = None
    project: str | None = None
    agent: str | None = None
    role: Role = "project"
    all_tools: bool = False
    graph: bool = False


def run_stdio(options: ServerOptions) -> None:
    """Serve one client on standard input and output, until it closes them."""

    async def serve() -> None:
        server = build(options)
        async with stdio_server() as (incoming, outgoing):
            await server.run(MendedStream(incoming), outgoing, server.create_initialization_options())

    anyio.run(serve)


def build(
    options: ServerOptions, environ: Mapping[str, str] = os.environ, *, opener: Opener | None = None
) -> Server[dict[str, Any]]:
    """The server, ready for any transport. `opener` opens the memory of a call; by default by its surroundings."""
    desk = _Desk(options, environ, opener)
    return Server(
        "kept",
        version=VERSION,
        title="Kept",
        instructions=GRAPH_PROTOCOL if options.graph else PROTOCOL,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
    )


class _Desk:
    """Where requests arrive: each is answered in a thread, with a memory opened for it."""

    def __init__(self, options: ServerOptions, environ: Mapping[str, str], opener: Opener | None = None) -> None:
        self._options = options
        self._environ = environ
        self._opener = opener or self._open
        own = tools(all_tools=options.all_tools) if options.all_tools or not options.graph else {}
        self._tools = dict(graph.TOOLS if options.graph else {}) | own
        self._views = dict(graph.RESOURCES if options.graph else {}) | dict(RESOURCES)

    # Tools

    async def list_tools(self, _request: Requested, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in self._tools.values()])

    async def call_tool(
        self, request: Requested, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {redacted(params.name)[:60]!r}.")
        asking = _Asking(request, params.input_responses or {})

        def work() -> str | ToolAnswer:
            given: Mapping[str, Any] = params.arguments or {}
            return self._with_memory(
                request, lambda memory, around: tool.run(Call(memory, given, around, asking.can_ask)), asking.confirm
            )

        try:
            said: str | ToolAnswer = await anyio.to_thread.run_sync(work)
            failed = False
        except consent.AskFirst as ask:
            form = ElicitRequestFormParams(message=ask.question, requested_schema=consent.SCHEMA)
            return InputRequiredResult(input_requests={consent.key_of(ask.question): ElicitRequest(params=form)})
        except Exception as error:  # the boundary: told to the model, which can go on without this call
            said, failed = _told(error, was_refused=asking.was_refused), True
        told, values = said if isinstance(said, ToolAnswer) else (said, None)
        return CallToolResult(content=[TextContent(type="text", text=told)], structured_content=values, is_error=failed)

    # Resources

    async def list_resources(self, _request: Requested, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(
            resources=[
                Resource(uri=uri, name=view.name, description=view.line, mime_type=view.mime_type)
                for uri, view in self._views.items()
            ]
        )

    async def list_templates(
        self, _request: Requested, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        template = ResourceTemplate(
            uri_template=TEMPLATE, name="memory", description="One memory by its id.", mime_type="text/plain"
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, request: Requested, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        said = await self._answer(request, lambda memory, around: read_view(memory, uri, around, self._views))
        mime_type = self._views[uri].mime_type if uri in self._views else "text/plain"
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=said)])

    # Prompts: the slash commands

    async def list_prompts(self, _request: Requested, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(
            prompts=[
                Prompt(
                    name=name,
                    description=line,
                    arguments=[PromptArgument(name="text", description=usage, required=False)],
                )
                for name, (usage, line) in COMMANDS.items()
            ]
        )

    async def get_prompt(self, request: Requested, params: GetPromptRequestParams) -> GetPromptResult:
        if params.name not in COMMANDS:
            raise MCPError(INVALID_PARAMS, f"There is no prompt {params.name[:60]!r}.")
        line = f"/{params.name} {(params.arguments or {}).get('text', '')}".strip()
        said = await self._answer(request, lambda memory, _around: run_command(memory, line))
        return GetPromptResult(
            messages=[PromptMessage(role="user", content=TextContent(type="text", text=said))],
        )

    async def _answer(self, request: Requested, work: Callable[[Kept, Surroundings], str]) -> str:
        """The text of a resource or prompt. Raises MCPError, whose message a person reads."""
        try:
            return await anyio.to_thread.run_sync(lambda: self._with_memory(request, work, None))
        except Exception as error:  # the boundary
            raise MCPError(INVALID_PARAMS, _told(error)) from error

    def _with_memory(
        self, request: Requested, work: Callable[[Kept, Surroundings], T], confirm: Callable[[str], bool] | None
    ) -> T:
        client = request.session.client_params
        around = surroundings_of(
            project=self._options.project,
            agent=self._options.agent,
            client=client.client_info.name if client is not None and client.client_info is not None else None,
            meta=dict(request.meta or {}),
            environ=self._environ,
        )
        with self._opener(around, confirm) as memory:
            memory.files.take_edits()
            return work(memory, around)

    def _open(self, around: Surroundings, confirm: Callable[[str], bool] | None) -> Kept:
        actor = Actor(role=self._options.role, name=around.agent)
        return open_memory(project=around.project, home=self._options.home, actor=actor, confirm=confirm, hosted=True)


class _Asking:
    """How a person is asked during one call, as the client allows."""

    def __init__(self, request: Requested, answers: Mapping[str, Any]) -> None:
        capabilities = request.session.client_capabilities
        self.can_ask = capabilities is not None and capabilities.elicitation is not None
        self.was_refused = False
        self._request = request
        self._answers = answers
        self._retries = is_version_at_least(request.protocol_version, RETRIES_WITH_ANSWERS)

    @property
    def confirm(self) -> Callable[[str], bool] | None:
        return self._confirm if self.can_ask else None

    def _confirm(self, question: str) -> bool:
        shown = visible(question, keep_newlines=False)
        said = consent.asked_on_retry(self._answers)(shown) if self._retries else self._ask_now(shown)
        self.was_refused = self.was_refused or not said
        return said

    def _ask_now(self, question: str) -> bool:
        ask = partial(
            self._request.session.elicit_form, question, consent.SCHEMA, related_request_id=self._request.request_id
        )
        return consent.is_yes(anyio.from_thread.run(ask))


def _described(tool: MemoryTool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.schema),
        output_schema=None if tool.output is None else dict(tool.output),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeats or tool.reads,
            open_world_hint=False,
        ),
    )


def _told(error: Exception, *, was_refused: bool = False) -> str:
    """What went wrong, and what the model can do about it."""
    if was_refused and isinstance(error, NotAllowed):
        return "A person was asked and said no. Nothing was changed."
    if isinstance(error, KeptError):
        hint = error.hint
        if isinstance(error, NotFound):
            hint = "memory_query finds memories and their ids."
        elif isinstance(error, NotAllowed):
            hint = ASK_A_PERSON
        return visible(redacted(f"{error.message} {hint}".rstrip()))  # a message repeats what was given
    kind = type(error).__name__
    log.error("%s: a call failed: %s", time.strftime("%H:%M:%S"), kind, exc_info=error)
    return (
        f"Memory failed because of a bug or a full disk ({kind}). Go on without it, and tell the user: `kept doctor`."
    )
