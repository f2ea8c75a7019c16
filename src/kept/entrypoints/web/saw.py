"""What the agent saw: a text as it was given, how its tokens were spent, why these memories, and what it would be."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from msgspec.structs import replace

from kept import tokens
from kept.entrypoints.hook.folder import HookFolder
from kept.entrypoints.http.doors import Asking, Opened, refs_shown_to, shown_to, told
from kept.entrypoints.http.keys import Key, Keys
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.rows import ShownRow, escape, find, plain, rows_of
from kept.entrypoints.web.sessions import titles
from kept.entrypoints.web.shell import PAGE, address, draw_page, literal, root_of
from kept.memory import Kept
from kept.memory.reasons import why_nothing
from kept.memory.receipts import RecallReceipt
from kept.model import Memory

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MISSED = 5
SESSIONS = 20
SHOWN_REASONS = 3
FAILURES = 5
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
    recent = _given_sessions(memory)
    noted, given = _chosen(memory, key, session, receipt, recent)
    named = titles(request, memory, [one["name"] for one in recent])
    about: dict[str, Any] = {"sessions": recent, "asked_for": _asked_for(memory, key), "session": session}
    about |= {"titles": named, "failures": _failures(request, key), "last_receipt": memory.look().last_receipt()}
    if given is None:
        following = _next(memory) if memory.look().live() else None
        about |= {"next": following, "back": f"{root}/saw"}
        return draw_page(request, "saw", project, memory, key, given=None, listed=[], **about)
    return draw_page(
        request,
        "saw",
        project,
        memory,
        key,
        given=given,
        when=words.EVENTS.get(given.event or "", given.event or "asked by an agent or a person"),
        strip=_strip(noted, root),
        listed=[_listed(one, root) for one in noted],
        nothing=_nothing(memory, given),
        asked=literal(given.words, given.question.query),
        **_shown(memory, given),
        replay=_replayed(memory, given) if replay else None,
        back=address(root, "saw", session=given.session, receipt=given.receipt),
        **about,
    )


def _chosen(
    memory: Kept, key: Key, session: str, receipt: str, recent: list[dict[str, Any]]
) -> tuple[list[RecallReceipt], RecallReceipt | None]:
    """Find the receipt to show, and all that its session was given.

    Without a session, the last one that was given anything; without a receipt, its last one with a text.
    """
    noted = _noted(memory, key, session or next((one["name"] for one in recent), ""))
    named = next((one for one in noted if one.receipt == receipt), None)
    if named is not None:
        return noted, named
    if receipt:
        return [], shown_to(key, memory.why(receipt))
    return noted, next((one for one in noted if one.block), noted[0] if noted else None)


def _given_sessions(memory: Kept) -> list[dict[str, Any]]:
    """Return the sessions that were given anything, the last one first, also before their transcripts are known."""
    told_last = memory.look().last_told(memory.look().sessions_told(limit=SESSIONS))
    return [{"name": one.session, "agent": one.agent, "at": one.at} for one in told_last if one.event]


def _next(memory: Kept) -> dict[str, Any]:
    """Show the text that the next session would be given, or why it would be given none."""
    briefing = memory.look().next_start()
    entries = [(entry, section.name) for section in briefing.sections for entry in section.entries]
    colours = {entry.ref: words.section(name)[1] for entry, name in entries}
    return {
        "tokens": briefing.tokens,
        "entries": [
            {"memory": entry.memory, "reason": entry.reason, "section": words.section(name)} for entry, name in entries
        ],
        "block": _lines(briefing.text, colours) if entries else [],
        "error": briefing.error or "",
    }


def _failures(request: Request, key: Key) -> list[dict[str, str]]:
    """Return the last failures of hooks, newest first: for the person who serves, whose agents they belong to."""
    if not key.is_owner:
        return []
    keys: Keys = request.app.state.keys
    found = HookFolder(keys.home).failures()[-FAILURES:]
    names = ("at", "agent", "event", "failure")
    return [{name: str(entry.get(name, ""))[:300] for name in names} for entry in reversed(found)]


def _noted(memory: Kept, key: Key, session: str) -> list[RecallReceipt]:
    """What a session was given, newest first."""
    return told(memory, key, session, limit=PAGE) if session else []


def _asked_for(memory: Kept, key: Key) -> list[dict[str, Any]]:
    """Return the last recalls of agents and people, newest first; only an admin sees hits of global memory."""
    return [
        {"receipt": one.receipt, "at": one.at, "query": one.query, "hits": len(refs_shown_to(key, one.refs))}
        for one in memory.look().glances(limit=SESSIONS)
        if one.kind == "recall"
    ]


def _strip(noted: list[RecallReceipt], root: str) -> list[dict[str, Any]]:
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


def _listed(one: RecallReceipt, root: str) -> dict[str, Any]:
    """Show a text in the list of its session: its moment, how many lines it had, and why these, or why none."""
    entries = [entry for section in one.sections for entry in section.get("entries", ())]
    reasons = list(dict.fromkeys(str(entry.get("reason", "")) for entry in entries if entry.get("reason")))
    more = [f"{len(reasons) - SHOWN_REASONS} more reasons"] if len(reasons) > SHOWN_REASONS else []
    nothing = why_nothing(one)
    return {
        "receipt": one.receipt,
        "link": address(root, "saw", session=one.session, receipt=one.receipt),
        "moment": words.moment(one),
        "said": one.question.query or words.OCCASIONS.get(words.moment(one), ""),
        "at": one.at,
        "lines": words.counted(len(entries), "line") if entries else "nothing",
        "why": "; ".join(reasons[:SHOWN_REASONS] + more) if nothing is None else str(nothing),
    }


def _nothing(memory: Kept, given: RecallReceipt) -> dict[str, Any] | None:
    """Say why nothing was given, with the memory that came nearest as it is today."""
    nothing = why_nothing(given)
    if nothing is None:
        return None
    nearest = None if nothing.ref is None else find(memory, nothing.ref)
    return {"reason": nothing.reason, "ref": nothing.ref, "nearest": nearest}


def _shown(memory: Kept, given: RecallReceipt) -> dict[str, Any]:
    """Show the parts of a text with their memories, and what just missed, all on one axis."""
    best = max((line["score"] for line in given.hits), default=0.0)
    share = memory.look().threshold_share(given.question)
    axis = draw.axis_of([line["why"] for line in (*given.hits, *given.misses)], floor=best * share)
    known = memory.look().found(_named(given))
    parts = _parts(known, given, axis)
    entries = {entry.ref: part["colour"] for part in parts for entry in part["entries"]}
    budget = sum(part["budget"] for part in parts)
    used = max(tokens.estimate(given.block), sum(part["tokens"] for part in parts))
    return {
        "parts": parts,
        "missed": _missed(known, given, axis, entries.keys()),
        "axis": axis,
        "floor": best * share,
        "share": share,
        "tokens": used,
        "budget": budget,
        "free": max(0, budget - used) if budget else 0,
        "count": len(entries),
        "bar": draw.shares([(part["name"], part["tokens"]) for part in parts], max(budget, used)),
        "colours": {part["name"]: part["colour"] for part in parts},
        "block": _lines(given.block, entries),
    }


def _named(given: RecallReceipt) -> list[str]:
    """Return the refs of all memories that a receipt names and the page shows."""
    lines = (*given.hits, *given.misses, *given.left_out[:MISSED])
    return [*(str(line["ref"]) for line in lines), *_refs_of(given)]


def _parts(known: Mapping[str, Memory], given: RecallReceipt, axis: draw.Axis) -> list[dict[str, Any]]:
    """Show the sections of a text; of a recall, all that it returned. Markup around them is a part of its own."""
    hits = rows_of(given.hits, known, axis)
    sections = given.sections or ({"name": "returned", "entries": [{"ref": ref, "reason": ""} for ref in hits]},)
    parts = [_part(one, hits, known) for one in sections]
    rest = tokens.estimate(given.block) - sum(part["tokens"] for part in parts)
    if rest > 0 and any(part["budget"] for part in parts):
        parts.append(_filler("Markup", "frame", rest, "headings and the note"))
    return parts


def _missed(
    known: Mapping[str, Memory], given: RecallReceipt, axis: draw.Axis, shown: Collection[str]
) -> list[ShownRow]:
    """Show the near misses of the question, then what had no room in the text: each memory once.

    What the text left out it would have had: that reason tells more than the distance from the question.
    """
    misses = [line for line in given.misses if line["ref"] not in shown][:MISSED]
    found = rows_of(misses, known, axis)
    for one in given.left_out[:MISSED]:
        ref = str(one.get("ref"))
        if ref not in shown:
            because = f"left out: {one.get('reason', '')}"
            found[ref] = replace(found.get(ref) or plain(known.get(ref), ref), because=because)
    return [*found.values()]


def _part(section: Mapping[str, Any], hits: Mapping[str, ShownRow], known: Mapping[str, Memory]) -> dict[str, Any]:
    name, colour = words.section(str(section.get("name", "")))
    entries = []
    for entry in section.get("entries", ()):
        ref, why = str(entry["ref"]), str(entry.get("reason", ""))
        entries.append(replace(hits.get(ref) or plain(known.get(ref), ref), because=why))
    entries.sort(key=lambda entry: -entry.score)  # in a section without scores, as they were given
    spent, budget = int(section.get("tokens", 0)), int(section.get("budget", 0))
    about = "headings and the note" if colour == "frame" else words.counted(len(entries), "memory", "memories")
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


def _replayed(memory: Kept, given: RecallReceipt) -> dict[str, Any]:
    """Compare what the same prompt would bring now with what it brought then."""
    now = memory.look().briefing_now(given)
    fresh = {entry.ref: entry.memory.content for section in now.sections for entry in section.entries}
    then = dict.fromkeys(_refs_of(given))
    added = [("add", "+", "new", ref, content, "") for ref, content in fresh.items() if ref not in then]
    compared = [_compared(memory, ref, given, is_fresh=ref in fresh) for ref in then]
    changed = [line for line in compared if line is not None]
    return {"lines": added + changed, "same": len(compared) - len(changed), "tokens": now.tokens}


def _refs_of(given: RecallReceipt) -> list[str]:
    """Return the refs of the memories that were given, or returned."""
    told = [str(entry["ref"]) for section in given.sections for entry in section.get("entries", ())]
    return told or [line["ref"] for line in given.hits]


def _compared(memory: Kept, ref: str, given: RecallReceipt, *, is_fresh: bool) -> tuple[str, ...] | None:
    """Return the line about a memory that would not come again, or with another text; None for the same text."""
    one = find(memory, ref)
    text = "This memory is gone." if one is None else one.content
    if not is_fresh:
        return ("gone", "−", "no longer", ref, text, "")
    before = _before(memory, ref, given)
    return ("changed", "~", "changed", ref, text, before) if before else None


def _before(memory: Kept, ref: str, given: RecallReceipt) -> str:
    """Return the text that a memory had when it was given, if it was revised since."""
    for event in memory.history(ref):
        if event.at > given.at and event.changed and "content" in event.changed:
            return str(event.changed["content"][0] or "")
    return ""
