"""Collect the material of a briefing: the memories that could be told in a situation, each with why it is there.

Between recall, which answers the prompt, and `compose`, which decides what fits. A prompt is more often an order than a
question, so what is below recall's floor is told as well if it speaks of the same thing (`prompt`). Where
nothing fits, only pins and findings of other agents are told, and the rules of work if work is asked for.

An agent that did not ask gets few lines (`is_brief`): at the start of a session pins, standing rules and open ends; at
a prompt the best memories that fit it; for the task of a sub-agent the same and two rules. Rules: best first in every
section, because the last ones are dropped first when room is short; no reports of finished work; and nothing that the
context was told before.

Standing rules ("ask me before you change the schema") belong to an activity, not to a topic, so no prompt has their
words: their kind, form and author tell them from other statements. Other rules come with the work that they concern; a
question gets only those that share its words, or say how to answer. Tables only name sorts of work.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from math import prod

from msgspec import Struct

from kept import text, worth
from kept.model import GLOBAL, IMPORT, Entry, Memory, Omission, Recalled, TaskRecord, replace
from kept.ports import Reader, Where
from kept.recall import Request, profile_of
from kept.recall.briefing.prompt import fitting_the_prompt
from kept.recall.briefing.render import Pair
from kept.recall.briefing.situation import (
    GONE,
    MOST_OF_A_TIER,
    UNJUDGED,
    Situation,
    is_gone,
    is_worth_telling,
    out_of_place,
)
from kept.recall.pipeline import live_side, open_conflicts, overridden, overruled_by
from kept.recall.query import expansions
from kept.recall.score import file_affinity
from kept.recall.stems import ANSWERS, CODE, COMMON, FILLERS, ON_SCREENS, RUNNING, SCREENS, TEXTS, WORTHLESS
from kept.settings import Settings
from kept.tables import PROFILES, by_kind

MOST_RECALLED = 40
EXACT_TOP = 5  # of those; the others may be nearly the best
SURELY_TOLD = 4  # of them: before the rules, when room is short
MOST_FROM_OTHERS = 50
MOST_OF_TASK = 20
MOST_ABOUT_FILES = 5
MOST_TASKS = 5
IMPORTED_TASK = "imported, of unknown source"
MOST_PINNED = 100
FULL_PINS = 5  # the others are shown briefly
BRIEF_CHARS = 100
LAST_SESSION_LINES = 2
NEWEST = 100  # without a prompt, the worthiest of these are told
FEW_FROM_OTHERS = 3  # at a prompt
FEW_OF_SESSION = 5  # findings of a session whose context was compacted
NEWEST_PREFERENCES = 50  # in a turn, the first of these are told
MOST_PREFERENCES = 8
LEAST_OF_A_REQUEST = 2  # telling words
RULES_FOR_A_TASK = 2  # of a sub-agent
SAME_SHARE = 0.5  # of the words of a demoted memory: one that says so many of them stands in its place
LINE_CHARS = 200  # that a summary never cuts
MARK_CHARS = 8  # of a fingerprint: enough to tell the lines of one session apart
ABOUT_FILE = "about "
TOLD_BEFORE = "this session was told it before"
DEMOTED = "it was demoted, and another memory says how it is"
_ORDERS = text.pattern(
    r"\s*(?:(?:please|now|next|then|let'?s|let us|can you|could you|we (?:should|need to|want to))\s+)*"
    r"(?:add|implement|fix|build|create|refactor|rename|remove|replace|extend|migrate|port|support|upgrade|finish|continue"
    r"|work on|make|change|update|improve|clean|move|write|test|handle|speed|optimi[sz]e|debug)\b",
    re.IGNORECASE,
)
_ASKS_FOR_LAST = text.pattern(
    r"\b(?:last|previous|earlier|recent) (?:time|sessions?|conversations?|chat)\b|\bwhere (?:were|did) we\b"
    r"|\b(?:continue|resume|carry on|pick up)(?=[^\w]*$|[.,;!]|\s+(?:where|from)\b)|\bwhat happened\b|\bso far\b",
    re.IGNORECASE,
)

MOST_RULES = 8
NEW_SHARE = 0.3  # of its words: a rule that says less than that beside those before it is left out
FEW = 3  # rules: of so few, none is told apart by a word

RULE_KINDS = ("preference", "convention")
RULE_TAGS = ("correction", "command")  # a correction has the kind of the statement that it corrects
MOST_STANDING = 12
NEWEST_RULES = 50
LEAST_POINTS = 4  # of a standing rule; see _points
LONG_CHARS = 240  # a longer statement explains something

_FOR_ALWAYS = text.pattern(
    r"\b(?:always|never|every|each|whenever|any ?time|from now on|going forward|in (?:the )?future|by default"
    r"|at all times|as you go|no exceptions?|(?:before|after|until|unless|when(?:ever)?|if) (?:you|i|we)\b"
    r"|before (?:any|\w+ing)\b|ask (?:me|first|before)|check with me|tell me|let me know|prefers?"
    r"|(?:i|user|we) (?:likes?|wants?|hates?))\b",
    re.IGNORECASE,
)
_ORDER = text.pattern(
    r"(?:^|[.;:,!?]\s+|\b(?:and|please|but|just)\s+)(?:do not|don['\u2019]?t|avoid|stop|keep|use|write|run|commit"
    r"|make sure|be sure|ensure|remember to|no)\b|\bmust(?: not)?\b|\bshould(?: not|n['\u2019]t)?\b|\binstead of\b",
    re.IGNORECASE,
)
_ACTIVITY = text.pattern(
    r"\b(?:commit|push|merg|rebas|squash|branch|pull|releas|deploy|migrat|schema|delet|tests?\b|testing|lint|format"
    r"|review|changelog|docs?\b|document|readme|plan|ask|answer|explain|repl(?:y|ies)|respon[ds]|summar|language"
    r"|comment|approv|confirm|refactor|install|dependenc|bump|tag|issues?\b|tickets?\b|prs?\b|ci\b|build|emoji"
    r"|bullet|tone|wording|style|english|german|short|concise|wrap|code)\w*",
    re.IGNORECASE,
)
# A report or an offer, which is no rule even where its kind says so.
_REPORT = text.pattern(
    r"^\W*(?:(?:i|we|it|they|you)(?:['\u2019]\w+| (?:have|had|was|were|wasn|am|is|are|think))\b"
    r"|(?:this|that) (?:is|was)\b|(?:added|fixed|implemented|updated|removed|reviewed|done)\b)"
    r"|\bi(?:['\u2019]ll| can| could| will)\b|\b(?:now|already|currently|was|were|has been|have been)\b",
    re.IGNORECASE,
)
_NAME = text.pattern(r"`[^`]+`|\b\w+(?:[_/.]\w+)+|\b[a-z]+[A-Z]\w*|https?:")

_ASKS = text.pattern(
    r"\s*(?:please\s+|can you\s+|could you\s+)*(?:what|how|why|where|who|which|when|is|are|was|were|do|does|did|should"
    r"|may|explain|describe|review|summari[sz]e|tell|show|list|compare|analy[sz]e)\b|.*\?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_WRITES = text.pattern(
    r"\s*(?:(?:please|now|next|then|let'?s|let us|can you|could you)\s+)*"
    r"(?:write|draft|document|translate|reword|rephrase|proofread|shorten)\b(?!.*\b(?:tests?|code|function|script)\b)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = text.pattern(r"^- (?:[A-Z][a-z]+: )?")  # of a line of a summary


def question_of(situation: Situation) -> Request:
    """The question whose answer goes into the section `retrieval`."""
    return Request(
        query=situation.prompt,
        limit=MOST_RECALLED,
        exact_top=EXACT_TOP,
        files=situation.files,
        seen_by=situation.seen_by,
        floor=situation.floor,
    )


class Material(Struct, frozen=True, kw_only=True):
    """The memories that could be told, best first in each section, open tasks, and pairs that contradict each other."""

    always: Sequence[Entry] = ()
    bridge: Sequence[Entry] = ()
    retrieval: Sequence[Entry] = ()
    summary: Sequence[Entry] = ()
    tasks: Sequence[TaskRecord] = ()
    conflicts: Sequence[Pair] = ()
    left_out: Sequence[Omission] = ()

    @property
    def at_hand(self) -> list[str]:
        """Return the refs of the memories that are told because of the files at hand."""
        return [entry.ref for entry in self.retrieval if entry.reason.startswith(ABOUT_FILE)]


def collect(
    situation: Situation, recalled: Recalled, readers: Sequence[Reader], settings: Settings, now: datetime
) -> Material:
    """Everything that could be told; `recalled` is the answer to the prompt."""
    left_out: list[Omission] = []
    asked = _telling(situation.prompt)
    if not situation.has_prompt:
        retrieval = _without_prompt(readers, situation, settings, now)
    else:
        floor = profile_of(question_of(situation), settings).floor
        fitting = list(fitting_the_prompt(recalled, readers, situation, floor, left_out))
        retrieval = (_few if situation.is_brief else _many)(fitting, readers, situation, asked)
    sections = {
        "always": [*_pinned(readers, situation), *_preferences(readers, situation)],
        "bridge": _from_other_agents(situation, readers),
        "retrieval": ends_first(retrieval, situation.head_tail),
        "summary": [],
    }
    _drop(sections, lambda memory: TOLD_BEFORE if is_told(memory, situation.told) else None, left_out)
    _drop(sections, lambda memory: GONE if is_gone(memory, situation) else None, left_out)
    _drop(sections, _overruled_here(sections, readers), left_out)
    conflicts = _with_rivals(sections, readers, situation)
    _drop(sections, _replaced_by(sections), left_out)
    sections = {name: _labelled(entries, situation) for name, entries in sections.items()}
    told = {entry.memory.content for entries in sections.values() for entry in entries}
    sections["summary"] = _last_session(readers, situation, asked, told)
    tasks = [] if situation.is_turn else _open_tasks(readers, situation, asked)
    return Material(**sections, tasks=tasks, conflicts=conflicts, left_out=left_out)


def _labelled(entries: Sequence[Entry], situation: Situation) -> list[Entry]:
    """Return the entries with notes on their code, those of unmerged branches last."""
    found = [(entry, situation.look(entry.memory)) for entry in entries]
    noted = [replace(entry, note=own.note, branch=own.branch) for entry, own in found]
    return sorted(noted, key=lambda entry: bool(entry.branch))


def _many(fitting: Sequence[Entry], readers: Sequence[Reader], situation: Situation, asked: Set[str]) -> list[Entry]:
    """Everything that fits a prompt, for an agent that asked for it."""
    at_hand = [*_about_files(situation, readers), *_of_task(situation.task, readers)]
    rules = _for_work(readers, situation, asked) if fitting or at_hand or _ORDERS.match(situation.prompt) else []
    # Rules are short, so they come before memories that fit less well.
    return [*fitting[:SURELY_TOLD], *at_hand, *rules, *fitting[SURELY_TOLD:]]


def _few(fitting: Sequence[Entry], readers: Sequence[Reader], situation: Situation, asked: Set[str]) -> list[Entry]:
    """Return the best memories that fit, or are about the files at hand, and rules if a session was told none.

    The files of the last tool calls are not named by a prompt, so they count only if it asks for work.
    """
    best = list(fitting[: situation.most_fitting])
    if len(best) < situation.most_fitting and _ORDERS.match(situation.prompt):
        known = {entry.memory.uid for entry in best}
        near = [one for one in _about_files(situation, readers) if one.memory.uid not in known]
        best += near[: situation.most_fitting - len(best)]
    if situation.moment == "subagent":
        best += _for_work(readers, situation, asked)[:RULES_FOR_A_TASK]
    elif best and not situation.is_started:
        room = min(RULES_FOR_A_TASK, situation.most_fitting - len(best))
        best += _for_all_work(readers, situation)[:room]
    return best


def _without_prompt(readers: Sequence[Reader], situation: Situation, settings: Settings, now: datetime) -> list[Entry]:
    """Return standing rules for a few lines, else important and recent memories and those of files and task."""
    if not situation.is_brief:
        at_hand = [*_about_files(situation, readers), *_of_task(situation.task, readers)]
        return [*_worthiest(readers, situation, settings, now), *at_hand]
    return [*_for_all_work(readers, situation), *_of_compacted(readers, situation)]


def _of_compacted(readers: Sequence[Reader], situation: Situation) -> list[Entry]:
    """Return the newest findings of a session whose context was compacted."""
    if not situation.is_compacted or situation.session is None:
        return []
    found = _worth_telling(readers, Where(session=situation.session, tiers=("session",)))
    trusted = [memory for memory in found if not memory.is_low_trust][:FEW_OF_SESSION]
    return [Entry(memory=memory, reason="found in this session, which was compacted") for memory in trusted]


Verdict = Callable[[Memory], str | None]  # why a memory is not told


def _drop(sections: dict[str, list[Entry]], verdict: Verdict, left_out: list[Omission]) -> None:
    """Remove the entries that have a reason not to be told, and note the reasons."""
    for name, entries in sections.items():
        reasons = [(entry, verdict(entry.memory)) for entry in entries]
        sections[name] = [entry for entry, reason in reasons if reason is None]
        left_out += [Omission(ref=entry.ref, reason=reason) for entry, reason in reasons if reason is not None]


def _replaced_by(sections: Mapping[str, Sequence[Entry]]) -> Verdict:
    """Judge demoted memories: one that another entry contradicts or says better is not told beside it."""
    others = [entry.memory for entries in sections.values() for entry in entries if entry.memory.feedback >= 0]
    words = {memory.uid: set(text.words(memory.content)) - WORTHLESS for memory in others}

    def verdict(memory: Memory) -> str | None:
        if memory.feedback >= 0 or memory.status == "pinned":
            return None
        own = set(text.words(memory.content)) - WORTHLESS
        is_replaced = any(len(own & said) >= SAME_SHARE * len(own) for said in words.values())
        return DEMOTED if own and is_replaced else None

    return verdict


def ends_first(entries: Sequence[Entry], n: int) -> list[Entry]:
    """The n newest and the n oldest before all others; otherwise in the order given."""
    by_age = sorted(entries, key=lambda entry: (entry.memory.created_at, entry.memory.id))
    ends = {entry.ref for entry in (*by_age[:n], *by_age[max(n, len(by_age) - n) :])} if n > 0 else set()
    return sorted(entries, key=lambda entry: entry.ref not in ends)


def _telling(prompt: str) -> frozenset[str]:
    """Return the telling words of a prompt."""
    return frozenset(text.query_words(prompt, 256)) - WORTHLESS


def _preferences(readers: Sequence[Reader], situation: Situation) -> list[Entry]:
    """Return the user's preferences and the rules about answers, those about answers first; only for a turn.

    Hooks tell them when a session starts. A turn has no start, and its context is all that a model is sent.
    """
    if not situation.is_turn:
        return []
    found = [memory for memory in _newest_preferences(readers, situation) if _is_preference(memory, situation)]
    found.sort(key=_rank_of_preference)
    return [Entry(memory=memory, reason="the user's preference") for memory in found[:MOST_PREFERENCES]]


def _newest_preferences(readers: Sequence[Reader], situation: Situation) -> list[Memory]:
    found: dict[str, Memory] = {}
    seen_by = situation.seen_by
    for where in (
        Where(kinds=("preference", "convention"), seen_by=seen_by),
        Where(tags=("correction",), seen_by=seen_by),
    ):
        words = [word for name in (*where.kinds, *where.tags) for word in text.words(name)]  # indexed as words
        for reader in readers:
            hits = reader.search(words, where, limit=NEWEST_PREFERENCES, newest=True)
            found |= {hit.memory.uid: hit.memory for hit in hits}
    return list(found.values())


def _is_preference(memory: Memory, situation: Situation) -> bool:
    """Return True for a preference or a rule about answers that may be told here, and needs no confirmation."""
    is_wanted = memory.kind == "preference" or _is_about_answers(memory)
    is_certain = worth.is_lasting(memory) and not memory.is_low_trust
    return is_wanted and is_certain and not out_of_place(memory, situation)


def _rank_of_preference(memory: Memory) -> tuple[bool, bool, float, int]:
    known = memory.importance * worth.feedback_factor(memory.feedback)
    return not _is_about_answers(memory), "correction" not in memory.tags, -known, -memory.id


def _is_about_answers(memory: Memory) -> bool:
    return not ANSWERS.isdisjoint(text.words(memory.content))


def _worthiest(readers: Sequence[Reader], situation: Situation, settings: Settings, now: datetime) -> list[Entry]:
    """Without a prompt: of the newest memories, those that recall would weigh most, each factor once."""
    factors = PROFILES[settings.profile].factors

    def weight(memory: Memory) -> float:
        own = prod(worth.MEMORY_FACTORS[name](memory, now) for name in factors if name in worth.MEMORY_FACTORS)
        if "kind" in factors:
            own *= by_kind(settings.kind_weights, memory.kind)
        return own * file_affinity(memory, situation.files)

    newest = [memory for reader in readers for memory in reader.select(Where(seen_by=situation.seen_by), limit=NEWEST)]
    usual = [memory for memory in newest if is_worth_telling(memory) and not out_of_place(memory, situation)]
    ranked = sorted(usual, key=lambda memory: (-weight(memory), memory.space, -memory.id))
    return [Entry(memory=memory, reason="important and recent") for memory in ranked[:MOST_OF_A_TIER]]


def _pinned(readers: Sequence[Reader], situation: Situation) -> list[Entry]:
    """All pinned memories; from the sixth on the beginning of each has to do."""
    if situation.moment == "subagent":  # its lines are for its task
        return []
    where = Where(statuses=("pinned",))
    found = [memory for reader in readers for memory in reader.select(where, limit=MOST_PINNED)]
    whole = [Entry(memory=memory, reason="pinned") for memory in found[:FULL_PINS]]
    return [*whole, *(Entry(memory=brief(memory), reason="pinned") for memory in found[FULL_PINS:])]


def brief(memory: Memory) -> Memory:
    """The same with the beginning of its content."""
    first = memory.content.strip().split("\n", 1)[0]
    if len(first) > BRIEF_CHARS:
        first = first[: BRIEF_CHARS - 1].rstrip() + "…"
    return memory if first == memory.content else replace(memory, content=first)


def _about_files(situation: Situation, readers: Sequence[Reader]) -> list[Entry]:
    """Memories about the files at hand, whatever the prompt is."""
    found: dict[str, Entry] = {}
    for reader in readers:
        for file in situation.files:
            # Paths are indexed by their words; the longest one leads to few memories.
            longest = max(text.words(file), key=len, default="")
            where = Where(files=(file,), tiers=("session", "project", "global"), seen_by=situation.seen_by)
            for hit in reader.search([longest], where, limit=MOST_ABOUT_FILES, newest=True) if longest else ():
                if is_worth_telling(hit.memory) and out_of_place(hit.memory, situation) != UNJUDGED:
                    found.setdefault(hit.memory.uid, Entry(memory=hit.memory, reason=f"{ABOUT_FILE}{file}"))
    return list(found.values())


def _of_task(task: str | None, readers: Sequence[Reader]) -> list[Entry]:
    if task is None:
        return []
    where = Where(task=task, tiers=("task",))
    found = [memory for reader in readers for memory in reader.select(where, limit=MOST_OF_TASK)]
    return [Entry(memory=memory, reason=f"of task {task}") for memory in found]


def _from_other_agents(situation: Situation, readers: Sequence[Reader]) -> list[Entry]:
    """Return findings of other agents since this session began, newest first; not the user's own words."""
    if situation.session is None or situation.moment == "subagent":
        return []
    found = [
        Entry(memory=memory, reason=f"found by {memory.source.agent} in this session")
        for memory in _worth_telling(readers, Where(session=situation.session, tiers=("session",)))
        if memory.source.agent not in (None, situation.agent)
    ]
    found += _from_other_sessions(situation, readers)
    judged = [entry for entry in found if out_of_place(entry.memory, situation) != UNJUDGED]
    entries = [entry for entry in judged if entry.memory.trust != "user"]
    return _untold(entries, situation)[:FEW_FROM_OTHERS] if situation.is_brief else entries


