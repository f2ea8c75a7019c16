"""Sessions: a conversation with its findings where they were said, and a search in all conversations."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kept.entrypoints.http.doors import Asking, Opened, told
from kept.entrypoints.http.keys import Key
from kept.entrypoints.web import words
from kept.entrypoints.web.activity import Overviews
from kept.entrypoints.web.rows import found_in, quoted, redacted
from kept.entrypoints.web.shell import LAST, PAGE, address, draw_detail, draw_page, now_of, root_of, wants_detail
from kept.memory import Kept
from kept.memory.findings import message_id_of
from kept.memory.receipts import RecallReceipt
from kept.memory.word_search import marks_of
from kept.model import Memory, Message, SessionRecord

if TYPE_CHECKING:
    from kept.memory.look import SessionOverview, SessionPage

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MESSAGES, FOUND, SHOWN_CHARS, TITLE_CHARS, EXCERPT_CHARS = 100, 20, 3_000, 90, 240
BEFORE = 4  # messages that are shown before one that was found
TOLD_AT = {
    "Start": "Told at the start",
    "Prompt": "Told with this prompt",
    "Action": "Told at a tool call",
    "Failure": "Told after a failure",
    "List to judge": "Asked to judge",
}
ROLES = {"user": "u", "assistant": "a"}


@router.get("/p/{project}/sessions")
def sessions(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    session: Annotated[str, Query(max_length=200)] = "",
    q: Annotated[str, Query(max_length=2_000)] = "",
    after: Annotated[int, Query(ge=0, le=LAST)] = 0,
    page: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> Response:
    """A conversation with its findings where they were said, or a search in all of them."""
    root, now = root_of(project), now_of(memory)
    every = memory.sessions(limit=(page + 1) * PAGE + 1, newest_first=True)
    listed = every[page * PAGE : (page + 1) * PAGE]
    overviews: Overviews = request.app.state.overviews
    hits = _found(request, memory, q, root, (session, after)) if q.strip() else []
    name, after = (session, after) if session else _first(hits, listed, q)
    opened = memory.look().session(name, after=after, limit=MESSAGES + 1) if name else None
    talk = None if opened is None else _talk(memory, key, opened, after, root, q)
    all_of_them = address(root, "sessions", q=q, page=page)
    back = address(root, "sessions", session=session, q=q, after=after)
    if wants_detail(request):
        return draw_detail(request, "talk.html", project, memory, talk=talk, all_of_them=all_of_them, back=back)
    return draw_page(
        request,
        "sessions",
        project,
        memory,
        key,
        q=q,
        hits=hits,
        groups=_grouped(overviews.of(memory, listed), now, root, name),
        talk=talk,
        is_chosen=bool(session),
        older=address(root, "sessions", page=page + 1) if len(every) > (page + 1) * PAGE else "",
        all_of_them=all_of_them,
        back=back,
    )


def _opened(said: Sequence[Message], session: str, after: int) -> Message | None:
    """Return the message that an address opens; without one, the first of its session, or of all."""
    exact = (one for one in said if one.session == session and max(0, one.n - BEFORE) == after)
    return next(exact, next((one for one in said if session in ("", one.session)), None))


def _first(hits: list[dict[str, Any]], listed: Sequence[SessionRecord], q: str) -> tuple[str, int]:
    """Return the session to open, and the message after which it begins: that of the first hit, or the newest one."""
    for hit in hits:
        return hit["message"].session, max(0, hit["message"].n - BEFORE)
    return (listed[0].name, 0) if listed and not q else ("", 0)


def _found(request: Request, memory: Kept, q: str, root: str, opened_at: tuple[str, int]) -> list[dict[str, Any]]:
    """Return the messages that fit, with the part around the words; the opened one, or the first, is current."""
    said = [hit.message for hit in memory.look().search(q, scope="sessions", limit=FOUND).hits if hit.message]
    named = titles(request, memory, [one.session for one in said])
    opened = _opened(said, *opened_at)
    return [
        {
            "message": one,
            "shown": found_in(one.content, marks_of(q), EXCERPT_CHARS),
            "link": address(root, "sessions", q=q, session=one.session, after=max(0, one.n - BEFORE)) + f"#n{one.n}",
            "title": words.cut(named.get(one.session, one.session), 40),
            "is_current": one is opened,
        }
        for one in said
    ]


def _grouped(listed: "list[SessionOverview]", now: datetime, root: str, current: str) -> list[Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in listed:
        session = one.session
        groups.setdefault(words.heading(session.started_at, now), []).append(
            {
                "session": session,
                "title": _title(session, one.first_said),
                "messages": words.counted(one.messages, "message"),
                "kept": len(session.findings),
                "link": address(root, "sessions", session=session.name),
                "is_current": session.name == current,
            }
        )
    return list(groups.items())


def _title(session: SessionRecord, first_said: Message | None) -> str:
    """Return what a session is about: what its user said first."""
    said = session.summary or session.name if first_said is None else first_said.content
    return words.title(said, TITLE_CHARS)


def titles(request: Request, memory: Kept, names: Sequence[str]) -> dict[str, str]:
    """Return the titles of these sessions, as far as their conversations are known."""
    overviews: Overviews = request.app.state.overviews
    known = overviews.of(memory, memory.look().sessions_named(names))
    return {one.session.name: _title(one.session, one.first_said) for one in known}


def _talk(memory: Kept, key: Key, opened: "SessionPage", after: int, root: str, q: str) -> dict[str, Any]:
    session = opened.session
    shown, is_more = opened.messages[:MESSAGES], len(opened.messages) > MESSAGES
    places, loose = _placed(opened.findings, shown)
    given = _given_at(told(memory, key, session.name, limit=PAGE), shown)
    here = {"session": session.name, "q": q}
    return {
        "session": session,
        "title": _title(session, opened.first_said),
        "turns": [_turn(one, places.get(one.n, []), given.get(one.n, []), root) for one in shown],
        "map": _map(shown, places),
        "loose": [] if is_more or after else loose,
        "summary": opened.summary,
        "number": opened.last_number,
        "last": shown[-1].at if shown else None,
        "earlier": address(root, "sessions", **here, after=max(0, after - MESSAGES)) if after else "",
        "later": address(root, "sessions", **here, after=shown[-1].n) if is_more else "",
        "saw": address(root, "saw", session=session.name),
    }


def _turn(message: Message, found: list[Memory], given: list[RecallReceipt], root: str) -> dict[str, Any]:
    content = _content(message)
    cut = content[:SHOWN_CHARS]
    role = message.role.replace("_", " ")
    is_of_tool = message.role in ("tool_call", "tool_result")
    return {
        "message": message,
        "shown": redacted(quoted(cut, [one.content for one in found])),
        "cut": len(content) - len(cut),
        "is_code": is_of_tool,
        "who": message.name or message.speaker or role,
        "kind": role if message.name and is_of_tool else "",
        "notes": found,
        "given": [_given_link(one, root) for one in given],
    }


def _content(message: Message) -> str:
    if message.role == "tool_call" and message.input:
        return "\\n".join(f"{name}: {value}" for name, value in message.input.items())
    return message.content


def _given_link(one: RecallReceipt, root: str) -> dict[str, Any]:
    return {
        "link": address(root, "saw", session=one.session, receipt=one.receipt),
        "moment": "Refused a call" if one.guard == "refused" else TOLD_AT.get(words.moment(one), "Told"),
        "held": words.outcome(one),
        "is_refused": one.guard == "refused",
        "receipt": one.receipt,
    }


def _placed(findings: list[Memory], messages: list[Message]) -> tuple[dict[int, list[Memory]], list[Memory]]:
    """Each finding at the message in which it was said; those without one."""
    by_id = {message.id: message.n for message in messages}
    places: dict[int, list[Memory]] = {}
    loose = []
    for one in findings:
        place = by_id.get(message_id_of(one)) or next(
            (message.n for message in messages if one.content[:60] in message.content), 0
        )
        places.setdefault(place, []).append(one) if place else loose.append(one)
    return places, loose


def _given_at(given: list[RecallReceipt], messages: list[Message]) -> dict[int, list[RecallReceipt]]:
    """Each text that the session was given at the message that followed it."""
    found: dict[int, list[RecallReceipt]] = {}
    for one in reversed(given):
        following = (message.n for message in messages if message.at is not None and message.at >= one.at)
        place = next(following, messages[-1].n if messages else 0)
        found.setdefault(place, []).append(one)
    return found


def _map(messages: list[Message], places: dict[int, list[Memory]]) -> dict[str, Any]:
    """The conversation at a glance: a bar a message, high for people, low for tools; dots where something was kept."""
    width = min(4.5, 100 / max(1, len(messages)))
    heights = {"u": 16, "a": 11, "t": 6}
    bars = []
    for number, message in enumerate(messages):
        kind = ROLES.get(message.role, "t")
        bars.append(
            {"kind": kind, "x": round(number * width, 2), "height": heights[kind], "is_found": message.n in places}
            | {"middle": round((number + 0.4) * width, 2), "n": message.n}
        )
    return {"bars": bars, "width": round(width * 0.8, 2), "found": sorted(places)}
