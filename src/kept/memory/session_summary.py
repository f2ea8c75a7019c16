"""Summaries of sessions: find the one of a session, and keep out of it what was forgotten, replaced or erased.

`findings` writes the summary of a session, `change` takes a forgotten memory out of it, and `brief` looks again when it
is told. Rule: a summary tells nothing that the memory no longer holds.
"""

import re
from collections.abc import Iterable, Sequence

from kept.model import Memory, Rejection, replace
from kept.ports import ANYTHING, Reader, Storage, Transaction, Where
from kept.text import fingerprint, sentences
from kept.writing.passages import SAID, Buried, Passages

MOST_FINDINGS = 10_000


def summary_of(reader: Reader, name: str) -> Memory | None:
    """The live summary of a session."""
    return summary_in(reader, Where(session=name, kinds=("summary",)))


def summary_in(reader: Reader, where: Where) -> Memory | None:
    """Return the summary that was made of a conversation, among those that the filter selects."""
    found = reader.select(where, limit=100)
    return next((memory for memory in found if memory.source.origin == "narrative"), None)


def tellable(storage: Storage, name: str, texts: Sequence[str]) -> list[str]:
    """The texts without the lines and sentences that a summary of this session must not tell.

    These are findings of the session, or of one it was forked from, that were forgotten or replaced by another
    statement, all that was rejected here, and passages that were erased here.
    """
    with storage.reading() as reader:
        untold = _untold(reader, name, texts)
        buried = Buried(reader.erased_among, ("", SAID)) if reader.is_erased(ANYTHING) else None
        passages = Passages(untold)
        return [_without(text, passages, untold, buried) for text in texts]


def still_told(storage: Storage, summary: Memory) -> Memory | None:
    """Return a summary without the lines that were forgotten or replaced since; None if no line is left."""
    lines = summary.content.split("\n")
    said = tellable(storage, summary.source.session or "", list(map(unlabelled, lines)))
    left = [line for line, words in zip(lines, said, strict=True) if words.strip()]
    return replace(summary, content="\n".join(left)) if left else None


def _untold(reader: Reader, name: str, texts: Sequence[str]) -> set[str]:
    """Return what was forgotten or replaced, of these texts and of the session, unless it is remembered again."""
    gone = {content for one in (name, *ancestors(reader, name)) for content in _said_by(reader, one)}
    rejected = (one.fingerprint for one in reader.all(Rejection))
    prints = (*map(fingerprint, (*texts, *gone)), *rejected)
    twins = reader.select(Where(fingerprints=prints, shelf="any"), limit=MOST_FINDINGS)
    gone |= {memory.content for memory in twins if _is_gone(reader, memory)}
    live = {memory.fingerprint for memory in twins if not memory.is_archived}
    return {content for content in gone if fingerprint(content) not in live}


def _said_by(reader: Reader, name: str) -> list[str]:
    """What came of a session and is forgotten, or replaced by another statement."""
    found = reader.select(Where(session=name, shelf="any"), limit=MOST_FINDINGS)
    return [one.content for one in found if one.kind != "summary" and _is_gone(reader, one)]


def _is_gone(reader: Reader, memory: Memory) -> bool:
    """Return True if a statement was forgotten or rejected, or another one of this space stands in its place.

    A promotion says the same, so the promoted memory decides.
    """
    seen: set[str] = set()
    while memory.uid not in seen and not memory.is_forgotten:
        seen.add(memory.uid)
        if memory.reason != "superseded" or memory.superseded_by is None:
            return memory.reason == "rejected"
        heirs = reader.select(Where(uid=memory.superseded_by, shelf="any", scope=None), limit=1)
        if not heirs:
            return False
        if heirs[0].fingerprint != memory.fingerprint:
            return True
        memory = heirs[0]
    return memory.is_forgotten


def _without(text: str, passages: Passages, untold: Iterable[str], buried: Buried | None) -> str:
    """Return the text without lines and sentences that must not be told."""

    def is_told(said: str) -> bool:
        return _is_told(said, passages, untold, buried)

    if is_told(text):
        return text
    lines = [line for line in text.splitlines() if not line.startswith("- ") or is_told(line)]
    lines = [line if is_told(line) else " ".join(filter(is_told, sentences(line))) for line in lines]
    left = "\n".join(filter(str.strip, lines))
    return left if is_told(left) else ""


def _is_told(said: str, passages: Passages, untold: Iterable[str], buried: Buried | None) -> bool:
    if not passages and buried is None:
        return True
    if passages.spans(said) or (buried is not None and buried.spans(said)):
        return False
    part = Passages([unlabelled(said)])  # a summary cuts long lines
    return not any(part.spans(one) for one in untold)


def unlabelled(line: str) -> str:
    """A line of a summary without the words that the summary has put before it."""
    return re.sub(r"^[-*\s]*(?:(?:Asked(?: last| before)?|Open): )?", "", line)


def leave_out(tx: Transaction, forgotten: Memory) -> None:
    """Take a memory that was forgotten or revised out of the summaries of sessions."""
    passages = Passages([forgotten.content])
    where = Where(kinds=("summary",))
    for summary in tx.select(where, limit=MOST_FINDINGS) if forgotten.kind != "summary" else ():
        left = _without(summary.content, passages, [forgotten.content], None)
        if left == summary.content:
            continue
        if left:
            tx.put(replace(summary, content=left, fingerprint=fingerprint(left), updated_at=tx.stamp.at), "summarize")
        else:
            tx.put(summary.archived("superseded", tx.stamp.at), "summarize")


def ancestors(reader: Reader, name: str) -> list[str]:
    """The sessions that this one was forked from, the nearest first."""
    found: list[str] = []
    session = reader.session(name)
    while session is not None and session.parent and session.parent not in found and session.parent != name:
        found.append(session.parent)
        session = reader.session(session.parent)
    return found
