"""Inbox: the decisions of a person, by reason, each with a proposal and one key.

One tab has the findings of sessions that wait for a judge, as `kept judge` asks about them: a form settles a list.

A review reads every memory of a project. A small one is reviewed when something has changed; a large one in the
background, now and then, and what has been decided since is left out. Rule: looking decides nothing.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from msgspec import Struct
from msgspec.structs import replace

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.http.shapes import answer, etag_of
from kept.entrypoints.web import words
from kept.entrypoints.web.changes import BOTH
from kept.entrypoints.web.rows import differing, place_of, said_in
from kept.entrypoints.web.sessions import titles
from kept.entrypoints.web.shelf import Shelf
from kept.entrypoints.web.shell import PAGE, address, draw_detail, draw_page, now_of, root_of, wants_detail
from kept.errors import KeptError
from kept.memory import Kept
from kept.memory.judge_lists import STORED, JudgeList
from kept.memory.reviews import ReviewFinding
from kept.model import GLOBAL, KINDS, Memory, SessionRecord
from kept.proposals import SETTLED

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
AT_ONCE = 3_000  # memories that are reviewed while a person waits: a third of a second
ALL = 1_000_000
Place = tuple[str, str, str]  # space, name and role of an actor
REVIEWED_S = 600.0
JUDGE: Literal["judge"] = "judge"
TabName = Literal["", "conflict", "global", "judge", "duplicate", "stale", "unused", "irrelevant", "candidate"]
TABS: Mapping[TabName, str] = {
    "conflict": "Contradictions",
    "global": "For all projects",
    JUDGE: "To judge",
    "duplicate": "Duplicates",
    "stale": "Stale",
    "unused": "Never used",
    "irrelevant": "Off topic",
    "candidate": "Other unconfirmed",
}
TABS_FIRST: TabName = "conflict"
TITLES = {
    "global": "An agent proposes this for all projects",
    "conflict": "These two contradict each other",
    "duplicate": "These two say nearly the same",
    "candidate": "This is not confirmed yet",
    "stale": "This was not needed for long",
    "unused": "This was never used",
    "irrelevant": "Recent conversations are about other things",
}
PLACES = {
    "memories": ("memory", "memories"),
    "memories that quote it": ("memory that quotes it", "memories that quote it"),
    "conversations": ("conversation", "conversations"),
    "tasks": ("task", "tasks"),
    "receipts": ("receipt", "receipts"),
}
VERBS = {
    "keep": "Keep {ref}",
    "archive": "Archive {ref}",
    "forget": "Forget {ref}",
    "supersede": "Keep {by}",
    "promote": "Move {ref} to global memory",
}


class Reviewed(Struct, frozen=True, kw_only=True, dict=True):
    """What a review found, when, and at which event of the journal."""

    findings: Sequence[ReviewFinding] = ()
    waiting: Sequence[tuple[SessionRecord, int]] = ()  # for a judge, with the number of findings
    seq: int = -1
    at: float = 0.0
    is_under_way: bool = False

    @property
    def n_to_judge(self) -> int:
        return sum(number for _, number in self.waiting)

    def numbers(self) -> dict[str, int]:
        """Return how many there are to decide, by tab."""
        return {name: len(found) for name, found in self.by_tab.items()} | {JUDGE: self.n_to_judge}

    @cached_property  # there may be thousands, and every view counts them
    def by_tab(self) -> dict[str, list[ReviewFinding]]:
        """Return the findings by their first reason. Those that wait for a judge are in that tab alone."""
        sessions = {session.name for session, _ in self.waiting}
        found: dict[str, list[ReviewFinding]] = {}
        for one in self.findings:
            is_asked = one.memory.source.session in sessions and SETTLED not in (one.memory.data or {})
            if one.reasons[0] != "candidate" or not is_asked:
                found.setdefault(one.reasons[0], []).append(one)
        return found


class Inboxes:
    """The last review of each project, for each actor: its name, and its role, which decides what it may see."""

    def __init__(self) -> None:
        self._known: dict[Place, Reviewed] = {}
        self._lists: dict[Place, tuple[tuple[str, int], JudgeList]] = {}
        self._running: set[Place] = set()
        self._guard = threading.Lock()

    def of(self, memory: Kept, shelf: Shelf) -> Reviewed:
        """What is to be decided now; for a large project, as far as it is known."""
        project = memory.look().project()
        place = place_of(memory)
        known = self._known.get(place)
        if known is not None and known.seq == project.last_event:
            return known
        if project.live <= AT_ONCE:
            return self._review(memory, place, project.last_event)
        if known is None or time.monotonic() - known.at > REVIEWED_S:
            self._begin(memory, place, project.last_event)
        if known is None:
            return Reviewed(is_under_way=True)
        left = tuple(one for one in known.findings if _is_open(shelf, one))
        return replace(known, findings=left, waiting=memory.look().waiting() if known.waiting else ())

    def list_of(self, memory: Kept, session: str) -> JudgeList:
        """Return the list of a session. It compares each finding with all memories, so the last one is remembered."""
        place, state = place_of(memory), (session, memory.look().last_event())
        known = self._lists.get(place)
        if known is None or known[0] != state:
            known = self._lists[place] = (state, memory.proposals(session))
        return known[1]

    def known(self, memory: Kept) -> int:
        """Return how many decisions are known to be due; a first look at a small project begins a review."""
        place = place_of(memory)
        known = self._known.get(place)
        if known is None and (project := memory.look().project()).live <= AT_ONCE:
            self._begin(memory, place, project.last_event)
        return 0 if known is None else sum(known.numbers().values())

    def _begin(self, memory: Kept, place: Place, seq: int) -> None:
        with self._guard:
            if place in self._running:
                return
            self._running.add(place)
        threading.Thread(target=self._review_apart, args=(memory, place, seq), daemon=True).start()

    def _review_apart(self, memory: Kept, place: Place, seq: int) -> None:
        """Review in a thread; a project that is closed meanwhile is reviewed at the next look."""
        with suppress(KeptError):
            self._review(memory, place, seq)

    def _review(self, memory: Kept, place: Place, seq: int) -> Reviewed:
        try:
            found = memory.reviews.list(limit=ALL)
            waiting = memory.look().waiting()
            made = Reviewed(findings=found.findings, waiting=waiting, seq=seq, at=time.monotonic())
            self._known[place] = made
            return made
        finally:
            self._running.discard(place)


def _is_open(shelf: Shelf, finding: ReviewFinding) -> bool:
    """Return True if the memories of a finding are as they were when it was found."""
    both = [one for one in (finding.memory, finding.beside) if one is not None]
    now = [shelf.get(one.uid) for one in both]
    return all(new is not None and new.updated_at == old.updated_at for new, old in zip(now, both, strict=True))


@router.get("/p/{project}/inbox")
def inbox(
    request: Request,
    project: str,
    memory: Opened,
    key: Asking,
    tab: TabName = "",
    item: Annotated[str, Query(max_length=100)] = "",
    session: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> Response:
    """Show the memories to decide about, by reason, each with a proposal."""
    root = root_of(project)
    shelf: Shelf = request.app.state.shelves.of(memory)
    reviewed: Reviewed = request.app.state.inboxes.of(memory, shelf)
    by_tab, numbers = reviewed.by_tab, reviewed.numbers()
    tab = tab or _first_tab(numbers)
    found = by_tab.get(tab, [])
    here = {"tab": tab, "page": page}
    chosen = _named(found, item)
    about: dict[str, Any] = {"all_of_them": address(root, "inbox", **here), "kinds": KINDS}
    about["back"] = address(root, "inbox", **here, item=item)
    if wants_detail(request):
        return draw_detail(request, "decision.html", project, memory, one=_decision(memory, chosen, found), **about)
    listed = found[page * PAGE : (page + 1) * PAGE]
    chosen = chosen or next(iter(listed), None)
    asked = _asked(request, memory, session, reviewed) if tab == JUDGE else None
    return draw_page(
        request,
        "inbox",
        project,
        memory,
        key,
        tabs=[(name, label, numbers.get(name, 0)) for name, label in TABS.items()],
        tab=tab,
        number=sum(numbers.values()),
        rows=[_row(_plain(one), address(root, "inbox", **here, item=one.ref), one is chosen) for one in listed],
        of_pairs=any(one.beside is not None for one in listed),
        is_under_way=reviewed.is_under_way,
        is_chosen=bool(item and chosen),
        one=_decision(memory, chosen, found),
        asked=asked,
        stored=STORED,
        waiting=reviewed.waiting,
        titles=titles(request, memory, [one.name for one, _ in reviewed.waiting]) if tab == JUDGE else {},
        **_pages(root, tab, page, len(found)),
        **about,
    )


def _asked(request: Request, memory: Kept, session: str, reviewed: Reviewed) -> JudgeList:
    """Return the list of a session, or of the first that waits if it has none; an empty one if none does."""
    inboxes: Inboxes = request.app.state.inboxes
    names = [session] if session else []
    lists = (inboxes.list_of(memory, name) for name in [*names, *(one.name for one, _ in reviewed.waiting)])
    return next((one for one in lists if one.statements), JudgeList())


def _first_tab(numbers: Mapping[str, int]) -> TabName:
    """Return the first tab with something to decide."""
    return next((name for name in TABS if numbers.get(name)), TABS_FIRST)


def _named(found: Sequence[ReviewFinding], ref: str) -> ReviewFinding | None:
    return next((one for one in found if one.ref == ref), None)


def _pages(root: str, tab: str, page: int, number: int) -> dict[str, str]:
    """Return the addresses of the pages before and after one; "" where there is none."""
    is_last = number <= (page + 1) * PAGE
    return {
        "earlier": address(root, "inbox", tab=tab, page=page - 1) if page else "",
        "later": "" if is_last else address(root, "inbox", tab=tab, page=page + 1),
    }


def _plain(finding: ReviewFinding) -> ReviewFinding:
    """Return a finding without the words of the command line in its reason."""
    return replace(finding, detail=finding.detail.partition("; promote:")[0])


def _row(one: ReviewFinding, link: str, is_current: bool) -> dict[str, Any]:
    proposed = one.proposed
    return {
        "finding": one,
        "link": link,
        "is_current": is_current,
        "decision": str(proposed),
        "proposal": VERBS[proposed.action].format(ref=proposed.ref, by=proposed.by),
        "keys": {key: decision for _, decision, key in _choices(one)},
    }


@router.get("/p/{project}/erase")
def erase_preview(
    request: Request, project: str, memory: Opened, key: Asking, ref: Annotated[str, Query(max_length=200)]
) -> Response:
    """Count the places from which erasing a memory would remove its text: a page, or JSON for who asks for it."""
    found, quoting = memory.look().erase_preview(ref), memory.look().erase_quoting(ref)
    places = ", ".join(words.counted(number, *PLACES[place]) for place, number in found.items())
    text = f"This would be erased for good, with no undo: {places or 'the memory'}."
    if "application/json" in request.headers.get("accept", ""):
        return answer({"ref": ref, "found": found, "quoting": quoting, "text": text})
    return draw_page(
        request,
        "memories",
        project,
        memory,
        key,
        template="erase.html",
        one=memory.get(ref, forgotten=True),
        text=text,
        quoting=[one for each in quoting if (one := memory.look().find(each, forgotten=True)) is not None],
        back=address(root_of(project), "memories", ref=ref),
    )


def _choices(finding: ReviewFinding) -> list[tuple[str, str, str]]:
    """Return the possible decisions, each with its key."""
    one, other = finding.memory, finding.beside
    if other is None:
        return [(f"Keep {one.ref}", f"keep:{one.ref}", "1"), (f"Archive {one.ref}", f"archive:{one.ref}", "2")]
    return [
        (f"Keep {one.ref}", f"supersede:{other.ref}={one.ref}", "1"),
        (f"Keep {other.ref}", f"supersede:{one.ref}={other.ref}", "2"),
        ("Keep both", f"{BOTH}:{one.ref}", "3"),
    ]


def _decision(memory: Kept, finding: ReviewFinding | None, others: Sequence[ReviewFinding]) -> dict[str, Any] | None:
    """Show a finding with both sides, the proposal and the other choices; None if there is none."""
    if finding is None:
        return None
    one, other = finding.memory, finding.beside
    proposed, choices = finding.proposed, _choices(finding)
    sides = [_side(memory, one, other, is_proposed=proposed.action in ("keep", "promote"))]
    if other is not None:
        sides.append(_side(memory, other, one, is_proposed=proposed.by == other.ref))
    of_session = [str(each.proposed) for each in others if _is_of_session(each, one.source.session)]
    first = (VERBS[proposed.action].format(ref=proposed.ref, by=proposed.by), str(proposed))
    return {
        "finding": finding,
        "title": TITLES[finding.reasons[0]],
        "sides": sides,
        "proposal": first,
        "choices": [choice for choice in choices if choice[1] != first[1]],
        "why": _sentence(_plain(finding)),
        "memory": one,
        "etag": etag_of(one),
        "keys": {key: decision for _, decision, key in choices},
        "of_session": of_session if len(of_session) > 1 else [],
        "source": said_in(memory, one) if other is None else None,
        "when": _noticed(memory, finding),
    }


def _noticed(memory: Kept, finding: ReviewFinding) -> str:
    """Say when a contradiction was noticed; how old the memory is where it is about one alone."""
    now = now_of(memory)
    rivals = memory.look().rivals(finding.memory) if finding.conflict else []
    found = next((conflict.detected_at for conflict, _ in rivals if conflict.ref == finding.conflict), None)
    return words.age(finding.memory.created_at, now) if found is None else f"noticed {words.ago(found, now)}"


def _is_of_session(finding: ReviewFinding, session: str | None) -> bool:
    return session is not None and finding.memory.source.session == session


def _side(memory: Kept, one: Memory, other: Memory | None, *, is_proposed: bool) -> dict[str, Any]:
    written = (one.created_at, f", by {words.who(one.source.agent or one.source.origin)}")
    return {
        "memory": one,
        "etag": etag_of(one),
        "shown": one.content if other is None else differing(one.content, other.content),
        "is_proposed": is_proposed,
        "facts": [
            ("Written", written),
            ("Author", words.TRUSTS[one.trust]),
            ("Feedback", f"{one.feedback:+d}" if one.feedback else "none"),
            ("Used", words.counted(one.use_count, "time") if one.use_count else "never"),
            ("Tags", " ".join(f"#{tag}" for tag in words.tags(one))),
        ],
    }


def _why_it_wins(one: Memory, other: Memory) -> str:
    """Say why one of two that contradict each other is proposed: as `upkeep.review` orders them."""
    if one.status == "pinned":
        return f"{one.ref} is pinned"
    if one.trust == "user" != other.trust:
        return f"A person said {one.ref}"
    return f"{one.ref} is the later word"


def _sentence(finding: ReviewFinding) -> str:
    """The reason, and what the proposal would do."""
    proposed, one, other = finding.proposed, finding.memory, finding.beside
    why = finding.detail[:1].upper() + finding.detail[1:]
    if proposed.action == "supersede" and other is not None:
        if finding.reasons[0] == "conflict":
            why = _why_it_wins(other, one)
        if one.space != other.space == GLOBAL or one.space == other.space:
            return f"{why.rstrip('.')}. {one.ref} would go to the archive, superseded by {other.ref}."
        return f"{why.rstrip('.')}. {one.ref} would stay for other projects; in this one {other.ref} would hold."
    ends = {
        "keep": "It would count as confirmed.",
        "archive": "It would go to the archive, where a search of the archive still finds it.",
        "forget": "It would be hidden from every search.",
        "promote": "It would hold in every project.",
    }
    return f"{why.rstrip('.')}. {ends.get(proposed.action, '')}".strip()
