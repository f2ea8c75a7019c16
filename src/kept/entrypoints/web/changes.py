"""Changes that a person makes on the page: a verb, a sentence about the change, and the way back.

Rule: an undo names an event that the change itself has made. So neither a later nor an earlier change is taken back
instead, and a change that left everything as it was has no undo.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from kept.entrypoints.http.shapes import etag_of
from kept.entrypoints.web import words
from kept.entrypoints.wording import receipt_details, receipt_sentence, settled_sentence
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept
from kept.memory.judge_lists import JudgeList
from kept.memory.verbs.judge import JUDGE_IN_PARTS, Judge
from kept.model import Event, Memory, replace

MOST_AT_ONCE = 1_000
BOTH = "both"  # a decision about a pair: `keep`, which holds for the other one as well
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


class ChangeDone(Struct, frozen=True, kw_only=True):
    """A change that was made. `undo` is the event to undo; after an undo, which can be undone itself, `is_redo`."""

    text: str
    undo: str = ""
    is_redo: bool = False
    ref: str = ""
    refs: tuple[str, ...] = ()  # of the memories that an undo was about


def carry_out(memory: Kept, asked: Asked) -> ChangeDone:
    """Carry out one change. Raises KeptError when it is refused: then nothing was changed."""
    if len(asked.refs) > MOST_AT_ONCE:
        raise InvalidInput(f"At most {MOST_AT_ONCE} at once.")
    if (act := _UNGROUPED.get(asked.verb)) is not None:
        return act(memory, asked)
    if (act := _ACTS.get(asked.verb)) is None:
        raise NotFound(f"There is no verb {asked.verb!r}.")
    return _undoable(memory, partial(act, memory, asked))


def _undoable(memory: Kept, act: Callable[[], ChangeDone]) -> ChangeDone:
    """Make a change as one group of the journal, and name the event to undo, if there is one."""
    with memory.together() as group:
        done = act()
    return replace(done, undo=memory.look().last_of_group(group))


def judge(memory: Kept, code: str, session: str, decisions: Sequence[str], texts: Sequence[str]) -> ChangeDone:
    """Settle a list by a decision and a text for each of its numbers. A text that was changed is kept so.

    What is not decided stays in the list.
    """
    asked = memory.proposals(session or None)
    if asked.code != code or not len(asked.statements) == len(texts) == len(decisions):
        raise NotFound("Not settled: the list has changed in the meantime.", hint="Look at it again, then decide.")
    wanted = _answer(asked, decisions, texts)
    if not any((wanted.keep, wanted.drop, wanted.wrong, wanted.rewrite)):
        raise InvalidInput("Nothing is decided yet, so nothing was changed.", hint="Keep or drop something first.")
    return _undoable(memory, partial(_settle, memory, asked, wanted))


def _settle(memory: Kept, asked: JudgeList, wanted: Judge) -> ChangeDone:
    settled = memory.perform(JUDGE_IN_PARTS, wanted)
    touched = (*settled.kept, *settled.rewritten, *settled.dropped, *settled.replaced, *settled.added)
    one = memory.look().find(touched[0], forgotten=True) if touched else None
    said = settled_sentence(replace(settled, left=0))
    if _leaves_some(asked, wanted):
        said += f" {words.counted(settled.left, 'is', 'are')} still open."
    return ChangeDone(text=said, ref="" if one is None else one.ref)


def _leaves_some(asked: JudgeList, wanted: Judge) -> bool:
    """Return True if a finding of the session is still to be judged. Its summary is not asked about again."""
    decided = {*wanted.keep, *wanted.drop, *wanted.wrong, *map(int, wanted.rewrite)}
    return bool(asked.left_out) or any(one.n not in decided for one in asked.proposals)


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


def _decide(memory: Kept, asked: Asked) -> ChangeDone:
    changed = memory.reviews.apply([one.replace(f"{BOTH}:", "keep:", 1) for one in asked.refs])
    if not changed:
        raise NotFound("Nothing was chosen.")
    actions = {one.partition(":")[0] for one in asked.refs}
    if actions == {BOTH}:
        both = "Both are kept." if len(changed) == 1 else f"Both of {len(changed)} pairs are kept."
        return ChangeDone(text=both, ref=changed[0].ref)
    done = DECIDED.get(actions.pop(), "") if len(actions) == 1 else ""
    if len(changed) == 1:
        by = asked.ref.partition("=")[2]
        return ChangeDone(text=f"Memory {changed[0].ref} is {done}{f' by {by}' if by else ''}.", ref=changed[0].ref)
    return ChangeDone(text=f"{len(changed)} memories are {done or 'decided'}.", ref=changed[0].ref)


def _each(action: str) -> Callable[[Kept, Asked], ChangeDone]:
    """Return the change that decides the same about one or several memories, as one change."""

    def act(memory: Kept, asked: Asked) -> ChangeDone:
        if action == "forget" and len(asked.refs) == 1:  # also of an archived one
            one = memory.forget(asked.ref)
            return ChangeDone(text=f"Memory {one.ref} is forgotten.", ref=one.ref)
        return _decide(memory, Asked(verb="decide", refs=tuple(f"{action}:{ref}" for ref in asked.refs)))

    return act


def _revise(memory: Kept, asked: Asked) -> ChangeDone:
    if asked.field("etag") and asked.field("etag") != etag_of(memory.get(asked.ref)):
        raise NotFound(
            f"Not saved: {asked.ref} was changed in the meantime.",
            hint="Your text is still here. Copy it, look at the memory again, then decide.",
        )
    importance = asked.field("importance")
    one = memory.get(asked.ref)
    unseen = [tag for tag in one.tags if tag not in words.tags(one)]  # of programs: the form does not show them
    revised = memory.revise(
        asked.ref,
        asked.field("content"),
        list(dict.fromkeys([*asked.listed("tags"), *unseen])),
        kind=asked.field("kind") or None,
        files=asked.listed("files"),
        importance=_number(importance) if importance else None,
    )
    return ChangeDone(text=f"Memory {revised.ref} is revised.", ref=revised.ref)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"Importance must be a number from 0 to 1, got {text[:20]!r}.") from None


def _remember(memory: Kept, asked: Asked) -> ChangeDone:
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
    before, after = receipt_sentence(receipt)
    said = " ".join([f"{before}memory {receipt.memory.ref}{after}", *receipt_details(receipt)])
    return ChangeDone(text=said, ref=receipt.memory.ref)


def _guard(mode: str) -> Callable[[Kept, Asked], ChangeDone]:
    def act(memory: Kept, asked: Asked) -> ChangeDone:
        memory.guard(asked.ref, mode)  # type: ignore[arg-type]  # one of the two below
        said = "refuses tool calls that it concerns, once each" if mode == "stop" else "is only told at tool calls"
        return ChangeDone(text=f"Memory {asked.ref} {said}.", ref=asked.ref)

    return act


def _erase(memory: Kept, asked: Asked) -> ChangeDone:
    if asked.field("sure") != "1":
        raise InvalidInput("Not erased: tick the box that says you want it gone for good.")
    receipt = memory.erase(asked.ref)
    places = ", ".join(f"{number} in {place}" for place, number in (receipt.found or {}).items() if number)
    return ChangeDone(text=f"{receipt.message}{f' Found: {places}.' if places else ''}")


def _pause(memory: Kept, _asked: Asked) -> ChangeDone:
    memory.pauses.pause()
    return ChangeDone(text="Paused: nothing is captured or given in this project.")


def _resume(memory: Kept, _asked: Asked) -> ChangeDone:
    memory.pauses.resume()
    return ChangeDone(text="Kept goes on in this project.")


def _task(memory: Kept, asked: Asked) -> ChangeDone:
    task = memory.task(asked.ref)
    state = asked.field("state")
    task.set_state(state)  # type: ignore[arg-type]  # checked by the task
    return ChangeDone(text=f"{asked.ref} is {state}.", ref=asked.ref)


def _note(memory: Kept, asked: Asked) -> ChangeDone:
    receipt = memory.task(asked.ref).add_reasoning(asked.field("content"), asked.field("stage") or "note")
    if receipt.memory is None:
        raise InvalidInput(receipt.message)
    return ChangeDone(text=f"Noted for {asked.ref}.", ref=receipt.memory.ref)


def _undone(refs: Sequence[str], back: Sequence[str]) -> str:
    """Name the archived memories that came back, otherwise the ones that are as before."""
    if back:
        return f"Undone: {_named(back, 'archived', 'back')}."
    return f"Undone: {_named(refs, '', 'as before')}." if refs else "Undone."


def _undo(memory: Kept, asked: Asked) -> ChangeDone:
    event = asked.field("event")
    if not event:
        raise NotFound("There is nothing to undo here.", hint="The timeline has every change.")
    done = memory.undo(event)
    found = {one.subject: memory.look().find(one.subject, forgotten=True) for one in done}
    refs = tuple(dict.fromkeys(one.ref for one in found.values() if one is not None))
    back = {one.ref for event in done if _is_back(event) and (one := found[event.subject]) is not None}
    text = _undone(refs, sorted(back))
    redo = memory.look().last_of_group(done[0].group) if done else ""
    ref = refs[0] if len(refs) == 1 else ""
    return ChangeDone(text=text, undo=redo, is_redo=True, ref=ref, refs=refs)


def _is_back(event: Event) -> bool:
    """Return True if a change brought a memory back from the archive."""
    before, after = (event.changed or {}).get("status", (None, None))
    return bool(before == "archived" and after not in (None, "archived"))


def _named(refs: Sequence[str], sort: str, state: str) -> str:
    """Say how one memory is, by its ref, or several, by their number."""
    if len(refs) == 1:
        return f"memory {refs[0]} is {state}"
    return f"{len(refs)} {sort} memories are {state}".replace("  ", " ")


def _on_one(verb: str) -> Callable[[Kept, Asked], ChangeDone]:
    def act(memory: Kept, asked: Asked) -> ChangeDone:
        one: Memory = getattr(memory, verb)(asked.ref)
        return ChangeDone(text=SAID[verb].format(ref=one.ref, feedback=one.feedback), ref=one.ref)

    return act


_ACTS: Mapping[str, Callable[[Kept, Asked], ChangeDone]] = {
    **{verb: _on_one(verb) for verb in SAID},
    "decide": _decide,
    "confirm": _each("keep"),
    "forget": _each("forget"),
    "archive": _each("archive"),
    "wrong": _each("wrong"),
    "revise": _revise,
    "remember": _remember,
    "guard": _guard("stop"),
    "unguard": _guard("tell"),
    "pause": _pause,
    "resume": _resume,
    "task": _task,
    "note": _note,
}
# An erasure is for good, and an undo is a group by itself.
_UNGROUPED: Mapping[str, Callable[[Kept, Asked], ChangeDone]] = {"erase": _erase, "undo": _undo}
