"""One function for each view: it asks the facade, and hands the template what to show."""

import hmac
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec.structs import replace

from kept import __version__
from kept.entrypoints.http.doors import HERE, Asking, Doors, Opened
from kept.entrypoints.http.keys import Key, Keys
from kept.entrypoints.http.routes_memories import etag_of
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.rows import ShownRow, axis_for, find, marked, noted, plain, scored
from kept.errors import KeptError, NotFound
from kept.memory import Kept
from kept.memory.read import Explained, explain_session
from kept.model import KINDS, Event, Memory, Message
from kept.ports import Where

HERE_FOLDER = Path(__file__).parent
VIEWS = (
    ("saw", "eye", "What the agent saw", "Saw"),
    ("memories", "stack", "Memories", "Memories"),
    ("inbox", "inbox", "Inbox", "Inbox"),
    ("timeline", "calendar", "Timeline", "Timeline"),
    ("sessions", "chat", "Sessions", "Sessions"),
    ("knowledge", "fact", "Knowledge", "Known"),
    ("health", "pulse", "Health", "Health"),
)
ASKS = {
    "saw": "Which memories were put before this prompt, and why these?",
    "memories": "What does it know, and since when?",
    "inbox": "What should a person decide?",
    "timeline": "What changed, when, and through whom?",
    "sessions": "What was said, and what of it was kept?",
    "knowledge": "What is to be done, and what do the files say?",
    "health": "Is everything in order, fast and within its limits?",
}
STATUSES = ("candidate", "confirmed", "pinned", "archived", "forgotten")
Status = Literal["", "candidate", "confirmed", "pinned", "archived", "forgotten"]
VERBS = ("reinforce", "demote", "pin", "unpin", "forget", "restore")
PAGE = 50
MESSAGES = 100
WEEKS = 12
FOUND, MISSED = 12, 8

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
_environment = Environment(
    loader=FileSystemLoader(HERE_FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
_environment.globals.update(family=words.family, sign=words.sign, age=words.age, day=words.day)
static = StaticFiles(directory=HERE_FOLDER / "static")


@router.get("/")
def home(request: Request, key: Asking) -> Response:
    """The first project: the one in which the server was started, or any."""
    doors: Doors = request.app.state.doors
    try:
        name = doors.name_of(HERE, key)
    except NotFound:
        projects = doors.projects(key)
        if not projects:
            return HTMLResponse(_environment.get_template("nothing.html").render(version=__version__))
        name = projects[0].name
    return RedirectResponse(f"/p/{quote(name, safe='')}/saw", status_code=303)


@router.get("/p/{project}/memories")
def memories(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    q: Annotated[str, Query(max_length=2_000)] = "",
    kind: Annotated[str, Query(max_length=50)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    status: Status = "",
    ref: Annotated[str, Query(max_length=100)] = "",
    after: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """What it knows: a search with reasons, or everything, newest first."""
    now, root = _now(memory), _root(project)
    kinds, tags = ([kind] if kind else []), ([tag] if tag else [])
    filters = {"q": q, "kind": kind, "tag": tag, "status": status}
    chosen: ShownRow | None = None
    if q.strip():
        found = memory.recall(q, limit=FOUND, kinds=kinds, tags=tags)
        misses = found.misses[:MISSED]
        axis = axis_for([hit.why for hit in found.hits], [miss.hit.why for miss in misses])
        rows = scored(found.hits, axis, now)
        missed = [
            replace(row, why_missed=miss.reason)
            for miss, row in zip(misses, scored([miss.hit for miss in misses], axis, now), strict=True)
        ]
        chosen = next((row for row in (*rows, *missed) if row.ref == ref), rows[0] if rows and not ref else None)
        heading = f"{len(rows)} found, {len(missed)} just missed"
        about = {"took": f"{found.took_ms:.1f} ms", "words": _literal(found.words, q), "next": ""}
    else:
        listed = memory.list(kinds=kinds, tags=tags, status=status or None, limit=PAGE, after=after or None)
        rows = [replace(plain(one, one.ref), shown=marked(one.content, ())) for one in listed]
        missed = []
        heading = "Newest first"
        following = f"{root}/memories?{urlencode(filters | {'after': rows[-1].ref})}" if len(rows) == PAGE else ""
        about = {"took": "", "words": (), "next": following}
    opened = ref or (rows[0].ref if rows else "")
    linked = [_linked(row, root, filters, opened) for row in rows]
    return _page(
        request,
        "memories",
        project,
        memory,
        key,
        q=q,
        kind=kind,
        tag=tag,
        status=status,
        kinds=KINDS,
        statuses=STATUSES,
        heading=heading,
        rows=linked,
        missed=[_linked(row, root, filters, opened) for row in missed],
        detail=_detail(memory, opened, chosen, now) if opened else None,
        ending="" if not rows else "These are all.",
        back=f"{root}/memories?{urlencode(filters | {'ref': opened})}",
        **about,
    )


@router.get("/p/{project}/saw")
def saw(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    session: Annotated[str, Query(max_length=200)] = "",
    receipt: Annotated[str, Query(max_length=50)] = "",
    replay: bool = False,
) -> Response:
    """What an agent was given, and why."""
    told = _told(memory, session)
    given = next((one for one in told if one.receipt == receipt), told[0] if told else None)
    if given is None:
        return _page(request, "saw", project, memory, key, given=None, back=f"{_root(project)}/saw")
    now = _now(memory)
    axis = axis_for([line["why"] for line in given.hits], [line["why"] for line in given.misses])
    hits = noted(given.hits, memory, axis, now)
    parts = [part for one in given.sections if (part := _part(one, hits, memory))["entries"]]
    shown = {entry.ref for part in parts for entry in part["entries"]}
    left_out = {str(one.get("ref")): str(one.get("reason", "")) for one in given.left_out}
    missed = [row for ref, row in noted(given.misses, memory, axis, now).items() if ref not in shown][:MISSED]
    missed += [plain(find(memory, ref), ref, because=why) for ref, why in left_out.items() if ref not in shown][:MISSED]
    tokens = sum(part["tokens"] for part in parts)
    budget = sum(part["budget"] for part in parts)
    longest = max((len(one.block) for one in told), default=1) or 1
    strip = [
        {
            "receipt": one.receipt,
            "label": (one.question.query or one.event or "")[:60],
            "size": len(one.block),
            "share": max(4, round(100 * len(one.block) / longest)),
        }
        for one in reversed(told)
    ]
    return _page(
        request,
        "saw",
        project,
        memory,
        key,
        given=given,
        strip=strip,
        asked=_literal(given.words, given.question.query),
        parts=parts,
        missed=missed,
        tokens=tokens,
        budget=budget,
        count=len(shown),
        bar=draw.shares([(part["name"], part["tokens"]) for part in parts], max(budget, tokens)),
        colours={part["name"]: part["colour"] for part in parts},
        replay=_replayed(memory, given, shown) if replay else None,
        back=f"{_root(project)}/saw?{urlencode({'session': given.session or '', 'receipt': given.receipt})}",
    )


@router.get("/p/{project}/inbox")
def inbox(request: Request, project: str, memory: Opened, key: Asking) -> Response:
    """What a person should decide, each with a proposal."""
    findings = list(memory.reviews.list(limit=PAGE))
    return _page(request, "inbox", project, memory, key, findings=findings, back=f"{_root(project)}/inbox")


@router.get("/p/{project}/timeline")
def timeline(request: Request, project: str, memory: Opened, key: Asking) -> Response:
    """What changed, by day and one by one."""
    events = memory.history(limit=5_000)[::-1]
    since = _now(memory).astimezone().date() - timedelta(weeks=WEEKS)
    counts = Counter(event.at.astimezone().date() for event in events if event.at.astimezone().date() > since)
    levels = draw.heat({day.isoformat(): count for day, count in counts.items()})
    first = since + timedelta(days=1)
    cells = [
        {
            "day": day.isoformat(),
            "count": counts.get(day, 0),
            "level": levels.get(day.isoformat(), 0),
            "x": ((day - first).days + first.weekday()) // 7 * 14,
            "y": day.weekday() * 14,
        }
        for day in (first + timedelta(days=number) for number in range(WEEKS * 7))
    ]
    return _page(
        request,
        "timeline",
        project,
        memory,
        key,
        days=sorted(((day.isoformat(), count) for day, count in counts.items()), reverse=True),
        cells=cells,
        weeks=WEEKS + 1,
        total=f"{sum(counts.values()):,}",
        events=[_event_line(memory, event) for event in events[:PAGE]],
        back=f"{_root(project)}/timeline",
    )


@router.get("/p/{project}/sessions")
def sessions(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    session: Annotated[str, Query(max_length=200)] = "",
    q: Annotated[str, Query(max_length=2_000)] = "",
    after: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """A conversation with its findings where they were said, or a search in all of them."""
    listed = memory.sessions()[::-1]
    opened = next((one for one in listed if one.name == session), listed[0] if listed and not q else None)
    hits = memory.recall(q, scope="sessions", limit=20).hits if q.strip() else ()
    messages: list[Message] = []
    notes: dict[int, list[Memory]] = {}
    loose: list[Memory] = []
    summary, following = "", ""
    if opened is not None:
        talk = memory.session(opened.name)
        said = [one for one in talk.messages() if one.n > after]
        messages = said[:MESSAGES]
        if len(said) > MESSAGES:
            following = f"{_root(project)}/sessions?{urlencode({'session': opened.name, 'after': messages[-1].n})}"
        found = [one for one in talk.findings() if one.kind != "summary"]
        summary = next((one.content for one in talk.findings() if one.kind == "summary"), "")
        for one in found:
            place = next((message.n for message in messages if one.content[:60] in message.content), 0)
            (notes.setdefault(place, []) if place else loose).append(one)
    return _page(
        request,
        "sessions",
        project,
        memory,
        key,
        q=q,
        hits=hits,
        sessions=listed[:PAGE],
        opened=opened,
        messages=messages,
        notes=notes,
        loose=loose,
        summary=summary,
        next=following,
        back=f"{_root(project)}/sessions",
    )


@router.get("/p/{project}/knowledge")
def knowledge(request: Request, project: str, memory: Opened, key: Asking) -> Response:
    """Tasks, and what the project's files state."""
    items: list[Memory] = []
    storage = memory.context.spaces.project()
    if storage is not None:
        with storage.reading() as reader:
            items = reader.select(Where(scope="items"), limit=PAGE)
    return _page(
        request,
        "knowledge",
        project,
        memory,
        key,
        tasks=memory.tasks(),
        items=items,
        back=f"{_root(project)}/knowledge",
    )


@router.get("/p/{project}/health")
def health(request: Request, project: str, memory: Opened, key: Asking, doctor: bool = False) -> Response:
    """Whether everything is in order."""
    status = memory.status()
    spaces = [_space(one) for one in status["spaces"]]
    examined = [_examined(one) for one in memory.store.doctor()] if doctor else []
    paused = "Paused: nothing is captured." if status["paused"] else "All is well."
    return _page(
        request,
        "health",
        project,
        memory,
        key,
        verdict=paused,
        schedule=words.day(request.app.state.schedule.next_at),
        spaces=spaces,
        examined=examined,
        back=f"{_root(project)}/health",
    )


@router.post("/p/{project}/do")
def do(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    csrf: Annotated[str, Form(max_length=200)],
    verb: Annotated[str, Form(max_length=20)],
    ref: Annotated[str, Form(max_length=200)] = "",
    back: Annotated[str, Form(max_length=4_000)] = "",
    content: Annotated[str, Form(max_length=1_000_000)] = "",
    tags: Annotated[str, Form(max_length=4_000)] = "",
    etag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Carry out one change, then show the view again with a line that says so, and an undo."""
    root = _root(project)
    target = back if back.startswith(root + "/") else f"{root}/memories"
    if not hmac.compare_digest(csrf, _csrf(request, key)):
        return _again(target, "That form is from another session of the server. Nothing was changed.", is_error=True)
    try:
        said = _carry_out(memory, verb, ref, content=content, tags=tags, etag=etag)
    except KeptError as error:
        return _again(target, str(error), is_error=True)
    return _again(target, said)


def _carry_out(memory: Kept, verb: str, ref: str, *, content: str, tags: str, etag: str) -> str:
    if verb == "undo":
        return f"Taken back: {memory.undo()[0].action}."
    if verb == "decide":
        memory.reviews.apply([ref])
        return f"Done: {ref.replace(':', ' ')}."
    if verb == "revise":
        if etag and etag != etag_of(memory.get(ref)):
            raise NotFound(f"Not saved: {ref} was changed in the meantime.", hint="Look at it again, then decide.")
        revised = memory.revise(ref, content.replace("\r", ""), [tag for tag in tags.split(",") if tag.strip()])
        return f"Memory {revised.ref} is revised."
    if verb in VERBS:
        changed: Memory = getattr(memory, verb)(ref)
        return f"{verb.capitalize()}: memory {changed.ref}."
    raise NotFound(f"There is no verb {verb!r}.")


def _again(target: str, said: str, *, is_error: bool = False) -> Response:
    mark = urlencode({"said": said[:300]} | ({"failed": "1"} if is_error else {}))
    return RedirectResponse(f"{target}{'&' if '?' in target else '?'}{mark}", status_code=303)


def _page(request: Request, view: str, project: str, memory: Kept, key: Key, **about: Any) -> Response:
    doors: Doors = request.app.state.doors
    projects = [one.name for one in doors.projects(key)]
    title = next(long for name, _, long, _ in VIEWS if name == view)
    shown = _environment.get_template(f"{view}.html").render(
        view=view,
        views=VIEWS,
        title=title,
        asks=ASKS[view],
        project=doors.name_of(project, key),
        projects=projects,
        root=_root(project),
        live=sum(reader.statistics(()).rows for reader in memory.context.readers()),
        due=len(memory.reviews.list(limit=99)) if view == "inbox" else 0,
        version=__version__,
        now=_now(memory),
        csrf=_csrf(request, key),
        toast=request.query_params.get("said", "")[:300],
        toast_error="failed" in request.query_params,
        **about,
    )
    return HTMLResponse(shown)


def _csrf(request: Request, key: Key) -> str:
    keys: Keys = request.app.state.keys
    return hmac.new(keys.own.encode(), f"form of {key.name}".encode(), "sha256").hexdigest()


def _root(project: str) -> str:
    return f"/p/{quote(project, safe='')}"


def _now(memory: Kept) -> datetime:
    return memory.context.now()


def _literal(asked: Iterable[str], query: str) -> list[str]:
    """The words that a person wrote, without those that recall put beside them."""
    return [word for word in asked if word in query.lower()]


def _linked(row: ShownRow, root: str, filters: Mapping[str, str], opened: str) -> ShownRow:
    link = f"{root}/memories?{urlencode({**filters, 'ref': row.ref})}"
    return replace(row, link=link, is_current=row.ref == opened)


def _detail(memory: Kept, ref: str, row: ShownRow | None, now: datetime) -> dict[str, Any] | None:
    try:
        one = memory.get(ref, forgotten=True)
    except KeptError:
        return None
    facts = [
        ("Said by", {"user": "a person", "agent": "an agent", "tool": "a tool"}.get(one.trust, "an unknown source")),
        ("Through", one.source.agent or one.source.origin),
        ("Written", words.day(one.created_at)),
        ("Verified", words.day(one.verified_at)),
        ("Last used", words.day(one.last_used_at)),
        ("Status", one.status),
        ("Tier", one.tier),
        ("Importance", f"{one.importance:g}"),
    ]
    rivals = [
        find(memory, conflict.right if conflict.left == one.uid else conflict.left)
        for conflict in memory.conflicts()
        if one.uid in (conflict.left, conflict.right)
    ]
    return {
        "memory": one,
        "row": row,
        "etag": etag_of(one),
        "facts": [(name, value) for name, value in facts if value],
        "source": _said(memory, one),
        "conflicts": [rival for rival in rivals if rival is not None],
        "events": [_event(event) for event in memory.history(ref)[::-1][:30]],
    }


def _said(memory: Kept, one: Memory) -> Any:
    """The message in which a memory was said, if it is still there."""
    storage = memory.context.spaces.project()
    if one.source.session is None or storage is None:
        return None
    with storage.reading() as reader:
        messages = reader.messages(one.source.session) if reader.session(one.source.session) else []
    return next((message for message in messages if one.content[:60] in message.content), None)


def _event(event: Event) -> dict[str, Any]:
    changed = event.changed or {}
    shown = [
        f"{name} {before} → {after}" for name, (before, after) in changed.items() if name in ("status", "feedback")
    ]
    if "content" in changed and event.action == "revise":
        shown.append(f"“{str(changed['content'][0])[:80]}” before")
    return {"action": event.action, "actor": event.actor, "at": event.at, "change": ", ".join(shown)}


def _event_line(memory: Kept, event: Event) -> dict[str, Any]:
    found = find(memory, event.subject) if "-" in event.subject and ":" not in event.subject else None
    line = {"action": event.action, "actor": event.actor, "at": event.at}
    return line | {"text": "" if found is None else found.content[:100], "ref": "" if found is None else found.ref}


def _told(memory: Kept, session: str) -> list[Explained]:
    """What a session was given, newest first; without a session, the newest one that was given anything."""
    storages = memory.context.readable()
    names = [session] if session else [one.name for one in memory.sessions()[::-1][:20]]
    return next((told for name in names if (told := explain_session(name, storages, limit=PAGE))), [])


def _part(section: Mapping[str, Any], hits: Mapping[str, ShownRow], memory: Kept) -> dict[str, Any]:
    name, colour = words.section(str(section.get("name", "")))
    entries = []
    for entry in section.get("entries", ()):
        ref, why = str(entry["ref"]), str(entry.get("why", ""))
        row = hits.get(ref) or plain(find(memory, ref), ref)
        entries.append(replace(row, because=why))
    tokens, budget = int(section.get("tokens", 0)), int(section.get("budget", 0))
    return {"name": name, "colour": colour, "entries": entries, "tokens": tokens, "budget": budget}


def _replayed(memory: Kept, given: Explained, shown: set[str]) -> list[tuple[str, str, str]]:
    """What the same prompt would bring now, against what it brought then."""
    now = memory.briefing(given.question.query, session=given.session)
    fresh = {entry.ref: entry.memory.content for section in now.sections for entry in section.entries}
    old = {ref: one.content if (one := find(memory, ref)) else "This memory is gone." for ref in shown}
    lines = [("+", text[:160], ref) for ref, text in fresh.items() if ref not in shown]
    lines += [("-", text[:160], ref) for ref, text in old.items() if ref not in fresh]
    return lines + [("=", text[:160], ref) for ref, text in old.items() if ref in fresh]


def _space(status: Mapping[str, Any]) -> dict[str, Any]:
    counts = status["memories"]
    facts = [(name.capitalize(), f"{number:,}") for name, number in counts.items()]
    facts += [("Size", f"{status.get('bytes', 0) / 1e6:.1f} MB"), ("Events", f"{status.get('events', 0):,}")]
    recalls = status.get("recalls") or {}
    if recalls.get("n"):
        facts.append(("Recall", f"{recalls['p50_ms']:.1f} ms, p95 {recalls['p95_ms']:.1f} ms"))
    refused = sorted(status.get("refused", {}).items(), key=lambda pair: -pair[1])
    return {"name": status["space"], "storage": status.get("storage", ""), "facts": facts, "refused": refused}


def _examined(one: Any) -> str:
    return " · ".join(f"{name}: {getattr(one, name)}" for name in one.__struct_fields__ if getattr(one, name))
