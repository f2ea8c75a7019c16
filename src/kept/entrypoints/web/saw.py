"""What the agent saw: a text as it was given, how its tokens were spent, why these memories, and what it would be."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from msgspec.structs import replace

from kept import tokens
from kept.entrypoints.http.doors import Asking, Opened, shown_to, told
from kept.entrypoints.http.keys import Key
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.rows import ShownRow, escape, find, plain, rows_of
from kept.entrypoints.web.shell import PAGE, address, draw_page, literal, root_of
from kept.memory import Kept, brief
from kept.memory.receipts import Explained
from kept.model import Session
from kept.recall import profile_of

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MISSED = 8
SESSIONS = 20
_MEMORY = re.compile(r"^(?P<open>.*?)\[id:(?P<ref>g?\d+)\](?P<text>.*?)(?P<close></\w+>)?$", re.DOTALL)


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
    """What an agent was given, or what it asked for, and why."""
    root = root_of(project)
    recent = _newest_sessions(memory)
    noted = _noted(memory, key, session or next((one.name for one in recent if _noted(memory, key, one.name)), ""))
    given = next((one for one in noted if one.receipt == receipt), None)
    if given is None and receipt:
        given, noted = shown_to(key, memory.why(receipt)), []
    given = given or next((one for one in noted if one.block), noted[0] if noted else None)
    about: dict[str, Any] = {"sessions": recent, "asked_for": _asked_for(memory, key), "session": session}
    if given is None:
        return draw_page(request, "saw", project, memory, key, given=None, back=f"{root}/saw", **about)
    return draw_page(
        request,
        "saw",
        project,
        memory,
        key,
        given=given,
        when=words.EVENTS.get(given.event or "", given.event or "asked by an agent or a person"),
        strip=_strip(noted, root),
        asked=literal(given.words, given.question.query),
        also=[word for word in given.words if word not in given.question.query.lower()][:8],
        **_shown(memory, given),
        replay=_replayed(memory, given) if replay else None,
        back=address(root, "saw", session=given.session, receipt=given.receipt),
        **about,
    )


def _newest_sessions(memory: Kept) -> list[Session]:
    return memory.sessions()[: -SESSIONS - 1 : -1]


def _noted(memory: Kept, key: Key, session: str) -> list[Explained]:
    """What a session was given, newest first."""
    return told(memory, key, session, limit=PAGE) if session else []


def _asked_for(memory: Kept, key: Key) -> list[dict[str, Any]]:
    """The last recalls that an agent or a person asked for, newest first."""
    return [
        {"receipt": one.receipt, "at": one.at, "query": one.question.query, "hits": len(one.hits)}
        for one in told(memory, key, None, limit=SESSIONS)
        if one.kind == "recall"
    ]


def _strip(noted: list[Explained], root: str) -> list[dict[str, Any]]:
    longest = max((len(one.block) for one in noted), default=1) or 1
    return [
        {
            "receipt": one.receipt,
            "link": address(root, "saw", session=one.session, receipt=one.receipt),
            "label": one.question.query[:60] or words.EVENTS.get(one.event or "", one.event or ""),
            "size": len(one.block),
            "share": max(4, round(100 * len(one.block) / longest)),
        }
        for one in reversed(noted)
    ]


def _shown(memory: Kept, given: Explained) -> dict[str, Any]:
    """The parts of a text with their memories, and what just missed, all on one axis."""
    best = max((line["score"] for line in given.hits), default=0.0)
    share = profile_of(given.question, memory.settings).threshold_share
    whys = [line["why"] for line in (*given.hits, *given.misses)]
    axis = draw.axis_of(whys, floor=best * share)
    hits = rows_of(given.hits, memory, axis)
    sections = given.sections or ({"name": "returned", "entries": [{"ref": ref, "why": ""} for ref in hits]},)
    parts = [_part(one, hits, memory) for one in sections]
    shown = {entry.ref for part in parts for entry in part["entries"]}
    missed = [row for ref, row in rows_of(given.misses, memory, axis).items() if ref not in shown][:MISSED]
    for one in given.left_out[:MISSED]:
        ref, why = str(one.get("ref")), str(one.get("reason", ""))
        if ref not in shown:
            missed.append(plain(find(memory, ref), ref, because=f"left out: {why}"))
    spent = sum(part["tokens"] for part in parts)
    whole = tokens.estimate(given.block)
    budget = sum(part["budget"] for part in parts)
    if budget and whole > spent:
        parts.append(_filler("Markup", "frame", whole - spent, "headings and the note"))
    used = max(whole, spent)
    return {
        "parts": parts,
        "missed": missed,
        "axis": axis,
        "floor": best * share,
        "share": share,
        "tokens": used,
        "budget": budget,
        "free": max(0, budget - used) if budget else 0,
        "count": len(shown),
        "bar": draw.shares([(part["name"], part["tokens"]) for part in parts], max(budget, used)),
        "colours": {part["name"]: part["colour"] for part in parts},
        "block": _lines(given.block, {entry.ref: part["colour"] for part in parts for entry in part["entries"]}),
    }


def _part(section: Mapping[str, Any], hits: Mapping[str, ShownRow], memory: Kept) -> dict[str, Any]:
    name, colour = words.section(str(section.get("name", "")))
    entries = []
    for entry in section.get("entries", ()):
        ref, why = str(entry["ref"]), str(entry.get("why", ""))
        entries.append(replace(hits.get(ref) or plain(find(memory, ref), ref), because=why))
    entries.sort(key=lambda entry: -entry.score)  # in a section without scores, as they were given
    spent, budget = int(section.get("tokens", 0)), int(section.get("budget", 0))
    about = words.counted(len(entries), "memory", "memories")
    about += ", with room of others" if budget and spent > budget else ""
    return _filler(name, colour, spent, about) | {
        "entries": entries,
        "budget": budget,
        "share": min(100, round(100 * spent / budget)) if budget else 0,
    }


def _filler(name: str, colour: str, spent: int, about: str) -> dict[str, Any]:
    return {"name": name, "colour": colour, "tokens": spent, "about": about, "entries": [], "budget": 0, "share": 0}


def _lines(block: str, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """The block line by line, byte for byte: each that names a memory has the colour of its section."""
    found: list[dict[str, Any]] = []
    colour = ""
    for line in block.split("\n"):
        match = _MEMORY.match(line)
        if match and match["ref"] in colours:
            colour = colours[match["ref"]]
            link = Markup('<a href="#m{0}">[id:{0}]</a>').format(match["ref"])
            shown = Markup("{}{}{}{}").format(_tag(match["open"]), link, escape(match["text"]), _tag(match["close"]))
            found.append({"shown": shown, "kind": f"mem in-{colour}"})
        elif colour and line.startswith(("- ", "  ", "\t")):
            found.append({"shown": escape(line), "kind": f"mem in-{colour}"})
        else:
            colour = ""
            found.append({"shown": escape(line) if line else Markup("&nbsp;"), "kind": "tag"})
    return found


def _tag(text: str | None) -> Markup:
    return Markup('<span class="tag">{}</span>').format(escape(text)) if text else Markup("")


def _replayed(memory: Kept, given: Explained) -> dict[str, Any]:
    """What the same prompt would bring now, against what it brought then."""
    now = brief.replay(memory.context, given)
    fresh = {entry.ref: entry.memory.content for section in now.sections for entry in section.entries}
    then = [str(entry["ref"]) for section in given.sections for entry in section.get("entries", ())]
    then = then or [line["ref"] for line in given.hits]
    lines = [("add", "+", "new", ref, fresh[ref], "") for ref in fresh if ref not in then]
    same = 0
    for ref in dict.fromkeys(then):
        one = find(memory, ref)
        text = "This memory is gone." if one is None else one.content
        if ref not in fresh:
            lines.append(("gone", "−", "no longer", ref, text, ""))
        elif before := _before(memory, ref, given):
            lines.append(("changed", "~", "changed", ref, text, before))
        else:
            same += 1
    return {"lines": lines, "same": same, "tokens": now.tokens}


def _before(memory: Kept, ref: str, given: Explained) -> str:
    """The text that a memory had when it was given, if it was revised since."""
    for event in memory.history(ref):
        if event.at > given.at and event.changed and "content" in event.changed:
            return str(event.changed["content"][0] or "")
    return ""
