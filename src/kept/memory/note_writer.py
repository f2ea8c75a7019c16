"""Store the notes of agents' own memories: the statements of a host's files, beside those that were read before.

`host_notes` reads the files and hands over their statements. A statement that is new becomes a memory, one that has
changed revises its memory, and one that no file has any more is archived. Rule: a person's act here outranks the
file. A forgotten, erased or rejected statement does not come back, one that was revised here keeps its text, and a
pinned one stays. A statement that the session of a note has said as well is one memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from kept import text
from kept.memory import trust
from kept.memory.context import Context, by_uid
from kept.memory.findings import findings_of
from kept.memory.judging import settled
from kept.memory.session_summary import leave_out
from kept.memory.standing import anchored, held_again
from kept.memory.write import grown_by, place
from kept.model import NOTE_OF, Draft, Memory, Receipt, Rejection, replace
from kept.ports import Reader, Stamp, Storage, Transaction, Where
from kept.writing import pipeline, revise
from kept.writing.duplicates import is_guarded, supersede
from kept.writing.likeness import letters_shared
from kept.writing.pipeline import WriteRules
from kept.writing.rejections import Rejections, claim_of, is_said_in, says_again, skeleton

SAME_LINE = 60.0  # per cent of the letters that a line shares with the one that it was before
FILE, READ = "note-file/", "note-read/"  # notes in the store: for a file of a host, and for the last reading
BATCH_FILES = 50
MOST_NAMED = 20  # files that were left out
REFUSED = Receipt(outcome="refused", reason="rejected")
WITHDRAW = "withdraw"  # the journal's word for archiving a statement that no note has any more

S = TypeVar("S", bound=Struct)


class NoteReading(Struct, kw_only=True):
    """Result of one reading of a host's notes, counted, with the files that were left out."""

    host: str
    read: int = 0  # files
    added: int = 0
    changed: int = 0
    removed: int = 0
    asked: int = 0  # of the added ones: a person decides about them
    elsewhere: int = 0  # notes of other projects
    refused: int = 0  # forgotten, erased or rejected here
    left_out: list[str] = []  # files that were not read, and why


class LastReading(Struct, kw_only=True):
    """When notes of a host were last taken in, and the files that were left out then."""

    at: datetime
    left_out: list[str] = []


class NotedStatement(Struct, omit_defaults=True):
    """A statement of a note: a mark of its text, and its memory. `is_shared`: others said it before the note did."""

    mark: str
    uid: str = ""  # "" if it was not stored
    topic: str = ""
    is_shared: bool = False


class NoteFile(Struct, omit_defaults=True):
    """A file as it was last read: its state, and its statements."""

    mtime: int = 0
    size: int = 0
    said: list[NotedStatement] = []


class FoundStatement(NamedTuple):
    """A statement as a file has it now, checked and redacted.

    `is_line`: it has no name that stays when its words change. `is_asked`: a person decides about it.
    """

    draft: Draft
    mark: str
    is_line: bool
    is_asked: bool


class ReadFile(NamedTuple):
    """A file as it is read now: its state, and its statements."""

    mtime: int
    size: int
    statements: Sequence[FoundStatement]


def files_noted(reader: Reader, host: str) -> dict[str, NoteFile]:
    """Return the files of a host that were read, by the names of their notes in the store."""
    found = reader.file_notes(f"{FILE}{host}/").items()
    return {name: note for name, raw in found if (note := _decoded(raw, NoteFile)) is not None}


def live_among(reader: Reader, files: Iterable[NoteFile]) -> int:
    """Return how many memories of these files are live."""
    uids = {one.uid for file in files for one in file.said if one.uid}
    found = (by_uid(reader, uid) for uid in uids)
    return sum(one is not None and not one.is_archived for one in found)


def last_reading(reader: Reader, host: str) -> LastReading | None:
    """Return when notes of a host were last taken in; None if never."""
    return _decoded(reader.file_notes(f"{READ}{host}").get(f"{READ}{host}", ""), LastReading)


def _decoded(raw: str, type: type[S]) -> S | None:
    try:
        return msgspec.json.decode(raw, type=type)
    except msgspec.MsgspecError:
        return None


def write_notes(
    context: Context,
    storage: Storage,
    rules: WriteRules,
    done: NoteReading,
    *,
    gone: Sequence[str],
    files: Mapping[str, ReadFile],
) -> None:
    """Make the memories of a host's files those of their statements, as one group of the journal."""
    with storage.reading() as reader:
        heard = [(name, _as_heard(context, reader, file)) for name, file in files.items()]
    stamp = context.stamp()
    # The first batch has the deleted files: one that has another name now brings its memory back.
    _write_batch(context, storage, rules, done, stamp, gone, heard[:BATCH_FILES])
    for start in range(BATCH_FILES, len(heard), BATCH_FILES):
        _write_batch(context, storage, rules, done, stamp, (), heard[start : start + BATCH_FILES])