def _from_other_sessions(situation: Situation, readers: Sequence[Reader]) -> list[Entry]:
    """Return the findings of other sessions since this one began."""
    if situation.since is None:
        return []
    since = Where(tiers=("session", "project"), since=situation.since, seen_by=situation.seen_by)
    return [
        Entry(memory=memory, reason=f"found by {memory.source.agent or 'another agent'} since this session began")
        for memory in _worth_telling(readers, since)
        if memory.source.session not in (None, situation.session)
    ]


def _untold(entries: Sequence[Entry], situation: Situation) -> list[Entry]:
    return [entry for entry in entries if not is_told(entry.memory, situation.told)]


def _worth_telling(readers: Sequence[Reader], where: Where) -> list[Memory]:
    found = [memory for reader in readers for memory in reader.select(where, limit=MOST_FROM_OTHERS)]
    return [memory for memory in found if is_worth_telling(memory)]


def _last_session(readers: Sequence[Reader], situation: Situation, asked: Set[str], told: Set[str]) -> list[Entry]:
    """The last session: whole if the prompt asks for it, else its lines that fit; two lines without a prompt.

    A line that a memory says, which is `told` already, is not said again.
    """
    if situation.moment == "subagent":
        return []
    where = Where(kinds=("summary",))
    words = text.words("summary")  # kinds are indexed as words
    for reader in readers:
        for hit in reader.search(words, where, limit=1 + MOST_OF_TASK, newest=True):
            memory = hit.memory
            if memory.source.session is not None and memory.source.session == situation.session:
                continue
            lines = _lines_to_tell(memory.content.split("\n"), situation, asked, told)
            if not lines:
                return []
            shown = replace(memory, content="\n".join(lines))
            return [Entry(memory=shown, reason=f"summary of session {memory.source.session or 'unknown'}")]
    return []


