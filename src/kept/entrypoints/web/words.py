"""Times, kinds, actions and reasons as a person reads them. Pure."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from functools import lru_cache
from math import exp, log

from kept import worth
from kept.memory.reasons import coverage_of
from kept.memory.receipts import RecallReceipt
from kept.model import PROPOSAL, Memory
from kept.text import without_delivered
from kept.text import words as words_of

SPEAKERS = {"user": "You said", "agent": "The agent said"}
FAMILIES = {
    **dict.fromkeys(("decision", "architecture", "pattern", "convention", "preference"), "rule"),
    **dict.fromkeys(("warning", "error"), "risk"),
    **dict.fromkeys(("discovery", "fact"), "learned"),
    **dict.fromkeys(("summary", "progress", "file_change", "reasoning", "tool_output"), "trace"),
}
SIGNS = frozenset("decision architecture pattern convention warning error discovery preference summary fact".split())
SECTIONS = {
    "always": ("Pinned", "pinned"),
    "pinned": ("Pinned", "pinned"),
    "bridge": ("From other agents", "bridge"),
    "retrieval": ("Relevant now", "relevant"),
    "summary": ("Earlier sessions", "earlier"),
    "known errors": ("Known errors", "conflict"),
    "guard": ("Guard", "conflict"),
    "concerns": ("Concerns this call", "relevant"),
    "frame": ("Markup", "frame"),
}
EVENTS = {
    "SessionStart": "at the start of the session",
    "UserPromptSubmit": "before a prompt",
    "BeforeAgent": "before a prompt",
    "PostToolUse": "after an error",
    "PostToolUseFailure": "after an error",
    "PreToolUse": "before a tool call",
    "BeforeTool": "before a tool call",
    "SubagentStart": "to a sub-agent",
    "PreCompact": "before compaction",
    "PostCompact": "after compaction",
    "Stop": "at the end of a turn",
}
# The same where an event has another name, as the agents that are not Claude Code have.
_WHEN_OF_MOMENT = {
    "start": "at the start of the session",
    "prompt": "before a prompt",
    "action": "at a tool call",
    "failure": "after an error",
    "subagent": "to a sub-agent",
    "compaction": "at a compaction",
    "judge": "a list to judge",
}
# At which moment of its work an agent was given a text.
MOMENTS = {
    "start": "Start",
    "prompt": "Prompt",
    "action": "Action",
    "failure": "Failure",
    "subagent": "Sub-agent",
    "compaction": "Compaction",
    "judge": "List to judge",
}
# Instead of a question, where none was asked.
OCCASIONS = {
    "Start": "Start of the session",
    "Compaction": "The conversation was made shorter",
    "Sub-agent": "A sub-agent began",
    "Action": "A tool call",
    "Failure": "A failure",
}
_CONCERNS = re.compile(r"^concerns (?P<what>[^;]+)")
GUARD = "you made it a guard"
ONLY_COMMON = "only everyday words"
LOOKED_AT = 4_000  # characters that are searched for a word which is not written as it is indexed
_MOMENT_OF_EVENT = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "PreToolUse": "action",
    "PostToolUseFailure": "failure",
    "SubagentStart": "subagent",
    "PreCompact": "compaction",
    "PostCompact": "compaction",
}
TRUSTS = {
    "user": "you",
    "teammate": "a teammate",
    "agent": "an agent",
    "tool": "a tool",
    "unknown": "an unknown source",
}
STATUSES = {"candidate": "unconfirmed"}  # under other names than their own
LIFETIMES = {"task": "of its task", "session": "of its session", "project": "of the project", "global": "everywhere"}
_TAG = re.compile(r"<(\w[\w-]*+)?[^<>]*+>")
_END_TAG = re.compile(r"</(\w[\w-]*+)>")
_SIGN = re.compile(r"^\s*[-#>*]+\s")  # of a heading, a list or a quotation
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
_NO_TAG = re.compile(r"[/\\<>{}\[\]()`\"'=]|^-|\.\w{1,4}$")  # paths, flags and markup that a program took for tags
PAST = {
    "remember": "remembered",
    "reinforce": "reinforced",
    "demote": "demoted",
    "pin": "pinned",
    "unpin": "unpinned",
    "forget": "forgot",
    "restore": "restored",
    "revise": "revised",
    "resolve": "settled",
    "promote": "promoted",
    "archive": "archived",
    "supersede": "superseded",
    "confirm": "confirmed",
    "strengthen": "strengthened",
    "erase": "erased",
    "undo": "undid",
    "expire": "archived",
    "evict": "archived",
    "penalise": "weakened",
    "verify": "verified",
    "session": "began a session",
    "finish": "finished a session",
    "checkpoint": "saved findings of a session",
    "reopen": "reopened a session",
    "task": "changed a task",
    "conflict": "found a contradiction",
    "extract": "took from a file",
    "guard": "made a guard of",
    "unguard": "ended the guard of",
    "override": "let pass a call that was refused, by the guard",
    "guard-lapse": "ended, after three calls made again, the guard of",
    "pack": "packed the conversation",
    "unpack": "unpacked the conversation",
    "accept author": "accepted the author",
    "alias": "changed other words for",
    "allow": "allowed a value that was taken for a secret",
    "attest": "vouched for",
    "clear": "cleared the tasks",
    "close": "closed",
    "distrust": "no longer trusts",
    "doubt": "marked as unconfirmed",
    "follow": "followed the code of",
    "judge": "judged",
    "lift": "allowed to come back",
    "pause": "paused Kept",
    "reject": "noted that it must not come back",
    "resume": "resumed Kept",
    "share": "shared",
    "summarize": "wrote the summary of",
    "touch": "read again",
    "unshare": "no longer shares",
    "withdraw": "took back",
}
SMALL = frozenset(
    "the a an and or of to in on is are was be it for with after before from at by not my this that what how".split()
)
_UNITS = (("year", 31_104_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60))


def family(kind: str) -> str:
    """The family of a kind, which gives it its colour."""
    return FAMILIES.get(kind, "learned")


def sign(kind: str) -> str:
    """The sign of a kind; an unknown one has that of a fact."""
    return kind if kind in SIGNS else "tool_output" if kind in ("tool_output", "file_change") else "fact"


def tags(memory: Memory) -> list[str]:
    """The tags of a memory that a person would call tags."""
    return [tag for tag in memory.tags if not _NO_TAG.search(tag) and tag != PROPOSAL]


def section(name: str) -> tuple[str, str]:
    """The name of a briefing's section for a person, and its colour."""
    return SECTIONS.get(name, (name.capitalize(), "relevant"))


