"""Guards: memories for which a person has tool calls refused once.

`kept guard REF stop` makes a memory a guard. A call that it concerns, by a file, a command or an activity, is refused
with the memory as the reason; the same call again passes, and that is counted. After MOST_OVERRIDES of them the guard
is one no longer, which is journaled and can be undone. Rule: only a person makes or ends a guard, or changes the
memory of one; and a refusal that cannot be noted is not made, or the agent could not get past it.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from kept import access, text
from kept.anchors import ToolCall, is_general
from kept.errors import Busy, InvalidInput, NotAllowed
from kept.memory import receipts, trust
from kept.memory.anchor_files import is_anchored, keys_of
from kept.memory.brief import Delivery, ToldText, memory_line, note_delivery
from kept.memory.context import Context, Ref, by_uid
from kept.model import CallGuard, Entry, GuardMode, Memory, replace
from kept.ports import Reader, Storage, Transaction
from kept.writing.duplicates import is_guarded
from kept.writing.redact import redact

MOST_OVERRIDES = 3
MOST_NAMED = 3  # files of a call, in its receipt
NAME_CHARS = 160  # of a call, in its receipt
LOOKED_AT = 2_000  # characters of a command
PRECISE = ("f", "b", "c", "a")  # keys: a file, a command, an activity
HEAD = "This call was refused, because the user has made a guard of this memory:"
TAIL = "If it has to be done all the same, make exactly the same call again: it will pass, and the user can see that."
OVERRIDE = "override"
LAPSE = "guard-lapse"


def guard(context: Context, ref: Ref, mode: GuardMode) -> CallGuard:
    """Have tool calls that concern a memory refused once (`stop`), or only tell the memory there (`tell`)."""
    storage, memory = context.find_live(ref)
    check_person(context)
    trust.check_vouched(context, memory, "guard")
    if mode == "stop":
        _check_can_stop(memory)

    def work(tx: Transaction) -> CallGuard:
        known = next((one for one in tx.all(CallGuard) if one.memory == memory.uid), None)
        if known is None:
            return tx.add(CallGuard(memory=memory.uid, mode=mode, since=tx.stamp.at), "guard")
        return known if known.mode == mode else tx.put(_set(known, mode, tx), "guard")

    changed = context.write(storage, work)
    context.tell_write(storage, 0)
    return changed


def check_person(context: Context) -> None:
    """Raise NotAllowed unless a person acts. The role of an agent and a `--yes` that it types stand in for nobody."""
    if not context.is_person:
        raise NotAllowed(
            f"{access.who(context.actor)} may not change a guard: only a person can.",
            hint="A person types the command in a terminal of their own, where KEPT_AGENT is not set.",
        )


def check_unguarded(context: Context, reader: Reader, memory: Memory) -> None:
    """Raise NotAllowed if an agent would change or hide a guarded memory, which would end the guard or bend it."""
    if not context.is_person and is_guarded(reader, memory):
        raise NotAllowed(
            f"Memory {memory.ref} is guarded; only a person can change it.",
            hint=f"A person ends the guard with `kept guard {memory.ref} tell`.",
        )


def _check_can_stop(memory: Memory) -> None:
    if not is_anchored(memory):
        raise InvalidInput(
            f"Memory {memory.ref} is never told at a tool call, so it cannot stop one.",
            hint="A decision, warning, convention, preference or fact that is confirmed can.",
        )
    if not any(_is_precise(key) for key in keys_of(memory)):
        raise InvalidInput(
            f"Memory {memory.ref} names no file, command or activity, so no tool call would be refused.",
            hint=f"`kept edit {memory.ref} --file PATH` adds a file, or name the command in its text.",
        )


def _set(known: CallGuard, mode: GuardMode, tx: Transaction) -> CallGuard:
    return replace(known, mode=mode, since=tx.stamp.at, overridden=0)


def _is_precise(key: str) -> bool:
    return key[0] in PRECISE and not (key[0] == "c" and is_general(key[2:]))


def refusal_of(context: Context, call: ToolCall, keys: Iterable[str], delivery: Delivery) -> str:
    """Return why a call is refused; "" if no guard concerns it, or if it was refused in this session before."""
    named = frozenset(filter(_is_precise, keys))
    for storage in context.readable():
        with storage.reading() as reader:
            stops = [one for one in reader.all(CallGuard) if one.mode == "stop"]
            concerned = [(one, memory) for one in stops if (memory := by_uid(reader, one.memory)) is not None]
        for one, memory in concerned:
            if is_anchored(memory) and not named.isdisjoint(keys_of(memory)):
                return _refuse(context, storage, one, memory, call, delivery)
    return ""


def _refuse(
    context: Context, storage: Storage, one: CallGuard, memory: Memory, call: ToolCall, delivery: Delivery
) -> str:
    """Refuse a call, unless that was done before; then count that it was made again."""
    noted = _noted(context, delivery.session)
    name, about = f"{one.memory} {_digest(call)}", {"call": named(call, context.place or "")}
    if ("refused", name) not in noted:
        block = text.delivered("\n".join((HEAD, memory_line(memory), TAIL)))
        return block if _note(context, memory, block, delivery, about | {"refused": name}) else ""
    if ("passed", name) not in noted and _note(context, memory, "", delivery, about | {"passed": name}):
        with suppress(Busy):  # a guard that holds a little longer does no harm
            _count(context, storage, one)
    return ""


def _count(context: Context, storage: Storage, one: CallGuard) -> None:
    """Count that a refused call was made again; the last time the guard becomes one that only tells."""
    with storage.writing(context.stamp()) as tx:
        current = tx.get(CallGuard, one.id)
        if current is None or current.mode != "stop":
            return
        if current.overridden + 1 < MOST_OVERRIDES:
            tx.put(replace(current, overridden=current.overridden + 1), OVERRIDE)
        else:
            tx.put(_set(current, "tell", tx), LAPSE)


def _noted(context: Context, session: str) -> set[tuple[str, Any]]:
    """Return which calls were refused in a session, and which of them were made again."""
    given = receipts.given_in(context, session)
    return {(what, body[what]) for body in given for what in ("refused", "passed") if what in body}


def _note(context: Context, memory: Memory, block: str, delivery: Delivery, more: dict[str, str]) -> bool:
    """Save a receipt. Return False if that was not possible."""
    told = (Entry(memory=memory, reason="a person made it a guard"),)
    return note_delivery(context, delivery, block, ToldText(kind="action", section="guard", told=told, more=more))


def named(call: ToolCall, root: str) -> str:
    """Name a call for a receipt by its files or its command, without secrets."""
    files = [_in_project(path, root) for path in call.files[:MOST_NAMED]]
    more = f" and {len(call.files) - MOST_NAMED} more" if len(call.files) > MOST_NAMED else ""
    safe = redact(f"edit of {', '.join(files)}{more}" if files else _first_line(call)).text
    return safe if len(safe) <= NAME_CHARS else f"{safe[: NAME_CHARS - 1]}…"


def _in_project(path: str, root: str) -> str:
    """Return a path below the folder of the project; of a file elsewhere only its name."""
    inside = path.removeprefix(f"{root}/") if root else path
    return PurePath(inside).name if inside.startswith(("/", "~")) else inside


def _first_line(call: ToolCall) -> str:
    """Return the first line of a command; of a very long one no word that is cut, which could be half a secret."""
    line = " ".join(next(iter(call.commands), "").strip().partition("\n")[0].split())
    return line if len(line) <= LOOKED_AT else line[:LOOKED_AT].rpartition(" ")[0]


def _digest(call: ToolCall) -> str:
    return text.digest("\0".join((*call.files, "\0", *call.commands, "\0", call.text)))