def _lines_to_tell(lines: list[str], situation: Situation, asked: Set[str], told: Set[str]) -> list[str]:
    """Return the lines that say something new: decisions, and open ends before all others."""
    is_asked_for = _ASKS_FOR_LAST.search(situation.prompt) is not None
    new = [line for line in lines if not _is_said(line, told) and line_mark(line) not in situation.told]
    new = [line for line in new if _is_telling(line, with_requests=is_asked_for)]
    if is_asked_for:
        return new
    return [line for line in new if _fits(line, asked)] if situation.has_prompt else _open_ends_first(new)


def _open_ends_first(lines: Sequence[str]) -> list[str]:
    """Return a few lines in their order, if possible those of open ends."""
    chosen = sorted(lines, key=lambda line: not _is_open(line))[:LAST_SESSION_LINES]
    return [line for line in lines if line in chosen]


def memory_mark(memory: Memory) -> str:
    """Return the mark of a memory; it changes when the text is revised."""
    return f"{memory.uid}.{memory.fingerprint[:MARK_CHARS]}"


def line_mark(line: str) -> str:
    """Return the mark of a line that may be no memory: of a summary, the name of a task, the words of a memory.

    A summary cuts long lines, so only the beginning counts.
    """
    said = " ".join(_LABEL.sub("", line).split())
    return text.fingerprint(said[:LINE_CHARS])[:MARK_CHARS]


