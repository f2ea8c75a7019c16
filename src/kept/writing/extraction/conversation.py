"""Read a conversation once, message by message, and collect the drafts that it gives.

Used by extraction. A Conversation holds the state of one pass: the turn, the open errors, the passages found so far,
and the corrections that withdraw some of them. Rule: the user's statements are returned at once; passages and fixes
wait until the end, because a later message may correct them.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from kept import text
from kept.model import CONTEXT, Draft, Message, Origin, Source, Trust, replace
from kept.tables import IMPORTANCE_BY_KIND, by_kind
from kept.writing.clauses import Clause, clauses_of, tells_of_change
from kept.writing.conflicts import CORRECTION
from kept.writing.extraction import evidence
from kept.writing.extraction.commands import Commands
from kept.writing.extraction.edits import MAX_FILES, Edits, edits_in
from kept.writing.extraction.evidence import JudgedPassage, judge, names_in
from kept.writing.extraction.failures import Failure, Failures, command_in, is_telling
from kept.writing.extraction.gist import Gist, KeptStatements
from kept.writing.extraction.passages import INTERRUPTED, Passage, noted_passages, passages
from kept.writing.extraction.resolutions import fix_of
from kept.writing.extraction.rules import SentenceRule, lowered, may_change, rule_for, rules
from kept.writing.extraction.statements import (
    chosen,
    continues,
    dated,
    finished,
    is_only_emphasis,
    lacks_subject,
    own_words,
    points_back,
    statement,
    without_request,
)
from kept.writing.quotes import DOCUMENT_CHARS, hands_over
from kept.writing.speech import elided

MAX_CHARS = 500
MAX_PER_TURN = 2  # statements of an agent between two of the user's: the best; the others repeat them
MESSAGES_PER_MORE = 4  # messages of the agent in a turn that allow one more finding: it worked long without the user
MAX_PER_SESSION = 30
MAX_OF_A_SUMMARY = 8
MAX_OF_A_PLAN = 10
MAX_OPEN = 3
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


class ExtractedDraft(Struct, frozen=True):
    """A draft, the message it comes from, and its signals of importance."""

    draft: Draft
    message_id: str
    signals: tuple[str, ...] = ()
    is_minor: bool = False  # a sentence of the user without any cue: worth keeping only if it changes a known fact


class _FoundPassage(Struct, frozen=True):
    """A passage of an agent that could be kept, its place and its evidence."""

    judged: JudgedPassage
    message: Message
    turn: int
    place: int  # in the order of reading
    kind: str
    gist: Gist
    tags: tuple[str, ...] = ()


class _FixedError(Struct, frozen=True):
    """An error that went away, and the drafts about it, which an objection of the user withdraws."""

    drafts: tuple[ExtractedDraft, ...]
    failure: Failure
    turn: int
    gist: Gist
    means: frozenset[str]  # the words of the lines written and the commands run

    @staticmethod
    def of(drafts: tuple[ExtractedDraft, ...], failure: Failure, turn: int) -> "_FixedError":
        lines = [line for new in failure.changed.values() for line in new]
        written = {word for line in (*lines, *failure.ran[-1:], failure.instead) for word in text.words(line)}
        means = frozenset(written - {word for known in failure.words for word in text.words(known)})
        return _FixedError(drafts, failure, turn, Gist.of(drafts[-1].draft.content), means)

    def is_meant(self, gist: Gist, turn: int) -> bool:
        """Match an objection that names this fix: by names from code, or in the turn after it by a word."""
        return gist.corrects(self.gist) or (turn == self.turn and not self.means.isdisjoint(gist.words))


class _Objection(Struct, frozen=True):
    """A sentence of the user against a fix: "no", "that's wrong", "don't do X", "use Y instead"."""

    gist: Gist
    is_plain: bool  # it only objects: "that's wrong"
    is_open: bool  # it names nothing, so it is about the latest fix

    @staticmethod
    def of(sentence: str) -> "_Objection | None":
        said = lowered(sentence).rstrip(".! ")
        is_plain = rules()["objection"].fits(said) and not said.startswith("no ")
        if said.endswith("?") or not (is_plain or rules()["overrules"].fits(said)):
            return None
        gist = Gist.of(sentence)
        return _Objection(gist, is_plain, is_open=not gist.names and (is_plain or said.endswith("instead")))

    def concerns(self, fix: _FixedError, turn: int) -> bool:
        return fix.is_meant(self.gist, turn) or (self.is_open and fix.turn == turn)

    def is_bare(self, fix: _FixedError, turn: int) -> bool:
        """Return True if the alternative can only be in the next sentence."""
        return self.is_plain and len(self.gist.words) <= 2 and not fix.is_meant(self.gist, turn)


class Conversation:
    """One pass over the messages, and the state that it needs."""

    def __init__(self, messages: Sequence[Message], edits: Edits, *, with_minor: bool = False) -> None:
        self._messages = messages
        self._with_minor = with_minor
        self._edits = edits
        self._failures = Failures()
        self._commands = Commands()
        self._calls: deque[Message] = deque()  # tool calls whose result has not come yet
        self._has_acted = False  # an assistant that used no tool has observed nothing: it only talks
        self._question = ""  # the last one asked, which "let's not do that" answers
        self._turn = 0
        self._spoken: Counter[int] = Counter()  # messages of the agent by turn
        self._found: list[_FoundPassage] = []
        self._told = KeptStatements()
        self._stated: list[Gist] = []  # of the user's statements
        self.taken_back: set[str] = set()  # choices of the user that were replaced later by "… instead of …"
        self._chosen: list[str] = []
        self._replacing_clauses: list[Clause] = []
        self._corrections: list[tuple[int, Gist]] = []  # each with the number of passages found before it
        self._work_until = 0  # how many passages were found before the last change, or the last error that went away
        self._refused_turns: set[int] = set()  # after which the user did not accept that something stays as it is
        self._reports: list[tuple[int, str]] = []  # the same, as text: they are looked at only for an open end
        self._request: tuple[Message, str] | None = None  # the user's last one, until it is answered
        self._is_interrupted = False  # the work on it
        self._last_ran: Message | None = None
        self._fixes: list[_FixedError] = []
        self._overruled: _FixedError | None = None  # the fix to which the user's message objects that is being read
        self._objecting: set[str] = set()  # the sentences of the objection and of its alternative
        self._recommended: set[str] = set()  # commands that a fix names as the way that works

    def read(self) -> Iterator[ExtractedDraft]:
        for message in self._messages:
            if message.role == "user":
                yield from self._read_user(message)
            elif message.role == "assistant":
                self._read_assistant(message)
            elif message.role == "summary":
                self._read_summary(message)
            elif message.role == "tool_call":
                self._read_call(message)
            elif message.role == "tool_result":
                self._read_result(message)
        for fix in self._fixes:
            yield from fix.drafts
        for each in self._best():
            yield self._reported(each)
        yield from self._unfinished()
        yield from self._working_commands()

    # ---- the user ----

    def _read_user(self, message: Message) -> Iterator[ExtractedDraft]:
        self._calls.clear()
        if message.trust != "user":  # an agent wrote it to a sub-agent, or the author is unknown
            return
        if message.content.lstrip().lower().startswith(INTERRUPTED):
            self._is_interrupted = True
            return
        read = passages(message.content, is_long_pasted=True)
        if not read:
            return
        if rules()["insists"].fits(lowered(" ".join(each.text for each in read))):
            self._refused_turns.add(self._turn)
        self._withdraw_fixes(read)
        self._turn += 1
        self._request, self._is_interrupted = (message, read[0].text), False
        if len(message.content) > DOCUMENT_CHARS and hands_over(message.content):
            yield from self._plan(message, read[1:])
            return
        for passage in read:
            yield from self._statements(message, passage)
        self._question = _last_question(read)

    def _statements(self, message: Message, passage: Passage) -> Iterator[ExtractedDraft]:
        """Return the sentences of the user that are worth keeping: by a rule, or because they may change a fact."""
        sentences = [each for each in map(without_request, passage.sentences) if not is_only_emphasis(each)]
        emphasized = {before for before, each in pairwise(passage.sentences) if is_only_emphasis(each)}
        is_joined = False  # with the sentence before
        for before, sentence, following in zip(["", *sentences], sentences, [*sentences[1:], ""], strict=False):
            if is_joined:
                is_joined = False
                continue
            rule = self._rule_for(sentence, is_emphasized=sentence in emphasized)
            content = self._content(sentence, before, rule)
            if not content:
                continue
            if rule is None:
                yield self._said_in_passing(message, content, sentence)
            else:
                content, is_joined = _with_following(content, sentence, following)
                self._note(content)
                yield self._said(message, content, sentence, rule)

    def _content(self, sentence: str, before: str, rule: SentenceRule | None) -> str:
        """Return the statement to keep of a sentence; empty if there is no reason to keep it, or it is too long."""
        if rule is None and not self._may_change(sentence):
            return ""
        content = chosen(sentence, self._question) if rule is not None and rule.name == "decision" else ""
        content = content or statement(sentence, elided(before), self._question, by_user=True)
        return content if len(content) <= MAX_CHARS else ""

    def _rule_for(self, sentence: str, *, is_emphasized: bool) -> SentenceRule | None:
        """Return the rule to keep a sentence: by its words, by "Remember that." after it, or by a fix it replaces."""
        if (rule := rule_for(sentence)) is not None or not may_change(sentence):
            return rule
        is_objection = self._overruled is not None and sentence in self._objecting
        return rules()["remember"] if is_emphasized else rules()["correction"] if is_objection else None

    def _withdraw_fixes(self, read: Sequence[Passage]) -> None:
        """Drop the fixes that the user does not want: named in an objection, or made just before one without names."""
        self._overruled = None
        self._objecting.clear()
        if not self._fixes:
            return
        for sentence, following in (pair for each in read for pair in pairwise((*each.sentences, ""))):
            objection = _Objection.of(sentence)
            if objection is None:
                continue
            for fix in [each for each in self._fixes if objection.concerns(each, self._turn)]:
                self._fixes.remove(fix)
                self._recommended.discard(fix.failure.instead)
                self._corrections.append((len(self._found), fix.gist))
                self._overruled = fix
                self._objecting |= {sentence, following} if objection.is_bare(fix, self._turn) else {sentence}

    def _may_change(self, sentence: str) -> bool:
        """Match a sentence without a cue that may change a statement of the user, here or (minor) elsewhere."""
        return may_change(sentence) and (self._with_minor or (bool(self._stated) and tells_of_change(sentence)))

    def _said_in_passing(self, message: Message, content: str, sentence: str) -> ExtractedDraft:
        """Return a sentence without a cue as minor, unless it changes a statement of the user in this conversation."""
        is_change = tells_of_change(sentence) and any(map(Gist.of(content).touches, self._stated))
        if is_change:
            self._note(content)
        return replace(self._said(message, content, sentence, rules()["changed"]), is_minor=not is_change)

    def _note(self, content: str) -> None:
        gist = Gist.of(content)
        self._told.add(gist)
        self._stated.append(gist)

    def _said(self, message: Message, content: str, sentence: str, rule: SentenceRule) -> ExtractedDraft:
        if rule.tag == CORRECTION:
            self._corrections.append((len(self._found), Gist.of(content)))
        content = dated(content, message.at)
        self._take_back(content, rule.kind)
        # "Actually, …": the statement does without such an opening, but it is still a correction.
        tag = CORRECTION if tells_of_change(sentence) and not tells_of_change(content) else rule.tag
        if self._overruled is not None and sentence in self._objecting:
            return self._replacing(self._overruled, message, content, rule)
        importance = by_kind(IMPORTANCE_BY_KIND, rule.kind)
        return _extracted(
            message,
            content,
            rule.kind,
            USER_WARNING_IMPORTANCE if rule.kind == "warning" else importance,
            USER_CONFIDENCE,
            rules=(rule.name,),
            signals=(USER_INTENT,) if rule.kind != "warning" else (),
            files=self._edits.files_named(content),
            tags=(*((tag,) if tag else ()), *_tags(content)),
        )

    def _take_back(self, content: str, kind: str) -> None:
        """Drop an earlier choice of the user if this statement replaces it: "use NATS instead of Redis"."""
        for clause in (each for each in clauses_of(content) if each.replaced):
            meant = [each for each in self._chosen if _takes_place_of(clause, each)]
            # Without a word for where it holds, only the last choice is meant.
            self.taken_back |= set(meant if len(clause.keys) > 1 else meant[-1:])
            self._replacing_clauses.append(clause)
        if kind in ("decision", "preference"):
            self.taken_back.discard(content)
            self._chosen.append(content)

    def _replacing(self, fix: _FixedError, message: Message, content: str, rule: SentenceRule) -> ExtractedDraft:
        """Return the user's objection to a fix as the memory of the error."""
        return _extracted(
            message,
            content,
            "error",
            by_kind(IMPORTANCE_BY_KIND, "error"),
            USER_CONFIDENCE,
            rules=(rule.name,),
            signals=(USER_INTENT,),
            files=tuple(dict.fromkeys(fix.failure.changed))[:MAX_FILES],
            tags=(CORRECTION, FIX, *_tags(content)),
            data={"signature": fix.failure.signature},
        )

    def _plan(self, message: Message, read: Sequence[Passage]) -> Iterator[ExtractedDraft]:
        """Return the decisions in a plan that the user hands over."""
        for content in dict.fromkeys(_decisions_of(read)):
            told = finished(content)
            gist = Gist.of(told)
            if self._told.has(gist):
                continue
            self._told.add(gist)
            yield _extracted(
                message,
                dated(told, message.at),
                "decision",
                by_kind(IMPORTANCE_BY_KIND, "decision"),
                AGENT_CONFIDENCE,
                rules=("plan",),
                signals=(USER_INTENT,),
                files=self._edits.files_named(told),
                tags=_tags(told),
            )

    # ---- the agent ----

    def _read_assistant(self, message: Message) -> None:
        self._calls.clear()
        read = passages(message.content)
        self._spoken[self._turn] += 1
        if self._failures.are_open:
            causes = [each for passage in read for each in passage.sentences if evidence.explains(each)]
            self._failures.said([(each, message) for each in causes if not points_back(own_words(each))])
        if self._has_acted:
            self._judge(message, read)
        self._question = _last_question(read) or self._question
        self._is_interrupted = False

    def _judge(self, message: Message, read: Sequence[Passage]) -> None:
        """Collect the passages with enough evidence, and the reports of finished work."""
        for judged in filter(None, map(judge, read)):
            if judged.has("report"):
                self._reports.append((len(self._found), judged.content))
            if judged.points < evidence.THRESHOLD:
                continue
            content = own_words(judged.content)
            if not _has_subject(judged.passage, content):
                continue
            kind, tags = evidence.kind_of(judged)
            gist = Gist.of(content)
            if rules()["corrects"].fits(lowered(content)):
                self._corrections.append((len(self._found), gist))
            self._found.append(_FoundPassage(judged, message, self._turn, len(self._found), kind, gist, tags))

    def _read_summary(self, message: Message) -> None:
        """Judge the bullets of a host's summary as notes."""
        read = noted_passages(message.content)
        self._judge(message, read)

    def _best(self) -> list[_FoundPassage]:
        """Return the passages with the most evidence, a few of each turn, none twice, in the order of reading."""
        chosen: list[_FoundPassage] = []
        per_turn: dict[object, int] = {}
        for each in sorted(self._found, key=lambda each: (-each.judged.points, -each.place)):
            if len(chosen) >= MAX_PER_SESSION:
                break
            group = each.turn if each.message.role == "assistant" else each.message.id
            more = self._spoken[each.turn] // MESSAGES_PER_MORE
            limit = MAX_PER_TURN + more if each.message.role == "assistant" else MAX_OF_A_SUMMARY
            if per_turn.get(group, 0) >= limit or self._told.has(each.gist) or self._is_over(each):
                continue
            self._told.add(each.gist)
            per_turn[group] = per_turn.get(group, 0) + 1
            chosen.append(each)
        return sorted(chosen, key=lambda each: each.place)

    def _is_over(self, found: _FoundPassage) -> bool:
        """Return True if the session went beyond a passage: the first reason that holds."""
        reasons = (
            self._is_corrected,
            self._is_replaced,
            self._is_refused,
            self._is_outdated,
            self._is_done,
        )
        return any(holds(found) for holds in reasons)

    def _is_corrected(self, found: _FoundPassage) -> bool:
        return any(place > found.place and gist.corrects(found.gist) for place, gist in self._corrections)

    def _is_replaced(self, found: _FoundPassage) -> bool:
        """Match a decision in place of which the user chose something else."""
        if found.kind != "decision":
            return False
        return any(_takes_place_of(each, found.judged.content) for each in self._replacing_clauses)

    def _is_refused(self, found: _FoundPassage) -> bool:
        """Match an excuse that the user did not accept."""
        return found.turn in self._refused_turns and rules()["excuse"].fits(lowered(found.judged.content))

    def _is_outdated(self, found: _FoundPassage) -> bool:
        """Match a report on the state of the work before the work went on."""
        if OPEN in found.tags or self._work_until <= found.place:
            return False
        return rules()["of_the_moment"].fits(lowered(found.judged.content))

    def _is_done(self, found: _FoundPassage) -> bool:
        """Match an open end that is reported as done later."""
        if OPEN not in found.tags:
            return False
        later = (content for place, content in self._reports if place > found.place)
        return any(Gist.of(content).corrects(found.gist) for content in later)

    def _reported(self, found: _FoundPassage) -> ExtractedDraft:
        content = finished(own_words(found.judged.content))
        passage = found.judged.passage
        is_headless = passage.is_item and lacks_subject(content)
        topic = _subject(passage) if is_headless else passage.topic if points_back(content) else ""
        if topic and len(topic) + len(content) < MAX_CHARS:
            content = f"{topic}: {content[:1].lower() + content[1:] if is_headless else content}"
        content = dated(content, found.message.at)
        share = AGENT_SHARE + SHARE_PER_POINT * (found.judged.points - evidence.THRESHOLD)
        return _extracted(
            found.message,
            content,
            found.kind,
            round(by_kind(IMPORTANCE_BY_KIND, found.kind) * min(1.0, share), 3),
            AGENT_CONFIDENCE,
            rules=found.judged.features,
            files=self._edits.files_named(content),
            tags=(*found.tags, *_tags(content)),
        )

    def _unfinished(self) -> Iterator[ExtractedDraft]:
        """Return the user's last request, if its work was interrupted and not resumed."""
        if self._request is None or not self._is_interrupted:
            return
        message, asked = self._request[0], elided(self._request[1])
        content = dated(f"Not finished: {finished(own_words(asked))}", message.at)
        gist = Gist.of(asked)
        if len(gist.words) < MIN_ASKED_WORDS or len(content) > MAX_CHARS or self._told.has(gist):
            return
        importance = by_kind(IMPORTANCE_BY_KIND, "progress")
        yield _extracted(
            message, content, "progress", importance, AGENT_CONFIDENCE, rules=("interrupted",), tags=(OPEN,)
        )

    # ---- tools ----

    def _read_call(self, message: Message) -> None:
        self._calls.append(message)
        self._has_acted = True
        for edit in edits_in(message):
            self._failures.changed(*self._edits.add(edit))
            self._work_until = len(self._found)

    def _read_result(self, message: Message) -> None:
        if message.name == CONTEXT:  # it answers no call
            return
        command = command_in(self._calls.popleft()) if self._calls else None
        if command is None:
            return
        is_error = message.is_error
        for failure in self._failures.ran(command, text.without_delivered(message.content), is_error=is_error):
            self._work_until = len(self._found)
            if drafts := tuple(self._resolved(failure, message)):
                self._fixes.append(_FixedError.of(drafts, failure, self._turn))
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
        self._told.add(Gist.of(content))
        self._recommended.add(failure.instead)
        fields: dict[str, Any] = {
            "files": tuple(dict.fromkeys(failure.changed))[:MAX_FILES],
            "data": {"signature": failure.signature},
        }
        importance, confidence = by_kind(IMPORTANCE_BY_KIND, "error"), RESOLUTION_CONFIDENCE
        if not fix.names_error and is_telling(failure.message):
            tags = _tags(failure.message)
            yield _extracted(
                message, error[:MAX_CHARS], "error", importance, confidence, rules=("failed",), tags=tags, **fields
            )
        yield _extracted(
            fix.told_in or message,
            content[:MAX_CHARS],
            "error",
            importance,
            confidence,
            rules=("fixed",),
            signals=(ERROR_RESOLUTION,),
            tags=(FIX, *_tags(content)),
            trust="agent",
            **fields,
        )


