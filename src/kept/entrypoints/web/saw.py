"""What the agent saw: a text as it was given, how its tokens were spent, why these memories, and what it would be."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from msgspec.structs import replace

from kept import tokens
from kept.entrypoints.hook.folder import RECENT_DAYS, HookFailure, HookFolder
from kept.entrypoints.http.doors import Asking, Opened, refs_shown_to, shown_to, told
from kept.entrypoints.http.keys import Key, Keys
from kept.entrypoints.web import draw, words
from kept.entrypoints.web.rows import ShownRow, escape, find, plain, rows_of
from kept.entrypoints.web.sessions import titles
from kept.entrypoints.web.shell import PAGE, address, draw_page, literal, now_of, root_of
from kept.memory import Kept
from kept.memory.reasons import TOLD_BEFORE, why_nothing
from kept.memory.receipts import RecallReceipt
from kept.model import Memory

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MISSED = 5
SESSIONS = 20
SHOWN_REASONS = 3
FAILURES = 5
REPLAYED = ("recall", "briefing")  # kinds of receipts whose question can be asked again
MOST_CHARS = 110  # of a session in the list of them
SUB_AGENT = ".agent-"  # in the id of the session of a sub-agent, behind that of the session that started it
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
    root, now = root_of(project), now_of(memory)
    recent = _given_sessions(memory)
    noted, given = _chosen(memory, key, _parent_of(session), receipt, recent)
    judged = [] if given is None or given.judged is None else [given.judged]
    named = titles(request, memory, [*(one["name"] for one in recent), *judged])
    about: dict[str, Any] = {"sessions": _choices(recent, named, now), "asked_for": _asked_for(memory, key)}
    about |= {"titles": named, "failures": _failures(request, key, now), "session": session}
    about |= {"last_receipt": memory.look().last_receipt()}
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
        when=words.when(given),
        moment=words.moment(given),
        occasion=_occasion(given, named),
        parent=_parent_of(given.session or ""),
        place=_place(noted, given, root),
        can_replay=given.kind in REPLAYED and given.guard is None,
        listed=[_listed(one, root) for one in noted],
        nothing=_nothing(memory, given),
        asked=literal(given.words, given.question.query),
        **_shown(memory, given),
        replay=_replayed(memory, given) if replay else None,
        back=address(root, "saw", session=given.session, receipt=given.receipt),
        **about,
    )


def _parent_of(session: str) -> str:
    """Return the session of an agent that started a sub-agent; any other session as it is."""
    return session.partition(SUB_AGENT)[0]


def _choices(recent: list[dict[str, Any]], named: Mapping[str, str], now: datetime) -> list[dict[str, Any]]:
    """Return the sessions to choose from, the last one first: sub-agents belong to the session that started them."""
    found: dict[str, str] = {}
    for one in recent:
        parent = _parent_of(one["name"])
        said = named.get(parent) or f"session {words.cut(parent, 12)}"
        found.setdefault(parent, f"{words.day(one['at'], now)}, {one['agent'] or 'agent'}: {said}")
    return [{"name": name, "label": words.cut(label, MOST_CHARS)} for name, label in found.items()]


def _occasion(given: RecallReceipt, named: Mapping[str, str]) -> str:
    """Name the occasion of a text; of a list to judge, with the conversation that the statements are from."""
    said = words.occasion(given)
    if given.judged is None:
        return said
    return f"{said}, of “{named.get(given.judged) or f'session {words.cut(given.judged, 12)}'}”"


def _place(noted: list[RecallReceipt], given: RecallReceipt, root: str) -> dict[str, Any]:
    """Say which of the texts of its session this one is, with the addresses of those before and after it."""
    receipts = [one.receipt for one in reversed(noted)]
    if given.receipt not in receipts:
        return {"number": 0, "of": len(receipts), "earlier": "", "later": ""}
    at = receipts.index(given.receipt)
    links = [address(root, "saw", session=one.session, receipt=one.receipt) for one in reversed(noted)]
    earlier, later = links[at - 1] if at else "", links[at + 1] if at + 1 < len(links) else ""
    return {"number": at + 1, "of": len(receipts), "earlier": earlier, "later": later}


def _chosen(
    memory: Kept, key: Key, session: str, receipt: str, recent: list[dict[str, Any]]
) -> tuple[list[RecallReceipt], RecallReceipt | None]:
    """Find the receipt to show, and all that its session and the sub-agents of it were given, newest first.

    Without a session, the last one that was given anything; without a receipt, its last one with a text.
    """
    names = [one["name"] for one in recent]
    noted = _noted(memory, key, session or _parent_of(next(iter(names), "")), names)
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
        "block": _lines(briefing.text, colours)[0] if entries else [],
        "error": briefing.error or "",
    }


def _failures(request: Request, key: Key, now: datetime) -> list[HookFailure]:
    """Return the failures of hooks in these days, newest first: for the person who serves, whose agents they are."""
    return failures_shown_to(key, request.app.state.keys, now)[-FAILURES:][::-1]


def failures_shown_to(key: Key, keys: Keys, now: datetime) -> list[HookFailure]:
    """Return the failures of hooks in these days, oldest first; none to a key that is not of the person who serves."""
    return HookFolder(keys.home).failures_since(now - timedelta(days=RECENT_DAYS)) if key.is_owner else []


def _noted(memory: Kept, key: Key, session: str, known: Collection[str]) -> list[RecallReceipt]:
    """Return the texts that a session and its sub-agents were given, newest first."""
    if not session:
        return []
    names = [session, *(name for name in known if name.startswith(f"{session}{SUB_AGENT}"))]
    found = [one for name in names for one in told(memory, key, name, limit=PAGE)]
    return sorted(found, key=lambda one: (one.at, int(one.receipt[1:])), reverse=True)


def _asked_for(memory: Kept, key: Key) -> list[dict[str, Any]]:
    """Return the last recalls of agents and people, newest first; only an admin sees hits of global memory."""
    return [
        {"receipt": one.receipt, "at": one.at, "query": one.query, "hits": len(refs_shown_to(key, one.refs))}
        for one in memory.look().glances(limit=SESSIONS)
        if one.kind == "recall"
    ]


def _listed(one: RecallReceipt, root: str) -> dict[str, Any]:
    """Show a text in the list of its session: its moment, its content, and why these, or why none."""
    entries = [entry for section in one.sections for entry in section.get("entries", ())]
    reasons = list(dict.fromkeys(str(entry.get("reason", "")) for entry in entries if entry.get("reason")))
    more = [f"{len(reasons) - SHOWN_REASONS} more reasons"] if len(reasons) > SHOWN_REASONS else []
    nothing = why_nothing(one)
    return {
        "receipt": one.receipt,
        "link": address(root, "saw", session=one.session, receipt=one.receipt),
        "moment": words.moment(one),
        "said": words.occasion(one),
        "at": one.at,
        "lines": words.outcome(one),
        "is_refused": one.guard == "refused",
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
    block, said = _lines(given.block, entries)
    for part in parts:
        part["entries"] = [_as_given(row, said) for row in part["entries"]]
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
        "block": block,
    }


def _named(given: RecallReceipt) -> list[str]:
    """Return the refs of all memories that a receipt names and the page shows."""
    lines = (*given.hits, *given.misses, *given.left_out[:MISSED])
    return [*(str(line["ref"]) for line in lines), *_refs_of(given)]


def _parts(known: Mapping[str, Memory], given: RecallReceipt, axis: draw.Axis) -> list[dict[str, Any]]:
    """Show the sections of a text; of a recall, all that it returned. Markup around them is a part of its own."""
    hits = rows_of(given.hits, known, axis, given.question.query)
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
    found = rows_of(misses, known, axis, given.question.query)
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
        why = words.GUARD if name == "Guard" else why
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


def _as_given(row: ShownRow, said: Mapping[str, list[str]]) -> ShownRow:
    """Return the row of a summary with the lines of it that were given, and how many there are."""
    given, memory = said.get(row.ref, []), row.memory
    if memory is None or memory.kind != "summary" or not given:
        return row
    whole = [line for line in memory.content.split("\n") if line.strip()]
    if len(given) >= len(whole):
        return row
    because = "; ".join(filter(None, (row.because, f"{len(given)} of {len(whole)} lines given")))
    return replace(row, text="\n".join(line.removeprefix("- ") for line in given), because=because)


def _lines(block: str, colours: Mapping[str, str]) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Return the block line by line, byte for byte, and the lines of each memory as they were given.

    A line that names a memory has the colour of its section.
    """
    found: list[dict[str, Any]] = []
    said: dict[str, list[str]] = {}
    colour = ref = ""
    for line in block.split("\n"):
        match = _MEMORY.match(line)
        if match and match["ref"] in colours:
            ref, colour = match["ref"], colours[match["ref"]]
            said[ref] = [match["text"].strip()]
            link = Markup('<a href="#m{0}">[id:{0}]</a>').format(match["ref"])
            shown = Markup("{}{}{}{}").format(_tag(match["open"]), link, escape(match["text"]), _tag(match["close"]))
            found.append({"shown": shown, "kind": f"mem in-{colour}"})
        elif colour and line.startswith(("- ", "  ", "\t")):
            found.append({"shown": escape(line), "kind": f"mem in-{colour}"})
            if line.startswith("- "):
                said[ref].append(line)
        else:
            colour = ""
            found.append({"shown": escape(line) if line else Markup("&nbsp;"), "kind": "tag"})
    return found, said


def _tag(text: str | None) -> Markup:
    return Markup('<span class="tag">{}</span>').format(escape(text)) if text else Markup("")


def _replayed(memory: Kept, given: RecallReceipt) -> dict[str, Any]:
    """Compare what the same prompt would bring now with what it brought then."""
    now = memory.look().briefing_now(given)
    fresh = {entry.ref: entry.memory.content for section in now.sections for entry in section.entries}
    then = dict.fromkeys(_refs_of(given))
    added = _added(given, {ref: content for ref, content in fresh.items() if ref not in then})
    compared = [_compared(memory, ref, given, is_fresh=ref in fresh) for ref in then]
    changed = [line for line in compared if line is not None]
    return {"lines": added + changed, "same": len(compared) - len(changed), "tokens": now.tokens}


def _added(given: RecallReceipt, more: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the lines about memories that were not given then, those last that the session was told before."""
    told_before = {str(one["ref"]) for one in given.left_out if one.get("reason") == TOLD_BEFORE}
    signs = {False: ("add", "+", "new"), True: ("same", "=", "told earlier in this session")}
    lines = [(*signs[ref in told_before], ref, content, "") for ref, content in more.items()]
    return sorted(lines, key=lambda line: line[1] == "=")


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
