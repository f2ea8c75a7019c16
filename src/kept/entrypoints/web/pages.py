"""The views together, the first address, and the one address that takes every change of the page."""

import hmac
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from kept.entrypoints.http.doors import HERE, Asking, Doors, Opened
from kept.entrypoints.http.shapes import etag_of
from kept.entrypoints.http.visits import Visits
from kept.entrypoints.web import health, inbox, knowledge, memories, saw, sessions, timeline
from kept.entrypoints.web.shell import FOLDER, VIEWS, draw_nothing, form_mark, root_of
from kept.entrypoints.wording import settled_sentence
from kept.errors import KeptError, NotFound
from kept.memory import Kept
from kept.model import Memory

SAID = {
    "reinforce": "Memory {ref} helped: its feedback is {feedback:+d} now.",
    "demote": "Memory {ref} was wrong: its feedback is {feedback:+d} now.",
    "pin": "Memory {ref} is pinned: every briefing has it.",
    "unpin": "Memory {ref} is not pinned any more.",
    "forget": "Memory {ref} is forgotten.",
    "restore": "Memory {ref} is back.",
}

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
    ref: Annotated[str, Form(max_length=200)] = "",
    back: Annotated[str, Form(max_length=4_000)] = "",
    content: Annotated[str, Form(max_length=1_000_000)] = "",
    tags: Annotated[str, Form(max_length=4_000)] = "",
    etag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Carry out one change, then show the view again with a line that says so, and an undo."""
    target = _target(root_of(project), back)
    if not hmac.compare_digest(csrf.encode(), form_mark(request).encode()):
        sentence = "That form is from another session of the server. Nothing was changed."
        return _again(request, target, sentence, is_error=True)
    try:
        sentence = _carry_out(memory, verb, ref, content=content, tags=tags, etag=etag)
    except KeptError as error:
        return _again(request, target, str(error), is_error=True)
    return _again(request, target, sentence)


@router.post("/p/{project}/judge")
def judge(
    request: Request,
    project: str,
    memory: Opened,
    csrf: Annotated[str, Form(max_length=200)],
    code: Annotated[str, Form(max_length=20)],
    decision: Annotated[list[str], Form(max_length=100)],
    text: Annotated[list[str], Form(max_length=100)],
) -> Response:
    """Settle the list of a session, then show the inbox again with a line that says so, and an undo."""
    target = f"{root_of(project)}/inbox"
    if not hmac.compare_digest(csrf.encode(), form_mark(request).encode()):
        sentence = "That form is from another session of the server. Nothing was changed."
        return _again(request, target, sentence, is_error=True)
    try:
        return _again(request, target, _judged(memory, code, decision, text))
    except KeptError as error:
        return _again(request, target, str(error), is_error=True)


def _judged(memory: Kept, code: str, decisions: list[str], texts: list[str]) -> str:
    """Settle a list by a decision and a text for each of its numbers. A text that was changed is kept so."""
    asked = memory.proposals()
    if asked.code != code or len(asked.statements) != len(texts) or len(decisions) != len(texts):
        raise NotFound("Not settled: the list has changed in the meantime.", hint="Look at it again, then decide.")
    rows = [*zip(asked.statements, decisions, (said.replace("\r", "").strip() for said in texts), strict=True)]
    numbers = {wanted: [one.n for one, chosen, _ in rows if chosen == wanted] for wanted in ("keep", "drop")}
    changed = {one.n: said for one, chosen, said in rows if chosen != "drop" and said not in ("", one.text.strip())}
    return settled_sentence(memory.judge(code, keep=numbers["keep"], drop=numbers["drop"], rewrite=changed))


def _target(root: str, back: str) -> str:
    """The view to show again: `back` if it is the address of one, else the memories."""
    return back if back.partition("?")[0] in [f"{root}/{name}" for name, *_ in VIEWS] else f"{root}/memories"


def _carry_out(memory: Kept, verb: str, ref: str, *, content: str, tags: str, etag: str) -> str:
    if verb == "undo":
        return f"Taken back: {memory.undo()[0].action}."
    if verb == "decide":
        changed = memory.reviews.apply([ref])
        return f"Done: {ref.partition(':')[0]} {changed[0].ref if changed else ''}."
    if verb == "revise":
        if etag and etag != etag_of(memory.get(ref)):
            raise NotFound(f"Not saved: {ref} was changed in the meantime.", hint="Look at it again, then decide.")
        revised = memory.revise(ref, content.replace("\r", ""), [tag for tag in tags.split(",") if tag.strip()])
        return f"Memory {revised.ref} is revised."
    if verb in SAID:
        one: Memory = getattr(memory, verb)(ref)
        return SAID[verb].format(ref=one.ref, feedback=one.feedback)
    raise NotFound(f"There is no verb {verb!r}.")


def _again(request: Request, target: str, sentence: str, *, is_error: bool = False) -> Response:
    """Show the view with a line. The address has only its number: a link must not put words into our mouth."""
    visits: Visits = request.app.state.visits
    number = visits.leave_notice(sentence[:300], mark=form_mark(request), is_error=is_error)
    return RedirectResponse(f"{target}{'&' if '?' in target else '?'}notice={number}", status_code=303)
