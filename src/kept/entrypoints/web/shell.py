"""The frame around every view: templates, the address of a project, the mark of a form, and what all pages show."""

import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kept import __version__
from kept.entrypoints.http.doors import Doors
from kept.entrypoints.http.keys import Key
from kept.entrypoints.http.problems import NEEDS_KEY, WRONG_KEY
from kept.entrypoints.http.visits import Visits
from kept.entrypoints.web import words
from kept.memory import Kept
from kept.text import visible

FOLDER = Path(__file__).parent
VIEWS = (
    ("saw", "eye", "What the agent saw", "Saw"),
    ("memories", "stack", "Memories", "Memories"),
    ("inbox", "inbox", "Inbox", "Inbox"),
    ("timeline", "calendar", "Timeline", "Timeline"),
    ("sessions", "chat", "Sessions", "Sessions"),
    ("knowledge", "book", "Knowledge", "Knowledge"),
    ("health", "pulse", "Health", "Health"),
)
N_FIRST = 5  # views that a small screen has room for; the others are behind "More"
ASKS = {
    "saw": "Which memories were put before this prompt, and why these?",
    "memories": "What does it know, and since when?",
    "inbox": "What should a person decide?",
    "timeline": "What changed, when, and through whom?",
    "sessions": "What was said, and what of it was kept?",
    "knowledge": "What is to be done, and what do the files say?",
    "health": "Is everything in order, fast and within its limits?",
}
PAGE = 50
LAST = 2**53  # no event, memory or message has a larger number; a database refuses those beyond 64 bits
WENT_WRONG = {
    401: "Sign in",
    403: "Not allowed",
    404: "Nothing is here",
    413: "Too large",
    421: "Unknown host name",
    422: "A part of this address is not valid",
    429: "Too many attempts",
    500: "The server failed",
    503: "The memory is busy",
}
REFUSES_EVERY_PAGE = (401, 421, 429)


def _shown(value: Any) -> Any:
    """What a template writes: in a text, what would turn it around or act on a terminal is made visible."""
    return visible(value) if type(value) is str else value


@lru_cache(maxsize=64)
def icon(name: str) -> Markup:
    """Return the drawing of that name, made once: a list has hundreds of them."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>').format(name)


_environment = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    finalize=_shown,
)
_environment.globals.update(
    icon=icon,
    family=words.family,
    sign=words.sign,
    age=words.age,
    day=words.day,
    full=words.full,
    hour=words.hour,
    done=words.done,
    tags_of=words.tags,
    speaker=words.speaker,
    not_given=words.not_given,
    who=words.who,
    status_of=words.status,
)


def wants_detail(request: Request) -> bool:
    """Return True if the script of the page asks for the detail of a row alone."""
    return request.headers.get("x-kept-part") == "detail"


def is_drawn_again(request: Request) -> bool:
    """Return True if the script of the page asks for a view that it shows already, to replace its parts."""
    return request.headers.get("x-kept-part") == "again"


def draw_part(template: str, **about: Any) -> Markup:
    """Draw a part of a view that looks the same to everyone."""
    return Markup(_environment.get_template(template).render(**about))


def draw_detail(request: Request, template: str, project: str, memory: Kept, **about: Any) -> Response:
    """Draw the detail of a row without its list and the frame."""
    shown = _environment.get_template(template).render(
        root=root_of(project), now=now_of(memory), csrf=form_mark(request), notice=None, **about
    )
    return HTMLResponse(shown)


def draw_page(
    request: Request, view: str, project: str, memory: Kept, key: Key, *, template: str = "", **about: Any
) -> Response:
    """Draw a view, or a page that belongs to it, with the frame around it."""
    doors: Doors = request.app.state.doors
    visits: Visits = request.app.state.visits
    mark = form_mark(request)
    notice = visits.take_notice(request.query_params.get("notice", ""), mark=mark)
    shown = _environment.get_template(template or f"{view}.html").render(
        view=view,
        views=VIEWS,
        n_first=N_FIRST,
        title=next(long for name, _, long, _ in VIEWS if name == view),
        asks=ASKS[view],
        project=doors.word_for(doors.find(project, key), key),
        projects=[doors.word_for(one, key) for one in doors.projects(key)],
        root=root_of(project),
        live=memory.look().live(),
        last_event=memory.look().last_event(),
        paused=memory.pauses.status(),
        due=request.app.state.inboxes.known(memory),
        samples=request.app.state.samples,
        version=__version__,
        now=now_of(memory),
        csrf=mark,
        notice=notice,
        **about,
    )
    return HTMLResponse(shown)


def draw_nothing() -> Response:
    """The page of a home without any project."""
    return HTMLResponse(_environment.get_template("nothing.html").render())


def draw_problem(problem: Mapping[str, Any], asked: str) -> str:
    """The page for an address that could not be shown: what happened, what to do, and a way back.

    `asked` is the address, or "" after a form.
    """
    status, hint = problem["status"], problem.get("hint", "")
    ways = [] if status in REFUSES_EVERY_PAGE else [("/", "Go to the start page")]
    if status >= 500 and asked:
        ways.insert(0, (asked, "Try again"))
    elif status == 422 and asked.startswith("/p/") and "?" in asked:
        ways.insert(0, (asked.partition("?")[0], "Show the view without filters"))
    return _environment.get_template("problem.html").render(
        title=WENT_WRONG.get(status, problem["title"]),
        status=status,
        asks_key=status == 401,
        is_refused=problem["detail"] != NEEDS_KEY,
        is_wrong=problem["detail"] == WRONG_KEY,
        asked=asked,
        detail=problem["detail"],
        hint="" if "errors" in problem else hint,  # that one leads to the document of the API
        ways=ways,
    )


def form_mark(request: Request) -> str:
    """Return the value that every form of this server has for this browser, and that no other page can know."""
    visits: Visits = request.app.state.visits
    return hmac.new(visits.secret.encode(), f"form of {request.state.caller}".encode(), "sha256").hexdigest()


def root_of(project: str) -> str:
    """The address below which the views of a project are."""
    return f"/p/{quote(project, safe='')}"


def address(root: str, view: str, **about: object) -> str:
    """The address of a view, with those of the given parameters that say something."""
    given = {name: value for name, value in about.items() if value not in ("", None, 0)}
    return f"{root}/{view}" + (f"?{urlencode(given)}" if given else "")


def now_of(memory: Kept) -> datetime:
    """The time by the clock of the memory."""
    return memory.look().now()


def literal(asked: Iterable[str], query: str) -> list[str]:
    """The words of the query that were searched for, as they were written, without the smallest ones."""
    stems = tuple(asked)
    written = dict.fromkeys(re.findall(r"[\w./-]+", query))
    return [word for word in written if word.lower() not in words.SMALL and word.lower().startswith(stems)]
