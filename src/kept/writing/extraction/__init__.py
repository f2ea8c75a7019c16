"""Find statements worth keeping in a conversation: messages in, drafts out. Call `extract` and `summarize`.

First step of the write path for everything that nobody stored on purpose. Rules, no model. The user's own words come
first (`rules`, `statements`); of what an agent writes, the passages with the most evidence (`evidence`); then errors
with what fixed them (`failures`), commands that work (`commands`), and the bullets of a host's summary. Rule: one draft
is one statement that can be understood alone, in its speaker's words, with the names of the rules that chose it. Tool
output is never a statement. A miss costs little; a memory full of chatter is worth nothing.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
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
from kept.writing.extraction.summaries import summary_of
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

# How sure we are that a draft says what was meant, and how much of its kind's importance it gets.
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


class Extracted(Struct, frozen=True):
    """A draft, the message it comes from, and the signals that speak for keeping it."""

    draft: Draft
    message_id: str
    signals: tuple[str, ...] = ()
    is_minor: bool = False  # worth keeping only if it changes what is known: a sentence of the user without any cue


class _Found(Struct, frozen=True):
    """A passage of an agent that could be kept: where it stands, and what it is worth."""

    judged: JudgedPassage
    message: Message
    turn: int
    place: int  # in the order of reading
    kind: str
    gist: Gist
    tags: tuple[str, ...] = ()


class _Fixed(Struct, frozen=True):
    """An error that went away: what is kept of it, unless the user objects to the way."""

    drafts: tuple[Extracted, ...]
    failure: Failure
    turn: int
    gist: Gist
    means: frozenset[str]  # the words of what was written or run

    @staticmethod
    def of(drafts: tuple[Extracted, ...], failure: Failure, turn: int) -> "_Fixed":
        lines = [line for new in failure.changed.values() for line in new]
        written = {word for line in (*lines, *failure.ran[-1:], failure.instead) for word in text.words(line)}
        means = frozenset(written - {word for known in failure.words for word in text.words(known)})
        return _Fixed(drafts, failure, turn, Gist.of(drafts[-1].draft.content), means)

    def is_meant(self, gist: Gist, turn: int) -> bool:
        """Whether an objection names it: by names from code at any time, by a word of it in the turn after it."""
        return gist.corrects(self.gist) or (turn == self.turn and not self.means.isdisjoint(gist.words))


def extract(messages: Sequence[Message], folder: str | None = None, *, with_minor: bool = False) -> list[Extracted]:
    """C31, A13: what these messages say that is worth keeping, each statement once.

    `folder` is where the conversation took place: paths in it are told as seen from there. `with_minor`: also the
    user's other sentences, for a caller who knows what they could change.
    """
    edits = Edits(messages, folder)
    found: dict[str, Extracted] = {}
    conversation = _Conversation(messages, edits, with_minor=with_minor)
    for each in [*conversation.read()]:
        if each.draft.content in conversation.taken_back:
            continue
        content = edits.shorten(each.draft.content) if folder else each.draft.content
        fingerprint = text.fingerprint(content)
        if (with_minor or not each.is_minor) and (fingerprint not in found or found[fingerprint].is_minor):
            found[fingerprint] = replace(each, draft=replace(each.draft, content=content))
    return list(found.values())


class _Conversation:
    """One pass over the messages, and the state that it needs."""

    def __init__(self, messages: Sequence[Message], edits: Edits, *, with_minor: bool = False) -> None:
        self._messages = messages
        self._with_minor = with_minor
        self._edits = edits
        self._failures = Failures()
        self._commands = Commands()
        self._calls: deque[Message] = deque()  # tool calls whose result has not come yet
        self._has_acted = False  # an assistant that used no tool has observed nothing: it only talks
        self._question = ""  # the last one asked: what "let's not do that" answers
        self._turn = 0
        self._spoken: Counter[int] = Counter()  # messages of the agent by turn
        self._found: list[_Found] = []
        self._told = KeptStatements()  # what was kept so far
        self._stated: list[Gist] = []  # what the user said of it
        self.taken_back: set[str] = set()  # what the user chose, and later something else "instead of" it
        self._chosen: list[str] = []
        self._replacing_clauses: list[Clause] = []
        self._corrections: list[tuple[int, Gist]] = []  # how many passages were found before it, and what it is about
        self._work_until = 0  # how many passages were found before the last change, or the last error that went away
        self._refused_turns: set[int] = set()  # after which the user did not accept that something stays as it is
        self._reports: list[tuple[int, str]] = []  # the same, as text: they are looked at only for an open end
        self._request: tuple[Message, str] | None = None  # the user's last one, until it is answered
        self._is_interrupted = False  # the work on it
        self._last_ran: Message | None = None
        self._fixes: list[_Fixed] = []
        self._overruled: _Fixed | None = None  # the fix to which the user's message objects that is being read
        self._objecting: set[str] = set()  # the sentences that do, and what one of them says is to be done
        self._recommended: set[str] = set()  # commands that a fix names as the way that works

    def read(self) -> Iterator[Extracted]:
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

    def _read_user(self, message: Message) -> Iterator[Extracted]:
        self._calls.clear()
        if message.trust != "user":  # an agent wrote it, to a sub-agent, or nobody knows who
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

    def _statements(self, message: Message, passage: Passage) -> Iterator[Extracted]:
        before = ""
        is_told = False  # the sentence went along with the one before
        sentences = [each for each in map(without_request, passage.sentences) if not is_only_emphasis(each)]
        emphasized = {before for before, each in pairwise(passage.sentences) if is_only_emphasis(each)}
        for number, sentence in enumerate(sentences):
            rule = None if is_told else self._rule_for(sentence, is_emphasized=sentence in emphasized)
            is_passing = rule is None and not is_told and self._may_change(sentence)
            before, previous, is_told = sentence, before, False
            if rule is None and not is_passing:
                continue
            content = chosen(sentence, self._question) if rule is not None and rule.name == "decision" else ""
            content = content or statement(sentence, elided(previous), self._question, by_user=True)
            if not content or len(content) > MAX_CHARS:
                continue
            if rule is None:
                yield self._said_in_passing(message, content, sentence)
                continue
            following = [each for each in sentences[number + 1 : number + 2] if elided(each) == each]
            if following and continues(sentence, following[0]):
                longer = f"{content} {finished(following[0])}"
                is_told = len(longer) <= MAX_CHARS
                content = longer if is_told else content
            self._note(content)
            yield self._said(message, content, sentence, rule)

    def _rule_for(self, sentence: str, *, is_emphasized: bool) -> SentenceRule | None:
        """Why a sentence is kept: by its own words, or because of "Remember that." after it, or a fix it replaces."""
        if (rule := rule_for(sentence)) is not None or not may_change(sentence):
            return rule
        is_objection = self._overruled is not None and sentence in self._objecting
        return rules()["remember"] if is_emphasized else rules()["correction"] if is_objection else None

    def _withdraw_fixes(self, read: Sequence[Passage]) -> None:
        """Drop the fixes that the user does not want: named in an objection, or made just before one without names."""
        self._overruled = None
        self._objecting.clear()
        for sentence, following in (pair for each in read for pair in pairwise((*each.sentences, "")) if self._fixes):
            said = lowered(sentence).rstrip(".! ")
            is_plain = rules()["objection"].fits(said) and not said.startswith("no ")  # "no", "that's wrong"
            if said.endswith("?") or not (is_plain or rules()["overrules"].fits(said)):
                continue
            gist = Gist.of(sentence)
            is_open = not gist.names and (is_plain or said.endswith("instead"))
            for fix in list(self._fixes):
                if fix.is_meant(gist, self._turn) or (is_open and fix.turn == self._turn):
                    self._fixes.remove(fix)
                    self._recommended.discard(fix.failure.instead)
                    self._corrections.append((len(self._found), fix.gist))
                    self._overruled = fix
                    says_no_more = is_plain and len(gist.words) <= 2 and not fix.is_meant(gist, self._turn)
                    self._objecting |= {sentence, following} if says_no_more else {sentence}

    def _may_change(self, sentence: str) -> bool:
        """Whether a sentence without a cue may change what the user said before, here or, if asked for, elsewhere."""
        return may_change(sentence) and (self._with_minor or (bool(self._stated) and tells_of_change(sentence)))

    def _said_in_passing(self, message: Message, content: str, sentence: str) -> Extracted:
        """A sentence without a cue. It is minor, unless it changes what the user said before."""
        is_change = tells_of_change(sentence) and any(map(Gist.of(content).touches, self._stated))
        if is_change:
            self._note(content)
        return replace(self._said(message, content, sentence, rules()["changed"]), is_minor=not is_change)

    def _note(self, content: str) -> None:
        gist = Gist.of(content)
        self._told.add(gist)
        self._stated.append(gist)

    def _said(self, message: Message, content: str, sentence: str, rule: SentenceRule) -> Extracted:
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
        """Drop what the user chose before, if this says what takes its place: "use NATS instead of Redis"."""
        for clause in (each for each in clauses_of(content) if each.replaced):
            meant = [each for each in self._chosen if _takes_place_of(clause, each)]
            # Without a word for where it holds, only the last choice is meant.
            self.taken_back |= set(meant if len(clause.keys) > 1 else meant[-1:])
            self._replacing_clauses.append(clause)
        if kind in ("decision", "preference"):
            self.taken_back.discard(content)
            self._chosen.append(content)

    def _replacing(self, fix: _Fixed, message: Message, content: str, rule: SentenceRule) -> Extracted:
        """The user's objection to a fix: from now on it is what is known of the error."""
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

    def _plan(self, message: Message, read: Sequence[Passage]) -> Iterator[Extracted]:
        """The decisions in a plan that the user hands over: what stands under such a heading, then the best others."""
        decided = [each for each in read if any(rules()["deciding_heading"].fits(lowered(h)) for h in each.headings)]
        chosen = [each.text for each in decided if each.is_item and len(each.text) <= MAX_CHARS][:MAX_OF_A_PLAN]
        judged = sorted(filter(None, map(judge, read)), key=lambda each: -each.points)
        chosen += [each.content for each in judged if each.points >= evidence.THRESHOLD][: MAX_OF_A_PLAN - len(chosen)]
        for content in dict.fromkeys(chosen):
            told = finished(content)
            gist = Gist.of(told)
            if self._told.has(gist):
                continue
            self._told.add(gist)
            importance = by_kind(IMPORTANCE_BY_KIND, "decision")
            files, tags = self._edits.files_named(told), _tags(told)
            yield _extracted(
                message,
                dated(told, message.at),
                "decision",
                importance,
                AGENT_CONFIDENCE,
                rules=("plan",),
                signals=(USER_INTENT,),
                files=files,
                tags=tags,
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
        for passage in read:
            judged = judge(passage)
            if judged is None:
                continue
            if judged.has("report"):
                self._reports.append((len(self._found), judged.content))
            if judged.points < evidence.THRESHOLD:
                continue
            content = own_words(judged.content)
            if points_back(content) and not passage.topic:
                continue
            if passage.is_item and lacks_subject(content) and not _subject(passage):
                continue
            kind, tags = evidence.kind_of(judged)
            gist = Gist.of(content)
            if rules()["corrects"].fits(lowered(content)):
                self._corrections.append((len(self._found), gist))
            self._found.append(_Found(judged, message, self._turn, len(self._found), kind, gist, tags))

    def _read_summary(self, message: Message) -> None:
        """A host's summary of what came before: its bullets are notes."""
        read = noted_passages(message.content)
        self._judge(message, read)

    def _best(self) -> list[_Found]:
        """The passages with the most evidence, a few of each turn, none twice, in the order of reading."""
        chosen: list[_Found] = []
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

    def _is_over(self, found: _Found) -> bool:
        """Whether the session went beyond it.

        It was corrected later, or the user did not accept it or chose something else; it told how far the work was,
        and the work went on; or it was an open end and is reported as done.
        """
        if any(place > found.place and gist.corrects(found.gist) for place, gist in self._corrections):
            return True
        is_choice = found.kind == "decision"
        if is_choice and any(_takes_place_of(each, found.judged.content) for each in self._replacing_clauses):
            return True
        said = lowered(found.judged.content)
        if found.turn in self._refused_turns and rules()["excuse"].fits(said):
            return True
        if OPEN not in found.tags and self._work_until > found.place and rules()["of_the_moment"].fits(said):
            return True
        done = (content for place, content in self._reports if OPEN in found.tags and place > found.place)
        return any(Gist.of(content).corrects(found.gist) for content in done)

    def _reported(self, found: _Found) -> Extracted:
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

    def _unfinished(self) -> Iterator[Extracted]:
        """The user's last request, if its work was interrupted and nobody came back to it."""
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
                self._fixes.append(_Fixed.of(drafts, failure, self._turn))
        if not is_error and not self._failures.has_just_failed:
            self._commands.ran(command)
            self._last_ran = message

    def _working_commands(self) -> Iterator[Extracted]:
        for sentence, command, folder in self._commands.worth_keeping():
            assert self._last_ran is not None
            if command in self._recommended:
                continue  # a fix says that it works, and what does not
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

    def _resolved(self, failure: Failure, message: Message) -> Iterator[Extracted]:
        """What made an error go away, in the agent's words, and the error in the tool's, unless the fix names it."""
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
    """Whether a choice has what the clause names as replaced, and not what replaces it, and is about the same."""
    others = clauses_of(choice)
    keys = frozenset(key for each in others for key in each.keys)
    if not clause.replaced <= keys or any(each.denies or each.replaced for each in others):
        return False
    new = clause.keys - clause.replaced - _WISHING
    return len(new) <= 1 or (not new.isdisjoint(keys) and not new <= keys)


def _subject(passage: Passage) -> str:
    """What a list item without a subject is about; a heading such as "Changes" does not count."""
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
) -> Extracted:
    """A draft of the session tier, by the message it comes from; `fields` are further fields of the draft."""
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
    return Extracted(draft, message.id, signals)


def _last_question(read: Sequence[Passage]) -> str:
    spoken = [sentence for passage in read for sentence in passage.sentences]
    return elided(next((each for each in reversed(spoken) if each.endswith("?")), ""))


def _tags(content: str) -> tuple[str, ...]:
    """The names from code in a statement that are short enough to be tags."""
    names = [name for name in names_in(content) if " " not in name and len(name) <= MAX_TAG_CHARS]
    return tuple(names[:MAX_TAGS])


# ---- the summary: what was kept, and what is open; for prose, plug in a model ----

Summarizer = Callable[[Sequence[Message]], str]


def summarize(messages: Sequence[Message], findings: Sequence[Draft] | None = None) -> str:
    """What was asked, kept and left open: at most five lines. `findings`: what was kept, if the caller has it."""
    drafts = [each.draft for each in extract(messages)] if findings is None else findings
    asked = ""
    for message in messages:
        if (
            message.role == "user"
            and message.trust == "user"
            and (read := passages(message.content, is_long_pasted=True))
        ):
            asked = elided(read[0].sentences[0])
            break
    return summary_of(asked, drafts)