def words_mark(memory: Memory) -> str:
    """Return the mark of a line of a summary that says the words of a memory."""
    return line_mark(f"- {memory.content}")


def is_told(memory: Memory, told: Set[str]) -> bool:
    """Return True if a memory has one of these marks, or a line of a summary that says all of it."""
    says_all = len(memory.content) <= LINE_CHARS
    return memory_mark(memory) in told or (says_all and words_mark(memory) in told)


def _is_said(line: str, told: Set[str]) -> bool:
    """Return True if a memory says the line, which a summary may have cut."""
    said = _LABEL.sub("", line)
    return said in told or (said.endswith(" …") and any(one.startswith(said[:-2]) for one in told))


def _is_telling(line: str, *, with_requests: bool) -> bool:
    """Return False for a request, unless it was asked for and names something: "Asked: Hi!" says nothing."""
    if not line.lstrip("- ").startswith("Asked: "):
        return True
    return with_requests and len(set(text.words(_LABEL.sub("", line))) - WORTHLESS) >= LEAST_OF_A_REQUEST


def _is_open(line: str) -> bool:
    return line.lstrip("- ").startswith("Open: ")


def _fits(line: str, asked: Set[str]) -> bool:
    """Whether a line says at least two of the things that were asked for, one of them not a common word."""
    shared = asked & set(text.words(line))
    return len(shared) > 1 and bool(shared - COMMON)


