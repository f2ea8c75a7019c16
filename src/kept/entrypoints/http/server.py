"""The application, and running it.

`make_app` puts the parts together; `run` starts it on loopback and prints an address that signs in the person who
started it, once. Rule: an error of any part below is answered as a problem document, which the guard draws as a page
for a browser, and no line of the log has content.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from ipaddress import ip_network
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from msgspec import Struct
from starlette.exceptions import HTTPException

from kept import __version__
from kept.entrypoints.http import live, metrics, routes
from kept.entrypoints.http.doors import HERE, Asking, Doors, Opened
from kept.entrypoints.http.guard import ENTER, Guard
from kept.entrypoints.http.heads import MOST_WAITING, WaitingRoom, protocol_for
from kept.entrypoints.http.keys import Key, Keys
from kept.entrypoints.http.metrics import Figures
from kept.entrypoints.http.problems import MEDIA_TYPE, answer_problem, problem, status_of
from kept.entrypoints.http.rights import KeyedMemory
from kept.entrypoints.http.schedule import Schedule
from kept.entrypoints.http.shapes import answer, returns, schemas
from kept.entrypoints.http.visits import CODE_LIFE_S, SavedVisits, Visits
from kept.entrypoints.web import pages
from kept.entrypoints.web.activity import Activity, Overviews
from kept.entrypoints.web.health import Checkups
from kept.entrypoints.web.inbox import Inboxes
from kept.entrypoints.web.shelf import Shelves
from kept.entrypoints.web.shell import draw_problem
from kept.errors import InvalidInput, KeptError
from kept.memory.files import item_document
from kept.memory.opening import open_projects, settings_in_force, utc_now
from kept.memory.read import RecallScope
from kept.memory.verbs.arguments import Argument, schema_of
from kept.memory.verbs.recall import RECALL, Recall
from kept.model import Recalled, Role

PORT = 7333
LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERY_ADDRESS = ("0.0.0.0", "::")
SHARED_HEAD_BYTES = 64 * 1024
LOCAL_HEAD_BYTES = 1_000_000  # every server on this machine may leave cookies: 180 of 4 KB in a browser
PROBLEM = {
    "type": "object",
    "description": "What went wrong, in the library's words, and what to do.",
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "hint")},
        "status": {"type": "integer"},
    },
    "required": ["title", "status", "detail"],
}
REFUSED = {
    "description": "It was refused; nothing was changed.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
API = "/api/v1"
MOST_ITEMS = 10_000
_asking: ContextVar[Key] = ContextVar("the key of the request that calls a tool")
log = logging.getLogger("kept.http")


class ServeOptions(Struct, frozen=True, kw_only=True):
    """How the server is run."""

    home: str | None = None
    project: str | None = None
    role: Role = "admin"  # of the person who started it
    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()  # further host names, with port, under which a proxy reaches it
    proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded-For and -Proto are believed
    key: str | None = None
    samples: bool = False  # the home is a scratch one with sample data, and every page says so


def make_app(
    options: ServeOptions, keys: Keys, visits: Visits | None = None, *, is_ending: Callable[[], bool] = lambda: False
) -> Callable[..., Any]:
    """Make the application: verbs, page and guard. Once `is_ending` returns True, open streams end."""
    visits = visits or Visits(options.port)
    doors = Doors(options.home, options.project)
    figures = Figures()

    schedule = Schedule(doors, settings_in_force(None), utc_now)
    tools = _Tools(doors) if find_spec("mcp") else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        upkeep = asyncio.create_task(schedule.run())
        yield
        upkeep.cancel()
        if tools is not None:
            tools.close()
        doors.close()

    app = FastAPI(
        title="Kept",
        version=__version__,
        summary="The memory of a project, for programs.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.doors = doors
    app.state.keys = keys
    app.state.visits = visits
    app.state.following = Counter()
    app.state.is_ending = is_ending
    app.state.schedule = schedule
    app.state.figures = figures
    app.state.activity = activity = Activity()
    app.state.overviews = Overviews(activity)
    app.state.inboxes = Inboxes()
    app.state.shelves = Shelves()
    app.state.checkups = Checkups()
    app.state.samples = options.samples
    for router in (routes.make_router(), live.router):
        app.include_router(router, prefix=API)
    app.include_router(metrics.router)
    app.include_router(pages.router)
    if tools is not None:
        app.mount("/mcp", tools)
    app.mount("/static", pages.static)
    _add_front(app)
    app.add_exception_handler(KeptError, _on_kept_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_any_error)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return Guard(app, keys, visits, lambda: hosts_of(options), note=figures.note, draw=draw_problem)


def hosts_of(options: ServeOptions) -> frozenset[str]:
    """The names under which a browser may ask for this server."""
    here = () if options.host in EVERY_ADDRESS else (_bracketed(options.host).lower(),)
    own = {f"{name}:{options.port}" for name in ("127.0.0.1", "localhost", "[::1]", *here)}
    return frozenset(own | {name.lower() for name in options.names})


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


_NAME = schema_of((Argument(name="name", form="string", help="The name of the project.", is_required=True),))


def _add_front(app: FastAPI) -> None:
    @app.get(f"{API}/projects", responses=returns(None, "The projects that the key opens."))
    def projects(request: Request, key: Asking) -> Response:
        """List the projects."""
        found = request.app.state.doors.projects(key)
        return answer({"projects": [{"id": one.id, "name": one.name} for one in found]})

    @app.post(
        f"{API}/projects",
        status_code=201,
        responses=returns(None, "The new project."),
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _NAME}}}},
    )
    def new_project(request: Request, key: Asking, body: routes.Body) -> Response:
        """Make a project. It takes the key of an admin for all projects."""
        if set(body) != {"name"} or not isinstance(body["name"], str):
            raise InvalidInput('A new project takes the argument name, such as {"name": "web-app"}.')
        made = request.app.state.doors.add_project(body["name"], key)
        return answer({"id": made.id, "name": made.name}, status=201)

    @app.get("/projects/{project}/knowledge", include_in_schema=False)
    def knowledge(memory: Opened, type: str | None = None) -> Response:
        """List items where other programs look for them."""
        return answer(
            {"items": list(map(item_document, memory.files.items(type=type, limit=MOST_ITEMS))), "next": None}
        )

    @app.get(f"{API}/search", responses=returns(Recalled, "Hits with scores and reasons."))
    def search(
        request: Request,
        key: Asking,
        q: Annotated[str, Query(max_length=10_000)],
        scope: Annotated[RecallScope, Query()] = "memory",
        project: Annotated[str, Query(max_length=200)] = HERE,
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> Response:
        """Search one scope of a project: memory, items, sessions, sources or archive."""
        doors: Doors = request.app.state.doors
        memory = KeyedMemory(doors.up_to_date(project, key), key, doors)
        return answer(memory.perform(RECALL, Recall(query=q, scope=scope, limit=limit)))


class _Tools:
    """The tools at /mcp, for keys that open the project in which the server was started; never for another project.

    They are made by the first who asks for them: importing the MCP package takes as long as everything else here.
    """

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._guard = asyncio.Lock()
        self._manager: Any = None
        self._life: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":  # a GET would hold an empty stream open, also for a key that has ended
            await answer_problem(send, 405, "The tools take POST only.", headers={b"allow": b"POST"})
            return
        _asking.set(scope["state"]["key"])
        await asyncio.to_thread(self._doors.find, HERE, _asking.get())  # raises NotFound
        async with self._guard:
            if self._manager is None:
                await self._begin()
        await self._manager.handle_request(scope, receive, send)

    def close(self) -> None:
        """End what the tools run in the background."""
        if self._life is not None:
            self._life.cancel()

    async def _begin(self) -> None:
        manager = await asyncio.to_thread(self._made)
        is_running = asyncio.Event()

        async def live() -> None:
            async with manager.run():
                is_running.set()
                await asyncio.Event().wait()  # until it is cancelled

        self._life = asyncio.create_task(live())
        await is_running.wait()
        self._manager = manager

    def _made(self) -> Any:
        from kept.entrypoints.mcp.streamable import manager_for  # imports an optional package, which takes long

        return manager_for(lambda around, confirm: self._doors.for_agent(_asking.get(), around.agent, confirm))


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        components = made.setdefault("components", {})
        known = components.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            known.pop(unused, None)
        known.update(schemas() | {"Problem": PROBLEM})
        for path in made["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                operation["responses"]["4XX"] = REFUSED
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"key": []}]
        app.openapi_schema = made
    return app.openapi_schema


async def _on_kept_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, KeptError)
    status = status_of(error)
    if status == 500:
        log.error("The store failed: %s", type(error).__name__)
    said, hint = request.app.state.doors.without_paths(request.state.key, [error.message, error.hint])
    return _problem(status, said, hint=hint)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = [
        {"where": ".".join(str(part) for part in one["loc"]), "what": str(one["msg"])} for one in error.errors()[:20]
    ]
    said = "; ".join(f"{one['where']}: {one['what']}" for one in fields)
    return _problem(422, f"The request does not fit: {said}.", hint=f"{API}/openapi.json describes it.", errors=fields)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{error.detail}."
    if error.status_code == 404:
        detail = f"There is nothing at {request.url.path[:200]}."
    answer = _problem(error.status_code, detail)
    answer.headers.update(error.headers or {})
    return answer


async def _on_any_error(request: Request, error: Exception) -> Response:
    log.error("A request failed: %s", type(error).__name__, exc_info=error)
    return _problem(500, "Something went wrong here.", hint="The log of the server has the place.")


def _problem(status: int, detail: str, **more: Any) -> Response:
    return JSONResponse(problem(status, detail, **more), status_code=status, media_type=MEDIA_TYPE)


def run(options: ServeOptions, *, say: Callable[[str], None], open_browser: Callable[[str], Any] | None) -> None:
    """Serve until the process is stopped."""
    room = WaitingRoom(_checked(options.proxies))
    keys = Keys(open_projects(options.home).home.root, options.key, role=options.role)
    saved = SavedVisits(keys.home, keys.own_digest, options.role)
    visits = Visits(options.port, saved=saved)
    listening = _bound(options.host, options.port)
    config = uvicorn.Config(
        make_app(options, keys, visits, is_ending=lambda: server.should_exit),
        http=protocol_for(room),
        ws="none",
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
        # A burst is accepted in one step, before the waiting room can close any of it: leave room for it.
        limit_concurrency=4 * MOST_WAITING,
        h11_max_incomplete_event_size=LOCAL_HEAD_BYTES if options.host in LOOPBACK else SHARED_HEAD_BYTES,
    )
    server = uvicorn.Server(config)
    try:
        keys.tokens()  # upgrades an old file while no request waits
    except KeptError as error:
        say(str(error))

    def new_address() -> str:
        host = "127.0.0.1" if options.host in EVERY_ADDRESS else _bracketed(options.host)
        return f"http://{host}:{options.port}{ENTER}?code={visits.new_code(keys.own_digest)}"

    say(f"Kept is at {new_address()}")
    say(f"That address works once, within {CODE_LIFE_S / 60:g} minutes. Later, sign in with this key:")
    say(keys.own)
    say("Stop it with Ctrl-C.")
    if open_browser is not None:
        open_browser(new_address())  # a second code: the list of processes shows it
    server.run(sockets=[listening])


def _checked(proxies: Sequence[str]) -> Sequence[str]:
    """The addresses of proxies, each an IP address or a network. Raises InvalidInput."""
    for proxy in proxies:
        try:
            ip_network(proxy)
        except ValueError as error:
            raise InvalidInput(
                f"{proxy!r} is not the address of a proxy.",
                hint="Give an IP address or a network: 10.0.0.5, 10.0.0.0/24.",
            ) from error
    return proxies


def _bound(host: str, port: int) -> socket.socket:
    """A socket at that address, before anybody is told of it. Raises InvalidInput when it cannot be used."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2_048)  # from here on a browser waits instead of being refused
    except OSError as error:
        listening.close()
        raise InvalidInput(
            f"The server cannot listen on {host}, port {port}: {error.strerror}.",
            hint="If `kept serve` is already running, use its page. Otherwise choose another port with --port.",
        ) from error
    return listening