def _write_batch(
    context: Context,
    storage: Storage,
    rules: WriteRules,
    done: NoteReading,
    stamp: Stamp,
    gone: Sequence[str],
    files: Sequence[tuple[str, ReadFile]],
) -> None:
    """Store a few files in one transaction, which keeps others waiting no longer than that."""

    def work(tx: Transaction) -> int:
        known, change = files_noted(tx, done.host), _Change(context, storage, tx, rules, done)
        for name in gone:
            change.withdraw(known[name].said if name in known else ())
            tx.note_file(name, None)
        for name, file in files:
            said = change.apply(known[name].said if name in known else (), file.statements)
            noted = NoteFile(mtime=file.mtime, size=file.size, said=said)
            tx.note_file(name, msgspec.json.encode(noted).decode())
        last = LastReading(at=tx.stamp.at, left_out=done.left_out[:MOST_NAMED])
        tx.note_file(f"{READ}{done.host}", msgspec.json.encode(last).decode())
        return change.grown

    context.tell_write(storage, context.write(storage, work, stamp=stamp))


def _as_heard(context: Context, reader: Reader, file: ReadFile) -> ReadFile:
    """Return a file whose statements have the trust of a tool where the agent has only noted a tool's words."""
    heard = trust.as_heard(context, [one.draft for one in file.statements], reader)
    pairs = zip(file.statements, heard, strict=True)
    return file._replace(statements=[one._replace(draft=draft) for one, draft in pairs])


