"""Consent: what a change does to each record of global memory, and the questions about it for a person.

`Context.write` comes here when a project agent changes global memory. The change is tried in a transaction that notes
its effects, and rolled back; a person is asked about each effect for which `access` wants it; when they agree to all,
it is made. Rule: a yes holds for the words that were shown. If the change does something else the second time, because
another process wrote in between, that is asked about as well.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from msgspec import Struct

from kept import access
from kept.model import REDACT, Memory, Record, Rejection
from kept.ports import R, Stamp, Storage, Transaction
from kept.text import visible

# The changes of a transaction that `Watched` notes, and those that concern conversations, which global memory has not.
WATCHED = ("add", "put", "put_many", "remove", "erase")
OF_CONVERSATIONS = ("append", "pack", "unpack", "erase_messages", "rewrite", "erase_receipts", "bury")
OF_NO_RECORD = ("restamp", "note_file")  # who changes it, and what is known of a file outside
OF_A_MOVE = ("carry", "lay")  # of a whole project, into an empty place; global memory is never moved

T = TypeVar("T")
_TAGS_MEAN = {"preference": "category", "pattern": "domain"}  # what the tags of these kinds stand for
_GOES_AS = {"superseded": "replace", "forgotten": "forget"}


class _Unasked(Exception):
    """Rolls a transaction back."""


def write(
    storage: Storage,
    work: Callable[[Transaction], T],
    stamp: Stamp,
    agree: Callable[[str, str], None],
    *,
    urgent: bool,
    is_heard: bool = True,
) -> T:
    """Run `work` in a transaction once `agree(question, deed)` has returned for each effect. Nobody waits for that.

    `is_heard`: all that the agent was told is known here, so that no text of a tool can pass for its own words.
    """
    agreed: set[str] = set()
    while True:
        try:
            with storage.writing(stamp, urgent=urgent) as tx:
                watched = Watched(tx, is_heard=is_heard)
                done = work(cast(Transaction, watched))
                asking = [effect for effect in watched.effects if effect.question not in agreed]
                if asking:
                    raise _Unasked
                return done
        except _Unasked:
            for effect in asking:
                agree(effect.question, effect.deed)
                agreed.add(effect.question)


class Effect(Struct, frozen=True):
    """What one call does to one record of global memory: the record before and after, and the journal's word for it."""

    before: Record | None
    after: Record | None
    action: str
    is_heard: bool = True

    @property
    def deed(self) -> str:
        """What is done, without the text: `forget global preference g3`."""
        record = self.before or self.after
        if not isinstance(record, Memory):
            return f"{self.action} {getattr(record, 'ref', 'a record')} in global memory"
        verbs = " and ".join(self._verbs())
        return (
            f"{verbs} a global {record.kind}" if self.before is None else f"{verbs} global {record.kind} {record.ref}"
        )

    @property
    def question(self) -> str:
        """The question for a person, which quotes the record."""
        quotes = [_quoted(record) for record in (self.before, self.after) if isinstance(record, Memory)]
        if self.action == REDACT:
            quotes = quotes[-1:]  # the text before is the secret
        said = ": " + " → ".join(dict.fromkeys(quotes)) if quotes else ""
        deed = self.deed.replace(" a global ", " global ")
        return visible(f"{deed[0].upper()}{deed[1:]}{said}{self._warning}?", keep_newlines=False)

    @property
    def _warning(self) -> str:
        """The words about a text that somebody else than the agent may have written."""
        after = self.after
        if not isinstance(after, Memory) or after.content == getattr(self.before, "content", None):
            return ""
        if after.is_low_trust:
            return " (quoted from a tool)" if after.trust == "tool" else " (of unknown source)"
        return "" if self.is_heard or after.trust == "user" else " (may repeat a page or file that the agent has read)"

    def _verbs(self) -> list[str]:
        before, after = self.before, self.after
        if not isinstance(after, Memory):
            return ["erase for good"]
        if not isinstance(before, Memory):
            verb = "promote to" if self.action == "promote" else "add"
        elif after.is_archived and after.reason != before.reason:
            return [_GOES_AS.get(after.reason or "", "archive")]
        else:
            verb = self.action
        pins = after.status == "pinned" and getattr(before, "status", None) != "pinned"
        return [verb, "pin"] if pins and verb != "pin" else [verb]


class Watched:
    """A transaction that passes everything on and notes its effect on every record."""

    def __init__(self, tx: Transaction, *, is_heard: bool = True) -> None:
        self._tx = tx
        self._is_heard = is_heard
        self._effects: dict[str, Effect] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    @property
    def effects(self) -> list[Effect]:
        """The effects that a person has to agree to, in the order in which the records were touched."""
        # Also those that leave a record as it is: an undo that finds nothing to do still marks a change as undone.
        return [one for one in self._effects.values() if not _goes_unasked(one) and not self._is_part_of_another(one)]

    def _is_part_of_another(self, effect: Effect) -> bool:
        """Return True for the rejection of a memory that the same call forgets or restores: one question will do."""
        record = effect.before or effect.after
        return isinstance(record, Rejection) and record.memory in self._effects

    def add(self, record: R, action: str) -> R:
        added = self._tx.add(record, action)
        self._note(added, None, added, action)
        return added

    def put(self, record: R, action: str) -> R:
        before = self._tx.get(type(record), record.id)
        stored = self._tx.put(record, action)
        self._note(stored, before, stored, action)
        return stored

    def put_many(self, memories: Sequence[Memory], action: str) -> None:
        for memory in memories:
            self.put(memory, action)

    def remove(self, record: Record, action: str) -> None:
        self._tx.remove(record, action)
        self._note(record, record, None, action)

    def erase(self, record: Record, action: str = "erase") -> None:
        self._tx.erase(record, action)
        self._note(record, record, None, action)

    def _note(self, record: Record, before: Record | None, after: Record | None, action: str) -> None:
        known = self._effects.get(record.subject)
        self._effects[record.subject] = Effect(known.before if known else before, after, action, self._is_heard)


def _goes_unasked(effect: Effect) -> bool:
    return access.goes_unasked(effect.before, effect.after, effect.action, is_heard=effect.is_heard)


def _quoted(memory: Memory) -> str:
    """The text of a memory in one line, with its tags."""
    said = " ".join(memory.content.split())
    tags = f" ({_TAGS_MEAN.get(memory.kind, 'tags')}: {', '.join(memory.tags)})" if memory.tags else ""
    return f"'{said}'{tags}"
