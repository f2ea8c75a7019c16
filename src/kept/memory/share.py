"""Messages for skills: memories in the form that agents exchange, within a budget.

A skill has no access to memory (`access`), so its caller gives it a message. Memories are gathered as for a briefing.
Rule: everything in a message is checked again: secrets are redacted, no content can pass for another memory, and text
that reads like an instruction from a tool is left out.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from kept import text, tokens
from kept.errors import InvalidInput
from kept.memory import receipts
from kept.memory.brief import entry_line, gather
from kept.memory.context import Context
from kept.memory.read import well_formed
from kept.model import Entry, Memory, Omission, replace, several
from kept.recall.briefing import NO_ROOM, Pair, Situation, conflict_sentence, distrust, render_entry
from kept.recall.briefing.situation import MOST_OF_A_TIER
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.redact import redact

if TYPE_CHECKING:
    from kept.writing.pipeline import WriteRules

SHARE_TOKENS = 1_500  # a page and a half, which leaves a skill's prompt room for its work
CONTEXT_SHARE = 1 / 3  # of the budget, at most, for what always holds in the project


class SharedContext(Struct, frozen=True, kw_only=True):
    """The two texts for the skill: memories that fit its work, and what always holds in the project."""

    memory_snippet: str = ""
    project_context: str = ""


class Payload(Struct, frozen=True, kw_only=True):
    """The task of the skill, and what it is told for it."""

    action: str
    context: SharedContext = SharedContext()


class SharingMessage(Struct, frozen=True, kw_only=True, rename={"sender": "from"}):
    """The message, in exactly the form that agents exchange: {from, to, type, payload{action, context{…}}}."""

    sender: str
    to: str
    type: Literal["request"] = "request"
    payload: Payload


class ShareResult(Struct, frozen=True, kw_only=True):
    """A message and its memories. `str(shared)` is the message as JSON; `as_dict()` as plain values."""

    message: SharingMessage
    budget: int
    tokens: int
    entries: tuple[Entry, ...] = ()
    left_out: tuple[Omission, ...] = ()
    receipt: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The message as it goes over the wire."""
        wire: dict[str, Any] = msgspec.to_builtins(self.message)
        return wire

    def __str__(self) -> str:
        return _wire(self.message)


def share(
    context: Context,
    *,
    to: str,
    action: str,
    query: str,
    project_context: str | None = None,
    budget_tokens: int | None = None,
    files: Sequence[str] = (),
) -> ShareResult:
    """The message for a skill. Raises InvalidInput when not even its envelope fits the budget."""
    budget_tokens = SHARE_TOKENS if budget_tokens is None else budget_tokens
    storages, now = context.readable(), context.now()
    rules = context.rules()
    given = None if project_context is None else _own_words(project_context, rules)
    envelope = SharingMessage(
        sender=_name(context.actor.name, "sender", rules),
        to=_name(to, "recipient", rules),
        payload=Payload(action=_name(action, "action", rules), context=SharedContext(project_context=given or "")),
    )
    situation = Situation(
        agent=context.actor.name,
        prompt=well_formed(query),
        files=several(files),
        seen_by=context.seen_by(None),
        most_fitting=MOST_OF_A_TIER,  # a skill cannot ask for more, so its budget alone decides
    )
    gathered = gather(context, situation, storages, now)
    material = gathered.material
    fitting = material.retrieval if situation.prompt.strip() else ()
    of_context = int(budget_tokens * CONTEXT_SHARE)
    parts = _Parts(envelope, budget_tokens, material.conflicts, rules)
    refs = {entry.ref for entry in fitting}
    parts.take("memory_snippet", [entry for entry in material.always if entry.ref in refs], budget_tokens)
    if given is None:
        parts.take("project_context", material.always, of_context)
    parts.take("memory_snippet", fitting, budget_tokens)
    if given is None:
        parts.take("project_context", material.summary, of_context)
    shared = parts.shared(material.left_out)
    told = [entry.memory for entry in shared.entries]
    hits = [hit.memory for hit in gathered.recalled.hits]
    context.signals.tell_search(situation.prompt, len(hits))
    context.tell_read(told)
    body = gathered.body(
        told,
        kind="share",
        to=shared.message.to,
        left_out=msgspec.to_builtins(shared.left_out),
        sections=[{"name": "shared", "entries": [entry_line(entry) for entry in shared.entries]}],
    )
    return replace(shared, receipt=receipts.save_notes(storages, context.now(), body=body, named=[*told, *hits]))


