"""Inbox: what a person should decide, one at a time, each with a proposal and its reason.

Above them stand the findings of one session that wait for a judge (`kept judge`), as one form that settles them all.

A review reads every memory of a project. A small one is reviewed when something has changed; a large one in the
background, now and then, and what has been decided since is left out. Rule: looking decides nothing.
"""

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from msgspec import Struct

from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.http.shapes import etag_of
from kept.entrypoints.web import words
from kept.entrypoints.web.rows import differing, find, said_in
from kept.entrypoints.web.shell import PAGE, address, draw_page, now_of, root_of
from kept.memory import Kept
from kept.memory.reviews import ReviewFinding
from kept.model import GLOBAL, Memory

if TYPE_CHECKING:
    from kept.memory.look import ProjectState

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
AT_ONCE = 3_000  # memories that are reviewed while a person waits: a third of a second
MOST = 500
Place = tuple[str, str, str]  # space, name and role of an actor
REVIEWED_S = 600.0
GROUPS = {
    "global": ("For all projects", "stack"),
    "conflict": ("Contradictions", "swap"),
    "duplicate": ("Duplicates", "copy"),
    "candidate": ("Candidates", "check"),
    "stale": ("Stale", "clock"),
    "unused": ("Never used", "clock"),
    "irrelevant": ("Off topic", "clock"),
}
TITLES = {
    "global": "An agent proposes this for all projects",
    "conflict": "These two contradict each other",
    "duplicate": "These two say nearly the same",
    "candidate": "Nobody has confirmed this yet",
    "stale": "Nobody has needed this for long",
    "unused": "Nobody has ever used this",
    "irrelevant": "Nobody talks about this any more",
}
VERBS = {
    "keep": "Keep {ref}",
    "archive": "Archive {ref}",
    "forget": "Forget {ref}",
    "supersede": "Keep {by}",
    "promote": "Move {ref} to global memory",
}


class Reviewed(Struct, frozen=True, kw_only=True):
    """What a review found, when, and at which event of the journal."""

    findings: Sequence[ReviewFinding] = ()
    seq: int = -1
    at: float = 0.0
    is_under_way: bool = False


class Inboxes:
    """The last review of each project, for each actor: its name, and its role, which decides what it may see."""

    def __init__(self) -> None:
        self._known: dict[Place, Reviewed] = {}
        self._running: set[Place] = set()
        self._guard = threading.Lock()

    def of(self, memory: Kept) -> Reviewed:
        """What is to be decided now; for a large project, as far as it is known."""
        project = memory.look().project()
        place = _place(memory, project)
        known = self._known.get(place)
        if known is not None and known.seq == project.last_event:
            return known
        if project.live <= AT_ONCE:
            return self._review(memory, place, project.last_event)
        if known is None or time.monotonic() - known.at > REVIEWED_S:
            self._begin(memory, place, project.last_event)
        if known is None:
            return Reviewed(is_under_way=True)
        left = tuple(one for one in known.findings if _is_open(memory, one))
        return Reviewed(findings=left, seq=known.seq, at=known.at)

    def known(self, memory: Kept) -> int:
        """How many decisions are known to be due, without looking for more."""
        known = self._known.get(_place(memory, memory.look().project()))
        return 0 if known is None else len(known.findings)

    def _begin(self, memory: Kept, place: Place, seq: int) -> None:
        with self._guard:
            if place in self._running:
                return
            self._running.add(place)
        threading.Thread(target=self._review, args=(memory, place, seq), daemon=True).start()

    def _review(self, memory: Kept, place: Place, seq: int) -> Reviewed:
        try:
            found = memory.reviews.list(limit=MOST)
            made = Reviewed(findings=found.findings, seq=seq, at=time.monotonic())
            self._known[place] = made
            return made
        finally:
            self._running.discard(place)


def _place(memory: Kept, project: "ProjectState") -> Place:
    actor = memory.look().actor
    return (project.space, actor.name, actor.role)


def _is_open(memory: Kept, finding: ReviewFinding) -> bool:
    """Whether nobody has changed what a finding is about since it was found."""
    both = [one for one in (finding.memory, finding.beside) if one is not None]
    now = [find(memory, one.ref) for one in both]
    return all(new is not None and new.updated_at == old.updated_at for new, old in zip(now, both, strict=True))


@router.get("/p/{project}/inbox")
def inbox(
    request: Request, project: str, memory: Opened, key: Asking, item: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """What a person should decide, each with a proposal."""
    root = root_of(project)
    reviewed: Reviewed = request.app.state.inboxes.of(memory)
    listed = reviewed.findings[:PAGE]
    place = next((number for number, one in enumerate(listed) if one.ref == item), 0)
    following = listed[place + 1].ref if place + 1 < len(listed) else listed[0].ref if place else ""
    groups: dict[str, list[dict[str, Any]]] = {}
    for number, one in enumerate(listed):
        link = address(root, "inbox", item=one.ref)
        groups.setdefault(one.reasons[0], []).append(
            {"finding": one, "link": link, "is_current": number == place, "sign": GROUPS[one.reasons[0]][1]}
        )
    back = address(root, "inbox", item=following)
    return draw_page(
        request,
        "inbox",
        project,
        memory,
        key,
        groups=[(GROUPS[reason][0], rows) for reason, rows in groups.items()],
        number=len(reviewed.findings),
        is_under_way=reviewed.is_under_way,
        one=_decision(memory, listed[place]) if listed else None,
        asked=memory.proposals(),
        later=back,
        back=back,
    )


def _decision(memory: Kept, finding: ReviewFinding) -> dict[str, Any]:
    one, other = finding.memory, finding.beside
    proposed = finding.proposed
    sides = [_side(memory, one, other, is_proposed=proposed.action in ("keep", "promote"))]
    choices = [(f"Keep {one.ref}", f"keep:{one.ref}", "1")]
    if other is not None:
        sides.append(_side(memory, other, one, is_proposed=proposed.by == other.ref))
        choices = [
            (f"Keep {one.ref}", f"supersede:{other.ref}={one.ref}", "1"),
            (f"Keep {other.ref}", f"supersede:{one.ref}={other.ref}", "2"),
            ("Keep both", f"keep:{one.ref}", "3"),
        ]
    first = (VERBS[proposed.action].format(ref=proposed.ref, by=proposed.by), str(proposed))
    return {
        "finding": finding,
        "title": TITLES[finding.reasons[0]],
        "sides": sides,
        "proposal": first,
        "choices": [choice for choice in choices if choice[1] != first[1]],
        "why": _sentence(finding),
        "memory": one,
        "etag": etag_of(one),
        "source": said_in(memory, one) if other is None else None,
        "when": words.age(one.created_at, now_of(memory)),
    }


def _side(memory: Kept, one: Memory, other: Memory | None, *, is_proposed: bool) -> dict[str, Any]:
    written = f"{words.day(one.created_at)}, by {words.who(one.source.agent or one.source.origin)}"
    return {
        "memory": one,
        "shown": one.content if other is None else differing(one.content, other.content),
        "is_proposed": is_proposed,
        "facts": [
            ("Written", written),
            ("Said by", words.TRUSTS[one.trust]),
            ("Feedback", f"{one.feedback:+d}" if one.feedback else "none"),
            ("Used", words.counted(one.use_count, "time") if one.use_count else "never"),
            ("Tags", " ".join(f"#{tag}" for tag in one.tags)),
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
    why = finding.why[:1].upper() + finding.why[1:]
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
