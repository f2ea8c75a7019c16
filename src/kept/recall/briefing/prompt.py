"""Choose the memories that fit a prompt, the nearest first.

Part of `collect`. A prompt is more often an order than a question, so memories below the floor of recall are told as
well if they speak of the same thing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from math import sqrt

from kept import text
from kept.model import Entry, Hit, Omission, Recalled, texts_of
from kept.ports import LIVE, Reader, Statistics
from kept.recall.briefing.situation import (
    MOST_OF_A_TIER,
    UNJUDGED,
    Situation,
    is_worth_telling,
    out_of_place,
    tier_of,
)
from kept.recall.floor import AT_HAND
from kept.recall.query import ASKED_FOR
from kept.recall.score import FILES, SHARED_FILE
from kept.recall.stems import COMMON, WORTHLESS
from kept.tables import SETTLED_KINDS

SURER = 1.2  # times the floor: the confidence of a line that an agent did not ask for
STRONG = 1.5  # times the floor: the confidence that an unjudged finding needs
MOST_UNJUDGED = 2  # such findings at a prompt
BESIDE_BEST = 0.5  # of the best score: such a line needs as much
OUTDATED = timedelta(days=60)  # later: of two statements about the same, only the later one is told
LEAST_CONFIDENCE = 0.1  # of a memory below the floor
CAUTIONS = ("error", "warning")  # short, and dear if they are missed: any word but a filler tells something
KNOWN_WORDS = 2  # and their share: a prompt must speak of as many, if nothing fits well
KNOWN_SHARE = 0.4
RARE_ROWS = 5  # memories, or this share of them: a name that more of them say tells nothing of a prompt
RARE_SHARE = 0.05
FITS = "fits the prompt"
MATCHES = "matches "  # with these words


def fitting_the_prompt(
    recalled: Recalled, readers: Sequence[Reader], situation: Situation, floor: float, left_out: list[Omission]
) -> Iterator[Entry]:
    """Yield the memories that fit well or nearly so; if the project knows the topic of the prompt, the nearest."""
    of_tier: Counter[str] = Counter()
    n_unjudged = 0
    most = MOST_OF_A_TIER if situation.head_tail else situation.most_fitting
    fitting = _sure_hits(recalled, floor) if situation.is_brief else _near_hits(recalled, readers, situation, floor)
    for hit in sorted(fitting, key=lambda hit: bool(situation.look(hit.memory).branch)):
        tier = tier_of(hit.memory)
        if of_tier[tier] >= most:
            continue
        reason = out_of_place(hit.memory, situation)
        if reason == UNJUDGED and n_unjudged < MOST_UNJUDGED and (hit.confidence or 0.0) >= STRONG * floor:
            n_unjudged += 1
        elif reason:
            left_out.append(Omission(ref=hit.ref, reason=reason))
            continue
        of_tier[tier] += 1
        yield Entry(memory=hit.memory, reason=_why(hit, situation), is_unjudged=reason == UNJUDGED)


def _sure_hits(recalled: Recalled, floor: float) -> list[Hit]:
    """Return the memories that fit for certain, best first: of two that say something else of the same, the newer."""
    considered = [*recalled.hits, *(miss.hit for miss in recalled.misses)]
    sure = [hit for hit in considered if _is_sure(hit, floor)]
    sure.sort(key=lambda hit: -hit.score)
    beside = [hit for hit in sure if hit.score >= BESIDE_BEST * sure[0].score]
    return [hit for hit in beside if not any(_replaces(other, hit) for other in beside)]


def _is_sure(hit: Hit, floor: float) -> bool:
    """Return True if a hit is told without being asked for.

    Its file alone is no reason: files of the last tool calls are at hand at every prompt. If the prompt orders work,
    memories about them are told all the same (`material`).
    """
    confidence = hit.confidence or 0.0
    is_only_at_hand = confidence == AT_HAND and not _telling_words(hit)
    return confidence >= SURER * floor and not is_only_at_hand and is_worth_telling(hit.memory)


def _replaces(newer: Hit, older: Hit) -> bool:
    """Return True if a much later statement of the same kind speaks of the same: things may have changed since then.

    It has all words of the prompt that the older one has; or it fits better and shares one of them.
    """
    if newer.memory.kind != older.memory.kind or older.memory.kind not in SETTLED_KINDS:
        return False
    if newer.memory.created_at - older.memory.created_at < OUTDATED:
        return False
    before, since = _telling_words(older), _telling_words(newer)
    return before <= since or (newer.score >= older.score and not before.isdisjoint(since))


def _telling_words(hit: Hit) -> set[str]:
    return {word for word, how in hit.matched.items() if how == ASKED_FOR and word not in COMMON}


def _near_hits(recalled: Recalled, readers: Sequence[Reader], situation: Situation, floor: float) -> Sequence[Hit]:
    """Return the hits and near misses worth telling; none if nothing fits and the prompt is about something else."""
    if not recalled.hits and not (floor and _is_about_this(situation.prompt, readers)):
        return ()
    considered = [*recalled.hits, *(miss.hit for miss in recalled.misses if floor)]
    return _nearest_first([hit for hit in considered if is_worth_telling(hit.memory)], floor)


def _why(hit: Hit, situation: Situation) -> str:
    """Name the words that make a hit fit, as they are written, and the file that made it fit without them."""
    told = [
        text.as_written(word, *([situation.prompt] if how == ASKED_FOR else texts_of(hit.memory)))
        for word, how in hit.matched.items()
        if word not in WORTHLESS
    ]
    words = ", ".join(dict.fromkeys(told))
    reasons = [f"{MATCHES}{words}"] if words else []
    return "; ".join(reasons + _why_by_file(hit, situation.files)) or FITS


def _why_by_file(hit: Hit, at_hand: Sequence[str]) -> list[str]:
    """Say which file of a memory decided that it is told; nothing if its words did."""
    if hit.confidence != AT_HAND or hit.why.get(FILES, 1.0) < SHARED_FILE:
        return []
    file = next((one for one in hit.memory.files if one in at_hand), None)
    return [f"the prompt names its file {hit.memory.files[0]}" if file is None else f"its file {file} is at hand"]


def _nearest_first(considered: Sequence[Hit], floor: float) -> list[Hit]:
    """Those above the floor, and of the others the ones that speak of the same thing; the nearest first."""
    best = max(considered, key=_fit, default=None)
    session = best.memory.source.session if best is not None else None
    chosen = [hit for hit in considered if (hit.confidence or 0.0) >= floor or _speaks_of_it(hit, session)]
    return sorted(chosen, key=_fit, reverse=True)


def _fit(hit: Hit) -> float:
    return hit.score * sqrt(hit.confidence or 0.0)


def _speaks_of_it(hit: Hit, session: str | None) -> bool:
    """Two of these: it has a telling word of the prompt, is not quite unlikely, is of this session, or a caution."""
    is_caution = hit.memory.kind in CAUTIONS
    telling_nothing = WORTHLESS if is_caution else WORTHLESS | COMMON
    says_it = any(how == ASKED_FOR and word not in telling_nothing for word, how in hit.matched.items())
    is_likely = (hit.confidence or 0.0) >= LEAST_CONFIDENCE
    is_together = session is not None and hit.memory.source.session == session
    return says_it + is_likely + is_together + is_caution >= 2


def _is_about_this(prompt: str, readers: Sequence[Reader]) -> bool:
    """Return True if the project knows the topic of a prompt: a name, or at least two of its words, and two of five."""
    words = [word for word in text.query_words(prompt) if word not in WORTHLESS and word not in COMMON]
    statistics = sum((reader.statistics(words, LIVE) for reader in readers), Statistics())
    known = {word for word, rows in statistics.rows_with.items() if rows}
    most = max(RARE_ROWS, RARE_SHARE * statistics.rows)
    if any(statistics.rows_with[word] <= most for word in known & _names_in(prompt)):
        return True
    return len(known) >= KNOWN_WORDS and len(known) >= KNOWN_SHARE * len(words)


def _names_in(prompt: str) -> set[str]:
    """The words that are written as a name: with a capital inside a sentence."""
    inside = (run for before, run in pairwise(prompt.split()) if before[-1] not in ".!?:")
    return {token for run in inside if run != run.lower() for token in text.words(run)}