class _Change:
    """Changes the memories of notes in one transaction. `grown`: by how many live memories the space grew."""

    def __init__(
        self, context: Context, storage: Storage, tx: Transaction, rules: WriteRules, done: NoteReading
    ) -> None:
        self.grown = 0
        self._known_findings: dict[str, list[Memory]] = {}
        self._context, self._storage, self._tx, self._rules, self._done = context, storage, tx, rules, done

    def apply(self, before: Sequence[NotedStatement], now: Sequence[FoundStatement]) -> list[NotedStatement]:
        """Store, revise and archive, so that the memories of a file are those of its statements."""
        marks = {one.mark for one in now}
        same = {old.mark: old for old in before if old.mark in marks}
        left = [old for old in before if old.mark not in marks]
        said = [same.get(one.mark) or self._renewed(one, left) for one in now]
        self.withdraw(left)
        return said

    def _renewed(self, one: FoundStatement, left: list[NotedStatement]) -> NotedStatement:
        """Revise the memory of an earlier statement, which is taken out of `left`, or store a new one."""
        old = self._earlier(one, left)
        if old is None:
            return self._stored(one)
        left.remove(old)
        return self._revised(one, old) or self._stored(one)

    def withdraw(self, left: Sequence[NotedStatement]) -> None:
        """Archive the memories of statements that no note has any more."""
        for old in left:
            memory = self._own(old)
            if memory is not None and memory.status != "pinned":
                leave_out(self._tx, memory)
                self._tx.put(memory.archived("expired", self._tx.stamp.at), WITHDRAW)
                self._done.removed += 1
                self.grown -= 1

    def _own(self, old: NotedStatement) -> Memory | None:
        """Return the live memory of a statement; None if others have said, revised or guarded it."""
        memory = by_uid(self._tx, old.uid) if old.uid and not old.is_shared else None
        if memory is None or memory.is_archived or not memory.fingerprint.startswith(old.mark):
            return None
        return None if is_guarded(self._tx, memory) else memory

    def _earlier(self, one: FoundStatement, left: Sequence[NotedStatement]) -> NotedStatement | None:
        """Return the statement that this one was before: of the same note; of a line, the one that it is most like."""
        if not one.is_line:
            return next((old for old in left if old.topic == one.draft.topic), None)
        texts = [(old, by_uid(self._tx, old.uid)) for old in left if old.uid]
        alike = [(letters_shared(one.draft.content, known.content), old) for old, known in texts if known is not None]
        best, nearest = max(alike, key=lambda pair: pair[0], default=(0.0, None))
        return nearest if best >= SAME_LINE else None

    def _revised(self, one: FoundStatement, old: NotedStatement) -> NotedStatement | None:
        """Give the memory of a statement its new text; None if it is not the note's to change."""
        memory, draft, at = self._own(old), one.draft, self._tx.stamp.at
        if memory is None:
            return None
        revised = revise.revise(memory, {"content": draft.content, "kind": draft.kind}, self._rules, at)
        data, said_at = {**(memory.data or {}), **(draft.data or {})}, draft.created_at or memory.created_at
        revised = replace(revised, data=data, source=draft.source or memory.source, created_at=said_at)
        revised = pipeline.distrusted(held_again(self._context, revised), draft.trust or "agent", at)
        if self._is_rejected(revised):
            return None
        leave_out(self._tx, memory)
        stored, archived = revise.put_revised(self._tx, memory, revised)
        self.grown -= archived
        self._done.changed += 1
        return NotedStatement(mark=one.mark, uid=stored.uid, topic=draft.topic or "")

    def _stored(self, one: FoundStatement) -> NotedStatement:
        """Keep a new statement: as the finding of its session that says it, or as a memory."""
        noted = NotedStatement(mark=one.mark, topic=one.draft.topic or "")
        findings, claim = self._findings(one.draft), claim_of(one.draft.content)
        if own := next((finding for finding in findings if is_said_in(claim, finding.content)), None):
            kept = settled(self._context, "kept")(own, self._tx.stamp.at)
            self._tx.put(kept, "judge")
            self._known_findings.clear()
            return replace(noted, uid=own.uid, is_shared=True)
        if back := self._restored(one):
            return replace(noted, uid=back.uid)
        receipt = self._remembered(one)
        if receipt.memory is None:
            self._done.refused += receipt.reason != "echo"  # another memory says it
            return noted
        self._end_findings(findings, receipt.memory)
        is_known = receipt.is_known
        self._done.added += not is_known
        self._done.asked += one.is_asked and not is_known
        return replace(noted, uid=receipt.memory.uid, is_shared=is_known)

    def _findings(self, draft: Draft) -> list[Memory]:
        """Return the findings of the session that wrote a note."""
        session = draft.source.session if draft.source is not None else None
        if session is not None and session not in self._known_findings:
            self._known_findings[session] = findings_of(self._tx, session)
        return self._known_findings.get(session or "", [])

    def _remembered(self, one: FoundStatement) -> Receipt:
        """Send a statement down the write path."""
        ready = pipeline.prepare(one.draft, self._rules)
        if isinstance(ready, Receipt) or self._is_claim_rejected(one.draft.content):
            return ready if isinstance(ready, Receipt) else REFUSED
        ready = replace(ready, draft=anchored(self._context, ready.draft))
        if one.is_asked:
            ready = replace(ready, status="candidate")
        [receipt] = pipeline.store(self._tx, [ready], place(self._storage, self._tx.stamp.at))
        self.grown += grown_by(receipt)
        return receipt

    def _end_findings(self, findings: Sequence[Memory], note: Memory) -> None:
        """Archive the findings of a session that its note says as well, and that are not confirmed."""
        for finding in findings:
            if finding.status == "candidate" and is_said_in(finding.content, note.content):
                supersede(self._tx, finding, note, self._tx.stamp.at)
                self._known_findings.clear()
                self.grown -= 1

    def _restored(self, one: FoundStatement) -> Memory | None:
        """Bring back the memory of a note that was deleted, or has another name now."""
        where = Where(fingerprints=(text.fingerprint(one.draft.content),), shelf="archive")
        for gone in self._tx.select(where, limit=10):
            if gone.reason == "expired" and NOTE_OF in (gone.data or {}) and not self._is_rejected(gone):
                status = "candidate" if one.is_asked or gone.is_low_trust else "confirmed"
                live = replace(gone, status=status, reason=None, archived_at=None, updated_at=self._tx.stamp.at)
                self.grown += 1
                self._done.added += 1
                return revise.put_again(self._tx, live, "restore")[0]
        return None

    def _is_rejected(self, memory: Memory) -> bool:
        return bool(Rejections(self._tx).of(memory)) or self._is_claim_rejected(memory.content)

    def _is_claim_rejected(self, content: str) -> bool:
        """Return True if a person has rejected this statement, with another reason behind it."""
        claim = skeleton(claim_of(content))
        return any(says_again(rejected, claim) for rejected in self._rejected_claims)

    @cached_property
    def _rejected_claims(self) -> list[tuple[str, ...]]:
        rejected = filter(None, (by_uid(self._tx, one.memory) for one in self._tx.all(Rejection)))
        return [skeleton(claim_of(one.content)) for one in rejected]
