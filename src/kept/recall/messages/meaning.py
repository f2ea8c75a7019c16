"""Compare the best candidates with the question by meaning, where vectors are on.

Last of the features. Messages keep no vectors: those of a few dozen are made for each question. A static model compares
the words of the best sixty at once. One that reads sentences takes milliseconds for a text, so it compares the best
twenty, and stops at the deadline. A message is as near to the question as its nearest passage, because what answers is
often said in passing; where people talk, it is also compared together with the messages around it. Rule: comparing only
ever adds to a score, so those that were not compared stay behind, in the order that words give them.
"""

import re
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING

from kept import vectors
from kept.ports import Deadline, Embedder, Reader
from kept.recall import embedder_failed
from kept.recall.messages.features import Candidate, MessagePlace
from kept.recall.messages.weights import MessageWeights
from kept.recall.models import is_static, likeness, typical_cosine

if TYPE_CHECKING:
    from kept.recall.messages.packed import WithPacked

COMPARED = 60  # of the candidates, by a static model
COMPARED_CHARS = 500  # of each of them: what a message is about, it says early
RERANKED = 20  # of the candidates, by a model that reads sentences
RERANKED_CHARS = 600
AT_ONCE = 4  # of these, before looking at the time
PASSAGE_CHARS = 40  # at least: a shorter sentence is joined with the next one
BESIDE_CHARS = 200  # of the end of the message before it, and of the beginning of the one after it

_END = re.compile(r"(?<=[.!?])\s+|\n+")

Texts = Mapping[MessagePlace, str]


def compare_meanings(
    query: str,
    candidates: Sequence[Candidate],
    features: Sequence[dict[str, float]],
    scores: Sequence[float],
    *,
    weights: MessageWeights,
    embedder: Embedder,
    reader: "Reader | WithPacked",
    deadline: Deadline,
) -> str | None:
    """Add the features `meaning` and `window` to the best candidates; a note if that failed, or took too long."""
    static = is_static(embedder)
    best = nlargest(COMPARED if static else RERANKED, range(len(candidates)), key=lambda at: scores[at])
    around = _around([candidates[at] for at in best], reader) if weights.window and not static else {}
    try:
        [asked] = vectors.pack(embedder.embed([query]))
        # As learned: of a static model the cosine itself counts.
        typical = 0.0 if static else typical_cosine(embedder)
        step = len(best) if static else AT_ONCE
        for done in range(0, len(best), step):
            if deadline.is_over():
                return f"Time ran out, so {done} of the best {len(best)} messages were compared by meaning."
            some = best[done : done + step]
            texts = [_texts(candidates[at], around, static=static) for at in some]
            near = vectors.cosines(asked, vectors.pack(embedder.embed([text for own in texts for text in own])))
            for at, own in zip(some, texts, strict=True):
                cosines, near = near[: len(own)], near[len(own) :]
                if around:
                    features[at]["window"] = likeness(cosines.pop(), typical)
                features[at]["meaning"] = likeness(max(cosines), typical)
    except Exception as error:  # somebody else's code, perhaps: reported, never raised into an answer
        return embedder_failed(error)
    return None


def usual_texts() -> list[str]:
    """As much text as is compared for one question by a model that reads sentences."""
    passage = "The build takes nine minutes, because every test starts a database of its own. "
    return [text for _ in range(RERANKED) for text in (passage, passage, passage * 4)]


def _texts(candidate: Candidate, around: Texts, *, static: bool) -> list[str]:
    """The texts of a message that are compared: its passages, and last, if there are others around it, all together."""
    content = candidate.found.message.content
    if static:
        return [content[:COMPARED_CHARS]]
    passages = _passages(content[:RERANKED_CHARS])
    return [*passages, _window(candidate, around)] if around else passages


def _passages(content: str) -> list[str]:
    """The sentences of a message, short ones together with their neighbours."""
    passages = [""]
    for sentence in _END.split(content):
        if len(passages[-1]) >= PASSAGE_CHARS:
            passages.append("")
        passages[-1] = f"{passages[-1]} {sentence}".strip()
    if len(passages) > 1 and len(passages[-1]) < PASSAGE_CHARS:
        short = passages.pop()
        passages[-1] = f"{passages[-1]} {short}".strip()
    return passages


def _window(candidate: Candidate, around: Texts) -> str:
    session, n = candidate.place
    before, after = around.get((session, n - 1), ""), around.get((session, n + 1), "")
    own = candidate.found.message.content[:COMPARED_CHARS]
    return "\n".join(filter(None, (before[-BESIDE_CHARS:], own, after[:BESIDE_CHARS])))


def _around(candidates: Sequence[Candidate], reader: "Reader | WithPacked") -> Texts:
    """The texts of these messages, and of those before and after them."""
    places = {
        (session, n + step) for session, n in (one.place for one in candidates) for step in (-1, 0, 1) if n + step
    }
    return {
        (found.message.session, found.message.n): found.message.content for found in reader.messages_at(sorted(places))
    }
