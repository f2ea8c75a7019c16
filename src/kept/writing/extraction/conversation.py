"""Read a conversation once, message by message, and choose what to propose of it.

Used by extraction. A Conversation holds the state of one pass: statements of the user, passages of the agent, and fixed
errors. Rule: the last word counts. Each statement of the user is compared with everything said before,
and what it overrules is dropped; in doubt both stay proposals.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from kept import text
from kept.model import CONTEXT, Draft, Message, Origin, Source, Trust, replace
from kept.tables import IMPORTANCE_BY_KIND, by_kind
from kept.text import compiled
from kept.writing.conflicts import CORRECTION
from kept.writing.extraction import evidence, sorts
from kept.writing.extraction.choices import MAX_ASKED_CHARS, choice_of, options_in
from kept.writing.extraction.commands import Commands
from kept.writing.extraction.edits import MAX_FILES, Edits, edits_in
from kept.writing.extraction.evidence import JudgedPassage, judge, names_in
from kept.writing.extraction.failures import Failure, Failures, command_in, is_telling
from kept.writing.extraction.gist import Gist
from kept.writing.extraction.passages import (
    INTERRUPTED,
    MIN_SENTENCE_CHARS,
    Passage,
    noted_passages,
    passages,
)
from kept.writing.extraction.resolutions import fix_of
from kept.writing.extraction.rules import lowered, rules
from kept.writing.extraction.said import MIN_THINGS, Before, Statement, statements_in
from kept.writing.extraction.statements import dated, finished, own_words
from kept.writing.extraction.topics import topics_in
from kept.writing.grammar import read as read_sentence
from kept.writing.last_word import NO, YES, overrules
from kept.writing.over import over_in
from kept.writing.quotes import split
from kept.writing.speech import elided
from kept.writing.things import Values, things_in, values_of

MAX_CHARS = 500
MAX_PROPOSALS = 15  # of a session: about 1,000 tokens for whoever judges them
MIN_PROPOSALS = 3
MESSAGES_PER_PROPOSAL = 2  # a short session has few
FIX_POINTS = 12  # of an error with its fix: always proposed
MIN_POINTS = 4  # fewer are not worth the attention of a judge
MIN_ASKED_THINGS = 2
OBJECTION_TURNS = 2  # of the user, to which an objection can refer
TENTATIVE_TURNS = 2  # of the user, after which "I was thinking of …" is not decided by another statement
MOST_COMPARED = 100  # earlier statements about the same thing: a day of talk about one subject
MIN_NAME_CHARS = 3  # of a name that is looked for in replaced code
MAX_TAGS = 5
MAX_TAG_CHARS = 40

# The confidence in a draft by its source, and the share of its kind's importance that it gets.
USER_CONFIDENCE = 0.9
AGENT_CONFIDENCE = 0.6
RESOLUTION_CONFIDENCE = 0.7
AGENT_SHARE = 0.8
SHARE_PER_POINT = 0.03  # above the threshold: more evidence, more importance
USER_WARNING_IMPORTANCE = 0.8

USER_INTENT = "user-intent"
ERROR_RESOLUTION = "error-resolution"
OPEN = "open"
COMMAND = "command"
FIX = "fix"


_CORRECTING = ("objects", "change", "contrasts", "prohibits", "recalls", "decides")
_WEIGHTY = (
    *("decides", "standing", "prohibits", "contrasts", "recalls", "warns", "prefers", "answer", "personal"),
    *("names_self", "objects"),
)  # marks of a statement that says more than a problem
# "Tell me when it fails" reports no failure.
_CASE = (
    r"(?i)\b(?:when|whenever|if|in case|wenn|falls|sobald|quand|lorsque?|si|cuando|quando|se|caso)\b"
    r"|とき|場合|たら|れば"
)
_NO_SUBJECT = r"[A-Z][a-z]+s\b(?! (?:is|are|was|were|must|can|need|have)\b)"  # of a list item: "Opens the log"


class ExtractedDraft(Struct, frozen=True):
    """A draft, the message it comes from, and its signals of importance."""

    draft: Draft
    message_id: str
    signals: tuple[str, ...] = ()
    is_minor: bool = False  # a sentence of the user that is worth keeping only if it changes a known memory

    @property
    def sort(self) -> str:
        return str((self.draft.data or {}).get("sort", ""))


class _Found(Struct):
    """Something that could be proposed: its points, its place in the order of reading, and if it is overruled."""

    content: str
    message: Message
    points: float
    place: int
    turn: int
    values: Values
    statement: Statement | None = None
    judged: JudgedPassage | None = None
    fix: tuple[ExtractedDraft, ...] = ()
    corrects: tuple[ExtractedDraft, ...] = ()  # the fix in whose place the user says this
    is_problem: bool = False  # the user reports something wrong: over when the code is changed for it
    is_over: bool = False
    is_doubtful: bool = False

    @property
    def said(self) -> str:
        """Return its words, without the context that explains them."""
        return self.statement.said if self.statement else self.content


class Conversation:
    """One pass over the messages, and the state that it needs."""

    def __init__(self, messages: Sequence[Message], edits: Edits, *, is_chat: bool) -> None:
        self._messages = messages
        self._is_chat = is_chat
        self._edits = edits
        self._failures = Failures()
        self._commands = Commands()
        self._calls: deque[Message] = deque()  # tool calls whose result has not come yet
        self._heard = Before()
        self._turn = 0
        self._found: list[_Found] = []
        self._judged: dict[str, list[JudgedPassage]] = {}  # by message: what may be told
        self._request: tuple[Message, str] | None = None  # the user's last one
        self._is_interrupted = False  # the work on it
        self._last_ran: Message | None = None
        self._recommended: set[str] = set()  # commands that a fix names as the way that works

    def read(self) -> Iterator[ExtractedDraft]:
        readers = {
            "user": self._read_user,
            "assistant": self._read_assistant,
            "summary": self._read_summary,
            "tool_call": self._read_call,
            "tool_result": self._read_result,
        }
        for message in self._messages:
            if message.role in readers:
                readers[message.role](message)
        commands = list(self._working_commands())
        for found in self._best(len(commands)):
            yield from found.fix or [self._proposed(found)]
        yield from commands
        yield from self._unfinished()
        for found in self._found:
            if found.statement is not None and not found.is_over and found.points < MIN_POINTS:
                yield replace(self._stated(found), is_minor=True)

    # ---- the user ----

    def _read_user(self, message: Message) -> None:
        self._calls.clear()
        if message.trust != "user":  # an agent wrote it to a sub-agent, or the author is unknown
            return
        if message.content.lstrip().lower().startswith(INTERRUPTED):
            self._is_interrupted = True
            return
        read = passages(message.content, is_long_pasted=True) or self._bare_choice(message)
        if not read:
            return
        self._turn += 1
        if (first := read_sentence(read[0].sentences[0])).act == "reacts" and first.has("undo"):
            self._undo_last()
        self._request, self._is_interrupted = (message, read[0].text), False
        before = len(self._found)
        is_to_mend = any(read_sentence(one).has("mends") for passage in read for one in passage.sentences)
        for statement in statements_in(message, read, self._heard, is_chat=self._is_chat):
            found = self._add(statement.content, message, statement.points, statement=statement)
            found.is_problem = _tells_problem(statement, is_to_mend=is_to_mend)
            self._overrule(found, statement, before)
        self._heard.own_question = _last_question(read) or self._heard.own_question
        self._heard.agent = self._heard.asked = self._heard.question = ""

    def _undo_last(self) -> None:
        """Drop the user's last statement, if it was made in the turn before: "scratch that"."""
        last = _last_said(self._found)
        if last is not None and last.turn == self._turn - 1:
            last.is_over = True

    def _bare_choice(self, message: Message) -> list[Passage]:
        """Return an answer that is too short for a sentence, if options were offered: "B"."""
        answer = message.content.strip()
        is_sign = len(answer) < MIN_SENTENCE_CHARS and choice_of(answer, options_in(self._heard.asked)) is not None
        return [Passage((answer,))] if is_sign else []

    def _add(self, content: str, message: Message, points: float, **about: Any) -> _Found:
        found = _Found(content, message, points, len(self._found), self._turn, values_of(content), **about)
        self._found.append(found)
        return found

    def _overrule(self, later: _Found, statement: Statement, of_message: int) -> None:
        """Drop what this statement ends: earlier statements of the user, and passages of the agent."""
        mine = _last_said(self._found[: later.place])
        new, over = values_of(statement.said), over_in(statement.said)
        earlier = _open_to(later, statement, self._found[: later.place])
        if _decides(statement) and (tried := _last_said(earlier, "guess")) is not None:
            tried.is_over |= tried.turn >= later.turn - TENTATIVE_TURNS
        open_ones = ((one, new.may_meet(one.values, over)) for one in earlier if not one.is_over)
        near = [(one, is_about) for one, is_about in open_ones if is_about or later.turn - one.turn <= 1]
        for each, is_about in near[-MOST_COMPARED:]:
            turns = later.turn - each.turn
            is_next = each is mine and each.place >= of_message - 1
            answer = overrules(statement.said, each.said, is_next=is_next, marks=_marks_after(turns, statement))
            is_own_undo = each.message.id == later.message.id and _only_undoes(statement, new)
            later.is_over |= is_own_undo and answer == YES  # "Forget that" says no more than that
            is_questioned = turns == 1 and _questions(statement, each, is_about)
            is_named = not over.isdisjoint(each.values.keys)
            _answered(each, later, answer, is_questioned=is_questioned, is_named=is_named)
            each.is_over |= turns == 1 and _turns_down(statement, each, is_questioned=is_questioned)

    # ---- the agent ----

    def _read_assistant(self, message: Message) -> None:
        self._calls.clear()
        read = passages(message.content)
        if self._failures.are_open:
            causes = [each for passage in read for each in passage.sentences if evidence.explains(each)]
            self._failures.said(
                [(each, message) for each in causes if not read_sentence(own_words(each)).has("points_back")]
            )
        self._is_interrupted = False
        self._take_back(read)
        self._judge(message, read)
        spoken = [sentence for passage in read for sentence in passage.sentences]
        if spoken:
            question = _last_question(read)
            self._heard.agent, self._heard.asked = spoken[-1], split(message.content[-MAX_ASKED_CHARS:]).own
            self._heard.question = question

    def _take_back(self, read: Sequence[Passage]) -> None:
        """Drop the latest findings that the agent itself calls wrong, and doubt the others."""
        latest = [each for each in self._found if each.judged is not None and each.turn >= self._turn - 1]
        for sentence in (each for passage in read for each in passage.sentences) if latest else ():
            if rules()["corrects"].fits(lowered(sentence)):
                for found in latest:
                    found.is_doubtful = True
                    found.is_over |= not things_in(sentence).isdisjoint(found.values.things)

    def _read_summary(self, message: Message) -> None:
        self._judge(message, noted_passages(message.content))

    def _judge(self, message: Message, read: Sequence[Passage]) -> None:
        """Collect the passages with enough evidence."""
        self._judged[message.id] = [each for each in map(judge, read) if each is not None]
        for judged in self._judged[message.id]:
            if judged.points >= MIN_POINTS:
                self._add(evidence.worded([judged]), message, judged.points, judged=judged)

    # ---- what is proposed ----

    def _best(self, commands: int) -> list[_Found]:
        """Return what has the most points, none twice, in the order of reading."""
        most = min(MAX_PROPOSALS - commands, max(MIN_PROPOSALS, -(-len(self._messages) // MESSAGES_PER_PROPOSAL)))
        pool = [each for each in self._found if not each.is_over and each.points >= MIN_POINTS]
        chosen, taken = list[_Found](), 0
        from_message: Counter[str] = Counter()
        while pool := pool if taken < most else list(filter(_is_order, pool)):
            best = max(pool, key=lambda each: (each.points - from_message[each.message.id], each.place))
            pool.remove(best)
            items = self._items_beside(best)
            chosen.append(replace(best, content=evidence.worded(items)) if len(items) > 1 else best)
            taken += len(best.fix) or 1
            from_message[best.message.id] += 1  # a message that was heard already has less to add
            pool = [each for each in pool if each.judged not in items and not _repeats(each, chosen[-1])]
        return sorted(chosen, key=lambda each: each.place)

    def _items_beside(self, found: _Found) -> list[JudgedPassage]:
        """Return a finding and the items of its list that fit beside it, each once in a session."""
        if found.judged is None:
            return []
        items = evidence.of_one_list(found.judged, self._judged[found.message.id])
        self._judged[found.message.id] = [each for each in self._judged[found.message.id] if each not in items]
        return items

    def _proposed(self, found: _Found) -> ExtractedDraft:
        return self._reported(found, found.judged) if found.judged is not None else self._stated(found)

    def _stated(self, found: _Found) -> ExtractedDraft:
        statement = found.statement
        assert statement is not None
        content = dated(finished(own_words(statement.content, by_user=True)), found.message.at)
        kind = sorts.kind_of(statement)
        importance = by_kind(IMPORTANCE_BY_KIND, kind)
        fixed = {key: value for each in found.corrects for key, value in (each.draft.data or {}).items()}
        tags = (CORRECTION,) * statement.has(*_CORRECTING) + (FIX,) * bool(fixed)
        return _extracted(
            found.message,
            content,
            kind,
            USER_WARNING_IMPORTANCE if kind == "warning" else importance,
            USER_CONFIDENCE,
            sort=sorts.FIX if fixed else sorts.sort_of(statement, is_doubtful=found.is_doubtful),
            rules=sorted(statement.marks),
            signals=(USER_INTENT,),
            data={"signature": fixed["signature"]} if fixed else None,
            files=self._edits.files_named(found.content),
            tags=(*tags, *(_tags(content) or topics_in(content))),
        )

    def _reported(self, found: _Found, judged: JudgedPassage) -> ExtractedDraft:
        content = dated(finished(found.content), found.message.at)
        kind, tags = evidence.kind_of(judged)
        is_headless = judged.passage.is_item and not judged.passage.subject and compiled(_NO_SUBJECT).match(content)
        is_sure = not (found.is_doubtful or self._is_chat or is_headless) and evidence.is_impersonal(content)
        share = AGENT_SHARE + SHARE_PER_POINT * (judged.points - evidence.EVIDENT)
        return _extracted(
            found.message,
            content,
            kind,
            round(by_kind(IMPORTANCE_BY_KIND, kind) * min(1.0, share), 3),
            AGENT_CONFIDENCE,
            sort=sorts.EVIDENT if judged.is_evident and is_sure else sorts.FINDING,
            rules=judged.features,
            files=self._edits.files_named(content),
            tags=(*tags, *_tags(content)),
        )

    def _unfinished(self) -> Iterator[ExtractedDraft]:
        """Return the user's last request, if its work was interrupted and not resumed."""
        if self._request is None or not self._is_interrupted:
            return
        message, asked = self._request[0], elided(self._request[1])
        content = dated(f"Not finished: {finished(own_words(asked))}", message.at)
        if len(things_in(asked)) >= MIN_ASKED_THINGS and len(content) <= MAX_CHARS:
            importance = by_kind(IMPORTANCE_BY_KIND, "progress")
            about: dict[str, Any] = {"sort": sorts.STATEMENT, "rules": ("interrupted",), "tags": (OPEN,)}
            yield _extracted(message, content, "progress", importance, AGENT_CONFIDENCE, **about)

    # ---- tools ----

    def _read_call(self, message: Message) -> None:
        self._calls.append(message)
        for edit in edits_in(message):
            path, lines = self._edits.add(edit)
            self._failures.changed(path, lines)
            self._outdate(path, edit.old or "")

    def _outdate(self, path: str, old: str) -> None:
        """Drop the findings of this turn about code that an edit has replaced: a mended defect is no fact."""
        file = path.rpartition("/")[2]
        latest = max((each.turn for each in self._found if each.is_problem), default=0)
        for each in self._found:
            each.is_over |= each.is_problem and each.turn == latest
            if each.judged is not None and each.turn == self._turn and not each.is_over:
                names = names_in(each.content)
                each.is_over = any(file in name or (len(name) > MIN_NAME_CHARS and name in old) for name in names)

    def _read_result(self, message: Message) -> None:
        if message.name == CONTEXT:  # it answers no call
            return
        command = command_in(self._calls.popleft()) if self._calls else None
        if command is None:
            return
        is_error = message.is_error
        for failure in self._failures.ran(command, text.without_delivered(message.content), is_error=is_error):
            if drafts := tuple(self._resolved(failure, message)):
                self._add(drafts[-1].draft.content, message, FIX_POINTS, fix=drafts)
        if not is_error and not self._failures.has_just_failed:
            self._commands.ran(command)
            self._last_ran = message

    def _working_commands(self) -> Iterator[ExtractedDraft]:
        for sentence, command, folder in self._commands.worth_keeping():
            assert self._last_ran is not None
            if command in self._recommended:
                continue  # a fix already recommends it
            folder = self._edits.relative(folder) if folder else ""
            content = (
                f"{sentence} (in {folder})." if folder and not folder.startswith(("/", "$", "~")) else f"{sentence}."
            )
            yield _extracted(
                self._last_ran,
                content,
                "convention",
                by_kind(IMPORTANCE_BY_KIND, "convention") * AGENT_SHARE,
                AGENT_CONFIDENCE,
                sort=sorts.COMMAND,
                rules=("works",),
                tags=(COMMAND,),
                topic=f"command:{command}",
                trust="agent",
            )

    def _resolved(self, failure: Failure, message: Message) -> Iterator[ExtractedDraft]:
        """Return the fix in the agent's words, and the error in the tool's words unless the fix names it."""
        fix = fix_of(failure)
        if fix is None:
            return
        content = self._edits.shorten(fix.content)
        error = self._edits.shorten(f"`{failure.command}` failed: {failure.message.rstrip('.')}.")
        self._recommended.add(failure.instead)
        fields: dict[str, Any] = {
            "files": tuple(dict.fromkeys(failure.changed))[:MAX_FILES],
            "data": {"signature": failure.signature},
        }
        importance, confidence = by_kind(IMPORTANCE_BY_KIND, "error"), RESOLUTION_CONFIDENCE
        if not fix.names_error and is_telling(failure.message):
            tags = _tags(failure.message)
            yield _extracted(
                message,
                error[:MAX_CHARS],
                "error",
                importance,
                confidence,
                sort=sorts.FIX,
                rules=("failed",),
                tags=tags,
                **fields,
            )
        yield _extracted(
            fix.told_in or message,
            content[:MAX_CHARS],
            "error",
            importance,
            confidence,
            sort=sorts.FIX,
            rules=("fixed",),
            signals=(ERROR_RESOLUTION,),
            tags=(FIX, *_tags(content)),
            trust="agent",
            **fields,
        )


def _repeats(found: _Found, chosen: _Found) -> bool:
    """Return True if one says most of the other. Two options chosen share words of their questions only."""
    if all(each.statement is not None and each.statement.has("option") for each in (found, chosen)):
        return False
    return Gist.of(chosen.content).says(Gist.of(found.content))


def _is_order(found: _Found) -> bool:
    """Return True for an explicit order of the user that stands: no limit of proposals drops it."""
    if found.statement is None or not found.statement.has("standing", "recalls", "warns"):
        return False
    return sorts.sort_of(found.statement, is_doubtful=found.is_doubtful) != sorts.STATEMENT


def _last_said(found: Sequence[_Found], mark: str = "") -> _Found | None:
    """Return the last statement of the user among these; with a mark, the last that has it."""
    said = ((each, each.statement) for each in reversed(found) if each.statement is not None)
    return next((each for each, statement in said if not mark or statement.has(mark)), None)


def _open_to(later: _Found, statement: Statement, found: Sequence[_Found]) -> list[_Found]:
    """Return the earlier ones that a statement can end: those of the same message only if it corrects itself."""
    corrects_itself = statement.has("undo", "objects")
    return [each for each in found if corrects_itself or each.message.id != later.message.id]


def _only_undoes(statement: Statement, named: Values) -> bool:
    """Return True for "forget that", and False for "we go back to the sqlite file", which holds from now on."""
    return statement.has("undo") and len(named.things) < MIN_THINGS and not statement.has("first_person")


def _decides(statement: Statement) -> bool:
    """Match a statement that settles an attempt: "I was thinking of …"."""
    return statement.has("change", "objects", "decides") and not statement.has("guess")


def _marks_after(turns: int, statement: Statement) -> frozenset[str]:
    """Return the marks that count for a statement so many turns before: "No, …" answers only the last ones."""
    return statement.marks if turns <= OBJECTION_TURNS else statement.marks - {"objects"}


def _turns_down(statement: Statement, found: _Found, *, is_questioned: bool) -> bool:
    """Match an objection to the things that a passage of the agent names, and the choice of another option."""
    if found.judged is None:
        return False
    is_denied = is_questioned and not things_in(statement.said).isdisjoint(found.values.things)
    return is_denied or _offers(found, statement)


def _answered(earlier: _Found, later: _Found, answer: int, *, is_questioned: bool, is_named: bool) -> None:
    """Mark what was said earlier as ended or doubtful, by the answer of `overrules` and by an objection to it."""
    is_fix_refused = is_questioned and bool(earlier.fix)
    if is_fix_refused:
        later.corrects = earlier.fix
    # An agent's older statement is only doubtful then, unless the user names its thing as over: the user answers the
    # agent's last words.
    is_ended = answer == YES and (earlier.judged is None or earlier.turn >= later.turn - 1 or is_named)
    earlier.is_over = is_ended or is_fix_refused
    earlier.is_doubtful |= answer != NO or is_questioned


def _tells_problem(statement: Statement, *, is_to_mend: bool) -> bool:
    """Return True for a statement about something that is wrong, and that holds until it is mended.

    `is_to_mend`: the message also asks to find out why. Names from code make a statement more than a report.
    """
    if not statement.has("states") or statement.has(*_WEIGHTY) or compiled(_CASE).search(statement.said):
        return False
    is_plain = not statement.has("rule", "change", "reason") and not names_in(statement.said)
    return statement.has("fails") or (is_to_mend and is_plain)


def _offers(found: _Found, statement: Statement) -> bool:
    """Return True for a passage of the agent with an option that the statement has not chosen."""
    offered = (things_in(option) for option in statement.not_chosen)
    return any(things and things <= found.values.things for things in offered)


def _questions(statement: Statement, found: _Found, is_about: bool) -> bool:
    """Return True if a statement objects to something that the agent said or did in the turn before it.

    To a fix only if it is about the same thing, or names nothing else: "no, raise an error instead".
    """
    if found.statement is not None:
        return False
    if not found.fix:
        return statement.has("objects")
    if is_about:
        return statement.has("objects", "change", "prohibits", "contrasts")
    return statement.has("objects", "change") and len(things_in(statement.said)) <= MIN_ASKED_THINGS


def _extracted(
    message: Message,
    content: str,
    kind: str,
    importance: float,
    confidence: float,
    *,
    sort: str,
    rules: Sequence[str],
    signals: tuple[str, ...] = (),
    data: dict[str, Any] | None = None,
    trust: Trust | None = None,
    **fields: Any,
) -> ExtractedDraft:
    """Make a draft of the session tier from a message; `fields` are further fields of the draft."""
    origin: Origin = "conversation" if message.role == "user" else "extraction"
    source = Source(origin=origin, session=message.session or None)
    draft = Draft(
        content=content,
        kind=kind,
        importance=importance,
        confidence=confidence,
        trust=trust or message.trust,
        created_at=message.at,
        tier="session",
        source=source,
        data={**(data or {}), "rules": list(rules), "sort": sort},
        **fields,
    )
    return ExtractedDraft(draft, message.id, signals)


def _last_question(read: Sequence[Passage]) -> str:
    spoken = [sentence for passage in read for sentence in passage.sentences]
    return elided(next((each for each in reversed(spoken) if each.endswith(("?", "？"))), ""))


def _tags(content: str) -> tuple[str, ...]:
    """Return the names from code in a statement that are short enough for tags."""
    names = [name for name in names_in(content) if " " not in name and len(name) <= MAX_TAG_CHARS]
    return tuple(names[:MAX_TAGS])