def moment(given: RecallReceipt) -> str:
    """Name the moment of a text in one word; a receipt without one has the event of its host."""
    if given.kind == "known_error":
        return MOMENTS["failure"]
    known = given.moment or _MOMENT_OF_EVENT.get(given.event or "", given.event or "")
    return MOMENTS.get(known, known.capitalize())


def when(given: RecallReceipt) -> str:
    """Say when a text was given, without the name that a program has for its event."""
    known = given.moment or _MOMENT_OF_EVENT.get(given.event or "", "")
    said = EVENTS.get(given.event or "", _WHEN_OF_MOMENT.get(known, ""))
    return said or (given.event or "asked by an agent or a person")


def occasion(given: RecallReceipt) -> str:
    """Name the occasion of a text: the question, the tool call, the list, or the moment."""
    if given.question.query:
        return given.question.query
    if given.call:
        return given.call[:1].upper() + given.call[1:]
    if given.kind == "judge":
        return f"{counted(given.statements, 'statement')} to judge"
    said = OCCASIONS.get(moment(given), when(given)[:1].upper() + when(given)[1:])
    return f"{said} that concerns {found}" if given.kind == "action" and (found := _concerned(given)) else said


def _concerned(given: RecallReceipt) -> str:
    """Return the file or command of the first reason; "" if no reason names one."""
    reasons = (str(entry.get("reason")) for part in given.sections for entry in part.get("entries", ()))
    first = _CONCERNS.match(next(reasons, ""))
    return first["what"] if first else ""


def outcome(given: RecallReceipt) -> str:
    """Name the content of a text in a word or two: lines, a list to judge, nothing, or that a call was refused."""
    if given.guard is not None:
        return given.guard
    if given.kind == "judge" and given.block:
        return f"a list of {given.statements}" if given.statements else "a list"
    number = sum(len(part.get("entries", ())) for part in given.sections)
    return counted(number, "line") if number else "nothing"


