"""Compare the best candidates with the question by meaning, where vectors are on.

Last of the features. Messages keep no vectors: those of a few dozen are made for each question. A static model compares
the words of the best sixty at once. One that reads sentences takes milliseconds for a text, so it compares the best
twenty, and stops at the deadline. In talk with an assistant a message is as near to the question as its nearest
passage, because what answers is often said in passing; people's messages are compared together with those around them.
Rule: comparing only ever adds to a score, so those that were not compared stay behind, in the order of their words.
"""

from collections.abc import Mapping, Sequence
from heapq import nlargest

from kept import vectors
from kept.ports import Deadline, Embedder, Reader
from kept.recall import embedder_failed
from kept.recall.messages.features import Candidate, MessagePlace
from kept.recall.messages.packed import WithPacked
from kept.recall.messages.weights import MessageWeights
from kept.recall.models import is_static, likeness, typical_cosine
from kept.text import sentences

COMPARED = 60  # of the candidates, by a static model
RERANKED = 20  # of the candidates, by a model that reads sentences
AT_ONCE = 4  # of these, before looking at the time
OWN_CHARS = 500  # of a message: what it is about, it says early
PASSAGE_CHARS = 40  # at least: a shorter sentence is joined with the next one
BESIDE_CHARS = 200  # of the end of the message before it, and of the beginning of the one after it


Texts = Mapping[MessagePlace, str]


def compare_meanings(
    query: str,
    candidates: Sequence[Candidate],
    features: Sequence[dict[str, float]],
    scores: Sequence[float],
    *,
    weights: MessageWeights,
    embedder: Embedder,
    reader: Reader | WithPacked,
    deadline: Deadline,
) -> str | None:
    """Add the feature `meaning`, or `window`, to the best candidates; a note if that failed, or took too long."""
    static = is_static(embedder)
    best = nlargest(COMPARED if static else RERANKED, range(len(candidates)), key=lambda at: scores[at])
    around = {} if static or not weights.window else _around([candidates[at] for at in best], reader)
    name = "window" if around else "meaning"
    step = len(best) if static else AT_ONCE
    try:
        [asked] = vectors.pack(embedder.embed([query]))
        # As learned: of a static model the cosine itself counts.
        typical = 0.0 if static else typical_cosine(embedder)
        for done in range(0, len(best), step):
            if deadline.is_over():
                return f"Time ran out, so {done} of the best {len(best)} messages were compared by meaning."
            some = best[done : done + step]
            texts = [_window(candidates[at], around) if around else _passages(candidates[at], static) for at in some]
            for at, nearest in zip(some, _nearest(asked, texts, embedder), strict=True):
                features[at][name] = likeness(nearest, typical)
    except Exception as error:  # perhaps a program's own code: reported, never raised into an answer
        return embedder_failed(error)
    return None


def _nearest(asked: vectors.Vector, texts: Sequence[Sequence[str]], embedder: Embedder) -> list[float]:
    """Return for each message the cosine of its nearest text with the question."""
    near = vectors.cosines(asked, vectors.pack(embedder.embed([text for own in texts for text in own])))
    found = []
    for own in texts:
        found.append(max(near[: len(own)]))
        near = near[len(own) :]
    return found


def usual_texts() -> list[str]:
    """As much text as is compared for one question by a model that reads sentences."""
    return ["The build takes nine minutes, because every test starts a database of its own. " * 4] * RERANKED


def _passages(candidate: Candidate, static: bool) -> list[str]:
    """The sentences of a message, short ones together with their neighbours; for a static model all in one."""
    content = candidate.found.message.content
    if static:
        return [content[:OWN_CHARS]]
    passages = [""]
    for sentence in sentences(content[:OWN_CHARS]):
        if len(passages[-1]) >= PASSAGE_CHARS:
            passages.append("")
        passages[-1] = f"{passages[-1]} {sentence}".strip()
    if len(passages) > 1 and len(passages[-1]) < PASSAGE_CHARS:
        short = passages.pop()
        passages[-1] = f"{passages[-1]} {short}".strip()
    return passages


def _window(candidate: Candidate, around: Texts) -> list[str]:
    session, n = candidate.place
    before, after = around.get((session, n - 1), ""), around.get((session, n + 1), "")
    own = candidate.found.message.content[:OWN_CHARS]
    return ["\n".join(filter(None, (before[-BESIDE_CHARS:], own, after[:BESIDE_CHARS])))]


def _around(candidates: Sequence[Candidate], reader: Reader | WithPacked) -> Texts:
    """The texts of these messages, and of those before and after them."""
    places = {
        (session, n + step) for session, n in (one.place for one in candidates) for step in (-1, 0, 1) if n + step
    }
    return {
        (found.message.session, found.message.n): found.message.content for found in reader.messages_at(sorted(places))
    }
