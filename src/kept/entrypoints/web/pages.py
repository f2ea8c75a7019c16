"""The views together, the first address, and the one address that takes every change of the page."""

import hmac
from collections.abc import Callable
from functools import partial
from typing import Annotated
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from kept.entrypoints.http.doors import HERE, Asking, Doors, Opened, key_of
from kept.entrypoints.http.problems import status_of
from kept.entrypoints.http.shapes import answer
from kept.entrypoints.http.visits import Visits
from kept.entrypoints.web import health, inbox, knowledge, memories, saw, sessions, timeline
from kept.entrypoints.web.changes import MOST_AT_ONCE, Asked, ChangeDone, carry_out
from kept.entrypoints.web.changes import judge as settle
from kept.entrypoints.web.shell import FOLDER, VIEWS, draw_nothing, form_mark, root_of
from kept.errors import KeptError, NotAllowed, NotFound
from kept.model import replace

MOST_SAID = 500

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
for view in (saw, memories, inbox, timeline, sessions, knowledge, health):
    router.include_router(view.router)
static = StaticFiles(directory=FOLDER / "static")


@router.get("/")
def home(request: Request, key: Asking) -> Response:
    """The first project: the one in which the server was started, or any."""
    doors: Doors = request.app.state.doors
    try:
        word = doors.word_for(doors.find(HERE, key), key)
    except NotFound:
        projects = doors.projects(key)
        if not projects:
            return draw_nothing()
        word = doors.word_for(projects[0], key)
    return RedirectResponse(f"/p/{quote(word, safe='')}/saw", status_code=303)


@router.post("/p/{project}/do")
def do(
    request: Request,
    project: str,
    memory: Opened,
    csrf: Annotated[str, Form(max_length=200)],
    verb: Annotated[str, Form(max_length=20)],
    ref: Annotated[list[str] | None, Form(max_length=MOST_AT_ONCE)] = None,
    back: Annotated[str, Form(max_length=4_000)] = "",
    content: Annotated[str, Form(max_length=1_000_000)] = "",
    tags: Annotated[str, Form(max_length=4_000)] = "",
    files: Annotated[str, Form(max_length=10_000)] = "",
    kind: Annotated[str, Form(max_length=100)] = "",
    importance: Annotated[str, Form(max_length=20)] = "",
    tier: Annotated[str, Form(max_length=20)] = "",
    state: Annotated[str, Form(max_length=20)] = "",
    stage: Annotated[str, Form(max_length=100)] = "",
    pin: Annotated[str, Form(max_length=5)] = "",
    sure: Annotated[str, Form(max_length=5)] = "",
    event: Annotated[str, Form(max_length=40)] = "",
    etag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Carry out one change, then show the view again with a line that says so, and its undo."""
    fields = {
        "content": content,
        "tags": tags,
        "files": files,
        "kind": kind,
        "importance": importance,
        "tier": tier,
        "pin": pin,
    }
    fields |= {"state": state, "stage": stage, "sure": sure, "event": event, "etag": etag}
    asked = Asked(verb=verb, refs=tuple(ref or ()), fields=fields)
    return _answered(request, project, csrf, back, lambda: carry_out(memory, asked), asked)


async def _decisions(request: Request) -> dict[int, str]:
    """Return the decisions of a list by number: each group of radio buttons has a name with its number."""
    sent = (await request.form()).items()
    named = ((name.partition("-"), value) for name, value in sent if isinstance(value, str))
    return {int(n): value for (name, _, n), value in named if name == "decision" and n.isdecimal() and len(n) < 4}


@router.post("/p/{project}/judge")
def judge(
    request: Request,
    project: str,
    memory: Opened,
    csrf: Annotated[str, Form(max_length=200)],
    code: Annotated[str, Form(max_length=20)],
    decisions: Annotated[dict[int, str], Depends(_decisions)],
    text: Annotated[list[str], Form(max_length=100)],
    session: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Settle the list of a session, then show the inbox again with a line that says so, and its undo."""
    back = f"{root_of(project)}/inbox"
    chosen = [decisions.get(number, "") for number in range(1, len(text) + 1)]
    return _answered(request, project, csrf, back, lambda: settle(memory, code, session, chosen, text))


def _answered(
    request: Request, project: str, csrf: str, back: str, change: Callable[[], ChangeDone], asked: Asked | None = None
) -> Response:
    """Make a change and answer: a browser with scripts gets the outcome, another one the view again."""
    is_script = "application/json" in request.headers.get("accept", "")
    without_paths = partial(request.app.state.doors.without_paths, key_of(request))
    try:
        if not hmac.compare_digest(csrf.encode(), form_mark(request).encode()):
            raise NotAllowed("That form is from another session of the server. Nothing was changed.")
        outcome = change()
    except KeptError as error:
        said = without_paths(_said(error))
        if is_script:
            return answer({"text": _one_line(said), "is_error": True}, status=status_of(error))
        return _again(request, _target(root_of(project), back), ChangeDone(text=said), asked=asked, is_error=True)
    outcome = replace(outcome, text=without_paths(outcome.text))
    if is_script:
        return answer({"is_error": False, **msgspec.to_builtins(outcome)})
    return _again(request, _target(root_of(project), back), outcome)


def _said(error: KeptError) -> str:
    """Return the text of an error, without a hint that is a command for a terminal."""
    return error.message if "`kept " in (error.hint or "") else str(error)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MOST_SAID]


def _target(root: str, back: str) -> str:
    """The view to show again: `back` if it is the address of one, else the memories."""
    return back if back.partition("?")[0] in [f"{root}/{name}" for name, *_ in VIEWS] else f"{root}/memories"


def _again(
    request: Request, target: str, outcome: ChangeDone, *, asked: Asked | None = None, is_error: bool = False
) -> Response:
    """Show the view with a line. The address has only its number: a link must not put words into our mouth."""
    visits: Visits = request.app.state.visits
    draft = {"ref": asked.ref, "verb": asked.verb, **asked.fields} if asked is not None and is_error else {}
    number = visits.leave_notice(
        _one_line(outcome.text),
        mark=form_mark(request),
        is_error=is_error,
        undo=outcome.undo,
        is_redo=outcome.is_redo,
        draft=draft,
    )
    return RedirectResponse(f"{target}{'&' if '?' in target else '?'}notice={number}", status_code=303)