def _names(task: TaskRecord, asked: Set[str]) -> bool:
    """Return True if a prompt speaks of a task: two of the words that describe it, or half of them."""
    words = set(text.words(task.description)) - WORTHLESS
    shared = asked & words - COMMON
    return bool(shared) and (2 * len(shared) >= len(words) or _fits(task.description, asked))


def _open_tasks(readers: Sequence[Reader], situation: Situation, asked: Set[str]) -> list[TaskRecord]:
    """Return the tasks that have not ended, the newest first; with a prompt, those that it speaks of."""
    if situation.moment == "subagent":
        return []
    tasks = [task for reader in readers for task in reader.all(TaskRecord) if not task.has_ended]
    tasks = [task for task in tasks if _is_to_tell(task, situation, asked)]
    newest = sorted(tasks, key=lambda task: (task.created_at, task.name), reverse=True)[:MOST_TASKS]
    return [with_its_source(task, readers) for task in newest]


def _is_to_tell(task: TaskRecord, situation: Situation, asked: Set[str]) -> bool:
    """Return False for a task that was told before, or that the prompt does not speak of."""
    if line_mark(task.name) in situation.told:
        return False
    is_named = task.name == situation.task or task.name in situation.prompt
    return not situation.has_prompt or is_named or _names(task, asked)


