"""Trust at the facade: drafts that only repeat what a tool said, and who may vouch for such a memory.

Whose words a text is made of, `writing.quotes` finds out. Rule: an agent cannot raise the trust of a text, by storing
it again or by pinning it; a person can, by any act that accepts it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kept.errors import NotAllowed
from kept.model import LOW_TRUST, Draft, Memory, Source, Trust, least, replace
from kept.ports import Reader, Where
from kept.text import fingerprint
from kept.writing.quotes import Quotes

if TYPE_CHECKING:
    from kept.memory.context import Context

MOST_ALIKE = 100


def as_heard(context: "Context", drafts: Sequence[Draft], reader: Reader | None) -> Iterator[Draft]:
    """The drafts; one that an agent took from a tool result or a pasted text of its session, with the trust of that.

    `reader`: of the project; None when that is not stored yet.
    """
    heard: dict[str, Quotes] = {}
    for draft in drafts:
        session = _session_of_agent(draft, context)
        if session is None or reader is None:
            yield draft
            continue
        if session not in heard:
            if context.running is not None and context.running.id == session:
                heard[session] = context.running.heard(reader)  # which has read most of it before
            else:
                heard[session] = Quotes(reader.messages(session))
        yield replace(draft, trust=heard[session].trust_of(draft.content, draft.trust or "agent"))


def _session_of_agent(draft: Draft, context: "Context") -> str | None:
    """The session in which an agent wrote a draft, if that is known. Nothing of the draft has been checked yet."""
    source = context.source() if draft.source is None else draft.source
    if not isinstance(source, Source) or source.origin != "agent" or draft.trust not in (None, "agent", "user"):
        return None
    return source.session if isinstance(source.session, str) and isinstance(draft.content, str) else None


def of_revised(context: "Context", revised: Memory, session: str | None) -> Trust:
    """The trust of a memory after its revision: an agent may have put in what a tool said, here or in its session."""
    return of_texts(context, [revised.content], revised.trust, session, revised.source.session)[0]


def of_texts(context: "Context", texts: Sequence[str], spoken: Trust, *sessions: str | None) -> list[Trust]:
    """The trust of each text that is written with trust `spoken`: that, or less if an agent repeats in it what a memory
    of low trust says, or what was quoted in these sessions."""
    if context.is_person or spoken in LOW_TRUST:
        return [spoken] * len(texts)
    marks = [fingerprint(one) for one in texts]
    low: dict[str, Trust] = {}
    same = Where(fingerprints=tuple(set(marks)), scope=None, shelf="any")
    for reader in context.readers():
        for one in reader.select(same, limit=MOST_ALIKE * len(texts)):
            if one.is_low_trust:
                low[one.fingerprint] = least(one.trust, low.get(one.fingerprint, one.trust))
    heard: list[Quotes] = []
    if (project := context.spaces.project()) is not None:
        with project.reading() as reader:
            heard = [Quotes(reader.messages(name)) for name in dict.fromkeys(sessions) if name is not None]
    return [
        least(low.get(mark, spoken), spoken, *(quotes.trust_of(text, spoken) for quotes in heard))
        for text, mark in zip(texts, marks, strict=True)
    ]


def check_vouched(context: "Context", memory: Memory, verb: str) -> None:
    """Raise NotAllowed unless the memory is somebody's word, or a person acts, who thereby vouches for it."""
    if memory.is_low_trust and not context.is_person:
        origin = "a tool" if memory.trust == "tool" else "an unknown source"
        raise NotAllowed(
            f"Memory {memory.ref} quotes {origin}, so an agent may not {verb} it.",
            hint=f"A person can, with `kept {verb}`.",
        )