def done(action: str) -> str:
    """What somebody did, by the action in the journal."""
    return PAST.get(action, action.replace("_", " "))


def who(actor: str) -> str:
    """Who did it: the person who looks at the page is "you"."""
    return "you" if actor == "user" else actor


def status(name: str) -> str:
    """Name the status of a memory for a person."""
    return STATUSES.get(name, name)


def speaker(who: str) -> str:
    """Say whose a statement of a list to judge is."""
    return SPEAKERS.get(who, who[:1].upper() + who[1:])


def not_given(reason: str) -> str:
    """Say why an agent that asks for the same would not get a memory."""
    said = "summaries come only when asked for" if reason.startswith("a summary of a session") else reason
    return f"Not given to agents: {said}"


def age(at: datetime | None, now: datetime) -> str:
    """How old something is: "2 months old", "today"."""
    if at is None:
        return ""
    seconds = (now - at).total_seconds()
    if seconds < 86_400:
        return "today"
    unit, size = next((unit, size) for unit, size in _UNITS if seconds >= size)
    return f"{counted(int(seconds // size), unit)} old"


def ago(at: datetime, now: datetime) -> str:
    """Say how long ago something was: "just now", "5 minutes ago", "14 days ago"."""
    seconds = (now - at).total_seconds()
    found = next(((unit, size) for unit, size in _UNITS if seconds >= size), None)
    return "just now" if found is None else f"{counted(int(seconds // found[1]), found[0])} ago"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things: "1 memory", "2,000 memories"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def title(said: str, most: int) -> str:
    """Name a conversation by its first sentence, without the markup of programs."""
    plain = " ".join(_without_markup(without_delivered(said)).split())
    first = _SENTENCE_END.split(plain, maxsplit=1)[0] if plain else " ".join(said.split())
    return cut(first, most)


def _without_markup(said: str) -> str:
    """Return a text without tags, the content of tags that are closed, and the sign of a heading at its start.

    The text may be megabytes of tags that nothing closes, so no tag is searched for its end in vain.
    """
    said = _SIGN.sub(" ", said)
    last = {end[1]: end.start() for end in _END_TAG.finditer(said)}
    parts, at = [], 0
    for tag in _TAG.finditer(said):
        if tag.start() >= at:
            parts.append(said[at : tag.start()])
            is_closed = last.get(tag[1], -1) >= tag.end()
            at = said.index(end := f"</{tag[1]}>", tag.end()) + len(end) if is_closed else tag.end()
    return " ".join([*parts, said[at:]])


def cut(text: str, most: int) -> str:
    """A text in a list of links, at most that long."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def day(at: datetime | None, now: datetime) -> str:
    """A moment in the person's time zone, short: "today 09:12", "9 Nov, 10:12", "9 Nov 2025, 10:12"."""
    if at is None:
        return ""
    local, today = at.astimezone(), now.astimezone().date()
    name = {0: "today", 1: "yesterday", -1: "tomorrow"}.get((today - local.date()).days)
    if name:
        return f"{name} {local:%H:%M}"
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year}, {local:%H:%M}"


def date_said(day: date | None, now: datetime) -> str:
    """Return a day in short: "1 Oct", "1 Oct 2025"."""
    if day is None:
        return ""
    return f"{day.day} {day:%b}" + ("" if day.year == now.astimezone().year else f" {day.year}")


def full(at: datetime) -> str:
    """A moment in the person's time zone with everything that `day` leaves out."""
    local = at.astimezone()
    return f"{local:%A}, {local.day} {local:%B %Y, %H:%M:%S %Z}".strip()


def hour(at: datetime | None) -> str:
    """The time of day in the person's time zone."""
    return "" if at is None else f"{at.astimezone():%H:%M}"


