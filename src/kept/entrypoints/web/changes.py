"""Changes that a person makes on the page: a verb, a sentence about the change, and the way back.

Rule: an undo names the event of the change that it belongs to, so a change that came later is never taken back instead.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kept.entrypoints.http.shapes import etag_of
from kept.entrypoints.web import words
from kept.entrypoints.wording import settled_sentence
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.memory.judge_lists import JudgeList
from kept.memory.verbs.judge import JUDGE, Judge
from kept.model import GLOBAL, Event, Memory

MOST_AT_ONCE = 1_000
SAID = {
    "reinforce": "Memory {ref} helped: its feedback is {feedback:+d} now.",
    "demote": "Memory {ref} was wrong: its feedback is {feedback:+d} now.",
    "pin": "Memory {ref} is pinned: every briefing has it.",
    "unpin": "Memory {ref} is not pinned any more.",
    "restore": "Memory {ref} is back.",
}
DECIDED = {
    "keep": "confirmed",
    "archive": "archived",
    "wrong": "archived as wrong",
    "forget": "forgotten",
    "supersede": "replaced",
    "promote": "moved to global memory",
}


class Asked(Struct, frozen=True, kw_only=True):
    """A form of the page: its verb, the refs or decisions that it is about, and its fields."""

    verb: str
    refs: tuple[str, ...] = ()
    fields: Mapping[str, str] = {}

    @property
    def ref(self) -> str:
        return self.refs[0] if self.refs else ""

    def field(self, name: str) -> str:
        """Return a field as it was typed, with the line ends of text."""
        return self.fields.get(name, "").replace("\r\n", "\n").replace("\r", "\n")

    def listed(self, name: str) -> list[str]:
        """Return a field of values that commas or line ends separate."""
        return [one.strip() for one in self.field(name).replace("\n", ",").split(",") if one.strip()]


class Outcome(Struct, frozen=True, kw_only=True):
    """A change that was made. `undo` is the event to undo; after an undo, which can be undone itself, `is_redo`."""

    text: str
    undo: str = ""
    is_redo: bool = False
    ref: str = ""


def carry_out(memory: Kept, asked: Asked) -> Outcome:
    """Carry out one change. Raises KeptError when it is refused: then nothing was changed."""
    if len(asked.refs) > MOST_AT_ONCE:
        raise InvalidInput(f"At most {MOST_AT_ONCE} at once.")
    if asked.verb in SAID:
        one: Memory = getattr(memory, asked.verb)(asked.ref)
        return _about(memory, SAID[asked.verb].format(ref=one.ref, feedback=one.feedback), one)
    if (act := _ACTS.get(asked.verb)) is None:
        raise NotFound(f"There is no verb {asked.verb!r}.")
    return act(memory, asked)


def judge(memory: Kept, code: str, session: str, decisions: Sequence[str], texts: Sequence[str]) -> Outcome:
    """Settle a list by a decision and a text for each of its numbers. A text that was changed is kept so."""
    asked = memory.proposals(session or None)
    if asked.code != code or not len(asked.statements) == len(texts) == len(decisions):
        raise NotFound("Not settled: the list has changed in the meantime.", hint="Look at it again, then decide.")
    settled = memory.perform(JUDGE, _answer(asked, decisions, texts))
    touched = (*settled.kept, *settled.rewritten, *settled.dropped, *settled.replaced, *settled.added)
    one = memory.look().find(touched[0], forgotten=True) if touched else None
    return Outcome(text=settled_sentence(settled)) if one is None else _about(memory, settled_sentence(settled), one)


def _answer(asked: JudgeList, decisions: Sequence[str], texts: Sequence[str]) -> Judge:
    """Return the answer to a list: its numbers by their decision, and the texts that were changed."""
    rows = [*zip(asked.statements, decisions, (said.replace("\r", "").strip() for said in texts), strict=True)]
    numbers = {wanted: [one.n for one, chosen, _ in rows if chosen == wanted] for wanted in ("keep", "drop", "wrong")}
    changed = {
        one.n: said for one, chosen, said in rows if chosen in ("", "keep") and said not in ("", one.text.strip())
    }
    keep, drop, wrong = (tuple(numbers[name]) for name in ("keep", "drop", "wrong"))
    rewrite = {str(n): said for n, said in changed.items()}
    return Judge(list=asked.code, keep=keep, drop=drop, wrong=wrong, rewrite=rewrite)


def _about(memory: Kept, text: str, one: Memory) -> Outcome:
    """Return the outcome of a change of this memory: its newest event is that of the change."""
    last = memory.history(one.ref)[-1:]
    return Outcome(text=text, undo=_event_ref(last, one.space), ref=one.ref)


def _event_ref(events: Sequence[Event], space: str) -> str:
    return f"{'g' if space == GLOBAL else ''}{events[-1].seq}" if events else ""


def _decide(memory: Kept, asked: Asked) -> Outcome:
    changed = memory.reviews.apply(asked.refs)
    if not changed:
        raise NotFound("Nothing was chosen.")
    actions = {one.partition(":")[0] for one in asked.refs}
    done = DECIDED.get(actions.pop(), "") if len(actions) == 1 else ""
    if len(changed) == 1:
        return _about(memory, f"Memory {changed[0].ref} is {done}.", changed[0])
    return _about(memory, f"{len(changed)} memories are {done or 'decided'}.", changed[0])


def _each(action: str) -> Callable[[Kept, Asked], Outcome]:
    """Return the change that decides the same about one or several memories, as one change."""

    def act(memory: Kept, asked: Asked) -> Outcome:
        if action == "forget" and len(asked.refs) == 1:  # also of an archived one
            one = memory.forget(asked.ref)
            return _about(memory, f"Memory {one.ref} is forgotten.", one)
        return _decide(memory, Asked(verb="decide", refs=tuple(f"{action}:{ref}" for ref in asked.refs)))

    return act


def _revise(memory: Kept, asked: Asked) -> Outcome:
    if asked.field("etag") and asked.field("etag") != etag_of(memory.get(asked.ref)):
        raise NotFound(
            f"Not saved: {asked.ref} was changed in the meantime.",
            hint="Your text is still here. Copy it, look at the memory again, then decide.",
        )
    importance = asked.field("importance")
    revised = memory.revise(
        asked.ref,
        asked.field("content"),
        asked.listed("tags"),
        kind=asked.field("kind") or None,
        files=asked.listed("files"),
        importance=_number(importance) if importance else None,
    )
    return _about(memory, f"Memory {revised.ref} is revised.", revised)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"Importance must be a number from 0 to 1, got {text[:20]!r}.") from None


def _remember(memory: Kept, asked: Asked) -> Outcome:
    receipt = memory.remember(
        asked.field("content"),
        kind=asked.field("kind") or "fact",
        tags=asked.listed("tags"),
        files=asked.listed("files"),
        pin=asked.field("pin") == "1",
        tier="global" if asked.field("tier") == "global" else "project",
    )
    if receipt.memory is None:
        raise InvalidInput(receipt.message)
    return _about(memory, receipt.message, receipt.memory)


def _guard(mode: str) -> Callable[[Kept, Asked], Outcome]:
    def act(memory: Kept, asked: Asked) -> Outcome:
        memory.guard(asked.ref, mode)  # type: ignore[arg-type]  # one of the two below
        said = "refuses tool calls that it concerns, once each" if mode == "stop" else "is only told at tool calls"
        return Outcome(text=f"Memory {asked.ref} {said}.", ref=asked.ref, undo=_newest_event(memory))

    return act


def _erase(memory: Kept, asked: Asked) -> Outcome:
    if asked.field("sure") != "1":
        raise InvalidInput("Not erased: tick the box that says you want it gone for good.")
    receipt = memory.erase(asked.ref)
    places = ", ".join(f"{number} in {place}" for place, number in (receipt.found or {}).items() if number)
    return Outcome(text=f"{receipt.message}{f' Found: {places}.' if places else ''}")


def _pause(memory: Kept, _asked: Asked) -> Outcome:
    memory.pauses.pause()
    return Outcome(text="Paused: nothing is captured or given in this project.", undo=_newest_event(memory))


def _resume(memory: Kept, _asked: Asked) -> Outcome:
    memory.pauses.resume()
    return Outcome(text="Kept goes on in this project.", undo=_newest_event(memory))


def _task(memory: Kept, asked: Asked) -> Outcome:
    task = memory.task(asked.ref)
    state = asked.field("state")
    task.set_state(state)  # type: ignore[arg-type]  # checked by the task
    return Outcome(text=f"{asked.ref} is {state}.", undo=_newest_event(memory), ref=asked.ref)


def _note(memory: Kept, asked: Asked) -> Outcome:
    receipt = memory.task(asked.ref).add_reasoning(asked.field("content"), asked.field("stage") or "note")
    if receipt.memory is None:
        raise InvalidInput(receipt.message)
    return _about(memory, f"Noted for {asked.ref}.", receipt.memory)


def _newest_event(memory: Kept) -> str:
    """Return the newest event that the person who asks has caused: that of the change before this line."""
    look = memory.look()
    signed = (event for event in look.events(newest_first=True, limit=20) if event.actor == look.signature)
    return next((str(event.seq) for event in signed), "")


def _undo(memory: Kept, asked: Asked) -> Outcome:
    event = asked.field("event")
    if not event:
        raise NotFound("There is nothing to undo here.", hint="The timeline has every change.")
    done = memory.undo(event)
    found = [one for event in done if (one := memory.look().find(event.subject, forgotten=True)) is not None]
    refs = list(dict.fromkeys(one.ref for one in found))
    about = f"memory {refs[0]} is" if len(refs) == 1 else f"{words.counted(len(refs), 'memory', 'memories')} are"
    text = f"Undone: {about} as before." if refs else "Undone."
    space = GLOBAL if event.startswith("g") else ""
    return Outcome(text=text, undo=_event_ref(done, space), is_redo=True, ref=refs[0] if len(refs) == 1 else "")


_ACTS: Mapping[str, Callable[[Kept, Asked], Outcome]] = {
    "decide": _decide,
    "confirm": _each("keep"),
    "forget": _each("forget"),
    "archive": _each("archive"),
    "wrong": _each("wrong"),
    "revise": _revise,
    "remember": _remember,
    "guard": _guard("stop"),
    "unguard": _guard("tell"),
    "erase": _erase,
    "pause": _pause,
    "resume": _resume,
    "task": _task,
    "note": _note,
    "undo": _undo,
}