def with_its_source(task: TaskRecord, readers: Sequence[Reader]) -> TaskRecord:
    """Label a task that came with an import and has not been touched since: it may be anybody's text."""
    actions = {event.action for reader in readers for event in reader.events(subject=task.subject)}
    return replace(task, description=f"({IMPORTED_TASK}) {task.description}") if actions == {IMPORT} else task


def _overruled_here(sections: Mapping[str, Sequence[Entry]], readers: Sequence[Reader]) -> Verdict:
    """Judge global memories: one that a memory of this project overrules is not told in it."""
    shown = (entry.memory for entries in sections.values() for entry in entries)
    decided = overridden({memory.uid for memory in shown if memory.space == GLOBAL}, readers)
    return lambda memory: overruled_by(decided[memory.uid]) if memory.uid in decided else None


def _with_rivals(sections: dict[str, list[Entry]], readers: Sequence[Reader], situation: Situation) -> list[Pair]:
    """Put beside each memory the one that contradicts it, unless it was told before, and return the pairs."""
    known = {entry.memory.uid: entry.memory for entries in sections.values() for entry in entries}
    found = [pair for reader in readers for pair in _contradictions(known, reader, readers)]
    pairs = [pair for pair in found if not _has_unjudged_rival(pair, known, situation)]
    for memory, rival in (sides for pair in pairs for sides in (pair, pair[::-1])):
        if rival.uid not in known and not is_told(rival, situation.told):
            _put_beside(sections, memory, Entry(memory=rival, reason=f"contradicts {memory.ref}"))
    return pairs