def heading(at: datetime, now: datetime) -> str:
    """The day of a moment as a heading: Today, Yesterday, Thursday 12 Nov, 3 Mar 2025."""
    local, today = at.astimezone().date(), now.astimezone().date()
    days = (today - local).days
    if days in (-1, 0, 1):
        return ("Today", "Yesterday", "Tomorrow")[days]
    shown = f"{local.day} {local:%b}" if local.year == today.year else f"{local.day} {local:%b %Y}"
    return f"{local:%A} {shown}" if 0 < days < 7 else shown


def reason(factor: str, value: float, memory: Memory | None, matched: Mapping[str, str], query: str = "") -> str:
    """Say in a few words why a factor has its value.

    Read back from the number itself: the memory may have changed since the score was computed.
    """
    if factor == "match":
        return _matched(matched, "" if memory is None else f"{memory.title or ''} {memory.content}", query)
    return _REASONS[factor](value, memory) if factor in _REASONS else ""


def _matched(matched: Mapping[str, str], content: str, query: str) -> str:
    """List the words that were found, as they are written in the text or in the question, each with how it came in.

    A word that stands in neither is a form of a search alone, such as a path without its signs, and is left out.
    """
    told = {stem: _as_written(stem, content) or _as_written(stem, query) for stem in matched if stem not in SMALL}
    found = {word: matched[stem] for stem, word in told.items() if word}
    said = (word if found[word] in ("", "asked for") else f"{word} ({found[word]})" for word in _whole(found))
    return ", ".join(said) or ONLY_COMMON


def _whole(found: Collection[str]) -> list[str]:
    """Return the words without those that are a part of another, such as of a path."""
    parts = {part for word in found if not word.isalnum() for part in re.findall(r"\w+", word.lower())}
    return [word for word in found if word not in parts or not word.isalnum()]


def _as_written(stem: str, content: str) -> str:
    found = re.search(rf"(?<!\w){re.escape(stem)}\w*", content, re.IGNORECASE)
    return found[0].lower() if found else _written_in(content[:LOOKED_AT]).get(stem, "")


@lru_cache(maxsize=256)
def _written_in(content: str) -> Mapping[str, str]:
    """Map each word of a search to the run of a text that it was made of."""
    runs = (run.strip(".,;:!?()[]{}\"'`") for run in content.split())
    found: dict[str, str] = {}
    for run in runs:
        for word in words_of(run):
            found.setdefault(word, run)
    return found


def _feedback(value: float) -> str:
    return _points(log(max(value, 1e-9)) / worth.FEEDBACK_STEEPNESS)


def _favour(value: float) -> str:
    return _points(worth.feedback_of_favour(value))


def _points(feedback: float) -> str:
    return f"{round(feedback):+d}" if round(feedback) else "none yet"


def _recency(value: float) -> str:
    days = round((1 / max(value, 1e-9) - 1) / worth.RECENCY_PER_DAY)
    return counted(days, "day") if days else "today"


def _use(value: float) -> str:
    uses = round(exp((value - 1) / worth.USE_STEEPNESS) - 1)
    return f"used {counted(uses, 'time')}" if uses else "not used yet"


def _status(value: float, memory: Memory | None) -> str:
    """Name the status with this factor; where several have it, the one that the memory has today."""
    found = [name for name, number in worth.STATUS_FACTOR.items() if abs(number - value) < 1e-6]
    return status(memory.status if memory is not None and memory.status in found else (found or [""])[0])


def _files(value: float, memory: Memory | None) -> str:
    return f"at hand: {', '.join(memory.files[:2])}" if memory is not None and value > 1 else "none at hand"


def _field(name: str) -> Callable[[float, Memory | None], str]:
    return lambda _value, memory: "" if memory is None else str(getattr(memory, name))


_REASONS: Mapping[str, Callable[[float, Memory | None], str]] = {
    "feedback": lambda value, _memory: _feedback(value),
    "favour": lambda value, _memory: _favour(value),
    "recency": lambda value, _memory: _recency(value),
    "freshness": lambda value, _memory: _recency(worth.recency_of_freshness(value)),
    "use": lambda value, _memory: _use(value),
    "importance": lambda value, _memory: f"{round(worth.importance_of_factor(value), 2):g}",
    "coverage": lambda value, _memory: f"{coverage_of(value):.0%} of what was asked",
    "status": _status,
    "files": _files,
    "kind": _field("kind"),
    "trust": _field("trust"),
}