MIN_ASKED_WORDS = 2


_WISHING = frozenset(("user", "rather"))  # "The user would rather have …"


def _takes_place_of(clause: Clause, choice: str) -> bool:
    """Match a choice that the clause replaces: it has the old thing, not the new one, and the same subject."""
    others = clauses_of(choice)
    keys = frozenset(key for each in others for key in each.keys)
    if not clause.replaced <= keys or any(each.denies or each.replaced for each in others):
        return False
    new = clause.keys - clause.replaced - _WISHING
    return len(new) <= 1 or (not new.isdisjoint(keys) and not new <= keys)


def _decisions_of(plan: Sequence[Passage]) -> list[str]:
    """Return the items under a heading such as "Decisions", then the passages with the most evidence."""
    deciding = rules()["deciding_heading"]
    decided = (each for each in plan if any(deciding.fits(lowered(heading)) for heading in each.headings))
    items = [each.text for each in decided if each.is_item and len(each.text) <= MAX_CHARS][:MAX_OF_A_PLAN]
    judged = sorted(filter(None, map(judge, plan)), key=lambda each: -each.points)
    others = [each.content for each in judged if each.points >= evidence.THRESHOLD]
    return [*items, *others[: MAX_OF_A_PLAN - len(items)]]


def _with_following(content: str, sentence: str, following: str) -> tuple[str, bool]:
    """Join the next sentence to a statement if it continues it. Return the text, and whether it was joined."""
    if not following or elided(following) != following or not continues(sentence, following):
        return content, False
    longer = f"{content} {finished(following)}"
    return (longer, True) if len(longer) <= MAX_CHARS else (content, False)


def _has_subject(passage: Passage, content: str) -> bool:
    """Return True if the subject of a passage is in its words, in its topic or in a heading above it."""
    if points_back(content) and not passage.topic:
        return False
    return not passage.is_item or not lacks_subject(content) or bool(_subject(passage))


def _subject(passage: Passage) -> str:
    """Return the subject of a list item that names none; a heading such as "Changes" does not count."""
    return "" if rules()["dull_heading"].fits(lowered(passage.subject)) else passage.subject


def _extracted(
    message: Message,
    content: str,
    kind: str,
    importance: float,
    confidence: float,
    *,
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
        data={**(data or {}), "rules": list(rules)},
        **fields,
    )
    return ExtractedDraft(draft, message.id, signals)


def _last_question(read: Sequence[Passage]) -> str:
    spoken = [sentence for passage in read for sentence in passage.sentences]
    return elided(next((each for each in reversed(spoken) if each.endswith("?")), ""))


def _tags(content: str) -> tuple[str, ...]:
    """Return the names from code in a statement that are short enough for tags."""
    names = [name for name in names_in(content) if " " not in name and len(name) <= MAX_TAG_CHARS]
    return tuple(names[:MAX_TAGS])