def _has_unjudged_rival(pair: Pair, known: Mapping[str, Memory], situation: Situation) -> bool:
    """Return True if one side is an unjudged finding, which would come in only as a rival."""
    return any(one.uid not in known and out_of_place(one, situation) == UNJUDGED for one in pair)


def _contradictions(known: Mapping[str, Memory], reader: Reader, readers: Sequence[Reader]) -> Iterator[Pair]:
    """Yield the pairs that contradict each other, with a known memory. If one side was demoted, the pair is settled."""
    for conflict in open_conflicts(reader, known.keys()):
        left, right = (known.get(uid) or live_side(uid, readers) for uid in (conflict.left, conflict.right))
        if left is None or right is None:  # one was archived or erased: no longer a contradiction
            continue
        if (left.feedback < 0) == (right.feedback < 0):
            yield left, right


def _put_beside(sections: dict[str, list[Entry]], memory: Memory, rival: Entry) -> None:
    for entries in sections.values():
        for place, entry in enumerate(entries):
            if entry.memory.uid == memory.uid:
                entries.insert(place + 1, rival)
                return


# Rules of work


def _for_all_work(readers: Sequence[Reader], situation: Situation) -> list[Entry]:
    """Return the rules that hold for all work, the surest first."""
    newest = [one for reader in readers for one in reader.select(Where(seen_by=situation.seen_by), limit=NEWEST)]
    pool = {memory.uid: memory for memory in (*_newest_rules(readers, situation.seen_by), *newest)}
    here = [one for one in pool.values() if is_worth_telling(one) and not out_of_place(one, situation)]
    return [Entry(memory=memory, reason="holds for all work here") for memory in standing(here)]


def _for_work(readers: Sequence[Reader], situation: Situation, asked: Set[str]) -> list[Entry]:
    """Return the rules that concern the work of a prompt, the nearest first."""
    found = _newest_rules(readers, situation.seen_by)
    rules = [memory for memory in found if not memory.is_low_trust and not out_of_place(memory, situation)]
    if not rules:
        return []
    return [Entry(memory=memory, reason="holds for such work") for memory in concerning(rules, situation.prompt, asked)]


def _newest_rules(readers: Sequence[Reader], seen_by: str | None) -> list[Memory]:
    """Return the newest preferences, conventions, corrections and commands, each once."""
    found: dict[str, Memory] = {}
    for where in (Where(kinds=RULE_KINDS, seen_by=seen_by), Where(tags=RULE_TAGS, seen_by=seen_by)):
        words = [word for name in (*where.kinds, *where.tags) for word in text.words(name)]  # indexed as words
        for reader in readers:
            hits = reader.search(words, where, limit=NEWEST_RULES, newest=True)
            found |= {hit.memory.uid: hit.memory for hit in hits}
    return list(found.values())