class _Parts:
    """The message while it is being built."""

    def __init__(self, envelope: SharingMessage, budget: int, conflicts: Sequence[Pair], rules: "WriteRules") -> None:
        self._envelope = envelope
        self._budget = budget
        self._conflicts = conflicts
        self._rules = rules
        self._told: dict[str, list[Entry]] = {"memory_snippet": [], "project_context": []}
        self._left_out: dict[str, str] = {}
        if (least := tokens.estimate(_wire(envelope))) > budget:
            raise InvalidInput(
                f"The empty message takes {least} tokens, more than the budget of {budget}.",
                hint="Give a larger budget or a shorter context.",
            )

    def take(self, field: str, entries: Sequence[Entry], most: int) -> None:
        """Add those that fit, in their order; the field never takes more than `most` tokens."""
        told = self._told[field]
        for entry in entries:
            if any(entry.ref == known.ref for known in self._all()):
                continue
            if reason := distrust(entry.memory):
                self._left_out[entry.ref] = reason
                continue
            told.append(replace(entry, memory=_clean(entry.memory, self._rules)))
            message = self._message()
            if tokens.estimate(_wire(message)) > self._budget or _size(message, field) > most:
                self._left_out[told.pop().ref] = NO_ROOM

    def shared(self, left_out: Sequence[Omission]) -> ShareResult:
        message = self._message()
        told = {entry.ref for entry in self._all()}
        reasons = {out.ref: out.reason for out in left_out} | self._left_out
        return ShareResult(
            message=message,
            budget=self._budget,
            tokens=tokens.estimate(_wire(message)),
            entries=tuple(self._all()),
            left_out=tuple(Omission(ref=ref, reason=reason) for ref, reason in reasons.items() if ref not in told),
        )

    def _all(self) -> list[Entry]:
        return [entry for entries in self._told.values() for entry in entries]

    def _message(self) -> SharingMessage:
        context = self._envelope.payload.context
        lines = {field: [render_entry(entry, "", "text") for entry in told] for field, told in self._told.items()}
        told = {entry.ref: entry.memory for entry in self._all()}
        for pair in self._conflicts:  # only if both sides are told: no text gets in by way of a warning
            if all(memory.ref in told for memory in pair):
                lines["memory_snippet"].append(conflict_sentence((told[pair[0].ref], told[pair[1].ref])))
        said = {field: "\n".join(own) for field, own in lines.items() if own}
        payload = replace(self._envelope.payload, context=msgspec.structs.replace(context, **said))
        return replace(self._envelope, payload=payload)


def _wire(message: SharingMessage) -> str:
    return msgspec.json.encode(message).decode()


def _size(message: SharingMessage, field: str) -> int:
    return tokens.estimate(getattr(message.payload.context, field))


def _clean(memory: Memory, rules: "WriteRules") -> Memory:
    """The memory without secrets that older rules may have let through."""

    def clean(value: str) -> str:
        return redact(value, email=rules.redact_email, allow=rules.allow).text

    return replace(
        memory, content=clean(memory.content), kind=clean(memory.kind), files=tuple(map(clean, memory.files))
    )


def _own_words(value: str, rules: "WriteRules") -> str:
    check_text(value, "The context", 10 * 4_000)
    return text.visible(redact(value, email=rules.redact_email, allow=rules.allow).text)


def _name(value: str, what: str, rules: "WriteRules") -> str:
    """A name in the envelope, on one line and without secrets. Raises InvalidInput for an empty one."""
    check_text(value, f"The {what}", MAX_NAME_CHARS)
    if not value.strip():
        raise InvalidInput(f"The {what} is empty.", hint="Name the recipient and the task.")
    return text.visible(redact(value.strip(), allow=rules.allow).text, keep_newlines=False)