def standing(memories: Iterable[Memory]) -> list[Memory]:
    """Return the rules that hold for all work, the surest first; of those that say the same one.

    The order does not depend on the day or on how often they were used, so that a start gets the same bytes each time.
    """
    points = {memory.uid: (_points(memory), memory) for memory in memories if is_told_at_a_start(memory)}
    sure = [(number, memory) for number, memory in points.values() if number >= LEAST_POINTS]
    sure.sort(key=lambda one: (one[1].status == "candidate", -one[0], one[1].space, -one[1].id))
    return _each_says_more((memory for _, memory in sure), MOST_STANDING)


def is_told_at_a_start(memory: Memory) -> bool:
    """Return True unless a statement is of low trust, was demoted, or is a finding that was not promoted."""
    is_finding = memory.status == "candidate" and memory.tier in ("session", "task")
    return not memory.is_low_trust and memory.feedback >= 0 and not is_finding


def _points(memory: Memory) -> float:
    """Return how surely a statement is a standing rule: by its kind, its author, its form and its activity."""
    is_rule = memory.kind in RULE_KINDS or "correction" in memory.tags
    points = 2.0 * is_rule + (memory.trust == "user")
    if _FOR_ALWAYS.search(memory.content):
        points += 2
    elif _ORDER.search(memory.content) or FILLERS.isdisjoint(text.words(memory.content)):
        points += 1  # an order, or perhaps one in another language
    points += _ACTIVITY.search(memory.content) is not None
    points -= 0.75 * min(2, len(_NAME.findall(memory.content)))
    points -= (len(memory.content) > LONG_CHARS) + 2 * (_REPORT.search(memory.content) is not None)
    return points


def concerning(rules: Sequence[Memory], prompt: str, asked: Set[str]) -> list[Memory]:
    """Return the rules that concern the work of a prompt, the nearest first. `asked` are its telling words."""
    concerns = _concerns(prompt, asked)
    held = {rule.uid: frozenset(text.words(rule.content)) for rule in rules}
    telling = _telling_apart(asked, held)

    def rank(rule: Memory) -> tuple[int, bool, float, int]:
        known = rule.importance * worth.feedback_factor(rule.feedback)
        return -len(telling & held[rule.uid]), "correction" not in rule.tags, -known, -rule.id

    here = sorted((rule for rule in rules if _holds_here(held[rule.uid], telling, concerns)), key=rank)
    return _each_says_more(here, MOST_RULES)


def _each_says_more(rules: Iterable[Memory], most: int) -> list[Memory]:
    """Return the first rules, without those that say little beside the ones before them."""
    chosen: list[Memory] = []
    said: set[str] = set()
    for rule in rules:
        own = set(text.words(rule.content)) - WORTHLESS
        if len(own - said) > NEW_SHARE * len(own) and len(chosen) < most:
            chosen.append(rule)
            said |= own
    return chosen


def _telling_apart(asked: Set[str], held: Mapping[str, Set[str]]) -> Set[str]:
    """Return the words asked for and their aliases that tell one rule from another."""
    n_holding = Counter(word for words in held.values() for word in words)
    everywhere = {word for word, n in n_holding.items() if n > max(FEW, len(held) / 3)}
    near = asked | {other for others in expansions(sorted(asked), ()).values() for other in others}
    return near - COMMON - WORTHLESS - everywhere


def _holds_here(held: Set[str], telling: Set[str], concerns: Set[str]) -> bool:
    """Return True if a rule with these words names the work of the prompt, or concerns it and not how to run it."""
    return not held.isdisjoint(telling) or (not held.isdisjoint(concerns) and held.isdisjoint(RUNNING))


def _concerns(prompt: str, asked: Set[str]) -> frozenset[str]:
    """The words of rules that concern the work that a prompt asks for; for a question, how to answer."""
    if _WRITES.match(prompt):
        return ANSWERS | TEXTS
    if _ASKS.match(prompt):
        return ANSWERS
    return ANSWERS | CODE if asked.isdisjoint(ON_SCREENS) else ANSWERS | CODE | SCREENS
